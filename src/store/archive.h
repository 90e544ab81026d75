/* Archives: the files of a checkpoint, one for each node that saves.
 *
 * An archive is a head that says what it belongs to, and then *records*, strings of bytes in the order in which they
 * were written. What the bytes mean is the affair of whoever writes them: this room only keeps them whole. Two kinds of
 * record are told apart: a CHUNK is a piece of what is saved, and a CUT says for which positions of the ring everything
 * is in that came before it. A file, little-endian:
 *
 *   head   "pawlsave", u32 version (1), u32 bytes of the head, checksum included
 *          u64 cluster, u64 checkpoint, u64 node, u64 salt, text name, text base (base/cursor.h)
 *          u64 checksum: XXH3-64 of all that, seed 0
 *   block  u8 kind, u8 packing (0 plain, 1 zstd), u8 whether the record goes on in the next block, u8 0
 *          u32 bytes that follow, u32 bytes when unpacked, at most PWI_ARCHIVE_BLOCK, u32 0
 *          u64 number: 0, 1, 2, …
 *          u64 checksum: XXH3-64 of the bytes that follow, the seed being XXH3-64 of the 24 bytes above, the seed of
 *          which is the checksum of the head
 *          the bytes
 *   …
 *   block  of kind END: u64 blocks before it, u64 bytes of them when unpacked, u64 XXH3-64 of their checksums in a row
 *
 * So a block fits in one place of one file only: one that was changed, left out, doubled, swapped, or taken from another
 * file is found, and so is a file that was cut off or has something behind its end. What is found is found when it is
 * reached: whoever must not use any of a damaged file reads it twice.
 *
 * Memory: a block or two, plus the longest record if it is longer than a block.
 * Time and durability are the caller's: the writer waits for nothing and does not rename anything, but it syncs when it
 * finishes.
 *
 * Threads: a writer or reader belongs to one thread at a time, and so does its file, which is borrowed.
 */
#ifndef PWI_STORE_ARCHIVE_H
#define PWI_STORE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/status.h>

#include "base/files.h"

#define PWI_ARCHIVE_BLOCK ((size_t)1 << 20)                      /* bytes of a record in one block */
#define PWI_ARCHIVE_RECORD_MAX (((uint64_t)1 << 30) + (1 << 24)) /* the largest row, and something around it */
#define PWI_CHECKPOINT_NAME_MAX 63                               /* characters */

/* Names of checkpoints, which are names of directories, and of the files in them: letters, digits, '.', '_' and '-', the
 * first of them not a dot. */
bool pwi_checkpoint_name_is_valid(const char *name);

struct pwi_archive_head {
  uint64_t cluster;
  uint64_t checkpoint;                    /* number; rises from one checkpoint of a cluster to the next */
  uint64_t node;                          /* who saves */
  uint64_t salt;                          /* drawn for each file, so that two of the same names differ */
  char name[PWI_CHECKPOINT_NAME_MAX + 1]; /* of the checkpoint */
  char base[PWI_CHECKPOINT_NAME_MAX + 1]; /* of the one that it is an addition to; "": it stands alone */
};

enum pwi_archive_kind {
  PWI_ARCHIVE_CHUNK = 1,
  PWI_ARCHIVE_CUT = 2,
  PWI_ARCHIVE_END = 3, /* read only: there are no more records, and all is well */
};

struct pwi_archive_figures {
  uint64_t size;     /* bytes of the file */
  uint64_t records;  /* END not counted */
  uint64_t plain;    /* bytes of records */
  uint64_t checksum; /* of the last block, and so of everything */
};

/* --- writing ---------------------------------------------------------------------------------------------------- */

struct pwi_archive_writer;

/* Writes from the start of an empty file. With `pack` blocks are compressed where that makes them smaller. PAWL_INVALID
 * (a name), PAWL_NO_MEMORY; nothing is written yet. */
PAWL_MUST_USE pawl_status pwi_archive_create(struct pwi_file *file, const struct pwi_archive_head *head, bool pack,
                                             struct pwi_archive_writer **writer_out);

/* Appends a record, which has at least one byte and at most PWI_ARCHIVE_RECORD_MAX (PAWL_TOO_LARGE). The first failure to
 * write stays: every later call returns it. Errors: those of pwi_file_write. */
PAWL_MUST_USE pawl_status pwi_archive_write(struct pwi_archive_writer *writer, enum pwi_archive_kind kind,
                                            const void *bytes, size_t size);

/* Bytes of the file so far, those in the buffer included: what a caller who throttles counts. */
uint64_t pwi_archive_written(const struct pwi_archive_writer *writer);

/* Writes the end and syncs the file. Nothing more can be written. Its name is durable once the caller has synced the
 * directory. */
PAWL_MUST_USE pawl_status pwi_archive_finish(struct pwi_archive_writer *writer,
                                             struct pwi_archive_figures *figures_out);

/* What was not finished is no archive. NULL is fine. */
void pwi_archive_writer_destroy(struct pwi_archive_writer *writer);

/* --- reading ---------------------------------------------------------------------------------------------------- */

struct pwi_archive_reader;

/* Reads the head; safe on any file. PAWL_TRUNCATED, PAWL_CORRUPT (damaged, or no archive at all), PAWL_UNSUPPORTED (of a
 * later version), PAWL_NO_MEMORY, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_archive_open(struct pwi_file *file, struct pwi_archive_reader **reader_out);

/* Borrowed until the reader is closed. */
const struct pwi_archive_head *pwi_archive_head(const struct pwi_archive_reader *reader);

struct pwi_archive_record {
  enum pwi_archive_kind kind;
  const void *bytes; /* valid until the next call; NULL for END */
  size_t size;
  uint64_t offset; /* where in the file it begins, for messages */
};

/* The next record, or again and again PWI_ARCHIVE_END. After a failure it stays one. PAWL_TRUNCATED, PAWL_CORRUPT,
 * PAWL_NO_MEMORY, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_archive_next(struct pwi_archive_reader *reader, struct pwi_archive_record *record_out);

/* After END. */
struct pwi_archive_figures pwi_archive_figures(const struct pwi_archive_reader *reader);

/* NULL is fine. */
void pwi_archive_close(struct pwi_archive_reader *reader);

/* --- cuts ------------------------------------------------------------------------------------------------------- */

/* Of these positions the file has everything, as it was when they had come to this number of this epoch. */
struct pwi_archive_cut {
  struct pawl_range positions;
  uint64_t epoch;
  uint64_t sequence;
};

#define PWI_ARCHIVE_CUT_BYTES 32 /* four u64: begin, end, epoch, sequence */

PAWL_MUST_USE pawl_status pwi_archive_write_cut(struct pwi_archive_writer *writer, const struct pwi_archive_cut *cut);

/* PAWL_CORRUPT for a record that is no cut, or a cut of no positions. */
PAWL_MUST_USE pawl_status pwi_archive_read_cut(const struct pwi_archive_record *record,
                                               struct pwi_archive_cut *cut_out);

#endif
