#include "cli/train_log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define DIGITS 12 /* of real numbers: an objective of millions is compared to fractions */

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
  free(text); /* jansson's own memory */
  return good;
}

static json_t *object_of(const struct linear_progress *is) {
  return json_pack(
      "{s:I, s:I, s:f, s:f, s:f, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:s, s:I, s:I}",
      "round", (json_int_t)is->round, "point", (json_int_t)is->point, "l1", is->l1, "l2", is->l2, "seconds",
      is->seconds, "objective", pwi_train_json_number(is->objective), "loss", pwi_train_json_number(is->loss),
      "penalty", pwi_train_json_number(is->penalty), "nnz", (json_int_t)is->nonzeros, "valid_loss",
      pwi_train_json_number(is->valid_loss), "valid_accuracy", pwi_train_json_number(is->valid_accuracy),
      "examples_per_s", pwi_train_json_number(is->examples_per_s), "wait_pct", pwi_train_json_number(is->wait_pct),
      "bytes_per_s", pwi_train_json_number(is->bytes_per_s), "bytes_sent", (json_int_t)is->bytes_sent, "bytes_received",
      (json_int_t)is->bytes_received, "workers", (json_int_t)is->workers, "slowest", pwi_train_json_number(is->slowest),
      "slowest_host", is->slowest_host ? is->slowest_host : "", "slowest_pid", (json_int_t)is->slowest_pid, "skipped",
      (json_int_t)is->skipped);
}

static bool give_up(struct pwi_train_log *log) {
  int error = errno;
  if (log->file) fclose(log->file);
  log->file = NULL;
  log->path = NULL;
  errno = error;
  return false;
}

bool pwi_train_log_write(struct pwi_train_log *log, const struct linear_progress *progress) {
  if (!log->path) return true;
  if (!log->file) log->file = fopen(log->path, log->is_resumed ? "ae" : "we");
  if (!log->file || !pwi_train_json_write(log->file, object_of(progress))) return give_up(log);
  return true;
}

void pwi_train_log_close(struct pwi_train_log *log) {
  if (log->file) fclose(log->file);
  log->file = NULL;
}
