/* Which tree a relay votes for: relays that measure made-up links, second by second. */
#include "relay/choice.h"

#include <math.h>

#include "base/random.h"
#include "base/testing.h"

#define SECOND INT64_C(1000000000)
#define TREES 4
#define RELAYS 5
#define BYTES 1000

static const struct pwi_relay_tree trees[TREES] = {{.tree = PWI_TREE_RACK},
                                                   {.tree = PWI_TREE_NONE},
                                                   {.tree = PWI_TREE_DEGREE, .degree = 2},
                                                   {.tree = PWI_TREE_NEAR, .degree = 4}};

/* What a byte costs in each tree, and how noisy that is; the time of a tick besides. */
static struct {
  double cost[TREES], noise;
  int64_t tick, now;
  struct pwi_random random;
  struct pwi_choice relays[RELAYS];
  size_t count, in_force;
  size_t votes[RELAYS];
  unsigned changes[RELAYS];          /* of votes */
  unsigned choices[RELAYS];          /* changes of the chosen tree */
  int64_t changed_at[RELAYS], least; /* between two changes */
  int64_t tried;                     /* time in force of all trees but the cheapest one */
} world;

static void open_world(size_t relays, int64_t tick, const double cost[TREES]) {
  memset(&world, 0, sizeof world);
  world.count = relays;
  world.tick = tick;
  world.least = INT64_MAX;
  world.now = -500 * SECOND; /* the zero of a clock is arbitrary */
  memcpy(world.cost, cost, sizeof world.cost);
  pwi_random_init(&world.random, 7, 0);
  for (size_t i = 0; i < relays; i++) {
    pwi_choice_begin(&world.relays[i], trees, TREES, 0, SECOND, world.now);
    world.votes[i] = TREES;
  }
}

static size_t place_of(const struct pwi_relay_tree *tree) {
  size_t i = 0;
  while (tree && i < TREES && !pwi_relay_tree_is(&trees[i], tree)) i++;
  return tree ? i : TREES;
}

/* The most votes; of several, the vote of the first relay. */
static size_t elect(void) {
  size_t elected = 0, most = 0;
  for (size_t i = 0; i < world.count; i++) {
    size_t votes = 0;
    for (size_t k = 0; k < world.count; k++) votes += world.votes[k] == world.votes[i];
    if (world.votes[i] == TREES || votes <= most) continue;
    most = votes;
    elected = world.votes[i];
  }
  return elected;
}

static void vote(size_t relay) {
  size_t before = world.relays[relay].chosen;
  size_t now = place_of(pwi_choice_vote(&world.relays[relay], world.now));
  world.choices[relay] += world.relays[relay].chosen != before;
  if (now == world.votes[relay]) return;
  if (world.changes[relay]++ > 1 && world.now - world.changed_at[relay] < world.least)
    world.least = world.now - world.changed_at[relay];
  world.changed_at[relay] = world.now;
  world.votes[relay] = now;
}

static void run_tick(void) {
  int64_t begun = world.now;
  double noise = 1 + world.noise * (2 * pwi_random_unit(&world.random) - 1);
  int64_t took = (int64_t)(world.cost[world.in_force] * noise * BYTES) + 1;
  world.now += took > world.tick ? took : world.tick;
  for (size_t i = 0; i < world.count; i++) pwi_choice_note(&world.relays[i], begun, begun + took, BYTES);
}

/* Ticks, and votes once a second at least. */
static void run_for(int64_t duration) {
  int64_t end = world.now + duration, next = world.now;
  size_t best = 0;
  for (size_t i = 1; i < TREES; i++)
    if (world.cost[i] < world.cost[best]) best = i;
  while (world.now < end) {
    int64_t before = world.now;
    run_tick();
    if (world.in_force != best) world.tried += world.now - before;
    if (world.now < next) continue;
    next = world.now + SECOND;
    for (size_t i = 0; i < world.count; i++) vote(i);
    world.in_force = elect();
    for (size_t i = 0; i < world.count; i++) pwi_choice_in_force(&world.relays[i], world.in_force, world.now);
  }
}

static void check_all_vote_for(size_t tree) {
  assert_int_equal(world.in_force, tree);
  for (size_t i = 0; i < world.count; i++) assert_int_equal(world.votes[i], tree);
}

/* --- one relay ------------------------------------------------------------------------------------------ */

static void test_the_cheapest_tree_is_found(void **state) {
  (void)state;
  for (size_t best = 0; best < TREES; best++) {
    double cost[TREES] = {5000, 5000, 5000, 5000};
    cost[best] = 2000;
    open_world(1, SECOND / 20, cost);
    run_for(60 * SECOND);
    check_all_vote_for(best);
  }
}

static void test_a_tree_that_is_a_little_cheaper_is_not_worth_a_change(void **state) {
  static const double cost[TREES] = {5000, 4000, 4200, 4500};
  (void)state;
  open_world(1, SECOND / 20, cost);
  run_for(60 * SECOND);
  check_all_vote_for(0);
}

