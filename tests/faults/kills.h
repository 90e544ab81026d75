/* Repeated kill -9 of a peer in mid-stream. */
#ifndef PWI_TESTS_FAULTS_KILLS_H
#define PWI_TESTS_FAULTS_KILLS_H

#include "stream.h"

/* One net survives `kills` peers. Each peer is started at the same address, connected, and killed while 1 MB
 * messages, puts and gets are in flight in both directions. Bodies come alternately from private memory and
 * from regions. Fails by assertions of cmocka. Prints the time from the kill to link_down. Skips if this
 * build has no data plane. */
void kills_survive(enum stream_way way, unsigned kills);

/* Runs the same streams for `ms` milliseconds without killing: the link must stay up, however busy both sides
 * are. Not for STREAM_TLS and STREAM_UNIX. */
void kills_stream_in_peace(enum stream_way way, int64_t ms);

#endif
