/* How members agree on an epoch.
 *
 * The participating member with the lowest rank, the *caller*, calls an epoch when the members have changed, when
 * a member has closed the reduce, or has opened it again. Every member answers from inside a step, where its
 * tensors do not change, with the iterations that it has completed. When all have answered, the caller makes the
 * graph and tells each member to go on from the highest iteration. A member that is behind is given a donor.
 *
 * A caller that dies is followed by another one, because the number of the group rises. A caller that closes is
 * followed by the next one in rank, whose epochs are later than all that the first one called. A member that was
 * not linked is told again when it is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "peer/reduce/inside.h"
#include "protocol/planted.h"

/* The participants are the members that have not closed the reduce. */
static bool is_caller(const struct pwi_reduce *engine) {
  size_t count;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  uint64_t self = pwi_reduce_self(engine);
  if (engine->is_closing || engine->failed) return false;
  for (size_t i = 0; i < count; i++) {
    if (members[i].sender.id == self) return true;
    const struct reduce_peer *peer = pwi_reduce_find(engine, members[i].sender.id);
    if (!peer || !peer->is_gone) return false;
  }
  return false;
}

bool pwi_reduce_is_stale(const struct pwi_reduce *engine) {
  if (engine->epoch.number == 0 || engine->own_id != pwi_reduce_self(engine)) return true;
  /* A member that is to take over a model has completed as much as its donor, which serves it no more. */
  return pwi_reduce_epoch_compare(engine->called, engine->epoch) > 0 &&
         pwi_reduce_version(engine) > engine->called_after;
}

void pwi_reduce_forget_decision(struct pwi_reduce *engine) {
  struct reduce_decision *decision = &engine->decision;
  pwi_free(decision->ids);
  pwi_free(decision->donors);
  pwi_graph_destroy(decision->graph);
  *decision = (struct reduce_decision){0};
}

/* --- links ---------------------------------------------------------------------------------------------- */

static bool is_near(const struct pwi_reduce *engine, const struct reduce_peer *peer) {
  return peer->is_in || peer->is_out || peer->is_served || peer->sender.id == engine->donor ||
         peer->sender.id == engine->called.caller;
}

/* A caller wants all members; any other member its neighbours, and the member with the lowest rank. */
void pwi_reduce_want_links(struct pwi_reduce *engine) {
  size_t count, wants = 0;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  struct pwi_sender *ids = pwi_alloc_zero(count + 1, sizeof *ids);
  bool is_lowest = true, wants_all = is_caller(engine);
  if (!ids) {
    pwi_reduce_fail(engine, PAWL_NO_MEMORY, "%s", "");
    return;
  }
  for (size_t i = 0; i < count; i++) {
    const struct reduce_peer *peer = pwi_reduce_find(engine, members[i].sender.id);
    bool is_gone = peer && peer->is_gone;
    if (wants_all || (is_lowest && !is_gone) || (peer && is_near(engine, peer))) ids[wants++] = members[i].sender;
    if (!is_gone) is_lowest = false;
  }
  if (pwi_channel_want(engine->channel, ids, wants)) pwi_reduce_fail(engine, PAWL_NO_MEMORY, "%s", "");
  pwi_free(ids);
}

/* --- the caller ----------------------------------------------------------------------------------------- */

static void send_call(struct pwi_reduce *engine, const struct reduce_peer *peer) {
  struct reduce_message message = {.epoch = engine->called, .version = engine->called_after};
  if (peer->is_linked && !peer->is_gone) pwi_reduce_say(engine, peer, REDUCE_CALL, &message);
}

static void heard_of(struct pwi_reduce *engine, struct reduce_epoch epoch, uint64_t after) {
  engine->called = epoch;
  engine->called_after = after;
  engine->has_given_state = false;
  pwi_reduce_want_links(engine);
  if (engine->phase == PHASE_AGREE) {
    pwi_reduce_say_stop(engine, NULL);
    pwi_reduce_give_state(engine);
  }
}

