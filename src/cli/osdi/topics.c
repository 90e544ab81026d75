/* Figure 14 of OSDI'14: how much faster topic models converge on more machines. Flows alone (sim/fabric/flows.h).
 *
 * A worker has its share of the users. In a sweep it samples a topic for each token, and for that it pulls the row of
 * each word that occurs in its share once, and pushes the row's changes. It goes through its words in slices: while it
 * samples one, the next is pulled and the one before is pushed. Nobody waits for other workers. The more workers there
 * are, the fewer tokens each has, but the number of its distinct words falls more slowly (Zipf's law): this is what
 * keeps more machines from being faster in proportion.
 *
 * All workers send equally much to all servers, so the links of the servers carry the same, and are one link here with
 * their summed capacity. Workers differ in their speed alone, so SAMPLE of them stand for all, with their part of that
 * link. The log-likelihood of a worker's tokens follows from its sweeps by a curve that was measured
 * with `pawl train lda`; the model knows no loss by stale rows.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "cli/mlnet/mlnet.h"
#include "cli/osdi/osdi.h"

#define SAMPLE 300 /* workers that are simulated at most */
#define SLICES 4   /* of a sweep */
#define SWEEPS 10  /* of the slower of computing and sending, in one run */
#define GRAINS 100 /* in the time of a slice */
#define POINT_FROM 1000
#define POINT_TO 6000
#define POINT_SPEEDUP 4.0
#define TRIES 12
#define NS 1e9

/* docs/performance.md, "Figure 14 of OSDI'14": ldalike, 100 topics, both workers. */
static const struct {
  double sweep, log_likelihood;
} curve[] = {{10, -10.914}, {20, -10.365}, {50, -9.262}, {100, -8.206}, {200, -7.816}, {500, -7.678}, {1000, -7.658}};

#define CURVE (sizeof curve / sizeof *curve)
#define GOAL (-7.70) /* 99 % of the rise */

struct topic_worker {
  double speed; /* relative to the mean */
  uint64_t computed, pulled, pushed, early;
  bool computes;
};

struct model {
  const struct pwi_osdi_options *options;
  uint32_t count, servers; /* count: of the sample */
  double part;             /* of all workers, in the sample */
  double rate;             /* tokens a second of a machine */
  double bytes;            /* of a slice, in each direction */
  double compute;          /* seconds of a slice of a worker of mean speed */
  double sending;          /* seconds that the servers' links need for a slice of all workers, in one direction */
  struct topic_worker *workers;
  struct pwi_flows *flows;
  double *sweeps; /* a second, by worker */
};

enum topic_event { EVENT_COMPUTED, EVENT_PULLED, EVENT_PUSHED };

/* --- the law of words ----------------------------------------------------------------------------------- */

/* How many of `words` occur among so many tokens, if word r has a probability proportional to 1 / r. */
static double distinct(double words, double tokens) {
  double sum = log(words) + 0.5772, found = 0;
  for (double r = 1; r <= words;) {
    double next = fmin(fmax(r + 1, floor(r * 1.005)), words + 1), middle = (r + next - 1) / 2;
    found += (next - r) * -expm1(-tokens / (middle * sum));
    r = next;
  }
  return found;
}

/* 200 servers of 1,000 machines, and 1,000 of 6,000, as in the paper; between them by a line. */
static uint32_t servers_of(uint32_t machines) {
  double servers = machines <= POINT_FROM ? 0.2 * machines : 200 + (machines - 1000) * 0.16;
  return servers < 1 ? 1 : (uint32_t)servers;
}

/* --- a worker ------------------------------------------------------------------------------------------- */

static pawl_status begin(struct model *model, uint32_t index, enum topic_event event, uint32_t first, uint32_t second) {
  struct pwi_flow_hop hops[2] = {{first, 1}, {second, 1}};
  struct pwi_flow_id id;
  struct pwi_flow_spec spec = {.cookie = (uint64_t)index << 8 | event};
  if (event == EVENT_COMPUTED) {
    spec.latency_ns = (int64_t)(model->compute / model->workers[index].speed * NS) + 1;
  } else {
    spec.hops = hops;
    spec.hop_count = 2;
    spec.bytes = model->bytes;
  }
  return pwi_flow_begin(model->flows, &spec, &id);
}

