/* The n-th allocation that the engine of one member makes fails: at opening, in a step, while the graph is made again,
 * and at closing. The member goes on, or its step returns NO_MEMORY; the others go on in any case, and nothing leaks.
 *
 * Only allocations of that engine count, with those of the peers and the net that it causes. So everything that calls
 * the engine is wrapped. */
#include "base/memory.h"
#include "base/testing.h"
#include "peer/inside.h"
#include "reducers.h"

static struct team team;
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
  pwi_reduce_events.changed(self);
  disarm();
}

static void linked(void *self, struct pwi_sender peer, const void *description, size_t size) {
  arm();
  pwi_reduce_events.linked(self, peer, description, size);
  disarm();
}

static void lost(void *self, struct pwi_sender peer, pawl_status why) {
  arm();
  pwi_reduce_events.lost(self, peer, why);
  disarm();
}

static void left(void *self, struct pwi_sender peer) {
  arm();
  pwi_reduce_events.left(self, peer);
  disarm();
}

static void heard(void *self, struct pwi_sender peer, uint32_t kind, const void *bytes, size_t size) {
  arm();
  pwi_reduce_events.heard(self, peer, kind, bytes, size);
  disarm();
}

static void shared(void *self, struct pwi_sender peer, uint64_t tag, struct pwi_remote remote, uint64_t size) {
  arm();
  pwi_reduce_events.shared(self, peer, tag, remote, size);
  disarm();
}

static void notified(void *self, struct pwi_sender peer, uint64_t value) {
  arm();
  pwi_reduce_events.notified(self, peer, value);
  disarm();
}

static void done(void *self, struct pwi_sender peer, uint64_t cookie, pawl_status status) {
  arm();
  pwi_reduce_events.done(self, peer, cookie, status);
  disarm();
}

static void writable(void *self, struct pwi_sender peer) {
  arm();
  pwi_reduce_events.writable(self, peer);
  disarm();
}

static void closed(void *self) { pwi_reduce_events.closed(self); }

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
static void enter(const struct reducer *reducer) {
  if (reducer->index == 0) arm();
}

static void leave(const struct reducer *reducer) {
  if (reducer->index != 0) return;
  disarm();
  bool has_channel = reducer->engine && !reducer->engine->has_left;
  if (has_channel) reducer->engine->channel->events = &wrapped;
}

static bool is_behind(void *context) {
  uint64_t until = *(uint64_t *)context;
  for (uint32_t i = 0; i < team.count; i++) {
    struct reducer *reducer = &team.reducers[i];
    if (!reducer->client.client) continue;
    if (i == 0 && (reducer->failed || reducer->status)) { /* what a program does */
      reducer->must_close = reducer->engine != NULL;
      continue;
    }
    if (reducer->report.iteration < until) return true;
  }
  return false;
}

static void run_until(uint64_t iteration, uint64_t n) {
  pawl_status status = pwi_cluster_run_while(&team.cluster, is_behind, &iteration, 20 * PWI_SIM_SECOND);
  if (status) {
    print_error("allocation %llu of the engine, mode %d\n", (unsigned long long)n, (int)team.mode);
    team_print(&team);
  }
  cluster_check(&team.cluster, status, "running");
}

/* Returns false if the engine made fewer allocations. */
static bool play(uint64_t n, uint64_t seed, enum pawl_reduce_mode mode, double significant) {
  struct pwi_cluster_config config = {.seed = 1000 * seed + n, .shared_hosts = n % 2, .client_grace_ns = 300 * MS};
  memset(&team, 0, sizeof team);
  team.count = 4;
  team.mode = mode;
  team.significant = significant;
  team.values = 40;
  team.compute_max = 2 * MS;
  team.lingers = true;
  team.may_fail = true;
  team.entered = enter;
  team.left = leave;
  remaining = n;
  has_failed = false;
  uint64_t live = pwi_memory_counts().live;
  team_open(&team, &config);
  struct reducer *victim = &team.reducers[0];
  while (!victim->engine && !victim->failed) cluster_run_for(&team.cluster, 5 * MS);
  if (victim->failed) { /* the others wait for a member that never opens the reduce */
    assert_int_equal(victim->failed, PAWL_NO_MEMORY);
    pwi_sim_kill(team.cluster.sim, victim->client.node);
  }
  run_until(5, n);
  pwi_sim_kill(team.cluster.sim, team.reducers[3].client.node);
  run_until(team.reducers[1].report.iteration + 8, n);
  assert_int_equal(pwi_sim_restart(team.cluster.sim, team.reducers[3].client.node), PAWL_OK);
  team.reducers[3].report.iteration = 0;
  run_until(team.reducers[1].report.iteration + 8, n);
  assert_true(victim->status == PAWL_OK || victim->status == PAWL_NO_MEMORY);
  victim->must_close = victim->engine != NULL;
  uint64_t until = team.reducers[1].report.iteration + 5;
  while (victim->engine && !victim->is_closed) cluster_run_for(&team.cluster, 5 * MS);
  for (uint32_t i = 1; i < team.count; i++) assert_int_equal(team.reducers[i].status, PAWL_OK);
  if (victim->client.client) pwi_sim_kill(team.cluster.sim, victim->client.node);
  run_until(until, n);
  team_close(&team);
  assert_int_equal(pwi_memory_counts().live, live);
  return has_failed;
}

static void play_all(enum pawl_reduce_mode mode, double significant) {
  for (uint64_t seed = 1; seed <= 4; seed++) {
    uint64_t n = 0;
    while (play(n, seed, mode, significant)) n++;
    assert_true(n > 40);
  }
}

static void test_notify_ack(void **state) {
  (void)state;
  play_all(PAWL_REDUCE_NOTIFY_ACK, 0);
}

static void test_the_significant_filter(void **state) {
  (void)state;
  play_all(PAWL_REDUCE_NOTIFY_ACK, 0.5);
}

static void test_bsp(void **state) {
  (void)state;
  play_all(PAWL_REDUCE_BSP, 0);
}

static void test_async(void **state) {
  (void)state;
  play_all(PAWL_REDUCE_ASYNC, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_notify_ack),
      cmocka_unit_test(test_the_significant_filter),
      cmocka_unit_test(test_bsp),
      cmocka_unit_test(test_async),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
