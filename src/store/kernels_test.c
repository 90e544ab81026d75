#include "store/kernels.h"

#include <math.h>

#include "base/random.h"
#include "base/testing.h"

#define LENGTHS 71
#define ROWS 96
#define WIDEST 64

static const size_t widths[] = {1, 2, 3, 8, 16, 64};
#define WIDTHS (sizeof widths / sizeof *widths)

static const struct pwi_row_kernels *sets[2];
static size_t set_count;

static int collect_sets(void **state) {
  (void)state;
  sets[set_count++] = &pwi_row_kernels_plain;
#if defined(__x86_64__)
  if (pwi_row_kernels_avx2_runs()) sets[set_count++] = &pwi_row_kernels_avx2;
#endif
  return 0;
}

/* Combines two values: the plain reference. */
#define REFERENCE(type, sum_type)                                                                                      \
  do {                                                                                                                 \
    type old, new;                                                                                                     \
    sum_type a, b;                                                                                                     \
    memcpy(&old, to, sizeof old);                                                                                      \
    memcpy(&new, from, sizeof new);                                                                                    \
    memcpy(&a, to, sizeof a);                                                                                          \
    memcpy(&b, from, sizeof b);                                                                                        \
    a = a + b;                                                                                                         \
    if (apply == PWI_APPLY_ADD) memcpy(&old, &a, sizeof old);                                                          \
    if (apply == PWI_APPLY_ASSIGN) old = new;                                                                          \
    if (apply == PWI_APPLY_MIN && new < old) old = new;                                                                \
    if (apply == PWI_APPLY_MAX && new > old) old = new;                                                                \
    memcpy(to, &old, sizeof old);                                                                                      \
  } while (0)

static void combine(enum pwi_apply apply, enum pwi_scalar type, char *to, const char *from) {
  switch (type) {
  case PWI_SCALAR_F32:
    REFERENCE(float, float);
    break;
  case PWI_SCALAR_F64:
    REFERENCE(double, double);
    break;
  case PWI_SCALAR_I32:
    REFERENCE(int32_t, uint32_t);
    break;
  case PWI_SCALAR_I64:
    REFERENCE(int64_t, uint64_t);
    break;
  case PWI_SCALAR_U64:
    REFERENCE(uint64_t, uint64_t);
    break;
  }
}

/* Floats of every size, infinities and zeros of both signs among them; integers of all bits. */
static void fill(struct pwi_random *random, enum pwi_scalar type, char *to, size_t count) {
  size_t size = pwi_scalar_size(type);
  for (size_t i = 0; i < count; i++) {
    double scale = ldexp(1, (int)pwi_random_below(random, 60) - 30);
    double wide = pwi_random_chance(random, 0.05) ? INFINITY : pwi_random_chance(random, 0.05) ? 0.0 : scale;
    wide *= pwi_random_chance(random, 0.5) ? -1.0 : pwi_random_unit(random) + 0.5;
    float narrow = (float)wide;
    uint64_t bits = pwi_random_u64(random);
    const void *value = type == PWI_SCALAR_F32 ? (const void *)&narrow : type == PWI_SCALAR_F64 ? &wide : (void *)&bits;
    memcpy(to + i * size, value, size);
  }
}

static bool both_nan(enum pwi_scalar type, const char *a, const char *b) {
  float narrow[2] = {0};
  double wide[2] = {0};
  if (type == PWI_SCALAR_F32) {
    memcpy(&narrow[0], a, sizeof *narrow);
    memcpy(&narrow[1], b, sizeof *narrow);
  } else if (type == PWI_SCALAR_F64) {
    memcpy(&wide[0], a, sizeof *wide);
    memcpy(&wide[1], b, sizeof *wide);
  }
  return (isnan(narrow[0]) && isnan(narrow[1])) || (isnan(wide[0]) && isnan(wide[1]));
}

/* An infinity minus an infinity is NaN, whose bits may differ; all else must agree bit for bit. */
static bool same(enum pwi_scalar type, const char *a, const char *b, size_t count) {
  size_t size = pwi_scalar_size(type);
  for (size_t i = 0; i < count; i++, a += size, b += size) {
    if (memcmp(a, b, size) != 0 && !both_nan(type, a, b)) return false;
  }
  return true;
}

