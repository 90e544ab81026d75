/* Taking over a piece from a worker that has died: see marks.h.
 *
 * The rows of the piece's words are read with a push that changes nothing, so that what is read is what the
 * servers will never lose, and nothing that was sent before can take effect later: the one who died is on no
 * membership any more. A copy takes the place of the file, since that one may only have been stopped, and go
 * on writing. Words that are not at the version that was under way are brought there as they are, with their
 * topics unchanged; then the totals, then the head of the file. All of it may be interrupted and done again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lda/inside.h"
#include "apps/lda/marks.h"

enum { ROWS_BYTES = 1 << 20 };

struct recovery {
  struct lda_worker *worker;
  struct lda_piece *piece;
  uint32_t topics;
  size_t width, rows; /* at a time */
  uint64_t *keys;
  int32_t *change, *stored;
  bool *is_ahead; /* by word of the piece */
  size_t ahead;
  uint32_t *next; /* pairs of the version that was under way */
};

static pawl_status exchange(struct recovery *recovery, size_t count) {
  struct pawl_task *task;
  pawl_status status = pawl_vector_pushpull(recovery->worker->counts, pawl_at_keys(recovery->keys, count),
                                            recovery->change, recovery->stored, &task);
  return status ? status : pawl_task_finish(task, PAWL_FOREVER);
}

static pawl_status look(struct recovery *recovery) {
  struct lda_piece *piece = recovery->piece;
  pawl_status status = PAWL_OK;
  memset(recovery->change, 0, recovery->rows * recovery->width * sizeof *recovery->change);
  for (uint32_t begin = 0; begin < piece->words && !status; begin += (uint32_t)recovery->rows) {
    size_t count = piece->words - begin < recovery->rows ? piece->words - begin : recovery->rows;
    for (size_t i = 0; i < count; i++) recovery->keys[i] = piece->ids[begin + i];
    status = exchange(recovery, count);
    for (size_t i = 0; i < count && !status; i++) {
      bool is_ahead =
          lda_mark_is_ahead(recovery->stored + i * recovery->width, recovery->topics, piece->number, piece->version);
      recovery->is_ahead[begin + i] = is_ahead;
      recovery->ahead += is_ahead;
    }
  }
  return status;
}

/* A piece without words has no row but that of the totals. */
static pawl_status look_at_totals(struct recovery *recovery) {
  const struct lda_piece *piece = recovery->piece;
  recovery->keys[0] = recovery->worker->sampler.words;
  pawl_status status = exchange(recovery, 1);
  if (!status) recovery->ahead += lda_mark_is_ahead(recovery->stored, recovery->topics, piece->number, piece->version);
  return status;
}

static bool is_topic(const struct recovery *recovery, uint32_t topic) {
  return topic < recovery->topics || topic == LDA_NONE;
}

/* What was read of the version under way has been checked by nobody, and is about to be counted. */
static pawl_status check_next(const struct recovery *recovery) {
  const struct lda_piece *piece = recovery->piece;
  for (uint32_t w = 0; w < piece->words; w++)
    for (uint32_t i = piece->starts[w]; i < piece->starts[w + 1] && recovery->is_ahead[w]; i++)
      if (!is_topic(recovery, lda_topic(recovery->next[i])) || !is_topic(recovery, lda_proposed(recovery->next[i]))) {
        snprintf(recovery->worker->error, PAWL_LDA_TEXT, "%.300s: the piece is damaged", piece->path);
        return PAWL_CORRUPT;
      }
  return PAWL_OK;
}

/* Topics as they were, for words whose rows do not have the new ones; on disk first. */
static pawl_status keep_old_topics(struct recovery *recovery) {
  struct lda_piece *piece = recovery->piece;
  pawl_status status = lda_piece_read_next(piece, 0, piece->tokens, recovery->next);
  if (!status) status = check_next(recovery);
  for (uint32_t w = 0; w < piece->words && !status; w++) {
    uint32_t begin = piece->starts[w], end = piece->starts[w + 1];
    if (!recovery->is_ahead[w])
      status = lda_piece_write(piece, begin, end);
    else
      memcpy(piece->pairs + begin, recovery->next + begin, (end - begin) * sizeof *piece->pairs);
  }
  return status;
}

static pawl_status flip_marks(struct recovery *recovery) {
  struct lda_piece *piece = recovery->piece;
  pawl_status status = PAWL_OK;
  size_t count = 0;
  for (uint32_t w = 0; w <= piece->words && !status; w++) {
    if (count == recovery->rows || (w == piece->words && count > 0)) {
      status = exchange(recovery, count);
      memset(recovery->change, 0, count * recovery->width * sizeof *recovery->change);
      count = 0;
    }
    if (w == piece->words || recovery->is_ahead[w]) continue;
    recovery->keys[count] = piece->ids[w];
    lda_mark_flip(recovery->change + count++ * recovery->width, recovery->topics, piece->number, piece->version);
  }
  return status;
}

/* `counted` has the topics of the old version, the pairs those of the new one. */
static pawl_status bring_totals(struct recovery *recovery) {
  struct lda_piece *piece = recovery->piece;
  recovery->keys[0] = recovery->worker->sampler.words;
  memset(recovery->change, 0, recovery->width * sizeof *recovery->change);
  pawl_status status = exchange(recovery, 1);
  if (status || lda_mark_is_ahead(recovery->stored, recovery->topics, piece->number, piece->version)) return status;
  for (uint32_t i = 0; i < piece->tokens; i++) {
    uint32_t before = piece->counted[i], now = lda_topic(piece->pairs[i]);
    if (before != LDA_NONE) recovery->change[before]--;
    if (now != LDA_NONE) recovery->change[now]++;
  }
  lda_mark_flip(recovery->change, recovery->topics, piece->number, piece->version);
  return exchange(recovery, 1);
}

static bool make_room(struct recovery *recovery) {
  const struct lda_piece *piece = recovery->piece;
  recovery->rows = ROWS_BYTES / (recovery->width * sizeof(int32_t)) + 1;
  size_t bytes = recovery->rows * recovery->width * sizeof(int32_t);
  recovery->keys = malloc(recovery->rows * sizeof *recovery->keys);
  recovery->change = malloc(bytes);
  recovery->stored = malloc(bytes);
  recovery->is_ahead = calloc((size_t)piece->words + 1, sizeof *recovery->is_ahead);
  recovery->next = malloc(((size_t)piece->tokens + 1) * sizeof *recovery->next);
  return recovery->keys && recovery->change && recovery->stored && recovery->is_ahead && recovery->next;
}

pawl_status lda_recover(struct lda_worker *worker, struct lda_piece *piece) {
  struct recovery recovery = {.worker = worker,
                              .piece = piece,
                              .topics = worker->spec.topics,
                              .width = worker->spec.topics + lda_marks_columns(worker->spec.pieces)};
  pawl_status status = lda_piece_load(piece, worker->error);
  if (status) return status;
  status = make_room(&recovery) ? look(&recovery) : PAWL_NO_MEMORY;
  if (!status && piece->words == 0) status = look_at_totals(&recovery);
  if (!status) status = lda_piece_renew(piece, worker->error);
  if (!status && recovery.ahead > 0) {
    status = keep_old_topics(&recovery);
    if (!status) status = flip_marks(&recovery);
    if (!status) status = bring_totals(&recovery);
    if (!status) status = lda_piece_commit(piece);
  }
  free(recovery.keys);
  free(recovery.change);
  free(recovery.stored);
  free(recovery.is_ahead);
  free(recovery.next);
  lda_piece_unload(piece);
  return status;
}
