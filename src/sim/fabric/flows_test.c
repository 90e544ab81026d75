#include "sim/fabric/flows.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "sim/fabric/shape.h"

#define LINKS 40
#define FLOWS 120
#define HOPS 8
#define GB 1e9
#define SECOND INT64_C(1000000000)

static struct pwi_flows *make(const struct pwi_flow_link *links, size_t count) {
  struct pwi_flows_config config = {.links = links, .link_count = count};
  struct pwi_flows *flows = NULL;
  assert_int_equal(pwi_flows_create(&config, &flows), PAWL_OK);
  return flows;
}

static struct pwi_flow_id begin(struct pwi_flows *flows, const struct pwi_flow_spec *spec) {
  struct pwi_flow_id id;
  assert_int_equal(pwi_flow_begin(flows, spec, &id), PAWL_OK);
  return id;
}

/* A flow over one or two links. */
static struct pwi_flow_id simple(struct pwi_flows *flows, uint32_t a, uint32_t b, double bytes, uint32_t class) {
  struct pwi_flow_hop hops[2] = {{a, 1}, {b, 1}};
  return begin(flows, &(struct pwi_flow_spec){.hops = hops,
                                              .hop_count = a == b ? 1 : 2,
                                              .bytes = bytes,
                                              .class = class,
                                              .cookie = pwi_flows_figures(flows).begun});
}

static double rate_of(struct pwi_flows *flows, struct pwi_flow_id id) {
  struct pwi_flow_state state;
  assert_true(pwi_flow_state(flows, id, &state));
  return state.rate;
}

static int64_t take(struct pwi_flows *flows, uint64_t cookie) {
  uint64_t got;
  assert_true(pwi_flows_take(flows, PWI_FLOW_NEVER, &got));
  assert_int_equal(got, cookie);
  return pwi_flows_now(flows);
}

static void near(double value, double expected) {
  if (fabs(value - expected) > 1e-6 * fabs(expected) + 1e-6) fail_msg("%.9g instead of %.9g", value, expected);
}

/* --- rules, by small networks ----------------------------------------------------------------------------------- */

/* The example of textbooks: a long flow and a short one on each of two links, one of which is wider. */
static void test_a_flow_gets_what_its_bottleneck_leaves(void **state) {
  (void)state;
  struct pwi_flows *flows = make((struct pwi_flow_link[]){{1 * GB, false}, {4 * GB, false}}, 2);
  struct pwi_flow_id both = simple(flows, 0, 1, GB, 0), first = simple(flows, 0, 0, GB, 0),
                     second = simple(flows, 1, 1, GB, 0);
  near(rate_of(flows, both), 0.5 * GB);
  near(rate_of(flows, first), 0.5 * GB);
  near(rate_of(flows, second), 3.5 * GB);
  assert_true(pwi_flows_are_fair(flows));
  assert_int_equal(take(flows, 2) / 1000, 285714); /* 1/3.5 s */
  near(rate_of(flows, both), 0.5 * GB);
  assert_int_equal(take(flows, 0), 2 * SECOND); /* both end at once */
  assert_int_equal(take(flows, 1), 2 * SECOND);
  assert_int_equal(pwi_flows_next(flows), PWI_FLOW_NEVER);
  near(pwi_flow_link_bytes(flows, 0), 2 * GB);
  near(pwi_flow_link_bytes(flows, 1), 2 * GB);
  pwi_flows_destroy(flows);
}

static void test_rates_change_when_a_flow_begins_and_ends(void **state) {
  (void)state;
  uint64_t cookie;
  struct pwi_flows *flows = make((struct pwi_flow_link[]){{1 * GB, false}}, 1);
  struct pwi_flow_id first = simple(flows, 0, 0, 2 * GB, 0);
  assert_false(pwi_flows_take(flows, SECOND, &cookie)); /* half of it is there */
  struct pwi_flow_id second = simple(flows, 0, 0, 10 * GB, 0);
  near(rate_of(flows, first), 0.5 * GB);
  assert_false(pwi_flows_take(flows, 2 * SECOND, &cookie));
  assert_true(pwi_flow_end(flows, second)); /* half a second of work is left of the first one */
  assert_false(pwi_flow_end(flows, second));
  near(rate_of(flows, first), 1 * GB);
  assert_int_equal(take(flows, 0), 2 * SECOND + SECOND / 2);
  near(pwi_flow_link_bytes(flows, 0), 2.5 * GB);
  pwi_flows_destroy(flows);
}

