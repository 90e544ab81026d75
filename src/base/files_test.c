/* Files in a temporary directory, with faults in system calls: this file replaces pread, pwrite and fsync of
 * the C library, so that they can be interrupted, transfer less than asked, or fail. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/testing.h"

#define FRESH (PWI_OPEN_WRITE | PWI_OPEN_CREATE | PWI_OPEN_TRUNCATE)

static struct {
  int interruptions; /* EINTR that many times first */
  size_t at_most;    /* bytes per call, 0: no limit */
  int error;         /* then fail with this, if not 0 */
  int calls;
} stumble;

static bool stumbles(size_t *size) {
  stumble.calls++;
  if (stumble.interruptions > 0) {
    stumble.interruptions--;
    errno = EINTR;
    return true;
  }
  if (stumble.error) {
    errno = stumble.error;
    return true;
  }
  if (stumble.at_most && *size > stumble.at_most) *size = stumble.at_most;
  return false;
}

ssize_t pread(int descriptor, void *buffer, size_t size, off_t offset) {
  return stumbles(&size) ? -1 : (ssize_t)syscall(SYS_pread64, descriptor, buffer, size, offset);
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t offset) {
  return stumbles(&size) ? -1 : (ssize_t)syscall(SYS_pwrite64, descriptor, data, size, offset);
}

int fsync(int descriptor) {
  size_t size = 0;
  return stumbles(&size) ? -1 : (int)syscall(SYS_fsync, descriptor);
}

struct place {
  char root[200];
  struct pwi_files *files;
};

static int set_up(void **state) {
  struct place *place = calloc(1, sizeof *place);
  const char *where = getenv("TMPDIR");
  snprintf(place->root, sizeof place->root, "%s/pawl-files-XXXXXX", where ? where : "/tmp");
  memset(&stumble, 0, sizeof stumble);
  *state = place;
  return mkdtemp(place->root) && pwi_files_posix_open(place->root, &place->files) == PAWL_OK ? 0 : -1;
}

static void remove_below(struct pwi_files *files, const char *directory) {
  struct pwi_names names;
  if (pwi_files_list(files, directory, &names)) return;
  for (size_t i = 0; i < names.count; i++) {
    char path[600];
    snprintf(path, sizeof path, "%s%s%s", strcmp(directory, ".") ? directory : "", strcmp(directory, ".") ? "/" : "",
             names.items[i]);
    if (pwi_files_remove(files, path) != PAWL_EXISTS) continue;
    remove_below(files, path);
    assert_int_equal(pwi_files_remove(files, path), PAWL_OK);
  }
  pwi_names_fini(&names);
}

static int tear_down(void **state) {
  struct place *place = *state;
  memset(&stumble, 0, sizeof stumble);
  remove_below(place->files, ".");
  pwi_files_posix_close(place->files);
  int result = rmdir(place->root);
  free(place);
  return result || pwi_memory_counts().live ? -1 : 0;
}

static struct pwi_files *files_of(void **state) { return ((struct place *)*state)->files; }

static struct pwi_file *opened(struct pwi_files *files, const char *path, unsigned how) {
  struct pwi_file *file;
  assert_int_equal(pwi_files_open(files, path, how, &file), PAWL_OK);
  return file;
}

static pawl_status try_open(struct pwi_files *files, const char *path, unsigned how) {
  struct pwi_file *file = NULL;
  pawl_status status = pwi_files_open(files, path, how, &file);
  assert_int_equal(file != NULL, status == PAWL_OK);
  pwi_file_close(file);
  return status;
}

static void write_text(struct pwi_files *files, const char *path, const char *text) {
  struct pwi_file *file = opened(files, path, FRESH);
  assert_int_equal(pwi_file_write(file, 0, text, strlen(text)), PAWL_OK);
  pwi_file_close(file);
}

static void assert_holds(struct pwi_files *files, const char *path, const char *text) {
  char buffer[200];
  size_t size = 0;
  struct pwi_file *file = opened(files, path, PWI_OPEN_READ);
  assert_int_equal(pwi_file_read(file, 0, buffer, sizeof buffer - 1, &size), PAWL_OK);
  buffer[size] = '\0';
  assert_string_equal(buffer, text);
  pwi_file_close(file);
}

