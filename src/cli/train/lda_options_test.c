/* The command line of `pawl train lda`: what it becomes, what is refused, and how rounds look. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cli/train/lda_files.h"
#include "cli/train/lda_show.h"

static const struct pwi_command command = {.name = "train lda", .arguments = "DATA...", .options = pwi_train_lda_list};

static bool reads(const char *line, struct pwi_train_lda_options *options, int *exit_out) {
  static char words[2048];
  static char *argv[64];
  int argc = 1;
  char *rest = words;
  argv[0] = words + sizeof words - 1;
  snprintf(words, sizeof words, "%s", line);
  for (char *word; (word = strsep(&rest, " "));) argv[argc++] = word;
  argv[argc] = NULL;
  return pwi_train_lda_options_read(options, &command, argc, argv, exit_out);
}

static void test_a_command_line_becomes_options(void **state) {
  (void)state;
  struct pwi_train_lda_options options;
  int exit_code = -1;
  unsetenv("PAWL_ADDRESS");
  assert_true(
      reads("a b --topics 7 --vocab v --held-out h --held-out i --sweeps 9 --alpha .5 --beta 2 --optimise "
            "--staleness 3 --memory 2M --dir d --resume --keep-dir --check --start s --seed 5 --measure-every 4 "
            "--evaluate-every 6 --format uci --skip-bad 8 --workers 1:3 --on-worker-loss stop --threads 2 --out m",
            &options, &exit_code));
  const struct pawl_lda_options *lda = &options.lda;
  assert_int_equal(options.base.data_count, 2);
  assert_int_equal(options.held_out.count, 2);
  assert_string_equal(options.held_out.at[1], "i");
  assert_string_equal(options.vocabulary, "v");
  assert_string_equal(options.directory, "d");
  assert_string_equal(options.start, "s");
  assert_string_equal(options.base.output, "m");
  assert_true(lda->topics == 7 && lda->sweeps == 9 && lda->alpha == 0.5 && lda->beta == 2 && lda->staleness == 3);
  assert_true(lda->optimise && lda->check && lda->resume && options.keep_directory);
  assert_true(lda->memory == 2 << 20 && lda->seed == 5 && lda->measure_every == 4 && lda->evaluate_every == 6);
  assert_true(lda->reading.format == PAWL_DATA_UCI && lda->reading.skip_bad == 8 && lda->method == PAWL_LDA_GIBBS);
  assert_true(lda->workers == 1 && lda->workers_most == 3 && lda->on_loss == PAWL_LOSS_STOP && lda->threads == 2);
  assert_true(reads("a --method svi --batch 3 --kappa 0.6 --offset 0", &options, &exit_code));
  assert_true(lda->method == PAWL_LDA_SVI && lda->sweeps == 1 && lda->batch == 3 && lda->offset == 0);
  assert_true(reads("a --method svi --passes 4 --format text --min-documents 3 --max-share 0.1 --max-words 9 --stop s",
                    &options, &exit_code));
  assert_true(lda->sweeps == 4 && lda->building.least_documents == 3 && lda->building.most_share == 0.1 &&
              lda->building.most == 9 && options.has_building);
}

static void test_what_cannot_be_meant_is_refused(void **state) {
  (void)state;
  static const char *const bad[] = {
      "--check",
      "a --topics 0",
      "a --topics 65001",
      "a --alpha 0",
      "a --beta -1",
      "a --sweeps 0",
      "a --memory much",
      "a --format libsvm",
      "a --format csv",
      "a --method em",
      "a --batch 3",
      "a --kappa 0.7",
      "a --evaluate-every 5",
      "a --max-share 1.5",
      "a --vocab v --max-words 3",
      "a --vocab v --stop s",
      "a --workers 0",
      "a --replicas 2 --servers 2",
      "a --l1 1",
      "a --rounds 5",
  };
  struct pwi_train_lda_options options;
  unsetenv("PAWL_ADDRESS");
  int kept = dup(STDERR_FILENO);
  assert_non_null(freopen("/dev/null", "w", stderr));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    int exit_code = -1;
    if (reads(bad[i], &options, &exit_code) || exit_code != PWI_EXIT_USAGE) fail_msg("'%s' is taken", bad[i]);
  }
  fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
}

/* --- rounds ------------------------------------------------------------------------------------------------------- */

