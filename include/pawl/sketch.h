/* Sketches: how often each of very many things was seen, which were seen most, and how many different ones there were, in
 * memory that does not grow with their number. docs/sketches.md explains them, with a worked example.
 *
 * A sketch lives on the servers under a name `space/name`, as vectors do: in fact it is a vector of banks of counters, with one
 * more, `space/name.top`, for the names of the things seen most, and one, `space/name.distinct`, for the number of different
 * ones. Things are strings of bytes or numbers of 64 bits; the two are different things, whatever they look like.
 *
 * KINDS. CountMin never tells less than the truth, and more than the bound that it gives with small probability only; weights
 * are above 0. A count sketch errs to both sides, less for streams in which few things are seen much; weights may be below 0.
 *
 * WRITERS. Things are added through a writer, which hashes, packs and, where that pays, adds up, and pushes full rows to the
 * servers while it goes on. A push is applied exactly once, as all pushes are. pawl_sketch_flush returns when all that was
 * added before is in. Several writers, of one process or of many, add to one sketch, and come to what one writer would have
 * come to.
 *
 * WINDOWS. A sketch may be a ring of time windows. A writer adds to the window of the time that it was told last,
 * at first to that of now. The newest
 * window takes the place of the oldest; what is added to a window that has left the ring is let go.
 *
 * THREADS. A writer belongs to one thread at a time; everything else may be called from any.
 *
 * ERRORS, besides those that each call names: those of vectors (vector.h). pawl_error_text has the particulars.
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

/* A sketch takes banks * depth * columns * 8 bytes on the servers, for each window. */
struct pawl_sketch_options {
  enum pawl_sketch_kind kind; /* default PAWL_SKETCH_COUNTMIN */
  uint32_t banks;             /* default 64; at most 65536 */
  uint32_t depth;             /* lines of a bank, at most 8; 0: 4, of a count sketch 5 */
  uint32_t columns;           /* cells of a line, a power of two up to 65536; default 1024 */
  uint32_t windows;           /* in the ring; 0: no windows */
  double window_s;            /* seconds of each */
  bool no_top, no_distinct;   /* to do without names, or without the number of different things */
};

/* Fills in the defaults. */
PAWL_API void pawl_sketch_options_init(struct pawl_sketch_options *options);

/* Creates and opens a sketch; `ensure` opens it if it is there with the same options. PAWL_EXISTS if it is there, or there
 * with others; PAWL_INVALID for options that do not go together. */
PAWL_API pawl_status pawl_sketch_create(struct pawl_session *session, const char *name,
                                        const struct pawl_sketch_options *options, int64_t timeout_ns,
                                        struct pawl_sketch **sketch_out);
PAWL_API pawl_status pawl_sketch_ensure(struct pawl_session *session, const char *name,
                                        const struct pawl_sketch_options *options, int64_t timeout_ns,
                                        struct pawl_sketch **sketch_out);

/* Opens a sketch that exists. PAWL_NOT_FOUND; PAWL_MISMATCH if there is a vector of that name which is no sketch. */
PAWL_API pawl_status pawl_sketch_open(struct pawl_session *session, const char *name, int64_t timeout_ns,
                                      struct pawl_sketch **sketch_out);

/* Before the session is closed, and after its writers. NULL is fine. */
PAWL_API void pawl_sketch_close(struct pawl_sketch *sketch);

/* Deletes it, for everybody. PAWL_NOT_FOUND. */
PAWL_API pawl_status pawl_sketch_drop(struct pawl_session *session, const char *name, int64_t timeout_ns);

struct pawl_sketch_info {
  char name[PAWL_NAME_MAX + 1];
  struct pawl_sketch_options options; /* nothing in it is 0 that has a default */
};

/* Never fails. */
PAWL_API void pawl_sketch_info(const struct pawl_sketch *sketch, struct pawl_sketch_info *info_out);

/* The sketches of a space, or all that the session may see if it is NULL, by name; freed with pawl_sketch_list_free. */
PAWL_API pawl_status pawl_sketch_list(struct pawl_session *session, const char *space, int64_t timeout_ns,
                                      struct pawl_sketch_info **infos_out, size_t *count_out);
PAWL_API void pawl_sketch_list_free(struct pawl_sketch_info *infos);

/* --- adding ----------------------------------------------------------------------------------------------------------- */

struct pawl_sketch_writer_options {
  bool no_aggregate;    /* send things as they come, and do not add up those that come again at once */
  uint32_t outstanding; /* pushes under way; 0: 64 */
  int64_t timeout_ns;   /* how long servers may take before a call gives up; 0: 60 seconds */
};

