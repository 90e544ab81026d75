
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/testing.h"
#include "net/key.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))
#define DIGITS "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define KEY "pawl1-" DIGITS
#define NAME "630dcd2966c43366" /* of that key: the first digits of its SHA-256 */
#define OTHER "pawl1-FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"

static char folder[64], path[128];

static int make_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/pawl-key-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/keys", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

static void write_file(const char *text, mode_t mode) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(chmod(path, mode), 0);
}

static struct pwi_keyring *make_ring(void) {
  struct pwi_keyring *ring;
  assert_int_equal(pwi_keyring_create(&ring), PAWL_OK);
  return ring;
}

static void test_a_key_is_read_and_named(void **state) {
  (void)state;
  struct pwi_key key, spaced;
  assert_int_equal(pwi_key_parse(KEY, &key), PAWL_OK);
  for (size_t i = 0; i < PWI_KEY_SIZE; i++) assert_int_equal(key.secret[i], i);
  assert_string_equal(key.name, NAME);
  assert_int_equal(pwi_key_parse(" \t\n" KEY " \r\n", &spaced), PAWL_OK);
  assert_memory_equal(&spaced, &key, sizeof key);
  assert_int_equal(pwi_key_parse(OTHER, &key), PAWL_OK);
  for (size_t i = 0; i < PWI_KEY_SIZE; i++) assert_int_equal(key.secret[i], 0xff);
}

static void test_other_texts_are_no_keys(void **state) {
  (void)state;
  static const char *const texts[] = {
      "",
      " ",
      "pawl1-",
      "pawl1",
      "pawl2-" DIGITS,
      "PAWL1-" DIGITS,
      DIGITS,
      KEY "0",
      KEY " x",
      KEY "\n" KEY,
      "pawl1- " DIGITS,
      "pawl1-0g0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", /* not a digit */
      "pawl1-g00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
      "pawl1-000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1", /* a digit short */
      "pawl1-000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e",
      "pawl1-000102030405060708090a0b0c0d0e0f 101112131415161718191a1b1c1d1e1f",
  };
  for (size_t i = 0; i < LENGTH(texts); i++) {
    struct pwi_key key = {.name = "untouched"};
    pawl_status status = pwi_key_parse(texts[i], &key);
    if (status == PAWL_OK) print_message("accepted: %s\n", texts[i]);
    assert_int_equal(status, PAWL_INVALID);
    assert_string_equal(key.name, "untouched");
  }
}

/* Every prefix of a key, so that no reader runs past the end of its text. */
static void test_a_key_that_ends_early_is_refused(void **state) {
  (void)state;
  struct pwi_key key;
  for (size_t length = 0; length < strlen(KEY); length++) {
    char *text = strndup(KEY, length);
    assert_int_equal(pwi_key_parse(text, &key), PAWL_INVALID);
    free(text);
  }
}

static void test_new_keys_are_keys_and_differ(void **state) {
  (void)state;
  char texts[2][PWI_KEY_TEXT_MAX];
  struct pwi_key keys[2];
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(pwi_key_new(texts[i]), PAWL_OK);
    assert_int_equal(strlen(texts[i]), strlen(KEY));
    assert_int_equal(pwi_key_parse(texts[i], &keys[i]), PAWL_OK);
  }
  assert_memory_not_equal(keys[0].secret, keys[1].secret, PWI_KEY_SIZE);
  assert_string_not_equal(keys[0].name, keys[1].name);
}

static void test_the_first_key_added_is_first(void **state) {
  (void)state;
  struct pwi_keyring *ring = make_ring();
  assert_int_equal(pwi_keyring_count(ring), 0);
  assert_null(pwi_keyring_first(ring));
  assert_null(pwi_keyring_find(ring, NAME, PWI_KEY_NAME_SIZE));
  assert_int_equal(pwi_keyring_add(ring, OTHER), PAWL_OK);
  assert_int_equal(pwi_keyring_add(ring, KEY), PAWL_OK);
  assert_int_equal(pwi_keyring_add(ring, "nonsense"), PAWL_INVALID);
  assert_int_equal(pwi_keyring_add(ring, " " KEY), PAWL_EXISTS);
  assert_int_equal(pwi_keyring_count(ring), 2);
  assert_int_equal(pwi_keyring_first(ring)->secret[0], 0xff);
  pwi_keyring_destroy(ring);
}

