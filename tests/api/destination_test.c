/* Pushes and pulls to one server, and to all members of a group. */
#include "base/memory.h"
#include "scene.h"

#define KEYS 5000
#define MEMBERS 3

static double ones[KEYS], found[KEYS], three[MEMBERS * KEYS];

static struct pawl_vector *doubles(struct pawl_session *session, const char *name) {
  return create(session, name, PAWL_F64, KEYS);
}

/* Each server gets a number of its own: every key then has that of the server that serves it. */
static void test_servers_are_named_one_by_one(void **state) {
  struct pawl_session *session = open_pair();
  struct pawl_vector *vector = doubles(session, "a/x");
  struct pawl_node servers[8];
  struct pawl_task *task;
  size_t count = 0, seen[2] = {0};
  (void)state;
  must(pawl_vector_servers(vector, servers, 8, &count));
  assert_int_equal(count, 2);
  assert_true(servers[0].id < servers[1].id);
  for (size_t s = 0; s < count; s++) {
    for (size_t i = 0; i < KEYS; i++) ones[i] = (double)(s + 1);
    must(pawl_vector_push_server(vector, servers[s], pawl_at_range(0, KEYS), ones, &task));
    must(pawl_task_finish(task, PATIENCE));
  }
  pull(vector, pawl_at_range(0, KEYS), found);
  for (size_t i = 0; i < KEYS; i++) {
    assert_true(found[i] == 1 || found[i] == 2);
    seen[found[i] == 2]++;
  }
  assert_true(seen[0] > 0 && seen[1] > 0);
  for (size_t i = 0; i < KEYS; i++) three[i] = -1;
  must(pawl_vector_pull_server(vector, servers[1], pawl_at_range(100, KEYS), three, &task));
  must(pawl_task_finish(task, PATIENCE));
  for (size_t i = 100; i < KEYS; i++) assert_true(three[i - 100] == (found[i] == 2 ? 2 : -1));
  must(pawl_session_close(session, PATIENCE));
}

static void test_a_list_has_a_row_for_every_key(void **state) {
  struct pawl_session *session = open_pair();
  struct pawl_vector *vector = doubles(session, "a/x");
  struct pawl_node servers[2];
  struct pawl_task *task;
  static uint64_t keys[KEYS / 10];
  size_t count;
  (void)state;
  for (size_t i = 0; i < KEYS / 10; i++) keys[i] = 10 * i, ones[i] = (double)i + 1;
  must(pawl_vector_servers(vector, servers, 2, &count));
  for (size_t s = 0; s < 2; s++) {
    must(pawl_vector_push_server(vector, servers[s], pawl_at_keys(keys, KEYS / 10), ones, &task));
    must(pawl_task_finish(task, PATIENCE));
  }
  pull(vector, pawl_at_keys(keys, KEYS / 10), found);
  assert_memory_equal(found, ones, sizeof(double) * (KEYS / 10));
  for (size_t i = 0; i < KEYS / 10; i++) three[i] = 0;
  for (size_t s = 0; s < 2; s++) {
    must(pawl_vector_pull_server(vector, servers[s], pawl_at_keys(keys, KEYS / 10), three, &task));
    must(pawl_task_finish(task, PATIENCE));
  }
  assert_memory_equal(three, ones, sizeof(double) * (KEYS / 10));
  must(pawl_session_close(session, PATIENCE));
}

static void test_the_keys_of_a_dead_server_are_those_of_another(void **state) {
  struct pawl_session *session = open_pair();
  struct pawl_vector *vector = doubles(session, "a/x");
  struct pawl_node servers[2], left;
  struct pawl_task *tasks[2];
  pid_t processes[4];
  size_t count;
  (void)state;
  for (size_t i = 0; i < KEYS; i++) ones[i] = 1;
  must(pawl_vector_servers(vector, servers, 2, &count));
  assert_int_equal(find_children(getpid(), "--join", processes, 4), 2);
  await_copies(session);
  assert_int_equal(kill(processes[0], SIGKILL), 0);
  for (size_t s = 0; s < 2; s++) /* one of them may not know yet; its keys go where they are served */
    must(pawl_vector_push_server(vector, servers[s], pawl_at_range(0, KEYS), ones, &tasks[s]));
  for (size_t s = 0; s < 2; s++) must(pawl_task_finish(tasks[s], PATIENCE));
  pull(vector, pawl_at_range(0, KEYS), found);
  assert_memory_equal(found, ones, sizeof ones);
  while (pawl_vector_servers(vector, &left, 1, &count) == PAWL_OK && count != 1) usleep(1000);
  struct pawl_node gone = servers[servers[0].id == left.id];
  must_fail(pawl_vector_push_server(vector, gone, pawl_at_range(0, KEYS), ones, NULL), PAWL_NOT_FOUND, "at server");
  must(pawl_session_close(session, PATIENCE));
}

