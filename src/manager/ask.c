/* Asks of clients. The `tick` of the message head is the kind of the ask (enum pwi_ask). Its `task` is
 * repeated in the reply.
 *
 * Every reply waits until all servers have confirmed the present state, refusals included: a client that is
 * told that a vector exists already is about to use it.
 */
#include <string.h>

#include "manager/inside.h"

static bool may_change(const struct manager_peer *peer, const char *name) {
  return pwi_rights_may_change(&peer->who.rights, name);
}

static bool may_operate(const struct manager_peer *peer) { return pwi_rights_may_operate(&peer->who.rights); }

void pwi_manager_conclude_ask(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  struct manager_peer *peer = pwi_manager_peer(manager, decision->link);
  pwi_manager_audit_decision(manager, decision, status);
  if (!peer) return;
  if (peer->asks > 0) peer->asks--;
  struct waiting_reply waiter = {.link = decision->link,
                                 .kind = PWI_SAY_REPLY,
                                 .task = decision->task,
                                 .status = status,
                                 .id = status ? 0 : decision->entry.id.id};
  pwi_manager_wait(manager, &waiter);
}

/* --- vectors -------------------------------------------------------------------------------------------- */

static pawl_status decide_create(struct pwi_manager *manager, struct decision *decision) {
  struct pwi_entry *entry = &decision->entry;
  if (entry->id.id != 0) return PAWL_OK; /* the record of this decision has been applied */
  if (pwi_catalogue_named(&manager->ledger.catalogue, entry->name)) return PAWL_EXISTS;
  if (manager->ledger.catalogue.count >= PWI_CATALOGUE_MAX) return PAWL_TOO_LARGE;
  pawl_status status = pwi_manager_check_quota(manager, entry);
  if (status) return status;
  entry->id.id = manager->ledger.last_vector + 1;
  pwi_record_entry(&manager->record, entry);
  return PAWL_OK;
}

/* The client need not know the server function, but the manager must. */
static pawl_status settle(const struct pwi_manager *manager, const struct pawl_vector_options *asked,
                          struct pawl_vector_options *settled_out) {
  pawl_status status = pwi_options_settle(asked, manager->config.functions, settled_out);
  return status || pwi_options_are_known(settled_out) ? status : PAWL_NOT_FOUND;
}

static pawl_status read_create(const struct pwi_manager *manager, const struct manager_peer *peer,
                               struct pwi_reader *reader, struct decision *decision) {
  struct pwi_entry *entry = &decision->entry;
  pwi_read_text(reader, entry->name, sizeof entry->name);
  struct pawl_vector_options asked = pwi_options_read_last(reader);
  if (pwi_reader_end(reader)) return PAWL_INVALID;
  entry->kind = PWI_ENTRY_VECTOR;
  decision->decide = decide_create;
  pawl_status status = pwi_name_check(entry->name, PWI_ENTRY_VECTOR);
  if (!status) status = settle(manager, &asked, &entry->is);
  if (status) return status;
  return may_change(peer, entry->name) ? PAWL_OK : PAWL_FORBIDDEN;
}

/* A vector is about to be loaded from a checkpoint. It is created, or gets its next incarnation. */
static pawl_status decide_restore(struct pwi_manager *manager, struct decision *decision) {
  const struct pwi_entry *entry = pwi_catalogue_named(&manager->ledger.catalogue, decision->entry.name);
  if (decision->entry.id.id != 0) return PAWL_OK; /* the record of this decision has been applied */
  if (!entry) return decide_create(manager, decision);
  if (!pwi_options_equal(&entry->is, &decision->entry.is)) return PAWL_MISMATCH;
  if (entry->incarnation == UINT32_MAX) return PAWL_TOO_LARGE;
  decision->entry.id = entry->id;
  pwi_record_restore(&manager->record, entry->id.id, entry->incarnation + 1);
  return PAWL_OK;
}

static pawl_status decide_delete(struct pwi_manager *manager, struct decision *decision) {
  const struct pwi_entry *entry = pwi_catalogue_named(&manager->ledger.catalogue, decision->entry.name);
  if (decision->size == 1) return PAWL_OK; /* the record of this decision has been applied */
  if (!entry) return PAWL_NOT_FOUND;
  decision->size = 1;
  pwi_record_remove(&manager->record, entry->id.id);
  return PAWL_OK;
}

