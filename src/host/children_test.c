/* Children: this program again with an argument, and a few system programs. Timeouts are generous, and no
 * time is measured. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/testing.h"
#include "host/children.h"
#include "host/clock.h"

#define PATIENCE (200 * PWI_HOST_SECOND)

static bool without_pidfd; /* every test runs with and without */

static int64_t patiently(void) { return pwi_host_after(PATIENCE); }

/* Runs a shell script. */
static struct pwi_child *start_script(const char *script, int output) {
  char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
  struct pwi_child_config config = {
      .path = "/bin/sh", .argv = argv, .output_fd = output, .without_pidfd = without_pidfd};
  struct pwi_child *child = NULL;
  assert_int_equal(pwi_child_start(&config, &child), PAWL_OK);
  return child;
}

static void expect_end(struct pwi_child_end end, enum pwi_child_how how, int number) {
  char text[32];
  if (end.how != how || (how != PWI_CHILD_ENDED && end.number != number))
    fail_msg("ended by %s", pwi_child_end_print(end, text, sizeof text));
}

static void expect_words(const struct pwi_child *child, const char *expected) {
  char words[256];
  pwi_child_last_words(child, words, sizeof words);
  assert_string_equal(words, expected);
}

static void assert_no_children(void) {
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
  assert_int_equal(errno, ECHILD);
}

