/* Reads the text of a file from beginning to end, decompressed if necessary (data/unpack.h).
 *
 * The file is read with read(2) and not mapped: a mapped file that is truncated while it is read would
 * kill the process.
 *
 * Threads: a stream belongs to one thread at a time. Errors: PAWL_NOT_FOUND, PAWL_FORBIDDEN, PAWL_INVALID
 * (a directory), PAWL_IO, PAWL_NO_MEMORY, PAWL_NODE_LIMIT; PAWL_TRUNCATED (the compressed data ends
 * early), PAWL_CORRUPT (it is damaged). The fault names the file.
 */
#ifndef PWI_DATA_STREAM_H
#define PWI_DATA_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>

#include "data/fault.h"
#include "data/unpack.h"

struct pwi_stream;

/* Opens a regular file for reading. */
PAWL_MUST_USE pawl_status pwi_file_descriptor(const char *path, int *descriptor_out, uint64_t *size_out,
                                              struct pwi_fault *fault);

/* As pread, but continues until `size` bytes are read or the file ends. */
PAWL_MUST_USE pawl_status pwi_read_at(int descriptor, const char *path, uint64_t offset, void *buffer, size_t size,
                                      size_t *read_out, struct pwi_fault *fault);

/* `path` is borrowed until close. */
PAWL_MUST_USE pawl_status pwi_stream_open(const char *path, enum pwi_compression packing,
                                          struct pwi_stream **stream_out, struct pwi_fault *fault);
void pwi_stream_close(struct pwi_stream *stream); /* NULL is fine */

/* Reads the next `size` bytes of the text; fewer only at its end. */
PAWL_MUST_USE pawl_status pwi_stream_read(struct pwi_stream *stream, void *buffer, size_t size, size_t *read_out,
                                          struct pwi_fault *fault);

/* Bytes read so far. */
uint64_t pwi_stream_position(const struct pwi_stream *stream);

/* The length of the text. Reads the headers of zstd frames that state their length; decompresses any other
 * compressed file once. */
PAWL_MUST_USE pawl_status pwi_stream_length(const char *path, enum pwi_compression packing, uint64_t *length_out,
                                            struct pwi_fault *fault);

#endif
