/* What tests of trainings by workers share: made-up ratings in files, workers that are threads or processes, and models
 * to compare. */
#ifndef BPMF_SHARE_TEST_H
#define BPMF_SHARE_TEST_H

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <pawl/bpmf.h>
#include <pawl/pawl.h>

#include "apps/bpmf/model.h"
#include "apps/common/scene_test.h"

enum { WORKERS_MOST = 8 };

extern char **environ;

static char ratings_path[64], test_path[64];
static const char *const ratings_files[] = {ratings_path}, *const test_files[] = {test_path};

/* Ratings of rank 2 with noise, of about `share` of all pairs; user 0 rates all items, so that each has a rating. One in
 * ten is a test rating. */
struct scene {
  struct pawl_ratings *ratings, *test;
};

static inline struct scene make_scene(uint32_t users, uint32_t items, double share) {
  struct scene scene = {NULL, NULL};
  uint64_t state = 12345;
  snprintf(ratings_path, sizeof ratings_path, "%s/ratings", folder);
  snprintf(test_path, sizeof test_path, "%s/test", folder);
  FILE *train = fopen(ratings_path, "w"), *test = fopen(test_path, "w");
  assert_true(train && test);
  for (uint32_t i = 0; i < users; i++)
    for (uint32_t j = 0; j < items; j++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      double chance = (double)(state >> 40) / (1 << 24), noise = (double)((state >> 20) & 1023) / 1024 - 0.5;
      double value = 3 + sin(i + 1.0) * cos(2.0 * j) + cos(3.0 * i) * sin(j + 2.0) + 0.3 * noise;
      bool is_certain = i == 0 || j == 0;
      if (is_certain || chance < share) fprintf(train, "u%u\tv%u\t%.6g\n", i, j, value);
      if (!is_certain && chance >= share && chance < 1.1 * share) fprintf(test, "u%u\tv%u\t%.6g\n", i, j, value);
    }
  fprintf(test, "u0\tv1\t3\n"); /* of a pair that is a training rating as well */
  assert_int_equal(fclose(train), 0);
  assert_int_equal(fclose(test), 0);
  must(pawl_ratings_read(ratings_files, 1, NULL, &scene.ratings));
  must(pawl_ratings_read(test_files, 1, NULL, &scene.test));
  return scene;
}

static inline void forget_scene(struct scene *scene) {
  pawl_ratings_destroy(scene->ratings);
  pawl_ratings_destroy(scene->test);
}

static inline struct pawl_bpmf_options options_of(uint32_t rank, uint64_t iterations) {
  struct pawl_bpmf_options options;
  pawl_bpmf_options_init(&options);
  options.rank = rank;
  options.iterations = iterations;
  options.threads = 1;
  options.keep = 5;
  return options;
}

static inline struct pawl_bpmf_sharing sharing_of(enum pawl_bpmf_share share, uint32_t workers) {
  struct pawl_bpmf_sharing sharing;
  pawl_bpmf_sharing_init(&sharing);
  sharing.share = share;
  sharing.workers = workers;
  sharing.paths = ratings_files;
  sharing.test_paths = test_files;
  sharing.path_count = sharing.test_path_count = 1;
  return sharing;
}

struct outcome {
  pawl_status status;
  struct pawl_bpmf_model *model;
  struct pawl_bpmf_result result;
  char error[PAWL_BPMF_TEXT];
};

static inline struct outcome train_alone(const struct scene *scene, const struct pawl_bpmf_options *options) {
  struct outcome outcome = {.model = NULL};
  outcome.status =
      pawl_bpmf_train(scene->ratings, scene->test, options, &outcome.model, &outcome.result, outcome.error);
  if (outcome.status) fail_msg("%s", outcome.error);
  return outcome;
}

/* --- workers that are threads ----------------------------------------------------------------------------- */

struct hand {
  pthread_t thread;
  const char *job;
  pawl_status outcome;
  char error[PAWL_BPMF_TEXT];
};

static inline void *labour(void *context) {
  struct hand *hand = context;
  struct pawl_session *own = open_as(pawl_session_address(base), true);
  hand->outcome = pawl_bpmf_work(own, hand->job, PATIENCE, hand->error);
  pawl_session_close(own, PATIENCE);
  return NULL;
}

static inline const char *next_job(void) {
  static unsigned jobs;
  static char job[32];
  snprintf(job, sizeof job, "job%u", ++jobs);
  return job;
}

/* Trains with sharing->workers workers. */
static inline struct outcome train_shared(const struct scene *scene, struct pawl_bpmf_sharing *sharing,
                                          const struct pawl_bpmf_options *options) {
  struct outcome outcome = {.model = NULL};
  struct hand hands[WORKERS_MOST];
  sharing->job = next_job();
  for (uint32_t i = 0; i < sharing->workers; i++) {
    hands[i] = (struct hand){.job = sharing->job};
    assert_int_equal(pthread_create(&hands[i].thread, NULL, labour, &hands[i]), 0);
  }
  outcome.status = pawl_bpmf_train_shared(session, sharing, scene->ratings, scene->test, options, &outcome.model,
                                          &outcome.result, outcome.error);
  for (uint32_t i = 0; i < sharing->workers; i++) pthread_join(hands[i].thread, NULL);
  return outcome;
}

/* --- workers that are processes --------------------------------------------------------------------------- */

