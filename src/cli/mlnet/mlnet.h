/* The figures of MLNet's section 4, from flows on a simulated fabric. */
#ifndef PWI_CLI_MLNET_MLNET_H
#define PWI_CLI_MLNET_MLNET_H

#include "cli/cli.h"
#include "sim/fabric/training.h"

#define PWI_MLNET_SIZES 16   /* numbers of servers in one figure */
#define PWI_MLNET_SETUPS 10  /* ways of training in one figure */
#define PWI_MLNET_POINTS 512 /* of a line in a picture */

enum pwi_mlnet_figure { PWI_MLNET_1A, PWI_MLNET_1B, PWI_MLNET_2, PWI_MLNET_3 };

struct pwi_mlnet_options {
  enum pwi_mlnet_figure figure;
  uint32_t ports, workers, jobs, rounds;
  uint32_t sizes[PWI_MLNET_SIZES];
  size_t size_count;
  double rate;                     /* of a link, bytes per second */
  double bytes;                    /* of a push of one worker; 0: calibrated */
  double interval;                 /* seconds of computing before a push */
  double over, grain, incast_loss; /* grain in seconds; below 0: chosen */
  uint32_t incast_flows;
  enum pwi_fabric_tier tier;
  bool even, by_message, calibrates_fixed, json;
  uint64_t seed;
  const char *svg;
};

/* A way of training. */
struct pwi_mlnet_setup {
  const char *name;
  enum pwi_tree tree;
  bool rotates, has_priorities;
};

/* Runs the figure and prints it. Returns an exit code. */
int pwi_mlnet_run(const struct pwi_command *command, struct pwi_mlnet_options *options);

/* --- pictures ------------------------------------------------------------------------------------------- */

struct pwi_mlnet_line {
  const char *name;
  double x[PWI_MLNET_POINTS], y[PWI_MLNET_POINTS];
  size_t count;
};

struct pwi_mlnet_chart {
  const char *title, *x, *y; /* of the axes */
  struct pwi_mlnet_line *lines;
  size_t line_count;
};

/* Returns 0 or an errno. */
int pwi_mlnet_draw(const char *path, const struct pwi_mlnet_chart *chart);

#endif
