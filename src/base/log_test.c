/* Logging: lines that reach the sink, levels, and rate limits. */
#include "base/log_watch.h"
#include "base/testing.h"

#define SECOND INT64_C(1000000000)

struct seen {
  int lines;
  enum pawl_log_level level;
  int64_t time_ns;
  char node[32];
  char text[1024];
};

static void remember(void *context, const struct pawl_log_line *line) {
  struct seen *seen = context;
  seen->lines++;
  seen->level = line->level;
  seen->time_ns = line->time_ns;
  snprintf(seen->node, sizeof seen->node, "%s", line->node);
  snprintf(seen->text, sizeof seen->text, "%s", line->text);
}

static int64_t fixed_clock(const void *clock) { return *(const int64_t *)clock; }

static void test_a_line_carries_level_node_time_and_text(void **state) {
  (void)state;
  struct seen seen = {0};
  int64_t time = 42;
  struct pwi_log log = {"server-3", fixed_clock, &time};
  pawl_log_set(remember, &seen, PAWL_LOG_INFO);
  pwi_log(&log, PAWL_LOG_WARN, "link.down", "peer=%s tries=%d", "w1", 7);
  assert_int_equal(seen.lines, 1);
  assert_int_equal(seen.level, PAWL_LOG_WARN);
  assert_int_equal(seen.time_ns, 42);
  assert_string_equal(seen.node, "server-3");
  assert_string_equal(seen.text, "link.down peer=w1 tries=7");
}

static void test_lines_below_the_level_are_dropped(void **state) {
  (void)state;
  struct seen seen = {0};
  pawl_log_set(remember, &seen, PAWL_LOG_WARN);
  assert_false(pwi_log_wants(PAWL_LOG_INFO));
  assert_true(pwi_log_wants(PAWL_LOG_WARN));
  pwi_log(NULL, PAWL_LOG_DEBUG, "a", "b=%d", 1);
  pwi_log(NULL, PAWL_LOG_INFO, "a", "b=%d", 1);
  assert_int_equal(seen.lines, 0);
  pwi_log(NULL, PAWL_LOG_WARN, "a", "b=%d", 1);
  pwi_log(NULL, PAWL_LOG_ERROR, "a", "b=%d", 1);
  assert_int_equal(seen.lines, 2);
}

static void test_without_a_sink_nothing_is_wanted(void **state) {
  (void)state;
  struct seen seen = {0};
  pawl_log_set(remember, &seen, PAWL_LOG_DEBUG);
  pawl_log_set(NULL, NULL, PAWL_LOG_DEBUG);
  assert_false(pwi_log_wants(PAWL_LOG_ERROR));
  pwi_log(NULL, PAWL_LOG_ERROR, "a", "b=%d", 1);
  assert_int_equal(seen.lines, 0);
}

static void test_a_line_without_a_log_has_a_dash_and_wall_time(void **state) {
  (void)state;
  struct seen seen = {0};
  struct pwi_log nameless = {0};
  pawl_log_set(remember, &seen, PAWL_LOG_DEBUG);
  pwi_log(NULL, PAWL_LOG_ERROR, "a", "b=%d", 1);
  assert_string_equal(seen.node, "-");
  assert_true(seen.time_ns > 1600000000 * SECOND);
  pwi_log(&nameless, PAWL_LOG_ERROR, "a", "b=%d", 1);
  assert_string_equal(seen.node, "-");
  assert_int_equal(seen.lines, 2);
}

static void test_control_characters_become_harmless(void **state) {
  (void)state;
  struct seen seen = {0};
  pawl_log_set(remember, &seen, PAWL_LOG_DEBUG);
  pwi_log(NULL, PAWL_LOG_INFO, "peer.named", "name=%s",
          "a\nb\r\t\x1b[31m\x7f"
          "z\xc3\xa9");
  assert_string_equal(seen.text, "peer.named name=a?b???[31m?z\xc3\xa9");
  char every[256];
  for (int i = 1; i < 256; i++) every[i - 1] = (char)i;
  every[255] = '\0';
  pwi_log(NULL, PAWL_LOG_INFO, "peer.named", "name=%s", every);
  for (const char *at = seen.text; *at; at++) {
    assert_false((unsigned char)*at < ' ');
    assert_int_not_equal(*at, 0x7f);
  }
}

