/* `pawl-bench sfb`: the command line. */
#include <stdio.h>
#include <string.h>

#include "bench/command/bench.h"
#include "sfb.h"

enum {
  LETTER_FIGURE = 300,
  LETTER_WORKERS,
  LETTER_CLASSES,
  LETTER_FEATURES,
  LETTER_ROWS,
  LETTER_MAGNIFY,
  LETTER_BATCH,
  LETTER_RATE,
  LETTER_TARGET,
  LETTER_ROUNDS,
  LETTER_PAIR_MS,
  LETTER_APPLY,
  LETTER_JITTER,
  LETTER_STALENESS,
  LETTER_GIGABITS,
  LETTER_REPEATS,
  LETTER_SEED,
  LETTER_SVG
};

#define COUNT_MAX 100000000

static const struct {
  const char *name;
  int (*run)(const struct pwi_sfb_plan *plan);
} figures[PWI_SFB_FIGURES] = {
    [PWI_SFB_TIME] = {"time", pwi_sfb_time},    [PWI_SFB_PARTIAL] = {"partial", pwi_sfb_partial},
    [PWI_SFB_REAL] = {"real", pwi_sfb_real},    [PWI_SFB_BYTES] = {"bytes", pwi_sfb_bytes},
    [PWI_SFB_RATE] = {"rate", pwi_sfb_rate},    [PWI_SFB_DISAGREEMENT] = {"disagreement", pwi_sfb_disagreement},
    [PWI_SFB_LARGE] = {"large", pwi_sfb_large},
};

struct sfb_options {
  struct pwi_sfb_plan plan;
  bool has_figure, has_pair;
  double pair_ms, apply; /* apply: share of the time of computing a pair */
  uint32_t rounds, staleness;
};

static bool read_figure(struct sfb_options *options, const char *value) {
  for (int i = 0; i < PWI_SFB_FIGURES; i++) {
    if (strcmp(value, figures[i].name) != 0) continue;
    options->plan.figure = (enum pwi_sfb_figure)i;
    return options->has_figure = true;
  }
  return false;
}

static bool read_count(struct sfb_options *options, int letter, const char *value) {
  struct pwi_sfb_plan *plan = &options->plan;
  switch (letter) {
  case LETTER_WORKERS:
    return pwi_bench_count(value, 2, PWI_SFB_WORKERS_MAX, &plan->workers);
  case LETTER_CLASSES:
    return pwi_bench_count(value, 2, 1000000, &plan->shape.classes);
  case LETTER_FEATURES:
    return pwi_bench_count(value, 1, 100000, &plan->shape.features);
  case LETTER_ROWS:
    return pwi_bench_count(value, 10, COUNT_MAX, &plan->shape.rows);
  case LETTER_BATCH:
    return pwi_bench_count(value, 1, 100000, &plan->setup.batch);
  case LETTER_STALENESS:
    return pwi_bench_count(value, 1, 1000, &options->staleness);
  case LETTER_REPEATS:
    return pwi_bench_count(value, 1, 99, &plan->repeats);
  default:
    return pwi_bench_count(value, 1, COUNT_MAX, &options->rounds);
  }
}

static bool read_option(void *context, int letter, const char *value) {
  struct sfb_options *options = context;
  struct pwi_sfb_setup *setup = &options->plan.setup;
  switch (letter) {
  case LETTER_FIGURE:
    return read_figure(options, value);
  case LETTER_MAGNIFY:
    return pwi_bench_positive(value, 1e6, &setup->magnify) && setup->magnify >= 1;
  case LETTER_RATE:
    return pwi_bench_positive(value, 1e6, &setup->rate);
  case LETTER_TARGET:
    return pwi_bench_positive(value, 1, &options->plan.target);
  case LETTER_PAIR_MS:
    return options->has_pair = pwi_bench_positive(value, 1e6, &options->pair_ms);
  case LETTER_APPLY:
    return pwi_bench_positive(value, 10, &options->apply);
  case LETTER_JITTER:
    return pwi_bench_positive(value, 1, &setup->jitter);
  case LETTER_GIGABITS:
    return pwi_bench_positive(value, 10000, &setup->gigabits);
  case LETTER_SEED:
    return pwi_cli_number(value, &setup->seed);
  case LETTER_SVG:
    options->plan.svg = value;
    return true;
  case PWI_CLI_LETTER_JSON:
    return options->plan.json = true;
  default:
    return read_count(options, letter, value);
  }
}

static void set_default(uint32_t *value, uint32_t by_default) {
  if (*value == 0) *value = by_default;
}

