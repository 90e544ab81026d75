/* Checkpoints: a cluster's vectors on disk, saved while it works and loaded into a cluster of any size.
 *
 * The *servers* write a checkpoint, and the manager writes its manifest into the same directory. The path
 * must be absolute and must name the same directory for all of them: on a shared file system, or on one
 * machine. *This* program loads a checkpoint: it reads the files and pushes the rows, so that the path need
 * only be valid here.
 *
 * A checkpoint is exact for each server's range of keys: it contains a push completely or not at all. Ranges
 * are saved at different moments. For a snapshot of one moment, save while the workers wait at a barrier.
 *
 * Loading resets every vector: calls that refer to the earlier contents end with PAWL_RESTORED, and the
 * application has to pull again. While loading is in progress, others see the rows loaded so far; let the
 * workers wait.
 */
#ifndef PAWL_CHECKPOINT_H
#define PAWL_CHECKPOINT_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/session.h>
#include <pawl/status.h>
#include <pawl/task.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_CHECKPOINT_NAME_MAX 63

/* Progress of a save or a load. */
struct pawl_checkpoint_progress {
  const char *stage; /* "saving", "verifying", "loading", … */
  uint64_t bytes;    /* written or read so far */
  double part;       /* fraction done, from 0 to 1; 0 if not known while loading */
};

struct pawl_checkpoint_options {
  size_t struct_size;    /* set by pawl_checkpoint_options_init */
  const char *directory; /* directory of checkpoints; NULL when saving: the directory configured at the
                            manager */
  const char *name;      /* NULL: the manager chooses a name for saving, and the newest checkpoint is
                            loaded */
  bool incremental;      /* save only changes since the newest checkpoint in the directory */
  bool compress;
  uint64_t rate;      /* limit for saving, in bytes per second over all servers; 0: none */
  const char *space;  /* load only the vectors of this space; NULL: all */
  bool unverified;    /* load without verifying all files first */
  int64_t timeout_ns; /* PAWL_FOREVER: no limit */
  void (*progress)(void *context, const struct pawl_checkpoint_progress *progress); /* may be NULL */
  void *context;
};

/* Sets everything to 0 or NULL, and the timeout to PAWL_FOREVER. */
PAWL_API void pawl_checkpoint_options_init_sized(struct pawl_checkpoint_options *options, size_t struct_size);
static inline void pawl_checkpoint_options_init(struct pawl_checkpoint_options *options) {
  pawl_checkpoint_options_init_sized(options, sizeof *options);
}

struct pawl_checkpoint_info {
  char name[PAWL_CHECKPOINT_NAME_MAX + 1];
  char base[PAWL_CHECKPOINT_NAME_MAX + 1]; /* the checkpoint that this one is incremental to; "": none */
  uint64_t number;
  uint64_t bytes; /* size of its files; when loading: bytes read */
  uint64_t rows;  /* when loading: rows pushed */
  uint64_t vectors;
};

/* Saves a checkpoint and waits until it is complete. PAWL_EXISTS (another save is in progress, or the name is
 * in use), PAWL_INVALID (name or directory), PAWL_UNSUPPORTED, PAWL_FORBIDDEN (needs a key without limits),
 * PAWL_TIMED_OUT (the save continues), PAWL_CLUSTER_WAITING (some keys have waited for 10 seconds for a server
 * that is down), PAWL_NO_SPACE, PAWL_IO and other disk errors: there is no checkpoint then, and nothing else
 * has changed. `info_out` may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_checkpoint_save(struct pawl_session *session,
                                                        const struct pawl_checkpoint_options *options,
                                                        struct pawl_checkpoint_info *info_out);

/* Creates or resets all vectors of a checkpoint and loads their rows. PAWL_NOT_FOUND, PAWL_CORRUPT,
 * PAWL_TRUNCATED (the checkpoint is damaged; nothing was loaded unless `unverified` is set), PAWL_MISMATCH (a
 * vector exists with other options), PAWL_FORBIDDEN (the key or the session may not write to one of the
 * vectors): no vector was reset in these last two cases. PAWL_RESTORED (another program is loading the same
 * vector), and the errors of a push. After a failure in the middle, load again. */
PAWL_API PAWL_MUST_USE pawl_status pawl_checkpoint_load(struct pawl_session *session,
                                                        const struct pawl_checkpoint_options *options,
                                                        struct pawl_checkpoint_info *info_out);

/* Removes a checkpoint from a directory on this machine. Deletes the files that its manifest lists, and
 * nothing else. Does not follow symbolic links. PAWL_NOT_FOUND; PAWL_EXISTS if the checkpoint contains other
 * files (nothing is changed then); PAWL_CORRUPT and similar if the manifest cannot be read; PAWL_FORBIDDEN,
 * PAWL_IO. No other checkpoint may be based on it. */
PAWL_API PAWL_MUST_USE pawl_status pawl_checkpoint_remove(const char *directory, const char *name);

#ifdef __cplusplus
}
#endif

#endif
