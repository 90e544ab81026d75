/* Hello: what a node says when a link begins, before any message.
 *
 * Each side sends one hello. From the other's it learns who that is, and both come to the same result about the version
 * of the protocol and the features that this link will use. docs/wire-format.md is the specification; in short, a hello
 * is
 *
 *   magic     u32  "PAWH"
 *   lowest    u8   the versions of the protocol that the node speaks, from
 *   highest   u8   to
 *   size      u16  bytes of the whole hello
 *   fields         one after another: tag u16, length u16, that many bytes; tags ascend
 *
 * and this frame is the same in every version, for ever. A neighbouring version adds fields with tags of their own,
 * which are skipped by those who do not know them; the fields of version 1 are always there and never change.
 *
 * Who may join, whether clusters match and which role may talk to which is for the receiver of the hello to decide.
 *
 * Everything here is pure: no allocation, no state.
 */
#ifndef PWI_WIRE_HELLO_H
#define PWI_WIRE_HELLO_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

/* The versions of the protocol that this pawl speaks. */
#define PWI_PROTOCOL_LOWEST 1
#define PWI_PROTOCOL_HIGHEST 1

#define PWI_HELLO_MAGIC UINT32_C(0x48574150) /* "PAWH" */
#define PWI_HELLO_MAX 1024                   /* bytes */
#define PWI_HELLO_SOFTWARE_MAX 31            /* characters */
#define PWI_HELLO_HOST_MAX 255
#define PWI_HELLO_MISMATCH_MAX 256 /* bytes that hold any text of pwi_hello_mismatch */

/* Numbers are never reused. A hello may bring one that is not listed: a newer version may have more. */
enum pwi_hello_role {
  PWI_ROLE_MANAGER = 1,
  PWI_ROLE_SERVER = 2,
  PWI_ROLE_CLIENT = 3,
  PWI_ROLE_SCHEDULER = 4,
  PWI_ROLE_RELAY = 5,
  PWI_ROLE_PEER = 6,
};

/* Features. Bit c, for c from 1 to 7: values that come in codec c of wire/values.h are understood, in requests and in
 * answers. Whoever understands any of them also understands requests that say which they take back, and filters that are
 * asked for on pulls. */
#define PWI_FEATURE_CODECS UINT64_C(0xfe)

/* Sums over one column of rows, and counts of values that are not zero. */
#define PWI_FEATURE_COLUMNS UINT64_C(0x100)

/* Pushes of a group that bring rows back. */
#define PWI_FEATURE_AGGREGATE UINT64_C(0x200)

struct pwi_hello {
  uint8_t lowest; /* versions; 0 < lowest <= highest */
  uint8_t highest;
  uint8_t role;         /* of enum pwi_hello_role; not 0 */
  uint64_t cluster;     /* 0: knows none yet */
  uint64_t node;        /* 0: has none yet */
  uint64_t incarnation; /* rises whenever the node starts */
  uint64_t features;    /* a set of PWI_FEATURE_… bits */
  /* Printable ASCII without spaces, so that they can be logged as they are; may be empty. */
  char software[PWI_HELLO_SOFTWARE_MAX + 1]; /* such as "0.1.0", for people */
  char host[PWI_HELLO_HOST_MAX + 1];         /* where it runs, for placement: equal labels die together */
};

/* A hello of zeros, but with the versions that this pawl speaks and its own version text. */
void pwi_hello_init(struct pwi_hello *hello);

/* Write a hello to `buffer`. PAWL_INVALID for versions, a role or a text that no hello can carry, PAWL_TOO_LARGE if it
 * takes more than `capacity` bytes; PWI_HELLO_MAX is always enough. */
PAWL_MUST_USE pawl_status pwi_hello_encode(const struct pwi_hello *hello, void *buffer, size_t capacity,
                                           size_t *size_out);

/* Read a hello from exactly `size` bytes, which may be anything.
 *   PAWL_LINK_PROTOCOL  it is none
 *   PAWL_TOO_LARGE      beyond PWI_HELLO_MAX
 *   PAWL_TRUNCATED      it ends too early
 *   PAWL_CORRUPT        any other fault */
PAWL_MUST_USE pawl_status pwi_hello_decode(const void *data, size_t size, struct pwi_hello *hello_out);

/* The highest version that both speak, and the features that both have. Both sides get the same, whoever is `ours`.
 * PAWL_LINK_VERSION if there is no common version. */
PAWL_MUST_USE pawl_status pwi_hello_negotiate(const struct pwi_hello *ours, const struct pwi_hello *theirs,
                                              uint8_t *version_out, uint64_t *features_out);

/* What to log about a failed negotiation: both ranges, and which side has to be brought up to date. Cut to `size`. */
void pwi_hello_mismatch(const struct pwi_hello *ours, const struct pwi_hello *theirs, char *text, size_t size);

#endif
