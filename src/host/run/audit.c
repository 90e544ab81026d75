#include "host/run/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"

#define TIME_SIZE 40

struct pwi_run_audit {
  char *path;
  pthread_mutex_t mutex;
  int file;        /* guarded by the mutex */
  bool has_failed; /* the failure has been logged */
  struct pwi_log log;
};

/* Returns -1 and explains why on failure. Symbolic links are not followed: another user could choose their
 * target. */
static int open_file(const char *path, struct pwi_run_problem *problem) {
  struct stat about;
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, S_IRUSR | S_IWUSR);
  if (file < 0) {
    pwi_run_problem_set(problem, "cannot append to %s: %s", path, strerror(errno));
    return -1;
  }
  bool is_ours = fstat(file, &about) == 0 && about.st_uid == geteuid() && S_ISREG(about.st_mode);
  if (is_ours && (about.st_mode & (S_IRWXG | S_IRWXO)) == 0) return file;
  pwi_run_problem_set(problem, "%s: the audit file must belong to you and be inaccessible to others: chmod 600 %s",
                      path, path);
  close(file);
  return -1;
}

pawl_status pwi_run_audit_open(const char *path, struct pwi_run_audit **audit_out, struct pwi_run_problem *problem) {
  *audit_out = NULL;
  if (!path) return PAWL_OK;
  struct pwi_run_audit *audit = pwi_alloc_zero(1, sizeof *audit);
  if (!audit || !(audit->path = pwi_copy_string(path))) {
    pwi_free(audit);
    pwi_run_problem_set(problem, "%s", pawl_status_text(PAWL_NO_MEMORY));
    return PAWL_NO_MEMORY;
  }
  pthread_mutex_init(&audit->mutex, NULL);
  audit->log.node = "audit";
  audit->file = open_file(path, problem);
  if (audit->file < 0) {
    pwi_run_audit_close(audit);
    return PAWL_IO;
  }
  *audit_out = audit;
  return PAWL_OK;
}

void pwi_run_audit_close(struct pwi_run_audit *audit) {
  if (!audit) return;
  if (audit->file >= 0) close(audit->file);
  pthread_mutex_destroy(&audit->mutex);
  pwi_free(audit->path);
  pwi_free(audit);
}

pawl_status pwi_run_audit_reopen(struct pwi_run_audit *audit, struct pwi_run_problem *problem) {
  if (!audit) return PAWL_OK;
  int file = open_file(audit->path, problem);
  if (file < 0) return PAWL_IO;
  pthread_mutex_lock(&audit->mutex);
  close(audit->file);
  audit->file = file;
  audit->has_failed = false;
  pthread_mutex_unlock(&audit->mutex);
  return PAWL_OK;
}

static void print_now(char text[TIME_SIZE]) {
  struct timespec now;
  struct tm parts;
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &parts);
  size_t used = strftime(text, TIME_SIZE, "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(text + used, TIME_SIZE - used, ".%06ldZ", now.tv_nsec / 1000);
}

static void append(void *context, const char *node, const char *line) {
  struct pwi_run_audit *audit = context;
  char text[PWI_AUDIT_LINE_MAX + 128], time[TIME_SIZE];
  print_now(time);
  int length = snprintf(text, sizeof text, "%s %s %s\n", time, node, line);
  pthread_mutex_lock(&audit->mutex);
  bool failed = write(audit->file, text, (size_t)length) != (ssize_t)length;
  bool is_news = failed && !audit->has_failed;
  audit->has_failed = failed;
  int error = errno;
  pthread_mutex_unlock(&audit->mutex);
  if (is_news) pwi_log(&audit->log, PAWL_LOG_ERROR, "audit.failed", "file=%s why=%s", audit->path, strerror(error));
}

struct pwi_auditor pwi_run_auditor(struct pwi_run_audit *audit) {
  return audit ? (struct pwi_auditor){.sink = append, .context = audit} : (struct pwi_auditor){0};
}
