/* Sketches: approximate counts of a very large number of items, the most frequent items, and the number of
 * distinct items, in memory that does not grow with the number of items. docs/sketches.md explains them with
 * a worked example.
 *
 * A sketch lives on the servers under a name `space/name`, like a vector. It consists of a vector of banks of
 * counters, a vector `space/name.top` with the names of the most frequent items, and a vector
 * `space/name.distinct` for the number of distinct items. Items are byte strings or 64-bit numbers; a string
 * and a number are always different items.
 *
 * KINDS. CountMin never underestimates, and exceeds its stated error bound only with small probability;
 * weights must be positive. A count sketch errs in both directions, and less than CountMin for streams in
 * which few items are frequent; weights may be negative.
 *
 * WRITERS. A writer adds items: it hashes them, packs them, combines repeated items where this is faster, and
 * pushes full rows to the servers in the background. Like every push, such a push is applied exactly once.
 * pawl_sketch_flush returns when all items added before have been applied. Several writers, in one or many
 * processes, may add to one sketch; the result is the same as with one writer.
 *
 * WINDOWS. A sketch may be a ring of time windows. A writer adds to the window of the time that was set last,
 * initially the present time. The newest window replaces the oldest. Items for a window that has left the
 * ring are dropped.
 *
 * THREADS. A writer belongs to one thread at a time; any thread may call the other functions.
 *
 * ERRORS, in addition to those listed with each call, are those of vectors (vector.h). pawl_error_text has
 * the details.
 */
#ifndef PAWL_SKETCH_H
#define PAWL_SKETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>
#include <pawl/vector.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_session;
struct pawl_sketch;
struct pawl_sketch_writer;

enum pawl_sketch_kind { PAWL_SKETCH_COUNTMIN = 1, PAWL_SKETCH_COUNTSKETCH = 2 };

/* A sketch takes banks * depth * columns * 8 bytes per window on the servers. */
struct pawl_sketch_options {
  size_t struct_size;         /* set by pawl_sketch_options_init */
  enum pawl_sketch_kind kind; /* default PAWL_SKETCH_COUNTMIN */
  uint32_t banks;             /* default 64; at most 65536 */
  uint32_t depth;             /* lines of a bank, at most 8; 0: 4, or 5 for a count sketch */
  uint32_t columns;           /* cells of a line, a power of two up to 65536; default 1024 */
  uint32_t windows;           /* number of windows in the ring; 0: no windows */
  double window_s;            /* length of a window in seconds */
  bool no_top, no_distinct;   /* do not keep names, or the number of distinct items */
};

/* Sets all options to their defaults. */
PAWL_API void pawl_sketch_options_init_sized(struct pawl_sketch_options *options, size_t struct_size);
static inline void pawl_sketch_options_init(struct pawl_sketch_options *options) {
  pawl_sketch_options_init_sized(options, sizeof *options);
}

/* Creates and opens a sketch. `ensure` also opens an existing sketch that has the same options. PAWL_EXISTS
 * if the sketch exists; for `ensure`, if it exists with other options. PAWL_INVALID for inconsistent
 * options. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sketch_create(struct pawl_session *session, const char *name,
                                                      const struct pawl_sketch_options *options, int64_t timeout_ns,
                                                      struct pawl_sketch **sketch_out);
PAWL_API PAWL_MUST_USE pawl_status pawl_sketch_ensure(struct pawl_session *session, const char *name,
                                                      const struct pawl_sketch_options *options, int64_t timeout_ns,
                                                      struct pawl_sketch **sketch_out);

/* Opens an existing sketch. PAWL_NOT_FOUND; PAWL_MISMATCH if a vector of that name exists and is not a
 * sketch. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sketch_open(struct pawl_session *session, const char *name, int64_t timeout_ns,
                                                    struct pawl_sketch **sketch_out);

/* Closes the sketch, after its writers and before the session. NULL is allowed. */
PAWL_API void pawl_sketch_close(struct pawl_sketch *sketch);

/* Deletes the sketch for all sessions. PAWL_NOT_FOUND. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sketch_drop(struct pawl_session *session, const char *name, int64_t timeout_ns);

struct pawl_sketch_info {
  char name[PAWL_NAME_MAX + 1];
  struct pawl_sketch_options options; /* with all defaults filled in */
};

/* Never fails. */
PAWL_API void pawl_sketch_info(const struct pawl_sketch *sketch, struct pawl_sketch_info *info_out);

/* Lists the sketches of a space, sorted by name; if `space` is NULL, all sketches that the session may see.
 * Free the array with pawl_sketch_list_free. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sketch_list(struct pawl_session *session, const char *space, int64_t timeout_ns,
                                                    struct pawl_sketch_info **infos_out, size_t *count_out);
PAWL_API void pawl_sketch_list_free(struct pawl_sketch_info *infos);

/* --- adding --------------------------------------------------------------------------------------------- */

struct pawl_sketch_writer_options {
  size_t struct_size;   /* set by pawl_sketch_writer_options_init */
  bool no_aggregate;    /* send items as they come, without combining repeated ones */
  uint32_t outstanding; /* maximum number of pushes in progress; 0: 64 */
  int64_t timeout_ns;   /* how long a call waits for servers before it fails; 0: 60 seconds */
};