static void test_when_links_change_another_tree_is_chosen(void **state) {
  static const double cost[TREES] = {2000, 9000, 6000, 7000};
  (void)state;
  open_world(1, SECOND / 20, cost);
  run_for(60 * SECOND);
  check_all_vote_for(0);
  world.cost[0] = 20000; /* worse: the trees that are remembered are better */
  run_for(60 * SECOND);
  check_all_vote_for(2);
  world.cost[1] = 1000; /* another one has become better: a trial finds it */
  run_for(3600 * SECOND);
  assert_int_equal(world.relays[0].chosen, 1);
}

static void test_trials_take_a_small_part_of_the_time(void **state) {
  static const double cost[TREES] = {2000, 9000, 6000, 7000};
  (void)state;
  open_world(1, SECOND / 20, cost);
  run_for(3600 * SECOND);
  assert_true(world.tried > 0 && world.tried < 3600 * SECOND / 8);
  world.tried = 0;
  run_for(24 * 3600 * SECOND);
  assert_true(world.tried > 0 && world.tried < 24 * 3600 * SECOND / 100);
}

static void test_a_relay_without_sums_does_not_vote(void **state) {
  static const double cost[TREES] = {6000, 9000, 2000, 7000};
  (void)state;
  open_world(1, SECOND / 20, cost);
  assert_null(pwi_choice_vote(&world.relays[0], world.now + SECOND));
  run_for(60 * SECOND);
  assert_non_null(pwi_choice_vote(&world.relays[0], world.now + 300 * SECOND));
  world.now += 700 * SECOND;
  vote(0);
  assert_int_equal(world.votes[0], TREES);
  world.in_force = 0;
  pwi_choice_in_force(&world.relays[0], 0, world.now);
  world.now += 7000 * SECOND; /* all costs are forgotten */
  run_for(60 * SECOND);
  check_all_vote_for(2);
}

static void test_one_tree_needs_no_vote(void **state) {
  (void)state;
  struct pwi_choice choice = {0};
  pwi_choice_note(&choice, 1, 2, 1); /* nothing was begun */
  assert_null(pwi_choice_vote(&choice, 2));
  pwi_choice_begin(&choice, trees, 1, 0, SECOND, 2);
  for (int64_t now = 2; now < 100 * SECOND; now += SECOND / 10) {
    pwi_choice_note(&choice, now - 1, now, BYTES);
    assert_null(pwi_choice_vote(&choice, now));
  }
}

static void test_members_that_stand_still_at_times_do_not_count(void **state) {
  static const double cost[TREES] = {2000, 9000, 6000, 7000};
  (void)state;
  open_world(1, SECOND / 20, cost);
  for (int i = 0; i < 600; i++) {
    run_for(SECOND);
    world.cost[0] = i % 8 == 0 ? 2000000 : 2000; /* one tick of eight seconds, at most */
    run_tick();
    world.cost[0] = 2000;
  }
  assert_int_equal(world.relays[0].chosen, 0);
}

/* Sums that began in the tree before, or make the first links of this one, say nothing about it. */
static void test_the_first_sums_in_a_tree_do_not_count(void **state) {
  (void)state;
  struct pwi_choice choice = {0};
  int64_t now = 0;
  pwi_choice_begin(&choice, trees, TREES, 0, SECOND, now);
  for (; now < 10 * SECOND; now += SECOND / 10) pwi_choice_note(&choice, now, now + 1000 * BYTES, BYTES);
  assert_ptr_not_equal(pwi_choice_vote(&choice, now), &choice.trees[0].is);
  pwi_choice_in_force(&choice, choice.vote, now);
  for (int i = 0; i < 20; i++) pwi_choice_note(&choice, now - SECOND, now + i, BYTES);
  for (int i = 0; i < 20; i++) pwi_choice_note(&choice, now + i, now + 5 * SECOND, BYTES);
  assert_true(choice.trees[choice.vote].cost == 0);
  for (int64_t at = now + 2 * SECOND; at < now + 4 * SECOND; at += SECOND / 10)
    pwi_choice_note(&choice, at, at + 3000 * BYTES, BYTES);
  assert_true(choice.trees[choice.vote].cost == 3000);
}

