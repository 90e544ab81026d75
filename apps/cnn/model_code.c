/* The bytes of a file of a net, in the same family as linear models (apps/linear/model/pawl.c): a readable header, then numbers, then a
 * checksum.
 *
 *   pawl-model 1 00000768\n     version, and the offset of the parameters
 *   { … }\n                     header: "kind": "cnn" and others, one key per line; padded with blanks
 *   parameters                  float32, tensor by tensor as the header lists them
 *   checksum                    XXH3 of everything before, 64 bits
 *
 * All little-endian. docs/model-format.md specifies every byte. Every number of a file is checked against the file's size
 * before it is used; the tensors must be those of the net.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <xxhash.h>

#include <pawl/version.h>

#include "apps/cnn/model.h"
#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/model_file.h"

#define MAGIC "pawl-model "
#define VERSION 1
#define LINE_SIZE 22 /* size of the first line, including its end */
#define KIND "{\n  \"kind\": \"cnn\""
#define ALIGNMENT 64
#define HEAD_MAX ((size_t)1 << 20)
#define CHUNK ((size_t)1 << 14) /* parameters that are converted to bytes at a time */
#define SUM_SIZE 8

static uint64_t get(const char *bytes, int width) {
  uint64_t number = 0;
  for (int i = width; i-- > 0;) number = number << 8 | (unsigned char)bytes[i];
  return number;
}

static void put(char *bytes, uint64_t number, int width) {
  for (int i = 0; i < width; i++) bytes[i] = (char)(unsigned char)(number >> (8 * i));
}

/* --- writing --------------------------------------------------------------------------------------------- */

static json_t *make_tensors(const struct cnn_net *net) {
  json_t *list = json_array();
  for (size_t i = 0; i < net->tensor_count; i++) {
    const struct pawl_cnn_tensor *tensor = &net->tensors[i];
    json_t *shape = json_array();
    for (uint32_t j = 0; j < tensor->dimensions; j++) json_array_append_new(shape, json_integer(tensor->shape[j]));
    json_array_append_new(list, json_pack("{s:s, s:o}", "name", tensor->name, "shape", shape));
  }
  return list;
}

static json_t *make_about(const struct pawl_cnn_model *model) {
  const struct pawl_cnn_about *about = &model->about;
  return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:I, s:o, s:o}", "kind", "cnn",
                   "net", about->net, "channels", (json_int_t)about->channels, "height", (json_int_t)about->height,
                   "width", (json_int_t)about->width, "classes", (json_int_t)about->classes, "mean",
                   apps_json_numbers(about->mean, about->channels), "deviation",
                   apps_json_numbers(about->deviation, about->channels), "images", (json_int_t)about->images, "epochs",
                   (json_int_t)about->epochs, "seed", apps_json_wide(about->seed), "loss",
                   apps_json_number(about->loss), "test_error", apps_json_number(about->test_error), "parameters",
                   (json_int_t)about->parameters, "tensors", make_tensors(model->net), "written_by",
                   json_sprintf("pawl %s", pawl_version()));
}

/* The text before the parameters. The caller frees it. */
static char *make_head(const struct pawl_cnn_model *model, size_t *size_out) {
  json_t *about = make_about(model);
  char *text = apps_about_text(about, true), *head = NULL;
  json_decref(about);
  if (!text) return NULL;
  size_t length = strlen(text), size = (LINE_SIZE + length + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
  head = apps_alloc(size + 1);
  if (head) {
    snprintf(head, LINE_SIZE + 1, MAGIC "%d %08u\n", VERSION, (unsigned)(size % 100000000));
    memcpy(head + LINE_SIZE, text, length);
    memset(head + LINE_SIZE + length, ' ', size - LINE_SIZE - length);
    head[size - 1] = '\n';
    *size_out = size;
  }
  free(text); /* allocated by open_memstream */
  return head;
}

static bool put_bytes(FILE *file, XXH3_state_t *sum, const char *bytes, size_t size) {
  XXH3_64bits_update(sum, bytes, size);
  return fwrite(bytes, 1, size, file) == size;
}

static bool put_parameters(FILE *file, XXH3_state_t *sum, const float *parameters, size_t count) {
  char bytes[CHUNK * 4];
  bool is_fine = true;
  for (size_t done = 0; done < count && is_fine;) {
    size_t now = count - done < CHUNK ? count - done : CHUNK;
    for (size_t i = 0; i < now; i++) {
      uint32_t bits;
      memcpy(&bits, &parameters[done + i], 4);
      put(bytes + 4 * i, bits, 4);
    }
    is_fine = put_bytes(file, sum, bytes, 4 * now);
    done += now;
  }
  return is_fine;
}

pawl_status cnn_model_fill(FILE *file, const void *context) {
  const struct pawl_cnn_model *model = context;
  char bytes[SUM_SIZE];
  size_t size = 0;
  char *head = make_head(model, &size);
  XXH3_state_t *sum = XXH3_createState();
  pawl_status status = head && sum ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) {
    XXH3_64bits_reset(sum);
    bool is_fine =
        put_bytes(file, sum, head, size) && put_parameters(file, sum, model->parameters, model->net->parameters);
    put(bytes, XXH3_64bits_digest(sum), SUM_SIZE);
    if (!is_fine || fwrite(bytes, 1, SUM_SIZE, file) != SUM_SIZE) status = PAWL_IO;
  }
  XXH3_freeState(sum);
  apps_free(head);
  return status;
}

