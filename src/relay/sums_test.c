/* Which pushes are added up, when the sum is sent, and what its children are told. */
#include "relay/relay_testing.h"

static void apply(struct family *family) { serve(family, (struct pwi_outcome){.code = PWI_CODE_OK, .version = 9}, 50); }

/* The timer of sums that wait for pushes. */
static void wait_for_hold(struct family *family) {
  family->scene.net.now += 2 * SECOND;
  family->relay->relaying.look(family->relay, family->scene.net.now);
  pwi_client_send_due(family->scene.client);
}

static void test_the_pushes_of_all_members_become_one(void **state) {
  FAMILY(false);
  uint64_t numbers[3];
  for (uint64_t i = 0; i < 3; i++) {
    assert_null(under_way(&family));
    numbers[i] = push_now(&family, 11 + i, 1, (float)(1 + i));
  }
  assert_int_equal(senders_heard(&family), 7 << 11);
  assert_true(value_heard(&family) == 6);
  for (size_t i = 0; i < 3; i++) expect_nothing(&family, numbers[i]); /* the servers do not have them yet */
  apply(&family);
  for (size_t i = 0; i < 3; i++) {
    expect_code(&family, numbers[i], PWI_CODE_OK);
    assert_int_equal(told_about(&family, numbers[i]).outcome.version, 9);
  }
  assert_null(family.relay->sums);
  assert_int_equal(family.relay->memory, 0);
  close_family(&family);
}

/* Each contributor has a number, a predecessor and a proof of its own. */
static void test_a_sum_names_its_pushes(void **state) {
  float values[ROWS] = {0};
  FAMILY(false);
  for (uint64_t id = 13; id >= 11; id--) {
    struct asked asked = push_of(&family, id, 1, values);
    asked.head.task = 20 + id;
    asked.terms.prior = id;
    asked.terms.settled = 3;
    ask(&family, &asked);
  }
  struct heard heard = hear(&family);
  assert_int_equal(heard.sender_count, 3);
  for (uint64_t i = 0; i < 3; i++) {
    assert_int_equal(heard.senders[i].sender.id, 11 + i);
    assert_int_equal(heard.senders[i].task, 31 + i);
    assert_int_equal(heard.senders[i].prior, 11 + i);
    assert_int_equal(heard.senders[i].settled, 3);
    assert_int_equal(heard.senders[i].relay, SENDER);
  }
  assert_int_equal(heard.hops, 1);
  pwi_free(heard.senders);
  close_family(&family);
}

static void test_rows_come_back_to_all_who_asked_for_them(void **state) {
  float values[ROWS] = {1};
  uint64_t numbers[3];
  FAMILY(false);
  for (uint64_t i = 0; i < 3; i++) {
    struct asked asked = push_of(&family, 11 + i, 1, values);
    asked.terms.kind = PWI_REQUEST_PUSHPULL;
    numbers[i] = ask(&family, &asked);
  }
  apply(&family);
  for (size_t i = 0; i < 3; i++) expect_row(&family, numbers[i], 50);
  for (size_t i = 0; i < 3; i++) {
    assert_non_null(family.relay->sums); /* the net sends the rows from its memory */
    net_done(&family.scene, told_about(&family, numbers[i]).sent);
  }
  assert_null(family.relay->sums);
  close_family(&family);
}

static void test_a_second_push_of_a_member_in_a_tick_is_not_taken(void **state) {
  FAMILY(false);
  uint64_t first = push_now(&family, 11, 1, 1);
  expect_code(&family, push_now(&family, 11, 1, 1), PWI_CODE_DIRECT);
  push_now(&family, 12, 1, 1);
  push_now(&family, 13, 1, 1);
  assert_true(value_heard(&family) == 3);
  expect_code(&family, push_now(&family, 11, 1, 1), PWI_CODE_DIRECT); /* nor while the sum is under way */
  expect_nothing(&family, first);
  close_family(&family);
}

static void test_a_push_that_comes_after_its_sum_was_sent_begins_another(void **state) {
  FAMILY(false);
  uint64_t first = push_now(&family, 11, 1, 1);
  push_now(&family, 12, 1, 1);
  wait_for_hold(&family);
  assert_true(value_heard(&family) == 2);
  uint64_t late = push_now(&family, 13, 1, 1);
  assert_int_equal(senders_heard(&family), 3 << 11);
  apply(&family);
  expect_code(&family, first, PWI_CODE_OK);
  expect_nothing(&family, late);
  assert_int_equal(senders_heard(&family), 1 << 13);
  assert_true(value_heard(&family) == 1);
  close_family(&family);
}

