/* Pieces as files: see piece.h. Numbers are in the byte order of the machine; a file with another byte order
 * has another magic. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/errors.h"
#include "apps/common/memory.h"
#include "apps/lda/piece.h"
#include "apps/lda/sample.h"

#define MAGIC UINT64_C(0x31656365696c7761) /* "awliece1", read from the back */

struct head {
  uint64_t magic, corpus, number;
  uint64_t empty, unknown;
  uint32_t topics, documents, tokens, words, longest, last_word;
  uint64_t check; /* checksum of the fields before */
  uint64_t generation, version;
  uint64_t state_check; /* checksum of the two fields before */
};

enum { HEAD_BYTES = 4096 };
static_assert(sizeof(struct head) <= HEAD_BYTES, "the head has its place");

/* --- helpers -------------------------------------------------------------------------------------------- */

static uint64_t sum_of(const void *bytes, size_t size) {
  const unsigned char *at = bytes;
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < size; i++) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
  return hash;
}

static uint64_t head_check(const struct head *head) { return sum_of(head, offsetof(struct head, check)); }
static uint64_t state_check(const struct head *head) {
  return sum_of(&head->generation, offsetof(struct head, state_check) - offsetof(struct head, generation));
}

static pawl_status say(char error[PAWL_LDA_TEXT], pawl_status status, const char *path, const char *what) {
  if (error) snprintf(error, PAWL_LDA_TEXT, "%.300s: %s", path, what);
  return status;
}

