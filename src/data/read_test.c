/* Data sets from files: patterns, compression, pieces, threads, and files that change. */
#include "data/scene_test.h"

#include <sys/stat.h>

#define SEED 43

/* --- texts ---------------------------------------------------------------------------------------------- */

struct text {
  char *bytes;
  size_t size;
};

/* Rows of random lengths, some of them empty lines, some very long, some with CR LF; perhaps without a
 * last line break. */
static struct text random_text(struct pwi_random *random, size_t rows) {
  struct text text = {malloc(rows * 2200 + 64), 0};
  assert_non_null(text.bytes);
  for (size_t row = 0; row < rows; row++) {
    size_t entries = pwi_random_below(random, 50) ? pwi_random_below(random, 6) : pwi_random_below(random, 150);
    if (pwi_random_below(random, 10)) {
      text.size += (size_t)sprintf(text.bytes + text.size, "%d", (int)pwi_random_below(random, 3) - 1);
      for (size_t i = 0; i < entries; i++)
        text.size += (size_t)sprintf(text.bytes + text.size, " %u:%.3g", (unsigned)pwi_random_below(random, 1000),
                                     pwi_random_unit(random));
    }
    if (pwi_random_below(random, 4) == 0) text.bytes[text.size++] = '\r';
    text.bytes[text.size++] = '\n';
  }
  text.size += (size_t)sprintf(text.bytes + text.size, "7 7:7%s", pwi_random_below(random, 2) ? "\n" : "");
  return text;
}

static size_t pack(const char *bytes, size_t size, enum pwi_compression packing, bool says_size, unsigned char *to,
                   size_t room) {
  switch (packing) {
  case PWI_COMPRESSION_GZIP:
    return pack_gzip(bytes, size, to, room);
  case PWI_COMPRESSION_XZ:
    return pack_xz(bytes, size, to, room);
  case PWI_COMPRESSION_BZIP2:
    return pack_bzip2(bytes, size, to, room);
  default:
    return pack_zstd(bytes, size, says_size, to, room);
  }
}

static const char *write_packed(struct text text, enum pwi_compression packing, bool says_size) {
  size_t room = text.size + text.size / 2 + 1024;
  unsigned char *packed = malloc(2 * room);
  size_t half = text.size / 3;
  assert_non_null(packed);
  if (packing == PWI_COMPRESSION_PLAIN) {
    free(packed);
    return write_bytes("plain", text.bytes, text.size);
  }
  size_t first = pack(text.bytes, half, packing, says_size, packed, room);
  size_t second = pack(text.bytes + half, text.size - half, packing, says_size, packed + first, room);
  const char *name = packing == PWI_COMPRESSION_ZSTD && !says_size ? "zstd-unsaid" : pwi_compression_name(packing);
  const char *path = write_bytes(name, packed, first + second);
  free(packed);
  return path;
}

/* --- pieces --------------------------------------------------------------------------------------------- */

/* The pieces together yield the rows of the whole file, for any piece size and any compression. */
static void test_pieces_tile_the_rows(void **state) {
  static const uint64_t sizes[] = {1, 2, 3, 7, 64, 1000, 4096, 70000, 1u << 30};
  struct pwi_random random;
  (void)state;
  print_message("seed %d\n", SEED);
  pwi_random_init(&random, SEED, 0);
  for (int round = 0; round < 6; round++) {
    struct text text = random_text(&random, round == 0 ? 3 : pwi_random_below(&random, 60));
    struct pawl_data_options options = default_options();
    options.format = PAWL_DATA_LIBSVM;
    options.piece_bytes = UINT64_C(1) << 40;
    struct pawl_data *data = opened(write_bytes("whole", text.bytes, text.size), &options);
    assert_int_equal(data->pieces, 1);
    struct pwi_batch *whole = read_whole(data);
    pwi_data_close(data);
    for (int packing = 0; packing < 6; packing++) {
      const char *path =
          write_packed(text, packing == 5 ? PWI_COMPRESSION_ZSTD : (enum pwi_compression)packing, packing != 5);
      for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        options.piece_bytes = sizes[i];
        data = opened(path, &options);
        assert_int_equal(data->pieces, (text.size + sizes[i] - 1) / sizes[i]);
        struct pwi_batch *pieces = read_whole(data);
        assert_same_rows(&whole->is, &pieces->is);
        pwi_batch_destroy(pieces);
        pwi_data_close(data);
      }
    }
    pwi_batch_destroy(whole);
    free(text.bytes);
  }
}

