#include "sim/datacenter/datacenter.h"

#include "base/memory.h"
#include "base/testing.h"
#include "sim/cluster.h"
#include "sim/puppet.h"

#define MS PWI_SIM_MILLISECOND
#define BODY 1000000

static struct pwi_sim *sim;
static struct pwi_datacenter *datacenter;
static struct puppet a, b, c;
static uint8_t body[BODY];

static void configure(struct pwi_sim_config *config, const struct pwi_datacenter_config *wanted) {
  assert_int_equal(pwi_datacenter_create(wanted, &datacenter), PAWL_OK);
  pwi_sim_config_init(config);
  config->fabric = pwi_datacenter_fabric(datacenter);
  config->split_chance = config->gap_chance = 0;
  config->hang_up = (struct pwi_sim_delay){50 * MS, 50 * MS, 50 * MS};
}

/* a and b are connected to c; links carry 1 GB/s. */
static void open_three(double magnify, double plane_chance) {
  struct pwi_datacenter_config wanted;
  struct pwi_sim_config config;
  struct pwi_link link;
  pwi_datacenter_config_init(&wanted);
  wanted.shape.rate = 1e9;
  wanted.magnify = magnify;
  configure(&config, &wanted);
  config.plane_chance = plane_chance;
  memset(&a, 0, sizeof a);
  memset(&b, 0, sizeof b);
  memset(&c, 0, sizeof c);
  assert_int_equal(pwi_sim_create(&config, &sim), PAWL_OK);
  assert_int_equal(puppet_start(&c, sim, "c", NULL), PAWL_OK);
  assert_int_equal(puppet_start(&a, sim, "a", NULL), PAWL_OK);
  assert_int_equal(puppet_start(&b, sim, "b", NULL), PAWL_OK);
  assert_int_equal(pwi_net_connect(a.net, "c:7000", &link), PAWL_OK);
  assert_int_equal(pwi_net_connect(b.net, "c:7000", &link), PAWL_OK);
  assert_int_equal(pwi_sim_run_until(sim, MS), PAWL_OK);
}

static void close_three(void) {
  pwi_sim_destroy(sim);
  pwi_datacenter_destroy(datacenter);
}

static void run_for(int64_t duration) {
  assert_int_equal(pwi_sim_run_until(sim, pwi_sim_now(sim) + duration), PAWL_OK);
}

static int64_t arrival(struct puppet *puppet, size_t n) {
  const struct note *note = puppet_find(puppet, NOTE_MESSAGE, n);
  assert_non_null(note);
  assert_true(note->ended);
  return note->time;
}

/* Within the latency and what the head adds. */
static void near(int64_t time, int64_t expected) { assert_in_range(time, expected, expected + 20000); }

static void test_one_message_takes_its_bytes_at_the_rate_of_a_link(void **state) {
  (void)state;
  open_three(1, 0);
  int64_t given = pwi_sim_now(sim);
  assert_int_equal(puppet_send(&a, PWI_LANE_DATA, 1, body, BODY, 9), PAWL_OK);
  run_for(5 * MS);
  near(arrival(&c, 0), given + MS);
  assert_int_equal(puppet_count(&a, NOTE_DONE), 1);
  assert_true(puppet_find(&a, NOTE_DONE, 0)->time >= given + MS);
  close_three();
}

/* b's message is as large as a's but begins when half of a's is there: a takes 1.5 ms, b 1.5 ms as well, since it is
 * alone in the end. That end comes earlier than it seemed at b's beginning. */
static void test_flows_slow_one_another_down_and_speed_up_again(void **state) {
  (void)state;
  open_three(1, 0);
  int64_t given = pwi_sim_now(sim);
  assert_int_equal(puppet_send(&a, PWI_LANE_DATA, 1, body, BODY, 0), PAWL_OK);
  run_for(MS / 2);
  assert_int_equal(puppet_send(&b, PWI_LANE_DATA, 2, body, BODY, 0), PAWL_OK);
  run_for(5 * MS);
  near(arrival(&c, 0), given + MS + MS / 2);
  near(arrival(&c, 1), given + 2 * MS);
  assert_int_equal(puppet_find(&c, NOTE_MESSAGE, 0)->value, 1);
  close_three();
}

