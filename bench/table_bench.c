/* Measures speed and size of tables, compared with a plain loop over an array: one line of JSON for each.
 *
 * One thread, rows of one f32, the best of several rounds, in processor time of the thread. Cases:
 *   cached    gather and scatter-add with resolved slots, of `list` sorted keys in a table of `table` keys;
 *             the limit is a loop over the same slots of an array
 *   find      resolving a new sorted list each time, all keys present
 *   insert    resolving a sorted list of hashed keys with creation; `table` is the number of keys before
 *   refresh   a kept list after `fresh` other keys were created; the limit is resolving it again
 *   keys      pushing a fresh list, resolve and add, in nanoseconds per key; the list is a tenth of the table
 *   range     adding an array to a dense range; the limit is y += x
 *   memory    bytes per key of a sparse table, beside the 12 of key and value
 *
 *   table_bench [largest table, 10000000 by default]
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "base/hash.h"
#include "base/memory.h"
#include "store/table.h"

#define ROUNDS 9
#define BATCH ((size_t)1000000)

static void *take(size_t count, size_t size) {
  void *block = pwi_alloc_zero(count, size);
  check(block != NULL, "out of memory");
  return block;
}

static void print(const char *name, const char *op, size_t table, size_t list, double value, const char *unit,
                  double limit) {
  printf("{\"bench\":\"table\",\"case\":\"%s\",\"op\":\"%s\",\"table\":%zu,\"list\":%zu,\"value\":%.4g,\"unit\":\"%s\"",
         name, op, table, list, value, unit);
  if (limit > 0) printf(",\"limit\":%.4g", limit);
  printf("}\n");
  fflush(stdout);
}

/* --- keys ----------------------------------------------------------------------------------------------- */

/* Radix sort by eleven bits at a time, the lowest first. */
static void sort(uint64_t *keys, size_t count) {
  uint64_t *other = take(count, sizeof *other), *from = keys, *to = other;
  for (unsigned shift = 0; shift < 64; shift += 11) {
    size_t starts[2049] = {0};
    for (size_t i = 0; i < count; i++) starts[((from[i] >> shift) & 2047) + 1]++;
    for (size_t i = 0; i < 2048; i++) starts[i + 1] += starts[i];
    for (size_t i = 0; i < count; i++) to[starts[(from[i] >> shift) & 2047]++] = from[i];
    uint64_t *swap = from;
    from = to;
    to = swap;
  }
  pwi_free(other); /* after six passes the result is in the original array */
}

/* Distinct for distinct n, because pwi_mix64 is a bijection. */
static uint64_t hashed(uint64_t n) { return pwi_mix64(n * UINT64_C(0x9e3779b97f4a7c15)) >> 1; }

/* `count` of the hashed numbers below `of`, drawn evenly, sorted. Another `round` gives another choice. */
static uint64_t *draw(size_t count, size_t of, uint64_t round) {
  uint64_t *keys = take(count, sizeof *keys);
  size_t stride = of / count;
  for (size_t i = 0; i < count; i++)
    keys[i] = hashed(i * stride + (stride > 1 ? pwi_mix64(i ^ round << 40) % stride : 0));
  sort(keys, count);
  for (size_t i = 1; i < count; i++) check(keys[i] > keys[i - 1], "drew a key twice");
  return keys;
}

static struct pwi_table *make(bool sparse, uint64_t end) {
  struct pwi_table_options options = {PWI_SCALAR_F32, 1, 0, {0, end}, sparse};
  struct pwi_table *table = NULL;
  check(pwi_table_create(&options, &table) == PAWL_OK, "no table");
  return table;
}

/* --- cases ---------------------------------------------------------------------------------------------- */

static void plain_gather(float *restrict to, const float *restrict from, const uint32_t *restrict at, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = from[at[i]];
}

static void plain_add(float *restrict to, const float *restrict from, const uint32_t *restrict at, size_t count) {
  for (size_t i = 0; i < count; i++) to[at[i]] += from[i];
}

