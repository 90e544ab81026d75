/* The cluster of a scene: its set-up in the order of time, and what its clients do from then on. */
#include <stddef.h>
#include <stdio.h>

#include "protocol/protocol.h"
#include "ring/place.h"
#include "sim/explore/inside.h"

#define VECTOR "explore/sum"
#define GROUP "explore/.crew"
#define SET_UP_NS (20 * PWI_SIM_SECOND)

static const uint64_t key = KEY;

/* --- calls ---------------------------------------------------------------------------------------------- */

static void broken(struct worker *worker, const char *what, pawl_status status) {
  SCENE_FAIL(worker->scene, "%s %s: %s", worker->client.name, what, pawl_status_name(status));
}

static void pushed(struct pwi_task *task) {
  struct push *push = (struct push *)((char *)task - offsetof(struct push, task));
  push->is_over = true;
  if (task->status) broken(push->worker, "saw a push fail", task->status);
}

static pawl_status start_push(struct push *push) {
  struct pwi_where where = {.keys = &key, .count = 1};
  push->task = (struct pwi_task){.finished = pushed};
  push->is_begun = true;
  return pwi_client_start(push->worker->client.client, &push->task, push->worker->flow, PWI_REQUEST_PUSH, &where,
                          &push->value, NULL);
}

static struct push *next_push(struct scene *scene, const struct worker *worker) {
  for (uint32_t i = scene->config->clients; i < scene->push_count; i++)
    if (scene->pushes[i].worker == worker && !scene->pushes[i].is_begun) return &scene->pushes[i];
  return NULL;
}

/* --- barriers ------------------------------------------------------------------------------------------- */

static bool is_alive(const struct worker *worker) { return worker->client.client != NULL; }

static void read_all(struct pwi_task *task) {
  struct worker *worker = (struct worker *)((char *)task - offsetof(struct worker, pull));
  const struct scene *scene = worker->scene;
  int64_t all = 0;
  worker->has_read = true;
  if (task->status) broken(worker, "could not pull", task->status);
  for (uint32_t i = 0; i < scene->push_count; i++) all += scene->pushes[i].value;
  if (worker->seen != all)
    SCENE_FAIL(scene, "%s passed the barrier and reads %lld instead of %lld", worker->client.name,
               (long long)worker->seen, (long long)all);
}

static void read_if_passed(struct worker *worker) {
  struct pwi_where where = {.keys = &key, .count = 1};
  if (!worker->has_ticked || !worker->has_passed) return;
  worker->pull = (struct pwi_task){.finished = read_all};
  pawl_status status = pwi_client_start(worker->client.client, &worker->pull, worker->flow, PWI_REQUEST_PULL, &where,
                                        NULL, &worker->seen);
  if (status) broken(worker, "could not start a pull", status);
}

static void ticked(struct pwi_task *task) {
  struct worker *worker = (struct worker *)((char *)task - offsetof(struct worker, tick));
  worker->has_ticked = true;
  if (task->status) broken(worker, "could not tick", task->status);
  read_if_passed(worker);
}

/* A tick follows the answers to earlier pushes. So all pushes have been answered. */
static void passed(struct pwi_task *task) {
  struct worker *worker = (struct worker *)((char *)task - offsetof(struct worker, await));
  const struct scene *scene = worker->scene;
  worker->has_passed = true;
  if (task->status) broken(worker, "could not await the others", task->status);
  for (uint32_t i = 0; i < scene->push_count; i++)
    if (!scene->pushes[i].is_over) broken(worker, "passed the barrier before the others came", PAWL_OK);
  read_if_passed(worker);
}

static void meet(struct worker *worker) {
  struct pwi_client *client = worker->client.client;
  worker->has_begun = true;
  worker->tick = (struct pwi_task){.finished = ticked};
  worker->await = (struct pwi_task){.finished = passed};
  pawl_status status = start_push(next_push(worker->scene, worker));
  if (!status) status = pwi_client_tick(client, &worker->tick, worker->group, 1);
  if (!status) status = pwi_client_await(client, &worker->await, worker->group, 1);
  if (status) broken(worker, "could not begin a tick", status);
}

/* --- what clients do ------------------------------------------------------------------------------------ */

bool pwi_scene_may_call(const struct scene *scene, const struct worker *worker) {
  return is_alive(worker) && next_push((struct scene *)scene, worker);
}

void pwi_scene_call(struct worker *worker) {
  if (worker->scene->config->scenario == PWI_EXPLORE_BARRIER) {
    meet(worker);
    return;
  }
  pawl_status status = start_push(next_push(worker->scene, worker));
  if (status) broken(worker, "could not start a push", status);
}

