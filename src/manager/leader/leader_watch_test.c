/* When a standby takes the leader's process for ended: over a stub net. */
#include "base/testing.h"
#include "net/stub_testing.h"
#include "manager/leader/leader_watch.h"

#define MS INT64_C(1000000)

struct scene {
  struct stub_net net;
  struct pwi_leader_watch watch;
  unsigned gone;
};

static void gone(void *context) { ((struct scene *)context)->gone++; }

static void open_scene(struct scene *scene) {
  *scene = (struct scene){.gone = 0};
  stub_start(&scene->net, NULL, NULL);
  scene->watch = (struct pwi_leader_watch){.net = &scene->net.net, .cookie = 3, .gone = gone, .context = scene};
}

/* Fires the timer. Returns how long it was set for; an attempt must have begun. */
static int64_t attempt(struct scene *scene) {
  size_t connects = scene->net.connects;
  assert_true(scene->net.timer_at != 0);
  int64_t pause = scene->net.timer_at - scene->net.now;
  scene->net.now = scene->net.timer_at;
  scene->net.timer_at = 0;
  pwi_leader_watch_timer(&scene->watch);
  assert_int_equal(scene->net.connects, connects + 1);
  return pause;
}

static void go_down(struct scene *scene, pawl_status why) {
  assert_true(pwi_leader_watch_link_down(&scene->watch, scene->watch.link, why));
}

static void see_leader(struct scene *scene, const char *address) {
  pwi_leader_watch_set(&scene->watch, address);
  (void)attempt(scene);
  assert_string_equal(scene->net.connected_to, address);
  assert_true(pwi_leader_watch_link_up(&scene->watch, scene->watch.link));
}

/* Anything else may be the network, or a leader that is stopped. */
static void test_only_a_refusal_says_that_a_process_has_ended(void **state) {
  static const struct {
    pawl_status why;
    int64_t pause;
  } others[] = {{PAWL_LINK_RESET, MS},
                {PAWL_LINK_CLOSED, MS},
                {PAWL_LINK_SILENT, 250 * MS},
                {PAWL_LINK_UNREACHABLE, 250 * MS},
                {PAWL_TIMED_OUT, 250 * MS}};
  (void)state;
  struct scene scene;
  open_scene(&scene);
  see_leader(&scene, "tcp://one:1");
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    go_down(&scene, others[i].why);
    assert_int_equal(attempt(&scene), others[i].pause); /* it looks again */
    assert_int_equal(scene.gone, 0);
  }
  go_down(&scene, PAWL_LINK_REFUSED);
  assert_int_equal(scene.gone, 1);
  (void)attempt(&scene);
  go_down(&scene, PAWL_LINK_REFUSED); /* once for each process */
  assert_int_equal(scene.gone, 1);
}

/* Its address may be one that this standby cannot reach. */
static void test_a_leader_that_was_never_seen_is_not_gone(void **state) {
  (void)state;
  struct scene scene;
  open_scene(&scene);
  see_leader(&scene, "tcp://one:1");
  pwi_leader_watch_set(&scene.watch, "tcp://two:1"); /* it succeeds the one that was seen */
  assert_int_equal(scene.net.closed_count, 1);
  (void)attempt(&scene);
  go_down(&scene, PAWL_LINK_REFUSED);
  assert_int_equal(scene.gone, 0);
  (void)attempt(&scene);
  assert_true(pwi_leader_watch_link_up(&scene.watch, scene.watch.link));
  go_down(&scene, PAWL_LINK_RESET);
  (void)attempt(&scene);
  go_down(&scene, PAWL_LINK_REFUSED);
  assert_int_equal(scene.gone, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_only_a_refusal_says_that_a_process_has_ended),
      cmocka_unit_test(test_a_leader_that_was_never_seen_is_not_gone),
  };
  return cmocka_run_group_tests_name("manager.leader.leader_watch", tests, NULL, NULL);
}