static void test_higher_classes_go_first(void **state) {
  (void)state;
  struct pwi_flows *flows = make((struct pwi_flow_link[]){{1 * GB, false}, {4 * GB, false}}, 2);
  struct pwi_flow_id high = simple(flows, 0, 1, GB, 5), low = simple(flows, 0, 0, GB, 1),
                     a = simple(flows, 1, 1, GB, 2), b = simple(flows, 1, 1, GB, 2);
  near(rate_of(flows, high), 1 * GB);
  near(rate_of(flows, low), 0);
  near(rate_of(flows, a), 1.5 * GB);
  near(rate_of(flows, b), 1.5 * GB);
  assert_true(pwi_flow_change(flows, low, 9));
  near(rate_of(flows, low), 1 * GB);
  near(rate_of(flows, high), 0);
  near(rate_of(flows, a), 2 * GB);
  assert_true(pwi_flows_are_fair(flows));
  pwi_flows_destroy(flows);
}

/* A tree of three branches over one link goes at a third of its capacity, and counts three times there. */
static void test_weights_count_branches(void **state) {
  (void)state;
  struct pwi_flows *flows = make((struct pwi_flow_link[]){{3 * GB, false}, {9 * GB, false}}, 2);
  struct pwi_flow_hop hops[] = {{0, 3}, {1, 1}};
  struct pwi_flow_id tree = begin(flows, &(struct pwi_flow_spec){.hops = hops, .hop_count = 2, .bytes = GB});
  near(rate_of(flows, tree), 1 * GB);
  struct pwi_flow_id beside = simple(flows, 0, 1, 2 * GB, 0);
  near(rate_of(flows, tree), 0.75 * GB);
  near(rate_of(flows, beside), 0.75 * GB);
  pwi_flow_link_change(flows, 1, 1 * GB);
  near(rate_of(flows, beside), 0.5 * GB);
  pwi_flow_link_change(flows, 1, 0);
  near(rate_of(flows, beside), 0);
  pwi_flow_link_change(flows, 1, 9 * GB);
  take(flows, 0);
  take(flows, 1);
  near(pwi_flow_link_bytes(flows, 0), 5 * GB);
  near(pwi_flow_link_bytes(flows, 1), 3 * GB);
  pwi_flows_destroy(flows);
}

static void test_a_flow_arrives_its_latency_after_its_last_byte(void **state) {
  (void)state;
  struct pwi_flows *flows = make((struct pwi_flow_link[]){{1 * GB, false}}, 1);
  struct pwi_flow_hop hop = {0, 1};
  begin(flows, &(struct pwi_flow_spec){&hop, 1, GB, 0, 500, 1});
  begin(flows, &(struct pwi_flow_spec){NULL, 0, GB, 0, 70, 2}); /* within a host */
  begin(flows, &(struct pwi_flow_spec){&hop, 1, 0, 0, 80, 3});  /* nothing to send */
  assert_int_equal(take(flows, 2), 70);
  assert_int_equal(take(flows, 3), 80);
  assert_int_equal(pwi_flows_next(flows), SECOND);
  assert_int_equal(take(flows, 1), SECOND + 500);
  pwi_flows_destroy(flows);
}

static void test_many_flows_into_a_host_lose(void **state) {
  (void)state;
  struct pwi_flow_link link = {1 * GB, true};
  struct pwi_flows_config config = {.links = &link, .link_count = 1, .incast_flows = 2, .incast_loss = 0.5};
  struct pwi_flows *flows;
  assert_int_equal(pwi_flows_create(&config, &flows), PAWL_OK);
  struct pwi_flow_id first = simple(flows, 0, 0, GB, 0), second = simple(flows, 0, 0, GB, 0);
  near(rate_of(flows, first) + rate_of(flows, second), 1 * GB);
  simple(flows, 0, 0, GB, 0);
  simple(flows, 0, 0, GB, 0);
  near(rate_of(flows, first), 0.75 * GB / 4);
  pwi_flows_destroy(flows);
}