static void test_a_sum_waits_for_members_for_a_while_only(void **state) {
  FAMILY(false);
  push_now(&family, 11, 1, 1);
  family.scene.net.now += 50 * MILLISECOND;
  family.relay->relaying.look(family.relay, family.scene.net.now);
  assert_null(under_way(&family));
  wait_for_hold(&family);
  assert_int_equal(senders_heard(&family), 1 << 11);
  close_family(&family);
}

/* The members of this group push half a second apart: the next sum waits as long. */
static void test_a_sum_waits_as_long_as_pushes_of_a_tick_were_apart(void **state) {
  FAMILY(false);
  push_now(&family, 11, 1, 1);
  push_now(&family, 12, 1, 1);
  wait_for_hold(&family);
  family.scene.net.now += 500 * MILLISECOND;
  push_now(&family, 13, 1, 1); /* too late for that one */
  wait_for_hold(&family);
  pwi_relay_give_up(family.relay);
  while (under_way(&family)) apply(&family);
  push_now(&family, 11, 2, 1);
  family.scene.net.now += 500 * MILLISECOND;
  family.relay->relaying.look(family.relay, family.scene.net.now);
  assert_null(under_way(&family));
  close_family(&family);
}

static void test_a_push_for_which_there_is_no_room_is_not_taken(void **state) {
  FAMILY(false);
  family.relay->config.memory_max = 2000; /* a sum has about a thousand bytes besides its values */
  expect_nothing(&family, push_now(&family, 11, 1, 1));
  expect_code(&family, push_now(&family, 11, 2, 1), PWI_CODE_DIRECT); /* of another tick */
  expect_nothing(&family, push_now(&family, 12, 1, 1));               /* takes no more room */
  close_family(&family);
}

static void expect_own_sum(struct family *family, struct asked asked) {
  asked.head.sender = 12;
  uint64_t number = ask(family, &asked);
  size_t waiting = 0;
  expect_nothing(family, number);
  for (struct relay_sum *sum = family->relay->sums; sum; sum = sum->next) waiting += sum->contributors.count == 1;
  assert_int_equal(waiting, 2);
  assert_null(under_way(family));
  pwi_relay_give_up(family->relay);
}

/* As many rows each time. */
static void test_only_pushes_of_one_tick_to_the_same_keys_are_added_up(void **state) {
  static const uint64_t some[ROWS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, others[ROWS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 10};
  static const float values[ROWS] = {1};
  FAMILY(false);
  for (int what = 0; what < 7; what++) {
    struct asked asked = push_of(&family, 11, 1, values);
    if (what == 0) asked.keys = some;
    ask(&family, &asked);
    if (what == 0) asked.keys = others;
    if (what == 1) asked.keys = some;
    if (what == 2) asked.terms.range = pawl_range_of(ROWS, 2 * (uint64_t)ROWS);
    if (what == 3) asked.terms.claim = pawl_range_of(0, 400);
    if (what == 4) asked.terms.kind = PWI_REQUEST_PUSHPULL;
    if (what == 5) asked.terms.vector.id = 2;
    if (what == 6) asked.head.tick = 2;
    asked.terms.number = ++family.last_number;
    expect_own_sum(&family, asked);
  }
  close_family(&family);
}

/* Zero plus a negative zero would be zero. */
static void test_a_push_alone_arrives_as_it_was(void **state) {
  FAMILY(false);
  push_now(&family, 11, 1, -0.0F);
  wait_for_hold(&family);
  assert_true(signbit(value_heard(&family)));
  close_family(&family);
}

static void test_pushes_that_the_server_has_not_applied_go_back_to_their_senders(void **state) {
  static const struct pwi_outcome outcomes[] = {{.code = PWI_CODE_DIRECT, .next = 12},
                                                {.code = PWI_CODE_NOT_HERE},
                                                {.code = PWI_CODE_FAILED, .status = PAWL_NODE_FULL}};
  FAMILY(false);
  for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
    uint64_t numbers[3];
    for (uint64_t member = 0; member < 3; member++) numbers[member] = push_now(&family, 11 + member, i + 1, 1);
    serve(&family, outcomes[i], 0);
    for (size_t member = 0; member < 3; member++) expect_code(&family, numbers[member], PWI_CODE_DIRECT);
  }
  assert_int_equal(figures_of(&family).applied, 0);
  assert_int_equal(figures_of(&family).refused, 9);
  close_family(&family);
}

