/* Answers to asks: each ask is carried out at most once (manager/ledger/ledger.h, "Answers").
 *
 * The answer to an ask is in one record with the change that the ask made. So every later leader finds either
 * both or neither. A client that lost the reply and asks again is told the result, even if another client has
 * created a vector of the same name meanwhile. An ask may start work outside of the ledger (a move, a
 * checkpoint). That work is started first, and the answer is recorded before any step of the work is. So, if
 * the ledger has no answer, nothing of the work has outlived the manager that started it.
 *
 * Refusals are remembered too. A client may have several asks under way, and a refused ask might succeed
 * after a later one.
 */
#include "manager/inside.h"

pawl_status pwi_manager_asker(const struct pwi_manager *manager, const struct manager_peer *peer,
                              const struct pwi_ask_terms *terms, uint64_t *asker_out) {
  uint64_t id = terms->former != 0 ? terms->former : peer->id;
  *asker_out = 0;
  if (peer->is_server || peer->join.reader) return PAWL_FORBIDDEN;
  if (peer->id == 0)
    return PAWL_OK; /* a peer without an id: its key limits its asks, and answers are not
                                        remembered */
  const struct pwi_ledger_sender *sender = pwi_ledger_sender(&manager->ledger, id);
  if (!sender && id != peer->id && pwi_ledger_is_settled(&manager->ledger, id)) {
    *asker_out = peer->id; /* the ask was never carried out: it is a new ask of the present id */
    return PAWL_OK;
  }
  if (!sender) return PAWL_OUTCOME_UNKNOWN;
  if (id != peer->id && sender->secret != terms->secret) return PAWL_FORBIDDEN;
  *asker_out = id;
  return PAWL_OK;
}

bool pwi_manager_recall(struct pwi_manager *manager, struct decision *decision, pawl_status *status_out) {
  const struct pwi_ledger_sender *sender = pwi_ledger_sender(&manager->ledger, decision->asker);
  const struct pwi_ledger_answer *answer = sender ? pwi_ledger_answer(sender, decision->task) : NULL;
  decision->is_recalled = true;
  if (!answer && sender && decision->task > sender->heard) return false;
  decision->conclude = pwi_manager_conclude_ask;
  decision->entry.id.id = answer ? answer->id : 0;
  *status_out = answer ? answer->status : PAWL_OUTCOME_UNKNOWN;
  return true;
}

pawl_status pwi_manager_record_answer(struct pwi_manager *manager, struct decision *decision, pawl_status status) {
  struct pwi_writer change = manager->record;
  struct pwi_ledger_answer answer = {decision->task, status, status ? 0 : decision->entry.id.id};
  manager->record = manager->change;
  manager->change = change;
  pwi_writer_reset(&manager->record);
  pwi_record_answer(&manager->record, decision->asker, decision->heard, &answer, status ? NULL : &manager->change);
  decision->is_answered = true;
  decision->answer = status;
  return manager->record.status;
}

/* The answer as it was applied. It differs from the decision's if the ledger refused the change. */
pawl_status pwi_manager_answer(const struct pwi_manager *manager, const struct decision *decision) {
  const struct pwi_ledger_sender *sender = pwi_ledger_sender(&manager->ledger, decision->asker);
  const struct pwi_ledger_answer *answer = sender ? pwi_ledger_answer(sender, decision->task) : NULL;
  return answer ? answer->status : decision->answer;
}
