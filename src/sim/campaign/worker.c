/* Workers that push random integers, read them back, and report to the book.
 *
 * All vectors hold 64-bit integers, so sums are exact in any order. A worker's knowledge lives outside its
 * process: the calls it began, and the calls it was told are done. Values are read from servers by pulling
 * only.
 *
 * If only one worker pushes to a key, that worker must read its own pushes: all that were called before
 * the pull, and perhaps some later ones, in order, with all columns of the same moment (a session reads
 * its own writes). Keys that a task reports as refused must be unchanged, and all other keys of its push
 * must be changed. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "sim/campaign/inside.h"

const char *const pwi_campaign_vectors[VECTORS] = {"sim/dense", "sim/sparse", "sim/mixed", "sim/latest",
                                                   "sim/filtered"};

static void broken(const struct campaign_worker *worker, const char *what, size_t vector, uint32_t key,
                   pawl_status status) {
  CAMPAIGN_FAIL(worker->campaign, "worker %u %s: %s key %u status %s", worker->index, what,
                pwi_campaign_vectors[vector], key, pawl_status_name(status));
}

/* --- keys of one worker --------------------------------------------------------------------------------- */

/* The universe is cut into one block per worker, which no other worker pushes to, and one block for all. */
static uint32_t block_of(const struct campaign_worker *worker, uint32_t key) {
  return key * (worker->campaign->config.workers + 1) / KEYS;
}

static bool is_own(const struct campaign_worker *worker, uint32_t key) {
  return block_of(worker, key) == worker->index;
}

static bool may_push(const struct campaign_worker *worker, uint32_t key) {
  return is_own(worker, key) || block_of(worker, key) == worker->campaign->config.workers;
}

static bool make_history_room(struct history *history) {
  if (history->count + 2 <= history->room) return true;
  size_t room = history->room ? history->room * 2 : 16;
  int64_t(*rows)[WIDTH_MAX] = pwi_resize_array(history->rows, room, sizeof *rows);
  if (!rows) return false;
  if (history->room == 0) memset(rows[0], 0, sizeof rows[0]);
  history->rows = rows;
  history->room = room;
  return true;
}

static void remember(struct campaign_worker *worker, size_t vector, uint32_t key, const int64_t *values,
                     uint32_t width) {
  struct history *history = &worker->own[vector][key];
  if (!make_history_room(history)) {
    broken(worker, "ran out of memory", vector, key, PAWL_NO_MEMORY);
    return;
  }
  const int64_t *before = history->rows[history->count];
  int64_t *after = history->rows[++history->count];
  memset(after, 0, WIDTH_MAX * sizeof *after);
  for (uint32_t c = 0; c < width; c++)
    after[c] = vector == LATEST ? values[c] : (int64_t)((uint64_t)before[c] + (uint64_t)values[c]);
}

static void note_begun(struct deed *deed) {
  struct campaign_worker *worker = deed->worker;
  uint32_t width = worker->campaign->book.widths[deed->vector];
  for (size_t i = 0; i < deed->count; i++) {
    if (!is_own(worker, deed->which[i])) continue;
    if (deed->kind != PWI_REQUEST_PULL) remember(worker, deed->vector, deed->which[i], deed->values + i * width, width);
    deed->seen[i] = (uint32_t)worker->own[deed->vector][deed->which[i]].count;
  }
}

/* The values read for a worker's own key must be those after one of its pushes, the same for all columns. */
static void check_own(const struct deed *deed, size_t i) {
  struct campaign_worker *worker = deed->worker;
  uint32_t width = worker->campaign->book.widths[deed->vector];
  const struct history *history = &worker->own[deed->vector][deed->which[i]];
  static const int64_t zeros[1][WIDTH_MAX];
  const int64_t(*rows)[WIDTH_MAX] = history->count ? (const int64_t(*)[WIDTH_MAX])history->rows : zeros;
  for (size_t n = deed->seen[i]; n <= history->count; n++)
    if (memcmp(rows[n], deed->out + i * width, width * sizeof(int64_t)) == 0) return;
  broken(worker, "did not read its own write", deed->vector, deed->which[i], PAWL_OK);
}

