/* Workers that count topics, without a sampler: tests the guarantees of apps/lda for its counts in the
 * simulator.
 *
 * There is a corpus of a few pieces, each with tokens of words. Each token has a topic, drawn at random in
 * each sweep. The table on the servers has a row of counts for each word, and one row of totals;
 * apps/lda/marks.h explains the rest of a row. A worker sweeps its piece:
 *
 *   1.  It writes the topics of some words to the file, as version v + 1, and then pushes the rows of these
 *       words, each with its change and its mark. Many such pushes are in flight.
 *   2.  When all are answered, it pushes the row of totals in the same way.
 *   3.  When that is answered, it sets the head of the file to v + 1.
 *
 * Pieces whose owner is dead are taken over by other workers:
 *
 *   4.  When the membership lists the owner as retired, the new owner reads the rows by a push of zeros.
 *   5.  It makes a new file from the old one, which becomes the newest. Words whose mark is not ahead have
 *       their old topics in both versions. If a mark was ahead, it finishes version v + 1 by steps 1 to 3 for
 *       the missing words.
 *
 * The old file is never written to: its owner may only have been stopped, and may continue to write to it
 * until its next push fails.
 *
 * Files outlive workers: they are in memory of the test. enum counts_bug lists steps that can be omitted, to
 * show that the test detects it.
 */
#ifndef TESTS_CLUSTER_COUNTS_H
#define TESTS_CLUSTER_COUNTS_H

#include "cluster.h"

#define COUNTS_WORKERS 3
#define COUNTS_PIECES 6
#define COUNTS_WORDS 14
#define COUNTS_TOPICS 5
#define COUNTS_TOKENS 20 /* maximum tokens of a piece */
#define COUNTS_SWEEPS 12
#define COUNTS_FILES 64 /* maximum files of a piece, one after the other */
#define COUNTS_HOLDS 2  /* pieces that a worker has at a time */
#define COUNTS_SLICE 4  /* maximum words in a push */
#define COUNTS_WIDTH (COUNTS_TOPICS + 2)
#define COUNTS_NONE 255 /* no topic yet */

enum counts_bug {
  COUNTS_RIGHT,
  COUNTS_NO_MARKS,    /* the new owner believes the head of the file */
  COUNTS_NO_FENCE,    /* the new owner does not wait until the old one is retired */
  COUNTS_REJOINS,     /* a worker that was declared dead joins again and continues */
  COUNTS_LATE_TOPICS, /* topics are written when the push that counts them is answered */
  COUNTS_ONE_FILE,    /* the new owner continues the file that the old owner may still write */
  COUNTS_BUGS,
};

struct counts;
struct counts_worker;

struct counts_file {
  uint64_t version;
  uint8_t topics[2][COUNTS_TOKENS]; /* topics of version v in [v & 1] */
};

struct counts_piece {
  uint64_t number; /* the number in its mark */
  size_t token_count, word_count;
  uint8_t words[COUNTS_TOKENS]; /* words of the tokens */
  uint64_t each[COUNTS_TOKENS]; /* its distinct words, ascending */

  /* Visible to all workers. */
  struct counts_file files[COUNTS_FILES];
  size_t newest;
  uint64_t owner, owner_membership; /* a sender, and the membership in which it was live; 0: none yet */
  const struct counts_worker *owner_worker;
  uint32_t owner_life;
};

struct counts_slice {
  struct pwi_task task;
  struct counts_hold *hold;
  uint64_t keys[COUNTS_SLICE];
  size_t count;
  int32_t in[COUNTS_SLICE][COUNTS_WIDTH], out[COUNTS_SLICE][COUNTS_WIDTH];
};

enum counts_phase { COUNTS_FREE, COUNTS_READING, COUNTS_PUSHING, COUNTS_TOTALLING, COUNTS_WRITING };

/* A piece of a worker. */
struct counts_hold {
  struct counts_worker *worker;
  struct counts_piece *piece; /* NULL: none */
  enum counts_phase phase;
  size_t read; /* READING: number of the newest file */
  struct counts_file *file;
  uint64_t version;
  bool has_all_drawn; /* it is a sweep of this worker; otherwise the worker finishes the sweep of another */
  bool owes_totals;
  uint8_t drawn[COUNTS_TOKENS]; /* topics of the next version */
  uint64_t words[COUNTS_TOKENS];
  size_t word_count, next; /* words to push */
  struct counts_slice slices[COUNTS_TOKENS + 1];
  size_t slice_count, under_way;
};

struct counts_worker {
  struct pwi_cluster_client client;
  struct counts *counts;
  struct pwi_flow *flow;
  bool is_dead; /* a call has told the worker that it was declared dead; it is then started again */
  struct counts_hold holds[COUNTS_HOLDS];
};

/* Counters of events. */
struct counts_figures {
  uint64_t server_kills;
  uint64_t sweeps, clean, partial, totals, whole; /* state found at takeovers: no words pushed, some words,
                                                     all but the totals, everything */
  uint64_t deaths, late_files;                    /* workers that stay dead; files that another worker made
                                                     first */
};

struct counts {
  struct pwi_cluster cluster;
  enum counts_bug bug;
  struct pwi_random random; /* draws the corpus */
  struct pwi_cluster_client checker;
  struct pwi_flow *flow;
  struct counts_piece pieces[COUNTS_PIECES];
  struct counts_worker workers[COUNTS_WORKERS];
  struct counts_figures figures;
};

/* Opens a cluster with a corpus, its table, and workers that begin at once. Fails the test on any error. */
void counts_open(struct counts *counts, uint64_t seed, enum counts_bug bug);
void counts_close(struct counts *counts);

bool counts_is_working(const struct counts *counts); /* true if any piece has sweeps left */

/* Compares the table with the corpus and with the files. Returns false and an error text if they differ. */
bool counts_check(struct counts *counts, char text[160]);

#endif