static void test_pieces_of_packed_files_can_be_read_in_any_order(void **state) {
  struct pwi_random random;
  struct pwi_fault fault;
  (void)state;
  pwi_random_init(&random, SEED, 1);
  struct text text = random_text(&random, 200);
  struct pawl_data_options options = default_options();
  options.piece_bytes = 500;
  options.format = PAWL_DATA_LIBSVM;
  struct pawl_data *plain = opened(write_packed(text, PWI_COMPRESSION_PLAIN, true), &options);
  struct pawl_data *packed = opened(write_packed(text, PWI_COMPRESSION_ZSTD, true), &options);
  assert_int_equal(plain->pieces, packed->pieces);
  for (int i = 0; i < 200; i++) {
    size_t piece = pwi_random_below(&random, plain->pieces);
    struct pwi_batch *a, *b;
    assert_int_equal(pwi_data_read(plain, piece, &a, &fault), PAWL_OK);
    assert_int_equal(pwi_data_read(packed, piece, &b, &fault), PAWL_OK);
    assert_same_rows(&a->is, &b->is);
    pwi_batch_destroy(a);
    pwi_batch_destroy(b);
  }
  struct pwi_batch *none;
  assert_int_equal(pwi_data_read(plain, plain->pieces, &none, &fault), PAWL_OUT_OF_SPAN);
  pwi_data_close(plain);
  pwi_data_close(packed);
  free(text.bytes);
}

/* --- many at once --------------------------------------------------------------------------------------- */

struct heap {
  struct pwi_batch **batches;
  size_t taken, stop_at, last;
  bool rises;
};

static pawl_status take(void *context, size_t piece, struct pwi_batch *batch, struct pwi_fault *fault) {
  struct heap *heap = context;
  assert_null(heap->batches[piece]);
  heap->batches[piece] = batch;
  heap->rises &= heap->taken == 0 || piece == heap->last + 1;
  heap->last = piece;
  if (++heap->taken == heap->stop_at) return pwi_fault(fault, PAWL_CANCELLED, "enough");
  return PAWL_OK;
}

static void drop(struct heap *heap, size_t pieces) {
  for (size_t i = 0; i < pieces; i++) pwi_batch_destroy(heap->batches[i]);
  free(heap->batches);
}

static struct pawl_data *open_three(struct text text, uint64_t piece_bytes) {
  struct pawl_data_options options = default_options();
  struct pawl_data *data;
  struct pwi_fault fault;
  options.piece_bytes = piece_bytes;
  options.format = PAWL_DATA_LIBSVM;
  const char *paths[] = {write_packed(text, PWI_COMPRESSION_GZIP, true),
                         write_packed(text, PWI_COMPRESSION_PLAIN, true),
                         write_packed(text, PWI_COMPRESSION_ZSTD, true)};
  assert_int_equal(pwi_data_open(paths, 3, &options, &data, &fault), PAWL_OK);
  return data;
}

