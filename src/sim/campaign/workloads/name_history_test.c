/* Histories of asks about a name: those that one order explains, and those that none does. */
#include "base/testing.h"
#include "sim/campaign/workloads/name_history.h"

#define OP(what, how, of, from, to)                                                                                    \
  { .kind = PWI_NAME_##what, .end = PWI_NAME_##how, .id = of, .begun = from, .ended = to }
#define COUNT(ops) (sizeof(ops) / sizeof *(ops))

static void test_a_name_is_created_deleted_and_created_again(void **state) {
  (void)state;
  const struct pwi_name_op ops[] = {OP(CREATE, DONE, 1, 0, 1), OP(CREATE, REFUSED, 0, 2, 3),
                                    OP(DELETE, DONE, 0, 4, 5), OP(DELETE, REFUSED, 0, 6, 7),
                                    OP(CREATE, DONE, 2, 8, 9), OP(SEEN, DONE, 2, 10, 10)};
  assert_true(pwi_name_history_is_possible(ops, COUNT(ops)));
}

static void test_concurrent_asks_may_happen_in_any_order(void **state) {
  (void)state;
  const struct pwi_name_op ops[] = {OP(DELETE, DONE, 0, 0, 9), OP(CREATE, DONE, 1, 1, 8), OP(SEEN, DONE, 0, 10, 10)};
  const struct pwi_name_op apart[] = {OP(DELETE, DONE, 0, 0, 1), OP(CREATE, DONE, 1, 2, 8), OP(SEEN, DONE, 0, 10, 10)};
  assert_true(pwi_name_history_is_possible(ops, COUNT(ops)));
  assert_false(pwi_name_history_is_possible(apart, COUNT(apart)));
}

/* The second client's vector was deleted by the first client's delete, which was sent again. */
static void test_a_delete_that_happened_twice_is_found(void **state) {
  (void)state;
  const struct pwi_name_op seen[] = {OP(CREATE, DONE, 1, 0, 1), OP(DELETE, DONE, 0, 2, 3), OP(CREATE, DONE, 2, 4, 5),
                                     OP(SEEN, DONE, 0, 10, 10)};
  const struct pwi_name_op missed[] = {OP(CREATE, DONE, 1, 0, 1), OP(DELETE, DONE, 0, 2, 3), OP(CREATE, DONE, 2, 4, 5),
                                       OP(MISSING, DONE, 2, 6, 7)};
  const struct pwi_name_op made[] = {OP(CREATE, DONE, 1, 0, 1), OP(DELETE, DONE, 0, 2, 3), OP(CREATE, DONE, 2, 4, 5),
                                     OP(CREATE, DONE, 3, 6, 7)};
  assert_false(pwi_name_history_is_possible(seen, COUNT(seen)));
  assert_false(pwi_name_history_is_possible(missed, COUNT(missed)));
  assert_false(pwi_name_history_is_possible(made, COUNT(made)));
}

static void test_an_ask_without_a_reply_happened_at_any_time_or_never(void **state) {
  (void)state;
  const struct pwi_name_op never[] = {OP(CREATE, DONE, 1, 0, 1), OP(DELETE, UNKNOWN, 0, 2, 0),
                                      OP(SEEN, DONE, 1, 10, 10)};
  const struct pwi_name_op late[] = {OP(CREATE, DONE, 1, 0, 1), OP(DELETE, UNKNOWN, 0, 2, 0),
                                     OP(CREATE, REFUSED, 0, 3, 4), OP(SEEN, DONE, 0, 10, 10)};
  const struct pwi_name_op made[] = {OP(CREATE, UNKNOWN, 0, 2, 0), OP(SEEN, DONE, 7, 10, 10)};
  const struct pwi_name_op twice[] = {OP(CREATE, DONE, 1, 0, 1), OP(DELETE, UNKNOWN, 0, 2, 0),
                                      OP(CREATE, DONE, 2, 3, 4), OP(SEEN, DONE, 0, 10, 10)};
  const struct pwi_name_op early[] = {OP(SEEN, DONE, 7, 0, 1), OP(CREATE, UNKNOWN, 0, 2, 0)};
  assert_true(pwi_name_history_is_possible(never, COUNT(never)));
  assert_true(pwi_name_history_is_possible(late, COUNT(late)));
  assert_true(pwi_name_history_is_possible(made, COUNT(made)));
  assert_false(pwi_name_history_is_possible(twice, COUNT(twice)));
  assert_false(pwi_name_history_is_possible(early, COUNT(early)));
}

static void test_a_restore_counts_once(void **state) {
  (void)state;
  struct pwi_name_op ops[] = {OP(CREATE, DONE, 1, 0, 1), OP(RESTORE, DONE, 1, 2, 3), OP(SEEN, DONE, 1, 10, 10)};
  for (uint32_t incarnation = 0; incarnation < 4; incarnation++) {
    ops[2].incarnation = incarnation;
    assert_int_equal(pwi_name_history_is_possible(ops, COUNT(ops)), incarnation == 1);
  }
  const struct pwi_name_op other[] = {OP(CREATE, DONE, 1, 0, 1), OP(RESTORE, DONE, 2, 2, 3)};
  assert_false(pwi_name_history_is_possible(other, COUNT(other)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_name_is_created_deleted_and_created_again),
      cmocka_unit_test(test_concurrent_asks_may_happen_in_any_order),
      cmocka_unit_test(test_a_delete_that_happened_twice_is_found),
      cmocka_unit_test(test_an_ask_without_a_reply_happened_at_any_time_or_never),
      cmocka_unit_test(test_a_restore_counts_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
