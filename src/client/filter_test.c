/* Key lists that a flow with filters recognises by their content. */
#include "client/client_testing.h"
#include "wire/keys.h"

#define COUNT 4

static void push_keys(struct scene *scene, struct call *call, const uint64_t keys[COUNT]) {
  *call = (struct call){.task.finished = call_finished};
  struct pwi_where where = {.keys = keys, .count = COUNT};
  assert_int_equal(pwi_client_start(scene->client, &call->task, scene->flow, PWI_REQUEST_PUSH, &where, scene->in, NULL),
                   PAWL_OK);
  check_scene(scene);
  assert_memory_equal(scene->flow->last->keys, keys, COUNT * sizeof *keys);
}

/* Their rows would go to the keys of the other list. */
static void test_a_list_with_the_signature_of_another_one_keeps_its_keys(void **state) {
  START;
  static const uint64_t keys[COUNT] = {1, 2, 3, 4}, others[COUNT] = {1, 2, 3, 5};
  struct pawl_filters_options options;
  struct call first, second;
  pawl_filters_options_init(&options);
  assert_int_equal(pwi_client_filter(scene.client, scene.flow, "keys", &options, NULL, 0), PAWL_OK);
  push_keys(&scene, &first, keys);
  struct cached_list *cached = scene.flow->filters->lists;
  while (!cached->list) cached++;
  assert_ptr_equal(scene.flow->last->list, cached->list);
  cached->signature = pwi_keys_signature(others, COUNT);
  push_keys(&scene, &second, others);
  stop_scene(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_list_with_the_signature_of_another_one_keeps_its_keys),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
