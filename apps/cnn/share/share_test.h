/* What tests of trainings by workers share: made-up images, workers that are threads, and models to compare. */
#ifndef CNN_SHARE_TEST_H
#define CNN_SHARE_TEST_H

#include <math.h>
#include <pthread.h>

#include <pawl/cnn.h>
#include <pawl/pawl.h>

#include "apps/common/scene_test.h"

#include "apps/cnn/images_test.h"

#define CLOSE 2e-5 /* parameters are of the order of 0.1; float has 6e-8 of each */

enum { SIZE = 16, CLASSES = 4, WORKERS_MOST = 4 };

static inline struct pawl_cnn_options options_of(const char *net) {
  struct pawl_cnn_options options;
  pawl_cnn_options_init(&options);
  options.net = net;
  options.epochs = 2;
  options.batch = 16;
  return options;
}

static char images_path[64], labels_path[64];
static const char *const files[] = {images_path, labels_path};

/* make_images writes these files. */
static inline struct pawl_cnn_sharing sharing_of(enum pawl_cnn_share share, uint32_t workers) {
  struct pawl_cnn_sharing sharing;
  snprintf(images_path, sizeof images_path, "%s/images", folder);
  snprintf(labels_path, sizeof labels_path, "%s/labels", folder);
  pawl_cnn_sharing_init(&sharing);
  sharing.share = share;
  sharing.workers = workers;
  sharing.paths = files;
  sharing.path_count = 2;
  return sharing;
}

struct outcome {
  pawl_status status;
  struct pawl_cnn_model *model;
  struct pawl_cnn_result result;
  char error[PAWL_CNN_TEXT];
};

static inline struct outcome train_alone(const struct pawl_images *images, const struct pawl_cnn_options *options) {
  struct outcome outcome = {.model = NULL};
  outcome.status = pawl_cnn_train(images, NULL, options, &outcome.model, &outcome.result, outcome.error);
  return outcome;
}

struct hand {
  pthread_t thread;
  const char *job;
  bool peers_only;
  pawl_status outcome;
  char error[PAWL_CNN_TEXT];
};

static inline struct pawl_session *open_hand(bool peers_only) {
  struct pawl_session_options options;
  struct pawl_session *opened = NULL;
  pawl_session_options_init(&options);
  options.address = pawl_session_address(base);
  options.listen = "127.0.0.1:0";
  options.peers_only = peers_only;
  options.stays_dead = true;
  must(pawl_session_open(&options, &opened));
  return opened;
}

/* A cluster without servers. */
static inline int open_peers(void **state) {
  (void)state;
  struct pawl_session_options options;
  if (!mkdtemp(folder)) return -1;
  setenv("PAWL_KEY", "pawl1-00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", 1);
  pawl_session_options_init(&options);
  options.peers_only = true;
  must(pawl_session_open(&options, &base));
  session = open_hand(true);
  return 0;
}

static inline void *labour(void *context) {
  struct hand *hand = context;
  struct pawl_session *own = open_hand(hand->peers_only);
  hand->outcome = pawl_cnn_work(own, hand->job, PATIENCE, hand->error);
  pawl_session_close(own, PATIENCE);
  return NULL;
}

/* Trains with sharing->workers workers. */
static inline struct outcome train_shared(const struct pawl_images *images, const struct pawl_images *test,
                                          struct pawl_cnn_sharing *sharing, const struct pawl_cnn_options *options) {
  static unsigned jobs;
  char job[32];
  struct outcome outcome = {.model = NULL};
  struct hand hands[WORKERS_MOST];
  snprintf(job, sizeof job, "job%u", ++jobs);
  sharing->job = job;
  for (uint32_t i = 0; i < sharing->workers; i++) {
    hands[i] = (struct hand){.job = job, .peers_only = sharing->share != PAWL_CNN_SERVERS};
    assert_int_equal(pthread_create(&hands[i].thread, NULL, labour, &hands[i]), 0);
  }
  outcome.status =
      pawl_cnn_train_shared(session, sharing, images, test, options, &outcome.model, &outcome.result, outcome.error);
  for (uint32_t i = 0; i < sharing->workers; i++) pthread_join(hands[i].thread, NULL);
  return outcome;
}

/* The largest difference of parameters. */
static inline double distance(const struct outcome *one, const struct outcome *other) {
  struct pawl_cnn_about about;
  if (one->status) fail_msg("%s", one->error);
  if (other->status) fail_msg("%s", other->error);
  pawl_cnn_model_about(one->model, &about);
  const float *a = pawl_cnn_model_parameters(one->model), *b = pawl_cnn_model_parameters(other->model);
  double most = 0;
  for (size_t i = 0; i < about.parameters; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
  return most;
}

static inline void forget(struct outcome *outcome) { pawl_cnn_model_destroy(outcome->model); }

#endif
