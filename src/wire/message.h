/* Messages as bytes: a head of 64 bytes, then a body made of sections. docs/wire-format.md is the
 * specification.
 *
 * The head has the fields of every message: the sender, its task and tick, and the epochs of the view, the
 * membership and the catalogue that the sender knows. Everything else is a section: an array of values, a
 * list of keys, or records. The body begins with a table of one 16-byte entry per section. The sections
 * follow in the order of the table, each at a multiple of 64 bytes from the beginning of the body, with zeros
 * between them. The lengths alone determine the place of each section, so no table can describe overlaps or
 * gaps.
 *
 * SENDING. A builder collects sections by reference and produces a head and a list of parts for gathering
 * I/O:
 *     pwi_message_begin(&builder, &terms, &head)
 *     pwi_message_add(&builder, &section, data)       large data: referenced
 *     pwi_message_copy(&builder, &section, data)      small data: copied into the builder
 *     pwi_message_finish(&builder)                    then builder.head, builder.parts, builder.part_count
 * The parts point into arrays of the caller and into the builder. Neither may change, move or be freed until
 * the network has finished with the message. The builder may be reused after that.
 *
 * RECEIVING. pwi_message_parse_head comes first and limits every size before memory for a body is allocated.
 * Then, for a body that arrives in pieces,
 *     pwi_message_check_init(&check, bytes of the head, &head, &terms)
 *     pwi_message_check_add(&check, piece, size)      for each piece; sets check.sections after the table
 *     pwi_message_check_end(&check)
 * For a complete body, pwi_message_check_whole does the same in one call. Only when pwi_message_check_end has
 * returned PAWL_OK are the bytes known to be intact; a receiver that uses pieces as they arrive must be able
 * to undo this. Bytes in shared memory are checked as they were at the time of `add`.
 *
 * A message that parses may still be invalid for the role that receives it. The codec checks the contents of
 * an encoded section. The decoder of a key list must compare its count with that of the section.
 *
 * Errors of all functions that read:
 *   PAWL_LINK_PROTOCOL  not a pawl message
 *   PAWL_LINK_VERSION   not the version that this link agreed on
 *   PAWL_TOO_LARGE      larger than the terms allow
 *   PAWL_FORBIDDEN      without a checksum on a link that needs one
 *   PAWL_UNSUPPORTED    a value type or codec that does not exist
 *   PAWL_TRUNCATED      ends too early
 *   PAWL_CORRUPT        any other fault
 * After any of these errors the link should be closed, because the stream cannot be trusted. Only after
 * PAWL_UNSUPPORTED and PAWL_TOO_LARGE may the receiver drop just the message.
 *
 * Nothing here allocates or blocks. A builder or check belongs to one thread at a time; everything else is
 * pure.
 */
#ifndef PWI_WIRE_MESSAGE_H
#define PWI_WIRE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <pawl/status.h>

#include "base/hash.h"

#define PWI_MESSAGE_MAGIC UINT32_C(0x4c574150) /* "PAWL" */
#define PWI_MESSAGE_HEAD_SIZE 64
#define PWI_MESSAGE_ENTRY_SIZE 16
#define PWI_MESSAGE_ALIGN 64
#define PWI_MESSAGE_SECTIONS_MAX 16
#define PWI_MESSAGE_TABLE_MAX (PWI_MESSAGE_SECTIONS_MAX * PWI_MESSAGE_ENTRY_SIZE)
#define PWI_MESSAGE_PARTS_MAX 16
#define PWI_MESSAGE_COPY_MAX 1024 /* bytes of copied sections in one message, each rounded up to 64 */

/* Bits of a head's flags. All others are 0. */
#define PWI_MESSAGE_UNCHECKED 1u /* the message has no checksum; the field is 0 */

/* Types of sections. Numbers are never reused; 0 is not a type. Types of roles begin at 16. A receiver
 * ignores a section of an unknown type if the type has the OPTIONAL bit; otherwise it refuses the message. */
#define PWI_SECTION_KEYS 1      /* a list of keys */
#define PWI_SECTION_VALUES 2    /* values for the keys, in their order */
#define PWI_SECTION_SIGNATURE 3 /* 8 bytes, instead of a list of keys that the receiver has stored */
#define PWI_SECTION_OPTIONAL 0x8000u

/* The value type of a section with `count` records of equal size instead of values. Its codec is
 * PWI_CODEC_RAW. */
#define PWI_SECTION_RECORDS 0

/* An additional codec to those of values.h: a key list as in keys.h. The value type is PWI_TYPE_U64. */
#define PWI_SECTION_CODEC_KEYS 32

/* The terms of a link, for both directions. */
struct pwi_message_terms {
  size_t body_max;     /* bytes */
  size_t unpacked_max; /* bytes that the values of one section may take once decoded */
  uint8_t version;     /* agreed on by hello */
  bool unchecked;      /* the link guarantees integrity: messages need no checksum */
};

struct pwi_message_head {
  uint64_t sender;
  uint64_t task;       /* task of the sender; increasing */
  uint64_t tick;       /* iteration of the sender */
  uint32_t view;       /* epoch of the newest view that the sender knows */
  uint32_t membership; /* number of the newest membership that the sender knows */
  uint32_t catalogue;  /* number of the newest catalogue that the sender knows */
  uint16_t kind;       /* kind of request or answer; not 0 */

  /* Set by the builder and the parser; ignored as input of the builder. */
  uint16_t flags;
  uint8_t version;
  uint8_t section_count;
  uint64_t checksum;
  size_t body_size;
};

