/* Calls in order: `after`, tasks with parts, and the effect of failures.
 *
 *   build/examples/after
 *
 * All calls are made at once. The library starts each call when the tasks that it comes after have
 * finished; the program waits only for the last. See docs/tasks.md.
 */
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

enum { KEYS = 1000, STEPS = 5 };

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "after: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

static struct pawl_vector *make(struct pawl_session *session, const char *name) {
  struct pawl_vector_options options;
  struct pawl_vector *vector;
  pawl_vector_options_init(&options);
  options.size = KEYS;
  must(pawl_vector_ensure(session, name, &options, 10 * PAWL_SECOND, &vector));
  return vector;
}

/* Copies one vector onto another, as a part of the task `whole`: the push reads the values that the pull
 * has filled in. */
static void copy(struct pawl_vector *from, struct pawl_vector *to, float *room, struct pawl_task *whole) {
  struct pawl_where all = pawl_part_of(pawl_at_range(0, KEYS), whole);
  struct pawl_task *pulled;
  must(pawl_vector_pull(from, all, room, &pulled));
  must(pawl_vector_push(to, pawl_after(all, &pulled, 1), room, NULL));
  pawl_task_release(pulled);
}

int main(void) {
  struct pawl_session *session;
  must(pawl_session_open(NULL, &session));
  struct pawl_vector *weights = make(session, "after/weights"), *sums = make(session, "after/sums");
  static float ones[KEYS], room[STEPS][KEYS], seen[KEYS];
  for (int i = 0; i < KEYS; i++) ones[i] = 1;

  /* Five times: add one to the weights, then add the weights to the sums. Each step comes after the one
   * before. */
  struct pawl_task *last = NULL;
  for (int step = 0; step < STEPS; step++) {
    struct pawl_task *whole, *pushed;
    struct pawl_where all = pawl_at_range(0, KEYS);
    must(pawl_vector_push(weights, pawl_after(all, &last, last ? 1 : 0), ones, &pushed));
    pawl_task_release(last);
    must(pawl_task_begin(session, "copy", &whole));
    struct pawl_task *pulled;
    must(pawl_vector_pull(weights, pawl_part_of(pawl_after(all, &pushed, 1), whole), room[step], &pulled));
    must(pawl_vector_push(sums, pawl_part_of(pawl_after(all, &pulled, 1), whole), room[step], NULL));
    must(pawl_task_end(whole, PAWL_OK)); /* no more parts will come */
    pawl_task_release(pulled);
    pawl_task_release(pushed);
    last = whole;
  }
  must(pawl_task_finish(last, 10 * PAWL_SECOND));
  struct pawl_task *task;
  must(pawl_vector_pull(sums, pawl_at_range(0, KEYS), seen, &task));
  must(pawl_task_finish(task, 10 * PAWL_SECOND));
  printf("1 + 2 + 3 + 4 + 5 is %g\n", (double)seen[KEYS - 1]);

  /* A waiting task says what it waits for; a task that comes after a failure names it. */
  struct pawl_task *whole, *held;
  char text[200];
  must(pawl_task_begin(session, "reading the data", &whole));
  copy(weights, sums, room[0], whole);
  must(pawl_vector_push(sums, pawl_after(pawl_at_range(0, KEYS), &whole, 1), ones, &held));
  pawl_task_describe(held, text, sizeof text);
  printf("%s\n", text);
  must(pawl_task_end(whole, PAWL_TRUNCATED)); /* the file was too short */
  pawl_status status = pawl_task_wait(held, 10 * PAWL_SECOND);
  printf("%s\n", pawl_error_text());
  pawl_task_release(whole);
  pawl_task_release(held);

  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return status == PAWL_CANCELLED ? 0 : 1;
}
