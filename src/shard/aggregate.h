/* Pushes of a group that are being added up: for shard/aggregate.c, where parts come in, and shard/sum.c, where sums are
 * applied and told. The first says what it is all about.
 */
#ifndef PWI_SHARD_AGGREGATE_H
#define PWI_SHARD_AGGREGATE_H

#include "shard/bundle.h"
#include "shard/inside.h"

/* One sender's part in the present tick, or a piece of it. */
struct part {
  struct pwi_sender sender;
  uint64_t task, settled;
  struct pawl_range claim;
  struct pawl_range range;   /* in the sum: what the push is about, in the claim; else empty */
  struct pwi_waiter waiter;  /* owner 0: nobody to be told now */
  bool is_in_sum;            /* else it was applied by itself */
  bool wants_rows;           /* a PUSHPULL: its answer brings rows, those of the keys of */
  struct pwi_bundle *bundle; /* this one; NULL: it has to ask again, and finds itself done */
  bool is_told;              /* it waits for nobody: its sender has its answer */
  bool is_echo;              /* only somebody to be told: what it brought is in another piece */
};

/* A part that is not due yet. */
struct early {
  struct early *next;
  struct pwi_sender sender;
  uint64_t task, prior, settled;
  struct pwi_waiter waiter;
  struct pwi_bundle *bundle;
};

/* One tick on one arc. */
struct pwi_aggregate {
  struct pwi_aggregate *next;
  struct pwi_vector_id vector, group;
  struct pawl_range arc; /* keys */
  uint64_t tick;
  bool is_complete;
  bool is_broken; /* in this tick everybody is served by itself */
  struct part *parts;
  size_t count, room;
  struct pwi_bundle *bundles;

  struct early *early; /* in the order in which they came */
  size_t early_count, early_bytes;

  /* Being applied: the range that is next, and what is applied there. */
  uint64_t done; /* up to this key */
  struct pawl_range now;
  pawl_status united; /* PAWL_OK, or why the bundles could not be */
  struct pwi_union all;
  struct iovec values;
};

static inline bool pwi_same_keys(struct pawl_range a, struct pawl_range b) {
  return a.begin == b.begin && a.end == b.end;
}

/* Another tick, or the same, of the same group on the same arc. */
static inline bool pwi_is_beside(const struct pwi_aggregate *it, const struct pwi_aggregate *other) {
  return it->vector.id == other->vector.id && it->group.id == other->group.id && pwi_same_keys(it->arc, other->arc);
}

/* Whether every member of the group is in. */
bool pwi_aggregate_has_all(const struct pwi_shard *shard, const struct pwi_aggregate *aggregate);

void pwi_aggregate_forget(struct pwi_shard *shard, struct pwi_aggregate *aggregate);

/* Tells whoever waits, if anybody does. */
void pwi_aggregate_say(struct pwi_shard *shard, struct pwi_waiter waiter, enum pwi_code code, pawl_status status);

/* Tells those who are early, and forgets what they brought. */
void pwi_aggregate_dismiss_early(struct pwi_shard *shard, struct pwi_aggregate *aggregate, enum pwi_code code,
                                 pawl_status status);

/* Something was applied beside `place`: what had to follow it, and is due now, is taken in. */
void pwi_aggregates_take_in(struct pwi_shard *shard, const struct pwi_aggregate *place);

#endif
