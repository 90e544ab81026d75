/* Collectives: workers that add up their gradients, and go on when one of them is lost.
 *
 *   build/examples/collective
 *
 * Four workers fit a line to points that only they know: each has its own quarter of the data. In every iteration
 * they add up their gradients with an all-reduce, so that all of them take the same step and have the same model,
 * bit by bit. One worker leaves in the middle. The others get PAWL_NODE_GONE, renew the collective, and agree on the
 * iteration from which they go on. The workers are threads here; they could be processes on four machines.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/pawl.h>

enum { WORKERS = 4, POINTS = 250, ITERATIONS = 600 };

#define LIMIT (60 * PAWL_SECOND)

static const char *address; /* of the cluster */

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "collective: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

struct model {
  double line[2]; /* slope and intercept */
  double iteration;
};

struct worker {
  unsigned index;
  struct pawl_collective *collective;
  struct model model, last; /* before and after the last iteration: a worker may be one iteration ahead */
  unsigned renewals;
};

/* The gradient of the squared error on the worker's own points, y = 3 x - 1, and the number of points. */
static void look_at_points(const struct worker *worker, double gradient[3]) {
  memset(gradient, 0, 3 * sizeof *gradient);
  for (int i = 0; i < POINTS; i++) {
    double x = (double)(worker->index * POINTS + (unsigned)i) / (WORKERS * POINTS);
    double error = worker->model.line[0] * x + worker->model.line[1] - (3 * x - 1);
    gradient[0] += error * x;
    gradient[1] += error;
    gradient[2] += 1;
  }
}

static pawl_status learn(struct worker *worker) {
  double gradient[3];
  look_at_points(worker, gradient);
  pawl_status status =
      pawl_collective_all_reduce(worker->collective, gradient, gradient, 3, PAWL_F64, PAWL_COLLECTIVE_SUM, LIMIT);
  if (status) return status;
  worker->last = worker->model;
  worker->model.line[0] -= 0.8 * gradient[0] / gradient[2];
  worker->model.line[1] -= 0.8 * gradient[1] / gradient[2];
  worker->model.iteration++;
  return PAWL_OK;
}

/* All remaining workers begin anew, from the last iteration that each of them has completed. */
static pawl_status recover(struct worker *worker) {
  double iteration = worker->model.iteration;
  pawl_status status = pawl_collective_renew(worker->collective, LIMIT);
  if (!status)
    status =
        pawl_collective_all_reduce(worker->collective, &iteration, &iteration, 1, PAWL_F64, PAWL_COLLECTIVE_MIN, LIMIT);
  if (!status && iteration < worker->model.iteration) worker->model = worker->last;
  worker->renewals++;
  return status;
}

static bool is_repairable(pawl_status status) { return status == PAWL_NODE_GONE || status == PAWL_CANCELLED; }

static void *work(void *context) {
  struct worker *worker = context;
  struct pawl_session_options options;
  struct pawl_session *session = NULL;
  struct pawl_peers *peers = NULL;
  double last = worker->index == 2 ? ITERATIONS / 2 : ITERATIONS;
  pawl_session_options_init(&options);
  options.address = address;
  options.peers_only = true;
  must(pawl_session_open(&options, &session));
  must(pawl_peers_join(session, "example/sums", WORKERS, LIMIT, &peers));
  must(pawl_collective_open(peers, "gradients", LIMIT, &worker->collective));
  while (worker->model.iteration < last) {
    pawl_status status = learn(worker);
    if (is_repairable(status)) status = recover(worker);
    if (!is_repairable(status)) must(status);
  }
  pawl_collective_close(worker->collective);
  pawl_peers_leave(peers);
  must(pawl_session_close(session, LIMIT));
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
    printf("worker %u: y = %.1f x %+.1f%s\n", i, workers[i].model.line[0], workers[i].model.line[1],
           i == 2                ? ", left early"
           : workers[i].renewals ? ", went on"
                                 : "");
  bool are_same = memcmp(&workers[0].model, &workers[1].model, sizeof workers[0].model) == 0 &&
                  memcmp(&workers[0].model, &workers[3].model, sizeof workers[0].model) == 0;
  printf("the models of the others are %s\n", are_same ? "the same, bit by bit" : "different");
  must(pawl_session_close(session, LIMIT));
  return are_same ? 0 : 1;
}
