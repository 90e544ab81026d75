/* `pawl graph show` and `pawl graph check`: the figures of a topology, and of a graph in a file. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/graph/cmd_graph.h"
#include "cli/graph/output.h"
#include "cli/graph/racks.h"
#include "cli/graph/report.h"
#include "cli/role_options.h"
#include "graph/choose.h"
#include "graph/text.h"

#define TRIES_MAX 100000

enum {
  LETTER_NODES = 300,
  LETTER_DEGREE,
  LETTER_RACKS,
  LETTER_SEED,
  LETTER_TRIES,
  LETTER_WEIGHTS,
  LETTER_BYTES,
  LETTER_SVG,
  LETTER_SAVE,
};

struct graph_run {
  const struct pwi_command *command;
  bool json;
  bool is_default;                      /* the name of the graph is "default" */
  const char *racks_value, *svg, *save; /* NULL: not given */
  uint32_t tries;                       /* 0: not given */
  bool has_seed, has_degree;
  struct pwi_graph_spec spec; /* spec.nodes is 0 if --nodes was not given */
  uint32_t *racks;
  struct pwi_graph *graph;
  struct pwi_graph_report report;
  struct pwi_graph_why why;
};

/* --- options ------------------------------------------------------------------------------------------------------------ */

static bool read_count(const char *text, uint32_t most, uint32_t *count_out) {
  uint64_t value;
  if (!pwi_cli_number(text, &value) || value < 1 || value > most) return false;
  *count_out = (uint32_t)value;
  return true;
}

/* Reads an option. Returns the expected value, or NULL if it is valid. */
static const char *read_option(struct graph_run *run, int letter, const char *value) {
  switch (letter) {
  case LETTER_NODES:
    return read_count(value, PWI_GRAPH_NODES_MAX, &run->spec.nodes) ? NULL : "a number of nodes, up to 1048576";
  case LETTER_DEGREE:
    run->has_degree = true;
    return read_count(value, PWI_GRAPH_NODES_MAX, &run->spec.degree) ? NULL
                                                                     : "a number of neighbours or links, 1 or more";
  case LETTER_SEED:
    run->has_seed = true;
    return pwi_cli_number(value, &run->spec.seed) ? NULL : "a whole number";
  case LETTER_TRIES:
    return read_count(value, TRIES_MAX, &run->tries) ? NULL : "a number of seeds, up to 100000";
  case LETTER_WEIGHTS:
    return pwi_weighting_find(value, &run->report.weighting) ? NULL : "equal or metropolis";
  case LETTER_BYTES:
    return pwi_role_size(value, &run->report.bytes) ? NULL : "a size in bytes, e.g. 44000000 or 40M";
  case LETTER_RACKS:
    run->racks_value = value;
    return NULL;
  case LETTER_SVG:
    run->svg = value;
    return NULL;
  case LETTER_SAVE:
    run->save = value;
    return NULL;
  default:
    run->json |= letter == PWI_CLI_LETTER_JSON;
    return NULL;
  }
}

/* If it returns false, return `*exit_out`. */
static bool begin(struct graph_run *run, const struct pwi_command *command, int argc, char **argv, int *exit_out) {
  struct pwi_cli_args args;
  int letter;
  *run = (struct graph_run){.command = command};
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    const char *wanted = read_option(run, letter, args.value);
    if (!wanted) continue;
    *exit_out = pwi_cli_bad_value(command, args.value, "%s", wanted);
    return false;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 1, 1)) {
    *exit_out = args.exit_code;
    return false;
  }
  run->report.name = argv[args.rest];
  return true;
}

static int fail(const struct graph_run *run, pawl_status status, bool is_usage) {
  bool is_wrong = status == PAWL_INVALID || status == PAWL_TOO_LARGE;
  return is_usage && is_wrong ? pwi_cli_usage(run->command, "%s", run->why.text)
                              : pwi_cli_failure(run->command, "%s", run->why.text);
}

/* --- results ------------------------------------------------------------------------------------------------------------ */

