/* kill -9 of a peer in mid-stream, again and again. */
#ifndef PWI_TESTS_FAULTS_KILLS_H
#define PWI_TESTS_FAULTS_KILLS_H

#include "stream.h"

/* One net survives `kills` peers, each started at the same address, linked with, and killed while 1 MB messages, puts
 * and gets are under way in both directions. Bodies come by turns from private memory and from regions. Fails by
 * cmocka's assertions; prints how long after the kill link_down came. Skips if this build has no data plane. */
void kills_survive(enum stream_way way, unsigned kills);

/* The same streams for `ms` milliseconds and nobody is killed: however busy both are, the link stays up. Not for
 * STREAM_TLS and STREAM_UNIX. */
void kills_stream_in_peace(enum stream_way way, int64_t ms);

#endif
