/* A linear model: what training writes and prediction reads.
 *
 *   score(x) = bias + sum_j w_j x_j
 *
 * and of two classes the second is meant if the score is positive. Only weights that are not zero are kept,
 * by rising id.
 *
 * FORMATS. `pawl`, our own: a text head and binary weights, checksummed (docs/model-format.md). `liblinear`,
 * the text that liblinear-predict reads. `npy`, a NumPy array of float64 with an element for each feature,
 * w[id - 1] being the weight of feature id (w[id] of a zero-based model), and the bias at the end if there is
 * one; beside it, its name with .json added, what the array cannot say. Reading finds out by itself which it
 * is. Of a LIBLINEAR model that pawl did not write, the penalty's amount is not known: l1 or l2 is NAN.
 *
 * ERRORS: PAWL_IO, PAWL_NOT_FOUND and what else a disk may say; PAWL_CORRUPT, PAWL_TRUNCATED; PAWL_MISMATCH
 * (a model, but not a linear one); PAWL_INVALID (a model that is none is not written); PAWL_UNSUPPORTED
 * (LIBLINEAR: more than two classes, labels that are not whole, pawl's format: a later version);
 * PAWL_TOO_LARGE (an .npy or a LIBLINEAR model of more than 2^31 features); PAWL_NO_MEMORY. `error`, if not
 * NULL, receives a sentence for people that names the file.
 */
#ifndef APPS_LINEAR_MODEL_MODEL_H
#define APPS_LINEAR_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/pawl.h>

#include "apps/common/model_file.h"
#include "apps/linear/losses.h"

/* What features were divided by while the model was trained: scale.h. Weights are those of features as they
 * are in the files. */
enum linear_scale { LINEAR_SCALE_NONE = 0, LINEAR_SCALE_MAX = 1, LINEAR_SCALE_DEVIATION = 2 };

enum linear_format { LINEAR_FORMAT_PAWL = 1, LINEAR_FORMAT_LIBLINEAR = 2, LINEAR_FORMAT_NPY = 3 };

struct linear_model {
  enum linear_loss loss;
  bool is_regression;      /* no classes: the score is the answer */
  double labels[2];        /* of the first class (negative scores) and the second; LIBLINEAR's may fall */
  double l1, l2;           /* that it was trained with, NAN if not known, */
  double class_weights[2]; /* and what a row of each class counted in the loss; 1 if nothing was said */
  uint64_t features;       /* the highest id */
  bool zero_based;         /* ids are 0 … features; else 1 … features */
  bool has_bias;
  double bias;
  uint32_t hash_bits; /* of hashed names; 0: ids are the file's */
  /* of csv: how many there were, and which was the label's, from 1; 0: not known */
  uint64_t columns, label_column;
  char label_name[128];    /* what its head line called that; "": it had none */
  bool binary, unit_rows;  /* how rows were read, and are to be read for prediction */
  enum linear_scale scale; /* what was penalised were the weights of scaled features, */
  double penalty;          /* by so much at the end; NAN if not known; of no account without a scale */
  double objective;        /* as the training computed it at the end; NAN if not known */
  size_t count;            /* of weights that are not zero */
  uint64_t *ids;           /* rising */
  double *weights;
  char **names; /* of the features of these weights, for people; each may be NULL, and all of it */
};

void linear_model_fini(struct linear_model *model); /* a struct of zeros is fine */

/* How many features there are, those without a weight included. */
static inline uint64_t linear_model_width(const struct linear_model *model) {
  return model->features + model->zero_based;
}

/* Writes to a temporary file beside it and renames it: a model is there whole or not at all. */
pawl_status linear_model_write(const struct linear_model *model, const char *path, enum linear_format format,
                               char error[APPS_TEXT_MAX]);
pawl_status linear_model_read(const char *path, struct linear_model *model_out, char error[APPS_TEXT_MAX]);

/* "logistic", "squared hinge" …, and "pawl", "liblinear", "npy"; "" for a number that is none. */
const char *linear_loss_name(enum linear_loss loss);
const char *linear_format_name(enum linear_format format);

/* "none", "max", "deviation"; "" for a number that is none. And back; false for other words. */
const char *linear_scale_name(enum linear_scale scale);
bool linear_scale_parse(const char *name, enum linear_scale *scale_out);

/* By the end of the name: .npy, .liblinear and .txt; else pawl's own. */
enum linear_format linear_format_of(const char *path);

/* --- what a model says of data -------------------------------------------------------------------------- */

/* For looking weights up quickly while scoring. */
struct linear_scorer;
pawl_status linear_scorer_create(const struct linear_model *model,
                                 struct linear_scorer **scorer_out); /* keeps no pointer into the model */
void linear_scorer_destroy(struct linear_scorer *scorer);

/* scores[i] of each row. */
void linear_scorer_run(const struct linear_scorer *scorer, const struct pawl_batch *batch, double *scores);

/* Figures over any number of batches. Rows with weights count that much in `loss`, and in all else as one. */
struct linear_metrics;
pawl_status linear_metrics_create(const struct linear_model *model, struct linear_metrics **metrics_out);
void linear_metrics_destroy(struct linear_metrics *metrics);
pawl_status linear_metrics_add(struct linear_metrics *metrics, const struct pawl_batch *batch, const double *scores);

struct linear_figures {
  uint64_t rows;       /* all of them */
  uint64_t positive;   /* of the second class */
  uint64_t unlabelled; /* without a label: they count in nothing below */
  uint64_t unknown;    /* of a label that is neither class: likewise */
  double loss;         /* the sum of the model's own loss: the objective's first part */
  double penalty;      /* l1 |w|_1 + l2/2 |w|^2, the bias left out; with a scale, as in training */
  double objective;    /* their sum */
  double log_loss;     /* the mean of log(1 + exp(-y score)), in nats; NAN for regression */
  double accuracy;     /* 0 to 1; NAN for regression */
  double auc;          /* exact, ties count half; NAN if a class is missing */
  double rmse, r2;     /* of regression; NAN else */
};

pawl_status linear_metrics_figures(struct linear_metrics *metrics, struct linear_figures *figures_out);

#endif
