/* Shared by the writer and the reader of archives: the layout of heads and blocks, and compression. See
 * archive.h. */
#ifndef PWI_STORE_ARCHIVE_INSIDE_H
#define PWI_STORE_ARCHIVE_INSIDE_H

#include "base/cursor.h"
#include "base/hash.h"
#include "store/archive.h"

#define PWI_ARCHIVE_MAGIC "pawlsave"
#define PWI_ARCHIVE_VERSION 1
#define PWI_ARCHIVE_PREFIX 16      /* bytes of magic, version and size: the same in all versions */
#define PWI_ARCHIVE_HEAD_MAX 65536 /* a later version may have a longer head */
#define PWI_ARCHIVE_FRAME 32       /* bytes of the frame before the data of a block */
#define PWI_ARCHIVE_END_BYTES 24

enum pwi_block_packing { PWI_PACKING_PLAIN = 0, PWI_PACKING_ZSTD = 1 };

struct pwi_block {
  enum pwi_archive_kind kind;
  enum pwi_block_packing packing;
  bool goes_on;
  uint32_t stored, plain;
  uint64_t number;
  uint64_t checksum;
};

/* Encodes all fields except the checksum. */
void pwi_block_encode(const struct pwi_block *block, unsigned char frame[PWI_ARCHIVE_FRAME]);

/* PAWL_CORRUPT if the fields are invalid. */
PAWL_MUST_USE pawl_status pwi_block_decode(const unsigned char frame[PWI_ARCHIVE_FRAME], struct pwi_block *block_out);

uint64_t pwi_block_checksum(const unsigned char frame[PWI_ARCHIVE_FRAME], const void *stored, size_t size,
                            uint64_t head_checksum);

/* Appends the head with its checksum and returns the checksum. */
void pwi_archive_head_encode(const struct pwi_archive_head *head, struct pwi_writer *writer, uint64_t *checksum_out);

/* Safe on any bytes; `size` is the size of the whole head. */
PAWL_MUST_USE pawl_status pwi_archive_head_decode(const unsigned char *bytes, size_t size,
                                                  struct pwi_archive_head *head_out, uint64_t *checksum_out);

/* A context for compression or decompression, in memory of the library's allocator. */
struct pwi_block_packer {
  void *memory;
  void *context;
};

PAWL_MUST_USE pawl_status pwi_block_packer_init(struct pwi_block_packer *packer);
PAWL_MUST_USE pawl_status pwi_block_unpacker_init(struct pwi_block_packer *packer);
void pwi_block_packer_fini(struct pwi_block_packer *packer);

/* Returns the bytes written to `out`, which has room for `size`; 0 if the data does not become smaller. */
size_t pwi_block_pack(struct pwi_block_packer *packer, const void *bytes, size_t size, void *out);

/* Decompresses to exactly `plain` bytes. PAWL_CORRUPT. */
PAWL_MUST_USE pawl_status pwi_block_unpack(struct pwi_block_packer *packer, const void *bytes, size_t size, void *out,
                                           size_t plain);

#endif
