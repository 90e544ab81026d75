/* Archives: the files of a checkpoint, one per node.
 *
 * An archive has a head that identifies it, followed by *records*: byte strings in the order in which they
 * were written. The writer defines their contents; this module only protects their integrity. There are two
 * kinds of records: a CHUNK is a part of the saved data, and a CUT names positions of the ring whose data is
 * complete in the records before it. The layout of a file, little-endian:
 *
 *   head   "pawlsave", u32 version (1), u32 bytes of the head, checksum included
 *          u64 cluster, u64 checkpoint, u64 node, u64 salt, text name, text base (base/cursor.h)
 *          u64 checksum: XXH3-64 of all that, seed 0
 *   block  u8 kind, u8 packing (0 plain, 1 zstd), u8 whether the record goes on in the next block, u8 0 u32
 *          bytes that follow, u32 bytes when unpacked, at most PWI_ARCHIVE_BLOCK, u32 0 u64 number: 0, 1, 2,
 *          … u64 checksum: XXH3-64 of the bytes that follow, the seed being XXH3-64 of the 24 bytes above,
 *          the seed of which is the checksum of the head the bytes
 *   …
 *   block  of kind END: u64 blocks before it, u64 bytes of them when unpacked, u64 XXH3-64 of their checksums
 *          in a row
 *
 * A block is therefore valid in one place of one file only. The reader detects blocks that were changed,
 * omitted, duplicated, swapped or taken from another file, and files that were truncated or extended. It
 * detects damage when it reaches it; a caller that must not use any part of a damaged file has to read it
 * twice.
 *
 * Memory: one or two blocks, plus the longest record if it is longer than a block. The writer syncs the file
 * when it finishes; renaming the file and limiting the rate are left to the caller.
 *
 * Threads: a writer or reader, with its borrowed file, belongs to one thread at a time.
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
#define PWI_ARCHIVE_RECORD_MAX (((uint64_t)1 << 30) + (1 << 24)) /* the largest row and some overhead */
#define PWI_CHECKPOINT_NAME_MAX 63                               /* characters */

/* Checks the name of a checkpoint, which is the name of its directory, or of a file in it: letters, digits,
 * '.', '_' and '-', not beginning with a dot. */
bool pwi_checkpoint_name_is_valid(const char *name);

struct pwi_archive_head {
  uint64_t cluster;
  uint64_t checkpoint;                    /* number of the checkpoint; increases within a cluster */
  uint64_t node;                          /* the node that saves */
  uint64_t salt;                          /* random number per file, so that files of equal names differ */
  char name[PWI_CHECKPOINT_NAME_MAX + 1]; /* name of the checkpoint */
  char base[PWI_CHECKPOINT_NAME_MAX + 1]; /* name of the checkpoint that this one is incremental to; "":
                                             none */
};

enum pwi_archive_kind {
  PWI_ARCHIVE_CHUNK = 1,
  PWI_ARCHIVE_CUT = 2,
  PWI_ARCHIVE_END = 3, /* only from the reader: there are no more records, and the file is intact */
};

struct pwi_archive_figures {
  uint64_t size;     /* bytes of the file */
  uint64_t records;  /* number of records, without END */
  uint64_t plain;    /* bytes of records */
  uint64_t checksum; /* of the last block, which covers the whole file */
};

/* --- writing -------------------------------------------------------------------------------------------- */

struct pwi_archive_writer;

/* Opens a writer at the start of an empty file; nothing is written yet. With `pack`, blocks are compressed if
 * this makes them smaller. PAWL_INVALID (a name), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_archive_create(struct pwi_file *file, const struct pwi_archive_head *head, bool pack,
                                             struct pwi_archive_writer **writer_out);

/* Appends a record of at least one byte and at most PWI_ARCHIVE_RECORD_MAX (PAWL_TOO_LARGE). After a failed
 * write every later call returns the same failure. Errors: those of pwi_file_write. */
PAWL_MUST_USE pawl_status pwi_archive_write(struct pwi_archive_writer *writer, enum pwi_archive_kind kind,
                                            const void *bytes, size_t size);

/* The bytes of the file so far, including buffered ones, for callers that limit the rate. */
uint64_t pwi_archive_written(const struct pwi_archive_writer *writer);

/* Writes the END block and syncs the file. Nothing more can be written. The name is durable once the caller
 * has synced the directory. */
PAWL_MUST_USE pawl_status pwi_archive_finish(struct pwi_archive_writer *writer,
                                             struct pwi_archive_figures *figures_out);

/* Frees the writer. A file that was not finished is not a valid archive. NULL is fine. */
void pwi_archive_writer_destroy(struct pwi_archive_writer *writer);

/* --- reading -------------------------------------------------------------------------------------------- */

struct pwi_archive_reader;

/* Opens a reader and reads the head; safe on any file. PAWL_TRUNCATED, PAWL_CORRUPT (damaged, or not an
 * archive), PAWL_UNSUPPORTED (a later version), PAWL_NO_MEMORY, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_archive_open(struct pwi_file *file, struct pwi_archive_reader **reader_out);

/* Borrowed until the reader is closed. */
const struct pwi_archive_head *pwi_archive_head(const struct pwi_archive_reader *reader);

struct pwi_archive_record {
  enum pwi_archive_kind kind;
  const void *bytes; /* valid until the next call; NULL for END */
  size_t size;
  uint64_t offset; /* offset in the file, for messages */
};

/* Reads the next record; at the end it returns PWI_ARCHIVE_END on every call. After a failure every call
 * fails. PAWL_TRUNCATED, PAWL_CORRUPT, PAWL_NO_MEMORY, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_archive_next(struct pwi_archive_reader *reader, struct pwi_archive_record *record_out);

/* After END. */
struct pwi_archive_figures pwi_archive_figures(const struct pwi_archive_reader *reader);

/* NULL is fine. */
void pwi_archive_close(struct pwi_archive_reader *reader);

/* --- cuts ----------------------------------------------------------------------------------------------- */

/* A cut: the file has all data of these positions, as of this sequence number in this epoch. */
struct pwi_archive_cut {
  struct pawl_range positions;
  uint64_t epoch;
  uint64_t sequence;
};

#define PWI_ARCHIVE_CUT_BYTES 32 /* four u64: begin, end, epoch, sequence */

PAWL_MUST_USE pawl_status pwi_archive_write_cut(struct pwi_archive_writer *writer, const struct pwi_archive_cut *cut);

/* PAWL_CORRUPT if the record is not a cut or has no positions. */
PAWL_MUST_USE pawl_status pwi_archive_read_cut(const struct pwi_archive_record *record,
                                               struct pwi_archive_cut *cut_out);

#endif
