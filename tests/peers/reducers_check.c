/* The checker of reducers.h. */
#include <math.h>

#include "base/memory.h"
#include "base/testing.h"
#include "graph/choose.h"
#include "reducers.h"

void reducer_broken(const struct reducer *reducer, const char *what, uint64_t value) {
  pwi_sim_fail(reducer->team->cluster.sim, PAWL_CORRUPT, "node %u, step %llu: %s (%llu)", reducer->index,
               (unsigned long long)reducer->steps, what, (unsigned long long)value);
}

size_t reducer_values(const struct reducer *reducer) {
  size_t other = reducer->team->other_values[reducer->index];
  return other ? other : reducer->team->values;
}

struct pwi_sender reducer_id(const struct reducer *reducer) {
  struct pwi_client_state state;
  if (!reducer->client.client) return (struct pwi_sender){0};
  pwi_client_state(reducer->client.client, &state);
  return (struct pwi_sender){state.sender};
}

static size_t all_values(const struct reducer *reducer) { return reducer_values(reducer) + BIAS + REDUCERS_MAX; }

static float value_at(const struct reducer *reducer, size_t i) {
  size_t count = reducer_values(reducer);
  if (i < count) return reducer->values[i];
  return i < count + BIAS ? reducer->bias[i - count] : reducer->marks[i - count - BIAS];
}

static void take_values(const struct reducer *reducer, size_t first, size_t count, float *values_out) {
  const float *tensors[] = {reducer->values, reducer->bias, reducer->marks};
  size_t counts[] = {reducer_values(reducer), BIAS, REDUCERS_MAX};
  for (size_t i = 0; i < 3 && count > 0; first -= first < counts[i] ? first : counts[i], i++) {
    if (first >= counts[i]) continue;
    size_t part = counts[i] - first < count ? counts[i] - first : count;
    memcpy(values_out, tensors[i] + first, part * sizeof *values_out);
    values_out += part;
    count -= part;
  }
}

static const struct reducer *owner_of(const struct team *team, uint64_t id) {
  return id < OWNERS && team->owners[id] ? &team->reducers[team->owners[id] - 1] : NULL;
}

/* --- what is known of members and graphs ---------------------------------------------------------------- */

void reducer_note_owner(struct reducer *reducer) {
  struct pwi_sender id = reducer_id(reducer);
  if (id.id > 0 && id.id < OWNERS) reducer->team->owners[id.id] = reducer->index + 1;
}

void reducer_note_membership(struct reducer *reducer) {
  struct team *team = reducer->team;
  size_t count = 0;
  if (!reducer->client.client || reducer->group.id == 0) return;
  const struct pwi_membership *membership = pwi_client_membership(reducer->client.client);
  const struct pwi_membership_group *group = pwi_membership_group(membership, reducer->group);
  if (!group) return;
  const struct pwi_membership_member *members = pwi_membership_members(membership, reducer->group, &count);
  for (size_t i = 0; i < team->membership_count; i++)
    if (team->memberships[i].number == group->changed) return;
  assert_true(team->membership_count < 512 && count <= MEMBERS_MAX);
  size_t at = team->membership_count++;
  team->memberships[at].number = group->changed;
  team->memberships[at].count = count;
  for (size_t i = 0; i < count; i++) team->memberships[at].ids[i] = members[i].sender.id;
}

static size_t members_of(const struct team *team, uint64_t number, const uint64_t **ids_out) {
  for (size_t i = 0; i < team->membership_count; i++) {
    if (team->memberships[i].number != number) continue;
    *ids_out = team->memberships[i].ids;
    return team->memberships[i].count;
  }
  return 0;
}

static struct pwi_graph *graph_of(const struct team *team, uint32_t nodes) {
  struct pwi_graph_spec spec = {.nodes = nodes, .seed = 1};
  struct pwi_graph *graph = NULL;
  if (nodes < 2) return NULL;
  if (!team->graph || !pwi_topology_find(team->graph, &spec.topology) || pwi_graph_make(&spec, NULL, &graph)) {
    assert_int_equal(pwi_choose_default(nodes, 1, NULL, &spec), PAWL_OK);
    assert_int_equal(pwi_graph_make(&spec, NULL, &graph), PAWL_OK);
  }
  return graph;
}