static bool is_there(struct pwi_files *files, const char *path) {
  bool there = false;
  assert_int_equal(pwi_files_exists(files, path, &there), PAWL_OK);
  return there;
}

static void test_written_bytes_are_read_back(void **state) {
  struct pwi_file *file = opened(files_of(state), "a", FRESH);
  char buffer[16] = {0};
  size_t size = 99;
  assert_int_equal(pwi_file_write(file, 0, "hello", 5), PAWL_OK);
  assert_int_equal(pwi_file_append(file, " world", 6), PAWL_OK);
  assert_int_equal(pwi_file_write(file, 4, "0", 1), PAWL_OK);
  assert_int_equal(pwi_file_sync(file), PAWL_OK);
  assert_int_equal(pwi_file_read(file, 2, buffer, 5, &size), PAWL_OK);
  assert_int_equal(size, 5);
  assert_memory_equal(buffer, "ll0 w", 5);
  pwi_file_close(file);
}

static void test_reads_are_short_only_at_the_end(void **state) {
  struct pwi_file *file = opened(files_of(state), "a", FRESH);
  char buffer[16];
  size_t size = 99;
  assert_int_equal(pwi_file_write(file, 0, "0123456789", 10), PAWL_OK);
  assert_int_equal(pwi_file_read(file, 7, buffer, 16, &size), PAWL_OK);
  assert_int_equal(size, 3);
  assert_int_equal(pwi_file_read(file, 10, buffer, 16, &size), PAWL_OK);
  assert_int_equal(size, 0);
  size = 99;
  assert_int_equal(pwi_file_read(file, 1000, buffer, 16, &size), PAWL_OK);
  assert_int_equal(size, 0);
  pwi_file_close(file);
}

static void test_truncating_cuts_and_extends_with_zeros(void **state) {
  struct pwi_file *file = opened(files_of(state), "a", FRESH);
  char buffer[8];
  size_t read = 0;
  uint64_t size = 99;
  assert_int_equal(pwi_file_write(file, 0, "abcdef", 6), PAWL_OK);
  assert_int_equal(pwi_file_truncate(file, 2), PAWL_OK);
  assert_int_equal(pwi_file_truncate(file, 4), PAWL_OK);
  assert_int_equal(pwi_file_write(file, 6, "z", 1), PAWL_OK);
  assert_int_equal(pwi_file_size(file, &size), PAWL_OK);
  assert_int_equal(size, 7);
  assert_int_equal(pwi_file_read(file, 0, buffer, 8, &read), PAWL_OK);
  assert_int_equal(read, 7);
  assert_memory_equal(buffer, "ab\0\0\0\0z", 7);
  pwi_file_close(file);
}

static void test_opening_follows_its_flags(void **state) {
  struct pwi_files *files = files_of(state);
  assert_int_equal(try_open(files, "a", PWI_OPEN_READ), PAWL_NOT_FOUND);
  assert_int_equal(try_open(files, "a", PWI_OPEN_WRITE), PAWL_NOT_FOUND);
  assert_int_equal(try_open(files, "a", PWI_OPEN_WRITE | PWI_OPEN_NEW), PAWL_OK);
  assert_int_equal(try_open(files, "a", PWI_OPEN_WRITE | PWI_OPEN_NEW), PAWL_EXISTS);
  write_text(files, "a", "text");
  assert_int_equal(try_open(files, "a", PWI_OPEN_WRITE | PWI_OPEN_CREATE), PAWL_OK);
  assert_holds(files, "a", "text");
  assert_int_equal(try_open(files, "a", PWI_OPEN_WRITE | PWI_OPEN_TRUNCATE), PAWL_OK);
  assert_holds(files, "a", "");
  assert_int_equal(try_open(files, "a", PWI_OPEN_CREATE), PAWL_INVALID);
  assert_int_equal(try_open(files, "a", PWI_OPEN_TRUNCATE), PAWL_INVALID);
  assert_int_equal(try_open(files, "a", 1024 | PWI_OPEN_WRITE), PAWL_INVALID);
  assert_int_equal(try_open(files, "missing/a", FRESH), PAWL_NOT_FOUND);
}

