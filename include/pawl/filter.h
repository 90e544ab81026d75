/* Filters: transformations of rows between a program and the network (OSDI'14 3.6 and 5.1).
 *
 * A vector can have a chain of filters, written as text:
 *
 *   significant(threshold=0.01) | skip(rate=0.1) | half | zeros | compress
 *
 * Rows pass through them from left to right. There are two kinds.
 *
 *   LOSSY filters run once for each push, or each answer to a pull, before anything is sent. They may drop
 *   rows, change values, and keep a residual for later. A resend repeats the filtered rows.
 *
 *   ENCODINGS lose nothing, may run again at each resend, and come after all lossy filters: `keys`, `zeros`,
 *   `compress`. In this version all encodings are built in.
 *
 * docs/filters.md describes the built-in filters. This header is for programs that add a filter
 * (docs/add-a-filter.md, examples/filter_clip.c), and for trying a chain without a cluster.
 *
 * TEXT. A filter is written as its name, followed by parameters `name=value` in parentheses, separated by
 * commas. Omitted parameters have their defaults. Spaces are ignored. Every filter has the parameter `on`,
 * one of push, pull and both; by default a filter works in every direction that it supports. "none", or an
 * empty text, is the empty chain.
 *
 * RESIDUALS. Some filters (significant, skip) keep the values that they did not send, by key, and add them to
 * the next row of that key. For such a filter
 *
 *     sum of all input rows  ==  sum of all output rows  +  residuals
 *
 * exactly for integers (which wrap around), up to rounding for floats. A run with `flush` sends all
 * residuals, drops no row and frees their memory. A session that ends without a flush loses its residuals.
 *
 * NAN AND INFINITY. No built-in filter refuses NaN or infinite values, and none hides them: significant and
 * kkt always send a row that contains one; half and fixed leave the value as it is and protect its neighbours
 * from it; skip treats it as any other value. The server function decides whether to accept it.
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
#define PAWL_FILTER_PARAMETERS_MAX 8 /* parameters of one filter */
#define PAWL_FILTER_NAME_MAX 31      /* characters of the name of a filter or parameter */
#define PAWL_FILTERS_TEXT_MAX 1024   /* bytes that suffice for a chain of built-in filters as text */

/* Directions, as bits. */
enum { PAWL_ON_PUSH = 1, PAWL_ON_PULL = 2, PAWL_ON_BOTH = 3 };

/* --- rows ----------------------------------------------------------------------------------------------- */

/* Rows in transit: for each key, in ascending order, `width` consecutive values. A struct of zeros is
 * empty. */
struct pawl_rows {
  enum pawl_type type;
  uint32_t width;
  size_t count;
  uint64_t *keys;
  void *values;
  void *weights;       /* the stored rows as far as the caller knows them, laid out as `values`; NULL if not
                          given */
  size_t room;         /* capacity of the arrays, in rows */
  size_t bytes;        /* of one row's values */
  void *weights_block; /* private */
};

/* Frees the arrays and leaves an empty struct. */
PAWL_API void pawl_rows_fini(struct pawl_rows *rows);

/* Copies row `from` to row `to`. A filter that drops rows moves the remaining rows to the front, in order,
 * and then lowers `count`. */
static inline void pawl_rows_move(struct pawl_rows *rows, size_t from, size_t to) {
  size_t bytes = rows->bytes;
  if (from == to) return;
  rows->keys[to] = rows->keys[from];
  memcpy((char *)rows->values + to * bytes, (char *)rows->values + from * bytes, bytes);
  if (rows->weights) memcpy((char *)rows->weights + to * bytes, (char *)rows->weights + from * bytes, bytes);
}

/* --- a kind of filter ----------------------------------------------------------------------------------- */

/* A parameter is a number or one of several words. The value of a word is its index in the list, from 0. */
struct pawl_filter_parameter {
  const char *name;   /* not "on" */
  const char *words;  /* such as "keep|scale"; NULL: a number */
  double least, most; /* limits of a number */
  double initial;     /* default; NaN: the parameter is mandatory */
  bool whole;         /* only whole numbers */
};

/* The argument of `init`; valid during that call only. */
struct pawl_filter_setup {
  enum pawl_type type;
  uint32_t width;
  uint64_t seed;            /* for random choices: the same seed and rows give the same result */
  const double *parameters; /* in the order of the filter's list */
  const struct pawl_filters_options *options;
  char *problem; /* buffer of `problem_size` bytes in which `init` may explain a refusal */
  size_t problem_size;
};

