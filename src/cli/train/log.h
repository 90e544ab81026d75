/* --log FILE: a JSON object a round, one to a line, each flushed as it is written. */
#ifndef PWI_CLI_TRAIN_LOG_H
#define PWI_CLI_TRAIN_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

struct pwi_train_log {
  const char *path; /* NULL: none is kept */
  bool is_resumed;  /* then lines are added to what is there */
  FILE *file;
};

/* There is a path; the object becomes the log's, NULL being one that there was no memory for. True, or errno says why not; then no more is
 * written and the path is NULL. The file is made with the first line. */
bool pwi_train_log_write(struct pwi_train_log *log, json_t *object);
void pwi_train_log_close(struct pwi_train_log *log);

/* A number, or null for what JSON has no word for. */
json_t *pwi_train_json_number(double value);

/* Prints an object to a line of its own and releases it. False: out of memory, or it cannot be written. */
bool pwi_train_json_write(FILE *file, json_t *object);

#endif
