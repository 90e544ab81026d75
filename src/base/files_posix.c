/* struct pwi_files over a directory of the operating system. Every call is relative to one descriptor of the
 * root, so that neither a change of the working directory nor a renamed root has an effect. A guarded tree
 * follows no symbolic link below its root: it opens the directories of a path one by one. */
#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

struct posix_files {
  struct pwi_files base;
  int root;
  mode_t mode; /* of new files and directories, before the umask */
  bool is_guarded;
};

struct posix_file {
  struct pwi_file base;
  int descriptor;
};

static const struct pwi_files_ops posix_ops;

static int root_of(struct pwi_files *files) { return ((struct posix_files *)files)->root; }

static mode_t mode_of(struct pwi_files *files) { return ((struct posix_files *)files)->mode; }

static bool is_guarded(struct pwi_files *files) { return ((struct posix_files *)files)->is_guarded; }

static int descriptor_of(struct pwi_file *file) { return ((struct posix_file *)file)->descriptor; }

static pawl_status status_of(int error) {
  switch (error) {
  case ENOENT:
    return PAWL_NOT_FOUND;
  case EEXIST:
  case ENOTEMPTY:
    return PAWL_EXISTS;
  case ENOSPC:
  case EDQUOT:
  case EFBIG:
    return PAWL_NO_SPACE;
  case EACCES:
  case EPERM:
  case EROFS:
  case EBADF: /* the descriptor is open, so it was not opened for writing */
    return PAWL_FORBIDDEN;
  case ENOMEM:
    return PAWL_NO_MEMORY;
  case EMFILE:
  case ENFILE:
    return PAWL_NODE_LIMIT;
  case EINVAL:
  case EISDIR:
  case ENOTDIR:
  case ENAMETOOLONG:
  case ELOOP:
    return PAWL_INVALID;
  default:
    return PAWL_IO;
  }
}

