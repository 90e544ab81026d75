/* Models as NumPy arrays: all weights by id, then the bias if there is one. A JSON file beside the array has
 * the rest. */
#include <stdlib.h>
#include <string.h>

#include "apps/linear/model/inside.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_SIZE 6
#define HEAD_SIZE 128 /* size of the header that we write: version 1.0, and a multiple of 64 */
#define CHUNK 8192

bool linear_npy_is(const char *bytes, size_t size) {
  return size >= MAGIC_SIZE && memcmp(bytes, MAGIC, MAGIC_SIZE) == 0;
}

/* --- writing -------------------------------------------------------------------------------------------- */

pawl_status linear_npy_check(const struct pawl_linear_model *model, char *why) {
  if (pawl_linear_width(&model->about) <= LINEAR_DENSE_MAX) return PAWL_OK;
  return apps_say(why, PAWL_TOO_LARGE, "cannot write an array of %llu features; above 2^31, use pawl's own format",
                  (unsigned long long)pawl_linear_width(&model->about));
}

static void make_head(uint64_t elements, char head[HEAD_SIZE]) {
  char text[HEAD_SIZE];
  int length = snprintf(text, sizeof text, "{'descr': '<f8', 'fortran_order': False, 'shape': (%llu,), }",
                        (unsigned long long)elements);
  memset(head, ' ', HEAD_SIZE);
  memcpy(head, MAGIC "\x01\x00", MAGIC_SIZE + 2);
  head[8] = HEAD_SIZE - 10; /* length of the rest of the header, 16 bits */
  head[9] = 0;
  memcpy(head + 10, text, (size_t)length);
  head[HEAD_SIZE - 1] = '\n';
}

/* Buffers numbers, so that millions of zeros are written quickly. */
struct npy_sink {
  FILE *file;
  size_t count;
  bool failed;
  char bytes[CHUNK * 8];
};

static void drain(struct npy_sink *sink) {
  if (!sink->failed) sink->failed = fwrite(sink->bytes, 8, sink->count, sink->file) != sink->count;
  sink->count = 0;
}

static void put(struct npy_sink *sink, double value) {
  uint64_t number;
  memcpy(&number, &value, 8);
  for (int i = 0; i < 8; i++) sink->bytes[sink->count * 8 + (size_t)i] = (char)(unsigned char)(number >> (8 * i));
  if (++sink->count == CHUNK) drain(sink);
}

pawl_status linear_npy_fill(FILE *file, const void *context) {
  const struct pawl_linear_model *model = context;
  char head[HEAD_SIZE];
  struct npy_sink *sink = apps_alloc(sizeof *sink);
  if (!sink) return PAWL_NO_MEMORY;
  sink->file = file;
  sink->count = 0;
  make_head(pawl_linear_width(&model->about) + model->about.has_bias, head);
  sink->failed = fwrite(head, 1, HEAD_SIZE, file) != HEAD_SIZE;
  for (uint64_t id = model->about.zero_based ? 0 : 1, next = 0; id <= model->about.features && !sink->failed; id++)
    put(sink, next < model->about.nonzeros && model->ids[next] == id ? model->weights[next++] : 0);
  if (model->about.has_bias) put(sink, model->about.bias);
  drain(sink);
  pawl_status status = sink->failed ? PAWL_IO : PAWL_OK;
  apps_free(sink);
  return status;
}

