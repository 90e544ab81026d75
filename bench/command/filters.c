/* Measures the bytes that filters save.
 *
 * KEYS. The same list of random 64-bit keys is pushed repeatedly, with an f64 for each, as a plain list:
 * without filters, and with `keys`. Over shared memory lists are sent plainly, 8 bytes per key; over TCP
 * they are packed by their gaps.
 *
 * LEARNING (OSDI'14, Algorithm 3 and figures 11 and 12). l1-regularised logistic regression,
 *
 *     minimise  mean_i log(1 + exp(-y_i x_i w)) + lambda sum_j |w_j|,
 *
 * with the step on the servers: the worker pulls w and pushes gradient and bound of all features (g u for
 * each), and the rule `block_proximal` takes the step. The same run, iteration by iteration, with one
 * chain of filters after another, each on a vector of its own. kkt leaves out features with w_j = 0 and
 * |g_j| <= lambda - delta: for these the step would leave the weight at zero, so the run must reach the
 * same objective. At the end everything is pushed once more without filters: if a feature that the filter
 * would have left out then has a non-zero weight, or a gradient beyond lambda, its condition was violated. */
#include "filters.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <pawl/filter.h>
#include <pawl/task.h>

#include "base/hash.h"
#include "base/memory.h"
#include "host/clock.h"

#define PATIENCE (60 * PAWL_SECOND)
#define LIST_KEYS 100000
#define LIST_TIMES 100
#define DELTA 0.1 /* relative to lambda */

static bool fail(const struct pwi_filters_bench *bench, const char *what, pawl_status status) {
  const char *text = pawl_error_text();
  pwi_cli_failure(bench->command, "%s: %s", what, *text ? text : pawl_status_text(status));
  return false;
}

static bool finish(const struct pwi_filters_bench *bench, const char *what, pawl_status status,
                   struct pawl_task *const *task) {
  if (!status) status = pawl_task_finish(*task, PATIENCE);
  return status ? fail(bench, what, status) : true;
}

static struct pawl_session *open_session(const struct pwi_filters_bench *bench, const char *address, bool is_shared) {
  struct pawl_session_options options;
  struct pawl_session *session;
  pawl_session_options_init(&options);
  options.address = address;
  options.servers = 2;
  options.shards = 1;
  options.tcp_only = !is_shared;
  pawl_status status = pawl_session_open(&options, &session);
  if (!status) return session;
  fail(bench, "cannot start a cluster", status);
  return NULL;
}

static bool make_vector(const struct pwi_filters_bench *bench, struct pawl_session *session, size_t number,
                        const char *rule, const char *filters, struct pawl_vector **vector_out) {
  struct pawl_vector_options options;
  char name[64];
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  options.placement = PAWL_PLACE_ORDERED;
  options.layout = PAWL_LAYOUT_SPARSE;
  snprintf(options.rule, sizeof options.rule, "%s", rule);
  snprintf(options.filters, sizeof options.filters, "%s", filters);
  snprintf(name, sizeof name, "bench/filters%zu", number);
  pawl_status status = pawl_vector_create(session, name, &options, PATIENCE, vector_out);
  return status ? fail(bench, "cannot create a vector", status) : true;
}

static void note_bytes(struct pawl_vector *vector, const struct pwi_filters_row *first, struct pwi_filters_row *row) {
  struct pawl_vector_traffic traffic;
  pawl_vector_traffic(vector, &traffic);
  row->bytes_out = traffic.bytes_out;
  row->bytes_in = traffic.bytes_in;
  double all = (double)(first->bytes_out + first->bytes_in);
  row->ratio = (double)(row->bytes_out + row->bytes_in) / all;
}

/* --- keys ----------------------------------------------------------------------------------------------- */

static void fill_list(uint64_t *keys, double *values) {
  for (uint64_t i = 0; i < LIST_KEYS; i++) {
    uint64_t stride = UINT64_MAX / LIST_KEYS;
    keys[i] = i * stride + pwi_mix64(i) % stride;
    values[i] = 1;
  }
}

static bool push_list(const struct pwi_filters_bench *bench, struct pawl_vector *vector, const uint64_t *keys,
                      const double *values) {
  for (int i = 0; i < LIST_TIMES; i++) {
    struct pawl_task *task;
    pawl_status status = pawl_vector_push(vector, pawl_at_keys(keys, LIST_KEYS), values, &task);
    if (!finish(bench, "a push", status, &task)) return false;
  }
  return true;
}

