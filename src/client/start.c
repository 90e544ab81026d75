/* Calls become parts.
 *
 * A call is cut three times: by the arcs of the view, because each head serves its own; by the clock of sent
 * numbers, because a part names one predecessor, which must be right for its whole claim (store/clock.h); and
 * by size. Adjacent pieces for the same chain with the same predecessor are joined again. So are pieces of
 * adjacent arcs that one node holds alone: without replicas, a call normally becomes one part per run of arcs
 * with the same head.
 *
 * A push claims whole arcs, whatever keys it names; otherwise clocks would break into ever smaller pieces. If
 * the clock of an arc is in pieces, the push claims all of them, even those in which it names no key. A pull
 * claims only the keys that it reads.
 */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/search.h"
#include "client/inside.h"
#include "protocol/planted.h"
#include "wire/keys.h"

#define RANGE_BYTES_MAX (UINT64_C(1) << 40) /* of one call without a key list; more must be an error */

#define LIST_ROWS ((size_t)64 << 10)
#define KEPT_ROWS ((size_t)256 << 10)
#define CARRIED_BYTES ((size_t)1 << 20)

/* All parts of the task exist. */
static void end_start(struct pwi_client *client, struct pwi_task *task) {
  pwi_task_started(client, task);
  pwi_client_send_due(client);
}

/* --- flows ---------------------------------------------------------------------------------------------- */

static pawl_status make_flow(struct pwi_client *client, const struct pwi_entry *entry, uint64_t node,
                             struct pwi_flow **flow_out) {
  struct pwi_flow *flow = pwi_alloc_zero(1, sizeof *flow);
  if (!flow) return PAWL_NO_MEMORY;
  flow->client = client;
  flow->entry = *entry;
  flow->place = pwi_entry_place(entry);
  flow->node = node;
  if (node != 0) flow->entry.incarnation = 0; /* local vectors are in no checkpoint */
  flow->row_bytes = pwi_entry_row_bytes(entry);
  flow->pushed_bytes = pwi_entry_pushed_bytes(entry);
  flow->state_bytes = entry->is.state_width * pawl_type_size(entry->is.type);
  flow->value_size = pawl_type_size(entry->is.type);
  struct pawl_range span = pawl_range_of(0, flow->place.size);
  pawl_status status = pwi_clock_init(&flow->sent, &span, 1);
  if (status) goto free_flow;
  if (entry->is.filters[0]) status = pwi_client_filter(client, flow, entry->is.filters, NULL, NULL, 0);
  if (status) goto fini_clock;
  flow->next = client->flows;
  client->flows = flow;
  *flow_out = flow;
  return PAWL_OK;
fini_clock:
  pwi_clock_fini(&flow->sent);
free_flow:
  pwi_free(flow);
  return status;
}

pawl_status pwi_client_flow(struct pwi_client *client, struct pwi_vector_id id, uint64_t node,
                            struct pwi_flow **flow_out) {
  if (node != 0) node |= PWI_PEER_IS_SENDER;
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next)
    if (flow->entry.id.id == id.id && flow->node == node) {
      *flow_out = flow;
      return PAWL_OK;
    }
  const struct pwi_entry *entry = pwi_catalogue_find(&client->catalogue, id);
  return entry ? make_flow(client, entry, node, flow_out) : PAWL_NOT_FOUND;
}

const struct pwi_entry *pwi_flow_entry(const struct pwi_flow *flow) { return &flow->entry; }

/* --- checks --------------------------------------------------------------------------------------------- */

/* A call, in stored keys. */
struct client_call {
  struct pwi_client *client;
  struct pwi_flow *flow;
  struct pwi_task *task;
  enum pwi_request_kind kind;
  const uint64_t *keys; /* NULL: all of `range` */
  size_t count;
  struct pwi_keylist *list; /* the prepared list that `keys` lies in, from `list_first` on; NULL: none */
  size_t list_first;
  bool is_fresh; /* no server knows the list: send its keys */
  struct pawl_range range;
  const char *in;
  const void *operand;
  size_t operand_rows;
  char *out;
  uint64_t tick;
  uint64_t aggregate;
  uint64_t group; /* whose member reads; all members have finished `tick` */
  uint32_t staleness;
  struct pwi_operation operation;
  struct pwi_flow *other; /* flow of the second vector; NULL: none */

