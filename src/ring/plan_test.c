/* Plans: balance is measured key by key and movement from the arcs, independently of the planner's figures.
 * All seeds are fixed. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "ring/plan_testing.h"

#define SEED UINT64_C(12)
#define LOADS 4096
#define LIMIT 1.2

static struct testing_cluster cluster;
static struct pwi_load loads[LOADS];

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

static double dense_balance(const struct pwi_plan *plan, uint64_t size) {
  const struct pwi_place place = {size, false};
  struct testing_balance balance = {.cluster = &cluster, .plan = plan};
  for (uint64_t key = 0; key < size; key++) testing_add(&balance, pwi_place_position(&place, key), 1);
  return testing_over_mean(&balance);
}

/* Fresh plans. */

static void test_a_fresh_plan_is_a_sound_view(void **state) {
  (void)state;
  for (size_t servers = 1; servers <= 16; servers++) {
    for (unsigned points = 1; points <= 16; points += 5) {
      testing_cluster_init(&cluster, servers, 1 + servers % 3);
      const struct pwi_plan_options options = {.points = points};
      struct pwi_plan plan = make_plan(NULL, &options), again = make_plan(NULL, &options);
      assert_int_equal(plan.arc_count, points * cluster.count);
      assert_int_equal(again.arc_count, plan.arc_count);
      assert_memory_equal(again.arcs, plan.arcs, plan.arc_count * sizeof *plan.arcs);
      pwi_view_release(view_of(&plan));
      pwi_plan_fini(&plan);
      pwi_plan_fini(&again);
    }
  }
}

static void test_neighbouring_arcs_are_in_different_processes(void **state) {
  (void)state;
  for (size_t servers = 2; servers <= 16; servers++) {
    testing_cluster_init(&cluster, servers, 1 + servers % 4);
    const struct pwi_plan_options options = {0};
    struct pwi_plan plan = make_plan(NULL, &options);
    for (size_t i = 1; i < plan.arc_count; i++) {
      assert_int_not_equal(cluster.nodes[plan.arcs[i].chain[0].node.id - 1].process,
                           cluster.nodes[plan.arcs[i - 1].chain[0].node.id - 1].process);
    }
    pwi_plan_fini(&plan);
  }
}

static void test_dense_spans_of_any_size_are_balanced(void **state) {
  (void)state;
  const struct pwi_plan_options options = {0};
  for (size_t servers = 1; servers <= 32; servers++) {
    testing_cluster_init(&cluster, servers, 1);
    struct pwi_plan plan = make_plan(NULL, &options);
    for (uint64_t size = 20 * servers; size < 22 * servers; size++) assert_true(dense_balance(&plan, size) <= LIMIT);
    static const uint64_t sizes[] = {1000, 1001, 1023, 4099, 65536, 100003};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) assert_true(dense_balance(&plan, sizes[i]) <= LIMIT);
    pwi_plan_fini(&plan);
  }
}

static void test_hashed_keys_and_raw_ids_are_balanced(void **state) {
  (void)state;
  const struct pwi_plan_options options = {0};
  for (size_t servers = 2; servers <= 32; servers *= 2) {
    testing_cluster_init(&cluster, servers, 1);
    struct pwi_plan plan = make_plan(NULL, &options);
    struct testing_balance hashed = {.cluster = &cluster, .plan = &plan}, raw = hashed;
    for (uint64_t i = 0; i < 100000; i++) {
      testing_add(&hashed, pwi_place_mix(pwi_random_at(SEED, 0, i)), 1);
      testing_add(&raw, pwi_place_mix(i), 1);
    }
    assert_true(testing_over_mean(&hashed) <= LIMIT);
    assert_true(testing_over_mean(&raw) <= LIMIT);
    pwi_plan_fini(&plan);
  }
}

static void test_shares_follow_weights(void **state) {
  (void)state;
  testing_cluster_init(&cluster, 4, 1);
  for (size_t i = 0; i < 4; i++) cluster.nodes[i].weight = (uint32_t)(i + 1);
  const struct pwi_plan_options options = {0};
  struct pwi_plan plan = make_plan(NULL, &options);
  const struct pwi_place place = {100000, false};
  struct testing_balance balance = {.cluster = &cluster, .plan = &plan};
  for (uint64_t key = 0; key < place.size; key++) testing_add(&balance, pwi_place_position(&place, key), 1);
  for (size_t i = 0; i < 4; i++) {
    assert_true(balance.loads[i + 1] > 9900 * (double)(i + 1));
    assert_true(balance.loads[i + 1] < 10100 * (double)(i + 1));
  }
  pwi_plan_fini(&plan);
}

