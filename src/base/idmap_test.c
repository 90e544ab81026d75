/* Maps from ids: against a plain array. */
#include "base/idmap.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"

#define IDS 300

static void test_a_map_agrees_with_an_array_under_random_changes(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    struct pwi_random random;
    struct pwi_idmap map = {0};
    int items[IDS] = {0};
    void *expected[IDS] = {0};
    size_t count = 0;
    pwi_random_init(&random, seed, 0);
    for (int step = 0; step < 5000; step++) {
      size_t id = 1 + (size_t)pwi_random_below(&random, IDS - 1);
      if (pwi_random_chance(&random, 0.5)) {
        count += expected[id] == NULL;
        expected[id] = &items[pwi_random_below(&random, IDS)];
        assert_int_equal(pwi_idmap_put(&map, id << (seed % 60), expected[id]), PAWL_OK);
      } else {
        count -= expected[id] != NULL;
        expected[id] = NULL;
        pwi_idmap_remove(&map, id << (seed % 60));
      }
      assert_int_equal(map.count, count);
      size_t look = 1 + (size_t)pwi_random_below(&random, IDS - 1);
      if (look << (seed % 60)) assert_ptr_equal(pwi_idmap_get(&map, look << (seed % 60)), expected[look]);
    }
    for (size_t id = 1; id < IDS; id++) assert_ptr_equal(pwi_idmap_get(&map, id << (seed % 60)), expected[id]);
    pwi_idmap_fini(&map);
  }
}

static void test_an_empty_map_has_nothing(void **state) {
  (void)state;
  struct pwi_idmap map = {0};
  assert_null(pwi_idmap_get(&map, 7));
  pwi_idmap_remove(&map, 7);
  assert_null(pwi_idmap_get(&map, 0));
  pwi_idmap_fini(&map);
}

static void test_without_memory_a_map_stays_as_it_was(void **state) {
  (void)state;
  struct pwi_idmap map = {0};
  int item;
  for (uint64_t id = 1; id <= 8; id++) assert_int_equal(pwi_idmap_put(&map, id, &item), PAWL_OK);
  pwi_memory_fail_after(0);
  assert_int_equal(pwi_idmap_put(&map, 9, &item), PAWL_NO_MEMORY);
  assert_int_equal(pwi_memory_fail_cancel(), 1);
  for (uint64_t id = 1; id <= 8; id++) assert_ptr_equal(pwi_idmap_get(&map, id), &item);
  assert_null(pwi_idmap_get(&map, 9));
  pwi_idmap_fini(&map);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_map_agrees_with_an_array_under_random_changes),
      cmocka_unit_test(test_an_empty_map_has_nothing),
      cmocka_unit_test(test_without_memory_a_map_stays_as_it_was),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
