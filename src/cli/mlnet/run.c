/* Runs MLNet's figures, and prints tables, JSON and pictures.
 *
 * The paper does not give the bytes of a push. Training takes `rounds * (interval + communication)`, and
 * communication is proportional to the bytes, so one published point determines them: with 50 servers and without
 * over-subscription, training with binary trees takes 22 % of the baseline's time (figure 1a). All other numbers are
 * predictions. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "cli/mlnet/mlnet.h"

/* Section 4: 141 TB for 800 workers that process 100 to 200 MB/s. The slowest one decides how many rounds there are. */
#define DATA_BYTES 141e12
#define DATA_WORKERS 800
#define DATA_RATE 100e6

#define POINT_SERVERS 50
#define POINT_WORKERS 800
#define POINT_PORTS 16
#define POINT_RATIO 0.22
#define LATENCY_NS 1000 /* of a link and its switch */
#define GRAINS 100      /* in the time that a worker's link needs for one push */
#define GRAINS_JOBS 4   /* the same in figure 3 if more than MANY_FLOWS share links */
#define MANY_FLOWS 20000

struct figure {
  const struct pwi_command *command;
  struct pwi_mlnet_options *options;
  const struct pwi_mlnet_setup *setups;
  size_t setup_count;
  struct pwi_mlnet_line *lines;
  bool shows;
};

static const struct pwi_mlnet_setup trees[] = {
    {"baseline", PWI_TREE_NONE, false, false},         {"rack, fixed", PWI_TREE_RACK, false, false},
    {"rack, rotated", PWI_TREE_RACK, true, false},     {"binary, fixed", PWI_TREE_DEGREE, false, false},
    {"binary, rotated", PWI_TREE_DEGREE, true, false}, {"near, rotated", PWI_TREE_NEAR, true, false},
};

static const struct pwi_mlnet_setup priorities[] = {
    {"baseline", PWI_TREE_NONE, false, false},         {"priorities", PWI_TREE_NONE, false, true},
    {"rack, fixed", PWI_TREE_RACK, false, false},      {"both", PWI_TREE_RACK, false, true},
    {"rack, rotated", PWI_TREE_RACK, true, false},     {"both", PWI_TREE_RACK, true, true},
    {"binary, fixed", PWI_TREE_DEGREE, false, false},  {"both", PWI_TREE_DEGREE, false, true},
    {"binary, rotated", PWI_TREE_DEGREE, true, false}, {"both", PWI_TREE_DEGREE, true, true},
};

static int rounds_of_data(const struct pwi_mlnet_options *options) {
  return (int)ceil(DATA_BYTES / DATA_WORKERS / DATA_RATE / options->interval);
}

/* --- one run -------------------------------------------------------------------------------------------- */

static struct pwi_training_job job_of(const struct pwi_mlnet_options *options, const struct pwi_mlnet_setup *setup,
                                      uint32_t workers, uint32_t servers, double bytes) {
  return (struct pwi_training_job){.workers = workers,
                                   .servers = servers,
                                   .bytes = bytes,
                                   .tree = setup->tree,
                                   .degree = 2,
                                   .rotates = setup->rotates,
                                   .streams = !options->by_message,
                                   .rounds = 1};
}

static struct pwi_training_config config_of(const struct pwi_mlnet_options *options, double bytes, int grains) {
  struct pwi_training_config config = {.seed = options->seed,
                                       .latency_ns = LATENCY_NS,
                                       .incast_flows = options->incast_flows,
                                       .incast_loss = options->incast_loss};
  double grain = options->grain >= 0 ? options->grain : bytes / options->rate / grains;
  config.grain_ns = (int64_t)(grain * 1e9);
  pwi_fabric_fat_tree(options->ports, options->rate, &config.shape);
  config.shape.even = options->even;
  config.shape.over[options->tier] = options->over;
  return config;
}