static void test_only_regular_files_are_opened(void **state) {
  struct place *place = *state;
  char pipe_path[300];
  snprintf(pipe_path, sizeof pipe_path, "%s/pipe", place->root);
  assert_int_equal(mkfifo(pipe_path, 0600), 0);
  assert_int_equal(pwi_files_make_directory(place->files, "d"), PAWL_OK);
  assert_int_equal(try_open(place->files, "pipe", PWI_OPEN_READ), PAWL_INVALID);
  assert_int_equal(try_open(place->files, "d", PWI_OPEN_READ), PAWL_INVALID);
  assert_int_equal(try_open(place->files, "d", PWI_OPEN_WRITE), PAWL_INVALID);
}

static void test_a_file_opened_to_read_cannot_be_changed(void **state) {
  struct pwi_files *files = files_of(state);
  write_text(files, "a", "text");
  struct pwi_file *file = opened(files, "a", PWI_OPEN_READ);
  assert_int_equal(pwi_file_write(file, 0, "x", 1), PAWL_FORBIDDEN);
  assert_int_equal(pwi_file_append(file, "x", 1), PAWL_FORBIDDEN);
  assert_int_equal(pwi_file_truncate(file, 0), PAWL_FORBIDDEN);
  pwi_file_close(file);
  assert_holds(files, "a", "text");
}

static void test_paths_that_lead_outside_are_refused(void **state) {
  struct pwi_files *files = files_of(state);
  static const char *const bad[] = {"",    "/",   "/etc/passwd", "..", "../a",  "a/..", "a/../../b", ".",
                                    "./a", "a/.", "a//b",        "a/", "a/./b", "//a",  "a/b/"};
  bool there;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(try_open(files, bad[i], FRESH), PAWL_INVALID);
    assert_int_equal(pwi_files_make_directory(files, bad[i]), PAWL_INVALID);
    assert_int_equal(pwi_files_remove(files, bad[i]), PAWL_INVALID);
    assert_int_equal(pwi_files_rename(files, bad[i], "a"), PAWL_INVALID);
    assert_int_equal(pwi_files_rename(files, "a", bad[i]), PAWL_INVALID);
    assert_int_equal(pwi_files_exists(files, bad[i], &there), PAWL_INVALID);
    assert_int_equal(pwi_files_replace(files, bad[i], "", 0), PAWL_INVALID);
    if (strcmp(bad[i], ".") == 0) continue; /* the root, where a directory is meant */
    struct pwi_names names;
    assert_int_equal(pwi_files_sync_directory(files, bad[i]), PAWL_INVALID);
    assert_int_equal(pwi_files_list(files, bad[i], &names), PAWL_INVALID);
  }
  assert_int_equal(try_open(files, NULL, FRESH), PAWL_INVALID);
  char endless[5000];
  memset(endless, 'x', sizeof endless - 1);
  endless[sizeof endless - 1] = '\0';
  assert_int_equal(try_open(files, endless, FRESH), PAWL_INVALID);
}