/* Skewed requests. */

struct zipf_balance {
  double bytes, requests;
  double others; /* requests of the fullest server without the hottest key's, over the mean */
};

static struct zipf_balance zipf_balance(const struct pwi_plan *plan, uint64_t size) {
  const struct pwi_place place = {size, false};
  struct testing_balance bytes = {.cluster = &cluster, .plan = plan}, requests = bytes;
  for (uint64_t key = 0; key < size; key++) {
    uint64_t position = pwi_place_position(&place, key);
    testing_add(&bytes, position, 1);
    testing_add(&requests, position, testing_zipf(key));
  }
  struct zipf_balance result = {testing_over_mean(&bytes), testing_over_mean(&requests), 0};
  uint64_t hot = cluster.nodes[plan->arcs[0].chain[0].node.id - 1].process;
  requests.loads[hot] = 0;
  result.others = testing_over_mean(&requests);
  return result;
}

static double bound(double hottest) { return hottest + 0.12 > LIMIT ? hottest + 0.12 : LIMIT; }

/* The bound is 1.2, or what the hottest key alone makes of it and a little for the cold keys beside it.
 * Without that key's server, it is 1.2, or the same for the second hottest, which draws 2^1.1 times less. */
static void assert_zipf_balance(const struct pwi_plan *plan, uint64_t size) {
  struct zipf_balance balance = zipf_balance(plan, size);
  double hottest = plan->figures.indivisible;
  assert_true(balance.bytes <= LIMIT);
  assert_true(balance.requests <= bound(hottest));
  assert_true(balance.others <= bound(hottest * testing_zipf(1)));
}

static void test_zipf_requests_are_balanced_from_the_start(void **state) {
  (void)state;
  for (uint64_t size = 10000; size <= 200000; size *= 20) {
    const struct pwi_plan_options options = {.loads = loads, .load_count = testing_zipf_loads(size, loads, LOADS)};
    for (size_t servers = 2; servers <= 32; servers += servers < 8 ? 1 : 8) {
      testing_cluster_init(&cluster, servers, 1);
      struct pwi_plan plan = make_plan(NULL, &options);
      assert_zipf_balance(&plan, size);
      if (servers <= 6) assert_true(plan.figures.indivisible < LIMIT); /* so here it is 1.2 that was shown */
      if (servers == 32) assert_true(plan.figures.indivisible > 3);
      pwi_plan_fini(&plan);
    }
  }
}

/* The hottest key alone brings a server to just below 1.2, which limits the bytes that the server can
 * take. */
static void test_a_server_full_of_requests_gives_bytes_away(void **state) {
  (void)state;
  const uint64_t size = 21000;
  const struct pwi_plan_options options = {.loads = loads, .load_count = testing_zipf_loads(size, loads, LOADS)};
  testing_cluster_init(&cluster, 8, 1);
  struct pwi_plan plan = make_plan(NULL, &options);
  struct zipf_balance balance = zipf_balance(&plan, size);
  assert_true(plan.figures.indivisible > 1.15 && plan.figures.indivisible < 1.18);
  assert_true(balance.requests <= LIMIT);
  assert_true(balance.bytes <= LIMIT);
  pwi_plan_fini(&plan);
}

static void test_zipf_requests_are_balanced_by_moving_little(void **state) {
  (void)state;
  const uint64_t size = 200000;
  const struct pwi_plan_options none = {0};
  const struct pwi_plan_options options = {.loads = loads, .load_count = testing_zipf_loads(size, loads, LOADS)};
  for (size_t servers = 2; servers <= 16; servers += servers < 8 ? 2 : 8) {
    testing_cluster_init(&cluster, servers, 1);
    struct pwi_plan before = make_plan(NULL, &none);
    assert_true(zipf_balance(&before, size).requests > 1.5);
    struct pwi_view *view = view_of(&before);
    struct pwi_plan after = make_plan(view, &options);
    assert_zipf_balance(&after, size);
    assert_true(after.figures.moved <= (servers <= 8 ? 0.1 : 0.25));
    assert_int_equal(after.figures.ideal, 0);
    pwi_view_release(view);
    pwi_plan_fini(&before);
    pwi_plan_fini(&after);
  }
}