/* --- groups --------------------------------------------------------------------------------------------- */

struct member {
  struct pawl_session *session;
  struct pawl_vector *copy;
  struct pawl_group *group;
};

static void join(struct member *member, const struct pawl_session *first) {
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.address = pawl_session_address(first);
  options.listen = "127.0.0.1:0";
  must(pawl_session_open(&options, &member->session));
  must(pawl_vector_open_local(member->session, "a/x", PATIENCE, &member->copy));
  must(pawl_group_join(member->session, "a/holders", MEMBERS, PATIENCE, &member->group));
}

static void test_all_members_of_a_group_get_the_rows(void **state) {
  struct pawl_session *session = open_embedded(1, 1);
  struct pawl_vector *vector = doubles(session, "a/x");
  struct member members[MEMBERS];
  struct pawl_node nodes[MEMBERS + 1];
  struct pawl_task *task;
  size_t count = 0;
  (void)state;
  must_fail(pawl_vector_push_group(vector, "a/holders", pawl_at_range(0, KEYS), ones, NULL), PAWL_NOT_FOUND, "holders");
  for (size_t m = 0; m < MEMBERS; m++) join(&members[m], session);
  for (size_t i = 0; i < KEYS; i++) ones[i] = (double)i;
  must(pawl_vector_push_group(vector, "a/holders", pawl_at_range(0, KEYS), ones, &task));
  must(pawl_task_finish(task, PATIENCE));
  double more = 0.5;
  uint64_t key = 7;
  struct pawl_where one = pawl_at_keys(&key, 1);
  one.node = pawl_session_node(members[1].session);
  push(vector, one, &more); /* the copies are separate */
  must_fail(pawl_vector_pull_group(vector, "a/holders", pawl_at_range(0, KEYS), three, 2, nodes, &count, NULL),
            PAWL_TOO_LARGE, "3 members");
  assert_int_equal(count, MEMBERS);
  must(pawl_vector_pull_group(vector, "a/holders", pawl_at_range(0, KEYS), three, MEMBERS, nodes, &count, &task));
  must(pawl_task_finish(task, PATIENCE));
  for (size_t m = 0; m < MEMBERS; m++) {
    bool is_second = nodes[m].id == pawl_session_node(members[1].session).id;
    for (size_t i = 0; i < KEYS; i++) assert_true(three[m * KEYS + i] == (double)i + (is_second && i == 7 ? 0.5 : 0));
    assert_true(m == 0 || nodes[m - 1].id < nodes[m].id);
  }
  pull(vector, pawl_at_range(0, KEYS), found); /* the servers have nothing of it */
  for (size_t i = 0; i < KEYS; i++) assert_true(found[i] == 0);

  /* A member may call, too; and a group whose members have no copy says so. */
  struct pawl_vector *open = NULL;
  must(pawl_vector_open(members[0].session, "a/x", PATIENCE, &open));
  must(pawl_vector_push_group(open, "a/holders", pawl_at_keys(&key, 1), &more, &task));
  must(pawl_task_finish(task, PATIENCE));
  must(pawl_vector_pull_group(open, "a/holders", pawl_at_keys(&key, 1), three, MEMBERS, nodes, &count, &task));
  must(pawl_task_finish(task, PATIENCE));
  for (size_t m = 0; m < MEMBERS; m++)
    assert_true(three[m] == (nodes[m].id == pawl_session_node(members[1].session).id ? 8 : 7.5));
  pawl_vector_close(members[2].copy);
  must(pawl_vector_push_group(vector, "a/holders", pawl_at_keys(&key, 1), &more, &task));
  assert_int_equal(pawl_task_finish(task, PATIENCE), PAWL_NOT_FOUND);
  for (size_t m = 0; m < MEMBERS; m++) must(pawl_session_close(members[m].session, PATIENCE));
  must(pawl_session_close(session, PATIENCE));
}

