/* What managers make of an etcd that is not there, holds something else, or loses what it held. */
#include "base/testing.h"
#include "scene.h"

static int open_scene(void **state) {
  static struct scene scene;
  scene_open(&scene);
  *state = &scene;
  return 0;
}

static int close_scene(void **state) {
  scene_close(*state);
  return 0;
}

/* It ends, and says why. */
static void assert_ends(struct pwi_child *manager, const char *words) {
  struct pwi_child_end end;
  char said[8192];
  assert_int_equal(pwi_child_wait(manager, pwi_host_after(LIMIT), &end), PAWL_OK);
  pwi_child_last_words(manager, said, sizeof said);
  if (end.how != PWI_CHILD_EXITED || end.number != 1 || !strstr(said, words)) fail_msg("it ended otherwise: %s", said);
}

static void test_managers_wait_for_an_etcd_that_is_not_there_yet(void **state) {
  struct scene *scene = *state;
  for (size_t i = 0; i < MANAGERS; i++) scene_start_manager(scene, i);
  scene_await_words(scene->managers[0], "meta.away");
  scene_await_words(scene->managers[0], "LINK_REFUSED");
  scene_start_etcd(scene);
  scene_start_servers(scene);
  worker_start(scene);
  worker_await(scene, 10);
  worker_check(scene);
}

static void test_a_log_that_is_not_ours_is_left_alone(void **state) {
  struct scene *scene = *state;
  scene_start_etcd(scene);
  etcd_put(scene, PREFIX "/log/00000000000000000001", "something else", 14);
  scene_start_manager(scene, 0);
  assert_ends(scene->managers[0], "cannot be read");
  assert_string_equal(etcd_get(scene, PREFIX "/log/00000000000000000001"), "something else");
  assert_int_equal(etcd_count(scene, PREFIX "/log/", PREFIX "/log0"), 1);
  assert_null(etcd_get(scene, PREFIX "/leader")); /* it has given the leadership back */
}

static void test_keys_of_others_are_left_alone(void **state) {
  struct scene *scene = *state;
  scene_start_etcd(scene);
  etcd_put(scene, PREFIX "/term", "of office", 9);
  scene_start_manager(scene, 0);
  assert_ends(scene->managers[0], "cannot be read");
  assert_string_equal(etcd_get(scene, PREFIX "/term"), "of office");
  etcd_put(scene, PREFIX "2/log/x", "another prefix", 14); /* begins alike, and is none of our business */
  etcd_delete(scene, PREFIX "/term", NULL);
  scene_kill(&scene->managers[0]);
  scene_start_manager(scene, 0);
  uint64_t term;
  assert_int_equal(scene_leader(scene, &term), 0);
  scene_await_words(scene->managers[0], "manager.leads");
}

/* All that is ours is gone: to lead on would be to begin another cluster under the nodes' feet. */
static void test_a_manager_does_not_lead_another_cluster_than_it_led(void **state) {
  struct scene *scene = *state;
  scene_start_etcd(scene);
  scene_start_manager(scene, 0);
  scene_start_servers(scene);
  worker_start(scene);
  worker_await(scene, 10);
  scene_await_whole(scene);
  etcd_delete(scene, PREFIX "/", PREFIX "0");
  struct pawl_vector_options shape;
  struct pawl_vector *vector;
  pawl_vector_options_init(&shape);
  assert_int_not_equal(pawl_vector_create(scene->worker.session, "work/lost", &shape, SECOND, &vector), PAWL_OK);
  assert_ends(scene->managers[0], "belongs to another cluster");
  assert_int_equal(etcd_count(scene, PREFIX "/log/", PREFIX "/log0"), 0);
  worker_await(scene, 100); /* servers serve on */
  worker_check(scene);
}

static void test_nodes_of_another_cluster_are_not_let_in(void **state) {
  struct scene *scene = *state;
  scene_start_etcd(scene);
  scene_start_manager(scene, 0);
  scene_start_servers(scene);
  worker_start(scene);
  worker_await(scene, 10);
  scene_await_whole(scene);
  scene_kill(&scene->managers[0]);
  etcd_delete(scene, PREFIX "/", PREFIX "0");
  scene_start_manager(scene, 0); /* which knows nothing, and finds nothing: a new cluster */
  scene_await_words(scene->managers[0], "manager.leads");
  scene_await_words(scene->servers[0], "CLUSTER_OTHER");
  worker_await(scene, 100);
  worker_check(scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_managers_wait_for_an_etcd_that_is_not_there_yet, open_scene, close_scene),
      cmocka_unit_test_setup_teardown(test_a_log_that_is_not_ours_is_left_alone, open_scene, close_scene),
      cmocka_unit_test_setup_teardown(test_keys_of_others_are_left_alone, open_scene, close_scene),
      cmocka_unit_test_setup_teardown(test_a_manager_does_not_lead_another_cluster_than_it_led, open_scene,
                                      close_scene),
      cmocka_unit_test_setup_teardown(test_nodes_of_another_cluster_are_not_let_in, open_scene, close_scene),
  };
  if (!scene_is_possible()) {
    fprintf(stderr, "there is no etcd\n");
    return 77;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
