/* The journal in a file: records are read back, unfinished records are cut off, damage is detected. */
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "manager/ledger/journal_file.h"
#include "manager/ledger/journal_testing.h"
#include "sim/disk.h"

#define NAME "manager.log"
#define FILE_ROOM 65536

static const struct pwi_log quiet = {.node = "test"};
static struct pwi_sim_disk *disk;
static struct pwi_files *files;

static int begin(void **state) {
  struct pwi_sim_disk_host host = {.seed = 1, .stream = 1};
  (void)state;
  if (pwi_sim_disk_create(&host, &disk)) return -1;
  files = pwi_sim_disk_files(disk);
  return 0;
}

static int end(void **state) {
  (void)state;
  pwi_sim_disk_destroy(disk);
  return 0;
}

/* --- the file's bytes ----------------------------------------------------------------------------------- */

struct image {
  size_t size;
  uint8_t bytes[FILE_ROOM];
};

static void read_image(struct image *image) {
  struct pwi_file *file;
  assert_int_equal(pwi_files_open(files, NAME, PWI_OPEN_READ, &file), PAWL_OK);
  assert_int_equal(pwi_file_read(file, 0, image->bytes, sizeof image->bytes, &image->size), PAWL_OK);
  assert_true(image->size < FILE_ROOM);
  pwi_file_close(file);
}

static void write_image(const struct image *image) {
  struct pwi_file *file;
  unsigned how = PWI_OPEN_WRITE | PWI_OPEN_CREATE | PWI_OPEN_TRUNCATE;
  assert_int_equal(pwi_files_open(files, NAME, how, &file), PAWL_OK);
  if (image->size) assert_int_equal(pwi_file_write(file, 0, image->bytes, image->size), PAWL_OK);
  assert_int_equal(pwi_file_sync(file), PAWL_OK);
  pwi_file_close(file);
}

static pawl_status try_open(struct pwi_journal **journal) {
  return pwi_journal_file_open(files, NAME, &quiet, journal);
}

static struct pwi_journal *open_journal(void) {
  struct pwi_journal *journal = NULL;
  assert_int_equal(try_open(&journal), PAWL_OK);
  return journal;
}

static void close_journal(struct pwi_journal *journal) { journal->ops->destroy(journal); }

/* Opening fails with this status, no record is read, and the file is not changed. */
static void expect_refused(const struct image *image, pawl_status wanted) {
  struct pwi_journal *journal = NULL;
  static struct image after;
  write_image(image);
  assert_int_equal(try_open(&journal), wanted);
  assert_null(journal);
  read_image(&after);
  assert_int_equal(after.size, image->size);
  assert_memory_equal(after.bytes, image->bytes, image->size);
}

/* The journal opens, has exactly the first `count` records, and accepts further ones. The next one may be shorter than
 * the one that is unfinished. */
static void expect_kept(const struct image *image, size_t count) {
  struct listed listed;
  write_image(image);
  struct pwi_journal *journal = open_journal();
  assert_int_equal(list(journal, &listed), PAWL_OK);
  assert_int_equal(listed.count, count);
  for (size_t i = 0; i < count; i++) assert_int_equal(listed.numbers[i], i + 1);
  assert_true(hand_over(journal, 1, false));
  close_journal(journal);
  journal = open_journal();
  assert_int_equal(list(journal, &listed), PAWL_OK);
  assert_int_equal(listed.count, count + 1);
  close_journal(journal);
}

/* A log of records 1 to `count`, and where each ends. */
static void make_log(size_t count, struct image *image, size_t ends[RECORDS_MAX + 1]) {
  struct pwi_journal *journal = open_journal();
  ends[0] = journal->ops->size(journal);
  for (size_t i = 1; i <= count; i++) {
    assert_true(hand_over(journal, i, false));
    ends[i] = journal->ops->size(journal);
  }
  close_journal(journal);
  read_image(image);
  assert_int_equal(image->size, ends[count]);
}

/* --- writing and reading -------------------------------------------------------------------------------- */

