/* Memory: the configured allocator is used, counters are right, and injected failures happen once. */
#include "base/memory.h"
#include "base/testing.h"

struct counting {
  int resizes;
  int releases;
  size_t smallest; /* size ever asked for */
  int refuse;
};

static void *counting_resize(void *context, void *block, size_t size) {
  struct counting *counting = context;
  counting->resizes++;
  if (size < counting->smallest) counting->smallest = size;
  return counting->refuse ? NULL : realloc(block, size);
}

static void counting_release(void *context, void *block) {
  ((struct counting *)context)->releases++;
  free(block);
}

static void test_the_allocator_that_was_set_is_used(void **state) {
  (void)state;
  struct counting counting = {.smallest = SIZE_MAX};
  struct pawl_allocator allocator = {counting_resize, counting_release, &counting};
  assert_int_equal(pawl_allocator_set(&allocator), PAWL_OK);
  allocator = (struct pawl_allocator){0}; /* it was copied */
  void *block = pwi_alloc(10);
  assert_non_null(block);
  block = pwi_resize(block, 1000);
  assert_non_null(block);
  assert_int_equal(counting.resizes, 2);
  pwi_free(block);
  pwi_free(NULL);
  assert_int_equal(counting.releases, 1);
  assert_int_equal(pawl_allocator_set(NULL), PAWL_OK);
  pwi_free(pwi_alloc(10));
  assert_int_equal(counting.resizes, 2);
  assert_int_equal(counting.releases, 1);
}

static void test_an_allocator_is_never_asked_for_zero_bytes(void **state) {
  (void)state;
  struct counting counting = {.smallest = SIZE_MAX};
  const struct pawl_allocator allocator = {counting_resize, counting_release, &counting};
  assert_int_equal(pawl_allocator_set(&allocator), PAWL_OK);
  void *block = pwi_alloc(0);
  assert_non_null(block);
  block = pwi_resize(block, 0);
  assert_non_null(block);
  pwi_free(block);
  block = pwi_alloc_zero(0, 8);
  assert_non_null(block);
  pwi_free(block);
  assert_int_equal(counting.smallest, 1);
  assert_int_equal(pwi_memory_counts().live, 0);
  assert_int_equal(pawl_allocator_set(NULL), PAWL_OK);
}

static void test_an_allocator_is_refused_while_blocks_live(void **state) {
  (void)state;
  struct counting counting = {0};
  const struct pawl_allocator allocator = {counting_resize, counting_release, &counting};
  void *block = pwi_alloc(1);
  assert_int_equal(pawl_allocator_set(&allocator), PAWL_INVALID);
  assert_int_equal(pawl_allocator_set(NULL), PAWL_INVALID);
  pwi_free(block);
  assert_int_equal(counting.releases, 0);
  assert_int_equal(pawl_allocator_set(&allocator), PAWL_OK);
  assert_int_equal(pawl_allocator_set(NULL), PAWL_OK);
}

static void test_an_incomplete_allocator_is_refused(void **state) {
  (void)state;
  const struct pawl_allocator no_release = {counting_resize, NULL, NULL};
  const struct pawl_allocator no_resize = {NULL, counting_release, NULL};
  assert_int_equal(pawl_allocator_set(&no_release), PAWL_INVALID);
  assert_int_equal(pawl_allocator_set(&no_resize), PAWL_INVALID);
  void *block = pwi_alloc(1);
  assert_non_null(block);
  pwi_free(block);
}

static void test_the_ordered_failure_comes_exactly_once(void **state) {
  (void)state;
  for (uint64_t n = 0; n < 5; n++) {
    pwi_memory_fail_after(n);
    void *blocks[10];
    for (uint64_t i = 0; i < 10; i++) {
      blocks[i] = pwi_alloc(8);
      assert_int_equal(blocks[i] == NULL, i == n);
    }
    assert_int_equal(pwi_memory_fail_cancel(), 1);
    assert_int_equal(pwi_memory_fail_cancel(), 0);
    for (int i = 0; i < 10; i++) pwi_free(blocks[i]);
  }
}

static void test_a_cancelled_failure_never_comes(void **state) {
  (void)state;
  pwi_memory_fail_after(1);
  pwi_free(pwi_alloc(1));
  assert_int_equal(pwi_memory_fail_cancel(), 0);
  for (int i = 0; i < 3; i++) {
    void *block = pwi_alloc(1);
    assert_non_null(block);
    pwi_free(block);
  }
}

static void test_every_kind_of_allocation_can_fail(void **state) {
  (void)state;
  struct pwi_memory_counts before = pwi_memory_counts();
  pwi_memory_fail_after(0);
  assert_null(pwi_alloc_zero(2, 2));
  pwi_memory_fail_after(0);
  assert_null(pwi_copy_string("text"));
  pwi_memory_fail_after(0);
  assert_null(pwi_resize_array(NULL, 2, 2));
  assert_int_equal(pwi_memory_fail_cancel(), 1);
  assert_int_equal(pwi_memory_counts().live, before.live);
  assert_int_equal(pwi_memory_counts().allocations, before.allocations);
}

