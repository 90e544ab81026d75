/* The messages between a scheduler and its workers, as bytes, and the names under which they find each
 * other (docs/jobs.md).
 *
 * The scheduler of job `ads` is the only member of the group `ads/job.scheduler`, and offers the function
 * `.job/ads`, which workers call to join. A worker offers the function `.worker/ads`, which receives its
 * orders; its answer is the result of the call.
 *
 * Orders and answers begin with the bytes of the application, so that they are aligned as malloc aligns
 * them. The fields of the scheduler follow, with a fixed size at the very end. Decoding is safe on any
 * bytes: PAWL_TRUNCATED, PAWL_CORRUPT, PAWL_UNSUPPORTED (another version).
 */
#ifndef PWI_JOB_MESSAGES_H
#define PWI_JOB_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/job.h>

#include "base/cursor.h"
#include "job/scheduler.h"

#define PWI_JOB_NAME_MAX 63 /* characters; the name of the job is the first word of the names of its groups */

/* The names that derive from the name of the job. PAWL_INVALID, without an explanation. */
struct pwi_job_names {
  char scheduler[PAWL_NAME_MAX + 1]; /* group of the scheduler */
  char job[PAWL_NAME_MAX + 1];       /* function of the scheduler */
  char worker[PAWL_NAME_MAX + 1];    /* function of a worker */
};

PAWL_MUST_USE pawl_status pwi_job_names(const char *name, struct pwi_job_names *names_out);

/* --- questions to the scheduler ------------------------------------------------------------------------- */

enum pwi_job_ask {
  PWI_JOB_ASK_JOIN = 1, /* a worker asks to join */
  /* a process that is about to become scheduler of this job asks whether there is one already */
  PWI_JOB_ASK_CONTEST = 2,
  PWI_JOB_ASK_SPEC = 3, /* asks for the specification that workers get with BEGIN; it is the answer */
};

struct pwi_job_asking {
  enum pwi_job_ask what;
  uint64_t task; /* JOIN: an open task of the worker that ends when the worker goes */
  uint64_t pid;
  char host[PWI_SCHEDULER_HOST + 1];
};

void pwi_job_asking_write(struct pwi_writer *writer, const struct pwi_job_asking *asking);
PAWL_MUST_USE pawl_status pwi_job_asking_read(const void *bytes, size_t size, struct pwi_job_asking *asking_out);

/* The answer to a worker that may wait for orders. */
struct pwi_job_welcome {
  uint64_t number; /* of the worker, unique in the job */
  /* an open task of the scheduler; it ends when the worker is no longer needed, and with the job */
  uint64_t task;
  char group[PAWL_NAME_MAX + 1]; /* the workers' group */
};

void pwi_job_welcome_write(struct pwi_writer *writer, const struct pwi_job_welcome *welcome);
PAWL_MUST_USE pawl_status pwi_job_welcome_read(const void *bytes, size_t size, struct pwi_job_welcome *welcome_out);

/* --- orders and answers --------------------------------------------------------------------------------- */

struct pwi_job_order {
  uint64_t number; /* of the worker */
  enum pwi_job_order_kind kind;
  uint32_t rank, workers; /* YIELD: rank is below workers, and not 0 */
  uint64_t tick;
  /* BEGIN: the job's specification; WORK: the round's; TAKE and DROP: ranges (pwi_job_ranges_write) */
  const void *bytes;
  size_t size;
};

void pwi_job_order_write(struct pwi_writer *writer, const struct pwi_job_order *order);
PAWL_MUST_USE pawl_status pwi_job_order_read(const void *bytes, size_t size, struct pwi_job_order *order_out);

void pwi_job_ranges_write(struct pwi_writer *writer, const struct pawl_range *ranges, size_t count);
/* Decodes `count` ranges, which is size / 16. */
void pwi_job_ranges_read(const void *bytes, size_t count, struct pawl_range *ranges_out);

/* The report of an answer to YIELD is ranges. */
struct pwi_job_answer {
  pawl_status status; /* result of the worker's callback */
  int64_t took_ns;
  uint64_t tick;
  char text[PWI_SCHEDULER_TEXT + 1];
  size_t size; /* bytes of the report, with which the answer begins */
};

/* Appends the scheduler's fields to a report. */
void pwi_job_answer_write(struct pwi_writer *writer, const struct pwi_job_answer *answer);
PAWL_MUST_USE pawl_status pwi_job_answer_read(const void *bytes, size_t size, struct pwi_job_answer *answer_out);

#endif
