/* The file system interface of the roles.
 *
 * A role (manager, server or client) never calls the operating system. It receives a `struct pwi_files`, a
 * tree of files below a root. On real machines this is a directory (pwi_files_posix_open); in the simulator
 * it is a disk that loses unsynced data, fills up and fails on schedule. An implementation fills in `struct
 * pwi_files_ops`. Users call the functions below, which check paths and arguments first.
 *
 * The operations are those that an append-only log with checksums, replaceable snapshots and checkpoint files
 * need.
 *
 * Paths are relative to the root and use '/': one or more components, none of them empty, "." or "..". Any
 * other path is PAWL_INVALID. Functions that expect a directory accept "." for the root. Strings are read
 * during the call only.
 *
 * Durability. A crash may lose or tear everything that was not synced, in any order:
 *   - the bytes and the size of a file are durable once pwi_file_sync has succeeded after they were written;
 *   - a *name* (a file that was created, renamed or removed, a directory that was made) is durable once
 *     pwi_files_sync_directory has succeeded on the directory that holds it. Syncing the file does not do it;
 *   - pwi_files_rename is atomic: after a crash the name refers to the old file or to the new one, whole,
 *     provided the new one was synced before;
 *   - after a failed sync, everything written since the last successful sync is in doubt, and a later success
 *     does not repair it: the system may have dropped the pages. Write the data again elsewhere, or stop.
 *
 * Blocking. Every call may block for as long as the disk takes; there is no deadline, because no disk call
 * has one. A role with other work does its file operations in small steps.
 *
 * Threads. Any number of threads may use one `struct pwi_files`; a file belongs to one thread at a time.
 *
 * Errors; each function lists the relevant ones:
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

/* Flags for opening; they may be combined. Every file can be read. CREATE, NEW and TRUNCATE require WRITE;
 * otherwise PAWL_INVALID. */
enum pwi_open {
  PWI_OPEN_READ = 0,
  PWI_OPEN_WRITE = 1,    /* the file can be written */
  PWI_OPEN_CREATE = 2,   /* create the file if it does not exist */
  PWI_OPEN_NEW = 4,      /* create the file; PAWL_EXISTS if it exists */
  PWI_OPEN_TRUNCATE = 8, /* delete the contents */
};

/* Implementations embed these structs as the first field of their own. */
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

/* The operations of an implementation; the functions of the same names below document them. Arguments have
 * been checked. Outputs are written on success only.
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

/* --- one file ------------------------------------------------------------------------------------------- */

/* Opens a regular file; anything else is PAWL_INVALID. `how` is an or of enum pwi_open. The file belongs to
 * the caller, who closes it before the `files` it came from. Errors: any. */
PAWL_MUST_USE pawl_status pwi_files_open(struct pwi_files *files, const char *path, unsigned how,
                                         struct pwi_file **file_out);

/* Closes the file without syncing it, and releases its lock. NULL is fine. */
void pwi_file_close(struct pwi_file *file);

/* Reads `size` bytes at `offset`, or fewer if the file ends: `*read_out` is the number of bytes, 0 at or
 * beyond the end. After an error the contents of the buffer are undefined. Errors: PAWL_INVALID (offset +
 * size passes 2^63), PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_file_read(struct pwi_file *file, uint64_t offset, void *buffer, size_t size,
                                        size_t *read_out);

/* Writes all `size` bytes at `offset`; a gap before it reads as zeros. After an error any part may have been
 * written; a log that continues must first truncate the file to its earlier size. Errors: PAWL_INVALID (as
 * read), PAWL_FORBIDDEN, PAWL_NO_SPACE, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_file_write(struct pwi_file *file, uint64_t offset, const void *data, size_t size);

/* Writes at the end. Errors: as write. */
PAWL_MUST_USE pawl_status pwi_file_append(struct pwi_file *file, const void *data, size_t size);

/* Makes all written data durable; see "Durability" for the meaning of a failure. Errors: PAWL_NO_SPACE,
 * PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_file_sync(struct pwi_file *file);

/* Makes the file `size` bytes long: cuts it, or extends it with zeros. Errors: as write. */
PAWL_MUST_USE pawl_status pwi_file_truncate(struct pwi_file *file, uint64_t size);

PAWL_MUST_USE pawl_status pwi_file_size(struct pwi_file *file, uint64_t *size_out);