static void test_records_come_back_in_order(void **state) {
  struct listed listed;
  (void)state;
  struct pwi_journal *journal = open_journal();
  assert_int_equal(list(journal, &listed), PAWL_OK);
  assert_int_equal(listed.count, 0);
  for (uint64_t round = 0; round < 4; round++) {
    for (uint64_t i = 1; i <= 6; i++) assert_true(hand_over(journal, 6 * round + i, false));
    close_journal(journal);
    journal = open_journal();
    assert_int_equal(list(journal, &listed), PAWL_OK);
    assert_int_equal(listed.count, 6 * (round + 1));
    for (size_t i = 0; i < listed.count; i++) assert_int_equal(listed.numbers[i], i + 1);
  }
  close_journal(journal);
}

static void test_one_record_replaces_all(void **state) {
  struct listed listed;
  (void)state;
  struct pwi_journal *journal = open_journal();
  for (uint64_t i = 1; i <= 9; i++) assert_true(hand_over(journal, i, false));
  uint64_t before = journal->ops->size(journal);
  assert_true(hand_over(journal, 32, true));
  assert_true(journal->ops->size(journal) < before);
  assert_true(hand_over(journal, 33, false));
  for (int round = 0; round < 2; round++) {
    assert_int_equal(list(journal, &listed), PAWL_OK);
    assert_int_equal(listed.count, 2);
    assert_int_equal(listed.numbers[0], 32);
    assert_int_equal(listed.numbers[1], 33);
    close_journal(journal);
    journal = open_journal();
  }
  close_journal(journal);
}

static void test_an_open_log_cannot_be_opened_again(void **state) {
  struct pwi_journal *first = open_journal(), *second = NULL;
  (void)state;
  assert_int_equal(try_open(&second), PAWL_EXISTS);
  assert_true(hand_over(first, 1, false));
  assert_true(hand_over(first, 2, true)); /* also when the file is another one */
  assert_int_equal(try_open(&second), PAWL_EXISTS);
  assert_null(second);
  close_journal(first);
  close_journal(open_journal());
}

static pawl_status has_enough(void *context, const void *record, size_t size) {
  (void)record, (void)size;
  return ++*(unsigned *)context == 2 ? PAWL_TRUNCATED : PAWL_OK;
}

static void test_a_visitor_that_has_enough_ends_the_reading(void **state) {
  struct pwi_journal *journal = open_journal();
  unsigned visits = 0;
  (void)state;
  for (uint64_t i = 1; i <= 4; i++) assert_true(hand_over(journal, i, false));
  assert_int_equal(journal->ops->replay(journal, has_enough, &visits), PAWL_TRUNCATED);
  assert_int_equal(visits, 2);
  close_journal(journal);
}

/* --- unfinished ----------------------------------------------------------------------------------------- */

static void test_a_log_cut_anywhere_keeps_the_records_that_are_whole(void **state) {
  static struct image whole, cut;
  size_t ends[RECORDS_MAX + 1], kept = 0;
  (void)state;
  make_log(6, &whole, ends);
  for (size_t size = 0; size <= whole.size; size++) {
    cut = whole;
    cut.size = size;
    while (kept < 6 && ends[kept + 1] <= size) kept++;
    if (size < PWI_JOURNAL_HEAD_SIZE)
      expect_refused(&cut, PAWL_CORRUPT);
    else
      expect_kept(&cut, kept);
  }
}

/* The first `base` bytes were on the disk before the file got its name. */
static void test_a_snapshot_that_replaces_the_records_is_never_incomplete(void **state) {
  static struct image whole, cut;
  (void)state;
  struct pwi_journal *journal = open_journal();
  assert_true(hand_over(journal, 1, false));
  assert_true(hand_over(journal, 1, true));
  close_journal(journal);
  read_image(&whole);
  for (size_t size = 0; size < whole.size; size++) {
    cut = whole;
    cut.size = size;
    expect_refused(&cut, PAWL_CORRUPT);
  }
}

