#include "worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { DENSE, SPARSE, MIXED };

static const char *const names[VECTORS] = {"sim/dense", "sim/sparse", "sim/mixed"};

static void broken(const struct worker *worker, const char *what, size_t vector, uint32_t key, pawl_status status) {
  pwi_sim_fail(worker->campaign->cluster.sim, PAWL_CORRUPT, "worker %u %s: vector %zu key %u status %s", worker->index,
               what, vector, key, pawl_status_name(status));
}

/* --- journals --------------------------------------------------------------------------------------------------------- */

/* The universe is cut into one block for each worker, which nobody else pushes to, and one for all. */
static uint32_t block_of(const struct worker *worker, uint32_t key) {
  return key * (worker->campaign->worker_count + 1) / KEYS;
}

static bool is_own(const struct worker *worker, uint32_t key) { return block_of(worker, key) == worker->index; }

static bool may_push(const struct worker *worker, uint32_t key) {
  return is_own(worker, key) || block_of(worker, key) == worker->campaign->worker_count;
}

static void remember(struct worker *worker, size_t vector, uint32_t key, const int64_t *delta) {
  struct history *history = &worker->own[vector][key];
  if (history->count + 2 > history->room) {
    history->room = history->room ? history->room * 2 : 16;
    history->sums = realloc(history->sums, history->room * sizeof *history->sums);
    assert_non_null(history->sums);
    if (history->count == 0) memset(history->sums[0], 0, sizeof history->sums[0]);
  }
  for (size_t c = 0; c < WIDTH_MAX; c++)
    history->sums[history->count + 1][c] = (int64_t)((uint64_t)history->sums[history->count][c] + (uint64_t)delta[c]);
  history->count++;
}

static void read_delta(const struct deed *deed, size_t i, uint32_t width, int64_t *delta) {
  memset(delta, 0, WIDTH_MAX * sizeof *delta);
  memcpy(delta, deed->values + i * width, width * sizeof *delta);
}

static void journal_begun(struct deed *deed) {
  struct worker *worker = deed->worker;
  uint32_t width = worker->campaign->widths[deed->vector];
  int64_t delta[WIDTH_MAX];
  for (size_t i = 0; i < deed->count; i++) {
    if (!is_own(worker, deed->which[i])) continue;
    if (deed->kind != PWI_REQUEST_PULL) {
      read_delta(deed, i, width, delta);
      remember(worker, deed->vector, deed->which[i], delta);
    }
    deed->seen[i] = (uint32_t)worker->own[deed->vector][deed->which[i]].count;
  }
}

static bool was_refused(const struct deed *deed, uint32_t key) {
  const struct pwi_task *task = &deed->task;
  uint64_t stored = deed->worker->campaign->universe[deed->vector][key];
  if (deed->vector == MIXED) stored = pwi_place_mix(stored);
  for (uint32_t i = 0; i < task->failure_count && i < PWI_TASK_FAILURES; i++)
    if (pawl_range_has(task->failures[i].range, stored)) return true;
  return false;
}

static void journal_maybe(const struct deed *deed, size_t i) {
  struct campaign *campaign = deed->worker->campaign;
  if (campaign->maybe_count == MAYBE_MAX) {
    broken(deed->worker, "met more than the test can explain", deed->vector, 0, PAWL_OK);
    return;
  }
  struct maybe *maybe = &campaign->maybes[campaign->maybe_count++];
  *maybe = (struct maybe){.vector = deed->vector, .key = deed->which[i]};
  read_delta(deed, i, campaign->widths[deed->vector], maybe->delta);
}

static void journal_done(const struct deed *deed) {
  struct campaign *campaign = deed->worker->campaign;
  uint32_t width = campaign->widths[deed->vector];
  bool tells_all = deed->task.failure_count <= PWI_TASK_FAILURES;
  for (size_t i = 0; i < deed->count; i++) {
    if (was_refused(deed, deed->which[i])) continue;
    if (!tells_all) {
      journal_maybe(deed, i);
      continue;
    }
    for (size_t c = 0; c < width; c++) campaign->sums[deed->vector][deed->which[i]][c] += deed->values[i * width + c];
  }
}

