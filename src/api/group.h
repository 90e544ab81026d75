/* Groups and peer groups, for other files of this module.
 *
 * Both are entries of the catalogue with members, and share joining and leaving. A group has in addition a
 * flow, on which its member enters and ticks at the servers.
 */
#ifndef PWI_API_GROUP_H
#define PWI_API_GROUP_H

#include <stdatomic.h>

#include <pawl/group.h>

#include "api/session.h"
#include "client/client.h"

struct pawl_peers;

/* A name of contexts of <pawl/lapser.h>: how many were opened under it, one after the other. */
struct pwi_lapser_name {
  struct pwi_lapser_name *next;
  uint32_t opened;
  bool is_open;
  char name[];
};

struct pawl_group {
  struct pwi_owned owned; /* must be first */
  struct pawl_session *session;
  enum pwi_entry_kind kind; /* group or peer group */
  const char *name;         /* as the user writes it; lives as long as the pool */
  struct pwi_vector_id id;
  struct pwi_flow *flow;
  _Atomic(uint64_t) tick;
  bool is_leaving;   /* the manager was asked */
  bool is_left;      /* the manager has answered */
  bool is_abandoned; /* the handle is freed: free the struct when the answer comes */
  struct pwi_asking leaving;
  struct pwi_lapser_name *lapser_names;
};

/* Makes a handle and asks the manager to add this session. Free it with pawl_group_leave. Sets
 * pawl_error_text. */
PAWL_MUST_USE pawl_status pwi_group_join(struct pawl_session *session, enum pwi_entry_kind kind, const char *name,
                                         uint32_t size, int64_t deadline, struct pawl_group **group_out);

/* The id of a group or peer group by its name; asks the manager about an unknown one. PAWL_INVALID, PAWL_NOT_FOUND; sets
 * pawl_error_text, which begins with `what`. */
PAWL_MUST_USE pawl_status pwi_group_find(struct pawl_session *session, const char *what, const char *group,
                                         struct pwi_vector_id *id_out);

/* Inside the gate: the members by ascending id, valid inside the gate only, and how many of them come before
 * this session. */
const struct pwi_membership_member *pwi_group_members(const struct pawl_group *group, size_t *count_out,
                                                      size_t *before_out);

/* The same struct, which must be a peer group. NULL is allowed. */
struct pawl_peers *pwi_group_peers(struct pawl_group *group);

struct pwi_flow *pwi_group_flow(const struct pawl_group *group);
/* as the user writes it; lives as long as the pool */
const char *pwi_group_name(const struct pawl_group *group);

/* Inside the gate: leaves the group but keeps the handle, because other code may still use it.
 * pawl_group_leave frees it as usual. */
void pwi_group_step_out(struct pawl_group *group);

#endif
