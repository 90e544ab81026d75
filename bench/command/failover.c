#include "failover.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "host/clock.h"

#define START_NS (30 * PWI_HOST_SECOND)
#define WHOLE_NS (60 * PWI_HOST_SECOND) /* plus the same for every four gigabytes */
#define CALM_NS (70 * PWI_HOST_SECOND)
#define PULL_NS (10 * PWI_HOST_SECOND)
#define WARM_US 1000000
#define QUIET_US 300000   /* shortest time between two faults; the longest is twice that */
#define REPLACE_US 300000 /* until a replacement is started */
#define SILENCE_US 2000000
#define NOTHING_US 1000000
#define STATUS_NS (60 * PWI_HOST_SECOND)

#define FILL "storm/fill"
#define FILL_WIDTH 1024u
#define FILL_ROWS 4096u /* per push: 16 MiB */
#define FILL_NS (60 * PWI_HOST_SECOND)

void pwi_failover_progress(const char *format, ...) {
  va_list arguments;
  if (!isatty(STDERR_FILENO) && !pwi_log_wants(PAWL_LOG_INFO)) return;
  va_start(arguments, format);
  fputs("pawl-bench failover: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
}

struct run {
  const struct pwi_failover_options *options;
  struct pwi_storm *storm;
  struct pwi_random random;
  struct pwi_failover_fault *faults;
  uint32_t fault_count;
  int64_t begin, end;
  uint64_t epoch_begin, epoch_end;
};

static bool complain(const struct run *run) {
  pwi_cli_failure(run->options->command, "%s", pwi_storm_problem(run->storm));
  return false;
}

/* --- filling -------------------------------------------------------------------------------------------- */

/* A server holds its own share and the shares of which it keeps replicas. */
static uint64_t rows_to_fill(const struct pwi_failover_options *options) {
  int copies = 1 + (options->replicas >= 0 ? options->replicas : 1);
  return (uint64_t)(options->gigabytes * 1e9 * options->servers / copies / (FILL_WIDTH * sizeof(float)));
}

static pawl_status push_rows(struct pawl_vector *vector, const float *values, uint64_t rows) {
  pawl_status status = PAWL_OK;
  for (uint64_t at = 0; at < rows && !status; at += FILL_ROWS) {
    struct pawl_task *task;
    uint64_t end = at + FILL_ROWS < rows ? at + FILL_ROWS : rows;
    status = pawl_vector_push(vector, pawl_at_range(at, end), values, &task);
    if (!status) status = pawl_task_finish(task, FILL_NS);
    if (at % (64 * FILL_ROWS) == 0) pwi_failover_progress("%.0f %% filled", 100.0 * (double)at / (double)rows);
  }
  return status;
}

static bool fill(struct run *run) {
  struct pawl_session *session = pwi_storm_session(run->storm);
  struct pawl_vector_options options;
  struct pawl_vector *vector = NULL;
  void *memory = NULL;
  if (!session) return complain(run);
  pawl_vector_options_init(&options);
  options.width = FILL_WIDTH;
  options.size = rows_to_fill(run->options);
  if (options.size == 0) return true;
  pawl_status status = pawl_vector_create(session, FILL, &options, FILL_NS, &vector);
  if (!status) status = pawl_buffer_create(session, (size_t)FILL_ROWS * FILL_WIDTH * sizeof(float), &memory);
  if (!status) {
    float *values = memory;
    for (size_t i = 0; i < (size_t)FILL_ROWS * FILL_WIDTH; i++) values[i] = (float)(i % 1000) + 1;
    status = push_rows(vector, values, options.size);
  }
  pawl_buffer_destroy(session, memory);
  pawl_vector_close(vector);
  if (status) pwi_cli_failure(run->options->command, "cannot fill the servers: %s", pawl_error_text());
  return status == PAWL_OK;
}

/* --- faults --------------------------------------------------------------------------------------------- */

static size_t draw_server(struct run *run) {
  size_t alive = 0, count = pwi_storm_count(run->storm);
  for (size_t i = 0; i < count; i++) alive += pwi_storm_is_alive(run->storm, i, PWI_STORM_SERVER);
  size_t left = (size_t)pwi_random_below(&run->random, alive), chosen = 0;
  for (size_t i = 0; i < count; i++)
    if (pwi_storm_is_alive(run->storm, i, PWI_STORM_SERVER) && left-- == 0) chosen = i;
  return chosen;
}

static bool replace(struct run *run, size_t victim) {
  pwi_storm_kill(run->storm, victim);
  usleep(REPLACE_US);
  return pwi_storm_add(run->storm, PWI_STORM_SERVER, NULL, NULL) && pwi_storm_settle(run->storm, START_NS);
}

static bool silence(struct run *run, size_t victim) {
  bool is_cut = run->options->mode == PWI_FAILOVER_CUT;
  if (!is_cut) pwi_storm_pause(run->storm, victim, true);
  if (is_cut && !pwi_storm_cut(run->storm, victim, true)) return false;
  usleep(SILENCE_US);
  if (!is_cut) pwi_storm_pause(run->storm, victim, false);
  return !is_cut || pwi_storm_cut(run->storm, victim, false);
}

static bool do_fault(struct run *run) {
  struct pwi_failover_fault *fault = &run->faults[run->fault_count];
  int64_t patience = WHOLE_NS + (int64_t)(run->options->gigabytes / 4 * (double)WHOLE_NS);
  fault->quiet_from = pwi_host_now();
  usleep((useconds_t)(QUIET_US + pwi_random_below(&run->random, QUIET_US)));
  size_t victim = draw_server(run);
  fault->from = fault->whole = pwi_host_now();
  run->fault_count++;
  bool good = true;
  if (run->options->mode == PWI_FAILOVER_NONE)
    usleep(NOTHING_US);
  else
    good = run->options->mode == PWI_FAILOVER_KILL ? replace(run, victim) : silence(run, victim);
  if (good) good = pwi_storm_await_whole(run->storm, patience);
  fault->whole = pwi_host_now();
  pwi_failover_progress("fault %" PRIu32 " of %" PRIu32 ": complete after %.0f ms%s%s", run->fault_count,
                        run->options->kills, (double)(fault->whole - fault->from) / 1e6,
                        good ? "" : ", no: ", good ? "" : pwi_storm_problem(run->storm));
  return good || complain(run);
}

static bool start_all(struct run *run) {
  const struct pwi_failover_options *options = run->options;
  bool good = pwi_storm_add(run->storm, PWI_STORM_MANAGER, NULL, NULL);
  for (uint32_t i = 0; i < options->servers && good; i++)
    good = pwi_storm_add(run->storm, PWI_STORM_SERVER, NULL, NULL);
  if (!good || !pwi_storm_settle(run->storm, START_NS) || !pwi_storm_await_whole(run->storm, START_NS))
    return complain(run);
  if (options->gigabytes > 0 && !fill(run)) return false;
  for (uint32_t i = 0; i < options->workers && good; i++)
    good = pwi_storm_add(run->storm, PWI_STORM_WORKER, NULL, NULL);
  if (!good || !pwi_storm_settle(run->storm, START_NS)) return complain(run);
  usleep(WARM_US);
  return pwi_storm_await_whole(run->storm, WHOLE_NS) || complain(run);
}

/* The epoch of the manager's view. */
static bool read_epoch(struct run *run, uint64_t *epoch_out) {
  struct pawl_session *session = pwi_storm_session(run->storm);
  char *text = NULL;
  if (!session) return complain(run);
  pawl_status status = pawl_session_status(session, STATUS_NS, &text);
  json_t *root = status ? NULL : json_loads(text, 0, NULL);
  *epoch_out = (uint64_t)json_integer_value(json_object_get(root, "epoch"));
  json_decref(root);
  pawl_text_free(text);
  if (*epoch_out == 0) pwi_cli_failure(run->options->command, "cannot read the epoch: %s", pawl_error_text());
  return *epoch_out != 0;
}

static bool work(struct run *run) {
  if (!start_all(run) || !read_epoch(run, &run->epoch_begin)) return false;
  bool good = true;
  run->begin = pwi_host_now();
  for (uint32_t i = 0; i < run->options->kills && good; i++) good = do_fault(run);
  usleep(QUIET_US);
  run->end = pwi_host_now();
  good = read_epoch(run, &run->epoch_end) && good;
  if (!pwi_storm_calm(run->storm, CALM_NS)) good = complain(run);
  return good;
}

/* --- figures -------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The quantile `part` of the values. Sorts them. */
static double quantile(double *values, uint32_t count, double part) {
  qsort(values, count, sizeof *values, by_value);
  uint32_t index = (uint32_t)ceil(part * count);
  return values[index > 0 ? index - 1 : 0];
}

/* The longest gap of any worker, around each fault and in the quiet period before it. */
static bool read_gaps(const struct run *run, double *gaps, double *quiets, uint64_t *ended_out) {
  struct pwi_storm_journal journal;
  *ended_out = 0;
  for (size_t i = 0; i < pwi_storm_count(run->storm); i++) {
    if (!pwi_storm_is_worker(run->storm, i)) continue;
    pawl_status status = pwi_storm_journal_read(pwi_storm_journal(run->storm, i), &journal);
    if (status) {
      pwi_cli_failure(run->options->command, "cannot read a journal: %s", pawl_status_text(status));
      return false;
    }
    for (uint32_t f = 0; f < run->fault_count; f++) {
      const struct pwi_failover_fault *fault = &run->faults[f];
      gaps[f] = fmax(gaps[f], (double)pwi_storm_gap(&journal, fault->from, fault->whole) / 1e6);
      quiets[f] = fmax(quiets[f], (double)pwi_storm_gap(&journal, fault->quiet_from, fault->from) / 1e6);
    }
    for (uint64_t s = 0; s < journal.count; s++)
      *ended_out += journal.entries[s].ended_ns > run->begin && journal.entries[s].ended_ns <= run->end;
    pwi_storm_journal_fini(&journal);
  }
  return true;
}

static bool count_up(const struct run *run, struct pwi_failover_figures *figures) {
  uint32_t count = run->fault_count;
  double *gaps = pwi_alloc_zero(count, 3 * sizeof *gaps), *quiets = gaps + count, *wholes = quiets + count;
  uint64_t ended;
  if (!gaps) return false;
  bool good = read_gaps(run, gaps, quiets, &ended);
  for (uint32_t i = 0; i < count; i++) wholes[i] = (double)(run->faults[i].whole - run->faults[i].from) / 1e6;
  figures->faults = count;
  figures->p50_ms = quantile(gaps, count, 0.5);
  figures->p99_ms = quantile(gaps, count, 0.99);
  figures->max_ms = gaps[count - 1];
  figures->quiet_ms = quantile(quiets, count, 0.5);
  figures->whole_ms = quantile(wholes, count, 0.5);
  figures->views = run->epoch_end - run->epoch_begin;
  figures->pushes_per_s = (double)ended / ((double)(run->end - run->begin) / 1e9);
  pwi_free(gaps);
  return good;
}

static void tell(const struct run *run, const struct pwi_storm_verdict *verdict) {
  char text[256];
  for (size_t i = 0; i < verdict->finding_count && i < 10; i++)
    pwi_cli_failure(run->options->command, "%s", pwi_storm_finding_print(&verdict->findings[i], text, sizeof text));
  if (verdict->finding_count > 10) pwi_cli_failure(run->options->command, "and %zu more", verdict->finding_count - 10);
}

static bool run_in(struct run *run, struct pwi_failover_figures *figures) {
  bool good = work(run);
  if (run->fault_count == 0) return false;
  pwi_failover_progress("verifying");
  if (!pwi_storm_judge(run->storm, PULL_NS, &figures->verdict)) return complain(run);
  tell(run, &figures->verdict);
  return count_up(run, figures) && good;
}

bool pwi_failover_run(const struct pwi_failover_options *options, struct pwi_failover_figures *figures_out) {
  struct pwi_storm_config config = {.folder = options->folder,
                                    .servers = options->servers,
                                    .shards = options->shards,
                                    .replicas = options->replicas,
                                    .is_tcp = options->is_tcp,
                                    .has_cells = options->mode == PWI_FAILOVER_CUT};
  struct run run = {.options = options};
  char problem[512];
  bool is_unable;
  memset(figures_out, 0, sizeof *figures_out);
  if (!pwi_storm_open(&config, &run.storm, problem, sizeof problem, &is_unable)) {
    pwi_cli_failure(options->command, "%s", problem);
    return false;
  }
  pwi_random_init(&run.random, options->seed, 0);
  run.faults = pwi_alloc_zero(options->kills, sizeof *run.faults);
  bool good = run.faults && run_in(&run, figures_out);
  pwi_storm_close(run.storm);
  pwi_free(run.faults);
  return good;
}
