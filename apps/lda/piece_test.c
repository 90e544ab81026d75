/* Pieces as files: versions, and workers that were taken for dead and go on writing. */
#include <dirent.h>
#include <unistd.h>

#include "base/testing.h"
#include "apps/lda/piece.h"
#include "apps/lda/sample.h"

enum { TOPICS = 5, TOKENS = 7 };

static char directory[64];
static char error[PAWL_LDA_TEXT];

static void must(pawl_status status) {
  if (status) fail_msg("%s: %s", pawl_status_name(status), error);
}

static int make_directory(void **state) {
  (void)state;
  snprintf(directory, sizeof directory, "/tmp/lda_piece_XXXXXX");
  return mkdtemp(directory) ? 0 : -1;
}

static size_t count_files(bool removes) {
  size_t count = 0;
  DIR *list = opendir(directory);
  assert_non_null(list);
  for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
    char path[400];
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
    count++;
    if (removes) unlink(path);
  }
  closedir(list);
  return count;
}

static int remove_directory(void **state) {
  (void)state;
  (void)count_files(true);
  return rmdir(directory);
}

/* Two documents of seven tokens of four words. */
static void make(void) {
  static const uint64_t starts[] = {0, 3, 5}, ids[] = {1, 2, 4, 2, 3};
  static const float values[] = {1, 2, 1, 1, 2};
  struct pawl_batch batch = {.rows = 2, .entries = 5, .starts = starts, .ids = ids, .values = values, .max_id = 4};
  must(lda_piece_make(directory, 3, 77, 1, TOPICS, 0, &batch, error));
}

static struct lda_piece open_piece(void) {
  struct lda_piece piece;
  must(lda_piece_open(directory, 3, 77, TOPICS, &piece, error));
  assert_int_equal(piece.tokens, TOKENS);
  return piece;
}

static void write_topics(struct lda_piece *piece, uint32_t topic) {
  must(lda_piece_load(piece, error));
  for (uint32_t i = 0; i < TOKENS; i++) piece->pairs[i] = lda_pair(topic, topic);
  must(lda_piece_write(piece, 0, TOKENS));
}

static void assert_topics(uint64_t version, uint32_t topic) {
  struct lda_piece piece = open_piece();
  assert_int_equal(piece.version, version);
  must(lda_piece_load(&piece, error));
  for (uint32_t i = 0; i < TOKENS; i++) assert_int_equal(lda_topic(piece.pairs[i]), topic);
  lda_piece_close(&piece);
}

static void test_a_version_counts_when_it_is_committed(void **state) {
  (void)state;
  make();
  struct lda_piece piece = open_piece();
  write_topics(&piece, 2);
  assert_topics(0, LDA_NONE);
  must(lda_piece_commit(&piece));
  lda_piece_close(&piece);
  assert_topics(1, 2);
}

static void test_who_was_taken_for_dead_writes_to_a_file_that_nobody_reads(void **state) {
  (void)state;
  make();
  struct lda_piece dead = open_piece();
  write_topics(&dead, 1);
  must(lda_piece_commit(&dead));
  write_topics(&dead, 2); /* not yet counted when it is stopped */
  struct lda_piece heir = open_piece();
  uint32_t next[TOKENS];
  must(lda_piece_renew(&heir, error));
  must(lda_piece_read_next(&heir, 0, TOKENS, next));
  assert_int_equal(lda_topic(next[TOKENS - 1]), 2); /* the copy has both versions */
  write_topics(&heir, 3);
  write_topics(&dead, 4);
  must(lda_piece_commit(&dead));
  assert_topics(1, 1);
  must(lda_piece_commit(&heir));
  assert_topics(2, 3);
  assert_int_equal(count_files(false), 1);
  lda_piece_close(&dead);
  lda_piece_close(&heir);
  assert_topics(2, 3);
}

/* One that was stopped while it read the data makes the file when others have long been at it. */
static void test_a_file_that_is_there_is_not_made_again(void **state) {
  (void)state;
  make();
  struct lda_piece piece = open_piece();
  write_topics(&piece, 2);
  must(lda_piece_commit(&piece));
  lda_piece_close(&piece);
  make();
  assert_topics(1, 2);
  assert_int_equal(count_files(false), 1);
}

/* The run that is resumed has a table of its own, and workers of the one before may still be there. */
static void test_who_worked_for_an_earlier_run_does_not_disturb_the_next(void **state) {
  (void)state;
  make();
  struct lda_piece old = open_piece();
  write_topics(&old, 2);
  must(lda_piece_commit(&old));
  struct lda_piece piece = open_piece();
  must(lda_piece_adopt(&piece, 2, error));
  write_topics(&old, 4);
  must(lda_piece_commit(&old));
  assert_topics(0, LDA_NONE);
  must(lda_piece_load(&piece, error));
  assert_int_equal(lda_proposed(piece.pairs[0]), 2);
  lda_piece_close(&old);
  lda_piece_close(&piece);
}

static void test_a_piece_that_cannot_be_copied_stays_as_it_is(void **state) {
  (void)state;
  make();
  struct lda_piece piece = open_piece(), gone = piece;
  write_topics(&piece, 1);
  snprintf(gone.path, sizeof gone.path, "%s/nowhere/piece", directory);
  assert_int_equal(lda_piece_renew(&gone, error), PAWL_NOT_FOUND);
  assert_int_equal(gone.file, piece.file);
  must(lda_piece_commit(&piece));
  lda_piece_close(&piece);
  assert_topics(1, 1);
}

int main(void) {
#define PIECE_TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
  const struct CMUnitTest tests[] = {
      PIECE_TEST(test_a_version_counts_when_it_is_committed),
      PIECE_TEST(test_who_was_taken_for_dead_writes_to_a_file_that_nobody_reads),
      PIECE_TEST(test_a_file_that_is_there_is_not_made_again),
      PIECE_TEST(test_who_worked_for_an_earlier_run_does_not_disturb_the_next),
      PIECE_TEST(test_a_piece_that_cannot_be_copied_stays_as_it_is),
  };
  return cmocka_run_group_tests_name("apps.lda.piece", tests, NULL, NULL);
}