/* A member that has closed has delivered the tensors of its last iteration: the others complete that first. */
static void call(struct pwi_reduce *engine, uint64_t after) {
  uint64_t number = pwi_channel_number(engine->channel);
  uint32_t round = engine->called.number == number ? engine->called.round + 1 : 1;
  for (struct reduce_peer *peer = engine->peers; peer; peer = peer->next) peer->has_state = false;
  pwi_reduce_forget_decision(engine);
  engine->called = (struct reduce_epoch){number, round, pwi_reduce_self(engine)};
  engine->called_after = after;
  engine->call_after = 0;
  for (const struct reduce_peer *peer = engine->peers; peer; peer = peer->next) send_call(engine, peer);
  heard_of(engine, engine->called, after);
}

static bool was_member(const struct pwi_reduce *engine, uint64_t id) {
  for (size_t i = 0; i < engine->member_count; i++)
    if (engine->members[i] == id) return true;
  return false;
}

/* The number of the group has changed. If the only change is that members have left which had closed the reduce, the
 * others first complete the last iteration of these. */
static uint64_t changed_after(const struct pwi_reduce *engine) {
  size_t count;
  uint64_t after = 0;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  if (engine->config.mode == PAWL_REDUCE_ASYNC) return 0;
  for (size_t i = 0; i < count; i++)
    if (!was_member(engine, members[i].sender.id)) return 0;
  for (size_t i = 0; i < engine->member_count; i++) {
    const struct reduce_peer *peer = pwi_reduce_find(engine, engine->members[i]);
    if (engine->members[i] == pwi_reduce_self(engine)) continue;
    if (peer && peer->is_gone && peer->gone_after > after) after = peer->gone_after;
    if (!(peer && peer->is_gone) && !pwi_reduce_is_member(engine, engine->members[i])) return 0;
  }
  return after;
}

void pwi_reduce_agree(struct pwi_reduce *engine) {
  uint64_t number = pwi_channel_number(engine->channel), self = pwi_reduce_self(engine);
  if (number == 0 || pwi_channel_rank(engine->channel) == UINT32_MAX) return;
  pwi_reduce_want_links(engine);
  if (is_caller(engine) && (engine->called.number != number || engine->called.caller != self))
    call(engine, changed_after(engine));
}

/* A member that is behind: in ASYNC mode members differ, and only new ones take over a model. */
static bool is_behind(const struct pwi_reduce *engine, uint64_t iteration, bool is_new, uint64_t highest) {
  return iteration < highest && (engine->config.mode != PAWL_REDUCE_ASYNC || is_new);
}

struct participant {
  uint64_t id, iteration;
  bool is_new;
};

/* The participants by ascending id; false if a state is missing. Without memory the engine fails. */
static bool gather(struct pwi_reduce *engine, struct participant **list_out, size_t *count_out) {
  size_t count;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  struct participant *list = pwi_alloc_zero(count, sizeof *list);
  bool is_whole = list != NULL && engine->has_given_state;
  if (!list) pwi_reduce_fail(engine, PAWL_NO_MEMORY, "no memory for the states of %zu members", count);
  *count_out = 0;
  for (size_t i = 0; is_whole && i < count; i++) {
    uint64_t id = members[i].sender.id;
    const struct reduce_peer *peer = pwi_reduce_find(engine, id);
    if (id == pwi_reduce_self(engine))
      list[(*count_out)++] = (struct participant){id, engine->completed, !engine->was_in_epoch};
    else if (peer && peer->has_state)
      list[(*count_out)++] = (struct participant){id, peer->iteration, peer->is_new};
    else
      is_whole = peer && peer->is_gone;
  }
  if (!is_whole) {
    pwi_free(list);
    return false;
  }
  *list_out = list;
  return true;
}

/* Donors take turns; a neighbour of the member comes first, because the two are linked anyway. */
static uint64_t choose_donor(const struct pwi_reduce *engine, const struct participant *list, size_t count, uint32_t of,
                             size_t *turn) {
  const struct reduce_decision *decision = &engine->decision;
  struct pwi_graph_row row = pwi_graph_in(decision->graph, of);
  for (size_t i = 0; i < row.count; i++)
    if (list[row.nodes[i]].iteration == decision->iteration) return list[row.nodes[i]].id;
  for (;;) {
    const struct participant *one = &list[(*turn)++ % count];
    if (one->iteration == decision->iteration) return one->id;
  }
}

