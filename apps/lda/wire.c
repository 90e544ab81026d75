/* Specs, orders and replies as JSON: see inside.h. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/lda/inside.h"
#include "apps/lda/marks.h"

/* --- numbers by topic ----------------------------------------------------------------------------------- */

static bool numbers_of(const json_t *array, double **values_out, size_t *count_out) {
  size_t count = json_array_size(array);
  if (count > PAWL_LDA_TOPICS_MAX) return false;
  *values_out = count ? apps_alloc(count * sizeof **values_out) : NULL;
  *count_out = count;
  return (*values_out || count == 0) && apps_json_numbers_of(array, count, *values_out);
}

/* --- spec ----------------------------------------------------------------------------------------------- */

void lda_spec_fini(struct lda_spec *spec) {
  apps_json_texts_free(spec->paths, spec->path_count);
  memset(spec, 0, sizeof *spec);
}

char *lda_spec_write(const struct lda_spec *spec) {
  return apps_json_print(json_pack(
      "{s:s, s:s, s:i, s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:f, s:f}", "app",
      "lda", "job", spec->job, "method", (int)spec->method, "paths", apps_json_texts(spec->paths, spec->path_count),
      "reading", apps_json_reading(&spec->reading, spec->label), "vocabulary", spec->vocabulary, "directory",
      spec->directory, "start", spec->start, "fingerprint", apps_json_wide(spec->fingerprint), "pieces",
      apps_json_wide(spec->pieces), "corpus", apps_json_wide(spec->corpus), "generation",
      apps_json_wide(spec->generation), "topics", (json_int_t)spec->topics, "threads", (json_int_t)spec->threads,
      "staleness", (json_int_t)spec->staleness, "batch", (json_int_t)spec->batch, "memory",
      apps_json_wide(spec->memory), "seed", apps_json_wide(spec->seed), "kappa", spec->kappa, "offset", spec->offset));
}

static bool copy_text(const char *text, char *to, size_t room) {
  size_t length = strlen(text);
  if (length >= room) return false;
  memcpy(to, text, length + 1);
  return true;
}

static bool read_spec(json_t *object, struct lda_spec *spec) {
  const char *app, *job, *vocabulary, *directory, *start;
  int method;
  json_int_t topics, threads, staleness, batch;
  json_t *paths, *reading, *fingerprint, *pieces, *corpus, *generation, *memory, *seed;
  if (json_unpack(
          object,
          "{s:s, s:s, s:i, s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:F, s:F}", "app",
          &app, "job", &job, "method", &method, "paths", &paths, "reading", &reading, "vocabulary", &vocabulary,
          "directory", &directory, "start", &start, "fingerprint", &fingerprint, "pieces", &pieces, "corpus", &corpus,
          "generation", &generation, "topics", &topics, "threads", &threads, "staleness", &staleness, "batch", &batch,
          "memory", &memory, "seed", &seed, "kappa", &spec->kappa, "offset", &spec->offset))
    return false;
  if (strcmp(app, "lda") || method < PAWL_LDA_GIBBS || method > PAWL_LDA_SVI || topics < 1 ||
      topics > PAWL_LDA_TOPICS_MAX || threads < 0 || threads > 4096 || staleness < 0 || staleness > UINT16_MAX ||
      batch < 1 || batch > UINT32_MAX)
    return false;
  spec->method = (enum pawl_lda_method)method;
  spec->topics = (uint32_t)topics;
  spec->threads = (uint32_t)threads;
  spec->staleness = (uint32_t)staleness;
  spec->batch = (uint32_t)batch;
  return copy_text(job, spec->job, sizeof spec->job) &&
         copy_text(vocabulary, spec->vocabulary, sizeof spec->vocabulary) &&
         copy_text(directory, spec->directory, sizeof spec->directory) &&
         copy_text(start, spec->start, sizeof spec->start) && apps_json_wide_of(fingerprint, &spec->fingerprint) &&
         apps_json_wide_of(pieces, &spec->pieces) && spec->pieces <= UINT32_MAX &&
         apps_json_wide_of(corpus, &spec->corpus) && apps_json_wide_of(generation, &spec->generation) &&
         apps_json_wide_of(memory, &spec->memory) && apps_json_wide_of(seed, &spec->seed) &&
         apps_json_reading_of(reading, &spec->reading, spec->label, sizeof spec->label) &&
         apps_json_texts_of(paths, &spec->paths, &spec->path_count);
}

