/* Prepared lists and shared buffers, for pushing and pulling the same keys repeatedly.
 *
 *   build/examples/lists
 *
 * A learner touches the same features in every iteration. It prepares their list once: the list is checked
 * and sent once, servers keep it with the places of its rows, and later calls send a signature of a few
 * bytes. Values are in a buffer that servers on the same machine read in place, without a copy.
 */
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

enum { COUNT = 10000, ROUNDS = 100 };

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "lists: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

int main(void) {
  struct pawl_session *session;
  must(pawl_session_open(NULL, &session));
  struct pawl_vector_options options;
  pawl_vector_options_init(&options);
  options.size = 1000000;
  struct pawl_vector *weights;
  must(pawl_vector_ensure(session, "lists/weights", &options, 10 * PAWL_SECOND, &weights));

  /* Every 97th key, for example. The list belongs to this vector; the array is copied and may be freed. */
  static uint64_t keys[COUNT];
  for (uint64_t i = 0; i < COUNT; i++) keys[i] = 97 * i;
  struct pawl_keys *list;
  must(pawl_keys_create(weights, keys, COUNT, &list));

  void *memory;
  must(pawl_buffer_create(session, COUNT * sizeof(float), &memory));
  float *values = memory;

  /* pushpull adds, and fetches the result in the same message. Both arrays may be the same. */
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < COUNT; i++) values[i] = 1;
    struct pawl_task *task;
    must(pawl_vector_pushpull(weights, pawl_at_list(list), values, values, &task));
    must(pawl_task_finish(task, 10 * PAWL_SECOND));
  }
  printf("%d keys, %d rounds: the first holds %g, the last %g\n", COUNT, ROUNDS, (double)values[0],
         (double)values[COUNT - 1]);

  /* A range beside a list selects some of its keys. The array still has a row for every key of the list;
   * rows outside the range are ignored. */
  struct pawl_where some = pawl_at_list(list);
  some.range = pawl_range_of(0, 200);
  for (int i = 0; i < COUNT; i++) values[i] = -1;
  struct pawl_task *task;
  must(pawl_vector_pull(weights, some, values, &task));
  must(pawl_task_finish(task, 10 * PAWL_SECOND));
  for (int i = 0; i < 4; i++) printf("key %llu: %g\n", (unsigned long long)keys[i], (double)values[i]);

  /* Lists and buffers may be freed; closing the session frees them, too. */
  pawl_keys_destroy(list);
  pawl_buffer_destroy(session, memory);
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return 0;
}
