/* Finds lost and doubled pushes, from a worker's journal and the rows that a pull returned. Pure: no
 * cluster here.
 *
 * For each key the journal divides pushes into those that must be applied; those that may be applied once
 * (they had not ended when their worker was killed, or ended with an unknown outcome); and those that were
 * refused and must not be applied. The stored row must be the sum of all pushes of the first kind and of
 * some of the second. If it is not, the verifier searches for pushes that explain the difference: a run of
 * pushes that are lost or doubled; two of them; one lost and another doubled; or several that other keys
 * have named. A difference without such an explanation is counted, and not named.
 */
#ifndef TESTS_STORM_HARNESS_CHECK_H
#define TESTS_STORM_HARNESS_CHECK_H

#include "journal.h"

/* The rows of one worker's keys, as pulled. */
struct pwi_storm_values {
  uint64_t rows[PWI_STORM_TABLES][PWI_STORM_KEYS][PWI_STORM_WIDTH];
  uint64_t known[PWI_STORM_TABLES]; /* a mask; the other keys could not be read */
};

enum pwi_storm_fault {
  PWI_STORM_LOST,   /* must be applied, and is not */
  PWI_STORM_DOUBLE, /* is applied more often than it was pushed */
  PWI_STORM_UNREAD, /* must be applied, but the key cannot be read: counted as lost */
};

struct pwi_storm_finding {
  enum pwi_storm_fault fault;
  uint32_t worker;
  enum pwi_storm_table table;
  uint32_t index;       /* of the worker's keys */
  uint64_t count;       /* pushes */
  uint64_t first, last; /* the first and the last serial; 0: not named */
};

#define PWI_STORM_FINDINGS_MAX 64

struct pwi_storm_verdict {
  uint64_t pushes;  /* that were begun */
  uint64_t acked;   /* that ended, and are certainly applied to some key */
  uint64_t open;    /* that had not ended */
  uint64_t unknown; /* that ended with an unknown outcome on some key, which no fault of one server excuses */
  uint64_t lost, doubled;
  uint64_t stale; /* how often a key did not show a worker its own push */
  size_t finding_count;
  struct pwi_storm_finding findings[PWI_STORM_FINDINGS_MAX]; /* the first findings */
};

/* Adds the results of one worker's journal and rows to the verdict, which is all zeros at first. `lost`
 * and `doubled` count pushes, each once however many keys it concerns; pushes that cannot be named are
 * counted per key. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_storm_check(const struct pwi_storm_journal *journal,
                                          const struct pwi_storm_values *values, struct pwi_storm_verdict *verdict);

/* True if nothing was lost, doubled or stale, and every push that ended has a known outcome. */
bool pwi_storm_is_clean(const struct pwi_storm_verdict *verdict);

/* Formats one finding as a line without its line break. Returns `text`. */
const char *pwi_storm_finding_print(const struct pwi_storm_finding *finding, char *text, size_t size);

#endif
