#include "cli/sketch/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pawl/session.h>

#include "base/memory.h"

#define WINDOWS 10

void pwi_sketch_run_init(struct pwi_sketch_run *run, const struct pwi_command *command, bool read_only) {
  *run = (struct pwi_sketch_run){.command = command};
  pwi_session_choice_init(&run->choice, "sketch", read_only);
  pawl_sketch_options_init(&run->options);
}

/* --- options ---------------------------------------------------------------------------------------------------------------- */

static bool read_count(const char *text, uint64_t most, uint32_t *count_out) {
  uint64_t value;
  if (!pwi_cli_number(text, &value) || value < 1 || value > most) return false;
  *count_out = (uint32_t)value;
  return true;
}

static bool read_kind(const char *text, enum pawl_sketch_kind *kind_out) {
  bool is_count = strcmp(text, "countsketch") == 0;
  if (!is_count && strcmp(text, "countmin") != 0) return false;
  *kind_out = is_count ? PAWL_SKETCH_COUNTSKETCH : PAWL_SKETCH_COUNTMIN;
  return true;
}

/* Parses a duration: 90, 90s, 1.5m, 2h, 1d. */
static bool read_length(const char *text, double *seconds_out) {
  static const struct {
    const char *unit;
    double seconds;
  } units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
  char *end;
  if (*text < '0' || *text > '9') return false;
  double value = strtod(text, &end);
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (strcmp(end, units[i].unit) == 0) {
      *seconds_out = value * units[i].seconds;
      return *seconds_out >= 1e-3 && *seconds_out <= 1e9;
    }
  return false;
}

static bool read_until(const char *text, int64_t *until_out) {
  uint64_t seconds;
  if (strcmp(text, "now") == 0)
    seconds = (uint64_t)time(NULL);
  else if (!pwi_cli_number(text, &seconds) || seconds == 0 || seconds > 9000000000)
    return false;
  *until_out = (int64_t)seconds * 1000000000;
  return true;
}

/* Reads an option. Returns the expected value, or NULL if it is valid or not an option of this group. */
static const char *read_own(struct pwi_sketch_run *run, int letter, const char *value) {
  struct pawl_sketch_options *options = &run->options;
  run->has_making |= letter >= PWI_SKETCH_LETTER_KIND && letter <= PWI_SKETCH_LETTER_NO_DISTINCT;
  switch (letter) {
  case PWI_SKETCH_LETTER_KIND:
    return read_kind(value, &options->kind) ? NULL : "countmin or countsketch";
  case PWI_SKETCH_LETTER_BANKS:
    return read_count(value, 65536, &options->banks) ? NULL : "a number of banks, up to 65536";
  case PWI_SKETCH_LETTER_DEPTH:
    return read_count(value, 8, &options->depth) ? NULL : "a number of rows, up to 8";
  case PWI_SKETCH_LETTER_COLUMNS:
    return read_count(value, 65536, &options->columns) ? NULL : "a number of cells, up to 65536";
  case PWI_SKETCH_LETTER_WINDOW:
    return read_length(value, &options->window_s) ? NULL : "a duration, e.g. 60s, 5m or 1h";
  case PWI_SKETCH_LETTER_WINDOWS:
    return read_count(value, 1000000, &options->windows) ? NULL : "a number of windows";
  case PWI_SKETCH_LETTER_LAST:
    return read_count(value, 1000000, &run->span.last) ? NULL : "a number of windows";
  case PWI_SKETCH_LETTER_UNTIL:
    return read_until(value, &run->span.until_ns) ? NULL : "'now', or seconds since 1970";
  default:
    options->no_top |= letter == PWI_SKETCH_LETTER_NO_TOP;
    options->no_distinct |= letter == PWI_SKETCH_LETTER_NO_DISTINCT;
    run->json |= letter == PWI_CLI_LETTER_JSON;
    return NULL;
  }
}

bool pwi_sketch_run_option(struct pwi_sketch_run *run, int letter, const char *value, int *exit_out) {
  const char *wanted = read_own(run, letter, value);
  if (wanted) {
    *exit_out = pwi_cli_bad_value(run->command, value, "%s", wanted);
    return false;
  }
  return pwi_session_option(&run->choice, run->command, letter, value, exit_out);
}