static void test_many_threads_read_what_one_reads(void **state) {
  struct pwi_random random;
  (void)state;
  pwi_random_init(&random, SEED, 2);
  struct text text = random_text(&random, 300);
  struct pawl_data *data = open_three(text, 900);
  struct pwi_batch *whole = read_whole(data);
  for (uint32_t threads = 0; threads < 5; threads++)
    for (int is_ordered = 0; is_ordered < 2; is_ordered++) {
      struct heap heap = {.batches = calloc(data->pieces, sizeof *heap.batches), .rises = true};
      struct pwi_batch *joined;
      struct pwi_fault fault;
      assert_int_equal(pwi_data_read_all(data, 0, data->pieces, threads, is_ordered, take, &heap, &fault), PAWL_OK);
      assert_int_equal(heap.taken, data->pieces);
      if (is_ordered) assert_true(heap.rises);
      assert_int_equal(pwi_batch_create(&joined), PAWL_OK);
      for (size_t i = 0; i < data->pieces; i++) append_batch(joined, &heap.batches[i]->is);
      assert_int_equal(pwi_batch_finish(joined, false, false), PAWL_OK);
      assert_same_rows(&whole->is, &joined->is);
      pwi_batch_destroy(joined);
      drop(&heap, data->pieces);
    }
  pwi_batch_destroy(whole);
  pwi_data_close(data);
  free(text.bytes);
}

static void test_reading_ends_with_the_first_failure(void **state) {
  struct pwi_random random;
  (void)state;
  pwi_random_init(&random, SEED, 3);
  struct text text = random_text(&random, 200);
  struct pawl_data *data = open_three(text, 300);
  for (int is_ordered = 0; is_ordered < 2; is_ordered++) {
    struct heap heap = {.batches = calloc(data->pieces, sizeof *heap.batches), .stop_at = 5};
    struct pwi_fault fault = {""};
    assert_int_equal(pwi_data_read_all(data, 0, data->pieces, 3, is_ordered, take, &heap, &fault), PAWL_CANCELLED);
    assert_string_equal(fault.text, "enough");
    assert_int_equal(heap.taken, 5);
    drop(&heap, data->pieces);
  }
  struct heap heap = {.batches = calloc(data->pieces, sizeof *heap.batches)};
  struct pwi_fault fault = {""};
  assert_int_equal(unlink(path_of("zstd")), 0);
  assert_int_equal(pwi_data_read_all(data, 0, data->pieces, 3, true, take, &heap, &fault), PAWL_NOT_FOUND);
  assert_int_equal(pwi_data_read_all(data, 5, 3, 3, true, take, &heap, &fault), PAWL_OUT_OF_SPAN);
  assert_int_equal(pwi_data_read_all(data, 0, data->pieces + 1, 3, true, take, &heap, &fault), PAWL_OUT_OF_SPAN);
  drop(&heap, data->pieces);
  pwi_data_close(data);
  free(text.bytes);
}

/* --- opening -------------------------------------------------------------------------------------------- */

static void assert_refused(const char *path, enum pawl_data_format format, pawl_status status, const char *why) {
  struct pawl_data_options options = default_options();
  pawl_status got;
  options.format = format;
  assert_string_equal(why_not(path, &options, &got), why);
  assert_int_equal(got, status);
}

static void test_formats_are_found_by_the_first_row(void **state) {
  static const struct {
    const char *text;
    enum pawl_data_format format;
  } cases[] = {
      {"1 1:1\n", PAWL_DATA_LIBSVM},       {"# comment, with a comma\n\n+1 1:1\n", PAWL_DATA_LIBSVM},
      {"3 qid:1 1:1\n", PAWL_DATA_LIBSVM}, {"1\n", PAWL_DATA_LIBSVM},
      {"1 1:1 # a,b\n", PAWL_DATA_LIBSVM}, {"1 |a b c\n", PAWL_DATA_VW},
      {"1,2,3\n", PAWL_DATA_CSV},          {"label,a\n1,2\n", PAWL_DATA_CSV},
  };
  struct pawl_data_options options = default_options();
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct pawl_data *data = opened(write_text("guess", cases[i].text), &options);
    assert_int_equal(data->sources[0].rule.format, cases[i].format);
    pwi_data_close(data);
  }
}

