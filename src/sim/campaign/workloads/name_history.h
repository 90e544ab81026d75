/* Histories of asks about one name: CREATE, DELETE and RESTORE_BEGIN by several clients at once, of which each is
 * carried out at most once. Decides whether an order of all asks explains all replies (linearizability). */
#ifndef PWI_SIM_CAMPAIGN_WORKLOADS_NAME_HISTORY_H
#define PWI_SIM_CAMPAIGN_WORKLOADS_NAME_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PWI_NAME_OPS_MAX 64

enum pwi_name_op_kind {
  PWI_NAME_CREATE,  /* done: there was no vector, and `id` is new. Refused: there was one */
  PWI_NAME_DELETE,  /* done: there was a vector. Refused: there was none */
  PWI_NAME_RESTORE, /* done: `id` has its next incarnation, or is new */
  PWI_NAME_MISSING, /* done: a server did not have the vector `id` */
  PWI_NAME_SEEN,    /* done: the catalogue has `id` in `incarnation`; id 0: it has no such name */
};

enum pwi_name_op_end {
  PWI_NAME_DONE,
  PWI_NAME_REFUSED,
  PWI_NAME_UNKNOWN, /* there is no reply: it was carried out at any time since it began, or never */
};

struct pwi_name_op {
  enum pwi_name_op_kind kind;
  enum pwi_name_op_end end;
  uint64_t id;
  uint32_t incarnation;
  int64_t begun, ended; /* `ended` counts only if there is a reply */
};

/* True if some order explains the history: each operation with a reply happened once between its begin and its end.
 * Also true if the search takes too long to tell. At most PWI_NAME_OPS_MAX operations. */
bool pwi_name_history_is_possible(const struct pwi_name_op *ops, size_t count);

#endif
