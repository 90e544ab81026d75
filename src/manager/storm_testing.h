/* Storms: a manager and some servers under random faults, in an order drawn from a seed. Every view is
 * checked (manager/watching.h). After the storm all chains must become whole again, and no further view may
 * follow.
 *
 * For tests only: manager/storm_test.c runs a few hundred storms, manager/storms_test.c thousands.
 */
#ifndef PWI_MANAGER_STORM_TESTING_H
#define PWI_MANAGER_STORM_TESTING_H

#include <stdlib.h>

#include "base/random.h"
#include "manager/watching.h"

#define RECENTLY (3 * PWI_SIM_SECOND)
#define CALM (2 * PWI_SIM_SECOND)
#define RELIEF 9 /* the process that is started when all others are draining; the others count from 10 */

static struct world world;

/* Counts over all storms. */
static struct { uint64_t views, promotions, handovers, losses, given_up, relieved; } met;

/* When each actor was last paused or cut off. The manager may declare it dead for that at any moment. */
static int64_t troubled_at[ACTORS];

static bool is_sound(const struct actor *actor) {
  return actor->joined_now && pwi_sim_now(world.sim) - troubled_at[actor - world.actors] > RECENTLY;
}

/* Every arc of the actor has another full member that is up and had no recent fault. */
static bool can_be_spared(const struct actor *actor) {
  if (world.config.replicas == 0) return !is_member(actor->joined.id);
  for (size_t i = 0; i < now()->arc_count; i++) {
    const struct pwi_arc *arc = &now()->arcs[i];
    bool concerned = pwi_arc_find(arc, (struct pwi_node){actor->joined.id}) != PWI_CHAIN_MAX, spared = !concerned;
    for (size_t j = 0; j < pwi_arc_full(arc) && !spared; j++) {
      const struct actor *other = actor_of(arc->chain[j].node.id);
      spared = other && other != actor && is_sound(other) && is_up(other->joined.id);
    }
    if (!spared) return false;
  }
  return true;
}

/* A process that is restarted is another process. */
static void replace(struct actor *actor) {
  actor->lefts = 0;
  actor->join.process += 1000;
  (void)pwi_sim_restart(world.sim, actor->node);
}

static bool is_beside(const struct actor *victim, size_t index) {
  return is_server(&world.actors[index]) && world.actors[index].join.process == victim->join.process;
}

/* Kills all shards of a process; if `spare`, only if all of them can be spared. */
static void kill_process(struct actor *victim, bool spare) {
  size_t shards[ACTORS], count = 0;
  for (size_t i = 0; i < world.count; i++) {
    if (!is_beside(victim, i)) continue;
    if (spare && !can_be_spared(&world.actors[i])) return;
    shards[count++] = i;
  }
  for (size_t i = 0; i < count; i++) replace(&world.actors[shards[i]]);
}

/* The operator gives up servers that are down and will not come back. */
static void give_up_the_dead(struct actor *client) {
  for (size_t i = 0; i < now()->node_count && client->joined_now; i++) {
    const struct pwi_view_node *node = &now()->nodes[i];
    struct pwi_writer payload = {0};
    if (node->state != PWI_NODE_DOWN || actor_of(node->node.id)) continue;
    pwi_write_u64(&payload, node->node.id);
    pwi_write_u8(&payload, 1);
    say(client, PWI_SAY_ASK, ++client->asked, PWI_ASK_GIVE_UP, &payload);
    pwi_writer_fini(&payload);
    met.given_up++;
  }
}

/* Does nothing if a member of the chain is dead: the removed member might then be the last. */
static void complain_at_random(struct pwi_random *random) {
  size_t index = pwi_random_below(random, now()->arc_count);
  const struct pwi_arc *arc = &now()->arcs[index];
  size_t place = pwi_random_below(random, arc->count), other = pwi_random_below(random, arc->count);
  for (size_t i = 0; i < arc->count; i++) {
    const struct actor *member = actor_of(arc->chain[i].node.id);
    if (!member || !is_sound(member)) return;
  }
  complain(actor_of(arc->chain[place].node.id), pwi_view_arc_range(now(), index), arc->chain[other].node.id);
}

