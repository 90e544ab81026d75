/* Sparse coding: rows as sums of few atoms, and the dictionary of atoms that suits them.
 *
 * A dictionary B has a column b_j for each of K atoms, of length 1 at most. The code a of a row x has a number for each atom,
 * most of them 0, and B a is close to x. TRAINING minimises, over the dictionary and the codes of all rows,
 *
 *   P(B, a)  =  sum over rows of  1/2 |x_i - B a_i|^2 + lambda |a_i|_1,      |b_j| <= 1
 *
 * by the online method of Mairal et al. ("Online dictionary learning for sparse coding", ICML 2009). CODES are found by
 * coordinate descent, up to a duality gap. The problem is convex in B and in the codes, but not in both, so that training
 * finds a stationary point: neither the codes alone nor the dictionary alone could lower P by more than a known bound, the gap.
 * Training has converged when the gap is at most the tolerance times P, and the last epoch has lowered P by no more than that.
 *
 * A row changes the sums from which the dictionary is computed by products of two vectors, its own and its code
 * ("Lighter-Communication Distributed Machine Learning via Sufficient Factor Broadcasting", 2.1).
 *
 * REPRODUCIBLE: the same rows, options and seed give the same model, bit for bit, with any number of threads.
 *
 * docs/sparse-coding.md describes the method, apps/sparse_coding/README.md walks through the sources.
 *
 * THREADS. Any number of threads may use rows or a model. ERRORS: the parameter `error` of some calls may be NULL; it
 * receives a message for people.
 */
#ifndef PAWL_SPARSE_CODING_H
#define PAWL_SPARSE_CODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/data.h>
#include <pawl/export.h>
#include <pawl/images.h>
#include <pawl/shared_matrix.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_sparse_rows;
struct pawl_sparse_model;

#define PAWL_SPARSE_TEXT 512 /* bytes of an error message */

/* --- rows ------------------------------------------------------------------------------------------------ */

/* What the features of a row are, if it is a picture; zeros if it is not. */
struct pawl_sparse_shape {
  uint32_t channels, height, width;
  uint32_t patch; /* the rows are patches of this height and width; 0: whole images */
};

struct pawl_sparse_rows_info {
  uint64_t rows, entries;         /* entries of images: all pixels */
  uint64_t features;              /* number of different features that occur */
  uint64_t skipped;               /* bad rows that were skipped */
  struct pawl_sparse_shape shape; /* of images */
  bool binary;                    /* how rows were read: a model remembers it */
  uint32_t hash_bits;             /* of hashed names; 0: ids are those of the files */
  uint64_t columns, label_column; /* csv: as in struct pawl_data_info */
};

/* Reads all rows of files into memory. `reading` is that of <pawl/data.h>, usually with `labels_optional`; its `labels` must
 * be NULL, and `unit_rows` false: an option of training scales rows. PAWL_UNSUPPORTED (documents; rows with weights), PAWL_TOO_LARGE
 * (2^32 rows), and the errors of pawl_data_open and pawl_data_read. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sparse_rows_read(const char *const *paths, size_t count,
                                                         const struct pawl_data_options *reading, uint32_t threads,
                                                         struct pawl_sparse_rows **rows_out,
                                                         char error[PAWL_SPARSE_TEXT]);

/* Rows of images: feature i + 1 is pixel i divided by 255. If `patch` is not 0, rows are patches of this height and width
 * with all channels: `count` of them, drawn at random from all positions in all images, or if `count` is 0 the tiles of each
 * image, from left to right and from top to bottom, without the pixels that fill no tile. PAWL_INVALID (a patch larger than
 * the images), PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sparse_rows_of_images(const struct pawl_images *images, uint32_t patch,
                                                              uint64_t count, uint64_t seed,
                                                              struct pawl_sparse_rows **rows_out,
                                                              char error[PAWL_SPARSE_TEXT]);
PAWL_API void pawl_sparse_rows_destroy(struct pawl_sparse_rows *rows); /* NULL is allowed */
PAWL_API void pawl_sparse_rows_info(const struct pawl_sparse_rows *rows, struct pawl_sparse_rows_info *info_out);

