/* Reduce in the simulator: a manager, members, and no servers. Each test is a scene that the applications of
 * reducers.h check from the inside. */
#include "base/testing.h"
#include "reducers.h"

static struct team team;

static void begin(void) { memset(&team, 0, sizeof team); }

static void open_scene(uint64_t seed, uint32_t count) {
  struct pwi_cluster_config config = {.seed = seed, .shared_hosts = seed % 2, .client_grace_ns = 500 * MS};
  team.count = count;
  if (team.iterations == 0) team.iterations = 30;
  if (team.compute_max == 0) team.compute_max = 3 * MS;
  if (getenv("PAWL_SEED") && strtoull(getenv("PAWL_SEED"), NULL, 10) == seed) cluster_print_log();
  team_open(&team, &config);
}

static void end(void) { team_close(&team); }

/* --- modes and graphs ----------------------------------------------------------------------------------- */

static void test_every_input_of_an_iteration_is_used_once(void **state) {
  static const char *const graphs[] = {NULL, "complete", "ring", "star", "root"};
  (void)state;
  for (uint64_t seed = 1; seed <= 35; seed++) {
    begin();
    team.graph = graphs[seed % 5];
    open_scene(seed, 2 + (uint32_t)(seed % 7));
    team_run(&team, 60 * PWI_SIM_SECOND);
    assert_int_equal(team.checked, 30 * team.count);
    assert_int_equal(team.current, team.expected);
    for (uint32_t i = 0; i < team.count; i++) {
      assert_int_equal(team.reducers[i].status, PAWL_OK);
      assert_int_equal(team.reducers[i].adopted, 0);
    }
    end();
  }
}

static void test_one_member_alone_keeps_its_tensors(void **state) {
  (void)state;
  begin();
  open_scene(5, 1);
  team_run(&team, 60 * PWI_SIM_SECOND);
  assert_int_equal(team.checked, 30);
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_input_of_an_iteration_is_used_once),
      cmocka_unit_test(test_one_member_alone_keeps_its_tensors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
