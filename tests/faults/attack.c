/* The scene of attacks: an honest pair and raw connections. */
#include "base/testing.h"
#include "attack.h"

#include "base/memory.h"

/* Long, because the process may be delayed by a sanitizer or by other load. */
#define PATIENCE_NS INT64_C(1000000000)

void scene_begin(struct scene *scene, bool is_secret, void (*edit)(struct node_plan *plan)) {
  struct node_plan host, honest;
  *scene = (struct scene){0};
  kit_log_begin();
  kit_new_key(scene->key);
  if (is_secret) scene->keys = kit_keyring(scene->key, NULL, NULL);
  node_plan_init(&host, "host");
  host.config.keys = scene->keys;
  host.config.limits.silence_ns = PATIENCE_NS;
  host.listen = "tcp://127.0.0.1:0";
  if (edit) edit(&host);
  scene->host = node_open(&host);
  node_plan_init(&honest, "honest");
  honest.config.keys = scene->keys;
  honest.config.limits.silence_ns = 2 * host.config.limits.silence_ns; /* hosts say less often that they live, too */
  honest.connect = node_address(scene->host);
  honest.insists = true; /* strangers have little time here, and others may have the processor */
  scene->honest = node_open(&honest);
  bool plays = node_wait_pongs(scene->honest, 20);
  if (!plays) kit_log_print();
  assert_true(plays);
  scene->live = pwi_memory_counts().live;
}

static bool is_memory_back(void *live) { return pwi_memory_counts().live <= *(uint64_t *)live; }

static void check_honest(struct scene *scene) {
  if (node_downs(scene->honest) > 0) kit_log_print();
  assert_int_equal(node_downs(scene->honest), 0);
  assert_true(node_wait_pongs(scene->honest, 3));
}

void scene_end(struct scene *scene) {
  check_honest(scene);
  uint64_t allowed = scene->live + 8; /* blocks that the two nets keep: timers, slots of links */
  bool is_back = kit_wait(is_memory_back, &allowed);
  if (!is_back)
    print_error("blocks: %llu before, %llu now\n", (unsigned long long)scene->live,
                (unsigned long long)pwi_memory_counts().live);
  assert_true(is_back);
  node_close(scene->honest);
  node_close(scene->host);
  pwi_keyring_destroy(scene->keys);
}

void scene_attack(struct scene *scene, struct raw *raw) {
  const char *address = node_address(scene->host);
  if (scene->keys)
    assert_true(raw_connect_tls(raw, address, &(struct raw_proof){.key = scene->key}));
  else
    assert_true(raw_connect(raw, address, 0));
}

void scene_check_refused(struct scene *scene, struct raw *raw, const char *detail) {
  assert_true(raw_is_closed(raw));
  bool is_logged = kit_log_wait(detail);
  if (!is_logged) kit_log_print();
  assert_true(is_logged);
  raw_close(raw);
  check_honest(scene);
}
