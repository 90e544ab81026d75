/* Calls between sessions at one embedded cluster: functions, graphs, subtasks, triggers, tasks of others. */
#include "scene.h"

#include <pthread.h>
#include <stdatomic.h>

static struct pawl_session *session, *callee;
static struct pawl_node node;

static struct pawl_session *open_listening(const char *address) {
  struct pawl_session_options options;
  struct pawl_session *opened = NULL;
  pawl_session_options_init(&options);
  options.address = address;
  options.listen = "127.0.0.1:0";
  must(pawl_session_open(&options, &opened));
  return opened;
}

static int open_cluster(void **state) {
  (void)state;
  session = open_embedded(1, 2);
  callee = open_listening(pawl_session_address(session));
  node = pawl_session_node(callee);
  return 0;
}

static int close_cluster(void **state) {
  (void)state;
  must(pawl_session_close(callee, PATIENCE));
  must(pawl_session_close(session, PATIENCE));
  return 0;
}

/* --- functions that are called -------------------------------------------------------------------------------------------- */

/* The argument backwards. */
static pawl_status reverse(struct pawl_invocation *invocation, void *context) {
  size_t size;
  const char *argument = pawl_invocation_argument(invocation, &size);
  char result[64];
  (void)context;
  if (size > sizeof result) return PAWL_TOO_LARGE;
  for (size_t i = 0; i < size; i++) result[i] = argument[size - 1 - i];
  return pawl_invocation_return(invocation, result, size);
}

static pawl_status refuse(struct pawl_invocation *invocation, void *context) {
  (void)context;
  must(pawl_invocation_return(invocation, "why", 3));
  return PAWL_REFUSED;
}

/* A gate that functions wait at, and a count of those who passed. */
struct gate {
  pthread_mutex_t mutex;
  pthread_cond_t moved;
  bool is_open;
  int inside, passed;
};

static void gate_init(struct gate *gate, bool is_open) {
  *gate = (struct gate){.is_open = is_open};
  pthread_mutex_init(&gate->mutex, NULL);
  pthread_cond_init(&gate->moved, NULL);
}

static void gate_open(struct gate *gate) {
  pthread_mutex_lock(&gate->mutex);
  gate->is_open = true;
  pthread_cond_broadcast(&gate->moved);
  pthread_mutex_unlock(&gate->mutex);
}

static pawl_status pass(struct pawl_invocation *invocation, void *context) {
  struct gate *gate = context;
  (void)invocation;
  pthread_mutex_lock(&gate->mutex);
  gate->inside++;
  pthread_cond_broadcast(&gate->moved);
  while (!gate->is_open) pthread_cond_wait(&gate->moved, &gate->mutex);
  gate->inside--;
  gate->passed++;
  pthread_mutex_unlock(&gate->mutex);
  return PAWL_OK;
}

static void gate_await_inside(struct gate *gate, int count) {
  pthread_mutex_lock(&gate->mutex);
  while (gate->inside < count) pthread_cond_wait(&gate->moved, &gate->mutex);
  pthread_mutex_unlock(&gate->mutex);
}

static pawl_status call(struct pawl_target target, const char *name, const void *argument, size_t size,
                        struct pawl_task **task_out) {
  must(pawl_call(session, target, name, argument, size, task_out));
  return pawl_task_wait(*task_out, PATIENCE);
}

/* --- calls ---------------------------------------------------------------------------------------------------------------- */

