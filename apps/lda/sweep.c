/* A sweep over a block: the phase of documents, then the phase of words, which exchanges rows with the servers.
 *
 * The words come in slices. While a thread works on one slice, it pulls the rows of the next and pushes the changes of
 * the previous ones. For each slice, topics are written to the files of the pieces before the changes are pushed. When
 * all pushes are acknowledged, the totals are pushed, and then the versions in the files are raised: see marks.h and
 * piece.h.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/lda/crew.h"
#include "apps/lda/inside.h"
#include "apps/lda/marks.h"
#include "apps/lda/random.h"

enum { DOCUMENTS_AT_ONCE = 256, SPANS_MAX = 64 };

struct sweep {
  struct lda_worker *worker;
  struct lda_block *block;
  atomic_size_t next_share, next_slice; /* next unassigned share of documents, and next unassigned slice */
};

/* --- rows ----------------------------------------------------------------------------------------------- */

static struct pawl_where rows_of(const struct lda_block *block, const struct lda_slice *slice) {
  return slice->list ? pawl_at_list(slice->list) : pawl_at_keys(block->keys + slice->key, slice->keys);
}

/* Pulls the rows of the next slice. `*slice_out` is NULL if there is none. */
static pawl_status ask(struct sweep *sweep, struct lda_hand *hand, struct lda_rows *rows,
                       const struct lda_slice **slice_out) {
  size_t number = atomic_fetch_add(&sweep->next_slice, 1);
  *slice_out = NULL;
  if (number >= sweep->block->slice_count) return PAWL_OK;
  struct lda_slice *slice = &sweep->block->slices[number];
  pawl_status status = lda_hand_finish(hand, &rows->push); /* its push uses the buffers of the next slice */
  if (!status) status = pawl_vector_pull(sweep->worker->counts, rows_of(sweep->block, slice), rows->rows, &rows->pull);
  if (!status) *slice_out = slice;
  return status;
}

/* --- documents ------------------------------------------------------------------------------------------ */

/* Shares are numbered across all pieces. Finds the piece and the start of the next share. */
static bool next_share(struct sweep *sweep, size_t *piece, uint32_t *begin) {
  size_t share = atomic_fetch_add(&sweep->next_share, 1);
  for (size_t p = 0; p < sweep->block->piece_count; p++) {
    size_t shares = (sweep->block->pieces[p]->documents + DOCUMENTS_AT_ONCE - 1) / DOCUMENTS_AT_ONCE;
    if (share < shares) {
      *piece = p;
      *begin = (uint32_t)share * DOCUMENTS_AT_ONCE;
      return true;
    }
    share -= shares;
  }
  return false;
}

static pawl_status go_through_documents(void *context, struct lda_hand *hand) {
  struct sweep *sweep = context;
  size_t p;
  uint32_t begin;
  pawl_status status = PAWL_OK;
  memset(hand->slices, 0, sizeof hand->slices);
  for (size_t i = 0; i + 1 < LDA_BUFFERS && !status; i++) /* pull the first rows in the meantime */
    status = ask(sweep, hand, &hand->buffers[i], &hand->slices[i]);
  while (next_share(sweep, &p, &begin)) {
    const struct lda_piece *piece = sweep->block->pieces[p];
    uint32_t end = piece->documents - begin < DOCUMENTS_AT_ONCE ? piece->documents : begin + DOCUMENTS_AT_ONCE;
    for (uint32_t d = begin; d < end; d++)
      lda_sample_document(&sweep->worker->sampler, &hand->scratch, piece->number << 32 | d, piece->pairs,
                          piece->at + piece->documents_at[d], piece->documents_at[d + 1] - piece->documents_at[d]);
  }
  return status;
}

/* --- words ---------------------------------------------------------------------------------------------- */

/* Samples one word. `change` gets the change of its row. */
static void work_on_word(struct sweep *sweep, struct lda_hand *hand, const struct lda_run *runs, size_t count,
                         int32_t *row, int32_t *change) {
  const struct lda_worker *worker = sweep->worker;
  struct lda_span few[SPANS_MAX], *spans = count <= SPANS_MAX ? few : apps_alloc(count * sizeof *spans);
  uint32_t topics = worker->sampler.topics;
  if (!spans) {
    hand->status = PAWL_NO_MEMORY;
    return;
  }
  memset(change + topics, 0, lda_marks_columns(worker->spec.pieces) * sizeof *change);
  for (size_t i = 0; i < count; i++) {
    const struct lda_piece *piece = sweep->block->pieces[runs[i].piece];
    uint32_t start = piece->starts[runs[i].index];
    spans[i] =
        (struct lda_span){piece->pairs + start, piece->counted + start, piece->starts[runs[i].index + 1] - start};
    lda_mark_flip(change, topics, piece->number, piece->version);
  }
  memcpy(change, row, topics * sizeof *change);
  lda_sample_word(&worker->sampler, &hand->scratch, runs[0].word | sweep->block->pieces[0]->number << 32, spans, count,
                  row);
  for (uint32_t k = 0; k < topics; k++) {
    change[k] = row[k] - change[k];
    hand->totals[k] += (uint32_t)change[k];
  }
  if (spans != few) apps_free(spans);
}

