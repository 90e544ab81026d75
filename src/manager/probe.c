/* Whether a server whose link is down is dead: inquiries to witnesses.
 *
 * A broken link says little about the server. The connection may have been reset, or the manager's own
 * network may be down. Removing a server from its chains costs copies, so other servers have to confirm that
 * it is dead. The manager asks *witnesses* to probe it (protocol/prober.h): up to three servers of other
 * processes, its neighbours in chains first.
 *
 *   GONE    Its process has ended. The manager declares it dead at once.
 *   SILENT  It answers neither the manager nor any witness. The manager declares it dead, unless most
 *           servers are unreachable: then it is more likely that the manager and the witnesses are cut off.
 *   ALIVE   The manager waits for it.
 *
 * The manager repeats the inquiry for as long as the server has no link. After `absent_max_ns` it declares
 * the server dead whatever the witnesses say, except while most servers are unreachable and no witness has
 * found it silent. That time starts again when a server comes back while most servers are unreachable. It does
 * not contain times in which the manager itself stood still: its timers are late then.
 *
 * If no witness is connected, the manager probes the server itself. Then only GONE counts, and only after the
 * grace of the server.
 */
#include "manager/inside.h"

#define PATIENCE_MS 400               /* how long a witness probes a server whose link broke */
#define PATIENCE_SHORT_MS 100         /* how long it probes a server that was silent before */
#define ANSWER_NS INT64_C(200000000)  /* additional time for the answer of a witness */
#define AGAIN_NS INT64_C(500000000)   /* minimum time between two inquiries */
#define COMPANY_NS INT64_C(50000000)  /* after a server comes back: wait for others that may follow */
#define RETURN_NS INT64_C(5000000000) /* a server whose network is repaired is back within this time */
#define LATE_NS INT64_C(500000000)    /* a manager whose timer is so late stood still */
#define SUSPECT_MIN 3                 /* processes; with fewer, a single lost process would be the majority */

static const struct pwi_view_node *view_node(const struct pwi_manager *manager, uint64_t id) {
  return pwi_view_find(manager->ledger.view, (struct pwi_node){id});
}

/* --- suspicion ------------------------------------------------------------------------------------------ */

/* For the first node of each process: whether the process counts, and whether it is connected. */
static void look_at_process(const struct pwi_manager *manager, size_t first, bool *counts, bool *connected) {
  const struct pwi_view *view = manager->ledger.view;
  *counts = *connected = false;
  for (size_t i = 0; i < view->node_count; i++) {
    if (view->nodes[i].process != view->nodes[first].process) continue;
    if (i < first) {
      *counts = *connected = false;
      return;
    }
    const struct manager_node *node = pwi_manager_node(manager, view->nodes[i].node.id);
    *counts |= view->nodes[i].state != PWI_NODE_DOWN;
    *connected |= view->nodes[i].state != PWI_NODE_DOWN && node && node->peer;
  }
}

/* Of the server processes that are not marked down, more than half are unreachable (have no link), or all of
 * them. */
static bool are_most_unreachable(const struct pwi_manager *manager) {
  size_t processes = 0, connected = 0;
  for (size_t i = 0; i < manager->ledger.view->node_count; i++) {
    bool counts, is_connected;
    look_at_process(manager, i, &counts, &is_connected);
    processes += counts;
    connected += counts && is_connected;
  }
  if (connected == 0) return true;
  return processes >= SUSPECT_MIN && 2 * connected < processes;
}

bool pwi_manager_suspects_itself(struct pwi_manager *manager) {
  struct suspicion *last = &manager->suspicion;
  uint64_t epoch = manager->ledger.view->epoch;
  if (last->epoch != epoch || last->changes != manager->presence_changes)
    *last = (struct suspicion){epoch, manager->presence_changes, are_most_unreachable(manager)};
  return last->is_suspect;
}

/* --- verdicts ------------------------------------------------------------------------------------------- */

bool pwi_manager_is_past_grace(const struct pwi_manager *manager, const struct manager_node *node) {
  return !node->peer && pwi_net_now(manager->config.net) - node->lost_at >= manager->config.server_grace_ns;
}

int64_t pwi_manager_lateness(const struct pwi_manager *manager, int64_t due) {
  int64_t late = pwi_net_now(manager->config.net) - due;
  return late > LATE_NS ? late : 0;
}

static bool is_overdue(const struct pwi_manager *manager, const struct manager_node *node, int64_t limit) {
  int64_t since = node->lost_at > manager->returned_at ? node->lost_at : manager->returned_at;
  if (node->timer.id != 0) since += pwi_manager_lateness(manager, node->check_at);
  return pwi_net_now(manager->config.net) - since >= limit;
}

bool pwi_manager_may_return(struct pwi_manager *manager, const struct manager_node *node) {
  if (node->peer || pwi_manager_is_lost(manager, node)) return false;
  return pwi_manager_suspects_itself(manager) || !is_overdue(manager, node, RETURN_NS);
}

