/* The training methods: the table of them, and the descriptor that each of them fills in.
 *
 * The scheduler, the workers and the command read everything that they need to know about a method from its
 * descriptor. A new method needs a file with its descriptor and a line in LINEAR_METHODS:
 * docs/write-your-own-method.md.
 */
#ifndef LINEAR_METHODS_H
#define LINEAR_METHODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/pawl.h>

#include "apps/linear/losses.h"

/* The table: X(NAME, number, descriptor). Jobs and checkpoints hold the numbers: a number never changes its
 * meaning. */
#define LINEAR_METHODS(X)                                                                                              \
  X(BLOCKS, 1, linear_blocks)           /* Algorithm 3: delayed block proximal gradient, second order */               \
  X(SUBGRADIENT, 2, linear_subgradient) /* Algorithm 1: distributed subgradient descent */                             \
  X(SGD, 3, linear_sgd)                 /* SGD, AdaGrad, FTRL: asynchronous, on data that is streamed */               \
  X(ADAGRAD, 4, linear_adagrad)                                                                                        \
  X(FTRL, 5, linear_ftrl)                                                                                              \
  X(DUAL, 6, linear_dual)     /* dual coordinate ascent at each worker, sums of steps on the servers */                \
  X(NEWTON, 7, linear_newton) /* Newton steps with the whole Hessian, for data with few features */

/* All names, for the help of the command. */
#define LINEAR_METHOD_NAMES "newton, blocks, subgradient, sgd, adagrad, ftrl or dual"

#define LINEAR_METHOD_NUMBER(NAME, number, descriptor) LINEAR_METHOD_##NAME = number,
enum linear_method {
  LINEAR_METHOD_AUTO = 0, /* DUAL for the hinge loss, NEWTON where features are few, else BLOCKS */
  LINEAR_METHODS(LINEAR_METHOD_NUMBER)
};

struct linear_control;
struct linear_options;
struct linear_order;
struct linear_outcome;
struct linear_point;
struct linear_reply;
struct linear_run;
struct linear_spec;
struct linear_worker;

/* Fields that a method does not name are false, 0 or NULL. */
struct linear_method_descriptor {
  const char *name; /* of --method */
  enum linear_method number;

  /* Options that the method cannot do. Each text is a sentence for the user that says what to do instead. */
  /* the set of losses that it trains: losses.h */
  uint32_t losses;
  const char *other_loss; /* the text for all other losses */
  /* why it cannot start from a model; NULL: it can */
  const char *no_start;
  /* NULL, and a result of NULL: all penalties */
  const char *(*wrong_point)(const struct linear_point *point);

  /* Vectors. `rule` completes the options of the vectors of weights and of the bias, which it tells apart by
   * their penalties; NULL: pushes are added. `multipliers` completes those of a vector with an element per
   * row, which checkpoints hold; NULL: the method has none. */
  void (*rule)(const struct linear_spec *spec, const struct linear_order *order, double l1, double l2,
               struct pawl_vector_options *options);
  void (*multipliers)(const struct linear_spec *spec, struct pawl_vector_options *options);

  /* The worker. `begin` is called before the first sweep, and again after a new point was begun or pieces
   * have moved: it reads from the servers and discards what it had. `gather` is called if `gathers`. `end`
   * settles all tasks and frees everything; it may be called twice. All return the first failure. */
  bool streams; /* reads pieces as it goes, and keeps none */
  /* weights are sums over rows: when pieces move, a new generation of vectors and a round GATHER */
  bool gathers;
  pawl_status (*begin)(struct linear_worker *worker, const struct linear_order *order);
  pawl_status (*sweep)(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply);
  pawl_status (*gather)(struct linear_worker *worker, const struct linear_order *order);
  void (*end)(struct linear_worker *worker);

  /* The scheduler. `settle_rate` computes the first learning rate from the data if the user gave none.
   * `begin_control` sets the first damping. `hear` decides after each round how to go on, and `left` guesses
   * how many rounds are left: control.h. `round` takes the place of the usual round: a sweep of all
   * workers. */
  bool steps_last; /* servers step at the end of a round: the objective needs another evaluation */
  double rate;     /* the default learning rate */
  double (*settle_rate)(const struct linear_spec *spec, uint64_t rows, double squares);
  void (*begin_control)(struct linear_control *control, const struct linear_options *options, double crowd);
  void (*hear)(struct linear_control *control, const struct linear_outcome *outcome);
  double (*left)(const struct linear_control *control);
  pawl_status (*round)(struct linear_run *run, struct linear_reply *sum_out, struct linear_outcome *outcome);
};

#define LINEAR_METHOD_DESCRIPTOR(NAME, number, descriptor) extern const struct linear_method_descriptor descriptor;
LINEAR_METHODS(LINEAR_METHOD_DESCRIPTOR)

#define LINEAR_NEEDS_CURVATURE "the hinge loss has no curvature; use --method dual, or --loss squared-hinge"

/* NULL if the number is not that of a method, as AUTO. */
const struct linear_method_descriptor *linear_method_of(enum linear_method method);

/* Finds a method by its name. */
bool linear_method_find(const char *name, enum linear_method *method_out);

/* The method that is used; for AUTO the one with which training begins, before the data is known. */
const struct linear_method_descriptor *linear_method_chosen(const struct linear_options *options);

#endif
