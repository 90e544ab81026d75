/* Opening and closing sessions: what can go wrong, and what becomes of the processes behind them. */
#include "scene.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "host/children.h"
#include "host/clock.h"
#include "net/key.h"

static pawl_status try_open(const struct pawl_session_options *options) {
  struct pawl_session *session = NULL;
  pawl_status status = pawl_session_open(options, &session);
  if (status)
    assert_null(session);
  else
    pawl_session_close(session, 0);
  return status;
}

/* --- it cannot be opened --------------------------------------------------------------------------------------------- */

static void test_options_that_were_not_initialised_are_refused(void **state) {
  struct pawl_session_options options;
  struct pawl_vector_options of_vector;
  struct pawl_session *session = NULL;
  (void)state;
  memset(&options, 0, sizeof options);
  must_fail(pawl_session_open(&options, &session), PAWL_INVALID, "pawl_session_options_init");
  session = open_embedded(1, 1);
  struct pawl_vector *vector;
  memset(&of_vector, 0, sizeof of_vector);
  must_fail(pawl_vector_create(session, "t/raw", &of_vector, PATIENCE, &vector), PAWL_INVALID,
            "pawl_vector_options_init");
  must(pawl_session_close(session, PATIENCE));
}

/* A program that was built when the struct ended with `size`, and one whose struct has more at its end. */
static void test_programs_of_other_versions_are_served(void **state) {
  struct {
    struct pawl_vector_options options;
    uint64_t more;
  } newer;
  struct pawl_vector_options older;
  struct pawl_vector_info info;
  struct pawl_session *session = open_embedded(1, 1);
  struct pawl_vector *vector;
  (void)state;
  memset(&older, 0xa5, sizeof older);
  pawl_vector_options_init_sized(&older, offsetof(struct pawl_vector_options, function));
  assert_int_equal((unsigned char)older.rule[0], 0xa5);
  older.size = 77;
  must(pawl_vector_create(session, "t/older", &older, PATIENCE, &vector));
  pawl_vector_info(vector, &info);
  assert_true(info.options.size == 77 && info.options.function == PAWL_ADD && !info.options.rule[0]);
  pawl_vector_options_init_sized(&newer.options, sizeof newer);
  assert_int_equal(newer.more, 0);
  newer.options.size = 78;
  must(pawl_vector_create(session, "t/newer", &newer.options, PATIENCE, &vector));
  newer.more = 1;
  must_fail(pawl_vector_create(session, "t/newest", &newer.options, PATIENCE, &vector), PAWL_INVALID, "does not know");
  must(pawl_session_close(session, PATIENCE));
}

static void test_an_address_that_cannot_be_read_is_invalid(void **state) {
  struct pawl_session_options options = {
      .struct_size = sizeof options, .address = "tcp://nowhere", .timeout_ns = PAWL_SECOND};
  (void)state;
  must_fail(try_open(&options), PAWL_INVALID, "tcp://nowhere");
}

/* Tries with ever longer time-outs as long as the machine is too busy to connect, or to hear the manager, within one. */
static pawl_status try_longer(struct pawl_session_options *options) {
  pawl_status status = try_open(options);
  while (status == PAWL_TIMED_OUT && !strstr(pawl_error_text(), "has no servers yet") &&
         options->timeout_ns < PATIENCE) {
    options->timeout_ns *= 2;
    status = try_open(options);
  }
  return status;
}

static void test_nobody_at_the_address_is_told_after_the_time_out(void **state) {
  struct pawl_session_options options = {
      .struct_size = sizeof options, .address = "127.0.0.1:1", .timeout_ns = PAWL_SECOND / 5};
  (void)state;
  must_fail(try_longer(&options), PAWL_LINK_REFUSED, "127.0.0.1:1");
}