/* A lane is one connection: its messages come one after the other, the small one last. Another lane overtakes. */
static void test_a_lane_keeps_its_order(void **state) {
  (void)state;
  open_three(1, 0);
  int64_t given = pwi_sim_now(sim);
  assert_int_equal(puppet_send(&a, PWI_LANE_DATA, 1, body, BODY, 0), PAWL_OK);
  assert_int_equal(puppet_send(&a, PWI_LANE_DATA, 2, body, BODY, 0), PAWL_OK);
  assert_int_equal(puppet_send(&a, PWI_LANE_DATA, 3, body, 10, 0), PAWL_OK);
  assert_int_equal(puppet_send(&a, PWI_LANE_LINK, 4, body, 10, 0), PAWL_OK);
  run_for(5 * MS);
  const uint64_t order[] = {4, 1, 2, 3};
  for (size_t i = 0; i < 4; i++) assert_int_equal(puppet_find(&c, NOTE_MESSAGE, i)->value, order[i]);
  near(arrival(&c, 1), given + MS);
  near(arrival(&c, 2), given + 2 * MS);
  close_three();
}

static void test_a_body_may_stand_for_more_bytes(void **state) {
  (void)state;
  open_three(1000, 0);
  int64_t given = pwi_sim_now(sim);
  assert_int_equal(puppet_send(&a, PWI_LANE_DATA, 1, body, BODY, 0), PAWL_OK);
  assert_int_equal(puppet_send(&b, PWI_LANE_DATA, 2, body, 1000, 0), PAWL_OK); /* too small for a flow */
  run_for(2000 * MS);
  assert_int_equal(puppet_find(&c, NOTE_MESSAGE, 0)->value, 2);
  assert_in_range(arrival(&c, 1), given + 1000 * MS, given + 1001 * MS);
  close_three();
}

/* The receiver of a killed sender sees the break; the flow ends, and leaves its links to others. */
static void test_a_dead_link_ends_its_flows(void **state) {
  (void)state;
  open_three(1, 0);
  for (int i = 0; i < 3; i++) assert_int_equal(puppet_send(&a, PWI_LANE_DATA, 1, body, BODY, 0), PAWL_OK);
  run_for(MS / 2);
  pwi_sim_kill(sim, a.node);
  run_for(200 * MS);
  assert_int_equal(puppet_count(&c, NOTE_DOWN), 1);
  assert_int_equal(pwi_datacenter_figures(datacenter).present, 0);
  int64_t given = pwi_sim_now(sim);
  size_t before = puppet_count(&c, NOTE_MESSAGE);
  assert_int_equal(puppet_send(&b, PWI_LANE_DATA, 2, body, BODY, 0), PAWL_OK);
  run_for(5 * MS);
  near(arrival(&c, before), given + MS);
  close_three();
}

static void test_a_higher_class_goes_first(void **state) {
  (void)state;
  open_three(1, 0);
  pwi_datacenter_class(datacenter, b.node, 1);
  int64_t given = pwi_sim_now(sim);
  assert_int_equal(puppet_send(&a, PWI_LANE_DATA, 1, body, BODY, 0), PAWL_OK);
  assert_int_equal(puppet_send(&b, PWI_LANE_DATA, 2, body, BODY, 0), PAWL_OK);
  run_for(5 * MS);
  assert_int_equal(puppet_find(&c, NOTE_MESSAGE, 0)->value, 2);
  near(arrival(&c, 0), given + MS);
  near(arrival(&c, 1), given + 2 * MS);
  close_three();
}

static void test_the_bytes_of_a_get_are_a_flow(void **state) {
  (void)state;
  static uint8_t into[BODY];
  struct pwi_region *region;
  struct pwi_remote remote;
  uint8_t token[PWI_NET_TOKEN_MAX];
  size_t size = sizeof token;
  open_three(1, 1);
  assert_int_equal(pwi_net_region_open(c.net, BODY, &region), PAWL_OK);
  struct pwi_link own = {puppet_find(&c, NOTE_UP, 0)->link};
  assert_int_equal(pwi_net_region_share(c.net, region, own, PWI_ACCESS_READ, token, &size), PAWL_OK);
  assert_int_equal(pwi_net_remote_open(a.net, a.link, token, size, &remote), PAWL_OK);
  int64_t given = pwi_sim_now(sim);
  uint64_t begun = pwi_datacenter_figures(datacenter).begun;
  assert_int_equal(pwi_net_get(a.net, a.link, remote, 0, into, BODY, 7), PAWL_OK);
  run_for(5 * MS);
  assert_int_equal(puppet_count(&a, NOTE_DONE), 1);
  near(puppet_find(&a, NOTE_DONE, 0)->time, given + MS);
  assert_int_equal(pwi_datacenter_figures(datacenter).begun, begun + 1);
  pwi_net_region_close(c.net, region);
  close_three();
}

