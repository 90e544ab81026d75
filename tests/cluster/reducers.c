/* Applications that check everything. */
#include "reducers.h"

#include <math.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/testing.h"
#include "graph/choose.h"

#define TICK (5 * MS)

enum { TIMER_TICK, TIMER_STEP, TIMER_WORK, TIMER_WAKE };

static void broken(const struct reducer *reducer, const char *what, uint64_t value) {
  pwi_sim_fail(reducer->team->cluster.sim, PAWL_CORRUPT, "node %u, step %llu: %s (%llu)", reducer->index,
               (unsigned long long)reducer->steps, what, (unsigned long long)value);
}

static size_t value_count(const struct reducer *reducer) {
  size_t other = reducer->team->other_values[reducer->index];
  return other ? other : reducer->team->values;
}

static struct pwi_sender id_of(const struct reducer *reducer) {
  struct pwi_client_state state;
  if (!reducer->client.client) return (struct pwi_sender){0};
  pwi_client_state(reducer->client.client, &state);
  return (struct pwi_sender){state.sender};
}

/* --- what is known of members and graphs ---------------------------------------------------------------- */

static void note_owner(struct reducer *reducer) {
  struct pwi_sender id = id_of(reducer);
  if (id.id > 0 && id.id < 4096) reducer->team->owners[id.id] = reducer->index + 1;
}