static void measure_cached(const char *name, struct pwi_table *table, const uint64_t *keys, size_t size, size_t count) {
  struct pwi_slots slots = {0};
  float *values = take(count, sizeof *values);
  double gather = 1e9, add = 1e9, gather_limit = 1e9, add_limit = 1e9;
  check(pwi_table_resolve(table, keys, count, true, &slots) == PAWL_OK, "does not resolve");
  size_t repeat = 2000000 / count + 1;
  for (int round = 0; round < ROUNDS; round++) {
    double start = thread_now();
    for (size_t i = 0; i < repeat; i++) pwi_table_gather(table, &slots, 0, count, values);
    least(&gather, thread_now() - start);
    start = thread_now();
    for (size_t i = 0; i < repeat; i++) pwi_table_scatter(table, PWI_APPLY_ADD, &slots, 0, count, values, NULL);
    least(&add, thread_now() - start);
    start = thread_now();
    for (size_t i = 0; i < repeat; i++) {
      plain_gather(values, (float *)(void *)table->values, slots.slots, count);
      __asm__ volatile("" : : "r"(values) : "memory");
    }
    least(&gather_limit, thread_now() - start);
    start = thread_now();
    for (size_t i = 0; i < repeat; i++) plain_add((float *)(void *)table->values, values, slots.slots, count);
    least(&add_limit, thread_now() - start);
  }
  double million = (double)(count * repeat) / 1e6;
  print(name, "gather", size, count, million / gather, "Mkeys/s", million / gather_limit);
  print(name, "add", size, count, million / add, "Mkeys/s", million / add_limit);
  pwi_slots_fini(&slots);
  pwi_free(values);
}

static void measure_find(struct pwi_table *table, size_t size, size_t count) {
  struct pwi_slots slots = {0};
  double best = 1e9, all = 1e9;
  float *values = take(count, sizeof *values);
  for (uint64_t round = 0; round < ROUNDS; round++) {
    uint64_t *keys = draw(count, size, round);
    double start = thread_now();
    check(pwi_table_resolve(table, keys, count, false, &slots) == PAWL_OK, "does not resolve");
    least(&best, thread_now() - start);
    check(slots.missing == 0, "keys are missing");
    pwi_table_scatter(table, PWI_APPLY_ADD, &slots, 0, count, values, NULL);
    least(&all, thread_now() - start);
    pwi_free(keys);
  }
  print("find", "resolve", size, count, (double)count / 1e6 / best, "Mkeys/s", 0);
  print("find", "resolve+add", size, count, (double)count / 1e6 / all, "Mkeys/s", 0);
  if (count == size / 10) print("keys", "resolve+add", size, count, all * 1e9 / (double)count, "ns/key", 0);
  pwi_slots_fini(&slots);
  pwi_free(values);
}

/* Creates keys that no other case draws, except by chance. */
static void create_others(struct pwi_table *table, size_t count, uint64_t seed) {
  struct pwi_slots slots = {0};
  uint64_t *keys = draw(count, count, 0);
  for (size_t i = 0; i < count; i++) keys[i] = pwi_mix64(keys[i] ^ pwi_mix64(seed)) >> 1;
  sort(keys, count);
  check(pwi_table_resolve(table, keys, count, true, &slots) == PAWL_OK, "does not insert");
  pwi_slots_fini(&slots);
  pwi_free(keys);
}

static void measure_refresh(struct pwi_table *table, size_t size, size_t count, size_t others) {
  struct pwi_slots slots = {0}, anew = {0};
  double best = 1e9, limit = 1e9;
  uint64_t *keys = draw(count, size, 98);
  check(pwi_table_resolve(table, keys, count, false, &slots) == PAWL_OK, "does not resolve");
  for (uint64_t round = 0; round < ROUNDS; round++) {
    create_others(table, others, size * 100 + others + round);
    check(!pwi_slots_hold(&slots, table), "nothing was created");
    double start = thread_now();
    check(pwi_table_refresh(table, keys, count, false, &slots) == PAWL_OK, "does not refresh");
    least(&best, thread_now() - start);
    start = thread_now();
    check(pwi_table_resolve(table, keys, count, false, &anew) == PAWL_OK, "does not resolve");
    least(&limit, thread_now() - start);
    check(memcmp(slots.slots, anew.slots, count * sizeof *anew.slots) == 0, "refreshed slots are wrong");
  }
  printf("{\"bench\":\"table\",\"case\":\"refresh\",\"op\":\"refresh\",\"fresh\":%zu,\"table\":%zu,\"list\":%zu,"
         "\"value\":%.4g,\"unit\":\"Mkeys/s\",\"limit\":%.4g}\n",
         others, size, count, (double)count / 1e6 / best, (double)count / 1e6 / limit);
  pwi_slots_fini(&slots);
  pwi_slots_fini(&anew);
  pwi_free(keys);
}

