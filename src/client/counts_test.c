/* What a client tells its manager about the savings of its filters. */
#include "client/client_testing.h"
#include "protocol/filter_counts.h"

/* Pushes through a filter, and tells the manager. Returns how often the filter has run, as the manager adds it up. */
static uint64_t push_and_tell(struct scene *scene, struct pwi_flow *flow, struct pwi_filter_totals *totals) {
  struct call call;
  uint64_t runs = 0;
  stub_clear(&scene->net);
  start_range(scene, &call, flow, PWI_REQUEST_PUSH, 0, 10);
  answer(scene, flow->first, PWI_CODE_OK);
  assert_over(&call, PAWL_OK);
  pwi_client_count_later(scene->client);
  pwi_client_tell_counts(scene->client, true);
  for (size_t i = 0; i < scene->net.sent_count; i++) {
    const struct stub_sent *sent = &scene->net.sent[i];
    struct pwi_control control = {0};
    struct pwi_message message = {.head = sent->head, .body_size = sent->body_size};
    size_t size;
    if (sent->link != MANAGER_LINK || pwi_message_peek_kind(sent->head) != PWI_SAY_COUNTS) continue;
    assert_int_equal(pwi_control_begin(&control, &message, scene_terms()).how, PWI_RECEIVE_WHOLE);
    assert_int_equal(pwi_control_open(&control, sent->body, sent->body_size, scene_terms()), PAWL_OK);
    const void *payload = pwi_control_find(&control, sent->body, PWI_SECTION_PAYLOAD, &size);
    assert_int_equal(pwi_filter_totals_add(totals, payload, size), PAWL_OK);
  }
  for (size_t i = 0; i < totals->count; i++) runs += totals->items[i].runs;
  return runs;
}

static void filter_with_half(struct scene *scene, struct pwi_flow *flow) {
  struct pawl_filters_options options;
  pawl_filters_options_init(&options);
  assert_int_equal(pwi_client_filter(scene->client, flow, "half", &options, NULL, 0), PAWL_OK);
  scene->client->manager->peering.codecs = UINT8_MAX;
  bring_up(scene, 1);
  peer_of(scene, 1)->link->peering.codecs = UINT8_MAX;
}

static void test_each_run_of_a_filter_is_told_once(void **state) {
  START;
  struct pwi_filter_totals totals = {0};
  filter_with_half(&scene, scene.flow);
  for (uint64_t times = 1; times <= 3; times++) assert_int_equal(push_and_tell(&scene, scene.flow, &totals), times);
  pwi_filter_totals_fini(&totals);
  stop_scene(&scene);
}

static void test_runs_towards_other_nodes_are_not_those_of_the_vector(void **state) {
  START;
  struct pwi_filter_totals totals = {0};
  filter_with_half(&scene, scene.flow);
  scene.flow->node = 1; /* it goes to this node only */
  assert_int_equal(push_and_tell(&scene, scene.flow, &totals), 0);
  scene.flow->node = 0;
  pwi_filter_totals_fini(&totals);
  stop_scene(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_run_of_a_filter_is_told_once),
      cmocka_unit_test(test_runs_towards_other_nodes_are_not_those_of_the_vector),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
