/* Checkpoints on disk, accessed without a cluster: list, verify, read, export and remove them.
 *
 * A checkpoint is a directory NAME with a manifest (checkpoint/manifest.h) and the files that the manifest
 * lists (store/archive.h). All checkpoints lie below one `struct pwi_files`, the directory of checkpoints.
 * A checkpoint may have a base; its rows then replace rows of the base. So an open checkpoint is a
 * sequence of *layers*, the oldest first, in which the base of each layer is the layer before it. The rows
 * of a base count only for vectors that exist in the newest layer with the same id and the same
 * incarnation.
 *
 * Rows come in the order in which they were written. If a key comes more than once, the last row counts.
 *
 * Errors. A function that takes a `problem` writes there which file is wrong and why; the status is
 *   PAWL_NOT_FOUND    the checkpoint does not exist, or its base or a file is missing
 *   PAWL_TRUNCATED, PAWL_CORRUPT  a file is damaged
 *   PAWL_MISMATCH     a file is intact, but is not the file that the manifest describes
 *   PAWL_UNSUPPORTED  a later version of pawl wrote it
 *   PAWL_NO_MEMORY, PAWL_IO and the like
 * Threads: several threads may read a checkpoint at once, each with calls of its own.
 */
#ifndef PWI_CHECKPOINT_CHECKPOINT_H
#define PWI_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/files.h"
#include "checkpoint/chunk.h"
#include "protocol/save_messages.h"
#include "checkpoint/manifest.h"

#define PWI_SAVED_LAYERS_MAX 1024

struct pwi_problem {
  char text[512]; /* "" if the status says all there is to say */
};

/* --- listing -------------------------------------------------------------------------------------------- */

struct pwi_saved_item {
  char name[PWI_CHECKPOINT_NAME_MAX + 1];
  pawl_status status; /* PAWL_OK, or why the manifest cannot be read */
  uint64_t cluster;   /* this and the following fields are set only with PAWL_OK */
  uint64_t number;
  int64_t time_s;
  char base[PWI_CHECKPOINT_NAME_MAX + 1];
  size_t vectors, files;
  uint64_t bytes; /* total size of its own files */
};

/* Read-only for callers. A struct of zeros is an empty list. */
struct pwi_saved_list {
  /* sorted by time, then number, then name; unreadable checkpoints at the end */
  struct pwi_saved_item *items;
  size_t count, room;
  size_t unfinished; /* folders of saves that are under way or were abandoned */
};

/* Reads manifests only. `list_out` must be empty. PAWL_NO_MEMORY, or as pwi_files_list. */
PAWL_MUST_USE pawl_status pwi_saved_list(struct pwi_files *files, struct pwi_saved_list *list_out);
void pwi_saved_list_fini(struct pwi_saved_list *list);

/* --- saving and removing: checkpoint/sweep.c ------------------------------------------------------------ */

/* Creates a folder in which the checkpoint `name` can be written, with a marker that names the cluster.
 * `number` is random and part of the folder's name. PAWL_INVALID; PAWL_EXISTS if the checkpoint or the
 * folder already exists, and then nothing has changed; or as pwi_files_replace. */
PAWL_MUST_USE pawl_status pwi_saved_begin(struct pwi_files *files, const char *name, uint64_t cluster, uint64_t number,
                                          char folder_out[PWI_SAVE_FOLDER_SIZE]);

/* Writes the manifest into the folder and renames the folder to the checkpoint's name, durably.
 * PAWL_EXISTS if that name has come into existence meanwhile. After a failure the folder can be swept. */
PAWL_MUST_USE pawl_status pwi_saved_finish(struct pwi_files *files, const char *folder,
                                           const struct pwi_manifest *manifest);

/* Removes the folder of an abandoned save and the files that pawl wrote there. PAWL_EXISTS if the folder
 * contains any other file, which then stays. */
PAWL_MUST_USE pawl_status pwi_saved_sweep(struct pwi_files *files, const char *folder);

/* Sweeps all abandoned saves and removals of this cluster. None may be under way. */
void pwi_saved_sweep_all(struct pwi_files *files, uint64_t cluster);

/* Removes a checkpoint and the files that its manifest lists. `number` is random. The caller must know
 * that no other checkpoint has it as base. PAWL_NOT_FOUND; PAWL_EXISTS if the directory contains other
 * files, and then nothing has changed. */
PAWL_MUST_USE pawl_status pwi_saved_remove(struct pwi_files *files, const char *name, uint64_t number);

/* Whether a folder of this name belongs to a save or a removal. */
bool pwi_saved_is_attempt(const char *name);

/* --- opening one ---------------------------------------------------------------------------------------- */

/* Read-only for callers. */
struct pwi_saved {
  struct pwi_files *files;
  struct pwi_manifest *layers;
  size_t layer_count; /* at least 1 */
};

/* Reads the manifests of a checkpoint and of all its bases. `files` is borrowed. */
PAWL_MUST_USE pawl_status pwi_saved_open(struct pwi_files *files, const char *name, struct pwi_saved *saved_out,
                                         struct pwi_problem *problem);
void pwi_saved_close(struct pwi_saved *saved);

/* The checkpoint's own manifest. */
static inline const struct pwi_manifest *pwi_saved_newest(const struct pwi_saved *saved) {
  return &saved->layers[saved->layer_count - 1];
}

struct pwi_saved_totals {
  uint64_t files, bytes, rows; /* `rows`: each row counts as often as it occurs */
};

/* Reads every file of every layer completely and compares it with its manifest. Checks that the arcs of
 * each layer cover the whole ring. */
PAWL_MUST_USE pawl_status pwi_saved_verify(const struct pwi_saved *saved, struct pwi_saved_totals *totals_out,
                                           struct pwi_problem *problem);

/* Calls `visit` for all rows of a vector of the newest layer, chunk by chunk; a status other than PAWL_OK
 * ends the walk. Keys lie in the vector's span, and rows have its width. If a file is damaged, rows before
 * the damage may have been visited already: call verify first where that matters. */
PAWL_MUST_USE pawl_status pwi_saved_walk(const struct pwi_saved *saved, const struct pwi_manifest_vector *vector,
                                         pawl_status (*visit)(void *context, const struct pwi_chunk *chunk),
                                         void *context, struct pwi_problem *problem);

/* The same for all vectors of the newest layer, reading every file once. */
PAWL_MUST_USE pawl_status pwi_saved_walk_all(const struct pwi_saved *saved,
                                             pawl_status (*visit)(void *context, const struct pwi_chunk *chunk),
                                             void *context, struct pwi_problem *problem);

/* --- exporting ------------------------------------------------------------------------------------------ */

/* Writes a vector of the newest layer in the format of checkpoint/array_file.h. A dense vector is one
 * array over its whole span, [size, width]. A sparse vector is two arrays: its keys and the rows of these
 * keys. Keys increase with ordered placement; with mixed placement their order is arbitrary. Needs 8 bytes
 * of memory for each key of a sparse vector. */
PAWL_MUST_USE pawl_status pwi_saved_export_npy(const struct pwi_saved *saved, const struct pwi_manifest_vector *vector,
                                               struct pwi_file *values, struct pwi_file *keys,
                                               struct pwi_problem *problem);

/* Writes one tensor with the name of the vector; for a sparse vector two, `NAME.keys` and `NAME.values`. */
PAWL_MUST_USE pawl_status pwi_saved_export_safetensors(const struct pwi_saved *saved,
                                                       const struct pwi_manifest_vector *vector, struct pwi_file *file,
                                                       struct pwi_problem *problem);

#endif
