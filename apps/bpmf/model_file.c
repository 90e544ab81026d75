/* Files of models. Behind the header (apps/common/model_arrays.h) are
 *
 *   samples     float32: for each sample the rows of all users, then those of all items
 *   users       ids, each with a 0 behind it
 *   items       the same
 *   counts      u32: how many items each user has rated
 *   rated       u32: the items of each user, in ascending order
 */
#include <math.h>

#include <pawl/version.h>

#include "apps/common/model_arrays.h"
#include "apps/bpmf/model.h"
#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/model_code.h"
#include "apps/common/model_file.h"

#define KIND "bpmf"
#define SAMPLES_MAX 1000

/* --- writing ---------------------------------------------------------------------------------------------- */

static json_t *make_header(const struct pawl_bpmf_model *model) {
  const struct pawl_bpmf_about *about = &model->about;
  return json_pack(
      "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o}", "kind",
      KIND, "rank", (json_int_t)about->rank, "users", (json_int_t)about->users, "items", (json_int_t)about->items,
      "ratings", (json_int_t)about->ratings, "test_ratings", (json_int_t)about->test_ratings, "samples",
      (json_int_t)about->samples, "iterations", (json_int_t)about->iterations, "burn_in", (json_int_t)about->burn_in,
      "alpha", apps_json_number(about->alpha), "mean", apps_json_number(about->mean), "lowest",
      apps_json_number(about->lowest), "highest", apps_json_number(about->highest), "seed", apps_json_wide(about->seed),
      "train_rmse", apps_json_number(about->train_rmse), "test_rmse", apps_json_number(about->test_rmse), "user_bytes",
      (json_int_t)model->names[BPMF_USERS].size, "item_bytes", (json_int_t)model->names[BPMF_ITEMS].size, "rated",
      (json_int_t)model->starts[about->users], "written_by", json_sprintf("pawl %s", pawl_version()));
}

pawl_status bpmf_model_fill(FILE *file, const void *context) {
  const struct pawl_bpmf_model *model = context;
  const struct pawl_bpmf_about *about = &model->about;
  const struct apps_array arrays[] = {
      {model->samples, about->samples * bpmf_sample_size(about), 4},
      {model->names[BPMF_USERS].text, model->names[BPMF_USERS].size, 1},
      {model->names[BPMF_ITEMS].text, model->names[BPMF_ITEMS].size, 1},
      {model->counts, about->users, 4},
      {model->rated, (size_t)model->starts[about->users], 4},
  };
  return apps_arrays_write(file, make_header(model), arrays, sizeof arrays / sizeof *arrays);
}

pawl_status pawl_bpmf_model_write(const struct pawl_bpmf_model *model, const char *path, char error[PAWL_BPMF_TEXT]) {
  return apps_model_write(path, bpmf_model_fill, model, error);
}

/* --- reading ---------------------------------------------------------------------------------------------- */

struct model_sizes {
  uint64_t user_bytes, item_bytes, rated;
};

static pawl_status read_about(const json_t *json, struct pawl_bpmf_about *about, struct model_sizes *sizes, char *why) {
  const char *wrong = NULL;
  if (!apps_model_count32(json, "rank", PAWL_BPMF_RANK_MAX, &about->rank) || about->rank == 0) wrong = "rank";
  if (!apps_model_count32(json, "users", UINT32_MAX - 1, &about->users) || about->users == 0) wrong = "users";
  if (!apps_model_count32(json, "items", UINT32_MAX - 1, &about->items) || about->items == 0) wrong = "items";
  if (!apps_model_count(json, "ratings", 0, INT64_MAX, &about->ratings)) wrong = "ratings";
  if (!apps_model_count(json, "test_ratings", 0, INT64_MAX, &about->test_ratings)) wrong = "test_ratings";
  if (!apps_model_count32(json, "samples", SAMPLES_MAX, &about->samples) || about->samples == 0) wrong = "samples";
  if (!apps_model_count(json, "iterations", 0, INT64_MAX, &about->iterations)) wrong = "iterations";
  if (!apps_model_count(json, "burn_in", 0, INT64_MAX, &about->burn_in)) wrong = "burn_in";
  if (!apps_json_take_number(json, "alpha", false, &about->alpha) || !(about->alpha > 0)) wrong = "alpha";
  if (!apps_json_take_number(json, "mean", false, &about->mean)) wrong = "mean";
  if (!apps_json_take_number(json, "lowest", false, &about->lowest)) wrong = "lowest";
  if (!apps_json_take_number(json, "highest", false, &about->highest) || about->highest < about->lowest)
    wrong = "highest";
  if (!apps_json_wide_of(json_object_get(json, "seed"), &about->seed)) wrong = "seed";
  if (!apps_json_take_number(json, "train_rmse", true, &about->train_rmse)) wrong = "train_rmse";
  if (!apps_json_take_number(json, "test_rmse", true, &about->test_rmse)) wrong = "test_rmse";
  if (!apps_model_count(json, "user_bytes", 0, INT64_MAX, &sizes->user_bytes)) wrong = "user_bytes";
  if (!apps_model_count(json, "item_bytes", 0, INT64_MAX, &sizes->item_bytes)) wrong = "item_bytes";
  if (!apps_model_count(json, "rated", 0, INT64_MAX, &sizes->rated)) wrong = "rated";
  if (wrong) return apps_say(why, PAWL_CORRUPT, "invalid value of \"%s\" in the header", wrong);
  return PAWL_OK;
}

