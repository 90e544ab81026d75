/* The life of an engine, and the phases of a step. */
#include "peer/factor/factor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "net/shared_copy.h"
#include "peer/factor/inside.h"
#include "peer/inside.h"

/* --- small things --------------------------------------------------------------------------------------- */

void pwi_factor_fail(struct pwi_factor *engine, pawl_status status, const char *format, ...) {
  va_list arguments;
  if (engine->failed) return;
  engine->failed = status;
  va_start(arguments, format);
  vsnprintf(engine->problem, sizeof engine->problem, format, arguments);
  va_end(arguments);
  pwi_log(engine->config.log, PAWL_LOG_WARN, "factor.failed", "factor=%s status=%s why=\"%s\"", engine->config.name,
          pawl_status_name(status), engine->problem);
}

/* A failure to send closes the link. */
void pwi_factor_say_list(struct pwi_factor *engine, struct factor_peer *peer, enum factor_say kind,
                         struct factor_message *message, const struct factor_line *lines, uint32_t count) {
  pwi_writer_reset(&engine->writer);
  message->lines = count;
  pwi_factor_message_encode(message, lines, &engine->writer);
  if (engine->writer.status)
    pwi_factor_fail(engine, PAWL_NO_MEMORY, "no memory for a message");
  else
    (void)pwi_channel_send(engine->channel, peer->sender, kind, engine->writer.data, engine->writer.size);
}

void pwi_factor_say(struct pwi_factor *engine, struct factor_peer *peer, enum factor_say kind,
                    const struct factor_message *message) {
  struct factor_message copy = *message;
  pwi_factor_say_list(engine, peer, kind, &copy, NULL, 0);
}

static int64_t now(const struct pwi_factor *engine) { return pwi_net_now(engine->config.net); }

uint64_t pwi_factor_matrix_hash(const struct factor_shape *shape, struct pawl_range rows, const void *matrix) {
  size_t width = shape->columns * pwi_factor_value_size(shape);
  uint64_t sum = 0;
  for (uint64_t row = rows.begin; row < rows.end; row++)
    sum += pwi_hash((const char *)matrix + (size_t)(row - rows.begin) * width, width, row);
  return sum;
}

/* --- phases --------------------------------------------------------------------------------------------- */

/* Waiting is counted, and work is not. */
static void enter_phase(struct pwi_factor *engine, enum factor_phase phase) {
  int64_t at = now(engine);
  if (engine->phase != FACTOR_OUT && engine->phase != FACTOR_STAGE && engine->phase != FACTOR_OVER)
    engine->report.waited_ns += at - engine->waited_since;
  engine->waited_since = at;
  engine->phase = phase;
}

static void over(struct pwi_factor *engine, pawl_status status) {
  engine->status = status;
  engine->report.clock = engine->clock;
  for (uint32_t i = 0; i < engine->count; i++) engine->report.members += pwi_factor_is_live(&engine->origins[i]);
  enter_phase(engine, FACTOR_OVER);
}

static void go_outside(struct pwi_factor *engine) {
  if (engine->phase == FACTOR_WAIT) engine->report.waited_ns += now(engine) - engine->waited_since;
  engine->is_outside = engine->is_work_due = true;
}

/* Rows that the last member took with it cannot be computed again: nobody goes on with a matrix that lacks some. A flush
 * and the end still deliver what was committed. */
static bool lacks_rows(struct pwi_factor *engine) {
  struct pawl_range rows = pwi_factor_rows_of(engine->shape.rows, engine->lost_part, engine->config.parts);
  if (engine->lost_part == UINT32_MAX) return false;
  pwi_factor_fail(engine, PAWL_NODE_GONE,
                  "no member has rows [%" PRIu64 ", %" PRIu64 "), part %" PRIu32 " of %" PRIu32
                  ": the last one that had them is gone",
                  rows.begin, rows.end, engine->lost_part, engine->config.parts);
  return true;
}