static void test_keys_are_found_by_their_whole_name(void **state) {
  (void)state;
  struct pwi_keyring *ring = make_ring();
  assert_int_equal(pwi_keyring_add(ring, OTHER), PAWL_OK);
  assert_int_equal(pwi_keyring_add(ring, KEY), PAWL_OK);
  const struct pwi_key *key = pwi_keyring_find(ring, NAME, PWI_KEY_NAME_SIZE);
  assert_non_null(key);
  assert_int_equal(key->secret[31], 31);
  assert_null(pwi_keyring_find(ring, NAME, PWI_KEY_NAME_SIZE - 1));
  assert_null(pwi_keyring_find(ring, NAME "0", PWI_KEY_NAME_SIZE + 1));
  assert_null(pwi_keyring_find(ring, NAME, 0));
  assert_null(pwi_keyring_find(ring, "0000000000000000", PWI_KEY_NAME_SIZE));
  pwi_keyring_destroy(ring);
  pwi_keyring_destroy(NULL);
}

static void test_a_file_brings_all_its_keys_in_order(void **state) {
  (void)state;
  size_t line;
  struct pwi_keyring *ring = make_ring();
  write_file("# the cluster's keys\n\n   \t\n  # indented\n" OTHER "\r\n" KEY "\n" OTHER "\n" KEY, 0600);
  assert_int_equal(pwi_keyring_load(ring, path, &line), PAWL_OK);
  assert_int_equal(pwi_keyring_count(ring), 2); /* a duplicate counts once */
  assert_int_equal(pwi_keyring_first(ring)->secret[0], 0xff);
  assert_int_equal(pwi_keyring_load(ring, path, &line), PAWL_OK);
  assert_int_equal(pwi_keyring_count(ring), 2);
  pwi_keyring_destroy(ring);
}

static void test_the_line_at_fault_is_named(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t line;
  } faults[] = {{"nonsense", 1}, {KEY "\n" OTHER "\n" KEY "x\n", 3}, {KEY KEY KEY KEY "\n", 1}};
  for (size_t i = 0; i < LENGTH(faults); i++) {
    size_t line = 99;
    struct pwi_keyring *ring = make_ring();
    write_file(faults[i].text, 0400);
    assert_int_equal(pwi_keyring_load(ring, path, &line), PAWL_INVALID);
    assert_int_equal(line, faults[i].line);
    unlink(path); /* it cannot be written again */
    pwi_keyring_destroy(ring);
  }
}

static void test_a_long_comment_is_one_line(void **state) {
  (void)state;
  char text[2048];
  size_t line, used = 1;
  struct pwi_keyring *ring = make_ring();
  memset(text, '#', sizeof text);
  for (used = 600; used < 602; used++) text[used] = '\n';
  strcpy(text + used, KEY "\nnonsense");
  write_file(text, 0600);
  assert_int_equal(pwi_keyring_load(ring, path, &line), PAWL_INVALID);
  assert_int_equal(line, 4);
  assert_int_equal(pwi_keyring_count(ring), 1);
  pwi_keyring_destroy(ring);
}

/* A line that is too long to be read completely must be refused. */
static void test_a_key_with_a_long_tail_is_refused(void **state) {
  (void)state;
  char text[1024];
  size_t line;
  struct pwi_keyring *ring = make_ring();
  memset(text, ' ', sizeof text);
  memcpy(text, KEY, strlen(KEY));
  strcpy(text + 900, "x\n");
  write_file(text, 0600);
  assert_int_equal(pwi_keyring_load(ring, path, &line), PAWL_INVALID);
  assert_int_equal(line, 1);
  memset(text, ' ', sizeof text); /* nor what stands behind many spaces */
  strcpy(text + 400, "x\n");
  write_file(text, 0600);
  assert_int_equal(pwi_keyring_load(ring, path, &line), PAWL_INVALID);
  assert_int_equal(pwi_keyring_count(ring), 0);
  pwi_keyring_destroy(ring);
}