static size_t open_descriptors(void) {
  size_t count = 0;
  for (int fd = 0; fd < 256; fd++) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

static size_t descriptors_before;

static int note_descriptors(void **state) {
  (void)state;
  descriptors_before = open_descriptors();
  return 0;
}

/* Checks that a test leaves no process, descriptor or memory behind. */
static int check_rest(void **state) {
  (void)state;
  assert_no_children();
  assert_int_equal(open_descriptors(), descriptors_before);
  assert_int_equal(pwi_memory_counts().live, 0);
  return 0;
}

/* --- ready ---------------------------------------------------------------------------------------------- */

static void test_a_child_says_that_it_is_ready(void **state) {
  (void)state;
  struct pwi_child *child = start_script("echo ready address=tcp://127.0.0.1:4711 pid=$$ >&3; exec sleep 1000", -1);
  const char *line, *again;
  char value[64], pid[16];
  assert_int_equal(pwi_child_ready(child, patiently(), &line), PAWL_OK);
  assert_int_equal(pwi_child_value(line, "address", value, sizeof value), PAWL_OK);
  assert_string_equal(value, "tcp://127.0.0.1:4711");
  snprintf(pid, sizeof pid, "%d", (int)pwi_child_pid(child));
  assert_int_equal(pwi_child_value(line, "pid", value, sizeof value), PAWL_OK);
  assert_string_equal(value, pid);
  assert_int_equal(pwi_child_ready(child, 0, &again), PAWL_OK);
  assert_ptr_equal(line, again);
  struct pwi_child_end end;
  assert_int_equal(pwi_child_wait(child, 0, &end), PAWL_TIMED_OUT);
  expect_end(pwi_child_stop(child, PATIENCE), PWI_CHILD_SIGNALLED, SIGTERM);
}

static void test_a_line_may_come_in_pieces(void **state) {
  (void)state;
  struct pwi_child *child = start_script("for w in re ad 'y a=' 1; do printf %s \"$w\" >&3; sleep 0.01; done;"
                                         "echo >&3; exec sleep 1000",
                                         -1);
  const char *line;
  assert_int_equal(pwi_child_ready(child, patiently(), &line), PAWL_OK);
  assert_string_equal(line, "ready a=1");
  pwi_child_stop(child, PATIENCE);
}

static void test_a_child_that_said_ready_and_ended_was_ready(void **state) {
  (void)state;
  struct pwi_child *child = start_script("echo ready >&3; exit 7", -1);
  struct pwi_child_end end;
  assert_int_equal(pwi_child_wait(child, patiently(), &end), PAWL_OK);
  expect_end(end, PWI_CHILD_EXITED, 7);
  const char *line;
  assert_int_equal(pwi_child_ready(child, 0, &line), PAWL_OK);
  assert_string_equal(line, "ready");
  expect_end(pwi_child_stop(child, PATIENCE), PWI_CHILD_EXITED, 7);
}

static void test_a_child_that_ends_first_leaves_its_last_words(void **state) {
  (void)state;
  struct pwi_child *child =
      start_script("echo on stdout; echo the port is in use >&2; printf 'a\\033b' >&2; exit 3", PWI_CHILD_OUTPUT_KEEP);
  const char *line = NULL;
  assert_int_equal(pwi_child_ready(child, patiently(), &line), PAWL_NODE_STOPPED);
  assert_null(line);
  expect_words(child, "on stdout\nthe port is in use\na?b");
  char little[6];
  pwi_child_last_words(child, little, sizeof little);
  assert_string_equal(little, "e\na?b");
  expect_end(pwi_child_stop(child, 0), PWI_CHILD_EXITED, 3);
}

static void test_a_child_that_closes_the_pipe_in_silence_is_not_ready(void **state) {
  (void)state;
  struct pwi_child *child = start_script("exec 3>&-; sleep 0.05; kill -9 $$", -1);
  const char *line;
  assert_int_equal(pwi_child_ready(child, patiently(), &line), PAWL_NODE_STOPPED);
  expect_end(pwi_child_stop(child, 0), PWI_CHILD_SIGNALLED, SIGKILL);
}

static void test_waiting_for_ready_ends_with_its_deadline(void **state) {
  (void)state;
  struct pwi_child *child = start_script("exec sleep 1000", -1);
  const char *line;
  assert_int_equal(pwi_child_ready(child, pwi_host_after(PWI_HOST_SECOND / 50), &line), PAWL_TIMED_OUT);
  assert_int_equal(pwi_child_ready(child, INT64_MIN, &line), PAWL_TIMED_OUT);
  expect_end(pwi_child_stop(child, PATIENCE), PWI_CHILD_SIGNALLED, SIGTERM);
}

static void test_a_malformed_ready_line_is_corrupt(void **state) {
  (void)state;
  static const char *const scripts[] = {
      "echo reading >&3; exec sleep 1000",
      "echo >&3; exec sleep 1000",
      "echo READY >&3; exec sleep 1000",
      "printf 'ready\\000 a=1\\n' >&3; exec sleep 1000",
      "printf 'ready \\033[1m\\n' >&3; exec sleep 1000",
      "printf 'ready %01018d\\n' 1 >&3; exec sleep 1000", /* one byte too many */
      "head -c 100000 /dev/zero >&3; exec sleep 1000",
  };
  for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
    struct pwi_child *child = start_script(scripts[i], -1);
    const char *line = NULL;
    for (int tries = 0; tries < 3; tries++) assert_int_equal(pwi_child_ready(child, patiently(), &line), PAWL_CORRUPT);
    assert_null(line);
    pwi_child_stop(child, 0);
  }
}

static void test_the_longest_line_is_taken(void **state) {
  (void)state;
  struct pwi_child *child = start_script("printf 'ready %01017d\\nmore' 1 >&3; exec sleep 1000", -1);
  const char *line;
  assert_int_equal(pwi_child_ready(child, patiently(), &line), PAWL_OK);
  assert_int_equal(strlen(line), PWI_READY_LINE_MAX);
  pwi_child_stop(child, 0);
}

