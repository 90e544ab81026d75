/* Filters: what happens to rows between a program and the wire (OSDI'14 3.6 and 5.1).
 *
 * A vector can have a chain of filters, written as a text:
 *
 *   significant(threshold=0.01) | skip(rate=0.1) | half | zeros | compress
 *
 * Rows pass through them from left to right. There are two kinds.
 *
 *   LOSSY filters run once for each push (or each answer to a pull), before anything is sent. They may drop rows and
 *   change values, and may keep a rest for later. What comes out is what is sent, also when it has to be sent again.
 *
 *   ENCODINGS lose nothing, may run again at each resend, and stand behind all lossy filters: `keys`, `zeros`,
 *   `compress`. In this version they are pawl's own.
 *
 * docs/filters.md describes those that are built in. This header is for programs that add one of their own
 * (docs/add-a-filter.md, examples/filter_clip.c), and for trying a chain without a cluster.
 *
 * TEXT. A filter is a name, and in parentheses its parameters as `name=value`, separated by commas; those left out have
 * their defaults. Spaces mean nothing. Every filter has the parameter `on`, one of push, pull and both; without it a
 * filter works on every direction that it can work on. "none", and an empty text, is the empty chain.
 *
 * RESTS. Filters with a rest (significant, skip) keep what they did not send by key, and add it to the next row of that
 * key that comes by. For such a filter
 *
 *     what went in so far  ==  what came out so far  +  what is held
 *
 * exactly for integers (which wrap around), to rounding for floats. A run with `flush` sends everything that is held,
 * drops no row and gives the memory back. A session that ends without a flush loses its rests.
 *
 * VALUES THAT ARE NO NUMBERS. No filter of pawl's refuses NaN or an infinity, and none hides it: significant and kkt
 * always send a row that holds one, half and fixed leave it as it is and do not let it spoil its neighbours, skip
 * treats it as any other value. Whether a server accepts it is for its function to say.
 *
 * THREADS. A chain belongs to one thread at a time. pawl_filter_register may be called by any thread.
 */
#ifndef PAWL_FILTER_H
#define PAWL_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <pawl/export.h>
#include <pawl/status.h>
#include <pawl/vector.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_FILTERS_MAX 8           /* filters in a chain */
#define PAWL_FILTER_PARAMETERS_MAX 8 /* of one filter */
#define PAWL_FILTER_NAME_MAX 31      /* characters of a name, also of a parameter's */
#define PAWL_FILTERS_TEXT_MAX 1024   /* bytes that hold any chain's text as pawl_filters_text writes it */

/* Directions, as bits. */
enum { PAWL_ON_PUSH = 1, PAWL_ON_PULL = 2, PAWL_ON_BOTH = 3 };

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Rows on their way: for each key, in rising order, `width` values one after another. A struct of zeros is empty. */
struct pawl_rows {
  enum pawl_type type;
  uint32_t width;
  size_t count;
  uint64_t *keys;
  void *values;
  void *weights;       /* what the caller knows to be stored, row by row, as `values`; NULL if the caller did not say */
  size_t room;         /* rows that the arrays hold */
  size_t bytes;        /* of one row's values */
  void *weights_block; /* private */
};

/* Frees the arrays and leaves an empty struct. */
PAWL_API void pawl_rows_fini(struct pawl_rows *rows);

/* Row `from` takes the place of row `to`. A filter that drops rows moves those that stay to the front, in order, and
 * then lowers `count`. */
static inline void pawl_rows_move(struct pawl_rows *rows, size_t from, size_t to) {
  size_t bytes = rows->bytes;
  if (from == to) return;
  rows->keys[to] = rows->keys[from];
  memcpy((char *)rows->values + to * bytes, (char *)rows->values + from * bytes, bytes);
  if (rows->weights) memcpy((char *)rows->weights + to * bytes, (char *)rows->weights + from * bytes, bytes);
}

/* --- a kind of filter --------------------------------------------------------------------------------------------- */

/* A parameter is a number, or one of several words; as a word, its value is the word's place in the list, from 0. */
struct pawl_filter_parameter {
  const char *name;   /* not "on" */
  const char *words;  /* such as "keep|scale"; NULL: a number */
  double least, most; /* of a number */
  double initial;     /* if it is left out; NaN: it must not be left out */
  bool whole;         /* only whole numbers */
};

/* What a filter learns when a chain is made. Valid during `init` only. */
struct pawl_filter_setup {
  enum pawl_type type;
  uint32_t width;
  uint64_t seed;            /* for all that is random: the same seed and rows give the same result */
  const double *parameters; /* in the order of the filter's list */
  const struct pawl_filters_options *options;
  char *problem; /* where `init` may say in words why it refuses; cut to `problem_size` */
  size_t problem_size;
};

