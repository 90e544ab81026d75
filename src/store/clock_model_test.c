/* Range vector clocks against a naive clock: an array with a time for every sender and key of a small
 * universe. Random operations on two clocks that exchange keys, with many seeds; after each operation every
 * time is compared and every internal invariant is checked. */
#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "store/clock_inside.h"

#define UNIVERSE 40
#define SENDERS 7
#define SEEDS 150
#define STEPS 600
#define BYTES 65536

/* Both ends of the id space, and some that stand close together in the table whatever its size. */
static struct pwi_sender sender_of(size_t i) {
  static const uint64_t mixed[SENDERS] = {0, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 2, UINT64_MAX / 2, 5, 6};
  return (struct pwi_sender){pwi_unmix64(mixed[i])};
}

struct naive {
  bool held[UNIVERSE];
  uint64_t time[SENDERS][UNIVERSE];
};

struct pair {
  struct pwi_clock clock;
  struct naive naive;
};

/* One run. `base` is the first key of the universe. */
struct run {
  struct pwi_random random;
  uint64_t base;
  struct pair pairs[2];
};

static uint64_t last_seed;

static size_t below(struct run *run, size_t n) { return (size_t)pwi_random_below(&run->random, n); }

/* --- comparing ------------------------------------------------------------------------------------------ */

static void assert_steps_are_in_form(const struct pwi_clock *clock, const struct pwi_clock_line *line) {
  const struct pwi_clock_step *steps = pwi_clock_line_view(line);
  assert_true(line->count <= (line->room ? line->room : 1));
  assert_int_equal(steps[0].begin, 0);
  for (size_t i = 1; i < line->count; i++) {
    assert_true(steps[i].begin > steps[i - 1].begin);
    assert_true(steps[i].begin > clock->held.ranges[0].begin);
    assert_true(pwi_rangeset_has(&clock->held, steps[i].begin));
    assert_true(steps[i].time != steps[i - 1].time);
  }
}

static void assert_is_in_form(const struct pwi_clock *clock) {
  size_t count = 0;
  size_t next = 0;
  for (size_t i = 0; i < clock->room; i++) {
    const struct pwi_clock_line *line = &clock->lines[i];
    if (!line->count) continue;
    size_t home = (size_t)(line->mixed >> (64 - clock->bits));
    assert_int_equal(i, home > next ? home : next);
    if (count) assert_true(clock->lines[next - 1].mixed < line->mixed);
    next = i + 1;
    count++;
    assert_steps_are_in_form(clock, line);
  }
  assert_int_equal(count, clock->count);
  assert_true(clock->room == 0 || clock->lines[clock->room - 1].count == 0);
}

static void assert_sender_is_same(const struct run *run, const struct pair *pair, size_t sender) {
  bool known = false;
  for (size_t r = 0; r < pair->clock.held.count; r++) {
    struct pwi_clock_pieces pieces;
    struct pawl_range held = pair->clock.held.ranges[r];
    assert_int_equal(pwi_clock_walk(&pair->clock, sender_of(sender), held, &pieces), PAWL_OK);
    struct pwi_clock_piece piece;
    uint64_t at = held.begin;
    while (pwi_clock_next(&pieces, &piece)) {
      assert_int_equal(piece.range.begin, at);
      for (; at < piece.range.end; at++) assert_int_equal(piece.time, pair->naive.time[sender][at - run->base]);
      known = known || piece.time;
    }
    assert_int_equal(at, held.end);
  }
  assert_int_equal(pwi_clock_has(&pair->clock, sender_of(sender)), known);
}

static void assert_is_same(const struct run *run, const struct pair *pair) {
  assert_is_in_form(&pair->clock);
  for (uint64_t i = 0; i < UNIVERSE; i++)
    assert_int_equal(pwi_rangeset_has(&pair->clock.held, run->base + i), pair->naive.held[i]);
  size_t known = 0;
  for (size_t s = 0; s < SENDERS; s++) {
    assert_sender_is_same(run, pair, s);
    known += pwi_clock_has(&pair->clock, sender_of(s));
  }
  size_t at = 0;
  struct pwi_sender sender;
  for (; pwi_clock_next_sender(&pair->clock, &at, &sender); known--) assert_true(pwi_clock_has(&pair->clock, sender));
  assert_int_equal(known, 0);
}

static size_t count_steps(const struct pwi_clock *clock, struct pwi_sender sender) {
  size_t slot = pwi_table_find(clock, sender);
  return slot < clock->room ? clock->lines[slot].count : 1;
}