static void test_a_failed_resize_leaves_the_block(void **state) {
  (void)state;
  char *block = pwi_copy_string("still here");
  assert_non_null(block);
  pwi_memory_fail_after(0);
  assert_null(pwi_resize(block, 100000));
  pwi_memory_fail_cancel();
  assert_string_equal(block, "still here");
  assert_null(pwi_resize_array(block, SIZE_MAX / 2, 3));
  assert_string_equal(block, "still here");
  assert_int_equal(pwi_memory_counts().live, 1);
  pwi_free(block);
}

static void test_a_refusing_allocator_means_null(void **state) {
  (void)state;
  struct counting counting = {.refuse = 1};
  const struct pawl_allocator allocator = {counting_resize, counting_release, &counting};
  assert_int_equal(pawl_allocator_set(&allocator), PAWL_OK);
  assert_null(pwi_alloc(1));
  assert_null(pwi_copy_string("text"));
  assert_int_equal(pwi_memory_counts().live, 0);
  assert_int_equal(pawl_allocator_set(NULL), PAWL_OK);
}

static void test_array_sizes_that_overflow_are_refused(void **state) {
  (void)state;
  uint64_t before = pwi_memory_counts().allocations;
  assert_null(pwi_alloc_zero(SIZE_MAX, 2));
  assert_null(pwi_alloc_zero(SIZE_MAX / 8 + 1, 8));
  assert_null(pwi_resize_array(NULL, SIZE_MAX / 2 + 1, 2));
  assert_int_equal(pwi_memory_counts().allocations, before);
}

static void test_zeroed_memory_is_zero(void **state) {
  (void)state;
  for (int round = 0; round < 20; round++) {
    unsigned char *dirty = pwi_alloc(300);
    assert_non_null(dirty);
    memset(dirty, 0xee, 300);
    pwi_free(dirty);
    unsigned char *clean = pwi_alloc_zero(100, 3);
    assert_non_null(clean);
    for (int i = 0; i < 300; i++) assert_int_equal(clean[i], 0);
    pwi_free(clean);
  }
}

static void test_counters_follow_every_block(void **state) {
  (void)state;
  struct pwi_memory_counts before = pwi_memory_counts();
  void *a = pwi_alloc(1);
  void *b = pwi_alloc_zero(3, 3);
  b = pwi_resize(b, 90);
  assert_int_equal(pwi_memory_counts().live, before.live + 2);
  assert_int_equal(pwi_memory_counts().allocations, before.allocations + 3);
  pwi_free(a);
  assert_int_equal(pwi_memory_counts().live, before.live + 1);
  pwi_free(b);
  assert_int_equal(pwi_memory_counts().live, before.live);
  assert_int_equal(pwi_memory_counts().allocations, before.allocations + 3);
}

static void test_a_grown_array_keeps_its_elements_and_doubles(void **state) {
  (void)state;
  uint32_t *items = NULL;
  size_t room = 0, moves = 0;
  for (uint32_t i = 0; i < 1000; i++) {
    size_t before = room;
    assert_true(PWI_GROW(items, room, (size_t)i + 1));
    assert_true(room > i);
    if (room != before) moves++;
    if (before > 0 && room != before) assert_int_equal(room, 2 * before);
    items[i] = i;
  }
  assert_true(moves <= 10);
  for (uint32_t i = 0; i < 1000; i++) assert_int_equal(items[i], i);
  assert_true(PWI_GROW(items, room, 100000));
  assert_true(room >= 100000);
  assert_int_equal(items[999], 999);
  pwi_free(items);
}

static void test_an_array_that_cannot_grow_is_unchanged(void **state) {
  (void)state;
  uint64_t *items = NULL;
  size_t room = 0;
  assert_true(PWI_GROW(items, room, 1));
  uint64_t *const items_before = items;
  const size_t room_before = room;
  items[0] = 7;
  pwi_memory_fail_after(0);
  assert_false(PWI_GROW(items, room, room + 1));
  assert_int_equal(pwi_memory_fail_cancel(), 1);
  assert_false(PWI_GROW(items, room, SIZE_MAX));
  assert_false(PWI_GROW(items, room, SIZE_MAX / 4));
  assert_ptr_equal(items, items_before);
  assert_int_equal(room, room_before);
  assert_int_equal(items[0], 7);
  pwi_free(items);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_allocator_that_was_set_is_used),
      cmocka_unit_test(test_an_allocator_is_never_asked_for_zero_bytes),
      cmocka_unit_test(test_an_allocator_is_refused_while_blocks_live),
      cmocka_unit_test(test_an_incomplete_allocator_is_refused),
      cmocka_unit_test(test_the_ordered_failure_comes_exactly_once),
      cmocka_unit_test(test_a_cancelled_failure_never_comes),
      cmocka_unit_test(test_every_kind_of_allocation_can_fail),
      cmocka_unit_test(test_a_failed_resize_leaves_the_block),
      cmocka_unit_test(test_a_refusing_allocator_means_null),
      cmocka_unit_test(test_array_sizes_that_overflow_are_refused),
      cmocka_unit_test(test_zeroed_memory_is_zero),
      cmocka_unit_test(test_counters_follow_every_block),
      cmocka_unit_test(test_a_grown_array_keeps_its_elements_and_doubles),
      cmocka_unit_test(test_an_array_that_cannot_grow_is_unchanged),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
