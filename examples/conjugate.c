/* Conjugate gradients: solves A x = b, where A is far larger than any worker can hold.
 *
 *   build/examples/conjugate
 *
 * The vectors of the method live on the servers, which add, scale and multiply them. A worker only
 * multiplies with A: it pulls p and pushes q = A p. Here A is a long chain of springs, each held in place
 * by another: (A p)_i = 2.1 p_i - p_(i-1) - p_(i+1). Several workers would each do some of the rows, and
 * meet in a group.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

enum { N = 100000, STEPS_MAX = 1000 };

static double p_values[N], q_values[N];

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "conjugate: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

static struct pawl_vector *vector(struct pawl_session *session, const char *name) {
  struct pawl_vector_options options;
  struct pawl_vector *made;
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  options.size = N;
  options.function = PAWL_ASSIGN;
  must(pawl_vector_ensure(session, name, &options, 10 * PAWL_SECOND, &made));
  return made;
}

static double dot(struct pawl_vector *x, struct pawl_vector *y) {
  double result;
  must(pawl_vector_dot(x, y, PAWL_ALL, 10 * PAWL_SECOND, &result));
  return result;
}

/* q = A p: the only step that needs values here. */
static void multiply(struct pawl_vector *q, struct pawl_vector *p) {
  struct pawl_task *task;
  must(pawl_vector_pull(p, pawl_at_range(0, N), p_values, &task));
  must(pawl_task_finish(task, 10 * PAWL_SECOND));
  for (int i = 0; i < N; i++)
    q_values[i] = 2.1 * p_values[i] - (i > 0 ? p_values[i - 1] : 0) - (i < N - 1 ? p_values[i + 1] : 0);
  must(pawl_vector_push(q, pawl_at_range(0, N), q_values, &task));
  must(pawl_task_finish(task, 10 * PAWL_SECOND));
}

int main(void) {
  struct pawl_session *session;
  must(pawl_session_open(NULL, &session));
  struct pawl_vector *x = vector(session, "cg/x"), *r = vector(session, "cg/r");
  struct pawl_vector *p = vector(session, "cg/p"), *q = vector(session, "cg/q");

  /* x = 0, so r = b - A x = b, which is all ones; and p = r. None of these calls waits: their order is
   * kept. */
  must(pawl_vector_fill(x, PAWL_ALL, 0, NULL));
  must(pawl_vector_fill(r, PAWL_ALL, 1, NULL));
  must(pawl_vector_copy(p, r, PAWL_ALL, NULL));
  double rho = dot(r, r);
  int step = 0;
  for (; step < STEPS_MAX && sqrt(rho) > 1e-9; step++) {
    multiply(q, p);
    double alpha = rho / dot(p, q), next;
    must(pawl_vector_axpy(x, alpha, p, PAWL_ALL, NULL));
    must(pawl_vector_axpy(r, -alpha, q, PAWL_ALL, NULL));
    next = dot(r, r);
    must(pawl_vector_scale(p, PAWL_ALL, next / rho, NULL));
    must(pawl_vector_axpy(p, 1, r, PAWL_ALL, NULL));
    rho = next;
  }

  /* The residual, computed anew: b - A x. */
  multiply(q, x);
  must(pawl_vector_fill(r, PAWL_ALL, 1, NULL));
  must(pawl_vector_axpy(r, -1, q, PAWL_ALL, NULL));
  double wrong, longest;
  must(pawl_vector_norm(r, PAWL_ALL, PAWL_NORM_MAX, 10 * PAWL_SECOND, &wrong));
  must(pawl_vector_norm(x, PAWL_ALL, PAWL_NORM_MAX, 10 * PAWL_SECOND, &longest));
  printf("%d unknowns, %d steps: the highest x is %.6f, %s\n", N, step, longest,
         wrong < 1e-8 ? "and A x is b" : "but A x is not b");
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return 0;
}
