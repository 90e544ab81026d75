/* The life of an engine, and the course of an operation. */
#include "peer/collective/collective.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/memory.h"
#include "peer/collective/arithmetic.h"
#include "peer/collective/inside.h"
#include "protocol/planted.h"

#define COOKIE_FENCE (COLLECTIVE_SLOTS + 1)

struct collective_peer *pwi_collective_find(const struct pwi_collective *engine, uint64_t id) {
  return id ? pwi_idmap_get(&engine->by_id, id) : NULL;
}

void pwi_collective_say(struct pwi_collective *engine, const struct collective_peer *peer, enum collective_say kind,
                        const struct collective_message *message) {
  unsigned char bytes[COLLECTIVE_MESSAGE_SIZE];
  pwi_collective_message_encode(message, bytes);
  (void)pwi_channel_send(engine->channel, peer->sender, kind, bytes, sizeof bytes);
}

void pwi_collective_wake(struct pwi_collective *engine) {
  if (engine->config.wakes) engine->config.wakes(engine->config.context);
}

/* --- pieces --------------------------------------------------------------------------------------------- */

/* The part of a transfer of `size` bytes that lies in the segment ends here. */
static size_t segment_end(const struct pwi_collective *engine, const struct collective_cursor *at, size_t size) {
  size_t begin = at->segment ? at->segment * engine->segment_size : 0;
  if (begin >= size) return begin;
  return size - begin < engine->segment_size ? size : begin + engine->segment_size;
}

static size_t piece_size(const struct pwi_collective *engine, const struct collective_cursor *at, size_t size) {
  size_t left = segment_end(engine, at, size) - at->offset;
  return left < COLLECTIVE_PIECE ? left : COLLECTIVE_PIECE;
}

/* Behind a piece of a transfer of `size` bytes, of `count` transfers. */
static void move(const struct pwi_collective *engine, struct collective_cursor *at, size_t size, uint32_t count) {
  at->offset += piece_size(engine, at, size);
  if (at->offset < segment_end(engine, at, size)) return;
  if (++at->index == count) {
    at->index = 0;
    at->segment++;
  }
  at->offset = at->segment ? at->segment * engine->segment_size : 0;
}

static bool is_at_end(const struct pwi_collective *engine, const struct collective_cursor *at, uint32_t count) {
  return count == 0 || at->segment == engine->segments;
}

/* Stages the piece whose values are in its room, of the present send. */
static void stage(struct pwi_collective *engine) {
  const struct collective_send *send = &engine->sends[engine->send_at.index];
  struct collective_head head = {.epoch = engine->epoch,
                                 .sequence = engine->sequence,
                                 .call = engine->work.call,
                                 .transfer = send->index,
                                 .offset = engine->send_at.offset,
                                 .size = (uint32_t)piece_size(engine, &engine->send_at, send->size)};
  pwi_collective_stage(engine, send->peer, &head);
  move(engine, &engine->send_at, send->size, engine->send_count);
}

/* Only operations of one segment have sends that need receives. */
static bool send_step(struct pwi_collective *engine) {
  if (is_at_end(engine, &engine->send_at, engine->send_count)) return false;
  const struct collective_send *send = &engine->sends[engine->send_at.index];
  bool is_ready = send->needs == 0 || engine->receive_at.index >= send->needs || engine->receive_at.segment > 0;
  if (send->is_forward || !is_ready || !pwi_collective_has_room(send->peer)) return false;
  size_t size = piece_size(engine, &engine->send_at, send->size);
  if (size > 0) memcpy(pwi_collective_room(send->peer), send->from + engine->send_at.offset, size);
  stage(engine);
  return true;
}

/* The send that passes the next piece on is not there yet, or has no room. */
static bool must_wait(const struct pwi_collective *engine, const struct collective_receive *receive) {
  const struct collective_cursor *send = &engine->send_at;
  if (receive->forward == 0) return false;
  return send->index != receive->forward - 1 || send->segment != engine->receive_at.segment ||
         send->offset != engine->receive_at.offset || !pwi_collective_has_room(engine->sends[send->index].peer);
}

static bool is_old(const struct pwi_collective *engine, const struct collective_head *head) {
  if (pwi_is_planted(PWI_PLANTED_COLLECTIVE_OLD_PIECE)) return false;
  int order = pwi_collective_compare(head->epoch, engine->epoch);
  return engine->is_live ? order < 0 : order <= 0;
}

