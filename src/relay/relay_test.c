/* Which requests a relay takes, from whom, and when it answers DIRECT instead. */
#include "relay/relay_testing.h"

static const float ones[ROWS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

static void expect_direct(struct family *family, const struct asked *asked) {
  uint64_t refused = figures_of(family).refused;
  expect_code(family, ask(family, asked), PWI_CODE_DIRECT);
  assert_int_equal(figures_of(family).refused, refused + 1);
  assert_null(under_way(family));
  assert_null(family->relay->sums);
}

/* --- what the request says ------------------------------------------------------------------------------ */

static void test_a_pull_of_a_child_that_knows_more_is_not_taken(void **state) {
  FAMILY(false);
  struct asked asked = pull_of(&family, 11, 4, 4, 0);
  asked.head.view = 2;
  expect_direct(&family, &asked);
  asked = pull_of(&family, 11, 4, 4, 0);
  asked.head.catalogue = (uint32_t)family.scene.client->catalogue.number + 1;
  expect_direct(&family, &asked);
  asked.head.catalogue--;
  asked.terms.number = ++family.last_number;
  expect_nothing(&family, ask(&family, &asked));
  close_family(&family);
}

/* What the relay sends would be refused, because the servers may know more as well. */
static void test_a_request_of_a_child_with_a_newer_membership_is_not_taken(void **state) {
  FAMILY(false);
  struct asked asked = pull_of(&family, 11, 4, 4, 0);
  asked.head.membership = (uint32_t)family.scene.client->membership->number + 1;
  expect_direct(&family, &asked);
  asked = push_of(&family, 11, 1, ones);
  asked.head.membership = (uint32_t)family.scene.client->membership->number + 1;
  expect_direct(&family, &asked);
  close_family(&family);
}

static void test_pulls_with_clocks_or_filters_are_not_taken(void **state) {
  FAMILY(false);
  struct asked asked = pull_of(&family, 11, 4, 4, 0);
  asked.terms.clocks = true;
  expect_direct(&family, &asked);
  asked = pull_of(&family, 11, 4, 4, 0);
  asked.extra = (struct pwi_section){.type = PWI_SECTION_FILTERS, .count = 8, .length = 8};
  expect_direct(&family, &asked);
  close_family(&family);
}

static void test_requests_about_a_vector_that_is_another_one_here_are_not_taken(void **state) {
  FAMILY(false);
  struct asked asked = pull_of(&family, 11, 4, 4, 0);
  asked.terms.incarnation = 1;
  expect_direct(&family, &asked);
  asked = push_of(&family, 11, 1, ones);
  asked.terms.incarnation = 1;
  expect_direct(&family, &asked);
  asked = push_of(&family, 11, 1, ones);
  asked.terms.vector.id = 77;
  expect_direct(&family, &asked);
  asked = pull_of(&family, 11, 4, 4, 0);
  asked.terms.vector.id = GROUP;
  expect_direct(&family, &asked);
  close_family(&family);
}

/* As many bytes, which would be added as if they were rows. */
static void test_pushes_that_carry_factors_or_coded_values_are_not_taken(void **state) {
  FAMILY(false);
  struct asked asked = push_of(&family, 11, 1, ones);
  asked.extra = (struct pwi_section){.type = PWI_SECTION_OPERAND, .value_type = PAWL_F32, .count = 2, .length = 8};
  expect_direct(&family, &asked);
  asked = push_of(&family, 11, 1, NULL);
  asked.extra = (struct pwi_section){
      .type = PWI_SECTION_VALUES, .codec = PWI_CODEC_F16, .value_type = PAWL_F32, .count = ROWS, .length = 2 * ROWS};
  expect_direct(&family, &asked);
  asked.extra = (struct pwi_section){
      .type = PWI_SECTION_VALUES, .value_type = PAWL_I32, .count = ROWS, .length = sizeof(float) * ROWS};
  asked.terms.number = ++family.last_number;
  expect_direct(&family, &asked);
  asked.extra.value_type = PAWL_F32;
  asked.extra.count = ROWS - 1;
  asked.extra.length = sizeof(float) * (ROWS - 1);
  asked.terms.number = ++family.last_number;
  expect_direct(&family, &asked);
  close_family(&family);
}

static void test_keys_by_signature_are_not_taken(void **state) {
  FAMILY(false);
  struct asked asked = pull_of(&family, 11, 4, 4, 0);
  asked.terms.keys = PWI_KEYS_SIGNED;
  expect_direct(&family, &asked);
  close_family(&family);
}

static void test_a_request_that_is_neither_push_nor_pull_of_a_group_fails(void **state) {
  FAMILY(false);
  struct asked asked = push_of(&family, 11, 1, ones);
  asked.terms.other = 0;
  uint64_t number = ask(&family, &asked);
  expect_code(&family, number, PWI_CODE_FAILED);
  assert_int_equal(told_about(&family, number).outcome.status, PAWL_UNSUPPORTED);
  close_family(&family);
}

static void test_a_request_with_malformed_keys_or_contributors_costs_its_link(void **state) {
  static const uint64_t falling[ROWS] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  FAMILY(false);
  struct asked asked = pull_of(&family, 11, 4, 4, 0);
  asked.keys = falling;
  expect_direct(&family, &asked); /* unsorted keys are the server's to refuse */
  assert_int_equal(family.scene.net.closed_count, 0);
  asked = push_of(&family, 11, 1, ones);
  asked.head.task = 0;
  expect_nothing(&family, ask(&family, &asked));
  assert_int_equal(family.scene.net.closed_count, 1);
  asked = push_of(&family, 12, 1, ones);
  asked.extra = (struct pwi_section){.type = PWI_SECTION_CONTRIBUTORS, .count = 8, .length = 8};
  expect_nothing(&family, ask(&family, &asked));
  assert_int_equal(family.scene.net.closed_count, 2);
  assert_null(family.relay->sums);
  close_family(&family);
}

/* --- who sends it --------------------------------------------------------------------------------------- */

static struct pwi_section proof_of(uint64_t sender, uint64_t verifier, uint8_t seal_out[PWI_SEAL_SIZE]) {
  uint8_t secret[PWI_SEAL_SECRET];
  secret_of(sender, secret);
  assert_int_equal(pwi_proof_make(secret, 0, sender, verifier, seal_out), PAWL_OK);
  return (struct pwi_section){.type = PWI_SECTION_PROOF, .count = 1, .length = PWI_SEAL_SIZE};
}

static void test_a_child_must_prove_itself_to_this_relay(void **state) {
  uint8_t seal[PWI_SEAL_SIZE];
  FAMILY(false);
  struct relay_child *child = pwi_idmap_get(&family.relay->children, link_of(11).id);
  child->shown.bound = 0;
  struct asked asked = push_of(&family, 11, 1, ones);
  expect_code(&family, ask(&family, &asked), PWI_CODE_UNPROVEN);
  const uint64_t verifiers[] = {SENDER, BESIDE_US | PWI_VERIFIER_IS_SENDER, SENDER | PWI_VERIFIER_IS_SENDER};
  for (size_t i = 0; i < 3; i++) {
    asked = push_of(&family, 11, 1, ones);
    asked.extra = proof_of(11, verifiers[i], seal);
    asked.extra_data = seal;
    uint64_t number = ask(&family, &asked);
    if (i < 2)
      expect_code(&family, number, PWI_CODE_UNPROVEN);
    else
      expect_nothing(&family, number);
  }
  assert_memory_equal(family.relay->sums->contributors.items[0].seal, seal, sizeof seal); /* for the server */
  struct asked other = push_of(&family, 12, 1, ones); /* the link is that of another sender */
  other.head.sender = 13;
  other.link = 11;
  expect_code(&family, ask(&family, &other), PWI_CODE_UNPROVEN);
  close_family(&family);
}

static void test_only_a_relay_pulls_for_others(void **state) {
  FAMILY(false);
  keep_rows(&family, 5, 4, 1);
  struct asked asked = pull_of(&family, 11, 4, 4, 0);
  asked.others[0] = (struct pwi_contributor){.sender = {12}, .task = 1, .relay = SENDER};
  asked.other_count = 1;
  expect_direct(&family, &asked);
  asked = pull_of(&family, BESIDE_US, 4, 4, 0);
  asked.others[0] = (struct pwi_contributor){.sender = {12}, .task = 1, .relay = BESIDE_US};
  asked.other_count = 1;
  expect_row(&family, ask(&family, &asked), 1);
  close_family(&family);
}

static void test_what_sixteen_relays_have_passed_on_goes_in_a_circle(void **state) {
  FAMILY(false);
  for (uint32_t hops = PWI_RELAY_HOPS_MAX - 1; hops <= PWI_RELAY_HOPS_MAX; hops++) {
    struct asked push = push_of(&family, BESIDE_US, hops, ones), pull = pull_of(&family, BESIDE_US, hops, hops, 0);
    push.others[0] = pull.others[0] = (struct pwi_contributor){.sender = {12}, .task = 1, .relay = BESIDE_US};
    push.other_count = pull.other_count = 1;
    push.hops = pull.hops = hops;
    if (hops == PWI_RELAY_HOPS_MAX) {
      expect_direct(&family, &push);
      expect_direct(&family, &pull);
      continue;
    }
    expect_nothing(&family, ask(&family, &push));
    pwi_relay_give_up(family.relay);
    uint64_t number = ask(&family, &pull);
    expect_nothing(&family, number);
    serve_rows(&family, 5, 1);
    expect_row(&family, number, 1);
  }
  close_family(&family);
}

static void test_a_child_whose_link_is_lost_has_to_be_permitted_again(void **state) {
  FAMILY(false);
  keep_rows(&family, 5, 4, 1);
  pwi_client_actor.link_down(family.scene.client, link_of(12), PAWL_LINK_RESET);
  add_child(&family, 12);
  expect_nothing(&family, pull_now(&family, 12, 4, 4, 0));
  assert_int_equal(senders_heard(&family), 1 << 12);
  expect_row(&family, pull_now(&family, 13, 4, 4, 0), 1);
  close_family(&family);
}

/* --- leaving, and memory -------------------------------------------------------------------------------- */

static void test_a_child_is_as_urgent_as_its_key_permits(void **state) {
  FAMILY(false);
  struct relay_child *child = pwi_idmap_get(&family.relay->children, link_of(11).id);
  assert_non_null(child);
  child->rights = (struct pwi_rights){.write = true, .priority = 6};
  for (uint64_t stated = 1; stated <= PWI_PRIORITY_HIGHEST; stated++) {
    assert_int_equal(pwi_relay_hear_priority(family.relay, link_of(11), stated), PAWL_OK);
    assert_int_equal(child->priority, stated < 6 ? stated : 6);
  }
  assert_int_equal(pwi_relay_hear_priority(family.relay, link_of(11), PWI_PRIORITY_HIGHEST + 1), PAWL_UNSUPPORTED);
  close_family(&family);
}

static void test_a_relay_that_leaves_answers_all_and_takes_nothing_more(void **state) {
  FAMILY(false);
  keep_rows(&family, 5, 4, 1);
  uint64_t push = push_now(&family, 11, 1, 1), sent = pull_now(&family, 11, 4, 5, 0);
  uint64_t gathered = pull_now(&family, 12, 4, 5, 0);
  pwi_relay_leave(family.relay);
  expect_code(&family, push, PWI_CODE_DIRECT);
  expect_code(&family, sent, PWI_CODE_DIRECT);
  expect_code(&family, gathered, PWI_CODE_DIRECT);
  struct asked asked = pull_of(&family, 11, 4, 4, 0);
  expect_code(&family, ask(&family, &asked), PWI_CODE_DIRECT);
  asked = push_of(&family, 11, 1, ones);
  expect_code(&family, ask(&family, &asked), PWI_CODE_DIRECT);
  serve_rows(&family, 6, 2); /* too late */
  assert_null(under_way(&family));
  close_family(&family);
}

static void test_without_memory_pushes_and_pulls_are_left_to_their_senders(void **state) {
  FAMILY(false);
  family.relay->config.memory_max = 10;
  struct asked asked = push_of(&family, 11, 1, ones);
  expect_direct(&family, &asked);
  asked = pull_of(&family, 11, 4, 5, 0);
  expect_direct(&family, &asked);
  close_family(&family);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_pull_of_a_child_that_knows_more_is_not_taken),
      cmocka_unit_test(test_a_request_of_a_child_with_a_newer_membership_is_not_taken),
      cmocka_unit_test(test_pulls_with_clocks_or_filters_are_not_taken),
      cmocka_unit_test(test_requests_about_a_vector_that_is_another_one_here_are_not_taken),
      cmocka_unit_test(test_pushes_that_carry_factors_or_coded_values_are_not_taken),
      cmocka_unit_test(test_keys_by_signature_are_not_taken),
      cmocka_unit_test(test_a_request_that_is_neither_push_nor_pull_of_a_group_fails),
      cmocka_unit_test(test_a_request_with_malformed_keys_or_contributors_costs_its_link),
      cmocka_unit_test(test_a_child_must_prove_itself_to_this_relay),
      cmocka_unit_test(test_only_a_relay_pulls_for_others),
      cmocka_unit_test(test_what_sixteen_relays_have_passed_on_goes_in_a_circle),
      cmocka_unit_test(test_a_child_whose_link_is_lost_has_to_be_permitted_again),
      cmocka_unit_test(test_a_child_is_as_urgent_as_its_key_permits),
      cmocka_unit_test(test_a_relay_that_leaves_answers_all_and_takes_nothing_more),
      cmocka_unit_test(test_without_memory_pushes_and_pulls_are_left_to_their_senders),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
