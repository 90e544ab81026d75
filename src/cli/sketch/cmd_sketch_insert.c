/* `pawl sketch insert`: counts the lines of a file or a pipe in a sketch. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <pawl/session.h>
#include <pawl/task.h>

#include "cli/sketch/input.h"
#include "cli/sketch/run.h"

#define EMBEDDED_NAME "sketch/main"
#define REFUSALS_SHOWN 10
#define PROGRESS_NS INT64_C(200000000)
#define FLUSH_NS (INT64_C(10) * 1000000000)

enum {
  LETTER_FROM = 300,
  LETTER_WEIGHTS,
  LETTER_TIMES,
  LETTER_BINARY,
  LETTER_TOP,
  LETTER_DISTINCT,
  LETTER_NO_AGGREGATE,
  LETTER_LOCAL,
};

struct insert {
  struct pwi_sketch_run run;
  const char *from;
  uint64_t top;
  bool prints_distinct, is_embedded, is_local, is_terminal;
  struct pwi_sketch_input input;
  struct pawl_sketch_writer_options options;
  struct pawl_sketch_writer *writer;
  pawl_status status; /* of the first call that failed */
  char failure[1024]; /* error text of that call */
  uint64_t refused;
  int64_t began, shown, flushed;
};

static int64_t now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* --- what is read ----------------------------------------------------------------------------------------------------------- */

static bool good(struct insert *insert, pawl_status status) {
  if (status == PAWL_OK) return true;
  if (insert->status == PAWL_OK) {
    insert->status = status;
    snprintf(insert->failure, sizeof insert->failure, "%s", pawl_error_text());
  }
  return false;
}

static bool add(void *context, const char *key, size_t size, int64_t weight) {
  struct insert *insert = context;
  return good(insert, pawl_sketch_add(insert->writer, key, size, weight));
}

static bool add_numbers(void *context, const uint64_t *numbers, size_t count) {
  struct insert *insert = context;
  return good(insert, pawl_sketch_add_numbers(insert->writer, numbers, count, 1));
}

static bool set_time(void *context, int64_t time_ns) {
  struct insert *insert = context;
  return good(insert, pawl_sketch_set_time(insert->writer, time_ns));
}

static void refuse(void *context, uint64_t line, const char *why) {
  struct insert *insert = context;
  if (insert->refused++ < REFUSALS_SHOWN)
    fprintf(stderr, "%s:%" PRIu64 ": %s\n", strcmp(insert->from, "-") == 0 ? "stdin" : insert->from, line, why);
}

static void show_progress(struct insert *insert, int64_t time) {
  double seconds = (double)(time - insert->began) / 1e9;
  if (!insert->is_terminal || time - insert->shown < PROGRESS_NS) return;
  insert->shown = time;
  fprintf(stderr, "\r%" PRIu64 " read, %.1f million per second ", insert->input.lines,
          (double)insert->input.lines / seconds / 1e6);
}

/* The time of arrival is the time at which a piece was read. A stream that pauses is flushed, so that other
 * clients see its counts. */
static bool pause_here(void *context, bool is_idle) {
  struct insert *insert = context;
  int64_t time = now(CLOCK_MONOTONIC);
  show_progress(insert, time);
  if (insert->run.options.windows && !insert->input.has_times && !set_time(context, now(CLOCK_REALTIME))) return false;
  if (!is_idle && (strcmp(insert->from, "-") != 0 || time - insert->flushed < FLUSH_NS)) return true;
  if (is_idle && insert->flushed == INT64_MAX) return true; /* nothing was read since */
  insert->flushed = is_idle ? INT64_MAX : time;
  return good(insert, pawl_sketch_flush(insert->writer, insert->run.choice.timeout_ns));
}

/* --- the end ---------------------------------------------------------------------------------------------------------------- */

static int print_done(const struct insert *insert, double seconds) {
  struct pawl_sketch_figures is;
  struct pawl_sketch_info info;
  pawl_sketch_figures(insert->writer, &is);
  pawl_sketch_info(insert->run.sketch, &info);
  double bits = is.pairs > 0 ? 8 * (double)is.bytes / (double)is.pairs : 0;
  if (insert->run.json)
    return pwi_cli_print_json(insert->run.command,
                              json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "sketch", info.name, "added",
                                        (json_int_t)is.added, "left_out", (json_int_t)insert->refused, "merged",
                                        (json_int_t)is.merged, "pairs", (json_int_t)is.pairs, "bytes",
                                        (json_int_t)is.bytes, "bits_per_pair", bits, "seconds", seconds, "per_second",
                                        (double)is.added / seconds));
  printf("added %" PRIu64 " to %s in %.2f s: %.2f million per second\n", is.added, info.name, seconds,
         (double)is.added / seconds / 1e6);
  return PWI_EXIT_OK;
}