static void test_dots_inside_names_are_fine(void **state) {
  struct pwi_files *files = files_of(state);
  static const char *const good[] = {"...", "..a", "a..", ".a", "a.b", "a b", "..a-"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_int_equal(try_open(files, good[i], FRESH), PAWL_OK);
}

static void test_offsets_past_the_limit_are_refused(void **state) {
  struct pwi_file *file = opened(files_of(state), "a", FRESH);
  char byte = 0;
  size_t read = 0;
  assert_int_equal(pwi_file_read(file, UINT64_MAX, &byte, 1, &read), PAWL_INVALID);
  assert_int_equal(pwi_file_read(file, INT64_MAX, &byte, 1, &read), PAWL_INVALID);
  assert_int_equal(pwi_file_write(file, UINT64_MAX, &byte, 1), PAWL_INVALID);
  assert_int_equal(pwi_file_write(file, 1, &byte, SIZE_MAX), PAWL_INVALID);
  assert_int_equal(pwi_file_truncate(file, UINT64_C(1) << 63), PAWL_INVALID);
  pwi_file_close(file);
}

static void test_renaming_replaces(void **state) {
  struct pwi_files *files = files_of(state);
  write_text(files, "old", "old");
  write_text(files, "new", "new");
  struct pwi_file *old = opened(files, "old", PWI_OPEN_READ);
  assert_int_equal(pwi_files_rename(files, "new", "old"), PAWL_OK);
  assert_holds(files, "old", "new");
  assert_false(is_there(files, "new"));
  char buffer[3];
  size_t read = 0;
  assert_int_equal(pwi_file_read(old, 0, buffer, 3, &read), PAWL_OK); /* still the file that was opened */
  assert_memory_equal(buffer, "old", 3);
  pwi_file_close(old);
  assert_int_equal(pwi_files_rename(files, "missing", "old"), PAWL_NOT_FOUND);
  assert_int_equal(pwi_files_rename(files, "old", "missing/old"), PAWL_NOT_FOUND);
  assert_holds(files, "old", "new");
}

static void test_directories_are_made_listed_and_removed(void **state) {
  struct pwi_files *files = files_of(state);
  assert_int_equal(pwi_files_make_directory(files, "d/e"), PAWL_NOT_FOUND);
  assert_int_equal(pwi_files_make_directory(files, "d"), PAWL_OK);
  assert_int_equal(pwi_files_make_directory(files, "d"), PAWL_EXISTS);
  assert_int_equal(pwi_files_make_directory(files, "d/e"), PAWL_OK);
  write_text(files, "d/f", "");
  assert_true(is_there(files, "d"));
  assert_true(is_there(files, "d/f"));
  assert_false(is_there(files, "d/g"));
  assert_false(is_there(files, "g/g"));
  assert_false(is_there(files, "d/f/g"));
  assert_int_equal(pwi_files_sync_directory(files, "d"), PAWL_OK);
  assert_int_equal(pwi_files_sync_directory(files, "."), PAWL_OK);
  assert_int_equal(pwi_files_sync_directory(files, "g"), PAWL_NOT_FOUND);
  assert_int_equal(pwi_files_sync_directory(files, "d/f"), PAWL_INVALID);
  assert_int_equal(pwi_files_remove(files, "d"), PAWL_EXISTS);
  assert_int_equal(pwi_files_remove(files, "d/e"), PAWL_OK);
  assert_int_equal(pwi_files_remove(files, "d/f"), PAWL_OK);
  assert_int_equal(pwi_files_remove(files, "d/f"), PAWL_NOT_FOUND);
  assert_int_equal(pwi_files_remove(files, "d"), PAWL_OK);
  assert_false(is_there(files, "d"));
}

static void test_lists_are_sorted_and_complete(void **state) {
  struct pwi_files *files = files_of(state);
  struct pwi_names names;
  assert_int_equal(pwi_files_list(files, ".", &names), PAWL_OK);
  assert_int_equal(names.count, 0);
  pwi_names_fini(&names);
  for (int i = 0; i < 50; i++) {
    char name[20];
    snprintf(name, sizeof name, "f%02d", i * 37 % 50);
    write_text(files, name, "");
  }
  assert_int_equal(pwi_files_list(files, ".", &names), PAWL_OK);
  assert_int_equal(names.count, 50);
  for (size_t i = 0; i < 50; i++) {
    char name[20];
    snprintf(name, sizeof name, "f%02d", (int)i);
    assert_string_equal(names.items[i], name);
  }
  pwi_names_fini(&names);
  assert_int_equal(pwi_files_list(files, "missing", &names), PAWL_NOT_FOUND);
  assert_int_equal(pwi_files_list(files, "f00", &names), PAWL_INVALID);
}

static void test_a_lock_keeps_others_out_until_it_is_closed(void **state) {
  struct pwi_files *files = files_of(state);
  struct pwi_file *first = opened(files, "lock", PWI_OPEN_WRITE | PWI_OPEN_CREATE);
  struct pwi_file *second = opened(files, "lock", PWI_OPEN_WRITE);
  assert_int_equal(pwi_file_try_lock(first), PAWL_OK);
  assert_int_equal(pwi_file_try_lock(first), PAWL_OK);
  assert_int_equal(pwi_file_try_lock(second), PAWL_EXISTS);
  struct pwi_file *third = opened(files, "lock", PWI_OPEN_READ);
  pwi_file_close(third); /* closing some other descriptor of the file releases nothing */
  assert_int_equal(pwi_file_try_lock(second), PAWL_EXISTS);
  pwi_file_close(first);
  assert_int_equal(pwi_file_try_lock(second), PAWL_OK);
  pwi_file_close(second);
}

static void test_interrupted_and_partial_calls_are_continued(void **state) {
  struct pwi_file *file = opened(files_of(state), "a", FRESH);
  char buffer[26];
  size_t read = 0;
  stumble.interruptions = 3;
  stumble.at_most = 4;
  assert_int_equal(pwi_file_write(file, 0, "abcdefghijklmnopqrstuvwxyz", 26), PAWL_OK);
  assert_int_equal(stumble.calls, 3 + 7);
  stumble.interruptions = 3;
  assert_int_equal(pwi_file_read(file, 0, buffer, 26, &read), PAWL_OK);
  assert_int_equal(read, 26);
  assert_memory_equal(buffer, "abcdefghijklmnopqrstuvwxyz", 26);
  stumble.interruptions = 3;
  assert_int_equal(pwi_file_sync(file), PAWL_OK);
  assert_int_equal(stumble.interruptions, 0);
  pwi_file_close(file);
}

static void test_errors_of_the_system_become_statuses(void **state) {
  static const struct {
    int error;
    pawl_status status;
  } pairs[] = {
      {ENOSPC, PAWL_NO_SPACE},   {EDQUOT, PAWL_NO_SPACE}, {EFBIG, PAWL_NO_SPACE},   {EIO, PAWL_IO},
      {EACCES, PAWL_FORBIDDEN},  {EPERM, PAWL_FORBIDDEN}, {EROFS, PAWL_FORBIDDEN},  {ENOMEM, PAWL_NO_MEMORY},
      {ENFILE, PAWL_NODE_LIMIT}, {ENXIO, PAWL_IO},        {ENOENT, PAWL_NOT_FOUND},
  };
  struct pwi_file *file = opened(files_of(state), "a", FRESH);
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    char buffer[4];
    size_t read = 99;
    stumble.error = pairs[i].error;
    assert_int_equal(pwi_file_write(file, 0, "text", 4), pairs[i].status);
    assert_int_equal(pwi_file_read(file, 0, buffer, 4, &read), pairs[i].status);
    assert_int_equal(read, 99);
    assert_int_equal(pwi_file_sync(file), pairs[i].status);
    assert_int_equal(pwi_files_sync_directory(files_of(state), "."), pairs[i].status);
  }
  stumble.error = 0;
  pwi_file_close(file);
}

