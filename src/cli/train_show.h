/* What the person at the terminal sees while a model is trained: a line that changes, and news above it. On standard error;
 * the line only if that is a terminal. */
#ifndef PWI_CLI_TRAIN_SHOW_H
#define PWI_CLI_TRAIN_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/linear/linear.h"

#define PWI_TRAIN_LINE_MAX 512

struct pwi_train_show {
  bool quiet, is_terminal;
  bool is_drawn;
  int64_t drawn_ns;
  char line[PWI_TRAIN_LINE_MAX];
};

void pwi_train_show_init(struct pwi_train_show *show, bool quiet);

/* Redraws the line, at most ten times a second. */
void pwi_train_show_progress(struct pwi_train_show *show, const struct linear_progress *progress);

/* News in a line of its own. */
void pwi_train_show_say(struct pwi_train_show *show, const char *text);

/* Takes the line away, for whoever prints next. */
void pwi_train_show_clear(struct pwi_train_show *show);

/* The line as text. */
void pwi_train_show_print(const struct linear_progress *progress, char text_out[PWI_TRAIN_LINE_MAX]);

/* 1234567 as "1.23M", with a unit of 1000; 90 seconds as "1:30". `text_out` has room for 32. Return it. */
const char *pwi_train_short(double number, char *text_out);
const char *pwi_train_time(double seconds, char *text_out);

#endif
