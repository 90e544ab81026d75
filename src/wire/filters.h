/* Chains of filters as data: parsed, printed, described in bytes, agreed upon. <pawl/filter.h> says what a filter is.
 *
 * A *list* is the plain value behind a chain: which filters, in which order, with which parameters. The two ends of a
 * vector compare their lists when it is opened:
 *
 *     pwi_filter_list_write     ours, as bytes, to the other side
 *     pwi_filter_list_read      theirs, as far as this process knows the filters
 *     pwi_filter_list_agree     what both use from then on; both come to the same
 *
 * A *chain* (struct pawl_filters) is a list at work, with what its filters keep.
 *
 * The bytes of a list, all little-endian:
 *
 *     format    u8   PWI_FILTERS_FORMAT
 *     count     u8   of filters, at most PAWL_FILTERS_MAX; for each
 *       kind      u8   0 lossy, 1 encoding
 *       on        u8   directions: 1 push, 2 pull, 3 both
 *       name      text (u16 length, bytes)
 *       count     u8   of parameters, at most PAWL_FILTER_PARAMETERS_MAX; for each, in the order of the filter's list,
 *         name      text
 *         value     u64  a binary64; of a word its place in the list
 *
 * and nothing after it. No lossy filter stands behind an encoding.
 *
 * Lists are pure values: everything about them may be used by any thread.
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
#define PWI_FILTERS_PROBLEM_MAX 256 /* bytes that hold any problem that parsing names */

/* The filters that are built in; filter_types.c lists them. */
extern const struct pawl_filter_type pwi_filter_significant;
extern const struct pawl_filter_type pwi_filter_skip;
extern const struct pawl_filter_type pwi_filter_half;
extern const struct pawl_filter_type pwi_filter_fixed;
extern const struct pawl_filter_type pwi_filter_kkt;
extern const struct pawl_filter_type pwi_filter_keys;
extern const struct pawl_filter_type pwi_filter_zeros;
extern const struct pawl_filter_type pwi_filter_compress;

/* The kind of that name, built in or registered; NULL if there is none. */
const struct pawl_filter_type *pwi_filter_find(const char *name);

/* Number `at` of all kinds that this process knows, from 0; NULL behind the last. */
const struct pawl_filter_type *pwi_filter_at(size_t at);

static inline bool pwi_filter_is_lossless(const struct pawl_filter_type *type) {
  return type->flags & PAWL_FILTER_LOSSLESS;
}

/* How many words there are in a list such as "keep|scale"; and which of them `word` is, or -1. */
size_t pwi_filter_word_count(const char *words);
int pwi_filter_word_find(const char *words, const char *word, size_t length);

/* A value that a parameter can have. */
bool pwi_filter_value_fits(const struct pawl_filter_parameter *parameter, double value);

struct pwi_filter_item {
  const struct pawl_filter_type *type;
  unsigned on;                                   /* PAWL_ON_… */
  double parameters[PAWL_FILTER_PARAMETERS_MAX]; /* the first type->parameter_count of them; the others are 0 */
};

struct pwi_filter_list {
  size_t count;
  struct pwi_filter_item items[PAWL_FILTERS_MAX];
};

/* Statuses as pawl_filters_create. `problem`, if not NULL, then says what is wrong, such as
 *   filter 2, skip: rate is 1.5, and may be from 0 to 0.999 */
PAWL_MUST_USE pawl_status pwi_filter_list_parse(const char *text, char *problem, size_t problem_size,
                                                struct pwi_filter_list *list_out);

/* The text from which an equal list is parsed; "none" for an empty one. Cut to `size`. */
void pwi_filter_list_print(const struct pwi_filter_list *list, char *text, size_t size);

bool pwi_filter_list_equal(const struct pwi_filter_list *a, const struct pwi_filter_list *b);

/* Appends the bytes of a list; the writer's status tells of failure. */
void pwi_filter_list_write(struct pwi_writer *writer, const struct pwi_filter_list *list);

/* Reads a list from exactly `size` bytes, which may be anything. An encoding that this process does not know, or not
 * with such parameters, is left out.
 *   PAWL_UNSUPPORTED  the same of a lossy filter, or another format; `problem` names it
 *   PAWL_TRUNCATED    ends too early
 *   PAWL_CORRUPT      any other fault */
PAWL_MUST_USE pawl_status pwi_filter_list_read(const void *bytes, size_t size, char *problem, size_t problem_size,
                                               struct pwi_filter_list *list_out);

/* What two sides have in common: the lossy filters, which must be the same, and the encodings that both have with the
 * same parameters, by rising name. The result does not depend on who is who. PAWL_MISMATCH if the lossy filters differ. */
PAWL_MUST_USE pawl_status pwi_filter_list_agree(const struct pwi_filter_list *ours,
                                                const struct pwi_filter_list *theirs, char *problem,
                                                size_t problem_size, struct pwi_filter_list *list_out);

/* --- at work -------------------------------------------------------------------------------------------------- */

/* As pawl_filters_create, from a list. */
PAWL_MUST_USE pawl_status pwi_filters_open(const struct pwi_filter_list *list,
                                           const struct pawl_filters_options *options,
                                           struct pawl_filters **filters_out);

/* The list that the chain was made from, also what is not for its direction. Valid as long as the chain. */
const struct pwi_filter_list *pwi_filters_list(const struct pawl_filters *filters);

/* The codecs of values.h that lose nothing of what the chain's lossy filters leave, and that it asks for: a set of bits
 * 1 << codec. RAW is always among them. F16 (or BF16) is there if no filter behind `half` changes values, FIXED if
 * there is a `fixed`; BITMAP for `zeros`, LZ4 and ZSTD for `compress`. Which of them pays is for wire/adapt.h to find out. */
unsigned pwi_filters_codecs(const struct pawl_filters *filters);

/* Whether key lists may be replaced by their signatures. */
bool pwi_filters_cache_keys(const struct pawl_filters *filters);

/* Adds to the counters of an encoding what it did to one message. An encoding that is not in the chain is ignored. */
void pwi_filters_count(struct pawl_filters *filters, const struct pawl_filter_type *encoding, size_t rows,
                       size_t bytes_before, size_t bytes_after);

#endif
