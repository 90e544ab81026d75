/* Limits on the memory of answers, and links that are dropped for it. The request handler is a plain struct,
 * so that answers can stay unread. */
#include "base/testing.h"
#include "sim/sim.h"

#include "server/handler_inside.h"

#define MIB ((size_t)1 << 20)
#define ALL (16 * MIB)

static struct {
  struct pwi_sim *sim;
  struct pwi_log log;
  struct pwi_handler handler;
  struct pwi_handler_link links[3]; /* the first two links have the same key */
  struct pwi_handler_buffer buffers[3][16];
  struct pwi_handler_buffer *places[3][16];
} scene;

static pawl_status boot(void *context, const struct pwi_sim_boot *with, const struct pwi_actor **actor_out,
                        void **self_out) {
  static const struct pwi_actor nobody;
  (void)context;
  scene.handler.config.net = with->net;
  *actor_out = &nobody;
  *self_out = NULL;
  return PAWL_OK;
}

static void open_scene(void) {
  struct pwi_sim_config config;
  struct pwi_sim_program program = {.name = "handler", .boot = boot};
  struct pwi_sim_node node;
  memset(&scene, 0, sizeof scene);
  pwi_sim_config_init(&config);
  assert_int_equal(pwi_sim_create(&config, &scene.sim), PAWL_OK);
  assert_int_equal(pwi_sim_node_add(scene.sim, &program, &node), PAWL_OK);
  assert_int_equal(pwi_sim_start(scene.sim, node), PAWL_OK);
  assert_int_equal(pwi_sim_run_until(scene.sim, PWI_SIM_SECOND), PAWL_OK);
  scene.handler.config.answers_max = ALL;
  scene.handler.config.log = &scene.log;
  for (size_t i = 0; i < 3; i++) {
    scene.links[i] = (struct pwi_handler_link){
        .handler = &scene.handler, .link = {1000 + i}, .buffers = scene.places[i], .next = scene.handler.links};
    scene.handler.links = &scene.links[i];
    assert_int_equal(pwi_handler_enter(&scene.links[i], i < 2 ? "one" : "two"), PAWL_OK);
  }
}

static void close_scene(void) {
  for (size_t i = 0; i < 3; i++) pwi_handler_exit(&scene.links[i]);
  assert_null(scene.handler.keys);
  pwi_sim_destroy(scene.sim);
}

/* Adds an answer for a link, which is sent or waits for a chain. */
static pawl_status answer(size_t link, size_t bytes, bool is_sent) {
  struct pwi_handler_link *of = &scene.links[link];
  struct pwi_handler_buffer *buffer = &scene.buffers[link][of->buffer_count];
  pawl_status status = pwi_handler_find_room(of, buffer, bytes);
  if (status) return status;
  *buffer = (struct pwi_handler_buffer){.size = bytes, .busy = true, .sent_bytes = bytes};
  if (is_sent) buffer->sent_at = pwi_net_now(scene.handler.config.net);
  scene.places[link][of->buffer_count++] = buffer;
  pwi_handler_charge(of, bytes);
  return PAWL_OK;
}

static void pass(int64_t time) {
  assert_int_equal(pwi_sim_run_until(scene.sim, pwi_sim_now(scene.sim) + time), PAWL_OK);
}

static void test_a_link_may_use_half_and_a_key_three_quarters_and_one_answer_may_exceed_the_limit(void **state) {
  (void)state;
  open_scene();
  for (int i = 0; i < 8; i++) assert_int_equal(answer(0, MIB, true), PAWL_OK);
  assert_int_equal(answer(0, MIB, true), PAWL_QUEUE_FULL); /* a link may use half */
  for (int i = 0; i < 4; i++) assert_int_equal(answer(1, MIB, true), PAWL_OK);
  for (int i = 0; i < 4; i++)
    assert_int_equal(answer(2, MIB, true), PAWL_OK); /* a link of another key may use the remaining memory */
  assert_int_equal(scene.handler.answer_bytes, ALL);
  assert_int_equal(answer(2, 3 * MIB, true), PAWL_OK); /* one answer may exceed the limit */
  assert_int_equal(answer(2, MIB, true), PAWL_QUEUE_FULL);
  assert_int_equal(answer(1, MIB, true), PAWL_QUEUE_FULL); /* but no second answer */
  pwi_handler_discharge(&scene.links[2], &scene.buffers[2][4]);
  assert_int_equal(answer(1, MIB, true), PAWL_OK);
  close_scene();
}