/* The program itself, with these arguments, is a worker: see work_as_told. */
static inline pid_t start_process(const char *job) {
  char program[] = "/proc/self/exe", word[] = "worker", address[256], name[64], peers[2] = {opens_peers ? '1' : '0', 0};
  char *words[] = {program, word, address, name, peers, NULL};
  pid_t pid;
  snprintf(address, sizeof address, "%s", pawl_session_address(base));
  snprintf(name, sizeof name, "%s", job);
  assert_int_equal(posix_spawn(&pid, program, NULL, NULL, words, environ), 0);
  return pid;
}

/* Call it first in main. True: this process was a worker. */
static inline bool work_as_told(int count, char **words) {
  char error[PAWL_BPMF_TEXT] = "";
  if (count != 5 || strcmp(words[1], "worker") != 0) return false;
  opens_peers = words[4][0] == '1';
  struct pawl_session *own = open_as(words[2], true);
  (void)!pawl_bpmf_work(own, words[3], PATIENCE, error);
  (void)!pawl_session_close(own, PAWL_SECOND);
  return true;
}

/* Processes that a training has, which kills one of them while it runs. */
struct fleet {
  const char *job;
  pid_t pids[WORKERS_MOST];
  size_t count;
  uint64_t kills_at; /* iteration after which the last process is killed; 0: never */
  uint64_t seen;     /* the last iteration */
  uint64_t repeated; /* iterations that were reported twice */
};

static inline pawl_status add_process(void *context) {
  struct fleet *fleet = context;
  assert_true(fleet->count < WORKERS_MOST);
  fleet->pids[fleet->count++] = start_process(fleet->job);
  return PAWL_OK;
}

static inline void watch_iteration(void *context, const struct pawl_bpmf_progress *progress) {
  struct fleet *fleet = context;
  fleet->repeated += progress->iteration <= fleet->seen;
  fleet->seen = progress->iteration;
  if (fleet->kills_at == 0 || progress->iteration < fleet->kills_at) return;
  fleet->kills_at = 0;
  kill(fleet->pids[fleet->count - 1], SIGKILL);
}

/* Trains with processes that the training starts itself. */
static inline struct outcome train_fleet(const struct scene *scene, struct pawl_bpmf_sharing *sharing,
                                         const struct pawl_bpmf_options *options, struct fleet *fleet) {
  struct outcome outcome = {.model = NULL};
  struct pawl_bpmf_options is = *options;
  fleet->job = sharing->job = next_job();
  sharing->start_worker = add_process;
  is.context = fleet;
  is.progress = watch_iteration;
  outcome.status = pawl_bpmf_train_shared(session, sharing, scene->ratings, scene->test, &is, &outcome.model,
                                          &outcome.result, outcome.error);
  for (size_t i = 0; i < fleet->count; i++) waitpid(fleet->pids[i], NULL, 0);
  return outcome;
}

/* --- comparing -------------------------------------------------------------------------------------------- */

static inline bool same_number(double one, double other) { return one == other || (isnan(one) && isnan(other)); }

/* Bit for bit: rows of all samples, and errors. */
static inline void assert_same(const struct outcome *one, const struct outcome *other, const char *what) {
  if (one->status) fail_msg("%s: %s", what, one->error);
  if (other->status) fail_msg("%s: %s", what, other->error);
  const struct pawl_bpmf_about *about = &one->model->about;
  assert_int_equal(about->samples, other->model->about.samples);
  assert_int_equal(about->iterations, other->model->about.iterations);
  size_t count = about->samples * bpmf_sample_size(about);
  for (size_t i = 0; i < count; i++)
    if (memcmp(&one->model->samples[i], &other->model->samples[i], sizeof(float)) != 0)
      fail_msg("%s: number %zu of %zu of the samples differs: %.9g and %.9g", what, i, count,
               (double)one->model->samples[i], (double)other->model->samples[i]);
  if (!same_number(one->result.test_rmse, other->result.test_rmse) ||
      !same_number(one->result.mean_test_rmse, other->result.mean_test_rmse) ||
      !same_number(one->result.train_rmse, other->result.train_rmse) ||
      !same_number(one->result.mean_train_rmse, other->result.mean_train_rmse))
    fail_msg("%s: errors differ: %.17g %.17g %.17g %.17g and %.17g %.17g %.17g %.17g", what, one->result.test_rmse,
             one->result.mean_test_rmse, one->result.train_rmse, one->result.mean_train_rmse, other->result.test_rmse,
             other->result.mean_test_rmse, other->result.train_rmse, other->result.mean_train_rmse);
}

static inline void forget(struct outcome *outcome) {
  pawl_bpmf_model_destroy(outcome->model);
  outcome->model = NULL;
}

/* --- losses ----------------------------------------------------------------------------------------------- */

/* A worker is killed between two saved states. The model is that of one process, and each iteration is reported once. */
static inline void assert_survives(enum pawl_bpmf_share share, enum pawl_on_loss on_loss) {
  struct scene scene = make_scene(150, 90, 0.2);
  struct pawl_bpmf_options options = options_of(5, 40);
  struct pawl_bpmf_sharing sharing = sharing_of(share, 3);
  struct fleet fleet = {.kills_at = 17};
  struct outcome alone = train_alone(&scene, &options);
  sharing.on_loss = on_loss;
  struct outcome shared = train_fleet(&scene, &sharing, &options, &fleet);
  assert_same(&alone, &shared, "after a loss");
  assert_int_equal(shared.result.workers_lost, 1);
  assert_int_equal(shared.result.workers, on_loss == PAWL_LOSS_REPLACE ? 3 : 2);
  assert_int_equal(fleet.seen, 40);
  assert_int_equal(fleet.repeated, 0);
  assert_true(shared.result.repeated >= 7);
  forget(&alone), forget(&shared);
  forget_scene(&scene);
}

#endif
