/* Helpers that the tests of this module share: parsing a text, and a temporary folder of files. */
#ifndef PWI_DATA_SCENE_TEST_H
#define PWI_DATA_SCENE_TEST_H

#include <unistd.h>
#include <errno.h>

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "data/data.h"
#include "data/words.h"
#include "data/formats/number.h"

/* --- parsing a text ------------------------------------------------------------------------------------- */

/* Rows as text: `label*weight id:value id:value; …`, and for an error `!line:column what`. */
struct told {
  char text[8192];
  size_t size;
};

static inline void tell(struct told *told, const char *format, ...) PAWL_PRINTF(2, 3);

static inline void tell(struct told *told, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  told->size += (size_t)vsnprintf(told->text + told->size, sizeof told->text - told->size, format, arguments);
  va_end(arguments);
  assert_true(told->size < sizeof told->text);
}

static inline void tell_batch(struct told *told, const struct pawl_batch *batch) {
  for (size_t row = 0; row < batch->rows; row++) {
    tell(told, "%g", (double)batch->labels[row]);
    if (batch->weights) tell(told, "*%g", (double)batch->weights[row]);
    for (uint64_t i = batch->starts[row]; i < batch->starts[row + 1]; i++)
      tell(told, " %llu:%g", (unsigned long long)batch->ids[i], batch->values ? (double)batch->values[i] : 1);
    tell(told, "; ");
  }
}

static inline void tell_place(struct told *told, const char *text, const struct pwi_parse *parse) {
  size_t line = 1;
  const char *begin = text;
  for (const char *at = text; at < parse->wrong; at++)
    if (*at == '\n') line++, begin = at + 1;
  tell(told, "!%zu:%zu %s", line, (size_t)(parse->wrong - begin) + 1, parse->what);
}

/* Parses a text whose last line may lack its line break, and stops at the first bad row. Every slack byte
 * behind it could continue a number. */
static inline struct told parsed(const struct pwi_parse_rule *rule, const char *text) {
  struct told told = {.size = 0};
  struct pwi_batch *batch;
  size_t size = strlen(text);
  char *copy = malloc(size + 1 + PWI_NUMBER_SLACK);
  assert_non_null(copy);
  memcpy(copy, text, size);
  if (size == 0 || copy[size - 1] != '\n') copy[size++] = '\n';
  memset(copy + size, '9', PWI_NUMBER_SLACK);
  struct pwi_parse parse = {.at = copy, .end = copy + size};
  assert_int_equal(pwi_batch_create(&batch), PAWL_OK);
  pawl_status status = pwi_parse_rows(rule, &parse, batch);
  if (status) assert_int_equal(status, PAWL_CORRUPT);
  assert_int_equal(pwi_batch_finish(batch, false, false), PAWL_OK);
  tell_batch(&told, &batch->is);
  if (status) tell_place(&told, copy, &parse);
  pwi_batch_destroy(batch);
  free(copy);
  return told;
}

/* A text with an error, its line and column, and what is said of it. */
struct wrong {
  const char *text, *place, *what;
};

static inline void assert_all_wrong(const struct pwi_parse_rule *rule, const struct wrong *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    struct told due = {.size = 0};
    tell(&due, "!%s %s", cases[i].place, cases[i].what);
    assert_string_equal(parsed(rule, cases[i].text).text, due.text);
  }
}

static inline struct pawl_words *words_of(const char *text) {
  char copy[256];
  struct pawl_words *words;
  struct pwi_fault fault;
  snprintf(copy, sizeof copy, "%s", text);
  assert_int_equal(pwi_words_parse("words", copy, strlen(copy), &words, &fault), PAWL_OK);
  return words;
}

/* --- files ---------------------------------------------------------------------------------------------- */

static char folder[64];

static inline int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/pawl-data-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state) {
  char command[128];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

/* The result stays valid for a hundred further calls. */
static inline const char *path_of(const char *name) {
  static char paths[100][128];
  static size_t next;
  char *path = paths[next++ % 100];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static inline const char *write_bytes(const char *name, const void *bytes, size_t size) {
  const char *path = path_of(name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
  return path;
}

static inline const char *write_text(const char *name, const char *text) {
  return write_bytes(name, text, strlen(text));
}

static inline size_t pack_gzip(const void *bytes, size_t size, unsigned char *to, size_t room) {
  z_stream stream = {0};
  assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = (Bytef *)(uintptr_t)bytes;
  stream.avail_in = (uInt)size;
  stream.next_out = to;
  stream.avail_out = (uInt)room;
  assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
  size_t made = room - stream.avail_out;
  deflateEnd(&stream);
  return made;
}

static inline size_t pack_zstd(const void *bytes, size_t size, bool says_size, unsigned char *to, size_t room) {
  ZSTD_CCtx *context = ZSTD_createCCtx();
  assert_non_null(context);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, says_size);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  size_t made = ZSTD_compress2(context, to, room, bytes, size);
  assert_false(ZSTD_isError(made));
  ZSTD_freeCCtx(context);
  return made;
}

static inline size_t pack_xz(const void *bytes, size_t size, unsigned char *to, size_t room) {
  size_t made = 0;
  assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, bytes, size, to, &made, room), LZMA_OK);
  return made;
}

