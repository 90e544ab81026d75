/* A user-defined consistency policy: `window`.
 *
 *   build/examples/policy_window             the policy of this file
 *   build/examples/policy_window "ssp 2"     one of pawl's
 *
 * Three workers push ones. The policy permits a worker's next iteration when at most `own` of its own are
 * under way and no worker is more than `lead` behind. docs/add-a-policy.md explains this file.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

enum { WORKERS = 3, ITERATIONS = 50, KEYS = 1000 };

/* --- the policy ----------------------------------------------------------------------------------------- */

struct window {
  uint64_t own, lead;
};

/* Whether this iteration may start. It decides by its arguments alone. */
static bool lets(void *context, uint64_t iteration, const struct pawl_progress *progress) {
  const struct window *window = context;
  bool own_is_near = progress->finished + window->own + 1 >= iteration;
  bool all_are_near = progress->slowest >= iteration || progress->slowest + window->lead + 1 >= iteration;
  return own_is_near && all_are_near;
}

static struct window window = {.own = 4, .lead = 2};

/* --- a program that uses it ----------------------------------------------------------------------------- */

static const char *address, *policy;

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "policy_window: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

static void run(struct pawl_vector *vector, struct pawl_iterations *iterations) {
  static float ones[KEYS];
  for (int i = 0; i < ITERATIONS; i++) {
    struct pawl_task *task;
    uint64_t number;
    must(pawl_iteration_begin(iterations, 30 * PAWL_SECOND, &number)); /* waits as the policy demands */
    must(pawl_vector_push(vector, pawl_at_range(0, KEYS), ones, &task));
    must(pawl_iteration_add(iterations, task)); /* the iteration lasts until this has finished */
    pawl_task_release(task);
    must(pawl_iteration_end(iterations, NAN));
  }
}

static void *work(void *argument) {
  struct pawl_session_options options;
  struct pawl_session *session;
  struct pawl_vector_options shape;
  struct pawl_vector *vector;
  struct pawl_group *group;
  struct pawl_iterations *iterations;
  (void)argument;
  pawl_session_options_init(&options);
  options.address = address;
  must(pawl_session_open(&options, &session));
  pawl_vector_options_init(&shape);
  shape.size = KEYS;
  must(pawl_vector_ensure(session, "window/sums", &shape, 10 * PAWL_SECOND, &vector));
  must(pawl_group_join(session, "window/workers", WORKERS, 10 * PAWL_SECOND, &group));
  if (policy)
    must(pawl_iterations_create(session, group, policy, &iterations));
  else
    must(pawl_iterations_create_user(session, group, lets, &window, &iterations));
  run(vector, iterations);
  must(pawl_session_flush(session, 10 * PAWL_SECOND));
  struct pawl_iterations_figures figures;
  pawl_iterations_figures(iterations, &figures);
  printf("%llu iterations, %llu finished\n", (unsigned long long)figures.begun, (unsigned long long)figures.finished);
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return NULL;
}

int main(int argc, char **argv) {
  struct pawl_session *cluster;
  pthread_t threads[WORKERS];
  policy = argc > 1 ? argv[1] : NULL;
  must(pawl_session_open(NULL, &cluster));
  address = pawl_session_address(cluster);
  for (int i = 0; i < WORKERS; i++)
    if (pthread_create(&threads[i], NULL, work, NULL) != 0) return 1;
  for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  must(pawl_session_close(cluster, 10 * PAWL_SECOND));
  return 0;
}
