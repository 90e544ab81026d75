/* Caches: rows as they lie in memory, in blocks, for data that is read more than once. docs/data.md has the layout.
 *
 * A file is written under another name and renamed when it is whole. Its index of blocks is at the end; everything that a reader finds
 * in it is checked before it is used, and each block has a checksum.
 *
 * Threads: an open cache may be read by any number at once; a writer belongs to one at a time.
 */
#ifndef PWI_DATA_CACHE_H
#define PWI_DATA_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/batch.h"
#include "data/fault.h"

struct pwi_cache;

/* Whether a file begins like one. */
PAWL_MUST_USE pawl_status pwi_cache_is(const char *path, bool *is_out, struct pwi_fault *fault);

/* Reads head and index. The path is borrowed. PAWL_CORRUPT, PAWL_TRUNCATED, PAWL_UNSUPPORTED (a version that is not known), and as files fail. */
PAWL_MUST_USE pawl_status pwi_cache_open(const char *path, struct pwi_cache **cache_out, struct pwi_fault *fault);
void pwi_cache_close(struct pwi_cache *cache); /* NULL is fine */
size_t pwi_cache_blocks(const struct pwi_cache *cache);

/* Fills an empty batch. */
PAWL_MUST_USE pawl_status pwi_cache_read(struct pwi_cache *cache, size_t block, struct pwi_batch *batch,
                                         struct pwi_fault *fault);

#endif
