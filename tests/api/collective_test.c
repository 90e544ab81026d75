/* Collectives between real sessions: threads of this process, and other processes that are killed; by shared memory and
 * by TCP. There is no server.
 *
 * cost: 20
 */
#include "collective_scene.h"

#include <math.h>

#include "base/memory.h"
#include "host/children.h"
#include "host/clock.h"

#define LARGE 300007

/* --- results -------------------------------------------------------------------------------------------- */

static float value_of(uint32_t rank, size_t i) { return (float)(rank + 1) * 0.1f + (float)(i % 1000) * 0.37f; }

/* The order of <pawl/collective.h>, by plain loops. */
static float sum_of(uint32_t size, size_t count, size_t i) {
  uint32_t block = 0;
  size_t first, many;
  for (pawl_collective_block(count, size, 0, &first, &many); i >= first + many;)
    pawl_collective_block(count, size, ++block, &first, &many);
  float sum = value_of((block + 1) % size, i);
  for (uint32_t k = 2; k <= size; k++) sum += value_of((block + k) % size, i);
  return sum;
}

static pawl_status reduce_both_ways(struct member *member, uint32_t rank, size_t count, float *in, float *out) {
  size_t first, many;
  for (size_t i = 0; i < count; i++) in[i] = value_of(rank, i);
  pawl_status status =
      pawl_collective_all_reduce(member->collective, in, out, count, PAWL_F32, PAWL_COLLECTIVE_SUM, PATIENCE);
  for (size_t i = 0; i < count && !status; i++) CHECK(out[i] == sum_of(member->size, count, i));
  pawl_collective_block(count, member->size, rank, &first, &many);
  memset(out, 0, count * sizeof *out);
  if (!status)
    status = pawl_collective_reduce_scatter(member->collective, in, count, PAWL_F32, PAWL_COLLECTIVE_SUM, out, many,
                                            PATIENCE);
  for (size_t i = 0; i < many && !status; i++) CHECK(out[i] == sum_of(member->size, count, first + i));
  return status;
}

static pawl_status copy_both_ways(struct member *member, uint32_t rank, size_t count, float *in, float *out) {
  for (size_t i = 0; i < count; i++) in[i] = value_of(rank, i);
  pawl_status status =
      pawl_collective_all_gather(member->collective, in, count, PAWL_F32, out, count * member->size, PATIENCE);
  for (size_t i = 0; i < count * member->size && !status; i++)
    CHECK(out[i] == value_of((uint32_t)(i / count), i % count));
  if (!status) status = pawl_collective_broadcast(member->collective, in, count, PAWL_F32, member->size - 1, PATIENCE);
  for (size_t i = 0; i < count && !status; i++) CHECK(in[i] == value_of(member->size - 1, i));
  return status;
}

static pawl_status run_all(struct member *member) {
  static const size_t counts[] = {1, 3, 257, 9000, LARGE};
  struct pawl_collective_state state;
  float *in = pwi_alloc_zero(LARGE, sizeof *in), *out = pwi_alloc_zero((size_t)LARGE * MEMBERS_MAX, sizeof *out);
  pawl_status status = in && out ? pawl_collective_barrier(member->collective, PATIENCE) : PAWL_NO_MEMORY;
  pawl_collective_state(member->collective, &state);
  for (size_t i = 0; i < sizeof counts / sizeof *counts && !status; i++) {
    status = reduce_both_ways(member, state.rank, counts[i], in, out);
    if (!status) status = copy_both_ways(member, state.rank, counts[i], in, out);
  }
  double extreme[2] = {state.rank, (double)NAN};
  if (!status)
    status =
        pawl_collective_all_reduce(member->collective, extreme, extreme, 2, PAWL_F64, PAWL_COLLECTIVE_MAX, PATIENCE);
  if (!status) CHECK(extreme[0] == member->size - 1 && isnan(extreme[1]));
  pawl_collective_state(member->collective, &state);
  if (!status) CHECK(state.operations == 22 && state.renewals == 1 && state.size == member->size && !state.failed);
  pwi_free(out);
  pwi_free(in);
  return status;
}

static void test_all_operations(void **state) {
  (void)state;
  for (uint32_t size = 1; size <= MEMBERS_MAX; size++)
    for (int is_tcp = 0; is_tcp < 2; is_tcp++) run_all_members(size, is_tcp, run_all);
}

