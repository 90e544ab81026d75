/* Complaints of a server about its neighbour in a chain: which of the two is broken?
 *
 * A server that has lost the way to all other servers complains about every one of its neighbours. If the
 * manager believed it, healthy servers would lose their copies, and the broken one would keep the only ones.
 * So the manager first finds out which end is broken. It chooses up to three other servers. The complaining
 * server probes each of them, and each of them probes the neighbour (protocol/prober.h).
 *
 *   The complaining server reaches none of them, and one of them reaches the neighbour:
 *     the complaining server is broken.
 *   The complaining server reaches one of them, and none of them reaches the neighbour:
 *     the neighbour is broken.
 *   Anything else, also if there is no other server:
 *     only the way between the two is known to be broken.
 *
 * manager/loss.c then removes the broken server from the chain or, if none was found, the member further from
 * the head. A server that was found broken is given no arcs. The probes are repeated every second, and the
 * server is used again when it reaches another server and another server reaches it, or when there is no
 * other server left.
 */
#include "manager/inside.h"

#define OTHERS 3
#define PATIENCE_MS 100              /* how long a server probes another */
#define LIMIT_NS INT64_C(300000000)  /* after this time missing answers are not awaited any more */
#define RECENT_NS INT64_C(100000000) /* probes that began within this time before a complaint count */
#define AGAIN_NS INT64_C(1000000000) /* time between two attempts to use a broken server again */

/* A complaint that waits for the results of probes. */
struct dispute {
  struct decision complaint;
  int64_t begun_at;
};

static uint64_t process_of(const struct pwi_manager *manager, uint64_t id) {
  return pwi_view_find(manager->ledger.view, (struct pwi_node){id})->process;
}

static struct manager_peer *peer_of(const struct pwi_manager *manager, uint64_t id) {
  const struct manager_node *node = pwi_manager_node(manager, id);
  return node && node->peer && node->peer->state == PEER_IN ? node->peer : NULL;
}

bool pwi_manager_avoids(const struct pwi_manager *manager, uint64_t id) {
  const struct manager_node *node = pwi_manager_node(manager, id);
  return node && node->is_avoided;
}

/* --- probes --------------------------------------------------------------------------------------------- */

static struct trial *find_trial(struct pwi_manager *manager, uint64_t by, uint64_t about, int64_t since) {
  for (size_t i = 0; i < PWI_TRIALS; i++) {
    struct trial *trial = &manager->trials[i];
    if (trial->by == by && trial->about == about && trial->began_at >= since) return trial;
  }
  return NULL;
}

static void try_way(struct pwi_manager *manager, uint64_t by, uint64_t about) {
  int64_t now = pwi_net_now(manager->config.net);
  if (find_trial(manager, by, about, now - RECENT_NS)) return;
  struct pwi_probe probe = {.node = about, .number = ++manager->last_inquiry, .patience_ms = PATIENCE_MS};
  manager->trials[manager->next_trial++ % PWI_TRIALS] = (struct trial){.by = by, .about = about, .began_at = now};
  pwi_manager_send_probe(manager, peer_of(manager, by), &probe);
}

/* At most one node of each process. */
static size_t choose_others(const struct pwi_manager *manager, uint64_t a, uint64_t b, uint64_t *others_out) {
  size_t count = 0;
  for (size_t i = 0; i < manager->node_count && count < OTHERS; i++) {
    uint64_t id = manager->nodes[(i + a) % manager->node_count].id, process = process_of(manager, id);
    bool is_fit = peer_of(manager, id) && !pwi_manager_avoids(manager, id) && process != process_of(manager, a) &&
                  process != process_of(manager, b);
    for (size_t j = 0; j < count; j++) is_fit &= process_of(manager, others_out[j]) != process;
    if (is_fit) others_out[count++] = id;
  }
  return count;
}

/* --- verdicts ------------------------------------------------------------------------------------------- */

enum answer { ANSWER_NONE, ANSWER_NO, ANSWER_YES }; /* NONE: not known yet, or there is no other server */

/* Whether any recent probe by the node `by`, or about the node `about`, has succeeded; 0 stands for any other
 * node. The node `except` is left out. */
static enum answer sum_up(const struct pwi_manager *manager, uint64_t by, uint64_t about, uint64_t except,
                          int64_t since, bool *is_complete) {
  enum answer answer = ANSWER_NONE;
  for (size_t i = 0; i < PWI_TRIALS; i++) {
    const struct trial *trial = &manager->trials[i];
    bool meant = by ? trial->by == by && trial->about != except : trial->about == about && trial->by != except;
    if (!meant || trial->began_at < since) continue;
    if (trial->verdict == PWI_VERDICT_ALIVE) return ANSWER_YES;
    if (trial->verdict == PWI_VERDICT_NONE)
      *is_complete = false;
    else
      answer = ANSWER_NO;
  }
  return answer;
}