static void check_arrays(const struct pwi_row_kernels *set, enum pwi_apply apply, enum pwi_scalar type) {
  static _Alignas(8) char expected[LENGTHS * 8], found[LENGTHS * 8], from[LENGTHS * 8 + 8];
  struct pwi_random random;
  pwi_random_init(&random, 1, (uint64_t)type * 10 + apply);
  size_t size = pwi_scalar_size(type);
  for (size_t count = 0; count < LENGTHS; count++) {
    for (size_t off = 0; off < 8; off += 1 + count % 3) {
      fill(&random, type, found, LENGTHS);
      fill(&random, type, from + off, LENGTHS);
      memcpy(expected, found, sizeof expected);
      for (size_t i = 0; i < count; i++) combine(apply, type, expected + i * size, from + off + i * size);
      set->array[apply][type - 1](found, from + off, count);
      if (!same(type, expected, found, LENGTHS)) {
        fail_msg("%s apply=%d type=%d count=%zu off=%zu", set->name, (int)apply, (int)type, count, off);
      }
    }
  }
}

/* `count` of ROWS rows, ascending. */
static void choose(struct pwi_random *random, size_t count, uint32_t *slots) {
  size_t chosen = 0;
  for (uint32_t i = 0; i < ROWS && chosen < count; i++) {
    if (pwi_random_below(random, ROWS - i) < count - chosen) slots[chosen++] = i;
  }
}

static char expected_rows[ROWS * WIDEST * 8], found_rows[ROWS * WIDEST * 8], row_values[ROWS * WIDEST * 8 + 8];
static char out_rows[LENGTHS * WIDEST * 8 + 8];

static void check_rows(const struct pwi_row_kernels *set, enum pwi_apply apply, enum pwi_scalar type, size_t width) {
  uint32_t slots[LENGTHS];
  struct pwi_random random;
  pwi_random_init(&random, 2, (uint64_t)type * 10 + apply);
  size_t bytes = pwi_scalar_size(type) * width;
  fill(&random, type, row_values + 3, ROWS * width);
  for (size_t count = 0; count < LENGTHS; count += 1 + count / 20) {
    choose(&random, count, slots);
    fill(&random, type, found_rows, ROWS * width);
    memcpy(expected_rows, found_rows, ROWS * bytes);
    for (size_t i = 0; i < count * width; i++) {
      size_t at = slots[i / width] * width + i % width, size = pwi_scalar_size(type);
      combine(apply, type, expected_rows + at * size, row_values + 3 + i * size);
    }
    set->rows[apply][type - 1](found_rows, slots, count, width, row_values + 3, count % 2 ? out_rows + 5 : NULL);
    if (!same(type, expected_rows, found_rows, ROWS * width)) {
      fail_msg("%s apply=%d type=%d width=%zu count=%zu", set->name, (int)apply, (int)type, width, count);
    }
    for (size_t i = 0; i < count && count % 2; i++)
      assert_memory_equal(out_rows + 5 + i * bytes, found_rows + slots[i] * bytes, bytes);
  }
}

static void test_arrays_are_applied_like_single_values(void **state) {
  (void)state;
  for (size_t s = 0; s < set_count; s++) {
    for (int apply = PWI_APPLY_ADD; apply <= PWI_APPLY_MAX; apply++) {
      for (int type = PWI_SCALAR_F32; type <= PWI_SCALAR_U64; type++)
        check_arrays(sets[s], (enum pwi_apply)apply, (enum pwi_scalar)type);
    }
  }
}

static void test_rows_are_applied_like_single_values(void **state) {
  (void)state;
  for (size_t s = 0; s < set_count; s++) {
    for (int apply = PWI_APPLY_ADD; apply <= PWI_APPLY_MAX; apply++) {
      for (int type = PWI_SCALAR_F32; type <= PWI_SCALAR_U64; type++) {
        for (size_t w = 0; w < WIDTHS; w++) {
          check_rows(sets[s], (enum pwi_apply)apply, (enum pwi_scalar)type, widths[w]);
        }
      }
    }
  }
}

/* Long and short arrays, at aligned and unaligned addresses. */
static void test_what_arrays_become_is_written_out(void **state) {
  (void)state;
  enum { MOST = 300000 };
  static const size_t counts[] = {0, 1, 3, 255, 256, 257, 16000, 16384, 32769, 65536, 70001};
  static _Alignas(64) char to[MOST * 2], expected[MOST * 2], from[MOST * 2], out[MOST * 2 + 64];
  struct pwi_random random;
  pwi_random_init(&random, 4, 0);
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    for (int type = PWI_SCALAR_F32; type <= PWI_SCALAR_U64; type++) {
      size_t size = pwi_scalar_size((enum pwi_scalar)type), off = i % 3 == 1 ? 4 : 0;
      fill(&random, (enum pwi_scalar)type, to, counts[i]);
      fill(&random, (enum pwi_scalar)type, from, counts[i]);
      memcpy(expected, to, counts[i] * size);
      memset(out, 0x5a, sizeof out);
      pwi_row_kernels_plain.array[PWI_APPLY_ADD][type - 1](expected, from, counts[i]);
      pwi_apply_array_out(PWI_APPLY_ADD, (enum pwi_scalar)type, to, from, counts[i], out + off);
      assert_true(same((enum pwi_scalar)type, expected, to, counts[i]));
      assert_memory_equal(out + off, to, counts[i] * size);
      assert_int_equal(out[off + counts[i] * size], 0x5a);
    }
  }
}