static pawl_status write_at(int file, const void *bytes, size_t size, uint64_t offset) {
  for (const char *at = bytes; size > 0;) {
    ssize_t done = pwrite(file, at, size, (off_t)offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return apps_status_of_errno(errno);
    at += done;
    size -= (size_t)done;
    offset += (uint64_t)done;
  }
  return PAWL_OK;
}

static pawl_status read_at(int file, void *bytes, size_t size, uint64_t offset) {
  for (char *at = bytes; size > 0;) {
    ssize_t done = pread(file, at, size, (off_t)offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return apps_status_of_errno(errno);
    if (done == 0) return PAWL_TRUNCATED;
    at += done;
    size -= (size_t)done;
    offset += (uint64_t)done;
  }
  return PAWL_OK;
}

/* --- layout in the file and in memory ------------------------------------------------------------------- */

static uint64_t index_words(const struct lda_piece *piece) { /* index entries of 4 bytes, before the topics */
  return (uint64_t)piece->words + piece->words + 1 + piece->documents + 1 + piece->tokens;
}

static uint64_t array_at(const struct lda_piece *piece, uint64_t version) {
  return HEAD_BYTES + 4 * (index_words(piece) + (version & 1) * piece->tokens);
}

size_t lda_piece_bytes(const struct lda_piece *piece) {
  return (size_t)(4 * (index_words(piece) + piece->tokens) + 2 * (uint64_t)piece->tokens);
}

static pawl_status give_memory(struct lda_piece *piece) {
  uint32_t *block = apps_alloc(lda_piece_bytes(piece) + 64);
  if (!block) return PAWL_NO_MEMORY;
  piece->block = block;
  piece->ids = block;
  piece->starts = piece->ids + piece->words;
  piece->documents_at = piece->starts + piece->words + 1;
  piece->at = piece->documents_at + piece->documents + 1;
  piece->pairs = piece->at + piece->tokens;
  piece->counted = (uint16_t *)(piece->pairs + piece->tokens);
  return PAWL_OK;
}

void lda_piece_unload(struct lda_piece *piece) {
  apps_free(piece->block);
  piece->block = NULL;
  piece->ids = piece->starts = piece->documents_at = piece->at = piece->pairs = NULL;
  piece->counted = NULL;
  piece->is_loaded = false;
}

void lda_piece_close(struct lda_piece *piece) {
  lda_piece_unload(piece);
  if (piece->file >= 0) close(piece->file);
  memset(piece, 0, sizeof *piece);
  piece->file = -1;
}

static void path_of(const char *directory, uint64_t number, char path[static 4096]) {
  snprintf(path, 4096, "%s/piece-%06llu", directory, (unsigned long long)number);
}

/* --- creating a file ------------------------------------------------------------------------------------ */

static uint32_t count_of(const struct pawl_batch *batch, size_t entry) { /* 0: not a count */
  if (!batch->values) return 1;
  float value = batch->values[entry];
  return value >= 1 && value <= (float)PAWL_COUNT_MAX && value == (float)(uint32_t)value ? (uint32_t)value : 0;
}

/* Computes the sizes, and `tokens_of` for each word that occurs. */
static pawl_status measure(struct lda_piece *piece, const struct pawl_batch *batch, uint64_t words, uint32_t *tokens_of,
                           char error[PAWL_LDA_TEXT]) {
  uint64_t tokens = 0;
  char what[160];
  for (size_t row = 0; row < batch->rows; row++) {
    uint64_t length = 0;
    for (uint64_t i = batch->starts[row]; i < batch->starts[row + 1]; i++) {
      uint32_t count = count_of(batch, i);
      uint64_t id = batch->ids[i];
      if (id == 0 || id > words) {
        snprintf(what, sizeof what, "a document has word %llu, but the vocabulary ends with %llu",
                 (unsigned long long)id, (unsigned long long)words);
        return say(error, PAWL_MISMATCH, piece->path, what);
      }
      if (count == 0) {
        snprintf(what, sizeof what, "word %llu has the count %g in a document; expected a whole number from 1 to %d",
                 (unsigned long long)id, (double)batch->values[i], PAWL_COUNT_MAX);
        return say(error, PAWL_CORRUPT, piece->path, what);
      }
      piece->words += tokens_of[id - 1] == 0;
      tokens_of[id - 1] += count;
      length += count;
      if (id - 1 > piece->last_word) piece->last_word = (uint32_t)(id - 1);
    }
    tokens += length;
    if (length > PAWL_COUNT_MAX) {
      snprintf(what, sizeof what, "a document has %llu words, but at most %d are supported; split it",
               (unsigned long long)length, PAWL_COUNT_MAX);
      return say(error, PAWL_TOO_LARGE, piece->path, what);
    }
    if (tokens >= INT32_MAX)
      return say(error, PAWL_TOO_LARGE, piece->path, "a piece has more than 2^31 tokens; use smaller pieces");
    piece->documents += length > 0;
    piece->empty += length == 0;
    if (length > piece->longest) piece->longest = (uint32_t)length;
  }
  piece->tokens = (uint32_t)tokens;
  return PAWL_OK;
}

/* Fills in the words and the starts of their tokens. `tokens_of` becomes the position of the next token of a
 * word. */
static void arrange_words(struct lda_piece *piece, uint64_t words, uint32_t *tokens_of) {
  uint32_t index = 0, start = 0;
  for (uint64_t word = 0; word < words; word++) {
    if (tokens_of[word] == 0) continue;
    piece->ids[index] = (uint32_t)word;
    piece->starts[index++] = start;
    uint32_t next = start + tokens_of[word];
    tokens_of[word] = start;
    start = next;
  }
  piece->starts[index] = start;
}

static void arrange_documents(struct lda_piece *piece, const struct pawl_batch *batch, uint32_t *next_of) {
  uint32_t document = 0, token = 0;
  for (size_t row = 0; row < batch->rows; row++) {
    if (batch->starts[row] == batch->starts[row + 1]) continue;
    piece->documents_at[document++] = token;
    for (uint64_t i = batch->starts[row]; i < batch->starts[row + 1]; i++)
      for (uint32_t left = count_of(batch, i); left > 0; left--) piece->at[token++] = next_of[batch->ids[i] - 1]++;
  }
  piece->documents_at[document] = token;
}

/* Links the file to its name, which fails if the name exists. So a late worker, which was stopped and
 * declared dead, cannot undo the work of others. On file systems without links, the file is renamed without
 * this check. */
static pawl_status put_in_place(const char *other, const char *path) {
  if (link(other, path) == 0 || errno == EEXIST) {
    unlink(other);
    return PAWL_OK;
  }
  return rename(other, path) == 0 ? PAWL_OK : apps_status_of_errno(errno);
}

/* Writes to a temporary name first, so that a piece is complete or does not exist. */
static pawl_status write_all(struct lda_piece *piece, char error[PAWL_LDA_TEXT]) {
  char other[4200];
  struct head head = {.magic = MAGIC,
                      .corpus = piece->corpus,
                      .number = piece->number,
                      .empty = piece->empty,
                      .unknown = piece->unknown,
                      .topics = piece->topics,
                      .documents = piece->documents,
                      .tokens = piece->tokens,
                      .words = piece->words,
                      .longest = piece->longest,
                      .last_word = piece->last_word,
                      .generation = piece->generation};
  head.check = head_check(&head);
  head.state_check = state_check(&head);
  snprintf(other, sizeof other, "%s.%ld", piece->path, (long)getpid());
  int file = open(other, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return say(error, apps_status_of_errno(errno), other, strerror(errno));
  memset(piece->pairs, 0xff, 4 * (size_t)piece->tokens); /* every half is LDA_NONE */
  pawl_status status = write_at(file, &head, sizeof head, 0);
  if (!status) status = write_at(file, piece->block, (size_t)(4 * (index_words(piece) + piece->tokens)), HEAD_BYTES);
  if (!status && ftruncate(file, (off_t)array_at(piece, 0) + 8 * (off_t)piece->tokens) != 0)
    status = apps_status_of_errno(errno);
  if (close(file) != 0 && !status) status = apps_status_of_errno(errno);
  if (!status) status = put_in_place(other, piece->path);
  if (status) say(error, status, other, strerror(errno));
  if (status) unlink(other);
  return status;
}

pawl_status lda_piece_count(uint64_t number, uint64_t words, const struct pawl_batch *batch,
                            struct lda_piece *piece_out, char error[PAWL_LDA_TEXT]) {
  struct lda_piece piece = {.number = number, .unknown = batch->unknown, .file = -1};
  snprintf(piece.path, sizeof piece.path, "piece %llu of the corpus", (unsigned long long)number);
  if (words == 0) words = batch->max_id;
  if (words > LDA_WORDS_MAX) return say(error, PAWL_TOO_LARGE, piece.path, "the vocabulary has more than 2^27 words");
  uint32_t *tokens_of = apps_alloc_zero(words + 1, sizeof *tokens_of);
  if (!tokens_of) return say(error, PAWL_NO_MEMORY, piece.path, "out of memory");
  pawl_status status = measure(&piece, batch, words, tokens_of, error);
  apps_free(tokens_of);
  if (!status) *piece_out = piece;
  return status;
}

pawl_status lda_piece_make(const char *directory, uint64_t number, uint64_t corpus, uint64_t generation,
                           uint32_t topics, uint64_t words, const struct pawl_batch *batch, char error[PAWL_LDA_TEXT]) {
  struct lda_piece piece = {.number = number, .corpus = corpus, .generation = generation, .topics = topics, .file = -1};
  path_of(directory, number, piece.path);
  piece.unknown = batch->unknown;
  if (words == 0) words = batch->max_id;
  if (words > LDA_WORDS_MAX) return say(error, PAWL_TOO_LARGE, piece.path, "the vocabulary has more than 2^27 words");
  uint32_t *tokens_of = apps_alloc_zero(words + 1, sizeof *tokens_of);
  if (!tokens_of) return say(error, PAWL_NO_MEMORY, piece.path, "out of memory");
  pawl_status status = measure(&piece, batch, words, tokens_of, error);
  if (!status && give_memory(&piece)) status = say(error, PAWL_NO_MEMORY, piece.path, "out of memory");
  if (!status) {
    arrange_words(&piece, words, tokens_of);
    arrange_documents(&piece, batch, tokens_of);
    status = write_all(&piece, error);
  }
  lda_piece_close(&piece);
  apps_free(tokens_of);
  return status;
}

/* --- opening a file ------------------------------------------------------------------------------------- */

static pawl_status read_head(struct lda_piece *piece, char error[PAWL_LDA_TEXT]) {
  struct head head;
  pawl_status status = read_at(piece->file, &head, sizeof head, 0);
  if (status) return say(error, status, piece->path, "cannot read the file, or it ends too early");
  if (head.magic != MAGIC || head.check != head_check(&head) || head.state_check != state_check(&head))
    return say(error, PAWL_CORRUPT, piece->path, "not a piece of a corpus, or damaged");
  if (head.corpus != piece->corpus || head.topics != piece->topics || head.number != piece->number)
    return say(error, PAWL_MISMATCH, piece->path,
               "the piece belongs to a run with other data or another number of topics");
  piece->generation = head.generation;
  piece->version = head.version;
  piece->empty = head.empty;
  piece->unknown = head.unknown;
  piece->documents = head.documents;
  piece->tokens = head.tokens;
  piece->words = head.words;
  piece->longest = head.longest;
  piece->last_word = head.last_word;
  off_t size = lseek(piece->file, 0, SEEK_END);
  if (size < 0 || (uint64_t)size != array_at(piece, 0) + 8 * (uint64_t)piece->tokens)
    return say(error, PAWL_TRUNCATED, piece->path, "the file has the wrong size");
  return PAWL_OK;
}

pawl_status lda_piece_open(const char *directory, uint64_t number, uint64_t corpus, uint32_t topics,
                           struct lda_piece *piece_out, char error[PAWL_LDA_TEXT]) {
  struct lda_piece piece = {.number = number, .corpus = corpus, .topics = topics};
  path_of(directory, number, piece.path);
  piece.file = open(piece.path, O_RDWR | O_CLOEXEC);
  if (piece.file < 0) return say(error, apps_status_of_errno(errno), piece.path, strerror(errno));
  pawl_status status = read_head(&piece, error);
  if (status) {
    lda_piece_close(&piece);
    return status;
  }
  *piece_out = piece;
  return PAWL_OK;
}

/* Validates the index of the file before it is used. */
static bool is_sound(const struct lda_piece *piece) {
  if (piece->starts[0] != 0 || piece->starts[piece->words] != piece->tokens) return false;
  if (piece->documents_at[0] != 0 || piece->documents_at[piece->documents] != piece->tokens) return false;
  for (uint32_t i = 0; i < piece->words; i++) {
    if (piece->starts[i] >= piece->starts[i + 1] || piece->ids[i] > piece->last_word) return false;
    if (i > 0 && piece->ids[i - 1] >= piece->ids[i]) return false;
  }
  for (uint32_t i = 0; i < piece->documents; i++)
    if (piece->documents_at[i] >= piece->documents_at[i + 1] ||
        piece->documents_at[i + 1] - piece->documents_at[i] > piece->longest)
      return false;
  for (uint32_t i = 0; i < piece->tokens; i++)
    if (piece->at[i] >= piece->tokens) return false;
  for (uint32_t i = 0; i < piece->tokens; i++) {
    uint32_t topic = lda_topic(piece->pairs[i]), proposed = lda_proposed(piece->pairs[i]);
    if ((topic >= piece->topics && topic != LDA_NONE) || (proposed >= piece->topics && proposed != LDA_NONE))
      return false;
  }
  return true;
}

pawl_status lda_piece_load(struct lda_piece *piece, char error[PAWL_LDA_TEXT]) {
  if (piece->is_loaded) return PAWL_OK;
  if (give_memory(piece)) return say(error, PAWL_NO_MEMORY, piece->path, "out of memory");
  pawl_status status = read_at(piece->file, piece->block, (size_t)(4 * index_words(piece)), HEAD_BYTES);
  if (!status) status = read_at(piece->file, piece->pairs, 4 * (size_t)piece->tokens, array_at(piece, piece->version));
  if (status)
    say(error, status, piece->path, "cannot read the file");
  else if (!is_sound(piece))
    status = say(error, PAWL_CORRUPT, piece->path, "the piece is damaged");
  if (status) {
    lda_piece_unload(piece);
    return status;
  }
  for (uint32_t i = 0; i < piece->tokens; i++) piece->counted[i] = (uint16_t)lda_topic(piece->pairs[i]);
  piece->is_loaded = true;
  return PAWL_OK;
}

/* --- versions ------------------------------------------------------------------------------------------- */

pawl_status lda_piece_write(const struct lda_piece *piece, uint32_t begin, uint32_t end) {
  return write_at(piece->file, piece->pairs + begin, 4 * (size_t)(end - begin),
                  array_at(piece, piece->version + 1) + 4 * (uint64_t)begin);
}

pawl_status lda_piece_read_next(const struct lda_piece *piece, uint32_t begin, uint32_t end, uint32_t *pairs_out) {
  return read_at(piece->file, pairs_out, 4 * (size_t)(end - begin),
                 array_at(piece, piece->version + 1) + 4 * (uint64_t)begin);
}

static pawl_status write_state(struct lda_piece *piece, uint64_t generation, uint64_t version) {
  struct head head = {.generation = generation, .version = version};
  head.state_check = state_check(&head);
  pawl_status status = write_at(piece->file, &head.generation, sizeof head - offsetof(struct head, generation),
                                offsetof(struct head, generation));
  if (status) return status;
  piece->generation = generation;
  piece->version = version;
  return PAWL_OK;
}

static pawl_status copy(int from, int to, uint64_t size) {
  enum { BYTES = 1 << 20 };
  pawl_status status = PAWL_OK;
  char *bytes = apps_alloc(BYTES);
  if (!bytes) return PAWL_NO_MEMORY;
  for (uint64_t at = 0; at < size && !status;) {
    size_t some = size - at < BYTES ? (size_t)(size - at) : BYTES;
    status = read_at(from, bytes, some, at);
    if (!status) status = write_at(to, bytes, some, at);
    at += some;
  }
  apps_free(bytes);
  return status;
}

/* The copy can be made while the last owner still writes. For words that are counted in the next version, the
 * last owner wrote the topics before the push and does not write them again. For other words its writes are
 * ignored. It writes to the array of this version only after all words are counted. */
pawl_status lda_piece_renew(struct lda_piece *piece, char error[PAWL_LDA_TEXT]) {
  char other[4200];
  int before = piece->file;
  snprintf(other, sizeof other, "%s.%ld.new", piece->path, (long)getpid());
  int file = open(other, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return say(error, apps_status_of_errno(errno), other, strerror(errno));
  pawl_status status = copy(before, file, array_at(piece, 0) + 8 * (uint64_t)piece->tokens);
  piece->file = file;
  if (!status) status = write_state(piece, piece->generation, piece->version);
  if (!status && rename(other, piece->path) != 0) status = apps_status_of_errno(errno);
  if (!status) {
    close(before);
    return PAWL_OK;
  }
  piece->file = before;
  close(file);
  unlink(other);
  return say(error, status, other, "cannot copy the piece");
}

pawl_status lda_piece_commit(struct lda_piece *piece) {
  return write_state(piece, piece->generation, piece->version + 1);
}

/* Stores the topics as the future topics of uncounted tokens. Idempotent, so it may be interrupted. */
pawl_status lda_piece_adopt(struct lda_piece *piece, uint64_t generation, char error[PAWL_LDA_TEXT]) {
  if (piece->generation == generation) return PAWL_OK;
  pawl_status status = lda_piece_renew(piece, error);
  if (!status) status = lda_piece_load(piece, error);
  if (status) return status;
  for (uint32_t i = 0; i < piece->tokens; i++) {
    uint32_t topic = lda_topic(piece->pairs[i]);
    piece->pairs[i] = lda_pair(LDA_NONE, topic != LDA_NONE ? topic : lda_proposed(piece->pairs[i]));
    piece->counted[i] = LDA_NONE;
  }
  status = write_at(piece->file, piece->pairs, 4 * (size_t)piece->tokens, array_at(piece, 0));
  if (!status) status = write_state(piece, generation, 0);
  if (status) say(error, status, piece->path, "cannot write the file");
  lda_piece_unload(piece);
  return status;
}
