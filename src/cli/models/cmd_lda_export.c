/* `pawl lda export`: a topic model as a matrix, for NumPy or as text.
 *
 * A model is stored by words, but a row of the matrix is a topic. So each walk through the model builds the
 * rows of some topics.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apps/lda/model_inside.h"
#include "apps/common/model_file.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/apart.h"
#include "cli/models/lda_input.h"

enum { LETTER_COUNTS = PWI_LDA_OWN };

#define HEAD_SIZE 128                  /* of an .npy: version 1.0, and a multiple of 64 */
#define NUMBERS_MAX ((size_t)16 << 20) /* numbers in memory at once */
#define CHUNK 8192                     /* numbers that are written at once */

struct matrix {
  const struct pawl_lda_model *model;
  bool counts, text, whole; /* whole: counts are 32-bit integers */
  size_t topics, words;
  size_t some; /* number of topics at a time */
  double *numbers;
};

/* --- numbers ---------------------------------------------------------------------------------------------------------------- */

static bool is_whole(const struct pawl_lda_model *model) {
  for (uint64_t w = 0; w < model->about.words; w++)
    if (model->rows[w].kind == LDA_ROW_WEIGHTS) return false;
  return true;
}

/* Writes the topics [begin, end). */
static void fill(const struct matrix *matrix, size_t begin, size_t end) {
  const struct pawl_lda_model *model = matrix->model;
  double beta = matrix->counts ? 0 : model->about.beta;
  for (size_t k = begin; k < end; k++)
    for (size_t w = 0; w < matrix->words; w++)
      matrix->numbers[(k - begin) * matrix->words + w] = beta * model->inverse[k];
  for (size_t w = 0; w < matrix->words; w++) {
    const struct lda_row *row = lda_model_row(model, w);
    for (uint32_t i = 0; i < row->count; i++) {
      size_t k = lda_row_topics(row)[i];
      if (k < begin || k >= end) continue;
      double value = lda_row_value(row, i);
      matrix->numbers[(k - begin) * matrix->words + w] = matrix->counts ? value : (value + beta) * model->inverse[k];
    }
  }
}

/* --- files ------------------------------------------------------------------------------------------------------------------ */

static bool put_head(FILE *file, const struct matrix *matrix) {
  char head[HEAD_SIZE], text[HEAD_SIZE];
  int length = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%zu, %zu), }",
                        matrix->counts && matrix->whole ? "<i4" : "<f4", matrix->topics, matrix->words);
  memset(head, ' ', HEAD_SIZE);
  memcpy(head, "\x93NUMPY\x01\x00", 8);
  pwi_put_u16((uint8_t *)head + 8, HEAD_SIZE - 10);
  memcpy(head + 10, text, (size_t)length);
  head[HEAD_SIZE - 1] = '\n';
  return fwrite(head, 1, HEAD_SIZE, file) == HEAD_SIZE;
}

static uint32_t bits_of(const struct matrix *matrix, double value) {
  float narrow = (float)value;
  uint32_t bits;
  if (matrix->counts && matrix->whole) return (uint32_t)value;
  memcpy(&bits, &narrow, 4);
  return bits;
}

static bool put_numbers(FILE *file, const struct matrix *matrix, size_t count) {
  uint8_t bytes[CHUNK * 4];
  bool is_fine = true;
  for (size_t done = 0; done < count && is_fine;) {
    size_t now = count - done < CHUNK ? count - done : CHUNK;
    for (size_t i = 0; i < now; i++) pwi_put_u32(bytes + i * 4, bits_of(matrix, matrix->numbers[done + i]));
    is_fine = fwrite(bytes, 4, now, file) == now;
    done += now;
  }
  return is_fine;
}

/* Writes one topic per line. A float is written so that it reads back unchanged, and a count with all
 * digits. */
static bool put_text(FILE *file, const struct matrix *matrix, size_t topics) {
  for (size_t k = 0; k < topics && !ferror(file); k++)
    for (size_t w = 0; w < matrix->words; w++)
      fprintf(file, "%.*g%c", matrix->counts ? 10 : 9, matrix->numbers[k * matrix->words + w],
              w + 1 < matrix->words ? ' ' : '\n');
  return !ferror(file);
}

