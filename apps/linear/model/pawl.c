/* pawl's own format of linear models: apps/common/model_code.h with the description of the model (about.c) as its
 * header, and
 *
 *   ids                         `weights` numbers of 64 bits, ascending
 *   weights                     as many float64 numbers
 *   names                       `names` bytes: a line for each feature, its name or empty; absent if there are none
 */
#include <string.h>

#include "apps/common/model_code.h"
#include "apps/linear/model/inside.h"

bool linear_pawl_is(const char *bytes, size_t size) { return apps_model_begins(bytes, size); }

/* --- writing -------------------------------------------------------------------------------------------- */

static const char *name_of(const struct pawl_linear_model *model, size_t i) {
  const char *name = model->names && model->names[i] ? model->names[i] : "";
  return strchr(name, '\n') ? "" : name;
}

static size_t names_size(const struct pawl_linear_model *model) {
  size_t size = 0;
  for (size_t i = 0; model->names && i < model->about.nonzeros; i++) size += strlen(name_of(model, i)) + 1;
  return size;
}

static void put_weights(struct apps_sink *sink, const void *context) {
  const struct pawl_linear_model *model = context;
  apps_sink_numbers(sink, model->ids, model->about.nonzeros, 8);
  apps_sink_numbers(sink, model->weights, model->about.nonzeros, 8);
  for (size_t i = 0; model->names && i < model->about.nonzeros; i++) {
    apps_sink_bytes(sink, name_of(model, i), strlen(name_of(model, i)));
    apps_sink_bytes(sink, "\n", 1);
  }
}

pawl_status linear_pawl_fill(FILE *file, const void *model) {
  json_t *about = linear_about_make(model);
  if (about) json_object_set_new(about, "names", json_integer((json_int_t)names_size(model)));
  return apps_model_fill(file, about, put_weights, model);
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* Weights of 0 are dropped. */
static pawl_status read_weights(const char *bytes, size_t count, size_t names, struct pawl_linear_model *model,
                                char *why) {
  if (count == 0) return PAWL_OK;
  model->ids = apps_alloc(count * sizeof *model->ids);
  model->weights = apps_alloc(count * sizeof *model->weights);
  if (!model->ids || !model->weights) return PAWL_NO_MEMORY;
  const char *name = bytes + count * 16, *names_end = name + names;
  if (names && !(model->names = apps_alloc_zero(count, sizeof *model->names))) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < count; i++) {
    uint64_t bits = apps_model_number(bytes + (count + i) * 8, 8);
    double weight;
    const char *begin = name, *end = names ? memchr(name, '\n', (size_t)(names_end - name)) : NULL;
    if (names && !end) return apps_say(why, PAWL_CORRUPT, "there are fewer names than weights");
    if (end) name = end + 1;
    memcpy(&weight, &bits, 8);
    if (weight == 0) continue;
    if (end > begin && !(model->names[model->about.nonzeros] = apps_copy_bytes(begin, (size_t)(end - begin))))
      return PAWL_NO_MEMORY;
    model->ids[model->about.nonzeros] = apps_model_number(bytes + i * 8, 8);
    model->weights[model->about.nonzeros++] = weight;
  }
  return PAWL_OK;
}

/* Reads the number of weights from the head, which must match the size of the rest of the file. */
static pawl_status count_weights(const json_t *about, size_t rest, size_t *count_out, size_t *names_out, char *why) {
  const json_t *is = json_object_get(about, "weights"), *names = json_object_get(about, "names");
  json_int_t named = json_integer_value(names);
  json_int_t count = json_integer_value(is);
  if (!json_is_integer(is) || count < 0)
    return apps_say(why, PAWL_CORRUPT, "the header does not have the number of weights");
  if ((names && !json_is_integer(names)) || named < 0)
    return apps_say(why, PAWL_CORRUPT, "the header does not have the size of the names");
  if ((uint64_t)named > rest) return apps_say(why, PAWL_TRUNCATED, "the file ends too early; the names are missing");
  rest -= (size_t)named;
  if ((uint64_t)count > rest / 16 || rest < (size_t)count * 16 + APPS_MODEL_SUM)
    return apps_say(why, PAWL_TRUNCATED, "the file ends too early; expected %lld weights", (long long)count);
  if (rest != (size_t)count * 16 + APPS_MODEL_SUM)
    return apps_say(why, PAWL_CORRUPT, "unexpected data after the weights");
  *count_out = (size_t)count;
  *names_out = (size_t)named;
  return PAWL_OK;
}

pawl_status linear_pawl_decode(const char *bytes, size_t size, struct pawl_linear_model *model, char *why) {
  json_t *about = NULL;
  size_t count = 0, names = 0, begin = 0;
  pawl_status status = apps_model_line(bytes, size, "model", &begin, why);
  if (status) return status;
  status = linear_about_parse(bytes + APPS_MODEL_LINE, begin - APPS_MODEL_LINE, model, &about, why);
  if (status == PAWL_OK) status = count_weights(about, size - begin, &count, &names, why);
  json_decref(about);
  if (status == PAWL_OK) status = apps_model_sum(bytes, size, why);
  if (status == PAWL_OK) status = read_weights(bytes + begin, count, names, model, why);
  if (status == PAWL_OK && !linear_model_is_sound(model, why)) status = PAWL_CORRUPT;
  return status;
}
