/* Which retired senders are kept: those that may have unsettled tasks.
 *
 * The clocks of a retired sender are kept for its client, which may be alive and need to know which of its
 * pushes took effect. Most lost clients have pushed nothing, or have received all their answers. So, once a
 * sender is retired, the manager asks all request handlers with SETTLE: every server that is a member of a
 * chain, and every client that listens, because it may have local vectors. If no request handler has a change
 * of the sender beyond the number up to which the sender has its answers, nothing is unsettled. This remains
 * so, because a request handler that answers has the membership in which the sender is retired. The sender is
 * forgotten, and its id is recorded as settled: a client that comes back under this id is told that its
 * unanswered pushes took no effect.
 *
 * An answer is valid for the view that it names. If a new view is made before all have answered, a member may
 * still apply log entries that a removed member had sent before, so the manager asks all request handlers
 * again. It does the same if a link of one of them goes down meanwhile.
 *
 * Three kinds of senders are kept for `keep_retired_ns`: those with unsettled tasks, those that were retired
 * before this manager started, and those whose clients are back and collect their clocks. All that expire at
 * about the same time are forgotten with one record, because each record is a pass over all senders.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "manager/inside.h"

#define GATHER_NS INT64_C(100000000) /* wait for more senders before a question */
#define AGAIN_NS INT64_C(1000000000) /* until the next attempt, after a request handler was not connected */
#define BATCHES 64 /* number of records, per keep_retired_ns, that forget senders whose time is over */

/* The ledger has an answer that the sender may not have received: its client may ask again. */
static bool is_answer_unheard(const struct pwi_manager *manager, const struct manager_sender *sender) {
  const struct pwi_ledger_sender *entry = pwi_ledger_sender(&manager->ledger, sender->id);
  return entry && entry->answer_count > 0 && entry->answers[entry->answer_count - 1].number > sender->heard;
}

static bool is_candidate(const struct pwi_manager *manager, uint64_t id) {
  const struct manager_sender *sender = pwi_manager_sender(manager, id);
  return sender && !sender->is_wanted && !is_answer_unheard(manager, sender) &&
         pwi_membership_is_retired(&manager->ledger.membership, (struct pwi_sender){id});
}

static void look_later(struct pwi_manager *manager, int64_t delay) {
  struct settle_question *settling = &manager->settling;
  if (settling->timer.id != 0 || settling->number != 0 || pwi_fifo_count(&settling->candidates) == 0) return;
  pwi_manager_timer_set(manager, delay, TIMER_SETTLE, 0, &settling->timer);
}

/* Without memory the sender is kept for keep_retired_ns. */
static void add_candidate(struct pwi_manager *manager, uint64_t id) {
  uint64_t *place = pwi_fifo_push(&manager->settling.candidates);
  if (place) *place = id;
}

void pwi_manager_settle_later(struct pwi_manager *manager, uint64_t sender) {
  add_candidate(manager, sender);
  look_later(manager, GATHER_NS);
}

/* --- request handlers ----------------------------------------------------------------------------------- */

static bool is_in_a_chain(const struct pwi_view *view, struct pwi_node node) {
  for (size_t i = 0; i < view->arc_count; i++)
    if (pwi_arc_find(&view->arcs[i], node) != PWI_CHAIN_MAX) return true;
  return false;
}

static bool is_connected(const struct manager_peer *peer) { return peer && peer->state == PEER_IN; }

/* All request handlers are connected. */
static bool are_handlers_connected(const struct pwi_manager *manager) {
  const struct pwi_view *view = manager->ledger.view;
  const struct pwi_membership *membership = &manager->ledger.membership;
  for (size_t i = 0; i < view->node_count; i++) {
    const struct manager_node *node = pwi_manager_node(manager, view->nodes[i].node.id);
    if (!is_connected(node->peer) && is_in_a_chain(view, view->nodes[i].node)) return false;
  }
  for (size_t i = 0; i < membership->sender_count; i++) {
    const struct pwi_membership_sender *sender = &membership->senders[i];
    if (sender->retired || !sender->address[0]) continue;
    if (!is_connected(pwi_manager_sender(manager, sender->sender.id)->peer)) return false;
  }
  return true;
}

