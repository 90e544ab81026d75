/* Caches: written rows are read back, and damage is reported. */
#include "data/cache.h"

#include "base/hash.h"
#include "data/cache_code.h"
#include "data/scene_test.h"

#define SEED 47

/* Rows with long ids, and with weights and values if asked. */
static const char *write_vw_like(const char *name, size_t rows, bool weights) {
  struct pwi_random random;
  const char *path = path_of(name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  pwi_random_init(&random, SEED, rows);
  for (size_t row = 0; row < rows; row++) {
    fprintf(file, "%d ", row % 2 ? 1 : -1);
    if (weights) fprintf(file, "%zu ", row % 5);
    fprintf(file, "|a");
    for (size_t i = pwi_random_below(&random, 30); i > 0; i--)
      fprintf(file, " w%u:%.3g", (unsigned)pwi_random_below(&random, 5000), pwi_random_unit(&random));
    fprintf(file, "\n");
  }
  assert_int_equal(fclose(file), 0);
  return path;
}

static const char *convert(const char *from, const struct pawl_data_options *options) {
  struct pawl_data *data = opened(from, options);
  struct pwi_fault fault = {""};
  const char *path = path_of("cache");
  if (pwi_data_convert(data, path, 2, NULL, NULL, &fault)) fail_msg("%s", fault.text);
  pwi_data_close(data);
  assert_int_not_equal(access(path_of("cache.new"), F_OK), 0);
  return path;
}

static void assert_comes_back(const char *from, struct pawl_data_options options) {
  struct pawl_data_options plain = default_options();
  const char *path = convert(from, &options);
  struct pawl_data *text = opened(from, &options), *cache = opened(path, &plain);
  assert_int_equal(cache->sources[0].rule.format, PAWL_DATA_CACHE);
  struct pwi_batch *a = read_whole(text), *b = read_whole(cache);
  assert_same_rows(&a->is, &b->is);
  pwi_batch_destroy(a);
  pwi_batch_destroy(b);
  pwi_data_close(text);
  pwi_data_close(cache);
}

static void test_rows_come_back_as_they_were(void **state) {
  struct pawl_data_options options = default_options();
  (void)state;
  options.piece_bytes = 2000;
  assert_comes_back(write_vw_like("vw", 300, false), options);
  assert_comes_back(write_vw_like("vw", 300, true), options);
  options.hash_bits = 62;
  assert_comes_back(write_vw_like("vw", 300, true), options);
  assert_comes_back(write_text("ones", "1 1:1 7:1\n-1\n1 3:1\n"), options);
  assert_comes_back(write_text("wide", "1 1:1 9223372036854775807:0.5\n"), options);
  assert_comes_back(write_text("bare", "1\n2\n3\n"), options);
  options.binary = true;
  options.unit_rows = true;
  assert_comes_back(write_vw_like("vw", 300, false), options);
}

static void test_large_data_has_several_blocks(void **state) {
  struct pawl_data_options options = default_options();
  (void)state;
  const char *from = write_vw_like("large", 80000, false);
  assert_comes_back(from, options);
  struct pawl_data *cache = opened(path_of("cache"), &options);
  assert_true(cache->pieces > 1);
  pwi_data_close(cache);
}

static void test_a_cache_remembers_what_was_done_to_its_values(void **state) {
  struct pawl_data_options options = default_options(), plain = default_options();
  struct told told = {.size = 0};
  (void)state;
  const char *from = write_text("values", "1 1:3 2:4\n");
  for (int written = 0; written < 4; written++)
    for (int asked = 0; asked < 4; asked++) {
      options.binary = written & 1;
      options.unit_rows = written & 2;
      plain.binary = asked & 1;
      plain.unit_rows = asked & 2;
      struct pawl_data *data = opened(convert(from, &options), &plain);
      struct pwi_batch *batch = read_whole(data);
      tell(&told, "%g ", batch->is.values ? (double)batch->is.values[0] : 1);
      pwi_batch_destroy(batch);
      pwi_data_close(data);
    }
  assert_string_equal(told.text,
                      "3 1 0.6 0.707107 1 1 0.707107 0.707107 0.6 1 0.6 0.707107 0.707107 1 0.707107 0.707107 ");
}

static void test_caches_and_texts_may_be_read_together(void **state) {
  struct pawl_data_options options = default_options();
  struct pawl_data *data;
  struct pwi_fault fault;
  (void)state;
  const char *text = write_text("text", "5 5:5\n"), *cache = convert(write_text("other", "6 6:6\n"), &options);
  const char *paths[] = {text, cache};
  assert_int_equal(pwi_data_open(paths, 2, &options, &data, &fault), PAWL_OK);
  struct pwi_batch *whole = read_whole(data);
  struct told told = {.size = 0};
  tell_batch(&told, &whole->is);
  assert_string_equal(told.text, "5 5:5; 6 6:6; ");
  pwi_batch_destroy(whole);
  assert_int_equal(pwi_data_convert(data, cache, 1, NULL, NULL, &fault), PAWL_INVALID);
  assert_non_null(strstr(fault.text, "this file is also an input"));
  pwi_data_close(data);
}

/* --- columns -------------------------------------------------------------------------------------------- */

/* Every entry of the rows is in the columns once, and the columns are sorted. */
static void assert_same_entries(const struct pawl_batch *rows, const struct pawl_columns *columns) {
  assert_int_equal(columns->rows, rows->rows);
  assert_int_equal(columns->entries, rows->entries);
  assert_int_equal(columns->starts[0], 0);
  assert_int_equal(columns->starts[columns->columns], columns->entries);
  for (size_t i = 0; i < columns->columns; i++) {
    if (i) assert_true(columns->ids[i] > columns->ids[i - 1]);
    assert_true(columns->starts[i] < columns->starts[i + 1]);
    for (uint64_t at = columns->starts[i]; at < columns->starts[i + 1]; at++) {
      uint32_t row = columns->in[at];
      if (at > columns->starts[i]) assert_true(row > columns->in[at - 1]);
      uint64_t in_row = rows->starts[row];
      while (in_row < rows->starts[row + 1] && rows->ids[in_row] != columns->ids[i]) in_row++;
      assert_true(in_row < rows->starts[row + 1]);
      assert_true((rows->values ? rows->values[in_row] : 1) == (columns->values ? columns->values[at] : 1));
    }
  }
}

static void test_columns_have_the_entries_of_the_rows(void **state) {
  struct pawl_data_options options = default_options();
  struct pwi_fault fault;
  (void)state;
  for (int i = 0; i < 6; i++) {
    options.hash_bits = i == 1 ? 62 : i == 2 ? 6 : 22;
    options.binary = i == 3;
    options.unit_rows = i == 4;
    const char *text = i == 5 ? write_text("bare", "1\n2\n") : write_vw_like("vw", 400, false);
    const char *paths[] = {text, convert(text, &options)};
    for (size_t j = 0; j < 2; j++) {
      struct pawl_data *data = opened(paths[j], &options);
      struct pwi_batch *batch;
      struct pwi_columns *columns;
      assert_int_equal(pwi_data_read(data, 0, &batch, &fault), PAWL_OK);
      assert_int_equal(pwi_data_read_columns(data, 0, &columns, &fault), PAWL_OK);
      assert_same_entries(&batch->is, &columns->is);
      pwi_batch_destroy(batch);
      pwi_columns_destroy(columns);
      assert_int_equal(pwi_data_read_columns(data, data->pieces, &columns, &fault), PAWL_OUT_OF_SPAN);
      pwi_data_close(data);
    }
  }
}

/* --- failed writes -------------------------------------------------------------------------------------- */

static bool stop_at_two(void *context, const struct pawl_data_progress *progress) {
  uint64_t *rows = context;
  assert_true(progress->rows >= *rows && progress->pieces <= progress->of);
  *rows = progress->rows;
  return progress->pieces < 2;
}

static void test_a_conversion_that_is_cancelled_leaves_nothing(void **state) {
  struct pawl_data_options options = default_options();
  struct pwi_fault fault;
  uint64_t rows = 0;
  (void)state;
  options.piece_bytes = 1000;
  struct pawl_data *data = opened(write_vw_like("vw", 300, false), &options);
  assert_int_equal(pwi_data_convert(data, path_of("never"), 2, stop_at_two, &rows, &fault), PAWL_CANCELLED);
  assert_int_not_equal(access(path_of("never"), F_OK), 0);
  assert_int_not_equal(access(path_of("never.new"), F_OK), 0);
  assert_int_equal(pwi_data_convert(data, path_of("no/where"), 2, NULL, NULL, &fault), PAWL_NOT_FOUND);
  pwi_data_close(data);
}

static void test_a_full_disk_is_said(void **state) {
  struct pawl_data_options options = default_options();
  struct pwi_cache_writer *writer;
  struct pwi_fault fault;
  (void)state;
  assert_int_equal(symlink("/dev/full", path_of("full.new")), 0);
  struct pawl_data *data = opened(write_vw_like("vw", 300, false), &options);
  struct pwi_batch *batch = read_whole(data);
  assert_int_equal(pwi_cache_writer_open(path_of("full"), false, false, &writer, &fault), PAWL_OK);
  assert_int_equal(pwi_cache_writer_add(writer, &batch->is, &fault), PAWL_OK);
  assert_int_equal(pwi_cache_writer_finish(writer, &fault), PAWL_NO_SPACE);
  assert_int_not_equal(access(path_of("full"), F_OK), 0);
  pwi_batch_destroy(batch);
  pwi_data_close(data);
}

static void test_without_memory_converting_and_reading_say_so(void **state) {
  struct pawl_data_options options = default_options();
  (void)state;
  const char *text = write_vw_like("vw", 60, true), *cache = path_of("cache");
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t n = 0;; n++) {
    struct pawl_data *data = NULL;
    struct pwi_fault fault = {""};
    struct pwi_batch *batch = NULL;
    struct pwi_columns *columns = NULL;
    pwi_memory_fail_after(n);
    pawl_status status = pwi_data_open(&text, 1, &options, &data, &fault);
    if (!status) status = pwi_data_convert(data, cache, 1, NULL, NULL, &fault);
    pwi_data_close(data);
    data = NULL;
    if (!status) status = pwi_data_open(&cache, 1, &options, &data, &fault);
    if (!status) status = pwi_data_read(data, 0, &batch, &fault);
    if (!status) status = pwi_data_read_columns(data, 0, &columns, &fault);
    int failed = pwi_memory_fail_cancel();
    if (status) assert_int_equal(status, PAWL_NO_MEMORY);
    if (!failed) assert_int_equal(status, PAWL_OK);
    pwi_batch_destroy(batch);
    pwi_columns_destroy(columns);
    pwi_data_close(data);
    assert_true(pwi_memory_counts().live == live);
    if (!failed) break;
  }
}