/* A file may have grown before its bytes were written. */
static void test_an_end_that_reads_as_zeros_is_unfinished(void **state) {
  static struct image whole, torn;
  size_t ends[RECORDS_MAX + 1];
  (void)state;
  make_log(4, &whole, ends);
  for (size_t from = ends[3]; from < ends[4]; from++) {
    torn = whole;
    memset(torn.bytes + from, 0, whole.size - from);
    expect_kept(&torn, 3);
  }
  for (size_t more = 1; more < 6000; more += more < 80 ? 1 : 777) {
    torn = whole;
    memset(torn.bytes + torn.size, 0, more);
    torn.size += more;
    expect_kept(&torn, 4);
  }
}

/* The head of a large record is written last. The rest has no meaning without it. */
static void test_a_large_record_without_its_head_is_unfinished(void **state) {
  static struct image whole, torn;
  size_t ends[RECORDS_MAX + 1];
  struct pwi_random random;
  (void)state;
  pwi_random_init(&random, 3, 0);
  make_log(5, &whole, ends);
  assert_true(ends[5] - ends[4] > 4096);
  for (size_t head = 0; head < PWI_JOURNAL_RECORD_HEAD; head++) {
    torn = whole;
    memset(torn.bytes + ends[4] + head, 0, PWI_JOURNAL_RECORD_HEAD - head);
    expect_kept(&torn, 4);
    size_t page = (size_t)pwi_random_below(&random, ends[5] - ends[4] - 600) + ends[4] + PWI_JOURNAL_RECORD_HEAD;
    memset(torn.bytes + page, 0, 512);
    expect_kept(&torn, 4);
  }
}

/* --- damaged -------------------------------------------------------------------------------------------- */

static void expect_flip_found(struct image *image, uint64_t bit) {
  image->bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
  expect_refused(image, PAWL_CORRUPT);
  image->bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
}

static void test_every_single_bit_of_a_small_log_is_guarded(void **state) {
  static struct image image;
  size_t ends[RECORDS_MAX + 1];
  (void)state;
  make_log(4, &image, ends);
  for (uint64_t bit = 0; bit < image.size * 8; bit++) expect_flip_found(&image, bit);
  expect_kept(&image, 4);
}

static void test_a_hundred_thousand_flipped_bits_are_all_found(void **state) {
  static struct image image;
  size_t ends[RECORDS_MAX + 1];
  struct pwi_random random;
  uint64_t seed = 20240, flips = 0;
  (void)state;
  pwi_random_init(&random, seed, 0);
  print_message("seed %llu\n", (unsigned long long)seed);
  for (size_t shape = 0; shape < 4; shape++) {
    pawl_status ignored = pwi_files_remove(files, NAME);
    (void)ignored;
    make_log(shape == 0 ? 3 : shape == 1 ? 5 : 7, &image, ends); /* the last of five is a large one */
    if (shape == 2) {                                            /* one that begins with what replaced
                                                                    others */
      struct pwi_journal *journal = open_journal();
      assert_true(hand_over(journal, 32, true));
      assert_true(hand_over(journal, 33, false));
      close_journal(journal);
      read_image(&image);
    }
    for (int i = 0; i < 25000; i++, flips++) expect_flip_found(&image, pwi_random_below(&random, image.size * 8));
  }
  assert_int_equal(flips, 100000);
}

static void test_a_head_of_zeros_before_other_records_is_damage(void **state) {
  static struct image whole, damaged;
  size_t ends[RECORDS_MAX + 1];
  (void)state;
  make_log(6, &whole, ends);
  for (size_t i = 0; i < 5; i++) {
    damaged = whole;
    memset(damaged.bytes + ends[i], 0, PWI_JOURNAL_RECORD_HEAD);
    expect_refused(&damaged, PAWL_CORRUPT);
    damaged = whole; /* and a record whose end is zero, where the file does not end */
    memset(damaged.bytes + ends[i + 1] - 8, 0, 8);
    expect_refused(&damaged, PAWL_CORRUPT);
  }
}