/* Two collectives of one group, used by one thread each. */
static void *run_second(void *context) {
  struct member *member = context;
  struct pawl_collective *second = NULL;
  pawl_status status = pawl_collective_open(member->peers, "second", PATIENCE, &second);
  for (int i = 0; i < 200 && !status; i++) {
    double one = 1;
    status = pawl_collective_all_reduce(second, &one, &one, 1, PAWL_F64, PAWL_COLLECTIVE_SUM, PATIENCE);
    if (!status && one != member->size) status = PAWL_DIVERGED;
  }
  pawl_collective_close(second);
  return (void *)(intptr_t)status;
}

static pawl_status run_two(struct member *member) {
  pthread_t thread;
  void *result = NULL;
  pawl_status status = PAWL_OK;
  if (pthread_create(&thread, NULL, run_second, member) != 0) return PAWL_NO_MEMORY;
  for (int i = 0; i < 200 && !status; i++) status = pawl_collective_barrier(member->collective, PATIENCE);
  pthread_join(thread, &result);
  return status ? status : (pawl_status)(intptr_t)result;
}

static void test_two_collectives_at_once(void **state) {
  (void)state;
  run_all_members(3, false, run_two);
}

/* --- failures ------------------------------------------------------------------------------------------- */

static pawl_status call_differently(struct member *member) {
  float values[8] = {0};
  return pawl_collective_all_reduce(member->collective, values, values, member->index == 1 ? 7 : 8, PAWL_F32,
                                    PAWL_COLLECTIVE_SUM, PATIENCE);
}

static void test_members_that_differ_are_named(void **state) {
  struct member members[3];
  (void)state;
  start(members, 3, false, call_differently);
  finish(members, 3);
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(members[i].status, PAWL_MISMATCH);
    assert_non_null(strstr(members[i].text, "node"));
  }
}

static pawl_status meet(struct member *member) {
  struct pawl_collective *gate = NULL;
  pawl_status status = pawl_collective_open(member->peers, "gate", PATIENCE, &gate);
  if (!status) status = pawl_collective_barrier(gate, PATIENCE);
  pawl_collective_close(gate);
  return status;
}

/* Member 0 does not call before the others have timed out: they meet at another collective. */
static pawl_status time_out(struct member *member) {
  double one = 1;
  pawl_status status = pawl_collective_barrier(member->collective, PATIENCE);
  if (!status && member->index > 0) {
    status =
        pawl_collective_all_reduce(member->collective, &one, &one, 1, PAWL_F64, PAWL_COLLECTIVE_SUM, PAWL_SECOND / 50);
    CHECK(status == PAWL_TIMED_OUT && strstr(pawl_error_text(), "waits for node"));
    status = pawl_collective_barrier(member->collective, PATIENCE);
    CHECK(status == PAWL_INVALID && strstr(pawl_error_text(), "repeat it"));
    status = PAWL_OK;
  }
  if (!status) status = meet(member);
  if (!status)
    status = pawl_collective_all_reduce(member->collective, &one, &one, 1, PAWL_F64, PAWL_COLLECTIVE_SUM, PATIENCE);
  if (!status) CHECK(one == 3);
  return status;
}

static void test_a_call_that_has_timed_out_is_repeated(void **state) {
  (void)state;
  run_all_members(3, false, time_out);
}

static void test_bad_arguments_are_refused(void **state) {
  struct pawl_collective *collective = NULL, *other = NULL;
  struct pawl_peers *peers = NULL;
  float values[4] = {1, 2, 3, 4};
  (void)state;
  must(pawl_peers_join(session, "r/alone", 1, PATIENCE, &peers));
  must_fail(pawl_collective_open(peers, "a/b", PATIENCE, &collective), PAWL_INVALID, "letters, digits");
  must_fail(pawl_collective_open(NULL, "a", PATIENCE, &collective), PAWL_INVALID, "NULL");
  must(pawl_collective_open(peers, "a", PATIENCE, &collective));
  must_fail(pawl_collective_open(peers, "a", PATIENCE, &other), PAWL_EXISTS, "collective a");
  must_fail(pawl_collective_broadcast(collective, values, 4, PAWL_I32, 0, PATIENCE), PAWL_INVALID, "PAWL_F32");
  must_fail(pawl_collective_broadcast(collective, NULL, 4, PAWL_F32, 0, PATIENCE), PAWL_INVALID, "NULL");
  must_fail(pawl_collective_broadcast(collective, values, 4, PAWL_F32, 1, PATIENCE), PAWL_INVALID, "root is 1");
  must_fail(pawl_collective_all_gather(collective, values, 4, PAWL_F32, values, 3, PATIENCE), PAWL_INVALID,
            "room is 3");
  must_fail(
      pawl_collective_all_reduce(collective, values, values, SIZE_MAX / 2, PAWL_F32, PAWL_COLLECTIVE_SUM, PATIENCE),
      PAWL_TOO_LARGE, "all-reduce");
  must(pawl_collective_all_gather(collective, values, 4, PAWL_F32, values, 4, PATIENCE));
  must(pawl_collective_renew(collective, PATIENCE));
  must(pawl_collective_barrier(collective, PATIENCE));
  pawl_collective_close(collective);
  pawl_collective_close(NULL);
  pawl_peers_leave(peers);
}

