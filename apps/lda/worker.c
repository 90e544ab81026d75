/* A worker of a topic model: creates files of its pieces, and carries out the order of each round. See
 * inside.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/errors.h"
#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/lda/crew.h"
#include "apps/lda/inside.h"
#include "apps/lda/marks.h"
#include "apps/lda/random.h"

static pawl_status complain(struct lda_worker *worker, pawl_status status) {
  const char *text = *worker->error ? worker->error : apps_error_text(status);
  if (status) pawl_worker_say(worker->worker, "%s", text);
  worker->error[0] = 0;
  return status;
}

/* --- beginning ------------------------------------------------------------------------------------------ */

static pawl_status open_data(struct lda_worker *worker) {
  struct lda_spec *spec = &worker->spec;
  struct pawl_data_info info;
  pawl_status status = *spec->vocabulary ? pawl_words_read(spec->vocabulary, &worker->vocabulary) : PAWL_OK;
  spec->reading.words = worker->vocabulary;
  if (!status)
    status = pawl_data_open((const char *const *)spec->paths, spec->path_count, &spec->reading, &worker->data);
  if (status) return status;
  pawl_data_info(worker->data, &info);
  if (info.fingerprint == spec->fingerprint) return PAWL_OK;
  snprintf(worker->error, sizeof worker->error,
           "the data at %.300s differs from the scheduler's in names or sizes; every worker needs the same files at "
           "the same paths",
           spec->paths[0]);
  return PAWL_MISMATCH;
}

static pawl_status begin(struct pawl_worker *handle, void *context, const void *bytes, size_t size) {
  struct lda_worker *worker = context;
  worker->worker = handle;
  worker->session = pawl_worker_session(handle);
  if (!lda_spec_read(bytes, size, &worker->spec)) {
    pawl_worker_say(
        handle,
        "cannot read the specification of the job; use the same version of pawl for 'pawl train' and all workers");
    return PAWL_MISMATCH;
  }
  pawl_status status = open_data(worker);
  if (!status && *worker->spec.start) status = pawl_lda_model_read(worker->spec.start, &worker->start, worker->error);
  if (!status && !lda_sampler_init(&worker->sampler, worker->spec.topics)) status = PAWL_NO_MEMORY;
  return complain(worker, status);
}

/* --- pieces --------------------------------------------------------------------------------------------- */

static void forget_blocks(struct lda_worker *worker) {
  lda_blocks_destroy(worker->blocks, worker->block_count);
  worker->blocks = NULL;
  worker->block_count = 0;
}

static pawl_status make_piece(struct lda_worker *worker, uint64_t number) {
  const struct lda_spec *spec = &worker->spec;
  struct pawl_batch *batch;
  pawl_status status = pawl_data_read(worker->data, (size_t)number, &batch);
  if (status) return status;
  apps_digest_add(&worker->digest, number, batch);
  status = lda_piece_make(spec->directory, number, spec->corpus, spec->generation, spec->topics,
                          worker->vocabulary ? pawl_words_count(worker->vocabulary) : 0, batch, worker->error);
  pawl_batch_destroy(batch);
  return status;
}

/* Opens the piece's file, and creates it if no worker has had the piece yet. */
static pawl_status open_piece(struct lda_worker *worker, uint64_t number, struct lda_piece *piece, bool *is_new_out) {
  const struct lda_spec *spec = &worker->spec;
  pawl_status status = lda_piece_open(spec->directory, number, spec->corpus, spec->topics, piece, worker->error);
  bool is_new = status == PAWL_NOT_FOUND;
  if (is_new) {
    worker->error[0] = 0;
    status = make_piece(worker, number);
    if (!status) status = lda_piece_open(spec->directory, number, spec->corpus, spec->topics, piece, worker->error);
  }
  if (!status && piece->generation != spec->generation) {
    is_new = true;
    status = lda_piece_adopt(piece, spec->generation, worker->error);
  }
  *is_new_out = is_new;
  return status;
}

