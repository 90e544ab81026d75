/* The manager's journal in a file: what a manager that was killed, or whose machine lost power, begins with again.
 *
 *   head:    8 bytes "pawl-log", u32 version (1), u32 zero, u64 number of the first record, u64 base, u64 check
 *   record:  u64 number, u64 size, u64 check; `size` bytes; u64 sum
 *
 * All numbers are little-endian. A file gets its name only when its first `base` bytes are on the disk, so of these
 * nothing can be missing. `check` is a hash of the fields before it. `sum` is a hash of the record's bytes that begins
 * with its check and the sum before it: records of another log, or in another order, do not fit. Bits 56 and 57 of every
 * check and sum are set, so that the last byte of a head or record is not zero, and no single flipped bit makes it so.
 *
 * UNFINISHED OR DAMAGED. A crash in the middle of an append leaves a last record that is not whole. It was never said to
 * be safe, and is cut off. Anything else that is wrong is damage: PAWL_CORRUPT, nothing is loaded and the file is left as
 * it is. Unfinished is a record
 *   - that is shorter than its head says, the head itself being sound, or shorter than a head;
 *   - the last byte of whose head is zero, if no sound head of a later record follows anywhere: the file has grown, and
 *     the head was not written;
 *   - the last byte of which is zero, where the file ends.
 * A flipped bit does none of these: it makes a head, or a sum, wrong, and leaves the lengths and those last bytes. Pages
 * of one write may reach the disk in any order, so of a record that is larger than a page the head is written, and
 * synced, after the rest.
 *
 * A record is safe when it is written and synced. After anything has failed nothing more is appended: of the pages that
 * a failed sync was to save nothing is known. That holds for the next manager too, which reads them from the cache; so
 * whoever opens the file writes the last record once more.
 *
 * Records are replaced by writing a file beside it, syncing it, and giving it the name. A third file, which is never
 * renamed, is locked as long as the journal is open.
 *
 * See docs/manager-log.md. Threads: as manager/ledger/journal.h. Every call blocks for as long as the disk takes.
 */
#ifndef PWI_MANAGER_LEDGER_JOURNAL_FILE_H
#define PWI_MANAGER_LEDGER_JOURNAL_FILE_H

#include <pawl/status.h>

#include "base/files.h"
#include "base/log.h"
#include "manager/ledger/journal.h"

#define PWI_JOURNAL_VERSION 1
#define PWI_JOURNAL_HEAD_SIZE 40                   /* of the file */
#define PWI_JOURNAL_RECORD_HEAD 24                 /* of a record */
#define PWI_JOURNAL_RECORD_MAX (UINT64_C(1) << 30) /* bytes of one record */

/* Opens the log `name` below `files`, or begins one. All of it has been read and found sound when this succeeds. Both
 * `files` and `log` are borrowed until the journal is destroyed. Beside it there are `name`.lock and, for a moment,
 * `name`.new. What is wrong is said in the log, with the place. Errors:
 *   PAWL_EXISTS       somebody else has it open
 *   PAWL_CORRUPT      it is damaged, or no log of a manager
 *   PAWL_UNSUPPORTED  it was written by another version
 * and those of base/files.h. */
PAWL_MUST_USE pawl_status pwi_journal_file_open(struct pwi_files *files, const char *name, const struct pwi_log *log,
                                                struct pwi_journal **journal_out);

#endif
