/* `pawl sketch query`, `top` and `distinct`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/sketch/run.h"

#define LETTER_NUMBER 300
#define DEFAULT_TOP 20

/* --- query ------------------------------------------------------------------------------------------------------------------ */

static int print_count(const struct pwi_sketch_run *run, const char *key, const struct pawl_sketch_count *is) {
  bool is_signed = run->options.kind == PAWL_SKETCH_COUNTSKETCH;
  if (run->json)
    return pwi_cli_print_json(run->command,
                              json_pack("{s:o, s:I, s:f, s:b}", "key", pwi_sketch_name_json(key, strlen(key)), "count",
                                        (json_int_t)is->count, "error", is->error, "capped", (int)is->is_capped));
  if (is->is_capped) {
    printf("%s %s %" PRId64 " (the counter is saturated)\n", key, is->count < 0 ? "at most" : "at least", is->count);
    return PWI_EXIT_OK;
  }
  printf(is_signed ? "%s %" PRId64 " (+/- %.0f)\n" : "%s %" PRId64 " (at most %.0f too many)\n", key, is->count,
         is->error);
  return PWI_EXIT_OK;
}

static int query_keys(struct pwi_sketch_run *run, const struct pawl_sketch_key *keys, char **words, size_t count,
                      struct pawl_sketch_count *counts) {
  struct pawl_sketch_info info;
  pawl_status status = pawl_sketch_query(run->sketch, keys, count, &run->span, run->choice.timeout_ns, counts);
  int exit_code = status ? pwi_sketch_run_fail(run, status) : PWI_EXIT_OK;
  pawl_sketch_info(run->sketch, &info);
  run->options = info.options;
  for (size_t i = 0; i < count && exit_code == PWI_EXIT_OK; i++) exit_code = print_count(run, words[i], &counts[i]);
  return exit_code;
}

static int run_query(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_sketch_run run;
  struct pwi_cli_args args;
  bool are_numbers = false;
  int letter, exit_code = PWI_EXIT_OK;
  pwi_sketch_run_init(&run, command, true);
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    are_numbers |= letter == LETTER_NUMBER;
    if (!pwi_sketch_run_option(&run, letter, args.value, &exit_code)) return exit_code;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 2, argc)) return args.exit_code;
  size_t count = (size_t)(argc - args.rest - 1);
  char **words = argv + args.rest + 1;
  struct pawl_sketch_key *keys = pwi_alloc_zero(count, sizeof *keys);
  struct pawl_sketch_count *counts = pwi_alloc_zero(count, sizeof *counts);
  if (!keys || !counts) exit_code = pwi_cli_failure(command, "out of memory");
  for (size_t i = 0; i < count && exit_code == PWI_EXIT_OK; i++) {
    keys[i] = (struct pawl_sketch_key){.bytes = are_numbers ? NULL : words[i], .size = strlen(words[i])};
    if (are_numbers && !pwi_cli_number(words[i], &keys[i].number))
      exit_code = pwi_cli_usage(command, "'%s' is not a 64-bit number", words[i]);
  }
  if (exit_code == PWI_EXIT_OK) {
    exit_code = pwi_sketch_run_open(&run, argv[args.rest]);
    if (exit_code == PWI_EXIT_OK) exit_code = query_keys(&run, keys, words, count, counts);
    exit_code = pwi_sketch_run_close(&run, exit_code);
  }
  pwi_free(keys);
  pwi_free(counts);
  return exit_code;
}

static const struct pwi_cli_option query_options[] = {
    {LETTER_NUMBER, "number", NULL, "take KEYs as numbers, as 'pawl sketch insert --binary' reads them"},
    PWI_SKETCH_ASKING,
    PWI_SESSION_OPTIONS,
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_sketch_query = {
    .name = "sketch query",
    .arguments = "SPACE/NAME KEY ...",
    .summary = "print the estimated counts of keys",
    .text = "Prints the estimated count of each key and its error bound. The estimate of a\n"
            "CountMin sketch is never too low; it exceeds the bound for about one key in\n"
            "fifty (depth 4). A count sketch errs in both directions.\n\n"
            "  pawl sketch query web/words the of zymurgy\n",
    .options = query_options,
    .run = run_query,
};

/* --- top and distinct ------------------------------------------------------------------------------------------------------- */

/* Parses the options and up to `most` arguments, and opens the sketch that the first argument names. */
static bool begin(struct pwi_sketch_run *run, const struct pwi_command *command, int argc, char **argv, int most,
                  struct pwi_cli_args *args, int *exit_out) {
  int letter;
  *exit_out = PWI_EXIT_OK;
  pwi_sketch_run_init(run, command, true);
  pwi_cli_begin(args, command, argc, argv);
  while ((letter = pwi_cli_next(args)) >= 0)
    if (!pwi_sketch_run_option(run, letter, args->value, exit_out)) return false;
  if (letter != PWI_CLI_STOP && pwi_cli_arguments(args, 1, most)) return true;
  *exit_out = args->exit_code;
  return false;
}

static int run_top(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_sketch_run run;
  struct pwi_cli_args args;
  uint64_t count = DEFAULT_TOP;
  int exit_code;
  if (!begin(&run, command, argc, argv, 2, &args, &exit_code)) return exit_code;
  const char *word = args.rest + 1 < argc ? argv[args.rest + 1] : NULL;
  if (word && (!pwi_cli_number(word, &count) || count < 1 || count > PWI_SKETCH_TOP_MAX))
    return pwi_cli_usage(command, "'%s' is not a number from 1 to %d", word, PWI_SKETCH_TOP_MAX);
  exit_code = pwi_sketch_run_open(&run, argv[args.rest]);
  if (exit_code == PWI_EXIT_OK) exit_code = pwi_sketch_print_top(&run, count);
  return pwi_sketch_run_close(&run, exit_code);
}

static int run_distinct(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_sketch_run run;
  struct pwi_cli_args args;
  int exit_code;
  if (!begin(&run, command, argc, argv, 1, &args, &exit_code)) return exit_code;
  exit_code = pwi_sketch_run_open(&run, argv[args.rest]);
  if (exit_code == PWI_EXIT_OK) exit_code = pwi_sketch_print_distinct(&run);
  return pwi_sketch_run_close(&run, exit_code);
}

static const struct pwi_cli_option ask_options[] = {
    PWI_SKETCH_ASKING,
    PWI_SESSION_OPTIONS,
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_sketch_top = {
    .name = "sketch top",
    .arguments = "SPACE/NAME [N]",
    .summary = "print the most frequent keys",
    .text = "Prints the N (default: 20) most frequent keys: rank, count, key.\n\n"
            "  pawl sketch top web/words 10\n",
    .options = ask_options,
    .run = run_top,
};

const struct pwi_command pwi_command_sketch_distinct = {
    .name = "sketch distinct",
    .arguments = "SPACE/NAME",
    .summary = "print the number of distinct keys",
    .text = "Prints the estimated number of distinct keys, and its standard error of 0.8 %.\n",
    .options = ask_options,
    .run = run_distinct,
};