static void test_options_that_contradict_themselves_are_invalid(void **state) {
  struct pawl_session_options options = {
      .struct_size = sizeof options, .address = "127.0.0.1:1", .certificate = "a.pem", .timeout_ns = PAWL_SECOND};
  (void)state;
  must_fail(try_open(&options), PAWL_INVALID, "must be given together");
  options.private_key = options.authority = "b.pem";
  options.key = "pawl1-00";
  must_fail(try_open(&options), PAWL_INVALID, "not both");
  options = (struct pawl_session_options){
      .struct_size = sizeof options, .address = "127.0.0.1:1", .key = "secret-with-a-mistake"};
  must_fail(try_open(&options), PAWL_INVALID, "not a key");
  assert_null(strstr(pawl_error_text(), "secret"));
  options = (struct pawl_session_options){
      .struct_size = sizeof options, .address = "127.0.0.1:1", .key_file = "/nowhere/cluster.key"};
  must_fail(try_open(&options), PAWL_NOT_FOUND, "/nowhere/cluster.key");
}

static void test_without_the_command_nothing_is_embedded(void **state) {
  char *command = strdup(getenv("PAWL_COMMAND"));
  (void)state;
  assert_non_null(command);
  setenv("PAWL_COMMAND", "/nowhere/pawl", 1);
  must_fail(try_open(NULL), PAWL_NOT_FOUND, "/nowhere/pawl");
  setenv("PAWL_COMMAND", "/bin/false", 1);
  must_fail(try_open(NULL), PAWL_NODE_STOPPED, "manager ended (exit code 1)");
  setenv("PAWL_COMMAND", command, 1);
  free(command);
}

static void test_a_cluster_without_servers_times_out(void **state) {
  char *const words[] = {"pawl",       "manager", "--listen", "127.0.0.1:0", "--http", "none",
                         "--ready-fd", "3",       "--data",   "none",        NULL};
  struct pwi_child_config config = {
      .path = getenv("PAWL_COMMAND"), .argv = words, .output_fd = PWI_CHILD_OUTPUT_KEEP, .own_group = true};
  struct pawl_session_options options = {.struct_size = sizeof options, .timeout_ns = PAWL_SECOND / 2};
  struct pwi_child *manager;
  const char *line;
  char address[256];
  (void)state;
  must(pwi_child_start(&config, &manager));
  must(pwi_child_ready(manager, pwi_host_after(PATIENCE), &line));
  must(pwi_child_value(line, "address", address, sizeof address));
  options.address = address;
  must_fail(try_longer(&options), PAWL_TIMED_OUT, "has no servers yet");
  pwi_child_stop(manager, PAWL_SECOND);
}

static void test_another_key_does_not_open_an_embedded_cluster(void **state) {
  struct pawl_session *session = open_embedded(1, 1);
  struct pawl_session_options options = {
      .struct_size = sizeof options, .address = pawl_session_address(session), .timeout_ns = PATIENCE};
  char key[PWI_KEY_TEXT_MAX];
  (void)state;
  must(pwi_key_new(key));
  options.key = key;
  must_fail(try_open(&options), PAWL_LINK_KEY, options.address);
  options.key = NULL; /* a session of the same process is given the key */
  must(try_open(&options));
  must(pawl_session_close(session, PATIENCE));
}

static void test_replicas_need_servers_to_be_on(void **state) {
  struct pawl_session_options options;
  (void)state;
  pawl_session_options_init(&options);
  options.servers = options.replicas = 2;
  must_fail(try_open(&options), PAWL_INVALID, "need more servers");
  options.servers = options.replicas = 100;
  must_fail(try_open(&options), PAWL_INVALID, "at most");
}

/* --- it is open ------------------------------------------------------------------------------------------------------ */

static void test_the_state_of_the_cluster_is_json(void **state) {
  struct pawl_session *session = open_embedded(1, 1);
  char *json;
  (void)state;
  must(pawl_session_status(session, PATIENCE, &json));
  assert_int_equal(json[0], '{');
  assert_non_null(strstr(json, "\"epoch\""));
  pawl_text_free(json);
  assert_true(pawl_session_node(session).id != 0);
  must(pawl_session_close(session, PATIENCE));
  must(pawl_session_close(NULL, 0));
}

