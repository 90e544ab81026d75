/* Convolutional nets: small ones that classify images.
 *
 * Two nets are known by name:
 *
 *   lenet   two convolutions of 5 x 5 with poolings, and a hidden layer of 500 units; for MNIST
 *   vgg     three pairs of convolutions of 3 x 3, each with a pooling, and a hidden layer of 256 units, with
 *           dropout; for CIFAR-10
 *
 * A net fits any image that is large enough for its windows (lenet: 16 x 16 pixels, vgg: 8 x 8) and any number of
 * classes up to 256. It ends in one score for each class; softmax turns scores into probabilities.
 *
 * TRAINING minimises the mean cross-entropy by stochastic gradient descent with momentum and weight decay, on batches
 * that are drawn anew in every epoch. It runs in the calling process, by default with one thread. The same options and
 * images give the same model on the same machine.
 *
 * PARAMETERS. All parameters of a net lie in one array of floats; a table of tensors names its parts. Pixels are
 * scaled before they enter the net: from each channel the mean of the training images is subtracted, and the result is
 * divided by their standard deviation. Both are part of the model.
 *
 * docs/cnn.md describes nets and training, apps/cnn/README.md walks through the sources.
 *
 * THREADS. Any number of threads may use a model. ERRORS: the parameter `error` of some calls may be NULL; it receives
 * a message for people.
 */
#ifndef PAWL_CNN_H
#define PAWL_CNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/images.h>
#include <pawl/job.h>
#include <pawl/reduce.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_cnn_model;
struct pawl_session;

#define PAWL_CNN_TEXT 512        /* bytes of an error message */
#define PAWL_CNN_CHANNELS_MAX 16 /* of an image */

/* --- models --------------------------------------------------------------------------------------------- */

/* Properties of a model. */
struct pawl_cnn_about {
  char net[16]; /* "lenet", "vgg" */
  uint32_t channels, height, width, classes;
  uint64_t parameters;
  size_t tensors;
  double mean[PAWL_CNN_CHANNELS_MAX];      /* of the pixels of each channel, from 0 to 255 */
  double deviation[PAWL_CNN_CHANNELS_MAX]; /* standard deviation of the pixels of each channel */
  uint64_t images;                         /* number of training images */
  uint64_t epochs;                         /* number of epochs of training */
  uint64_t seed;
  double loss;       /* mean cross-entropy of the last epoch, measured while the parameters changed */
  double test_error; /* fraction of wrong test images after the last epoch; NAN without test images */
};

/* One part of the parameters. */
struct pawl_cnn_tensor {
  char name[32];          /* "conv1.weights", "conv1.biases", "full1.weights" … */
  uint64_t offset, count; /* in the array of parameters */
  uint32_t dimensions;    /* 4: weights of a convolution; 2: weights of a full layer; 1: biases */
  uint32_t shape[4];      /* outputs, input channels, rows, columns; or outputs, inputs */
};

PAWL_API void pawl_cnn_model_destroy(struct pawl_cnn_model *model); /* NULL is allowed */
PAWL_API void pawl_cnn_model_about(const struct pawl_cnn_model *model, struct pawl_cnn_about *about_out);

/* Tensor number `number`, which is below about.tensors, by ascending offset; valid as long as the model. NULL: there is
 * no such tensor. */
PAWL_API const struct pawl_cnn_tensor *pawl_cnn_model_tensor(const struct pawl_cnn_model *model, size_t number);

/* All about.parameters parameters; valid as long as the model. */
PAWL_API const float *pawl_cnn_model_parameters(const struct pawl_cnn_model *model);

/* Writes and reads a model file. The file is written completely or not at all. PAWL_IO …, PAWL_CORRUPT, PAWL_TRUNCATED,
 * PAWL_UNSUPPORTED (a later version, or a net that this pawl does not know), PAWL_MISMATCH (a model of another
 * kind). */
PAWL_API PAWL_MUST_USE pawl_status pawl_cnn_model_write(const struct pawl_cnn_model *model, const char *path,
                                                        char error[PAWL_CNN_TEXT]);