static void test_values_are_found_by_whole_keys(void **state) {
  (void)state;
  char value[8];
  const char *line = "ready  address=a x=1=2 empty= y";
  assert_int_equal(pwi_child_value(line, "x", value, sizeof value), PAWL_OK);
  assert_string_equal(value, "1=2");
  assert_int_equal(pwi_child_value(line, "empty", value, sizeof value), PAWL_OK);
  assert_string_equal(value, "");
  assert_int_equal(pwi_child_value(line, "addr", value, sizeof value), PAWL_NOT_FOUND);
  assert_int_equal(pwi_child_value(line, "y", value, sizeof value), PAWL_NOT_FOUND);
  assert_int_equal(pwi_child_value(line, "ready", value, sizeof value), PAWL_NOT_FOUND);
  assert_int_equal(pwi_child_value("", "x", value, sizeof value), PAWL_NOT_FOUND);
  assert_int_equal(pwi_child_value("ready x=12345678", "x", value, sizeof value), PAWL_TOO_LARGE);
}

/* --- its environment ------------------------------------------------------------------------------------ */

static int list_descriptors(void) {
  for (int fd = 0; fd < 256; fd++) {
    char path[32], target[PATH_MAX];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0) continue;
    target[length] = '\0';
    target[strcspn(target, ":")] = '\0';
    printf("%d %s\n", fd, target);
  }
  return 0;
}

static void test_a_child_gets_four_descriptors_and_no_more(void **state) {
  (void)state;
  int leak = dup(2); /* not close-on-exec, as in careless programs */
  assert_true(leak >= 3);
  char *argv[] = {(char *)"x", (char *)"list-descriptors", NULL};
  struct pwi_child_config config = {
      .path = "/proc/self/exe", .argv = argv, .output_fd = PWI_CHILD_OUTPUT_KEEP, .without_pidfd = without_pidfd};
  struct pwi_child *child;
  struct pwi_child_end end;
  assert_int_equal(pwi_child_start(&config, &child), PAWL_OK);
  assert_int_equal(pwi_child_wait(child, patiently(), &end), PAWL_OK);
  close(leak);
  expect_words(child, "0 /dev/null\n1 /memfd\n2 /memfd\n3 pipe\n");
  pwi_child_stop(child, 0);
}

static void test_descriptors_are_right_even_if_the_first_ones_are_free(void **state) {
  (void)state;
  int saved[2] = {dup(0), dup(2)};
  close(0);
  close(2);
  struct pwi_child *child = start_script("echo ready >&3; cat; echo said >&2", PWI_CHILD_OUTPUT_KEEP);
  struct pwi_child *other = start_script("echo ready >&3; cat; echo unheard >&2", -1);
  struct pwi_child_end end, other_end;
  const char *line;
  pawl_status status = pwi_child_wait(child, patiently(), &end);
  pawl_status other_status = pwi_child_wait(other, patiently(), &other_end);
  pawl_status ready = pwi_child_ready(child, 0, &line);
  pawl_status other_ready = pwi_child_ready(other, 0, &line);
  char words[32];
  pwi_child_last_words(child, words, sizeof words);
  pwi_child_stop(child, 0);
  pwi_child_stop(other, 0);
  assert_int_equal(dup2(saved[0], 0), 0);
  assert_int_equal(dup2(saved[1], 2), 2);
  close(saved[0]);
  close(saved[1]);
  assert_int_equal(status, PAWL_OK);
  assert_int_equal(other_status, PAWL_OK);
  assert_int_equal(ready, PAWL_OK);
  assert_int_equal(other_ready, PAWL_OK);
  expect_end(other_end, PWI_CHILD_EXITED, 0);
  assert_string_equal(words, "said\n");
}

static void test_output_goes_to_a_file_and_older_words_are_not_its_own(void **state) {
  (void)state;
  char path[] = "/tmp/pawl-children-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(write(file, "older\n", 6), 6);
  close(file);
  file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  unlink(path);
  struct pwi_child *child = start_script("echo newer", file);
  struct pwi_child_end end;
  assert_int_equal(pwi_child_wait(child, patiently(), &end), PAWL_OK);
  expect_words(child, "newer\n");
  struct stat about;
  assert_int_equal(fstat(file, &about), 0);
  assert_int_equal(about.st_size, 12);
  close(file);
  pwi_child_stop(child, 0);
}

