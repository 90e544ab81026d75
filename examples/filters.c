/* Filters: pushing only significant changes, and the bytes that this saves.
 *
 *   build/examples/filters
 *
 * A thousand sums, few of which change much in any one round. `significant` holds small changes back and
 * sends them once they have accumulated; `keys` and `zeros` compress what is sent. The chain is part of
 * the vector, so every worker that opens the vector uses it. At the end a flush sends what is still held
 * back, and the sums are exact.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/pawl.h>

enum { COUNT = 1000, ROUNDS = 50 };

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "filters: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

static double total(struct pawl_vector *sums) {
  static double values[COUNT];
  struct pawl_task *task;
  double sum = 0;
  must(pawl_vector_pull(sums, pawl_at_range(0, COUNT), values, &task));
  must(pawl_task_finish(task, 10 * PAWL_SECOND));
  for (int i = 0; i < COUNT; i++) sum += values[i];
  return sum;
}

int main(void) {
  struct pawl_session *session;
  must(pawl_session_open(NULL, &session));
  struct pawl_vector_options options;
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  options.size = COUNT;
  strcpy(options.filters, "significant(threshold=8) | keys | zeros");
  struct pawl_vector *sums;
  must(pawl_vector_ensure(session, "filters/sums", &options, 10 * PAWL_SECOND, &sums));

  /* Key k changes by 1 in every round with the same remainder; key 0 changes by 10 each time. */
  static double changes[COUNT];
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < COUNT; i++) changes[i] = i % 10 == round % 10 ? 1 : 0;
    changes[0] = 10;
    struct pawl_task *task;
    must(pawl_vector_push(sums, pawl_at_range(0, COUNT), changes, &task));
    must(pawl_task_finish(task, 10 * PAWL_SECOND));
  }

  struct pawl_filter_counters counters;
  must(pawl_vector_filter_counters(sums, PAWL_ON_PUSH, 0, &counters));
  printf("%s: %llu of %llu rows sent, %zu held\n", counters.name, (unsigned long long)counters.rows_after,
         (unsigned long long)counters.rows_before, counters.held);
  printf("before the flush: %g\n", total(sums));

  struct pawl_task *task;
  must(pawl_vector_flush_filters(sums, &task));
  must(pawl_task_finish(task, 10 * PAWL_SECOND));
  printf("after it: %g\n", total(sums));
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return 0;
}