/* One run of a chain, as seen by a filter. */
struct pawl_filter_pass {
  bool flush;       /* send everything: drop no row, and add all rests */
  uint64_t clamped; /* add to it the values that did not fit and were clamped */
};

/* Flags of a filter. */
#define PAWL_FILTER_LOSSLESS 1u /* an encoding; pawl's own only */
#define PAWL_FILTER_FLOATS 2u   /* for f32 and f64 only */
#define PAWL_FILTER_ADDS 4u     /* only for vectors to which pushes are added */
#define PAWL_FILTER_WEIGHTS 8u  /* wants `weights` */
#define PAWL_FILTER_CHANGES                                                                                            \
  16u /* changes values, or adds rows: what stood before it in the chain no longer holds of them */

/* All functions get the chain's own `state`: `state_size` bytes, zero before `init`. Every function but `apply` may be
 * NULL. The struct and all that it points to must stay for as long as the process runs. */
struct pawl_filter_type {
  const char *name;    /* a lower-case letter, then letters, digits and '_' */
  const char *summary; /* one line, for people */
  unsigned directions; /* PAWL_ON_… that it can work on */
  unsigned flags;      /* PAWL_FILTER_… */
  const struct pawl_filter_parameter *parameters;
  size_t parameter_count;
  size_t state_size;

  /* PAWL_INVALID or PAWL_UNSUPPORTED for a setup that it cannot serve. After a failure `fini` is not called. */
  pawl_status (*init)(void *state, const struct pawl_filter_setup *setup);
  void (*fini)(void *state);

  /* Makes sure that the next `apply`, of at most `rows` rows, needs no memory: the whole chain is reserved before any
   * of it runs, so that a run takes place or does not. PAWL_NO_MEMORY must leave the rests as they are. */
  pawl_status (*reserve)(void *state, size_t rows, bool flush);

  /* Changes the rows in place. Cannot fail. Keys rise strictly before and after. Only a filter that holds rests adds
   * rows, only in a flush, and no more than `held` says; the arrays have room for them. */
  void (*apply)(void *state, struct pawl_rows *rows, struct pawl_filter_pass *pass);

  size_t (*held)(const void *state);   /* rows of rests */
  size_t (*memory)(const void *state); /* bytes, besides the state itself */

  /* Bytes that `count` values take on the wire from this filter on. NULL: as before it. */
  size_t (*bytes)(const void *state, size_t count);
};

/* Makes a kind of filter known to this process, for every chain that is made from then on. Whoever opens a vector that has
 * it must know it as well, under the same name and with the same parameters; servers only if it works on pulls. PAWL_EXISTS if there is one of that name, PAWL_INVALID for a
 * struct that breaks a rule above, PAWL_TOO_LARGE after 32 of them. */
PAWL_API pawl_status pawl_filter_register(const struct pawl_filter_type *type);

/* --- a chain ------------------------------------------------------------------------------------------------------ */

struct pawl_filters;

/* True if the row need not be sent: what `kkt` asks in place of its own rule. `weights` is NULL if the run had none. */
typedef bool pawl_filter_rule(void *context, uint64_t key, const void *weights, const void *gradients);

struct pawl_filters_options {
  enum pawl_type type; /* default PAWL_F32 */
  uint32_t width;      /* default 1 */
  bool adds;           /* whether pushes are added to what is stored; default true */
  unsigned direction;  /* PAWL_ON_PUSH (the default) or PAWL_ON_PULL: filters for the other one do nothing */
  uint64_t seed;       /* default 0 */
  pawl_filter_rule *kkt_rule;
  void *kkt_context;
  char *problem; /* if not NULL, a failed create says here in words what is wrong; cut to `problem_size` */
  size_t problem_size;
};

/* Fills in the defaults. */
PAWL_API void pawl_filters_options_init(struct pawl_filters_options *options);

/* Makes a chain from its text. `options` may be NULL.
 *   PAWL_INVALID      the text is no chain, a parameter is missing or out of its limits, or an encoding stands before a
 *                     lossy filter
 *   PAWL_UNSUPPORTED  no filter of that name, or not for this type of values, kind of vector or direction
 *   PAWL_TOO_LARGE    more than PAWL_FILTERS_MAX filters
 *   PAWL_NO_MEMORY */
PAWL_API pawl_status pawl_filters_create(const char *text, const struct pawl_filters_options *options,
                                         struct pawl_filters **filters_out);

