/* The simulated worlds: virtual time, and every liberty that net.h leaves taken at random. `sim` has a data plane
 * between all nodes, `sim-plain` none.
 *
 * Each scene of a run has a seed of its own, counted up from PAWL_SEED in the environment, or from 1.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/sim.h"

struct node {
  struct simulated *simulated;
  bool added;
  struct pwi_sim_node sim_node;
  struct pwi_net *net;
  const struct pwi_actor *actor;
  void *self;
  char name[16];
};

struct simulated {
  struct world world;
  struct pwi_sim *sim;
  struct node nodes[WORLD_NODES];
};

static uint64_t next_seed(void) {
  static uint64_t seed;
  if (seed == 0) {
    const char *text = getenv("PAWL_SEED");
    seed = text ? strtoull(text, NULL, 10) : 1;
    printf("seeds from %llu\n", (unsigned long long)seed);
  }
  return seed++;
}

static struct world *create(const struct world_kind *kind) {
  struct simulated *simulated = calloc(1, sizeof *simulated);
  if (!simulated) return NULL;
  simulated->world.kind = kind;
  struct pwi_sim_config config;
  pwi_sim_config_init(&config);
  config.seed = next_seed();
  config.plane_chance = config.plane_chance_host = kind->traits & WORLD_PLANE ? 1 : 0;
  config.checks = true;
  if (pwi_sim_create(&config, &simulated->sim) == PAWL_OK) return &simulated->world;
  free(simulated);
  return NULL;
}

static void destroy(struct world *world) {
  struct simulated *simulated = (struct simulated *)world;
  pwi_sim_destroy(simulated->sim);
  free(simulated);
}

static pawl_status boot(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                        void **self_out) {
  struct node *node = context;
  node->net = boot->net;
  *actor_out = node->actor;
  *self_out = node->self;
  return PAWL_OK;
}

static pawl_status make_node(struct world *world, unsigned number, const struct pwi_net_limits *limits,
                             const struct pwi_actor *actor, void *self, struct pwi_net **net_out) {
  struct simulated *simulated = (struct simulated *)world;
  struct node *node = &simulated->nodes[number];
  node->actor = actor;
  node->self = self;
  pawl_status status = PAWL_OK;
  if (!node->added) {
    snprintf(node->name, sizeof node->name, "node%u", number);
    struct pwi_sim_program program = {
        .name = node->name, .host = "one", .boot = boot, .context = node, .limits = limits};
    status = pwi_sim_node_add(simulated->sim, &program, &node->sim_node);
    node->added = status == PAWL_OK;
  }
  if (status == PAWL_OK) status = pwi_sim_start(simulated->sim, node->sim_node);
  if (status == PAWL_OK) *net_out = node->net;
  return status;
}

static void kill_node(struct world *world, unsigned number) {
  struct simulated *simulated = (struct simulated *)world;
  pwi_sim_kill(simulated->sim, simulated->nodes[number].sim_node);
}

static void pause_node(struct world *world, unsigned number, bool paused) {
  struct simulated *simulated = (struct simulated *)world;
  struct pwi_sim_node node = simulated->nodes[number].sim_node;
  if (paused)
    pwi_sim_pause(simulated->sim, node, PWI_NET_NEVER);
  else
    pwi_sim_resume(simulated->sim, node);
}

static void address(struct world *world, unsigned number, unsigned which, char address_out[PWI_NET_ADDRESS_MAX]) {
  (void)world;
  snprintf(address_out, PWI_NET_ADDRESS_MAX, "tcp://node%u:%u", number, which == 0 ? 0 : 7000 + which);
}

/* The events of the next moment; where there are none, time passes all the same. */
static void step(struct world *world) {
  struct simulated *simulated = (struct simulated *)world;
  pawl_status status = pwi_sim_run_until(simulated->sim, pwi_sim_now(simulated->sim) + WORLD_MS / 50);
  if (status == PAWL_OK) return;
  const char *why = pwi_sim_failure(simulated->sim);
  fprintf(stderr, "the simulation ended: %s: %s\n", pawl_status_text(status), why ? why : "");
  abort();
}

static int64_t now(struct world *world) { return pwi_sim_now(((struct simulated *)world)->sim); }

#define SIM_WORLD(kind_name, kind_traits)                                                                              \
  {                                                                                                                    \
    .name = (kind_name), .traits = (kind_traits), .create = create, .destroy = destroy, .node = make_node,             \
    .kill = kill_node, .pause = pause_node, .address = address, .step = step, .now = now,                              \
  }

const struct world_kind world_sim = SIM_WORLD("sim", WORLD_PLANE | WORLD_IN_PLACE);
const struct world_kind world_sim_plain = SIM_WORLD("sim-plain", 0);
