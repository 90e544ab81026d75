/* Opens a data set: expands patterns, detects formats, cuts files into pieces. */
#include "data/data.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "data/cache.h"
#include "data/formats/detect.h"
#include "data/labels.h"
#include "data/paths.h"
#include "data/words.h"

#define HEAD ((size_t)1 << 16)
#define HEAD_MOST ((size_t)1 << 28)

/* --- one file ------------------------------------------------------------------------------------------- */

/* The head of the text, with at least one complete line if there is one. */
static pawl_status whole_head(struct pwi_source *source, char **head_out, size_t *size_out, struct pwi_fault *fault) {
  for (size_t most = HEAD;; most *= 16) {
    pawl_status status = pwi_source_head(source, most, head_out, size_out, fault);
    if (status) return status;
    if (*size_out < most || most >= HEAD_MOST || memchr(*head_out, '\n', *size_out)) return PAWL_OK;
    pwi_free(*head_out);
  }
}

/* UTF-8 may begin with a byte order mark, which is not part of the text. In UTF-16 mostly every other byte
 * is 0. */
static pawl_status check_encoding(struct pwi_source *source, const unsigned char *head, size_t size,
                                  struct pwi_fault *fault) {
  if (size >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0) source->mark = 3;
  bool is_marked = size >= 2 && (memcmp(head, "\xff\xfe", 2) == 0 || memcmp(head, "\xfe\xff", 2) == 0);
  bool looks_so = size >= 4 && (head[0] == 0) != (head[1] == 0) && (head[0] == 0) == (head[2] == 0) &&
                  (head[1] == 0) == (head[3] == 0);
  if (!is_marked && !looks_so) return PAWL_OK;
  return pwi_fault(fault, PAWL_CORRUPT, "%s: the text is UTF-16, not UTF-8; convert it with iconv -f UTF-16 -t UTF-8",
                   source->path);
}

/* Keeps the head line, for later lookups of column names. */
static bool keep_head(struct pwi_source *source, const char *text) {
  const struct pwi_csv_layout *table = &source->rule.table;
  size_t begin = table->head_begin, end = table->head_length;
  if (!table->has_head || end <= begin) return true;
  while (end > begin && (text[end - 1] == '\n' || text[end - 1] == '\r' || text[end - 1] == 0)) end--;
  source->head = pwi_alloc(end - begin + 1);
  if (!source->head) return false;
  memcpy(source->head, text + begin, end - begin);
  source->head[end - begin] = 0;
  source->head_size = end - begin;
  return true;
}

static pawl_status look_at_text(const struct pawl_data *data, struct pwi_source *source, struct pwi_fault *fault) {
  char *head;
  size_t size;
  const char *why = "";
  source->rule = (struct pwi_parse_rule){.format = data->options.format,
                                         .hash_bits = data->options.hash_bits,
                                         .words = data->options.words,
                                         .labels_optional = data->options.labels_optional,
                                         .labels = data->options.labels,
                                         .table = {.separator = data->options.separator}};
  if (data->options.labels_optional && data->options.label_column) {
    source->rule.table.width = (size_t)data->options.columns;
    source->rule.table.label = (size_t)data->options.label_column - 1;
  }
  pawl_status status = whole_head(source, &head, &size, fault);
  if (status) return status;
  status = check_encoding(source, (const unsigned char *)head, size, fault);
  if (!status) {
    status = pwi_detect(head + source->mark, size - (size_t)source->mark, data->label, &source->rule, &why);
    if (status) pwi_fault(fault, status, "%s: %s", source->path, why);
  }
  if (!status && !keep_head(source, head + source->mark)) status = pwi_fault_plain(fault, PAWL_NO_MEMORY, source->path);
  pwi_free(head);
  if (status) return status;
  status = pwi_stream_length(source->path, source->packing, &source->text_size, fault);
  source->text_start = source->mark + (source->rule.format == PAWL_DATA_UCI ? source->rule.bag.head_length
                                                                            : source->rule.table.head_length);
  if (source->text_start > source->text_size) source->text_start = source->text_size;
  return status;
}

static pawl_status look_at_file(const struct pawl_data *data, struct pwi_source *source, struct pwi_fault *fault) {
  bool is_cache;
  enum pawl_data_format asked = data->options.format;
  pawl_status status = pwi_cache_is(source->path, &is_cache, fault);
  if (status) return status;
  if (!is_cache && asked == PAWL_DATA_CACHE) return pwi_fault(fault, PAWL_CORRUPT, "%s: not a cache", source->path);
  if (is_cache && asked != PAWL_DATA_AUTO && asked != PAWL_DATA_CACHE)
    return pwi_fault(fault, PAWL_CORRUPT, "%s: this is a cache, not %s", source->path, pwi_data_format_name(asked));
  if (!is_cache) return look_at_text(data, source, fault);
  source->rule.format = PAWL_DATA_CACHE;
  return pwi_cache_open(source->path, &source->cache, fault);
}

