/* Checkpoints of a training by workers that average (apps/common/reduce.h).
 *
 * Each worker saves its parameters and the number of its steps to a file of its own, FOLDER/JOB.RANK.TURN, with
 * pawl_reduce_save. When all have done so, the scheduler replaces its own file, which names the turn. The turn is 0 or
 * 1: a checkpoint is written beside the files of the last complete one. So a job can be killed at any time, and all its
 * workers resume at the same step. No file is ever removed, and a file that is not a checkpoint of a reduce is never
 * replaced.
 *
 * A *part* says what a worker has saved or loaded, and sums of parts what all of them have. The scheduler's file has
 * that sum, by which it recognises files of another run. A worker whose file is missing, or has another step, loads
 * nothing: in its first step it takes over the parameters of another worker.
 */
#ifndef APPS_COMMON_REDUCE_FILES_H
#define APPS_COMMON_REDUCE_FILES_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <pawl/job.h>
#include <pawl/reduce.h>

#include "apps/common/model_file.h"
#include "apps/common/run.h"

#define APPS_FOLDER_MAX 4096

struct apps_reduce_part {
  uint64_t files;              /* that were written or read */
  uint64_t iteration;          /* steps; of a sum the highest */
  uint64_t sum;                /* hashes of rank, steps and values */
  char problem[APPS_TEXT_MAX]; /* why a worker has no file; of a sum the first; "": none */
};

void apps_reduce_part_add(struct apps_reduce_part *sum, const struct apps_reduce_part *part);

/* NULL: out of memory. Reading returns false if it is not a part. */
json_t *apps_reduce_part_write(const struct apps_reduce_part *part);
bool apps_reduce_part_read(const json_t *object, struct apps_reduce_part *part_out);

/* --- the worker ------------------------------------------------------------------------------------------- */

/* Where a worker saves and loads. */
struct apps_reduce_place {
  const char *folder, *job;
  uint32_t turn;
  uint64_t serial;    /* of the round: part of the name of a reduce */
  uint64_t iteration; /* steps of the checkpoint */
};

/* Saves the tensors, which have made `made` steps. A file that cannot be written is a problem of the part. Tensors that have made
 * another number of steps than the checkpoint should have are not saved. */
pawl_status apps_reduce_save(struct pawl_worker *worker, const struct apps_reduce_place *place,
                             const struct pawl_tensor *tensors, size_t count, uint64_t made,
                             struct apps_reduce_part *part_out);

/* Loads tensors that have made the steps of the checkpoint. A file that is missing or has another step is a problem of the part;
 * the tensors may have changed. A file that is damaged, of another format or for other tensors is a failure, whose reason
 * the worker has said. */
pawl_status apps_reduce_load(struct pawl_worker *worker, const struct apps_reduce_place *place,
                             const struct pawl_tensor *tensors, size_t count, struct apps_reduce_part *part_out);

/* --- the scheduler ---------------------------------------------------------------------------------------- */

/* The newest complete checkpoint. */
struct apps_reduce_saved {
  uint32_t turn;
  uint64_t workers;
  struct apps_reduce_part part; /* sum of all workers; no problem */
};

json_t *apps_reduce_saved_write(const struct apps_reduce_saved *saved);
bool apps_reduce_saved_read(const json_t *object, struct apps_reduce_saved *saved_out);

/* Whether all workers have saved a step. If so, *saved becomes that checkpoint, of the other turn. If a file could not be
 * written, `unsaved`, of APPS_TEXT_MAX bytes, says why. If a worker was lost, the user is told: the next checkpoint will do. */
bool apps_reduce_is_saved(struct apps_run *run, const struct apps_reduce_part *sum, uint64_t workers,
                          uint64_t iteration, struct apps_reduce_saved *saved, char *unsaved);

/* Judges what workers have loaded, and tells the user if some of them have no file. PAWL_NOT_FOUND: no worker has one.
 * PAWL_MISMATCH: they are not the files of this checkpoint. */
pawl_status apps_reduce_is_loaded(struct apps_run *run, const struct apps_reduce_part *sum, uint64_t workers,
                                  const struct apps_reduce_saved *saved, const char *folder);

#endif
