#include "cli/sketch/input.h"

#include <unistd.h>
#include <errno.h>

#include "base/random.h"
#include "base/testing.h"

#define SEED 17

/* What the sink was told, as text: "key=weight " and "line: why; ". */
static char told[4096];
static size_t told_size;
static bool is_enough;

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void note(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  told_size += (size_t)vsnprintf(told + told_size, sizeof told - told_size, format, arguments);
  va_end(arguments);
  assert_true(told_size < sizeof told);
}

static bool add(void *context, const char *key, size_t size, int64_t weight) {
  (void)context;
  note("%.*s=%lld ", (int)size, key, (long long)weight);
  return !is_enough;
}

static bool add_numbers(void *context, const uint64_t *numbers, size_t count) {
  (void)context;
  for (size_t i = 0; i < count; i++) note("%llu ", (unsigned long long)numbers[i]);
  return !is_enough;
}

static bool set_time(void *context, int64_t time_ns) {
  (void)context;
  note("@%lld ", (long long)time_ns);
  return true;
}

static bool pause_here(void *context, bool is_idle) {
  (void)context;
  (void)is_idle;
  return true;
}

static void refuse(void *context, uint64_t line, const char *why) {
  (void)context;
  note("%llu: %s; ", (unsigned long long)line, why);
}

static struct pwi_sketch_input begin(void) {
  told_size = 0;
  told[0] = '\0';
  is_enough = false;
  return (struct pwi_sketch_input){.sink = {NULL, add, add_numbers, set_time, pause_here, refuse}};
}

static void test_a_line_is_a_key(void **state) {
  (void)state;
  struct pwi_sketch_input input = begin();
  assert_int_equal(pwi_sketch_input_text(&input, "one\ntwo words\n\nend", 18, true), 18);
  assert_string_equal(told, "one=1 two words=1 3: empty key; end=1 ");
  assert_int_equal(input.lines, 4);
}

static void test_what_follows_the_last_line_break_is_given_again(void **state) {
  (void)state;
  struct pwi_sketch_input input = begin();
  assert_int_equal(pwi_sketch_input_text(&input, "one\ntw", 6, false), 4);
  assert_int_equal(pwi_sketch_input_text(&input, "two\n", 4, true), 4);
  assert_string_equal(told, "one=1 two=1 ");
}

static void test_weights_stand_behind_the_last_tab(void **state) {
  (void)state;
  struct pwi_sketch_input input = begin();
  const char *text = "a\t3\nb\tc\t9223372036854775807\nd\ne\t\nf\tx\ng\t9223372036854775808\nh\t0\ni\t-2\n\t5\n";
  input.has_weights = true;
  pwi_sketch_input_text(&input, text, strlen(text), true);
  assert_string_equal(
      told, "a=3 b\tc=9223372036854775807 3: missing weight; 4: missing weight; 5: the weight is not a whole "
            "number; 6: the weight does not fit in 63 bits; 7: the weight is 0; 8: the weight is negative, which "
            "CountMin cannot count; 9: empty key; ");
  input = begin();
  input.has_weights = input.allows_minus = true;
  pwi_sketch_input_text(&input, "i\t-2\nj\t-\n", 9, true);
  assert_string_equal(told, "i=-2 2: missing weight; ");
}

static void test_times_stand_before_the_first_tab(void **state) {
  (void)state;
  struct pwi_sketch_input input = begin();
  const char *text = "60\ta\n61.25\tb\tc\nx\td\n7\n99999999999\te\n1.5.2\tf\n";
  input.has_times = true;
  pwi_sketch_input_text(&input, text, strlen(text), true);
  assert_string_equal(told, "@60000000000 a=1 @61250000000 b\tc=1 3: the time is not a number of seconds; 4: missing "
                            "time; expected seconds and "
                            "a tab; 5: the time is not a number of seconds; 6: the time is not a number of seconds; ");
}

