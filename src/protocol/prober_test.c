/* Probes of nodes that are alive, dead, stopped, or another process, in the simulator. */
#include "base/testing.h"
#include "sim/sim.h"

#include "protocol/prober.h"

#define OK(call) assert_int_equal((call), PAWL_OK)
#define NODES 3

/* A node that listens, greets as `number`, and probes others. */
struct party {
  char name[8];
  uint64_t number, cluster;
  struct pwi_sim_node node;
  struct pwi_net *net;
  struct pwi_greeting greeting;
  struct pwi_prober prober;
  pawl_status hangs_up; /* why it closes each link before it is up at the peer; PAWL_OK: it does not */
  struct pwi_probe told[8];
  size_t told_count;
};

static struct pwi_sim *sim;
static struct party parties[NODES];

static void tell(void *context, const struct pwi_probe *probe) {
  struct party *party = context;
  assert_true(party->told_count < 8);
  party->told[party->told_count++] = *probe;
}

static pawl_status greet(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct party *party = self;
  struct pwi_peering peering;
  (void)link;
  if (party->hangs_up && info->accepted) return party->hangs_up;
  return pwi_greeting_check(&party->greeting, info, &peering);
}

static void link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct party *party = self;
  struct pwi_peering peering;
  OK(pwi_greeting_check(&party->greeting, info, &peering));
  if (!info->accepted) pwi_prober_link_up(&party->prober, link, &peering);
}

static void link_down(void *self, struct pwi_link link, pawl_status why) {
  pwi_prober_link_down(&((struct party *)self)->prober, link, why);
}

static void timer(void *self, struct pwi_timer timer, uint64_t cookie) {
  (void)timer;
  assert_int_equal(cookie, 5);
  pwi_prober_timer(&((struct party *)self)->prober);
}

static const struct pwi_actor actor = {.greet = greet, .link_up = link_up, .link_down = link_down, .timer = timer};

static pawl_status boot(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                        void **self_out) {
  struct party *party = context;
  char address[16];
  snprintf(address, sizeof address, "%s:1", party->name);
  party->net = boot->net;
  party->greeting = (struct pwi_greeting){
      .role = PWI_ROLE_SERVER, .node = party->number, .cluster = party->cluster, .host = party->name};
  pwi_prober_init(&party->prober, boot->net, 5, tell, party);
  *actor_out = &actor;
  *self_out = party;
  OK(pwi_greeting_set(boot->net, &party->greeting));
  return pwi_net_listen(boot->net, address);
}

static void halt(void *context, void *self) {
  (void)self;
  pwi_prober_fini(&((struct party *)context)->prober);
}

static int set_up(void **state) {
  struct pwi_sim_config config;
  (void)state;
  memset(parties, 0, sizeof parties);
  pwi_sim_config_init(&config);
  OK(pwi_sim_create(&config, &sim));
  for (size_t i = 0; i < NODES; i++) {
    struct party *party = &parties[i];
    snprintf(party->name, sizeof party->name, "p%zu", i);
    party->number = i + 1;
    party->cluster = 9;
    struct pwi_sim_program program = {.name = party->name, .boot = boot, .halt = halt, .context = party};
    OK(pwi_sim_node_add(sim, &program, &party->node));
    OK(pwi_sim_start(sim, party->node));
  }
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  pwi_sim_destroy(sim);
  return 0;
}

static void run_for(int64_t duration) { OK(pwi_sim_run_until(sim, pwi_sim_now(sim) + duration)); }

static void begin(uint64_t number) {
  pwi_prober_begin(&parties[0].prober, &(struct pwi_probe){.node = 2, .number = number, .patience_ms = 100}, "p1:1");
}

/* The first node probes the second. */
static enum pwi_verdict try_second(int64_t duration) {
  parties[0].told_count = 0;
  begin(7);
  run_for(duration);
  if (parties[0].told_count == 0) return PWI_VERDICT_NONE;
  assert_int_equal(parties[0].told_count, 1);
  assert_true(parties[0].told[0].node == 2 && parties[0].told[0].number == 7);
  assert_int_equal(parties[0].prober.count, 0);
  return parties[0].told[0].verdict;
}

static void test_a_node_that_answers_is_alive(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) assert_int_equal(try_second(50 * PWI_SIM_MILLISECOND), PWI_VERDICT_ALIVE);
}

