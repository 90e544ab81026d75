/* A standby: answers to JOIN, peers that send nonsense or nothing, and lack of memory.
 * tests/cluster/takeover_test.c tests takeovers. */
#include "base/cursor.h"
#include "base/memory.h"
#include "base/testing.h"
#include "protocol/messenger.h"
#include "manager/leader/standby.h"
#include "sim/meta.h"
#include "sim/sim.h"

#define MS PWI_SIM_MILLISECOND
#define OK(expression) assert_int_equal(expression, PAWL_OK)

/* A peer that connects to a manager and sends one message or none. */
struct caller {
  struct pwi_net *net;
  struct pwi_messenger messenger;
  struct pwi_greeting greeting;
  struct pwi_peering peering;
  struct pwi_control control;
  enum pwi_say says; /* 0: nothing */
  uint64_t knows;    /* the highest term that it claims to know */
  struct pwi_joined joined;
  uint64_t term;
  unsigned answers, ups, downs;
  pawl_status why;
};

struct scene {
  struct pwi_sim *sim;
  struct pwi_sim_meta *store;
  struct pwi_sim_node nodes[3]; /* two managers and the caller */
  struct pwi_standby *standbys[2];
  struct pwi_meta *metas[2];
  struct caller caller;
};

/* --- the caller ----------------------------------------------------------------------------------------- */

static void caller_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct caller *caller = self;
  struct pwi_join join = {.role = PWI_ROLE_CLIENT, .reader = true};
  struct pwi_message_head head = {.kind = (uint16_t)caller->says, .tick = caller->knows};
  struct pwi_writer payload = {0};
  caller->ups++;
  OK(pwi_greeting_check(&caller->greeting, info, &caller->peering));
  if (!caller->says) return;
  pwi_join_encode(&join, &payload);
  struct pwi_enclosure enclosure = {PWI_SECTION_PAYLOAD, payload.data, payload.size};
  OK(pwi_messenger_send(&caller->messenger, link, &caller->peering.link, &head, &enclosure, 1));
  pwi_writer_fini(&payload);
}

static void caller_down(void *self, struct pwi_link link, pawl_status why) {
  struct caller *caller = self;
  (void)link;
  caller->downs++;
  caller->why = why;
}

static struct pwi_receive caller_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct caller *caller = self;
  (void)link;
  return pwi_control_begin(&caller->control, message, &caller->peering.link);
}

static void caller_piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data,
                         size_t size) {
  struct caller *caller = self;
  size_t payload_size;
  (void)link, (void)context, (void)offset;
  OK(pwi_control_open(&caller->control, data, size, &caller->peering.link));
  assert_true(caller->control.head.kind == PWI_SAY_JOINED || caller->control.head.kind == PWI_SAY_NEWS);
  if (caller->control.head.kind != PWI_SAY_JOINED) return;
  const void *payload = pwi_control_find(&caller->control, data, PWI_SECTION_PAYLOAD, &payload_size);
  OK(pwi_joined_decode(payload, payload_size, &caller->joined));
  caller->term = caller->control.head.tick;
  caller->answers++;
}

static const struct pwi_actor caller_actor = {
    .link_up = caller_up, .link_down = caller_down, .message = caller_message, .piece = caller_piece};

static pawl_status boot_caller(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                               void **self_out) {
  struct scene *scene = context;
  scene->caller.net = boot->net;
  scene->caller.greeting = (struct pwi_greeting){.role = PWI_ROLE_CLIENT, .host = "c"};
  pwi_messenger_init(&scene->caller.messenger, boot->net);
  *actor_out = &caller_actor;
  *self_out = &scene->caller;
  return pwi_greeting_set(boot->net, &scene->caller.greeting);
}

/* --- managers ------------------------------------------------------------------------------------------- */

static pawl_status boot_manager(struct scene *scene, size_t index, const struct pwi_sim_boot *boot, void **self_out) {
  char address[16];
  struct pwi_standby_config config = {
      .manager = {.net = boot->net, .random = boot->random, .log = boot->log, .host = boot->name}, .prefix = "pawl"};
  snprintf(address, sizeof address, "m%zu:7000", index);
  pawl_status status = pwi_net_listen(boot->net, address);
  if (!status) status = pwi_sim_meta_open(scene->store, scene->nodes[index], boot->net, &scene->metas[index]);
  if (status) return status;
  config.meta = scene->metas[index];
  status = pwi_standby_create(&config, &scene->standbys[index]);
  if (status) config.meta->ops->destroy(config.meta);
  *self_out = scene->standbys[index];
  return status;
}

static void halt_manager(struct scene *scene, size_t index) {
  pwi_standby_destroy(scene->standbys[index]);
  scene->metas[index]->ops->destroy(scene->metas[index]);
  scene->standbys[index] = NULL;
}

