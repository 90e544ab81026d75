/* The smallest complete program: three numbers go to a server and come back.
 *
 *   build/examples/hello
 *
 * No cluster is needed: without an address, the session starts a manager and a server on this machine and
 * ends them when it is closed. With PAWL_ADDRESS=host:port in the environment the same program uses that
 * cluster.
 */
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

/* Every call that can fail returns a status; pawl_error_text has the details. */
static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "hello: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

int main(void) {
  /* A session is the membership of a process in a cluster. NULL selects the defaults. */
  struct pawl_session *session;
  must(pawl_session_open(NULL, &session));
  printf("cluster at %s\n", pawl_session_address(session));

  /* A vector has a name that is known to all processes. "ensure" opens it, and creates it if it does not
   * exist. Without options it holds one float for each of 2^64 keys; keys that were never written cost
   * nothing and read as zero. */
  struct pawl_vector *weights;
  must(pawl_vector_ensure(session, "hello/weights", NULL, 10 * PAWL_SECOND, &weights));

  /* A push adds values to the stored ones. Keys must increase. Calls return at once and hand out a task;
   * `keys` and `values` belong to the task until it has finished. */
  uint64_t keys[] = {3, 5, 8000000000};
  float values[] = {1.0f, 2.0f, 0.5f};
  struct pawl_task *task;
  for (int i = 0; i < 2; i++) {
    must(pawl_vector_push(weights, pawl_at_keys(keys, 3), values, &task));
    must(pawl_task_finish(task, 10 * PAWL_SECOND)); /* waits, and releases the handle */
  }

  /* A pull fetches values. It sees every earlier push of its own session. */
  float stored[3];
  must(pawl_vector_pull(weights, pawl_at_keys(keys, 3), stored, &task));
  must(pawl_task_finish(task, 10 * PAWL_SECOND));
  for (int i = 0; i < 3; i++) printf("key %llu holds %g\n", (unsigned long long)keys[i], (double)stored[i]);

  /* Closing waits for calls under way and frees the session with everything that was opened in it. */
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return 0;
}