bool lda_spec_read(const void *bytes, size_t size, struct lda_spec *spec_out) {
  json_t *object = apps_json_parse(bytes, size);
  struct lda_spec spec = {0};
  bool is_whole = read_spec(object, &spec);
  json_decref(object);
  if (!is_whole) {
    lda_spec_fini(&spec);
    return false;
  }
  *spec_out = spec;
  if (spec_out->label[0]) spec_out->reading.label = spec_out->label;
  return true;
}

/* --- order ---------------------------------------------------------------------------------------------- */

void lda_order_fini(struct lda_order *order) {
  apps_free(order->alpha);
  memset(order, 0, sizeof *order);
}

char *lda_order_write(const struct lda_order *order) {
  return apps_json_print(json_pack(
      "{s:i, s:o, s:o, s:o, s:o, s:o, s:f, s:o, s:b, s:b, s:o, s:o, s:o, s:o}", "do", (int)order->what, "sweep",
      apps_json_wide(order->sweep), "sweeps", apps_json_wide(order->sweeps), "words", apps_json_wide(order->words),
      "tokens", apps_json_wide(order->tokens), "documents", apps_json_wide(order->documents), "beta", order->beta,
      "alpha", apps_json_numbers(order->alpha, order->alpha_count), "measures", order->measures, "optimises",
      order->optimises, "base", apps_json_wide(order->base), "part", apps_json_wide(order->part), "groups",
      apps_json_wide(order->groups), "splits", apps_json_wide(order->splits)));
}

/* A sweep needs priors above 0, because it divides by them. */
static bool has_sound_priors(const struct lda_order *order) {
  bool is_sound = order->alpha_count == 0 || (isfinite(order->beta) && order->beta > 0);
  for (size_t k = 0; k < order->alpha_count; k++)
    is_sound = is_sound && isfinite(order->alpha[k]) && order->alpha[k] > 0;
  return is_sound;
}

bool lda_order_read(const void *bytes, size_t size, struct lda_order *order_out) {
  json_t *object = apps_json_parse(bytes, size), *sweep, *sweeps, *words, *tokens, *documents, *alpha;
  json_t *base, *part, *groups, *splits;
  struct lda_order order = {0};
  int what, measures, optimises;
  bool is_whole =
      !json_unpack(object, "{s:i, s:o, s:o, s:o, s:o, s:o, s:F, s:o, s:b, s:b, s:o, s:o, s:o, s:o}", "do", &what,
                   "sweep", &sweep, "sweeps", &sweeps, "words", &words, "tokens", &tokens, "documents", &documents,
                   "beta", &order.beta, "alpha", &alpha, "measures", &measures, "optimises", &optimises, "base", &base,
                   "part", &part, "groups", &groups, "splits", &splits) &&
      apps_json_wide_of(base, &order.base) && apps_json_wide_of(part, &order.part) &&
      apps_json_wide_of(groups, &order.groups) && apps_json_wide_of(splits, &order.splits) && what >= LDA_DESCRIBE &&
      what <= LDA_SWEEP && apps_json_wide_of(sweep, &order.sweep) && apps_json_wide_of(sweeps, &order.sweeps) &&
      apps_json_wide_of(words, &order.words) && apps_json_wide_of(tokens, &order.tokens) &&
      apps_json_wide_of(documents, &order.documents) && order.words <= LDA_WORDS_MAX &&
      numbers_of(alpha, &order.alpha, &order.alpha_count) && has_sound_priors(&order);
  json_decref(object);
  if (!is_whole) {
    lda_order_fini(&order);
    return false;
  }
  order.what = (enum lda_do)what;
  order.measures = measures;
  order.optimises = optimises;
  *order_out = order;
  return true;
}

/* --- reply ---------------------------------------------------------------------------------------------- */

void lda_reply_fini(struct lda_reply *reply) {
  apps_free(reply->alpha_sums);
  memset(reply, 0, sizeof *reply);
}

