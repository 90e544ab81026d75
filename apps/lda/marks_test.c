/* Marks: a piece's bit follows its version, whatever the bits beside it do, and no count is touched. */
#include "base/testing.h"
#include "apps/lda/marks.h"
#include "apps/lda/random.h"

enum { TOPICS = 7, PIECES = 100, COLUMNS = 4, WIDTH = TOPICS + COLUMNS };

/* As servers add: with wrap-around. */
static void add(int32_t *row, const int32_t *change) {
  for (size_t i = 0; i < WIDTH; i++) row[i] = (int32_t)((uint32_t)row[i] + (uint32_t)change[i]);
}

static void flip(int32_t *row, uint64_t piece, uint64_t version) {
  int32_t change[WIDTH] = {0};
  lda_mark_flip(change, TOPICS, piece, version);
  add(row, change);
}

static void check(const int32_t *row, const uint64_t *versions) {
  for (uint32_t k = 0; k < TOPICS; k++) assert_int_equal(row[k], (int32_t)k + 1);
  for (uint64_t p = 0; p < PIECES; p++) {
    assert_int_equal(lda_mark_of(row, TOPICS, p), versions[p] & 1);
    assert_false(lda_mark_is_ahead(row, TOPICS, p, versions[p]));
    assert_true(lda_mark_is_ahead(row, TOPICS, p, versions[p] + 1));
  }
}

static void begin(int32_t *row, uint64_t *versions) {
  memset(row, 0, WIDTH * sizeof *row);
  memset(versions, 0, PIECES * sizeof *versions);
  for (int32_t k = 0; k < TOPICS; k++) row[k] = k + 1;
}

static void test_columns_hold_32_pieces_each(void **state) {
  (void)state;
  assert_int_equal(lda_marks_columns(0), 0);
  assert_int_equal(lda_marks_columns(1), 1);
  assert_int_equal(lda_marks_columns(32), 1);
  assert_int_equal(lda_marks_columns(33), 2);
  assert_int_equal(lda_marks_columns(64), 2);
  assert_int_equal(lda_marks_columns(PIECES), COLUMNS);
  assert_int_equal(lda_marks_columns(UINT32_MAX), 1 << 27);
}

static void test_each_bit_alone_goes_up_and_down(void **state) {
  (void)state;
  int32_t row[WIDTH];
  uint64_t versions[PIECES];
  begin(row, versions);
  for (uint64_t p = 0; p < PIECES; p++)
    for (int turn = 0; turn < 5; turn++) { /* ends set, so that the next has a neighbour that is 1 */
      flip(row, p, versions[p]++);
      check(row, versions);
    }
}

static void test_bits_at_the_ends_of_columns_do_not_reach_their_neighbours(void **state) {
  (void)state;
  static const uint64_t ends[] = {0, 31, 32, 63, 64, 95, 96, 99};
  int32_t row[WIDTH];
  uint64_t versions[PIECES];
  for (int others = 0; others < 2; others++) {
    begin(row, versions);
    for (uint64_t p = 0; p < PIECES && others; p++) flip(row, p, versions[p]++);
    for (int turn = 0; turn < 1000; turn++) {
      uint64_t p = ends[(size_t)turn * 5 % 8];
      flip(row, p, versions[p]++);
      check(row, versions);
    }
  }
}

static void test_many_pieces_change_in_one_push(void **state) {
  (void)state;
  struct lda_random random = {1};
  int32_t row[WIDTH];
  uint64_t versions[PIECES];
  begin(row, versions);
  for (int turn = 0; turn < 2000; turn++) {
    int32_t change[WIDTH] = {0};
    for (uint64_t p = 0; p < PIECES; p++)
      if (turn % 10 == 0 || lda_draw(&random) % 3 == 0) lda_mark_flip(change, TOPICS, p, versions[p]++);
    add(row, change);
    check(row, versions);
  }
}

static void test_versions_beyond_32_bits_are_like_others(void **state) {
  (void)state;
  int32_t row[WIDTH];
  uint64_t versions[PIECES];
  begin(row, versions);
  versions[31] = UINT64_C(0xfffffffe);
  versions[63] = UINT64_MAX - 1;
  for (int turn = 0; turn < 6; turn++) { /* the second goes around: parity stays what it is */
    flip(row, 31, versions[31]++);
    flip(row, 63, versions[63]++);
    check(row, versions);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_columns_hold_32_pieces_each),
      cmocka_unit_test(test_each_bit_alone_goes_up_and_down),
      cmocka_unit_test(test_bits_at_the_ends_of_columns_do_not_reach_their_neighbours),
      cmocka_unit_test(test_many_pieces_change_in_one_push),
      cmocka_unit_test(test_versions_beyond_32_bits_are_like_others),
  };
  return cmocka_run_group_tests_name("apps.lda.marks", tests, NULL, NULL);
}
