/* Tests specific to the sparse table: searches, fill of leaves, and memory freed by deletion. */
#include "store/sparse.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"

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
  assert_true(sparse->leaves >= 1 && fences[0] == 0);
  for (size_t i = 0; i < PWI_SPARSE_PAD; i++) assert_true(fences[sparse->leaves + i] == PWI_SPARSE_NO_KEY);
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
    assert_true(pwi_maps(sparse)[place] == pwi_map_of(keys, count, fences[place], fences[place + 1]));
    assert_true(*pwi_leaf_changed(sparse, leaf) <= table->layout);
    rows += count;
  }
  assert_true(rows == sparse->rows);
}

/* Even, crowded at one end, in far clusters, with a lone giant: a guess of the place is right, or quite
 * wrong. */
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

typedef size_t find_function(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t *slots_out);

/* Against a plain binary search. */
static void check_found_by(find_function *find, struct pwi_table *table, const uint64_t *keys, size_t count) {
  const struct pwi_sparse *sparse = pwi_sparse_of(table);
  const uint64_t *table_keys = sparse->keys.memory;
  size_t missing = find(sparse, keys, count, slots_found), expected = 0;
  for (size_t i = 0; i < count; i++) {
    bool present = bsearch(&keys[i], all, MANY, sizeof *all, rising) != NULL;
    expected += !present;
    if (present ? table_keys[slots_found[i]] != keys[i] : slots_found[i] != PWI_SLOT_MISSING) {
      fail_msg("key number %zu of %zu", i, count);
    }
  }
  assert_int_equal(missing, expected);
}

