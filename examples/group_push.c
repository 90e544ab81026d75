/* Aggregated pushes: the gradients of all workers are applied as one.
 *
 *   build/examples/group_push
 *
 * Four workers fit w to the mean of their targets by gradient steps. In each round every worker pushes its
 * gradient for the same keys with pawl_group_push: the servers add the four up, apply the sum once, and
 * send their replicas one change instead of four. The task finishes when all members' pushes are applied,
 * so every worker then pulls the same weights.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

enum { WORKERS = 4, ROUNDS = 20, KEYS = 1000 };

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "group_push: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

static const char *address; /* of the cluster */

static void *work(void *argument) {
  float target = *(const float *)argument, weights[KEYS] = {0}, steps[KEYS];
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.address = address;
  struct pawl_session *session;
  must(pawl_session_open(&options, &session));

  struct pawl_vector_options shape;
  pawl_vector_options_init(&shape);
  shape.size = KEYS;
  struct pawl_vector *vector;
  must(pawl_vector_ensure(session, "together/weights", &shape, 10 * PAWL_SECOND, &vector));
  struct pawl_group *group;
  must(pawl_group_join(session, "together/workers", WORKERS, 10 * PAWL_SECOND, &group));

  struct pawl_task *task;
  struct pawl_where all = pawl_at_range(0, KEYS);
  for (int round = 0; round < ROUNDS; round++) {
    for (size_t i = 0; i < KEYS; i++) steps[i] = 0.5f / WORKERS * (target - weights[i]);
    /* Once in each tick, by every member, with the same keys. */
    must(pawl_group_push(group, vector, all, steps, &task));
    must(pawl_task_finish(task, 30 * PAWL_SECOND));
    must(pawl_vector_pull(vector, all, weights, &task));
    must(pawl_task_finish(task, 10 * PAWL_SECOND));
    must(pawl_group_barrier(group, 30 * PAWL_SECOND)); /* the tick is over */
  }
  if (pawl_group_rank(group) == 0) printf("%d workers, %d rounds: w is %.3f\n", WORKERS, ROUNDS, (double)weights[17]);
  must(pawl_group_barrier(group, 30 * PAWL_SECOND)); /* no worker leaves before all have read */
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return NULL;
}

int main(void) {
  float targets[WORKERS] = {1, 2, 3, 4};
  struct pawl_session *cluster;
  must(pawl_session_open(NULL, &cluster));
  address = pawl_session_address(cluster);
  pthread_t threads[WORKERS];
  for (int i = 0; i < WORKERS; i++)
    if (pthread_create(&threads[i], NULL, work, &targets[i]) != 0) return 1;
  for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  must(pawl_session_close(cluster, 10 * PAWL_SECOND));
  return 0;
}
