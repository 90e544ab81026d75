#include "cli/train/log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define DIGITS 12 /* digits of real numbers: objectives in the millions are compared to fractions */

json_t *pwi_train_json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

bool pwi_train_json_write(FILE *file, json_t *object) {
  char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) : NULL;
  json_decref(object);
  if (!text) {
    errno = ENOMEM;
    return false;
  }
  errno = 0;
  bool good = fprintf(file, "%s\n", text) > 0 && fflush(file) == 0;
  free(text); /* allocated by jansson */
  return good;
}

static bool give_up(struct pwi_train_log *log) {
  int error = errno;
  if (log->file) fclose(log->file);
  log->file = NULL;
  log->path = NULL;
  errno = error;
  return false;
}

bool pwi_train_log_write(struct pwi_train_log *log, json_t *object) {
  if (!log->file) log->file = fopen(log->path, log->is_resumed ? "ae" : "we");
  if (log->file) return pwi_train_json_write(log->file, object) ? true : give_up(log);
  json_decref(object);
  return give_up(log);
}

void pwi_train_log_close(struct pwi_train_log *log) {
  if (log->file) fclose(log->file);
  log->file = NULL;
}