static pawl_status read_delete(const struct manager_peer *peer, struct pwi_reader *reader, struct decision *decision) {
  pwi_read_text(reader, decision->entry.name, sizeof decision->entry.name);
  if (pwi_reader_end(reader)) return PAWL_INVALID;
  decision->decide = decide_delete;
  pawl_status status = pwi_name_check(decision->entry.name, PWI_ENTRY_VECTOR);
  if (status) return status;
  return pwi_rights_may_delete(&peer->who.rights, decision->entry.name) ? PAWL_OK : PAWL_FORBIDDEN;
}

/* --- groups --------------------------------------------------------------------------------------------- */

static const struct pawl_vector_options group_options = {
    .type = PAWL_U64, .width = 1, .size = PAWL_KEY_END, .placement = PAWL_PLACE_ORDERED, .layout = PAWL_LAYOUT_SPARSE};

/* Records the entry if the group is new, then the member. */
static pawl_status decide_group(struct pwi_manager *manager, struct decision *decision) {
  const struct pwi_ledger *ledger = &manager->ledger;
  const struct pwi_entry *entry = pwi_catalogue_named(&ledger->catalogue, decision->entry.name);
  if (!pwi_membership_is_live(&ledger->membership, (struct pwi_sender){decision->id})) return PAWL_NODE_RETIRED;
  if (!entry) {
    struct pwi_entry made = decision->entry;
    made.id.id = ledger->last_vector + 1;
    pwi_record_entry(&manager->record, &made);
    decision->goes_on = true;
    return PAWL_OK;
  }
  if (entry->kind != decision->entry.kind) return PAWL_MISMATCH;
  const struct pwi_membership_group *group = pwi_membership_group(&ledger->membership, entry->id);
  if (group && decision->size != 0 && decision->size != group->size) return PAWL_MISMATCH;
  decision->entry.id = entry->id;
  if (pwi_membership_is_member(&ledger->membership, entry->id, (struct pwi_sender){decision->id})) return PAWL_OK;
  pwi_record_member(&manager->record, entry->id.id, decision->size, decision->id);
  return PAWL_OK;
}

static pawl_status read_group(const struct manager_peer *peer, enum pwi_entry_kind kind, struct pwi_reader *reader,
                              struct decision *decision) {
  struct pwi_entry *entry = &decision->entry;
  pwi_read_text(reader, entry->name, sizeof entry->name);
  decision->size = pwi_read_u32(reader);
  if (pwi_reader_end(reader)) return PAWL_INVALID;
  entry->kind = kind;
  entry->is = group_options;
  decision->id = peer->id;
  decision->decide = decide_group;
  pawl_status status = pwi_name_check(entry->name, kind);
  if (status) return status;
  return peer->id != 0 && may_change(peer, entry->name) ? PAWL_OK : PAWL_FORBIDDEN;
}

static pawl_status decide_ungroup(struct pwi_manager *manager, struct decision *decision) {
  struct pwi_vector_id group = {decision->secret};
  if (pwi_membership_is_member(&manager->ledger.membership, group, (struct pwi_sender){decision->id}))
    pwi_record_unmember(&manager->record, group.id, decision->id);
  return PAWL_OK;
}

static pawl_status read_ungroup(const struct manager_peer *peer, struct pwi_reader *reader, struct decision *decision) {
  decision->secret = pwi_read_u64(reader);
  decision->id = peer->id;
  decision->decide = decide_ungroup;
  return pwi_reader_end(reader) ? PAWL_INVALID : PAWL_OK;
}

/* --- senders -------------------------------------------------------------------------------------------- */

/* A client with a key for one space may not retire senders of other spaces, connected or not. */
static bool may_retire(const struct pwi_manager *manager, const struct manager_peer *peer, uint64_t id) {
  const struct pwi_ledger_sender *sender = pwi_ledger_sender(&manager->ledger, id);
  if (peer->id == 0 || !peer->who.rights.write) return false;
  return peer->who.rights.space[0] == '\0' || !sender || strcmp(peer->who.rights.space, sender->space) == 0;
}

static pawl_status decide_forget(struct pwi_manager *manager, struct decision *decision) {
  struct pwi_sender sender = {decision->id};
  if (pwi_membership_is_live(&manager->ledger.membership, sender)) return PAWL_FORBIDDEN;
  if (pwi_membership_is_retired(&manager->ledger.membership, sender))
    pwi_record_forget(&manager->record, true, &sender.id, 1);
  return PAWL_OK;
}

