/* Loading shared objects from a directory: all of them, or an explanation. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing.h"
#include "host/function_loader.h"

static char directory[64];

static int make(void **state) {
  (void)state;
  snprintf(directory, sizeof directory, "/tmp/pawl-objects-XXXXXX");
  return mkdtemp(directory) ? 0 : -1;
}

static char *path_of(const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

static void link_to(const char *object, const char *name) {
  char from[4096];
  snprintf(from, sizeof from, "%s/%s", getenv("PAWL_BUILD"), object);
  assert_int_equal(symlink(from, path_of(name)), 0);
}

static void write_file(const char *name, const char *text) {
  FILE *file = fopen(path_of(name), "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static int clear(void **state) {
  const char *names[] = {"a.so", "b.so", "c.so", "readme.txt", ".hidden.so"};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(path_of(names[i]));
  return rmdir(directory);
}

static void refuses(pawl_status wanted, const char *text) {
  struct pwi_host_functions functions;
  struct pwi_run_problem problem = {""};
  pawl_status status = pwi_host_functions_init(&functions, directory, &problem);
  assert_string_equal(pawl_status_name(status), pawl_status_name(wanted));
  if (!strstr(problem.text, text)) fail_msg("'%s' is not in '%s'", text, problem.text);
  assert_int_equal(functions.count, 0);
  assert_int_equal(functions.set.count, 0);
}

static void test_objects_are_loaded_and_other_files_are_not(void **state) {
  struct pwi_host_functions functions;
  struct pwi_run_problem problem;
  (void)state;
  link_to("examples/functions/countmin.so", "a.so");
  link_to("tests/functions/slow.so", "b.so");
  write_file("readme.txt", "nothing to load");
  write_file(".hidden.so", "nor here");
  assert_int_equal(pwi_host_functions_init(&functions, directory, &problem), PAWL_OK);
  assert_int_equal(functions.set.count, 2);
  assert_non_null(pwi_function_named(&functions.set, "countmin"));
  assert_non_null(pwi_function_named(&functions.set, "slow"));
  pwi_host_functions_fini(&functions);
}

static void test_without_a_directory_there_are_no_functions(void **state) {
  struct pwi_host_functions functions;
  struct pwi_run_problem problem;
  (void)state;
  assert_int_equal(pwi_host_functions_init(&functions, NULL, &problem), PAWL_OK);
  assert_int_equal(functions.set.count, 0);
  pwi_host_functions_fini(&functions);
  assert_int_equal(pwi_host_functions_init(&functions, "/nowhere/at/all", &problem), PAWL_NOT_FOUND);
  assert_non_null(strstr(problem.text, "/nowhere/at/all"));
}

static void test_a_file_that_is_no_object_is_named(void **state) {
  (void)state;
  link_to("examples/functions/countmin.so", "a.so");
  write_file("b.so", "this is no object");
  refuses(PAWL_INVALID, "b.so");
}

static void test_an_object_without_functions_is_named(void **state) {
  (void)state;
  link_to("libpawl.so", "c.so");
  refuses(PAWL_INVALID, "exports neither pawl_functions");
}

static void test_two_of_one_name_are_refused(void **state) {
  (void)state;
  link_to("examples/functions/countmin.so", "a.so");
  link_to("examples/functions/countmin.so", "b.so");
  refuses(PAWL_EXISTS, "countmin");
}

static void test_a_file_that_others_may_change_is_not_loaded(void **state) {
  (void)state;
  write_file("a.so", "");
  assert_int_equal(chmod(path_of("a.so"), 0666), 0);
  refuses(PAWL_FORBIDDEN, "a.so");
  assert_int_equal(chmod(path_of("a.so"), 0664), 0);
  refuses(PAWL_FORBIDDEN, "its group");
  assert_int_equal(chmod(directory, 0777), 0);
  refuses(PAWL_FORBIDDEN, "everybody may write");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clear)

/* Only root can change the owner of a file. */
static void test_a_file_of_another_user_is_not_loaded(void **state) {
  (void)state;
  if (geteuid() != 0) skip();
  write_file("a.so", "x");
  assert_int_equal(chown(path_of("a.so"), 65534, 65534), 0);
  refuses(PAWL_FORBIDDEN, "belongs to another user (65534)");
  char elsewhere[64];
  snprintf(elsewhere, sizeof elsewhere, "/tmp/pawl-objects-%ld", (long)getpid());
  assert_int_equal(rename(path_of("a.so"), elsewhere), 0); /* nor through a symbolic link */
  assert_int_equal(symlink(elsewhere, path_of("b.so")), 0);
  refuses(PAWL_FORBIDDEN, "belongs to another user (65534)");
  assert_int_equal(unlink(elsewhere), 0);
  assert_int_equal(unlink(path_of("b.so")), 0);
  assert_int_equal(chown(directory, 65534, 65534), 0);
  refuses(PAWL_FORBIDDEN, "belongs to another user (65534)");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_objects_are_loaded_and_other_files_are_not),
      TEST(test_without_a_directory_there_are_no_functions),
      TEST(test_a_file_that_is_no_object_is_named),
      TEST(test_an_object_without_functions_is_named),
      TEST(test_two_of_one_name_are_refused),
      TEST(test_a_file_that_others_may_change_is_not_loaded),
      TEST(test_a_file_of_another_user_is_not_loaded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
