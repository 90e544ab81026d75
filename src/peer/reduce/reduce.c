/* The life of an engine, its channel, and the phases of a step. */
#include "peer/reduce/reduce.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "peer/inside.h"
#include "peer/reduce/inside.h"

/* --- small things --------------------------------------------------------------------------------------- */

struct reduce_peer *pwi_reduce_find(const struct pwi_reduce *engine, uint64_t id) {
  return id ? pwi_idmap_get(&engine->by_id, id) : NULL;
}

void pwi_reduce_say(struct pwi_reduce *engine, const struct reduce_peer *peer, uint32_t kind,
                    const struct reduce_message *message) {
  unsigned char bytes[REDUCE_MESSAGE_SIZE];
  pwi_reduce_message_encode(message, bytes);
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
  for (struct reduce_peer *peer = engine->peers; peer; peer = peer->next)
    if (peer->is_in && peer->slot) engine->inputs_used[engine->input_count++] = peer;
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
  if (!engine->is_send_skipped && !pwi_reduce_can_stage(engine)) return false;
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
  if (!pwi_reduce_has_inputs(engine) || pwi_reduce_is_serving(engine)) return false;
  list_inputs(engine);
  go_outside(engine);
  return false;
}

static bool adopt(struct pwi_reduce *engine) {
  if (pwi_reduce_is_stale(engine)) {
    agree(engine);
    return true;
  }
  if (engine->has_model)
    go_outside(engine);
  else
    pwi_reduce_ask_model(engine);
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

static void say_bye_to(struct pwi_reduce *engine, struct reduce_peer *peer) {
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
    for (struct reduce_peer *peer = engine->peers; peer; peer = peer->next) say_bye_to(engine, peer);
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
  if (!engine->failed) pwi_reduce_open_slots(engine);
  for (struct reduce_peer *peer = engine->peers; peer; peer = peer->next) pwi_reduce_serve(engine, peer);
  if (engine->is_closing) {
    close_step(engine, false);
    return;
  }
  pwi_reduce_pump(engine);
  if (!engine->is_outside) advance_step(engine);
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
  engine->passed = base;
  engine->base = base;
  engine->donor = donor;
  engine->has_model = false;
  if (donor || engine->staged != base + 1) engine->staged = 0;
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

pawl_status pwi_reduce_work(struct pwi_reduce *engine) {
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
  enter_phase(engine, PHASE_EXCHANGE);
}

static void took_model(struct pwi_reduce *engine) {
  struct reduce_message message = {.epoch = engine->epoch};
  const struct reduce_peer *donor = pwi_reduce_find(engine, engine->donor);
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
  report->rank = pwi_channel_rank(engine->channel);
  report->size = engine->size;
  report->expected = engine->inputs;
  pwi_reduce_acknowledge(engine);
  over(engine, PAWL_OK);
  pwi_reduce_agree_completed(engine);
}

/* Slots that were lost meanwhile had to stay. */
static void drop_orphans(struct pwi_reduce *engine) {
  for (struct reduce_peer *peer = engine->peers; peer; peer = peer->next)
    if (peer->slot && peer->slot->is_orphan && !peer->slot->is_full) pwi_reduce_retire_slot(engine, peer);
}

void pwi_reduce_worked(struct pwi_reduce *engine, pawl_status status) {
  enum reduce_phase phase = engine->phase;
  engine->is_outside = engine->is_work_due = false;
  engine->waited_since = now(engine); /* work is no waiting */
  if (phase == PHASE_STAGE)
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
  *report_out = engine->report;
  engine->phase = PHASE_OUT;
  pwi_reduce_advance(engine);
  return engine->status;
}

const char *pwi_reduce_problem(const struct pwi_reduce *engine) { return engine->problem; }

/* --- events of the channel ------------------------------------------------------------------------------ */

static struct reduce_peer *add_peer(struct pwi_reduce *engine, struct pwi_sender sender) {
  struct reduce_peer **at = &engine->peers, *peer = pwi_reduce_find(engine, sender.id);
  if (peer) return peer;
  peer = pwi_alloc_zero(1, sizeof *peer);
  if (!peer || pwi_idmap_put(&engine->by_id, sender.id, peer)) {
    pwi_free(peer);
    pwi_reduce_fail(engine, PAWL_NO_MEMORY, "no memory for %d more peers", 1);
    return NULL;
  }
  while (*at && (*at)->sender.id < sender.id) at = &(*at)->next;
  peer->sender = sender;
  peer->next = *at;
  *at = peer;
  return peer;
}

/* A member that has closed is remembered as long as the epoch in which it took part lasts. */
static bool is_needed(const struct pwi_reduce *engine, const struct reduce_peer *peer) {
  if (pwi_reduce_is_member(engine, peer->sender.id)) return true;
  for (size_t i = 0; peer->is_gone && i < engine->member_count; i++)
    if (engine->members[i] == peer->sender.id) return true;
  return peer->is_linked || peer->is_in || peer->is_out || peer->slot || peer->puts > 0 || peer->model_puts > 0;
}

static void forget_peers(struct pwi_reduce *engine) {
  struct reduce_peer **at = &engine->peers;
  while (*at && !engine->is_outside) {
    struct reduce_peer *peer = *at;
    if (is_needed(engine, peer)) {
      at = &peer->next;
      continue;
    }
    *at = peer->next;
    pwi_idmap_remove(&engine->by_id, peer->sender.id);
    pwi_free(peer);
  }
}

static void look_at_members(struct pwi_reduce *engine) {
  size_t count;
  const struct pwi_membership_member *members = pwi_channel_members(engine->channel, &count);
  for (size_t i = 0; i < count; i++)
    if (members[i].sender.id != pwi_reduce_self(engine)) (void)add_peer(engine, members[i].sender);
  forget_peers(engine);
  pwi_reduce_agree(engine);
}

static void changed(void *self) {
  struct pwi_reduce *engine = self;
  look_at_members(engine);
  pwi_reduce_advance(engine);
}

/* Before the first epoch nobody can say who is wrong; later it is the one that has joined. */
static bool fits(struct pwi_reduce *engine, struct reduce_peer *peer, const void *description, size_t size) {
  char problem[PWI_REDUCE_PROBLEM_MAX];
  if (pwi_reduce_compare(engine, peer->sender.id, description, size, problem, sizeof problem) == PAWL_OK) return true;
  if (!engine->was_in_epoch) {
    const struct reduce_message none = {0};
    pwi_reduce_fail(engine, PAWL_MISMATCH, "%s", problem);
    pwi_reduce_say(engine, peer, REDUCE_PING, &none); /* its answer shows that it knows as well */
    peer->is_pinged = true;
    peer->pongs = 0;
  } else
    pwi_log(engine->config.log, PAWL_LOG_WARN, "reduce.mismatch", "reduce=%s why=\"%s\"", engine->config.name, problem);
  return false;
}

static void linked(void *self, struct pwi_sender sender, const void *description, size_t size) {
  struct pwi_reduce *engine = self;
  struct reduce_peer *peer = add_peer(engine, sender);
  if (!peer) return;
  peer->is_linked = true;
  peer->is_pinged = false;
  peer->farewell = FAREWELL_NONE;
  if (engine->has_said_bye) say_bye_to(engine, peer);
  if (fits(engine, peer, description, size)) {
    pwi_reduce_agree_linked(engine, peer);
    if (engine->phase == PHASE_AGREE) pwi_reduce_say_stop(engine, peer); /* it may be lost */
    if (engine->has_arrived && sender.id == engine->epoch.caller && engine->phase == PHASE_EXCHANGE) {
      struct reduce_message message = {.epoch = engine->epoch, .version = engine->completed + 1};
      pwi_reduce_say(engine, peer, REDUCE_ARRIVED, &message); /* it, or its answer, may be lost */
    }
  } else {
    pwi_reduce_agree_gone(engine, peer, 0);
  }
  pwi_reduce_advance(engine);
}

static void lost(void *self, struct pwi_sender sender, pawl_status why) {
  struct pwi_reduce *engine = self;
  struct reduce_peer *peer = pwi_reduce_find(engine, sender.id);
  (void)why;
  if (!peer) return;
  peer->is_linked = false;
  pwi_reduce_drop_target(engine, peer);
  peer->has_model_remote = false;
  peer->model_next = peer->model_tag = 0;
  for (struct reduce_retired *at = engine->retired; at; at = at->next)
    if (at->peer.id == sender.id) at->is_over = true;
  if (peer->slot) peer->slot->is_orphan = true;
  if (peer->slot && !peer->slot->is_full) pwi_reduce_retire_slot(engine, peer);
  if (engine->model && sender.id == engine->donor && !engine->has_model) pwi_reduce_end_model(engine);
  forget_peers(engine);
  pwi_reduce_advance(engine);
}

static void hear_ack(struct pwi_reduce *engine, struct reduce_peer *peer, const struct reduce_message *message) {
  if (pwi_reduce_epoch_compare(message->epoch, engine->epoch) != 0) return;
  if (message->version == peer->acked + 1 && message->version <= peer->target.sent) peer->acked = message->version;
}

static void hear_release(struct pwi_reduce *engine, struct pwi_sender sender, uint64_t tag) {
  for (struct reduce_retired *at = engine->retired; at; at = at->next)
    if (at->peer.id == sender.id && at->tag == tag) at->is_over = true;
}

static void hear_bye(struct pwi_reduce *engine, struct reduce_peer *peer, const struct reduce_message *message) {
  pwi_reduce_inspect(engine, peer);
  pwi_reduce_agree_gone(engine, peer, message->version);
}

static void hear(struct pwi_reduce *engine, struct reduce_peer *peer, uint32_t kind,
                 const struct reduce_message *message) {
  const struct reduce_message none = {0};
  switch (kind) {
  case REDUCE_CALL:
  case REDUCE_LATER:
  case REDUCE_STATE:
    pwi_reduce_hear_agree(engine, peer, kind, message);
    break;
  case REDUCE_SLOT:
    pwi_reduce_hear_slot(engine, peer, message);
    break;
  case REDUCE_RELEASE:
    hear_release(engine, peer->sender, message->tag);
    break;
  case REDUCE_ACK:
    hear_ack(engine, peer, message);
    break;
  case REDUCE_ARRIVED:
  case REDUCE_PASS:
    pwi_reduce_hear_barrier(engine, peer, kind, message);
    break;
  case REDUCE_MODEL:
    pwi_reduce_hear_model(engine, peer, message);
    break;
  case REDUCE_GOT:
    if (pwi_reduce_epoch_compare(message->epoch, engine->epoch) == 0) peer->is_served = false;
    break;
  case REDUCE_BYE:
    hear_bye(engine, peer, message);
    break;
  case REDUCE_STOP:
    peer->stop = (struct reduce_stop){message->epoch, message->tag, message->version};
    break;
  case REDUCE_PING:
    pwi_reduce_say(engine, peer, REDUCE_PONG, &none);
    break;
  case REDUCE_PONG:
    peer->pongs++;
    break;
  default: /* of a later version */
    break;
  }
}

static void heard(void *self, struct pwi_sender sender, uint32_t kind, const void *bytes, size_t size) {
  struct pwi_reduce *engine = self;
  struct reduce_peer *peer = pwi_reduce_find(engine, sender.id);
  struct reduce_message message;
  struct reduce_go go;
  if (!peer || (engine->failed && kind != REDUCE_PING && kind != REDUCE_PONG)) return;
  pawl_status status =
      kind == REDUCE_GO ? pwi_reduce_go_decode(bytes, size, &go) : pwi_reduce_message_decode(bytes, size, &message);
  if (status)
    pwi_log(engine->config.log, PAWL_LOG_WARN, "reduce.bad", "reduce=%s peer=%" PRIu64 " kind=%" PRIu32 " status=%s",
            engine->config.name, sender.id, kind, pawl_status_name(status));
  else if (kind == REDUCE_GO)
    pwi_reduce_hear_go(engine, peer, &go);
  else
    hear(engine, peer, kind, &message);
  pwi_reduce_advance(engine);
}

static void shared(void *self, struct pwi_sender sender, uint64_t tag, struct pwi_remote remote, uint64_t size) {
  struct pwi_reduce *engine = self;
  struct reduce_peer *peer = pwi_reduce_find(engine, sender.id);
  if (!peer) return;
  if (tag == peer->target.tag && size == pwi_reduce_slot_size(engine)) {
    peer->target.remote = remote;
    peer->target.has_remote = true;
  } else if (tag == peer->model_tag && size == pwi_reduce_model_size(engine)) {
    peer->model_remote = remote;
    peer->has_model_remote = true;
  }
  pwi_reduce_advance(engine);
}

static void notified(void *self, struct pwi_sender sender, uint64_t value) {
  struct pwi_reduce *engine = self;
  struct reduce_peer *peer = pwi_reduce_find(engine, sender.id);
  if (!peer || engine->failed) return;
  if (engine->model && sender.id == engine->donor && value == (engine->model_tag & 0xffff) << 32)
    engine->has_model = true;
  else
    pwi_reduce_notified(engine, peer, value);
  pwi_reduce_advance(engine);
}

static void done(void *self, struct pwi_sender sender, uint64_t cookie, pawl_status status) {
  struct pwi_reduce *engine = self;
  struct reduce_peer *peer = pwi_reduce_find(engine, sender.id);
  if (!peer) return;
  (void)status; /* a failure is followed by `lost` */
  pwi_reduce_done(engine, peer, cookie);
  pwi_reduce_advance(engine);
}

static void writable(void *self, struct pwi_sender sender) {
  (void)sender;
  pwi_reduce_advance(self);
}

static void closed(void *self) {
  struct pwi_reduce *engine = self;
  engine->is_closed = true;
  engine->config.closed(engine->config.context);
}

static const struct pwi_channel_events events = {.changed = changed,
                                                 .linked = linked,
                                                 .lost = lost,
                                                 .heard = heard,
                                                 .shared = shared,
                                                 .notified = notified,
                                                 .done = done,
                                                 .writable = writable,
                                                 .closed = closed};

/* --- life ----------------------------------------------------------------------------------------------- */

static pawl_status make_memory(struct pwi_reduce *engine) {
  size_t size = pwi_reduce_slot_size(engine);
  if (size < engine->layout.capacity) return PAWL_OVERFLOW;
  engine->staging[0] = pwi_alloc(size);
  engine->staging[1] = pwi_alloc(size);
  if (!engine->staging[0] || !engine->staging[1]) return PAWL_NO_MEMORY;
  if (engine->config.mode != PAWL_REDUCE_NOTIFY_ACK) {
    engine->scratch = pwi_alloc(engine->layout.capacity + 8);
    engine->sum = pwi_alloc(engine->layout.raw + 8);
    if (!engine->scratch || !engine->sum) return PAWL_NO_MEMORY;
  }
  return engine->layout.codec == PWI_CODEC_RAW ? PAWL_OK : pwi_codec_create(&engine->codec);
}

static pawl_status open_channel(struct pwi_reduce *engine) {
  char name[PWI_CHANNEL_NAME_MAX + 1];
  if (strlen(engine->config.name) > PAWL_REDUCE_NAME_MAX) return PAWL_TOO_LARGE;
  snprintf(name, sizeof name, "reduce/%s", engine->config.name);
  return pwi_channel_open(engine->config.peers, engine->config.group, name, engine->description,
                          engine->description_size, &events, engine, &engine->channel);
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
    pwi_reduce_destroy(engine);
    return status;
  }
  look_at_members(engine);
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
}

void pwi_reduce_destroy(struct pwi_reduce *engine) {
  if (!engine) return;
  if (engine->is_closed) close_regions(engine);
  while (engine->peers) {
    struct reduce_peer *peer = engine->peers;
    engine->peers = peer->next;
    pwi_free(peer->slot);
    pwi_free(peer);
  }
  while (engine->retired) {
    struct reduce_retired *retired = engine->retired;
    engine->retired = retired->next;
    pwi_free(retired);
  }
  pwi_reduce_forget_decision(engine);
  pwi_reduce_layout_fini(&engine->layout);
  pwi_idmap_fini(&engine->by_id);
  pwi_writer_fini(&engine->writer);
  pwi_codec_destroy(engine->codec);
  pwi_free(engine->staging[0]);
  pwi_free(engine->staging[1]);
  pwi_free(engine->scratch);
  pwi_free(engine->sum);
  pwi_free(engine->inputs_used);
  pwi_free(engine->members);
  pwi_free(engine->description);
  pwi_free((char *)engine->config.name);
  pwi_free(engine);
}

/* --- for people ----------------------------------------------------------------------------------------- */

void pwi_reduce_state(const struct pwi_reduce *engine, struct pawl_reduce_state *state_out) {
  *state_out = (struct pawl_reduce_state){.iteration = engine->completed,
                                          .number = engine->epoch.number,
                                          .rank = pwi_channel_rank(engine->channel),
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
