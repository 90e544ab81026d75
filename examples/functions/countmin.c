/* A server function in a shared object: the counters of a CountMin sketch.
 *
 * A key is a cell of the sketch, or `width` cells of one row of it. Workers hash the things that they
 * count and push the increments of cells; a reader pulls the cells of a thing and takes the smallest. The
 * server adds. Unlike `add` it refuses a sum that does not fit, where integers would wrap around and a
 * large count turn into a small one.
 */
#include <pawl/function.h>

static pawl_status check(const struct pawl_function_call *call) {
  const uint64_t *more = call->pushed, *cells = call->stored;
  for (size_t i = 0; i < call->count * call->width; i++)
    if (more[i] > UINT64_MAX - cells[i]) return PAWL_OVERFLOW;
  return PAWL_OK;
}

static void apply(const struct pawl_function_call *call) {
  const uint64_t *more = call->pushed;
  uint64_t *cells = call->stored;
  for (size_t i = 0; i < call->count * call->width; i++) cells[i] += more[i];
}

static const struct pawl_server_function function = {
    .size = sizeof(struct pawl_server_function),
    .flags = PAWL_FUNCTION_SUMS | PAWL_FUNCTION_COMMUTES,
    .name = "countmin",
    .about = "counters that refuse to overflow",
    .types = PAWL_FUNCTION_TYPE(PAWL_U64),
    .pushed = {1, 0},
    .stored = {1, 0},
    .check = check,
    .apply = apply,
};

const struct pawl_server_function *const *pawl_functions(uint32_t *count_out) {
  static const struct pawl_server_function *const list[] = {&function};
  *count_out = 1;
  return list;
}
