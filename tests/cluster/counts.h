/* Workers that count topics, without a sampler: what apps/lda promises of its counts, in the simulator.
 *
 * A corpus of a few pieces; in each, tokens of words. Each token has a topic, drawn by chance in each sweep. The table on the
 * servers has a row of counts for each word, and one of totals; apps/lda/marks.h tells what else is in a row. A worker that
 * has a piece sweeps it:
 *
 *   1. topics of some words are written to the file, as those of version v + 1; then the rows of these words are pushed, each with
 *      what changes and with its mark. Many such pushes are under way
 *   2. when all are answered the row of totals is pushed in the same way
 *   3. when that is answered the file's head says v + 1
 *
 * Pieces whose owner is dead are taken over by others:
 *
 *   4. when the membership says that the owner is retired, the rows are read by a push of zeros
 *   5. a new file is made of the old one, in which words whose mark is not ahead have their old topics in both versions, and becomes
 *      the newest. If a mark was ahead, version v + 1 is finished: 1 to 3 for what is missing
 *
 * The old file is not written to: its owner may only have been stopped, and go on writing to it until its next push fails.
 *
 * Files outlive workers: they are the test's own memory. What can be left out, to see that it is missed, is in enum counts_bug.
 */
#ifndef TESTS_CLUSTER_COUNTS_H
#define TESTS_CLUSTER_COUNTS_H

#include "cluster.h"

#define COUNTS_WORKERS 3
#define COUNTS_PIECES 6
#define COUNTS_WORDS 14
#define COUNTS_TOPICS 5
#define COUNTS_TOKENS 20 /* of a piece, at most */
#define COUNTS_SWEEPS 12
#define COUNTS_FILES 64 /* of a piece, one after the other */
#define COUNTS_HOLDS 2  /* pieces that a worker is at, at a time */
#define COUNTS_SLICE 4  /* words in a push, at most */
#define COUNTS_WIDTH (COUNTS_TOPICS + 2)
#define COUNTS_NONE 255 /* no topic yet */

enum counts_bug {
  COUNTS_RIGHT,
  COUNTS_NO_MARKS,    /* whoever takes over believes the file's head */
  COUNTS_NO_FENCE,    /* and does not wait until the owner is retired */
  COUNTS_REJOINS,     /* who was taken for dead joins again, and goes on */
  COUNTS_LATE_TOPICS, /* topics are written when the push that counts them is answered */
  COUNTS_ONE_FILE,    /* who takes over goes on with the file that the last owner may still write to */
  COUNTS_BUGS,
};

struct counts;
struct counts_worker;

struct counts_file {
  uint64_t version;
  uint8_t topics[2][COUNTS_TOKENS]; /* of version v in [v & 1] */
};

struct counts_piece {
  uint64_t number; /* that its mark has */
  size_t token_count, word_count;
  uint8_t words[COUNTS_TOKENS]; /* of tokens */
  uint64_t each[COUNTS_TOKENS]; /* word that it has, once, rising */

  /* What everybody sees. */
  struct counts_file files[COUNTS_FILES];
  size_t newest;
  uint64_t owner, owner_membership; /* a sender, and the membership in which it was live; 0: nobody yet */
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

/* A piece that a worker has. */
struct counts_hold {
  struct counts_worker *worker;
  struct counts_piece *piece; /* NULL: none */
  enum counts_phase phase;
  size_t read; /* READING: number of the file that was the newest */
  struct counts_file *file;
  uint64_t version;
  bool has_all_drawn; /* of this version: it is a sweep of ours; else we finish another's */
  bool owes_totals;
  uint8_t drawn[COUNTS_TOKENS]; /* topics of the next version */
  uint64_t words[COUNTS_TOKENS];
  size_t word_count, next; /* to be pushed */
  struct counts_slice slices[COUNTS_TOKENS + 1];
  size_t slice_count, under_way;
};

struct counts_worker {
  struct pwi_cluster_client client;
  struct counts *counts;
  struct pwi_flow *flow;
  bool is_dead; /* a call has told it so: whoever looks after processes starts it anew */
  struct counts_hold holds[COUNTS_HOLDS];
};

/* How often things have happened. */
struct counts_figures {
  uint64_t server_kills;
  uint64_t sweeps, clean, partial, totals,
      whole;                   /* what whoever took over found: nothing, some words, all but the totals, all */
  uint64_t deaths, late_files; /* workers that stay dead; files that another had been faster with */
};

struct counts {
  struct pwi_cluster cluster;
  enum counts_bug bug;
  struct pwi_random random; /* of the corpus */
  struct pwi_cluster_client checker;
  struct pwi_flow *flow;
  struct counts_piece pieces[COUNTS_PIECES];
  struct counts_worker workers[COUNTS_WORKERS];
  struct counts_figures figures;
};

/* A cluster with a corpus, its table, and workers that begin at once. Fails the test if it cannot be. */
void counts_open(struct counts *counts, uint64_t seed, enum counts_bug bug);
void counts_close(struct counts *counts);

bool counts_is_working(const struct counts *counts); /* some piece has not had all its sweeps */

/* Compares the table with the corpus and with the files: false, and what is wrong. */
bool counts_check(struct counts *counts, char text[160]);

#endif
