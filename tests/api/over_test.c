/* Calls that wait for other members end when their own session is over, however long they may wait: a client whose key was revoked
 * hears of no members any more. */
#include "peers_scene.h"

#include <pthread.h>

#include "api/session.h"
#include "client/inside.h"

#define WAIT PATIENCE /* a call that nobody ends sooner was not told */

struct scene {
  struct pawl_session *sessions[2];
  struct pawl_peers *peers[2];
};

/* Two members. Only the first one makes calls that wait. */
static void open_scene(struct scene *scene) {
  static int number;
  char group[32];
  snprintf(group, sizeof group, "o/group%d", ++number);
  for (int i = 0; i < 2; i++) {
    struct pawl_session_options options = peer_options(pawl_session_address(cluster));
    must(pawl_session_open(&options, &scene->sessions[i]));
    must(pawl_peers_join(scene->sessions[i], group, 2, PATIENCE, &scene->peers[i]));
  }
  must(pawl_peers_await(scene->peers[0], 0, PATIENCE)); /* so that calls wait for the other member's calls only */
}

static void close_scene(struct scene *scene) {
  for (int i = 0; i < 2; i++) {
    pawl_peers_leave(scene->peers[i]);
    must(pawl_session_close(scene->sessions[i], PATIENCE));
  }
}

struct call {
  pawl_status (*run)(void *object);
  void *object;
  pawl_status status;
};

static void *run_call(void *context) {
  struct call *call = context;
  call->status = call->run(call->object);
  return NULL;
}

/* The call waits as soon as its thread drives the net. Then the key of its session is revoked. */
static void check_ends(struct scene *scene, pawl_status (*run)(void *object), void *object) {
  struct call call = {.run = run, .object = object};
  struct pwi_driver *driver = &scene->sessions[0]->driver;
  pthread_t thread;
  int64_t deadline = pwi_host_after(WAIT);
  assert_int_equal(pthread_create(&thread, NULL, run_call, &call), 0);
  while (!atomic_load(&driver->is_driven)) sched_yield();
  pwi_driver_enter(driver);
  pwi_client_die(scene->sessions[0]->client, PAWL_LINK_REVOKED);
  pwi_driver_leave(driver);
  pthread_join(thread, NULL);
  assert_int_equal(call.status, PAWL_LINK_REVOKED);
  assert_true(pwi_host_now() < deadline);
}

static pawl_status wait_at_barrier(void *collective) { return pawl_collective_barrier(collective, WAIT); }

/* The other member has not opened the collective, or has not called it. */
static void test_a_collective_ends(void **state) {
  (void)state;
  for (int is_begun = 0; is_begun < 2; is_begun++) {
    struct scene scene;
    struct pawl_collective *collectives[2] = {NULL};
    open_scene(&scene);
    for (int i = 0; i <= is_begun; i++) must(pawl_collective_open(scene.peers[i], "main", PATIENCE, &collectives[i]));
    check_ends(&scene, wait_at_barrier, collectives[0]);
    for (int i = 0; i < 2; i++) pawl_collective_close(collectives[i]);
    close_scene(&scene);
  }
}

static float matrix[4];

static pawl_status open_factor(void *peers) {
  struct pawl_factor *factor = NULL;
  pawl_status status = pawl_factor_open(peers, "w", matrix, 2, 2, PAWL_F32, NULL, WAIT, &factor);
  pawl_factor_close(factor);
  return status;
}

static void test_factors_end(void **state) {
  struct scene scene;
  (void)state;
  open_scene(&scene);
  check_ends(&scene, open_factor, scene.peers[0]);
  close_scene(&scene);
}

static pawl_status make_step(void *reduce) { return pawl_reduce_step(reduce, WAIT, NULL); }

static void test_a_reduce_ends(void **state) {
  const struct pawl_tensor tensor = {.values = matrix, .count = 4, .type = PAWL_F32};
  struct scene scene;
  struct pawl_reduce *reduce = NULL;
  (void)state;
  open_scene(&scene);
  must(pawl_reduce_open(scene.peers[0], "main", &tensor, 1, NULL, PATIENCE, &reduce));
  check_ends(&scene, make_step, reduce);
  pawl_reduce_close(reduce);
  close_scene(&scene);
}

static const struct pawl_items_keys keys = {0, 2, 1};

static pawl_status open_items(void *peers) {
  struct pawl_items *items = NULL;
  pawl_status status = pawl_items_open(peers, "rows", 8, 2, &keys, 1, &keys, 1, NULL, WAIT, &items);
  pawl_items_close(items);
  return status;
}

static void test_opening_items_ends(void **state) {
  struct scene scene;
  (void)state;
  open_scene(&scene);
  check_ends(&scene, open_items, scene.peers[0]);
  close_scene(&scene);
}

static pawl_status get_item(void *items) {
  uint64_t value;
  return pawl_items_get(items, 1, 0, 0, WAIT, &value, NULL);
}

/* Of its own: no other member could wake it. */
static void test_a_get_of_an_item_ends(void **state) {
  struct scene scene = {0};
  struct pawl_session_options options = peer_options(pawl_session_address(cluster));
  struct pawl_items *items = NULL;
  (void)state;
  must(pawl_session_open(&options, &scene.sessions[0]));
  must(pawl_peers_join(scene.sessions[0], "o/alone", 1, PATIENCE, &scene.peers[0]));
  must(pawl_items_open(scene.peers[0], "rows", 8, 2, &keys, 1, &keys, 1, NULL, PATIENCE, &items));
  check_ends(&scene, get_item, items);
  pawl_items_close(items);
  pawl_peers_leave(scene.peers[0]);
  must(pawl_session_close(scene.sessions[0], PATIENCE));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_collective_ends),     cmocka_unit_test(test_factors_end),
      cmocka_unit_test(test_a_reduce_ends),         cmocka_unit_test(test_opening_items_ends),
      cmocka_unit_test(test_a_get_of_an_item_ends),
  };
  return cmocka_run_group_tests_name("api.over", tests, open_cluster, close_cluster);
}