/* The kind in a head that has not been checked yet. */
uint16_t pwi_message_peek_kind(const uint8_t head[PWI_MESSAGE_HEAD_SIZE]);

/* The fields of a head that has not been checked yet, for observers; `body_size` is 0. */
struct pwi_message_head pwi_message_peek(const uint8_t head[PWI_MESSAGE_HEAD_SIZE]);

struct pwi_section {
  uint16_t type;
  uint8_t codec;      /* of enum pwi_value_codec, or PWI_SECTION_CODEC_KEYS */
  uint8_t value_type; /* of enum pwi_value_type, or PWI_SECTION_RECORDS */
  uint32_t count;     /* number of values, keys or records */
  size_t length;      /* bytes */
  size_t offset;      /* from the beginning of the body; ignored as input of the builder */
};

struct pwi_sections {
  size_t count;
  struct pwi_section items[PWI_MESSAGE_SECTIONS_MAX];
};

/* The first section of a type; NULL if there is none. The bit PWI_SECTION_OPTIONAL is part of the type. */
const struct pwi_section *pwi_sections_find(const struct pwi_sections *sections, uint16_t type);

struct pwi_message_builder {
  /* Valid once finished. */
  uint8_t head[PWI_MESSAGE_HEAD_SIZE];
  struct iovec parts[PWI_MESSAGE_PARTS_MAX];
  size_t part_count;
  size_t body_size;

  /* Private. The table is placed so that it ends where the copied sections begin. */
  struct pwi_message_head about;
  struct pwi_message_terms terms;
  struct pwi_sections sections;
  const void *data[PWI_MESSAGE_SECTIONS_MAX];
  size_t copied; /* bytes of `scratch` in use after the table */
  _Alignas(16) uint8_t scratch[PWI_MESSAGE_TABLE_MAX + PWI_MESSAGE_COPY_MAX];
};

/* Begins a message. pwi_message_finish sets the fields of `about` that describe the body. Both arguments are
 * copied. */
void pwi_message_begin(struct pwi_message_builder *builder, const struct pwi_message_terms *terms,
                       const struct pwi_message_head *about);

/* Adds a section of `section->length` bytes at `data`, by reference. A failure leaves the message unchanged.
 *   PAWL_INVALID    codec, value type, count and length are inconsistent
 *   PAWL_TOO_LARGE  beyond PWI_MESSAGE_SECTIONS_MAX or the terms' unpacked_max */
PAWL_MUST_USE pawl_status pwi_message_add(struct pwi_message_builder *builder, const struct pwi_section *section,
                                          const void *data);

/* Adds a section by copy. PAWL_TOO_LARGE also beyond PWI_MESSAGE_COPY_MAX. */
PAWL_MUST_USE pawl_status pwi_message_copy(struct pwi_message_builder *builder, const struct pwi_section *section,
                                           const void *data);

/* Lays the message out and computes the checksum over the whole body, unless the terms omit it.
 *   PAWL_TOO_LARGE  beyond the terms' body_max or PWI_MESSAGE_PARTS_MAX. A referenced section takes up to two
 *                   parts, and copied ones that follow one another or the table take one together: eight
 *                   sections always fit
 */
PAWL_MUST_USE pawl_status pwi_message_finish(struct pwi_message_builder *builder);

/* Parses a head of PWI_MESSAGE_HEAD_SIZE bytes. `body_size` is the size of the body that the network
 * announced. */
PAWL_MUST_USE pawl_status pwi_message_parse_head(const void *bytes, size_t body_size,
                                                 const struct pwi_message_terms *terms,
                                                 struct pwi_message_head *head_out);

/* Parses the table from the first `size` bytes of a body whose head was parsed. PAWL_TRUNCATED if the table
 * is longer; try again with more bytes. Does not check the sections or the bytes between them. */
PAWL_MUST_USE pawl_status pwi_message_parse_table(const struct pwi_message_head *head, const void *body, size_t size,
                                                  const struct pwi_message_terms *terms,
                                                  struct pwi_sections *sections_out);

/* The state of checking a body that arrives in pieces: table, zeros between the sections, checksum. */
struct pwi_message_check {
  struct pwi_sections sections; /* valid if `has_table` */
  bool has_table;

  /* Private. */
  pawl_status status; /* the first fault */
  size_t seen;        /* bytes so far */
  struct pwi_message_head head;
  struct pwi_message_terms terms;
  uint8_t table[PWI_MESSAGE_TABLE_MAX];
  struct pwi_hasher hasher;
};

/* `bytes` are the bytes from which `head` was parsed. Everything is copied. */
void pwi_message_check_init(struct pwi_message_check *check, const void *bytes, const struct pwi_message_head *head,
                            const struct pwi_message_terms *terms);

/* Adds the next bytes of the body, of any size. Reports a fault as early as possible; all later calls return
 * the same fault. */
PAWL_MUST_USE pawl_status pwi_message_check_add(struct pwi_message_check *check, const void *piece, size_t size);

/* Ends the check: PAWL_OK if the body is complete and intact, PAWL_TRUNCATED if bytes are missing,
 * PAWL_CORRUPT if the checksum differs, or the fault that pwi_message_check_add reported. */
PAWL_MUST_USE pawl_status pwi_message_check_end(const struct pwi_message_check *check);

/* Does all of the above for a complete body. */
PAWL_MUST_USE pawl_status pwi_message_check_whole(const void *bytes, const struct pwi_message_head *head,
                                                  const void *body, size_t size, const struct pwi_message_terms *terms,
                                                  struct pwi_sections *sections_out);

#endif
