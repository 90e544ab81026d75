/* `pawl graph optimise`: a graph with short paths, beside the others of its degree. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/graph/cmd_graph.h"
#include "cli/graph/output.h"
#include "cli/graph/report.h"
#include "graph/optimise.h"
#include "graph/reach.h"
#include "host/clock.h"

#define BETWEEN_LINES (PWI_HOST_SECOND / 2)
#define SECONDS_MAX 1000000

enum {
  LETTER_NODES = 300,
  LETTER_DEGREE,
  LETTER_BALANCED,
  LETTER_SEED,
  LETTER_STEPS,
  LETTER_SECONDS,
  LETTER_STALENESS,
  LETTER_SVG,
  LETTER_SAVE,
};

/* The figures of a start, for comparison. */
struct optimise_peer {
  bool is_there; /* there is such a graph, and it is strongly connected */
  struct pwi_path_lengths lengths;
  struct pwi_graph_degrees degrees;
};

struct optimise_run {
  const struct pwi_command *command;
  struct pwi_optimise_options options;
  const char *svg, *save; /* NULL: not given */
  uint64_t seconds;       /* 0: as long as it takes */
  uint64_t staleness;
  bool has_steps, has_staleness, json, shows;
  int64_t begin_ns, line_ns;
  struct pwi_graph_why why;
  struct pwi_optimised best;
  struct pwi_path_lengths lengths; /* of the best graph */
  struct optimise_peer peers[PWI_OPTIMISE_STARTS];
};

/* --- options ------------------------------------------------------------------------------------------------------------ */

static bool read_count(const char *text, uint64_t least, uint64_t most, uint64_t *count_out) {
  return pwi_cli_number(text, count_out) && *count_out >= least && *count_out <= most;
}

/* Reads an option. Returns the expected value, or NULL if it is valid. */
static const char *read_option(struct optimise_run *run, int letter, const char *value) {
  uint64_t count = 0;
  switch (letter) {
  case LETTER_NODES:
    if (!read_count(value, 2, PWI_OPTIMISE_NODES_MAX, &count)) return "a number of nodes, 2 to 2048";
    run->options.nodes = (uint32_t)count;
    return NULL;
  case LETTER_DEGREE:
    if (!read_count(value, 1, PWI_OPTIMISE_NODES_MAX, &count)) return "a number of neighbours, 1 or more";
    run->options.degree = (uint32_t)count;
    return NULL;
  case LETTER_SEED:
    return pwi_cli_number(value, &run->options.seed) ? NULL : "a whole number";
  case LETTER_STEPS:
    run->has_steps = true;
    return pwi_cli_number(value, &run->options.steps) ? NULL : "a number of steps";
  case LETTER_SECONDS:
    return read_count(value, 1, SECONDS_MAX, &run->seconds) ? NULL : "a number of seconds, 1 or more";
  case LETTER_STALENESS:
    run->has_staleness = true;
    return read_count(value, 0, UINT32_MAX, &run->staleness) ? NULL : "a number of clocks";
  case LETTER_SVG:
    run->svg = value;
    return NULL;
  case LETTER_SAVE:
    run->save = value;
    return NULL;
  default:
    run->options.is_balanced |= letter == LETTER_BALANCED;
    run->json |= letter == PWI_CLI_LETTER_JSON;
    return NULL;
  }
}

/* If it returns false, return `*exit_out`. */
static bool begin(struct optimise_run *run, const struct pwi_command *command, int argc, char **argv, int *exit_out) {
  struct pwi_cli_args args;
  int letter;
  *run = (struct optimise_run){.command = command};
  run->options.degree = 2;
  run->options.branches = PWI_OPTIMISE_BRANCHES;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    const char *wanted = read_option(run, letter, args.value);
    if (!wanted) continue;
    *exit_out = pwi_cli_bad_value(command, args.value, "%s", wanted);
    return false;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 0)) {
    *exit_out = args.exit_code;
    return false;
  }
  if (run->options.nodes == 0) {
    *exit_out = pwi_cli_usage(command, "missing --nodes N");
    return false;
  }
  if (!run->has_steps) run->options.steps = pwi_optimise_steps(run->options.nodes);
  return true;
}

/* --- searching ---------------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal_number) {
  (void)signal_number;
  is_interrupted = 1;
}

static void show(const struct pwi_optimise_progress *progress) {
  if (progress->is_exact)
    fprintf(stderr, "\r\033[K  sum %" PRIu64 "; branch and bound: %" PRIu64 " choices", progress->sum,
            progress->branches);
  else
    fprintf(stderr, "\r\033[K  sum %" PRIu64 "; step %" PRIu64, progress->sum, progress->steps);
}

static bool watch(void *watcher, const struct pwi_optimise_progress *progress) {
  struct optimise_run *run = watcher;
  int64_t now = pwi_host_now();
  if (run->shows && now - run->line_ns > BETWEEN_LINES) {
    run->line_ns = now;
    show(progress);
  }
  if (run->seconds && now - run->begin_ns >= (int64_t)run->seconds * PWI_HOST_SECOND) return false;
  return !is_interrupted;
}

/* An interrupt ends the search, and its best graph is printed and saved. */
static pawl_status search(struct optimise_run *run) {
  struct sigaction action = {.sa_handler = interrupt}, before;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before);
  run->begin_ns = run->line_ns = pwi_host_now();
  run->shows = isatty(STDERR_FILENO) == 1;
  run->options.watch = watch;
  run->options.watcher = run;
  pawl_status status = pwi_optimise(&run->options, &run->why, &run->best);
  if (run->shows) fputs("\r\033[K", stderr);
  sigaction(SIGINT, &before, NULL);
  return status ? status : pwi_path_lengths_find(run->best.graph, &run->lengths);
}