static void test_files_that_cannot_be_opened_are_named(void **state) {
  (void)state;
  assert_refused(path_of("nowhere"), PAWL_DATA_AUTO, PAWL_NOT_FOUND, "nowhere: No such file or directory");
  assert_refused(path_of("no*where"), PAWL_DATA_AUTO, PAWL_NOT_FOUND, "no*where: no file matches");
  assert_refused(write_text("empty", ""), PAWL_DATA_AUTO, PAWL_TRUNCATED, "empty: the file is empty");
  assert_refused(write_text("blank", "\n \n# x\n"), PAWL_DATA_AUTO, PAWL_TRUNCATED, "blank: the file contains no rows");
  assert_refused(
      write_text("prose", "It was a dark night.\n"), PAWL_DATA_AUTO, PAWL_CORRUPT,
      "prose: cannot detect the format from the first row (known: libsvm, vw, criteo, csv, cache, ldac, uci); name "
      "the format, also if the file is plain text");
  assert_refused(write_text("prose", "It was a dark night.\n"), PAWL_DATA_LIBSVM, PAWL_CORRUPT,
                 "prose:1:1: the label is not a number");
  assert_refused(write_text("prose", "1 1:1\n"), PAWL_DATA_CACHE, PAWL_CORRUPT, "prose: not a cache");
  assert_refused(write_text("prose", "1 1:1\n"), PAWL_DATA_CRITEO, PAWL_CORRUPT,
                 "prose: not Criteo's log: expected a label, 13 counts and 26 categories");
  assert_int_equal(mkdir(path_of("folder"), 0700), 0);
  assert_refused(path_of("folder"), PAWL_DATA_AUTO, PAWL_INVALID, "folder: Is a directory");
  assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
  assert_refused(path_of("pipe"), PAWL_DATA_AUTO, PAWL_UNSUPPORTED,
                 "pipe: not a regular file; data is read in pieces and more than once");
}

static void test_options_that_cannot_be_are_refused(void **state) {
  struct pawl_data_options options = default_options();
  pawl_status status;
  const char *path = write_text("fine", "1 1:1\n");
  struct pawl_data *data;
  struct pwi_fault fault;
  (void)state;
  assert_int_equal(pwi_data_open(&path, 0, &options, &data, &fault), PAWL_INVALID);
  options.hash_bits = 63;
  assert_string_equal(why_not(path, &options, &status), "hash_bits is 63 but must be 1 to 62");
  assert_int_equal(status, PAWL_INVALID);
  options.hash_bits = 22;
  options.label = "";
  why_not(path, &options, &status);
  assert_int_equal(status, PAWL_INVALID);
}

static void test_patterns_stand_for_files_by_name(void **state) {
  struct pawl_data_options options = default_options();
  (void)state;
  write_text("part-b", "2 2:2\n");
  write_text("part-a", "1 |x y\n");
  write_text("part-C", "3,3\n");
  struct pawl_data *data = opened(path_of("part-?"), &options);
  assert_int_equal(data->count, 3);
  assert_string_equal(data->sources[0].path, path_of("part-C"));
  assert_int_equal(data->sources[1].rule.format, PAWL_DATA_VW);
  assert_int_equal(data->sources[2].rule.format, PAWL_DATA_LIBSVM);
  struct pwi_batch *whole = read_whole(data);
  assert_int_equal(whole->is.rows, 3);
  assert_true(whole->labels[0] == 3 && whole->labels[1] == 1 && whole->labels[2] == 2);
  pwi_batch_destroy(whole);
  pwi_data_close(data);
}

static void test_a_file_that_has_the_name_of_a_pattern_is_meant_itself(void **state) {
  struct pawl_data_options options = default_options();
  (void)state;
  write_text("odd[1]", "1 1:1\n");
  struct pawl_data *data = opened(path_of("odd[1]"), &options);
  assert_int_equal(data->count, 1);
  pwi_data_close(data);
}