/* --- operations ----------------------------------------------------------------------------------------- */

/* Mostly inside one of the clock's ranges, sometimes all of it, sometimes anything. */
static struct pawl_range random_range(struct run *run, const struct pwi_clock *clock) {
  size_t kind = below(run, 10);
  if (kind == 0 || clock->held.count == 0) {
    uint64_t begin = run->base + below(run, UNIVERSE + 1);
    return pawl_range_of(begin, run->base + below(run, UNIVERSE + 1));
  }
  struct pawl_range held = clock->held.ranges[below(run, clock->held.count)];
  if (kind < 4) return held;
  uint64_t begin = held.begin + below(run, (size_t)pawl_range_size(held));
  return pawl_range_of(begin, begin + 1 + below(run, (size_t)(held.end - begin)));
}

/* The expected status of a call for this range. */
static pawl_status expected(const struct run *run, const struct naive *naive, struct pawl_range range) {
  for (uint64_t key = range.begin; key < range.end; key++)
    if (!naive->held[key - run->base]) return PAWL_INVALID;
  return pawl_range_is_empty(range) ? PAWL_INVALID : PAWL_OK;
}

static void do_set(struct run *run, struct pair *pair) {
  struct pawl_range range = random_range(run, &pair->clock);
  size_t sender = below(run, SENDERS);
  uint64_t time = below(run, 12);
  size_t before = count_steps(&pair->clock, sender_of(sender));
  pawl_status status = expected(run, &pair->naive, range);
  if (below(run, 3) == 0) {
    assert_int_equal(pwi_clock_reserve(&pair->clock, sender_of(sender), range), status);
    assert_is_same(run, pair);
  }
  assert_int_equal(pwi_clock_set(&pair->clock, sender_of(sender), range, time), status);
  if (status) return;
  for (uint64_t i = range.begin - run->base; i < range.end - run->base; i++)
    if (pair->naive.time[sender][i] < time) pair->naive.time[sender][i] = time;
  assert_true(count_steps(&pair->clock, sender_of(sender)) <= before + 2);
}

static void do_retire(struct run *run, struct pair *pair) {
  size_t sender = below(run, SENDERS);
  pwi_clock_retire(&pair->clock, sender_of(sender));
  memset(pair->naive.time[sender], 0, sizeof pair->naive.time[sender]);
}

static void naive_drop(const struct run *run, struct naive *naive, struct pawl_range range) {
  for (uint64_t i = range.begin - run->base; i < range.end - run->base; i++) {
    naive->held[i] = false;
    for (size_t s = 0; s < SENDERS; s++) naive->time[s][i] = 0;
  }
}

static void naive_move(const struct run *run, struct naive *from, struct naive *to, struct pawl_range range) {
  for (uint64_t i = range.begin - run->base; i < range.end - run->base; i++) {
    to->held[i] = true;
    for (size_t s = 0; s < SENDERS; s++) to->time[s][i] = from->time[s][i];
  }
  naive_drop(run, from, range);
}

/* A range moves from one clock into the other, the way a server hands an arc over. */
static void do_move(struct run *run, struct pair *from, struct pair *to) {
  struct pawl_range range = random_range(run, &from->clock);
  struct pwi_clock part;
  pawl_status status = expected(run, &from->naive, range);
  assert_int_equal(pwi_clock_take(&from->clock, range, &part), status);
  if (status) return;
  assert_int_equal(pwi_clock_absorb(&to->clock, &part), PAWL_OK);
  assert_true(pwi_rangeset_is_empty(&part.held));
  pwi_clock_fini(&part);
  naive_move(run, &from->naive, &to->naive, range);
}

static void do_drop(struct run *run, struct pair *pair) {
  struct pawl_range range = random_range(run, &pair->clock);
  pawl_status status = expected(run, &pair->naive, range);
  assert_int_equal(pwi_clock_drop(&pair->clock, range), status);
  if (!status) naive_drop(run, &pair->naive, range);
}

/* Keys that neither clock holds come in fresh, at 0. */
static void do_found(struct run *run, struct pair *pair, const struct pair *other) {
  uint64_t first = below(run, UNIVERSE);
  uint64_t end = first;
  while (end < UNIVERSE && !pair->naive.held[end] && !other->naive.held[end]) pair->naive.held[end++] = true;
  struct pawl_range range = pawl_range_of(run->base + first, run->base + end);
  struct pwi_clock fresh;
  assert_int_equal(pwi_clock_init(&fresh, &range, 1), PAWL_OK);
  assert_int_equal(pwi_clock_absorb(&pair->clock, &fresh), PAWL_OK);
}

