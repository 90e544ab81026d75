/* The simulation itself: time, timers, lives of nodes, the trace, the fabric interface, and lack of
 * memory. */
#include "base/memory.h"
#include "base/testing.h"
#include "sim/puppet.h"
#include "sim/sim.h"

#define MS PWI_SIM_MILLISECOND

static struct pwi_sim *sim;
static struct puppet a, b;

static void begin_seed(uint64_t seed) {
  struct pwi_sim_config config;
  pwi_sim_config_init(&config);
  config.seed = seed;
  memset(&a, 0, sizeof a);
  memset(&b, 0, sizeof b);
  assert_int_equal(pwi_sim_create(&config, &sim), PAWL_OK);
  assert_int_equal(puppet_start(&a, sim, "a", NULL), PAWL_OK);
  assert_int_equal(puppet_start(&b, sim, "b", NULL), PAWL_OK);
}

static void run_for(int64_t duration) {
  assert_int_equal(pwi_sim_run_until(sim, pwi_sim_now(sim) + duration), PAWL_OK);
}

static void test_timers_fire_in_order_and_cancelled_ones_do_not(void **state) {
  (void)state;
  begin_seed(1);
  int64_t now = pwi_net_now(a.net);
  struct pwi_timer timers[100], extra;
  for (uint64_t i = 0; i < 100; i++)
    assert_int_equal(pwi_net_timer_set(a.net, now + (int64_t)(100 - i) / 10 * MS, 100 - i, &timers[i]), PAWL_OK);
  for (size_t i = 0; i < 100; i += 3) pwi_net_timer_cancel(a.net, timers[i]);
  run_for(0);
  /* 1 to 9 are due at the same time; 1, 4 and 7 were cancelled */
  assert_int_equal(puppet_count(&a, NOTE_TIMER), 6);
  run_for(20 * MS);
  assert_int_equal(puppet_count(&a, NOTE_TIMER), 66);
  for (size_t i = 1; i < 66; i++) {
    const struct note *before = puppet_find(&a, NOTE_TIMER, i - 1), *note = puppet_find(&a, NOTE_TIMER, i);
    assert_true(note->value / 10 >= before->value / 10);
    /* in the order of setting */
    if (note->value / 10 == before->value / 10) assert_true(note->value < before->value);
  }
  assert_int_equal(pwi_net_timer_set(a.net, now, 7, &extra), PAWL_OK);
  pwi_net_timer_cancel(a.net, timers[0]); /* long expired, and its slot is reused */
  run_for(MS);
  assert_int_equal(puppet_count(&a, NOTE_TIMER), 67);
  pwi_sim_destroy(sim);
}

/* Cancelled timers far ahead are removed from the heap; the others keep their order. */
static void test_many_cancelled_timers_change_nothing(void **state) {
  (void)state;
  begin_seed(1);
  int64_t now = pwi_net_now(a.net);
  for (uint64_t i = 0; i < 20000; i++) {
    struct pwi_timer timer;
    assert_int_equal(pwi_net_timer_set(a.net, now + 100 * MS + (int64_t)(i * 7919 % 20000), i, &timer), PAWL_OK);
    if (i % 10) pwi_net_timer_cancel(a.net, timer);
  }
  run_for(200 * MS);
  assert_int_equal(puppet_count(&a, NOTE_TIMER), 2000);
  for (size_t i = 1; i < 2000; i++) assert_true(a.notes[i].time >= a.notes[i - 1].time);
  pwi_sim_destroy(sim);
}

static void note_time(void *context) { *(int64_t *)context = pwi_net_now(a.net); }

/* A clock that drifts is monotonic, runs at another rate, and its timers fire neither early nor a microsecond late. */
static void test_clocks_run_at_rates_of_their_own(void **state) {
  (void)state;
  bool is_fast = false, is_slow = false;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    struct pwi_sim_config config;
    struct pwi_timer timer;
    pwi_sim_config_init(&config);
    config.seed = seed;
    config.clock_drift_ppm = 100000;
    memset(&a, 0, sizeof a);
    assert_int_equal(pwi_sim_create(&config, &sim), PAWL_OK);
    assert_int_equal(puppet_start(&a, sim, "a", NULL), PAWL_OK);
    run_for(PWI_SIM_SECOND + (int64_t)seed * 7919);
    int64_t before = pwi_net_now(a.net), after = 0, at = before + 123456789, begin = pwi_sim_now(sim);
    assert_int_equal(pwi_sim_call_at(sim, pwi_sim_now(sim) + PWI_SIM_SECOND, note_time, &after), PAWL_OK);
    assert_int_equal(pwi_net_timer_set(a.net, at, 1, &timer), PAWL_OK);
    run_for(2 * PWI_SIM_SECOND);
    int64_t passed = after - before; /* on the node's clock, in one second */
    double fired = (double)(puppet_find(&a, NOTE_TIMER, 0)->time - begin) * (double)passed / 1e9;
    assert_true(passed >= 900 * MS && passed <= 1100 * MS);
    is_fast |= passed > 1010 * MS;
    is_slow |= passed < 990 * MS;
    assert_true(fired >= 123456788 && fired < 123457789);
    pwi_sim_destroy(sim);
  }
  assert_true(is_fast && is_slow);
}

