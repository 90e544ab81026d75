/* Workers that push and pull, and record every call in the history of the campaign.
 *
 * All vectors hold 64-bit integers whose rows tell which pushes they contain (sim/history/history.h). Values
 * are read from servers by pulling only. A worker that is killed and started again is another session. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/campaign/inside.h"

const char *const pwi_campaign_vectors[VECTORS] = {"sim/dense", "sim/sparse", "sim/mixed", "sim/latest",
                                                   "sim/filtered"};

static void broken(const struct campaign_worker *worker, const char *what, size_t vector, pawl_status status) {
  CAMPAIGN_FAIL(worker->campaign, "worker %u %s: %s status %s", worker->index, what, pwi_campaign_vectors[vector],
                pawl_status_name(status));
}

/* --- calls ---------------------------------------------------------------------------------------------- */

static void end_scan(const struct deed *deed) {
  struct campaign *campaign = deed->worker->campaign;
  struct pwi_history_answer answer = {.status = deed->task.status,
                                      .keys = deed->keys,
                                      .count = (size_t)deed->task.rows,
                                      .rows = deed->out,
                                      .next = deed->task.found};
  pwi_history_end(campaign->history, pwi_campaign_now(campaign), deed->call, &answer);
}

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
    broken(worker, "saw a task fail", deed->vector, task->status);
    return;
  }
  if (deed->kind == PWI_REQUEST_SCAN)
    end_scan(deed);
  else
    pwi_campaign_ended(campaign, deed->call, task, deed->out);
  campaign->figures.pushes += pwi_request_has_rows(deed->kind);
  campaign->figures.pulls += deed->kind != PWI_REQUEST_PUSH;
  pwi_cluster_timer(&worker->client, (int64_t)pwi_random_below(worker->client.random, 200 * MS), 0);
}

static void draw_keys(const struct campaign *campaign, size_t vector, struct pwi_random *random, uint64_t *keys,
                      size_t *count) {
  double part = pwi_random_unit(random);
  *count = 0;
  for (uint32_t key = 0; key < KEYS; key++)
    if (pwi_random_chance(random, part * part)) keys[(*count)++] = campaign->book.universe[vector][key];
}

static void draw_values(struct deed *deed) {
  const struct campaign *campaign = deed->worker->campaign;
  uint32_t width = campaign->book.widths[deed->vector], vector = campaign->book.recorded[deed->vector];
  for (size_t i = 0; i < deed->count; i++)
    pwi_history_row(campaign->history, vector, deed->keys[i], deed->values + i * width);
}

/* Dense keys of the universe are consecutive from 0 on, so a range of it is a range of the vector. */
static struct pwi_where draw_range(struct deed *deed, struct pwi_random *random) {
  uint64_t begin = pwi_random_below(random, KEYS), end = begin + 1 + pwi_random_below(random, KEYS - begin);
  deed->count = (size_t)(end - begin);
  for (size_t i = 0; i < deed->count; i++) deed->keys[i] = begin + i;
  return (struct pwi_where){.range = {begin, end}};
}

static struct pwi_where draw_where(struct deed *deed, struct pwi_random *random) {
  struct campaign_worker *worker = deed->worker;
  uint64_t way = pwi_random_below(random, 4);
  if (way == 0 && worker->lists[deed->vector]) {
    deed->count = worker->list_count[deed->vector];
    memcpy(deed->keys, worker->list_keys[deed->vector], sizeof deed->keys);
    return (struct pwi_where){.list = worker->lists[deed->vector]};
  }
  if (way == 1 && deed->vector == DENSE) return draw_range(deed, random);
  draw_keys(worker->campaign, deed->vector, random, deed->keys, &deed->count);
  return (struct pwi_where){.keys = deed->keys, .count = deed->count};
}

static void make_list(struct campaign_worker *worker, size_t vector, struct pwi_random *random) {
  uint64_t *keys = worker->list_keys[vector];
  size_t *count = &worker->list_count[vector];
  draw_keys(worker->campaign, vector, random, keys, count);
  pwi_keylist_release(worker->lists[vector]);
  worker->lists[vector] = NULL;
  if (pwi_keylist_create(worker->client.client, pwi_flow_entry(worker->flows[vector]), keys, *count,
                         &worker->lists[vector]))
    broken(worker, "cannot create a key list", vector, PAWL_NO_MEMORY);
}

/* A buffer for this push only. The client would permit to reuse it, but the net would not, and the
 * simulator checks the net's contract. */
static const void *in_buffer(struct deed *deed, const void *values, size_t size) {
  struct campaign_worker *worker = deed->worker;
  if (pwi_client_buffer_open(worker->client.client, size, &deed->buffer)) {
    if (!worker->campaign->config.has_starvation)
      broken(worker, "cannot create a buffer", deed->vector, PAWL_NO_MEMORY);
    return values;
  }
  memcpy(deed->buffer, values, size);
  return deed->buffer;
}

static void record(struct deed *deed, const uint64_t *keys, const int64_t *rows, size_t count) {
  static const enum pwi_history_verb verbs[] = {[PWI_REQUEST_PUSH] = PWI_HISTORY_PUSH,
                                                [PWI_REQUEST_PULL] = PWI_HISTORY_PULL,
                                                [PWI_REQUEST_PUSHPULL] = PWI_HISTORY_PUSHPULL,
                                                [PWI_REQUEST_SCAN] = PWI_HISTORY_SCAN};
  struct campaign *campaign = deed->worker->campaign;
  struct pwi_history_call call = {.session = deed->worker->session,
                                  .verb = verbs[deed->kind],
                                  .vector = campaign->book.recorded[deed->vector],
                                  .keys = keys,
                                  .count = count,
                                  .rows = rows,
                                  .range = deed->range,
                                  .task = &deed->task};
  deed->call = pwi_history_begin(campaign->history, deed->begun, &call);
}

