/* Lists of senders, and who may read which vector from the rows of a relay. */
#include "relay/relay_testing.h"

static void test_senders_are_kept_in_order_and_once(void **state) {
  (void)state;
  struct relay_senders senders = {0};
  const uint64_t ids[] = {5, 2, 9, 5, 2, 7};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
    struct pwi_contributor sender = {.sender = {ids[i]}, .task = i + 1};
    assert_true(pwi_relay_add_senders(&senders, &sender, 1));
  }
  const uint64_t order[] = {2, 5, 7, 9};
  assert_int_equal(senders.count, 4);
  for (size_t i = 0; i < 4; i++) assert_int_equal(senders.items[i].sender.id, order[i]);
  assert_int_equal(senders.items[1].task, 1); /* the first one stays */
  pwi_relay_drop_sender(&senders, 5);
  pwi_relay_drop_sender(&senders, 6);
  assert_false(pwi_relay_has_sender(&senders, 5));
  assert_true(pwi_relay_has_sender(&senders, 2) && pwi_relay_has_sender(&senders, 7) &&
              pwi_relay_has_sender(&senders, 9));
  assert_int_equal(senders.count, 3);
  pwi_free(senders.items);
}

static void test_an_aggregate_has_no_more_senders_than_a_server_takes(void **state) {
  (void)state;
  struct relay_senders senders = {0};
  for (uint64_t id = 1; id <= PWI_CONTRIBUTORS_MAX; id++) {
    struct pwi_contributor sender = {.sender = {id}};
    assert_true(pwi_relay_add_senders(&senders, &sender, 1));
  }
  struct pwi_contributor sender = {.sender = {PWI_CONTRIBUTORS_MAX + 1}};
  assert_false(pwi_relay_add_senders(&senders, &sender, 1));
  assert_int_equal(senders.count, PWI_CONTRIBUTORS_MAX);
  pwi_free(senders.items);
}

static bool may_read(struct family *family, uint64_t sender, uint64_t vector) {
  struct pwi_contributor taker = {.sender = {sender}};
  return pwi_relay_may_read(family->relay, &taker, 1, vector);
}

static void test_a_right_is_of_one_sender_and_one_vector(void **state) {
  struct pwi_contributor all[] = {{.sender = {11}}, {.sender = {12}}, {.sender = {14}}};
  FAMILY(false);
  permit_all(&family);
  assert_true(may_read(&family, 11, VECTOR) && may_read(&family, 12, VECTOR) && may_read(&family, 13, VECTOR));
  assert_false(may_read(&family, 11, VECTOR + 1) || may_read(&family, 11, VECTOR - 1));
  assert_false(may_read(&family, 14, VECTOR) || may_read(&family, 10, VECTOR));
  assert_true(pwi_relay_may_read(family.relay, all, 2, VECTOR));
  assert_false(pwi_relay_may_read(family.relay, all, 3, VECTOR)); /* all of them must have it */
  pwi_relay_forbid(family.relay, 12);
  assert_false(may_read(&family, 12, VECTOR));
  assert_true(may_read(&family, 11, VECTOR) && may_read(&family, 13, VECTOR));
  close_family(&family);
}

static void test_a_right_ends_after_ten_seconds(void **state) {
  FAMILY(false);
  permit_all(&family);
  family.scene.net.now += 10 * SECOND - 1;
  assert_true(may_read(&family, 11, VECTOR));
  family.scene.net.now++;
  assert_false(may_read(&family, 11, VECTOR));
  permit_all(&family);
  assert_true(may_read(&family, 11, VECTOR));
  close_family(&family);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_senders_are_kept_in_order_and_once),
      cmocka_unit_test(test_an_aggregate_has_no_more_senders_than_a_server_takes),
      cmocka_unit_test(test_a_right_is_of_one_sender_and_one_vector),
      cmocka_unit_test(test_a_right_ends_after_ten_seconds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