/* Rests that were not flushed are lost. NULL is fine. */
PAWL_API void pawl_filters_destroy(struct pawl_filters *filters);

/* Runs the lossy filters over `count` rows and writes what is to be sent to `rows_out`, whose memory is reused. The
 * input is not changed. `weights` may be NULL unless a filter needs it. With `flush` no row is dropped and all rests
 * are added; `count` may then be 0. On failure nothing has happened: rests, counters and random numbers are as before.
 *   PAWL_INVALID      weights are needed and missing
 *   PAWL_UNSORTED     the keys do not rise strictly
 *   PAWL_OUT_OF_SPAN  the last key is PAWL_KEY_END
 *   PAWL_NO_MEMORY, PAWL_OVERFLOW */
PAWL_API pawl_status pawl_filters_run(struct pawl_filters *filters, const uint64_t *keys, const void *values,
                                      const void *weights, size_t count, bool flush, struct pawl_rows *rows_out);

/* Rows of rests that a flush would add, at most; and the bytes that all rests take. */
PAWL_API size_t pawl_filters_held(const struct pawl_filters *filters);
PAWL_API size_t pawl_filters_memory(const struct pawl_filters *filters);

/* The chain as a text from which an equal one can be made. Parameters that have their defaults are left out. Cut to
 * `size`; PAWL_FILTERS_TEXT_MAX is enough for pawl's own filters. */
PAWL_API void pawl_filters_text(const struct pawl_filters *filters, char *text, size_t size);

/* What a filter has done so far. A row counts as its key, 8 bytes, and its values as they lie on the wire. */
struct pawl_filter_counters {
  const char *name;
  uint64_t runs;
  uint64_t rows_before, rows_after;
  uint64_t bytes_before, bytes_after;
  uint64_t clamped; /* values that did not fit */
  size_t held;      /* rows of rests, now */
  size_t memory;    /* bytes of rests, now */
};

/* Of the filter at `index`, from 0. PAWL_NOT_FOUND behind the last. */
PAWL_API pawl_status pawl_filters_counters(const struct pawl_filters *filters, size_t index,
                                           struct pawl_filter_counters *counters_out);

/* --- a vector's filters ------------------------------------------------------------------------------------------- */

/* Gives a vector, as this session uses it, another chain than the one it was created with, for both directions: from the
 * next call on, for all handles of the vector in the session. (Calls to a single node, where.node, keep the vector's own.) Nobody else is concerned: what arrives at servers is rows, and
 * filters on pulls are named in each pull. "none" is no chain. Of `options`, which may be NULL, only seed, kkt_rule and
 * kkt_context count; without them the seed is drawn.
 *
 * Errors as pawl_filters_create, with the reason in pawl_error_text, and
 *   PAWL_INVALID    rests are held: flush them first
 *   PAWL_TOO_LARGE  the filters on pulls are more than a pull can name */
PAWL_API pawl_status pawl_vector_filter(struct pawl_vector *vector, const char *text,
                                        const struct pawl_filters_options *options);

/* As pawl_vector_push. `weights` has a row for each row of `values`: what the caller last pulled, for filters that judge by
 * it (kkt). It must stay as `values` must. Without weights, and without a rule of its own, kkt refuses every push:
 * PAWL_INVALID. */
PAWL_API pawl_status pawl_vector_push_filtered(struct pawl_vector *vector, struct pawl_where where, const void *values,
                                               const void *weights, struct pawl_task **task_out);

/* Pushes all rests that the vector's filters hold in this session. A session that is closed, or a process that dies, loses
 * what it has not flushed. Rests that a push carried are lost with it if it fails. */
PAWL_API pawl_status pawl_vector_flush_filters(struct pawl_vector *vector, struct pawl_task **task_out);

/* What the vector's filter at `index` has done in this session, on the way that `direction` says: PAWL_ON_PUSH or
 * PAWL_ON_PULL. Of an encoding, bytes are those of what it works on: of the list of keys (keys), of the values (zeros,
 * compress). What lossy filters do to pulls is done by servers, and not counted here. PAWL_NOT_FOUND behind the last. */
PAWL_API pawl_status pawl_vector_filter_counters(struct pawl_vector *vector, unsigned direction, size_t index,
                                                 struct pawl_filter_counters *counters_out);

/* Bytes that this session has sent and received for the vector, in whole messages. */
struct pawl_vector_traffic {
  uint64_t messages_out, bytes_out;
  uint64_t messages_in, bytes_in;
};

PAWL_API void pawl_vector_traffic(struct pawl_vector *vector, struct pawl_vector_traffic *traffic_out);

#ifdef __cplusplus
}
#endif

#endif
