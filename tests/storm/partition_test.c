/* Network links that are cut, in both directions or in one: every server has a network namespace of its
 * own, and manager and workers share one (tests/storm/harness/cells.h). Needs root, iproute2, veth and
 * bridge devices; else the cases are skipped. */
#include "kit.h"

#define CUT_MS 1500

static struct pwi_storm *begin(void) {
  bool has_replicas = kit_knows("manager", "--replicas");
  struct pwi_storm_config config = {.servers = 3, .replicas = kit_replicas(has_replicas ? 1 : 0), .has_cells = true};
  struct pwi_storm *storm = kit_begin(&config, 2);
  kit_await_pushes(storm, 500);
  return storm;
}

static void end(struct pwi_storm *storm) {
  kit_await_whole(storm);
  kit_await_pushes(storm, 500);
  kit_end(storm);
}

static void test_a_server_that_is_cut_off_does_no_harm(void **state) {
  (void)state;
  struct pwi_storm *storm = begin();
  size_t server = kit_member(storm, PWI_STORM_SERVER, 0);
  kit_must(storm, pwi_storm_cut(storm, server, true));
  kit_sleep_ms(CUT_MS);
  kit_must(storm, pwi_storm_cut(storm, server, false));
  end(storm);
}

/* The server hears everything, but nobody hears it. */
static void test_a_server_whose_answers_are_lost_does_no_harm(void **state) {
  (void)state;
  struct pwi_storm *storm = begin();
  size_t manager = kit_member(storm, PWI_STORM_MANAGER, 0), server = kit_member(storm, PWI_STORM_SERVER, 0);
  kit_must(storm, pwi_storm_lose(storm, server, manager, true));
  kit_sleep_ms(CUT_MS);
  kit_must(storm, pwi_storm_lose(storm, server, manager, false));
  end(storm);
}

/* The server is heard by everybody, but hears nothing from the manager and the workers. */
static void test_a_server_that_hears_nothing_does_no_harm(void **state) {
  (void)state;
  struct pwi_storm *storm = begin();
  size_t manager = kit_member(storm, PWI_STORM_MANAGER, 0), server = kit_member(storm, PWI_STORM_SERVER, 2);
  kit_must(storm, pwi_storm_lose(storm, manager, server, true));
  kit_sleep_ms(CUT_MS);
  kit_must(storm, pwi_storm_lose(storm, manager, server, false));
  end(storm);
}

/* The manager reaches both servers; one direction between the two is silent, and only they know. */
static void test_two_servers_of_which_one_does_not_hear_the_other_do_no_harm(void **state) {
  (void)state;
  struct pwi_storm *storm = begin();
  size_t first = kit_member(storm, PWI_STORM_SERVER, 0), second = kit_member(storm, PWI_STORM_SERVER, 1);
  kit_must(storm, pwi_storm_lose(storm, first, second, true));
  kit_sleep_ms(CUT_MS);
  kit_await_pushes(storm, 500);
  kit_must(storm, pwi_storm_lose(storm, first, second, false));
  end(storm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_server_that_is_cut_off_does_no_harm),
      cmocka_unit_test(test_a_server_whose_answers_are_lost_does_no_harm),
      cmocka_unit_test(test_a_server_that_hears_nothing_does_no_harm),
      cmocka_unit_test(test_two_servers_of_which_one_does_not_hear_the_other_do_no_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
