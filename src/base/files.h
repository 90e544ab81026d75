/* Files, as roles see them.
 *
 * A role never calls the operating system: it is handed a `struct pwi_files`, a tree of files below some root. On real
 * machines that is a directory (pwi_files_posix_open); in the simulator it is a disk that loses what was not synced,
 * fills up and fails on schedule. Whoever implements one fills in `struct pwi_files_ops`; whoever uses one calls the
 * functions below, which check paths and arguments first.
 *
 * The set of operations is what a checksummed append log, snapshots that replace one another and checkpoint files need.
 *
 * Paths are relative to the root and use '/': one or more components, none of them empty, "." or "..". Any other path
 * is PAWL_INVALID. Where a directory is meant, "." is the root. A string is read during the call only.
 *
 * Durability. A crash may lose or tear everything that was not synced, in any order:
 *   - the bytes and the size of a file are durable once pwi_file_sync has succeeded after they were written;
 *   - a *name* (a file that was created, renamed or removed, a directory that was made) is durable once
 *     pwi_files_sync_directory has succeeded on the directory that holds it. Syncing the file does not do it;
 *   - pwi_files_rename is atomic: after a crash the name refers to the old file or to the new one, whole, provided the
 *     new one was synced before;
 *   - after a sync has failed, nothing is known of what was written since the last that succeeded, and a later success
 *     does not repair it: the system may have dropped the pages. Write it again elsewhere, or stop.
 *
 * Blocking. Every call may block for as long as the disk takes; there is no deadline, because no disk call has one. A
 * role with other things to do works in small pieces.
 *
 * Threads. One `struct pwi_files` may be used by any number of threads; one file by one thread at a time.
 *
 * Errors, each call naming those that matter to it:
 *   PAWL_INVALID     the path is not allowed, or names a directory where a file is meant, or the reverse
 *   PAWL_NOT_FOUND   no such file or directory, or a directory on the way is missing
 *   PAWL_EXISTS      it is there already, or (rename, remove) a directory that is not empty is in the way
 *   PAWL_NO_SPACE    the disk or the quota is full, or the file cannot grow that far
 *   PAWL_FORBIDDEN   permissions, or a read-only file system, or a file that was not opened for writing
 *   PAWL_NO_MEMORY   out of memory
 *   PAWL_NODE_LIMIT  too many open files
 *   PAWL_IO          everything else: the disk failed
 */
#ifndef PWI_BASE_FILES_H
#define PWI_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

/* How to open; may be combined. Every file can be read. Without PWI_OPEN_WRITE the other three are PAWL_INVALID. */
enum pwi_open {
  PWI_OPEN_READ = 0,
  PWI_OPEN_WRITE = 1,    /* and to write */
  PWI_OPEN_CREATE = 2,   /* create it if it is not there */
  PWI_OPEN_NEW = 4,      /* create it; PAWL_EXISTS if it is there */
  PWI_OPEN_TRUNCATE = 8, /* throw away what it holds */
};

/* Implementations put these first in structs of their own. */
struct pwi_files {
  const struct pwi_files_ops *ops;
};

struct pwi_file {
  const struct pwi_files_ops *ops;
};

/* Names, sorted bytewise. A struct of zeros is an empty list. */
struct pwi_names {
  char **items;
  size_t count;
  size_t room;
};

/* Each does what the function of its name below says. Arguments have been checked; outputs are written on success only.
 */
struct pwi_files_ops {
  pawl_status (*open)(struct pwi_files *files, const char *path, unsigned how, struct pwi_file **file_out);
  void (*close)(struct pwi_file *file);
  pawl_status (*read)(struct pwi_file *file, uint64_t offset, void *buffer, size_t size, size_t *read_out);
  pawl_status (*write)(struct pwi_file *file, uint64_t offset, const void *data, size_t size);
  pawl_status (*sync)(struct pwi_file *file);
  pawl_status (*truncate)(struct pwi_file *file, uint64_t size);
  pawl_status (*size)(struct pwi_file *file, uint64_t *size_out);
  pawl_status (*try_lock)(struct pwi_file *file);
  pawl_status (*rename)(struct pwi_files *files, const char *from, const char *to);
  pawl_status (*remove)(struct pwi_files *files, const char *path);
  pawl_status (*exists)(struct pwi_files *files, const char *path, bool *exists_out);
  pawl_status (*make_directory)(struct pwi_files *files, const char *path);
  pawl_status (*sync_directory)(struct pwi_files *files, const char *path);
  pawl_status (*list)(struct pwi_files *files, const char *path, struct pwi_names *names); /* in any order */
};

/* --- one file --------------------------------------------------------------------------------------------------- */

/* Opens a regular file; anything else is PAWL_INVALID. `how` is an or of enum pwi_open. The file belongs to the caller,
 * who closes it before the `files` it came from. Errors: any. */
PAWL_MUST_USE pawl_status pwi_files_open(struct pwi_files *files, const char *path, unsigned how,
                                         struct pwi_file **file_out);

/* Closes without syncing, and gives a lock up. NULL is fine. */
void pwi_file_close(struct pwi_file *file);

