#include "cli/train_show.h"

#include <inttypes.h>
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
#define STRAGGLES 1.05 /* below it nobody is worth naming */

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

/* --- the line ----------------------------------------------------------------------------------------------------- */

static void add(char text[PWI_TRAIN_LINE_MAX], const char *format, ...) PAWL_PRINTF(2, 3);

static void add(char text[PWI_TRAIN_LINE_MAX], const char *format, ...) {
  size_t length = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + length, PWI_TRAIN_LINE_MAX - length, format, arguments);
  va_end(arguments);
}

static void add_point(char *text, const struct linear_progress *progress) {
  if (progress->points < 2) return;
  add(text, "[%zu/%zu l1=%g l2=%g] ", progress->point + 1, progress->points, progress->l1, progress->l2);
}

static void add_figures(char *text, const struct linear_progress *progress) {
  char number[32];
  add(text, "round %" PRIu64, progress->round);
  if (!isnan(progress->objective)) add(text, "  objective %.7g", progress->objective);
  add(text, "  nnz %s", pwi_train_short((double)progress->nonzeros, number));
  if (!isnan(progress->valid_loss)) add(text, "  valid %.4f", progress->valid_loss);
}

static void add_rates(char *text, const struct linear_progress *progress) {
  char number[32];
  if (progress->examples_per_s > 0) add(text, "  %s ex/s", pwi_train_short(progress->examples_per_s, number));
  if (!isnan(progress->wait_pct)) add(text, "  wait %.0f%%", progress->wait_pct);
  if (progress->bytes_per_s > 0) add(text, "  %sB/s", pwi_train_short(progress->bytes_per_s, number));
  if (progress->slowest >= STRAGGLES)
    add(text, "  slowest %.1fx (%.32s:%" PRIu64 ")", progress->slowest,
        progress->slowest_host ? progress->slowest_host : "", progress->slowest_pid);
}

void pwi_train_show_print(const struct linear_progress *progress, char text_out[PWI_TRAIN_LINE_MAX]) {
  char number[32];
  text_out[0] = '\0';
  add_point(text_out, progress);
  if (strcmp(progress->stage, "training") == 0) {
    add_figures(text_out, progress);
    if (!isnan(progress->left_s)) add(text_out, "  left %s", pwi_train_time(progress->left_s, number));
    add_rates(text_out, progress);
    return;
  }
  add(text_out, "%s  %u worker%s", progress->stage, progress->workers, progress->workers == 1 ? "" : "s");
  if (progress->rows) add(text_out, "  %s rows", pwi_train_short((double)progress->rows, number));
  add(text_out, "  %s", pwi_train_time(progress->seconds, number));
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

void pwi_train_show_progress(struct pwi_train_show *show, const struct linear_progress *progress) {
  int64_t now = pwi_host_now();
  if (show->quiet || !show->is_terminal || (show->drawn_ns && now - show->drawn_ns < REDRAW_NS)) return;
  show->drawn_ns = now;
  pwi_train_show_print(progress, show->line);
  draw(show);
}

void pwi_train_show_clear(struct pwi_train_show *show) {
  if (!show->is_drawn) return;
  fputs(ERASE, stderr);
  fflush(stderr);
  show->is_drawn = false;
}

void pwi_train_show_say(struct pwi_train_show *show, const char *text) {
  bool was_drawn = show->is_drawn;
  if (show->quiet) return;
  pwi_train_show_clear(show);
  fprintf(stderr, "%s\n", text);
  if (was_drawn) draw(show);
}
