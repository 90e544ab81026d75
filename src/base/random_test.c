/* Random numbers: published test vectors, then statistical tests with fixed seeds and wide limits. */
#include <math.h>

#include "base/random.h"
#include "base/testing.h"

#define SEED UINT64_C(2011)

struct vector {
  uint32_t counter[4];
  uint32_t key[2];
  uint32_t block[4];
};

/* Known answers of Random123 for philox4x32-10: zeros, ones, and the digits of pi. */
static const struct vector vectors[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void test_blocks_equal_the_published_vectors(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
    uint32_t block[4];
    pwi_philox4x32(vectors[i].counter, vectors[i].key, block);
    assert_memory_equal(block, vectors[i].block, sizeof block);
  }
}

static uint64_t joined(uint32_t low, uint32_t high) { return low | (uint64_t)high << 32; }

/* The mapping of seed, stream and position to key and counter must not change, or old seeds would no longer
 * replay. */
static void test_a_stream_is_its_blocks_in_order(void **state) {
  (void)state;
  assert_int_equal(pwi_random_at(0, 0, 0), joined(0x6627e8d5, 0xe169c58d));
  assert_int_equal(pwi_random_at(0, 0, 1), joined(0xbc57ac4c, 0x9b00dbd8));
  const uint32_t counter[4] = {5, 6, 7, 8};
  const uint32_t key[2] = {9, 10};
  uint32_t block[4];
  pwi_philox4x32(counter, key, block);
  uint64_t first = 2 * joined(5, 6);
  assert_int_equal(pwi_random_at(joined(9, 10), joined(7, 8), first), joined(block[0], block[1]));
  assert_int_equal(pwi_random_at(joined(9, 10), joined(7, 8), first + 1), joined(block[2], block[3]));
}

static void test_the_fast_path_equals_the_plain_one(void **state) {
  (void)state;
  static const uint64_t seeds[] = {0, 1, UINT64_MAX, UINT64_C(0x123456789abcdef0), UINT64_C(0xffffffff)};
  static const uint64_t starts[] = {0, UINT64_C(0x1fffffff0), UINT64_C(0xfffffffffffffff0),
                                    UINT64_C(0x7ffffffffffffff0)};
  for (size_t s = 0; s < 5; s++)
    for (size_t t = 0; t < 5; t++)
      for (size_t p = 0; p < 4; p++) {
        struct pwi_random random;
        pwi_random_init(&random, seeds[s], seeds[t]);
        random.next = starts[p];
        for (uint64_t i = 0; i < 3 * PWI_RANDOM_BATCH; i++)
          assert_int_equal(pwi_random_u64(&random), pwi_random_at(seeds[s], seeds[t], starts[p] + i));
      }
}

static void test_streams_and_seeds_differ(void **state) {
  (void)state;
  assert_true(pwi_random_at(1, 1, 0) != pwi_random_at(1, 2, 0));
  assert_true(pwi_random_at(1, 1, 0) != pwi_random_at(2, 1, 0));
  assert_true(pwi_random_at(1, 2, 0) != pwi_random_at(2, 1, 0));
}

static void test_a_copy_goes_on_from_the_same_position(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 0);
  for (int i = 0; i < 21; i++) pwi_random_u64(&random);
  struct pwi_random copy = random;
  for (int i = 0; i < 40; i++) assert_int_equal(pwi_random_u64(&random), pwi_random_u64(&copy));
}

/* The chance that a sound generator passes `limit` is below one in ten million for each use here. */
static double chi_square(const uint64_t *counts, size_t cells, double expected) {
  double sum = 0;
  for (size_t i = 0; i < cells; i++) sum += pow((double)counts[i] - expected, 2) / expected;
  return sum;
}

static double chi_square_limit(size_t cells) {
  double freedom = (double)cells - 1;
  return freedom + 5.5 * sqrt(2 * freedom) + 20;
}

static void test_every_bit_is_set_half_the_time(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 1);
  enum { DRAWS = 100000 };
  int ones[64] = {0};
  for (int i = 0; i < DRAWS; i++) {
    uint64_t value = pwi_random_u64(&random);
    for (int bit = 0; bit < 64; bit++) ones[bit] += (int)(value >> bit & 1);
  }
  for (int bit = 0; bit < 64; bit++) assert_true(abs(ones[bit] - DRAWS / 2) < 6 * sqrt(DRAWS / 4.0));
}

static void test_bytes_are_uniform(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 2);
  uint64_t counts[256] = {0};
  for (int i = 0; i < 256000; i++) counts[pwi_random_u32(&random) & 255]++;
  assert_true(chi_square(counts, 256, 1000) < chi_square_limit(256));
}

static void test_below_is_uniform_and_stays_below(void **state) {
  (void)state;
  static const uint64_t sizes[] = {1, 2, 3, 7, 10, 100};
  struct pwi_random random;
  pwi_random_init(&random, SEED, 3);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    uint64_t counts[100] = {0};
    for (uint64_t i = 0; i < 2000 * sizes[s]; i++) {
      uint64_t value = pwi_random_below(&random, sizes[s]);
      assert_true(value < sizes[s]);
      counts[value]++;
    }
    assert_true(chi_square(counts, sizes[s], 2000) < chi_square_limit(sizes[s]));
  }
}

/* With n = 3/4 of 2^64, reducing one draw would hit a third of the results twice as often as the others. */
static void test_below_is_unbiased_for_huge_n(void **state) {
  (void)state;
  const uint64_t n = UINT64_C(3) << 62;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 4);
  uint64_t thirds[3] = {0};
  uint64_t residues[3] = {0};
  for (int i = 0; i < 90000; i++) {
    uint64_t value = pwi_random_below(&random, n);
    assert_true(value < n);
    thirds[value >> 62]++;
    residues[value % 3]++;
  }
  assert_true(chi_square(thirds, 3, 30000) < chi_square_limit(3));
  assert_true(chi_square(residues, 3, 30000) < chi_square_limit(3));
}

