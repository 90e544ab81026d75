/* Changes of a membership, one by one, and as bytes.
 *
 * Whoever has the membership of some number and applies the steps that followed it has the membership of the last of them: each
 * step raises the number by one. So a manager need not send a membership of thousands to everybody whenever one client comes or
 * goes. A *delta* is the steps from one number to another.
 *
 * Threads: as the membership's.
 */
#ifndef PWI_PROTOCOL_MEMBERSHIP_DELTA_H
#define PWI_PROTOCOL_MEMBERSHIP_DELTA_H

#include <stdint.h>

#include <pawl/status.h>

#include "protocol/membership.h"

/* X(name, number, fields). Numbers are part of the encoded form. */
#define PWI_STEP_MAP(X)                                                                                                \
  X(ADD, 1, "a sender as in a membership; it is live")                                                                 \
  X(RETIRE, 2, "u64 sender")                                                                                           \
  X(FORGET, 3, "u64 sender; one that is not listed was not sent")                                                      \
  X(ADDRESS, 4, "u64 sender, text address; likewise")                                                                  \
  X(JOIN, 5, "u64 sender, u64 group, u32 size")                                                                        \
  X(LEAVE, 6, "u64 sender, u64 group")

enum pwi_step_kind {
#define PWI_STEP_ENUM(name, number, fields) PWI_STEP_##name = (number),
  PWI_STEP_MAP(PWI_STEP_ENUM)
#undef PWI_STEP_ENUM
};

struct pwi_membership_step {
  enum pwi_step_kind kind;
  struct pwi_membership_sender sender; /* ADD: all of it; ADDRESS: id and address; else its id */
  struct pwi_vector_id group;          /* JOIN and LEAVE */
  uint32_t size;                       /* JOIN */
};

/* As the function of that name in protocol/membership.h, but for FORGET and ADDRESS of somebody who is not listed: a membership that was
 * sent without retired senders (pwi_membership_encode_live) has to be like any other. PAWL_CORRUPT if the step cannot follow. */
PAWL_MUST_USE pawl_status pwi_membership_step(struct pwi_membership *membership,
                                              const struct pwi_membership_step *step);

/* u8 kind, then as above. */
void pwi_step_encode(const struct pwi_membership_step *step, struct pwi_writer *writer);

/* --- deltas ------------------------------------------------------------------------------------------------------- */

/* The beginning of a delta: u8 version (1), u64 the number before the first step, u32 count; the steps follow. */
void pwi_delta_begin(uint64_t since, uint32_t count, struct pwi_writer *writer);

/* Applies those steps of a delta that the membership does not have yet. `forgot`, which may be NULL, is told of each sender that
 * is not on the membership any more.
 *
 * Safe on any bytes: PAWL_TRUNCATED, PAWL_UNSUPPORTED or PAWL_CORRUPT if they are no delta, or begin later than the membership's
 * number: then nothing has changed. If a step cannot follow (PAWL_CORRUPT), or there is no memory for it (PAWL_NO_MEMORY),
 * those before it have been applied, and the membership's number says so. */
PAWL_MUST_USE pawl_status pwi_membership_apply_delta(struct pwi_membership *membership, const void *bytes, size_t size,
                                                     void (*forgot)(void *context, struct pwi_sender sender),
                                                     void *context);

/* protocol/membership.c, for the encoded form of steps. */
struct pwi_reader;
void pwi_membership_write_sender(struct pwi_writer *writer, const struct pwi_membership_sender *sender);
void pwi_membership_read_sender(struct pwi_reader *reader, struct pwi_membership_sender *sender);

#endif
