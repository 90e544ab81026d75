/* Collectives: <pawl/collective.h>. The engine is an actor inside the session's gate; a call waits until it is over. */
#include "api/collective/collective.h"

#include <inttypes.h>
#include <string.h>

#include <pawl/peer.h>

#include "base/checked.h"
#include "base/memory.h"
#include "host/clock.h"

#define CLOSE_NS (2 * INT64_C(1000000000)) /* for the delivery of the last pieces */

static struct pwi_driver *driver_of(const struct pawl_collective *collective) {
  return &collective->group->session->driver;
}

/* --- callbacks of the engine ---------------------------------------------------------------------------- */

static void wakes(void *context) {
  struct pawl_collective *collective = context;
  if (!pwi_event_is_set(&collective->event)) pwi_event_set(driver_of(collective), &collective->event);
}

void pwi_collective_session_over(struct pwi_owned *owned) { wakes(owned); }

static void closed(void *context) {
  struct pawl_collective *collective = context;
  collective->is_closed = true;
  wakes(collective);
}

/* --- opening -------------------------------------------------------------------------------------------- */

static bool is_word(const char *name) {
  size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
  return length > 0 && name[length] == '\0' && length <= PAWL_COLLECTIVE_NAME_MAX;
}

void pwi_collective_free(struct pwi_owned *owned) {
  struct pawl_collective *collective = (struct pawl_collective *)owned;
  pwi_collective_destroy(collective->engine);
  pwi_free(collective->name);
  pwi_free(collective);
}

static pawl_status open_engine(struct pawl_collective *collective) {
  struct pawl_session *session = collective->group->session;
  struct pwi_collective_config config = {.net = session->net,
                                         .log = &session->log,
                                         .group = collective->group->id,
                                         .name = collective->name,
                                         .context = collective,
                                         .wakes = wakes,
                                         .closed = closed};
  pwi_driver_enter(&session->driver);
  config.life = ++session->collective_lives;
  pawl_status status = session->is_closed ? PAWL_NODE_STOPPED : pwi_client_peers(session->client, &config.peers);
  if (!status) status = pwi_collective_create(&config, &collective->engine);
  if (!status) pwi_owned_add(&session->collectives, &collective->owned);
  pwi_driver_leave(&session->driver);
  return status ? pwi_error_status(status, "open collective %s", collective->name) : PAWL_OK;
}

pawl_status pawl_collective_open(struct pawl_peers *peers, const char *name, int64_t timeout_ns,
                                 struct pawl_collective **collective_out) {
  if (!peers || !name || !collective_out)
    return pwi_error(PAWL_INVALID, "open collective: peers, name or collective_out is NULL");
  if (!is_word(name))
    return pwi_error(PAWL_INVALID, "collective '%.*s%s': a name has 1 to %d letters, digits, '.', '_' and '-'",
                     PAWL_COLLECTIVE_NAME_MAX, name, strlen(name) > PAWL_COLLECTIVE_NAME_MAX ? "..." : "",
                     PAWL_COLLECTIVE_NAME_MAX);
  pawl_status status = pawl_peers_await(peers, 0, timeout_ns);
  if (status) return status;
  struct pawl_collective *collective = pwi_alloc_zero(1, sizeof *collective);
  if (collective) collective->name = pwi_copy_string(name);
  if (!collective || !collective->name) {
    pwi_free(collective);
    return pwi_error_status(PAWL_NO_MEMORY, "open collective %s", name);
  }
  collective->group = (struct pawl_group *)peers;
  status = open_engine(collective);
  if (status)
    pwi_collective_free(&collective->owned);
  else
    *collective_out = collective;
  return status;
}

/* --- waiting -------------------------------------------------------------------------------------------- */

/* Inside the gate; leaves it while it waits. The event is set again by `wakes`. */
static void wait(struct pawl_collective *collective, int64_t deadline) {
  struct pwi_driver *driver = driver_of(collective);
  int64_t at = pwi_collective_look_at(collective->engine);
  atomic_store(&collective->event.is_set, false);
  pwi_driver_leave(driver);
  (void)pwi_driver_wait(driver, &collective->event, at < deadline ? at : deadline);
  pwi_driver_enter(driver);
  int64_t now = pwi_net_now(driver->net);
  if (!collective->is_closed && now >= pwi_collective_look_at(collective->engine))
    pwi_collective_look(collective->engine, now);
}

/* Inside the gate: PAWL_OK, or why the session is over. */
static pawl_status look_at_session(const struct pawl_collective *collective) {
  struct pwi_client_state state;
  if (collective->group->session->is_closed || collective->is_closing) return PAWL_NODE_STOPPED;
  if (collective->group->is_leaving) return PAWL_NODE_GONE;
  pwi_client_state(collective->group->session->client, &state);
  return state.is_dead ? state.trouble : PAWL_OK;
}

