/* Ten thousand connections that never send a hello.
 *
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/testing.h"
#include "attack.h"
#include "base/memory.h"

#define CROWD 10000
#define SPARE_FILES 600
#define LATECOMERS 10

struct crowd {
  struct raw *members;
  size_t count;
};

/* Both ends of every connection belong to this process. */
static size_t possible(size_t kept_by_host) {
  struct rlimit limit;
  kit_must(getrlimit(RLIMIT_NOFILE, &limit) == 0, "read the limit of files");
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  size_t files = (size_t)limit.rlim_max - SPARE_FILES;
  size_t room = kept_by_host < CROWD ? files - kept_by_host : files / 2;
  if (room >= CROWD) return CROWD;
  printf("only %zu connections: the limit of open files is %llu\n", room, (unsigned long long)limit.rlim_max);
  return room;
}

/* Every thousand connections come from another address, so that ports do not run out. */
static void gather(struct crowd *crowd, const char *address, size_t count) {
  crowd->members = calloc(count, sizeof *crowd->members);
  assert_non_null(crowd->members);
  for (crowd->count = 0; crowd->count < count; crowd->count++) {
    unsigned source = 2 + (unsigned)(crowd->count / 1000);
    struct raw *raw = &crowd->members[crowd->count];
    assert_true(raw_connect(raw, address, source));
    struct linger reset = {1, 0};
    setsockopt(raw->socket, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
}

static void disperse(struct crowd *crowd) {
  for (size_t i = 0; i < crowd->count; i++) raw_close(&crowd->members[i]);
  free(crowd->members);
}

static struct node *open_late(struct scene *scene) {
  struct node_plan plan;
  node_plan_init(&plan, "late");
  plan.config.keys = scene->keys;
  plan.connect = node_address(scene->host);
  return node_open(&plan);
}

/* An honest peer gets in at the first attempt. */
static void come_late(struct scene *scene) {
  struct node *late = open_late(scene);
  assert_true(node_wait_pongs(late, 3));
  assert_int_equal(node_downs(late), 0);
  node_close(late);
}

static void report(const char *what, size_t count, const struct scene *scene, size_t before, int64_t began) {
  printf("%s: %zu connections in %.1f s, %llu turned away, %zu log lines, %zu KB and %llu blocks more; "
         "%llu balls of the honest link\n",
         what, count, (double)(kit_now() - began) / 1e9, (unsigned long long)node_refused(scene->host),
         kit_log_count("link.refused"), kit_resident() > before ? (kit_resident() - before) >> 10 : 0,
         (unsigned long long)(pwi_memory_counts().live - scene->live), (unsigned long long)node_pongs(scene->honest));
}

static void besiege(const char *what, bool is_secret, void (*edit)(struct node_plan *plan), size_t kept_by_host,
                    size_t growth_max) {
  struct scene scene;
  struct crowd crowd;
  size_t count = possible(kept_by_host);
  scene_begin(&scene, is_secret, edit);
  size_t before = kit_resident();
  int64_t began = kit_now();
  uint64_t balls = node_pongs(scene.honest);
  gather(&crowd, node_address(scene.host), count);
  for (int i = 0; i < LATECOMERS; i++) come_late(&scene);
  report(what, count, &scene, before, began);
  assert_true(node_pongs(scene.honest) > balls);
  assert_true(kit_resident() <= before + growth_max);
  /* At most ten lines a second. */
  assert_true(kit_log_count("link.refused") <= (size_t)((kit_now() - began) / INT64_C(1000000000) + 2) * 10);
  disperse(&crowd);
  scene_end(&scene);
}

static void test_ten_thousand_half_open_connections(void **state) {
  (void)state;
  besiege("plain, as it comes", false, NULL, 1024, (size_t)64 << 20);
}

static void test_ten_thousand_half_open_connections_to_a_secret_node(void **state) {
  (void)state;
  besiege("tls, as it comes", true, NULL, 1024, (size_t)256 << 20);
}

static void keep_all(struct node_plan *plan) { plan->config.limits.strangers = 2 * CROWD; }

static void test_ten_thousand_half_open_connections_are_kept_if_it_is_so_configured(void **state) {
  (void)state;
  besiege("plain, all kept", false, keep_all, CROWD, (size_t)128 << 20);
}

/* Connections keep coming while an honest peer tries to get in. */
struct siege {
  const char *address;
  atomic_bool is_over;
  atomic_size_t came;
};

static void *keep_coming(void *argument) {
  struct siege *siege = argument;
  enum { HELD = 2000 };
  struct raw *held = calloc(HELD, sizeof *held);
  kit_must(held != NULL, "get memory");
  size_t came = 0;
  for (; !atomic_load(&siege->is_over); came++) {
    struct raw *raw = &held[came % HELD];
    if (came >= HELD) raw_close(raw);
    raw_connect(raw, siege->address, 2 + (unsigned)(came / 1000 % 200));
    struct linger reset = {1, 0};
    setsockopt(raw->socket, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    atomic_store(&siege->came, came + 1);
  }
  for (size_t i = 0; i < came && i < HELD; i++) raw_close(&held[i]);
  free(held);
  return NULL;
}

static bool is_decided(void *late) { return node_pongs(late) >= 3 || node_downs(late) > 0; }

/* On a busy machine a thousand strangers may come between two steps of an honest peer, which then has to try again.
 * Returns the number of attempts. */
static unsigned come_among(struct scene *scene) {
  for (unsigned attempts = 1;; attempts++) {
    struct node *late = open_late(scene);
    assert_true(kit_wait(is_decided, late));
    bool is_in = node_downs(late) == 0;
    node_close(late);
    if (is_in) return attempts;
    assert_true(attempts < 1000);
  }
}

static bool has_begun(void *siege) { return atomic_load(&((struct siege *)siege)->came) > 3000; }

static void test_a_genuine_peer_gets_in_while_strangers_keep_coming(void **state) {
  (void)state;
  struct scene scene;
  struct siege siege = {0};
  pthread_t thread;
  scene_begin(&scene, false, NULL);
  siege.address = node_address(scene.host);
  assert_int_equal(pthread_create(&thread, NULL, keep_coming, &siege), 0);
  assert_true(kit_wait(has_begun, &siege));
  unsigned attempts = 0;
  for (int i = 0; i < LATECOMERS; i++) attempts += come_among(&scene);
  printf("%zu strangers while %d honest peers came, in %u attempts\n", atomic_load(&siege.came), LATECOMERS, attempts);
  atomic_store(&siege.is_over, true);
  pthread_join(thread, NULL);
  scene_end(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ten_thousand_half_open_connections),
      cmocka_unit_test(test_ten_thousand_half_open_connections_to_a_secret_node),
      cmocka_unit_test(test_ten_thousand_half_open_connections_are_kept_if_it_is_so_configured),
      cmocka_unit_test(test_a_genuine_peer_gets_in_while_strangers_keep_coming),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
