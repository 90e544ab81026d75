/* The exactly-once protocol for which range vector clocks exist: a client, two servers that exchange keys,
 * and a network that reorders and duplicates pushes. Each server records the pushes that it applies per key;
 * the result is checked against these records, not against the clocks. */
#include "base/random.h"
#include "base/testing.h"
#include "store/clock.h"

#define SEED UINT64_C(20141006)
#define KEYS 64
#define TASKS 40
#define CLAIMS 4096

static const struct pwi_sender client = {1};

struct world {
  struct pwi_random random;
  struct pwi_clock sent;
  struct pwi_clock servers[2];
  struct pwi_clock_claim claims[CLAIMS];
  bool answered[CLAIMS];
  size_t count;
  uint64_t last[KEYS]; /* applied to the key last */
  uint64_t sum[KEYS];  /* of all applied to it */
  uint64_t due[KEYS];  /* of all sent to it */
};

static void start(struct pwi_clock *clock) {
  struct pawl_range range = pawl_range_of(0, KEYS);
  assert_int_equal(pwi_clock_init(clock, &range, 1), PAWL_OK);
}

static struct pawl_range random_range(struct world *world) {
  uint64_t begin = pwi_random_below(&world->random, KEYS);
  return pawl_range_of(begin, begin + 1 + pwi_random_below(&world->random, KEYS - begin));
}

static void add_claim(struct world *world, struct pawl_range range, uint64_t task, uint64_t prior) {
  assert_true(world->count < CLAIMS);
  world->claims[world->count++] = (struct pwi_clock_claim){client, range, task, prior, false};
}

/* A new push sends one claim per piece of the clock of sent pushes. */
static void send_push(struct world *world, uint64_t task) {
  struct pawl_range range = random_range(world);
  struct pwi_clock_pieces pieces;
  struct pwi_clock_piece piece;
  assert_int_equal(pwi_clock_walk(&world->sent, client, range, &pieces), PAWL_OK);
  while (pwi_clock_next(&pieces, &piece)) add_claim(world, piece.range, task, piece.time);
  assert_int_equal(pwi_clock_set(&world->sent, client, range, task), PAWL_OK);
  for (uint64_t key = range.begin; key < range.end; key++) world->due[key] += task;
}

static void apply(struct world *world, struct pwi_clock *server, const struct pwi_clock_claim *claim) {
  struct pwi_clock_pieces pieces;
  struct pawl_range range;
  assert_int_equal(pwi_clock_walk(server, claim->sender, claim->range, &pieces), PAWL_OK);
  while (pwi_clock_next_due(&pieces, claim->task, &range)) {
    for (uint64_t key = range.begin; key < range.end; key++) {
      assert_int_equal(world->last[key], claim->prior);
      world->last[key] = claim->task;
      world->sum[key] += claim->task;
    }
  }
  assert_int_equal(pwi_clock_set(server, claim->sender, claim->range, claim->task), PAWL_OK);
}

/* A claim that no server holds whole is cut in two, as a client does when the view has changed. */
static void recut(struct world *world, size_t i) {
  struct pawl_range range = world->claims[i].range;
  uint64_t cut = range.begin + 1 + pwi_random_below(&world->random, range.end - range.begin - 1);
  world->claims[i].range.end = cut;
  add_claim(world, pawl_range_of(cut, range.end), world->claims[i].task, world->claims[i].prior);
}

static void deliver(struct world *world, size_t i) {
  struct pwi_clock_finding finding;
  const struct pwi_clock_claim *claim = &world->claims[i];
  for (size_t s = 0; s < 2; s++) {
    pawl_status status = pwi_clock_check(&world->servers[s], claim, &finding);
    if (status) continue;
    assert_int_not_equal(finding.verdict, PWI_CLAIM_BROKEN);
    if (world->answered[i]) assert_int_equal(finding.verdict, PWI_CLAIM_DONE);
    if (finding.verdict == PWI_CLAIM_DUE) apply(world, &world->servers[s], claim);
    if (finding.verdict != PWI_CLAIM_GAP) world->answered[i] = true;
    return;
  }
  if (!world->answered[i]) recut(world, i);
}

static void move_keys(struct world *world) {
  struct pwi_clock *from = &world->servers[pwi_random_below(&world->random, 2)];
  struct pwi_clock *to = from == world->servers ? from + 1 : from - 1;
  if (pwi_rangeset_is_empty(&from->held)) return;
  struct pawl_range run = from->held.ranges[pwi_random_below(&world->random, from->held.count)];
  run.begin += pwi_random_below(&world->random, pawl_range_size(run));
  struct pwi_clock part;
  assert_int_equal(pwi_clock_take(from, run, &part), PAWL_OK);
  assert_int_equal(pwi_clock_absorb(to, &part), PAWL_OK);
}

static bool all_answered(const struct world *world) {
  for (size_t i = 0; i < world->count; i++)
    if (!world->answered[i]) return false;
  return true;
}

static void run_world(struct world *world, uint64_t seed) {
  *world = (struct world){0};
  pwi_random_init(&world->random, seed, 0);
  start(&world->sent);
  start(&world->servers[0]);
  for (uint64_t task = 1; task <= TASKS || !all_answered(world);) {
    if (task <= TASKS && pwi_random_chance(&world->random, 0.1)) send_push(world, task++);
    if (world->count) deliver(world, (size_t)pwi_random_below(&world->random, world->count));
    if (pwi_random_chance(&world->random, 0.02)) move_keys(world);
  }
  assert_memory_equal(world->sum, world->due, sizeof world->sum);
  pwi_clock_fini(&world->sent);
  for (size_t i = 0; i < 2; i++) pwi_clock_fini(&world->servers[i]);
}

static void test_every_push_counts_once_on_every_key_whatever_the_network_does(void **state) {
  (void)state;
  static struct world world;
  print_message("seeds %llu to %llu\n", (unsigned long long)SEED, (unsigned long long)SEED + 199);
  for (uint64_t seed = SEED; seed < SEED + 200; seed++) run_world(&world, seed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_push_counts_once_on_every_key_whatever_the_network_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