#define MANAGER(index)                                                                                                 \
  static pawl_status boot_##index(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,  \
                                  void **self_out) {                                                                   \
    *actor_out = &pwi_standby_actor;                                                                                   \
    return boot_manager(context, index, boot, self_out);                                                               \
  }                                                                                                                    \
  static void halt_##index(void *context, void *self) {                                                                \
    (void)self;                                                                                                        \
    halt_manager(context, index);                                                                                      \
  }
MANAGER(0)
MANAGER(1)

static void add(struct scene *scene, size_t index, const struct pwi_sim_program *program) {
  OK(pwi_sim_node_add(scene->sim, program, &scene->nodes[index]));
}

static void scene_open(struct scene *scene, uint64_t seed) {
  struct pwi_sim_config config;
  *scene = (struct scene){0};
  pwi_sim_config_init(&config);
  config.seed = seed;
  OK(pwi_sim_create(&config, &scene->sim));
  OK(pwi_sim_meta_create(scene->sim, &scene->store));
  add(scene, 0, &(struct pwi_sim_program){.name = "m0", .boot = boot_0, .halt = halt_0, .context = scene});
  add(scene, 1, &(struct pwi_sim_program){.name = "m1", .boot = boot_1, .halt = halt_1, .context = scene});
  add(scene, 2, &(struct pwi_sim_program){.name = "c", .boot = boot_caller, .context = scene});
  OK(pwi_sim_start(scene->sim, scene->nodes[2]));
}

static void scene_close(struct scene *scene) {
  pwi_sim_destroy(scene->sim);
  pwi_sim_meta_destroy(scene->store);
  pwi_messenger_fini(&scene->caller.messenger);
}

static void run_for(struct scene *scene, int64_t duration) {
  pawl_status status = pwi_sim_run_until(scene->sim, pwi_sim_now(scene->sim) + duration);
  if (status) fail_msg("%s: %s", pawl_status_name(status), pwi_sim_failure(scene->sim));
}

static struct pwi_standby_state state_of(struct scene *scene, size_t index) {
  struct pwi_standby_state state;
  pwi_standby_state(scene->standbys[index], &state);
  return state;
}

static void call(struct scene *scene, size_t index, enum pwi_say says) {
  struct pwi_link link;
  char address[16];
  snprintf(address, sizeof address, "m%zu:7000", index);
  scene->caller.says = says;
  OK(pwi_net_connect(scene->caller.net, address, &link));
}

/* The first manager leads, the second stands by. */
static void open_two(struct scene *scene, uint64_t seed) {
  scene_open(scene, seed);
  OK(pwi_sim_start(scene->sim, scene->nodes[0]));
  run_for(scene, 1000 * MS);
  assert_int_equal(state_of(scene, 0).phase, PWI_STANDBY_LEADING);
  OK(pwi_sim_start(scene->sim, scene->nodes[1]));
  run_for(scene, 1000 * MS);
  assert_int_equal(state_of(scene, 1).phase, PWI_STANDBY_WAITING);
}

/* --- tests ---------------------------------------------------------------------------------------------- */

static void test_a_caller_is_told_where_the_leader_is(void **state) {
  (void)state;
  struct scene scene;
  open_two(&scene, 1);
  call(&scene, 1, PWI_SAY_JOIN);
  run_for(&scene, 500 * MS);
  assert_int_equal(scene.caller.answers, 1);
  assert_int_equal(scene.caller.joined.status, PAWL_NODE_STANDBY);
  assert_string_equal(scene.caller.joined.leader, "tcp://m0:7000");
  assert_int_equal(scene.caller.downs, 1);
  assert_int_equal(scene.caller.why, PAWL_LINK_CLOSED);
  call(&scene, 0, PWI_SAY_JOIN);
  run_for(&scene, 500 * MS);
  assert_int_equal(scene.caller.answers, 2);
  assert_int_equal(scene.caller.joined.status, PAWL_OK);
  assert_int_equal(scene.caller.term, 1);
  scene_close(&scene);
}

static void test_a_leader_refuses_peers_that_know_a_later_leader(void **state) {
  (void)state;
  struct scene scene;
  open_two(&scene, 8);
  scene.caller.knows = 2;
  call(&scene, 0, PWI_SAY_JOIN);
  run_for(&scene, 500 * MS);
  assert_int_equal(scene.caller.answers, 1);
  assert_int_equal(scene.caller.joined.status, PAWL_NODE_DEPOSED);
  assert_int_equal(scene.caller.downs, 1);
  scene_close(&scene);
}

