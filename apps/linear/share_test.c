/* A share of the data: whatever pieces come and go, its columns are those of the rows that are left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "apps/linear/inside.h"

static void must(pawl_status status) {
  if (status) fail_msg("%s: %s", pawl_status_text(status), pawl_error_text());
}

/* --- data ----------------------------------------------------------------------------------------------- */

static char folder[] = "/tmp/pawl-share-XXXXXX", path[64];

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/rows", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

/* The piece is cut at about so many bytes of text. */
static struct pawl_data *open_data(uint64_t piece_bytes) {
  const char *paths[] = {path};
  struct pawl_data_options options;
  struct pawl_data *data = NULL;
  pawl_data_options_init(&options);
  options.format = PAWL_DATA_LIBSVM;
  options.piece_bytes = piece_bytes;
  must(pawl_data_open(paths, 1, &options, &data));
  return data;
}

static struct pawl_data *write_data(const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
  return open_data(0);
}

/* Rows with up to eight features below `span`, of which few are used often and many rarely; each row has a
 * label of its own. */
static struct pawl_data *draw_data(uint64_t *random, size_t rows, uint64_t span, uint64_t piece_bytes) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  for (size_t i = 0; i < rows; i++) {
    fprintf(file, "%zu", i + 1);
    uint64_t id = 0, room = span - 1;
    for (uint64_t count = linear_draw(random) % 9; count > 0 && room > 0; count--) {
      uint64_t step = 1 + linear_draw(random) % (linear_draw(random) % 2 && room > 5 ? 5 : room);
      id += step;
      room -= step;
      fprintf(file, " %llu:%g", (unsigned long long)id, (double)(linear_draw(random) % 64) / 8 + 0.125);
    }
    fputc('\n', file);
  }
  assert_int_equal(fclose(file), 0);
  return open_data(piece_bytes);
}

static size_t count_pieces(const struct pawl_data *data) {
  struct pawl_data_info info;
  pawl_data_info(data, &info);
  return info.pieces;
}

/* --- what the columns should be ------------------------------------------------------------------------- */

/* What columns of this id are divided by, in a share that scales: a power of two, so that nothing is lost. */
static float divisor_of(uint64_t id) { return id % 3 == 0 ? 1 : id % 3 == 1 ? 4 : 0.5f; }

/* Every entry of a piece must be found in the columns, in the row that the piece's order says. */
static uint64_t find_entries(const struct linear_share *share, const struct linear_scatter *scatter,
                             const struct pawl_batch *batch, size_t first_row) {
  for (size_t i = 0; i < batch->rows; i++) {
    assert_true(share->labels[first_row + i] == batch->labels[i]);
    assert_true(share->weights[first_row + i] == 1);
    for (uint64_t k = batch->starts[i]; k < batch->starts[i + 1]; k++) {
      uint64_t key = linear_key(scatter, batch->ids[k]);
      size_t low = 0, high = share->features;
      while (low < high) {
        size_t middle = (low + high) / 2;
        if (share->keys[middle] < key)
          low = middle + 1;
        else
          high = middle;
      }
      assert_true(low < share->features && share->keys[low] == key);
      assert_int_equal(share->ids[low], batch->ids[k]);
      bool is_there = false;
      for (uint64_t e = share->starts[low]; e < share->starts[low + 1] && !is_there; e++)
        is_there = share->row_of[e] == first_row + i &&
                   share->values[e] ==
                       (batch->values ? batch->values[k] : 1) / (share->scales ? divisor_of(batch->ids[k]) : 1);
      assert_true(is_there);
    }
  }
  return batch->entries;
}

