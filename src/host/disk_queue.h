/* Depots (checkpoint/disk_queue.h) on real disks: a thread that does disk jobs, and directories by their paths.
 *
 * Threads: send from one thread; the role that it belongs to.
 */
#ifndef PWI_HOST_DISK_QUEUE_H
#define PWI_HOST_DISK_QUEUE_H

#include "checkpoint/disk_queue.h"

#define PWI_DISK_QUEUE_PLACES_MAX 16

/* Directories that checkpoints may go to, with all that is below them. A struct of zeros: anywhere. */
struct pwi_disk_queue_places {
  const char *items[PWI_DISK_QUEUE_PLACES_MAX]; /* absolute */
  size_t count;
  bool none; /* nowhere */
};

/* The places' texts are copied. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. The thread begins with the first disk job. */
PAWL_MUST_USE pawl_status pwi_host_disk_queue_open(const struct pwi_disk_queue_places *places,
                                                   struct pwi_disk_queue **disk_queue_out);

/* Waits for disk jobs that are under way. NULL is fine. */
void pwi_host_disk_queue_close(struct pwi_disk_queue *disk_queue);

#endif
