/* Depots (checkpoint/disk_queue.h) on real disks: a thread that does errands, and directories by their paths.
 *
 * Threads: send from one thread; the role that it belongs to.
 */
#ifndef PWI_HOST_DISK_QUEUE_H
#define PWI_HOST_DISK_QUEUE_H

#include "checkpoint/disk_queue.h"

#define PWI_DEPOT_PLACES_MAX 16

/* Directories that checkpoints may go to, with all that is below them. A struct of zeros: anywhere. */
struct pwi_depot_places {
  const char *items[PWI_DEPOT_PLACES_MAX]; /* absolute */
  size_t count;
  bool none; /* nowhere */
};

/* The places' texts are copied. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. The thread begins with the first errand. */
PAWL_MUST_USE pawl_status pwi_host_depot_open(const struct pwi_depot_places *places, struct pwi_depot **depot_out);

/* Waits for errands that are under way. NULL is fine. */
void pwi_host_depot_close(struct pwi_depot *depot);

#endif
