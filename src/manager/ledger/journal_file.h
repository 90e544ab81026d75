/* The journal in a file. It survives a kill of the manager and a power failure of its machine.
 *
 *   head:    8 bytes "pawl-log", u32 version (1), u32 zero, u64 number of first record, u64 base, u64 check
 *   record:  u64 number, u64 size, u64 check; `size` bytes; u64 sum
 *
 * All numbers are little-endian. A file gets its name only when its first `base` bytes are on the disk, so
 * none of these can be missing. `check` is a hash of the fields before it. `sum` is a hash of the record's
 * bytes, seeded with the check of the record and the sum of the record before it. So records of another log,
 * or in another order, are detected. Bits 56 and 57 of every check and sum are set, so the last byte of a
 * head or record is not zero, and no single flipped bit makes it zero.
 *
 * UNFINISHED OR DAMAGED. A crash during an append leaves an unfinished last record. It was never reported as
 * safe, and is cut off. Any other fault is damage: opening fails with PAWL_CORRUPT, nothing is loaded, and
 * the file is not changed. A record is unfinished if
 *   - its head is valid and the file ends before the record does, or the file ends inside the head;
 *   - the last byte of its head is zero, and no valid head of a later record follows anywhere: the file had
 *     grown, but the head was not written;
 *   - its last byte is zero, and the file ends there.
 * A flipped bit causes none of these: it makes a head or a sum wrong, and changes neither lengths nor those
 * last bytes. The pages of one write may reach the disk in any order. So if a record lies in several pages, the
 * end of its head is written after all else is synced.
 *
 * A record is safe when it is written and synced. After any failure nothing more is appended, because the
 * state of pages after a failed sync is unknown. The next manager would read these pages from the cache of
 * the system. So the last record is written once more when the file is opened.
 *
 * To replace records, the journal writes a new file beside the old one, syncs it, and renames it. A third
 * file, which is never renamed, is locked while the journal is open.
 *
 * See docs/manager-log.md. Threads: as manager/ledger/journal.h. Every call blocks until the disk has
 * finished.
 */
#ifndef PWI_MANAGER_LEDGER_JOURNAL_FILE_H
#define PWI_MANAGER_LEDGER_JOURNAL_FILE_H

#include <pawl/status.h>

#include "base/files.h"
#include "base/log.h"
#include "manager/ledger/journal.h"

#define PWI_JOURNAL_VERSION 1
#define PWI_JOURNAL_HEAD_SIZE 40                   /* bytes of the file's head */
#define PWI_JOURNAL_RECORD_HEAD 24                 /* bytes of a record's head */
#define PWI_JOURNAL_RECORD_MAX (UINT64_C(1) << 30) /* maximum bytes of one record */

/* Opens the journal `name` below `files`, or creates it. On success the whole file has been read and checked.
 * `files` and `log` are borrowed until the journal is destroyed. Beside the file there are `name`.lock and,
 * for short times, `name`.new. Faults are logged with their offset. Errors:
 *   PAWL_EXISTS       another process has it open
 *   PAWL_CORRUPT      it is damaged, or not a journal
 *   PAWL_UNSUPPORTED  it was written by another version
 * and those of base/files.h. */
PAWL_MUST_USE pawl_status pwi_journal_file_open(struct pwi_files *files, const char *name, const struct pwi_log *log,
                                                struct pwi_journal **journal_out);

#endif