/* Returns false if answers are still missing. */
static bool judge(const struct pwi_manager *manager, struct dispute *dispute) {
  int64_t since = dispute->begun_at - RECENT_NS;
  uint64_t complainer = dispute->complaint.id, neighbour = dispute->complaint.complaint.node;
  bool reaches_known = true, reached_known = true;
  enum answer reaches = sum_up(manager, complainer, 0, neighbour, since, &reaches_known);
  enum answer reached = sum_up(manager, 0, neighbour, complainer, since, &reached_known);
  bool is_over = pwi_net_now(manager->config.net) - dispute->begun_at >= LIMIT_NS;
  if (!is_over && ((reaches != ANSWER_YES && !reaches_known) || (reached != ANSWER_YES && !reached_known)))
    return false;
  if (reaches == ANSWER_NO && reached == ANSWER_YES) dispute->complaint.broken = complainer;
  if (reaches == ANSWER_YES && reached == ANSWER_NO) dispute->complaint.broken = neighbour;
  return true;
}

static void avoid(struct pwi_manager *manager, uint64_t id) {
  struct manager_node *node = pwi_manager_node(manager, id);
  if (!node || !node->peer || node->is_avoided) return;
  node->is_avoided = true;
  pwi_log(manager->config.log, PAWL_LOG_WARN, "server.cut_off", "node=%llu why=\"no way to other servers\"",
          (unsigned long long)id);
  pwi_manager_look_after(manager, node, AGAIN_NS);
}

/* A complaint of a server that has lost its link meanwhile is void: it may be about to lose all its ways. */
static void conclude(struct pwi_manager *manager, const struct dispute *dispute) {
  if (!peer_of(manager, dispute->complaint.id)) return;
  if (dispute->complaint.broken) avoid(manager, dispute->complaint.broken);
  pwi_manager_queue(manager, &dispute->complaint);
}

static void set_timer(struct pwi_manager *manager) {
  pwi_manager_timer_cancel(manager, &manager->dispute_timer);
  if (pwi_fifo_count(&manager->disputes) == 0) return;
  const struct dispute *first = pwi_fifo_at(&manager->disputes, 0);
  int64_t delay = first->begun_at + LIMIT_NS - pwi_net_now(manager->config.net);
  pwi_manager_timer_set(manager, delay, TIMER_DISPUTE, 0, &manager->dispute_timer);
}

static void conclude_all(struct pwi_manager *manager) {
  for (size_t i = pwi_fifo_count(&manager->disputes); i-- > 0;) {
    struct dispute dispute = *(struct dispute *)pwi_fifo_at(&manager->disputes, 0);
    pwi_fifo_pop(&manager->disputes);
    if (judge(manager, &dispute))
      conclude(manager, &dispute);
    else
      *(struct dispute *)pwi_fifo_push(&manager->disputes) = dispute; /* there is room for it */
  }
  set_timer(manager);
}

/* --- events --------------------------------------------------------------------------------------------- */

void pwi_manager_disputes_begin(struct pwi_manager *manager) {
  pwi_fifo_init(&manager->disputes, sizeof(struct dispute));
}

/* A complaint of a server about itself, or about one that has no link, needs no probes. Neither does one that
 * there is no memory to keep. */
void pwi_manager_dispute(struct pwi_manager *manager, const struct decision *complaint) {
  uint64_t complainer = complaint->id, neighbour = complaint->complaint.node, others[OTHERS];
  struct dispute dispute = {.complaint = *complaint, .begun_at = pwi_net_now(manager->config.net)};
  bool both = complainer != neighbour && peer_of(manager, complainer) && peer_of(manager, neighbour);
  size_t count = both ? choose_others(manager, complainer, neighbour, others) : 0;
  for (size_t i = 0; i < count; i++) {
    try_way(manager, complainer, others[i]);
    try_way(manager, others[i], neighbour);
  }
  struct dispute *kept = count > 0 && !judge(manager, &dispute) ? pwi_fifo_push(&manager->disputes) : NULL;
  if (kept) {
    *kept = dispute;
    set_timer(manager);
  } else {
    conclude(manager, &dispute);
  }
}

void pwi_manager_dispute_probed(struct pwi_manager *manager, uint64_t by, const struct pwi_probe *probe) {
  bool any = false;
  for (size_t i = 0; i < PWI_TRIALS; i++) {
    struct trial *trial = &manager->trials[i];
    if (trial->by != by || trial->about != probe->node || trial->verdict != PWI_VERDICT_NONE) continue;
    trial->verdict = probe->verdict;
    any = true;
  }
  if (any) conclude_all(manager);
}

void pwi_manager_dispute_timer(struct pwi_manager *manager) {
  manager->dispute_timer.id = 0;
  conclude_all(manager);
}

/* The results of the last probes are known. The next ones begin if the server is still broken. */
void pwi_manager_try_avoided(struct pwi_manager *manager, struct manager_node *node) {
  int64_t since = pwi_net_now(manager->config.net) - AGAIN_NS;
  uint64_t others[OTHERS];
  bool is_known;
  size_t count = choose_others(manager, node->id, node->id, others);
  bool is_sound = sum_up(manager, node->id, 0, 0, since, &is_known) == ANSWER_YES &&
                  sum_up(manager, 0, node->id, 0, since, &is_known) == ANSWER_YES;
  if (is_sound || count == 0) {
    node->is_avoided = false;
    pwi_log(manager->config.log, PAWL_LOG_INFO, "server.reached", "node=%llu", (unsigned long long)node->id);
    pwi_manager_plan_later(manager);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    try_way(manager, node->id, others[i]);
    try_way(manager, others[i], node->id);
  }
  pwi_manager_look_after(manager, node, AGAIN_NS);
}
