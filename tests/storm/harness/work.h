/* The worker and the verifier of a storm, through the public API and nothing else.
 *
 * The worker pushes without pause, several pushes under way, and keeps a journal (tests/storm/harness/journal.h): a push is written down
 * before it is called, and its end as soon as the worker knows. Now and then it pulls its own keys, and checks that they show
 * what it was told is there. Half of what it pushes lies in memory that is shared with the servers.
 *
 * The verifier pulls the keys of each journal's worker and compares (tests/storm/harness/check.h).
 */
#ifndef TESTS_STORM_HARNESS_WORK_H
#define TESTS_STORM_HARNESS_WORK_H

#include <stdatomic.h>

#include <pawl/session.h>

#include "check.h"

#define PWI_STORM_OUTSTANDING 8 /* unless told otherwise */
#define PWI_STORM_OUTSTANDING_MAX 256

/* Mistakes that are made on purpose, so that a test sees that they are found. */
enum pwi_storm_plant {
  PWI_STORM_HONEST,
  PWI_STORM_EARLY, /* now and then a push is taken for done, and never sent */
  PWI_STORM_TWICE, /* now and then one is sent twice */
};

struct pwi_storm_work_config {
  struct pawl_session *session;
  struct pwi_storm_writer *journal;
  uint32_t outstanding;
  uint64_t pushes; /* 0: until told to stop */
  enum pwi_storm_plant plant;
  int64_t patience_ns; /* for one push */
  atomic_int *told;    /* 1: begin no more and see the rest through; 2: go */
};

struct pwi_storm_work_report {
  uint64_t pushes, pulls;
  uint64_t failures; /* of tasks that ended with an error */
  pawl_status why;   /* of the first of those */
  char first[256];   /* and what it said */
  uint64_t stale;    /* keys that a pull did not show as they should be */
  uint64_t open;     /* pushes that had not ended when it left */
};

/* Works until it is told to stop, or nothing can go on: PAWL_TIMED_OUT if a push does not end, PAWL_CLUSTER_LOST if the library says
 * that acknowledged data was lost, else what the journal or a call failed with. Other tasks that fail are counted and do not end it. The report is filled in whatever happens. */
PAWL_MUST_USE pawl_status pwi_storm_work(const struct pwi_storm_work_config *config,
                                         struct pwi_storm_work_report *report_out);

/* Reads the journals, pulls, and judges. A pull has `patience_ns`; keys that cannot be read by then are counted as lost. The
 * session is opened and closed here. On an error `where_out` says which journal, or "" if it was no journal's. */
PAWL_MUST_USE pawl_status pwi_storm_verify(const struct pawl_session_options *options, const char *const *paths,
                                           size_t count, int64_t patience_ns, struct pwi_storm_verdict *verdict_out,
                                           const char **where_out);

#endif
