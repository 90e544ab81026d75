#include "apps/bpmf/code.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "apps/common/memory.h"
#include "apps/common/model_file.h"

#define MAGIC "pawl-model "
#define VERSION 1
#define LINE_SIZE 22 /* size of the first line, including its end */
#define ALIGNMENT 64
#define HEAD_MAX ((size_t)1 << 20)
#define CHUNK ((size_t)1 << 14) /* bytes that are converted at a time */
#define SUM_SIZE 8

static uint64_t get(const char *bytes, int width) {
  uint64_t number = 0;
  for (int i = width; i-- > 0;) number = number << 8 | (unsigned char)bytes[i];
  return number;
}

static void put(char *bytes, uint64_t number, int width) {
  for (int i = 0; i < width; i++) bytes[i] = (char)(unsigned char)(number >> (8 * i));
}

/* --- writing ---------------------------------------------------------------------------------------------- */

/* The text before the arrays. The caller frees it. */
static char *make_head(const json_t *header, size_t *size_out) {
  char *text = apps_about_text(header, true), *head = NULL;
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

/* An element of an array as a number. */
static uint64_t element(const struct bpmf_array *array, size_t i) {
  const char *at = (const char *)array->elements + i * (size_t)array->width;
  uint32_t narrow;
  uint64_t wide;
  if (array->width == 1) return (unsigned char)*at;
  memcpy(&narrow, at, sizeof narrow);
  if (array->width == 4) return narrow;
  memcpy(&wide, at, sizeof wide);
  return wide;
}

static bool put_array(FILE *file, XXH3_state_t *sum, const struct bpmf_array *array) {
  char bytes[CHUNK];
  size_t width = (size_t)array->width, most = CHUNK / width;
  bool is_fine = true;
  for (size_t done = 0; done < array->count && is_fine;) {
    size_t now = array->count - done < most ? array->count - done : most;
    for (size_t i = 0; i < now; i++) put(bytes + i * width, element(array, done + i), array->width);
    is_fine = put_bytes(file, sum, bytes, now * width);
    done += now;
  }
  return is_fine;
}

pawl_status bpmf_code_write(FILE *file, const json_t *header, const struct bpmf_array *arrays, size_t count) {
  char bytes[SUM_SIZE];
  size_t size = 0;
  char *head = header ? make_head(header, &size) : NULL;
  XXH3_state_t *sum = XXH3_createState();
  pawl_status status = head && sum ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) {
    XXH3_64bits_reset(sum);
    bool is_fine = put_bytes(file, sum, head, size);
    for (size_t i = 0; i < count && is_fine; i++) is_fine = put_array(file, sum, &arrays[i]);
    put(bytes, XXH3_64bits_digest(sum), SUM_SIZE);
    if (!is_fine || fwrite(bytes, 1, SUM_SIZE, file) != SUM_SIZE) status = PAWL_IO;
  }
  XXH3_freeState(sum);
  apps_free(head);
  return status;
}

/* --- reading ---------------------------------------------------------------------------------------------- */

/* The offset of the arrays; 0: the line is damaged. */
static size_t read_begin(const char *digits) {
  size_t begin = 0;
  for (int i = 0; i < 8; i++) {
    if (digits[i] < '0' || digits[i] > '9') return 0;
    begin = begin * 10 + (size_t)(digits[i] - '0');
  }
  return digits[8] == '\n' && begin > LINE_SIZE && begin <= HEAD_MAX ? begin : 0;
}

static pawl_status read_line(struct bpmf_code *code, char *why) {
  size_t magic = strlen(MAGIC), size = code->size;
  const char *bytes = code->bytes;
  if (size == 0) return apps_say(why, PAWL_TRUNCATED, "the file is empty");
  if (memcmp(bytes, MAGIC, size < magic ? size : magic) != 0)
    return apps_say(why, PAWL_CORRUPT, "not a model; expected a file that begins with \"%s\"", MAGIC);
  if (size < LINE_SIZE) return apps_say(why, PAWL_TRUNCATED, "the file ends in its first line");
  if (bytes[magic] != '0' + VERSION || bytes[magic + 1] != ' ')
    return apps_say(why, PAWL_UNSUPPORTED, "unknown version of the format; this pawl reads version %d", VERSION);
  code->at = read_begin(bytes + magic + 2);
  if (code->at == 0) return apps_say(why, PAWL_CORRUPT, "the first line is damaged");
  return code->at > size ? apps_say(why, PAWL_TRUNCATED, "the file ends in its header") : PAWL_OK;
}

