/* The worker and the verifier of a storm. Both use the public API only.
 *
 * The worker pushes continuously, with several pushes under way, and keeps a journal
 * (tests/storm/harness/journal.h): a push is recorded before it is sent, and its end as soon as the worker
 * knows. Now and then it pulls its own keys, and checks that they show all acknowledged pushes. Half of
 * its values are in memory that is shared with the servers.
 *
 * The verifier pulls the keys of each journal's worker and compares (tests/storm/harness/check.h).
 */
#ifndef TESTS_STORM_HARNESS_WORK_H
#define TESTS_STORM_HARNESS_WORK_H

#include <stdatomic.h>

#include <pawl/session.h>

#include "check.h"

#define PWI_STORM_OUTSTANDING 8 /* default */
#define PWI_STORM_OUTSTANDING_MAX 256

/* Deliberate bugs, so that a test can check that they are found. */
enum pwi_storm_plant {
  PWI_STORM_HONEST,
  PWI_STORM_EARLY, /* sometimes a push is recorded as done, and never sent */
  PWI_STORM_TWICE, /* sometimes a push is sent twice */
};

struct pwi_storm_work_config {
  struct pawl_session *session;
  struct pwi_storm_writer *journal;
  uint32_t outstanding;
  uint64_t pushes; /* 0: until told to stop */
  uint64_t rate;   /* calls per second, at most; 0: no limit */
  enum pwi_storm_plant plant;
  int64_t patience_ns; /* for one push */
  atomic_int *told;    /* 1: begin no more pushes and finish the others; 2: leave at once */
};

struct pwi_storm_work_report {
  uint64_t pushes, pulls;
  uint64_t failures; /* tasks that ended with an error */
  pawl_status why;   /* status of the first failure */
  char first[256];   /* its text */
  uint64_t stale;    /* keys that a pull did not show as they should be */
  uint64_t open;     /* pushes that had not ended at the end */
};

/* Works until it is told to stop, or cannot continue: PAWL_TIMED_OUT if a push does not end,
 * PAWL_CLUSTER_LOST if the library reports that acknowledged data was lost, else the error of the journal
 * or of a call. Other failed tasks are counted. Always fills in the report. */
PAWL_MUST_USE pawl_status pwi_storm_work(const struct pwi_storm_work_config *config,
                                         struct pwi_storm_work_report *report_out);

/* Reads the journals, pulls, and verifies. A pull may take `patience_ns`; keys that cannot be read by then
 * count as lost. Opens and closes a session. On an error `*where_out` names the journal, or is "" if it
 * concerns none. */
PAWL_MUST_USE pawl_status pwi_storm_verify(const struct pawl_session_options *options, const char *const *paths,
                                           size_t count, int64_t patience_ns, struct pwi_storm_verdict *verdict_out,
                                           const char **where_out);

#endif
