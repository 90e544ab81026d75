/* Which pull is answered with which rows: those that are here, those of the read that is under way, or the next ones. */
#include "relay/relay_testing.h"

/* --- rows that are here --------------------------------------------------------------------------------- */

static bool is_answered_at_once(struct family *family, uint64_t known, uint64_t needed, uint64_t version) {
  uint64_t number = pull_now(family, 12, known, needed, version);
  bool is_here = told_about(family, number).sent != NULL;
  if (is_here) {
    expect_row(family, number, 1);
    return true;
  }
  serve(family, (struct pwi_outcome){.code = PWI_CODE_DIRECT}, 0); /* what is here stays */
  expect_code(family, number, PWI_CODE_DIRECT);
  return false;
}

static void test_rows_that_are_here_answer_pulls_for_which_they_are_young_enough(void **state) {
  FAMILY(false);
  keep_rows(&family, 5, 4, 1);
  assert_true(is_answered_at_once(&family, 4, 4, 5));
  assert_true(is_answered_at_once(&family, 4, 4, 0));
  assert_true(is_answered_at_once(&family, 9, 4, 5));
  assert_true(is_answered_at_once(&family, 2, 1, 5));
  assert_false(is_answered_at_once(&family, 4, 4, 6)); /* an older version than the caller has seen */
  assert_false(is_answered_at_once(&family, 5, 5, 5)); /* without the pushes of tick 5 */
  assert_false(is_answered_at_once(&family, 9, 5, 5));
  assert_false(is_answered_at_once(&family, 4, 5, 5)); /* the caller does not know what others have finished */
  assert_int_equal(figures_of(&family).pulls_kept, 4);
  close_family(&family);
}

static void expect_own_read(struct family *family, const struct asked *asked) {
  uint64_t number = ask(family, asked);
  expect_nothing(family, number);
  serve_rows(family, 5, 2);
  expect_row(family, number, 2);
}

