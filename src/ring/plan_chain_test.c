/* Chains: their members, separation by host and rack, and the bytes copied when servers join and leave.
 * Copies are counted from the arcs, separately for heads and replicas. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "ring/plan_testing.h"

#define LIMIT 1.2

static struct testing_cluster cluster;

static void make_cluster(size_t processes, bool labels) {
  testing_cluster_init(&cluster, processes, 1);
  for (size_t i = 0; i < cluster.count && !labels; i++) cluster.nodes[i].host = cluster.nodes[i].rack = "";
}

static struct pwi_plan make_plan(const struct pwi_view *present, const struct pwi_plan_options *options) {
  struct pwi_plan plan = {0};
  assert_int_equal(pwi_plan_make(cluster.nodes, cluster.count, present, options, &plan), PAWL_OK);
  return plan;
}

static struct pwi_view *view_of(const struct pwi_plan *plan) {
  struct pwi_view *view = NULL;
  struct pwi_view_fault fault = {0};
  pawl_status status = pwi_view_create(1, cluster.nodes, cluster.count, plan->arcs, plan->arc_count, &fault, &view);
  assert_string_equal(pwi_view_rule_text(fault.rule), pwi_view_rule_text(PWI_RULE_NONE));
  assert_int_equal(status, PAWL_OK);
  return view;
}

/* Parts of the ring. */
struct changes {
  double heads;           /* another head */
  double heads_of_others; /* and it is not the newcomer */
  double copied_heads;    /* another head that was no member */
  double copied_replicas; /* another member that was none */
};

static void compare(const struct pwi_arc *before, const struct pwi_arc *after, double size, uint64_t newcomer,
                    struct changes *changes) {
  uint64_t head = after->chain[0].node.id;
  if (before->chain[0].node.id != head) changes->heads += size;
  if (before->chain[0].node.id != head && head != newcomer) changes->heads_of_others += size;
  for (size_t i = 0; i < after->count; i++) {
    if (pwi_arc_find(before, after->chain[i].node) != PWI_CHAIN_MAX) continue;
    if (i == 0)
      changes->copied_heads += size;
    else
      changes->copied_replicas += size;
  }
}

static struct changes changes_between(const struct pwi_view *before, const struct pwi_plan *after, uint64_t newcomer) {
  struct changes changes = {0};
  uint64_t at = 0;
  for (size_t old = 0, new = 0; at < PWI_RING_END;) {
    uint64_t here = pwi_view_arc_range(before, old).end;
    uint64_t there = new + 1 < after->arc_count ? after->arcs[new + 1].begin : PWI_RING_END;
    uint64_t end = here < there ? here : there;
    compare(&before->arcs[old], &after->arcs[new], (double)(end - at) * 0x1p-64, newcomer, &changes);
    at = end;
    old += here == end;
    new += there == end;
  }
  return changes;
}

/* The part of the ring that a node is a member for, and a head. */
static double held_by(const struct pwi_view *view, uint64_t node, double *headed_out) {
  double held = 0, headed = 0;
  for (size_t i = 0; i < view->arc_count; i++) {
    double size = (double)pawl_range_size(pwi_view_arc_range(view, i)) * 0x1p-64;
    size_t place = pwi_arc_find(&view->arcs[i], (struct pwi_node){node});
    if (place != PWI_CHAIN_MAX) held += size;
    if (place == 0) headed += size;
  }
  *headed_out = headed;
  return held;
}

/* The highest number of replicas of a node that is up, relative to the mean. */
static double replicas_over_mean(const struct pwi_plan *plan) {
  struct pwi_view *view = view_of(plan);
  double most = 0, sum = 0, up = 0;
  for (size_t i = 0; i < cluster.count; i++) {
    double headed, held = held_by(view, cluster.nodes[i].node.id, &headed);
    sum += held - headed;
    up += cluster.nodes[i].state == PWI_NODE_UP;
    if (held - headed > most) most = held - headed;
  }
  pwi_view_release(view);
  return most * up / sum;
}

/* Coming and going. */

/* A joining node receives its share as head and as replica. No other node becomes a head, and few receive
 * replicas, from nodes that have far more than the others. */
