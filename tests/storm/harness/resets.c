#include "resets.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

static int open_process(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

/* A descriptor of ours for descriptor `number` of the process. */
static int borrow(int process, int number) { return (int)syscall(SYS_pidfd_getfd, process, number, 0); }

int pwi_storm_reset_trouble(pid_t process) {
  int handle = open_process(process);
  if (handle < 0) return errno;
  int borrowed = borrow(handle, STDIN_FILENO);
  int trouble = borrowed < 0 ? errno : 0;
  if (borrowed >= 0) close(borrowed);
  close(handle);
  return trouble;
}

static bool is_established(int handle) {
  struct tcp_info info;
  int domain = 0, protocol = 0;
  socklen_t size = sizeof domain;
  if (getsockopt(handle, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_INET) return false;
  size = sizeof protocol;
  if (getsockopt(handle, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 || protocol != IPPROTO_TCP) return false;
  size = sizeof info;
  return getsockopt(handle, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == TCP_ESTABLISHED;
}

static bool is_socket(int folder, const char *name) {
  char target[64];
  ssize_t length = readlinkat(folder, name, target, sizeof target);
  return length > 7 && memcmp(target, "socket:", 7) == 0;
}

/* Descriptors of ours for all established connections of the process; the caller closes them. */
static size_t borrow_connections(pid_t process, int found[CONNECTIONS_MAX]) {
  char path[64];
  size_t count = 0;
  snprintf(path, sizeof path, "/proc/%ld/fd", (long)process);
  int handle = open_process(process);
  DIR *folder = handle < 0 ? NULL : opendir(path);
  const struct dirent *entry;
  while (folder && count < CONNECTIONS_MAX && (entry = readdir(folder))) {
    if (!is_socket(dirfd(folder), entry->d_name)) continue;
    int borrowed = borrow(handle, atoi(entry->d_name));
    if (borrowed >= 0 && is_established(borrowed))
      found[count++] = borrowed;
    else if (borrowed >= 0)
      close(borrowed);
  }
  if (folder) closedir(folder);
  if (handle >= 0) close(handle);
  return count;
}

static void print_peer(int handle, char *peer_out, size_t size) {
  struct sockaddr_in peer = {0};
  socklen_t length = sizeof peer;
  char host[INET_ADDRSTRLEN] = "?";
  if (getpeername(handle, (struct sockaddr *)&peer, &length) == 0)
    inet_ntop(AF_INET, &peer.sin_addr, host, sizeof host);
  snprintf(peer_out, size, "%s:%u", host, (unsigned)ntohs(peer.sin_port));
}

bool pwi_storm_reset(pid_t process, uint64_t draw, char *peer_out, size_t size) {
  int found[CONNECTIONS_MAX];
  size_t count = borrow_connections(process, found);
  bool good = false;
  if (count > 0) {
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    int chosen = found[draw % count];
    print_peer(chosen, peer_out, size);
    good = connect(chosen, &nobody, sizeof nobody) == 0;
  }
  for (size_t i = 0; i < count; i++) close(found[i]);
  return good;
}