  struct client_part *open; /* the last part, to which the next piece may be joined; NULL: none */
  uint64_t open_head;       /* the head that it goes to */
};

static bool is_push(enum pwi_request_kind kind) { return pwi_request_has_rows(kind); }

static pawl_status check_list(const struct pwi_flow *flow, const uint64_t *keys, size_t count) {
  if (!pwi_keys_rise(keys, count)) return PAWL_UNSORTED;
  return count > 0 && keys[count - 1] >= flow->place.size ? PAWL_OUT_OF_SPAN : PAWL_OK;
}

/* A RESTORE names stored keys, which need no mixing. */
static bool is_mixed(const struct pwi_flow *flow, enum pwi_request_kind kind) {
  return flow->place.mixed && kind != PWI_REQUEST_RESTORE;
}

/* One row with its operand fits into a message. */
static pawl_status check_operand(const struct pwi_flow *flow, enum pwi_request_kind kind,
                                 const struct pwi_where *where) {
  bool is_push_of_rows = kind == PWI_REQUEST_PUSH || kind == PWI_REQUEST_PUSHPULL;
  if (!where->operand && where->operand_rows == 0) return PAWL_OK;
  if (!where->operand || where->operand_rows == 0 || !is_push_of_rows || where->flush) return PAWL_INVALID;
  if (flow->filters && flow->filters->push_is_lossy) return PAWL_UNSUPPORTED;
  return where->operand_rows <= PAWL_SLICE_BYTES / flow->pushed_bytes ? PAWL_OK : PAWL_TOO_LARGE;
}

static pawl_status check_where(const struct pwi_flow *flow, enum pwi_request_kind kind, const struct pwi_where *where) {
  bool has_range = where->range.begin != 0 || where->range.end != 0;
  pawl_status status = check_operand(flow, kind, where);
  if (status) return status;
  if (has_range && (where->range.end < where->range.begin || where->range.end > flow->place.size))
    return PAWL_OUT_OF_SPAN;
  bool has_keys = where->list || where->keys;
  uint64_t all = has_range ? pawl_range_size(where->range) : flow->place.size;
  size_t row_bytes = flow->pushed_bytes > flow->row_bytes ? flow->pushed_bytes : flow->row_bytes;
  if (is_mixed(flow, kind) && (has_range || !has_keys)) return PAWL_UNSUPPORTED;
  if (!has_keys && all > RANGE_BYTES_MAX / row_bytes) return PAWL_TOO_LARGE;
  if (!has_keys && !has_range && where->count > 0) return PAWL_INVALID;
  if (where->list) return where->list->vector.id == flow->entry.id.id ? PAWL_OK : PAWL_MISMATCH;
  return where->keys ? check_list(flow, where->keys, where->count) : PAWL_OK;
}

static pawl_status check_call(const struct pwi_client *client, const struct pwi_flow *flow,
                              enum pwi_request_kind kind) {
  if (client->is_dead) return client->died;
  if (flow->dead) return flow->dead;
  if (client->is_leaving) return PAWL_NODE_STOPPED;
  if (!client->is_joined) return PAWL_OK;
  if (kind != PWI_REQUEST_PULL && kind != PWI_REQUEST_FOLD && (!client->joined.may_write || client->config.reader))
    return PAWL_FORBIDDEN;
  const char *space = client->joined.space;
  return space[0] && !pwi_name_is_in(flow->entry.name, space) ? PAWL_FORBIDDEN : PAWL_OK;
}

/* --- parts ---------------------------------------------------------------------------------------------- */

/* A piece of a call: a claim, and the keys [first, last) of the call. */
struct piece {
  struct pawl_range claim;
  uint64_t prior, other_prior;
  size_t first, last;
};

static struct pawl_range piece_range(const struct client_call *call, const struct piece *piece) {
  struct pawl_range range = pawl_range_common(call->range, piece->claim);
  return pawl_range_is_empty(range) ? piece->claim : range;
}

static size_t rows_of(const struct client_call *call, const struct piece *piece) {
  if (call->keys) return piece->last - piece->first;
  return (size_t)pawl_range_size(pawl_range_common(call->range, piece->claim));
}

