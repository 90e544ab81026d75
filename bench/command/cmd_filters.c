/* `pawl-bench filters`: bytes with and without filters. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "bench.h"
#include "cli/mlnet/mlnet.h"
#include "filters.h"

enum {
  LETTER_DATA = 300,
  LETTER_EXAMPLES,
  LETTER_FEATURES,
  LETTER_NONZEROS,
  LETTER_ITERATIONS,
  LETTER_L1,
  LETTER_SEED,
  LETTER_SVG
};

#define COUNT_MAX 100000000
#define NONZEROS_MAX 10000
#define ITERATIONS_MAX 100000

/* --- printing ------------------------------------------------------------------------------------------- */

/* In per cent, iteration by iteration; null without kkt. */
static json_t *curve_json(const struct pwi_filters_row *row) {
  json_t *list = row->curve_count ? json_array() : json_null();
  for (size_t i = 0; i < row->curve_count; i++) json_array_append_new(list, json_real(100 * row->curve[i]));
  return list;
}

static int print_json(const struct pwi_filters_bench *bench, const struct pwi_filters_row *row) {
  bool learns = isfinite(row->objective);
  return pwi_cli_print_json(
      bench->command,
      json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:f}", "bench", "filters",
                "scene", row->scene, "filter", row->filter, "link", row->link, "bytes",
                (json_int_t)(row->bytes_out + row->bytes_in), "bytes_out", (json_int_t)row->bytes_out, "bytes_in",
                (json_int_t)row->bytes_in, "ratio", row->ratio, "saved_pct", 100 * (1 - row->ratio), "objective",
                pwi_bench_number(row->objective), "objective_off", learns ? json_real(row->objective_off) : json_null(),
                "left_out_pct", learns ? json_real(100 * row->left_out) : json_null(), "left_out_by_iteration_pct",
                curve_json(row), "nonzeros", learns ? json_integer((json_int_t)row->nonzeros) : json_null(), "violated",
                learns ? json_integer((json_int_t)row->violated) : json_null(), "seconds", row->seconds));
}

static void print_row(const struct pwi_filters_row *row) {
  printf("%-9s %-7s %-42s %10.3f %10.3f %7.3f", row->scene, row->link, row->filter, (double)row->bytes_out / 1e6,
         (double)row->bytes_in / 1e6, row->ratio);
  if (isfinite(row->objective)) printf(" %12.9f %8.2f%% %9" PRIu64, row->objective, 100 * row->left_out, row->violated);
  printf("\n");
}

static void print_table(const struct pwi_filters_row *rows, size_t count) {
  printf("%-9s %-7s %-42s %10s %10s %7s %12s %9s %9s\n", "scene", "link", "filters", "MB out", "MB in", "ratio",
         "objective", "left out", "violated");
  for (size_t i = 0; i < count; i++) print_row(&rows[i]);
}

/* OSDI'14, figure 12: features that kkt leaves out, by iteration. */
static int draw(const struct pwi_filters_bench *bench, const struct pwi_filters_row *rows, size_t count) {
  struct pwi_mlnet_line *lines = pwi_alloc_zero(PWI_FILTERS_ROWS, sizeof *lines);
  struct pwi_mlnet_chart chart = {"features that kkt leaves out", "iteration", "per cent", lines, 0};
  if (!lines) return pwi_cli_failure(bench->command, "%s", pawl_status_text(PAWL_NO_MEMORY));
  for (size_t i = 0; i < count && chart.line_count < PWI_MLNET_SETUPS; i++) {
    if (!rows[i].curve_count) continue;
    struct pwi_mlnet_line *line = &lines[chart.line_count++];
    line->name = rows[i].filter;
    line->count = rows[i].curve_count;
    for (size_t k = 0; k < line->count; k++) {
      line->x[k] = (double)(k + 1);
      line->y[k] = 100 * rows[i].curve[k];
    }
  }
  int problem = pwi_mlnet_draw(bench->svg, &chart);
  pwi_free(lines);
  return problem ? pwi_cli_failure(bench->command, "cannot write %s: %s", bench->svg, strerror(problem)) : PWI_EXIT_OK;
}

