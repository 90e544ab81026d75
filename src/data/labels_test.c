/* Labels that are words, in every format that has labels; labels that are no labels; threads and memory. */
#include "data/scene_test.h"

#include <pthread.h>

#include "data/labels.h"

static struct pawl_labels *make_labels(void) {
  struct pawl_labels *labels;
  assert_int_equal(pwi_labels_create(&labels), PAWL_OK);
  return labels;
}

/* The rows of a text, and the labels of the table behind them. */
static void check_text(enum pawl_data_format format, bool optional, const char *text, const char *wanted) {
  struct pawl_labels *labels = make_labels();
  struct pwi_parse_rule rule = {.format = format, .hash_bits = 4, .labels_optional = optional, .labels = labels};
  struct told told = parsed(&rule, text);
  for (uint32_t i = 0; i < pwi_labels_count(labels); i++) tell(&told, "[%s]", pwi_labels_at(labels, i));
  assert_string_equal(told.text, wanted);
  assert_null(pwi_labels_at(labels, pwi_labels_count(labels)));
  pwi_labels_release(labels);
}

static void test_labels_are_words_or_numbers(void **state) {
  (void)state;
  check_text(PAWL_DATA_LIBSVM, false, "cat 1:2\ndog 3\ncat\n", "0 1:2; 1 3:1; 0; [cat][dog]");
  check_text(PAWL_DATA_LIBSVM, false, "1 1:2\n+1 1:2\n1.0 1:2\n1e0\n01\n-1\n-0\n0\n",
             "0 1:2; 0 1:2; 0 1:2; 0; 0; 1; 2; 2; [1][-1][0]");
  check_text(PAWL_DATA_LIBSVM, false, "16777216 1\n16777217 1\n9007199254740993 1\n9007199254740992 1\n",
             "0 1:1; 1 1:1; 2 1:1; 3 1:1; [16777216][16777217][9007199254740993][9007199254740992]");
  check_text(PAWL_DATA_LIBSVM, false, "1.5 1\n1.50 1\n1x 1\n", "0 1:1; 1 1:1; 2 1:1; [1.5][1.50][1x]");
  check_text(PAWL_DATA_LIBSVM, true, "cat 1:2\n3:4\n", "0 1:2; nan 3:4; [cat]");
}

static void test_labels_that_are_none_are_refused_with_their_place(void **state) {
  (void)state;
  check_text(PAWL_DATA_LIBSVM, false, "cat 1:2\n3:4\n", "0 1:2; !2:1 expected a label before the features[cat]");
  check_text(PAWL_DATA_LIBSVM, false, "nan 1:2\n", "!1:1 the label is not finite");
  check_text(PAWL_DATA_LIBSVM, false, "-inf 1:2\n", "!1:1 the label is not finite");
  check_text(PAWL_DATA_LIBSVM, false, "a:b 1:2\n", "!1:2 a label may not have a colon[a]");
  check_text(PAWL_DATA_LIBSVM, false, "1,3 1:2\n", "!1:1 several labels; expected one[1,3]");
  char text[400] = "", wanted[400];
  memset(text, 'x', 256);
  strcat(text, " 1:1\n");
  check_text(PAWL_DATA_LIBSVM, false, text, "!1:1 the label is longer than 255 bytes");
  memmove(text, text + 1, strlen(text));
  snprintf(wanted, sizeof wanted, "0 1:1; [%.255s]", text);
  check_text(PAWL_DATA_LIBSVM, false, text, wanted);
}

static void test_vowpal_wabbit_has_words_too(void **state) {
  (void)state;
  struct pawl_labels *labels = make_labels();
  struct pwi_parse_rule rule = {.format = PAWL_DATA_VW, .hash_bits = 4, .labels_optional = true, .labels = labels};
  struct told told = parsed(&rule, "cat |f a\ndog 2 'tag|f a\n|f a\ncat|f a\n");
  assert_int_equal(pwi_labels_count(labels), 2);
  assert_int_equal(strncmp(told.text, "0*1 ", 4), 0);
  assert_non_null(strstr(told.text, "; 1*2 "));
  assert_non_null(strstr(told.text, "; nan*1 "));
  pwi_labels_release(labels);
}

/* --- files ------------------------------------------------------------------------------------------------ */

