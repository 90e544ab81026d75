/* Invariants that hold all the time, checked every few milliseconds and at every view.
 *
 *   - The log of views never forks: every view that a node has is, byte by byte, the durable view of that
 *     epoch in the manager's journal, and no node has a view that is not durable. So each arc has one head per
 *     epoch.
 *   - No node knows a membership or a catalogue that is not durable.
 *   - No two members of a chain are in one process, by the number that the process drew when it started,
 *     whatever the view says.
 *   - Full members of a chain with the same version of an arc have the same content.
 *
 * The watch also knows which heads were deposed, by the durable views alone. */
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "client/inside.h"
#include "sim/campaign/inside.h"

#define LOOK_NS (5 * MS)
#define LOOKS_A_DIGEST 20 /* comparing contents costs more */

static bool hash_view(struct campaign *campaign, const struct pwi_view *view, uint64_t *hash_out) {
  struct campaign_watch *watch = &campaign->watch;
  size_t size = pwi_view_encoded_size(view);
  if (size > watch->bytes_room) {
    unsigned char *bytes = pwi_resize(watch->bytes, 2 * size);
    if (!bytes) {
      pwi_sim_fail(campaign->cluster.sim, PAWL_NO_MEMORY, "not enough memory to check a view");
      return false;
    }
    watch->bytes = bytes;
    watch->bytes_room = 2 * size;
  }
  pwi_view_encode(view, watch->bytes);
  *hash_out = pwi_hash(watch->bytes, size, 0);
  return true;
}

/* --- every view ----------------------------------------------------------------------------------------- */

static void check_processes(struct campaign *campaign, const struct pwi_ledger *ledger, const struct pwi_view *view) {
  for (size_t arc = 0; arc < view->arc_count; arc++) {
    for (size_t i = 0; i < view->arcs[arc].count; i++) {
      const struct pwi_ledger_node *a = pwi_ledger_node(ledger, view->arcs[arc].chain[i].node.id);
      for (size_t k = 0; k < i; k++) {
        const struct pwi_ledger_node *b = pwi_ledger_node(ledger, view->arcs[arc].chain[k].node.id);
        if (a && b && a->nonce == b->nonce)
          CAMPAIGN_FAIL(campaign, "epoch %llu: nodes %llu and %llu of a chain are in one process",
                        (unsigned long long)view->epoch, (unsigned long long)a->id, (unsigned long long)b->id);
      }
    }
  }
}

/* Counts replaced heads and filled members. */
static void count_changes(struct campaign *campaign, const struct pwi_view *before, const struct pwi_view *view) {
  for (size_t i = 0; before->arc_count > 0 && i < view->arc_count; i++) {
    const struct pwi_arc *arc = &view->arcs[i], *was = &before->arcs[pwi_view_arc_of(before, arc->begin)];
    const struct pwi_view_node *head = pwi_view_find(view, was->chain[0].node);
    bool is_gone = !head || head->state == PWI_NODE_DOWN;
    campaign->figures.failovers += is_gone && arc->chain[0].node.id != was->chain[0].node.id;
    for (size_t k = 0; k < arc->count; k++) {
      size_t place = pwi_arc_find(was, arc->chain[k].node);
      campaign->figures.fills += place != PWI_CHAIN_MAX && was->chain[place].filling && !arc->chain[k].filling;
    }
  }
}

static bool add_epoch(struct campaign *campaign, uint64_t hash, struct pwi_view *view) {
  struct campaign_watch *watch = &campaign->watch;
  if (!PWI_GROW(watch->views, watch->room, watch->epochs + 1)) {
    pwi_sim_fail(campaign->cluster.sim, PAWL_NO_MEMORY, "not enough memory to record a view");
    return false;
  }
  watch->views[watch->epochs++] = (struct watched_view){hash, pwi_view_retain(view)};
  return true;
}

static void record_bounds(struct campaign *campaign, const struct pwi_view *view) {
  for (size_t i = 0; i < view->arc_count; i++)
    if (view->arcs[i].since == view->epoch) pwi_history_bound(campaign->history, view->arcs[i].begin);
}

