#include "store/archive_inside.h"

#include <string.h>

#define ZSTD_STATIC_LINKING_ONLY /* for contexts in our own memory */
#include <zstd.h>

#include "base/bytes.h"
#include "base/memory.h"

/* Level 1: a checkpoint has to keep up with a disk. */
#define ZSTD_LEVEL 1

/* Offsets of the fields of a frame. */
enum {
  KIND = 0,
  PACKING = 1,
  GOES_ON = 2,
  ZERO = 3,
  STORED = 4,
  PLAIN = 8,
  MORE_ZEROS = 12,
  NUMBER = 16,
  CHECKSUM = 24
};

bool pwi_checkpoint_name_is_valid(const char *name) {
  static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  size_t length = strspn(name, allowed);
  return length > 0 && length <= PWI_CHECKPOINT_NAME_MAX && name[length] == '\0' && name[0] != '.';
}

/* --- blocks --------------------------------------------------------------------------------------------- */

void pwi_block_encode(const struct pwi_block *block, unsigned char frame[PWI_ARCHIVE_FRAME]) {
  memset(frame, 0, PWI_ARCHIVE_FRAME);
  frame[KIND] = (unsigned char)block->kind;
  frame[PACKING] = (unsigned char)block->packing;
  frame[GOES_ON] = block->goes_on;
  pwi_put_u32(frame + STORED, block->stored);
  pwi_put_u32(frame + PLAIN, block->plain);
  pwi_put_u64(frame + NUMBER, block->number);
}

static bool sizes_fit(const struct pwi_block *block) {
  if (block->plain == 0 || block->plain > PWI_ARCHIVE_BLOCK) return false;
  if (block->kind == PWI_ARCHIVE_END)
    return block->plain == PWI_ARCHIVE_END_BYTES && block->packing == PWI_PACKING_PLAIN &&
           block->stored == block->plain && !block->goes_on;
  if (block->goes_on && block->plain != PWI_ARCHIVE_BLOCK) return false;
  return block->packing == PWI_PACKING_PLAIN ? block->stored == block->plain
                                             : block->stored > 0 && block->stored < block->plain;
}

pawl_status pwi_block_decode(const unsigned char frame[PWI_ARCHIVE_FRAME], struct pwi_block *block_out) {
  if (frame[KIND] < PWI_ARCHIVE_CHUNK || frame[KIND] > PWI_ARCHIVE_END) return PAWL_CORRUPT;
  if (frame[PACKING] > PWI_PACKING_ZSTD || frame[GOES_ON] > 1) return PAWL_CORRUPT;
  if (frame[ZERO] != 0 || pwi_get_u32(frame + MORE_ZEROS) != 0) return PAWL_CORRUPT;
  struct pwi_block block = {
      .kind = (enum pwi_archive_kind)frame[KIND],
      .packing = (enum pwi_block_packing)frame[PACKING],
      .goes_on = frame[GOES_ON] == 1,
      .stored = pwi_get_u32(frame + STORED),
      .plain = pwi_get_u32(frame + PLAIN),
      .number = pwi_get_u64(frame + NUMBER),
      .checksum = pwi_get_u64(frame + CHECKSUM),
  };
  if (!sizes_fit(&block)) return PAWL_CORRUPT;
  *block_out = block;
  return PAWL_OK;
}

uint64_t pwi_block_checksum(const unsigned char frame[PWI_ARCHIVE_FRAME], const void *stored, size_t size,
                            uint64_t head_checksum) {
  return pwi_hash(stored, size, pwi_hash(frame, CHECKSUM, head_checksum));
}

/* --- the head ------------------------------------------------------------------------------------------- */

void pwi_archive_head_encode(const struct pwi_archive_head *head, struct pwi_writer *writer, uint64_t *checksum_out) {
  size_t start = writer->size;
  pwi_write_bytes(writer, PWI_ARCHIVE_MAGIC, strlen(PWI_ARCHIVE_MAGIC));
  pwi_write_u32(writer, PWI_ARCHIVE_VERSION);
  pwi_write_u32(writer, 0);
  pwi_write_u64(writer, head->cluster);
  pwi_write_u64(writer, head->checkpoint);
  pwi_write_u64(writer, head->node);
  pwi_write_u64(writer, head->salt);
  pwi_write_text(writer, head->name);
  pwi_write_text(writer, head->base);
  if (writer->status != PAWL_OK) return;
  size_t size = writer->size - start;
  pwi_put_u32(writer->data + start + 12, (uint32_t)(size + sizeof(uint64_t)));
  *checksum_out = pwi_hash(writer->data + start, size, 0);
  pwi_write_u64(writer, *checksum_out);
}