static void test_numbers_are_read_eight_bytes_at_a_time(void **state) {
  (void)state;
  struct pwi_sketch_input input = begin();
  uint64_t numbers[] = {7, UINT64_MAX, 9};
  input.is_binary = true;
  assert_int_equal(pwi_sketch_input_text(&input, (char *)numbers, 20, false), 16);
  assert_int_equal(pwi_sketch_input_text(&input, (char *)numbers + 16, 4, true), 4);
  assert_string_equal(told, "7 18446744073709551615 3: fewer than 8 bytes at the end of the input; ");
}

static void test_a_sink_that_has_enough_is_told_no_more(void **state) {
  (void)state;
  struct pwi_sketch_input input = begin();
  is_enough = true;
  pwi_sketch_input_text(&input, "a\nb\nc\n", 6, true);
  assert_string_equal(told, "a=1 ");
  assert_true(input.is_stopped);
}

/* A file of any lines, long ones among them, gives the same whether it is mapped or read from a pipe. */
static void test_files_and_pipes_give_the_same(void **state) {
  (void)state;
  char path[] = "/tmp/sketch_input_XXXXXX", command[200];
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  FILE *file = fdopen(fd, "w");
  for (int i = 0; i < 3; i++) {
    fprintf(file, "key %d\t%d\n", i, i + 1);
    for (int k = 0; k < 1500000; k++) fputc('x', file);
    fputs("\n", file); /* a long line without a weight */
  }
  fputs("last\t4", file);
  fclose(file);
  struct pwi_sketch_input input = begin();
  input.has_weights = true;
  assert_int_equal(pwi_sketch_input_read(&input, path), 0);
  const char *wanted = "key 0=1 2: missing weight; key 1=2 4: missing weight; key 2=3 6: missing weight; last=4 ";
  assert_string_equal(told, wanted);
  snprintf(command, sizeof command, "cat %s", path);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  int saved = dup(STDIN_FILENO);
  assert_true(dup2(fileno(pipe), STDIN_FILENO) >= 0);
  input = begin();
  input.has_weights = true;
  assert_int_equal(pwi_sketch_input_read(&input, "-"), 0);
  dup2(saved, STDIN_FILENO);
  close(saved);
  pclose(pipe);
  unlink(path);
  assert_string_equal(told, wanted);
}

static void test_a_file_that_cannot_be_read_is_an_error(void **state) {
  (void)state;
  struct pwi_sketch_input input = begin();
  assert_int_equal(pwi_sketch_input_read(&input, "/nowhere/at/all"), ENOENT);
  assert_int_equal(pwi_sketch_input_read(&input, "/tmp"), EISDIR);
}

/* Any bytes: every line is handed on or refused. */
static void test_any_bytes_are_safe(void **state) {
  (void)state;
  static const char letters[] = "a1\t-.\n0";
  struct pwi_random random;
  char text[64];
  pwi_random_init(&random, SEED, 0);
  for (int round = 0; round < 20000; round++) {
    struct pwi_sketch_input input = begin();
    size_t size = (size_t)pwi_random_below(&random, sizeof text);
    for (size_t i = 0; i < size; i++) text[i] = letters[pwi_random_below(&random, sizeof letters - 1)];
    input.has_times = round & 1;
    input.has_weights = round & 2;
    input.allows_minus = round & 4;
    assert_int_equal(pwi_sketch_input_text(&input, text, size, true), size);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_line_is_a_key),
      cmocka_unit_test(test_what_follows_the_last_line_break_is_given_again),
      cmocka_unit_test(test_weights_stand_behind_the_last_tab),
      cmocka_unit_test(test_times_stand_before_the_first_tab),
      cmocka_unit_test(test_numbers_are_read_eight_bytes_at_a_time),
      cmocka_unit_test(test_a_sink_that_has_enough_is_told_no_more),
      cmocka_unit_test(test_files_and_pipes_give_the_same),
      cmocka_unit_test(test_a_file_that_cannot_be_read_is_an_error),
      cmocka_unit_test(test_any_bytes_are_safe),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
