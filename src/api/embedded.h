/* An embedded cluster: one manager and some servers, or none, as child processes on this machine, for
 * sessions without an address.
 *
 * The processes communicate over TCP, on loopback unless configured otherwise, with a key of their own, so
 * that no other user of the machine can join; between processes of one user, data goes through shared
 * memory. The children get the key in their environment. Other sessions of this process that name the
 * cluster's address are given the key. Other processes can join if the user chose the key (PAWL_KEY,
 * PAWL_KEY_FILE).
 *
 * pwi_embedded_stop ends the children; they also end by themselves when this process is gone, for whatever
 * reason (host/parent.h). Threads: each struct belongs to one thread at a time.
 */
#ifndef PWI_API_EMBEDDED_H
#define PWI_API_EMBEDDED_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "net/key.h"

#define PWI_EMBEDDED_SERVERS_MAX 256

struct pwi_embedded_config {
  uint32_t servers;    /* 0: one plus one for each replica */
  bool peers_only;     /* start no servers; `servers` and `replicas` must be 0 */
  uint32_t shards;     /* per server; 0: one for every two processors, at least one */
  uint32_t replicas;   /* must be fewer than servers */
  uint64_t memory_max; /* bytes per server; 0: no cap */
  const char *key;     /* the user's key as text; NULL or "": none */
  /* the user's key file; NULL or "": none. Without key and key file a new key is created */
  const char *key_file;
  const char *listen;  /* address of all nodes, without a port; NULL: loopback */
  int64_t deadline_ns; /* on pwi_host_now's clock */
};

struct pwi_embedded;

/* Starts the processes and waits until all are ready. PAWL_NOT_FOUND (no pawl command), PAWL_TIMED_OUT,
 * PAWL_NODE_STOPPED (one of them ended), PAWL_INVALID, PAWL_NO_MEMORY, PAWL_NODE_LIMIT, PAWL_IO;
 * pawl_error_text says more. */
PAWL_MUST_USE pawl_status pwi_embedded_start(const struct pwi_embedded_config *config,
                                             struct pwi_embedded **embedded_out);

/* The manager's address. */
const char *pwi_embedded_address(const struct pwi_embedded *embedded);

/* Ends the servers, then the manager. NULL is fine. */
void pwi_embedded_stop(struct pwi_embedded *embedded);

/* True if a cluster of this process has that address and a key that was created for it. Any thread. */
bool pwi_embedded_key(const char *address, char key_out[PWI_KEY_TEXT_MAX]);

/* How many servers of the embedded cluster at `address` have ended, and how many it has; 0 and 0 if it is
 * not a cluster of this process. One thread at a time, and not while the session that started it is being
 * closed. */
void pwi_embedded_look(const char *address, uint32_t *lost_out, uint32_t *servers_out);

#endif
