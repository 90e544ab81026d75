/* Archives: records survive writing and reading, and files that were damaged, truncated, reordered or mixed
 * are refused. */
#include "base/bytes.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "store/archive_inside.h"
#include "store/archive_testing.h"

#define SEED UINT64_C(20250607)
#define ROOM ((size_t)8 << 20)

static unsigned char *space; /* a file's bytes */
static unsigned char *copy;
static unsigned char *content; /* contents of records */

static int set_up(void **state) {
  (void)state;
  struct pwi_random random;
  space = malloc(ROOM);
  copy = malloc(ROOM);
  content = malloc(ROOM);
  if (!space || !copy || !content) return -1;
  pwi_random_init(&random, SEED, 0);
  for (size_t i = 0; i < ROOM; i++) content[i] = (unsigned char)pwi_random_below(&random, 256);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  free(content);
  free(copy);
  free(space);
  return 0;
}

static struct pwi_archive_head head_of(uint64_t node) {
  return (struct pwi_archive_head){
      .cluster = 77, .checkpoint = 5, .node = node, .salt = 3, .name = "nightly-5", .base = "nightly-4"};
}

static struct pwi_archive_writer *begin(struct memory_file *file, uint64_t node, bool pack) {
  struct pwi_archive_head head = head_of(node);
  struct pwi_archive_writer *writer;
  memory_file_init(file, space, 0, ROOM);
  assert_int_equal(pwi_archive_create(&file->base, &head, pack, &writer), PAWL_OK);
  return writer;
}

static struct pwi_archive_figures end(struct pwi_archive_writer *writer) {
  struct pwi_archive_figures figures;
  assert_int_equal(pwi_archive_finish(writer, &figures), PAWL_OK);
  pwi_archive_writer_destroy(writer);
  return figures;
}

static void chunk(struct pwi_archive_writer *writer, const void *bytes, size_t size) {
  assert_int_equal(pwi_archive_write(writer, PWI_ARCHIVE_CHUNK, bytes, size), PAWL_OK);
}

/* A small archive with a bit of everything; its size. */
static size_t example(uint64_t node, bool pack) {
  struct memory_file file;
  struct pwi_archive_writer *writer = begin(&file, node, pack);
  struct pwi_archive_cut cut = {{10, 20}, 3, 4};
  static const unsigned char zeros[1000];
  chunk(writer, content, 100);
  chunk(writer, zeros, sizeof zeros);
  chunk(writer, content + 100, 500);
  assert_int_equal(pwi_archive_write_cut(writer, &cut), PAWL_OK);
  chunk(writer, "x", 1);
  struct pwi_archive_figures figures = end(writer);
  assert_int_equal(figures.size, file.size);
  assert_int_equal(figures.records, 5);
  assert_int_equal(figures.plain, 100 + 1000 + 500 + PWI_ARCHIVE_CUT_BYTES + 1);
  assert_int_equal(file.syncs, 1);
  return file.size;
}

/* Reads all of it, as far as it goes; the status it ends with. */
static pawl_status read_all(unsigned char *bytes, size_t size, size_t *records_out) {
  struct memory_file file;
  struct pwi_archive_reader *reader;
  struct pwi_archive_record record = {0};
  memory_file_init(&file, bytes, size, size);
  pawl_status status = pwi_archive_open(&file.base, &reader);
  if (status != PAWL_OK) return status;
  size_t records = 0;
  do {
    status = pwi_archive_next(reader, &record);
    records += status == PAWL_OK && record.kind != PWI_ARCHIVE_END;
  } while (status == PAWL_OK && record.kind != PWI_ARCHIVE_END);
  if (status != PAWL_OK) assert_int_equal(pwi_archive_next(reader, &record), status); /* it stays */
  pwi_archive_close(reader);
  if (records_out) *records_out = records;
  return status;
}

static void assert_damaged(unsigned char *bytes, size_t size) {
  pawl_status status = read_all(bytes, size, NULL);
  assert_true(status == PAWL_CORRUPT || status == PAWL_TRUNCATED);
}

/* --- what goes in comes out ----------------------------------------------------------------------------- */

