/* Members of a group with different keys, with a function that is not plain addition: each tick is one step
 * on the union of their rows, for any keys, any order and any distance between members. */
#include "shard/testing.h"

#include <math.h>

#define SIZE 60
#define VECTOR 1
#define GROUP 9
#define MEMBERS 4
#define TICKS 12
#define AHEAD 3 /* ticks that one member may be before another */
#define SEEDS 300
#define L1 2.0
#define L2 0.5

/* The push of a member in a tick: pairs g u for some keys. */
struct step {
  struct pawl_range block;
  enum pwi_request_keys how;
  size_t count;
  uint64_t keys[SIZE];
  double pairs[2 * SIZE];
  uint64_t cut; /* where it is cut into two pieces; 0: it is not */
};

static struct step steps[MEMBERS][TICKS];
static double model[2 * SIZE];

static struct {
  struct pwi_membership membership;
  struct pwi_shard *shard;
  struct pwi_random random;
  uint64_t given[MEMBERS]; /* ticks whose parts are here */
  uint64_t answered[MEMBERS];
  size_t sums, alone;
} scene;

static void note_answer(void *context, struct pwi_waiter waiter, const struct pwi_outcome *outcome) {
  (void)context, (void)waiter, (void)outcome;
  fail_msg("nobody has to send anything again");
}

static void note_in(void *context, struct pwi_waiter waiter, uint64_t task, const struct pwi_request *pull) {
  (void)context, (void)pull;
  if (task > scene.answered[waiter.owner - 1]) scene.answered[waiter.owner - 1] = task;
}

static void start(bool sparse) {
  struct pwi_shard_config config = {.memory_max = UINT64_MAX, .answer = note_answer};
  struct pwi_entry entry = entry_of(VECTOR, PAWL_F64, 1, SIZE, sparse), settled = entry;
  snprintf(entry.is.rule, sizeof entry.is.rule, "block_newton l1=%g l2=%g eps=1e-9", L1, L2);
  assert_int_equal(pwi_options_settle(&entry.is, NULL, &settled.is), PAWL_OK);
  scene.membership = membership_of(MEMBERS);
  scene.shard = shard_of(&config);
  assert_int_equal(pwi_shard_hold(scene.shard, WHOLE_RING), PAWL_OK);
  open_vector(scene.shard, settled);
  open_vector(scene.shard, group_of(GROUP));
  for (uint64_t id = 1; id <= MEMBERS; id++)
    assert_int_equal(
        pwi_membership_join(&scene.membership, (struct pwi_vector_id){GROUP}, MEMBERS, (struct pwi_sender){id}),
        PAWL_OK);
  pwi_shard_set_membership(scene.shard, &scene.membership);
  memset(scene.given, 0, sizeof scene.given);
  memset(scene.answered, 0, sizeof scene.answered);
  memset(model, 0, sizeof model);
  scene.sums = scene.alone = 0;
}

static void stop(void) {
  pwi_shard_destroy(scene.shard);
  pwi_membership_fini(&scene.membership);
}

/* Integers have exact sums in any order. */
static void draw_step(struct step *step, struct pawl_range block, const struct step *like) {
  struct pwi_random *random = &scene.random;
  double share = pwi_random_unit(random) * pwi_random_unit(random);
  step->block = block;
  step->how = pwi_random_chance(random, 0.3) ? PWI_KEYS_RANGE : PWI_KEYS_LIST;
  step->count = 0;
  for (uint64_t key = block.begin; key < block.end; key++)
    if (step->how == PWI_KEYS_RANGE || pwi_random_chance(random, share)) step->keys[step->count++] = key;
  if (like && pwi_random_chance(random, 0.3)) *step = *like;
  step->cut = pwi_random_chance(random, 0.2) ? block.begin + pwi_random_below(random, block.end - block.begin) : 0;
  if (step->cut == block.begin) step->cut = 0; /* each piece has something of the block */
  for (size_t i = 0; i < step->count; i++) {
    step->pairs[2 * i] = (double)pwi_random_below(random, 41) - 20;
    step->pairs[2 * i + 1] = (double)pwi_random_below(random, 5);
  }
}

static void draw_steps(void) {
  for (uint64_t tick = 0; tick < TICKS; tick++) {
    uint64_t begin = pwi_random_below(&scene.random, SIZE / 2);
    struct pawl_range block = {begin, begin + 1 + pwi_random_below(&scene.random, SIZE - begin)};
    for (size_t m = 0; m < MEMBERS; m++) draw_step(&steps[m][tick], block, m > 0 ? &steps[m - 1][tick] : NULL);
  }
}

