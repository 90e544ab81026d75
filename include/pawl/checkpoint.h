/* Checkpoints: a cluster's vectors on disk, saved while it works and loaded into a cluster of any size.
 *
 * The *servers* write a checkpoint, and the manager puts its manifest beside it: the directory is a path that all of them
 * see as the same one, absolute, on a shared file system or on one machine. Loading is done by *this* program, which reads
 * the files and pushes them: the path is its own.
 *
 * A cut is exact for each server's range of keys: it holds a push wholly or not at all. Ranges are cut at different moments;
 * who needs one moment for all saves while the workers stand at a barrier.
 *
 * Loading begins every vector anew: calls that were meant for what it held before end with PAWL_RESTORED, and the application
 * pulls anew. While loading goes on others see what has come so far: let your workers wait.
 */
#ifndef PAWL_CHECKPOINT_H
#define PAWL_CHECKPOINT_H

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

/* How far it is. */
struct pawl_checkpoint_progress {
  const char *stage; /* "saving", "verifying", "loading", … */
  uint64_t bytes;    /* so far */
  double part;       /* of the whole, from 0 to 1; loading: 0 if it is not known */
};

struct pawl_checkpoint_options {
  const char *directory; /* of checkpoints; saving: NULL for the manager's own */
  const char *name;      /* NULL: saving, the manager chooses one; loading, the newest */
  bool incremental;      /* save only what changed since the newest one in the directory */
  bool compress;
  uint64_t rate;      /* save at most so many bytes a second, all servers together; 0: no limit */
  const char *space;  /* load the vectors of this space alone; NULL: all */
  bool unverified;    /* load without reading everything once before */
  int64_t timeout_ns; /* PAWL_FOREVER: as long as it takes */
  void (*progress)(void *context, const struct pawl_checkpoint_progress *progress); /* NULL: nobody wants to know */
  void *context;
};

/* Everything 0 or NULL but the time-out, which is PAWL_FOREVER. */
PAWL_API void pawl_checkpoint_options_init(struct pawl_checkpoint_options *options);

struct pawl_checkpoint_info {
  char name[PAWL_CHECKPOINT_NAME_MAX + 1];
  char base[PAWL_CHECKPOINT_NAME_MAX + 1]; /* "": it stands alone */
  uint64_t number;
  uint64_t bytes; /* of its files; loading: that were read */
  uint64_t rows;  /* loading: that were pushed */
  uint64_t vectors;
};

/* Saves, and waits for the end. PAWL_EXISTS (one is under way, or has this name), PAWL_INVALID (name or directory),
 * PAWL_UNSUPPORTED, PAWL_FORBIDDEN (needs a key without limits), PAWL_TIMED_OUT (it goes on), PAWL_CLUSTER_WAITING (some keys
 * have waited for a server that is down for 10 seconds), PAWL_NO_SPACE, PAWL_IO and what else a disk may say: then there is no checkpoint, and nothing else has happened. `info_out` may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_checkpoint_save(struct pawl_session *session,
                                                        const struct pawl_checkpoint_options *options,
                                                        struct pawl_checkpoint_info *info_out);

/* Makes, or begins anew, all vectors of a checkpoint, and loads their rows. PAWL_NOT_FOUND, PAWL_CORRUPT, PAWL_TRUNCATED (it
 * is damaged, and nothing was loaded unless `unverified`), PAWL_MISMATCH (a vector exists with other options) or
 * PAWL_FORBIDDEN (the key or the session may not write to one of them), and then none has begun anew; PAWL_RESTORED (somebody
 * else is loading it as well), or as a push. After a failure half-way load again. */
PAWL_API PAWL_MUST_USE pawl_status pawl_checkpoint_load(struct pawl_session *session,
                                                        const struct pawl_checkpoint_options *options,
                                                        struct pawl_checkpoint_info *info_out);

/* Removes a checkpoint from a directory of this machine: those files that its manifest lists, and nothing else. Symbolic links
 * are not followed. PAWL_NOT_FOUND; PAWL_EXISTS if other files are in it (nothing has been changed then); PAWL_CORRUPT and
 * the like if the manifest cannot be read; PAWL_FORBIDDEN, PAWL_IO. No checkpoint may be based on it. */
PAWL_API PAWL_MUST_USE pawl_status pawl_checkpoint_remove(const char *directory, const char *name);

#ifdef __cplusplus
}
#endif

#endif