static const uint64_t no_keys[1];

static size_t bytes_in(const struct client_call *call) {
  return pwi_flow_bytes_beside(call->flow, call->kind, call->operand_rows);
}

/* The index of the piece's first row among the caller's rows. */
static size_t first_row(const struct client_call *call, const struct piece *piece) {
  return call->keys ? piece->first : (size_t)(piece_range(call, piece).begin - call->range.begin);
}

static void fill_part(const struct client_call *call, const struct piece *piece, struct client_part *part) {
  size_t skip = first_row(call, piece);
  part->kind = call->kind;
  part->number = call->task->number;
  part->prior = piece->prior;
  part->tick = call->tick;
  part->aggregate = pwi_range_overlap(call->range, piece->claim) ? call->aggregate : 0;
  part->group = call->group;
  part->staleness = call->staleness;
  part->claim = piece->claim;
  part->range = piece_range(call, piece);
  part->rows = rows_of(call, piece);
  part->keys = call->keys ? call->keys + piece->first : part->rows == 0 ? no_keys : NULL;
  part->in = call->in && part->rows > 0 ? call->in + skip * bytes_in(call) : NULL;
  part->operand = part->in ? call->operand : NULL;
  part->operand_rows = part->in ? call->operand_rows : 0;
  part->out = call->out && part->rows > 0 ? call->out + skip * call->flow->row_bytes : NULL;
  if (call->operation.kind) {
    part->operation = call->operation;
    part->operation.prior = piece->other_prior;
    part->other = call->other;
    pwi_linear_begun(part);
  }
  if (call->list && part->rows > 0) {
    part->list = pwi_keylist_retain(call->list);
    part->is_wanted = call->is_fresh;
    part->list_first = call->list_first + piece->first;
  }
}

/* There is no memory for a part: the piece fails, and so does the task. Later parts are not held up, because
 * the clock of sent numbers does not have the piece. */
static void fail_piece(const struct client_call *call, const struct piece *piece, pawl_status status) {
  call->task->parts++;
  pwi_task_part_over(call->client, call->task, piece->claim, status);
}

static void settle_open(struct client_call *call) {
  struct client_part *part = call->open;
  call->open = NULL;
  if (!part) return;
  pwi_part_settle(call->client, part);
  pwi_client_send_due(call->client); /* the next piece is cut meanwhile */
}

/* Bytes of a row in the request or in the answer, whichever is larger. */
static size_t row_bytes_of(const struct client_call *call) {
  if (call->kind == PWI_REQUEST_LINEAR && call->flow->entry.is.layout != PAWL_LAYOUT_SPARSE)
    return call->flow->row_bytes;
  size_t in = call->in ? bytes_in(call) : 0, out = call->out ? call->flow->row_bytes : 0;
  if (call->operand && in < call->flow->pushed_bytes)
    in = call->flow->pushed_bytes; /* once the server has expanded it */
  return in > out ? in : out;
}

static size_t limit_of(const struct client_call *call) {
  if (call->kind == PWI_REQUEST_LINEAR) return PWI_LINEAR_SLICE;
  return is_push(call->kind) ? PAWL_SLICE_BYTES : PWI_PULL_SLICE;
}

/* Rows that fit into one message to the head and, as stored rows, into one log entry of its chain. */
static size_t rows_per_slice(const struct client_call *call) {
  const struct pwi_flow *flow = call->flow;
  size_t row_bytes = row_bytes_of(call), rows = row_bytes > 0 ? limit_of(call) / row_bytes : SIZE_MAX;
  size_t stored = PWI_CHANGE_MAX / 2 / (sizeof(uint64_t) + flow->row_bytes + flow->state_bytes);
  if (call->in && is_push(call->kind) && stored < rows) rows = stored; /* a LINEAR is cut by the server */
  size_t work = call->operand ? call->operand_rows * (flow->pushed_bytes / flow->value_size) : 0;
  if (work > 0 && PWI_OPERAND_WORK / work < rows) rows = (size_t)(PWI_OPERAND_WORK / work);
  return rows > 0 ? rows : 1;
}