/* The label of a row, NULL without one; valid as long as the rows. That of a patch is the label of its image. */
PAWL_API const char *pawl_sparse_rows_label(const struct pawl_sparse_rows *rows, uint64_t row);

/* The first bad row that was skipped, as `file:line:column: problem`; "" if there is none. */
PAWL_API const char *pawl_sparse_rows_first_bad(const struct pawl_sparse_rows *rows);

/* --- models ---------------------------------------------------------------------------------------------- */

/* Properties of a model. */
struct pawl_sparse_about {
  uint32_t atoms;
  uint64_t features;
  double lambda;
  bool centered, unit_rows;       /* rows are changed like this before they are coded */
  uint64_t rows, epochs, seed;    /* of training; epochs until the best dictionary */
  double objective;               /* P on the training rows; NAN: not known */
  double gap;                     /* relative to the objective; NAN: not known */
  double error;                   /* squared error of the reconstruction, relative to the squares of the rows */
  double nonzeros;                /* mean number of non-zeros in a code */
  struct pawl_sparse_shape shape; /* of images; zeros: rows are not images */
  bool binary;                    /* how rows were read */
  uint32_t hash_bits;             /* of hashed names; 0: ids are those of the files */
  uint64_t columns, label_column; /* csv */
};

PAWL_API void pawl_sparse_model_destroy(struct pawl_sparse_model *model); /* NULL is allowed */
PAWL_API void pawl_sparse_model_about(const struct pawl_sparse_model *model, struct pawl_sparse_about *about_out);

/* The ids of the features, ascending, about.features of them; valid as long as the model. */
PAWL_API const uint64_t *pawl_sparse_model_ids(const struct pawl_sparse_model *model);

/* The atoms one after the other, about.features numbers each; valid as long as the model. An atom that no row ever used
 * may be all 0. */
PAWL_API const double *pawl_sparse_model_atoms(const struct pawl_sparse_model *model);

/* For each atom the number of training rows in whose codes it is; valid as long as the model. */
PAWL_API const uint64_t *pawl_sparse_model_uses(const struct pawl_sparse_model *model);

/* Writes and reads a model file. The file is written completely or not at all. PAWL_IO …, PAWL_CORRUPT, PAWL_TRUNCATED,
 * PAWL_UNSUPPORTED (a later version), PAWL_MISMATCH (a model of another kind). */
PAWL_API PAWL_MUST_USE pawl_status pawl_sparse_model_write(const struct pawl_sparse_model *model, const char *path,
                                                           char error[PAWL_SPARSE_TEXT]);
PAWL_API PAWL_MUST_USE pawl_status pawl_sparse_model_read(const char *path, struct pawl_sparse_model **model_out,
                                                          char error[PAWL_SPARSE_TEXT]);

/* Writes the atoms of a model of images as one picture: a binary PGM file, or PPM if they have three channels. Atoms are
 * in their order, from left to right; each is scaled so that 0 is grey and its largest value white or black.
 * PAWL_UNSUPPORTED (not of images with 1 or 3 channels), PAWL_TOO_LARGE, PAWL_IO …. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sparse_model_picture(const struct pawl_sparse_model *model, const char *path,
                                                             char error[PAWL_SPARSE_TEXT]);

/* Whether a file begins like a model of this kind. False also if it cannot be read. */
PAWL_API bool pawl_sparse_model_is(const char *path);

/* --- codes ----------------------------------------------------------------------------------------------- */

/* How well codes reconstruct rows. */
struct pawl_sparse_score {
  uint64_t rows;
  double objective;        /* sum over rows of 1/2 |x - B a|^2 + lambda |a|_1 */
  double gap;              /* better codes with this dictionary would lower the objective by this much at most */
  double error;            /* sum of |x - B a|^2 divided by the sum of |x|^2; NAN: all rows are 0 */
  uint64_t nonzeros;       /* of all codes */
  uint64_t empty;          /* rows whose code is all 0 */
  uint64_t unsolved;       /* rows whose gap is above the tolerance after the last step */
  uint64_t unknown_values; /* values of features that the model does not have; they count as 0 */
};

