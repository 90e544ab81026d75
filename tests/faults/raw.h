/* A peer that does as it pleases: a socket on which a test writes whatever bytes it wants to a listening node.
 *
 * It blocks, for at most KIT_HANG_MS. It can do all that an honest node does, in the same bytes, up to any point.
 */
#ifndef PWI_TESTS_FAULTS_RAW_H
#define PWI_TESTS_FAULTS_RAW_H

#include <openssl/ssl.h>

#include "kit.h"
#include "net/tcp/frame.h"

struct raw {
  int socket;
  SSL_CTX *context; /* NULL: plain */
  SSL *ssl;
  uint8_t challenge[PWI_CHALLENGE_SIZE]; /* of the node, once it has opened */
};

/* Connect to tcp://127.0.0.1:port, plain. `source` is the last byte of the address 127.0.0.x to come from, 0: any. */
bool raw_connect(struct raw *raw, const char *address, unsigned source);

/* How it proves who it is in TLS; members may be NULL. */
struct raw_proof {
  const char *key;         /* the text of a key, */
  const char *key_claimed; /* and of another whose name is given instead of its own */
  const char *certificate; /* files */
  const char *private_key;
};

/* Connect with TLS. True once the handshake is over on our side: the node may still object. */
bool raw_connect_tls(struct raw *raw, const char *address, const struct raw_proof *proof);
void raw_close(struct raw *raw);

/* False if the connection is gone. */
bool raw_send(struct raw *raw, const void *bytes, size_t size);
bool raw_receive(struct raw *raw, void *bytes, size_t size); /* exactly so many */

/* Read and forget until the node closes. False if it did not within the bound. */
bool raw_is_closed(struct raw *raw);

/* Our opening, with these versions; then the node's is read. */
bool raw_open(struct raw *raw, uint16_t lowest, uint16_t highest);

/* Any frame; `claimed` is the length of body that is written into it, whatever is then sent. */
bool raw_frame(struct raw *raw, enum pwi_frame_kind kind, const void *fields, uint64_t claimed, const void *body,
               size_t size);

/* A whole frame of the node's, heartbeats skipped. The body must fit. */
bool raw_next(struct raw *raw, struct pwi_frame *frame_out, uint8_t fields[PWI_FRAME_FIELDS_MAX], void *body,
              size_t capacity);

/* All that is needed for the node to say link_up: opening, hello, an offer without a data plane. */
bool raw_come_up(struct raw *raw);

#endif
