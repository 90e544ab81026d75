
#include <math.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "wire/filters.h"

#define SEED 5
#define EXAMPLE "significant(threshold=0.5) | half(type=bf16, on=push) | keys | zeros | compress(with=lz4)"

static struct pwi_filter_list parse(const char *text) {
  struct pwi_filter_list list;
  assert_int_equal(pwi_filter_list_parse(text, NULL, 0, &list), PAWL_OK);
  return list;
}

static struct pwi_writer write_list(const char *text) {
  struct pwi_filter_list list = parse(text);
  struct pwi_writer writer = {0};
  pwi_filter_list_write(&writer, &list);
  assert_int_equal(writer.status, PAWL_OK);
  return writer;
}

/* Decodes from a block of exact size, so that a sanitizer detects overruns. */
static pawl_status read_list(const void *bytes, size_t size, struct pwi_filter_list *list) {
  void *exact = malloc(size ? size : 1);
  if (size) memcpy(exact, bytes, size);
  pawl_status status = pwi_filter_list_read(exact, size, NULL, 0, list);
  free(exact);
  return status;
}

static void test_a_list_comes_back(void **state) {
  (void)state;
  static const char *const texts[] = {"none", "keys", EXAMPLE, "kkt(lambda=2, delta=1)|fixed(bits=3,on=pull)"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct pwi_filter_list list = parse(texts[i]), back;
    struct pwi_writer writer = write_list(texts[i]);
    assert_int_equal(read_list(writer.data, writer.size, &back), PAWL_OK);
    assert_true(pwi_filter_list_equal(&list, &back));
    pwi_writer_fini(&writer);
  }
}

static void test_the_layout_is_what_is_documented(void **state) {
  (void)state;
  static const uint8_t expected[] = {1,   2, 0, 1, 3, 0,   'k', 'k', 't', 2, 6, 0,   'l', 'a', 'm', 'b', 'd',
                                     'a', 0, 0, 0, 0, 0,   0,   0,   64,  5, 0, 'd', 'e', 'l', 't', 'a', 0,
                                     0,   0, 0, 0, 0, 240, 63,  1,   3,   4, 0, 'k', 'e', 'y', 's', 0};
  struct pwi_writer writer = write_list("kkt(lambda=2, delta=1) | keys");
  assert_int_equal(writer.size, sizeof expected);
  assert_memory_equal(writer.data, expected, sizeof expected);
  pwi_writer_fini(&writer);
}

static void test_a_list_cut_short_anywhere_is_refused(void **state) {
  (void)state;
  struct pwi_writer writer = write_list(EXAMPLE);
  for (size_t size = 0; size < writer.size; size++) {
    struct pwi_filter_list list = {.count = 99};
    assert_int_equal(read_list(writer.data, size, &list), PAWL_TRUNCATED);
    assert_int_equal(list.count, 99);
  }
  pwi_write_u8(&writer, 0);
  struct pwi_filter_list list;
  assert_int_equal(read_list(writer.data, writer.size, &list), PAWL_CORRUPT);
  pwi_writer_fini(&writer);
}

static void write_item(struct pwi_writer *writer, uint8_t kind, uint8_t on, const char *name, uint8_t count) {
  pwi_write_u8(writer, kind);
  pwi_write_u8(writer, on);
  pwi_write_text(writer, name);
  pwi_write_u8(writer, count);
}

static void write_parameter(struct pwi_writer *writer, const char *name, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  pwi_write_text(writer, name);
  pwi_write_u64(writer, bits);
}

static void test_an_unknown_encoding_is_left_out(void **state) {
  (void)state;
  struct pwi_writer writer = {0};
  struct pwi_filter_list list, expected = parse("half | zeros");
  pwi_write_u8(&writer, 1);
  pwi_write_u8(&writer, 4);
  write_item(&writer, 0, 3, "half", 2);
  write_parameter(&writer, "type", 0);
  write_parameter(&writer, "round", 0);
  write_item(&writer, 1, 3, "braille", 1);
  write_parameter(&writer, "dots", 6);
  write_item(&writer, 1, 3, "zeros", 0);
  write_item(&writer, 1, 3, "compress", 1); /* known, but with a word to come */
  write_parameter(&writer, "with", 3);
  assert_int_equal(read_list(writer.data, writer.size, &list), PAWL_OK);
  assert_true(pwi_filter_list_equal(&list, &expected));
  pwi_writer_fini(&writer);
}