static void test_a_call_brings_back_what_the_function_returned(void **state) {
  (void)state;
  struct pawl_task *task;
  struct pawl_answer answer;
  must(pawl_function_offer(callee, "text/reverse", reverse, NULL));
  must(call(pawl_to_node(node), "text/reverse", "pawl", 4, &task));
  assert_int_equal(pawl_answer_count(task), 1);
  must(pawl_answer_get(task, 0, &answer));
  assert_int_equal(answer.node.id, node.id);
  assert_int_equal(answer.call, 0);
  assert_int_equal(answer.size, 4);
  assert_memory_equal(answer.bytes, "lwap", 4);
  must_fail(pawl_answer_get(task, 1, &answer), PAWL_NOT_FOUND, "answer 1");
  pawl_task_release(task);
  must(call(pawl_to_node(node), "text/reverse", NULL, 0, &task));
  must(pawl_answer_get(task, 0, &answer));
  assert_int_equal(answer.size, 0);
  pawl_task_release(task);
  must_fail(pawl_function_offer(callee, "text/reverse", reverse, NULL), PAWL_EXISTS, "text/reverse");
  must(pawl_function_withdraw(callee, "text/reverse"));
  must_fail(pawl_function_withdraw(callee, "text/reverse"), PAWL_NOT_FOUND, "text/reverse");
}

static void test_failures_name_the_function_and_the_node(void **state) {
  (void)state;
  struct pawl_task *task;
  struct pawl_answer answer;
  char where[64];
  snprintf(where, sizeof where, "at node %llu", (unsigned long long)node.id);
  must_fail(call(pawl_to_node(node), "nobody/has-this", NULL, 0, &task), PAWL_NOT_FOUND, "call of nobody/has-this at");
  assert_non_null(strstr(pawl_error_text(), where));
  pawl_task_release(task);
  must(pawl_function_offer(callee, "refuse", refuse, NULL));
  must_fail(call(pawl_to_node(node), "refuse", NULL, 0, &task), PAWL_REFUSED, where);
  must(pawl_answer_get(task, 0, &answer));
  assert_int_equal(answer.status, PAWL_REFUSED);
  assert_memory_equal(answer.bytes, "why", 3);
  pawl_task_release(task);
  must(pawl_function_withdraw(callee, "refuse"));
  struct pawl_node stranger = {node.id + 1000};
  must_fail(call(pawl_to_node(stranger), "refuse", NULL, 0, &task), PAWL_NODE_GONE, "call of refuse at node");
  pawl_task_release(task);
  must_fail(call(pawl_to_node(pawl_session_node(session)), "refuse", NULL, 0, &task), PAWL_NOT_FOUND, "refuse");
  pawl_task_release(task);
  struct pawl_session *quiet = open_beside(session, false);
  must_fail(call(pawl_to_node(pawl_session_node(quiet)), "refuse", NULL, 0, &task), PAWL_UNSUPPORTED, "refuse");
  pawl_task_release(task);
  must(pawl_session_close(quiet, PATIENCE));
}

static void test_what_is_wrong_with_a_call_is_found_at_once(void **state) {
  (void)state;
  struct pawl_task *task;
  static char large[PAWL_CALL_BYTES + 1];
  must_fail(pawl_call(session, pawl_to_node(node), "two words", NULL, 0, &task), PAWL_INVALID, "two words");
  must_fail(pawl_call(session, pawl_to_node(node), ".wait", NULL, 0, &task), PAWL_INVALID, "are reserved");
  must_fail(pawl_call(session, pawl_to_node(node), "f", NULL, 1, &task), PAWL_INVALID, "'f'");
  must_fail(pawl_call(session, pawl_to_node(node), "f", large, sizeof large, &task), PAWL_TOO_LARGE, "call of f");
  must_fail(pawl_call(session, pawl_to_group("nogroup"), "f", NULL, 0, &task), PAWL_INVALID, "nogroup");
  must_fail(pawl_call(session, pawl_to_group(NULL), "f", NULL, 0, &task), PAWL_INVALID, "two words");
  must_fail(pawl_function_offer(session, "f", reverse, NULL), PAWL_INVALID, "listen");
  must_fail(pawl_function_offer(callee, ".f", reverse, NULL), PAWL_INVALID, "'.f'");
  must_fail(pawl_function_offer(callee, NULL, reverse, NULL), PAWL_INVALID, "name");
  struct pawl_session *reader = open_beside(session, true);
  must_fail(pawl_call(reader, pawl_to_node(node), "f", NULL, 0, &task), PAWL_FORBIDDEN, "call of f");
  must(pawl_session_close(reader, PATIENCE));
}

