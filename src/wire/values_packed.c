/* LZ4 and ZSTD: compression of the raw bytes. All state is allocated with the workspace. */
#include "wire/values_codecs.h"

#include <string.h>

#include <lz4.h>
#define ZSTD_STATIC_LINKING_ONLY /* for contexts in our own memory */
#include <zstd.h>
#include <zstd_errors.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/memory.h"

#define LZ4_BLOCK ((size_t)1 << 20)
#define LZ4_LENGTH sizeof(uint32_t)

/* Level 1 is the fastest level with entropy coding. Slower levels do not pay off on fast links. */
#define ZSTD_LEVEL 1

pawl_status pwi_packed_init(struct pwi_codec *workspace) {
  size_t write_size = ZSTD_estimateCCtxSize(ZSTD_LEVEL), read_size = ZSTD_estimateDCtxSize();
  workspace->lz4 = pwi_alloc((size_t)LZ4_sizeofState());
  workspace->zstd_memory[0] = pwi_alloc(write_size);
  workspace->zstd_memory[1] = pwi_alloc(read_size);
  if (!workspace->lz4 || !workspace->zstd_memory[0] || !workspace->zstd_memory[1]) goto release;
  workspace->zstd_write = ZSTD_initStaticCCtx(workspace->zstd_memory[0], write_size);
  workspace->zstd_read = ZSTD_initStaticDCtx(workspace->zstd_memory[1], read_size);
  if (workspace->zstd_write && workspace->zstd_read) return PAWL_OK;
release:
  pwi_packed_fini(workspace);
  return PAWL_NO_MEMORY;
}

void pwi_packed_fini(struct pwi_codec *workspace) {
  pwi_free(workspace->zstd_memory[1]);
  pwi_free(workspace->zstd_memory[0]);
  pwi_free(workspace->lz4);
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static bool lz4_bound(const struct pwi_shape *shape, size_t *bound_out) {
  return pwi_add_size(shape->bytes, pwi_pieces(shape->bytes, LZ4_BLOCK) * LZ4_LENGTH, bound_out);
}

static pawl_status lz4_encode(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *values,
                              void *buffer, size_t room, size_t *size_out) {
  (void)room;
  const char *in = values;
  char *out = buffer;
  for (size_t done = 0; done < shape->bytes; done += LZ4_BLOCK, in += LZ4_BLOCK) {
    int size = (int)smaller(LZ4_BLOCK, shape->bytes - done);
    /* The limit is one byte less than the block: incompressible data is abandoned early and stored. */
    int packed = LZ4_compress_fast_extState(workspace->lz4, in, out + LZ4_LENGTH, size, size - 1, 1);
    if (packed <= 0) {
      packed = size;
      memcpy(out + LZ4_LENGTH, in, (size_t)size);
    }
    pwi_put_u32(out, (uint32_t)packed);
    out += LZ4_LENGTH + (size_t)packed;
  }
  *size_out = (size_t)(out - (char *)buffer);
  return PAWL_OK;
}

/* Decodes one block of `length` bytes to exactly `size` bytes. */
static pawl_status lz4_block_decode(const char *data, size_t length, char *out, size_t size) {
  if (length == size) {
    memcpy(out, data, size);
    return PAWL_OK;
  }
  return LZ4_decompress_safe(data, out, (int)length, (int)size) == (int)size ? PAWL_OK : PAWL_CORRUPT;
}

static pawl_status lz4_decode(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *data,
                              size_t size, void *values) {
  (void)workspace;
  const char *in = data;
  char *out = values;
  for (size_t done = 0; done < shape->bytes; done += LZ4_BLOCK) {
    size_t block = smaller(LZ4_BLOCK, shape->bytes - done);
    if (size < LZ4_LENGTH) return PAWL_TRUNCATED;
    size_t length = pwi_get_u32(in);
    if (length == 0 || length > block) return PAWL_CORRUPT;
    if (length > size - LZ4_LENGTH) return PAWL_TRUNCATED;
    pawl_status status = lz4_block_decode(in + LZ4_LENGTH, length, out + done, block);
    if (status != PAWL_OK) return status;
    in += LZ4_LENGTH + length;
    size -= LZ4_LENGTH + length;
  }
  return size == 0 ? PAWL_OK : PAWL_CORRUPT;
}

/* At least ZSTD_COMPRESSBOUND, which does not check for overflow. */
static bool zstd_bound(const struct pwi_shape *shape, size_t *bound_out) {
  return pwi_add_size(shape->bytes, shape->bytes / 256 + 128, bound_out);
}

static pawl_status zstd_encode(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *values,
                               void *buffer, size_t room, size_t *size_out) {
  size_t size = ZSTD_compressCCtx(workspace->zstd_write, buffer, room, values, shape->bytes, ZSTD_LEVEL);
  if (ZSTD_isError(size))
    return ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation ? PAWL_NO_MEMORY : PAWL_INVALID;
  *size_out = size;
  return PAWL_OK;
}

static pawl_status zstd_fault(size_t code) {
  return ZSTD_getErrorCode(code) == ZSTD_error_srcSize_wrong ? PAWL_TRUNCATED : PAWL_CORRUPT;
}

/* The library would also accept several frames, skippable frames and frames of its early versions. The wire
 * format permits exactly one standard frame, so that all bytes have only one interpretation. */
static pawl_status zstd_decode(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *data,
                               size_t size, void *values) {
  if (size < sizeof(uint32_t)) return PAWL_TRUNCATED;
  if (pwi_get_u32(data) != ZSTD_MAGICNUMBER) return PAWL_CORRUPT;
  size_t frame = ZSTD_findFrameCompressedSize(data, size);
  if (ZSTD_isError(frame)) return zstd_fault(frame);
  if (frame != size) return PAWL_CORRUPT;
  size_t bytes = ZSTD_decompressDCtx(workspace->zstd_read, values, shape->bytes, data, size);
  if (ZSTD_isError(bytes)) return zstd_fault(bytes);
  return bytes == shape->bytes ? PAWL_OK : PAWL_CORRUPT;
}

const struct pwi_codec_ops pwi_codec_lz4 = {"lz4", false, lz4_bound, lz4_encode, lz4_decode};
const struct pwi_codec_ops pwi_codec_zstd = {"zstd", false, zstd_bound, zstd_encode, zstd_decode};
