/* The last tick to which a client has contributed, on each key.
 *
 * A head has in its aggregates who has contributed to a tick. The next head of the arc does not have them: members
 * that were answered do not send their parts again. If a client that was declared dead returns with parts of ticks
 * that are over, it would wait at that head for the others, while they wait for a later part of it on another arc. So
 * the tick of each part that was applied or refused is kept beside the rows.
 *
 * It is in the clock of tasks, so that it moves and is discarded with the rows. There it has an id that no sender has,
 * made of the public key of the client and the group: a client that returns under a new id has the ticks of its old
 * one. Followers take it from the changes of the head.
 *
 * Nothing that was applied depends on these ticks. If one is missing, a late member may wait longer, so they are
 * recorded without a reservation: there may be no memory, and a follower may not know the sender yet.
 */
#include <stdlib.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "shard/inside.h"

#define MARK (UINT64_C(1) << 63) /* ids of senders are below */
#define STRIKE_AFTER 64          /* senders forgotten; a search for their ticks costs as much for one of them */

/* Keys are points on a curve, and as good as random. 0: the client has no key. */
static uint64_t key_of(const struct pwi_membership_sender *sender) { return pwi_get_u64(sender->key) & ~MARK; }

static uint64_t id_of(uint64_t key, struct pwi_vector_id group) { return (key ^ pwi_mix64(group.id)) | MARK; }

static bool find(const struct pwi_shard *shard, struct pwi_vector_id group, struct pwi_sender sender,
                 struct pwi_sender *client_out) {
  const struct pwi_membership_sender *known = shard->membership ? pwi_membership_find(shard->membership, sender) : NULL;
  if (!known || key_of(known) == 0) return false;
  client_out->id = id_of(key_of(known), group);
  return true;
}

void pwi_contributed(struct pwi_shard *shard, struct pwi_clock *clock, const struct pwi_request *request,
                     struct pwi_sender sender, struct pawl_range keys) {
  struct pwi_sender client;
  if (!clock || !pwi_terms_are_aggregate(&request->terms)) return;
  bool is_known = find(shard, (struct pwi_vector_id){request->terms.other}, sender, &client);
  if (!is_known || pwi_clock_set(clock, client, keys, request->tick)) shard->lacks_ticks = true; /* see above */
}

bool pwi_contributed_walk(const struct pwi_shard *shard, const struct pwi_vector *vector, struct pwi_vector_id group,
                          struct pwi_sender sender, struct pawl_range keys, struct pwi_clock_pieces *pieces_out) {
  const struct pwi_clock *clock = &vector->clocks[PWI_TASKS];
  struct pwi_sender client;
  return find(shard, group, sender, &client) && pwi_clock_has(clock, client) &&
         pwi_clock_walk(clock, client, keys, pieces_out) == PAWL_OK;
}

bool pwi_contributed_is_known(const struct pwi_membership *membership, struct pwi_sender client) {
  for (size_t i = 0; client.id & MARK && i < membership->group_count; i++)
    for (size_t k = 0; k < membership->sender_count; k++)
      if (id_of(key_of(&membership->senders[k]), membership->groups[i].group) == client.id) return true;
  return false;
}

/* --- clients that are gone ------------------------------------------------------------------------------ */

struct known_keys {
  const struct pwi_membership *membership;
  uint64_t *keys; /* ascending */
};

static int compare(const void *a, const void *b) {
  uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
  return first < second ? -1 : first > second;
}

static bool is_gone(const void *context, struct pwi_sender client) {
  const struct known_keys *known = context;
  const struct pwi_membership *membership = known->membership;
  if (!(client.id & MARK)) return false;
  for (size_t i = 0; i < membership->group_count; i++) {
    uint64_t key = (client.id ^ pwi_mix64(membership->groups[i].group.id)) & ~MARK;
    if (bsearch(&key, known->keys, membership->sender_count, sizeof key, compare)) return false;
  }
  return true;
}

void pwi_contributed_strike(struct pwi_shard *shard) {
  struct known_keys known = {.membership = shard->membership};
  size_t count = shard->membership->sender_count;
  if (shard->forgotten < STRIKE_AFTER) return;
  known.keys = pwi_alloc_zero(count + 1, sizeof *known.keys);
  if (!known.keys) return; /* the next time */
  for (size_t i = 0; i < count; i++) known.keys[i] = key_of(&shard->membership->senders[i]);
  qsort(known.keys, count, sizeof *known.keys, compare);
  for (size_t i = 0; i < shard->vector_count; i++) {
    pwi_times_strike(&shard->vectors[i]->clocks[PWI_TASKS], is_gone, &known);
    pwi_times_strike(&shard->vectors[i]->staged[PWI_TASKS], is_gone, &known);
  }
  pwi_free(known.keys);
  shard->forgotten = 0;
}