/* --- calls ---------------------------------------------------------------------------------------------- */

static void deed_finished(struct pwi_task *task) {
  struct deed *deed = (struct deed *)((char *)task - offsetof(struct deed, task));
  struct campaign_worker *worker = deed->worker;
  struct campaign *campaign = worker->campaign;
  deed->is_busy = false;
  if (deed->buffer) pwi_client_buffer_close(worker->client.client, deed->buffer);
  deed->buffer = NULL;
  bool is_refused = (campaign->config.memory_max && task->status == PAWL_NODE_FULL) ||
                    (campaign->config.refusals && deed->vector < LATEST && task->status == PAWL_REFUSED);
  campaign->figures.refusals += is_refused;
  if (task->status && !is_refused) {
    broken(worker, "saw a task fail", deed->vector, 0, task->status);
    return;
  }
  if (deed->kind != PWI_REQUEST_PULL) pwi_book_done(deed);
  campaign->figures.pushes += deed->kind != PWI_REQUEST_PULL;
  campaign->figures.pulls += deed->kind != PWI_REQUEST_PUSH;
  if (deed->kind != PWI_REQUEST_PUSH && worker->is_checking && !campaign->config.memory_max &&
      !campaign->config.refusals)
    for (size_t i = 0; i < deed->count; i++)
      if (is_own(worker, deed->which[i])) check_own(deed, i);
  pwi_cluster_timer(&worker->client, (int64_t)pwi_random_below(worker->client.random, 200 * MS), 0);
}

static void draw_keys(struct deed *deed, struct pwi_random *random) {
  const struct book *book = &deed->worker->campaign->book;
  double part = pwi_random_unit(random);
  deed->count = 0;
  for (uint32_t key = 0; key < KEYS; key++) {
    if (!pwi_random_chance(random, part * part) || !may_push(deed->worker, key)) continue;
    deed->which[deed->count] = key;
    deed->keys[deed->count++] = book->universe[deed->vector][key];
  }
}

static void draw_values(struct deed *deed, struct pwi_random *random) {
  size_t count = deed->count * deed->worker->campaign->book.widths[deed->vector];
  for (size_t i = 0; i < count; i++) deed->values[i] = (int64_t)pwi_random_u32(random) - (INT64_C(1) << 31);
}

/* Dense keys of the universe are consecutive from 0 on, so a range of it is a range of the vector. */
static struct pwi_where draw_range(struct deed *deed, struct pwi_random *random) {
  struct campaign_worker *worker = deed->worker;
  uint64_t begin = pwi_random_below(random, KEYS), end = begin + 1 + pwi_random_below(random, KEYS - begin);
  while (!may_push(worker, (uint32_t)begin)) begin = pwi_random_below(random, KEYS);
  if (end <= begin) end = begin + 1;
  for (uint64_t key = begin; key < end; key++)
    if (!may_push(worker, (uint32_t)key)) end = key;
  deed->count = (size_t)(end - begin);
  for (size_t i = 0; i < deed->count; i++) deed->which[i] = (uint32_t)(begin + i);
  return (struct pwi_where){.range = {begin, end}};
}

static struct pwi_where draw_where(struct deed *deed, struct pwi_random *random) {
  struct campaign_worker *worker = deed->worker;
  uint64_t way = pwi_random_below(random, 4);
  if (way == 0 && worker->lists[deed->vector]) {
    deed->count = worker->list_count[deed->vector];
    memcpy(deed->which, worker->list_which[deed->vector], sizeof deed->which);
    return (struct pwi_where){.list = worker->lists[deed->vector]};
  }
  if (way == 1 && deed->vector == DENSE) return draw_range(deed, random);
  draw_keys(deed, random);
  return (struct pwi_where){.keys = deed->keys, .count = deed->count};
}

