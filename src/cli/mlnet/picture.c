/* Charts of lines as SVG. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "cli/mlnet/mlnet.h"

#define WIDTH 720
#define HEIGHT 420
#define LEFT 70
#define RIGHT 200
#define TOP 40
#define BOTTOM 50
#define TICKS 5

static const char *const colours[PWI_MLNET_SETUPS] = {"#333333", "#4a7ab5", "#8fb3dd", "#d9a441", "#a8732a",
                                                      "#6a9a5b", "#a05a78", "#5aa0a0", "#c46a5a", "#8a8a3a"};

/* A round number not below the highest value. */
static double end_of(double highest) {
  double unit = pow(10, floor(log10(highest > 0 ? highest : 1)));
  for (int i = 1; i <= 10; i++)
    if (i * unit >= highest) return i * unit;
  return 10 * unit;
}

static double most(const struct pwi_mlnet_chart *chart, bool is_x) {
  double value = 0;
  for (size_t i = 0; i < chart->line_count; i++)
    for (size_t k = 0; k < chart->lines[i].count; k++)
      value = fmax(value, is_x ? chart->lines[i].x[k] : chart->lines[i].y[k]);
  return end_of(value);
}

static double place_x(double value, double end) { return LEFT + value / end * (WIDTH - LEFT - RIGHT); }
static double place_y(double value, double end) { return HEIGHT - BOTTOM - value / end * (HEIGHT - TOP - BOTTOM); }

static void draw_axes(FILE *file, const struct pwi_mlnet_chart *chart, double end_x, double end_y) {
  fprintf(file, "<text x=\"%d\" y=\"22\" font-size=\"14\" font-weight=\"bold\">%s</text>\n", LEFT, chart->title);
  for (int i = 0; i <= TICKS; i++) {
    double x = place_x(end_x * i / TICKS, end_x), y = place_y(end_y * i / TICKS, end_y);
    fprintf(file, "<path d=\"M%d %.1fH%d\" stroke=\"#dddddd\"/>\n", LEFT, y, WIDTH - RIGHT);
    fprintf(file, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>\n", LEFT - 6, y + 4, end_y * i / TICKS);
    fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.3g</text>\n", x, HEIGHT - BOTTOM + 18,
            end_x * i / TICKS);
  }
  fprintf(file, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"black\"/>\n", LEFT, TOP, HEIGHT - BOTTOM,
          WIDTH - RIGHT);
  fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", LEFT + (WIDTH - LEFT - RIGHT) / 2,
          HEIGHT - 10, chart->x);
  fprintf(file, "<text transform=\"translate(18 %d) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
          TOP + (HEIGHT - TOP - BOTTOM) / 2, chart->y);
}

static void draw_line(FILE *file, const struct pwi_mlnet_chart *chart, size_t index, double end_x, double end_y) {
  const struct pwi_mlnet_line *line = &chart->lines[index];
  int y = TOP + 10 + 20 * (int)index;
  fprintf(file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colours[index]);
  for (size_t k = 0; k < line->count; k++)
    fprintf(file, "%.1f,%.1f ", place_x(line->x[k], end_x), place_y(line->y[k], end_y));
  fprintf(file, "\"/>\n<path d=\"M%d %dh20\" stroke=\"%s\" stroke-width=\"3\"/>\n", WIDTH - RIGHT + 14, y,
          colours[index]);
  fprintf(file, "<text x=\"%d\" y=\"%d\">%s</text>\n", WIDTH - RIGHT + 40, y + 4, line->name);
}

int pwi_mlnet_draw(const char *path, const struct pwi_mlnet_chart *chart) {
  double end_x = most(chart, true), end_y = most(chart, false);
  FILE *file = fopen(path, "we");
  if (!file) return errno;
  fprintf(file,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
          "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
          WIDTH, HEIGHT);
  draw_axes(file, chart, end_x, end_y);
  for (size_t i = 0; i < chart->line_count; i++) draw_line(file, chart, i, end_x, end_y);
  fprintf(file, "</svg>\n");
  int problem = ferror(file) ? EIO : 0;
  if (fclose(file) && !problem) problem = errno ? errno : EIO;
  return problem;
}
