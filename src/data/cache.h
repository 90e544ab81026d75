/* Caches: rows as they lie in memory, in blocks, for data that is read more than once. docs/data.md has the layout.
 *
 * A file is written under another name and renamed when it is whole. Its index of blocks is at the end; everything
 * that a reader finds in it is checked before it is used, and each block has checksums.
 *
 * Threads: an open cache may be read by any number at once; a writer belongs to one at a time.
 */
#ifndef PWI_DATA_CACHE_H
#define PWI_DATA_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/batch.h"
#include "data/formats/columns.h"
#include "data/fault.h"

struct pwi_cache;

/* Whether a file begins like one. */
PAWL_MUST_USE pawl_status pwi_cache_is(const char *path, bool *is_out, struct pwi_fault *fault);

/* Reads head and index. The path is borrowed. PAWL_CORRUPT, PAWL_TRUNCATED, PAWL_UNSUPPORTED (a version that is not
 * known), and as files fail. */
PAWL_MUST_USE pawl_status pwi_cache_open(const char *path, struct pwi_cache **cache_out, struct pwi_fault *fault);
void pwi_cache_close(struct pwi_cache *cache); /* NULL is fine */
size_t pwi_cache_blocks(const struct pwi_cache *cache);

/* What it says that it holds; the highest id may be said too high by a file that somebody has made. */
void pwi_cache_counts(const struct pwi_cache *cache, uint64_t *rows_out, uint64_t *entries_out, uint64_t *max_id_out);

/* What was done to the values before they were written. */
bool pwi_cache_is_binary(const struct pwi_cache *cache);
bool pwi_cache_has_unit_rows(const struct pwi_cache *cache);

/* Fills an empty batch; the only block of a cache without blocks is empty. */
PAWL_MUST_USE pawl_status pwi_cache_read(const struct pwi_cache *cache, size_t block, struct pwi_batch *batch,
                                         struct pwi_fault *fault);
PAWL_MUST_USE pawl_status pwi_cache_read_columns(const struct pwi_cache *cache, size_t block,
                                                 struct pwi_columns **columns_out, struct pwi_fault *fault);

/* --- writing ---------------------------------------------------------------------------------------------------------------- */

struct pwi_cache_writer;

/* Creates `path`.new. */
PAWL_MUST_USE pawl_status pwi_cache_writer_open(const char *path, bool binary, bool unit_rows,
                                                struct pwi_cache_writer **writer_out, struct pwi_fault *fault);

/* Adds the rows of a batch that is finished, in order; a block is written when there are enough. PAWL_NO_SPACE,
 * PAWL_IO, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_cache_writer_add(struct pwi_cache_writer *writer, const struct pawl_batch *batch,
                                               struct pwi_fault *fault);
uint64_t pwi_cache_writer_bytes(const struct pwi_cache_writer *writer); /* that were written */

/* Writes the rest, and gives the file its name; frees the writer either way. */
PAWL_MUST_USE pawl_status pwi_cache_writer_finish(struct pwi_cache_writer *writer, struct pwi_fault *fault);
void pwi_cache_writer_abandon(struct pwi_cache_writer *writer); /* NULL is fine */

#endif
