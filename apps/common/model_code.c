#include "apps/common/model_code.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "apps/common/memory.h"
#include "apps/common/model_file.h"

#define VERSION 1
#define ALIGNMENT 64
#define HEAD_MAX ((size_t)1 << 20)
#define CHUNK ((size_t)1 << 16) /* bytes that are written at a time */

/* --- writing -------------------------------------------------------------------------------------------- */

struct apps_sink {
  FILE *file;
  XXH3_state_t *sum;
  bool failed;
  size_t used;
  char bytes[CHUNK];
};

static void drain(struct apps_sink *sink) {
  XXH3_64bits_update(sink->sum, sink->bytes, sink->used);
  if (!sink->failed) sink->failed = fwrite(sink->bytes, 1, sink->used, sink->file) != sink->used;
  sink->used = 0;
}

void apps_sink_bytes(struct apps_sink *sink, const void *bytes, size_t size) {
  for (const char *at = bytes; size > 0;) {
    size_t now = size < CHUNK - sink->used ? size : CHUNK - sink->used;
    memcpy(sink->bytes + sink->used, at, now);
    sink->used += now;
    at += now;
    size -= now;
    if (sink->used == CHUNK) drain(sink);
  }
}

static void put(char *bytes, uint64_t number, int width) {
  for (int i = 0; i < width; i++) bytes[i] = (char)(unsigned char)(number >> (8 * i));
}

void apps_sink_number(struct apps_sink *sink, uint64_t number, int width) {
  char bytes[8];
  put(bytes, number, width);
  apps_sink_bytes(sink, bytes, (size_t)width);
}

static uint64_t native(const char *at, int width) {
  uint16_t two;
  uint32_t four;
  uint64_t eight;
  if (width == 2) return memcpy(&two, at, 2), two;
  if (width == 4) return memcpy(&four, at, 4), four;
  return memcpy(&eight, at, 8), eight;
}

void apps_sink_numbers(struct apps_sink *sink, const void *numbers, size_t count, int width) {
  for (size_t i = 0; i < count; i++)
    apps_sink_number(sink, native((const char *)numbers + i * (size_t)width, width), width);
}

