/* Multiclass logistic regression: classes of rows or images, and their probabilities.
 *
 * A model has a weight for each pair of class and feature. The score of class j for the row x is z_j = W_j . x, and
 * softmax turns scores into probabilities, p_j = exp(z_j) / sum over k of exp(z_k). TRAINING minimises
 *
 *   P(W)  =  sum over rows of  -log p_y   +   l2/2 |W|^2
 *
 * where y is the class of the row. The constant term of a class is the weight of a feature that is 1 in every row; the
 * penalty includes it. Two methods are known:
 *
 *   SGD    stochastic gradient descent on batches of rows, for a given number of epochs
 *   SDCA   stochastic dual coordinate ascent: each row has a distribution q over the classes, and each step finds the best
 *          q of one row, given those of all others. The dual objective D(q) is never above the minimum of P, so
 *          that P - D bounds the distance to the optimum. Training ends when this bound is below the tolerance
 *
 * In both methods the change of W that a row causes is the product of two vectors, u v': v is the row, and u the change of
 * its slope or of its q ("Lighter-Communication Distributed Machine Learning via Sufficient Factor Broadcasting", 2.1).
 *
 * LABELS may be numbers or words. Classes are the labels that training rows have: whole numbers first, by value, then words
 * by their bytes. A model keeps them.
 *
 * REPRODUCIBLE: the same rows, options and seed give the same model, bit for bit, with any number of threads.
 *
 * docs/multiclass.md describes model and methods, apps/mlr/README.md walks through the sources.
 *
 * THREADS. Any number of threads may use rows or a model. ERRORS: the parameter `error` of some calls may be NULL; it
 * receives a message for people.
 */
#ifndef PAWL_MLR_H
#define PAWL_MLR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/data.h>
#include <pawl/export.h>
#include <pawl/images.h>
#include <pawl/labels.h>
#include <pawl/shared_matrix.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_mlr_rows;
struct pawl_mlr_model;

#define PAWL_MLR_TEXT 512 /* bytes of an error message */

/* --- rows ------------------------------------------------------------------------------------------------ */

struct pawl_mlr_rows_info {
  uint64_t rows, entries; /* entries of images: all pixels */
  uint64_t features;      /* number of different features that occur */
  uint32_t classes;       /* number of different labels that occur */
  uint64_t unlabelled;    /* rows without a label */
  uint64_t skipped;       /* bad rows that were skipped */
  bool is_images;
  bool binary, unit_rows;         /* how rows were read: a model remembers it */
  uint32_t hash_bits;             /* of hashed names; 0: ids are those of the files */
  uint64_t columns, label_column; /* csv: as in struct pawl_data_info */
};

/* Reads all rows of files into memory. `reading` is that of <pawl/data.h>; its `labels` must be NULL. PAWL_UNSUPPORTED
 * (documents have no labels; rows with weights), PAWL_TOO_LARGE (2^32 rows), and the errors of pawl_data_open and
 * pawl_data_read. */
PAWL_API PAWL_MUST_USE pawl_status pawl_mlr_rows_read(const char *const *paths, size_t count,
                                                      const struct pawl_data_options *reading, uint32_t threads,
                                                      struct pawl_mlr_rows **rows_out, char error[PAWL_MLR_TEXT]);

/* Rows of images: feature i + 1 is pixel i divided by 255. Labels are "0", "1" …; there may be none. */
PAWL_API PAWL_MUST_USE pawl_status pawl_mlr_rows_of_images(const struct pawl_images *images,
                                                           struct pawl_mlr_rows **rows_out, char error[PAWL_MLR_TEXT]);
PAWL_API void pawl_mlr_rows_destroy(struct pawl_mlr_rows *rows); /* NULL is allowed */
PAWL_API void pawl_mlr_rows_info(const struct pawl_mlr_rows *rows, struct pawl_mlr_rows_info *info_out);

/* The class of each row as a number of the labels below, PAWL_MLR_NO_CLASS without a label; valid as long as the rows. */
#define PAWL_MLR_NO_CLASS UINT32_MAX
PAWL_API const uint32_t *pawl_mlr_rows_classes(const struct pawl_mlr_rows *rows);

