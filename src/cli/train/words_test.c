#include "cli/train/words.h"

#include <stdio.h>
#include <string.h>

#include "base/testing.h"

static char said[4096];

static void say(void *context, const char *line) {
  (void)context;
  size_t used = strlen(said);
  snprintf(said + used, sizeof said - used, "%s|", line);
}

static struct pwi_train_words words;

static int begin(void **state) {
  (void)state;
  said[0] = 0;
  words = (struct pwi_train_words){.say = say};
  return 0;
}

#define COMPLAINT "worker 1: pawl worker: 2 threads, but this OpenBLAS has none"
#define MESSAGE "worker 77 at host: 2 threads, but this OpenBLAS has none"

static void test_a_message_after_the_words_replaces_them(void **state) {
  (void)state;
  pwi_train_words_hold(&words, COMPLAINT, 10);
  pwi_train_words_hold(&words, "worker 1 (process 77) ended: exit code 1", 10);
  pwi_train_words_print(&words, 9);
  assert_string_equal(said, "");
  assert_true(pwi_train_words_news(&words, MESSAGE));
  pwi_train_words_print(&words, INT64_MAX);
  assert_string_equal(said, "worker 1 (process 77) ended: exit code 1|");
}

static void test_words_after_the_message_are_not_printed(void **state) {
  (void)state;
  assert_true(pwi_train_words_news(&words, MESSAGE));
  pwi_train_words_hold(&words, COMPLAINT, 10);
  pwi_train_words_print(&words, INT64_MAX);
  assert_string_equal(said, "");
}

static void test_a_message_that_comes_late_is_not_needed(void **state) {
  (void)state;
  pwi_train_words_hold(&words, COMPLAINT, 10);
  pwi_train_words_print(&words, 10);
  pwi_train_words_print(&words, INT64_MAX);
  assert_string_equal(said, COMPLAINT "|");
  assert_false(pwi_train_words_news(&words, MESSAGE));
  assert_true(pwi_train_words_news(&words, MESSAGE)); /* of another worker */
}

static void test_other_words_are_printed_beside_a_message(void **state) {
  (void)state;
  pwi_train_words_hold(&words, "worker 2: pawl worker: cannot read day.svm: Input/output error", 10);
  assert_true(pwi_train_words_news(&words, MESSAGE));
  assert_true(pwi_train_words_news(&words, "worker 2: error")); /* short texts are equal by chance */
  pwi_train_words_print(&words, 10);
  assert_string_equal(said, "worker 2: pawl worker: cannot read day.svm: Input/output error|");
}

static void test_no_words_are_lost_for_lack_of_room(void **state) {
  (void)state;
  char line[64], all[4096] = "";
  for (int i = 0; i < 3 * PWI_TRAIN_WORDS_HELD; i++) {
    snprintf(line, sizeof line, "worker %d: line %d", i, i);
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s|", line);
    pwi_train_words_hold(&words, line, i);
    if (i % 5 == 0) pwi_train_words_print(&words, i - 3);
  }
  pwi_train_words_print(&words, INT64_MAX);
  assert_string_equal(said, all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_a_message_after_the_words_replaces_them, begin),
      cmocka_unit_test_setup(test_words_after_the_message_are_not_printed, begin),
      cmocka_unit_test_setup(test_a_message_that_comes_late_is_not_needed, begin),
      cmocka_unit_test_setup(test_other_words_are_printed_beside_a_message, begin),
      cmocka_unit_test_setup(test_no_words_are_lost_for_lack_of_room, begin),
  };
  return cmocka_run_group_tests_name("cli.train.words", tests, NULL, NULL);
}
