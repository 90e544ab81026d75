/* Logging.
 *
 * Every line states one fact in lower case, as key=value pairs, and names the node. The library itself prints
 * nothing: without a sink, lines are dropped. The `pawl` command installs a sink that writes to standard
 * error.
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
  const char *node; /* name of the node that logs the line */
  const char *text; /* `event key=value …`, without a line break */
};

/* Called for every line at or above the configured level, possibly from several threads at the same time. The
 * strings are valid during the call only. */
typedef void pawl_log_sink(void *context, const struct pawl_log_line *line);

/* Sends lines of at least `level` to `sink`; NULL drops all lines. Call it before starting threads. */
PAWL_API void pawl_log_set(pawl_log_sink *sink, void *context, enum pawl_log_level level);

/* "debug", "info", "warn" or "error". */
PAWL_API const char *pawl_log_level_name(enum pawl_log_level level);

#ifdef __cplusplus
}
#endif

#endif
