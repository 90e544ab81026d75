
#include <locale.h>

#include "base/random.h"
#include "base/testing.h"
#include "wire/filters.h"

#define SEED 11

static struct pwi_filter_list parse(const char *text) {
  struct pwi_filter_list list;
  char problem[PWI_FILTERS_PROBLEM_MAX] = "";
  pawl_status status = pwi_filter_list_parse(text, problem, sizeof problem, &list);
  if (status) print_message("%s: %s\n", text, problem);
  assert_int_equal(status, PAWL_OK);
  return list;
}

static void assert_printed(const char *text, const char *printed) {
  struct pwi_filter_list list = parse(text), again;
  char out[PAWL_FILTERS_TEXT_MAX];
  pwi_filter_list_print(&list, out, sizeof out);
  assert_string_equal(out, printed);
  again = parse(out);
  assert_true(pwi_filter_list_equal(&list, &again));
}

static void test_a_chain_is_parsed_in_order(void **state) {
  (void)state;
  struct pwi_filter_list list = parse("significant(threshold=0.01) | skip(rate=0.1) | half | zeros | compress");
  assert_int_equal(list.count, 5);
  assert_ptr_equal(list.items[0].type, &pwi_filter_significant);
  assert_true(list.items[0].parameters[0] == 0.01);
  assert_true(list.items[0].parameters[1] == 0x1p22);
  assert_int_equal(list.items[0].on, PAWL_ON_PUSH);
  assert_ptr_equal(list.items[1].type, &pwi_filter_skip);
  assert_ptr_equal(list.items[2].type, &pwi_filter_half);
  assert_int_equal(list.items[2].on, PAWL_ON_BOTH);
  assert_ptr_equal(list.items[3].type, &pwi_filter_zeros);
  assert_ptr_equal(list.items[4].type, &pwi_filter_compress);
}

static void test_printing_gives_back_what_was_said(void **state) {
  (void)state;
  assert_printed("none", "none");
  assert_printed("", "none");
  assert_printed(" \t", "none");
  assert_printed("half", "half");
  assert_printed("half()", "half");
  assert_printed("half(type=f16,round=random,on=both)", "half");
  assert_printed("half ( round = nearest , type=bf16 )|zeros", "half(type=bf16, round=nearest) | zeros");
  assert_printed("significant(threshold=1e-3, rests=1000)", "significant(threshold=0.001, rests=1000)");
  assert_printed("skip(rate=.25,rest=scale)", "skip(rate=0.25, rest=scale)");
  assert_printed("fixed(bits=4, on=pull) | compress(with=zstd, on=push)",
                 "fixed(bits=4, on=pull) | compress(with=zstd, on=push)");
  assert_printed("kkt(lambda=0.1,delta=0)", "kkt(lambda=0.1)");
}

static void test_any_number_comes_back(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 0);
  print_message("seed %d\n", SEED);
  for (int i = 0; i < 2000; i++) {
    struct pwi_filter_list list = parse("significant(threshold=1)"), again;
    char text[PAWL_FILTERS_TEXT_MAX];
    uint64_t bits = pwi_random_u64(&random) >> 2; /* positive, and below 2 */
    memcpy(&list.items[0].parameters[0], &bits, sizeof bits);
    pwi_filter_list_print(&list, text, sizeof text);
    again = parse(text);
    assert_true(pwi_filter_list_equal(&list, &again));
  }
}

/* Where decimals are written with a comma, the texts are still the same. */
static void test_the_language_of_the_program_plays_no_part(void **state) {
  (void)state;
  static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"};
  bool found = false;
  for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) found = setlocale(LC_ALL, names[i]) != NULL;
  if (!found) skip();
  assert_printed("skip(rate=0.125)", "skip(rate=0.125)");
  setlocale(LC_ALL, "C");
}

