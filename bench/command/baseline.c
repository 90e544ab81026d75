/* The limits of the machine without pawl: blocking sockets, and memcpy out of a shared mapping. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/histogram.h"
#include "bench.h"
#include "net.h"

#define BUFFERS 8
#define PING 64

enum command { COMMAND_STREAM = 1, COMMAND_PING, COMMAND_FETCH, COMMAND_STOP };

/* Beside the data in the shared mapping; each side spins on the other's field. */
struct mailbox {
  _Alignas(64) atomic_uint_fast64_t sent;
  _Alignas(64) atomic_uint_fast64_t taken;
  _Alignas(64) char ping[PING];
  _Alignas(64) atomic_uint_fast64_t pinged;
  _Alignas(64) atomic_uint_fast64_t ponged;
  _Alignas(64) atomic_int command;
};

struct pwi_baseline {
  bool is_shared;
  size_t size;
  pid_t child;
  int socket;
  char *data; /* BUFFERS messages */
  struct mailbox *mailbox;
};

static bool send_all(int socket, const void *from, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t moved = send(socket, (const char *)from + at, size - at, MSG_NOSIGNAL);
    if (moved <= 0 && errno != EINTR) return false;
    if (moved > 0) at += (size_t)moved;
  }
  return true;
}

static bool receive_all(int socket, void *into, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t moved = recv(socket, (char *)into + at, size - at, 0);
    if (moved == 0 || (moved < 0 && errno != EINTR)) return false;
    if (moved > 0) at += (size_t)moved;
  }
  return true;
}

/* The child on a socket: reads a command with a count, then handles that many messages or pings. */
static void serve_socket(int socket, size_t size, char *into) {
  uint64_t order[2];
  while (receive_all(socket, order, sizeof order)) {
    if (order[0] == COMMAND_STOP) return;
    if (order[0] == COMMAND_FETCH) {
      if (!send_all(socket, into, size)) return;
      continue;
    }
    size_t each = order[0] == COMMAND_STREAM ? size : PING;
    for (uint64_t i = 0; i < order[1]; i++) {
      if (!receive_all(socket, into, each)) return;
      if (order[0] == COMMAND_PING && !send_all(socket, into, PING)) return;
    }
    if (order[0] == COMMAND_STREAM && !send_all(socket, into, 1)) return;
  }
}

static void serve_shared(struct mailbox *mailbox, size_t size, const char *data, char *into) {
  uint64_t taken = 0, ponged = 0;
  while (atomic_load(&mailbox->command) != COMMAND_STOP) {
    if (atomic_load_explicit(&mailbox->sent, memory_order_acquire) > taken) {
      memcpy(into + (taken % BUFFERS) * size, data + (taken % BUFFERS) * size, size);
      atomic_store_explicit(&mailbox->taken, ++taken, memory_order_release);
    }
    if (atomic_load_explicit(&mailbox->pinged, memory_order_acquire) > ponged) {
      memcpy(into, mailbox->ping, PING);
      atomic_store_explicit(&mailbox->ponged, ++ponged, memory_order_release);
    }
  }
}

/* The child of the shared mapping spins, so it is stopped while idle: else it would occupy a core. */
static void wake_child(const struct pwi_baseline *baseline) {
  if (baseline->is_shared) kill(baseline->child, SIGCONT);
}

static void rest_child(const struct pwi_baseline *baseline) {
  if (baseline->is_shared) kill(baseline->child, SIGSTOP);
}

static int socket_pair(const char *transport, int ends[2]) {
  if (strcmp(transport, "unix") == 0) return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, (struct sockaddr *)&address, &size) != 0)
    return -1;
  ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (ends[0] < 0 || connect(ends[0], (struct sockaddr *)&address, size) != 0) return -1;
  ends[1] = accept(listener, NULL, NULL);
  close(listener);
  int yes = 1;
  for (int i = 0; i < 2; i++) setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return ends[1] < 0 ? -1 : 0;
}

