/* The verifier against real processes: a worker that records pushes as done and never sends them, one that
 * sends some twice, servers that are killed without a replica, and servers that answer before their
 * replica has the push (`pawl-planted`, see src/protocol/planted.h). All of them must be reported, and an
 * honest worker beside them must not be. */
#include "kit.h"

#define HANG_NS (15 * PWI_HOST_SECOND) /* a pull that takes so long hangs: its server is gone, and not only busy */
#define EARLY_KILLS 8                  /* the first one nearly always suffices */

static const struct pwi_storm_config one_server = {.servers = 1, .replicas = 0};

static struct pwi_storm_verdict run_with(const char *plant) {
  struct pwi_storm_extra extra = {.plant = plant};
  struct pwi_storm *storm = kit_begin(&one_server, 1);
  kit_add(storm, PWI_STORM_WORKER, plant ? &extra : NULL);
  kit_settle(storm);
  kit_await_pushes(storm, 2000);
  return kit_judge(storm);
}

static void check_findings(const struct pwi_storm_verdict *verdict, enum pwi_storm_fault fault) {
  assert_true(verdict->finding_count > 0);
  for (size_t i = 0; i < verdict->finding_count && i < PWI_STORM_FINDINGS_MAX; i++) {
    assert_int_equal(verdict->findings[i].worker, 1); /* and not the honest one */
    assert_int_equal(verdict->findings[i].fault, fault);
    if (verdict->findings[i].first) assert_int_equal(verdict->findings[i].first % 100, 0);
  }
}

static void test_honest_workers_are_clean(void **state) {
  (void)state;
  struct pwi_storm_verdict verdict = run_with(NULL);
  assert_true(pwi_storm_is_clean(&verdict));
  assert_true(verdict.acked >= 2000);
}

static void test_a_push_that_is_acknowledged_and_not_sent_is_reported_as_lost(void **state) {
  (void)state;
  struct pwi_storm_verdict verdict = run_with("early");
  assert_true(verdict.lost > 0);
  assert_int_equal(verdict.doubled, 0);
  check_findings(&verdict, PWI_STORM_LOST);
}

static void test_a_push_that_is_sent_twice_is_reported_as_double(void **state) {
  (void)state;
  struct pwi_storm_verdict verdict = run_with("twice");
  assert_true(verdict.doubled > 0);
  assert_int_equal(verdict.lost, 0);
  check_findings(&verdict, PWI_STORM_DOUBLE);
}

static void test_a_server_that_is_killed_without_a_replica_is_a_loss(void **state) {
  (void)state;
  struct pwi_storm_config config = {.servers = 2, .replicas = kit_replicas(0)};
  struct pwi_storm_verdict verdict;
  struct pwi_storm *storm = kit_begin(&config, 1);
  kit_await_pushes(storm, 2000);
  pwi_storm_kill(storm, kit_member(storm, PWI_STORM_SERVER, 0));
  pwi_storm_kill(storm, kit_member(storm, PWI_STORM_WORKER, 0)); /* else it would wait for the server */
  kit_must(storm, pwi_storm_judge(storm, HANG_NS, &verdict));
  assert_true(verdict.lost > 0);
  assert_int_equal(verdict.doubled, 0);
  pwi_storm_close(storm);
}

/* Workers may end, or wait for ever, when the library reports a loss: that is intended. */
static void kill_until_lost(struct pwi_storm *storm, struct pwi_random *random, const struct pwi_storm_extra *extra) {
  for (int i = 0; i < EARLY_KILLS; i++) {
    pwi_storm_kill(storm, kit_draw(storm, PWI_STORM_SERVER, random));
    kit_add(storm, PWI_STORM_SERVER, extra);
    kit_settle(storm);
    if (!pwi_storm_await_whole(storm, 20 * PWI_HOST_SECOND)) break;
    kit_sleep_ms((unsigned)pwi_random_below(random, 300));
  }
  if (!pwi_storm_calm(storm, 10 * PWI_HOST_SECOND)) printf("%s\n", pwi_storm_problem(storm));
}

static void test_servers_that_answer_before_their_replica_has_it_lose_pushes(void **state) {
  (void)state;
  static const char *const environment[] = {"PAWL_PLANTED=early_ack", NULL};
  char command[PATH_MAX];
  const char *build = getenv("PAWL_BUILD");
  struct pwi_storm_extra extra = {.command = command, .environment = environment};
  struct pwi_storm_config config = {.servers = 3, .replicas = kit_replicas(1)};
  struct pwi_storm_verdict verdict;
  struct pwi_random random;
  snprintf(command, sizeof command, "%s/pawl-planted", build ? build : ".");
  if (access(command, X_OK) != 0) {
    printf("skipped: the build folder has no pawl-planted\n");
    skip();
  }
  pwi_random_init(&random, kit_seed(), 0);
  struct pwi_storm *storm = kit_begin_with(&config, &extra, 4);
  kit_await_pushes(storm, 500);
  kill_until_lost(storm, &random, &extra);
  kit_must(storm, pwi_storm_judge(storm, KIT_PULL_NS, &verdict));
  printf("%llu of %llu are lost\n", (unsigned long long)verdict.lost, (unsigned long long)verdict.acked);
  assert_true(verdict.lost > 0);
  pwi_storm_close(storm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_honest_workers_are_clean),
      cmocka_unit_test(test_a_push_that_is_acknowledged_and_not_sent_is_reported_as_lost),
      cmocka_unit_test(test_a_push_that_is_sent_twice_is_reported_as_double),
      cmocka_unit_test(test_a_server_that_is_killed_without_a_replica_is_a_loss),
      cmocka_unit_test(test_servers_that_answer_before_their_replica_has_it_lose_pushes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
