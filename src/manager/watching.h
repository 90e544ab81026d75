/* A journal that checks what is appended: it compares every view that the manager writes with the view
 * before, and with the reports of the servers. For tests only; include manager/testing.h before this header.
 *
 * It checks the rules of ring/view.h, that every member of a chain has what the members behind it have, and
 * that no member becomes full that has not been filled.
 */
#ifndef PWI_MANAGER_WATCHING_H
#define PWI_MANAGER_WATCHING_H

#include "manager/inside.h"
#include "manager/testing.h"

struct watched_journal {
  struct pwi_journal journal;
  struct pwi_journal *inside;
  struct world *world;
  struct pwi_ledger ledger;
  uint64_t views, promotions, handovers; /* seen */
  bool is_held, has_record;              /* a record becomes safe when the test releases it; there is one */
};

static struct watched_journal watched;

static void fault_found(const struct pwi_view *view, size_t arc, const char *what) {
  char *text = NULL;
  if (!pwi_view_text(view, &text)) print_message("%s", text);
  pwi_free(text);
  pwi_sim_fail(watched.world->sim, PAWL_CORRUPT, "epoch %llu arc %zu: %s", (unsigned long long)view->epoch, arc, what);
}

/* A server has reported that this step was carried out. */
static bool was_confirmed(enum pwi_move_step step, uint64_t epoch, struct pawl_range positions, uint64_t target) {
  for (size_t i = 0; i < MOVED_KEPT; i++) {
    const struct pwi_move *moved = &watched.world->moved[i];
    if (moved->step == step && moved->epoch == epoch && moved->target == target &&
        moved->positions.begin == positions.begin && moved->positions.end == positions.end)
      return true;
  }
  return false;
}

/* True if the full members of the new chain are in the order of the old one, and a member that was filling
 * comes last. */
static bool keeps_order(const struct pwi_arc *old, const struct pwi_arc *new) {
  size_t last = 0;
  for (size_t i = 0; i < pwi_arc_full(new); i++) {
    size_t place = pwi_arc_find(old, new->chain[i].node);
    if (place == PWI_CHAIN_MAX || (i > 0 && place < last)) return false;
    last = place;
  }
  return true;
}

static void check_heritage(const struct pwi_view *before, size_t old, const struct pwi_view *after, size_t new) {
  const struct pwi_arc *was = &before->arcs[old], *is = &after->arcs[new];
  struct pawl_range range = pwi_view_arc_range(before, old);
  if (is->lost == after->epoch) return; /* the arc starts empty, which a rule of views restricts */
  for (size_t i = 0; i < pwi_arc_full(is); i++) {
    size_t place = pwi_arc_find(was, is->chain[i].node);
    if (place == PWI_CHAIN_MAX || !was->chain[place].filling) continue;
    watched.promotions++;
    if (!was_confirmed(PWI_MOVE_FILL, was->since, range, is->chain[i].node.id))
      fault_found(after, new, "a member became full that was not filled");
    if (place != pwi_arc_full(was) || i + 1 != pwi_arc_full(is))
      fault_found(after, new, "the new full member is not the last");
  }
  if (keeps_order(was, is)) return;
  watched.handovers++;
  if (!was_confirmed(PWI_MOVE_HANDOVER, before->epoch, range, is->chain[0].node.id))
    fault_found(after, new, "the order of members changed without a handover");
}

static void check_views(const struct pwi_view *before, const struct pwi_view *after) {
  struct pwi_view_fault fault;
  watched.views++;
  if (pwi_view_check_next(before, after, &fault)) fault_found(after, fault.index, pwi_view_rule_text(fault.rule));
  if (before->arc_count == 0) return;
  for (size_t old = 0, new = 0; old < before->arc_count &&new < after->arc_count;) {
    check_heritage(before, old, after, new);
    uint64_t here = pwi_view_arc_range(before, old).end, there = pwi_view_arc_range(after, new).end;
    old += here <= there;
    new += there <= here;
  }
}

static void keep_record(void *context, pawl_status status) {
  (void)context;
  if (status) pwi_sim_fail(watched.world->sim, status, "the journal failed");
  watched.has_record = true;
}

/* The record that the test has held is safe now. */
__attribute__((unused)) static void release_record(void) {
  watched.has_record = false;
  watched.journal.safe(watched.journal.context, PAWL_OK);
}

static void watched_append(struct pwi_journal *journal, const void *record, size_t size) {
  struct pwi_view *before = watched.ledger.view ? pwi_view_retain(watched.ledger.view) : NULL;
  (void)journal;
  if (pwi_ledger_apply(&watched.ledger, record, size)) pwi_sim_fail(watched.world->sim, PAWL_CORRUPT, "a bad record");
  if (before && watched.ledger.view != before) check_views(before, watched.ledger.view);
  pwi_view_release(before);
  watched.inside->safe = watched.is_held ? keep_record : watched.journal.safe;
  watched.inside->context = watched.journal.context;
  watched.inside->ops->append(watched.inside, record, size);
}

static pawl_status watched_replay(struct pwi_journal *journal,
                                  pawl_status (*visit)(void *context, const void *record, size_t size), void *context) {
  (void)journal;
  return watched.inside->ops->replay(watched.inside, visit, context);
}