static void journal_lost(const struct deed *deed) {
  for (size_t i = 0; i < deed->count; i++) journal_maybe(deed, i);
}

/* --- calls ------------------------------------------------------------------------------------------------------------ */

/* The values read for a key of one's own must be what was there after some push, all columns after the same. */
static void check_own(const struct deed *deed, size_t i) {
  struct worker *worker = deed->worker;
  uint32_t width = worker->campaign->widths[deed->vector];
  const struct history *history = &worker->own[deed->vector][deed->which[i]];
  static const int64_t zeros[1][WIDTH_MAX];
  const int64_t(*sums)[WIDTH_MAX] = history->count ? (const int64_t(*)[WIDTH_MAX])history->sums : zeros;
  for (size_t n = deed->seen[i]; n <= history->count; n++)
    if (memcmp(sums[n], deed->out + i * width, width * sizeof(int64_t)) == 0) return;
  broken(worker, "did not read what it wrote", deed->vector, deed->which[i], PAWL_OK);
}

static void next_call(struct worker *worker);

static void deed_finished(struct pwi_task *task) {
  struct deed *deed = (struct deed *)((char *)task - offsetof(struct deed, task));
  struct worker *worker = deed->worker;
  deed->is_busy = false;
  if (deed->buffer) pwi_client_buffer_close(worker->client.client, deed->buffer);
  deed->buffer = NULL;
  bool is_refused = worker->campaign->has_cap && task->status == PAWL_NODE_FULL;
  worker->campaign->refusals += is_refused;
  if (task->status && !is_refused) {
    broken(worker, "saw a task fail", deed->vector, 0, task->status);
    return;
  }
  if (deed->kind != PWI_REQUEST_PULL) journal_done(deed);
  if (deed->kind != PWI_REQUEST_PUSH && worker->is_checking && !worker->campaign->has_cap)
    for (size_t i = 0; i < deed->count; i++)
      if (is_own(worker, deed->which[i])) check_own(deed, i);
  cluster_timer(&worker->client, (int64_t)pwi_random_below(worker->client.random, 200 * MS), 0);
}

static void draw_keys(struct deed *deed, struct pwi_random *random) {
  struct campaign *campaign = deed->worker->campaign;
  double part = pwi_random_unit(random);
  deed->count = 0;
  for (uint32_t key = 0; key < KEYS; key++) {
    if (!pwi_random_chance(random, part * part) || !may_push(deed->worker, key)) continue;
    deed->which[deed->count] = key;
    deed->keys[deed->count++] = campaign->universe[deed->vector][key];
  }
}

static void draw_values(struct deed *deed, struct pwi_random *random) {
  size_t count = deed->count * deed->worker->campaign->widths[deed->vector];
  for (size_t i = 0; i < count; i++) deed->values[i] = (int64_t)pwi_random_u32(random) - (INT64_C(1) << 31);
}

/* Dense keys of the universe are consecutive from 0 on: a range of it is a range of the vector. */
static struct pwi_where draw_where(struct deed *deed, struct pwi_random *random) {
  struct worker *worker = deed->worker;
  uint64_t way = pwi_random_below(random, 4);
  if (way == 0 && worker->lists[deed->vector]) {
    deed->count = worker->list_count[deed->vector];
    memcpy(deed->which, worker->list_which[deed->vector], sizeof deed->which);
    return (struct pwi_where){.list = worker->lists[deed->vector]};
  }
  if (way == 1 && deed->vector == DENSE) {
    uint64_t begin = pwi_random_below(random, KEYS), end = begin + 1 + pwi_random_below(random, KEYS - begin);
    while (!may_push(worker, (uint32_t)begin)) begin = pwi_random_below(random, KEYS);
    if (end <= begin) end = begin + 1;
    for (uint64_t key = begin; key < end; key++)
      if (!may_push(worker, (uint32_t)key)) end = key;
    deed->count = (size_t)(end - begin);
    for (size_t i = 0; i < deed->count; i++) deed->which[i] = (uint32_t)(begin + i);
    return (struct pwi_where){.range = {begin, end}};
  }
  draw_keys(deed, random);
  return (struct pwi_where){.keys = deed->keys, .count = deed->count};
}