/* Takes the graph of the plan. */
static pawl_status fill_decision(struct pwi_reduce *engine, const struct participant *list, size_t count) {
  struct reduce_decision *decision = &engine->decision;
  size_t turn = 0;
  decision->ids = pwi_alloc_zero(count, sizeof *decision->ids);
  decision->donors = pwi_alloc_zero(count, sizeof *decision->donors);
  if (!decision->ids || !decision->donors) return PAWL_NO_MEMORY;
  decision->epoch = engine->called;
  decision->count = count;
  for (size_t i = 0; i < count; i++) {
    decision->ids[i] = list[i].id;
    if (list[i].iteration > decision->iteration) decision->iteration = list[i].iteration;
  }
  memcpy(decision->name, engine->plan.name, sizeof decision->name);
  decision->graph = engine->plan.graph;
  engine->plan.graph = NULL;
  for (uint32_t i = 0; i < count; i++)
    if (is_behind(engine, list[i].iteration, list[i].is_new, decision->iteration))
      decision->donors[i] = choose_donor(engine, list, count, i, &turn);
  decision->is_made = true;
  return PAWL_OK;
}

static void write_row(const struct pwi_reduce *engine, struct pwi_writer *writer, struct pwi_graph_row row) {
  pwi_write_u32(writer, (uint32_t)row.count);
  for (size_t i = 0; i < row.count; i++) pwi_write_u64(writer, engine->decision.ids[row.nodes[i]]);
}

/* The GO for participant `index`, in engine->writer. */
static pawl_status write_go(struct pwi_reduce *engine, uint32_t index) {
  const struct reduce_decision *decision = &engine->decision;
  const struct pwi_graph_row none = {NULL, 0};
  struct pwi_writer *writer = &engine->writer;
  struct reduce_message head = {.epoch = decision->epoch, .version = decision->iteration, .size = decision->count};
  uint32_t serves = 0;
  pwi_writer_reset(writer);
  unsigned char *bytes = pwi_write_room(writer, REDUCE_MESSAGE_SIZE);
  if (bytes) pwi_reduce_message_encode(&head, bytes);
  pwi_write_u64(writer, decision->donors[index]);
  pwi_write_text(writer, decision->name);
  write_row(engine, writer, decision->graph ? pwi_graph_in(decision->graph, index) : none);
  write_row(engine, writer, decision->graph ? pwi_graph_out(decision->graph, index) : none);
  for (size_t i = 0; i < decision->count; i++) serves += decision->donors[i] == decision->ids[index];
  pwi_write_u32(writer, serves);
  for (size_t i = 0; i < decision->count; i++)
    if (decision->donors[i] == decision->ids[index]) pwi_write_u64(writer, decision->ids[i]);
  return writer->status;
}

static void send_go(struct pwi_reduce *engine, uint32_t index) {
  struct pwi_sender to = {engine->decision.ids[index]};
  if (write_go(engine, index)) {
    pwi_reduce_fail(engine, PAWL_NO_MEMORY, "%s", "");
    return;
  }
  if (to.id != pwi_reduce_self(engine))
    (void)pwi_channel_send(engine->channel, to, REDUCE_GO, engine->writer.data, engine->writer.size);
}

static void go_self(struct pwi_reduce *engine, uint32_t index) {
  struct reduce_go go;
  if (!write_go(engine, index) && !pwi_reduce_go_decode(engine->writer.data, engine->writer.size, &go))
    pwi_reduce_hear_go(engine, NULL, &go);
  else
    pwi_reduce_fail(engine, PAWL_NO_MEMORY, "%s", "");
}

