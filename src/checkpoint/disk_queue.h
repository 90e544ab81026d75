/* A disk queue: access to the directory of checkpoints for roles, which must not block.
 *
 * A disk may block for any time, and a role must not. So everything that touches a disk is a *disk job*: a
 * function that the queue runs elsewhere, one job after another in the order of sending. The role polls
 * whether a job is done. In the simulator jobs run at once.
 *
 * The directory of checkpoints is named by a path, and must be the same directory for the manager and all
 * servers: on a shared file system, or on one machine.
 */
#ifndef PWI_CHECKPOINT_DISK_QUEUE_H
#define PWI_CHECKPOINT_DISK_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/files.h"

/* Belongs to the disk queue from being sent until it is done, with everything that `run` touches. */
struct pwi_disk_job {
  void (*run)(struct pwi_disk_job *disk_job);
  struct pwi_disk_job *next; /* used by the disk queue */
  atomic_bool is_done;
};

struct pwi_disk_queue;

struct pwi_disk_queue_ops {
  /* Opens the files below a directory; with `make` the directory is created if it does not exist. Called
   * by disk jobs only. Other users may have files there, so symbolic links in it are not followed, and new
   * files are readable by their owner only. PAWL_FORBIDDEN if checkpoints may not go there; else as
   * pwi_files_posix_open. */
  pawl_status (*open)(struct pwi_disk_queue *disk_queue, const char *directory, bool make,
                      struct pwi_files **files_out);
  void (*close)(struct pwi_disk_queue *disk_queue, struct pwi_files *files);

  void (*send)(struct pwi_disk_queue *disk_queue, struct pwi_disk_job *disk_job);
  void (*settle)(struct pwi_disk_queue *disk_queue);    /* waits until all disk jobs are done */
  int64_t (*wall_s)(struct pwi_disk_queue *disk_queue); /* seconds since 1970, for display */
};

/* Implementations put this first in structs of their own. */
struct pwi_disk_queue {
  const struct pwi_disk_queue_ops *ops;
};

static inline bool pwi_disk_job_is_done(const struct pwi_disk_job *disk_job) {
  return atomic_load_explicit(&disk_job->is_done, memory_order_acquire);
}

/* For implementations: runs the job. */
static inline void pwi_disk_job_do(struct pwi_disk_job *disk_job) {
  disk_job->run(disk_job);
  atomic_store_explicit(&disk_job->is_done, true, memory_order_release);
}

#endif