static void test_mistakes_are_found_before_anything_is_sent(void **state) {
  struct pawl_session *session = open_embedded(1, 1);
  struct pawl_vector *vector = doubles(session, "a/x"), *mixed = NULL;
  struct pawl_where where = pawl_at_range(0, KEYS);
  struct pawl_node server;
  struct pawl_task *parent;
  size_t count;
  (void)state;
  must(pawl_vector_servers(vector, &server, 1, &count));
  must_fail(pawl_vector_push_server(NULL, server, where, ones, NULL), PAWL_INVALID, "NULL");
  must_fail(pawl_vector_push_server(vector, server, where, NULL, NULL), PAWL_INVALID, "values is NULL");
  must_fail(pawl_vector_pull_server(vector, (struct pawl_node){999}, where, found, NULL), PAWL_NOT_FOUND, "999");
  must_fail(pawl_vector_push_server(vector, server, pawl_at_range(0, KEYS + 1), ones, NULL), PAWL_OUT_OF_SPAN,
            "beyond");
  must_fail(pawl_vector_push_server(vector, server, pawl_at_range(7, 3), ones, NULL), PAWL_INVALID, "before it begins");
  must_fail(pawl_vector_push_group(vector, "nonsense", where, ones, NULL), PAWL_INVALID, "nonsense");
  must_fail(pawl_vector_push_group(vector, NULL, where, ones, NULL), PAWL_INVALID, "NULL");
  where.node = server;
  must_fail(pawl_vector_push_group(vector, "a/holders", where, ones, NULL), PAWL_INVALID, "names a node");
  where.node.id = 0;
  must(pawl_task_begin(session, "all", &parent));
  where.parent = parent;
  must_fail(pawl_vector_push_server(vector, server, where, ones, NULL), PAWL_INVALID, "parts of its own");
  must(pawl_task_end(parent, PAWL_OK));
  pawl_task_release(parent);
  mixed = create(session, "a/mixed", PAWL_F64, PAWL_KEY_END);
  must_fail(pawl_vector_push_server(mixed, server, pawl_at_keys(NULL, 0), ones, NULL), PAWL_UNSUPPORTED, "mixed");
  must(pawl_session_close(session, PATIENCE));
}

/* A push that has begun may fail for some keys. All others are applied once. */
static void test_without_memory_nothing_is_applied_twice(void **state) {
  struct pawl_session *session = open_embedded(1, 1);
  struct pawl_vector *vector = doubles(session, "a/x");
  struct pawl_node server;
  size_t count, applied = 0, partly = 0;
  int failed = 1;
  (void)state;
  must(pawl_vector_servers(vector, &server, 1, &count));
  for (size_t i = 0; i < KEYS; i++) ones[i] = 1;
  for (uint64_t n = 0; failed; n++) {
    struct pawl_task *task = NULL;
    pwi_memory_fail_after(n);
    pawl_status status = pawl_vector_push_server(vector, server, pawl_at_range(0, KEYS), ones, &task);
    failed = pwi_memory_fail_cancel();
    if (!status) status = pawl_task_finish(task, PATIENCE);
    assert_true(status == PAWL_OK || status == PAWL_NO_MEMORY);
    applied += status == PAWL_OK;
    partly += task && status;
  }
  pull(vector, pawl_at_range(0, KEYS), found);
  for (size_t i = 0; i < KEYS; i++) assert_true(found[i] >= (double)applied && found[i] <= (double)(applied + partly));
  must(pawl_session_close(session, PATIENCE));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_servers_are_named_one_by_one),
      cmocka_unit_test(test_a_list_has_a_row_for_every_key),
      cmocka_unit_test(test_the_keys_of_a_dead_server_are_those_of_another),
      cmocka_unit_test(test_all_members_of_a_group_get_the_rows),
      cmocka_unit_test(test_without_memory_nothing_is_applied_twice),
      cmocka_unit_test(test_mistakes_are_found_before_anything_is_sent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