static void test_with_a_grain_flows_end_together(void **state) {
  (void)state;
  struct pwi_flow_link link = {1 * GB, false};
  struct pwi_flows_config config = {.links = &link, .link_count = 1, .grain_ns = SECOND};
  struct pwi_flows *flows;
  assert_int_equal(pwi_flows_create(&config, &flows), PAWL_OK);
  simple(flows, 0, 0, 0.41 * GB, 0);
  simple(flows, 0, 0, 0.42 * GB, 0);
  assert_int_equal(take(flows, 0), SECOND);
  assert_int_equal(take(flows, 1), SECOND);
  assert_int_equal(pwi_flows_figures(flows).changes, 1);
  pwi_flows_destroy(flows);
}

/* --- against a reference ------------------------------------------------------------------------------------------ */

struct plain {
  struct pwi_flow_id id;
  struct pwi_flow_hop hops[HOPS];
  size_t hop_count;
  uint32_t class;
  double bytes;
  bool is_there, is_frozen;
  double rate;
};

struct world {
  struct pwi_flow_link links[LINKS];
  struct plain plain[FLOWS];
  struct pwi_flows *flows;
  struct pwi_random random;
};

static double weight_on(const struct plain *flow, uint32_t link) {
  for (size_t i = 0; i < flow->hop_count; i++)
    if (flow->hops[i].link == link) return flow->hops[i].weight;
  return 0;
}

/* The share of a link among the growing flows of a class; infinite without any. */
static double plain_share(const struct world *world, uint32_t link, uint32_t class) {
  double open = world->links[link].capacity, load = 0;
  for (size_t i = 0; i < FLOWS; i++) {
    const struct plain *flow = &world->plain[i];
    if (!flow->is_there) continue;
    if (flow->is_frozen) open -= flow->rate * weight_on(flow, link);
    if (!flow->is_frozen && flow->class == class) load += weight_on(flow, link);
  }
  return load > 0 ? fmax(open, 0) / load : INFINITY;
}

static void plain_fill(struct world *world, uint32_t class) {
  for (;;) {
    uint32_t first = LINKS;
    double least = INFINITY;
    for (uint32_t link = 0; link < LINKS; link++) {
      double share = plain_share(world, link, class);
      if (share < least) first = link, least = share;
    }
    if (first == LINKS) return;
    for (size_t i = 0; i < FLOWS; i++) {
      struct plain *flow = &world->plain[i];
      if (!flow->is_there || flow->is_frozen || flow->class != class || weight_on(flow, first) == 0) continue;
      flow->is_frozen = true;
      flow->rate = least;
    }
  }
}

static void compare(struct world *world, uint32_t classes) {
  for (size_t i = 0; i < FLOWS; i++) world->plain[i].is_frozen = false;
  for (uint32_t class = classes; class -- > 0;) plain_fill(world, class);
  for (size_t i = 0; i < FLOWS; i++)
    if (world->plain[i].is_there) {
      double rate = rate_of(world->flows, world->plain[i].id);
      if (fabs(rate - world->plain[i].rate) > 1e-3 + 1e-7 * rate)
        fail_msg("flow %zu has %.9g instead of %.9g", i, rate, world->plain[i].rate);
    }
  assert_true(pwi_flows_are_fair(world->flows));
}

