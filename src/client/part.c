/* The states of a part, from its call to its answer.
 *
 * This file decides whether a part is queued, parked, blocked or over. client/peer.c keeps the queues, and
 * client/send.c sends.
 */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/search.h"
#include "client/inside.h"
#include "protocol/planted.h"

#define RETRY_FIRST INT64_C(1000000) /* 1 ms, doubled with each try */
#define RETRY_DOUBLINGS 6

bool pwi_part_is_numbered(const struct client_part *part) { return part->number != 0; }

/* True for requests that name a predecessor, which is a task number of the client's present id. */
bool pwi_part_has_order(const struct client_part *part) {
  return pwi_part_is_numbered(part) || part->kind == PWI_REQUEST_PULL || part->kind == PWI_REQUEST_FOLD ||
         part->kind == PWI_REQUEST_SCAN;
}

static bool overlaps(const struct client_part *a, const struct client_part *b) {
  return a->claim.begin < b->claim.end && b->claim.begin < a->claim.end;
}

/* --- tasks ---------------------------------------------------------------------------------------------- */

void pwi_task_open(struct pwi_client *client, struct pwi_task *task, bool is_numbered) {
  task->status = PAWL_OK;
  task->failure_count = 0;
  task->found = task->rows = task->number = 0;
  task->folded = 0;
  task->result_count = 0;
  task->parts = 0;
  task->is_starting = true;
  task->is_numbered = is_numbered;
  task->mixing = NULL;
  task->filtered = NULL;
  task->folding = NULL;
  task->row_run = NULL;
  task->next = task->before = NULL;
  if (task->clocks) task->clocks->count = 0;
  client->outstanding++;
  if (!is_numbered) return;
  task->number = ++client->last_number;
  task->before = client->tasks_last;
  if (task->before)
    task->before->next = task;
  else
    client->tasks_first = task;
  client->tasks_last = task;
}

static void task_over(struct pwi_client *client, struct pwi_task *task) {
  if (task->mixing) pwi_client_unmix(client, task);
  pwi_filtered_free(client, task->filtered);
  if (task->folding) pwi_folding_end(client, task);
  if (task->row_run) pwi_row_run_end(client, task);
  client->outstanding--;
  if (task->is_numbered) {
    if (task->before)
      task->before->next = task->next;
    else
      client->tasks_first = task->next;
    if (task->next)
      task->next->before = task->before;
    else
      client->tasks_last = task->before;
    pwi_client_ticks_look(client);
    if (!client->tasks_first) pwi_client_idle(client);
  }
  task->finished(task);
}

/* Adjacent ranges with the same status become one failure. */
static void note_failure(struct pwi_task *task, struct pawl_range range, pawl_status status) {
  for (uint32_t i = 0; i < task->failure_count && i < PWI_TASK_FAILURES; i++) {
    struct pwi_task_failure *known = &task->failures[i];
    if (known->status != status || (known->range.end != range.begin && range.end != known->range.begin)) continue;
    if (known->range.end == range.begin)
      known->range.end = range.end;
    else
      known->range.begin = range.begin;
    return;
  }
  if (task->failure_count < PWI_TASK_FAILURES)
    task->failures[task->failure_count] = (struct pwi_task_failure){range, status};
  task->failure_count++;
  if (!task->status) task->status = status;
}

void pwi_task_part_over(struct pwi_client *client, struct pwi_task *task, struct pawl_range range, pawl_status status) {
  if (status) note_failure(task, range, status);
  assert(task->parts > 0);
  if (--task->parts == 0 && !task->is_starting) task_over(client, task);
}

void pwi_task_started(struct pwi_client *client, struct pwi_task *task) {
  task->is_starting = false;
  if (task->parts == 0) task_over(client, task);
}

/* --- slots ---------------------------------------------------------------------------------------------- */

static struct client_part *take_slot(struct pwi_client *client) {
  struct client_part *part = client->free_parts;
  if (part) {
    client->free_parts = part->next;
    return part;
  }
  if (!PWI_GROW(client->parts, client->part_room, client->part_count + 1)) return NULL;
  part = pwi_alloc_zero(1, sizeof *part);
  if (!part) return NULL;
  part->index = (uint32_t)client->part_count;
  client->parts[client->part_count++] = part;
  return part;
}

struct client_part *pwi_part_create(struct pwi_client *client, struct pwi_flow *flow, struct pwi_task *task) {
  struct client_part *part = take_slot(client);
  if (!part) return NULL;
  *part = (struct client_part){.index = part->index,
                               .generation = part->generation + 1,
                               .flow = flow,
                               .task = task,
                               .state = PART_BLOCKED,
                               .incarnation = flow->entry.incarnation};
  task->parts++;
  return part;
}

