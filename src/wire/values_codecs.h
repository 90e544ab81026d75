/* Shared by values.c and the files of the single codecs; private to them. */
#ifndef PWI_WIRE_VALUES_CODECS_H
#define PWI_WIRE_VALUES_CODECS_H

#include "wire/values.h"
#include "wire/values_kernels.h"

struct pwi_codec {
  const struct pwi_kernels *kernels;
  void *lz4;                      /* state of LZ4's compressor */
  void *zstd_memory[2];           /* memory of the next two fields */
  struct ZSTD_CCtx_s *zstd_write; /* to compress */
  struct ZSTD_DCtx_s *zstd_read;  /* to decompress */
};

/* The type and size of an array of values. */
struct pwi_shape {
  enum pwi_value_type type;
  size_t count;
  size_t value_size;
  size_t bytes; /* count * value_size */
};

/* One codec. values.c checks before a call of encode or decode that the codec supports the type, that the
 * count is not 0, that its size in bytes does not overflow, and that `room` is at least the bound. The data
 * of a decoder is untrusted. */
struct pwi_codec_ops {
  const char *name;
  bool is_lossy;
  bool (*bound)(const struct pwi_shape *shape, size_t *bound_out); /* false if it does not fit */
  pawl_status (*encode)(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *values,
                        void *buffer, size_t room, size_t *size_out);
  pawl_status (*decode)(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *data, size_t size,
                        void *values);
};

extern const struct pwi_codec_ops pwi_codec_bitmap; /* values_bitmap.c */
extern const struct pwi_codec_ops pwi_codec_f16;    /* values_narrow.c */
extern const struct pwi_codec_ops pwi_codec_bf16;
extern const struct pwi_codec_ops pwi_codec_int8; /* values_int8.c */
extern const struct pwi_codec_ops pwi_codec_lz4;  /* values_packed.c */
extern const struct pwi_codec_ops pwi_codec_zstd;
extern const struct pwi_codec_ops pwi_codec_fixed; /* values_fixed.c */

/* Allocates the state of the compressors in a zeroed workspace. After a failure nothing is allocated. */
pawl_status pwi_packed_init(struct pwi_codec *workspace);
void pwi_packed_fini(struct pwi_codec *workspace);

static inline pawl_status pwi_size_must_be(size_t size, size_t needed) {
  if (size == needed) return PAWL_OK;
  return size < needed ? PAWL_TRUNCATED : PAWL_CORRUPT;
}

/* `count` / `step`, rounded up. */
static inline size_t pwi_pieces(size_t count, size_t step) { return count / step + (count % step != 0); }

#endif