/* With and without a data plane: both are counted. */
static void test_figures_count_what_was_sent_and_received(void **state) {
  enum { COUNT = 100000, BYTES = COUNT * sizeof(float) };
  struct pawl_session_options options;
  struct pawl_session_figures before, between, after;
  float *values = test_calloc(COUNT, sizeof *values);
  (void)state;
  for (int plain = 0; plain < 2; plain++) {
    struct pawl_session *session;
    pawl_session_options_init(&options);
    options.tcp_only = plain != 0;
    must(pawl_session_open(&options, &session));
    struct pawl_vector *vector = create(session, "a/b", PAWL_F32, COUNT);
    pawl_session_figures(session, &before);
    assert_true(before.bytes_sent > 0 && before.messages_sent > 0);
    assert_true(before.bytes_received > 0 && before.messages_received > 0);
    assert_true(before.bytes_sent < BYTES && before.bytes_received < BYTES);

    push(vector, pawl_at_range(0, COUNT), values);
    pawl_session_figures(session, &between);
    assert_in_range(between.bytes_sent - before.bytes_sent, BYTES, BYTES + BYTES / 10);
    assert_in_range(between.bytes_received - before.bytes_received, 1, BYTES / 10);
    assert_true(between.messages_sent > before.messages_sent);

    pull(vector, pawl_at_range(0, COUNT), values);
    pawl_session_figures(session, &after);
    assert_in_range(after.bytes_received - between.bytes_received, BYTES, BYTES + BYTES / 10);
    assert_in_range(after.bytes_sent - between.bytes_sent, 1, BYTES / 10);
    assert_true(after.messages_received > between.messages_received);
    must(pawl_session_close(session, PATIENCE));
  }
  test_free(values);
}

static void test_with_replicas_a_server_may_be_killed(void **state) {
  struct pawl_session_options options;
  struct pawl_session *session;
  int64_t one = 1, sum = 0;
  pid_t servers[4];
  (void)state;
  pawl_session_options_init(&options);
  options.replicas = 1;
  must(pawl_session_open(&options, &session));
  assert_int_equal(find_children(getpid(), "--join", servers, 4), 2);
  struct pawl_vector *vector = create(session, "a/b", PAWL_I64, 10);
  for (uint64_t key = 0; key < 10; key++) push(vector, pawl_at_range(key, key + 1), &one);
  await_copies(session);
  assert_int_equal(kill(servers[0], SIGKILL), 0);
  for (uint64_t key = 0; key < 10; key++) {
    pull(vector, pawl_at_range(key, key + 1), &sum);
    assert_int_equal(sum, 1);
  }
  must(pawl_session_close(session, PATIENCE));
}

static void test_closing_leaves_no_memory_and_no_processes(void **state) {
  pid_t pids[8];
  uint64_t live = pwi_memory_counts().live;
  (void)state;
  for (int i = 0; i < 2; i++) {
    struct pawl_session *session = open_embedded(2, 1);
    assert_int_equal(find_children(getpid(), "pawl", pids, 8), 3);
    struct pawl_vector *vector = create(session, "a/b", PAWL_F32, 10);
    struct pawl_group *group;
    struct pawl_keys *list;
    uint64_t key = 1;
    float value = 1;
    void *memory;
    must(pawl_keys_create(vector, &key, 1, &list));
    must(pawl_buffer_create(session, 5000, &memory));
    must(pawl_group_join(session, "a/g", 1, PATIENCE, &group));
    must(pawl_group_barrier(group, PATIENCE));
    must(pawl_vector_push(vector, pawl_at_list(list), &value, NULL));
    must(pawl_session_close(session, PATIENCE));
    assert_int_equal(find_children(getpid(), "pawl", pids, 8), 0);
    assert_int_equal(pwi_memory_counts().live, live);
  }
}

/* --- a server hangs -------------------------------------------------------------------------------------------------- */

