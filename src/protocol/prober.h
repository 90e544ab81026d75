/* Is a node alive? Somebody who lost a server asks others to try it, and they do so with this.
 *
 * A probe connects to the address of a node, and the outcome is one of three:
 *
 *   ALIVE   somebody accepted the link, introduced itself, and is that node. A server that only lost a connection is.
 *   GONE    nobody listens there, or another process does: the process of the node has ended. Node ids are not used again,
 *           so this stays true.
 *   SILENT  no answer within the probe's patience: it stands still, or there is no way to it.
 *
 * A process that is ending may accept a connection and drop it a moment later, so a link that breaks before it is up is tried
 * again until the patience ends.
 *
 * The owner is an actor. It hands over `link_up` and `link_down` of links that it does not know, and the timer with the
 * prober's cookie. The prober's links carry no messages. Threads: as the owner's net.
 */
#ifndef PWI_PROTOCOL_PROBER_H
#define PWI_PROTOCOL_PROBER_H

#include <stdbool.h>
#include <stdint.h>

#include "net/net.h"
#include "protocol/messenger.h"
#include "protocol/protocol.h"

#define PWI_PROBES_MAX 256 /* at a time; further ones are not begun */

struct pwi_probing;

struct pwi_prober {
  struct pwi_net *net;
  uint64_t cookie; /* of its timer */
  struct pwi_timer timer;
  struct pwi_probing *first;
  size_t count;

  /* A probe has ended; `probe` is what it began with, and the verdict. May begin others. */
  void (*tell)(void *context, const struct pwi_probe *probe);
  void *context;
};

void pwi_prober_init(struct pwi_prober *prober, struct pwi_net *net, uint64_t cookie,
                     void (*tell)(void *context, const struct pwi_probe *probe), void *context);
void pwi_prober_fini(struct pwi_prober *prober); /* links are left to the net; zeros may be ended too */

/* Tries the node at this address. If it is being tried already the probe goes on under the new number, with the new
 * patience. Where there is no memory nothing is told. */
void pwi_prober_begin(struct pwi_prober *prober, const struct pwi_probe *probe, const char *address);

/* False if the link is none of the prober's, or not any more: one that it closed may come up all the same. */
bool pwi_prober_link_up(struct pwi_prober *prober, struct pwi_link link, const struct pwi_peering *peering);
bool pwi_prober_link_down(struct pwi_prober *prober, struct pwi_link link, pawl_status why);

void pwi_prober_timer(struct pwi_prober *prober);

#endif