/* Also called for known views, when a journal is replayed. */
void pwi_watch_view(struct campaign *campaign, const struct pwi_ledger *ledger, struct pwi_view *view) {
  struct campaign_watch *watch = &campaign->watch;
  uint64_t hash;
  if (!view || (watch->last && watch->last == view) || !hash_view(campaign, view, &hash)) return;
  if (view->epoch < watch->epochs) {
    if (watch->views[view->epoch].hash != hash)
      CAMPAIGN_FAIL(campaign, "epoch %llu: the journal contains two views", (unsigned long long)view->epoch);
    return;
  }
  while (watch->epochs < view->epoch)
    if (!add_epoch(campaign, 0, NULL)) return; /* views that the compacted journal no longer contains */
  if (!add_epoch(campaign, hash, view)) return;
  campaign->figures.views++;
  check_processes(campaign, ledger, view);
  if (watch->last) count_changes(campaign, watch->last, view);
  if (watch->last) pwi_budget_check(campaign, watch->last, view);
  pwi_workloads_view(campaign, view);
  watch->last = view;
  record_bounds(campaign, view);
}

/* --- all nodes ------------------------------------------------------------------------------------------ */

static void check_view(struct campaign *campaign, struct pwi_sim_node node, const struct pwi_view *view) {
  struct campaign_watch *watch = &campaign->watch;
  struct looked *looked = &watch->looked[node.index % NODES_MAX];
  const char *name = pwi_sim_node_name(campaign->cluster.sim, node);
  uint64_t hash;
  if (!view || (looked->view == view && looked->epoch == view->epoch)) return;
  *looked = (struct looked){view, view->epoch};
  if (view->epoch >= watch->epochs)
    CAMPAIGN_FAIL(campaign, "%s has view %llu, which is not durable in the manager's journal", name,
                  (unsigned long long)view->epoch);
  else if (hash_view(campaign, view, &hash) && watch->views[view->epoch].hash != hash)
    CAMPAIGN_FAIL(campaign, "%s has a view %llu that differs from the manager's", name,
                  (unsigned long long)view->epoch);
}

static void check_numbers(struct campaign *campaign, const char *name, uint64_t membership, uint64_t catalogue) {
  const struct pwi_ledger *ledger = pwi_campaign_ledger(campaign);
  if (membership > ledger->membership.number)
    CAMPAIGN_FAIL(campaign, "%s has membership %llu, which is not durable in the manager's journal", name,
                  (unsigned long long)membership);
  if (catalogue > ledger->catalogue.number)
    CAMPAIGN_FAIL(campaign, "%s has catalogue %llu, which is not durable in the manager's journal", name,
                  (unsigned long long)catalogue);
}

static void check_client(struct campaign *campaign, const struct pwi_cluster_client *client) {
  if (!client->client) return;
  check_view(campaign, client->node, pwi_client_view(client->client));
  check_numbers(campaign, client->name, pwi_client_membership(client->client)->number,
                pwi_client_catalogue(client->client)->number);
}

static void check_everybody(struct campaign *campaign) {
  for (size_t i = 0; i < campaign->cluster.server_count; i++) {
    const struct pwi_cluster_server *server = &campaign->cluster.servers[i];
    struct pwi_server_state state;
    if (!server->server) continue;
    pwi_server_state(server->server, &state);
    check_view(campaign, server->node, pwi_server_view(server->server));
    check_numbers(campaign, server->name, state.membership, state.catalogue);
  }
  for (size_t i = 0; i < campaign->client_count; i++) check_client(campaign, campaign->clients[i].client);
  check_client(campaign, &campaign->havoc.client);
  check_client(campaign, &campaign->checker);
}

/* --- contents ------------------------------------------------------------------------------------------- */

