/* Items: <pawl/item.h>. The engine is an actor inside the session's gate. Gets that are satisfied, and sets
 * of which nobody on another host must be told, never enter it. */
#include "api/item/item.h"

#include <inttypes.h>
#include <sched.h>
#include <string.h>

#include <pawl/peer.h>

#include "api/options.h"
#include "base/memory.h"
#include "host/clock.h"
#include "host/pause.h"

#define CLOSE_NS (2 * INT64_C(1000000000)) /* for the delivery of the last versions */
#define LOOKS 128                          /* at an item, before other threads may run */
#define LOOK_NS (20 * INT64_C(1000))       /* before a get asks the producer and sleeps */
#define LOOK_NEAR_NS INT64_C(1000000)      /* the same if all producers are near */
#define RUN_NS (300 * INT64_C(1000))       /* others that ran so long while a get looked need the core */
#define TORN_NS (200 * INT64_C(1000))      /* the same for a version that is being written */

void pawl_items_options_init_sized(struct pawl_items_options *options, size_t struct_size) {
  const struct pawl_items_options defaults = {.producers = 1, .work_per_clock = 1};
  pwi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

static struct pwi_driver *driver_of(const struct pawl_items *items) { return &items->group->session->driver; }

/* --- callbacks of the engine ---------------------------------------------------------------------------- */

static void wakes(void *context) {
  struct pawl_items *items = context;
  if (!pwi_event_is_set(&items->event)) pwi_event_set(driver_of(items), &items->event);
}

void pwi_items_session_over(struct pwi_owned *owned) { pwi_items_wake(((struct pawl_items *)owned)->engine); }

static void closed(void *context) {
  struct pawl_items *items = context;
  items->is_closed = true;
  wakes(items);
}

/* --- opening -------------------------------------------------------------------------------------------- */

static bool is_word(const char *name) {
  size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
  return length > 0 && name[length] == '\0' && length <= PAWL_ITEMS_NAME_MAX;
}

static pawl_status check(const char *name, size_t size, uint64_t count, const struct pawl_items_options *options) {
  if (!is_word(name))
    return pwi_error(PAWL_INVALID, "items '%s': a name has 1 to %d letters, digits, '.', '_' and '-'", name,
                     PAWL_ITEMS_NAME_MAX);
  if (size == 0 || count == 0) return pwi_error(PAWL_INVALID, "items %s: size or count is 0", name);
  if (size > PAWL_ITEMS_SIZE_MAX || count > PAWL_ITEMS_COUNT_MAX)
    return pwi_error(PAWL_TOO_LARGE, "items %s: at most %" PRIu32 " items of %zu bytes each are possible", name,
                     PAWL_ITEMS_COUNT_MAX, PAWL_ITEMS_SIZE_MAX);
  if ((unsigned)options->variant > PAWL_ITEMS_PULL)
    return pwi_error(PAWL_INVALID, "items %s: unknown variant %d", name, (int)options->variant);
  if (options->conservative && options->variant != PAWL_ITEMS_PUSH)
    return pwi_error(PAWL_INVALID, "items %s: only the variant PUSH can be conservative", name);
  if (options->producers == 0 || options->producers > PAWL_ITEMS_PRODUCERS_MAX)
    return pwi_error(PAWL_INVALID, "items %s: producers is %" PRIu32 "; it must be 1 to %d", name, options->producers,
                     PAWL_ITEMS_PRODUCERS_MAX);
  if (options->work_per_clock == 0) return pwi_error(PAWL_INVALID, "items %s: work_per_clock is 0", name);
  return PAWL_OK;
}

void pwi_items_free(struct pwi_owned *owned) {
  struct pawl_items *items = (struct pawl_items *)owned;
  pwi_items_destroy(items->engine);
  pwi_free(items->name);
  pwi_free(items);
}

static pawl_status open_engine(struct pawl_items *items, struct pwi_items_config *config) {
  struct pawl_session *session = items->group->session;
  char problem[PWI_ITEMS_PROBLEM_MAX] = "";
  config->net = session->net;
  config->log = &session->log;
  config->group = items->group->id;
  config->name = items->name;
  config->context = items;
  config->wakes = wakes;
  config->closed = closed;
  pwi_driver_enter(&session->driver);
  pawl_status status = session->is_closed ? PAWL_NODE_STOPPED : pwi_client_peers(session->client, &config->peers);
  if (!status) status = pwi_items_create(config, &items->engine, problem);
  if (!status) pwi_owned_add(&session->items, &items->owned);
  pwi_driver_leave(&session->driver);
  if (!status) return PAWL_OK;
  return problem[0] ? pwi_error(status, "open items %s: %s", items->name, problem)
                    : pwi_error_status(status, "open items %s", items->name);
}

/* Inside the gate: PAWL_OK, or why the session is over. */
static pawl_status look_at_session(const struct pawl_items *items) {
  struct pwi_client_state state;
  if (items->group->session->is_closed) return PAWL_NODE_STOPPED;
  if (items->group->is_leaving) return PAWL_NODE_GONE;
  pwi_client_state(items->group->session->client, &state);
  return state.is_dead ? state.trouble : PAWL_OK;
}

/* Inside the gate; leaves it while it waits. */
static void wait_event(struct pawl_items *items, struct pwi_event *event, int64_t deadline) {
  struct pwi_driver *driver = driver_of(items);
  atomic_store(&event->is_set, false);
  pwi_driver_leave(driver);
  (void)pwi_driver_wait(driver, event, deadline);
  pwi_driver_enter(driver);
}

static pawl_status fail(const struct pawl_items *items, pawl_status status) {
  const char *problem = pwi_items_problem(items->engine);
  return problem[0] ? pwi_error(status, "items %s: %s", items->name, problem)
                    : pwi_error_status(status, "items %s", items->name);
}

static pawl_status await_open(struct pawl_items *items, int64_t deadline) {
  struct pwi_driver *driver = driver_of(items);
  char text[128] = "";
  pawl_status status = PAWL_OK;
  pwi_driver_enter(driver);
  while (!pwi_items_is_open(items->engine) && !status) {
    status = pwi_items_failure(items->engine);
    if (!status) status = look_at_session(items);
    if (!status && deadline != PWI_NET_NEVER && pwi_net_now(driver->net) >= deadline) status = PAWL_TIMED_OUT;
    if (!status) wait_event(items, &items->event, deadline);
  }
  if (status == PAWL_TIMED_OUT) status = pwi_items_explain(items->engine, text, sizeof text);
  pwi_driver_leave(driver);
  if (text[0]) return pwi_error(status, "open items %s: deadline passed; %s", items->name, text);
  return status ? fail(items, status) : PAWL_OK;
}

pawl_status pawl_items_open(struct pawl_peers *peers, const char *name, size_t size, uint64_t count,
                            const struct pawl_items_keys *produces, size_t produces_count,
                            const struct pawl_items_keys *consumes, size_t consumes_count,
                            const struct pawl_items_options *given, int64_t timeout_ns, struct pawl_items **items_out) {
  struct pawl_items_options options;
  int64_t deadline = pwi_driver_deadline(timeout_ns);
  if (!peers || !name || !items_out) return pwi_error(PAWL_INVALID, "open items: peers, name or items_out is NULL");
  if ((produces_count > 0 && !produces) || (consumes_count > 0 && !consumes))
    return pwi_error(PAWL_INVALID, "open items %s: produces or consumes is NULL but its count is not 0", name);
  pawl_items_options_init(&options);
  pawl_status status = pwi_take_options("items", given, &options, sizeof options);
  if (!status) status = check(name, size, count, &options);
  if (!status) status = pawl_peers_await(peers, 0, timeout_ns);
  if (status) return status;
  struct pawl_items *items = pwi_alloc_zero(1, sizeof *items);
  char *copy = pwi_copy_string(name);
  if (!items || !copy) {
    pwi_free(items);
    pwi_free(copy);
    return pwi_error_status(PAWL_NO_MEMORY, "open items %s", name);
  }
  *items = (struct pawl_items){.group = (struct pawl_group *)peers, .name = copy, .size = size, .count = count};
  struct pwi_items_config config = {.size = size,
                                    .count = count,
                                    .produces = produces,
                                    .produces_count = produces_count,
                                    .consumes = consumes,
                                    .consumes_count = consumes_count,
                                    .variant = options.variant,
                                    .is_conservative = options.conservative,
                                    .slack = options.slack,
                                    .producers = options.producers,
                                    .work_per_clock = options.work_per_clock};
  status = open_engine(items, &config);
  if (status) {
    pwi_items_free(&items->owned);
    return status;
  }
  status = await_open(items, deadline);
  if (status)
    pawl_items_close(items); /* leaves the text */
  else
    *items_out = items;
  return status;
}

/* --- setting -------------------------------------------------------------------------------------------- */

static pawl_status explain_set(const struct pawl_items *items, pawl_status status, uint64_t key, uint64_t clock) {
  if (status == PAWL_NOT_FOUND)
    return pwi_error(status, "items %s: this member does not produce key %" PRIu64, items->name, key);
  if (status == PAWL_INVALID)
    return pwi_error(status, "items %s: key %" PRIu64 " was set at a later clock than %" PRIu64 " before", items->name,
                     key, clock);
  return fail(items, status);
}

static void tell(struct pawl_items *items, uint64_t first, size_t count) {
  struct pwi_driver *driver = driver_of(items);
  pwi_driver_enter(driver);
  if (!items->group->session->is_closed) {
    pwi_items_tell(items->engine, first, count);
    pwi_driver_look(driver); /* consumers wait for it, or will soon */
  }
  pwi_driver_leave(driver);
}

pawl_status pawl_items_set_range(struct pawl_items *items, uint64_t first, size_t count, const void *values,
                                 uint64_t clock) {
  pawl_status status = PAWL_OK;
  size_t set = 0, told_from = SIZE_MAX;
  bool must_tell;
  if (!items || (count > 0 && !values)) return pwi_error(PAWL_INVALID, "set items: items or values is NULL");
  for (; set < count && !status; set++) {
    const char *value = (const char *)values + set * items->size;
    status = pwi_items_set(items->engine, first + set, value, clock, &must_tell);
    if (must_tell && told_from == SIZE_MAX) told_from = set;
    if (status) break;
  }
  if (told_from != SIZE_MAX) tell(items, first + told_from, set - told_from + (status ? 1 : 0));
  return status ? explain_set(items, status, first + set, clock) : PAWL_OK;
}

pawl_status pawl_items_set(struct pawl_items *items, uint64_t key, const void *value, uint64_t clock) {
  bool must_tell;
  if (!items || !value) return pwi_error(PAWL_INVALID, "set an item: items or value is NULL");
  pawl_status status = pwi_items_set(items->engine, key, value, clock, &must_tell);
  if (must_tell) tell(items, key, 1);
  return status ? explain_set(items, status, key, clock) : PAWL_OK;
}

/* --- getting -------------------------------------------------------------------------------------------- */

/* One attempt: a copy or a view. */
struct attempt {
  void *value;
  uint64_t *clock;
  struct pawl_items_view *view;
};

static enum pwi_items_found try_once(struct pawl_items *items, uint64_t key, uint64_t need,
                                     const struct attempt *attempt) {
  if (attempt->view) return pwi_items_try_view(items->engine, key, need, attempt->view);
  return pwi_items_try(items->engine, key, need, attempt->value, attempt->clock);
}

/* The producer may be about to set it, on another core. A get that sleeps costs a wake-up of threads for which all cores
 * may be too busy until the kernel's next tick. So a get of a near item looks about that long, unless others need the core;
 * an item of a far producer comes by way of this member's own thread. */
static int64_t patience_of(const struct pawl_items *items, enum pwi_items_found found) {
  if (found == PWI_ITEMS_TORN) return TORN_NS;
  return pwi_items_come_unaided(items->engine) ? LOOK_NEAR_NS : LOOK_NS;
}

static enum pwi_items_found look(struct pawl_items *items, uint64_t key, uint64_t need, const struct attempt *attempt,
                                 enum pwi_items_found found, int64_t deadline) {
  int64_t began = pwi_host_now();
  for (unsigned tries = 0; found == PWI_ITEMS_STALE || found == PWI_ITEMS_TORN; tries++) {
    if (tries % LOOKS == LOOKS - 1) {
      int64_t now = pwi_host_now();
      if (now - began > patience_of(items, found) || now >= deadline) break;
      sched_yield();
      if (found == PWI_ITEMS_STALE && pwi_host_now() - now > RUN_NS) break;
    }
    pwi_host_pause();
    found = try_once(items, key, need, attempt);
  }
  return found;
}

struct waiting_get {
  struct pwi_items_wait wait; /* must be first */
  struct pwi_event event;
  struct pwi_driver *driver;
};

static void wake_get(void *context) {
  struct waiting_get *get = context;
  if (!pwi_event_is_set(&get->event)) pwi_event_set(get->driver, &get->event);
}

/* Inside the gate: why the get cannot go on; PAWL_OK: it can. */
static pawl_status look_at_get(struct pawl_items *items, uint64_t key, int64_t deadline) {
  pawl_status status = pwi_items_failure(items->engine);
  if (!status) status = look_at_session(items);
  if (status || deadline == PWI_NET_NEVER || pwi_net_now(driver_of(items)->net) < deadline) return status;
  return pwi_items_has_producer(items->engine, key) ? PAWL_TIMED_OUT : PAWL_NODE_GONE;
}

static pawl_status explain_get(const struct pawl_items *items, pawl_status status, uint64_t key, uint64_t need) {
  if (status == PAWL_TIMED_OUT)
    return pwi_error(status, "items %s: deadline passed; key %" PRIu64 " has no version of clock %" PRIu64 " yet",
                     items->name, key, need - 1);
  if (status == PAWL_NODE_GONE)
    return pwi_error(status, "items %s: key %" PRIu64 " has no version of clock %" PRIu64 ", and its producer is gone",
                     items->name, key, need - 1);
  return fail(items, status);
}

/* A get that must not wait is told of what has arrived, so that a program which polls sees the item some time. */
static pawl_status get_slowly(struct pawl_items *items, uint64_t key, uint64_t need, const struct attempt *attempt,
                              int64_t deadline) {
  struct pwi_driver *driver = driver_of(items);
  struct waiting_get get = {.wait = {.key = key, .need = need, .wake = wake_get, .context = &get}, .driver = driver};
  enum pwi_items_found found = PWI_ITEMS_STALE;
  pawl_status status = PAWL_OK;
  bool has_waited = false;
  pwi_items_count_wait(items->engine);
  pwi_driver_enter(driver);
  pwi_items_wait_begin(items->engine, &get.wait);
  for (;;) {
    atomic_store(&get.event.is_set, false);
    status = pwi_items_ask(items->engine, &get.wait);
    if (!status) status = look_at_get(items, key, deadline);
    if (status && !has_waited) {
      pwi_driver_look(driver);
      found = try_once(items, key, need, attempt);
    }
    if (status) break;
    has_waited = true;
    pwi_driver_leave(driver);
    (void)pwi_driver_wait(driver, &get.event, deadline);
    found = try_once(items, key, need, attempt);
    if (found == PWI_ITEMS_TORN) found = look(items, key, need, attempt, found, deadline);
    pwi_driver_enter(driver);
    if (found == PWI_ITEMS_FRESH) break;
  }
  pwi_items_wait_end(items->engine, &get.wait);
  pwi_driver_leave(driver);
  pwi_driver_hurry(driver); /* others may ask this member while it computes */
  return found == PWI_ITEMS_FRESH ? PAWL_OK : explain_get(items, status, key, need);
}

static pawl_status get_need(struct pawl_items *items, uint64_t key, uint64_t need, const struct attempt *attempt,
                            int64_t timeout_ns, int64_t *deadline) {
  enum pwi_items_found found = try_once(items, key, need, attempt);
  if (found == PWI_ITEMS_FRESH) return PAWL_OK;
  if (found == PWI_ITEMS_UNKNOWN)
    return pwi_error(PAWL_NOT_FOUND, "items %s: this member neither consumes nor produces key %" PRIu64, items->name,
                     key);
  if (*deadline == INT64_MIN) *deadline = pwi_driver_deadline(timeout_ns);
  if (look(items, key, need, attempt, found, *deadline) == PWI_ITEMS_FRESH) return PAWL_OK;
  return get_slowly(items, key, need, attempt, *deadline);
}

pawl_status pawl_items_get(struct pawl_items *items, uint64_t key, uint64_t clock, uint64_t slack, int64_t timeout_ns,
                           void *value_out, uint64_t *clock_out) {
  const struct attempt attempt = {.value = value_out, .clock = clock_out};
  int64_t deadline = INT64_MIN;
  if (!items || !value_out) return pwi_error(PAWL_INVALID, "get an item: items or value_out is NULL");
  return get_need(items, key, pwi_items_need(items->engine, key, clock, slack), &attempt, timeout_ns, &deadline);
}

pawl_status pawl_items_view(struct pawl_items *items, uint64_t key, uint64_t clock, uint64_t slack, int64_t timeout_ns,
                            struct pawl_items_view *view_out) {
  const struct attempt attempt = {.view = view_out};
  int64_t deadline = INT64_MIN;
  if (!items || !view_out) return pwi_error(PAWL_INVALID, "view an item: items or view_out is NULL");
  return get_need(items, key, pwi_items_need(items->engine, key, clock, slack), &attempt, timeout_ns, &deadline);
}

pawl_status pawl_items_release(struct pawl_items *items, struct pawl_items_view *view) {
  if (!items || !view || !view->value) return pwi_error(PAWL_INVALID, "release a view: there is none");
  return pwi_items_release(items->engine, view);
}

static pawl_status prefetch(struct pawl_items *items, const struct pawl_items_keys *keys, size_t keys_count,
                            uint64_t clock, uint64_t slack) {
  struct pwi_driver *driver = driver_of(items);
  pwi_driver_enter(driver);
  pawl_status status = items->group->session->is_closed
                           ? PAWL_NODE_STOPPED
                           : pwi_items_prefetch(items->engine, keys, keys_count, clock, slack);
  pwi_driver_nudge(driver);
  pwi_driver_leave(driver);
  return status ? pwi_error_status(status, "items %s: prefetch", items->name) : PAWL_OK;
}

/* The first pass takes what is there, the second one waits for the others. */
pawl_status pawl_items_get_range(struct pawl_items *items, uint64_t first, size_t count, uint64_t clock, uint64_t slack,
                                 int64_t timeout_ns, void *values_out, uint64_t *clocks_out) {
  int64_t deadline = INT64_MIN;
  bool is_requested = false;
  pawl_status status = PAWL_OK;
  if (!items || (count > 0 && !values_out)) return pwi_error(PAWL_INVALID, "get items: items or values_out is NULL");
  for (size_t i = 0; i < count && !status; i++) {
    uint64_t key = first + i, need = pwi_items_need(items->engine, key, clock, slack);
    const struct attempt attempt = {.value = (char *)values_out + i * items->size,
                                    .clock = clocks_out ? &clocks_out[i] : NULL};
    enum pwi_items_found found = try_once(items, key, need, &attempt);
    if (found == PWI_ITEMS_FRESH) continue;
    if (!is_requested && found == PWI_ITEMS_STALE) {
      const struct pawl_items_keys rest = {key, count - i, 1};
      status = prefetch(items, &rest, 1, clock, slack);
      is_requested = true;
    }
    if (!status) status = get_need(items, key, need, &attempt, timeout_ns, &deadline);
  }
  return status;
}

static pawl_status check_keys(const struct pawl_items *items, const struct pawl_items_keys *keys, size_t count) {
  if (!items || (count > 0 && !keys)) return pwi_error(PAWL_INVALID, "items: items or keys is NULL");
  for (size_t i = 0; i < count; i++) {
    uint64_t stride = keys[i].stride ? keys[i].stride : 1;
    if (keys[i].count == 0) continue;
    if (keys[i].start >= items->count || keys[i].count - 1 > (items->count - 1 - keys[i].start) / stride)
      return pwi_error(PAWL_NOT_FOUND, "items %s: the range from key %" PRIu64 " reaches beyond the %" PRIu64 " items",
                       items->name, keys[i].start, items->count);
  }
  return PAWL_OK;
}

pawl_status pawl_items_prefetch(struct pawl_items *items, const struct pawl_items_keys *keys, size_t keys_count,
                                uint64_t clock, uint64_t slack) {
  pawl_status status = check_keys(items, keys, keys_count);
  return status || keys_count == 0 ? status : prefetch(items, keys, keys_count, clock, slack);
}

pawl_status pawl_items_set_slack(struct pawl_items *items, const struct pawl_items_keys *keys, size_t keys_count,
                                 uint64_t slack) {
  pawl_status status = check_keys(items, keys, keys_count);
  if (status) return status;
  if (slack > PAWL_ITEMS_SLACK_MAX && slack != PAWL_ITEMS_SLACK)
    return pwi_error(PAWL_INVALID, "items %s: a slack of %" PRIu64 " is too large", items->name, slack);
  status = pwi_items_set_slack(items->engine, keys, keys_count, slack);
  return status ? pwi_error_status(status, "items %s: set slack", items->name) : PAWL_OK;
}

void pawl_items_state(const struct pawl_items *items, struct pawl_items_state *state_out) {
  pwi_driver_enter(driver_of(items));
  pwi_items_state(items->engine, state_out);
  pwi_driver_leave(driver_of(items));
}

/* --- closing -------------------------------------------------------------------------------------------- */

void pawl_items_close(struct pawl_items *items) {
  if (!items) return;
  struct pwi_driver *driver = driver_of(items);
  pwi_driver_enter(driver);
  int64_t deadline = pwi_net_now(driver->net) + (look_at_session(items) ? 0 : CLOSE_NS);
  while (!items->is_closed) {
    bool is_late = pwi_net_now(driver->net) >= deadline;
    pwi_items_close(items->engine, is_late);
    if (!items->is_closed) wait_event(items, &items->event, is_late ? PWI_NET_NEVER : deadline);
  }
  pwi_owned_remove(&items->owned);
  pwi_items_free(&items->owned);
  pwi_driver_leave(driver);
}
