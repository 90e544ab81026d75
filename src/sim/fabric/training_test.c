#include "sim/fabric/training.h"

#include <math.h>

#include "base/memory.h"
#include "base/testing.h"

#define RATE 1e9

static struct pwi_training_config config_of(const struct pwi_training_job *jobs, size_t count) {
  struct pwi_training_config config = {.seed = 1, .jobs = jobs, .job_count = count};
  pwi_fabric_fat_tree(8, RATE, &config.shape); /* 128 hosts */
  config.shape.even = true;
  return config;
}

static struct pwi_training_result run(const struct pwi_training_config *config) {
  struct pwi_training_result result;
  assert_int_equal(pwi_training_run(config, &result), PAWL_OK);
  return result;
}

static double seconds(const struct pwi_training_config *config) {
  struct pwi_training_result result = run(config);
  pwi_free(result.link_bytes);
  return (double)result.ends[0] * 1e-9;
}

static void near(double value, double expected, double part) {
  if (fabs(value - expected) > part * expected) fail_msg("%g instead of %g", value, expected);
}

/* 60 workers send a quarter of 1 GB to each of 4 servers: each server's link takes 15 s, up and down. */
static void test_without_a_tree_the_links_of_servers_decide(void **state) {
  (void)state;
  struct pwi_training_job job = {.workers = 60, .servers = 4, .bytes = RATE, .compute_ns = 5000000000, .rounds = 2};
  struct pwi_training_config config = config_of(&job, 1);
  near(seconds(&config), 2 * (5 + 15 + 15), 0.02);
}

/* By stream, each worker receives what its children send, at most 2 GB up with fixed aggregators; with rotated ones
 * about 1 GB, and it sends 1 GB in any case. */
static void test_a_binary_tree_takes_as_long_as_its_busiest_aggregator(void **state) {
  (void)state;
  struct pwi_training_job job = {
      .workers = 60, .servers = 20, .bytes = RATE, .tree = PWI_TREE_DEGREE, .degree = 2, .streams = true, .rounds = 1};
  struct pwi_training_config config = config_of(&job, 1);
  near(seconds(&config), 2 + 2, 0.02);
  job.rotates = true;
  near(seconds(&config), 1.1 + 1.1, 0.15);
  job.streams = false;
  double by_message = seconds(&config);
  assert_true(by_message > 2 && by_message < 6);
}

/* Every worker sends to one parent, and every server receives from its roots: so much leaves the hosts, whatever the
 * tree. */
static void test_every_worker_sends_once_to_each_shard(void **state) {
  (void)state;
  for (int tree = 0; tree < PWI_TREES; tree++)
    for (int by_stream = 0; by_stream <= 1; by_stream++) {
      struct pwi_training_job job = {.workers = 100,
                                     .servers = 7,
                                     .bytes = 7e6,
                                     .tree = (enum pwi_tree)tree,
                                     .degree = 3,
                                     .rotates = true,
                                     .streams = by_stream,
                                     .rounds = 1};
      struct pwi_training_config config = config_of(&job, 1);
      struct pwi_training_result result = run(&config);
      double up = 0, down = 0;
      for (uint32_t i = 0; i < 2 * pwi_fabric_hosts(&config.shape); i++)
        *(pwi_fabric_link(&config.shape, i).is_down ? &down : &up) += result.link_bytes[i];
      near(up, 2 * 100 * 7e6, 1e-6);
      near(down, up, 1e-6);
      pwi_free(result.link_bytes);
    }
}

/* Two jobs on the same servers' links: the one of the higher class is as fast as alone, and both together take no
 * longer. */
static void test_a_higher_class_is_as_fast_as_alone(void **state) {
  (void)state;
  struct pwi_training_job jobs[2] = {
      {.workers = 128, .servers = 64, .bytes = RATE, .rounds = 1},
      {.workers = 128, .servers = 64, .bytes = RATE, .rounds = 1, .class = 1},
  };
  struct pwi_training_config config = config_of(jobs, 2), alone = config_of(jobs + 1, 1);
  config.grain_ns = alone.grain_ns = 10000000;
  struct pwi_training_result both = run(&config), one = run(&alone);
  jobs[1].class = 0;
  struct pwi_training_result fair = run(&config);
  near((double)both.ends[1], (double)one.ends[0], 0.1);
  assert_true(fair.ends[1] > both.ends[1] * 5 / 4);
  assert_true(both.ends[0] < fair.ends[0] * 5 / 4);
  pwi_free(both.link_bytes);
  pwi_free(one.link_bytes);
  pwi_free(fair.link_bytes);
}

static void test_what_cannot_run_is_refused(void **state) {
  (void)state;
  struct pwi_training_result result;
  struct pwi_training_job job = {.workers = 129, .servers = 1, .bytes = 1, .rounds = 1};
  struct pwi_training_config config = config_of(&job, 1);
  assert_int_equal(pwi_training_run(&config, &result), PAWL_INVALID);
  job.workers = 128;
  job.tree = PWI_TREE_DEGREE;
  job.degree = 1;
  assert_int_equal(pwi_training_run(&config, &result), PAWL_INVALID);
  job.degree = 2;
  job.servers = PWI_TRAINING_SERVERS_MAX + 1;
  assert_int_equal(pwi_training_run(&config, &result), PAWL_TOO_LARGE);
}

static void test_each_allocation_may_fail(void **state) {
  (void)state;
  struct pwi_training_job job = {.workers = 3, .servers = 2, .bytes = 1, .tree = PWI_TREE_RACK, .rounds = 1};
  struct pwi_training_config config = config_of(&job, 1);
  struct pwi_memory_counts before = pwi_memory_counts();
  unsigned failures = 0;
  for (uint64_t n = 0;; n++) {
    struct pwi_training_result result = {.link_bytes = NULL};
    pwi_memory_fail_after(n);
    pawl_status status = pwi_training_run(&config, &result);
    bool has_failed = pwi_memory_fail_cancel() == 1;
    assert_int_equal(status, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
    pwi_free(result.link_bytes);
    assert_int_equal(pwi_memory_counts().live, before.live);
    failures += has_failed;
    if (!has_failed) break;
  }
  assert_true(failures >= 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_without_a_tree_the_links_of_servers_decide),
      cmocka_unit_test(test_a_binary_tree_takes_as_long_as_its_busiest_aggregator),
      cmocka_unit_test(test_every_worker_sends_once_to_each_shard),
      cmocka_unit_test(test_a_higher_class_is_as_fast_as_alone),
      cmocka_unit_test(test_what_cannot_run_is_refused),
      cmocka_unit_test(test_each_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