static void test_replacing_leaves_the_new_bytes_and_nothing_else(void **state) {
  struct pwi_files *files = files_of(state);
  struct pwi_names names;
  assert_int_equal(pwi_files_make_directory(files, "d"), PAWL_OK);
  assert_int_equal(pwi_files_replace(files, "d/snapshot", "one", 3), PAWL_OK);
  assert_holds(files, "d/snapshot", "one");
  write_text(files, "d/snapshot.new", "left behind by a crash, and longer");
  assert_int_equal(pwi_files_replace(files, "d/snapshot", "two", 3), PAWL_OK);
  assert_holds(files, "d/snapshot", "two");
  assert_int_equal(pwi_files_list(files, "d", &names), PAWL_OK);
  assert_int_equal(names.count, 1);
  pwi_names_fini(&names);
  assert_int_equal(pwi_files_replace(files, "root", "three", 5), PAWL_OK);
  assert_holds(files, "root", "three");
  assert_int_equal(pwi_files_replace(files, "missing/x", "four", 4), PAWL_NOT_FOUND);
}

/* An implementation that wraps the real one and lets the n-th call fail. */
static struct {
  int until_failure;
  const struct pwi_files_ops *real;
  struct pwi_files_ops ops;
} faulty;

static bool fails(void) { return faulty.until_failure-- == 0; }

