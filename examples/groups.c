/* Groups: workers that advance together.
 *
 *   build/examples/groups
 *
 * Four workers each have a session of their own, as four processes would. Here they are threads that use
 * the cluster embedded by the main thread. In each round a worker adds its share to a sum; at the barrier
 * it waits for the others; then all read the same sum.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

enum { WORKERS = 4, ROUNDS = 3 };

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "groups: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

static const char *address; /* of the cluster */

static void *work(void *unused) {
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.address = address;
  options.job = "groups";
  struct pawl_session *session;
  must(pawl_session_open(&options, &session));

  /* Every worker makes the same call; the first one creates the vector. */
  struct pawl_vector_options shape;
  pawl_vector_options_init(&shape);
  shape.type = PAWL_I64;
  shape.size = ROUNDS;
  struct pawl_vector *sums;
  must(pawl_vector_ensure(session, "groups/sums", &shape, 10 * PAWL_SECOND, &sums));

  /* No worker passes the first barrier before WORKERS have joined. From then on members may come and go: a
   * dead member is not waited for. */
  struct pawl_group *group;
  must(pawl_group_join(session, "groups/workers", WORKERS, 10 * PAWL_SECOND, &group));

  for (uint64_t round = 0; round < ROUNDS; round++) {
    int64_t share = (int64_t)round + 1, sum;
    struct pawl_task *task;
    must(pawl_vector_push(sums, pawl_at_keys(&round, 1), &share, NULL)); /* the barrier waits for it */
    must(pawl_group_barrier(group, 30 * PAWL_SECOND));
    must(pawl_vector_pull(sums, pawl_at_keys(&round, 1), &sum, &task));
    must(pawl_task_finish(task, 10 * PAWL_SECOND));
    if (pawl_group_rank(group) == 0)
      printf("round %d: %u workers, sum %lld\n", (int)round, pawl_group_size(group), (long long)sum);
    must(pawl_group_barrier(group, 30 * PAWL_SECOND)); /* so that no worker leaves before all have read */
  }
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return unused;
}

int main(void) {
  struct pawl_session *cluster;
  must(pawl_session_open(NULL, &cluster));
  address = pawl_session_address(cluster);
  pthread_t threads[WORKERS];
  for (int i = 0; i < WORKERS; i++)
    if (pthread_create(&threads[i], NULL, work, NULL) != 0) return 1;
  for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  must(pawl_session_close(cluster, 10 * PAWL_SECOND)); /* and with it the embedded cluster */
  return 0;
}