/* Invalid lines are skipped and make the command fail; all others are counted. */
static int judge(const struct insert *insert, int error) {
  if (error) return pwi_cli_failure(insert->run.command, "cannot read %s: %s", insert->from, strerror(error));
  if (insert->status != PAWL_OK) return pwi_session_failure_of(insert->run.command, insert->status, insert->failure);
  if (insert->refused == 0) return PWI_EXIT_OK;
  return pwi_cli_failure(insert->run.command,
                         "%" PRIu64 " of %" PRIu64 " lines are invalid and were skipped; all others are counted",
                         insert->refused, insert->input.lines);
}

static int read_all(struct insert *insert) {
  insert->began = insert->flushed = now(CLOCK_MONOTONIC);
  insert->input.sink = (struct pwi_sketch_sink){insert, add, add_numbers, set_time, pause_here, refuse};
  int error = pwi_sketch_input_read(&insert->input, insert->from);
  good(insert, pawl_sketch_flush(insert->writer, insert->run.choice.timeout_ns));
  double seconds = (double)(now(CLOCK_MONOTONIC) - insert->began) / 1e9;
  if (insert->is_terminal) fprintf(stderr, "\r\033[K");
  int exit_code = insert->status == PAWL_OK ? print_done(insert, seconds > 0 ? seconds : 1e-9) : PWI_EXIT_OK;
  int printed = exit_code;
  if (insert->status == PAWL_OK && printed == PWI_EXIT_OK && insert->prints_distinct)
    printed = pwi_sketch_print_distinct(&insert->run);
  if (insert->status == PAWL_OK && printed == PWI_EXIT_OK && insert->top > 0)
    printed = pwi_sketch_print_top(&insert->run, insert->top);
  exit_code = judge(insert, error);
  return exit_code == PWI_EXIT_OK ? printed : exit_code;
}

/* --- the beginning ---------------------------------------------------------------------------------------------------------- */

/* Opens the sketch, or creates it if it does not exist. If options of the sketch were given, an existing
 * sketch must have the same. */
static int open_sketch(struct insert *insert, const char *name) {
  struct pwi_sketch_run *run = &insert->run;
  int64_t timeout = run->choice.timeout_ns;
  pawl_status status = PAWL_NOT_FOUND;
  if (!run->has_making) status = pawl_sketch_open(run->session, name, timeout, &run->sketch);
  if (status == PAWL_NOT_FOUND) status = pawl_sketch_ensure(run->session, name, &run->options, timeout, &run->sketch);
  if (status == PAWL_EXISTS)
    return pwi_cli_failure(run->command,
                           "sketch %s already exists with other options; show them with 'pawl sketch list'", name);
  if (status) return pwi_sketch_run_fail(run, status);
  struct pawl_sketch_info info;
  pawl_sketch_info(run->sketch, &info);
  run->options = info.options;
  insert->input.allows_minus = info.options.kind == PAWL_SKETCH_COUNTSKETCH;
  insert->options.timeout_ns = timeout;
  status = pawl_sketch_writer_open(run->sketch, &insert->options, &insert->writer);
  return status ? pwi_sketch_run_fail(run, status) : PWI_EXIT_OK;
}

static int run_insert(struct insert *insert, const char *name) {
  struct pwi_sketch_run *run = &insert->run;
  int exit_code = pwi_session_start(&run->choice, run->command, &run->session);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  exit_code = open_sketch(insert, name);
  if (exit_code == PWI_EXIT_OK && insert->input.has_times && !run->options.windows)
    exit_code =
        pwi_cli_failure(run->command, "--times needs a sketch with time windows; create one with --window TIME");
  if (exit_code == PWI_EXIT_OK) exit_code = read_all(insert);
  pawl_sketch_writer_close(insert->writer); /* flush has reported its errors */
  return pwi_sketch_run_close(run, exit_code);
}

static bool read_option(struct insert *insert, int letter, const char *value) {
  switch (letter) {
  case LETTER_FROM:
    insert->from = value;
    return true;
  case LETTER_TOP:
    return pwi_cli_number(value, &insert->top) && insert->top > 0 && insert->top <= PWI_SKETCH_TOP_MAX;
  default:
    insert->input.has_weights |= letter == LETTER_WEIGHTS;
    insert->input.has_times |= letter == LETTER_TIMES;
    insert->input.is_binary |= letter == LETTER_BINARY;
    insert->prints_distinct |= letter == LETTER_DISTINCT;
    insert->is_local |= letter == LETTER_LOCAL;
    insert->options.no_aggregate |= letter == LETTER_NO_AGGREGATE;
    return true;
  }
}