/* --- reading: the header --------------------------------------------------------------------------------- */

/* The offset of the parameters; 0: the line is damaged. */
static size_t read_begin(const char *digits) {
  size_t begin = 0;
  for (int i = 0; i < 8; i++) {
    if (digits[i] < '0' || digits[i] > '9') return 0;
    begin = begin * 10 + (size_t)(digits[i] - '0');
  }
  return digits[8] == '\n' && begin > LINE_SIZE && begin <= HEAD_MAX ? begin : 0;
}

static pawl_status read_line(const char *bytes, size_t size, size_t *begin_out, char *why) {
  size_t magic = strlen(MAGIC);
  if (size == 0) return apps_say(why, PAWL_TRUNCATED, "the file is empty");
  if (memcmp(bytes, MAGIC, size < magic ? size : magic) != 0)
    return apps_say(why, PAWL_CORRUPT, "not a model; expected a file that begins with \"%s\"", MAGIC);
  if (size < LINE_SIZE) return apps_say(why, PAWL_TRUNCATED, "the file ends in its first line");
  if (bytes[magic] != '0' + VERSION || bytes[magic + 1] != ' ')
    return apps_say(why, PAWL_UNSUPPORTED, "unknown version of the format; this pawl reads version %d", VERSION);
  *begin_out = read_begin(bytes + magic + 2);
  if (*begin_out == 0) return apps_say(why, PAWL_CORRUPT, "the first line is damaged");
  return *begin_out > size ? apps_say(why, PAWL_TRUNCATED, "the file ends in its header") : PAWL_OK;
}

static bool take_count(const json_t *about, const char *key, uint64_t most, uint64_t *count_out) {
  const json_t *is = json_object_get(about, key);
  json_int_t count = json_integer_value(is);
  if (!json_is_integer(is) || count < 0 || (uint64_t)count > most) return false;
  *count_out = (uint64_t)count;
  return true;
}

static bool take_u32(const json_t *about, const char *key, uint32_t most, uint32_t *count_out) {
  uint64_t count = 0;
  if (!take_count(about, key, most, &count) || count == 0) return false;
  *count_out = (uint32_t)count;
  return true;
}

/* A number, or null for NAN. */
static bool take_number(const json_t *about, const char *key, double *number_out) {
  const json_t *is = json_object_get(about, key);
  *number_out = apps_json_number_of(is);
  return json_is_null(is) || json_is_number(is);
}

/* `channels` numbers that are finite; with `positive` above 0. */
static bool take_scaling(const json_t *about, const char *key, uint32_t channels, bool positive, double *numbers_out) {
  if (!apps_json_numbers_of(json_object_get(about, key), channels, numbers_out)) return false;
  for (uint32_t i = 0; i < channels; i++)
    if (!isfinite(numbers_out[i]) || (positive && !(numbers_out[i] > 0))) return false;
  return true;
}

static pawl_status read_about(const json_t *json, struct pawl_cnn_about *about, char *why) {
  const char *kind = json_string_value(json_object_get(json, "kind")), *wrong = NULL;
  const char *net = json_string_value(json_object_get(json, "net"));
  if (!kind || strcmp(kind, "cnn") != 0)
    return apps_say(why, PAWL_MISMATCH, "this is a %.64s model, not a convolutional net",
                    !kind                         ? "linear"
                    : strcmp(kind, "topics") == 0 ? "topic"
                                                  : kind);
  if (!net || strlen(net) >= sizeof about->net) wrong = "net";
  if (!take_u32(json, "channels", PAWL_CNN_CHANNELS_MAX, &about->channels)) wrong = "channels";
  if (!take_u32(json, "height", UINT32_MAX, &about->height)) wrong = "height";
  if (!take_u32(json, "width", UINT32_MAX, &about->width)) wrong = "width";
  if (!take_u32(json, "classes", 256, &about->classes)) wrong = "classes";
  if (!wrong && !take_scaling(json, "mean", about->channels, false, about->mean)) wrong = "mean";
  if (!wrong && !take_scaling(json, "deviation", about->channels, true, about->deviation)) wrong = "deviation";
  if (!take_count(json, "images", INT64_MAX, &about->images)) wrong = "images";
  if (!take_count(json, "epochs", INT64_MAX, &about->epochs)) wrong = "epochs";
  if (!apps_json_wide_of(json_object_get(json, "seed"), &about->seed)) wrong = "seed";
  if (!take_number(json, "loss", &about->loss)) wrong = "loss";
  if (!take_number(json, "test_error", &about->test_error)) wrong = "test_error";
  if (!take_count(json, "parameters", INT64_MAX, &about->parameters)) wrong = "parameters";
  if (wrong) return apps_say(why, PAWL_CORRUPT, "invalid value of \"%s\" in the header", wrong);
  memcpy(about->net, net, strlen(net) + 1);
  return PAWL_OK;
}

