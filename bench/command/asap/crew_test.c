/* Processes that work together: results, a member that fails, and a run that ends as the simulator says. */
#include "crew.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/testing.h"
#include "real.h"

static const struct pwi_command command = {.name = "test"};

struct shared {
  _Atomic uint32_t gate, never;
};

static pawl_status add_up(struct pwi_asap_member *member) {
  struct shared *shared = member->shared;
  uint64_t *result = member->result;
  pwi_asap_meet(member, &shared->gate);
  *result = member->index + atomic_load(&shared->gate) * 100 + *(const uint64_t *)member->task;
  return PAWL_OK;
}

static void test_every_process_has_a_result(void **state) {
  (void)state;
  uint64_t task = 5000;
  struct pwi_asap_crew crew = {.command = &command,
                               .count = 3,
                               .work = add_up,
                               .task = &task,
                               .result_size = sizeof(uint64_t),
                               .shared_size = sizeof(struct shared)};
  assert_true(pwi_asap_crew_run(&crew));
  for (uint32_t i = 0; i < 3; i++) assert_int_equal(*(uint64_t *)pwi_asap_crew_result(&crew, i), 5300 + i);
  pwi_asap_crew_free(&crew);
}

/* The others wait for a gate that the last one never comes to. */
static pawl_status fail_alone(struct pwi_asap_member *member) {
  struct shared *shared = member->shared;
  if (member->index == 2) return PAWL_INVALID;
  pwi_asap_meet(member, &shared->never);
  return PAWL_OK;
}

static pawl_status crash_alone(struct pwi_asap_member *member) {
  if (member->index == 0) kill(getpid(), SIGKILL);
  return fail_alone(member);
}

static void test_a_process_that_fails_ends_all(void **state) {
  (void)state;
  struct pwi_asap_crew crew = {
      .command = &command, .count = 3, .work = fail_alone, .result_size = 8, .shared_size = sizeof(struct shared)};
  assert_false(pwi_asap_crew_run(&crew));
  pwi_asap_crew_free(&crew);
  crew.work = crash_alone;
  assert_false(pwi_asap_crew_run(&crew));
  pwi_asap_crew_free(&crew);
}

/* --- runs ----------------------------------------------------------------------------------------------- */

static struct pwi_asap_problem *make(void) {
  const struct pwi_asap_shape shape = {
      .examples = 600, .features = 60, .per_example = 8, .topics = 1, .noise = 0.05, .lambda = 5e-3, .seed = 3};
  struct pwi_asap_problem *problem;
  assert_int_equal(pwi_asap_generate(&shape, &problem), PAWL_OK);
  assert_int_equal(pwi_asap_solve(problem, 1e-5, 20000), PAWL_OK);
  return problem;
}

static struct pwi_asap_setup setup_of(uint32_t workers) {
  return (struct pwi_asap_setup){.workers = workers,
                                 .graph = PWI_TOPOLOGY_COMPLETE,
                                 .batch = 5,
                                 .rate = 2,
                                 .tolerance = 1e-9, /* all rounds are made */
                                 .look = PWI_ASAP_LOOK,
                                 .rounds = 40,
                                 .step_ns = 200000,
                                 .slow = 1,
                                 .seed = 1};
}

/* Servers add up in another order, and compute the same average but for rounding. */
static void test_processes_compute_what_the_simulator_computes(void **state) {
  (void)state;
  struct pwi_asap_plan plan = {.command = &command, .problem = make()};
  struct pwi_asap_setup setup = setup_of(3);
  struct pwi_asap_outcome simulated, reduced, served;
  char why[256];
  setup.is_whole = true;
  assert_true(pwi_asap_run_real(&plan, &setup, PWI_ASAP_SERVERS, &served));
  for (int i = 0; i < 2; i++) {
    setup.graph = i == 0 ? PWI_TOPOLOGY_RING : PWI_TOPOLOGY_COMPLETE;
    assert_int_equal(pwi_asap_simulate(plan.problem, &setup, &simulated, why, sizeof why), PAWL_OK);
    assert_true(pwi_asap_run_real(&plan, &setup, PWI_ASAP_REDUCE, &reduced));
    assert_int_equal(reduced.rounds, 40);
    assert_int_equal(reduced.steps, 120);
    assert_true(reduced.objective == simulated.objective);
    /* when a worker looks, its last puts may still wait for acknowledgements */
    assert_true(reduced.bytes <= simulated.bytes / 40 * 41 && reduced.bytes >= simulated.bytes / 40 * 39);
    assert_int_equal(reduced.current, reduced.expected);
  }
  assert_float_equal(served.objective, simulated.objective, 1e-5);
  pwi_asap_problem_destroy((struct pwi_asap_problem *)(uintptr_t)plan.problem);
}

static void test_steps_are_counted_in_every_mode(void **state) {
  (void)state;
  struct pwi_asap_plan plan = {.command = &command, .problem = make()};
  for (int mode = PAWL_REDUCE_NOTIFY_ACK; mode <= PAWL_REDUCE_ASYNC; mode++) {
    struct pwi_asap_setup setup = setup_of(3);
    struct pwi_asap_outcome outcome;
    uint64_t sum = 0;
    setup.mode = (enum pawl_reduce_mode)mode;
    setup.seconds = 0.2;
    assert_true(pwi_asap_run_real(&plan, &setup, PWI_ASAP_REDUCE, &outcome));
    assert_int_equal(outcome.expected, 2 * outcome.steps);
    assert_true(outcome.current <= outcome.used && outcome.used <= outcome.expected);
    if (mode == PAWL_REDUCE_NOTIFY_ACK) assert_int_equal(outcome.current, outcome.expected);
    for (size_t i = 0; i < 3; i++) sum += outcome.by_current[i];
    assert_int_equal(sum, outcome.steps);
  }
  pwi_asap_problem_destroy((struct pwi_asap_problem *)(uintptr_t)plan.problem);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_process_has_a_result),
      cmocka_unit_test(test_a_process_that_fails_ends_all),
      cmocka_unit_test(test_processes_compute_what_the_simulator_computes),
      cmocka_unit_test(test_steps_are_counted_in_every_mode),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