static void make_list(struct worker *worker, size_t vector, struct pwi_random *random) {
  struct deed draw = {.worker = worker, .vector = vector};
  draw_keys(&draw, random);
  pwi_keylist_release(worker->lists[vector]);
  worker->lists[vector] = NULL;
  memcpy(worker->list_which[vector], draw.which, sizeof draw.which);
  worker->list_count[vector] = draw.count;
  if (pwi_keylist_create(worker->client.client, pwi_flow_entry(worker->flows[vector]), draw.keys, draw.count,
                         &worker->lists[vector]))
    broken(worker, "cannot make a list", vector, 0, PAWL_NO_MEMORY);
}

static bool find_flows(struct worker *worker) {
  const struct pwi_catalogue *catalogue = pwi_client_catalogue(worker->client.client);
  for (size_t v = 0; v < VECTORS; v++) {
    const struct pwi_entry *entry = pwi_catalogue_named(catalogue, names[v]);
    if (!entry || pwi_client_flow(worker->client.client, entry->id, 0, &worker->flows[v])) return false;
  }
  return true;
}

static struct deed *free_deed(struct worker *worker) {
  for (size_t i = 0; i < UNDER_WAY; i++)
    if (!worker->deeds[i].is_busy) return &worker->deeds[i];
  return NULL;
}

/* A buffer for this one push: reusing it would be within the client's promise and beyond the net's, and the simulator
 * looks after the latter. */
static const void *in_buffer(struct deed *deed) {
  struct worker *worker = deed->worker;
  if (pwi_client_buffer_open(worker->client.client, sizeof deed->values, &deed->buffer)) {
    broken(worker, "cannot have a buffer", deed->vector, 0, PAWL_NO_MEMORY);
    return deed->values;
  }
  memcpy(deed->buffer, deed->values, sizeof deed->values);
  return deed->buffer;
}

static void start_deed(struct worker *worker, struct deed *deed) {
  struct pwi_random *random = worker->client.random;
  static const enum pwi_request_kind kinds[] = {PWI_REQUEST_PUSH, PWI_REQUEST_PUSH, PWI_REQUEST_PULL,
                                                PWI_REQUEST_PUSHPULL};
  *deed = (struct deed){.worker = worker, .is_busy = true, .task.finished = deed_finished};
  deed->kind = kinds[pwi_random_below(random, 4)];
  deed->vector = (size_t)pwi_random_below(random, VECTORS);
  if (pwi_random_chance(random, 0.1) || !worker->lists[deed->vector]) make_list(worker, deed->vector, random);
  struct pwi_where where = draw_where(deed, random);
  draw_values(deed, random);
  journal_begun(deed);
  const void *in = deed->kind != PWI_REQUEST_PULL ? deed->values : NULL;
  if (in && pwi_random_chance(random, 0.3)) in = in_buffer(deed);
  void *out = deed->kind != PWI_REQUEST_PUSH ? deed->out : NULL;
  pawl_status status =
      pwi_client_start(worker->client.client, &deed->task, worker->flows[deed->vector], deed->kind, &where, in, out);
  if (status) broken(worker, "had a call refused", deed->vector, 0, status);
}

static void next_call(struct worker *worker) {
  if (!find_flows(worker)) {
    cluster_timer(&worker->client, 20 * MS, 0);
    return;
  }
  struct deed *deed;
  while (worker->calls_left > 0 && (deed = free_deed(worker))) {
    worker->calls_left--;
    start_deed(worker, deed);
    if (pwi_random_chance(worker->client.random, 0.3)) break; /* the next one comes with a timer */
  }
}

static void worker_timer(void *context, uint64_t cookie) {
  (void)cookie;
  next_call(context);
}

static void worker_started(void *context) {
  struct worker *worker = context;
  worker->is_checking = worker->client.incarnation == 1;
  memset(worker->lists, 0, sizeof worker->lists);
  cluster_timer(&worker->client, (int64_t)pwi_random_below(worker->client.random, 50 * MS), 0);
}

