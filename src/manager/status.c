/* The state of the cluster for operators and monitoring: as JSON, and as a few figures.
 *
 * JSON readers keep integers exactly only up to 2^53. Values that can be larger are written as strings: the
 * cluster's id (in hexadecimal), positions on the ring, and the size of a vector's span. Ids and counts that
 * start at 0 and rise by one are numbers.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "protocol/relays.h"
#include "ring/place.h"
#include "manager/inside.h"

static const char *const type_names[] = {
    [PAWL_F32] = "f32", [PAWL_F64] = "f64", [PAWL_I32] = "i32", [PAWL_I64] = "i64", [PAWL_U64] = "u64"};
static const char *const step_names[] = {[MOVE_WANTED] = "wanted",
                                         [MOVE_LISTED] = "listed",
                                         [MOVE_GOING] = "going",
                                         [MOVE_LANDED] = "landed",
                                         [MOVE_FAILED] = "failed"};

/* Takes ownership of the value. Returns false if there was no memory for the value or for `object`: jansson
 * accepts NULL for both. */
static bool put(json_t *object, const char *name, json_t *value) {
  return json_object_set_new(object, name, value) == 0;
}

/* Adds a new, empty array to the object; NULL if there is no memory. */
static json_t *add_array(json_t *object, const char *name) {
  json_t *array = json_array();
  return put(object, name, array) ? array : NULL;
}

static json_t *add_object(json_t *array) {
  json_t *object = json_object();
  return json_array_append_new(array, object) == 0 ? object : NULL;
}

static json_t *whole(uint64_t value) { return json_integer((json_int_t)value); }

static json_t *wide(uint64_t value) { return json_sprintf("%llu", (unsigned long long)value); }

/* --- figures -------------------------------------------------------------------------------------------- */

/* Not marked down, and not without a link for longer than its grace. */
static bool is_up(const struct pwi_manager *manager, const struct pwi_view_node *node) {
  const struct manager_node *known = pwi_manager_node(manager, node->node.id);
  return node->state != PWI_NODE_DOWN && known && !pwi_manager_is_past_grace(manager, known);
}

static bool is_ready(const struct pwi_manager *manager) {
  const struct pwi_view *view = manager->ledger.view;
  for (size_t i = 0; i < view->arc_count; i++) {
    if (!is_up(manager, pwi_view_head(view, i))) return false;
  }
  return view->arc_count > 0;
}

static uint64_t count_processes(const struct pwi_view *view) {
  uint64_t processes = 0;
  for (size_t i = 0; i < view->node_count; i++) {
    bool seen = false;
    for (size_t j = 0; j < i && !seen; j++) seen = view->nodes[j].process == view->nodes[i].process;
    processes += !seen;
  }
  return processes;
}

static void count_view(const struct pwi_manager *manager, struct pwi_manager_figures *figures) {
  const struct pwi_view *view = manager->ledger.view;
  figures->epoch = view->epoch;
  figures->arcs = view->arc_count;
  figures->processes = count_processes(view);
  figures->ready = is_ready(manager);
  for (size_t i = 0; i < view->node_count; i++) {
    figures->nodes_up += view->nodes[i].state == PWI_NODE_UP;
    figures->nodes_down += view->nodes[i].state == PWI_NODE_DOWN;
    figures->nodes_draining += view->nodes[i].state == PWI_NODE_DRAINING;
  }
}

/* Returns the number of full members of an arc, and whether all its members are connected. */
static size_t look_at_chain(const struct pwi_manager *manager, const struct pwi_arc *arc, bool *all_connected_out) {
  *all_connected_out = true;
  for (size_t i = 0; i < arc->count; i++)
    *all_connected_out &= pwi_manager_is_connected(manager, arc->chain[i].node.id);
  return pwi_arc_full(arc);
}

static bool has_nobody_up(const struct pwi_manager *manager, const struct pwi_arc *arc) {
  for (size_t i = 0; i < arc->count; i++) {
    bool up = is_up(manager, pwi_view_find(manager->ledger.view, arc->chain[i].node));
    if (up && !arc->chain[i].filling) return false;
  }
  return true;
}

