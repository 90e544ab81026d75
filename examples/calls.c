/* Functions of workers, called by a scheduler.
 *
 *   build/examples/calls
 *
 * Three workers offer functions under names and do nothing else. A scheduler calls all of them at once, as
 * members of a group; has each of them run a small graph of calls, one after another, without messages in
 * between; and sets a trigger, a push that happens when every worker has reached a tick.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/pawl.h>

enum { WORKERS = 3, NUMBERS = 100 };

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "calls: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

/* --- workers -------------------------------------------------------------------------------------------- */

struct worker {
  struct pawl_session *session;
  struct pawl_group *group;
  struct pawl_vector *steps;
  double numbers[NUMBERS];
  double one; /* added by each step */
};

/* Fills the worker's own part with numbers, starting with the one in the argument. */
static pawl_status load(struct pawl_invocation *invocation, void *context) {
  struct worker *worker = context;
  size_t size;
  const double *first = pawl_invocation_argument(invocation, &size);
  if (size != sizeof *first) return PAWL_INVALID; /* bytes from elsewhere must be checked */
  for (int i = 0; i < NUMBERS; i++) worker->numbers[i] = *first + i;
  return PAWL_OK;
}

static pawl_status square(struct pawl_invocation *invocation, void *context) {
  struct worker *worker = context;
  (void)invocation;
  for (int i = 0; i < NUMBERS; i++) worker->numbers[i] *= worker->numbers[i];
  return PAWL_OK;
}

static pawl_status sum(struct pawl_invocation *invocation, void *context) {
  struct worker *worker = context;
  double result = 0;
  for (int i = 0; i < NUMBERS; i++) result += worker->numbers[i];
  return pawl_invocation_return(invocation, &result, sizeof result);
}

/* Starts a push and a tick without waiting: both are subtasks, and the call has finished when they have. */
static pawl_status step(struct pawl_invocation *invocation, void *context) {
  struct worker *worker = context;
  (void)invocation;
  pawl_status status = pawl_vector_push(worker->steps, pawl_at_range(0, 1), &worker->one, NULL);
  return status ? status : pawl_group_clock(worker->group, NULL);
}

static void start(struct worker *worker, const char *address) {
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.address = address;
  options.listen = "127.0.0.1:0"; /* others must be able to reach us */
  must(pawl_session_open(&options, &worker->session));
  struct pawl_vector_options shape;
  pawl_vector_options_init(&shape);
  shape.type = PAWL_F64;
  shape.size = 1;
  must(pawl_vector_ensure(worker->session, "calls/steps", &shape, 10 * PAWL_SECOND, &worker->steps));
  worker->one = 1;
  must(pawl_function_offer(worker->session, "load", load, worker));
  must(pawl_function_offer(worker->session, "square", square, worker));
  must(pawl_function_offer(worker->session, "sum", sum, worker));
  must(pawl_function_offer(worker->session, "step", step, worker));
  must(pawl_group_join(worker->session, "calls/workers", WORKERS, 10 * PAWL_SECOND, &worker->group));
}

/* --- the scheduler -------------------------------------------------------------------------------------- */

static double add_up(const struct pawl_task *task, uint32_t call) {
  double all = 0;
  for (size_t i = 0; i < pawl_answer_count(task); i++) {
    struct pawl_answer answer;
    double part;
    must(pawl_answer_get(task, i, &answer));
    if (answer.call != call || answer.size != sizeof part) continue;
    memcpy(&part, answer.bytes, sizeof part);
    all += part;
  }
  return all;
}

int main(void) {
  static struct worker workers[WORKERS];
  struct pawl_session *session;
  must(pawl_session_open(NULL, &session));
  for (int i = 0; i < WORKERS; i++) start(&workers[i], pawl_session_address(session));

  /* One function, called at every member of the group. */
  struct pawl_target all = pawl_to_group("calls/workers");
  struct pawl_task *task;
  double first = 1;
  must(pawl_call(session, all, "load", &first, sizeof first, &task));
  must(pawl_task_finish(task, 10 * PAWL_SECOND));

  /* A graph, sent as a whole: the sum comes after the square. */
  struct pawl_graph_call calls[] = {{"sum", NULL, 0}, {"square", NULL, 0}};
  struct pawl_edge after[] = {{1, 0}};
  must(pawl_call_graph(session, all, calls, 2, after, 1, &task));
  must(pawl_task_wait(task, 10 * PAWL_SECOND));
  printf("%d workers, sum of squares %g\n", WORKERS, add_up(task, 0));
  pawl_task_release(task);

  /* A push that waits until all workers have reached tick 1, so their pushes before it are applied. */
  struct pawl_vector *steps;
  struct pawl_task *trigger;
  double hundred = 100, seen = 0;
  must(pawl_vector_open(session, "calls/steps", 10 * PAWL_SECOND, &steps));
  must(pawl_trigger(session, "calls/workers", 1, steps, pawl_at_range(0, 1), &hundred, &trigger));
  must(pawl_call(session, all, "step", NULL, 0, &task));
  must(pawl_task_finish(task, 10 * PAWL_SECOND));
  must(pawl_task_finish(trigger, 10 * PAWL_SECOND));
  must(pawl_vector_pull(steps, pawl_at_range(0, 1), &seen, &task));
  must(pawl_task_finish(task, 10 * PAWL_SECOND));
  printf("after tick 1: %g\n", seen);

  /* An error names the function and the node. */
  must(pawl_call(session, pawl_to_node(pawl_session_node(workers[0].session)), "fly", NULL, 0, &task));
  if (pawl_task_finish(task, 10 * PAWL_SECOND) != PAWL_OK) printf("%s\n", pawl_error_text());

  for (int i = 0; i < WORKERS; i++) must(pawl_session_close(workers[i].session, 10 * PAWL_SECOND));
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return 0;
}
