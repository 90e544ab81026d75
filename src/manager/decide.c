/* The queue of decisions, and the state of nodes and senders that is not in the ledger. */
#include <assert.h>

#include "base/memory.h"
#include "manager/inside.h"
#include "protocol/planted.h"

#define RETRY_NS INT64_C(100000000) /* after memory ran out */
#define SNAPSHOTS 8                 /* a journal this many times the size of a snapshot is replaced */

/* --- nodes and senders ---------------------------------------------------------------------------------- */

pawl_status pwi_manager_make_node_room(struct pwi_manager *manager) {
  return PWI_GROW(manager->nodes, manager->node_room, manager->ledger.node_count + 1) ? PAWL_OK : PAWL_NO_MEMORY;
}

pawl_status pwi_manager_make_sender_room(struct pwi_manager *manager) {
  return PWI_GROW(manager->senders, manager->sender_room, manager->ledger.sender_count + 1) ? PAWL_OK : PAWL_NO_MEMORY;
}

/* Ids only rise, so new nodes are at the end of both arrays. */
static void follow_nodes(struct pwi_manager *manager) {
  const struct pwi_ledger *ledger = &manager->ledger;
  size_t kept = 0;
  for (size_t i = 0; i < manager->node_count; i++) {
    struct manager_node *node = &manager->nodes[i];
    if (pwi_ledger_node(ledger, node->id)) {
      if (kept < i) manager->nodes[kept] = *node;
      kept++;
      continue;
    }
    if (node->peer) node->peer->state = PEER_OUT; /* the decision that removed the node has not ended yet */
    pwi_manager_timer_cancel(manager, &node->timer);
    pwi_free(node->loads);
    pwi_free(node->spaces);
  }
  manager->node_count = kept;
  for (; manager->node_count < ledger->node_count; manager->node_count++) {
    assert(manager->node_count < manager->node_room);
    manager->nodes[manager->node_count] =
        (struct manager_node){.id = ledger->nodes[manager->node_count].id, .lost_at = pwi_net_now(manager->config.net)};
  }
}

static void drop_senders(struct pwi_manager *manager) {
  const struct pwi_ledger *ledger = &manager->ledger;
  size_t kept = 0;
  for (size_t i = 0; i < manager->sender_count; i++) {
    if (kept < ledger->sender_count && ledger->senders[kept].id == manager->senders[i].id)
      manager->senders[kept++] = manager->senders[i];
    else
      pwi_manager_timer_cancel(manager, &manager->senders[i].timer);
  }
  manager->sender_count = kept;
  manager->senders_gone = ledger->senders_gone;
}

static void follow_senders(struct pwi_manager *manager) {
  const struct pwi_ledger *ledger = &manager->ledger;
  if (manager->senders_gone != ledger->senders_gone) drop_senders(manager);
  for (; manager->sender_count < ledger->sender_count; manager->sender_count++) {
    assert(manager->sender_count < manager->sender_room);
    manager->senders[manager->sender_count] = (struct manager_sender){.id = ledger->senders[manager->sender_count].id};
  }
}

void pwi_manager_follow_ledger(struct pwi_manager *manager) {
  follow_nodes(manager);
  follow_senders(manager);
}

/* --- deciding ------------------------------------------------------------------------------------------- */

static void conclude(struct pwi_manager *manager, pawl_status status) {
  struct decision decision = *(struct decision *)pwi_fifo_at(&manager->decisions, 0);
  pwi_fifo_pop(&manager->decisions);
  if (decision.conclude) decision.conclude(manager, &decision, status);
}

/* Applies a record that is safe. Without memory it is applied later, and all decisions wait. */
static void apply(struct pwi_manager *manager) {
  struct pwi_timer timer;
  uint64_t membership = manager->ledger.membership.number;
  pawl_status status = pwi_ledger_apply(&manager->ledger, manager->record.data, manager->record.size);
  manager->unapplied = status == PAWL_NO_MEMORY;
  if (manager->unapplied) {
    pwi_manager_timer_set(manager, RETRY_NS, TIMER_APPLY, 0, &timer);
    return;
  }
  assert(status != PAWL_CORRUPT);
  manager->recording = false;
  if (status) {
    conclude(manager, status);
    return;
  }
  pwi_manager_membership_changed(manager, manager->record.data, manager->record.size, membership);
  pwi_manager_follow_ledger(manager);
  pwi_manager_announce(manager);
}

/* --- the journal's size --------------------------------------------------------------------------------- */

static bool is_journal_long(const struct pwi_manager *manager) {
  const struct pwi_journal *journal = manager->config.journal;
  if (!journal->ops->replace || manager->ledger.cluster == 0) return false;
  return journal->ops->size(journal) > manager->replace_at;
}

/* The size up to which a journal is not replaced by a snapshot of this size. */
static uint64_t bytes_enough(const struct pwi_manager *manager, size_t snapshot) {
  uint64_t enough = SNAPSHOTS * (uint64_t)snapshot;
  return enough > manager->config.journal_bytes ? enough : manager->config.journal_bytes;
}

/* If this fails, it is tried again when the journal has grown by `enough` more bytes. */
static void replace_records(struct pwi_manager *manager) {
  struct pwi_journal *journal = manager->config.journal;
  uint64_t size = journal->ops->size(journal);
  pwi_writer_reset(&manager->record);
  pwi_record_snapshot(&manager->record, &manager->ledger);
  uint64_t enough = bytes_enough(manager, manager->record.size);
  bool is_worth_it = !manager->record.status && size > enough;
  manager->replace_at = is_worth_it || manager->record.status ? size + enough : enough;
  if (!is_worth_it) return;
  manager->recording = manager->replacing = true;
  journal->ops->replace(journal, manager->record.data, manager->record.size);
}

