/* Batches of documents, and their words as rows: see apps/lda/svi/step.h. */
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/lda/svi/step.h"

void lda_svi_batch_fini(struct lda_svi_batch *batch) {
  apps_free(batch->starts);
  apps_free(batch->words);
  apps_free(batch->counts);
  apps_free(batch->keys);
  apps_free(batch->row_starts);
  apps_free(batch->row_entries);
  apps_free(batch->row_in);
  apps_free(batch->index);
  apps_free(batch->marks);
  memset(batch, 0, sizeof *batch);
}

void lda_svi_batch_clear(struct lda_svi_batch *batch) {
  batch->documents = batch->entries = batch->rows = 0;
  batch->tokens = 0;
}

/* Grows an array. It may have moved even if a later call fails. */
static bool grow(void *array, size_t each, size_t count) {
  void *before, *after;
  memcpy(&before, array, sizeof before);
  if (count > SIZE_MAX / each) return false;
  after = apps_resize(before, count * each);
  if (after) memcpy(array, &after, sizeof after);
  return after;
}

static bool have_documents(struct lda_svi_batch *batch) {
  if (batch->documents + 2 <= batch->document_room) return true;
  size_t room = 2 * batch->document_room + 256;
  if (!grow(&batch->starts, sizeof *batch->starts, room)) return false;
  batch->document_room = room;
  return true;
}

static bool have_entries(struct lda_svi_batch *batch, size_t more) {
  if (batch->entries + more <= batch->entry_room) return true;
  size_t room = batch->entry_room + batch->entry_room / 2 + more + 1024;
  if (!grow(&batch->words, sizeof *batch->words, room) || !grow(&batch->counts, sizeof *batch->counts, room))
    return false;
  batch->entry_room = room;
  return true;
}

pawl_status lda_svi_batch_add(struct lda_svi_batch *batch, const struct pawl_batch *from, size_t row) {
  uint64_t begin = from->starts[row], end = from->starts[row + 1];
  if (!have_documents(batch) || !have_entries(batch, end - begin)) return PAWL_NO_MEMORY;
  if (batch->documents == 0) batch->starts[0] = 0;
  for (uint64_t i = begin; i < end; i++) {
    if (from->ids[i] - 1 >= UINT32_MAX) return PAWL_MISMATCH;
    batch->words[batch->entries] = (uint32_t)(from->ids[i] - 1);
    batch->counts[batch->entries] = from->values ? from->values[i] : 1;
    batch->tokens += (uint64_t)batch->counts[batch->entries++];
  }
  batch->starts[++batch->documents] = batch->entries;
  return PAWL_OK;
}

static bool have_words(struct lda_svi_batch *batch, uint64_t words) {
  if (words <= batch->words_room) return true;
  apps_free(batch->marks);
  batch->words_room = 0;
  batch->marks = apps_alloc_zero(words / 64 + 1, sizeof *batch->marks);
  if (!batch->marks || !grow(&batch->index, sizeof *batch->index, words)) return false;
  batch->words_room = words;
  return true;
}

static bool have_index(struct lda_svi_batch *batch) {
  if (batch->entries <= batch->index_room) return true;
  if (!grow(&batch->row_entries, sizeof *batch->row_entries, batch->entry_room) ||
      !grow(&batch->row_in, sizeof *batch->row_in, batch->entry_room))
    return false;
  batch->index_room = batch->entry_room;
  return true;
}

static bool have_rows(struct lda_svi_batch *batch, size_t rows) {
  if (rows + 2 <= batch->row_room) return true;
  size_t room = rows + rows / 4 + 2;
  if (!grow(&batch->keys, sizeof *batch->keys, room) || !grow(&batch->row_starts, sizeof *batch->row_starts, room))
    return false;
  batch->row_room = room;
  return true;
}

/* Marks the words that occur, one bit each. */
static size_t mark_words(struct lda_svi_batch *batch) {
  size_t different = 0;
  for (size_t i = 0; i < batch->entries; i++) {
    uint64_t *mark = &batch->marks[batch->words[i] / 64], bit = UINT64_C(1) << batch->words[i] % 64;
    different += !(*mark & bit);
    *mark |= bit;
  }
  return different;
}

/* Collects the marked words in ascending order, and clears the marks. */
static void number_words(struct lda_svi_batch *batch, uint64_t words) {
  batch->rows = 0;
  for (uint64_t i = 0; i <= words / 64; i++) {
    for (uint64_t marks = batch->marks[i]; marks; marks &= marks - 1) {
      uint64_t word = 64 * i + (uint64_t)__builtin_ctzll(marks);
      batch->index[word] = (uint32_t)batch->rows;
      batch->keys[batch->rows++] = word;
    }
    batch->marks[i] = 0;
  }
  batch->keys[batch->rows] = words;
}

/* Sorts the entries by row, then by document. */
static void turn(struct lda_svi_batch *batch) {
  uint64_t *starts = batch->row_starts;
  memset(starts, 0, (batch->rows + 1) * sizeof *starts);
  for (size_t i = 0; i < batch->entries; i++) {
    batch->words[i] = batch->index[batch->words[i]];
    starts[batch->words[i] + 1]++;
  }
  for (size_t row = 0; row < batch->rows; row++) starts[row + 1] += starts[row];
  for (size_t d = 0; d < batch->documents; d++)
    for (uint64_t i = batch->starts[d]; i < batch->starts[d + 1]; i++) {
      uint64_t at = starts[batch->words[i]]++;
      batch->row_entries[at] = (uint32_t)i;
      batch->row_in[at] = (uint32_t)d;
    }
  /* each element now is the end of its row, and so the start of the next */
  memmove(starts + 1, starts, batch->rows * sizeof *starts);
  starts[0] = 0;
}

pawl_status lda_svi_batch_index(struct lda_svi_batch *batch, uint64_t words) {
  if (batch->entries > UINT32_MAX || batch->documents > UINT32_MAX) return PAWL_TOO_LARGE;
  for (size_t i = 0; i < batch->entries; i++)
    if (batch->words[i] >= words) return PAWL_MISMATCH;
  if (!have_words(batch, words) || !have_index(batch)) return PAWL_NO_MEMORY;
  size_t different = mark_words(batch);
  if (!have_rows(batch, different)) {
    memset(batch->marks, 0, (batch->words_room / 64 + 1) * sizeof *batch->marks);
    return PAWL_NO_MEMORY;
  }
  number_words(batch, words);
  turn(batch);
  return PAWL_OK;
}
