/* The lasso by proximal gradient steps that the servers take (OSDI'14 3.3):
 *
 *   minimise over w:  1/(2n) |X w - y|^2 + l1 |w|_1
 *
 *   build/examples/proximal
 *
 * The worker pulls w and pushes the gradient g, as in any method. The step w <- shrink(w - rate g, rate l1) is the row
 * function `proximal`, which the servers run over w and g. Only three numbers come back: how many weights are not zero,
 * the sum of their absolute values, and how far they have moved, which says when to stop.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

enum { FEATURES = 400, ROWS = 200, RELEVANT = 8, STEPS_MAX = 2000 };
#define L1 0.02

static double x[ROWS][FEATURES], y[ROWS], w[FEATURES], g[FEATURES];

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "proximal: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

/* Signs at random; y depends on few features only. */
static void make_data(void) {
  uint32_t random = 12345;
  for (int row = 0; row < ROWS; row++) {
    for (int f = 0; f < FEATURES; f++) {
      random = random * 1664525 + 1013904223;
      x[row][f] = random >> 31 ? 1 : -1;
    }
    for (int f = 0; f < RELEVANT; f++) y[row] += (1 + f % 3) * x[row][f * (FEATURES / RELEVANT)];
  }
}

/* g = X^T (X w - y) / n; returns the loss. */
static double differentiate(void) {
  double loss = 0;
  for (int f = 0; f < FEATURES; f++) g[f] = 0;
  for (int row = 0; row < ROWS; row++) {
    double residual = -y[row];
    for (int f = 0; f < FEATURES; f++) residual += x[row][f] * w[f];
    for (int f = 0; f < FEATURES; f++) g[f] += x[row][f] * residual / ROWS;
    loss += residual * residual / (2 * ROWS);
  }
  return loss;
}

static struct pawl_vector *vector(struct pawl_session *session, const char *name) {
  struct pawl_vector_options options;
  struct pawl_vector *made;
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  options.size = FEATURES;
  options.function = PAWL_ASSIGN;
  must(pawl_vector_ensure(session, name, &options, 10 * PAWL_SECOND, &made));
  return made;
}

int main(void) {
  struct pawl_session *session;
  struct pawl_task *task;
  double results[3] = {0}, loss = 0; /* nonzero, norm_1, moved */
  char step[64];
  int steps = 0;
  must(pawl_session_open(NULL, &session));
  struct pawl_vector *weights = vector(session, "lasso/w"), *gradient = vector(session, "lasso/g");
  make_data();
  snprintf(step, sizeof step, "proximal rate=0.15 l1=%g", L1);
  do {
    must(pawl_vector_pull(weights, pawl_at_range(0, FEATURES), w, &task));
    must(pawl_task_finish(task, 10 * PAWL_SECOND));
    loss = differentiate();
    must(pawl_vector_push(gradient, pawl_at_range(0, FEATURES), g, NULL));
    must(pawl_vector_run(weights, gradient, PAWL_ALL, step, &task)); /* after the push: no need to wait for it */
    must(pawl_task_wait(task, 10 * PAWL_SECOND));
    pawl_task_results(task, results, 3);
    pawl_task_release(task);
  } while (++steps < STEPS_MAX && results[2] > 1e-20);
  printf("%d steps: loss %.4f, %.0f of %d weights are not zero, their sum is %.2f\n", steps, loss, results[0], FEATURES,
         results[1]);
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return results[2] > 1e-20 ? 3 : 0;
}