void pwi_part_link_behind(struct client_part *part, struct client_part *before) {
  struct pwi_flow *flow = part->flow;
  if (!before) before = flow->last;
  part->before = before;
  part->next = before ? before->next : NULL;
  if (part->before)
    part->before->next = part;
  else
    flow->first = part;
  if (part->next)
    part->next->before = part;
  else
    flow->last = part;
  flow->held_back++;
  flow->blocked++;
}

static void unlink_part(struct client_part *part) {
  struct pwi_flow *flow = part->flow;
  if (part->before)
    part->before->next = part->next;
  else
    flow->first = part->next;
  if (part->next)
    part->next->before = part->before;
  else
    flow->last = part->before;
  flow->ended++;
}

/* --- states --------------------------------------------------------------------------------------------- */

/* Makes the part BLOCKED, from any state. */
static void leave_state(struct pwi_client *client, struct client_part *part) {
  struct pwi_flow *flow = part->flow;
  switch (part->state) {
  case PART_SENT:
    pwi_peer_remove(part->peer, part);
    flow->held_back++;
    flow->blocked++;
    break;
  case PART_QUEUED:
    pwi_peer_remove(part->peer, part);
    flow->blocked++;
    break;
  case PART_PARKED:
    client->parked--;
    flow->blocked++;
    break;
  case PART_BLOCKED:
    break;
  }
  part->state = PART_BLOCKED;
  part->peer = NULL;
}

void pwi_part_hold(struct pwi_client *client, struct client_part *part, enum client_part_state state) {
  leave_state(client, part);
  if (state != PART_PARKED) return;
  part->flow->blocked--;
  part->state = PART_PARKED;
  client->parked++;
}

void pwi_part_enqueue(struct pwi_client *client, struct client_part *part, struct client_peer *peer) {
  leave_state(client, part);
  part->flow->blocked--;
  part->state = PART_QUEUED;
  part->peer = peer;
  pwi_peer_enqueue(client, peer, part);
}

void pwi_part_retry(struct pwi_client *client, struct client_part *part) {
  uint32_t doublings = part->tries < RETRY_DOUBLINGS ? part->tries : RETRY_DOUBLINGS;
  part->tries++;
  part->epoch = client->view ? client->view->epoch : 0;
  part->retry_at = pwi_net_now(client->config.net) + (RETRY_FIRST << doublings);
  pwi_part_hold(client, part, PART_PARKED);
  pwi_client_wake_at(client, part->retry_at);
}

void pwi_parts_unpark(struct pwi_client *client, bool all) {
  if (client->parked == 0) return;
  int64_t now = pwi_net_now(client->config.net);
  uint64_t epoch = client->view ? client->view->epoch : 0;
  for (size_t i = 0; i < client->part_count; i++) {
    struct client_part *part = client->parts[i];
    if (!part->flow || part->state != PART_PARKED) continue;
    if (all || part->epoch < epoch || part->retry_at <= now)
      pwi_part_settle(client, part);
    else
      pwi_client_wake_at(client, part->retry_at);
  }
}

/* The same for the second vector that the part reads. */
static bool other_waits(const struct client_part *part) {
  if (part->other == part->flow) return false;
  for (const struct client_part *earlier = part->other->first; earlier; earlier = earlier->next) {
    bool is_held = earlier->state == PART_PARKED || earlier->state == PART_BLOCKED;
    bool is_earlier = part->number == 0 || earlier->number < part->number;
    if (pwi_part_is_numbered(earlier) && is_earlier && (is_held || part->is_strict) && overlaps(earlier, part))
      return true;
  }
  return false;
}

/* True if the part has to follow an earlier push of the flow that is held back or, for a strict part, not
 * answered yet. (A queued push precedes the part, because queues are in order.) A read does not follow pushes
 * of a group that are later than its predecessor. */
bool pwi_part_waits_for_earlier(const struct client_part *part) {
  for (const struct client_part *earlier = part->before; earlier; earlier = earlier->before) {
    bool is_held = earlier->state == PART_PARKED || earlier->state == PART_BLOCKED;
    if (earlier->aggregate != 0 && !pwi_part_is_numbered(part) && earlier->number > part->prior) continue;
    if (pwi_part_is_numbered(earlier) && (is_held || part->is_strict) && overlaps(earlier, part) &&
        earlier->task != part->task)
      return true;
  }
  return part->other && other_waits(part);
}

static bool is_earlier_task(const struct pwi_client *client, const struct client_part *part) {
  return part->is_after_all && client->tasks_first != part->task && !pwi_is_planted(PWI_PLANTED_EARLY_TICK);
}