/* --- what was sent -------------------------------------------------------------------------------------- */

static size_t padded(size_t size) { return (size + 7) & ~(size_t)7; }

/* The filter as docs/reduce.md describes it, computed again from the member's own values: `view` is what receivers
 * know of a model (MIX), or what the member has not sent yet (MEAN). `first` is the index of the tensor's first value.
 * Returns the number of values that are sent. */
static size_t filter(const struct reducer *reducer, size_t first, size_t count, bool all, float *view, float *effect) {
  bool is_mean = reducer->team->what == PAWL_REDUCE_MEAN;
  size_t sent = 0;
  for (size_t i = first; i < first + count; i++) {
    double own = (double)value_at(reducer, i), old = (double)view[i], value = is_mean ? own + old : own;
    bool is_sent = all || fabs(is_mean ? value : value - old) > reducer->team->significant;
    sent += is_sent;
    if (is_mean) {
      effect[i] = is_sent ? (float)value : 0;
      view[i] = is_sent ? 0 : (float)value;
    } else {
      if (is_sent) view[i] = (float)value;
      effect[i] = view[i];
    }
  }
  return sent;
}

static bool filter_all(const struct reducer *reducer, bool all, float *view, float *effect) {
  size_t counts[] = {reducer_values(reducer), BIAS, REDUCERS_MAX}, size = 0, capacity = 0, first = 0;
  for (size_t i = 0; i < 3; first += counts[i++]) {
    size_t sent = filter(reducer, first, counts[i], all, view, effect);
    size += padded((counts[i] + 7) / 8) + padded(4 * sent);
    capacity += padded(4 * counts[i]);
  }
  return size < capacity;
}

static void note_filtered(struct reducer *reducer, struct sent *sent) {
  size_t count = all_values(reducer);
  bool is_first =
      reducer->team->what == PAWL_REDUCE_MIX && reducer->engine->completed == reducer->engine->base; /* of the epoch */
  float *view = pwi_alloc_zero(count, sizeof(float));
  assert_non_null(view);
  if (!reducer->view) reducer->view = pwi_alloc_zero(count, sizeof(float));
  assert_non_null(reducer->view);
  memcpy(view, reducer->view, count * sizeof(float));
  if (is_first || !filter_all(reducer, false, view, sent->effect)) {
    memcpy(view, reducer->view, count * sizeof(float));
    (void)filter_all(reducer, true, view, sent->effect);
  }
  memcpy(reducer->view, view, count * sizeof(float));
  pwi_free(view);
}

void reducer_note_sent(struct reducer *reducer) {
  const struct pwi_reduce *engine = reducer->engine;
  size_t count = all_values(reducer);
  struct sent *sent = &reducer->sent[reducer->sent_next++ % SENT_MAX];
  if (!sent->values) {
    sent->values = pwi_alloc_zero(count, sizeof(float));
    sent->effect = pwi_alloc_zero(count, sizeof(float));
  }
  assert_true(sent->values && sent->effect);
  sent->version = engine->completed + 1;
  sent->epoch = engine->epoch;
  sent->id = reducer_id(reducer).id;
  sent->is_kept = engine->is_send_skipped;
  sent->is_last = false;
  take_values(reducer, 0, count, sent->values);
  memcpy(sent->effect, sent->values, count * sizeof(float));
  if (reducer->team->significant > 0) note_filtered(reducer, sent);
}

/* The process ends. Its tensors may be a model that others take over, although it never packed them. */
void reducer_note_last(struct reducer *reducer) {
  if (!reducer->engine || !reducer->values) return;
  reducer_note_sent(reducer);
  reducer->sent[(reducer->sent_next - 1) % SENT_MAX].is_last = true;
}

