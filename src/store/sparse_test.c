/* What is particular to the sparse table: its searches, how full its leaves are, what deletion gives back. */
#include "store/sparse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"

#define MANY 200000

static uint64_t *all; /* MANY keys */
static uint32_t *slots_found;

static int take_arrays(void **state) {
  (void)state;
  all = pwi_resize_array(NULL, MANY, sizeof *all);
  slots_found = pwi_resize_array(NULL, MANY, sizeof *slots_found);
  return all && slots_found ? 0 : -1;
}

static int free_arrays(void **state) {
  (void)state;
  pwi_free(all);
  pwi_free(slots_found);
  return 0;
}

static int rising(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static struct pwi_table *make(uint32_t width) {
  struct pwi_table_options options = {PWI_SCALAR_F32, width, 0, {0, PAWL_KEY_END}, true};
  struct pwi_table *table = NULL;
  assert_int_equal(pwi_table_create(&options, &table), PAWL_OK);
  return table;
}

static void create(struct pwi_table *table, const uint64_t *keys, size_t count) {
  struct pwi_slots slots = {0};
  assert_int_equal(pwi_table_resolve(table, keys, count, true, &slots), PAWL_OK);
  assert_int_equal(slots.missing, 0);
  pwi_slots_fini(&slots);
}

/* The promises of sparse.h. */
static void check_structure(struct pwi_table *table) {
  const struct pwi_sparse *sparse = pwi_sparse_of(table);
  const uint64_t *fences = pwi_fences(sparse);
  uint64_t rows = 0;
  assert_true(sparse->leaves >= 1 && fences[0] == 0 && fences[sparse->leaves] == PWI_SPARSE_NO_KEY);
  assert_int_equal(sparse->leaves + sparse->free_count + 1, sparse->numbered);
  for (size_t place = 0; place < sparse->leaves; place++) {
    uint32_t leaf = pwi_leaf_numbers(sparse)[place];
    const uint64_t *keys = pwi_leaf_keys(sparse, leaf);
    size_t count = *pwi_leaf_count(sparse, leaf);
    assert_true(leaf > 0 && leaf < sparse->numbered && count <= pwi_leaf_size(sparse));
    for (size_t i = 0; i < pwi_leaf_size(sparse); i++) {
      assert_true(i < count ? keys[i] >= fences[place] && keys[i] < fences[place + 1] : keys[i] == PWI_SPARSE_NO_KEY);
      assert_true(i == 0 || i >= count || keys[i] > keys[i - 1]);
    }
    rows += count;
  }
  assert_true(rows == sparse->rows);
}

/* Even, crowded at one end, in far clusters, with a lone giant: a guess of the place is right, or quite wrong. */
static uint64_t spread_key(int way, uint64_t i) {
  switch (way) {
  case 0:
    return pwi_mix64(i) / 2;
  case 1:
    return i * 2;
  case 2:
    return i * i * i;
  case 3:
    return (i / 50 << 40) + i % 50 * 3;
  default:
    return i + 1 < MANY ? i * 10 : UINT64_MAX - 1;
  }
}

static void fill_keys(int way, uint32_t width, struct pwi_table **table_out) {
  for (uint64_t i = 0; i < MANY; i++) all[i] = spread_key(way, i);
  qsort(all, MANY, sizeof *all, rising);
  *table_out = make(width);
  create(*table_out, all, MANY);
  check_structure(*table_out);
}

static void check_found(struct pwi_table *table, const uint64_t *keys, size_t count) {
  const struct pwi_sparse *sparse = pwi_sparse_of(table);
  const uint64_t *table_keys = sparse->keys.memory;
  size_t missing = pwi_sparse_find(sparse, keys, count, slots_found), expected = 0;
  for (size_t i = 0; i < count; i++) {
    bool present = bsearch(&keys[i], all, MANY, sizeof *all, rising) != NULL;
    expected += !present;
    if (present ? table_keys[slots_found[i]] != keys[i] : slots_found[i] != PWI_SLOT_MISSING) {
      fail_msg("key number %zu of %zu", i, count);
    }
  }
  assert_int_equal(missing, expected);
}

/* Every stride-th key, or the one after it, which may be missing. */
static void test_keys_are_found_however_they_are_spread(void **state) {
  (void)state;
  static uint64_t list[MANY];
  for (int way = 0; way < 5; way++) {
    for (uint32_t width = 1; width <= 64; width *= 8) {
      struct pwi_table *table = NULL;
      fill_keys(way, width, &table);
      for (size_t stride = 1; stride < MANY; stride = stride * 5 / 2 + 1) {
        size_t count = 0;
        for (size_t i = stride / 2; i < MANY; i += stride) {
          uint64_t key = all[i] + (i % 7 == 3);
          if (key < PAWL_KEY_END && (count == 0 || key > list[count - 1])) list[count++] = key;
        }
        check_found(table, list, count);
      }
      pwi_table_destroy(table);
    }
  }
}

static void test_hashed_keys_in_batches_leave_leaves_full(void **state) {
  (void)state;
  struct pwi_table *table = make(1);
  static uint64_t batch[5000];
  for (uint64_t i = 0; i < MANY; i += 5000) {
    for (uint64_t j = 0; j < 5000; j++) batch[j] = pwi_mix64(i + j) / 2;
    qsort(batch, 5000, sizeof *batch, rising);
    create(table, batch, 5000);
  }
  check_structure(table);
  assert_int_equal(pwi_table_count(table), MANY);
  assert_true(pwi_table_bytes(table) < MANY * 15); /* 12 are keys and values */
  pwi_table_destroy(table);
}

static void test_single_random_keys_leave_leaves_full(void **state) {
  (void)state;
  struct pwi_table *table = make(1);
  for (uint64_t i = 0; i < 50000; i++) {
    uint64_t key = pwi_mix64(i) / 2;
    create(table, &key, 1);
  }
  check_structure(table);
  assert_true(pwi_table_bytes(table) < 50000 * 15);
  pwi_table_destroy(table);
}

static void test_appended_keys_leave_leaves_full(void **state) {
  (void)state;
  struct pwi_table *table = make(1);
  for (uint64_t i = 0; i < 50000; i++) create(table, &i, 1);
  check_structure(table);
  assert_true(pwi_table_bytes(table) < 50000 * 13);
  pwi_table_destroy(table);
}

static void test_keys_inserted_from_above_keep_the_structure(void **state) {
  (void)state;
  struct pwi_table *table = make(64);
  for (uint64_t i = 20000; i-- > 0;) create(table, &i, 1);
  check_structure(table);
  assert_int_equal(pwi_table_count(table), 20000);
  pwi_table_destroy(table);
}

static void test_what_was_deleted_is_used_again(void **state) {
  (void)state;
  struct pwi_table *table = NULL;
  fill_keys(0, 1, &table);
  uint64_t bytes = pwi_table_bytes(table);
  for (int round = 0; round < 5; round++) {
    pwi_table_delete(table, pawl_range_of(all[MANY / 4], all[MANY / 2]));
    check_structure(table);
    assert_int_equal(pwi_table_count(table), MANY - MANY / 4);
    assert_true(pwi_table_bytes(table) < bytes * 4 / 5);
    create(table, all, MANY);
    check_structure(table);
    assert_true(pwi_table_bytes(table) < bytes * 21 / 20);
  }
  pwi_table_destroy(table);
}

static void test_values_come_back_as_zeros_after_deletion(void **state) {
  (void)state;
  struct pwi_table *table = NULL;
  struct pwi_slots slots = {0};
  fill_keys(0, 1, &table);
  float *values = pwi_alloc_zero(MANY, sizeof *values);
  for (size_t i = 0; i < MANY; i++) values[i] = (float)i + 1;
  assert_int_equal(pwi_table_resolve(table, all, MANY, false, &slots), PAWL_OK);
  pwi_table_scatter(table, PWI_APPLY_ASSIGN, &slots, 0, MANY, values);
  pwi_table_delete(table, pawl_range_of(all[100], all[MANY - 100]));
  assert_int_equal(pwi_table_resolve(table, all, MANY, true, &slots), PAWL_OK);
  pwi_table_gather(table, &slots, 0, MANY, values);
  for (size_t i = 0; i < MANY; i++) assert_true(values[i] == (i < 100 || i >= MANY - 100 ? (float)i + 1 : 0));
  pwi_free(values);
  pwi_slots_fini(&slots);
  pwi_table_destroy(table);
}

static void test_an_emptied_table_can_be_filled_again(void **state) {
  (void)state;
  struct pwi_table *table = NULL;
  fill_keys(3, 1, &table);
  pwi_table_delete(table, pawl_range_of(0, PAWL_KEY_END));
  check_structure(table);
  assert_int_equal(pwi_table_count(table), 0);
  assert_int_equal(pwi_sparse_of(table)->leaves, 1);
  create(table, all, MANY);
  check_structure(table);
  check_found(table, all, MANY);
  pwi_table_destroy(table);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_keys_are_found_however_they_are_spread),
      cmocka_unit_test(test_hashed_keys_in_batches_leave_leaves_full),
      cmocka_unit_test(test_single_random_keys_leave_leaves_full),
      cmocka_unit_test(test_appended_keys_leave_leaves_full),
      cmocka_unit_test(test_keys_inserted_from_above_keep_the_structure),
      cmocka_unit_test(test_what_was_deleted_is_used_again),
      cmocka_unit_test(test_values_come_back_as_zeros_after_deletion),
      cmocka_unit_test(test_an_emptied_table_can_be_filled_again),
  };
  return cmocka_run_group_tests(tests, take_arrays, free_arrays);
}