/* A code: its non-zeros, by ascending number of the atom, counted from 0. */
struct pawl_sparse_code {
  uint64_t row;
  uint32_t count;
  const uint32_t *atoms;
  const double *values;
};

/* Finds the codes of all rows. `take`, which may be NULL, gets them in the order of the rows, in the thread of the caller;
 * it returns false to end the call with PAWL_CANCELLED. PAWL_MISMATCH (images and rows, or images of another shape),
 * PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sparse_encode(const struct pawl_sparse_model *model,
                                                      const struct pawl_sparse_rows *rows, uint32_t threads,
                                                      bool (*take)(void *context, const struct pawl_sparse_code *code),
                                                      void *context, struct pawl_sparse_score *score_out,
                                                      char error[PAWL_SPARSE_TEXT]);

/* --- training -------------------------------------------------------------------------------------------- */

struct pawl_sparse_progress {
  uint64_t epoch, epochs;           /* from 1 */
  double objective, gap;            /* after the epoch; the gap relative to the objective */
  double error, nonzeros;           /* as in struct pawl_sparse_about */
  double test_error, test_nonzeros; /* of the test rows; NAN without any */
  uint64_t batch;                   /* rows of a step; it grows when steps no longer help */
  uint32_t unused, replaced;        /* atoms that no code uses, and atoms of them that were replaced */
  double seconds;                   /* since the beginning */
  double rows_per_s;                /* of this epoch: rows coded in training and measuring, per second */

  /* by workers, since the beginning: see struct pawl_matrix_shared */
  uint64_t update_bytes;
  double work_s, wait_s;
  const char *unsaved; /* why the last checkpoint that was due could not be written; "": it was, or none was due */
};

struct pawl_sparse_result {
  const char *why;    /* "converged", "epochs", "interrupted" */
  const char *advice; /* what to try if the result is not certain; else NULL */
  bool is_certain;    /* whether it converged */
  uint64_t epochs;    /* complete ones, with those before a checkpoint */
  uint64_t resumed;   /* epochs that the checkpoint had */
  uint64_t best;      /* the epoch with the lowest objective: the model is its dictionary */
  double lambda;      /* as given, or as chosen */
  double objective, gap, error, nonzeros, test_error, test_nonzeros, test_objective; /* of the model */
  uint64_t test_rows, unsolved;   /* unsolved: training rows, as in struct pawl_sparse_score */
  uint32_t unused;                /* atoms of the model that no code of a training row uses */
  uint64_t replaced;              /* number of times that an unused atom was replaced */
  double seconds;                 /* all of it */
  double train_s, measure_s;      /* learning; measuring */
  double rows_per_s;              /* rows coded in both, per second */
  uint64_t batch;                 /* rows of the first step */
  uint32_t threads;               /* as they were used */
  char unsaved[PAWL_SPARSE_TEXT]; /* why the last checkpoint could not be written; "": it was, or there is none */
};

struct pawl_sparse_options {
  size_t struct_size;    /* set by pawl_sparse_options_init */
  uint32_t atoms;        /* default 100 */
  double lambda;         /* weight of |a|_1; 0: min(1.2 / sqrt(features), 0.25) times the mean length of the rows */
  bool center;           /* subtract from each row the mean of its values, as is usual for patches of images */
  bool unit_rows;        /* then scale each row to length 1 */
  uint64_t epochs;       /* passes over the rows, at most; default 100 */
  double tolerance;      /* stop when the gap is at most this fraction of the objective, and the last epoch has won no
                       more; default 2e-3 */
  double code_tolerance; /* of the gap of a row's code, relative to its part of the objective; default 1e-4 */
  uint64_t batch;        /* rows of a step at first; default 256 */
  uint64_t seed;         /* of the first atoms and the order of rows; default 1 */
  uint32_t threads;      /* up to 1024; 0: one for each processor */

