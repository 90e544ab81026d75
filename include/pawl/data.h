/* Data: labelled rows of features, read from files by many workers in parallel.
 *
 * A *data set* is one or more files, plain or compressed with gzip, zstd, xz or bzip2, in one of these
 * formats:
 *
 *   libsvm   label id:value id:value …            ascending ids; "id" alone means "id:1"; `# …` ends a row
 *   vw       label [importance] [tag]|space[:scale] name[:value] …
 *                                                 Vowpal Wabbit's text format; names are hashed
 *   criteo   label TAB 13 counts TAB 26 categories
 *                                                 hashed by column and value; a header line is optional
 *   csv      columns separated by commas, semicolons or tabs; a header line is optional. One column is the
 *            label; words are hashed by column
 *   ldac     number id:count id:count …           Blei's LDA-C: one document per line, ids begin at 0
 *   uci      document id count                    UCI's bag of words, after three lines of totals; ids from 1
 *   text     words                                one document per line; words are looked up or hashed
 *                                                 (<pawl/words.h>)
 *   cache    written by pawl_data_convert         loads at memory speed
 *
 * ldac, uci and text hold documents: rows without labels (the label is 0) whose values are word counts. Their
 * ids number the words of a vocabulary from 1. Ids of LDA-C are therefore one higher than in the file. A
 * piece consists of whole documents. Counts are integers of at most PAWL_COUNT_MAX. A row with a larger
 * count, or with a word beyond the vocabulary, is a bad row.
 *
 * PIECES. A data set is divided into pieces of whole rows, numbered from 0 in the order of the files. The
 * division depends only on the files and the options. Every worker that opens the same files sees the same
 * pieces, and a scheduler can assign them by number (<pawl/job.h>). Opening a data set expands patterns and
 * looks at the beginning of each file, but does not parse it. A compressed file is decompressed once on
 * opening, to measure its text, unless it is a zstd file whose frames state their length. A compressed file
 * can only be read from its beginning; a handle that reads its pieces in ascending order decompresses it
 * once.
 *
 * IDS of features are those of the file (LIBSVM's begin at 1), or a hash of the name with `hash_bits` bits.
 * The highest id is 2^63 - 1.
 *
 * LABELS. A row without a label is bad, unless `labels_optional` is set; its label is then NAN. A libsvm row
 * without a label begins with `id:value`, a vw row with the bar or a tag; in a csv row the field is empty. A
 * csv file may lack the label column if `columns` and `label_column` describe the file as it would be with
 * the column: ids of features are then the same as with it. With a table of labels, labels may be words, and
 * batches have their numbers in the table.
 *
 * A byte order mark (UTF-8) at the beginning of a file is skipped. UTF-16 is refused.
 *
 * BAD ROWS. A row that cannot be parsed ends the reading with PAWL_CORRUPT, and pawl_error_text has a message
 * `file:line:column: problem`. With `skip_bad` = n, up to n bad rows of the data set, counted over all reads
 * of the handle, are skipped and counted instead. NaN and infinite values and labels are bad; a row without
 * features is not.
 *
 * THREADS. Any number of threads may use one handle at the same time and read different pieces in parallel.
 *
 * docs/data.md specifies the formats and the layout of the cache.
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
struct pawl_labels;
struct pawl_words;

#define PAWL_ID_MAX INT64_MAX /* highest id of a feature */
/* Highest count of a word in a document. A float represents all integers up to it. */
#define PAWL_COUNT_MAX (1 << 24)

/* Rows held out for validation. The choice depends on a seed, the piece and the row, and is the same for
 * every reader. */