/* However many links it has. */
static void test_a_key_leaves_a_quarter_of_the_memory_to_others(void **state) {
  (void)state;
  open_scene();
  for (int i = 0; i < 8; i++) assert_int_equal(answer(0, MIB, true), PAWL_OK);
  for (int i = 0; i < 4; i++) assert_int_equal(answer(1, MIB, true), PAWL_OK);
  assert_int_equal(answer(1, MIB, true), PAWL_OK); /* one answer may exceed the limit */
  assert_int_equal(answer(1, MIB, true), PAWL_QUEUE_FULL);
  assert_int_equal(scene.handler.answer_bytes, 13 * MIB);
  for (int i = 0; i < 3; i++) assert_int_equal(answer(2, MIB, true), PAWL_OK);
  close_scene();
}

static void test_an_answer_larger_than_all_limits_is_sent(void **state) {
  (void)state;
  open_scene();
  assert_int_equal(answer(0, 4 * ALL, true), PAWL_OK);
  assert_int_equal(answer(2, MIB, true), PAWL_QUEUE_FULL);
  close_scene();
}

static void test_a_client_that_does_not_read_is_dropped_when_others_need_memory(void **state) {
  (void)state;
  open_scene();
  for (int i = 0; i < 8; i++) assert_int_equal(answer(0, MIB, true), PAWL_OK);
  for (int i = 0; i < 4; i++) assert_int_equal(answer(1, MIB, false), PAWL_OK); /* these wait for a chain */
  pass(10 * PWI_SIM_SECOND);
  assert_int_equal(answer(2, MIB, true), PAWL_OK); /* there is memory, so no link is dropped */
  assert_int_equal(scene.handler.answers_dropped, 0);
  for (int i = 0; i < 4; i++) assert_int_equal(answer(2, MIB, true), PAWL_OK); /* the last answer exceeds the limit */
  assert_int_equal(scene.handler.answers_dropped, 1);
  assert_true(scene.links[0].is_dropped && !scene.links[1].is_dropped && !scene.links[2].is_dropped);
  assert_int_equal(answer(2, MIB, true), PAWL_QUEUE_FULL);
  assert_int_equal(scene.handler.answers_dropped, 1); /* dropped only once */
  close_scene();
}

static void test_a_client_has_more_time_to_read_on_a_busy_machine(void **state) {
  (void)state;
  open_scene();
  pwi_sim_allow(scene.sim, PWI_SIM_SECOND);
  for (int i = 0; i < 8; i++) assert_int_equal(answer(0, MIB, true), PAWL_OK);
  for (int i = 0; i < 8; i++) assert_int_equal(answer(2, MIB, true), PAWL_OK);
  pass(2 * PWI_SIM_SECOND);                        /* longer than an idle machine allows */
  assert_int_equal(answer(1, MIB, true), PAWL_OK); /* exceeds the limit */
  assert_int_equal(answer(1, MIB, true), PAWL_QUEUE_FULL);
  assert_int_equal(scene.handler.answers_dropped, 0);
  pass(PWI_SIM_SECOND / 10);
  assert_int_equal(answer(1, MIB, true), PAWL_QUEUE_FULL);
  assert_int_equal(scene.handler.answers_dropped, 2);
  close_scene();
}

static void test_a_client_that_reads_stays_however_much_is_unread(void **state) {
  (void)state;
  open_scene();
  for (int i = 0; i < 8; i++) assert_int_equal(answer(0, MIB, true), PAWL_OK);
  for (int i = 0; i < 8; i++) assert_int_equal(answer(2, MIB, true), PAWL_OK);
  pass(PWI_SIM_SECOND / 2);
  assert_int_equal(answer(1, MIB, true), PAWL_OK); /* exceeds the limit */
  assert_int_equal(answer(1, MIB, true), PAWL_QUEUE_FULL);
  assert_int_equal(scene.handler.answers_dropped, 0);
  pass(9 * PWI_SIM_SECOND);
  scene.links[0].taken_at = scene.links[2].taken_at = pwi_net_now(scene.handler.config.net);
  pass(PWI_SIM_SECOND);
  assert_int_equal(answer(1, MIB, true), PAWL_QUEUE_FULL);
  assert_false(scene.links[0].is_dropped || scene.links[2].is_dropped);
  pass(PWI_SIM_SECOND);
  assert_int_equal(answer(1, MIB, true), PAWL_QUEUE_FULL);
  assert_true(scene.links[0].is_dropped && scene.links[2].is_dropped);
  close_scene();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_link_may_use_half_and_a_key_three_quarters_and_one_answer_may_exceed_the_limit),
      cmocka_unit_test(test_a_key_leaves_a_quarter_of_the_memory_to_others),
      cmocka_unit_test(test_an_answer_larger_than_all_limits_is_sent),
      cmocka_unit_test(test_a_client_that_does_not_read_is_dropped_when_others_need_memory),
      cmocka_unit_test(test_a_client_has_more_time_to_read_on_a_busy_machine),
      cmocka_unit_test(test_a_client_that_reads_stays_however_much_is_unread),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