static struct pawl_lda_progress some_progress(void) {
  return (struct pawl_lda_progress){.stage = "sampling",
                                    .sweep = 12,
                                    .sweeps = 500,
                                    .part = 0.024,
                                    .log_likelihood = -8.25,
                                    .perplexity = NAN,
                                    .alpha_sum = 2,
                                    .beta = 0.01,
                                    .tokens = 436000,
                                    .seconds = 3,
                                    .left_s = 75,
                                    .tokens_per_s = 12.3e6,
                                    .workers = 2};
}

static void test_the_line_tells_what_is_known_and_nothing_else(void **state) {
  (void)state;
  char line[PWI_TRAIN_LINE_MAX];
  struct pawl_lda_progress is = some_progress();
  pwi_train_lda_line(&is, line);
  assert_string_equal(line, "sweep 12/500  12.3M tokens/s  likelihood -8.2500  2 workers  left 1:15");
  is.perplexity = 851.23;
  is.left_s = NAN;
  pwi_train_lda_line(&is, line);
  assert_string_equal(line, "sweep 12/500  12.3M tokens/s  likelihood -8.2500  perplexity 851.2  2 workers  3.0 s");
  is = (struct pawl_lda_progress){
      .stage = "vocabulary", .part = 0.5, .log_likelihood = NAN, .perplexity = NAN, .left_s = NAN, .seconds = 1};
  pwi_train_lda_line(&is, line);
  assert_string_equal(line, "vocabulary 50%  1.0 s");
  is.stage = "loading";
  is.part = NAN;
  is.workers = 1;
  is.tokens = 2000;
  pwi_train_lda_line(&is, line);
  assert_string_equal(line, "loading  1 worker  2.00k tokens  1.0 s");
}

