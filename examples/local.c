/* Any node may hold a vector: worker to worker, without the servers.
 *
 *   build/examples/local
 *
 * One session opens a vector locally: it keeps a copy of its own, all zeros at first, that is independent
 * of the servers' values. Another session pushes to it and pulls from it by naming the node.
 */
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "local: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

int main(void) {
  /* A session that others must reach names the address on which it listens; port 0 takes any. */
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.listen = "127.0.0.1:0";
  struct pawl_session *owner;
  must(pawl_session_open(&options, &owner));

  struct pawl_vector_options shape;
  pawl_vector_options_init(&shape);
  shape.size = 100;
  struct pawl_vector *created, *held;
  must(pawl_vector_ensure(owner, "local/v", &shape, 10 * PAWL_SECOND, &created));
  must(pawl_vector_open_local(owner, "local/v", 10 * PAWL_SECOND, &held));
  /* tell it to others, by a vector or a message of your own */
  struct pawl_node node = pawl_session_node(owner);

  pawl_session_options_init(&options);
  options.address = pawl_session_address(owner);
  struct pawl_session *other;
  must(pawl_session_open(&options, &other));
  struct pawl_vector *vector;
  must(pawl_vector_open(other, "local/v", 10 * PAWL_SECOND, &vector));

  /* The destination is part of `where`. Everything else is as with servers, exactly-once included. */
  struct pawl_where there = pawl_at_range(10, 13), servers = there;
  there.node = node;
  float values[3] = {1, 2, 3}, pulled[3];
  struct pawl_task *task;
  must(pawl_vector_push(vector, there, values, &task));
  must(pawl_task_finish(task, 10 * PAWL_SECOND));
  must(pawl_vector_pull(vector, there, pulled, &task));
  must(pawl_task_finish(task, 10 * PAWL_SECOND));
  printf("at node %llu: %g %g %g\n", (unsigned long long)node.id, (double)pulled[0], (double)pulled[1],
         (double)pulled[2]);
  must(pawl_vector_pull(vector, servers, pulled, &task));
  must(pawl_task_finish(task, 10 * PAWL_SECOND));
  printf("at the servers: %g %g %g\n", (double)pulled[0], (double)pulled[1], (double)pulled[2]);

  must(pawl_session_close(other, 10 * PAWL_SECOND));
  must(pawl_session_close(owner, 10 * PAWL_SECOND));
  return 0;
}