/* Negative if it failed; errno then says why. */
static int open_at(int directory, const char *path, int flags, mode_t mode) {
  int descriptor;
  do descriptor = openat(directory, path, flags | O_CLOEXEC, mode & 0666);
  while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

/* A resolved path: a directory and a name in it. */
struct resolved_path {
  int directory;
  const char *name;
  bool is_open; /* the directory was opened for this call and must be closed */
};

static void leave(const struct resolved_path *place) {
  int error = errno;
  if (place->is_open) close(place->directory);
  errno = error;
}

/* Enters a subdirectory, which must not be a link. Returns false with errno on failure. */
static bool go_down(struct resolved_path *place, size_t length) {
  char name[NAME_MAX + 1];
  if (length > NAME_MAX) {
    errno = ENAMETOOLONG;
    return false;
  }
  memcpy(name, place->name, length);
  name[length] = '\0';
  int below = open_at(place->directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
  leave(place);
  place->is_open = below >= 0;
  if (below < 0) return false;
  place->directory = below;
  place->name += length + 1;
  return true;
}

/* Returns false with errno on failure; nothing needs to be closed then. */
static bool reach(struct pwi_files *files, const char *path, struct resolved_path *place) {
  *place = (struct resolved_path){.directory = root_of(files), .name = path};
  if (!is_guarded(files)) return true;
  for (const char *slash; (slash = strchr(place->name, '/'));)
    if (!go_down(place, (size_t)(slash - place->name))) return false;
  return true;
}

static int link_flag(struct pwi_files *files) { return is_guarded(files) ? O_NOFOLLOW : 0; }

/* Negative if it failed; errno then says why. */
static int open_path(struct pwi_files *files, const char *path, int flags) {
  struct resolved_path place;
  if (!reach(files, path, &place)) return -1;
  int descriptor = open_at(place.directory, place.name, flags | link_flag(files), mode_of(files));
  leave(&place);
  return descriptor;
}

static int flags_of(unsigned how) {
  int flags = how & PWI_OPEN_WRITE ? O_RDWR : O_RDONLY;
  if (how & PWI_OPEN_CREATE) flags |= O_CREAT;
  if (how & PWI_OPEN_NEW) flags |= O_CREAT | O_EXCL;
  if (how & PWI_OPEN_TRUNCATE) flags |= O_TRUNC;
  return flags;
}

static bool is_regular(int descriptor) {
  struct stat about;
  return fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
}

/* Opens without blocking, so that a pipe is refused and does not block the call. */
static pawl_status posix_open(struct pwi_files *files, const char *path, unsigned how, struct pwi_file **file_out) {
  int descriptor = open_path(files, path, flags_of(how) | O_NONBLOCK);
  if (descriptor < 0) return status_of(errno);
  pawl_status status = PAWL_INVALID;
  if (!is_regular(descriptor)) goto close_descriptor;
  status = PAWL_NO_MEMORY;
  struct posix_file *file = pwi_alloc(sizeof *file);
  if (!file) goto close_descriptor;
  *file = (struct posix_file){{&posix_ops}, descriptor};
  *file_out = &file->base;
  return PAWL_OK;
close_descriptor:
  close(descriptor);
  return status;
}

/* close is not repeated after EINTR: Linux has released the descriptor by then, and another thread may
 * already use it. */
static void posix_close(struct pwi_file *file) {
  close(descriptor_of(file));
  pwi_free(file);
}

static pawl_status posix_read(struct pwi_file *file, uint64_t offset, void *buffer, size_t size, size_t *read_out) {
  size_t done = 0;
  while (done < size) {
    ssize_t got = pread(descriptor_of(file), (char *)buffer + done, size - done, (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return status_of(errno);
    if (got == 0) break;
    done += (size_t)got;
  }
  *read_out = done;
  return PAWL_OK;
}

static pawl_status posix_write(struct pwi_file *file, uint64_t offset, const void *data, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t put = pwrite(descriptor_of(file), (const char *)data + done, size - done, (off_t)(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return status_of(errno);
    if (put == 0) return PAWL_IO;
    done += (size_t)put;
  }
  return PAWL_OK;
}

static pawl_status sync_descriptor(int descriptor) {
  int result;
  do result = fsync(descriptor);
  while (result < 0 && errno == EINTR);
  return result < 0 ? status_of(errno) : PAWL_OK;
}

static pawl_status posix_sync(struct pwi_file *file) { return sync_descriptor(descriptor_of(file)); }

/* EINVAL means that the file was opened for reading only; the length has been checked. */
static pawl_status posix_truncate(struct pwi_file *file, uint64_t size) {
  int result;
  do result = ftruncate(descriptor_of(file), (off_t)size);
  while (result < 0 && errno == EINTR);
  if (result == 0) return PAWL_OK;
  return errno == EINVAL ? PAWL_FORBIDDEN : status_of(errno);
}

static pawl_status posix_size(struct pwi_file *file, uint64_t *size_out) {
  struct stat about;
  if (fstat(descriptor_of(file), &about) < 0) return status_of(errno);
  *size_out = (uint64_t)about.st_size;
  return PAWL_OK;
}

/* flock, not fcntl: its locks belong to the open file, so that they hold within one process too, and closing
 * another descriptor of the same file does not drop them. */
static pawl_status posix_try_lock(struct pwi_file *file) {
  int result;
  do result = flock(descriptor_of(file), LOCK_EX | LOCK_NB);
  while (result < 0 && errno == EINTR);
  if (result == 0) return PAWL_OK;
  return errno == EWOULDBLOCK ? PAWL_EXISTS : status_of(errno);
}

static pawl_status posix_rename(struct pwi_files *files, const char *from, const char *to) {
  struct resolved_path source, target;
  if (!reach(files, from, &source)) return status_of(errno);
  bool is_done = reach(files, to, &target);
  if (is_done) {
    is_done = renameat(source.directory, source.name, target.directory, target.name) == 0;
    leave(&target);
  }
  leave(&source);
  return is_done ? PAWL_OK : status_of(errno);
}

/* Unlinking a directory is refused with EISDIR on Linux, with EPERM on systems that follow POSIX. */
static pawl_status remove_at(int directory, const char *name) {
  if (unlinkat(directory, name, 0) == 0) return PAWL_OK;
  int error = errno;
  if (error != EISDIR && error != EPERM) return status_of(error);
  if (unlinkat(directory, name, AT_REMOVEDIR) == 0) return PAWL_OK;
  return status_of(errno == ENOTDIR ? error : errno);
}

static pawl_status posix_remove(struct pwi_files *files, const char *path) {
  struct resolved_path place;
  if (!reach(files, path, &place)) return status_of(errno);
  pawl_status status = remove_at(place.directory, place.name);
  leave(&place);
  return status;
}

/* In a guarded tree a link exists, even if its target does not. */
static pawl_status posix_exists(struct pwi_files *files, const char *path, bool *exists_out) {
  struct stat about;
  struct resolved_path place;
  bool found = reach(files, path, &place);
  if (found) {
    found = fstatat(place.directory, place.name, &about, is_guarded(files) ? AT_SYMLINK_NOFOLLOW : 0) == 0;
    leave(&place);
  }
  if (!found && errno != ENOENT && errno != ENOTDIR) return status_of(errno);
  *exists_out = found;
  return PAWL_OK;
}

static pawl_status posix_make_directory(struct pwi_files *files, const char *path) {
  struct resolved_path place;
  if (!reach(files, path, &place)) return status_of(errno);
  pawl_status status = mkdirat(place.directory, place.name, mode_of(files)) < 0 ? status_of(errno) : PAWL_OK;
  leave(&place);
  return status;
}

static pawl_status posix_sync_directory(struct pwi_files *files, const char *path) {
  int descriptor = open_path(files, path, O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return status_of(errno);
  pawl_status status = sync_descriptor(descriptor);
  close(descriptor);
  return status;
}

static pawl_status add_entries(DIR *directory, struct pwi_names *names) {
  for (;;) {
    errno = 0;
    struct dirent *entry = readdir(directory);
    if (!entry) return errno ? status_of(errno) : PAWL_OK;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    pawl_status status = pwi_names_add(names, entry->d_name);
    if (status) return status;
  }
}

static pawl_status posix_list(struct pwi_files *files, const char *path, struct pwi_names *names) {
  int descriptor = open_path(files, path, O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return status_of(errno);
  DIR *directory = fdopendir(descriptor);
  if (!directory) {
    pawl_status status = status_of(errno);
    close(descriptor);
    return status;
  }
  pawl_status status = add_entries(directory, names);
  closedir(directory);
  return status;
}

static const struct pwi_files_ops posix_ops = {
    .open = posix_open,
    .close = posix_close,
    .read = posix_read,
    .write = posix_write,
    .sync = posix_sync,
    .truncate = posix_truncate,
    .size = posix_size,
    .try_lock = posix_try_lock,
    .rename = posix_rename,
    .remove = posix_remove,
    .exists = posix_exists,
    .make_directory = posix_make_directory,
    .sync_directory = posix_sync_directory,
    .list = posix_list,
};

/* Takes the descriptor, also on failure. */
static pawl_status wrap_root(int descriptor, mode_t mode, bool is_guarded, struct pwi_files **files_out) {
  struct posix_files *files = pwi_alloc(sizeof *files);
  if (!files) {
    close(descriptor);
    return PAWL_NO_MEMORY;
  }
  *files = (struct posix_files){{&posix_ops}, descriptor, mode, is_guarded};
  *files_out = &files->base;
  return PAWL_OK;
}

static pawl_status open_root(const char *root, mode_t mode, struct pwi_files **files_out) {
  int descriptor = open_at(AT_FDCWD, root, O_RDONLY | O_DIRECTORY, 0);
  return descriptor < 0 ? status_of(errno) : wrap_root(descriptor, mode, false, files_out);
}

pawl_status pwi_files_posix_open(const char *root, struct pwi_files **files_out) {
  return open_root(root, 0777, files_out);
}

pawl_status pwi_files_posix_open_private(const char *root, struct pwi_files **files_out) {
  return open_root(root, 0700, files_out);
}

pawl_status pwi_files_posix_take_guarded(int directory, struct pwi_files **files_out) {
  return wrap_root(directory, 0700, true, files_out);
}

pawl_status pwi_files_posix_open_guarded(const char *root, struct pwi_files **files_out) {
  int descriptor = open_at(AT_FDCWD, root, O_RDONLY | O_DIRECTORY, 0);
  return descriptor < 0 ? status_of(errno) : pwi_files_posix_take_guarded(descriptor, files_out);
}

pawl_status pwi_files_posix_status(int error) { return status_of(error); }

void pwi_files_posix_close(struct pwi_files *files) {
  if (!files) return;
  close(root_of(files));
  pwi_free(files);
}