static void test_shards_are_balanced_and_so_are_their_processes(void **state) {
  (void)state;
  const uint64_t size = 100000;
  const struct pwi_plan_options options = {.loads = loads, .load_count = testing_zipf_loads(size, loads, LOADS)};
  testing_cluster_init(&cluster, 4, 4);
  struct pwi_plan plan = make_plan(NULL, &options);
  struct zipf_balance balance = zipf_balance(&plan, size);
  assert_true(balance.bytes <= LIMIT);
  assert_true(balance.requests <= LIMIT);
  for (size_t i = 0; i < cluster.count; i++) cluster.nodes[i].process = i + 1; /* now look at each shard */
  assert_true(zipf_balance(&plan, size).bytes <= LIMIT);
  assert_true(zipf_balance(&plan, size).others <= LIMIT);
  pwi_plan_fini(&plan);
}

static void test_a_move_limit_is_kept(void **state) {
  (void)state;
  const struct pwi_plan_options none = {0};
  testing_cluster_init(&cluster, 8, 1);
  struct pwi_plan before = make_plan(NULL, &none);
  struct pwi_view *view = view_of(&before);
  /* Everything in a quarter of the ring. */
  struct pwi_load half = {{0, UINT64_C(1) << 62}, 1000000, 0, false};
  double last = 9;
  for (uint32_t limit = 1000; limit <= 300000; limit *= 10) {
    const struct pwi_plan_options options = {.loads = &half, .load_count = 1, .move_limit = limit};
    struct pwi_plan after = make_plan(view, &options);
    assert_true(after.figures.moved <= limit / 1e6);
    assert_true(after.figures.bytes_over_mean <= last);
    last = after.figures.bytes_over_mean;
    pwi_plan_fini(&after);
  }
  pwi_view_release(view);
  pwi_plan_fini(&before);
}

/* Joining and leaving. */

/* The part of the ring whose head differs, by walking both; `*to_others_out` is the part that went to other
 * nodes than `newcomer`. */
static double moved_between(const struct pwi_view *before, const struct pwi_plan *after, uint64_t newcomer,
                            double *to_others_out) {
  double moved = 0, others = 0;
  uint64_t at = 0;
  for (size_t old = 0, new = 0; at < PWI_RING_END;) {
    uint64_t end = pwi_view_arc_range(before, old).end;
    if (new + 1 < after->arc_count && after->arcs[new + 1].begin < end) end = after->arcs[new + 1].begin;
    uint64_t head = after->arcs[new].chain[0].node.id;
    if (before->arcs[old].chain[0].node.id != head) {
      moved += (double)(end - at) * 0x1p-64;
      if (head != newcomer) others += (double)(end - at) * 0x1p-64;
    }
    at = end;
    if (pwi_view_arc_range(before, old).end == at) old++;
    if (new + 1 < after->arc_count && after->arcs[new + 1].begin == at) new ++;
  }
  *to_others_out = others;
  return moved;
}

static void assert_balanced(const struct pwi_plan *plan) {
  assert_true(plan->figures.bytes_over_mean <= 1.05);
  assert_true(dense_balance(plan, 50000) <= LIMIT);
}

static void test_joining_servers_take_their_share_and_no_more(void **state) {
  (void)state;
  const struct pwi_plan_options options = {.replicas = 1};
  testing_cluster_init(&cluster, 1, 1);
  struct pwi_plan plan = make_plan(NULL, &options);
  for (size_t servers = 2; servers <= 16; servers++) {
    struct pwi_view *view = view_of(&plan);
    pwi_plan_fini(&plan);
    testing_cluster_init(&cluster, servers, 1);
    plan = make_plan(view, &options);
    double others, moved = moved_between(view, &plan, servers, &others);
    double ideal = 1 / (double)servers;
    assert_true(moved <= LIMIT * ideal);
    assert_true(moved >= 0.9 * ideal);
    assert_true(others == 0);
    assert_true(plan.figures.moved > moved - 1e-6 && plan.figures.moved < moved + 1e-6);
    assert_true(plan.figures.ideal > ideal - 1e-6 && plan.figures.ideal < ideal + 1e-6);
    assert_balanced(&plan);
    assert_true(plan.arc_count <= 32 * servers);
    pwi_view_release(view);
  }
  pwi_plan_fini(&plan);
}

/* With a hot key the balance could always be improved further; a join must not trigger such moves. */
static void test_joins_under_skewed_requests_move_little(void **state) {
  (void)state;
  const struct pwi_plan_options options = {.loads = loads, .load_count = testing_zipf_loads(100000, loads, LOADS)};
  testing_cluster_init(&cluster, 1, 1);
  struct pwi_plan plan = make_plan(NULL, &options);
  for (size_t servers = 2; servers <= 16; servers++) {
    struct pwi_view *view = view_of(&plan);
    pwi_plan_fini(&plan);
    testing_cluster_init(&cluster, servers, 1);
    plan = make_plan(view, &options);
    assert_true(plan.figures.moved <= LIMIT * plan.figures.ideal);
    assert_zipf_balance(&plan, 100000);
    pwi_view_release(view);
  }
  pwi_plan_fini(&plan);
}