static bool can_join(const struct client_call *call, const struct piece *piece, uint64_t head, size_t limit) {
  const struct client_part *open = call->open;
  if (!open || call->open_head != head || open->claim.end != piece->claim.begin || open->prior != piece->prior)
    return false;
  if (open->operation.prior != piece->other_prior) return false;
  if ((open->rows == 0) != (rows_of(call, piece) == 0)) return false;
  /* A key list is better sent in pieces: the client prepares one while the server looks up another. */
  if (call->keys && open->rows > (call->list ? KEPT_ROWS : LIST_ROWS)) return false;
  if (call->in && is_push(call->kind) && open->rows + rows_of(call, piece) > rows_per_slice(call)) return false;
  return (open->rows + rows_of(call, piece)) * row_bytes_of(call) <= limit;
}

static void join(const struct client_call *call, const struct piece *piece) {
  struct client_part *open = call->open;
  open->claim.end = piece->claim.end;
  open->rows += rows_of(call, piece);
  open->range.end = piece_range(call, piece).end;
}

/* The size up to which pieces are joined. A push that is carried over a network is better sent in parts: the
 * server applies one while the next arrives. A push that is read in place gains nothing from this. */
static size_t join_limit(const struct client_call *call, uint64_t head) {
  if (!is_push(call->kind) || call->operation.kind) return limit_of(call);
  if (call->operand) return PAWL_SLICE_BYTES; /* which every part carries */
  const struct client_peer *peer = pwi_client_peer(call->client, call->flow->node ? call->flow->node : head);
  bool is_in_place = peer && peer->link && peer->link->is_up && peer->link->peering.in_place;
  return is_in_place ? PAWL_SLICE_BYTES : CARRIED_BYTES;
}

static pawl_status note_sent(const struct client_call *call, const struct piece *piece) {
  if (call->task->number == 0) return PAWL_OK;
  return pwi_clock_set(&call->flow->sent, PWI_SELF, piece->claim, call->task->number);
}

/* Adds a piece that fits into one message. It enters the clock only once it is certain to be sent. */
static void add_piece(struct client_call *call, const struct piece *piece, uint64_t head) {
  if (call->open && can_join(call, piece, head, join_limit(call, head))) {
    pawl_status status = note_sent(call, piece);
    if (status)
      fail_piece(call, piece, status);
    else
      join(call, piece);
    return;
  }
  settle_open(call);
  struct client_part *part = pwi_part_create(call->client, call->flow, call->task);
  if (!part) {
    fail_piece(call, piece, PAWL_NO_MEMORY);
    return;
  }
  fill_part(call, piece, part);
  pwi_part_link_behind(part, NULL);
  pawl_status status = note_sent(call, piece);
  if (status) {
    pwi_part_end(call->client, part, status);
    return;
  }
  call->open = part;
  call->open_head = head;
}

/* The claim of a pull contains only the keys that it reads. */
static struct piece tightened(const struct client_call *call, struct piece piece) {
  if (is_push(call->kind) || piece.first >= piece.last) return piece;
  if (call->keys) piece.claim = pawl_range_of(call->keys[piece.first], call->keys[piece.last - 1] + 1);
  return piece;
}

/* Cuts a piece into slices that fit into one message each. */
static void add_slices(struct client_call *call, struct piece piece, uint64_t head) {
  size_t per_slice = rows_per_slice(call);
  while (rows_of(call, &piece) > per_slice) {
    struct piece slice = piece;
    if (call->keys) {
      slice.last = piece.first + per_slice;
      slice.claim.end = call->keys[slice.last];
    } else {
      slice.claim.end = piece_range(call, &piece).begin + per_slice;
    }
    struct piece tight = tightened(call, slice);
    add_piece(call, &tight, head);
    piece.first = slice.last;
    piece.claim.begin = slice.claim.end;
  }
  struct piece tight = tightened(call, piece);
  add_piece(call, &tight, head);
}

/* The predecessor of a read. A push of an aggregate takes effect only when all members have pushed, and a
 * read does not wait for that: it must see only the pushes before the aggregate. */
