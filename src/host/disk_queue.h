/* Disk queues (checkpoint/disk_queue.h) on real disks: a thread that runs disk jobs. Directories are named
 * by their paths.
 *
 * Threads: only the thread of the owning role may send.
 */
#ifndef PWI_HOST_DISK_QUEUE_H
#define PWI_HOST_DISK_QUEUE_H

#include "checkpoint/disk_queue.h"

#define PWI_DISK_QUEUE_PLACES_MAX 16

/* Directories that checkpoints may be written to, including everything below them. A struct of zeros:
 * anywhere. */
struct pwi_disk_queue_places {
  const char *items[PWI_DISK_QUEUE_PLACES_MAX]; /* absolute */
  size_t count;
  bool none; /* checkpoints may not be written at all */
};

/* Copies the paths. The thread starts with the first disk job. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_host_disk_queue_open(const struct pwi_disk_queue_places *places,
                                                   struct pwi_disk_queue **disk_queue_out);

/* Waits for disk jobs that are under way. NULL is fine. */
void pwi_host_disk_queue_close(struct pwi_disk_queue *disk_queue);

#endif
