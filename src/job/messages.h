/* What a scheduler and its workers say to one another, as bytes, and by which names they know one another (docs/jobs.md).
 *
 * The scheduler of job `ads` is the one member of the group `ads/job.scheduler`, and runs the function `.job/ads`, by which workers
 * ask to join. A worker has a desk `.worker/ads`, where its orders come in; what it answers is the result of the call.
 *
 * What the two programs hand each other comes first in orders and answers, so that it is aligned as malloc would align it; what is
 * ours stands behind it, and has a fixed size at the very end. Reading is safe on any bytes: PAWL_TRUNCATED, PAWL_CORRUPT,
 * PAWL_UNSUPPORTED (another version).
 */
#ifndef PWI_JOB_MESSAGES_H
#define PWI_JOB_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/job.h>

#include "base/cursor.h"
#include "job/scheduler.h"

#define PWI_JOB_NAME_MAX 63 /* characters: it is the first word of the names of groups */

/* Names that follow from the job's. PAWL_INVALID, without a text. */
struct pwi_job_names {
  char scheduler[PAWL_NAME_MAX + 1]; /* group */
  char job[PAWL_NAME_MAX + 1];       /* function */
  char worker[PAWL_NAME_MAX + 1];    /* desk */
};

PAWL_MUST_USE pawl_status pwi_job_names(const char *name, struct pwi_job_names *names_out);

/* --- asking the scheduler ------------------------------------------------------------------------------------------------ */

enum pwi_job_ask {
  PWI_JOB_ASK_JOIN = 1,    /* may I work here? */
  PWI_JOB_ASK_CONTEST = 2, /* I am about to be the scheduler of this name: are you? */
  PWI_JOB_ASK_SPEC = 3,    /* what are workers told when they begin? The answer is just that */
};

struct pwi_job_asking {
  enum pwi_job_ask what;
  uint64_t task; /* JOIN: one of the worker's own that ends when it goes */
  uint64_t pid;
  char host[PWI_SCHEDULER_HOST + 1];
};

void pwi_job_asking_write(struct pwi_writer *writer, const struct pwi_job_asking *asking);
PAWL_MUST_USE pawl_status pwi_job_asking_read(const void *bytes, size_t size, struct pwi_job_asking *asking_out);

/* What is said to a worker that may wait for orders. */
struct pwi_job_welcome {
  uint64_t number;               /* of this life of the worker */
  uint64_t task;                 /* of the scheduler's: ends when the worker is not needed any more, and with the job */
  char group[PAWL_NAME_MAX + 1]; /* of the workers */
};

void pwi_job_welcome_write(struct pwi_writer *writer, const struct pwi_job_welcome *welcome);
PAWL_MUST_USE pawl_status pwi_job_welcome_read(const void *bytes, size_t size, struct pwi_job_welcome *welcome_out);

/* --- orders and answers -------------------------------------------------------------------------------------------------- */

struct pwi_job_order {
  uint64_t number; /* of the worker */
  enum pwi_crew_order_kind kind;
  uint32_t rank, workers;
  uint64_t tick;
  const void *bytes; /* BEGIN: the job's; WORK: the round's; TAKE and DROP: ranges, as written by the next function */
  size_t size;
};

void pwi_job_order_write(struct pwi_writer *writer, const struct pwi_job_order *order);
PAWL_MUST_USE pawl_status pwi_job_order_read(const void *bytes, size_t size, struct pwi_job_order *order_out);

void pwi_job_ranges_write(struct pwi_writer *writer, const struct pawl_range *ranges, size_t count);
/* As many as `size` holds: size / 16. */
void pwi_job_ranges_read(const void *bytes, size_t count, struct pawl_range *ranges_out);

struct pwi_job_answer {
  pawl_status status; /* what the worker's call returned */
  int64_t took_ns;
  uint64_t tick;
  char text[PWI_SCHEDULER_TEXT + 1];
  size_t size; /* of the report, with which the answer begins */
};

/* Appends what is ours to a report. */
void pwi_job_answer_write(struct pwi_writer *writer, const struct pwi_job_answer *answer);
PAWL_MUST_USE pawl_status pwi_job_answer_read(const void *bytes, size_t size, struct pwi_job_answer *answer_out);

#endif