static bool put_head(struct apps_sink *sink, const json_t *about) {
  char line[APPS_MODEL_LINE + 1];
  char *text = apps_about_text(about, true);
  if (!text) return false;
  size_t length = strlen(text), size = (APPS_MODEL_LINE + length + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
  snprintf(line, sizeof line, APPS_MODEL_MAGIC "%d %08u\n", VERSION, (unsigned)(size % 100000000));
  apps_sink_bytes(sink, line, APPS_MODEL_LINE);
  apps_sink_bytes(sink, text, length);
  for (size_t i = APPS_MODEL_LINE + length; i < size - 1; i++) apps_sink_bytes(sink, " ", 1);
  apps_sink_bytes(sink, "\n", 1);
  free(text); /* allocated by open_memstream */
  return true;
}

pawl_status apps_model_fill(FILE *file, json_t *about, void (*fill)(struct apps_sink *sink, const void *model),
                            const void *model) {
  char bytes[APPS_MODEL_SUM];
  pawl_status status = PAWL_NO_MEMORY;
  struct apps_sink *sink = apps_alloc(sizeof *sink);
  XXH3_state_t *sum = XXH3_createState();
  if (sink && sum) {
    XXH3_64bits_reset(sum);
    sink->file = file;
    sink->sum = sum;
    sink->used = 0;
    sink->failed = false;
    if (put_head(sink, about)) {
      fill(sink, model);
      drain(sink);
      put(bytes, XXH3_64bits_digest(sum), APPS_MODEL_SUM);
      status = sink->failed || fwrite(bytes, 1, APPS_MODEL_SUM, file) != APPS_MODEL_SUM ? PAWL_IO : PAWL_OK;
    }
  }
  XXH3_freeState(sum);
  apps_free(sink);
  json_decref(about);
  return status;
}

/* --- reading -------------------------------------------------------------------------------------------- */

bool apps_model_begins(const char *bytes, size_t size) {
  return size >= strlen(APPS_MODEL_MAGIC) && memcmp(bytes, APPS_MODEL_MAGIC, strlen(APPS_MODEL_MAGIC)) == 0;
}

bool apps_model_is_of(const char *bytes, size_t size, const char *kind) {
  char begin[64];
  size_t length = (size_t)snprintf(begin, sizeof begin, "{\n  \"kind\": \"%s\"", kind);
  return size >= APPS_MODEL_LINE + length && apps_model_begins(bytes, size) &&
         memcmp(bytes + APPS_MODEL_LINE, begin, length) == 0;
}

bool apps_model_file_is(const char *path, const char *kind) {
  char bytes[64];
  FILE *file = fopen(path, "rbe");
  if (!file) return false;
  size_t got = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  return apps_model_is_of(bytes, got, kind);
}

/* The offset of the numbers; 0: the line is damaged. */
static size_t read_begin(const char *digits) {
  size_t begin = 0;
  for (int i = 0; i < 8; i++) {
    if (digits[i] < '0' || digits[i] > '9') return 0;
    begin = begin * 10 + (size_t)(digits[i] - '0');
  }
  return digits[8] == '\n' && begin > APPS_MODEL_LINE && begin <= HEAD_MAX ? begin : 0;
}

pawl_status apps_model_line(const char *bytes, size_t size, const char *kind, size_t *begin_out, char *why) {
  size_t magic = strlen(APPS_MODEL_MAGIC);
  if (size == 0) return apps_say(why, PAWL_TRUNCATED, "the file is empty");
  if (memcmp(bytes, APPS_MODEL_MAGIC, size < magic ? size : magic) != 0)
    return apps_say(why, PAWL_CORRUPT, "not a %s; expected a file that begins with \"%s\"", kind, APPS_MODEL_MAGIC);
  if (size < APPS_MODEL_LINE) return apps_say(why, PAWL_TRUNCATED, "the file ends in its first line");
  if (bytes[magic] != '0' + VERSION || bytes[magic + 1] != ' ')
    return apps_say(why, PAWL_UNSUPPORTED, "unknown version of the format; this pawl reads version %d", VERSION);
  size_t begin = read_begin(bytes + magic + 2);
  if (begin == 0) return apps_say(why, PAWL_CORRUPT, "the first line is damaged");
  if (begin > size) return apps_say(why, PAWL_TRUNCATED, "the file ends in its header");
  *begin_out = begin;
  return PAWL_OK;
}

pawl_status apps_model_head(const char *bytes, size_t size, const char *kind, size_t *begin_out, json_t **about_out,
                            char *why) {
  json_error_t problem;
  pawl_status status = apps_model_line(bytes, size, kind, begin_out, why);
  if (status) return status;
  json_t *about = json_loadb(bytes + APPS_MODEL_LINE, *begin_out - APPS_MODEL_LINE, JSON_REJECT_DUPLICATES, &problem);
  if (!json_is_object(about)) {
    status = apps_say(why, PAWL_CORRUPT, "the header is not a JSON object%s%s", about ? "" : ": ",
                      about ? "" : problem.text);
    json_decref(about);
    return status;
  }
  *about_out = about;
  return PAWL_OK;
}

pawl_status apps_model_sum(const char *bytes, size_t size, char *why) {
  size_t rest = size - APPS_MODEL_SUM;
  if (XXH3_64bits(bytes, rest) == apps_model_number(bytes + rest, APPS_MODEL_SUM)) return PAWL_OK;
  return apps_say(why, PAWL_CORRUPT, "the file is damaged: its checksum does not match");
}

bool apps_model_count(const json_t *about, const char *key, uint64_t least, uint64_t most, uint64_t *count_out) {
  const json_t *is = json_object_get(about, key);
  json_int_t count = json_integer_value(is);
  if (!json_is_integer(is) || count < 0 || (uint64_t)count < least || (uint64_t)count > most) return false;
  *count_out = (uint64_t)count;
  return true;
}
