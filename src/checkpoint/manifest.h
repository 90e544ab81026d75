/* Manifests: the contents of a checkpoint. A directory with a manifest is a checkpoint; a directory
 * without one is left over from an unfinished save.
 *
 * A manifest is a JSON text that people can read. Its last member is a checksum of all bytes before it,
 * which detects accidental changes:
 *
 *   {
 *     "format": 1,
 *     "cluster": "00c0ffee00c0ffee",             hexadecimal
 *     "name": "nightly-5",
 *     "number": 5,
 *     "time": "2025-01-31T23:59:59Z",
 *     "base": "nightly-4",                       or null
 *     "vectors": [{"id": 1, "incarnation": 1, "name": "ads/weights", "type": "f32", "width": 1,
 *                  "size": "1000000", "function": "add", "placement": "ordered", "layout": "dense"}],
 *                                                "function": "rule" comes with "rule", a text, and with
 *                                                "pushed", "stored" and "state", values per key;
 *                                                "filters" is present if the vector has filters
 *     "files": [{"name": "node-2-1.pawl", "node": 2, "size": 1234, "checksum": "0123456789abcdef",
 *                "arcs": [{"begin": "0", "end": "9223372036854775808", "epoch": 7, "sequence": "1234"}]}],
 *     "checksum": "0123456789abcdef"
 *   }
 *
 * Numbers that may exceed 2^53 are strings, because many JSON readers are not exact beyond that. Files are
 * named as in store/archive.h.
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
  /* increases when the vector is loaded from a checkpoint; rows of an earlier incarnation are not its own */
  uint64_t incarnation;
  char name[PAWL_NAME_MAX + 1];
  struct pawl_vector_options is; /* no option is AUTO */
};

struct pwi_manifest_file {
  char name[PWI_CHECKPOINT_NAME_MAX + 1];
  uint64_t node;
  uint64_t size;
  uint64_t checksum; /* as in struct pwi_archive_figures */
  struct pwi_archive_cut *arcs;
  size_t arc_count;
};

/* A struct of zeros is an empty manifest. The caller may set plain fields directly; the functions below
 * fill the arrays. */
struct pwi_manifest {
  uint64_t cluster;
  uint64_t number;
  int64_t time_s; /* seconds since 1970 */
  char name[PWI_CHECKPOINT_NAME_MAX + 1];
  char base[PWI_CHECKPOINT_NAME_MAX + 1]; /* "": no base */
  struct pwi_manifest_vector *vectors;
  size_t vector_count, vector_room;
  struct pwi_manifest_file *files;
  size_t file_count, file_room;
};

void pwi_manifest_fini(struct pwi_manifest *manifest);

/* Append a copy. After PAWL_NO_MEMORY nothing has changed. */
PAWL_MUST_USE pawl_status pwi_manifest_add_vector(struct pwi_manifest *manifest,
                                                  const struct pwi_manifest_vector *vector);
PAWL_MUST_USE pawl_status pwi_manifest_add_file(struct pwi_manifest *manifest, const struct pwi_manifest_file *file);

/* NULL if there is no such vector. */
const struct pwi_manifest_vector *pwi_manifest_vector(const struct pwi_manifest *manifest, uint64_t id);
const struct pwi_manifest_vector *pwi_manifest_named(const struct pwi_manifest *manifest, const char *name);

/* Checks the rules that every manifest obeys when it is written and after it is read: names are valid, no
 * two files or vectors share a name, the options of vectors are valid, no arc is empty, and no position is
 * in two arcs. PAWL_INVALID, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_manifest_check(const struct pwi_manifest *manifest);

/* PAWL_MISMATCH unless the arcs of all files cover exactly these positions, each once. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_manifest_covers(const struct pwi_manifest *manifest, struct pawl_range positions);

/* Returns the text, which the caller frees with pwi_free. PAWL_INVALID (as check), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_manifest_encode(const struct pwi_manifest *manifest, char **text_out, size_t *size_out);

/* Safe on any bytes. `manifest_out` must be empty. PAWL_TRUNCATED (the text does not end like a manifest),
 * PAWL_CORRUPT, PAWL_UNSUPPORTED (a later format), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_manifest_decode(const char *text, size_t size, struct pwi_manifest *manifest_out);

/* Writes PWI_MANIFEST_FILE into a directory, atomically and durably; from then on the directory is a
 * checkpoint. The other files in it must already be durable. PAWL_INVALID, PAWL_NO_MEMORY, or as
 * pwi_files_replace. */
PAWL_MUST_USE pawl_status pwi_manifest_write(struct pwi_files *files, const char *directory,
                                             const struct pwi_manifest *manifest);

/* PAWL_NOT_FOUND (no manifest), PAWL_TOO_LARGE, or as decode, or as pwi_file_read. */
PAWL_MUST_USE pawl_status pwi_manifest_read(struct pwi_files *files, const char *directory,
                                            struct pwi_manifest *manifest_out);

#endif