/* Inside the gate, until `is_over`. PAWL_TIMED_OUT, or why the session is over. */
static pawl_status await(struct pawl_collective *collective, bool (*is_over)(const struct pwi_collective *engine),
                         int64_t deadline) {
  while (!is_over(collective->engine)) {
    pawl_status status = look_at_session(collective);
    if (status) return status;
    if (deadline != PWI_NET_NEVER && pwi_net_now(driver_of(collective)->net) >= deadline) return PAWL_TIMED_OUT;
    wait(collective, deadline);
  }
  return PAWL_OK;
}

/* Inside the gate. */
static pawl_status explain(const struct pawl_collective *collective, const char *what, pawl_status status) {
  char text[128] = "";
  const char *problem = pwi_collective_problem(collective->engine);
  pwi_collective_explain(collective->engine, text, sizeof text);
  if (status == PAWL_TIMED_OUT)
    return pwi_error(status, "collective %s: deadline passed; the %s %s", collective->name, what, text);
  if (status == PAWL_NODE_STOPPED && collective->is_closing)
    return pwi_error(status, "collective %s: %s: another thread has closed the collective", collective->name, what);
  return problem[0] ? pwi_error(status, "collective %s: %s: %s", collective->name, what, problem)
                    : pwi_error_status(status, "collective %s: %s", collective->name, what);
}

/* --- operations ----------------------------------------------------------------------------------------- */

/* Enters the gate, and leaves it again if another thread is in a call. */
static pawl_status enter(struct pawl_collective *collective, const char *what) {
  pwi_driver_enter(driver_of(collective));
  if (!collective->is_called) {
    collective->is_called = true;
    return PAWL_OK;
  }
  pawl_status status =
      pwi_error(PAWL_INVALID, "collective %s: %s: another thread is in a call", collective->name, what);
  pwi_driver_leave(driver_of(collective));
  return status;
}

/* The last use of the collective in a call: a thread that closes it goes on from here. */
static void leave(struct pawl_collective *collective) {
  struct pwi_driver *driver = driver_of(collective);
  collective->is_called = false;
  if (collective->is_closing) pwi_event_set(driver, &collective->left);
  pwi_driver_leave(driver);
}

/* Inside the gate. */
static pawl_status run_inside(struct pawl_collective *collective, const struct pwi_collective_work *work,
                              int64_t deadline, const char *what) {
  struct pwi_driver *driver = driver_of(collective);
  pawl_status status = look_at_session(collective);
  if (status) return explain(collective, what, status);
  if (pwi_collective_begin(collective->engine, work))
    return pwi_error(PAWL_INVALID,
                     "collective %s: %s: the last operation has timed out and is not over: repeat it, or renew",
                     collective->name, what);
  pwi_driver_look(driver); /* others wait for the first piece */
  pawl_status waited = await(collective, pwi_collective_is_over, deadline);
  status = pwi_collective_end(collective->engine);
  if (status == PAWL_TIMED_OUT && waited) status = waited;
  if (status) explain(collective, what, status);
  pwi_driver_look(driver); /* pieces that others wait for */
  return status;
}

static pawl_status run(struct pawl_collective *collective, const struct pwi_collective_work *work, int64_t timeout_ns) {
  char what[COLLECTIVE_CALL_TEXT];
  int64_t deadline = pwi_driver_deadline(timeout_ns);
  pwi_collective_describe_call(&work->call, what);
  pawl_status status = enter(collective, what);
  if (status) return status;
  status = run_inside(collective, work, deadline, what);
  leave(collective);
  return status;
}

static pawl_status check(const struct pawl_collective *collective, const struct pwi_collective_work *work,
                         bool has_pointers) {
  char what[COLLECTIVE_CALL_TEXT];
  const struct collective_call *call = &work->call;
  size_t bytes;
  if (!collective) return pwi_error(PAWL_INVALID, "collective is NULL");
  if ((call->type != PAWL_F32 && call->type != PAWL_F64) || (unsigned)call->operator_ > PAWL_COLLECTIVE_MAX)
    return pwi_error(PAWL_INVALID, "collective %s: the type is neither PAWL_F32 nor PAWL_F64, or the operator unknown",
                     collective->name);
  pwi_collective_describe_call(call, what);
  if (call->count > 0 && !has_pointers)
    return pwi_error(PAWL_INVALID, "collective %s: %s: a pointer is NULL", collective->name, what);
  if (!pwi_mul_size(call->count, pawl_type_size(call->type), &bytes) || bytes > PTRDIFF_MAX)
    return pwi_error(PAWL_TOO_LARGE, "collective %s: %s: no memory has that many bytes", collective->name, what);
  return PAWL_OK;
}