/* NULL for `options` takes the defaults, which are zeros. */
PAWL_API pawl_status pawl_sketch_writer_open(struct pawl_sketch *sketch,
                                             const struct pawl_sketch_writer_options *options,
                                             struct pawl_sketch_writer **writer_out);

/* Frees it. What was not flushed is lost; PAWL_OK, or the failure that the writer has met. NULL is fine. */
PAWL_API pawl_status pawl_sketch_writer_close(struct pawl_sketch_writer *writer);

/* From now on things are added to the window of this time, in nanoseconds since 1970. Waits only if it is another one. Of no
 * account without windows. PAWL_INVALID for times before 1970. */
PAWL_API pawl_status pawl_sketch_set_time(struct pawl_sketch_writer *writer, int64_t time_ns);

/* Adds a thing. May wait for servers. The first failure of a push is returned by every call after it.
 *   PAWL_INVALID   a weight of 0, or below it for CountMin
 *   PAWL_OVERFLOW  a push before this one made a total that does not fit; none of that push was added */
PAWL_API pawl_status pawl_sketch_add(struct pawl_sketch_writer *writer, const void *key, size_t size, int64_t weight);
PAWL_API pawl_status pawl_sketch_add_number(struct pawl_sketch_writer *writer, uint64_t key, int64_t weight);

/* Many numbers, each with weight 1: the fastest way. */
PAWL_API pawl_status pawl_sketch_add_numbers(struct pawl_sketch_writer *writer, const uint64_t *keys, size_t count);

/* Waits until all that was added is in, on every replica. */
PAWL_API pawl_status pawl_sketch_flush(struct pawl_sketch_writer *writer, int64_t timeout_ns);

/* What a writer has done so far. */
struct pawl_sketch_figures {
  uint64_t added;  /* things */
  uint64_t merged; /* of these: added up with another before they were sent */
  uint64_t pairs;  /* of hash and weight, sent or ready to be */
  uint64_t pushes; /* rows sent */
  uint64_t bytes;  /* of them */
};

PAWL_API void pawl_sketch_figures(const struct pawl_sketch_writer *writer, struct pawl_sketch_figures *figures_out);

/* --- asking ----------------------------------------------------------------------------------------------------------- */

/* Which windows: the `last` ones, 0 for all in the ring, up to that of `until_ns`, or up to the newest that was written if that
 * is 0. NULL in place of it is zeros. */
struct pawl_sketch_span {
  uint32_t last;
  int64_t until_ns;
};

/* A thing: bytes, or a number if `bytes` is NULL. */
struct pawl_sketch_key {
  const void *bytes;
  size_t size;
  uint64_t number;
};

/* CountMin: the truth is in [count - error, count], but for a probability of exp(-depth). Count sketch: `error` is about one
 * standard deviation. A count past 2^63 - 1, or below -(2^63 - 1), is told as that, and `is_capped` says so: then it is a
 * bound, and the truth may lie beyond it. */
struct pawl_sketch_count {
  int64_t count;
  double error;
  bool is_capped;
};

PAWL_API pawl_status pawl_sketch_query(struct pawl_sketch *sketch, const struct pawl_sketch_key *keys, size_t count,
                                       const struct pawl_sketch_span *span, int64_t timeout_ns,
                                       struct pawl_sketch_count *counts_out);

#define PAWL_SKETCH_NAME_MAX 104 /* bytes of a thing's name that are kept */

struct pawl_sketch_entry {
  bool is_number;
  uint64_t number;
  size_t size; /* of the name */
  char name[PAWL_SKETCH_NAME_MAX + 1];
  struct pawl_sketch_count is;
};

/* The things seen most, the first first; at most `room`. A thing that weighs more than one part in 1600 of all that one of the
 * writers has added is never missed, as long as no more than 16 others of the same 256th of all hashes weigh more.
 * PAWL_UNSUPPORTED if the sketch does without names. */
PAWL_API pawl_status pawl_sketch_top(struct pawl_sketch *sketch, size_t room, const struct pawl_sketch_span *span,
                                     int64_t timeout_ns, struct pawl_sketch_entry *entries_out, size_t *count_out);

/* About how many different things there are, and one standard error of it. PAWL_UNSUPPORTED as above. */
PAWL_API pawl_status pawl_sketch_distinct(struct pawl_sketch *sketch, const struct pawl_sketch_span *span,
                                          int64_t timeout_ns, double *number_out, double *error_out);

/* The sum of all weights (of a count sketch, of their absolute values), exactly, unless it passes 2^64 - 1. */
PAWL_API pawl_status pawl_sketch_total(struct pawl_sketch *sketch, const struct pawl_sketch_span *span,
                                       int64_t timeout_ns, uint64_t *total_out);

#ifdef __cplusplus
}
#endif

#endif
