/* Measures server functions, compared with memcpy of the bytes that they touch: one line of JSON for each.
 *
 * One thread, the best of several rounds, in processor time of the thread; function and copy take turns.
 * `ratio` is the time of memcpy of all bytes that a push touches (pushed, stored and state), divided by
 * the time of the push; so 1 is as fast as copying. Cases:
 *   loop    the loops alone, on rows in the L1 cache
 *   range   a push to a range of a dense table, larger than the caches, checked and applied
 *   list    a push to every second key of a sparse table, with resolved slots
 *   check   only the check for NaN
 *
 *   functions_bench [keys of range and list, 2000000 by default]
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "base/memory.h"
#include "store/functions/apply.h"
#include "store/functions/kernels.h"

#define ROUNDS 5
#define CACHED 1024 /* rows of `loop` */

static void *take(size_t bytes) {
  void *block = pwi_alloc_zero(bytes, 1);
  check(block != NULL, "out of memory");
  memset(block, 0x3f, bytes); /* about 0.75 as f32 and 0.0005 as f64, so that products are not denormal */
  return block;
}

struct figure {
  const char *name, *function;
  enum pwi_scalar type;
  uint32_t width;
  size_t values, bytes; /* pushed to; touched */
  double best, copy;
};

static void print(const struct figure *is) {
  printf("{\"bench\":\"functions\",\"case\":\"%s\",\"function\":\"%s\",\"type\":\"%s\",\"width\":%u,"
         "\"value\":%.4g,\"unit\":\"ns/value\",\"gbps\":%.4g,\"copy_gbps\":%.4g,\"ratio\":%.3f}\n",
         is->name, is->function, is->type == PWI_SCALAR_F32 ? "f32" : "f64", is->width,
         is->best * 1e9 / (double)is->values, (double)is->bytes / 1e9 / is->best, (double)is->bytes / 1e9 / is->copy,
         is->copy / is->best);
  fflush(stdout);
}

static struct pwi_applying applying_of(const char *name, enum pwi_scalar type, uint32_t width) {
  struct pwi_rule rule;
  struct pwi_applying applying;
  pwi_rule_init(&rule, pwi_function_named(NULL, name));
  check(pwi_applying_init(&applying, &rule, type, width) == PAWL_OK, "no such rule");
  return applying;
}

static size_t row_bytes(const struct pwi_applying *is) { return is->pushed_bytes + is->stored_bytes + is->state_bytes; }

static void copy(char *to, const char *from, size_t bytes) {
  memcpy(to, from, bytes);
  __asm__ volatile("" : : "r"(to) : "memory");
}

static void measure_loop(const char *name, enum pwi_scalar type, uint32_t width) {
  struct pwi_applying is = applying_of(name, type, width);
  size_t rows = CACHED / width, repeat = 1000, bytes = rows * row_bytes(&is);
  char *from = take(bytes), *to = take(bytes);
  struct figure figure = {"loop", name, type, width, rows * width * repeat, bytes * repeat, 1e9, 1e9};
  struct pawl_function_call call = {.size = sizeof call,
                                    .type = (enum pawl_type)type,
                                    .width = width,
                                    .count = rows,
                                    .pushed = from,
                                    .stored = from + rows * is.pushed_bytes,
                                    .state = from + rows * (is.pushed_bytes + is.stored_bytes),
                                    .parameters = is.rule.parameters};
  for (int round = 0; round < ROUNDS; round++) {
    double start = thread_now();
    for (size_t i = 0; i < repeat; i++) is.rule.function->apply(&call);
    least(&figure.best, thread_now() - start);
    start = thread_now();
    for (size_t i = 0; i < repeat; i++) copy(to, from, bytes);
    least(&figure.copy, thread_now() - start);
  }
  print(&figure);
  pwi_applying_fini(&is);
  pwi_free(from);
  pwi_free(to);
}

/* `sparse`: every second key of a sparse table, by slots; else the whole range of a dense one. */
static void measure_push(const char *name, enum pwi_scalar type, uint32_t width, size_t keys, bool sparse) {
  struct pwi_applying is = applying_of(name, type, width);
  struct pwi_table_options options = {type, is.shape.stored, is.shape.state, {0, 2 * keys}, sparse};
  struct pwi_table *table = NULL;
  struct pwi_slots slots = {0};
  size_t rows = sparse ? keys / 2 : keys, bytes = rows * row_bytes(&is);
  char *from = take(bytes), *to = take(bytes);
  struct pwi_rows_named named = {.count = rows};
  struct figure figure = {sparse ? "list" : "range", name, type, width, rows * width, bytes, 1e9, 1e9};
  check(pwi_table_create(&options, &table) == PAWL_OK, "no table");
  if (sparse) {
    uint64_t *list = take(keys * sizeof *list);
    for (size_t i = 0; i < keys; i++) list[i] = i;
    check(pwi_table_resolve(table, list, keys, true, &slots) == PAWL_OK, "does not insert");
    for (size_t i = 0; i < rows; i++) list[i] = 2 * i;
    check(pwi_table_resolve(table, list, rows, true, &slots) == PAWL_OK, "does not resolve");
    named.slots = &slots;
    pwi_free(list);
  }
  for (int round = 0; round < ROUNDS; round++) {
    double start = thread_now();
    check(pwi_applying_push(&is, table, named, from, NULL) == PAWL_OK, "is refused");
    least(&figure.best, thread_now() - start);
    start = thread_now();
    copy(to, from, bytes);
    least(&figure.copy, thread_now() - start);
  }
  print(&figure);
  pwi_slots_fini(&slots);
  pwi_table_destroy(table);
  pwi_applying_fini(&is);
  pwi_free(from);
  pwi_free(to);
}

static void measure_check(enum pwi_scalar type, size_t count) {
  size_t bytes = count * pwi_scalar_size(type);
  char *from = take(bytes), *to = take(bytes);
  struct figure figure = {"check", "finite", type, 1, count, bytes, 1e9, 1e9};
  for (int round = 0; round < ROUNDS; round++) {
    double start = thread_now();
    check(pwi_gradient_kernels_best()->finite[type - 1](from, count), "is not finite");
    least(&figure.best, thread_now() - start);
    start = thread_now();
    copy(to, from, bytes);
    least(&figure.copy, thread_now() - start);
  }
  print(&figure);
  pwi_free(from);
  pwi_free(to);
}

int main(int argc, char **argv) {
  size_t keys = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000000;
  check(keys >= 1024, "too few keys");
  measure_check(PWI_SCALAR_F32, keys);
  measure_check(PWI_SCALAR_F64, keys);
  for (uint32_t number = 0; number < PWI_FUNCTION_COUNT; number++) {
    if (!pwi_function_takes_reals(number)) continue;
    const char *name = pwi_function_numbered(number)->name;
    for (uint32_t width = 1; width <= 16; width *= 16) {
      measure_loop(name, PWI_SCALAR_F32, width);
      measure_loop(name, PWI_SCALAR_F64, width);
    }
    measure_push(name, PWI_SCALAR_F32, 1, keys, false);
    measure_push(name, PWI_SCALAR_F32, 1, keys, true);
    measure_push(name, PWI_SCALAR_F32, 16, keys / 16, true);
  }
  return 0;
}