static void test_waiting_ends_and_the_push_goes_on(void **state) {
  struct pawl_session *session = open_embedded(1, 1);
  struct pawl_vector *vector = create(session, "a/b", PAWL_I64, 10);
  int64_t one = 1, sum;
  struct pawl_task *task;
  pid_t server;
  (void)state;
  push(vector, pawl_at_range(0, 1), &one);
  assert_int_equal(find_children(getpid(), "--join", &server, 1), 1);
  halt(server);
  must(pawl_vector_push(vector, pawl_at_range(0, 1), &one, &task));
  must_fail(pawl_task_wait(task, 0), PAWL_TIMED_OUT, "push to a/b");
  must_fail(pawl_task_wait(task, PAWL_SECOND / 2), PAWL_TIMED_OUT, "it continues");
  must_fail(pawl_session_flush(session, PAWL_SECOND / 100), PAWL_TIMED_OUT, "not finished");
  assert_false(pawl_task_is_done(task));
  assert_int_equal(kill(server, SIGCONT), 0);
  must(pawl_task_finish(task, PATIENCE));
  pull(vector, pawl_at_range(0, 1), &sum);
  assert_int_equal(sum, 2);
  must(pawl_session_close(session, PATIENCE));
}

static void note_end(void *context, struct pawl_task *task) { *(pawl_status *)context = pawl_task_wait(task, 0); }

static void test_tasks_end_with_the_session_and_can_still_be_asked(void **state) {
  struct pawl_session *session = open_embedded(1, 1);
  struct pawl_vector *vector = create(session, "a/b", PAWL_I64, 10);
  int64_t one = 1;
  struct pawl_task *task, *called;
  pawl_status seen = PAWL_OK;
  char text[100];
  pid_t server;
  (void)state;
  push(vector, pawl_at_range(0, 1), &one);
  assert_int_equal(find_children(getpid(), "--join", &server, 1), 1);
  halt(server);
  must(pawl_vector_push(vector, pawl_at_range(0, 1), &one, &task));
  must(pawl_vector_push(vector, pawl_at_range(0, 1), &one, &called));
  must(pawl_task_on_done(called, note_end, &seen));
  must_fail(pawl_session_close(session, PAWL_SECOND / 10), PAWL_TIMED_OUT, "not finished");
  assert_true(pawl_task_is_done(task));
  assert_int_equal(pawl_task_wait(task, PAWL_FOREVER), PAWL_NODE_STOPPED);
  assert_int_equal(seen, PAWL_NODE_STOPPED);
  pawl_task_describe(task, text, sizeof text);
  assert_string_equal(text, "push to a/b: this node was stopped");
  pawl_task_release(task);
  pawl_task_release(called);
}

/* --- the parent dies --------------------------------------------------------------------------------------------------- */

static void test_children_go_when_their_parent_is_killed(void **state) {
  pid_t pids[4];
  char byte;
  int ready[2];
  (void)state;
  assert_int_equal(pipe(ready), 0);
  pid_t parent = fork();
  assert_true(parent >= 0);
  if (parent == 0) {
    struct pawl_session *session;
    if (pawl_session_open(NULL, &session) != PAWL_OK || write(ready[1], "r", 1) != 1) _exit(1);
    for (;;) pause();
  }
  close(ready[1]);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  assert_int_equal(find_children(parent, "pawl", pids, 4), 2);
  assert_int_equal(kill(parent, SIGKILL), 0);
  assert_int_equal(waitpid(parent, NULL, 0), parent);
  int64_t deadline = pwi_host_after(PATIENCE);
  for (int i = 0; i < 2; i++) {
    char folder[64];
    snprintf(folder, sizeof folder, "/proc/%d", (int)pids[i]);
    while (state_of(folder) != 'Z') { /* whoever inherited it may not have looked yet */
      assert_true(pwi_host_now() < deadline);
      usleep(1000);
    }
  }
}