static void check_found(struct pwi_table *table, const uint64_t *keys, size_t count) {
  check_found_by(pwi_sparse_find_plain, table, keys, count);
#if defined(__x86_64__)
  if (pwi_sparse_find_avx2_runs()) check_found_by(pwi_sparse_find_avx2, table, keys, count);
#endif
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

/* Lists far longer than the table, in which the few keys that are there must not be overlooked. */
static void test_a_small_table_is_searched_for_a_large_list(void **state) {
  (void)state;
  for (uint64_t i = 0; i < MANY; i++) all[i] = pwi_mix64(i) / 2;
  qsort(all, MANY, sizeof *all, rising);
  for (size_t stride = 1000; stride <= 2 * MANY; stride *= 3) {
    struct pwi_table *table = make(1);
    for (size_t i = stride / 2; i < MANY; i += stride) create(table, &all[i], 1);
    uint64_t absent = all[MANY / 2 + 1] + 1;
    create(table, &absent, 1);
    const uint64_t *table_keys = pwi_sparse_of(table)->keys.memory;
    size_t missing = pwi_sparse_find(pwi_sparse_of(table), all, MANY, slots_found);
    assert_int_equal(missing, MANY - (pwi_table_count(table) - 1));
    for (size_t i = 0; i < MANY; i++) {
      bool present = i >= stride / 2 && (i - stride / 2) % stride == 0;
      assert_true(present ? table_keys[slots_found[i]] == all[i] : slots_found[i] == PWI_SLOT_MISSING);
    }
    pwi_table_destroy(table);
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

static void test_deleted_slots_are_reused(void **state) {
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

/* The leaf before them then ends at another fence. */
static void test_whole_leaves_can_be_deleted(void **state) {
  (void)state;
  struct pwi_table *table = NULL;
  fill_keys(0, 1, &table);
  for (size_t first = 0; first < 60; first += 20) {
    const uint64_t *fences = pwi_fences(pwi_sparse_of(table));
    size_t leaves = pwi_sparse_of(table)->leaves;
    pwi_table_delete(table, pawl_range_of(fences[first], fences[first + 10]));
    assert_int_equal(pwi_sparse_of(table)->leaves, leaves - 10);
    check_structure(table);
  }
  create(table, all, MANY);
  check_structure(table);
  check_found(table, all, MANY);
  pwi_table_destroy(table);
}

/* Two runs of keys of all lengths and distances: rows that move from a full leaf to the next are merged with
 * new ones. */
static void test_a_run_of_keys_is_inserted_beside_another_of_any_length(void **state) {
  (void)state;
  uint64_t *keys = all;
  for (size_t old = 1; old <= 200; old += 1 + old / 16) {
    for (size_t fresh = 1; fresh <= 200; fresh += 1 + fresh / 8) {
      for (uint64_t from = 0; from <= 400; from += 50) {
        struct pwi_table *table = make(1);
        for (size_t i = 0; i < old; i++) keys[i] = 100 + i;
        create(table, keys, old);
        for (size_t i = 0; i < fresh; i++) keys[i] = from + i;
        create(table, keys, fresh);
        check_structure(table);
        for (size_t i = 0; i < old; i++) keys[i] = 100 + i;
        assert_int_equal(pwi_sparse_find(pwi_sparse_of(table), keys, old, slots_found), 0);
        for (size_t i = 0; i < fresh; i++) keys[i] = from + i;
        assert_int_equal(pwi_sparse_find(pwi_sparse_of(table), keys, fresh, slots_found), 0);
        pwi_table_destroy(table);
      }
    }
  }
}

static void test_values_come_back_as_zeros_after_deletion(void **state) {
  (void)state;
  struct pwi_table *table = NULL;
  struct pwi_slots slots = {0};
  fill_keys(0, 1, &table);
  float *values = pwi_alloc_zero(MANY, sizeof *values);
  for (size_t i = 0; i < MANY; i++) values[i] = (float)i + 1;
  assert_int_equal(pwi_table_resolve(table, all, MANY, false, &slots), PAWL_OK);
  pwi_table_scatter(table, PWI_APPLY_ASSIGN, &slots, 0, MANY, values, NULL);
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

#define BATCHES 12

/* The contents of the row of key k: no value is zero, and no two are equal. */
static float value_of(uint64_t key, size_t i) { return (float)(key % 100003) + (float)(i + 1) / 8; }

static void check_rows(struct pwi_table *table, const uint64_t *keys, const struct pwi_slots *slots) {
  const uint64_t *table_keys = pwi_sparse_of(table)->keys.memory;
  const float *values = (const float *)(const void *)table->values, *hidden = (const float *)(const void *)table->state;
  for (size_t i = 0; i < slots->count; i++) {
    size_t slot = slots->slots[i], width = table->is.width;
    assert_true(table_keys[slot] == keys[i]);
    for (size_t j = 0; j < width; j++) assert_true(values[slot * width + j] == value_of(keys[i], j));
    if (hidden) assert_true(hidden[slot] == value_of(keys[i], 77));
  }
}

static void set_rows(struct pwi_table *table, const uint64_t *keys, struct pwi_slots *slots) {
  static float rows[MANY / BATCHES * 8];
  size_t width = table->is.width;
  for (size_t i = 0; i < slots->count * width; i++) rows[i] = value_of(keys[i / width], i % width);
  pwi_table_scatter(table, PWI_APPLY_ADD, slots, 0, slots->count, rows, NULL);
  for (size_t i = 0; i < slots->count; i++) rows[i] = value_of(keys[i], 77);
  pwi_table_assign_state(table, slots, 0, slots->count, rows);
}

/* Batches of all sizes among the rows of those before: new rows are zero, old ones keep what they hold,
 * wherever they move, and the slots that come back are right. */
static void test_rows_keep_their_values_as_others_come_between(void **state) {
  (void)state;
  static const struct pwi_table_options shapes[] = {{PWI_SCALAR_F32, 1, 0, {0, PAWL_KEY_END}, true},
                                                    {PWI_SCALAR_F32, 2, 1, {0, PAWL_KEY_END}, true},
                                                    {PWI_SCALAR_F32, 3, 0, {0, PAWL_KEY_END}, true},
                                                    {PWI_SCALAR_F32, 8, 1, {0, PAWL_KEY_END}, true}};
  for (size_t shape = 0; shape < 4; shape++) {
    struct pwi_table *table = NULL;
    struct pwi_slots slots = {0};
    size_t total = 0, batch = MANY / BATCHES;
    assert_int_equal(pwi_table_create(&shapes[shape], &table), PAWL_OK);
    for (size_t round = 0; round < BATCHES; round++, batch = batch * 2 / 3 + 1) {
      for (size_t i = 0; i < batch; i++) all[total + i] = pwi_mix64(total + i) / 2 >> (round % 3 * 8);
      qsort(all + total, batch, sizeof *all, rising);
      assert_int_equal(pwi_table_resolve(table, all + total, batch, true, &slots), PAWL_OK);
      set_rows(table, all + total, &slots);
      check_rows(table, all + total, &slots);
      total += batch;
      qsort(all, total, sizeof *all, rising);
      assert_int_equal(pwi_table_resolve(table, all, total, false, &slots), PAWL_OK);
      assert_int_equal(slots.missing, 0);
      check_rows(table, all, &slots);
    }
    check_structure(table);
    assert_int_equal(pwi_table_count(table), total);
    pwi_slots_fini(&slots);
    pwi_table_destroy(table);
  }
}

static size_t count_changed(struct pwi_table *table, uint64_t since) {
  const struct pwi_sparse *sparse = pwi_sparse_of(table);
  size_t changed = 0;
  for (size_t i = 0; i < sparse->leaves; i++) {
    changed += *pwi_leaf_changed(sparse, pwi_leaf_numbers(sparse)[i]) > since;
  }
  return changed;
}

/* So that a kept list is looked up again only where keys came or went. */
static void test_a_change_marks_the_leaves_around_it_and_no_others(void **state) {
  (void)state;
  struct pwi_table *table = NULL;
  fill_keys(0, 1, &table);
  uint64_t since = table->layout, key = all[MANY / 2] + 1;
  create(table, &key, 1);
  assert_in_range(count_changed(table, since), 1, 9);
  since = table->layout;
  pwi_table_delete(table, pawl_range_of(all[1000], all[1300]));
  assert_in_range(count_changed(table, since), 1, 2);
  since = table->layout;
  create(table, all, MANY);
  assert_in_range(count_changed(table, since), 5, 24);
  pwi_table_destroy(table);
}

/* Appending fills new leaves and leaves the full one before them alone. */
static void test_appending_moves_no_row_of_a_full_leaf(void **state) {
  (void)state;
  struct pwi_table *table = make(1);
  for (uint64_t i = 0; i < 64; i++) create(table, &i, 1);
  uint64_t since = table->layout, key = 64;
  create(table, &key, 1);
  assert_int_equal(count_changed(table, since), 1);
  check_structure(table);
  pwi_table_destroy(table);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_keys_are_found_however_they_are_spread),
      cmocka_unit_test(test_a_small_table_is_searched_for_a_large_list),
      cmocka_unit_test(test_hashed_keys_in_batches_leave_leaves_full),
      cmocka_unit_test(test_single_random_keys_leave_leaves_full),
      cmocka_unit_test(test_appended_keys_leave_leaves_full),
      cmocka_unit_test(test_keys_inserted_from_above_keep_the_structure),
      cmocka_unit_test(test_deleted_slots_are_reused),
      cmocka_unit_test(test_whole_leaves_can_be_deleted),
      cmocka_unit_test(test_a_run_of_keys_is_inserted_beside_another_of_any_length),
      cmocka_unit_test(test_values_come_back_as_zeros_after_deletion),
      cmocka_unit_test(test_an_emptied_table_can_be_filled_again),
      cmocka_unit_test(test_rows_keep_their_values_as_others_come_between),
      cmocka_unit_test(test_a_change_marks_the_leaves_around_it_and_no_others),
      cmocka_unit_test(test_appending_moves_no_row_of_a_full_leaf),
  };
  return cmocka_run_group_tests(tests, take_arrays, free_arrays);
}