static void test_fingerprints_tell_data_sets_apart(void **state) {
  struct pawl_data_options options = default_options();
  uint64_t prints[4];
  (void)state;
  for (int i = 0; i < 4; i++) {
    options.binary = i == 2;
    struct pawl_data *data = opened(write_text("print", i == 3 ? "1 1:1 2:2\n" : "1 1:1\n"), &options);
    prints[i] = data->fingerprint;
    pwi_data_close(data);
  }
  assert_true(prints[0] == prints[1] && prints[0] != prints[2] && prints[0] != prints[3]);
}

/* --- bad rows ------------------------------------------------------------------------------------------- */

static void test_a_bad_row_is_named_by_line_and_column(void **state) {
  struct pawl_data_options options = default_options();
  struct text text = {malloc(100000), 0};
  pawl_status status;
  (void)state;
  for (int i = 0; i < 5000; i++) text.size += (size_t)sprintf(text.bytes + text.size, "1 1:1 2:2\r\n");
  text.size += (size_t)sprintf(text.bytes + text.size, "1 1:1 2:x\n1 1:1\n");
  options.piece_bytes = 1000;
  assert_string_equal(why_not(write_packed(text, PWI_COMPRESSION_PLAIN, true), &options, &status),
                      "plain:5001:9: expected a number");
  assert_string_equal(why_not(write_packed(text, PWI_COMPRESSION_GZIP, true), &options, &status),
                      "gzip:5001:9: expected a number");
  assert_int_equal(status, PAWL_CORRUPT);
  free(text.bytes);
}

static void test_so_many_bad_rows_are_left_out_as_were_allowed(void **state) {
  const char *path = write_text("bad", "1 1:1\nx\n2 2:2\ny\n3 3:3\n");
  struct pawl_data_options options = default_options();
  struct pwi_batch *batch;
  struct pwi_fault fault;
  char place[128];
  (void)state;
  options.skip_bad = 2;
  struct pawl_data *data = opened(path, &options);
  assert_string_equal(pawl_data_first_bad(data), "");
  assert_int_equal(pwi_data_read(data, 0, &batch, &fault), PAWL_OK);
  assert_int_equal(batch->is.rows, 3);
  assert_int_equal(batch->is.skipped, 2);
  assert_int_equal(pawl_data_skipped(data), 2);
  snprintf(place, sizeof place, "%s:2:1: the label is not a number", path);
  assert_string_equal(pawl_data_first_bad(data), place);
  pwi_batch_destroy(batch);
  assert_int_equal(pwi_data_read(data, 0, &batch, &fault),
                   PAWL_CORRUPT); /* the limit counts for the data set as a whole */
  assert_string_equal(fault.text, place);
  assert_int_equal(pawl_data_skipped(data), 2);
  pwi_data_close(data);
}

static void test_lines_of_tables_are_counted_with_their_head(void **state) {
  struct pawl_data_options options = default_options();
  pawl_status status;
  (void)state;
  assert_string_equal(why_not(write_text("table", "y,a\n1,2\nz,3\n"), &options, &status),
                      "table:3:1: the label is not a number");
}

/* --- values --------------------------------------------------------------------------------------------- */

static void test_values_become_ones_and_rows_of_length_one(void **state) {
  const char *path = write_text("values", "1 1:3 2:4\n-1\n1 5:2\n");
  struct pawl_data_options options = default_options();
  struct told told = {.size = 0};
  (void)state;
  for (int i = 0; i < 4; i++) {
    options.binary = i & 1;
    options.unit_rows = i & 2;
    struct pawl_data *data = opened(path, &options);
    struct pwi_batch *batch = read_whole(data);
    if (i == 1) assert_null(batch->is.values);
    tell_batch(&told, &batch->is);
    tell(&told, "| ");
    pwi_batch_destroy(batch);
    pwi_data_close(data);
  }
  assert_string_equal(told.text, "1 1:3 2:4; -1; 1 5:2; | 1 1:1 2:1; -1; 1 5:1; | 1 1:0.6 2:0.8; -1; 1 5:1; | "
                                 "1 1:0.707107 2:0.707107; -1; 1 5:1; | ");
}

