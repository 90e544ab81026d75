#include "net/process.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A pidfd becomes readable when its process has ended. */
static bool is_alive(int handle) {
  struct pollfd about = {.fd = handle, .events = POLLIN};
  return poll(&about, 1, 0) == 0;
}

bool pwi_process_open(int socket, struct pwi_process *process_out) {
  struct ucred who;
  socklen_t size = sizeof who;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || size != sizeof who) return false;
  if (who.uid != geteuid() || who.pid <= 0) return false;
  int handle = (int)syscall(SYS_pidfd_open, who.pid, 0);
  if (handle < 0) return false;
  *process_out = (struct pwi_process){.number = (int32_t)who.pid, .handle = handle};
  return true;
}

void pwi_process_close(struct pwi_process *process) {
  if (process->handle >= 0) close(process->handle);
  *process = PWI_NO_PROCESS;
}

/* The process is checked after the read: if it is still alive, its number was valid during the read. */
bool pwi_process_read(const struct pwi_process *process, const struct iovec *local, size_t count, uint64_t address,
                      size_t size) {
  struct iovec remote = {(void *)(uintptr_t)address, size};
  if (process->handle < 0) return false;
  return process_vm_readv(process->number, local, count, &remote, 1, 0) == (ssize_t)size && is_alive(process->handle);
}
