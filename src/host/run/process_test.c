
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing.h"
#include "host/run/process.h"

static atomic_int last;

static void stop(void *context, int times) {
  assert_ptr_equal(context, &last);
  atomic_store(&last, times);
}

static struct pwi_run_process_config config_of(pid_t parent, int fd) {
  atomic_store(&last, 0);
  return (struct pwi_run_process_config){.parent = parent, .ready_fd = fd, .stop = stop, .context = &last};
}

static void test_signals_are_counted(void **state) {
  (void)state;
  struct pwi_run_process_config config = config_of(0, -1);
  struct sigaction action;
  assert_int_equal(pwi_run_process_open(&config), PAWL_OK);
  assert_int_equal(pwi_run_process_open(&config), PAWL_EXISTS);
  raise(SIGTERM);
  assert_int_equal(atomic_load(&last), 1);
  raise(SIGINT);
  assert_int_equal(atomic_load(&last), 2);
  pwi_run_process_close();
  pwi_run_process_close();
  assert_int_equal(sigaction(SIGTERM, NULL, &action), 0);
  assert_true(action.sa_handler == SIG_DFL);
  assert_int_equal(pwi_run_process_open(&config), PAWL_OK); /* the count starts anew */
  raise(SIGTERM);
  assert_int_equal(atomic_load(&last), 1);
  pwi_run_process_close();
}

static void test_ready_is_said_in_one_line(void **state) {
  (void)state;
  int ends[2];
  char line[128] = "";
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  struct pwi_run_process_config config = config_of(0, ends[1]);
  assert_int_equal(pwi_run_process_open(&config), PAWL_OK);
  assert_int_equal(pwi_run_process_ready("tcp://127.0.0.1:7"), PAWL_OK);
  assert_true(read(ends[0], line, sizeof line - 1) > 0);
  assert_string_equal(line, "ready address=tcp://127.0.0.1:7\n");
  pwi_run_process_close();
  config = config_of(0, -1);
  assert_int_equal(pwi_run_process_open(&config), PAWL_OK);
  assert_int_equal(pwi_run_process_ready("anything"), PAWL_OK); /* no descriptor was given */
  pwi_run_process_close();
  close(ends[0]);
  close(ends[1]);
}

/* The watched process is in the middle: it starts the watcher and ends. The watcher reports on a pipe what
 * it was told. */
static void test_a_parent_that_is_gone_counts_two(void **state) {
  (void)state;
  int told[2];
  int32_t times = 0;
  assert_int_equal(pipe2(told, O_CLOEXEC), 0);
  pid_t middle = fork();
  assert_true(middle >= 0);
  if (middle == 0) {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) _exit(1);
    pid_t parent = getpid();
    if (fork() == 0) {
      close(ready[0]);
      struct pwi_run_process_config config = config_of(parent, ready[1]);
      if (pwi_run_process_open(&config) != PAWL_OK || pwi_run_process_ready("x") != PAWL_OK) _exit(1);
      for (int i = 0; i < 20000 && atomic_load(&last) == 0; i++) usleep(10000);
      times = atomic_load(&last);
      pwi_run_process_close();
      ssize_t written = write(told[1], &times, sizeof times);
      _exit(written == (ssize_t)sizeof times ? 0 : 1);
    }
    char byte;
    _exit(read(ready[0], &byte, 1) == 1 ? 0 : 1); /* not before the watch has begun */
  }
  int status;
  close(told[1]);
  assert_int_equal(waitpid(middle, &status, 0), middle);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_int_equal(read(told[0], &times, sizeof times), sizeof times);
  assert_int_equal(times, 2);
  close(told[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_signals_are_counted),
      cmocka_unit_test(test_ready_is_said_in_one_line),
      cmocka_unit_test(test_a_parent_that_is_gone_counts_two),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
