#include "data/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define INPUT ((size_t)1 << 17)

struct pwi_stream {
  const char *path;
  int descriptor;
  enum pwi_compression packing;
  uint64_t taken, position; /* bytes consumed from the file, bytes produced of the text */
  struct pwi_unpacker *unpacker;
  bool in_midst; /* a member, frame or stream is incomplete */
  unsigned char *input;
  size_t input_at, input_size;
};

/* --- the file ------------------------------------------------------------------------------------------- */

pawl_status pwi_file_descriptor(const char *path, int *descriptor_out, uint64_t *size_out, struct pwi_fault *fault) {
  struct stat about;
  int descriptor;
  /* opening a pipe without a writer would block */
  do descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return pwi_fault_errno(fault, path, errno);
  pawl_status status = PAWL_OK;
  if (fstat(descriptor, &about) < 0)
    status = pwi_fault_errno(fault, path, errno);
  else if (S_ISDIR(about.st_mode))
    status = pwi_fault_errno(fault, path, EISDIR);
  else if (!S_ISREG(about.st_mode))
    status =
        pwi_fault(fault, PAWL_UNSUPPORTED, "%s: not a regular file; data is read in pieces and more than once", path);
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

/* --- decompression -------------------------------------------------------------------------------------- */

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

static pawl_status explain(struct pwi_stream *stream, pawl_status status, const char *why, struct pwi_fault *fault) {
  uint64_t at = stream->taken - (stream->input_size - stream->input_at);
  const char *name = pwi_compression_name(stream->packing);
  if (status == PAWL_NO_MEMORY) return pwi_fault_plain(fault, status, stream->path);
  if (status != PAWL_CORRUPT)
    return pwi_fault(fault, status, "%s: the %s data cannot be read: %s", stream->path, name, why);
  return pwi_fault(fault, status, "%s: the %s data is damaged near byte %" PRIu64 ": %s", stream->path, name, at, why);
}

static pawl_status step(struct pwi_stream *stream, char *buffer, size_t size, size_t *made_out,
                        struct pwi_fault *fault) {
  struct pwi_unpack step = {.in = stream->input + stream->input_at,
                            .in_size = stream->input_size - stream->input_at,
                            .is_last = stream->input_size == 0,
                            .out = buffer,
                            .out_size = size};
  pawl_status status = pwi_unpacker_step(stream->unpacker, &step);
  stream->input_at += step.taken;
  if (status) return explain(stream, status, step.why, fault);
  stream->in_midst = step.in_midst;
  *made_out = step.made;
  return PAWL_OK;
}

/* Produces at least one byte, unless the text ends. */
static pawl_status unpack(struct pwi_stream *stream, char *buffer, size_t size, size_t *made_out,
                          struct pwi_fault *fault) {
  size_t made = 0;
  while (made == 0) {
    pawl_status status = refill(stream, fault);
    if (status) return status;
    bool ended = stream->input_size == 0;
    if (ended && !stream->in_midst) break;
    status = step(stream, buffer, size, &made, fault);
    if (status) return status;
    if (ended && made == 0 && stream->in_midst)
      return pwi_fault(fault, PAWL_TRUNCATED, "%s: the %s data is truncated", stream->path,
                       pwi_compression_name(stream->packing));
  }
  *made_out = made;
  return PAWL_OK;
}

/* --- streams -------------------------------------------------------------------------------------------- */

static bool start_decoder(struct pwi_stream *stream) {
  if (stream->packing == PWI_COMPRESSION_PLAIN) return true;
  stream->input = pwi_alloc(INPUT);
  return stream->input && pwi_unpacker_create(stream->packing, &stream->unpacker) == PAWL_OK;
}

pawl_status pwi_stream_open(const char *path, enum pwi_compression packing, struct pwi_stream **stream_out,
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
  pwi_unpacker_destroy(stream->unpacker);
  close(stream->descriptor);
  pwi_free(stream->input);
  pwi_free(stream);
}

pawl_status pwi_stream_read(struct pwi_stream *stream, void *buffer, size_t size, size_t *read_out,
                            struct pwi_fault *fault) {
  size_t done = 0, made = 0;
  if (stream->packing == PWI_COMPRESSION_PLAIN) {
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
