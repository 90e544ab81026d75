/* Sums: the pushes of one tick to the same keys, added up.
 *
 * A sum is sent when all members of the group whose pushes pass this relay have contributed, or when nothing has come
 * for a while: a child may have sent its push to the server itself. The while follows from the time between the first
 * and the last push of former sums. A sum that is sent too early costs one more message, and nothing else.
 *
 * Pushes that name different keys are different sums. They are sent together, when all members have contributed to any
 * of them.
 *
 * A push that comes after its sum was sent begins another one. A push of a contributor that is in a sum already is not
 * taken: two copies of it are under way, and only the server can tell them apart.
 */
#include <string.h>

#include "base/memory.h"
#include "protocol/planted.h"
#include "relay/inside.h"
#include "store/kernels.h"

#define HOLD_MIN INT64_C(100000000)
#define HOLD_MAX INT64_C(2000000000)
#define BESIDE 1024 /* bytes of a sum besides its rows and keys, roughly */

/* --- one sum -------------------------------------------------------------------------------------------- */

void pwi_relay_free(struct relay_sum *sum) {
  struct relay_sum **at = &sum->crowd.relay->sums;
  while (*at != sum) at = &(*at)->next;
  *at = sum->next;
  sum->crowd.relay->memory -= sum->memory;
  pwi_relay_fini_crowd(&sum->crowd);
  pwi_free(sum->contributors.items);
  pwi_free(sum->keys);
  pwi_free(sum->values);
  pwi_writer_fini(&sum->section);
  pwi_free(sum);
}

static void unread(struct relay_crowd *crowd) { pwi_relay_free((struct relay_sum *)crowd); }

static bool is_same_range(struct pawl_range a, struct pawl_range b) { return a.begin == b.begin && a.end == b.end; }

/* Pushes of one tick, whatever keys they name. */
static bool is_beside(const struct relay_sum *sum, const struct pwi_terms *terms, uint64_t tick) {
  return sum->terms.vector.id == terms->vector.id && sum->terms.other == terms->other && sum->tick == tick &&
         sum->terms.incarnation == terms->incarnation && is_same_range(sum->terms.claim, terms->claim);
}

static bool matches(const struct relay_sum *sum, const struct relay_request *push) {
  const struct pwi_terms *terms = &push->terms;
  if (sum->is_sent || !is_beside(sum, terms, push->tick)) return false;
  if (sum->terms.kind != terms->kind || !is_same_range(sum->terms.range, terms->range)) return false;
  if (sum->terms.rows != terms->rows || !sum->keys != !push->keys || sum->bytes != push->bytes) return false;
  return !push->keys || memcmp(sum->keys, push->keys, (size_t)terms->rows * sizeof *sum->keys) == 0;
}

static bool is_known(const struct pwi_relay *relay, const struct relay_request *push) {
  for (const struct relay_sum *sum = relay->sums; sum; sum = sum->next)
    for (size_t i = 0; !sum->is_over && is_beside(sum, &push->terms, push->tick) && i < push->count; i++)
      if (pwi_relay_has_sender(&sum->contributors, push->contributors[i].sender.id)) return true;
  return false;
}

static struct relay_sum *begin(struct pwi_relay *relay, const struct relay_request *push) {
  size_t rows = (size_t)push->terms.rows, row_bytes = pwi_entry_row_bytes(push->entry);
  size_t keys = push->keys ? rows * sizeof *push->keys : 0;
  bool pulls = push->terms.kind == PWI_REQUEST_PUSHPULL;
  size_t back = pulls ? rows * row_bytes : 0; /* the values of as many pushed rows have arrived */
  uint64_t memory = (uint64_t)push->bytes + keys + back + BESIDE;
  if (!pwi_relay_make_room(relay, memory)) return NULL;
  struct relay_sum *sum = pwi_alloc_zero(1, sizeof *sum);
  if (!sum) return NULL;
  *sum = (struct relay_sum){.next = relay->sums,
                            .terms = push->terms,
                            .tick = push->tick,
                            .values = pwi_alloc(push->bytes),
                            .keys = keys ? pwi_alloc(keys) : NULL,
                            .bytes = push->bytes,
                            .memory = (size_t)memory};
  sum->crowd = (struct relay_crowd){.relay = relay,
                                    .id = ++relay->last_crowd,
                                    .value_type = (uint8_t)push->entry->is.type,
                                    .rows = back ? pwi_alloc(back) : NULL,
                                    .bytes = back,
                                    .unread = unread};
  relay->sums = sum;
  relay->memory += memory;
  if (sum->values && (!keys || sum->keys) && (!back || sum->crowd.rows)) {
    if (keys) memcpy(sum->keys, push->keys, keys);
    memset(sum->values, 0, sum->bytes);
    return sum;
  }
  pwi_relay_free(sum);
  return NULL;
}

