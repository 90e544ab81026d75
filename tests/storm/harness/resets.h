/* Resets of single TCP connections, as a firewall that has forgotten a connection causes them: both ends get
 * ECONNRESET, and no process ends.
 *
 * The kernel lends us a descriptor of the process's socket (pidfd_getfd), and a connect to no address resets
 * the connection. This needs Linux 5.6 and the permission to trace the process.
 */
#ifndef TESTS_STORM_HARNESS_RESETS_H
#define TESTS_STORM_HARNESS_RESETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* 0 if connections of this process can be reset, else the errno that explains why not. */
int pwi_storm_reset_trouble(pid_t process);

/* Resets connection number `draw` modulo the number of established connections of the process. False if there
 * is none. `peer_out` is the other end's address, "10.213.77.3:41234". */
bool pwi_storm_reset(pid_t process, uint64_t draw, char *peer_out, size_t size);

#endif
