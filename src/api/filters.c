/* The filters of vectors, as a session uses them. Chains are the client's (role/client_filter.c); here is what is said
 * about them. */
#include <pawl/filter.h>

#include "api/vector.h"
#include "wire/filters.h"

pawl_status pawl_vector_filter(struct pawl_vector *vector, const char *text,
                               const struct pawl_filters_options *options) {
  char problem[PWI_FILTERS_PROBLEM_MAX] = "";
  if (!vector || !text) return pwi_error(PAWL_INVALID, "filter: no vector, or no text");
  struct pawl_session *session = vector->session;
  pwi_driver_enter(&session->driver);
  pawl_status status = PAWL_NODE_STOPPED;
  if (!session->is_closed)
    status = pwi_client_filter(session->client, vector->flow, text, options, problem, sizeof problem);
  pwi_driver_leave(&session->driver);
  if (!status) return PAWL_OK;
  if (*problem) return pwi_error(status, "filters of %s: %s", vector->name, problem);
  if (status == PAWL_INVALID)
    return pwi_error(status, "filters of %s: those that it has hold rests, which must be flushed first", vector->name);
  return pwi_error_status(status, "filters of %s", vector->name);
}

pawl_status pawl_vector_filter_counters(struct pawl_vector *vector, unsigned direction, size_t index,
                                        struct pawl_filter_counters *counters_out) {
  if (!vector || (direction != PAWL_ON_PUSH && direction != PAWL_ON_PULL))
    return pwi_error(PAWL_INVALID, "counters of filters: no vector, or no direction");
  struct pwi_driver *driver = &vector->session->driver;
  pwi_driver_enter(driver);
  const struct pawl_filters *filters = pwi_flow_filters(vector->flow, direction);
  pawl_status status = filters ? pawl_filters_counters(filters, index, counters_out) : PAWL_NOT_FOUND;
  pwi_driver_leave(driver);
  return status;
}

void pawl_vector_traffic(struct pawl_vector *vector, struct pawl_vector_traffic *traffic_out) {
  struct pwi_driver *driver = &vector->session->driver;
  pwi_driver_enter(driver);
  struct pwi_flow_traffic traffic = pwi_flow_traffic(vector->flow);
  pwi_driver_leave(driver);
  *traffic_out =
      (struct pawl_vector_traffic){traffic.messages_out, traffic.bytes_out, traffic.messages_in, traffic.bytes_in};
}