static void test_a_long_array_is_assigned_as_a_short_one_is(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 63, 64, 4096, 131071, 131072, 131073, 200003, 262144};
  static _Alignas(64) char to[300000], from[300000];
  for (size_t i = 0; i < sizeof from; i++) from[i] = (char)(i * 31 + i / 251);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t off = 0; off < 130; off += i % 2 ? 13 : 4) {
      memset(to, 0x5a, sizeof to);
      pwi_assign_array(to + off, from + off / 3, sizes[i]);
      assert_memory_equal(to + off, from + off / 3, sizes[i]);
      assert_int_equal(to[off + sizes[i]], 0x5a);
      if (off > 0) assert_int_equal(to[off - 1], 0x5a);
    }
}

static void check_gather(const struct pwi_row_kernels *set, size_t bytes) {
  uint32_t slots[LENGTHS];
  struct pwi_random random;
  pwi_random_init(&random, 3, bytes);
  fill(&random, PWI_SCALAR_U64, row_values, ROWS * bytes / 8);
  for (size_t count = 0; count < LENGTHS; count++) {
    size_t off = count % 8;
    for (size_t i = 0; i < count; i++) slots[i] = (uint32_t)pwi_random_below(&random, ROWS);
    memset(found_rows, 0x5a, (LENGTHS + 1) * bytes);
    set->gather(found_rows + off, row_values, slots, count, bytes);
    for (size_t i = 0; i < count; i++) {
      assert_memory_equal(found_rows + off + i * bytes, row_values + slots[i] * bytes, bytes);
    }
    assert_int_equal(found_rows[off + count * bytes], 0x5a);
  }
}

static void test_gathering_copies_each_row(void **state) {
  (void)state;
  static const size_t bytes[] = {4, 8, 12, 16, 24, 32, 64, 256, 512};
  for (size_t s = 0; s < set_count; s++) {
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) check_gather(sets[s], bytes[i]);
  }
}

static void test_min_and_max_keep_the_stored_value_beside_nan(void **state) {
  (void)state;
  for (size_t s = 0; s < set_count; s++) {
    for (int apply = PWI_APPLY_MIN; apply <= PWI_APPLY_MAX; apply++) {
      float stored[20], from[20];
      for (int i = 0; i < 20; i++) stored[i] = i % 2 ? NAN : (float)i, from[i] = i % 2 ? (float)i : NAN;
      sets[s]->array[apply][PWI_SCALAR_F32 - 1](stored, from, 20);
      for (int i = 0; i < 20; i++) assert_true(i % 2 ? isnan(stored[i]) : stored[i] == (float)i);
    }
  }
}

static void test_integer_sums_wrap_around(void **state) {
  (void)state;
  for (size_t s = 0; s < set_count; s++) {
    int32_t narrow = INT32_MAX, one = 1;
    int64_t wide = INT64_MIN, minus = -1;
    sets[s]->array[PWI_APPLY_ADD][PWI_SCALAR_I32 - 1](&narrow, &one, 1);
    sets[s]->array[PWI_APPLY_ADD][PWI_SCALAR_I64 - 1](&wide, &minus, 1);
    assert_int_equal(narrow, INT32_MIN);
    assert_true(wide == INT64_MAX);
  }
}

static void test_the_best_set_is_one_of_those_that_run(void **state) {
  (void)state;
  assert_ptr_equal(pwi_row_kernels_best(), sets[set_count - 1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_arrays_are_applied_like_single_values),
      cmocka_unit_test(test_rows_are_applied_like_single_values),
      cmocka_unit_test(test_what_arrays_become_is_written_out),
      cmocka_unit_test(test_a_long_array_is_assigned_as_a_short_one_is),
      cmocka_unit_test(test_gathering_copies_each_row),
      cmocka_unit_test(test_min_and_max_keep_the_stored_value_beside_nan),
      cmocka_unit_test(test_integer_sums_wrap_around),
      cmocka_unit_test(test_the_best_set_is_one_of_those_that_run),
  };
  return cmocka_run_group_tests(tests, collect_sets, NULL);
}
