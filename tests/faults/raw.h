/* A raw peer: a socket on which a test writes any bytes to a listening node.
 *
 * It blocks for at most KIT_HANG_MS. It can do everything that an honest node does, with the same bytes, up
 * to any point.
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
  uint8_t challenge[PWI_CHALLENGE_SIZE]; /* challenge of the node, after its opening */
};

/* Connects to tcp://127.0.0.1:port, plain. `source` is the last byte of the source address 127.0.0.x; 0:
 * any. */
bool raw_connect(struct raw *raw, const char *address, unsigned source);

/* The identity that it proves in TLS; members may be NULL. */
struct raw_proof {
  const char *key;         /* text of the key */
  const char *key_claimed; /* text of a key whose name is sent instead of the key's own */
  const char *certificate; /* files */
  const char *private_key;
};

/* Connects with TLS. Returns true when the handshake is complete on this side; the node may still object. */
bool raw_connect_tls(struct raw *raw, const char *address, const struct raw_proof *proof);
void raw_close(struct raw *raw);

/* Returns false if the connection is gone. */
bool raw_send(struct raw *raw, const void *bytes, size_t size);
bool raw_receive(struct raw *raw, void *bytes, size_t size); /* exactly this many bytes */

/* Reads and discards until the node closes. Returns false if it did not within the limit. */
bool raw_is_closed(struct raw *raw);

/* Sends an opening with these versions, and reads the node's. */
bool raw_open(struct raw *raw, uint16_t lowest, uint16_t highest);

/* Sends any frame; `claimed` is the length of the body in the frame, whatever is sent. */
bool raw_frame(struct raw *raw, enum pwi_frame_kind kind, const void *fields, uint64_t claimed, const void *body,
               size_t size);

/* Receives a whole frame of the node, except heartbeats. The body must fit. */
bool raw_next(struct raw *raw, struct pwi_frame *frame_out, uint8_t fields[PWI_FRAME_FIELDS_MAX], void *body,
              size_t capacity);

/* Does everything needed for the node's link_up: opening, hello, an offer without a data plane. */
bool raw_come_up(struct raw *raw);
bool raw_come_up_as(struct raw *raw, uint16_t version); /* of the framing */

#endif
