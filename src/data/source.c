#include "data/source.h"

#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/formats/number.h"
#include "data/formats/uci.h"

#define BEYOND ((size_t)1 << 16) /* bytes read behind a piece at first, to find the end of its last row */

static pawl_status no_memory(const struct pwi_source *source, struct pwi_fault *fault) {
  return pwi_fault_plain(fault, PAWL_NO_MEMORY, source->path);
}

static pawl_status shorter(const struct pwi_source *source, struct pwi_fault *fault) {
  return pwi_fault(fault, PAWL_TRUNCATED, "%s: the file was truncated after it was opened", source->path);
}

pawl_status pwi_source_init(struct pwi_source *source, char *path, struct pwi_fault *fault) {
  unsigned char magic[PWI_COMPRESSION_MAGIC];
  size_t got = 0;
  int descriptor;
  memset(source, 0, sizeof *source);
  source->path = path;
  pthread_mutex_init(&source->lock, NULL);
  pawl_status status = pwi_file_descriptor(path, &descriptor, &source->size, fault);
  if (status) return status;
  status = pwi_read_at(descriptor, path, 0, magic, sizeof magic, &got, fault);
  close(descriptor);
  if (status) return status;
  if (got == 0) return pwi_fault(fault, PAWL_TRUNCATED, "%s: the file is empty", path);
  source->packing = pwi_compression_of(magic, got);
  return PAWL_OK;
}

static void drop_stream(struct pwi_source *source) {
  pwi_stream_close(source->stream);
  pwi_free(source->kept);
  source->stream = NULL;
  source->kept = NULL;
  source->kept_size = 0;
}

void pwi_source_fini(struct pwi_source *source) {
  drop_stream(source);
  pthread_mutex_destroy(&source->lock);
  pwi_free(source->head);
  pwi_free(source->path);
}

/* --- fetching bytes ------------------------------------------------------------------------------------- */

/* A series of reads from one file. */
struct fetch {
  struct pwi_source *source;
  struct pwi_fault *fault;
  int descriptor; /* of an uncompressed file */
};

static pawl_status fetch_plain(struct fetch *fetch, uint64_t from, char *buffer, size_t size) {
  size_t got;
  pawl_status status = pwi_read_at(fetch->descriptor, fetch->source->path, from, buffer, size, &got, fetch->fault);
  if (status) return status;
  return got == size ? PAWL_OK : shorter(fetch->source, fetch->fault);
}

/* Moves the stream to `from`, unless the kept bytes already cover it. */
static pawl_status go_to(struct fetch *fetch, uint64_t from, char *scratch, size_t scratch_size) {
  struct pwi_source *source = fetch->source;
  if (source->stream && pwi_stream_position(source->stream) - source->kept_size > from) drop_stream(source);
  if (!source->stream) {
    pawl_status status = pwi_stream_open(source->path, source->packing, &source->stream, fetch->fault);
    if (status) return status;
  }
  while (pwi_stream_position(source->stream) < from) {
    uint64_t gap = from - pwi_stream_position(source->stream);
    size_t got, most = gap < scratch_size ? (size_t)gap : scratch_size;
    pawl_status status = pwi_stream_read(source->stream, scratch, most, &got, fetch->fault);
    if (status) return status;
    if (got == 0) return shorter(source, fetch->fault);
  }
  return PAWL_OK;
}

/* Reads from a compressed file. Within one fetch, each call continues at `from` where the previous one
 * ended. */
static pawl_status fetch_packed(struct fetch *fetch, uint64_t from, char *buffer, size_t size) {
  struct pwi_source *source = fetch->source;
  size_t had = 0, got;
  pawl_status status = go_to(fetch, from, buffer, size);
  if (status) return status;
  uint64_t position = pwi_stream_position(source->stream);
  if (position > from) {
    size_t kept = (size_t)(position - from);
    had = kept < size ? kept : size;
    memcpy(buffer, source->kept + (source->kept_size - kept), had);
  }
  if (had == size) return PAWL_OK;
  status = pwi_stream_read(source->stream, buffer + had, size - had, &got, fetch->fault);
  if (status) return status;
  source->kept_size = 0; /* the stream moves on, so the kept bytes are stale; fetch_end sets them again */
  return got == size - had ? PAWL_OK : shorter(source, fetch->fault);
}