static pawl_status echo(struct pawl_invocation *invocation, void *context) {
  size_t size;
  const void *argument = pawl_invocation_argument(invocation, &size);
  (void)context;
  return pawl_invocation_return(invocation, argument, size);
}

/* Several at once, so that they have to wait for one another. */
static void test_arguments_and_results_may_be_large(void **state) {
  (void)state;
  static unsigned char bytes[PAWL_CALL_BYTES - 64];
  struct pawl_task *tasks[4];
  struct pawl_answer answer;
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 31 >> 3);
  must(pawl_function_offer(callee, "echo", echo, NULL));
  for (int i = 0; i < 4; i++)
    must(pawl_call(session, pawl_to_node(node), "echo", bytes, sizeof bytes - (size_t)i, &tasks[i]));
  for (int i = 0; i < 4; i++) {
    must(pawl_task_wait(tasks[i], PATIENCE));
    must(pawl_answer_get(tasks[i], 0, &answer));
    assert_int_equal(answer.size, sizeof bytes - (size_t)i);
    assert_true(memcmp(answer.bytes, bytes, answer.size) == 0);
    pawl_task_release(tasks[i]);
  }
  must(pawl_function_withdraw(callee, "echo"));
}

static void test_time_that_runs_out_ends_the_waiting_only(void **state) {
  (void)state;
  struct gate gate;
  struct pawl_task *task;
  gate_init(&gate, false);
  must(pawl_function_offer(callee, "pass", pass, &gate));
  must(pawl_call(session, pawl_to_node(node), "pass", NULL, 0, &task));
  gate_await_inside(&gate, 1);
  must_fail(pawl_task_wait(task, 1000), PAWL_TIMED_OUT, "call of pass");
  gate_open(&gate);
  must(pawl_task_finish(task, PATIENCE));
  assert_int_equal(gate.passed, 1);
  must(pawl_function_withdraw(callee, "pass"));
}

static void test_one_call_that_takes_long_does_not_stop_those_behind_it(void **state) {
  (void)state;
  struct gate gate;
  struct pawl_task *task;
  gate_init(&gate, false);
  must(pawl_function_offer(callee, "pass", pass, &gate));
  must(pawl_function_offer(callee, "echo", echo, NULL));
  must(pawl_call(session, pawl_to_node(node), "pass", NULL, 0, &task));
  gate_await_inside(&gate, 1);
  for (int round = 0; round < 30; round++) {
    struct pawl_task *others[100];
    for (int i = 0; i < 100; i++) must(pawl_call(session, pawl_to_node(node), "echo", "12345678", 8, &others[i]));
    for (int i = 0; i < 100; i++) must(pawl_task_finish(others[i], PATIENCE));
  }
  assert_false(pawl_task_is_done(task));
  gate_open(&gate);
  must(pawl_task_finish(task, PATIENCE));
  must(pawl_function_withdraw(callee, "pass"));
  must(pawl_function_withdraw(callee, "echo"));
}

/* One that waits does not keep others from running. */
static void test_functions_run_side_by_side(void **state) {
  (void)state;
  struct gate gate;
  struct pawl_task *tasks[PAWL_CALL_THREADS];
  gate_init(&gate, false);
  must(pawl_function_offer(callee, "pass", pass, &gate));
  for (int i = 0; i < PAWL_CALL_THREADS; i++) must(pawl_call(session, pawl_to_node(node), "pass", NULL, 0, &tasks[i]));
  gate_await_inside(&gate, PAWL_CALL_THREADS);
  gate_open(&gate);
  for (int i = 0; i < PAWL_CALL_THREADS; i++) must(pawl_task_finish(tasks[i], PATIENCE));
  for (int i = 0; i < 500; i++) must(pawl_call(session, pawl_to_node(node), "pass", NULL, 0, NULL));
  must(pawl_session_flush(session, PATIENCE));
  assert_int_equal(gate.passed, PAWL_CALL_THREADS + 500);
  must(pawl_function_withdraw(callee, "pass"));
  must(pawl_call(session, pawl_to_node(node), "pass", NULL, 0, NULL));
  must_fail(pawl_session_flush(session, PATIENCE), PAWL_NOT_FOUND, "without a handle");
}

