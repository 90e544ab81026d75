/* Checkpoints by the public API, of real servers: what is saved is loaded; what is damaged, foreign or of another kind is
 * refused with words that say what it is, and then nothing of the cluster has changed. One cluster for all tests. */
#include "scene.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <pawl/checkpoint.h>

#include "base/memory.h"
#include "base/random.h"

#define KEYS 2000

static struct pawl_session *session;
static struct pawl_vector *numbers, *words; /* "t/a" and "t/b" */
static char folder[] = "/tmp/pawl-checkpoint-XXXXXX";

/* --- files, behind the servers' backs -------------------------------------------------------------------------------- */

static void path_of(const char *rest, char path[300]) { snprintf(path, 300, "%s/%s", folder, rest); }

/* The first file of a checkpoint that servers wrote. */
static void file_of(const char *name, char path[300]) {
  char directory[300];
  path_of(name, directory);
  DIR *entries = opendir(directory);
  assert_non_null(entries);
  path[0] = '\0';
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
    if (strstr(entry->d_name, ".pawl")) snprintf(path, 300, "%s/%s/%s", folder, name, entry->d_name);
  closedir(entries);
  assert_true(path[0]);
}

static char *read_all(const char *path, size_t *size_out) {
  struct stat about;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  assert_true(file >= 0);
  assert_int_equal(fstat(file, &about), 0);
  char *bytes = malloc((size_t)about.st_size + 1);
  assert_int_equal(read(file, bytes, (size_t)about.st_size), about.st_size);
  close(file);
  *size_out = (size_t)about.st_size;
  return bytes;
}

static void write_all(const char *path, const char *bytes, size_t size) {
  int file = open(path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0666);
  assert_true(file >= 0);
  assert_int_equal(write(file, bytes, size), size);
  close(file);
}

static void remove_tree(const char *path) {
  DIR *entries = opendir(path);
  if (!entries) {
    unlink(path);
    return;
  }
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    char below[600];
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
    remove_tree(below);
  }
  closedir(entries);
  rmdir(path);
}

/* --- the scene --------------------------------------------------------------------------------------------------------- */

static void fill(struct pawl_vector *vector, int64_t value) {
  int64_t values[KEYS];
  for (size_t i = 0; i < KEYS; i++) values[i] = value;
  push(vector, pawl_at_range(0, KEYS), values);
}

/* All keys have this value. */
static void assert_filled(struct pawl_vector *vector, int64_t value) {
  int64_t values[KEYS];
  pull(vector, pawl_at_range(0, KEYS), values);
  for (size_t i = 0; i < KEYS; i++) assert_int_equal(values[i], value);
}

static int open_all(void **state) {
  (void)state;
  assert_non_null(mkdtemp(folder));
  session = open_embedded(2, 1);
  numbers = create(session, "t/a", PAWL_I64, KEYS);
  words = create(session, "t/b", PAWL_I64, KEYS);
  return 0;
}

static int close_all(void **state) {
  (void)state;
  remove_tree(folder);
  return pawl_session_close(session, PATIENCE) == PAWL_OK ? 0 : -1;
}

static struct pawl_checkpoint_options options_of(const char *name) {
  struct pawl_checkpoint_options options;
  pawl_checkpoint_options_init(&options);
  options.directory = folder;
  options.name = name;
  options.timeout_ns = PATIENCE;
  return options;
}

static pawl_status save(const char *name) {
  struct pawl_checkpoint_options options = options_of(name);
  return pawl_checkpoint_save(session, &options, NULL);
}

static pawl_status load(const char *name) {
  struct pawl_checkpoint_options options = options_of(name);
  return pawl_checkpoint_load(session, &options, NULL);
}

/* --- what is saved is loaded ------------------------------------------------------------------------------------------ */

struct seen {
  bool saving, verifying;
};

static void look(void *context, const struct pawl_checkpoint_progress *progress) {
  struct seen *seen = context;
  seen->saving |= strcmp(progress->stage, "saving") == 0;
  seen->verifying |= strcmp(progress->stage, "verifying") == 0;
  assert_true(progress->part >= 0 && progress->part <= 1);
}