static void order_at_random(struct pwi_random *random, struct actor *client) {
  uint64_t begin = pwi_random_u64(random), size = pwi_random_u64(random) >> pwi_random_below(random, 64);
  struct actor *target = &world.actors[pwi_random_below(random, world.count)];
  if (!client->joined_now || begin > UINT64_MAX - 1 - size) return;
  struct pwi_writer payload = {0};
  pwi_write_u64(&payload, begin);
  pwi_write_u64(&payload, begin + size + 1);
  pwi_write_u64(&payload, target->joined.id);
  say(client, PWI_SAY_ASK, ++client->asked, PWI_ASK_MOVE, &payload);
  pwi_writer_fini(&payload);
}

static void strike(struct pwi_random *random, struct actor *client) {
  struct actor *victim = &world.actors[pwi_random_below(random, world.count)];
  if (!is_server(victim) || now()->arc_count == 0) return;
  uint64_t fate = pwi_random_below(random, 11);
  if (fate < 2) troubled_at[victim - world.actors] = pwi_sim_now(world.sim);
  switch (fate) {
  case 0:
    pwi_sim_break(world.sim, victim->node, world.manager_node);
    break;
  case 1:
    pwi_sim_pause(world.sim, victim->node, (int64_t)pwi_random_below(random, 2000) * PWI_SIM_MILLISECOND);
    break;
  case 2:
    if (pwi_random_below(random, 4) == 0) (void)pwi_sim_restart(world.sim, world.manager_node);
    break;
  case 3:
    if (victim->joined_now && pwi_random_below(random, 4) == 0) say(victim, PWI_SAY_LEAVE, 0, 0, NULL);
    break;
  case 4:
  case 5:
    kill_process(victim, true);
    break;
  case 6:
    complain_at_random(random);
    break;
  case 7:
    victim->moving = (enum how_to_move)pwi_random_below(random, 3);
    break;
  case 8:
    victim->is_deaf = !victim->is_deaf;
    if (!victim->is_deaf && victim->joined_now) say(victim, PWI_SAY_HAVE, 0, 0, NULL);
    break;
  case 9:
    if (pwi_random_below(random, 8) == 0) kill_process(victim, false);
    if (pwi_random_below(random, 2) == 0) give_up_the_dead(client);
    break;
  default:
    order_at_random(random, client);
  }
}

/* Servers that have left come back as new processes. */
static void send_back(void) {
  for (size_t i = 0; i < world.count; i++) {
    if (world.actors[i].lefts > 0 && is_server(&world.actors[i])) replace(&world.actors[i]);
  }
}

static void end_troubles(void) {
  for (size_t i = 0; i < world.count; i++) {
    struct actor *actor = &world.actors[i];
    actor->moving = MOVES_WELL;
    actor->is_deaf = false;
    if (!actor->joined_now || !is_server(actor)) continue;
    say(actor, PWI_SAY_HAVE, 0, 0, NULL);
    if (actor->orders > 0)
      say_moved(actor, &actor->order, PAWL_NO_MEMORY); /* in case it was never
                                                                               answered */
  }
}

/* If all servers are draining, none can leave, because no server can take their arcs. Then another server is
 * started. */
static void relieve(void) {
  size_t staying = 0;
  for (size_t i = 0; i < now()->node_count; i++) staying += now()->nodes[i].state == PWI_NODE_UP;
  if (staying > 0 || world.actors[world.count - 1].join.process == RELIEF) return;
  (void)add_server(&world, "relief", RELIEF, 0, 1);
  met.relieved++;
}

/* All chains are whole, and no view is made for a while. */
static bool is_calm(const struct actor *client) {
  struct pwi_manager_figures figures = figures_of(&world);
  uint64_t views = watched.views, wanted = figures.replicas + 1;
  if (!figures.whole || !has_chains_of(wanted < figures.processes_up ? wanted : figures.processes_up)) return false;
  run_for(&world, CALM);
  figures = figures_of(&world);
  return figures.whole && watched.views == views && client->joined_now && client->numbers[0] == (uint32_t)figures.epoch;
}

