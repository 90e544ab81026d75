/* The directory of a run: the state that a resumed training needs besides the files of the pieces
 * (piece.h). */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/common/json.h"
#include "apps/lda/random.h"
#include "apps/lda/train_inside.h"

enum { FORMAT = 1 };

static void state_path(const struct lda_training *run, char path[static 4200]) {
  snprintf(path, 4200, "%s/run.json", run->spec.directory);
}

/* A hash of everything that must be equal for the topics of tokens to remain valid. */
static uint64_t corpus_of(const struct lda_training *run) {
  uint64_t words = run->vocabulary ? pawl_words_count(run->vocabulary) : 0;
  return lda_mix(run->spec.fingerprint + lda_mix(words + 1));
}

/* The options that must be equal for the topics of tokens to remain valid. Priors may be optimised, but must
 * begin with the same values. */
static json_t *make_terms(const struct lda_training *run) {
  json_t *terms = json_object();
  apps_term(terms, "--topics", "%u", (unsigned)run->spec.topics);
  apps_term(terms, "--alpha", "%.12g", run->options->alpha);
  apps_term(terms, "--beta", "%.12g", run->options->beta);
  apps_terms_reading(terms, &run->options->reading);
  return terms;
}

static pawl_status check_terms(struct lda_training *run, const json_t *object) {
  char text[APPS_RESUME_TEXT];
  json_t *now = make_terms(run);
  bool is_same = now && apps_terms_same(json_object_get(object, "terms"), now, text);
  json_decref(now);
  if (!now) return PAWL_NO_MEMORY;
  if (is_same) return PAWL_OK;
  return apps_fail(
      &run->common, PAWL_MISMATCH,
      "the run in %.200s has other options: %.200s; give the same options, or start over in another directory",
      run->spec.directory, text);
}

/* A resumed run does not read the corpus again. So a file that seems to have changed is read once now, and
 * compared. */
static pawl_status check_files(struct lda_training *run, const json_t *object) {
  char text[APPS_RESUME_TEXT];
  struct apps_digest now = {0};
  if (!apps_digest_of(json_object_get(object, "digest"), &run->digest)) return PAWL_CORRUPT;
  if (apps_files_same(json_object_get(object, "files"), run->data, text)) return PAWL_OK;
  if (run->digest.pieces > 0) {
    apps_tell(&run->common, "reading the documents once, to check that they have not changed");
    pawl_status status = apps_digest_read(run->data, run->options->threads, &now);
    if (status) return apps_fail(&run->common, status, "%s", pawl_error_text());
    if (now.sum == run->digest.sum && now.pieces == run->digest.pieces) return PAWL_OK;
  }
  return apps_fail(
      &run->common, PAWL_MISMATCH,
      "the data has changed since the run in %.180s began: %.250s; restore it, or start over in another directory",
      run->spec.directory, text);
}

static pawl_status read_state(struct lda_training *run, json_t *object) {
  int format;
  json_int_t topics;
  json_t *corpus, *sweep, *alpha;
  uint64_t of;
  if (json_unpack(object, "{s:i, s:I, s:o, s:o, s:F, s:o}", "format", &format, "topics", &topics, "corpus", &corpus,
                  "sweep", &sweep, "beta", &run->order.beta, "alpha", &alpha) ||
      format != FORMAT || !apps_json_wide_of(corpus, &of) || !apps_json_wide_of(sweep, &run->order.sweep))
    return apps_fail(&run->common, PAWL_CORRUPT,
                     "cannot read %s/run.json: it is damaged, or was written by another version of pawl",
                     run->spec.directory);
  pawl_status status = check_terms(run, object);
  if (!status) status = check_files(run, object);
  if (status) return status;
  if (topics != run->spec.topics || json_array_size(alpha) != run->spec.topics)
    return apps_fail(&run->common, PAWL_MISMATCH,
                     "the run in %s has %lld topics, not %u; resume it with the same number", run->spec.directory,
                     (long long)topics, run->spec.topics);
  if (of != run->spec.corpus)
    return apps_fail(&run->common, PAWL_MISMATCH,
                     "the run in %s has other data, or the data has changed: names, sizes or the vocabulary differ",
                     run->spec.directory);
  for (uint32_t k = 0; k < run->spec.topics; k++) run->order.alpha[k] = apps_json_number_of(json_array_get(alpha, k));
  return PAWL_OK;
}

static pawl_status write_state(const struct lda_training *run, char error[APPS_TEXT_MAX]) {
  char path[4200];
  state_path(run, path);
  json_t *object = json_pack("{s:i, s:I, s:o, s:o, s:f, s:o, s:o, s:o, s:o}", "format", FORMAT, "topics",
                             (json_int_t)run->spec.topics, "corpus", apps_json_wide(run->spec.corpus), "sweep",
                             apps_json_wide(run->order.sweep), "beta", run->order.beta, "alpha",
                             apps_json_numbers(run->order.alpha, run->spec.topics), "terms", make_terms(run), "files",
                             apps_files_write(run->data), "digest", apps_digest_write(&run->digest));
  return apps_state_write(path, object, error);
}

pawl_status lda_state_save(struct lda_training *run) {
  char error[APPS_TEXT_MAX] = "";
  pawl_status status = write_state(run, error);
  return status && *error ? apps_fail(&run->common, status, "%s", error) : status;
}

void lda_state_keep(struct lda_training *run) {
  char error[APPS_TEXT_MAX] = "";
  pawl_status status = write_state(run, error);
  if (status && !*error) (void)apps_say(error, status, "%s", pawl_status_text(status));
  apps_state_note(status, error, run->result.unsaved);
}

pawl_status lda_state_open(struct lda_training *run) {
  char path[4200];
  run->spec.corpus = corpus_of(run);
  if (getrandom(&run->spec.generation, sizeof run->spec.generation, 0) != sizeof run->spec.generation)
    run->spec.generation = lda_mix((uint64_t)apps_now() ^ (uint64_t)getpid());
  state_path(run, path);
  bool is_there = access(path, F_OK) == 0;
  if (!run->options->resume) {
    if (is_there)
      return apps_fail(&run->common, PAWL_EXISTS, "%s already contains a run; continue it with --resume, or remove it",
                       run->spec.directory);
    return lda_state_save(run);
  }
  if (!is_there)
    return apps_fail(&run->common, PAWL_NOT_FOUND, "%s does not contain a run to resume", run->spec.directory);
  json_error_t trouble;
  json_t *object = json_load_file(path, 0, &trouble);
  pawl_status status = read_state(run, object);
  json_decref(object);
  if (!status)
    apps_tell(&run->common, "resuming after %llu sweeps, from %s", (unsigned long long)run->order.sweep,
              run->spec.directory);
  return status;
}