static void worker_stopped(void *context) {
  struct worker *worker = context;
  for (size_t i = 0; i < UNDER_WAY; i++) {
    struct deed *deed = &worker->deeds[i];
    if (deed->is_busy && deed->kind != PWI_REQUEST_PULL) journal_lost(deed);
    deed->is_busy = false;
  }
  for (size_t v = 0; v < VECTORS; v++) {
    pwi_keylist_release(worker->lists[v]);
    worker->lists[v] = NULL;
  }
}

/* --- the operator: moves arcs about ----------------------------------------------------------------------------------- */

static void moved(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct campaign *campaign = (struct campaign *)((char *)asking - offsetof(struct campaign, move));
  (void)status, (void)payload, (void)size; /* a move may fail: what counts is that nothing is lost */
  campaign->is_moving = false;
}

static void ask_move(struct campaign *campaign) {
  struct cluster_client *client = &campaign->operator_client;
  struct pwi_random *random = client->random;
  const struct pwi_view *view = pwi_client_view(client->client);
  if (campaign->is_moving || !view || view->arc_count == 0) return;
  uint64_t a = pwi_random_u64(random), b = pwi_random_u64(random);
  if (pwi_random_chance(random, 0.3)) { /* a whole arc */
    struct pawl_range arc = pwi_view_arc_range(view, pwi_view_arc_of(view, a >> 1));
    a = arc.begin, b = arc.end;
  }
  struct pwi_writer writer = {0};
  pwi_write_u64(&writer, a < b ? a : b);
  pwi_write_u64(&writer, a < b ? b : a);
  pwi_write_u64(&writer, view->nodes[pwi_random_below(random, view->node_count)].node.id);
  campaign->move.replied = moved;
  if (!writer.status && !pwi_client_ask(client->client, &campaign->move, PWI_ASK_MOVE, writer.data, writer.size)) {
    campaign->is_moving = true;
    campaign->moves_asked++;
  }
  pwi_writer_fini(&writer);
}

static void operator_timer(void *context, uint64_t cookie) {
  struct campaign *campaign = context;
  (void)cookie;
  if (campaign->is_quiet) return;
  ask_move(campaign);
  cluster_timer(&campaign->operator_client,
                20 * MS + (int64_t)pwi_random_below(campaign->operator_client.random, 200 * MS), 0);
}

static void operator_started(void *context) {
  struct campaign *campaign = context;
  campaign->is_moving = false;
  cluster_timer(&campaign->operator_client, 50 * MS, 0);
}

/* --- the campaign ----------------------------------------------------------------------------------------------------- */

static void make_universe(struct campaign *campaign) {
  struct pwi_random *random = &campaign->cluster.random;
  for (uint32_t key = 0; key < KEYS; key++) {
    campaign->universe[DENSE][key] = key;
    campaign->universe[SPARSE][key] =
        (UINT64_MAX / KEYS) * key + pwi_random_below(random, UINT64_MAX / KEYS); /* rising, all over the ring */
    campaign->universe[MIXED][key] = key * 3;
  }
  /* Narrow rows make messages that the net copies; wide ones are sent from where they lie. */
  for (size_t v = 0; v < VECTORS; v++)
    campaign->widths[v] = pwi_random_chance(random, 0.4) ? WIDTH_MAX : 1 + (uint32_t)pwi_random_below(random, 3);
}

static void make_vectors(struct campaign *campaign) {
  for (size_t v = 0; v < VECTORS; v++) {
    struct pawl_vector_options options = {.type = PAWL_I64, .width = campaign->widths[v], .size = PAWL_KEY_END};
    options.placement = v == MIXED ? PAWL_PLACE_MIXED : PAWL_PLACE_ORDERED;
    options.layout = v == DENSE ? PAWL_LAYOUT_DENSE : PAWL_LAYOUT_SPARSE;
    if (v == DENSE) options.size = KEYS;
    cluster_vector(&campaign->checker, names[v], &options);
  }
}