static bool admit(struct pwi_factor *engine) {
  if (!pwi_factor_is_ready(engine)) return false;
  if (lacks_rows(engine)) return true;
  if (!pwi_factor_has_room(engine)) return false;
  pawl_status status = pwi_factor_take_slot(engine, engine->staged_size, &engine->staging);
  if (status) {
    pwi_factor_fail(engine, status, "no memory for a commit of %zu bytes", engine->staged_size);
    return true;
  }
  enter_phase(engine, FACTOR_STAGE);
  go_outside(engine);
  return false;
}

static bool open_step(struct pwi_factor *engine) {
  if (!pwi_factor_is_ready(engine)) return false;
  if (engine->is_opening && lacks_rows(engine)) return true;
  enter_phase(engine, FACTOR_WAIT);
  return true;
}

/* The matrix of a donor can have commits beyond the clock at which this member joins. It may go on only when it has as many
 * of its own (SFB, equation 4), so it fills up with empty ones. */
static bool must_fill_up(const struct pwi_factor *engine) {
  if (!engine->is_opening || engine->config.mode == PAWL_FACTOR_ASYNC) return false;
  for (uint32_t i = 0; i < engine->count; i++)
    if (engine->origins[i].applied > engine->clock) return true;
  return false;
}

static void fill_up(struct pwi_factor *engine) {
  engine->staged = engine->empty;
  engine->staged_size = sizeof engine->empty;
  enter_phase(engine, FACTOR_ADMIT);
}

static bool wait_step(struct pwi_factor *engine) {
  if (!pwi_factor_may_apply(engine)) return false;
  pawl_status status = pwi_factor_choose(engine);
  if (status)
    pwi_factor_fail(engine, status, "no memory to apply commits");
  else if (engine->chosen_count > 0)
    go_outside(engine);
  else if (must_fill_up(engine))
    fill_up(engine);
  else
    over(engine, PAWL_OK);
  return status != PAWL_OK || engine->phase == FACTOR_ADMIT;
}

static void advance_step(struct pwi_factor *engine) {
  bool has_moved = true;
  while (has_moved && !engine->is_outside) {
    if (engine->failed && engine->phase != FACTOR_OUT && engine->phase != FACTOR_OVER) over(engine, engine->failed);
    has_moved = engine->phase == FACTOR_OPEN || engine->phase == FACTOR_FLUSH ? open_step(engine)
                : engine->phase == FACTOR_ADMIT                               ? admit(engine)
                : engine->phase == FACTOR_WAIT                                ? wait_step(engine)
                                                                              : false;
  }
}

/* --- closing -------------------------------------------------------------------------------------------- */

/* Everything of this member, and of those that are gone, has arrived at all that take part. */
static bool is_delivered(const struct pwi_factor *engine) {
  if (engine->epoch.number == 0 || engine->need != FACTOR_COMPLETE || engine->failed) return true;
  if (pwi_factor_is_serving(engine)) return false;
  for (uint32_t i = 0; i < engine->count; i++) {
    const struct factor_origin *origin = &engine->origins[i];
    bool is_ours = i == engine->self || (!pwi_factor_is_live(origin) && origin->is_heard);
    if (is_ours && !pwi_factor_is_known_to_all(engine, origin, origin->received)) return false;
  }
  return true;
}

static void say_leaving(struct pwi_factor *engine) {
  const struct factor_message message = {.epoch = engine->epoch, .own = engine->epoch, .number = engine->clock};
  for (struct factor_peer *peer = engine->peers; peer; peer = peer->next) {
    if (!peer->is_linked || peer->was_told_leaving || engine->failed) continue;
    peer->was_told_leaving = true;
    pwi_factor_say(engine, peer, FACTOR_LEAVING, &message);
  }
}

static bool have_parted(const struct pwi_factor *engine) {
  for (const struct factor_peer *peer = engine->peers; peer; peer = peer->next)
    if (peer->is_linked && !peer->is_bad && !peer->has_parted && peer->gone_life != peer->life) return false;
  return true;
}

