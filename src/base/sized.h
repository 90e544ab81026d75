/* Option structs that carry their size.
 *
 * An option struct of the public headers begins with `size_t struct_size`, which its init function sets to the
 * size that the struct has in the program. The library may know a longer or a shorter struct: new options are
 * added at the end, and zero or the default means the behaviour before them.
 */
#ifndef PWI_BASE_SIZED_H
#define PWI_BASE_SIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define PWI_SIZED_MAX 65536 /* bytes of an option struct: anything above is not a size */

/* Writes the defaults, a struct of `known` bytes, to the program's struct of `size` bytes. */
static inline void pwi_sized_init(void *options, size_t size, const void *defaults, size_t known) {
  memset(options, 0, size);
  memcpy(options, defaults, size < known ? size : known);
  memcpy(options, &size, sizeof size);
}

/* Copies the program's struct over `is`, which has `known` bytes and holds the defaults: options that the
 * program does not know keep them. False, with `is` unchanged, if the struct was not initialised, or if the
 * program sets an option that is not known here. */
static inline bool pwi_sized_read(const void *options, void *is, size_t known) {
  const unsigned char *bytes = options;
  size_t size;
  memcpy(&size, options, sizeof size);
  if (size < sizeof size || size > PWI_SIZED_MAX) return false;
  for (size_t i = known; i < size; i++)
    if (bytes[i]) return false;
  memcpy(is, options, size < known ? size : known);
  memcpy(is, &known, sizeof known);
  return true;
}

#endif