/* Files are examined in parallel, because some must be decompressed to measure them. */
struct looking {
  struct pawl_data *data;
  atomic_size_t next;
  pthread_mutex_t lock; /* guards the fields below: the failure of the first file that has one */
  size_t failed;
  pawl_status status;
  struct pwi_fault *fault;
};

static void look(void *context) {
  struct looking *looking = context;
  size_t i;
  while ((i = atomic_fetch_add(&looking->next, 1)) < looking->data->count) {
    struct pwi_fault fault;
    pawl_status status = look_at_file(looking->data, &looking->data->sources[i], &fault);
    if (!status) continue;
    pthread_mutex_lock(&looking->lock);
    if (i < looking->failed) {
      looking->failed = i;
      looking->status = status;
      *looking->fault = fault;
    }
    pthread_mutex_unlock(&looking->lock);
  }
}

static pawl_status look_at_files(struct pawl_data *data, struct pwi_fault *fault) {
  struct looking looking = {.data = data, .failed = SIZE_MAX, .fault = fault};
  uint32_t threads = pwi_data_processors();
  pthread_mutex_init(&looking.lock, NULL);
  pwi_data_crew(data->count < threads ? (uint32_t)data->count : threads, look, &looking);
  pthread_mutex_destroy(&looking.lock);
  return looking.status;
}

/* --- pieces --------------------------------------------------------------------------------------------- */

static uint64_t text_length(const struct pwi_source *source) {
  return source->cache ? 0 : source->text_size - source->text_start;
}

static uint64_t choose_piece(const struct pawl_data *data) {
  uint64_t total = 0;
  if (data->options.piece_bytes) return data->options.piece_bytes;
  for (size_t i = 0; i < data->count; i++) total += text_length(&data->sources[i]);
  uint64_t size = total / PWI_DATA_PIECES_WANTED + 1;
  if (size < PWI_DATA_PIECE_LEAST) return PWI_DATA_PIECE_LEAST;
  return size < PWI_DATA_PIECE_MOST ? size : PWI_DATA_PIECE_MOST;
}

static pawl_status cut(struct pawl_data *data, struct pwi_fault *fault) {
  uint64_t pieces = 0;
  data->piece_bytes = choose_piece(data);
  for (size_t i = 0; i < data->count; i++) {
    struct pwi_source *source = &data->sources[i];
    uint64_t length = text_length(source), count = length / data->piece_bytes + (length % data->piece_bytes != 0);
    if (source->cache) count = pwi_cache_blocks(source->cache);
    if (count == 0) count = 1;
    source->first_piece = (size_t)pieces;
    source->pieces = (size_t)count;
    pieces += count;
    if (pieces > SIZE_MAX / 2) return pwi_fault(fault, PAWL_TOO_LARGE, "%s: too many pieces", source->path);
    data->bytes += source->size;
  }
  data->pieces = (size_t)pieces;
  return PAWL_OK;
}

void pwi_data_counts(const struct pawl_data *data, uint64_t *rows_out, uint64_t *entries_out, uint64_t *max_id_out) {
  *rows_out = *entries_out = *max_id_out = 0;
  for (size_t i = 0; i < data->count; i++)
    if (!data->sources[i].cache) return;
  for (size_t i = 0; i < data->count; i++) {
    uint64_t rows, entries, max_id;
    pwi_cache_counts(data->sources[i].cache, &rows, &entries, &max_id);
    *rows_out += rows;
    *entries_out += entries;
    *max_id_out = max_id > *max_id_out ? max_id : *max_id_out;
  }
}

struct pwi_source *pwi_data_source(const struct pawl_data *data, size_t piece) {
  size_t low = 0, high = data->count;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (data->sources[middle].first_piece <= piece)
      low = middle;
    else
      high = middle;
  }
  return &data->sources[low];
}