/* SVI reads the documents again in each pass, and has no files. */
static pawl_status count_piece(struct lda_worker *worker, uint64_t number, struct lda_piece *piece) {
  struct pawl_batch *batch;
  pawl_status status = pawl_data_read(worker->data, (size_t)number, &batch);
  if (status) return status;
  status = lda_piece_count(number, worker->vocabulary ? pawl_words_count(worker->vocabulary) : 0, batch, piece,
                           worker->error);
  pawl_batch_destroy(batch);
  return status;
}

static pawl_status add_piece(struct lda_worker *worker, uint64_t number) {
  struct lda_piece **pieces = apps_resize(worker->pieces, (worker->piece_count + 1) * sizeof *pieces);
  if (pieces) worker->pieces = pieces;
  bool *is_new = apps_resize(worker->is_new, (worker->piece_count + 1) * sizeof *is_new);
  if (is_new) worker->is_new = is_new;
  struct lda_piece *piece = apps_alloc_zero(1, sizeof *piece);
  if (!pieces || !is_new || !piece) {
    apps_free(piece);
    return PAWL_NO_MEMORY;
  }
  piece->file = -1;
  pawl_status status = worker->spec.method == PAWL_LDA_SVI
                           ? count_piece(worker, number, piece)
                           : open_piece(worker, number, piece, &is_new[worker->piece_count]);
  if (status) {
    lda_piece_close(piece);
    apps_free(piece);
    return status;
  }
  worker->pieces[worker->piece_count++] = piece;
  return PAWL_OK;
}

static pawl_status take(struct pawl_worker *handle, void *context, const struct pawl_range *pieces, size_t count) {
  struct lda_worker *worker = context;
  pawl_status status = PAWL_OK;
  (void)handle;
  forget_blocks(worker);
  for (size_t i = 0; i < count && !status; i++)
    for (uint64_t number = pieces[i].begin; number < pieces[i].end && !status; number++)
      status = add_piece(worker, number);
  return complain(worker, status);
}

static bool is_among(uint64_t number, const struct pawl_range *pieces, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (number >= pieces[i].begin && number < pieces[i].end) return true;
  return false;
}

static pawl_status drop(struct pawl_worker *handle, void *context, const struct pawl_range *pieces, size_t count) {
  struct lda_worker *worker = context;
  size_t kept = 0;
  (void)handle;
  forget_blocks(worker);
  for (size_t i = 0; i < worker->piece_count; i++) {
    struct lda_piece *piece = worker->pieces[i];
    if (is_among(piece->number, pieces, count)) {
      lda_piece_close(piece);
      apps_free(piece);
      continue;
    }
    worker->is_new[kept] = worker->is_new[i];
    worker->pieces[kept++] = piece;
  }
  worker->piece_count = kept;
  return PAWL_OK;
}

static void describe(const struct lda_worker *worker, struct lda_reply *reply) {
  reply->digest = worker->digest;
  for (size_t i = 0; i < worker->piece_count; i++) {
    const struct lda_piece *piece = worker->pieces[i];
    reply->documents += piece->documents + piece->empty;
    reply->empty += piece->empty;
    reply->tokens += piece->tokens;
    reply->unknown += piece->unknown;
    if (piece->words > 0 && piece->last_word >= reply->words) reply->words = (uint64_t)piece->last_word + 1;
  }
}

/* --- before the first sweep ----------------------------------------------------------------------------- */

/* Draws topics for the tokens of one word that have none: evenly, or from the model that training starts
 * with. */
static void draw_topics(const struct lda_worker *worker, struct lda_piece *piece, uint32_t index, float *weights,
                        struct lda_alias *alias, double *prior) {
  uint32_t topics = worker->spec.topics, word = piece->ids[index];
  struct lda_random random = lda_random_of(worker->spec.seed, piece->number, word);
  bool has_alias = false;
  for (uint32_t i = piece->starts[index]; i < piece->starts[index + 1]; i++) {
    uint32_t topic = lda_proposed(piece->pairs[i]);
    if (lda_topic(piece->pairs[i]) != LDA_NONE) continue;
    if (topic == LDA_NONE && worker->start && !has_alias) {
      pawl_lda_model_phi(worker->start, word, weights);
      for (uint32_t k = 0; k < topics; k++) prior[k] = (double)weights[k] * worker->sampler.alpha[k] + 1e-300;
      lda_alias_of_weights(alias, prior, topics);
      has_alias = true;
    }
    if (topic == LDA_NONE) {
      uint32_t bits = (uint32_t)(lda_draw(&random) >> 32);
      topic = worker->start ? lda_alias_draw(alias, bits) : lda_below(bits, topics);
    }
    piece->pairs[i] = lda_pair(topic, topic);
  }
}