static uint64_t prior_of_reader(const struct pwi_flow *flow, struct pawl_range claim, uint64_t prior) {
  if (pwi_is_planted(PWI_PLANTED_BLIND_READ)) return 0;
  for (uint64_t before = prior;; prior = before) {
    for (const struct client_part *part = flow->last; part; part = part->before)
      if (part->aggregate != 0 && part->number == prior && part->prior < before &&
          pwi_range_overlap(part->claim, claim))
        before = part->prior;
    if (before == prior) return prior;
  }
}

/* Cuts a piece by the clock of the second vector. */
static void cut_by_other(const struct client_call *call, struct piece *piece) {
  struct pwi_clock_pieces pieces;
  struct pwi_clock_piece sent = {.range = piece->claim};
  if (!call->other) return;
  pawl_status status = pwi_clock_walk(&call->other->sent, PWI_SELF, piece->claim, &pieces);
  bool found = !status && pwi_clock_next(&pieces, &sent);
  assert(found);
  (void)found;
  piece->claim = sent.range;
  piece->other_prior = call->other->is_forbidden ? 0 : sent.time;
}

/* Cuts the keys of one arc by the clock of sent numbers. */
static void add_arc(struct client_call *call, struct pawl_range claim, size_t first, size_t last, uint64_t head) {
  for (uint64_t at = claim.begin; at < claim.end;) {
    struct pwi_clock_pieces pieces;
    struct pwi_clock_piece sent = {.range = claim};
    pawl_status status = pwi_clock_walk(&call->flow->sent, PWI_SELF, pawl_range_of(at, claim.end), &pieces);
    bool found = !status && pwi_clock_next(&pieces, &sent);
    assert(found);
    (void)found;
    struct piece piece = {.claim = sent.range, .prior = sent.time, .first = first, .last = last};
    if (call->task->number == 0) piece.prior = prior_of_reader(call->flow, piece.claim, piece.prior);
    if (call->task->number == 0 && call->flow->is_forbidden) piece.prior = 0;
    cut_by_other(call, &piece);
    sent.range = piece.claim;
    if (call->keys && sent.range.end < claim.end)
      piece.last = first + pwi_first_not_below(call->keys + first, last - first, sent.range.end);
    if (!call->keys) piece.first = piece.last = 0;
    bool names_keys = rows_of(call, &piece) > 0;
    if (!is_push(call->kind) && !call->keys) piece.claim = pawl_range_common(piece.claim, call->range);
    if (names_keys || (is_push(call->kind) && call->task->number != 0)) add_slices(call, piece, head);
    first = piece.last;
    at = sent.range.end;
  }
}

static void cut_by_view(struct client_call *call) {
  struct pwi_cut cut;
  struct pwi_cut_part part;
  pwi_cut_init(&cut, call->client->view, &call->flow->place, call->keys, call->count, call->range);
  if (call->aggregate) pwi_cut_every_arc(&cut); /* every member must push on every arc of the range */
  for (size_t last = SIZE_MAX; pwi_cut_next(&cut, &part); last = part.arc) {
    bool joins = last != SIZE_MAX && part.arc == last + 1 && call->aggregate == 0 && !call->flow->seen &&
                 pwi_view_arcs_join(call->client->view, last);
    if (!joins) settle_open(call); /* a request is about one chain */
    add_arc(call, part.claim, part.first, part.last, part.head.id);
  }
}

static void cut(struct client_call *call) {
  bool has_view = call->client->view && call->client->view->arc_count > 0;
  if (call->flow->node == 0 && has_view)
    cut_by_view(call);
  else if (call->aggregate || (call->keys ? call->count > 0 : !pawl_range_is_empty(call->range)))
    add_arc(call, pawl_range_of(0, call->flow->place.size), 0, call->count, 0);
  settle_open(call);
}

/* --- calls ---------------------------------------------------------------------------------------------- */

/* Keeps the keys of a list that lie in the range, and skips the rows of the others. */
static void limit_to_range(struct client_call *call) {
  size_t first = pwi_first_not_below(call->keys, call->count, call->range.begin);
  size_t last = pwi_first_not_below(call->keys, call->count, call->range.end);
  if (call->in) call->in += first * bytes_in(call);
  if (call->out) call->out += first * call->flow->row_bytes;
  call->keys += first;
  call->count = last - first;
  call->list_first = first;
}