static bool is_same(const json_t *json, const struct pawl_cnn_tensor *tensor) {
  const char *name = json_string_value(json_object_get(json, "name"));
  const json_t *shape = json_object_get(json, "shape");
  if (!name || strcmp(name, tensor->name) != 0 || json_array_size(shape) != tensor->dimensions) return false;
  for (uint32_t i = 0; i < tensor->dimensions; i++)
    if (json_integer_value(json_array_get(shape, i)) != (json_int_t)tensor->shape[i]) return false;
  return true;
}

static pawl_status compare_tensors(const json_t *json, const struct cnn_net *net, char *why) {
  const json_t *list = json_object_get(json, "tensors");
  bool is_fine = json_array_size(list) == net->tensor_count;
  for (size_t i = 0; is_fine && i < net->tensor_count; i++)
    is_fine = is_same(json_array_get(list, i), &net->tensors[i]);
  if (is_fine) return PAWL_OK;
  return apps_say(why, PAWL_UNSUPPORTED,
                  "the tensors are not those of %s; a different version of pawl wrote this model", net->spec->name);
}

/* --- reading: the parameters ----------------------------------------------------------------------------- */

static pawl_status check_size(const char *bytes, size_t size, size_t begin, uint64_t parameters, char *why) {
  size_t rest = size - begin;
  if (rest < SUM_SIZE || parameters > (rest - SUM_SIZE) / 4)
    return apps_say(why, PAWL_TRUNCATED, "the file ends too early; expected %" PRIu64 " parameters", parameters);
  if (rest != parameters * 4 + SUM_SIZE) return apps_say(why, PAWL_CORRUPT, "unexpected data after the parameters");
  if (XXH3_64bits(bytes, size - SUM_SIZE) != get(bytes + size - SUM_SIZE, SUM_SIZE))
    return apps_say(why, PAWL_CORRUPT, "the file is damaged: its checksum does not match");
  return PAWL_OK;
}

static pawl_status read_parameters(const char *bytes, struct pawl_cnn_model *model, char *why) {
  for (size_t i = 0; i < model->net->parameters; i++) {
    uint32_t bits = (uint32_t)get(bytes + 4 * i, 4);
    memcpy(&model->parameters[i], &bits, 4);
  }
  return cnn_model_is_finite(model) ? PAWL_OK : apps_say(why, PAWL_CORRUPT, "a parameter is not finite");
}

static pawl_status read_model(const char *bytes, size_t size, size_t begin, const json_t *json,
                              struct pawl_cnn_model **model_out, char *why) {
  struct pawl_cnn_about about = {.channels = 0};
  pawl_status status = read_about(json, &about, why);
  if (!status) status = check_size(bytes, size, begin, about.parameters, why);
  if (!status) status = cnn_model_create(&about, model_out, why);
  if (!status) status = compare_tensors(json, (*model_out)->net, why);
  if (!status) status = read_parameters(bytes + begin, *model_out, why);
  return status;
}

pawl_status cnn_model_decode(const char *bytes, size_t size, struct pawl_cnn_model **model_out, char *why) {
  struct pawl_cnn_model *model = NULL;
  json_error_t problem;
  size_t begin = 0;
  pawl_status status = read_line(bytes, size, &begin, why);
  if (status) return status;
  json_t *json = json_loadb(bytes + LINE_SIZE, begin - LINE_SIZE, JSON_REJECT_DUPLICATES, &problem);
  if (json_is_object(json))
    status = read_model(bytes, size, begin, json, &model, why);
  else
    status =
        apps_say(why, PAWL_CORRUPT, "the header is not a JSON object%s%s", json ? "" : ": ", json ? "" : problem.text);
  json_decref(json);
  if (status)
    pawl_cnn_model_destroy(model);
  else
    *model_out = model;
  return status;
}

bool cnn_model_begins(const char *bytes, size_t size) {
  return size >= LINE_SIZE + strlen(KIND) && memcmp(bytes, MAGIC, strlen(MAGIC)) == 0 &&
         memcmp(bytes + LINE_SIZE, KIND, strlen(KIND)) == 0;
}
