#include "data/unpack.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/memory.h"

#define XZ_MEMORY                                                                                                      \
  ((uint64_t)1 << 30) /* `xz -9` needs 65 MB; a file that asks for more than this is taken for an attack */

struct pwi_unpacker {
  enum pwi_compression packing;
  bool is_open; /* the decoder of gzip, xz or bzip2 is open */
  ZSTD_DStream *zstd;
  z_stream gzip;
  lzma_stream xz;
  lzma_allocator xz_memory;
  bz_stream bzip2;
};

/* --- detection ------------------------------------------------------------------------------------------ */

/* `BZh9` alone may be the beginning of a text, so a block or the end of an empty file must follow. */
static bool is_bzip2(const unsigned char *bytes, size_t size) {
  return size >= 10 && memcmp(bytes, "BZh", 3) == 0 && bytes[3] >= '1' && bytes[3] <= '9' &&
         (memcmp(bytes + 4, "\x31\x41\x59\x26\x53\x59", 6) == 0 ||
          memcmp(bytes + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0);
}

enum pwi_compression pwi_compression_of(const unsigned char *bytes, size_t size) {
  if (size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) return PWI_COMPRESSION_GZIP;
  if (size < 4) return PWI_COMPRESSION_PLAIN;
  uint32_t magic = pwi_get_u32(bytes);
  if (magic == ZSTD_MAGICNUMBER || (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START)
    return PWI_COMPRESSION_ZSTD;
  if (size >= 6 && memcmp(bytes,
                          "\xfd"
                          "7zXZ\0",
                          6) == 0)
    return PWI_COMPRESSION_XZ;
  return is_bzip2(bytes, size) ? PWI_COMPRESSION_BZIP2 : PWI_COMPRESSION_PLAIN;
}

const char *pwi_compression_name(enum pwi_compression packing) {
  static const char *const names[] = {"", "gzip", "zstd", "xz", "bzip2"};
  return (size_t)packing < sizeof names / sizeof *names ? names[packing] : "";
}

/* --- beginnings and ends -------------------------------------------------------------------------------- */

static void *lend_gzip(void *context, unsigned count, unsigned size) {
  (void)context;
  return pwi_alloc_zero(count, size);
}

static void *lend_xz(void *context, size_t count, size_t size) {
  (void)context;
  return pwi_alloc_zero(count, size);
}

static void *lend_bzip2(void *context, int count, int size) {
  (void)context;
  return count < 0 || size < 0 ? NULL : pwi_alloc_zero((size_t)count, (size_t)size);
}

static void give_back(void *context, void *block) {
  (void)context;
  pwi_free(block);
}

static bool begin(struct pwi_unpacker *unpacker) {
  switch (unpacker->packing) {
  case PWI_COMPRESSION_GZIP:
    unpacker->gzip = (z_stream){.zalloc = lend_gzip, .zfree = give_back};
    return unpacker->is_open = inflateInit2(&unpacker->gzip, 15 + 16) == Z_OK; /* accept gzip headers only */
  case PWI_COMPRESSION_XZ:
    unpacker->xz_memory = (lzma_allocator){.alloc = lend_xz, .free = give_back};
    unpacker->xz = (lzma_stream)LZMA_STREAM_INIT;
    unpacker->xz.allocator = &unpacker->xz_memory;
    return unpacker->is_open = lzma_stream_decoder(&unpacker->xz, XZ_MEMORY, LZMA_CONCATENATED) == LZMA_OK;
  case PWI_COMPRESSION_BZIP2:
    unpacker->bzip2 = (bz_stream){.bzalloc = lend_bzip2, .bzfree = give_back};
    return unpacker->is_open = BZ2_bzDecompressInit(&unpacker->bzip2, 0, 0) == BZ_OK;
  default:
    unpacker->zstd = ZSTD_createDStream();
    return unpacker->zstd != NULL;
  }
}

pawl_status pwi_unpacker_create(enum pwi_compression packing, struct pwi_unpacker **unpacker_out) {
  struct pwi_unpacker *unpacker = pwi_alloc_zero(1, sizeof *unpacker);
  if (!unpacker) return PAWL_NO_MEMORY;
  unpacker->packing = packing;
  if (!begin(unpacker)) {
    pwi_unpacker_destroy(unpacker);
    return PAWL_NO_MEMORY;
  }
  *unpacker_out = unpacker;
  return PAWL_OK;
}

void pwi_unpacker_destroy(struct pwi_unpacker *unpacker) {
  if (!unpacker) return;
  ZSTD_freeDStream(unpacker->zstd);
  if (unpacker->is_open && unpacker->packing == PWI_COMPRESSION_GZIP) inflateEnd(&unpacker->gzip);
  if (unpacker->is_open && unpacker->packing == PWI_COMPRESSION_XZ) lzma_end(&unpacker->xz);
  if (unpacker->is_open && unpacker->packing == PWI_COMPRESSION_BZIP2) BZ2_bzDecompressEnd(&unpacker->bzip2);
  pwi_free(unpacker);
}

/* --- steps ---------------------------------------------------------------------------------------------- */

static pawl_status damaged(struct pwi_unpack *step, const char *why) {
  step->why = why;
  return PAWL_CORRUPT;
}

static pawl_status step_zstd(struct pwi_unpacker *unpacker, struct pwi_unpack *step) {
  ZSTD_inBuffer in = {step->in, step->in_size, 0};
  ZSTD_outBuffer out = {step->out, step->out_size, 0};
  size_t left = ZSTD_decompressStream(unpacker->zstd, &out, &in);
  step->taken = in.pos;
  if (ZSTD_isError(left)) return damaged(step, ZSTD_getErrorName(left));
  step->in_midst = left != 0;
  step->made = out.pos;
  return PAWL_OK;
}

static unsigned bounded(size_t size) { return size < UINT_MAX ? (unsigned)size : UINT_MAX; }

static pawl_status step_gzip(struct pwi_unpacker *unpacker, struct pwi_unpack *step) {
  z_stream *gzip = &unpacker->gzip;
  unsigned given = bounded(step->in_size), room = bounded(step->out_size);
  gzip->next_in = (Bytef *)(uintptr_t)step->in;
  gzip->avail_in = given;
  gzip->next_out = (Bytef *)step->out;
  gzip->avail_out = room;
  int result = inflate(gzip, Z_NO_FLUSH);
  step->taken = given - gzip->avail_in;
  if (result == Z_MEM_ERROR) return PAWL_NO_MEMORY;
  if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
    return damaged(step, gzip->msg ? gzip->msg : "not gzip data");
  step->in_midst = result != Z_STREAM_END;
  if (result == Z_STREAM_END) inflateReset(gzip); /* another member may follow */
  step->made = room - gzip->avail_out;
  return PAWL_OK;
}

/* The library itself handles several streams and padding between them. It reports the end once it is told
 * that no more input comes. */
static pawl_status step_xz(struct pwi_unpacker *unpacker, struct pwi_unpack *step) {
  lzma_stream *xz = &unpacker->xz;
  xz->next_in = step->in;
  xz->avail_in = step->in_size;
  xz->next_out = (uint8_t *)step->out;
  xz->avail_out = step->out_size;
  lzma_ret result = lzma_code(xz, step->is_last ? LZMA_FINISH : LZMA_RUN);
  step->taken = step->in_size - xz->avail_in;
  step->made = step->out_size - xz->avail_out;
  step->in_midst = result != LZMA_STREAM_END;
  switch (result) {
  case LZMA_OK:
  case LZMA_STREAM_END:
  case LZMA_BUF_ERROR:
    return PAWL_OK;
  case LZMA_MEM_ERROR:
    return PAWL_NO_MEMORY;
  case LZMA_MEMLIMIT_ERROR:
    step->why = "it asks for more than 1 GB of memory";
    return PAWL_TOO_LARGE;
  case LZMA_OPTIONS_ERROR:
    return damaged(step, "it uses unknown options");
  default:
    return damaged(step, "not xz data, or a checksum is wrong");
  }
}

static pawl_status step_bzip2(struct pwi_unpacker *unpacker, struct pwi_unpack *step) {
  bz_stream *bzip2 = &unpacker->bzip2;
  unsigned given = bounded(step->in_size), room = bounded(step->out_size);
  bzip2->next_in = (char *)(uintptr_t)step->in;
  bzip2->avail_in = given;
  bzip2->next_out = step->out;
  bzip2->avail_out = room;
  int result = BZ2_bzDecompress(bzip2);
  step->taken = given - bzip2->avail_in;
  step->made = room - bzip2->avail_out;
  step->in_midst = result != BZ_STREAM_END;
  if (result == BZ_MEM_ERROR) return PAWL_NO_MEMORY;
  if (result == BZ_DATA_ERROR_MAGIC) return damaged(step, "not bzip2 data");
  if (result != BZ_OK && result != BZ_STREAM_END) return damaged(step, "a checksum is wrong");
  if (result != BZ_STREAM_END) return PAWL_OK;
  BZ2_bzDecompressEnd(bzip2); /* another stream may follow */
  unpacker->is_open = false;
  return begin(unpacker) ? PAWL_OK : PAWL_NO_MEMORY;
}

pawl_status pwi_unpacker_step(struct pwi_unpacker *unpacker, struct pwi_unpack *step) {
  step->taken = step->made = 0;
  step->why = "";
  switch (unpacker->packing) {
  case PWI_COMPRESSION_GZIP:
    return step_gzip(unpacker, step);
  case PWI_COMPRESSION_XZ:
    return step_xz(unpacker, step);
  case PWI_COMPRESSION_BZIP2:
    return step_bzip2(unpacker, step);
  default:
    return step_zstd(unpacker, step);
  }
}