static int finish(struct graph_run *run, bool is_usage) {
  struct pwi_graph_report *report = &run->report;
  report->graph = run->graph;
  report->racks = run->racks;
  pawl_status status = pwi_graph_report_fill(report, &run->why);
  if (status) return fail(run, status, is_usage);
  int exit_code = PWI_EXIT_OK;
  if (run->json)
    exit_code = pwi_graph_report_print_json(report, run->command);
  else
    pwi_graph_report_print(report);
  if (exit_code == PWI_EXIT_OK && run->save) exit_code = pwi_graph_save(run->command, run->graph, run->save);
  if (exit_code == PWI_EXIT_OK && run->svg) exit_code = pwi_graph_draw(run->command, report, run->svg);
  if (exit_code != PWI_EXIT_OK || report->reach.is_strong) return exit_code;
  return pwi_cli_failure(run->command,
                         "the graph is not strongly connected: no path leads from node %" PRIu32 " to node %" PRIu32
                         "; add edges, or peers will never agree",
                         report->reach.from, report->reach.to);
}

static int end(struct graph_run *run, int exit_code) {
  pwi_graph_destroy(run->graph);
  pwi_free(run->racks);
  return exit_code;
}

/* --- show --------------------------------------------------------------------------------------------------------------- */

static int refuse_name(const struct graph_run *run) {
  struct pwi_cli_guess guess = {.word = run->report.name};
  pwi_cli_guess_offer(&guess, "default");
  for (int i = 0; i < PWI_TOPOLOGIES; i++) pwi_cli_guess_offer(&guess, pwi_topology_info((enum pwi_topology)i)->name);
  if (guess.best)
    return pwi_cli_usage(run->command, "unknown graph '%s'; did you mean '%s'?", run->report.name, guess.best);
  return pwi_cli_usage(run->command,
                       "unknown graph '%s'; 'pawl graph list' lists them, 'pawl graph check' reads a graph from a file",
                       run->report.name);
}

/* Options that the topology does not use are refused, because their user expects an effect. */
static int check_options(const struct graph_run *run) {
  bool is_random = !run->is_default && run->spec.topology == PWI_TOPOLOGY_RANDOM;
  bool is_racks = !run->is_default && run->spec.topology == PWI_TOPOLOGY_RACKS;
  const char *name = run->report.name;
  if (run->has_seed && !is_random && !run->is_default)
    return pwi_cli_usage(run->command, "--seed is for random graphs, not for %s", name);
  if (run->tries && !is_random) return pwi_cli_usage(run->command, "--tries is for random graphs, not for %s", name);
  if (run->has_degree && !is_random && !is_racks)
    return pwi_cli_usage(run->command, "--degree is for random graphs and racks, not for %s", name);
  if (is_racks && !run->racks_value)
    return pwi_cli_usage(run->command, "racks needs --racks, a number of racks or a file with the rack of each node");
  if (run->spec.nodes == 0 && !run->racks_value) return pwi_cli_usage(run->command, "missing --nodes N");
  return PWI_EXIT_OK;
}

static pawl_status settle_spec(struct graph_run *run) {
  if (run->is_default) {
    pawl_status status = pwi_choose_default(run->spec.nodes, run->spec.seed, &run->why, &run->spec);
    if (status) return status;
    run->report.name = pwi_topology_info(run->spec.topology)->name;
  } else if (run->tries) {
    pawl_status status = pwi_choose_seed(&run->spec, run->tries, &run->why);
    if (status) return status;
  }
  run->report.has_seed = run->spec.topology == PWI_TOPOLOGY_RANDOM;
  run->report.seed = run->spec.seed;
  return PAWL_OK;
}

static int run_show(const struct pwi_command *command, int argc, char **argv) {
  struct graph_run run;
  int exit_code;
  if (!begin(&run, command, argc, argv, &exit_code)) return exit_code;
  run.is_default = strcmp(run.report.name, "default") == 0;
  if (!run.is_default && !pwi_topology_find(run.report.name, &run.spec.topology)) return refuse_name(&run);
  exit_code = check_options(&run);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  pawl_status status = PAWL_OK;
  if (run.racks_value) status = pwi_graph_racks(run.racks_value, &run.spec.nodes, &run.why, &run.racks);
  if (!status && run.spec.topology == PWI_TOPOLOGY_RACKS) run.spec.racks = run.racks;
  if (!status) status = settle_spec(&run);
  if (!status) status = pwi_graph_make(&run.spec, &run.why, &run.graph);
  return end(&run, status ? fail(&run, status, true) : finish(&run, true));
}