static pawl_status pull(struct model *model, uint32_t index) {
  return begin(model, index, EVENT_PULLED, 2 * model->count, model->count + index);
}

static pawl_status push(struct model *model, uint32_t index) {
  return begin(model, index, EVENT_PUSHED, index, 2 * model->count + 1);
}

/* Computes the next slice if its rows are there and the slice before the last was pushed. */
static pawl_status look(struct model *model, uint32_t index) {
  struct topic_worker *worker = &model->workers[index];
  if (worker->computes || worker->pulled <= worker->computed || worker->computed > worker->pushed + 1) return PAWL_OK;
  worker->computes = true;
  pawl_status status = begin(model, index, EVENT_COMPUTED, 0, 0);
  return status ? status : pull(model, index);
}

static pawl_status happen(struct model *model, uint64_t cookie) {
  uint32_t index = (uint32_t)(cookie >> 8);
  struct topic_worker *worker = &model->workers[index];
  pawl_status status = PAWL_OK;
  switch ((enum topic_event)(cookie & 0xff)) {
  case EVENT_COMPUTED:
    worker->computes = false;
    worker->computed++;
    status = push(model, index);
    break;
  case EVENT_PULLED:
    worker->pulled++;
    break;
  case EVENT_PUSHED:
    worker->pushed++;
    break;
  }
  return status ? status : look(model, index);
}

/* --- a run ---------------------------------------------------------------------------------------------- */

static pawl_status open_flows(struct model *model) {
  double link = model->options->gigabits * 1e9 / 8;
  size_t count = 2 * (size_t)model->count + 2;
  struct pwi_flow_link *links = pwi_alloc_zero(count, sizeof *links);
  if (!links) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < count; i++)
    links[i].capacity = i < 2 * (size_t)model->count ? link : link * model->servers * model->part;
  struct pwi_flows_config config = {.links = links,
                                    .link_count = count,
                                    .grain_ns = (int64_t)(fmax(model->compute, model->sending) / GRAINS * NS) + 1};
  pawl_status status = pwi_flows_create(&config, &model->flows);
  pwi_free(links);
  return status;
}

/* Workers begin at any time of their first slice, as they do in a cluster that has run for a while. */
static pawl_status start(struct model *model) {
  struct pwi_random random;
  pwi_random_init(&random, model->options->seed, 14);
  for (uint32_t i = 0; i < model->count; i++) {
    model->workers[i].speed = (1 + pwi_random_unit(&random)) / 1.5;
    pawl_status status = pull(model, i);
    if (status) return status;
  }
  return PAWL_OK;
}

static pawl_status simulate(struct model *model) {
  double slice = fmax(model->compute, model->sending);
  int64_t warm = (int64_t)(slice * 3 * SLICES * NS), end = (int64_t)(slice * (3 + SWEEPS) * SLICES * NS);
  uint64_t cookie;
  pawl_status status = start(model);
  while (!status && pwi_flows_take(model->flows, warm, &cookie)) status = happen(model, cookie);
  for (uint32_t i = 0; i < model->count; i++) model->workers[i].early = model->workers[i].computed;
  while (!status && pwi_flows_take(model->flows, end, &cookie)) status = happen(model, cookie);
  double seconds = (double)(end - warm) / NS;
  for (uint32_t i = 0; i < model->count; i++)
    model->sweeps[i] = (double)(model->workers[i].computed - model->workers[i].early) / SLICES / seconds;
  return status;
}

static void close_model(struct model *model) {
  pwi_flows_destroy(model->flows);
  pwi_free(model->workers);
  pwi_free(model->sweeps);
}

/* Call close_model in any case. */
static pawl_status run(struct model *model, const struct pwi_osdi_options *options, uint32_t machines, double rate) {
  uint32_t servers = servers_of(machines), all = machines - servers, count = all < SAMPLE ? all : SAMPLE;
  double tokens = options->users * options->tokens / all;
  *model =
      (struct model){.options = options, .count = count, .servers = servers, .part = (double)count / all, .rate = rate};
  model->bytes = distinct(options->words, tokens) * options->row_bytes / SLICES;
  model->compute = tokens / rate / SLICES;
  model->sending = model->bytes * all / (options->gigabits * 1e9 / 8 * servers);
  model->workers = pwi_alloc_zero(count, sizeof *model->workers);
  model->sweeps = pwi_alloc_zero(count, sizeof *model->sweeps);
  pawl_status status = model->workers && model->sweeps ? open_flows(model) : PAWL_NO_MEMORY;
  return status ? status : simulate(model);
}

