/* A writer, inside: shared by api/sketch/sketch_writer.c, which fills rows and sends them, and api/sketch/sketch_offer.c, which hands in what a
 * writer has seen besides counts.
 *
 * Things pass through three steps, each of which fits a cache. *Gathering*: a small table adds up what comes again soon, and
 * lets go of what was there when another thing needs its place. It is used only while it pays, which depends on the stream,
 * the servers and what lies between: both ways are tried every now and then, and the faster one is kept to. *Partitioning*: what leaves it is written to the end of the row of its bank, in memory
 * that servers on this machine read in place. *Sending*: a row that is full is pushed, and another takes its place; there are
 * as many spare ones as pushes may be under way.
 *
 * What a writer has added is exact in all rows that were pushed; nothing is dropped or rounded on the way.
 */
#ifndef PWI_API_SKETCH_SKETCH_WRITER_H
#define PWI_API_SKETCH_SKETCH_WRITER_H

#include "api/sketch/sketch.h"
#include "api/sketch/sketch_heavy.h"
#include "store/sketch_distinct.h"

#define PWI_GATHER_PLACES 4096 /* a power of two */
#define PWI_GATHER_BLOCK 65536 /* things between two looks at whether it pays */
#define PWI_GATHER_PHASE                                                                                               \
  32 /* blocks of which the first two gather, the next two do not, and the others do what was faster */
#define PWI_GATHER_PENDING (UINT64_C(1) << 63)

struct pwi_gather_place {
  uint64_t hash, weight; /* 0: free. PWI_GATHER_PENDING: a number that the table of heavy things was not told of yet */
};

struct pwi_gather {
  bool is_on, is_allowed;
  uint32_t block;         /* of this phase */
  int64_t began, took[2]; /* this block; the last one without and with, of those that were tried */
  uint64_t seen, found;   /* of this block */
  struct pwi_gather_place places[PWI_GATHER_PLACES];
};

/* Which ranks have risen since they were handed in, row by row. */
struct pwi_registers {
  bool has_risen[PWI_DISTINCT_ROWS];
  uint8_t ranks[PWI_DISTINCT_REGISTERS];
};

struct pwi_underway {
  struct pawl_task *task;
  uint64_t *row;
};

struct pawl_sketch_writer {
  struct pawl_sketch *sketch;
  int64_t timeout_ns;
  pawl_status status; /* the first failure */
  bool is_stuck;      /* a push of what was offered has not been answered in time */
  bool is_late;       /* nor a push of counts: closing the writer waits no more */
  char failure[256];
  uint64_t window;

  unsigned char *memory;          /* all rows */
  struct pwi_sketch_batch *batch; /* of each bank */
  uint64_t **spare;               /* rows that nobody uses */
  size_t spare_count;
  struct pwi_underway *line; /* pushes under way: a ring */
  size_t line_first, line_count, line_room;

  struct pwi_gather *gather;
  struct pwi_registers *registers; /* NULL: none */
  struct pwi_heavy *heavy;         /* NULL: none */
  uint64_t *offers;                /* a row for each bucket; of memory that servers read too */
  uint64_t *risen;                 /* the same for registers */
  struct pawl_sketch_figures figures;
};

/* Remembers the first failure. The status it is. */
pawl_status pwi_sketch_writer_fail(struct pawl_sketch_writer *writer, pawl_status status);

/* Hands in registers that have risen, and candidates. All rows have been pushed and answered. */
PAWL_MUST_USE pawl_status pwi_sketch_offer(struct pawl_sketch_writer *writer, int64_t timeout_ns);

#endif
