/* Logistic regression after Algorithm 1 of "Scaling Distributed Machine Learning with the Parameter Server" (OSDI'14):
 *
 *   minimise over w:  1/n sum_i log(1 + exp(-y_i <x_i, w>))  +  L1 |w|  +  L2/2 |w|^2
 *
 *   build/examples/logistic [workers] [file.libsvm]
 *
 * Workers are threads with a session each; with PAWL_ADDRESS set, this process is one of `workers` at that cluster. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <pawl/pawl.h>

enum { ITERATIONS = 30, EXAMPLES = 4000, EXAMPLES_MAX = 20000, FEATURES_MAX = 1 << 20, WIDTH = 64, WORKERS_MAX = 64 };
static const float ETA = 8, L1 = 1e-5f, L2 = 1e-5f;
static const char *address, *path;
static unsigned workers = 2;

struct example {
  float label, value[WIDTH];
  uint32_t feature[WIDTH], count;
};

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "logistic: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

/* Example number i out of the file, or made up: 500 features, of which each third speaks for +1 and the others for -1. */
static int read_example(FILE *file, uint64_t i, struct example *x) {
  static _Thread_local char line[1 << 16];
  char *at = line, *end;
  *x = (struct example){0};
  if (file ? !fgets(line, sizeof line, file) : i >= EXAMPLES) return 0;
  if (file) x->label = strtof(line, &at);
  for (; file && x->count < WIDTH; x->count++) {
    x->feature[x->count] = (uint32_t)(strtoul(at, &end, 10) % FEATURES_MAX);
    if (*end != ':') break;
    x->value[x->count] = strtof(end + 1, &at);
  }
  for (; !file && x->count < 12; x->count++) {
    i = i * 6364136223846793005 + 1442695040888963407;
    x->feature[x->count] = (uint32_t)((i >> 40) % 500);
    x->value[x->count] = 1;
    x->label += x->feature[x->count] % 3 ? -0.5f : 1;
  }
  x->label = x->label > 0 ? 1 : -1;
  return 1;
}

static void *work(void *unused) {
  struct pawl_session_options options = {.address = address};
  struct pawl_session *session;
  struct pawl_vector *weights; /* one key per feature, and behind them one per iteration for the objective */
  struct pawl_group *group;
  struct pawl_keys *list;
  struct pawl_task *task;
  must(pawl_session_open(&options, &session));
  must(pawl_vector_ensure(session, "logistic/w", NULL, 10 * PAWL_SECOND, &weights));
  must(pawl_group_join(session, "logistic/workers", workers, 10 * PAWL_SECOND, &group));
  must(pawl_group_barrier(group, 60 * PAWL_SECOND)); /* all are here, */
  uint32_t rank = pawl_group_rank(group);            /* so ranks are fixed until somebody leaves */

  /* LoadData: each worker's part, and its working set, which is the features that occur in it. */
  struct example *data = calloc(EXAMPLES_MAX, sizeof *data), *x = data, *end;
  uint64_t *keys = calloc(FEATURES_MAX, sizeof *keys), total = 0, count = 0;
  float *w = calloc(FEATURES_MAX, sizeof *w), *step = calloc(FEATURES_MAX, sizeof *step);
  uint32_t *place = calloc(FEATURES_MAX, sizeof *place); /* of a feature in the working set; step: -ETA * gradient */
  FILE *file = path ? fopen(path, "r") : NULL;
  if (!data || !keys || !w || !step || !place || (path && !file)) exit(1);
  for (; x < data + EXAMPLES_MAX && read_example(file, total, x); total++) x += total % workers == rank;
  if (file) fclose(file);
  for (end = x, x = data; x < end; x++)
    for (uint32_t j = 0; j < x->count; j++) place[x->feature[j]] = 1;
  for (uint32_t feature = 0; feature < FEATURES_MAX; feature++)
    if (place[feature]) place[feature] = (uint32_t)count, keys[count++] = feature;
  must(pawl_keys_create(weights, keys, count, &list));

  for (uint64_t t = 0, slot = FEATURES_MAX; t < ITERATIONS; t++, slot++) {
    must(pawl_vector_pull(weights, pawl_at_list(list), w, &task));
    must(pawl_task_finish(task, 10 * PAWL_SECOND));
    must(pawl_group_barrier(group, 60 * PAWL_SECOND)); /* nobody pushes before all have pulled */
    float objective = 0, share = 1 / (float)workers, n = (float)total;
    for (uint64_t k = 0; k < count; k++) { /* of the regulariser each worker adds its share */
      objective += share * (L1 * fabsf(w[k]) + L2 / 2 * w[k] * w[k]);
      step[k] = -ETA * share * (L1 * (float)((w[k] > 0) - (w[k] < 0)) + L2 * w[k]);
    }
    for (x = data; x < end; x++) {
      float margin = 0;
      for (uint32_t j = 0; j < x->count; j++) margin += x->label * x->value[j] * w[place[x->feature[j]]];
      for (uint32_t j = 0; j < x->count; j++)
        step[place[x->feature[j]]] += ETA * x->label * x->value[j] / (1 + expf(margin)) / n;
      objective += log1pf(expf(-margin)) / n;
    }
    must(pawl_vector_push(weights, pawl_at_list(list), step, NULL)); /* servers add up what workers push */
    must(pawl_vector_push(weights, pawl_at_keys(&slot, 1), &objective, NULL));
    must(pawl_group_barrier(group, 60 * PAWL_SECOND)); /* also waits for our own pushes */
    must(pawl_vector_pull(weights, pawl_at_keys(&slot, 1), &objective, &task));
    must(pawl_task_finish(task, 10 * PAWL_SECOND));
    if (rank == 0) printf("iteration %2d: objective %.5f\n", (int)t, (double)objective);
  }
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  free(data), free(keys), free(w), free(step), free(place);
  return unused;
}

int main(int argc, char **argv) {
  struct pawl_session *cluster;
  pthread_t threads[WORKERS_MAX];
  if (argc > 1) workers = (unsigned)atoi(argv[1]);
  if (argc > 2) path = argv[2];
  if (workers < 1 || workers > WORKERS_MAX) return 2;
  if (getenv("PAWL_ADDRESS")) return work(NULL) != NULL;
  must(pawl_session_open(NULL, &cluster));
  address = pawl_session_address(cluster);
  for (unsigned i = 0; i < workers; i++)
    must(pthread_create(&threads[i], NULL, work, NULL) ? PAWL_NODE_LIMIT : PAWL_OK);
  for (unsigned i = 0; i < workers; i++) pthread_join(threads[i], NULL);
  must(pawl_session_close(cluster, 10 * PAWL_SECOND));
  return 0;
}