static void close_step(struct pwi_factor *engine, bool is_late) {
  const struct factor_message none = {0};
  if (engine->has_left || engine->is_outside) return;
  if (!engine->has_said_bye && (is_late || is_delivered(engine))) {
    engine->has_said_bye = true;
    for (struct factor_peer *peer = engine->peers; peer; peer = peer->next)
      if (peer->is_linked) pwi_factor_say(engine, peer, FACTOR_BYE, &none);
  }
  if (!engine->has_said_bye) say_leaving(engine);
  if (!engine->has_said_bye || (!is_late && !have_parted(engine))) return;
  engine->has_left = true;
  pwi_channel_close(engine->channel); /* may call `closed` */
}

/* Does all that can be done now. */
void pwi_factor_advance(struct pwi_factor *engine) {
  enum pwi_factor_want before = pwi_factor_want(engine);
  uint32_t live = 0;
  if (engine->has_left) return;
  pwi_factor_sweep(engine);
  for (uint32_t i = 0; i < engine->count; i++) live += pwi_factor_is_live(&engine->origins[i]);
  if (engine->since_count >= FACTOR_HAVE_COUNT * (uint64_t)live || engine->since_bytes >= FACTOR_HAVE_BYTES)
    if (!engine->failed && !engine->has_said_bye && live > 1) pwi_factor_say_have_all(engine, false);
  pwi_factor_ask_missing(engine);
  pwi_factor_look_at_gaps(engine);
  for (struct factor_peer *peer = engine->peers; peer; peer = peer->next) {
    if (peer->is_linked && peer->shared == 0 && !peer->is_bad) (void)pwi_factor_offer(engine, peer);
    pwi_factor_pump(engine, peer);
    pwi_factor_serve(engine, peer);
  }
  if (!engine->is_outside && !engine->is_closing) advance_step(engine);
  if (engine->is_closing) close_step(engine, false);
  if (pwi_factor_want(engine) != before) engine->config.wakes(engine->config.context);
}

/* --- a step --------------------------------------------------------------------------------------------- */

static void begin(struct pwi_factor *engine, enum factor_phase phase) {
  if (engine->phase == FACTOR_OUT) {
    engine->report = (struct pawl_factor_report){0};
    engine->is_flushing = phase == FACTOR_FLUSH;
    engine->is_opening = phase == FACTOR_OPEN;
    engine->waited_since = now(engine);
    enter_phase(engine, phase);
  }
  pwi_factor_advance(engine);
}

void pwi_factor_begin_open(struct pwi_factor *engine) { begin(engine, FACTOR_OPEN); }

void pwi_factor_begin_flush(struct pwi_factor *engine) { begin(engine, FACTOR_FLUSH); }

bool pwi_factor_is_stepping(const struct pwi_factor *engine) { return engine->phase != FACTOR_OUT; }

void pwi_factor_begin(struct pwi_factor *engine, const void *bytes, size_t size) {
  if (engine->phase == FACTOR_OUT) {
    engine->staged = bytes;
    engine->staged_size = size;
  }
  begin(engine, engine->phase == FACTOR_OUT ? FACTOR_ADMIT : engine->phase);
}

enum pwi_factor_want pwi_factor_want(const struct pwi_factor *engine) {
  if (engine->is_work_due) return PWI_FACTOR_WORK;
  if (engine->phase == FACTOR_OUT) return PWI_FACTOR_OUT;
  return engine->phase == FACTOR_OVER ? PWI_FACTOR_DONE : PWI_FACTOR_WAIT;
}

/* The one copy of a commit: all members on this host read it where it is. */
static pawl_status stage(struct pwi_factor *engine) {
  unsigned char *memory = pwi_net_region_memory(engine->staging->region);
  pwi_shared_write(memory, engine->staged, engine->staged_size);
  engine->staged_hash = pwi_hash(engine->staged, engine->staged_size, 0);
  return PAWL_OK;
}

pawl_status pwi_factor_work(struct pwi_factor *engine) {
  return engine->phase == FACTOR_STAGE ? stage(engine) : pwi_factor_apply_chosen(engine);
}