static bool measure_lists(const struct pwi_filters_bench *bench, struct pawl_session *session, const char *link,
                          size_t number, struct pwi_filters_row *rows) {
  static const char *const chains[2] = {"none", "keys"};
  uint64_t *keys = pwi_alloc_zero(LIST_KEYS, sizeof *keys);
  double *values = pwi_alloc_zero(LIST_KEYS, sizeof *values);
  bool ok = keys && values;
  if (ok) fill_list(keys, values);
  for (size_t i = 0; i < 2 && ok; i++) {
    struct pawl_vector *vector;
    rows[i] = (struct pwi_filters_row){.scene = "keys", .filter = chains[i], .link = link, .objective = NAN};
    int64_t begin = pwi_host_now();
    ok = make_vector(bench, session, number + i, "", chains[i], &vector) && push_list(bench, vector, keys, values);
    rows[i].seconds = (double)(pwi_host_now() - begin) / 1e9;
    if (ok) note_bytes(vector, &rows[0], &rows[i]);
  }
  pwi_free(keys);
  pwi_free(values);
  return ok;
}

/* --- learning ------------------------------------------------------------------------------------------- */

struct learner {
  const struct pwi_filters_bench *bench;
  struct pwi_examples examples;
  double lambda;
  double *weights, *gradient, *bound;
  double *pushed, *known; /* g u for each feature, and w for each value */
  struct pawl_vector *vector;
};

/* The smallest lambda for which all weights are zero. */
static double largest_gradient(const struct learner *learner) {
  double most = 0;
  for (size_t j = 0; j < learner->examples.features; j++) most = fmax(most, fabs(learner->gradient[j]));
  return most;
}

static bool begin_learning(const struct pwi_filters_bench *bench, struct learner *learner) {
  *learner = (struct learner){.bench = bench};
  if (!pwi_examples_make(bench, &learner->examples)) return false;
  size_t count = learner->examples.features;
  learner->weights = pwi_alloc_zero(count, sizeof *learner->weights);
  learner->gradient = pwi_alloc_zero(count, sizeof *learner->gradient);
  learner->bound = pwi_alloc_zero(count, sizeof *learner->bound);
  learner->pushed = pwi_alloc_zero(2 * count, sizeof *learner->pushed);
  learner->known = pwi_alloc_zero(2 * count, sizeof *learner->known);
  if (!learner->weights || !learner->gradient || !learner->bound || !learner->pushed || !learner->known) {
    pwi_cli_failure(bench->command, "not enough memory for the model");
    return false;
  }
  pwi_examples_loss(&learner->examples, learner->weights, learner->gradient, learner->bound);
  learner->lambda = bench->l1 * largest_gradient(learner);
  return true;
}

static void end_learning(struct learner *learner) {
  pwi_examples_fini(&learner->examples);
  pwi_free(learner->weights);
  pwi_free(learner->gradient);
  pwi_free(learner->bound);
  pwi_free(learner->pushed);
  pwi_free(learner->known);
}

static bool pull(struct learner *learner) {
  struct pawl_task *task;
  struct pawl_where all = pawl_at_keys(learner->examples.keys, learner->examples.features);
  return finish(learner->bench, "a pull", pawl_vector_pull(learner->vector, all, learner->weights, &task), &task);
}

static bool push(struct learner *learner) {
  struct pawl_task *task;
  struct pawl_where all = pawl_at_keys(learner->examples.keys, learner->examples.features);
  for (size_t j = 0; j < learner->examples.features; j++) {
    learner->pushed[2 * j] = learner->gradient[j];
    learner->pushed[2 * j + 1] = learner->bound[j];
    learner->known[2 * j] = learner->weights[j];
  }
  pawl_status status = pawl_vector_push_filtered(learner->vector, all, learner->pushed, learner->known, &task);
  return finish(learner->bench, "a push", status, &task);
}

static double objective(const struct learner *learner) {
  double norm = 0;
  for (size_t j = 0; j < learner->examples.features; j++) norm += fabs(learner->weights[j]);
  return pwi_examples_loss(&learner->examples, learner->weights, NULL, NULL) + learner->lambda * norm;
}

/* A row for kkt: its gradient is the first of two values. */
static bool is_safely_zero(void *context, uint64_t key, const void *weights, const void *gradients) {
  const struct learner *learner = context;
  (void)key;
  double weight = ((const double *)weights)[0], gradient = ((const double *)gradients)[0];
  return weight == 0 && fabs(gradient) <= (1 - DELTA) * learner->lambda;
}

static uint64_t rows_passed(const struct learner *learner) {
  struct pawl_filter_counters counters;
  uint64_t passed = 0;
  for (size_t i = 0; pawl_vector_filter_counters(learner->vector, PAWL_ON_PUSH, i, &counters) == PAWL_OK; i++)
    if (strcmp(counters.name, "kkt") == 0) passed = counters.rows_after;
  return passed;
}

static bool step(struct learner *learner) {
  if (!pull(learner)) return false;
  pwi_examples_loss(&learner->examples, learner->weights, learner->gradient, learner->bound);
  return push(learner);
}