static void test_a_second_pause_does_not_shorten_the_first(void **state) {
  (void)state;
  struct pwi_timer timer;
  begin_seed(1);
  pwi_sim_pause(sim, a.node, 100 * MS);
  pwi_sim_pause(sim, a.node, 10 * MS);
  assert_int_equal(pwi_net_timer_set(a.net, pwi_net_now(a.net) + MS, 1, &timer), PAWL_OK);
  run_for(90 * MS);
  assert_int_equal(puppet_count(&a, NOTE_TIMER), 0);
  pwi_sim_pause(sim, a.node, 50 * MS);
  run_for(20 * MS);
  assert_int_equal(puppet_count(&a, NOTE_TIMER), 0);
  run_for(40 * MS);
  assert_int_equal(puppet_count(&a, NOTE_TIMER), 1);
  pwi_sim_destroy(sim);
}

static void test_waking_once_or_often_is_one_call(void **state) {
  (void)state;
  begin_seed(1);
  pwi_net_wake(a.net);
  pwi_net_wake(a.net);
  run_for(MS);
  assert_int_equal(puppet_count(&a, NOTE_WOKEN), 1);
  pwi_net_wake(a.net);
  run_for(MS);
  assert_int_equal(puppet_count(&a, NOTE_WOKEN), 2);
  assert_int_equal(pwi_net_poll(a.net, 0), PAWL_UNSUPPORTED);
  pwi_sim_destroy(sim);
}

static void test_every_incarnation_has_a_clock_of_its_own(void **state) {
  (void)state;
  begin_seed(1);
  int64_t first = pwi_net_now(a.net);
  assert_int_not_equal(first, pwi_net_now(b.net));
  run_for(5 * MS);
  assert_int_equal(pwi_net_now(a.net), first + 5 * MS);
  assert_int_equal(pwi_sim_restart(sim, a.node), PAWL_OK);
  assert_int_not_equal(pwi_net_now(a.net), first + 5 * MS);
  assert_int_equal(a.boots, 2);
  assert_int_equal(a.halts, 1);
  pwi_sim_destroy(sim);
}

static void test_a_killed_node_hears_nothing_until_it_is_started(void **state) {
  (void)state;
  begin_seed(1);
  struct pwi_timer timer;
  assert_int_equal(pwi_net_timer_set(a.net, pwi_net_now(a.net) + MS, 1, &timer), PAWL_OK);
  pwi_sim_kill(sim, a.node);
  pwi_sim_kill(sim, a.node);
  assert_false(pwi_sim_node_is_up(sim, a.node));
  assert_null(pwi_sim_node_net(sim, a.node));
  assert_int_equal(pwi_sim_start(sim, a.node), PAWL_OK);
  assert_int_equal(pwi_sim_start(sim, a.node), PAWL_EXISTS);
  run_for(10 * MS);
  assert_int_equal(a.note_count, 0);
  pwi_sim_destroy(sim);
  assert_int_equal(a.halts, 2);
}

static void kill_the_receiver(struct puppet *puppet, struct pwi_link link, const struct pwi_message *message) {
  (void)link, (void)message;
  pwi_sim_kill(puppet->sim, puppet->node);
  assert_true(pwi_sim_node_is_up(puppet->sim, puppet->node));
}

static void test_a_kill_from_inside_a_callback_waits_for_its_end(void **state) {
  (void)state;
  begin_seed(1);
  struct pwi_link link;
  b.on_message = kill_the_receiver;
  assert_int_equal(pwi_net_connect(a.net, "b:7000", &link), PAWL_OK);
  run_for(50 * MS);
  assert_int_equal(puppet_send(&a, PWI_LANE_LINK, 1, "x", 1, 0), PAWL_OK);
  run_for(50 * MS);
  assert_false(pwi_sim_node_is_up(sim, b.node));
  assert_true(puppet_find(&b, NOTE_MESSAGE, 0)->ended);
  assert_int_equal(puppet_find(&a, NOTE_DOWN, 0)->status, PAWL_LINK_RESET);
  pwi_sim_destroy(sim);
}