static void test_a_newcomer_is_given_its_share_of_heads_and_of_replicas(void **state) {
  (void)state;
  for (unsigned replicas = 1; replicas <= 2; replicas++) {
    const struct pwi_plan_options options = {.replicas = replicas, .keep_heads = true};
    make_cluster(replicas + 1, false);
    struct pwi_plan plan = make_plan(NULL, &options);
    for (size_t servers = replicas + 2; servers <= 16; servers++) {
      struct pwi_view *view = view_of(&plan);
      pwi_plan_fini(&plan);
      make_cluster(servers, false);
      plan = make_plan(view, &options);
      struct changes changes = changes_between(view, &plan, servers);
      double share = 1 / (double)servers;
      assert_true(changes.heads <= LIMIT * share && changes.heads >= 0.9 * share);
      assert_true(changes.copied_replicas <= LIMIT * share * replicas);
      assert_true(changes.copied_replicas >= 0.8 * share * replicas);
      assert_true(changes.heads_of_others == 0);
      double copied = changes.copied_heads + changes.copied_replicas;
      assert_true(plan.figures.copied > copied - 1e-6 && plan.figures.copied < copied + 1e-6);
      assert_true(replicas_over_mean(&plan) <= LIMIT);
      assert_true(plan.arc_count <= 16 * servers);
      pwi_view_release(view);
    }
    pwi_plan_fini(&plan);
  }
}

/* When a node leaves or dies, exactly its data is copied once. */
static void lose_one_after_the_other(unsigned replicas, bool in_peace) {
  const struct pwi_plan_options options = {.replicas = replicas, .keep_heads = true};
  make_cluster(16, false);
  struct pwi_plan plan = make_plan(NULL, &options);
  for (size_t left = 16; left > replicas + 2; left--) {
    struct pwi_view *view = view_of(&plan);
    pwi_plan_fini(&plan);
    struct pwi_view_node *leaver = &cluster.nodes[left * 7 % 16];
    double headed, held = held_by(view, leaver->node.id, &headed);
    leaver->state = in_peace ? PWI_NODE_DRAINING : PWI_NODE_DOWN;
    plan = make_plan(view, &options);
    struct changes changes = changes_between(view, &plan, 0);
    assert_true(changes.heads <= LIMIT * headed || (!in_peace && plan.figures.bytes_over_mean <= 1.05));
    assert_true(changes.copied_heads + changes.copied_replicas <= LIMIT * held);
    assert_true(plan.figures.bytes_over_mean <= 1.25);
    assert_true(replicas_over_mean(&plan) <= 1.25);
    assert_int_equal(plan.figures.under_replicated, 0);
    leaver->state = PWI_NODE_DRAINING;
    pwi_view_release(view);
  }
  pwi_plan_fini(&plan);
}

static void test_the_arcs_of_a_leaving_server_are_copied_once(void **state) {
  (void)state;
  for (unsigned replicas = 1; replicas <= 2; replicas++) {
    lose_one_after_the_other(replicas, false);
    lose_one_after_the_other(replicas, true);
  }
}

/* The replicas of one head are spread over many nodes, so that the loss of a server adds a little load to
 * each. */
static void test_after_a_loss_heads_stay_and_only_missing_replicas_are_filled(void **state) {
  (void)state;
  for (unsigned replicas = 1; replicas <= 2; replicas++) {
    for (size_t servers = replicas + 2; servers <= 12; servers++) {
      const struct pwi_plan_options options = {.replicas = replicas, .keep_heads = true};
      make_cluster(servers, false);
      struct pwi_plan plan = make_plan(NULL, &options);
      struct pwi_view *view = view_of(&plan);
      pwi_plan_fini(&plan);
      for (size_t i = 0; i < servers; i++) {
        double headed, held = held_by(view, i + 1, &headed);
        cluster.nodes[i].state = PWI_NODE_DOWN;
        plan = make_plan(view, &options);
        struct changes changes = changes_between(view, &plan, 0);
        assert_true(changes.heads < headed + 1e-6);
        assert_true(changes.copied_heads == 0);
        assert_true(changes.copied_replicas < held + 1e-6);
        assert_true(plan.figures.bytes_over_mean <= 1.25);
        cluster.nodes[i].state = PWI_NODE_UP;
        pwi_plan_fini(&plan);
      }
      pwi_view_release(view);
    }
  }
}