static pawl_status fetch_begin(struct fetch *fetch, struct pwi_source *source, struct pwi_fault *fault) {
  uint64_t size;
  *fetch = (struct fetch){.source = source, .fault = fault, .descriptor = -1};
  if (source->packing != PWI_COMPRESSION_PLAIN) {
    pthread_mutex_lock(&source->lock);
    return PAWL_OK;
  }
  pawl_status status = pwi_file_descriptor(source->path, &fetch->descriptor, &size, fault);
  if (status) fetch->descriptor = -1;
  return status;
}

static pawl_status fetch_bytes(struct fetch *fetch, uint64_t from, char *buffer, size_t size) {
  if (size == 0) return PAWL_OK;
  if (fetch->source->packing == PWI_COMPRESSION_PLAIN) return fetch_plain(fetch, from, buffer, size);
  return fetch_packed(fetch, from, buffer, size);
}

/* Keeps the bytes before the position of the stream for the next piece. Without memory for them, the next
 * fetch starts the stream anew. */
static void keep(struct pwi_source *source, const char *bytes, size_t size) {
  char *kept = pwi_resize(source->kept, size ? size : 1);
  if (!kept) {
    drop_stream(source);
    return;
  }
  if (size) memcpy(kept, bytes, size);
  source->kept = kept;
  source->kept_size = size;
}

/* Ends a series. `tail` are the last bytes that were fetched, up to `end` in the text; the neighbouring
 * piece needs them. NULL: there are none. */
static void fetch_end(struct fetch *fetch, pawl_status status, uint64_t end, const char *tail, size_t tail_size) {
  struct pwi_source *source = fetch->source;
  if (source->packing == PWI_COMPRESSION_PLAIN) {
    if (fetch->descriptor >= 0) close(fetch->descriptor);
    return;
  }
  if (status || !tail)
    drop_stream(source);
  else if (pwi_stream_position(source->stream) == end)
    keep(source, tail, tail_size);
  pthread_mutex_unlock(&source->lock);
}

/* --- pieces --------------------------------------------------------------------------------------------- */

struct window {
  char *memory;
  size_t size, room;
  uint64_t from; /* offset of the first byte in the text */
};

static bool window_room(struct window *window, size_t more) {
  size_t needed;
  if (!pwi_add_size(window->size, more, &needed) || !pwi_add_size(needed, 1 + PWI_NUMBER_SLACK, &needed)) return false;
  if (needed <= window->room) return true;
  char *memory = pwi_resize(window->memory, needed);
  if (!memory) return false;
  window->memory = memory;
  window->room = needed;
  return true;
}

static pawl_status extend(struct fetch *fetch, struct window *window, uint64_t more) {
  size_t size;
  if (!pwi_u64_to_size(more, &size) || !window_room(window, size)) return no_memory(fetch->source, fetch->fault);
  pawl_status status = fetch_bytes(fetch, window->from + window->size, window->memory + window->size, size);
  if (!status) window->size += size;
  return status;
}

/* How many bytes before a position must be examined to see whether a row begins there. */
static size_t look_back(const struct pwi_source *source, uint64_t at) {
  uint64_t most = source->rule.format == PAWL_DATA_UCI ? PWI_UCI_LOOK : 1, there = at - source->text_start;
  return (size_t)(there < most ? there : most);
}

/* The first line that begins in [from, piece_end); `piece_end` if there is none. */
static size_t first_line(const struct window *window, size_t from, size_t piece_end) {
  if (from == 0 || window->memory[from - 1] == '\n') return from;
  const char *found = memchr(window->memory + from, '\n', piece_end - from);
  return found ? (size_t)(found + 1 - window->memory) : piece_end;
}