static void test_the_arcs_of_a_leaving_server_are_spread_over_the_others(void **state) {
  (void)state;
  const struct pwi_plan_options options = {0};
  testing_cluster_init(&cluster, 16, 1);
  struct pwi_plan plan = make_plan(NULL, &options);
  for (size_t left = 16; left > 1; left--) {
    struct pwi_view *view = view_of(&plan);
    pwi_plan_fini(&plan);
    size_t leaver = left * 7 % 16; /* a new one each time: 7 and 16 have no factor in common */
    cluster.nodes[leaver].state = PWI_NODE_DRAINING;
    plan = make_plan(view, &options);
    double others, moved = moved_between(view, &plan, 0, &others);
    assert_true(moved <= LIMIT / (double)left);
    assert_balanced(&plan);
    assert_true(plan.figures.moved <= LIMIT * plan.figures.ideal);
    for (size_t i = 0; i < plan.arc_count; i++) {
      assert_int_equal(cluster.nodes[plan.arcs[i].chain[0].node.id - 1].state, PWI_NODE_UP);
    }
    pwi_view_release(view);
  }
  pwi_plan_fini(&plan);
}

static void test_random_comings_and_goings_stay_balanced(void **state) {
  (void)state;
  const struct pwi_plan_options options = {.replicas = 1};
  struct pwi_random random;
  pwi_random_init(&random, SEED, 1);
  testing_cluster_init(&cluster, 16, 1);
  for (size_t i = 5; i < 16; i++) cluster.nodes[i].state = PWI_NODE_DOWN;
  struct pwi_plan plan = make_plan(NULL, &options);
  size_t up = 5;
  for (int step = 0; step < 60; step++) {
    struct pwi_view *view = view_of(&plan);
    pwi_plan_fini(&plan);
    struct pwi_view_node *node = &cluster.nodes[pwi_random_below(&random, 16)];
    bool leaves = node->state == PWI_NODE_UP && up > 1;
    if (node->state == PWI_NODE_UP && !leaves) node = &cluster.nodes[(node - cluster.nodes + 1) % 16];
    node->state = leaves ? PWI_NODE_DRAINING : PWI_NODE_UP;
    double ideal = leaves ? 1 / (double)up : 1 / (double)(up + 1);
    up = leaves ? up - 1 : up + 1;
    plan = make_plan(view, &options);
    double others, moved = moved_between(view, &plan, 0, &others);
    assert_true(moved <= LIMIT * ideal);
    assert_balanced(&plan);
    assert_true(plan.arc_count <= 32 * 16);
    pwi_view_release(view);
  }
  pwi_plan_fini(&plan);
}

static void test_nothing_moves_when_nothing_has_changed(void **state) {
  (void)state;
  const struct pwi_plan_options options = {.replicas = 2};
  testing_cluster_init(&cluster, 12, 1);
  struct pwi_plan plan = make_plan(NULL, &options);
  struct pwi_view *view = view_of(&plan);
  struct pwi_plan again = make_plan(view, &options);
  assert_int_equal(again.arc_count, plan.arc_count);
  for (size_t i = 0; i < plan.arc_count; i++) {
    assert_int_equal(again.arcs[i].begin, plan.arcs[i].begin);
    assert_true(pwi_arc_same_chain(&again.arcs[i], &plan.arcs[i]));
  }
  pwi_view_release(view);
  pwi_plan_fini(&plan);
  pwi_plan_fini(&again);
}

/* Bad input. */