static void note_membership(struct reducer *reducer) {
  struct team *team = reducer->team;
  size_t count = 0;
  if (!reducer->client.client || reducer->group.id == 0) return;
  const struct pwi_membership *membership = pwi_client_membership(reducer->client.client);
  const struct pwi_membership_group *group = pwi_membership_group(membership, reducer->group);
  if (!group) return;
  const struct pwi_membership_member *members = pwi_membership_members(membership, reducer->group, &count);
  for (size_t i = 0; i < team->membership_count; i++)
    if (team->memberships[i].number == group->changed) return;
  assert_true(team->membership_count < 512 && count <= REDUCERS_MAX + 1);
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

static void note_sent(struct reducer *reducer) {
  const struct pwi_reduce *engine = reducer->engine;
  size_t count = value_count(reducer);
  struct sent *sent = &reducer->sent[reducer->sent_next++ % SENT_MAX];
  if (!sent->values) sent->values = pwi_alloc_zero(count + 3, sizeof(float));
  assert_non_null(sent->values);
  sent->version = engine->completed + 1;
  sent->epoch = engine->epoch;
  sent->id = id_of(reducer).id;
  memcpy(sent->values, reducer->values, count * sizeof(float));
  memcpy(sent->values + count, reducer->bias, sizeof reducer->bias);
}

/* A step is repeated in a later epoch without packing again, if its tensors have not changed. */
static const struct sent *find_sent(const struct team *team, uint64_t id, uint64_t version, struct reduce_epoch epoch) {
  const struct sent *found = NULL;
  const struct reducer *reducer = id < 4096 && team->owners[id] ? &team->reducers[team->owners[id] - 1] : NULL;
  for (size_t i = 0; reducer && i < SENT_MAX; i++) {
    const struct sent *sent = &reducer->sent[i];
    if (sent->values && sent->version == version && pwi_reduce_epoch_compare(sent->epoch, epoch) <= 0 &&
        (!found || pwi_reduce_epoch_compare(sent->epoch, found->epoch) > 0))
      found = sent;
  }
  return found;
}

/* --- checks --------------------------------------------------------------------------------------------- */

static float value_at(const struct reducer *reducer, size_t i) {
  size_t count = value_count(reducer);
  return i < count ? reducer->values[i] : reducer->bias[i - count];
}

/* Compares the tensors with the average of what these members have sent, added by ascending id. */
static bool is_average(const struct reducer *reducer, const struct sent *const *parts, size_t count) {
  size_t values = value_count(reducer) + 3;
  for (size_t i = 0; i < values; i++) {
    volatile float sum = parts[0]->values[i];
    for (size_t k = 1; k < count; k++) sum = sum + parts[k]->values[i];
    float expected = sum / (float)count, found = value_at(reducer, i);
    bool is_near = reducer->team->narrow && fabsf(expected - found) <= 0.05f;
    if (memcmp(&expected, &found, sizeof found) != 0 && !is_near) return false;
  }
  return true;
}

struct expectation {
  const struct sent *parts[REDUCERS_MAX + 1]; /* by ascending id */
  size_t count, own;
  uint32_t inputs;
  bool is_forgotten; /* what was sent is not remembered any more */
};

static void expect(struct reducer *reducer, struct expectation *expectation) {
  struct team *team = reducer->team;
  const struct pawl_reduce_report *report = &reducer->report;
  struct reduce_epoch epoch = reducer->engine->epoch;
  const uint64_t *ids = NULL;
  size_t count = members_of(team, report->number, &ids), own = 0;
  *expectation = (struct expectation){0};
  if (count == 0) broken(reducer, "a number that no member knows", report->number);
  if (epoch.number != report->number) broken(reducer, "the report has another number", report->number);
  if (count != report->size) broken(reducer, "another number of members took part", report->size);
  while (own < count && ids[own] != reducer->engine->own_id) own++;
  if (own == count) broken(reducer, "took part without being a member", report->number);
  struct pwi_graph *graph = graph_of(team, (uint32_t)count);
  for (size_t i = 0; i < count; i++) {
    if (i != own && !(graph && pwi_graph_has(graph, (uint32_t)i, (uint32_t)own))) continue;
    const struct sent *sent = find_sent(team, ids[i], report->iteration, epoch);
    if (i == own) expectation->own = expectation->count;
    if (i != own) expectation->inputs++;
    if (sent) expectation->parts[expectation->count++] = sent;
    const struct reducer *other =
        ids[i] < 4096 && team->owners[ids[i]] ? &team->reducers[team->owners[ids[i]] - 1] : NULL;
    if (!sent && other && other->sent_next > SENT_MAX) expectation->is_forgotten = true; /* this node stood still */
  }
  pwi_graph_destroy(graph);
}

/* BSP: the average of the own tensors and some of the inputs. */
static bool is_average_of_some(const struct reducer *reducer, const struct expectation *all) {
  for (unsigned mask = 0; mask < 1u << all->count; mask++) {
    const struct sent *parts[REDUCERS_MAX + 1];
    size_t count = 0;
    if (!(mask >> all->own & 1)) continue;
    for (size_t i = 0; i < all->count; i++)
      if (mask >> i & 1) parts[count++] = all->parts[i];
    if (count == reducer->report.used + 1 && is_average(reducer, parts, count)) return true;
  }
  return false;
}

static void check_result(struct reducer *reducer) {
  struct team *team = reducer->team;
  struct expectation expectation;
  const struct pawl_reduce_report *report = &reducer->report;
  team->checked++;
  team->used += report->used;
  team->expected += report->expected;
  team->current += report->current;
  if (report->used > report->expected || report->current > report->used) broken(reducer, "more used than expected", 0);
  if (team->has_closed || team->mode == PAWL_REDUCE_ASYNC || team->significant > 0) return;
  expect(reducer, &expectation);
  if (expectation.is_forgotten) return;
  if (report->expected != expectation.inputs) broken(reducer, "another number of inputs", report->expected);
  if (team->mode == PAWL_REDUCE_BSP) {
    if (!is_average_of_some(reducer, &expectation)) broken(reducer, "no average of what was sent", report->iteration);
    return;
  }
  if (expectation.count != expectation.inputs + 1)
    broken(reducer, "used an input that was not sent", report->iteration);
  if (report->current != report->expected) broken(reducer, "an input is missing", report->current);
  if (!is_average(reducer, expectation.parts, expectation.count))
    broken(reducer, "not the average of what was sent", report->iteration);
}

/* The first work in an epoch shows from which iteration the member begins. */
static void check_epoch(struct reducer *reducer) {
  struct team *team = reducer->team;
  const struct pwi_reduce *engine = reducer->engine;
  uint64_t iteration = engine->phase == PHASE_ADOPT ? engine->base : engine->completed;
  if (team->mode == PAWL_REDUCE_ASYNC || pwi_reduce_epoch_compare(reducer->epoch, engine->epoch) == 0) return;
  if (pwi_reduce_epoch_compare(reducer->epoch, engine->epoch) > 0) broken(reducer, "an older epoch", iteration);
  reducer->epoch = engine->epoch;
  for (size_t i = 0; i < team->epoch_count; i++) {
    if (pwi_reduce_epoch_compare(team->epochs[i].epoch, engine->epoch) != 0) continue;
    if (iteration != team->epochs[i].iteration) broken(reducer, "an epoch has two iterations", iteration);
    return;
  }
  if (team->epoch_count == 1024) return;
  team->epochs[team->epoch_count].epoch = engine->epoch;
  team->epochs[team->epoch_count++].iteration = iteration;
}

/* A member that has taken over a model packs what another one has packed for the same version. */
static void check_adopted(struct reducer *reducer) {
  struct team *team = reducer->team;
  size_t bytes = value_count(reducer) * sizeof(float);
  uint64_t version = reducer->engine->completed + 1;
  if (reducer->carried != (double)reducer->engine->completed)
    broken(reducer, "the model and its iteration differ", (uint64_t)reducer->carried);
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
  broken(reducer, "a model that no member has", version);
}

/* --- the application ------------------------------------------------------------------------------------ */

/* The next tensors depend on all that was received. */
static void compute(struct reducer *reducer) {
  if (reducer->team->still) return;
  for (size_t i = 0; i < value_count(reducer); i++) {
    uint64_t key[3] = {reducer->index, (uint64_t)reducer->carried, i};
    float noise = (float)(pwi_hash(key, sizeof key, 7) % 2001) / 1000.0f - 1.0f;
    reducer->values[i] = reducer->values[i] * 0.5f + noise;
  }
  for (size_t i = 0; i < 3; i++) reducer->bias[i] = reducer->bias[i] * 0.5f + (float)(reducer->index + i);
}

static int64_t compute_time(struct reducer *reducer) {
  struct team *team = reducer->team;
  if (team->slow[reducer->index]) return team->slow[reducer->index];
  return team->compute_max ? (int64_t)pwi_random_below(reducer->client.random, (uint64_t)team->compute_max) : 0;
}

static void compute_later(struct reducer *reducer) {
  reducer->is_computing = true;
  pwi_cluster_timer(&reducer->client, compute_time(reducer), TIMER_STEP);
}

static void step_over(struct reducer *reducer) {
  uint64_t before = (uint64_t)reducer->carried;
  pawl_status status = pwi_reduce_end(reducer->engine, &reducer->report);
  if (status == PAWL_DIVERGED || status == PAWL_OVERFLOW) {
    reducer->diverged++;
    reducer->values[0] = 0;
    compute_later(reducer);
    return;
  }
  if (status) {
    reducer->status = status;
    return;
  }
  reducer->steps++;
  reducer->adopted += reducer->report.is_adopted;
  reducer->regenerated += reducer->report.is_regenerated;
  if (reducer->report.iteration != before + 1)
    broken(reducer, "iterations do not rise by one", reducer->report.iteration);
  note_membership(reducer);
  check_result(reducer);
  reducer->carried = (double)reducer->report.iteration;
  if (reducer->report.iteration < reducer->team->iterations || reducer->team->lingers)
    compute_later(reducer);
  else
    reducer->must_close = true;
}

static void begin_step(struct reducer *reducer) {
  reducer->is_computing = false;
  if (!reducer->engine || reducer->must_close || reducer->status) return;
  compute(reducer);
  if (reducer->poison != 0) reducer->values[0] = reducer->poison;
  reducer->poison = 0;
  pwi_reduce_begin(reducer->engine);
}

static void work(struct reducer *reducer) {
  struct pwi_reduce *engine = reducer->engine;
  reducer->is_working = false;
  bool is_pack = engine->phase == PHASE_STAGE, is_adopt = engine->phase == PHASE_ADOPT;
  check_epoch(reducer);
  pawl_status status = pwi_reduce_work(engine);
  if (is_pack && !status) note_sent(reducer);
  pwi_reduce_worked(engine, status);
  if (is_adopt) check_adopted(reducer);
}

static void look(struct reducer *reducer) {
  struct pwi_reduce *engine = reducer->engine;
  if (!engine || reducer->is_working || reducer->must_close) return;
  enum pwi_reduce_want want = pwi_reduce_want(engine);
  if (want == PWI_REDUCE_OVER) {
    step_over(reducer);
  } else if (want == PWI_REDUCE_WORK) {
    reducer->is_working = true;
    pwi_cluster_timer(&reducer->client, (int64_t)pwi_random_below(reducer->client.random, 2 * MS), TIMER_WORK);
  }
}

static void wakes(void *context) {
  struct reducer *reducer = context;
  pwi_cluster_timer(&reducer->client, 0, TIMER_WAKE);
}

static void has_closed(void *context) {
  struct reducer *reducer = context;
  reducer->is_closed = true;
}

static struct pwi_reduce_graph graph_option(const struct team *team) {
  struct pwi_reduce_graph graph = {.seed = 1, .is_default = !team->graph};
  snprintf(graph.name, sizeof graph.name, "%s", team->graph ? team->graph : "default");
  if (team->graph) assert_true(pwi_topology_find(team->graph, &graph.topology));
  return graph;
}

static void open_engine(struct reducer *reducer) {
  struct team *team = reducer->team;
  struct pawl_tensor tensors[] = {{reducer->values, value_count(reducer), PAWL_F32}, {reducer->bias, 3, PAWL_F32}};
  struct pawl_tensor carried = {&reducer->carried, 1, PAWL_F64};
  struct pwi_reduce_config config = {.peers = reducer->peers,
                                     .net = reducer->client.net,
                                     .group = reducer->group,
                                     .name = "model",
                                     .tensors = tensors,
                                     .count = 2,
                                     .carried = &carried,
                                     .carried_count = 1,
                                     .mode = team->mode,
                                     .what = team->what,
                                     .narrow = team->narrow,
                                     .significant = team->significant,
                                     .graph = graph_option(team),
                                     .context = reducer,
                                     .wakes = wakes,
                                     .closed = has_closed};
  for (size_t i = 0; i < value_count(reducer); i++) reducer->values[i] = (float)(reducer->index + 1);
  reducer->carried = 0;
  reducer->status = PAWL_OK;
  reducer->must_close = reducer->is_closed = reducer->is_working = false;
  reducer->failed = pwi_reduce_create(&config, &reducer->engine);
  if (reducer->failed)
    broken(reducer, "cannot open", (uint64_t)-reducer->failed);
  else
    compute_later(reducer);
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct reducer *reducer = (struct reducer *)((char *)asking - offsetof(struct reducer, asking));
  reducer->is_asking = false;
  if (status || size != 8) {
    pwi_sim_fail(reducer->team->cluster.sim, status, "node %u cannot join the group", reducer->index);
    return;
  }
  reducer->joined_as = id_of(reducer);
  reducer->group.id = pwi_get_u64(payload);
}

static void join(struct reducer *reducer) {
  struct team *team = reducer->team;
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, REDUCERS_GROUP);
  pwi_write_u32(&writer, team->founders);
  reducer->asking.replied = joined;
  reducer->is_asking = true;
  pawl_status status =
      pwi_client_ask(reducer->client.client, &reducer->asking, PWI_ASK_PEERS, writer.data, writer.size);
  pwi_writer_fini(&writer);
  if (status) pwi_sim_fail(team->cluster.sim, status, "node %u cannot ask", reducer->index);
}