static pawl_status compare(struct optimise_run *run, enum pwi_optimise_start start) {
  struct pwi_graph *graph = NULL;
  struct pwi_reach reach = {0};
  struct optimise_peer *peer = &run->peers[start];
  pawl_status status = pwi_optimise_make_start(start, &run->options, &run->why, &graph);
  if (status == PAWL_INVALID || status == PAWL_EXISTS) return PAWL_OK;
  if (!status) status = pwi_reach_check(graph, &reach);
  if (!status && reach.is_strong) status = pwi_path_lengths_find(graph, &peer->lengths);
  if (!status && reach.is_strong) {
    peer->degrees = pwi_graph_degrees(graph);
    peer->is_there = true;
  }
  pwi_graph_destroy(graph);
  return status;
}

/* --- results ------------------------------------------------------------------------------------------------------------ */

static double mean_of(const struct optimise_run *run, uint64_t sum) {
  double nodes = run->options.nodes;
  return (double)sum / (nodes * (nodes - 1));
}

static void print_row(const struct optimise_run *run, const char *name, const struct pwi_path_lengths *lengths,
                      const struct pwi_graph_degrees *degrees) {
  uint64_t bound = pwi_optimise_bound(run->options.nodes, run->options.degree);
  printf("%-12s %12" PRIu64 " %8.4f %9" PRIu32 " %6" PRIu32 "..%-6" PRIu32 " %+9.2f %%\n", name, lengths->sum,
         mean_of(run, lengths->sum), lengths->longest, degrees->in_min, degrees->in_max,
         100 * ((double)lengths->sum / (double)bound - 1));
}

static void print_proof(const struct optimise_run *run) {
  const struct pwi_optimised *best = &run->best;
  uint64_t bound = pwi_optimise_bound(run->options.nodes, run->options.degree);
  if (best->is_proven && best->sum == bound)
    printf("proven       no graph has a smaller sum: it is the lower bound\n");
  else if (best->is_proven)
    printf("proven       no graph has a smaller sum: branch and bound covered all, in %" PRIu64 " choices\n",
           best->branches);
  else
    printf("not proven   a smaller sum, down to %" PRIu64 ", has not been ruled out%s\n", best->bound,
           best->is_stopped ? "; the search was stopped" : "");
}

static void print_table(const struct optimise_run *run) {
  struct pwi_graph_degrees degrees = pwi_graph_degrees(run->best.graph);
  const struct pwi_optimise_options *options = &run->options;
  printf("%" PRIu32 " nodes, each sends to %" PRIu32 "%s; seed %" PRIu64 ", %" PRIu64 " steps\n\n", options->nodes,
         options->degree, options->is_balanced ? " and receives from as many" : "", options->seed, run->best.steps);
  printf("%-12s %12s %8s %9s %14s %11s\n", "graph", "sum of paths", "mean", "diameter", "in-degree", "above bound");
  print_row(run, "optimised", &run->lengths, &degrees);
  for (int i = 0; i < PWI_OPTIMISE_STARTS; i++)
    if (run->peers[i].is_there)
      print_row(run, pwi_optimise_start_name((enum pwi_optimise_start)i), &run->peers[i].lengths,
                &run->peers[i].degrees);
  printf("%-12s %12" PRIu64 "\n\n", "lower bound", pwi_optimise_bound(options->nodes, options->degree));
  print_proof(run);
  if (run->has_staleness)
    printf("staleness    a worker lacks at most %" PRIu64 " clocks of any other, if links allow %" PRIu64 "\n",
           pwi_optimise_staleness((uint32_t)run->staleness, run->lengths.longest), run->staleness);
}

static json_t *peers_json(const struct optimise_run *run) {
  json_t *peers = json_object();
  for (int i = 0; peers && i < PWI_OPTIMISE_STARTS; i++) {
    const struct optimise_peer *peer = &run->peers[i];
    if (!peer->is_there) continue;
    json_t *figures = json_pack("{s:I, s:f, s:I, s:I, s:I}", "sum", (json_int_t)peer->lengths.sum, "mean",
                                mean_of(run, peer->lengths.sum), "diameter", (json_int_t)peer->lengths.longest,
                                "in_min", (json_int_t)peer->degrees.in_min, "in_max", (json_int_t)peer->degrees.in_max);
    if (json_object_set_new(peers, pwi_optimise_start_name((enum pwi_optimise_start)i), figures)) {
      json_decref(peers);
      return NULL;
    }
  }
  return peers;
}

