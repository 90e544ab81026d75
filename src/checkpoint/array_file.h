/* Arrays in files that other programs read: NumPy's .npy and safetensors.
 *
 * In both formats a head is followed by arrays of numbers, little-endian, row by row. A file is *begun*
 * first: this writes the head, extends the file with zeros to its final size, and sets the offsets of its
 * arrays. Then rows are written in any order; a later row replaces an earlier one. The writer keeps
 * nothing in memory. Rows that are never written stay zeros, which is the value of a missing key.
 *
 *   .npy         one array; format version 1.0 of numpy.lib.format: the magic string, the length of a Python
 *                dictionary, and the dictionary, padded with spaces so that data begin at a multiple of 64
 *                bytes
 *   safetensors  any number of arrays without gaps between them: u64 length of a JSON object, and the
 *                object, padded with spaces so that data begin at a multiple of 8 bytes
 *
 * Threads: as the file. Errors: PAWL_TOO_LARGE (a file beyond 2^63 bytes), PAWL_NO_MEMORY, or as
 * pwi_file_write.
 */
#ifndef PWI_CHECKPOINT_ARRAY_FILE_H
#define PWI_CHECKPOINT_ARRAY_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/files.h"
#include "store/table.h"

struct pwi_array {
  const char *name; /* safetensors only */
  enum pwi_scalar type;
  uint64_t rows;
  /* values per row: the shape is [rows, width]; 0: one value per row, and the shape is [rows] */
  uint32_t width;
  uint64_t offset; /* in the file; set when the file is begun */
};

/* The file must be empty. */
PAWL_MUST_USE pawl_status pwi_npy_begin(struct pwi_file *file, struct pwi_array *array);

/* An entry of the metadata of a safetensors file. */
struct pwi_export_metadata {
  const char *name, *text;
};

/* The file must be empty. Names of arrays are UTF-8 and distinct, and none is "__metadata__". */
PAWL_MUST_USE pawl_status pwi_safetensors_begin(struct pwi_file *file, struct pwi_array *arrays, size_t count,
                                                const struct pwi_export_metadata *metadata, size_t metadata_count);

/* Writes `count` rows, starting with number `row`. PAWL_INVALID if the array has fewer rows. */
PAWL_MUST_USE pawl_status pwi_array_write(struct pwi_file *file, const struct pwi_array *array, uint64_t row,
                                          uint64_t count, const void *values);

/* Bytes of one row, and of all rows. */
size_t pwi_array_row_bytes(const struct pwi_array *array);
PAWL_MUST_USE pawl_status pwi_array_bytes(const struct pwi_array *array, uint64_t *bytes_out);

#endif