/* A short chain does not prevent `whole` if there are no more processes that could join it. */
static void count_chains(const struct pwi_manager *manager, struct pwi_manager_figures *figures) {
  const struct pwi_view *view = manager->ledger.view;
  size_t wanted = (size_t)figures->replicas + 1, possible = pwi_manager_processes(manager);
  figures->processes_up = possible;
  figures->whole = figures->ready && manager->move_count == 0 && manager->plan_timer.id == 0;
  for (size_t i = 0; i < view->arc_count; i++) {
    const struct pwi_arc *arc = &view->arcs[i];
    bool all_connected;
    size_t full = look_at_chain(manager, arc, &all_connected);
    figures->under_replicated += full < wanted;
    figures->filling += full < arc->count;
    figures->waiting += has_nobody_up(manager, arc);
    figures->unlinked += !pwi_manager_is_connected(manager, arc->chain[0].node.id);
    figures->whole &= all_connected && full == arc->count && (full >= wanted || full >= possible);
  }
}

void pwi_manager_figures(const struct pwi_manager *manager, struct pwi_manager_figures *figures_out) {
  const struct pwi_ledger *ledger = &manager->ledger;
  struct pwi_manager_figures figures = {.cluster = ledger->cluster,
                                        .catalogue = ledger->catalogue.number,
                                        .membership = ledger->membership.number,
                                        .replicas = manager->config.replicas,
                                        .moves = manager->move_count,
                                        .moves_done = manager->moves_done};
  if (ledger->view) {
    count_view(manager, &figures);
    count_chains(manager, &figures);
  }
  figures.stopped = manager->stopped;
  if (manager->stopped) figures.ready = figures.whole = false;
  for (size_t i = 0; i < ledger->catalogue.count; i++) {
    bool is_vector = ledger->catalogue.entries[i].kind == PWI_ENTRY_VECTOR;
    figures.vectors += is_vector;
    figures.groups += !is_vector;
  }
  for (size_t i = 0; i < manager->node_count; i++) {
    uint64_t hollow = manager->nodes[i].reports > 0 ? manager->nodes[i].last.report.hollow_count : 0;
    if (hollow > figures.hollow) figures.hollow = hollow;
  }
  for (size_t i = 0; i < ledger->membership.sender_count; i++) {
    const struct pwi_membership_sender *sender = &ledger->membership.senders[i];
    bool is_relay = pwi_relay_is_job(sender->job, NULL);
    figures.clients += !sender->retired && !is_relay;
    figures.relays += !sender->retired && is_relay;
    figures.retired += sender->retired;
  }
  *figures_out = figures;
}

size_t pwi_manager_filters(const struct pwi_manager *manager, struct pwi_manager_filter *filters, size_t room) {
  size_t count = 0;
  for (size_t i = 0; i < manager->filters.count && count < room; i++) {
    const struct pwi_filter_count *told = &manager->filters.items[i];
    const struct pwi_entry *entry =
        pwi_catalogue_find(&manager->ledger.catalogue, (struct pwi_vector_id){told->vector});
    if (!entry) continue;
    filters[count].count = *told;
    memcpy(filters[count++].vector, entry->name, sizeof filters->vector);
  }
  return count;
}

/* --- nodes and arcs ------------------------------------------------------------------------------------- */

/* The increase per second between the last two reports. */
static json_t *rate(const struct manager_node *node, uint64_t now, uint64_t before) {
  int64_t passed = node->last.time - node->before.time;
  if (node->reports < 2 || passed <= 0 || now < before) return json_real(0);
  return json_real((double)(now - before) * 1e9 / (double)passed);
}

static bool put_reports(json_t *object, const struct manager_node *node) {
  const struct pwi_report *now = &node->last.report, *before = &node->before.report;
  uint64_t keys = now->keys_pushed + now->keys_pulled, keys_before = before->keys_pushed + before->keys_pulled;
  return put(object, "rows", whole(now->rows)) && put(object, "bytes", whole(now->bytes)) &&
         put(object, "pushes", whole(now->pushes)) && put(object, "pulls", whole(now->pulls)) &&
         put(object, "refused", whole(now->refused)) && put(object, "gaps", whole(now->gaps)) &&
         put(object, "cached_lists", whole(now->cached_lists)) &&
         put(object, "cached_bytes", whole(now->cached_bytes)) && put(object, "bytes_in", whole(now->bytes_in)) &&
         put(object, "bytes_passed", whole(now->bytes_passed)) &&
         put(object, "lanes_held", whole(node->last.lanes_held)) && put(object, "holds", whole(node->last.holds)) &&
         put(object, "pushes_per_s", rate(node, now->pushes, before->pushes)) &&
         put(object, "pulls_per_s", rate(node, now->pulls, before->pulls)) &&
         put(object, "keys_per_s", rate(node, keys, keys_before)) &&
         put(object, "bytes_in_per_s", rate(node, now->bytes_in, before->bytes_in)) &&
         put(object, "bytes_out_per_s", rate(node, now->bytes_out, before->bytes_out));
}

