/* The table of methods: see methods.h. */
#include "apps/linear/methods.h"

#include <string.h>

#include "apps/linear/linear.h"

#define ROW(NAME, number, descriptor) [number] = &descriptor,
static const struct linear_method_descriptor *const table[] = {LINEAR_METHODS(ROW)};

enum { COUNT = sizeof table / sizeof *table };

const struct linear_method_descriptor *linear_method_of(enum linear_method method) {
  return (size_t)method < COUNT ? table[method] : NULL;
}

bool linear_method_find(const char *name, enum linear_method *method_out) {
  for (size_t i = 0; i < COUNT; i++)
    if (table[i] && strcmp(table[i]->name, name) == 0) {
      *method_out = table[i]->number;
      return true;
    }
  return false;
}

const struct linear_method_descriptor *linear_method_chosen(const struct linear_options *options) {
  if (options->method != LINEAR_METHOD_AUTO) return linear_method_of(options->method);
  return options->loss == LINEAR_HINGE ? &linear_dual : &linear_blocks;
}