/* A quarter over its share is where heads are moved even so. */
static void test_a_head_that_has_far_too_much_gives_some_away(void **state) {
  (void)state;
  for (int far = 0; far < 2; far++) {
    const struct pwi_plan_options options = {.replicas = 1, .keep_heads = true};
    make_cluster(4, false);
    struct pwi_plan plan = make_plan(NULL, &options);
    size_t given = 0;
    for (size_t i = 0; i < plan.arc_count && given < (far ? 4u : 1u); i++) { /* of the eight of each */
      if (plan.arcs[i].chain[1].node.id != 1) continue;
      plan.arcs[i].chain[1] = plan.arcs[i].chain[0];
      plan.arcs[i].chain[0].node.id = 1;
      given++;
    }
    struct pwi_view *view = view_of(&plan);
    pwi_plan_fini(&plan);
    plan = make_plan(view, &options);
    assert_true(far ? plan.figures.moved > 0.05 : plan.figures.moved == 0);
    pwi_view_release(view);
    pwi_plan_fini(&plan);
  }
}

static void test_random_comings_and_goings_copy_little(void **state) {
  (void)state;
  for (unsigned replicas = 1; replicas <= 2; replicas++) {
    const struct pwi_plan_options options = {.replicas = replicas};
    struct pwi_random random;
    pwi_random_init(&random, 12, replicas);
    make_cluster(16, false);
    for (size_t i = 6; i < 16; i++) cluster.nodes[i].state = PWI_NODE_DRAINING;
    struct pwi_plan plan = make_plan(NULL, &options);
    for (size_t step = 0, up = 6; step < 60; step++) {
      struct pwi_view *view = view_of(&plan);
      pwi_plan_fini(&plan);
      struct pwi_view_node *node = &cluster.nodes[pwi_random_below(&random, 16)];
      bool leaves = node->state == PWI_NODE_UP;
      if (leaves && up == replicas + 2) leaves = false, node = &cluster.nodes[step % 16];
      double due = (replicas + 1) / (double)(leaves ? up : up + 1);
      up += leaves ? (size_t)-1 : node->state != PWI_NODE_UP;
      node->state = leaves ? PWI_NODE_DRAINING : PWI_NODE_UP;
      plan = make_plan(view, &options);
      struct changes changes = changes_between(view, &plan, 0);
      assert_true(changes.copied_heads + changes.copied_replicas <= LIMIT * due);
      assert_true(plan.arc_count <= 32 * 16);
      pwi_view_release(view);
    }
    pwi_plan_fini(&plan);
  }
}

/* Apart from one another. */

static const struct pwi_view_node *member(const struct pwi_arc *arc, size_t place) {
  return &cluster.nodes[arc->chain[place].node.id - 1];
}

static size_t distinct_racks(const struct pwi_arc *arc) {
  size_t count = 0;
  for (size_t i = 0; i < arc->count; i++) {
    bool first = true;
    for (size_t j = 0; j < i; j++) first = first && strcmp(member(arc, i)->rack, member(arc, j)->rack) != 0;
    count += first;
  }
  return count;
}

static void test_members_of_a_chain_are_far_from_one_another(void **state) {
  (void)state;
  for (unsigned replicas = 1; replicas <= 3; replicas++) {
    testing_cluster_init(&cluster, 32, 2); /* two processes to a host, eight to a rack */
    const struct pwi_plan_options options = {.replicas = replicas};
    struct pwi_plan plan = make_plan(NULL, &options);
    size_t spread = 0;
    for (size_t i = 0; i < plan.arc_count; i++) {
      const struct pwi_arc *arc = &plan.arcs[i];
      assert_int_equal(arc->count, replicas + 1);
      for (size_t a = 0; a < arc->count; a++) {
        for (size_t b = 0; b < a; b++) {
          assert_int_not_equal(member(arc, a)->process, member(arc, b)->process);
          assert_string_not_equal(member(arc, a)->host, member(arc, b)->host);
        }
      }
      spread += distinct_racks(arc) == arc->count;
    }
    assert_true(spread * 10 >= plan.arc_count * 9); /* racks give way where replicas would pile up */
    assert_int_equal(plan.figures.under_replicated, 0);
    assert_int_equal(plan.figures.shared_host, 0);
    pwi_plan_fini(&plan);
  }
}