/* One round of one job without computing: seconds. The bytes of links are returned if `bytes_out` is not NULL. */
static pawl_status communicate(const struct pwi_mlnet_options *options, const struct pwi_mlnet_setup *setup,
                               uint32_t servers, double bytes, double *seconds_out, double **bytes_out) {
  struct pwi_training_job job = job_of(options, setup, options->workers, servers, bytes);
  struct pwi_training_config config = config_of(options, bytes, GRAINS);
  struct pwi_training_result result;
  config.jobs = &job;
  config.job_count = 1;
  pawl_status status = pwi_training_run(&config, &result);
  if (status) return status;
  *seconds_out = (double)result.ends[0] * 1e-9;
  if (bytes_out)
    *bytes_out = result.link_bytes;
  else
    pwi_free(result.link_bytes);
  return PAWL_OK;
}

static int refuse(const struct figure *figure, const struct pwi_mlnet_setup *setup, uint32_t servers,
                  pawl_status status) {
  return pwi_cli_failure(figure->command, "%s with %u servers: %s", setup->name, servers, pawl_status_text(status));
}

static void show_step(const struct figure *figure, const char *name, uint32_t servers) {
  if (figure->shows) fprintf(stderr, "\r\033[K  %s, %u servers", name, servers);
}

static void end_steps(const struct figure *figure) {
  if (figure->shows) fprintf(stderr, "\r\033[K");
}

/* --- the calibrated point ------------------------------------------------------------------------------- */

/* Solves (interval + b x) = ratio * (interval + a x) for the bytes x, where a and b are seconds for each byte. */
static int calibrate(const struct figure *figure) {
  struct pwi_mlnet_options point = *figure->options;
  double base, binary, try = 1e9;
  if (figure->options->bytes > 0) return PWI_EXIT_OK;
  point.ports = POINT_PORTS;
  point.workers = POINT_WORKERS;
  point.over = 1;
  point.grain = -1; /* that of the figure need not suit the size that is tried */
  const struct pwi_mlnet_setup *tree = &trees[point.calibrates_fixed ? 3 : 4];
  show_step(figure, "calibrating", POINT_SERVERS);
  pawl_status status = communicate(&point, &trees[0], POINT_SERVERS, try, &base, NULL);
  if (!status) status = communicate(&point, tree, POINT_SERVERS, try, &binary, NULL);
  end_steps(figure);
  if (status) return refuse(figure, tree, POINT_SERVERS, status);
  double gain = POINT_RATIO * base - binary;
  if (gain <= 0)
    return pwi_cli_failure(
        figure->command,
        "no size of a push gives %.0f %% with '%s': it communicates %.0f %% as long as the baseline; "
        "calibrate another way, or give --bytes",
        100 * POINT_RATIO, tree->name, 100 * binary / base);
  figure->options->bytes = try * point.interval * (1 - POINT_RATIO) / gain;
  return PWI_EXIT_OK;
}

static void print_head(const struct figure *figure, const char *title) {
  const struct pwi_mlnet_options *options = figure->options;
  struct pwi_fabric_shape shape;
  pwi_fabric_fat_tree(options->ports, options->rate, &shape);
  if (options->json) return;
  printf("  %s\n  fat tree of %u hosts in %u racks, %.3g Gbit/s, ECMP %s, %.4g:1 over-subscribed (%s); %u workers%s\n"
         "  %.2f GB a push, aggregated by %s\n\n",
         title, pwi_fabric_hosts(&shape), pwi_fabric_racks(&shape), options->rate * 8e-9,
         options->even ? "even" : "by hash", options->over, pwi_fabric_tier_name(options->tier), options->workers,
         options->figure == PWI_MLNET_3 ? " a job" : "", options->bytes * 1e-9,
         options->by_message ? "message" : "stream");
}

static int save(const struct figure *figure, const char *title, const char *x, const char *y) {
  struct pwi_mlnet_chart chart = {title, x, y, figure->lines, figure->setup_count};
  if (!figure->options->svg) return PWI_EXIT_OK;
  int problem = pwi_mlnet_draw(figure->options->svg, &chart);
  if (!problem) return PWI_EXIT_OK;
  return pwi_cli_failure(figure->command, "cannot write %s: %s", figure->options->svg, strerror(problem));
}

