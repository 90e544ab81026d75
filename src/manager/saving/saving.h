/* A checkpoint that the manager has under way: the state that its files share.
 *
 *   manager/saving/save.c    the phases of a checkpoint, asks for one, and its status
 *   manager/saving/orders.c  orders to servers, and their reports
 *   manager/saving/jobs.c    access to the disk
 */
#ifndef PWI_MANAGER_SAVING_SAVING_H
#define PWI_MANAGER_SAVING_SAVING_H

#include "checkpoint/disk_queue.h"
#include "manager/inside.h"
#include "checkpoint/checkpoint.h"

/* An order to one node that is under way. */
struct save_order {
  uint64_t id;
  uint64_t node;
  struct pwi_link link; /* when this link goes down, the order ends */
  char file[PWI_CHECKPOINT_NAME_MAX + 1];
  struct pwi_save_arc *arcs;
  size_t arc_count;
  uint64_t bytes;
};

enum save_phase { PHASE_PREPARING, PHASE_SAVING, PHASE_WRITING, PHASE_SWEEPING };

struct pwi_checkpointing {
  struct pwi_manager *manager;
  enum save_phase phase;
  struct pwi_disk_job disk_job; /* under way in every phase except SAVING */
  char directory[PWI_SAVE_PATH_MAX + 1];
  bool is_incremental, is_packed, is_periodic;
  uint64_t rate;        /* bytes per second of all servers; 0: no limit */
  uint64_t node_rate;   /* bytes per second of each node; 0: no limit */
  uint32_t keep;        /* periodic checkpoints that are kept; 0: all */
  struct pwi_link link; /* the link that asked */
  uint64_t task;        /* number of the ask, until it is answered; then 0 */
  uint64_t asker, ask;  /* sender for which the ask is remembered, and number of the ask; 0: not asked by a
                           client */

  uint64_t salt;                     /* random */
  char folder[PWI_SAVE_FOLDER_SIZE]; /* folder of the files until the checkpoint is complete; "": not created
                                        yet */
  struct pwi_manifest manifest;      /* as far as it is known */
  struct pwi_manifest base;          /* manifest of the base; empty: none */
  uint64_t epoch;                    /* of the view that the base was last compared with */
  struct pwi_rangeset covered;       /* positions in finished files */
  struct save_order *orders;
  size_t order_count, file_count;
  bool has_begun; /* all nodes have got an order */
  uint64_t bytes; /* of finished files */
  int64_t moved;  /* time of the last progress */

  pawl_status status; /* of the disk job; at the end, of the checkpoint */
  char why[256];      /* message of the first failure */
};

/* manager/saving/save.c */

/* Ends the checkpoint with an error. The first failure counts. The message is "WHO NODE: …", or "WHO: …" if
 * `node` is 0. */
void pwi_saving_fail(struct pwi_checkpointing *saving, pawl_status status, const char *who, uint64_t node);

/* manager/saving/orders.c */

/* True if an operator has given up arcs of the base since it was saved, so that these arcs started empty.
 * Such a checkpoint cannot be a base: the versions of these arcs started again too, so they do not show what
 * has changed, and lost rows would reappear. */
bool pwi_saving_base_is_lost(struct pwi_checkpointing *saving);

/* Orders the present heads to save all positions that are neither in a file nor in an order. Error:
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_saving_order_all(struct pwi_checkpointing *saving);
void pwi_saving_look_at_orders(struct pwi_checkpointing *saving); /* drops orders whose link is down */
void pwi_saving_cancel_orders(struct pwi_checkpointing *saving);
void pwi_saving_orders_fini(struct pwi_checkpointing *saving); /* frees orders without cancelling them */

/* manager/saving/jobs.c: not run in the manager's thread. The result is `status` of the checkpoint. */
void pwi_saving_prepare(struct pwi_disk_job *disk_job); /* chooses number, name and base; creates the
                                                           folder */
void pwi_saving_write(struct pwi_disk_job *disk_job);   /* writes the manifest; gives the folder its name */
void pwi_saving_sweep(struct pwi_disk_job *disk_job);   /* deletes the folder after a failure */

#endif