static pawl_status faulty_open(struct pwi_files *files, const char *path, unsigned how, struct pwi_file **file_out) {
  if (fails()) return PAWL_IO;
  pawl_status status = faulty.real->open(files, path, how, file_out);
  if (!status) (*file_out)->ops = &faulty.ops;
  return status;
}

static pawl_status faulty_write(struct pwi_file *file, uint64_t offset, const void *data, size_t size) {
  if (!fails()) return faulty.real->write(file, offset, data, size);
  pawl_status half = faulty.real->write(file, offset, data, size / 2);
  return half ? half : PAWL_NO_SPACE;
}

static pawl_status faulty_sync(struct pwi_file *file) { return fails() ? PAWL_IO : faulty.real->sync(file); }

static pawl_status faulty_rename(struct pwi_files *files, const char *from, const char *to) {
  return fails() ? PAWL_IO : faulty.real->rename(files, from, to);
}

static pawl_status faulty_sync_directory(struct pwi_files *files, const char *path) {
  return fails() ? PAWL_IO : faulty.real->sync_directory(files, path);
}

static void test_a_failed_replacement_keeps_the_old_bytes(void **state) {
  struct pwi_files *files = files_of(state);
  assert_int_equal(pwi_files_replace(files, "a", "the old text", 12), PAWL_OK);
  faulty.real = files->ops;
  faulty.ops = *files->ops;
  faulty.ops.open = faulty_open;
  faulty.ops.write = faulty_write;
  faulty.ops.sync = faulty_sync;
  faulty.ops.rename = faulty_rename;
  faulty.ops.sync_directory = faulty_sync_directory;
  for (int n = 0; n < 5; n++) {
    files->ops = &faulty.ops;
    faulty.until_failure = n;
    assert_int_equal(pwi_files_replace(files, "a", "new", 3), n == 1 ? PAWL_NO_SPACE : PAWL_IO);
    files->ops = faulty.real;
    assert_holds(files, "a", n < 4 ? "the old text" : "new");
    assert_false(is_there(files, "a.new"));
  }
}