/* A label that occurs, by its number below info.classes; valid as long as the rows. */
PAWL_API const char *pawl_mlr_rows_label(const struct pawl_mlr_rows *rows, uint32_t number);

/* The ids of the features, ascending, info.features of them; valid as long as the rows. */
PAWL_API const uint64_t *pawl_mlr_rows_ids(const struct pawl_mlr_rows *rows);

/* A hash of everything that training depends on. */
PAWL_API uint64_t pawl_mlr_rows_digest(const struct pawl_mlr_rows *rows);

/* Writes a row as info.features numbers. */
PAWL_API void pawl_mlr_rows_values(const struct pawl_mlr_rows *rows, uint64_t row, float *values_out);

/* The first bad row that was skipped, as `file:line:column: problem`; "" if there is none. */
PAWL_API const char *pawl_mlr_rows_first_bad(const struct pawl_mlr_rows *rows);

/* --- models ---------------------------------------------------------------------------------------------- */

enum pawl_mlr_method { PAWL_MLR_SGD = 1, PAWL_MLR_SDCA = 2 };

/* "sgd" or "sdca". */
PAWL_API const char *pawl_mlr_method_name(enum pawl_mlr_method method);

/* Properties of a model. */
struct pawl_mlr_about {
  uint32_t classes;
  uint64_t features; /* without the constant term */
  bool has_bias;
  enum pawl_mlr_method method;
  double l2;
  uint64_t rows, epochs, seed; /* of training */
  double objective;            /* P(W) on the training rows; NAN: not known */
  double gap;                  /* the optimum is at most this fraction of the objective below it; NAN: not known */
  double train_error;          /* fraction of wrong training rows; NAN: not known */
  bool is_images;
  bool binary, unit_rows;         /* how rows were read */
  uint32_t hash_bits;             /* of hashed names; 0: ids are those of the files */
  uint64_t columns, label_column; /* csv */
};

PAWL_API void pawl_mlr_model_destroy(struct pawl_mlr_model *model); /* NULL is allowed */
PAWL_API void pawl_mlr_model_about(const struct pawl_mlr_model *model, struct pawl_mlr_about *about_out);

/* The label of a class below about.classes; valid as long as the model. */
PAWL_API const char *pawl_mlr_model_label(const struct pawl_mlr_model *model, uint32_t class_number);

/* The ids of the features, ascending, about.features of them; valid as long as the model. */
PAWL_API const uint64_t *pawl_mlr_model_ids(const struct pawl_mlr_model *model);

/* All weights, feature by feature: those of feature i for all classes begin at i * about.classes. The constant terms follow
 * the last feature. Valid as long as the model. */
PAWL_API const double *pawl_mlr_model_weights(const struct pawl_mlr_model *model);

/* Writes and reads a model file. The file is written completely or not at all. PAWL_IO …, PAWL_CORRUPT, PAWL_TRUNCATED,
 * PAWL_UNSUPPORTED (a later version), PAWL_MISMATCH (a model of another kind). */
PAWL_API PAWL_MUST_USE pawl_status pawl_mlr_model_write(const struct pawl_mlr_model *model, const char *path,
                                                        char error[PAWL_MLR_TEXT]);
PAWL_API PAWL_MUST_USE pawl_status pawl_mlr_model_read(const char *path, struct pawl_mlr_model **model_out,
                                                       char error[PAWL_MLR_TEXT]);

/* Writes a model as LIBLINEAR's text, which liblinear-predict reads. PAWL_UNSUPPORTED (labels or ids that LIBLINEAR does not
 * have), PAWL_IO …. */
PAWL_API PAWL_MUST_USE pawl_status pawl_mlr_model_export(const struct pawl_mlr_model *model, const char *path,
                                                         char error[PAWL_MLR_TEXT]);

/* Whether a file begins like a model of this kind. False also if it cannot be read. */
PAWL_API bool pawl_mlr_model_is(const char *path);

/* --- prediction ------------------------------------------------------------------------------------------ */