static bool is_complete(const struct reducer *reducer) {
  const struct pwi_membership *membership = pwi_client_membership(reducer->client.client);
  const struct pwi_membership_group *group =
      reducer->group.id ? pwi_membership_group(membership, reducer->group) : NULL;
  return group && group->complete;
}

void reducer_close(struct reducer *reducer) {
  pwi_reduce_close(reducer->engine, pwi_net_now(reducer->client.net) + 2 * PWI_SIM_SECOND);
}

static void tick(struct reducer *reducer) {
  note_owner(reducer);
  bool is_renewed = id_of(reducer).id != 0 && id_of(reducer).id != reducer->joined_as.id;
  if (is_renewed && !reducer->is_asking && !reducer->must_not_open) join(reducer);
  note_membership(reducer);
  if (!reducer->engine && !reducer->must_not_open && is_complete(reducer)) open_engine(reducer);
  struct pwi_reduce *engine = reducer->engine;
  if (engine && reducer->must_close && !engine->is_closing && !reducer->is_working) reducer_close(reducer);
  int64_t now = pwi_net_now(reducer->client.net);
  if (engine && !reducer->is_closed && pwi_reduce_look_at(engine) <= now) pwi_reduce_look(engine, now);
  pwi_cluster_timer(&reducer->client, TICK, TIMER_TICK);
}

