/* When a model is no better than guessing: than the best answer that is the same for all rows on which it is judged. */
#ifndef APPS_COMMON_GUESS_H
#define APPS_COMMON_GUESS_H

#include <math.h>
#include <stdbool.h>

#define APPS_GUESS_ROWS 30 /* fewer rows tell nothing */

/* Of rows that the model was not trained on. */
struct apps_figures {
  double loss;  /* mean, by the model's own loss */
  double error; /* fraction of wrong rows; 0 if there are no classes */
};

/* Whether an error is so far below that of guessing that it is no luck: by three standard deviations. */
static inline bool apps_beats_guess(double error, double guess, double rows) {
  return error < guess - 3 * sqrt(guess * (1 - guess) / rows);
}

/* A model that is wrong less often may have a higher loss, because some of its scores are far off; one with a lower loss may be
 * wrong as often, because one class is rare. Neither guesses. Rows of one class only tell nothing. */
static inline bool apps_is_guess(const struct apps_figures *model, const struct apps_figures *guess, double rows) {
  return rows >= APPS_GUESS_ROWS && guess->loss > 0 && !(model->loss < guess->loss) &&
         !apps_beats_guess(model->error, guess->error, rows);
}

#endif
