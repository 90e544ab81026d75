/* What the conformance suite needs from a world, so that the same tests run in every one of them.
 *
 * A world holds a few nodes, each with a net of its own, and lets them move one small step at a time. Everything
 * happens in the calling thread. A kind of world is a table of functions; the suite is given one by name.
 */
#ifndef PWI_CONFORMANCE_WORLD_H
#define PWI_CONFORMANCE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "net/net.h"

#define WORLD_NODES 4
#define WORLD_MS INT64_C(1000000)

enum world_trait {
  WORLD_PLANE = 1,     /* every pair has a data plane */
  WORLD_IN_PLACE = 2,  /* and reads bodies in regions without a copy */
  WORLD_ENCRYPTED = 4, /* every link is encrypted */
  WORLD_POLLED = 8,    /* nets are driven by pwi_net_poll */
  WORLD_STEADY = 16,   /* once warm, sending and receiving allocate nothing */
  WORLD_FRUGAL = 32,   /* only the nets allocate: running out of memory is theirs to handle, not the world's end */
};

struct world_kind;

/* A kind's own struct begins with this. */
struct world {
  const struct world_kind *kind;
};

struct world_kind {
  const char *name;
  unsigned traits; /* of enum world_trait */

  /* NULL if it cannot be made. */
  struct world *(*create)(const struct world_kind *kind);

  /* Takes every node that is left with it. */
  void (*destroy)(struct world *world);

  /* A new net for node number `node`, which has none or had its old one killed. */
  pawl_status (*node)(struct world *world, unsigned node, const struct pwi_net_limits *limits,
                      const struct pwi_actor *actor, void *self, struct pwi_net **net_out);

  /* End a node as abruptly as the death of its process: no goodbye, no callbacks. Its net is gone. */
  void (*kill)(struct world *world, unsigned node);

  /* A paused node does nothing and hears nothing, like a stopped process; it keeps its connections. */
  void (*pause)(struct world *world, unsigned node, bool paused);

  /* An address where the node may listen; `which` tells several of one node apart. With 0 it may be one that the net
   * has to complete, so that others must ask pwi_net_address. */
  void (*address)(struct world *world, unsigned node, unsigned which, char address_out[PWI_NET_ADDRESS_MAX]);

  /* Let the nodes run for a moment, at most about a millisecond of the world's time. */
  void (*step)(struct world *world);

  /* The world's time in nanoseconds: virtual where time is. */
  int64_t (*now)(struct world *world);
};

extern const struct world_kind world_tcp, world_tls, world_unix, world_ucx, world_sim, world_sim_plain;

/* The kind of that name. NULL if there is none; `known_out` tells whether there could be. */
const struct world_kind *world_find(const char *name, bool *known_out);

/* Nets that a WORLD_PLANE makes refuse links without a data plane. A test of such links sets this to false meanwhile. */
extern bool world_needs_planes;

#endif
