/* Processes that are stopped for five seconds and then continue: a server and a worker, both of which the
 * cluster declares dead in the meantime. No push is lost or doubled. */
#include "kit.h"

#define PAUSE_MS 5000

/* With replicas the others continue without the server; without replicas they wait for it. */
static void test_a_server_that_stands_still_for_five_seconds_does_no_harm(void **state) {
  (void)state;
  bool has_replicas = kit_knows("manager", "--replicas");
  struct pwi_storm_config config = {.servers = 3, .replicas = kit_replicas(has_replicas ? 1 : 0)};
  struct pwi_storm *storm = kit_begin(&config, 2);
  size_t server = kit_member(storm, PWI_STORM_SERVER, 1);
  kit_await_pushes(storm, 500);
  pwi_storm_pause(storm, server, true);
  kit_sleep_ms(PAUSE_MS / 2);
  if (has_replicas) kit_await_pushes(storm, 500);
  kit_sleep_ms(PAUSE_MS / 2);
  pwi_storm_pause(storm, server, false);
  kit_await_whole(storm);
  kit_await_pushes(storm, 500);
  kit_end(storm);
}

/* The worker comes back under another id, finds out which of its pushes are applied, and sends the rest. */
static void test_a_worker_that_stands_still_for_five_seconds_goes_on_where_it_was(void **state) {
  (void)state;
  struct pwi_storm_config config = {.servers = 2, .replicas = PWI_STORM_NO_REPLICAS, .client_grace = "0.5"};
  struct pwi_storm *storm = kit_begin(&config, 2);
  size_t worker = kit_member(storm, PWI_STORM_WORKER, 0);
  kit_await_pushes(storm, 500);
  pwi_storm_pause(storm, worker, true);
  kit_sleep_ms(PAUSE_MS);
  pwi_storm_pause(storm, worker, false);
  kit_sleep_ms(500);
  kit_await_pushes(storm, 500);
  kit_end(storm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_server_that_stands_still_for_five_seconds_does_no_harm),
      cmocka_unit_test(test_a_worker_that_stands_still_for_five_seconds_goes_on_where_it_was),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
