/* Decompression of a text, bytes in and bytes out: gzip, zstd, xz and bzip2.
 *
 * Several gzip members, zstd frames, xz streams or bzip2 streams one after another are one text. Files are none of its business.
 *
 * Threads: an unpacker belongs to one at a time.
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

#define PWI_COMPRESSION_MAGIC 10 /* bytes of a file that pwi_compression_of wants to see */

/* By the first bytes of a file. */
enum pwi_compression pwi_compression_of(const unsigned char *bytes, size_t size);

/* "gzip", "zstd", "xz", "bzip2"; "" for a plain one. */
const char *pwi_compression_name(enum pwi_compression packing);

struct pwi_unpacker;

/* One step. `in` is moved over by `*taken_out` bytes, and `*made_out` are written to `out`. */
struct pwi_unpack {
  const unsigned char *in;
  size_t in_size;
  bool is_last; /* nothing comes behind `in` */
  char *out;
  size_t out_size;
  size_t taken, made; /* written */
  bool in_midst;      /* written: of a member, frame or stream, which must go on */
  const char *why;    /* written on failure, static: what is wrong with the bytes */
};

/* PAWL_NO_MEMORY. `packing` is not PLAIN. */
PAWL_MUST_USE pawl_status pwi_unpacker_create(enum pwi_compression packing, struct pwi_unpacker **unpacker_out);
void pwi_unpacker_destroy(struct pwi_unpacker *unpacker); /* NULL is fine */

/* PAWL_CORRUPT, PAWL_NO_MEMORY, PAWL_TOO_LARGE (an xz file that asks for more than 1 GB of memory). */
PAWL_MUST_USE pawl_status pwi_unpacker_step(struct pwi_unpacker *unpacker, struct pwi_unpack *step);

#endif
