/* planted: yes
 *
 * Bugs that are planted in the roles on purpose (protocol/planted.h) are found by the explorer, in the
 * smallest scope that shows them. The order that it prints fails again when it is replayed, and holds
 * without the bug.
 *
 *   PAWL_BUG=name    this one alone
 */
#include "base/testing.h"
#include "sim/explore/explore.h"

struct planted {
  enum pwi_planted bug;
  enum pwi_explore_scenario scenario;
  uint32_t clients, pushes, crashes;
};

/* Two bugs are missing, whose orders are more than the few choices beyond the first order that fit below a
 * bound. duplicate_ack: the links of a client are reset, a log entry is slow, and time passes meanwhile.
 * accept_old_epoch: two log entries of a dead head are in flight while the manager, after its timers,
 * replaces the head, and a push of another client comes first at the new head. Campaigns find both. */
static const struct planted scopes[] = {
    {PWI_PLANTED_EARLY_ACK, PWI_EXPLORE_HANDOVER, 2, 3, 0},  {PWI_PLANTED_FORGET_CLOCKS, PWI_EXPLORE_FILL, 2, 3, 0},
    {PWI_PLANTED_SKIP_ORDER, PWI_EXPLORE_MOVE, 2, 3, 0},     {PWI_PLANTED_PROMOTE_FILLING, PWI_EXPLORE_FILL, 1, 1, 1},
    {PWI_PLANTED_DROP_RETIRED, PWI_EXPLORE_RETIRE, 2, 3, 0},
};

static struct pwi_explore_result found, again;

static void show_nothing(void *context, const char *line) { (void)context, (void)line; }

static bool find(const struct planted *scope) {
  const struct pwi_planted_about *about = pwi_planted_about(scope->bug);
  struct pwi_explore_config config;
  pwi_explore_config_init(&config, scope->scenario, scope->crashes);
  config.clients = scope->clients;
  config.pushes = scope->pushes;
  config.bug = scope->bug;
  assert_int_equal(pwi_explore(&config, &found), PAWL_OK);
  printf("%-17s %s by %s after %llu states, %llu runs, %.1f s: %s\n", about->word,
         found.has_failed ? "found" : "NOT found", pwi_explore_about(scope->scenario)->word,
         (unsigned long long)found.states, (unsigned long long)found.runs, found.seconds, found.failure);
  if (!found.has_failed) return false;
  assert_int_equal(pwi_explore_replay(&config, found.path, found.path_size, show_nothing, NULL, &again), PAWL_OK);
  assert_true(again.has_failed);
  assert_string_equal(again.failure, found.failure);
  config.bug = PWI_PLANTED_NONE;
  pawl_status status = pwi_explore_replay(&config, found.path, found.path_size, show_nothing, NULL, &again);
  assert_true(status == PAWL_INVALID || !again.has_failed); /* without the bug there may be other choices */
  return true;
}

static void test_planted_bugs_are_found(void **state) {
  const char *only = getenv("PAWL_BUG");
  size_t missed = 0;
  (void)state;
  for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++)
    if (!only || strcmp(only, pwi_planted_about(scopes[i].bug)->word) == 0) missed += !find(&scopes[i]);
  assert_int_equal(missed, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_planted_bugs_are_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
