#include "base/log_watch.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#define NS_PER_SECOND INT64_C(1000000000)

static struct {
  pawl_log_sink *sink;
  void *context;
  enum pawl_log_level level;
} target;

static _Thread_local struct {
  pwi_log_watch *call;
  void *context;
} watch;

void pwi_log_watch_errors(pwi_log_watch *call, void *context) {
  watch.call = call;
  watch.context = context;
}

void pawl_log_set(pawl_log_sink *sink, void *context, enum pawl_log_level level) {
  target.sink = sink;
  target.context = context;
  target.level = level;
}

const char *pawl_log_level_name(enum pawl_log_level level) {
  static const char *const names[] = {"debug", "info", "warn", "error"};
  return (unsigned)level < 4 ? names[level] : "unknown";
}

bool pwi_log_wants(enum pawl_log_level level) { return target.sink && level >= target.level; }

static int64_t wall_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* A line may contain bytes from an untrusted peer: replace everything that is not printable. */
static void make_printable(char *text) {
  for (unsigned char *at = (unsigned char *)text; *at; at++)
    if (*at < ' ' || *at == 0x7f) *at = '?';
}

void pwi_log(const struct pwi_log *log, enum pawl_log_level level, const char *event, const char *format, ...) {
  if (level == PAWL_LOG_ERROR && watch.call) watch.call(watch.context, log, event, format);
  if (!pwi_log_wants(level)) return;
  char text[512];
  int used = snprintf(text, sizeof text, "%s ", event);
  if (used > 0 && (size_t)used < sizeof text) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
    va_end(arguments);
  }
  make_printable(text);
  struct pawl_log_line line = {
      .level = level,
      .time_ns = log && log->now ? log->now(log->clock) : wall_time(),
      .node = log && log->node ? log->node : "-",
      .text = text,
  };
  target.sink(target.context, &line);
}

bool pwi_log_limit_allows(struct pwi_log_limit *limit, int64_t now_ns, uint64_t *left_out_out) {
  int64_t second = now_ns / NS_PER_SECOND;
  if (second != limit->second) {
    limit->second = second;
    limit->written = 0;
  }
  if (limit->written >= PWI_LOG_BURST) {
    limit->left_out++;
    return false;
  }
  limit->written++;
  *left_out_out = limit->left_out;
  limit->left_out = 0;
  return true;
}
