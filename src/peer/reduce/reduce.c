/* The life of an engine, and the phases of a step. */
#include "peer/reduce/reduce.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "peer/inside.h"
#include "peer/reduce/inside.h"
#include "protocol/planted.h"

/* --- small things --------------------------------------------------------------------------------------- */

struct reduce_peer *pwi_reduce_find(const struct pwi_reduce *engine, uint64_t id) {
  return id ? pwi_idmap_get(&engine->by_id, id) : NULL;
}

void pwi_reduce_say(struct pwi_reduce *engine, const struct reduce_peer *peer, uint32_t kind,
                    const struct reduce_message *message) {
  unsigned char bytes[REDUCE_MESSAGE_SIZE];
  pwi_reduce_message_encode(message, bytes);
  engine->has_spoken = true;
  (void)pwi_channel_send(engine->channel, peer->sender, kind, bytes, sizeof bytes); /* a failure closes the link */
}

/* The low 16 bits of a tag are never 0, because a notification has them. */
uint64_t pwi_reduce_tag(struct pwi_reduce *engine) {
  if ((++engine->last_tag & 0xffff) == 0) engine->last_tag++;
  return engine->last_tag;
}

void pwi_reduce_fail(struct pwi_reduce *engine, pawl_status status, const char *format, ...) {
  va_list arguments;
  if (engine->failed) return;
  engine->failed = status;
  va_start(arguments, format);
  vsnprintf(engine->problem, sizeof engine->problem, format, arguments);
  va_end(arguments);
  pwi_log(engine->config.log, PAWL_LOG_WARN, "reduce.failed", "reduce=%s status=%s why=\"%s\"", engine->config.name,
          pawl_status_name(status), engine->problem);
}

/* A member that is behind its epoch takes over a model of iteration `base` before it sends. */
uint64_t pwi_reduce_version(const struct pwi_reduce *engine) {
  return (engine->completed > engine->base ? engine->completed : engine->base) + 1;
}

static int64_t now(const struct pwi_reduce *engine) { return pwi_net_now(engine->config.net); }

static void wake(struct pwi_reduce *engine) {
  if (engine->config.wakes) engine->config.wakes(engine->config.context);
}

/* --- phases --------------------------------------------------------------------------------------------- */

/* Books the time of the phase that ends. */
static void enter_phase(struct pwi_reduce *engine, enum reduce_phase phase) {
  int64_t at = now(engine), waited = at - engine->waited_since;
  struct pawl_reduce_report *report = &engine->report;
  if (engine->phase == PHASE_AGREE || engine->phase == PHASE_ADOPT) report->agreed_ns += waited;
  if (engine->phase == PHASE_STAGE) report->waited_ack_ns += waited;
  if (engine->phase == PHASE_EXCHANGE) report->waited_ns += waited;
  engine->waited_since = at;
  engine->phase = phase;
  engine->has_spun = false;
}

static void over(struct pwi_reduce *engine, pawl_status status) {
  engine->status = status;
  enter_phase(engine, PHASE_OVER);
}

static void agree(struct pwi_reduce *engine) {
  if (engine->phase == PHASE_ADOPT) pwi_reduce_end_model(engine);
  engine->donor = 0;
  enter_phase(engine, PHASE_AGREE);
  pwi_reduce_say_stop(engine, NULL);
  pwi_reduce_give_state(engine);
}

static void go_outside(struct pwi_reduce *engine) { engine->is_outside = engine->is_work_due = true; }

static void list_inputs(struct pwi_reduce *engine) {
  engine->input_count = 0;
  for (struct reduce_peer *peer = engine->near; peer; peer = peer->near_next)
    if (peer->is_in && (peer->slot || peer->window.memory)) engine->inputs_used[engine->input_count++] = peer;
}