/* Writes the topics of the slice's words, piece by piece, each as one range of its file. */
static pawl_status write_topics(const struct lda_block *block, const struct lda_slice *slice) {
  const struct lda_run *runs = block->runs + slice->run;
  uint64_t last = block->keys[slice->key + slice->keys - 1];
  pawl_status status = PAWL_OK;
  for (size_t p = 0; p < block->piece_count && !status; p++) {
    const struct lda_piece *piece = block->pieces[p];
    size_t i = 0;
    while (i < slice->runs && runs[i].piece != p) i++;
    if (i == slice->runs) continue;
    uint32_t begin = runs[i].index, end = begin;
    while (end < piece->words && piece->ids[end] <= last) end++;
    status = lda_piece_write(piece, piece->starts[begin], piece->starts[end]);
  }
  return status;
}

static pawl_status work_on_slice(struct sweep *sweep, struct lda_hand *hand, const struct lda_slice *slice,
                                 struct lda_rows *rows) {
  const struct lda_block *block = sweep->block;
  size_t width = sweep->worker->crew->width, run = slice->run, end = slice->run + slice->runs;
  pawl_status status = lda_hand_finish(hand, &rows->pull);
  if (status) return status;
  for (size_t i = 0; i < slice->keys; i++) {
    size_t first = run;
    while (run < end && block->runs[run].word == block->keys[slice->key + i]) run++;
    work_on_word(sweep, hand, block->runs + first, run - first, rows->rows + i * width, rows->changes + i * width);
  }
  status = hand->status ? hand->status : write_topics(block, slice);
  if (!status) status = pawl_vector_push(sweep->worker->counts, rows_of(block, slice), rows->changes, &rows->push);
  return status;
}

/* The rows of LDA_BUFFERS - 1 slices are in flight while one is sampled. A buffer is reused once its push was
 * acknowledged. */
static pawl_status go_through_words(void *context, struct lda_hand *hand) {
  struct sweep *sweep = context;
  const struct lda_slice **slices = hand->slices;
  size_t turn = 0;
  pawl_status status = PAWL_OK;
  while (slices[turn] && !status) {
    size_t last = (turn + LDA_BUFFERS - 1) % LDA_BUFFERS;
    status = ask(sweep, hand, &hand->buffers[last], &slices[last]);
    if (!status) status = work_on_slice(sweep, hand, slices[turn], &hand->buffers[turn]);
    turn = (turn + 1) % LDA_BUFFERS;
  }
  for (int i = 0; i < LDA_BUFFERS; i++) { /* no task may be in flight on return */
    pawl_status pulled = lda_hand_finish(hand, &hand->buffers[i].pull);
    pawl_status pushed = lda_hand_finish(hand, &hand->buffers[i].push);
    if (!status) status = pulled ? pulled : pushed;
  }
  return status;
}

/* --- the whole ------------------------------------------------------------------------------------------ */

/* Pushes the changes of the totals by all threads, and every piece's mark in their row; pulls the new
 * totals. */
static pawl_status push_totals(struct lda_worker *worker, const struct lda_block *block) {
  uint32_t topics = worker->sampler.topics;
  uint64_t key = worker->sampler.words;
  int32_t *change = apps_alloc_zero(worker->crew->width, sizeof *change);
  struct pawl_task *task = NULL;
  if (!change) return PAWL_NO_MEMORY;
  for (uint32_t i = 0; i < worker->crew->count; i++) {
    uint32_t *sums = worker->crew->hands[i].totals;
    for (uint32_t k = 0; k < topics; k++) change[k] = (int32_t)((uint32_t)change[k] + sums[k]);
    memset(sums, 0, topics * sizeof *sums);
  }
  for (size_t p = 0; p < block->piece_count; p++)
    lda_mark_flip(change, topics, block->pieces[p]->number, block->pieces[p]->version);
  pawl_status status = pawl_vector_pushpull(worker->counts, pawl_at_keys(&key, 1), change, worker->totals, &task);
  if (!status) status = lda_hand_finish(&worker->crew->hands[0], &task);
  apps_free(change);
  return status;
}

pawl_status lda_sweep_block(struct lda_worker *worker, struct lda_block *block) {
  struct sweep sweep = {.worker = worker, .block = block};
  lda_sampler_prepare(&worker->sampler, worker->totals);
  pawl_status status = lda_crew_run(worker->crew, go_through_documents, &sweep);
  pawl_status counted = lda_crew_run(worker->crew, go_through_words, &sweep); /* also waits for tasks in flight */
  if (!status) status = counted;
  if (!status) status = push_totals(worker, block);
  for (size_t p = 0; p < block->piece_count && !status; p++) status = lda_piece_commit(block->pieces[p]);
  return status;
}