static void test_the_log_has_every_worker(void **state) {
  (void)state;
  struct pawl_lda_worker each[2] = {{"node1", 4711, 200, -8.5, 1e6, 3}, {"node2", 4712, 236, NAN, 2e6, 4}};
  struct pawl_lda_progress is = some_progress();
  is.each = each;
  is.each_count = 2;
  json_t *object = pwi_train_lda_json(&is);
  assert_non_null(object);
  assert_int_equal(json_integer_value(json_object_get(object, "sweep")), 12);
  assert_true(json_is_null(json_object_get(object, "perplexity")));
  json_t *workers = json_object_get(object, "each");
  assert_int_equal(json_array_size(workers), 2);
  assert_string_equal(json_string_value(json_object_get(json_array_get(workers, 1), "host")), "node2");
  assert_int_equal(json_integer_value(json_object_get(json_array_get(workers, 0), "pid")), 4711);
  assert_true(json_is_null(json_object_get(json_array_get(workers, 1), "log_likelihood")));
  json_decref(object);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static void write_file(const char *folder, const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static bool prepares(const char *folder, const char *more, struct pwi_train_lda_files *files, int *exit_out) {
  struct pwi_train_lda_options options;
  char line[1024];
  *files = (struct pwi_train_lda_files){.is_named = false};
  snprintf(line, sizeof line, "%s/docs --format ldac --vocab %s/vocab --held-out %s/docs --topics 2 -o %s/m%s", folder,
           folder, folder, folder, more);
  return reads(line, &options, exit_out) && pwi_train_lda_files_init(files, &options, exit_out);
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

static void test_a_directory_is_emptied_only_if_all_in_it_is_ours(void **state) {
  (void)state;
  char folder[] = "/tmp/pawl-lda-XXXXXX", run[64], inner[96], more[96];
  struct pwi_train_lda_files files;
  int exit_code;
  assert_non_null(mkdtemp(folder));
  write_file(folder, "docs", "1 0:2\n1 1:1\n");
  write_file(folder, "vocab", "a\nb\n");
  snprintf(run, sizeof run, "%s/m.run", folder);
  snprintf(inner, sizeof inner, "%s/piece", run);
  assert_true(prepares(folder, "", &files, &exit_code));
  assert_string_equal(files.directory, run);
  assert_false(exists(run)); /* who trains makes it */
  assert_int_equal(mkdir(run, 0777), 0);
  write_file(run, "piece", "x");
  pwi_train_lda_files_undo(&files); /* it was not there before */
  assert_false(exists(run));
  pwi_train_lda_files_fini(&files);

  assert_int_equal(mkdir(run, 0777), 0);
  write_file(run, "piece", "x");
  int kept = dup(STDERR_FILENO);
  assert_non_null(freopen("/dev/null", "w", stderr));
  assert_false(prepares(folder, "", &files, &exit_code)); /* somebody's run */
  assert_int_equal(exit_code, PWI_EXIT_FAILURE);
  pwi_train_lda_files_fini(&files);
  fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);

  assert_true(prepares(folder, " --resume --keep-dir", &files, &exit_code));
  pwi_train_lda_files_undo(&files);
  pwi_train_lda_files_clear(&files);
  assert_true(exists(inner));
  pwi_train_lda_files_fini(&files);
  snprintf(more, sizeof more, " --resume --dir %s", run);
  assert_true(prepares(folder, more, &files, &exit_code));
  pwi_train_lda_files_clear(&files); /* it was named */
  assert_true(exists(inner));
  pwi_train_lda_files_fini(&files);
  assert_true(prepares(folder, " --resume", &files, &exit_code));
  pwi_train_lda_files_clear(&files);
  assert_false(exists(run));
  pwi_train_lda_files_fini(&files);
  snprintf(inner, sizeof inner, "%s/docs", folder);
  unlink(inner);
  snprintf(inner, sizeof inner, "%s/vocab", folder);
  unlink(inner);
  assert_int_equal(rmdir(folder), 0);
}

static void test_out_of_memory_is_a_failure_and_nothing_is_left(void **state) {
  (void)state;
  char folder[] = "/tmp/pawl-lda-XXXXXX", path[64];
  struct pwi_train_lda_files files;
  int exit_code;
  uint64_t failures = 0;
  assert_non_null(mkdtemp(folder));
  write_file(folder, "docs", "1 0:2\n1 1:1\n");
  write_file(folder, "vocab", "a\nb\n");
  int kept = dup(STDERR_FILENO);
  assert_non_null(freopen("/dev/null", "w", stderr));
  assert_true(prepares(folder, "", &files, &exit_code)); /* what is allocated once is not counted */
  pwi_train_lda_files_fini(&files);
  struct pwi_memory_counts before = pwi_memory_counts();
  for (uint64_t n = 0;; n++) {
    exit_code = -1;
    pwi_memory_fail_after(n);
    bool good = prepares(folder, "", &files, &exit_code);
    bool has_failed = pwi_memory_fail_cancel();
    pwi_train_lda_files_fini(&files);
    assert_int_equal(pwi_memory_counts().live, before.live);
    if (!has_failed) {
      assert_true(good);
      break;
    }
    failures++;
    if (!good) assert_int_equal(exit_code, PWI_EXIT_FAILURE);
  }
  fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  assert_true(failures > 5);
  snprintf(path, sizeof path, "%s/docs", folder);
  unlink(path);
  snprintf(path, sizeof path, "%s/vocab", folder);
  unlink(path);
  assert_int_equal(rmdir(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_command_line_becomes_options),
      cmocka_unit_test(test_what_cannot_be_meant_is_refused),
      cmocka_unit_test(test_the_line_tells_what_is_known_and_nothing_else),
      cmocka_unit_test(test_the_log_has_every_worker),
      cmocka_unit_test(test_a_directory_is_emptied_only_if_all_in_it_is_ours),
      cmocka_unit_test(test_out_of_memory_is_a_failure_and_nothing_is_left),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
