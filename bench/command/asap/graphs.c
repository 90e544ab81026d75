/* Figures 5, 6 and 7 of ASAP: the bytes that workers send until all of them have reached an accuracy, by graph. */
#include <inttypes.h>
#include <stdio.h>

#include "asap.h"

#define GRAPHS_MAX 3

struct figure {
  uint32_t number, workers;
  const char *title;
  enum pwi_topology graphs[GRAPHS_MAX];
  size_t count;
  bool has_same_rounds; /* all graphs run once more, as long as the slowest of them */
  bool has_whole_share; /* a worker computes on its whole share between two reduces */
  const char *open;     /* inputs that the paper leaves open */
};

static const struct figure figures[] = {
    {.number = 5,
     .workers = 4,
     .title = "all-reduce and the root graph, 4 workers",
     .graphs = {PWI_TOPOLOGY_COMPLETE, PWI_TOPOLOGY_ROOT},
     .count = 2,
     .has_same_rounds = true,
     .open = "the data (RCV1 there), the regularisation, the step size, the examples between two reduces, and the "
             "accuracy"},
    {.number = 6,
     .workers = 64,
     .title = "all-reduce and the root graph, 64 workers",
     .graphs = {PWI_TOPOLOGY_COMPLETE, PWI_TOPOLOGY_ROOT},
     .count = 2,
     .open = "the data (splice-site there, 250 GB), the regularisation, the step size, the examples between two\n"
             "reduces, and the accuracy"},
    {.number = 7,
     .workers = 25,
     .title = "all-reduce, the root graph and the closed chain, 25 workers",
     .graphs = {PWI_TOPOLOGY_COMPLETE, PWI_TOPOLOGY_ROOT, PWI_TOPOLOGY_RING},
     .count = 3,
     .has_whole_share = true,
     .open = "the data (webspam there), the regularisation, the step size and the accuracy; how many examples are\n"
             "between two reduces (here a worker's whole share: with few of them the ring sends no more bytes than\n"
             "the root graph, try --batch 20); whether the chain is closed (its gap of 0.008 is that of the ring, and "
             "no\nworker would hear the end of an open chain)"},
};

static const struct figure *find(uint32_t number) {
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
    if (figures[i].number == number) return &figures[i];
  return NULL;
}

static double per_worker(const struct pwi_asap_setup *setup, const struct pwi_asap_outcome *outcome) {
  return (double)outcome->bytes / setup->workers / 1e6;
}

static void print_row(const struct pwi_asap_plan *plan, const char *scene, const struct pwi_asap_setup *setup,
                      const struct pwi_asap_outcome *outcome) {
  if (plan->json) {
    pwi_asap_print_json(plan, scene, setup, outcome);
  } else {
    printf("%-9s %8" PRIu64 " %10.2f MB %16" PRIu64 " %9.2f s %9.3f %%%s\n", pwi_topology_info(setup->graph)->name,
           outcome->rounds, per_worker(setup, outcome), outcome->bytes, outcome->seconds,
           100 * (outcome->objective / plan->problem->optimum - 1),
           outcome->is_reached ? "" : "   the accuracy was not reached");
  }
  fflush(stdout);
}

static void print_heads(const struct pwi_asap_plan *plan) {
  if (!plan->json) printf("graph       rounds  sent a worker       bytes of all        time  above optimum\n");
}

/* Each graph for the rounds of the slowest. */
static bool repeat(const struct pwi_asap_plan *plan, const struct figure *figure, struct pwi_asap_setup *setups,
                   struct pwi_asap_outcome *outcomes) {
  uint64_t rounds = 0;
  for (size_t i = 0; i < figure->count; i++) rounds = outcomes[i].rounds > rounds ? outcomes[i].rounds : rounds;
  if (!plan->json) printf("\nthe same rounds for all graphs:\n");
  for (size_t i = 0; i < figure->count; i++) {
    setups[i].rounds = rounds;
    setups[i].is_whole = true;
    if (!pwi_asap_try(plan, &setups[i], &outcomes[i])) return false;
    print_row(plan, "same rounds", &setups[i], &outcomes[i]);
  }
  return true;
}

static void conclude(const struct pwi_asap_plan *plan, const struct figure *figure,
                     const struct pwi_asap_outcome *outcomes) {
  if (plan->json) return;
  printf("\n");
  for (size_t i = 0; i < figure->count; i++)
    if (figure->graphs[i] != PWI_TOPOLOGY_ROOT)
      printf("bytes, %s to root: %.3f\n", pwi_topology_info(figure->graphs[i])->name,
             (double)outcomes[i].bytes / (double)outcomes[1].bytes);
  printf("\nThe paper leaves open: %s.\n", figure->open);
}

static void chart_it(const struct figure *figure, const struct pwi_asap_setup *setups,
                     const struct pwi_asap_outcome *outcomes, struct pwi_asap_chart *chart) {
  *chart = (struct pwi_asap_chart){.title = "MB that a worker sends until all workers have reached the accuracy",
                                   .axis = "graph (rounds)",
                                   .series = {"MB"},
                                   .series_count = 1,
                                   .digits = 2};
  if (figure->has_same_rounds) chart->title = "MB that a worker sends in the same number of rounds";
  for (size_t i = 0; i < figure->count; i++) {
    snprintf(chart->groups[i], sizeof chart->groups[i], "%s (%" PRIu64 ")", pwi_topology_info(setups[i].graph)->name,
             outcomes[i].rounds);
    chart->values[i][0] = per_worker(&setups[i], &outcomes[i]);
  }
  chart->group_count = figure->count;
}

int pwi_asap_by_graph(const struct pwi_asap_plan *plan) {
  const struct figure *figure = find(plan->figure);
  struct pwi_asap_setup setups[GRAPHS_MAX];
  struct pwi_asap_outcome outcomes[GRAPHS_MAX];
  struct pwi_asap_chart chart;
  uint32_t workers = plan->workers ? plan->workers : figure->workers;
  bool are_reached = true;
  pwi_asap_print_head(plan, figure->title);
  print_heads(plan);
  for (size_t i = 0; i < figure->count; i++) {
    setups[i] = pwi_asap_setup_of(plan, workers);
    setups[i].graph = figure->graphs[i];
    if (figure->has_whole_share && plan->batch == 0) setups[i].batch = plan->problem->examples / workers;
    if (!pwi_asap_try(plan, &setups[i], &outcomes[i])) return PWI_EXIT_FAILURE;
    print_row(plan, "accuracy", &setups[i], &outcomes[i]);
    are_reached = are_reached && outcomes[i].is_reached;
  }
  if (figure->has_same_rounds && !repeat(plan, figure, setups, outcomes)) return PWI_EXIT_FAILURE;
  conclude(plan, figure, outcomes);
  chart_it(figure, setups, outcomes, &chart);
  return pwi_asap_finish(plan, &chart, are_reached ? PWI_EXIT_OK : PWI_EXIT_FAILURE);
}
