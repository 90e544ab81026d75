/* Figures 6 and 8, by processes of this machine: `pawl train multiclass` with workers that share the matrix by each way. Rows
 * are made up and dense. Without staleness all ways must have the same objective after every epoch, and with factors all
 * workers the same bits. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/command/bench.h"
#include "bench/command/child.h"
#include "sfb.h"

#define TEXT_MAX (64 << 10)
#define EPOCHS_MAX 16
#define EPOCHS "3"
#define ROUNDING 1e-9 /* by which objectives of doubles may differ, relative to them */
#define EXIT_USAGE 2

static const char *const ways[] = {"factors", "matrix", "servers"};
static const uint32_t stalenesses[] = {0, 1, 5, 20};

#define WAYS (sizeof ways / sizeof *ways)
#define STALENESSES (sizeof stalenesses / sizeof *stalenesses)

struct scene {
  const struct pwi_sfb_plan *plan;
  char folder[64], data[96], model[96], log[96], errors[96], pawl[4096];
};

struct figures {
  bool is_there; /* this way exists */
  double seconds, work_s, wait_s, bytes, expected;
  int64_t steps;
  bool is_identical;
  size_t epochs;
  double objectives[EPOCHS_MAX];
};

/* --- rows ----------------------------------------------------------------------------------------------- */

static bool write_rows(const struct scene *is, const struct pwi_sfb_problem *problem) {
  FILE *file = fopen(is->data, "we");
  if (!file) return false;
  for (uint32_t row = 0; row < problem->shape.rows; row++) {
    fprintf(file, "%" PRIu32, problem->labels[row]);
    for (uint32_t i = 0; i < problem->shape.features; i++)
      fprintf(file, " %" PRIu32 ":%.4f", i + 1, (double)problem->x[(size_t)row * problem->shape.features + i]);
    fputc('\n', file);
  }
  bool is_written = !ferror(file);
  return fclose(file) == 0 && is_written;
}

static bool open_scene(const struct pwi_sfb_plan *plan, struct scene *is) {
  struct pwi_sfb_problem problem;
  *is = (struct scene){.plan = plan, .folder = "/tmp/pawl-bench-sfb-XXXXXX"};
  if (!pwi_child_find("pawl", is->pawl, sizeof is->pawl)) {
    pwi_cli_failure(plan->command, "there is no pawl beside this program; build it first");
    return false;
  }
  if (!mkdtemp(is->folder)) {
    pwi_cli_failure(plan->command, "cannot make a folder in /tmp");
    return false;
  }
  snprintf(is->data, sizeof is->data, "%s/rows.svm", is->folder);
  snprintf(is->model, sizeof is->model, "%s/rows.model", is->folder);
  snprintf(is->log, sizeof is->log, "%s/rows.log", is->folder);
  snprintf(is->errors, sizeof is->errors, "%s/errors", is->folder);
  bool is_fine = pwi_sfb_open(plan, &problem);
  if (is_fine && !write_rows(is, &problem)) {
    pwi_cli_failure(plan->command, "cannot write '%s'", is->data);
    is_fine = false;
  }
  pwi_sfb_problem_fini(&problem);
  return is_fine;
}

static void close_scene(const struct scene *is) {
  const char *const files[] = {is->data, is->model, is->log, is->errors};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (files[i][0]) unlink(files[i]);
  rmdir(is->folder);
}

/* --- a run ---------------------------------------------------------------------------------------------- */

static void read_log(const struct scene *is, struct figures *figures) {
  char line[4096];
  FILE *file = fopen(is->log, "re");
  while (file && figures->epochs < EPOCHS_MAX && fgets(line, sizeof line, file)) {
    json_t *object = json_loads(line, 0, NULL);
    json_t *objective = object ? json_object_get(object, "objective") : NULL;
    if (objective) figures->objectives[figures->epochs++] = json_number_value(objective);
    json_decref(object);
  }
  if (file) fclose(file);
}

static double number(const json_t *object, const char *name) {
  return json_number_value(json_object_get(object, name));
}

static bool read_result(const struct scene *is, const char *text, const char *way, struct figures *figures_out) {
  json_t *object = json_loads(text, 0, NULL);
  struct figures figures = {.is_there = true};
  if (!object) return false;
  figures.seconds = number(object, "train_seconds");
  figures.work_s = number(object, "work_seconds");
  figures.wait_s = number(object, "wait_seconds");
  figures.bytes = number(object, "update_bytes");
  figures.steps = (int64_t)number(object, "steps");
  figures.expected = number(json_object_get(object, "expected_bytes"), way);
  figures.is_identical = json_is_true(json_object_get(object, "identical"));
  bool is_whole = figures.steps > 0 && number(object, "workers_lost") == 0;
  json_decref(object);
  read_log(is, &figures);
  *figures_out = figures;
  return is_whole;
}

static void complain(const struct scene *is, const char *way, uint32_t workers, int code) {
  char line[256] = "";
  FILE *file = fopen(is->errors, "re");
  if (file) {
    while (fgets(line, sizeof line, file)) continue; /* the last line */
    fclose(file);
  }
  pwi_cli_failure(is->plan->command, "pawl train multiclass --share %s --workers %u exits with %d: %s", way, workers,
                  code, line);
}

