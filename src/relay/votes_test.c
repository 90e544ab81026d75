/* How a relay with --tree auto joins and leaves the peer groups by which it votes: what it asks of the manager, which
 * the test plays. */
#include "relay/relay_testing.h"

#define VOTE_NONE UINT64_C(4)
#define VOTE_RACK UINT64_C(5)
#define RETRY (10 * SECOND)

static void look(struct family *family) { pwi_relay_look_at_votes(family->relay, family->scene.net.now); }

/* The servers have applied a sum of this relay. */
static void add_up(struct family *family) {
  int64_t now = family->scene.net.now;
  pwi_choice_note(&family->relay->votes.choice, now - MILLISECOND, now, 100);
}

static void pass(struct family *family, int64_t time) { family->scene.net.now += time; }

/* The group of those that vote for the tree, as the manager's news would bring it. */
static void add_group(struct family *family, uint64_t id, enum pwi_tree tree) {
  char name[PAWL_NAME_MAX + 1];
  pwi_relay_vote_name(&(struct pwi_relay_tree){.tree = tree}, name);
  add_entry(family->scene.client, id, PWI_ENTRY_PEERS, name);
}

static void join_group(struct family *family, uint64_t id, uint64_t sender) {
  struct pwi_membership *membership = family->scene.client->membership;
  assert_int_equal(pwi_membership_join(membership, (struct pwi_vector_id){id}, 0, (struct pwi_sender){sender}),
                   PAWL_OK);
}

static bool has_voted(struct family *family, uint64_t id) {
  return pwi_membership_is_member(family->scene.client->membership, (struct pwi_vector_id){id},
                                  (struct pwi_sender){SENDER});
}

static size_t asked(const struct family *family, enum pwi_ask what) {
  size_t count = 0;
  for (size_t i = 0; i < family->scene.net.sent_count; i++) {
    const struct stub_sent *sent = &family->scene.net.sent[i];
    struct pwi_message message = {.head = sent->head, .body_size = sent->body_size};
    struct pwi_control control;
    if (sent->link != MANAGER_LINK) continue;
    pwi_control_begin(&control, &message, scene_terms());
    count += control.head.kind == PWI_SAY_ASK && control.head.tick == what;
  }
  return count;
}

static void reply(struct family *family, pawl_status status) {
  hear_reply(&family->scene, &family->relay->votes.asking, 0, status);
}

/* --- tests ---------------------------------------------------------------------------------------------- */

static void test_a_relay_without_sums_does_not_vote(void **state) {
  FAMILY(false);
  look(&family);
  pass(&family, SECOND);
  look(&family);
  assert_int_equal(asked(&family, PWI_ASK_PEERS), 0);
  add_up(&family);
  look(&family);
  assert_int_equal(asked(&family, PWI_ASK_PEERS), 1);
  close_family(&family);
}

static void test_a_vote_that_the_manager_refuses_is_asked_for_again_later(void **state) {
  FAMILY(false);
  look(&family);
  add_up(&family);
  for (size_t asks = 1; asks <= 3; asks++) {
    look(&family);
    assert_int_equal(asked(&family, PWI_ASK_PEERS), asks);
    pass(&family, 2 * RETRY); /* the manager takes its time: one ask is enough */
    add_up(&family);
    look(&family);
    assert_int_equal(asked(&family, PWI_ASK_PEERS), asks);
    reply(&family, PAWL_NODE_LIMIT);
    pass(&family, RETRY - 1);
    look(&family);
    assert_int_equal(asked(&family, PWI_ASK_PEERS), asks);
    pass(&family, 1);
  }
  close_family(&family);
}

/* Another relay has the same vote, so the group is there; this relay is not in it yet. */
static void test_a_vote_counts_once_the_membership_has_it(void **state) {
  FAMILY(false);
  add_group(&family, VOTE_NONE, PWI_TREE_NONE);
  join_group(&family, VOTE_NONE, BESIDE_US);
  look(&family);
  add_up(&family);
  look(&family);
  reply(&family, PAWL_OK);
  look(&family);
  assert_int_equal(asked(&family, PWI_ASK_PEERS), 2); /* the reply alone is no vote */
  join_group(&family, VOTE_NONE, SENDER);
  reply(&family, PAWL_OK);
  look(&family);
  assert_int_equal(asked(&family, PWI_ASK_PEERS), 2);
  assert_true(has_voted(&family, VOTE_NONE));
  assert_int_equal(asked(&family, PWI_ASK_UNGROUP), 0);
  close_family(&family);
}

static void test_a_relay_leaves_its_former_vote_after_it_has_the_new_one(void **state) {
  FAMILY(false);
  add_group(&family, VOTE_NONE, PWI_TREE_NONE);
  add_group(&family, VOTE_RACK, PWI_TREE_RACK);
  join_group(&family, VOTE_RACK, SENDER);
  add_up(&family);
  look(&family);
  assert_int_equal(asked(&family, PWI_ASK_PEERS), 1);
  assert_int_equal(asked(&family, PWI_ASK_UNGROUP), 0);
  join_group(&family, VOTE_NONE, SENDER);
  reply(&family, PAWL_OK);
  look(&family);
  assert_int_equal(asked(&family, PWI_ASK_PEERS), 1);
  assert_int_equal(asked(&family, PWI_ASK_UNGROUP), 1);
  close_family(&family);
}

static void test_a_relay_whose_sums_have_ended_leaves_all_votes(void **state) {
  FAMILY(false);
  add_group(&family, VOTE_NONE, PWI_TREE_NONE);
  join_group(&family, VOTE_NONE, SENDER);
  add_up(&family);
  look(&family);
  assert_int_equal(asked(&family, PWI_ASK_UNGROUP), 0);
  pass(&family, 601 * SECOND);
  look(&family);
  assert_int_equal(asked(&family, PWI_ASK_UNGROUP), 1);
  close_family(&family);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_relay_without_sums_does_not_vote),
      cmocka_unit_test(test_a_vote_that_the_manager_refuses_is_asked_for_again_later),
      cmocka_unit_test(test_a_vote_counts_once_the_membership_has_it),
      cmocka_unit_test(test_a_relay_leaves_its_former_vote_after_it_has_the_new_one),
      cmocka_unit_test(test_a_relay_whose_sums_have_ended_leaves_all_votes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