/* A lossy filter that differs from the local one. */
static void assert_unsupported(uint8_t on, const char *name, const char *parameter, double value) {
  struct pwi_writer writer = {0};
  struct pwi_filter_list list = {.count = 99};
  char problem[PWI_FILTERS_PROBLEM_MAX] = "";
  pwi_write_u8(&writer, 1);
  pwi_write_u8(&writer, 1);
  write_item(&writer, 0, on, name, 2);
  write_parameter(&writer, parameter, value);
  write_parameter(&writer, "round", 0);
  assert_int_equal(pwi_filter_list_read(writer.data, writer.size, problem, sizeof problem, &list), PAWL_UNSUPPORTED);
  assert_int_equal(list.count, 99);
  assert_non_null(strstr(problem, name));
  pwi_writer_fini(&writer);
}

static void test_an_unknown_lossy_filter_is_refused(void **state) {
  (void)state;
  assert_unsupported(3, "dream", "type", 0);
  assert_unsupported(3, "half", "kind", 0);
  assert_unsupported(3, "half", "type", 2);
  assert_unsupported(3, "half", "type", 0.5);
  assert_unsupported(3, "half", "type", NAN);
  assert_unsupported(3, "half", "type", -1);
  assert_unsupported(2, "skip", "rate", 0.5);
  assert_unsupported(3, "zeros", "type", 0); /* not lossy here */
}

static void test_a_direction_that_a_filter_has_not_is_refused(void **state) {
  (void)state;
  static const pawl_status expected[] = {[PAWL_ON_PUSH] = PAWL_OK, PAWL_UNSUPPORTED, PAWL_UNSUPPORTED};
  for (uint8_t on = PAWL_ON_PUSH; on <= PAWL_ON_BOTH; on++) {
    struct pwi_writer writer = {0};
    struct pwi_filter_list list;
    pwi_write_u8(&writer, 1);
    pwi_write_u8(&writer, 1);
    write_item(&writer, 0, on, "kkt", 2);
    write_parameter(&writer, "lambda", 1);
    write_parameter(&writer, "delta", 0);
    assert_int_equal(read_list(writer.data, writer.size, &list), expected[on]);
    pwi_writer_fini(&writer);
  }
}

static void test_another_format_is_not_read(void **state) {
  (void)state;
  struct pwi_filter_list list;
  char problem[PWI_FILTERS_PROBLEM_MAX] = "";
  assert_int_equal(pwi_filter_list_read("\2\0", 2, problem, sizeof problem, &list), PAWL_UNSUPPORTED);
  assert_non_null(strstr(problem, "format 2"));
}

static void assert_corrupt(const char *name, uint8_t kind, uint8_t on, uint8_t count) {
  struct pwi_writer writer = {0};
  struct pwi_filter_list list;
  pwi_write_u8(&writer, 1);
  pwi_write_u8(&writer, 1);
  write_item(&writer, kind, on, name, count);
  for (unsigned i = 0; i < count; i++) write_parameter(&writer, "a", 0);
  assert_int_equal(read_list(writer.data, writer.size, &list), PAWL_CORRUPT);
  pwi_writer_fini(&writer);
}

static void test_impossible_fields_are_corrupt(void **state) {
  (void)state;
  assert_corrupt("keys", 2, 3, 0);
  assert_corrupt("keys", 1, 0, 0);
  assert_corrupt("keys", 1, 4, 0);
  assert_corrupt("keys", 1, 3, 9);
  assert_corrupt("", 1, 3, 0);
  assert_corrupt("two words", 1, 3, 0);
  assert_corrupt("line\nfeed", 1, 3, 0);
  assert_corrupt("a_name_that_is_longer_than_any_name_may_be", 1, 3, 0);
  struct pwi_filter_list list;
  assert_int_equal(read_list("\1\11", 2, &list), PAWL_CORRUPT);
  struct pwi_writer writer = {0};
  pwi_write_u8(&writer, 1);
  pwi_write_u8(&writer, 2);
  write_item(&writer, 1, 3, "keys", 0);
  write_item(&writer, 0, 3, "dream", 0); /* lossy behind an encoding */
  assert_int_equal(read_list(writer.data, writer.size, &list), PAWL_CORRUPT);
  pwi_writer_fini(&writer);
}

