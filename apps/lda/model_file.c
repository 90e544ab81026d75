/* Files of topic models, in the same family as linear models (apps/linear/model/pawl.c): a readable header, then
 * numbers, then a checksum.
 *
 *   pawl-model 1 00000384\n     version, and the offset of the numbers
 *   { … }\n                     header: "kind": "topics" and others, one key per line; padded with blanks
 *   alpha                       K float64
 *   lengths                     V of 32 bits: number of topics of each word; bit 31: its values are float32, else int32
 *   values                      4 bytes each, those of word 0 first
 *   topics                      2 bytes each, in the same order; ascending within a word
 *   vocabulary                  one word per line; empty if words are numbers
 *   checksum                    XXH3 of everything before, 64 bits
 *
 * All little-endian. docs/model-format.md specifies every byte. Every number of a file is checked against the file's size before
 * it is used.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include <jansson.h>
#include <xxhash.h>

#include <pawl/session.h>
#include <pawl/version.h>

#include "apps/common/memory.h"
#include "apps/lda/model_inside.h"
#include "apps/common/model_file.h"

static_assert(PAWL_LDA_TEXT == APPS_TEXT_MAX, "sentences are written by the same function");

#define MAGIC "pawl-model "
#define VERSION 1
#define LIBLINEAR "solver_type " /* LIBLINEAR's models begin with it */
#define LINE_SIZE 22             /* size of the first line, including its end */
#define ALIGNMENT 64
#define HEAD_MAX ((size_t)1 << 20)
#define FLOATS ((uint32_t)1 << 31)
#define CHUNK ((size_t)1 << 16)

static uint64_t get(const char *bytes, int width) {
  uint64_t number = 0;
  for (int i = width; i-- > 0;) number = number << 8 | (unsigned char)bytes[i];
  return number;
}

static void put(char *bytes, uint64_t number, int width) {
  for (int i = 0; i < width; i++) bytes[i] = (char)(unsigned char)(number >> (8 * i));
}

/* --- writing -------------------------------------------------------------------------------------------- */

struct model_sink {
  FILE *file;
  XXH3_state_t *sum;
  bool failed;
  size_t used;
  char bytes[CHUNK];
};

static void drain(struct model_sink *sink) {
  XXH3_64bits_update(sink->sum, sink->bytes, sink->used);
  if (!sink->failed) sink->failed = fwrite(sink->bytes, 1, sink->used, sink->file) != sink->used;
  sink->used = 0;
}

static void put_bytes(struct model_sink *sink, const char *bytes, size_t size) {
  while (size > 0) {
    size_t now = size < CHUNK - sink->used ? size : CHUNK - sink->used;
    memcpy(sink->bytes + sink->used, bytes, now);
    sink->used += now;
    bytes += now;
    size -= now;
    if (sink->used == CHUNK) drain(sink);
  }
}

static void put_number(struct model_sink *sink, uint64_t number, int width) {
  char bytes[8];
  put(bytes, number, width);
  put_bytes(sink, bytes, (size_t)width);
}

static const char *method_name(enum pawl_lda_method method) { return method == PAWL_LDA_SVI ? "svi" : "gibbs"; }

static uint64_t count_entries(const struct pawl_lda_model *model) {
  uint64_t entries = 0;
  for (uint64_t w = 0; w < model->about.words; w++) entries += model->rows[w].count;
  return entries;
}

static uint64_t vocabulary_size(const struct pawl_words *words) {
  uint64_t size = 0;
  for (uint64_t w = 0; words && w < pawl_words_count(words); w++) size += strlen(pawl_words_at(words, w)) + 1;
  return size;
}