void campaign_begin(struct campaign *campaign, uint32_t workers, uint32_t calls) {
  struct cluster *cluster = &campaign->cluster;
  campaign->worker_count = workers;
  make_universe(campaign);
  strcpy(campaign->checker.name, "checker");
  campaign->checker.job = "check";
  cluster_client_add(cluster, &campaign->checker);
  cluster_wait_joined(&campaign->checker);
  make_vectors(campaign);
  for (uint32_t w = 0; w < workers; w++) {
    struct worker *worker = &campaign->workers[w];
    worker->campaign = campaign;
    worker->index = w;
    worker->calls_left = calls;
    sprintf(worker->client.name, "w%u", w);
    worker->client.job = "train";
    worker->client.started = worker_started;
    worker->client.stopped = worker_stopped;
    worker->client.timer = worker_timer;
    worker->client.context = worker;
    cluster_client_add(cluster, &worker->client);
  }
  strcpy(campaign->operator_client.name, "operator");
  campaign->operator_client.started = operator_started;
  campaign->operator_client.timer = operator_timer;
  campaign->operator_client.context = campaign;
  campaign->operator_client.reader = true;
  cluster_client_add(cluster, &campaign->operator_client);
}

static bool is_working(void *context) {
  struct campaign *campaign = context;
  for (uint32_t w = 0; w < campaign->worker_count; w++) {
    const struct worker *worker = &campaign->workers[w];
    if (worker->calls_left > 0 || !worker->client.client) return true;
    for (size_t i = 0; i < UNDER_WAY; i++)
      if (worker->deeds[i].is_busy) return true;
  }
  return false;
}

/* True if the key's value is the sum of what was acknowledged and a subset of the maybes that are about it. */
static bool is_explained(const struct campaign *campaign, size_t vector, uint32_t key, const int64_t *value) {
  const struct maybe *about[MAYBE_MAX];
  size_t count = 0, width = campaign->widths[vector];
  for (size_t i = 0; i < campaign->maybe_count; i++)
    if (campaign->maybes[i].vector == vector && campaign->maybes[i].key == key) about[count++] = &campaign->maybes[i];
  assert_true(count <= 16);
  for (uint32_t subset = 0; subset < UINT32_C(1) << count; subset++) {
    size_t c = 0;
    for (; c < width; c++) {
      int64_t sum = campaign->sums[vector][key][c];
      for (size_t i = 0; i < count; i++)
        if (subset >> i & 1) sum += about[i]->delta[c];
      if (sum != value[c]) break;
    }
    if (c == width) return true;
  }
  return false;
}

static void compare(struct campaign *campaign, size_t vector) {
  int64_t values[KEYS * WIDTH_MAX] = {0};
  struct pwi_flow *flow = cluster_open_vector(&campaign->checker, names[vector], 0);
  struct pwi_where where = {.keys = campaign->universe[vector], .count = KEYS};
  pawl_status status = cluster_call(&campaign->checker, flow, PWI_REQUEST_PULL, &where, NULL, values, NULL);
  if (status)
    fail_msg("seed %llu: pull: %s", (unsigned long long)campaign->cluster.config.seed, pawl_status_name(status));
  for (uint32_t key = 0; key < KEYS; key++)
    if (!is_explained(campaign, vector, key, values + key * campaign->widths[vector]))
      fail_msg("seed %llu: %s key %u is %lld, journals say %lld and %zu maybes",
               (unsigned long long)campaign->cluster.config.seed, names[vector], key,
               (long long)values[key * campaign->widths[vector]], (long long)campaign->sums[vector][key][0],
               campaign->maybe_count);
}

void campaign_end(struct campaign *campaign) {
  cluster_run_while(&campaign->cluster, is_working, campaign, 120 * PWI_SIM_SECOND);
  campaign->is_quiet = true;
  for (size_t v = 0; v < VECTORS; v++) compare(campaign, v);
}

void campaign_free(struct campaign *campaign) {
  for (uint32_t w = 0; w < WORKERS_MAX; w++)
    for (size_t v = 0; v < VECTORS; v++)
      for (uint32_t key = 0; key < KEYS; key++) free(campaign->workers[w].own[v][key].sums);
}
