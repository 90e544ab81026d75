/* Aggregates of the pushes of a group, for shard/aggregate.c, which collects their parts and explains the
 * rules, and shard/sum.c, which applies them. */
#ifndef PWI_SHARD_AGGREGATE_H
#define PWI_SHARD_AGGREGATE_H

#include "shard/bundle.h"
#include "shard/inside.h"

/* The push of one sender in the present tick, or a piece of it. */
struct aggregate_part {
  struct pwi_sender sender;
  uint64_t task, settled;
  struct pawl_range claim;
  struct pawl_range range;   /* in the sum: the range of the push, limited to the claim; otherwise empty */
  struct pwi_waiter waiter;  /* owner 0: no answer to send at the moment */
  bool is_in_sum;            /* it is in the sum; otherwise it was applied by itself */
  bool wants_rows;           /* a PUSHPULL: its answer contains the rows of the keys of `bundle` */
  struct pwi_bundle *bundle; /* its rows; NULL: its sender must resend it, and it will be found as a
                                duplicate */
  bool is_told;              /* its sender has the answer */
  bool is_echo;              /* only a waiting request: the values are in other pieces */
  bool is_of_relay;          /* an echo: the request of a relay, whose contributors have the pieces */
};

/* A part that is not due yet. */
struct early_part {
  struct early_part *next;
  struct pwi_sender sender;
  uint64_t task, prior, settled;
  struct pwi_waiter waiter;
  struct pwi_bundle *bundle;
};

/* The aggregate of one tick on one arc. */
struct pwi_aggregate {
  struct pwi_aggregate *next;
  struct pwi_vector_id vector, group;
  struct pawl_range arc; /* keys of the arc */
  uint64_t tick;
  bool is_complete;
  bool is_broken; /* the aggregate was given up: pushes of this tick are applied one by one */
  struct aggregate_part *parts;
  size_t count, room;
  struct pwi_bundle *bundles;

  struct early_part *early; /* in the order of arrival */
  size_t early_count, early_bytes;

  /* While it is applied: the next range, and its contents. */
  uint64_t done; /* applied up to this key */
  struct pawl_range now;
  pawl_status united; /* PAWL_OK, or why the bundles could not be united */
  struct pwi_union all;
  struct iovec values;
};

static inline bool pwi_same_keys(struct pawl_range a, struct pawl_range b) {
  return a.begin == b.begin && a.end == b.end;
}

/* Returns true for aggregates of any ticks of the same group on the same arc. */
static inline bool pwi_is_beside(const struct pwi_aggregate *it, const struct pwi_aggregate *other) {
  return it->vector.id == other->vector.id && it->group.id == other->group.id && pwi_same_keys(it->arc, other->arc);
}

/* Returns true if every member of the group has contributed. */
bool pwi_aggregate_has_all(const struct pwi_shard *shard, const struct pwi_aggregate *aggregate);

void pwi_aggregate_forget(struct pwi_shard *shard, struct pwi_aggregate *aggregate);

/* Sends an answer if the waiter has an owner. */
void pwi_aggregate_say(struct pwi_shard *shard, struct pwi_waiter waiter, enum pwi_code code, pawl_status status);

/* Answers the early parts and discards them. */
void pwi_aggregate_dismiss_early(struct pwi_shard *shard, struct pwi_aggregate *aggregate, enum pwi_code code,
                                 pawl_status status);

/* After a change of the vector: takes in early parts that are now due, in all ticks of the arc of `place`. */
void pwi_aggregates_take_in(struct pwi_shard *shard, const struct pwi_aggregate *place);

#endif
