
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "job/shares.h"

enum { CREW_MAX = 12 };

static struct pwi_share crew[CREW_MAX];
static struct pwi_share *shares[CREW_MAX];

static void open_crew(void) {
  for (int i = 0; i < CREW_MAX; i++) {
    crew[i] = (struct pwi_share){0};
    shares[i] = &crew[i];
  }
}

static void close_crew(void) {
  for (int i = 0; i < CREW_MAX; i++) pwi_share_fini(&crew[i]);
}

static void give(size_t who, uint64_t begin, uint64_t end) {
  assert_int_equal(pwi_rangeset_add(&crew[who].has, pawl_range_of(begin, end)), PAWL_OK);
}

static void plan(size_t count, uint64_t pieces) { assert_int_equal(pwi_shares_plan(shares, count, pieces), PAWL_OK); }

static void carry_out(size_t count) {
  for (size_t i = 0; i < count; i++) assert_int_equal(pwi_rangeset_remove_all(&crew[i].has, &crew[i].drops), PAWL_OK);
  for (size_t i = 0; i < count; i++) assert_int_equal(pwi_rangeset_add_all(&crew[i].has, &crew[i].takes), PAWL_OK);
}

static void expect(const struct pwi_rangeset *set, size_t at, uint64_t begin, uint64_t end) {
  assert_true(at < set->count);
  assert_int_equal(set->ranges[at].begin, begin);
  assert_int_equal(set->ranges[at].end, end);
}

static void test_unassigned_pieces_are_shared_out_in_runs(void **state) {
  (void)state;
  open_crew();
  plan(3, 10);
  expect(&crew[0].takes, 0, 0, 4);
  expect(&crew[1].takes, 0, 4, 7);
  expect(&crew[2].takes, 0, 7, 10);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(crew[i].takes.count, 1);
    assert_int_equal(crew[i].drops.count, 0);
  }
  close_crew();
}

static void test_a_newcomer_gets_the_surplus_from_the_ends(void **state) {
  (void)state;
  open_crew();
  give(0, 0, 6);
  give(1, 6, 12);
  plan(3, 12);
  expect(&crew[0].drops, 0, 4, 6);
  expect(&crew[1].drops, 0, 10, 12);
  assert_int_equal(pwi_rangeset_size(&crew[2].takes), 4);
  close_crew();
}

static void test_the_larger_share_stays_with_the_worker_that_has_more(void **state) {
  (void)state;
  open_crew();
  give(0, 0, 2);
  give(1, 2, 5);
  plan(2, 5);
  assert_true(pwi_rangeset_is_empty(&crew[0].drops) && pwi_rangeset_is_empty(&crew[0].takes));
  assert_true(pwi_rangeset_is_empty(&crew[1].drops) && pwi_rangeset_is_empty(&crew[1].takes));
  close_crew();
}

static void test_runs_are_taken_where_they_touch(void **state) {
  (void)state;
  open_crew();
  give(0, 0, 4);
  give(1, 8, 12); /* the owner of [4, 8) is gone */
  plan(2, 12);
  expect(&crew[0].takes, 0, 4, 6);
  expect(&crew[1].takes, 0, 6, 8);
  close_crew();
}

static void test_fragments_are_given_up_first(void **state) {
  (void)state;
  open_crew();
  give(0, 0, 6);
  give(0, 8, 10);
  give(1, 6, 8);
  plan(2, 10);
  expect(&crew[0].drops, 0, 5, 6);
  expect(&crew[0].drops, 1, 8, 10);
  expect(&crew[1].takes, 0, 5, 6);
  expect(&crew[1].takes, 1, 8, 10);
  close_crew();
}

static void test_some_have_none_if_pieces_are_few(void **state) {
  (void)state;
  open_crew();
  plan(4, 2);
  assert_int_equal(pwi_rangeset_size(&crew[0].takes), 1);
  assert_int_equal(pwi_rangeset_size(&crew[1].takes), 1);
  assert_int_equal(pwi_rangeset_size(&crew[2].takes), 0);
  plan(4, 0);
  for (int i = 0; i < 4; i++) assert_int_equal(pwi_rangeset_size(&crew[i].takes), 0);
  assert_int_equal(pwi_shares_plan(shares, 0, 7), PAWL_OK);
  close_crew();
}

