/* The framing of the byte stream of a link: docs/wire-format.md, "Link framing".
 *
 * Each side first sends an opening of 32 bytes: a magic number, the supported versions of the framing, and a
 * challenge that the hello of the peer must repeat, so that a recorded hello is useless. Frames follow. A
 * frame has a prefix of 16 bytes, fields whose length depends on its kind, a body, and zeros up to a multiple
 * of 16, so that everything in the stream stays aligned. The prefix contains a checksum of itself, so that a
 * stream out of step is detected at once, before a length is used.
 *
 * All functions are pure.
 */
#ifndef PWI_NET_TCP_FRAME_H
#define PWI_NET_TCP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#define PWI_FRAME_LOWEST 1 /* versions of the framing that this build speaks */
#define PWI_FRAME_VERSION 2
#define PWI_FRAME_HOLDS 2 /* the first version with HOLD */
#define PWI_OPENING_SIZE 32
#define PWI_CHALLENGE_SIZE 16
#define PWI_FRAME_PREFIX 16
#define PWI_FRAME_FIELDS_MAX 64
#define PWI_FRAME_HEAD_MAX (PWI_FRAME_PREFIX + PWI_FRAME_FIELDS_MAX)
#define PWI_FRAME_ALIGN 16

/* X(name, number, bytes of fields) */
#define PWI_FRAME_MAP(X)                                                                                               \
  X(HELLO, 1, 16)   /* challenge of the peer; body: greeting */                                                        \
  X(PLANE, 2, 48)   /* setting up the data plane; body: a worker's address */                                          \
  X(MESSAGE, 3, 64) /* head of a message; body: its body */                                                            \
  X(PING, 4, 0)                                                                                                        \
  X(BYE, 5, 16)     /* status, messages sent on the data plane: the last frame of a link */                            \
  X(PUT, 6, 32)     /* region, offset, notification; body: data */                                                     \
  X(GET, 7, 32)     /* region, offset, length, number of the request */                                                \
  X(GOT, 8, 16)     /* number of the request; body: data */                                                            \
  X(FENCE, 9, 16)   /* number of the request */                                                                        \
  X(FENCED, 10, 16) /* number of the request */                                                                        \
  X(HOLD, 11, 16)   /* u32: 1 holds the data lane of the receiver, 0 ends that; 2 ends the hold of the receiver */

enum pwi_frame_kind {
#define PWI_FRAME_ENUM(name, number, fields) PWI_FRAME_##name = (number),
  PWI_FRAME_MAP(PWI_FRAME_ENUM)
#undef PWI_FRAME_ENUM
};

struct pwi_frame {
  enum pwi_frame_kind kind;
  uint64_t body_size;
};

/* The bytes of the fields of a kind, which must be a known one. */
size_t pwi_frame_fields(enum pwi_frame_kind kind);

/* The number of zeros after a body. */
static inline size_t pwi_frame_padding(uint64_t body_size) {
  return (size_t)(-body_size & (uint64_t)(PWI_FRAME_ALIGN - 1));
}

/* Writes the 16 bytes of a prefix. */
void pwi_frame_write(uint8_t *prefix, enum pwi_frame_kind kind, uint64_t body_size);

/* Parses a prefix. PAWL_CORRUPT if it is invalid; PAWL_TOO_LARGE if the body exceeds `body_max` or the
 * maximum of its kind. */
pawl_status pwi_frame_read(const uint8_t *prefix, uint64_t body_max, struct pwi_frame *frame_out);

struct pwi_opening {
  uint16_t lowest, highest; /* supported versions of the framing */
  uint8_t challenge[PWI_CHALLENGE_SIZE];
};

void pwi_opening_write(uint8_t *bytes, const struct pwi_opening *opening);

/* Parses the opening of a peer. PAWL_LINK_PROTOCOL if it is invalid. */
pawl_status pwi_opening_read(const uint8_t *bytes, struct pwi_opening *opening_out);

/* The highest version that both support. PAWL_LINK_VERSION if there is none. */
pawl_status pwi_opening_agree(const struct pwi_opening *ours, const struct pwi_opening *theirs, uint16_t *version_out);

#endif
