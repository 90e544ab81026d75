/* A piece of the corpus: its tokens, by document and by word, and their topics. In memory while a worker works on it,
 * otherwise in a file.
 *
 * The worker that first takes the piece creates the file in the directory of the run, which all workers share. The
 * file has the tokens once, and two arrays of topics. Version v, whose topics the servers have all counted, is in
 * array v & 1; version v + 1 is written to the other array. Topics are written *before* the rows that count them
 * are pushed, and the version in the file's header is raised after the last push was acknowledged. So after the
 * death of a worker, another one can tell from the marks of the rows (marks.h), word by word, which of the two
 * arrays the servers have counted.
 *
 * In version 0 nothing is counted: all topics are LDA_NONE. A new table of counts, as in a resumed run, has its own
 * *generation*. A file of another generation is *adopted*: it becomes version 0 of the new generation, and its
 * tokens will get the topics that they had.
 *
 * A worker that was declared dead may only have been stopped, and may still write to its open file. So a worker that
 * takes over a piece *renews* it: it replaces the file with a copy, which only later opens see.
 *
 * One thread at a time, except that several threads may call lda_piece_write for different tokens. ERRORS: PAWL_IO,
 * PAWL_NO_SPACE, PAWL_NOT_FOUND …; PAWL_CORRUPT (not such a file), PAWL_TOO_LARGE (2^31 tokens), PAWL_NO_MEMORY;
 * `error` gets a text that names the file.
 */
#ifndef LDA_PIECE_H
#define LDA_PIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/lda.h>
#include <pawl/pawl.h>

#define LDA_WORDS_MAX (UINT64_C(1) << 27) /* words of a vocabulary */

struct lda_piece {
  uint64_t number, generation, version;
  uint64_t corpus; /* identifies the run: its data and its number of topics */
  uint32_t topics;
  uint64_t empty;                    /* documents without words, which are not kept */
  uint64_t unknown;                  /* words of a text that are not in the vocabulary */
  uint32_t documents, tokens, words; /* words: distinct words */
  uint32_t longest;                  /* tokens of the longest document */
  uint32_t last_word;                /* highest word number */
  int file;
  char path[4096];

  /* The contents while the piece is loaded. Tokens are sorted by word. */
  bool is_loaded;
  void *block;
  uint32_t *ids;          /* words, ascending */
  uint32_t *starts;       /* words + 1: where the tokens of each word begin */
  uint32_t *documents_at; /* documents + 1: where each document begins in `at` */
  uint32_t *at;           /* tokens in the order of documents */
  uint32_t *pairs;        /* by token: sample.h */
  uint16_t *counted;      /* by token: the topic that the servers have counted */
};

/* Creates the file from documents. If another worker has created it meanwhile, that file is used, because no
 * worker has worked on it yet. `batch` is validated: counts that are not whole numbers, and words above
 * `words` (0: any), are refused. */
pawl_status lda_piece_make(const char *directory, uint64_t number, uint64_t corpus, uint64_t generation,
                           uint32_t topics, uint64_t words, const struct pawl_batch *batch, char error[PAWL_LDA_TEXT]);

/* Counts the contents of a piece, with the same validation, without a file. */
pawl_status lda_piece_count(uint64_t number, uint64_t words, const struct pawl_batch *batch,
                            struct lda_piece *piece_out, char error[PAWL_LDA_TEXT]);

/* Opens the file without loading it. PAWL_NOT_FOUND if it does not exist, PAWL_MISMATCH if it belongs to
 * another run. */
pawl_status lda_piece_open(const char *directory, uint64_t number, uint64_t corpus, uint32_t topics,
                           struct lda_piece *piece_out, char error[PAWL_LDA_TEXT]);
void lda_piece_close(struct lda_piece *piece); /* a struct of zeros, with file -1, is fine */

/* Adopts the piece into the present generation: see above. */
pawl_status lda_piece_adopt(struct lda_piece *piece, uint64_t generation, char error[PAWL_LDA_TEXT]);

/* Renews the file: replaces it with a copy. The last owner must no longer be able to push. */
pawl_status lda_piece_renew(struct lda_piece *piece, char error[PAWL_LDA_TEXT]);

size_t lda_piece_bytes(const struct lda_piece *piece); /* bytes of memory when loaded */
pawl_status lda_piece_load(struct lda_piece *piece, char error[PAWL_LDA_TEXT]);
void lda_piece_unload(struct lda_piece *piece);

/* Writes the topics of tokens [begin, end) as version + 1, and reads them. */
pawl_status lda_piece_write(const struct lda_piece *piece, uint32_t begin, uint32_t end);
pawl_status lda_piece_read_next(const struct lda_piece *piece, uint32_t begin, uint32_t end, uint32_t *pairs_out);

/* Commits the written topics: raises the version by one. */
pawl_status lda_piece_commit(struct lda_piece *piece);

#endif