static void test_the_environment_is_added_to(void **state) {
  (void)state;
  setenv("PAWL_TEST_KEPT", "old", 1);
  setenv("PAWL_TEST_CHANGED", "old", 1);
  const char *const additions[] = {"PAWL_TEST_CHANGED=new", "PAWL_TEST=", NULL};
  char *argv[] = {(char *)"sh", (char *)"-c",
                  (char *)"echo $PAWL_TEST_KEPT $PAWL_TEST_CHANGED ${PAWL_TEST-unset}.; env | grep -c ^PAWL_TEST",
                  NULL};
  struct pwi_child_config config = {"/bin/sh", argv, additions, PWI_CHILD_OUTPUT_KEEP, false, without_pidfd};
  struct pwi_child *child;
  assert_int_equal(pwi_child_start(&config, &child), PAWL_OK);
  struct pwi_child_end end;
  assert_int_equal(pwi_child_wait(child, patiently(), &end), PAWL_OK);
  expect_words(child, "old new .\n3\n");
  pwi_child_stop(child, 0);
  unsetenv("PAWL_TEST_KEPT");
  unsetenv("PAWL_TEST_CHANGED");
}

static void test_signals_are_as_a_new_program_expects_them(void **state) {
  (void)state;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  void (*pipe_before)(int) = signal(SIGPIPE, SIG_IGN);
  struct pwi_child *child =
      start_script("sed -n 's/^Sig[BI][lg][kn]:[^0-9]//p' /proc/self/status", PWI_CHILD_OUTPUT_KEEP);
  signal(SIGPIPE, pipe_before);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  struct pwi_child_end end;
  assert_int_equal(pwi_child_wait(child, patiently(), &end), PAWL_OK);
  char words[64], *rest;
  pwi_child_last_words(child, words, sizeof words);
  assert_int_equal(strtoull(words, &rest, 16), 0); /* blocked */
  assert_int_equal(strtoull(rest, &rest, 16) & ~(UINT64_C(3) << 31),
                   0); /* ignored; 32 and 33 belong to the C library */
  assert_string_equal(rest, "\n");
  pwi_child_stop(child, 0);
}

static void test_a_group_of_its_own_is_given_on_request(void **state) {
  (void)state;
  char *argv[] = {(char *)"sleep", (char *)"1000", NULL};
  struct pwi_child_config config = {.path = "/bin/sleep", .argv = argv, .output_fd = -1};
  for (int own = 0; own < 2; own++) {
    config.own_group = own;
    struct pwi_child *child;
    assert_int_equal(pwi_child_start(&config, &child), PAWL_OK);
    assert_int_equal(getpgid(pwi_child_pid(child)), own ? pwi_child_pid(child) : getpgrp());
    pwi_child_stop(child, PATIENCE);
  }
}

/* --- its end -------------------------------------------------------------------------------------------- */

static void test_a_child_that_does_not_listen_is_killed(void **state) {
  (void)state;
  struct pwi_child *child = start_script("trap '' TERM; echo ready >&3; exec sleep 1000", -1);
  const char *line;
  assert_int_equal(pwi_child_ready(child, patiently(), &line), PAWL_OK);
  pwi_child_ask(child);
  expect_end(pwi_child_stop(child, PWI_HOST_SECOND / 50), PWI_CHILD_SIGNALLED, SIGKILL);
}

static void test_a_stopped_child_is_killed_too(void **state) {
  (void)state;
  struct pwi_child *child = start_script("kill -STOP $$", -1);
  siginfo_t info = {0};
  assert_int_equal(waitid(P_PID, (id_t)pwi_child_pid(child), &info, WSTOPPED | WNOWAIT), 0);
  expect_end(pwi_child_stop(child, PWI_HOST_SECOND / 20), PWI_CHILD_SIGNALLED, SIGKILL);
}

