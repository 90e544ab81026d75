#include "base/pages.h"

#include <pawl/range.h>

#include "base/memory.h"
#include "base/testing.h"

static const size_t sizes[] = {1, 100, 4096, PWI_PAGES_LARGE - 1, PWI_PAGES_LARGE, PWI_PAGES_HUGE + 1, 16u << 20};
#define SIZES (sizeof sizes / sizeof *sizes)

static void test_growing_keeps_the_content_and_adds_zeros(void **state) {
  (void)state;
  struct pwi_pages pages = {0};
  size_t before = 0;
  for (size_t i = 0; i < SIZES; i++) {
    assert_int_equal(pwi_pages_grow(&pages, sizes[i]), PAWL_OK);
    assert_true(pages.size >= sizes[i]);
    unsigned char *bytes = pages.memory;
    for (size_t j = 0; j < pages.size; j += 97) assert_int_equal(bytes[j], j < before ? 7 : 0);
    memset(bytes, 7, pages.size);
    before = pages.size;
  }
  pwi_pages_fini(&pages);
  assert_null(pages.memory);
}

static void test_growing_to_less_does_nothing(void **state) {
  (void)state;
  struct pwi_pages pages = {0};
  assert_int_equal(pwi_pages_grow(&pages, 1000), PAWL_OK);
  void *memory = pages.memory;
  assert_int_equal(pwi_pages_grow(&pages, 10), PAWL_OK);
  assert_int_equal(pwi_pages_grow(&pages, 0), PAWL_OK);
  assert_ptr_equal(pages.memory, memory);
  pwi_pages_fini(&pages);
}

static void test_large_memory_is_aligned_and_counted(void **state) {
  (void)state;
  struct pwi_pages pages = {0};
  uint64_t before = pwi_pages_mapped();
  assert_int_equal(pwi_pages_grow(&pages, PWI_PAGES_LARGE), PAWL_OK);
  assert_int_equal((uintptr_t)pages.memory % PWI_PAGES_HUGE, 0);
  assert_int_equal(pwi_pages_mapped() - before, pages.size);
  assert_int_equal(pwi_pages_grow(&pages, 64u << 20), PAWL_OK);
  assert_int_equal((uintptr_t)pages.memory % PWI_PAGES_HUGE, 0);
  assert_int_equal(pwi_pages_mapped() - before, pages.size);
  pwi_pages_fini(&pages);
  assert_int_equal(pwi_pages_mapped(), before);
}

static void test_dropping_clears_whole_huge_pages_only(void **state) {
  (void)state;
  struct pwi_pages pages = {0};
  assert_int_equal(pwi_pages_grow(&pages, 4 * PWI_PAGES_HUGE), PAWL_OK);
  unsigned char *bytes = pages.memory;
  memset(bytes, 7, 4 * PWI_PAGES_HUGE);
  pwi_pages_drop(&pages, PWI_PAGES_HUGE - 1, PWI_PAGES_HUGE + 2);
  for (size_t i = 0; i < 4 * PWI_PAGES_HUGE; i++) {
    unsigned expected = i / PWI_PAGES_HUGE == 1 ? 0 : 7;
    if (bytes[i] != expected) fail_msg("byte %zu is %u", i, bytes[i]);
  }
  pwi_pages_drop(&pages, 10, PWI_PAGES_HUGE - 20);
  assert_int_equal(bytes[PWI_PAGES_HUGE / 2], 7);
  pwi_pages_fini(&pages);
}

static void test_cleared_bytes_are_zeros_and_no_others(void **state) {
  (void)state;
  const struct pawl_range parts[] = {
      {PWI_PAGES_HUGE - 1, 2 * PWI_PAGES_HUGE + 1}, {10, 20}, {PWI_PAGES_HUGE, 2 * PWI_PAGES_HUGE}, {5, 5}};
  for (size_t part = 0; part < sizeof parts / sizeof *parts; part++) {
    struct pwi_pages pages = {0};
    size_t size = part == 1 ? 100 : 3 * PWI_PAGES_HUGE; /* from the allocator, or mapped */
    assert_int_equal(pwi_pages_grow(&pages, size), PAWL_OK);
    unsigned char *bytes = pages.memory;
    memset(bytes, 7, size);
    pwi_pages_clear(&pages, (size_t)parts[part].begin, (size_t)pawl_range_size(parts[part]));
    for (size_t i = 0; i < size; i++)
      if (bytes[i] != (pawl_range_has(parts[part], i) ? 0 : 7)) fail_msg("byte %zu is %u", i, bytes[i]);
    pwi_pages_fini(&pages);
  }
}

static void test_dropping_small_memory_changes_nothing(void **state) {
  (void)state;
  struct pwi_pages pages = {0};
  assert_int_equal(pwi_pages_grow(&pages, 100), PAWL_OK);
  memset(pages.memory, 7, 100);
  pwi_pages_drop(&pages, 0, 100);
  assert_int_equal(((char *)pages.memory)[50], 7);
  pwi_pages_fini(&pages);
}

static void test_out_of_memory_changes_nothing(void **state) {
  (void)state;
  for (size_t i = 0; i + 1 < SIZES; i++) {
    struct pwi_pages pages = {0};
    uint64_t live = pwi_memory_counts().live;
    assert_int_equal(pwi_pages_grow(&pages, sizes[i]), PAWL_OK);
    memset(pages.memory, 7, sizes[i]);
    struct pwi_pages before = pages;
    pwi_memory_fail_after(0);
    assert_int_equal(pwi_pages_grow(&pages, pages.size * 3), PAWL_NO_MEMORY);
    assert_int_equal(pwi_memory_fail_cancel(), 1);
    assert_ptr_equal(pages.memory, before.memory);
    assert_int_equal(pages.size, before.size);
    assert_int_equal(((char *)pages.memory)[sizes[i] - 1], 7);
    pwi_pages_fini(&pages);
    assert_int_equal(pwi_memory_counts().live, live);
  }
}

static void test_more_than_the_machine_has_addresses_for_is_refused(void **state) {
  (void)state;
  struct pwi_pages pages = {0};
  assert_int_equal(pwi_pages_grow(&pages, SIZE_MAX), PAWL_NO_MEMORY);
  assert_int_equal(pwi_pages_grow(&pages, SIZE_MAX / 2), PAWL_NO_MEMORY);
  assert_null(pages.memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_growing_keeps_the_content_and_adds_zeros),
      cmocka_unit_test(test_growing_to_less_does_nothing),
      cmocka_unit_test(test_large_memory_is_aligned_and_counted),
      cmocka_unit_test(test_dropping_clears_whole_huge_pages_only),
      cmocka_unit_test(test_cleared_bytes_are_zeros_and_no_others),
      cmocka_unit_test(test_dropping_small_memory_changes_nothing),
      cmocka_unit_test(test_out_of_memory_changes_nothing),
      cmocka_unit_test(test_more_than_the_machine_has_addresses_for_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
