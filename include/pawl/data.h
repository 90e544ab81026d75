/* Data: labelled rows of features, read from files by many workers side by side.
 *
 * A *data set* is one or several files, each plain or compressed with gzip, zstd, xz or bzip2, in one of these formats:
 *
 *   libsvm   label id:value id:value …            ids rise; a value may be left out with its colon: 1. `# …` ends a row
 *   vw       label [importance] [tag]|space[:scale] name[:value] …       Vowpal Wabbit's text; names are hashed
 *   criteo   label TAB 13 counts TAB 26 categories                       hashed by column and value; also with a head line
 *   csv      columns by commas, semicolons or tabs, with or without a head line; one of them is the label; words are hashed by column
 *   ldac     number id:count id:count …          Blei's LDA-C: a document a line, ids begin at 0
 *   uci      document id count                    UCI's bag of words, after three lines of totals; ids begin at 1
 *   text     words                                a document a line; words are looked up, or hashed (<pawl/words.h>)
 *   cache    what pawl_data_convert has written: loads at memory speed
 *
 * The three before the last hold documents: rows without labels (they are 0), whose values say how often a word occurs. Their
 * ids count a vocabulary's words from 1, also LDA-C's, which are one higher here than in the file. A piece is made of whole
 * documents. A count is whole, and at most PAWL_COUNT_MAX: what is beyond is a bad row, as is a word beyond the vocabulary.
 *
 * PIECES. A data set is cut into pieces of whole rows, which are numbered from 0 in the order of the files. The cut
 * depends on the files and options alone, so every worker that opens the same files sees the same pieces, and a
 * scheduler can share them out by number (<pawl/job.h>). Opening reads little: it expands patterns, looks at each
 * file's head, and does not parse. But the text of a compressed file must be measured: it is decompressed once for
 * that, unless it is zstd whose frames say their length. A compressed file is decompressed from its beginning; a
 * handle that reads its pieces in rising order does so once.
 *
 * IDS of features are those of the file (LIBSVM's begin at 1), or a hash of the name with `hash_bits` bits. At most
 * 2^63 - 1.
 *
 * LABELS. A row without a label is bad, unless `labels_optional`: then its label is NAN. In libsvm it begins with `id:value`, in vw
 * with the bar or a tag, in csv its field is empty. A csv file may lack the label's column if `columns` and `label_column` say
 * what it would have with it: ids of features are as if it were there.
 *
 * A byte order mark (UTF-8) at the beginning of a file is skipped. UTF-16 is refused.
 *
 * BAD ROWS. A row that cannot be read ends the reading with PAWL_CORRUPT and a text `file:line:column: what` in
 * pawl_error_text. With `skip_bad` = n up to n rows of the data set (counted over all reads of this handle) are left
 * out instead and counted. NaN and infinite values and labels are bad; a row without features is not.
 *
 * THREADS. One handle may be used by any number of threads at once; different pieces are read in parallel.
 *
 * docs/data.md has the formats to the letter, and the layout of the cache.
 */
#ifndef PAWL_DATA_H
#define PAWL_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_data;
struct pawl_words;

#define PAWL_ID_MAX INT64_MAX    /* of a feature */
#define PAWL_COUNT_MAX (1 << 24) /* of one word in one document: as far as a float counts */

/* Rows held out for validation: which they are is drawn from a seed, the piece and the row, and so is the same for every reader. */
enum pawl_data_part {
  PAWL_PART_ALL = 0,
  PAWL_PART_TRAIN = 1, /* those that are not held out */
  PAWL_PART_HELD = 2,  /* those that are */
};

enum pawl_data_format {
  PAWL_DATA_AUTO = 0,
  PAWL_DATA_LIBSVM = 1,
  PAWL_DATA_VW = 2,
  PAWL_DATA_CRITEO = 3,
  PAWL_DATA_CSV = 4,
  PAWL_DATA_CACHE = 5,
  PAWL_DATA_LDAC = 6,
  PAWL_DATA_UCI = 7,
  PAWL_DATA_TEXT = 8,
};