/* --- damage --------------------------------------------------------------------------------------------- */

static unsigned char bytes[1 << 20];
static size_t size;

static void load(const char *path) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_true(size < sizeof bytes);
}

static void assert_says(const char *why, pawl_status status) {
  struct pawl_data_options options = default_options();
  pawl_status got;
  const char *said = why_not(write_bytes("hurt", bytes, size), &options, &got);
  assert_string_equal(said, why);
  assert_int_equal(got, status);
}

static void test_damage_is_found_wherever_it_is(void **state) {
  struct pawl_data_options options = default_options();
  pawl_status status;
  (void)state;
  load(convert(write_text("small", "1 1:0.5 7:1\n-1\n1 3:1\n"), &options));
  for (size_t i = 8; i < size; i++) { /* the first eight bytes identify a cache */
    bytes[i] ^= 0x40;
    write_bytes("hurt", bytes, size);
    struct pawl_data *data = NULL;
    struct pwi_fault fault;
    const char *path = path_of("hurt");
    struct pwi_batch *batch = NULL;
    struct pwi_columns *columns = NULL;
    status = pwi_data_open(&path, 1, &options, &data, &fault);
    if (!status) status = pwi_data_read(data, 0, &batch, &fault);
    if (!status) status = pwi_data_read_columns(data, 0, &columns, &fault);
    bool is_padding = i >= pwi_get_u64(bytes + 48) - 8 && i < pwi_get_u64(bytes + 48);
    if (status == PAWL_OK && !is_padding) fail_msg("byte %zu does not matter", i);
    if (status == PAWL_CORRUPT) assert_true(fault.text[strlen(fault.text) - 1] != ' '); /* a reason follows */
    pwi_batch_destroy(batch);
    pwi_columns_destroy(columns);
    pwi_data_close(data);
    bytes[i] ^= 0x40;
  }
}

