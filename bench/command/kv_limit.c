/* The limit of this machine without pawl, in one thread: the same change to an array in memory. For
 * one-key operations it is the round trip of 64 bytes between two processes. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "kv.h"
#include "net.h"

#define PING_SIZE 64
#define PINGS 2000

struct pwi_kv_limit {
  struct pwi_kv_job job;
  float *table, *values, *out;
  uint32_t *rows; /* NULL: the whole table, in order */
  struct pwi_baseline *baseline;
};

static bool lay_out(struct pwi_kv_limit *limit) {
  const struct pwi_kv_job *job = &limit->job;
  limit->table = pwi_alloc_zero(job->rows, sizeof *limit->table);
  limit->values = pwi_alloc_zero(job->count, sizeof *limit->values);
  limit->out = pwi_alloc_zero(job->count, sizeof *limit->out);
  if (!limit->table || !limit->values || !limit->out) return false;
  for (uint64_t i = 0; i < job->rows; i++) limit->table[i] = 1; /* touches all pages before the measurement */
  for (uint64_t i = 0; i < job->count; i++) limit->values[i] = limit->out[i] = 1;
  if (job->kind == PWI_KV_DENSE) return true;
  limit->rows = pwi_alloc_zero(job->count, sizeof *limit->rows);
  for (uint64_t i = 0; limit->rows && i < job->count; i++) limit->rows[i] = (uint32_t)pwi_kv_row(job, 0, i);
  return limit->rows != NULL;
}

struct pwi_kv_limit *pwi_kv_limit_open(const struct pwi_kv_job *job, bool tcp) {
  if (job->kind != PWI_KV_DENSE && job->kind != PWI_KV_CACHED && job->kind != PWI_KV_ONE) return NULL;
  struct pwi_kv_limit *limit = pwi_alloc_zero(1, sizeof *limit);
  if (!limit) return NULL;
  limit->job = *job;
  if (job->kind == PWI_KV_ONE) {
    limit->baseline = pwi_baseline_start(tcp ? "tcp" : "ucx", PING_SIZE);
    if (limit->baseline) return limit;
  } else if (lay_out(limit)) {
    return limit;
  }
  pwi_kv_limit_close(limit);
  return NULL;
}

void pwi_kv_limit_close(struct pwi_kv_limit *limit) {
  if (!limit) return;
  pwi_baseline_stop(limit->baseline);
  pwi_free(limit->table);
  pwi_free(limit->values);
  pwi_free(limit->out);
  pwi_free(limit->rows);
  pwi_free(limit);
}

static void add(float *restrict to, const float *restrict from, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] += from[i];
}

static void scatter(float *restrict to, const float *restrict from, const uint32_t *restrict at, size_t count) {
  for (size_t i = 0; i < count; i++) to[at[i]] += from[i];
}

static void gather(float *restrict to, const float *restrict from, const uint32_t *restrict at, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = from[at[i]];
}

static void work_once(const struct pwi_kv_limit *limit, enum pwi_kv_op op) {
  size_t count = (size_t)limit->job.count;
  if (op != PWI_KV_PULL) {
    if (limit->rows)
      scatter(limit->table, limit->values, limit->rows, count);
    else
      add(limit->table, limit->values, count);
  }
  if (op != PWI_KV_PUSH) {
    if (limit->rows)
      gather(limit->out, limit->table, limit->rows, count);
    else
      memcpy(limit->out, limit->table, count * sizeof *limit->out);
  }
  __asm__ volatile(""
                   :
                   : "r"(limit->out), "r"(limit->table)
                   : "memory"); /* keeps the compiler from removing the work */
}

double pwi_kv_limit_run(struct pwi_kv_limit *limit, enum pwi_kv_op op, double seconds) {
  if (!limit) return NAN;
  if (limit->baseline) return pwi_baseline_rtt(limit->baseline, PINGS, 0);
  double begin = pwi_bench_now(), elapsed;
  uint64_t times = 0;
  do {
    work_once(limit, op);
    times++;
    elapsed = pwi_bench_now() - begin;
  } while (elapsed < seconds);
  return (double)times / elapsed;
}
