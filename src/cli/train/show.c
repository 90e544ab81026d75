#include "cli/train/show.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host/clock.h"

#define REDRAW_NS (PWI_HOST_SECOND / 10)
#define WIDTH_DEFAULT 80
#define ERASE "\r\033[K"

/* --- numbers for people ------------------------------------------------------------------------------------------- */

const char *pwi_train_short(double number, char *text_out) {
  static const char units[] = {'\0', 'k', 'M', 'G', 'T', 'P'};
  size_t unit = 0;
  while (fabs(number) >= 999.5 && unit + 1 < sizeof units) {
    number /= 1000;
    unit++;
  }
  int digits = unit == 0 && number == floor(number) ? 0 : fabs(number) < 9.995 ? 2 : fabs(number) < 99.95 ? 1 : 0;
  snprintf(text_out, 32, "%.*f%.1s", digits, number, &units[unit]);
  return text_out;
}

const char *pwi_train_time(double seconds, char *text_out) {
  if (seconds < 60)
    snprintf(text_out, 32, seconds < 9.95 ? "%.1f s" : "%.0f s", seconds);
  else if (seconds < 3600)
    snprintf(text_out, 32, "%d:%02d", (int)seconds / 60, (int)seconds % 60);
  else if (seconds < 1e9)
    snprintf(text_out, 32, "%d:%02d:%02d", (int)seconds / 3600, (int)seconds / 60 % 60, (int)seconds % 60);
  else
    snprintf(text_out, 32, "long");
  return text_out;
}

void pwi_train_word_print(const char *word) {
  if (word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=,./:@%*?[]")] == '\0')
    printf(" %s", word);
  else
    printf(" '%s'", word);
}

void pwi_train_line_add(char line[PWI_TRAIN_LINE_MAX], const char *format, ...) {
  size_t length = strlen(line);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line + length, PWI_TRAIN_LINE_MAX - length, format, arguments);
  va_end(arguments);
}

/* --- on the terminal ---------------------------------------------------------------------------------------------- */

void pwi_train_show_init(struct pwi_train_show *show, bool quiet) {
  *show = (struct pwi_train_show){.quiet = quiet, .is_terminal = isatty(STDERR_FILENO) == 1};
}

static int width(void) {
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return WIDTH_DEFAULT;
  return size.ws_col;
}

static void draw(struct pwi_train_show *show) {
  fprintf(stderr, ERASE "%.*s", width() - 1, show->line);
  fflush(stderr);
  show->is_drawn = true;
}

bool pwi_train_show_is_due(struct pwi_train_show *show, const char *stage) {
  if (show->quiet || !show->is_terminal) return false;
  bool is_new = !show->stage || strcmp(show->stage, stage) != 0;
  show->stage = stage;
  return is_new || pwi_host_now() - show->drawn_ns >= REDRAW_NS;
}

void pwi_train_show_draw(struct pwi_train_show *show, const char *line) {
  show->drawn_ns = pwi_host_now();
  snprintf(show->line, sizeof show->line, "%s", line);
  draw(show);
}

void pwi_train_show_clear(struct pwi_train_show *show) {
  if (!show->is_drawn) return;
  fputs(ERASE, stderr);
  fflush(stderr);
  show->is_drawn = false;
}

void pwi_train_show_say(struct pwi_train_show *show, const char *text) {
  if (!show->quiet) pwi_train_show_insist(show, text);
}

void pwi_train_show_insist(struct pwi_train_show *show, const char *text) {
  bool was_drawn = show->is_drawn;
  pwi_train_show_clear(show);
  fprintf(stderr, "%s\n", text);
  if (was_drawn) draw(show);
}

static bool stays(uint64_t epoch, uint64_t epochs) {
  uint64_t step = epoch <= 20 ? 1 : epoch <= 200 ? 10 : 100;
  return epoch % step == 0 || epoch == epochs;
}

bool pwi_train_show_wants_epoch(struct pwi_train_show *show, uint64_t epoch, uint64_t epochs) {
  return stays(epoch, epochs) || pwi_train_show_is_due(show, "training");
}

void pwi_train_show_epoch(struct pwi_train_show *show, uint64_t epoch, uint64_t epochs, const char *line) {
  if (stays(epoch, epochs))
    pwi_train_show_say(show, line);
  else
    pwi_train_show_draw(show, line);
}
