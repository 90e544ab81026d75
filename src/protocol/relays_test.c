/* Names and trees of relays. */
#include "base/memory.h"
#include "base/testing.h"
#include "protocol/relays.h"

#define RELAYS 7
#define MEMBERS 23

static void test_a_tree_comes_back_from_the_job_of_its_relay(void **state) {
  (void)state;
  static const char *const names[] = {"none",   "rack",       "degree-2",     "degree-1024",
                                      "near-3", "rack.fixed", "near-9.fixed", "auto"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct pwi_relay_tree tree, back;
    char job[PWI_JOB_MAX + 1], wanted[PWI_JOB_MAX + 1];
    assert_true(pwi_relay_tree_parse(names[i], &tree));
    pwi_relay_job(&tree, job);
    snprintf(wanted, sizeof wanted, "pawl-relay.%s", names[i]);
    assert_string_equal(job, wanted);
    assert_true(pwi_relay_is_job(job, &back));
    assert_memory_equal(&back, &tree, sizeof tree);
  }
  struct pwi_relay_tree binary;
  assert_true(pwi_relay_tree_parse("binary", &binary));
  assert_true(binary.tree == PWI_TREE_DEGREE && binary.degree == 2 && !binary.is_fixed);
}

static void test_other_words_are_no_trees(void **state) {
  (void)state;
  static const char *const bad[] = {"",        "tree",      "degree",   "degree-",    "degree-1",        "degree-1025",
                                    "near-x",  "near-4x",   "rack-4",   "none.",      "degree--4",       ".fixed",
                                    "near-+4", "degree- 4", "rack.fix", "binary-2",   "degree-4.fixed.", "fixed",
                                    "near-04", "rackrack",  "-4",       "degree-4-4", "auto.fixed",      "auto-2",
                                    "Rack",    "rack "};
  struct pwi_relay_tree tree = {.degree = 77};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (pwi_relay_tree_parse(bad[i], &tree)) fail_msg("'%s' is a tree", bad[i]);
  assert_int_equal(tree.degree, 77);
  assert_false(pwi_relay_is_job("relay", NULL));
  assert_true(pwi_relay_is_job("pawl-relay.of-a-later-version", &tree)); /* it sends to the servers */
  assert_true(tree.tree == PWI_TREE_NONE && tree.degree == 0);
}

/* --- trees ---------------------------------------------------------------------------------------------- */

static struct pwi_vector_id group = {5};
static const struct pwi_catalogue no_votes;

static void add(struct pwi_membership *membership, const char *job, const char *host, const char *rack) {
  struct pwi_membership_sender sender = {.sender = {membership->last + 1}};
  strcpy(sender.job, job);
  strcpy(sender.host, host);
  strcpy(sender.rack, rack);
  strcpy(sender.address, "somewhere:7000");
  assert_int_equal(pwi_membership_add(membership, &sender), PAWL_OK);
}

/* Relays 1 to RELAYS in three racks, then members, of which the first is on the host of the second relay, and the last
 * is in a rack without relays. */
static struct pwi_membership make(const char *tree) {
  struct pwi_membership membership = {0};
  char job[PWI_JOB_MAX + 1], host[16], rack[16];
  snprintf(job, sizeof job, "pawl-relay.%s", tree);
  for (int i = 0; i < RELAYS; i++) {
    snprintf(host, sizeof host, "relay%d", i);
    snprintf(rack, sizeof rack, "rack%d", i % 3);
    add(&membership, job, host, rack);
  }
  for (int i = 0; i < MEMBERS; i++) {
    snprintf(rack, sizeof rack, "rack%d", i == MEMBERS - 1 ? 9 : i % 3);
    add(&membership, "work", i == 0 ? "relay1" : "", rack);
    assert_int_equal(pwi_membership_join(&membership, group, MEMBERS, (struct pwi_sender){membership.last}), PAWL_OK);
  }
  return membership;
}

static void check_tree(const struct pwi_relays *relays, const struct pwi_membership *membership, uint32_t shard) {
  size_t at_top = 0;
  for (uint64_t member = RELAYS + 1; member <= RELAYS + MEMBERS; member++) {
    uint64_t relay = pwi_relays_above_member(relays, membership, group, (struct pwi_sender){member}, shard);
    assert_in_range(relay, 1, RELAYS);
    if (member == RELAYS + 1) assert_int_equal(relay, 2); /* on its host */
    const struct pwi_membership_sender *it = pwi_membership_find(membership, (struct pwi_sender){member});
    const struct pwi_membership_sender *above = pwi_membership_find(membership, (struct pwi_sender){relay});
    if (member > RELAYS + 1 && member < RELAYS + MEMBERS) assert_string_equal(it->rack, above->rack);
    for (int hops = 0; relay != 0; hops++) {
      assert_true(hops < RELAYS); /* every way ends at the server */
      relay = pwi_relays_above(relays, relay, shard);
    }
  }
  for (uint64_t relay = 1; relay <= RELAYS; relay++)
    if (pwi_relays_above(relays, relay, shard) == 0)
      at_top += pwi_relays_below(relays, membership, group, relay, shard);
  assert_int_equal(at_top, MEMBERS); /* each push reaches the server once */
}

