/* The membership: the senders that may push, and the members of each group. docs/protocol.md#retirement
 * explains it.
 *
 * A *sender* is one incarnation of a client. The manager gives it an id that is never reused, and adds it to
 * the membership before any other node hears of it. A shard refuses every sender that is not on its
 * membership, for ever. So a client that was declared dead can do no harm, whenever its last messages arrive.
 * The clocks of a *retired* sender are kept while the membership lists it: until nothing of it is unsettled,
 * or its client has learnt from the clocks which tasks took effect, or an hour has passed.
 *
 * The members of a group are senders. Barriers and ticks wait for all of them, and for nobody else.
 *
 * The number of the membership rises with each change, and every message carries the number that its sender
 * knows. A membership is a plain value, like the catalogue. Only the manager changes it. Other nodes receive
 * it whole, or as the changes since a number that they have (protocol/membership_delta.h). Threads: belongs
 * to one thread at a time.
 */
#ifndef PWI_PROTOCOL_MEMBERSHIP_H
#define PWI_PROTOCOL_MEMBERSHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "protocol/catalogue.h"
#include "store/clock.h" /* struct pwi_sender */

#define PWI_MEMBERSHIP_MAX (1 << 20) /* senders, live and retired */
#define PWI_JOB_MAX 63               /* characters of a job's name */
#define PWI_SITE_MAX 64              /* characters of the label of a host or a rack */

struct pwi_membership_sender {
  struct pwi_sender sender;
  bool retired;              /* it may not push any more; its clocks are still kept */
  char job[PWI_JOB_MAX + 1]; /* a word of letters, digits, '.', '_' and '-'; for people and for groups */
  uint8_t key[32];           /* public key that verifies its proofs (protocol/proof.h) */
  char address[256];         /* where it serves vectors that it opened locally; "": it serves none */
  /* Labels of its machine and of its rack, of printable characters without blanks; "": not known. Graphs of
   * peers and people use them. */
  char host[PWI_SITE_MAX + 1];
  char rack[PWI_SITE_MAX + 1];
};

struct pwi_membership_member {
  struct pwi_vector_id group;
  struct pwi_sender sender; /* on the membership and live */
  bool founder;             /* joined before the group was complete: begins at tick 0, whatever the others'
                               ticks */
};

struct pwi_membership_group {
  struct pwi_vector_id group;
  uint32_t size; /* no barrier of the group opens before it had this many members at once */
  bool complete; /* it had `size` members at once; from then on members may come and go */

  /* The number of the membership in which a member last joined, left or was retired. All nodes that know this
   * number of a group know the same members. 0: not since the manager was started from a state of an earlier
   * version, which did not record it. */
  uint64_t changed;
};

/* Senders by ascending id; groups by ascending id; members by group, then sender. Read-only for callers. A
 * struct of zeros is an empty membership with number 0. */
struct pwi_membership {
  uint64_t number;
  uint64_t last; /* the highest id that was ever on it; this membership knows nothing of higher ids */
  struct pwi_membership_sender *senders;
  size_t sender_count, sender_room;
  struct pwi_membership_group *groups;
  size_t group_count, group_room;
  struct pwi_membership_member *members;
  size_t member_count, member_room;
};

void pwi_membership_fini(struct pwi_membership *membership);

/* Returns true for the label of a host or a rack: at most PWI_SITE_MAX printable characters, no blanks. */
bool pwi_site_is_sound(const char *label);

const struct pwi_membership_sender *pwi_membership_find(const struct pwi_membership *membership,
                                                        struct pwi_sender sender);
/* Both return false for a sender that is not listed. */
bool pwi_membership_is_live(const struct pwi_membership *membership, struct pwi_sender sender);
bool pwi_membership_is_retired(const struct pwi_membership *membership, struct pwi_sender sender);

/* Returns true if the sender was once on the membership and is no longer, so that nothing of it need be kept.
 * Returns false for a sender that is newer than this membership: a member of a chain may receive pushes of a
 * sender before it hears of that sender. */
