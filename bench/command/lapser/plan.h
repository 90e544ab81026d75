/* The figures of `pawl-bench lapser`: which runs each has, and what is printed and drawn of them. */
#ifndef BENCH_COMMAND_LAPSER_PLAN_H
#define BENCH_COMMAND_LAPSER_PLAN_H

#include "lapser.h"

#define PWI_LAPSER_ROUNDS_MAX 15
#define PWI_LAPSER_CASES_MAX 40

struct pwi_lapser_shape { /* of generated ratings */
  uint32_t users, items, ratings;
  uint64_t seed;
};

struct pwi_lapser_problem {
  char path[4096];
  int handle; /* of a generated file, or -1 */
  struct bpmf_data data;
};

/* Returns an exit code. Call close in any case. `path` NULL: generated ratings. */
int pwi_lapser_problem_open(const struct pwi_command *command, const char *path, const struct pwi_lapser_shape *shape,
                            double test_share, struct pwi_lapser_problem *problem);
void pwi_lapser_problem_close(struct pwi_lapser_problem *problem);

enum pwi_lapser_figure { PWI_LAPSER_TABLE = 0, PWI_LAPSER_FIGURE_LAST = 8 };

struct pwi_lapser_plan {
  const struct pwi_command *command;
  const struct pwi_lapser_problem *problem;
  struct pwi_lapser_task task; /* of all runs, without way, slack and workers */
  uint32_t figure;             /* 5.1 to 5.8; 0: table 5.2 */
  uint32_t workers;            /* 0: by figure */
  uint32_t rounds;
  bool json;
  const char *svg; /* NULL: none */
};

/* Seconds of an iteration: the median over a run's iterations, and then over its rounds. */
struct pwi_lapser_summary {
  double seconds, shared, cpu;
  double ratio; /* median of the ratios to the reference of the same round; NAN: there is none */
};

struct pwi_lapser_case {
  enum pwi_lapser_way way;
  uint32_t slack, workers;
  size_t reference; /* case to which its time is compared; itself: none */
  struct pwi_lapser_summary rounds[PWI_LAPSER_ROUNDS_MAX], all;
  struct pwi_lapser_figures *figures; /* of the last round */
};

struct pwi_lapser_cases {
  size_t count;
  struct pwi_lapser_case list[PWI_LAPSER_CASES_MAX];
};

/* Runs, prints and draws a figure; returns an exit code. */
int pwi_lapser_carry_out(const struct pwi_lapser_plan *plan);

const char *pwi_lapser_way_name(enum pwi_lapser_way way);
void pwi_lapser_case_name(const struct pwi_lapser_case *one, char *name, size_t room); /* such as "pull 4" */

/* print.c */
void pwi_lapser_print_head(const struct pwi_lapser_plan *plan);
void pwi_lapser_print(const struct pwi_lapser_plan *plan, const struct pwi_lapser_cases *cases);

/* picture.c. False if the file cannot be written. */
bool pwi_lapser_draw(const struct pwi_lapser_plan *plan, const struct pwi_lapser_cases *cases);

extern const struct pwi_command pwi_command_bench_lapser;

#endif