static void test_records_that_change_places_are_found(void **state) {
  static struct image whole, swapped;
  size_t ends[RECORDS_MAX + 1];
  (void)state;
  make_log(4, &whole, ends);
  for (size_t i = 0; i < 3; i++) {
    size_t first = ends[i + 1] - ends[i], second = ends[i + 2] - ends[i + 1];
    swapped = whole;
    memcpy(swapped.bytes + ends[i], whole.bytes + ends[i + 1], second);
    memcpy(swapped.bytes + ends[i] + second, whole.bytes + ends[i], first);
    expect_refused(&swapped, PAWL_CORRUPT);
    swapped = whole; /* one left out */
    memmove(swapped.bytes + ends[i], whole.bytes + ends[i + 1], whole.size - ends[i + 1]);
    swapped.size -= first;
    expect_refused(&swapped, PAWL_CORRUPT);
  }
}

/* The same number at the same place, but of another history. */
static void test_a_record_of_another_log_does_not_fit(void **state) {
  static struct image ours, theirs, mixed;
  size_t ends[RECORDS_MAX + 1];
  (void)state;
  struct pwi_journal *journal = open_journal();
  assert_true(hand_over(journal, 11, false));
  assert_true(hand_over(journal, 2, false));
  close_journal(journal);
  read_image(&theirs);
  assert_int_equal(pwi_files_remove(files, NAME), PAWL_OK);
  make_log(2, &ours, ends);
  uint8_t bytes[RECORD_ROOM];
  size_t last = PWI_JOURNAL_RECORD_HEAD + record_bytes(2, bytes) + 8;
  mixed = ours;
  memcpy(mixed.bytes + ends[1], theirs.bytes + theirs.size - last, last);
  expect_refused(&mixed, PAWL_CORRUPT);
}

static void test_a_file_that_is_no_log_is_left_alone(void **state) {
  static struct image image;
  struct pwi_random random;
  (void)state;
  image = (struct image){.size = 0};
  expect_refused(&image, PAWL_CORRUPT);
  static const char notes[] = "# notes\nbuy milk, and this line is longer than a head\n";
  memcpy(image.bytes, notes, sizeof notes);
  image.size = sizeof notes;
  expect_refused(&image, PAWL_CORRUPT);
  image = (struct image){.size = 5000};
  expect_refused(&image, PAWL_CORRUPT);
  pwi_random_init(&random, 9, 0);
  for (size_t i = 0; i < image.size; i++) image.bytes[i] = (uint8_t)pwi_random_below(&random, 256);
  expect_refused(&image, PAWL_CORRUPT);
  assert_int_equal(pwi_files_remove(files, NAME), PAWL_OK);
  assert_int_equal(pwi_files_make_directory(files, NAME), PAWL_OK);
  struct pwi_journal *journal = NULL;
  assert_int_equal(try_open(&journal), PAWL_INVALID);
  assert_null(journal);
}

static void test_a_log_of_another_version_is_told_from_a_damaged_one(void **state) {
  static struct image image;
  size_t ends[RECORDS_MAX + 1];
  (void)state;
  make_log(1, &image, ends);
  pwi_put_u32(image.bytes + 8, 2);
  expect_refused(&image, PAWL_CORRUPT);
  pwi_put_u64(image.bytes + 32, pwi_hash(image.bytes, 32, 0) | UINT64_C(3) << 56);
  expect_refused(&image, PAWL_UNSUPPORTED);
}

/* --- memory --------------------------------------------------------------------------------------------- */

static void test_without_memory_a_log_is_not_opened_and_stays_whole(void **state) {
  static struct image image, after;
  size_t ends[RECORDS_MAX + 1];
  int failed = 1;
  (void)state;
  make_log(5, &image, ends);
  for (uint64_t n = 0; failed; n++) {
    struct pwi_journal *journal = NULL;
    pwi_memory_fail_after(n);
    pawl_status status = try_open(&journal);
    failed = pwi_memory_fail_cancel();
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    if (journal) close_journal(journal);
    read_image(&after);
    assert_int_equal(after.size, image.size);
    assert_memory_equal(after.bytes, image.bytes, image.size);
  }
}

