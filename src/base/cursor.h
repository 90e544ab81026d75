/* Writing and reading records field by field: for small structures that travel or are kept, such as catalogues.
 *
 * A writer appends to a buffer that grows. A reader walks over bytes that may be anything. In both the first failure
 * stays and everything after it does nothing, so a whole record is written or read without a check per field, and the
 * status is asked for once, at the end. After a failure a reader gives zeros and empty texts.
 *
 * Numbers are little-endian. A text is its length as a u16 and then its bytes, without a final zero.
 *
 * Threads: each belongs to one thread at a time.
 */
#ifndef PWI_BASE_CURSOR_H
#define PWI_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

/* A struct of zeros is an empty writer. */
struct pwi_writer {
  unsigned char *data; /* read-only for callers; valid until the next write */
  size_t size;
  size_t room;
  bool is_fixed; /* the memory is somebody else's, and does not grow */
  pawl_status
      status; /* PAWL_OK, PAWL_NO_MEMORY, or PAWL_TOO_LARGE for a text of 2^16 bytes or more, or if it is full */
};

void pwi_writer_fini(struct pwi_writer *writer);

/* One that writes to memory of the caller's, and needs no end. */
struct pwi_writer pwi_writer_over(void *memory, size_t room);

/* Begins anew, in the memory there is. */
void pwi_writer_reset(struct pwi_writer *writer);

void pwi_write_u8(struct pwi_writer *writer, uint8_t value);
void pwi_write_u16(struct pwi_writer *writer, uint16_t value);
void pwi_write_u32(struct pwi_writer *writer, uint32_t value);
void pwi_write_u64(struct pwi_writer *writer, uint64_t value);
void pwi_write_bytes(struct pwi_writer *writer, const void *bytes, size_t size);
void pwi_write_text(struct pwi_writer *writer, const char *text); /* zero-terminated */

/* Room for `size` more bytes, which the caller fills in before the next call; NULL after a failure. */
void *pwi_write_room(struct pwi_writer *writer, size_t size);

struct pwi_reader {
  const unsigned char *at, *end; /* what is left */
  pawl_status status;            /* PAWL_OK, PAWL_TRUNCATED or PAWL_CORRUPT */
};

/* The bytes are borrowed. */
void pwi_reader_init(struct pwi_reader *reader, const void *bytes, size_t size);

uint8_t pwi_read_u8(struct pwi_reader *reader);
uint16_t pwi_read_u16(struct pwi_reader *reader);
uint32_t pwi_read_u32(struct pwi_reader *reader);
uint64_t pwi_read_u64(struct pwi_reader *reader);

/* A pointer to the next `size` bytes in the reader's data; NULL after a failure. */
const void *pwi_read_bytes(struct pwi_reader *reader, size_t size);

/* Copies a text to `text` with a final zero. PAWL_CORRUPT if it takes more than `room` or holds a zero byte. */
void pwi_read_text(struct pwi_reader *reader, char *text, size_t room);

/* A count of things of which each takes at least `each` bytes: PAWL_TRUNCATED if so many cannot follow. So whoever
 * allocates for it asks for memory in proportion to the data. */
uint32_t pwi_read_count(struct pwi_reader *reader, size_t each);

/* A rule of the caller's was broken. */
void pwi_reader_fail(struct pwi_reader *reader, pawl_status status);

/* The status; PAWL_CORRUPT if all went well but bytes are left over. */
PAWL_MUST_USE pawl_status pwi_reader_end(const struct pwi_reader *reader);

#endif
