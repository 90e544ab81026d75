/* --log FILE: one JSON object per round and line, flushed after each. */
#ifndef PWI_CLI_TRAIN_LOG_H
#define PWI_CLI_TRAIN_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

struct pwi_train_log {
  const char *path; /* NULL: none is kept */
  bool is_resumed;  /* append to an existing file */
  FILE *file;
};

/* Writes an object and takes it over. NULL stands for an object that could not be allocated. `path` must be
 * set. Returns true, or false and errno; then `path` becomes NULL and nothing more is written. The first line
 * creates the file. */
bool pwi_train_log_write(struct pwi_train_log *log, json_t *object);
void pwi_train_log_close(struct pwi_train_log *log);

/* A JSON number; null if it is not finite. */
json_t *pwi_train_json_number(double value);

/* Prints an object on one line and releases it. Returns false if it is out of memory or the write fails. */
bool pwi_train_json_write(FILE *file, json_t *object);

#endif