struct pwi_baseline *pwi_baseline_start(const char *transport, size_t size) {
  struct pwi_baseline *baseline = calloc(1, sizeof *baseline);
  int ends[2] = {-1, -1};
  if (!baseline) return NULL;
  baseline->is_shared = strcmp(transport, "ucx") == 0;
  baseline->size = size;
  baseline->socket = -1;
  baseline->data = mmap(NULL, BUFFERS * size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  baseline->mailbox = mmap(NULL, sizeof *baseline->mailbox, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (baseline->data == MAP_FAILED || baseline->mailbox == MAP_FAILED) goto free_baseline;
  madvise(baseline->data, BUFFERS * size, MADV_HUGEPAGE);
  memset(baseline->data, 1, BUFFERS * size);
  if (!baseline->is_shared && socket_pair(transport, ends) != 0) goto free_baseline;
  baseline->child = fork();
  if (baseline->child < 0) goto free_baseline; /* kill(-1) would signal every process of this user */
  if (baseline->child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char *into = malloc(BUFFERS * size + PING);
    if (!into) _exit(1);
    memset(into, 2, BUFFERS * size + PING);
    if (ends[0] >= 0) close(ends[0]);
    if (baseline->is_shared)
      serve_shared(baseline->mailbox, size, baseline->data, into);
    else
      serve_socket(ends[1], size, into);
    _exit(0);
  }
  if (ends[1] >= 0) close(ends[1]);
  baseline->socket = ends[0];
  rest_child(baseline);
  return baseline;

free_baseline: /* the mappings end with the process */
  free(baseline);
  return NULL;
}

static void stream_shared(struct pwi_baseline *baseline, uint64_t count) {
  struct mailbox *mailbox = baseline->mailbox;
  uint64_t sent = atomic_load(&mailbox->sent);
  for (uint64_t end = sent + count; sent < end;) {
    while (sent - atomic_load_explicit(&mailbox->taken, memory_order_acquire) >= BUFFERS) continue;
    atomic_store_explicit(&mailbox->sent, ++sent, memory_order_release);
  }
  while (atomic_load_explicit(&mailbox->taken, memory_order_acquire) < sent) continue;
}

static void stream_socket(struct pwi_baseline *baseline, uint64_t count) {
  uint64_t order[2] = {COMMAND_STREAM, count};
  char end;
  send_all(baseline->socket, order, sizeof order);
  for (uint64_t i = 0; i < count; i++)
    if (!send_all(baseline->socket, baseline->data + (i % BUFFERS) * baseline->size, baseline->size)) return;
  receive_all(baseline->socket, &end, 1);
}

void pwi_baseline_exchange(struct pwi_baseline *baseline, bool is_fetch) {
  static const uint64_t fetch[2] = {COMMAND_FETCH, 1};
  if (!is_fetch) {
    stream_socket(baseline, 1);
    return;
  }
  send_all(baseline->socket, fetch, sizeof fetch);
  receive_all(baseline->socket, baseline->data, baseline->size);
}

double pwi_baseline_rate(struct pwi_baseline *baseline, double seconds) {
  uint64_t batch = 1 + ((uint64_t)16 << 20) / baseline->size;
  wake_child(baseline);
  double begin = pwi_bench_now(), bytes = 0;
  do {
    if (baseline->is_shared)
      stream_shared(baseline, batch);
    else
      stream_socket(baseline, batch);
    bytes += (double)batch * (double)baseline->size;
    batch *= 2;
  } while (pwi_bench_now() - begin < seconds);
  double elapsed = pwi_bench_now() - begin;
  rest_child(baseline);
  return bytes / elapsed / 1e9;
}

static void ping_once(struct pwi_baseline *baseline) {
  char bytes[PING] = {1};
  if (baseline->is_shared) {
    struct mailbox *mailbox = baseline->mailbox;
    uint64_t pinged = atomic_load(&mailbox->pinged) + 1;
    memcpy(mailbox->ping, bytes, PING);
    atomic_store_explicit(&mailbox->pinged, pinged, memory_order_release);
    while (atomic_load_explicit(&mailbox->ponged, memory_order_acquire) < pinged) continue;
  } else {
    send_all(baseline->socket, bytes, PING);
    receive_all(baseline->socket, bytes, PING);
  }
}

double pwi_baseline_rtt(struct pwi_baseline *baseline, int count, double pause_us) {
  static struct pwi_histogram times;
  pwi_histogram_reset(&times);
  uint64_t order[2] = {COMMAND_PING, (uint64_t)count};
  if (!baseline->is_shared) send_all(baseline->socket, order, sizeof order);
  wake_child(baseline);
  for (int i = 0; i < count; i++) {
    if (pause_us > 0) usleep((useconds_t)pause_us);
    double begin = pwi_bench_now();
    ping_once(baseline);
    pwi_histogram_record(&times, (int64_t)((pwi_bench_now() - begin) * 1e9));
  }
  rest_child(baseline);
  return (double)pwi_histogram_percentile(&times, 50) / 1e3;
}

void pwi_baseline_stop(struct pwi_baseline *baseline) {
  if (!baseline) return;
  uint64_t order[2] = {COMMAND_STOP, 0};
  atomic_store(&baseline->mailbox->command, COMMAND_STOP);
  wake_child(baseline);
  if (baseline->socket >= 0) send_all(baseline->socket, order, sizeof order);
  if (baseline->socket >= 0) close(baseline->socket);
  waitpid(baseline->child, NULL, 0);
  munmap(baseline->data, BUFFERS * baseline->size);
  munmap(baseline->mailbox, sizeof *baseline->mailbox);
  free(baseline);
}