struct pawl_mlr_score {
  uint64_t rows;
  uint64_t judged;         /* rows whose label is a class of the model */
  uint64_t wrong;          /* judged rows whose own class does not have the highest score alone */
  uint64_t unlabelled;     /* rows without a label */
  uint64_t unknown_labels; /* rows whose label is no class of the model */
  uint64_t unknown_values; /* values of features that the model does not have; they count as 0 */
  double loss;             /* mean of -log p over judged rows; NAN: there are none */
};

/* Predicts all rows. `classes_out`, one number for each row, `probabilities_out`, about.classes numbers for each row, and
 * `confusion_out`, about.classes numbers for each class (judged rows by their own and by their predicted class), may be
 * NULL. PAWL_MISMATCH (images and rows), PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_mlr_predict(const struct pawl_mlr_model *model,
                                                    const struct pawl_mlr_rows *rows, uint32_t threads,
                                                    uint32_t *classes_out, double *probabilities_out,
                                                    uint64_t *confusion_out, struct pawl_mlr_score *score_out,
                                                    char error[PAWL_MLR_TEXT]);

/* --- training -------------------------------------------------------------------------------------------- */

/* How the learning rate falls. */
enum pawl_mlr_schedule {
  PAWL_MLR_COSINE = 0, /* along half a cosine wave, from `rate` to 0 */
  PAWL_MLR_CONSTANT = 1,
  PAWL_MLR_INVERSE = 2, /* rate / (1 + epochs so far) */
};

struct pawl_mlr_progress {
  uint64_t epoch, epochs; /* from 1 */
  double objective;       /* P(W) after the epoch */
  double train_error;     /* fraction of wrong training rows */
  double test_error;      /* fraction of wrong test rows; NAN without any */
  double gap;     /* bound on the distance of the objective to the optimum, relative to the objective; NAN: not known */
  double rate;    /* SGD: learning rate of the last step */
  double seconds; /* since the beginning */
  double rows_per_s; /* of this epoch, training only */
  double train_s;    /* since the beginning, training only */

  /* by workers, since the beginning: see struct pawl_matrix_shared */
  uint64_t update_bytes;
  double work_s, wait_s;
  const char *unsaved; /* why the last checkpoint that was due could not be written; "": it was, or none was due */
};

struct pawl_mlr_result {
  const char *why;    /* "converged", "epochs", "interrupted", "diverged" */
  const char *advice; /* what to try if the result is not certain; else NULL */
  bool is_certain;    /* false: the tolerance was not reached, or the model is no better than weights of zero */
  uint64_t epochs;    /* complete ones, with those before a checkpoint */
  uint64_t resumed;   /* epochs that the checkpoint had */
  double objective, train_error, test_error, gap;
  double test_loss; /* mean of -log p of the judged test rows; NAN: there are none */
  uint64_t test_judged, test_unknown_labels;
  double test_guess_error; /* of the most frequent class of the judged test rows, as the answer for all of them; NAN */
  bool
      is_guessing; /* on the judged test rows, of which there are at least 30, the loss is not below that of guessing by the
                              share of each class, and the errors are not clearly fewer than test_guess_error */
  double seconds;              /* all of it */
  double train_s;              /* training only */
  double rows_per_s;           /* rows times epochs per second of train_s */
  double rate;                 /* SGD: the learning rate of the first step */
  uint64_t batch;              /* SGD: rows of a step */
  uint32_t threads;            /* as they were used */
  char unsaved[PAWL_MLR_TEXT]; /* why the last checkpoint could not be written; "": it was, or there is none */
};

struct pawl_mlr_options {
  size_t struct_size;          /* set by pawl_mlr_options_init */
  enum pawl_mlr_method method; /* default SDCA */
  double l2;                   /* weight of the penalty; default 1. SDCA needs more than 0 */
  bool no_bias;                /* no constant terms */
  uint64_t epochs;             /* passes over the rows; SDCA: at most. 0: SGD 20, SDCA 1000 */
  double tolerance; /* stop when the gap is at most this fraction of the objective; 0: SGD never, SDCA 1e-3 */
  uint64_t batch;   /* SGD: rows of a step; 0: 64 */
  double rate;      /* SGD: learning rate of the first step; 0: chosen from the rows */
  enum pawl_mlr_schedule schedule;
  uint64_t seed;    /* of the order of rows; default 1 */
  uint32_t threads; /* that measure, up to 1024; 0: one for each processor */