static int print_json(const struct optimise_run *run) {
  const struct pwi_optimise_options *options = &run->options;
  const struct pwi_optimised *best = &run->best;
  struct pwi_graph_degrees degrees = pwi_graph_degrees(best->graph);
  json_t *object = json_pack("{s:I, s:I, s:b, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:I, s:I, s:s, s:o}",
                             "nodes", (json_int_t)options->nodes, "degree", (json_int_t)options->degree, "balanced",
                             (int)options->is_balanced, "seed", (json_int_t)options->seed, "sum", (json_int_t)best->sum,
                             "mean", mean_of(run, best->sum), "diameter", (json_int_t)run->lengths.longest, "in_min",
                             (json_int_t)degrees.in_min, "in_max", (json_int_t)degrees.in_max, "lower_bound",
                             (json_int_t)pwi_optimise_bound(options->nodes, options->degree), "proven_bound",
                             (json_int_t)best->bound, "proven", (int)best->is_proven, "stopped", (int)best->is_stopped,
                             "steps", (json_int_t)best->steps, "choices", (json_int_t)best->branches, "start",
                             pwi_optimise_start_name(best->start), "others", peers_json(run));
  if (object && run->has_staleness &&
      json_object_set_new(
          object, "staleness_max",
          json_integer((json_int_t)pwi_optimise_staleness((uint32_t)run->staleness, run->lengths.longest)))) {
    json_decref(object);
    object = NULL;
  }
  return pwi_cli_print_json(run->command, object);
}

static int draw(struct optimise_run *run) {
  struct pwi_graph_report report = {.name = "optimised", .graph = run->best.graph};
  pawl_status status = pwi_graph_report_fill(&report, &run->why);
  if (status) return pwi_cli_failure(run->command, "%s", run->why.text);
  return pwi_graph_draw(run->command, &report, run->svg);
}

static int finish(struct optimise_run *run) {
  int exit_code = PWI_EXIT_OK;
  if (run->json)
    exit_code = print_json(run);
  else
    print_table(run);
  if (exit_code == PWI_EXIT_OK && run->save) exit_code = pwi_graph_save(run->command, run->best.graph, run->save);
  if (exit_code == PWI_EXIT_OK && run->svg) exit_code = draw(run);
  return exit_code;
}

static int run_optimise(const struct pwi_command *command, int argc, char **argv) {
  struct optimise_run run;
  int exit_code;
  if (!begin(&run, command, argc, argv, &exit_code)) return exit_code;
  pawl_status status = search(&run);
  for (int i = 0; !status && i < PWI_OPTIMISE_STARTS; i++) status = compare(&run, (enum pwi_optimise_start)i);
  if (!status)
    exit_code = finish(&run);
  else if (status == PAWL_INVALID)
    exit_code = pwi_cli_usage(command, "%s", run.why.text);
  else
    exit_code = pwi_cli_failure(command, "%s", run.why.text[0] ? run.why.text : pawl_status_text(status));
  pwi_graph_destroy(run.best.graph);
  return exit_code;
}

static const struct pwi_cli_option options[] = {
    {LETTER_NODES, "nodes", "N", "number of nodes, 2 to 2048"},
    {LETTER_DEGREE, "degree", "Q", "nodes that each node sends to (default: 2)"},
    {LETTER_BALANCED, "balanced", NULL, "each node also receives from Q nodes"},
    {LETTER_SEED, "seed", "S", "seed of the search (default: 0)"},
    {LETTER_STEPS, "steps", "T", "steps of the search (default: 20,000,000 / N; 50,000 up to 12 nodes)"},
    {LETTER_SECONDS, "seconds", "T",
     "end the search after T seconds at most; if that ends it, the result depends on the machine"},
    {LETTER_STALENESS, "staleness", "S",
     "also print how many clocks of another a worker may lack if each link allows a staleness of S"},
    {LETTER_SVG, "svg", "FILE", "draw the graph to FILE"},
    {LETTER_SAVE, "save", "FILE", "write the graph to FILE, in the format of 'pawl graph check'"},
    PWI_CLI_JSON,
    {0}};

const struct pwi_command pwi_command_graph_optimise = {
    .name = "graph optimise",
    .summary = "find a graph with short paths between all nodes",
    .text = "Looks for a strongly connected graph in which every node sends to Q others\n"
            "and the sum of the lengths of the shortest paths is small. Up to 12 nodes the\n"
            "sum is proven to be the smallest. The result is never worse than the root\n"
            "graph, the ring or the random graph of this degree. Ctrl-C ends the search,\n"
            "and prints and saves the best graph so far.\n\n"
            "  pawl graph optimise --nodes 12 --save peers.graph\n"
            "  pawl graph optimise --nodes 1000 --degree 4 --steps 100000 --json\n",
    .options = options,
    .run = run_optimise,
};
