/* A process on this host whose identity the kernel confirms, and reading its memory.
 *
 * The peer's own statement about its process is not trusted. The kernel identifies the process at the other
 * end of a unix socket: its user must be the same, and its process number must be valid in this namespace (it
 * is not across containers). A pidfd pins the number, so that its reuse is detected.
 */
#ifndef PWI_NET_PROCESS_H
#define PWI_NET_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct pwi_process {
  int32_t number;
  int handle; /* a pidfd; -1: no process */
};

#define PWI_NO_PROCESS ((struct pwi_process){.number = 0, .handle = -1})

/* Opens the process that connected this unix socket or listens at its other end. False if it belongs to
 * another user (including root) or another process namespace, if it has ended, or if this kernel has no
 * pidfds. */
bool pwi_process_open(int socket, struct pwi_process *process_out);
void pwi_process_close(struct pwi_process *process); /* does nothing if it is not open */

/* Copies `size` bytes from `address` in the process. False if they cannot all be read or the process has
 * ended; the bytes may then be those of another process and must not be used. */
bool pwi_process_read(const struct pwi_process *process, const struct iovec *local, size_t count, uint64_t address,
                      size_t size);

#endif