static bool must_block(const struct pwi_client *client, struct client_part *part) {
  if (part->is_written) return true; /* the next answer would be written to the same memory */
  if (part->is_collecting) return false;
  if (client->renewal != RENEWAL_NONE && pwi_part_has_order(part)) return true;
  if (part->flow->is_suspended) return true;
  if (is_earlier_task(client, part)) return true;
  if (!pwi_linear_may_follow(client, part)) return true;
  bool may_wait = part->flow->held_back > 1 || part->is_strict || (part->other && part->other->held_back > 0);
  return pwi_part_has_order(part) && may_wait && pwi_part_waits_for_earlier(part);
}

/* Ends the claim at `end`, because another server has the keys from there on. The rest becomes a part of its
 * own. The rest of a scan is left to its caller, who learns where to go on: only the answer tells how much
 * room is left. False if there is no memory. */
static bool end_claim_at(struct pwi_client *client, struct client_part *part, uint64_t end) {
  if (part->kind == PWI_REQUEST_SCAN) {
    part->claim.end = part->range.end = end;
    return true;
  }
  struct client_part *rest = pwi_part_split(client, part, end);
  if (!rest) return false;
  pwi_part_settle(client, rest);
  return true;
}

/* The head for the part's claim. If several heads have parts of the claim, the part is cut, and the rest is
 * routed by itself. An aggregate is always about one arc. */
static struct client_peer *route(struct pwi_client *client, struct client_part *part) {
  struct pwi_flow *flow = part->flow;
  if (flow->node != 0) return pwi_client_peer(client, flow->node);
  if (!client->view || client->view->arc_count == 0) return NULL;
  size_t arc = pwi_view_arc_of(client->view, pwi_place_position(&flow->place, part->claim.begin));
  const struct pwi_view_node *head = pwi_view_head(client->view, arc);
  uint64_t end = 0;
  for (;; arc++) {
    end = pwi_place_keys(&flow->place, pwi_view_arc_range(client->view, arc)).end;
    if (end >= part->claim.end || part->aggregate != 0 || flow->seen || !pwi_view_arcs_join(client->view, arc)) break;
  }
  if (end < part->claim.end && !end_claim_at(client, part, end)) return NULL;
  bool may_relay = part->aggregate != 0 || part->group != 0;
  struct client_peer *relay = may_relay ? pwi_relay_for(client, part, head->node.id) : NULL;
  return relay ? relay : pwi_client_peer(client, head->node.id);
}

void pwi_part_settle(struct pwi_client *client, struct client_part *part) {
  if (part->flow->dead) {
    pwi_part_end(client, part, part->flow->dead);
    return;
  }
  if (pwi_part_is_stale(part) && !part->is_collecting) {
    pwi_part_end(client, part, PAWL_RESTORED);
    return;
  }
  if (part->relayed && !pwi_relayed_may_go(client, part)) {
    pwi_part_end(client, part, PAWL_REFUSED);
    return;
  }
  if (must_block(client, part)) {
    pwi_part_hold(client, part, PART_BLOCKED);
    return;
  }
  part->is_strict = false;
  if (!client->is_joined || (pwi_part_is_numbered(part) && client->sender == 0)) {
    pwi_part_retry(client, part);
    return;
  }
  struct client_peer *peer = route(client, part);
  if (!peer) {
    pwi_part_retry(client, part);
    return;
  }
  pwi_part_enqueue(client, part, peer);
}

/* Settles the blocked parts that need not wait any more, in their order. A part that is settled may end, and others
 * with it; then the walk begins again, because the next part may be gone. */
void pwi_flow_unblock(struct pwi_client *client, struct pwi_flow *flow) {
  if (flow->blocked == 0 || flow->dead) return;
  for (struct client_part *part = flow->first, *next; part; part = next) {
    uint64_t ended = flow->ended;
    next = part->next;
    if (part->state == PART_BLOCKED && !must_block(client, part)) pwi_part_settle(client, part);
    if (flow->ended != ended) next = flow->first;
  }
}

void pwi_client_ticks_look(struct pwi_client *client) {
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next)
    if (flow->entry.kind == PWI_ENTRY_GROUP) pwi_flow_unblock(client, flow);
}

/* The part has ended, and the net does not use the caller's memory any more. */
static void part_over(struct pwi_client *client, struct client_part *part) {
  struct pwi_task *task = part->task;
  pawl_status status = part->over_status;
  struct pawl_range range = part->range;
  pwi_keylist_release(part->list);
  part->list = NULL;
  part->is_over = false;
  part->next = client->free_parts;
  client->free_parts = part;
  pwi_task_part_over(client, task, range, status);
}

void pwi_part_let_go(struct pwi_client *client, struct client_part *part) {
  assert(part->borrowed > 0);
  if (--part->borrowed == 0 && part->is_over) part_over(client, part);
}

/* The answer may arrive before the net has finished with the body, and the part may end while its answer is being
 * received. The memory belongs to the caller only when the net uses it no more. */