static pawl_status plan(struct pwi_reduce *engine, const struct participant *list, size_t count) {
  uint64_t *ids = pwi_alloc_zero(count, sizeof *ids);
  if (!ids) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < count; i++) ids[i] = list[i].id;
  pawl_status status = pwi_reduce_begin_plan(engine, ids, count);
  pwi_free(ids);
  if (status) return status;
  engine->is_planning = engine->is_work_due = true;
  if (engine->config.wakes) engine->config.wakes(engine->config.context); /* the last state came by a message */
  return PAWL_OK;
}

static void announce_decision(struct pwi_reduce *engine) {
  uint32_t own = 0;
  for (uint32_t i = 0; i < engine->decision.count; i++) {
    if (engine->decision.ids[i] == pwi_reduce_self(engine)) own = i;
    send_go(engine, i);
  }
  go_self(engine, own);
}

/* When all states are there, the graph is made outside, and then the decision. In the same epoch the participants stay
 * the same: if one of them closes meanwhile, another epoch is called. */
static void decide(struct pwi_reduce *engine, bool is_planned) {
  struct participant *list;
  size_t count;
  if (engine->called.caller != pwi_reduce_self(engine) || engine->decision.is_made || engine->is_planning ||
      engine->called.number != pwi_channel_number(engine->channel) || !gather(engine, &list, &count))
    return;
  bool has_plan =
      is_planned && pwi_reduce_epoch_compare(engine->plan.epoch, engine->called) == 0 && engine->plan.count == count;
  pawl_status status = has_plan ? fill_decision(engine, list, count) : plan(engine, list, count);
  pwi_free(list);
  if (status)
    pwi_reduce_fail(engine, status, "no memory for the graph of %zu members", count);
  else if (has_plan)
    announce_decision(engine);
}

void pwi_reduce_planned(struct pwi_reduce *engine, pawl_status status) {
  engine->is_planning = false;
  if (status)
    pwi_reduce_fail(engine, status, "the graph '%.100s' cannot be made for %" PRIu32 " members",
                    engine->config.graph.name, engine->plan.count);
  else
    decide(engine, true);
  if (!engine->is_planning) pwi_reduce_forget_plan(engine);
}

static void hear_state(struct pwi_reduce *engine, struct reduce_peer *peer, const struct reduce_message *message) {
  if (pwi_reduce_epoch_compare(message->epoch, engine->called) != 0 ||
      engine->called.caller != pwi_reduce_self(engine) || peer->is_gone)
    return;
  peer->has_state = true;
  peer->iteration = message->version;
  peer->is_new = message->tag == 1;
  if (!engine->decision.is_made) {
    decide(engine, false);
    return;
  }
  for (uint32_t i = 0; i < engine->decision.count; i++) /* it has not heard */
    if (engine->decision.ids[i] == peer->sender.id) send_go(engine, i);
}

/* --- members -------------------------------------------------------------------------------------------- */

/* This member cannot go on in the present epoch, and no other was called. */
static void ask_for_call(struct pwi_reduce *engine) {
  struct reduce_message message = {.epoch = engine->epoch};
  size_t count;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  if (is_caller(engine)) {
    call(engine, 0);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    const struct reduce_peer *peer = pwi_reduce_find(engine, members[i].sender.id);
    if (!peer || peer->is_gone) continue;
    if (peer->is_linked) pwi_reduce_say(engine, peer, REDUCE_LATER, &message);
    return;
  }
}

void pwi_reduce_give_state(struct pwi_reduce *engine) {
  struct reduce_message message = {.epoch = engine->called, .version = engine->completed, .tag = !engine->was_in_epoch};
  if (engine->called.number == 0 || engine->called.number != pwi_channel_number(engine->channel)) return;
  if (pwi_reduce_epoch_compare(engine->called, engine->epoch) == 0) {
    ask_for_call(engine);
    return;
  }
  engine->has_given_state = true;
  if (engine->called.caller == pwi_reduce_self(engine)) {
    decide(engine, false);
    return;
  }
  const struct reduce_peer *caller = pwi_reduce_find(engine, engine->called.caller);
  if (caller && caller->is_linked) pwi_reduce_say(engine, caller, REDUCE_STATE, &message);
}

