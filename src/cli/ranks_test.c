/* Which process of a launch this is, and the file by which they meet. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing.h"
#include "cli/ranks.h"
#include "host/clock.h"

static const char *const variables[] = {
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "OMPI_MCA_ess_base_jobid",
    "PMIX_NAMESPACE",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_NUM_NODES",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
};

/* An environment of these words NAME=value only. */
static void with(const char *line) {
  char words[512], *rest = words;
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
  snprintf(words, sizeof words, "%s", line);
  for (char *word; (word = strsep(&rest, " "));) {
    char *value = strchr(word, '=');
    if (!value) continue;
    *value = '\0';
    setenv(word, value + 1, 1);
  }
}

static void test_mpirun_numbers_its_processes(void **state) {
  (void)state;
  struct pwi_ranks ranks;
  with("OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_NAMESPACE=prterun-x@1/2");
  assert_true(pwi_ranks_find(&ranks));
  assert_true(ranks.rank == 2 && ranks.size == 4 && ranks.is_one_machine);
  assert_string_equal(ranks.id, "mpirun-prterun-x-1-2");
  with("OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_MCA_ess_base_jobid=77");
  assert_true(pwi_ranks_find(&ranks));
  assert_false(ranks.is_one_machine);
  assert_string_equal(ranks.id, "mpirun-77");
}

static void test_srun_numbers_its_tasks(void **state) {
  (void)state;
  struct pwi_ranks ranks;
  with("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=3 SLURM_STEP_NUM_NODES=1 SLURM_JOB_ID=12 SLURM_STEP_ID=0");
  assert_true(pwi_ranks_find(&ranks));
  assert_true(ranks.rank == 0 && ranks.size == 3 && ranks.is_one_machine);
  assert_string_equal(ranks.id, "srun-12.0");
}

static void test_a_process_alone_is_nobodys_rank(void **state) {
  (void)state;
  struct pwi_ranks ranks;
  static const char *const alone[] = {
      "",
      "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=12", /* a batch script, before srun */
      "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1",
      "OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_SIZE=4",
      "OMPI_COMM_WORLD_RANK=x OMPI_COMM_WORLD_SIZE=4",
      "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=99999999999",
  };
  for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
    with(alone[i]);
    assert_false(pwi_ranks_find(&ranks));
  }
}

static void test_what_the_first_writes_the_others_read(void **state) {
  (void)state;
  struct pwi_ranks ranks = {.id = "mpirun-7"};
  struct pwi_meeting told = {.address = "tcp://127.0.0.1:4711"}, heard;
  struct stat about;
  char folder[] = "/tmp/pawl-ranks-XXXXXX", beside[64], path[128];
  assert_non_null(mkdtemp(folder));
  snprintf(beside, sizeof beside, "%s/a.model", folder);
  assert_true(pwi_meeting_path(&ranks, beside, path, sizeof path));
  assert_string_equal(path + strlen(folder), "/.pawl-mpirun-7");
  assert_int_equal(pwi_meeting_await(path, 0, &heard), PAWL_TIMED_OUT);
  memset(told.key, 'k', PWI_KEY_TEXT_MAX - 1); /* as long as one may be */
  assert_int_equal(pwi_meeting_write(path, &told), PAWL_OK);
  assert_int_equal(stat(path, &about), 0);
  assert_int_equal(about.st_mode & 0777, 0600);
  assert_int_equal(pwi_meeting_await(path, 0, &heard), PAWL_OK);
  assert_string_equal(heard.address, told.address);
  assert_string_equal(heard.key, told.key);
  told.key[0] = '\0';
  assert_int_equal(pwi_meeting_write(path, &told), PAWL_OK);
  assert_int_equal(pwi_meeting_await(path, 0, &heard), PAWL_OK);
  assert_string_equal(heard.key, "");
  unlink(path);
  rmdir(folder);
  assert_int_equal(pwi_meeting_write(path, &told), PAWL_IO);
  assert_true(pwi_meeting_path(&ranks, "a.model", path, sizeof path));
  assert_string_equal(path, ".pawl-mpirun-7");
  assert_false(pwi_meeting_path(&ranks, "a.model", path, 5));
}

static void test_a_file_that_is_something_else_is_refused(void **state) {
  (void)state;
  char path[] = "/tmp/pawl-ranks-XXXXXX", text[1024];
  struct pwi_meeting heard;
  int file = mkstemp(path);
  assert_true(file >= 0);
  memset(text, 'a', sizeof text);
  memcpy(text, "pawl meeting 1\n", 15);
  static const char *const bad[] = {
      "", "\n", "pawl meeting 1", "pawl meeting 2\nx\n\n", "pawl meeting 1\nx\n", "pawl meeting 1\nx\nhalf a key"};
  for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
    bool is_long = i == sizeof bad / sizeof *bad;
    size_t size = is_long ? sizeof text : strlen(bad[i]);
    assert_int_equal(ftruncate(file, 0), 0);
    assert_int_equal(pwrite(file, is_long ? text : bad[i], size, 0), size);
    assert_int_equal(pwi_meeting_await(path, 0, &heard), PAWL_CORRUPT);
  }
  close(file);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_mpirun_numbers_its_processes),
      cmocka_unit_test(test_srun_numbers_its_tasks),
      cmocka_unit_test(test_a_process_alone_is_nobodys_rank),
      cmocka_unit_test(test_what_the_first_writes_the_others_read),
      cmocka_unit_test(test_a_file_that_is_something_else_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
