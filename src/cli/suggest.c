/* Suggests a known word for an unknown one. */
#include <string.h>

#include "cli/cli.h"

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Optimal string alignment: rows are prefixes of `a`, and only the last three are kept. */
size_t pwi_cli_distance(const char *a, const char *b) {
  size_t rows[3][PWI_CLI_WORD_MAX + 1];
  size_t a_size = strnlen(a, PWI_CLI_WORD_MAX), b_size = strnlen(b, PWI_CLI_WORD_MAX);
  size_t *before = rows[0], *last = rows[1], *now = rows[2];
  for (size_t j = 0; j <= b_size; j++) last[j] = j;
  for (size_t i = 1; i <= a_size; i++) {
    now[0] = i;
    for (size_t j = 1; j <= b_size; j++) {
      now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = least(now[j], before[j - 2] + 1);
    }
    size_t *spare = before;
    before = last;
    last = now;
    now = spare;
  }
  return last[b_size];
}

/* A word of three letters may have an edit distance of 1, a longer one of a third of its length. A prefix
 * also matches. */
static size_t tolerance(const char *word) {
  size_t size = strlen(word);
  return size < 3 ? 1 : size / 3;
}

void pwi_cli_guess_offer(struct pwi_cli_guess *guess, const char *candidate) {
  size_t size = strlen(guess->word);
  bool begins = size > 1 && strncmp(guess->word, candidate, size) == 0;
  size_t distance = begins ? 1 : pwi_cli_distance(guess->word, candidate);
  if (!begins && distance > least(tolerance(guess->word), tolerance(candidate))) return;
  if (guess->best && distance >= guess->distance) return;
  guess->best = candidate;
  guess->distance = distance;
}
