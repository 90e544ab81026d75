/* Tasks: many calls under way at once, callbacks, and failures.
 *
 *   build/examples/tasks
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

enum { CALLS = 100 };

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "tasks: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

/* Runs in a thread that is inside a call of the session, or in the session's own thread. It may start
 * other calls, and should not wait. */
static void count(void *context, struct pawl_task *task) {
  atomic_fetch_add((atomic_int *)context, 1);
  pawl_task_release(task);
}

int main(void) {
  struct pawl_session *session;
  must(pawl_session_open(NULL, &session));
  struct pawl_vector_options options;
  pawl_vector_options_init(&options);
  options.size = 1000;
  struct pawl_vector *sums;
  must(pawl_vector_ensure(session, "tasks/sums", &options, 10 * PAWL_SECOND, &sums));

  /* Without a handle. Each call has values of its own, because they belong to the task until it has
   * finished; flush waits for all of them, and reports the first failure. */
  static float ones[CALLS][10];
  for (int i = 0; i < CALLS; i++) {
    for (int j = 0; j < 10; j++) ones[i][j] = 1;
    must(pawl_vector_push(sums, pawl_at_range(0, 10), ones[i], NULL));
  }
  must(pawl_session_flush(session, 10 * PAWL_SECOND));

  /* With a callback. */
  static float pulled[CALLS];
  static atomic_int done;
  for (int i = 0; i < CALLS; i++) {
    struct pawl_task *task;
    must(pawl_vector_pull(sums, pawl_at_range(5, 6), &pulled[i], &task));
    must(pawl_task_on_done(task, count, &done));
  }
  /* all have finished; the last callback may still run */
  must(pawl_session_flush(session, 10 * PAWL_SECOND));
  while (atomic_load(&done) < CALLS) continue;
  printf("%d pulls, each of them saw %g\n", atomic_load(&done), (double)pulled[CALLS - 1]);

  /* An invalid call is refused at once, and starts nothing. */
  uint64_t unsorted[] = {4, 7, 7};
  struct pawl_task *task;
  if (pawl_vector_push(sums, pawl_at_keys(unsorted, 3), ones, &task) == PAWL_UNSORTED)
    printf("refused: %s\n", pawl_error_text());

  /* A task that fails later says where. Here another client deletes a vector that we still have open. */
  must(pawl_vector_delete(session, "tasks/sums", 10 * PAWL_SECOND));
  pawl_status status = pawl_vector_push(sums, pawl_at_range(0, 10), ones[0], &task);
  if (status == PAWL_OK) {
    status = pawl_task_wait(task, 10 * PAWL_SECOND);
    char text[200];
    pawl_task_describe(task, text, sizeof text);
    printf("failed: %s\n", text);
    pawl_task_release(task);
  } else {
    printf("failed: %s\n", pawl_error_text());
  }

  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return status == PAWL_NOT_FOUND ? 0 : 1;
}