static pawl_status mix(struct client_call *call, const struct pwi_where *where, const void *in, void *out) {
  pawl_status status = pwi_client_mix(call->client, call->task, call->flow, where, in, out);
  if (status) return status;
  struct pwi_mixing *mixing = call->task->mixing;
  call->keys = mixing->list ? mixing->list->keys : mixing->mixer.keys;
  if (!call->keys) call->keys = no_keys; /* an empty list; NULL would mean a range */
  call->in = in ? mixing->in.memory : NULL;
  call->out = out ? mixing->out.memory : NULL;
  return PAWL_OK;
}

/* Starts a call that has passed all checks. Tasks that end meanwhile may start other calls, which may evict a
 * cached list of the flow: so the call has its own reference. */
static void start(struct client_call *call, const struct pwi_where *where) {
  struct pwi_flow *flow = call->flow;
  struct pwi_keylist *list = call->list ? pwi_keylist_retain(call->list) : NULL;
  pawl_status status = PAWL_OK;
  if (list) {
    call->is_fresh = list->is_fresh;
    list->is_fresh = false;
  }
  if (call->range.begin == 0 && call->range.end == 0) call->range.end = flow->place.size;
  if (is_mixed(flow, call->kind))
    status = mix(call, where, call->in, call->out);
  else if (call->keys && (call->range.begin > 0 || call->range.end < flow->place.size))
    limit_to_range(call);
  if (status)
    call->task->status = status; /* the task has a number already, so it ends as any other */
  else
    cut(call);
  pwi_keylist_release(list);
}

/* A pull of a group: what all members have finished, and how much older the rows may be. If this client does not know
 * that the members have finished what it needs, the rows must be read now. Without memory it is a pull like any other. */
static void note_age(struct client_call *call, const struct pwi_where *where) {
  struct pwi_flow *group;
  if (call->kind != PWI_REQUEST_PULL || where->group == 0 || call->flow->node != 0) return;
  if (pwi_client_flow(call->client, (struct pwi_vector_id){where->group}, 0, &group) || pwi_flow_see(call->flow))
    return;
  uint64_t needed = where->tick > where->staleness ? where->tick - where->staleness : 0;
  call->group = where->group;
  call->tick = group->awaited;
  if (group->awaited < needed) return;
  uint64_t older = group->awaited - needed;
  call->staleness = older < UINT32_MAX ? (uint32_t)older + 1 : UINT32_MAX;
}

static bool is_only_flush(const struct pwi_where *where) {
  return where->flush && !where->keys && !where->list && where->range.begin == 0 && where->range.end == 0;
}

pawl_status pwi_client_check(const struct pwi_client *client, const struct pwi_flow *flow, enum pwi_request_kind kind,
                             const struct pwi_where *where) {
  pawl_status status = check_call(client, flow, kind);
  return status || is_only_flush(where) ? status : check_where(flow, kind, where);
}

pawl_status pwi_client_start(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                             enum pwi_request_kind kind, const struct pwi_where *where, const void *in, void *out) {
  struct pwi_where now = *where;
  struct pwi_filtered *filtered = NULL;
  pawl_status status = pwi_client_check(client, flow, kind, where);
  if (!status && is_only_flush(where)) now.keys = no_keys; /* there may be no residuals to flush */
  if (!status && flow->filters) status = pwi_flow_filter(client, flow, kind, &now, &in, &filtered);
  if (status) return status;
  struct client_call call = {.client = client,
                             .flow = flow,
                             .task = task,
                             .kind = kind,
                             .keys = now.list ? now.list->keys : now.keys,
                             .count = now.list ? now.list->count : now.count,
                             .list = now.list,
                             .range = now.range,
                             .in = in,
                             .operand = now.operand,
                             .operand_rows = now.operand_rows,
                             .out = out,
                             .tick = now.tick,
                             .aggregate = now.aggregate};
  pwi_task_open(client, task, is_push(kind));
  task->filtered = filtered;
  note_age(&call, &now);
  start(&call, &now);
  end_start(client, task);
  return PAWL_OK;
}

/* --- linear algebra ------------------------------------------------------------------------------------- */