/* One run of a chain, as seen by a filter. */
struct pawl_filter_pass {
  bool flush;       /* send everything: drop no row, and add all residuals */
  uint64_t clamped; /* counter of clamped values, which the filter increases */
};

/* Flags of a filter. */
#define PAWL_FILTER_LOSSLESS 1u /* an encoding; built-in filters only */
#define PAWL_FILTER_FLOATS 2u   /* for f32 and f64 only */
#define PAWL_FILTER_ADDS 4u     /* only for vectors that add pushes to the stored values */
#define PAWL_FILTER_WEIGHTS 8u  /* needs `weights` */
/* The filter changes values or adds rows; effects of earlier filters no longer hold for these. */
#define PAWL_FILTER_CHANGES 16u

/* A kind of filter. All functions receive the `state` of the filter in its chain: `state_size` bytes, zero
 * before `init`. Every function except `apply` may be NULL. The struct and all data that it points to must
 * remain valid as long as the process runs. */
struct pawl_filter_type {
  const char *name;    /* a lower-case letter, then letters, digits and '_' */
  const char *summary; /* one line, for people */
  unsigned directions; /* PAWL_ON_… bits that it supports */
  unsigned flags;      /* PAWL_FILTER_… */
  const struct pawl_filter_parameter *parameters;
  size_t parameter_count;
  size_t state_size;

  /* Returns PAWL_INVALID or PAWL_UNSUPPORTED for a setup that it does not support. After a failure `fini` is
   * not called. */
  pawl_status (*init)(void *state, const struct pawl_filter_setup *setup);
  void (*fini)(void *state);

  /* Allocates the memory that the next `apply`, of at most `rows` rows, will need. The whole chain reserves
   * memory before any filter runs, so that a run happens completely or not at all. PAWL_NO_MEMORY must leave
   * the residuals unchanged. */
  pawl_status (*reserve)(void *state, size_t rows, bool flush);

  /* Changes the rows in place. Cannot fail. Keys are in strictly ascending order before and after. Only a
   * filter with residuals may add rows, only in a flush, and at most `held` of them; the arrays have room for
   * these. */
  void (*apply)(void *state, struct pawl_rows *rows, struct pawl_filter_pass *pass);

  size_t (*held)(const void *state);   /* number of rows with a residual */
  size_t (*memory)(const void *state); /* bytes in use in addition to the state */

  /* Bytes of `count` values on the wire after this filter. NULL: as before the filter. */
  size_t (*bytes)(const void *state, size_t count);
};

/* Registers a kind of filter in this process, for every chain that is created afterwards. Every process that
 * opens a vector with this filter must register it, under the same name and with the same parameters; servers
 * only if it works on pulls. PAWL_EXISTS if the name is in use, PAWL_INVALID if the struct violates a rule
 * above, PAWL_TOO_LARGE after 32 filters. */
PAWL_API PAWL_MUST_USE pawl_status pawl_filter_register(const struct pawl_filter_type *type);

/* --- a chain -------------------------------------------------------------------------------------------- */

struct pawl_filters;

/* A rule that replaces the built-in rule of `kkt`. Returns true if the row need not be sent. `weights` is
 * NULL if the run had none. */
typedef bool pawl_filter_rule(void *context, uint64_t key, const void *weights, const void *gradients);

struct pawl_filters_options {
  size_t struct_size;  /* set by pawl_filters_options_init */
  enum pawl_type type; /* default PAWL_F32 */
  uint32_t width;      /* default 1 */
  bool adds;           /* pushes are added to the stored values; default true */
  unsigned direction;  /* PAWL_ON_PUSH (default) or PAWL_ON_PULL: filters for the other direction do
                          nothing */
  uint64_t seed;       /* default 0 */
  pawl_filter_rule *kkt_rule;
  void *kkt_context;
  char *problem; /* if not NULL, a buffer of `problem_size` bytes for the reason of a failed create */
  size_t problem_size;
};

/* Sets all options to their defaults. */
PAWL_API void pawl_filters_options_init_sized(struct pawl_filters_options *options, size_t struct_size);
static inline void pawl_filters_options_init(struct pawl_filters_options *options) {
  pawl_filters_options_init_sized(options, sizeof *options);
}

