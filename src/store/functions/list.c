/* The built-in server functions: types, shapes and parameters. The loops are in store/functions/steps.h and
 * store/functions/proximal.h, the formulas in docs/functions.md.
 */
#include "store/functions/functions.h"

#include <assert.h>

#include "store/functions/kernels.h"
#include "store/kernels.h"
#include "store/sketch.h"
#include "store/sketch_top.h"

#define MUCH 1e30    /* representable as a float, also in products */
#define LITTLE 1e-12 /* minimum of a divisor */
#define TINY 1e-30   /* keeps a divisor from being zero */

#define ALL_TYPES (PAWL_FUNCTION_REALS | PAWL_FUNCTION_INTEGERS)
#define GRADIENT (PAWL_FUNCTION_SUMS | PAWL_FUNCTION_FINITE)
#define LENGTH(array) ((uint32_t)(sizeof(array) / sizeof *(array)))

static_assert((int)PWI_FUNCTION_ADD == (int)PAWL_ADD && (int)PWI_FUNCTION_ASSIGN == (int)PAWL_ASSIGN, "one numbering");
static_assert((int)PWI_FUNCTION_ADD == (int)PWI_APPLY_ADD && (int)PWI_FUNCTION_ASSIGN == (int)PWI_APPLY_ASSIGN &&
                  (int)PWI_FUNCTION_MIN == (int)PWI_APPLY_MIN && (int)PWI_FUNCTION_MAX == (int)PWI_APPLY_MAX,
              "one numbering");

/* --- functions that use the kernels of tables ----------------------------------------------------------- */

static void combine(enum pwi_apply how, const struct pawl_function_call *call) {
  pwi_row_kernels_best()->array[how][call->type - 1](call->stored, call->pushed, call->count * call->width);
}

#define SIMPLE(word, how, marks, text)                                                                                 \
  static void apply_##word(const struct pawl_function_call *call) { combine(how, call); }                              \
  static const struct pawl_server_function word = {                                                                    \
      .size = sizeof word,                                                                                             \
      .name = #word,                                                                                                   \
      .about = text,                                                                                                   \
      .flags = marks,                                                                                                  \
      .types = ALL_TYPES,                                                                                              \
      .pushed = {1, 0},                                                                                                \
      .stored = {1, 0},                                                                                                \
      .apply = apply_##word,                                                                                           \
  };

SIMPLE(add, PWI_APPLY_ADD, PAWL_FUNCTION_SUMS | PAWL_FUNCTION_COMMUTES, "adds the pushed values")
SIMPLE(assign, PWI_APPLY_ASSIGN, 0, "replaces the stored values")
SIMPLE(min, PWI_APPLY_MIN, 0, "keeps the smaller value")
SIMPLE(max, PWI_APPLY_MAX, 0, "keeps the larger value")

/* --- functions with their own loops --------------------------------------------------------------------- */

#define APPLY(word)                                                                                                    \
  static void apply_##word(const struct pawl_function_call *call) {                                                    \
    pwi_gradient_kernels_best()->apply[PWI_GRADIENT_##word][call->type - 1](call);                                     \
  }
PWI_GRADIENT_STEPS(APPLY)

/* A function of gradients. After its flags come the two numbers of its state's shape, then fields of its
 * own. */
