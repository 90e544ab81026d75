/* Files of topic models: apps/common/model_code.h with "kind": "topics" in the header, and
 *
 *   alpha                       K float64
 *   lengths                     V of 32 bits: number of topics of each word; bit 31: its values are float32, else int32
 *   values                      4 bytes each, those of word 0 first
 *   topics                      2 bytes each, in the same order; ascending within a word
 *   vocabulary                  one word per line; empty if words are numbers
 *
 * Every number of a file is checked against the file's size before it is used.
 */
#include <assert.h>
#include <math.h>

#include <jansson.h>

#include <pawl/session.h>
#include <pawl/version.h>

#include "apps/common/memory.h"
#include "apps/common/model_code.h"
#include "apps/common/model_file.h"
#include "apps/lda/model_inside.h"

static_assert(PAWL_LDA_TEXT == APPS_TEXT_MAX, "sentences are written by the same function");

#define LIBLINEAR "solver_type " /* LIBLINEAR's models begin with it */
#define FLOATS ((uint32_t)1 << 31)

/* --- writing -------------------------------------------------------------------------------------------- */

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

static void put_rows(struct apps_sink *sink, const struct pawl_lda_model *model) {
  for (uint64_t w = 0; w < model->about.words; w++) {
    const struct lda_row *row = &model->rows[w];
    apps_sink_number(sink, row->count | (row->count && row->kind == LDA_ROW_WEIGHTS ? FLOATS : 0), 4);
  }
  for (uint64_t w = 0; w < model->about.words; w++)
    apps_sink_numbers(sink, model->rows[w].entries, model->rows[w].count, 4);
  for (uint64_t w = 0; w < model->about.words; w++)
    apps_sink_numbers(sink, lda_row_topics(&model->rows[w]), model->rows[w].count, 2);
}

static void put_model(struct apps_sink *sink, const void *context) {
  const struct pawl_lda_model *model = context;
  apps_sink_numbers(sink, model->alpha, model->about.topics, 8);
  put_rows(sink, model);
  for (uint64_t w = 0; model->words && w < model->about.words; w++) {
    const char *word = pawl_words_at(model->words, w);
    apps_sink_bytes(sink, word, strlen(word));
    apps_sink_bytes(sink, "\n", 1);
  }
}

pawl_status lda_model_fill(FILE *file, const void *model) {
  return apps_model_fill(file, make_about(model), put_model, model);
}

/* --- reading: the head ---------------------------------------------------------------------------------- */

struct shape {
  struct pawl_lda_about about;
  uint64_t entries, vocabulary;
};

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
  if (!apps_model_count(about, "topics", 1, PAWL_LDA_TOPICS_MAX, &topics)) wrong = "topics";
  if (!apps_model_count(about, "words", 1, INT32_MAX, &is->words)) wrong = "words";
  is->topics = (uint32_t)topics;
  is->beta = json_number_value(json_object_get(about, "beta"));
  if (!(is->beta > 0 && isfinite(is->beta))) wrong = "beta";
  if (!apps_model_count(about, "sweeps", 0, INT64_MAX, &is->sweeps)) wrong = "sweeps";
  if (!apps_model_count(about, "documents", 0, INT64_MAX, &is->documents)) wrong = "documents";
  if (!apps_model_count(about, "tokens", 0, INT64_MAX, &is->tokens)) wrong = "tokens";
  if (!take_likelihood(about, &is->log_likelihood)) wrong = "log_likelihood";
  if (!apps_model_count(about, "entries", 0, INT64_MAX, &shape->entries)) wrong = "entries";
  if (!apps_model_count(about, "vocabulary", 0, INT64_MAX, &shape->vocabulary)) wrong = "vocabulary";
  if (!wrong) return PAWL_OK;
  return apps_say(why, PAWL_CORRUPT, "invalid value of \"%s\" in the header", wrong);
}

static pawl_status read_head(const char *bytes, size_t size, size_t *begin_out, struct shape *shape, char *why) {
  json_t *about = NULL;
  if (size >= strlen(LIBLINEAR) && memcmp(bytes, LIBLINEAR, strlen(LIBLINEAR)) == 0)
    return apps_say(why, PAWL_MISMATCH, "this is a linear model, not a topic model");
  pawl_status status = apps_model_head(bytes, size, "topic model", begin_out, &about, why);
  if (status) return status;
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
  if (!parts->vocabulary || left < APPS_MODEL_SUM)
    return apps_say(why, PAWL_TRUNCATED, "the file ends too early; expected %llu topics of %llu words",
                    (unsigned long long)shape->about.topics, (unsigned long long)shape->about.words);
  if (left > APPS_MODEL_SUM) return apps_say(why, PAWL_CORRUPT, "unexpected data after the topics");
  return apps_model_sum(bytes, size, why);
}

/* Reads one row. Returns false if it is invalid. */
static bool read_row(const char *values, const char *topics, uint32_t most, struct lda_row *row) {
  uint16_t *places = (uint16_t *)(void *)(row->entries + (size_t)row->count * 4);
  for (uint32_t i = 0; i < row->count; i++) {
    uint32_t bits = (uint32_t)apps_model_number(values + (size_t)i * 4, 4);
    memcpy(row->entries + (size_t)i * 4, &bits, 4);
    places[i] = (uint16_t)apps_model_number(topics + (size_t)i * 2, 2);
    double value = lda_row_value(row, i);
    if (!(value > 0 && isfinite(value)) || places[i] >= most || (i > 0 && places[i] <= places[i - 1])) return false;
  }
  return true;
}

static pawl_status read_rows(const struct parts *parts, uint64_t entries, struct pawl_lda_model *model, char *why) {
  size_t at = 0;
  for (uint64_t w = 0; w < model->about.words; w++) {
    uint32_t length = (uint32_t)apps_model_number(parts->lengths + (size_t)w * 4, 4);
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
    uint64_t bits = apps_model_number(parts->alpha + (size_t)k * 8, 8);
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
  return apps_model_write(path, lda_model_fill, model, error);
}

static pawl_status decode(const char *bytes, size_t size, void *model_out, char *why) {
  return lda_model_decode(bytes, size, model_out, why);
}

pawl_status pawl_lda_model_read(const char *path, struct pawl_lda_model **model_out, char error[PAWL_LDA_TEXT]) {
  return apps_model_read(path, decode, model_out, error);
}
