/* Manifests: what a checkpoint consists of. A directory with one is a checkpoint; one without is left over from an attempt.
 *
 * A manifest is a JSON text, so that people can read it, and its last member is a checksum of all bytes before it, so that
 * nobody can have changed it by accident:
 *
 *   {
 *     "format": 1,
 *     "cluster": "00c0ffee00c0ffee",             hexadecimal
 *     "name": "nightly-5",
 *     "number": 5,
 *     "time": "2025-01-31T23:59:59Z",
 *     "base": "nightly-4",                       or null
 *     "vectors": [{"id": 1, "incarnation": 1, "name": "ads/weights", "type": "f32", "width": 1, "size": "1000000",
 *                  "function": "add", "placement": "ordered", "layout": "dense"}],
 *                                               "function": "rule" comes with "rule", a text, and with "pushed", "stored"
 *                                               and "state", values per key; "filters" is there if there are any
 *     "files": [{"name": "node-2-1.pawl", "node": 2, "size": 1234, "checksum": "0123456789abcdef",
 *                "arcs": [{"begin": "0", "end": "9223372036854775808", "epoch": 7, "sequence": "1234"}]}],
 *     "checksum": "0123456789abcdef"
 *   }
 *
 * Numbers that may pass 2^53 are strings, because JSON readers keep no more. Files have names as in archive.h.
 *
 * Threads: a manifest is a plain value and belongs to one thread at a time.
 */
#ifndef PWI_CHECKPOINT_MANIFEST_H
#define PWI_CHECKPOINT_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/status.h>
#include <pawl/vector.h>

#include "base/files.h"
#include "store/archive.h"

#define PWI_MANIFEST_FILE "manifest.json"
#define PWI_MANIFEST_MAX ((size_t)256 << 20) /* bytes */

struct pwi_manifest_vector {
  uint64_t id;
  uint64_t incarnation; /* rises when the vector is loaded from a checkpoint: rows of an earlier one are not its own */
  char name[PAWL_NAME_MAX + 1];
  struct pawl_vector_options is; /* nothing in it is AUTO */
};

struct pwi_manifest_file {
  char name[PWI_CHECKPOINT_NAME_MAX + 1];
  uint64_t node;
  uint64_t size;
  uint64_t checksum; /* struct pwi_archive_figures */
  struct pwi_archive_cut *arcs;
  size_t arc_count;
};

/* A struct of zeros is an empty one. Fields may be set by hand, arrays are filled with the functions below. */
struct pwi_manifest {
  uint64_t cluster;
  uint64_t number;
  int64_t time_s; /* seconds since 1970 */
  char name[PWI_CHECKPOINT_NAME_MAX + 1];
  char base[PWI_CHECKPOINT_NAME_MAX + 1]; /* "": it stands alone */
  struct pwi_manifest_vector *vectors;
  size_t vector_count, vector_room;
  struct pwi_manifest_file *files;
  size_t file_count, file_room;
};

void pwi_manifest_fini(struct pwi_manifest *manifest);

/* Append a copy. PAWL_NO_MEMORY, and then nothing has changed. */
PAWL_MUST_USE pawl_status pwi_manifest_add_vector(struct pwi_manifest *manifest,
                                                  const struct pwi_manifest_vector *vector);
PAWL_MUST_USE pawl_status pwi_manifest_add_file(struct pwi_manifest *manifest, const struct pwi_manifest_file *file);

/* NULL if there is none. */
const struct pwi_manifest_vector *pwi_manifest_vector(const struct pwi_manifest *manifest, uint64_t id);
const struct pwi_manifest_vector *pwi_manifest_named(const struct pwi_manifest *manifest, const char *name);

/* What a manifest must be to be written, and is when it was read: names are as they should be and no two files or vectors
 * have the same, options are those of a vector that can be, no arc is empty and no position is in two of them.
 * PAWL_INVALID, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_manifest_check(const struct pwi_manifest *manifest);

/* PAWL_MISMATCH unless the arcs of all files together are exactly these positions, none of them twice. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_manifest_covers(const struct pwi_manifest *manifest, struct pawl_range positions);

/* The text, which the caller frees with pwi_free. PAWL_INVALID (as check), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_manifest_encode(const struct pwi_manifest *manifest, char **text_out, size_t *size_out);

/* Safe on any bytes. PAWL_TRUNCATED (it does not end as a manifest does), PAWL_CORRUPT, PAWL_UNSUPPORTED (a later
 * format), PAWL_NO_MEMORY. `manifest_out` must hold nothing before. */
PAWL_MUST_USE pawl_status pwi_manifest_decode(const char *text, size_t size, struct pwi_manifest *manifest_out);

/* Writes it into a directory as PWI_MANIFEST_FILE, whole or not at all, and durably: from then on the directory is a
 * checkpoint. The other files in it must be safe before. PAWL_INVALID, PAWL_NO_MEMORY, or as pwi_files_replace. */
PAWL_MUST_USE pawl_status pwi_manifest_write(struct pwi_files *files, const char *directory,
                                             const struct pwi_manifest *manifest);

/* PAWL_NOT_FOUND (there is none), PAWL_TOO_LARGE, or as decode, or as pwi_file_read. */
PAWL_MUST_USE pawl_status pwi_manifest_read(struct pwi_files *files, const char *directory,
                                            struct pwi_manifest *manifest_out);

#endif