  const char *checkpoint;    /* file for the state of the training; NULL: none. It is also written at the end. If
                                it could be written before the first step, a later failure does not end the training */
  uint64_t checkpoint_every; /* epochs between checkpoints; default 1 */
  bool resume;               /* go on from the checkpoint, with the same rows and options; the result is the same as
                                without an interruption. `epochs` and `tolerance` may change */

  /* Callbacks; each may be NULL. The thread in pawl_sparse_train calls them. */
  void (*progress)(void *context, const struct pawl_sparse_progress *progress); /* after each epoch */
  bool (*stopping)(void *context); /* asked often; true ends the training with the best dictionary so far */
  void *context;
};

PAWL_API void pawl_sparse_options_init_sized(struct pawl_sparse_options *options, size_t struct_size);
static inline void pawl_sparse_options_init(struct pawl_sparse_options *options) {
  pawl_sparse_options_init_sized(options, sizeof *options);
}

/* Checks the options. Returns false, with a message that says what to change, if they are invalid. */
PAWL_API bool pawl_sparse_check(const struct pawl_sparse_options *options, char error[PAWL_SPARSE_TEXT]);

/* Trains a model. `test` may be NULL.
 *
 * PAWL_INVALID (an option; all rows are 0; a lambda that makes every code 0, whatever the dictionary), PAWL_CANCELLED
 * (stopped before the first epoch was complete), PAWL_DIVERGED (a number is not finite any more: no model), PAWL_MISMATCH
 * (resume: the checkpoint belongs to other rows or options; images and rows), PAWL_NOT_FOUND, PAWL_CORRUPT, PAWL_TRUNCATED,
 * PAWL_IO … (the checkpoint), PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sparse_train(
    const struct pawl_sparse_rows *rows, const struct pawl_sparse_rows *test, const struct pawl_sparse_options *options,
    struct pawl_sparse_model **model_out, struct pawl_sparse_result *result_out, char error[PAWL_SPARSE_TEXT]);

/* --- training by workers --------------------------------------------------------------------------------- */

struct pawl_session;

/* As pawl_sparse_train, but the workers of a job code the rows of the steps, and share the sums of rows and codes
 * (<pawl/shared_matrix.h>). This process measures the dictionary between epochs. `rows` are those of the files in `sharing`:
 * all of them, or patches of images. A batch is that of all workers together. The session listens; with PAWL_MATRIX_FACTORS it
 * is for peers only. Release `shared_out` with pawl_matrix_shared_fini after a success.
 *
 * Also PAWL_NODE_GONE (all workers were lost), and the errors of pawl_job_create and pawl_job_round. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sparse_train_shared(
    struct pawl_session *session, const struct pawl_matrix_sharing *sharing, const struct pawl_sparse_rows *rows,
    const struct pawl_sparse_rows *test, const struct pawl_sparse_options *options,
    struct pawl_sparse_model **model_out, struct pawl_sparse_result *result_out, struct pawl_matrix_shared *shared_out,
    char error[PAWL_SPARSE_TEXT]);

/* Works for such a training until it ends. `job` NULL: "sparse". */
PAWL_API PAWL_MUST_USE pawl_status pawl_sparse_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                                                    char error[PAWL_SPARSE_TEXT]);

/* What each way of sharing would send in a step, by the codes of up to 1,000 rows with the first atoms. The number of workers
 * is the least of `sharing`. */
PAWL_API PAWL_MUST_USE pawl_status pawl_sparse_costs(const struct pawl_sparse_rows *rows,
                                                     const struct pawl_sparse_options *options,
                                                     const struct pawl_matrix_sharing *sharing,
                                                     struct pawl_matrix_costs *costs_out, char error[PAWL_SPARSE_TEXT]);

#ifdef __cplusplus
}
#endif

#endif
