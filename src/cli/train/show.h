/* What the person at the terminal sees while a model is trained: a line that changes, and news above it. On standard error;
 * the line only if that is a terminal. */
#ifndef PWI_CLI_TRAIN_SHOW_H
#define PWI_CLI_TRAIN_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>

#define PWI_TRAIN_LINE_MAX 512

struct pwi_train_show {
  bool quiet, is_terminal;
  bool is_drawn;
  int64_t drawn_ns;
  char line[PWI_TRAIN_LINE_MAX];
};

void pwi_train_show_init(struct pwi_train_show *show, bool quiet);

/* Whether the line may be drawn again: on a terminal, and at most ten times a second. */
bool pwi_train_show_is_due(const struct pwi_train_show *show);

/* Redraws the line. */
void pwi_train_show_draw(struct pwi_train_show *show, const char *line);

/* News in a line of its own. */
void pwi_train_show_say(struct pwi_train_show *show, const char *text);

/* Takes the line away, for whoever prints next. */
void pwi_train_show_clear(struct pwi_train_show *show);

/* Adds to a line, and cuts it off where it is full. */
void pwi_train_line_add(char line[PWI_TRAIN_LINE_MAX], const char *format, ...) PAWL_PRINTF(2, 3);

/* 1234567 as "1.23M", with a unit of 1000; 90 seconds as "1:30". `text_out` has room for 32. Return it. */
const char *pwi_train_short(double number, char *text_out);
const char *pwi_train_time(double seconds, char *text_out);

/* On standard output, after a blank, as a shell takes it back. */
void pwi_train_word_print(const char *word);

#endif
