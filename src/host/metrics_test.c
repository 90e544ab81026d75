/* Metrics, read back by a parser that was written from the description of the format: names, labels,
 * escapes, numbers. */
#include <locale.h>
#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "host/metrics.h"

/* --- the parser ----------------------------------------------------------------------------------------- */

struct sample {
  char name[64];
  size_t labels;
  char label_names[4][32];
  char label_values[4][128];
  char number[64];
};

static const char *skip_text(const char *at, const char *wanted) {
  if (strncmp(at, wanted, strlen(wanted)) != 0) fail_msg("'%s' expected at '%.40s'", wanted, at);
  return at + strlen(wanted);
}

static const char *read_name(const char *at, char *name, size_t size) {
  size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789");
  assert_in_range(length, 1, size - 1);
  memcpy(name, at, length);
  name[length] = '\0';
  return at + length;
}

/* Reads until `end`; knows the three escapes of the format and no others. */
static const char *read_escaped(const char *at, char end, char *value, size_t size) {
  size_t length = 0;
  for (; *at != end; at++) {
    assert_true(*at != '\0' && *at != '\n' && length + 1 < size);
    char c = *at;
    if (c == '\\') {
      c = *++at;
      assert_true(c == '\\' || c == 'n' || (c == '"' && end == '"'));
      if (c == 'n') c = '\n';
    }
    value[length++] = c;
  }
  value[length] = '\0';
  return at + 1;
}

/* One line `name{label="value",…} number`; returns the position behind it. */
static const char *read_sample(const char *at, struct sample *sample) {
  memset(sample, 0, sizeof *sample);
  at = read_name(at, sample->name, sizeof sample->name);
  if (*at == '{') {
    do {
      assert_in_range(sample->labels, 0, 3);
      at = read_name(at + 1, sample->label_names[sample->labels], sizeof sample->label_names[0]);
      at = skip_text(at, "=\"");
      at = read_escaped(at, '"', sample->label_values[sample->labels], sizeof sample->label_values[0]);
      sample->labels++;
    } while (*at == ',');
    at = skip_text(at, "}");
  }
  at = skip_text(at, " ");
  size_t length = strcspn(at, "\n");
  assert_in_range(length, 1, sizeof sample->number - 1);
  assert_int_equal(strspn(at, "0123456789.e+-NaInf"), length);
  memcpy(sample->number, at, length);
  return skip_text(at + length, "\n");
}

static const char *read_head(const char *at, const char *name, const char *type, char *help, size_t size) {
  at = skip_text(skip_text(skip_text(at, "# HELP "), name), " ");
  at = read_escaped(at, '\n', help, size);
  at = skip_text(skip_text(skip_text(at, "# TYPE "), name), " ");
  return skip_text(skip_text(at, type), "\n");
}

/* --- one number ----------------------------------------------------------------------------------------- */

static void one_number(struct sample *sample, double value) {
  struct pwi_text text = {0};
  struct pwi_metrics metrics = {.text = &text, .name = "x", .type = PWI_METRIC_GAUGE};
  pwi_metrics_double(&metrics, value, NULL);
  assert_string_equal(read_sample(pwi_text_view(&text), sample), "");
  pwi_text_fini(&text);
}

static void expect_number(double value, const char *number) {
  struct sample sample;
  one_number(&sample, value);
  assert_string_equal(sample.number, number);
}

static void test_doubles_are_written_as_short_as_they_can_be(void **state) {
  (void)state;
  expect_number(0, "0");
  expect_number(-3, "-3");
  expect_number(1e15, "1000000000000000");
  expect_number(9007199254740991.0, "9007199254740991");
  expect_number(0.1, "0.1");
  expect_number(-2.5e-9, "-2.5e-09");
  expect_number((double)NAN, "NaN");
  expect_number((double)INFINITY, "+Inf");
  expect_number((double)-INFINITY, "-Inf");
}

static void test_every_double_reads_back_as_itself(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, 20, 1);
  for (int i = 0; i < 20000; i++) {
    uint64_t bits = pwi_random_u64(&random);
    double value;
    memcpy(&value, &bits, sizeof value);
    if (isnan(value)) continue;
    struct sample sample;
    one_number(&sample, value);
    assert_true(strtod(sample.number, NULL) == value);
  }
}