/* Gives a topic to every token, counted or not. */
static pawl_status give_topics(const struct lda_worker *worker, struct lda_piece *piece) {
  struct lda_alias alias = {0};
  float *weights = apps_alloc(worker->spec.topics * sizeof *weights);
  double *prior = apps_alloc(worker->spec.topics * sizeof *prior);
  bool is_well = weights && prior && lda_alias_init(&alias, worker->spec.topics);
  for (uint32_t index = 0; is_well && index < piece->words; index++)
    draw_topics(worker, piece, index, weights, &alias, prior);
  /* a token without a proposal proposes its own topic */
  for (uint32_t i = 0; is_well && i < piece->tokens; i++)
    if (lda_proposed(piece->pairs[i]) == LDA_NONE)
      piece->pairs[i] = lda_pair(lda_topic(piece->pairs[i]), lda_topic(piece->pairs[i]));
  lda_alias_fini(&alias);
  apps_free(weights);
  apps_free(prior);
  return is_well ? PAWL_OK : PAWL_NO_MEMORY;
}

static pawl_status load(struct lda_worker *worker, struct lda_block *block) {
  size_t row_bytes = worker->crew->width * sizeof(int32_t);
  if (block->is_arranged) return PAWL_OK;
  pawl_status status = lda_block_load(block, row_bytes, worker->error);
  for (size_t i = 0; i < block->piece_count && !status; i++) status = give_topics(worker, block->pieces[i]);
  /* a resident block pulls the same rows in every sweep, so the servers keep its key lists */
  for (size_t i = 0; i < block->slice_count && !status && worker->is_resident; i++)
    status = pawl_keys_create(worker->counts, block->keys + block->slices[i].key, block->slices[i].keys,
                              &block->slices[i].list);
  return status;
}

static pawl_status open_counts(struct lda_worker *worker) {
  char name[PAWL_NAME_MAX + 1];
  if (worker->counts) return PAWL_OK;
  lda_vector_name(&worker->spec, name);
  return pawl_vector_open(worker->session, name, LDA_TIMEOUT, &worker->counts);
}

static pawl_status ask_for_totals(struct lda_worker *worker, size_t width) {
  uint64_t key = worker->sampler.words;
  struct pawl_task *task;
  if (!worker->totals) worker->totals = apps_alloc_zero(width, sizeof *worker->totals);
  if (!worker->totals) return PAWL_NO_MEMORY;
  pawl_status status = pawl_vector_pull(worker->counts, pawl_at_keys(&key, 1), worker->totals, &task);
  return status ? status : pawl_task_finish(task, PAWL_FOREVER);
}

/* Builds blocks and threads for the present pieces. */
static pawl_status arrange(struct lda_worker *worker, const struct lda_order *order) {
  size_t width = worker->spec.topics + lda_marks_columns(worker->spec.pieces), rows = 1, longest = 0;
  uint64_t bytes = 0;
  if (worker->blocks && worker->crew) return PAWL_OK;
  lda_crew_destroy(worker->crew);
  worker->crew = NULL;
  forget_blocks(worker);
  uint64_t tokens = lda_block_tokens(order->tokens, pawl_worker_count(worker->worker));
  pawl_status status = lda_blocks_create(worker->pieces, worker->piece_count, worker->spec.memory, tokens,
                                         &worker->blocks, &worker->block_count);
  for (size_t i = 0; i < worker->block_count; i++)
    if (worker->blocks[i].longest > longest) longest = worker->blocks[i].longest;
  for (size_t i = 0; i < worker->piece_count; i++) bytes += lda_piece_bytes(worker->pieces[i]);
  worker->is_resident = bytes <= worker->spec.memory;
  rows = lda_slice_rows(width * sizeof(int32_t));
  if (!status)
    status = lda_crew_create(worker->session, worker->spec.threads, worker->spec.topics, width, rows, longest,
                             &worker->crew);
  return status;
}

