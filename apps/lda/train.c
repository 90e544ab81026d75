/* The scheduler of topic models. See inside.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/lda/train_inside.h"

enum { PIECES = 32, PIECES_OF_SMALL = 64, ROUND_SWEEPS_MOST = 100 };
#define SMALL_BYTES (UINT64_C(8) << 20) /* a corpus up to this size is divided into small parts: block.h */
#define PIECE_BYTES_LEAST UINT64_C(4096)
#define PIECE_BYTES_MOST (UINT64_C(32) << 20)
#define ROUND_S 2.0 /* maximum of seconds per round: workers join and leave between rounds */

/* --- progress and events -------------------------------------------------------------------------------- */

void lda_show(struct lda_training *run, const char *stage) {
  run->progress.stage = stage;
  run->progress.seconds = apps_seconds_since(run->common.begun_ns);
  if (run->options->progress) run->options->progress(run->options->context, &run->progress);
}

static bool hear(void *application, const struct pawl_job_event *event) {
  struct lda_training *run = application;
  run->progress.workers = event->workers;
  run->result.workers_lost += event->what == PAWL_JOB_LOST;
  if (event->what == PAWL_JOB_WAITING) lda_show(run, "starting");
  /* all pieces move when the job begins */
  return event->what != PAWL_JOB_MOVED || run->order.what == LDA_SWEEP;
}

/* --- a round -------------------------------------------------------------------------------------------- */

static pawl_status add_alpha_sums(struct lda_reply *sum, const struct lda_reply *part) {
  if (part->alpha_count == 0) return PAWL_OK;
  if (!sum->alpha_sums) {
    sum->alpha_sums = apps_alloc_zero(part->alpha_count, sizeof *sum->alpha_sums);
    if (!sum->alpha_sums) return PAWL_NO_MEMORY;
    sum->alpha_count = part->alpha_count;
  }
  for (size_t k = 0; k < sum->alpha_count && k < part->alpha_count; k++) sum->alpha_sums[k] += part->alpha_sums[k];
  return PAWL_OK;
}

static pawl_status add_reply(struct lda_reply *sum, const struct lda_reply *part) {
  sum->documents += part->documents;
  sum->empty += part->empty;
  sum->tokens += part->tokens;
  if (part->words > sum->words) sum->words = part->words;
  sum->skipped += part->skipped;
  sum->unknown += part->unknown;
  sum->digest.pieces += part->digest.pieces;
  sum->digest.sum += part->digest.sum;
  sum->sampled += part->sampled;
  if (part->sampled_ns > sum->sampled_ns) sum->sampled_ns = part->sampled_ns; /* workers sample in parallel */
  sum->document_part += part->document_part;
  sum->word_part += part->word_part;
  sum->alpha_length += part->alpha_length;
  sum->beta_sum += part->beta_sum;
  sum->bytes_sent += part->bytes_sent;
  sum->bytes_received += part->bytes_received;
  if (part->memory > sum->memory) sum->memory = part->memory;
  return add_alpha_sums(sum, part);
}

static pawl_status note_worker(struct lda_training *run, size_t index, const struct pawl_report *report,
                               const struct lda_reply *reply) {
  if (index >= run->each_room) {
    size_t room = 2 * run->each_room + 8;
    struct pawl_lda_worker *each = apps_resize(run->each, room * sizeof *each);
    if (each) run->each = each;
    void *hosts = apps_resize(run->hosts, room * sizeof *run->hosts);
    if (hosts) run->hosts = hosts;
    if (!each || !hosts) return PAWL_NO_MEMORY;
    run->each_room = room;
  }
  snprintf(run->hosts[index], sizeof run->hosts[index], "%s", report->host);
  double parts = reply->document_part + reply->word_part;
  uint64_t measured = run->spec.method == PAWL_LDA_SVI ? reply->sampled : reply->tokens;
  run->each[index] = (struct pawl_lda_worker){
      .pid = report->pid,
      .tokens = reply->tokens,
      .log_likelihood = run->order.measures && measured > 0 ? parts / (double)measured : NAN,
      .tokens_per_s = reply->sampled_ns > 0 ? (double)reply->sampled / ((double)reply->sampled_ns * 1e-9) : 0,
      .wait_pct = reply->worked_s > 0 ? 100 * fmin(1, reply->waited_s / reply->worked_s) : 0};
  return PAWL_OK;
}

