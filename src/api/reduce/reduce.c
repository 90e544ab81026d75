/* Reduce: <pawl/reduce.h>. The engine is an actor inside the session's gate; the thread that makes a step
 * runs the engine's long work outside of it. */
#include "api/reduce/reduce.h"

#include <inttypes.h>
#include <sched.h>
#include <string.h>

#include <pawl/peer.h>

#include "api/options.h"
#include "base/memory.h"
#include "host/clock.h"
#include "host/pause.h"

#define CLOSE_NS (2 * INT64_C(1000000000)) /* for the delivery of the last tensors */

#define LOOKS 64                          /* at the boards of neighbours, before other threads may run */
#define LOOK_MIN_NS INT64_C(4000)         /* the shortest time of looking before sleeping */
#define LOOK_MAX_NS (200 * INT64_C(1000)) /* the longest */
#define YIELD_MAX_NS (50 * INT64_C(1000)) /* other threads that run for longer do not answer */
#define YIELD_REST_NS PWI_HOST_SECOND     /* then no other thread is let in for this time */

void pawl_reduce_options_init_sized(struct pawl_reduce_options *options, size_t struct_size) {
  const struct pawl_reduce_options defaults = {.seed = 1};
  pwi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* --- callbacks of the engine ---------------------------------------------------------------------------- */

static struct pwi_driver *driver_of(const struct pawl_reduce *reduce) { return &reduce->group->session->driver; }

static void wakes(void *context) {
  struct pawl_reduce *reduce = context;
  if (!pwi_event_is_set(&reduce->event)) pwi_event_set(driver_of(reduce), &reduce->event);
}

void pwi_reduce_session_over(struct pwi_owned *owned) { wakes(owned); }

static void closed(void *context) {
  struct pawl_reduce *reduce = context;
  reduce->is_closed = true;
  wakes(reduce);
}

static void enter(void *context) { pwi_driver_enter(driver_of(context)); }
static void leave(void *context) { pwi_driver_leave(driver_of(context)); }

/* Neighbours on this host may be about to answer. At first this thread looks again at once; later it lets other threads
 * run between two looks. If it looked in vain, the next attempt is shorter, because sleeping would have been better. If
 * another thread ran for long, that thread is no neighbour that answers soon; for a while this one then sleeps after its
 * first looks, because the scheduler prefers a thread that is woken to one that has let others run. */
static bool pause_step(void *context, unsigned tries) {
  struct pawl_reduce *reduce = context;
  if (tries == 0) {
    reduce->look_until = pwi_host_now() + reduce->look_ns;
    if (reduce->look_ns < LOOK_MAX_NS) reduce->look_ns *= 2;
  }
  if (tries % LOOKS != LOOKS - 1) {
    pwi_host_pause();
    return true;
  }
  int64_t now = pwi_host_now();
  if (now >= reduce->look_until || now < reduce->yield_from) {
    reduce->look_ns = reduce->look_ns / 4 > LOOK_MIN_NS ? reduce->look_ns / 4 : LOOK_MIN_NS;
    return false;
  }
  sched_yield();
  int64_t after = pwi_host_now();
  if (after - now > YIELD_MAX_NS) reduce->yield_from = after + YIELD_REST_NS;
  return true;
}

/* --- opening -------------------------------------------------------------------------------------------- */

static bool is_word(const char *name) {
  size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
  return length > 0 && name[length] == '\0' && length <= PAWL_REDUCE_NAME_MAX;
}

static pawl_status check_tensors(const char *name, const char *what, const struct pawl_tensor *tensors, size_t count) {
  if (count > 0 && !tensors)
    return pwi_error(PAWL_INVALID, "reduce %s: %s is NULL but its count is %zu", name, what, count);
  for (size_t i = 0; i < count; i++) {
    if (tensors[i].count > 0 && !tensors[i].values)
      return pwi_error(PAWL_INVALID, "reduce %s: %s %zu: values is NULL but count is %zu", name, what, i,
                       tensors[i].count);
    if (tensors[i].type != PAWL_F32 && tensors[i].type != PAWL_F64)
      return pwi_error(PAWL_UNSUPPORTED, "reduce %s: %s %zu: type %d; only PAWL_F32 and PAWL_F64 can be averaged", name,
                       what, i, (int)tensors[i].type);
  }
  return PAWL_OK;
}

static pawl_status check(const char *name, const struct pawl_tensor *tensors, size_t count,
                         const struct pawl_reduce_options *options) {
  if (!is_word(name))
    return pwi_error(PAWL_INVALID, "reduce '%s': a name has 1 to %d letters, digits, '.', '_' and '-'", name,
                     PAWL_REDUCE_NAME_MAX);
  if (count == 0) return pwi_error(PAWL_INVALID, "reduce %s: there are no tensors", name);
  if ((unsigned)options->mode > PAWL_REDUCE_ASYNC || (unsigned)options->what > PAWL_REDUCE_MEAN ||
      (unsigned)options->narrow > PAWL_REDUCE_INT8)
    return pwi_error(PAWL_INVALID, "reduce %s: unknown mode, combination or narrowing", name);
  if (!(options->significant >= 0) || options->significant > 1e300)
    return pwi_error(PAWL_INVALID, "reduce %s: significant must be a number, 0 or more", name);
  if (options->significant > 0 && options->mode != PAWL_REDUCE_NOTIFY_ACK)
    return pwi_error(PAWL_UNSUPPORTED, "reduce %s: significant needs the mode NOTIFY_ACK, in which no version is lost",
                     name);
  pawl_status status = check_tensors(name, "tensor", tensors, count);
  return status ? status : check_tensors(name, "carried tensor", options->carried, options->carried_count);
}

void pwi_reduce_free(struct pwi_owned *owned) {
  struct pawl_reduce *reduce = (struct pawl_reduce *)owned;
  pwi_reduce_destroy(reduce->engine);
  pwi_graph_destroy(reduce->graph);
  pwi_free(reduce->tensors);
  pwi_free(reduce->name);
  pwi_free(reduce->checkpoint);
  pwi_free(reduce);
}

static pawl_status copy_arguments(struct pawl_reduce *reduce, const char *name, const struct pawl_tensor *tensors,
                                  size_t count, const struct pawl_reduce_options *options) {
  if (count > PAWL_REDUCE_TENSORS_MAX || options->carried_count > PAWL_REDUCE_TENSORS_MAX - count)
    return pwi_error(PAWL_TOO_LARGE, "reduce %s: more than %d tensors", name, PAWL_REDUCE_TENSORS_MAX);
  reduce->name = pwi_copy_string(name);
  reduce->count = count;
  reduce->all = count + options->carried_count;
  reduce->tensors = pwi_alloc_zero(reduce->all, sizeof *reduce->tensors);
  if (options->checkpoint) reduce->checkpoint = pwi_copy_string(options->checkpoint);
  if (!reduce->name || !reduce->tensors || (options->checkpoint && !reduce->checkpoint))
    return pwi_error_status(PAWL_NO_MEMORY, "reduce %s", name);
  memcpy(reduce->tensors, tensors, count * sizeof *tensors);
  if (options->carried_count > 0)
    memcpy(reduce->tensors + count, options->carried, options->carried_count * sizeof *tensors);
  reduce->checkpoint_period = options->checkpoint ? options->checkpoint_period : 0;
  return PAWL_OK;
}

static pawl_status open_engine(struct pawl_reduce *reduce, const struct pawl_reduce_options *options,
                               const struct pwi_reduce_graph *graph) {
  struct pawl_session *session = reduce->group->session;
  struct pwi_reduce_config config = {.net = session->net,
                                     .log = &session->log,
                                     .group = reduce->group->id,
                                     .name = reduce->name,
                                     .tensors = reduce->tensors,
                                     .count = reduce->count,
                                     .carried = reduce->tensors + reduce->count,
                                     .carried_count = reduce->all - reduce->count,
                                     .mode = options->mode,
                                     .what = options->what,
                                     .narrow = options->narrow,
                                     .significant = options->significant,
                                     .first = options->first,
                                     .graph = *graph,
                                     .context = reduce,
                                     .wakes = wakes,
                                     .closed = closed,
                                     .enter = enter,
                                     .leave = leave,
                                     .pause = pause_step};
  pwi_driver_enter(&session->driver);
  pawl_status status = session->is_closed ? PAWL_NODE_STOPPED : pwi_client_peers(session->client, &config.peers);
  if (!status) status = pwi_reduce_create(&config, &reduce->engine);
  if (!status) pwi_owned_add(&session->reduces, &reduce->owned);
  pwi_driver_leave(&session->driver);
  return status ? pwi_error_status(status, "open reduce %s", reduce->name) : PAWL_OK;
}

pawl_status pawl_reduce_open(struct pawl_peers *peers, const char *name, const struct pawl_tensor *tensors,
                             size_t count, const struct pawl_reduce_options *given, int64_t timeout_ns,
                             struct pawl_reduce **reduce_out) {
  struct pawl_reduce_options options;
  struct pwi_reduce_graph graph;
  struct pawl_peers_state state;
  if (!peers || !name || !reduce_out) return pwi_error(PAWL_INVALID, "open reduce: peers, name or reduce_out is NULL");
  pawl_reduce_options_init(&options);
  pawl_status status = pwi_take_options("reduce", given, &options, sizeof options);
  if (!status) status = check(name, tensors, count, &options);
  if (!status) status = pawl_peers_await(peers, 0, timeout_ns);
  if (status) return status;
  struct pawl_reduce *reduce = pwi_alloc_zero(1, sizeof *reduce);
  if (!reduce) return pwi_error_status(PAWL_NO_MEMORY, "open reduce %s", name);
  reduce->group = (struct pawl_group *)peers;
  reduce->look_ns = LOOK_MAX_NS;
  pawl_peers_state(peers, &state);
  status = pwi_reduce_graph_read(options.graph, options.seed, options.degree, state.founders, &graph, &reduce->graph);
  if (!status) status = copy_arguments(reduce, name, tensors, count, &options);
  if (!status) status = open_engine(reduce, &options, &graph);
  if (status)
    pwi_reduce_free(&reduce->owned);
  else
    *reduce_out = reduce;
  return status;
}

/* --- steps ---------------------------------------------------------------------------------------------- */

/* Inside the gate; leaves it while it waits. The event is set again by `wakes`. */
static void wait(struct pawl_reduce *reduce, int64_t deadline) {
  struct pwi_driver *driver = driver_of(reduce);
  int64_t at = pwi_reduce_look_at(reduce->engine);
  atomic_store(&reduce->event.is_set, false);
  pwi_driver_leave(driver);
  (void)pwi_driver_wait(driver, &reduce->event, at < deadline ? at : deadline);
  pwi_driver_enter(driver);
  int64_t now = pwi_net_now(driver->net);
  if (!reduce->is_closed && now >= pwi_reduce_look_at(reduce->engine)) pwi_reduce_look(reduce->engine, now);
}

/* Inside the gate: PAWL_OK, or why the session is over. */
static pawl_status look_at_session(const struct pawl_reduce *reduce) {
  struct pwi_client_state state;
  if (reduce->group->session->is_closed) return PAWL_NODE_STOPPED;
  if (reduce->group->is_leaving) return PAWL_NODE_GONE;
  pwi_client_state(reduce->group->session->client, &state);
  return state.is_dead ? state.trouble : PAWL_OK;
}

static void work(struct pawl_reduce *reduce) {
  if (pwi_reduce_must_send(reduce->engine)) pwi_driver_look(driver_of(reduce));
  pwi_driver_leave(driver_of(reduce));
  pawl_status status = pwi_reduce_work(reduce->engine);
  pwi_driver_enter(driver_of(reduce));
  pwi_reduce_worked(reduce->engine, status);
}

/* Inside the gate, until the step is over. */
static pawl_status run(struct pawl_reduce *reduce, int64_t deadline, struct pawl_reduce_report *report) {
  for (;;) {
    enum pwi_reduce_want want = pwi_reduce_want(reduce->engine);
    if (want == PWI_REDUCE_OVER) return pwi_reduce_end(reduce->engine, report);
    if (want == PWI_REDUCE_WORK) {
      work(reduce);
      continue;
    }
    pawl_status status = look_at_session(reduce);
    if (status) return status;
    if (deadline != PWI_NET_NEVER && pwi_net_now(driver_of(reduce)->net) >= deadline) return PAWL_TIMED_OUT;
    wait(reduce, deadline);
  }
}

static pawl_status explain(struct pawl_reduce *reduce, pawl_status status) {
  char text[128] = "";
  if (status == PAWL_TIMED_OUT) {
    pwi_driver_enter(driver_of(reduce));
    pwi_reduce_explain(reduce->engine, text, sizeof text);
    pwi_driver_leave(driver_of(reduce));
    return pwi_error(status, "reduce %s: deadline passed; the step %s", reduce->name, text);
  }
  if (status == PAWL_DIVERGED)
    return pwi_error(status, "reduce %s: a tensor contains NaN or an infinity; nothing was sent", reduce->name);
  if (status == PAWL_OVERFLOW)
    return pwi_error(status, "reduce %s: a value is too large for the narrow type; nothing was sent", reduce->name);
  const char *problem = pwi_reduce_problem(reduce->engine);
  return problem[0] ? pwi_error(status, "reduce %s: %s", reduce->name, problem)
                    : pwi_error_status(status, "reduce %s", reduce->name);
}

pawl_status pawl_reduce_step(struct pawl_reduce *reduce, int64_t timeout_ns, struct pawl_reduce_report *report_out) {
  struct pawl_reduce_report report = {0};
  if (!reduce) return pwi_error(PAWL_INVALID, "step of a reduce: reduce is NULL");
  struct pwi_driver *driver = driver_of(reduce);
  int64_t deadline = pwi_driver_deadline(timeout_ns);
  pwi_driver_enter(driver);
  pawl_status status = look_at_session(reduce);
  if (!status) {
    pwi_reduce_begin(reduce->engine);
    status = run(reduce, deadline, &report);
    if (pwi_reduce_must_send(reduce->engine)) /* acknowledgements, and tensors that others wait for */
      pwi_driver_look(driver);
    else
      pwi_driver_nudge(driver);
  }
  pwi_driver_leave(driver);
  if (status) return explain(reduce, status);
  if (report_out) *report_out = report;
  if (reduce->checkpoint_period > 0 && report.iteration % reduce->checkpoint_period == 0)
    return pawl_reduce_save(reduce, reduce->checkpoint);
  return PAWL_OK;
}

void pawl_reduce_state(const struct pawl_reduce *reduce, struct pawl_reduce_state *state_out) {
  pwi_driver_enter(driver_of(reduce));
  pwi_reduce_state(reduce->engine, state_out);
  pwi_driver_leave(driver_of(reduce));
}

/* --- closing -------------------------------------------------------------------------------------------- */

void pawl_reduce_close(struct pawl_reduce *reduce) {
  if (!reduce) return;
  struct pwi_driver *driver = driver_of(reduce);
  pwi_driver_enter(driver);
  int64_t deadline = pwi_net_now(driver->net) + (look_at_session(reduce) ? 0 : CLOSE_NS);
  pwi_reduce_close(reduce->engine, deadline);
  while (!reduce->is_closed) wait(reduce, PWI_NET_NEVER);
  pwi_owned_remove(&reduce->owned);
  pwi_reduce_free(&reduce->owned);
  pwi_driver_leave(driver);
}
