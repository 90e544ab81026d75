/* Prepared lists, calls on mixed vectors, and buffers. */
#include "client/client_testing.h"
#include "wire/keys.h"

static struct pwi_flow *open_mixed(struct scene *scene) {
  struct pwi_entry entry = scene->flow->entry;
  struct pwi_flow *flow;
  entry.id.id = 4;
  snprintf(entry.name, sizeof entry.name, "job/mixed");
  entry.is.placement = PAWL_PLACE_MIXED;
  entry.is.size = PAWL_KEY_END;
  entry.is.layout = PAWL_LAYOUT_SPARSE;
  assert_int_equal(pwi_catalogue_add(&scene->client->catalogue, &entry), PAWL_OK);
  assert_int_equal(pwi_client_flow(scene->client, entry.id, 0, &flow), PAWL_OK);
  return flow;
}

static void test_a_prepared_list_has_keys_of_its_vector(void **state) {
  START;
  static const uint64_t keys[] = {3, SPAN - 1, SPAN};
  struct pwi_keylist *list = NULL;
  assert_int_equal(pwi_keylist_create(scene.client, &scene.flow->entry, keys, 3, &list), PAWL_OUT_OF_SPAN);
  assert_null(list);
  assert_int_equal(pwi_keylist_create(scene.client, &scene.flow->entry, keys, 2, &list), PAWL_OK);
  pwi_keylist_release(list);
  stop_scene(&scene);
}

/* Views cut a list anew: pieces may begin at one key and have different lengths. */
static void test_each_piece_of_a_list_has_its_own_signature(void **state) {
  START;
  static const uint64_t keys[] = {3, 7, 42, 500};
  struct pwi_keylist *list;
  assert_int_equal(pwi_keylist_create(scene.client, &scene.flow->entry, keys, 4, &list), PAWL_OK);
  for (int again = 0; again < 2; again++)
    for (size_t first = 0; first < 4; first++)
      for (size_t count = 1; first + count <= 4; count++)
        assert_int_equal(pwi_keylist_sign(list, first, count), pwi_keys_signature(keys + first, count));
  pwi_keylist_release(list);
  stop_scene(&scene);
}

static void test_a_pull_that_fails_leaves_the_memory_of_its_caller_alone(void **state) {
  START;
  static const uint64_t keys[] = {5, 6};
  struct pwi_flow *flow = open_mixed(&scene);
  struct call call = {.task.finished = call_finished};
  struct pwi_where where = {.keys = keys, .count = 2};
  float rows[2] = {7, 7};
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  assert_int_equal(pwi_client_start(scene.client, &call.task, flow, PWI_REQUEST_PULL, &where, NULL, rows), PAWL_OK);
  while (flow->first) answer_failed(&scene, flow->first, PAWL_FORBIDDEN);
  assert_over(&call, PAWL_FORBIDDEN);
  assert_true(rows[0] == 7 && rows[1] == 7);
  stop_scene(&scene);
}

static void test_memory_is_in_a_buffer_only_as_a_whole(void **state) {
  START;
  void *memory;
  assert_int_equal(pwi_client_buffer_open(scene.client, 100, &memory), PAWL_OK);
  assert_true(pwi_client_in_buffer(scene.client, memory, 100));
  assert_true(pwi_client_in_buffer(scene.client, (char *)memory + 60, 40));
  assert_false(pwi_client_in_buffer(scene.client, memory, 101));
  assert_false(pwi_client_in_buffer(scene.client, (char *)memory + 60, 41));
  pwi_client_buffer_close(scene.client, memory);
  assert_false(pwi_client_in_buffer(scene.client, memory, 1));
  stop_scene(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_prepared_list_has_keys_of_its_vector),
      cmocka_unit_test(test_each_piece_of_a_list_has_its_own_signature),
      cmocka_unit_test(test_a_pull_that_fails_leaves_the_memory_of_its_caller_alone),
      cmocka_unit_test(test_memory_is_in_a_buffer_only_as_a_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