/* Creates a chain from its text. `options` may be NULL.
 *   PAWL_INVALID      the text is malformed, a parameter is missing or out of its limits, or an encoding
 *                     precedes a lossy filter
 *   PAWL_UNSUPPORTED  unknown filter, or not for this type of values, kind of vector or direction
 *   PAWL_TOO_LARGE    more than PAWL_FILTERS_MAX filters
 *   PAWL_NO_MEMORY */
PAWL_API PAWL_MUST_USE pawl_status pawl_filters_create(const char *text, const struct pawl_filters_options *options,
                                                       struct pawl_filters **filters_out);

/* Frees the chain. Residuals that were not flushed are lost. NULL is allowed. */
PAWL_API void pawl_filters_destroy(struct pawl_filters *filters);

/* Runs the lossy filters over `count` rows and writes the rows to send to `rows_out`, whose memory is reused.
 * The input is not changed. `weights` may be NULL unless a filter needs it. With `flush` no row is dropped
 * and all residuals are added; `count` may then be 0. A failed run has no effect: residuals, counters and
 * random numbers are unchanged.
 *   PAWL_INVALID      a filter needs weights, and there are none
 *   PAWL_UNSORTED     the keys are not in strictly ascending order
 *   PAWL_OUT_OF_SPAN  the last key is PAWL_KEY_END
 *   PAWL_NO_MEMORY, PAWL_OVERFLOW */
PAWL_API PAWL_MUST_USE pawl_status pawl_filters_run(struct pawl_filters *filters, const uint64_t *keys,
                                                    const void *values, const void *weights, size_t count, bool flush,
                                                    struct pawl_rows *rows_out);

/* The highest number of rows that a flush would add. */
PAWL_API size_t pawl_filters_held(const struct pawl_filters *filters);

/* Counters of a filter since it was created. A row counts as 8 bytes for its key, plus its values in their
 * wire format. */
struct pawl_filter_counters {
  const char *name;
  uint64_t runs;
  uint64_t rows_before, rows_after;
  uint64_t bytes_before, bytes_after;
  uint64_t clamped; /* values that did not fit and were clamped */
  size_t held;      /* present number of rows with a residual */
  size_t memory;    /* present bytes of residuals */
};

/* Reads the counters of the filter at `index`, from 0. PAWL_NOT_FOUND beyond the last. */
PAWL_API PAWL_MUST_USE pawl_status pawl_filters_counters(const struct pawl_filters *filters, size_t index,
                                                         struct pawl_filter_counters *counters_out);

/* --- a vector's filters --------------------------------------------------------------------------------- */

/* Replaces the chain of a vector within this session, for both directions: from the next call on, for all
 * handles of the vector in the session. Calls to a single node (where.node) keep the chain of the vector.
 * Other sessions are not affected: servers receive plain rows, and each pull names its filters. "none" is the
 * empty chain. Of `options`, which may be NULL, only seed, kkt_rule and kkt_context are used; the default
 * seed is random.
 *
 * Errors as pawl_filters_create, with the reason in pawl_error_text, and
 *   PAWL_INVALID    the chain holds residuals: flush them first
 *   PAWL_TOO_LARGE  the text of the filters on pulls does not fit into a pull */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_filter(struct pawl_vector *vector, const char *text,
                                                      const struct pawl_filters_options *options);

/* As pawl_vector_push, with weights: `weights` has a row for each row of `values`, usually the rows that the
 * caller last pulled, for filters that decide by them (kkt). The array must remain unchanged as long as
 * `values`. Without weights and without a rule of its own, kkt refuses every push: PAWL_INVALID. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_push_filtered(struct pawl_vector *vector, struct pawl_where where,
                                                             const void *values, const void *weights,
                                                             struct pawl_task **task_out);

/* Pushes all residuals that the filters of the vector hold in this session. If the session is closed or the
 * process dies, residuals that were not flushed are lost. If a push fails, the residuals in it are lost
 * too. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_flush_filters(struct pawl_vector *vector, struct pawl_task **task_out);

/* Reads the counters of the vector's filter at `index` in this session, for one direction: PAWL_ON_PUSH or
 * PAWL_ON_PULL. The bytes of an encoding are those that it works on: the list of keys (keys), or the values
 * (zeros, compress). Servers run the lossy filters of pulls; their work is not counted here. PAWL_NOT_FOUND
 * beyond the last filter. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_filter_counters(struct pawl_vector *vector, unsigned direction,
                                                               size_t index, struct pawl_filter_counters *counters_out);

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