/* Returns false if the step waits. */
static bool stage(struct pwi_reduce *engine) {
  if (pwi_reduce_is_stale(engine)) {
    agree(engine);
    return true;
  }
  if (engine->staged == engine->completed + 1 && !engine->must_pack) {
    enter_phase(engine, PHASE_EXCHANGE);
    return true;
  }
  engine->is_send_skipped = engine->config.mode == PAWL_REDUCE_ASYNC && !pwi_reduce_can_stage(engine);
  if (!engine->is_send_skipped && !pwi_reduce_can_stage(engine)) {
    if (pwi_reduce_may_spin(engine)) go_outside(engine);
    return false;
  }
  engine->is_kept = pwi_reduce_is_shown(engine, engine->completed + 1);
  if (pwi_is_planted(PWI_PLANTED_REDUCE_NOTIFY_FIRST)) pwi_reduce_show(engine, engine->completed + 1);
  /* An older version in the same buffer, after a send was skipped, must not be sent while it is packed. */
  if (!engine->is_send_skipped && engine->staged % 2 == (engine->completed + 1) % 2) engine->staged = 0;
  go_outside(engine);
  return false;
}

static bool exchange(struct pwi_reduce *engine) {
  pwi_reduce_pump(engine);
  pwi_reduce_arrive(engine);
  if (!pwi_reduce_may_finish(engine)) {
    agree(engine);
    return true;
  }
  if (!pwi_reduce_has_inputs(engine)) {
    if (pwi_reduce_may_spin(engine)) go_outside(engine);
    return false;
  }
  if (pwi_reduce_is_serving(engine)) return false;
  if (pwi_is_planted(PWI_PLANTED_REDUCE_EARLY_ACK)) pwi_reduce_show_used(engine, engine->completed + 1);
  list_inputs(engine);
  go_outside(engine);
  return false;
}

/* The donor has closed, or is no member any more. The epoch that is called then may wait for an iteration that this
 * member cannot complete without a model. */
static bool is_donor_lost(const struct pwi_reduce *engine) {
  const struct reduce_peer *donor = pwi_reduce_find(engine, engine->donor);
  return !donor || donor->is_gone || !pwi_reduce_is_member(engine, engine->donor);
}

static bool adopt(struct pwi_reduce *engine) {
  if (pwi_reduce_is_stale(engine) || (!engine->has_model && is_donor_lost(engine))) {
    agree(engine);
    return true;
  }
  if (!engine->has_model)
    pwi_reduce_ask_model(engine);
  else if (!pwi_reduce_are_tensors_read(engine))
    go_outside(engine);
  return false;
}

static void advance_step(struct pwi_reduce *engine) {
  bool has_moved = true;
  while (has_moved && !engine->is_outside) {
    if (engine->failed && engine->phase != PHASE_OUT && engine->phase != PHASE_OVER) over(engine, engine->failed);
    has_moved = engine->phase == PHASE_STAGE      ? stage(engine)
                : engine->phase == PHASE_EXCHANGE ? exchange(engine)
                : engine->phase == PHASE_ADOPT    ? adopt(engine)
                                                  : false;
  }
}

void pwi_reduce_say_bye(struct pwi_reduce *engine, struct reduce_peer *peer) {
  const struct reduce_message bye = {.version = engine->completed}, none = {0};
  if (!peer->is_linked) return;
  pwi_reduce_say(engine, peer, REDUCE_BYE, &bye);
  pwi_reduce_say(engine, peer, REDUCE_PING, &none);
  peer->is_pinged = true;
  peer->pongs = 0;
}

/* This member may leave the group next, which ends its links at once. So it waits until its last messages were
 * heard. */
static void close_step(struct pwi_reduce *engine, bool is_late) {
  if (!engine->has_said_bye && (is_late || pwi_reduce_deliver(engine))) {
    engine->has_said_bye = true;
    for (struct reduce_peer *peer = engine->peers; peer; peer = peer->next) pwi_reduce_say_bye(engine, peer);
  }
  if (!engine->has_said_bye || (!is_late && !pwi_reduce_have_answered(engine))) return;
  engine->has_left = true;
  pwi_channel_close(engine->channel); /* may call `closed` */
}