static bool iterate(struct learner *learner, struct pwi_filters_row *row) {
  for (uint32_t i = 0; i < learner->bench->iterations; i++) {
    uint64_t before = rows_passed(learner);
    if (!step(learner)) return false;
    uint64_t passed = rows_passed(learner);
    row->left_out = passed > 0 ? 1 - (double)(passed - before) / (double)learner->examples.features : 0;
    if (passed > 0 && i < PWI_FILTERS_CURVE) row->curve[row->curve_count++] = row->left_out;
  }
  return pull(learner);
}

/* Pushes everything once more, without filters. */
static bool look_for_violations(struct learner *learner, struct pwi_filters_row *row) {
  size_t count = learner->examples.features;
  pawl_status status = pawl_vector_filter(learner->vector, "none", NULL);
  if (status) return fail(learner->bench, "no filters", status);
  for (size_t j = 0; j < count; j++) row->nonzeros += learner->weights[j] != 0;
  double *before = pwi_alloc_zero(count, sizeof *before);
  if (!before) return fail(learner->bench, "a last pass", PAWL_NO_MEMORY);
  memcpy(before, learner->weights, count * sizeof *before);
  bool ok = step(learner);
  for (size_t j = 0; j < count && ok; j++) {
    bool is_left_out = before[j] == 0 && fabs(learner->gradient[j]) <= (1 - DELTA) * learner->lambda;
    before[j] = is_left_out ? 0 : 1;
  }
  ok = ok && pull(learner);
  if (ok) pwi_examples_loss(&learner->examples, learner->weights, learner->gradient, NULL);
  for (size_t j = 0; j < count && ok; j++)
    row->violated += before[j] == 0 && (learner->weights[j] != 0 || fabs(learner->gradient[j]) > learner->lambda);
  pwi_free(before);
  return ok;
}

static bool learn(struct learner *learner, struct pawl_session *session, const char *chain, size_t number,
                  const struct pwi_filters_row *first, struct pwi_filters_row *row) {
  char rule[64], text[PAWL_FILTERS_OPTION_MAX + 1];
  struct pawl_filters_options options;
  *row = (struct pwi_filters_row){.scene = "learning", .filter = chain, .link = "tcp", .lambda = learner->lambda};
  snprintf(rule, sizeof rule, "block_proximal l1=%.17g", learner->lambda);
  if (!make_vector(learner->bench, session, number, rule, "", &learner->vector)) return false;
  bool has_kkt = strncmp(chain, "kkt", 3) == 0;
  if (has_kkt)
    snprintf(text, sizeof text, "kkt(lambda=%.17g)%s", learner->lambda, chain + 3);
  else
    snprintf(text, sizeof text, "%s", chain);
  pawl_filters_options_init(&options);
  options.kkt_rule = is_safely_zero;
  options.kkt_context = learner;
  pawl_status status = pawl_vector_filter(learner->vector, text, &options);
  if (status) return fail(learner->bench, "filters", status);
  int64_t begin = pwi_host_now();
  if (!iterate(learner, row)) return false;
  row->seconds = (double)(pwi_host_now() - begin) / 1e9;
  note_bytes(learner->vector, first ? first : row, row);
  row->objective = objective(learner);
  row->objective_off = first ? fabs(row->objective - first->objective) : 0;
  return look_for_violations(learner, row);
}

/* --- the benchmark -------------------------------------------------------------------------------------- */

static bool learn_all(const struct pwi_filters_bench *bench, struct pawl_session *session, size_t number,
                      struct pwi_filters_row *rows, size_t *count) {
  static const char *const chains[] = {"none",         "keys",
                                       "keys | zeros", "keys | compress(with=zstd)",
                                       "kkt | keys",   "kkt | keys | zeros | compress(with=zstd)"};
  size_t first = *count;
  struct learner learner;
  bool ok = begin_learning(bench, &learner);
  for (size_t i = 0; i < sizeof chains / sizeof *chains && ok; i++) {
    ok = learn(&learner, session, chains[i], number + i, i > 0 ? &rows[first] : NULL, &rows[*count]);
    if (ok) ++*count;
  }
  end_learning(&learner);
  return ok;
}

bool pwi_filters_bench_run(const struct pwi_filters_bench *bench, struct pwi_filters_row rows[PWI_FILTERS_ROWS],
                           size_t *count_out) {
  struct pawl_session *shared = open_session(bench, NULL, true), *tcp = NULL;
  size_t count = 0;
  if (!shared) return false;
  bool ok = measure_lists(bench, shared, "shared", count, rows);
  if (ok) ok = (tcp = open_session(bench, pawl_session_address(shared), false)) != NULL;
  if (ok) ok = measure_lists(bench, tcp, "tcp", 2, rows + 2);
  count = 4;
  if (ok) ok = learn_all(bench, tcp, 4, rows, &count);
  if (tcp) pawl_session_close(tcp, PATIENCE);
  pawl_session_close(shared, PATIENCE);
  *count_out = count;
  return ok;
}