/* --- figure 1 ------------------------------------------------------------------------------------------- */

static int show_size(const struct figure *figure, size_t size, const double *seconds) {
  const struct pwi_mlnet_options *options = figure->options;
  uint32_t servers = options->sizes[size];
  int exit_code = PWI_EXIT_OK;
  for (size_t i = 0; i < figure->setup_count && !exit_code; i++) {
    double hours = rounds_of_data(options) * (options->interval + seconds[i]) / 3600;
    double ratio = (options->interval + seconds[i]) / (options->interval + seconds[0]);
    figure->lines[i].name = figure->setups[i].name;
    figure->lines[i].x[size] = servers;
    figure->lines[i].y[size] = hours;
    figure->lines[i].count = size + 1;
    if (!options->json)
      printf("  %7u  %-16s %10.2f %10.2f %8.1f %%\n", servers, figure->setups[i].name, seconds[i], hours, 100 * ratio);
    else
      exit_code = pwi_cli_print_json(
          figure->command,
          json_pack("{s:s, s:s, s:i, s:i, s:s, s:f, s:f, s:f, s:f, s:f}", "sim", "mlnet", "figure",
                    options->figure == PWI_MLNET_1A ? "1a" : "1b", "workers", (int)options->workers, "servers",
                    (int)servers, "setup", figure->setups[i].name, "push_bytes", options->bytes, "over", options->over,
                    "communication_s", seconds[i], "makespan_s", hours * 3600, "of_baseline", ratio));
  }
  return exit_code;
}

static int run_sizes(const struct figure *figure) {
  const struct pwi_mlnet_options *options = figure->options;
  const char *title = options->figure == PWI_MLNET_1A ? "MLNet, figure 1a: makespan by the number of servers"
                                                      : "MLNet, figure 1b: makespan, over-subscribed";
  print_head(figure, title);
  if (!options->json) printf("  servers  setup            seconds a round     hours  of baseline\n");
  for (size_t size = 0; size < options->size_count; size++) {
    double seconds[PWI_MLNET_SETUPS];
    for (size_t i = 0; i < figure->setup_count; i++) {
      show_step(figure, figure->setups[i].name, options->sizes[size]);
      pawl_status status =
          communicate(options, &figure->setups[i], options->sizes[size], options->bytes, &seconds[i], NULL);
      end_steps(figure);
      if (status) return refuse(figure, &figure->setups[i], options->sizes[size], status);
    }
    int exit_code = show_size(figure, size, seconds);
    if (exit_code) return exit_code;
  }
  return save(figure, title, "parameter servers", "hours");
}

