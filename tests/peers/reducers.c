/* Applications that check everything. */
#include "reducers.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/testing.h"

#define TICK (5 * MS)

enum { TIMER_TICK, TIMER_STEP, TIMER_WORK, TIMER_WAKE };

static void enter(const struct reducer *reducer) {
  if (reducer->team->entered) reducer->team->entered(reducer);
}

static void leave(const struct reducer *reducer) {
  if (reducer->team->left) reducer->team->left(reducer);
}

/* --- the application ------------------------------------------------------------------------------------ */

/* The next tensors depend on all that was received. */
static void compute(struct reducer *reducer) {
  if (reducer->team->still) return;
  uint64_t key[2] = {reducer->index, (uint64_t)reducer->carried};
  uint32_t drawn = (uint32_t)pwi_hash(key, sizeof key, 7);
  size_t count = reducer_values(reducer);
  float *values = reducer->values;
  for (size_t i = 0; i < count; i++) {
    drawn = drawn * 1664525 + 1013904223; /* Numerical Recipes: a hash of every value would take half of the test */
    float noise = (float)(int32_t)(drawn & 0xffffff00u) * 0x1p-31f;
    values[i] = values[i] * 0.5f + noise;
  }
  for (size_t i = 0; i < BIAS; i++) reducer->bias[i] = reducer->bias[i] * 0.5f + (float)(reducer->index + i);
  for (uint32_t i = 0; i < REDUCERS_MAX; i++) reducer->marks[i] = 0;
  reducer->marks[reducer->index] = (float)reducer->carried + 1;
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

static bool is_done(const struct reducer *reducer) {
  const struct team *team = reducer->team;
  uint64_t target = team->close_at[reducer->index];
  if (target) return reducer->report.iteration >= target;
  return reducer->report.iteration >= team->iterations && !team->lingers;
}

static void step_over(struct reducer *reducer) {
  uint64_t before = (uint64_t)reducer->carried;
  uint64_t sent = reducer->engine->bytes_sent;
  enter(reducer);
  pawl_status status = pwi_reduce_end(reducer->engine, &reducer->report);
  leave(reducer);
  if (!status) reducer->reported += reducer->report.bytes_sent;
  if (!status && reducer->reported != sent) reducer_broken(reducer, "reports miss bytes that were sent", sent);
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
    reducer_broken(reducer, "iterations do not rise by one", reducer->report.iteration);
  reducer_note_membership(reducer);
  reducer_check_result(reducer);
  reducer->carried = (double)reducer->report.iteration;
  if (is_done(reducer))
    reducer->must_close = true;
  else
    compute_later(reducer);
}

static void begin_step(struct reducer *reducer) {
  reducer->is_computing = false;
  if (!reducer->engine || reducer->must_close || reducer->status) return;
  compute(reducer);
  if (reducer->poison != 0) reducer->values[0] = reducer->poison;
  reducer->poison = 0;
  enter(reducer);
  pwi_reduce_begin(reducer->engine);
  leave(reducer);
}

static void work(struct reducer *reducer) {
  struct pwi_reduce *engine = reducer->engine;
  reducer->is_working = false;
  bool is_pack = engine->phase == PHASE_STAGE && !engine->is_planning;
  bool is_adopt = engine->phase == PHASE_ADOPT && !engine->is_planning;
  if (!engine->is_planning) reducer_check_epoch(reducer);
  enter(reducer);
  pawl_status status = pwi_reduce_work(engine);
  leave(reducer);
  if (is_pack && !status) reducer_note_sent(reducer);
  enter(reducer);
  pwi_reduce_worked(engine, status);
  leave(reducer);
  if (is_adopt) reducer_check_adopted(reducer);
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
  struct pawl_tensor tensors[] = {{reducer->values, reducer_values(reducer), PAWL_F32},
                                  {reducer->bias, BIAS, PAWL_F32},
                                  {reducer->marks, REDUCERS_MAX, PAWL_F32}};
  struct pawl_tensor carried = {&reducer->carried, 1, PAWL_F64};
  struct pwi_reduce_config config = {.peers = reducer->peers,
                                     .net = reducer->client.net,
                                     .group = reducer->group,
                                     .name = "model",
                                     .tensors = tensors,
                                     .count = 3,
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
  for (size_t i = 0; i < reducer_values(reducer); i++) reducer->values[i] = (float)(reducer->index + 1);
  reducer->carried = 0;
  reducer->status = PAWL_OK;
  reducer->must_close = reducer->is_closed = reducer->is_working = false;
  enter(reducer);
  reducer->failed = pwi_reduce_create(&config, &reducer->engine);
  leave(reducer);
  if (reducer->failed && team->may_fail)
    reducer->must_not_open = true;
  else if (reducer->failed)
    reducer_broken(reducer, "cannot open", (uint64_t)-reducer->failed);
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
  reducer->joined_as = reducer_id(reducer);
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
  struct team *team = reducer->team;
  assert_true(team->closed_count < CLOSED_MAX);
  team->closed[team->closed_count++] = reducer_id(reducer).id;
  enter(reducer);
  pwi_reduce_close(reducer->engine, pwi_net_now(reducer->client.net) + 2 * PWI_SIM_SECOND);
  leave(reducer);
}

static void tick(struct reducer *reducer) {
  reducer_note_owner(reducer);
  bool is_renewed = reducer_id(reducer).id != 0 && reducer_id(reducer).id != reducer->joined_as.id;
  if (is_renewed && !reducer->is_asking && !reducer->must_not_open) join(reducer);
  reducer_note_membership(reducer);
  if (!reducer->engine && !reducer->must_not_open && is_complete(reducer)) open_engine(reducer);
  struct pwi_reduce *engine = reducer->engine;
  if (engine && reducer->must_close && !engine->is_closing && !reducer->is_working) reducer_close(reducer);
  int64_t now = pwi_net_now(reducer->client.net);
  if (engine && !reducer->is_closed && pwi_reduce_look_at(engine) <= now) {
    enter(reducer);
    pwi_reduce_look(engine, now);
    leave(reducer);
  }
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
  reducer_note_last(reducer);
  if (reducer->engine) reducer->engine->is_closed = false; /* its net is gone with all regions */
  pwi_reduce_destroy(reducer->engine);
  reducer->engine = NULL;
  pwi_free(reducer->view);
  reducer->view = NULL;
  reducer->reported = 0;
  memset(reducer->last_used, 0, sizeof reducer->last_used);
  reducer->epoch = (struct reduce_epoch){0};
  reducer->group.id = 0;
  reducer->joined_as.id = 0;
  reducer->is_asking = reducer->is_working = reducer->is_computing = false;
}

static void heard(void *context, const struct pwi_message *message) {
  (void)message;
  reducer_note_owner(context);
}

static void changed(void *context) { reducer_note_membership(context); }

void team_open(struct team *team, const struct pwi_cluster_config *config) {
  if (team->values == 0) team->values = 1500;
  if (team->founders == 0) team->founders = team->count;
  cluster_open(&team->cluster, config);
  for (uint32_t i = 0; i < team->count; i++) {
    struct reducer *reducer = &team->reducers[i];
    bool must_not_open = reducer->must_not_open;
    *reducer = (struct reducer){.team = team, .index = i, .must_not_open = must_not_open};
    reducer->values = pwi_alloc_zero(reducer_values(reducer), sizeof(float));
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
    reducer_forget_sent(&team->reducers[i]);
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
        (unsigned long long)reducer_id(reducer).id, engine != NULL, (unsigned long long)reducer->report.iteration,
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
