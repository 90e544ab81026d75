/* Calls of collectives that no careful program makes, between real sessions: each gets a status and a message, and the
 * members go on afterwards. */
#include "collective_scene.h"

#include <math.h>

#include "base/memory.h"

#define LARGE 50021 /* values that travel around the ring */

static pawl_status add_one(struct member *member, double *sum_out) {
  *sum_out = 1;
  return pawl_collective_all_reduce(member->collective, sum_out, sum_out, 1, PAWL_F64, PAWL_COLLECTIVE_SUM, PATIENCE);
}

static uint32_t rank_of(const struct member *member) {
  struct pawl_collective_state state;
  pawl_collective_state(member->collective, &state);
  return state.rank;
}

/* --- sizes ---------------------------------------------------------------------------------------------- */

static pawl_status give_nothing(struct member *member) {
  struct pawl_collective *c = member->collective;
  float one = 7;
  pawl_status status = pawl_collective_broadcast(c, NULL, 0, PAWL_F32, 1, PATIENCE);
  if (!status) status = pawl_collective_all_gather(c, NULL, 0, PAWL_F64, NULL, 0, PATIENCE);
  if (!status) status = pawl_collective_all_reduce(c, NULL, NULL, 0, PAWL_F64, PAWL_COLLECTIVE_MAX, PATIENCE);
  if (!status) status = pawl_collective_reduce_scatter(c, NULL, 0, PAWL_F32, PAWL_COLLECTIVE_MIN, NULL, 0, PATIENCE);
  if (!status) /* fewer values than members: some blocks are empty, and need no memory */
    status = pawl_collective_reduce_scatter(c, &one, 1, PAWL_F32, PAWL_COLLECTIVE_MIN, rank_of(member) ? NULL : &one,
                                            rank_of(member) ? 0 : 1, PATIENCE);
  if (!status) CHECK(one == 7);
  return status;
}

static void test_count_0_needs_no_memory(void **state) {
  (void)state;
  run_all_members(2, false, give_nothing);
  run_all_members(3, false, give_nothing);
}

static pawl_status ask_too_much(struct member *member) {
  struct pawl_collective *c = member->collective;
  double sum, value = 0;
  size_t most = PTRDIFF_MAX / sizeof value;
  pawl_status status = pawl_collective_barrier(c, PATIENCE);
  if (status) return status;
  CHECK(pawl_collective_all_reduce(c, &value, &value, most + 1, PAWL_F64, PAWL_COLLECTIVE_SUM, PATIENCE) ==
        PAWL_TOO_LARGE);
  CHECK(pawl_collective_broadcast(c, &value, SIZE_MAX, PAWL_F32, 0, PATIENCE) == PAWL_TOO_LARGE);
  CHECK(strstr(pawl_error_text(), "no memory has that many bytes"));
  CHECK(pawl_collective_all_gather(c, &value, most, PAWL_F64, &value, SIZE_MAX, PATIENCE) == PAWL_TOO_LARGE);
  CHECK(strstr(pawl_error_text(), "3 members"));
  CHECK(pawl_collective_reduce_scatter(c, &value, most, PAWL_F64, PAWL_COLLECTIVE_SUM, &value, most / 4, PATIENCE) ==
        PAWL_INVALID);
  CHECK(strstr(pawl_error_text(), "room is"));
  return add_one(member, &sum);
}

static void test_sizes_that_overflow_are_refused(void **state) {
  (void)state;
  run_all_members(3, false, ask_too_much);
}

/* --- buffers -------------------------------------------------------------------------------------------- */

static pawl_status overlap(struct member *member) {
  struct pawl_collective *c = member->collective;
  double v[12] = {0}, sum;
  pawl_status status = pawl_collective_barrier(c, PATIENCE);
  if (status) return status;
  uint32_t rank = rank_of(member);
  CHECK(pawl_collective_all_reduce(c, v, v + 1, 4, PAWL_F64, PAWL_COLLECTIVE_SUM, PATIENCE) == PAWL_INVALID);
  CHECK(strstr(pawl_error_text(), "in and out overlap"));
  CHECK(pawl_collective_all_reduce(c, v + 3, v, 4, PAWL_F64, PAWL_COLLECTIVE_SUM, PATIENCE) == PAWL_INVALID);
  CHECK(pawl_collective_all_gather(c, v + 4 * (1 - rank), 4, PAWL_F64, v, 8, PATIENCE) == PAWL_INVALID);
  CHECK(pawl_collective_reduce_scatter(c, v, 4, PAWL_F64, PAWL_COLLECTIVE_SUM, v + 1, 2, PATIENCE) == PAWL_INVALID);
  /* what is allowed: neighbours, and the own place */
  status = pawl_collective_all_reduce(c, v, v + 4, 4, PAWL_F64, PAWL_COLLECTIVE_SUM, PATIENCE);
  if (!status) status = pawl_collective_all_reduce(c, v + 4, v, 4, PAWL_F64, PAWL_COLLECTIVE_SUM, PATIENCE);
  if (!status) status = pawl_collective_all_gather(c, v + 4 * rank, 4, PAWL_F64, v, 8, PATIENCE);
  if (!status)
    status = pawl_collective_reduce_scatter(c, v, 4, PAWL_F64, PAWL_COLLECTIVE_SUM, v + 2 * rank, 2, PATIENCE);
  if (!status) status = add_one(member, &sum);
  if (!status) CHECK(sum == 2);
  return status;
}