enum pawl_data_part {
  PAWL_PART_ALL = 0,
  PAWL_PART_TRAIN = 1, /* rows that are not held out */
  PAWL_PART_HELD = 2,  /* rows that are held out */
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
  size_t struct_size;             /* set by pawl_data_options_init */
  enum pawl_data_format format;   /* AUTO: detected from the first rows of each file */
  uint32_t hash_bits;             /* bits of hashed names; default 22, at most 62 */
  const char *label;              /* csv: the label column, by name or by number from 1; NULL: the first */
  char separator;                 /* csv: separator of columns; 0: comma, semicolon or tab, detected from the
                                     first lines */
  bool labels_optional;           /* see above */
  uint64_t columns;               /* csv with labels_optional: number of columns including the label; 0: not
                                     known */
  uint64_t label_column;          /* csv with labels_optional: number of the label column, from 1, if the file
                                     lacks it */
  bool binary;                    /* every value becomes 1 */
  bool unit_rows;                 /* scale every row to length 1, after `binary` */
  uint64_t piece_bytes;           /* approximate bytes of text in a piece; 0: chosen by size, between 256 kB
                                     and 16 MB, so that there are at least 64 pieces if the data is large
                                     enough */
  uint64_t skip_bad;              /* number of bad rows to tolerate */
  enum pawl_data_part part;       /* the rows to read */
  double held_share;              /* fraction of rows that are held out, from 0 to 1 */
  uint64_t held_seed;             /* seed for the choice of rows that are held out */
  const struct pawl_words *words; /* the vocabulary; retained by the handle. ldac and uci: ids must be below
                                     its count. text: words that are not in it are skipped and counted; NULL:
                                     words are hashed */
  struct pawl_labels *labels;     /* a table of labels (<pawl/labels.h>), which may be words; retained by the handle.
                                     NULL: labels are numbers */
};

PAWL_API void pawl_data_options_init_sized(struct pawl_data_options *options, size_t struct_size);
static inline void pawl_data_options_init(struct pawl_data_options *options) {
  pawl_data_options_init_sized(options, sizeof *options);
}

/* Opens a data set. A path may be a pattern (*, ?, [..]), which stands for the matching files in the order of
 * their names. Options are copied.
 *   PAWL_NOT_FOUND, PAWL_FORBIDDEN   a file cannot be opened, or a pattern matches nothing: pawl_error_text
 *                                    names it
 *   PAWL_CORRUPT                     a file has no known format, or not the requested one
 *   PAWL_TRUNCATED                   a file is empty, has no row, or is compressed, or a cache, and cut off
 *   PAWL_UNSUPPORTED                 not a regular file; a cache of another version
 *   PAWL_INVALID                     an option is invalid */
PAWL_API PAWL_MUST_USE pawl_status pawl_data_open(const char *const *paths, size_t count,
                                                  const struct pawl_data_options *options, struct pawl_data **data_out);
PAWL_API void pawl_data_close(struct pawl_data *data); /* NULL is allowed; batches remain valid */

struct pawl_data_info {
  size_t files;
  size_t pieces;
  uint64_t bytes;                 /* size of the files on disk */
  enum pawl_data_format format;   /* of the first file */
  uint64_t fingerprint;           /* hash of names, sizes and options: equal for the same data set, as far as
                                     can be told without reading it */
  uint64_t rows, entries, max_id; /* totals if all files are caches; otherwise 0: not counted */
  uint64_t columns, label_column; /* csv only, for the first file: number of columns including the label, and
                                     number of the label column, 0 if it is missing; otherwise 0 */
};

PAWL_API void pawl_data_info(const struct pawl_data *data, struct pawl_data_info *info_out);
/* The path of file number `file`, which is below info.files, and its size when it was opened. The path is
 * valid as long as the handle. NULL if there is no such file. */
PAWL_API const char *pawl_data_file(const struct pawl_data *data, size_t file, uint64_t *size_out);

/* The name of column number `column`, from 1, of the first file, if that is csv with a header line. Returns
 * the length of the name and writes as much of it to `name` as fits, with a final 0. Returns 0 if the column
 * has no name. */
PAWL_API size_t pawl_data_column_name(const struct pawl_data *data, uint64_t column, char *name, size_t room);

/* "libsvm" …; "" for an unknown format. */
PAWL_API const char *pawl_data_format_name(enum pawl_data_format format);
PAWL_API PAWL_MUST_USE pawl_status pawl_data_format_parse(const char *name, enum pawl_data_format *format_out);

/* Rows read from a piece. The entries of row i are starts[i] … starts[i + 1] - 1, with ascending ids. If a
 * row of the file names an id twice, the values are added up; files whose rows are sorted, as most are, pay
 * nothing for this. */