/* Returns false if there is no room: nothing has changed. */
static bool add(struct relay_sum *sum, const struct relay_request *push) {
  struct relay_crowd *crowd = &sum->crowd;
  bool is_first = crowd->waiter_count == 0;
  size_t count = sum->bytes / pwi_scalar_size((enum pwi_scalar)crowd->value_type);
  if (!PWI_GROW(crowd->waiters, crowd->waiter_room, crowd->waiter_count + 1)) return false;
  if (!pwi_relay_add_senders(&sum->contributors, push->contributors, push->count)) return false;
  if (is_first) /* zero plus the first push would lose the sign of a zero */
    memcpy(sum->values, push->values, sum->bytes);
  else
    pwi_row_kernels_best()->array[PWI_APPLY_ADD][crowd->value_type - 1](sum->values, push->values, count);
  crowd->waiters[crowd->waiter_count++] = push->waiter;
  pwi_relay_raise(crowd, push->waiter.priority);
  if (push->hops > sum->hops) sum->hops = push->hops;
  return true;
}

/* Remembers how far apart pushes of one tick come, also those that come too late. */
static void note_spread(struct pwi_relay *relay, const struct relay_request *push, int64_t now) {
  for (const struct relay_sum *sum = relay->sums; sum; sum = sum->next)
    if (is_beside(sum, &push->terms, push->tick) && now - sum->begun > relay->spread) relay->spread = now - sum->begun;
}

bool pwi_relay_take(struct pwi_relay *relay, const struct relay_request *push) {
  int64_t now = pwi_net_now(relay->config.net);
  struct relay_sum *sum = relay->sums;
  if (is_known(relay, push)) return false;
  note_spread(relay, push, now);
  while (sum && !matches(sum, push)) sum = sum->next;
  bool is_new = !sum;
  if (is_new) sum = begin(relay, push);
  if (!sum) return false;
  if (!add(sum, push)) {
    if (is_new) pwi_relay_free(sum);
    return false;
  }
  if (is_new) sum->begun = now;
  sum->last = now;
  relay->figures.pushes += push->count;
  relay->figures.bytes_in += push->bytes;
  return true;
}

/* --- sending -------------------------------------------------------------------------------------------- */

static void finished(struct pwi_task *task) {
  struct relay_sum *sum = (struct relay_sum *)((char *)task - offsetof(struct relay_sum, task));
  struct pwi_relay *relay = sum->crowd.relay;
  bool is_applied = task->status == PAWL_OK;
  int64_t now = pwi_net_now(relay->config.net);
  sum->is_over = true;
  pwi_relay_weigh(relay);
  sum->crowd.version = sum->answer.outcome.version;
  relay->figures.applied += is_applied;
  if (is_applied)
    pwi_choice_note(&relay->votes.choice, sum->begun, now, sum->bytes);
  else
    pwi_choice_note_refused(&relay->votes.choice, sum->begun, now);
  if (!is_applied) relay->figures.refused += sum->contributors.count;
  pwi_relay_answer_all(&sum->crowd, is_applied ? PWI_CODE_OK : PWI_CODE_DIRECT);
}

static void give_up(struct relay_sum *sum) {
  sum->is_sent = sum->is_over = true;
  sum->crowd.relay->figures.refused += sum->contributors.count;
  pwi_relay_answer_all(&sum->crowd, PWI_CODE_DIRECT);
}

void pwi_relay_give_up(struct pwi_relay *relay) {
  for (struct relay_sum *sum = relay->sums, *next; sum; sum = next) {
    next = sum->next;
    if (!sum->is_sent) give_up(sum);
  }
}

static void answer_early(struct relay_sum *sum) {
  if (!pwi_is_planted(PWI_PLANTED_RELAY_EARLY_ACK) || sum->crowd.rows) return;
  for (size_t i = 0; i < sum->crowd.waiter_count; i++)
    if (!sum->crowd.waiters[i].is_gone)
      pwi_relay_answer_one(&sum->crowd, i, &(struct pwi_outcome){.code = PWI_CODE_OK});
}