char *lda_reply_write(const struct lda_reply *reply) {
  return apps_json_print(json_pack(
      "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:o, s:o, s:o, s:o}", "documents",
      apps_json_wide(reply->documents), "empty", apps_json_wide(reply->empty), "tokens", apps_json_wide(reply->tokens),
      "words", apps_json_wide(reply->words), "skipped", apps_json_wide(reply->skipped), "unknown",
      apps_json_wide(reply->unknown), "sampled", apps_json_wide(reply->sampled), "sampled_ns",
      apps_json_wide(reply->sampled_ns), "document_part", apps_json_number(reply->document_part), "word_part",
      apps_json_number(reply->word_part), "alpha_sums", apps_json_numbers(reply->alpha_sums, reply->alpha_count),
      "alpha_length", apps_json_number(reply->alpha_length), "beta_sum", apps_json_number(reply->beta_sum), "waited_s",
      reply->waited_s, "worked_s", reply->worked_s, "bytes_sent", apps_json_wide(reply->bytes_sent), "bytes_received",
      apps_json_wide(reply->bytes_received), "memory", apps_json_wide(reply->memory), "digest",
      apps_digest_write(&reply->digest)));
}

bool lda_reply_read(const void *bytes, size_t size, struct lda_reply *reply_out) {
  json_t *object = apps_json_parse(bytes, size), *alpha_sums;
  struct lda_reply reply = {0};
  const struct {
    const char *name;
    uint64_t *value;
  } wides[] = {{"documents", &reply.documents},   {"empty", &reply.empty},
               {"tokens", &reply.tokens},         {"words", &reply.words},
               {"skipped", &reply.skipped},       {"unknown", &reply.unknown},
               {"sampled", &reply.sampled},       {"sampled_ns", &reply.sampled_ns},
               {"bytes_sent", &reply.bytes_sent}, {"bytes_received", &reply.bytes_received},
               {"memory", &reply.memory}};
  bool is_whole = json_is_object(object) && apps_digest_of(json_object_get(object, "digest"), &reply.digest);
  for (size_t i = 0; i < sizeof wides / sizeof wides[0] && is_whole; i++)
    is_whole = apps_json_wide_of(json_object_get(object, wides[i].name), wides[i].value);
  is_whole = is_whole && !json_unpack(object, "{s:F, s:F, s:o}", "waited_s", &reply.waited_s, "worked_s",
                                      &reply.worked_s, "alpha_sums", &alpha_sums);
  is_whole = is_whole && numbers_of(alpha_sums, &reply.alpha_sums, &reply.alpha_count);
  reply.document_part = apps_json_number_of(json_object_get(object, "document_part"));
  reply.word_part = apps_json_number_of(json_object_get(object, "word_part"));
  reply.alpha_length = apps_json_number_of(json_object_get(object, "alpha_length"));
  reply.beta_sum = apps_json_number_of(json_object_get(object, "beta_sum"));
  json_decref(object);
  if (!is_whole) {
    lda_reply_fini(&reply);
    return false;
  }
  *reply_out = reply;
  return true;
}

/* --- vectors -------------------------------------------------------------------------------------------- */

void lda_vector_name(const struct lda_spec *spec, char name[PAWL_NAME_MAX + 1]) {
  snprintf(name, PAWL_NAME_MAX + 1, "%s/%s", spec->job, spec->method == PAWL_LDA_SVI ? "lambda" : "counts");
}

void lda_svi_steps_name(const struct lda_spec *spec, char name[PAWL_NAME_MAX + 1]) {
  snprintf(name, PAWL_NAME_MAX + 1, "%s/steps", spec->job);
}

void lda_vector_options(const struct lda_spec *spec, uint64_t words, struct pawl_vector_options *options_out) {
  bool is_svi = spec->method == PAWL_LDA_SVI;
  pawl_vector_options_init(options_out);
  options_out->type = is_svi ? PAWL_F32 : PAWL_I32;
  options_out->width = spec->topics + (is_svi ? 0 : lda_marks_columns(spec->pieces));
  options_out->size = words + 1;
  /* Rows are mostly zeros. Servers on this machine read them in place, without encoding. */
  strcpy(options_out->filters, "zeros | compress");
}
