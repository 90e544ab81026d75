/* The cases of `pawl-bench kv` about servers: how evenly bytes and requests are spread, and the memory per
 * sparse key.
 *
 * BALANCE. A load is a vector with keys and one-key pulls, first on the manager's initial ring. Then the
 * manager is asked to balance by what it has measured, and the effect of the same pulls on the servers is
 * reported. Servers report once a second, so each step waits for that. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/session.h" /* pwi_session_ask */
#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "kv.h"
#include "host/clock.h"

#define VECTOR "bench/kv"
#define BALANCE_SERVERS 4
#define PROCESSES_MAX 256
#define REPORT_US 1200000 /* time in which every server reports */
#define BALANCE_TIMES 3   /* each time, servers report finer cells where they are busy */
#define MOVES_US 100000
#define MOVES_TRIES 300
#define ZIPF 1.1

/* --- load of servers ------------------------------------------------------------------------------------ */

/* Sums per process, in the order of the list. */
struct shares {
  size_t count;
  uint64_t processes[PROCESSES_MAX];
  double bytes[PROCESSES_MAX], requests[PROCESSES_MAX];
  size_t moves;
};

static double number_of(const json_t *object, const char *name) {
  return json_number_value(json_object_get(object, name));
}

static size_t find_process(struct shares *shares, uint64_t process) {
  for (size_t i = 0; i < shares->count; i++)
    if (shares->processes[i] == process) return i;
  if (shares->count == PROCESSES_MAX) return PROCESSES_MAX - 1;
  shares->processes[shares->count] = process;
  return shares->count++;
}

static void add_nodes(const json_t *root, struct shares *shares) {
  size_t i;
  json_t *node;
  json_array_foreach(json_object_get(root, "nodes"), i, node) {
    size_t at = find_process(shares, (uint64_t)json_integer_value(json_object_get(node, "process")));
    shares->bytes[at] += number_of(node, "bytes");
    shares->requests[at] += number_of(node, "pushes") + number_of(node, "pulls");
  }
  shares->moves = json_array_size(json_object_get(root, "moves"));
}

static bool look(const struct pwi_kv_options *options, struct pawl_session *session, struct shares *shares_out) {
  char *text;
  pawl_status status = pawl_session_status(session, PWI_KV_PATIENCE, &text);
  if (status) return pwi_kv_fail(options, "no status", status);
  json_t *root = json_loads(text, 0, NULL);
  pawl_text_free(text);
  *shares_out = (struct shares){0};
  add_nodes(root, shares_out);
  json_decref(root);
  if (shares_out->count == 0) pwi_cli_failure(options->command, "the status names no servers");
  return shares_out->count > 0;
}

bool pwi_kv_look(const struct pwi_kv_options *options, struct pawl_session *session, struct pwi_kv_totals *totals_out) {
  char *text;
  size_t i;
  json_t *node;
  pawl_status status = pawl_session_status(session, PWI_KV_PATIENCE, &text);
  if (status) return pwi_kv_fail(options, "no status", status);
  json_t *root = json_loads(text, 0, NULL);
  pawl_text_free(text);
  *totals_out = (struct pwi_kv_totals){0};
  json_array_foreach(json_object_get(root, "nodes"), i, node) {
    totals_out->bytes_in += number_of(node, "bytes_in");
    totals_out->bytes_passed += number_of(node, "bytes_passed");
  }
  json_decref(root);
  return true;
}

static double most_over_mean(const double *now, const double *before, size_t count) {
  double most = 0, sum = 0;
  for (size_t i = 0; i < count; i++) {
    double value = now[i] - (before ? before[i] : 0);
    sum += value;
    if (value > most) most = value;
  }
  return sum > 0 ? most / (sum / (double)count) : NAN;
}

/* --- loads ---------------------------------------------------------------------------------------------- */

struct load {
  const char *name;
  uint64_t span, rows;       /* rows == span: dense */
  bool small_ids, is_skewed; /* small_ids: keys 0, 1, 2, …; is_skewed: requests by Zipf's law */
};

/* Key 0 is the most frequent, so hot rows are adjacent. */
static bool draw_zipf(uint64_t rows, uint64_t *rows_out, size_t count) {
  double *sums = pwi_alloc_zero(rows, sizeof *sums), sum = 0;
  struct pwi_random random;
  if (!sums) return false;
  for (uint64_t i = 0; i < rows; i++) sums[i] = sum += pow((double)(i + 1), -ZIPF);
  pwi_random_init(&random, 1, 0);
  for (size_t i = 0; i < count; i++) {
    double at = pwi_random_unit(&random) * sum;
    uint64_t low = 0, high = rows - 1;
    while (low < high) {
      uint64_t middle = (low + high) / 2;
      if (sums[middle] <= at)
        low = middle + 1;
      else
        high = middle;
    }
    rows_out[i] = low;
  }
  pwi_free(sums);
  return true;
}