/* The context of add_report. */
struct round_sums {
  struct lda_training *run;
  struct lda_reply *sum;
};

static pawl_status add_report(void *context, size_t index, const struct pawl_report *report) {
  const struct round_sums *sums = context;
  struct lda_reply reply;
  if (!lda_reply_read(report->bytes, report->size, &reply)) return PAWL_CORRUPT;
  pawl_status status = add_reply(sums->sum, &reply);
  if (!status) status = note_worker(sums->run, index, report, &reply);
  lda_reply_fini(&reply);
  return status;
}

static pawl_status add_reports(struct lda_training *run, const struct pawl_round *round, struct lda_reply *sum) {
  struct round_sums sums = {run, sum};
  size_t count;
  pawl_status status = apps_reports(&run->common, round, add_report, &sums, &count);
  if (status) return status;
  for (size_t i = 0; i < count; i++) run->each[i].host = run->hosts[i];
  run->progress.workers = (uint32_t)count;
  run->progress.each = run->each;
  run->progress.each_count = count;
  return PAWL_OK;
}

/* The workers finish a sweep even if the caller wants to stop. */
static bool tick(void *application) {
  struct lda_training *run = application;
  bool is_sweep = run->order.what == LDA_SWEEP;
  lda_show(run, is_sweep ? "sampling" : "loading");
  return apps_is_stopping(&run->common) && !is_sweep;
}

static pawl_status one_round(struct lda_training *run, struct lda_reply *sum_out, bool *whole_out) {
  struct pawl_round *round = NULL;
  memset(sum_out, 0, sizeof *sum_out);
  pawl_status status = apps_round(&run->common, lda_order_write(&run->order), &round);
  if (status) return status;
  status = add_reports(run, round, sum_out);
  *whole_out = pawl_round_is_whole(round);
  pawl_round_destroy(round);
  if (status) lda_reply_fini(sum_out);
  return status;
}

/* --- the corpus ----------------------------------------------------------------------------------------- */

static pawl_status settle(struct lda_training *run, const struct lda_reply *sum) {
  uint64_t words = run->vocabulary ? pawl_words_count(run->vocabulary) : sum->words;
  if (sum->tokens == 0)
    return apps_fail(&run->common, PAWL_TRUNCATED, "the corpus has no words: %llu documents are empty%s",
                     (unsigned long long)sum->documents,
                     sum->unknown > 0 ? ", because none of their words is in the vocabulary" : "");
  run->order.words = run->progress.words = run->result.words = words;
  run->order.tokens = run->progress.tokens = run->result.tokens = sum->tokens;
  run->order.documents = run->progress.documents = run->result.documents = sum->documents;
  run->result.empty = sum->empty;
  run->result.unknown = sum->unknown;
  run->result.skipped = sum->skipped;
  if (sum->empty > 0)
    apps_tell(&run->common, "%llu of %llu documents have no words and are ignored", (unsigned long long)sum->empty,
              (unsigned long long)sum->documents);
  if (sum->unknown > 0)
    apps_tell(&run->common, "%llu words of the text are not in the vocabulary and are ignored",
              (unsigned long long)sum->unknown);
  return PAWL_OK;
}

static pawl_status describe(struct lda_training *run) {
  struct lda_reply sum = {0};
  bool is_whole = false;
  run->order.what = LDA_DESCRIBE;
  while (!is_whole) {
    lda_reply_fini(&sum);
    pawl_status status = one_round(run, &sum, &is_whole);
    if (status) return status;
  }
  if (sum.digest.pieces == run->spec.pieces) run->digest = sum.digest;
  pawl_status status = settle(run, &sum);
  lda_reply_fini(&sum);
  return status;
}