static void differs(struct pwi_collective *engine, const struct collective_peer *peer,
                    const struct collective_head *head) {
  char theirs[COLLECTIVE_CALL_TEXT], ours[COLLECTIVE_CALL_TEXT];
  pwi_collective_describe_call(&head->call, theirs);
  pwi_collective_describe_call(&engine->work.call, ours);
  pwi_collective_fail(engine, PAWL_MISMATCH, peer->sender.id, engine->own_id,
                      "node %" PRIu64 " called %s as operation %" PRIu64 ", node %" PRIu64
                      " called %s as operation %" PRIu64,
                      peer->sender.id, theirs, head->sequence, engine->own_id, ours, engine->sequence);
}

/* The piece is the one that is due. */
static bool check(struct pwi_collective *engine, const struct collective_receive *receive,
                  const struct collective_head *head) {
  const struct collective_peer *peer = receive->peer;
  if (head->sequence != engine->sequence || !pwi_collective_is_same(&head->call, &engine->work.call)) {
    differs(engine, peer, head);
    return false;
  }
  if (head->transfer == receive->index && head->offset == engine->receive_at.offset &&
      head->size == piece_size(engine, &engine->receive_at, receive->size))
    return true;
  pwi_collective_fail(engine, PAWL_CORRUPT, peer->sender.id, engine->own_id,
                      "node %" PRIu64 " sent another piece than the one that is due", peer->sender.id);
  return false;
}

/* Combines or copies the values of a piece, to the memory of the user, the next member, or both. Each byte of the inbox
 * is read once. */
static void use(struct pwi_collective *engine, const struct collective_receive *receive, const unsigned char *values,
                size_t size) {
  const struct collective_call *call = &engine->work.call;
  unsigned char *room = receive->forward ? pwi_collective_room(engine->sends[engine->send_at.index].peer) : NULL;
  unsigned char *into = receive->into ? receive->into + engine->receive_at.offset : room;
  if (size == 0) return;
  if (receive->own)
    pwi_collective_combine(call->operator_, call->type, into, values, receive->own + engine->receive_at.offset,
                           size / pawl_type_size(call->type));
  else
    memcpy(into, values, size);
  if (room && into != room) memcpy(room, into, size);
}

static bool receive_step(struct pwi_collective *engine) {
  struct collective_head head;
  const unsigned char *values;
  if (is_at_end(engine, &engine->receive_at, engine->receive_count)) return false;
  const struct collective_receive *receive = &engine->receives[engine->receive_at.index];
  if (!pwi_collective_peek(engine, receive->peer, &head, &values) || is_old(engine, &head)) return false;
  if (pwi_collective_compare(head.epoch, engine->epoch) > 0) return false; /* this epoch has failed there */
  if (!check(engine, receive, &head) || must_wait(engine, receive)) return false;
  use(engine, receive, values, head.size);
  pwi_collective_take(engine, receive->peer);
  if (receive->forward) stage(engine);
  move(engine, &engine->receive_at, receive->size, engine->receive_count);
  return true;
}

/* Pieces of epochs that are over. */
static void drop_old(struct pwi_collective *engine, struct collective_peer *peer) {
  struct collective_head head;
  const unsigned char *values;
  while (pwi_collective_peek(engine, peer, &head, &values) && is_old(engine, &head)) pwi_collective_take(engine, peer);
}

/* --- operations ----------------------------------------------------------------------------------------- */

static void end_with(struct pwi_collective *engine, pawl_status status) {
  engine->phase = COLLECTIVE_OVER;
  engine->status = status;
  pwi_collective_wake(engine);
}

static bool is_apart(const void *a, size_t a_size, const void *b, size_t b_size) {
  uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
  return a_size == 0 || b_size == 0 || (x < y ? y - x >= a_size : x - y >= b_size);
}

/* The two buffers of an operation share only the place that <pawl/collective.h> allows. */
static pawl_status check_overlap(struct pwi_collective *engine) {
  const struct collective_call *call = &engine->work.call;
  const unsigned char *in = engine->work.in, *out = engine->work.out;
  size_t value = pawl_type_size(call->type), bytes = call->count * value, first, count;
  bool is_ok = true;
  pawl_collective_block(call->count, engine->size, engine->rank, &first, &count);
  if (call->kind == COLLECTIVE_ALL_GATHER)
    is_ok = is_apart(in, bytes, out, bytes * engine->size) || in == out + bytes * engine->rank;
  if (call->kind == COLLECTIVE_ALL_REDUCE) is_ok = is_apart(in, bytes, out, bytes) || in == out;
  if (call->kind == COLLECTIVE_REDUCE_SCATTER)
    is_ok = is_apart(in, bytes, out, count * value) || out == in + first * value;
  if (is_ok) return PAWL_OK;
  snprintf(engine->problem, sizeof engine->problem, "in and out overlap");
  return PAWL_INVALID;
}