/* --- processes ------------------------------------------------------------------------------------------ */

/* Reduces until it is killed. */
static int run_process(char **argv) {
  struct member member = {.size = 3, .is_tcp = strcmp(argv[3], "tcp") == 0};
  snprintf(member.group, sizeof member.group, "%s", argv[2]);
  must(open_member(&member, argv[1]));
  float *values = pwi_alloc_zero(LARGE, sizeof *values);
  for (int i = 0; values; i++) {
    pawl_status status =
        pawl_collective_all_reduce(member.collective, values, values, LARGE, PAWL_F32, PAWL_COLLECTIVE_SUM, PATIENCE);
    if (status == PAWL_NODE_GONE || status == PAWL_CANCELLED)
      status = pawl_collective_renew(member.collective, PATIENCE);
    must(status);
    if (i == 3 && dprintf(PWI_CHILD_READY_FD, "ready\n") < 0) return 1;
  }
  return 1;
}

static struct pwi_child *start_process(const char *group, bool is_tcp) {
  char address[256], name[64], transport[8];
  snprintf(address, sizeof address, "%s", pawl_session_address(session));
  snprintf(name, sizeof name, "%s", group);
  snprintf(transport, sizeof transport, "%s", is_tcp ? "tcp" : "any");
  char *const words[] = {"collective_test", address, name, transport, NULL};
  struct pwi_child_config config = {
      .path = "/proc/self/exe", .argv = words, .output_fd = PWI_CHILD_OUTPUT_INHERIT, .own_group = true};
  struct pwi_child *child;
  must(pwi_child_start(&config, &child));
  return child;
}

/* Reduces until the call fails as it must, and begins anew with the others. */
static void lose_one(struct member *member, float *values, uint32_t left) {
  struct pawl_collective_state state;
  pawl_status status = PAWL_OK;
  while (!status)
    status =
        pawl_collective_all_reduce(member->collective, values, values, LARGE, PAWL_F32, PAWL_COLLECTIVE_SUM, PATIENCE);
  if (status != PAWL_NODE_GONE && status != PAWL_CANCELLED) must(status);
  pawl_collective_state(member->collective, &state);
  assert_true(state.failed == PAWL_NODE_GONE || state.failed == PAWL_CANCELLED);
  must(pawl_collective_renew(member->collective, PATIENCE));
  pawl_collective_state(member->collective, &state);
  assert_int_equal(state.size, left);
  assert_int_equal(state.failed, PAWL_OK);
}

static void kill_processes(bool is_tcp) {
  struct member member = {.size = 3, .is_tcp = is_tcp};
  struct pwi_child *children[2];
  const char *line;
  float *values = pwi_alloc_zero(LARGE, sizeof *values);
  assert_non_null(values);
  snprintf(member.group, sizeof member.group, "r/group%d", ++group_number);
  for (int i = 0; i < 2; i++) children[i] = start_process(member.group, is_tcp);
  must(open_member(&member, pawl_session_address(session)));
  for (int i = 0; i < 6; i++)
    must(pawl_collective_all_reduce(member.collective, values, values, LARGE, PAWL_F32, PAWL_COLLECTIVE_SUM, PATIENCE));
  for (int i = 0; i < 2; i++) must(pwi_child_ready(children[i], pwi_host_after(PATIENCE), &line));
  pwi_child_stop(children[0], 0); /* kill -9 */
  lose_one(&member, values, 2);
  pwi_child_stop(children[1], 0);
  lose_one(&member, values, 1);
  must(pawl_collective_barrier(member.collective, PATIENCE));
  close_member(&member);
  pwi_free(values);
}

static void test_processes_are_killed_over_shared_memory(void **state) {
  (void)state;
  kill_processes(false);
}

static void test_processes_are_killed_over_tcp(void **state) {
  (void)state;
  kill_processes(true);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_operations),
      cmocka_unit_test(test_two_collectives_at_once),
      cmocka_unit_test(test_members_that_differ_are_named),
      cmocka_unit_test(test_a_call_that_has_timed_out_is_repeated),
      cmocka_unit_test(test_bad_arguments_are_refused),
      cmocka_unit_test(test_processes_are_killed_over_shared_memory),
      cmocka_unit_test(test_processes_are_killed_over_tcp),
  };
  if (argc == 4) return run_process(argv);
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
