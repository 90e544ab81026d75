/* The n-th allocation that the engine of one member makes fails: at opening, while members begin, in an operation, after
 * a loss, and at closing. Its call returns NO_MEMORY, or everything goes on; the others get NO_MEMORY, CANCELLED or
 * NODE_GONE, and all go on together after renew. Nothing leaks.
 *
 * Only allocations of that engine count, with those of the peers and the net that it causes. So everything that calls
 * the engine is wrapped. */
#include "base/memory.h"
#include "base/testing.h"
#include "collectors.h"
#include "peer/inside.h"

static struct collectors all;
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
  pwi_collective_events.changed(self);
  disarm();
}

static void linked(void *self, struct pwi_sender peer, const void *description, size_t size) {
  arm();
  pwi_collective_events.linked(self, peer, description, size);
  disarm();
}

static void lost(void *self, struct pwi_sender peer, pawl_status why) {
  arm();
  pwi_collective_events.lost(self, peer, why);
  disarm();
}

static void left(void *self, struct pwi_sender peer) {
  arm();
  pwi_collective_events.left(self, peer);
  disarm();
}

static void heard(void *self, struct pwi_sender peer, uint32_t kind, const void *bytes, size_t size) {
  arm();
  pwi_collective_events.heard(self, peer, kind, bytes, size);
  disarm();
}

static void shared(void *self, struct pwi_sender peer, uint64_t tag, struct pwi_remote remote, uint64_t size) {
  arm();
  pwi_collective_events.shared(self, peer, tag, remote, size);
  disarm();
}

static void notified(void *self, struct pwi_sender peer, uint64_t value) {
  arm();
  pwi_collective_events.notified(self, peer, value);
  disarm();
}

static void done(void *self, struct pwi_sender peer, uint64_t cookie, pawl_status status) {
  arm();
  pwi_collective_events.done(self, peer, cookie, status);
  disarm();
}

static void writable(void *self, struct pwi_sender peer) {
  arm();
  pwi_collective_events.writable(self, peer);
  disarm();
}

static void closed(void *self) { pwi_collective_events.closed(self); }

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

static uint32_t victim; /* its rank decides what it allocates: the first member calls the others together */

static void enter(const struct collector *member) {
  if (member->index == victim) arm();
}

static void leave(const struct collector *member) {
  if (member->index != victim) return;
  disarm();
  bool has_channel = member->engine && !member->engine->has_left;
  if (has_channel) member->engine->channel->events = &wrapped;
}

static bool is_behind(void *context) {
  uint64_t until = *(uint64_t *)context;
  for (uint32_t i = 0; i < all.count; i++)
    if (all.members[i].client.client && all.members[i].completed < until) return true;
  return false;
}

/* All members that are up make some more operations. */
static void go_on(uint64_t n) {
  uint64_t until = 0;
  for (uint32_t i = 0; i < all.count; i++)
    if (all.members[i].completed > until) until = all.members[i].completed;
  until += 6;
  pawl_status status = pwi_cluster_run_while(&all.cluster, is_behind, &until, 20 * PWI_SIM_SECOND);
  if (status) {
    print_error("allocation %llu of the engine of member %u\n", (unsigned long long)n, victim);
    collectors_print(&all);
  }
  cluster_check(&all.cluster, status, "running");
}

static void check_statuses(void) {
  for (uint32_t i = 0; i < all.count; i++) {
    const struct collector *member = &all.members[i];
    assert_true(member->status == PAWL_OK || member->status == PAWL_NO_MEMORY);
    if (member->status && member->completed > 0) assert_true(member->problem[0] || i == victim);
  }
}

/* Returns false if the engine made fewer allocations. */
static bool play(uint64_t n, uint64_t seed) {
  struct pwi_cluster_config config = {.seed = 1000 * seed + n, .shared_hosts = n % 2, .client_grace_ns = 300 * MS};
  memset(&all, 0, sizeof all);
  all.count = 4;
  all.largest = seed % 2 ? 40000 : 300;
  all.pause_max = 2 * MS;
  all.must_grow = all.is_mixed_up = true;
  all.entered = enter;
  all.left = leave;
  remaining = n;
  has_failed = false;
  uint64_t live = pwi_memory_counts().live;
  collectors_open(&all, &config);
  go_on(n);
  pwi_sim_kill(all.cluster.sim, all.members[3].client.node);
  go_on(n);
  assert_int_equal(pwi_sim_restart(all.cluster.sim, all.members[3].client.node), PAWL_OK);
  go_on(n);
  check_statuses();
  struct collector *member = &all.members[victim];
  member->must_close = true;
  while (!member->is_closed) cluster_run_for(&all.cluster, 5 * MS);
  collectors_close(&all);
  assert_int_equal(pwi_memory_counts().live, live);
  return has_failed;
}

static void play_all(uint32_t index) {
  victim = index;
  for (uint64_t seed = 1; seed <= 2; seed++) {
    uint64_t n = 0;
    while (play(n, seed)) n++;
    assert_true(n > 40);
  }
}

static void test_the_member_that_calls_the_others(void **state) {
  (void)state;
  play_all(0);
}

static void test_another_member(void **state) {
  (void)state;
  play_all(1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_member_that_calls_the_others),
      cmocka_unit_test(test_another_member),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