static bool is_handler(const struct pwi_manager *manager, const struct manager_peer *peer) {
  if (!is_connected(peer)) return false;
  if (peer->is_server) return true;
  const struct pwi_membership_sender *sender =
      pwi_membership_find(&manager->ledger.membership, (struct pwi_sender){peer->id});
  return sender && sender->address[0];
}

static void ask_handlers(struct pwi_manager *manager) {
  struct settle_question *settling = &manager->settling;
  struct pwi_writer payload = {0};
  pwi_settle_encode(settling->number, settling->senders, settling->count, &payload);
  for (struct manager_peer *peer = manager->first_peer, *next; peer; peer = next) {
    next = peer->next;
    if (!is_handler(manager, peer)) continue;
    peer->settle = settling->number;
    settling->awaited++;
    pwi_manager_say(manager, peer, PWI_SAY_SETTLE, 0, &payload);
  }
  pwi_writer_fini(&payload);
}

static int compare(const void *a, const void *b) {
  const struct pwi_settle *one = a, *other = b;
  return (one->sender > other->sender) - (one->sender < other->sender);
}

/* Removes senders that were candidates twice. */
static void leave_out_doubles(struct settle_question *settling) {
  size_t kept = 0;
  for (size_t i = 0; i < settling->count; i++)
    if (i == 0 || settling->senders[i].sender != settling->senders[kept - 1].sender)
      settling->senders[kept++] = settling->senders[i];
  settling->count = kept;
}

static void gather(struct pwi_manager *manager) {
  struct settle_question *settling = &manager->settling;
  settling->count = 0;
  while (pwi_fifo_count(&settling->candidates) > 0 && settling->count < PWI_SETTLE_MAX) {
    uint64_t id = *(uint64_t *)pwi_fifo_at(&settling->candidates, 0);
    pwi_fifo_pop(&settling->candidates);
    if (!is_candidate(manager, id)) continue;
    settling->senders[settling->count++] = (struct pwi_settle){id, pwi_manager_sender(manager, id)->settled};
  }
  qsort(settling->senders, settling->count, sizeof *settling->senders, compare);
  leave_out_doubles(settling);
}

/* --- rounds --------------------------------------------------------------------------------------------- */

/* Ends the question, and asks again about its senders later. */
static void ask_again(struct pwi_manager *manager, int64_t delay) {
  struct settle_question *settling = &manager->settling;
  settling->number = 0;
  for (size_t i = 0; i < settling->count; i++) add_candidate(manager, settling->senders[i].sender);
  settling->count = 0;
  look_later(manager, delay);
}

static pawl_status decide_settled(struct pwi_manager *manager, struct decision *decision) {
  struct settle_question *settling = &manager->settling;
  uint64_t gone[PWI_SETTLE_MAX];
  size_t count = 0;
  if (decision->id != settling->number || manager->ledger.view->epoch != settling->epoch) return PAWL_OK;
  for (size_t i = 0; i < settling->count; i++)
    if (is_candidate(manager, settling->senders[i].sender)) gone[count++] = settling->senders[i].sender;
  if (count > 0) pwi_record_forget(&manager->record, true, gone, count);
  return PAWL_OK;
}

static void conclude_settled(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  (void)status;
  if (decision->id == manager->settling.number)
    ask_again(manager, GATHER_NS); /* gather() leaves out senders that are forgotten by now */
}

static void end_round(struct pwi_manager *manager) {
  struct settle_question *settling = &manager->settling;
  if (settling->epoch != manager->ledger.view->epoch) {
    ask_again(manager, AGAIN_NS);
    return;
  }
  pwi_manager_queue(manager,
                    &(struct decision){.decide = decide_settled, .conclude = conclude_settled, .id = settling->number});
}