/* Does all that can be done now. */
void pwi_reduce_advance(struct pwi_reduce *engine) {
  enum pwi_reduce_want before = pwi_reduce_want(engine);
  if (engine->has_left) return;
  pwi_reduce_sweep(engine);
  pwi_reduce_direct_update(engine);
  if (!engine->failed) pwi_reduce_open_slots(engine);
  for (struct reduce_peer *peer = engine->near; peer; peer = peer->near_next) pwi_reduce_serve(engine, peer);
  if (engine->is_closing) {
    close_step(engine, false);
    return;
  }
  pwi_reduce_pump(engine);
  if (!engine->is_outside) advance_step(engine);
  if (pwi_reduce_want(engine) == PWI_REDUCE_WAIT && engine->board) { /* neighbours that do not know it say nothing */
    pwi_reduce_sleep(engine, true);
    pwi_reduce_direct_update(engine);
    advance_step(engine);
  }
  if (pwi_reduce_want(engine) != PWI_REDUCE_WAIT) pwi_reduce_sleep(engine, false);
  if (pwi_reduce_want(engine) != before) wake(engine);
}

void pwi_reduce_enter_epoch(struct pwi_reduce *engine, uint64_t iteration, uint64_t donor) {
  bool is_async = engine->config.mode == PAWL_REDUCE_ASYNC;
  uint64_t base = donor || !is_async ? iteration : engine->completed;
  for (struct reduce_peer *peer = engine->peers; peer; peer = peer->next) {
    bool is_told = peer->target.tag && pwi_reduce_epoch_compare(peer->target.epoch, engine->epoch) == 0;
    peer->acked = is_told && peer->target.wanted - 1 > base ? peer->target.wanted - 1 : base;
    peer->arrived = 0;
  }
  engine->has_arrived = false;
  engine->barrier_version = 0;
  engine->passed = base;
  engine->base = base;
  engine->donor = donor;
  engine->got_from = 0;
  engine->has_model = false;
  if (donor || engine->staged != base + 1) engine->staged = 0;
  if (engine->staged && engine->staged_header[engine->staged % 2].kind == REDUCE_SPARSE &&
      engine->config.what == PAWL_REDUCE_MIX) { /* nobody has the values before it */
    engine->staged = 0;
    engine->must_pack = true;
  }
  pwi_reduce_direct_begin(engine);
  enter_phase(engine, donor ? PHASE_ADOPT : PHASE_STAGE);
  pwi_reduce_want_links(engine);
  pwi_log(
      engine->config.log, PAWL_LOG_DEBUG, "reduce.epoch",
      "reduce=%s number=%" PRIu64 " round=%" PRIu32 " iteration=%" PRIu64 " size=%" PRIu32 " graph=%s donor=%" PRIu64,
      engine->config.name, engine->epoch.number, engine->epoch.round, iteration, engine->size, engine->graph, donor);
}

/* --- a step --------------------------------------------------------------------------------------------- */

void pwi_reduce_begin(struct pwi_reduce *engine) {
  if (engine->phase == PHASE_OUT) {
    engine->report = (struct pawl_reduce_report){0};
    engine->began = engine->waited_since = now(engine);
    engine->has_arrived = false;
    engine->must_pack = true;
    if (engine->failed)
      over(engine, engine->failed);
    else if (pwi_reduce_is_stale(engine))
      agree(engine);
    else
      enter_phase(engine, PHASE_STAGE);
  }
  pwi_reduce_advance(engine);
}

enum pwi_reduce_want pwi_reduce_want(const struct pwi_reduce *engine) {
  if (engine->is_work_due) return PWI_REDUCE_WORK;
  if (engine->phase == PHASE_OUT) return PWI_REDUCE_OUT;
  return engine->phase == PHASE_OVER ? PWI_REDUCE_OVER : PWI_REDUCE_WAIT;
}