static pawl_status prepare(struct lda_worker *worker, const struct lda_order *order) {
  size_t width = worker->spec.topics + lda_marks_columns(worker->spec.pieces);
  if (order->alpha_count != worker->spec.topics) return PAWL_CORRUPT;
  worker->sampler.words = order->words;
  worker->sampler.seed = worker->spec.seed;
  worker->sampler.beta = order->beta;
  memcpy(worker->sampler.alpha, order->alpha, order->alpha_count * sizeof *order->alpha);
  pawl_status status = open_counts(worker);
  for (size_t i = 0; i < worker->piece_count && !status; i++) {
    if (!worker->is_new[i]) status = lda_recover(worker, worker->pieces[i]);
    if (!status) worker->is_new[i] = true;
  }
  if (!status) status = arrange(worker, order);
  return status ? status : ask_for_totals(worker, width);
}

/* --- sweeps --------------------------------------------------------------------------------------------- */

static pawl_status sweep_all(struct lda_worker *worker, struct lda_reply *reply) {
  pawl_status status = PAWL_OK;
  uint64_t memory = 0;
  for (size_t i = 0; i < worker->block_count && !status; i++) {
    struct lda_block *block = &worker->blocks[i];
    status = load(worker, block);
    if (!status) status = lda_sweep_block(worker, block);
    if (status) break;
    reply->sampled += block->tokens;
    uint64_t bytes = lda_block_bytes(block);
    memory = worker->is_resident ? memory + bytes : bytes > memory ? bytes : memory;
    if (!worker->is_resident) lda_block_unload(block);
  }
  memory += lda_crew_bytes(worker->crew);
  if (memory > worker->memory) worker->memory = memory;
  return status;
}

/* Waits until no worker is more than `staleness` sweeps behind: OSDI'14's bounded delay, in sweeps. */
static pawl_status wait_for_others(struct lda_worker *worker, uint64_t first_tick, uint64_t done) {
  int64_t begun = apps_now();
  if (done <= worker->spec.staleness) return PAWL_OK;
  pawl_status status =
      pawl_group_await(pawl_worker_group(worker->worker), first_tick + done - worker->spec.staleness, PAWL_FOREVER);
  worker->waited_s += apps_seconds_since(begun);
  return status;
}

static pawl_status sweeps(struct lda_worker *worker, const struct lda_order *order, struct lda_reply *reply) {
  struct pawl_group *group = pawl_worker_group(worker->worker);
  uint64_t first_tick = pawl_group_tick(group);
  int64_t begun = apps_now();
  pawl_status status = PAWL_OK;
  for (uint64_t done = 0; done < order->sweeps && !status; done++) {
    bool is_last = done + 1 == order->sweeps;
    worker->sampler.sweep = order->sweep + done;
    worker->sampler.measures = is_last && order->measures;
    worker->sampler.optimises = is_last && order->optimises;
    status = wait_for_others(worker, first_tick, done);
    if (!status) status = sweep_all(worker, reply);
    if (!status) status = pawl_group_clock(group, NULL);
    if (!status && pawl_worker_is_ending(worker->worker)) status = PAWL_CANCELLED;
  }
  reply->sampled_ns = (uint64_t)(apps_now() - begun);
  return status;
}

static pawl_status sum_up(struct lda_worker *worker, const struct lda_order *order, struct lda_reply *reply) {
  struct lda_tally sum = {.alpha_sums = apps_alloc_zero(worker->spec.topics, sizeof(double))};
  uint64_t tokens = 0;
  if (!sum.alpha_sums) return PAWL_NO_MEMORY;
  for (uint32_t i = 0; i < worker->crew->count; i++) {
    struct lda_hand *hand = &worker->crew->hands[i];
    lda_tally_add(&sum, &hand->scratch.tally, worker->spec.topics);
    lda_tally_clear(&hand->scratch.tally, worker->spec.topics);
    worker->waited_s += (double)hand->waited_ns * 1e-9;
    hand->waited_ns = 0;
  }
  for (size_t i = 0; i < worker->piece_count; i++) tokens += worker->pieces[i]->tokens;
  double share = order->tokens > 0 ? (double)tokens / (double)order->tokens : 0;
  reply->document_part = sum.document_part;
  reply->word_part = sum.word_part;
  if (order->measures) reply->word_part += share * lda_totals_part(&worker->sampler, worker->totals);
  reply->alpha_length = sum.alpha_length;
  reply->beta_sum = sum.beta_sum;
  if (order->optimises) {
    reply->alpha_sums = sum.alpha_sums;
    reply->alpha_count = worker->spec.topics;
  } else {
    apps_free(sum.alpha_sums);
  }
  return PAWL_OK;
}