static void make_list(struct campaign_worker *worker, size_t vector, struct pwi_random *random) {
  struct deed draw = {.worker = worker, .vector = vector};
  draw_keys(&draw, random);
  pwi_keylist_release(worker->lists[vector]);
  worker->lists[vector] = NULL;
  memcpy(worker->list_which[vector], draw.which, sizeof draw.which);
  worker->list_count[vector] = draw.count;
  if (pwi_keylist_create(worker->client.client, pwi_flow_entry(worker->flows[vector]), draw.keys, draw.count,
                         &worker->lists[vector]))
    broken(worker, "cannot create a key list", vector, 0, PAWL_NO_MEMORY);
}

/* A buffer for this push only. The client would permit to reuse it, but the net would not, and the
 * simulator checks the net's contract. */
static const void *in_buffer(struct deed *deed) {
  struct campaign_worker *worker = deed->worker;
  if (pwi_client_buffer_open(worker->client.client, sizeof deed->values, &deed->buffer)) {
    if (!worker->campaign->config.has_starvation)
      broken(worker, "cannot create a buffer", deed->vector, 0, PAWL_NO_MEMORY);
    return deed->values;
  }
  memcpy(deed->buffer, deed->values, sizeof deed->values);
  return deed->buffer;
}

/* Takes over what the filters left, which is sent. It may be nothing; then the task ended at once. */
static void take_filtered(struct deed *deed) {
  struct campaign_worker *worker = deed->worker;
  const struct pawl_rows *rows = deed->is_busy ? pwi_task_rows(&deed->task) : NULL;
  const uint64_t *universe = worker->campaign->book.universe[FILTERED];
  if (!rows) return;
  for (uint32_t key = 0; key < KEYS && deed->count < rows->count; key++)
    if (universe[key] == rows->keys[deed->count]) deed->which[deed->count++] = key;
  if (deed->count != rows->count) broken(worker, "has rows of keys that it never pushed", FILTERED, 0, PAWL_OK);
  memcpy(deed->values, rows->values, deed->count * rows->bytes);
}

/* A push through lossy filters. Sometimes flushes all that they hold back. */
static pawl_status start_filtered(struct deed *deed, struct pwi_where where) {
  struct campaign_worker *worker = deed->worker;
  int64_t values[KEYS * WIDTH_MAX];
  if (pwi_random_chance(worker->client.random, 0.1)) where = (struct pwi_where){.flush = true};
  memcpy(values, deed->values, sizeof values);
  deed->count = 0;
  pawl_status status = pwi_client_start(worker->client.client, &deed->task, worker->flows[FILTERED], PWI_REQUEST_PUSH,
                                        &where, values, NULL);
  if (!status) take_filtered(deed);
  note_begun(deed);
  return status;
}

static void start_deed(struct campaign_worker *worker, struct deed *deed) {
  struct pwi_random *random = worker->client.random;
  static const enum pwi_request_kind kinds[] = {PWI_REQUEST_PUSH, PWI_REQUEST_PUSH, PWI_REQUEST_PULL,
                                                PWI_REQUEST_PUSHPULL};
  *deed = (struct deed){.worker = worker, .is_busy = true, .task.finished = deed_finished};
  deed->serial = ++worker->serial;
  deed->begun = pwi_campaign_now(worker->campaign);
  deed->kind = kinds[pwi_random_below(random, 4)];
  deed->vector = (size_t)pwi_random_below(random, pwi_campaign_vector_count(worker->campaign));
  if (pwi_random_chance(random, 0.1) || !worker->lists[deed->vector]) make_list(worker, deed->vector, random);
  struct pwi_where where = draw_where(deed, random);
  draw_values(deed, random);
  if (deed->vector == FILTERED && deed->kind != PWI_REQUEST_PULL) {
    deed->kind = PWI_REQUEST_PUSH;
    pawl_status status = start_filtered(deed, where);
    if (status) broken(worker, "had a call refused", FILTERED, 0, status);
    return;
  }
  note_begun(deed);
  const void *in = deed->kind != PWI_REQUEST_PULL ? deed->values : NULL;
  if (in && pwi_random_chance(random, 0.3)) in = in_buffer(deed);
  void *out = deed->kind != PWI_REQUEST_PUSH ? deed->out : NULL;
  pawl_status status =
      pwi_client_start(worker->client.client, &deed->task, worker->flows[deed->vector], deed->kind, &where, in, out);
  if (status) broken(worker, "had a call refused", deed->vector, 0, status);
}