static inline size_t pack_bzip2(const void *bytes, size_t size, unsigned char *to, size_t room) {
  unsigned made = (unsigned)room;
  char *from = (char *)(uintptr_t)bytes;
  assert_int_equal(BZ2_bzBuffToBuffCompress((char *)to, &made, from, (unsigned)size, 9, 0, 0), BZ_OK);
  return made;
}

/* --- data sets ------------------------------------------------------------------------------------------ */

static inline struct pawl_data_options default_options(void) {
  struct pawl_data_options options;
  pawl_data_options_init(&options);
  return options;
}

static inline struct pawl_data *opened(const char *path, const struct pawl_data_options *options) {
  struct pawl_data *data = NULL;
  struct pwi_fault fault = {""};
  if (pwi_data_open(&path, 1, options, &data, &fault)) fail_msg("%s", fault.text);
  return data;
}

/* Appends a batch to another. */
static inline void append_batch(struct pwi_batch *to, const struct pawl_batch *from) {
  for (size_t row = 0; row < from->rows; row++) {
    size_t begin = (size_t)from->starts[row], count = (size_t)from->starts[row + 1] - begin;
    assert_int_equal(pwi_batch_room(to, count), PAWL_OK);
    for (size_t i = 0; i < count; i++) {
      to->ids[to->is.entries + i] = from->ids[begin + i];
      to->values[to->is.entries + i] = from->values ? from->values[begin + i] : 1;
    }
    assert_int_equal(pwi_batch_end_row(to, count, true, from->labels[row], from->weights ? from->weights[row] : 1),
                     PAWL_OK);
  }
}

/* Reads all pieces in order. */
static inline struct pwi_batch *read_whole(struct pawl_data *data) {
  struct pwi_batch *whole;
  struct pwi_fault fault = {""};
  assert_int_equal(pwi_batch_create(&whole), PAWL_OK);
  for (size_t piece = 0; piece < data->pieces; piece++) {
    struct pwi_batch *batch;
    if (pwi_data_read(data, piece, &batch, &fault)) fail_msg("%s", fault.text);
    append_batch(whole, &batch->is);
    pwi_batch_destroy(batch);
  }
  assert_int_equal(pwi_batch_finish(whole, false, false), PAWL_OK);
  return whole;
}

static inline void assert_same_rows(const struct pawl_batch *a, const struct pawl_batch *b) {
  assert_int_equal(a->rows, b->rows);
  assert_int_equal(a->entries, b->entries);
  assert_int_equal(a->max_id, b->max_id);
  assert_int_equal(!a->values, !b->values);
  assert_int_equal(!a->weights, !b->weights);
  assert_memory_equal(a->starts, b->starts, (a->rows + 1) * sizeof *a->starts);
  if (a->entries) assert_memory_equal(a->ids, b->ids, a->entries * sizeof *a->ids);
  if (a->entries && a->values) assert_memory_equal(a->values, b->values, a->entries * sizeof *a->values);
  if (a->rows) assert_memory_equal(a->labels, b->labels, a->rows * sizeof *a->labels);
  if (a->rows && a->weights) assert_memory_equal(a->weights, b->weights, a->rows * sizeof *a->weights);
}

/* Why a file cannot be opened or read, without the folder before its name; "" if it can. */
static inline const char *why_not(const char *path, const struct pawl_data_options *options, pawl_status *status_out) {
  static struct pwi_fault fault;
  struct pawl_data *data = NULL;
  fault.text[0] = 0;
  *status_out = pwi_data_open(&path, 1, options, &data, &fault);
  for (size_t piece = 0; !*status_out && piece < data->pieces; piece++) {
    struct pwi_batch *batch;
    *status_out = pwi_data_read(data, piece, &batch, &fault);
    if (!*status_out) pwi_batch_destroy(batch);
  }
  pwi_data_close(data);
  size_t length = strlen(folder) + 1;
  return strncmp(fault.text, folder, length - 1) == 0 ? fault.text + length : fault.text;
}

/* The format that is detected in a file of this text. */
static inline void assert_format(const char *text, enum pawl_data_format format) {
  struct pawl_data_options options = default_options();
  struct pawl_data *data = opened(write_text("told", text), &options);
  assert_int_equal(data->sources[0].rule.format, format);
  pwi_data_close(data);
}

#endif