bool pwi_reduce_must_send(struct pwi_reduce *engine) {
  bool must_send = engine->has_spoken && engine->board;
  engine->has_spoken = false;
  return must_send;
}

pawl_status pwi_reduce_work(struct pwi_reduce *engine) {
  if (engine->is_planning) return pwi_reduce_make_plan(engine);
  if (engine->is_spinning) {
    pwi_reduce_spin(engine);
    return PAWL_OK;
  }
  if (engine->phase == PHASE_STAGE) return pwi_reduce_pack(engine);
  if (engine->phase == PHASE_EXCHANGE) return pwi_reduce_combine(engine);
  pwi_reduce_take_model(engine);
  return PAWL_OK;
}

static void packed(struct pwi_reduce *engine, pawl_status status) {
  engine->must_pack = false;
  if (status) {
    engine->staged = 0;
    over(engine, status);
    return;
  }
  if (!engine->is_send_skipped) engine->staged = engine->completed + 1;
  if (engine->staged == engine->completed + 1) pwi_reduce_show(engine, engine->staged);
  enter_phase(engine, PHASE_EXCHANGE);
}

static void took_model(struct pwi_reduce *engine) {
  struct reduce_message message = {.epoch = engine->epoch};
  const struct reduce_peer *donor = pwi_reduce_find(engine, engine->donor);
  engine->got_from = engine->donor;
  engine->completed = engine->base;
  engine->report.is_adopted = true;
  engine->must_pack = true;
  if (donor && donor->is_linked) pwi_reduce_say(engine, donor, REDUCE_GOT, &message);
  pwi_reduce_end_model(engine);
  engine->donor = 0;
  enter_phase(engine, PHASE_STAGE);
}

static void combined(struct pwi_reduce *engine, pawl_status status) {
  struct pawl_reduce_report *report = &engine->report;
  if (status == PAWL_CANCELLED) { /* an input was not there any more */
    agree(engine);
    return;
  }
  if (status) {
    if (status == PAWL_CORRUPT) {
      engine->failed = status;
      pwi_log(engine->config.log, PAWL_LOG_WARN, "reduce.failed", "reduce=%s status=CORRUPT why=\"%s\"",
              engine->config.name, engine->problem);
    }
    over(engine, status);
    return;
  }
  pwi_reduce_patience_learn(engine, report->waited_ns);
  engine->completed++;
  report->iteration = engine->completed;
  report->number = engine->epoch.number;
  report->rank = engine->rank; /* the present one may differ: members that have made the step may leave */
  report->size = engine->size;
  report->expected = engine->inputs;
  pwi_reduce_acknowledge(engine);
  over(engine, PAWL_OK);
  pwi_reduce_agree_completed(engine);
}

/* Slots that were lost meanwhile had to stay. */
static void drop_orphans(struct pwi_reduce *engine) {
  for (struct reduce_peer *peer = engine->near; peer; peer = peer->near_next)
    if (peer->slot && peer->slot->is_orphan && !peer->slot->is_full) pwi_reduce_retire_slot(engine, peer);
}

void pwi_reduce_worked(struct pwi_reduce *engine, pawl_status status) {
  enum reduce_phase phase = engine->phase;
  if (engine->is_planning) { /* meanwhile another caller may have let this member go on */
    engine->is_work_due = engine->is_outside;
    pwi_reduce_planned(engine, status);
    pwi_reduce_advance(engine);
    return;
  }
  bool has_looked = engine->is_spinning;
  engine->is_outside = engine->is_work_due = engine->is_spinning = false;
  if (!has_looked) engine->waited_since = now(engine); /* work is no waiting */
  if (has_looked)
    engine->has_spun = true;
  else if (phase == PHASE_STAGE)
    packed(engine, status);
  else if (phase == PHASE_EXCHANGE)
    combined(engine, status);
  else
    took_model(engine);
  drop_orphans(engine);
  pwi_reduce_advance(engine);
}

