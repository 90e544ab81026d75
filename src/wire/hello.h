/* Hello: the first data that a node sends on a link, before any message.
 *
 * Each side sends one hello. It tells the peer who it is, and both sides compute the same protocol version
 * and features for the link. docs/wire-format.md is the specification; in short, a hello is
 *
 *   magic     u32  "PAWH"
 *   lowest    u8   the versions of the protocol that the node speaks, from
 *   highest   u8   to
 *   size      u16  bytes of the whole hello
 *   fields         one after another: tag u16, length u16, that many bytes; tags ascend
 *
 * This frame is the same in every version. Later versions may add fields with new tags, which older nodes
 * skip. The fields of version 1 are always present and never change.
 *
 * The receiver of the hello decides who may join, whether clusters match and which roles may talk to each
 * other.
 *
 * Everything here is pure: no allocation, no state.
 */
#ifndef PWI_WIRE_HELLO_H
#define PWI_WIRE_HELLO_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

/* The protocol versions that this build supports. */
#define PWI_PROTOCOL_LOWEST 1
#define PWI_PROTOCOL_HIGHEST 1

#define PWI_HELLO_MAGIC UINT32_C(0x48574150) /* "PAWH" */
#define PWI_HELLO_MAX 1024                   /* bytes */
#define PWI_HELLO_SOFTWARE_MAX 31            /* characters */
#define PWI_HELLO_HOST_MAX 255
#define PWI_HELLO_MISMATCH_MAX 256 /* bytes that hold any text of pwi_hello_mismatch */

/* Numbers are never reused. A hello of a newer version may contain a role that is not listed. */
enum pwi_hello_role {
  PWI_ROLE_MANAGER = 1,
  PWI_ROLE_SERVER = 2,
  PWI_ROLE_CLIENT = 3,
  PWI_ROLE_SCHEDULER = 4,
  PWI_ROLE_RELAY = 5,
  PWI_ROLE_PEER = 6,
};

/* "client" for a role that is not listed: the receiver serves it as one. */
const char *pwi_hello_role_text(uint8_t role);

/* Features. Bit c, for c from 1 to 7: the node decodes values in codec c of wire/values.h, in requests and
 * answers. A node with any of these features also supports requests that list the codecs for the answer, and
 * filters on pulls. */
#define PWI_FEATURE_CODECS UINT64_C(0xfe)

/* Norms of one column, and counts of non-zero values. */
#define PWI_FEATURE_COLUMNS UINT64_C(0x100)

/* Group pushes that return rows (pawl_group_pushpull). */
#define PWI_FEATURE_AGGREGATE UINT64_C(0x200)

/* Pushes with an operand (<pawl/function.h>). */
#define PWI_FEATURE_OPERAND UINT64_C(0x400)

/* Aggregates of relays: a server takes them, and a relay passes them on. */
#define PWI_FEATURE_RELAYS UINT64_C(0x1000)

/* Row functions (pawl_vector_run). */
#define PWI_FEATURE_ROW_FUNCTIONS UINT64_C(0x4000)

/* Pulls of groups through relays: a server reads for the members that a relay names, and answers carry versions of
 * arcs. */
#define PWI_FEATURE_RELAYED_PULLS UINT64_C(0x8000)

/* Section READ_FIRST in requests. */
#define PWI_FEATURE_READ_FIRST UINT64_C(0x10000)

/* A client may state another priority while its link is up. */
#define PWI_FEATURE_PRIORITY UINT64_C(0x20000)

/* Priorities of clients: higher ones go first (docs/priorities.md). */
#define PWI_PRIORITY_LOWEST 1
#define PWI_PRIORITY_HIGHEST 9
#define PWI_PRIORITY_USUAL 5 /* of a client that states none */

struct pwi_hello {
  uint8_t lowest; /* versions; 0 < lowest <= highest */
  uint8_t highest;
  uint8_t role;         /* of enum pwi_hello_role; not 0 */
  uint8_t priority;     /* of a client's work; 0: not stated. A hello of a newer version may state any number */
  uint64_t cluster;     /* 0: not known yet */
  uint64_t node;        /* 0: not assigned yet */
  uint64_t incarnation; /* increases whenever the node starts */
  uint64_t features;    /* a set of PWI_FEATURE_… bits */
  /* Both strings are printable ASCII without spaces, so that they can be logged; they may be empty. */
  char software[PWI_HELLO_SOFTWARE_MAX + 1]; /* version of the software, such as "0.1.0", for display */
  char host[PWI_HELLO_HOST_MAX + 1];         /* label of the machine, for placement: nodes with equal labels
                                                may fail together */
};

/* A hello of zeros with the protocol versions and the software version of this build. */
void pwi_hello_init(struct pwi_hello *hello);

/* Encodes a hello into `buffer`. PAWL_INVALID for invalid versions, role or strings, PAWL_TOO_LARGE if it
 * needs more than `capacity` bytes; PWI_HELLO_MAX always suffices. */
PAWL_MUST_USE pawl_status pwi_hello_encode(const struct pwi_hello *hello, void *buffer, size_t capacity,
                                           size_t *size_out);

/* Decodes a hello from exactly `size` untrusted bytes.
 *   PAWL_LINK_PROTOCOL  not a hello
 *   PAWL_TOO_LARGE      beyond PWI_HELLO_MAX
 *   PAWL_TRUNCATED      the data ends too early
 *   PAWL_CORRUPT        any other fault */
PAWL_MUST_USE pawl_status pwi_hello_decode(const void *data, size_t size, struct pwi_hello *hello_out);

/* Computes the highest version that both sides support, and the features that both have. The result is the
 * same on both sides. PAWL_LINK_VERSION if there is no common version. */
PAWL_MUST_USE pawl_status pwi_hello_negotiate(const struct pwi_hello *ours, const struct pwi_hello *theirs,
                                              uint8_t *version_out, uint64_t *features_out);

/* Describes a failed negotiation for the log: both version ranges, and the side that needs an update.
 * Truncated to `size`. */
void pwi_hello_mismatch(const struct pwi_hello *ours, const struct pwi_hello *theirs, char *text, size_t size);

#endif
