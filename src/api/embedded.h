/* A cluster of child processes on this machine: one manager and some servers, for sessions that were given no address.
 *
 * They talk over TCP, on loopback unless told otherwise, with a key of their own, so that no other user of the machine can join; between processes of
 * one user the data goes through shared memory. The key travels in the children's environment. Other sessions of this
 * process that name the cluster's address are given the key; other processes can join if the key was chosen by the user
 * (PAWL_KEY, PAWL_KEY_FILE), whose choice is then used.
 *
 * Children are told to go by pwi_embedded_stop, and go by themselves when this process is gone, whatever became of it
 * (host/parent.h). Threads: each struct belongs to one thread at a time.
 */
#ifndef PWI_API_EMBEDDED_H
#define PWI_API_EMBEDDED_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "net/key.h"

#define PWI_EMBEDDED_SERVERS_MAX 256

struct pwi_embedded_config {
  uint32_t servers;     /* 0: one, and one for each replica */
  uint32_t shards;      /* per server; 0: one for every two processors, at least one */
  uint32_t replicas;    /* fewer than servers */
  uint64_t memory_max;  /* of each server, in bytes; 0: no cap */
  const char *key;      /* as text; and */
  const char *key_file; /* in a file: the user's. If both are NULL or empty, a new key is made */
  const char *listen;   /* of all its nodes, without a port of their own; NULL: loopback */
  int64_t deadline_ns;  /* pwi_host_now's clock */
};

struct pwi_embedded;

/* Starts them and waits until all are ready. PAWL_NOT_FOUND (no pawl command), PAWL_TIMED_OUT, PAWL_NODE_STOPPED (one of
 * them ended), PAWL_INVALID, PAWL_NO_MEMORY, PAWL_NODE_LIMIT, PAWL_IO; pawl_error_text says more. */
PAWL_MUST_USE pawl_status pwi_embedded_start(const struct pwi_embedded_config *config,
                                             struct pwi_embedded **embedded_out);

/* The manager's address. */
const char *pwi_embedded_address(const struct pwi_embedded *embedded);

/* Ends them: the servers, then the manager. NULL is fine. */
void pwi_embedded_stop(struct pwi_embedded *embedded);

/* True if a cluster of this process has that address and a key that was made for it. Any thread. */
bool pwi_embedded_key(const char *address, char key_out[PWI_KEY_TEXT_MAX]);

/* How many of the servers of the cluster at `address` have ended, of how many; 0 of 0 if it is none of this process. One thread at a
 * time, and not while the session that started it is being closed. */
void pwi_embedded_look(const char *address, uint32_t *lost_out, uint32_t *servers_out);

#endif
