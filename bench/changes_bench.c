/* Measures the cost of recording changed keys in a push of many keys: one line of JSON for each kind of
 * list.
 *
 * `push_ns` is adding one f32 to each key of a list with resolved slots, the cheapest possible push, in a
 * table nine times as large; `mark_ns` is marking the same list. Both are per key, the best of several
 * rounds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "base/hash.h"
#include "base/memory.h"
#include "store/changes.h"
#include "store/table.h"

#define COUNT_MAX 1000000
#define ROUNDS 15

static uint64_t *keys;
static size_t count;
static float *values;

static int compare_keys(const void *left, const void *right) {
  const uint64_t *a = left, *b = right;
  return (*a > *b) - (*a < *b);
}

static void draw_keys(uint64_t span, uint64_t seed) {
  for (uint64_t i = 0; i < count; i++) keys[i] = pwi_mix64(i + seed * COUNT_MAX) % span;
  qsort(keys, count, sizeof *keys, compare_keys);
  for (size_t i = 1; i < count; i++)
    if (keys[i] <= keys[i - 1]) keys[i] = keys[i - 1] + 1;
}

static double push_time(uint64_t span, bool sparse) {
  struct pwi_table_options options = {PWI_SCALAR_F32, 1, 0, pawl_range_of(0, span), sparse};
  struct pwi_table *table;
  struct pwi_slots slots = {0};
  double best = 1;
  check_status(pwi_table_create(&options, &table));
  for (uint64_t seed = 9; seed > 0; seed--) {
    draw_keys(span, seed);
    check_status(pwi_table_resolve(table, keys, count, true, &slots));
  }
  check_status(pwi_table_resolve(table, keys, count, true, &slots));
  for (int i = 0; i < ROUNDS; i++) {
    double start = now();
    pwi_table_scatter(table, PWI_APPLY_ADD, &slots, 0, count, values, NULL);
    double took = now() - start;
    if (took < best) best = took;
  }
  pwi_slots_fini(&slots);
  pwi_table_destroy(table);
  return best;
}

static double mark_time(uint64_t span, bool spread) {
  struct pwi_changes changes;
  double best = 1;
  pwi_changes_init(&changes, pawl_range_of(0, span), sizeof(float), spread);
  for (uint64_t i = 1; i <= ROUNDS; i++) {
    double start = now();
    pwi_changes_mark_keys(&changes, keys, count, i);
    double took = now() - start;
    if (took < best) best = took;
  }
  pwi_changes_fini(&changes);
  return best;
}

static void measure_list(const char *name, uint64_t span, bool sparse, bool spread) {
  double push = push_time(span, sparse), mark = mark_time(span, spread);
  printf("{\"bench\":\"changes\",\"case\":\"%s\",\"keys\":%zu,\"push_ns\":%.3f,\"mark_ns\":%.3f,\"share\":%.3f}\n",
         name, count, push * 1e9 / (double)count, mark * 1e9 / (double)count, mark / push);
}

static void measure(const char *name, uint64_t span, bool sparse, bool spread) {
  for (count = 1000; count <= COUNT_MAX; count *= 10) measure_list(name, span, sparse, spread);
}

int main(void) {
  keys = pwi_alloc_zero(COUNT_MAX, sizeof *keys);
  values = pwi_alloc_zero(COUNT_MAX, sizeof *values);
  if (!keys || !values) check_status(PAWL_NO_MEMORY);
  measure("dense/2^21", 1 << 21, false, false);
  measure("dense/2^24", 1 << 24, false, false);
  measure("dense/2^28", 1 << 28, false, false);
  measure("sparse/mixed", PAWL_KEY_END, true, true);
  measure("sparse/ordered", PAWL_KEY_END, true, false);
  pwi_free(values);
  pwi_free(keys);
  return 0;
}