static pawl_status tell_rank(struct pawl_invocation *invocation, void *context) {
  return pawl_invocation_return(invocation, context, sizeof(uint32_t));
}

static void test_all_members_of_a_group_are_called(void **state) {
  (void)state;
  struct pawl_session *workers[3];
  struct pawl_group *groups[3];
  uint32_t ranks[3];
  struct pawl_task *task;
  for (int i = 0; i < 3; i++) {
    workers[i] = open_listening(pawl_session_address(session));
    must(pawl_group_join(workers[i], "call/crew", 3, PATIENCE, &groups[i]));
  }
  for (uint32_t i = 0; i < 3; i++) {
    ranks[i] = pawl_group_rank(groups[i]);
    must(pawl_function_offer(workers[i], "rank", tell_rank, &ranks[i]));
  }
  /* From outside, and from a member, which is called as well. */
  for (int from = 0; from < 2; from++) {
    must(pawl_call(from == 0 ? session : workers[0], pawl_to_group("call/crew"), "rank", NULL, 0, &task));
    must(pawl_task_wait(task, PATIENCE));
    assert_int_equal(pawl_answer_count(task), 3);
    for (uint32_t i = 0; i < 3; i++) {
      struct pawl_answer answer;
      must(pawl_answer_get(task, i, &answer));
      assert_int_equal(answer.node.id, pawl_session_node(workers[i]).id);
      assert_int_equal(answer.size, sizeof ranks[i]);
      assert_memory_equal(answer.bytes, &ranks[i], sizeof ranks[i]);
    }
    pawl_task_release(task);
  }
  must(pawl_function_withdraw(workers[1], "rank"));
  must_fail(call(pawl_to_group("call/crew"), "rank", NULL, 0, &task), PAWL_NOT_FOUND, "call of rank at node");
  pawl_task_release(task);
  must_fail(call(pawl_to_group("call/others"), "rank", NULL, 0, &task), PAWL_NOT_FOUND, "rank");
  assert_int_equal(pawl_answer_count(task), 0);
  pawl_task_release(task);
  for (int i = 0; i < 3; i++) must(pawl_session_close(workers[i], PATIENCE));
}

/* --- subtasks ------------------------------------------------------------------------------------------------------------- */

struct chore {
  struct pawl_vector *vector;
  struct pawl_node other;
  int64_t one;
  uint64_t key;
};

/* Starts a push and a call, waits for neither, and returns. */
static pawl_status send_chores(struct pawl_invocation *invocation, void *context) {
  struct chore *chore = context;
  (void)invocation;
  pawl_status status = pawl_vector_push(chore->vector, pawl_at_keys(&chore->key, 1), &chore->one, NULL);
  return status ? status : pawl_call(callee, pawl_to_node(chore->other), "pass", NULL, 0, NULL);
}

static void test_a_call_has_finished_when_all_that_it_issued_has(void **state) {
  (void)state;
  struct gate gate;
  struct pawl_task *task;
  int64_t value = 0;
  struct pawl_session *third = open_listening(pawl_session_address(session));
  struct chore chore = {create(callee, "call/sums", PAWL_I64, 10), pawl_session_node(third), 1, 3};
  gate_init(&gate, false);
  must(pawl_function_offer(third, "pass", pass, &gate));
  must(pawl_function_offer(callee, "chores", send_chores, &chore));
  must(pawl_call(session, pawl_to_node(node), "chores", NULL, 0, &task));
  gate_await_inside(&gate, 1);
  must_fail(pawl_task_wait(task, PAWL_SECOND / 100), PAWL_TIMED_OUT, "chores");
  gate_open(&gate);
  must(pawl_task_finish(task, PATIENCE));
  pull(chore.vector, pawl_at_keys(&chore.key, 1), &value);
  assert_int_equal(value, 1);
  must(pawl_function_withdraw(third, "pass"));
  must_fail(call(pawl_to_node(node), "chores", NULL, 0, &task), PAWL_NOT_FOUND, "call of chores at node");
  pawl_task_release(task);
  must(pawl_session_flush(callee, PATIENCE) == PAWL_NOT_FOUND ? PAWL_OK : PAWL_CORRUPT);
  must(pawl_function_withdraw(callee, "chores"));
  pawl_vector_close(chore.vector);
  must(pawl_session_close(third, PATIENCE));
}