/* Reads `size` bytes from `offset` on. Fewer only if the file ends there: `*read_out` says how many, 0 at or past the
 * end. On an error the buffer may have been written to. Errors: PAWL_INVALID (offset + size passes 2^63), PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_file_read(struct pwi_file *file, uint64_t offset, void *buffer, size_t size,
                                        size_t *read_out);

/* Writes all `size` bytes at `offset`; a gap before it reads as zeros. On an error any part may have been written, and
 * a log that wants to go on truncates back to where it was. Errors: PAWL_INVALID (as read), PAWL_FORBIDDEN,
 * PAWL_NO_SPACE, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_file_write(struct pwi_file *file, uint64_t offset, const void *data, size_t size);

/* Writes at the end. Errors: as write. */
PAWL_MUST_USE pawl_status pwi_file_append(struct pwi_file *file, const void *data, size_t size);

/* Makes what was written durable; see above for what a failure means. Errors: PAWL_NO_SPACE, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_file_sync(struct pwi_file *file);

/* Makes the file `size` bytes long: cuts it, or extends it with zeros. Errors: as write. */
PAWL_MUST_USE pawl_status pwi_file_truncate(struct pwi_file *file, uint64_t size);

PAWL_MUST_USE pawl_status pwi_file_size(struct pwi_file *file, uint64_t *size_out);

/* Locks the file until it is closed or the process ends, against everybody else who tries this, in this process or
 * another. Never waits: PAWL_EXISTS if somebody holds the lock. It keeps two managers off one log; it does not keep
 * anybody from reading or writing. */
PAWL_MUST_USE pawl_status pwi_file_try_lock(struct pwi_file *file);

/* --- names ------------------------------------------------------------------------------------------------------ */

/* Gives the file or directory `from` the name `to`. A file that had that name is replaced, atomically; files that are
 * open stay usable. Errors: PAWL_INVALID, PAWL_NOT_FOUND (from), PAWL_EXISTS (to is a directory with something in it),
 * PAWL_NO_SPACE, PAWL_FORBIDDEN, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_files_rename(struct pwi_files *files, const char *from, const char *to);

/* Removes a file, or a directory that is empty. Errors: PAWL_INVALID, PAWL_NOT_FOUND, PAWL_EXISTS (the directory is not
 * empty), PAWL_FORBIDDEN, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_files_remove(struct pwi_files *files, const char *path);

/* Whether a file or directory of that name is there. A missing directory on the way is a no, not an error. */
PAWL_MUST_USE pawl_status pwi_files_exists(struct pwi_files *files, const char *path, bool *exists_out);

/* Makes one directory; the one above must be there. Errors: PAWL_INVALID, PAWL_NOT_FOUND, PAWL_EXISTS, PAWL_NO_SPACE,
 * PAWL_FORBIDDEN, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_files_make_directory(struct pwi_files *files, const char *path);

/* Makes the names in a directory durable. Errors: PAWL_INVALID, PAWL_NOT_FOUND, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_files_sync_directory(struct pwi_files *files, const char *path);

/* The names of all files and directories in a directory, sorted. The list belongs to the caller, who ends it with
 * pwi_names_fini; it is a snapshot, so files may be removed while walking it. Errors: PAWL_INVALID, PAWL_NOT_FOUND,
 * PAWL_FORBIDDEN, PAWL_NO_MEMORY, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_files_list(struct pwi_files *files, const char *path, struct pwi_names *names_out);

/* Makes `path` hold exactly these bytes, durably: after a crash at any moment it holds the old bytes or the new ones.
 * Writes `path` + ".new", syncs, renames, syncs the directory. On an error `path` holds the old bytes or, if only the
 * last step failed, the new ones, not yet durable; the ".new" file is removed if possible, and overwritten next time.
 * At most one call at a time for one path. Errors: any. */
PAWL_MUST_USE pawl_status pwi_files_replace(struct pwi_files *files, const char *path, const void *data, size_t size);

/* --- for implementations ---------------------------------------------------------------------------------------- */

/* Appends a copy of `name`. On PAWL_NO_MEMORY the list is what it was. */
PAWL_MUST_USE pawl_status pwi_names_add(struct pwi_names *names, const char *name);

/* Frees the list and leaves it empty. */
void pwi_names_fini(struct pwi_names *names);

/* --- the real thing --------------------------------------------------------------------------------------------- */

/* Files below the directory `root`, which must be there. It is opened once: renaming it later changes nothing. Symbolic
 * links in it are followed: the directory is the operator's. New files and directories get the permissions that the
 * process' umask leaves. End it with pwi_files_posix_close, after its files are closed. Errors: PAWL_INVALID (root is
 * not a directory), PAWL_NOT_FOUND, PAWL_FORBIDDEN, PAWL_NO_MEMORY, PAWL_NODE_LIMIT, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_files_posix_open(const char *root, struct pwi_files **files_out);

/* The same for files with secrets in them: those that are new can be read by their owner only. */
PAWL_MUST_USE pawl_status pwi_files_posix_open_private(const char *root, struct pwi_files **files_out);

/* The same, private too, for directories in which others have files of their own: below the root no symbolic link is
 * followed, neither on the way nor at its end, and one that is there is PAWL_INVALID to whoever opens or lists it. It can be
 * renamed and removed, itself and not what it leads to. The root itself may be reached by a link. */
PAWL_MUST_USE pawl_status pwi_files_posix_open_guarded(const char *root, struct pwi_files **files_out);

/* The same for a descriptor of the root, opened to be read, which is taken: also on failure. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_files_posix_take_guarded(int directory, struct pwi_files **files_out);

/* What errno means in the words above. */
pawl_status pwi_files_posix_status(int error);

/* NULL is fine. */
void pwi_files_posix_close(struct pwi_files *files);

#endif
