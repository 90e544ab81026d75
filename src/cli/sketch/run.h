/* Shared by the commands of `pawl sketch`: options of a sketch, opening it, and printing results. */
#ifndef PWI_CLI_SKETCH_RUN_H
#define PWI_CLI_SKETCH_RUN_H

#include <pawl/sketch.h>

#include "cli/cli.h"
#include "cli/session_options.h"

enum {
  PWI_SKETCH_LETTER_KIND = 600,
  PWI_SKETCH_LETTER_BANKS,
  PWI_SKETCH_LETTER_DEPTH,
  PWI_SKETCH_LETTER_COLUMNS,
  PWI_SKETCH_LETTER_WINDOW,
  PWI_SKETCH_LETTER_WINDOWS,
  PWI_SKETCH_LETTER_NO_TOP,
  PWI_SKETCH_LETTER_NO_DISTINCT,
  PWI_SKETCH_LETTER_LAST,
  PWI_SKETCH_LETTER_UNTIL,
};

/* Options for creating a sketch. */
#define PWI_SKETCH_MAKING                                                                                              \
  {PWI_SKETCH_LETTER_KIND, "kind", "KIND", "kind of sketch: countmin (default) or countsketch"},                       \
      {PWI_SKETCH_LETTER_BANKS, "banks", "N", "number of banks that keys are spread over (default: 64)"},              \
      {PWI_SKETCH_LETTER_DEPTH, "depth", "N", "number of rows of a bank (default: 4; count sketch: 5)"},               \
      {PWI_SKETCH_LETTER_COLUMNS, "columns", "N", "number of cells of a row, a power of two (default: 1024)"},         \
      {PWI_SKETCH_LETTER_WINDOW, "window", "TIME", "length of a time window, e.g. 60s, 5m or 1h"},                     \
      {PWI_SKETCH_LETTER_WINDOWS, "windows", "N", "number of time windows to keep (default with --window: 10)"},       \
      {PWI_SKETCH_LETTER_NO_TOP, "no-top", NULL, "do not keep the most frequent keys for 'pawl sketch top'"}, {        \
    PWI_SKETCH_LETTER_NO_DISTINCT, "no-distinct", NULL, "do not count distinct keys"                                   \
  }

/* Options that select time windows. */
#define PWI_SKETCH_ASKING                                                                                              \
  {PWI_SKETCH_LETTER_LAST, "last", "N", "use only the last N time windows (default: all that are kept)"}, {            \
    PWI_SKETCH_LETTER_UNTIL, "until", "TIME",                                                                          \
        "end of the time windows: 'now' or seconds since 1970 (default: the newest window written to)"                 \
  }

struct pwi_sketch_run {
  const struct pwi_command *command;
  struct pwi_session_choice choice;
  bool json;
  bool has_making; /* an option for creating a sketch was given */
  struct pawl_sketch_options options;
  struct pawl_sketch_span span;
  struct pawl_session *session;
  struct pawl_sketch *sketch;
};

void pwi_sketch_run_init(struct pwi_sketch_run *run, const struct pwi_command *command, bool read_only);

/* Handles an option that pwi_cli_next returned: of a sketch, of sessions, or --json. If it returns false,
 * return `*exit_out`. */
bool pwi_sketch_run_option(struct pwi_sketch_run *run, int letter, const char *value, int *exit_out);

/* After the last option: checks that the options are compatible. */
bool pwi_sketch_run_settle(struct pwi_sketch_run *run, int *exit_out);

/* Opens the session and the sketch. Returns PWI_EXIT_OK, or prints an error. Always close with
 * pwi_sketch_run_close. */
int pwi_sketch_run_open(struct pwi_sketch_run *run, const char *name);

/* Closes sketch and session. Returns `exit_code`, or a failure if closing fails. */
int pwi_sketch_run_close(struct pwi_sketch_run *run, int exit_code);

/* Prints the error of the last call. Returns the exit code. */
int pwi_sketch_run_fail(const struct pwi_sketch_run *run, pawl_status status);

/* --- printing ----------------------------------------------------------------------------------------------------------- */

/* A name as a JSON string. A name that is not UTF-8 is converted byte by byte, so that different names stay
 * different. */
json_t *pwi_sketch_name_json(const char *name, size_t size);

/* Print the most frequent keys, and the number of distinct keys. */
int pwi_sketch_print_top(struct pwi_sketch_run *run, uint64_t count);
int pwi_sketch_print_distinct(struct pwi_sketch_run *run);

#define PWI_SKETCH_TOP_MAX 4096

extern const struct pwi_command pwi_command_sketch_insert, pwi_command_sketch_query, pwi_command_sketch_top,
    pwi_command_sketch_distinct;

#endif