/* --- options -------------------------------------------------------------------------------------------- */

static bool read_count(const char *text, uint64_t most, uint64_t *count_out) {
  uint64_t value;
  if (!pwi_cli_number(text, &value) || value < 1 || value > most) return false;
  *count_out = value;
  return true;
}

static bool read_option(void *context, int letter, const char *value) {
  struct pwi_filters_bench *bench = context;
  switch (letter) {
  case LETTER_DATA:
    bench->data = value;
    return *value != '\0';
  case LETTER_EXAMPLES:
    return read_count(value, COUNT_MAX, &bench->examples);
  case LETTER_FEATURES:
    return read_count(value, COUNT_MAX, &bench->features);
  case LETTER_NONZEROS:
    return read_count(value, NONZEROS_MAX, &bench->nonzeros);
  case LETTER_ITERATIONS:
    return pwi_bench_count(value, 1, ITERATIONS_MAX, &bench->iterations);
  case LETTER_L1:
    return pwi_bench_positive(value, 1, &bench->l1) && bench->l1 < 1;
  case LETTER_SEED:
    return pwi_cli_number(value, &bench->seed);
  case LETTER_SVG:
    bench->svg = value;
    return *value != '\0';
  default:
    bench->json |= letter == PWI_CLI_LETTER_JSON;
    return true;
  }
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_filters_bench bench = {.command = command,
                                    .examples = 20000,
                                    .features = 500000,
                                    .nonzeros = 50,
                                    .iterations = 50,
                                    .l1 = 0.002,
                                    .seed = 1};
  struct pwi_filters_row rows[PWI_FILTERS_ROWS];
  size_t count;
  int exit_code;
  if (!pwi_bench_read(command, argc, argv, read_option, &bench, &exit_code)) return exit_code;
  if (!pwi_filters_bench_run(&bench, rows, &count)) return PWI_EXIT_FAILURE;
  if (!bench.json) print_table(rows, count);
  for (size_t i = 0; i < count && bench.json; i++)
    if (print_json(&bench, &rows[i])) return PWI_EXIT_FAILURE;
  return bench.svg ? draw(&bench, rows, count) : PWI_EXIT_OK;
}

static const struct pwi_cli_option options[] = {
    {LETTER_DATA, "data", "FILE", "learn from this file in LIBSVM format (default: generated data)"},
    {LETTER_EXAMPLES, "examples", "N", "examples to generate (default: 20000)"},
    {LETTER_FEATURES, "features", "N", "features to draw from (default: 500000)"},
    {LETTER_NONZEROS, "nonzeros", "N", "most features of an example (default: 50)"},
    {LETTER_ITERATIONS, "iterations", "N", "iterations of learning (default: 50)"},
    {LETTER_L1, "l1", "PART", "lambda relative to the smallest that makes all weights 0 (0.002)"},
    {LETTER_SEED, "seed", "NUMBER", "seed of generated data (default: 1)"},
    {LETTER_SVG, "svg", "FILE", "draw how much kkt leaves out by iteration (OSDI'14, figure 12)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_bench_filters = {
    .name = "filters",
    .summary = "measure the bytes that filters save",
    .text = "Starts a cluster on this machine. Pushes a list of keys repeatedly, with and\n"
            "without key caching; then learns l1-regularised logistic regression with one chain\n"
            "of filters after another. Prints the bytes of all messages, the objective\n"
            "reached, how many features kkt left out in the last iteration, and how many of its\n"
            "conditions a final pass without filters finds violated.\n\n"
            "  pawl-bench filters\n"
            "  pawl-bench filters --data a9a --l1 0.05 --json\n",
    .options = options,
    .run = run,
};
