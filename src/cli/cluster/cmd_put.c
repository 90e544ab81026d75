/* `pawl put`: pushes values from the command line or from a file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/filter.h>
#include <pawl/session.h>
#include <pawl/task.h>
#include <pawl/vector.h>

#include "cli/cli.h"
#include "cli/session_options.h"
#include "cli/cluster/values.h"

#define BATCH_BYTES ((size_t)16 << 20)

enum {
  LETTER_CREATE = 300,
  LETTER_TYPE,
  LETTER_WIDTH,
  LETTER_SIZE,
  LETTER_FUNCTION,
  LETTER_PLACEMENT,
  LETTER_FILTERS,
  LETTER_LAYOUT,
};

struct put {
  const struct pwi_command *command;
  struct pwi_session_choice choice;
  bool json, create, has_options;
  struct pawl_vector_options options;
  const char *name, *file;
  char **words; /* KEY=VALUES */
  int word_count;

  struct pawl_session *session;
  struct pawl_vector *vector;
  struct pawl_vector_info info;
  struct pwi_rows_read rows;
};

/* --- reading rows ------------------------------------------------------------------------------------------------------- */

/* `where` is the row's place: `rows.txt:7:` or `'3=x':`. */
static int refuse_row(const struct put *put, const char *where, enum pwi_row_fault fault) {
  const struct pawl_vector_options *is = &put->info.options;
  switch (fault) {
  case PWI_ROW_NO_KEY:
    return pwi_cli_failure(put->command, "%s expected a key first, a whole number", where);
  case PWI_ROW_BAD_VALUE:
    return pwi_cli_failure(put->command, "%s a value is not a number of type %s", where, pwi_value_type_name(is->type));
  case PWI_ROW_TOO_FEW:
  case PWI_ROW_TOO_MANY:
    return pwi_cli_failure(put->command, "%s too %s values; %s has %" PRIu32 " values per key", where,
                           fault == PWI_ROW_TOO_FEW ? "few" : "many", put->name, put->info.pushed_width);
  default:
    return pwi_cli_failure(put->command, "out of memory");
  }
}

static int read_words(struct put *put) {
  for (int i = 0; i < put->word_count; i++) {
    enum pwi_row_fault fault = pwi_rows_add(&put->rows, put->words[i], '=');
    char where[80];
    if (!fault) continue;
    snprintf(where, sizeof where, "'%.60s':", put->words[i]);
    return refuse_row(put, where, fault);
  }
  return PWI_EXIT_OK;
}

static int read_lines(struct put *put, FILE *file) {
  char *line = NULL, where[80];
  size_t room = 0;
  int exit_code = PWI_EXIT_OK;
  for (size_t number = 1; exit_code == PWI_EXIT_OK && getline(&line, &room, file) >= 0; number++) {
    const char *text = line + strspn(line, " \t\r\n");
    enum pwi_row_fault fault = *text && *text != '#' ? pwi_rows_add(&put->rows, text, ' ') : PWI_ROW_OK;
    if (!fault) continue;
    snprintf(where, sizeof where, "%.50s:%zu:", put->file, number);
    exit_code = refuse_row(put, where, fault);
  }
  if (exit_code == PWI_EXIT_OK && ferror(file))
    exit_code = pwi_cli_failure(put->command, "cannot read %s: %s", put->file, strerror(errno));
  free(line); /* allocated by getline */
  return exit_code;
}

static int read_file(struct put *put) {
  if (strcmp(put->file, "-") == 0) return read_lines(put, stdin);
  FILE *file = fopen(put->file, "re");
  if (!file) return pwi_cli_failure(put->command, "cannot open %s: %s", put->file, strerror(errno));
  int exit_code = read_lines(put, file);
  fclose(file);
  return exit_code;
}

static int read_rows(struct put *put) {
  uint64_t twice;
  put->rows.type = put->info.options.type;
  put->rows.width = put->info.pushed_width;
  int exit_code = read_words(put);
  if (exit_code == PWI_EXIT_OK && put->file) exit_code = read_file(put);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  pawl_status status = pwi_rows_sort(&put->rows, &twice);
  if (status == PAWL_EXISTS) return pwi_cli_failure(put->command, "key %" PRIu64 " is given twice", twice);
  return status ? pwi_cli_failure(put->command, "%s", pawl_status_text(status)) : PWI_EXIT_OK;
}