/* The share has exactly the pieces that it should, and exactly their entries: as many as were found. */
static void check_columns(const struct linear_share *share, const struct linear_scatter *scatter,
                          struct pawl_data *data, const bool *has) {
  size_t row = 0, pieces = 0;
  uint64_t entries = 0;
  for (size_t i = 0; i < share->piece_count; i++) {
    struct pawl_batch *batch = NULL;
    assert_true(has[share->pieces[i].number]);
    assert_null(share->pieces[i].batch);
    must(pawl_data_read(data, (size_t)share->pieces[i].number, &batch));
    assert_int_equal(batch->rows, share->pieces[i].rows);
    entries += find_entries(share, scatter, batch, row);
    row += batch->rows;
    pawl_batch_destroy(batch);
  }
  for (size_t i = 0; i < count_pieces(data); i++) pieces += has[i];
  assert_int_equal(share->piece_count, pieces);
  assert_int_equal(share->rows, row);
  assert_int_equal(share->features ? share->starts[share->features] : 0, entries);
  for (size_t j = 0; j < share->features; j++) {
    if (j > 0) assert_true(share->keys[j - 1] < share->keys[j]);
    assert_true(share->starts[j] < share->starts[j + 1]); /* features of which nothing is left are gone */
  }
}

static void scale_all(struct linear_share *share) {
  double *by = malloc((share->features + 1) * sizeof *by);
  assert_non_null(by);
  for (size_t j = 0; j < share->features; j++) by[j] = share->ids[j] % 3 ? (double)divisor_of(share->ids[j]) : 0;
  linear_share_scale(share, by);
  assert_false(linear_share_is_raw(share));
  linear_share_scale(share, by); /* nothing is divided twice */
  free(by);
}

/* --- coming and going ----------------------------------------------------------------------------------- */

static void take_or_drop(struct linear_share *share, struct pawl_data *data, bool *has, uint64_t *random) {
  size_t pieces = count_pieces(data);
  struct pawl_range ranges[4];
  size_t count = 0;
  bool takes = linear_draw(random) % 2;
  for (int tries = 0; tries < 4; tries++) { /* some that we do not have yet, or some that we do */
    size_t begin = linear_draw(random) % pieces, end = begin;
    while (end < pieces && end < begin + 5 && has[end] != takes) has[end++] = takes;
    if (end > begin) ranges[count++] = (struct pawl_range){begin, end};
  }
  if (takes)
    must(linear_share_take(share, data, ranges, count, 2));
  else
    must(linear_share_drop(share, ranges, count));
}

static void come_and_go(uint64_t seed, size_t rows, uint64_t span, uint64_t piece_bytes, bool scales) {
  struct linear_share share = {.scales = scales};
  struct linear_scatter scatter;
  uint64_t random = seed;
  bool has[4096] = {0};
  struct pawl_data *data = draw_data(&random, rows, span, piece_bytes);
  assert_in_range(count_pieces(data), 2, 4096);
  linear_scatter_init(&scatter, span);
  for (int turn = 0; turn < 40; turn++) {
    take_or_drop(&share, data, has, &random);
    if (linear_draw(&random) % 3 == 0) continue; /* several changes before it is arranged */
    must(linear_share_arrange(&share, &scatter));
    assert_false(share.is_stale);
    if (scales) scale_all(&share);
    check_columns(&share, &scatter, data, has);
  }
  linear_share_fini(&share);
  pawl_data_close(data);
}

static void test_columns_are_those_of_the_pieces_that_are_left(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    print_message("seed %llu\n", (unsigned long long)seed);
    come_and_go(seed, 400, 50, 200, false);
    come_and_go(seed, 200, 4000, 300, false);
    come_and_go(seed, 300, UINT64_C(1) << 45, 500, false);
    come_and_go(seed, 100, PAWL_ID_MAX, 200, false);
  }
}

static void test_columns_are_divided_once_whatever_comes_and_goes(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 6; seed++) {
    print_message("seed %llu\n", (unsigned long long)seed);
    come_and_go(seed, 400, 50, 200, true);
    come_and_go(seed, 300, UINT64_C(1) << 45, 500, true);
  }
}

