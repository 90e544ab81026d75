/* Rows of a push that carries factors (<pawl/function.h>, OPERANDS). */
#include "store/functions/functions.h"

#include <assert.h>
#include <string.h>

#include "store/functions/kernels.h"

/* Sums of integers wrap around, as those of pushes do. */
#define EXPAND_INTEGERS(name, value_type)                                                                              \
  static void expand_##name(const struct pawl_function_call *call) {                                                   \
    const value_type *pushed = call->pushed;                                                                           \
    value_type *to = call->stored;                                                                                     \
    size_t width = call->pushed_width;                                                                                 \
    memset(to, 0, call->count *width * sizeof *to);                                                                    \
    for (size_t i = 0; i < call->count; i++, to += width) {                                                            \
      const value_type *v = call->operand;                                                                             \
      for (size_t k = 0; k < call->operand_rows; k++, pushed++, v += width)                                            \
        for (size_t j = 0; j < width && *pushed != 0; j++) to[j] += *pushed * v[j];                                    \
    }                                                                                                                  \
  }
EXPAND_INTEGERS(u32, uint32_t)
EXPAND_INTEGERS(u64, uint64_t)

void pwi_function_expand(const struct pawl_server_function *function, const struct pawl_function_call *call) {
  if (function && function->expand) {
    function->expand(call);
    return;
  }
  switch (call->type) {
  case PAWL_F32:
  case PAWL_F64:
    pwi_gradient_kernels_best()->expand[call->type - 1](call);
    break;
  case PAWL_I32:
    expand_u32(call);
    break;
  case PAWL_I64:
  case PAWL_U64:
    expand_u64(call);
    break;
  default:
    assert(false && "a type without operands");
  }
}
