/* Writing archives. Small blocks are collected in a buffer; large blocks are written directly. */
#include "store/archive_inside.h"

#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"

#define BUFFER ((size_t)256 << 10)
#define DIRECT ((size_t)64 << 10) /* blocks of at least this size are written without a copy */

struct pwi_archive_writer {
  struct pwi_file *file;
  uint64_t head_checksum;
  uint64_t offset; /* bytes written to the file; the buffer follows them */
  uint64_t blocks, records, plain;
  struct pwi_hasher checksums;
  struct pwi_block_packer packer;
  unsigned char *packed; /* NULL: blocks are stored as they are */
  size_t used;
  pawl_status status;
  unsigned char buffer[BUFFER];
};

static pawl_status begin_file(struct pwi_archive_writer *writer, const struct pwi_archive_head *head) {
  struct pwi_writer bytes = {0};
  pwi_archive_head_encode(head, &bytes, &writer->head_checksum);
  pawl_status status = bytes.status;
  if (status == PAWL_OK) {
    memcpy(writer->buffer, bytes.data, bytes.size);
    writer->used = bytes.size;
  }
  pwi_writer_fini(&bytes);
  return status;
}

static pawl_status begin_packing(struct pwi_archive_writer *writer) {
  writer->packed = pwi_alloc(PWI_ARCHIVE_BLOCK);
  return writer->packed ? pwi_block_packer_init(&writer->packer) : PAWL_NO_MEMORY;
}

pawl_status pwi_archive_create(struct pwi_file *file, const struct pwi_archive_head *head, bool pack,
                               struct pwi_archive_writer **writer_out) {
  if (!pwi_checkpoint_name_is_valid(head->name)) return PAWL_INVALID;
  if (head->base[0] != '\0' && !pwi_checkpoint_name_is_valid(head->base)) return PAWL_INVALID;
  struct pwi_archive_writer *writer = pwi_alloc_zero(1, sizeof *writer);
  if (!writer) return PAWL_NO_MEMORY;
  writer->file = file;
  pwi_hasher_init(&writer->checksums, 0);
  pawl_status status = begin_file(writer, head);
  if (status == PAWL_OK && pack) status = begin_packing(writer);
  if (status != PAWL_OK) {
    pwi_archive_writer_destroy(writer);
    return status;
  }
  *writer_out = writer;
  return PAWL_OK;
}

void pwi_archive_writer_destroy(struct pwi_archive_writer *writer) {
  if (!writer) return;
  pwi_block_packer_fini(&writer->packer);
  pwi_free(writer->packed);
  pwi_free(writer);
}

static pawl_status put(struct pwi_archive_writer *writer, const void *bytes, size_t size) {
  pawl_status status = pwi_file_write(writer->file, writer->offset, bytes, size);
  if (status == PAWL_OK) writer->offset += size;
  return status;
}

static pawl_status flush(struct pwi_archive_writer *writer) {
  pawl_status status = writer->used > 0 ? put(writer, writer->buffer, writer->used) : PAWL_OK;
  if (status == PAWL_OK) writer->used = 0;
  return status;
}

static void gather(struct pwi_archive_writer *writer, const void *bytes, size_t size) {
  memcpy(writer->buffer + writer->used, bytes, size);
  writer->used += size;
}

static pawl_status write_framed(struct pwi_archive_writer *writer, const unsigned char *frame, const void *stored,
                                size_t size) {
  bool direct = size >= DIRECT;
  size_t gathered = PWI_ARCHIVE_FRAME + (direct ? 0 : size);
  pawl_status status = BUFFER - writer->used < gathered ? flush(writer) : PAWL_OK;
  if (status != PAWL_OK) return status;
  gather(writer, frame, PWI_ARCHIVE_FRAME);
  if (!direct) {
    gather(writer, stored, size);
    return PAWL_OK;
  }
  status = flush(writer);
  return status == PAWL_OK ? put(writer, stored, size) : status;
}

static pawl_status write_block(struct pwi_archive_writer *writer, enum pwi_archive_kind kind, bool goes_on,
                               const void *bytes, size_t size) {
  unsigned char frame[PWI_ARCHIVE_FRAME];
  const void *stored = bytes;
  size_t packed =
      writer->packed && kind == PWI_ARCHIVE_CHUNK ? pwi_block_pack(&writer->packer, bytes, size, writer->packed) : 0;
  struct pwi_block block = {.kind = kind,
                            .packing = packed > 0 ? PWI_PACKING_ZSTD : PWI_PACKING_PLAIN,
                            .goes_on = goes_on,
                            .stored = (uint32_t)(packed > 0 ? packed : size),
                            .plain = (uint32_t)size,
                            .number = writer->blocks};
  if (packed > 0) stored = writer->packed;
  pwi_block_encode(&block, frame);
  uint64_t checksum = pwi_block_checksum(frame, stored, block.stored, writer->head_checksum);
  pwi_put_u64(frame + PWI_ARCHIVE_FRAME - sizeof checksum, checksum);
  pawl_status status = write_framed(writer, frame, stored, block.stored);
  if (status != PAWL_OK) return status;
  pwi_hasher_add(&writer->checksums, frame + PWI_ARCHIVE_FRAME - sizeof checksum, sizeof checksum);
  writer->blocks++;
  writer->plain += size;
  return PAWL_OK;
}

pawl_status pwi_archive_write(struct pwi_archive_writer *writer, enum pwi_archive_kind kind, const void *bytes,
                              size_t size) {
  const unsigned char *at = bytes;
  if (size == 0 || (kind != PWI_ARCHIVE_CHUNK && kind != PWI_ARCHIVE_CUT)) return PAWL_INVALID;
  if (size > PWI_ARCHIVE_RECORD_MAX) return PAWL_TOO_LARGE;
  for (size_t left = size, step; left > 0 && writer->status == PAWL_OK; left -= step, at += step) {
    step = left < PWI_ARCHIVE_BLOCK ? left : PWI_ARCHIVE_BLOCK;
    writer->status = write_block(writer, kind, step < left, at, step);
  }
  if (writer->status == PAWL_OK) writer->records++;
  return writer->status;
}

uint64_t pwi_archive_written(const struct pwi_archive_writer *writer) { return writer->offset + writer->used; }

pawl_status pwi_archive_finish(struct pwi_archive_writer *writer, struct pwi_archive_figures *figures_out) {
  unsigned char end[PWI_ARCHIVE_END_BYTES];
  uint64_t plain = writer->plain;
  if (writer->status != PAWL_OK) return writer->status;
  pwi_put_u64(end, writer->blocks);
  pwi_put_u64(end + 8, plain);
  pwi_put_u64(end + 16, pwi_hasher_value(&writer->checksums));
  writer->status = write_block(writer, PWI_ARCHIVE_END, false, end, sizeof end);
  if (writer->status != PAWL_OK) return writer->status;
  uint64_t checksum = pwi_get_u64(writer->buffer + writer->used - sizeof end - sizeof checksum);
  writer->status = flush(writer);
  if (writer->status == PAWL_OK) writer->status = pwi_file_sync(writer->file);
  if (writer->status != PAWL_OK) return writer->status;
  *figures_out = (struct pwi_archive_figures){writer->offset, writer->records, plain, checksum};
  writer->status = PAWL_INVALID; /* nothing may follow the end */
  return PAWL_OK;
}
