/* Reading archives of untrusted bytes, one block at a time. The checksum of a block is verified before
 * anything else of it is used. */
#include "store/archive_inside.h"

#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"

/* Grows to the largest block so far, at most PWI_ARCHIVE_BLOCK. */
struct block_memory {
  unsigned char *bytes;
  size_t room;
};

struct pwi_archive_reader {
  struct pwi_file *file;
  struct pwi_archive_head head;
  uint64_t head_checksum;
  uint64_t offset;
  uint64_t blocks, plain;
  struct pwi_hasher checksums;
  struct pwi_archive_figures figures;
  struct pwi_block_packer unpacker; /* created for the first compressed block */
  struct block_memory stored, unpacked;
  struct pwi_writer whole; /* a record of several blocks */
  bool ended;
  pawl_status status;
};

/* The contents of the buffer are not kept. */
static pawl_status make_room(struct block_memory *buffer, size_t size) {
  if (size <= buffer->room) return PAWL_OK;
  pwi_free(buffer->bytes);
  buffer->room = 0;
  buffer->bytes = pwi_alloc(size);
  if (!buffer->bytes) return PAWL_NO_MEMORY;
  buffer->room = size;
  return PAWL_OK;
}

/* Reads all bytes, or fails with PAWL_TRUNCATED. */
static pawl_status read_whole(struct pwi_file *file, uint64_t offset, void *bytes, size_t size) {
  size_t got;
  pawl_status status = pwi_file_read(file, offset, bytes, size, &got);
  if (status != PAWL_OK) return status;
  return got == size ? PAWL_OK : PAWL_TRUNCATED;
}

static pawl_status read_head(struct pwi_archive_reader *reader) {
  unsigned char prefix[PWI_ARCHIVE_PREFIX];
  pawl_status status = read_whole(reader->file, 0, prefix, sizeof prefix);
  if (status != PAWL_OK) return status;
  if (memcmp(prefix, PWI_ARCHIVE_MAGIC, strlen(PWI_ARCHIVE_MAGIC)) != 0) return PAWL_CORRUPT;
  size_t size = pwi_get_u32(prefix + 12);
  if (size < sizeof prefix + sizeof(uint64_t) || size > PWI_ARCHIVE_HEAD_MAX) return PAWL_CORRUPT;
  status = make_room(&reader->stored, size);
  if (status == PAWL_OK) status = read_whole(reader->file, 0, reader->stored.bytes, size);
  if (status == PAWL_OK)
    status = pwi_archive_head_decode(reader->stored.bytes, size, &reader->head, &reader->head_checksum);
  reader->offset = size;
  return status;
}

pawl_status pwi_archive_open(struct pwi_file *file, struct pwi_archive_reader **reader_out) {
  struct pwi_archive_reader *reader = pwi_alloc_zero(1, sizeof *reader);
  if (!reader) return PAWL_NO_MEMORY;
  reader->file = file;
  pwi_hasher_init(&reader->checksums, 0);
  pawl_status status = read_head(reader);
  if (status != PAWL_OK) {
    pwi_archive_close(reader);
    return status;
  }
  *reader_out = reader;
  return PAWL_OK;
}

void pwi_archive_close(struct pwi_archive_reader *reader) {
  if (!reader) return;
  pwi_writer_fini(&reader->whole);
  pwi_block_packer_fini(&reader->unpacker);
  pwi_free(reader->unpacked.bytes);
  pwi_free(reader->stored.bytes);
  pwi_free(reader);
}

const struct pwi_archive_head *pwi_archive_head(const struct pwi_archive_reader *reader) { return &reader->head; }

struct pwi_archive_figures pwi_archive_figures(const struct pwi_archive_reader *reader) {
  return reader->figures;
}

/* --- blocks --------------------------------------------------------------------------------------------- */

static pawl_status unpack(struct pwi_archive_reader *reader, const struct pwi_block *block) {
  pawl_status status = reader->unpacker.context ? PAWL_OK : pwi_block_unpacker_init(&reader->unpacker);
  if (status == PAWL_OK) status = make_room(&reader->unpacked, block->plain);
  if (status != PAWL_OK) return status;
  return pwi_block_unpack(&reader->unpacker, reader->stored.bytes, block->stored, reader->unpacked.bytes, block->plain);
}

