/* Runs the demonstration in the simulator. A witness outside of all nodes records the acknowledged writes.
 * Whenever the store restarts, and at the end, the witness checks that the store still has them. */
#include "cli/demo/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sim/sim.h"

#define MS PWI_SIM_MILLISECOND
#define CALM (500 * MS) /* no faults at the beginning and at the end */

struct world {
  struct pwi_sim *sim;
  struct pwi_demo_run *run;
  uint64_t acknowledged[PWI_DEMO_CLIENTS];
};

/* One node of the world, and its number. */
struct demo_node {
  struct world *world;
  uint32_t node;
};

const char *pwi_demo_node_name(uint32_t node) {
  static const char *const names[PWI_DEMO_NODES] = {"store", "client1", "client2", "client3"};
  return names[node];
}

/* --- the witness -------------------------------------------------------------------------------------------------- */

static void acknowledged(void *context, uint64_t client, uint64_t number) {
  struct world *world = context;
  world->acknowledged[client] = number;
  world->run->acknowledged++;
}

static void look_for_losses(struct world *world, const struct pwi_demo_store *store) {
  for (uint64_t i = 0; i < PWI_DEMO_CLIENTS; i++) {
    uint64_t has = pwi_demo_store_has(store, i), had = world->acknowledged[i];
    if (has >= had) continue;
    world->run->lost += had - has;
    pwi_sim_fail(world->sim, PAWL_CORRUPT,
                 "acknowledged write lost: client=%s acknowledged=%" PRIu64 " stored=%" PRIu64,
                 pwi_demo_node_name((uint32_t)i + 1), had, has);
  }
}

static void observe(void *context, const struct pwi_sim_event *event) {
  struct pwi_demo_run *run = ((struct world *)context)->run;
  if (event->node >= PWI_DEMO_NODES || strcmp(event->kind, "deliver") != 0) return;
  int64_t column = event->time * run->columns / PWI_DEMO_LENGTH;
  if (column < run->columns) run->messages[event->node][column]++;
}

/* --- the nodes ---------------------------------------------------------------------------------------------------- */

static pawl_status boot_store(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                              void **self_out) {
  struct world *world = ((struct demo_node *)context)->world;
  struct pwi_demo_store *store;
  pawl_status status = pwi_demo_store_create(boot->net, boot->files, world->run->careless, &store);
  if (status) return status;
  world->run->store_starts++;
  look_for_losses(world, store);
  *actor_out = &pwi_demo_store_actor;
  *self_out = store;
  return PAWL_OK;
}

static void halt_store(void *context, void *self) {
  ((struct demo_node *)context)->world->run->duplicates += pwi_demo_store_duplicates(self);
  pwi_demo_store_destroy(self);
}

static pawl_status boot_client(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                               void **self_out) {
  const struct demo_node *place = context;
  struct pwi_demo_witness witness = {acknowledged, place->world};
  struct pwi_demo_client *client;
  pawl_status status = pwi_demo_client_create(boot->net, place->node - 1, &witness, &client);
  if (status) return status;
  *actor_out = &pwi_demo_client_actor;
  *self_out = client;
  return PAWL_OK;
}

static void halt_client(void *context, void *self) {
  (void)context;
  pwi_demo_client_destroy(self);
}

static pawl_status start_nodes(struct world *world, struct demo_node places[PWI_DEMO_NODES]) {
  pawl_status status = PAWL_OK;
  for (uint32_t i = 0; i < PWI_DEMO_NODES && !status; i++) {
    places[i] = (struct demo_node){world, i};
    struct pwi_sim_program program = {
        .name = pwi_demo_node_name(i),
        .boot = i ? boot_client : boot_store,
        .halt = i ? halt_client : halt_store,
        .context = &places[i],
    };
    struct pwi_sim_node node;
    status = pwi_sim_node_add(world->sim, &program, &node);
    if (!status) status = pwi_sim_start(world->sim, node);
  }
  return status;
}

/* --- the faults --------------------------------------------------------------------------------------------------- */

/* Clients do not talk to each other, so faults between two clients have no effect. */
static bool hurts(const struct pwi_sim_fault *fault) {
  return fault->other.index == PWI_SIM_ALL.index || fault->node.index == 0 || fault->other.index == 0;
}

static void keep_what_hurts(struct pwi_sim_faults *faults) {
  size_t kept = 0;
  for (size_t i = 0; i < faults->count && kept < PWI_DEMO_FAULTS_MAX; i++)
    if (hurts(&faults->items[i])) faults->items[kept++] = faults->items[i];
  faults->count = kept;
}

static void note_faults(struct world *world, const struct pwi_sim_faults *faults) {
  struct pwi_demo_run *run = world->run;
  for (run->fault_count = 0; run->fault_count < faults->count; run->fault_count++) {
    struct pwi_demo_fault *noted = &run->faults[run->fault_count];
    noted->fault = faults->items[run->fault_count];
    pwi_sim_fault_print(world->sim, &noted->fault, noted->text, sizeof noted->text);
  }
}

static pawl_status plan_faults(struct world *world, struct pwi_sim_faults *faults_out) {
  struct pwi_sim_faults_config config;
  pwi_sim_faults_config_init(&config);
  config.begin = CALM;
  config.end = PWI_DEMO_LENGTH - CALM;
  config.gap_mean_ns = 350 * MS;
  config.duration_min_ns = 60 * MS;
  config.duration_max_ns = 500 * MS;
  config.pause_max_ns = 800 * MS;
  config.weights[PWI_SIM_FAULT_KILL] = 3;
  config.weights[PWI_SIM_FAULT_PAUSE] = 2;
  config.weights[PWI_SIM_FAULT_SLOW] = 0;
  config.weights[PWI_SIM_FAULT_MUTE] = 0;
  pawl_status status = pwi_sim_faults_draw(world->sim, &config, faults_out);
  if (status) return status;
  keep_what_hurts(faults_out);
  note_faults(world, faults_out);
  return pwi_sim_faults_schedule(world->sim, faults_out);
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static double wall_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The last restart of the store is the last check of its disk. */
static pawl_status let_it_run(struct world *world) {
  double begin = wall_seconds();
  pawl_status status = pwi_sim_run_until(world->sim, PWI_DEMO_LENGTH);
  world->run->seconds = wall_seconds() - begin;
  if (!status) status = pwi_sim_restart(world->sim, (struct pwi_sim_node){0});
  world->run->events = pwi_sim_event_count(world->sim);
  world->run->hash = pwi_sim_trace_hash(world->sim);
  const char *failure = pwi_sim_failure(world->sim);
  if (!failure) return status;
  snprintf(world->run->failure, sizeof world->run->failure, "%s", failure);
  return world->run->lost ? PAWL_OK : status;
}

pawl_status pwi_demo_sim_run(uint64_t seed, bool careless, int columns, struct pwi_demo_run *run_out) {
  struct pwi_sim_config config;
  struct demo_node places[PWI_DEMO_NODES];
  struct pwi_sim_faults faults = {0};
  *run_out = (struct pwi_demo_run){.seed = seed, .careless = careless, .columns = columns};
  struct world world = {.run = run_out};
  pwi_sim_config_init(&config);
  config.seed = seed;
  config.observe = observe;
  config.observe_context = &world;
  pawl_status status = pwi_sim_create(&config, &world.sim);
  if (status) return status;
  status = start_nodes(&world, places);
  if (!status) status = plan_faults(&world, &faults);
  if (!status) status = let_it_run(&world);
  pwi_sim_destroy(world.sim);
  pwi_sim_faults_fini(&faults);
  return status;
}
