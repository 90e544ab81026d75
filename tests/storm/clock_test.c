/* labels: nosan
 *
 * The wall clock of one server and of one worker jumps an hour ahead, then an hour back, while they work.
 * Only printed times may depend on it. Uses libfaketime, with the monotonic clock left alone; skipped if
 * it is not installed, and not run under the sanitizers, which must be loaded first. */
#include "kit.h"

#include <glob.h>

static bool find_library(char *path, size_t size) {
  glob_t found;
  bool good = glob("/usr/lib/*/faketime/libfaketimeMT.so.1", 0, NULL, &found) == 0 && found.gl_pathc > 0;
  if (good) snprintf(path, size, "%s", found.gl_pathv[0]);
  globfree(&found);
  return good;
}

static void set_clock(const char *path, const char *offset) {
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  assert_true(fprintf(file, "%s\n", offset) > 0);
  assert_int_equal(fclose(file), 0);
}

/* Checks that the process has loaded the library, and so uses the clock of the file. */
static void check_faked(pid_t pid) {
  char path[64], line[PATH_MAX];
  bool found = false;
  snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
  FILE *file = fopen(path, "re");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) found |= strstr(line, "libfaketime") != NULL;
  fclose(file);
  assert_true(found);
}

static void test_a_wall_clock_that_jumps_by_an_hour_changes_nothing(void **state) {
  (void)state;
  struct pwi_storm_config config = {.servers = 2, .replicas = PWI_STORM_NO_REPLICAS};
  char library[256], preload[300], file[PATH_MAX + 64], clock[PATH_MAX];
  if (!find_library(library, sizeof library)) {
    printf("skipped: libfaketime is not installed\n");
    skip();
  }
  struct pwi_storm *storm = kit_begin(&config, 1);
  snprintf(clock, sizeof clock, "%.*s/clock", (int)sizeof clock - 10, pwi_storm_folder(storm));
  snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library);
  snprintf(file, sizeof file, "FAKETIME_TIMESTAMP_FILE=%s", clock);
  set_clock(clock, "+0");
  const char *const environment[] = {preload, file, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", NULL};
  struct pwi_storm_extra extra = {.environment = environment};
  size_t server = kit_add(storm, PWI_STORM_SERVER, &extra);
  kit_settle(storm);
  size_t worker = kit_add(storm, PWI_STORM_WORKER, &extra);
  kit_settle(storm);
  kit_await_whole(storm);
  check_faked(pwi_storm_pid(storm, server));
  check_faked(pwi_storm_pid(storm, worker));
  static const char *const offsets[] = {"+3600", "+0", "-3600", "+3600"};
  for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
    set_clock(clock, offsets[i]);
    kit_sleep_ms(1200); /* servers report once a second */
    kit_await_pushes(storm, 500);
  }
  kit_await_whole(storm);
  kit_end(storm);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_wall_clock_that_jumps_by_an_hour_changes_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
