/* A disk queue: where checkpoints are kept, and somebody who carries things there.
 *
 * Disks may block for as long as they like, and a role must not. So what touches a disk is a *disk job*: a function that is
 * run elsewhere, one disk job after another in the order in which they were sent; the role looks now and then whether it is
 * done. In the simulator disk jobs are run at once.
 *
 * The directory of checkpoints is named by a path, and must be the same one for the manager and all servers: a shared file
 * system, or one machine.
 */
#ifndef PWI_CHECKPOINT_DISK_QUEUE_H
#define PWI_CHECKPOINT_DISK_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/files.h"

/* It belongs to the disk queue from being sent until it is done, and so does what `run` touches. */
struct pwi_disk_job {
  void (*run)(struct pwi_disk_job *disk_job);
  struct pwi_disk_job *next; /* the disk queue's */
  atomic_bool is_done;
};

struct pwi_disk_queue;

struct pwi_disk_queue_ops {
  /* From disk jobs only: the files below a directory, which with `make` is made if it is not there. Others may have files there
   * as well: no symbolic link in it is followed, and what is new can be read by its owner only. PAWL_FORBIDDEN if checkpoints
   * may not go there; else as pwi_files_posix_open. */
  pawl_status (*open)(struct pwi_disk_queue *disk_queue, const char *directory, bool make,
                      struct pwi_files **files_out);
  void (*close)(struct pwi_disk_queue *disk_queue, struct pwi_files *files);

  void (*send)(struct pwi_disk_queue *disk_queue, struct pwi_disk_job *disk_job);
  void (*settle)(struct pwi_disk_queue *disk_queue);    /* waits until all disk jobs are done */
  int64_t (*wall_s)(struct pwi_disk_queue *disk_queue); /* seconds since 1970, for people */
};

/* Implementations put this first in structs of their own. */
struct pwi_disk_queue {
  const struct pwi_disk_queue_ops *ops;
};

static inline bool pwi_disk_job_is_done(const struct pwi_disk_job *disk_job) {
  return atomic_load_explicit(&disk_job->is_done, memory_order_acquire);
}

/* For depots: does it. */
static inline void pwi_disk_job_do(struct pwi_disk_job *disk_job) {
  disk_job->run(disk_job);
  atomic_store_explicit(&disk_job->is_done, true, memory_order_release);
}

#endif