#define STEP(word, text, marks, times, more, ...)                                                                      \
  static const struct pawl_server_function word = {.size = sizeof word,                                                \
                                                   .name = #word,                                                      \
                                                   .about = text,                                                      \
                                                   .flags = marks,                                                     \
                                                   .types = PAWL_FUNCTION_REALS,                                       \
                                                   .state = {times, more},                                             \
                                                   .parameters = word##_parameters,                                    \
                                                   .parameter_count = LENGTH(word##_parameters),                       \
                                                   .apply = apply_##word,                                              \
                                                   __VA_ARGS__};
#define ONE_GRADIENT .pushed = {1, 0}, .stored = {1, 0}

#define RATE(normal)                                                                                                   \
  { "rate", "length of a step", normal, 0, MUCH }
#define DECAY                                                                                                          \
  { "decay", "decay of values per step", 0, 0, MUCH }
#define L1                                                                                                             \
  { "l1", "weight of the sum of absolute values", 0, 0, MUCH }
#define L2                                                                                                             \
  { "l2", "weight of half the sum of squares", 0, 0, MUCH }
#define EPS(normal)                                                                                                    \
  { "eps", "keeps a divisor from being zero", normal, TINY, MUCH }

static const struct pawl_function_parameter sgd_parameters[] = {RATE(0.01)};
STEP(sgd, "stochastic gradient descent", GRADIENT | PAWL_FUNCTION_COMMUTES, 0, 0, ONE_GRADIENT)

static const struct pawl_function_parameter momentum_parameters[] = {
    RATE(0.01), {"momentum", "fraction of the last step that is kept", 0.9, 0, 1}, DECAY};
STEP(momentum, "gradient descent with momentum", GRADIENT, 1, 0, ONE_GRADIENT)

static const struct pawl_function_parameter adagrad_parameters[] = {RATE(0.1), EPS(1e-8), DECAY};
STEP(adagrad, "AdaGrad: steps shrink with the gradients so far", GRADIENT, 1, 0, ONE_GRADIENT)

static const struct pawl_function_parameter adam_parameters[] = {
    RATE(0.001),
    {"beta1", "fraction of the mean gradient that is kept", 0.9, 0, 0.999999},
    {"beta2", "fraction of the mean square that is kept", 0.999, 0, 0.999999},
    EPS(1e-8),
    DECAY};
STEP(adam, "Adam: steps from the means of gradients and their squares", GRADIENT, 2, 2, ONE_GRADIENT)

static const struct pawl_function_parameter ftrl_parameters[] = {
    {"rate", "length of a step", 0.1, LITTLE, MUCH}, {"beta", "damping of the first steps", 1, 0, MUCH}, L1, L2};
STEP(ftrl, "follow the regularised leader, proximal", GRADIENT, 2, 0, ONE_GRADIENT)

static const struct pawl_function_parameter block_proximal_parameters[] = {
    {"rate", "length of a step", 1, LITTLE, MUCH}, L1, L2, EPS(1e-10)};

static pawl_status check_block(const struct pawl_function_call *call) {
  bool curved = pwi_gradient_kernels_best()->curved[call->type - 1](call->pushed, call->count * call->width);
  return curved ? PAWL_OK : PAWL_REFUSED;
}

STEP(block_proximal, "the step of OSDI'14 Algorithm 3: pushes of gradient and curvature",
     GRADIENT | PAWL_FUNCTION_CHECKS_PUSH, 0, 0, .pushed = {2, 0}, .stored = {1, 0}, .check = check_block)

static const struct pawl_function_parameter block_newton_parameters[] = {L1, L2, EPS(1e-12)};
STEP(block_newton, "block_proximal that also keeps the summed gradient: pulls of weight and gradient",
     GRADIENT | PAWL_FUNCTION_CHECKS_PUSH, 0, 0, .pushed = {2, 0}, .stored = {2, 0}, .check = check_block)

static const struct pawl_function_parameter prox_l1_parameters[] = {RATE(1), L1};
STEP(prox_l1, "a step, then shrinkage towards zero by l1", GRADIENT, 0, 0, ONE_GRADIENT)

static const struct pawl_function_parameter prox_l2_parameters[] = {RATE(1), L2};
STEP(prox_l2, "a step, then division by 1 + l2", GRADIENT, 0, 0, ONE_GRADIENT)

static const struct pawl_function_parameter prox_elastic_parameters[] = {RATE(1), L1, L2};
STEP(prox_elastic, "a step, then shrinkage towards zero by l1 and division by 1 + l2", GRADIENT, 0, 0, ONE_GRADIENT)

static const struct pawl_function_parameter prox_box_parameters[] = {
    RATE(1), {"low", "the smallest value", -1, -MUCH, MUCH}, {"high", "the largest value", 1, -MUCH, MUCH}};

static const char *settle_box(const double *is) { return is[1] <= is[2] ? NULL : "low is greater than high"; }

STEP(prox_box, "a step, then clamping to [low, high]", GRADIENT, 0, 0, ONE_GRADIENT, .settle = settle_box)

static const struct pawl_function_parameter prox_ball_parameters[] = {
    RATE(1), {"radius", "the largest norm of a row", 1, 0, MUCH}};
STEP(prox_ball, "a step, then scaling of each row to a norm of at most radius", GRADIENT, 0, 0, ONE_GRADIENT)

static const struct pawl_function_parameter prox_nonnegative_parameters[] = {RATE(1)};
STEP(prox_nonnegative, "a step, then negative values become zero", GRADIENT, 0, 0, ONE_GRADIENT)

const struct pawl_server_function *const pwi_functions_built_in[PWI_FUNCTION_COUNT] = {
    [PWI_FUNCTION_ADD] = &add,
    [PWI_FUNCTION_ASSIGN] = &assign,
    [PWI_FUNCTION_MIN] = &min,
    [PWI_FUNCTION_MAX] = &max,
    [PWI_FUNCTION_SGD] = &sgd,
    [PWI_FUNCTION_MOMENTUM] = &momentum,
    [PWI_FUNCTION_ADAGRAD] = &adagrad,
    [PWI_FUNCTION_ADAM] = &adam,
    [PWI_FUNCTION_FTRL] = &ftrl,
    [PWI_FUNCTION_BLOCK_PROXIMAL] = &block_proximal,
    [PWI_FUNCTION_PROX_L1] = &prox_l1,
    [PWI_FUNCTION_PROX_L2] = &prox_l2,
    [PWI_FUNCTION_PROX_ELASTIC] = &prox_elastic,
    [PWI_FUNCTION_PROX_BOX] = &prox_box,
    [PWI_FUNCTION_PROX_BALL] = &prox_ball,
    [PWI_FUNCTION_PROX_NONNEGATIVE] = &prox_nonnegative,
    [PWI_FUNCTION_SKETCH_COUNTMIN] = &pwi_sketch_countmin,
    [PWI_FUNCTION_SKETCH_COUNTSKETCH] = &pwi_sketch_countsketch,
    [PWI_FUNCTION_SKETCH_TOP] = &pwi_sketch_top,
    [PWI_FUNCTION_BLOCK_NEWTON] = &block_newton,
};