/* A member can be some rounds ahead, as each member that closes begins one. A faulty member could name the last round,
 * after which there is no other. */
bool pwi_reduce_is_credible(const struct pwi_reduce *engine, struct reduce_epoch epoch) {
  uint64_t number = pwi_channel_number(engine->channel),
           round = engine->called.number == number ? engine->called.round : 0;
  size_t count;
  (void)pwi_channel_members(engine->channel, &count);
  if (epoch.number != number) return epoch.number < number;
  return epoch.round <= round + 64 + 4 * (uint64_t)count && epoch.round <= INT32_MAX;
}

static void hear_call(struct pwi_reduce *engine, struct reduce_peer *peer, const struct reduce_message *message) {
  struct reduce_message later = {.epoch = engine->called};
  if (message->epoch.caller != peer->sender.id || message->epoch.number != pwi_channel_number(engine->channel)) return;
  int order = pwi_reduce_epoch_compare(message->epoch, engine->called);
  if (order > 0)
    heard_of(engine, message->epoch, message->version);
  else if (order < 0 && engine->called.number == message->epoch.number)
    pwi_reduce_say(engine, peer, REDUCE_LATER, &later);
  else if (order == 0 && engine->phase == PHASE_AGREE)
    pwi_reduce_give_state(engine);
}

/* A member knows a later epoch, of a caller that has closed; or it cannot complete its step in this one. */
static void hear_later(struct pwi_reduce *engine, const struct reduce_message *message) {
  if (!is_caller(engine) || message->epoch.number != pwi_channel_number(engine->channel) ||
      pwi_reduce_epoch_compare(message->epoch, engine->called) < 0)
    return;
  engine->called.round = message->epoch.round;
  call(engine, 0);
}

void pwi_reduce_hear_agree(struct pwi_reduce *engine, struct reduce_peer *peer, uint32_t kind,
                           const struct reduce_message *message) {
  if (!pwi_reduce_is_credible(engine, message->epoch)) return;
  if (kind == REDUCE_CALL)
    hear_call(engine, peer, message);
  else if (kind == REDUCE_LATER)
    hear_later(engine, message);
  else
    hear_state(engine, peer, message);
}

void pwi_reduce_agree_linked(struct pwi_reduce *engine, struct reduce_peer *peer) {
  bool was_gone = peer->is_gone;
  peer->is_gone = false;
  if (was_gone && is_caller(engine))
    call(engine, 0); /* it has opened the reduce again */
  else if (engine->called.caller == pwi_reduce_self(engine) &&
           engine->called.number == pwi_channel_number(engine->channel))
    send_call(engine, peer);
  if (engine->phase != PHASE_AGREE) return;
  if (peer->sender.id == engine->called.caller || pwi_reduce_epoch_compare(engine->called, engine->epoch) == 0)
    pwi_reduce_give_state(engine);
}

void pwi_reduce_agree_gone(struct pwi_reduce *engine, struct reduce_peer *peer, uint64_t after) {
  if (peer->is_gone) return;
  peer->is_gone = true;
  peer->gone_after = after;
  pwi_reduce_want_links(engine);                                   /* another member may have the lowest rank now */
  if (engine->config.mode == PAWL_REDUCE_ASYNC) after = 0;         /* iterations differ */
  if (after > engine->completed && engine->phase != PHASE_AGREE) { /* that phase does not complete an iteration */
    if (engine->call_after < after) engine->call_after = after;
  } else if (is_caller(engine)) {
    call(engine, after);
  }
}

void pwi_reduce_agree_completed(struct pwi_reduce *engine) {
  uint64_t after = engine->call_after;
  if (after == 0 || engine->completed < after) return;
  engine->call_after = 0;
  if (is_caller(engine)) call(engine, after);
}

/* --- going on ------------------------------------------------------------------------------------------- */