/* --- convergence ---------------------------------------------------------------------------------------- */

static double likelihood_at(double sweeps) {
  if (sweeps <= curve[0].sweep) return curve[0].log_likelihood;
  for (size_t i = 1; i < CURVE; i++)
    if (sweeps <= curve[i].sweep) {
      double part = log(sweeps / curve[i - 1].sweep) / log(curve[i].sweep / curve[i - 1].sweep);
      return curve[i - 1].log_likelihood + part * (curve[i].log_likelihood - curve[i - 1].log_likelihood);
    }
  return curve[CURVE - 1].log_likelihood;
}

static double mean_at(const struct model *model, double seconds) {
  double sum = 0;
  for (uint32_t i = 0; i < model->count; i++) sum += likelihood_at(model->sweeps[i] * seconds);
  return sum / model->count;
}

/* Seconds until the mean of all workers reaches the goal. */
static double convergence(const struct model *model) {
  double low = 0, high = 1;
  while (mean_at(model, high) < GOAL && high < 1e15) high *= 2;
  for (int i = 0; i < 60; i++) {
    double middle = (low + high) / 2;
    if (mean_at(model, middle) < GOAL)
      low = middle;
    else
      high = middle;
  }
  return high;
}

/* --- the calibrated point ------------------------------------------------------------------------------- */

static pawl_status seconds_of(const struct pwi_osdi_options *options, uint32_t machines, double rate,
                              double *seconds_out) {
  struct model model;
  pawl_status status = run(&model, options, machines, rate);
  if (!status) *seconds_out = convergence(&model);
  close_model(&model);
  return status;
}

/* The slower machines sample, the less sending matters: the rate at which 6,000 machines are 4 times as fast as 1,000.
 * PAWL_NOT_FOUND if there is none. */
static pawl_status calibrate(const struct pwi_osdi_options *options, double *rate_out) {
  double low = 1e3, high = 1e12; /* tokens a second */
  for (int i = 0; i < TRIES; i++) {
    double from, to, middle = sqrt(low * high);
    if (options->shows) fprintf(stderr, "\r\033[K  calibrating, %d of %d", i + 1, TRIES);
    pawl_status status = seconds_of(options, POINT_FROM, middle, &from);
    if (!status) status = seconds_of(options, POINT_TO, middle, &to);
    if (options->shows) fprintf(stderr, "\r\033[K");
    if (status) return status;
    if (from / to > POINT_SPEEDUP)
      low = middle;
    else
      high = middle;
  }
  *rate_out = sqrt(low * high);
  return low > 1e3 && high < 1e12 ? PAWL_OK : PAWL_NOT_FOUND;
}

/* --- printing ------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

struct row {
  double seconds, waiting, load; /* load: of the servers' links */
  double p5, p50, p95;           /* log-likelihood of workers when half of the time is over */
};

static struct row measure(const struct model *model) {
  struct row row = {.seconds = convergence(model)};
  double busy = 0, sweeps = 0;
  for (uint32_t i = 0; i < model->count; i++) {
    busy += model->sweeps[i] * SLICES * model->compute / model->workers[i].speed / model->count;
    sweeps += model->sweeps[i];
  }
  row.waiting = fmax(0, 1 - busy);
  row.load = sweeps * SLICES * model->bytes / (model->options->gigabits * 1e9 / 8 * model->servers * model->part);
  qsort(model->sweeps, model->count, sizeof *model->sweeps, ascending);
  double half = row.seconds / 2;
  row.p5 = likelihood_at(model->sweeps[model->count / 20] * half);
  row.p50 = likelihood_at(model->sweeps[model->count / 2] * half);
  row.p95 = likelihood_at(model->sweeps[model->count - 1 - model->count / 20] * half);
  return row;
}