static void test_a_file_that_others_may_touch_is_forbidden(void **state) {
  (void)state;
  static const mode_t modes[] = {0640, 0604, 0620, 0602, 0610, 0601, 0666};
  struct pwi_keyring *ring = make_ring();
  for (size_t i = 0; i < LENGTH(modes); i++) {
    size_t line = 99;
    write_file(KEY "\n", modes[i]);
    assert_int_equal(pwi_keyring_load(ring, path, &line), PAWL_FORBIDDEN);
    assert_int_equal(line, 0);
    assert_int_equal(pwi_keyring_count(ring), 0);
  }
  size_t line;
  write_file(KEY "\n", 0600);
  assert_int_equal(pwi_keyring_load(ring, path, &line), PAWL_OK);
  pwi_keyring_destroy(ring);
}

static void test_a_path_that_is_not_a_file_is_refused(void **state) {
  (void)state;
  size_t line = 99;
  struct pwi_keyring *ring = make_ring();
  char missing[160];
  snprintf(missing, sizeof missing, "%s/missing", folder);
  assert_int_equal(pwi_keyring_load(ring, missing, &line), PAWL_NOT_FOUND);
  assert_int_equal(line, 0);
  line = 99;
  assert_int_equal(pwi_keyring_load(ring, folder, &line), PAWL_IO);
  assert_int_equal(line, 0);
  pwi_keyring_destroy(ring);
}

static void test_limits_stand_behind_a_key(void **state) {
  (void)state;
  static const struct {
    const char *text, *space;
    bool read_only;
  } lines[] = {
      {KEY, "", false},
      {KEY "\n", "", false},
      {KEY " read-only", "", true},
      {" " KEY "\tspace=ads.v2_x-1  \n", "ads.v2_x-1", false},
      {KEY " space=ads read-only\r\n", "ads", true},
      {KEY " read-only space=ads", "ads", true},
      {KEY " space=read-only", "read-only", false},
      {KEY " space=0123456789012345678901234567890123456789012345678901234567890ab",
       "0123456789012345678901234567890123456789012345678901234567890ab", false},
  };
  for (size_t i = 0; i < LENGTH(lines); i++) {
    struct pwi_key key;
    struct pwi_key_limits limits;
    assert_int_equal(pwi_key_parse_line(lines[i].text, &key, &limits), PAWL_OK);
    assert_string_equal(key.name, NAME);
    assert_string_equal(limits.space, lines[i].space);
    assert_int_equal(limits.read_only, lines[i].read_only);
  }
}

/* A limit with a typing error must not become a key without it. */
static void test_a_limit_that_cannot_be_read_spoils_the_key(void **state) {
  (void)state;
  static const char *const tails[] = {
      " readonly",
      " read-only,",
      " read-only read-only",
      " space=",
      " space=a/b",
      " space=a space=b",
      " space",
      " space =a",
      " " KEY,
      " # mine",
      " read-only x",
      " space=\xc3\xa4",
      " space=0123456789012345678901234567890123456789012345678901234567890abc", /* 64 characters */
  };
  for (size_t i = 0; i < LENGTH(tails); i++) {
    char text[512];
    struct pwi_key key = {.name = "untouched"};
    struct pwi_key_limits limits = {.space = "untouched"};
    struct pwi_keyring *ring = make_ring();
    snprintf(text, sizeof text, "%s%s", KEY, tails[i]);
    pawl_status status = pwi_key_parse_line(text, &key, &limits);
    if (status == PAWL_OK) print_message("accepted: %s\n", text);
    assert_int_equal(status, PAWL_UNSUPPORTED);
    assert_string_equal(key.name, "untouched");
    assert_string_equal(limits.space, "untouched");
    assert_int_equal(pwi_keyring_add(ring, text), PAWL_UNSUPPORTED);
    assert_int_equal(pwi_keyring_count(ring), 0);
    pwi_keyring_destroy(ring);
  }
}

