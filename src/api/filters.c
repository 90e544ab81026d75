/* The filters of vectors, as a session uses them. The client has the chains (client/filter.c); this file
 * explains errors. */
#include <pawl/filter.h>

#include <string.h>

#include "api/options.h"
#include "api/vector.h"
#include "wire/filters.h"

static pawl_status try_way(const struct pwi_filter_list *list, struct pawl_filters_options *options, unsigned direction,
                           uint32_t width) {
  struct pawl_filters *filters;
  options->direction = direction;
  options->width = width;
  pawl_status status = pwi_filters_open(list, options, &filters);
  if (!status) pawl_filters_destroy(filters);
  return status;
}

pawl_status pwi_filters_try(const struct pawl_vector_options *is, char problem[PWI_FILTERS_PROBLEM_MAX],
                            struct pwi_filter_list *list_out) {
  struct pwi_filter_list list;
  struct pawl_filters_options options;
  pawl_status status = pwi_filter_list_parse(is->filters, problem, PWI_FILTERS_PROBLEM_MAX, &list);
  if (status) return status;
  pawl_filters_options_init(&options);
  options.type = is->type;
  options.adds = pwi_options_add_up(is);
  options.problem = problem;
  options.problem_size = PWI_FILTERS_PROBLEM_MAX;
  status = try_way(&list, &options, PAWL_ON_PUSH, pwi_options_pushed(is));
  if (!status) status = try_way(&list, &options, PAWL_ON_PULL, pwi_options_stored(is));
  if (!status && list_out) *list_out = list;
  return status;
}

pawl_status pwi_filters_settle(const char *name, struct pawl_vector_options *is) {
  char problem[PWI_FILTERS_PROBLEM_MAX] = "", text[PAWL_FILTERS_TEXT_MAX];
  struct pwi_filter_list list;
  if (!is->filters[0]) return PAWL_OK;
  pawl_status status = pwi_filters_try(is, problem, &list);
  if (status) return pwi_error(status, "create %s: filters: %s", name, *problem ? problem : pawl_status_text(status));
  pwi_filter_list_print(&list, text, sizeof text);
  if (strlen(text) > PAWL_FILTERS_OPTION_MAX)
    return pwi_error(PAWL_TOO_LARGE, "create %s: the filters have more than %d characters", name,
                     PAWL_FILTERS_OPTION_MAX);
  memset(is->filters, 0, sizeof is->filters);
  if (list.count > 0) memcpy(is->filters, text, strlen(text));
  return PAWL_OK;
}

pawl_status pawl_vector_filter(struct pawl_vector *vector, const char *text,
                               const struct pawl_filters_options *options) {
  char problem[PWI_FILTERS_PROBLEM_MAX] = "";
  struct pawl_filters_options is;
  if (!vector || !text) return pwi_error(PAWL_INVALID, "filter: vector or text is NULL");
  pawl_filters_options_init(&is);
  pawl_status status = pwi_take_options("filters", options, &is, sizeof is);
  if (status) return status;
  struct pawl_session *session = vector->session;
  pwi_driver_enter(&session->driver);
  status = PAWL_NODE_STOPPED;
  if (!session->is_closed)
    status = pwi_client_filter(session->client, vector->flow, text, options ? &is : NULL, problem, sizeof problem);
  pwi_driver_leave(&session->driver);
  if (!status) return PAWL_OK;
  if (*problem) return pwi_error(status, "filters of %s: %s", vector->name, problem);
  if (status == PAWL_INVALID)
    return pwi_error(status, "filters of %s: the current filters hold back values; flush them first", vector->name);
  return pwi_error_status(status, "filters of %s", vector->name);
}

pawl_status pawl_vector_filter_counters(struct pawl_vector *vector, unsigned direction, size_t index,
                                        struct pawl_filter_counters *counters_out) {
  if (!vector || (direction != PAWL_ON_PUSH && direction != PAWL_ON_PULL))
    return pwi_error(PAWL_INVALID, "counters of filters: vector is NULL, or direction is invalid");
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
