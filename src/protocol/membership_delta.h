/* Changes of a membership as single steps, and their encoded form.
 *
 * Each step raises the number of the membership by one. A node that has the membership of some number and
 * applies the following steps gets the membership of the last one. So the manager need not send a membership
 * of thousands to all nodes whenever a client comes or goes. A *delta* is the sequence of steps from one
 * number to another.
 *
 * Threads: as the membership.
 */
#ifndef PWI_PROTOCOL_MEMBERSHIP_DELTA_H
#define PWI_PROTOCOL_MEMBERSHIP_DELTA_H

#include <stdint.h>

#include <pawl/status.h>

#include "protocol/membership.h"

/* X(name, number, fields). Numbers are part of the encoded form. */
#define PWI_MEMBERSHIP_STEP_MAP(X)                                                                                     \
  X(ADD, 1, "a live sender, as in a membership")                                                                       \
  X(RETIRE, 2, "u64 sender")                                                                                           \
  X(FORGET, 3, "u64 sender; it may be unlisted")                                                                       \
  X(ADDRESS, 4, "u64 sender, text address; it may be unlisted")                                                        \
  X(JOIN, 5, "u64 sender, u64 group, u32 size")                                                                        \
  X(LEAVE, 6, "u64 sender, u64 group")

enum pwi_membership_step_kind {
#define PWI_MEMBERSHIP_STEP_ENUM(name, number, fields) PWI_MEMBERSHIP_STEP_##name = (number),
  PWI_MEMBERSHIP_STEP_MAP(PWI_MEMBERSHIP_STEP_ENUM)
#undef PWI_MEMBERSHIP_STEP_ENUM
};

struct pwi_membership_step {
  enum pwi_membership_step_kind kind;
  struct pwi_membership_sender sender; /* ADD: all fields; ADDRESS: id and address; otherwise the id only */
  struct pwi_vector_id group;          /* JOIN and LEAVE */
  uint32_t size;                       /* JOIN */
};

/* Applies a step, as the function of that name in protocol/membership.h. FORGET and ADDRESS of a sender that
 * is not listed change only the number: the membership may have been received without retired senders
 * (pwi_membership_encode_live). PAWL_CORRUPT if the step cannot be applied. */
PAWL_MUST_USE pawl_status pwi_membership_step(struct pwi_membership *membership,
                                              const struct pwi_membership_step *step);

/* Layout: u8 kind, then the fields listed above. */
void pwi_membership_step_encode(const struct pwi_membership_step *step, struct pwi_writer *writer);

/* --- deltas --------------------------------------------------------------------------------------------- */

/* Writes the beginning of a delta: u8 version (2), u64 number before the first step, u32 count. The steps
 * follow. Version 1, which is still read, has senders without host and rack. */
void pwi_delta_begin(uint64_t since, uint32_t count, struct pwi_writer *writer);

/* Applies the steps of a delta that the membership does not have yet. `forgot`, which may be NULL, is called
 * for each sender that leaves the membership.
 *
 * Accepts any bytes. PAWL_TRUNCATED, PAWL_UNSUPPORTED or PAWL_CORRUPT if they are not a delta or begin after
 * the membership's number; nothing has changed then. If a step cannot be applied (PAWL_CORRUPT) or memory is
 * lacking (PAWL_NO_MEMORY), the steps before it were applied, and the membership's number shows how many.
 */
PAWL_MUST_USE pawl_status pwi_membership_apply_delta(struct pwi_membership *membership, const void *bytes, size_t size,
                                                     void (*forgot)(void *context, struct pwi_sender sender),
                                                     void *context);

/* Of protocol/membership.c, for the encoded form of steps. A plain sender has no host and rack. */
struct pwi_reader;
void pwi_membership_write_sender(struct pwi_writer *writer, const struct pwi_membership_sender *sender);
void pwi_membership_read_sender(struct pwi_reader *reader, bool is_plain, struct pwi_membership_sender *sender);

#endif
