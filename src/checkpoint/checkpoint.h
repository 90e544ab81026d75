/* Checkpoints on disk, as seen from outside a cluster: listed, verified, walked over, exported, swept.
 *
 * A checkpoint is a directory NAME with a manifest (checkpoint/manifest.h) and the files that it lists (store/archive.h), all
 * below one `struct pwi_files`, which is the directory of checkpoints. One that has a base adds to it: what it holds comes
 * over what the base holds. So an open checkpoint is a row of *layers*, the oldest first, of which all but the first have
 * the one before as base. Of a base only the rows of those vectors count that are the same ones, of the same incarnation,
 * in the newest layer.
 *
 * Rows come in the order in which they were written, and a key may come again: the later row counts.
 *
 * Errors. Where a function takes a `problem` it says there, in words, what is wrong with which file; the status is
 *   PAWL_NOT_FOUND    there is no such checkpoint, or its base or a file is missing
 *   PAWL_TRUNCATED, PAWL_CORRUPT  a file is damaged
 *   PAWL_MISMATCH     a file is whole, but not the one that the manifest means
 *   PAWL_UNSUPPORTED  it was written by a later pawl
 *   PAWL_NO_MEMORY, PAWL_IO and the like
 * Threads: a checkpoint may be read by several threads at once, each with calls of its own.
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
  char text[512]; /* "" if there is nothing to say besides the status */
};

/* --- which there are ---------------------------------------------------------------------------------------------- */

struct pwi_saved_item {
  char name[PWI_CHECKPOINT_NAME_MAX + 1];
  pawl_status status; /* of the manifest: PAWL_OK, or why it cannot be read */
  uint64_t cluster;   /* and the rest only with PAWL_OK */
  uint64_t number;
  int64_t time_s;
  char base[PWI_CHECKPOINT_NAME_MAX + 1];
  size_t vectors, files;
  uint64_t bytes; /* of its own files */
};

/* Read-only for callers. A struct of zeros is an empty list. */
struct pwi_saved_list {
  struct pwi_saved_item *items; /* by time, then number, then name; unreadable ones at the end */
  size_t count, room;
  size_t unfinished; /* attempts: under way, or left over */
};

/* Looks at manifests only. PAWL_NO_MEMORY, or as pwi_files_list. `list_out` must hold nothing before. */
PAWL_MUST_USE pawl_status pwi_saved_list(struct pwi_files *files, struct pwi_saved_list *list_out);
void pwi_saved_list_fini(struct pwi_saved_list *list);

/* --- made and removed: checkpoint/sweep.c ------------------------------------------------------------------------------- */

/* Makes a fresh folder in which a checkpoint `name` can be written, with a marker that says whose it is. `number` is random, and
 * part of the folder's name. PAWL_INVALID; PAWL_EXISTS if there is anything of that name, or of the folder's: nothing has
 * been changed then; or as pwi_files_replace. */
PAWL_MUST_USE pawl_status pwi_saved_begin(struct pwi_files *files, const char *name, uint64_t cluster, uint64_t number,
                                          char folder_out[PWI_SAVE_FOLDER_SIZE]);

/* Writes the manifest into the folder and gives it the checkpoint's name, durably. PAWL_EXISTS if there is something of that
 * name by now. After a failure the folder can be swept. */
PAWL_MUST_USE pawl_status pwi_saved_finish(struct pwi_files *files, const char *folder,
                                           const struct pwi_manifest *manifest);

/* Removes an attempt's folder and the files in it that pawl writes there. PAWL_EXISTS if something else is in it too: that
 * stays. */
PAWL_MUST_USE pawl_status pwi_saved_sweep(struct pwi_files *files, const char *folder);

/* The same for whatever attempts and removals of this cluster are left over. None must be under way. */
void pwi_saved_sweep_all(struct pwi_files *files, uint64_t cluster);

/* Removes a checkpoint, and in it those files that its manifest lists. `number` is random. Whether another has it as base is
 * for the caller to know. PAWL_NOT_FOUND; PAWL_EXISTS if there are other files in it: then nothing has been changed. */
PAWL_MUST_USE pawl_status pwi_saved_remove(struct pwi_files *files, const char *name, uint64_t number);

/* Whether this is how the folder of an attempt, or of a removal, is named. */
bool pwi_saved_is_attempt(const char *name);

/* --- one of them -------------------------------------------------------------------------------------------------- */

/* Read-only for callers. */
struct pwi_saved {
  struct pwi_files *files;
  struct pwi_manifest *layers;
  size_t layer_count; /* at least 1 */
};

/* Reads the manifests of a checkpoint and of all it is based on. `files` is borrowed. */
PAWL_MUST_USE pawl_status pwi_saved_open(struct pwi_files *files, const char *name, struct pwi_saved *saved_out,
                                         struct pwi_problem *problem);
void pwi_saved_close(struct pwi_saved *saved);

/* The checkpoint's own manifest. */
static inline const struct pwi_manifest *pwi_saved_newest(const struct pwi_saved *saved) {
  return &saved->layers[saved->layer_count - 1];
}

struct pwi_saved_totals {
  uint64_t files, bytes, rows; /* rows: as often as they come */
};

/* Reads every file of every layer to the end, and compares it with its manifest; the arcs of each layer must be the whole
 * ring. */
PAWL_MUST_USE pawl_status pwi_saved_verify(const struct pwi_saved *saved, struct pwi_saved_totals *totals_out,
                                           struct pwi_problem *problem);

/* Calls `visit` for all rows of a vector of the newest layer, chunk by chunk; anything but PAWL_OK from it ends the walk.
 * Keys lie in the span, and rows have the vector's width. Rows of a damaged file may have been visited before the damage
 * is found: verify first where that matters. */
PAWL_MUST_USE pawl_status pwi_saved_walk(const struct pwi_saved *saved, const struct pwi_manifest_vector *vector,
                                         pawl_status (*visit)(void *context, const struct pwi_chunk *chunk),
                                         void *context, struct pwi_problem *problem);

/* The same for all vectors of the newest layer at once: every file is read once. */
PAWL_MUST_USE pawl_status pwi_saved_walk_all(const struct pwi_saved *saved,
                                             pawl_status (*visit)(void *context, const struct pwi_chunk *chunk),
                                             void *context, struct pwi_problem *problem);

/* --- exporting ---------------------------------------------------------------------------------------------------- */

/* Writes a vector of the newest layer as checkpoint/array_file.h says. A dense one is one array over its whole span, [size, width].
 * A sparse one is two: its keys, and the rows of these keys; keys rise, but where placement is mixed they come in no order
 * that means anything. Needs 8 bytes of memory for each key of a sparse vector. */
PAWL_MUST_USE pawl_status pwi_saved_export_npy(const struct pwi_saved *saved, const struct pwi_manifest_vector *vector,
                                               struct pwi_file *values, struct pwi_file *keys,
                                               struct pwi_problem *problem);

/* One tensor named as the vector; for a sparse one two, `NAME.keys` and `NAME.values`. */
PAWL_MUST_USE pawl_status pwi_saved_export_safetensors(const struct pwi_saved *saved,
                                                       const struct pwi_manifest_vector *vector, struct pwi_file *file,
                                                       struct pwi_problem *problem);

#endif
