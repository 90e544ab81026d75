/* Stochastic variational inference in a worker: a part of a pass over its documents. apps/lda/svi/step.h has the
 * mathematics.
 *
 * Documents are streamed: pieces are read one after another, in a new order in each pass, and so are the documents of
 * a piece. A batch may span several pieces. For each batch a worker
 *
 *   takes a ticket        adds 1 to the number of steps, one number on a server: the answer t is unique,
 *   pulls                 the rows of mu of the batch's words, and the totals; they are s_(t-1) mu,
 *   finds gamma           of each document,
 *   pushes                rho_t D/|S| / s_t times its sums.
 *
 * STALENESS. The pulled rows include the decay of steps whose tickets other workers have taken, but not yet their
 * pushes. With W workers, a worker sees lambda as it was about W - 1 steps before, too small by as many times rho. This
 * factor is about the same for all words and topics, and so has little effect on exp(E log beta). The pushed values
 * do not depend on the order of pushes. A worker that dies between ticket and push leaves a decay without its
 * update: one more step of forgetting, which later steps make up for.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/lda/inside.h"
#include "apps/lda/random.h"
#include "apps/lda/svi/step.h"

struct lda_svi {
  struct pawl_vector *steps;
  struct lda_svi_batch batch;
  struct lda_svi_step step;
  struct lda_svi_rate rate;
  float *rows, *changes; /* `room` floats each, in memory shared with servers on this machine */
  size_t room;
  struct pawl_task *push; /* push of `changes` to `keys` */
  uint64_t *keys;
  size_t key_room;
  uint64_t base, t; /* decay is that of steps base + 1 … t */
  double decay;
};

static pawl_status finish_task(struct lda_worker *worker, struct pawl_task **task) {
  int64_t begun = apps_now();
  if (!*task) return PAWL_OK;
  pawl_status status = pawl_task_finish(*task, PAWL_FOREVER);
  *task = NULL;
  worker->waited_s += apps_seconds_since(begun);
  return status;
}

void lda_svi_destroy(struct lda_worker *worker) {
  struct lda_svi *svi = worker->svi;
  if (!svi) return;
  finish_task(worker, &svi->push);
  pawl_buffer_destroy(worker->session, svi->rows);
  pawl_buffer_destroy(worker->session, svi->changes);
  apps_free(svi->keys);
  lda_svi_batch_fini(&svi->batch);
  lda_svi_step_fini(&svi->step);
  pawl_vector_close(svi->steps);
  apps_free(svi);
  worker->svi = NULL;
}

static pawl_status open_vectors(struct lda_worker *worker) {
  char name[PAWL_NAME_MAX + 1];
  pawl_status status = PAWL_OK;
  if (!worker->svi) worker->svi = apps_alloc_zero(1, sizeof *worker->svi);
  if (!worker->svi) return PAWL_NO_MEMORY;
  if (!worker->counts) {
    lda_vector_name(&worker->spec, name);
    status = pawl_vector_open(worker->session, name, LDA_TIMEOUT, &worker->counts);
  }
  if (status || worker->svi->steps) return status;
  lda_svi_steps_name(&worker->spec, name);
  return pawl_vector_open(worker->session, name, LDA_TIMEOUT, &worker->svi->steps);
}

static pawl_status prepare(struct lda_worker *worker, const struct lda_order *order) {
  if (order->alpha_count != worker->spec.topics || order->groups < 1 || order->splits < 1) return PAWL_CORRUPT;
  pawl_status status = open_vectors(worker);
  if (status) return status;
  struct lda_svi *svi = worker->svi;
  svi->rate = (struct lda_svi_rate){worker->spec.kappa, worker->spec.offset};
  svi->base = svi->t = order->base;
  svi->decay = 0;
  svi->step.topics = worker->spec.topics;
  svi->step.threads = worker->spec.threads;
  svi->step.words = order->words;
  svi->step.beta = order->beta;
  svi->step.alpha = order->alpha;
  return PAWL_OK;
}

/* --- a batch -------------------------------------------------------------------------------------------- */