static void assert_next(struct pwi_archive_reader *reader, enum pwi_archive_kind kind, const void *bytes, size_t size) {
  struct pwi_archive_record record;
  assert_int_equal(pwi_archive_next(reader, &record), PAWL_OK);
  assert_int_equal(record.kind, kind);
  assert_int_equal(record.size, size);
  if (size > 0) assert_memory_equal(record.bytes, bytes, size);
}

static void test_an_archive_gives_its_records_back_in_order(void **state) {
  (void)state;
  for (int pack = 0; pack < 2; pack++) {
    struct memory_file file;
    struct pwi_archive_reader *reader;
    struct pwi_archive_record record;
    struct pwi_archive_cut cut;
    static const unsigned char zeros[1000];
    size_t size = example(9, pack);
    memory_file_init(&file, space, size, size);
    assert_int_equal(pwi_archive_open(&file.base, &reader), PAWL_OK);
    struct pwi_archive_head head = head_of(9);
    assert_memory_equal(pwi_archive_head(reader), &head, sizeof head);
    assert_next(reader, PWI_ARCHIVE_CHUNK, content, 100);
    assert_next(reader, PWI_ARCHIVE_CHUNK, zeros, sizeof zeros);
    assert_next(reader, PWI_ARCHIVE_CHUNK, content + 100, 500);
    assert_int_equal(pwi_archive_next(reader, &record), PAWL_OK);
    assert_int_equal(pwi_archive_read_cut(&record, &cut), PAWL_OK);
    assert_int_equal(cut.positions.begin, 10);
    assert_int_equal(cut.positions.end, 20);
    assert_int_equal(cut.epoch, 3);
    assert_int_equal(cut.sequence, 4);
    assert_next(reader, PWI_ARCHIVE_CHUNK, "x", 1);
    assert_next(reader, PWI_ARCHIVE_END, NULL, 0);
    assert_next(reader, PWI_ARCHIVE_END, NULL, 0);
    assert_int_equal(pwi_archive_figures(reader).size, size);
    assert_int_equal(pwi_archive_figures(reader).records, 5);
    pwi_archive_close(reader);
  }
}

static void test_packing_makes_zeros_small_and_leaves_noise_alone(void **state) {
  (void)state;
  struct memory_file file;
  static const unsigned char zeros[100000];
  struct pwi_archive_writer *writer = begin(&file, 1, true);
  chunk(writer, zeros, sizeof zeros);
  uint64_t before = pwi_archive_written(writer);
  assert_true(before < 1000);
  chunk(writer, content, 100000);
  assert_int_equal(pwi_archive_written(writer) - before, 100000 + PWI_ARCHIVE_FRAME);
  end(writer);
  assert_int_equal(read_all(space, file.size, NULL), PAWL_OK);
}

/* Around the sizes at which blocks, buffers and direct writes begin and end. */
static void test_records_of_all_sizes_come_back(void **state) {
  (void)state;
  static const size_t sizes[] = {1,
                                 (64 << 10) - 1,
                                 64 << 10,
                                 (256 << 10) - PWI_ARCHIVE_FRAME,
                                 256 << 10,
                                 PWI_ARCHIVE_BLOCK - 1,
                                 PWI_ARCHIVE_BLOCK,
                                 PWI_ARCHIVE_BLOCK + 1,
                                 2 * PWI_ARCHIVE_BLOCK,
                                 2 * PWI_ARCHIVE_BLOCK + 7};
  struct memory_file file;
  struct pwi_archive_reader *reader;
  struct pwi_archive_writer *writer = begin(&file, 1, false);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) chunk(writer, content + i, sizes[i]);
  uint64_t size = end(writer).size;
  assert_int_equal(size, file.size);
  assert_int_equal(pwi_archive_open(&file.base, &reader), PAWL_OK);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    assert_next(reader, PWI_ARCHIVE_CHUNK, content + i, sizes[i]);
  assert_next(reader, PWI_ARCHIVE_END, NULL, 0);
  pwi_archive_close(reader);
}

static void test_an_archive_may_be_empty(void **state) {
  (void)state;
  struct memory_file file;
  struct pwi_archive_writer *writer = begin(&file, 1, false);
  end(writer);
  assert_int_equal(read_all(space, file.size, NULL), PAWL_OK);
}

