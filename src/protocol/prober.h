/* Probes: is a node alive? The manager asks other servers to probe a server that it lost.
 *
 * A probe connects to the address of a node and has one of three results:
 *
 *   ALIVE   The node itself accepted the link and introduced itself. A server that only lost a connection is
 *           alive.
 *   GONE    Nobody listens there, or another process does: the process of the node has ended. Node ids are
 *           not reused, so this stays true.
 *   SILENT  There was no answer before the probe's timeout: the process is stopped, or there is no route to
 *           it.
 *
 * A process that is ending may accept a connection and drop it a moment later. So a link that breaks before
 * it is up is tried again until the timeout.
 *
 * The owner is an actor. It passes on `link_up` and `link_down` of links that it does not know, and the timer
 * with the prober's cookie. The links of a prober carry no messages. Threads: as the owner's net.
 */
#ifndef PWI_PROTOCOL_PROBER_H
#define PWI_PROTOCOL_PROBER_H

#include <stdbool.h>
#include <stdint.h>

#include "net/net.h"
#include "protocol/messenger.h"
#include "protocol/protocol.h"

#define PWI_PROBES_MAX 256 /* maximum number of probes at a time; further ones are not begun */

struct pwi_probing;

struct pwi_prober {
  struct pwi_net *net;
  uint64_t cookie; /* cookie of its timer */
  struct pwi_timer timer;
  struct pwi_probing *first;
  size_t count;

  /* A probe has ended: `probe` is the struct that it began with, and the verdict. The callback may begin
   * other probes. */
  void (*tell)(void *context, const struct pwi_probe *probe);
  void *context;
};

void pwi_prober_init(struct pwi_prober *prober, struct pwi_net *net, uint64_t cookie,
                     void (*tell)(void *context, const struct pwi_probe *probe), void *context);
void pwi_prober_fini(struct pwi_prober *prober); /* its links are left to the net; accepts a struct of
                                                    zeros */

/* Probes the node at this address. If a probe of the node is running, it continues under the new number and
 * with the new timeout. If memory is lacking, no result is reported. */
void pwi_prober_begin(struct pwi_prober *prober, const struct pwi_probe *probe, const char *address);

/* Returns false if the link does not belong to the prober, or no longer does: a link that the prober closed
 * may still come up. */
bool pwi_prober_link_up(struct pwi_prober *prober, struct pwi_link link, const struct pwi_peering *peering);
bool pwi_prober_link_down(struct pwi_prober *prober, struct pwi_link link, pawl_status why);

void pwi_prober_timer(struct pwi_prober *prober);

#endif
