/* A row function in a shared object: values further than `reach` standard deviations from zero are pulled in, and
 * the server tells how many there were and the norm of order `p` of what is left.
 *
 * A program runs it with pawl_vector_run(vector, spread, PAWL_ALL, "example_winsorise reach=3 p=1.5", &task). The
 * second vector has the deviation of each value. docs/row-functions.md explains the interface.
 */
#include <math.h>

#include <pawl/row_function.h>

enum { REACH, P };
enum { PULLED, NORM, LARGEST };

static void run(const struct pawl_row_call *call) {
  double *values = call->rows;
  const double *spread = call->others;
  for (size_t i = 0; i < call->count * call->width; i++) {
    double reach = call->parameters[REACH] * fabs(spread[i]);
    if (fabs(values[i]) > reach) {
      values[i] = values[i] < 0 ? -reach : reach;
      call->results[PULLED]++;
    }
    call->results[NORM] += pow(fabs(values[i]), call->parameters[P]);
    if (fabs(values[i]) > call->results[LARGEST]) call->results[LARGEST] = fabs(values[i]);
  }
}

static const struct pawl_function_parameter parameters[] = {
    [REACH] = {"reach", "deviations that a value may have", 3, 0, 1e30},
    [P] = {"p", "order of the norm", 2, 0, 64},
};

static const struct pawl_row_result results[] = {
    [PULLED] = {"pulled", "values that were pulled in", PAWL_ROW_SUM},
    [NORM] = {"norm", "sum of |value| to the power of p", PAWL_ROW_SUM},
    [LARGEST] = {"largest", "the largest |value| that is left", PAWL_ROW_MOST},
};

static const struct pawl_row_function function = {
    .size = sizeof(struct pawl_row_function),
    .flags = PAWL_ROW_NEEDS_OTHER,
    .name = "example_winsorise",
    .about = "pulls outliers in and computes a norm",
    .types = PAWL_FUNCTION_TYPE(PAWL_F64),
    .parameter_count = 2,
    .parameters = parameters,
    .result_count = 3,
    .results = results,
    .run = run,
};

const struct pawl_row_function *const *pawl_row_functions(uint32_t *count_out) {
  static const struct pawl_row_function *const list[] = {&function};
  *count_out = 1;
  return list;
}