struct pawl_batch {
  size_t rows, entries;
  const uint64_t *starts; /* rows + 1 elements */
  const uint64_t *ids;
  const float *values;  /* NULL: all 1 */
  const float *labels;  /* as in the file, or numbers in the table of labels; NAN: no label */
  const float *weights; /* one per row; NULL: all 1 */
  uint64_t max_id;      /* highest id; 0 if there are no entries */
  uint64_t skipped;     /* number of bad rows that were skipped */
  uint64_t unlabelled;  /* number of rows without a label */
  uint64_t unknown;     /* text: occurrences of words that are not in the vocabulary */
};

/* Reads a piece. The batch belongs to the caller. PAWL_CORRUPT, PAWL_TRUNCATED (a compressed file ends too
 * early, or a file became shorter), PAWL_IO, PAWL_NOT_FOUND (the file was removed), PAWL_NO_MEMORY,
 * PAWL_OUT_OF_SPAN (no such piece). */
PAWL_API PAWL_MUST_USE pawl_status pawl_data_read(struct pawl_data *data, size_t piece, struct pawl_batch **batch_out);
PAWL_API void pawl_batch_destroy(struct pawl_batch *batch); /* NULL is allowed */

/* Reads pieces [begin, end) with `threads` threads (0: one per available processor) and passes each to `take`
 * with its number, in any order, one at a time. `take` owns the batch. The first failure of reading or of
 * `take` ends the call. */
PAWL_API PAWL_MUST_USE pawl_status
pawl_data_read_all(struct pawl_data *data, size_t begin, size_t end, uint32_t threads,
                   pawl_status (*take)(void *context, size_t piece, struct pawl_batch *batch), void *context);

/* The entries of a piece by column. Column i is the feature ids[i]; its entries are starts[i] … starts[i + 1]
 * - 1, by ascending row. Rows are numbered as in the batch of the piece, which has the labels and weights. */
struct pawl_columns {
  size_t rows, columns, entries;
  const uint64_t *ids;    /* one per column, ascending */
  const uint64_t *starts; /* columns + 1 elements */
  const uint32_t *in;     /* the row of each entry */
  const float *values;    /* NULL: all 1 */
};

/* Reads a piece by column. A cache stores columns; other formats are transposed after reading. Errors as
 * pawl_data_read; PAWL_TOO_LARGE for 2^32 rows or more. */
PAWL_API PAWL_MUST_USE pawl_status pawl_data_read_columns(struct pawl_data *data, size_t piece,
                                                          struct pawl_columns **columns_out);

PAWL_API void pawl_columns_destroy(struct pawl_columns *columns); /* NULL is allowed */

/* Finds the names of features, for display: the names behind hashed ids (vw, csv, criteo), and the columns of
 * csv. `ids` are ascending. The function reads data until it has found all names. One search at a time per
 * handle. Errors as pawl_data_read_all. docs/data.md shows the form of names. */
struct pawl_names;
PAWL_API PAWL_MUST_USE pawl_status pawl_data_names(struct pawl_data *data, const uint64_t *ids, size_t count,
                                                   uint32_t threads, struct pawl_names **names_out);
/* Name of ids[i]; NULL: not known. */
PAWL_API const char *pawl_names_at(const struct pawl_names *names, size_t i);
PAWL_API void pawl_names_destroy(struct pawl_names *names); /* NULL is allowed */

/* The number of bad rows that all reads of this handle have skipped so far, and the first of them as
 * `file:line:column: problem` ("" if none). */
PAWL_API uint64_t pawl_data_skipped(const struct pawl_data *data);
PAWL_API const char *pawl_data_first_bad(const struct pawl_data *data);

struct pawl_data_progress {
  size_t pieces, of;
  uint64_t rows, entries, bytes_written;
};

/* Writes the whole data set to a cache file, which is created completely or not at all. `progress` may be
 * NULL; it cancels the work by returning false (PAWL_CANCELLED). Errors as pawl_data_read; PAWL_NO_SPACE. */
PAWL_API PAWL_MUST_USE pawl_status pawl_data_convert(struct pawl_data *data, const char *path, uint32_t threads,
                                                     bool (*progress)(void *context,
                                                                      const struct pawl_data_progress *progress),
                                                     void *context);

#ifdef __cplusplus
}
#endif

#endif