static void test_damage_is_harmless(void **state) {
  (void)state;
  struct pwi_random random;
  struct pwi_writer writer = write_list(EXAMPLE);
  pwi_random_init(&random, SEED, 0);
  print_message("seed %d\n", SEED);
  for (size_t round = 0; round < 20000; round++) {
    struct pwi_filter_list list = {.count = 0};
    uint8_t bytes[512];
    memcpy(bytes, writer.data, writer.size);
    for (uint64_t k = pwi_random_below(&random, 4) + 1; k > 0; k--)
      bytes[pwi_random_below(&random, writer.size)] = (uint8_t)pwi_random_u64(&random);
    pawl_status status = read_list(bytes, pwi_random_below(&random, 2) ? writer.size : round % writer.size, &list);
    assert_true(status == PAWL_OK || status == PAWL_TRUNCATED || status == PAWL_CORRUPT || status == PAWL_UNSUPPORTED);
    assert_true(list.count <= PAWL_FILTERS_MAX);
  }
  pwi_writer_fini(&writer);
}

static void assert_agreed(const char *ours, const char *theirs, const char *agreed) {
  struct pwi_filter_list a = parse(ours), b = parse(theirs), here, there;
  char text[PAWL_FILTERS_TEXT_MAX];
  assert_int_equal(pwi_filter_list_agree(&a, &b, NULL, 0, &here), PAWL_OK);
  assert_int_equal(pwi_filter_list_agree(&b, &a, NULL, 0, &there), PAWL_OK);
  assert_true(pwi_filter_list_equal(&here, &there));
  pwi_filter_list_print(&here, text, sizeof text);
  assert_string_equal(text, agreed);
}

static void test_both_sides_come_to_the_same(void **state) {
  (void)state;
  assert_agreed("none", "none", "none");
  assert_agreed("zeros | keys", "keys", "keys");
  assert_agreed("zeros", "compress", "none");
  assert_agreed("half | zeros | keys", "half | compress | keys | zeros", "half | keys | zeros");
  assert_agreed("compress(with=lz4)", "compress", "none");
  assert_agreed("compress(with=lz4) | compress | keys | keys", "compress | keys | compress(with=lz4)",
                "compress | compress(with=lz4) | keys");
}

static void test_different_losses_are_not_mended(void **state) {
  (void)state;
  static const char *const pairs[][2] = {{"half", "none"},
                                         {"half", "half(type=bf16)"},
                                         {"half", "half(on=push)"},
                                         {"half | skip(rate=0.5)", "skip(rate=0.5) | half"},
                                         {"half | half", "half"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    struct pwi_filter_list a = parse(pairs[i][0]), b = parse(pairs[i][1]), list = {.count = 99};
    char problem[PWI_FILTERS_PROBLEM_MAX] = "";
    assert_int_equal(pwi_filter_list_agree(&a, &b, problem, sizeof problem, &list), PAWL_MISMATCH);
    assert_int_equal(list.count, 99);
    assert_non_null(strstr(problem, pairs[i][0]));
    assert_non_null(strstr(problem, pairs[i][1]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_list_comes_back),
      cmocka_unit_test(test_the_layout_is_what_is_documented),
      cmocka_unit_test(test_a_list_cut_short_anywhere_is_refused),
      cmocka_unit_test(test_an_unknown_encoding_is_left_out),
      cmocka_unit_test(test_an_unknown_lossy_filter_is_refused),
      cmocka_unit_test(test_a_direction_that_a_filter_has_not_is_refused),
      cmocka_unit_test(test_another_format_is_not_read),
      cmocka_unit_test(test_impossible_fields_are_corrupt),
      cmocka_unit_test(test_damage_is_harmless),
      cmocka_unit_test(test_both_sides_come_to_the_same),
      cmocka_unit_test(test_different_losses_are_not_mended),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
