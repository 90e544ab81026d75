/* Whether a server whose link is down has died: others are asked.
 *
 * That our link to a server broke says little about it. The connection may have been reset, or our own network may be out.
 * To take a server out of its chains costs copies, so somebody else has to confirm it. *Witnesses*, up to three servers of
 * other processes, its neighbours in chains first, are asked to try it (protocol/prober.h):
 *
 *   GONE    its process has ended. It is struck off at once.
 *   SILENT  it answers neither us nor any witness. It is struck off, unless most servers are missing: then it is more likely
 *           that we are cut off, and the witnesses with us.
 *   ALIVE   it is waited for.
 *
 * Witnesses are asked again and again, as long as the server is away. Whoever stays away for `absent_max_ns` is struck off
 * whatever the witnesses say, but not while most servers are missing and nobody has found it silent. That time begins anew
 * when somebody comes back to a manager that missed most of them.
 *
 * Where no server is here, we try it ourselves. Only GONE counts then, and not before its grace is over.
 */
#include "manager/inside.h"

#define PATIENCE_MS 400               /* of a witness: with one whose link broke, */
#define PATIENCE_SHORT_MS 100         /* and with one that has been silent for a while */
#define ANSWER_NS INT64_C(200000000)  /* that an answer may take besides */
#define AGAIN_NS INT64_C(500000000)   /* until the next inquiry, at least */
#define COMPANY_NS INT64_C(50000000)  /* whoever comes back is likely to be followed by others */
#define RETURN_NS INT64_C(5000000000) /* in which a server whose network is mended is back */
#define SUSPECT_MIN 3                 /* processes: with fewer, most of them is one */

static const struct pwi_view_node *view_node(const struct pwi_manager *manager, uint64_t id) {
  return pwi_view_find(manager->ledger.view, (struct pwi_node){id});
}

/* --- suspicion ------------------------------------------------------------------------------------------------------ */

/* Of the process of a node, asked of the first node of each: whether it counts, and whether it is here. */
static void look_at_process(const struct pwi_manager *manager, size_t first, bool *counts, bool *here) {
  const struct pwi_view *view = manager->ledger.view;
  *counts = *here = false;
  for (size_t i = 0; i < view->node_count; i++) {
    if (view->nodes[i].process != view->nodes[first].process) continue;
    if (i < first) {
      *counts = *here = false;
      return;
    }
    const struct node *node = pwi_manager_node(manager, view->nodes[i].node.id);
    *counts |= view->nodes[i].state != PWI_NODE_DOWN;
    *here |= view->nodes[i].state != PWI_NODE_DOWN && node && node->peer;
  }
}

/* More than half of the servers are missing, or all of them. */
static bool misses_most(const struct pwi_manager *manager) {
  size_t processes = 0, here = 0;
  for (size_t i = 0; i < manager->ledger.view->node_count; i++) {
    bool counts, is_here;
    look_at_process(manager, i, &counts, &is_here);
    processes += counts;
    here += counts && is_here;
  }
  if (here == 0) return true;
  return processes >= SUSPECT_MIN && 2 * here < processes;
}

bool pwi_manager_suspects_itself(struct pwi_manager *manager) {
  struct suspicion *last = &manager->suspicion;
  uint64_t epoch = manager->ledger.view->epoch;
  if (last->epoch != epoch || last->changes != manager->presence_changes)
    *last = (struct suspicion){epoch, manager->presence_changes, misses_most(manager)};
  return last->is_suspect;
}

/* --- verdicts ------------------------------------------------------------------------------------------------------- */

bool pwi_manager_is_away(const struct pwi_manager *manager, const struct node *node) {
  return !node->peer && pwi_net_now(manager->config.net) - node->lost_at >= manager->config.server_grace_ns;
}

static bool is_overdue(const struct pwi_manager *manager, const struct node *node, int64_t limit) {
  int64_t since = node->lost_at > manager->hope_at ? node->lost_at : manager->hope_at;
  return pwi_net_now(manager->config.net) - since >= limit;
}

bool pwi_manager_may_return(struct pwi_manager *manager, const struct node *node) {
  if (node->peer || pwi_manager_is_lost(manager, node)) return false;
  return pwi_manager_suspects_itself(manager) || !is_overdue(manager, node, RETURN_NS);
}

bool pwi_manager_is_lost(struct pwi_manager *manager, const struct node *node) {
  if (node->peer) return false;
  bool suspect = pwi_manager_suspects_itself(manager);
  switch (node->verdict) {
  case PWI_VERDICT_GONE:
    return !node->is_own_verdict || pwi_manager_is_away(manager, node);
  case PWI_VERDICT_SILENT:
    return !suspect || is_overdue(manager, node, manager->config.absent_max_ns);
  case PWI_VERDICT_ALIVE:
  case PWI_VERDICT_NONE:
    break;
  }
  return !suspect && is_overdue(manager, node, manager->config.absent_max_ns);
}

/* With all the shards of its process that are missing: they have ended together. */
static void note_gone(struct pwi_manager *manager, const struct node *dead, bool is_own) {
  uint64_t process = view_node(manager, dead->id)->process;
  for (size_t i = 0; i < manager->node_count; i++) {
    struct node *node = &manager->nodes[i];
    if (node->peer || view_node(manager, node->id)->process != process) continue;
    node->is_own_verdict = is_own && (node->is_own_verdict || node->verdict != PWI_VERDICT_GONE);
    node->verdict = PWI_VERDICT_GONE;
  }
}

