/* The curve of a training run: the objective above its final value, by rounds. */
#include <math.h>
#include <stdio.h>

#include "cli/demo/train.h"

#define MARGIN 10     /* before the first column */
#define DECADES_MAX 9 /* smaller differences are rounding errors */

struct scale {
  double end;         /* the least objective */
  double top, bottom; /* powers of ten */
  size_t rounds;      /* number of rounds shown */
  int cells;          /* columns of each round */
};

static double above(const struct scale *scale, const struct pwi_demo_round *round) {
  return round->objective - scale->end;
}

static void measure(struct scale *scale, const struct pwi_paint *paint, const struct pwi_demo_training *training) {
  double most = 0, least = INFINITY;
  *scale = (struct scale){.end = training->objective};
  for (size_t i = 0; i < training->round_count; i++)
    if (training->rounds[i].objective < scale->end) scale->end = training->rounds[i].objective;
  for (size_t i = 0; i < training->round_count; i++) {
    double is = above(scale, &training->rounds[i]);
    if (is > most) most = is;
    if (is > 0 && is < least) least = is;
  }
  scale->top = most > 0 ? ceil(log10(most)) : 1;
  scale->bottom = isfinite(least) ? floor(log10(least)) : scale->top - 1;
  if (scale->bottom < scale->top - DECADES_MAX) scale->bottom = scale->top - DECADES_MAX;
  if (scale->bottom >= scale->top) scale->bottom = scale->top - 1;
  size_t room = (size_t)(paint->width > MARGIN + 20 ? paint->width - MARGIN - 1 : 20);
  scale->rounds = training->round_count < room ? training->round_count : room;
  scale->cells = scale->rounds && 2 * scale->rounds <= room ? 2 : 1;
}

/* How much of a row, which stands for a power of ten, a round fills. */
static double fills(const struct scale *scale, const struct pwi_demo_round *round, int row) {
  double is = above(scale, round);
  if (is <= 0) return 0;
  double level = log10(is) - (scale->top - 1 - row);
  return level < 0 ? 0 : level > 1 ? 1 : level;
}

static void print_row(const struct scale *scale, const struct pwi_paint *paint,
                      const struct pwi_demo_training *training, int row) {
  printf("  %6g |", pow(10, scale->top - row));
  printf("%s", pwi_paint_ink(paint, PWI_INK_GREEN));
  for (size_t i = 0; i < scale->rounds; i++) {
    if (training->killed && i == training->killed_after) printf("%s", pwi_paint_ink(paint, PWI_INK_BLUE));
    for (int cell = 0; cell < scale->cells; cell++)
      printf("%s", pwi_paint_level(paint, fills(scale, &training->rounds[i], row)));
  }
  printf("%s", pwi_paint_ink(paint, PWI_INK_PLAIN));
  printf("\n");
}

static void print_foot(const struct scale *scale, const struct pwi_paint *paint,
                       const struct pwi_demo_training *training) {
  printf("%*s", MARGIN, "");
  for (size_t i = 0; i < scale->rounds * (size_t)scale->cells; i++) putchar('-');
  printf("\n");
  if (!training->killed || training->killed_after > scale->rounds) return;
  printf("%*s%s^ after round %zu: kill -9 of a server, process %ld%s\n",
         MARGIN + (int)training->killed_after * scale->cells, "", pwi_paint_ink(paint, PWI_INK_RED),
         training->killed_after, (long)training->killed, pwi_paint_ink(paint, PWI_INK_PLAIN));
}

void pwi_demo_curve_print(const struct pwi_paint *paint, const struct pwi_demo_training *training) {
  struct scale scale;
  measure(&scale, paint, training);
  printf("  The objective after each round, above its final value %.4f\n\n", scale.end);
  for (int row = 0; row < (int)(scale.top - scale.bottom); row++) print_row(&scale, paint, training, row);
  print_foot(&scale, paint, training);
}
