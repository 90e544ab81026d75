/* What is taken for a typing error, and what is not. */
#include "base/testing.h"
#include "cli/cli.h"

static void test_distance_counts_the_fewest_changes(void **state) {
  (void)state;
  assert_int_equal(pwi_cli_distance("", ""), 0);
  assert_int_equal(pwi_cli_distance("env", "env"), 0);
  assert_int_equal(pwi_cli_distance("env", ""), 3);
  assert_int_equal(pwi_cli_distance("", "env"), 3);
  assert_int_equal(pwi_cli_distance("bench", "bencg"), 1);
  assert_int_equal(pwi_cli_distance("bench", "benhc"), 1); /* neighbours that were swapped */
  assert_int_equal(pwi_cli_distance("version", "verion"), 1);
  assert_int_equal(pwi_cli_distance("kitten", "sitting"), 3);
}

static void test_distance_is_the_same_both_ways(void **state) {
  static const char *const words[] = {"", "a", "ab", "ba", "bench", "hcneb", "version", "vresion"};
  (void)state;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    for (size_t j = 0; j < sizeof words / sizeof *words; j++)
      assert_int_equal(pwi_cli_distance(words[i], words[j]), pwi_cli_distance(words[j], words[i]));
}

static void test_distance_cuts_off_words_that_are_too_long(void **state) {
  char word[1000];
  (void)state;
  memset(word, 'a', sizeof word);
  word[sizeof word - 1] = '\0';
  assert_int_equal(pwi_cli_distance(word, "aaaa"), PWI_CLI_WORD_MAX - 4);
}

static const char *guess_among(const char *word, const char *const *candidates) {
  struct pwi_cli_guess guess = {.word = word};
  for (; *candidates; candidates++) pwi_cli_guess_offer(&guess, *candidates);
  return guess.best;
}

static void test_guess_is_the_closest_word_or_none(void **state) {
  static const char *const commands[] = {"demo", "env", "version", "key", "bench", "sim", NULL};
  (void)state;
  assert_string_equal(guess_among("bnech", commands), "bench");
  assert_string_equal(guess_among("evn", commands), "env");
  assert_string_equal(guess_among("vers", commands), "version"); /* a beginning */
  assert_string_equal(guess_among("keys", commands), "key");
  assert_null(guess_among("train", commands));
  assert_null(guess_among("x", commands));
  assert_null(guess_among("", commands));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_distance_counts_the_fewest_changes),
      cmocka_unit_test(test_distance_is_the_same_both_ways),
      cmocka_unit_test(test_distance_cuts_off_words_that_are_too_long),
      cmocka_unit_test(test_guess_is_the_closest_word_or_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