/* A step that failed because of the own values can be begun again. */
pawl_status pwi_reduce_end(struct pwi_reduce *engine, struct pawl_reduce_report *report_out) {
  engine->report.bytes_sent = engine->bytes_sent - engine->bytes_reported; /* also those between two steps */
  if (!engine->status) engine->bytes_reported = engine->bytes_sent;
  *report_out = engine->report;
  engine->phase = PHASE_OUT;
  pwi_reduce_advance(engine);
  return engine->status;
}

const char *pwi_reduce_problem(const struct pwi_reduce *engine) { return engine->problem; }

/* --- life ----------------------------------------------------------------------------------------------- */

static pawl_status make_memory(struct pwi_reduce *engine) {
  size_t size = pwi_reduce_slot_size(engine);
  if (size < engine->layout.capacity) return PAWL_OVERFLOW;
  bool is_raw = engine->layout.codec == PWI_CODEC_RAW && engine->config.significant == 0;
  if (is_raw && engine->config.mode == PAWL_REDUCE_NOTIFY_ACK) return pwi_reduce_direct_open(engine);
  engine->staging[0] = pwi_alloc_zero(size, 1); /* gaps between tensors are sent, too */
  engine->staging[1] = pwi_alloc_zero(size, 1);
  if (!engine->staging[0] || !engine->staging[1]) return PAWL_NO_MEMORY;
  if (engine->config.significant > 0) {
    engine->last_sent = pwi_alloc_zero(engine->layout.raw + 8, 1);
    engine->saved = pwi_alloc_zero(engine->layout.raw + 8, 1);
    if (!engine->last_sent || !engine->saved) return PAWL_NO_MEMORY;
  }
  if (engine->config.mode != PAWL_REDUCE_NOTIFY_ACK || engine->config.significant > 0) {
    engine->scratch = pwi_alloc(engine->layout.capacity + engine->layout.values / 8 + 16);
    engine->sum = pwi_alloc(engine->layout.raw + 8);
    if (!engine->scratch || !engine->sum) return PAWL_NO_MEMORY;
  }
  return is_raw ? PAWL_OK : pwi_codec_create(&engine->codec);
}

static pawl_status open_channel(struct pwi_reduce *engine) {
  char name[PWI_CHANNEL_NAME_MAX + 1];
  if (strlen(engine->config.name) > PAWL_REDUCE_NAME_MAX) return PAWL_TOO_LARGE;
  snprintf(name, sizeof name, "reduce/%s", engine->config.name);
  return pwi_channel_open(engine->config.peers, engine->config.group, name, engine->description,
                          engine->description_size, &pwi_reduce_events, engine, &engine->channel);
}

pawl_status pwi_reduce_create(const struct pwi_reduce_config *config, struct pwi_reduce **engine_out) {
  struct pwi_reduce *engine = pwi_alloc_zero(1, sizeof *engine);
  if (!engine) return PAWL_NO_MEMORY;
  engine->config = *config;
  if (!config->log) engine->config.log = config->peers->config.log;
  engine->completed = config->first;
  engine->config.name = pwi_copy_string(config->name);
  pawl_status status = engine->config.name ? pwi_reduce_layout_init(&engine->layout, config) : PAWL_NO_MEMORY;
  if (!status) status = make_memory(engine);
  if (!status) status = pwi_reduce_describe(engine);
  if (!status) status = open_channel(engine);
  if (status) {
    engine->is_closed = true; /* nobody uses its regions */
    pwi_reduce_destroy(engine);
    return status;
  }
  pwi_reduce_look_at_members(engine);
  *engine_out = engine;
  return PAWL_OK;
}

pawl_status pwi_reduce_resume(struct pwi_reduce *engine, uint64_t iteration) {
  if (engine->was_in_epoch || engine->phase != PHASE_OUT) return PAWL_INVALID;
  engine->completed = iteration;
  return PAWL_OK;
}

