/* `pawl-bench lapser`: table 5.2 and figures 5.1 to 5.8 of the Lapser thesis (2021).
 *
 * Workers factorise ratings by Gibbs sampling (apps/bpmf), each with one thread, and exchange the rows that the others
 * need. All ways of exchanging are links of the same worker (apps/bpmf/share/inside.h), so that the sampler, the
 * division of the rows and the order of all steps are the same:
 *
 *   push, pull   items (<pawl/item.h>), as `pawl train bpmf` uses them, with any slack
 *   hand         written by hand for this exchange, in shared memory or over sockets (hand.c, sockets.c)
 *   isend, put   MPI_Isend and MPI_Put of Open MPI (bench/mpi/bpmf.c)
 *
 * Without slack they compute the same samples, bit for bit, which every run checks. *Communication* is the time in which
 * a worker publishes rows, waits for those of others and copies them; the rest is computation. Errors are measured between
 * iterations, and their time counts as neither.
 */
#ifndef BENCH_COMMAND_LAPSER_H
#define BENCH_COMMAND_LAPSER_H

#include "apps/bpmf/share/inside.h"
#include "cli/cli.h"

#define PWI_LAPSER_ITERATIONS_MAX 1000
#define PWI_LAPSER_WORKERS_MAX 16

enum pwi_lapser_way {
  PWI_LAPSER_HAND,
  PWI_LAPSER_PUSH,
  PWI_LAPSER_PULL,
  PWI_LAPSER_ISEND,
  PWI_LAPSER_PUT,
};

/* One run. */
struct pwi_lapser_task {
  const struct bpmf_data *data;
  const char *path; /* of the ratings, for processes that have to read them */
  double test_share;
  uint32_t rank, iterations, burn_in, workers;
  uint64_t seed;
  enum pwi_lapser_way way;
  uint32_t slack;
  bool is_tcp;       /* over sockets, as between hosts */
  bool is_simulated; /* hosts, network and the time of computing */
  double gigabits;   /* a second, of a simulated network card */
  double gigaflops;  /* of a simulated worker */
};

struct pwi_lapser_step {
  double seconds; /* without measuring errors */
  double shared;  /* of these: communication */
  double now;     /* of one worker: sum of squared errors of its test ratings, by the present rows; of all: the RMSE */
  double mean;    /* the same by the mean over the samples; 0 or NAN before the first one */
};

/* Of one worker, or of a run: then seconds are those of the slowest worker, and `shared` is the mean over the workers. */
struct pwi_lapser_figures {
  uint32_t iterations;
  double cpu_s;    /* processor seconds of all iterations */
  uint64_t digest; /* of the rows after the last iteration */
  struct pwi_lapser_step steps[PWI_LAPSER_ITERATIONS_MAX];
};

/* --- a worker (worker.c), for real processes and MPI ranks -------------------------------------------------- */

struct pwi_lapser_worker {
  struct bpmf_worker is; /* must be first */
  struct bpmf_link link; /* that of `is`, and it adds up the time of publishing */
  const struct bpmf_link *inner;
  double put_s;
  void *own; /* state of the inner link */
};

static inline struct pwi_lapser_worker *pwi_lapser_of(struct bpmf_worker *worker) {
  return (struct pwi_lapser_worker *)(void *)worker;
}

/* The sampler of every worker, with one thread. PAWL_NO_MEMORY. Call fini also after a failure. */
PAWL_MUST_USE pawl_status pwi_lapser_sampler_init(struct bpmf_sampler *sampler, const struct pwi_lapser_task *task);

/* Of the rows of a part, or of all (NULL). Added up over parts it does not depend on how rows are divided. */
uint64_t pwi_lapser_digest(const struct bpmf_sampler *sampler, const struct bpmf_part *part);

/* Worker `index`, with first rows. PAWL_NO_MEMORY. Call fini also after a failure. */
PAWL_MUST_USE pawl_status pwi_lapser_worker_init(struct pwi_lapser_worker *worker, const struct pwi_lapser_task *task,
                                                 uint32_t index, const struct bpmf_link *link);
void pwi_lapser_worker_fini(struct pwi_lapser_worker *worker);

/* Makes all iterations; the link is open. */
PAWL_MUST_USE pawl_status pwi_lapser_worker_run(struct pwi_lapser_worker *worker, uint32_t iterations,
                                                struct pwi_lapser_figures *figures_out);

/* The rows that a worker needs of another one: calls `range` for the ranges of rows of the blocks [first, end). */
void pwi_lapser_needed(const struct bpmf_part *part, const struct bpmf_side *side, int number, size_t first, size_t end,
                       void (*range)(void *context, size_t row, size_t count), void *context);

/* Copies rows and sums of others from an array of all rows of a side, and of all sums (bpmf_sums_place). */
void pwi_lapser_take_rows(struct bpmf_worker *worker, int side, const float *from);
void pwi_lapser_take_sums(struct bpmf_worker *worker, int side, uint64_t clock, const double *from);

/* --- runs ------------------------------------------------------------------------------------------------ */

/* What workers on one host share, for the exchange by hand: bytes, all zero at first. */
size_t pwi_lapser_hand_size(const struct pwi_lapser_task *task);
extern const struct bpmf_link pwi_lapser_hand_link, pwi_lapser_socket_link;

/* Each false after a message, or after `why` in the simulator. */
bool pwi_lapser_run_real(const struct pwi_command *command, const struct pwi_lapser_task *task,
                         struct pwi_lapser_figures *figures_out);
bool pwi_lapser_run_mpi(const struct pwi_command *command, const struct pwi_lapser_task *task,
                        struct pwi_lapser_figures *figures_out);
PAWL_MUST_USE pawl_status pwi_lapser_simulate(const struct pwi_lapser_task *task,
                                              struct pwi_lapser_figures *figures_out, char *why, size_t why_size);

/* Adds those of a worker to those of a run; then finishes those of the run. */
void pwi_lapser_add(struct pwi_lapser_figures *figures, const struct pwi_lapser_figures *worker);
void pwi_lapser_finish(struct pwi_lapser_figures *figures, const struct pwi_lapser_task *task);

#endif
