/* A Redis server on this machine, and a client that keeps it busy.
 *
 * Commands are sent in batches of a thousand, the next batch before the answers to the last are read, so
 * that the server never waits. They are formatted before the clock starts. Every answer is one line.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/memory.h"
#include "sketch.h"

#define PIECE 1000 /* commands per batch */
#define PIECES 200 /* formatted batches, which are repeated */
#define COMMAND_MAX 96
#define START_SECONDS 10
#define PROGRAM "redis-server"

struct pwi_redis {
  const struct pwi_command *command;
  pid_t pid;
  int fd;
};

/* --- the server ----------------------------------------------------------------------------------------- */

static bool find_program(char *path, size_t size) {
  const char *at = getenv("PATH");
  for (char part[512]; at && *at; at += strcspn(at, ":"), at += *at == ':') {
    snprintf(part, sizeof part, "%.*s", (int)strcspn(at, ":"), at);
    snprintf(path, size, "%s/%s", part, PROGRAM);
    if (access(path, X_OK) == 0) return true;
  }
  return false;
}

/* A port that is free at the moment. */
static uint16_t free_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  if (bind(fd, (struct sockaddr *)&address, size) || getsockname(fd, (struct sockaddr *)&address, &size))
    address.sin_port = 0;
  close(fd);
  return ntohs(address.sin_port);
}

static int connect_to(uint16_t port) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
  if (fd < 0) return -1;
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
  }
  close(fd);
  return -1;
}

/* Redis does not notice the end of its parent, so the kernel ends it with us. Its output is discarded. */
static pid_t start_child(const char *path, uint16_t port) {
  char number[8];
  snprintf(number, sizeof number, "%u", (unsigned)port);
  pid_t parent = getpid(), pid = fork();
  if (pid != 0) return pid;
  int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; fd++) dup2(nowhere, fd);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
  execl(path, PROGRAM, "--port", number, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", (char *)NULL);
  _exit(1);
}

bool pwi_redis_start(const struct pwi_command *command, struct pwi_redis **redis_out, bool *is_missing_out) {
  char path[600];
  *is_missing_out = !find_program(path, sizeof path);
  if (*is_missing_out) return false;
  struct pwi_redis *redis = pwi_alloc_zero(1, sizeof *redis);
  uint16_t port = free_port();
  if (!redis || port == 0) {
    pwi_free(redis);
    pwi_cli_failure(command, "not enough memory, or no free port, for " PROGRAM);
    return false;
  }
  *redis = (struct pwi_redis){.command = command, .fd = -1, .pid = start_child(path, port)};
  if (redis->pid > 0)
    for (int i = 0; i < START_SECONDS * 100 && redis->fd < 0; i++) {
      usleep(10000);
      redis->fd = connect_to(port);
    }
  if (redis->fd >= 0) {
    *redis_out = redis;
    return true;
  }
  pwi_redis_stop(redis);
  pwi_cli_failure(command, PROGRAM " does not start");
  return false;
}

void pwi_redis_stop(struct pwi_redis *redis) {
  if (!redis) return;
  if (redis->fd >= 0) close(redis->fd);
  if (redis->pid > 0) {
    kill(redis->pid, SIGKILL); /* it stores nothing */
    while (waitpid(redis->pid, NULL, 0) < 0 && errno == EINTR) continue;
  }
  pwi_free(redis);
}

/* --- commands ------------------------------------------------------------------------------------------- */

static size_t write_incr(char *to, uint64_t thing) {
  char key[24];
  int length = snprintf(key, sizeof key, "k%" PRIu64, thing);
  return (size_t)snprintf(to, COMMAND_MAX, "*2\r\n$4\r\nINCR\r\n$%d\r\n%s\r\n", length, key);
}

static size_t write_hincrby(char *to, uint64_t thing, int line) {
  char cell[16];
  int length = snprintf(cell, sizeof cell, "%u", (unsigned)(pwi_mix64(thing) >> (10 * line) & 1023));
  return (size_t)snprintf(to, COMMAND_MAX, "*4\r\n$7\r\nHINCRBY\r\n$2\r\nl%d\r\n$%d\r\n%s\r\n$1\r\n1\r\n", line, length,
                          cell);
}

/* Offsets of the batches, and of the end. */
static size_t write_pieces(char *text, enum pwi_redis_how how, const uint64_t *stream, size_t starts[PIECES + 1]) {
  size_t size = 0, thing = 0;
  int lines = how == PWI_REDIS_INCR ? 1 : 4;
  for (int i = 0; i < PIECES; i++) {
    starts[i] = size;
    for (int k = 0; k < PIECE; k += lines, thing++)
      for (int line = 0; line < lines; line++)
        size += how == PWI_REDIS_INCR ? write_incr(text + size, stream[thing])
                                      : write_hincrby(text + size, stream[thing], line);
  }
  starts[PIECES] = size;
  return thing / PIECES; /* things per batch */
}

static bool send_all(int fd, const char *text, size_t size) {
  for (ssize_t sent; size > 0; text += sent, size -= (size_t)sent)
    if ((sent = send(fd, text, size, MSG_NOSIGNAL)) <= 0) {
      if (sent == 0 || errno != EINTR) return false;
      sent = 0;
    }
  return true;
}

/* Every answer of these commands is a line with ":" and a number. Reads until at most `most` answers are
 * missing; answers of the next batch may be among those read. */
static bool receive(int fd, size_t most, size_t *waiting) {
  char text[65536];
  while (*waiting > most) {
    ssize_t size = recv(fd, text, sizeof text, 0);
    if (size < 0 && errno == EINTR) continue;
    /* "-ERR …": no valid answer is negative */
    if (size <= 0 || memchr(text, '-', (size_t)size)) return false;
    for (ssize_t i = 0; i < size; i++) *waiting -= text[i] == '\n';
  }
  return true;
}

double pwi_redis_run(struct pwi_redis *redis, enum pwi_redis_how how, const uint64_t *stream, double seconds) {
  char *text = pwi_alloc((size_t)PIECES * PIECE * COMMAND_MAX);
  size_t starts[PIECES + 1], sent = 0, waiting = 0;
  if (!text) return 0;
  size_t things = write_pieces(text, how, stream, starts);
  double begin = pwi_bench_now();
  bool good = true;
  for (; good && pwi_bench_now() - begin < seconds; sent++) {
    size_t at = sent % PIECES;
    good = send_all(redis->fd, text + starts[at], starts[at + 1] - starts[at]);
    waiting += PIECE;
    good = good && receive(redis->fd, PIECE, &waiting);
  }
  good = good && receive(redis->fd, 0, &waiting);
  double per_second = (double)(sent * things) / (pwi_bench_now() - begin);
  pwi_free(text);
  if (!good) pwi_cli_failure(redis->command, PROGRAM " has hung up, or refused a command");
  return good ? per_second : 0;
}