static void test_the_layout_is_the_documented_one(void **state) {
  (void)state;
  struct memory_file file;
  struct pwi_archive_writer *writer = begin(&file, 9, false);
  chunk(writer, "abc", 3);
  end(writer);
  const unsigned char *at = space;
  size_t size = 16 + 4 * 8 + 2 + 9 + 2 + 9 + 8;
  assert_memory_equal(at, "pawlsave", 8);
  assert_int_equal(pwi_get_u32(at + 8), 1);
  assert_int_equal(pwi_get_u32(at + 12), size);
  assert_int_equal(pwi_get_u64(at + 16), 77);
  assert_int_equal(pwi_get_u64(at + 24), 5);
  assert_int_equal(pwi_get_u64(at + 32), 9);
  assert_int_equal(pwi_get_u64(at + 40), 3);
  assert_memory_equal(at + 48, "\x09\0nightly-5\x09\0nightly-4", 22);
  uint64_t seed = pwi_hash(at, size - 8, 0);
  assert_true(pwi_get_u64(at + size - 8) == seed);
  at += size;
  static const unsigned char frame[24] = {1, 0, 0, 0, 3, 0, 0, 0, 3};
  assert_memory_equal(at, frame, sizeof frame);
  assert_true(pwi_get_u64(at + 24) == pwi_hash("abc", 3, pwi_hash(at, 24, seed)));
  uint64_t first = pwi_get_u64(at + 24);
  assert_memory_equal(at + 32, "abc", 3);
  at += 35;
  assert_int_equal(at[0], 3);
  assert_int_equal(pwi_get_u64(at + 16), 1);
  assert_int_equal(pwi_get_u64(at + 32), 1);
  assert_int_equal(pwi_get_u64(at + 40), 3);
  assert_true(pwi_get_u64(at + 48) == pwi_hash(&first, 8, 0));
  assert_int_equal(at + 56 - space, file.size);
}

/* --- damage --------------------------------------------------------------------------------------------- */