bool pwi_scene_is_over(const struct scene *scene) {
  for (uint32_t i = 0; i < scene->push_count; i++)
    if (!scene->pushes[i].is_over && is_alive(scene->pushes[i].worker)) return false;
  for (size_t i = 0; i < scene->config->clients && scene->config->scenario == PWI_EXPLORE_BARRIER; i++)
    if (!scene->workers[i].has_read) return false;
  return true;
}

pawl_status pwi_scene_read(struct scene *scene, int64_t *sum_out) {
  struct pwi_where where = {.keys = &key, .count = 1};
  struct pwi_task task = {0};
  struct worker *reader = &scene->workers[0];
  pawl_status status = pwi_cluster_call(&reader->client, reader->flow, PWI_REQUEST_PULL, &where, NULL, sum_out, &task);
  return status ? status : task.status;
}

/* --- the set-up ----------------------------------------------------------------------------------------- */

static void tune(struct pwi_sim_config *config, void *context) {
  const struct scene *scene = context;
  config->prints = scene->config->merge;
  config->link = config->plane = config->hang_up = config->late = config->disk_sync = (struct pwi_sim_delay){0};
  config->early_done_chance = 1;
  config->split_chance = config->gap_chance = config->ready_chance = 0;
  config->late_chance = config->garble_chance = 0;
  config->limits.beat_ns = 0;
  config->trace = false;
}

static struct pwi_manager_figures figures_of(const struct scene *scene) {
  struct pwi_manager_figures figures;
  pwi_manager_figures(scene->cluster.manager, &figures);
  return figures;
}

static bool is_not_whole(void *scene) { return !figures_of(scene).whole; }
static bool has_retired_nobody(void *scene) { return figures_of(scene).retired == 0; }
static bool is_false(void *flag) { return !*(bool *)flag; }

static pawl_status wait_while(struct scene *scene, bool (*predicate)(void *context), void *context) {
  return pwi_cluster_run_while(&scene->cluster, predicate, context, SET_UP_NS);
}

static uint64_t id_of(const struct scene *scene, size_t server) {
  struct pwi_server_state state;
  pwi_server_state(scene->cluster.servers[server].server, &state);
  return state.node;
}

static void write_move(struct pwi_writer *writer, struct pawl_range positions, uint64_t node) {
  pwi_write_u64(writer, positions.begin);
  pwi_write_u64(writer, positions.end);
  pwi_write_u64(writer, node);
}

/* The first server becomes the head of all arcs. */
static pawl_status gather(struct scene *scene) {
  struct pwi_writer writer = {0};
  pawl_status said = PAWL_OK;
  write_move(&writer, pawl_range_of(0, PWI_RING_END), id_of(scene, 0));
  pawl_status status = writer.status;
  if (!status) status = pwi_cluster_ask(&scene->workers[0].client, PWI_ASK_MOVE, &writer, &said);
  pwi_writer_fini(&writer);
  if (!status) status = said;
  return status ? status : wait_while(scene, is_not_whole, scene);
}

static void entered(struct pwi_task *task) {
  struct worker *worker = (struct worker *)((char *)task - offsetof(struct worker, enter));
  if (task->status) broken(worker, "could not enter", task->status);
  worker->has_entered = true;
}

static pawl_status enter_group(struct worker *worker) {
  struct pwi_writer writer = {0};
  pawl_status said = PAWL_OK;
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, worker->scene->config->clients);
  pawl_status status = writer.status;
  if (!status) status = pwi_cluster_ask(&worker->client, PWI_ASK_GROUP, &writer, &said);
  pwi_writer_fini(&writer);
  if (!status) status = said;
  if (!status) status = pwi_cluster_open_vector(&worker->client, GROUP, 0, &worker->group);
  worker->enter = (struct pwi_task){.finished = entered};
  if (!status) status = pwi_client_enter(worker->client.client, &worker->enter, worker->group);
  return status;
}

static pawl_status add_worker(struct scene *scene, uint32_t index) {
  static const struct pawl_vector_options options = {
      .type = PAWL_I64, .width = 1, .size = 10, .layout = PAWL_LAYOUT_SPARSE};
  struct worker *worker = &scene->workers[index];
  pawl_status said = PAWL_OK;
  worker->scene = scene;
  worker->index = index;
  worker->client.job = "explore";
  snprintf(worker->client.name, sizeof worker->client.name, "w%u", index % 10);
  pawl_status status = pwi_cluster_client_add(&scene->cluster, &worker->client);
  if (!status) status = pwi_cluster_wait_joined(&worker->client);
  if (status) return status;
  if (index == 0) return pwi_cluster_vector(&worker->client, VECTOR, &options, &worker->flow);
  status = pwi_cluster_ask(&worker->client, PWI_ASK_SYNC, NULL, &said);
  if (!status) status = said;
  return status ? status : pwi_cluster_open_vector(&worker->client, VECTOR, 0, &worker->flow);
}