/* Adds the arcs of which the server is a full member with a single version. */
static size_t add_stands(struct campaign_watch *watch, size_t count, const struct pwi_server *server) {
  struct pwi_server_arc arcs[128];
  size_t room = sizeof arcs / sizeof *arcs, all = pwi_server_arcs(server, arcs, room);
  for (size_t i = 0; i < all && i < room && count < ARCS_MAX; i++)
    if (!arcs[i].filling && arcs[i].even) watch->stands[count++] = (struct stand){server, arcs[i]};
  return count;
}

static bool is_same_moment(const struct pwi_server_arc *a, const struct pwi_server_arc *b) {
  return a->positions.begin == b->positions.begin && a->positions.end == b->positions.end && a->since == b->since &&
         a->version == b->version;
}

/* Versions never change, so a recent comparison need not be repeated. */
static bool was_compared(struct campaign_watch *watch, const struct stand *a, const struct stand *b,
                         uint64_t membership) {
  uint64_t facts[] = {a->arc.positions.begin, a->arc.positions.end, a->arc.since, a->arc.version,
                      a->arc.place,           b->arc.place,         membership};
  uint64_t hash = pwi_hash(facts, sizeof facts, 0), *known = &watch->compared[hash % COMPARED_MAX];
  bool was = *known == hash;
  *known = hash;
  return was;
}

/* A vector that was deleted or restored is gone when the catalogue says so, and members learn of it at different
 * times. */
static bool know_the_same(const struct stand *a, const struct stand *b) {
  struct pwi_server_state first, second;
  pwi_server_state(a->server, &first);
  pwi_server_state(b->server, &second);
  return first.catalogue == second.catalogue;
}

/* Clocks of retired senders are ignored, because not all members have dropped them yet. */
static void compare_pair(struct campaign *campaign, const struct stand *a, const struct stand *b) {
  const struct pwi_membership *membership = &pwi_campaign_ledger(campaign)->membership;
  if (!is_same_moment(&a->arc, &b->arc) || !know_the_same(a, b)) return;
  if (was_compared(&campaign->watch, a, b, membership->number)) return;
  campaign->figures.digests++;
  if (pwi_server_digest(a->server, a->arc.positions, membership) ==
      pwi_server_digest(b->server, b->arc.positions, membership))
    return;
  CAMPAIGN_FAIL(campaign, "members %zu and %zu of the arc at %016llx differ at version %llu of epoch %llu",
                a->arc.place, b->arc.place, (unsigned long long)a->arc.positions.begin,
                (unsigned long long)a->arc.version, (unsigned long long)a->arc.since);
}

static void compare_members(struct campaign *campaign) {
  struct campaign_watch *watch = &campaign->watch;
  size_t count = 0;
  if (campaign->config.replicas == 0) return;
  for (size_t i = 0; i < campaign->cluster.server_count; i++)
    if (campaign->cluster.servers[i].server) count = add_stands(watch, count, campaign->cluster.servers[i].server);
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < i; k++) compare_pair(campaign, &watch->stands[k], &watch->stands[i]);
}

/* --- checking ------------------------------------------------------------------------------------------- */

void pwi_watch_look(struct campaign *campaign) {
  check_everybody(campaign);
  compare_members(campaign);
}

static void look_again(void *context) {
  struct campaign *campaign = context;
  check_everybody(campaign);
  pwi_kept_look(campaign);
  if (campaign->watch.looks++ % LOOKS_A_DIGEST == 0) compare_members(campaign);
  pwi_campaign_later(campaign, LOOK_NS, look_again);
}

void pwi_watch_begin(struct campaign *campaign) { look_again(campaign); }

static bool has_it(const struct campaign *campaign, const struct pwi_view *view) {
  return view && view->epoch == pwi_campaign_ledger(campaign)->view->epoch;
}

bool pwi_watch_all_have_it(const struct campaign *campaign) {
  for (size_t i = 0; i < campaign->cluster.server_count; i++) {
    const struct pwi_server *server = campaign->cluster.servers[i].server;
    if (server && !has_it(campaign, pwi_server_view(server))) return false;
  }
  for (size_t i = 0; i < campaign->client_count; i++) {
    const struct pwi_client *client = campaign->clients[i].client->client;
    struct pwi_client_state state = {0};
    if (client) pwi_client_state(client, &state);
    if (client && !state.is_dead && !has_it(campaign, pwi_client_view(client))) return false;
  }
  return true;
}