static uint64_t count_arcs(const struct pwi_view *view, uint64_t id) {
  uint64_t arcs = 0;
  for (size_t i = 0; i < view->arc_count; i++) arcs += pwi_view_head(view, i)->node.id == id;
  return arcs;
}

/* The node has joined over a link. A node without one is `up` until the manager has declared it dead. */
static bool is_linked(const struct pwi_manager *manager, uint64_t id) {
  const struct manager_node *node = pwi_manager_node(manager, id);
  return node && node->peer && node->peer->state == PEER_IN;
}

static bool put_node(const struct pwi_manager *manager, json_t *array, const struct pwi_view_node *node) {
  const struct pwi_ledger_node *known = pwi_ledger_node(&manager->ledger, node->node.id);
  bool capped = known->memory_max != UINT64_MAX;
  json_t *object = add_object(array);
  return put(object, "node", whole(node->node.id)) && put(object, "process", whole(node->process)) &&
         put(object, "shard", whole(node->shard)) && put(object, "weight", whole(node->weight)) &&
         put(object, "state", pwi_json_string(pwi_node_state_text(node->state))) &&
         put(object, "linked", json_boolean(is_linked(manager, node->node.id))) &&
         put(object, "address", pwi_json_string(node->address)) && put(object, "host", pwi_json_string(node->host)) &&
         put(object, "rack", pwi_json_string(node->rack)) &&
         put(object, "arcs", whole(count_arcs(manager->ledger.view, node->node.id))) &&
         put(object, "memory_max", capped ? whole(known->memory_max) : json_null()) &&
         put_reports(object, pwi_manager_node(manager, node->node.id));
}

static bool put_arc(json_t *array, const struct pwi_view *view, size_t index) {
  struct pawl_range range = pwi_view_arc_range(view, index);
  json_t *object = add_object(array), *chain = add_array(object, "chain");
  bool ok = put(object, "begin", wide(range.begin)) && put(object, "end", wide(range.end));
  if (view->arcs[index].lost) ok = ok && put(object, "lost", whole(view->arcs[index].lost));
  for (size_t i = 0; i < view->arcs[index].count && ok; i++) {
    const struct pwi_member *member = &view->arcs[index].chain[i];
    json_t *listed = add_object(chain);
    ok = put(listed, "node", whole(member->node.id)) && put(listed, "filling", json_boolean(member->filling)) &&
         put(listed, "state", pwi_json_string(pwi_node_state_text(pwi_view_find(view, member->node)->state)));
  }
  return ok;
}

static bool put_view(const struct pwi_manager *manager, json_t *root) {
  const struct pwi_view *view = manager->ledger.view;
  json_t *nodes = add_array(root, "nodes"), *arcs = add_array(root, "arcs");
  bool ok = nodes && arcs;
  for (size_t i = 0; view && i < view->node_count && ok; i++) ok = put_node(manager, nodes, &view->nodes[i]);
  for (size_t i = 0; view && i < view->arc_count && ok; i++) ok = put_arc(arcs, view, i);
  return ok;
}

/* --- catalogue and membership --------------------------------------------------------------------------- */