static void test_the_locale_does_not_change_numbers(void **state) {
  (void)state;
  static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ps_AF.UTF-8"};
  const char *found = NULL;
  for (size_t i = 0; i < 4 && !found; i++) found = setlocale(LC_NUMERIC, names[i]);
  if (!found) skip();
  expect_number(0.5, "0.5");
  setlocale(LC_NUMERIC, "C");
}

static void test_integers_are_exact(void **state) {
  (void)state;
  struct pwi_text text = {0};
  struct pwi_metrics metrics = {.text = &text};
  pwi_metrics_family(&metrics, "x", PWI_METRIC_GAUGE, "");
  pwi_metrics_u64(&metrics, UINT64_MAX, NULL);
  pwi_metrics_i64(&metrics, INT64_MIN, NULL);
  struct sample sample;
  char help[8];
  const char *at = read_head(pwi_text_view(&text), "x", "gauge", help, sizeof help);
  at = read_sample(at, &sample);
  assert_string_equal(sample.number, "18446744073709551615");
  at = read_sample(at, &sample);
  assert_string_equal(sample.number, "-9223372036854775808");
  assert_string_equal(at, "");
  pwi_text_fini(&text);
}

/* --- strings -------------------------------------------------------------------------------------------- */

static void test_help_and_label_values_survive_escaping(void **state) {
  (void)state;
  static const char hostile[] = "a\\b\"c\nd} 1\n# e\\n\t\xc3\xa9";
  struct pwi_text text = {0};
  struct pwi_metrics metrics = {.text = &text};
  pwi_metrics_family(&metrics, "pawl_pushes_total", PWI_METRIC_COUNTER, hostile);
  pwi_metrics_u64(&metrics, 5, PWI_LABELS({"node", hostile}, {"empty", ""}));
  struct sample sample;
  char help[64];
  const char *at = read_head(pwi_text_view(&text), "pawl_pushes_total", "counter", help, sizeof help);
  assert_string_equal(help, hostile);
  assert_string_equal(read_sample(at, &sample), "");
  assert_string_equal(sample.name, "pawl_pushes_total");
  assert_int_equal(sample.labels, 2);
  assert_string_equal(sample.label_names[0], "node");
  assert_string_equal(sample.label_values[0], hostile);
  assert_string_equal(sample.label_names[1], "empty");
  assert_string_equal(sample.label_values[1], "");
  assert_string_equal(sample.number, "5");
  pwi_text_fini(&text);
}

static void expect_label(const char *value, const char *expected) {
  struct pwi_text text = {0};
  struct pwi_metrics metrics = {.text = &text, .name = "x", .type = PWI_METRIC_GAUGE};
  pwi_metrics_u64(&metrics, 1, PWI_LABELS({"l", value}));
  struct sample sample;
  read_sample(pwi_text_view(&text), &sample);
  assert_string_equal(sample.label_values[0], expected);
  pwi_text_fini(&text);
}

static void test_bytes_that_are_not_utf8_become_question_marks(void **state) {
  (void)state;
  expect_label("\xf0\x9f\x90\xbe \xe2\x82\xac", "\xf0\x9f\x90\xbe \xe2\x82\xac");
  expect_label("a\xff"
               "b",
               "a?b");
  expect_label("\x80", "?");
  expect_label("\xc0\xaf", "??");           /* a slash in two bytes (overlong) */
  expect_label("\xe0\x80\xaf", "???");      /* in three bytes */
  expect_label("\xf0\x80\x80\xaf", "????"); /* in four bytes */
  expect_label("\xed\xa0\x80", "???");      /* a surrogate */
  expect_label("\xf4\x90\x80\x80", "????"); /* beyond U+10FFFF */
  expect_label("cut \xe2\x82", "cut ??");   /* truncated */
  expect_label("cut \xf0\x9f\x90", "cut ???");
  expect_label("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf");
}

/* --- histograms ----------------------------------------------------------------------------------------- */

#define BOUNDS 23

/* Reads all samples of one histogram, with one label before `le`: cumulative counts, the infinite bound
 * last. */