struct moments {
  double mean, variance, skew;
};

static struct moments moments_of(double (*draw)(struct pwi_random *), uint64_t stream) {
  enum { DRAWS = 200000 };
  static double samples[DRAWS];
  struct pwi_random random;
  pwi_random_init(&random, SEED, stream);
  struct moments m = {0};
  for (int i = 0; i < DRAWS; i++) m.mean += (samples[i] = draw(&random)) / DRAWS;
  for (int i = 0; i < DRAWS; i++) m.variance += pow(samples[i] - m.mean, 2) / DRAWS;
  for (int i = 0; i < DRAWS; i++) m.skew += pow((samples[i] - m.mean) / sqrt(m.variance), 3) / DRAWS;
  return m;
}

static double draw_unit(struct pwi_random *random) {
  double value = pwi_random_unit(random);
  assert_true(value >= 0 && value < 1);
  return value;
}

static double draw_exponential(struct pwi_random *random) {
  double value = pwi_random_exponential(random, 5.0);
  assert_true(value >= 0 && isfinite(value));
  return value;
}

static void assert_near(double value, double wanted, double slack) { assert_true(fabs(value - wanted) < slack); }

static void test_distributions_have_their_moments(void **state) {
  (void)state;
  struct moments unit = moments_of(draw_unit, 5);
  assert_near(unit.mean, 0.5, 0.004);
  assert_near(unit.variance, 1.0 / 12, 0.002);
  assert_near(unit.skew, 0, 0.02);
  struct moments exponential = moments_of(draw_exponential, 6);
  assert_near(exponential.mean, 5, 0.07);
  assert_near(exponential.variance, 25, 1);
  assert_near(exponential.skew, 2, 0.25);
  struct moments normal = moments_of(pwi_random_normal, 7);
  assert_near(normal.mean, 0, 0.014);
  assert_near(normal.variance, 1, 0.02);
  assert_near(normal.skew, 0, 0.035);
}

static void test_chance_happens_as_often_as_it_says(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 8);
  int hits = 0;
  for (int i = 0; i < 100000; i++) {
    hits += pwi_random_chance(&random, 0.2);
    assert_false(pwi_random_chance(&random, 0));
    assert_false(pwi_random_chance(&random, -1));
    assert_true(pwi_random_chance(&random, 1));
    assert_false(pwi_random_chance(&random, NAN));
  }
  assert_true(hits > 19200 && hits < 20800);
}

static void test_each_draw_takes_as_many_values_as_it_says(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 9);
  pwi_random_u32(&random);
  pwi_random_unit(&random);
  pwi_random_chance(&random, 2);
  pwi_random_exponential(&random, 1);
  pwi_random_normal(&random);
  assert_int_equal(random.next, 6);
  assert_int_equal(pwi_random_u64(&random), pwi_random_at(SEED, 9, 6));
}

static void test_shuffle_reaches_every_order_equally_often(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 10);
  uint64_t counts[27] = {0};
  for (int i = 0; i < 12000; i++) {
    uint32_t items[3] = {0, 1, 2};
    pwi_random_shuffle(&random, items, 3, sizeof *items);
    counts[items[0] * 9 + items[1] * 3 + items[2]]++;
  }
  static const int orders[] = {5, 7, 11, 15, 19, 21};
  uint64_t of_order[6];
  for (int i = 0; i < 6; i++) of_order[i] = counts[orders[i]];
  assert_true(chi_square(of_order, 6, 2000) < chi_square_limit(6));
}

struct large {
  uint32_t number;
  unsigned char filling[150];
};

static void test_shuffle_moves_large_items_whole(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 11);
  struct large items[50];
  for (uint32_t i = 0; i < 50; i++) {
    items[i].number = i;
    memset(items[i].filling, (int)i, sizeof items[i].filling);
  }
  pwi_random_shuffle(&random, items, 50, sizeof *items);
  int moved = 0;
  uint64_t seen = 0;
  for (uint32_t i = 0; i < 50; i++) {
    moved += items[i].number != i;
    seen |= UINT64_C(1) << items[i].number;
    for (size_t j = 0; j < sizeof items[i].filling; j++) assert_int_equal(items[i].filling[j], items[i].number);
  }
  assert_int_equal(seen, (UINT64_C(1) << 50) - 1);
  assert_true(moved > 40);
  pwi_random_shuffle(&random, NULL, 0, 8);
}

int main(void) {
  print_message("seed %llu\n", (unsigned long long)SEED);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_blocks_equal_the_published_vectors),
      cmocka_unit_test(test_a_stream_is_its_blocks_in_order),
      cmocka_unit_test(test_the_fast_path_equals_the_plain_one),
      cmocka_unit_test(test_streams_and_seeds_differ),
      cmocka_unit_test(test_a_copy_goes_on_from_the_same_position),
      cmocka_unit_test(test_every_bit_is_set_half_the_time),
      cmocka_unit_test(test_bytes_are_uniform),
      cmocka_unit_test(test_below_is_uniform_and_stays_below),
      cmocka_unit_test(test_below_is_unbiased_for_huge_n),
      cmocka_unit_test(test_distributions_have_their_moments),
      cmocka_unit_test(test_chance_happens_as_often_as_it_says),
      cmocka_unit_test(test_each_draw_takes_as_many_values_as_it_says),
      cmocka_unit_test(test_shuffle_reaches_every_order_equally_often),
      cmocka_unit_test(test_shuffle_moves_large_items_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