bool pwi_manager_is_lost(struct pwi_manager *manager, const struct manager_node *node) {
  if (node->peer) return false;
  bool suspect = pwi_manager_suspects_itself(manager);
  switch (node->verdict) {
  case PWI_VERDICT_GONE:
    return !node->is_own_verdict || pwi_manager_is_past_grace(manager, node);
  case PWI_VERDICT_SILENT:
    return !suspect || is_overdue(manager, node, manager->config.absent_max_ns);
  case PWI_VERDICT_ALIVE:
  case PWI_VERDICT_NONE:
    break;
  }
  return !suspect && is_overdue(manager, node, manager->config.absent_max_ns);
}

/* Marks all shards of the process that have no link as gone: they ended together. */
static void note_gone(struct pwi_manager *manager, const struct manager_node *dead, bool is_own) {
  uint64_t process = view_node(manager, dead->id)->process;
  for (size_t i = 0; i < manager->node_count; i++) {
    struct manager_node *node = &manager->nodes[i];
    if (node->peer || view_node(manager, node->id)->process != process) continue;
    node->is_own_verdict = is_own && (node->is_own_verdict || node->verdict != PWI_VERDICT_GONE);
    node->verdict = PWI_VERDICT_GONE;
  }
}

/* Another shard of the same process was found gone. */
static bool is_of_the_dead(const struct pwi_manager *manager, const struct manager_node *lost) {
  uint64_t process = view_node(manager, lost->id)->process;
  for (size_t i = 0; i < manager->node_count; i++) {
    const struct manager_node *node = &manager->nodes[i];
    bool gone = node != lost && !node->peer && node->verdict == PWI_VERDICT_GONE && !node->is_own_verdict;
    if (gone && view_node(manager, node->id)->process == process) return true;
  }
  return false;
}

/* --- witnesses ------------------------------------------------------------------------------------------ */

static void ask(struct pwi_manager *manager, struct manager_peer *peer, const struct pwi_probe *probe) {
  struct pwi_writer payload = {0};
  pwi_probe_encode(probe, &payload);
  pwi_manager_say(manager, peer, PWI_SAY_PROBE, 0, &payload);
  pwi_writer_fini(&payload);
}

/* At most one witness of each process. */
static void call_witness(struct pwi_manager *manager, struct manager_node *lost, uint64_t id,
                         const struct pwi_probe *probe) {
  const struct manager_node *other = pwi_manager_node(manager, id);
  struct inquiry *inquiry = &lost->inquiry;
  if (inquiry->count == PWI_WITNESSES || !other->peer || other->peer->state != PEER_IN) return;
  uint64_t process = view_node(manager, id)->process;
  if (process == view_node(manager, lost->id)->process) return;
  for (size_t i = 0; i < inquiry->count; i++) {
    if (view_node(manager, inquiry->witnesses[i].node)->process == process) return;
  }
  inquiry->witnesses[inquiry->count++] = (struct witness){.node = id};
  ask(manager, other->peer, probe);
}

/* Neighbours in chains come first, because they are connected to the server or were. The choice of the others
 * varies. */
static void call_witnesses(struct pwi_manager *manager, struct manager_node *lost, const struct pwi_probe *probe) {
  const struct pwi_view *view = manager->ledger.view;
  for (size_t i = 0; i < view->arc_count && lost->inquiry.count < PWI_WITNESSES; i++) {
    const struct pwi_arc *arc = &view->arcs[i];
    if (pwi_arc_find(arc, (struct pwi_node){lost->id}) == PWI_CHAIN_MAX) continue;
    for (size_t j = 0; j < arc->count; j++) call_witness(manager, lost, arc->chain[j].node.id, probe);
  }
  for (size_t i = 0; i < manager->node_count && lost->inquiry.count < PWI_WITNESSES; i++)
    call_witness(manager, lost, manager->nodes[(i + probe->number) % manager->node_count].id, probe);
}

void pwi_manager_inquire(struct pwi_manager *manager, struct manager_node *node) {
  int64_t allowance = pwi_net_allowance(manager->config.net);
  uint32_t patience = node->was_silent ? PATIENCE_SHORT_MS : PATIENCE_MS;
  struct pwi_probe probe = {
      .node = node->id, .number = ++manager->last_inquiry, .patience_ms = patience + (uint32_t)(allowance / 1000000)};
  node->inquiry = (struct inquiry){.number = probe.number};
  call_witnesses(manager, node, &probe);
  if (node->inquiry.count == 0) pwi_prober_begin(&manager->prober, &probe, view_node(manager, node->id)->address);
  /* A witness may be as late as this node or its peers were, and adds an allowance of its own. */
  int64_t wait = (int64_t)probe.patience_ms * 1000000 + ANSWER_NS + 2 * allowance;
  pwi_manager_look_after(manager, node, wait > AGAIN_NS ? wait : AGAIN_NS);
}