static void test_a_cache_that_is_cut_off_is_said(void **state) {
  struct pawl_data_options options = default_options();
  (void)state;
  load(convert(write_text("small", "1 1:0.5 7:1\n-1\n1 3:1\n"), &options));
  size_t whole = size;
  for (size = 9; size < whole; size++) assert_says("hurt: the cache is truncated", PAWL_TRUNCATED);
  size = whole + 1;
  assert_says("hurt: unexpected bytes behind the end of the cache", PAWL_CORRUPT);
}

/* Correct checksums over wrong sizes. */
static void test_sizes_that_make_no_sense_are_refused(void **state) {
  static const uint64_t odd[] = {0,         1, 2, 63, UINT32_MAX, UINT64_C(1) << 32, UINT64_C(1) << 60, UINT64_MAX / 8,
                                 UINT64_MAX};
  struct pawl_data_options options = default_options();
  (void)state;
  load(convert(write_text("small", "1 1:0.5 7:1\n-1\n1 3:1\n"), &options));
  size_t index = (size_t)pwi_get_u64(bytes + 48);
  for (size_t field = 0; field < PWI_CACHE_ENTRY / 8; field++) {
    unsigned char *place = bytes + index + 8 * field;
    uint64_t was = pwi_get_u64(place);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
      pawl_status status;
      if (odd[i] == was) continue;
      pwi_put_u64(place, odd[i]);
      pwi_put_u64(bytes + index + PWI_CACHE_ENTRY, pwi_hash(bytes + index, PWI_CACHE_ENTRY, 0));
      const char *why = why_not(write_bytes("hurt", bytes, size), &options, &status);
      /* the checksum of the columns, and valid flags, do not matter here */
      bool matters = field != 4 && (field != 5 || odd[i] > 7);
      if (matters && status != PAWL_CORRUPT) fail_msg("field %zu, %llu: %s", field, (unsigned long long)odd[i], why);
    }
    pwi_put_u64(place, was);
  }
  pwi_put_u64(bytes + index + PWI_CACHE_ENTRY, pwi_hash(bytes + index, PWI_CACHE_ENTRY, 0));
  for (size_t field = 16; field < 56; field += 8) {
    uint64_t was = pwi_get_u64(bytes + field);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
      pawl_status status;
      if (odd[i] == was) continue;
      pwi_put_u64(bytes + field, odd[i]);
      pwi_put_u64(bytes + 56, pwi_hash(bytes, 56, 0));
      (void)why_not(write_bytes("hurt", bytes, size), &options, &status);
      bool matters = field != 32 || odd[i] > INT64_MAX; /* the highest id is not a size */
      if (matters) assert_int_not_equal(status, PAWL_OK);
    }
    pwi_put_u64(bytes + field, was);
  }
}

