/* `pawl convert`: converts data files to a binary cache. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <pawl/data.h>
#include <pawl/session.h>
#include <pawl/words.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/reading.h"
#include "cli/spool.h"
#include "data/data.h"

enum {
  LETTER_FORMAT = 300,
  LETTER_HASH_BITS,
  LETTER_LABEL,
  LETTER_WORDS,
  LETTER_BINARY,
  LETTER_UNIT_ROWS,
  LETTER_SKIP_BAD,
  LETTER_THREADS,
  LETTER_SEPARATOR,
};

#define PROGRESS_S 0.2 /* seconds between updates of the progress line */

struct convert {
  const struct pwi_command *command;
  struct pawl_data_options options;
  const char *output;
  const char *vocabulary; /* NULL: none */
  uint32_t threads;
  bool json, is_terminal;

  double began_s, shown_s;
  uint64_t input_bytes;
  size_t width; /* of the progress line */
  struct pawl_data_progress last;
};

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number) {
  (void)number;
  is_interrupted = 1;
}

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* --- while it runs ---------------------------------------------------------------------------------------------------------- */

static void clear_line(struct convert *convert) {
  if (convert->width) fprintf(stderr, "\r%*s\r", (int)convert->width, "");
  convert->width = 0;
}

static void show(struct convert *convert, const struct pawl_data_progress *progress) {
  double now = now_s(), part = (double)progress->pieces / (double)progress->of;
  if (!convert->is_terminal || (now - convert->shown_s < PROGRESS_S && progress->pieces < progress->of)) return;
  convert->shown_s = now;
  double took = now - convert->began_s, left = part > 0 ? took / part - took : 0;
  int width = fprintf(stderr, "\r%3.0f %%  %" PRIu64 " rows  %.0f MB/s  %.0f s left   ", 100 * part, progress->rows,
                      part * (double)convert->input_bytes / 1e6 / (took > 0 ? took : 1), left);
  convert->width = width > 0 ? (size_t)width : 0;
  fflush(stderr);
}

static bool progress(void *context, const struct pawl_data_progress *so_far) {
  struct convert *convert = context;
  convert->last = *so_far;
  show(convert, so_far);
  return !is_interrupted;
}

/* --- after it --------------------------------------------------------------------------------------------------------------- */

static uint64_t size_of(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 ? (uint64_t)about.st_size : 0;
}

static bool has_labels(enum pawl_data_format format) {
  return format != PAWL_DATA_LDAC && format != PAWL_DATA_UCI && format != PAWL_DATA_TEXT;
}

static int say_done(const struct convert *convert, const struct pawl_data *data, const struct pawl_data_info *info,
                    uint64_t max_id) {
  const struct pawl_data_progress *last = &convert->last;
  double seconds = now_s() - convert->began_s, rate = (double)info->bytes / 1e6 / (seconds > 0 ? seconds : 1e-9);
  uint64_t bytes = size_of(convert->output), skipped = pawl_data_skipped(data), unknown = atomic_load(&data->unknown);
  if (convert->json)
    return pwi_cli_print_json(convert->command,
                              json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "cache",
                                        pwi_json_string(convert->output), "format", pawl_data_format_name(info->format),
                                        "files", (json_int_t)info->files, "rows", (json_int_t)last->rows, "entries",
                                        (json_int_t)last->entries, "max_id", (json_int_t)max_id, "skipped",
                                        (json_int_t)skipped, "unknown", (json_int_t)unknown, "bytes_read",
                                        (json_int_t)info->bytes, "bytes_written", (json_int_t)bytes, "seconds", seconds,
                                        "mb_per_s", rate));
  printf("%s: %" PRIu64 " rows, %" PRIu64 " entries, features up to %" PRIu64 "\n", convert->output, last->rows,
         last->entries, max_id);
  printf("read %.1f MB of %s in %zu %s, wrote %.1f MB, in %.2f s: %.0f MB/s\n", (double)info->bytes / 1e6,
         pawl_data_format_name(info->format), info->files, info->files == 1 ? "file" : "files", (double)bytes / 1e6,
         seconds, rate);
  if (skipped > 0)
    printf("skipped %" PRIu64 " bad %s, the first: %s\n", skipped, skipped == 1 ? "row" : "rows",
           pawl_data_first_bad(data));
  if (unknown > 0) printf("skipped %" PRIu64 " %s not in the vocabulary\n", unknown, unknown == 1 ? "word" : "words");
  printf("next: pawl train %s %s\n", has_labels(info->format) ? "logistic" : "lda", convert->output);
  return PWI_EXIT_OK;
}