bool pwi_sketch_run_settle(struct pwi_sketch_run *run, int *exit_out) {
  struct pawl_sketch_options *options = &run->options;
  if (options->window_s > 0 && options->windows == 0) options->windows = WINDOWS;
  if (options->windows == 0 || options->window_s > 0) return true;
  *exit_out = pwi_cli_usage(run->command, "--windows needs --window TIME");
  return false;
}

/* --- opening and closing ---------------------------------------------------------------------------------------------------- */

int pwi_sketch_run_fail(const struct pwi_sketch_run *run, pawl_status status) {
  return pwi_session_failure(run->command, status);
}

int pwi_sketch_run_open(struct pwi_sketch_run *run, const char *name) {
  int exit_code = pwi_session_start(&run->choice, run->command, &run->session);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  pawl_status status = pawl_sketch_open(run->session, name, run->choice.timeout_ns, &run->sketch);
  if (status == PAWL_NOT_FOUND)
    return pwi_cli_failure(run->command, "sketch %s not found; create it with 'pawl sketch create'", name);
  return status ? pwi_sketch_run_fail(run, status) : PWI_EXIT_OK;
}

int pwi_sketch_run_close(struct pwi_sketch_run *run, int exit_code) {
  pawl_sketch_close(run->sketch);
  pawl_status status = pwi_session_end(&run->choice, run->session, exit_code);
  if (status && exit_code == PWI_EXIT_OK) return pwi_sketch_run_fail(run, status);
  return exit_code;
}

/* --- printing --------------------------------------------------------------------------------------------------------------- */

json_t *pwi_sketch_name_json(const char *name, size_t size) {
  json_t *text = json_stringn(name, size);
  if (text) return text;
  char *wide = pwi_alloc(2 * size + 1); /* each byte becomes the character with its number */
  size_t length = 0;
  for (size_t i = 0; wide && i < size; i++) {
    unsigned char byte = (unsigned char)name[i];
    if (byte >= 0x80) wide[length++] = (char)(0xc0 | byte >> 6);
    wide[length++] = (char)(byte >= 0x80 ? (0x80 | (byte & 0x3f)) : byte);
  }
  text = wide ? json_stringn(wide, length) : NULL;
  pwi_free(wide);
  return text;
}

static int print_entry(const struct pwi_sketch_run *run, size_t rank, const struct pawl_sketch_entry *entry) {
  char number[24];
  const char *name = entry->name;
  size_t size = entry->size;
  if (entry->is_number) {
    size = (size_t)snprintf(number, sizeof number, "%" PRIu64, entry->number);
    name = number;
  }
  if (run->json)
    return pwi_cli_print_json(run->command,
                              json_pack("{s:I, s:o, s:I, s:f, s:b}", "rank", (json_int_t)rank, "key",
                                        pwi_sketch_name_json(name, size), "count", (json_int_t)entry->is.count, "error",
                                        entry->is.error, "capped", (int)entry->is.is_capped));
  printf("%6zu %14" PRId64 "%s  %.*s\n", rank, entry->is.count, entry->is.is_capped ? " or more" : "", (int)size, name);
  return PWI_EXIT_OK;
}

int pwi_sketch_print_top(struct pwi_sketch_run *run, uint64_t count) {
  struct pawl_sketch_entry *entries = pwi_alloc_zero((size_t)count, sizeof *entries);
  size_t found;
  if (!entries) return pwi_cli_failure(run->command, "out of memory");
  pawl_status status = pawl_sketch_top(run->sketch, (size_t)count, &run->span, run->choice.timeout_ns, entries, &found);
  int exit_code = status ? pwi_sketch_run_fail(run, status) : PWI_EXIT_OK;
  for (size_t i = 0; exit_code == PWI_EXIT_OK && i < found; i++) exit_code = print_entry(run, i + 1, &entries[i]);
  pwi_free(entries);
  return exit_code;
}

int pwi_sketch_print_distinct(struct pwi_sketch_run *run) {
  double number, error;
  pawl_status status = pawl_sketch_distinct(run->sketch, &run->span, run->choice.timeout_ns, &number, &error);
  if (status) return pwi_sketch_run_fail(run, status);
  if (run->json) return pwi_cli_print_json(run->command, json_pack("{s:f, s:f}", "distinct", number, "error", error));
  printf("%.0f distinct keys, +/- %.0f\n", number, error);
  return PWI_EXIT_OK;
}