static void test_buffers_that_overlap_are_refused(void **state) {
  (void)state;
  run_all_members(2, false, overlap);
}

/* --- values --------------------------------------------------------------------------------------------- */

/* Every member gives other NaN, of both signs and kinds. All get the same bits, small and large. */
static pawl_status give_nan(struct member *member) {
  pawl_status status = pawl_collective_barrier(member->collective, PATIENCE);
  uint32_t *values = pwi_alloc_zero(LARGE, sizeof *values), wrong = 0;
  if (!values) return PAWL_NO_MEMORY;
  for (int i = 0; i < 6 && !status; i++) {
    size_t count = i < 3 ? 100 : LARGE;
    for (size_t k = 0; k < count; k++)
      values[k] = (k % 2 ? 0xff800001 : 0x7fc00000) + 16 * rank_of(member) + (uint32_t)(k % 5);
    status = pawl_collective_all_reduce(member->collective, values, values, count, PAWL_F32,
                                        (enum pawl_collective_operator)(i % 3), PATIENCE);
    for (size_t k = 0; k < count; k++) wrong += values[k] != 0x7fc00000;
  }
  pwi_free(values);
  CHECK(wrong == 0);
  return status;
}

static void test_all_members_get_the_same_nan(void **state) {
  (void)state;
  run_all_members(3, false, give_nan);
}

/* --- calls ---------------------------------------------------------------------------------------------- */

/* The same calls in another order at one member. Each member sees it once, and they go on together. */
static pawl_status call_in_another_order(struct member *member) {
  double sum, value = 1;
  pawl_status first = member->index == 2 ? pawl_collective_barrier(member->collective, PATIENCE)
                                         : pawl_collective_all_reduce(member->collective, &value, &value, 1, PAWL_F64,
                                                                      PAWL_COLLECTIVE_MAX, PATIENCE);
  CHECK(first == PAWL_MISMATCH || first == PAWL_CANCELLED);
  CHECK(strstr(pawl_error_text(), "node"));
  CHECK(pawl_collective_barrier(member->collective, PATIENCE) == first);
  pawl_status status = pawl_collective_renew(member->collective, PATIENCE);
  if (!status) status = add_one(member, &sum);
  if (!status) CHECK(sum == 3);
  return status;
}

static void test_another_order_is_a_mismatch_and_renew_goes_on(void **state) {
  (void)state;
  run_all_members(3, false, call_in_another_order);
}

/* A program that polls: a call without time makes progress all the same. */
static pawl_status poll_it(struct member *member) {
  double value = 1;
  pawl_status status = PAWL_TIMED_OUT;
  while (status == PAWL_TIMED_OUT)
    status = pawl_collective_all_reduce(member->collective, &value, &value, 1, PAWL_F64, PAWL_COLLECTIVE_SUM, 0);
  if (!status) CHECK(value == 3);
  return status;
}

static void test_calls_with_a_deadline_of_0_complete_by_repetition(void **state) {
  (void)state;
  run_all_members(3, false, poll_it);
  run_all_members(3, true, poll_it);
}

/* Member 0 renews after every operation. The others may still be in that one, or are in the next. */
static pawl_status renew_for_nothing(struct member *member) {
  struct pawl_collective_state state;
  double sum;
  pawl_status status = PAWL_OK;
  for (uint64_t i = 1; i < 6 && !status; i++) {
    status = add_one(member, &sum);
    if (!status) CHECK(sum == 3);
    if (!status && member->index > 0) status = pawl_collective_barrier(member->collective, PATIENCE);
    if (member->index > 0) CHECK(status == PAWL_CANCELLED && strstr(pawl_error_text(), "pawl_collective_renew"));
    status = pawl_collective_renew(member->collective, PATIENCE);
    pawl_collective_state(member->collective, &state);
    if (!status) CHECK(state.renewals == i + 1 && state.size == 3);
  }
  if (!status) status = add_one(member, &sum);
  if (!status) CHECK(sum == 3);
  return status;
}

