/* Whatever the command prints under --json can be read by a program: one object a line, with the names that are
 * promised. Takes the command from PAWL_COMMAND. */
#include <sys/wait.h>

#include <jansson.h>

#include "base/testing.h"

#define OUTPUT_MAX 65536

static char output[OUTPUT_MAX];

/* Runs `pawl ARGUMENTS` and keeps what it printed; its exit code. */
static int pawl(const char *arguments) {
  char line[4096];
  snprintf(line, sizeof line, "'%s' %s", getenv("PAWL_COMMAND"), arguments);
  FILE *pipe = popen(line, "r");
  assert_non_null(pipe);
  size_t size = fread(output, 1, sizeof output - 1, pipe);
  output[size] = '\0';
  int status = pclose(pipe);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

/* The only line of the output, as an object. */
static json_t *only_object(void) {
  json_error_t error;
  assert_ptr_equal(strchr(output, '\n'), output + strlen(output) - 1);
  json_t *object = json_loads(output, JSON_REJECT_DUPLICATES, &error);
  if (!object) print_message("%s in %s\n", error.text, output);
  assert_true(json_is_object(object));
  return object;
}

static void assert_has(const json_t *object, const char *const *names) {
  for (; *names; names++)
    if (!json_object_get(object, *names)) fail_msg("there is no \"%s\" in %s", *names, output);
}

static void test_version_is_an_object(void **state) {
  (void)state;
  assert_int_equal(pawl("version --json"), 0);
  json_t *object = only_object();
  assert_has(object,
             (const char *[]){"version", "protocol", "compiler", "architecture", "features", "libraries", NULL});
  assert_true(json_is_string(json_object_get(json_object_get(object, "libraries"), "openssl")));
  json_decref(object);
}

static void test_env_is_an_object_whatever_the_environment_holds(void **state) {
  (void)state;
  assert_int_equal(setenv("SLURM_PROCID", "3", 1), 0);
  assert_int_equal(setenv("SLURM_JOB_ID", "\xff\xfe", 1), 0); /* not UTF-8 */
  assert_int_equal(setenv("PAWL_KEY", "nonsense", 1), 0);
  assert_int_equal(pawl("env --json"), 0);
  assert_null(strstr(output, "nonsense"));
  json_t *object = only_object();
  assert_has(object, (const char *[]){"pawl", "machine", "transports", "settings", "launcher", NULL});
  json_t *transports = json_object_get(object, "transports");
  assert_has(transports, (const char *[]){"tcp", "tls", "unix", "ucx", NULL});
  assert_true(json_is_boolean(json_object_get(json_object_get(transports, "ucx"), "available")));
  assert_string_equal(json_string_value(json_object_get(json_object_get(object, "launcher"), "SLURM_PROCID")), "3");
  json_t *keys = json_object_get(json_object_get(object, "settings"), "keys");
  assert_int_equal(json_integer_value(json_object_get(keys, "count")), 0);
  assert_true(json_is_string(json_object_get(keys, "error")));
  json_decref(object);
  unsetenv("SLURM_PROCID");
  unsetenv("SLURM_JOB_ID");
  unsetenv("PAWL_KEY");
}

static void test_key_is_an_object(void **state) {
  (void)state;
  assert_int_equal(pawl("key new --json"), 0);
  json_t *object = only_object();
  assert_int_equal(json_string_length(json_object_get(object, "name")), 16);
  assert_int_equal(json_string_length(json_object_get(object, "key")), 70);
  json_decref(object);
}

static void test_sim_demo_is_the_same_for_the_same_seed(void **state) {
  char hashes[3][32];
  (void)state;
  static const char *const lines[] = {"sim demo --seed 11 --json", "sim demo --json --seed=0xb",
                                      "sim demo -s 12 --json"};
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(pawl(lines[i]), 0);
    json_t *object = only_object();
    assert_has(object, (const char *[]){"seed", "faults", "acknowledged", "events", "events_per_s", NULL});
    assert_int_equal(json_integer_value(json_object_get(object, "lost")), 0);
    assert_true(json_is_true(json_object_get(object, "same_again")));
    snprintf(hashes[i], sizeof hashes[i], "%s", json_string_value(json_object_get(object, "hash")));
    json_decref(object);
  }
  assert_string_equal(hashes[0], hashes[1]);
  assert_string_not_equal(hashes[0], hashes[2]);
}

static void test_planted_bug_ends_with_a_failure(void **state) {
  (void)state;
  int failures = 0;
  for (int seed = 1; seed <= 10; seed++) {
    char line[64];
    snprintf(line, sizeof line, "sim demo --bug --json --seed %d 2>/dev/null", seed);
    int exit_code = pawl(line);
    json_t *object = only_object();
    assert_int_equal(exit_code, json_integer_value(json_object_get(object, "lost")) > 0);
    failures += exit_code;
    json_decref(object);
  }
  assert_true(failures > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_version_is_an_object),
      cmocka_unit_test(test_env_is_an_object_whatever_the_environment_holds),
      cmocka_unit_test(test_key_is_an_object),
      cmocka_unit_test(test_sim_demo_is_the_same_for_the_same_seed),
      cmocka_unit_test(test_planted_bug_ends_with_a_failure),
  };
  if (!getenv("PAWL_COMMAND")) {
    print_message("skipped: PAWL_COMMAND does not name the command\n");
    return 77;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