/* Only the client of the retired sender may have it forgotten: it knows the secret. */
static pawl_status read_forget(const struct pwi_manager *manager, const struct manager_peer *peer,
                               struct pwi_reader *reader, struct decision *decision) {
  decision->id = pwi_read_u64(reader);
  uint64_t secret = pwi_read_u64(reader);
  decision->decide = decide_forget;
  if (pwi_reader_end(reader)) return PAWL_INVALID;
  const struct pwi_ledger_sender *sender = pwi_ledger_sender(&manager->ledger, decision->id);
  return peer->who.rights.write && (!sender || sender->secret == secret) ? PAWL_OK : PAWL_FORBIDDEN;
}

static void conclude_miss(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  if (status == PAWL_OK) pwi_manager_was_retired(manager, decision->id, status);
  pwi_manager_conclude_ask(manager, decision, status);
}

/* A client could not reach the listener of another client. If that client has no link to the manager either,
 * its process is dead. One of the two alone does not prove it. */
static pawl_status read_miss(const struct pwi_manager *manager, const struct manager_peer *peer,
                             struct pwi_reader *reader, struct decision *decision) {
  decision->id = pwi_read_u64(reader);
  decision->decide = pwi_manager_decide_miss;
  decision->conclude = conclude_miss;
  if (pwi_reader_end(reader)) return PAWL_INVALID;
  return may_retire(manager, peer, decision->id) ? PAWL_OK : PAWL_FORBIDDEN;
}

static void conclude_retire(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  if (status == PAWL_OK) {
    pwi_manager_disconnect(manager, decision->id);
    pwi_manager_was_retired(manager, decision->id, status);
  }
  pwi_manager_conclude_ask(manager, decision, status);
}

/* Asked by a client that gives the work of a sender to others (fencing): nothing more of the sender may be
 * applied. */
static pawl_status read_retire(const struct pwi_manager *manager, const struct manager_peer *peer,
                               struct pwi_reader *reader, struct decision *decision) {
  decision->id = pwi_read_u64(reader);
  decision->decide = pwi_manager_decide_retire;
  decision->conclude = conclude_retire;
  if (pwi_reader_end(reader) || decision->id == peer->id) return PAWL_INVALID;
  return may_retire(manager, peer, decision->id) ? PAWL_OK : PAWL_FORBIDDEN;
}

static pawl_status decide_listen(struct pwi_manager *manager, struct decision *decision) {
  const struct pwi_membership_sender *sender =
      pwi_membership_find(&manager->ledger.membership, (struct pwi_sender){decision->id});
  if (!sender || sender->retired) return PAWL_NODE_RETIRED;
  if (strcmp(sender->address, decision->address) == 0) return PAWL_OK;
  pwi_record_address(&manager->record, decision->id, decision->address);
  return PAWL_OK;
}

static pawl_status read_listen(const struct manager_peer *peer, struct pwi_reader *reader, struct decision *decision) {
  pwi_read_text(reader, decision->address, sizeof decision->address);
  decision->id = peer->id;
  decision->decide = decide_listen;
  if (pwi_reader_end(reader)) return PAWL_INVALID;
  return peer->id != 0 ? PAWL_OK : PAWL_FORBIDDEN;
}

/* --- sync ----------------------------------------------------------------------------------------------- */

/* The reply waits for all earlier decisions, and their news are sent before it. */
static pawl_status decide_nothing(struct pwi_manager *manager, struct decision *decision) {
  (void)manager, (void)decision;
  return PAWL_OK;
}

static pawl_status read_sync(struct pwi_reader *reader, struct decision *decision) {
  decision->decide = decide_nothing;
  return pwi_reader_end(reader) ? PAWL_INVALID : PAWL_OK;
}

/* --- arcs ----------------------------------------------------------------------------------------------- */

static pawl_status decide_move(struct pwi_manager *manager, struct decision *decision) {
  return pwi_manager_order_move(manager, decision->complaint.positions, decision->id);
}

static pawl_status read_move(const struct manager_peer *peer, struct pwi_reader *reader, struct decision *decision) {
  decision->complaint.positions.begin = pwi_read_u64(reader);
  decision->complaint.positions.end = pwi_read_u64(reader);
  decision->id = pwi_read_u64(reader);
  decision->decide = decide_move;
  if (pwi_reader_end(reader)) return PAWL_INVALID;
  return may_operate(peer) ? PAWL_OK : PAWL_FORBIDDEN;
}

