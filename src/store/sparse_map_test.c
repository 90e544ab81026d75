/* Maps of leaves against a linear search. */
#include "store/sparse_map.h"

#include "base/random.h"
#include "base/testing.h"

#define SIZE (PWI_LINE * PWI_MAP_LINES)
#define LEAVES 3000

struct leaf {
  uint64_t keys[SIZE];
  size_t count;
  uint64_t begin, end; /* fences */
};

static int rising(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Up to SIZE keys between fences `spread` apart: evenly, or with `crowded` all in a small part of it. */
static void draw_leaf(struct pwi_random *random, uint64_t spread, bool crowded, struct leaf *leaf_out) {
  struct leaf leaf = {.begin = pwi_random_below(random, UINT64_MAX - spread)};
  leaf.end = leaf.begin + spread;
  leaf.count = 1 + pwi_random_below(random, spread < SIZE ? spread : SIZE);
  for (size_t i = 0; i < leaf.count; i++) {
    uint64_t room = crowded && spread / 1000 > SIZE ? spread / 1000 : spread;
    leaf.keys[i] = leaf.begin + pwi_random_below(random, room);
  }
  qsort(leaf.keys, leaf.count, sizeof *leaf.keys, rising);
  *leaf_out = leaf;
}

/* The line of the last key that is not above `key`. */
static uint32_t line_of(const struct leaf *leaf, uint64_t key) {
  size_t upto = 0;
  while (upto < leaf->count && leaf->keys[upto] <= key) upto++;
  return upto > 0 ? (uint32_t)((upto - 1) / PWI_LINE) : 0;
}

/* Returns how many of the leaf's own keys are named exactly. */
static size_t check_leaf(struct pwi_random *random, const struct leaf *leaf) {
  uint64_t map = pwi_map_of(leaf->keys, leaf->count, leaf->begin, leaf->end);
  size_t exact = 0;
  for (size_t i = 0; i < leaf->count; i++) {
    uint32_t line = pwi_map_line(map, pwi_map_step(leaf->begin, leaf->end, leaf->keys[i]));
    assert_in_range(line, line_of(leaf, leaf->keys[i]), (leaf->count - 1) / PWI_LINE);
    exact += line == line_of(leaf, leaf->keys[i]);
    uint64_t other = leaf->begin + pwi_random_below(random, leaf->end - leaf->begin);
    line = pwi_map_line(map, pwi_map_step(leaf->begin, leaf->end, other));
    assert_in_range(line, line_of(leaf, other), (leaf->count - 1) / PWI_LINE);
  }
  return exact;
}

static void test_no_key_is_behind_the_line_that_is_named(void **state) {
  (void)state;
  struct pwi_random random;
  struct leaf leaf;
  pwi_random_init(&random, 21, 0);
  for (size_t i = 0; i < LEAVES; i++) {
    draw_leaf(&random, (UINT64_MAX >> pwi_random_below(&random, 63)) - 1, i % 2, &leaf);
    check_leaf(&random, &leaf);
  }
}

static void test_keys_that_are_spread_evenly_are_named_exactly(void **state) {
  (void)state;
  struct pwi_random random;
  struct leaf leaf;
  size_t exact = 0, keys = 0;
  pwi_random_init(&random, 22, 0);
  for (size_t i = 0; i < LEAVES; i++, keys += leaf.count) {
    draw_leaf(&random, UINT64_C(1) << (40 + i % 20), false, &leaf);
    exact += check_leaf(&random, &leaf);
  }
  assert_true(exact > keys - keys / 20);
}

static void test_the_ends_of_all_keys_fit(void **state) {
  (void)state;
  struct leaf leaf = {.begin = 0, .end = UINT64_MAX, .count = SIZE};
  for (size_t i = 0; i < SIZE; i++) leaf.keys[i] = i < SIZE / 2 ? i : UINT64_MAX - SIZE + i - 1;
  struct pwi_random random;
  pwi_random_init(&random, 23, 0);
  check_leaf(&random, &leaf);
  uint64_t map = pwi_map_of(leaf.keys, SIZE, 0, UINT64_MAX);
  assert_int_equal(pwi_map_line(map, pwi_map_step(0, UINT64_MAX, UINT64_MAX - 2)), 7);
  assert_int_equal(pwi_map_line(map, pwi_map_step(0, UINT64_MAX, UINT64_MAX / 2)), 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_key_is_behind_the_line_that_is_named),
      cmocka_unit_test(test_keys_that_are_spread_evenly_are_named_exactly),
      cmocka_unit_test(test_the_ends_of_all_keys_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