static void test_a_node_is_gone_if_no_process_listens(void **state) {
  (void)state;
  pwi_sim_kill(sim, parties[1].node);
  assert_int_equal(try_second(50 * PWI_SIM_MILLISECOND), PWI_VERDICT_GONE);
}

static void test_a_node_is_gone_if_another_listens(void **state) {
  (void)state;
  parties[1].number = 8;
  OK(pwi_sim_restart(sim, parties[1].node));
  assert_int_equal(try_second(50 * PWI_SIM_MILLISECOND), PWI_VERDICT_GONE);
  parties[1].number = 2;
  parties[1].cluster = 10; /* of another cluster */
  OK(pwi_sim_restart(sim, parties[1].node));
  assert_int_equal(try_second(50 * PWI_SIM_MILLISECOND), PWI_VERDICT_GONE);
}

static void test_a_node_that_is_stopped_or_cut_off_is_silent(void **state) {
  (void)state;
  pwi_sim_pause(sim, parties[1].node, PWI_SIM_SECOND);
  assert_int_equal(try_second(99 * PWI_SIM_MILLISECOND), PWI_VERDICT_NONE);
  run_for(10 * PWI_SIM_MILLISECOND);
  assert_int_equal(parties[0].told[0].verdict, PWI_VERDICT_SILENT);
  run_for(2 * PWI_SIM_SECOND);
  assert_int_equal(parties[0].told_count, 1);
  pwi_sim_cut(sim, parties[1].node, parties[0].node);
  assert_int_equal(try_second(200 * PWI_SIM_MILLISECOND), PWI_VERDICT_SILENT);
  pwi_sim_cut(sim, parties[0].node, parties[1].node);
  assert_int_equal(try_second(200 * PWI_SIM_MILLISECOND), PWI_VERDICT_SILENT);
}

static void test_on_a_busy_machine_a_probe_has_more_time(void **state) {
  (void)state;
  pwi_sim_allow(sim, PWI_SIM_SECOND);
  pwi_sim_pause(sim, parties[1].node, 900 * PWI_SIM_MILLISECOND);
  assert_int_equal(try_second(850 * PWI_SIM_MILLISECOND), PWI_VERDICT_NONE);
  run_for(200 * PWI_SIM_MILLISECOND);
  assert_int_equal(parties[0].told[0].verdict, PWI_VERDICT_ALIVE);
}

/* A process that is ending may drop several connections; these do not count as answers. */
static void test_a_link_that_breaks_at_once_is_tried_again(void **state) {
  (void)state;
  parties[1].hangs_up = PAWL_LINK_RESET;
  assert_int_equal(try_second(20 * PWI_SIM_MILLISECOND), PWI_VERDICT_NONE);
  pwi_sim_kill(sim, parties[1].node);
  run_for(20 * PWI_SIM_MILLISECOND);
  assert_int_equal(parties[0].told[0].verdict, PWI_VERDICT_GONE);
}

static void test_a_node_that_rejects_the_link_is_alive(void **state) {
  (void)state;
  parties[1].hangs_up = PAWL_LINK_BUSY;
  assert_int_equal(try_second(50 * PWI_SIM_MILLISECOND), PWI_VERDICT_ALIVE);
}

/* A process that has not joined yet proves nothing. */
static void test_a_process_without_a_number_proves_nothing(void **state) {
  (void)state;
  parties[1].number = 0;
  OK(pwi_sim_restart(sim, parties[1].node));
  assert_int_equal(try_second(200 * PWI_SIM_MILLISECOND), PWI_VERDICT_SILENT);
}

static void test_a_probe_that_is_repeated_goes_on_under_the_new_number(void **state) {
  (void)state;
  pwi_sim_pause(sim, parties[1].node, 150 * PWI_SIM_MILLISECOND);
  begin(7);
  run_for(80 * PWI_SIM_MILLISECOND);
  begin(8);
  run_for(300 * PWI_SIM_MILLISECOND);
  assert_int_equal(parties[0].told_count, 1);
  assert_int_equal(parties[0].told[0].number, 8);
  assert_int_equal(parties[0].told[0].verdict, PWI_VERDICT_ALIVE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_a_node_that_answers_is_alive, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_node_is_gone_if_no_process_listens, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_node_is_gone_if_another_listens, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_node_that_is_stopped_or_cut_off_is_silent, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_on_a_busy_machine_a_probe_has_more_time, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_link_that_breaks_at_once_is_tried_again, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_node_that_rejects_the_link_is_alive, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_process_without_a_number_proves_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_probe_that_is_repeated_goes_on_under_the_new_number, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
