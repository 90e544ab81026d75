/* Peers with a key that make a node receive more than it has memory for.
 *
 * The memory of arriving messages is bounded by link, by key and in total. Honest senders wait for their
 * turn. Senders that occupy memory and send slowly are dropped when others wait. An honest pair exchanges
 * messages all the time.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/testing.h"
#include "../faults/attack.h"

/* Small enough for a busy machine under a sanitizer: a sender may take a second, and another one for each 16 MiB. */
#define BOUND ((size_t)16 << 20)
#define BODY ((size_t)12 << 20)
#define CROWD 100
#define START ((size_t)256 << 10)   /* bytes of it that are sent at once */
#define TRICKLE 8                   /* bytes at a time; so few that the crowd holds little also after minutes */
#define HEAD_MAX ((size_t)16 << 10) /* bytes that are read with the head of a body when memory is short */
#define SLACK ((size_t)96 << 20)    /* buffers of TLS and sockets, the allocator's own */

/* No link of these tests is ever silent: a busy machine takes a while for a round of the crowd. */
static void bound(struct node_plan *plan) {
  plan->config.limits.silence_ns = KIT_HANG_MS * INT64_C(1000000);
  plan->config.limits.inbound_bytes = BOUND;
  plan->gather = BODY;
}

static char *block; /* of BODY bytes */

static bool begin_body(struct raw *raw, size_t claimed, size_t sent) {
  uint8_t head[PWI_NET_HEAD_SIZE] = {0};
  return raw_frame(raw, PWI_FRAME_MESSAGE, head, claimed, block, sent);
}

/* Sends a whole body as fast as it is accepted, and waits for the answer. */
static bool push(struct raw *raw, size_t size) {
  struct pwi_frame frame;
  uint8_t fields[PWI_FRAME_FIELDS_MAX], body[64];
  if (!begin_body(raw, size, size)) return false;
  return raw_next(raw, &frame, fields, body, sizeof body) && frame.kind == PWI_FRAME_MESSAGE && frame.body_size == 1;
}

struct pusher {
  struct scene *scene;
  const char *key;
  atomic_bool went_well;
  pthread_t thread;
};

static void *push_thrice(void *argument) {
  struct pusher *pusher = argument;
  struct raw raw;
  bool ok = raw_connect_tls(&raw, node_address(pusher->scene->host), &(struct raw_proof){.key = pusher->key}) &&
            raw_come_up(&raw);
  for (int i = 0; ok && i < 3; i++) ok = push(&raw, BODY);
  raw_close(&raw);
  atomic_store(&pusher->went_well, ok);
  return NULL;
}

/* More senders than there is room for at once, none of them slow: all get their turn. */
static void test_honest_senders_wait_for_their_turn(void **state) {
  (void)state;
  struct scene scene;
  struct pusher pushers[6];
  scene_begin(&scene, true, bound);
  for (size_t i = 0; i < 6; i++) {
    pushers[i] = (struct pusher){.scene = &scene, .key = scene.key};
    assert_int_equal(pthread_create(&pushers[i].thread, NULL, push_thrice, &pushers[i]), 0);
  }
  for (size_t i = 0; i < 6; i++) pthread_join(pushers[i].thread, NULL);
  for (size_t i = 0; i < 6; i++) {
    if (!atomic_load(&pushers[i].went_well)) kit_log_print();
    assert_true(atomic_load(&pushers[i].went_well));
  }
  assert_int_equal(node_counts(scene.host).inbound_dropped, 0);
  assert_int_equal(node_counts(scene.host).inbound_max, BOUND);
  assert_true(node_wait_downs(scene.host, 6));
  scene_end(&scene);
}

static bool is_empty(void *host) { return node_counts(host).inbound_bytes == 0; }

struct crowd {
  struct raw raws[CROWD];
  atomic_bool is_over;
  atomic_size_t count; /* links that have announced a body */
  size_t most;         /* that was ever counted */
  struct node *host;
  pthread_t thread;
};

static void note_most(struct crowd *crowd, struct node *host) {
  size_t now = (size_t)node_counts(host).inbound_bytes;
  if (now > crowd->most) crowd->most = now;
}

/* Sends a little on each link, again and again: enough not to be silent, also while others connect. */
static void *trickle(void *argument) {
  struct crowd *crowd = argument;
  while (!atomic_load(&crowd->is_over)) {
    size_t count = atomic_load(&crowd->count);
    for (size_t i = 0; i < count; i++) (void)raw_send(&crowd->raws[i], block, TRICKLE);
    note_most(crowd, crowd->host);
    kit_sleep_ms(10);
  }
  return NULL;
}

/* A hundred links with the cluster's own key each announce a large body, send `sent` bytes and then send
 * slowly. An honest client pushes beside them, and, if `until_dropped`, goes on until one of them was dropped. */
static uint64_t play_crowd(size_t sent, bool until_dropped) {
  static struct crowd crowd;
  struct scene scene;
  unsigned clients = 0;
  memset(&crowd, 0, sizeof crowd);
  scene_begin(&scene, true, bound);
  crowd.host = scene.host;
  size_t before = kit_resident();
  assert_int_equal(pthread_create(&crowd.thread, NULL, trickle, &crowd), 0);
  for (size_t i = 0; i < CROWD; i++) {
    scene_attack(&scene, &crowd.raws[i]);
    assert_true(raw_come_up(&crowd.raws[i]));
    begin_body(&crowd.raws[i], BODY, sent < START ? sent : START);
    atomic_store(&crowd.count, i + 1);
  }
  struct pusher pusher = {.scene = &scene, .key = scene.key};
  int64_t end = kit_now() + KIT_HANG_MS * INT64_C(1000000);
  do {
    push_thrice(&pusher);
    if (!atomic_load(&pusher.went_well)) kit_log_print();
    assert_true(atomic_load(&pusher.went_well));
    clients++;
  } while (until_dropped && node_counts(scene.host).inbound_dropped == 0 && kit_now() < end);
  size_t after = kit_resident();
  if (before) assert_true(after < before + BOUND + BODY + SLACK);
  atomic_store(&crowd.is_over, true);
  pthread_join(crowd.thread, NULL);
  assert_true(crowd.most <= BOUND + BODY);
  for (size_t i = 0; i < CROWD; i++) raw_close(&crowd.raws[i]);
  assert_true(kit_wait(is_empty, scene.host));
  assert_int_equal(node_counts(scene.host).inbound_waiting, 0);
  assert_true(node_wait_downs(scene.host, CROWD + clients));
  uint64_t dropped = node_counts(scene.host).inbound_dropped;
  scene_end(&scene);
  return dropped;
}

