/* What the writer and the reader of archives share: the layout of heads and blocks, and packing. See archive.h. */
#ifndef PWI_STORE_ARCHIVE_INSIDE_H
#define PWI_STORE_ARCHIVE_INSIDE_H

#include "base/cursor.h"
#include "base/hash.h"
#include "store/archive.h"

#define PWI_ARCHIVE_MAGIC "pawlsave"
#define PWI_ARCHIVE_VERSION 1
#define PWI_ARCHIVE_PREFIX 16      /* magic, version, size: the same in all versions, as is the checksum at the end */
#define PWI_ARCHIVE_HEAD_MAX 65536 /* a later version may say more than this one */
#define PWI_ARCHIVE_FRAME 32       /* bytes before those of a block */
#define PWI_ARCHIVE_END_BYTES 24

enum pwi_packing { PWI_PACKING_PLAIN = 0, PWI_PACKING_ZSTD = 1 };

struct pwi_block {
  enum pwi_archive_kind kind;
  enum pwi_packing packing;
  bool goes_on;
  uint32_t stored, plain;
  uint64_t number;
  uint64_t checksum;
};

/* All but the checksum, whose value depends on the bytes. */
void pwi_block_encode(const struct pwi_block *block, unsigned char frame[PWI_ARCHIVE_FRAME]);

/* PAWL_CORRUPT if there is no such block. */
PAWL_MUST_USE pawl_status pwi_block_decode(const unsigned char frame[PWI_ARCHIVE_FRAME], struct pwi_block *block_out);

uint64_t pwi_block_checksum(const unsigned char frame[PWI_ARCHIVE_FRAME], const void *stored, size_t size,
                            uint64_t head_checksum);

/* Appends the head with its checksum, which is also handed out. */
void pwi_archive_head_encode(const struct pwi_archive_head *head, struct pwi_writer *writer, uint64_t *checksum_out);

/* Safe on any bytes; `size` is that of the whole head. */
PAWL_MUST_USE pawl_status pwi_archive_head_decode(const unsigned char *bytes, size_t size,
                                                  struct pwi_archive_head *head_out, uint64_t *checksum_out);

/* One context for packing or for unpacking, in memory of the library. */
struct pwi_packer {
  void *memory;
  void *context;
};

PAWL_MUST_USE pawl_status pwi_packer_init(struct pwi_packer *packer);
PAWL_MUST_USE pawl_status pwi_unpacker_init(struct pwi_packer *packer);
void pwi_packer_fini(struct pwi_packer *packer);

/* Bytes written to `out`, which has room for `size`; 0 if they would not be fewer than `size`. */
size_t pwi_pack(struct pwi_packer *packer, const void *bytes, size_t size, void *out);

/* To exactly `plain` bytes. PAWL_CORRUPT. */
PAWL_MUST_USE pawl_status pwi_unpack(struct pwi_packer *packer, const void *bytes, size_t size, void *out,
                                     size_t plain);

#endif
