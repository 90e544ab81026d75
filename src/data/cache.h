/* Caches: files that hold rows in their in-memory layout, in blocks, for data that is read more than once.
 * docs/data.md specifies the layout.
 *
 * The writer writes under another name and renames the complete file. The index of blocks is at the end of
 * the file. A reader checks everything it finds in a file before using it, and each block has checksums.
 *
 * Threads: any number of threads may read an open cache at once; a writer belongs to one thread at a time.
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

/* Whether the file begins with the magic bytes of a cache. */
PAWL_MUST_USE pawl_status pwi_cache_is(const char *path, bool *is_out, struct pwi_fault *fault);

/* Reads the head and the index. `path` is borrowed until close. PAWL_CORRUPT, PAWL_TRUNCATED,
 * PAWL_UNSUPPORTED (unknown version), and the errors of files. */
PAWL_MUST_USE pawl_status pwi_cache_open(const char *path, struct pwi_cache **cache_out, struct pwi_fault *fault);
void pwi_cache_close(struct pwi_cache *cache); /* NULL is fine */
size_t pwi_cache_blocks(const struct pwi_cache *cache);

/* The totals that the head states. A forged file can overstate the highest id. */
void pwi_cache_counts(const struct pwi_cache *cache, uint64_t *rows_out, uint64_t *entries_out, uint64_t *max_id_out);

/* The transformations that were applied to the values before they were written. */
bool pwi_cache_is_binary(const struct pwi_cache *cache);
bool pwi_cache_has_unit_rows(const struct pwi_cache *cache);

/* Fills an empty batch. A cache without blocks counts as one empty block. */
PAWL_MUST_USE pawl_status pwi_cache_read(const struct pwi_cache *cache, size_t block, struct pwi_batch *batch,
                                         struct pwi_fault *fault);
PAWL_MUST_USE pawl_status pwi_cache_read_columns(const struct pwi_cache *cache, size_t block,
                                                 struct pwi_columns **columns_out, struct pwi_fault *fault);

/* --- writing -------------------------------------------------------------------------------------------- */

struct pwi_cache_writer;

/* Creates `path`.new. */
PAWL_MUST_USE pawl_status pwi_cache_writer_open(const char *path, bool binary, bool unit_rows,
                                                struct pwi_cache_writer **writer_out, struct pwi_fault *fault);

/* Adds the rows of a finished batch, in order. Writes a block once enough rows have accumulated.
 * PAWL_NO_SPACE, PAWL_IO, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_cache_writer_add(struct pwi_cache_writer *writer, const struct pawl_batch *batch,
                                               struct pwi_fault *fault);
uint64_t pwi_cache_writer_bytes(const struct pwi_cache_writer *writer); /* bytes written so far */

/* Writes the remaining rows and renames the file. Frees the writer, also on failure. */
PAWL_MUST_USE pawl_status pwi_cache_writer_finish(struct pwi_cache_writer *writer, struct pwi_fault *fault);
void pwi_cache_writer_abandon(struct pwi_cache_writer *writer); /* NULL is fine */

#endif