/* --- figure 2 ------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double quantile(const double *sorted, size_t count, double part) {
  size_t at = (size_t)ceil(part * (double)count);
  return sorted[at ? at - 1 : 0];
}

static void keep_distribution(struct pwi_mlnet_line *line, const char *name, const double *sorted, size_t count,
                              double unit) {
  size_t points = count < PWI_MLNET_POINTS ? count : PWI_MLNET_POINTS;
  line->name = name;
  line->count = points;
  for (size_t i = 0; i < points; i++) {
    size_t at = points == 1 ? 0 : i * (count - 1) / (points - 1);
    line->x[i] = sorted[at] * unit;
    line->y[i] = (double)(at + 1) / (double)count;
  }
}

static int show_links(const struct figure *figure, size_t index, double *bytes, size_t count) {
  const struct pwi_mlnet_options *options = figure->options;
  const char *name = figure->setups[index].name;
  double sum = 0;
  qsort(bytes, count, sizeof *bytes, ascending);
  for (size_t i = 0; i < count; i++) sum += bytes[i];
  keep_distribution(&figure->lines[index], name, bytes, count, 1e-9);
  double q[] = {quantile(bytes, count, 0.1), quantile(bytes, count, 0.5), quantile(bytes, count, 0.9),
                quantile(bytes, count, 0.99), bytes[count - 1]};
  if (options->json)
    return pwi_cli_print_json(
        figure->command, json_pack("{s:s, s:s, s:i, s:i, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "sim", "mlnet",
                                   "figure", "2", "workers", (int)options->workers, "servers", (int)options->sizes[0],
                                   "setup", name, "push_bytes", options->bytes, "mean", sum / (double)count, "p10",
                                   q[0], "p50", q[1], "p90", q[2], "p99", q[3], "most", q[4]));
  printf("  %-16s %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f\n", name, q[0] * 1e-9, q[1] * 1e-9, q[2] * 1e-9, q[3] * 1e-9,
         q[4] * 1e-9, sum / (double)count * 1e-9);
  return PWI_EXIT_OK;
}

static int run_links(const struct figure *figure) {
  const struct pwi_mlnet_options *options = figure->options;
  const char *title = "MLNet, figure 2: traffic of links";
  print_head(figure, title);
  if (!options->json) {
    printf("  GB that a link carries in one round, push and pull, with %u servers\n", options->sizes[0]);
    printf("  setup                 p10      p50      p90      p99     most     mean\n");
  }
  for (size_t i = 0; i < figure->setup_count; i++) {
    double seconds, *bytes;
    show_step(figure, figure->setups[i].name, options->sizes[0]);
    pawl_status status = communicate(options, &figure->setups[i], options->sizes[0], options->bytes, &seconds, &bytes);
    end_steps(figure);
    if (status) return refuse(figure, &figure->setups[i], options->sizes[0], status);
    struct pwi_training_config config = config_of(options, options->bytes, GRAINS);
    int exit_code = show_links(figure, i, bytes, pwi_fabric_links(&config.shape));
    pwi_free(bytes);
    if (exit_code) return exit_code;
  }
  return save(figure, title, "GB in one round", "part of all links");
}

/* --- figure 3 ------------------------------------------------------------------------------------------- */

static pawl_status train_jobs(const struct figure *figure, const struct pwi_mlnet_setup *setup, double *ends) {
  const struct pwi_mlnet_options *options = figure->options;
  struct pwi_training_job jobs[PWI_TRAINING_JOBS_MAX];
  uint32_t classes[PWI_TRAINING_JOBS_MAX];
  bool is_stream = setup->tree != PWI_TREE_NONE && !options->by_message;
  uint64_t flows = (uint64_t)options->jobs * options->sizes[0] * (is_stream ? 1 : options->workers);
  struct pwi_training_config config = config_of(options, options->bytes, flows > MANY_FLOWS ? GRAINS_JOBS : GRAINS);
  struct pwi_training_result result;
  struct pwi_random random;
  pwi_random_init(&random, options->seed, PWI_TRAINING_JOBS_MAX); /* a stream that no job uses */
  for (uint32_t i = 0; i < options->jobs; i++) classes[i] = i;
  if (options->jobs > 1) pwi_random_shuffle(&random, classes, options->jobs, sizeof *classes);
  for (uint32_t i = 0; i < options->jobs; i++) {
    jobs[i] = job_of(options, setup, options->workers, options->sizes[0], options->bytes);
    jobs[i].class = setup->has_priorities ? classes[i] : 0;
    jobs[i].compute_ns = (int64_t)(options->interval * 1e9);
    jobs[i].rounds = options->rounds;
  }
  config.jobs = jobs;
  config.job_count = options->jobs;
  pawl_status status = pwi_training_run(&config, &result);
  if (status) return status;
  for (uint32_t i = 0; i < options->jobs; i++) ends[i] = (double)result.ends[i] * 1e-9;
  pwi_free(result.link_bytes);
  return PAWL_OK;
}

struct spread {
  double median, p95, most;
};