static void staged(struct pwi_factor *engine) {
  pawl_status status = engine->failed ? engine->failed : pwi_factor_append_own(engine);
  if (status) {
    engine->staging->is_used = false;
    pwi_factor_fail(engine, status, "no memory for a commit");
    return;
  }
  engine->report.bytes = engine->staged_size;
  enter_phase(engine, FACTOR_WAIT);
}

static void applied(struct pwi_factor *engine, pawl_status status) {
  if (status) {
    char problem[PWI_FACTOR_PROBLEM_MAX];
    memcpy(problem, engine->problem, sizeof problem);
    pwi_factor_fail(engine, status, "%s", problem);
    return;
  }
  pwi_factor_applied(engine);
  if (must_fill_up(engine))
    fill_up(engine);
  else
    over(engine, PAWL_OK);
}

void pwi_factor_worked(struct pwi_factor *engine, pawl_status status) {
  engine->is_outside = engine->is_work_due = false;
  engine->waited_since = now(engine);
  if (engine->phase == FACTOR_STAGE)
    staged(engine);
  else
    applied(engine, status);
  pwi_factor_advance(engine);
}

pawl_status pwi_factor_end(struct pwi_factor *engine, struct pawl_factor_report *report_out) {
  *report_out = engine->report;
  engine->phase = FACTOR_OUT;
  return engine->status;
}

/* --- life ----------------------------------------------------------------------------------------------- */

static pawl_status make_memory(struct pwi_factor *engine) {
  const struct factor_shape *shape = &engine->shape;
  struct factor_slot *slot;
  size_t values, held = (size_t)pawl_range_size(engine->rows);
  if (!pwi_mul_size(held, shape->columns, &values) ||
      !pwi_mul_size(values, pwi_factor_value_size(shape), &engine->bytes))
    return PAWL_OVERFLOW;
  pawl_status status = pwi_factor_scratch_init(&engine->scratch, shape);
  engine->scratch.first = (size_t)engine->rows.begin;
  engine->scratch.held = held;
  engine->scratch.multiply = engine->config.multiply;
  engine->scratch.context = engine->config.multiply_context;
  engine->piece = status ? NULL : pwi_alloc(FACTOR_PIECE_SIZE);
  if (!status && !engine->piece) status = PAWL_NO_MEMORY;
  if (!status) status = pwi_factor_prox_memory(engine->config.prox.kind, held, shape->columns, &engine->prox_memory);
  if (!status) status = pwi_factor_take_slot(engine, 1, &slot);
  if (!status) slot->is_used = false;
  return status;
}

static pawl_status open_channel(struct pwi_factor *engine) {
  char name[PWI_CHANNEL_NAME_MAX + 1];
  unsigned char description[FACTOR_DESCRIPTION_SIZE];
  if (strlen(engine->config.name) > PAWL_FACTOR_NAME_MAX) return PAWL_TOO_LARGE;
  snprintf(name, sizeof name, "factor/%s", engine->config.name);
  pwi_factor_describe(&engine->config, description);
  return pwi_channel_open(engine->config.peers, engine->config.group, name, description, sizeof description,
                          &pwi_factor_events, engine, &engine->channel);
}

pawl_status pwi_factor_create(const struct pwi_factor_config *config, struct pwi_factor **engine_out) {
  struct pwi_factor *engine = pwi_alloc_zero(1, sizeof *engine);
  if (!engine) return PAWL_NO_MEMORY;
  engine->config = *config;
  if (!config->log) engine->config.log = config->peers->config.log;
  engine->shape = config->shape;
  engine->rows = pwi_factor_rows_of(config->shape.rows, config->part, config->parts);
  engine->lost_part = UINT32_MAX;
  engine->end = &engine->first;
  engine->need = FACTOR_INITIAL;
  pwi_put_u32(engine->empty + 4, (uint32_t)config->shape.code);
  engine->config.name = pwi_copy_string(config->name);
  pawl_status status = engine->config.name ? make_memory(engine) : PAWL_NO_MEMORY;
  if (!status) {
    engine->initial_hash = pwi_factor_matrix_hash(&engine->shape, engine->rows, config->matrix);
    status = open_channel(engine);
  }
  if (status) {
    engine->is_closed = true; /* nobody uses its regions */
    pwi_factor_destroy(engine);
    return status;
  }
  pwi_factor_look_at_members(engine);
  pwi_factor_agree(engine);
  *engine_out = engine;
  return PAWL_OK;
}