void pwi_reduce_look(struct pwi_reduce *engine, int64_t at) {
  if (engine->is_closing) {
    if (at >= engine->close_by && !engine->has_left) close_step(engine, true);
    return;
  }
  if (at >= pwi_reduce_look_at(engine)) pwi_reduce_patience_look(engine, at);
  pwi_reduce_advance(engine);
}

void pwi_reduce_close(struct pwi_reduce *engine, int64_t deadline) {
  engine->is_closing = true;
  engine->close_by = deadline;
  pwi_reduce_advance(engine);
}

static void close_regions(struct pwi_reduce *engine) {
  for (struct reduce_peer *peer = engine->peers; peer; peer = peer->next)
    if (peer->slot) pwi_net_region_close(engine->config.net, peer->slot->region);
  for (struct reduce_retired *at = engine->retired; at; at = at->next)
    pwi_net_region_close(engine->config.net, at->region);
  pwi_net_region_close(engine->config.net, engine->model);
  pwi_net_region_close(engine->config.net, engine->shown);
}

void pwi_reduce_destroy(struct pwi_reduce *engine) {
  if (!engine) return;
  pwi_reduce_direct_close(engine);
  if (engine->is_closed) close_regions(engine);
  while (engine->peers) {
    struct reduce_peer *peer = engine->peers;
    engine->peers = peer->next;
    pwi_free(peer->slot);
    pwi_free(peer->mirror);
    pwi_free(peer);
  }
  while (engine->retired) {
    struct reduce_retired *retired = engine->retired;
    engine->retired = retired->next;
    pwi_free(retired);
  }
  pwi_reduce_forget_decision(engine);
  pwi_reduce_forget_plan(engine);
  pwi_reduce_layout_fini(&engine->layout);
  pwi_idmap_fini(&engine->by_id);
  pwi_writer_fini(&engine->writer);
  pwi_codec_destroy(engine->codec);
  if (!engine->board) {
    pwi_free(engine->staging[0]);
    pwi_free(engine->staging[1]);
  }
  pwi_free(engine->sources);
  pwi_free(engine->scratch);
  pwi_free(engine->sum);
  pwi_free(engine->last_sent);
  pwi_free(engine->saved);
  pwi_free(engine->inputs_used);
  pwi_free(engine->members);
  pwi_free(engine->description);
  pwi_free((char *)engine->config.name);
  pwi_free(engine);
}

/* --- for people ----------------------------------------------------------------------------------------- */

void pwi_reduce_state(const struct pwi_reduce *engine, struct pawl_reduce_state *state_out) {
  *state_out =
      (struct pawl_reduce_state){.iteration = engine->completed,
                                 .number = engine->epoch.number,
                                 .rank = engine->epoch.number ? engine->rank : pwi_channel_rank(engine->channel),
                                 .size = engine->size,
                                 .inputs = engine->inputs,
                                 .outputs = engine->outputs,
                                 .bytes_sent = engine->bytes_sent,
                                 .regenerated = engine->regenerated};
  memcpy(state_out->graph, engine->graph, sizeof state_out->graph);
}

void pwi_reduce_explain(const struct pwi_reduce *engine, char *text, size_t size) {
  size_t waits = 0;
  uint64_t first = 0;
  const char *what = engine->phase == PHASE_AGREE   ? "agreement with"
                     : engine->phase == PHASE_ADOPT ? "the model of"
                     : engine->phase == PHASE_STAGE ? "an acknowledgement of"
                                                    : "the tensors of";
  for (const struct reduce_peer *peer = engine->peers; peer; peer = peer->next) {
    if (!pwi_reduce_is_waited_for(engine, peer)) continue;
    if (waits++ == 0) first = peer->sender.id;
  }
  if (waits == 0)
    snprintf(text, size, "waits for the other members");
  else if (waits == 1)
    snprintf(text, size, "waits for %s node %" PRIu64, what, first);
  else
    snprintf(text, size, "waits for %s node %" PRIu64 " and %zu others", what, first, waits - 1);
}
