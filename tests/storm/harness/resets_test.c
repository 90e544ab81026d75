/* A reset reaches both ends of one connection, and no other connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing.h"
#include "resets.h"

#define CONNECTIONS 3

/* Connects, and waits for the end of each connection. Its exit code has a bit for each that was reset. */
static void be_the_peer(const struct sockaddr_in *address) {
  int handles[CONNECTIONS], resets = 0;
  char byte;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int i = 0; i < CONNECTIONS; i++) {
    handles[i] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(handles[i], (const struct sockaddr *)address, sizeof *address) != 0) _exit(100);
  }
  for (int i = 0; i < CONNECTIONS; i++) {
    ssize_t got = read(handles[i], &byte, 1);
    resets |= (got < 0 && errno == ECONNRESET) << i;
  }
  _exit(resets);
}

static int listen_at(struct sockaddr_in *address_out) {
  socklen_t size = sizeof *address_out;
  int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  *address_out = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  assert_int_equal(bind(handle, (struct sockaddr *)address_out, size), 0);
  assert_int_equal(listen(handle, CONNECTIONS), 0);
  assert_int_equal(getsockname(handle, (struct sockaddr *)address_out, &size), 0);
  return handle;
}

/* The number of our ends that were reset; closes all of them. */
static int count_resets(const int handles[CONNECTIONS]) {
  char byte;
  int resets = 0;
  for (int i = 0; i < CONNECTIONS; i++) {
    ssize_t got = recv(handles[i], &byte, 1, MSG_DONTWAIT);
    resets += got < 0 && errno == ECONNRESET;
    close(handles[i]);
  }
  return resets;
}

static void test_both_ends_of_one_connection_are_reset(void **state) {
  (void)state;
  struct sockaddr_in address;
  int handles[CONNECTIONS], status, listener = listen_at(&address);
  char peer[64], own[64];
  pid_t process = fork();
  if (process == 0) be_the_peer(&address);
  int trouble = pwi_storm_reset_trouble(process);
  if (trouble) {
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
    printf("skipped: %s\n", strerror(trouble));
    skip();
  }
  for (int i = 0; i < CONNECTIONS; i++) handles[i] = accept(listener, NULL, NULL);
  assert_true(pwi_storm_reset(process, 1, peer, sizeof peer));
  snprintf(own, sizeof own, "127.0.0.1:%u", (unsigned)ntohs(address.sin_port));
  assert_string_equal(peer, own);
  assert_int_equal(count_resets(handles), 1);
  assert_int_equal(waitpid(process, &status, 0), process);
  assert_true(WIFEXITED(status));
  assert_int_equal(__builtin_popcount((unsigned)WEXITSTATUS(status)), 1);
  close(listener);
}

static void test_a_process_without_connections_has_nothing_to_reset(void **state) {
  (void)state;
  char peer[64];
  pid_t process = fork();
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pause();
    _exit(0);
  }
  assert_false(pwi_storm_reset(process, 0, peer, sizeof peer));
  kill(process, SIGKILL);
  waitpid(process, NULL, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_both_ends_of_one_connection_are_reset),
      cmocka_unit_test(test_a_process_without_connections_has_nothing_to_reset),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