static uint64_t fingerprint(const struct pawl_data *data) {
  const struct pawl_data_options *options = &data->options;
  uint64_t numbers[] = {(uint64_t)options->format,
                        options->hash_bits,
                        options->binary,
                        options->unit_rows,
                        data->piece_bytes,
                        options->skip_bad,
                        (unsigned char)options->separator,
                        options->labels_optional,
                        options->labels != NULL,
                        options->columns,
                        options->label_column,
                        (uint64_t)options->part,
                        options->held_seed};
  uint64_t hash = pwi_hash(numbers, sizeof numbers, 0);
  hash = pwi_hash(&options->held_share, sizeof options->held_share, hash);
  if (options->words) hash = pwi_hash(&options->words->fingerprint, sizeof options->words->fingerprint, hash);
  if (data->label) hash = pwi_hash(data->label, strlen(data->label), hash);
  for (size_t i = 0; i < data->count; i++) {
    const struct pwi_source *source = &data->sources[i];
    hash = pwi_hash(source->path, strlen(source->path), hash);
    hash = pwi_hash(&source->size, sizeof source->size, hash);
  }
  return hash;
}

/* --- opening and closing -------------------------------------------------------------------------------- */

static pawl_status check(size_t count, const struct pawl_data_options *options, struct pwi_fault *fault) {
  if (count == 0) return pwi_fault(fault, PAWL_INVALID, "no data file given");
  if (options->hash_bits < 1 || options->hash_bits > PWI_DATA_HASH_BITS_MAX)
    return pwi_fault(fault, PAWL_INVALID, "hash_bits is %u but must be 1 to %u", (unsigned)options->hash_bits,
                     PWI_DATA_HASH_BITS_MAX);
  if (options->format > PAWL_DATA_TEXT) return pwi_fault(fault, PAWL_INVALID, "unknown data format");
  if (options->separator && strchr("\"\r\n+-.0123456789", options->separator))
    return pwi_fault(fault, PAWL_INVALID, "the separator must not be a quote, a line break or a character of numbers");
  if (options->part > PAWL_PART_HELD || !(options->held_share >= 0 && options->held_share <= 1))
    return pwi_fault(fault, PAWL_INVALID, "the share of held-out rows must be from 0 to 1");
  if (options->label_column > options->columns)
    return pwi_fault(fault, PAWL_INVALID, "label_column is %llu but columns is %llu",
                     (unsigned long long)options->label_column, (unsigned long long)options->columns);
  if (options->label && !*options->label)
    return pwi_fault(fault, PAWL_INVALID, "the name of the label column is empty");
  return PAWL_OK;
}

/* Makes a source of every path; the source owns the path. */
static pawl_status make_sources(struct pawl_data *data, struct pwi_paths *paths, struct pwi_fault *fault) {
  data->sources = pwi_alloc_zero(paths->count, sizeof *data->sources);
  if (!data->sources) return pwi_fault(fault, PAWL_NO_MEMORY, "not enough memory for %zu files", paths->count);
  pawl_status status = PAWL_OK;
  while (!status && data->count < paths->count) {
    char *path = paths->items[data->count];
    paths->items[data->count] = NULL;
    status = pwi_source_init(&data->sources[data->count++], path, fault);
  }
  return status;
}

static pawl_status fill(struct pawl_data *data, const char *const *given, size_t count, struct pwi_fault *fault) {
  struct pwi_paths paths = {0};
  pawl_status status = pwi_paths_expand(given, count, &paths, fault);
  if (!status) status = make_sources(data, &paths, fault);
  pwi_paths_fini(&paths);
  if (!status) status = look_at_files(data, fault);
  if (!status) status = cut(data, fault);
  if (!status) data->fingerprint = fingerprint(data);
  return status;
}

pawl_status pwi_data_open(const char *const *paths, size_t count, const struct pawl_data_options *options,
                          struct pawl_data **data_out, struct pwi_fault *fault) {
  pawl_status status = check(count, options, fault);
  if (status) return status;
  struct pawl_data *data = pwi_alloc_zero(1, sizeof *data);
  if (!data) return pwi_fault(fault, PAWL_NO_MEMORY, "out of memory");
  data->options = *options;
  pthread_mutex_init(&data->lock, NULL);
  if (options->label && !(data->label = pwi_copy_string(options->label)))
    status = pwi_fault(fault, PAWL_NO_MEMORY, "out of memory");
  data->options.label = data->label;
  data->options.words = pwi_words_retain(options->words);
  data->options.labels = pwi_labels_retain(options->labels);
  if (!status) status = fill(data, paths, count, fault);
  if (status)
    pwi_data_close(data);
  else
    *data_out = data;
  return status;
}

void pwi_data_close(struct pawl_data *data) {
  if (!data) return;
  for (size_t i = 0; i < data->count; i++) {
    pwi_cache_close(data->sources[i].cache);
    pwi_source_fini(&data->sources[i]);
  }
  pthread_mutex_destroy(&data->lock);
  pwi_free(data->sources);
  pwi_free(data->label);
  pwi_labels_release(data->options.labels);
  pwi_words_release((struct pawl_words *)(uintptr_t)data->options.words);
  pwi_free(data);
}
