/* Two small roles for demonstrations: a store that keeps what its clients write, and clients that do not give up.
 *
 * They are actors over net/net.h like every role of pawl: they are handed a net and files, and touch nothing else, so
 * that they run on sockets and in the simulator alike. The protocol is three messages, all of them in the head:
 *
 *   ask    client                  what do you have of mine?
 *   write  client, number, value   numbers count from 1; the next is sent when the last was acknowledged
 *   have   client, number          everything of yours up to this number is on disk
 *
 * The store appends a record to its log, syncs, and only then says that it has it; a write that comes twice is stored
 * once. When it starts it reads the log. A client asks first, then writes; if no answer comes, or the link breaks, it
 * tries again.
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

/* Read the log and listen. `careless` plants a bug: the store acknowledges before it has stored. The log stays open
 * until the node's files end. PAWL_NO_MEMORY, or what net and files say. */
pawl_status pwi_demo_store_create(struct pwi_net *net, struct pwi_files *files, bool careless,
                                  struct pwi_demo_store **store_out);
void pwi_demo_store_destroy(struct pwi_demo_store *store); /* NULL is fine */

/* The number up to which the store has all writes of a client, and how often a write came that it had already. */
uint64_t pwi_demo_store_has(const struct pwi_demo_store *store, uint64_t client);
uint64_t pwi_demo_store_duplicates(const struct pwi_demo_store *store);

/* Who wants to know what was acknowledged. */
struct pwi_demo_witness {
  void (*acknowledged)(void *context, uint64_t client, uint64_t number);
  void *context;
};

/* Start to write. `index` is below PWI_DEMO_CLIENTS. PAWL_NO_MEMORY. */
pawl_status pwi_demo_client_create(struct pwi_net *net, uint64_t index, const struct pwi_demo_witness *witness,
                                   struct pwi_demo_client **client_out);
void pwi_demo_client_destroy(struct pwi_demo_client *client); /* NULL is fine */

#endif
