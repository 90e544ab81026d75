/* The pictures of `pawl-bench asap`: groups of bars. */
#include <math.h>
#include <stdio.h>

#include "asap.h"

#define HEIGHT 280
#define TOP 64
#define LEFT 30
#define BAR 46      /* width of a bar with its margin */
#define BAR_MANY 26 /* if there are many */
#define MANY 12
#define GAP 24 /* between two groups */

static const char *const colours[PWI_ASAP_SERIES_MAX] = {"#4a7ab5", "#d9a441", "#6a9a5b", "#a05a78"};

static double highest(const struct pwi_asap_chart *chart) {
  double most = 0;
  for (size_t i = 0; i < chart->group_count; i++)
    for (size_t k = 0; k < chart->series_count; k++)
      if (chart->values[i][k] > most) most = chart->values[i][k];
  return most > 0 ? most : 1;
}

static int bar_width(const struct pwi_asap_chart *chart) {
  return chart->group_count * chart->series_count > MANY ? BAR_MANY : BAR;
}

static void draw_names(FILE *file, const struct pwi_asap_chart *chart) {
  double x = LEFT;
  for (size_t k = 0; k < chart->series_count && chart->series_count > 1; k++, x += 110) {
    fprintf(file, "<rect x=\"%.0f\" y=\"28\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x, colours[k]);
    fprintf(file, "<text x=\"%.0f\" y=\"38\">%s</text>\n", x + 17, chart->series[k]);
  }
}

static void draw_group(FILE *file, const struct pwi_asap_chart *chart, size_t group, double x, double scale) {
  int bar = bar_width(chart);
  double width = (double)chart->series_count * bar;
  for (size_t k = 0; k < chart->series_count; k++) {
    double value = chart->values[group][k], height = value * scale, at = x + (double)k * bar;
    if (isnan(value)) continue;
    fprintf(file, "<rect x=\"%.0f\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" fill=\"%s\"/>\n", at, TOP + HEIGHT - height,
            bar - 4, height, colours[k]);
    fprintf(file, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"10\">%.*f</text>\n",
            at + bar / 2.0 - 2, TOP + HEIGHT - height - 4, chart->digits, value);
  }
  fprintf(file, "<text x=\"%.0f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x + width / 2, TOP + HEIGHT + 18,
          chart->groups[group]);
}

bool pwi_asap_draw(const char *path, const struct pwi_asap_chart *chart) {
  double group = (double)chart->series_count * bar_width(chart) + GAP, scale = HEIGHT / highest(chart);
  double width = LEFT * 2 + (double)chart->group_count * group;
  FILE *file = fopen(path, "we");
  if (!file) return false;
  fprintf(file,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\" font-family=\"sans-serif\" "
          "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
          width > 560 ? width : 560, TOP + HEIGHT + 54);
  fprintf(file, "<text x=\"%d\" y=\"18\">%s</text>\n", LEFT, chart->title);
  draw_names(file, chart);
  for (size_t i = 0; i < chart->group_count; i++) draw_group(file, chart, i, LEFT + (double)i * group, scale);
  fprintf(file, "<text x=\"%d\" y=\"%d\">%s</text>\n</svg>\n", LEFT, TOP + HEIGHT + 40, chart->axis);
  bool is_written = !ferror(file);
  return fclose(file) == 0 && is_written;
}