/* Reads and checks the next block. It is not counted yet, because an END block states the number of blocks
 * before it. */
static pawl_status read_block(struct pwi_archive_reader *reader, struct pwi_block *block,
                              const unsigned char **bytes_out) {
  unsigned char frame[PWI_ARCHIVE_FRAME];
  pawl_status status = read_whole(reader->file, reader->offset, frame, sizeof frame);
  if (status == PAWL_OK) status = pwi_block_decode(frame, block);
  if (status == PAWL_OK) status = make_room(&reader->stored, block->stored);
  if (status == PAWL_OK)
    status = read_whole(reader->file, reader->offset + sizeof frame, reader->stored.bytes, block->stored);
  if (status != PAWL_OK) return status;
  if (pwi_block_checksum(frame, reader->stored.bytes, block->stored, reader->head_checksum) != block->checksum)
    return PAWL_CORRUPT;
  if (block->number != reader->blocks) return PAWL_CORRUPT;
  reader->offset += sizeof frame + block->stored;
  bool packed = block->packing == PWI_PACKING_ZSTD;
  if (packed) status = unpack(reader, block);
  *bytes_out = packed ? reader->unpacked.bytes : reader->stored.bytes;
  return status;
}

static void count_block(struct pwi_archive_reader *reader, const struct pwi_block *block) {
  unsigned char checksum[sizeof(uint64_t)];
  pwi_put_u64(checksum, block->checksum);
  pwi_hasher_add(&reader->checksums, checksum, sizeof checksum);
  reader->blocks++;
  reader->plain += block->plain;
}

/* --- records -------------------------------------------------------------------------------------------- */

/* Reads the rest of a record whose first block is in the buffer. */
static pawl_status read_rest(struct pwi_archive_reader *reader, struct pwi_block block, const unsigned char *bytes) {
  enum pwi_archive_kind kind = block.kind;
  pwi_writer_reset(&reader->whole);
  pwi_write_bytes(&reader->whole, bytes, block.plain);
  while (block.goes_on && reader->whole.status == PAWL_OK) {
    pawl_status status = read_block(reader, &block, &bytes);
    if (status != PAWL_OK) return status;
    if (block.kind != kind || block.plain > PWI_ARCHIVE_RECORD_MAX - reader->whole.size) return PAWL_CORRUPT;
    count_block(reader, &block);
    pwi_write_bytes(&reader->whole, bytes, block.plain);
  }
  return reader->whole.status;
}

static pawl_status check_end(struct pwi_archive_reader *reader, const struct pwi_block *block,
                             const unsigned char *bytes) {
  uint64_t size;
  pawl_status status = pwi_file_size(reader->file, &size);
  if (status != PAWL_OK) return status;
  if (pwi_get_u64(bytes) != reader->blocks || pwi_get_u64(bytes + 8) != reader->plain) return PAWL_CORRUPT;
  if (pwi_get_u64(bytes + 16) != pwi_hasher_value(&reader->checksums)) return PAWL_CORRUPT;
  if (size != reader->offset) return PAWL_CORRUPT;
  reader->figures.size = size;
  reader->figures.plain = reader->plain;
  reader->figures.checksum = block->checksum;
  reader->ended = true;
  return PAWL_OK;
}

static pawl_status read_record(struct pwi_archive_reader *reader, struct pwi_archive_record *record) {
  struct pwi_block block;
  const unsigned char *bytes;
  record->offset = reader->offset;
  pawl_status status = read_block(reader, &block, &bytes);
  if (status != PAWL_OK) return status;
  record->kind = block.kind;
  if (block.kind == PWI_ARCHIVE_END) return check_end(reader, &block, bytes);
  count_block(reader, &block);
  record->bytes = bytes;
  record->size = block.plain;
  reader->figures.records++;
  if (!block.goes_on) return PAWL_OK;
  status = read_rest(reader, block, bytes);
  record->bytes = reader->whole.data;
  record->size = reader->whole.size;
  return status;
}

pawl_status pwi_archive_next(struct pwi_archive_reader *reader, struct pwi_archive_record *record_out) {
  struct pwi_archive_record record = {.kind = PWI_ARCHIVE_END, .offset = reader->offset};
  if (reader->status == PAWL_OK && !reader->ended) reader->status = read_record(reader, &record);
  if (reader->status == PAWL_OK) *record_out = record;
  return reader->status;
}