static void test_every_member_reaches_the_server_in_every_tree(void **state) {
  (void)state;
  static const char *const trees[] = {"none", "rack", "binary", "degree-3", "near-2", "rack.fixed", "near-2.fixed"};
  struct pwi_view_node nodes[4] = {{.node = {3}}, {.node = {4}}, {.node = {8}}, {.node = {9}}};
  struct pwi_view view = {.nodes = nodes, .node_count = 4};
  for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
    struct pwi_membership membership = make(trees[i]);
    struct pwi_relays relays = {0};
    pwi_relays_refresh(&relays, &membership, &no_votes, &view);
    assert_int_equal(relays.count, RELAYS);
    assert_int_equal(pwi_relays_shard(&relays, &view, 8), 2);
    for (uint32_t shard = 0; shard < 4; shard++) check_tree(&relays, &membership, shard);
    pwi_relays_fini(&relays);
    pwi_membership_fini(&membership);
  }
}

/* --- votes ---------------------------------------------------------------------------------------------- */

/* Adds an entry, and the relay as its member. */
static void vote(struct pwi_membership *membership, struct pwi_catalogue *catalogue, const char *name,
                 enum pwi_entry_kind kind, uint64_t relay) {
  const struct pwi_entry *known = pwi_catalogue_named(catalogue, name);
  struct pwi_entry entry = {.id = {100 + catalogue->count},
                            .kind = kind,
                            .is = {.type = PAWL_U64,
                                   .width = 1,
                                   .size = PAWL_KEY_END,
                                   .placement = PAWL_PLACE_ORDERED,
                                   .layout = PAWL_LAYOUT_SPARSE}};
  strcpy(entry.name, name);
  if (!known) assert_int_equal(pwi_catalogue_add(catalogue, &entry), PAWL_OK);
  struct pwi_vector_id id = known ? known->id : entry.id;
  assert_int_equal(pwi_membership_join(membership, id, 0, (struct pwi_sender){relay}), PAWL_OK);
}

static void expect_tree(const struct pwi_membership *membership, const struct pwi_catalogue *catalogue,
                        const char *wanted) {
  struct pwi_relays relays = {0};
  char name[PWI_RELAY_TREE_MAX + 1];
  pwi_relays_refresh(&relays, membership, catalogue, NULL);
  pwi_relay_tree_name(&relays.tree, name);
  assert_string_equal(name, wanted);
  pwi_relays_fini(&relays);
}

static void test_the_tree_with_most_votes_is_in_force(void **state) {
  (void)state;
  struct pwi_membership membership = make("auto");
  struct pwi_catalogue catalogue = {0};
  expect_tree(&membership, &catalogue, "rack"); /* nobody votes */
  vote(&membership, &catalogue, "pawl-relay/.none", PWI_ENTRY_PEERS, 7);
  expect_tree(&membership, &catalogue, "none");
  vote(&membership, &catalogue, "pawl-relay/.near-4", PWI_ENTRY_PEERS, 4);
  expect_tree(&membership, &catalogue, "near-4"); /* of two with as many votes, that of the lowest id */
  vote(&membership, &catalogue, "pawl-relay/.none", PWI_ENTRY_PEERS, 6);
  expect_tree(&membership, &catalogue, "none");
  vote(&membership, &catalogue, "pawl-relay/.near-4", PWI_ENTRY_PEERS, 6); /* it counts where it was first */
  expect_tree(&membership, &catalogue, "none");
  assert_int_equal(pwi_membership_retire(&membership, (struct pwi_sender){6}), PAWL_OK);
  expect_tree(&membership, &catalogue, "near-4");
  add(&membership, "pawl-relay.binary", "", ""); /* relays with a tree have votes, too */
  add(&membership, "pawl-relay.binary", "", "");
  expect_tree(&membership, &catalogue, "degree-2");
  pwi_catalogue_fini(&catalogue);
  pwi_membership_fini(&membership);
}