/* --- any state ------------------------------------------------------------------------------------------ */

static void scatter(struct pwi_random *random, size_t count, uint64_t pieces) {
  for (uint64_t piece = 0; piece < pieces; piece++) {
    size_t who = (size_t)pwi_random_below(random, count + 1);
    if (who < count) give(who, piece, piece + 1);
  }
}

/* The least number of moves: the surplus over the larger share, and the pieces that are then missing below
 * the smaller share or have no owner. */
static uint64_t fewest_moves(size_t count, uint64_t pieces) {
  uint64_t base = pieces / count, extra = pieces % count, moves = pieces;
  uint64_t above = 0; /* workers that may keep one more */
  for (size_t i = 0; i < count; i++) {
    uint64_t has = pwi_rangeset_size(&crew[i].has);
    moves -= has < base ? has : base;
    above += has > base;
  }
  return moves - (above < extra ? above : extra);
}

static void test_plans_are_even_whole_and_move_as_little_as_can_be(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 3000; seed++) {
    struct pwi_random random;
    pwi_random_init(&random, seed, 0);
    size_t count = 1 + (size_t)pwi_random_below(&random, CREW_MAX);
    uint64_t pieces = pwi_random_below(&random, 40), moved = 0, all = 0;
    open_crew();
    scatter(&random, count, pieces);
    uint64_t fewest = fewest_moves(count, pieces);
    plan(count, pieces);
    for (size_t i = 0; i < count; i++) moved += pwi_rangeset_size(&crew[i].takes);
    carry_out(count);
    for (size_t i = 0; i < count; i++) {
      uint64_t has = pwi_rangeset_size(&crew[i].has);
      all += has;
      if (has != pieces / count && has != (pieces + count - 1) / count)
        fail_msg("seed %llu: %llu of %llu pieces for one of %zu", (unsigned long long)seed, (unsigned long long)has,
                 (unsigned long long)pieces, count);
      for (size_t k = 0; k < i; k++)
        for (size_t r = 0; r < crew[k].has.count; r++)
          assert_false(pwi_rangeset_intersects(&crew[i].has, crew[k].has.ranges[r]));
    }
    if (all != pieces || moved != fewest)
      fail_msg("seed %llu: %llu pieces of %llu, %llu moves where %llu are enough", (unsigned long long)seed,
               (unsigned long long)all, (unsigned long long)pieces, (unsigned long long)moved,
               (unsigned long long)fewest);
    plan(count, pieces); /* a plan that was carried out leads to an empty plan */
    for (size_t i = 0; i < count; i++)
      assert_true(pwi_rangeset_is_empty(&crew[i].takes) && pwi_rangeset_is_empty(&crew[i].drops));
    close_crew();
  }
}

static void test_memory_that_ends_ends_the_plan(void **state) {
  (void)state;
  struct pwi_memory_counts before = pwi_memory_counts();
  for (uint64_t n = 0;; n++) {
    struct pwi_random random;
    pwi_random_init(&random, 7, 0);
    open_crew();
    scatter(&random, 4, 30);
    pwi_memory_fail_after(n);
    pawl_status status = pwi_shares_plan(shares, 4, 30);
    bool has_failed = pwi_memory_fail_cancel();
    assert_int_equal(status, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
    close_crew();
    if (!has_failed) break;
  }
  assert_int_equal(pwi_memory_counts().live, before.live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unassigned_pieces_are_shared_out_in_runs),
      cmocka_unit_test(test_a_newcomer_gets_the_surplus_from_the_ends),
      cmocka_unit_test(test_the_larger_share_stays_with_the_worker_that_has_more),
      cmocka_unit_test(test_runs_are_taken_where_they_touch),
      cmocka_unit_test(test_fragments_are_given_up_first),
      cmocka_unit_test(test_some_have_none_if_pieces_are_few),
      cmocka_unit_test(test_plans_are_even_whole_and_move_as_little_as_can_be),
      cmocka_unit_test(test_memory_that_ends_ends_the_plan),
  };
  return cmocka_run_group_tests_name("job.shares", tests, NULL, NULL);
}
