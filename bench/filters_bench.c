/* Measures filters: one JSON line per chain and kind of keys.
 *
 *   filters_bench [thousands of rows]
 *
 * Millions of rows per second of one core's time (not wall time, because the machine may be shared), the
 * best of several rounds over the same rows (default: 1000 thousand), beside memcpy of the same keys and
 * values in the same round, because a chain copies its input once. `held` is the number of rows that are
 * held back after the last round. Standalone: link it with libpawl_inside.a.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "base/hash.h"
#include "wire/filters.h"

#define ROUNDS 9

static const char *const chains[] = {
    "none",
    "significant(threshold=0.05)",
    "significant(threshold=0.003)",
    "skip(rate=0.5)",
    "skip(rate=0.5, rest=scale)",
    "half",
    "half(round=nearest)",
    "half(type=bf16)",
    "fixed(bits=8)",
    "kkt(lambda=0.005, delta=0.001)",
    "significant(threshold=0.05) | half",
};

struct rows {
  uint64_t *keys;
  float *values, *weights;
  size_t count;
  uint32_t width;
};

static void die(const char *what, pawl_status status) {
  fprintf(stderr, "filters_bench: %s: %s\n", what, pawl_status_text(status));
  exit(1);
}

static void *must_alloc(size_t count, size_t size) {
  void *block = malloc(count * size);
  if (!block) die("memory", PAWL_NO_MEMORY);
  memset(block, 1, count * size);
  return block;
}

/* Values like gradients: spread around zero, all digits in use. */
static float gradient(uint64_t i) {
  double sum = 0;
  for (uint64_t k = 0; k < 4; k++) sum += (double)(pwi_mix64(4 * i + k) >> 11) * 0x1p-53;
  return (float)((sum - 2) * 0.01);
}

/* Bytes that residuals take. */
static double memory_of(const struct pawl_filters *filters) {
  struct pawl_filter_counters counters;
  double bytes = 0;
  for (size_t i = 0; pawl_filters_counters(filters, i, &counters) == PAWL_OK; i++) bytes += (double)counters.memory;
  return bytes;
}

static void fill(struct rows *rows, uint64_t stride) {
  for (size_t i = 0; i < rows->count; i++) rows->keys[i] = i * stride + pwi_mix64(i) % stride;
  for (size_t i = 0; i < rows->count * rows->width; i++) {
    rows->values[i] = gradient(i + 1);
    rows->weights[i] = pwi_mix64(i) % 10 ? 0 : 1;
  }
}

/* Seconds to copy keys and values once. */
static double copy(const struct rows *rows, char *to) {
  size_t key_bytes = rows->count * sizeof *rows->keys;
  double start = thread_now();
  memcpy(to, rows->keys, key_bytes);
  memcpy(to + key_bytes, rows->values, rows->count * rows->width * sizeof *rows->values);
  return thread_now() - start;
}

static void measure(const char *chain, const char *kind, const struct rows *rows) {
  struct pawl_filters_options options;
  struct pawl_filters *filters;
  struct pawl_rows out = {0};
  char *room = must_alloc(rows->count, sizeof *rows->keys + rows->width * sizeof *rows->values);
  double best = 1e9, copied = 1e9, sent = 0;
  pawl_filters_options_init(&options);
  options.width = rows->width;
  pawl_status status = pawl_filters_create(chain, &options, &filters);
  if (status) die(chain, status);
  for (int round = 0; round < ROUNDS; round++) {
    double start = thread_now();
    status = pawl_filters_run(filters, rows->keys, rows->values, rows->weights, rows->count, false, &out);
    double took = thread_now() - start, plain = copy(rows, room);
    if (status) die(chain, status);
    if (took < best) best = took;
    if (plain < copied) copied = plain;
    sent += (double)out.count;
  }
  printf("{\"bench\":\"filters\",\"chain\":\"%s\",\"keys\":\"%s\",\"width\":%u,\"rows\":%zu,\"mrows_s\":%.1f,"
         "\"memcpy_mrows_s\":%.1f,\"sent_pct\":%.1f,\"held\":%zu,\"memory_mb\":%.1f}\n",
         chain, kind, rows->width, rows->count, (double)rows->count / best / 1e6, (double)rows->count / copied / 1e6,
         100 * sent / ROUNDS / (double)rows->count, pawl_filters_held(filters), memory_of(filters) / 1e6);
  fflush(stdout);
  pawl_rows_fini(&out);
  pawl_filters_destroy(filters);
  free(room);
}

static void measure_flush(const char *kind, const struct rows *rows) {
  struct pawl_filters_options options;
  struct pawl_filters *filters;
  struct pawl_rows out = {0};
  pawl_filters_options_init(&options);
  options.width = rows->width;
  pawl_status status = pawl_filters_create("significant(threshold=1)", &options, &filters);
  if (!status) status = pawl_filters_run(filters, rows->keys, rows->values, NULL, rows->count, false, &out);
  double start = thread_now();
  if (!status) status = pawl_filters_run(filters, NULL, NULL, NULL, 0, true, &out);
  double took = thread_now() - start;
  if (status || out.count != rows->count) die("flush", status);
  printf("{\"bench\":\"filters\",\"chain\":\"flush\",\"keys\":\"%s\",\"width\":%u,\"rows\":%zu,\"mrows_s\":%.1f}\n",
         kind, rows->width, rows->count, (double)rows->count / took / 1e6);
  pawl_rows_fini(&out);
  pawl_filters_destroy(filters);
}

static void measure_all(const char *kind, uint64_t stride, size_t count, uint32_t width) {
  struct rows rows = {.count = count, .width = width};
  rows.keys = must_alloc(count, sizeof *rows.keys);
  rows.values = must_alloc(count * width, sizeof *rows.values);
  rows.weights = must_alloc(count * width, sizeof *rows.weights);
  fill(&rows, stride);
  for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) measure(chains[i], kind, &rows);
  measure_flush(kind, &rows);
  free(rows.keys);
  free(rows.values);
  free(rows.weights);
}

int main(int argc, char **argv) {
  size_t thousands = argc > 1 ? (size_t)atol(argv[1]) : 1000;
  if (thousands == 0) die("rows", PAWL_INVALID);
  measure_all("dense", 1, thousands * 1000, 1);
  measure_all("sparse", UINT64_C(1) << 40, thousands * 1000, 1);
  measure_all("sparse", UINT64_C(1) << 40, thousands * 1000 / 16 + 1, 16);
  return 0;
}