static bool go_aggregate(const struct pwi_flow *a, const struct pwi_flow *b) {
  return a->entry.kind == PWI_ENTRY_VECTOR && b->entry.kind == PWI_ENTRY_VECTOR && a->node == 0 && b->node == 0 &&
         a->entry.is.type == b->entry.is.type && a->row_bytes == b->row_bytes && a->place.size == b->place.size &&
         a->place.mixed == b->place.mixed && a->entry.is.layout == b->entry.is.layout;
}

static pawl_status check_linear(const struct pwi_client *client, const struct client_call *call) {
  const struct pwi_flow *flow = call->flow;
  bool is_whole = call->range.begin == 0 && call->range.end == flow->place.size;
  pawl_status status = check_call(client, flow, call->kind);
  if (!status && call->other) status = check_call(client, call->other, PWI_REQUEST_FOLD);
  if (status) return status;
  if (!go_aggregate(flow, call->other ? call->other : flow)) return PAWL_MISMATCH;
  if (!pawl_range_contains(pawl_range_of(0, flow->place.size), call->range)) return PAWL_OUT_OF_SPAN;
  if (flow->place.mixed && !is_whole && !pawl_range_is_empty(call->range)) return PAWL_UNSUPPORTED;
  if (call->operation.kind == PWI_LINEAR_FILL && flow->entry.is.layout == PAWL_LAYOUT_SPARSE) return PAWL_UNSUPPORTED;
  return pwi_linear_takes(call->operation.kind, (enum pwi_scalar)flow->entry.is.type, call->operation.scalar)
             ? PAWL_OK
             : PAWL_INVALID;
}

static pawl_status start_linear(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                struct pwi_flow *other, struct pwi_operation operation, const char *function,
                                struct pawl_range range) {
  enum pwi_linear kind = operation.kind;
  assert(pwi_linear_has_other(kind) == (other != NULL));
  if (range.end == PAWL_KEY_END && range.begin <= flow->place.size) range.end = flow->place.size;
  struct client_call call = {.client = client,
                             .flow = flow,
                             .task = task,
                             .kind = pwi_linear_folds(kind) ? PWI_REQUEST_FOLD : PWI_REQUEST_LINEAR,
                             .range = range,
                             .operation = operation,
                             .other = other};
  pawl_status status = check_linear(client, &call);
  if (status) return status;
  if (other) {
    call.operation.other = other->entry.id;
    call.operation.incarnation = other->entry.incarnation;
  }
  pwi_task_open(client, task, call.kind == PWI_REQUEST_LINEAR);
  if (call.kind == PWI_REQUEST_FOLD) status = pwi_folding_begin(client, task, kind);
  if (function) status = pwi_row_run_begin(client, task, function);
  if (status)
    task->status = status;
  else if (!pawl_range_is_empty(range))
    cut(&call);
  end_start(client, task);
  return PAWL_OK;
}

pawl_status pwi_client_linear(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                              struct pwi_flow *other, enum pwi_linear kind, double scalar, struct pawl_range range) {
  struct pwi_operation operation = {.kind = kind, .scalar = pwi_linear_has_scalar(kind) ? scalar : 0};
  return start_linear(client, task, flow, other, operation, NULL, range);
}

pawl_status pwi_client_run(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                           struct pwi_flow *other, const char *function, struct pawl_range range) {
  struct pwi_operation operation = {.kind = other ? PWI_LINEAR_RUN_WITH : PWI_LINEAR_RUN};
  size_t length = strnlen(function, PAWL_RULE_MAX + 1);
  if (length == 0 || length > PAWL_RULE_MAX) return PAWL_INVALID;
  return start_linear(client, task, flow, other, operation, function, range);
}

pawl_status pwi_client_fold_column(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                   enum pwi_linear kind, uint32_t column, struct pawl_range range) {
  assert(pwi_linear_has_column(kind));
  if (column >= flow->row_bytes / flow->value_size) return PAWL_INVALID;
  struct pwi_operation operation = {.kind = kind, .column = column + 1};
  return start_linear(client, task, flow, NULL, operation, NULL, range);
}

