/* Logging inside the library. A module that logs has a `struct pwi_log` with the name and the clock of its
 * node, so that lines of a simulated node carry its name and virtual time.
 *
 *   pwi_log(log, PAWL_LOG_WARN, "link.down", "peer=%s why=%s", name, pawl_status_name(why));
 *
 * writes `link.down peer=… why=…`. The event is a fixed word for machines; everything else is key=value.
 */
#ifndef PWI_BASE_LOG_H
#define PWI_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/log.h>

struct pwi_log {
  const char *node;                  /* borrowed; must live as long as the log */
  int64_t (*now)(const void *clock); /* NULL: wall time */
  const void *clock;
};

void pwi_log(const struct pwi_log *log, enum pawl_log_level level, const char *event, const char *format, ...)
    PAWL_PRINTF(4, 5);

/* True if a line of this level would reach the sink. Check it before building costly arguments. */
bool pwi_log_wants(enum pawl_log_level level);

/* A rate limit for one kind of line: at most PWI_LOG_BURST lines per second. The next line that is written
 * states how many were suppressed. For lines that an untrusted peer can cause. */
struct pwi_log_limit {
  int64_t second;    /* the second being counted */
  uint32_t written;  /* lines written in that second */
  uint64_t left_out; /* lines suppressed since the last one written */
};

#define PWI_LOG_BURST 10

/* True if the line may be written now; `*left_out_out` is then the number of lines suppressed since the last
 * one. */
bool pwi_log_limit_allows(struct pwi_log_limit *limit, int64_t now_ns, uint64_t *left_out_out);

#endif