static void test_every_allocation_may_fail(void **state) {
  struct place *place = *state;
  for (int i = 0; i < 40; i++) {
    char name[20];
    snprintf(name, sizeof name, "f%d", i);
    write_text(place->files, name, "");
  }
  uint64_t live = pwi_memory_counts().live;
  uint64_t n = 0;
  for (bool failed = true; failed; n++) {
    struct pwi_names names = {0};
    pwi_memory_fail_after(n);
    pawl_status status = pwi_files_list(place->files, ".", &names);
    failed = pwi_memory_fail_cancel();
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    assert_int_equal(names.count, failed ? 0 : 40);
    pwi_names_fini(&names);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_true(n > 40);
  struct pwi_files *files = NULL;
  pwi_memory_fail_after(0);
  assert_int_equal(pwi_files_posix_open(place->root, &files), PAWL_NO_MEMORY);
  pwi_memory_fail_after(0);
  assert_int_equal(try_open(place->files, "f0", PWI_OPEN_READ), PAWL_NO_MEMORY);
  pwi_memory_fail_after(0);
  assert_int_equal(pwi_files_replace(place->files, "f0", "x", 1), PAWL_NO_MEMORY);
  pwi_memory_fail_after(1);
  assert_int_equal(pwi_files_replace(place->files, "f0", "x", 1), PAWL_NO_MEMORY);
  assert_int_equal(pwi_memory_fail_cancel(), 1);
  assert_holds(place->files, "f0", "");
  assert_null(files);
  assert_int_equal(pwi_memory_counts().live, live);
}

/* The lowest free descriptor tells whether any was left open. */
static int lowest_free_descriptor(void) {
  int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(descriptor);
  return descriptor;
}

static void test_no_descriptor_is_left_open(void **state) {
  struct place *place = *state;
  int before = lowest_free_descriptor();
  struct pwi_names names;
  struct pwi_files *files;
  assert_int_equal(pwi_files_make_directory(place->files, "d"), PAWL_OK);
  assert_int_equal(try_open(place->files, "d", PWI_OPEN_READ), PAWL_INVALID);
  assert_int_equal(try_open(place->files, "a", FRESH), PAWL_OK);
  assert_int_equal(pwi_files_replace(place->files, "a", "x", 1), PAWL_OK);
  assert_int_equal(pwi_files_list(place->files, "d", &names), PAWL_OK);
  pwi_names_fini(&names);
  pwi_memory_fail_after(0);
  assert_int_equal(try_open(place->files, "a", PWI_OPEN_READ), PAWL_NO_MEMORY);
  pwi_memory_fail_after(0);
  assert_int_equal(pwi_files_posix_open(place->root, &files), PAWL_NO_MEMORY);
  pwi_memory_fail_cancel();
  stumble.error = EIO;
  assert_int_equal(pwi_files_sync_directory(place->files, "d"), PAWL_IO);
  stumble.error = 0;
  assert_int_equal(lowest_free_descriptor(), before);
}

static void test_a_root_must_be_a_directory_that_is_there(void **state) {
  struct place *place = *state;
  struct pwi_files *files = NULL;
  char path[300];
  write_text(place->files, "a", "");
  snprintf(path, sizeof path, "%s/a", place->root);
  assert_int_equal(pwi_files_posix_open(path, &files), PAWL_INVALID);
  snprintf(path, sizeof path, "%s/missing", place->root);
  assert_int_equal(pwi_files_posix_open(path, &files), PAWL_NOT_FOUND);
  assert_null(files);
  pwi_files_posix_close(NULL);
  pwi_file_close(NULL);
}

#define FILES_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static void test_private_files_are_for_their_owner_only(void **state) {
  struct place *place = *state;
  struct pwi_files *files;
  struct pwi_file *file;
  struct stat about;
  char path[600];
  mode_t before = umask(0);
  assert_int_equal(pwi_files_posix_open_private(place->root, &files), PAWL_OK);
  assert_int_equal(pwi_files_open(files, "secret", FRESH, &file), PAWL_OK);
  assert_int_equal(pwi_files_make_directory(files, "secrets"), PAWL_OK);
  umask(before);
  snprintf(path, sizeof path, "%s/secret", place->root);
  assert_int_equal(stat(path, &about), 0);
  assert_int_equal(about.st_mode & 0777, 0600);
  snprintf(path, sizeof path, "%s/secrets", place->root);
  assert_int_equal(stat(path, &about), 0);
  assert_int_equal(about.st_mode & 0777, 0700);
  pwi_file_close(file);
  pwi_files_posix_close(files);
}