static bool put_filters(const struct pwi_manager *manager, json_t *object, uint64_t vector) {
  json_t *array = add_array(object, "filter_counts");
  bool ok = array != NULL;
  for (size_t i = 0; i < manager->filters.count && ok; i++) {
    const struct pwi_filter_count *count = &manager->filters.items[i];
    if (count->vector != vector) continue;
    json_t *item = add_object(array);
    ok = put(item, "name", pwi_json_string(count->name)) &&
         put(item, "on", pwi_json_string(count->direction == PAWL_ON_PULL ? "pull" : "push")) &&
         put(item, "runs", whole(count->runs)) && put(item, "rows_before", whole(count->rows_before)) &&
         put(item, "rows_after", whole(count->rows_after)) && put(item, "bytes_before", whole(count->bytes_before)) &&
         put(item, "bytes_after", whole(count->bytes_after)) && put(item, "clamped", whole(count->clamped));
  }
  return ok;
}

static bool is_hollow(const struct manager_node *node, uint64_t vector) {
  for (size_t i = 0; node->reports > 0 && i < PWI_REPORT_HOLLOW; i++)
    if (node->last.report.hollow[i] == vector) return true;
  return false;
}

/* The nodes that could not create the vector for lack of memory. */
static bool put_hollow(const struct pwi_manager *manager, json_t *object, uint64_t vector) {
  json_t *array = add_array(object, "not_made_by");
  bool ok = array != NULL;
  for (size_t i = 0; i < manager->node_count && ok; i++)
    if (is_hollow(&manager->nodes[i], vector)) ok = json_array_append_new(array, whole(manager->nodes[i].id)) == 0;
  return ok;
}

static bool put_vector(const struct pwi_manager *manager, json_t *array, const struct pwi_entry *entry) {
  const struct pawl_vector_options *is = &entry->is;
  json_t *object = add_object(array);
  return put(object, "id", whole(entry->id.id)) && put(object, "name", pwi_json_string(entry->name)) &&
         put(object, "type", pwi_json_string(type_names[is->type])) && put(object, "width", whole(is->width)) &&
         put(object, "size", wide(is->size)) &&
         put(object, "placement", pwi_json_string(is->placement == PAWL_PLACE_MIXED ? "mixed" : "ordered")) &&
         put(object, "layout", pwi_json_string(is->layout == PAWL_LAYOUT_DENSE ? "dense" : "sparse")) &&
         put(object, "function",
             pwi_json_string(is->function == PAWL_RULE     ? is->rule
                             : is->function == PAWL_ASSIGN ? "assign"
                                                           : "add")) &&
         put(object, "filters", is->filters[0] ? pwi_json_string(is->filters) : json_null()) &&
         put_hollow(manager, object, entry->id.id) && put_filters(manager, object, entry->id.id);
}

static bool put_group(json_t *array, const struct pwi_membership *membership, const struct pwi_entry *entry) {
  const struct pwi_membership_group *group = pwi_membership_group(membership, entry->id);
  json_t *object = add_object(array);
  size_t members;
  pwi_membership_members(membership, entry->id, &members);
  return put(object, "id", whole(entry->id.id)) && put(object, "name", pwi_json_string(entry->name)) &&
         put(object, "kind", pwi_json_string(entry->kind == PWI_ENTRY_PEERS ? "peers" : "group")) &&
         put(object, "size", whole(group ? group->size : 0)) && put(object, "members", whole(members)) &&
         put(object, "complete", json_boolean(group && group->complete)) &&
         put(object, "number", whole(group ? group->changed : 0));
}

static bool put_catalogue(const struct pwi_manager *manager, const struct pwi_rights *rights, json_t *root) {
  const struct pwi_catalogue *catalogue = &manager->ledger.catalogue;
  json_t *vectors = add_array(root, "vectors"), *groups = add_array(root, "groups");
  bool ok = vectors && groups;
  for (size_t i = 0; i < catalogue->count && ok; i++) {
    if (!pwi_rights_reach(rights, catalogue->entries[i].name)) continue;
    if (catalogue->entries[i].kind == PWI_ENTRY_VECTOR)
      ok = put_vector(manager, vectors, &catalogue->entries[i]);
    else
      ok = put_group(groups, &manager->ledger.membership, &catalogue->entries[i]);
  }
  return ok;
}

/* Names of jobs come from clients, and are JSON keys here: they are converted to valid text. */
static bool count_job(json_t *counts, const char *job) {
  char *name = pwi_json_text(job);
  json_int_t before = name ? json_integer_value(json_object_get(counts, name)) : 0;
  bool ok = name && put(counts, name, json_integer(before + 1));
  pwi_free(name);
  return ok;
}