PAWL_API PAWL_MUST_USE pawl_status pawl_cnn_model_read(const char *path, struct pawl_cnn_model **model_out,
                                                       char error[PAWL_CNN_TEXT]);

/* Whether a file begins like a model of this kind. False also if it cannot be read. */
PAWL_API bool pawl_cnn_model_is(const char *path);

/* --- prediction ------------------------------------------------------------------------------------------ */

struct pawl_cnn_score {
  uint64_t images;
  uint64_t wrong; /* images whose label does not have the highest score */
  double loss;    /* mean cross-entropy */
};

/* Predicts all images. `classes_out`, one number for each image, and `probabilities_out`, about.classes numbers for each
 * image, may be NULL. `*score_out` compares with the labels; without labels, only its `images` is set and `loss` is
 * NAN. PAWL_MISMATCH (images of another size, or labels beyond the classes of the model), PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_cnn_predict(const struct pawl_cnn_model *model,
                                                    const struct pawl_images *images, uint8_t *classes_out,
                                                    float *probabilities_out, struct pawl_cnn_score *score_out,
                                                    char error[PAWL_CNN_TEXT]);

/* --- training ------------------------------------------------------------------------------------------- */

/* How the learning rate falls. */
enum pawl_cnn_schedule {
  PAWL_CNN_COSINE = 0, /* along half a cosine wave, from `rate` to 0 */
  PAWL_CNN_CONSTANT = 1,
};

struct pawl_cnn_progress {
  uint64_t epoch, epochs; /* epochs from 1 */
  uint64_t done, images;  /* images of this epoch that were trained on, and all of them */
  bool is_epoch_over;     /* the epoch has ended, and the test images were evaluated */
  double loss;            /* mean cross-entropy of this epoch so far */
  double train_error;     /* fraction of wrong images of this epoch so far */
  double test_error;      /* fraction of wrong test images after the last epoch; NAN before, or without any */
  double rate;            /* learning rate of the last step */
  double seconds;         /* since the beginning */
  double images_per_s;    /* of this epoch, training only */
  const char *unsaved;    /* why the last checkpoint that was due could not be written; "": it was, or none was due */
};

struct pawl_cnn_result {
  /* "epochs"; "interrupted"; or "guessing": the epochs are over, and the net is no better than guessing by the share of each class
   * on the training images, or on the test images (`guesses_test`). */
  const char *why;
  uint64_t epochs; /* complete ones */
  double loss, train_error, test_error;
  uint64_t steps;
  double seconds;      /* all of it */
  double train_s;      /* training only, without evaluation */
  double images_per_s; /* images trained on per second of train_s */
  uint64_t batch;      /* options as they were used: defaults are those of the net */
  double rate, momentum, decay;

  /* Training by workers; 0 in one process. */
  uint32_t workers;                    /* that made the last steps */
  uint32_t workers_lost;               /* during training */
  double wait_pct;                     /* share of their time in which workers waited for servers or for one another */
  uint64_t bytes_sent, bytes_received; /* by all workers */

  double guess_loss; /* the loss of guessing */
  uint64_t resumed;  /* of `steps`: those of the run that this one continues */

  /* PAWL_CNN_FACTORS: bytes of gradients that were sent or shown to other workers; layers that sent theirs as factors; whether
   * after every part of an epoch all workers had the same parameters, bit by bit. */
  uint64_t update_bytes;
  uint32_t layers_as_factors;
  bool is_identical;

  /* On at least 30 test images, the loss is not below that of guessing by their shares of classes, and the errors are not clearly fewer
   * than those of their most frequent class. */
  bool guesses_test;
  double test_guess_error;     /* of that class; NAN without test images */
  char unsaved[PAWL_CNN_TEXT]; /* why the last checkpoint could not be written; "": it was, or there is none */
};