static void end_replacing(struct pwi_manager *manager) {
  const struct pwi_journal *journal = manager->config.journal;
  uint64_t enough = bytes_enough(manager, manager->record.size);
  manager->recording = manager->replacing = false;
  if (journal->ops->size(journal) < enough) manager->replace_at = enough;
}

/* --- stopping ------------------------------------------------------------------------------------------- */

/* Replies to the peer that asked. Decisions of the manager itself are dropped. */
static void refuse(struct pwi_manager *manager, const struct decision *decision) {
  if (decision->link.id != 0 && decision->conclude) decision->conclude(manager, decision, manager->stopped);
}

/* The appended record may or may not be found in the journal later. The link is closed, so that the peer asks
 * again. */
static void give_up(struct pwi_manager *manager, const struct decision *decision) {
  struct manager_peer *peer = pwi_manager_peer(manager, decision->link);
  if (peer) pwi_manager_close(manager, peer, manager->stopped);
}

void pwi_manager_stop(struct pwi_manager *manager, pawl_status why) {
  if (manager->stopped) return;
  manager->stopped = why;
  bool is_unknown = manager->recording && !manager->replacing;
  while (pwi_fifo_count(&manager->decisions) > 0) {
    struct decision decision = *(struct decision *)pwi_fifo_at(&manager->decisions, 0);
    pwi_fifo_pop(&manager->decisions);
    if (is_unknown)
      give_up(manager, &decision);
    else
      refuse(manager, &decision);
    is_unknown = false;
  }
}

/* --- the queue ------------------------------------------------------------------------------------------ */

void pwi_manager_record_is_safe(void *context, pawl_status status) {
  struct pwi_manager *manager = context;
  if (manager->stopped) return;
  if (status) {
    pwi_log(manager->config.log, PAWL_LOG_ERROR, "manager.stopped", "why=%s what=the-journal-failed",
            pawl_status_name(status));
    pwi_manager_stop(manager, status);
    return;
  }
  if (manager->replacing)
    end_replacing(manager);
  else if (pwi_is_planted(PWI_PLANTED_ACK_BEFORE_SAFE))
    manager->recording = false;
  else
    apply(manager);
  pwi_manager_work(manager);
}

/* Writes the next record of a decision. Returns false if the decision has ended. */
static bool decide(struct pwi_manager *manager, struct decision *decision, pawl_status *status_out) {
  pwi_writer_reset(&manager->record);
  pawl_status status = decision->decide(manager, decision);
  if (!status) status = manager->record.status;
  *status_out = status;
  return !status && manager->record.size > 0;
}

/* The same for an ask whose answer is remembered. If memory runs out, no answer is recorded and the client
 * may ask again. */
static bool decide_ask(struct pwi_manager *manager, struct decision *decision, pawl_status *status_out) {
  if (decision->is_answered) {
    *status_out = pwi_manager_answer(manager, decision);
    return false;
  }
  if (!decision->is_recalled && pwi_manager_recall(manager, decision, status_out)) return false;
  decision->goes_on = false;
  bool has_record = decide(manager, decision, status_out);
  decision = pwi_fifo_at(&manager->decisions, 0); /* an order may have queued others */
  if (has_record && decision->goes_on) return true;
  if (*status_out == PAWL_NO_MEMORY) return false;
  *status_out = pwi_manager_record_answer(manager, decision, *status_out);
  return *status_out == PAWL_OK;
}

static void take_next_step(struct pwi_manager *manager) {
  struct decision *decision = pwi_fifo_at(&manager->decisions, 0);
  pawl_status status;
  bool has_record = (decision->asker ? decide_ask : decide)(manager, decision, &status);
  if (!has_record) {
    conclude(manager, status);
    return;
  }
  if (pwi_is_planted(PWI_PLANTED_ACK_BEFORE_SAFE)) apply(manager);
  manager->recording = true;
  manager->config.journal->ops->append(manager->config.journal, manager->record.data, manager->record.size);
}

/* Called between two records. Returns false if there is nothing to do. */
static bool go_on(struct pwi_manager *manager) {
  if (manager->stopped || manager->recording || manager->hearing) return false;
  if (is_journal_long(manager))
    replace_records(manager);
  else if (pwi_fifo_count(&manager->decisions) > 0)
    take_next_step(manager);
  else
    return false;
  return true;
}

/* `append` may call `safe`, which calls this function: then the loop that is running continues. */
void pwi_manager_work(struct pwi_manager *manager) {
  if (manager->deciding) return;
  manager->deciding = true;
  if (manager->unapplied) apply(manager);
  while (go_on(manager)) continue;
  manager->deciding = false;
}

void pwi_manager_queue(struct pwi_manager *manager, const struct decision *decision) {
  if (manager->stopped) {
    refuse(manager, decision);
    return;
  }
  struct decision *place = pwi_fifo_push(&manager->decisions);
  if (!place) {
    if (decision->conclude) decision->conclude(manager, decision, PAWL_NO_MEMORY);
    return;
  }
  *place = *decision;
  pwi_manager_work(manager);
}