/* --- pushing ------------------------------------------------------------------------------------------------------------ */

static pawl_status push(struct put *put, size_t at, size_t count, size_t row_bytes) {
  struct pawl_task *task;
  pawl_status status =
      pawl_vector_push(put->vector, pawl_at_keys(put->rows.keys + at, count), put->rows.values + at * row_bytes, &task);
  if (status) return status;
  status = pawl_task_wait(task, put->choice.timeout_ns);
  char text[512];
  if (status && status != PAWL_TIMED_OUT) {
    pawl_task_describe(task, text, sizeof text);
    fprintf(stderr, "pawl put: %s\n", text);
  }
  pawl_task_release(task);
  return status;
}

static int push_rows(struct put *put) {
  const struct pawl_vector_options *is = &put->info.options;
  size_t row_bytes = pawl_type_size(is->type) * put->info.pushed_width, batch = BATCH_BYTES / row_bytes;
  if (batch == 0) batch = 1;
  for (size_t at = 0; at < put->rows.count; at += batch) {
    size_t left = put->rows.count - at;
    pawl_status status = push(put, at, left < batch ? left : batch, row_bytes);
    if (status == PAWL_OUT_OF_SPAN)
      return pwi_cli_failure(put->command,
                             "key out of range: %s has keys 0 to %" PRIu64 "; key %" PRIu64
                             " and the keys after it were not pushed",
                             put->name, is->size - 1, put->rows.keys[at]);
    if (status) return pwi_session_failure(put->command, status);
  }
  return PWI_EXIT_OK;
}

static int say_done(const struct put *put) {
  const char *verb = put->info.options.function == PAWL_ASSIGN ? "assigned"
                     : put->info.options.function == PAWL_ADD  ? "added"
                                                               : "pushed";
  if (put->json)
    return pwi_cli_print_json(put->command,
                              json_pack("{s:s, s:I, s:s}", "vector", put->name, "rows", (json_int_t)put->rows.count,
                                        "function", pwi_value_function_text(&put->info.options)));
  printf("%s %zu %s of %s\n", verb, put->rows.count, put->rows.count == 1 ? "row" : "rows", put->name);
  return PWI_EXIT_OK;
}

static int open_vector(struct put *put) {
  int64_t timeout = put->choice.timeout_ns;
  pawl_status status = put->create ? pawl_vector_ensure(put->session, put->name, &put->options, timeout, &put->vector)
                                   : pawl_vector_open(put->session, put->name, timeout, &put->vector);
  if (status == PAWL_NOT_FOUND)
    return pwi_cli_failure(put->command, "vector %s not found; create it with --create", put->name);
  if (status == PAWL_EXISTS)
    return pwi_cli_failure(put->command,
                           "vector %s already exists with other options; show them with 'pawl get --list'", put->name);
  if (!status) status = pawl_vector_filter(put->vector, "none", NULL); /* push exact values */
  if (status) return pwi_session_failure(put->command, status);
  pawl_vector_info(put->vector, &put->info);
  return PWI_EXIT_OK;
}

static int run_put(struct put *put) {
  int exit_code = pwi_session_start(&put->choice, put->command, &put->session);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  exit_code = open_vector(put);
  if (exit_code == PWI_EXIT_OK) exit_code = read_rows(put);
  if (exit_code == PWI_EXIT_OK) exit_code = push_rows(put);
  pawl_status status = pwi_session_end(&put->choice, put->session, exit_code);
  if (exit_code == PWI_EXIT_OK) exit_code = status ? pwi_session_failure(put->command, status) : say_done(put);
  pwi_rows_fini(&put->rows); /* only after the close: a push that timed out may still read */
  return exit_code;
}

/* --- options ------------------------------------------------------------------------------------------------------------ */

static bool read_whole(const char *text, uint64_t most, uint64_t *number_out) {
  return pwi_cli_number(text, number_out) && *number_out > 0 && *number_out <= most;
}