/* --- files that change ---------------------------------------------------------------------------------- */

static void test_a_file_that_goes_or_shrinks_is_said(void **state) {
  struct pawl_data_options options = default_options();
  struct pwi_batch *batch;
  struct pwi_fault fault;
  (void)state;
  const char *path = write_text("fleeting", "1 1:1\n2 2:2\n3 3:3\n");
  struct pawl_data *data = opened(path, &options);
  assert_int_equal(truncate(path, 7), 0);
  assert_int_equal(pwi_data_read(data, 0, &batch, &fault), PAWL_TRUNCATED);
  assert_non_null(strstr(fault.text, "fleeting: the file was truncated after it was opened"));
  assert_int_equal(unlink(path), 0);
  assert_int_equal(pwi_data_read(data, 0, &batch, &fault), PAWL_NOT_FOUND);
  assert_non_null(strstr(fault.text, "fleeting: No such file or directory"));
  pwi_data_close(data);
}

static void test_packed_files_that_are_cut_off_or_damaged_are_said(void **state) {
  struct pawl_data_options options = default_options();
  struct pwi_random random;
  (void)state;
  pwi_random_init(&random, SEED, 4);
  struct text text = random_text(&random, 100);
  options.format = PAWL_DATA_LIBSVM;
  for (int packing = 1; packing < 6; packing++) {
    const char *path =
        write_packed(text, packing == 5 ? PWI_COMPRESSION_ZSTD : (enum pwi_compression)packing, packing != 5);
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = malloc(2 * text.size + 4096);
    size_t size = fread(bytes, 1, 2 * text.size + 4096, file);
    fclose(file);
    for (size_t cut = 8; cut < size; cut += 1 + size / 97) {
      pawl_status status;
      write_bytes("cut", bytes, cut);
      const char *why = why_not(path_of("cut"), &options, &status);
      /* cut between two members: then the rows are complete, or the last one is short */
      bool is_boundary = status == PAWL_OK;
      if (!is_boundary && status != PAWL_TRUNCATED && status != PAWL_CORRUPT) fail_msg("%zu: %s", cut, why);
      if (status == PAWL_TRUNCATED) assert_non_null(strstr(why, "truncated"));
    }
    for (int i = 0; i < 60; i++) {
      pawl_status status;
      size_t at = 8 + pwi_random_below(&random, size - 8);
      bytes[at] ^= (unsigned char)(1 + pwi_random_below(&random, 255));
      write_bytes("hurt", bytes, size);
      /* any result is fine, as long as it does not crash */
      (void)why_not(path_of("hurt"), &options, &status);
    }
    free(bytes);
  }
  free(text.bytes);
}