static void test_renew_while_nobody_was_lost(void **state) {
  (void)state;
  run_all_members(3, false, renew_for_nothing);
}

static void test_names(void **state) {
  struct pawl_collective *collective = NULL;
  struct pawl_peers *peers = NULL;
  char name[5000];
  (void)state;
  must(pawl_peers_join(session, "r/names", 1, PATIENCE, &peers));
  memset(name, 'x', sizeof name);
  name[sizeof name - 1] = '\0';
  must_fail(pawl_collective_open(peers, name, PATIENCE, &collective), PAWL_INVALID, "letters, digits");
  must_fail(pawl_collective_open(peers, "", PATIENCE, &collective), PAWL_INVALID, "letters, digits");
  name[PAWL_COLLECTIVE_NAME_MAX + 1] = '\0';
  must_fail(pawl_collective_open(peers, name, PATIENCE, &collective), PAWL_INVALID, "1 to 48 letters");
  name[PAWL_COLLECTIVE_NAME_MAX] = '\0';
  must(pawl_collective_open(peers, name, PATIENCE, &collective));
  must(pawl_collective_barrier(collective, PATIENCE));
  pawl_collective_close(collective);
  pawl_peers_leave(peers);
}

/* --- threads -------------------------------------------------------------------------------------------- */

struct waiter {
  struct pawl_collective *collective;
  bool must_renew;
  pawl_status status;
  char text[256];
};

/* Until the first thread is not in a call. */
static void *wait_for_ever(void *context) {
  struct waiter *waiter = context;
  waiter->status = PAWL_INVALID;
  while (waiter->status == PAWL_INVALID)
    waiter->status = waiter->must_renew ? pawl_collective_renew(waiter->collective, PATIENCE)
                                        : pawl_collective_barrier(waiter->collective, PATIENCE);
  snprintf(waiter->text, sizeof waiter->text, "%s", pawl_error_text());
  return NULL;
}

/* The second member has not opened the collective, so the call of the first one waits. */
static void close_during(bool must_renew) {
  struct member members[2] = {{.size = 2}, {.size = 2}};
  struct waiter waiter = {.must_renew = must_renew};
  pthread_t thread;
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.address = pawl_session_address(session);
  options.peers_only = true;
  group_number++;
  for (int i = 0; i < 2; i++) {
    snprintf(members[i].group, sizeof members[i].group, "r/group%d", group_number);
    must(pawl_session_open(&options, &members[i].session));
    must(pawl_peers_join(members[i].session, members[i].group, 2, PATIENCE, &members[i].peers));
  }
  must(pawl_collective_open(members[0].peers, "main", PATIENCE, &waiter.collective));
  assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, &waiter), 0);
  pawl_status status = PAWL_OK; /* until the other thread is in its call */
  while (status != PAWL_INVALID) status = pawl_collective_barrier(waiter.collective, 0);
  assert_non_null(strstr(pawl_error_text(), "another thread is in a call"));
  must_fail(pawl_collective_renew(waiter.collective, PATIENCE), PAWL_INVALID, "another thread is in a call");
  pawl_collective_close(waiter.collective);
  pthread_join(thread, NULL);
  assert_int_equal(waiter.status, PAWL_NODE_STOPPED);
  assert_non_null(strstr(waiter.text, "another thread has closed the collective"));
  for (int i = 0; i < 2; i++) close_member(&members[i]);
}

static void test_closing_ends_the_call_of_another_thread(void **state) {
  (void)state;
  for (int i = 0; i < 20; i++) close_during(i % 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_count_0_needs_no_memory),
      cmocka_unit_test(test_sizes_that_overflow_are_refused),
      cmocka_unit_test(test_buffers_that_overlap_are_refused),
      cmocka_unit_test(test_all_members_get_the_same_nan),
      cmocka_unit_test(test_another_order_is_a_mismatch_and_renew_goes_on),
      cmocka_unit_test(test_calls_with_a_deadline_of_0_complete_by_repetition),
      cmocka_unit_test(test_renew_while_nobody_was_lost),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_closing_ends_the_call_of_another_thread),
  };
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
