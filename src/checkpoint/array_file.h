/* Vectors as files that other programs read: NumPy's .npy and safetensors.
 *
 * Both formats are a head and then arrays of numbers, little-endian, row by row. So a file is *begun*, which writes the
 * head, makes the file as long as it will be, all zeros, and says where its arrays lie; then rows are written, in any
 * order, those that come later over those that came before. Nothing has to be held in memory, and rows that are never
 * written stay zeros, which is what a missing key reads as.
 *
 *   .npy         one array; format version 1.0 of numpy.lib.format: the magic string, the length of a Python dictionary,
 *                and the dictionary, padded with spaces so that data begin at a multiple of 64 bytes
 *   safetensors  any number of arrays, which lie behind one another without gaps: u64 length of a JSON object, and the
 *                object, padded with spaces so that data begin at a multiple of 8 bytes
 *
 * Threads: as the file. Errors: PAWL_TOO_LARGE (a file beyond 2^63 bytes), PAWL_NO_MEMORY, or as pwi_file_write.
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
  uint32_t width;  /* values in a row: the shape is [rows, width]. 0: one value, and the shape is [rows] */
  uint64_t offset; /* in the file; set when it is begun */
};

/* The file is empty. */
PAWL_MUST_USE pawl_status pwi_npy_begin(struct pwi_file *file, struct pwi_array *array);

/* Something to say about the file, besides: text by text. */
struct pwi_export_metadata {
  const char *name, *text;
};

/* The same. Names of arrays are UTF-8, no two are the same, and none is "__metadata__". */
PAWL_MUST_USE pawl_status pwi_safetensors_begin(struct pwi_file *file, struct pwi_array *arrays, size_t count,
                                                const struct pwi_export_metadata *metadata, size_t metadata_count);

/* Writes `count` rows from number `row` on. PAWL_INVALID if there are not so many. */
PAWL_MUST_USE pawl_status pwi_array_write(struct pwi_file *file, const struct pwi_array *array, uint64_t row,
                                          uint64_t count, const void *values);

/* Bytes of a row, and of all of them. */
size_t pwi_array_row_bytes(const struct pwi_array *array);
PAWL_MUST_USE pawl_status pwi_array_bytes(const struct pwi_array *array, uint64_t *bytes_out);

#endif