static const struct {
  const char *text;
  pawl_status status;
  const char *problem;
} mistakes[] = {
    {"halff", PAWL_UNSUPPORTED, "filter 1: unknown filter halff"},
    {"half | none", PAWL_UNSUPPORTED, "filter 2: unknown filter none"},
    {"half |", PAWL_INVALID, "filter 2: expected the name of a filter"},
    {"| half", PAWL_INVALID, "filter 1: expected the name of a filter"},
    {"half zeros", PAWL_INVALID, "filter 2: expected | before zeros"},
    {"half(", PAWL_INVALID, "filter 1, half: has no parameter ; it has type, round, on"},
    {"half(type=f16", PAWL_INVALID, "filter 1, half: expected )"},
    {"half(type=f16))", PAWL_INVALID, "filter 2: expected | before )"},
    {"half(type)", PAWL_INVALID, "filter 1, half: type has no value"},
    {"half(type=)", PAWL_INVALID, "filter 1, half: type is , but must be one of f16|bf16"},
    {"half(type=f32)", PAWL_INVALID, "filter 1, half: type is f32, but must be one of f16|bf16"},
    {"half(type=f1)", PAWL_INVALID, "filter 1, half: type is f1, but must be one of f16|bf16"},
    {"half(type=f16, type=f16)", PAWL_INVALID, "filter 1, half: type is given twice"},
    {"zeros | skip(ratte=0.1)", PAWL_INVALID, "filter 2, skip: has no parameter ratte; it has rate, rest, rests, on"},
    {"skip", PAWL_INVALID, "filter 1, skip: rate is missing"},
    {"skip(rate=1.5)", PAWL_INVALID, "filter 1, skip: rate is 1.5, but must be a number from 0 to 0.999"},
    {"skip(rate=-1)", PAWL_INVALID, "filter 1, skip: rate is -1, but must be a number from 0 to 0.999"},
    {"skip(rate=nan)", PAWL_INVALID, "filter 1, skip: rate is nan, but must be a number from 0 to 0.999"},
    {"skip(rate=0x1p-3)", PAWL_INVALID, "filter 1, skip: rate is 0x1p-3, but must be a number from 0 to 0.999"},
    {"skip(rate=0,1)", PAWL_INVALID, "filter 1, skip: has no parameter 1; it has rate, rest, rests, on"},
    {"skip(rate=1e999)", PAWL_INVALID, "filter 1, skip: rate is 1e999, but must be a number from 0 to 0.999"},
    {"fixed(bits=7.5)", PAWL_INVALID, "filter 1, fixed: bits is 7.5, but must be a whole number from 2 to 16"},
    {"skip(rate=0.5, on=pull)", PAWL_UNSUPPORTED, "filter 1, skip: works on push only"},
    {"half(on=never)", PAWL_INVALID, "filter 1, half: on is never, but must be one of push|pull|both"},
    {"zeros | half", PAWL_INVALID, "filter 2, half: follows zeros, but encodings must come last"},
    {"half|half|half|half|half|half|half|half|half", PAWL_TOO_LARGE, "filter 9: a chain has at most 8 filters"},
};

static void test_every_mistake_is_named(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    char problem[PWI_FILTERS_PROBLEM_MAX] = "";
    struct pwi_filter_list list = {.count = 99};
    print_message("%s\n", mistakes[i].text);
    assert_int_equal(pwi_filter_list_parse(mistakes[i].text, problem, sizeof problem, &list), mistakes[i].status);
    assert_string_equal(problem, mistakes[i].problem);
    assert_int_equal(list.count, 99);
    assert_int_equal(pwi_filter_list_parse(mistakes[i].text, NULL, 0, &list), mistakes[i].status);
  }
}

static void test_long_words_are_cut_and_short_buffers_kept(void **state) {
  (void)state;
  char text[5000], problem[8], guard = 'g';
  struct pwi_filter_list list;
  memset(text, 'a', sizeof text - 1);
  text[sizeof text - 1] = 0;
  assert_int_equal(pwi_filter_list_parse(text, problem, sizeof problem, &list), PAWL_UNSUPPORTED);
  assert_int_equal(strlen(problem), sizeof problem - 1);
  list = parse("half(type=bf16) | zeros");
  for (size_t size = 1; size < 30; size++) {
    char room[32];
    memset(room, guard, sizeof room);
    pwi_filter_list_print(&list, room, size);
    assert_true(strlen(room) < size && room[size] == guard);
  }
}

static void test_the_longest_text_fits(void **state) {
  (void)state;
  struct pwi_filter_list list = {.count = PAWL_FILTERS_MAX};
  char text[2 * PAWL_FILTERS_TEXT_MAX];
  struct pwi_filter_list one = parse("significant(threshold=2.2250738585072014e-308, rests=1099511627775)");
  for (size_t i = 0; i < list.count; i++) list.items[i] = one.items[0];
  pwi_filter_list_print(&list, text, sizeof text);
  assert_true(strlen(text) < PAWL_FILTERS_TEXT_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_chain_is_parsed_in_order),
      cmocka_unit_test(test_printing_gives_back_what_was_said),
      cmocka_unit_test(test_any_number_comes_back),
      cmocka_unit_test(test_the_language_of_the_program_plays_no_part),
      cmocka_unit_test(test_every_mistake_is_named),
      cmocka_unit_test(test_long_words_are_cut_and_short_buffers_kept),
      cmocka_unit_test(test_the_longest_text_fits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
