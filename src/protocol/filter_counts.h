/* Counters of filters, sent by clients and summed by the manager.
 *
 * A client sends the counts since its last COUNTS message, at most once a second. The manager adds them up by
 * vector, direction and filter, over all clients there ever were. Nothing depends on these figures: counts
 * that are lost with a link or a manager stay lost. Nothing is counted twice.
 *
 * Payload of COUNTS, with base/cursor.h: u32 count, and for each u64 vector, u8 direction (1 push, 2 pull),
 * text name, u64 each: runs, rows before and after, bytes before and after, values clamped.
 *
 * Threads: as the net.
 */
#ifndef PWI_PROTOCOL_FILTER_COUNTS_H
#define PWI_PROTOCOL_FILTER_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/filter.h>
#include <pawl/status.h>

#include "base/cursor.h"

struct pwi_filter_count {
  uint64_t vector;
  uint8_t direction; /* PAWL_ON_PUSH or PAWL_ON_PULL */
  char name[PAWL_FILTER_NAME_MAX + 1];
  uint64_t runs;
  uint64_t rows_before, rows_after;
  uint64_t bytes_before, bytes_after;
  uint64_t clamped;
};

/* Writes one count. The caller writes the number of counts before the first. Errors are reported by the
 * writer's status. */
void pwi_filter_count_write(struct pwi_writer *writer, const struct pwi_filter_count *count);

/* A struct of zeros is empty. Items are in the order of their first appearance. */
struct pwi_filter_totals {
  struct pwi_filter_count *items;
  size_t count, room;
};

#define PWI_FILTER_TOTALS_MAX 4096 /* maximum number of items; further ones are not listed */

void pwi_filter_totals_fini(struct pwi_filter_totals *totals);

/* Adds the counts of a COUNTS message. PAWL_TRUNCATED, PAWL_CORRUPT: nothing was added. If memory is lacking,
 * new items are omitted. */
PAWL_MUST_USE pawl_status pwi_filter_totals_add(struct pwi_filter_totals *totals, const void *payload, size_t size);

#endif
