/* A writer, inside: shared by api/sketch/sketch_writer.c, which fills rows and sends them, and
 * api/sketch/sketch_offer.c, which sends the other results of a writer.
 *
 * Things pass through three steps, each of which fits a cache. *Gathering*: a small table adds up things
 * that come again soon, and evicts a thing when another needs its place. It is used only while it pays,
 * which depends on the stream, the servers and the network: both ways are tried every now and then, and
 * the faster one is used. *Partitioning*: things that leave the table are appended to the row of their
 * bank, in memory that servers on this machine read in place. *Sending*: a full row is pushed, and another
 * takes its place; there are as many spare rows as pushes may be under way.
 *
 * The counts in all pushed rows are exact: nothing is dropped or rounded on the way.
 */
#ifndef PWI_API_SKETCH_SKETCH_WRITER_H
#define PWI_API_SKETCH_SKETCH_WRITER_H

#include "api/sketch/sketch.h"
#include "api/sketch/sketch_heavy.h"
#include "store/sketch_distinct.h"

#define PWI_GATHER_PLACES 4096 /* a power of two */
#define PWI_GATHER_BLOCK 65536 /* things between two decisions whether gathering pays */
/* blocks per phase: the first two gather, the next two do not, and the others do what was faster */
#define PWI_GATHER_PHASE 32
#define PWI_GATHER_PENDING (UINT64_C(1) << 63)

struct pwi_gather_place {
  uint64_t hash,
      /* 0: free. PWI_GATHER_PENDING: a number that has not been added to the table of heavy things yet */
      weight;
};

struct pwi_gather {
  bool is_on, is_allowed;
  uint32_t block; /* number in this phase */
  /* start of this block; duration of the last trial blocks without and with gathering */
  int64_t began, took[2];
  uint64_t seen, found; /* in this block */
  struct pwi_gather_place places[PWI_GATHER_PLACES];
};

/* The ranks that have increased since they were sent, row by row. */
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
  bool is_stuck;      /* a push of candidates or registers was not answered in time */
  bool is_late;       /* a push of counts was not answered in time either: closing the writer waits no more */
  char failure[256];
  uint64_t window;

  unsigned char *memory;          /* of all rows */
  struct pwi_sketch_batch *batch; /* one for each bank */
  uint64_t **spare;               /* unused rows */
  size_t spare_count;
  struct pwi_underway *line; /* ring of pushes under way */
  size_t line_first, line_count, line_room;

  struct pwi_gather *gather;
  struct pwi_registers *registers; /* NULL: none */
  struct pwi_heavy *heavy;         /* NULL: none */
  uint64_t *offers;                /* a row for each bucket, in memory that servers read in place */
  uint64_t *risen;                 /* rows of registers, in memory that servers read in place */
  struct pawl_sketch_figures figures;
};

/* Records the first failure, and returns it. */
pawl_status pwi_sketch_writer_fail(struct pawl_sketch_writer *writer, pawl_status status);

/* Sends increased registers and candidates. All rows must have been pushed and answered. */
PAWL_MUST_USE pawl_status pwi_sketch_offer(struct pawl_sketch_writer *writer, int64_t timeout_ns);

#endif