static void test_without_a_leader_a_caller_is_told_so(void **state) {
  (void)state;
  struct scene scene;
  scene_open(&scene, 2);
  pwi_sim_meta_cut(scene.store, PWI_SIM_ALL, true);
  OK(pwi_sim_start(scene.sim, scene.nodes[0]));
  run_for(&scene, 2000 * MS);
  call(&scene, 0, PWI_SAY_JOIN);
  run_for(&scene, 500 * MS);
  assert_int_equal(scene.caller.joined.status, PAWL_NODE_STANDBY);
  assert_string_equal(scene.caller.joined.leader, "");
  assert_int_equal(state_of(&scene, 0).why, PAWL_TIMED_OUT);
  scene_close(&scene);
}

static void test_a_peer_that_does_not_begin_with_join_is_sent_away(void **state) {
  (void)state;
  struct scene scene;
  open_two(&scene, 3);
  call(&scene, 1, PWI_SAY_HAVE);
  run_for(&scene, 500 * MS);
  assert_int_equal(scene.caller.answers, 0);
  assert_int_equal(scene.caller.downs, 1);
  assert_int_equal(scene.caller.why, PAWL_LINK_PROTOCOL);
  scene_close(&scene);
}

static void test_a_silent_peer_is_sent_away_after_a_while(void **state) {
  (void)state;
  struct scene scene;
  open_two(&scene, 4);
  for (int i = 0; i < 3; i++) call(&scene, 1, 0);
  run_for(&scene, 4000 * MS);
  assert_int_equal(scene.caller.downs, 0);
  run_for(&scene, 8000 * MS);
  assert_int_equal(scene.caller.downs, 3);
  assert_int_equal(scene.caller.why, PAWL_TIMED_OUT);
  scene_close(&scene);
}

/* A link that came up before the standby leads is closed: the manager did not see it come up. */
static void test_callers_of_before_are_gone_when_it_leads(void **state) {
  (void)state;
  struct scene scene;
  open_two(&scene, 5);
  call(&scene, 1, 0);
  run_for(&scene, 200 * MS);
  assert_int_equal(scene.caller.ups, 1);
  pwi_sim_kill(scene.sim, scene.nodes[0]);
  run_for(&scene, 3500 * MS);
  assert_int_equal(state_of(&scene, 1).phase, PWI_STANDBY_LEADING);
  assert_int_equal(state_of(&scene, 1).term, 2);
  assert_int_equal(scene.caller.downs, 1);
  call(&scene, 1, PWI_SAY_JOIN);
  run_for(&scene, 500 * MS);
  assert_int_equal(scene.caller.joined.status, PAWL_OK);
  assert_int_equal(scene.caller.term, 2);
  scene_close(&scene);
}

static void test_a_resigned_leader_is_over(void **state) {
  (void)state;
  struct scene scene;
  open_two(&scene, 6);
  assert_true(state_of(&scene, 0).holds_lease);
  pwi_standby_resign(scene.standbys[0]);
  run_for(&scene, 500 * MS);
  assert_int_equal(state_of(&scene, 0).phase, PWI_STANDBY_OVER);
  assert_int_equal(state_of(&scene, 0).why, PAWL_OK);
  assert_false(state_of(&scene, 0).holds_lease);
  assert_int_equal(state_of(&scene, 1).phase, PWI_STANDBY_LEADING);
  scene_close(&scene);
}

/* The n-th allocation fails while a standby begins to lead: it leads at the end, or is OVER with a reason. */
static void test_running_out_of_memory_ends_in_a_state_that_is_told(void **state) {
  (void)state;
  for (uint64_t n = 0;; n++) {
    struct scene scene;
    uint64_t before = pwi_memory_counts().live;
    scene_open(&scene, 7);
    pwi_memory_fail_after(n);
    pawl_status status = pwi_sim_start(scene.sim, scene.nodes[0]);
    if (!status) status = pwi_sim_run_until(scene.sim, 5000 * MS); /* the simulator may run out too */
    bool has_failed = pwi_memory_fail_cancel();
    if (!status && scene.standbys[0]) {
      enum pwi_standby_phase phase = state_of(&scene, 0).phase;
      assert_true(phase == PWI_STANDBY_LEADING || phase == PWI_STANDBY_OVER);
      if (phase == PWI_STANDBY_OVER) assert_int_equal(state_of(&scene, 0).why, PAWL_NO_MEMORY);
    }
    scene_close(&scene);
    assert_int_equal(pwi_memory_counts().live, before);
    if (!has_failed) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_caller_is_told_where_the_leader_is),
      cmocka_unit_test(test_a_leader_refuses_peers_that_know_a_later_leader),
      cmocka_unit_test(test_without_a_leader_a_caller_is_told_so),
      cmocka_unit_test(test_a_peer_that_does_not_begin_with_join_is_sent_away),
      cmocka_unit_test(test_a_silent_peer_is_sent_away_after_a_while),
      cmocka_unit_test(test_callers_of_before_are_gone_when_it_leads),
      cmocka_unit_test(test_a_resigned_leader_is_over),
      cmocka_unit_test(test_running_out_of_memory_ends_in_a_state_that_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