/* Makes room for the batch's rows, after earlier pushes have been acknowledged. */
static pawl_status make_room(struct lda_worker *worker) {
  struct lda_svi *svi = worker->svi;
  size_t rows = svi->batch.rows + 1, values = rows * worker->spec.topics;
  pawl_status status = PAWL_OK;
  if (rows > svi->key_room) {
    uint64_t *keys = apps_resize(svi->keys, (rows + rows / 4) * sizeof *keys);
    if (!keys) return PAWL_NO_MEMORY;
    svi->keys = keys;
    svi->key_room = rows + rows / 4;
  }
  if (values <= svi->room) return PAWL_OK;
  pawl_buffer_destroy(worker->session, svi->rows);
  pawl_buffer_destroy(worker->session, svi->changes);
  svi->rows = svi->changes = NULL;
  svi->room = 0;
  values += values / 4;
  status = pawl_buffer_create(worker->session, values * sizeof(float), (void **)&svi->rows);
  if (!status) status = pawl_buffer_create(worker->session, values * sizeof(float), (void **)&svi->changes);
  if (!status) svi->room = values;
  return status;
}

/* Requests the ticket and the rows in parallel. */
static pawl_status ask(struct lda_worker *worker, uint64_t *t_out) {
  struct lda_svi *svi = worker->svi;
  int64_t one = 1, t = 0;
  struct pawl_task *ticket = NULL, *pull = NULL;
  pawl_status status = pawl_vector_pushpull(svi->steps, pawl_at_range(0, 1), &one, &t, &ticket);
  if (!status)
    status = pawl_vector_pull(worker->counts, pawl_at_keys(svi->keys, svi->batch.rows + 1), svi->rows, &pull);
  pawl_status pulled = finish_task(worker, &pull), ticketed = finish_task(worker, &ticket);
  if (!status) status = pulled ? pulled : ticketed;
  if (!status && (uint64_t)t <= svi->base) status = PAWL_CORRUPT;
  if (!status) *t_out = (uint64_t)t;
  return status;
}

/* The decay up to step t. Tickets are ascending, unless a server answered twice. */
static double decay_at(struct lda_svi *svi, uint64_t t) {
  if (t < svi->t) return lda_svi_decay(&svi->rate, svi->base, t);
  svi->decay += lda_svi_decay(&svi->rate, svi->t, t);
  svi->t = t;
  return svi->decay;
}

static pawl_status run_batch(struct lda_worker *worker, const struct lda_order *order, struct lda_reply *reply) {
  struct lda_svi *svi = worker->svi;
  uint64_t t = 0;
  double log_sum;
  if (svi->batch.entries == 0) return PAWL_OK;
  pawl_status status = lda_svi_batch_index(&svi->batch, order->words);
  if (!status) status = finish_task(worker, &svi->push);
  if (!status) status = make_room(worker);
  if (status) return status;
  memcpy(svi->keys, svi->batch.keys, (svi->batch.rows + 1) * sizeof *svi->keys);
  status = ask(worker, &t);
  if (status) return status;
  svi->step.scale = exp(-decay_at(svi, t - 1));
  double times = (double)order->documents / (double)svi->batch.documents;
  svi->step.by = times * lda_svi_rho(&svi->rate, t) * exp(decay_at(svi, t));
  status = lda_svi_step_run(&svi->step, &svi->batch, svi->rows, svi->changes, &log_sum);
  if (!status)
    status = pawl_vector_push(worker->counts, pawl_at_keys(svi->keys, svi->batch.rows + 1), svi->changes, &svi->push);
  if (!status) reply->word_part += log_sum;
  reply->sampled += svi->batch.tokens;
  return status;
}

/* --- documents ------------------------------------------------------------------------------------------ */

static bool has_part(const struct lda_order *order, uint64_t piece) {
  return piece % order->groups == order->part % order->groups;
}

/* The number of documents in this part, of a piece that has `rows` of them: every splits-th. */
static uint64_t documents_in(const struct lda_order *order, uint64_t rows) {
  uint64_t first = order->part / order->groups;
  return rows > first ? (rows - first - 1) / order->splits + 1 : 0;
}

static void shuffle(uint32_t *items, size_t count, struct lda_random random) {
  for (size_t i = count; i > 1; i--) {
    size_t other = lda_below((uint32_t)(lda_draw(&random) >> 32), (uint32_t)i);
    uint32_t item = items[i - 1];
    items[i - 1] = items[other];
    items[other] = item;
  }
}