static bool no_message_yet(void *context) { return puppet_count(context, NOTE_MESSAGE) == 0; }

static void test_running_while_something_is_true(void **state) {
  (void)state;
  begin_seed(1);
  struct pwi_link link;
  assert_int_equal(pwi_sim_run_while(sim, no_message_yet, &b, 10 * MS), PAWL_TIMED_OUT);
  assert_int_equal(pwi_sim_now(sim), 10 * MS);
  assert_int_equal(pwi_net_connect(a.net, "b:7000", &link), PAWL_OK);
  run_for(50 * MS);
  assert_int_equal(puppet_send(&a, PWI_LANE_LINK, 1, "x", 1, 0), PAWL_OK);
  assert_int_equal(pwi_sim_run_while(sim, no_message_yet, &b, 1000 * MS), PAWL_OK);
  assert_true(pwi_sim_now(sim) < 100 * MS);
  pwi_sim_destroy(sim);
}

static void test_a_failure_ends_the_run_for_ever(void **state) {
  (void)state;
  begin_seed(1);
  assert_null(pwi_sim_failure(sim));
  pwi_sim_fail(sim, PAWL_CORRUPT, "item %d is lost", 7);
  pwi_sim_fail(sim, PAWL_IO, "this comes second");
  assert_int_equal(pwi_sim_run_until(sim, MS), PAWL_CORRUPT);
  assert_int_equal(pwi_sim_step(sim), PAWL_CORRUPT);
  assert_string_equal(pwi_sim_failure(sim), "item 7 is lost");
  pwi_sim_destroy(sim);
}

/* --- addresses ------------------------------------------------------------------------------------------ */

static void test_an_address_belongs_to_one_node_at_a_time(void **state) {
  (void)state;
  begin_seed(1);
  assert_int_equal(pwi_net_listen(b.net, "a:7000"), PAWL_NODE_ADDRESS);
  assert_int_equal(pwi_net_listen(b.net, "a:7000-7001"), PAWL_OK);
  assert_int_equal(pwi_net_listen(b.net, "nonsense"), PAWL_INVALID);
  pwi_sim_kill(sim, a.node);
  assert_int_equal(pwi_net_listen(b.net, "a:7000"), PAWL_OK);
  assert_string_equal(pwi_net_address(b.net), "tcp://b:7000");
  /* its boot function wants the address back */
  assert_int_equal(pwi_sim_start(sim, a.node), PAWL_NODE_ADDRESS);
  assert_false(pwi_sim_node_is_up(sim, a.node));
  pwi_sim_destroy(sim);
}

static struct pwi_net *free_net;

static pawl_status boot_anywhere(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                                 void **self_out) {
  free_net = boot->net;
  *actor_out = &puppet_actor;
  *self_out = context;
  return pwi_net_listen(boot->net, "0.0.0.0:0");
}

static void test_any_port_of_every_interface_can_be_connected_to(void **state) {
  (void)state;
  begin_seed(1);
  struct pwi_sim_node node;
  struct pwi_link link;
  struct pwi_sim_program program = {.name = "c", .boot = boot_anywhere, .context = &b};
  assert_int_equal(pwi_sim_node_add(sim, &program, &node), PAWL_OK);
  assert_int_equal(pwi_sim_node_add(sim, &program, &node), PAWL_EXISTS);
  assert_int_equal(pwi_sim_start(sim, node), PAWL_OK);
  assert_memory_equal(pwi_net_address(free_net), "tcp://c:", 8);
  assert_int_equal(pwi_net_connect(a.net, pwi_net_address(free_net), &link), PAWL_OK);
  run_for(50 * MS);
  assert_int_equal(puppet_count(&a, NOTE_UP), 1);
  pwi_sim_destroy(sim);
}

/* --- the fabric interface ------------------------------------------------------------------------------- */

struct toll {
  unsigned asked;
  size_t bytes;
};

/* One nanosecond per byte, determined in two steps. */
static int64_t toll_time(void *context, const struct pwi_sim_packet *packet, int64_t now, struct pwi_random *random) {
  struct toll *toll = context;
  (void)now, (void)random;
  toll->asked += packet->asked > 0;
  toll->bytes += packet->asked ? 0 : packet->size;
  return packet->given + (int64_t)(packet->asked ? packet->size : packet->size / 2);
}