static void do_absorb_everything(struct pair *pair, struct pair *other) {
  assert_int_equal(pwi_clock_absorb(&pair->clock, &other->clock), PAWL_OK);
  for (size_t i = 0; i < UNIVERSE; i++) {
    pair->naive.held[i] = pair->naive.held[i] || other->naive.held[i];
    for (size_t s = 0; s < SENDERS; s++) pair->naive.time[s][i] += other->naive.time[s][i];
  }
  other->naive = (struct naive){0};
}

/* The copy replaces the original, so that the following operations test it. */
static void do_encode_and_decode(struct pair *pair) {
  static unsigned char bytes[BYTES];
  static unsigned char again[BYTES];
  size_t size;
  size_t size_again;
  struct pwi_clock copy;
  assert_int_equal(pwi_clock_encode(&pair->clock, bytes, sizeof bytes, &size), PAWL_OK);
  assert_int_equal(size, pwi_clock_encoded_size(&pair->clock));
  assert_int_equal(pwi_clock_decode(bytes, size, &copy), PAWL_OK);
  assert_true(pwi_clock_equal(&pair->clock, &copy));
  assert_int_equal(pwi_clock_encode(&copy, again, sizeof again, &size_again), PAWL_OK);
  assert_int_equal(size_again, size);
  assert_memory_equal(bytes, again, size);
  pwi_clock_fini(&pair->clock);
  pair->clock = copy;
}

/* Two halves of a range, copied and joined, are the range. */
static void do_copy(struct run *run, const struct pair *pair) {
  struct pawl_range range = random_range(run, &pair->clock);
  struct pwi_clock whole;
  pawl_status status = expected(run, &pair->naive, range);
  assert_int_equal(pwi_clock_copy(&pair->clock, range, &whole), status);
  if (status) return;
  assert_is_in_form(&whole);
  uint64_t cut = range.begin + below(run, (size_t)pawl_range_size(range));
  if (cut > range.begin) {
    struct pwi_clock low;
    struct pwi_clock high;
    assert_int_equal(pwi_clock_copy(&pair->clock, pawl_range_of(range.begin, cut), &low), PAWL_OK);
    assert_int_equal(pwi_clock_copy(&pair->clock, pawl_range_of(cut, range.end), &high), PAWL_OK);
    assert_int_equal(pwi_clock_absorb(&high, &low), PAWL_OK);
    assert_true(pwi_clock_equal(&high, &whole));
    pwi_clock_fini(&high);
  }
  pwi_clock_fini(&whole);
}

/* --- questions ------------------------------------------------------------------------------------------ */

static void ask_for_times(struct run *run, const struct pair *pair) {
  struct pawl_range range = random_range(run, &pair->clock);
  size_t sender = below(run, SENDERS);
  struct pwi_sender all[SENDERS];
  uint64_t lowest = UINT64_MAX;
  uint64_t highest = 0;
  uint64_t lowest_of_all = UINT64_MAX;
  pawl_status status = expected(run, &pair->naive, range);
  for (size_t s = 0; s < SENDERS; s++) {
    all[s] = sender_of(s);
    for (uint64_t i = range.begin - run->base; !status && i < range.end - run->base; i++) {
      uint64_t time = pair->naive.time[s][i];
      if (time < lowest_of_all) lowest_of_all = time;
      if (s == sender && time < lowest) lowest = time;
      if (s == sender && time > highest) highest = time;
    }
  }
  uint64_t found;
  assert_int_equal(pwi_clock_min(&pair->clock, all[sender], range, &found), status);
  if (!status) assert_int_equal(found, lowest);
  assert_int_equal(pwi_clock_max(&pair->clock, all[sender], range, &found), status);
  if (!status) assert_int_equal(found, highest);
  assert_int_equal(pwi_clock_min_of(&pair->clock, all, SENDERS, range, &found), status);
  if (!status) assert_int_equal(found, lowest_of_all);
}