/* The first push of each client is answered before the scene begins, so that there are links and clocks. */
static pawl_status prepare_pushes(struct scene *scene) {
  int64_t value = 1;
  pawl_status status = PAWL_OK;
  bool meets = scene->config->scenario == PWI_EXPLORE_BARRIER;
  scene->push_count = scene->config->clients + (meets ? scene->config->clients : scene->config->pushes);
  for (uint32_t i = 0; i < scene->push_count; i++, value *= 10)
    scene->pushes[i] = (struct push){.worker = &scene->workers[i % scene->config->clients], .value = value};
  for (uint32_t i = 0; i < scene->config->clients && !status; i++) {
    status = start_push(&scene->pushes[i]);
    if (!status) status = wait_while(scene, is_false, &scene->pushes[i].is_over);
  }
  for (uint32_t i = 0; i < scene->config->clients && meets && !status; i++) status = enter_group(&scene->workers[i]);
  for (uint32_t i = 0; i < scene->config->clients && meets && !status; i++)
    status = wait_while(scene, is_false, &scene->workers[i].has_entered);
  return status;
}

/* --- the change of the view ----------------------------------------------------------------------------- */

static void replied(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct worker *worker = (struct worker *)((char *)asking - offsetof(struct worker, asking));
  (void)payload, (void)size;
  bool has_crashed = worker->scene->past.crashes_left < worker->scene->config->crashes; /* of the target, perhaps */
  if (status && !has_crashed) broken(worker, "could not have an arc moved", status);
}

/* The position of the key; in the scenario `barrier` that of the group. */
static uint64_t find_position(const struct scene *scene) {
  const struct worker *worker = &scene->workers[0];
  bool meets = scene->config->scenario == PWI_EXPLORE_BARRIER;
  const struct pwi_entry *entry = pwi_flow_entry(meets ? worker->group : worker->flow);
  struct pwi_place place = pwi_entry_place(entry);
  return pwi_place_position(&place, meets ? pwi_group_key(entry->name) : key);
}

static const struct pwi_arc *arc_in(const struct scene *scene, const struct pwi_view *view) {
  return &view->arcs[pwi_view_arc_of(view, scene->position)];
}

/* The second member of the chain; in the scenario `move` a server that is no member. */
static uint64_t find_target(const struct scene *scene, const struct pwi_view *view) {
  const struct pwi_arc *arc = arc_in(scene, view);
  if (scene->config->scenario != PWI_EXPLORE_MOVE) return arc->chain[1].node.id;
  for (size_t i = 0; i < view->node_count; i++)
    if (pwi_arc_find(arc, view->nodes[i].node) == PWI_CHAIN_MAX) return view->nodes[i].node.id;
  return 0;
}

static pawl_status ask_to_move(struct scene *scene) {
  struct worker *worker = &scene->workers[0];
  const struct pwi_view *view = pwi_client_view(worker->client.client);
  struct pwi_writer writer = {0};
  scene->target = find_target(scene, view);
  write_move(&writer, pwi_view_arc_range(view, pwi_view_arc_of(view, scene->position)), scene->target);
  worker->asking.replied = replied;
  pawl_status status = writer.status;
  if (!status) status = pwi_client_ask(worker->client.client, &worker->asking, PWI_ASK_MOVE, writer.data, writer.size);
  pwi_writer_fini(&writer);
  return status;
}

/* The last client loses the manager, and is back just when it has been retired. */
static pawl_status retire(struct scene *scene) {
  struct pwi_sim *sim = scene->cluster.sim;
  struct pwi_sim_node client = scene->workers[scene->config->clients - 1].client.node,
                      manager = scene->cluster.manager_node;
  pwi_sim_cut(sim, client, manager);
  pwi_sim_cut(sim, manager, client);
  pawl_status status = wait_while(scene, has_retired_nobody, scene);
  pwi_sim_mend(sim, client, manager);
  pwi_sim_mend(sim, manager, client);
  return status;
}