/* Reads an option. Returns the expected value, or NULL if it is valid or not an option of this group. */
static const char *read_own(struct put *put, int letter, const char *value) {
  struct pawl_vector_options *options = &put->options;
  uint64_t number = 0;
  put->has_options |= letter >= LETTER_TYPE && letter <= LETTER_LAYOUT;
  switch (letter) {
  case LETTER_TYPE:
    return pwi_value_type_read(value, &options->type) ? NULL : "f32, f64, i32, i64 or u64";
  case LETTER_WIDTH:
    if (!read_whole(value, PAWL_WIDTH_MAX, &number)) return "a number of values per key";
    options->width = (uint32_t)number;
    return NULL;
  case LETTER_SIZE:
    return read_whole(value, PAWL_KEY_END, &options->size) ? NULL : "a number of keys";
  case LETTER_FUNCTION:
    return pwi_value_function_read(value, options) ? NULL : "a server function, such as add or 'adagrad rate=0.1'";
  case LETTER_PLACEMENT:
    return pwi_value_placement_read(value, &options->placement) ? NULL : "auto, ordered or mixed";
  case LETTER_FILTERS:
    if (strlen(value) > PAWL_FILTERS_OPTION_MAX) return "a chain of filters, at most 255 characters";
    strcpy(options->filters, value);
    return NULL;
  case LETTER_LAYOUT:
    return pwi_value_layout_read(value, &options->layout) ? NULL : "auto, dense or sparse";
  case LETTER_CREATE:
    put->create = true;
    return NULL;
  case 'f':
    put->file = value;
    return NULL;
  case PWI_CLI_LETTER_JSON:
    put->json = true;
    return NULL;
  default:
    return NULL;
  }
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct put put = {.command = command};
  struct pwi_cli_args args;
  const char *wanted;
  int letter, exit_code = PWI_EXIT_OK;
  pwi_session_choice_init(&put.choice, "put", false);
  pawl_vector_options_init(&put.options);
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if ((wanted = read_own(&put, letter, args.value))) return pwi_cli_bad_value(command, args.value, "%s", wanted);
    if (!pwi_session_option(&put.choice, command, letter, args.value, &exit_code)) return exit_code;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 1, argc)) return args.exit_code;
  put.name = argv[args.rest];
  put.words = argv + args.rest + 1;
  put.word_count = argc - args.rest - 1;
  if (put.has_options && !put.create)
    return pwi_cli_usage(command, "--type, --width and other options of a vector need --create");
  if (put.word_count == 0 && !put.file && !put.create)
    return pwi_cli_usage(command, "nothing to put; give KEY=VALUE or --file FILE");
  return run_put(&put);
}

static const struct pwi_cli_option options[] = {
    {'f', "file", "FILE", "read lines 'key value ...', as 'pawl get' prints them; - is standard input"},
    {LETTER_CREATE, "create", NULL, "create the vector if it does not exist"},
    {LETTER_TYPE, "type", "TYPE", "type of the values: f32 (default), f64, i32, i64 or u64"},
    {LETTER_WIDTH, "width", "N", "number of values per key (default: 1)"},
    {LETTER_SIZE, "size", "N", "number of keys; they are 0 to N-1 (default: any 64-bit key)"},
    {LETTER_FUNCTION, "function", "RULE",
     "server function that applies pushes: add (default), assign, 'adagrad rate=0.1' and others"},
    {LETTER_PLACEMENT, "placement", "WORD", "placement of keys on the servers: auto, ordered or mixed"},
    {LETTER_FILTERS, "filters", "CHAIN", "filters of the workers' pushes and pulls, e.g. 'half | zeros'"},
    {LETTER_LAYOUT, "layout", "WORD", "layout of rows in memory: auto, dense or sparse"},
    PWI_SESSION_OPTIONS,
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_put = {
    .name = "put",
    .arguments = "SPACE/NAME [KEY=VALUE[,VALUE...] ...]",
    .summary = "push values to a vector",
    .text = "Pushes rows to a vector, whose server function adds or assigns them. Each row\n"
            "is applied exactly once, even after failures. All rows are read before the\n"
            "first one is pushed; a key may occur only once.\n\n"
            "  pawl put ads/weights --create --size 1000 17=0.5 4=-1\n"
            "  pawl put ads/matrix --create --width 3 --function assign 0=1,2,3 1=4,5,6\n"
            "  pawl get ads/weights --limit 0 | pawl put ads/copy --create --file -\n",
    .options = options,
    .run = run,
};