struct pawl_cnn_options {
  size_t struct_size; /* set by pawl_cnn_options_init */
  const char *net;    /* "lenet" or "vgg" */
  uint64_t epochs;    /* 0: lenet 5, vgg 20 */
  uint64_t batch;     /* images of a step; 0: lenet 64, vgg 32 */
  double rate;        /* learning rate of the first step; 0: 0.01 */
  double momentum;    /* below 1; negative: 0.9 */
  double decay;       /* of weights; negative: 0.0005 */
  enum pawl_cnn_schedule schedule;
  uint64_t seed;    /* of first weights, order and dropout; default 1 */
  uint32_t threads; /* of OpenBLAS, for the whole process; default 1 */

  /* Callbacks; each may be NULL. The thread in pawl_cnn_train calls them. */
  void (*progress)(void *context, const struct pawl_cnn_progress *progress); /* after each step */
  bool (*stopping)(void *context); /* asked after each step; true ends the training with the parameters so far */
  void *context;
};

PAWL_API void pawl_cnn_options_init_sized(struct pawl_cnn_options *options, size_t struct_size);
static inline void pawl_cnn_options_init(struct pawl_cnn_options *options) {
  pawl_cnn_options_init_sized(options, sizeof *options);
}

/* Checks the options. Returns false, with a message that says what to change, if they are invalid. */
PAWL_API bool pawl_cnn_check(const struct pawl_cnn_options *options, char error[PAWL_CNN_TEXT]);

/* Trains a net. `test` may be NULL. Both sets need labels. PAWL_INVALID (an option, images without labels, or
 * training images of one label only), PAWL_MISMATCH (images that do not fit the net, or test images of another size or class), PAWL_DIVERGED (the loss or a
 * parameter is not finite any more: no model), PAWL_UNSUPPORTED (several threads, but OpenBLAS has none),
 * PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_cnn_train(const struct pawl_images *images, const struct pawl_images *test,
                                                  const struct pawl_cnn_options *options,
                                                  struct pawl_cnn_model **model_out, struct pawl_cnn_result *result_out,
                                                  char error[PAWL_CNN_TEXT]);

/* --- training by several workers ------------------------------------------------------------------------- */

/* How workers share the parameters. */
enum pawl_cnn_share {
  PAWL_CNN_SERVERS =
      0, /* in a vector on servers. With PAWL_CNN_PUSH_BSP a step of all workers equals one of one process, but for
            rounding */
  PAWL_CNN_REDUCE = 1, /* each worker has its own, and averages with its neighbours in a graph (<pawl/reduce.h>). The
                           sessions should be opened with `peers_only`: no servers are needed */
  /* Each worker has its own, and sends its gradients to all others (<pawl/factor.h>): of a full layer two vectors for each
   * image, where these are shorter than the layer's weights. A step of all workers equals one of one process, but for rounding,
   * and all workers have the same bits. Sessions as with REDUCE. */
  PAWL_CNN_FACTORS = 2,
};

/* What workers average with PAWL_CNN_REDUCE. */
enum pawl_cnn_average {
  PAWL_CNN_AVERAGE_AUTO = 0,   /* gradients if the graph is "complete" and the mode NOTIFY_ACK, else models */
  PAWL_CNN_AVERAGE_MODELS = 1, /* each worker makes a step by itself, and mixes its parameters with its neighbours' */
  PAWL_CNN_AVERAGE_GRADIENTS = 2, /* the complete graph and NOTIFY_ACK only: as PAWL_CNN_SERVERS, without servers */
};

/* When the workers' changes take effect with PAWL_CNN_SERVERS. */
enum pawl_cnn_push {
  PAWL_CNN_PUSH_BSP = 0, /* a step begins with the changes of all workers in the step before */
  /* A worker computes while its last changes travel, with parameters that lack one step, and sends the next changes when
   * the servers have applied the last ones of all workers: the policy "notify-ack" of <pawl/policy.h>. */
  PAWL_CNN_PUSH_NOTIFY_ACK = 1,
  PAWL_CNN_PUSH_ASYNC = 2, /* no worker waits for another: it gets the parameters as they are */
};

struct pawl_cnn_sharing {
  size_t struct_size; /* set by pawl_cnn_sharing_init */
  enum pawl_cnn_share share;
  const char *job; /* name by which workers find this training; NULL: "cnn" */

