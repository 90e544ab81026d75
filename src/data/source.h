/* One file of a data set, and the text of its pieces.
 *
 * Piece k of a file has the rows that *begin* in bytes [start + k * size, start + (k + 1) * size) of its
 * text. So every row is in exactly one piece, whatever the sizes. A reader only looks back one byte, to
 * see whether it is a line break. The rows of a bag of words (uci) are runs of lines; there it looks back
 * as far as data/formats/uci.h says.
 *
 * The text of a compressed file is decompressed in order. A source keeps the stream where the last piece
 * ended, with the bytes that were read beyond it. A later piece is reached from there, an earlier one from
 * the beginning. So reading pieces in increasing order decompresses a file once. One thread at a time
 * fetches text; any number of threads parse it.
 *
 * Threads: any, once a source is open.
 */
#ifndef PWI_DATA_SOURCE_H
#define PWI_DATA_SOURCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/parse.h"
#include "data/stream.h"

struct pwi_cache;

struct pwi_source {
  char *path;
  uint64_t size;       /* of the file */
  uint64_t text_size;  /* size of the decompressed text */
  uint64_t text_start; /* offset behind the byte order mark and the head line, if present */
  uint64_t mark;       /* bytes of the byte order mark; 0 without one */
  char *head;          /* the head line of a table without its line break; NULL: the file has none */
  size_t head_size;
  enum pwi_compression packing;
  struct pwi_parse_rule rule;
  struct pwi_cache *cache; /* NULL: the file is text */
  size_t first_piece, pieces;
  atomic_bool is_complete;   /* uci: the file has as many entries as its head states */
  pthread_mutex_t lock;      /* guards the fields below */
  struct pwi_stream *stream; /* NULL: no stream is open */
  char *kept;                /* the last bytes that were read from the stream */
  size_t kept_size;
};

/* Whole lines, each with its line break, and slack behind them. */
struct pwi_lines {
  char *memory;
  const char *begin, *end;
  uint64_t offset; /* of `begin` in the text of the file */
  uint64_t before; /* uci: the document before `begin`; 0: unknown */
};

/* Takes ownership of the path. Determines the file's size, compression and text length. Call fini also
 * after a failure. */
PAWL_MUST_USE pawl_status pwi_source_init(struct pwi_source *source, char *path, struct pwi_fault *fault);
void pwi_source_fini(struct pwi_source *source);

/* The first bytes of the text, at most `most`, with slack behind them. The caller frees them with
 * pwi_free. */
PAWL_MUST_USE pawl_status pwi_source_head(struct pwi_source *source, size_t most, char **text_out, size_t *size_out,
                                          struct pwi_fault *fault);

/* The rows that begin in [begin, end) of the text. Free the result with pwi_lines_fini. */
PAWL_MUST_USE pawl_status pwi_source_text(struct pwi_source *source, uint64_t begin, uint64_t end,
                                          struct pwi_lines *text_out, struct pwi_fault *fault);
void pwi_lines_fini(struct pwi_lines *text);

/* The number of the line that contains the byte at `offset`, counted from 1, and where that line begins.
 * Reads the file up to there. */
PAWL_MUST_USE pawl_status pwi_source_line(struct pwi_source *source, uint64_t offset, uint64_t *line_out,
                                          uint64_t *line_begin_out, struct pwi_fault *fault);

/* The number of non-empty lines behind the head. Reads the whole file. */
PAWL_MUST_USE pawl_status pwi_source_entries(struct pwi_source *source, uint64_t *entries_out, struct pwi_fault *fault);

#endif
