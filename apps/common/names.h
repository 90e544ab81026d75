/* A list of names, such as the ids of users or the labels of classes: names by number, and numbers by name. */
#ifndef APPS_COMMON_NAMES_H
#define APPS_COMMON_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>

/* A struct of zeros has no names. */
struct apps_names {
  char *text; /* all names by number, each with a 0 behind it */
  size_t size;
  uint32_t count;
  size_t *starts;   /* offset of each name */
  uint32_t *sorted; /* numbers in the order of their names */
};

/* Takes a text of `count` names, which the allocator of the library has allocated, and sorts them. False: out of memory,
 * the text has another number of names, or two are equal; then the text still belongs to the caller. */
PAWL_MUST_USE bool apps_names_take(struct apps_names *names, char *text, size_t size, uint32_t count);
void apps_names_fini(struct apps_names *names);

const char *apps_names_get(const struct apps_names *names, uint32_t number);

/* False: there is no such name. */
bool apps_names_find(const struct apps_names *names, const char *name, uint32_t *number_out);

#endif
