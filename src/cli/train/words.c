#include "cli/train/words.h"

#include <stdio.h>
#include <string.h>

#define TELLING 16 /* number of equal characters that is not a coincidence */

/* Whether the message contains the line without some of its prefixes. */
static bool is_in(const char *message, const char *line) {
  for (const char *part = line; (part = strstr(part, ": "));) {
    part += 2;
    if (strlen(part) >= TELLING && strstr(message, part)) return true;
  }
  return false;
}

static void drop(struct pwi_train_words *words, size_t i) {
  words->count--;
  memmove(&words->list[i], &words->list[i + 1], (words->count - i) * sizeof words->list[0]);
}

static void print(struct pwi_train_words *words, size_t i) {
  if (words->list[i].is_printed) return;
  words->list[i].is_printed = true;
  words->say(words->context, words->list[i].line);
}

void pwi_train_words_hold(struct pwi_train_words *words, const char *line, int64_t now_ns) {
  if (is_in(words->news, line)) return;
  if (words->count == PWI_TRAIN_WORDS_HELD) {
    print(words, 0);
    drop(words, 0);
  }
  words->list[words->count].since_ns = now_ns;
  words->list[words->count].is_printed = false;
  snprintf(words->list[words->count].line, PWI_TRAIN_LINE_MAX, "%s", line);
  words->count++;
}

bool pwi_train_words_news(struct pwi_train_words *words, const char *message) {
  bool is_printed = false;
  snprintf(words->news, sizeof words->news, "%s", message);
  for (size_t i = words->count; i-- > 0;) {
    if (!is_in(message, words->list[i].line)) continue;
    is_printed |= words->list[i].is_printed;
    drop(words, i);
  }
  return !is_printed;
}

void pwi_train_words_print(struct pwi_train_words *words, int64_t until_ns) {
  for (size_t i = 0; i < words->count; i++)
    if (words->list[i].since_ns <= until_ns) print(words, i);
}
