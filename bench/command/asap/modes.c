/* Figures 8, 9 and 10 of ASAP: the modes of synchronisation. Figure 8 is the share of reduces that used so many
 * inputs; 9 and 10 are steps a second and the time to an accuracy, with and without stragglers. In async mode a
 * run may miss the accuracy, as in the paper: that is a result and no failure. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "real.h"

#define MODES 3
#define SLOW 4

static const enum pawl_reduce_mode modes[MODES] = {PAWL_REDUCE_NOTIFY_ACK, PAWL_REDUCE_BSP, PAWL_REDUCE_ASYNC};

/* What disturbs the workers. */
struct scene {
  const char *name;
  double slow;
  bool has_stalls;
};

static const struct scene calm = {"none", 1, false}, one_slow = {"one slow", SLOW, false}, stalls = {"stalls", 1, true};

static struct pwi_asap_setup setup_of(const struct pwi_asap_plan *plan, uint32_t workers, enum pwi_topology graph,
                                      enum pawl_reduce_mode mode, const struct scene *scene) {
  struct pwi_asap_setup setup = pwi_asap_setup_of(plan, workers);
  setup.graph = plan->has_graph ? plan->graph : graph;
  setup.mode = mode;
  setup.slow = scene->slow;
  setup.stall = scene->has_stalls ? plan->stall : 0;
  setup.stall_times = plan->stall_times;
  return setup;
}

static void name_modes(struct pwi_asap_chart *chart) {
  for (size_t k = 0; k < MODES; k++) chart->series[k] = pwi_asap_mode_name(modes[k]);
  chart->series_count = MODES;
}

/* --- figure 8 ------------------------------------------------------------------------------------------- */

static double share(const uint64_t *counts, uint32_t from, uint32_t to, uint64_t of) {
  uint64_t sum = 0;
  for (uint32_t i = from; i <= to; i++) sum += counts[i];
  return of ? 100 * (double)sum / (double)of : (double)NAN;
}

static void print_inputs(const struct pwi_asap_plan *plan, const struct pwi_asap_setup *setup,
                         const struct pwi_asap_outcome *outcome) {
  uint32_t all = setup->workers - 1, most = all > 2 ? all - 2 : 0;
  if (plan->json) {
    pwi_asap_print_json(plan, one_slow.name, setup, outcome);
    return;
  }
  printf("%-10s %8" PRIu64 " %8.1f %%  %8.1f %%  %8.1f %%  %8.1f %%\n", pwi_asap_mode_name(setup->mode), outcome->steps,
         share(outcome->by_current, all, all, outcome->steps), share(outcome->by_current, most, all, outcome->steps),
         share(outcome->by_used, all, all, outcome->steps), share(outcome->by_used, most, all, outcome->steps));
}

static int draw_inputs(const struct pwi_asap_plan *plan, const struct pwi_asap_outcome *outcomes, uint32_t workers) {
  struct pwi_asap_chart chart = {
      .title = "Share of the reduces (%) that used so many inputs of their own version", .axis = "inputs", .digits = 0};
  name_modes(&chart);
  for (uint32_t i = 0; i < workers && i < PWI_ASAP_GROUPS_MAX; i++) {
    snprintf(chart.groups[i], sizeof chart.groups[i], "%" PRIu32, i);
    for (size_t k = 0; k < MODES; k++) chart.values[i][k] = share(outcomes[k].by_current, i, i, outcomes[k].steps);
    chart.group_count++;
  }
  return pwi_asap_finish(plan, &chart, PWI_EXIT_OK);
}

static int figure_8(const struct pwi_asap_plan *plan) {
  uint32_t workers = plan->workers ? plan->workers : 8, most = workers > 3 ? workers - 3 : 0;
  struct pwi_asap_outcome outcomes[MODES];
  pwi_asap_print_head(plan, "inputs that a reduce uses, by mode; all-reduce, one worker 4 times slower");
  if (!plan->json) {
    printf("                       of the own version        complete, any version\n");
    printf("mode        reduces   all %" PRIu32 "    %" PRIu32 " or more    all %" PRIu32 "    %" PRIu32 " or more\n",
           workers - 1, most, workers - 1, most);
  }
  for (size_t k = 0; k < MODES; k++) {
    struct pwi_asap_setup setup = setup_of(plan, workers, PWI_TOPOLOGY_COMPLETE, modes[k], &one_slow);
    setup.seconds = plan->seconds;
    bool is_fine = plan->is_real ? pwi_asap_run_real(plan, &setup, PWI_ASAP_REDUCE, &outcomes[k])
                                 : pwi_asap_try(plan, &setup, &outcomes[k]);
    if (!is_fine) return PWI_EXIT_FAILURE;
    print_inputs(plan, &setup, &outcomes[k]);
  }
  if (!plan->json)
    printf("\nThe paper leaves open: the time of a step, of a barrier and of a model on the network; how slow the "
           "slowest\nworker is; whether an old version counts as correct in async mode.\n");
  return draw_inputs(plan, outcomes, workers);
}