  /* The files from which workers read the training images, which every worker needs at the same paths. They must have
   * the images that pawl_cnn_train_shared gets. */
  const char *const *paths;
  size_t path_count;
  enum pawl_images_format format;

  uint32_t workers, workers_most; /* minimum and maximum of workers; 0: 1, and the minimum */
  enum pawl_on_loss on_loss;      /* <pawl/job.h> */
  double drop_slowest;

  /* PAWL_CNN_REDUCE. */
  const char *graph; /* as in struct pawl_reduce_options; NULL: the default */
  enum pawl_reduce_mode mode;
  enum pawl_cnn_average average;

  /* Called with the context of struct pawl_cnn_options. Both may be NULL. */
  void (*tell)(void *context, const char *line); /* a line of news */
  pawl_status (*start_worker)(void *context);    /* asks for one more worker; NULL: workers come by themselves */

  enum pawl_cnn_push push; /* PAWL_CNN_SERVERS */

  /* PAWL_CNN_REDUCE: a folder in which each worker regularly saves its parameters, and this process how far the training
   * is. Absolute; workers on other machines write to the folder of that name there. NULL: no checkpoints. */
  const char *checkpoints;
  double checkpoint_every_s; /* seconds between checkpoints; 0: 60. Another one is written when `stopping` says so */
  bool resume; /* continue from the checkpoint. With as many workers the result is the same as without the interruption.
                  PAWL_NOT_FOUND if there is none, PAWL_MISMATCH if it has other options or images, PAWL_CORRUPT */
};

PAWL_API void pawl_cnn_sharing_init_sized(struct pawl_cnn_sharing *sharing, size_t struct_size);
static inline void pawl_cnn_sharing_init(struct pawl_cnn_sharing *sharing) {
  pawl_cnn_sharing_init_sized(sharing, sizeof *sharing);
}

/* Checks how workers should share. Returns false, with a message, if they cannot. */
PAWL_API bool pawl_cnn_sharing_check(const struct pawl_cnn_sharing *sharing, char error[PAWL_CNN_TEXT]);

/* As pawl_cnn_train, but workers make the steps (pawl_cnn_work). This process is the scheduler of their job, and tests
 * the model. Each worker computes the gradient of its share of the images of every batch; the seed gives the same order
 * of images as in one process. A batch may have fewer images than there are workers. If workers are lost, the images
 * of their share are left out until the next part of the epoch, which takes about a second.
 *
 * The session needs `listen`. Also returns the errors of <pawl/job.h> and <pawl/reduce.h>. */
PAWL_API PAWL_MUST_USE pawl_status pawl_cnn_train_shared(
    struct pawl_session *session, const struct pawl_cnn_sharing *sharing, const struct pawl_images *images,
    const struct pawl_images *test, const struct pawl_cnn_options *options, struct pawl_cnn_model **model_out,
    struct pawl_cnn_result *result_out, char error[PAWL_CNN_TEXT]);

/* The bytes that a step of all workers sends. Of vectors of full layers zeros count as other values do; they are sent without
 * them where that is shorter. */
struct pawl_cnn_costs {
  double factors;             /* PAWL_CNN_FACTORS */
  double servers;             /* PAWL_CNN_SERVERS: the parameters, to servers and back */
  uint32_t layers_as_factors; /* full layers for which two vectors of each image are shorter than the weights */
};

/* For the least number of workers of `sharing`. Errors as pawl_cnn_train before the first step. */
PAWL_API PAWL_MUST_USE pawl_status pawl_cnn_costs(const struct pawl_images *images,
                                                  const struct pawl_cnn_options *options,
                                                  const struct pawl_cnn_sharing *sharing,
                                                  struct pawl_cnn_costs *costs_out, char error[PAWL_CNN_TEXT]);

/* Works for the training `job` (NULL: "cnn") until it ends. Waits up to `timeout_ns` for it. The session needs `listen`,
 * and should be opened with `stays_dead`. Errors as pawl_worker_run. */
PAWL_API PAWL_MUST_USE pawl_status pawl_cnn_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                                                 char error[PAWL_CNN_TEXT]);

#ifdef __cplusplus
}
#endif

#endif
