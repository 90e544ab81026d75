/* The sink of the library's log: standard error, one event per line, `time level node text`. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

#define LINE_MAX_SIZE 2048
#define SECOND INT64_C(1000000000)
#define VIRTUAL_MAX (INT64_C(100000000) * SECOND) /* three years: wall time is later, the simulator's time earlier */

static enum pawl_log_level chosen = PAWL_LOG_WARN;
static bool is_wanted; /* the user chose a level */

static size_t print_time(int64_t time_ns, char *text, size_t size) {
  long micros = (long)(time_ns % SECOND / 1000);
  if (time_ns < VIRTUAL_MAX) return (size_t)snprintf(text, size, "%lld.%06ld", (long long)(time_ns / SECOND), micros);
  struct tm parts;
  time_t seconds = (time_t)(time_ns / SECOND);
  if (!gmtime_r(&seconds, &parts)) return (size_t)snprintf(text, size, "?");
  size_t used = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &parts);
  return used + (size_t)snprintf(text + used, size - used, ".%06ldZ", micros);
}

size_t pwi_cli_log_format(const struct pawl_log_line *line, char *text, size_t size) {
  char time[48];
  print_time(line->time_ns, time, sizeof time);
  int length = snprintf(text, size, "%s %s %s %s\n", time, pawl_log_level_name(line->level), line->node, line->text);
  if (length < 0) return 0;
  if ((size_t)length < size) return (size_t)length;
  text[size - 2] = '\n';
  return size - 1;
}

/* Each line is one write(), so that lines of several threads and processes are not mixed. */
static void write_line(void *context, const struct pawl_log_line *line) {
  char text[LINE_MAX_SIZE];
  (void)context;
  ssize_t written = write(STDERR_FILENO, text, pwi_cli_log_format(line, text, sizeof text));
  (void)written; /* a failure cannot be reported anywhere */
}

static void choose(enum pawl_log_level level) {
  chosen = level;
  pawl_log_set(write_line, NULL, level);
}

bool pwi_cli_log_level(const char *name) {
  for (int level = PAWL_LOG_DEBUG; level <= PAWL_LOG_ERROR; level++)
    if (strcmp(name, pawl_log_level_name((enum pawl_log_level)level)) == 0) {
      is_wanted = true;
      choose((enum pawl_log_level)level);
      return true;
    }
  return false;
}

void pwi_cli_log_more(void) {
  is_wanted = true;
  if (chosen > PAWL_LOG_DEBUG) choose((enum pawl_log_level)(chosen - 1));
}

void pwi_cli_log_calm(void) {
  if (!is_wanted) choose(PAWL_LOG_ERROR);
}

void pwi_cli_log_mute(bool mute) { pawl_log_set(mute ? NULL : write_line, NULL, chosen); }

void pwi_cli_log_start(void) {
  const char *wanted = getenv("PAWL_LOG_LEVEL");
  choose(PAWL_LOG_WARN);
  if (wanted && *wanted && !pwi_cli_log_level(wanted))
    fprintf(stderr, "pawl: invalid PAWL_LOG_LEVEL '%s', expected debug, info, warn or error; using warn\n", wanted);
}