static void watched_destroy(struct pwi_journal *journal) {
  (void)journal;
  pwi_ledger_fini(&watched.ledger);
  watched.inside->ops->destroy(watched.inside);
}

static const struct pwi_journal_ops watched_ops = {
    .append = watched_append, .replay = watched_replay, .destroy = watched_destroy};

/* Call it before the manager is started. */
static void watch(struct world *world) {
  watched = (struct watched_journal){.journal = {.ops = &watched_ops}, .inside = world->journal, .world = world};
  world->journal = &watched.journal;
}

/* --- helpers of tests ----------------------------------------------------------------------------------- */

/* The newest view. */
__attribute__((unused)) static const struct pwi_view *now(void) { return watched.ledger.view; }

__attribute__((unused)) static bool is_up(uint64_t id) {
  return pwi_view_find(now(), (struct pwi_node){id})->state == PWI_NODE_UP;
}

/* Every chain has this number of members, all full and up. */
__attribute__((unused)) static bool has_chains_of(size_t members) {
  for (size_t i = 0; i < now()->arc_count; i++) {
    const struct pwi_arc *arc = &now()->arcs[i];
    if (arc->count != members || pwi_arc_full(arc) != members) return false;
    for (size_t j = 0; j < arc->count; j++)
      if (!is_up(arc->chain[j].node.id)) return false;
  }
  return now()->arc_count > 0;
}

__attribute__((unused)) static bool is_member(uint64_t id) {
  for (size_t i = 0; i < now()->arc_count; i++)
    if (pwi_arc_find(&now()->arcs[i], (struct pwi_node){id}) != PWI_CHAIN_MAX) return true;
  return false;
}

__attribute__((unused)) static struct actor *actor_of(uint64_t id) {
  for (size_t i = 0; i < watched.world->count; i++)
    if (watched.world->actors[i].joined.id == id && is_server(&watched.world->actors[i]))
      return &watched.world->actors[i];
  return NULL;
}

__attribute__((unused)) static bool is_at_rest(struct actor *actor) {
  struct pwi_manager_figures figures = figures_of(actor->world);
  return figures.moves == 0 && actor->numbers[0] == (uint32_t)figures.epoch;
}

__attribute__((unused)) static bool is_in_no_chain(struct actor *actor) { return !is_member(actor->joined.id); }
__attribute__((unused)) static bool has_order(struct actor *actor) { return actor->orders > 0; }

/* The manager has no link to it. */
__attribute__((unused)) static bool has_no_link(struct actor *actor) {
  return !pwi_manager_is_connected(actor->world->manager, actor->joined.id);
}

__attribute__((unused)) static void kill_for_good(struct actor *actor) {
  actor->keeps_away = true;
  pwi_sim_kill(actor->world->sim, actor->node);
}

/* A watched manager, and servers with chains; `points` is the number of arcs of each, 0: chosen by the manager. */
__attribute__((unused)) static void open_chains_of(struct world *world, uint64_t seed, uint32_t replicas,
                                                   uint32_t servers, uint32_t points) {
  world_init(world, seed, servers);
  world->config.replicas = replicas;
  world->config.points = points;
  world->someone_returned = true;
  watch(world);
  OK(pwi_sim_start(world->sim, world->manager_node));
  for (uint32_t i = 0; i < servers; i++) {
    char name[16];
    snprintf(name, sizeof name, "s%u", (unsigned)i);
    add_server(world, name, 10 + i, 0, 1);
  }
  run_until(&world->actors[servers - 1], has_arcs);
  run_for(world, PWI_SIM_SECOND / 10);
}

__attribute__((unused)) static void open_chains(struct world *world, uint64_t seed, uint32_t replicas,
                                                uint32_t servers) {
  open_chains_of(world, seed, replicas, servers, 0);
}

__attribute__((unused)) static struct actor *add_operator(struct world *world) {
  struct actor *client = add_client(world, "operator", false);
  run_until(client, is_in);
  return client;
}

__attribute__((unused)) static bool has_record(struct actor *actor) {
  (void)actor;
  return watched.has_record;
}

__attribute__((unused)) static void say_move(struct actor *client, struct pawl_range positions, uint64_t node) {
  struct pwi_writer payload = {0};
  pwi_write_u64(&payload, positions.begin);
  pwi_write_u64(&payload, positions.end);
  pwi_write_u64(&payload, node);
  say(client, PWI_SAY_ASK, ++client->asked, PWI_ASK_MOVE, &payload);
  pwi_writer_fini(&payload);
}

__attribute__((unused)) static pawl_status ask_move(struct actor *client, struct pawl_range positions, uint64_t node) {
  say_move(client, positions, node);
  run_until(client, has_reply);
  return client->reply;
}

__attribute__((unused)) static void complain_of(struct actor *actor, struct pawl_range positions, uint64_t node,
                                                pawl_status why) {
  struct pwi_complaint complaint = {positions, node, why};
  struct pwi_writer payload = {0};
  pwi_complaint_encode(&complaint, &payload);
  say(actor, PWI_SAY_COMPLAIN, 0, 0, &payload);
  pwi_writer_fini(&payload);
  run_for(actor->world, 2 * PWI_SIM_MILLISECOND);
}

__attribute__((unused)) static void complain(struct actor *actor, struct pawl_range positions, uint64_t node) {
  complain_of(actor, positions, node, PAWL_LINK_SILENT);
}

#endif