static void test_limits_are_printed_as_they_are_read(void **state) {
  (void)state;
  static const char *const texts[] = {"", " read-only", " space=ads", " read-only space=ads"};
  for (size_t i = 0; i < LENGTH(texts); i++) {
    char line[PWI_KEY_LINE_MAX], printed[PWI_KEY_LINE_MAX];
    struct pwi_key key;
    struct pwi_key_limits limits;
    snprintf(line, sizeof line, "%s%s", KEY, texts[i]);
    assert_int_equal(pwi_key_parse_line(line, &key, &limits), PAWL_OK);
    assert_string_equal(pwi_key_limits_print(&limits, printed), texts[i]);
  }
}

static void test_a_ring_knows_the_limits_of_each_key(void **state) {
  (void)state;
  size_t line;
  struct pwi_key other;
  struct pwi_key_limits limits;
  struct pwi_keyring *ring = make_ring();
  write_file(OTHER "\n" KEY " read-only space=ads\n" KEY "\n", 0600); /* the first one stays */
  assert_int_equal(pwi_keyring_load(ring, path, &line), PAWL_OK);
  assert_int_equal(pwi_keyring_count(ring), 2);
  assert_true(pwi_keyring_limits(ring, NAME, PWI_KEY_NAME_SIZE, &limits));
  assert_true(limits.read_only);
  assert_string_equal(limits.space, "ads");
  assert_int_equal(pwi_key_parse(OTHER, &other), PAWL_OK);
  assert_true(pwi_keyring_limits(ring, other.name, PWI_KEY_NAME_SIZE, &limits));
  assert_false(limits.read_only);
  assert_string_equal(limits.space, "");
  assert_false(pwi_keyring_limits(ring, NAME, PWI_KEY_NAME_SIZE - 1, &limits));
  assert_false(pwi_keyring_limits(ring, "0000000000000000", PWI_KEY_NAME_SIZE, &limits));
  write_file(KEY " read-onyl\n", 0600);
  assert_int_equal(pwi_keyring_load(ring, path, &line), PAWL_UNSUPPORTED);
  assert_int_equal(line, 1);
  pwi_keyring_destroy(ring);
}

static pawl_status fill_ring(void) {
  struct pwi_keyring *ring;
  size_t line;
  pawl_status status = pwi_keyring_create(&ring);
  if (status != PAWL_OK) return status;
  status = pwi_keyring_add(ring, KEY);
  if (status == PAWL_OK) status = pwi_keyring_load(ring, path, &line);
  pwi_keyring_destroy(ring);
  return status;
}