pawl_status pawl_collective_barrier(struct pawl_collective *collective, int64_t timeout_ns) {
  struct pwi_collective_work work = {.call = {.kind = COLLECTIVE_BARRIER, .type = PAWL_F32}};
  pawl_status status = check(collective, &work, true);
  return status ? status : run(collective, &work, timeout_ns);
}

pawl_status pawl_collective_broadcast(struct pawl_collective *collective, void *values, size_t count,
                                      enum pawl_type type, uint32_t root, int64_t timeout_ns) {
  struct pwi_collective_work work = {.call = {.kind = COLLECTIVE_BROADCAST, .type = type, .root = root, .count = count},
                                     .out = values};
  pawl_status status = check(collective, &work, values);
  return status ? status : run(collective, &work, timeout_ns);
}

pawl_status pawl_collective_all_gather(struct pawl_collective *collective, const void *in, size_t count,
                                       enum pawl_type type, void *out, size_t room, int64_t timeout_ns) {
  struct pwi_collective_work work = {
      .call = {.kind = COLLECTIVE_ALL_GATHER, .type = type, .count = count}, .in = in, .out = out, .room = room};
  pawl_status status = check(collective, &work, in && out);
  return status ? status : run(collective, &work, timeout_ns);
}

pawl_status pawl_collective_all_reduce(struct pawl_collective *collective, const void *in, void *out, size_t count,
                                       enum pawl_type type, enum pawl_collective_operator operator_,
                                       int64_t timeout_ns) {
  struct pwi_collective_work work = {
      .call = {.kind = COLLECTIVE_ALL_REDUCE, .type = type, .operator_ = operator_, .count = count},
      .in = in,
      .out = out};
  pawl_status status = check(collective, &work, in && out);
  return status ? status : run(collective, &work, timeout_ns);
}

pawl_status pawl_collective_reduce_scatter(struct pawl_collective *collective, const void *in, size_t count,
                                           enum pawl_type type, enum pawl_collective_operator operator_, void *out,
                                           size_t room, int64_t timeout_ns) {
  struct pwi_collective_work work = {
      .call = {.kind = COLLECTIVE_REDUCE_SCATTER, .type = type, .operator_ = operator_, .count = count},
      .in = in,
      .out = out,
      .room = room};
  pawl_status status = check(collective, &work, in && (out || room == 0)); /* a member may have an empty block */
  return status ? status : run(collective, &work, timeout_ns);
}

pawl_status pawl_collective_renew(struct pawl_collective *collective, int64_t timeout_ns) {
  if (!collective) return pwi_error(PAWL_INVALID, "renew a collective: collective is NULL");
  int64_t deadline = pwi_driver_deadline(timeout_ns);
  pawl_status status = enter(collective, "renewal");
  if (status) return status;
  status = look_at_session(collective);
  if (!status) {
    pwi_collective_renew(collective->engine);
    status = await(collective, pwi_collective_has_begun, deadline);
    if (!status) status = pwi_collective_renewed(collective->engine);
  }
  if (status) explain(collective, "renewal", status);
  pwi_driver_look(driver_of(collective));
  leave(collective);
  return status;
}

void pawl_collective_state(const struct pawl_collective *collective, struct pawl_collective_state *state_out) {
  pwi_driver_enter(driver_of(collective));
  pwi_collective_state(collective->engine, state_out);
  pwi_driver_leave(driver_of(collective));
}

/* --- closing -------------------------------------------------------------------------------------------- */

/* Inside the gate; leaves it while it waits. The call of another thread returns PAWL_NODE_STOPPED. */
static void end_call(struct pawl_collective *collective) {
  struct pwi_driver *driver = driver_of(collective);
  collective->is_closing = true;
  if (collective->is_called) wakes(collective);
  while (collective->is_called) {
    pwi_driver_leave(driver);
    (void)pwi_driver_wait(driver, &collective->left, PWI_NET_NEVER);
    pwi_driver_enter(driver);
  }
}

void pawl_collective_close(struct pawl_collective *collective) {
  if (!collective) return;
  struct pwi_driver *driver = driver_of(collective);
  pwi_driver_enter(driver);
  int64_t deadline = pwi_net_now(driver->net) + (look_at_session(collective) ? 0 : CLOSE_NS);
  end_call(collective);
  pwi_collective_close(collective->engine, deadline);
  while (!collective->is_closed) wait(collective, PWI_NET_NEVER);
  pwi_owned_remove(&collective->owned);
  pwi_collective_free(&collective->owned);
  pwi_driver_leave(driver);
}
