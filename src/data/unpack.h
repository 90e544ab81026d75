/* Decompresses a byte stream: gzip, zstd, xz and bzip2.
 *
 * Consecutive gzip members, zstd frames, xz streams or bzip2 streams form one text. This file does not
 * touch files.
 *
 * Threads: an unpacker belongs to one thread at a time.
 */
#ifndef PWI_DATA_UNPACK_H
#define PWI_DATA_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/export.h>
#include <pawl/status.h>

enum pwi_compression {
  PWI_COMPRESSION_PLAIN,
  PWI_COMPRESSION_GZIP,
  PWI_COMPRESSION_ZSTD,
  PWI_COMPRESSION_XZ,
  PWI_COMPRESSION_BZIP2
};

#define PWI_COMPRESSION_MAGIC 10 /* bytes of a file that pwi_compression_of needs */

/* Detects the compression by the first bytes of a file. */
enum pwi_compression pwi_compression_of(const unsigned char *bytes, size_t size);

/* "gzip", "zstd", "xz", "bzip2"; "" for an uncompressed file. */
const char *pwi_compression_name(enum pwi_compression packing);

struct pwi_unpacker;

/* One decompression step: consumes `taken` bytes of `in`, and writes `made` bytes to `out`. */
struct pwi_unpack {
  const unsigned char *in;
  size_t in_size;
  bool is_last; /* no bytes follow `in` */
  char *out;
  size_t out_size;
  size_t taken, made; /* results */
  bool in_midst;      /* result: a member, frame or stream is incomplete, so more input must follow */
  const char *why;    /* result on failure, static: what is wrong with the bytes */
};

/* `packing` must not be PLAIN. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_unpacker_create(enum pwi_compression packing, struct pwi_unpacker **unpacker_out);
void pwi_unpacker_destroy(struct pwi_unpacker *unpacker); /* NULL is fine */

/* PAWL_CORRUPT, PAWL_NO_MEMORY, PAWL_TOO_LARGE (an xz file that asks for more than 1 GB of memory). */
PAWL_MUST_USE pawl_status pwi_unpacker_step(struct pwi_unpacker *unpacker, struct pwi_unpack *step);

#endif
