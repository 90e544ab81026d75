/* Data sets, inside: what <pawl/data.h> promises, with a fault for the words. src/api/data.c is the same with those
 * words in pawl_error_text.
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
  struct pawl_data_options options; /* its label is ours, and its words are held */
  char *label;
  struct pwi_source *sources;
  size_t count, pieces;
  uint64_t bytes, piece_bytes, fingerprint;
  _Atomic uint64_t bad;     /* rows that could not be read, whether left out or not */
  _Atomic uint64_t skipped; /* left out */
  _Atomic uint64_t unknown; /* words of texts that were */
  atomic_bool has_first_bad;
  pthread_mutex_t lock; /* of first_bad, until has_first_bad */
  struct pwi_fault first_bad;
  const void *searched; /* by pwi_names_find, one at a time: data/names.c */
};

PAWL_MUST_USE pawl_status pwi_data_open(const char *const *paths, size_t count, const struct pawl_data_options *options,
                                        struct pawl_data **data_out, struct pwi_fault *fault);
void pwi_data_close(struct pawl_data *data); /* NULL is fine */

/* What there is in all, if every source is a cache; else zeros. */
void pwi_data_counts(const struct pawl_data *data, uint64_t *rows_out, uint64_t *entries_out, uint64_t *max_id_out);

/* Which source a piece is of. */
struct pwi_source *pwi_data_source(const struct pawl_data *data, size_t piece);

PAWL_MUST_USE pawl_status pwi_data_read(struct pawl_data *data, size_t piece, struct pwi_batch **batch_out,
                                        struct pwi_fault *fault);

/* From a cache they come as they are, from anything else they are made. */
PAWL_MUST_USE pawl_status pwi_data_read_columns(struct pawl_data *data, size_t piece, struct pwi_columns **columns_out,
                                                struct pwi_fault *fault);

/* Runs a parser over the text of a piece, leaving bad rows out as far as that is allowed, and counts them. */
typedef pawl_status pwi_data_parser(const struct pwi_parse_rule *rule, struct pwi_parse *parse, void *to);
PAWL_MUST_USE pawl_status pwi_data_parse(struct pawl_data *data, struct pwi_source *source,
                                         const struct pwi_lines *text, pwi_data_parser *parser, void *to,
                                         uint64_t *skipped, struct pwi_fault *fault);

/* What is made of a piece, by many threads at once. `text` is given up; it is NULL for a piece of a cache. */
struct pwi_data_product {
  pawl_status (*make)(struct pawl_data *data, size_t piece, struct pwi_lines *text, void **product_out,
                      struct pwi_fault *fault);
  void (*destroy)(void *product);
};

/* The batch, or product, is the receiver's. It may write a fault. */
typedef pawl_status pwi_data_take(void *context, size_t piece, struct pwi_batch *batch, struct pwi_fault *fault);

typedef pawl_status pwi_data_take_any(void *context, size_t piece, void *product, struct pwi_fault *fault);

/* With `is_ordered` pieces are handed over by number. */
PAWL_MUST_USE pawl_status pwi_data_make_all(struct pawl_data *data, size_t begin, size_t end, uint32_t threads,
                                            bool is_ordered, const struct pwi_data_product *product,
                                            pwi_data_take_any *take, void *context, struct pwi_fault *fault);

PAWL_MUST_USE pawl_status pwi_data_read_all(struct pawl_data *data, size_t begin, size_t end, uint32_t threads,
                                            bool is_ordered, pwi_data_take *take, void *context,
                                            struct pwi_fault *fault);

PAWL_MUST_USE pawl_status pwi_data_convert(struct pawl_data *data, const char *path, uint32_t threads,
                                           bool (*progress)(void *context, const struct pawl_data_progress *progress),
                                           void *context, struct pwi_fault *fault);

/* Processors that this process may use. */
uint32_t pwi_data_processors(void);

/* Runs `work` with 0 … threads - 1, one of them in the calling thread. Fewer threads if no more can be had. */
void pwi_data_crew(uint32_t threads, void (*work)(void *context), void *context);

#endif
