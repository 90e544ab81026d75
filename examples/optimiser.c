/* Weights that a server function updates: workers push gradients, and the servers take AdaGrad's steps.
 *
 *   build/examples/optimiser
 *
 * Fits y = 2 + 3 x1 - x2 to points on that plane. This program computes gradients only; it knows nothing
 * of steps and rates.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/pawl.h>

#define POINTS 200
#define STEPS 100

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "optimiser: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

/* Mean squared error at w, and its gradient. The points are always the same. */
static double loss_at(const double *w, double *gradient) {
  double loss = 0;
  memset(gradient, 0, 3 * sizeof *gradient);
  for (int i = 0; i < POINTS; i++) {
    double x[] = {1, (i % 20) / 10.0 - 1, (i / 20) / 5.0 - 1};
    double error = -(2 + 3 * x[1] - x[2]);
    for (int k = 0; k < 3; k++) error += w[k] * x[k];
    for (int k = 0; k < 3; k++) gradient[k] += 2 * error * x[k] / POINTS;
    loss += error * error / POINTS;
  }
  return loss;
}

int main(void) {
  struct pawl_session *session;
  struct pawl_vector *weights;
  struct pawl_vector_options options;
  must(pawl_session_open(NULL, &session));

  /* The rule defines the effect of a push. Its state, here the sum of squares, lives with the rows on the
   * servers. */
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  options.size = 3;
  strcpy(options.rule, "adagrad rate=0.5");
  must(pawl_vector_ensure(session, "optimiser/weights", &options, 10 * PAWL_SECOND, &weights));

  /* Pushes a gradient and gets the weights after the step. */
  double w[3] = {0}, gradient[3], loss = 0;
  for (int step = 1; step <= STEPS; step++) {
    struct pawl_task *task;
    loss = loss_at(w, gradient);
    if (step == 1 || step % 25 == 0) printf("step %3d  loss %.4f\n", step, loss);
    must(pawl_vector_pushpull(weights, pawl_at_range(0, 3), gradient, w, &task));
    must(pawl_task_finish(task, 10 * PAWL_SECOND));
  }
  printf("y = %.2f + %.2f x1 + %.2f x2\n", w[0], w[1], w[2]);
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return 0;
}