static void set_sizes(struct sfb_options *options) {
  struct pwi_sfb_plan *plan = &options->plan;
  bool is_bytes = plan->figure == PWI_SFB_BYTES, is_real = plan->figure == PWI_SFB_REAL,
       is_large = plan->figure == PWI_SFB_LARGE;
  set_default(&plan->shape.classes, is_large ? 344984 : is_bytes ? 2000 : is_real ? 400 : 325);
  set_default(&plan->shape.features, is_large ? 16 : is_bytes ? 100 : is_real ? 500 : 20);
  set_default(&plan->shape.rows, is_real ? 2000 : 5600);
  set_default(&plan->setup.batch, is_real ? 200 : 100);
  if (!(plan->setup.rate > 0))
    plan->setup.rate = plan->figure == PWI_SFB_TIME ? 2 : plan->figure == PWI_SFB_PARTIAL ? 60 : 20;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct sfb_options options = {.pair_ms = 60,
                                .rounds = 400,
                                .staleness = 5,
                                .plan = {.command = command,
                                         .target = 0.65,
                                         .repeats = 7,
                                         .shape = {.signal = 4},
                                         .setup = {.jitter = 0.1, .gigabits = 10, .magnify = 1000, .seed = 1}}};
  struct pwi_sfb_plan *plan = &options.plan;
  int exit_code;
  if (!pwi_bench_read(command, argc, argv, read_option, &options, &exit_code)) return exit_code;
  if (!options.has_figure)
    return pwi_cli_usage(command, "no figure given; name one with --figure: time, partial, real, bytes, disagreement, "
                                  "large or rate");
  set_sizes(&options);
  plan->setup.row_s = options.pair_ms / 1e3;
  plan->setup.apply_s = plan->setup.row_s * options.apply;
  plan->setup.rounds = options.rounds;
  plan->setup.staleness = plan->figure == PWI_SFB_DISAGREEMENT ? options.staleness : 0;
  plan->shape.seed = plan->setup.seed;
  return figures[plan->figure].run(plan);
}

static const struct pwi_cli_option cli_options[] = {
    PWI_CLI_HEADING("Figure"),
    {LETTER_FIGURE, "figure", "NAME", "time, partial, real, bytes, disagreement, large or rate"},
    {LETTER_WORKERS, "workers", "N", "workers, up to 64 (default: by figure)"},
    {LETTER_SEED, "seed", "N", "seed of rows, delays and graphs (default: 1)"},
    {LETTER_SVG, "svg", "FILE", "time, partial: also draw the figure to this file"},
    PWI_CLI_JSON,
    PWI_CLI_HEADING("Learning"),
    {LETTER_CLASSES, "classes", "N", "classes that are computed (default: 325; bytes: 2000; real: 400; large: 344984)"},
    {LETTER_FEATURES, "features", "N", "features that are computed (default: 20; bytes: 100; real: 500; large: 16)"},
    {LETTER_ROWS, "rows", "N", "rows that are generated (default: 5600; real: 2000)"},
    {LETTER_MAGNIFY, "magnify", "N", "classes, features and bytes stand for so many (default: 1000)"},
    {LETTER_BATCH, "batch", "K", "pairs of a worker's commit; real: of all workers (default: 100; real: 200)"},
    {LETTER_RATE, "rate", "R", "learning rate (default: 20; time: 2; partial: 60)"},
    {LETTER_TARGET, "target", "T", "objective of all workers at the end, as a share of that of W = 0 (default: 0.65)"},
    {LETTER_ROUNDS, "rounds", "N", "commits after which a run without success ends (default: 400)"},
    {LETTER_STALENESS, "staleness", "S", "disagreement: clocks by which workers may differ (default: 5)"},
    PWI_CLI_HEADING("Machines"),
    {LETTER_PAIR_MS, "pair-ms", "T", "ms in which a machine computes a pair (default: 60)"},
    {LETTER_APPLY, "apply", "X", "applying a pair takes so many times as long (default: 0)"},
    {LETTER_JITTER, "jitter", "X", "a step computes up to this share longer, or less long (default: 0.1)"},
    {LETTER_GIGABITS, "gigabits", "G", "Gbit/s of a simulated network card (default: 10)"},
    {LETTER_REPEATS, "repeats", "N", "real, rate: rounds, whose medians are printed (default: 7; real: 1)"},
    {0},
};

const struct pwi_command pwi_command_bench_sfb = {
    .name = "sfb",
    .summary = "measure sufficient factors, as the SFB paper does",
    .text = "Repeats figures of Xie et al., \"Lighter-Communication Distributed Machine\n"
            "Learning via Sufficient Factor Broadcasting\" (2016). Workers train multiclass\n"
            "logistic regression by SGD and send one another pairs of vectors.\n\n"
            "  time          time to the same objective on 28 machines, by factors and by\n"
            "                the whole matrix, and on one machine\n"
            "  partial       12 machines that send to Q others each (figure 9)\n"
            "  real          processes of this machine: objective, seconds, bytes, computing\n"
            "                and waiting, by way and staleness (figures 6 and 8)\n"
            "  bytes         bytes of a step beside the model, for K = 1 to 1000 (figure 4)\n"
            "  disagreement  how far the matrices of workers differ with staleness (theorem 1)\n"
            "  large         a commit of 138 MB between processes of this machine\n"
            "  rate          the library's multiplication beside OpenBLAS\n\n"
            "time, partial, bytes and disagreement are simulated: the roles and the learning\n"
            "are real, network and time are not, and the same seed gives the same figures on\n"
            "any machine. The exit code is 1 if a run did not reach its target.\n\n"
            "  pawl-bench sfb --figure time --svg time.svg\n"
            "  pawl-bench sfb --figure partial --json\n"
            "  pawl-bench sfb --figure rate\n",
    .options = cli_options,
    .run = run,
};
