/* What is read of the kernel's files, whatever machine this is. */
#include "base/testing.h"
#include "cli/machine.h"
#include "cli/parts.h"

static void test_chosen_word_stands_in_brackets(void **state) {
  char word[8];
  (void)state;
  pwi_machine_chosen("always [madvise] never", word, sizeof word);
  assert_string_equal(word, "madvise");
  pwi_machine_chosen("no brackets", word, sizeof word);
  assert_string_equal(word, "");
  pwi_machine_chosen("only [one", word, sizeof word);
  assert_string_equal(word, "");
  pwi_machine_chosen("]wrong[", word, sizeof word);
  assert_string_equal(word, "");
  pwi_machine_chosen("[far too long]", word, sizeof word);
  assert_string_equal(word, "far too");
  pwi_machine_chosen("", word, sizeof word);
  assert_string_equal(word, "");
}

static void test_machine_makes_sense(void **state) {
  struct pwi_machine machine;
  (void)state;
  pwi_machine_look(&machine);
  assert_true(machine.cores_usable >= 1 && machine.cores_online >= 1);
  assert_true(machine.memory_available <= machine.memory_total);
  assert_true(machine.files_soft <= machine.files_hard);
  assert_non_null(strstr(machine.kernel, "Linux"));
}

static void test_every_part_but_ucx_has_a_version(void **state) {
  struct pwi_build_part parts[PWI_PARTS];
  (void)state;
  pwi_parts(parts);
  for (size_t i = 0; i < PWI_PARTS; i++)
    if (strcmp(parts[i].name, "ucx") != 0 || PAWL_HAS_UCX) assert_non_null(strchr(parts[i].version, '.'));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_chosen_word_stands_in_brackets),
      cmocka_unit_test(test_machine_makes_sense),
      cmocka_unit_test(test_every_part_but_ucx_has_a_version),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