/* Every row is in exactly one part, in its order; the part depends on the seed and not on the reader. */
static void test_rows_that_are_held_out_are_the_others(void **state) {
  struct pwi_random random;
  size_t held_by_seed[2] = {0};
  (void)state;
  pwi_random_init(&random, SEED, 6);
  struct text text = random_text(&random, 300);
  struct pawl_data_options options = default_options();
  options.format = PAWL_DATA_LIBSVM;
  options.piece_bytes = 700;
  const char *path = write_bytes("split", text.bytes, text.size);
  struct pawl_data *all = opened(path, &options);
  for (uint64_t seed = 0; seed < 2; seed++) {
    options.held_share = 0.3;
    options.held_seed = seed;
    options.part = PAWL_PART_TRAIN;
    struct pawl_data *train = opened(path, &options);
    options.part = PAWL_PART_HELD;
    struct pawl_data *held = opened(path, &options);
    assert_int_equal(all->pieces, train->pieces);
    for (size_t piece = 0; piece < all->pieces; piece++) {
      struct pwi_batch *batches[3];
      struct pwi_fault fault;
      size_t at[3] = {0};
      assert_int_equal(pwi_data_read(all, piece, &batches[0], &fault), PAWL_OK);
      assert_int_equal(pwi_data_read(train, piece, &batches[1], &fault), PAWL_OK);
      assert_int_equal(pwi_data_read(held, piece, &batches[2], &fault), PAWL_OK);
      assert_int_equal(batches[0]->is.rows, batches[1]->is.rows + batches[2]->is.rows);
      assert_int_equal(batches[0]->is.entries, batches[1]->is.entries + batches[2]->is.entries);
      for (size_t row = 0; row < batches[0]->is.rows; row++) {
        bool is_in[3] = {false};
        for (int part = 1; part < 3; part++) {
          const struct pawl_batch *is = &batches[part]->is, *whole = &batches[0]->is;
          uint64_t begin = at[part] < is->rows ? is->starts[at[part]] : 0, first = whole->starts[row];
          uint64_t size = whole->starts[row + 1] - first;
          is_in[part] = at[part] < is->rows && is->labels[at[part]] == whole->labels[row] &&
                        is->starts[at[part] + 1] - begin == size &&
                        memcmp(is->ids + begin, whole->ids + first, size * sizeof *is->ids) == 0;
        }
        assert_true(is_in[1] || is_in[2]);
        at[is_in[1] ? 1 : 2]++; /* duplicate rows cannot be told apart, so they may count for either part */
      }
      held_by_seed[seed] += batches[2]->is.rows;
      for (int part = 0; part < 3; part++) pwi_batch_destroy(batches[part]);
    }
    pwi_data_close(train);
    pwi_data_close(held);
  }
  assert_true(held_by_seed[0] > 30 && held_by_seed[0] < 180);
  pwi_data_close(all);
  free(text.bytes);
}

/* The same rows behind a byte order mark, in every text format and for any piece size. */
static void test_a_byte_order_mark_is_no_part_of_the_text(void **state) {
  static const char *const texts[] = {"1 1:1\n-1 2:1\n", "1 | a\n-1 | b\n",    "1,2,3\n-1,4,5\n",
                                      "y,a,b\n1,2,3\n",  "2 0:1 1:2\n1 3:1\n", "2\n3\n2\n1 1 1\n2 3 4\n"};
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    for (uint64_t piece = 1; piece < 40; piece += 3) {
      char marked[256];
      struct pawl_data_options options = default_options();
      options.piece_bytes = piece;
      snprintf(marked, sizeof marked, "\xef\xbb\xbf%s", texts[i]);
      struct pawl_data *plain = opened(write_text("plain", texts[i]), &options);
      struct pawl_data *data = opened(write_text("marked", marked), &options);
      struct pwi_batch *a = read_whole(plain), *b = read_whole(data);
      assert_true(a->is.rows > 0);
      assert_same_rows(&a->is, &b->is);
      pwi_batch_destroy(a);
      pwi_batch_destroy(b);
      pwi_data_close(plain);
      pwi_data_close(data);
    }
}

static void test_a_byte_order_mark_hides_no_column_and_no_place(void **state) {
  pawl_status status;
  char name[8];
  (void)state;
  struct pawl_data_options options = default_options();
  options.label = "y";
  struct pawl_data *data = opened(write_text("marked", "\xef\xbb\xbfy,a,b\n1,2,3\n"), &options);
  struct pwi_batch *batch = read_whole(data);
  assert_int_equal(batch->is.rows, 1);
  assert_int_equal(pawl_data_column_name(data, 1, name, sizeof name), 1);
  assert_string_equal(name, "y");
  assert_int_equal(pawl_data_column_name(data, 4, name, sizeof name), 0);
  pwi_batch_destroy(batch);
  pwi_data_close(data);
  options = default_options();
  options.format = PAWL_DATA_LIBSVM;
  assert_string_equal(why_not(write_text("marked", "\xef\xbb\xbf"
                                                   "1 x:1\n"),
                              &options, &status),
                      "marked:1:3: expected a feature id");
  assert_string_equal(why_not(write_text("marked", "\xef\xbb\xbf"), &options, &status),
                      "marked: the file contains no rows");
}