static void test_hosts_are_drawn_from_the_seed_and_shared_if_they_must_be(void **state) {
  (void)state;
  struct pwi_datacenter_config wanted;
  struct pwi_sim_config config;
  static struct puppet many[5];
  pwi_datacenter_config_init(&wanted);
  pwi_fabric_fat_tree(2, 1e9, &wanted.shape); /* 2 hosts */
  configure(&config, &wanted);
  assert_int_equal(pwi_sim_create(&config, &sim), PAWL_OK);
  const char *const labels[] = {"x", "y", "x", "z", NULL};
  for (int i = 0; i < 5; i++) {
    char name[8];
    snprintf(name, sizeof name, "n%d", i);
    assert_int_equal(puppet_start(&many[i], sim, name, labels[i]), PAWL_OK);
  }
  uint32_t first = pwi_datacenter_host(datacenter, many[0].node),
           second = pwi_datacenter_host(datacenter, many[1].node);
  assert_true(first < 2 && second < 2 && first != second);
  assert_int_equal(pwi_datacenter_host(datacenter, many[2].node), first);
  assert_int_equal(pwi_datacenter_host(datacenter, many[3].node), first);
  assert_int_equal(pwi_datacenter_host(datacenter, many[4].node), second);
  close_three();
}

/* --- the real roles ------------------------------------------------------------------------------------------- */

#define KEYS 65536

static void tune(struct pwi_sim_config *config, void *context) {
  (void)context;
  config->fabric = pwi_datacenter_fabric(datacenter);
}

/* Manager, 20 servers and a client: what is pushed is pulled, in the time that the links need. Returns the hash. */
static uint64_t push_and_pull(double magnify, int64_t *took_out) {
  static struct pwi_cluster cluster;
  static struct pwi_cluster_client client;
  static float in[KEYS], out[KEYS];
  struct pwi_datacenter_config wanted;
  struct pawl_vector_options options = {.type = PAWL_F32, .width = 1, .size = KEYS};
  struct pwi_flow *flow;
  struct pwi_task task;
  pwi_datacenter_config_init(&wanted);
  wanted.flow_bytes = 4096; /* the roles send smaller messages to one another */
  wanted.magnify = magnify;
  assert_int_equal(pwi_datacenter_create(&wanted, &datacenter), PAWL_OK);
  struct pwi_cluster_config config = {
      .seed = 5, .processes = 20, .shards = 1, .points = 1, .checked_hosts = true, .tune = tune};
  assert_int_equal(pwi_cluster_open(&cluster, &config), PAWL_OK);
  client = (struct pwi_cluster_client){.name = "w", .job = "job"};
  assert_int_equal(pwi_cluster_client_add(&cluster, &client), PAWL_OK);
  assert_int_equal(pwi_cluster_wait_joined(&client), PAWL_OK);
  assert_int_equal(pwi_cluster_vector(&client, "job/w", &options, &flow), PAWL_OK);
  for (int i = 0; i < KEYS; i++) in[i] = (float)i;
  struct pwi_where where = {.range = {0, KEYS}};
  int64_t began = pwi_sim_now(cluster.sim);
  assert_int_equal(pwi_cluster_call(&client, flow, PWI_REQUEST_PUSH, &where, in, NULL, &task), PAWL_OK);
  assert_int_equal(task.status, PAWL_OK);
  assert_int_equal(pwi_cluster_call(&client, flow, PWI_REQUEST_PULL, &where, NULL, out, &task), PAWL_OK);
  assert_int_equal(task.status, PAWL_OK);
  *took_out = pwi_sim_now(cluster.sim) - began;
  assert_memory_equal(in, out, sizeof in);
  assert_true(pwi_datacenter_figures(datacenter).arrived >= 20);
  uint64_t hash = pwi_sim_trace_hash(cluster.sim);
  pwi_cluster_close(&cluster);
  pwi_datacenter_destroy(datacenter);
  return hash;
}

static void test_the_real_roles_run_on_it(void **state) {
  (void)state;
  int64_t small, large, again;
  push_and_pull(1, &small);
  uint64_t hash = push_and_pull(6250, &large);
  assert_true(hash == push_and_pull(6250, &again));
  assert_int_equal(large, again);
  /* 256 KB stand for 1.6 GB, which leave and enter the client's host at 1.25 GB/s */
  assert_in_range(large, 2600 * MS, 3500 * MS);
  assert_true(small < 100 * MS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_message_takes_its_bytes_at_the_rate_of_a_link),
      cmocka_unit_test(test_flows_slow_one_another_down_and_speed_up_again),
      cmocka_unit_test(test_a_lane_keeps_its_order),
      cmocka_unit_test(test_a_body_may_stand_for_more_bytes),
      cmocka_unit_test(test_a_dead_link_ends_its_flows),
      cmocka_unit_test(test_a_higher_class_goes_first),
      cmocka_unit_test(test_the_bytes_of_a_get_are_a_flow),
      cmocka_unit_test(test_hosts_are_drawn_from_the_seed_and_shared_if_they_must_be),
      cmocka_unit_test(test_the_real_roles_run_on_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
