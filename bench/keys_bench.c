/* Measures size and speed of coded key lists, compared with copying them: one line of JSON for each kind
 * of list.
 *
 * Rates are bytes of plain keys, 8 each, per second of one core; the best of several rounds. A case named
 * `…/plain` is decoded without vector instructions.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "base/hash.h"
#include "base/memory.h"
#include "wire/keys.h"

#define COUNT 1000000
#define ROUNDS 15

static uint64_t *keys, *back;
static unsigned char *bytes;
static uint64_t drawn;

static uint64_t draw(void) { return pwi_mix64(++drawn * UINT64_C(0x9e3779b97f4a7c15)); }

static size_t decode_plain(size_t size) {
  struct pwi_keys_reader reader;
  size_t done = 0, count;
  check(pwi_keys_reader_init(&reader, bytes, size) == PAWL_OK, "does not decode");
  reader.unpack = pwi_keys_unpack_portable;
  for (; reader.left > 0; done += count) {
    check(pwi_keys_reader_next(&reader, back + done, &count) == PAWL_OK, "does not decode");
  }
  return done;
}

static size_t decode(size_t size, int plain) {
  if (plain) return decode_plain(size);
  size_t count = 0;
  check(pwi_keys_decode(bytes, size, back, COUNT, &count) == PAWL_OK, "does not decode");
  return count;
}

/* Lists of `count` keys, repeated until they make up COUNT. */
static void measure(const char *name, size_t count, int plain) {
  double encode = 1e9, decoding = 1e9, copy = 1e9;
  size_t size = 0, repeat = COUNT / count, total = count * repeat;
  for (int round = 0; round < ROUNDS; round++) {
    double start = now();
    for (size_t i = 0; i < repeat; i++) {
      check(pwi_keys_encode(keys, count, bytes, pwi_keys_bound(COUNT), &size) == PAWL_OK, "does not encode");
    }
    least(&encode, now() - start);
    memset(back, 0, count * sizeof *back);
    start = now();
    for (size_t i = 0; i < repeat; i++) check(decode(size, plain) == count, "loses keys");
    least(&decoding, now() - start);
    check(memcmp(keys, back, count * sizeof *keys) == 0, "changes keys");
    start = now();
    for (size_t i = 0; i < repeat; i++) {
      memcpy(back, keys, count * sizeof *keys);
      __asm__ volatile("" : : "r"(back) : "memory"); /* else the compiler would merge the copies */
    }
    least(&copy, now() - start);
  }
  double gigabytes = (double)(total * sizeof *keys) / 1e9;
  printf("{\"bench\":\"keys\",\"case\":\"%s%s\",\"bytes_per_key\":%.4f,\"encode_gb_per_s\":%.2f,"
         "\"decode_gb_per_s\":%.2f,\"memcpy_gb_per_s\":%.2f}\n",
         name, plain ? "/plain" : "", (double)size / (double)count, gigabytes / encode, gigabytes / decoding,
         gigabytes / copy);
}

static void measure_both(const char *name, size_t count) {
  measure(name, count, 0);
  measure(name, count, 1);
}

static void fill(uint64_t first, uint64_t gap) {
  for (size_t i = 0; i < COUNT; i++, first += 1 + draw() % gap) keys[i] = first;
}

static int ascending(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* pwi_mix64 is a bijection, so no two draws are equal. */
static void fill_random(void) {
  for (size_t i = 0; i < COUNT; i++) keys[i] = draw();
  qsort(keys, COUNT, sizeof *keys, ascending);
}

/* Groups of adjacent keys, far apart. */
static void fill_clusters(void) {
  uint64_t key = 0;
  for (size_t i = 0; i < COUNT; i++) keys[i] = key += draw() % 30 == 0 ? 1 + draw() % 1000000 : 1;
}

int main(void) {
  keys = pwi_alloc(COUNT * sizeof *keys);
  back = pwi_alloc(COUNT * sizeof *back);
  bytes = pwi_alloc(pwi_keys_bound(COUNT));
  check(keys && back && bytes, "out of memory");
  fill(0, 1);
  measure_both("run", COUNT);
  fill(UINT64_C(1) << 40, 255);
  measure_both("gaps<256", COUNT);
  measure_both("gaps<256, 100 keys", 100);
  fill(0, 4095);
  measure_both("gaps<4096", COUNT);
  fill_clusters();
  measure_both("clusters of 30", COUNT);
  fill_random();
  measure_both("random 64-bit", COUNT);
  pwi_free(bytes);
  pwi_free(back);
  pwi_free(keys);
  return 0;
}