static void test_utf_16_is_named(void **state) {
  static const struct {
    const char *bytes;
    size_t size;
  } cases[] = {{"\xff\xfe"
                "1\0\n\0",
                6},
               {"\xfe\xff\0\x31\0\n", 6},
               {"1\0 \0\n\0", 6},
               {"\0"
                "1\0 \0\n",
                6}};
  struct pawl_data_options options = default_options();
  pawl_status status;
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *why = why_not(write_bytes("wide", cases[i].bytes, cases[i].size), &options, &status);
    assert_int_equal(status, PAWL_CORRUPT);
    assert_non_null(strstr(why, "wide: the text is UTF-16, not UTF-8; convert it with iconv"));
  }
}

static void test_without_memory_opening_and_reading_say_so(void **state) {
  struct pwi_random random;
  (void)state;
  pwi_random_init(&random, SEED, 5);
  struct text text = random_text(&random, 40);
  const char *paths[] = {write_packed(text, PWI_COMPRESSION_GZIP, true),
                         write_packed(text, PWI_COMPRESSION_PLAIN, true),
                         write_packed(text, PWI_COMPRESSION_ZSTD, true)};
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t n = 0;; n++) {
    struct pawl_data_options options = default_options();
    struct pawl_data *data = NULL;
    struct pwi_fault fault = {""};
    options.format = PAWL_DATA_LIBSVM;
    options.piece_bytes = 800;
    options.label = "1";
    pwi_memory_fail_after(n);
    pawl_status status = pwi_data_open(paths, 3, &options, &data, &fault);
    for (size_t i = 0; !status && i < data->pieces; i++) {
      struct pwi_batch *batch;
      status = pwi_data_read(data, i, &batch, &fault);
      if (!status) pwi_batch_destroy(batch);
    }
    int failed = pwi_memory_fail_cancel();
    if (status) assert_int_equal(status, PAWL_NO_MEMORY);
    if (!failed) assert_int_equal(status, PAWL_OK);
    pwi_data_close(data);
    assert_true(pwi_memory_counts().live == live);
    if (!failed) break;
  }
  free(text.bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pieces_tile_the_rows),
      cmocka_unit_test(test_pieces_of_packed_files_can_be_read_in_any_order),
      cmocka_unit_test(test_many_threads_read_what_one_reads),
      cmocka_unit_test(test_reading_ends_with_the_first_failure),
      cmocka_unit_test(test_formats_are_found_by_the_first_row),
      cmocka_unit_test(test_files_that_cannot_be_opened_are_named),
      cmocka_unit_test(test_options_that_cannot_be_are_refused),
      cmocka_unit_test(test_patterns_stand_for_files_by_name),
      cmocka_unit_test(test_a_file_that_has_the_name_of_a_pattern_is_meant_itself),
      cmocka_unit_test(test_fingerprints_tell_data_sets_apart),
      cmocka_unit_test(test_a_bad_row_is_named_by_line_and_column),
      cmocka_unit_test(test_so_many_bad_rows_are_left_out_as_were_allowed),
      cmocka_unit_test(test_lines_of_tables_are_counted_with_their_head),
      cmocka_unit_test(test_values_become_ones_and_rows_of_length_one),
      cmocka_unit_test(test_a_file_that_goes_or_shrinks_is_said),
      cmocka_unit_test(test_packed_files_that_are_cut_off_or_damaged_are_said),
      cmocka_unit_test(test_rows_that_are_held_out_are_the_others),
      cmocka_unit_test(test_a_byte_order_mark_is_no_part_of_the_text),
      cmocka_unit_test(test_a_byte_order_mark_hides_no_column_and_no_place),
      cmocka_unit_test(test_utf_16_is_named),
      cmocka_unit_test(test_without_memory_opening_and_reading_say_so),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
