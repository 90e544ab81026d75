/* The n-th allocation that the engine of one member makes fails: at opening, while it commits, when a member is lost and
 * replaced, and at closing. The member goes on, or fails with PAWL_NO_MEMORY, closes its factors and starts again. The
 * others go on in any case with equal matrices, and nothing leaks.
 *
 * Only allocations of that engine count, with those of the peers and the net that it causes. So everything that calls the
 * engine is wrapped. */
#include "base/memory.h"
#include "base/testing.h"
#include "committers.h"
#include "peer/inside.h"

static struct guild guild;
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
  pwi_factor_events.changed(self);
  disarm();
}

static void linked(void *self, struct pwi_sender peer, const void *description, size_t size) {
  arm();
  pwi_factor_events.linked(self, peer, description, size);
  disarm();
}

static void lost(void *self, struct pwi_sender peer, pawl_status why) {
  arm();
  pwi_factor_events.lost(self, peer, why);
  disarm();
}

static void left(void *self, struct pwi_sender peer) {
  arm();
  pwi_factor_events.left(self, peer);
  disarm();
}

static void heard(void *self, struct pwi_sender peer, uint32_t kind, const void *bytes, size_t size) {
  arm();
  pwi_factor_events.heard(self, peer, kind, bytes, size);
  disarm();
}

static void shared(void *self, struct pwi_sender peer, uint64_t tag, struct pwi_remote remote, uint64_t size) {
  arm();
  pwi_factor_events.shared(self, peer, tag, remote, size);
  disarm();
}

static void writable(void *self, struct pwi_sender peer) {
  arm();
  pwi_factor_events.writable(self, peer);
  disarm();
}

static void closed(void *self) { pwi_factor_events.closed(self); }

static const struct pwi_channel_events wrapped = {.changed = changed,
                                                  .linked = linked,
                                                  .lost = lost,
                                                  .left = left,
                                                  .heard = heard,
                                                  .shared = shared,
                                                  .writable = writable,
                                                  .closed = closed};

/* The first member is the victim. */
static void enter(const struct committer *committer) {
  if (committer->index == 0) arm();
}

static void leave(const struct committer *committer) {
  if (committer->index != 0) return;
  disarm();
  if (committer->engine && !committer->engine->has_left) committer->engine->channel->events = &wrapped;
}

struct goal {
  uint64_t clock;
};

static bool is_behind(void *context) {
  const struct goal *goal = context;
  if (guild.committers[0].status) return false;
  for (uint32_t i = 0; i < guild.count; i++) {
    const struct committer *committer = &guild.committers[i];
    if (!committer->engine || !committer->is_open || committer->clock < goal->clock) return true;
  }
  return false;
}

static bool is_closing(void *context) {
  const struct committer *committer = context;
  return committer->engine && !committer->is_closed;
}

static void run_while(bool (*predicate)(void *context), void *context, uint64_t n) {
  pawl_status status = pwi_cluster_run_while(&guild.cluster, predicate, context, 20 * PWI_SIM_SECOND);
  if (status) {
    print_error("allocation %llu of the engine\n", (unsigned long long)n);
    guild_print(&guild);
  }
  cluster_check(&guild.cluster, status, "running");
}

/* A program that runs out of memory is started again, once. */
static void run_until(uint64_t clock, uint64_t n) {
  struct goal goal = {clock};
  struct committer *victim = &guild.committers[0];
  run_while(is_behind, &goal, n);
  if (!victim->status) return;
  assert_int_equal(victim->status, PAWL_NO_MEMORY);
  assert_true(has_failed);
  run_while(is_closing, victim, n);
  assert_int_equal(pwi_sim_restart(guild.cluster.sim, victim->client.node), PAWL_OK);
  run_while(is_behind, &goal, n);
  assert_int_equal(victim->status, PAWL_OK);
}

/* Returns false if the engine made fewer allocations. */
static bool play(uint64_t n, bool is_shared, bool is_large) {
  struct pwi_cluster_config config = {
      .seed = 100 + n, .shared_hosts = is_shared, .checked_hosts = !is_shared, .client_grace_ns = 100 * MS};
  uint64_t live = pwi_memory_counts().live;
  memset(&guild, 0, sizeof guild);
  guild.count = 3;
  guild.mode = PAWL_FACTOR_SSP;
  guild.staleness = 1;
  guild.compute_max = 20 * MS;
  guild.is_dense = is_large;
  guild.pairs = 90;
  guild.may_fail = true;
  guild.entered = enter;
  guild.left = leave;
  remaining = n;
  has_failed = false;
  guild_open(&guild, &config);
  run_until(4, n);
  pwi_sim_break(guild.cluster.sim, guild.committers[0].client.node, guild.committers[1].client.node);
  run_until(guild.high + 3, n);
  pwi_sim_kill(guild.cluster.sim, guild.committers[2].client.node);
  cluster_run_for(&guild.cluster, 300 * MS);
  assert_int_equal(pwi_sim_start(guild.cluster.sim, guild.committers[2].client.node), PAWL_OK);
  run_until(guild.high + 3, n);
  guild.committers[0].must_close = true;
  run_while(is_closing, &guild.committers[0], n);
  for (uint32_t i = 1; i < guild.count; i++) {
    if (guild.committers[i].status) guild_print(&guild);
    assert_int_equal(guild.committers[i].status, PAWL_OK);
  }
  guild_close(&guild);
  assert_int_equal(pwi_memory_counts().live, live);
  return has_failed;
}

static void play_all(bool is_shared, bool is_large) {
  uint64_t n = 0;
  while (play(n, is_shared, is_large)) n += 1 + n / 10; /* the later ones repeat */
  assert_true(n > 60);
}

static void test_commits_in_place(void **state) {
  (void)state;
  play_all(true, false);
}

static void test_commits_in_pieces(void **state) {
  (void)state;
  play_all(false, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_commits_in_place),
      cmocka_unit_test(test_commits_in_pieces),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