/* Reads on until the line that contains byte `from` - 1 is complete, and returns its end. */
static pawl_status line_from(struct fetch *fetch, struct window *window, size_t from, size_t *end_out) {
  uint64_t left = fetch->source->text_size - window->from;
  size_t looked = from - 1, step = BEYOND;
  for (;;) {
    const char *found = memchr(window->memory + looked, '\n', window->size - looked);
    if (found) {
      *end_out = (size_t)(found + 1 - window->memory);
      return PAWL_OK;
    }
    looked = window->size;
    uint64_t rest = left - window->size;
    if (rest == 0) break;
    pawl_status status = extend(fetch, window, rest < step ? rest : step);
    if (status) return status;
    step *= 2;
  }
  *end_out = window->size; /* the file ends without a line break */
  return PAWL_OK;
}

static uint64_t document_before(const struct pwi_source *source, const struct window *window, size_t at) {
  return pwi_uci_before(window->memory, window->from == source->text_start, window->memory + at);
}

/* For a bag of words: the first document that begins at a line at or behind `at`; `most` if it begins
 * there or later. */
static pawl_status next_document(struct fetch *fetch, struct window *window, size_t at, size_t most, size_t *at_out) {
  uint64_t left = fetch->source->text_size - window->from;
  while (at < most && at < left) {
    size_t end;
    pawl_status status = line_from(fetch, window, at + 1, &end);
    if (status) return status;
    window->memory[window->size] = '\n'; /* the last line may lack its line break */
    const char *line = window->memory + at, *stop = window->memory + end - (window->memory[end - 1] == '\n');
    if (pwi_uci_begins(line, stop, document_before(fetch->source, window, at))) break;
    at = end;
  }
  *at_out = at < most ? at : most;
  return PAWL_OK;
}

/* Finds the rows of the piece [from, piece_end) in the window. */
static pawl_status cut_rows(struct fetch *fetch, struct window *window, size_t from, size_t *begin_out,
                            size_t *end_out) {
  bool is_bag = fetch->source->rule.format == PAWL_DATA_UCI;
  size_t piece_end = window->size, begin = first_line(window, from, piece_end), end;
  pawl_status status = PAWL_OK;
  if (is_bag) status = next_document(fetch, window, begin, piece_end, &begin);
  end = begin;
  if (!status && begin < piece_end) status = line_from(fetch, window, piece_end, &end);
  if (!status && begin < piece_end && is_bag) status = next_document(fetch, window, end, SIZE_MAX, &end);
  if (status) return status;
  *begin_out = begin;
  *end_out = end;
  return PAWL_OK;
}

static pawl_status fill(struct fetch *fetch, struct window *window, uint64_t begin, uint64_t end,
                        struct pwi_lines *text_out) {
  struct pwi_source *source = fetch->source;
  size_t back = look_back(source, begin), at, text_end;
  window->from = begin - back;
  pawl_status status = extend(fetch, window, end - window->from);
  if (!status) status = cut_rows(fetch, window, back, &at, &text_end);
  if (status) return status;
  if (source->rule.format == PAWL_DATA_UCI) text_out->before = document_before(source, window, at);
  text_out->offset = window->from + at;
  text_out->begin = window->memory + at;
  text_out->end = window->memory + text_end;
  return PAWL_OK;
}

pawl_status pwi_source_text(struct pwi_source *source, uint64_t begin, uint64_t end, struct pwi_lines *text_out,
                            struct pwi_fault *fault) {
  struct window window = {0};
  struct pwi_lines text = {0};
  struct fetch fetch;
  pawl_status status = fetch_begin(&fetch, source, fault);
  if (!status && begin < end) status = fill(&fetch, &window, begin, end, &text);
  /* bytes that the next piece will examine first */
  size_t last = (size_t)(end - window.from) - look_back(source, end);
  bool has_tail = !status && window.memory && end < source->text_size;
  fetch_end(&fetch, status, window.from + window.size, has_tail ? window.memory + last : NULL,
            has_tail ? window.size - last : 0);
  if (status) {
    pwi_free(window.memory);
    return status;
  }
  text.memory = window.memory;
  if (text.begin < text.end && text.end[-1] != '\n') {
    window.memory[text.end - window.memory] = '\n';
    text.end++;
  }
  if (window.memory) memset(window.memory + (text.end - window.memory), 0, PWI_NUMBER_SLACK);
  *text_out = text;
  return PAWL_OK;
}