static const char *read_histogram(const char *at, const char *label, double *bounds, uint64_t *counts, double *sum,
                                  uint64_t *count) {
  struct sample sample;
  for (size_t i = 0; i < BOUNDS; i++) {
    at = read_sample(at, &sample);
    assert_string_equal(sample.name, "wait_seconds_bucket");
    assert_int_equal(sample.labels, 2);
    assert_string_equal(sample.label_values[0], label);
    assert_string_equal(sample.label_names[1], "le");
    bounds[i] = strtod(sample.label_values[1], NULL);
    counts[i] = strtoull(sample.number, NULL, 10);
  }
  at = read_sample(at, &sample);
  assert_string_equal(sample.name, "wait_seconds_count");
  assert_string_equal(sample.label_values[0], label);
  *count = strtoull(sample.number, NULL, 10);
  at = read_sample(at, &sample);
  assert_string_equal(sample.name, "wait_seconds_sum");
  *sum = strtod(sample.number, NULL);
  return at;
}

static void check_histogram(const int64_t *values, size_t n) {
  static struct pwi_histogram histogram;
  pwi_histogram_reset(&histogram);
  double true_sum = 0;
  for (size_t i = 0; i < n; i++) {
    pwi_histogram_record(&histogram, values[i]);
    true_sum += (double)values[i] / 1e9;
  }
  struct pwi_text text = {0};
  struct pwi_metrics metrics = {.text = &text};
  pwi_metrics_family(&metrics, "wait_seconds", PWI_METRIC_HISTOGRAM, "Waiting.");
  pwi_metrics_histogram(&metrics, &histogram, PWI_LABELS({"shard", "3"}));
  char help[16];
  double bounds[BOUNDS], sum;
  uint64_t counts[BOUNDS], count;
  const char *at = read_head(pwi_text_view(&text), "wait_seconds", "histogram", help, sizeof help);
  assert_string_equal(read_histogram(at, "3", bounds, counts, &sum, &count), "");
  assert_int_equal(count, n);
  assert_int_equal(counts[BOUNDS - 1], n);
  assert_true(isinf(bounds[BOUNDS - 1]));
  assert_true(fabs(sum - true_sum) <= 1e-9 * (1 + true_sum));
  for (size_t i = 0; i + 1 < BOUNDS; i++) {
    assert_true(bounds[i] < bounds[i + 1]);
    uint64_t surely = 0, perhaps = 0;
    for (size_t k = 0; k < n; k++) {
      surely += (double)values[k] * (1 + 1 / 64.0) <= bounds[i] * 1e9;
      perhaps += (double)values[k] <= bounds[i] * (1 + 1e-12) * 1e9;
    }
    assert_in_range(counts[i], surely, perhaps);
  }
  pwi_text_fini(&text);
}

static void test_buckets_count_recorded_values(void **state) {
  (void)state;
  check_histogram(NULL, 0);
  check_histogram((const int64_t[]){0}, 1);
  check_histogram((const int64_t[]){INT64_MAX}, 1);
  check_histogram((const int64_t[]){1000, 1001, 999, 10000000000, 10000000001, 3}, 6);
  static int64_t values[2000];
  struct pwi_random random;
  pwi_random_init(&random, 20, 2);
  for (size_t i = 0; i < 2000; i++) values[i] = (int64_t)exp(pwi_random_unit(&random) * 25);
  for (size_t n = 2; n <= 2000; n *= 10) check_histogram(values, n);
}

static void test_lack_of_memory_is_remembered_and_leaks_nothing(void **state) {
  (void)state;
  static struct pwi_histogram histogram;
  pwi_histogram_reset(&histogram);
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t n = 0;; n++) {
    struct pwi_text text = {0};
    struct pwi_metrics metrics = {.text = &text};
    pwi_memory_fail_after(n);
    pwi_metrics_family(&metrics, "x", PWI_METRIC_HISTOGRAM, "help");
    pwi_metrics_histogram(&metrics, &histogram, PWI_LABELS({"a", "b"}));
    int failed = pwi_memory_fail_cancel();
    assert_int_equal(pwi_text_status(&text), failed ? PAWL_NO_MEMORY : PAWL_OK);
    pwi_text_fini(&text);
    assert_int_equal(pwi_memory_counts().live, live);
    if (!failed) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_doubles_are_written_as_short_as_they_can_be),
      cmocka_unit_test(test_every_double_reads_back_as_itself),
      cmocka_unit_test(test_the_locale_does_not_change_numbers),
      cmocka_unit_test(test_integers_are_exact),
      cmocka_unit_test(test_help_and_label_values_survive_escaping),
      cmocka_unit_test(test_bytes_that_are_not_utf8_become_question_marks),
      cmocka_unit_test(test_buckets_count_recorded_values),
      cmocka_unit_test(test_lack_of_memory_is_remembered_and_leaks_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
