/* A server function that takes its time, for the tests: a push of n sleeps n milliseconds, and adds. Negative ones are
 * refused. */
#include <time.h>

#include <pawl/function.h>

static pawl_status check(const struct pawl_function_call *call) {
  const int64_t *pushed = call->pushed;
  for (size_t i = 0; i < call->count * call->width; i++)
    if (pushed[i] < 0) return PAWL_REFUSED;
  return PAWL_OK;
}

static void apply(const struct pawl_function_call *call) {
  const int64_t *pushed = call->pushed;
  int64_t *stored = call->stored;
  for (size_t i = 0; i < call->count * call->width; i++) {
    struct timespec rest = {pushed[i] / 1000, pushed[i] % 1000 * 1000000};
    while (nanosleep(&rest, &rest) != 0) continue;
    stored[i] += pushed[i];
  }
}

/* The operand is one row, to which the value of each row is added. */
static void expand(const struct pawl_function_call *call) {
  const int64_t *pushed = call->pushed, *operand = call->operand;
  int64_t *to = call->stored;
  for (size_t i = 0; i < call->count; i++)
    for (size_t j = 0; j < call->pushed_width; j++) *to++ = pushed[i * call->operand_rows] + operand[j];
}

static const struct pawl_server_function function = {
    .size = sizeof(struct pawl_server_function),
    .name = "slow",
    .about = "adds, and takes its time",
    .types = PAWL_FUNCTION_TYPE(PAWL_I64),
    .pushed = {1, 0},
    .stored = {1, 0},
    .check = check,
    .apply = apply,
    .expand = expand,
};

const struct pawl_server_function *const *pawl_functions(uint32_t *count_out) {
  static const struct pawl_server_function *const list[] = {&function};
  *count_out = 1;
  return list;
}
