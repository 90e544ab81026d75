/* What pawl says while it runs.
 *
 * Every line is one fact: lower case, key=value, the node always named. The library prints nothing by itself: without a
 * sink, lines are dropped. The `pawl` command installs one that writes to standard error.
 */
#ifndef PAWL_LOG_H
#define PAWL_LOG_H

#include <stdint.h>

#include <pawl/export.h>

#ifdef __cplusplus
extern "C" {
#endif

enum pawl_log_level { PAWL_LOG_DEBUG, PAWL_LOG_INFO, PAWL_LOG_WARN, PAWL_LOG_ERROR };

struct pawl_log_line {
  enum pawl_log_level level;
  int64_t time_ns;  /* the node's own clock: wall time on real machines, virtual time in the simulator */
  const char *node; /* who says it */
  const char *text; /* `event key=value …`, without a line break */
};

/* Called for every line at or above the level that was set, possibly from several threads at once. Strings are valid
 * during the call only. */
typedef void pawl_log_sink(void *context, const struct pawl_log_line *line);

/* Send lines of at least `level` to `sink`; NULL drops them all. Call it before threads are started. */
PAWL_API void pawl_log_set(pawl_log_sink *sink, void *context, enum pawl_log_level level);

/* "debug", "info", "warn" or "error". */
PAWL_API const char *pawl_log_level_name(enum pawl_log_level level);

#ifdef __cplusplus
}
#endif

#endif
