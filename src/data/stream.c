#include "data/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/memory.h"

#define INPUT ((size_t)1 << 17)

struct pwi_stream {
  const char *path;
  int descriptor;
  enum pwi_packing packing;
  uint64_t taken, position; /* bytes of the file, and of the text */
  ZSTD_DStream *zstd;
  z_stream gzip;
  bool in_midst; /* of a member or frame, which must go on */
  unsigned char *input;
  size_t input_at, input_size;
};

enum pwi_packing pwi_packing_of(const unsigned char *bytes, size_t size) {
  if (size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) return PWI_PACKING_GZIP;
  if (size < 4) return PWI_PACKING_PLAIN;
  uint32_t magic = pwi_get_u32(bytes);
  bool is_zstd = magic == ZSTD_MAGICNUMBER || (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
  return is_zstd ? PWI_PACKING_ZSTD : PWI_PACKING_PLAIN;
}

/* --- the file --------------------------------------------------------------------------------------------------------------- */

pawl_status pwi_file_descriptor(const char *path, int *descriptor_out, uint64_t *size_out, struct pwi_fault *fault) {
  struct stat about;
  int descriptor;
  do descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer would wait */
  while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return pwi_fault_errno(fault, path, errno);
  pawl_status status = PAWL_OK;
  if (fstat(descriptor, &about) < 0)
    status = pwi_fault_errno(fault, path, errno);
  else if (S_ISDIR(about.st_mode))
    status = pwi_fault_errno(fault, path, EISDIR);
  else if (!S_ISREG(about.st_mode))
    status =
        pwi_fault(fault, PAWL_UNSUPPORTED, "%s: not a regular file; data is read in pieces, and more than once", path);
  if (status) {
    close(descriptor);
    return status;
  }
  *descriptor_out = descriptor;
  *size_out = (uint64_t)about.st_size;
  return PAWL_OK;
}

pawl_status pwi_read_at(int descriptor, const char *path, uint64_t offset, void *buffer, size_t size, size_t *read_out,
                        struct pwi_fault *fault) {
  size_t done = 0;
  while (done < size) {
    size_t most = size - done < (size_t)1 << 30 ? size - done : (size_t)1 << 30;
    ssize_t got = pread(descriptor, (char *)buffer + done, most, (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return pwi_fault_errno(fault, path, errno);
    if (got == 0) break;
    done += (size_t)got;
  }
  *read_out = done;
  return PAWL_OK;
}

/* --- decoders --------------------------------------------------------------------------------------------------------------- */

static pawl_status damaged(struct pwi_stream *stream, const char *kind, const char *what, struct pwi_fault *fault) {
  uint64_t at = stream->taken - (stream->input_size - stream->input_at);
  return pwi_fault(fault, PAWL_CORRUPT, "%s: the %s data is damaged near byte %" PRIu64 ": %s", stream->path, kind, at,
                   what);
}

static pawl_status refill(struct pwi_stream *stream, struct pwi_fault *fault) {
  size_t got = 0;
  if (stream->input_at < stream->input_size) return PAWL_OK;
  pawl_status status = pwi_read_at(stream->descriptor, stream->path, stream->taken, stream->input, INPUT, &got, fault);
  if (status) return status;
  stream->taken += got;
  stream->input_at = 0;
  stream->input_size = got;
  return PAWL_OK;
}

static pawl_status unpack_zstd(struct pwi_stream *stream, char *buffer, size_t size, size_t *made_out,
                               struct pwi_fault *fault) {
  ZSTD_inBuffer in = {stream->input, stream->input_size, stream->input_at};
  ZSTD_outBuffer out = {buffer, size, 0};
  size_t left = ZSTD_decompressStream(stream->zstd, &out, &in);
  stream->input_at = in.pos;
  if (ZSTD_isError(left)) return damaged(stream, "zstd", ZSTD_getErrorName(left), fault);
  stream->in_midst = left != 0;
  *made_out = out.pos;
  return PAWL_OK;
}

static pawl_status unpack_gzip(struct pwi_stream *stream, char *buffer, size_t size, size_t *made_out,
                               struct pwi_fault *fault) {
  z_stream *gzip = &stream->gzip;
  uInt room = (uInt)(size < UINT_MAX ? size : UINT_MAX);
  gzip->next_in = stream->input + stream->input_at;
  gzip->avail_in = (uInt)(stream->input_size - stream->input_at);
  gzip->next_out = (Bytef *)buffer;
  gzip->avail_out = room;
  int result = inflate(gzip, Z_NO_FLUSH);
  stream->input_at = stream->input_size - gzip->avail_in;
  if (result == Z_MEM_ERROR) return pwi_fault_plain(fault, PAWL_NO_MEMORY, stream->path);
  if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
    return damaged(stream, "gzip", gzip->msg ? gzip->msg : "no gzip data", fault);
  stream->in_midst = result != Z_STREAM_END;
  if (result == Z_STREAM_END) inflateReset(gzip); /* another may follow */
  *made_out = room - gzip->avail_out;
  return PAWL_OK;
}

/* At least one byte, unless the text ends. */
static pawl_status unpack(struct pwi_stream *stream, char *buffer, size_t size, size_t *made_out,
                          struct pwi_fault *fault) {
  bool is_zstd = stream->packing == PWI_PACKING_ZSTD;
  size_t made = 0;
  while (made == 0) {
    pawl_status status = refill(stream, fault);
    if (status) return status;
    bool ended = stream->input_size == 0;
    if (ended && !stream->in_midst) break;
    status =
        is_zstd ? unpack_zstd(stream, buffer, size, &made, fault) : unpack_gzip(stream, buffer, size, &made, fault);
    if (status) return status;
    if (ended && made == 0 && stream->in_midst)
      return pwi_fault(fault, PAWL_TRUNCATED, "%s: the %s data ends too early; the file is cut off", stream->path,
                       is_zstd ? "zstd" : "gzip");
  }
  *made_out = made;
  return PAWL_OK;
}

/* --- streams ---------------------------------------------------------------------------------------------------------------- */

static void *lend(void *context, unsigned count, unsigned size) {
  (void)context;
  return pwi_alloc_zero(count, size);
}

static void give_back(void *context, void *block) {
  (void)context;
  pwi_free(block);
}

static bool start_decoder(struct pwi_stream *stream) {
  if (stream->packing == PWI_PACKING_PLAIN) return true;
  stream->input = pwi_alloc(INPUT);
  if (!stream->input) return false;
  if (stream->packing == PWI_PACKING_ZSTD) {
    stream->zstd = ZSTD_createDStream();
    return stream->zstd != NULL;
  }
  stream->gzip.zalloc = lend;
  stream->gzip.zfree = give_back;
  return inflateInit2(&stream->gzip, 15 + 16) == Z_OK; /* gzip's header, and no other */
}

pawl_status pwi_stream_open(const char *path, enum pwi_packing packing, struct pwi_stream **stream_out,
                            struct pwi_fault *fault) {
  uint64_t size;
  struct pwi_stream *stream = pwi_alloc_zero(1, sizeof *stream);
  if (!stream) return pwi_fault_plain(fault, PAWL_NO_MEMORY, path);
  stream->path = path;
  stream->packing = packing;
  pawl_status status = pwi_file_descriptor(path, &stream->descriptor, &size, fault);
  if (status) {
    pwi_free(stream);
    return status;
  }
  if (!start_decoder(stream)) {
    pwi_stream_close(stream);
    return pwi_fault_plain(fault, PAWL_NO_MEMORY, path);
  }
  *stream_out = stream;
  return PAWL_OK;
}

void pwi_stream_close(struct pwi_stream *stream) {
  if (!stream) return;
  ZSTD_freeDStream(stream->zstd);
  if (stream->gzip.state) inflateEnd(&stream->gzip);
  close(stream->descriptor);
  pwi_free(stream->input);
  pwi_free(stream);
}

pawl_status pwi_stream_read(struct pwi_stream *stream, void *buffer, size_t size, size_t *read_out,
                            struct pwi_fault *fault) {
  size_t done = 0, made = 0;
  if (stream->packing == PWI_PACKING_PLAIN) {
    pawl_status status = pwi_read_at(stream->descriptor, stream->path, stream->position, buffer, size, &done, fault);
    if (status) return status;
  } else {
    for (; done < size; done += made) {
      pawl_status status = unpack(stream, (char *)buffer + done, size - done, &made, fault);
      if (status) return status;
      if (made == 0) break;
    }
  }
  stream->position += done;
  *read_out = done;
  return PAWL_OK;
}

uint64_t pwi_stream_position(const struct pwi_stream *stream) { return stream->position; }