static void assert_due_keys_match(const struct run *run, const struct pair *pair, const struct pwi_clock_claim *claim,
                                  size_t sender) {
  bool due[UNIVERSE] = {false};
  struct pwi_clock_pieces pieces;
  struct pawl_range range;
  assert_int_equal(pwi_clock_walk(&pair->clock, claim->sender, claim->range, &pieces), PAWL_OK);
  while (pwi_clock_next_due(&pieces, claim->task, &range))
    for (uint64_t key = range.begin; key < range.end; key++) due[key - run->base] = true;
  for (uint64_t i = 0; i < UNIVERSE; i++) {
    bool claimed = pawl_range_has(claim->range, run->base + i);
    assert_int_equal(due[i], claimed && pair->naive.time[sender][i] == claim->prior);
  }
}

static void ask_whose_turn_it_is(struct run *run, const struct pair *pair) {
  size_t sender = below(run, SENDERS);
  struct pwi_clock_claim claim = {.sender = sender_of(sender), .range = random_range(run, &pair->clock)};
  claim.prior = below(run, 12);
  claim.task = below(run, 14);
  pawl_status status = claim.prior < claim.task ? expected(run, &pair->naive, claim.range) : PAWL_INVALID;
  struct pwi_clock_finding finding;
  assert_int_equal(pwi_clock_check(&pair->clock, &claim, &finding), status);
  if (status) return;
  size_t done = 0, due = 0, behind = 0, broken = 0;
  uint64_t lowest = UINT64_MAX;
  uint64_t impossible = 0;
  for (uint64_t i = claim.range.begin - run->base; i < claim.range.end - run->base; i++) {
    uint64_t time = pair->naive.time[sender][i];
    if (time < lowest) lowest = time;
    if (time > claim.prior && time < claim.task && broken++ == 0) impossible = time;
    done += time >= claim.task;
    due += time == claim.prior;
    behind += time < claim.prior;
  }
  enum pwi_clock_verdict verdict = due ? PWI_CLAIM_DUE : PWI_CLAIM_DONE;
  if (behind) verdict = PWI_CLAIM_GAP;
  if (broken) verdict = PWI_CLAIM_BROKEN;
  assert_int_equal(finding.verdict, verdict);
  assert_int_equal(finding.whole, verdict == PWI_CLAIM_DUE && done == 0);
  assert_int_equal(finding.found, broken ? impossible : lowest);
  if (verdict == PWI_CLAIM_DUE) assert_due_keys_match(run, pair, &claim, sender);
}

/* --- the test ------------------------------------------------------------------------------------------- */

static void step(struct run *run) {
  size_t which = below(run, 2);
  struct pair *pair = &run->pairs[which];
  struct pair *other = &run->pairs[!which];
  size_t kind = below(run, 100);
  if (kind < 60)
    do_set(run, pair);
  else if (kind < 70)
    do_move(run, pair, other);
  else if (kind < 76)
    do_copy(run, pair);
  else if (kind < 82)
    do_encode_and_decode(pair);
  else if (kind < 86)
    do_retire(run, pair);
  else if (kind < 89)
    do_drop(run, pair);
  else if (kind < 98)
    do_found(run, pair, other);
  else
    do_absorb_everything(pair, other);
  for (size_t i = 0; i < 2; i++) {
    assert_is_same(run, &run->pairs[i]);
    ask_for_times(run, &run->pairs[i]);
    ask_whose_turn_it_is(run, &run->pairs[i]);
  }
}

static void run_seed(uint64_t seed) {
  static struct run run;
  run = (struct run){.base = seed % 3 == 0 ? 0 : seed % 3 == 1 ? PAWL_KEY_END - UNIVERSE : UINT64_C(1) << 40};
  pwi_random_init(&run.random, seed, 0);
  last_seed = seed;
  struct pawl_range all = pawl_range_of(run.base, run.base + UNIVERSE);
  assert_int_equal(pwi_clock_init(&run.pairs[0].clock, &all, 1), PAWL_OK);
  for (size_t i = 0; i < UNIVERSE; i++) run.pairs[0].naive.held[i] = true;
  for (size_t i = 0; i < STEPS; i++) step(&run);
  for (size_t i = 0; i < 2; i++) pwi_clock_fini(&run.pairs[i].clock);
}

static void test_a_range_clock_agrees_with_a_clock_per_key(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) run_seed(seed);
  assert_int_equal(pwi_memory_counts().live, live);
}

static int print_last_seed(void **state) {
  (void)state;
  print_message("seeds from 1, %d steps each; the last was %llu\n", STEPS, (unsigned long long)last_seed);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(test_a_range_clock_agrees_with_a_clock_per_key, print_last_seed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