/* The rows of a file, with labels as words. */
static void check_file(const char *name, const char *text, const char *label, const char *wanted) {
  struct pawl_labels *labels = make_labels();
  const char *path = write_bytes(name, text, strlen(text));
  struct pawl_data_options options = {.hash_bits = 10, .labels = labels, .label = label};
  struct pwi_fault fault = {""};
  struct pawl_data *data = NULL;
  struct pwi_batch *batch = NULL;
  struct told told = {.size = 0};
  if (pwi_data_open(&path, 1, &options, &data, &fault) || pwi_data_read(data, 0, &batch, &fault))
    fail_msg("%s", fault.text);
  pwi_labels_release(labels); /* the data set keeps it */
  for (size_t i = 0; i < batch->is.rows; i++) tell(&told, "%s ", pwi_labels_at(labels, (uint32_t)batch->labels[i]));
  tell(&told, "%zu", batch->is.entries);
  assert_string_equal(told.text, wanted);
  pwi_batch_destroy(batch);
  pwi_data_close(data);
}

static void test_formats_are_detected_with_labels_that_are_words(void **state) {
  (void)state;
  check_file("words.svm", "cat 1:2\ndog 3:1 4:1\n", NULL, "cat dog 3");
  check_file("group.svm", "cat qid:1 2:1\ndog 3:1 4:1\n", NULL, "cat dog 3");
  check_file("numbers.svm", "3 1:2\n1 3:1 4:1 5:2\n", NULL, "3 1 4");
  check_file("words.csv", "cat,1,2\ndog,3,4\n", NULL, "cat dog 4");
  check_file("head.csv", "kind,x,y\ncat,1,2\n\"a dog\",3,4\n", NULL, "cat a dog 4");
  check_file("named.csv", "x,y,kind\n1,2,cat\n3,4,7.0\n", "kind", "cat 7 4");
}

static void test_a_cache_has_labels_that_are_numbers(void **state) {
  (void)state;
  const char *path = write_bytes("plain.svm", "3 1:2\n0.1 2:1\n-7 2:1\n", 21);
  struct pawl_data_options options = {.hash_bits = 10};
  struct pwi_fault fault = {""};
  struct pawl_data *data;
  char cache[300];
  snprintf(cache, sizeof cache, "%s.cache", path);
  assert_int_equal(pwi_data_open(&path, 1, &options, &data, &fault), PAWL_OK);
  assert_int_equal(pwi_data_convert(data, cache, 1, NULL, NULL, &fault), PAWL_OK);
  pwi_data_close(data);
  path = cache;
  options.labels = make_labels();
  struct pwi_batch *batch;
  assert_int_equal(pwi_data_open(&path, 1, &options, &data, &fault), PAWL_OK);
  assert_int_equal(pwi_data_read(data, 0, &batch, &fault), PAWL_OK);
  const char *wanted[] = {"3", "0.1", "-7"};
  for (size_t i = 0; i < 3; i++)
    assert_string_equal(pwi_labels_at(options.labels, (uint32_t)batch->labels[i]), wanted[i]);
  pwi_batch_destroy(batch);
  pwi_data_close(data);
  pwi_labels_release(options.labels);
}

/* --- threads and memory ------------------------------------------------------------------------------------ */

static void *add_many(void *context) {
  for (int i = 0; i < 20000; i++) {
    char text[16];
    float number, again;
    int size = snprintf(text, sizeof text, "label%d", i % 500);
    assert_int_equal(pwi_labels_add(context, text, (size_t)size, &number), PAWL_OK);
    assert_int_equal(pwi_labels_add(context, text, (size_t)size, &again), PAWL_OK);
    assert_true(number == again && number < 500);
  }
  return NULL;
}

static void test_threads_give_a_label_one_number(void **state) {
  (void)state;
  struct pawl_labels *labels = make_labels();
  pthread_t other;
  assert_int_equal(pthread_create(&other, NULL, add_many, labels), 0);
  add_many(labels);
  pthread_join(other, NULL);
  assert_int_equal(pwi_labels_count(labels), 500);
  pwi_labels_release(labels);
}

static void test_memory_that_runs_out_is_an_error(void **state) {
  (void)state;
  for (uint64_t n = 0;; n++) {
    struct pawl_labels *labels = NULL;
    float number;
    pwi_memory_fail_after(n);
    pawl_status status = pwi_labels_create(&labels);
    if (!status) status = pwi_labels_add(labels, "cat", 3, &number);
    bool has_failed = pwi_memory_fail_cancel();
    assert_int_equal(status, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
    pwi_labels_release(labels);
    if (!has_failed) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_labels_are_words_or_numbers),
      cmocka_unit_test(test_labels_that_are_none_are_refused_with_their_place),
      cmocka_unit_test(test_vowpal_wabbit_has_words_too),
      cmocka_unit_test(test_formats_are_detected_with_labels_that_are_words),
      cmocka_unit_test(test_a_cache_has_labels_that_are_numbers),
      cmocka_unit_test(test_threads_give_a_label_one_number),
      cmocka_unit_test(test_memory_that_runs_out_is_an_error),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