/* Sets all options to their defaults: zeros. */
PAWL_API void pawl_sketch_writer_options_init_sized(struct pawl_sketch_writer_options *options, size_t struct_size);
static inline void pawl_sketch_writer_options_init(struct pawl_sketch_writer_options *options) {
  pawl_sketch_writer_options_init_sized(options, sizeof *options);
}

/* Opens a writer. `options` may be NULL for the defaults. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sketch_writer_open(struct pawl_sketch *sketch,
                                                           const struct pawl_sketch_writer_options *options,
                                                           struct pawl_sketch_writer **writer_out);

/* Frees the writer. Items that were not flushed are lost. Returns PAWL_OK or the first failure of the writer.
 * NULL is allowed. */
PAWL_API pawl_status pawl_sketch_writer_close(struct pawl_sketch_writer *writer);

/* Selects the window for the following items by time, in nanoseconds since 1970. Waits only if the window
 * changes. Ignored without windows. PAWL_INVALID for times before 1970. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sketch_set_time(struct pawl_sketch_writer *writer, int64_t time_ns);

/* Adds an item. May wait for servers. After the first failure of a push, every call returns that failure.
 *   PAWL_INVALID   the weight is 0, or negative for CountMin
 *   PAWL_OVERFLOW  an earlier push would have made a total overflow; nothing of that push was added */
PAWL_API PAWL_MUST_USE pawl_status pawl_sketch_add(struct pawl_sketch_writer *writer, const void *key, size_t size,
                                                   int64_t weight);

/* Adds many items that are numbers, each with the same weight. This is the fastest way, above all with weight
 * 1. Errors as pawl_sketch_add. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sketch_add_numbers(struct pawl_sketch_writer *writer, const uint64_t *keys,
                                                           size_t count, int64_t weight);

/* Waits until every replica has applied all added items. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sketch_flush(struct pawl_sketch_writer *writer, int64_t timeout_ns);

/* Counters of a writer. */
struct pawl_sketch_figures {
  uint64_t added;  /* number of items */
  uint64_t merged; /* items combined with another one before they were sent */
  uint64_t pairs;  /* pairs of hash and weight that were sent or are ready to be sent */
  uint64_t pushes; /* rows sent */
  uint64_t bytes;  /* of them */
};

PAWL_API void pawl_sketch_figures(const struct pawl_sketch_writer *writer, struct pawl_sketch_figures *figures_out);

/* --- queries -------------------------------------------------------------------------------------------- */

/* Selects windows: the last `last` windows (0: all in the ring) up to the window of the time `until_ns` (0:
 * up to the newest window that was written). A NULL pointer means zeros. */
struct pawl_sketch_span {
  uint32_t last;
  int64_t until_ns;
};

/* An item: bytes, or a number if `bytes` is NULL. */
struct pawl_sketch_key {
  const void *bytes;
  size_t size;
  uint64_t number;
};

/* An estimated count. CountMin: the true count is in [count - error, count], except with probability
 * exp(-depth). Count sketch: `error` is about one standard deviation. A count beyond 2^63 - 1 in magnitude is
 * capped to that, and `is_capped` is set: the true count may be larger in magnitude. */
struct pawl_sketch_count {
  int64_t count;
  double error;
  bool is_capped;
};

PAWL_API PAWL_MUST_USE pawl_status pawl_sketch_query(struct pawl_sketch *sketch, const struct pawl_sketch_key *keys,
                                                     size_t count, const struct pawl_sketch_span *span,
                                                     int64_t timeout_ns, struct pawl_sketch_count *counts_out);

#define PAWL_SKETCH_NAME_MAX 104 /* bytes of an item's name that are kept */

struct pawl_sketch_entry {
  bool is_number;
  uint64_t number;
  size_t size; /* size of the name */
  char name[PAWL_SKETCH_NAME_MAX + 1];
  struct pawl_sketch_count is;
};

/* Finds the most frequent items, at most `room` of them, by descending count. An item is never missed if it
 * weighs more than one part in 1600 of all items that one of the writers has added, as long as no more than
 * 16 other items in the same 256th of all hashes weigh more. PAWL_UNSUPPORTED if the sketch keeps no
 * names. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sketch_top(struct pawl_sketch *sketch, size_t room,
                                                   const struct pawl_sketch_span *span, int64_t timeout_ns,
                                                   struct pawl_sketch_entry *entries_out, size_t *count_out);

/* Estimates the number of distinct items, with one standard error. PAWL_UNSUPPORTED if the sketch does not
 * keep it. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sketch_distinct(struct pawl_sketch *sketch, const struct pawl_sketch_span *span,
                                                        int64_t timeout_ns, double *number_out, double *error_out);

/* The sum of all weights (for a count sketch, of their absolute values). It is exact unless it exceeds 2^64 -
 * 1. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sketch_total(struct pawl_sketch *sketch, const struct pawl_sketch_span *span,
                                                     int64_t timeout_ns, uint64_t *total_out);

#ifdef __cplusplus
}
#endif

#endif
