/* Softmax, its loss, and the best distribution of one row in the dual. */
#ifndef MLR_SOFTMAX_H
#define MLR_SOFTMAX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The logarithm of the sum of exp(scores). */
double mlr_log_sum(size_t classes, const double *scores);

/* exp(score - log_sum) of each class. */
void mlr_probabilities(size_t classes, const double *scores, double log_sum, double *probabilities_out);

/* The class with the highest score, of equal ones the first. `is_alone_out`: no other class has the same score. */
uint32_t mlr_best(size_t classes, const double *scores, bool *is_alone_out);

/* The entropy of a distribution: minus the sum of q log q. */
double mlr_entropy(size_t classes, const double *q);

/* The q that maximises, over all distributions,
 *
 *   entropy(q) + q . scores - stiffness/2 |q - before|^2
 *
 * At the maximum there is a number m with log q_j + stiffness q_j = scores_j + stiffness before_j - m for all classes: two
 * nested Newton iterations find it. `work` has room for 2 * classes. */
void mlr_best_dual(size_t classes, const double *scores, const double *before, double stiffness, double *work,
                   double *q_out);

#endif