static void test_a_piece_may_come_back_before_it_has_gone(void **state) {
  (void)state;
  struct linear_share share = {0};
  struct linear_scatter scatter;
  uint64_t random = 5;
  struct pawl_data *data = draw_data(&random, 100, 50, 200);
  const struct pawl_range both = {0, 2}, first = {0, 1};
  bool has[4096] = {true, true};
  linear_scatter_init(&scatter, 50);
  must(linear_share_take(&share, data, &both, 1, 1));
  must(linear_share_arrange(&share, &scatter));
  must(linear_share_drop(&share, &first, 1));
  must(linear_share_take(&share, data, &first, 1, 1));
  must(linear_share_arrange(&share, &scatter));
  check_columns(&share, &scatter, data, has);
  must(linear_share_drop(&share, &first, 1));
  must(linear_share_take(&share, data, &first, 1, 1));
  must(linear_share_drop(&share, &both, 1));
  must(linear_share_arrange(&share, &scatter));
  assert_int_equal(share.rows, 0);
  assert_int_equal(share.features, 0);
  linear_share_fini(&share);
  pawl_data_close(data);
}

static void test_an_id_beyond_the_span_is_refused_and_nothing_changes(void **state) {
  (void)state;
  struct linear_share share = {0};
  struct linear_scatter narrow, wide;
  const struct pawl_range all = {0, 1};
  bool has[1] = {true};
  struct pawl_data *data = write_data("1 1:1 5:2\n-1 3:1 9223372036854775807:1\n");
  linear_scatter_init(&narrow, 9);
  linear_scatter_init(&wide, UINT64_C(1) << 63);
  must(linear_share_take(&share, data, &all, 1, 1));
  assert_int_equal(linear_share_arrange(&share, &narrow), PAWL_OUT_OF_SPAN);
  assert_true(share.is_stale);
  must(linear_share_arrange(&share, &wide));
  check_columns(&share, &wide, data, has);
  linear_share_fini(&share);
  pawl_data_close(data);
}

static void test_an_empty_share_is_arranged_too(void **state) {
  (void)state;
  struct linear_share share = {0};
  struct linear_scatter scatter;
  const struct pawl_range all = {0, 1};
  linear_scatter_init(&scatter, 1);
  must(linear_share_arrange(&share, &scatter));
  assert_int_equal(share.features, 0);
  struct pawl_data *data = write_data("1\n-1\n1\n");
  must(linear_share_take(&share, data, &all, 1, 1));
  must(linear_share_arrange(&share, &scatter));
  assert_int_equal(share.rows, 3);
  assert_int_equal(share.features, 0);
  assert_true(share.labels[1] == -1);
  linear_share_fini(&share);
  pawl_data_close(data);
}

static void test_the_census_counts_before_and_after_arranging(void **state) {
  (void)state;
  struct linear_share share = {0};
  struct linear_scatter scatter;
  struct linear_census before, after;
  const struct pawl_range all = {0, 1};
  struct pawl_data *data = write_data("1 1:1 5:2\n0 0:1\n0 9:1 10:1\n0\n7\n8\n");
  linear_scatter_init(&scatter, 11);
  must(linear_share_take(&share, data, &all, 1, 1));
  linear_share_count(&share, &before);
  must(linear_share_arrange(&share, &scatter));
  linear_share_count(&share, &after);
  assert_int_equal(before.rows, 6);
  assert_int_equal(before.entries, 5);
  assert_int_equal(before.max_id, 10);
  assert_true(before.has_zero);
  assert_int_equal(before.label_count, 3); /* the fourth is not looked at */
  assert_true(before.labels[0] == 1 && before.labels[1] == 0 && before.labels[2] == 7);
  assert_int_equal(before.label_rows[1], 3);
  assert_memory_equal(&before, &after, sizeof before);
  linear_share_fini(&share);
  pawl_data_close(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_columns_are_those_of_the_pieces_that_are_left),
      cmocka_unit_test(test_columns_are_divided_once_whatever_comes_and_goes),
      cmocka_unit_test(test_a_piece_may_come_back_before_it_has_gone),
      cmocka_unit_test(test_an_id_beyond_the_span_is_refused_and_nothing_changes),
      cmocka_unit_test(test_an_empty_share_is_arranged_too),
      cmocka_unit_test(test_the_census_counts_before_and_after_arranging),
  };
  return cmocka_run_group_tests_name("apps.linear.share", tests, make_folder, remove_folder);
}
