/* The length of the decompressed text of a file.
 *
 * A zstd frame may state it in its header. The frames of a file are found by stepping from block to block,
 * reading three bytes per 128 kB of text and decompressing nothing. gzip states the length modulo 2^32 at
 * the end of each member, but the ends of members are unknown; so gzip files are decompressed and counted,
 * as are zstd frames that were written to a pipe.
 */
#include "data/stream.h"

#include <stdbool.h>
#include <unistd.h>

#include <zstd.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/memory.h"

#define CHUNK ((size_t)1 << 18)

static pawl_status count_all(const char *path, enum pwi_compression packing, uint64_t *length_out,
                             struct pwi_fault *fault) {
  struct pwi_stream *stream;
  size_t got = 0;
  char *chunk = pwi_alloc(CHUNK);
  if (!chunk) return pwi_fault_plain(fault, PAWL_NO_MEMORY, path);
  pawl_status status = pwi_stream_open(path, packing, &stream, fault);
  if (!status) {
    do status = pwi_stream_read(stream, chunk, CHUNK, &got, fault);
    while (!status && got > 0);
    if (!status) *length_out = pwi_stream_position(stream);
    pwi_stream_close(stream);
  }
  pwi_free(chunk);
  return status;
}

/* --- zstd frames ---------------------------------------------------------------------------------------- */

struct frames {
  const char *path;
  int descriptor;
  uint64_t at, size, length;
  bool is_known; /* all frames so far stated their length */
  struct pwi_fault *fault;
};

static pawl_status look(struct frames *frames, uint64_t at, unsigned char *bytes, size_t size, size_t *got_out) {
  return pwi_read_at(frames->descriptor, frames->path, at, bytes, size, got_out, frames->fault);
}

static pawl_status cut_off(struct frames *frames) {
  return pwi_fault(frames->fault, PAWL_TRUNCATED, "%s: the zstd data is truncated", frames->path);
}

/* Magic number, descriptor, window, dictionary, length (RFC 8878, 3.1.1.1). */
static uint64_t header_size(unsigned char descriptor) {
  static const unsigned char dictionary[4] = {0, 1, 2, 4}, length[4] = {0, 2, 4, 8};
  bool is_single = descriptor & 0x20;
  uint64_t size = 5u + !is_single + dictionary[descriptor & 3] + length[descriptor >> 6];
  return size + (descriptor >> 6 == 0 && is_single);
}

/* Steps over blocks, each of which begins with its size in three bytes (RFC 8878, 3.1.1.2). */
static pawl_status step_over_blocks(struct frames *frames, bool has_checksum) {
  for (bool is_last = false; !is_last;) {
    unsigned char bytes[3];
    size_t got;
    pawl_status status = look(frames, frames->at, bytes, sizeof bytes, &got);
    if (status) return status;
    if (got < sizeof bytes) return cut_off(frames);
    uint32_t header = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16;
    is_last = header & 1;
    /* a run takes one byte, whatever its length */
    frames->at += 3 + ((header >> 1 & 3) == 1 ? 1 : header >> 3);
  }
  if (has_checksum) frames->at += 4;
  return frames->at <= frames->size ? PAWL_OK : cut_off(frames);
}

static pawl_status step_over_frame(struct frames *frames) {
  unsigned char head[18];
  size_t got;
  pawl_status status = look(frames, frames->at, head, sizeof head, &got);
  if (status) return status;
  if (got < 5) return cut_off(frames);
  if ((pwi_get_u32(head) & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START) {
    if (got < 8) return cut_off(frames);
    frames->at += 8 + (uint64_t)pwi_get_u32(head + 4);
    return frames->at <= frames->size ? PAWL_OK : cut_off(frames);
  }
  unsigned long long length = ZSTD_getFrameContentSize(head, got);
  frames->is_known = length != ZSTD_CONTENTSIZE_UNKNOWN && length != ZSTD_CONTENTSIZE_ERROR &&
                     pwi_add_u64(frames->length, length, &frames->length);
  if (!frames->is_known) return PAWL_OK;
  frames->at += header_size(head[4]);
  return step_over_blocks(frames, head[4] & 4);
}

static pawl_status add_frames(const char *path, uint64_t *length_out, bool *is_known_out, struct pwi_fault *fault) {
  struct frames frames = {.path = path, .is_known = true, .fault = fault};
  pawl_status status = pwi_file_descriptor(path, &frames.descriptor, &frames.size, fault);
  if (status) return status;
  while (!status && frames.is_known && frames.at < frames.size) status = step_over_frame(&frames);
  close(frames.descriptor);
  if (status) return status;
  *length_out = frames.length;
  *is_known_out = frames.is_known;
  return PAWL_OK;
}

pawl_status pwi_stream_length(const char *path, enum pwi_compression packing, uint64_t *length_out,
                              struct pwi_fault *fault) {
  bool is_known = false;
  pawl_status status = PAWL_OK;
  if (packing == PWI_COMPRESSION_PLAIN) {
    int descriptor;
    status = pwi_file_descriptor(path, &descriptor, length_out, fault);
    if (!status) close(descriptor);
    return status;
  }
  if (packing == PWI_COMPRESSION_ZSTD) status = add_frames(path, length_out, &is_known, fault);
  if (status || is_known) return status;
  return count_all(path, packing, length_out, fault);
}