/* The progress of this part: `done` of `all` documents, divided evenly into `batches` of about the right
 * size. */
struct walk {
  uint64_t all, done, batches, batch;
};

static bool is_batch_full(const struct walk *walk) {
  return walk->done >= walk->all * (walk->batch + 1) / walk->batches;
}

static pawl_status add_document(struct lda_worker *worker, const struct lda_order *order, struct walk *walk,
                                const struct pawl_batch *from, size_t row, struct lda_reply *reply) {
  struct lda_svi_batch *batch = &worker->svi->batch;
  pawl_status status = lda_svi_batch_add(batch, from, row);
  walk->done++;
  if (status || !is_batch_full(walk)) return status;
  status = run_batch(worker, order, reply);
  lda_svi_batch_clear(batch);
  walk->batch++;
  return !status && pawl_worker_is_ending(worker->worker) ? PAWL_CANCELLED : status;
}

static pawl_status go_through(struct lda_worker *worker, const struct lda_order *order, struct walk *walk,
                              uint64_t piece, struct lda_reply *reply) {
  struct pawl_batch *from;
  pawl_status status = pawl_data_read(worker->data, (size_t)piece, &from);
  if (status) return status;
  size_t count = (size_t)documents_in(order, from->rows);
  uint32_t *documents = apps_alloc((count + 1) * sizeof *documents);
  if (!documents) status = PAWL_NO_MEMORY;
  for (size_t i = 0; i < count && !status; i++)
    documents[i] = (uint32_t)(order->part / order->groups + i * order->splits);
  if (!status) shuffle(documents, count, lda_random_of(worker->spec.seed, order->sweep, piece));
  for (size_t i = 0; i < count && !status; i++) status = add_document(worker, order, walk, from, documents[i], reply);
  apps_free(documents);
  pawl_batch_destroy(from);
  return status;
}

/* The worker's pieces of this part, shuffled, with their numbers of documents. */
static size_t choose_pieces(const struct lda_worker *worker, const struct lda_order *order, uint32_t *pieces,
                            struct walk *walk) {
  size_t count = 0;
  for (size_t i = 0; i < worker->piece_count; i++) {
    const struct lda_piece *piece = worker->pieces[i];
    if (!has_part(order, piece->number)) continue;
    pieces[count++] = (uint32_t)piece->number;
    walk->all += documents_in(order, piece->documents + piece->empty);
  }
  shuffle(pieces, count, lda_random_of(worker->spec.seed, order->sweep, UINT64_MAX));
  walk->batches = (walk->all + worker->spec.batch / 2) / worker->spec.batch;
  if (walk->batches < 1) walk->batches = 1;
  return count;
}

static uint64_t bytes_of(const struct lda_svi *svi) {
  const struct lda_svi_batch *batch = &svi->batch;
  const struct lda_svi_step *step = &svi->step;
  return 2 * svi->room * sizeof(float) + batch->entry_room * 16 + batch->words_room * 4 + batch->row_room * 24 +
         (step->own_room + step->beta_room + step->theta_room + step->ratio_room) * sizeof(float);
}

pawl_status lda_svi_pass(struct lda_worker *worker, const struct lda_order *order, struct lda_reply *reply) {
  struct walk walk = {0};
  uint32_t *pieces = apps_alloc((worker->piece_count + 1) * sizeof *pieces);
  int64_t begun = apps_now();
  pawl_status status = pieces ? prepare(worker, order) : PAWL_NO_MEMORY;
  size_t count = status ? 0 : choose_pieces(worker, order, pieces, &walk);
  for (size_t i = 0; i < count && !status; i++) status = go_through(worker, order, &walk, pieces[i], reply);
  apps_free(pieces);
  if (!worker->svi) return status;
  lda_svi_batch_clear(&worker->svi->batch);
  pawl_status pushed = finish_task(worker, &worker->svi->push);
  worker->svi->step.alpha = NULL;
  uint64_t memory = bytes_of(worker->svi);
  if (memory > worker->memory) worker->memory = memory;
  reply->sampled_ns = (uint64_t)(apps_now() - begun);
  return status ? status : pushed;
}