/* An announcement alone costs nothing, so no link is closed. */
static void test_large_announcements_cost_nothing(void **state) {
  (void)state;
  assert_int_equal(play_crowd(100, false), 0);
}

/* These links would hold 25 MiB in total. */
static void test_who_holds_memory_and_trickles_is_dropped(void **state) {
  (void)state;
  assert_true(play_crowd(START, true) > 0);
}

#define FIRST ((size_t)16 << 10)  /* bytes of a body that are received before memory is short */
#define WINDOW ((size_t)56 << 10) /* bytes that the socket of a link that nobody reads takes: not many */

static bool is_waiting(void *host) { return node_counts(host).inbound_waiting > 0; }
static bool has_dropped(void *host) { return node_counts(host).inbound_dropped > 0; }
static bool holds_some(void *host) { return node_counts(host).inbound_bytes >= FIRST; }
static bool holds_most(void *host) { return node_counts(host).inbound_bytes >= BODY; }

/* A sender that waits for memory has sent what the socket takes, and can do no more until this side reads. The
 * one that holds the memory and sends nothing is dropped, and the other one continues. */
static void test_who_waits_behind_a_small_window_is_not_slow(void **state) {
  (void)state;
  struct scene scene;
  struct raw slow, honest;
  struct pwi_frame frame;
  uint8_t fields[PWI_FRAME_FIELDS_MAX], body[64];
  scene_begin(&scene, true, bound);
  scene_attack(&scene, &honest);
  assert_true(raw_come_up(&honest));
  assert_true(begin_body(&honest, BODY, FIRST));
  assert_true(kit_wait(holds_some, scene.host));
  scene_attack(&scene, &slow);
  assert_true(raw_come_up(&slow));
  assert_true(begin_body(&slow, BODY, BODY - TRICKLE));
  assert_true(kit_wait(holds_most, scene.host));
  assert_true(raw_send(&honest, block, WINDOW));
  assert_true(kit_wait(is_waiting, scene.host));
  assert_true(kit_wait(has_dropped, scene.host));
  assert_true(raw_send(&honest, block, BODY - FIRST - WINDOW));
  assert_true(raw_next(&honest, &frame, fields, body, sizeof body));
  assert_true(frame.kind == PWI_FRAME_MESSAGE && frame.body_size == 1);
  assert_int_equal(node_counts(scene.host).inbound_dropped, 1);
  raw_close(&slow);
  raw_close(&honest);
  assert_true(node_wait_downs(scene.host, 2));
  scene_end(&scene);
}

/* The links of one key get three quarters at most, so that other keys need not wait. */
static void test_one_key_cannot_take_everything(void **state) {
  (void)state;
  static struct crowd crowd;
  struct scene scene;
  char other[PWI_KEY_TEXT_MAX];
  memset(&crowd, 0, sizeof crowd);
  scene_begin(&scene, true, bound);
  kit_new_key(other);
  struct pwi_keyring *both = kit_keyring(scene.key, other, NULL);
  struct node_plan plan;
  node_plan_init(&plan, "two");
  plan.config.keys = both;
  plan.listen = "tcp://127.0.0.1:0";
  bound(&plan);
  struct node *host = node_open(&plan);
  for (size_t i = 0; i < CROWD; i++) {
    assert_true(raw_connect_tls(&crowd.raws[i], node_address(host), &(struct raw_proof){.key = other}));
    assert_true(raw_come_up(&crowd.raws[i]));
    begin_body(&crowd.raws[i], BODY, START);
    note_most(&crowd, host);
  }
  assert_true(kit_wait(is_waiting, host));
  note_most(&crowd, host);
  /* The first bytes of a body arrive with its head, and one link may exceed the limit. */
  size_t beyond = CROWD * HEAD_MAX + 4 * START;
  assert_true(crowd.most > BOUND / 2 && crowd.most <= BOUND - BOUND / 4 + beyond);
  struct raw honest;
  assert_true(raw_connect_tls(&honest, node_address(host), &(struct raw_proof){.key = scene.key}));
  assert_true(raw_come_up(&honest));
  assert_true(push(&honest, BOUND / 8));
  assert_true(node_counts(host).inbound_bytes <= BOUND + BODY);
  raw_close(&honest);
  for (size_t i = 0; i < CROWD; i++) raw_close(&crowd.raws[i]);
  assert_true(kit_wait(is_empty, host));
  node_close(host);
  pwi_keyring_destroy(both);
  scene_end(&scene);
}

int main(void) {
  block = calloc(1, BODY);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_honest_senders_wait_for_their_turn),
      cmocka_unit_test(test_large_announcements_cost_nothing),
      cmocka_unit_test(test_who_holds_memory_and_trickles_is_dropped),
      cmocka_unit_test(test_who_waits_behind_a_small_window_is_not_slow),
      cmocka_unit_test(test_one_key_cannot_take_everything),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  free(block);
  return failed;
}