/* A step is repeated in a later epoch without packing again, if its tensors have not changed. */
static const struct sent *find_sent(const struct team *team, uint64_t id, uint64_t version, struct reduce_epoch epoch) {
  const struct sent *found = NULL;
  const struct reducer *reducer = owner_of(team, id);
  for (size_t i = 0; reducer && i < SENT_MAX; i++) {
    const struct sent *sent = &reducer->sent[i];
    if (sent->values && !sent->is_last && sent->version == version &&
        pwi_reduce_epoch_compare(sent->epoch, epoch) <= 0 &&
        (!found || pwi_reduce_epoch_compare(sent->epoch, found->epoch) > 0))
      found = sent;
  }
  return found;
}

/* The node that asks stood still for long. */
static bool is_forgotten(const struct reducer *owner, uint64_t version) {
  if (owner->sent_next <= SENT_MAX) return false;
  for (size_t i = 0; i < SENT_MAX; i++)
    if (owner->sent[i].version <= version) return false;
  return true;
}

/* --- averages ------------------------------------------------------------------------------------------- */

/* The members whose tensors may be in the result, by ascending id, with the member itself among them. */
struct parts {
  uint64_t ids[MEMBERS_MAX];
  const struct sent *sent[MEMBERS_MAX]; /* NULL: none */
  size_t count, own;
  bool is_forgotten; /* what was sent is not remembered any more */
};

#define STRIP 64 /* values that are added at once, so that the compiler can use vectors */

/* Adds the parts that are not NULL in the order of their ids, as the engine does. The own values of a member are not
 * filtered. */
static void add_strip(const struct parts *parts, size_t first, size_t count, float *restrict sum) {
  bool is_first = true;
  for (size_t k = 0; k < parts->count; k++) {
    if (!parts->sent[k]) continue;
    const float *restrict input = (k == parts->own ? parts->sent[k]->values : parts->sent[k]->effect) + first;
    if (is_first)
      memcpy(sum, input, count * sizeof *sum);
    else
      for (size_t i = 0; i < count; i++) sum[i] += input[i];
    is_first = false;
  }
}

/* With narrow values the result is near the average. */
static bool is_near(const struct reducer *reducer, size_t first, size_t count, const float *expected,
                    const float *found) {
  if (!reducer->team->narrow) return false;
  for (size_t i = 0; i < count; i++) {
    bool is_mark = first + i >= reducer_values(reducer) + BIAS;
    bool is_same = memcmp(&expected[i], &found[i], sizeof *found) == 0;
    if (!is_same && !is_mark && !(fabsf(expected[i] - found[i]) <= 0.05f)) return false;
  }
  return true;
}

/* Compares the tensors with the average of the parts that are not NULL. */
static bool is_average(const struct reducer *reducer, const struct parts *parts) {
  size_t values = all_values(reducer), count = 0;
  float expected[STRIP], found[STRIP];
  for (size_t k = 0; k < parts->count; k++) count += parts->sent[k] != NULL;
  if (count != reducer->report.used + 1 || !parts->sent[parts->own]) return false;
  for (size_t first = 0, size = 0; first < values; first += size) {
    size = values - first < STRIP ? values - first : STRIP;
    add_strip(parts, first, size, expected);
    for (size_t i = 0; i < size; i++) expected[i] /= (float)count;
    take_values(reducer, first, size, found);
    if (memcmp(expected, found, size * sizeof *found) != 0 && !is_near(reducer, first, size, expected, found))
      return false;
  }
  return true;
}

/* NOTIFY-ACK: all inputs of this iteration. */
static bool is_average_of_all(const struct reducer *reducer, struct parts *parts) {
  for (size_t i = 0; i < parts->count; i++) {
    parts->sent[i] = find_sent(reducer->team, parts->ids[i], reducer->report.iteration, reducer->engine->epoch);
    const struct reducer *other = owner_of(reducer->team, parts->ids[i]);
    if (!parts->sent[i] && other && is_forgotten(other, reducer->report.iteration)) parts->is_forgotten = true;
  }
  return reducer->report.current == reducer->report.expected && is_average(reducer, parts);
}

/* BSP: some of them. */
static bool is_average_of_some(const struct reducer *reducer, struct parts *all) {
  (void)is_average_of_all(reducer, all);
  for (unsigned mask = 0; mask < 1u << all->count; mask++) {
    struct parts some = *all;
    for (size_t i = 0; i < all->count; i++)
      if (!(mask >> i & 1)) some.sent[i] = NULL;
    if (is_average(reducer, &some)) return true;
  }
  return false;
}

