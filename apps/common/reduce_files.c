#include "apps/common/reduce_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <xxhash.h>

#include <pawl/peer.h>

#include "apps/common/errors.h"
#include "apps/common/json.h"
#include "apps/common/reduce.h"

#define OPEN_NS (60 * PAWL_SECOND)

/* --- parts ------------------------------------------------------------------------------------------------ */

void apps_reduce_part_add(struct apps_reduce_part *sum, const struct apps_reduce_part *part) {
  sum->files += part->files;
  sum->sum += part->sum;
  if (part->iteration > sum->iteration) sum->iteration = part->iteration;
  if (!*sum->problem) memcpy(sum->problem, part->problem, sizeof sum->problem);
}

/* A problem may contain the name of a folder, which need not be UTF-8. */
json_t *apps_reduce_part_write(const struct apps_reduce_part *part) {
  json_t *problem = json_string(part->problem);
  return json_pack("{s:o, s:o, s:o, s:o}", "files", apps_json_wide(part->files), "iteration",
                   apps_json_wide(part->iteration), "sum", apps_json_wide(part->sum), "problem",
                   problem ? problem : json_string("a file in the folder of checkpoints has a name that is not UTF-8"));
}

bool apps_reduce_part_read(const json_t *object, struct apps_reduce_part *part_out) {
  struct apps_reduce_part part = {0};
  const char *problem = json_string_value(json_object_get(object, "problem"));
  if (!apps_json_wide_of(json_object_get(object, "files"), &part.files) ||
      !apps_json_wide_of(json_object_get(object, "iteration"), &part.iteration) ||
      !apps_json_wide_of(json_object_get(object, "sum"), &part.sum) || !problem)
    return false;
  snprintf(part.problem, sizeof part.problem, "%s", problem);
  *part_out = part;
  return true;
}

/* --- the worker ------------------------------------------------------------------------------------------- */

static void fill_part(struct apps_reduce_part *part, uint32_t rank, uint64_t iteration,
                      const struct pawl_tensor *tensors, size_t count) {
  uint64_t sum = XXH3_64bits_withSeed(&rank, sizeof rank, iteration);
  for (size_t i = 0; i < count; i++) {
    size_t width = tensors[i].type == PAWL_F32 ? sizeof(float) : sizeof(double);
    if (tensors[i].count > 0) sum = XXH3_64bits_withSeed(tensors[i].values, tensors[i].count * width, sum);
  }
  *part = (struct apps_reduce_part){.files = 1, .iteration = iteration, .sum = sum};
}

static bool name_file(const struct apps_reduce_place *place, uint32_t rank, char path[APPS_FOLDER_MAX + 128]) {
  int length = snprintf(path, APPS_FOLDER_MAX + 128, "%s/%s.%u.%u", place->folder, place->job, (unsigned)rank,
                        (unsigned)place->turn);
  return length > 0 && length < APPS_FOLDER_MAX + 128;
}

/* A reduce that makes no step: only its file is of use. */
static pawl_status open_idle(struct pawl_worker *worker, const struct apps_reduce_place *place,
                             const struct pawl_tensor *tensors, size_t count, struct pawl_reduce **reduce_out) {
  char name[PAWL_REDUCE_NAME_MAX + 1];
  struct pawl_reduce_options options;
  pawl_reduce_options_init(&options);
  options.first = place->iteration;
  options.graph = "complete";
  snprintf(name, sizeof name, "files.%llu", (unsigned long long)place->serial);
  return pawl_reduce_open(pawl_worker_peers(worker), name, tensors, count, &options, OPEN_NS, reduce_out);
}

pawl_status apps_reduce_save(struct pawl_worker *worker, const struct apps_reduce_place *place,
                             const struct pawl_tensor *tensors, size_t count, uint64_t made,
                             struct apps_reduce_part *part_out) {
  char path[APPS_FOLDER_MAX + 128];
  struct pawl_reduce *reduce = NULL;
  uint32_t rank = pawl_worker_rank(worker);
  *part_out = (struct apps_reduce_part){0};
  if (made != place->iteration) return PAWL_OK;
  if (!name_file(place, rank, path)) return PAWL_TOO_LARGE;
  mkdir(place->folder, 0700); /* saving reports a failure */
  pawl_status status = open_idle(worker, place, tensors, count, &reduce);
  if (status) return status;
  status = pawl_reduce_save(reduce, path);
  if (status) snprintf(part_out->problem, sizeof part_out->problem, "%.500s", apps_error_text(status));
  apps_reduce_close(&reduce);
  if (status) return status == PAWL_NO_MEMORY ? status : PAWL_OK;
  fill_part(part_out, rank, place->iteration, tensors, count);
  return PAWL_OK;
}