static void test_other_versions_are_not_read(void **state) {
  struct pawl_data_options options = default_options();
  (void)state;
  load(convert(write_text("small", "1 1:0.5\n"), &options));
  bytes[8] = 2;
  assert_says("hurt: unknown version of the cache format; convert the data again", PAWL_UNSUPPORTED);
  options.format = PAWL_DATA_VW;
  pawl_status status;
  assert_string_equal(why_not(path_of("hurt"), &options, &status), "hurt: this is a cache, not vw");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_come_back_as_they_were),
      cmocka_unit_test(test_large_data_has_several_blocks),
      cmocka_unit_test(test_a_cache_remembers_what_was_done_to_its_values),
      cmocka_unit_test(test_caches_and_texts_may_be_read_together),
      cmocka_unit_test(test_columns_have_the_entries_of_the_rows),
      cmocka_unit_test(test_a_conversion_that_is_cancelled_leaves_nothing),
      cmocka_unit_test(test_a_full_disk_is_said),
      cmocka_unit_test(test_without_memory_converting_and_reading_say_so),
      cmocka_unit_test(test_damage_is_found_wherever_it_is),
      cmocka_unit_test(test_a_cache_that_is_cut_off_is_said),
      cmocka_unit_test(test_sizes_that_make_no_sense_are_refused),
      cmocka_unit_test(test_other_versions_are_not_read),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
