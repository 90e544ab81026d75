/* Writing and reading records field by field, for small structures in messages and files, such as catalogues.
 *
 * A writer appends to a buffer that grows. A reader parses untrusted bytes. Both remember their first failure
 * and ignore all calls after it. A caller can therefore write or read a whole record and check the status
 * once, at the end. After a failure a reader returns zeros and empty strings.
 *
 * Numbers are little-endian. A string is its length as a u16 followed by its bytes, without a final zero.
 *
 * Threads: a writer or reader belongs to one thread at a time.
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
  bool is_fixed;      /* the memory belongs to the caller and does not grow */
  pawl_status status; /* PAWL_OK, PAWL_NO_MEMORY, or PAWL_TOO_LARGE for a string of 2^16 bytes or more, or if
                         fixed memory is full */
};

void pwi_writer_fini(struct pwi_writer *writer);

/* A writer over memory of the caller; it need not be finished with pwi_writer_fini. */
struct pwi_writer pwi_writer_over(void *memory, size_t room);

/* Empties the writer and keeps its memory. */
void pwi_writer_reset(struct pwi_writer *writer);

void pwi_write_u8(struct pwi_writer *writer, uint8_t value);
void pwi_write_u16(struct pwi_writer *writer, uint16_t value);
void pwi_write_u32(struct pwi_writer *writer, uint32_t value);
void pwi_write_u64(struct pwi_writer *writer, uint64_t value);
void pwi_write_bytes(struct pwi_writer *writer, const void *bytes, size_t size);
void pwi_write_text(struct pwi_writer *writer, const char *text); /* zero-terminated */

/* Appends `size` bytes, which the caller fills in before the next call. NULL after a failure. */
void *pwi_write_room(struct pwi_writer *writer, size_t size);

struct pwi_reader {
  const unsigned char *at, *end; /* the bytes not yet read */
  pawl_status status;            /* PAWL_OK, PAWL_TRUNCATED or PAWL_CORRUPT */
};

/* The bytes are borrowed. */
void pwi_reader_init(struct pwi_reader *reader, const void *bytes, size_t size);

uint8_t pwi_read_u8(struct pwi_reader *reader);
uint16_t pwi_read_u16(struct pwi_reader *reader);
uint32_t pwi_read_u32(struct pwi_reader *reader);
uint64_t pwi_read_u64(struct pwi_reader *reader);

/* Returns a pointer to the next `size` bytes in the data of the reader; NULL after a failure. */
const void *pwi_read_bytes(struct pwi_reader *reader, size_t size);

/* Copies a string to `text` with a final zero. PAWL_CORRUPT if it does not fit into `room` bytes or contains
 * a zero byte. */
void pwi_read_text(struct pwi_reader *reader, char *text, size_t room);

/* Reads the number of elements of a list whose elements take at least `each` bytes. PAWL_TRUNCATED if the
 * rest of the data is too short for that number. The caller can then allocate memory in proportion to the
 * data. */
uint32_t pwi_read_count(struct pwi_reader *reader, size_t each);

/* Makes the status PAWL_CORRUPT: the data violates a rule of the caller. */
void pwi_reader_fail(struct pwi_reader *reader, pawl_status status);

/* Returns the status; PAWL_CORRUPT if there was no failure but bytes are left over. */
PAWL_MUST_USE pawl_status pwi_reader_end(const struct pwi_reader *reader);

#endif
