/* A session that calls linear algebra on four vectors that only it changes: fill, scale, axpy, copy, row functions, dot
 * products and norms, between pushes, several calls at a time.
 *
 * Changes take effect once, in the order of calls, also between two vectors. So the model is four arrays on which the
 * same calls are made when they begin. A dot product or norm sees all earlier calls; it is compared if no change was
 * called before its answer. The results of a row function are those of its only run, so they are always compared. Values are integers, so there is no rounding. Faults do not kill the session, because the
 * order of calls that are under way would then be unknown. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/campaign/workloads/workload.h"
#include "store/linear.h"

#define OPERANDS 4 /* vectors: two dense, two sparse */
#define LENGTH 60
#define CALLS 90
#define WINDOW 10
#define EXACT 9e15 /* below this sums of integers are exact */

static const char *const names[OPERANDS] = {"linear/a", "linear/b", "linear/c", "linear/d"};

struct linear;

struct linear_step {
  struct pwi_task task;
  struct linear *linear;
  bool is_busy, is_fold, is_exact, is_run;
  double low_bits, least;
  uint64_t changes; /* number of changes before it */
  double wanted;
  int64_t pushed[LENGTH];
};

struct linear {
  struct pwi_workload workload;
  struct pwi_cluster_client client;
  struct pwi_flow *flows[OPERANDS];
  int64_t model[OPERANDS][LENGTH];
  struct linear_step calls[WINDOW];
  uint32_t calls_left;
  uint64_t changes;
};

static bool is_sparse(size_t vector) { return vector >= OPERANDS / 2; }

static void check_results(const struct linear_step *call) {
  const struct pwi_task *task = &call->task;
  bool is_right = task->result_count == 2 && task->results[0] == call->low_bits && task->results[1] == call->least;
  if (!is_right)
    CAMPAIGN_FAIL(call->linear->workload.campaign,
                  "a row function has %u results, %.17g and %.17g, not %.17g and %.17g", task->result_count,
                  task->results[0], task->results[1], call->low_bits, call->least);
}

static void finished(struct pwi_task *task) {
  struct linear_step *call = (struct linear_step *)((char *)task - offsetof(struct linear_step, task));
  struct linear *linear = call->linear;
  struct campaign *campaign = linear->workload.campaign;
  call->is_busy = false;
  if (task->status) CAMPAIGN_FAIL(campaign, "a call of linear algebra failed: %s", pawl_status_name(task->status));
  if (call->is_run && !task->status) check_results(call);
  campaign->figures.linear_calls += !call->is_fold;
  campaign->figures.runs += call->is_run;
  campaign->figures.folds += call->is_fold;
  if (call->is_fold && call->is_exact && call->changes == linear->changes && task->folded != call->wanted)
    CAMPAIGN_FAIL(campaign, "a fold is %.17g, not %.17g", task->folded, call->wanted);
  pwi_cluster_timer(&linear->client, (int64_t)pwi_random_below(linear->client.random, 30 * MS), 0);
}

/* --- the model ------------------------------------------------------------------------------------------ */

static struct pawl_range draw_range(struct pwi_random *random) {
  uint64_t a = pwi_random_below(random, LENGTH), b = pwi_random_below(random, LENGTH);
  if (pwi_random_chance(random, 0.3)) return pawl_range_of(0, LENGTH);
  return a < b ? pawl_range_of(a, b + 1) : pawl_range_of(b, a + 1);
}

/* Sums wrap, as those of servers do. */
static void change_model(struct linear *linear, size_t y, size_t x, enum pwi_linear kind, int64_t factor,
                         struct pawl_range range) {
  for (uint64_t key = range.begin; key < range.end; key++) {
    uint64_t old = (uint64_t)linear->model[y][key], other = (uint64_t)linear->model[x][key], a = (uint64_t)factor;
    uint64_t fresh = kind == PWI_LINEAR_FILL    ? a
                     : kind == PWI_LINEAR_SCALE ? a * old
                     : kind == PWI_LINEAR_AXPY  ? old + a * other
                                                : other;
    linear->model[y][key] = (int64_t)fresh;
  }
}