static void test_what_is_saved_is_loaded_and_told(void **state) {
  (void)state;
  struct pawl_checkpoint_options options = options_of(NULL);
  struct pawl_checkpoint_info saved, more, loaded;
  struct seen seen = {0};
  options.progress = look;
  options.context = &seen;
  options.rate = 100000;
  fill(numbers, 7);
  fill(words, 1);
  must(pawl_checkpoint_save(session, &options, &saved));
  assert_true(seen.saving && saved.number > 0 && saved.bytes > KEYS * sizeof(int64_t) && !saved.base[0]);
  fill(numbers, 1);
  options.rate = 0;
  options.incremental = options.compress = true;
  must(pawl_checkpoint_save(session, &options, &more));
  assert_string_equal(more.base, saved.name);
  assert_true(more.bytes < saved.bytes);
  fill(numbers, 100);
  must(pawl_checkpoint_load(session, &options, &loaded)); /* the newest */
  assert_string_equal(loaded.name, more.name);
  assert_true(seen.verifying && loaded.vectors >= 2 && loaded.rows >= 2 * KEYS);
  assert_filled(numbers, 8);
  must(load(saved.name));
  assert_filled(numbers, 7);
  assert_filled(words, 1);
}

/* Whoever was about to use it is told once, and goes on. */
static void test_others_are_told_once_that_it_was_loaded(void **state) {
  (void)state;
  struct pawl_session *other = open_beside(session, false);
  struct pawl_vector *vector;
  struct pawl_task *task;
  int64_t one = 1, value = 0;
  uint64_t key = 5;
  must(pawl_vector_open(other, "t/a", PATIENCE, &vector));
  push(vector, pawl_at_keys(&key, 1), &one);
  must(save("told"));
  pull(vector, pawl_at_keys(&key, 1), &value);
  must(load("told"));
  must(pawl_vector_push(vector, pawl_at_keys(&key, 1), &one, &task));
  pawl_status status = pawl_task_finish(task, PATIENCE);
  if (status) {
    assert_int_equal(status, PAWL_RESTORED);
    push(vector, pawl_at_keys(&key, 1), &one);
  }
  int64_t again;
  pull(vector, pawl_at_keys(&key, 1), &again);
  assert_int_equal(again, value + 1);
  must(pawl_session_close(other, PATIENCE));
  must(load("told"));
}

/* --- what cannot be saved or loaded ------------------------------------------------------------------------------------ */

static void test_what_cannot_be_saved_is_said(void **state) {
  (void)state;
  struct pawl_checkpoint_options options = options_of("once");
  struct pawl_checkpoint_info info = {.number = 99};
  char path[300], name[PAWL_CHECKPOINT_NAME_MAX + 2];
  must(save("once"));
  must_fail(pawl_checkpoint_save(session, &options, &info), PAWL_EXISTS, "'once' already exists");
  assert_int_equal(info.number, 99); /* written only on success */
  options.name = "../once";
  must_fail(pawl_checkpoint_save(session, &options, NULL), PAWL_INVALID, "letters");
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  options.name = name;
  must_fail(pawl_checkpoint_save(session, &options, NULL), PAWL_INVALID, "letters");
  options.name = NULL;
  options.directory = "here";
  must_fail(pawl_checkpoint_save(session, &options, NULL), PAWL_INVALID, "absolute");
  options.directory = NULL; /* and the manager has none of its own */
  must_fail(pawl_checkpoint_save(session, &options, NULL), PAWL_INVALID, "absolute");
  options.directory = "/proc/nowhere";
  assert_int_not_equal(pawl_checkpoint_save(session, &options, NULL), PAWL_OK);
  path_of("a-file", path);
  write_all(path, "x", 1);
  options.directory = path;
  assert_int_not_equal(pawl_checkpoint_save(session, &options, NULL), PAWL_OK);
  must(save("after-all-that"));
}

static void test_a_checkpoint_is_removed_and_nothing_else(void **state) {
  (void)state;
  char path[300];
  const char *directory = options_of("gone").directory;
  must(save("gone"));
  path_of("gone/mine", path);
  write_all(path, "x", 1);
  must_fail(pawl_checkpoint_remove(directory, "gone"), PAWL_EXISTS, "nothing was removed");
  assert_int_equal(unlink(path), 0);
  must(pawl_checkpoint_remove(directory, "gone"));
  path_of("gone", path);
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(pawl_checkpoint_remove(directory, "gone"), PAWL_NOT_FOUND);
  assert_int_equal(pawl_checkpoint_remove(directory, "../gone"), PAWL_INVALID);
}