static void test_a_child_may_clean_up_when_asked(void **state) {
  (void)state;
  struct pwi_child *child = start_script("trap 'exit 5' TERM; echo ready >&3; while :; do sleep 0.01; done", -1);
  const char *line;
  assert_int_equal(pwi_child_ready(child, patiently(), &line), PAWL_OK);
  expect_end(pwi_child_stop(child, PATIENCE), PWI_CHILD_EXITED, 5);
}

static void test_a_program_that_ignores_its_children_can_have_some(void **state) {
  (void)state;
  void (*before)(int) = signal(SIGCHLD, SIG_IGN);
  struct pwi_child *ended = start_script("exit 3", -1);
  struct pwi_child *running = start_script("exec sleep 1000", -1);
  const char *line;
  assert_int_equal(pwi_child_ready(ended, patiently(), &line), PAWL_NODE_STOPPED);
  expect_end(pwi_child_stop(ended, 0), PWI_CHILD_ENDED, 0);
  expect_end(pwi_child_stop(running, PATIENCE), PWI_CHILD_ENDED, 0);
  signal(SIGCHLD, before);
}

static atomic_bool reaping;

static void *reap_everything(void *argument) {
  (void)argument;
  while (atomic_load(&reaping))
    if (waitpid(-1, NULL, WNOHANG) <= 0) usleep(100);
  return NULL;
}

/* It is undefined who reaps the child first. Everything must end, and nothing may be left behind. */
static void test_a_program_may_reap_everything_itself(void **state) {
  (void)state;
  pthread_t reaper;
  atomic_store(&reaping, true);
  assert_int_equal(pthread_create(&reaper, NULL, reap_everything, NULL), 0);
  for (int i = 0; i < 20; i++) {
    struct pwi_child *child = start_script(i % 2 ? "exit 3" : "exec sleep 1000", -1);
    struct pwi_child_end end = pwi_child_stop(child, PATIENCE);
    assert_int_not_equal(end.how, PWI_CHILD_RUNS);
  }
  atomic_store(&reaping, false);
  pthread_join(reaper, NULL);
}

static void *start_and_stop(void *argument) {
  atomic_int *failures = argument;
  for (int i = 0; i < 5; i++) {
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)"echo ready n=$$ >&3; exec sleep 1000", NULL};
    struct pwi_child_config config = {.path = "/bin/sh", .argv = argv, .output_fd = -1, .without_pidfd = without_pidfd};
    struct pwi_child *child;
    const char *line;
    if (pwi_child_start(&config, &child) != PAWL_OK) {
      atomic_fetch_add(failures, 1);
      continue;
    }
    if (pwi_child_ready(child, patiently(), &line) != PAWL_OK) atomic_fetch_add(failures, 1);
    if (pwi_child_stop(child, PATIENCE).number != SIGTERM) atomic_fetch_add(failures, 1);
  }
  return NULL;
}

static void test_threads_start_children_side_by_side(void **state) {
  (void)state;
  pthread_t threads[4];
  atomic_int failures = 0;
  for (size_t i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, start_and_stop, &failures), 0);
  for (size_t i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&failures), 0);
}

/* --- failures ------------------------------------------------------------------------------------------- */

static pawl_status start_path(const char *path) {
  char *argv[] = {(char *)"x", NULL};
  struct pwi_child_config config = {.path = path, .argv = argv, .output_fd = PWI_CHILD_OUTPUT_KEEP};
  struct pwi_child *child;
  pawl_status status = pwi_child_start(&config, &child);
  if (!status) pwi_child_stop(child, 0);
  return status;
}

static void test_a_file_that_is_no_program_is_not_started(void **state) {
  (void)state;
  assert_int_equal(start_path("/nowhere/at/all"), PAWL_NOT_FOUND);
  assert_int_equal(start_path("/dev/null/x"), PAWL_NOT_FOUND);
  assert_int_equal(start_path("/tmp"), PAWL_FORBIDDEN);
  assert_int_equal(start_path("/dev/null"), PAWL_FORBIDDEN);
  expect_end(pwi_child_stop(NULL, 0), PWI_CHILD_ENDED, 0);
}