/* As many rows each time, and of an age that would do. */
static void test_rows_of_other_keys_are_no_answer(void **state) {
  static const uint64_t some[ROWS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, others[ROWS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 10};
  FAMILY(false);
  keep_rows(&family, 5, 4, 1);
  struct asked other_range = pull_of(&family, 11, 4, 4, 0);
  other_range.terms.range = pawl_range_of(ROWS, 2 * (uint64_t)ROWS);
  expect_own_read(&family, &other_range);
  struct asked other_claim = pull_of(&family, 11, 4, 4, 0);
  other_claim.terms.claim = pawl_range_of(0, 400);
  expect_own_read(&family, &other_claim);
  struct asked listed = pull_of(&family, 11, 4, 4, 0);
  listed.keys = some;
  expect_own_read(&family, &listed);
  struct asked listed_otherwise = pull_of(&family, 11, 4, 4, 0);
  listed_otherwise.keys = others;
  expect_own_read(&family, &listed_otherwise);
  close_family(&family);
}

static void test_rows_of_another_vector_or_group_are_no_answer(void **state) {
  FAMILY(false);
  keep_rows(&family, 5, 4, 1);
  struct asked other_vector = pull_of(&family, 11, 4, 4, 0);
  other_vector.terms.vector.id = 2;
  uint64_t number = ask(&family, &other_vector);
  expect_nothing(&family, number);
  struct asked other_group = pull_of(&family, 11, 4, 4, 0); /* its ticks are others */
  other_group.terms.other = 4;
  expect_own_read(&family, &other_group);
  close_family(&family);
}

static void test_rows_of_another_view_are_no_answer(void **state) {
  FAMILY(false);
  keep_rows(&family, 5, 4, 1);
  SEE(&family.scene, 2, {0, 1}, {500, 2});
  uint64_t number = pull_now(&family, 11, 4, 4, 0);
  expect_nothing(&family, number);
  serve_rows(&family, 6, 2);
  expect_row(&family, number, 2);
  close_family(&family);
}

static void test_rows_that_nobody_pulls_are_dropped(void **state) {
  FAMILY(false);
  keep_rows(&family, 5, 4, 1);
  for (size_t i = 0; i < family.scene.net.sent_count; i++)
    if (family.scene.net.sent[i].cookie & PWI_RELAYING_COOKIE) net_done(&family.scene, &family.scene.net.sent[i]);
  family.scene.net.now += 59 * SECOND;
  family.relay->relaying.look(family.relay, family.scene.net.now);
  assert_int_equal(figures_of(&family).kept, 1);
  family.scene.net.now += 2 * SECOND;
  family.relay->relaying.look(family.relay, family.scene.net.now);
  assert_int_equal(figures_of(&family).kept, 0);
  assert_int_equal(family.relay->memory, 0);
  close_family(&family);
}

/* The net sends rows from the memory of the read. */
static void test_rows_live_until_the_net_has_sent_them(void **state) {
  FAMILY(false);
  uint64_t first = pull_now(&family, 11, 4, 5, 0);
  uint64_t second = pull_now(&family, 11, 4, 5, 0);
  serve_rows(&family, 5, 1);
  serve_rows(&family, 6, 2); /* takes the place of the first */
  assert_int_equal(figures_of(&family).kept, 2);
  net_done(&family.scene, told_about(&family, second).sent);
  assert_int_equal(figures_of(&family).kept, 2);
  net_done(&family.scene, told_about(&family, first).sent);
  assert_int_equal(figures_of(&family).kept, 1);
  close_family(&family);
}

/* --- the read that is under way ------------------------------------------------------------------------- */

static void test_a_pull_joins_a_read_whose_rows_will_be_young_enough(void **state) {
  FAMILY(false);
  permit_all(&family);
  uint64_t first = pull_now(&family, 11, 4, 5, 0);
  uint64_t joins = pull_now(&family, 12, 4, 4, 3), fresh = pull_now(&family, 13, 4, 5, 0);
  uint64_t later = pull_now(&family, 12, 5, 5, 0);
  serve_rows(&family, 5, 1);
  expect_row(&family, first, 1);
  expect_row(&family, joins, 1);
  expect_nothing(&family, fresh); /* it came after the read was sent */
  expect_nothing(&family, later);
  serve_rows(&family, 6, 2);
  expect_row(&family, fresh, 2);
  expect_row(&family, later, 2);
  assert_null(under_way(&family));
  assert_int_equal(figures_of(&family).reads, 2);
  close_family(&family);
}

/* Nobody has asked a server yet whether the second one may read. */
static void test_a_pull_without_a_right_joins_no_read_of_others(void **state) {
  FAMILY(false);
  uint64_t first = pull_now(&family, 11, 4, 5, 0), second = pull_now(&family, 12, 4, 4, 0);
  assert_int_equal(senders_heard(&family), 1 << 11);
  serve_rows(&family, 5, 1);
  expect_row(&family, first, 1);
  expect_nothing(&family, second);
  assert_int_equal(senders_heard(&family), 1 << 12);
  serve_rows(&family, 5, 1);
  expect_row(&family, second, 1);
  close_family(&family);
}

static void test_a_pull_joins_no_read_of_another_view(void **state) {
  FAMILY(false);
  permit_all(&family);
  uint64_t first = pull_now(&family, 11, 4, 5, 0);
  SEE(&family.scene, 2, {0, 1}, {500, 2});
  uint64_t second = pull_now(&family, 12, 4, 4, 0);
  serve_rows(&family, 5, 1);
  expect_row(&family, first, 1);
  expect_nothing(&family, second);
  serve_rows(&family, 6, 2);
  expect_row(&family, second, 2);
  close_family(&family);
}

static void test_a_pull_does_not_wait_for_a_read_that_takes_long(void **state) {
  FAMILY(false);
  permit_all(&family);
  pull_now(&family, 11, 4, 5, 0);
  family.scene.net.now += 2 * SECOND;
  expect_nothing(&family, pull_now(&family, 12, 4, 4, 0));
  family.scene.net.now++;
  expect_code(&family, pull_now(&family, 12, 4, 4, 0), PWI_CODE_DIRECT);
  expect_code(&family, pull_now(&family, 12, 4, 5, 0), PWI_CODE_DIRECT);
  close_family(&family);
}

/* --- the end of a read ---------------------------------------------------------------------------------- */

static void test_a_pull_that_wants_younger_rows_joins_the_next_read_only_once(void **state) {
  FAMILY(false);
  uint64_t number = pull_now(&family, 11, 4, 4, 9), content = pull_now(&family, 12, 4, 4, 3);
  serve_rows(&family, 5, 1);
  expect_nothing(&family, number);
  expect_nothing(&family, content);
  serve_rows(&family, 6, 2);
  expect_code(&family, number, PWI_CODE_DIRECT);
  expect_row(&family, content, 2);
  assert_null(under_way(&family));
  uint64_t again = pull_now(&family, 11, 4, 4, 9);
  serve_rows(&family, 5, 1);
  serve_rows(&family, 9, 3);
  expect_row(&family, again, 3);
  close_family(&family);
}

static void test_rows_without_a_version_answer_nobody(void **state) {
  FAMILY(false);
  uint64_t number = pull_now(&family, 11, 4, 5, 0);
  serve_rows(&family, 0, 1);
  expect_code(&family, number, PWI_CODE_DIRECT);
  assert_int_equal(figures_of(&family).kept, 0);
  close_family(&family);
}

static void test_the_others_read_again_without_a_member_that_a_server_refuses(void **state) {
  FAMILY(false);
  keep_rows(&family, 5, 4, 1);
  pull_now(&family, 11, 4, 5, 0);
  uint64_t refused = pull_now(&family, 12, 4, 5, 0), other = pull_now(&family, 13, 4, 5, 0);
  serve_rows(&family, 6, 2);
  assert_int_equal(senders_heard(&family), 1 << 12 | 1 << 13);
  serve(&family, (struct pwi_outcome){.code = PWI_CODE_DIRECT, .next = 12}, 0);
  expect_code(&family, refused, PWI_CODE_DIRECT);
  expect_nothing(&family, other);
  assert_int_equal(senders_heard(&family), 1 << 13);
  serve_rows(&family, 7, 3);
  expect_row(&family, other, 3);
  uint64_t later = pull_now(&family, 12, 4, 4, 0); /* rows are here, and it may not have them */
  expect_nothing(&family, later);
  assert_int_equal(senders_heard(&family), 1 << 12);
  close_family(&family);
}

/* The refused member may be a child of that relay. */
static void test_a_relay_is_told_whom_a_server_refuses(void **state) {
  FAMILY(false);
  struct asked asked = pull_of(&family, BESIDE_US, 4, 5, 0);
  asked.others[0] = (struct pwi_contributor){.sender = {12}, .task = 1, .relay = BESIDE_US};
  asked.others[1] = (struct pwi_contributor){.sender = {13}, .task = 1, .relay = BESIDE_US};
  asked.other_count = 2;
  uint64_t number = ask(&family, &asked);
  assert_int_equal(senders_heard(&family), 1 << 12 | 1 << 13);
  serve(&family, (struct pwi_outcome){.code = PWI_CODE_DIRECT, .next = 12}, 0);
  expect_code(&family, number, PWI_CODE_DIRECT);
  assert_int_equal(told_about(&family, number).outcome.next, 12);
  assert_null(under_way(&family));
  close_family(&family);
}

static void test_a_read_for_which_nobody_waits_any_more_is_not_sent(void **state) {
  FAMILY(false);
  uint64_t first = pull_now(&family, 11, 4, 5, 0);
  pull_now(&family, 12, 4, 5, 0);
  pwi_client_actor.link_down(family.scene.client, link_of(12), PAWL_LINK_RESET);
  serve_rows(&family, 5, 1);
  expect_row(&family, first, 1);
  assert_null(under_way(&family));
  assert_int_equal(figures_of(&family).reads, 1);
  close_family(&family);
}

/* --- relays above --------------------------------------------------------------------------------------- */

static struct pwi_terms terms_heard(struct family *family) {
  struct heard heard = hear(family);
  pwi_free(heard.senders);
  return heard.request.terms;
}

static void test_a_read_asks_for_what_the_strictest_of_its_pulls_needs(void **state) {
  FAMILY(true);
  pull_now(&family, 11, 4, 3, 0);
  assert_int_equal(terms_heard(&family).staleness, 2);
  pull_now(&family, 12, 6, 4, 7);
  pull_now(&family, 13, 5, 5, 3);
  serve(&family, (struct pwi_outcome){.code = PWI_CODE_OK, .version = 5, .found = 4}, 1);
  struct pwi_terms terms = terms_heard(&family);
  assert_int_equal(terms.staleness, 2); /* tick 5 of 6 */
  assert_int_equal(terms.prior, 7);
  uint64_t fresh = pull_now(&family, 11, 4, 5, 0);
  pull_now(&family, 12, 6, 6, 7);
  serve(&family, (struct pwi_outcome){.code = PWI_CODE_OK, .version = 7, .found = 6}, 2);
  expect_nothing(&family, fresh);
  assert_int_equal(terms_heard(&family).staleness, 0);
  close_family(&family);
}

static void test_a_read_has_passed_one_relay_more_than_its_pulls(void **state) {
  FAMILY(true);
  pull_now(&family, 11, 4, 5, 0);
  struct asked asked = pull_of(&family, BESIDE_US, 4, 5, 0);
  asked.others[0] = (struct pwi_contributor){.sender = {12}, .task = 1, .relay = BESIDE_US};
  asked.other_count = 1;
  asked.hops = 3;
  ask(&family, &asked);
  pull_now(&family, 13, 4, 5, 0);
  serve(&family, (struct pwi_outcome){.code = PWI_CODE_OK, .version = 5, .found = 4}, 1);
  struct heard heard = hear(&family);
  assert_int_equal(heard.sender_count, 2);
  assert_int_equal(heard.hops, 4);
  pwi_free(heard.senders);
  close_family(&family);
}

/* The relay above has given rows that it had. */
static void test_rows_are_as_old_as_the_relay_above_says(void **state) {
  FAMILY(true);
  permit_all(&family);
  uint64_t number = pull_now(&family, 11, 6, 3, 0);
  serve(&family, (struct pwi_outcome){.code = PWI_CODE_OK, .version = 5, .found = 3}, 1);
  expect_row(&family, number, 1);
  assert_int_equal(told_about(&family, number).outcome.found, 3);
  expect_row(&family, pull_now(&family, 12, 6, 3, 0), 1);
  expect_nothing(&family, pull_now(&family, 12, 6, 4, 0));
  close_family(&family);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_that_are_here_answer_pulls_for_which_they_are_young_enough),
      cmocka_unit_test(test_rows_of_other_keys_are_no_answer),
      cmocka_unit_test(test_rows_of_another_vector_or_group_are_no_answer),
      cmocka_unit_test(test_rows_of_another_view_are_no_answer),
      cmocka_unit_test(test_rows_that_nobody_pulls_are_dropped),
      cmocka_unit_test(test_rows_live_until_the_net_has_sent_them),
      cmocka_unit_test(test_a_pull_joins_a_read_whose_rows_will_be_young_enough),
      cmocka_unit_test(test_a_pull_without_a_right_joins_no_read_of_others),
      cmocka_unit_test(test_a_pull_joins_no_read_of_another_view),
      cmocka_unit_test(test_a_pull_does_not_wait_for_a_read_that_takes_long),
      cmocka_unit_test(test_a_pull_that_wants_younger_rows_joins_the_next_read_only_once),
      cmocka_unit_test(test_rows_without_a_version_answer_nobody),
      cmocka_unit_test(test_the_others_read_again_without_a_member_that_a_server_refuses),
      cmocka_unit_test(test_a_relay_is_told_whom_a_server_refuses),
      cmocka_unit_test(test_a_read_for_which_nobody_waits_any_more_is_not_sent),
      cmocka_unit_test(test_a_read_asks_for_what_the_strictest_of_its_pulls_needs),
      cmocka_unit_test(test_a_read_has_passed_one_relay_more_than_its_pulls),
      cmocka_unit_test(test_rows_are_as_old_as_the_relay_above_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