/* --- ASYNC ---------------------------------------------------------------------------------------------- */

/* Each member writes the version into a mark of its own, and 0 into the others. The sum of the marks shows which
 * versions were used. A member that has taken over a model sends the marks of its donor: it is *foreign*. */
static bool is_foreign(const struct reducer *owner, const struct sent *sent) {
  const float *marks = sent->values + reducer_values(owner) + BIAS;
  for (uint32_t i = 0; i < REDUCERS_MAX; i++)
    if (marks[i] != (i == owner->index ? (float)sent->version : 0)) return true;
  return false;
}

static void take_marks(const struct reducer *owner, const struct sent *sent, float *left) {
  for (uint32_t i = 0; i < REDUCERS_MAX; i++) left[i] -= sent->values[reducer_values(owner) + BIAS + i];
}

/* A member that was declared dead sends under its new id what it has packed under the old one, if it has packed nothing
 * since then. */
static bool is_taken_along(const struct reducer *owner, const struct sent *sent, uint64_t id) {
  for (size_t i = 0; i < SENT_MAX; i++) {
    const struct sent *other = &owner->sent[i];
    if (!other->values || other->is_last) continue;
    if (other->id == id ? other->version <= sent->version : other->id == sent->id && other->version > sent->version)
      return false;
  }
  return sent->id < id;
}

/* A version that may be used: it was sent, and is not older than the last one that was used. */
static bool is_legal(const struct reducer *reducer, const struct reducer *owner, const struct sent *sent, uint64_t id) {
  uint64_t least = reducer->last_id[owner->index] == id ? reducer->last_used[owner->index] : 0;
  if (!sent->values || sent->is_kept || sent->is_last || sent->version < least) return false;
  return sent->id == id || is_taken_along(owner, sent, id);
}

/* The remaining marks name the versions of all members that are not foreign. */
static bool is_average_by_marks(const struct reducer *reducer, struct parts *parts, const float *marks) {
  float left[REDUCERS_MAX];
  memcpy(left, marks, sizeof left);
  for (size_t k = 0; k < parts->count; k++) {
    const struct reducer *owner = owner_of(reducer->team, parts->ids[k]);
    if (!owner || parts->sent[k] || left[owner->index] <= 0) continue;
    for (size_t i = 0; i < SENT_MAX && !parts->sent[k]; i++) {
      const struct sent *sent = &owner->sent[i];
      if (is_legal(reducer, owner, sent, parts->ids[k]) && (float)sent->version == left[owner->index] &&
          !is_foreign(owner, sent))
        parts->sent[k] = sent;
    }
    if (parts->sent[k]) take_marks(owner, parts->sent[k], left);
    if (!parts->sent[k] && is_forgotten(owner, (uint64_t)left[owner->index])) parts->is_forgotten = true;
  }
  return is_average(reducer, parts);
}

/* Tries all foreign inputs from member `k` on. */
static bool is_average_of_any(const struct reducer *reducer, struct parts *parts, size_t k, const float *marks) {
  while (k < parts->count && k == parts->own) k++;
  if (k == parts->count) {
    struct parts some = *parts;
    if (!is_average_by_marks(reducer, &some, marks)) {
      if (some.is_forgotten) parts->is_forgotten = true;
      return false;
    }
    *parts = some;
    return true;
  }
  if (is_average_of_any(reducer, parts, k + 1, marks)) return true;
  const struct reducer *owner = owner_of(reducer->team, parts->ids[k]);
  for (size_t i = 0; owner && i < SENT_MAX; i++) {
    const struct sent *sent = &owner->sent[i];
    float left[REDUCERS_MAX];
    if (!is_legal(reducer, owner, sent, parts->ids[k]) || !is_foreign(owner, sent)) continue;
    memcpy(left, marks, sizeof left);
    take_marks(owner, sent, left);
    parts->sent[k] = sent;
    if (is_average_of_any(reducer, parts, k + 1, left)) return true;
    parts->sent[k] = NULL;
  }
  return false;
}

