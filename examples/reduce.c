/* Reduce: workers that train one model together, without servers.
 *
 *   build/examples/reduce
 *
 * Four workers fit a line to points that only they know: each has its own quarter of the data. Every worker holds
 * a copy of the model, takes a gradient step on its own points, and averages its model with those of its
 * neighbours in a ring. The workers are threads here; they could be processes on four machines. One of them
 * leaves early, and the others go on.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

enum { WORKERS = 4, POINTS = 250, ITERATIONS = 400 };

static const char *address; /* of the cluster */

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "reduce: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

struct worker {
  unsigned index;
  double line[2]; /* slope and intercept: the model */
};

/* One step of gradient descent on the worker's own points, y = 3 x - 1 with some noise. */
static void learn(struct worker *worker, unsigned *random) {
  double slope = 0, intercept = 0;
  for (int i = 0; i < POINTS; i++) {
    double x = (double)(worker->index * POINTS + (unsigned)i) / (WORKERS * POINTS);
    double noise = (double)(rand_r(random) % 1000) / 5000.0 - 0.1;
    double error = worker->line[0] * x + worker->line[1] - (3 * x - 1 + noise);
    slope += error * x / POINTS;
    intercept += error / POINTS;
  }
  worker->line[0] -= 0.8 * slope;
  worker->line[1] -= 0.8 * intercept;
}

static void *work(void *context) {
  struct worker *worker = context;
  struct pawl_tensor tensor = {worker->line, 2, PAWL_F64};
  struct pawl_session_options session_options;
  struct pawl_reduce_options options;
  struct pawl_reduce_report report = {0};
  struct pawl_session *session = NULL;
  struct pawl_peers *peers = NULL;
  struct pawl_reduce *reduce = NULL;
  unsigned random = worker->index + 1;
  unsigned long last = worker->index == 2 ? ITERATIONS / 2 : ITERATIONS;
  pawl_session_options_init(&session_options);
  session_options.address = address;
  session_options.peers_only = true;
  must(pawl_session_open(&session_options, &session));
  must(pawl_peers_join(session, "example/line", WORKERS, 10 * PAWL_SECOND, &peers));
  pawl_reduce_options_init(&options);
  options.graph = "ring";
  must(pawl_reduce_open(peers, "line", &tensor, 1, &options, 10 * PAWL_SECOND, &reduce));
  while (report.iteration < last) {
    learn(worker, &random);
    must(pawl_reduce_step(reduce, 60 * PAWL_SECOND, &report));
  }
  pawl_reduce_close(reduce);
  pawl_peers_leave(peers);
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return NULL;
}

int main(void) {
  struct pawl_session_options options;
  struct pawl_session *session = NULL;
  struct worker workers[WORKERS] = {{0}};
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
    printf("worker %u: y = %.1f x %+.1f%s\n", i, workers[i].line[0], workers[i].line[1], i == 2 ? ", left early" : "");
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return 0;
}
