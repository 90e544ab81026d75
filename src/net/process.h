/* A process on this host, as the kernel vouches for it, and reading its memory.
 *
 * A peer's own word about which process it is counts for nothing. The kernel is asked who stands at the other end of a
 * unix socket: its user must be ours, and its number must mean something here (it does not across containers). The
 * number is pinned by a pidfd, so that one that was used again is noticed.
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

/* The process that connected this unix socket, or listens at its other end. False if it is of another user (root
 * included), of another namespace of process numbers, or gone, or if this kernel has no pidfds. */
bool pwi_process_open(int socket, struct pwi_process *process_out);
void pwi_process_close(struct pwi_process *process); /* one that is not open is fine */

/* Copy `size` bytes from `address` in the process. False if they cannot all be read, or if the process is gone: then the
 * bytes may be another's and must not be used. */
bool pwi_process_read(const struct pwi_process *process, const struct iovec *local, size_t count, uint64_t address,
                      size_t size);

#endif
