/* Logistic regression after Algorithm 1 of "Scaling Distributed Machine Learning with the Parameter
 * Server" (OSDI'14):
 *
 *   minimise over w:  1/n sum_i log(1 + exp(-y_i <x_i, w>))
 *
 * `logistic data.libsvm` runs by itself; `PAWL_ADDRESS=host:port logistic data.libsvm 4` is one of four
 * workers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <pawl/pawl.h>

enum { ITERATIONS = 30, FEATURES = 1 << 20, ENTRIES = 1 << 24, EXAMPLES = 1 << 20 };
static const double ETA = 8;

struct part { /* the data: example i has the entries first[i] to first[i + 1] */
  uint32_t count, total, *feature;
  uint64_t *first;
  float *label, *value;
};

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "logistic: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

/* Reads every example whose number is `rank` modulo the workers: "label feature:value feature:value …",
 * one per line. */
static struct part load(const char *path, uint32_t rank, uint32_t workers) {
  struct part part = {0, 0, calloc(ENTRIES, 4), calloc(EXAMPLES + 1, 8), calloc(EXAMPLES, 4), calloc(ENTRIES, 4)};
  char *line = NULL, *at, *end;
  size_t room = 0;
  FILE *file = fopen(path, "r");
  if (!file || !part.first || !part.feature || !part.label || !part.value) must(PAWL_IO);
  for (; getline(&line, &room, file) > 0 && part.count < EXAMPLES; part.total++) {
    if (part.total % workers != rank) continue;
    uint64_t entry = part.first[part.count];
    part.label[part.count++] = strtof(line, &at) > 0 ? 1 : -1;
    for (; entry < ENTRIES; entry++, at = end) {
      part.feature[entry] = (uint32_t)(strtoul(at, &end, 10) % FEATURES);
      if (*end != ':') break;
      part.value[entry] = strtof(end + 1, &end);
    }
    part.first[part.count] = entry;
  }
  free(line), fclose(file);
  return part;
}

int main(int argc, char **argv) {
  uint32_t workers = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
  if (argc < 2 || workers == 0) return fputs("usage: logistic FILE [WORKERS]\n", stderr), 2;
  struct pawl_session *session;
  struct pawl_vector *weights; /* one key per feature, and behind them one per iteration for the objective */
  struct pawl_group *group;
  struct pawl_keys *list;
  struct pawl_task *task;
  must(pawl_session_open(NULL, &session));
  struct pawl_vector_options options;
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  must(pawl_vector_ensure(session, "logistic/w", &options, 10 * PAWL_SECOND, &weights));
  must(pawl_group_join(session, "logistic/workers", workers, 10 * PAWL_SECOND, &group));
  /* all are here, so ranks are fixed until a member leaves */
  must(pawl_group_barrier(group, 60 * PAWL_SECOND));

  /* LoadData: this worker's part, and its working set, the features that occur in it. */
  struct part x = load(argv[1], pawl_group_rank(group), workers);
  uint64_t entries = x.first[x.count], *keys = calloc(FEATURES, sizeof *keys);
  uint32_t *place = calloc(FEATURES, sizeof *place), count = 0;
  double *w = calloc(FEATURES, sizeof *w), *step = calloc(FEATURES, sizeof *step); /* -ETA * gradient */
  double *z = calloc(EXAMPLES, sizeof *z);
  if (!place || !keys || !w || !step || !z) must(PAWL_NO_MEMORY);
  for (uint64_t e = 0; e < entries; e++) place[x.feature[e]] = 1;
  for (uint32_t f = 0; f < FEATURES; f++)
    if (place[f]) place[f] = count, keys[count++] = f;
  for (uint64_t e = 0; e < entries; e++) x.feature[e] = place[x.feature[e]];
  struct pawl_matrix *rows;
  struct pawl_matrix_data data = {
      .rows = x.count, .columns = count, .values = x.value, .starts = x.first, .at = x.feature};
  struct pawl_range all = pawl_range_of(0, x.count);
  must(pawl_matrix_create(&data, 0, &rows));
  must(pawl_keys_create(weights, keys, count, &list));

  for (uint64_t t = 0, slot = FEATURES; t < ITERATIONS; t++, slot++) {
    must(pawl_vector_pull(weights, pawl_at_list(list), w, &task));
    must(pawl_task_finish(task, 10 * PAWL_SECOND));
    must(pawl_group_barrier(group, 60 * PAWL_SECOND)); /* no worker pushes before all have pulled */
    double objective = 0;
    must(pawl_matrix_times(rows, all, w, 1, z)); /* z = X w */
    for (uint32_t i = 0; i < x.count; i++) {
      double margin = x.label[i] * z[i];
      z[i] = ETA * x.label[i] / (1 + exp(margin)) / x.total;
      objective += log1p(exp(-margin)) / x.total;
    }
    for (uint32_t k = 0; k < count; k++) step[k] = 0;
    must(pawl_matrix_transposed_times(rows, all, z, 1, step));       /* step += X^T z */
    must(pawl_vector_push(weights, pawl_at_list(list), step, NULL)); /* servers add up the workers' pushes */
    must(pawl_vector_push(weights, pawl_at_keys(&slot, 1), &objective, NULL));
    must(pawl_group_barrier(group, 60 * PAWL_SECOND)); /* also waits for our own pushes */
    must(pawl_vector_pull(weights, pawl_at_keys(&slot, 1), &objective, &task));
    must(pawl_task_finish(task, 10 * PAWL_SECOND));
    if (pawl_group_rank(group) == 0) printf("iteration %2d: objective %.5f\n", (int)t, objective);
  }
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  pawl_matrix_destroy(rows);
  free(x.first), free(x.feature), free(x.label), free(x.value);
  free(place), free(keys), free(w), free(step), free(z);
  return 0;
}