static uint64_t *draw_requests(const struct load *load, const struct pwi_kv_job *job, size_t count) {
  uint64_t *keys = pwi_alloc_zero(count, sizeof *keys);
  if (!keys) return NULL;
  if (load->is_skewed && !draw_zipf(job->rows, keys, count)) {
    pwi_free(keys);
    return NULL;
  }
  for (size_t i = 0; i < count; i++) {
    uint64_t row = load->is_skewed ? keys[i] : pwi_mix64(i) % job->rows;
    keys[i] = load->small_ids ? row : pwi_kv_key(job, row);
  }
  return keys;
}

static bool push_small_ids(struct pawl_session *session, const struct pwi_kv_options *options,
                           const struct pwi_kv_job *job, struct pawl_vector **vector_out) {
  struct pwi_kv_job small = *job;
  struct pawl_task *task;
  uint64_t *keys = pwi_alloc_zero(job->rows, sizeof *keys);
  float *values = pwi_alloc_zero(job->rows, sizeof *values);
  small.rows = 1; /* first the vector with one key, then ours */
  bool good = keys && values && pwi_kv_fill(session, options, &small, VECTOR, vector_out);
  if (good) {
    for (uint64_t i = 0; i < job->rows; i++) keys[i] = i;
    pawl_status status = pawl_vector_push(*vector_out, pawl_at_keys(keys, (size_t)job->rows), values, &task);
    if (!status) status = pawl_task_finish(task, PWI_KV_PATIENCE);
    if (status) good = pwi_kv_fail(options, "cannot fill the vector", status);
  }
  pwi_free(keys);
  pwi_free(values);
  return good;
}

static bool balance(const struct pwi_kv_options *options, struct pawl_session *session, struct shares *shares) {
  pawl_status status = pwi_session_ask(session, PWI_ASK_BALANCE, NULL, pwi_host_after(PWI_KV_PATIENCE), NULL, NULL);
  if (status) return pwi_kv_fail(options, "the manager refused to balance", status);
  for (int i = 0; i < MOVES_TRIES; i++) {
    usleep(MOVES_US);
    if (!look(options, session, shares)) return false;
    if (shares->moves == 0) return true;
  }
  pwi_kv_progress(options, "balance: %zu moves have not finished", shares->moves);
  return true;
}

/* The manager knows requests from the last reports only, so the pulls must not have stopped before. */
static bool run_load(const struct pwi_kv_options *options, struct pawl_session *session, struct pawl_vector *vector,
                     const uint64_t *keys, size_t count, struct shares *before_out, struct shares *after_out) {
  static struct pwi_kv_tally tally;
  double seconds = options->quick ? 0.2 : 2.5;
  pawl_status status;
  for (int i = 0; i < (options->quick ? 1 : BALANCE_TIMES); i++) {
    status = pwi_kv_pump(vector, PWI_KV_PULL, keys, count, seconds, &tally);
    if (status) return pwi_kv_fail(options, "cannot pull", status);
    if (!balance(options, session, after_out)) return false;
  }
  usleep(REPORT_US);
  if (!look(options, session, before_out)) return false;
  status = pwi_kv_pump(vector, PWI_KV_PULL, keys, count, seconds / 2, &tally);
  if (status) return pwi_kv_fail(options, "cannot pull", status);
  usleep(REPORT_US);
  return look(options, session, after_out);
}

static void print_shares(const struct pwi_kv_options *options, const struct load *load, const struct shares *before,
                         const struct shares *after) {
  struct pwi_kv_figures figures = {.name = "balance",
                                   .op = "pull",
                                   .what = "load",
                                   .which = load->name,
                                   .part = "bytes",
                                   .unit = "max/mean",
                                   .limit = 1,
                                   .p99_us = NAN,
                                   .cpu_s_per_unit = NAN};
  figures.value = most_over_mean(after->bytes, NULL, after->count);
  pwi_kv_print(options, &figures);
  figures.part = "requests";
  figures.value = most_over_mean(after->requests, before->requests, after->count);
  pwi_kv_print(options, &figures);
}

static bool run_with(const struct pwi_kv_options *options, const struct load *load, struct pwi_kv_crew *crew) {
  struct pawl_session *session = pwi_kv_crew_session(crew);
  struct pawl_vector *vector = NULL;
  struct pwi_kv_job job = {.name = "balance", .count = 1, .rows = load->rows, .span = load->span};
  struct shares before, after;
  size_t count = (size_t)1 << 20;
  uint64_t *keys = draw_requests(load, &job, count);
  if (!keys) return pwi_kv_fail(options, "no memory", PAWL_NO_MEMORY);
  bool good = load->small_ids ? push_small_ids(session, options, &job, &vector)
                              : pwi_kv_fill(session, options, &job, VECTOR, &vector);
  if (good) good = run_load(options, session, vector, keys, count, &before, &after);
  if (good) print_shares(options, load, &before, &after);
  pawl_vector_close(vector);
  if (vector && pawl_vector_delete(session, VECTOR, PWI_KV_PATIENCE)) good = false;
  pwi_free(keys);
  return good;
}