static void timer(void *context, uint64_t cookie) {
  struct reducer *reducer = context;
  if (cookie == TIMER_TICK) tick(reducer);
  if (cookie == TIMER_STEP) begin_step(reducer);
  if (cookie == TIMER_WORK && reducer->engine && reducer->is_working) work(reducer);
  look(reducer);
}

static void started(void *context) {
  struct reducer *reducer = context;
  pawl_status status = pwi_client_peers(reducer->client.client, &reducer->peers);
  if (status) pwi_sim_fail(reducer->team->cluster.sim, status, "a node cannot start");
  pwi_cluster_timer(&reducer->client, TICK, TIMER_TICK);
}

/* The process is gone with all that it knew. */
static void stopped(void *context) {
  struct reducer *reducer = context;
  if (reducer->engine) reducer->engine->is_closed = false; /* its net is gone with all regions */
  pwi_reduce_destroy(reducer->engine);
  reducer->engine = NULL;
  reducer->epoch = (struct reduce_epoch){0};
  reducer->group.id = 0;
  reducer->joined_as.id = 0;
  reducer->is_asking = reducer->is_working = reducer->is_computing = false;
}

static void heard(void *context, const struct pwi_message *message) {
  (void)message;
  note_owner(context);
}

static void changed(void *context) { note_membership(context); }

