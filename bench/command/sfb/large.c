/* A commit of the paper's size, K = 100 pairs of J + D = 345,000 floats, between processes of this machine: 138 MB, more than
 * any queue of a link holds. Where processes share memory, the commit lies in one region that all others read; over TCP it
 * is sent in pieces. The matrix has 16 columns instead of 20,000, which would need 26 GB in each process, and u is longer by
 * as much. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "bench/command/asap/crew.h"
#include "bench/command/bench.h"
#include "sfb.h"

#define COMMITS 3
#define PATIENCE (300 * PAWL_SECOND)

struct result {
  uint64_t hash, bytes, sent, shown;
  double add_s, commit_s, copy_s; /* of a commit, on average; copying its bytes once */
};

struct worker {
  struct pwi_asap_member *member;
  const struct pwi_sfb_plan *plan;
  struct pawl_peers *peers;
  struct pawl_factor *factor;
  float *matrix, *u, *v;
};

static pawl_status add_pairs(struct worker *worker, uint32_t clock) {
  const struct pwi_sfb_shape *shape = &worker->plan->shape;
  pawl_status status = PAWL_OK;
  for (uint32_t pair = 0; pair < worker->plan->setup.batch && !status; pair++) {
    uint32_t seed = worker->member->index * 7919 + clock * 104729 + pair;
    for (uint32_t i = 0; i < shape->classes; i++)
      worker->u[i] = (float)((seed + i * 2654435761U) >> 8) * 0x1p-24F - 0.5F;
    for (uint32_t i = 0; i < shape->features; i++) worker->v[i] = (float)(i + 1) / (float)shape->features;
    const struct pawl_factor_vector u = {worker->u, NULL, shape->classes}, v = {worker->v, NULL, shape->features};
    status = pawl_factor_add(worker->factor, &u, &v);
  }
  return status;
}

static double copy_time(size_t size) {
  char *from = pwi_alloc_zero(size, 1), *to = pwi_alloc_zero(size, 1);
  double seconds = 0;
  if (from && to) {
    memset(from, 1, size);
    memset(to, 1, size); /* so that its pages exist */
    double before = pwi_bench_now();
    memcpy(to, from, size);
    __asm__ volatile("" ::: "memory");
    seconds = pwi_bench_now() - before;
  }
  pwi_free(from);
  pwi_free(to);
  return seconds;
}

static pawl_status commit_all(struct worker *worker) {
  struct result *result = worker->member->result;
  struct pawl_factor_report report;
  struct pawl_factor_state state;
  pawl_status status = PAWL_OK;
  for (uint32_t clock = 0; clock < COMMITS && !status; clock++) {
    double begin = pwi_bench_now();
    status = add_pairs(worker, clock);
    double added = pwi_bench_now();
    if (!status) status = pawl_factor_commit(worker->factor, 1e-3, 0, PATIENCE, &report);
    result->add_s += (added - begin) / COMMITS;
    result->commit_s += (pwi_bench_now() - added) / COMMITS;
  }
  if (!status) status = pawl_factor_hash(worker->factor, &result->hash);
  if (status) return status;
  pawl_factor_state(worker->factor, &state);
  result->bytes = report.bytes;
  result->sent = state.sent / COMMITS;
  result->shown = state.shown / COMMITS;
  if (worker->member->index == 0) result->copy_s = copy_time((size_t)report.bytes);
  return PAWL_OK;
}

static pawl_status work(struct pwi_asap_member *member) {
  struct worker worker = {.member = member, .plan = member->task};
  size_t rows = worker.plan->shape.classes, columns = worker.plan->shape.features;
  worker.matrix = pwi_alloc_zero(rows * columns, sizeof *worker.matrix);
  worker.u = pwi_alloc_zero(rows, sizeof *worker.u);
  worker.v = pwi_alloc_zero(columns, sizeof *worker.v);
  pawl_status status = worker.matrix && worker.u && worker.v ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) status = pawl_peers_join(member->session, "bench/sfb", member->count, PATIENCE, &worker.peers);
  if (!status)
    status =
        pawl_factor_open(worker.peers, "w", worker.matrix, rows, columns, PAWL_F32, NULL, PATIENCE, &worker.factor);
  if (!status) status = commit_all(&worker);
  pawl_factor_close(worker.factor);
  pawl_peers_leave(worker.peers);
  pwi_free(worker.matrix);
  pwi_free(worker.u);
  pwi_free(worker.v);
  return status;
}

static void print(const struct pwi_sfb_plan *plan, const char *transport, uint32_t workers, const struct result *is,
                  bool is_same) {
  if (plan->json)
    pwi_cli_print_json(plan->command,
                       json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:f, s:f, s:f, s:b}", "bench", "sfb", "figure",
                                 "large", "transport", transport, "workers", (int)workers, "bytes",
                                 (json_int_t)is->bytes, "sent", (json_int_t)is->sent, "shown", (json_int_t)is->shown,
                                 "add_s", is->add_s, "commit_s", is->commit_s, "memcpy_s", is->copy_s, "identical",
                                 is_same));
  else
    printf("%-14s %7" PRIu32 " %9.1f MB %9.1f MB %9.1f MB %7.2f s %7.2f s %7.3f s  %s\n", transport, workers,
           (double)is->bytes / 1e6, (double)is->sent / 1e6, (double)is->shown / 1e6, is->add_s, is->commit_s,
           is->copy_s, is_same ? "same bits" : "BITS DIFFER");
}

static bool measure(const struct pwi_sfb_plan *plan, uint32_t workers, bool tcp_only, bool *are_same) {
  struct pwi_asap_crew crew = {.command = plan->command,
                               .count = workers,
                               .tcp_only = tcp_only,
                               .work = work,
                               .task = plan,
                               .result_size = sizeof(struct result)};
  bool is_fine = pwi_asap_crew_run(&crew);
  if (is_fine) {
    const struct result *first = pwi_asap_crew_result(&crew, 0);
    bool is_same = true;
    for (uint32_t i = 1; i < workers; i++)
      is_same &= ((const struct result *)pwi_asap_crew_result(&crew, i))->hash == first->hash;
    print(plan, tcp_only ? "TCP" : "shared memory", workers, first, is_same);
    *are_same = *are_same && is_same;
  }
  pwi_asap_crew_free(&crew);
  return is_fine;
}

int pwi_sfb_large(const struct pwi_sfb_plan *plan) {
  uint32_t workers = plan->workers ? plan->workers : 3;
  bool are_same = true;
  if (!plan->json) {
    pwi_bench_print_machine();
    printf("commits of %" PRIu32 " pairs of %" PRIu32 " and %" PRIu32 " floats, means of %d\n\n", plan->setup.batch,
           plan->shape.classes, plan->shape.features, COMMITS);
    printf("transport      workers    a commit         sent        shown    adding  commit     memcpy\n");
  }
  if (!measure(plan, workers, false, &are_same) || !measure(plan, workers, true, &are_same)) return PWI_EXIT_FAILURE;
  return are_same ? PWI_EXIT_OK : pwi_cli_failure(plan->command, "the matrices of the workers differ");
}