static void draw_flow(struct world *world, size_t index, uint32_t classes, uint32_t weights) {
  struct plain *flow = &world->plain[index];
  bool used[LINKS] = {false};
  *flow = (struct plain){.is_there = true, .class = (uint32_t)pwi_random_below(&world->random, classes)};
  for (uint64_t n = 1 + pwi_random_below(&world->random, HOPS); n > 0; n--) {
    uint32_t link = (uint32_t)pwi_random_below(&world->random, LINKS);
    if (used[link]) continue;
    used[link] = true;
    flow->hops[flow->hop_count++] =
        (struct pwi_flow_hop){link, 1 + (uint32_t)pwi_random_below(&world->random, weights)};
  }
  flow->bytes = 1 + pwi_random_unit(&world->random) * GB;
  flow->id = begin(world->flows, &(struct pwi_flow_spec){.hops = flow->hops,
                                                         .hop_count = flow->hop_count,
                                                         .bytes = flow->bytes,
                                                         .class = flow->class,
                                                         .cookie = index});
}

static void change_something(struct world *world, uint32_t classes, uint32_t weights) {
  size_t index = (size_t)pwi_random_below(&world->random, FLOWS);
  struct plain *flow = &world->plain[index];
  uint64_t cookie;
  switch (flow->is_there ? pwi_random_below(&world->random, 4) : 3) {
  case 0:
    assert_true(pwi_flow_end(world->flows, flow->id));
    flow->is_there = false;
    break;
  case 1:
    flow->class = (uint32_t)pwi_random_below(&world->random, classes);
    assert_true(pwi_flow_change(world->flows, flow->id, flow->class));
    break;
  case 2:
    if (pwi_flows_take(world->flows, PWI_FLOW_NEVER, &cookie)) world->plain[cookie].is_there = false;
    break;
  default:
    if (!flow->is_there) draw_flow(world, index, classes, weights);
  }
}

static void run_world(uint64_t seed, uint32_t classes, uint32_t weights, size_t steps) {
  static struct world world;
  memset(&world, 0, sizeof world);
  pwi_random_init(&world.random, seed, 0);
  for (int i = 0; i < LINKS; i++) world.links[i].capacity = (1 + (double)pwi_random_below(&world.random, 4)) * GB;
  world.flows = make(world.links, LINKS);
  for (size_t i = 0; i < steps; i++) {
    change_something(&world, classes, weights);
    if (i % 3 == 0) compare(&world, classes);
  }
  pwi_flows_destroy(world.flows);
}

static void test_rates_are_those_of_a_plain_reference(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 8; seed++) {
    print_message("seed %d\n", (int)seed);
    run_world(seed, 1, 1, 300);
    run_world(seed, 3, 1, 300);
    run_world(seed, 2, 4, 300);
  }
}

/* --- on a fat tree --------------------------------------------------------------------------------------------- */

/* Everything that begins arrives, and each link carries the bytes of exactly the flows that are routed over it. */
static void test_bytes_are_conserved_and_no_link_is_overfull(void **state) {
  (void)state;
  struct pwi_fabric_shape shape;
  pwi_fabric_fat_tree(8, 1.25 * GB, &shape);
  shape.over[PWI_FABRIC_RACKS] = 4;
  uint32_t count = pwi_fabric_links(&shape), hosts = pwi_fabric_hosts(&shape), arrived = 0;
  struct pwi_flow_link *links = pwi_alloc_zero(count, sizeof *links);
  double *expected = pwi_alloc_zero(count, sizeof *expected);
  struct pwi_random random;
  uint64_t cookie;
  for (uint32_t i = 0; i < count; i++) links[i].capacity = pwi_fabric_link(&shape, i).capacity;
  struct pwi_flows *flows = make(links, count);
  pwi_random_init(&random, 3, 0);
  for (uint32_t i = 0; i < 2000; i++) {
    uint32_t route[PWI_FABRIC_ROUTE_MAX];
    struct pwi_flow_hop hops[PWI_FABRIC_ROUTE_MAX];
    size_t n = pwi_fabric_route(&shape, (uint32_t)pwi_random_below(&random, hosts),
                                (uint32_t)pwi_random_below(&random, hosts), i, route);
    double bytes = 1e6 * (1 + (double)pwi_random_below(&random, 50));
    for (size_t k = 0; k < n; k++) {
      hops[k] = (struct pwi_flow_hop){route[k], 1};
      expected[route[k]] += bytes;
    }
    begin(flows, &(struct pwi_flow_spec){.hops = hops, .hop_count = n, .bytes = bytes, .cookie = i});
    if (i % 4 == 3 && pwi_flows_take(flows, PWI_FLOW_NEVER, &cookie)) arrived++;
    if (i % 200 == 0) assert_true(pwi_flows_are_fair(flows));
  }
  while (pwi_flows_take(flows, PWI_FLOW_NEVER, &cookie)) arrived++;
  assert_int_equal(arrived, 2000);
  assert_int_equal(pwi_flows_figures(flows).present, 0);
  for (uint32_t i = 0; i < count; i++) {
    near(pwi_flow_link_bytes(flows, i), expected[i]);
    assert_true(pwi_flow_link_bytes(flows, i) <= links[i].capacity * 1e-9 * (double)pwi_flows_now(flows) * 1.000001);
  }
  pwi_free(links);
  pwi_free(expected);
  pwi_flows_destroy(flows);
}