/* The parts of an operation that depend on the members. */
static pawl_status check_work(struct pwi_collective *engine) {
  const struct collective_call *call = &engine->work.call;
  size_t needed = 0, first;
  if (call->kind == COLLECTIVE_BROADCAST && call->root >= engine->size) {
    snprintf(engine->problem, sizeof engine->problem, "root is %" PRIu32 ", but there are %" PRIu32 " members",
             call->root, engine->size);
    return PAWL_INVALID;
  }
  if (call->kind == COLLECTIVE_ALL_GATHER && !pwi_mul_size(call->count, engine->size * sizeof(double), &needed)) {
    snprintf(engine->problem, sizeof engine->problem, "no memory has room for the values of %" PRIu32 " members",
             engine->size);
    return PAWL_TOO_LARGE;
  }
  if (call->kind == COLLECTIVE_ALL_GATHER) needed = call->count * engine->size;
  if (call->kind == COLLECTIVE_REDUCE_SCATTER)
    pawl_collective_block(call->count, engine->size, engine->rank, &first, &needed);
  if (engine->work.room >= needed) return check_overlap(engine);
  snprintf(engine->problem, sizeof engine->problem,
           "room is %zu, but %zu values are the result for %" PRIu32 " members", engine->work.room, needed,
           engine->size);
  return PAWL_INVALID;
}

static void start(struct pwi_collective *engine) {
  pawl_status status = check_work(engine);
  if (status) {
    end_with(engine, status);
    return;
  }
  engine->phase = COLLECTIVE_RUNNING;
  engine->sequence++;
  pwi_collective_plan(engine);
}

/* A neighbour that has closed takes part in no later operation. */
static void look_for_gone(struct pwi_collective *engine) {
  for (const struct collective_peer *peer = engine->peers; peer && engine->is_live; peer = peer->next) {
    bool is_same = pwi_collective_compare(peer->gone_epoch, engine->epoch) == 0;
    if (!peer->is_gone || (!peer->is_in && !peer->is_out)) continue;
    if (engine->sequence > (is_same ? peer->gone_after : 0))
      pwi_collective_fail(engine, PAWL_NODE_GONE, peer->sender.id, 0, "node %" PRIu64 " has closed the collective",
                          peer->sender.id);
  }
}

/* All pieces of a member that has closed are there, and it takes no more. */
static void look_for_missing(struct pwi_collective *engine) {
  const struct collective_peer *peer = NULL;
  if (!is_at_end(engine, &engine->receive_at, engine->receive_count)) {
    peer = engine->receives[engine->receive_at.index].peer;
    if (!peer->is_gone || peer->landed != peer->taken) peer = NULL;
  }
  if (!peer && !is_at_end(engine, &engine->send_at, engine->send_count)) {
    peer = engine->sends[engine->send_at.index].peer;
    if (!peer->is_gone || pwi_collective_has_room(peer)) peer = NULL;
  }
  if (peer)
    pwi_collective_fail(engine, PAWL_NODE_GONE, peer->sender.id, 0,
                        "node %" PRIu64 " has closed the collective before its part was done", peer->sender.id);
}

static void run(struct pwi_collective *engine) {
  if (engine->phase == COLLECTIVE_PENDING && engine->is_live) start(engine);
  if (engine->phase == COLLECTIVE_RUNNING) look_for_gone(engine);
  while (engine->phase == COLLECTIVE_RUNNING) {
    bool has_sent = send_step(engine);
    if (engine->phase == COLLECTIVE_RUNNING && !receive_step(engine) && !has_sent) break;
  }
  if (engine->phase == COLLECTIVE_RUNNING) look_for_missing(engine);
  if (engine->phase != COLLECTIVE_RUNNING || !is_at_end(engine, &engine->send_at, engine->send_count) ||
      !is_at_end(engine, &engine->receive_at, engine->receive_count))
    return;
  pwi_collective_finish(engine);
  engine->completed++;
  end_with(engine, PAWL_OK);
}

/* --- closing -------------------------------------------------------------------------------------------- */

void pwi_collective_landed(struct pwi_collective *engine, struct collective_peer *peer) {
  struct collective_message message = {.epoch = engine->epoch, .position = engine->completed};
  peer->farewell = COLLECTIVE_SAID_BYE;
  pwi_collective_say(engine, peer, COLLECTIVE_BYE, &message);
}

/* True if nothing more is to be said to the peer. One that is not linked may still need pieces, or the reason of a
 * failure: it would take this member for lost. */
