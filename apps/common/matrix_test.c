/* Products with dense and sparse matrices: plain loops, any number of threads, batches, and arrays that make no sense. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pawl/matrix.h>
#include <pawl/memory.h>

#define ROWS 700
#define COLUMNS 2500
#define EACH 9 /* entries of a sparse row at most */
#define WIDTH 3

static float dense[ROWS * COLUMNS], values[ROWS * EACH];
static uint64_t starts[ROWS + 1];
static uint32_t at[ROWS * EACH];
static double w[COLUMNS * WIDTH], r[ROWS * WIDTH], z[ROWS * WIDTH], g[COLUMNS * WIDTH], wanted[COLUMNS * WIDTH];

/* Small integers: every sum of them is exact. */
static double draw(uint32_t *random) {
  *random = *random * 1664525 + 1013904223;
  return (double)(*random >> 24) - 128;
}

static int make_data(void **state) {
  uint32_t random = 7;
  (void)state;
  for (size_t i = 0; i < ROWS; i++) {
    size_t column = 0;
    for (size_t j = 0; j < COLUMNS; j++) dense[i * COLUMNS + j] = (float)draw(&random);
    starts[i + 1] = starts[i];
    while (i % 50 != 3 && starts[i + 1] < starts[i] + EACH) { /* some rows are empty */
      column += 1 + (size_t)((draw(&random) + 128) * 2);
      if (column >= COLUMNS) break;
      at[starts[i + 1]] = (uint32_t)column;
      values[starts[i + 1]++] = (float)draw(&random);
    }
  }
  for (size_t i = 0; i < COLUMNS * WIDTH; i++) w[i] = draw(&random);
  for (size_t i = 0; i < ROWS * WIDTH; i++) r[i] = i % 7 ? draw(&random) : 0;
  return 0;
}

static struct pawl_matrix_data data_of(bool is_sparse, bool has_values) {
  struct pawl_matrix_data data = {.rows = ROWS, .columns = COLUMNS, .values = is_sparse ? values : dense};
  if (is_sparse) data.starts = starts, data.at = at;
  if (!has_values) data.values = NULL;
  return data;
}

/* X by itself, entry by entry. */
static double entry(const struct pawl_matrix_data *is, size_t i, size_t j) {
  if (!is->starts) return (double)is->values[i * COLUMNS + j];
  for (uint64_t k = is->starts[i]; k < is->starts[i + 1]; k++)
    if (is->at[k] == j) return is->values ? (double)is->values[k] : 1;
  return 0;
}

static void check(struct pawl_matrix_data data, uint32_t threads, size_t width, struct pawl_range rows) {
  struct pawl_matrix *matrix = NULL;
  assert_int_equal(pawl_matrix_create(&data, threads, &matrix), PAWL_OK);
  memset(wanted, 0, sizeof wanted);
  for (size_t j = 0; j < COLUMNS * width; j++) g[j] = wanted[j] = (double)(j % 5);
  assert_int_equal(pawl_matrix_times(matrix, rows, w, width, z), PAWL_OK);
  for (size_t i = 0; i < rows.end - rows.begin; i++) {
    double sums[WIDTH] = {0};
    for (size_t j = 0; j < COLUMNS; j++) {
      double x = entry(&data, (size_t)rows.begin + i, j);
      for (size_t c = 0; x != 0 && c < width; c++) {
        sums[c] += x * w[j * width + c];
        wanted[j * width + c] += x * r[i * width + c];
      }
    }
    for (size_t c = 0; c < width; c++) assert_true(z[i * width + c] == sums[c]);
  }
  assert_int_equal(pawl_matrix_transposed_times(matrix, rows, r, width, g), PAWL_OK);
  assert_memory_equal(g, wanted, COLUMNS * width * sizeof *g);
  pawl_matrix_destroy(matrix);
}

static void test_products_are_those_of_plain_loops(void **state) {
  struct pawl_range all = pawl_range_of(0, ROWS), some = pawl_range_of(100, 433);
  (void)state;
  for (int is_sparse = 0; is_sparse < 2; is_sparse++) {
    check(data_of(is_sparse, true), 1, 1, all);
    check(data_of(is_sparse, true), 3, 1, all);
    check(data_of(is_sparse, true), 3, WIDTH, some);
    check(data_of(is_sparse, true), 0, 1, pawl_range_of(5, 5));
  }
  check(data_of(true, false), 2, 1, some);
  check(data_of(true, false), 7, WIDTH, all);
}