/* The range that one request of a scan covers: on one arc, with one predecessor. */
static struct piece scan_piece(const struct pwi_client *client, const struct pwi_flow *flow, struct pawl_range range) {
  struct pawl_range arc = pawl_range_of(0, flow->place.size);
  struct pwi_clock_pieces pieces;
  if (flow->node == 0 && client->view && client->view->arc_count > 0) {
    size_t index = pwi_view_arc_of(client->view, pwi_place_position(&flow->place, range.begin));
    arc = pwi_place_keys(&flow->place, pwi_view_arc_range(client->view, index));
  }
  struct pawl_range claim = pawl_range_common(range, arc);
  struct pwi_clock_piece sent = {.range = claim};
  pawl_status status = pwi_clock_walk(&flow->sent, PWI_SELF, claim, &pieces);
  bool found = !status && pwi_clock_next(&pieces, &sent);
  assert(found);
  (void)found;
  return (struct piece){.claim = sent.range, .prior = prior_of_reader(flow, sent.range, sent.time)};
}

pawl_status pwi_client_scan(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                            struct pawl_range range, size_t room, uint64_t *keys, void *values) {
  pawl_status status = check_call(client, flow, PWI_REQUEST_PULL);
  if (!status && (range.end > flow->place.size || range.begin > range.end)) status = PAWL_OUT_OF_SPAN;
  if (status) return status;
  pwi_task_open(client, task, false);
  task->found = range.end;
  if (pawl_range_is_empty(range) || room == 0) {
    end_start(client, task);
    return PAWL_OK;
  }
  struct client_part *part = pwi_part_create(client, flow, task);
  if (!part) {
    task->status = PAWL_NO_MEMORY;
  } else {
    struct piece piece = scan_piece(client, flow, range);
    part->kind = PWI_REQUEST_SCAN;
    part->prior = piece.prior;
    part->claim = part->range = piece.claim;
    part->rows = room;
    part->keys_out = keys;
    part->out = values;
    pwi_part_link_behind(part, NULL);
    pwi_part_settle(client, part);
  }
  end_start(client, task);
  return PAWL_OK;
}

/* A request about a group claims the one key that represents the group; the rest of its span is never
 * used. */
static pawl_status start_group(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                               enum pwi_request_kind kind, uint64_t tick) {
  bool is_numbered = kind != PWI_REQUEST_AWAIT;
  pawl_status status = flow->entry.kind == PWI_ENTRY_GROUP ? check_call(client, flow, kind) : PAWL_INVALID;
  if (status) return status;
  uint64_t key = pwi_group_key(flow->entry.name);
  struct pawl_range claim = pawl_range_of(key, key + 1);
  pwi_task_open(client, task, is_numbered);
  struct client_part *part = pwi_part_create(client, flow, task);
  uint64_t prior = 0;
  if (part && is_numbered) {
    status = pwi_clock_max(&flow->sent, PWI_SELF, claim, &prior);
    if (!status) status = pwi_clock_set(&flow->sent, PWI_SELF, claim, task->number);
  }
  if (!part) {
    task->status = PAWL_NO_MEMORY;
    end_start(client, task);
    return PAWL_OK;
  }
  part->kind = kind;
  part->number = task->number;
  part->prior = prior;
  part->tick = tick;
  part->claim = part->range = claim;
  part->is_after_all = kind == PWI_REQUEST_TICK;
  pwi_part_link_behind(part, NULL);
  if (status)
    pwi_part_end(client, part, status);
  else
    pwi_part_settle(client, part);
  end_start(client, task);
  return PAWL_OK;
}

pawl_status pwi_client_enter(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow) {
  if (task != &flow->reenter) flow->has_entered = true; /* not if the caller has left meanwhile */
  return start_group(client, task, flow, PWI_REQUEST_ENTER, flow->ticked);
}

void pwi_client_stay(struct pwi_flow *flow) { flow->has_entered = true; }

void pwi_client_exit(struct pwi_flow *flow) { flow->has_entered = false; }

pawl_status pwi_client_tick(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow, uint64_t tick) {
  if (tick > flow->ticked) flow->ticked = tick;
  return start_group(client, task, flow, PWI_REQUEST_TICK, tick);
}

pawl_status pwi_client_await(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow, uint64_t tick) {
  return start_group(client, task, flow, PWI_REQUEST_AWAIT, tick);
}