/* A user's folder and file beside ours, and links to them. */
static void test_a_guarded_tree_follows_no_link(void **state) {
  struct place *place = *state;
  struct pwi_files *files;
  struct pwi_file *file = NULL;
  struct pwi_names names = {0};
  struct stat about;
  char path[600], target[600];
  bool exists;
  assert_int_equal(pwi_files_make_directory(place->files, "user"), PAWL_OK);
  write_text(place->files, "user/file", "mine");
  static const char *const links[][2] = {{"user", "folder"}, {"user/file", "link"}, {"nowhere", "dangling"}};
  for (size_t i = 0; i < 3; i++) {
    snprintf(target, sizeof target, "%s/%s", place->root, links[i][0]);
    snprintf(path, sizeof path, "%s/%s", place->root, links[i][1]);
    assert_int_equal(symlink(target, path), 0);
  }
  mode_t before = umask(0);
  assert_int_equal(pwi_files_posix_open_guarded(place->root, &files), PAWL_OK);
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(pwi_files_open(files, links[i][1], PWI_OPEN_WRITE | PWI_OPEN_CREATE | PWI_OPEN_TRUNCATE, &file),
                     PAWL_INVALID);
    assert_int_equal(pwi_files_list(files, links[i][1], &names), PAWL_INVALID);
    assert_int_equal(pwi_files_sync_directory(files, links[i][1]), PAWL_INVALID);
    assert_int_equal(pwi_files_exists(files, links[i][1], &exists), PAWL_OK);
    assert_true(exists);
    assert_int_equal(pwi_files_make_directory(files, links[i][1]), PAWL_EXISTS);
  }
  assert_int_equal(pwi_files_open(files, "folder/file", PWI_OPEN_READ, &file), PAWL_INVALID);
  assert_int_equal(pwi_files_open(files, "folder/new", PWI_OPEN_WRITE | PWI_OPEN_CREATE, &file), PAWL_INVALID);
  assert_int_equal(pwi_files_remove(files, "folder/file"), PAWL_INVALID);
  assert_int_equal(pwi_files_make_directory(files, "folder/new"), PAWL_INVALID);
  assert_int_equal(pwi_files_rename(files, "user/file", "folder/other"), PAWL_INVALID);
  assert_int_equal(pwi_files_rename(files, "folder/file", "other"), PAWL_INVALID);
  assert_int_equal(pwi_files_exists(files, "folder/file", &exists), PAWL_OK);
  assert_false(exists);
  assert_int_equal(pwi_files_open(files, "user/file", PWI_OPEN_READ, &file), PAWL_OK); /* not a link */
  pwi_file_close(file);
  assert_int_equal(pwi_files_make_directory(files, "user/below"), PAWL_OK);
  assert_int_equal(pwi_files_open(files, "user/below/ours", FRESH, &file), PAWL_OK);
  pwi_file_close(file);
  umask(before);
  snprintf(path, sizeof path, "%s/user/below/ours", place->root);
  assert_int_equal(stat(path, &about), 0);
  assert_int_equal(about.st_mode & 0777, 0600);
  assert_int_equal(pwi_files_remove(files, "folder"), PAWL_OK); /* the link, and not what it leads to */
  assert_int_equal(pwi_files_remove(files, "link"), PAWL_OK);
  assert_int_equal(pwi_files_remove(files, "dangling"), PAWL_OK);
  assert_int_equal(pwi_files_exists(files, "user/file", &exists), PAWL_OK);
  assert_true(exists);
  assert_int_equal(pwi_files_remove(files, "user/below/ours"), PAWL_OK);
  assert_int_equal(pwi_files_remove(files, "user/below"), PAWL_OK);
  pwi_files_posix_close(files);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FILES_TEST(test_written_bytes_are_read_back),
      FILES_TEST(test_reads_are_short_only_at_the_end),
      FILES_TEST(test_truncating_cuts_and_extends_with_zeros),
      FILES_TEST(test_opening_follows_its_flags),
      FILES_TEST(test_only_regular_files_are_opened),
      FILES_TEST(test_a_file_opened_to_read_cannot_be_changed),
      FILES_TEST(test_paths_that_lead_outside_are_refused),
      FILES_TEST(test_dots_inside_names_are_fine),
      FILES_TEST(test_offsets_past_the_limit_are_refused),
      FILES_TEST(test_renaming_replaces),
      FILES_TEST(test_directories_are_made_listed_and_removed),
      FILES_TEST(test_lists_are_sorted_and_complete),
      FILES_TEST(test_a_lock_keeps_others_out_until_it_is_closed),
      FILES_TEST(test_interrupted_and_partial_calls_are_continued),
      FILES_TEST(test_errors_of_the_system_become_statuses),
      FILES_TEST(test_replacing_leaves_the_new_bytes_and_nothing_else),
      FILES_TEST(test_a_failed_replacement_keeps_the_old_bytes),
      FILES_TEST(test_every_allocation_may_fail),
      FILES_TEST(test_no_descriptor_is_left_open),
      FILES_TEST(test_a_root_must_be_a_directory_that_is_there),
      FILES_TEST(test_private_files_are_for_their_owner_only),
      FILES_TEST(test_a_guarded_tree_follows_no_link),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