/* A process whose other shards were found to be gone. */
static bool is_of_the_dead(const struct pwi_manager *manager, const struct node *lost) {
  uint64_t process = view_node(manager, lost->id)->process;
  for (size_t i = 0; i < manager->node_count; i++) {
    const struct node *node = &manager->nodes[i];
    bool gone = node != lost && !node->peer && node->verdict == PWI_VERDICT_GONE && !node->is_own_verdict;
    if (gone && view_node(manager, node->id)->process == process) return true;
  }
  return false;
}

/* --- witnesses ------------------------------------------------------------------------------------------------------ */

static void ask(struct pwi_manager *manager, struct peer *peer, const struct pwi_probe *probe) {
  struct pwi_writer payload = {0};
  pwi_probe_encode(probe, &payload);
  pwi_manager_say(manager, peer, PWI_SAY_PROBE, 0, &payload);
  pwi_writer_fini(&payload);
}

/* One of each process. */
static void call_witness(struct pwi_manager *manager, struct node *lost, uint64_t id, const struct pwi_probe *probe) {
  const struct node *other = pwi_manager_node(manager, id);
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

/* Neighbours first: they have a way to it, or had. Of the others not always the same ones. */
static void call_witnesses(struct pwi_manager *manager, struct node *lost, const struct pwi_probe *probe) {
  const struct pwi_view *view = manager->ledger.view;
  for (size_t i = 0; i < view->arc_count && lost->inquiry.count < PWI_WITNESSES; i++) {
    const struct pwi_arc *arc = &view->arcs[i];
    if (pwi_arc_find(arc, (struct pwi_node){lost->id}) == PWI_CHAIN_MAX) continue;
    for (size_t j = 0; j < arc->count; j++) call_witness(manager, lost, arc->chain[j].node.id, probe);
  }
  for (size_t i = 0; i < manager->node_count && lost->inquiry.count < PWI_WITNESSES; i++)
    call_witness(manager, lost, manager->nodes[(i + probe->number) % manager->node_count].id, probe);
}

void pwi_manager_inquire(struct pwi_manager *manager, struct node *node) {
  struct pwi_probe probe = {.node = node->id,
                            .number = ++manager->last_inquiry,
                            .patience_ms = node->was_silent ? PATIENCE_SHORT_MS : PATIENCE_MS};
  node->inquiry = (struct inquiry){.number = probe.number};
  call_witnesses(manager, node, &probe);
  if (node->inquiry.count == 0) pwi_prober_begin(&manager->prober, &probe, view_node(manager, node->id)->address);
  int64_t wait = (int64_t)probe.patience_ms * 1000000 + ANSWER_NS;
  pwi_manager_look_after(manager, node, wait > AGAIN_NS ? wait : AGAIN_NS);
}

/* Whoever was asked and is still here has answered. */
static bool is_complete(const struct pwi_manager *manager, const struct inquiry *inquiry) {
  for (size_t i = 0; i < inquiry->count; i++) {
    const struct node *witness = pwi_manager_node(manager, inquiry->witnesses[i].node);
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

static void take_verdict(struct pwi_manager *manager, struct node *node, enum pwi_verdict verdict) {
  node->verdict = verdict;
  if (verdict == PWI_VERDICT_GONE) note_gone(manager, node, false);
  if (pwi_manager_is_lost(manager, node)) pwi_manager_look_after(manager, node, PWI_MANAGER_GATHER_NS);
}

void pwi_manager_probed(struct pwi_manager *manager, struct peer *peer, const void *payload, size_t size) {
  struct pwi_probe probe;
  if (pwi_probe_decode(payload, size, &probe)) {
    pwi_manager_close(manager, peer, PAWL_LINK_PROTOCOL);
    return;
  }
  struct node *node = pwi_manager_node(manager, probe.node);
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

/* Our own probe, of one that nobody else could be asked about. */
void pwi_manager_tried(void *context, const struct pwi_probe *probe) {
  struct pwi_manager *manager = context;
  struct node *node = pwi_manager_node(manager, probe->node);
  if (probe->verdict != PWI_VERDICT_GONE || !node || node->peer) return;
  note_gone(manager, node, true);
}

/* --- coming and going ------------------------------------------------------------------------------------------------- */

void pwi_manager_miss(struct pwi_manager *manager, struct node *node, bool was_silent) {
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

/* Somebody is here who can be asked about those for whom there was nobody, or somebody who may have been cut off as we were. */
void pwi_manager_welcome_back(struct pwi_manager *manager, bool was_suspect) {
  if (was_suspect) manager->hope_at = pwi_net_now(manager->config.net);
  for (size_t i = 0; i < manager->node_count; i++) {
    struct node *node = &manager->nodes[i];
    bool is_missing = !node->peer && view_node(manager, node->id)->state != PWI_NODE_DOWN;
    if (is_missing && was_suspect && node->verdict == PWI_VERDICT_SILENT) {
      node->verdict = PWI_VERDICT_NONE;
      node->inquiry.count = 0;
    }
    if (is_missing && node->inquiry.count == 0) pwi_manager_look_after(manager, node, COMPANY_NS);
  }
}

/* It has had its time: true if it is lost now; else others are asked again. */
bool pwi_manager_look_at_missing(struct pwi_manager *manager, struct node *node) {
  struct inquiry *inquiry = &node->inquiry;
  bool any = false;
  for (size_t i = 0; i < inquiry->count; i++) any |= inquiry->witnesses[i].is_silent;
  if (any && node->verdict == PWI_VERDICT_NONE)
    node->verdict = PWI_VERDICT_SILENT; /* the other witnesses do not answer */
  if (pwi_manager_is_lost(manager, node)) return true;
  if (pwi_manager_suspects_itself(manager))
    pwi_log(manager->config.log, PAWL_LOG_WARN, "server.awaited", "node=%llu why=\"most are missing\"",
            (unsigned long long)node->id);
  pwi_manager_inquire(manager, node);
  return false;
}