struct pawl_data_options {
  enum pawl_data_format format; /* AUTO: by the first rows of each file */
  uint32_t hash_bits;           /* of hashed names; default 22, at most 62 */
  const char *label;            /* csv: the label's column, by name or by number from 1; NULL: the first */
  char separator;               /* csv: between columns; 0: a comma, a semicolon or a tab, by the first lines */
  bool labels_optional;         /* see above */
  uint64_t columns;             /* csv, with labels_optional: how many there are with the label's; 0: not known */
  uint64_t label_column;        /* likewise: the number of the label's, from 1, where the file lacks it */
  bool binary;                  /* every value becomes 1 */
  bool unit_rows;               /* then every row is scaled to length 1 */
  uint64_t piece_bytes;     /* of text in a piece, about; 0: chosen by size, between 256 kB and 16 MB, so that there are
                                   at least 64 pieces if the data is large enough */
  uint64_t skip_bad;        /* rows that may be bad */
  enum pawl_data_part part; /* which rows are read, */
  double held_share;        /* of which so many, from 0 to 1, are held out, */
  uint64_t held_seed;       /* by this seed */
  const struct pawl_words
      *words; /* ldac, uci: ids must be below its count. text: what is not in it is left out and counted; NULL:
                                     words are hashed. Retained by the handle */
};

PAWL_API void pawl_data_options_init(struct pawl_data_options *options);

/* Opens a data set. A path may be a pattern (*, ?, [..]), which stands for what it matches by name. Options are copied.
 *   PAWL_NOT_FOUND, PAWL_FORBIDDEN   a file cannot be opened, or a pattern matches nothing: pawl_error_text names it
 *   PAWL_CORRUPT                     a file is of no format that is known, or not of the one that was asked for
 *   PAWL_TRUNCATED                   a file is empty, has no row, or is compressed, or a cache, and cut off
 *   PAWL_UNSUPPORTED                 not a regular file; a cache of another version
 *   PAWL_INVALID                     an option */
PAWL_API pawl_status pawl_data_open(const char *const *paths, size_t count, const struct pawl_data_options *options,
                                    struct pawl_data **data_out);
PAWL_API void pawl_data_close(struct pawl_data *data); /* NULL is fine; batches live on */

struct pawl_data_info {
  size_t files;
  size_t pieces;
  uint64_t bytes;               /* of the files as they lie on disk */
  enum pawl_data_format format; /* of the first file */
  uint64_t fingerprint; /* of names, sizes and options: the same data set, as far as can be told without reading */
  uint64_t rows, entries, max_id; /* if all files are caches, which say so; else 0: nobody has counted */
  uint64_t columns, label_column; /* of the first file, if it is csv: how many, with the label's, and that one's number,
                                     0 if it is lacking; else 0 */
};

PAWL_API void pawl_data_info(const struct pawl_data *data, struct pawl_data_info *info_out);
/* File number `file`, below info.files: its path, which lives with the handle, and how many bytes it had when it was opened. NULL: no such. */
PAWL_API const char *pawl_data_file(const struct pawl_data *data, size_t file, uint64_t *size_out);

/* The name of column `column`, counted from 1, of the first file, if it is csv with a head line: its length, and as much of it in `name` as
 * there is room for, with a 0 behind it. 0: it has none. */
PAWL_API size_t pawl_data_column_name(const struct pawl_data *data, uint64_t column, char *name, size_t room);

PAWL_API const char *pawl_data_format_name(enum pawl_data_format format); /* "libsvm" …; "" for a number that is none */
PAWL_API pawl_status pawl_data_format_parse(const char *name, enum pawl_data_format *format_out);

/* Rows that were read. The entries of row i are starts[i] … starts[i + 1] - 1, with rising ids: values of an id that
 * a row names twice are added up (files whose rows are in order, as most are, pay nothing for it). */