static double fold_model(const struct linear *linear, size_t x, size_t y, enum pwi_linear kind, struct pawl_range range,
                         bool *is_exact_out) {
  double sum = 0, most = 0;
  for (uint64_t key = range.begin; key < range.end; key++) {
    double a = (double)linear->model[x][key], b = (double)linear->model[y][key];
    double size = a < 0 ? -a : a, other = b < 0 ? -b : b;
    most = size > most ? size : most;
    *is_exact_out &= size * size * LENGTH < EXACT && other * other * LENGTH < EXACT;
    sum += kind == PWI_LINEAR_DOT ? a * b : kind == PWI_LINEAR_ABS ? size : kind == PWI_LINEAR_SQUARES ? a * a : a != 0;
  }
  return kind == PWI_LINEAR_MOST ? most : sum;
}

/* --- calls ---------------------------------------------------------------------------------------------- */

static pawl_status push_rows(struct linear *linear, struct linear_step *call, size_t y) {
  struct pwi_random *random = linear->client.random;
  struct pawl_range range = draw_range(random);
  struct pwi_where where = {.range = range};
  for (uint64_t key = range.begin; key < range.end; key++) {
    int64_t value = (int64_t)pwi_random_below(random, 9) - 4;
    call->pushed[key - range.begin] = value;
    linear->model[y][key] = (int64_t)((uint64_t)linear->model[y][key] + (uint64_t)value);
  }
  linear->changes++;
  return pwi_client_start(linear->client.client, &call->task, linear->flows[y], PWI_REQUEST_PUSH, &where, call->pushed,
                          NULL);
}

static pawl_status change(struct linear *linear, struct linear_step *call, size_t y, size_t x, enum pwi_linear kind) {
  struct pwi_random *random = linear->client.random;
  struct pawl_range range = draw_range(random);
  int64_t factor = kind == PWI_LINEAR_COPY ? 0 : (int64_t)pwi_random_below(random, 5) - 2;
  change_model(linear, y, x, kind, factor, range);
  linear->changes++;
  return pwi_client_linear(linear->client.client, &call->task, linear->flows[y],
                           pwi_linear_has_other(kind) ? linear->flows[x] : NULL, kind, (double)factor, range);
}

/* A sparse vector has a row where it or the other one was ever pushed; rows that are zero may be missing. So only
 * dense vectors have results that the model knows. */
static pawl_status run(struct linear *linear, struct linear_step *call, size_t y, size_t x) {
  struct pwi_random *random = linear->client.random;
  struct pawl_range range = draw_range(random);
  int add = is_sparse(y) ? 0 : (int)pwi_random_below(random, 201) - 100;
  char function[32];
  snprintf(function, sizeof function, "sim_run add=%d", add);
  call->is_run = !is_sparse(y);
  call->low_bits = 0;
  call->least = (double)linear->model[y][range.begin];
  for (uint64_t key = range.begin; key < range.end; key++) {
    uint64_t before = (uint64_t)linear->model[y][key], other = x == y ? 2 * before : (uint64_t)linear->model[x][key];
    call->low_bits += (double)(before & 1023);
    if ((double)(int64_t)before < call->least) call->least = (double)(int64_t)before;
    linear->model[y][key] = (int64_t)(before + other + (uint64_t)(int64_t)add);
  }
  linear->changes++;
  return pwi_client_run(linear->client.client, &call->task, linear->flows[y], x == y ? NULL : linear->flows[x],
                        function, range);
}

static pawl_status fold(struct linear *linear, struct linear_step *call, size_t x, size_t y) {
  static const enum pwi_linear kinds[] = {PWI_LINEAR_DOT,     PWI_LINEAR_DOT,  PWI_LINEAR_ABS,
                                          PWI_LINEAR_SQUARES, PWI_LINEAR_MOST, PWI_LINEAR_COUNT};
  struct pwi_random *random = linear->client.random;
  enum pwi_linear kind = kinds[pwi_random_below(random, sizeof kinds / sizeof *kinds)];
  struct pawl_range range = draw_range(random);
  call->is_fold = call->is_exact = true;
  call->changes = linear->changes;
  call->wanted = fold_model(linear, x, y, kind, range, &call->is_exact);
  return pwi_client_linear(linear->client.client, &call->task, linear->flows[x],
                           pwi_linear_has_other(kind) ? linear->flows[y] : NULL, kind, 0, range);
}

