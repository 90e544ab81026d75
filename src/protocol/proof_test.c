/* A proof binds a link to the sender that made it, and to no other. */
#include "base/testing.h"
#include "protocol/proof.h"

#define CLUSTER 77
#define HANDLER 5

static struct pwi_membership membership;
static uint8_t secrets[3][PWI_SEAL_SECRET]; /* of senders 1 and 2 */

static int make_membership(void **state) {
  (void)state;
  for (uint64_t id = 1; id <= 2; id++) {
    struct pwi_membership_sender sender = {.sender = {id}, .job = "job"};
    memset(secrets[id], (int)id, sizeof secrets[id]);
    if (pwi_seal_public(secrets[id], sender.key) || pwi_membership_add(&membership, &sender)) return -1;
  }
  return 0;
}

static int free_membership(void **state) {
  (void)state;
  pwi_membership_fini(&membership);
  return 0;
}

static void show(struct pwi_shown *shown, uint64_t claimed, const uint8_t *secret, uint64_t named, uint64_t verifier) {
  uint8_t seal[PWI_SEAL_SIZE];
  assert_int_equal(pwi_proof_make(secret, CLUSTER, named, verifier, seal), PAWL_OK);
  pwi_shown_take(shown, claimed, seal, sizeof seal);
}

static bool is(struct pwi_shown *shown, uint64_t sender) {
  return pwi_shown_is(shown, &membership, CLUSTER, HANDLER, sender);
}

static void test_a_proof_binds_a_link_to_its_sender_alone(void **state) {
  struct pwi_shown shown = {0};
  (void)state;
  assert_false(is(&shown, 1));
  show(&shown, 1, secrets[1], 1, HANDLER);
  assert_false(is(&shown, 2));
  assert_true(is(&shown, 1));
  assert_true(is(&shown, 1)); /* and stays so */
  assert_false(is(&shown, 2));
  assert_false(is(&shown, 0));
}

static void test_an_invalid_proof_binds_no_sender(void **state) {
  (void)state;
  const struct {
    uint64_t claimed;
    int secret;
    uint64_t named, verifier;
  } cases[] = {{1, 2, 1, HANDLER},                          /* the seal of another */
               {1, 1, 2, HANDLER},                          /* about another */
               {1, 1, 1, HANDLER + 1},                      /* made for another receiver */
               {1, 1, 1, HANDLER | PWI_VERIFIER_IS_SENDER}, /* of the same number, but a session */
               {3, 1, 3, HANDLER}};                         /* nobody knows this one */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct pwi_shown shown = {0};
    show(&shown, cases[i].claimed, secrets[cases[i].secret], cases[i].named, cases[i].verifier);
    assert_false(is(&shown, cases[i].claimed));
    show(&shown, 1, secrets[1], 1, HANDLER); /* does not stand in the way of a true one */
    assert_true(is(&shown, 1));
  }
  struct pwi_shown shown = {0};
  uint8_t seal[PWI_SEAL_SIZE + 1] = {0};
  assert_int_equal(pwi_proof_make(secrets[1], CLUSTER + 1, 1, HANDLER, seal), PAWL_OK);
  pwi_shown_take(&shown, 1, seal, PWI_SEAL_SIZE);
  assert_false(is(&shown, 1));
  assert_int_equal(pwi_proof_make(secrets[1], CLUSTER, 1, HANDLER, seal), PAWL_OK);
  pwi_shown_take(&shown, 1, seal, PWI_SEAL_SIZE - 1); /* cut short */
  assert_false(is(&shown, 1));
  pwi_shown_take(&shown, 1, seal, PWI_SEAL_SIZE + 1);
  assert_false(is(&shown, 1));
}

/* A message of sender 1 carried it. */
static void test_a_proof_binds_no_link_to_a_sender_whose_message_did_not_carry_it(void **state) {
  struct pwi_shown shown = {0};
  (void)state;
  show(&shown, 1, secrets[2], 2, HANDLER);
  assert_false(is(&shown, 2));
  assert_false(is(&shown, 1));
}

static void test_a_proof_waits_for_the_membership(void **state) {
  struct pwi_shown shown = {0};
  struct pwi_membership empty = {0};
  (void)state;
  show(&shown, 2, secrets[2], 2, HANDLER);
  assert_false(pwi_shown_is(&shown, &empty, CLUSTER, HANDLER, 2));
  assert_true(is(&shown, 2));
}

/* A client that was declared dead continues over the same link. */
static void test_a_link_is_bound_to_the_last_that_was_proved(void **state) {
  struct pwi_shown shown = {0};
  (void)state;
  show(&shown, 1, secrets[1], 1, HANDLER);
  assert_true(is(&shown, 1));
  show(&shown, 2, secrets[2], 2, HANDLER);
  assert_true(is(&shown, 1));
  assert_true(is(&shown, 2));
  assert_false(is(&shown, 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_proof_binds_a_link_to_its_sender_alone),
      cmocka_unit_test(test_an_invalid_proof_binds_no_sender),
      cmocka_unit_test(test_a_proof_binds_no_link_to_a_sender_whose_message_did_not_carry_it),
      cmocka_unit_test(test_a_proof_waits_for_the_membership),
      cmocka_unit_test(test_a_link_is_bound_to_the_last_that_was_proved),
  };
  return cmocka_run_group_tests(tests, make_membership, free_membership);
}
