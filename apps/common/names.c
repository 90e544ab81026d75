#include "apps/common/names.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"

const char *apps_names_get(const struct apps_names *names, uint32_t number) {
  return names->text + names->starts[number];
}

/* Finds where the names begin. False: there are not `count` of them. */
static bool find_starts(struct apps_names *names) {
  size_t at = 0;
  for (uint32_t i = 0; i < names->count; i++) {
    if (at >= names->size) return false;
    const char *end = memchr(names->text + at, 0, names->size - at);
    if (!end || end == names->text + at) return false;
    names->starts[i] = at;
    at = (size_t)(end - names->text) + 1;
  }
  return at == names->size;
}

static int by_name(const void *a, const void *b, void *context) {
  const struct apps_names *names = context;
  return strcmp(apps_names_get(names, *(const uint32_t *)a), apps_names_get(names, *(const uint32_t *)b));
}

static bool sort(struct apps_names *names) {
  for (uint32_t i = 0; i < names->count; i++) names->sorted[i] = i;
  qsort_r(names->sorted, names->count, sizeof *names->sorted, by_name, names);
  for (uint32_t i = 1; i < names->count; i++)
    if (by_name(&names->sorted[i - 1], &names->sorted[i], names) == 0) return false;
  return true;
}

bool apps_names_take(struct apps_names *names, char *text, size_t size, uint32_t count) {
  struct apps_names is = {.text = text, .size = size, .count = count};
  is.starts = apps_alloc_zero(count, sizeof *is.starts);
  is.sorted = apps_alloc_zero(count, sizeof *is.sorted);
  if (is.starts && is.sorted && find_starts(&is) && sort(&is)) {
    *names = is;
    return true;
  }
  is.text = NULL;
  apps_names_fini(&is);
  return false;
}

void apps_names_fini(struct apps_names *names) {
  apps_free(names->text);
  apps_free(names->starts);
  apps_free(names->sorted);
}

bool apps_names_find(const struct apps_names *names, const char *name, uint32_t *number_out) {
  uint32_t low = 0, high = names->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int order = strcmp(name, apps_names_get(names, names->sorted[middle]));
    if (order == 0) {
      *number_out = names->sorted[middle];
      return true;
    }
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return false;
}