/* When hosts are added, chains that had to share a host are spread, although no member is missing. */
static void test_a_new_host_is_reason_enough_to_move_a_replica(void **state) {
  (void)state;
  const struct pwi_plan_options options = {.replicas = 1, .keep_heads = true};
  testing_cluster_init(&cluster, 2, 1);
  struct pwi_plan plan = make_plan(NULL, &options);
  assert_int_equal(plan.figures.shared_host, plan.arc_count);
  struct pwi_view *view = view_of(&plan);
  pwi_plan_fini(&plan);
  testing_cluster_init(&cluster, 4, 1);
  plan = make_plan(view, &options);
  assert_int_equal(plan.figures.shared_host, 0);
  pwi_view_release(view);
  pwi_plan_fini(&plan);
}

/* Conflicting nodes must not be combined in a new chain, but existing chains need not be split. */
static void test_conflicting_nodes_are_not_put_into_one_chain(void **state) {
  (void)state;
  const struct pwi_plan_conflict conflicts[] = {{{1}, {2}}, {{3}, {0}}};
  const struct pwi_plan_options options = {.replicas = 1, .conflicts = conflicts, .conflict_count = 2};
  make_cluster(5, false);
  struct pwi_plan plan = make_plan(NULL, &options);
  for (size_t i = 0; i < plan.arc_count; i++) {
    uint64_t head = plan.arcs[i].chain[0].node.id, tail = plan.arcs[i].chain[1].node.id;
    assert_false(head + tail == 3); /* 1 and 2 */
    assert_false(tail == 3);        /* node 3 is a head only: conflicts do not affect heads */
  }
  struct pwi_view *view = view_of(&plan);
  const struct pwi_plan_options with_all = {.replicas = 1};
  pwi_plan_fini(&plan);
  plan = make_plan(NULL, &with_all);
  pwi_view_release(view);
  view = view_of(&plan);
  pwi_plan_fini(&plan);
  plan = make_plan(view, &options);
  assert_true(plan.figures.copied == 0);
  pwi_view_release(view);
  pwi_plan_fini(&plan);
}

/* Seven processes on one host and one on another: every chain needs the single process, however much load
 * this means for it. */
static void test_a_second_host_comes_before_an_even_spread(void **state) {
  (void)state;
  testing_cluster_init(&cluster, 8, 1);
  for (size_t i = 0; i < 8; i++) {
    cluster.nodes[i].host = i < 7 ? "crowded" : "lonely";
    cluster.nodes[i].rack = "rack";
  }
  const struct pwi_plan_options options = {.replicas = 1};
  struct pwi_plan plan = make_plan(NULL, &options);
  for (size_t i = 0; i < plan.arc_count; i++) {
    assert_string_not_equal(member(&plan.arcs[i], 0)->host, member(&plan.arcs[i], 1)->host);
  }
  assert_int_equal(plan.figures.shared_host, 0);
  pwi_plan_fini(&plan);
}

static void test_replicas_are_spread_evenly(void **state) {
  (void)state;
  testing_cluster_init(&cluster, 16, 1);
  const struct pwi_plan_options options = {.replicas = 2};
  struct pwi_plan plan = make_plan(NULL, &options);
  double held[17] = {0};
  for (size_t i = 0; i < plan.arc_count; i++) {
    uint64_t end = i + 1 < plan.arc_count ? plan.arcs[i + 1].begin : PWI_RING_END;
    for (size_t j = 1; j < plan.arcs[i].count; j++) {
      held[plan.arcs[i].chain[j].node.id] += (double)(end - plan.arcs[i].begin) * 0x1p-64;
    }
  }
  for (size_t i = 1; i <= 16; i++) assert_true(held[i] <= 1.25 * 2 / 16);
  pwi_plan_fini(&plan);
}

static void test_too_few_processes_are_reported(void **state) {
  (void)state;
  testing_cluster_init(&cluster, 2, 3);
  const struct pwi_plan_options options = {.replicas = 2};
  struct pwi_plan plan = make_plan(NULL, &options);
  for (size_t i = 0; i < plan.arc_count; i++) assert_int_equal(plan.arcs[i].count, 2);
  assert_int_equal(plan.figures.under_replicated, plan.arc_count);
  assert_int_equal(plan.figures.shared_host, plan.arc_count); /* both processes are on host0 */
  pwi_view_release(view_of(&plan));
  pwi_plan_fini(&plan);
}