static void set_neighbours(struct pwi_reduce *engine, const struct reduce_go *go) {
  for (struct reduce_peer *peer = engine->peers; peer; peer = peer->next) {
    peer->is_in = peer->is_out = peer->is_served = false;
    peer->model_next = 0;
  }
  for (uint32_t i = 0; i < go->in_count; i++) {
    struct reduce_peer *peer = pwi_reduce_find(engine, pwi_reduce_go_id(go->ins, i));
    if (peer) peer->is_in = true;
  }
  for (uint32_t i = 0; i < go->out_count; i++) {
    struct reduce_peer *peer = pwi_reduce_find(engine, pwi_reduce_go_id(go->outs, i));
    if (peer) peer->is_out = true;
  }
  for (uint32_t i = 0; i < go->serve_count; i++) {
    struct reduce_peer *peer = pwi_reduce_find(engine, pwi_reduce_go_id(go->serves, i));
    if (peer) peer->is_served = true;
  }
  pwi_reduce_note_near(engine);
}

void pwi_reduce_note_near(struct pwi_reduce *engine) {
  struct reduce_peer **at = &engine->near;
  for (struct reduce_peer *peer = engine->peers; peer; peer = peer->next) {
    if (!peer->is_in && !peer->is_out && !peer->is_served) continue;
    *at = peer;
    at = &peer->near_next;
  }
  *at = NULL;
}

/* The members of the epoch. */
static pawl_status note_members(struct pwi_reduce *engine) {
  size_t count;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  uint64_t *ids = pwi_resize_array(engine->members, count, sizeof *ids);
  if (!ids) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < count; i++) ids[i] = members[i].sender.id;
  engine->members = ids;
  engine->member_count = count;
  return PAWL_OK;
}

static pawl_status make_room(struct pwi_reduce *engine, uint32_t inputs) {
  if (inputs <= engine->input_room) return PAWL_OK;
  struct reduce_peer **used = pwi_resize_array(engine->inputs_used, inputs, sizeof *used);
  if (!used) return PAWL_NO_MEMORY;
  engine->inputs_used = used;
  engine->input_room = inputs;
  return PAWL_OK;
}

/* A GO names members of the number that both know; a faulty caller may name others. */
static bool knows_all(const struct pwi_reduce *engine, const unsigned char *ids, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!pwi_reduce_find(engine, pwi_reduce_go_id(ids, i))) return false;
  return true;
}

void pwi_reduce_hear_go(struct pwi_reduce *engine, struct reduce_peer *peer, const struct reduce_go *go) {
  if (pwi_reduce_epoch_compare(go->head.epoch, engine->called) != 0 || engine->phase != PHASE_AGREE ||
      go->head.epoch.number != pwi_channel_number(engine->channel) || /* another one will be called */
      !engine->has_given_state || (peer && peer->sender.id != engine->called.caller) ||
      pwi_reduce_epoch_compare(go->head.epoch, engine->epoch) == 0)
    return;
  if (!knows_all(engine, go->ins, go->in_count) || !knows_all(engine, go->outs, go->out_count) ||
      !knows_all(engine, go->serves, go->serve_count) || (go->donor && !pwi_reduce_find(engine, go->donor))) {
    pwi_reduce_fail(engine, PAWL_CORRUPT, "the member with the lowest rank names a node that is no member");
    return;
  }
  if (note_members(engine) || make_room(engine, go->in_count)) {
    pwi_reduce_fail(engine, PAWL_NO_MEMORY, "%s", "");
    return;
  }
  for (struct reduce_peer *at = engine->peers; at; at = at->next)
    if (!pwi_is_planted(PWI_PLANTED_REDUCE_OLD_SLOT) || !at->is_linked) pwi_reduce_retire_slot(engine, at);
  set_neighbours(engine, go);
  engine->epoch = go->head.epoch;
  engine->own_id = pwi_reduce_self(engine);
  engine->was_in_epoch = true;
  engine->rank = pwi_channel_rank(engine->channel);
  engine->size = (uint32_t)go->head.size;
  engine->inputs = go->in_count;
  engine->outputs = go->out_count;
  memcpy(engine->graph, go->graph, sizeof engine->graph);
  engine->regenerated++;
  engine->report.is_regenerated = true;
  pwi_reduce_enter_epoch(engine, go->head.version, go->donor);
}