static pawl_status judge_file(struct pawl_worker *worker, pawl_status status, const char *path, uint64_t found,
                              uint64_t iteration, struct apps_reduce_part *part) {
  if (status == PAWL_NOT_FOUND)
    (void)apps_say(part->problem, status, "there is no file %.400s", path);
  else if (!status && found != iteration)
    (void)apps_say(part->problem, status, "%.350s is of step %llu instead of %llu", path, (unsigned long long)found,
                   (unsigned long long)iteration);
  else if (status)
    pawl_worker_say(worker, "%s", apps_error_text(status));
  return status == PAWL_NOT_FOUND ? PAWL_OK : status;
}

pawl_status apps_reduce_load(struct pawl_worker *worker, const struct apps_reduce_place *place,
                             const struct pawl_tensor *tensors, size_t count, struct apps_reduce_part *part_out) {
  char path[APPS_FOLDER_MAX + 128];
  struct pawl_reduce *reduce = NULL;
  uint64_t found = 0;
  uint32_t rank = pawl_worker_rank(worker);
  *part_out = (struct apps_reduce_part){0};
  if (!name_file(place, rank, path)) return PAWL_TOO_LARGE;
  pawl_status status = open_idle(worker, place, tensors, count, &reduce);
  if (status) return status;
  status = pawl_reduce_load(reduce, path, &found);
  status = judge_file(worker, status, path, found, place->iteration, part_out);
  apps_reduce_close(&reduce);
  if (status || *part_out->problem) return status;
  fill_part(part_out, rank, place->iteration, tensors, count);
  return PAWL_OK;
}

/* --- the scheduler ---------------------------------------------------------------------------------------- */

json_t *apps_reduce_saved_write(const struct apps_reduce_saved *saved) {
  return json_pack("{s:i, s:o, s:o}", "turn", (int)saved->turn, "workers", apps_json_wide(saved->workers), "part",
                   apps_reduce_part_write(&saved->part));
}

bool apps_reduce_saved_read(const json_t *object, struct apps_reduce_saved *saved_out) {
  const json_t *turn = json_object_get(object, "turn");
  struct apps_reduce_saved saved = {0};
  if (!json_is_integer(turn) || json_integer_value(turn) < 0 || json_integer_value(turn) > 1 ||
      !apps_json_wide_of(json_object_get(object, "workers"), &saved.workers) ||
      !apps_reduce_part_read(json_object_get(object, "part"), &saved.part) || saved.part.files != saved.workers)
    return false;
  saved.turn = (uint32_t)json_integer_value(turn);
  *saved_out = saved;
  return true;
}

bool apps_reduce_is_saved(struct apps_run *run, const struct apps_reduce_part *sum, uint64_t workers,
                          uint64_t iteration, struct apps_reduce_saved *saved, char *unsaved) {
  if (sum->files == workers && workers > 0 && sum->iteration == iteration) {
    *saved = (struct apps_reduce_saved){.turn = 1 - saved->turn, .workers = workers, .part = *sum};
    return true;
  }
  if (*sum->problem)
    (void)apps_say(unsaved, PAWL_IO, "no checkpoint was written: %s", sum->problem);
  else
    apps_tell(run, "no checkpoint was written: a worker was lost, or is behind the others");
  return false;
}

pawl_status apps_reduce_is_loaded(struct apps_run *run, const struct apps_reduce_part *sum, uint64_t workers,
                                  const struct apps_reduce_saved *saved, const char *folder) {
  if (sum->files == 0)
    return apps_fail(run, PAWL_NOT_FOUND, "no worker can resume from %s: %s; to start over, omit --resume", folder,
                     *sum->problem ? sum->problem : "all workers were lost");
  if (sum->files == saved->workers && sum->sum != saved->part.sum)
    return apps_fail(run, PAWL_MISMATCH,
                     "the files of the workers in %s are not those of this checkpoint; restore them, or to start over, "
                     "omit --resume",
                     folder);
  if (sum->files < workers || workers != saved->workers)
    apps_tell(run, "%llu of %llu workers continue from their own files; the checkpoint is of %llu workers%s%s%s",
              (unsigned long long)sum->files, (unsigned long long)workers, (unsigned long long)saved->workers,
              sum->files < workers ? "; the others take over the parameters of a neighbour" : "",
              *sum->problem ? ": " : "", sum->problem);
  return PAWL_OK;
}