/* A step that has timed out may want to work: nobody will. */
void pwi_factor_close(struct pwi_factor *engine, int64_t deadline) {
  engine->is_outside = engine->is_work_due = false;
  engine->is_closing = true;
  engine->close_by = deadline;
  pwi_factor_advance(engine);
}

int64_t pwi_factor_look_at(const struct pwi_factor *engine) {
  return engine->is_closing && !engine->has_left ? engine->close_by : PWI_NET_NEVER;
}

void pwi_factor_look(struct pwi_factor *engine, int64_t at) {
  if (engine->is_closing && at >= engine->close_by) close_step(engine, true);
}

void pwi_factor_destroy(struct pwi_factor *engine) {
  if (!engine) return;
  pwi_factor_drop_log(engine);
  pwi_factor_free_peers(engine);
  pwi_factor_forget_epoch(engine);
  while (engine->windows) {
    struct factor_window *window = engine->windows;
    engine->windows = window->next;
    pwi_net_remote_unmap(&window->window);
    pwi_free(window);
  }
  while (engine->slots) {
    struct factor_slot *slot = engine->slots;
    engine->slots = slot->next;
    if (engine->is_closed) pwi_net_region_close(engine->config.net, slot->region);
    pwi_free(slot);
  }
  pwi_factor_scratch_fini(&engine->scratch);
  pwi_writer_fini(&engine->writer);
  pwi_free(engine->prox_memory);
  pwi_free(engine->piece);
  pwi_free(engine->chosen);
  pwi_free((char *)engine->config.name);
  pwi_free(engine);
}

/* --- for people ----------------------------------------------------------------------------------------- */

const char *pwi_factor_problem(const struct pwi_factor *engine) { return engine->problem; }

void pwi_factor_state(const struct pwi_factor *engine, struct pawl_factor_state *state_out) {
  *state_out = engine->counts;
  state_out->clock = engine->clock;
  state_out->number = engine->epoch.number;
  for (uint32_t i = 0; i < engine->count; i++) {
    if (!pwi_factor_is_live(&engine->origins[i])) continue;
    if (i < engine->self) state_out->rank++;
    state_out->size++;
  }
}

static const struct factor_peer *first_behind(const struct pwi_factor *engine) {
  for (const struct factor_peer *peer = engine->peers; peer; peer = peer->next) {
    const struct factor_origin *origin = pwi_factor_origin(engine, peer->life);
    if (!origin || pwi_factor_is_lost(engine, peer->sender.id, peer->life)) continue;
    bool is_late = origin->is_waited && origin->received + engine->config.staleness < engine->clock;
    if (!peer->is_linked || is_late) return peer;
  }
  return NULL;
}

void pwi_factor_explain(const struct pwi_factor *engine, char *text, size_t size) {
  const struct factor_peer *behind = first_behind(engine);
  if (pwi_channel_rank(engine->channel) == UINT32_MAX)
    snprintf(text, size, "this session is not a member at present");
  else if (engine->epoch.number == 0)
    snprintf(text, size, "not all members have opened the factors");
  else if (!pwi_factor_is_settled(engine))
    snprintf(text, size, "waits until all members have agreed on who takes part");
  else if (engine->need != FACTOR_COMPLETE)
    snprintf(text, size, "waits for the matrix of another member");
  else if (behind)
    snprintf(text, size, "waits for node %" PRIu64, behind->sender.id);
  else
    snprintf(text, size, "waits for the other members");
}
