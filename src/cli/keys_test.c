/* Keys out of the environment, and what is said of those that cannot be used. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/testing.h"
#include "cli/cli.h"

static char path[] = "/tmp/pawl-keys-XXXXXX";
static char one[PWI_KEY_TEXT_MAX], two[PWI_KEY_TEXT_MAX];

static int make_keys(void **state) {
  (void)state;
  int file = mkstemp(path);
  if (file < 0) return -1;
  close(file);
  return pwi_key_new(one) || pwi_key_new(two);
}

static int remove_file(void **state) {
  (void)state;
  return unlink(path);
}

static void write_file(const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

static void set(const char *key, const char *file) {
  assert_int_equal(key ? setenv(PWI_CLI_KEY, key, 1) : unsetenv(PWI_CLI_KEY), 0);
  assert_int_equal(file ? setenv(PWI_CLI_KEY_FILE, file, 1) : unsetenv(PWI_CLI_KEY_FILE), 0);
}

static void test_without_variables_there_are_no_keys_and_no_error(void **state) {
  struct pwi_cli_keys keys;
  (void)state;
  set(NULL, NULL);
  pwi_cli_keys_init(&keys);
  assert_null(keys.ring);
  assert_string_equal(keys.from, "");
  assert_string_equal(keys.error, "");
  pwi_cli_keys_fini(&keys);
  set("", "");
  pwi_cli_keys_init(&keys);
  assert_null(keys.ring);
  assert_string_equal(keys.error, "");
}

static void test_the_key_of_the_variable_comes_before_those_of_the_file(void **state) {
  struct pwi_cli_keys keys;
  struct pwi_key key;
  (void)state;
  write_file(two);
  set(one, path);
  pwi_cli_keys_init(&keys);
  assert_string_equal(keys.error, "");
  assert_non_null(keys.ring);
  assert_int_equal(pwi_keyring_count(keys.ring), 2);
  assert_int_equal(pwi_key_parse(one, &key), PAWL_OK);
  assert_string_equal(pwi_keyring_first(keys.ring)->name, key.name);
  assert_null(strstr(keys.from, one + 6)); /* where they come from is shown, what they are is not */
  pwi_cli_keys_fini(&keys);
}

static void expect_error(const char *part) {
  struct pwi_cli_keys keys;
  pwi_cli_keys_init(&keys);
  assert_null(keys.ring);
  assert_non_null(strstr(keys.error, part));
  assert_null(strstr(keys.error, "secret"));
  pwi_cli_keys_fini(&keys);
}

static void test_errors_name_the_variable_or_the_line_and_no_secret(void **state) {
  char text[256];
  (void)state;
  set("pawl1-secret", NULL);
  expect_error(PWI_CLI_KEY " is not a key");
  set(NULL, "/nowhere/at/all");
  expect_error("/nowhere/at/all: cannot be opened");
  set(NULL, path);
  snprintf(text, sizeof text, "# comment\n%s\npawl1-secret\n", one);
  write_file(text);
  expect_error(":3: not a key");
  write_file("# only a comment\n");
  expect_error("no key");
  write_file(one);
  assert_int_equal(chmod(path, 0644), 0);
  expect_error("chmod 600");
  assert_int_equal(chmod(path, 0600), 0);
}

static void test_lack_of_memory_is_an_error_like_others(void **state) {
  (void)state;
  write_file(two);
  set(one, path);
  for (uint64_t n = 0;; n++) {
    struct pwi_cli_keys keys;
    uint64_t live = pwi_memory_counts().live;
    pwi_memory_fail_after(n);
    pwi_cli_keys_init(&keys);
    int failed = pwi_memory_fail_cancel();
    assert_int_equal(keys.ring == NULL, failed);
    assert_int_equal(*keys.error != '\0', failed);
    pwi_cli_keys_fini(&keys);
    assert_int_equal(pwi_memory_counts().live, live);
    if (!failed) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_without_variables_there_are_no_keys_and_no_error),
      cmocka_unit_test(test_the_key_of_the_variable_comes_before_those_of_the_file),
      cmocka_unit_test(test_errors_name_the_variable_or_the_line_and_no_secret),
      cmocka_unit_test(test_lack_of_memory_is_an_error_like_others),
  };
  return cmocka_run_group_tests(tests, make_keys, remove_file);
}