static int show(const struct pwi_command *command, const struct model *model, uint32_t machines, const struct row *row,
                double speedup) {
  const struct pwi_osdi_options *options = model->options;
  if (options->json)
    return pwi_cli_print_json(
        command, json_pack("{s:s, s:s, s:i, s:i, s:b, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "sim", "osdi",
                           "figure", "14", "machines", (int)machines, "servers", (int)model->servers, "calibrated",
                           options->rate == 0, "tokens_per_s", model->rate, "sweep_bytes", model->bytes * SLICES,
                           "sweep_compute_s", model->compute * SLICES, "sweep_send_s", model->sending * SLICES,
                           "seconds", row->seconds, "speedup", speedup, "waiting", row->waiting, "server_links",
                           row->load, "half_time_p5", row->p5, "half_time_p95", row->p95));
  printf("  %8" PRIu32 " %8" PRIu32 " %8.2f %8.2f %8.2f %9.0f %8.2f %8.0f %% %8.0f %%  %7.2f %7.2f %7.2f\n", machines,
         model->servers, model->bytes * SLICES * 1e-9, model->compute * SLICES, model->sending * SLICES, row->seconds,
         speedup, 100 * row->waiting, 100 * row->load, row->p5, row->p50, row->p95);
  return PWI_EXIT_OK;
}

static void print_head(const struct pwi_osdi_options *options, double rate) {
  printf("  OSDI'14, figure 14: topic models by machines (flows alone)\n"
         "  %g million users with %g tokens of %g million words each, %g bytes a row, links of %g Gbit/s\n"
         "  a machine samples %.2f million tokens a second%s\n\n"
         "                     seconds of a sweep to the goal                   servers' log-likelihood at half time\n"
         "  machines  servers GB sweep compute    send   seconds speed-up  waiting    links       p5     p50     p95\n",
         options->users * 1e-6, options->tokens, options->words * 1e-6, options->row_bytes, options->gigabits,
         rate * 1e-6,
         options->rate > 0 ? "" : ": chosen so that 6,000 machines are 4 times as fast as 1,000 (the paper)");
}

static int draw(const struct pwi_command *command, const struct pwi_osdi_options *options,
                struct pwi_mlnet_line *lines) {
  struct pwi_mlnet_chart chart = {"OSDI'14, figure 14: speed-up by machines", "machines", "times as fast", lines, 2};
  int problem = options->svg ? pwi_mlnet_draw(options->svg, &chart) : 0;
  if (!problem) return PWI_EXIT_OK;
  return pwi_cli_failure(command, "cannot write %s: %s", options->svg, strerror(problem));
}

int pwi_osdi_topics(const struct pwi_command *command, const struct pwi_osdi_options *options) {
  double rate = options->rate, first = 0;
  pawl_status status = rate > 0 ? PAWL_OK : calibrate(options, &rate);
  if (status == PAWL_NOT_FOUND)
    return pwi_cli_failure(command, "no rate of sampling makes %d machines %g times as fast as %d; give --sampling",
                           POINT_TO, POINT_SPEEDUP, POINT_FROM);
  struct pwi_mlnet_line *lines = pwi_alloc_zero(2, sizeof *lines);
  if (!status && !lines) status = PAWL_NO_MEMORY;
  int exit_code = PWI_EXIT_OK;
  if (!status && !options->json) print_head(options, rate);
  for (size_t i = 0; i < options->size_count && !status && !exit_code; i++) {
    struct model model;
    if (options->shows) fprintf(stderr, "\r\033[K  %" PRIu32 " machines", options->sizes[i]);
    status = run(&model, options, options->sizes[i], rate);
    if (options->shows) fprintf(stderr, "\r\033[K");
    if (!status) {
      struct row row = measure(&model);
      if (i == 0) first = row.seconds;
      lines[0].name = "simulated";
      lines[1].name = "in proportion";
      lines[0].x[i] = lines[1].x[i] = options->sizes[i];
      lines[0].y[i] = first / row.seconds;
      lines[1].y[i] = (double)options->sizes[i] / options->sizes[0];
      lines[0].count = lines[1].count = i + 1;
      exit_code = show(command, &model, options->sizes[i], &row, first / row.seconds);
      fflush(stdout);
    }
    close_model(&model);
  }
  if (!status && !exit_code) exit_code = draw(command, options, lines);
  pwi_free(lines);
  return status ? pwi_cli_failure(command, "figure 14: %s", pawl_status_text(status)) : exit_code;
}