struct station {
  struct pawl_session *session;
  struct pawl_node nodes[2];
};

/* Calls itself, through the net and through itself, and waits. */
static pawl_status count_down(struct pawl_invocation *invocation, void *context) {
  size_t size;
  const struct station *here = context;
  unsigned char left = *(const unsigned char *)pawl_invocation_argument(invocation, &size);
  struct pawl_task *task;
  if (left-- == 0) return pawl_invocation_return(invocation, "end", 3);
  pawl_status status = pawl_call(here->session, pawl_to_node(here->nodes[left % 2]), "down", &left, 1, &task);
  if (!status) status = pawl_task_wait(task, PATIENCE);
  struct pawl_answer answer;
  if (!status) status = pawl_answer_get(task, 0, &answer);
  if (!status) status = pawl_invocation_return(invocation, answer.bytes, answer.size);
  pawl_task_release(task);
  return status;
}

static void test_a_function_may_call_its_caller_and_itself(void **state) {
  (void)state;
  struct pawl_session *third = open_listening(pawl_session_address(session));
  struct station first = {callee, {node, pawl_session_node(third)}}, second = {third, {first.nodes[0], first.nodes[1]}};
  struct station alone = {callee, {node, node}};
  struct pawl_task *task;
  struct pawl_answer answer;
  must(pawl_function_offer(callee, "down", count_down, &first));
  must(pawl_function_offer(third, "down", count_down, &second));
  must(call(pawl_to_node(node), "down", "\x14", 1, &task));
  must(pawl_answer_get(task, 0, &answer));
  assert_memory_equal(answer.bytes, "end", 3);
  pawl_task_release(task);
  must(pawl_session_close(third, PATIENCE));
  must(pawl_function_withdraw(callee, "down"));
  must(pawl_function_offer(callee, "down", count_down, &alone));
  must(call(pawl_to_node(node), "down", "\x14", 1, &task));
  pawl_task_release(task);
  must(pawl_function_withdraw(callee, "down"));
}

/* --- graphs --------------------------------------------------------------------------------------------------------------- */

struct journal {
  pthread_mutex_t mutex;
  char text[64];
  size_t size;
};

/* Writes its letter down; 'x' fails. */
static pawl_status write_letter(struct pawl_invocation *invocation, void *context) {
  struct journal *journal = context;
  size_t size;
  const char *letter = pawl_invocation_argument(invocation, &size);
  pthread_mutex_lock(&journal->mutex);
  journal->text[journal->size++] = *letter;
  pthread_mutex_unlock(&journal->mutex);
  return *letter == 'x' ? PAWL_IO : pawl_invocation_return(invocation, letter, 1);
}

static void test_a_graph_runs_in_the_order_of_its_edges(void **state) {
  (void)state;
  struct journal journal = {.mutex = PTHREAD_MUTEX_INITIALIZER};
  struct pawl_graph_call calls[] = {{"letter", "d", 1}, {"letter", "b", 1}, {"letter", "a", 1}, {"letter", "c", 1}};
  struct pawl_edge edges[] = {{2, 1}, {1, 3}, {3, 0}, {2, 0}};
  struct pawl_task *task;
  struct pawl_answer answer;
  must(pawl_function_offer(callee, "letter", write_letter, &journal));
  must(pawl_call_graph(session, pawl_to_node(node), calls, 4, edges, 4, &task));
  must(pawl_task_wait(task, PATIENCE));
  assert_string_equal(journal.text, "abcd");
  assert_int_equal(pawl_answer_count(task), 4);
  for (uint32_t i = 0; i < 4; i++) {
    must(pawl_answer_get(task, i, &answer));
    assert_int_equal(answer.call, i);
    assert_memory_equal(answer.bytes, calls[i].argument, 1);
  }
  pawl_task_release(task);
  must(pawl_function_withdraw(callee, "letter"));
}