static pawl_status decide_balance(struct pwi_manager *manager, struct decision *decision) {
  (void)decision;
  return pwi_manager_plan(manager, true);
}

static pawl_status read_balance(const struct manager_peer *peer, struct pwi_reader *reader, struct decision *decision) {
  decision->decide = decide_balance;
  if (pwi_reader_end(reader)) return PAWL_INVALID;
  return may_operate(peer) ? PAWL_OK : PAWL_FORBIDDEN;
}

/* --- servers -------------------------------------------------------------------------------------------- */

static const char *without_scheme(const char *address) {
  return strncmp(address, "tcp://", 6) == 0 ? address + 6 : address;
}

static const struct pwi_view_node *find_server(const struct pwi_view *view, const struct decision *decision) {
  if (decision->id != 0) return pwi_view_find(view, (struct pwi_node){decision->id});
  for (size_t i = 0; i < view->node_count; i++) {
    if (strcmp(without_scheme(view->nodes[i].address), without_scheme(decision->address)) == 0) return &view->nodes[i];
  }
  return NULL;
}

/* All shards of a process are drained, as if each had said LEAVE. */
static pawl_status decide_drain(struct pwi_manager *manager, struct decision *decision) {
  const struct pwi_view *view = manager->ledger.view;
  const struct pwi_view_node *server = find_server(view, decision);
  struct view_draft draft;
  size_t count = 0;
  if (!server) return decision->size == 1 ? PAWL_OK : PAWL_NODE_GONE;
  if (server->state == PWI_NODE_DOWN) return PAWL_NODE_GONE;
  decision->size = 1;
  decision->id = server->node.id;
  pawl_status status = pwi_draft_open(view, 0, &draft);
  if (status) return status;
  for (size_t i = 0; i < draft.node_count; i++) {
    if (draft.nodes[i].process != server->process || draft.nodes[i].state != PWI_NODE_UP) continue;
    draft.nodes[i].state = PWI_NODE_DRAINING;
    count++;
  }
  if (count > 0) status = pwi_draft_record(manager, &draft, manager->ledger.last_move, NULL);
  pwi_draft_close(&draft);
  return status;
}

static void conclude_drain(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  const struct pwi_view *view = manager->ledger.view;
  const struct pwi_view_node *server = status ? NULL : pwi_view_find(view, (struct pwi_node){decision->id});
  uint64_t process = server ? server->process : 0;
  for (size_t i = 0; server && i < manager->node_count; i++) {
    struct manager_node *node = &manager->nodes[i];
    const struct pwi_view_node *listed = pwi_view_find(manager->ledger.view, (struct pwi_node){node->id});
    if (!listed || listed->process != process) continue;
    pwi_manager_note_leaving(manager, node);
    pwi_manager_moves_lost(manager, node->id, false);
  }
  pwi_manager_conclude_ask(manager, decision, status);
  if (!server) return;
  pwi_manager_plan_later(manager);
  pwi_manager_moves_poke(manager);
}

static pawl_status read_drain(const struct manager_peer *peer, struct pwi_reader *reader, struct decision *decision) {
  decision->id = pwi_read_u64(reader);
  pwi_read_text(reader, decision->address, sizeof decision->address);
  decision->decide = decide_drain;
  decision->conclude = conclude_drain;
  if (pwi_reader_end(reader) || (decision->id == 0) == (decision->address[0] == '\0')) return PAWL_INVALID;
  return may_operate(peer) ? PAWL_OK : PAWL_FORBIDDEN;
}

static void conclude_give_up(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  pwi_manager_conclude_ask(manager, decision, status);
  if (!status) pwi_manager_gave_up(manager);
}

static pawl_status read_give_up(const struct manager_peer *peer, struct pwi_reader *reader, struct decision *decision) {
  decision->id = pwi_read_u64(reader);
  decision->size = pwi_read_u8(reader);
  decision->decide = pwi_manager_decide_give_up;
  decision->conclude = conclude_give_up;
  if (pwi_reader_end(reader) || decision->id == 0 || decision->size > 1) return PAWL_INVALID;
  return may_operate(peer) ? PAWL_OK : PAWL_FORBIDDEN;
}

/* --- all of them ---------------------------------------------------------------------------------------- */