static void call_something(struct linear *linear, struct linear_step *call) {
  static const enum pwi_linear kinds[] = {PWI_LINEAR_FILL, PWI_LINEAR_FILL, PWI_LINEAR_SCALE,
                                          PWI_LINEAR_AXPY, PWI_LINEAR_AXPY, PWI_LINEAR_COPY};
  struct pwi_random *random = linear->client.random;
  size_t y = (size_t)pwi_random_below(random, OPERANDS), x = y ^ (size_t)pwi_random_below(random, 2);
  uint64_t way = pwi_random_below(random, 12);
  enum pwi_linear kind = kinds[way % 6];
  *call = (struct linear_step){.linear = linear, .is_busy = true, .task.finished = finished};
  pawl_status status = way >= 10                                               ? run(linear, call, y, x)
                       : way >= 8                                              ? fold(linear, call, x, y)
                       : way >= 6 || (is_sparse(y) && kind == PWI_LINEAR_FILL) ? push_rows(linear, call, y)
                                                                               : change(linear, call, y, x, kind);
  if (status)
    CAMPAIGN_FAIL(linear->workload.campaign, "a call of linear algebra was refused: %s", pawl_status_name(status));
}

static void linear_timer(void *context, uint64_t cookie) {
  struct linear *linear = context;
  (void)cookie;
  for (size_t v = 0; v < OPERANDS; v++)
    if (pwi_cluster_open_vector(&linear->client, names[v], 0, &linear->flows[v])) {
      pwi_cluster_timer(&linear->client, 20 * MS, 0);
      return;
    }
  for (size_t i = 0; i < WINDOW && linear->calls_left > 0; i++) {
    if (linear->calls[i].is_busy || pwi_random_chance(linear->client.random, 0.3)) continue;
    linear->calls_left--;
    call_something(linear, &linear->calls[i]);
  }
  if (linear->calls_left > 0) pwi_cluster_timer(&linear->client, 30 * MS, 0);
}

static void linear_started(void *context) { pwi_cluster_timer(&((struct linear *)context)->client, 10 * MS, 0); }

/* --- all of it ------------------------------------------------------------------------------------------ */

static pawl_status begin(struct pwi_workload *workload) {
  struct linear *linear = (struct linear *)workload;
  pawl_status status = PAWL_OK;
  linear->calls_left = CALLS;
  for (size_t v = 0; v < OPERANDS && !status; v++) {
    struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = LENGTH};
    options.placement = PAWL_PLACE_ORDERED;
    options.layout = is_sparse(v) ? PAWL_LAYOUT_SPARSE : PAWL_LAYOUT_DENSE;
    status = pwi_workload_vector(workload, names[v], &options);
  }
  linear->client = (struct pwi_cluster_client){
      .name = "linear", .job = "linear", .started = linear_started, .timer = linear_timer, .context = linear};
  return status ? status : pwi_campaign_client_add(workload->campaign, &linear->client, false);
}

static bool is_busy(const struct pwi_workload *workload) {
  const struct linear *linear = (const struct linear *)workload;
  for (size_t i = 0; i < WINDOW; i++)
    if (linear->calls[i].is_busy) return true;
  return linear->calls_left > 0;
}

static void describe(const struct pwi_workload *workload, char *text, size_t size) {
  snprintf(text, size, "linear algebra, with %u calls left", ((const struct linear *)workload)->calls_left);
}

static pawl_status check(struct pwi_workload *workload) {
  struct linear *linear = (struct linear *)workload;
  struct pwi_where where = {.range = {0, LENGTH}};
  int64_t found[LENGTH];
  for (size_t v = 0; v < OPERANDS; v++) {
    pawl_status status = pwi_workload_pull(workload, names[v], &where, found);
    if (status) return status;
    for (size_t key = 0; key < LENGTH; key++)
      if (found[key] != linear->model[v][key])
        CAMPAIGN_FAIL(workload->campaign, "after all calls of linear algebra %s key %zu is %lld, not %lld", names[v],
                      key, (long long)found[key], (long long)linear->model[v][key]);
  }
  return PAWL_OK;
}

const struct pwi_workload_ops pwi_workload_linear = {
    .size = sizeof(struct linear), .begin = begin, .is_busy = is_busy, .describe = describe, .check = check};
