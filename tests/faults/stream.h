/* Two nodes that send each other 1 MB messages without pause, and read and write each other's memory.
 *
 * The same actor runs on both sides. It keeps a few messages, a put and a get in flight all the time, checks
 * arriving bytes, and counts operations that begin and end. So the surviving side can say whether anything
 * was lost.
 */
#ifndef PWI_TESTS_FAULTS_STREAM_H
#define PWI_TESTS_FAULTS_STREAM_H

#include <sys/types.h>

#include "kit.h"

#define STREAM_BODY ((size_t)1 << 20)
#define STREAM_WINDOW 4

enum stream_way { STREAM_TCP, STREAM_TLS, STREAM_UNIX, STREAM_UCX, STREAM_WAYS };
const char *stream_way_name(enum stream_way way);

struct stream {
  struct pwi_net *net;
  struct pwi_keyring *keys;
  char *private_bodies;             /* STREAM_WINDOW of them */
  struct pwi_region *region_bodies; /* the same in a region */
  bool from_region;                 /* send from the region instead of private memory */

  struct pwi_link link; /* the current one */
  bool is_up, is_down;
  pawl_status why;
  size_t outstanding; /* operations that have not ended */
  size_t outstanding_at_down;
  uint64_t begun, ended, received; /* messages: begun, ended, ended well */
  uint64_t one_sided;              /* puts and gets that ended well */
  uint64_t wrong;                  /* wrong bytes, and events that must not happen */
  struct pwi_region *shared;       /* the peer reads and writes it; a new one for each link */
  struct pwi_remote remote;
  char *into;       /* destination of bodies that are received into memory */
  uint8_t expected; /* expected byte of the arriving body */
  uint64_t turn;    /* chooses how bodies are received: in pieces, into memory, dropped */
};

/* `key` is the text of a key, for STREAM_TLS. */
pawl_status stream_open(struct stream *stream, enum stream_way way, const char *key);
void stream_close(struct stream *stream);

/* Polls until the condition holds; returns false after KIT_HANG_MS. */
bool stream_poll_until(struct stream *stream, bool (*is_so)(const struct stream *stream));

/* Begins a new link and forgets the previous one. */
pawl_status stream_connect(struct stream *stream, const char *address);

/* Starts the peer as a process: this program with other arguments. It listens, streams, and ends only by
 * being killed. Returns its id when it listens. */
pid_t stream_start_peer(enum stream_way way, const char *address, const char *key, bool from_region);

/* The main function of such a process. Does not return if the arguments ask for a peer. */
void stream_be_peer_if_asked(int count, char **arguments);

#endif
