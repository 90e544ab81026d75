/* A depot: where checkpoints are kept, and somebody who carries things there.
 *
 * Disks may block for as long as they like, and a role must not. So what touches a disk is an *errand*: a function that is
 * run elsewhere, one errand after another in the order in which they were sent; the role looks now and then whether it is
 * done. In the simulator errands are run at once.
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

/* It belongs to the depot from being sent until it is done, and so does what `run` touches. */
struct pwi_errand {
  void (*run)(struct pwi_errand *errand);
  struct pwi_errand *next; /* the depot's */
  atomic_bool is_done;
};

struct pwi_depot;

struct pwi_depot_ops {
  /* From errands only: the files below a directory, which with `make` is made if it is not there. Others may have files there
   * as well: no symbolic link in it is followed, and what is new can be read by its owner only. PAWL_FORBIDDEN if checkpoints
   * may not go there; else as pwi_files_posix_open. */
  pawl_status (*open)(struct pwi_depot *depot, const char *directory, bool make, struct pwi_files **files_out);
  void (*close)(struct pwi_depot *depot, struct pwi_files *files);

  void (*send)(struct pwi_depot *depot, struct pwi_errand *errand);
  void (*settle)(struct pwi_depot *depot);    /* waits until all errands are done */
  int64_t (*wall_s)(struct pwi_depot *depot); /* seconds since 1970, for people */
};

/* Implementations put this first in structs of their own. */
struct pwi_depot {
  const struct pwi_depot_ops *ops;
};

static inline bool pwi_errand_is_done(const struct pwi_errand *errand) {
  return atomic_load_explicit(&errand->is_done, memory_order_acquire);
}

/* For depots: does it. */
static inline void pwi_errand_do(struct pwi_errand *errand) {
  errand->run(errand);
  atomic_store_explicit(&errand->is_done, true, memory_order_release);
}

#endif
