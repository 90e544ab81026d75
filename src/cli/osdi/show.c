/* Figures 10 and 13: tables, JSON and pictures of computing and waiting. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/osdi/osdi.h"

#define TAU_MAX 1000000

/* --- rows ----------------------------------------------------------------------------------------------- */

static json_t *computed_json(const struct pwi_wait_shape *shape, const struct pwi_wait_figures *figures) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < shape->workers; i++) json_array_append_new(list, json_real(figures->computed_s[i]));
  return list;
}

/* `what`: "tau" or "system", and its value, which is taken. */
static int print_json(const struct pwi_command *command, const struct pwi_osdi_options *options, const char *what,
                      json_t *value, const struct pwi_wait_figures *figures) {
  const struct pwi_wait_shape *shape = &options->shape;
  json_t *total = figures->is_reached ? json_real(figures->total_s) : json_null();
  return pwi_cli_print_json(
      command, json_pack("{s:s, s:o, s:f, s:f, s:o, s:I, s:b, s:f, s:i, s:i, s:f, s:f, s:I, s:o}", options->program,
                         options->name, what, value, "wait_pct", figures->wait_pct, "compute_s", figures->compute_s,
                         "total_s", total, "iterations", (json_int_t)figures->iterations, "reached",
                         figures->is_reached, "objective", figures->objective, "workers", (int)shape->workers, "blocks",
                         (int)shape->blocks, "block_s", PWI_WAIT_BLOCK_S, "rate", shape->rate, "seed",
                         (json_int_t)shape->seed, "computed_s", computed_json(shape, figures)));
}

static json_t *tau_json(uint64_t tau) {
  char name[PWI_WAIT_NAME_MAX];
  pwi_wait_name(tau, name);
  return tau >= PWI_WAIT_ADAPTIVE ? json_string(name) : json_integer((json_int_t)tau);
}

static void print_head(const struct pwi_wait_problem *problem, const char *what) {
  const struct pwi_wait_shape *shape = &problem->shape;
  printf("%" PRIu32 " workers, %" PRIu32 " examples, %" PRIu32 " features in %" PRIu32
         " blocks; virtual time, %g s a block; until the objective is %.2f\n\n",
         shape->workers, shape->examples, shape->features, shape->blocks, PWI_WAIT_BLOCK_S, problem->target);
  printf("%8s   waiting   computing      total   iterations\n", what);
}

static void print_row(const char *name, const struct pwi_wait_figures *figures, bool is_adaptive) {
  char bound[40] = "";
  if (is_adaptive) snprintf(bound, sizeof bound, "   the last bound is %" PRIu64, figures->bound);
  printf("%8s  %6.1f %%  %8.1f s %8.1f s   %10" PRIu64 "%s%s\n", name, figures->wait_pct, figures->compute_s,
         figures->total_s, figures->iterations, bound, figures->is_reached ? "" : "   the objective was not reached");
}

/* OSDI'14, figure 10: computing and waiting, worker by worker. */
static void print_workers(const struct pwi_wait_shape *shape, const struct pwi_wait_figures *figures) {
  for (uint32_t i = 0; i < shape->workers; i++)
    printf("          worker %2" PRIu32 ": computing %8.1f s, waiting %8.1f s\n", i, figures->computed_s[i],
           figures->total_s - figures->computed_s[i]);
}

/* --- options -------------------------------------------------------------------------------------------- */

bool pwi_osdi_read_taus(const char *text, struct pwi_osdi_options *options) {
  char part[24];
  options->tau_count = 0;
  while (*text) {
    size_t size = strcspn(text, ",");
    if (size == 0 || size >= sizeof part || options->tau_count == PWI_WAIT_TAUS_MAX) return false;
    memcpy(part, text, size);
    part[size] = '\0';
    uint64_t tau = PWI_WAIT_INFINITE;
    if (strcmp(part, "adaptive") == 0)
      tau = PWI_WAIT_ADAPTIVE;
    else if (strcmp(part, "inf") != 0 && (!pwi_cli_number(part, &tau) || tau > TAU_MAX))
      return false;
    options->taus[options->tau_count++] = tau;
    text += size;
    if (*text == ',' && *++text == '\0') return false;
  }
  return options->tau_count > 0;
}

void pwi_osdi_wait_defaults(struct pwi_osdi_options *options) {
  static const uint64_t taus[] = {0, 1, 4, 8, 16, PWI_WAIT_INFINITE, PWI_WAIT_ADAPTIVE};
  memcpy(options->taus, taus, sizeof taus);
  options->tau_count = sizeof taus / sizeof *taus;
  options->shape = (struct pwi_wait_shape){
      .workers = 4, .blocks = 64, .examples = 8000, .per_example = 30, .l1 = 2, .rate = 0.6, .seed = 1};
}

