/* Distance metric learning: a matrix W such that nearest neighbours by |W (x - x')| have the same class more often than
 * nearest neighbours by |x - x'|.
 *
 * TRAINING pairs each row with its nearest rows of the same class (S) and of other classes (D), by PCA of the rank of W. It
 * lowers
 *
 *   P(W)  =  1/n ( sum over S of max(0, |W v|^2 - (1 - margin))  +  weight * sum over D of max(0, 1 - |W v|^2) )
 *
 * where v is the difference of the two rows of a pair, and n the number of pairs, by stochastic gradient descent on batches
 * of pairs. W begins as PCA, scaled so that the pairs in D have the mean |W v|^2 = 1. An epoch that raises P is undone, and
 * the rate is halved. P is not convex in W, and a lower P is not always a better metric. So a share of the rows is held
 * out: no pair has them, and the model is the W with the fewest errors of k-NN classification on them.
 *
 * The slope of a pair is u v' times a number, with u = W v: the product of two vectors ("Lighter-Communication Distributed
 * Machine Learning via Sufficient Factor Broadcasting", 2.1, which has another loss for similar pairs).
 *
 * A MODEL has W, and W x and the class of each training row, held-out ones included, so that it can classify rows.
 *
 * REPRODUCIBLE: the same rows, options and seed give the same model, bit for bit, with any number of threads.
 *
 * ROWS are those of <pawl/mlr.h>, files of rows or images, with labels. Training makes them dense.
 *
 * docs/metric.md describes the method, apps/dml/README.md walks through the sources.
 *
 * THREADS. Any number of threads may use a model. ERRORS: the parameter `error` of some calls may be NULL; it receives a
 * message for people.
 */
#ifndef PAWL_METRIC_H
#define PAWL_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/mlr.h>
#include <pawl/shared_matrix.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_metric_model;

#define PAWL_METRIC_TEXT 512 /* bytes of an error message */

/* --- models ---------------------------------------------------------------------------------------------- */

/* Properties of a model. Errors are those of k-NN classification of the held-out rows, from 0 to 1. */
struct pawl_metric_about {
  uint32_t rank; /* rows of W */
  uint64_t features;
  uint64_t rows; /* whose W x and class the model has */
  uint32_t classes;
  uint32_t k;                            /* of k-NN classification */
  uint64_t held, epochs, seed;           /* held-out rows; epochs until the best W, 0: it is PCA; of training */
  double objective;                      /* P(W) */
  double error, euclid_error, pca_error; /* by W, by Euclidean distance, by PCA of the same rank */
  bool is_images;
  bool binary, unit_rows;         /* how rows were read */
  uint32_t hash_bits;             /* of hashed names; 0: ids are those of the files */
  uint64_t columns, label_column; /* csv: as in struct pawl_data_info */
};

PAWL_API void pawl_metric_model_destroy(struct pawl_metric_model *model); /* NULL is allowed */
PAWL_API void pawl_metric_model_about(const struct pawl_metric_model *model, struct pawl_metric_about *about_out);

/* The label of a class below about.classes; valid as long as the model. */
PAWL_API const char *pawl_metric_model_label(const struct pawl_metric_model *model, uint32_t class_number);

/* The class of each of the about.rows rows; valid as long as the model. */
PAWL_API const uint32_t *pawl_metric_model_classes(const struct pawl_metric_model *model);

/* Writes and reads a model file. The file is written completely or not at all. PAWL_IO …, PAWL_CORRUPT, PAWL_TRUNCATED,
 * PAWL_UNSUPPORTED (a later version), PAWL_MISMATCH (a model of another kind). */
PAWL_API PAWL_MUST_USE pawl_status pawl_metric_model_write(const struct pawl_metric_model *model, const char *path,
                                                           char error[PAWL_METRIC_TEXT]);
PAWL_API PAWL_MUST_USE pawl_status pawl_metric_model_read(const char *path, struct pawl_metric_model **model_out,
                                                          char error[PAWL_METRIC_TEXT]);