/* Grows a table by batches up to `size` keys; figures are those of the last batch. */
static void grow(struct pwi_table *table, size_t from, size_t size, size_t batch) {
  struct pwi_slots slots = {0};
  uint64_t *keys = take(batch, sizeof *keys);
  double last = 0;
  for (size_t done = from; done < size; done += batch) {
    if (batch > size - done) batch = size - done;
    for (size_t i = 0; i < batch; i++) keys[i] = hashed(done + i);
    sort(keys, batch);
    double start = thread_now();
    check(pwi_table_resolve(table, keys, batch, true, &slots) == PAWL_OK, "does not insert");
    last = thread_now() - start;
  }
  print("insert", "resolve", size - batch, batch, (double)batch / 1e6 / last, "Mkeys/s", 0);
  double bytes = (double)pwi_table_bytes(table) / (double)pwi_table_count(table);
  print("memory", "sparse", size, 0, bytes, "bytes/key", 12);
  pwi_slots_fini(&slots);
  pwi_free(keys);
}

static void measure_first_insert(size_t count) {
  double best = 1e9;
  uint64_t *keys = draw(count, count, 0);
  struct pwi_slots slots = {0};
  for (int round = 0; round < ROUNDS; round++) {
    struct pwi_table *table = make(true, PAWL_KEY_END);
    double start = thread_now();
    check(pwi_table_resolve(table, keys, count, true, &slots) == PAWL_OK, "does not insert");
    least(&best, thread_now() - start);
    pwi_table_destroy(table);
  }
  print("insert", "resolve", 0, count, (double)count / 1e6 / best, "Mkeys/s", 0);
  pwi_slots_fini(&slots);
  pwi_free(keys);
}

static void plain_sum(float *restrict to, const float *restrict from, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] += from[i];
}

static void measure_range(size_t count) {
  struct pwi_table *table = make(false, count);
  float *values = take(count, sizeof *values), *local = take(count, sizeof *local);
  double add = 1e9, read = 1e9, sum = 1e9, copy = 1e9, gigabytes = (double)(count * sizeof *values) / 1e9;
  for (int round = 0; round < 2 * ROUNDS; round++) {
    double start = thread_now();
    check(pwi_table_range_apply(table, PWI_APPLY_ADD, 0, 0, count, values, NULL) == PAWL_OK, "does not add");
    least(&add, thread_now() - start);
    start = thread_now();
    check(pwi_table_range_read(table, 0, 0, count, values) == PAWL_OK, "does not read");
    least(&read, thread_now() - start);
    start = thread_now();
    plain_sum(local, values, count);
    __asm__ volatile("" : : "r"(local) : "memory");
    least(&sum, thread_now() - start);
    start = thread_now();
    memcpy(values, local, count * sizeof *values);
    __asm__ volatile("" : : "r"(values) : "memory");
    least(&copy, thread_now() - start);
  }
  print("range", "add", count, count, gigabytes / add, "GB/s", gigabytes / sum);
  print("range", "read", count, count, gigabytes / read, "GB/s", gigabytes / copy);
  pwi_table_destroy(table);
  pwi_free(values);
  pwi_free(local);
}

static void measure_sparse(size_t size, struct pwi_table *table) {
  for (size_t count = 100000; count <= 1000000 && count <= size; count *= 10) {
    uint64_t *keys = draw(count, size, 99);
    measure_cached("cached", table, keys, size, count);
    pwi_free(keys);
    measure_find(table, size, count);
  }
  if (size / 10 != 100000 && size / 10 != 1000000) measure_find(table, size, size / 10);
  for (size_t others = 100; others <= size / 1000; others *= 10) measure_refresh(table, size, size / 10, others);
}

int main(int argc, char **argv) {
  size_t largest = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
  measure_range(1000000);
  measure_range(4000000);
  measure_range(64000000);
  measure_first_insert(100000);
  measure_first_insert(1000000);
  struct pwi_table *table = make(true, PAWL_KEY_END), *dense = make(false, 10000000);
  for (size_t size = 100000, before = 0; size <= largest; before = size, size *= 10) {
    grow(table, before, size, size - before < BATCH ? size - before : BATCH);
    measure_sparse(size, table);
  }
  uint64_t *keys = take(BATCH, sizeof *keys);
  for (size_t i = 0; i < BATCH; i++) keys[i] = 10 * i + pwi_mix64(i) % 10;
  measure_cached("cached dense", dense, keys, 10 * BATCH, BATCH);
  pwi_free(keys);
  pwi_table_destroy(table);
  pwi_table_destroy(dense);
  return 0;
}