static pawl_status read_fields(const unsigned char *bytes, size_t size, struct pwi_archive_head *head) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  head->cluster = pwi_read_u64(&reader);
  head->checkpoint = pwi_read_u64(&reader);
  head->node = pwi_read_u64(&reader);
  head->salt = pwi_read_u64(&reader);
  pwi_read_text(&reader, head->name, sizeof head->name);
  pwi_read_text(&reader, head->base, sizeof head->base);
  if (pwi_reader_end(&reader) != PAWL_OK || !pwi_checkpoint_name_is_valid(head->name)) return PAWL_CORRUPT;
  return head->base[0] == '\0' || pwi_checkpoint_name_is_valid(head->base) ? PAWL_OK : PAWL_CORRUPT;
}

/* The checksum is checked before the version, so that damage is not mistaken for a later version. */
pawl_status pwi_archive_head_decode(const unsigned char *bytes, size_t size, struct pwi_archive_head *head_out,
                                    uint64_t *checksum_out) {
  struct pwi_archive_head head = {0};
  size_t fields = size - sizeof(uint64_t);
  uint64_t checksum = pwi_get_u64(bytes + fields);
  if (pwi_hash(bytes, fields, 0) != checksum) return PAWL_CORRUPT;
  if (pwi_get_u32(bytes + 8) != PWI_ARCHIVE_VERSION) return PAWL_UNSUPPORTED;
  pawl_status status = read_fields(bytes + PWI_ARCHIVE_PREFIX, fields - PWI_ARCHIVE_PREFIX, &head);
  if (status != PAWL_OK) return status;
  *head_out = head;
  *checksum_out = checksum;
  return PAWL_OK;
}

/* --- cuts ----------------------------------------------------------------------------------------------- */

pawl_status pwi_archive_write_cut(struct pwi_archive_writer *writer, const struct pwi_archive_cut *cut) {
  unsigned char bytes[PWI_ARCHIVE_CUT_BYTES];
  if (pawl_range_is_empty(cut->positions)) return PAWL_INVALID;
  pwi_put_u64(bytes, cut->positions.begin);
  pwi_put_u64(bytes + 8, cut->positions.end);
  pwi_put_u64(bytes + 16, cut->epoch);
  pwi_put_u64(bytes + 24, cut->sequence);
  return pwi_archive_write(writer, PWI_ARCHIVE_CUT, bytes, sizeof bytes);
}

pawl_status pwi_archive_read_cut(const struct pwi_archive_record *record, struct pwi_archive_cut *cut_out) {
  if (record->kind != PWI_ARCHIVE_CUT || record->size != PWI_ARCHIVE_CUT_BYTES) return PAWL_CORRUPT;
  const unsigned char *bytes = record->bytes;
  struct pawl_range positions = pawl_range_of(pwi_get_u64(bytes), pwi_get_u64(bytes + 8));
  if (pawl_range_is_empty(positions)) return PAWL_CORRUPT;
  *cut_out = (struct pwi_archive_cut){positions, pwi_get_u64(bytes + 16), pwi_get_u64(bytes + 24)};
  return PAWL_OK;
}

/* --- packing -------------------------------------------------------------------------------------------- */

pawl_status pwi_block_packer_init(struct pwi_block_packer *packer) {
  size_t size = ZSTD_estimateCCtxSize(ZSTD_LEVEL);
  packer->memory = pwi_alloc(size);
  packer->context = packer->memory ? ZSTD_initStaticCCtx(packer->memory, size) : NULL;
  return packer->context ? PAWL_OK : PAWL_NO_MEMORY;
}

pawl_status pwi_block_unpacker_init(struct pwi_block_packer *packer) {
  size_t size = ZSTD_estimateDCtxSize();
  packer->memory = pwi_alloc(size);
  packer->context = packer->memory ? ZSTD_initStaticDCtx(packer->memory, size) : NULL;
  return packer->context ? PAWL_OK : PAWL_NO_MEMORY;
}

void pwi_block_packer_fini(struct pwi_block_packer *packer) {
  pwi_free(packer->memory);
  *packer = (struct pwi_block_packer){0};
}

size_t pwi_block_pack(struct pwi_block_packer *packer, const void *bytes, size_t size, void *out) {
  size_t packed = ZSTD_compressCCtx(packer->context, out, size - 1, bytes, size, ZSTD_LEVEL);
  return ZSTD_isError(packed) ? 0 : packed;
}

/* The library would also accept several frames and frames of its early versions; this format permits exactly
 * one standard frame. */
pawl_status pwi_block_unpack(struct pwi_block_packer *packer, const void *bytes, size_t size, void *out, size_t plain) {
  if (size < sizeof(uint32_t) || pwi_get_u32(bytes) != ZSTD_MAGICNUMBER) return PAWL_CORRUPT;
  if (ZSTD_findFrameCompressedSize(bytes, size) != size) return PAWL_CORRUPT;
  return ZSTD_decompressDCtx(packer->context, out, plain, bytes, size) == plain ? PAWL_OK : PAWL_CORRUPT;
}
