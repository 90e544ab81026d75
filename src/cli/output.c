/* Output of commands: JSON for programs, bars and colours for users. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

#define WIDTH_MIN 60
#define WIDTH_MAX 100

int pwi_cli_print_json(const struct pwi_command *command, json_t *object) {
  char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
  json_decref(object);
  if (!text) return pwi_cli_failure(command, "out of memory");
  puts(text);
  free(text); /* allocated by jansson */
  return PWI_EXIT_OK;
}

int pwi_cli_main(int (*run)(int argc, char **argv), int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN); /* a write to a closed pipe or socket then fails with an error */
  pwi_cli_log_start();
  int exit_code = run(argc, argv);
  errno = 0;
  if (fflush(stdout) != 0 || ferror(stdout)) {
    /* A reader that closed the pipe, as in `pawl env | head -1`, is not an error. */
    if (errno != EPIPE)
      fprintf(stderr, "%s: cannot write to standard output: %s\n", pwi_cli_program, strerror(errno ? errno : EIO));
    return exit_code ? exit_code : PWI_EXIT_FAILURE;
  }
  return exit_code;
}

static int terminal_width(void) {
  struct winsize size;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_col > WIDTH_MAX) return WIDTH_MAX;
  return size.ws_col < WIDTH_MIN ? WIDTH_MIN : size.ws_col;
}

void pwi_paint_init(struct pwi_paint *paint) {
  bool terminal = isatty(STDOUT_FILENO) == 1;
  const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
  setlocale(LC_CTYPE, "");
  paint->colour = terminal && !(no_colour && *no_colour) && !(term && strcmp(term, "dumb") == 0);
  paint->blocks = terminal && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  paint->width = terminal ? terminal_width() : WIDTH_MAX;
}

const char *pwi_paint_ink(const struct pwi_paint *paint, enum pwi_ink ink) {
  static const char *const sequences[] = {
      [PWI_INK_PLAIN] = "\033[0m",  [PWI_INK_BOLD] = "\033[1m",    [PWI_INK_RED] = "\033[31m",
      [PWI_INK_GREEN] = "\033[32m", [PWI_INK_YELLOW] = "\033[33m", [PWI_INK_BLUE] = "\033[34m",
  };
  return paint->colour ? sequences[ink] : "";
}

#define LEVELS 8

const char *pwi_paint_level(const struct pwi_paint *paint, double full) {
  static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static const char *const letters[] = {" ", ".", ":", "-", "=", "+", "*", "%", "@"};
  int level = full > 0 ? (int)ceil(full * LEVELS) : 0;
  if (level > LEVELS) level = LEVELS;
  return paint->blocks ? blocks[level] : letters[level];
}

static int cells_of(int cells, double part) {
  if (!(part > 0)) return 0;
  return part < 1 ? (int)(part * cells + 0.5) : cells;
}

void pwi_paint_bar(const struct pwi_paint *paint, int cells, double full, double mark, enum pwi_ink ink) {
  int filled = cells_of(cells, full), marked = mark < 0 ? -1 : cells_of(cells, mark) - 1;
  if (marked < 0 && mark >= 0) marked = 0;
  fputs(pwi_paint_ink(paint, ink), stdout);
  for (int i = 0; i < cells; i++) {
    if (i == filled) fputs(pwi_paint_ink(paint, PWI_INK_PLAIN), stdout);
    if (i == marked)
      fputs(paint->blocks ? "┃" : "|", stdout);
    else if (i < filled)
      fputs(paint->blocks ? "█" : "#", stdout);
    else
      putchar(' ');
  }
  fputs(pwi_paint_ink(paint, PWI_INK_PLAIN), stdout);
}
