/* Chains of filters as data: parsing, printing, encoding, and agreement between two nodes. <pawl/filter.h>
 * documents filters.
 *
 * A *list* describes a chain: the filters in their order, with parameters. Client and server compare their
 * lists when a vector is opened:
 *
 *     pwi_filter_list_write     encodes the list for the other side
 *     pwi_filter_list_read      decodes a list, as far as this process knows the filters
 *     pwi_filter_list_agree     computes the list that both sides use; both get the same result
 *
 * A *chain* (struct pawl_filters) is an instance of a list, with the state of its filters.
 *
 * The bytes of a list, all little-endian:
 *
 *     format    u8   PWI_FILTERS_FORMAT
 *     count     u8   of filters, at most PAWL_FILTERS_MAX; for each
 *       kind      u8   0 lossy, 1 encoding
 *       on        u8   directions: 1 push, 2 pull, 3 both
 *       name      text (u16 length, bytes)
 *       count     u8   of parameters, at most PAWL_FILTER_PARAMETERS_MAX; for each, in the order of the
 *                      filter's list,
 *         name      text
 *         value     u64  a binary64; of a word its place in the list
 *
 * and nothing after it. No lossy filter follows an encoding.
 *
 * Lists are plain values: any thread may use them.
 */
#ifndef PWI_WIRE_FILTERS_H
#define PWI_WIRE_FILTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/filter.h>

#include "base/cursor.h"
#include "wire/values.h"

#define PWI_FILTERS_FORMAT 1
#define PWI_FILTERS_PROBLEM_MAX 256 /* bytes that suffice for any error message of parsing */

/* The built-in filters; filter_types.c lists them. */
extern const struct pawl_filter_type pwi_filter_significant;
extern const struct pawl_filter_type pwi_filter_skip;
extern const struct pawl_filter_type pwi_filter_half;
extern const struct pawl_filter_type pwi_filter_fixed;
extern const struct pawl_filter_type pwi_filter_kkt;
extern const struct pawl_filter_type pwi_filter_keys;
extern const struct pawl_filter_type pwi_filter_zeros;
extern const struct pawl_filter_type pwi_filter_compress;

/* The built-in or registered kind of that name; NULL if there is none. */
const struct pawl_filter_type *pwi_filter_find(const char *name);

/* Kind number `at`, from 0, of all kinds that this process knows; NULL beyond the last. */
const struct pawl_filter_type *pwi_filter_at(size_t at);

static inline bool pwi_filter_is_lossless(const struct pawl_filter_type *type) {
  return type->flags & PAWL_FILTER_LOSSLESS;
}

/* The number of words in a list such as "keep|scale"; and the index of `word` in the list, or -1. */
size_t pwi_filter_word_count(const char *words);
int pwi_filter_word_find(const char *words, const char *word, size_t length);

/* True if the value is permitted for the parameter. */
bool pwi_filter_value_fits(const struct pawl_filter_parameter *parameter, double value);

struct pwi_filter_item {
  const struct pawl_filter_type *type;
  unsigned on;                                   /* PAWL_ON_… */
  double parameters[PAWL_FILTER_PARAMETERS_MAX]; /* only the first type->parameter_count are used; the others
                                                    are 0 */
};

struct pwi_filter_list {
  size_t count;
  struct pwi_filter_item items[PAWL_FILTERS_MAX];
};

/* Returns the statuses of pawl_filters_create. On failure `problem`, if not NULL, receives a message such as
 *   filter 2, skip: rate is 1.5, but must be from 0 to 0.999 */
PAWL_MUST_USE pawl_status pwi_filter_list_parse(const char *text, char *problem, size_t problem_size,
                                                struct pwi_filter_list *list_out);

/* Writes the list as text, from which an equal list can be parsed; "none" for an empty list. Truncated to
 * `size`. */
void pwi_filter_list_print(const struct pwi_filter_list *list, char *text, size_t size);

bool pwi_filter_list_equal(const struct pwi_filter_list *a, const struct pwi_filter_list *b);

/* Appends the encoded list. The status of the writer reports failures. */
void pwi_filter_list_write(struct pwi_writer *writer, const struct pwi_filter_list *list);

/* Decodes a list from exactly `size` untrusted bytes. An encoding that this process does not know, or not
 * with these parameters, is omitted.
 *   PAWL_UNSUPPORTED  an unknown lossy filter, or another format; `problem` names it
 *   PAWL_TRUNCATED    ends too early
 *   PAWL_CORRUPT      any other fault */
PAWL_MUST_USE pawl_status pwi_filter_list_read(const void *bytes, size_t size, char *problem, size_t problem_size,
                                               struct pwi_filter_list *list_out);

/* Computes the common list of two sides: the lossy filters, which must be equal, and the encodings that both
 * have with the same parameters, sorted by name. The result does not depend on the order of the arguments.
 * PAWL_MISMATCH if the lossy filters differ. */
PAWL_MUST_USE pawl_status pwi_filter_list_agree(const struct pwi_filter_list *ours,
                                                const struct pwi_filter_list *theirs, char *problem,
                                                size_t problem_size, struct pwi_filter_list *list_out);

/* --- running chains ------------------------------------------------------------------------------------- */

/* As pawl_filters_create, from a list. */
PAWL_MUST_USE pawl_status pwi_filters_open(const struct pwi_filter_list *list,
                                           const struct pawl_filters_options *options,
                                           struct pawl_filters **filters_out);

/* The list from which the chain was created, including filters for the other direction. Valid as long as the
 * chain. */
const struct pwi_filter_list *pwi_filters_list(const struct pawl_filters *filters);

/* The codecs of values.h that the chain asks for and that are lossless for the output of its lossy filters,
 * as a set of bits 1 << codec. RAW is always included; F16 (or BF16) if no filter after `half` changes
 * values; FIXED if the chain has a `fixed`; BITMAP for `zeros`; LZ4 and ZSTD for `compress`. wire/adapt.h
 * chooses among them. */
unsigned pwi_filters_codecs(const struct pawl_filters *filters);

/* True if key lists may be replaced by their signatures. */
bool pwi_filters_cache_keys(const struct pawl_filters *filters);

/* Adds one message to the counters of an encoding. Ignored if the encoding is not in the chain. */
void pwi_filters_count(struct pawl_filters *filters, const struct pawl_filter_type *encoding, size_t rows,
                       size_t bytes_before, size_t bytes_after);

#endif