static void test_nonsense_is_refused(void **state) {
  (void)state;
  struct pwi_plan plan = {0};
  struct pwi_plan_options options = {.replicas = PWI_CHAIN_MAX};
  testing_cluster_init(&cluster, 4, 1);
  assert_int_equal(pwi_plan_make(cluster.nodes, 4, NULL, &options, &plan), PAWL_INVALID);
  options = (struct pwi_plan_options){.points = PWI_VIEW_ARCS_MAX};
  assert_int_equal(pwi_plan_make(cluster.nodes, 4, NULL, &options, &plan), PAWL_TOO_LARGE);
  struct pwi_load twice[2] = {{{0, 10}, 1, 1, false}, {{9, 20}, 1, 1, false}};
  options = (struct pwi_plan_options){.loads = twice, .load_count = 2};
  assert_int_equal(pwi_plan_make(cluster.nodes, 4, NULL, &options, &plan), PAWL_INVALID);
  twice[1].positions = (struct pawl_range){10, 10};
  assert_int_equal(pwi_plan_make(cluster.nodes, 4, NULL, &options, &plan), PAWL_INVALID);
  options = (struct pwi_plan_options){0};
  assert_int_equal(pwi_plan_make(cluster.nodes, 0, NULL, &options, &plan), PAWL_NOT_FOUND);
  for (size_t i = 0; i < 4; i++) cluster.nodes[i].state = PWI_NODE_DRAINING;
  assert_int_equal(pwi_plan_make(cluster.nodes, 4, NULL, &options, &plan), PAWL_NOT_FOUND);
  assert_null(plan.arcs);
  assert_int_equal(pwi_memory_counts().live, 0);
}

/* Extreme loads: none, everything at one key, and the largest numbers. */
static void test_strange_loads_give_sound_plans(void **state) {
  (void)state;
  struct pwi_load strange[][2] = {
      {{{0, 1}, 0, 0, false}, {{5, 6}, 0, 0, true}},
      {{{0, 1}, UINT64_MAX, UINT64_MAX, true}, {{1, 2}, 0, 1, true}},
      {{{0, PWI_RING_END - 1}, UINT64_MAX, 1, false},
       {{PWI_RING_END - 1, PWI_RING_END}, UINT64_MAX, UINT64_MAX, false}},
      {{{77, 78}, 1, 0, false}, {{79, PWI_RING_END}, 0, 1, false}},
  };
  testing_cluster_init(&cluster, 5, 2);
  const struct pwi_plan_options none = {0};
  struct pwi_plan plan = make_plan(NULL, &none);
  struct pwi_view *view = view_of(&plan);
  pwi_plan_fini(&plan);
  for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
    const struct pwi_plan_options options = {.loads = strange[i], .load_count = 2, .replicas = 1};
    plan = make_plan(view, &options);
    pwi_view_release(view_of(&plan));
    pwi_plan_fini(&plan);
    plan = make_plan(NULL, &options);
    pwi_view_release(view_of(&plan));
    pwi_plan_fini(&plan);
  }
  pwi_view_release(view);
}

static void test_every_lack_of_memory_is_reported(void **state) {
  (void)state;
  testing_cluster_init(&cluster, 4, 1);
  const struct pwi_plan_options options = {.replicas = 1};
  struct pwi_plan plan = make_plan(NULL, &options);
  struct pwi_view *view = view_of(&plan);
  pwi_plan_fini(&plan);
  uint64_t live = pwi_memory_counts().live, n = 0;
  for (;; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = pwi_plan_make(cluster.nodes, 4, n % 2 ? view : NULL, &options, &plan);
    if (!pwi_memory_fail_cancel()) break;
    assert_int_equal(status, PAWL_NO_MEMORY);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_true(n >= 5);
  pwi_plan_fini(&plan);
  pwi_view_release(view);
  assert_int_equal(pwi_memory_counts().live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_fresh_plan_is_a_sound_view),
      cmocka_unit_test(test_neighbouring_arcs_are_in_different_processes),
      cmocka_unit_test(test_dense_spans_of_any_size_are_balanced),
      cmocka_unit_test(test_hashed_keys_and_raw_ids_are_balanced),
      cmocka_unit_test(test_shares_follow_weights),
      cmocka_unit_test(test_zipf_requests_are_balanced_from_the_start),
      cmocka_unit_test(test_a_server_full_of_requests_gives_bytes_away),
      cmocka_unit_test(test_zipf_requests_are_balanced_by_moving_little),
      cmocka_unit_test(test_shards_are_balanced_and_so_are_their_processes),
      cmocka_unit_test(test_a_move_limit_is_kept),
      cmocka_unit_test(test_joining_servers_take_their_share_and_no_more),
      cmocka_unit_test(test_joins_under_skewed_requests_move_little),
      cmocka_unit_test(test_the_arcs_of_a_leaving_server_are_spread_over_the_others),
      cmocka_unit_test(test_random_comings_and_goings_stay_balanced),
      cmocka_unit_test(test_nothing_moves_when_nothing_has_changed),
      cmocka_unit_test(test_nonsense_is_refused),
      cmocka_unit_test(test_strange_loads_give_sound_plans),
      cmocka_unit_test(test_every_lack_of_memory_is_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
