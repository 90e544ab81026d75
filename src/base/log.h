/* Logging inside the library. Who logs holds a `struct pwi_log` that names the node and knows its clock, so that lines
 * of a simulated node carry virtual time and its name.
 *
 *   pwi_log(log, PAWL_LOG_WARN, "link.down", "peer=%s why=%s", name, pawl_status_name(why));
 *
 * prints `link.down peer=… why=…`. The event is a fixed word for machines; everything else is key=value.
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

/* True if a line of this level would reach the sink: guards the building of costly arguments. */
bool pwi_log_wants(enum pawl_log_level level);

/* A limit on how often one kind of line is written: at most `burst` lines a second, and the first line after a drought
 * says how many were left out. For lines that a stranger on the network can cause. */
struct pwi_log_limit {
  int64_t second;    /* the second being counted */
  uint32_t written;  /* lines in it */
  uint64_t left_out; /* lines swallowed since the last one written */
};

#define PWI_LOG_BURST 10

/* True if the line may be written now. `*left_out_out` gets the number swallowed since the last one that was. */
bool pwi_log_limit_allows(struct pwi_log_limit *limit, int64_t now_ns, uint64_t *left_out_out);

#endif