/* A live sender that is no relay. A key for one space sees the senders of that space. */
static bool is_seen(const struct pwi_manager *manager, const struct pwi_rights *rights,
                    const struct pwi_membership_sender *sender) {
  if (sender->retired || pwi_relay_is_job(sender->job, NULL)) return false;
  if (rights->space[0] == '\0') return true;
  const struct pwi_ledger_sender *known = pwi_ledger_sender(&manager->ledger, sender->sender.id);
  return known && strcmp(known->space, rights->space) == 0;
}

/* Counts live senders by job, in the order in which the jobs appear: a JSON object keeps the order of its
 * keys. */
static bool put_jobs(const struct pwi_manager *manager, const struct pwi_rights *rights, json_t *root) {
  const struct pwi_membership *membership = &manager->ledger.membership;
  json_t *counts = json_object(), *jobs = add_array(root, "jobs"), *count;
  const char *job;
  bool ok = counts && jobs;
  for (size_t i = 0; i < membership->sender_count && ok; i++)
    if (is_seen(manager, rights, &membership->senders[i])) ok = count_job(counts, membership->senders[i].job);
  json_object_foreach(counts, job, count) {
    json_t *object = add_object(jobs);
    ok = ok && put(object, "name", pwi_json_string(job)) && json_object_set(object, "clients", count) == 0;
  }
  json_decref(counts);
  return ok;
}

/* Labels and jobs contain no blanks, so this key is unique. */
static bool count_site(json_t *sites, json_t *array, const struct pwi_membership_sender *sender) {
  char key[sizeof sender->job + sizeof sender->host + sizeof sender->rack + 2];
  snprintf(key, sizeof key, "%s %s %s", sender->job, sender->host, sender->rack);
  json_t *object = json_object_get(sites, key);
  if (object) {
    json_t *count = json_object_get(object, "clients");
    return json_integer_set(count, json_integer_value(count) + 1) == 0;
  }
  object = add_object(array);
  return put(object, "job", pwi_json_string(sender->job)) && put(object, "host", pwi_json_string(sender->host)) &&
         put(object, "rack", pwi_json_string(sender->rack)) && put(object, "clients", whole(1)) &&
         json_object_set(sites, key, object) == 0;
}

/* Where live senders are: how many of each job on each host. */
static bool put_sites(const struct pwi_manager *manager, const struct pwi_rights *rights, json_t *root) {
  const struct pwi_membership *membership = &manager->ledger.membership;
  json_t *sites = json_object(), *array = add_array(root, "client_hosts");
  bool ok = sites && array;
  for (size_t i = 0; i < membership->sender_count && ok; i++)
    if (is_seen(manager, rights, &membership->senders[i])) ok = count_site(sites, array, &membership->senders[i]);
  json_decref(sites);
  return ok;
}

/* The tree by which relays send to one another. */
static bool put_relay_tree(const struct pwi_manager *manager, json_t *root) {
  struct pwi_relays relays = {0};
  char tree[PWI_RELAY_TREE_MAX + 1];
  bool ok = pwi_relays_find(&relays, &manager->ledger.membership, &manager->ledger.catalogue);
  pwi_relay_tree_name(&relays.tree, tree);
  ok = ok && put(root, "relay_tree", relays.count > 0 ? pwi_json_string(tree) : json_null());
  pwi_relays_fini(&relays);
  return ok;
}

/* Relays belong to no space. */
static bool put_relays(const struct pwi_manager *manager, json_t *root) {
  const struct pwi_membership *membership = &manager->ledger.membership;
  json_t *array = add_array(root, "relays");
  bool ok = array != NULL && put_relay_tree(manager, root);
  for (size_t i = 0; i < membership->sender_count && ok; i++) {
    const struct pwi_membership_sender *sender = &membership->senders[i];
    if (!pwi_relay_is_listed(membership, sender->sender.id)) continue;
    json_t *object = add_object(array);
    ok = put(object, "id", whole(sender->sender.id)) &&
         put(object, "tree", pwi_json_string(strchr(sender->job, '.') + 1)) &&
         put(object, "address", pwi_json_string(sender->address)) &&
         put(object, "host", pwi_json_string(sender->host)) && put(object, "rack", pwi_json_string(sender->rack));
  }
  return ok;
}