static void test_a_call_after_a_failed_one_fails_and_names_it(void **state) {
  (void)state;
  struct journal journal = {.mutex = PTHREAD_MUTEX_INITIALIZER};
  struct pawl_graph_call calls[] = {{"letter", "a", 1}, {"letter", "x", 1}, {"last", "c", 1}, {"letter", "d", 1}};
  struct pawl_edge edges[] = {{0, 1}, {1, 2}};
  struct pawl_task *task;
  struct pawl_answer answer;
  must(pawl_function_offer(callee, "letter", write_letter, &journal));
  must(pawl_function_offer(callee, "last", write_letter, &journal));
  must(pawl_call_graph(session, pawl_to_node(node), calls, 4, edges, 2, &task));
  must_fail(pawl_task_wait(task, PATIENCE), PAWL_IO, "call 2 last: cancelled, because call 1 letter failed");
  must(pawl_answer_get(task, 2, &answer));
  assert_int_equal(answer.status, PAWL_CANCELLED);
  assert_int_equal(answer.cause, 1);
  must(pawl_answer_get(task, 3, &answer));
  assert_int_equal(answer.status, PAWL_OK);
  assert_null(strchr(journal.text, 'c'));
  pawl_task_release(task);
  must(pawl_function_withdraw(callee, "letter"));
  must(pawl_function_withdraw(callee, "last"));
}

static void test_cycles_and_edges_to_nowhere_are_found_before_anything_is_sent(void **state) {
  (void)state;
  struct pawl_graph_call calls[] = {{"a", NULL, 0}, {"b", NULL, 0}, {"c", NULL, 0}};
  struct pawl_edge ring[] = {{1, 2}, {2, 1}}, nowhere[] = {{0, 7}};
  struct pawl_task *task;
  must_fail(pawl_call_graph(session, pawl_to_node(node), calls, 3, ring, 2, &task), PAWL_INVALID, "is in a cycle");
  assert_true(strstr(pawl_error_text(), "call 1 b") || strstr(pawl_error_text(), "call 2 c"));
  must_fail(pawl_call_graph(session, pawl_to_node(node), calls, 3, nowhere, 1, &task), PAWL_INVALID, "call 7");
  must_fail(pawl_call_graph(session, pawl_to_node(node), calls, 0, NULL, 0, &task), PAWL_INVALID, "count is 0");
  calls[1].name = "?";
  must_fail(pawl_call_graph(session, pawl_to_node(node), calls, 3, NULL, 0, &task), PAWL_INVALID, "'?' of call 1");
}

/* --- tasks of others, triggers ---------------------------------------------------------------------------------------------- */

static void test_a_task_elsewhere_finishes_when_and_as_the_other_does(void **state) {
  (void)state;
  struct gate gate;
  struct pawl_task *theirs, *ours;
  gate_init(&gate, false);
  must(pawl_function_offer(callee, "pass", pass, &gate));
  must(pawl_call(callee, pawl_to_node(node), "pass", NULL, 0, &theirs));
  must(pawl_task_elsewhere(session, node, pawl_task_id(theirs), &ours));
  gate_await_inside(&gate, 1);
  must_fail(pawl_task_wait(ours, PAWL_SECOND / 100), PAWL_TIMED_OUT, "wait");
  gate_open(&gate);
  must(pawl_task_finish(ours, PATIENCE));
  must(pawl_task_finish(theirs, PATIENCE));
  must(pawl_function_withdraw(callee, "pass"));
  must(pawl_call(callee, pawl_to_node(node), "pass", NULL, 0, &theirs));
  uint64_t number = pawl_task_id(theirs);
  must_fail(pawl_task_finish(theirs, PATIENCE), PAWL_NOT_FOUND, "pass");
  must(pawl_task_elsewhere(session, node, number, &ours));
  must_fail(pawl_task_finish(ours, PATIENCE), PAWL_NOT_FOUND, "at node");
  must(pawl_task_elsewhere(session, node, number + 100000, &ours));
  must_fail(pawl_task_finish(ours, PATIENCE), PAWL_INVALID, "at node");
}

