/* Vectors and key lists, inside. */
#ifndef PWI_API_VECTOR_H
#define PWI_API_VECTOR_H

#include "api/session.h"

struct pawl_vector {
  struct pwi_owned owned; /* first */
  struct pawl_session *session;
  const struct pwi_entry *entry; /* lives as long as the client */
  const char *name;              /* lives as long as the pool */
  struct pwi_flow *flow;         /* to the servers */
  struct pwi_flow *node_flow;    /* to the node that was named last */
  uint64_t node;
  bool is_local;
};

struct pawl_keys {
  struct pwi_owned owned; /* first */
  struct pawl_session *session;
  struct pwi_keylist *inner;
  uint64_t vector; /* its id */
};

#endif
