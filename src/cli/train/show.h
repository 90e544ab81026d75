/* The display of a training run on standard error: news, and on a terminal a progress line. */
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
  const char *stage; /* of the line that was drawn last; NULL: none */
  char line[PWI_TRAIN_LINE_MAX];
};

void pwi_train_show_init(struct pwi_train_show *show, bool quiet);

/* Whether the progress line may be redrawn: on a terminal, at most ten times a second, and when a stage begins, so
 * that even a short one is seen. Stages are string constants. */
bool pwi_train_show_is_due(struct pwi_train_show *show, const char *stage);

/* Redraws the progress line. */
void pwi_train_show_draw(struct pwi_train_show *show, const char *line);

/* Of many epochs only the lines of some stay; on a terminal the line of the last one is redrawn. Whether the line of an epoch
 * will be shown, and showing it. */
bool pwi_train_show_wants_epoch(struct pwi_train_show *show, uint64_t epoch, uint64_t epochs);
void pwi_train_show_epoch(struct pwi_train_show *show, uint64_t epoch, uint64_t epochs, const char *line);

/* Prints a line of news above the progress line, unless the run is quiet. */
void pwi_train_show_say(struct pwi_train_show *show, const char *text);

/* The same, even if the run is quiet. */
void pwi_train_show_insist(struct pwi_train_show *show, const char *text);

/* Removes the progress line before other output. */
void pwi_train_show_clear(struct pwi_train_show *show);

/* Appends to a line, truncated to its size. */
void pwi_train_line_add(char line[PWI_TRAIN_LINE_MAX], const char *format, ...) PAWL_PRINTF(2, 3);

/* 1234567 as "1.23M" (units of 1000); 90 seconds as "1:30". `text_out` has room for 32. Both return it. */
const char *pwi_train_short(double number, char *text_out);
const char *pwi_train_time(double seconds, char *text_out);

/* Prints a blank and a word quoted for the shell to standard output. */
void pwi_train_word_print(const char *word);

#endif