/* A push through lossy filters consists of the rows that they leave, which may be none; then the task ended
 * at once. Sometimes flushes all that they hold back. */
static pawl_status start_filtered(struct deed *deed, struct pwi_where where) {
  struct campaign_worker *worker = deed->worker;
  if (pwi_random_chance(worker->client.random, 0.1)) where = (struct pwi_where){.flush = true};
  pawl_status status = pwi_client_start(worker->client.client, &deed->task, worker->flows[FILTERED], PWI_REQUEST_PUSH,
                                        &where, deed->values, NULL);
  const struct pawl_rows *rows = !status && deed->is_busy ? pwi_task_rows(&deed->task) : NULL;
  if (rows) record(deed, rows->keys, rows->values, rows->count);
  return status;
}

/* A scan of at most `room` keys, and of one arc. */
static pawl_status start_scan(struct deed *deed) {
  struct campaign_worker *worker = deed->worker;
  uint64_t size = pwi_flow_entry(worker->flows[deed->vector])->is.size;
  size_t room = 1 + (size_t)pwi_random_below(worker->client.random, KEYS);
  deed->range = pawl_range_of(pwi_random_below(worker->client.random, size), size);
  record(deed, NULL, NULL, 0);
  return pwi_client_scan(worker->client.client, &deed->task, worker->flows[deed->vector], deed->range, room, deed->keys,
                         deed->out);
}

/* The values as a sum of products: the operand moves each column to another place, and has two rows whose products
 * cancel each other. Every third push is sent so, without a random number. */
static void factorise(struct deed *deed, struct pwi_where *where) {
  size_t width = deed->worker->campaign->book.widths[deed->vector], pairs = width + 2;
  if (deed->serial % 3 != 0) return;
  for (size_t k = 0; k < width; k++) deed->operand[k * width + (k + deed->serial) % width] = 1;
  for (size_t j = 0; j < width; j++)
    deed->operand[width * width + j] = deed->operand[(width + 1) * width + j] = (int64_t)(j + deed->serial);
  for (size_t i = 0; i < deed->count; i++) {
    int64_t *row = deed->factors + i * pairs;
    for (size_t k = 0; k < width; k++) row[k] = deed->values[i * width + (k + deed->serial) % width];
    row[width] = (int64_t)i + 1;
    row[width + 1] = -row[width];
  }
  where->operand = deed->operand;
  where->operand_rows = pairs;
}

static pawl_status start_other(struct deed *deed, struct pwi_where *where) {
  struct campaign_worker *worker = deed->worker;
  record(deed, deed->keys, deed->values, deed->count);
  const void *in = deed->kind != PWI_REQUEST_PULL ? deed->values : NULL;
  if (in) factorise(deed, where);
  if (where->operand) in = deed->factors;
  size_t size = where->operand ? sizeof deed->factors : sizeof deed->values;
  if (in && pwi_random_chance(worker->client.random, 0.3)) in = in_buffer(deed, in, size);
  void *out = deed->kind != PWI_REQUEST_PUSH ? deed->out : NULL;
  return pwi_client_start(worker->client.client, &deed->task, worker->flows[deed->vector], deed->kind, where, in, out);
}

static void start_deed(struct campaign_worker *worker, struct deed *deed) {
  struct pwi_random *random = worker->client.random;
  static const enum pwi_request_kind kinds[] = {PWI_REQUEST_PUSH,     PWI_REQUEST_PUSH, PWI_REQUEST_PUSH,
                                                PWI_REQUEST_PUSHPULL, PWI_REQUEST_PULL, PWI_REQUEST_PULL,
                                                PWI_REQUEST_PULL,     PWI_REQUEST_SCAN};
  *deed = (struct deed){.worker = worker, .is_busy = true, .task.finished = deed_finished, .call = UINT32_MAX};
  deed->serial = ++worker->serial;
  deed->begun = pwi_campaign_now(worker->campaign);
  deed->kind = kinds[pwi_random_below(random, sizeof kinds / sizeof *kinds)];
  deed->vector = (size_t)pwi_random_below(random, pwi_campaign_vector_count(worker->campaign));
  pawl_status status;
  if (deed->kind == PWI_REQUEST_SCAN) {
    status = start_scan(deed);
  } else {
    if (pwi_random_chance(random, 0.1) || !worker->lists[deed->vector]) make_list(worker, deed->vector, random);
    struct pwi_where where = draw_where(deed, random);
    if (deed->kind != PWI_REQUEST_PULL) draw_values(deed);
    bool is_filtered = deed->vector == FILTERED && deed->kind != PWI_REQUEST_PULL;
    if (is_filtered) deed->kind = PWI_REQUEST_PUSH;
    status = is_filtered ? start_filtered(deed, where) : start_other(deed, &where);
  }
  if (status) broken(worker, "had a call refused", deed->vector, status);
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
  worker->session = pwi_history_session(worker->campaign->history, worker->client.name);
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
  for (size_t i = 0; i < UNDER_WAY; i++) worker->deeds[i].is_busy = false;
  release_lists(worker);
}

static void worker_heard(void *context, const struct pwi_message *message) {
  const struct campaign_worker *worker = context;
  pwi_watch_heard(worker->campaign, worker->client.client, worker->session, message);
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
    worker->client.heard = worker_heard;
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