static pawl_status gibbs(struct lda_worker *worker, const struct lda_order *order, struct lda_reply *reply) {
  pawl_status status = prepare(worker, order);
  if (!status) status = sweeps(worker, order, reply);
  return status ? status : sum_up(worker, order, reply);
}

static pawl_status obey(struct lda_worker *worker, const struct lda_order *order, struct lda_reply *reply) {
  describe(worker, reply);
  reply->skipped = pawl_data_skipped(worker->data);
  if (order->what == LDA_DESCRIBE) return PAWL_OK;
  return worker->spec.method == PAWL_LDA_SVI ? lda_svi_pass(worker, order, reply) : gibbs(worker, order, reply);
}

/* After a failure, the memory may be ahead of the counts on the servers. So the worker drops it and recovers
 * the pieces from their files, as if it had taken them over from another worker. */
static void distrust(struct lda_worker *worker) {
  forget_blocks(worker);
  for (size_t i = 0; i < worker->piece_count; i++) worker->is_new[i] = false;
}

static pawl_status work(struct pawl_worker *handle, void *context, const void *argument, size_t size) {
  struct lda_worker *worker = context;
  struct lda_order order;
  struct lda_reply reply = {0};
  struct pawl_session_figures figures;
  int64_t begun = apps_now();
  if (!lda_order_read(argument, size, &order)) return PAWL_CORRUPT;
  worker->waited_s = 0;
  pawl_status status = obey(worker, &order, &reply);
  if (status) distrust(worker);
  pawl_session_figures(worker->session, &figures);
  reply.bytes_sent = figures.bytes_sent;
  reply.bytes_received = figures.bytes_received;
  reply.memory = worker->memory;
  reply.waited_s = worker->waited_s;
  reply.worked_s = apps_seconds_since(begun);
  char *text = status ? NULL : lda_reply_write(&reply);
  if (!status) status = text ? pawl_worker_report(handle, text, strlen(text)) : PAWL_NO_MEMORY;
  apps_json_free(text);
  lda_reply_fini(&reply);
  lda_order_fini(&order);
  return complain(worker, status);
}

static void finish(struct pawl_worker *handle, void *context) {
  struct lda_worker *worker = context;
  (void)handle;
  forget_blocks(worker);
  lda_crew_destroy(worker->crew);
  lda_svi_destroy(worker);
  lda_sampler_fini(&worker->sampler);
  for (size_t i = 0; i < worker->piece_count; i++) {
    lda_piece_close(worker->pieces[i]);
    apps_free(worker->pieces[i]);
  }
  apps_free(worker->pieces);
  apps_free(worker->is_new);
  apps_free(worker->totals);
  pawl_vector_close(worker->counts);
  pawl_data_close(worker->data);
  pawl_words_release(worker->vocabulary);
  pawl_lda_model_destroy(worker->start);
  lda_spec_fini(&worker->spec);
  memset(worker, 0, sizeof *worker);
}

pawl_status pawl_lda_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                          char error[PAWL_LDA_TEXT]) {
  static const struct pawl_worker_calls calls = {begin, take, drop, work, finish};
  struct lda_worker *worker = apps_alloc_zero(1, sizeof *worker);
  if (!worker) return PAWL_NO_MEMORY;
  pawl_status status = pawl_worker_run(session, job ? job : "lda", &calls, worker, timeout_ns);
  if (status && error) snprintf(error, PAWL_LDA_TEXT, "%s", apps_error_text(status));
  apps_free(worker);
  return status;
}
