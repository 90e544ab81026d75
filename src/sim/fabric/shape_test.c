#include "sim/fabric/shape.h"

#include <string.h>

#include "base/memory.h"
#include "base/testing.h"

#define RATE 1.25e9

static void test_sixteen_ports_give_the_network_of_the_paper(void **state) {
  (void)state;
  struct pwi_fabric_shape shape;
  pwi_fabric_fat_tree(16, RATE, &shape);
  assert_int_equal(pwi_fabric_shape_check(&shape), PAWL_OK);
  assert_int_equal(pwi_fabric_hosts(&shape), 1024);
  assert_int_equal(pwi_fabric_racks(&shape), 128);
  assert_int_equal(pwi_fabric_switches(&shape), 128 + 128 + 64);
  assert_int_equal(pwi_fabric_links(&shape), 2 * 3 * 1024);
}

static void test_routes_go_up_no_further_than_they_must(void **state) {
  (void)state;
  struct pwi_fabric_shape shape;
  uint32_t links[PWI_FABRIC_ROUTE_MAX];
  pwi_fabric_fat_tree(16, RATE, &shape);
  assert_int_equal(pwi_fabric_route(&shape, 5, 5, 0, links), 0);
  assert_int_equal(pwi_fabric_route(&shape, 5, 6, 0, links), 2);
  assert_int_equal(pwi_fabric_route(&shape, 5, 9, 0, links), 4);
  assert_int_equal(pwi_fabric_route(&shape, 5, 1000, 0, links), 6);
  const int tiers[] = {0, 1, 2, 2, 1, 0};
  for (int i = 0; i < 6; i++) {
    struct pwi_fabric_link link = pwi_fabric_link(&shape, links[i]);
    assert_int_equal(link.tier, tiers[i]);
    assert_int_equal(link.is_down, i >= 3);
    assert_true(link.capacity == RATE);
  }
}

/* Hashes use all equal paths about equally, and what goes up to a core switch comes down from the same one. */
static void test_hashes_spread_over_the_paths(void **state) {
  (void)state;
  struct pwi_fabric_shape shape;
  uint32_t links[PWI_FABRIC_ROUTE_MAX], first[PWI_FABRIC_ROUTE_MAX];
  pwi_fabric_fat_tree(8, RATE, &shape);
  uint32_t count = pwi_fabric_links(&shape), used = 0;
  unsigned *uses = pwi_alloc_zero(count, sizeof *uses);
  pwi_fabric_route(&shape, 0, 127, 0, first);
  for (uint64_t hash = 0; hash < 1600; hash++) {
    assert_int_equal(pwi_fabric_route(&shape, 0, 127, hash, links), 6);
    for (int i = 0; i < 6; i++) uses[links[i]]++;
    if (links[2] == first[2]) assert_memory_equal(links, first, sizeof first);
  }
  for (uint32_t i = 0; i < count; i++) {
    if (!uses[i]) continue;
    used++;
    unsigned expected = pwi_fabric_link(&shape, i).tier == PWI_FABRIC_HOSTS   ? 1600
                        : pwi_fabric_link(&shape, i).tier == PWI_FABRIC_RACKS ? 400
                                                                              : 100;
    assert_in_range(uses[i], expected * 7 / 10, expected * 13 / 10);
  }
  assert_int_equal(used, 2 + 2 * 4 + 2 * 16);
  pwi_free(uses);
}

static void test_even_spreading_makes_equal_links_one(void **state) {
  (void)state;
  struct pwi_fabric_shape shape;
  uint32_t links[PWI_FABRIC_ROUTE_MAX];
  pwi_fabric_fat_tree(16, RATE, &shape);
  shape.even = true;
  shape.over[PWI_FABRIC_RACKS] = 4;
  shape.over[PWI_FABRIC_CORE] = 2;
  assert_int_equal(pwi_fabric_links(&shape), 2 * (1024 + 128 + 16));
  assert_int_equal(pwi_fabric_route(&shape, 0, 1023, 9, links), 6);
  assert_true(pwi_fabric_link(&shape, links[0]).capacity == RATE);
  assert_true(pwi_fabric_link(&shape, links[1]).capacity == RATE * 8 / 4);
  assert_true(pwi_fabric_link(&shape, links[2]).capacity == RATE * 64 / 2);
}

static void test_shapes_are_checked(void **state) {
  (void)state;
  struct pwi_fabric_shape shape;
  enum pwi_fabric_tier tier;
  pwi_fabric_fat_tree(16, RATE, &shape);
  shape.over[PWI_FABRIC_CORE] = 0.5;
  assert_int_equal(pwi_fabric_shape_check(&shape), PAWL_INVALID);
  pwi_fabric_fat_tree(1, RATE, &shape);
  assert_int_equal(pwi_fabric_shape_check(&shape), PAWL_INVALID);
  pwi_fabric_fat_tree(16, 0, &shape);
  assert_int_equal(pwi_fabric_shape_check(&shape), PAWL_INVALID);
  pwi_fabric_fat_tree(UINT32_MAX, RATE, &shape);
  assert_int_equal(pwi_fabric_shape_check(&shape), PAWL_TOO_LARGE);
  assert_true(pwi_fabric_tier_find("racks", &tier) && tier == PWI_FABRIC_RACKS);
  assert_false(pwi_fabric_tier_find("rack", &tier));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sixteen_ports_give_the_network_of_the_paper),
      cmocka_unit_test(test_routes_go_up_no_further_than_they_must),
      cmocka_unit_test(test_hashes_spread_over_the_paths),
      cmocka_unit_test(test_even_spreading_makes_equal_links_one),
      cmocka_unit_test(test_shapes_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
