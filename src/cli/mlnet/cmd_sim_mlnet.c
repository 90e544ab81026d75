/* `pawl sim mlnet`: its options. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cmd_sim.h"
#include "cli/mlnet/mlnet.h"
#include "cli/taking.h"

enum {
  LETTER_FIGURE = 257,
  LETTER_SVG,
  LETTER_PORTS,
  LETTER_RATE,
  LETTER_WORKERS,
  LETTER_SERVERS,
  LETTER_MODELS,
  LETTER_ROUNDS,
  LETTER_BYTES,
  LETTER_INTERVAL,
  LETTER_OVER,
  LETTER_TIER,
  LETTER_ECMP,
  LETTER_AGGREGATION,
  LETTER_CALIBRATE,
  LETTER_GRAIN,
  LETTER_INCAST,
  LETTER_LOSS
};

/* Numbers that were not given are 0, `over` and `grain` -1. */
struct mlnet_choice {
  struct pwi_cli_taking taking;
  struct pwi_mlnet_options options;
  bool has_figure, has_aggregation;
};

static bool take_one_of(struct mlnet_choice *choice, const char *value, const char *first, const char *second,
                        bool *is_second_out) {
  const char *const words[] = {first, second};
  char expected[40];
  int number;
  snprintf(expected, sizeof expected, "%s or %s", first, second);
  if (!pwi_cli_take_word(&choice->taking, value, words, 2, expected, &number)) return false;
  *is_second_out = number == 1;
  return true;
}

static bool take_figure(struct mlnet_choice *choice, const char *value) {
  static const char *const names[] = {"1a", "1b", "2", "3"};
  int figure;
  if (!pwi_cli_take_word(&choice->taking, value, names, 4, "1a, 1b, 2 or 3", &figure)) return false;
  choice->options.figure = (enum pwi_mlnet_figure)figure;
  return choice->has_figure = true;
}

static bool take_network(struct mlnet_choice *choice, int letter, const char *value) {
  struct pwi_mlnet_options *options = &choice->options;
  struct pwi_cli_taking *taking = &choice->taking;
  switch (letter) {
  case LETTER_PORTS:
    if (!pwi_cli_take_number32(taking, value, 2, 64, &options->ports)) return false;
    return options->ports % 2 == 0 || pwi_cli_take_none(taking, value, "an even number");
  case LETTER_RATE:
    return pwi_cli_take_real(taking, value, 0.001, 10000, 1e9 / 8, &options->rate);
  case LETTER_OVER:
    return pwi_cli_take_real(taking, value, 1, 1000, 1, &options->over);
  case LETTER_TIER:
    return pwi_fabric_tier_find(value, &options->tier) || pwi_cli_take_none(taking, value, "hosts, racks or core");
  case LETTER_ECMP:
    return take_one_of(choice, value, "hash", "even", &options->even);
  case LETTER_GRAIN:
    return pwi_cli_take_real(taking, value, 0, 1000, 1, &options->grain);
  case LETTER_INCAST:
    return pwi_cli_take_number32(taking, value, 0, UINT32_MAX, &options->incast_flows);
  default:
    return pwi_cli_take_real(taking, value, 0, 1, 1, &options->incast_loss);
  }
}

static bool take_training(struct mlnet_choice *choice, int letter, const char *value) {
  struct pwi_mlnet_options *options = &choice->options;
  struct pwi_cli_taking *taking = &choice->taking;
  switch (letter) {
  case LETTER_WORKERS:
    return pwi_cli_take_number32(taking, value, 1, PWI_FABRIC_HOSTS_MAX, &options->workers);
  case LETTER_SERVERS:
    return pwi_cli_take_numbers(taking, value, 1, PWI_TRAINING_SERVERS_MAX, options->sizes, PWI_MLNET_SIZES,
                                &options->size_count);
  case LETTER_MODELS:
    return pwi_cli_take_number32(taking, value, 1, PWI_FLOW_CLASSES, &options->jobs);
  case LETTER_ROUNDS:
    return pwi_cli_take_number32(taking, value, 1, 1000, &options->rounds);
  case LETTER_BYTES:
    return pwi_cli_take_real(taking, value, 1e-6, 1e6, 1e9, &options->bytes);
  case LETTER_INTERVAL:
    return pwi_cli_take_real(taking, value, 0.001, 1e6, 1, &options->interval);
  case LETTER_AGGREGATION:
    choice->has_aggregation = true;
    return take_one_of(choice, value, "stream", "message", &options->by_message);
  default:
    return take_one_of(choice, value, "rotated", "fixed", &options->calibrates_fixed);
  }
}

static bool take_option(struct mlnet_choice *choice, int letter, const char *value) {
  switch (letter) {
  case LETTER_FIGURE:
    return take_figure(choice, value);
  case LETTER_SVG:
    choice->options.svg = value;
    return true;
  case PWI_CLI_LETTER_JSON:
    choice->options.json = true;
    return true;
  case 's':
    return pwi_cli_number(value, &choice->options.seed) || pwi_cli_take_none(&choice->taking, value, "a whole number");
  case LETTER_PORTS:
  case LETTER_RATE:
  case LETTER_OVER:
  case LETTER_TIER:
  case LETTER_ECMP:
  case LETTER_GRAIN:
  case LETTER_INCAST:
  case LETTER_LOSS:
    return take_network(choice, letter, value);
  default:
    return take_training(choice, letter, value);
  }
}