/* All witnesses that are still connected have answered. */
static bool is_complete(const struct pwi_manager *manager, const struct inquiry *inquiry) {
  for (size_t i = 0; i < inquiry->count; i++) {
    const struct manager_node *witness = pwi_manager_node(manager, inquiry->witnesses[i].node);
    if (!inquiry->witnesses[i].is_silent && witness && witness->peer) return false;
  }
  return true;
}

static struct witness *find_witness(struct inquiry *inquiry, uint64_t id) {
  for (size_t i = 0; i < inquiry->count; i++) {
    if (inquiry->witnesses[i].node == id) return &inquiry->witnesses[i];
  }
  return NULL;
}

static void take_verdict(struct pwi_manager *manager, struct manager_node *node, enum pwi_verdict verdict) {
  node->verdict = verdict;
  if (verdict == PWI_VERDICT_GONE) note_gone(manager, node, false);
  if (pwi_manager_is_lost(manager, node)) pwi_manager_look_after(manager, node, PWI_MANAGER_GATHER_NS);
}

void pwi_manager_probed(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size) {
  struct pwi_probe probe;
  if (pwi_probe_decode(payload, size, &probe)) {
    pwi_manager_close(manager, peer, PAWL_LINK_PROTOCOL);
    return;
  }
  struct manager_node *node = pwi_manager_node(manager, probe.node);
  if (!node || node->peer || view_node(manager, node->id)->state == PWI_NODE_DOWN) return;
  struct witness *witness = probe.number == node->inquiry.number ? find_witness(&node->inquiry, peer->id) : NULL;
  if (!witness) return;
  pwi_log(manager->config.log, PAWL_LOG_DEBUG, "server.probed", "node=%llu by=%llu verdict=%d",
          (unsigned long long)node->id, (unsigned long long)peer->id, (int)probe.verdict);
  witness->is_silent = probe.verdict == PWI_VERDICT_SILENT;
  if (probe.verdict == PWI_VERDICT_GONE || probe.verdict == PWI_VERDICT_ALIVE)
    take_verdict(manager, node, probe.verdict);
  else if (witness->is_silent && is_complete(manager, &node->inquiry))
    take_verdict(manager, node, PWI_VERDICT_SILENT);
}

/* The result of the manager's own probe. */
void pwi_manager_tried(void *context, const struct pwi_probe *probe) {
  struct pwi_manager *manager = context;
  struct manager_node *node = pwi_manager_node(manager, probe->node);
  if (probe->verdict != PWI_VERDICT_GONE || !node || node->peer) return;
  note_gone(manager, node, true);
}

/* --- links that go down and come up --------------------------------------------------------------------- */

void pwi_manager_link_lost(struct pwi_manager *manager, struct manager_node *node, bool was_silent) {
  manager->presence_changes++;
  node->lost_at = pwi_net_now(manager->config.net);
  node->was_silent = was_silent;
  node->is_own_verdict = false;
  node->verdict = is_of_the_dead(manager, node) ? PWI_VERDICT_GONE : PWI_VERDICT_NONE;
  if (node->verdict == PWI_VERDICT_GONE)
    pwi_manager_look_after(manager, node, PWI_MANAGER_GATHER_NS);
  else
    pwi_manager_inquire(manager, node);
}

/* A server has joined. It can be a witness for nodes that had none. If most servers were unreachable, earlier
 * SILENT verdicts do not count, because the witnesses may have been cut off. */
void pwi_manager_server_returned(struct pwi_manager *manager, bool was_suspect) {
  if (was_suspect) manager->returned_at = pwi_net_now(manager->config.net);
  for (size_t i = 0; i < manager->node_count; i++) {
    struct manager_node *node = &manager->nodes[i];
    bool is_unlinked = !node->peer && view_node(manager, node->id)->state != PWI_NODE_DOWN;
    if (is_unlinked && was_suspect && node->verdict == PWI_VERDICT_SILENT) {
      node->verdict = PWI_VERDICT_NONE;
      node->inquiry.count = 0;
    }
    if (is_unlinked && node->inquiry.count == 0) pwi_manager_look_after(manager, node, COMPANY_NS);
  }
}

/* The timer of a node without a link has fired. Returns true if the node is dead; otherwise starts the next
 * inquiry. */
bool pwi_manager_check_unlinked(struct pwi_manager *manager, struct manager_node *node) {
  struct inquiry *inquiry = &node->inquiry;
  bool any = false;
  node->lost_at += pwi_manager_lateness(manager, node->check_at);
  for (size_t i = 0; i < inquiry->count; i++) any |= inquiry->witnesses[i].is_silent;
  if (any && node->verdict == PWI_VERDICT_NONE)
    node->verdict = PWI_VERDICT_SILENT; /* the other witnesses do not answer */
  if (pwi_manager_is_lost(manager, node)) return true;
  if (pwi_manager_suspects_itself(manager))
    pwi_log(manager->config.log, PAWL_LOG_WARN, "server.awaited", "node=%llu why=\"most servers are unreachable\"",
            (unsigned long long)node->id);
  pwi_manager_inquire(manager, node);
  return false;
}
