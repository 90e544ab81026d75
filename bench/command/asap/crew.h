/* Processes of this machine that share an embedded cluster, for `pawl-bench asap --real`, `reduce` and `lapser`.
 *
 * The processes are forked while this one has no other thread. Then this process starts the cluster and tells
 * them where it is. Each opens a session, works, stores its result in shared memory and ends. A process whose
 * work fails ends at once, and all others are ended, too.
 */
#ifndef BENCH_COMMAND_ASAP_CREW_H
#define BENCH_COMMAND_ASAP_CREW_H

#include <pawl/pawl.h>

#include "cli/cli.h"

struct pwi_asap_member {
  uint32_t index, count;
  struct pawl_session *session; /* for peers only, unless the crew has servers */
  const void *task;
  void *result; /* of this member, zeroed at first */
  void *shared; /* of all members, zeroed at first */
};

struct pwi_asap_crew {
  const struct pwi_command *command; /* whose name stands before messages */
  uint32_t count;
  uint32_t servers; /* 0: a manager only */
  bool tcp_only;    /* no data plane between the processes */
  pawl_status (*work)(struct pwi_asap_member *member);
  const void *task;
  size_t result_size, shared_size;

  /* Set by pwi_asap_crew_run. */
  void *memory; /* `shared`, then one result for each member */
  size_t memory_size;
};

/* False if it failed, after a message. The results are valid until pwi_asap_crew_free, which may follow in any
 * case. */
bool pwi_asap_crew_run(struct pwi_asap_crew *crew);
void *pwi_asap_crew_result(const struct pwi_asap_crew *crew, uint32_t index);
void pwi_asap_crew_free(struct pwi_asap_crew *crew);

/* Waits until all members have called it; each may do so once for each `gate`, a counter in shared memory. */
void pwi_asap_meet(struct pwi_asap_member *member, _Atomic uint32_t *gate);

#endif