struct pawl_batch {
  size_t rows, entries;
  const uint64_t *starts; /* rows + 1 */
  const uint64_t *ids;
  const float *values;  /* NULL: all 1 */
  const float *labels;  /* as in the file; NAN: it has none */
  const float *weights; /* of rows; NULL: all 1 */
  uint64_t max_id;      /* the highest; 0 if there are no entries */
  uint64_t skipped;     /* bad rows that were left out */
  uint64_t unlabelled;  /* rows without a label */
  uint64_t unknown;     /* text: words that are not in the vocabulary, with repeats */
};

/* Reads a piece. The batch belongs to the caller. PAWL_CORRUPT, PAWL_TRUNCATED (a compressed file ends too early, or
 * a file became shorter), PAWL_IO, PAWL_NOT_FOUND (the file has gone meanwhile), PAWL_NO_MEMORY, PAWL_OUT_OF_SPAN (no
 * such piece). */
PAWL_API pawl_status pawl_data_read(struct pawl_data *data, size_t piece, struct pawl_batch **batch_out);
PAWL_API void pawl_batch_destroy(struct pawl_batch *batch); /* NULL is fine */

/* Reads pieces [begin, end) with `threads` threads (0: as many as processors may be used), and hands each to `take`
 * with its number, in any order, from one thread at a time; the batch is then the receiver's. Ends with the first
 * failure, of reading or of `take`. */
PAWL_API pawl_status pawl_data_read_all(struct pawl_data *data, size_t begin, size_t end, uint32_t threads,
                                        pawl_status (*take)(void *context, size_t piece, struct pawl_batch *batch),
                                        void *context);

/* The entries of a piece by column: those of column i, which is the feature ids[i], are starts[i] … starts[i + 1] -
 * 1, by rising row. Rows are numbered as in the batch of that piece, which has labels and weights. */
struct pawl_columns {
  size_t rows, columns, entries;
  const uint64_t *ids;    /* columns; they rise */
  const uint64_t *starts; /* columns + 1 */
  const uint32_t *in;     /* the row of each entry */
  const float *values;    /* NULL: all 1 */
};

/* Reads a piece by column. A cache has them so; whatever else is read is turned. As pawl_data_read; PAWL_TOO_LARGE:
 * 2^32 rows or more. */
PAWL_API pawl_status pawl_data_read_columns(struct pawl_data *data, size_t piece, struct pawl_columns **columns_out);

/* Turns a batch. It stays the caller's. PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_API pawl_status pawl_columns_of(const struct pawl_batch *batch, struct pawl_columns **columns_out);
PAWL_API void pawl_columns_destroy(struct pawl_columns *columns); /* NULL is fine */

/* Names of features, for people: what hashed ids stood for (vw, csv, criteo), and the columns of csv. Looks for those of `count` ids, which rise,
 * and reads the data for it until all are found. One search at a time on a handle. As pawl_data_read_all. docs/data.md has what names look
 * like. */
struct pawl_names;
PAWL_API pawl_status pawl_data_names(struct pawl_data *data, const uint64_t *ids, size_t count, uint32_t threads,
                                     struct pawl_names **names_out);
PAWL_API const char *pawl_names_at(const struct pawl_names *names, size_t i); /* of ids[i]; NULL: it is not known */
PAWL_API void pawl_names_destroy(struct pawl_names *names);                   /* NULL is fine */

/* Bad rows that were left out so far, by all reads of this handle; and the first of them as `file:line:column: what`
 * ("" if none). */
PAWL_API uint64_t pawl_data_skipped(const struct pawl_data *data);
PAWL_API const char *pawl_data_first_bad(const struct pawl_data *data);

struct pawl_data_progress {
  size_t pieces, of;
  uint64_t rows, entries, bytes_written;
};

/* Writes all of it to a cache file, whole or not at all. `progress` may be NULL; it ends the work if it returns false
 * (PAWL_CANCELLED). As pawl_data_read; PAWL_NO_SPACE. */
PAWL_API pawl_status pawl_data_convert(struct pawl_data *data, const char *path, uint32_t threads,
                                       bool (*progress)(void *context, const struct pawl_data_progress *progress),
                                       void *context);

#ifdef __cplusplus
}
#endif

#endif
