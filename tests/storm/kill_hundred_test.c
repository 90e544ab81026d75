/* labels: long nosan
 * timeout: 1800
 * alone: yes
 *
 * A hundred servers are killed with SIGKILL, one after another, while four workers push continuously; the
 * cluster is complete again before the next kill. Every tenth time a worker is killed, too. */
#include "kit.h"

static void test_a_hundred_kills_in_a_row_lose_nothing(void **state) {
  (void)state;
  struct pwi_storm_config config = {.servers = 4, .replicas = kit_replicas(1)};
  struct pwi_random random;
  pwi_random_init(&random, kit_seed(), 0);
  struct pwi_storm *storm = kit_begin(&config, 4);
  for (int i = 0; i < 10; i++) {
    kit_kill_servers(storm, &random, 10);
    pwi_storm_kill(storm, kit_draw(storm, PWI_STORM_WORKER, &random));
    kit_add(storm, PWI_STORM_WORKER, NULL);
    kit_settle(storm);
  }
  kit_end(storm);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_hundred_kills_in_a_row_lose_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
