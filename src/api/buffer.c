/* Memory that servers on this machine read in place. */
#include <stdint.h>

#include "api/session.h"

pawl_status pawl_buffer_create(struct pawl_session *session, size_t size, void **memory_out) {
  if (!session || !memory_out || size == 0)
    return pwi_error(PAWL_INVALID, "buffer: session or memory_out is NULL, or size is 0");
  pwi_driver_enter(&session->driver);
  pawl_status status =
      session->is_closed ? PAWL_NODE_STOPPED : pwi_client_buffer_open(session->client, size, memory_out);
  pwi_driver_leave(&session->driver);
  return status ? pwi_error_status(status, "buffer of %zu bytes", size) : PAWL_OK;
}

void pawl_buffer_destroy(struct pawl_session *session, void *memory) {
  if (!memory) return;
  pwi_driver_enter(&session->driver);
  if (!session->is_closed) pwi_client_buffer_close(session->client, memory);
  pwi_driver_leave(&session->driver);
}