  const char *checkpoint;    /* file for the state of the training; NULL: none. It is also written at the end. If
                                it could be written before the first step, a later failure does not end the training */
  uint64_t checkpoint_every; /* epochs between checkpoints; default 1 */
  bool resume;               /* go on from the checkpoint, with the same rows and options; the result is the same as
                                without an interruption */

  /* Callbacks; each may be NULL. The thread in pawl_mlr_train calls them. */
  void (*progress)(void *context, const struct pawl_mlr_progress *progress); /* after each epoch */
  bool (*stopping)(void *context); /* asked after each step; true ends the training with the weights so far */
  void *context;
};

PAWL_API void pawl_mlr_options_init_sized(struct pawl_mlr_options *options, size_t struct_size);
static inline void pawl_mlr_options_init(struct pawl_mlr_options *options) {
  pawl_mlr_options_init_sized(options, sizeof *options);
}

/* Checks the options. Returns false, with a message that says what to change, if they are invalid. */
PAWL_API bool pawl_mlr_check(const struct pawl_mlr_options *options, char error[PAWL_MLR_TEXT]);

/* Trains a model. `test` may be NULL; test rows whose label no training row has are counted and left out.
 *
 * PAWL_INVALID (an option, or rows without labels, or rows of one class only), PAWL_CANCELLED (stopped before the first
 * step), PAWL_DIVERGED (a weight is not finite any
 * more: no model), PAWL_MISMATCH (resume: the checkpoint belongs to other rows or options; images and rows),
 * PAWL_NOT_FOUND, PAWL_CORRUPT, PAWL_TRUNCATED, PAWL_IO … (the checkpoint), PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_mlr_train(const struct pawl_mlr_rows *rows, const struct pawl_mlr_rows *test,
                                                  const struct pawl_mlr_options *options,
                                                  struct pawl_mlr_model **model_out, struct pawl_mlr_result *result_out,
                                                  char error[PAWL_MLR_TEXT]);

/* --- training by workers --------------------------------------------------------------------------------- */

struct pawl_session;

/* As pawl_mlr_train with the method SGD, but the workers of a job make the steps, and share the weights
 * (<pawl/shared_matrix.h>). `rows` are those of the files in `sharing`. A batch is that of all workers together. The session
 * listens; with PAWL_MATRIX_FACTORS it is for peers only. Release `shared_out` with pawl_matrix_shared_fini after a success.
 *
 * Also PAWL_NODE_GONE (all workers were lost), and the errors of pawl_job_create and pawl_job_round. */
PAWL_API PAWL_MUST_USE pawl_status pawl_mlr_train_shared(
    struct pawl_session *session, const struct pawl_matrix_sharing *sharing, const struct pawl_mlr_rows *rows,
    const struct pawl_mlr_rows *test, const struct pawl_mlr_options *options, struct pawl_mlr_model **model_out,
    struct pawl_mlr_result *result_out, struct pawl_matrix_shared *shared_out, char error[PAWL_MLR_TEXT]);

/* Works for such a training until it ends. `job` NULL: "mlr". */
PAWL_API PAWL_MUST_USE pawl_status pawl_mlr_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                                                 char error[PAWL_MLR_TEXT]);

/* What each way of sharing would send in a step, by the pairs of some batches. The number of workers is the least of
 * `sharing`. */
PAWL_API PAWL_MUST_USE pawl_status pawl_mlr_costs(const struct pawl_mlr_rows *rows,
                                                  const struct pawl_mlr_options *options,
                                                  const struct pawl_matrix_sharing *sharing,
                                                  struct pawl_matrix_costs *costs_out, char error[PAWL_MLR_TEXT]);

#ifdef __cplusplus
}
#endif

#endif
