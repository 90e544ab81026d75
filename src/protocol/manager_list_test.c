/* Finding the manager: lists, rounds, hints and terms. */
#include "base/memory.h"
#include "base/testing.h"
#include "protocol/manager_list.h"

#define MS INT64_C(1000000)
#define FIRST (20 * MS)

static struct pwi_managers managers_of(const char *list) {
  struct pwi_managers managers = {0};
  assert_int_equal(pwi_managers_init(&managers, list, FIRST), PAWL_OK);
  return managers;
}

static void test_one_address_is_tried_again_after_pauses_that_double(void **state) {
  (void)state;
  struct pwi_managers managers = managers_of("a:1");
  static const int64_t pauses[] = {20, 40, 80, 160, 320, 640, 1000, 1000};
  for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
    assert_string_equal(pwi_managers_next(&managers), "tcp://a:1");
    assert_int_equal(pwi_managers_failed(&managers), pauses[i] * MS);
  }
  pwi_managers_found(&managers);
  assert_int_equal(pwi_managers_failed(&managers), FIRST);
  assert_true(pwi_managers_patience(&managers) == 2000 * MS);
  pwi_managers_fini(&managers);
}

static void test_a_pause_comes_after_a_whole_round_only(void **state) {
  (void)state;
  struct pwi_managers managers = managers_of("a:1,tcp://b:2,unix:/c");
  static const char *const order[] = {"tcp://a:1", "tcp://b:2", "unix:/c"};
  for (int64_t round = 0; round < 8; round++)
    for (size_t i = 0; i < 3; i++) {
      assert_string_equal(pwi_managers_next(&managers), order[i]);
      int64_t pause = pwi_managers_failed(&managers);
      int64_t due = (FIRST << round) < 400 * MS ? FIRST << round : 400 * MS;
      assert_int_equal(pause, i == 2 ? due : 0);
    }
  assert_true(pwi_managers_patience(&managers) < 1000 * MS);
  pwi_managers_fini(&managers);
}

static void test_a_lost_manager_is_not_the_first_to_be_asked(void **state) {
  (void)state;
  struct pwi_managers managers = managers_of("a:1,b:2");
  assert_string_equal(pwi_managers_next(&managers), "tcp://a:1");
  pwi_managers_found(&managers);
  assert_int_equal(pwi_managers_failed(&managers), 0);
  assert_string_equal(pwi_managers_next(&managers), "tcp://b:2");
  pwi_managers_fini(&managers);
}

/* If only the link broke, the manager waits for the node. */
static void test_a_lost_manager_that_is_the_only_one_is_asked_again_at_once(void **state) {
  (void)state;
  struct pwi_managers managers = managers_of("a:1");
  assert_string_equal(pwi_managers_next(&managers), "tcp://a:1");
  pwi_managers_found(&managers);
  assert_int_equal(pwi_managers_lost(&managers), 0);
  assert_string_equal(pwi_managers_next(&managers), "tcp://a:1");
  assert_true(pwi_managers_failed(&managers) > 0); /* and then with pauses */
  pwi_managers_fini(&managers);
}

static void test_a_hint_is_followed_at_once_and_once(void **state) {
  (void)state;
  struct pwi_managers managers = managers_of("a:1,b:2");
  assert_string_equal(pwi_managers_next(&managers), "tcp://a:1");
  pwi_managers_hint(&managers, "leader:9");
  assert_int_equal(pwi_managers_failed(&managers), 0);
  assert_string_equal(pwi_managers_next(&managers), "tcp://leader:9");
  assert_int_equal(pwi_managers_failed(&managers), 0);
  assert_string_equal(pwi_managers_next(&managers), "tcp://b:2");
  pwi_managers_hint(&managers, "tcp://leader:9"); /* ignored: that manager gave the hint */
  assert_int_equal(pwi_managers_failed(&managers), FIRST);
  assert_string_equal(pwi_managers_next(&managers), "tcp://a:1");
  pwi_managers_fini(&managers);
}

static void test_hints_never_make_a_round_without_a_pause(void **state) {
  (void)state;
  struct pwi_managers managers = managers_of("a:1,b:2,c:3");
  int without = 0;
  for (int i = 0; i < 1000; i++) {
    pwi_managers_next(&managers);
    pwi_managers_hint(&managers, i % 3 == 0 ? "x:1" : i % 3 == 1 ? "y:1" : "z:1");
    without = pwi_managers_failed(&managers) == 0 ? without + 1 : 0;
    assert_true(without < 3 * (1 + 3));
  }
  pwi_managers_fini(&managers);
}