static void tell_status(struct pwi_manager *manager, struct manager_peer *peer, uint64_t task) {
  struct pwi_writer payload = {0};
  pwi_write_u32(&payload, (uint32_t)PAWL_OK);
  pawl_status status = pwi_manager_status_for(manager, &peer->who.rights, &payload);
  pwi_manager_audit_ask(manager, &peer->who, PWI_ASK_STATUS, "cluster", status);
  if (status)
    pwi_manager_say_reply(manager, peer, task, status, 0);
  else
    pwi_manager_say(manager, peer, PWI_SAY_REPLY, task, &payload);
  pwi_writer_fini(&payload);
}

/* Decodes an ask into a decision, and checks its arguments and the rights of the peer. */
static pawl_status read_ask(const struct pwi_manager *manager, const struct manager_peer *peer, uint64_t what,
                            struct pwi_reader *reader, struct decision *decision) {
  switch (what) {
  case PWI_ASK_CREATE:
    return read_create(manager, peer, reader, decision);
  case PWI_ASK_RESTORE_BEGIN: {
    pawl_status status = read_create(manager, peer, reader, decision);
    decision->decide = decide_restore;
    return status;
  }
  case PWI_ASK_DELETE:
    return read_delete(peer, reader, decision);
  case PWI_ASK_GROUP:
    return read_group(peer, PWI_ENTRY_GROUP, reader, decision);
  case PWI_ASK_PEERS:
    return read_group(peer, PWI_ENTRY_PEERS, reader, decision);
  case PWI_ASK_UNGROUP:
    return read_ungroup(peer, reader, decision);
  case PWI_ASK_FORGET:
    return read_forget(manager, peer, reader, decision);
  case PWI_ASK_MISS:
    return read_miss(manager, peer, reader, decision);
  case PWI_ASK_RETIRE:
    return read_retire(manager, peer, reader, decision);
  case PWI_ASK_LISTEN:
    return read_listen(peer, reader, decision);
  case PWI_ASK_SYNC:
    return read_sync(reader, decision);
  case PWI_ASK_MOVE:
    return read_move(peer, reader, decision);
  case PWI_ASK_BALANCE:
    return read_balance(peer, reader, decision);
  case PWI_ASK_DRAIN:
    return read_drain(peer, reader, decision);
  case PWI_ASK_QUOTA:
    return pwi_manager_read_quota(peer, reader, decision);
  case PWI_ASK_GIVE_UP:
    return read_give_up(peer, reader, decision);
  default:
    return PAWL_UNSUPPORTED;
  }
}

static void ask_decision(struct pwi_manager *manager, struct manager_peer *peer, struct pwi_reader *reader,
                         struct decision *decision) {
  uint64_t what = peer->control.head.tick;
  pawl_status status = read_ask(manager, peer, what, reader, decision);
  if (status) {
    pwi_manager_audit_decision(manager, decision, status);
    pwi_manager_say_reply(manager, peer, decision->task, status, 0);
    return;
  }
  if (++peer->asks > PWI_MANAGER_ASKS_MAX) {
    pwi_manager_close(manager, peer, PAWL_LINK_BUSY);
    return;
  }
  pwi_manager_queue(manager, decision);
}

void pwi_manager_ask(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size) {
  struct pwi_reader reader;
  uint64_t what = peer->control.head.tick, task = peer->control.head.task;
  pwi_reader_init(&reader, payload, size);
  struct pwi_ask_terms terms = pwi_ask_terms_read(&reader);
  struct decision decision = {
      .conclude = pwi_manager_conclude_ask, .link = peer->link, .task = task, .ask = what, .heard = terms.heard};
  decision.who = peer->who;
  pawl_status status = reader.status ? PAWL_INVALID : PAWL_OK;
  if (!status && pwi_ask_changes(what)) {
    status = pwi_manager_asker(manager, peer, &terms, &decision.asker);
    if (!status && task <= terms.heard) status = PAWL_INVALID;
  }
  if (status) pwi_manager_audit_ask(manager, &peer->who, what, "", status);
  if (status)
    pwi_manager_say_reply(manager, peer, task, status, 0);
  else if (what == PWI_ASK_STATUS)
    tell_status(manager, peer, task);
  else if (what == PWI_ASK_CHECKPOINT)
    pwi_manager_checkpoint_asked(manager, peer, &reader, &decision);
  else
    ask_decision(manager, peer, &reader, &decision);
}