/* Writes W as text: a line with the ids of the features, then a line for each row of W, separated by blanks. PAWL_IO …. */
PAWL_API PAWL_MUST_USE pawl_status pawl_metric_model_export(const struct pawl_metric_model *model, const char *path,
                                                            char error[PAWL_METRIC_TEXT]);

/* Whether a file begins like a model of this kind. False also if it cannot be read. */
PAWL_API bool pawl_metric_model_is(const char *path);

/* --- prediction ------------------------------------------------------------------------------------------ */

struct pawl_metric_score {
  uint64_t rows;
  uint64_t judged, wrong;  /* rows with a label of the model, and those of them with another prediction */
  uint64_t unlabelled;     /* rows without a label */
  uint64_t unknown_labels; /* rows whose label the model does not have */
  uint64_t unknown_values; /* values of features that the model does not have; they are left out */
};

/* Predicts the class of each row: that which most of its about.k nearest rows of the model have, and of several such
 * classes that of the nearest row. `classes_out` has an element for each row. `threads` 0: one for each processor.
 * PAWL_MISMATCH (images and rows, or images of another size), PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_metric_predict(const struct pawl_metric_model *model,
                                                       const struct pawl_mlr_rows *rows, uint32_t threads,
                                                       uint32_t *classes_out, struct pawl_metric_score *score_out,
                                                       char error[PAWL_METRIC_TEXT]);

/* --- training -------------------------------------------------------------------------------------------- */

struct pawl_metric_progress {
  uint64_t epoch, epochs; /* from 1 */
  double objective;       /* P(W) after the epoch, also if the epoch was undone; NAN: not finite */
  double error;           /* on the held-out rows; NAN: undone */
  double best_error;      /* the lowest so far */
  double rate;            /* of this epoch, as in the options */
  bool is_undone;         /* the objective rose: W is that of before, and the rate is halved */
  double seconds;         /* since the beginning */
  double pairs_per_s;     /* of this epoch */

  /* by workers, since the beginning: see struct pawl_matrix_shared */
  uint64_t update_bytes;
  double work_s, wait_s;
  const char *unsaved; /* why the last checkpoint that was due could not be written; "": it was, or none was due */
};

struct pawl_metric_result {
  const char *why;         /* "epochs", "no better" (several epochs in succession), "interrupted" */
  const char *advice;      /* what to try if the metric is no better; else NULL */
  bool is_better;          /* than Euclidean distance and than guessing, on the held-out rows */
  double guess_error;      /* of the most frequent class of the other rows as the answer for all of them */
  uint64_t epochs, undone; /* complete ones, and those of them that were undone */
  uint64_t resumed;        /* epochs that the checkpoint had */
  uint64_t best;           /* the epoch whose W is the model's; 0: PCA */
  double objective;        /* of the model */
  double first_objective;  /* of PCA */
  double error, euclid_error, pca_error;                /* on the held-out rows, with the other rows as neighbours */
  double test_error, test_euclid_error, test_pca_error; /* on the test rows, with all rows as neighbours; NAN: none */
  uint64_t held, similar, dissimilar;                   /* held-out rows; pairs */
  uint64_t test_judged, test_unknown_labels;
  double seconds, pairs_per_s;
  uint32_t threads;               /* as they were used */
  char unsaved[PAWL_METRIC_TEXT]; /* why the last checkpoint could not be written; "": it was, or there is none */
};

struct pawl_metric_options {
  size_t struct_size;  /* set by pawl_metric_options_init */
  uint32_t rank;       /* rows of W; 0: 200, or the number of features if that is less */
  uint32_t neighbours; /* a row's pairs in S, and in D; default 5, up to 100 */
  double margin;       /* from 0 up to 1; default 0.2 */
  double weight;       /* of pairs in D; default 2 */
  double rate;       /* relative to 1 / (2 (1 + weight) L), L the largest eigenvalue of the mean of v v'; default 0.3 */
  uint64_t epochs;   /* passes over the pairs, at most; default 20 */
  uint32_t k;        /* of k-NN classification; default 3, up to 100 */
  double held_share; /* share of the rows that are held out, drawn by the seed; default 0.2 */
  uint64_t batch;    /* pairs of a step; default 256 */
  uint64_t seed;     /* default 1 */
  uint32_t threads;  /* up to 1024; 0: one for each processor */

