/* What was lost and what is there twice, from a worker's journal and the rows that a pull has shown. Pure: no cluster here.
 *
 * On each key the journal divides pushes into those that must be there, those that may be there once (they had not ended
 * when their worker was killed, or ended with an unknown outcome), and those that were refused and must not be there. The
 * row that is stored must be the sum of all of the first kind and of some of the second. If it is not, the difference is
 * searched for the pushes that explain it: some that follow one another and are lost, or are there twice; two of them; or one
 * lost and another twice; or several that other keys have named. What cannot be explained so is counted, and not named.
 */
#ifndef TESTS_STORM_HARNESS_CHECK_H
#define TESTS_STORM_HARNESS_CHECK_H

#include "journal.h"

/* What a pull has shown of one worker's keys. */
struct pwi_storm_values {
  uint64_t rows[PWI_STORM_TABLES][PWI_STORM_KEYS][PWI_STORM_WIDTH];
  uint64_t known[PWI_STORM_TABLES]; /* a mask: others could not be read */
};

enum pwi_storm_fault {
  PWI_STORM_LOST,   /* must be there, and is not */
  PWI_STORM_DOUBLE, /* is there more often than it was pushed */
  PWI_STORM_UNREAD, /* must be there, and cannot be read: counted as lost */
};

struct pwi_storm_finding {
  enum pwi_storm_fault fault;
  uint32_t worker;
  enum pwi_storm_table table;
  uint32_t index;       /* of the worker's keys */
  uint64_t count;       /* pushes */
  uint64_t first, last; /* serials, the first and the last of them; 0: not named */
};

#define PWI_STORM_FINDINGS_MAX 64

struct pwi_storm_verdict {
  uint64_t pushes;  /* that were begun */
  uint64_t acked;   /* that ended, and are on some key for certain */
  uint64_t open;    /* that had not ended */
  uint64_t unknown; /* that ended, and may or may not be on some key: an answer that no fault of one server excuses */
  uint64_t lost, doubled;
  uint64_t stale; /* times that a key did not show a worker its own push */
  size_t finding_count;
  struct pwi_storm_finding findings[PWI_STORM_FINDINGS_MAX]; /* the first of them */
};

/* Adds what one worker's journal and rows say to the verdict, which is all zeros at first. lost and doubled count pushes, each
 * once however many keys it concerns, but for those that cannot be named: of them each key counts its own. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_storm_check(const struct pwi_storm_journal *journal,
                                          const struct pwi_storm_values *values, struct pwi_storm_verdict *verdict);

/* True if nothing was lost, nothing doubled, nothing stale seen, and every push that ended has a known end. */
bool pwi_storm_is_clean(const struct pwi_storm_verdict *verdict);

/* One finding as a line for people, without a line break. Returns `text`. */
const char *pwi_storm_finding_print(const struct pwi_storm_finding *finding, char *text, size_t size);

#endif
