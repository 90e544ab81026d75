/* Hashing: known values, pieces against the whole, and the scramble against its inverse. */
#include "base/hash.h"
#include "base/random.h"
#include "base/testing.h"

#define SEED UINT64_C(64)
#define BYTES 3000 /* past every internal block of XXH3: 16, 128, 240, 256, 1024 */

static unsigned char bytes[BYTES];

static int fill(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 0);
  for (size_t i = 0; i < BYTES; i++) bytes[i] = (unsigned char)pwi_random_u64(&random);
  return 0;
}

static void test_the_empty_string_has_its_published_hash(void **state) {
  (void)state;
  assert_int_equal(pwi_hash("", 0, 0), UINT64_C(0x2d06800538d394c2));
  assert_int_equal(pwi_hash(NULL, 0, 0), UINT64_C(0x2d06800538d394c2));
  struct pwi_hasher hasher;
  pwi_hasher_init(&hasher, 0);
  assert_int_equal(pwi_hasher_value(&hasher), UINT64_C(0x2d06800538d394c2));
}

static uint64_t hash_in_two(size_t cut, size_t size, uint64_t seed) {
  struct pwi_hasher hasher;
  pwi_hasher_init(&hasher, seed);
  pwi_hasher_add(&hasher, bytes, cut);
  pwi_hasher_add(&hasher, bytes + cut, size - cut);
  return pwi_hasher_value(&hasher);
}

static void test_two_pieces_equal_the_whole_at_every_cut(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 3, 16, 17, 128, 129, 240, 241, 256, 257, 1024, 1025, BYTES};
  static const uint64_t seeds[] = {0, 1, UINT64_C(0x9e3779b97f4a7c15)};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (size_t k = 0; k < 3; k++) {
      uint64_t whole = pwi_hash(bytes, sizes[s], seeds[k]);
      for (size_t cut = 0; cut <= sizes[s]; cut++) assert_int_equal(hash_in_two(cut, sizes[s], seeds[k]), whole);
    }
}

static void test_many_random_pieces_equal_the_whole(void **state) {
  (void)state;
  print_message("seed %llu\n", (unsigned long long)SEED);
  struct pwi_random random;
  pwi_random_init(&random, SEED, 1);
  for (int round = 0; round < 300; round++) {
    uint64_t seed = pwi_random_u64(&random);
    struct pwi_hasher hasher;
    pwi_hasher_init(&hasher, seed);
    for (size_t at = 0; at < BYTES;) {
      size_t piece = (size_t)pwi_random_below(&random, 400);
      if (piece > BYTES - at) piece = BYTES - at;
      pwi_hasher_add(&hasher, bytes + at, piece);
      at += piece;
    }
    assert_int_equal(pwi_hasher_value(&hasher), pwi_hash(bytes, BYTES, seed));
  }
}

static void test_a_hasher_works_at_every_address_of_the_allocator(void **state) {
  (void)state;
  static _Alignas(64) unsigned char room[sizeof(struct pwi_hasher) + 64];
  for (size_t offset = 0; offset < 64; offset += _Alignof(struct pwi_hasher)) {
    struct pwi_hasher *hasher = (struct pwi_hasher *)(void *)(room + offset);
    pwi_hasher_init(hasher, offset);
    assert_int_equal((uintptr_t)hasher->state % 64, 0);
    pwi_hasher_add(hasher, bytes, 1500);
    pwi_hasher_add(hasher, bytes + 1500, BYTES - 1500);
    assert_int_equal(pwi_hasher_value(hasher), pwi_hash(bytes, BYTES, offset));
  }
}

static void test_asking_for_the_value_does_not_end_the_hashing(void **state) {
  (void)state;
  struct pwi_hasher hasher;
  pwi_hasher_init(&hasher, 3);
  for (size_t at = 0; at < BYTES; at += 100) {
    assert_int_equal(pwi_hasher_value(&hasher), pwi_hash(bytes, at, 3));
    pwi_hasher_add(&hasher, bytes + at, 100);
  }
}

static void test_seed_and_every_bit_matter(void **state) {
  (void)state;
  uint64_t whole = pwi_hash(bytes, 200, 0);
  assert_true(whole != pwi_hash(bytes, 200, 1));
  for (size_t bit = 0; bit < 1600; bit++) {
    bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    assert_true(whole != pwi_hash(bytes, 200, 0));
    bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
}

static void test_unmixing_undoes_mixing(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 2);
  for (int i = 0; i < 100000; i++) {
    uint64_t value = i < 2 ? (uint64_t)-i : pwi_random_u64(&random) >> i % 64;
    assert_int_equal(pwi_unmix64(pwi_mix64(value)), value);
    assert_int_equal(pwi_mix64(pwi_unmix64(value)), value);
  }
}

static void test_mixing_spreads_neighbours(void **state) {
  (void)state;
  int in_quarter[4] = {0};
  for (uint64_t key = 1; key <= 4000; key++) in_quarter[pwi_mix64(key) >> 62]++;
  for (int i = 0; i < 4; i++) assert_in_range(in_quarter[i], 850, 1150);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_empty_string_has_its_published_hash),
      cmocka_unit_test(test_two_pieces_equal_the_whole_at_every_cut),
      cmocka_unit_test(test_many_random_pieces_equal_the_whole),
      cmocka_unit_test(test_a_hasher_works_at_every_address_of_the_allocator),
      cmocka_unit_test(test_asking_for_the_value_does_not_end_the_hashing),
      cmocka_unit_test(test_seed_and_every_bit_matter),
      cmocka_unit_test(test_unmixing_undoes_mixing),
      cmocka_unit_test(test_mixing_spreads_neighbours),
  };
  return cmocka_run_group_tests(tests, fill, NULL);
}