static bool is_average_of_versions(struct reducer *reducer, struct parts *parts) {
  const float *found = reducer->marks;
  float marks[REDUCERS_MAX];
  size_t current = 0;
  parts->sent[parts->own] =
      find_sent(reducer->team, parts->ids[parts->own], reducer->report.iteration, reducer->engine->epoch);
  if (!parts->sent[parts->own]) return false;
  for (uint32_t i = 0; i < REDUCERS_MAX; i++) marks[i] = roundf(found[i] * (float)(reducer->report.used + 1));
  take_marks(reducer, parts->sent[parts->own], marks);
  if (!is_average_of_any(reducer, parts, 0, marks)) return false;
  for (size_t k = 0; k < parts->count; k++)
    current += k != parts->own && parts->sent[k] && parts->sent[k]->version == reducer->report.iteration;
  return current == reducer->report.current;
}

/* --- checks --------------------------------------------------------------------------------------------- */

static bool is_right(struct reducer *reducer, struct parts *parts) {
  if (reducer->team->mode == PAWL_REDUCE_ASYNC) return is_average_of_versions(reducer, parts);
  if (reducer->team->mode == PAWL_REDUCE_BSP) return is_average_of_some(reducer, parts);
  return is_average_of_all(reducer, parts);
}

/* The participants are the members whose bits are set: finds the in-neighbours, and looks at the average. */
static bool is_right_among(struct reducer *reducer, const uint64_t *ids, size_t count, unsigned mask,
                           struct parts *parts) {
  uint64_t participants[MEMBERS_MAX];
  size_t size = 0, own = SIZE_MAX;
  *parts = (struct parts){.own = SIZE_MAX};
  for (size_t i = 0; i < count; i++) {
    if (!(mask >> i & 1)) continue;
    if (ids[i] == reducer->engine->own_id) own = size;
    participants[size++] = ids[i];
  }
  if (own == SIZE_MAX || size != reducer->report.size) return false;
  struct pwi_graph *graph = graph_of(reducer->team, (uint32_t)size);
  for (size_t i = 0; i < size; i++) {
    if (i != own && !(graph && pwi_graph_has(graph, (uint32_t)i, (uint32_t)own))) continue;
    if (i == own) parts->own = parts->count;
    parts->ids[parts->count++] = participants[i];
  }
  pwi_graph_destroy(graph);
  return parts->count == reducer->report.expected + 1 && is_right(reducer, parts);
}

/* Members that have closed, or do not fit, may take no part in an epoch, and only they. */
static unsigned may_be_absent(const struct team *team, const uint64_t *ids, size_t count) {
  unsigned mask = 0;
  for (size_t i = 0; i < count; i++) {
    const struct reducer *owner = owner_of(team, ids[i]);
    for (size_t k = 0; k < team->closed_count; k++)
      if (team->closed[k] == ids[i]) mask |= 1u << i;
    if (owner && team->other_values[owner->index]) mask |= 1u << i;
    if (owner && owner->engine && owner->engine->is_closing) mask |= 1u << i; /* and has another id since then */
  }
  return mask;
}

/* All members of an epoch have the same participants. */
static struct pinned *pinned_of(struct team *team, struct reduce_epoch epoch) {
  for (size_t i = 0; i < team->pinned_count; i++)
    if (pwi_reduce_epoch_compare(team->pinned[i].epoch, epoch) == 0) return &team->pinned[i];
  return NULL;
}

static void remember_used(struct reducer *reducer, const struct parts *parts) {
  for (size_t k = 0; k < parts->count; k++) {
    const struct reducer *owner = owner_of(reducer->team, parts->ids[k]);
    if (k == parts->own || !parts->sent[k] || !owner) continue;
    reducer->last_used[owner->index] = parts->sent[k]->version;
    reducer->last_id[owner->index] = parts->ids[k];
  }
}

