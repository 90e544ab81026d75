/* The ids of users or items: names by number, and numbers by name. */
#ifndef BPMF_NAMES_H
#define BPMF_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>

/* A struct of zeros has no names. */
struct bpmf_names {
  char *text; /* all names by number, each with a 0 behind it */
  size_t size;
  uint32_t count;
  size_t *starts;   /* offset of each name */
  uint32_t *sorted; /* numbers in the order of their names */
};

/* Takes a text of `count` names, which the allocator of the library has allocated, and sorts them. False: out of memory,
 * the text has another number of names, or two are equal; then the text still belongs to the caller. */
PAWL_MUST_USE bool bpmf_names_take(struct bpmf_names *names, char *text, size_t size, uint32_t count);
void bpmf_names_fini(struct bpmf_names *names);

const char *bpmf_names_get(const struct bpmf_names *names, uint32_t number);

/* False: there is no such name. */
bool bpmf_names_find(const struct bpmf_names *names, const char *name, uint32_t *number_out);

#endif
