/* Identification of processes by the kernel, with child processes that connect to a unix socket. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing.h"
#include "net/process.h"

#define NOBODY 65534

static const char secret[] = "where the parent looks for it";

static int listen_somewhere(struct sockaddr_un *address, socklen_t *size) {
  int source = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  assert_int_equal(bind(source, (struct sockaddr *)address, sizeof(sa_family_t)), 0);
  *size = sizeof *address;
  assert_int_equal(getsockname(source, (struct sockaddr *)address, size), 0);
  assert_int_equal(listen(source, 4), 0);
  return source;
}

static void be_child(const struct sockaddr_un *address, socklen_t size, uid_t user) {
  char copy[sizeof secret];
  memcpy(copy, secret, sizeof secret);
  uint64_t place = (uint64_t)(uintptr_t)copy;
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  if (user && setuid(user) != 0) _exit(1);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int handle = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  if (connect(handle, (const struct sockaddr *)address, size) != 0) _exit(2);
  if (send(handle, &place, sizeof place, 0) != sizeof place) _exit(3);
  for (;;) pause();
}

/* Starts a child that connects; returns our end of it. */
static int start(uid_t user, pid_t *child_out, uint64_t *place_out) {
  struct sockaddr_un address;
  socklen_t size;
  int source = listen_somewhere(&address, &size);
  *child_out = fork();
  assert_true(*child_out >= 0);
  if (*child_out == 0) be_child(&address, size, user);
  int handle = accept(source, NULL, NULL);
  assert_true(handle >= 0);
  assert_int_equal(recv(handle, place_out, sizeof *place_out, 0), sizeof *place_out);
  close(source);
  return handle;
}

static void end(pid_t child) {
  int ignored;
  kill(child, SIGKILL);
  assert_int_equal(waitpid(child, &ignored, 0), child);
}

static void test_the_process_at_the_other_end_is_named_and_can_be_read(void **state) {
  (void)state;
  pid_t child;
  uint64_t place;
  struct pwi_process process;
  char seen[sizeof secret] = "";
  struct iovec local = {seen, sizeof seen};
  int handle = start(0, &child, &place);
  assert_true(pwi_process_open(handle, &process));
  assert_int_equal(process.number, child);
  assert_true(pwi_process_read(&process, &local, 1, place, sizeof seen));
  assert_string_equal(seen, secret);
  assert_false(pwi_process_read(&process, &local, 1, 0, sizeof seen));
  assert_false(pwi_process_read(&process, &local, 1, UINT64_MAX - 8, sizeof seen));
  pwi_process_close(&process);
  assert_false(pwi_process_read(&process, &local, 1, place, sizeof seen));
  pwi_process_close(&process);
  close(handle);
  end(child);
}

/* The number is free then and may be reused: here it is that of this process. */
static void test_a_process_that_is_gone_is_not_read_under_its_number(void **state) {
  (void)state;
  pid_t child;
  uint64_t place;
  struct pwi_process process;
  char seen[sizeof secret] = "";
  struct iovec local = {seen, sizeof seen};
  int handle = start(0, &child, &place);
  assert_true(pwi_process_open(handle, &process));
  end(child);
  assert_false(pwi_process_read(&process, &local, 1, place, sizeof seen));
  process.number = (int32_t)getpid();
  assert_false(pwi_process_read(&process, &local, 1, (uint64_t)(uintptr_t)secret, sizeof seen));
  assert_false(pwi_process_open(handle, &process) && process.number == child);
  close(handle);
}

static void test_ourselves_are_our_own_user(void **state) {
  (void)state;
  int ends[2];
  struct pwi_process process;
  char seen[sizeof secret];
  struct iovec local = {seen, sizeof seen};
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  assert_true(pwi_process_open(ends[0], &process));
  assert_int_equal(process.number, getpid());
  assert_true(pwi_process_read(&process, &local, 1, (uint64_t)(uintptr_t)secret, sizeof seen));
  pwi_process_close(&process);
  close(ends[0]);
  close(ends[1]);
}

static void test_a_process_of_another_user_is_refused(void **state) {
  (void)state;
  pid_t child;
  uint64_t place;
  struct pwi_process process;
  if (geteuid() != 0) skip();
  int handle = start(NOBODY, &child, &place);
  assert_false(pwi_process_open(handle, &process));
  close(handle);
  end(child);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_process_at_the_other_end_is_named_and_can_be_read),
      cmocka_unit_test(test_a_process_that_is_gone_is_not_read_under_its_number),
      cmocka_unit_test(test_ourselves_are_our_own_user),
      cmocka_unit_test(test_a_process_of_another_user_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