#define COMMON_OPTIONS                                                                                                 \
  {LETTER_WEIGHTS, "weights", "KIND", "equal (default): 1/(in-degree + 1); or metropolis"},                            \
      {LETTER_BYTES, "bytes", "SIZE", "also print the bytes of a round in which a node sends SIZE to each neighbour"}, \
      {LETTER_SVG, "svg", "FILE", "draw the graph to FILE"},                                                           \
      {LETTER_SAVE, "save", "FILE", "write the graph to FILE, in the format of 'pawl graph check'"}, PWI_CLI_JSON

static const struct pwi_cli_option show_options[] = {
    {LETTER_NODES, "nodes", "N", "number of nodes"},
    {LETTER_DEGREE, "degree", "D", "random: neighbours of a node (default: 2); racks: links out of a rack"},
    {LETTER_RACKS, "racks", "R|FILE",
     "number of racks, or a file with the rack of one node in each line; counts the edges between racks of any graph"},
    {LETTER_SEED, "seed", "S", "random, default: seed of the draw (default: 0)"},
    {LETTER_TRIES, "tries", "T", "random: try T seeds from S on, and take the one with the largest gap"},
    COMMON_OPTIONS,
    {0}};

const struct pwi_command pwi_command_graph_show = {
    .name = "graph show",
    .arguments = "NAME",
    .summary = "print edges, spectral gap and diameter of a graph",
    .text = "Prints the figures of a graph that 'pawl graph list' names, or of 'default',\n"
            "the graph that peers use if they name none. Exits with 1 if the graph is not\n"
            "strongly connected.\n\n"
            "  pawl graph show root --nodes 25\n"
            "  pawl graph show random --nodes 1000 --degree 3 --tries 20 --json\n"
            "  pawl graph show racks --nodes 32 --racks 4 --svg racks.svg\n",
    .options = show_options,
    .run = run_show,
};

/* --- check -------------------------------------------------------------------------------------------------------------- */

static int run_check(const struct pwi_command *command, int argc, char **argv) {
  struct graph_run run;
  int exit_code;
  if (!begin(&run, command, argc, argv, &exit_code)) return exit_code;
  pawl_status status = pwi_graph_read(run.report.name, &run.why, &run.graph);
  if (!status && run.spec.nodes && run.spec.nodes != run.graph->nodes)
    status = pwi_graph_refuse(&run.why, PAWL_MISMATCH, "%s has %" PRIu32 " nodes, not %" PRIu32, run.report.name,
                              run.graph->nodes, run.spec.nodes);
  if (!status && run.racks_value) {
    uint32_t nodes = run.graph->nodes;
    status = pwi_graph_racks(run.racks_value, &nodes, &run.why, &run.racks);
  }
  return end(&run, status ? fail(&run, status, false) : finish(&run, false));
}

static const struct pwi_cli_option check_options_list[] = {
    {LETTER_NODES, "nodes", "N", "fail if the graph does not have N nodes"},
    {LETTER_RACKS, "racks", "R|FILE", "number of racks, or a file with the rack of one node in each line"},
    COMMON_OPTIONS,
    {0}};

const struct pwi_command pwi_command_graph_check = {
    .name = "graph check",
    .arguments = "FILE",
    .summary = "check a graph in a file, and print its figures",
    .text = "Reads a graph from a file and prints its figures. Exits with 1 if the file is\n"
            "wrong, or the graph is not strongly connected. The first line of the file has\n"
            "the number of nodes, each other line a node and the nodes it sends to:\n\n"
            "  # a ring of three\n"
            "  nodes 3\n"
            "  0: 1\n"
            "  1: 2\n"
            "  2: 0\n",
    .options = check_options_list,
    .run = run_check,
};