static void check_parts(struct reducer *reducer) {
  struct team *team = reducer->team;
  struct reduce_epoch epoch = reducer->engine->epoch;
  const struct pinned *pinned = pinned_of(team, epoch);
  const uint64_t *ids = NULL;
  size_t count = members_of(team, reducer->report.number, &ids);
  unsigned all = (1u << count) - 1, absent = may_be_absent(team, ids, count);
  struct parts parts;
  if (count == 0) reducer_broken(reducer, "a number that no member knows", reducer->report.number);
  if (epoch.number != reducer->report.number)
    reducer_broken(reducer, "the report has another number", reducer->report.number);
  unsigned found = 0, matches = 0;
  for (unsigned mask = all;; mask--) {
    bool is_possible = (mask | absent) == all && (!pinned || pinned->mask == mask);
    if (is_possible && is_right_among(reducer, ids, count, mask, &parts)) {
      if (matches++ == 0) remember_used(reducer, &parts);
      found = mask;
    } else if (is_possible && parts.is_forgotten) {
      return;
    }
    if (mask == 0) break;
  }
  if (matches > 0) { /* an average of few inputs may fit several sets of participants */
    if (matches == 1 && !pinned && team->pinned_count < PINNED)
      team->pinned[team->pinned_count++] = (struct pinned){epoch, found};
    team->verified++;
    return;
  }
  reducer_broken(reducer, "not the average of what was sent", reducer->report.iteration);
}

void reducer_check_result(struct reducer *reducer) {
  struct team *team = reducer->team;
  const struct pawl_reduce_report *report = &reducer->report;
  bool is_inexact = team->narrow && (team->significant > 0 || team->mode == PAWL_REDUCE_ASYNC);
  team->checked++;
  team->used += report->used;
  team->expected += report->expected;
  team->current += report->current;
  if (report->used > report->expected || report->current > report->used)
    reducer_broken(reducer, "more used than expected", 0);
  if (!is_inexact && !(team->still && team->mode == PAWL_REDUCE_ASYNC)) check_parts(reducer);
}

/* The first work in an epoch shows from which iteration the member begins. */
void reducer_check_epoch(struct reducer *reducer) {
  struct team *team = reducer->team;
  const struct pwi_reduce *engine = reducer->engine;
  uint64_t iteration = engine->phase == PHASE_ADOPT ? engine->base : engine->completed;
  if (team->mode == PAWL_REDUCE_ASYNC || pwi_reduce_epoch_compare(reducer->epoch, engine->epoch) == 0) return;
  if (pwi_reduce_epoch_compare(reducer->epoch, engine->epoch) > 0) reducer_broken(reducer, "an older epoch", iteration);
  reducer->epoch = engine->epoch;
  for (size_t i = 0; i < team->epoch_count; i++) {
    if (pwi_reduce_epoch_compare(team->epochs[i].epoch, engine->epoch) != 0) continue;
    if (iteration != team->epochs[i].iteration) reducer_broken(reducer, "an epoch has two iterations", iteration);
    return;
  }
  if (team->epoch_count == 1024) return;
  team->epochs[team->epoch_count].epoch = engine->epoch;
  team->epochs[team->epoch_count++].iteration = iteration;
}

/* A member that has taken over a model packs what another one has packed for the same version. */
void reducer_check_adopted(struct reducer *reducer) {
  struct team *team = reducer->team;
  size_t bytes = reducer_values(reducer) * sizeof(float);
  uint64_t version = reducer->engine->completed + 1;
  if (reducer->carried != (double)reducer->engine->completed)
    reducer_broken(reducer, "the model and its iteration differ", (uint64_t)reducer->carried);
  for (uint32_t i = 0; i < team->count; i++) {
    const struct reducer *other = &team->reducers[i];
    if (other == reducer) continue;
    if (other->engine && other->engine->completed + 1 == version && memcmp(other->values, reducer->values, bytes) == 0)
      return;
    for (size_t k = 0; k < SENT_MAX; k++)
      if (other->sent[k].values && other->sent[k].version == version &&
          memcmp(other->sent[k].values, reducer->values, bytes) == 0)
        return;
  }
  reducer_broken(reducer, "a model that no member has", version);
}

void reducer_forget_sent(struct reducer *reducer) {
  for (size_t k = 0; k < SENT_MAX; k++) {
    pwi_free(reducer->sent[k].values);
    pwi_free(reducer->sent[k].effect);
  }
  pwi_free(reducer->view);
}
