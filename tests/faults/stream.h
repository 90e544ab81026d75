/* Two nodes that send each other 1 MB messages without pause, and read and write each other's memory beside it.
 *
 * The same actor runs on both sides. It keeps a few messages, a put and a get under way all the time, checks what
 * arrives, and counts what has begun and ended, so that whoever survives can say whether anything was lost.
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
  bool from_region;                 /* which of both is sent from */

  struct pwi_link link; /* the current one */
  bool is_up, is_down;
  pawl_status why;
  size_t outstanding; /* operations that have not ended */
  size_t outstanding_at_down;
  uint64_t begun, ended, received; /* messages: begun, ended, ended well */
  uint64_t one_sided;              /* puts and gets that ended well */
  uint64_t wrong;                  /* bytes that were not what was sent, and events that must not be */
  struct pwi_region *shared;       /* the peer reads and writes it; a new one for each link */
  struct pwi_remote remote;
  char *into;       /* bodies that are read to a place */
  uint8_t expected; /* of the body that is arriving, */
  uint64_t turn;    /* and how bodies are taken: in pieces, to a place, dropped */
};

/* `key` is a key's text, for STREAM_TLS. */
pawl_status stream_open(struct stream *stream, enum stream_way way, const char *key);
void stream_close(struct stream *stream);

/* Poll until the condition holds; false if KIT_HANG_MS pass. */
bool stream_poll_until(struct stream *stream, bool (*is_so)(const struct stream *stream));

/* Begin a link, forgetting the one before. */
pawl_status stream_connect(struct stream *stream, const char *address);

/* The peer as a process of its own: this program again, with other arguments. It listens, streams, and ends only by
 * being killed. Returns its id once it listens. */
pid_t stream_start_peer(enum stream_way way, const char *address, const char *key, bool from_region);

/* main() of such a process. True if the arguments ask for one; it does not return then. */
void stream_be_peer_if_asked(int count, char **arguments);

#endif
