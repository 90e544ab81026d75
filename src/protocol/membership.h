/* The membership: who may push, and who belongs to which group (design: "Clocks, order, exactly once").
 *
 * A *sender* is one incarnation of one client. The manager gives it an id that is never used again, and puts it on the
 * membership before anybody hears of it. A shard refuses every sender that is not on its membership, for ever: so a client that
 * was taken for dead can do no harm, whenever its last messages arrive. The clocks of a *retired* sender are kept as
 * long as the membership lists it as such: until it is known that nothing of it is unsettled, or its client, should it be alive
 * after all, has learnt from them what took effect, or an hour.
 *
 * A group's members are senders. Barriers and ticks wait for all of them, and for nobody else.
 *
 * The membership's number rises with each change, and every message carries the number its sender knows. Like the
 * catalogue it is a plain value that the manager changes and everybody else receives: whole, or as the changes since a number
 * that they have (protocol/membership_delta.h). Threads: belongs to one thread at a time.
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

struct pwi_membership_sender {
  struct pwi_sender sender;
  bool retired;              /* its clocks are still kept */
  char job[PWI_JOB_MAX + 1]; /* a word of letters, digits, '.', '_' and '-'; for people and for groups */
  uint8_t key[32];           /* by which what it shows of itself is checked (protocol/proof.h) */
  char address[256];         /* where it serves vectors that it opened locally; "" if nowhere */
};

struct pwi_membership_member {
  struct pwi_vector_id group;
  struct pwi_sender sender; /* on the membership, and not retired */
  bool founder;             /* joined before the group was complete: begins at tick 0, whoever else came first */
};

struct pwi_membership_group {
  struct pwi_vector_id group;
  uint32_t size; /* nobody passes a barrier of the group before it has had so many members at once */
  bool complete; /* it has had: from then on members may come and go */
};

/* Senders by rising id; groups by rising id; members by group, then sender. Read-only for callers. A struct of zeros is an
 * empty membership of number 0. */
struct pwi_membership {
  uint64_t number;
  uint64_t last; /* the highest id that was ever on it: of higher ones this membership knows nothing */
  struct pwi_membership_sender *senders;
  size_t sender_count, sender_room;
  struct pwi_membership_group *groups;
  size_t group_count, group_room;
  struct pwi_membership_member *members;
  size_t member_count, member_room;
};

void pwi_membership_fini(struct pwi_membership *membership);

const struct pwi_membership_sender *pwi_membership_find(const struct pwi_membership *membership,
                                                        struct pwi_sender sender);
bool pwi_membership_is_live(const struct pwi_membership *membership,
                            struct pwi_sender sender); /* on it, and not retired */
bool pwi_membership_is_retired(const struct pwi_membership *membership,
                               struct pwi_sender sender); /* on it, clocks kept */

/* It was on the membership once and is not any more: nothing of it need be kept. Of a sender that came later than this membership it
 * is not true: a member of a chain may be sent the pushes of one that it has not heard of yet. */
bool pwi_membership_has_forgotten(const struct pwi_membership *membership, struct pwi_sender sender);
const struct pwi_membership_group *pwi_membership_group(const struct pwi_membership *membership,
                                                        struct pwi_vector_id group);

/* The members of a group: a slice of membership->members. */
const struct pwi_membership_member *pwi_membership_members(const struct pwi_membership *membership,
                                                           struct pwi_vector_id group, size_t *count_out);

/* All changes raise the number by one if they succeed, and leave everything as it was if they fail. */

/* A new sender, whose id is higher than any before. PAWL_INVALID, PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_membership_add(struct pwi_membership *membership,
                                             const struct pwi_membership_sender *sender);

/* It may push no more, and leaves all groups; its clocks are kept. PAWL_NOT_FOUND (also if it is retired already). */
PAWL_MUST_USE pawl_status pwi_membership_retire(struct pwi_membership *membership, struct pwi_sender sender);

/* The clocks of retired senders need not be kept any more. They are named by rising id, and the number rises by one for each: it
 * takes one pass over the membership, however many there are. PAWL_NOT_FOUND (also if one of them is live). */
PAWL_MUST_USE pawl_status pwi_membership_forget(struct pwi_membership *membership, const struct pwi_sender *gone,
                                                size_t count);

/* Where a sender can be reached. PAWL_NOT_FOUND, PAWL_INVALID. */
PAWL_MUST_USE pawl_status pwi_membership_set_address(struct pwi_membership *membership, struct pwi_sender sender,
                                                     const char *address);

/* A live sender joins a group, which is made if it is new: `size` then becomes its size. Joining twice is PAWL_EXISTS; a
 * size other than the group's is PAWL_MISMATCH; 0 takes the group's as it is, 1 if it is new. PAWL_NOT_FOUND (no such
 * live sender), PAWL_NO_MEMORY. A group whose member count reaches its size becomes complete. */
PAWL_MUST_USE pawl_status pwi_membership_join(struct pwi_membership *membership, struct pwi_vector_id group,
                                              uint32_t size, struct pwi_sender sender);

/* PAWL_NOT_FOUND. */
PAWL_MUST_USE pawl_status pwi_membership_leave(struct pwi_membership *membership, struct pwi_vector_id group,
                                               struct pwi_sender sender);

/* As bytes, with base/cursor.h: u8 version (1), u64 number, u64 last; u32 count and per sender u64 id, u8 retired, text job,
 * text address, 32 bytes key; u32 count and per group u64 id, u32 size, u8 complete; u32 count and per member u64 group, u64 sender, u8
 * founder. */
struct pwi_writer;
void pwi_membership_encode(const struct pwi_membership *membership, struct pwi_writer *writer);

/* The same without retired senders: for those who have come after these went, and cannot have clocks of theirs. */
void pwi_membership_encode_live(const struct pwi_membership *membership, struct pwi_writer *writer);

/* Safe on any bytes. PAWL_TRUNCATED, PAWL_UNSUPPORTED (version), PAWL_CORRUPT, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_membership_decode(const void *bytes, size_t size, struct pwi_membership *membership_out);

/* For those who receive memberships: a membership of its own in `*newer_out`, or NULL there if it is older than number `known`. Freed
 * with pwi_membership_destroy, for which NULL is fine. Errors as decode. */
PAWL_MUST_USE pawl_status pwi_membership_receive(const void *bytes, size_t size, uint64_t known,
                                                 struct pwi_membership **newer_out);
void pwi_membership_destroy(struct pwi_membership *membership);

#endif