static void test_lack_of_memory_and_descriptors_is_an_error(void **state) {
  (void)state;
  for (uint64_t n = 0;; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = start_path("/bin/true");
    int failed = pwi_memory_fail_cancel();
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    assert_int_equal(pwi_memory_counts().live, 0);
    if (!failed) break;
  }
  struct rlimit before, few;
  getrlimit(RLIMIT_NOFILE, &before);
  int failures = 0;
  for (rlim_t limit = 0; limit < 16; limit++) {
    few = before;
    few.rlim_cur = limit;
    setrlimit(RLIMIT_NOFILE, &few);
    pawl_status status = start_path("/bin/true");
    setrlimit(RLIMIT_NOFILE, &before);
    failures += status != PAWL_OK;
    assert_int_equal(open_descriptors(), descriptors_before);
  }
  assert_in_range(failures, 1, 15);
}

/* --- the command ---------------------------------------------------------------------------------------- */

static void make_program(const char *folder) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/pawl", folder);
  int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
  assert_true(file >= 0);
  close(file);
}

static void remove_program(const char *folder) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/pawl", folder);
  unlink(path);
  rmdir(folder);
}

static void test_the_command_is_where_the_environment_says(void **state) {
  (void)state;
  char path[PATH_MAX], tiny[3];
  setenv("PAWL_COMMAND", "/bin/sh", 1);
  assert_int_equal(pwi_child_command(path, sizeof path), PAWL_OK);
  assert_string_equal(path, "/bin/sh");
  assert_int_equal(pwi_child_command(tiny, sizeof tiny), PAWL_TOO_LARGE);
  setenv("PAWL_COMMAND", "/nowhere/pawl", 1);
  assert_int_equal(pwi_child_command(path, sizeof path), PAWL_NOT_FOUND);
  setenv("PAWL_COMMAND", "/tmp", 1);
  assert_int_equal(pwi_child_command(path, sizeof path), PAWL_NOT_FOUND);
  unsetenv("PAWL_COMMAND");
}

/* No program called pawl is where this test looks first: its folder is build/tests, and there is no
 * build/bin. */
static void test_the_command_is_found_on_the_path(void **state) {
  (void)state;
  char folder[] = "/tmp/pawl-command-XXXXXX", path[PATH_MAX], wanted[PATH_MAX], search[PATH_MAX + 64];
  assert_non_null(mkdtemp(folder));
  unsetenv("PAWL_COMMAND");
  const char *path_before = getenv("PATH");
  char *before = strdup(path_before ? path_before : "/bin");
  snprintf(search, sizeof search, ":relative:/nowhere::%s:", folder);
  setenv("PATH", search, 1);
  bool elsewhere = pwi_child_command(path, sizeof path) == PAWL_OK;
  make_program(folder);
  pawl_status status = pwi_child_command(path, sizeof path);
  setenv("PATH", before, 1);
  free(before);
  remove_program(folder);
  if (elsewhere) skip();
  snprintf(wanted, sizeof wanted, "%s/pawl", folder);
  assert_int_equal(status, PAWL_OK);
  assert_string_equal(path, wanted);
}

/* Copies this program. */
static void copy_self(const char *path) {
  int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  int to = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
  char piece[65536];
  ssize_t got;
  while ((got = read(from, piece, sizeof piece)) > 0) assert_int_equal(write(to, piece, (size_t)got), got);
  assert_int_equal(got, 0);
  close(from);
  close(to);
}

/* Asks the program where the command is. */
static void ask_program(const char *program, char *said, size_t size) {
  char *argv[] = {(char *)"x", (char *)"find-command", NULL};
  const char *const environment[] = {"PAWL_COMMAND=", "PATH=/nowhere", NULL};
  struct pwi_child_config config = {program, argv, environment, PWI_CHILD_OUTPUT_KEEP, false, false};
  struct pwi_child *child;
  struct pwi_child_end end;
  assert_int_equal(pwi_child_start(&config, &child), PAWL_OK);
  assert_int_equal(pwi_child_wait(child, patiently(), &end), PAWL_OK);
  pwi_child_last_words(child, said, size);
  pwi_child_stop(child, 0);
}