/* --- running -------------------------------------------------------------------------------------------- */

/* Rows of one figure: names and figures, as they are drawn. */
struct rows {
  const struct pwi_command *command;
  const struct pwi_osdi_options *options;
  struct pwi_wait_problem *problem;
  struct pwi_wait_figures figures[PWI_WAIT_TAUS_MAX + 1];
  char names[PWI_WAIT_TAUS_MAX + 1][PWI_WAIT_NAME_MAX];
  size_t count;
};

static int open_rows(struct rows *rows, const struct pwi_command *command, const struct pwi_osdi_options *options) {
  *rows = (struct rows){.command = command, .options = options};
  struct pwi_wait_shape shape = options->shape;
  shape.features = shape.blocks * PWI_WAIT_BLOCK_FEATURES;
  if (pwi_wait_problem_create(&shape, &rows->problem))
    return pwi_cli_failure(command, "not enough memory for the data");
  if (!options->json) print_head(rows->problem, options->figure == PWI_OSDI_10 ? "" : "tau");
  return PWI_EXIT_OK;
}

static int add_row(struct rows *rows, const char *what, json_t *value, bool is_adaptive) {
  const struct pwi_osdi_options *options = rows->options;
  const struct pwi_wait_figures *figures = &rows->figures[rows->count];
  int exit_code = PWI_EXIT_OK;
  if (options->json) exit_code = print_json(rows->command, options, what, value, figures);
  if (!options->json) {
    json_decref(value);
    print_row(rows->names[rows->count], figures, is_adaptive);
    if (options->by_worker) print_workers(&options->shape, figures);
  }
  fflush(stdout);
  rows->count++;
  return exit_code;
}

/* `system`: what figure 10 calls the row; NULL: figure 13. */
static int run_delay(struct rows *rows, uint64_t tau, const char *system) {
  char why[256], name[PWI_WAIT_NAME_MAX];
  pwi_wait_name(tau, name);
  if (rows->options->shows) fprintf(stderr, "\r\033[K  tau %s", name);
  pawl_status status = pwi_wait_run(rows->problem, tau, &rows->figures[rows->count], why, sizeof why);
  if (rows->options->shows) fprintf(stderr, "\r\033[K");
  if (status) return pwi_cli_failure(rows->command, "the run with tau %s failed: %s", name, why);
  snprintf(rows->names[rows->count], PWI_WAIT_NAME_MAX, "%s", system ? system : name);
  return add_row(rows, system ? "system" : "tau", system ? json_string(system) : tau_json(tau),
                 tau == PWI_WAIT_ADAPTIVE);
}

static int close_rows(struct rows *rows, int exit_code, const char *under) {
  const char *path = rows->options->svg;
  if (!exit_code && path &&
      !pwi_wait_draw(path, under, (const char(*)[PWI_WAIT_NAME_MAX])rows->names, rows->figures, rows->count))
    exit_code = pwi_cli_failure(rows->command, "'%s' cannot be written", path);
  pwi_wait_problem_destroy(rows->problem);
  return exit_code;
}

int pwi_osdi_delays(const struct pwi_command *command, const struct pwi_osdi_options *options) {
  struct rows rows;
  int exit_code = open_rows(&rows, command, options);
  for (size_t i = 0; i < options->tau_count && !exit_code; i++) exit_code = run_delay(&rows, options->taus[i], NULL);
  return close_rows(&rows, exit_code, "tau: iterations that may be under way");
}

int pwi_osdi_systems(const struct pwi_command *command, const struct pwi_osdi_options *options) {
  struct rows rows;
  int exit_code = open_rows(&rows, command, options);
  if (!exit_code && pwi_wait_lbfgs(rows.problem, &rows.figures[0]))
    exit_code = pwi_cli_failure(command, "not enough memory for L-BFGS");
  snprintf(rows.names[0], PWI_WAIT_NAME_MAX, "A");
  if (!exit_code) exit_code = add_row(&rows, "system", json_string("A"), false);
  if (!exit_code) exit_code = run_delay(&rows, 0, "B");
  for (size_t i = 0; i < options->tau_count && !exit_code; i++) {
    char tau[PWI_WAIT_NAME_MAX], name[PWI_WAIT_NAME_MAX + 4];
    pwi_wait_name(options->taus[i], tau);
    snprintf(name, sizeof name, "tau %s", tau);
    exit_code = run_delay(&rows, options->taus[i], name);
  }
  return close_rows(&rows, exit_code, "A: L-BFGS; B: blocks without delay; tau: blocks with delay");
}
