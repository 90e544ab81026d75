/* Sufficient factors: workers that learn a matrix together, and never send it.
 *
 *   build/examples/factor
 *
 * Four workers learn a matrix of 40 x 60 values from answers y = A x to questions that only they know. The gradient for one
 * question is the product of the error, 40 values, and the question, 60 values: each worker sends these 100 values instead
 * of 2400. All of them take the same steps and have the same matrix, bit by bit. One leaves in the middle, and the others
 * go on. The workers are threads here; they could be processes on four machines.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

enum { WORKERS = 4, ROWS = 40, COLUMNS = 60, BATCH = 8, COMMITS = 200 };

#define LIMIT (60 * PAWL_SECOND)
#define RATE 0.05

static const char *address; /* of the cluster */

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "factor: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

struct worker {
  unsigned index;
  double matrix[ROWS * COLUMNS];
  uint64_t hash, sent;
};

/* The matrix that is to be found. */
static double answer_at(size_t row, size_t column) { return sin((double)(row * COLUMNS + column)); }

static void ask(const struct worker *worker, unsigned *random, double *error, double *question) {
  for (size_t j = 0; j < COLUMNS; j++) question[j] = (double)(rand_r(random) % 2000) / 1000 - 1;
  for (size_t i = 0; i < ROWS; i++) {
    error[i] = 0;
    for (size_t j = 0; j < COLUMNS; j++) error[i] += (worker->matrix[i * COLUMNS + j] - answer_at(i, j)) * question[j];
  }
}

static double distance(const struct worker *worker) {
  double most = 0;
  for (size_t i = 0; i < ROWS * COLUMNS; i++)
    most = fmax(most, fabs(worker->matrix[i] - answer_at(i / COLUMNS, i % COLUMNS)));
  return most;
}

static void learn(struct worker *worker, struct pawl_factor *factor, unsigned *random,
                  struct pawl_factor_report *report) {
  double error[ROWS], question[COLUMNS];
  for (int i = 0; i < BATCH; i++) {
    ask(worker, random, error, question);
    const struct pawl_factor_vector u = {error, NULL, ROWS}, v = {question, NULL, COLUMNS};
    must(pawl_factor_add(factor, &u, &v));
  }
  must(pawl_factor_commit(factor, -RATE / BATCH, RATE, LIMIT, report));
}

static void *work(void *context) {
  struct worker *worker = context;
  struct pawl_session_options options;
  struct pawl_factor_report report = {0};
  struct pawl_factor_state state;
  struct pawl_session *session = NULL;
  struct pawl_peers *peers = NULL;
  struct pawl_factor *factor = NULL;
  unsigned random = worker->index + 1;
  uint64_t last = worker->index == 2 ? COMMITS / 2 : COMMITS;
  pawl_session_options_init(&options);
  options.address = address;
  options.peers_only = true;
  must(pawl_session_open(&options, &session));
  must(pawl_peers_join(session, "example/matrix", WORKERS, LIMIT, &peers));
  must(pawl_factor_open(peers, "w", worker->matrix, ROWS, COLUMNS, PAWL_F64, NULL, LIMIT, &factor));
  while (report.clock < last) learn(worker, factor, &random, &report);
  must(pawl_factor_hash(factor, &worker->hash));
  pawl_factor_state(factor, &state);
  worker->sent = state.sent + state.shown;
  pawl_factor_close(factor);
  pawl_peers_leave(peers);
  must(pawl_session_close(session, LIMIT));
  return NULL;
}

int main(void) {
  static struct worker workers[WORKERS];
  struct pawl_session_options options;
  struct pawl_session *session = NULL;
  pthread_t threads[WORKERS];
  pawl_session_options_init(&options);
  options.peers_only = true; /* starts a cluster that is only a manager */
  must(pawl_session_open(&options, &session));
  address = pawl_session_address(session);
  for (unsigned i = 0; i < WORKERS; i++) {
    workers[i].index = i;
    if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) return 1;
  }
  for (unsigned i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  for (unsigned i = 0; i < WORKERS; i++)
    printf("worker %u: the largest error is %.3f%s\n", i, distance(&workers[i]), i == 2 ? ", left early" : "");
  bool are_same = workers[0].hash == workers[1].hash && workers[0].hash == workers[3].hash;
  printf("the matrices of the others are %s\n", are_same ? "the same, bit by bit" : "different");
  printf("worker 0 sent %llu bytes\n", (unsigned long long)workers[0].sent);
  must(pawl_session_close(session, LIMIT));
  return are_same ? 0 : 1;
}