static void test_only_relays_that_choose_vote_by_groups(void **state) {
  (void)state;
  struct pwi_membership membership = make("auto");
  struct pwi_catalogue catalogue = {0};
  vote(&membership, &catalogue, "pawl-relay/.degree-4", PWI_ENTRY_PEERS, RELAYS + 1); /* no relay */
  vote(&membership, &catalogue, "pawl-relay/.degree-8", PWI_ENTRY_GROUP, 1);
  vote(&membership, &catalogue, "pawl-relay/.auto", PWI_ENTRY_PEERS, 1);
  vote(&membership, &catalogue, "pawl-relay/.tree", PWI_ENTRY_PEERS, 1);
  vote(&membership, &catalogue, "pawl-relays/.near-4", PWI_ENTRY_PEERS, 1);
  expect_tree(&membership, &catalogue, "rack");
  pwi_catalogue_fini(&catalogue);
  pwi_membership_fini(&membership);
  struct pwi_catalogue other = {0};
  membership = make("near-2");
  vote(&membership, &other, "pawl-relay/.none", PWI_ENTRY_PEERS, 1);
  expect_tree(&membership, &other, "near-2");
  pwi_catalogue_fini(&other);
  pwi_membership_fini(&membership);
}

static void test_a_vote_may_come_before_its_group(void **state) {
  (void)state;
  struct pwi_membership membership = make("auto");
  struct pwi_catalogue catalogue = {0};
  struct pwi_relays relays = {0};
  vote(&membership, &catalogue, "pawl-relay/.none", PWI_ENTRY_PEERS, 1);
  pwi_relays_refresh(&relays, &membership, &no_votes, NULL);
  assert_int_equal(relays.tree.tree, PWI_TREE_RACK);
  pwi_relays_refresh(&relays, &membership, &catalogue, NULL);
  assert_int_equal(relays.tree.tree, PWI_TREE_NONE);
  assert_int_equal(relays.made, 2);
  pwi_relays_refresh(&relays, &membership, &catalogue, NULL);
  assert_int_equal(relays.made, 2);
  pwi_relays_fini(&relays);
  pwi_catalogue_fini(&catalogue);
  pwi_membership_fini(&membership);
}

/* --- ends ----------------------------------------------------------------------------------------------- */

static void test_a_relay_that_has_gone_is_in_no_tree(void **state) {
  (void)state;
  struct pwi_membership membership = make("rack");
  struct pwi_relays relays = {0};
  pwi_relays_refresh(&relays, &membership, &no_votes, NULL);
  for (uint64_t relay = 1; relay <= RELAYS; relay++)
    assert_int_equal(pwi_membership_retire(&membership, (struct pwi_sender){relay}), PAWL_OK);
  pwi_relays_refresh(&relays, &membership, &no_votes, NULL);
  assert_int_equal(relays.count, 0);
  struct pwi_sender member = {RELAYS + 1};
  assert_int_equal(pwi_relays_above_member(&relays, &membership, group, member, 0), 0);
  pwi_relays_fini(&relays);
  pwi_membership_fini(&membership);
}

/* Nobody could connect to it. */
static void test_a_relay_without_an_address_is_in_no_tree(void **state) {
  (void)state;
  struct pwi_membership membership = make("rack");
  struct pwi_relays relays = {0};
  assert_int_equal(pwi_membership_set_address(&membership, (struct pwi_sender){1}, ""), PAWL_OK);
  pwi_relays_refresh(&relays, &membership, &no_votes, NULL);
  assert_int_equal(relays.count, RELAYS - 1);
  assert_int_equal(relays.items[0].id, 2);
  pwi_relays_fini(&relays);
  pwi_membership_fini(&membership);
}

static void test_without_memory_there_are_no_relays(void **state) {
  (void)state;
  struct pwi_membership membership = make("near-2");
  bool was_made = false;
  for (uint64_t n = 0; !was_made; n++) {
    struct pwi_relays relays = {0};
    pwi_memory_fail_after(n);
    pwi_relays_refresh(&relays, &membership, &no_votes, NULL);
    was_made = pwi_memory_fail_cancel() == 0;
    assert_int_equal(relays.count, was_made ? RELAYS : 0);
    pwi_relays_fini(&relays);
  }
  pwi_membership_fini(&membership);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_tree_comes_back_from_the_job_of_its_relay),
      cmocka_unit_test(test_other_words_are_no_trees),
      cmocka_unit_test(test_every_member_reaches_the_server_in_every_tree),
      cmocka_unit_test(test_the_tree_with_most_votes_is_in_force),
      cmocka_unit_test(test_only_relays_that_choose_vote_by_groups),
      cmocka_unit_test(test_a_vote_may_come_before_its_group),
      cmocka_unit_test(test_a_relay_that_has_gone_is_in_no_tree),
      cmocka_unit_test(test_a_relay_without_an_address_is_in_no_tree),
      cmocka_unit_test(test_without_memory_there_are_no_relays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