  const char *checkpoint;    /* file for the state of the training; NULL: none. It is also written at the end. If
                                it could be written before the first step, a later failure does not end the training */
  uint64_t checkpoint_every; /* epochs between checkpoints; default 1 */
  bool resume;               /* go on from the checkpoint, with the same rows and options, but perhaps more epochs; the
                                result is the same as without an interruption */

  /* Callbacks; each may be NULL. The thread in pawl_metric_train calls them. */
  void (*progress)(void *context, const struct pawl_metric_progress *progress); /* after each epoch */
  void (*stage)(void *context, const char *what); /* before each stage that precedes the first epoch */
  bool (*stopping)(void *context); /* asked after each step and stage; true ends the training with the best W so far */
  void *context;
};

PAWL_API void pawl_metric_options_init_sized(struct pawl_metric_options *options, size_t struct_size);
static inline void pawl_metric_options_init(struct pawl_metric_options *options) {
  pawl_metric_options_init_sized(options, sizeof *options);
}

/* Checks the options. Returns false, with a message that says what to change, if they are invalid. */
PAWL_API bool pawl_metric_check(const struct pawl_metric_options *options, char error[PAWL_METRIC_TEXT]);

/* Trains a model. `test` may be NULL. Rows without a label are left out.
 *
 * PAWL_INVALID (an option; one class; too few rows; all rows are equal; a rank above the number of features),
 * PAWL_CANCELLED (stopped before the first epoch), PAWL_MISMATCH (images and rows; resume: the checkpoint belongs to other
 * rows or options), PAWL_NOT_FOUND, PAWL_CORRUPT, PAWL_TRUNCATED, PAWL_IO … (the checkpoint), PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_metric_train(const struct pawl_mlr_rows *rows, const struct pawl_mlr_rows *test,
                                                     const struct pawl_metric_options *options,
                                                     struct pawl_metric_model **model_out,
                                                     struct pawl_metric_result *result_out,
                                                     char error[PAWL_METRIC_TEXT]);

/* --- training by workers --------------------------------------------------------------------------------- */

struct pawl_session;

/* As pawl_metric_train, but the workers of a job make the steps, and share W (<pawl/shared_matrix.h>). This process pairs
 * the rows, and measures W between epochs. `rows` are those of the files in `sharing`. A batch is that of all workers
 * together. The session listens; with PAWL_MATRIX_FACTORS it is for peers only. Release `shared_out` with
 * pawl_matrix_shared_fini after a success.
 *
 * Also PAWL_NODE_GONE (all workers were lost), and the errors of pawl_job_create and pawl_job_round. */
PAWL_API PAWL_MUST_USE pawl_status pawl_metric_train_shared(
    struct pawl_session *session, const struct pawl_matrix_sharing *sharing, const struct pawl_mlr_rows *rows,
    const struct pawl_mlr_rows *test, const struct pawl_metric_options *options, struct pawl_metric_model **model_out,
    struct pawl_metric_result *result_out, struct pawl_matrix_shared *shared_out, char error[PAWL_METRIC_TEXT]);

/* Works for such a training until it ends. `job` NULL: "dml". */
PAWL_API PAWL_MUST_USE pawl_status pawl_metric_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                                                    char error[PAWL_METRIC_TEXT]);

/* What each way of sharing would send in a step of the first epoch, by the pairs of at most 2,000 rows. Later steps send
 * fewer pairs as factors: pairs beyond their hinge are left out. The number of workers is the least of `sharing`. */
PAWL_API PAWL_MUST_USE pawl_status pawl_metric_costs(const struct pawl_mlr_rows *rows,
                                                     const struct pawl_metric_options *options,
                                                     const struct pawl_matrix_sharing *sharing,
                                                     struct pawl_matrix_costs *costs_out, char error[PAWL_METRIC_TEXT]);

#ifdef __cplusplus
}
#endif

#endif
