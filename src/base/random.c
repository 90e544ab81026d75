/* Philox4x32-10 (SC'11, section 3.3): one block plainly, and eight at a time with AVX2. A test compares the
 * two. */
#include "base/random.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define ROUNDS 10

/* The multipliers and the key increments (the golden ratio and sqrt(3) - 1) of the paper. */
#define MULTIPLIER_0 UINT32_C(0xD2511F53)
#define MULTIPLIER_1 UINT32_C(0xCD9E8D57)
#define WEYL_0 UINT32_C(0x9E3779B9)
#define WEYL_1 UINT32_C(0xBB67AE85)

static inline uint64_t widening_product(uint32_t a, uint32_t b) { return (uint64_t)a * b; }

void pwi_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t block_out[4]) {
  uint32_t x[4] = {counter[0], counter[1], counter[2], counter[3]};
  uint32_t k[2] = {key[0], key[1]};
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t p = widening_product(MULTIPLIER_0, x[0]);
    uint64_t q = widening_product(MULTIPLIER_1, x[2]);
    x[0] = (uint32_t)(q >> 32) ^ x[1] ^ k[0];
    x[1] = (uint32_t)q;
    x[2] = (uint32_t)(p >> 32) ^ x[3] ^ k[1];
    x[3] = (uint32_t)p;
    k[0] += WEYL_0;
    k[1] += WEYL_1;
  }
  memcpy(block_out, x, sizeof x);
}

void pwi_random_init(struct pwi_random *random, uint64_t seed, uint64_t stream) {
  *random = (struct pwi_random){.seed = seed, .stream = stream};
}

static void make_block(uint64_t seed, uint64_t stream, uint64_t number, uint64_t words_out[2]) {
  uint32_t counter[4] = {(uint32_t)number, (uint32_t)(number >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)};
  uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  uint32_t block[4];
  pwi_philox4x32(counter, key, block);
  words_out[0] = block[0] | (uint64_t)block[1] << 32;
  words_out[1] = block[2] | (uint64_t)block[3] << 32;
}

uint64_t pwi_random_at(uint64_t seed, uint64_t stream, uint64_t n) {
  uint64_t words[2];
  make_block(seed, stream, n / 2, words);
  return words[n % 2];
}

static void refill_plainly(struct pwi_random *random) {
  for (size_t i = 0; i < PWI_RANDOM_BATCH; i += 2)
    make_block(random->seed, random->stream, (random->next + i) / 2, random->words + i);
}

#if defined(__x86_64__)
static_assert(PWI_RANDOM_BATCH == 16, "two vectors of four blocks");

/* Four blocks side by side, twice: each 64-bit lane holds a 32-bit word of one block, x[w][v] word w of
 * vector v. The multiplication reads only the lower half of a lane, so the upper may hold anything until the
 * end. Lanes hold blocks 0, 2, 1, 3, because that is how unpacking puts them back in order. */
__attribute__((target("avx2"))) static void refill_with_avx2(struct pwi_random *random) {
  uint32_t k0 = (uint32_t)random->seed;
  uint32_t k1 = (uint32_t)(random->seed >> 32);
  __m256i x[4][2];
  for (int v = 0; v < 2; v++) {
    __m256i first = _mm256_set1_epi64x((int64_t)(random->next / 2) + 4 * v);
    x[0][v] = _mm256_add_epi64(first, _mm256_set_epi64x(3, 1, 2, 0));
    x[1][v] = _mm256_srli_epi64(x[0][v], 32);
    x[2][v] = _mm256_set1_epi64x((int64_t)random->stream);
    x[3][v] = _mm256_srli_epi64(x[2][v], 32);
  }
  for (int round = 0; round < ROUNDS; round++) {
    for (int v = 0; v < 2; v++) {
      __m256i p = _mm256_mul_epu32(_mm256_set1_epi64x(MULTIPLIER_0), x[0][v]);
      __m256i q = _mm256_mul_epu32(_mm256_set1_epi64x(MULTIPLIER_1), x[2][v]);
      __m256i keyed_1 = _mm256_xor_si256(x[1][v], _mm256_set1_epi32((int)k0));
      __m256i keyed_3 = _mm256_xor_si256(x[3][v], _mm256_set1_epi32((int)k1));
      x[0][v] = _mm256_xor_si256(_mm256_srli_epi64(q, 32), keyed_1);
      x[1][v] = q;
      x[2][v] = _mm256_xor_si256(_mm256_srli_epi64(p, 32), keyed_3);
      x[3][v] = p;
    }
    k0 += WEYL_0;
    k1 += WEYL_1;
  }
  const __m256i low = _mm256_set1_epi64x(UINT32_MAX);
  for (int v = 0; v < 2; v++) {
    __m256i even = _mm256_or_si256(_mm256_and_si256(x[0][v], low), _mm256_slli_epi64(x[1][v], 32));
    __m256i odd = _mm256_or_si256(_mm256_and_si256(x[2][v], low), _mm256_slli_epi64(x[3][v], 32));
    __m256i *words = (__m256i *)(void *)(random->words + 8 * v);
    _mm256_storeu_si256(words, _mm256_unpacklo_epi64(even, odd));
    _mm256_storeu_si256(words + 1, _mm256_unpackhi_epi64(even, odd));
  }
}
#endif

/* A block is a chain of ten multiplications that wait for one another; a batch gives the processor several
 * chains. */
void pwi_random_refill(struct pwi_random *random) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    refill_with_avx2(random);
    return;
  }
#endif
  refill_plainly(random);
}

/* Lemire, "Fast random integer generation in an interval" (2019): the result is the upper half of a 128-bit
 * product. The lower half shows whether the value might have to be rejected; only then is the threshold, a
 * division, computed. */
uint64_t pwi_random_below(struct pwi_random *random, uint64_t n) {
  assert(n > 0);
  unsigned __int128 product = (unsigned __int128)pwi_random_u64(random) * n;
  if ((uint64_t)product < n) {
    uint64_t threshold = (0 - n) % n;
    while ((uint64_t)product < threshold) product = (unsigned __int128)pwi_random_u64(random) * n;
  }
  return (uint64_t)(product >> 64);
}

/* 1 - unit is never 0, so the logarithm is finite. */
double pwi_random_exponential(struct pwi_random *random, double mean) {
  return -mean * log1p(-pwi_random_unit(random));
}

/* Box and Muller (1958), using the cosine only. Keeping the sine for the next call would save a logarithm,
 * but without it every call draws exactly two values. */
double pwi_random_normal(struct pwi_random *random) {
  const double full_turn = 6.283185307179586476925286766559;
  double radius = sqrt(-2.0 * log1p(-pwi_random_unit(random)));
  return radius * cos(full_turn * pwi_random_unit(random));
}

static void swap(unsigned char *a, unsigned char *b, size_t size) {
  unsigned char held[64];
  while (size) {
    size_t piece = size < sizeof held ? size : sizeof held;
    memcpy(held, a, piece);
    memcpy(a, b, piece);
    memcpy(b, held, piece);
    a += piece;
    b += piece;
    size -= piece;
  }
}

/* Fisher and Yates: place by place from the end, each filled from those not yet placed. */
void pwi_random_shuffle(struct pwi_random *random, void *items, size_t count, size_t size) {
  unsigned char *bytes = items;
  for (size_t left = count; left > 1; left--) {
    size_t chosen = (size_t)pwi_random_below(random, left);
    if (chosen != left - 1) swap(bytes + chosen * size, bytes + (left - 1) * size, size);
  }
}