static void test_a_hint_to_nowhere_is_ignored(void **state) {
  (void)state;
  struct pwi_managers managers = managers_of("a:1,b:2");
  static const char *const nonsense[] = {"", "nothing", "a:1", "tcp://a:1", "x:1,y:2", "h:70000", "::::"};
  for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
    struct pwi_managers one = managers;
    pwi_managers_next(&one);
    pwi_managers_hint(&one, nonsense[i]);
    pwi_managers_failed(&one);
    assert_string_equal(pwi_managers_next(&one), "tcp://b:2");
  }
  pwi_managers_fini(&managers);
}

static void test_lists_that_make_no_sense_are_invalid(void **state) {
  (void)state;
  static const char *const lists[] = {
      "",      ",",        "a:1,",
      ",a:1",  "a:1,,b:2", "a",
      "a:1-9", "a:1, b:2", "1:1,2:1,3:1,4:1,5:1,6:1,7:1,8:1,9:1,10:1,11:1,12:1,13:1,14:1,15:1,16:1,17:1"};
  struct pwi_managers managers;
  char address[PWI_NET_ADDRESS_MAX], line[2 * PWI_NET_ADDRESS_MAX];
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    assert_int_equal(pwi_managers_init(&managers, lists[i], FIRST), PAWL_INVALID);
  memset(line, 'h', sizeof line - 1);
  line[sizeof line - 1] = '\0';
  assert_int_equal(pwi_managers_init(&managers, line, FIRST), PAWL_INVALID);
  assert_int_equal(pwi_managers_first(line, address), PAWL_INVALID);
  assert_int_equal(pwi_managers_first("a:1,nonsense", address), PAWL_OK);
  assert_string_equal(address, "tcp://a:1");
}

static void test_a_lower_term_is_not_heard(void **state) {
  (void)state;
  struct pwi_managers managers = managers_of("a:1");
  assert_int_equal(pwi_managers_heed(&managers, 3), PAWL_OK);
  assert_int_equal(pwi_managers_heed(&managers, 3), PAWL_OK);
  assert_int_equal(pwi_managers_heed(&managers, 2), PAWL_NODE_DEPOSED);
  assert_int_equal(pwi_managers_heed(&managers, 0), PAWL_NODE_DEPOSED);
  assert_int_equal(pwi_managers_heed(&managers, 7), PAWL_OK);
  assert_int_equal(managers.term, 7);
  pwi_managers_fini(&managers);
}

static void test_the_hint_of_a_standby_counts_with_any_term(void **state) {
  (void)state;
  struct pwi_managers managers = managers_of("a:1,b:2");
  struct pwi_joined joined = {.status = PAWL_NODE_STANDBY, .leader = "l:3"};
  assert_int_equal(pwi_managers_heed(&managers, 9), PAWL_OK);
  pwi_managers_next(&managers);
  assert_int_equal(pwi_managers_welcome(&managers, &joined, 0), PAWL_OK);
  assert_int_equal(pwi_managers_failed(&managers), 0);
  assert_string_equal(pwi_managers_next(&managers), "tcp://l:3");
  joined.status = PAWL_OK;
  assert_int_equal(pwi_managers_welcome(&managers, &joined, 8), PAWL_NODE_DEPOSED);
  assert_int_equal(pwi_managers_welcome(&managers, &joined, 10), PAWL_OK);
  pwi_managers_fini(&managers);
}

static void test_a_list_without_memory_is_an_error(void **state) {
  (void)state;
  struct pwi_managers managers;
  pwi_memory_fail_after(0);
  assert_int_equal(pwi_managers_init(&managers, "a:1,b:2", FIRST), PAWL_NO_MEMORY);
  assert_int_equal(pwi_memory_fail_cancel(), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_address_is_tried_again_after_pauses_that_double),
      cmocka_unit_test(test_a_pause_comes_after_a_whole_round_only),
      cmocka_unit_test(test_a_lost_manager_is_not_the_first_to_be_asked),
      cmocka_unit_test(test_a_lost_manager_that_is_the_only_one_is_asked_again_at_once),
      cmocka_unit_test(test_a_hint_is_followed_at_once_and_once),
      cmocka_unit_test(test_hints_never_make_a_round_without_a_pause),
      cmocka_unit_test(test_a_hint_to_nowhere_is_ignored),
      cmocka_unit_test(test_lists_that_make_no_sense_are_invalid),
      cmocka_unit_test(test_a_lower_term_is_not_heard),
      cmocka_unit_test(test_the_hint_of_a_standby_counts_with_any_term),
      cmocka_unit_test(test_a_list_without_memory_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