/* An append without memory is the last; a replacement without memory changes nothing. */
static void test_without_memory_nothing_is_half_written(void **state) {
  static struct image image;
  size_t ends[RECORDS_MAX + 1];
  (void)state;
  make_log(2, &image, ends);
  for (int replaces = 0; replaces < 2; replaces++) {
    int failed = 1;
    for (uint64_t n = 0; failed; n++) {
      struct listed listed;
      write_image(&image);
      struct pwi_journal *journal = open_journal();
      assert_int_equal(list(journal, &listed), PAWL_OK);
      pwi_memory_fail_after(n);
      bool safe = hand_over(journal, 3, replaces);
      failed = pwi_memory_fail_cancel();
      bool after = hand_over(journal, 4, false);
      assert_true(safe || !after);
      close_journal(journal);
      journal = open_journal();
      assert_int_equal(list(journal, &listed), PAWL_OK);
      assert_true(listed.count > 0);
      if (after) assert_int_equal(listed.numbers[listed.count - 1], 4);
      close_journal(journal);
    }
  }
}

/* --- a real directory ----------------------------------------------------------------------------------- */

static void test_it_works_in_a_real_directory(void **state) {
  char root[200];
  const char *where = getenv("TMPDIR");
  struct pwi_journal *journal = NULL, *second = NULL;
  struct listed listed;
  (void)state;
  snprintf(root, sizeof root, "%s/pawl-journal-XXXXXX", where ? where : "/tmp");
  assert_non_null(mkdtemp(root));
  struct pwi_files *simulated = files;
  assert_int_equal(pwi_files_posix_open(root, &files), PAWL_OK);
  for (uint64_t round = 0; round < 3; round++) {
    journal = open_journal();
    assert_int_equal(try_open(&second), PAWL_EXISTS);
    assert_int_equal(list(journal, &listed), PAWL_OK);
    assert_int_equal(listed.count, 5 * round);
    for (uint64_t i = 1; i <= 5; i++) assert_true(hand_over(journal, 5 * round + i, false));
    close_journal(journal);
  }
  static struct image image;
  read_image(&image);
  expect_flip_found(&image, 8 * 1000 + 3);
  image.size -= 3;
  expect_kept(&image, 14);
  journal = open_journal();
  assert_true(hand_over(journal, 40, true));
  close_journal(journal);
  journal = open_journal();
  assert_int_equal(list(journal, &listed), PAWL_OK);
  assert_int_equal(listed.count, 1);
  close_journal(journal);
  struct pwi_names names;
  assert_int_equal(pwi_files_list(files, ".", &names), PAWL_OK);
  for (size_t i = 0; i < names.count; i++) assert_int_equal(pwi_files_remove(files, names.items[i]), PAWL_OK);
  assert_int_equal(names.count, 2); /* the journal, and the lock file */
  pwi_names_fini(&names);
  pwi_files_posix_close(files);
  files = simulated;
  rmdir(root);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TEST(test_records_come_back_in_order),
      TEST(test_one_record_replaces_all),
      TEST(test_an_open_log_cannot_be_opened_again),
      TEST(test_a_visitor_that_has_enough_ends_the_reading),
      TEST(test_a_log_cut_anywhere_keeps_the_records_that_are_whole),
      TEST(test_a_snapshot_that_replaces_the_records_is_never_incomplete),
      TEST(test_an_end_that_reads_as_zeros_is_unfinished),
      TEST(test_a_large_record_without_its_head_is_unfinished),
      TEST(test_every_single_bit_of_a_small_log_is_guarded),
      TEST(test_a_hundred_thousand_flipped_bits_are_all_found),
      TEST(test_a_head_of_zeros_before_other_records_is_damage),
      TEST(test_records_that_change_places_are_found),
      TEST(test_a_record_of_another_log_does_not_fit),
      TEST(test_a_file_that_is_no_log_is_left_alone),
      TEST(test_a_log_of_another_version_is_told_from_a_damaged_one),
      TEST(test_without_memory_a_log_is_not_opened_and_stays_whole),
      TEST(test_without_memory_nothing_is_half_written),
      TEST(test_it_works_in_a_real_directory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
