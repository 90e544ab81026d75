/* Errors in the log, for a simulation that must notice those of its nodes. */
#ifndef PWI_BASE_LOG_WATCH_H
#define PWI_BASE_LOG_WATCH_H

#include "base/log.h"

/* `format` is the one that pwi_log got. */
typedef void pwi_log_watch(void *context, const struct pwi_log *log, const char *event, const char *format);

/* Calls `watch` for each ERROR that the calling thread logs from now on, whatever the sink and its level are. NULL: no
 * longer. */
void pwi_log_watch_errors(pwi_log_watch *watch, void *context);

#endif
