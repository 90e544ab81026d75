/* What the tests of whole trainings share: a corpus that is made up, and workers that are processes. */
#ifndef LDA_TRAIN_TEST_H
#define LDA_TRAIN_TEST_H

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "apps/lda/inside.h"
#include "apps/lda/random.h"
#include "apps/common/scene_test.h"

/* --- a corpus ------------------------------------------------------------------------------------------- */

enum { TRUE_TOPICS = 5, WORDS = 200, PROCESSES = 64 };
enum { TOPICS = 8 }; /* some more than there are: with just as many, two of them may share one for long */

struct corpus {
  size_t documents;
  uint64_t tokens, counts[WORDS];
  char path[256], heldout[256];
};

/* Each true topic has 40 words of its own, which differ in frequency; a document has two topics, mostly the
 * first. */
static inline uint32_t draw_word(struct lda_random *random, uint32_t first, uint32_t second) {
  uint32_t topic = lda_below((uint32_t)(lda_draw(random) >> 32), 10) < 7 ? first : second;
  double part = lda_unit(lda_draw(random));
  return topic * (WORDS / TRUE_TOPICS) + (uint32_t)(part * part * (WORDS / TRUE_TOPICS));
}

static inline void write_documents(const char *path, size_t documents, struct lda_random *random,
                                   struct corpus *counted) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  for (size_t d = 0; d < documents; d++) {
    uint32_t counts[WORDS] = {0}, length = 20 + lda_below((uint32_t)(lda_draw(random) >> 32), 40), different = 0;
    uint32_t first = lda_below((uint32_t)(lda_draw(random) >> 32), TRUE_TOPICS);
    if (d % 50 == 49) length = 0; /* a document without words, now and then */
    for (uint32_t i = 0; i < length; i++) counts[draw_word(random, first, (first + 1) % TRUE_TOPICS)]++;
    for (size_t w = 0; w < WORDS; w++) different += counts[w] > 0;
    fprintf(file, "%u", different);
    for (size_t w = 0; w < WORDS; w++) {
      if (counts[w] > 0) fprintf(file, " %zu:%u", w, counts[w]);
      if (counted) counted->counts[w] += counts[w];
    }
    fputc('\n', file);
    if (counted) counted->tokens += length;
  }
  assert_int_equal(fclose(file), 0);
}

static inline void draw_corpus(struct corpus *corpus, size_t documents, uint64_t seed) {
  struct lda_random random = {seed};
  memset(corpus, 0, sizeof *corpus);
  corpus->documents = documents;
  snprintf(corpus->path, sizeof corpus->path, "%s/corpus.ldac", folder);
  snprintf(corpus->heldout, sizeof corpus->heldout, "%s/heldout.ldac", folder);
  write_documents(corpus->path, documents, &random, corpus);
  write_documents(corpus->heldout, 50, &random, NULL);
}

/* --- workers that are processes ------------------------------------------------------------------------- */

static const char *job_name;
static pid_t pids[PROCESSES];
static bool was_killed[PROCESSES];
static size_t pid_count;

static inline pawl_status launch(void *context) {
  (void)context;
  assert_in_range(pid_count, 0, PROCESSES - 1);
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
    execl("/proc/self/exe", "lda_test", pawl_session_address(base), job_name, (char *)NULL);
    _exit(127);
  }
  was_killed[pid_count] = false;
  pids[pid_count++] = pid;
  return pid > 0 ? PAWL_OK : PAWL_IO;
}

static inline int be_worker(const char *address, const char *name) {
  char error[PAWL_LDA_TEXT] = "";
  struct pawl_session *own = open_as(address, true);
  pawl_status status = pawl_lda_work(own, name, PATIENCE, error);
  pawl_session_close(own, PATIENCE);
  return status == PAWL_OK ? 0 : 1;
}

/* Every worker that was not killed ends well, if it is to. */
static inline void reap(bool is_to_end_well) {
  for (size_t i = 0; i < pid_count; i++) {
    int status = 0;
    assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
    if (is_to_end_well && !was_killed[i]) assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  pid_count = 0;
}

/* --- a training ----------------------------------------------------------------------------------------- */

struct outcome {
  struct pawl_lda_model *model;
  struct pawl_lda_result result;
  char error[PAWL_LDA_TEXT], told[8192];
};

static inline void keep_line(void *context, const char *line) {
  struct outcome *outcome = context;
  size_t used = strlen(outcome->told);
  snprintf(outcome->told + used, sizeof outcome->told - used, "%s\n", line);
}

/* A new directory for every training that is not resumed. */
static inline const char *new_directory(void) {
  static char path[300];
  static int number;
  snprintf(path, sizeof path, "%s/run-%d", folder, number++);
  return path;
}

static inline void begin_options(struct pawl_lda_options *options, const struct corpus *corpus, const char *const *path,
                                 const char *name, struct outcome *outcome) {
  pawl_lda_model_destroy(outcome->model);
  memset(outcome, 0, sizeof *outcome);
  pawl_lda_options_init(options);
  (void)corpus;
  options->paths = path;
  options->path_count = 1;
  options->topics = TOPICS;
  options->alpha = 0.2;
  options->sweeps = 60;
  options->check = true;
  options->directory = new_directory();
  options->job = job_name = name;
  options->threads = 1;
  options->start_worker = launch;
  options->tell = keep_line;
  options->context = outcome;
}

static inline pawl_status train(struct pawl_lda_options *options, struct outcome *outcome) {
  pawl_status status = pawl_lda_train(session, options, &outcome->model, &outcome->result, outcome->error);
  reap(status == PAWL_OK);
  return status;
}

static inline void must_train(struct pawl_lda_options *options, struct outcome *outcome) {
  pawl_status status = train(options, outcome);
  if (status) fail_msg("%s: %s\n%s", pawl_status_name(status), outcome->error, outcome->told);
}

/* The sum over topics of each word is its count in the corpus, and the totals are sums of the rows. */
static inline void check_exact(const struct corpus *corpus, const struct outcome *outcome) {
  float row[256];
  double totals[256] = {0};
  struct pawl_lda_about about;
  pawl_lda_model_about(outcome->model, &about);
  assert_int_equal(about.tokens, corpus->tokens);
  assert_true(outcome->result.is_exact);
  for (uint64_t w = 0; w < about.words; w++) {
    double sum = 0;
    pawl_lda_model_get(outcome->model, w, row);
    for (uint32_t k = 0; k < about.topics; k++) {
      sum += (double)row[k];
      totals[k] += (double)row[k];
    }
    assert_float_equal(sum, (double)corpus->counts[w], 0);
  }
  for (uint32_t k = 0; k < about.topics; k++)
    assert_float_equal(totals[k], pawl_lda_model_totals(outcome->model)[k], 0);
}

#endif