/* --- answers of deposed heads --------------------------------------------------------------------------- */

/* An answer, as its head describes it. */
struct heard {
  const struct campaign_watch *watch;
  uint64_t node, epoch; /* the server that answered, and its view */
};

static bool is_head(const struct pwi_view *view, uint64_t position, uint64_t node) {
  return view && view->arc_count > 0 && view->arcs[pwi_view_arc_of(view, position)].chain[0].node.id == node;
}

static bool is_lost(const struct pwi_view *view, uint64_t node) {
  const struct pwi_view_node *found = pwi_view_find(view, (struct pwi_node){node});
  return !found || found->state == PWI_NODE_DOWN;
}

/* The server was the head by its own view, and the first later view with another head declares it lost. A server that is
 * not lost hands the arc over, and answers no reads from then on. */
static bool is_stale(void *context, uint64_t position) {
  const struct heard *heard = context;
  const struct watched_view *views = heard->watch->views;
  if (!is_head(views[heard->epoch].view, position, heard->node)) return false;
  for (uint64_t epoch = heard->epoch + 1; epoch < heard->watch->epochs; epoch++)
    if (views[epoch].view && !is_head(views[epoch].view, position, heard->node))
      return is_lost(views[epoch].view, heard->node);
  return false;
}

/* An answer with rows, of a server whose view is not the newest. Without rows it has the outcome alone. */
static bool may_be_stale(const struct campaign *campaign, const struct pwi_message_head *head) {
  return head->kind == PWI_SAY_ANSWER && head->section_count > 1 && (size_t)head->view + 1 < campaign->watch.epochs;
}

/* The request that an answer names; NULL: the client has given it up, or sent it again. */
static const struct client_part *part_of(const struct pwi_client *client, uint64_t number) {
  uint32_t index = (uint32_t)number - 1, generation = (uint32_t)(number >> 32);
  if (!client || index >= client->part_count) return NULL;
  const struct client_part *part = client->parts[index];
  return part->flow && part->generation == generation && part->state == PART_SENT ? part : NULL;
}

void pwi_watch_heard(struct campaign *campaign, const struct pwi_client *client, uint32_t session,
                     const struct pwi_message *message) {
  struct pwi_message_head head = pwi_message_peek(message->head);
  struct heard heard = {&campaign->watch, head.sender, head.view};
  const struct client_part *part = may_be_stale(campaign, &head) ? part_of(client, head.tick) : NULL;
  if (!part) return;
  struct pwi_history_heard answer = {session, part->task, part->range};
  campaign->figures.excused += pwi_history_excuse(campaign->history, &answer, is_stale, &heard);
}

static bool is_stale_anywhere(const struct pwi_view *view, struct heard *heard) {
  for (size_t i = 0; view && i < view->arc_count; i++)
    if (is_stale(heard, pwi_view_arc_range(view, i).begin)) return true;
  return false;
}

void pwi_watch_relay_heard(struct campaign *campaign, const struct pwi_message *message) {
  struct pwi_message_head head = pwi_message_peek(message->head);
  struct heard heard = {&campaign->watch, head.sender, head.view};
  struct pwi_history_heard answer = {PWI_HISTORY_ALL, NULL, PAWL_ALL};
  if (!may_be_stale(campaign, &head)) return;
  if (!is_stale_anywhere(campaign->watch.views[heard.epoch].view, &heard)) return;
  campaign->figures.excused += pwi_history_excuse(campaign->history, &answer, is_stale, &heard);
  pwi_history_excuse_bound(campaign->history);
  campaign->figures.excused_bounds = 1;
}

void pwi_watch_fini(struct campaign *campaign) {
  for (size_t i = 0; i < campaign->watch.epochs; i++) pwi_view_release(campaign->watch.views[i].view);
  pwi_free(campaign->watch.views);
  pwi_free(campaign->watch.bytes);
}