/* The only server dies: no deadline changes, and what is waited for is told, not kept silent. */
static void test_a_session_tells_whom_its_keys_wait_for(void **state) {
  struct pawl_session *session = open_embedded(1, 1);
  struct pawl_vector_options options;
  struct pawl_vector *vector;
  struct pawl_task *task;
  pid_t server = 0;
  float values[1] = {1};
  (void)state;
  pawl_vector_options_init(&options);
  options.size = 100;
  must(pawl_vector_create(session, "a/v", &options, PATIENCE, &vector));
  must(pawl_session_check(session));
  assert_int_equal(find_children(getpid(), "--join", &server, 1), 1);
  assert_int_equal(kill(server, SIGKILL), 0);
  int64_t deadline = pwi_host_now() + PATIENCE;
  while (pawl_session_check(session) == PAWL_OK && pwi_host_now() < deadline) usleep(10000);
  must_fail(pawl_session_check(session), PAWL_CLUSTER_WAITING, "pawl server forget --all-lost");
  must_fail(pawl_session_check(session), PAWL_CLUSTER_WAITING, "have the only copy: node 1");
  must(pawl_vector_push(vector, pawl_at_range(0, 1), values, &task));
  must_fail(pawl_task_finish(task, PAWL_SECOND / 5), PAWL_TIMED_OUT, "have the only copy: node 1");
  assert_int_equal(pawl_session_check(NULL), PAWL_INVALID);
  pawl_vector_close(vector);
  pawl_session_close(session, 0);
}

/* A port at which nobody listens, nor will: the socket that is returned has it. */
static int hold_port(char address[32]) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int holder = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(holder, (struct sockaddr *)&at, sizeof at), 0);
  assert_int_equal(getsockname(holder, (struct sockaddr *)&at, &size), 0);
  snprintf(address, 32, "127.0.0.1:%u", ntohs(at.sin_port));
  return holder;
}

/* However long one would wait for an answer: without one there is nothing to wait for. */
static void test_that_nobody_is_there_is_told_long_before_the_time_is_up(void **state) {
  char address[32];
  struct pawl_session *session = NULL;
  struct pawl_session_options options;
  (void)state;
  int holder = hold_port(address);
  pawl_session_options_init(&options);
  options.timeout_ns = 3600 * PAWL_SECOND;
  options.impatient = true;
  options.address = address;
  must_fail(pawl_session_open(&options, &session), PAWL_LINK_REFUSED, address);
  options.address = "nobody-is-called-that.invalid:7295";
  must_fail(pawl_session_open(&options, &session), PAWL_LINK_RESOLVE, "nobody-is-called-that.invalid");
  assert_null(session);
  close(holder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_children_go_when_their_parent_is_killed), /* first: it forks */
      cmocka_unit_test(test_an_address_that_cannot_be_read_is_invalid),
      cmocka_unit_test(test_options_that_were_not_initialised_are_refused),
      cmocka_unit_test(test_programs_of_other_versions_are_served),
      cmocka_unit_test(test_that_nobody_is_there_is_told_long_before_the_time_is_up),
      cmocka_unit_test(test_nobody_at_the_address_is_told_after_the_time_out),
      cmocka_unit_test(test_options_that_contradict_themselves_are_invalid),
      cmocka_unit_test(test_replicas_need_servers_to_be_on),
      cmocka_unit_test(test_without_the_command_nothing_is_embedded),
      cmocka_unit_test(test_a_cluster_without_servers_times_out),
      cmocka_unit_test(test_another_key_does_not_open_an_embedded_cluster),
      cmocka_unit_test(test_the_state_of_the_cluster_is_json),
      cmocka_unit_test(test_figures_count_what_was_sent_and_received),
      cmocka_unit_test(test_with_replicas_a_server_may_be_killed),
      cmocka_unit_test(test_closing_leaves_no_memory_and_no_processes),
      cmocka_unit_test(test_a_session_tells_whom_its_keys_wait_for),
      cmocka_unit_test(test_waiting_ends_and_the_push_goes_on),
      cmocka_unit_test(test_tasks_end_with_the_session_and_can_still_be_asked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