/* What the paper uses where nothing was given. */
static void complete(struct mlnet_choice *choice) {
  static const uint32_t sizes[] = {50, 100, 200, 300, 400};
  struct pwi_mlnet_options *options = &choice->options;
  bool has_jobs = options->figure == PWI_MLNET_3;
  if (!choice->has_aggregation) options->by_message = has_jobs; /* a stream stops with the slowest of its links */
  if (!options->workers) options->workers = has_jobs ? 200 : 800;
  if (options->over < 0) options->over = options->figure == PWI_MLNET_1B ? 4 : 1;
  if (options->size_count) return;
  options->size_count = 1;
  options->sizes[0] = has_jobs ? 50 : 200;
  if (options->figure == PWI_MLNET_2 || has_jobs) return;
  memcpy(options->sizes, sizes, sizeof sizes);
  options->size_count = sizeof sizes / sizeof *sizes;
}

static int run_mlnet(const struct pwi_command *command, int argc, char **argv) {
  struct mlnet_choice choice = {.taking = {.command = command},
                                .options = {.ports = 16,
                                            .rate = 1.25e9,
                                            .jobs = 20,
                                            .rounds = 3,
                                            .interval = 30,
                                            .over = -1,
                                            .grain = -1,
                                            .incast_loss = 0.5,
                                            .tier = PWI_FABRIC_RACKS,
                                            .seed = 1}};
  struct pwi_cli_args args;
  int letter;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0)
    if (!take_option(&choice, letter, args.value)) return choice.taking.exit_code;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 0)) return args.exit_code;
  if (!choice.has_figure) return pwi_cli_usage(command, "--figure is needed: 1a, 1b, 2 or 3");
  complete(&choice);
  uint64_t half = choice.options.ports / 2, hosts = half * half * choice.options.ports;
  if (choice.options.workers > hosts)
    return pwi_cli_usage(command, "%u workers do not fit on the %" PRIu64 " hosts of a fat tree of %u-port switches",
                         choice.options.workers, hosts, choice.options.ports);
  return pwi_mlnet_run(command, &choice.options);
}

static const struct pwi_cli_option options[] = {
    PWI_CLI_HEADING("The figure"),
    {LETTER_FIGURE, "figure", "NAME", "1a, 1b, 2 or 3"},
    {LETTER_SVG, "svg", "FILE", "draw it into this file as well"},
    PWI_CLI_JSON,
    PWI_CLI_HEADING("Training"),
    {LETTER_WORKERS, "workers", "N", "workers, of each model (default: 800; figure 3: 200)"},
    {LETTER_SERVERS, "servers", "LIST",
     "numbers of servers (default: 50,100,200,300,400; figure 2: 200; figure 3: 50); figures 2 and 3 use the first"},
    {LETTER_MODELS, "models", "N", "models that are trained at the same time in figure 3 (default: 20)"},
    {LETTER_ROUNDS, "rounds", "N", "rounds of each model in figure 3 (default: 3)"},
    {LETTER_INTERVAL, "interval", "SECONDS", "seconds of computing in a round (default: 30)"},
    {LETTER_BYTES, "bytes", "GB", "size of a worker's push, over all servers (default: calibrated)"},
    {LETTER_CALIBRATE, "calibrate", "WORD",
     "aggregators of the binary trees that take 22 % of the baseline: rotated or fixed (default: rotated)"},
    {LETTER_AGGREGATION, "aggregation", "WORD",
     "stream: aggregators pass on bytes as they arrive; message: whole messages (default: stream; figure 3: message)"},
    PWI_CLI_HEADING("The network"),
    {LETTER_PORTS, "ports", "N", "ports of a switch of the fat tree, even, 2 to 64 (default: 16)"},
    {LETTER_RATE, "rate", "GBIT/S", "rate of a link (default: 10)"},
    {LETTER_OVER, "over", "RATIO", "over-subscription (default: 1; figure 1b: 4)"},
    {LETTER_TIER, "tier", "NAME", "where it is: hosts, racks (their uplinks) or core (default: racks)"},
    {LETTER_ECMP, "ecmp", "WORD", "hash: each flow keeps one path; even: all paths share it (default: hash)"},
    {LETTER_INCAST, "incast", "N", "a host's link that more than N flows enter loses capacity (default: 0: never)"},
    {LETTER_LOSS, "loss", "PART", "the part that it loses to very many flows (default: 0.5)"},
    {LETTER_GRAIN, "grain", "SECONDS", "arrivals happen at multiples of this (default: chosen; 0: exactly)"},
    {'s', "seed", "NUMBER", "draws the hosts of workers and servers, and priorities (default: 1)"},
    {0},
};

const struct pwi_command pwi_command_sim_mlnet = {
    .name = "sim mlnet",
    .summary = "predict MLNet's figures on a simulated data centre",
    .text = "Simulates the flows of training with parameter servers on a fat tree of 10\n"
            "Gbit/s links: each worker sends to each server (baseline), or relays aggregate\n"
            "pushes and multicast pulls, in each rack, on binary trees, or on trees that\n"
            "stay within racks where they can (near). Prints the figures of the MLNet paper\n"
            "(2015). The paper does not say how large a push is: by default it is chosen so\n"
            "that binary trees take 22 % of the baseline's time with 50 servers.\n",
    .options = options,
    .run = run_mlnet,
};