static void step_model(uint64_t tick) {
  double g[SIZE] = {0}, u[SIZE] = {0};
  bool is_there[SIZE] = {0};
  for (size_t m = 0; m < MEMBERS; m++)
    for (size_t i = 0; i < steps[m][tick].count; i++) {
      uint64_t key = steps[m][tick].keys[i];
      g[key] += steps[m][tick].pairs[2 * i];
      u[key] += steps[m][tick].pairs[2 * i + 1];
      is_there[key] = true;
    }
  for (size_t key = 0; key < SIZE; key++) {
    if (!is_there[key]) continue;
    double a = u[key] + 1e-9, z = a * model[2 * key] - g[key];
    double shrunk = z > L1 ? z - L1 : z < -L1 ? z + L1 : 0;
    model[2 * key] = shrunk / (a + L2);
    model[2 * key + 1] = g[key];
  }
}

static void settle(void) {
  struct pwi_request request;
  struct pwi_aggregate *sum;
  while ((sum = pwi_shard_next_sum(scene.shard, &request))) {
    struct pwi_served served;
    assert_int_equal(pwi_shard_apply_sum(scene.shard, sum, &request, &served), PAWL_OK);
    if (served.effect == PWI_EFFECT_ROWS) scene.sums++;
    pwi_shard_end_sum(scene.shard, sum, note_in, NULL);
  }
}

/* The keys of the step that lie in `claim`. */
static void give(size_t member, uint64_t tick, struct pawl_range claim) {
  const struct step *step = &steps[member][tick];
  struct pawl_range range = pawl_range_common(step->block, claim);
  struct pwi_request request = request_of(PWI_REQUEST_PUSH, VECTOR, SIZE);
  size_t first = 0, last;
  while (first < step->count && step->keys[first] < claim.begin) first++;
  for (last = first; last < step->count && step->keys[last] < claim.end;) last++;
  struct iovec values = {(void *)(uintptr_t)&step->pairs[2 * first], (last - first) * 2 * sizeof(double)};
  request.terms.claim = claim;
  request.terms.range = pawl_range_is_empty(range) ? claim : range;
  request.terms.keys = last > first && step->how == PWI_KEYS_RANGE ? PWI_KEYS_RANGE : PWI_KEYS_LIST;
  request.terms.rows = last - first;
  request.terms.other = GROUP;
  request.terms.prior = tick;
  request.keys = &step->keys[first];
  request.encoded = request.keys;
  request.encoded_as = (struct pwi_section){.length = (last - first) * sizeof(uint64_t)};
  request.sender.id = member + 1;
  request.task = request.tick = tick + 1;
  request.waiter = (struct pwi_waiter){.owner = member + 1, .number = tick + 1};
  request.arc = pawl_range_of(0, SIZE);
  request.value_type = PAWL_F64;
  request.values = &values;
  request.value_parts = 1;
  for (int times = pwi_random_chance(&scene.random, 0.2) ? 2 : 1; times > 0; times--) { /* also again */
    struct pwi_served served = serve(scene.shard, &request, NULL);
    assert_true(served.is_deferred);
    if (served.effect != PWI_EFFECT_NONE) scene.alone++;
  }
  settle();
}

static void give_part(size_t member) {
  uint64_t tick = scene.given[member], cut = steps[member][tick].cut;
  if (cut > 0) give(member, tick, pawl_range_of(0, cut));
  give(member, tick, pawl_range_of(cut, SIZE));
  scene.given[member]++;
}

static uint64_t least(const uint64_t *numbers) {
  uint64_t lowest = numbers[0];
  for (size_t m = 1; m < MEMBERS; m++) lowest = numbers[m] < lowest ? numbers[m] : lowest;
  return lowest;
}

static void compare(uint64_t seed, uint64_t tick) {
  struct pwi_request pull = request_of(PWI_REQUEST_PULL, VECTOR, SIZE);
  double out[2 * SIZE];
  assert_served(scene.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  for (size_t i = 0; i < 2 * SIZE; i++)
    if (fabs(out[i] - model[i]) > 1e-12 * (1 + fabs(model[i])))
      fail_msg("seed %u tick %u value %zu: %.17g, not %.17g", (unsigned)seed, (unsigned)tick, i, out[i], model[i]);
}

static void run(uint64_t seed) {
  pwi_random_init(&scene.random, 20140, seed);
  start(seed % 2);
  draw_steps();
  for (uint64_t done = 0; done < TICKS;) {
    size_t member = (size_t)pwi_random_below(&scene.random, MEMBERS);
    if (scene.given[member] == TICKS || scene.given[member] > least(scene.given) + AHEAD) continue;
    give_part(member);
    for (; done < least(scene.given); done++) step_model(done);
    compare(seed, done);
    for (size_t m = 0; m < MEMBERS; m++) assert_int_equal(scene.answered[m], done);
  }
  assert_int_equal(scene.sums, TICKS);
  assert_int_equal(scene.alone, 0);
  stop();
}

static void test_each_tick_is_one_step_on_the_union_of_what_members_have(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t seed = 0; seed < SEEDS; seed++) run(seed);
  assert_int_equal(pwi_memory_counts().live, live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_tick_is_one_step_on_the_union_of_what_members_have),
  };
  print_message("seeds 0 to %d\n", SEEDS - 1);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
