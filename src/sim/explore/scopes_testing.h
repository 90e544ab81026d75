/* Lists of scopes for tests: each is explored, must hold, and must be as large as expected. */
#ifndef PWI_SIM_EXPLORE_SCOPES_TESTING_H
#define PWI_SIM_EXPLORE_SCOPES_TESTING_H

#include "base/testing.h"
#include "sim/explore/explore.h"

struct scope {
  enum pwi_explore_scenario scenario;
  uint32_t clients, pushes, crashes, resets, early;
  bool merge;
  uint64_t states; /* the bound; a search that is to be exhausted must find less */
  bool is_exhausted;
};

static void explore_scope(const struct scope *scope) {
  static struct pwi_explore_result result;
  struct pwi_explore_config config;
  pwi_explore_config_init(&config, scope->scenario, scope->crashes);
  config.clients = scope->clients;
  config.pushes = scope->pushes;
  config.resets = scope->resets;
  config.early = scope->early;
  config.merge = scope->merge;
  config.states_max = scope->states;
  assert_int_equal(pwi_explore(&config, &result), PAWL_OK);
  printf("%-8s %u servers, %u clients, %u pushes, %u crashes, %u resets, %u early%s: %llu states in %llu runs and %.1f "
         "s; %llu ends, %llu with a crash; %s\n",
         pwi_explore_about(scope->scenario)->word, config.servers, config.clients, config.pushes, config.crashes,
         config.resets, config.early, config.merge ? ", merged" : "", (unsigned long long)result.states,
         (unsigned long long)result.runs, result.seconds, (unsigned long long)result.ends,
         (unsigned long long)result.crashes, result.is_exhausted ? "exhausted" : "bound reached");
  if (result.has_failed) {
    char text[4096];
    pwi_explore_path_text(result.path, result.path_size, text, sizeof text);
    fail_msg("%s; to replay it: --replay %s", result.failure, text);
  }
  assert_int_equal(result.is_exhausted, scope->is_exhausted);
  assert_true(result.states > scope->states / 2); /* the queue may be full first */
  assert_true(result.ends > 0);
  assert_true(scope->crashes == 0 || result.crashes > 0);
}

#endif
