/* The last output of workers that have failed, printed once.
 *
 * A worker that refuses its work tells the scheduler why, and writes the same to its standard error, with another
 * prefix. The scheduler reports the former at the end of the round or as the failure of the run; the latter is found
 * when the process has ended. Either may come first. So the output of a worker is held for a while: a message with the
 * same text replaces it.
 *
 * Single-threaded. Never fails: the oldest line is printed if there is no room for another one.
 */
#ifndef PWI_CLI_TRAIN_WORDS_H
#define PWI_CLI_TRAIN_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/train/show.h"

#define PWI_TRAIN_WORDS_HELD 16

struct pwi_train_words {
  void (*say)(void *context, const char *line);
  void *context;
  struct {
    char line[PWI_TRAIN_LINE_MAX];
    int64_t since_ns;
    bool is_printed;
  } list[PWI_TRAIN_WORDS_HELD]; /* the oldest first */
  size_t count;
  char news[PWI_TRAIN_LINE_MAX]; /* the last message */
};

/* A line of output of a worker. */
void pwi_train_words_hold(struct pwi_train_words *words, const char *line, int64_t now_ns);

/* A message that is about to be printed. Drops lines with the same text. Returns false if such a line was printed
 * already, so that the message is not needed. */
bool pwi_train_words_news(struct pwi_train_words *words, const char *message);

/* Prints the lines that are held since `until_ns` or longer. */
void pwi_train_words_print(struct pwi_train_words *words, int64_t until_ns);

#endif
