/* `pawl lda infer`: infers the topics of documents. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/apart.h"
#include "cli/models/lda_input.h"

enum { LETTER_ALL = PWI_LDA_OWN };

#define TOP_DEFAULT 5
#define NUMBERS_MAX ((size_t)4 << 20) /* numbers of theta in memory at once */
#define ROWS_MAX 4096

struct share {
  uint32_t topic;
  float theta;
};

struct infer {
  struct pwi_lda_input input;
  const char *output;
  FILE *file;
  uint64_t top;
  bool all, json;
  size_t rows; /* number of documents at a time */
  float *theta;
  struct share *shares; /* shares of the topics of one document */
  uint64_t document;    /* number of the last document */
  uint64_t unknown, nothing;
};

/* --- a document ------------------------------------------------------------------------------------------------------------- */

static int by_theta(const void *a, const void *b) {
  const struct share *one = a, *other = b;
  if (one->theta != other->theta) return one->theta > other->theta ? -1 : 1;
  return one->topic < other->topic ? -1 : one->topic > other->topic;
}

/* Sorts the shares, the largest first. Returns how many to print. */
static size_t sort_shares(struct infer *infer, const float *theta) {
  size_t topics = (size_t)infer->input.topics;
  for (size_t k = 0; k < topics; k++) infer->shares[k] = (struct share){(uint32_t)k, theta[k]};
  qsort(infer->shares, topics, sizeof *infer->shares, by_theta);
  return infer->top < topics ? (size_t)infer->top : topics;
}

static void print_text(struct infer *infer, const float *theta, bool is_known) {
  fprintf(infer->file, "%" PRIu64, infer->document);
  if (infer->all) {
    for (uint64_t k = 0; k < infer->input.topics; k++) fprintf(infer->file, " %.6g", (double)theta[k]);
  } else if (is_known) {
    size_t count = sort_shares(infer, theta);
    for (size_t i = 0; i < count; i++)
      fprintf(infer->file, "%s%" PRIu32 " %.4f", i ? ", " : ": ", infer->shares[i].topic,
              (double)infer->shares[i].theta);
  } else {
    fputs(": no known word", infer->file);
  }
  fputc('\n', infer->file);
}

static int print_json(struct infer *infer, const float *theta, double tokens) {
  json_t *object = json_pack("{s:I, s:f}", "document", (json_int_t)infer->document, "tokens", tokens);
  json_t *list = json_array();
  size_t count = infer->all || tokens == 0 ? 0 : sort_shares(infer, theta);
  for (size_t i = 0; i < count; i++)
    json_array_append_new(list, json_pack("{s:I, s:f}", "topic", (json_int_t)infer->shares[i].topic, "share",
                                          (double)infer->shares[i].theta));
  for (uint64_t k = 0; infer->all && k < infer->input.topics; k++)
    json_array_append_new(list, json_real((double)theta[k]));
  json_object_set_new(object, infer->all ? "theta" : "topics", list);
  bool is_fine = object && json_dumpf(object, infer->file, JSON_COMPACT | JSON_REAL_PRECISION(7)) == 0;
  json_decref(object);
  fputc('\n', infer->file);
  return is_fine || ferror(infer->file) ? PWI_EXIT_OK : pwi_cli_failure(infer->input.command, "out of memory");
}

/* The number of tokens that the model knows. */
static double count_known(const struct infer *infer, const struct pawl_batch *batch, size_t row) {
  double tokens = 0;
  for (size_t i = batch->starts[row]; i < batch->starts[row + 1]; i++) {
    float count = batch->values ? batch->values[i] : 1;
    if (batch->ids[i] - 1 < infer->input.words && count > 0) tokens += (double)count;
  }
  return tokens;
}

static int print_rows(struct infer *infer, const struct pawl_batch *batch) {
  int exit_code = PWI_EXIT_OK;
  for (size_t row = 0; row < batch->rows && exit_code == PWI_EXIT_OK; row++) {
    const float *theta = infer->theta + row * infer->input.topics;
    double tokens = count_known(infer, batch, row);
    infer->document++;
    infer->nothing += tokens == 0;
    if (infer->json)
      exit_code = print_json(infer, theta, tokens);
    else
      print_text(infer, theta, tokens > 0);
  }
  return exit_code;
}

/* --- all of them ------------------------------------------------------------------------------------------------------------ */

/* Handles a batch in parts, so that theta of all its documents need not be in memory. */
static int infer_batch(struct infer *infer, const struct pawl_batch *batch) {
  int exit_code = PWI_EXIT_OK;
  infer->unknown += batch->unknown;
  for (size_t begin = 0; begin < batch->rows && exit_code == PWI_EXIT_OK; begin += infer->rows) {
    struct pawl_batch part = *batch;
    uint64_t unknown = 0;
    part.starts += begin;
    part.rows = batch->rows - begin < infer->rows ? batch->rows - begin : infer->rows;
    part.unknown = 0;
    pawl_status status = pawl_lda_infer(infer->input.model, &part, &infer->input.folding, infer->theta, &unknown);
    exit_code =
        status ? pwi_cli_failure(infer->input.command, "%s", pawl_status_text(status)) : print_rows(infer, &part);
    infer->unknown += unknown;
    if (ferror(infer->file)) break;
  }
  return exit_code;
}