bool pwi_membership_has_forgotten(const struct pwi_membership *membership, struct pwi_sender sender);
const struct pwi_membership_group *pwi_membership_group(const struct pwi_membership *membership,
                                                        struct pwi_vector_id group);

/* The members of a group, a slice of membership->members. */
const struct pwi_membership_member *pwi_membership_members(const struct pwi_membership *membership,
                                                           struct pwi_vector_id group, size_t *count_out);

bool pwi_membership_is_member(const struct pwi_membership *membership, struct pwi_vector_id group,
                              struct pwi_sender sender);

/* All changes raise the number by one if they succeed, and change nothing if they fail. */

/* Adds a sender whose id is higher than any before. PAWL_INVALID, PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_membership_add(struct pwi_membership *membership,
                                             const struct pwi_membership_sender *sender);

/* The sender may not push any more and leaves all groups; its clocks are kept. PAWL_NOT_FOUND (also if it is
 * retired already). */
PAWL_MUST_USE pawl_status pwi_membership_retire(struct pwi_membership *membership, struct pwi_sender sender);

/* Removes retired senders, given by ascending id: their clocks need not be kept any more. The number rises by
 * one for each. Takes one pass over the membership for any number of senders. PAWL_NOT_FOUND (also if one of
 * them is live). */
PAWL_MUST_USE pawl_status pwi_membership_forget(struct pwi_membership *membership, const struct pwi_sender *gone,
                                                size_t count);

/* Sets the address at which a sender can be reached. PAWL_NOT_FOUND, PAWL_INVALID. */
PAWL_MUST_USE pawl_status pwi_membership_set_address(struct pwi_membership *membership, struct pwi_sender sender,
                                                     const char *address);

/* Adds a live sender to a group. A new group is created with size `size`. A `size` of 0 accepts the size of
 * the group, or 1 if it is new. When the number of members reaches the size, the group becomes complete.
 * PAWL_EXISTS (already a member), PAWL_MISMATCH (the group has another size), PAWL_NOT_FOUND (no such live
 * sender), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_membership_join(struct pwi_membership *membership, struct pwi_vector_id group,
                                              uint32_t size, struct pwi_sender sender);

/* PAWL_NOT_FOUND. */
PAWL_MUST_USE pawl_status pwi_membership_leave(struct pwi_membership *membership, struct pwi_vector_id group,
                                               struct pwi_sender sender);

/* The encoded form, with base/cursor.h: u8 version (2), u64 number, u64 last; u32 count and for each sender
 * u64 id, u8 retired, text job, text address, 32 bytes key, text host, text rack; u32 count and for each
 * group u64 id, u32 size, u8 complete, u64 changed; u32 count and for each member u64 group, u64 sender, u8
 * founder. The decoder also reads version 1, in which hosts, racks and `changed` are missing. */
struct pwi_writer;
void pwi_membership_encode(const struct pwi_membership *membership, struct pwi_writer *writer);

/* Encodes the membership without retired senders, for nodes that came after these were retired and cannot
 * have clocks of them. */
void pwi_membership_encode_live(const struct pwi_membership *membership, struct pwi_writer *writer);

/* Accepts any bytes. PAWL_TRUNCATED, PAWL_UNSUPPORTED (version), PAWL_CORRUPT, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_membership_decode(const void *bytes, size_t size, struct pwi_membership *membership_out);

/* For receivers of memberships: decodes into a new membership in `*newer_out`; NULL if it is older than
 * number `known`. Free it with pwi_membership_destroy, which accepts NULL. Errors as
 * pwi_membership_decode. */
PAWL_MUST_USE pawl_status pwi_membership_receive(const void *bytes, size_t size, uint64_t known,
                                                 struct pwi_membership **newer_out);
void pwi_membership_destroy(struct pwi_membership *membership);

#endif