static bool calms_down(struct actor *client) {
  end_troubles();
  for (int i = 0; i < 200; i++) {
    run_for(&world, PWI_SIM_SECOND);
    send_back();
    give_up_the_dead(client);
    relieve();
    if (is_calm(client)) return true;
  }
  return false;
}

/* Machines with two servers each, in two racks; or no labels. */
static void open_storm(struct pwi_random *random, uint64_t seed, uint32_t most_servers) {
  uint32_t replicas = (uint32_t)pwi_random_below(random, 4), shards = 1 + (uint32_t)pwi_random_below(random, 2);
  uint32_t processes = 2 + (uint32_t)pwi_random_below(random, most_servers / shards - 1);
  bool has_labels = pwi_random_below(random, 2) == 0;
  for (size_t i = 0; i < ACTORS; i++) troubled_at[i] = -RECENTLY;
  world_init(&world, seed, 2);
  world.config.replicas = replicas;
  world.config.points = 1 + (uint32_t)pwi_random_below(random, 4);
  world.someone_returned = world.all_renew = true;
  watch(&world);
  OK(pwi_sim_start(world.sim, world.manager_node));
  for (uint32_t i = 0; i < processes * shards; i++) {
    char name[16];
    snprintf(name, sizeof name, "s%u", (unsigned)i);
    struct actor *server = add_server(&world, name, 10 + i / shards, i % shards, shards);
    if (has_labels) snprintf(server->join.host, sizeof server->join.host, "h%u", (unsigned)(i / shards / 2));
    if (has_labels) snprintf(server->join.rack, sizeof server->join.rack, "r%u", (unsigned)(i / 4 % 2));
  }
}

static void weather(uint64_t seed, uint32_t most_servers, unsigned events) {
  struct pwi_random random;
  pwi_random_init(&random, seed, 99);
  open_storm(&random, seed, most_servers);
  struct actor *client = add_client(&world, "client", false);
  run_until(&world.actors[0], has_arcs);
  for (unsigned i = 0; i < events; i++) {
    run_for(&world, (int64_t)pwi_random_below(&random, 60) * PWI_SIM_MILLISECOND);
    strike(&random, client);
    if (i % 16 == 0) send_back();
  }
  if (!calms_down(client)) {
    char *text = NULL;
    if (!pwi_view_text(now(), &text)) print_message("seed %llu\n%s", (unsigned long long)seed, text);
    pwi_free(text);
    fail_msg("seed %llu: the cluster does not come to rest", (unsigned long long)seed);
  }
  for (size_t i = 0; i < now()->arc_count; i++) met.losses += now()->arcs[i].lost != 0;
  met.views += watched.views;
  met.promotions += watched.promotions;
  met.handovers += watched.handovers;
  world_close(&world);
}

/* PAWL_SEED replays one storm, PAWL_SEEDS=first:last several. */
static void brave(uint64_t last, uint32_t most_servers, unsigned events) {
  uint64_t first = 1;
  char *colon;
  const char *one = getenv("PAWL_SEED"), *some = getenv("PAWL_SEEDS");
  if (one) first = last = strtoull(one, NULL, 10);
  if (some) {
    first = strtoull(some, &colon, 10);
    last = *colon ? strtoull(colon + 1, NULL, 10) : first;
  }
  for (uint64_t seed = first; seed <= last; seed++) {
    if (one) print_message("seed %llu\n", (unsigned long long)seed);
    weather(seed, most_servers, events);
  }
  print_message("seeds %llu to %llu: views=%llu promotions=%llu handovers=%llu lost=%llu given_up=%llu relieved=%llu\n",
                (unsigned long long)first, (unsigned long long)last, (unsigned long long)met.views,
                (unsigned long long)met.promotions, (unsigned long long)met.handovers, (unsigned long long)met.losses,
                (unsigned long long)met.given_up, (unsigned long long)met.relieved);
  if (one || some) return;
  assert_true(met.promotions > 0 && met.handovers > 0 && met.losses > 0);
}

#endif