static pawl_status check_kind(const json_t *header, const char *kind, char *why) {
  const char *is = json_string_value(json_object_get(header, "kind"));
  if (is && strcmp(is, kind) == 0) return PAWL_OK;
  return apps_say(why, PAWL_MISMATCH, "this is a model of kind '%.64s', not '%s'", is ? is : "linear", kind);
}

pawl_status bpmf_code_open(struct bpmf_code *code, const char *kind, json_t **header_out, char *why) {
  json_error_t problem;
  pawl_status status = read_line(code, why);
  if (status) return status;
  json_t *header = json_loadb(code->bytes + LINE_SIZE, code->at - LINE_SIZE, JSON_REJECT_DUPLICATES, &problem);
  if (!json_is_object(header))
    status = apps_say(why, PAWL_CORRUPT, "the header is not a JSON object%s%s", header ? "" : ": ",
                      header ? "" : problem.text);
  if (!status) status = check_kind(header, kind, why);
  if (!status && code->size - code->at < SUM_SIZE)
    status = apps_say(why, PAWL_TRUNCATED, "the file ends after its header");
  if (!status && XXH3_64bits(code->bytes, code->size - SUM_SIZE) != get(code->bytes + code->size - SUM_SIZE, SUM_SIZE))
    status = apps_say(why, PAWL_CORRUPT, "the file is damaged: its checksum does not match");
  if (status)
    json_decref(header);
  else
    *header_out = header;
  return status;
}

void *bpmf_code_array(struct bpmf_code *code, uint64_t count, int width, pawl_status *status_out) {
  size_t left = code->size - SUM_SIZE - code->at;
  *status_out = PAWL_TRUNCATED;
  if (count > left / (size_t)width) return NULL;
  char *elements = apps_alloc_zero((size_t)count, (size_t)width);
  *status_out = PAWL_NO_MEMORY;
  if (!elements) return NULL;
  for (size_t i = 0; i < count; i++) {
    uint64_t number = get(code->bytes + code->at + i * (size_t)width, width);
    uint32_t narrow = (uint32_t)number;
    if (width == 1)
      elements[i] = (char)(unsigned char)number;
    else if (width == 4)
      memcpy(elements + 4 * i, &narrow, 4);
    else
      memcpy(elements + 8 * i, &number, 8);
  }
  code->at += (size_t)count * (size_t)width;
  *status_out = PAWL_OK;
  return elements;
}

bool bpmf_code_is_over(const struct bpmf_code *code) { return code->at == code->size - SUM_SIZE; }

bool bpmf_code_begins(const char *bytes, size_t size, const char *kind) {
  char begin[64];
  int length = snprintf(begin, sizeof begin, "{\n  \"kind\": \"%s\"", kind);
  return size >= LINE_SIZE + (size_t)length && memcmp(bytes, MAGIC, strlen(MAGIC)) == 0 &&
         memcmp(bytes + LINE_SIZE, begin, (size_t)length) == 0;
}

bool bpmf_code_count(const json_t *header, const char *key, uint64_t most, uint64_t *count_out) {
  const json_t *is = json_object_get(header, key);
  json_int_t count = json_integer_value(is);
  if (!json_is_integer(is) || count < 0 || (uint64_t)count > most) return false;
  *count_out = (uint64_t)count;
  return true;
}

bool bpmf_code_u32(const json_t *header, const char *key, uint32_t most, uint32_t *count_out) {
  uint64_t count = 0;
  if (!bpmf_code_count(header, key, most, &count)) return false;
  *count_out = (uint32_t)count;
  return true;
}