static void test_a_reader_may_not_load(void **state) {
  (void)state;
  struct pawl_session *reader = open_beside(session, true);
  struct pawl_checkpoint_options options = options_of("read");
  must(save("read"));
  fill(numbers, 1);
  int64_t before[KEYS], after[KEYS];
  pull(numbers, pawl_at_range(0, KEYS), before);
  must_fail(pawl_checkpoint_load(reader, &options, NULL), PAWL_FORBIDDEN, "load t/");
  pull(numbers, pawl_at_range(0, KEYS), after);
  assert_memory_equal(before, after, sizeof before);
  must(pawl_session_close(reader, PATIENCE));
}

static void test_what_is_not_there_is_not_loaded(void **state) {
  (void)state;
  struct pawl_checkpoint_options options = options_of("none-such");
  char path[300], name[PAWL_CHECKPOINT_NAME_MAX + 2];
  must_fail(pawl_checkpoint_load(session, &options, NULL), PAWL_NOT_FOUND, "none-such");
  options.name = "../etc";
  assert_int_not_equal(pawl_checkpoint_load(session, &options, NULL), PAWL_OK);
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  options.name = name;
  must_fail(pawl_checkpoint_load(session, &options, NULL), PAWL_INVALID, "too long");
  options.name = NULL;
  path_of("empty", path);
  assert_int_equal(mkdir(path, 0777), 0);
  options.directory = path;
  must_fail(pawl_checkpoint_load(session, &options, NULL), PAWL_NOT_FOUND, "no checkpoint");
  options.directory = "/no/such/directory";
  must_fail(pawl_checkpoint_load(session, &options, NULL), PAWL_NOT_FOUND, "/no/such/directory");
  options.directory = NULL;
  must_fail(pawl_checkpoint_load(session, &options, NULL), PAWL_INVALID, "directory is NULL");
}

/* --- damage ------------------------------------------------------------------------------------------------------------ */

/* It is refused with this word, and the cluster has what it had, and goes on. */
static void assert_refused(const char *name, const char *word) {
  int64_t before[KEYS], after[KEYS];
  pull(numbers, pawl_at_range(0, KEYS), before);
  pawl_status status = load(name);
  if (status == PAWL_OK) fail_msg("%s was loaded", name);
  if (!strstr(pawl_error_text(), word)) fail_msg("'%s' is not in '%s'", word, pawl_error_text());
  pull(numbers, pawl_at_range(0, KEYS), after);
  assert_memory_equal(before, after, sizeof before);
  fill(numbers, 1);
}

static void test_a_file_with_a_wrong_bit_is_not_loaded(void **state) {
  (void)state;
  char path[300];
  size_t size;
  struct pwi_random random;
  must(save("flipped"));
  file_of("flipped", path);
  char *bytes = read_all(path, &size);
  pwi_random_init(&random, 6, 1);
  for (int i = 0; i < 40; i++) {
    uint64_t bit = pwi_random_below(&random, 8 * size);
    bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
    write_all(path, bytes, size);
    assert_refused("flipped", "flipped/node-");
    bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
  }
  write_all(path, bytes, size);
  must(load("flipped"));
  free(bytes);
}

static void test_a_file_that_is_cut_short_or_gone_is_not_loaded(void **state) {
  (void)state;
  char path[300];
  size_t size;
  must(save("short"));
  file_of("short", path);
  char *bytes = read_all(path, &size);
  for (size_t left = 0; left < size; left += size / 7 + 1) {
    write_all(path, bytes, left);
    assert_refused("short", "short/node-");
  }
  write_all(path, bytes, size - 1);
  assert_refused("short", "short/node-");
  assert_int_equal(unlink(path), 0);
  assert_refused("short", "short/node-");
  write_all(path, bytes, size);
  must(load("short"));
  free(bytes);
}