static void test_pushes_to_a_vector_that_was_restored_are_not_sent(void **state) {
  FAMILY(false);
  uint64_t numbers[] = {push_now(&family, 11, 1, 1), push_now(&family, 12, 1, 1)};
  family.scene.flow->entry.incarnation++;
  wait_for_hold(&family);
  assert_null(under_way(&family));
  expect_code(&family, numbers[0], PWI_CODE_DIRECT);
  expect_code(&family, numbers[1], PWI_CODE_DIRECT);
  close_family(&family);
}

/* It may send its push to the server, which then refuses the aggregate. */
static void test_a_sum_is_given_up_when_a_child_is_lost(void **state) {
  FAMILY(false);
  uint64_t other = push_now(&family, 11, 1, 1);
  push_now(&family, 12, 1, 1);
  pwi_client_actor.link_down(family.scene.client, link_of(12), PAWL_LINK_RESET);
  expect_code(&family, other, PWI_CODE_DIRECT);
  assert_null(under_way(&family));
  assert_null(family.relay->sums);
  close_family(&family);
}

static void test_an_aggregate_has_passed_one_relay_more_than_its_parts(void **state) {
  static const float values[ROWS] = {1};
  FAMILY(false);
  push_now(&family, 11, 1, 1);
  struct asked asked = push_of(&family, BESIDE_US, 1, values);
  asked.others[0] = (struct pwi_contributor){.sender = {12}, .task = 1, .relay = BESIDE_US};
  asked.others[1] = (struct pwi_contributor){.sender = {13}, .task = 1, .relay = BESIDE_US};
  asked.other_count = 2;
  asked.hops = 3;
  uint64_t number = ask(&family, &asked);
  struct heard heard = hear(&family);
  assert_int_equal(heard.hops, 4);
  assert_int_equal(heard.sender_count, 3);
  pwi_free(heard.senders);
  apply(&family);
  expect_code(&family, number, PWI_CODE_OK);
  close_family(&family);
}

static void test_a_child_of_an_earlier_version_is_told_no_version(void **state) {
  FAMILY(false);
  struct client_link *link = pwi_idmap_get(&family.scene.client->links, link_of(12).id);
  link->peering.features = PWI_FEATURE_RELAYS;
  uint64_t numbers[] = {push_now(&family, 11, 1, 1), push_now(&family, 12, 1, 1), push_now(&family, 13, 1, 1)};
  apply(&family);
  assert_int_equal(told_about(&family, numbers[0]).outcome.version, 9);
  assert_int_equal(told_about(&family, numbers[1]).outcome.version, 0);
  close_family(&family);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_pushes_of_all_members_become_one),
      cmocka_unit_test(test_a_sum_names_its_pushes),
      cmocka_unit_test(test_rows_come_back_to_all_who_asked_for_them),
      cmocka_unit_test(test_a_second_push_of_a_member_in_a_tick_is_not_taken),
      cmocka_unit_test(test_a_push_that_comes_after_its_sum_was_sent_begins_another),
      cmocka_unit_test(test_a_sum_waits_for_members_for_a_while_only),
      cmocka_unit_test(test_a_sum_waits_as_long_as_pushes_of_a_tick_were_apart),
      cmocka_unit_test(test_a_push_for_which_there_is_no_room_is_not_taken),
      cmocka_unit_test(test_only_pushes_of_one_tick_to_the_same_keys_are_added_up),
      cmocka_unit_test(test_a_push_alone_arrives_as_it_was),
      cmocka_unit_test(test_pushes_that_the_server_has_not_applied_go_back_to_their_senders),
      cmocka_unit_test(test_pushes_to_a_vector_that_was_restored_are_not_sent),
      cmocka_unit_test(test_a_sum_is_given_up_when_a_child_is_lost),
      cmocka_unit_test(test_an_aggregate_has_passed_one_relay_more_than_its_parts),
      cmocka_unit_test(test_a_child_of_an_earlier_version_is_told_no_version),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