pawl_status linear_npy_fill_about(FILE *file, const void *model) {
  json_t *about = linear_about_make(model);
  char *text = apps_about_text(about, true);
  pawl_status status = text ? PAWL_OK : PAWL_NO_MEMORY;
  if (text && fputs(text, file) < 0) status = PAWL_IO;
  free(text); /* allocated by open_memstream */
  json_decref(about);
  return status;
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* The text after 'key': in the header, without blanks; NULL if the key is absent. */
static const char *behind(const char *head, const char *key) {
  const char *at = strstr(head, key);
  if (!at) return NULL;
  at += strlen(key);
  while (*at == ' ' || *at == ':') at++;
  return at;
}

/* Accepts arrays of one dimension, of float64 or float32. */
static bool read_shape(const char *head, size_t *width_out, uint64_t *elements_out) {
  const char *type = behind(head, "'descr'"), *order = behind(head, "'fortran_order'"),
             *shape = behind(head, "'shape'");
  if (!type || !order || !shape || *shape != '(') return false;
  bool wide = strncmp(type, "'<f8'", 5) == 0;
  if (!wide && strncmp(type, "'<f4'", 5) != 0) return false;
  uint64_t elements = 0;
  const char *at = shape + 1;
  if (*at < '0' || *at > '9') return false;
  for (; *at >= '0' && *at <= '9'; at++) {
    elements = elements * 10 + (uint64_t)(*at - '0');
    if (elements > LINEAR_DENSE_MAX + 1) return false;
  }
  if (strncmp(at, ",)", 2) != 0) return false;
  *width_out = wide ? 8 : 4;
  *elements_out = elements;
  return true;
}

/* Returns where the numbers begin; 0 if the header is invalid. */
static size_t find_numbers(const char *bytes, size_t size, size_t *width_out, uint64_t *elements_out) {
  const unsigned char *at = (const unsigned char *)bytes;
  if (size < 12 || at[6] < 1 || at[6] > 3) return 0;
  size_t begin = at[6] == 1 ? 10 : 12, length = (size_t)at[8] | (size_t)at[9] << 8;
  if (at[6] > 1) length |= (size_t)at[10] << 16 | (size_t)at[11] << 24;
  if (length > size - begin || length > 65535) return 0;
  char *head = apps_copy_bytes(bytes + begin, length);
  bool is_fine = head && read_shape(head, width_out, elements_out);
  apps_free(head);
  return is_fine ? begin + length : 0;
}

static double get_number(const char *bytes, size_t width) {
  uint64_t number = 0;
  double wide;
  float narrow;
  for (size_t i = width; i-- > 0;) number = number << 8 | (unsigned char)bytes[i];
  if (width == 8) {
    memcpy(&wide, &number, 8);
    return wide;
  }
  uint32_t half = (uint32_t)number;
  memcpy(&narrow, &half, 4);
  return (double)narrow;
}

static pawl_status take_numbers(const char *bytes, size_t size, uint64_t elements, struct pawl_linear_model *model,
                                char *why) {
  size_t room = 0;
  uint64_t width = pawl_linear_width(&model->about), first = model->about.zero_based ? 0 : 1;
  if (elements != width + model->about.has_bias)
    return apps_say(why, PAWL_CORRUPT, "the array has %llu numbers, but the .json file beside it has %llu features%s",
                    (unsigned long long)elements, (unsigned long long)width,
                    model->about.has_bias ? " and a bias" : "");
  for (uint64_t i = 0; i < width; i++) {
    pawl_status status = linear_model_append(model, &room, i + first, get_number(bytes + i * size, size));
    if (status) return status;
  }
  if (model->about.has_bias) model->about.bias = get_number(bytes + width * size, size);
  return linear_model_is_sound(model, why) ? PAWL_OK : PAWL_CORRUPT;
}

pawl_status linear_npy_decode(const char *bytes, size_t size, const char *about, size_t about_size,
                              struct pawl_linear_model *model, char *why) {
  size_t width = 0;
  uint64_t elements = 0;
  json_t *description;
  size_t begin = find_numbers(bytes, size, &width, &elements);
  if (begin == 0)
    return apps_say(why, PAWL_CORRUPT,
                    "this array is not a model; expected one dimension of little-endian float64 ('<f8')");
  if ((size - begin) / width < elements) return apps_say(why, PAWL_TRUNCATED, "the array ends too early");
  pawl_status status = linear_about_parse(about, about_size, model, &description, why);
  if (status) return status;
  json_decref(description);
  return take_numbers(bytes + begin, width, elements, model, why);
}
