/* A checkpoint that the manager has under way: what its files share.
 *
 *   manager/saving/save.c          from step to step: beginning, ending, what people are told
 *   manager/saving/orders.c   orders to servers, and what they say
 *   manager/saving/jobs.c  whatever touches the disk
 */
#ifndef PWI_MANAGER_SAVING_SAVING_H
#define PWI_MANAGER_SAVING_SAVING_H

#include "checkpoint/disk_queue.h"
#include "manager/inside.h"
#include "checkpoint/checkpoint.h"

/* Of a node, under way. */
struct save_order {
  uint64_t id;
  uint64_t node;
  struct pwi_link link; /* gone: so is the order */
  char file[PWI_CHECKPOINT_NAME_MAX + 1];
  struct pwi_save_arc *arcs;
  size_t arc_count;
  uint64_t bytes;
};

enum save_phase { PHASE_PREPARING, PHASE_SAVING, PHASE_WRITING, PHASE_SWEEPING };

struct pwi_checkpointing {
  struct pwi_manager *manager;
  enum save_phase phase;
  struct pwi_disk_job disk_job; /* under way unless SAVING */
  char directory[PWI_SAVE_PATH_MAX + 1];
  bool is_incremental, is_packed, is_periodic;
  uint64_t rate, node_rate;
  uint32_t keep;
  struct pwi_link link; /* who asked; and */
  uint64_t task;        /* 0: has been told */
  uint64_t asker, ask;  /* the sender that the ask is remembered for, and its number; 0: nobody asked */

  uint64_t salt;                     /* random */
  char folder[PWI_SAVE_FOLDER_SIZE]; /* where it is written until it is whole; "": not made yet */
  struct pwi_manifest manifest;      /* as far as it is known */
  struct pwi_manifest base;
  uint64_t epoch; /* of the view that the base was held against */
  struct pwi_rangeset covered;
  struct save_order *orders;
  size_t order_count, file_count;
  bool has_begun; /* all nodes have been told */
  uint64_t bytes; /* of files that are finished */
  int64_t moved;  /* when there was progress last */

  pawl_status status; /* of the disk job, and in the end of all */
  char why[256];
};

/* manager/saving/save.c */
/* The first failure counts. Said is "WHO NODE: …", or without a node "WHO: …". */
void pwi_saving_fail(struct pwi_checkpointing *saving, pawl_status status, const char *who, uint64_t node);

/* manager/saving/orders.c */
/* Some of what the base holds was given up since by an operator, and began anew. Then it is a base no more: versions began
 * anew as well, so they do not tell what has changed since, and what is gone would be there again. */
bool pwi_saving_base_is_lost(struct pwi_checkpointing *saving);

/* Orders whatever is neither in a file nor on its way into one from those who are the heads now. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_saving_order_all(struct pwi_checkpointing *saving);
void pwi_saving_look_at_orders(struct pwi_checkpointing *saving); /* those of nodes that are gone are no more */
void pwi_saving_cancel_orders(struct pwi_checkpointing *saving);
void pwi_saving_orders_fini(struct pwi_checkpointing *saving); /* tells nobody */

/* manager/saving/jobs.c: not run in the manager's thread. How it went is in the checkpoint's `status`. */
void pwi_saving_prepare(struct pwi_disk_job *disk_job); /* number, name, base, folder */
void pwi_saving_write(struct pwi_disk_job *disk_job);   /* the manifest, and the name */
void pwi_saving_sweep(struct pwi_disk_job *disk_job);   /* the folder, after a failure */

#endif