static void test_long_lines_are_cut(void **state) {
  (void)state;
  struct seen seen = {0};
  char tail[2000];
  memset(tail, 'x', sizeof tail - 1);
  tail[sizeof tail - 1] = '\0';
  pawl_log_set(remember, &seen, PAWL_LOG_DEBUG);
  pwi_log(NULL, PAWL_LOG_INFO, "long", "tail=%s", tail);
  assert_int_equal(seen.lines, 1);
  assert_true(strlen(seen.text) < 512);
  assert_memory_equal(seen.text, "long tail=xxx", 13);
  pwi_log(NULL, PAWL_LOG_INFO, tail, "key=%d", 1);
  assert_int_equal(seen.lines, 2);
  assert_true(strlen(seen.text) < 512);
}

static void test_levels_have_names(void **state) {
  (void)state;
  assert_string_equal(pawl_log_level_name(PAWL_LOG_DEBUG), "debug");
  assert_string_equal(pawl_log_level_name(PAWL_LOG_INFO), "info");
  assert_string_equal(pawl_log_level_name(PAWL_LOG_WARN), "warn");
  assert_string_equal(pawl_log_level_name(PAWL_LOG_ERROR), "error");
  assert_string_equal(pawl_log_level_name((enum pawl_log_level)77), "unknown");
}

static void test_a_limit_lets_a_burst_through_and_counts_the_rest(void **state) {
  (void)state;
  struct pwi_log_limit limit = {0};
  uint64_t left_out = 99;
  int64_t now = 5 * SECOND;
  for (int i = 0; i < PWI_LOG_BURST; i++) {
    assert_true(pwi_log_limit_allows(&limit, now + i, &left_out));
    assert_int_equal(left_out, 0);
  }
  left_out = 99;
  for (int i = 0; i < 25; i++) assert_false(pwi_log_limit_allows(&limit, now + SECOND / 2, &left_out));
  assert_int_equal(left_out, 99); /* written only when the line may be */
  assert_true(pwi_log_limit_allows(&limit, now + SECOND, &left_out));
  assert_int_equal(left_out, 25);
  assert_true(pwi_log_limit_allows(&limit, now + SECOND, &left_out));
  assert_int_equal(left_out, 0);
}

static void test_a_limit_holds_every_second_anew(void **state) {
  (void)state;
  struct pwi_log_limit limit = {0};
  uint64_t left_out;
  int written = 0;
  for (int64_t now = 0; now < 3 * SECOND; now += SECOND / 100) written += pwi_log_limit_allows(&limit, now, &left_out);
  assert_int_equal(written, 3 * PWI_LOG_BURST);
}

static void note_error(void *context, const struct pwi_log *log, const char *event, const char *format) {
  struct seen *seen = context;
  seen->lines++;
  snprintf(seen->node, sizeof seen->node, "%s", log->node);
  snprintf(seen->text, sizeof seen->text, "%s %s", event, format);
}

static void test_errors_can_be_watched_without_a_sink(void **state) {
  (void)state;
  struct seen seen = {0};
  struct pwi_log log = {.node = "server-3"};
  pawl_log_set(NULL, NULL, PAWL_LOG_ERROR);
  pwi_log_watch_errors(note_error, &seen);
  pwi_log(&log, PAWL_LOG_WARN, "link.down", "why=%d", 1);
  assert_int_equal(seen.lines, 0);
  pwi_log(&log, PAWL_LOG_ERROR, "arc.missing", "begin=%d", 1);
  assert_int_equal(seen.lines, 1);
  assert_string_equal(seen.node, "server-3");
  assert_string_equal(seen.text, "arc.missing begin=%d");
  pwi_log_watch_errors(NULL, NULL);
  pwi_log(&log, PAWL_LOG_ERROR, "arc.missing", "begin=%d", 1);
  assert_int_equal(seen.lines, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_line_carries_level_node_time_and_text),
      cmocka_unit_test(test_lines_below_the_level_are_dropped),
      cmocka_unit_test(test_without_a_sink_nothing_is_wanted),
      cmocka_unit_test(test_a_line_without_a_log_has_a_dash_and_wall_time),
      cmocka_unit_test(test_control_characters_become_harmless),
      cmocka_unit_test(test_long_lines_are_cut),
      cmocka_unit_test(test_levels_have_names),
      cmocka_unit_test(test_errors_can_be_watched_without_a_sink),
      cmocka_unit_test(test_a_limit_lets_a_burst_through_and_counts_the_rest),
      cmocka_unit_test(test_a_limit_holds_every_second_anew),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
