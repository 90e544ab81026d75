/* The table of methods: see methods.h. */
#include "apps/linear/methods.h"

#define ROW(NAME, descriptor) [PAWL_LINEAR_METHOD_##NAME] = &descriptor,
static const struct linear_method_descriptor *const table[] = {LINEAR_METHODS(ROW)};

enum { COUNT = sizeof table / sizeof *table };

const struct linear_method_descriptor *linear_method_of(enum pawl_linear_method method) {
  return (size_t)method < COUNT ? table[method] : NULL;
}

const char *pawl_linear_method_name(enum pawl_linear_method method) {
  const struct linear_method_descriptor *is = linear_method_of(method);
  return is ? is->name : "";
}

const struct linear_method_descriptor *linear_method_chosen(const struct pawl_linear_options *options) {
  bool is_sgd = options->method == PAWL_LINEAR_METHOD_AUTO || options->method == PAWL_LINEAR_METHOD_SGD;
  if (options->share == PAWL_LINEAR_REDUCE && is_sgd) return &linear_averaged;
  if (options->method != PAWL_LINEAR_METHOD_AUTO) return linear_method_of(options->method);
  return options->loss == PAWL_LINEAR_HINGE ? &linear_dual : &linear_blocks;
}
