/* Bars of computing, with waiting on top, for each tau or system (OSDI'14, figures 10 and 13). */
#include <inttypes.h>
#include <stdio.h>

#include "cli/osdi/wait.h"

#define WIDTH 90 /* of a bar with its margin */
#define HEIGHT 300
#define TOP 40
#define LEFT 60

static double highest(const struct pwi_wait_figures *figures, size_t count) {
  double most = 0;
  for (size_t i = 0; i < count; i++)
    if (figures[i].total_s > most) most = figures[i].total_s;
  return most > 0 ? most : 1;
}

void pwi_wait_name(uint64_t tau, char name[PWI_WAIT_NAME_MAX]) {
  if (tau == PWI_WAIT_INFINITE || tau == PWI_WAIT_ADAPTIVE)
    snprintf(name, PWI_WAIT_NAME_MAX, "%s", tau == PWI_WAIT_INFINITE ? "inf" : "adaptive");
  else
    snprintf(name, PWI_WAIT_NAME_MAX, "%" PRIu64, tau);
}

static void draw_bar(FILE *file, double x, double scale, const char *name, const struct pwi_wait_figures *figures) {
  double compute = figures->compute_s * scale, wait = (figures->total_s - figures->compute_s) * scale;
  fprintf(file, "<rect x=\"%.0f\" y=\"%.1f\" width=\"56\" height=\"%.1f\" fill=\"#4a7ab5\"/>\n", x,
          TOP + HEIGHT - compute, compute);
  fprintf(file, "<rect x=\"%.0f\" y=\"%.1f\" width=\"56\" height=\"%.1f\" fill=\"#d9a441\"/>\n", x,
          TOP + HEIGHT - compute - wait, wait);
  fprintf(file, "<text x=\"%.0f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x + 28, TOP + HEIGHT + 18, name);
  fprintf(file, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"middle\">%.0f s, %.1f %%%s</text>\n", x + 28,
          TOP + HEIGHT - compute - wait - 5, figures->total_s, figures->wait_pct, figures->is_reached ? "" : " *");
}

bool pwi_wait_draw(const char *path, const char *under, const char (*names)[PWI_WAIT_NAME_MAX],
                   const struct pwi_wait_figures *figures, size_t count) {
  FILE *file = fopen(path, "we");
  if (!file) return false;
  double scale = HEIGHT / highest(figures, count);
  fprintf(file,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%d\" font-family=\"sans-serif\" "
          "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
          LEFT + count * WIDTH + 20, TOP + HEIGHT + 60);
  fprintf(file, "<text x=\"%d\" y=\"18\">time to the same objective, and the share of it that workers waited</text>\n",
          LEFT);
  for (size_t i = 0; i < count; i++) draw_bar(file, LEFT + (double)i * WIDTH, scale, names[i], &figures[i]);
  fprintf(file, "<text x=\"%d\" y=\"%d\">%s; blue: computing, yellow: waiting</text>\n</svg>\n", LEFT,
          TOP + HEIGHT + 44, under);
  bool is_written = !ferror(file);
  return fclose(file) == 0 && is_written;
}