/* A row: the quantiles, and by how much they differ from the baseline's; `without` is the same without priorities. */
static int show_jobs(const struct figure *figure, size_t index, const struct spread *spreads) {
  const struct pwi_mlnet_setup *setup = &figure->setups[index];
  const struct spread *is = &spreads[index], *base = &spreads[0];
  const struct spread *without = setup->has_priorities ? &spreads[index - 1] : is;
  double change = is->median / base->median - 1, tail = is->p95 / base->p95 - 1,
         against = is->median / without->median - 1, worst = is->most / base->most - 1;
  char name[48];
  snprintf(name, sizeof name, "%s%s", setup->has_priorities && index > 1 ? figure->setups[index - 1].name : setup->name,
           setup->has_priorities && index > 1 ? " + prio." : "");
  if (figure->options->json)
    return pwi_cli_print_json(figure->command,
                              json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
                                        "sim", "mlnet", "figure", "3", "jobs", (int)figure->options->jobs, "workers",
                                        (int)figure->options->workers, "servers", (int)figure->options->sizes[0],
                                        "rounds", (int)figure->options->rounds, "setup", name, "push_bytes",
                                        figure->options->bytes, "median_s", is->median, "p95_s", is->p95, "most_s",
                                        is->most, "median_change", change, "p95_change", tail, "most_change", worst,
                                        "median_change_by_priorities", against));
  printf("  %-24s %8.0f %8.0f %8.0f %+8.1f %% %+8.1f %% %+8.1f %%", name, is->median, is->p95, is->most, 100 * change,
         100 * tail, 100 * worst);
  if (setup->has_priorities && index > 1) printf(" %+8.1f %%", 100 * against);
  printf("\n");
  return PWI_EXIT_OK;
}

static int run_jobs(const struct figure *figure) {
  const struct pwi_mlnet_options *options = figure->options;
  const char *title = "MLNet, figure 3: makespans of concurrent jobs";
  struct spread spreads[PWI_MLNET_SETUPS];
  print_head(figure, title);
  if (!options->json) {
    printf("  %u jobs of %u workers and %u servers, %u rounds; seconds, and the change from the baseline\n",
           options->jobs, options->workers, options->sizes[0], options->rounds);
    printf("  setup                      median      p95     most     median        p95       most  by priorities\n");
  }
  for (size_t i = 0; i < figure->setup_count; i++) {
    double ends[PWI_TRAINING_JOBS_MAX];
    show_step(figure, figure->setups[i].name, options->sizes[0]);
    pawl_status status = train_jobs(figure, &figure->setups[i], ends);
    end_steps(figure);
    if (status) return refuse(figure, &figure->setups[i], options->sizes[0], status);
    qsort(ends, options->jobs, sizeof *ends, ascending);
    keep_distribution(&figure->lines[i], figure->setups[i].name, ends, options->jobs, 1);
    spreads[i] = (struct spread){quantile(ends, options->jobs, 0.5), quantile(ends, options->jobs, 0.95),
                                 ends[options->jobs - 1]};
    int exit_code = show_jobs(figure, i, spreads);
    if (exit_code) return exit_code;
    fflush(stdout);
  }
  return save(figure, title, "seconds", "part of all jobs");
}

int pwi_mlnet_run(const struct pwi_command *command, struct pwi_mlnet_options *options) {
  bool has_jobs = options->figure == PWI_MLNET_3;
  struct figure figure = {.command = command,
                          .options = options,
                          .setups = has_jobs ? priorities : trees,
                          .setup_count =
                              has_jobs ? sizeof priorities / sizeof *priorities : sizeof trees / sizeof *trees,
                          .shows = isatty(STDERR_FILENO) == 1};
  int exit_code = calibrate(&figure);
  if (exit_code) return exit_code;
  figure.lines = pwi_alloc_zero(figure.setup_count, sizeof *figure.lines);
  if (!figure.lines) return pwi_cli_failure(command, "%s", pawl_status_text(PAWL_NO_MEMORY));
  if (has_jobs)
    exit_code = run_jobs(&figure);
  else
    exit_code = options->figure == PWI_MLNET_2 ? run_links(&figure) : run_sizes(&figure);
  pwi_free(figure.lines);
  return exit_code;
}