static void test_a_fabric_decides_when_messages_arrive(void **state) {
  (void)state;
  struct toll toll = {0};
  struct pwi_sim_fabric fabric = {.delivery_time = toll_time, .asks_again = true, .context = &toll};
  struct pwi_sim_config config;
  pwi_sim_config_init(&config);
  config.fabric = &fabric;
  config.split_chance = 0;
  memset(&a, 0, sizeof a);
  memset(&b, 0, sizeof b);
  assert_int_equal(pwi_sim_create(&config, &sim), PAWL_OK);
  assert_int_equal(puppet_start(&a, sim, "a", NULL), PAWL_OK);
  assert_int_equal(puppet_start(&b, sim, "b", NULL), PAWL_OK);
  struct pwi_link link;
  assert_int_equal(pwi_net_connect(a.net, "b:7000", &link), PAWL_OK);
  run_for(MS);
  uint8_t body[1000] = {0};
  int64_t given = pwi_sim_now(sim);
  assert_int_equal(puppet_send(&a, PWI_LANE_LINK, 1, body, sizeof body, 0), PAWL_OK);
  run_for(MS);
  assert_int_equal(puppet_find(&b, NOTE_MESSAGE, 0)->time, given + 1064);
  assert_true(toll.asked > 0);
  assert_true(toll.bytes >= 1064);
  pwi_sim_destroy(sim);
}

/* --- bad configuration, no memory ----------------------------------------------------------------------- */

static void test_a_configuration_that_makes_no_sense_is_refused(void **state) {
  (void)state;
  struct pwi_sim_config config;
  pwi_sim_config_init(&config);
  config.link.max_ns = 0;
  assert_int_equal(pwi_sim_create(&config, &sim), PAWL_INVALID);
  pwi_sim_config_init(&config);
  config.limits.silence_ns = config.limits.beat_ns;
  assert_int_equal(pwi_sim_create(&config, &sim), PAWL_INVALID);
  pwi_sim_destroy(NULL);
}

/* A short life with one failing allocation. True if one failed. */
static bool live_with_failure(uint64_t n) {
  static uint8_t body[20000];
  struct pwi_sim_config config;
  struct pwi_link link;
  struct pwi_timer timer;
  pwi_sim_config_init(&config);
  memset(&a, 0, sizeof a);
  memset(&b, 0, sizeof b);
  sim = NULL;
  pwi_memory_fail_after(n);
  pawl_status status = pwi_sim_create(&config, &sim);
  if (!status) status = puppet_start(&a, sim, "a", NULL);
  if (!status) status = puppet_start(&b, sim, "b", NULL);
  if (!status) status = pwi_net_hello_set(a.net, "hello", 5);
  if (!status) status = pwi_net_timer_set(a.net, 0, 1, &timer);
  if (!status) status = pwi_net_connect(a.net, "b:7000", &link);
  if (!status) status = pwi_sim_run_until(sim, 50 * MS);
  if (!status && a.link.id) status = puppet_send(&a, PWI_LANE_DATA, 1, body, sizeof body, 1);
  if (!status && a.link.id) status = puppet_send(&a, PWI_LANE_LINK, 1, body, 1000, 1);
  if (!status) status = pwi_sim_run_until(sim, 100 * MS);
  bool failed = pwi_memory_fail_cancel();
  /* A peer without memory for a link reports that it is busy: that is not our failure. */
  if (status) assert_int_equal(status, PAWL_NO_MEMORY);
  if (!failed) assert_int_equal(status, PAWL_OK);
  pwi_sim_destroy(sim);
  return failed;
}

static void test_running_out_of_memory_at_any_moment_is_survived(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live, n = 0;
  while (live_with_failure(n)) {
    assert_int_equal(pwi_memory_counts().live, live);
    n++;
  }
  assert_true(n > 20);
  assert_int_equal(pwi_memory_counts().live, live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_timers_fire_in_order_and_cancelled_ones_do_not),
      cmocka_unit_test(test_many_cancelled_timers_change_nothing),
      cmocka_unit_test(test_clocks_run_at_rates_of_their_own),
      cmocka_unit_test(test_a_second_pause_does_not_shorten_the_first),
      cmocka_unit_test(test_waking_once_or_often_is_one_call),
      cmocka_unit_test(test_every_incarnation_has_a_clock_of_its_own),
      cmocka_unit_test(test_a_killed_node_hears_nothing_until_it_is_started),
      cmocka_unit_test(test_a_kill_from_inside_a_callback_waits_for_its_end),
      cmocka_unit_test(test_running_while_something_is_true),
      cmocka_unit_test(test_a_failure_ends_the_run_for_ever),
      cmocka_unit_test(test_an_address_belongs_to_one_node_at_a_time),
      cmocka_unit_test(test_any_port_of_every_interface_can_be_connected_to),
      cmocka_unit_test(test_a_fabric_decides_when_messages_arrive),
      cmocka_unit_test(test_a_configuration_that_makes_no_sense_is_refused),
      cmocka_unit_test(test_running_out_of_memory_at_any_moment_is_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
