/* labels: long nosan
 *
 * Between two servers, both of which the manager and all workers can reach, one direction is silent for a
 * while; then between two others. Only these two notice, and neither may be trusted over the other while
 * one of them lacks a push. Has the requirements of storm.partition. */
#include "kit.h"

#define TIMES 40

static void test_no_push_is_lost_between_servers_that_hear_one_another_one_way_only(void **state) {
  (void)state;
  struct pwi_storm_config config = {.servers = 4, .replicas = kit_replicas(1), .has_cells = true};
  struct pwi_random random;
  pwi_random_init(&random, kit_seed(), 0);
  struct pwi_storm *storm = kit_begin(&config, 3);
  for (int i = 0; i < TIMES; i++) {
    size_t from = kit_draw(storm, PWI_STORM_SERVER, &random), to = from;
    while (to == from) to = kit_draw(storm, PWI_STORM_SERVER, &random);
    kit_must(storm, pwi_storm_lose(storm, from, to, true));
    kit_sleep_ms(100 + (unsigned)pwi_random_below(&random, 1400));
    kit_must(storm, pwi_storm_lose(storm, from, to, false));
    kit_await_whole(storm);
    kit_await_pushes(storm, 100);
  }
  kit_end(storm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_push_is_lost_between_servers_that_hear_one_another_one_way_only),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