/* Finds the highest feature id while the cache is read. */
static pawl_status highest(void *context, size_t piece, struct pawl_batch *batch) {
  uint64_t *most = context;
  (void)piece;
  if (batch->max_id > *most) *most = batch->max_id;
  pawl_batch_destroy(batch);
  return PAWL_OK;
}

/* Reads the cache once, to detect a faulty disk now. */
static pawl_status verify(const struct convert *convert, uint64_t *max_id_out) {
  struct pawl_data *data;
  struct pawl_data_info info;
  *max_id_out = 0;
  pawl_status status = pawl_data_open(&convert->output, 1, NULL, &data);
  if (status) return status;
  pawl_data_info(data, &info);
  status = pawl_data_read_all(data, 0, info.pieces, convert->threads, highest, max_id_out);
  pawl_data_close(data);
  return status;
}

/* Opens the data, which keeps a reference to the vocabulary. */
static pawl_status open_data(struct convert *convert, const char *const *paths, size_t count,
                             struct pawl_data **data_out) {
  struct pawl_words *words = NULL;
  pawl_status status = convert->vocabulary ? pawl_words_read(convert->vocabulary, &words) : PAWL_OK;
  convert->options.words = words;
  if (!status) status = pawl_data_open(paths, count, &convert->options, data_out);
  convert->options.words = NULL;
  pawl_words_release(words);
  return status;
}

static int run_all(struct convert *convert, const char *const *paths, size_t count) {
  struct pawl_data *data;
  struct pawl_data_info info;
  uint64_t max_id;
  convert->began_s = now_s();
  if (open_data(convert, paths, count, &data)) return pwi_cli_failure(convert->command, "%s", pawl_error_text());
  pawl_data_info(data, &info);
  convert->input_bytes = info.bytes;
  signal(SIGINT, interrupt);
  signal(SIGTERM, interrupt);
  pawl_status status = pawl_data_convert(data, convert->output, convert->threads, progress, convert);
  if (!status) status = verify(convert, &max_id);
  clear_line(convert);
  int exit_code =
      status ? pwi_cli_failure(convert->command, "%s", pawl_error_text()) : say_done(convert, data, &info, max_id);
  if (status == PAWL_CORRUPT && !convert->options.skip_bad)
    fprintf(stderr, "skip up to N bad rows with --skip-bad N\n");
  pawl_data_close(data);
  return exit_code;
}

/* --- options ---------------------------------------------------------------------------------------------------------------- */

