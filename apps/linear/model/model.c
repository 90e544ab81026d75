/* Linear models in memory: see <pawl/linear_model.h> and apps/linear/model/model.h. */
#include "apps/linear/model/model.h"

#include <math.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/linear/model/inside.h"

void linear_model_fini(struct pawl_linear_model *model) {
  for (size_t i = 0; model->names && i < model->about.nonzeros; i++) apps_free(model->names[i]);
  apps_free(model->names);
  apps_free(model->ids);
  apps_free(model->weights);
  memset(model, 0, sizeof *model);
}

void pawl_linear_model_destroy(struct pawl_linear_model *model) {
  if (!model) return;
  linear_model_fini(model);
  apps_free(model);
}

void pawl_linear_model_about(const struct pawl_linear_model *model, struct pawl_linear_about *about_out) {
  *about_out = model->about;
}

const uint64_t *pawl_linear_model_ids(const struct pawl_linear_model *model) { return model->ids; }

const double *pawl_linear_model_weights(const struct pawl_linear_model *model) { return model->weights; }

const char *pawl_linear_model_name(const struct pawl_linear_model *model, size_t i) {
  return model->names ? model->names[i] : NULL;
}

/* --- names ---------------------------------------------------------------------------------------------- */

const char *pawl_linear_scale_name(enum pawl_linear_scale scale) {
  static const char *const names[] = {"none", "max", "deviation"};
  return (size_t)scale < sizeof names / sizeof *names ? names[scale] : "";
}

bool linear_scale_find(const char *name, enum pawl_linear_scale *scale_out) {
  for (int i = PAWL_LINEAR_SCALE_NONE; i <= PAWL_LINEAR_SCALE_DEVIATION; i++)
    if (strcmp(name, pawl_linear_scale_name((enum pawl_linear_scale)i)) == 0) {
      *scale_out = (enum pawl_linear_scale)i;
      return true;
    }
  return false;
}

const char *pawl_linear_loss_name(enum pawl_linear_loss loss) {
  const struct linear_loss_descriptor *is = linear_loss_of(loss);
  return is ? is->name : "";
}

/* --- weights -------------------------------------------------------------------------------------------- */

static bool grow(struct pawl_linear_model *model, size_t *room) {
  size_t wanted = *room ? *room * 2 : 1024;
  if (wanted > SIZE_MAX / 2 / sizeof(double)) return false;
  uint64_t *ids = apps_resize(model->ids, wanted * sizeof *ids);
  if (ids) model->ids = ids;
  double *weights = ids ? apps_resize(model->weights, wanted * sizeof *weights) : NULL;
  if (weights) model->weights = weights;
  if (weights) *room = wanted;
  return weights != NULL;
}

pawl_status linear_model_append(struct pawl_linear_model *model, size_t *room, uint64_t id, double weight) {
  if (weight == 0) return PAWL_OK;
  if (model->about.nonzeros == *room && !grow(model, room)) return PAWL_NO_MEMORY;
  model->ids[model->about.nonzeros] = id;
  model->weights[model->about.nonzeros++] = weight;
  return PAWL_OK;
}

static bool is_amount(double number) { return isnan(number) || (number >= 0 && isfinite(number)); }

static bool weights_are_sound(const struct pawl_linear_model *model, char *why) {
  uint64_t least = model->about.zero_based ? 0 : 1;
  for (size_t i = 0; i < model->about.nonzeros; i++) {
    if (model->ids[i] < least || model->ids[i] > model->about.features) {
      apps_say(why, PAWL_CORRUPT, "the ids of the weights are not ascending from %d to %llu",
               model->about.zero_based ? 0 : 1, (unsigned long long)model->about.features);
      return false;
    }
    least = model->ids[i] + 1;
    if (isfinite(model->weights[i])) continue;
    apps_say(why, PAWL_CORRUPT, "the weight of feature %llu is not a finite number", (unsigned long long)model->ids[i]);
    return false;
  }
  return true;
}

bool linear_model_is_sound(const struct pawl_linear_model *model, char *why) {
  const char *what = NULL;
  const double *labels = model->about.labels, *class_weights = model->about.class_weights;
  if (!linear_loss_of(model->about.loss))
    what = "unknown loss";
  else if (!model->about.is_regression && !(isfinite(labels[0]) && isfinite(labels[1]) && labels[0] != labels[1]))
    what = "the labels are not two different numbers";
  else if (!is_amount(model->about.l1) || !is_amount(model->about.l2))
    what = "a penalty is negative or not a number";
  else if (!(class_weights[0] >= 0 && class_weights[1] >= 0 && isfinite(class_weights[0] + class_weights[1])))
    what = "a class weight is negative or not a number";
  else if (model->about.has_bias && !isfinite(model->about.bias))
    what = "the bias is not a finite number";
  else if (model->about.features > PAWL_ID_MAX || model->about.nonzeros > pawl_linear_width(&model->about))
    what = "the model has more weights than features, or too many features";
  if (!what) return weights_are_sound(model, why);
  apps_say(why, PAWL_CORRUPT, "%s", what);
  return false;
}
