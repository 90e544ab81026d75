/* pawl's own format of models: text that a person can read with `head`, then binary weights, then a checksum.
 *
 *   pawl-model 1 00000512\n     version, and the offset of the weights
 *   { … }\n                     the description of the model (about.c), one key per line; padded with blanks
 *   ids                         `weights` numbers of 64 bits, ascending
 *   weights                     as many float64 numbers
 *   names                       `names` bytes: a line for each feature, its name or empty; absent if there are none
 *   checksum                    XXH3 of everything before, 64 bits
 *
 * All numbers are little-endian. docs/model-format.md describes every byte. */
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "apps/linear/model/inside.h"

#define MAGIC "pawl-model "
#define VERSION 1
#define LINE_SIZE 22 /* size of the first line, including its end */
#define ALIGNMENT 64
#define HEAD_MAX ((size_t)1 << 20)
#define CHUNK 8192 /* numbers that are converted to bytes at a time */

bool linear_pawl_is(const char *bytes, size_t size) {
  return size >= strlen(MAGIC) && memcmp(bytes, MAGIC, strlen(MAGIC)) == 0;
}

static uint64_t get_u64(const char *bytes) {
  uint64_t number = 0;
  for (int i = 7; i >= 0; i--) number = number << 8 | (unsigned char)bytes[i];
  return number;
}

static void put_u64(char *bytes, uint64_t number) {
  for (int i = 0; i < 8; i++) bytes[i] = (char)(unsigned char)(number >> (8 * i));
}

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