void pwi_lines_fini(struct pwi_lines *text) {
  pwi_free(text->memory);
  *text = (struct pwi_lines){0};
}

/* --- the beginning of the text, and its lines ----------------------------------------------------------- */

pawl_status pwi_source_head(struct pwi_source *source, size_t most, char **text_out, size_t *size_out,
                            struct pwi_fault *fault) {
  struct pwi_stream *stream;
  char *text = pwi_alloc_zero(most + 1 + PWI_NUMBER_SLACK, 1);
  if (!text) return no_memory(source, fault);
  pawl_status status = pwi_stream_open(source->path, source->packing, &stream, fault);
  if (!status) {
    status = pwi_stream_read(stream, text, most, size_out, fault);
    pwi_stream_close(stream);
  }
  if (status)
    pwi_free(text);
  else
    *text_out = text;
  return status;
}

static uint64_t count_lines(const char *text, size_t size, uint64_t offset, uint64_t *line_begin) {
  uint64_t lines = 0;
  const char *end = text + size, *found;
  for (const char *at = text; at < end && (found = memchr(at, '\n', (size_t)(end - at))); at = found + 1) {
    lines++;
    *line_begin = offset + (uint64_t)(found + 1 - text);
  }
  return lines;
}

pawl_status pwi_source_line(struct pwi_source *source, uint64_t offset, uint64_t *line_out, uint64_t *line_begin_out,
                            struct pwi_fault *fault) {
  uint64_t line = 1, line_begin = source->mark, at = 0;
  struct pwi_stream *stream;
  char *chunk = pwi_alloc(BEYOND);
  if (!chunk) return no_memory(source, fault);
  pawl_status status = pwi_stream_open(source->path, source->packing, &stream, fault);
  if (status) {
    pwi_free(chunk);
    return status;
  }
  while (!status && at < offset) {
    size_t got, most = offset - at < BEYOND ? (size_t)(offset - at) : BEYOND;
    status = pwi_stream_read(stream, chunk, most, &got, fault);
    if (!status && got == 0) status = shorter(source, fault);
    if (!status) line += count_lines(chunk, got, at, &line_begin), at += got;
  }
  pwi_stream_close(stream);
  pwi_free(chunk);
  if (status) return status;
  *line_out = line;
  *line_begin_out = line_begin;
  return PAWL_OK;
}

/* Counts non-empty lines. Tells whether the current line has had a character. */
struct line_count {
  uint64_t lines;
  bool has_some;
};

static void count_filled(struct line_count *count, const char *text, const char *end) {
  while (text < end) {
    const char *stop = memchr(text, '\n', (size_t)(end - text));
    size_t length = (size_t)((stop ? stop : end) - text);
    count->has_some |= length > 1 || (length == 1 && *text != '\r');
    if (!stop) return;
    count->lines += count->has_some;
    count->has_some = false;
    text = stop + 1;
  }
}

pawl_status pwi_source_entries(struct pwi_source *source, uint64_t *entries_out, struct pwi_fault *fault) {
  struct line_count count = {0};
  struct pwi_stream *stream;
  size_t got = 0, head = (size_t)source->text_start;
  char *chunk = pwi_alloc(BEYOND);
  if (!chunk) return no_memory(source, fault);
  pawl_status status = pwi_stream_open(source->path, source->packing, &stream, fault);
  if (!status) {
    do {
      status = pwi_stream_read(stream, chunk, BEYOND, &got, fault);
      size_t skipped = head < got ? head : got;
      if (!status) count_filled(&count, chunk + skipped, chunk + got);
      head -= skipped;
    } while (!status && got > 0);
    pwi_stream_close(stream);
  }
  pwi_free(chunk);
  if (!status) *entries_out = count.lines + count.has_some;
  return status;
}
