/* Data sets: the functions of <pawl/data.h>, with errors explained in a struct pwi_fault. src/api/data.c
 * copies these texts to pawl_error_text.
 */
#ifndef PWI_DATA_DATA_H
#define PWI_DATA_DATA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/data.h>

#include "data/batch.h"
#include "data/formats/columns.h"
#include "data/fault.h"
#include "data/source.h"

#define PWI_DATA_HASH_BITS 22
#define PWI_DATA_HASH_BITS_MAX 62
#define PWI_DATA_PIECE_LEAST ((uint64_t)256 << 10)
#define PWI_DATA_PIECE_MOST ((uint64_t)16 << 20)
#define PWI_DATA_PIECES_WANTED 64

struct pawl_data {
  struct pawl_data_options options; /* `options.label` points to `label` below; the vocabulary is retained */
  char *label;
  struct pwi_source *sources;
  size_t count, pieces;
  uint64_t bytes, piece_bytes, fingerprint;
  _Atomic uint64_t bad;     /* rows that could not be read, skipped or not */
  _Atomic uint64_t skipped; /* bad rows that were skipped */
  _Atomic uint64_t unknown; /* words of texts that are not in the vocabulary */
  atomic_bool has_first_bad;
  pthread_mutex_t lock; /* guards first_bad until has_first_bad is set */
  struct pwi_fault first_bad;
  const void *searched; /* the ids that pwi_feature_names_find looks for, one search at a time (data/names.c) */
};

PAWL_MUST_USE pawl_status pwi_data_open(const char *const *paths, size_t count, const struct pawl_data_options *options,
                                        struct pawl_data **data_out, struct pwi_fault *fault);
void pwi_data_close(struct pawl_data *data); /* NULL is fine */

/* The totals of all sources if every source is a cache; else zeros. */
void pwi_data_counts(const struct pawl_data *data, uint64_t *rows_out, uint64_t *entries_out, uint64_t *max_id_out);

/* The source that contains a piece. */
struct pwi_source *pwi_data_source(const struct pawl_data *data, size_t piece);

PAWL_MUST_USE pawl_status pwi_data_read(struct pawl_data *data, size_t piece, struct pwi_batch **batch_out,
                                        struct pwi_fault *fault);

/* Reads the columns from a cache, or builds them from the rows of any other source. */
PAWL_MUST_USE pawl_status pwi_data_read_columns(struct pawl_data *data, size_t piece, struct pwi_columns **columns_out,
                                                struct pwi_fault *fault);

/* Runs a parser over the text of a piece. Skips and counts bad rows as far as the options allow. */
typedef pawl_status pwi_data_parser(const struct pwi_parse_rule *rule, struct pwi_parse *parse, void *to);
PAWL_MUST_USE pawl_status pwi_data_parse(struct pawl_data *data, struct pwi_source *source,
                                         const struct pwi_lines *text, pwi_data_parser *parser, void *to,
                                         uint64_t *skipped, struct pwi_fault *fault);

/* Makes a product of each piece; many threads call `make` at once. `make` takes `text`, which is NULL for
 * a piece of a cache. */
struct pwi_data_product {
  pawl_status (*make)(struct pawl_data *data, size_t piece, struct pwi_lines *text, void **product_out,
                      struct pwi_fault *fault);
  void (*destroy)(void *product);
};

/* Receivers of batches and products. The receiver owns the batch or product, and may write a fault. */
typedef pawl_status pwi_data_take(void *context, size_t piece, struct pwi_batch *batch, struct pwi_fault *fault);

typedef pawl_status pwi_data_take_any(void *context, size_t piece, void *product, struct pwi_fault *fault);

/* With `is_ordered`, pieces are delivered in the order of their numbers. */
PAWL_MUST_USE pawl_status pwi_data_make_all(struct pawl_data *data, size_t begin, size_t end, uint32_t threads,
                                            bool is_ordered, const struct pwi_data_product *product,
                                            pwi_data_take_any *take, void *context, struct pwi_fault *fault);

PAWL_MUST_USE pawl_status pwi_data_read_all(struct pawl_data *data, size_t begin, size_t end, uint32_t threads,
                                            bool is_ordered, pwi_data_take *take, void *context,
                                            struct pwi_fault *fault);

PAWL_MUST_USE pawl_status pwi_data_convert(struct pawl_data *data, const char *path, uint32_t threads,
                                           bool (*progress)(void *context, const struct pawl_data_progress *progress),
                                           void *context, struct pwi_fault *fault);

/* The number of processors that this process may use. */
uint32_t pwi_data_processors(void);

/* Runs `work` in `threads` threads, the calling thread among them; in fewer if threads cannot be created. */
void pwi_data_crew(uint32_t threads, void (*work)(void *context), void *context);

#endif