/* Reads the pieces in order, because documents are numbered in order. */
static int infer_all(struct infer *infer) {
  struct pawl_data_info info;
  int exit_code = PWI_EXIT_OK;
  pawl_data_info(infer->input.data, &info);
  for (size_t piece = 0; piece < info.pieces && exit_code == PWI_EXIT_OK && !ferror(infer->file); piece++) {
    struct pawl_batch *batch;
    pawl_status status = pawl_data_read(infer->input.data, piece, &batch);
    if (status) return pwi_lda_input_failed(&infer->input, status);
    exit_code = infer_batch(infer, batch);
    pawl_batch_destroy(batch);
  }
  return exit_code;
}

static int open_output(struct infer *infer) {
  bool is_standard = !infer->output || strcmp(infer->output, "-") == 0;
  size_t rows = NUMBERS_MAX / (size_t)infer->input.topics;
  infer->rows = rows < 1 ? 1 : rows < ROWS_MAX ? rows : ROWS_MAX;
  infer->theta = pwi_alloc_zero(infer->rows * (size_t)infer->input.topics, sizeof *infer->theta);
  infer->shares = pwi_alloc_zero((size_t)infer->input.topics, sizeof *infer->shares);
  if (!infer->theta || !infer->shares) return pwi_cli_failure(infer->input.command, "out of memory");
  infer->file = is_standard ? stdout : fopen(infer->output, "w");
  if (infer->file) return PWI_EXIT_OK;
  return pwi_cli_failure(infer->input.command, "cannot write %s: %s", infer->output, strerror(errno));
}

/* Checks that everything was written. Standard output is checked by main. */
static int close_output(struct infer *infer, int exit_code) {
  if (!infer->file || infer->file == stdout) return exit_code;
  bool failed = fflush(infer->file) != 0 || ferror(infer->file);
  int number = errno;
  if (failed) __fpurge(infer->file);
  fclose(infer->file);
  if (!failed || exit_code) return exit_code;
  return pwi_cli_failure(infer->input.command, "cannot write %s: %s", infer->output, strerror(number ? number : EIO));
}

static void say_rest(const struct infer *infer) {
  uint64_t skipped = pawl_data_skipped(infer->input.data);
  if (infer->unknown)
    fprintf(stderr, "pawl lda infer: %" PRIu64 " %s not in %s\n", infer->unknown,
            infer->unknown == 1 ? "token is a word" : "tokens are words", infer->input.model_path);
  if (infer->nothing)
    fprintf(stderr, "pawl lda infer: %" PRIu64 " of %" PRIu64 " documents %s no known word\n", infer->nothing,
            infer->document, infer->nothing == 1 ? "has" : "have");
  if (skipped)
    fprintf(stderr, "pawl lda infer: %" PRIu64 " bad %s skipped, the first at %s\n", skipped,
            skipped == 1 ? "document was" : "documents were", pawl_data_first_bad(infer->input.data));
}

static int run_files(struct infer *infer, const char *const *arguments, size_t count) {
  int exit_code = pwi_lda_input_model(&infer->input, arguments[0]);
  if (exit_code == PWI_EXIT_OK) exit_code = pwi_lda_input_data(&infer->input, arguments + 1, count - 1);
  if (exit_code == PWI_EXIT_OK) exit_code = open_output(infer);
  if (exit_code == PWI_EXIT_OK) exit_code = infer_all(infer);
  exit_code = close_output(infer, exit_code);
  if (exit_code == PWI_EXIT_OK) say_rest(infer);
  return exit_code;
}

static int run_infer(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_args args;
  struct infer infer = {.top = TOP_DEFAULT};
  int letter, exit_code = PWI_EXIT_OK;
  pwi_lda_input_init(&infer.input, command);
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0 && exit_code == PWI_EXIT_OK) {
    if (pwi_lda_input_option(&infer.input, letter, args.value, &exit_code)) continue;
    if (letter == 'o') infer.output = args.value;
    if (letter == LETTER_ALL) infer.all = true;
    if (letter == PWI_CLI_LETTER_JSON) infer.json = true;
    if (letter == 'n' && (!pwi_cli_number(args.value, &infer.top) || infer.top == 0))
      exit_code = pwi_cli_bad_value(command, args.value, "a number of topics, at least 1");
  }
  if (exit_code) return exit_code;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 2, INT_MAX)) return args.exit_code;
  const char *const *files = (const char *const *)argv + args.rest;
  size_t count = (size_t)(argc - args.rest);
  exit_code = pwi_cli_apart(command, "output", infer.output, files, count);
  if (exit_code == PWI_EXIT_OK) exit_code = run_files(&infer, files, count);
  pwi_free(infer.theta);
  pwi_free(infer.shares);
  pwi_lda_input_fini(&infer.input);
  return exit_code;
}

static const struct pwi_cli_option options[] = {
    {'n', "top", "N", "print the N largest topics of each document (default: 5)"},
    {LETTER_ALL, "all", NULL, "print the shares of all topics, in order of their numbers"},
    {'o', "output", "FILE", "write the topics to FILE (default: standard output)"},
    {PWI_LDA_ALPHA, "alpha", "A", "prior of every topic in a document (default: the model's)"},
    {PWI_LDA_ITERATIONS, "iterations", "N", "number of iterations per document (default: 100)"},
    PWI_LDA_READING,
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_lda_infer = {
    .name = "lda infer",
    .arguments = "MODEL DATA...",
    .summary = "infer the topics of documents",
    .text = "Prints for each document its number, counted from 1, and its largest topics\n"
            "with their shares. Words that are not in the model are ignored, and counted at\n"
            "the end. With --all each line has the number of the document and the shares of\n"
            "all topics.\n\n"
            "  pawl lda infer news.model today.txt --format text\n"
            "  pawl lda infer news.model test.ldac --vocab news.vocab --all -o theta.txt\n",
    .options = options,
    .run = run_infer,
};