static void test_no_memory_is_said_and_nothing_leaks(void **state) {
  (void)state;
  write_file(KEY "\n" OTHER "\n", 0600);
  uint64_t live = pwi_memory_counts().live, n = 0;
  for (int failed = 1; failed; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = fill_ring();
    failed = pwi_memory_fail_cancel();
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_true(n > 3);
}

static void test_limits_are_read_and_printed(void **state) {
  (void)state;
  struct pwi_key_limits limits;
  char text[PWI_KEY_LINE_MAX];
  assert_int_equal(pwi_key_limits_parse(" connections=7\tspace=ads memory=4G rate=1k priority=3 ", &limits), PAWL_OK);
  assert_int_equal(limits.memory, UINT64_C(4) << 30);
  assert_int_equal(limits.rate, 1024);
  assert_int_equal(limits.connections, 7);
  assert_string_equal(pwi_key_limits_print(&limits, text),
                      " space=ads memory=4294967296 rate=1024 connections=7 priority=3");
  assert_int_equal(pwi_key_limits_parse("operator", &limits), PAWL_OK);
  assert_true(limits.is_operator && pwi_key_limits_are_any(&limits));
  assert_int_equal(pwi_key_limits_parse("", &limits), PAWL_OK);
  assert_false(pwi_key_limits_are_any(&limits));
  /* The longest line there can be, and back. */
  char longest[2 * PWI_KEY_LINE_MAX];
  snprintf(longest, sizeof longest,
           "read-only space=%063d memory=18446744073709551615 rate=18446744073709551615 "
           "connections=18446744073709551615",
           0);
  assert_int_equal(pwi_key_limits_parse(longest, &limits), PAWL_OK);
  assert_string_equal(pwi_key_limits_print(&limits, text) + 1, longest);
}

static void test_other_limits_are_refused(void **state) {
  (void)state;
  static const char *const texts[] = {
      "operator read-only",
      "operator operator",
      "memory=1G",
      "space=a memory=",
      "space=a memory=0",
      "space=a memory=1x",
      "space=a memory=-1",
      "space=a memory=1GG",
      "rate=",
      "rate=1.5M",
      "connections=",
      "connections=x",
      "priority=0",
      "priority=10",
      "priority=",
      "priority=3 priority=3",
      "rate=1 rate=2",
      "quota=5",
      "rate",
      "memory=99999999999999999999 space=a",
      "rate=18446744073709551615k",
      "space=a space=b",
  };
  for (size_t i = 0; i < LENGTH(texts); i++) {
    struct pwi_key_limits limits = {.rate = 99};
    if (pwi_key_limits_parse(texts[i], &limits) != PAWL_UNSUPPORTED) fail_msg("accepted: %s", texts[i]);
    assert_int_equal(limits.rate, 99);
  }
}

static void test_rings_are_swapped(void **state) {
  (void)state;
  struct pwi_keyring *ring = make_ring(), *other = make_ring();
  struct pwi_key key;
  struct pwi_key_limits limits;
  assert_int_equal(pwi_keyring_add(ring, KEY), PAWL_OK);
  assert_int_equal(pwi_keyring_add(other, OTHER " read-only"), PAWL_OK);
  pwi_keyring_swap(ring, other);
  assert_false(pwi_keyring_copy(ring, NAME, PWI_KEY_NAME_SIZE, &key));
  assert_true(pwi_keyring_copy(other, NAME, PWI_KEY_NAME_SIZE, &key));
  assert_true(pwi_keyring_copy_first(ring, &key));
  assert_int_equal(key.secret[0], 0xff);
  assert_true(pwi_keyring_limits(ring, key.name, PWI_KEY_NAME_SIZE, &limits) && limits.read_only);
  pwi_keyring_destroy(ring);
  pwi_keyring_destroy(other);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_key_is_read_and_named),
      cmocka_unit_test(test_other_texts_are_no_keys),
      cmocka_unit_test(test_a_key_that_ends_early_is_refused),
      cmocka_unit_test(test_new_keys_are_keys_and_differ),
      cmocka_unit_test(test_the_first_key_added_is_first),
      cmocka_unit_test(test_keys_are_found_by_their_whole_name),
      cmocka_unit_test_setup_teardown(test_a_file_brings_all_its_keys_in_order, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_the_line_at_fault_is_named, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_a_long_comment_is_one_line, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_a_key_with_a_long_tail_is_refused, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_a_file_that_others_may_touch_is_forbidden, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_a_path_that_is_not_a_file_is_refused, make_folder, remove_folder),
      cmocka_unit_test(test_limits_stand_behind_a_key),
      cmocka_unit_test(test_a_limit_that_cannot_be_read_spoils_the_key),
      cmocka_unit_test(test_limits_are_printed_as_they_are_read),
      cmocka_unit_test_setup_teardown(test_a_ring_knows_the_limits_of_each_key, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_no_memory_is_said_and_nothing_leaks, make_folder, remove_folder),
      cmocka_unit_test(test_limits_are_read_and_printed),
      cmocka_unit_test(test_other_limits_are_refused),
      cmocka_unit_test(test_rings_are_swapped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
