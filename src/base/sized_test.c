/* Option structs of programs that were built with an older or a newer pawl. */
#include "base/sized.h"

#include "base/testing.h"

struct older {
  size_t struct_size;
  int32_t first, second;
};

struct newer {
  size_t struct_size;
  int32_t first, second;
  int64_t third;
};

static const struct older older_defaults = {.first = 1, .second = 2};
static const struct newer newer_defaults = {.first = 1, .second = 2, .third = 3};

static void test_an_older_program_gets_defaults_for_unknown_fields(void **state) {
  struct older theirs[2];
  struct newer is = newer_defaults;
  (void)state;
  memset(theirs, 0xa5, sizeof theirs);
  pwi_sized_init(theirs, sizeof *theirs, &newer_defaults, sizeof newer_defaults);
  assert_true(theirs->struct_size == sizeof *theirs && theirs->first == 1 && theirs->second == 2);
  assert_int_equal(*(unsigned char *)&theirs[1], 0xa5); /* nothing is written beyond its struct */
  theirs->second = 7;
  assert_true(pwi_sized_read(theirs, &is, sizeof is));
  assert_true(is.struct_size == sizeof is && is.first == 1 && is.second == 7 && is.third == 3);
}

static void test_a_newer_program_may_set_only_known_fields(void **state) {
  struct newer theirs;
  struct older is = older_defaults;
  (void)state;
  pwi_sized_init(&theirs, sizeof theirs, &older_defaults, sizeof older_defaults);
  assert_true(theirs.struct_size == sizeof theirs && theirs.second == 2 && theirs.third == 0);
  theirs.first = 5;
  assert_true(pwi_sized_read(&theirs, &is, sizeof is));
  assert_true(is.struct_size == sizeof is && is.first == 5 && is.second == 2);
  theirs.third = 1;
  theirs.first = 6;
  assert_false(pwi_sized_read(&theirs, &is, sizeof is));
  assert_int_equal(is.first, 5);
}

static void test_a_struct_that_was_not_initialised_is_refused(void **state) {
  struct older theirs = {0}, is = older_defaults;
  (void)state;
  assert_false(pwi_sized_read(&theirs, &is, sizeof is));
  memset(&theirs, 0xff, sizeof theirs);
  assert_false(pwi_sized_read(&theirs, &is, sizeof is));
  assert_int_equal(is.first, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_older_program_gets_defaults_for_unknown_fields),
      cmocka_unit_test(test_a_newer_program_may_set_only_known_fields),
      cmocka_unit_test(test_a_struct_that_was_not_initialised_is_refused),
  };
  return cmocka_run_group_tests_name("base.sized", tests, NULL, NULL);
}