static bool put_moves(const struct pwi_manager *manager, json_t *root) {
  json_t *moves = add_array(root, "moves");
  bool ok = moves != NULL;
  for (size_t i = 0; i < manager->move_count && ok; i++) {
    const struct chain_move *move = &manager->moves[i];
    json_t *object = add_object(moves);
    ok = put(object, "move", whole(move->id)) && put(object, "begin", wide(move->positions.begin)) &&
         put(object, "end", wide(move->positions.end)) && put(object, "source", whole(move->source)) &&
         put(object, "target", whole(move->target)) && put(object, "step", pwi_json_string(step_names[move->step])) &&
         put(object, "failures", whole(move->failures));
  }
  return ok;
}

static bool put_spaces(const struct pwi_manager *manager, const struct pwi_rights *rights, json_t *root) {
  const struct pwi_ledger *ledger = &manager->ledger;
  json_t *spaces = add_array(root, "spaces");
  bool ok = spaces != NULL;
  for (size_t i = 0; i < ledger->space_count && ok; i++) {
    const struct pwi_ledger_space *space = &ledger->spaces[i];
    if (rights->space[0] && strcmp(rights->space, space->space) != 0) continue;
    json_t *object = add_object(spaces);
    ok = put(object, "space", pwi_json_string(space->space)) && put(object, "memory", whole(space->memory)) &&
         put(object, "used", whole(pwi_manager_space_used(manager, space->space)));
  }
  return ok;
}

/* --- the document --------------------------------------------------------------------------------------- */

static bool put_figures(const struct pwi_manager *manager, json_t *root) {
  struct pwi_manager_figures figures;
  pwi_manager_figures(manager, &figures);
  return put(root, "cluster", json_sprintf("%016llx", (unsigned long long)figures.cluster)) &&
         put(root, "term", whole(manager->config.term)) &&
         put(root, "leader", pwi_json_string(pwi_net_address(manager->config.net))) &&
         put(root, "meta", pwi_json_string(manager->config.meta)) && put(root, "epoch", whole(figures.epoch)) &&
         put(root, "catalogue", whole(figures.catalogue)) && put(root, "membership", whole(figures.membership)) &&
         put(root, "ready", json_boolean(figures.ready)) &&
         put(root, "stopped", figures.stopped ? pwi_json_string(pawl_status_name(figures.stopped)) : json_null()) &&
         put(root, "whole", json_boolean(figures.whole)) && put(root, "replicas", whole(figures.replicas)) &&
         put(root, "under_replicated", whole(figures.under_replicated)) &&
         put(root, "filling", whole(figures.filling)) && put(root, "waiting", whole(figures.waiting)) &&
         put(root, "unlinked", whole(figures.unlinked)) && put(root, "not_made", whole(figures.hollow)) &&
         put(root, "processes", whole(figures.processes)) && put(root, "processes_up", whole(figures.processes_up)) &&
         put(root, "clients", whole(figures.clients)) && put(root, "retired", whole(figures.retired)) &&
         put(root, "moves_done", whole(figures.moves_done));
}

pawl_status pwi_manager_status(struct pwi_manager *manager, struct pwi_writer *writer) {
  struct pwi_rights everything = {.write = true};
  return pwi_manager_status_for(manager, &everything, writer);
}

pawl_status pwi_manager_status_for(struct pwi_manager *manager, const struct pwi_rights *rights,
                                   struct pwi_writer *writer) {
  json_t *root = json_object();
  bool ok = put_figures(manager, root) && put_view(manager, root) && put_catalogue(manager, rights, root) &&
            put_spaces(manager, rights, root) && put_jobs(manager, rights, root) && put_sites(manager, rights, root) &&
            put_moves(manager, root);
  if (rights->space[0] == '\0') ok = ok && put_relays(manager, root) && pwi_manager_put_checkpoint(manager, root);
  char *text = ok ? json_dumps(root, JSON_COMPACT) : NULL;
  json_decref(root);
  if (!text) return PAWL_NO_MEMORY;
  pwi_write_bytes(writer, text, strlen(text));
  free(text); /* allocated by jansson */
  return writer->status;
}
