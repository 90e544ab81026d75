/* Vectors and key lists, inside. */
#ifndef PWI_API_VECTOR_H
#define PWI_API_VECTOR_H

#include "api/session.h"
#include "wire/filters.h"

struct pawl_vector {
  struct pwi_owned owned; /* must be first */
  struct pawl_session *session;
  const struct pwi_entry *entry; /* lives as long as the client */
  const char *name;              /* lives as long as the pool */
  struct pwi_flow *flow;         /* to the servers */
  struct pwi_flow *node_flow;    /* to the node that was named last */
  uint64_t node;
  bool is_local;
};

struct pawl_keys {
  struct pwi_owned owned; /* must be first */
  struct pawl_session *session;
  struct pwi_keylist *inner;
  uint64_t vector; /* its id */
};

/* Checks that the filter chain of these options can be used in this process: as pawl_filters_create, with
 * the reason in `problem`. `list_out` may be NULL. */
PAWL_MUST_USE pawl_status pwi_filters_try(const struct pawl_vector_options *is, char problem[PWI_FILTERS_PROBLEM_MAX],
                                          struct pwi_filter_list *list_out);

/* Brings the filter chain of options into canonical form, "" for none; refuses an invalid chain with a
 * text. */
PAWL_MUST_USE pawl_status pwi_filters_settle(const char *name, struct pawl_vector_options *is);

/* A push of one member of a group, to be aggregated with the pushes of the other members for that tick; a
 * pushpull if `values_out` is given. */
PAWL_MUST_USE pawl_status pwi_vector_push_aggregate(struct pawl_vector *vector, const struct pawl_where *where,
                                                    const void *values, void *values_out, uint64_t group, uint64_t tick,
                                                    struct pawl_task **task_out);

/* A pull of a member of a group, which has finished `tick`: pawl_group_pull. */
PAWL_MUST_USE pawl_status pwi_vector_pull_old(struct pawl_vector *vector, const struct pawl_where *where,
                                              void *values_out, uint64_t group, uint64_t tick, uint64_t staleness,
                                              struct pawl_task **task_out);

/* A push that waits for a group (api/call.c). */
PAWL_MUST_USE pawl_status pwi_vector_trigger(struct pawl_vector *vector, const struct pawl_where *where,
                                             const void *values, struct pwi_vector_id group, uint64_t tick,
                                             struct pawl_task **task_out);

#endif