static void test_without_labels_processes_are_enough(void **state) {
  (void)state;
  testing_cluster_init(&cluster, 4, 1);
  for (size_t i = 0; i < 4; i++) cluster.nodes[i].host = cluster.nodes[i].rack = "";
  const struct pwi_plan_options options = {.replicas = 3};
  struct pwi_plan plan = make_plan(NULL, &options);
  assert_int_equal(plan.figures.under_replicated, 0);
  assert_int_equal(plan.figures.shared_host, 0);
  pwi_plan_fini(&plan);
}

/* The arcs of a dead head belong to the next full member at once; that moves nothing, and only then is
 * balanced. */
static void test_a_dead_head_is_followed_by_a_member_of_its_chain(void **state) {
  (void)state;
  testing_cluster_init(&cluster, 8, 1);
  const struct pwi_plan_options options = {.replicas = 1};
  struct pwi_plan plan = make_plan(NULL, &options);
  struct pwi_view *view = view_of(&plan);
  pwi_plan_fini(&plan);
  cluster.nodes[3].state = PWI_NODE_DOWN;
  plan = make_plan(view, &options);
  assert_true(plan.figures.moved < 0.08); /* of the 1/8 that lost its head */
  assert_true(plan.figures.bytes_over_mean <= 1.05);
  size_t kept = 0, orphaned = 0;
  for (size_t i = 0; i < view->arc_count; i++) {
    if (view->arcs[i].chain[0].node.id != 4) continue;
    orphaned++;
    size_t now = testing_arc_of(&plan, view->arcs[i].begin);
    kept += plan.arcs[now].chain[0].node.id == view->arcs[i].chain[1].node.id;
  }
  assert_true(orphaned > 0 && kept * 2 > orphaned);
  assert_int_equal(plan.figures.under_replicated, 0);
  pwi_view_release(view);
  pwi_plan_fini(&plan);
}

/* It keeps the arc of which nobody else has the rows, and other arcs get other replicas. */
static void test_a_server_that_is_waited_for_is_replica_of_nothing(void **state) {
  (void)state;
  testing_cluster_init(&cluster, 8, 1);
  const struct pwi_plan_options options = {.replicas = 1};
  struct pwi_plan plan = make_plan(NULL, &options);
  size_t replicas = 0, alone = 0;
  while (plan.arcs[alone].chain[0].node.id != 4) alone++;
  plan.arcs[alone].count = 1;
  uint64_t begin = plan.arcs[alone].begin;
  for (size_t i = 0; i < plan.arc_count; i++) replicas += pwi_arc_find(&plan.arcs[i], (struct pwi_node){4}) == 1;
  assert_true(replicas > 0);
  struct pwi_view *view = view_of(&plan);
  pwi_plan_fini(&plan);
  cluster.nodes[3].state = PWI_NODE_DOWN;
  plan = make_plan(view, &options);
  assert_int_equal(plan.arcs[testing_arc_of(&plan, begin)].chain[0].node.id, 4);
  for (size_t i = 0; i < plan.arc_count; i++) {
    size_t place = pwi_arc_find(&plan.arcs[i], (struct pwi_node){4});
    assert_true(place == 0 || place == PWI_CHAIN_MAX);
  }
  pwi_view_release(view);
  pwi_plan_fini(&plan);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_newcomer_is_given_its_share_of_heads_and_of_replicas),
      cmocka_unit_test(test_the_arcs_of_a_leaving_server_are_copied_once),
      cmocka_unit_test(test_after_a_loss_heads_stay_and_only_missing_replicas_are_filled),
      cmocka_unit_test(test_a_head_that_has_far_too_much_gives_some_away),
      cmocka_unit_test(test_random_comings_and_goings_copy_little),
      cmocka_unit_test(test_members_of_a_chain_are_far_from_one_another),
      cmocka_unit_test(test_a_new_host_is_reason_enough_to_move_a_replica),
      cmocka_unit_test(test_conflicting_nodes_are_not_put_into_one_chain),
      cmocka_unit_test(test_a_second_host_comes_before_an_even_spread),
      cmocka_unit_test(test_replicas_are_spread_evenly),
      cmocka_unit_test(test_too_few_processes_are_reported),
      cmocka_unit_test(test_without_labels_processes_are_enough),
      cmocka_unit_test(test_a_dead_head_is_followed_by_a_member_of_its_chain),
      cmocka_unit_test(test_a_server_that_is_waited_for_is_replica_of_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
