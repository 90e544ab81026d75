/* Two small roles for demonstrations: a store that keeps the writes of its clients, and clients that retry.
 *
 * They are actors over net/net.h, like every role of pawl: they use only the net and the files they are given, so
 * they run on sockets and in the simulator alike. The protocol has three messages, all of them in the header:
 *
 *   ask    client                  which of my writes do you have?
 *   write  client, number, value   numbers count from 1; the next is sent once the last was acknowledged
 *   have   client, number          all your writes up to this number are on disk
 *
 * The store appends a record to its log, syncs, and only then acknowledges it. It stores a duplicate write once. When
 * it starts, it reads the log. A client first asks, then writes. If no answer arrives, or the link breaks, it retries.
 */
#ifndef PWI_CLI_DEMO_ROLES_H
#define PWI_CLI_DEMO_ROLES_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/files.h"
#include "net/net.h"

#define PWI_DEMO_CLIENTS 3
#define PWI_DEMO_STORE_ADDRESS "store:7000"

struct pwi_demo_store;
struct pwi_demo_client;

extern const struct pwi_actor pwi_demo_store_actor, pwi_demo_client_actor;

/* Reads the log and listens. `careless` plants a bug: the store acknowledges a write before it has stored it. The
 * log stays open until the node's files are closed. Returns PAWL_NO_MEMORY, or errors of the net and the files. */
pawl_status pwi_demo_store_create(struct pwi_net *net, struct pwi_files *files, bool careless,
                                  struct pwi_demo_store **store_out);
void pwi_demo_store_destroy(struct pwi_demo_store *store); /* NULL is fine */

/* The number up to which the store has all writes of a client, and the number of duplicate writes. */
uint64_t pwi_demo_store_has(const struct pwi_demo_store *store, uint64_t client);
uint64_t pwi_demo_store_duplicates(const struct pwi_demo_store *store);

/* The receiver of acknowledgements. */
struct pwi_demo_witness {
  void (*acknowledged)(void *context, uint64_t client, uint64_t number);
  void *context;
};

/* Starts writing. `index` is below PWI_DEMO_CLIENTS. PAWL_NO_MEMORY. */
pawl_status pwi_demo_client_create(struct pwi_net *net, uint64_t index, const struct pwi_demo_witness *witness,
                                   struct pwi_demo_client **client_out);
void pwi_demo_client_destroy(struct pwi_demo_client *client); /* NULL is fine */

#endif