static void test_a_trigger_waits_until_all_members_have_reached_the_tick(void **state) {
  (void)state;
  struct pawl_session *workers[2];
  struct pawl_group *groups[2];
  struct pawl_vector *vectors[2];
  struct pawl_vector *watched = create(session, "call/watched", PAWL_F64, 4);
  struct pawl_vector *theirs;
  struct pawl_task *seen_from_here;
  must(pawl_vector_open(callee, "call/watched", PATIENCE, &theirs));
  double half[4] = {0.5, 0.5, 0.5, 0.5}, one[4] = {1, 1, 1, 1}, seen[4];
  struct pawl_task *task;
  must_fail(pawl_trigger(session, "call/nobody", 1, watched, pawl_at_range(0, 4), half, &task), PAWL_NOT_FOUND,
            "call/nobody");
  for (int i = 0; i < 2; i++) {
    workers[i] = open_beside(session, false);
    must(pawl_group_join(workers[i], "call/pair", 2, PATIENCE, &groups[i]));
    must(pawl_vector_open(workers[i], "call/watched", PATIENCE, &vectors[i]));
  }
  must(pawl_trigger(callee, "call/pair", 1, theirs, pawl_at_range(0, 4), half, &task));
  must(pawl_task_elsewhere(session, node, pawl_task_id(task), &seen_from_here));
  must(pawl_session_flush(callee, PATIENCE));
  push(theirs, pawl_at_range(0, 4), one); /* does not have to follow it */
  for (int i = 0; i < 2; i++) {
    must_fail(pawl_task_wait(task, PAWL_SECOND / 100), PAWL_TIMED_OUT, "trigger of call/watched");
    pull(watched, pawl_at_range(0, 4), seen);
    assert_true(seen[0] == 1.0 + i);
    must(pawl_vector_push(vectors[i], pawl_at_range(0, 4), one, NULL));
    must(pawl_group_clock(groups[i], NULL));
    must(pawl_session_flush(workers[i], PATIENCE));
  }
  must(pawl_task_finish(seen_from_here, PATIENCE));
  assert_true(pawl_task_is_done(task));
  must(pawl_task_finish(task, PATIENCE));
  pull(watched, pawl_at_range(0, 4), seen);
  assert_true(seen[3] == 3.5);
  must_fail(pawl_trigger(session, "call/pair", 1, watched, pawl_at_range(0, 5), half, &task), PAWL_OUT_OF_SPAN,
            "call/watched");
  /* After another task, and in vain. */
  struct pawl_task *failing;
  must(pawl_call(session, pawl_to_node(node), "nobody/has-this", NULL, 0, &failing));
  must(pawl_trigger(session, "call/pair", 1, watched, pawl_after(pawl_at_range(0, 4), &failing, 1), half, &task));
  must_fail(pawl_task_finish(task, PATIENCE), PAWL_CANCELLED, "nobody/has-this");
  pawl_task_release(failing);
  must(pawl_trigger(session, "call/pair", 9, watched, pawl_at_range(0, 4), half, NULL)); /* goes with the session */
  for (int i = 0; i < 2; i++) must(pawl_session_close(workers[i], PATIENCE));
  pawl_vector_close(watched);
}