static json_t *make_about(const struct pawl_lda_model *model) {
  const struct pawl_lda_about *about = &model->about;
  return json_pack("{s:s, s:s, s:I, s:I, s:f, s:I, s:I, s:I, s:o, s:I, s:I, s:o}", "kind", "topics", "method",
                   method_name(about->method), "topics", (json_int_t)about->topics, "words", (json_int_t)about->words,
                   "beta", about->beta, "sweeps", (json_int_t)about->sweeps, "documents", (json_int_t)about->documents,
                   "tokens", (json_int_t)about->tokens, "log_likelihood",
                   isfinite(about->log_likelihood) ? json_real(about->log_likelihood) : json_null(), "entries",
                   (json_int_t)count_entries(model), "vocabulary", (json_int_t)vocabulary_size(model->words),
                   "written_by", json_sprintf("pawl %s", pawl_version()));
}

static bool put_head(struct model_sink *sink, const struct pawl_lda_model *model) {
  char line[LINE_SIZE + 1];
  json_t *about = make_about(model);
  char *text = apps_about_text(about, true);
  json_decref(about);
  if (!text) return false;
  size_t length = strlen(text), size = (LINE_SIZE + length + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
  snprintf(line, sizeof line, MAGIC "%d %08u\n", VERSION, (unsigned)(size % 100000000));
  put_bytes(sink, line, LINE_SIZE);
  put_bytes(sink, text, length);
  for (size_t i = LINE_SIZE + length; i < size - 1; i++) put_bytes(sink, " ", 1);
  put_bytes(sink, "\n", 1);
  free(text); /* allocated by open_memstream */
  return true;
}

static void put_rows(struct model_sink *sink, const struct pawl_lda_model *model) {
  for (uint64_t w = 0; w < model->about.words; w++) {
    const struct lda_row *row = &model->rows[w];
    put_number(sink, row->count | (row->count && row->kind == LDA_ROW_WEIGHTS ? FLOATS : 0), 4);
  }
  for (uint64_t w = 0; w < model->about.words; w++)
    for (uint32_t i = 0; i < model->rows[w].count; i++) {
      uint32_t bits;
      memcpy(&bits, model->rows[w].entries + (size_t)i * 4, 4);
      put_number(sink, bits, 4);
    }
  for (uint64_t w = 0; w < model->about.words; w++)
    for (uint32_t i = 0; i < model->rows[w].count; i++) put_number(sink, lda_row_topics(&model->rows[w])[i], 2);
}

static void put_model(struct model_sink *sink, const struct pawl_lda_model *model) {
  for (uint32_t k = 0; k < model->about.topics; k++) {
    uint64_t bits;
    memcpy(&bits, &model->alpha[k], 8);
    put_number(sink, bits, 8);
  }
  put_rows(sink, model);
  for (uint64_t w = 0; model->words && w < model->about.words; w++) {
    const char *word = pawl_words_at(model->words, w);
    put_bytes(sink, word, strlen(word));
    put_bytes(sink, "\n", 1);
  }
}

pawl_status lda_model_fill(FILE *file, const void *context) {
  char bytes[8];
  pawl_status status = PAWL_NO_MEMORY;
  struct model_sink *sink = apps_alloc(sizeof *sink);
  XXH3_state_t *sum = XXH3_createState();
  if (sink && sum) {
    XXH3_64bits_reset(sum);
    sink->file = file;
    sink->sum = sum;
    sink->used = 0;
    sink->failed = false;
    if (put_head(sink, context)) {
      put_model(sink, context);
      drain(sink);
      put(bytes, XXH3_64bits_digest(sum), 8);
      status = sink->failed || fwrite(bytes, 1, 8, file) != 8 ? PAWL_IO : PAWL_OK;
    }
  }
  XXH3_freeState(sum);
  apps_free(sink);
  return status;
}

/* --- reading: the head ---------------------------------------------------------------------------------- */

struct shape {
  struct pawl_lda_about about;
  uint64_t entries, vocabulary;
};

/* The offset of the numbers; 0: the line is damaged. */
static size_t read_begin(const char *digits) {
  size_t begin = 0;
  for (int i = 0; i < 8; i++) {
    if (digits[i] < '0' || digits[i] > '9') return 0;
    begin = begin * 10 + (size_t)(digits[i] - '0');
  }
  return digits[8] == '\n' && begin > LINE_SIZE && begin <= HEAD_MAX ? begin : 0;
}

static pawl_status read_line(const char *bytes, size_t size, size_t *begin_out, char *why) {
  size_t magic = strlen(MAGIC);
  if (size == 0) return apps_say(why, PAWL_TRUNCATED, "the file is empty");
  if (size >= strlen(LIBLINEAR) && memcmp(bytes, LIBLINEAR, strlen(LIBLINEAR)) == 0)
    return apps_say(why, PAWL_MISMATCH, "this is a linear model, not a topic model");
  if (memcmp(bytes, MAGIC, size < magic ? size : magic) != 0)
    return apps_say(why, PAWL_CORRUPT, "not a topic model; expected a file that begins with \"%s\"", MAGIC);
  if (size < LINE_SIZE) return apps_say(why, PAWL_TRUNCATED, "the file ends in its first line");
  if (bytes[magic] != '0' + VERSION || bytes[magic + 1] != ' ')
    return apps_say(why, PAWL_UNSUPPORTED, "unknown version of the format; this pawl reads version %d", VERSION);
  *begin_out = read_begin(bytes + magic + 2);
  if (*begin_out == 0) return apps_say(why, PAWL_CORRUPT, "the first line is damaged");
  return *begin_out > size ? apps_say(why, PAWL_TRUNCATED, "the file ends in its header") : PAWL_OK;
}

static bool take_count(const json_t *about, const char *key, uint64_t least, uint64_t most, uint64_t *count_out) {
  const json_t *is = json_object_get(about, key);
  json_int_t count = json_integer_value(is);
  if (!json_is_integer(is) || count < 0 || (uint64_t)count < least || (uint64_t)count > most) return false;
  *count_out = (uint64_t)count;
  return true;
}

static bool take_method(const json_t *about, enum pawl_lda_method *method_out) {
  const char *name = json_string_value(json_object_get(about, "method"));
  if (!name || (strcmp(name, "gibbs") != 0 && strcmp(name, "svi") != 0)) return false;
  *method_out = strcmp(name, "svi") == 0 ? PAWL_LDA_SVI : PAWL_LDA_GIBBS;
  return true;
}

static bool take_likelihood(const json_t *about, double *value_out) {
  const json_t *is = json_object_get(about, "log_likelihood");
  *value_out = json_is_number(is) ? json_number_value(is) : (double)NAN;
  return !is || json_is_null(is) || json_is_number(is);
}

static pawl_status read_shape(const json_t *about, struct shape *shape, char *why) {
  const char *kind = json_string_value(json_object_get(about, "kind")), *wrong = NULL;
  struct pawl_lda_about *is = &shape->about;
  uint64_t topics = 0;
  if (!kind || strcmp(kind, "topics") != 0)
    return apps_say(why, PAWL_MISMATCH, "this is a %s model, not a topic model", kind ? kind : "linear");
  if (!take_method(about, &is->method)) wrong = "method";
  if (!take_count(about, "topics", 1, PAWL_LDA_TOPICS_MAX, &topics)) wrong = "topics";
  if (!take_count(about, "words", 1, INT32_MAX, &is->words)) wrong = "words";
  is->topics = (uint32_t)topics;
  is->beta = json_number_value(json_object_get(about, "beta"));
  if (!(is->beta > 0 && isfinite(is->beta))) wrong = "beta";
  if (!take_count(about, "sweeps", 0, INT64_MAX, &is->sweeps)) wrong = "sweeps";
  if (!take_count(about, "documents", 0, INT64_MAX, &is->documents)) wrong = "documents";
  if (!take_count(about, "tokens", 0, INT64_MAX, &is->tokens)) wrong = "tokens";
  if (!take_likelihood(about, &is->log_likelihood)) wrong = "log_likelihood";
  if (!take_count(about, "entries", 0, INT64_MAX, &shape->entries)) wrong = "entries";
  if (!take_count(about, "vocabulary", 0, INT64_MAX, &shape->vocabulary)) wrong = "vocabulary";
  if (!wrong) return PAWL_OK;
  return apps_say(why, PAWL_CORRUPT, "invalid value of \"%s\" in the header", wrong);
}

static pawl_status read_head(const char *bytes, size_t size, size_t *begin_out, struct shape *shape, char *why) {
  json_error_t problem;
  pawl_status status = read_line(bytes, size, begin_out, why);
  if (status) return status;
  json_t *about = json_loadb(bytes + LINE_SIZE, *begin_out - LINE_SIZE, JSON_REJECT_DUPLICATES, &problem);
  if (!json_is_object(about))
    status = apps_say(why, PAWL_CORRUPT, "the header is not a JSON object%s%s", about ? "" : ": ",
                      about ? "" : problem.text);
  else
    status = read_shape(about, shape, why);
  json_decref(about);
  return status;
}

/* --- reading: the numbers ------------------------------------------------------------------------------- */

/* The parts of a file. */
struct parts {
  const char *alpha, *lengths, *values, *topics, *vocabulary;
};

/* Takes a part from the remaining bytes; NULL if too few are left. */
static const char *cut(const char **at, size_t *left, uint64_t count, size_t each) {
  const char *part = *at;
  if (count > *left / each) return NULL;
  *at += (size_t)count * each;
  *left -= (size_t)count * each;
  return part;
}

static pawl_status find_parts(const char *bytes, size_t size, size_t begin, const struct shape *shape,
                              struct parts *parts, char *why) {
  const char *at = bytes + begin;
  size_t left = size - begin;
  parts->alpha = cut(&at, &left, shape->about.topics, 8);
  if (parts->alpha) parts->lengths = cut(&at, &left, shape->about.words, 4);
  if (parts->lengths) parts->values = cut(&at, &left, shape->entries, 4);
  if (parts->values) parts->topics = cut(&at, &left, shape->entries, 2);
  if (parts->topics) parts->vocabulary = cut(&at, &left, shape->vocabulary, 1);
  if (!parts->vocabulary || left < 8)
    return apps_say(why, PAWL_TRUNCATED, "the file ends too early; expected %llu topics of %llu words",
                    (unsigned long long)shape->about.topics, (unsigned long long)shape->about.words);
  if (left > 8) return apps_say(why, PAWL_CORRUPT, "unexpected data after the topics");
  if (XXH3_64bits(bytes, size - 8) != get(at, 8))
    return apps_say(why, PAWL_CORRUPT, "the file is damaged: its checksum does not match");
  return PAWL_OK;
}

/* Reads one row. Returns false if it is invalid. */
static bool read_row(const char *values, const char *topics, uint32_t most, struct lda_row *row) {
  uint16_t *places = (uint16_t *)(void *)(row->entries + (size_t)row->count * 4);
  for (uint32_t i = 0; i < row->count; i++) {
    uint32_t bits = (uint32_t)get(values + (size_t)i * 4, 4);
    memcpy(row->entries + (size_t)i * 4, &bits, 4);
    places[i] = (uint16_t)get(topics + (size_t)i * 2, 2);
    double value = lda_row_value(row, i);
    if (!(value > 0 && isfinite(value)) || places[i] >= most || (i > 0 && places[i] <= places[i - 1])) return false;
  }
  return true;
}

static pawl_status read_rows(const struct parts *parts, uint64_t entries, struct pawl_lda_model *model, char *why) {
  size_t at = 0;
  for (uint64_t w = 0; w < model->about.words; w++) {
    uint32_t length = (uint32_t)get(parts->lengths + (size_t)w * 4, 4);
    struct lda_row row = {.count = length & ~FLOATS, .kind = length & FLOATS ? LDA_ROW_WEIGHTS : LDA_ROW_COUNTS};
    if (row.count == 0) continue;
    if (row.count > model->about.topics || row.count > entries - at)
      return apps_say(why, PAWL_CORRUPT, "word %llu has more topics than the model", (unsigned long long)w);
    row.entries = apps_alloc((size_t)row.count * 6);
    if (!row.entries) return PAWL_NO_MEMORY;
    if (!read_row(parts->values + at * 4, parts->topics + at * 2, model->about.topics, &row)) {
      apps_free(row.entries);
      return apps_say(why, PAWL_CORRUPT, "the counts of word %llu are invalid", (unsigned long long)w);
    }
    lda_model_take(model, w, row);
    at += row.count;
  }
  return at == entries ? PAWL_OK : apps_say(why, PAWL_CORRUPT, "the number of counts does not match the header");
}

static pawl_status read_words(const struct parts *parts, const struct shape *shape, struct pawl_words **words_out,
                              char *why) {
  if (shape->vocabulary == 0) return PAWL_OK;
  pawl_status status = pawl_words_parse("the vocabulary", parts->vocabulary, (size_t)shape->vocabulary, words_out);
  if (status == PAWL_NO_MEMORY) return status;
  if (status) return apps_say(why, PAWL_CORRUPT, "%s", pawl_error_text());
  if (pawl_words_count(*words_out) == shape->about.words) return PAWL_OK;
  return apps_say(why, PAWL_CORRUPT, "the vocabulary has %llu words, but the topics have %llu",
                  (unsigned long long)pawl_words_count(*words_out), (unsigned long long)shape->about.words);
}

/* Creates an empty model. */
static pawl_status make_model(const struct parts *parts, const struct shape *shape, struct pawl_lda_model **model_out,
                              char *why) {
  struct pawl_words *words = NULL;
  double *alpha = apps_alloc(shape->about.topics * sizeof *alpha);
  pawl_status status = alpha ? read_words(parts, shape, &words, why) : PAWL_NO_MEMORY;
  for (uint32_t k = 0; status == PAWL_OK && k < shape->about.topics; k++) {
    uint64_t bits = get(parts->alpha + (size_t)k * 8, 8);
    memcpy(&alpha[k], &bits, 8);
  }
  if (status == PAWL_OK) status = pawl_lda_model_create(&shape->about, alpha, words, model_out);
  if (status == PAWL_INVALID) status = apps_say(why, PAWL_CORRUPT, "alpha or beta is not positive, or too small");
  pawl_words_release(words);
  apps_free(alpha);
  return status;
}

pawl_status lda_model_decode(const char *bytes, size_t size, struct pawl_lda_model **model_out, char *why) {
  struct shape shape = {0};
  struct parts parts = {0};
  struct pawl_lda_model *model = NULL;
  size_t begin = 0;
  pawl_status status = read_head(bytes, size, &begin, &shape, why);
  if (status == PAWL_OK) status = find_parts(bytes, size, begin, &shape, &parts, why);
  if (status == PAWL_OK) status = make_model(&parts, &shape, &model, why);
  if (status == PAWL_OK) status = read_rows(&parts, shape.entries, model, why);
  if (status == PAWL_OK)
    *model_out = model;
  else
    pawl_lda_model_destroy(model);
  return status;
}

/* --- files ---------------------------------------------------------------------------------------------- */

pawl_status pawl_lda_model_write(const struct pawl_lda_model *model, const char *path, char error[PAWL_LDA_TEXT]) {
  locale_t before, c = apps_locale_enter(&before);
  pawl_status status = apps_file_write(path, lda_model_fill, model, error);
  apps_locale_leave(c, before);
  return status;
}

pawl_status pawl_lda_model_read(const char *path, struct pawl_lda_model **model_out, char error[PAWL_LDA_TEXT]) {
  char why[PAWL_LDA_TEXT] = "", *bytes;
  locale_t before, c;
  size_t size;
  pawl_status status = apps_file_read(path, &bytes, &size, error);
  if (status) return status;
  c = apps_locale_enter(&before);
  status = lda_model_decode(bytes, size, model_out, why);
  apps_locale_leave(c, before);
  apps_free(bytes);
  if (status == PAWL_NO_MEMORY) apps_say(why, status, "out of memory");
  return status ? apps_say(error, status, "%s: %s", path, why) : PAWL_OK;
}
