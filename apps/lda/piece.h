/* A piece of the corpus: its tokens, by document and by word, and their topics. In memory while it is worked
 * on, else in a file.
 *
 * The file is made when somebody first takes the piece, in the run's directory, which all workers see. It has
 * the tokens once, and two arrays of topics: version v, of which the servers have counted every topic, is in
 * array v & 1; the other array is being written for version v + 1. Topics are written *before* the rows that
 * count them are pushed, and the version in the file's head is raised after the last push was answered. So
 * whoever finds the file after its worker has died can tell from the rows' marks (marks.h), word by word,
 * which of the two arrays holds what was counted.
 *
 * Version 0 has counted nothing: all its topics are LDA_NONE. A new table of counts (a training that is
 * resumed) has a *generation* of its own; a file of another generation is *adopted*: it becomes version 0 of
 * the new one, whose tokens are to have the topics that they had.
 *
 * A worker that was taken for dead may only have been stopped, and go on writing to the file that it has
 * open. Whoever takes a piece over therefore *renews* it: a copy takes the file's place, and only those who
 * open it later see the copy.
 *
 * One thread at a time; but lda_piece_write may be called by several for different tokens. ERRORS: PAWL_IO,
 * PAWL_NO_SPACE, PAWL_NOT_FOUND …; PAWL_CORRUPT (not such a file), PAWL_TOO_LARGE (2^31 tokens),
 * PAWL_NO_MEMORY; `error` receives a sentence that names the file.
 */
#ifndef LDA_PIECE_H
#define LDA_PIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/pawl.h>

#define LDA_WORDS_MAX (UINT64_C(1) << 27) /* words of a vocabulary */

struct lda_piece {
  uint64_t number, generation, version;
  uint64_t corpus; /* the run that it belongs to: what data, how many topics */
  uint32_t topics;
  uint64_t empty;                    /* documents without words, which are not kept */
  uint64_t unknown;                  /* words of a text that the vocabulary does not have */
  uint32_t documents, tokens, words; /* words: different ones */
  uint32_t longest;                  /* tokens of the longest document */
  uint32_t last_word;                /* the highest */
  int file;
  char path[4096];

  /* While it is loaded. Tokens are in the order of words. */
  bool is_loaded;
  void *block;
  uint32_t *ids;          /* of words, rising */
  uint32_t *starts;       /* words + 1: each word's tokens */
  uint32_t *documents_at; /* documents + 1: each document's part of `at` */
  uint32_t *at;           /* tokens, in the order of documents */
  uint32_t *pairs;        /* by token: sample.h */
  uint16_t *counted;      /* by token: the topic that the servers have counted */
};

/* Makes the file from documents; if there is one by then that is as good, since nobody has worked on it.
 * `batch` has been checked by nobody: counts that are not whole, and words beyond `words` (0: any), are
 * refused. */
pawl_status lda_piece_make(const char *directory, uint64_t number, uint64_t corpus, uint64_t generation,
                           uint32_t topics, uint64_t words, const struct pawl_batch *batch, char error[PAWL_LDA_TEXT]);

/* Counts what a piece has, checking it likewise, without a file: all that is then known of it are numbers. */
pawl_status lda_piece_count(uint64_t number, uint64_t words, const struct pawl_batch *batch,
                            struct lda_piece *piece_out, char error[PAWL_LDA_TEXT]);

/* Opens the file; PAWL_NOT_FOUND if it was never made, PAWL_MISMATCH if it belongs to another run. It is not
 * loaded. */
pawl_status lda_piece_open(const char *directory, uint64_t number, uint64_t corpus, uint32_t topics,
                           struct lda_piece *piece_out, char error[PAWL_LDA_TEXT]);
void lda_piece_close(struct lda_piece *piece); /* a struct of zeros, with file -1, is fine */

/* Into the present generation: see above. */
pawl_status lda_piece_adopt(struct lda_piece *piece, uint64_t generation, char error[PAWL_LDA_TEXT]);

/* A copy of the file, as this piece knows it, takes its place. The last owner must not be able to push any
 * more. */
pawl_status lda_piece_renew(struct lda_piece *piece, char error[PAWL_LDA_TEXT]);

size_t lda_piece_bytes(const struct lda_piece *piece); /* of memory, when it is loaded */
pawl_status lda_piece_load(struct lda_piece *piece, char error[PAWL_LDA_TEXT]);
void lda_piece_unload(struct lda_piece *piece);

/* Topics of tokens [begin, end), as version + 1; and reads what was written so. */
pawl_status lda_piece_write(const struct lda_piece *piece, uint32_t begin, uint32_t end);
pawl_status lda_piece_read_next(const struct lda_piece *piece, uint32_t begin, uint32_t end, uint32_t *pairs_out);

/* What was written is counted: the version rises by one. */
pawl_status lda_piece_commit(struct lda_piece *piece);

#endif