/* False after a message. */
static bool measure(const struct scene *is, size_t way, uint32_t workers, uint32_t staleness,
                    struct figures *figures_out) {
  static char text[TEXT_MAX];
  char count[16], stale[16], batch[16], rate[32];
  snprintf(count, sizeof count, "%u", workers);
  snprintf(stale, sizeof stale, "%u", staleness);
  snprintf(batch, sizeof batch, "%u", is->plan->setup.batch);
  snprintf(rate, sizeof rate, "%g", is->plan->setup.rate);
  const char *const words[] = {is->pawl,     "train",    "multiclass",  is->data, "--method",  "sgd",
                               "--schedule", "constant", "--rate",      rate,     "--l2",      "1e-3",
                               "--epochs",   EPOCHS,     "--batch",     batch,    "--workers", count,
                               "--share",    ways[way],  "--staleness", stale,    "--json",    "--threads",
                               "1",          "-o",       is->model,     "--log",  is->log,     NULL};
  *figures_out = (struct figures){0};
  int code = pwi_child_run(words, is->errors, text, sizeof text);
  if (code == EXIT_USAGE && way == WAYS - 1) return true; /* this version has no such way */
  if (code == 0 && read_result(is, text, ways[way], figures_out)) return true;
  complain(is, ways[way], workers, code);
  return false;
}

/* --- the figure ----------------------------------------------------------------------------------------- */

/* The largest difference of the objectives of two ways, relative to them. */
static double difference(const struct figures *a, const struct figures *b) {
  double largest = a->epochs == b->epochs && a->epochs > 0 ? 0 : INFINITY;
  for (size_t i = 0; i < a->epochs && isfinite(largest); i++)
    largest = fmax(largest, fabs(a->objectives[i] / b->objectives[i] - 1));
  return largest;
}

static void print(const struct pwi_sfb_plan *plan, size_t way, uint32_t workers, uint32_t staleness,
                  const struct figures *is, double off) {
  double objective = is->epochs ? is->objectives[is->epochs - 1] : (double)NAN;
  bool is_bsp = staleness == 0, has_bits = is_bsp && way == 0;
  if (plan->json)
    pwi_cli_print_json(
        plan->command,
        json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:o}", "bench", "sfb",
                  "figure", "real", "way", ways[way], "workers", (int)workers, "staleness", (int)staleness, "batch",
                  (int)plan->setup.batch, "steps", (json_int_t)is->steps, "seconds", is->seconds, "compute_s",
                  is->work_s, "wait_s", is->wait_s, "bytes", is->bytes, "model_bytes", is->expected * (double)is->steps,
                  "objective", pwi_bench_number(objective), "off_factors", is_bsp ? pwi_bench_number(off) : json_null(),
                  "identical", has_bits ? json_boolean(is->is_identical) : json_null()));
  else
    printf("%-8s %7u %9u %8.2f s %8.2f s %8.2f s %9.2f MB %8.3f %14.8f%s\n", ways[way], workers, staleness, is->seconds,
           is->work_s, is->wait_s, is->bytes / 1e6, is->bytes / (is->expected * (double)is->steps), objective,
           has_bits ? is->is_identical ? "  same bits" : "  BITS DIFFER" : "");
  fflush(stdout);
}

static bool run_workers(const struct scene *is, uint32_t workers, bool *are_same) {
  for (size_t k = 0; k < STALENESSES; k++) {
    struct figures first = {0};
    for (size_t way = 0; way < WAYS; way++) {
      struct figures figures;
      if (!measure(is, way, workers, stalenesses[k], &figures)) return false;
      if (!figures.is_there) continue;
      if (way == 0) first = figures;
      double off = difference(&figures, &first);
      print(is->plan, way, workers, stalenesses[k], &figures, off);
      if (stalenesses[k] == 0) *are_same = *are_same && off <= ROUNDING && (way > 0 || figures.is_identical);
    }
  }
  return true;
}

int pwi_sfb_real(const struct pwi_sfb_plan *plan) {
  struct scene scene;
  bool are_same = true, is_fine = open_scene(plan, &scene);
  if (is_fine && !plan->json) {
    pwi_bench_print_machine();
    printf("%u classes, %u dense features, %u rows, doubles; steps of %u rows of all workers together, %s epochs\n\n",
           plan->shape.classes, plan->shape.features, plan->shape.rows, plan->setup.batch, EPOCHS);
    printf("way      workers staleness    seconds  computing    waiting        bytes to model      objective\n");
  }
  for (uint32_t workers = 2; is_fine && workers <= (plan->workers ? plan->workers : 4); workers *= 2)
    is_fine = run_workers(&scene, workers, &are_same);
  close_scene(&scene);
  if (!is_fine) return PWI_EXIT_FAILURE;
  if (!are_same)
    return pwi_cli_failure(plan->command, "without staleness the ways differ by more than rounding, or workers do");
  if (!plan->json)
    printf("\nwithout staleness all ways have the same objective after each epoch, within %g\n", ROUNDING);
  return PWI_EXIT_OK;
}
