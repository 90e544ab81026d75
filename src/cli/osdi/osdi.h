/* The figures of OSDI'14 (Li et al., "Scaling Distributed Machine Learning with the Parameter Server") that need more
 * machines than there are: `pawl sim osdi`.
 *
 *   10, 13   computing and waiting, by system and by tau: the real roles in the simulator (wait.h)
 *   14       topic models on 1,000 to 6,000 machines: flows alone (topics.c)
 *   table5   counting a stream on 15 machines: flows alone (counts.c)
 */
#ifndef PWI_CLI_OSDI_OSDI_H
#define PWI_CLI_OSDI_OSDI_H

#include "cli/cli.h"
#include "cli/osdi/wait.h"

#define PWI_OSDI_SIZES 16 /* numbers of machines in one figure */

enum pwi_osdi_figure { PWI_OSDI_10, PWI_OSDI_13, PWI_OSDI_14, PWI_OSDI_TABLE5 };

struct pwi_osdi_options {
  const char *program, *name; /* of the JSON: "sim" and "osdi", or "bench" and "wait" */
  enum pwi_osdi_figure figure;
  bool json, shows; /* shows: progress, on a terminal */
  const char *svg;
  uint64_t seed;

  /* figures 10 and 13 */
  uint64_t taus[PWI_WAIT_TAUS_MAX];
  size_t tau_count;
  struct pwi_wait_shape shape;
  bool by_worker;

  /* figure 14 */
  uint32_t sizes[PWI_OSDI_SIZES]; /* machines */
  size_t size_count;
  double users, tokens; /* tokens: of a user */
  double words, row_bytes;
  double rate; /* tokens a second of a machine; 0: calibrated */

  /* table 5 */
  uint32_t machines, servers; /* servers: of a machine */
  double pair_bits, gap_s, seconds;
  double items; /* a second, of a server; 0: calibrated */

  double gigabits; /* of a machine's link; 0: as in the paper */
};

/* Defaults of figures 10 and 13. */
void pwi_osdi_wait_defaults(struct pwi_osdi_options *options);

/* Reads a list such as "0,8,inf,adaptive". */
bool pwi_osdi_read_taus(const char *text, struct pwi_osdi_options *options);

/* Each runs its figure and prints it. Returns an exit code. */
int pwi_osdi_delays(const struct pwi_command *command, const struct pwi_osdi_options *options);  /* 13 */
int pwi_osdi_systems(const struct pwi_command *command, const struct pwi_osdi_options *options); /* 10 */
int pwi_osdi_topics(const struct pwi_command *command, const struct pwi_osdi_options *options);
int pwi_osdi_counts(const struct pwi_command *command, const struct pwi_osdi_options *options);

#endif