static void test_a_file_of_another_checkpoint_is_not_loaded(void **state) {
  (void)state;
  char mine[300], foreign[300];
  size_t size;
  must(save("mine"));
  fill(numbers, 1000);
  must(save("foreign"));
  file_of("mine", mine);
  file_of("foreign", foreign);
  char *bytes = read_all(foreign, &size);
  write_all(mine, bytes, size);
  assert_refused("mine", "this file belongs to checkpoint foreign");
  free(bytes);
}

/* Whoever changes a type, a span or a base by hand is found out by the last line. */
static void test_a_manifest_that_was_edited_is_not_loaded(void **state) {
  (void)state;
  char path[300];
  size_t size;
  must(save("edited"));
  path_of("edited/manifest.json", path);
  char *bytes = read_all(path, &size);
  bytes[size] = '\0';
  char *type = strstr(bytes, "\"i64\"");
  assert_non_null(type);
  type[1] = 'u';
  write_all(path, bytes, size);
  assert_refused("edited", "edited");
  type[1] = 'i';
  write_all(path, bytes, size / 2);
  assert_refused("edited", "edited");
  write_all(path, "{}", 2);
  assert_refused("edited", "edited");
  write_all(path, bytes, size);
  must(load("edited"));
  free(bytes);
}

/* "t/b" comes after "t/a": that the second cannot be loaded must be seen before the first one begins anew. */
static void refuse_other(const char *checkpoint, enum pawl_type type, uint32_t width, uint64_t size) {
  struct pawl_vector_options options;
  struct pawl_vector *other;
  must(pawl_vector_delete(session, "t/b", PATIENCE));
  pawl_vector_options_init(&options);
  options.type = type;
  options.width = width;
  options.size = size;
  must(pawl_vector_create(session, "t/b", &options, PATIENCE, &other));
  assert_refused(checkpoint, "load t/b: the vector exists with another type");
  pawl_vector_close(other);
}

static void test_a_checkpoint_of_other_types_or_spans_changes_nothing(void **state) {
  (void)state;
  must(save("kinds"));
  refuse_other("kinds", PAWL_F32, 1, KEYS);
  refuse_other("kinds", PAWL_I64, 2, KEYS);
  refuse_other("kinds", PAWL_I64, 1, KEYS + 1);
  must(pawl_vector_delete(session, "t/b", PATIENCE));
  must(load("kinds"));
  pawl_vector_close(words);
  must(pawl_vector_open(session, "t/b", PATIENCE, &words));
  assert_filled(words, 1);
}

/* Each allocation of this process fails in turn: that is said, or got over, and the session goes on. */
static void test_running_out_of_memory_ends_a_load_and_nothing_else(void **state) {
  (void)state;
  int64_t before[KEYS], after[KEYS];
  int failed = 1;
  must(save("memory"));
  pull(numbers, pawl_at_range(0, KEYS), before);
  for (uint64_t n = 0; failed && n < 3000; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = load("memory");
    failed = pwi_memory_fail_cancel();
    if (status && status != PAWL_NO_MEMORY) fail_msg("allocation %llu: %s", (unsigned long long)n, pawl_error_text());
    if (status && load("memory")) fail_msg("after allocation %llu: %s", (unsigned long long)n, pawl_error_text());
  }
  assert_false(failed);
  must(load("memory"));
  pull(numbers, pawl_at_range(0, KEYS), after);
  assert_memory_equal(before, after, sizeof before);
  must(save("memory-after"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_is_saved_is_loaded_and_told),
      cmocka_unit_test(test_others_are_told_once_that_it_was_loaded),
      cmocka_unit_test(test_what_cannot_be_saved_is_said),
      cmocka_unit_test(test_a_checkpoint_is_removed_and_nothing_else),
      cmocka_unit_test(test_a_reader_may_not_load),
      cmocka_unit_test(test_what_is_not_there_is_not_loaded),
      cmocka_unit_test(test_a_file_with_a_wrong_bit_is_not_loaded),
      cmocka_unit_test(test_a_file_that_is_cut_short_or_gone_is_not_loaded),
      cmocka_unit_test(test_a_file_of_another_checkpoint_is_not_loaded),
      cmocka_unit_test(test_a_manifest_that_was_edited_is_not_loaded),
      cmocka_unit_test(test_a_checkpoint_of_other_types_or_spans_changes_nothing),
      cmocka_unit_test(test_running_out_of_memory_ends_a_load_and_nothing_else),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