static void test_what_cannot_be_is_refused(void **state) {
  (void)state;
  struct pwi_flows *flows = make((struct pwi_flow_link[]){{1 * GB, false}}, 1);
  struct pwi_flow_hop far = {1, 1}, light = {0, 0}, good = {0, 1};
  struct pwi_flow_id id;
  assert_int_equal(pwi_flow_begin(flows, &(struct pwi_flow_spec){.hops = &far, .hop_count = 1}, &id), PAWL_INVALID);
  assert_int_equal(pwi_flow_begin(flows, &(struct pwi_flow_spec){.hops = &light, .hop_count = 1}, &id), PAWL_INVALID);
  assert_int_equal(pwi_flow_begin(flows, &(struct pwi_flow_spec){.hops = &good, .hop_count = 1, .bytes = NAN}, &id),
                   PAWL_INVALID);
  assert_int_equal(
      pwi_flow_begin(flows, &(struct pwi_flow_spec){.hops = &good, .hop_count = 1, .class = PWI_FLOW_CLASSES}, &id),
      PAWL_INVALID);
  assert_false(pwi_flow_end(flows, (struct pwi_flow_id){77}));
  pwi_flows_destroy(flows);
}

static void test_each_allocation_may_fail(void **state) {
  (void)state;
  struct pwi_flow_link links[10] = {{1 * GB, false}};
  struct pwi_flows_config config = {.links = links, .link_count = 10};
  struct pwi_flow_hop hops[10];
  struct pwi_memory_counts before = pwi_memory_counts();
  unsigned failures = 0;
  for (uint32_t i = 0; i < 10; i++) hops[i] = (struct pwi_flow_hop){i, 1};
  for (uint64_t n = 0;; n++) {
    struct pwi_flows *flows = NULL;
    struct pwi_flow_id id;
    pwi_memory_fail_after(n);
    pawl_status status = pwi_flows_create(&config, &flows);
    if (!status)
      status = pwi_flow_begin(flows, &(struct pwi_flow_spec){.hops = hops, .hop_count = 10, .bytes = 5}, &id);
    bool has_failed = pwi_memory_fail_cancel() == 1;
    assert_int_equal(status, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
    if (flows && has_failed) assert_int_equal(pwi_flows_next(flows), PWI_FLOW_NEVER);
    pwi_flows_destroy(flows);
    assert_int_equal(pwi_memory_counts().live, before.live);
    failures += has_failed;
    if (!has_failed) break;
  }
  assert_true(failures >= 15);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_flow_gets_what_its_bottleneck_leaves),
      cmocka_unit_test(test_rates_change_when_a_flow_begins_and_ends),
      cmocka_unit_test(test_higher_classes_go_first),
      cmocka_unit_test(test_weights_count_branches),
      cmocka_unit_test(test_a_flow_arrives_its_latency_after_its_last_byte),
      cmocka_unit_test(test_many_flows_into_a_host_lose),
      cmocka_unit_test(test_with_a_grain_flows_end_together),
      cmocka_unit_test(test_rates_are_those_of_a_plain_reference),
      cmocka_unit_test(test_bytes_are_conserved_and_no_link_is_overfull),
      cmocka_unit_test(test_what_cannot_be_is_refused),
      cmocka_unit_test(test_each_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