/* Checks the model to start from. Every worker reads it again. */
static pawl_status check_start(struct lda_training *run) {
  struct pawl_lda_model *model;
  struct pawl_lda_about about;
  if (!run->options->start) return PAWL_OK;
  pawl_status status = pawl_lda_model_read(run->options->start, &model, run->common.error);
  if (status) return status;
  pawl_lda_model_about(model, &about);
  pawl_lda_model_destroy(model);
  if (about.topics != run->spec.topics)
    return apps_fail(&run->common, PAWL_MISMATCH, "%s has %u topics, not %u; to start from it, use --topics %u",
                     run->options->start, about.topics, run->spec.topics, about.topics);
  if (run->vocabulary && about.words != pawl_words_count(run->vocabulary))
    return apps_fail(&run->common, PAWL_MISMATCH, "%s has %llu words, but the vocabulary has %llu; they do not match",
                     run->options->start, (unsigned long long)about.words,
                     (unsigned long long)pawl_words_count(run->vocabulary));
  return PAWL_OK;
}

/* --- sweeps --------------------------------------------------------------------------------------------- */

/* A resumed run that has done all its sweeps does one more, which brings the counts to the servers. */
static void plan(struct lda_training *run) {
  run->end = run->options->sweeps ? run->options->sweeps : run->spec.method == PAWL_LDA_SVI ? 1 : 500;
  if (run->end > run->order.sweep) return;
  run->end = run->order.sweep + 1;
  apps_tell(&run->common, "all %llu sweeps are done; running one more", (unsigned long long)run->order.sweep);
}

static uint64_t until_multiple(uint64_t sweep, uint64_t every) { return every ? every - sweep % every : UINT64_MAX; }