static int check_options(struct insert *insert, const char *name) {
  const struct pwi_command *command = insert->run.command;
  if (!insert->from)
    return pwi_cli_usage(command, "no input given; name it with --from FILE, or --from - for standard input");
  if (insert->input.is_binary && (insert->input.has_weights || insert->input.has_times))
    return pwi_cli_usage(command, "--binary excludes --weights and --times");
  if (!name && !insert->is_embedded) return pwi_cli_usage(command, "missing argument; expected SPACE/NAME");
  if (insert->top > 0 && insert->run.options.no_top)
    return pwi_cli_usage(command, "--top and --no-top exclude each other");
  return PWI_EXIT_OK;
}

/* Without a cluster: uses the cluster at the default address if one answers and a sketch was named, else a
 * temporary cluster. */
static void choose_place(struct insert *insert, const char *name) {
  const char *why = name ? "no cluster answers at " : "no sketch given; ";
  if (!insert->is_local && name && pwi_session_default_answers()) {
    insert->is_embedded = false;
    return;
  }
  if (!insert->is_local)
    fprintf(stderr, "pawl sketch insert: %s%scounting in a temporary cluster, which ends with this command\n", why,
            name ? "127.0.0.1:7295 (set another address with --cluster); " : "");
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct insert insert = {.from = NULL};
  struct pwi_cli_args args;
  int letter, exit_code = PWI_EXIT_OK;
  const char *address = getenv("PAWL_ADDRESS");
  pwi_sketch_run_init(&insert.run, command, false);
  pawl_sketch_writer_options_init(&insert.options);
  insert.is_embedded = !address || !*address;
  insert.is_terminal = isatty(STDERR_FILENO);
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (!read_option(&insert, letter, args.value))
      return pwi_cli_bad_value(command, args.value, "a number from 1 to %d", PWI_SKETCH_TOP_MAX);
    if (!pwi_sketch_run_option(&insert.run, letter, args.value, &exit_code)) return exit_code;
    insert.is_embedded &= letter != PWI_SESSION_CLUSTER;
  }
  insert.is_embedded |= insert.is_local;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 1)) return args.exit_code;
  if (!pwi_sketch_run_settle(&insert.run, &exit_code)) return exit_code;
  const char *name = args.rest < argc ? argv[args.rest] : NULL;
  exit_code = check_options(&insert, name);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  if (insert.is_embedded) choose_place(&insert, name);
  if (insert.is_embedded) insert.run.choice.options.address = NULL;
  if (insert.is_embedded && insert.run.choice.timeout_ns < 30 * PAWL_SECOND)
    insert.run.choice.timeout_ns = 30 * PAWL_SECOND; /* starting a cluster takes time */
  return run_insert(&insert, name ? name : EMBEDDED_NAME);
}

static const struct pwi_cli_option options[] = {
    {LETTER_FROM, "from", "FILE", "read keys from FILE; - is standard input"},
    {LETTER_WEIGHTS, "weights", NULL, "read lines of a key, a tab and a weight"},
    {LETTER_TIMES, "times", NULL,
     "read lines that begin with the seconds since 1970 and a tab (default: the time of arrival)"},
    {LETTER_BINARY, "binary", NULL, "read 64-bit little-endian numbers instead of lines"},
    {LETTER_TOP, "top", "N", "print the N most frequent keys at the end"},
    {LETTER_DISTINCT, "distinct", NULL, "print the number of distinct keys at the end"},
    {LETTER_NO_AGGREGATE, "no-aggregate", NULL, "send every key separately, even if it repeats"},
    {LETTER_LOCAL, "local", NULL, "count in a temporary cluster, which ends with this command"},
    PWI_SKETCH_MAKING,
    PWI_SESSION_OPTIONS,
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_sketch_insert = {
    .name = "sketch insert",
    .arguments = "[SPACE/NAME]",
    .summary = "count the lines of a file or of standard input",
    .text = "Adds every line to a sketch in the cluster at --cluster, PAWL_ADDRESS or\n"
            "127.0.0.1:7295. Creates the sketch if it does not exist. With --local, or if\n"
            "no cluster answers or no sketch is given, starts a temporary cluster for this\n"
            "command; then only the output of --top and --distinct remains. Invalid lines\n"
            "are reported and skipped, all others are counted; the exit code is then 1.\n\n"
            "  pawl sketch insert --from access.log --top 20\n"
            "  zcat words.gz | pawl sketch insert web/words --from - --cluster host:7295\n"
            "  pawl sketch insert web/pages --from hits.tsv --times --weights --window 60s\n",
    .options = options,
    .run = run,
};