void team_open(struct team *team, const struct pwi_cluster_config *config) {
  if (team->values == 0) team->values = 1500;
  if (team->founders == 0) team->founders = team->count;
  cluster_open(&team->cluster, config);
  for (uint32_t i = 0; i < team->count; i++) {
    struct reducer *reducer = &team->reducers[i];
    bool must_not_open = reducer->must_not_open;
    *reducer = (struct reducer){.team = team, .index = i, .must_not_open = must_not_open};
    reducer->values = pwi_alloc_zero(value_count(reducer), sizeof(float));
    assert_non_null(reducer->values);
    reducer->client = (struct pwi_cluster_client){.job = "reducers",
                                                  .listens = true,
                                                  .started = started,
                                                  .stopped = stopped,
                                                  .timer = timer,
                                                  .heard = heard,
                                                  .membership_changed = changed,
                                                  .context = reducer};
    sprintf(reducer->client.name, "r%u", i);
    cluster_client_add(&team->cluster, &reducer->client);
  }
}

void team_close(struct team *team) {
  pwi_cluster_close(&team->cluster);
  for (uint32_t i = 0; i < team->count; i++) {
    stopped(&team->reducers[i]);
    for (size_t k = 0; k < SENT_MAX; k++) pwi_free(team->reducers[i].sent[k].values);
    pwi_free(team->reducers[i].values);
  }
}

bool team_is_running(void *context) {
  struct team *team = context;
  for (uint32_t i = 0; i < team->count; i++) {
    const struct reducer *reducer = &team->reducers[i];
    if (!reducer->client.client || reducer->must_not_open) continue;
    if (reducer->report.iteration < team->iterations && !reducer->status) return true;
    if (!team->lingers && !reducer->is_closed && !reducer->status) return true;
  }
  return false;
}

static void print_peer(const struct reduce_peer *peer) {
  print_message(
      "    peer %llu linked=%d gone=%d in=%d out=%d served=%d slot=%d full=%d wanted=%llu target=%d sent=%llu "
      "acked=%llu state=%d\n",
      (unsigned long long)peer->sender.id, peer->is_linked, peer->is_gone, peer->is_in, peer->is_out, peer->is_served,
      peer->slot != NULL, peer->slot && peer->slot->is_full, (unsigned long long)(peer->slot ? peer->slot->wanted : 0),
      peer->target.has_remote, (unsigned long long)peer->target.sent, (unsigned long long)peer->acked, peer->has_state);
}

void team_print(const struct team *team) {
  for (uint32_t i = 0; i < team->count; i++) {
    const struct reducer *reducer = &team->reducers[i];
    const struct pwi_reduce *engine = reducer->engine;
    print_message(
        "node %u id=%llu engine=%d iteration=%llu status=%d closed=%d must_close=%d working=%d computing=%d\n", i,
        (unsigned long long)id_of(reducer).id, engine != NULL, (unsigned long long)reducer->report.iteration,
        reducer->status, reducer->is_closed, reducer->must_close, reducer->is_working, reducer->is_computing);
    if (!engine) continue;
    print_message(
        "  phase=%d outside=%d closing=%d bye=%d completed=%llu staged=%llu called=%llu.%u.%llu epoch=%llu.%u.%llu "
        "given=%d donor=%llu users=%zu,%zu passed=%llu arrived=%d %s\n",
        engine->phase, engine->is_outside, engine->is_closing, engine->has_left, (unsigned long long)engine->completed,
        (unsigned long long)engine->staged, (unsigned long long)engine->called.number, engine->called.round,
        (unsigned long long)engine->called.caller, (unsigned long long)engine->epoch.number, engine->epoch.round,
        (unsigned long long)engine->epoch.caller, engine->has_given_state, (unsigned long long)engine->donor,
        engine->users[0], engine->users[1], (unsigned long long)engine->passed, engine->has_arrived, engine->problem);
    for (const struct reduce_peer *peer = engine->peers; peer; peer = peer->next) print_peer(peer);
  }
}

void team_run(struct team *team, int64_t limit) {
  pawl_status status = pwi_cluster_run_while(&team->cluster, team_is_running, team, limit);
  if (status) team_print(team);
  cluster_check(&team->cluster, status, "running");
}