static uint64_t at_most(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* The number of sweeps of the next round: until the next measurement, and at most ROUND_S. */
static void plan_round(struct lda_training *run) {
  struct lda_order *order = &run->order;
  uint64_t end = run->end, every = run->options->measure_every;
  if (run->spec.method == PAWL_LDA_SVI) {
    lda_svi_plan(run);
    return;
  }
  uint64_t count = run->sweep_s > 0 ? (uint64_t)(ROUND_S / run->sweep_s) : 1;
  if (count < 1) count = 1;
  count = at_most(at_most(count, ROUND_SWEEPS_MOST), end - order->sweep);
  count = at_most(count, until_multiple(order->sweep, every));
  count = at_most(count, until_multiple(order->sweep, run->options->evaluate_every));
  uint64_t after = order->sweep + count;
  order->what = LDA_SWEEP;
  order->sweeps = count;
  order->measures = after == end || (every > 0 && after % every == 0);
  order->optimises = run->options->optimise && order->measures && after >= end / 2;
}

static pawl_status look_at_heldout(struct lda_training *run) {
  struct pawl_lda_model *model;
  uint64_t every = run->options->evaluate_every;
  if (!run->heldout || every == 0 || run->order.sweep % every != 0 || run->order.sweep == run->end) return PAWL_OK;
  if (run->order.part > 0) return PAWL_OK; /* the pass is not complete */
  pawl_status status = lda_read_model(run, NULL, &model);
  if (status) return status;
  status = lda_evaluate(run, model);
  pawl_lda_model_destroy(model);
  return status;
}

static pawl_status learn_from(struct lda_training *run, const struct lda_reply *sum, bool is_whole) {
  double seconds = (double)sum->sampled_ns * 1e-9;
  if (seconds > 0) run->progress.tokens_per_s = (double)sum->sampled / seconds;
  run->sampled += sum->sampled;
  run->sampled_s += seconds;
  run->progress.bytes_sent = sum->bytes_sent;
  run->progress.bytes_received = sum->bytes_received;
  if (sum->memory > run->result.worker_memory) run->result.worker_memory = sum->memory;
  if (run->spec.method == PAWL_LDA_SVI) return lda_svi_learn(run, sum);
  if (seconds > 0) run->sweep_s = seconds / (double)run->order.sweeps;
  run->order.sweep += run->order.sweeps;
  if (run->order.measures && is_whole && sum->tokens > 0)
    run->progress.log_likelihood = (sum->document_part + sum->word_part) / (double)sum->tokens;
  if (!run->order.optimises || !is_whole) return PAWL_OK;
  int32_t *totals = apps_alloc_zero(run->spec.topics, sizeof *totals);
  if (!totals) return PAWL_NO_MEMORY;
  pawl_status status = lda_pull_totals(run, totals);
  if (!status) lda_optimise(&run->order, sum, totals);
  apps_free(totals);
  return status;
}

static void show_round(struct lda_training *run) {
  uint64_t end = run->end;
  double done = (double)run->order.sweep + lda_svi_part(run);
  run->progress.sweep = run->order.sweep;
  run->progress.sweeps = end;
  run->progress.part = end > 0 ? done / (double)end : 1;
  run->progress.left_s = ((double)end - done) * run->sweep_s;
  run->progress.beta = run->order.beta;
  run->progress.alpha_sum = 0;
  for (uint32_t k = 0; k < run->spec.topics; k++) run->progress.alpha_sum += run->order.alpha[k];
  lda_show(run, "sampling");
}

static pawl_status sample(struct lda_training *run) {
  pawl_status status = PAWL_OK;
  run->result.why = "sweeps";
  plan(run);
  while (run->order.sweep < run->end && !status) {
    struct lda_reply sum;
    bool is_whole = false;
    if (apps_is_stopping(&run->common)) {
      run->result.why = "interrupted";
      break;
    }
    plan_round(run);
    status = one_round(run, &sum, &is_whole);
    if (status) break;
    status = learn_from(run, &sum, is_whole);
    lda_reply_fini(&sum);
    if (!status) status = look_at_heldout(run);
    if (!status) show_round(run);
    if (!status && apps_now() - run->saved_ns > PAWL_SECOND) {
      lda_state_keep(run);
      run->saved_ns = apps_now();
    }
  }
  return status;
}

/* --- the job -------------------------------------------------------------------------------------------- */

static bool show_vocabulary(void *context, uint64_t pieces, uint64_t of) {
  struct lda_training *run = context;
  run->progress.part = of > 0 ? (double)pieces / (double)of : NAN;
  lda_show(run, "vocabulary");
  return !apps_is_stopping(&run->common);
}

/* Builds a vocabulary of a text in the directory of the run, where workers find it. */
static pawl_status build_vocabulary(struct lda_training *run) {
  struct pawl_words_options building = run->options->building;
  struct pawl_data *text;
  snprintf(run->spec.vocabulary, sizeof run->spec.vocabulary, "%.3500s/vocabulary.txt", run->spec.directory);
  if (run->options->resume && access(run->spec.vocabulary, F_OK) == 0) return PAWL_OK;
  pawl_status status = pawl_data_open(run->options->paths, run->options->path_count, &run->spec.reading, &text);
  if (status) return status;
  building.progress = show_vocabulary;
  building.context = run;
  status = pawl_words_build(text, &building, &run->vocabulary);
  if (!status) status = pawl_words_write(run->vocabulary, run->spec.vocabulary);
  pawl_data_close(text);
  run->progress.part = NAN;
  return status;
}

/* Pieces are small enough to be distributed evenly, and large enough to pull a row once for many tokens. */
static uint64_t choose_piece_bytes(uint64_t bytes) {
  uint64_t each = bytes / (bytes < SMALL_BYTES ? PIECES_OF_SMALL : PIECES) + 1;
  return each < PIECE_BYTES_LEAST ? PIECE_BYTES_LEAST : each > PIECE_BYTES_MOST ? PIECE_BYTES_MOST : each;
}

static pawl_status look_at_data(struct lda_training *run, struct pawl_data_info *info) {
  struct pawl_data *data;
  pawl_status status = pawl_data_open(run->options->paths, run->options->path_count, &run->spec.reading, &data);
  if (status) return status;
  pawl_data_info(data, info);
  pawl_data_close(data);
  if (run->spec.reading.format == PAWL_DATA_AUTO && info->format == PAWL_DATA_TEXT)
    run->spec.reading.format = PAWL_DATA_TEXT;
  if (run->spec.reading.piece_bytes == 0) run->spec.reading.piece_bytes = choose_piece_bytes(info->bytes);
  return PAWL_OK;
}

static pawl_status open_data(struct lda_training *run) {
  const struct pawl_lda_options *options = run->options;
  struct pawl_data_info info;
  pawl_status status = look_at_data(run, &info);
  if (status) return status;
  if (options->vocabulary)
    snprintf(run->spec.vocabulary, sizeof run->spec.vocabulary, "%s", options->vocabulary);
  else if (info.format == PAWL_DATA_TEXT)
    status = build_vocabulary(run);
  if (!status && *run->spec.vocabulary && !run->vocabulary)
    status = pawl_words_read(run->spec.vocabulary, &run->vocabulary);
  if (status) return status;
  run->spec.reading.words = run->vocabulary;
  status = pawl_data_open(options->paths, options->path_count, &run->spec.reading, &run->data);
  if (status) return status;
  pawl_data_info(run->data, &info);
  run->spec.fingerprint = info.fingerprint;
  run->spec.pieces = info.pieces;
  if (options->heldout_count == 0) return PAWL_OK;
  struct pawl_data_options reading = run->spec.reading;
  reading.piece_bytes = 0;
  return pawl_data_open(options->heldout, options->heldout_count, &reading, &run->heldout);
}

static pawl_status write_spec(struct lda_training *run) {
  const struct pawl_lda_options *options = run->options;
  struct lda_spec *spec = &run->spec;
  snprintf(spec->job, sizeof spec->job, "%s", options->job ? options->job : "lda");
  snprintf(spec->directory, sizeof spec->directory, "%s", options->directory);
  if (options->start) snprintf(spec->start, sizeof spec->start, "%s", options->start);
  spec->method = options->method;
  spec->reading = options->reading;
  if (options->reading.label) snprintf(spec->label, sizeof spec->label, "%s", options->reading.label);
  spec->topics = options->topics;
  spec->threads = options->threads;
  spec->staleness = options->staleness;
  spec->batch = options->batch;
  spec->memory = options->memory;
  spec->seed = options->seed;
  spec->kappa = options->kappa;
  spec->offset = options->offset;
  run->order.beta = options->beta;
  run->order.alpha = apps_alloc(options->topics * sizeof *run->order.alpha);
  if (!run->order.alpha) return PAWL_NO_MEMORY;
  run->order.alpha_count = options->topics;
  for (uint32_t k = 0; k < options->topics; k++) run->order.alpha[k] = options->alpha;
  bool is_copied = apps_texts_copy(options->paths, options->path_count, &spec->paths, &spec->path_count);
  return is_copied ? PAWL_OK : PAWL_NO_MEMORY;
}

static pawl_status create_job(struct lda_training *run) {
  const struct pawl_lda_options *options = run->options;
  struct pawl_job_options job;
  pawl_job_options_init(&job);
  job.name = run->spec.job;
  job.pieces = run->spec.pieces;
  job.least = options->workers ? options->workers : 1;
  job.most = options->workers_most > job.least ? options->workers_most : job.least;
  job.on_loss = options->on_loss;
  job.drop_slowest = options->drop_slowest;
  return apps_job_create(&run->common, &job, lda_spec_write(&run->spec), LDA_TIMEOUT);
}

/* Deletes the table of an earlier run, whose counts are meaningless now. */
static pawl_status create_vector(struct lda_training *run) {
  char name[PAWL_NAME_MAX + 1];
  struct pawl_vector_options options;
  lda_vector_name(&run->spec, name);
  lda_vector_options(&run->spec, run->order.words, &options);
  pawl_status status = pawl_vector_delete(run->common.session, name, LDA_TIMEOUT);
  if (!status || status == PAWL_NOT_FOUND)
    status = pawl_vector_create(run->common.session, name, &options, LDA_TIMEOUT, &run->vector);
  return status ? apps_fail_as_said(&run->common, status) : PAWL_OK;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

static pawl_status prepare(struct lda_training *run) {
  pawl_status status = write_spec(run);
  if (status) return apps_fail_as_said(&run->common, status);
  if (mkdir(run->spec.directory, 0777) != 0 && errno != EEXIST)
    return apps_fail(&run->common, PAWL_IO, "%s: %s", run->spec.directory, strerror(errno));
  status = open_data(run);
  if (status) return apps_fail_as_said(&run->common, status);
  status = check_start(run);
  if (!status) status = lda_state_open(run);
  if (!status) status = create_job(run);
  if (!status) status = describe(run);
  if (!status) status = create_vector(run);
  return !status && run->spec.method == PAWL_LDA_SVI ? lda_svi_begin(run) : status;
}

static pawl_status finish(struct lda_training *run, struct pawl_lda_model **model_out) {
  struct pawl_lda_model *model = NULL;
  if (run->sampled == 0)
    return apps_fail(&run->common, PAWL_CANCELLED,
                     "interrupted before the first sweep was complete; there is no model yet");
  int64_t *sums = apps_alloc_zero(run->order.words + 1, sizeof *sums), all = 0;
  if (!sums) return PAWL_NO_MEMORY;
  lda_show(run, "finishing");
  lda_state_keep(run);
  pawl_status status = run->spec.method == PAWL_LDA_SVI ? lda_svi_settle(run, true) : PAWL_OK;
  if (!status) status = lda_read_model(run, sums, &model);
  for (uint64_t word = 0; word < run->order.words; word++) all += sums[word];
  if (!status && run->spec.method == PAWL_LDA_GIBBS && (uint64_t)all != run->order.tokens)
    status = apps_fail(&run->common, PAWL_CORRUPT, "the model counts %lld tokens, but the corpus has %llu",
                       (long long)all, (unsigned long long)run->order.tokens);
  if (!status && run->options->check && run->spec.method == PAWL_LDA_GIBBS) status = lda_check_counts(run, sums);
  if (!status) status = lda_evaluate(run, model);
  apps_free(sums);
  if (status) {
    pawl_lda_model_destroy(model);
    return status;
  }
  *model_out = model;
  return PAWL_OK;
}

static void fill_result(struct lda_training *run) {
  struct pawl_lda_result *result = &run->result;
  result->sweeps = run->order.sweep;
  result->seconds = apps_seconds_since(run->common.begun_ns);
  result->sample_s = run->sampled_s;
  result->tokens_per_s = run->sampled_s > 0 ? (double)run->sampled / run->sampled_s : 0;
  result->log_likelihood = run->progress.log_likelihood;
  result->bytes_sent = run->progress.bytes_sent;
  result->bytes_received = run->progress.bytes_received;
}

static void clean_up(struct lda_training *run) {
  char name[PAWL_NAME_MAX + 1];
  pawl_job_end(run->common.job);
  lda_svi_end(run);
  pawl_vector_close(run->vector);
  if (run->vector) {
    lda_vector_name(&run->spec, name);
    pawl_vector_delete(run->common.session, name, LDA_TIMEOUT);
  }
  pawl_data_close(run->data);
  pawl_data_close(run->heldout);
  pawl_words_release(run->vocabulary);
  lda_spec_fini(&run->spec);
  lda_order_fini(&run->order);
  apps_free(run->each);
  apps_free(run->hosts);
}

pawl_status pawl_lda_train(struct pawl_session *session, const struct pawl_lda_options *options,
                           struct pawl_lda_model **model_out, struct pawl_lda_result *result_out,
                           char error[PAWL_LDA_TEXT]) {
  char room[PAWL_LDA_TEXT];
  struct pawl_lda_options is;
  char *text = error ? error : room;
  text[0] = 0;
  if (!pawl_lda_check(options, text) || !lda_options_take(options, &is)) return PAWL_INVALID;
  struct lda_training run = {.options = &is};
  run.common = (struct apps_run){.session = session,
                                 .tell = is.tell,
                                 .stopping = is.stopping,
                                 .start_worker = is.start_worker,
                                 .context = is.context,
                                 .hear = hear,
                                 .tick = tick,
                                 .application = &run,
                                 .shows_progress = is.progress != NULL,
                                 .error = text,
                                 .begun_ns = apps_now()};
  run.progress.log_likelihood = run.progress.perplexity = run.progress.part = run.progress.left_s = NAN;
  run.result.log_likelihood = run.result.perplexity = NAN;
  run.progress.unsaved = run.result.unsaved;
  pawl_status status = prepare(&run);
  if (!status) status = sample(&run);
  if (!status) status = finish(&run, model_out);
  fill_result(&run);
  if (!status) *result_out = run.result;
  if (status) apps_fail_as_said(&run.common, status);
  clean_up(&run);
  return status;
}
