

#include "base/testing.h"
#include "protocol/audit.h"

static char heard[PWI_AUDIT_LINE_MAX];

static void hear(void *context, const char *node, const char *line) {
  (void)context;
  assert_string_equal(node, "here");
  snprintf(heard, sizeof heard, "%s", line);
}

static const struct pwi_log log_here = {.node = "here"};
static const struct pwi_auditor auditor = {.sink = hear};

static void test_a_line_has_all_fields(void **state) {
  (void)state;
  struct pwi_rights rights = {.write = true, .space = "ads", .rate = 7};
  struct pwi_audit_who who = {.identity = "key:0123456789abcdef", .peer = "tcp://10.0.0.7:41844", .rights = &rights};
  pwi_audit(&auditor, &log_here, &who, "DELETE", "ads/w", PAWL_NOT_FOUND);
  assert_string_equal(heard, "verb=DELETE identity=key:0123456789abcdef peer=tcp://10.0.0.7:41844 "
                             "rights=write,space=ads,rate=7 object=\"ads/w\" outcome=NOT_FOUND");
}

static void test_rights_have_words(void **state) {
  (void)state;
  char text[PWI_RIGHTS_TEXT_MAX];
  struct pwi_rights rights = {.write = true};
  assert_string_equal(pwi_rights_print(&rights, text), "all");
  rights = (struct pwi_rights){.space = "a"};
  assert_string_equal(pwi_rights_print(&rights, text), "read-only,space=a");
  rights = (struct pwi_rights){.is_operator = true};
  assert_string_equal(pwi_rights_print(&rights, text), "operator");
  rights = (struct pwi_rights){.is_nobody = true};
  assert_string_equal(pwi_rights_print(&rights, text), "none");
}

/* An audit entry is always one line with one verb, whatever the names contain. */
static void test_names_from_outside_are_escaped(void **state) {
  (void)state;
  char object[4096];
  struct pwi_rights rights = {0};
  for (size_t i = 0; i + 1 < sizeof object; i++) object[i] = (char)(i % 255 + 1);
  object[sizeof object - 1] = '\0';
  struct pwi_audit_who who = {.identity = "cert:a b\nverb=LINK", .peer = object, .rights = &rights};
  pwi_audit(&auditor, &log_here, &who, "CREATE", object, PAWL_OK);
  for (const char *at = heard; *at; at++)
    if (*at < ' ' || *at > '~') fail_msg("byte %d", *at);
  assert_non_null(strstr(heard, "identity=cert:a?b?verb=LINK peer="));
  assert_non_null(strstr(heard, "outcome=OK"));
  char text[16];
  assert_string_equal(pwi_audit_escape("a\"\n", text, sizeof text), "\"a\\x22\\x0a\"");
  assert_string_equal(pwi_audit_escape("\n\n\n\n\n", text, sizeof text), "\"\\x0a\\x0a\\x0a\"");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_line_has_all_fields),
      cmocka_unit_test(test_rights_have_words),
      cmocka_unit_test(test_names_from_outside_are_escaped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