/* The text before the weights. The caller frees it. */
static char *make_head(const struct pawl_linear_model *model, size_t *size_out) {
  json_t *about = linear_about_make(model);
  if (about) json_object_set_new(about, "names", json_integer((json_int_t)names_size(model)));
  char *text = apps_about_text(about, true), *head = NULL;
  if (text) {
    size_t length = strlen(text), size = (LINE_SIZE + length + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    head = apps_alloc(size + 1);
    if (head) {
      snprintf(head, LINE_SIZE + 1, MAGIC "%d %08u\n", VERSION, (unsigned)(size % 100000000));
      memcpy(head + LINE_SIZE, text, length);
      memset(head + LINE_SIZE + length, ' ', size - LINE_SIZE - length);
      head[size - 1] = '\n';
      *size_out = size;
    }
  }
  free(text); /* allocated by open_memstream */
  json_decref(about);
  return head;
}

static bool put(FILE *file, XXH3_state_t *sum, const void *bytes, size_t size) {
  XXH3_64bits_update(sum, bytes, size);
  return fwrite(bytes, 1, size, file) == size;
}

/* `numbers` are 8 bytes each, of any type. */
static bool put_numbers(FILE *file, XXH3_state_t *sum, const void *numbers, size_t count) {
  char bytes[CHUNK * 8];
  bool is_fine = true;
  for (size_t done = 0; done < count && is_fine;) {
    size_t now = count - done < CHUNK ? count - done : CHUNK;
    for (size_t i = 0; i < now; i++) {
      uint64_t number;
      memcpy(&number, (const char *)numbers + (done + i) * 8, 8);
      put_u64(bytes + i * 8, number);
    }
    is_fine = put(file, sum, bytes, now * 8);
    done += now;
  }
  return is_fine;
}

pawl_status linear_pawl_fill(FILE *file, const void *context) {
  const struct pawl_linear_model *model = context;
  char bytes[8];
  size_t size = 0;
  char *head = make_head(model, &size);
  XXH3_state_t *sum = XXH3_createState();
  pawl_status status = head && sum ? PAWL_OK : PAWL_NO_MEMORY;
  if (status == PAWL_OK) {
    XXH3_64bits_reset(sum);
    bool is_fine = put(file, sum, head, size) && put_numbers(file, sum, model->ids, model->about.nonzeros) &&
                   put_numbers(file, sum, model->weights, model->about.nonzeros);
    for (size_t i = 0; model->names && i < model->about.nonzeros && is_fine; i++)
      is_fine = put(file, sum, name_of(model, i), strlen(name_of(model, i))) && put(file, sum, "\n", 1);
    put_u64(bytes, XXH3_64bits_digest(sum));
    if (!is_fine || fwrite(bytes, 1, sizeof bytes, file) != sizeof bytes) status = PAWL_IO;
  }
  XXH3_freeState(sum);
  apps_free(head);
  return status;
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* Returns the offset of the weights, or 0 with the reason in `why`. */
static size_t read_line(const char *bytes, size_t size, char *why, pawl_status *status_out) {
  size_t begin = 0;
  *status_out = PAWL_CORRUPT;
  if (size < LINE_SIZE) {
    *status_out = apps_say(why, PAWL_TRUNCATED, "the file ends in its first line");
    return 0;
  }
  const char *version = bytes + strlen(MAGIC), *digits = version + 2;
  if (version[0] != '0' + VERSION || version[1] != ' ') {
    *status_out = apps_say(why, PAWL_UNSUPPORTED, "unknown version of the format; this pawl reads version %d", VERSION);
    return 0;
  }
  for (int i = 0; i < 8; i++) {
    if (digits[i] < '0' || digits[i] > '9') begin = HEAD_MAX;
    begin = begin * 10 + (size_t)(unsigned char)(digits[i] - '0') % 10;
    if (begin > HEAD_MAX) begin = HEAD_MAX + 1;
  }
  if (bytes[LINE_SIZE - 1] == '\n' && begin > LINE_SIZE && begin <= HEAD_MAX) return begin;
  apps_say(why, PAWL_CORRUPT, "the first line is damaged");
  return 0;
}

static pawl_status check_sum(const char *bytes, size_t size, char *why) {
  if (XXH3_64bits(bytes, size - 8) == get_u64(bytes + size - 8)) return PAWL_OK;
  return apps_say(why, PAWL_CORRUPT, "the file is damaged: its checksum does not match");
}

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
    uint64_t bits = get_u64(bytes + (count + i) * 8);
    double weight;
    const char *begin = name, *end = names ? memchr(name, '\n', (size_t)(names_end - name)) : NULL;
    if (names && !end) return apps_say(why, PAWL_CORRUPT, "there are fewer names than weights");
    if (end) name = end + 1;
    memcpy(&weight, &bits, 8);
    if (weight == 0) continue;
    if (end > begin && !(model->names[model->about.nonzeros] = apps_copy_bytes(begin, (size_t)(end - begin))))
      return PAWL_NO_MEMORY;
    model->ids[model->about.nonzeros] = get_u64(bytes + i * 8);
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
  if ((uint64_t)count > rest / 16 || rest < (size_t)count * 16 + 8)
    return apps_say(why, PAWL_TRUNCATED, "the file ends too early; expected %lld weights", (long long)count);
  if (rest != (size_t)count * 16 + 8) return apps_say(why, PAWL_CORRUPT, "unexpected data after the weights");
  *count_out = (size_t)count;
  *names_out = (size_t)named;
  return PAWL_OK;
}

pawl_status linear_pawl_decode(const char *bytes, size_t size, struct pawl_linear_model *model, char *why) {
  pawl_status status;
  json_t *about = NULL;
  size_t count = 0, names = 0, begin = read_line(bytes, size, why, &status);
  if (begin == 0) return status;
  if (begin > size) return apps_say(why, PAWL_TRUNCATED, "the file ends in its header");
  status = linear_about_parse(bytes + LINE_SIZE, begin - LINE_SIZE, model, &about, why);
  if (status == PAWL_OK) status = count_weights(about, size - begin, &count, &names, why);
  json_decref(about);
  if (status == PAWL_OK) status = check_sum(bytes, size, why);
  if (status == PAWL_OK) status = read_weights(bytes + begin, count, names, model, why);
  if (status == PAWL_OK && !linear_model_is_sound(model, why)) status = PAWL_CORRUPT;
  return status;
}