/* --- figures 9 and 10 ----------------------------------------------------------------------------------- */

struct row {
  struct pwi_asap_outcome rate, time; /* steps for a fixed time; until the accuracy is reached */
};

static bool measure(const struct pwi_asap_plan *plan, uint32_t workers, enum pwi_topology graph, size_t mode,
                    const struct scene *scene, struct row *row) {
  struct pwi_asap_setup setup = setup_of(plan, workers, graph, modes[mode], scene);
  if (!pwi_asap_try(plan, &setup, &row->time)) return false;
  if (plan->json) pwi_asap_print_json(plan, scene->name, &setup, &row->time);
  setup.seconds = plan->seconds;
  if (!pwi_asap_try(plan, &setup, &row->rate)) return false;
  if (plan->json) pwi_asap_print_json(plan, scene->name, &setup, &row->rate);
  fflush(stdout);
  return true;
}

static double rate_of(const struct row *row) { return (double)row->rate.steps / row->rate.seconds; }

static void print_row(const struct scene *scene, size_t mode, const struct row *rows) {
  const struct row *row = &rows[mode];
  printf("%-10s %-10s %10.0f %8.2fx   %8.2f s %8.2fx %8" PRIu64 "%s\n", mode == 0 ? scene->name : "",
         pwi_asap_mode_name(modes[mode]), rate_of(row), rate_of(row) / rate_of(&rows[1]), row->time.seconds,
         rows[1].time.seconds / row->time.seconds, row->time.rounds,
         row->time.is_reached               ? ""
         : modes[mode] == PAWL_REDUCE_ASYNC ? "   does not converge"
                                            : "   the accuracy was not reached");
}

static const char *order_of(const struct row *rows) {
  return rate_of(&rows[2]) > rate_of(&rows[0]) && rate_of(&rows[0]) > rate_of(&rows[1]) ? "yes" : "no";
}

static int figure_9_or_10(const struct pwi_asap_plan *plan) {
  bool is_9 = plan->figure == 9, are_reached = true;
  uint32_t workers = plan->workers ? plan->workers : is_9 ? 8 : 25;
  enum pwi_topology graph = is_9 ? PWI_TOPOLOGY_COMPLETE : PWI_TOPOLOGY_ROOT;
  const struct scene *const scenes[] = {&calm, &one_slow, &stalls};
  struct row rows[3][MODES];
  struct pwi_asap_chart chart = {.title = "Steps a second of all workers", .axis = "stragglers"};
  name_modes(&chart);
  pwi_asap_print_head(plan, is_9 ? "modes on all-reduce" : "modes on the root graph");
  if (!plan->json)
    printf("%" PRIu32 " workers, graph %s\n\n", workers,
           pwi_topology_info(plan->has_graph ? plan->graph : graph)->name);
  if (!plan->json) printf("stragglers mode        steps a s  of bsp   to accuracy of bsp    rounds\n");
  for (size_t i = 0; i < 3; i++) {
    snprintf(chart.groups[i], sizeof chart.groups[i], "%s", scenes[i]->name);
    for (size_t k = 0; k < MODES; k++) {
      if (!measure(plan, workers, graph, k, scenes[i], &rows[i][k])) return PWI_EXIT_FAILURE;
      chart.values[i][k] = rate_of(&rows[i][k]);
      are_reached = are_reached && (rows[i][k].time.is_reached || modes[k] == PAWL_REDUCE_ASYNC);
    }
    for (size_t k = 0; k < MODES && !plan->json; k++) print_row(scenes[i], k, rows[i]);
    fflush(stdout);
  }
  chart.group_count = 3;
  if (!plan->json)
    printf("\none slow: the last worker computes %d times longer; stalls: a step of any worker takes %g times as long "
           "with\nprobability %g. async > notify-ack > bsp in steps a second: %s without stragglers, %s with a slow "
           "worker, %s with\nstalls.\n\nThe paper leaves open: stragglers, the time of a step and of a model on the "
           "network%s.\n",
           SLOW, plan->stall_times, plan->stall, order_of(rows[0]), order_of(rows[1]), order_of(rows[2]),
           is_9 ? "; it trains a convolutional net" : "");
  return pwi_asap_finish(plan, &chart, are_reached ? PWI_EXIT_OK : PWI_EXIT_FAILURE);
}

int pwi_asap_by_mode(const struct pwi_asap_plan *plan) {
  return plan->figure == 8 ? figure_8(plan) : figure_9_or_10(plan);
}