void pwi_part_end(struct pwi_client *client, struct client_part *part, pawl_status status) {
  struct pwi_flow *flow = part->flow;
  assert(flow && !part->is_over);
  bool was_numbered = pwi_part_is_numbered(part);
  leave_state(client, part);
  flow->blocked--;
  flow->held_back--;
  unlink_part(part);
  if (part->is_collecting) client->collecting--;
  part->flow = NULL;
  part->generation++;
  part->is_over = true;
  part->over_status = part->voided ? part->voided : status;
  if (was_numbered) pwi_flow_unblock(client, flow);
  if (part->other || flow->readers > 0) pwi_linear_over(client, flow, part, was_numbered);
  if (part->borrowed == 0) part_over(client, part);
}

static const uint64_t no_keys[1];

void pwi_part_fail(struct pwi_client *client, struct client_part *part, pawl_status status) {
  bool is_void = part->voided != PAWL_OK;
  bool has_number = pwi_part_is_numbered(part) && pwi_request_has_rows(part->kind) && !part->is_collecting;
  if (!has_number || (is_void && part->aggregate == 0)) {
    pwi_part_end(client, part, status);
    return;
  }
  pwi_part_hold(client, part, PART_BLOCKED); /* before the sizes change that its peer counts */
  if (is_void) part->aggregate = 0;          /* perhaps the aggregate was the reason */
  if (!is_void) part->voided = status;
  pwi_keylist_release(part->list);
  part->list = NULL;
  part->signature = 0;
  part->is_wanted = false;
  part->kind = PWI_REQUEST_PUSH;
  part->operation = (struct pwi_operation){0};
  part->keys = no_keys;
  part->rows = 0;
  part->in = NULL;
  part->operand = NULL;
  part->operand_rows = 0;
  part->out = NULL;
  pwi_part_settle(client, part);
}

void pwi_flow_kill(struct pwi_client *client, struct pwi_flow *flow, pawl_status status) {
  flow->dead = status;
  while (flow->first) pwi_part_end(client, flow->first, status);
}

/* --- narrowing ------------------------------------------------------------------------------------------ */

static void skip_rows(struct client_part *part, size_t rows) {
  if (part->in) part->in += rows * pwi_flow_bytes_beside(part->flow, part->kind, part->operand_rows);
  if (part->out) part->out += rows * part->flow->row_bytes;
}

/* Reduces the part to `claim`, which lies in its present claim. True if it still names keys. A push without
 * keys is sent all the same, to move the clock. */
bool pwi_part_narrow(struct pwi_client *client, struct client_part *part, struct pawl_range claim) {
  (void)client;
  assert(part->kind != PWI_REQUEST_SCAN && "the rows of a scan are its room, not its range");
  struct pawl_range range = pawl_range_common(part->range, claim);
  if (!pwi_range_overlap(part->range, claim)) part->aggregate = 0;
  part->claim = claim;
  part->signature = 0;
  if (part->keys) {
    size_t first = pwi_first_not_below(part->keys, part->rows, claim.begin);
    size_t last = pwi_first_not_below(part->keys, part->rows, claim.end);
    skip_rows(part, first);
    part->keys += first;
    part->list_first += first;
    part->rows = last - first;
    part->range = pawl_range_is_empty(range) ? claim : range;
  } else if (!pawl_range_is_empty(range)) {
    skip_rows(part, (size_t)(range.begin - part->range.begin));
    part->range = range;
    part->rows = (size_t)pawl_range_size(range);
  } else {
    part->keys = no_keys;
    part->rows = 0;
    part->range = claim;
  }
  return part->rows > 0;
}

/* Cuts the part at the key `at`. The new part behind it gets the keys from `at` on, with the same task,
 * number and predecessor. NULL if there is no memory: nothing has changed. */
struct client_part *pwi_part_split(struct pwi_client *client, struct client_part *part, uint64_t at) {
  assert(at > part->claim.begin && at < part->claim.end);
  struct client_part *rest = pwi_part_create(client, part->flow, part->task);
  if (!rest) return NULL;
  uint32_t index = rest->index, generation = rest->generation;
  *rest = *part;
  rest->index = index;
  rest->generation = generation;
  rest->state = PART_BLOCKED;
  rest->borrowed = 0;
  rest->peer = NULL;
  rest->peer_next = rest->peer_before = NULL;
  if (rest->list) pwi_keylist_retain(rest->list);
  if (rest->is_collecting) client->collecting++;
  if (rest->operation.kind) pwi_linear_begun(rest);
  pwi_part_link_behind(rest, part);
  pwi_part_narrow(client, rest, pawl_range_of(at, part->claim.end));
  pwi_part_narrow(client, part, pawl_range_of(part->claim.begin, at));
  return rest;
}