static pawl_status read_samples(struct apps_arrays *code, struct pawl_bpmf_model *model, char *why) {
  uint64_t count;
  pawl_status status;
  /* fits: below 2^33 rows of at most 2^10 numbers, at most 2^10 times */
  count = (uint64_t)model->about.samples * model->about.rank * ((uint64_t)model->about.users + model->about.items);
  model->samples = apps_arrays_next(code, count, 4, &status);
  if (!model->samples) return apps_arrays_lack(why, status, "samples");
  for (uint64_t i = 0; i < count; i++)
    if (!isfinite(model->samples[i])) return apps_say(why, PAWL_CORRUPT, "a number of a sample is not finite");
  return PAWL_OK;
}

static pawl_status read_names(struct apps_arrays *code, uint64_t bytes, uint32_t count, struct apps_names *names,
                              const char *what, char *why) {
  pawl_status status;
  char *text = apps_arrays_next(code, bytes, 1, &status);
  if (!text) return apps_arrays_lack(why, status, what);
  if (apps_names_take(names, text, (size_t)bytes, count)) return PAWL_OK;
  apps_free(text);
  return apps_say(why, PAWL_CORRUPT, "the %s are damaged, or there is no memory for them", what);
}

static pawl_status read_rated(struct apps_arrays *code, struct pawl_bpmf_model *model, uint64_t rated, char *why) {
  uint32_t users = model->about.users, items = model->about.items;
  pawl_status status;
  model->counts = apps_arrays_next(code, users, 4, &status);
  if (!model->counts) return apps_arrays_lack(why, status, "numbers of ratings");
  model->rated = apps_arrays_next(code, rated, 4, &status);
  if (!model->rated) return apps_arrays_lack(why, status, "list of rated items");
  model->starts = apps_alloc_zero((size_t)users + 1, sizeof *model->starts);
  if (!model->starts) return apps_arrays_lack(why, PAWL_NO_MEMORY, "numbers of ratings");
  for (uint32_t i = 0; i < users; i++) model->starts[i + 1] = model->starts[i] + model->counts[i];
  if (model->starts[users] != rated) return apps_say(why, PAWL_CORRUPT, "the numbers of ratings are damaged");
  for (uint32_t i = 0; i < users; i++)
    for (uint64_t n = model->starts[i]; n < model->starts[i + 1]; n++)
      if (model->rated[n] >= items || (n > model->starts[i] && model->rated[n] < model->rated[n - 1]))
        return apps_say(why, PAWL_CORRUPT, "the list of rated items is damaged");
  return PAWL_OK;
}

static pawl_status read_arrays(struct apps_arrays *code, const json_t *header, struct pawl_bpmf_model *model,
                               char *why) {
  struct model_sizes sizes = {0};
  pawl_status status = read_about(header, &model->about, &sizes, why);
  if (!status) status = read_samples(code, model, why);
  if (!status)
    status = read_names(code, sizes.user_bytes, model->about.users, &model->names[BPMF_USERS], "ids of users", why);
  if (!status)
    status = read_names(code, sizes.item_bytes, model->about.items, &model->names[BPMF_ITEMS], "ids of items", why);
  if (!status) status = read_rated(code, model, sizes.rated, why);
  if (!status && !apps_arrays_are_over(code))
    status = apps_say(why, PAWL_CORRUPT, "unexpected data after the list of rated items");
  return status;
}

pawl_status bpmf_model_decode(const char *bytes, size_t size, struct pawl_bpmf_model **model_out, char *why) {
  struct apps_arrays code = {.bytes = bytes, .size = size};
  json_t *header = NULL;
  pawl_status status = apps_arrays_open(&code, KIND, &header, why);
  if (status) return status;
  struct pawl_bpmf_model *model = apps_alloc_zero(1, sizeof *model);
  status = model ? read_arrays(&code, header, model, why) : apps_say(why, PAWL_NO_MEMORY, "out of memory");
  json_decref(header);
  if (status)
    pawl_bpmf_model_destroy(model);
  else
    *model_out = model;
  return status;
}

static pawl_status decode(const char *bytes, size_t size, void *model_out, char *why) {
  return bpmf_model_decode(bytes, size, model_out, why);
}

pawl_status pawl_bpmf_model_read(const char *path, struct pawl_bpmf_model **model_out, char error[PAWL_BPMF_TEXT]) {
  return apps_model_read(path, decode, model_out, error);
}

bool pawl_bpmf_model_is(const char *path) { return apps_model_file_is(path, KIND); }