/* A copy of this program in a folder of its own reports what it finds beside itself. */
static void expect_beside(const char *program_folder, const char *command_folder) {
  char root[] = "/tmp/pawl-command-XXXXXX", here[64], there[64], program[80], wanted[80];
  char said[PATH_MAX], real[PATH_MAX];
  assert_non_null(mkdtemp(root));
  snprintf(here, sizeof here, "%s/%s", root, program_folder);
  snprintf(there, sizeof there, "%s/%s", root, command_folder);
  snprintf(program, sizeof program, "%s/program", here);
  snprintf(wanted, sizeof wanted, "%s/pawl", there);
  mkdir(here, 0700);
  mkdir(there, 0700);
  make_program(there);
  copy_self(program);
  ask_program(program, said, sizeof said);
  bool found = realpath(said, real) && strcmp(real, wanted) == 0;
  unlink(program);
  remove_program(there);
  rmdir(here);
  rmdir(root);
  if (!found) fail_msg("'%s' and not '%s'", said, wanted);
}

static void test_the_command_is_found_beside_the_program(void **state) {
  (void)state;
  expect_beside("bin", "bin");
  expect_beside("libexec", "bin");
}

static int find_command(void) {
  char path[PATH_MAX];
  if (pwi_child_command(path, sizeof path) != PAWL_OK) return 1;
  printf("%s", path);
  return 0;
}

/* --- all of them ---------------------------------------------------------------------------------------- */

#define TEST(name) cmocka_unit_test_setup_teardown(name, note_descriptors, check_rest)

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "find-command") == 0) return find_command();
  if (argc == 2 && strcmp(argv[1], "list-descriptors") == 0) return list_descriptors();
  const struct CMUnitTest tests[] = {
      TEST(test_a_child_says_that_it_is_ready),
      TEST(test_a_line_may_come_in_pieces),
      TEST(test_a_child_that_said_ready_and_ended_was_ready),
      TEST(test_a_child_that_ends_first_leaves_its_last_words),
      TEST(test_a_child_that_closes_the_pipe_in_silence_is_not_ready),
      TEST(test_waiting_for_ready_ends_with_its_deadline),
      TEST(test_a_malformed_ready_line_is_corrupt),
      TEST(test_the_longest_line_is_taken),
      TEST(test_values_are_found_by_whole_keys),
      TEST(test_a_child_gets_four_descriptors_and_no_more),
      TEST(test_descriptors_are_right_even_if_the_first_ones_are_free),
      TEST(test_output_goes_to_a_file_and_older_words_are_not_its_own),
      TEST(test_the_environment_is_added_to),
      TEST(test_signals_are_as_a_new_program_expects_them),
      TEST(test_a_group_of_its_own_is_given_on_request),
      TEST(test_a_child_that_does_not_listen_is_killed),
      TEST(test_a_stopped_child_is_killed_too),
      TEST(test_a_child_may_clean_up_when_asked),
      TEST(test_a_program_that_ignores_its_children_can_have_some),
      TEST(test_a_program_may_reap_everything_itself),
      TEST(test_threads_start_children_side_by_side),
      TEST(test_a_file_that_is_no_program_is_not_started),
      TEST(test_lack_of_memory_and_descriptors_is_an_error),
      TEST(test_the_command_is_where_the_environment_says),
      TEST(test_the_command_is_found_on_the_path),
      TEST(test_the_command_is_found_beside_the_program),
  };
  int failed = cmocka_run_group_tests_name("with a pidfd", tests, NULL, NULL);
  without_pidfd = true;
  return failed + cmocka_run_group_tests_name("without", tests, NULL, NULL);
}
