/* The n-th allocation that the engine of one member makes fails: at opening, while it shares items, when a
 * member is lost and replaced, and at closing. The member goes on, or fails with PAWL_NO_MEMORY, closes the
 * context and starts again. The others go on in any case, and nothing leaks.
 *
 * Only allocations of that engine count, with those of the peers and the net that it causes. So everything
 * that calls the engine is wrapped. */
#include "base/memory.h"
#include "base/testing.h"
#include "peer/inside.h"
#include "sharers.h"

static struct club club;
static uint64_t remaining; /* allocations before the one that fails */
static bool has_failed;
static uint64_t made;

static void arm(void) {
  made = pwi_memory_counts().allocations;
  if (!has_failed) pwi_memory_fail_after(remaining);
}

static void disarm(void) {
  if (has_failed) return;
  has_failed = pwi_memory_fail_cancel();
  uint64_t count = pwi_memory_counts().allocations - made;
  remaining -= count < remaining ? count : remaining;
}

static void changed(void *self) {
  arm();
  pwi_item_events.changed(self);
  disarm();
}

static void linked(void *self, struct pwi_sender peer, const void *description, size_t size) {
  arm();
  pwi_item_events.linked(self, peer, description, size);
  disarm();
}

static void lost(void *self, struct pwi_sender peer, pawl_status why) {
  arm();
  pwi_item_events.lost(self, peer, why);
  disarm();
}

static void left(void *self, struct pwi_sender peer) {
  arm();
  pwi_item_events.left(self, peer);
  disarm();
}

static void heard(void *self, struct pwi_sender peer, uint32_t kind, const void *bytes, size_t size) {
  arm();
  pwi_item_events.heard(self, peer, kind, bytes, size);
  disarm();
}

static void shared(void *self, struct pwi_sender peer, uint64_t tag, struct pwi_remote remote, uint64_t size) {
  arm();
  pwi_item_events.shared(self, peer, tag, remote, size);
  disarm();
}

static void notified(void *self, struct pwi_sender peer, uint64_t value) {
  arm();
  pwi_item_events.notified(self, peer, value);
  disarm();
}

static void done(void *self, struct pwi_sender peer, uint64_t cookie, pawl_status status) {
  arm();
  pwi_item_events.done(self, peer, cookie, status);
  disarm();
}

static void writable(void *self, struct pwi_sender peer) {
  arm();
  pwi_item_events.writable(self, peer);
  disarm();
}

static void closed(void *self) { pwi_item_events.closed(self); }

static const struct pwi_channel_events wrapped = {.changed = changed,
                                                  .linked = linked,
                                                  .lost = lost,
                                                  .left = left,
                                                  .heard = heard,
                                                  .shared = shared,
                                                  .notified = notified,
                                                  .done = done,
                                                  .writable = writable,
                                                  .closed = closed};

/* The first member is the victim. */
static void enter(const struct sharer *sharer) {
  if (sharer->index == 0) arm();
}

static void leave(const struct sharer *sharer) {
  if (sharer->index != 0) return;
  disarm();
  if (sharer->engine && !sharer->engine->has_left) sharer->engine->channel->events = &wrapped;
}

struct goal {
  uint64_t clock;
  uint32_t except;
};

static bool is_behind(void *context) {
  const struct goal *goal = context;
  if (club.sharers[0].status) return false;
  for (uint32_t i = 0; i < club.count; i++) {
    const struct sharer *sharer = &club.sharers[i];
    bool is_open = sharer->engine && pwi_items_is_open(sharer->engine);
    if (i != goal->except && (!is_open || sharer->clock < goal->clock)) return true;
  }
  return false;
}

static bool is_closing(void *context) {
  const struct sharer *sharer = context;
  return sharer->engine && !sharer->is_closed;
}

static void run_while(bool (*predicate)(void *context), void *context, uint64_t n) {
  pawl_status status = pwi_cluster_run_while(&club.cluster, predicate, context, 20 * PWI_SIM_SECOND);
  if (status) {
    print_error("allocation %llu of the engine\n", (unsigned long long)n);
    club_print(&club);
  }
  cluster_check(&club.cluster, status, "running");
}

/* A program that runs out of memory is started again, once. */
static void run_until(uint64_t clock, uint32_t except, uint64_t n) {
  struct goal goal = {clock, except};
  struct sharer *victim = &club.sharers[0];
  run_while(is_behind, &goal, n);
  if (!victim->status) return;
  assert_int_equal(victim->status, PAWL_NO_MEMORY);
  assert_true(has_failed);
  run_while(is_closing, victim, n);
  assert_int_equal(pwi_sim_restart(club.cluster.sim, victim->client.node), PAWL_OK);
  run_while(is_behind, &goal, n);
  assert_int_equal(victim->status, PAWL_OK);
}

struct kind {
  enum pawl_items_variant variant;
  bool is_conservative;
  size_t size;
};

/* Returns false if the engine made fewer allocations. */
static bool play(const struct kind *kind, uint64_t n, bool is_shared) {
  struct pwi_cluster_config config = {
      .seed = 100 + n, .shared_hosts = is_shared, .checked_hosts = !is_shared, .client_grace_ns = 100 * MS};
  uint64_t live = pwi_memory_counts().live;
  memset(&club, 0, sizeof club);
  club.count = 3;
  club.variant = kind->variant;
  club.is_conservative = kind->is_conservative;
  club.size = kind->size;
  club.compute_max = 4 * MS;
  club.slack = 1;
  club.may_fail = true;
  club.entered = enter;
  club.left = leave;
  remaining = n;
  has_failed = false;
  club_open(&club, &config);
  run_until(5, UINT32_MAX, n);
  pwi_sim_break(club.cluster.sim, club.sharers[0].client.node, club.sharers[1].client.node);
  run_until(club.high + 5, UINT32_MAX, n);
  pwi_sim_kill(club.cluster.sim, club.sharers[2].client.node);
  cluster_run_for(&club.cluster, PWI_SIM_SECOND);
  assert_int_equal(pwi_sim_start(club.cluster.sim, club.sharers[2].client.node), PAWL_OK);
  run_until(club.high + 5, UINT32_MAX, n);
  club.sharers[0].must_close = true;
  run_while(is_closing, &club.sharers[0], n);
  for (uint32_t i = 1; i < club.count; i++) assert_int_equal(club.sharers[i].status, PAWL_OK);
  club_close(&club);
  assert_int_equal(pwi_memory_counts().live, live);
  return has_failed;
}

static void play_all(enum pawl_items_variant variant, bool is_conservative) {
  for (unsigned i = 0; i < 4; i++) {
    const struct kind kind = {variant, is_conservative, i % 2 ? 40 : 5000};
    uint64_t n = 0;
    while (play(&kind, n, i < 2)) n++;
    assert_true(n > 20);
  }
}

static void test_push(void **state) {
  (void)state;
  play_all(PAWL_ITEMS_PUSH, false);
}

static void test_conservative_push(void **state) {
  (void)state;
  play_all(PAWL_ITEMS_PUSH, true);
}

static void test_pull(void **state) {
  (void)state;
  play_all(PAWL_ITEMS_PULL, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_push),
      cmocka_unit_test(test_conservative_push),
      cmocka_unit_test(test_pull),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
