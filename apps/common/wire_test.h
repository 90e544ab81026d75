/* For tests of specs, orders and replies: the decoder refuses every truncated and every malformed text. */
#ifndef APPS_COMMON_WIRE_TEST_H
#define APPS_COMMON_WIRE_TEST_H

#include "base/testing.h"

enum kind { SPEC, ORDER, REPLY, KINDS };

/* The test that includes this file defines both. `reads` copies the text to memory that ends where the text
 * ends, and checks that a reader that refuses the text leaves its result as it was. */
static char *write_kind(enum kind kind);
static bool reads(enum kind kind, const char *text, size_t size);

static void test_what_is_cut_off_is_refused(void **state) {
  (void)state;
  for (enum kind kind = SPEC; kind < KINDS; kind++) {
    char *text = write_kind(kind);
    size_t size = strlen(text);
    assert_true(reads(kind, text, size));
    for (size_t cut = 0; cut < size; cut++) assert_false(reads(kind, text, cut));
    free(text);
  }
}

static void test_one_kind_is_not_taken_for_another(void **state) {
  (void)state;
  for (enum kind kind = SPEC; kind < KINDS; kind++) {
    char *text = write_kind(kind);
    for (enum kind other = SPEC; other < KINDS; other++)
      assert_int_equal(reads(other, text, strlen(text)), kind == other);
    free(text);
  }
}

static void test_other_json_and_no_json_is_refused(void **state) {
  (void)state;
  static const char *const texts[] = {"",
                                      "{}",
                                      "[]",
                                      "null",
                                      "0",
                                      "\"\"",
                                      "{\"do\":1}",
                                      "{\"",
                                      "[[[[",
                                      "{}{}",
                                      "\xff",
                                      "{\"app\":\"lda\"}",
                                      "{\"app\":\"linear\"}"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    for (enum kind kind = SPEC; kind < KINDS; kind++) assert_false(reads(kind, texts[i], strlen(texts[i])));
  char deep[100000];
  memset(deep, '[', sizeof deep);
  for (enum kind kind = SPEC; kind < KINDS; kind++) assert_false(reads(kind, deep, sizeof deep));
}

/* The text with `from`, which must be there, replaced by `to`. */
static void must_not_read(enum kind kind, const char *from, const char *to) {
  char *text = write_kind(kind), *changed = malloc(strlen(text) + strlen(to) + 1), *at = strstr(text, from);
  if (!at) fail_msg("'%s' is not in '%s'", from, text);
  sprintf(changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  if (reads(kind, changed, strlen(changed))) fail_msg("taken with %.100s: '%.2000s'", to, changed);
  free(text);
  free(changed);
}

#endif