/* Reads an option. Returns the expected value, or NULL if it is valid. */
static const char *read_option(struct convert *convert, int letter, const char *value) {
  struct pawl_data_options *options = &convert->options;
  uint64_t number = 0;
  switch (letter) {
  case 'o':
    convert->output = value;
    return NULL;
  case LETTER_FORMAT:
    return pawl_data_format_parse(value, &options->format) ? "auto, libsvm, vw, criteo, csv, ldac, uci, text or cache"
                                                           : NULL;
  case LETTER_HASH_BITS:
    if (!pwi_cli_number(value, &number) || number < 1 || number > 62) return "a whole number from 1 to 62";
    options->hash_bits = (uint32_t)number;
    return NULL;
  case LETTER_LABEL:
    options->label = value;
    return *value ? NULL : "the name or number of a column";
  case LETTER_SEPARATOR:
    return pwi_separator_read(value, options) ? NULL : PWI_SEPARATOR_WANTED;
  case LETTER_WORDS:
    convert->vocabulary = value;
    return *value ? NULL : "the name of a vocabulary file";
  case LETTER_BINARY:
    options->binary = true;
    return NULL;
  case LETTER_UNIT_ROWS:
    options->unit_rows = true;
    return NULL;
  case LETTER_SKIP_BAD:
    return pwi_cli_number(value, &options->skip_bad) ? NULL : "a whole number";
  case LETTER_THREADS:
    if (!pwi_cli_number(value, &number) || number < 1 || number > 1024) return "a whole number from 1 to 1024";
    convert->threads = (uint32_t)number;
    return NULL;
  default:
    convert->json = true;
    return NULL;
  }
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct convert convert = {.command = command};
  struct pwi_cli_args args;
  int letter;
  pawl_data_options_init(&convert.options);
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    const char *due = read_option(&convert, letter, args.value);
    if (due) return pwi_cli_bad_value(command, args.value, "%s", due);
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 1, argc)) return args.exit_code;
  if (!convert.output) return pwi_cli_usage(command, "no output file given; name one with -o FILE");
  convert.is_terminal = !convert.json && isatty(STDERR_FILENO) == 1;
  struct pwi_spool spool;
  int exit_code;
  if (pwi_spool_init(&spool, command, (const char *const *)argv + args.rest, (size_t)(argc - args.rest), convert.json,
                     &exit_code))
    exit_code = run_all(&convert, spool.paths, spool.count);
  pwi_spool_fini(&spool);
  return exit_code;
}

static const struct pwi_cli_option options[] = {
    {'o', "output", "FILE", "write the cache to FILE; an existing file is replaced"},
    {LETTER_FORMAT, "format", "FORMAT",
     "format of the input: auto, libsvm, vw, criteo, csv, ldac, uci, text or cache (default: auto, detected from the "
     "first rows of each file; text is never detected)"},
    {LETTER_HASH_BITS, "hash-bits", "N", "number of bits of hashed feature names, 1 to 62 (default: 22)"},
    {LETTER_LABEL, "label", "COLUMN", "csv: column of the label, by name or by number from 1 (default: the first)"},
    {LETTER_SEPARATOR, "separator", "C",
     "csv: separator of columns: a character, or comma, semicolon, tab, space or bar (default: detected from the first "
     "lines)"},
    {LETTER_WORDS, "vocab", "FILE",
     "ldac, uci, text: vocabulary file, one word per line (default: the words of a text are hashed)"},
    {LETTER_BINARY, "binary", NULL, "set every value to 1"},
    {LETTER_UNIT_ROWS, "unit-rows", NULL, "scale every row to length 1 (after --binary)"},
    {LETTER_SKIP_BAD, "skip-bad", "N", "skip up to N rows that cannot be parsed (default: 0)"},
    {LETTER_THREADS, "threads", "N", "number of threads that parse (default: the number of processors)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_convert = {
    .name = "convert",
    .arguments = "INPUT…",
    .summary = "convert data files to a binary cache that loads fast",
    .text = "Reads labelled rows (LIBSVM, Vowpal Wabbit, Criteo or csv) or documents\n"
            "(LDA-C, UCI or plain text) from files, plain or compressed with gzip, zstd, xz\n"
            "or bzip2, and writes them to one cache file, which has the layout of the rows\n"
            "in memory. INPUT may be a pattern, or - for standard input. docs/data.md\n"
            "specifies the formats.\n\n"
            "  pawl convert rcv1.svm.gz -o rcv1.cache\n"
            "  pawl convert 'day_*.tsv.zst' --hash-bits 24 --skip-bad 100 -o days.cache\n"
            "  pawl convert table.csv --label clicked --unit-rows -o table.cache\n"
            "  pawl convert news.txt --format text --vocab news.words -o news.cache\n",
    .options = options,
    .run = run,
};