static void test_a_trial_ends_if_all_sums_are_refused(void **state) {
  (void)state;
  struct pwi_choice choice = {0};
  int64_t now = 0;
  pwi_choice_begin(&choice, trees, TREES, 0, SECOND, now);
  for (; now < 10 * SECOND; now += SECOND / 10) pwi_choice_note(&choice, now, now + 1000 * BYTES, BYTES);
  for (size_t tried = 1; tried < TREES; tried++, now += 6 * SECOND) {
    assert_ptr_equal(pwi_choice_vote(&choice, now), &choice.trees[tried].is);
    pwi_choice_in_force(&choice, tried, now);
    for (int i = 0; i < 40; i++) {
      assert_true(choice.trees[tried].cost == 0);
      pwi_choice_note_refused(&choice, now + i * SECOND / 10, now + i * SECOND / 10 + 1);
      if (i == 20) pwi_choice_note(&choice, now + 2 * SECOND, now + 2 * SECOND + 1, BYTES); /* not all of them yet */
    }
    for (int i = 40; i < 60; i++) pwi_choice_note_refused(&choice, now + i * SECOND / 10, now + i * SECOND / 10 + 1);
    assert_true(isinf(choice.trees[tried].cost));
  }
  assert_ptr_equal(pwi_choice_vote(&choice, now), &choice.trees[0].is);
  pwi_choice_in_force(&choice, 0, now);
  for (int i = 0; i < 100; i++) pwi_choice_note_refused(&choice, now + i * SECOND / 10, now + i * SECOND / 10 + 1);
  assert_true(choice.trees[0].cost < INFINITY); /* servers may be away */
}

/* --- several relays ------------------------------------------------------------------------------------- */

static void test_relays_agree(void **state) {
  static const double cost[TREES] = {6000, 9000, 2000, 7000};
  (void)state;
  open_world(RELAYS, SECOND / 20, cost);
  world.noise = 0.1;
  run_for(120 * SECOND);
  check_all_vote_for(2);
  world.cost[2] = 30000;
  run_for(120 * SECOND);
  check_all_vote_for(0);
}

static void test_relays_whose_ticks_are_slow_agree_too(void **state) {
  static const double cost[TREES] = {6000, 9000, 2000, 7000};
  (void)state;
  open_world(RELAYS, 30 * SECOND, cost); /* as in the paper's evaluation */
  run_for(2 * 3600 * SECOND);
  check_all_vote_for(2);
}

/* Whatever is measured: a trial stands for 5 s, and a choice for longer the more often it changes. */
static void test_votes_do_not_flap(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    static const double cost[TREES] = {3000, 3000, 3000, 3000};
    open_world(RELAYS, SECOND / 20, cost);
    pwi_random_init(&world.random, seed, 0);
    for (int minute = 0; minute < 60; minute++) {
      unsigned before[RELAYS];
      memcpy(before, world.changes, sizeof before);
      for (int i = 0; i < 12; i++) {
        for (size_t k = 0; k < TREES; k++) world.cost[k] = 1000 + 9000 * pwi_random_unit(&world.random);
        run_for(5 * SECOND);
      }
      for (size_t i = 0; i < RELAYS; i++) assert_in_range(world.changes[i] - before[i], 0, 12);
    }
    assert_true(world.least >= 5 * SECOND);
    for (size_t i = 0; i < RELAYS; i++) assert_in_range(world.choices[i], 1, 3600 / 80 + 4);
  }
}

static void test_noise_changes_nothing(void **state) {
  static const double cost[TREES] = {3000, 3000, 3000, 3000};
  (void)state;
  open_world(RELAYS, SECOND / 20, cost);
  world.noise = 0.5;
  run_for(60 * SECOND);
  for (int i = 0; i < 60; i++) {
    run_for(60 * SECOND);
    for (size_t k = 0; k < RELAYS; k++) assert_int_equal(world.relays[k].chosen, 0);
  }
}

/* The others have trees in their jobs, and never change. */
static void test_a_relay_that_is_outvoted_gives_up_trying(void **state) {
  static const double cost[TREES] = {6000, 9000, 2000, 7000};
  (void)state;
  open_world(1, SECOND / 20, cost);
  for (int second = 0; second < 400; second++) {
    for (int i = 0; i < 20; i++) run_tick();
    vote(0);
  }
  assert_int_equal(world.in_force, 0);
  assert_int_equal(world.votes[0], 0);
  assert_in_range(world.changes[0], 1, 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_cheapest_tree_is_found),
      cmocka_unit_test(test_a_tree_that_is_a_little_cheaper_is_not_worth_a_change),
      cmocka_unit_test(test_when_links_change_another_tree_is_chosen),
      cmocka_unit_test(test_trials_take_a_small_part_of_the_time),
      cmocka_unit_test(test_a_relay_without_sums_does_not_vote),
      cmocka_unit_test(test_one_tree_needs_no_vote),
      cmocka_unit_test(test_members_that_stand_still_at_times_do_not_count),
      cmocka_unit_test(test_the_first_sums_in_a_tree_do_not_count),
      cmocka_unit_test(test_a_trial_ends_if_all_sums_are_refused),
      cmocka_unit_test(test_relays_agree),
      cmocka_unit_test(test_relays_whose_ticks_are_slow_agree_too),
      cmocka_unit_test(test_votes_do_not_flap),
      cmocka_unit_test(test_noise_changes_nothing),
      cmocka_unit_test(test_a_relay_that_is_outvoted_gives_up_trying),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