static void test_every_flipped_bit_is_found(void **state) {
  (void)state;
  for (int pack = 0; pack < 2; pack++) {
    size_t size = example(9, pack);
    for (size_t bit = 0; bit < 8 * size; bit++) {
      space[bit / 8] ^= (unsigned char)(1 << bit % 8);
      assert_damaged(space, size);
      space[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_int_equal(read_all(space, size, NULL), PAWL_OK);
  }
}

static void test_a_hundred_thousand_flips_in_a_larger_file_are_found(void **state) {
  (void)state;
  struct memory_file file;
  struct pwi_random random;
  struct pwi_archive_writer *writer = begin(&file, 1, true);
  for (size_t i = 0; i < 40; i++) chunk(writer, content + 500 * i, 1 + 13 * i);
  end(writer);
  pwi_random_init(&random, SEED, 1);
  for (int i = 0; i < 100000; i++) {
    uint64_t bit = pwi_random_below(&random, 8 * file.size);
    space[bit / 8] ^= (unsigned char)(1 << bit % 8);
    assert_damaged(space, file.size);
    space[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
}

static void test_every_truncation_is_found(void **state) {
  (void)state;
  size_t size = example(9, true);
  for (size_t length = 0; length < size; length++) assert_int_equal(read_all(space, length, NULL), PAWL_TRUNCATED);
}

static void test_bytes_behind_the_end_are_found(void **state) {
  (void)state;
  size_t size = example(9, false);
  space[size] = 0;
  assert_int_equal(read_all(space, size + 1, NULL), PAWL_CORRUPT);
  memcpy(space + size, space, size);
  assert_int_equal(read_all(space, 2 * size, NULL), PAWL_CORRUPT);
}

/* Where the blocks of the file in `space` begin; the last entry is its end. */
static size_t find_blocks(size_t size, size_t *starts, size_t room) {
  size_t count = 0, at = pwi_get_u32(space + 12);
  while (at < size && count + 1 < room) {
    starts[count++] = at;
    at += PWI_ARCHIVE_FRAME + pwi_get_u32(space + at + 4);
  }
  starts[count] = size;
  return count;
}

/* The file with blocks `first` and `second` in each other's place, or, if they are the same, without that
 * block. */
static size_t exchange(const size_t *starts, size_t count, size_t first, size_t second) {
  size_t out = starts[0];
  memcpy(copy, space, out);
  for (size_t i = 0; i < count; i++) {
    size_t from = i == first ? second : i == second ? first : i;
    if (i == first && first == second) continue;
    memcpy(copy + out, space + starts[from], starts[from + 1] - starts[from]);
    out += starts[from + 1] - starts[from];
  }
  return out;
}

static void test_blocks_that_are_swapped_or_left_out_are_found(void **state) {
  (void)state;
  size_t starts[16], size = example(9, false), count = find_blocks(size, starts, 16);
  assert_int_equal(count, 6);
  for (size_t i = 0; i < count; i++)
    for (size_t j = i; j < count; j++) assert_damaged(copy, exchange(starts, count, i, j));
}

static void test_a_block_of_another_file_is_found(void **state) {
  (void)state;
  size_t starts[16], size = example(8, false);
  memcpy(copy, space, size);
  assert_int_equal(example(9, false), size);
  size_t count = find_blocks(size, starts, 16);
  for (size_t i = 0; i < count; i++) {
    memcpy(copy + starts[i], space + starts[i], starts[i + 1] - starts[i]);
    assert_damaged(copy, size);
    example(8, false);
    memcpy(copy, space, size);
    example(9, false);
  }
}

static void test_other_files_are_no_archives(void **state) {
  (void)state;
  unsigned char text[] = "#!/bin/sh\n# a script of some length, which is no archive at all\n";
  assert_int_equal(read_all(text, sizeof text, NULL), PAWL_CORRUPT);
  assert_int_equal(read_all(content, 100000, NULL), PAWL_CORRUPT);
  assert_int_equal(read_all(content, 0, NULL), PAWL_TRUNCATED);
}

static void test_a_later_version_is_named_as_such(void **state) {
  (void)state;
  size_t size = example(9, false), head = pwi_get_u32(space + 12);
  pwi_put_u32(space + 8, 2);
  assert_int_equal(read_all(space, size, NULL), PAWL_CORRUPT); /* a flipped bit */
  pwi_put_u64(space + head - 8, pwi_hash(space, head - 8, 0));
  assert_int_equal(read_all(space, size, NULL), PAWL_UNSUPPORTED);
}

/* --- with correct checksums, and yet wrong -------------------------------------------------------------- */

/* Writes one block over the first of an empty archive, with a checksum that fits. */
static size_t forge(struct pwi_block block, const void *bytes) {
  struct memory_file file;
  end(begin(&file, 1, false));
  size_t at = pwi_get_u32(space + 12);
  uint64_t seed = pwi_get_u64(space + at - 8);
  pwi_block_encode(&block, space + at);
  memcpy(space + at + PWI_ARCHIVE_FRAME, bytes, block.stored);
  pwi_put_u64(space + at + 24, pwi_block_checksum(space + at, bytes, block.stored, seed));
  return at + PWI_ARCHIVE_FRAME + block.stored;
}

static void test_forged_blocks_are_refused(void **state) {
  (void)state;
  const struct pwi_block good = {PWI_ARCHIVE_CHUNK, PWI_PACKING_PLAIN, false, 24, 24, 0, 0};
  struct pwi_block block = good;
  /* A valid block, but no end. */
  assert_int_equal(read_all(space, forge(block, content), NULL), PAWL_TRUNCATED);
  block.kind = (enum pwi_archive_kind)0;
  assert_int_equal(read_all(space, forge(block, content), NULL), PAWL_CORRUPT);
  block.kind = (enum pwi_archive_kind)4;
  assert_int_equal(read_all(space, forge(block, content), NULL), PAWL_CORRUPT);
  block.kind = PWI_ARCHIVE_END; /* with counts that are wrong */
  assert_int_equal(read_all(space, forge(block, content), NULL), PAWL_CORRUPT);
  block = good, block.plain = 25;
  assert_int_equal(read_all(space, forge(block, content), NULL), PAWL_CORRUPT);
  block = good, block.goes_on = true; /* a part that goes on is full */
  assert_int_equal(read_all(space, forge(block, content), NULL), PAWL_CORRUPT);
  block = good, block.number = 1;
  assert_int_equal(read_all(space, forge(block, content), NULL), PAWL_CORRUPT);
  block = good, block.packing = PWI_PACKING_ZSTD, block.plain = 1000; /* random bytes are not a zstd frame */
  assert_int_equal(read_all(space, forge(block, content), NULL), PAWL_CORRUPT);
  block = good, block.plain = block.stored = 0;
  assert_int_equal(read_all(space, forge(block, content), NULL), PAWL_CORRUPT);
  block.plain = block.stored = (uint32_t)PWI_ARCHIVE_BLOCK + 1;
  assert_int_equal(read_all(space, forge(block, content), NULL), PAWL_CORRUPT);
}

static void test_a_record_that_goes_on_with_another_kind_is_refused(void **state) {
  (void)state;
  struct memory_file file;
  struct pwi_archive_writer *writer = begin(&file, 1, false);
  chunk(writer, content, PWI_ARCHIVE_BLOCK + 5);
  end(writer);
  size_t starts[4], count = find_blocks(file.size, starts, 4), second = starts[1];
  assert_int_equal(count, 3);
  uint64_t seed = pwi_get_u64(space + starts[0] - 8);
  space[second] = PWI_ARCHIVE_CUT;
  pwi_put_u64(space + second + 24, pwi_block_checksum(space + second, space + second + 32, 5, seed));
  assert_int_equal(read_all(space, file.size, NULL), PAWL_CORRUPT);
}

static void test_a_record_that_is_no_cut_is_not_read_as_one(void **state) {
  (void)state;
  unsigned char bytes[PWI_ARCHIVE_CUT_BYTES] = {0};
  struct pwi_archive_cut cut;
  struct pwi_archive_record record = {PWI_ARCHIVE_CUT, bytes, sizeof bytes, 0};
  assert_int_equal(pwi_archive_read_cut(&record, &cut), PAWL_CORRUPT); /* no positions */
  bytes[8] = 1;
  assert_int_equal(pwi_archive_read_cut(&record, &cut), PAWL_OK);
  record.size--;
  assert_int_equal(pwi_archive_read_cut(&record, &cut), PAWL_CORRUPT);
  record.size++, record.kind = PWI_ARCHIVE_CHUNK;
  assert_int_equal(pwi_archive_read_cut(&record, &cut), PAWL_CORRUPT);
}

/* --- when things go wrong ------------------------------------------------------------------------------- */

static void test_an_invalid_head_or_record_is_refused(void **state) {
  (void)state;
  struct memory_file file;
  struct pwi_archive_head head = head_of(1);
  struct pwi_archive_writer *writer = begin(&file, 1, false);
  struct pwi_archive_cut cut = {{5, 5}, 1, 1};
  assert_int_equal(pwi_archive_write(writer, PWI_ARCHIVE_CHUNK, content, 0), PAWL_INVALID);
  assert_int_equal(pwi_archive_write(writer, PWI_ARCHIVE_END, content, 24), PAWL_INVALID);
  assert_int_equal(pwi_archive_write(writer, PWI_ARCHIVE_CHUNK, content, PWI_ARCHIVE_RECORD_MAX + 1), PAWL_TOO_LARGE);
  assert_int_equal(pwi_archive_write_cut(writer, &cut), PAWL_INVALID);
  chunk(writer, content, 10); /* none of it has harmed the writer */
  struct pwi_archive_figures figures;
  assert_int_equal(pwi_archive_finish(writer, &figures), PAWL_OK);
  assert_int_equal(pwi_archive_write(writer, PWI_ARCHIVE_CHUNK, content, 1), PAWL_INVALID);
  assert_int_equal(pwi_archive_finish(writer, &figures), PAWL_INVALID);
  pwi_archive_writer_destroy(writer);
  assert_int_equal(read_all(space, file.size, NULL), PAWL_OK);
  static const char *const bad[] = {
      "", ".hidden", "a/b", "..", "white space", "0123456789012345678901234567890123456789012345678901234567890123"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(pwi_checkpoint_name_is_valid(bad[i]));
  head.name[0] = '.';
  assert_int_equal(pwi_archive_create(&file.base, &head, false, &writer), PAWL_INVALID);
  head = head_of(1);
  head.base[0] = '/';
  assert_int_equal(pwi_archive_create(&file.base, &head, false, &writer), PAWL_INVALID);
}

static void test_a_full_disk_is_told_and_stays(void **state) {
  (void)state;
  for (size_t room = 0; room < 300000; room += 50000) {
    struct memory_file file;
    struct pwi_archive_figures figures;
    struct pwi_archive_writer *writer = begin(&file, 1, false);
    file.room = room;
    pawl_status status = PAWL_OK;
    for (int i = 0; i < 4 && status == PAWL_OK; i++)
      status = pwi_archive_write(writer, PWI_ARCHIVE_CHUNK, content, 80000);
    assert_int_equal(status, PAWL_NO_SPACE);
    file.room = ROOM;
    assert_int_equal(pwi_archive_write(writer, PWI_ARCHIVE_CHUNK, content, 1), PAWL_NO_SPACE);
    assert_int_equal(pwi_archive_finish(writer, &figures), PAWL_NO_SPACE);
    pwi_archive_writer_destroy(writer);
    assert_int_equal(read_all(space, file.size, NULL), PAWL_TRUNCATED);
  }
}

/* Writes and reads one archive with packed, plain and long records. */
static pawl_status once(void) {
  struct memory_file file;
  struct pwi_archive_head head = head_of(1);
  struct pwi_archive_writer *writer = NULL;
  struct pwi_archive_figures figures;
  memory_file_init(&file, space, 0, ROOM);
  memset(copy, 0, 1000);
  pawl_status status = pwi_archive_create(&file.base, &head, true, &writer);
  if (status == PAWL_OK) status = pwi_archive_write(writer, PWI_ARCHIVE_CHUNK, copy, 1000);
  if (status == PAWL_OK) status = pwi_archive_write(writer, PWI_ARCHIVE_CHUNK, content, PWI_ARCHIVE_BLOCK + 1000);
  if (status == PAWL_OK) status = pwi_archive_finish(writer, &figures);
  pwi_archive_writer_destroy(writer);
  return status == PAWL_OK ? read_all(space, file.size, NULL) : status;
}

static void test_running_out_of_memory_is_survived_anywhere(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  int failed = 1;
  for (uint64_t n = 0; failed; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = once();
    failed = pwi_memory_fail_cancel();
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    assert_int_equal(pwi_memory_counts().live, live);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_archive_gives_its_records_back_in_order),
      cmocka_unit_test(test_packing_makes_zeros_small_and_leaves_noise_alone),
      cmocka_unit_test(test_records_of_all_sizes_come_back),
      cmocka_unit_test(test_an_archive_may_be_empty),
      cmocka_unit_test(test_the_layout_is_the_documented_one),
      cmocka_unit_test(test_every_flipped_bit_is_found),
      cmocka_unit_test(test_a_hundred_thousand_flips_in_a_larger_file_are_found),
      cmocka_unit_test(test_every_truncation_is_found),
      cmocka_unit_test(test_bytes_behind_the_end_are_found),
      cmocka_unit_test(test_blocks_that_are_swapped_or_left_out_are_found),
      cmocka_unit_test(test_a_block_of_another_file_is_found),
      cmocka_unit_test(test_other_files_are_no_archives),
      cmocka_unit_test(test_a_later_version_is_named_as_such),
      cmocka_unit_test(test_forged_blocks_are_refused),
      cmocka_unit_test(test_a_record_that_goes_on_with_another_kind_is_refused),
      cmocka_unit_test(test_a_record_that_is_no_cut_is_not_read_as_one),
      cmocka_unit_test(test_an_invalid_head_or_record_is_refused),
      cmocka_unit_test(test_a_full_disk_is_told_and_stays),
      cmocka_unit_test(test_running_out_of_memory_is_survived_anywhere),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