static void send(struct relay_sum *sum) {
  struct pwi_relay *relay = sum->crowd.relay;
  struct pwi_flow *flow;
  pwi_writer_reset(&sum->section);
  pwi_contributors_encode(sum->contributors.items, sum->contributors.count, sum->hops + 1, &sum->section);
  pawl_status status = sum->section.status;
  if (!status) status = pwi_client_flow(relay->client, sum->terms.vector, 0, &flow);
  if (!status && pwi_flow_entry(flow)->incarnation != sum->terms.incarnation) status = PAWL_RESTORED;
  if (status) {
    give_up(sum);
    return;
  }
  sum->relayed = (struct pwi_relayed){.kind = sum->terms.kind,
                                      .group = {sum->terms.other},
                                      .tick = sum->tick,
                                      .claim = sum->terms.claim,
                                      .range = sum->terms.range,
                                      .keys = sum->keys,
                                      .rows = (size_t)sum->terms.rows,
                                      .in = sum->values,
                                      .out = sum->crowd.rows,
                                      .contributors = sum->section.data,
                                      .contributors_size = sum->section.size,
                                      .hops = sum->hops + 1,
                                      .answer = &sum->answer};
  sum->task = (struct pwi_task){.finished = finished};
  sum->is_sent = true;
  pwi_relay_weigh(relay);
  relay->figures.aggregates++;
  relay->figures.bytes_out += sum->bytes;
  answer_early(sum);
  if (pwi_client_relay(relay->client, &sum->task, flow, &sum->relayed)) give_up(sum);
}

/* Members of the group whose pushes pass this relay on the way to the claim. */
static size_t count_expected(struct pwi_relay *relay, const struct relay_sum *sum, const struct pwi_view *view) {
  const struct pwi_entry *entry = pwi_catalogue_find(pwi_client_catalogue(relay->client), sum->terms.vector);
  const struct pwi_relays *relays = pwi_client_relays(relay->client);
  struct pwi_client_state state;
  if (view->arc_count == 0 || !entry) return 0;
  struct pwi_place place = pwi_entry_place(entry);
  size_t arc = pwi_view_arc_of(view, pwi_place_position(&place, sum->terms.claim.begin));
  uint32_t shard = pwi_relays_shard(relays, view, pwi_view_head(view, arc)->node.id);
  pwi_client_state(relay->client, &state);
  return pwi_relays_below(relays, pwi_client_membership(relay->client), (struct pwi_vector_id){sum->terms.other},
                          state.sender, shard);
}

static size_t expected(struct pwi_relay *relay, struct relay_sum *sum) {
  const struct pwi_view *view = pwi_client_view(relay->client);
  uint64_t trees = pwi_client_relays(relay->client)->made;
  if (!view) return 0;
  if (sum->counted_view == view->epoch && sum->counted_trees == trees) return sum->expected;
  sum->expected = count_expected(relay, sum, view);
  sum->counted_view = view->epoch;
  sum->counted_trees = trees;
  return sum->expected;
}

static int64_t hold_of(const struct pwi_relay *relay) {
  int64_t hold = 2 * relay->spread;
  return hold < HOLD_MIN ? HOLD_MIN : hold > HOLD_MAX ? HOLD_MAX : hold;
}

/* Contributors of a tick in all sums that are not sent. */
static size_t contributed(const struct pwi_relay *relay, const struct relay_sum *like) {
  size_t count = 0;
  for (const struct relay_sum *sum = relay->sums; sum; sum = sum->next)
    if (!sum->is_over && is_beside(sum, &like->terms, like->tick)) count += sum->contributors.count;
  return count;
}

static bool is_due(struct pwi_relay *relay, struct relay_sum *sum, int64_t now) {
  if (now >= sum->last + hold_of(relay)) return true;
  return contributed(relay, sum) >= expected(relay, sum);
}

/* Sending a sum may end it, and others: the walk begins again. */
void pwi_relay_look(struct pwi_relay *relay, int64_t now) {
  struct relay_sum *sum = relay->sums;
  while (sum) {
    if (!sum->is_sent && is_due(relay, sum, now)) {
      relay->spread -= relay->spread / 8;
      send(sum);
      sum = relay->sums;
      continue;
    }
    if (!sum->is_sent) pwi_client_wake(relay->client, sum->last + hold_of(relay));
    sum = sum->next;
  }
}

void pwi_relay_lose(struct pwi_relay *relay, struct pwi_link link) {
  for (struct relay_sum *sum = relay->sums, *next; sum; sum = next) {
    bool was_in = false;
    next = sum->next;
    for (size_t i = 0; i < sum->crowd.waiter_count; i++) {
      if (sum->crowd.waiters[i].link.id != link.id) continue;
      sum->crowd.waiters[i].is_gone = was_in = true;
    }
    if (was_in && !sum->is_sent) give_up(sum);
  }
}