static bool part(struct pwi_collective *engine, struct collective_peer *peer) {
  bool has_pieces = engine->is_live && peer->is_out && !peer->is_gone && peer->put < peer->staged;
  bool has_reason = engine->failed && (peer->is_in || peer->is_out) && !peer->is_gone && !peer->has_closed &&
                    peer->farewell != COLLECTIVE_PARTED;
  if (!peer->is_linked) return (!has_pieces && !has_reason) || !pwi_collective_is_member(engine, peer->sender.id);
  if (peer->farewell == COLLECTIVE_STAYS && !has_pieces) {
    if (!pwi_channel_fence(engine->channel, peer->sender, COOKIE_FENCE)) peer->farewell = COLLECTIVE_FENCED;
  }
  return peer->farewell == COLLECTIVE_PARTED || peer->is_gone;
}

static void close_step(struct pwi_collective *engine, bool is_late) {
  bool is_over = true;
  for (struct collective_peer *peer = engine->peers; peer; peer = peer->next)
    if (!part(engine, peer)) is_over = false;
  if (!is_over && !is_late) return;
  engine->has_left = true;
  pwi_channel_close(engine->channel);
}

/* --- advancing ------------------------------------------------------------------------------------------ */

static void advance_once(struct pwi_collective *engine) {
  for (struct collective_peer *peer = engine->peers; peer; peer = peer->next) {
    pwi_collective_open_inbox(engine, peer);
    drop_old(engine, peer);
    pwi_collective_flush(engine, peer);
  }
  if (!engine->is_suspended) run(engine);
}

void pwi_collective_advance(struct pwi_collective *engine) {
  if (engine->has_left) return;
  advance_once(engine);
  pwi_collective_meet_next(engine);
  if (engine->is_closing) close_step(engine, false);
}

pawl_status pwi_collective_begin(struct pwi_collective *engine, const struct pwi_collective_work *work) {
  const struct pwi_collective_work *last = &engine->work;
  if (engine->phase == COLLECTIVE_OVER && engine->status) engine->phase = COLLECTIVE_IDLE; /* it failed meanwhile */
  if (engine->phase != COLLECTIVE_IDLE) {
    if (!pwi_collective_is_same(&last->call, &work->call) || last->in != work->in || last->out != work->out ||
        last->room != work->room)
      return PAWL_INVALID;
  } else {
    engine->work = *work;
    engine->phase = COLLECTIVE_PENDING;
    if (engine->failed && !engine->is_readying) end_with(engine, engine->failed);
  }
  engine->is_suspended = engine->is_renewing = false;
  pwi_collective_advance(engine);
  return PAWL_OK;
}

bool pwi_collective_is_over(const struct pwi_collective *engine) { return engine->phase == COLLECTIVE_OVER; }

pawl_status pwi_collective_end(struct pwi_collective *engine) {
  if (engine->phase != COLLECTIVE_OVER) {
    engine->is_suspended = true;
    return PAWL_TIMED_OUT;
  }
  engine->phase = COLLECTIVE_IDLE;
  return engine->status;
}

void pwi_collective_renew(struct pwi_collective *engine) {
  if (engine->is_renewing && (engine->is_readying || engine->is_live)) return;
  engine->is_renewing = true;
  engine->phase = COLLECTIVE_IDLE;
  engine->is_suspended = false;
  pwi_collective_fail(engine, PAWL_CANCELLED, engine->own_id, 0, "%s", "");
  engine->is_readying = true;
  pwi_collective_look_at_members(engine); /* an earlier attempt may have been short of memory */
  pwi_collective_want_links(engine);
  if (engine->is_deaf) pwi_collective_run_short(engine);
  pwi_collective_ready(engine);
  pwi_collective_advance(engine);
}

pawl_status pwi_collective_renewed(struct pwi_collective *engine) {
  engine->is_renewing = false;
  return engine->failed == PAWL_NO_MEMORY ? PAWL_NO_MEMORY : PAWL_OK;
}

bool pwi_collective_has_begun(const struct pwi_collective *engine) { return !engine->is_readying; }

/* --- life ----------------------------------------------------------------------------------------------- */

static pawl_status open_channel(struct pwi_collective *engine) {
  char name[PWI_CHANNEL_NAME_MAX + 1];
  unsigned char description[16];
  if (strlen(engine->config.name) > PAWL_COLLECTIVE_NAME_MAX) return PAWL_TOO_LARGE;
  snprintf(name, sizeof name, "collective/%s", engine->config.name);
  pwi_put_u64(description, COLLECTIVE_PIECE);
  pwi_put_u64(description + 8, engine->config.life);
  return pwi_channel_open(engine->config.peers, engine->config.group, name, description, sizeof description,
                          &pwi_collective_events, engine, &engine->channel);
}

