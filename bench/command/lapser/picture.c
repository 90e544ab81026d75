/* The pictures of `pawl-bench lapser`: lines for figures 5.1, 5.2 and 5.5 to 5.7, and bars for the others. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/command/asap/asap.h"
#include "plan.h"

#define WIDTH 560
#define HEIGHT 320
#define TOP 50
#define LEFT 60
#define RIGHT 120 /* for the names */

static const char *const colours[] = {"#4a7ab5", "#d9a441", "#6a9a5b", "#a05a78", "#333333",
                                      "#7fb2e5", "#c2703d", "#9bc48c", "#d08aa6", "#999999"};
#define COLOURS (sizeof colours / sizeof colours[0])

/* --- lines ------------------------------------------------------------------------------------------------ */

struct axes {
  bool has_time;    /* below: seconds since the beginning; otherwise iterations */
  bool has_seconds; /* beside: seconds of an iteration; otherwise the error */
  double x_most, y_least, y_most;
};

static double x_of(const struct axes *axes, const struct pwi_lapser_figures *figures, uint32_t at) {
  double sum = 0;
  if (!axes->has_time) return at + 1;
  for (uint32_t i = 0; i <= at; i++) sum += figures->steps[i].seconds;
  return sum;
}

/* During the burn-in there is no mean. */
static double y_of(const struct axes *axes, const struct pwi_lapser_step *step) {
  if (axes->has_seconds) return step->seconds;
  return isnan(step->mean) ? step->now : step->mean;
}

static void find_bounds(struct axes *axes, const struct pwi_lapser_cases *cases) {
  axes->y_least = axes->has_seconds ? 0 : (double)INFINITY;
  for (size_t i = 0; i < cases->count; i++) {
    const struct pwi_lapser_figures *figures = cases->list[i].figures;
    axes->x_most = fmax(axes->x_most, x_of(axes, figures, figures->iterations - 1));
    for (uint32_t k = 0; k < figures->iterations; k++) {
      axes->y_least = fmin(axes->y_least, y_of(axes, &figures->steps[k]));
      axes->y_most = fmax(axes->y_most, y_of(axes, &figures->steps[k]));
    }
  }
  if (!(axes->y_most > axes->y_least)) axes->y_most = axes->y_least + 1;
}

static void draw_line(FILE *file, const struct axes *axes, const struct pwi_lapser_case *one, size_t number) {
  char name[32];
  const char *colour = colours[number % COLOURS];
  pwi_lapser_case_name(one, name, sizeof name);
  fprintf(file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"", colour);
  for (uint32_t i = 0; i < one->figures->iterations; i++)
    fprintf(file, "%.1f,%.1f ", LEFT + WIDTH * x_of(axes, one->figures, i) / axes->x_most,
            TOP + HEIGHT * (axes->y_most - y_of(axes, &one->figures->steps[i])) / (axes->y_most - axes->y_least));
  fprintf(file, "\"/>\n<text x=\"%d\" y=\"%zu\" fill=\"%s\">%s</text>\n", LEFT + WIDTH + 12, TOP + 14 + 18 * number,
          colour, name);
}

static void draw_axes(FILE *file, const struct axes *axes) {
  fprintf(file, "<path d=\"M%d %d V%d H%d\" fill=\"none\" stroke=\"black\"/>\n", LEFT, TOP, TOP + HEIGHT, LEFT + WIDTH);
  for (int i = 0; i <= 4; i++) {
    fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.3g</text>\n", LEFT - 6,
            TOP + HEIGHT - i * HEIGHT / 4 + 4, axes->y_least + (axes->y_most - axes->y_least) * i / 4);
    fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%.3g</text>\n", LEFT + i * WIDTH / 4,
            TOP + HEIGHT + 18, axes->x_most * i / 4);
  }
  fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", LEFT + WIDTH / 2, TOP + HEIGHT + 38,
          axes->has_time ? "seconds" : "iteration");
}