static pawl_status put_matrix(FILE *file, const void *context) {
  const struct matrix *matrix = context;
  bool is_fine = matrix->text || put_head(file, matrix);
  for (size_t begin = 0; begin < matrix->topics && is_fine; begin += matrix->some) {
    size_t end = matrix->topics - begin < matrix->some ? matrix->topics : begin + matrix->some;
    fill(matrix, begin, end);
    is_fine =
        matrix->text ? put_text(file, matrix, end - begin) : put_numbers(file, matrix, (end - begin) * matrix->words);
  }
  return is_fine ? PAWL_OK : PAWL_IO;
}

/* --- the command ------------------------------------------------------------------------------------------------------------ */

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), more = strlen(end);
  return length > more && strcmp(text + length - more, end) == 0;
}

static int write_matrix(const struct pwi_lda_input *input, struct matrix *matrix, const char *output) {
  char error[APPS_TEXT_MAX];
  size_t some = NUMBERS_MAX / (size_t)input->words;
  matrix->model = input->model;
  matrix->topics = (size_t)input->topics;
  matrix->words = (size_t)input->words;
  matrix->whole = is_whole(input->model);
  matrix->some = some < 1 ? 1 : some < matrix->topics ? some : matrix->topics;
  matrix->numbers = pwi_resize_array(NULL, matrix->some * matrix->words, sizeof *matrix->numbers);
  if (!matrix->numbers) return pwi_cli_failure(input->command, "out of memory");
  pawl_status status = apps_file_write(output, put_matrix, matrix, error);
  pwi_free(matrix->numbers);
  return status ? pwi_cli_failure(input->command, "%s", error) : PWI_EXIT_OK;
}

static int export_model(struct pwi_lda_input *input, struct matrix *matrix, const char *path, const char *output,
                        bool json) {
  int exit_code = pwi_lda_input_model(input, path);
  if (exit_code == PWI_EXIT_OK) exit_code = write_matrix(input, matrix, output);
  if (exit_code) return exit_code;
  const char *what = matrix->counts ? "counts" : "phi", *type = matrix->counts && matrix->whole ? "int32" : "float32";
  if (json)
    return pwi_cli_print_json(input->command, json_pack("{s:o, s:s, s:s, s:I, s:I}", "file", pwi_json_string(output),
                                                        "what", what, "type", type, "topics", (json_int_t)input->topics,
                                                        "words", (json_int_t)input->words));
  printf("wrote %s: %s of %" PRIu64 " topics (rows) and %" PRIu64 " words (columns), %s\n", output, what, input->topics,
         input->words, matrix->text ? "as text" : type);
  return PWI_EXIT_OK;
}

static int run_export(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_args args;
  struct pwi_lda_input input;
  struct matrix matrix = {0};
  const char *output = NULL;
  bool json = false;
  int letter;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (letter == 'o') output = args.value;
    if (letter == LETTER_COUNTS) matrix.counts = true;
    if (letter == PWI_CLI_LETTER_JSON) json = true;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 1, 1)) return args.exit_code;
  if (!output) return pwi_cli_usage(command, "no output file given; name one with -o FILE.npy or -o FILE.txt");
  matrix.text = ends_with(output, ".txt");
  if (!matrix.text && !ends_with(output, ".npy"))
    return pwi_cli_usage(command, "unknown format of '%s'; expected a name that ends in .npy or .txt", output);
  int exit_code = pwi_cli_apart(command, "output", output, (const char *const *)argv + args.rest, 1);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  pwi_lda_input_init(&input, command);
  exit_code = export_model(&input, &matrix, argv[args.rest], output, json);
  pwi_lda_input_fini(&input);
  return exit_code;
}

static const struct pwi_cli_option options[] = {
    {'o', "output", "FILE", "write to FILE: .npy for numpy.load, or .txt with one topic per line"},
    {LETTER_COUNTS, "counts", NULL, "write the counts of words in topics instead of probabilities"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_lda_export = {
    .name = "lda export",
    .arguments = "MODEL",
    .summary = "export the topics as a matrix",
    .text = "Writes phi, the probability of each word in each topic, as a dense matrix.\n"
            "Each topic is a row, which adds up to 1; each word is a column, in the order\n"
            "of the vocabulary.\n\n"
            "  pawl lda export news.model -o phi.npy\n"
            "  python3 -c 'import numpy; print(numpy.load(\"phi.npy\").shape)'\n",
    .options = options,
    .run = run_export,
};