bool pwi_kv_case_balance(const struct pwi_kv_options *options, const struct pwi_kv_job *job) {
  const struct load loads[] = {
      {"ids", PAWL_KEY_END, job->rows, true, false},
      {"zipf", job->rows, job->rows, false, true},
      {"dense", 4 * job->rows, 4 * job->rows, false, false},
      {"hashed", PAWL_KEY_END, job->rows, false, false},
  };
  size_t count = options->quick ? 2 : sizeof loads / sizeof *loads;
  struct pwi_kv_options several = *options;
  if (several.servers <= 1) several.servers = BALANCE_SERVERS;
  bool good = true;
  for (size_t i = 0; i < count && good; i++) {
    struct pwi_kv_crew *crew = NULL;
    pwi_kv_progress(options, "balance: %s", loads[i].name);
    good = pwi_kv_crew_start(&several, 0, &crew) && run_with(&several, &loads[i], crew);
    pwi_kv_crew_stop(crew);
  }
  return good;
}

/* --- memory --------------------------------------------------------------------------------------------- */

#define RAW_BYTES 12 /* a key and an f32 */

/* Batch after batch over the whole span, one key of each group of `batches` adjacent ones. */
static pawl_status push_spread(const struct pwi_kv_options *options, struct pawl_vector *vector,
                               const struct pwi_kv_job *job, uint64_t *keys, const float *values) {
  pawl_status status = PAWL_OK;
  uint64_t batches = job->rows / job->count;
  for (uint64_t batch = 0; batch < batches && !status; batch++) {
    struct pawl_task *task;
    for (uint64_t i = 0; i < job->count; i++)
      keys[i] = pwi_kv_key(job, i * batches + (batch + pwi_mix64(i) % batches) % batches);
    status = pawl_vector_push(vector, pawl_at_keys(keys, (size_t)job->count), values, &task);
    if (!status) status = pawl_task_finish(task, PWI_KV_PATIENCE);
    if ((batch + 1) % 10 == 0)
      pwi_kv_progress(options, "memory: %" PRIu64 " of %" PRIu64 " keys", (batch + 1) * job->count, job->rows);
  }
  return status;
}

static bool measure_memory(const struct pwi_kv_options *options, const struct pwi_kv_job *job,
                           struct pwi_kv_crew *crew) {
  struct pawl_session *session = pwi_kv_crew_session(crew);
  struct pawl_vector_options is;
  struct pawl_vector *vector;
  uint64_t *keys = pwi_alloc_zero(job->count, sizeof *keys);
  float *values = pwi_alloc_zero(job->count, sizeof *values);
  double before = pwi_kv_crew_memory(crew);
  pawl_vector_options_init(&is);
  is.size = job->span;
  is.layout = PAWL_LAYOUT_SPARSE;
  pawl_status status =
      keys && values ? pawl_vector_create(session, VECTOR, &is, PWI_KV_PATIENCE, &vector) : PAWL_NO_MEMORY;
  if (!status) {
    status = push_spread(options, vector, job, keys, values);
    struct pwi_kv_figures figures = {
        .name = job->name, .op = "push", .unit = "ratio", .limit = 1, .p99_us = NAN, .cpu_s_per_unit = NAN};
    figures.value = (pwi_kv_crew_memory(crew) - before) / (double)(job->rows * RAW_BYTES);
    if (!status) pwi_kv_print(options, &figures);
    pawl_vector_close(vector);
    (void)pawl_vector_delete(session, VECTOR, PWI_KV_PATIENCE);
  }
  pwi_free(keys);
  pwi_free(values);
  return status ? pwi_kv_fail(options, "cannot push", status) : true;
}

bool pwi_kv_case_memory(const struct pwi_kv_options *options, const struct pwi_kv_job *job) {
  struct pwi_kv_job whole = *job;
  struct pwi_kv_crew *crew = NULL;
  if (options->keys) whole.rows = options->keys;
  whole.count = whole.rows < PWI_KV_BATCH ? whole.rows : PWI_KV_BATCH;
  whole.rows -= whole.rows % whole.count;
  whole.span = whole.rows * 1000;
  bool good = pwi_kv_crew_start(options, 0, &crew) && measure_memory(options, &whole, crew);
  pwi_kv_crew_stop(crew);
  return good;
}
