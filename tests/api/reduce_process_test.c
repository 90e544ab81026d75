/* Reduce between processes that are stopped and killed, over each transport: a process in the middle of puts of 64 MB
 * that is killed, and one that stands still until the others have gone on without it, and comes back.
 *
 * cost: 20
 */
#include "peers_scene.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/memory.h"

static int group_number;

struct member {
  struct pawl_session *session;
  struct pawl_peers *peers;
  struct pawl_reduce *reduce;
  struct pawl_reduce_report report;
  float *values;
};

static pawl_status open_member(struct member *member, const char *address, const char *group, uint32_t size,
                               size_t count, bool is_tcp) {
  struct pawl_session_options options = peer_options(address);
  struct pawl_reduce_options reduce;
  pawl_reduce_options_init(&reduce);
  options.tcp_only = is_tcp;
  reduce.graph = "complete";
  member->values = pwi_alloc_zero(count, sizeof(float));
  struct pawl_tensor tensor = {member->values, count, PAWL_F32};
  pawl_status status = member->values ? pawl_session_open(&options, &member->session) : PAWL_NO_MEMORY;
  if (!status) status = pawl_peers_join(member->session, group, size, PATIENCE, &member->peers);
  if (!status) status = pawl_reduce_open(member->peers, "model", &tensor, 1, &reduce, PATIENCE, &member->reduce);
  return status;
}

static void close_member(struct member *member) {
  pawl_reduce_close(member->reduce);
  pawl_peers_leave(member->peers);
  must(pawl_session_close(member->session, PATIENCE));
  pwi_free(member->values);
}

/* Makes steps until it is killed, or, as the program that it is, its session cannot go on. */
static int run_process(char **argv) {
  struct member member = {0};
  size_t count = strtoull(argv[3], NULL, 10);
  must(open_member(&member, argv[1], argv[2], 3, count, strcmp(argv[4], "tcp") == 0));
  for (;;) {
    must(pawl_reduce_step(member.reduce, PATIENCE, &member.report));
    for (size_t i = 0; i < count; i += 4096) member.values[i] = 1; /* the value that all members agree on */
    if (member.report.iteration == 2 && dprintf(PWI_CHILD_READY_FD, "ready\n") < 0) return 1;
  }
}

static struct pwi_child *start_process(const char *group, size_t count, bool is_tcp) {
  char number[32];
  snprintf(number, sizeof number, "%zu", count);
  const char *const words[] = {
      "reduce_process_test", pawl_session_address(cluster), group, number, is_tcp ? "tcp" : "any", NULL};
  return start_self(words);
}

struct survivor {
  struct member member;
  pthread_t thread;
  pawl_status status;
  char group[32], text[256];
  size_t count;
  bool is_tcp;
  _Atomic uint32_t size; /* of the last step */
  _Atomic bool is_over;
};

static void *run_survivor(void *context) {
  struct survivor *survivor = context;
  struct member *member = &survivor->member;
  pawl_status status =
      open_member(member, pawl_session_address(cluster), survivor->group, 3, survivor->count, survivor->is_tcp);
  while (!status && !atomic_load(&survivor->is_over)) {
    status = pawl_reduce_step(member->reduce, PATIENCE, &member->report);
    for (size_t i = 0; !status && i < survivor->count; i += 4096) member->values[i] = 1;
    atomic_store(&survivor->size, member->report.size);
  }
  survivor->status = status;
  snprintf(survivor->text, sizeof survivor->text, "%s", pawl_error_text());
  atomic_store(&survivor->size, 0);
  close_member(member);
  return NULL;
}

static void await_size(const struct survivor *survivor, uint32_t size) {
  int64_t deadline = pwi_host_after(PATIENCE);
  while (atomic_load(&survivor->size) != size && pwi_host_now() < deadline) usleep(1000);
  assert_int_equal(atomic_load(&survivor->size), size);
}

static void begin(struct survivor *survivor, struct pwi_child *children[2], size_t count, bool is_tcp) {
  const char *line;
  *survivor = (struct survivor){.count = count, .is_tcp = is_tcp};
  snprintf(survivor->group, sizeof survivor->group, "r/group%d", ++group_number);
  for (int i = 0; i < 2; i++) children[i] = start_process(survivor->group, count, is_tcp);
  assert_int_equal(pthread_create(&survivor->thread, NULL, run_survivor, survivor), 0);
  for (int i = 0; i < 2; i++) must(pwi_child_ready(children[i], pwi_host_after(PATIENCE), &line));
}

static void finish(struct survivor *survivor) {
  atomic_store(&survivor->is_over, true);
  pthread_join(survivor->thread, NULL);
  if (survivor->status) fail_msg("%s: %s", pawl_status_name(survivor->status), survivor->text);
}

/* Puts of 64 MB are under way nearly all of the time. */
static void kill_in_a_put(bool is_tcp) {
  struct survivor survivor;
  struct pwi_child *children[2];
  begin(&survivor, children, (size_t)16 << 20, is_tcp);
  pwi_child_stop(children[0], 0); /* kill -9 */
  await_size(&survivor, 2);
  pwi_child_stop(children[1], 0);
  await_size(&survivor, 1);
  finish(&survivor);
}

static void test_a_process_is_killed_in_a_put_of_64_mb_over_tcp(void **state) {
  (void)state;
  kill_in_a_put(true);
}

static void test_a_process_is_killed_in_a_put_of_64_mb_over_shared_memory(void **state) {
  (void)state;
  kill_in_a_put(false);
}

/* Stopped until it has lost its place, and let go on: it takes over a model. */
static void stop_for_long(bool is_tcp) {
  struct survivor survivor;
  struct pwi_child *children[2];
  begin(&survivor, children, 20000, is_tcp);
  await_size(&survivor, 3);
  assert_int_equal(kill(pwi_child_pid(children[0]), SIGSTOP), 0);
  await_size(&survivor, 2);
  assert_int_equal(kill(pwi_child_pid(children[0]), SIGCONT), 0);
  await_size(&survivor, 3);
  for (int i = 0; i < 2; i++) pwi_child_stop(children[i], 0);
  await_size(&survivor, 1);
  finish(&survivor);
}

static void test_a_process_that_was_stopped_for_long_comes_back_over_tcp(void **state) {
  (void)state;
  stop_for_long(true);
}

static void test_a_process_that_was_stopped_for_long_comes_back_over_shared_memory(void **state) {
  (void)state;
  stop_for_long(false);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_process_is_killed_in_a_put_of_64_mb_over_tcp),
      cmocka_unit_test(test_a_process_is_killed_in_a_put_of_64_mb_over_shared_memory),
      cmocka_unit_test(test_a_process_that_was_stopped_for_long_comes_back_over_tcp),
      cmocka_unit_test(test_a_process_that_was_stopped_for_long_comes_back_over_shared_memory),
  };
  if (argc == 5) return run_process(argv);
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