/* Locks the file until it is closed or the process ends. Never waits: PAWL_EXISTS if another file handle, in
 * this process or another, holds the lock. The lock keeps two managers from using one log; it does not
 * prevent reading or writing. */
PAWL_MUST_USE pawl_status pwi_file_try_lock(struct pwi_file *file);

/* --- names ---------------------------------------------------------------------------------------------- */

/* Renames the file or directory `from` to `to`. An existing file of that name is replaced atomically; open
 * files stay usable. Errors: PAWL_INVALID, PAWL_NOT_FOUND (from), PAWL_EXISTS (to is a directory with
 * something in it), PAWL_NO_SPACE, PAWL_FORBIDDEN, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_files_rename(struct pwi_files *files, const char *from, const char *to);

/* Removes a file, or a directory that is empty. Errors: PAWL_INVALID, PAWL_NOT_FOUND, PAWL_EXISTS (the
 * directory is not empty), PAWL_FORBIDDEN, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_files_remove(struct pwi_files *files, const char *path);

/* Tells whether a file or directory of that name exists. If a directory of the path is missing, the answer is
 * false. */
PAWL_MUST_USE pawl_status pwi_files_exists(struct pwi_files *files, const char *path, bool *exists_out);

/* Creates one directory; its parent must exist. Errors: PAWL_INVALID, PAWL_NOT_FOUND, PAWL_EXISTS,
 * PAWL_NO_SPACE, PAWL_FORBIDDEN, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_files_make_directory(struct pwi_files *files, const char *path);

/* Makes the names in a directory durable. Errors: PAWL_INVALID, PAWL_NOT_FOUND, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_files_sync_directory(struct pwi_files *files, const char *path);

/* Lists the names of all files and directories in a directory, sorted. The caller frees the list with
 * pwi_names_fini. The list is a snapshot, so files may be removed while walking it. Errors: PAWL_INVALID,
 * PAWL_NOT_FOUND, PAWL_FORBIDDEN, PAWL_NO_MEMORY, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_files_list(struct pwi_files *files, const char *path, struct pwi_names *names_out);

/* Replaces the contents of `path` durably: after a crash at any moment the file has the old contents or the
 * new ones. Writes `path` + ".new", syncs it, renames it and syncs the directory. After an error `path` has
 * the old contents or, if only the last step failed, the new ones, not yet durable. The ".new" file is
 * removed if possible, and overwritten next time. At most one call at a time per path. Errors: any. */
PAWL_MUST_USE pawl_status pwi_files_replace(struct pwi_files *files, const char *path, const void *data, size_t size);

/* --- for implementations -------------------------------------------------------------------------------- */

/* Appends a copy of `name`. PAWL_NO_MEMORY leaves the list unchanged. */
PAWL_MUST_USE pawl_status pwi_names_add(struct pwi_names *names, const char *name);

/* Frees the list and leaves it empty. */
void pwi_names_fini(struct pwi_names *names);

/* --- the real thing ------------------------------------------------------------------------------------- */

/* Opens the existing directory `root`. The directory stays open, so renaming it later has no effect. Symbolic
 * links in it are followed, because the operator controls the directory. New files and directories get the
 * permissions that the umask permits. Close it with pwi_files_posix_close, after its files. Errors:
 * PAWL_INVALID (root is not a directory), PAWL_NOT_FOUND, PAWL_FORBIDDEN, PAWL_NO_MEMORY, PAWL_NODE_LIMIT,
 * PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_files_posix_open(const char *root, struct pwi_files **files_out);

/* The same for files with secrets: only the owner can read new files. */
PAWL_MUST_USE pawl_status pwi_files_posix_open_private(const char *root, struct pwi_files **files_out);

/* The same, also private, for directories in which others have files. Below the root no symbolic link is
 * followed, neither in the middle nor at the end of a path; opening or listing a link is PAWL_INVALID.
 * Renaming or removing a link affects the link itself. The path of the root may contain links. */
PAWL_MUST_USE pawl_status pwi_files_posix_open_guarded(const char *root, struct pwi_files **files_out);

/* The same for an open descriptor of the root, opened for reading. The function takes over the descriptor,
 * also on failure. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_files_posix_take_guarded(int directory, struct pwi_files **files_out);

/* Translates errno to a status. */
pawl_status pwi_files_posix_status(int error);

/* NULL is fine. */
void pwi_files_posix_close(struct pwi_files *files);

#endif