static void test_a_call_comes_after_tasks_and_fails_with_them(void **state) {
  (void)state;
  struct gate gate;
  struct pawl_task *first, *then, *elsewhere, *last;
  gate_init(&gate, false);
  must(pawl_function_offer(callee, "pass", pass, &gate));
  must(pawl_function_offer(callee, "echo", echo, NULL));
  /* After one of ours, and after one of theirs. */
  must(pawl_call(session, pawl_to_node(node), "pass", NULL, 0, &first));
  must(pawl_task_elsewhere(session, node, 1, &elsewhere));
  struct pawl_task *both[] = {first, elsewhere};
  must(pawl_call(session, pawl_to_after(pawl_to_node(node), both, 2), "echo", "x", 1, &then));
  gate_await_inside(&gate, 1);
  must_fail(pawl_task_wait(then, PAWL_SECOND / 100), PAWL_TIMED_OUT, "call of echo");
  gate_open(&gate);
  must(pawl_task_wait(then, PATIENCE));
  assert_int_equal(pawl_answer_count(then), 1);
  pawl_task_release(then);
  pawl_task_release(first);
  pawl_task_release(elsewhere);
  must(pawl_call(session, pawl_to_node(node), "nobody/has-this", NULL, 0, &first));
  must(pawl_call(session, pawl_to_after(pawl_to_node(node), &first, 1), "echo", NULL, 0, &then));
  must(pawl_call(session, pawl_to_after(pawl_to_node(node), &then, 1), "echo", NULL, 0, &last));
  must_fail(pawl_task_wait(last, PATIENCE), PAWL_CANCELLED, "call of nobody/has-this, failed: not found");
  assert_int_equal(pawl_answer_count(last), 0);
  pawl_task_release(first);
  pawl_task_release(then);
  pawl_task_release(last);
  must(pawl_function_withdraw(callee, "pass"));
  must(pawl_function_withdraw(callee, "echo"));
}

/* --- ends ----------------------------------------------------------------------------------------------------------------- */

static void test_whoever_closes_waits_for_what_runs_and_refuses_the_rest(void **state) {
  (void)state;
  struct gate gate;
  struct pawl_task *task;
  struct pawl_session *third = open_listening(pawl_session_address(session));
  struct pawl_node there = pawl_session_node(third);
  gate_init(&gate, false);
  must(pawl_function_offer(third, "pass", pass, &gate));
  must(pawl_call(session, pawl_to_node(there), "pass", NULL, 0, &task));
  gate_await_inside(&gate, 1);
  gate_open(&gate);
  must(pawl_session_close(third, PATIENCE));
  assert_int_equal(gate.passed, 1);
  pawl_status status =
      pawl_task_finish(task, PATIENCE); /* the answer, or word that it is gone, whichever comes first */
  assert_true(status == PAWL_OK || status == PAWL_OUTCOME_UNKNOWN);
  must_fail(call(pawl_to_node(there), "pass", NULL, 0, &task), PAWL_NODE_GONE, "pass");
  pawl_task_release(task);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_call_brings_back_what_the_function_returned),
      cmocka_unit_test(test_failures_name_the_function_and_the_node),
      cmocka_unit_test(test_what_is_wrong_with_a_call_is_found_at_once),
      cmocka_unit_test(test_arguments_and_results_may_be_large),
      cmocka_unit_test(test_time_that_runs_out_ends_the_waiting_only),
      cmocka_unit_test(test_one_call_that_takes_long_does_not_stop_those_behind_it),
      cmocka_unit_test(test_functions_run_side_by_side),
      cmocka_unit_test(test_all_members_of_a_group_are_called),
      cmocka_unit_test(test_a_call_has_finished_when_all_that_it_issued_has),
      cmocka_unit_test(test_a_function_may_call_its_caller_and_itself),
      cmocka_unit_test(test_a_graph_runs_in_the_order_of_its_edges),
      cmocka_unit_test(test_a_call_after_a_failed_one_fails_and_names_it),
      cmocka_unit_test(test_cycles_and_edges_to_nowhere_are_found_before_anything_is_sent),
      cmocka_unit_test(test_a_task_elsewhere_finishes_when_and_as_the_other_does),
      cmocka_unit_test(test_a_trigger_waits_until_all_members_have_reached_the_tick),
      cmocka_unit_test(test_a_call_comes_after_tasks_and_fails_with_them),
      cmocka_unit_test(test_whoever_closes_waits_for_what_runs_and_refuses_the_rest),
  };
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
