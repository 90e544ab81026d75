/* The training methods: the table of them, and the descriptor that each of them fills in.
 *
 * The scheduler and the workers read everything that they need to know about a method from its descriptor. A
 * new method needs a number in <pawl/linear_model.h>, a file with its descriptor and a line in
 * LINEAR_METHODS: docs/write-your-own-method.md.
 */
#ifndef LINEAR_METHODS_H
#define LINEAR_METHODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/linear_model.h>
#include <pawl/pawl.h>

#include "apps/linear/losses.h"

/* The table: X(NAME, descriptor). The public header has the numbers PAWL_LINEAR_METHOD_NAME. */
#define LINEAR_METHODS(X)                                                                                              \
  X(BLOCKS, linear_blocks)                                                                                             \
  X(SUBGRADIENT, linear_subgradient)                                                                                   \
  X(SGD, linear_sgd)                                                                                                   \
  X(ADAGRAD, linear_adagrad)                                                                                           \
  X(FTRL, linear_ftrl)                                                                                                 \
  X(DUAL, linear_dual)                                                                                                 \
  X(NEWTON, linear_newton)

struct linear_control;
struct linear_order;
struct linear_outcome;
struct linear_reply;
struct linear_run;
struct linear_spec;
struct linear_worker;

/* Fields that a method does not name are false, 0 or NULL. */
struct linear_method_descriptor {
  const char *name; /* of --method */
  enum pawl_linear_method number;

  /* Options that the method cannot do. Each text is a sentence for the user that says what to do instead. */
  /* the set of losses that it trains: losses.h */
  uint32_t losses;
  const char *other_loss; /* the text for all other losses */
  /* why it cannot start from a model; NULL: it can */
  const char *no_start;
  /* NULL, and a result of NULL: all penalties */
  const char *(*wrong_point)(const struct pawl_linear_point *point);

  /* Vectors. `rule` completes the options of the vectors of weights and of the bias, which it tells apart by
   * their penalties; NULL: pushes are added. `multipliers` completes those of a vector with an element per
   * row, which checkpoints hold; NULL: the method has none. */
  void (*rule)(const struct linear_spec *spec, const struct linear_order *order, double l1, double l2,
               struct pawl_vector_options *options);
  void (*multipliers)(const struct linear_spec *spec, struct pawl_vector_options *options);

  /* The worker. `begin` is called before the first sweep, and again after a new point was begun or pieces
   * have moved: it reads from the servers and discards what it had. `gather` is called if `gathers`. `end`
   * settles all tasks and frees everything; it may be called twice. All return the first failure. */
  /* reads pieces as it goes (linear_read_pieces), and keeps none. With servers workers may join in the middle of a
   * round, so it must not clock or meet the others */
  bool streams;
  /* weights are sums over rows: when pieces move, a new generation of vectors and a round GATHER */
  bool gathers;
  pawl_status (*begin)(struct linear_worker *worker, const struct linear_order *order);
  pawl_status (*sweep)(struct linear_worker *worker, const struct linear_order *order, struct linear_reply *reply);
  pawl_status (*gather)(struct linear_worker *worker, const struct linear_order *order);
  void (*end)(struct linear_worker *worker);

  /* The scheduler. `settle_rate` computes the first learning rate from the data if the user gave none.
   * `begin_control` sets the first damping. `hear` decides after each round how to go on, and `left` guesses
   * how many rounds are left: control.h. `round` takes the place of the usual round, a sweep of all workers,
   * and sets penalty and nonzeros of the progress. */
  bool keeps_best; /* steps may overshoot: the scheduler keeps the best weights and goes back to them */
  double rate;     /* the default learning rate */
  double (*settle_rate)(const struct linear_spec *spec, uint64_t rows, double squares);
  void (*begin_control)(struct linear_control *control, const struct pawl_linear_options *options, double crowd);
  void (*hear)(struct linear_control *control, const struct linear_outcome *outcome);
  double (*left)(const struct linear_control *control);
  pawl_status (*round)(struct linear_run *run, struct linear_reply *sum_out, struct linear_outcome *outcome);
};

#define LINEAR_METHOD_DESCRIPTOR(NAME, descriptor) extern const struct linear_method_descriptor descriptor;
LINEAR_METHODS(LINEAR_METHOD_DESCRIPTOR)
extern const struct linear_method_descriptor linear_averaged; /* SGD, if workers share by reduce */

#define LINEAR_NEEDS_CURVATURE "the hinge loss has no curvature; use --method dual, or --loss squared-hinge"

/* NULL if the number is not that of a method, as AUTO. */
const struct linear_method_descriptor *linear_method_of(enum pawl_linear_method method);

/* The method that is used; for AUTO the one with which training begins, before the data is known. */
const struct linear_method_descriptor *linear_method_chosen(const struct pawl_linear_options *options);

#endif