/* No server has heard that a member of the arc is to be filled. */
static bool fills_nothing(void *context) {
  const struct scene *scene = context;
  for (size_t i = 0; i < scene->config->servers; i++) {
    const struct pwi_server *server = scene->cluster.servers[i].server;
    const struct pwi_view *view = server ? pwi_server_view(server) : NULL;
    const struct pwi_arc *arc = view && view->arc_count > 0 ? arc_in(scene, view) : NULL;
    if (arc && pwi_arc_full(arc) < arc->count) return false;
  }
  return true;
}

static pawl_status fill(struct scene *scene) {
  pwi_cluster_start(&scene->cluster, scene->config->servers - 1);
  pawl_status status = wait_while(scene, fills_nothing, scene);
  if (!status) scene->target = id_of(scene, scene->config->servers - 1);
  return status;
}

static bool knows_change(const struct scene *scene, const struct pwi_view *view) {
  if (!view) return false;
  const struct pwi_arc *arc = arc_in(scene, view);
  size_t place = pwi_arc_find(arc, (struct pwi_node){scene->target});
  if (scene->config->scenario != PWI_EXPLORE_FILL) return place == 0;
  return place != PWI_CHAIN_MAX && !arc->chain[place].filling;
}

bool pwi_scene_is_through(const struct scene *scene) {
  if (scene->config->scenario == PWI_EXPLORE_RETIRE) return true;
  for (size_t i = 0; i < scene->config->servers; i++) {
    const struct pwi_server *server = scene->cluster.servers[i].server;
    if (!server) return true;
    if (!knows_change(scene, pwi_server_view(server))) return false;
  }
  for (size_t i = 0; i < scene->config->clients; i++)
    if (!knows_change(scene, pwi_client_view(scene->workers[i].client.client))) return false;
  return true;
}

static pawl_status change_view(struct scene *scene) {
  scene->position = find_position(scene);
  switch (scene->config->scenario) {
  case PWI_EXPLORE_FILL:
    return fill(scene);
  case PWI_EXPLORE_RETIRE:
    return retire(scene);
  default:
    return ask_to_move(scene);
  }
}

/* --- beginning ------------------------------------------------------------------------------------------ */

static bool fits(const struct pwi_explore_config *config) {
  bool needs_two = config->scenario == PWI_EXPLORE_BARRIER;
  if (config->clients < 1 + (uint32_t)needs_two || config->clients > PWI_EXPLORE_CLIENTS) return false;
  bool moves = config->scenario == PWI_EXPLORE_MOVE;
  return config->scenario < PWI_EXPLORE_SCENARIOS && config->servers <= PWI_EXPLORE_SERVERS &&
         config->servers >= config->replicas + 1 + moves && (moves || config->replicas > 0) && config->pushes > 0 &&
         config->pushes <= PWI_EXPLORE_PUSHES && config->crashes <= (config->replicas > 0) && config->resets <= 1;
}

pawl_status pwi_scene_open(struct scene *scene, const struct pwi_explore_config *config) {
  *scene = (struct scene){
      .config = config,
      .past = {.crashes_left = config->crashes, .resets_left = config->resets, .early_left = config->early}};
  if (!fits(config)) return PAWL_INVALID;
  bool fills = config->scenario == PWI_EXPLORE_FILL;
  struct pwi_cluster_config cluster = {.seed = 1,
                                       .processes = config->servers - fills,
                                       .late = fills,
                                       .shards = 1,
                                       .replicas = config->replicas,
                                       .points = 1,
                                       .checked_hosts = true,
                                       .client_grace_ns = config->scenario == PWI_EXPLORE_RETIRE ? MS : 0,
                                       .tune = tune,
                                       .context = scene};
  pwi_planted_set(config->bug);
  pawl_status status = pwi_cluster_open(&scene->cluster, &cluster);
  for (uint32_t i = 0; i < scene->config->clients && !status; i++) status = add_worker(scene, i);
  if (!status) status = wait_while(scene, is_not_whole, scene);
  if (!status) status = gather(scene);
  if (!status) status = prepare_pushes(scene);
  if (!status) status = pwi_cluster_run_for(&scene->cluster, 1500 * MS); /* until clients have said that they idle */
  if (status) return status;
  scene->copies = pwi_scene_copies(scene);
  status = change_view(scene);
  scene->past.time = scene->began_at = pwi_sim_now(scene->cluster.sim);
  pwi_scene_call(&scene->workers[0]);
  if (config->scenario != PWI_EXPLORE_BARRIER && pwi_scene_may_call(scene, &scene->workers[1]))
    pwi_scene_call(&scene->workers[1]);
  return status ? status : pwi_sim_settle(scene->cluster.sim);
}

void pwi_scene_close(struct scene *scene) { pwi_cluster_close(&scene->cluster); }