/* Sums that are rounded: in the order of rows, whatever the number of threads. */
static void test_any_number_of_threads_gives_the_same_bits(void **state) {
  static double first[COLUMNS], fraction[ROWS], first_z[ROWS];
  (void)state;
  for (size_t i = 0; i < ROWS; i++) fraction[i] = 1 / (double)(i + 3);
  for (int is_sparse = 0; is_sparse < 2; is_sparse++)
    for (uint32_t threads = 1; threads <= 5; threads++) {
      struct pawl_matrix *matrix = NULL;
      struct pawl_matrix_data data = data_of(is_sparse, true);
      assert_int_equal(pawl_matrix_create(&data, threads, &matrix), PAWL_OK);
      memset(g, 0, sizeof g);
      assert_int_equal(pawl_matrix_transposed_times(matrix, pawl_range_of(0, ROWS), fraction, 1, g), PAWL_OK);
      assert_int_equal(pawl_matrix_times(matrix, pawl_range_of(0, ROWS), g, 1, z), PAWL_OK);
      if (threads == 1) memcpy(first, g, sizeof first), memcpy(first_z, z, sizeof first_z);
      assert_memory_equal(first, g, sizeof first);
      assert_memory_equal(first_z, z, sizeof first_z);
      pawl_matrix_destroy(matrix);
    }
}

static void refuse(struct pawl_matrix_data data, pawl_status status) {
  struct pawl_matrix *matrix = NULL;
  assert_int_equal(pawl_matrix_create(&data, 2, &matrix), status);
  assert_null(matrix);
}

static void test_arrays_that_make_no_sense_are_refused(void **state) {
  const uint64_t falling[] = {0, 2, 1}, two[] = {0, 2, 4};
  const uint32_t far[] = {0, 1, 0, 5}, twice[] = {0, 1, 1, 1};
  struct pawl_matrix_data good = {.rows = 2, .columns = 5, .starts = two, .at = twice}, bad;
  struct pawl_matrix *matrix = NULL;
  (void)state;
  refuse((bad = good, bad.starts = falling, bad), PAWL_INVALID);
  refuse((bad = good, bad.at = far, bad), PAWL_OUT_OF_SPAN);
  refuse(good, PAWL_UNSORTED);
  refuse((bad = good, bad.at = NULL, bad), PAWL_INVALID);
  refuse((bad = good, bad.starts = NULL, bad), PAWL_INVALID);
  refuse((bad = good, bad.columns = (size_t)1 << 32, bad), PAWL_INVALID);
  refuse((struct pawl_matrix_data){.rows = 1, .columns = 1}, PAWL_INVALID);
  assert_int_equal(pawl_matrix_create(NULL, 1, &matrix), PAWL_INVALID);
  assert_int_equal(pawl_matrix_create(&(struct pawl_matrix_data){0}, 1, &matrix), PAWL_OK);
  assert_int_equal(pawl_matrix_times(matrix, pawl_range_of(0, 1), w, 1, z), PAWL_OUT_OF_SPAN);
  assert_int_equal(pawl_matrix_times(matrix, pawl_range_of(0, 0), w, 0, z), PAWL_INVALID);
  assert_int_equal(pawl_matrix_times(matrix, pawl_range_of(0, 0), NULL, 1, z), PAWL_INVALID);
  assert_int_equal(pawl_matrix_transposed_times(NULL, pawl_range_of(0, 0), w, 1, g), PAWL_INVALID);
  assert_int_equal(pawl_matrix_times(matrix, pawl_range_of(0, 0), w, 1, z), PAWL_OK);
  pawl_matrix_destroy(matrix);
  pawl_matrix_destroy(NULL);
}

/* The number of the allocation that fails. */
static long fails_at, made, live;

static void *resize(void *context, void *block, size_t size) {
  (void)context;
  if (++made == fails_at) return NULL;
  void *fresh = realloc(block, size);
  if (fresh && !block) live++;
  return fresh;
}

static void release(void *context, void *block) {
  (void)context;
  if (block) live--;
  free(block);
}

static void test_without_memory_there_is_no_matrix(void **state) {
  struct pawl_allocator allocator = {.resize = resize, .release = release};
  (void)state;
  if (pawl_allocator_set(&allocator)) skip();
  for (int is_sparse = 0; is_sparse < 2; is_sparse++)
    for (fails_at = 1;; fails_at++) {
      struct pawl_matrix *matrix = NULL;
      struct pawl_matrix_data data = data_of(is_sparse, true);
      made = 0;
      pawl_status status = pawl_matrix_create(&data, 3, &matrix);
      pawl_matrix_destroy(matrix);
      assert_int_equal(live, 0);
      if (made < fails_at) break;
      assert_int_equal(status, PAWL_NO_MEMORY);
    }
  fails_at = 0; /* never */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_without_memory_there_is_no_matrix),
      cmocka_unit_test(test_products_are_those_of_plain_loops),
      cmocka_unit_test(test_any_number_of_threads_gives_the_same_bits),
      cmocka_unit_test(test_arrays_that_make_no_sense_are_refused),
  };
  return cmocka_run_group_tests(tests, make_data, NULL);
}