void pwi_manager_settle_timer(struct pwi_manager *manager) {
  struct settle_question *settling = &manager->settling;
  settling->timer.id = 0;
  if (settling->number != 0 || manager->stopped) return;
  if (!are_handlers_connected(manager)) {
    look_later(manager, AGAIN_NS);
    return;
  }
  gather(manager);
  if (settling->count == 0) {
    look_later(manager, GATHER_NS);
    return;
  }
  settling->number = ++settling->last_number;
  settling->epoch = manager->ledger.view->epoch;
  settling->awaited = 0;
  ask_handlers(manager);
  if (settling->awaited == 0) end_round(manager);
}

/* Removes the senders that a request handler found unsettled: they are kept. */
static void remove_unsettled(struct settle_question *settling, const uint64_t *unsettled, size_t count) {
  size_t kept = 0, next = 0;
  for (size_t i = 0; i < settling->count; i++) {
    while (next < count && unsettled[next] < settling->senders[i].sender) next++;
    bool is_unsettled = next < count && unsettled[next] == settling->senders[i].sender;
    if (!is_unsettled) settling->senders[kept++] = settling->senders[i];
  }
  settling->count = kept;
}

bool pwi_manager_hear_settled(struct pwi_manager *manager, struct manager_peer *peer, const void *payload,
                              size_t size) {
  struct settle_question *settling = &manager->settling;
  uint64_t number, unsettled[PWI_SETTLE_MAX];
  size_t count;
  if (pwi_settled_decode(payload, size, &number, unsettled, &count)) return false;
  if (number != peer->settle || number != settling->number || number == 0) return true; /* outdated */
  peer->settle = 0;
  if (peer->is_server && peer->control.head.view != (uint32_t)settling->epoch) {
    ask_again(manager, AGAIN_NS);
    return true;
  }
  remove_unsettled(settling, unsettled, count);
  if (--settling->awaited == 0) end_round(manager);
  return true;
}

void pwi_manager_settle_lost(struct pwi_manager *manager, const struct manager_peer *peer) {
  if (peer->settle != 0 && peer->settle == manager->settling.number) ask_again(manager, AGAIN_NS);
}

/* --- senders whose time is over ------------------------------------------------------------------------- */

static pawl_status decide_expiry(struct pwi_manager *manager, struct decision *decision) {
  (void)decision;
  uint64_t gone[PWI_RECORD_SETTLED_MAX];
  size_t count = 0;
  int64_t soon = pwi_net_now(manager->config.net) + manager->config.keep_retired_ns / BATCHES;
  for (size_t i = 0; i < manager->sender_count && count < PWI_RECORD_SETTLED_MAX; i++) {
    const struct manager_sender *sender = &manager->senders[i];
    if (sender->peer || sender->forget_at == 0 || sender->forget_at > soon) continue;
    if (pwi_membership_is_retired(&manager->ledger.membership, (struct pwi_sender){sender->id}))
      gone[count++] = sender->id;
  }
  if (count > 0) pwi_record_forget(&manager->record, false, gone, count);
  return PAWL_OK;
}

static void conclude_expiry(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  (void)decision, (void)status;
  manager->settling.is_expiring = false;
}

void pwi_manager_expire(struct pwi_manager *manager) {
  if (manager->settling.is_expiring) return;
  manager->settling.is_expiring = true;
  pwi_manager_queue(manager, &(struct decision){.decide = decide_expiry, .conclude = conclude_expiry});
}

void pwi_manager_settle_begin(struct pwi_manager *manager) {
  pwi_fifo_init(&manager->settling.candidates, sizeof(uint64_t));
}

void pwi_manager_settle_fini(struct pwi_manager *manager) { pwi_fifo_fini(&manager->settling.candidates); }