static bool draw_lines(const char *path, const struct pwi_lapser_cases *cases, struct axes axes) {
  FILE *file = fopen(path, "we");
  if (!file) return false;
  find_bounds(&axes, cases);
  fprintf(file,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
          "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
          "<text x=\"%d\" y=\"24\">%s</text>\n",
          LEFT + WIDTH + RIGHT, TOP + HEIGHT + 54, LEFT,
          axes.has_seconds ? "Seconds of each iteration" : "RMSE on the test ratings");
  draw_axes(file, &axes);
  for (size_t i = 0; i < cases->count; i++) draw_line(file, &axes, &cases->list[i], i);
  fprintf(file, "</svg>\n");
  bool is_written = !ferror(file);
  return fclose(file) == 0 && is_written;
}

/* --- bars ------------------------------------------------------------------------------------------------- */

static void name_group(struct pwi_asap_chart *chart, const char *name) {
  snprintf(chart->groups[chart->group_count], sizeof chart->groups[0], "%s", name);
  for (size_t k = 0; k < chart->series_count; k++) chart->values[chart->group_count][k] = (double)NAN;
  chart->group_count++;
}

/* Two bars for each way. */
static void fill_parts(struct pwi_asap_chart *chart, const struct pwi_lapser_cases *cases) {
  chart->series[0] = "communication";
  chart->series[1] = "computation";
  chart->series_count = 2;
  chart->axis = "way of exchanging rows";
  for (size_t i = 0; i < cases->count && i < PWI_ASAP_GROUPS_MAX; i++) {
    char name[32];
    const struct pwi_lapser_summary *all = &cases->list[i].all;
    pwi_lapser_case_name(&cases->list[i], name, sizeof name);
    name_group(chart, name);
    chart->values[i][0] = 1e3 * all->shared;
    chart->values[i][1] = 1e3 * (all->seconds - all->shared);
  }
}

static size_t group_of(struct pwi_asap_chart *chart, uint32_t number) {
  char name[16];
  size_t at = 0;
  snprintf(name, sizeof name, "%" PRIu32, number);
  while (at < chart->group_count && strcmp(chart->groups[at], name) != 0) at++;
  if (at == chart->group_count) name_group(chart, name);
  return at;
}

/* Groups by slack or by number of workers. */
static void fill_groups(struct pwi_asap_chart *chart, const struct pwi_lapser_cases *cases, bool by_slack) {
  static const enum pwi_lapser_way ways[] = {PWI_LAPSER_HAND, PWI_LAPSER_ISEND, PWI_LAPSER_PULL, PWI_LAPSER_PUSH};
  size_t first = by_slack ? 2 : 0;
  for (size_t k = first; k < 4; k++) chart->series[chart->series_count++] = pwi_lapser_way_name(ways[k]);
  chart->axis = by_slack ? "slack" : "workers, without slack";
  for (size_t i = 0; i < cases->count; i++)
    for (size_t k = first; k < 4; k++) {
      const struct pwi_lapser_case *one = &cases->list[i];
      if (one->way != ways[k] || (!by_slack && one->slack > 0)) continue;
      chart->values[group_of(chart, by_slack ? one->slack : one->workers)][k - first] = 1e3 * one->all.seconds;
    }
}

bool pwi_lapser_draw(const struct pwi_lapser_plan *plan, const struct pwi_lapser_cases *cases) {
  uint32_t figure = plan->figure;
  struct pwi_asap_chart chart = {.title = "Milliseconds of an iteration", .digits = 1};
  if (figure == 1 || figure == 2 || figure == 7) return draw_lines(plan->svg, cases, (struct axes){.has_time = true});
  if (figure == 5 || figure == 6) return draw_lines(plan->svg, cases, (struct axes){.has_seconds = figure == 5});
  if (figure == 4 || figure == 8)
    fill_groups(&chart, cases, figure == 4);
  else
    fill_parts(&chart, cases);
  return pwi_asap_draw(plan->svg, &chart);
}
