/* The operations of a world: one function per call of net.h, with the same contract. The struct of a world
 * begins with `struct pwi_net`. */
#ifndef PWI_NET_NET_OPS_H
#define PWI_NET_NET_OPS_H

#include "net/net.h"

struct pwi_net_ops {
  void (*destroy)(struct pwi_net *net);
  pawl_status (*poll)(struct pwi_net *net, int64_t deadline);
  void (*wake)(struct pwi_net *net);
  void (*beat)(struct pwi_net *net);               /* NULL: not needed in this world */
  int64_t (*allowance)(const struct pwi_net *net); /* NULL: always 0 */
  int64_t (*now)(const struct pwi_net *net);
  pawl_status (*timer_set)(struct pwi_net *net, int64_t at, uint64_t cookie, struct pwi_timer *timer_out);
  void (*timer_cancel)(struct pwi_net *net, struct pwi_timer timer);
  pawl_status (*hello_set)(struct pwi_net *net, const void *hello, size_t size);
  pawl_status (*listen)(struct pwi_net *net, const char *address);
  const char *(*address)(const struct pwi_net *net);
  pawl_status (*connect)(struct pwi_net *net, const char *address, struct pwi_link *link_out);
  void (*close)(struct pwi_net *net, struct pwi_link link, pawl_status why);
  pawl_status (*send)(struct pwi_net *net, struct pwi_link link, const struct pwi_send *send, size_t body_size);
  pawl_status (*hold)(struct pwi_net *net, struct pwi_link link, bool hold); /* NULL: PAWL_UNSUPPORTED */
  bool sends_at_once; /* `send` deals with spare memory itself, because it may not need it */
  pawl_status (*region_open)(struct pwi_net *net, size_t size, struct pwi_region **region_out);
  void (*region_close)(struct pwi_net *net, struct pwi_region *region);
  pawl_status (*region_share)(struct pwi_net *net, struct pwi_region *region, struct pwi_link link, unsigned access,
                              void *token, size_t *token_size_out);
  pawl_status (*remote_open)(struct pwi_net *net, struct pwi_link link, const void *token, size_t token_size,
                             struct pwi_remote *remote_out);
  void (*remote_close)(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote);
  pawl_status (*remote_map)(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote,
                            struct pwi_window *window_out);
  pawl_status (*put)(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote, uint64_t offset,
                     const void *from, size_t size, uint64_t notify, uint64_t cookie);
  pawl_status (*get)(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote, uint64_t offset, void *into,
                     size_t size, uint64_t cookie);
  pawl_status (*fence)(struct pwi_net *net, struct pwi_link link, uint64_t cookie);
};

struct pwi_net {
  const struct pwi_net_ops *ops;
  const struct pwi_actor *actor;
  void *self;
  struct pwi_net_limits limits;
  struct pwi_net_counts counts;
  size_t kept; /* bytes of buffers that links keep for collecting bodies */
};

/* A message whose last part was copied to its spare memory. */
struct pwi_spared {
  struct pwi_send send;
  struct iovec body[PWI_NET_IOV_MAX];
};

const struct pwi_send *pwi_net_use_spare(const struct pwi_send *send, struct pwi_spared *spared);

/* The region struct of a world begins with this. */
struct pwi_region {
  void *memory;
  size_t size;
};

#endif