/* --- a worker's life ------------------------------------------------------------------------------------ */

static bool find_flows(struct campaign_worker *worker) {
  const struct pwi_catalogue *catalogue = pwi_client_catalogue(worker->client.client);
  for (size_t v = 0; v < pwi_campaign_vector_count(worker->campaign); v++) {
    const struct pwi_entry *entry = pwi_catalogue_named(catalogue, pwi_campaign_vectors[v]);
    if (!entry || pwi_client_flow(worker->client.client, entry->id, 0, &worker->flows[v])) return false;
  }
  return true;
}

static struct deed *free_deed(struct campaign_worker *worker) {
  for (size_t i = 0; i < UNDER_WAY; i++)
    if (!worker->deeds[i].is_busy) return &worker->deeds[i];
  return NULL;
}

static void worker_timer(void *context, uint64_t cookie) {
  struct campaign_worker *worker = context;
  struct deed *deed;
  (void)cookie;
  if (!find_flows(worker)) {
    pwi_cluster_timer(&worker->client, 20 * MS, 0);
    return;
  }
  while (worker->calls_left > 0 && (deed = free_deed(worker))) {
    worker->calls_left--;
    start_deed(worker, deed);
    if (pwi_random_chance(worker->client.random, 0.3)) break; /* the next call comes with a timer */
  }
}

static void worker_started(void *context) {
  struct campaign_worker *worker = context;
  worker->is_checking = worker->client.incarnation == 1;
  pwi_cluster_timer(&worker->client, (int64_t)pwi_random_below(worker->client.random, 50 * MS), 0);
}

static void release_lists(struct campaign_worker *worker) {
  for (size_t v = 0; v < VECTORS; v++) {
    pwi_keylist_release(worker->lists[v]);
    worker->lists[v] = NULL;
  }
}

static void worker_stopped(void *context) {
  struct campaign_worker *worker = context;
  for (size_t i = 0; i < UNDER_WAY; i++) {
    struct deed *deed = &worker->deeds[i];
    if (deed->is_busy && deed->kind != PWI_REQUEST_PULL) pwi_book_lost(deed);
    deed->is_busy = false;
  }
  release_lists(worker);
}

pawl_status pwi_workers_add(struct campaign *campaign) {
  pawl_status status = PAWL_OK;
  for (uint32_t w = 0; w < campaign->config.workers && !status; w++) {
    struct campaign_worker *worker = &campaign->workers[w];
    worker->campaign = campaign;
    worker->index = w;
    worker->calls_left = campaign->config.calls;
    snprintf(worker->client.name, sizeof worker->client.name, "w%u", w % 100);
    worker->client.job = "train";
    worker->client.started = worker_started;
    worker->client.stopped = worker_stopped;
    worker->client.timer = worker_timer;
    worker->client.context = worker;
    status = pwi_campaign_client_add(campaign, &worker->client, true);
  }
  return status;
}

bool pwi_workers_are_busy(const struct campaign *campaign) {
  for (uint32_t w = 0; w < campaign->config.workers; w++) {
    const struct campaign_worker *worker = &campaign->workers[w];
    if (worker->calls_left > 0 || !worker->client.client) return true;
    for (size_t i = 0; i < UNDER_WAY; i++)
      if (worker->deeds[i].is_busy) return true;
  }
  return false;
}

void pwi_workers_fini(struct campaign *campaign) {
  for (uint32_t w = 0; w < WORKERS_MAX; w++)
    for (size_t v = 0; v < VECTORS; v++)
      for (uint32_t key = 0; key < KEYS; key++) pwi_free(campaign->workers[w].own[v][key].rows);
}
