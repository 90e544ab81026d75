/* A server function in a shared object: the update of OSDI'14 Algorithm 3, for models with many zeros.
 *
 * Workers push, for each value of the model, the gradient g and a bound u on the second derivative. The
 * server takes the best step for that quadratic model plus l1 times the sum of absolute values
 * (docs/functions.md derives it):
 *
 *   a = u / rate + eps
 *   w <- shrink(a w - g, l1) / a
 *
 * pawl has this function built in, as block_proximal; this one has another name and supports f64 only.
 */
#include <pawl/function.h>

enum { RATE, L1, EPS }; /* the order of `parameters` */

static double shrink(double z, double least) { return z > least ? z - least : z < -least ? z + least : 0; }

/* A negative curvature has no best step. pawl itself refuses NaN and infinity: PAWL_FUNCTION_FINITE. */
static pawl_status check(const struct pawl_function_call *call) {
  const double *pairs = call->pushed;
  for (size_t i = 0; i < call->count * call->width; i++)
    if (pairs[2 * i + 1] < 0) return PAWL_REFUSED;
  return PAWL_OK;
}

static void apply(const struct pawl_function_call *call) {
  const double *pairs = call->pushed, *is = call->parameters;
  double *w = call->stored;
  for (size_t i = 0; i < call->count * call->width; i++) {
    double a = pairs[2 * i + 1] / is[RATE] + is[EPS];
    w[i] = shrink(a * w[i] - pairs[2 * i], is[L1]) / a;
  }
}

static const struct pawl_function_parameter parameters[] = {
    [RATE] = {"rate", "length of a step", 1, 1e-12, 1e30},
    [L1] = {"l1", "weight of the sum of absolute values", 0, 0, 1e30},
    [EPS] = {"eps", "keeps the divisor from being zero", 1e-10, 1e-30, 1e30},
};

static const struct pawl_server_function function = {
    .size = sizeof(struct pawl_server_function),
    .flags = PAWL_FUNCTION_SUMS | PAWL_FUNCTION_FINITE | PAWL_FUNCTION_CHECKS_PUSH,
    .name = "example_proximal",
    .about = "the step of OSDI'14 Algorithm 3",
    .types = PAWL_FUNCTION_TYPE(PAWL_F64),
    .parameter_count = 3,
    .parameters = parameters,
    .pushed = {2, 0}, /* for a vector of width n, 2 n + 0 values per key: g0 u0 g1 u1 … */
    .stored = {1, 0},
    .state = {0, 0},
    .check = check,
    .apply = apply,
};

const struct pawl_server_function *const *pawl_functions(uint32_t *count_out) {
  static const struct pawl_server_function *const list[] = {&function};
  *count_out = 1;
  return list;
}
