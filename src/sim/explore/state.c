/* When two states are the same: see STATES and MERGING in explore.h. */
#include "base/hash.h"
#include "ring/place.h"
#include "sim/explore/inside.h"

#define ARCS_MAX 16

/* --- by events ------------------------------------------------------------------------------------------ */

/* Links that are reset are an event at both nodes. */
void pwi_past_add(struct past *past, const struct choice *choice) {
  size_t at = choice->node < NODES_MAX ? choice->node : NODES_MAX - 1;
  if (choice->kind == CHOICE_TIME) past->time = choice->due.time;
  uint64_t facts[] = {choice->kind, choice->which, choice->due.hash, (uint64_t)past->time};
  past->hashes[at] = pwi_hash(facts, sizeof facts, past->hashes[at]);
  past->seen[at]++;
  if (choice->kind == CHOICE_RESET)
    past->hashes[choice->from] = pwi_hash(facts, sizeof facts, past->hashes[choice->from]);
  past->resets_left -= choice->kind == CHOICE_RESET;
  past->crashes_left -= choice->kind == CHOICE_CRASH;
  past->early_left -= choice->kind == CHOICE_TIME && choice->which;
}

uint64_t pwi_past_hash(const struct past *past) {
  uint64_t seed = (uint64_t)past->time * 32 + past->crashes_left * 16 + past->resets_left * 8 + past->early_left;
  return pwi_hash(past->hashes, sizeof past->hashes, seed);
}

/* --- by effects ----------------------------------------------------------------------------------------- */

static uint64_t server_print(const struct pwi_server *server, const struct pwi_membership *membership) {
  struct pwi_server_arc arcs[ARCS_MAX];
  struct pwi_server_state state;
  size_t count = pwi_server_arcs(server, arcs, ARCS_MAX);
  pwi_server_state(server, &state);
  uint64_t sum = pwi_server_digest(server, pawl_range_of(0, PWI_RING_END), membership);
  for (size_t i = 0; i < count && i < ARCS_MAX; i++) {
    uint64_t facts[] = {arcs[i].positions.begin, arcs[i].since,     arcs[i].place,
                        arcs[i].version,         arcs[i].confirmed, arcs[i].filling | (unsigned)arcs[i].even << 1};
    sum += pwi_hash(facts, sizeof facts, 2);
  }
  uint64_t facts[] = {sum, state.epoch, state.catalogue, state.membership, state.answer_bytes, state.links};
  return pwi_hash(facts, sizeof facts, 3);
}

static uint64_t worker_print(const struct worker *worker) {
  const struct pwi_client *client = worker->client.client;
  struct pwi_client_state state;
  if (!client) return 0;
  pwi_client_state(client, &state);
  struct pwi_client_figures figures = pwi_cluster_client_figures(&worker->client);
  const struct pwi_view *view = pwi_client_view(client);
  uint64_t facts[] = {state.sender,           state.outstanding,    state.settled,
                      view ? view->epoch : 0, figures.gaps,         pwi_client_membership(client)->number,
                      figures.not_here,       figures.parts_resent, figures.reconnects};
  return pwi_hash(facts, sizeof facts, 4);
}

static uint64_t manager_print(const struct pwi_manager *manager) {
  struct pwi_manager_figures figures;
  pwi_manager_figures(manager, &figures);
  uint64_t facts[] = {figures.epoch,      figures.membership, figures.catalogue, figures.moves,
                      figures.moves_done, figures.filling,    figures.unlinked,  figures.retired};
  return pwi_hash(facts, sizeof facts, 5);
}

/* The state of everything as far as it can be seen: two different orders of the same events at a node count as
 * one state if they have the same effects so far. */
static void print_all(const struct scene *scene, uint64_t prints[2 * NODES_MAX]) {
  const struct pwi_cluster *cluster = &scene->cluster;
  const struct pwi_membership *membership = NULL;
  size_t nodes = pwi_sim_node_count(cluster->sim);
  for (uint32_t i = 0; i < nodes && i < NODES_MAX; i++)
    prints[i] = pwi_sim_print(cluster->sim, (struct pwi_sim_node){i}) + pwi_mix64(scene->past.seen[i]);
  for (size_t i = 0; i < scene->config->servers; i++) {
    const struct pwi_server *server = cluster->servers[i].server;
    if (server) membership = pwi_server_membership(server);
    if (server && membership) prints[NODES_MAX + i] = server_print(server, membership);
  }
  for (size_t i = 0; i < scene->config->clients; i++)
    prints[NODES_MAX + PWI_EXPLORE_SERVERS + i] = worker_print(&scene->workers[i]);
  prints[2 * NODES_MAX - 1] = manager_print(cluster->manager);
}

uint64_t pwi_scene_effects(const struct scene *scene) {
  uint64_t prints[2 * NODES_MAX] = {0};
  uint64_t seed = (uint64_t)scene->past.time * 32 + scene->past.crashes_left * 16 + scene->past.resets_left * 8 +
                  scene->past.early_left;
  print_all(scene, prints);
  return pwi_hash(prints, sizeof prints, seed);
}
