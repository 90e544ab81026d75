/* Names that are numbered from 0 in the order in which they are added.
 *
 * The names lie one behind another, each with a 0 behind it. A hash table leads from a name to its number.
 * Threads: one that adds, or any number that read.
 */
#ifndef PWI_DATA_ID_NAMES_H
#define PWI_DATA_ID_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>

/* A struct of zeros has no names. */
struct pwi_id_names {
  char *text;
  size_t size, room;
  size_t *starts; /* offset of each name in the text */
  size_t starts_room;
  uint32_t count;
  uint32_t *slots;   /* number of a name and 1; 0: free */
  size_t slot_count; /* a power of two, at least twice `count` */
};

/* The number of a name of `size` bytes, none of them 0, which is added if it is new. False: out of memory, or 2^32 - 1 names. */
PAWL_MUST_USE bool pwi_id_names_add(struct pwi_id_names *names, const char *name, size_t size, uint32_t *number_out);

/* False: there is no such name. */
bool pwi_id_names_find(const struct pwi_id_names *names, const char *name, size_t size, uint32_t *number_out);

const char *pwi_id_names_get(const struct pwi_id_names *names, uint32_t number);
void pwi_id_names_fini(struct pwi_id_names *names);

#endif
