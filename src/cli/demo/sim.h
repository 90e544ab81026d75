/* One simulated schedule of faults: the roles of cli/demo/roles.h, while nodes are killed and paused and
 * links are cut, drawn from a seed. */
#ifndef PWI_CLI_DEMO_SIM_H
#define PWI_CLI_DEMO_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "cli/demo/roles.h"
#include "sim/faults.h"

#define PWI_DEMO_NODES (1 + PWI_DEMO_CLIENTS) /* the store is node 0 */
#define PWI_DEMO_COLUMNS_MAX 88               /* of the picture */
#define PWI_DEMO_FAULTS_MAX 64
#define PWI_DEMO_LENGTH (6 * PWI_SIM_SECOND)
#define PWI_DEMO_SEED 7 /* when none is given */

struct pwi_demo_fault {
  struct pwi_sim_fault fault;
  char text[PWI_SIM_FAULT_TEXT_MAX];
};

/* The result of a run. Nothing to free. */
struct pwi_demo_run {
  uint64_t seed;
  bool careless;
  struct pwi_demo_fault faults[PWI_DEMO_FAULTS_MAX];
  size_t fault_count;
  int columns;
  uint32_t messages[PWI_DEMO_NODES][PWI_DEMO_COLUMNS_MAX]; /* received, by time */
  uint64_t acknowledged, lost, duplicates;
  unsigned store_starts;
  uint64_t events, hash;
  double seconds;    /* duration of the run */
  char failure[256]; /* the failure that the simulator found; "" if none */
};

/* Runs the schedule. `columns`, at most PWI_DEMO_COLUMNS_MAX, is the resolution of the message counts, and
 * affects nothing else. Lost writes are a result, not an error. Returns PAWL_NO_MEMORY or errors of the
 * simulator. */
pawl_status pwi_demo_sim_run(uint64_t seed, bool careless, int columns, struct pwi_demo_run *run_out);

const char *pwi_demo_node_name(uint32_t node);

/* Runs the schedule twice, and prints a picture or one JSON object. Returns a failure if writes were lost or
 * the runs differ. */
struct pwi_demo_sim_options {
  uint64_t seed;
  bool careless;
  bool json;
};

int pwi_demo_sim_show(const struct pwi_command *command, const struct pwi_demo_sim_options *options);

#endif
