/* The scheduler's file of a checkpoint: how far the training is, and the options and images that must be the same when it
 * resumes. The parameters are in files of the workers (apps/common/reduce_files.h). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "apps/cnn/share/inside.h"
#include "apps/common/json.h"
#include "apps/common/resume.h"

static bool path_of(const struct cnn_share_spec *spec, char path[APPS_FOLDER_MAX + 128]) {
  int length = snprintf(path, APPS_FOLDER_MAX + 128, "%s/%s.json", spec->folder, spec->job);
  return length > 0 && length < APPS_FOLDER_MAX + 128;
}

/* --- terms ------------------------------------------------------------------------------------------------ */

static void add_images(json_t *terms, const struct cnn_run *run) {
  const struct pawl_cnn_about *about = &run->model->about;
  size_t pixels = (size_t)about->channels * about->height * about->width * run->plan.images;
  uint64_t sum = XXH3_64bits(pawl_images_labels(run->images), run->plan.images);
  sum = XXH3_64bits_withSeed(pawl_images_pixels(run->images), pixels, sum);
  apps_term(terms, "the set of images", "%llu of %u x %u x %u in %u classes, with the hash %016llx",
            (unsigned long long)run->plan.images, (unsigned)about->channels, (unsigned)about->height,
            (unsigned)about->width, (unsigned)about->classes, (unsigned long long)sum);
}

static json_t *make_terms(const struct cnn_run *run, const struct cnn_share_spec *spec) {
  static const char *const modes[] = {
      [PAWL_REDUCE_NOTIFY_ACK] = "notify-ack", [PAWL_REDUCE_BSP] = "bsp", [PAWL_REDUCE_ASYNC] = "async"};
  const struct cnn_plan *plan = &run->plan;
  json_t *terms = json_object();
  apps_term(terms, "--model", "%s", run->model->about.net);
  apps_term(terms, "--epochs", "%llu", (unsigned long long)plan->epochs);
  apps_term(terms, "--batch", "%llu", (unsigned long long)plan->batch);
  apps_term(terms, "--rate", "%.12g", plan->rate);
  apps_term(terms, "--schedule", "%s", plan->schedule == PAWL_CNN_COSINE ? "cosine" : "constant");
  apps_term(terms, "--momentum", "%.12g", plan->momentum);
  apps_term(terms, "--decay", "%.12g", plan->decay);
  apps_term(terms, "--seed", "%llu", (unsigned long long)plan->seed);
  apps_term(terms, "--graph", "%s", spec->graph);
  apps_term(terms, "--mode", "%s", modes[spec->mode]);
  apps_term(terms, "--average", "%s", spec->means_gradients ? "gradients" : "models");
  add_images(terms, run);
  return terms;
}

/* --- writing ---------------------------------------------------------------------------------------------- */

pawl_status cnn_state_write(const struct cnn_run *run, const struct cnn_share_spec *spec,
                            const struct apps_reduce_saved *saved, char *error) {
  char path[APPS_FOLDER_MAX + 128];
  if (!path_of(spec, path)) return apps_say(error, PAWL_TOO_LARGE, "the name of the folder is too long");
  json_t *object = json_pack("{s:o, s:o, s:[o, o, o], s:o, s:o, s:o}", "terms", make_terms(run, spec), "step",
                             apps_json_wide(run->result.steps), "epoch", apps_json_number(run->epoch.loss),
                             apps_json_wide(run->epoch.wrong), apps_json_wide(run->epoch.done), "test_error",
                             apps_json_number(run->progress.test_error), "loss", apps_json_number(run->progress.loss),
                             "reduce", apps_reduce_saved_write(saved));
  return apps_state_write(path, object, error);
}

/* --- reading ---------------------------------------------------------------------------------------------- */

/* The epoch that is under way, or the summary, uses the figures that are read. */
static bool take(struct cnn_run *run, json_t *object, struct apps_reduce_saved *saved) {
  json_t *step, *loss, *wrong, *done, *test_error, *last, *reduce;
  struct cnn_tally epoch;
  uint64_t steps;
  if (json_unpack(object, "{s:o, s:[o, o, o], s:o, s:o, s:o}", "step", &step, "epoch", &loss, &wrong, &done,
                  "test_error", &test_error, "loss", &last, "reduce", &reduce) ||
      !apps_json_wide_of(step, &steps) || !apps_json_wide_of(wrong, &epoch.wrong) ||
      !apps_json_wide_of(done, &epoch.done) || !apps_reduce_saved_read(reduce, saved) ||
      saved->part.iteration != steps || steps == 0 || steps >= cnn_plan_steps(&run->plan))
    return false;
  epoch.loss = apps_json_number_of(loss);
  run->epoch = epoch;
  run->result.steps = run->result.resumed = steps;
  run->result.epochs = run->progress.epoch = steps / cnn_plan_epoch(&run->plan);
  run->progress.test_error = apps_json_number_of(test_error);
  run->progress.loss = apps_json_number_of(last);
  return true;
}

static pawl_status check(struct cnn_run *run, const struct cnn_share_spec *spec, const char *path, json_t *object) {
  char text[APPS_RESUME_TEXT];
  json_t *now = make_terms(run, spec);
  bool is_same = now && apps_terms_same(json_object_get(object, "terms"), now, text);
  json_decref(now);
  if (!now) return apps_say(run->error, PAWL_NO_MEMORY, "out of memory");
  return is_same
             ? PAWL_OK
             : apps_say(run->error, PAWL_MISMATCH,
                        "the checkpoint at %.150s is of another run: %.250s; give the same options and images, or to "
                        "start over, omit --resume",
                        path, text);
}

pawl_status cnn_state_read(struct cnn_run *run, const struct cnn_share_spec *spec,
                           struct apps_reduce_saved *saved_out) {
  char path[APPS_FOLDER_MAX + 128];
  json_error_t problem;
  if (!path_of(spec, path)) return apps_say(run->error, PAWL_TOO_LARGE, "the name of the folder is too long");
  json_t *object = json_load_file(path, 0, &problem);
  if (!object && access(path, F_OK))
    return apps_say(run->error, PAWL_NOT_FOUND, "there is no checkpoint at %.300s; to start over, omit --resume", path);
  if (!object) return apps_say(run->error, PAWL_CORRUPT, "%.200s:%d: %.100s", path, problem.line, problem.text);
  pawl_status status = check(run, spec, path, object);
  if (!status && !take(run, object, saved_out))
    status = apps_say(run->error, PAWL_CORRUPT, "cannot resume from %.300s: it is damaged", path);
  json_decref(object);
  return status;
}