pawl_status pwi_collective_create(const struct pwi_collective_config *config, struct pwi_collective **engine_out) {
  struct pwi_collective *engine = pwi_alloc_zero(1, sizeof *engine);
  if (!engine) return PAWL_NO_MEMORY;
  engine->config = *config;
  engine->config.name = pwi_copy_string(config->name);
  engine->scratch = pwi_alloc(COLLECTIVE_SMALL);
  engine->is_readying = true;
  pawl_status status = engine->config.name && engine->scratch ? open_channel(engine) : PAWL_NO_MEMORY;
  if (status) {
    engine->is_closed = true;
    pwi_collective_destroy(engine);
    return status;
  }
  pwi_collective_look_at_members(engine);
  pwi_collective_want_links(engine);
  pwi_collective_ready(engine);
  *engine_out = engine;
  return PAWL_OK;
}

void pwi_collective_close(struct pwi_collective *engine, int64_t deadline) {
  engine->is_closing = true;
  engine->close_by = deadline;
  engine->phase = COLLECTIVE_IDLE;
  pwi_collective_advance(engine);
}

int64_t pwi_collective_look_at(const struct pwi_collective *engine) {
  return engine->is_closing && !engine->has_left ? engine->close_by : PWI_NET_NEVER;
}

void pwi_collective_look(struct pwi_collective *engine, int64_t now) {
  if (engine->is_closing && !engine->has_left && now >= engine->close_by) close_step(engine, true);
}

void pwi_collective_destroy(struct pwi_collective *engine) {
  if (!engine) return;
  while (engine->peers) {
    struct collective_peer *peer = engine->peers;
    engine->peers = peer->next;
    if (engine->is_closed) pwi_net_region_close(engine->config.net, peer->inbox);
    pwi_free(peer->staging);
    pwi_free(peer);
  }
  pwi_idmap_fini(&engine->by_id);
  pwi_writer_fini(&engine->writer);
  pwi_free(engine->ids);
  pwi_free(engine->sends);
  pwi_free(engine->receives);
  pwi_free(engine->scratch);
  pwi_free((char *)engine->config.name);
  pwi_free(engine);
}

/* --- for people ----------------------------------------------------------------------------------------- */

const char *pwi_collective_problem(const struct pwi_collective *engine) { return engine->problem; }

void pwi_collective_state(const struct pwi_collective *engine, struct pawl_collective_state *state_out) {
  size_t members;
  (void)pwi_channel_members(engine->channel, &members);
  *state_out =
      (struct pawl_collective_state){.number = engine->epoch.number,
                                     .rank = engine->epoch.number ? engine->rank : pwi_channel_rank(engine->channel),
                                     .size = engine->size,
                                     .members = (uint32_t)members,
                                     .operations = engine->completed,
                                     .bytes_sent = engine->bytes_sent,
                                     .renewals = engine->renewals,
                                     .failed = engine->is_readying ? PAWL_OK : engine->failed};
}

/* While members have not begun: the caller knows who is missing, and others know only the caller. */
static void explain_beginning(const struct pwi_collective *engine, char *text, size_t size) {
  size_t count, missing = 0;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  uint64_t first = 0, number = pwi_channel_number(engine->channel);
  for (size_t i = 1; i < count && pwi_channel_rank(engine->channel) == 0; i++) {
    const struct collective_peer *peer = pwi_collective_find(engine, members[i].sender.id);
    if (peer && peer->ready_number == number) continue;
    if (missing++ == 0) first = members[i].sender.id;
  }
  if (missing == 1)
    snprintf(text, size, "waits for node %" PRIu64 ", which has not opened or renewed the collective", first);
  else if (missing > 1)
    snprintf(text, size, "waits for node %" PRIu64 " and %zu others, which have not opened or renewed the collective",
             first, missing - 1);
  else
    snprintf(text, size, "waits until all members have opened or renewed the collective");
}

void pwi_collective_explain(const struct pwi_collective *engine, char *text, size_t size) {
  if (!engine->is_live) {
    explain_beginning(engine, text, size);
    return;
  }
  if (engine->phase == COLLECTIVE_RUNNING && !is_at_end(engine, &engine->receive_at, engine->receive_count))
    snprintf(text, size, "waits for node %" PRIu64, engine->receives[engine->receive_at.index].peer->sender.id);
  else if (engine->phase == COLLECTIVE_RUNNING && !is_at_end(engine, &engine->send_at, engine->send_count))
    snprintf(text, size, "waits until node %" PRIu64 " takes its data",
             engine->sends[engine->send_at.index].peer->sender.id);
  else
    snprintf(text, size, "has not begun");
}
