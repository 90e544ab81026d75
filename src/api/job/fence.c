#include "api/job/fence.h"

#include "api/session.h"

/* Node numbers are never reused: a node that was in the membership and is not any more has left it. */
static bool is_live(struct pawl_session *session, uint64_t node) {
  struct pwi_client_state state;
  pwi_driver_enter(&session->driver);
  pwi_client_state(session->client, &state);
  bool is_live = pwi_membership_is_live(pwi_client_membership(session->client), (struct pwi_sender){node});
  pwi_driver_leave(&session->driver);
  return is_live && state.sender != node;
}

pawl_status pwi_job_fence(struct pawl_session *session, uint64_t node, int64_t deadline) {
  if (!is_live(session, node)) return PAWL_OK;
  struct pwi_writer writer = {0};
  pwi_write_u64(&writer, node);
  pawl_status status = pwi_session_ask(session, PWI_ASK_RETIRE, &writer, deadline, NULL, NULL);
  pwi_writer_fini(&writer);
  return status;
}
