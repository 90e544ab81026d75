/* Messages as bytes: a head of 64 bytes, then a body made of sections. docs/wire-format.md is the specification.
 *
 * The head carries what every message has: who sends it, which of the sender's tasks and ticks it belongs to, and which
 * view, membership and catalogue the sender knew. Everything else is a section: an array of values, a list of keys, some
 * records. The body begins with a table, one entry of 16 bytes per section, and the sections follow in the table's
 * order, each at a multiple of 64 bytes from the beginning of the body, with zeros between them. Where a section lies
 * follows from the lengths alone, so no table can make two overlap or leave a hole.
 *
 * SENDING. A builder collects the sections by reference and makes of them a head and a list of parts, as a network that
 * gathers wants them:
 *     pwi_message_begin(&builder, &terms, &head)
 *     pwi_message_add(&builder, &section, data)       large data: referenced
 *     pwi_message_copy(&builder, &section, data)      small data: copied into the builder
 *     pwi_message_finish(&builder)                    then builder.head, builder.parts, builder.part_count
 * The parts point into the caller's arrays and into the builder: neither may change, move or go away until the network
 * has finished with the message. A builder may be used again after that.
 *
 * RECEIVING. First pwi_message_parse_head, which bounds every size before anybody finds room for a body. Then, for a
 * body that arrives in pieces,
 *     pwi_message_check_init(&check, bytes of the head, &head, &terms)
 *     pwi_message_check_add(&check, piece, size)      for each piece; check.sections is there once the table is
 *     pwi_message_check_end(&check)
 * and for a body that is there whole, pwi_message_check_whole does the same at once. Only after the end has said
 * PAWL_OK are the bytes known to be the sender's: whoever uses pieces as they come must be able to take it back. Bytes
 * that another process can still change are checked as they were when `add` saw them.
 *
 * A message that parses may still be nonsense to the role it reaches, and the inside of an encoded section is checked
 * by its codec. Whoever decodes a key list compares the count it brings with the section's.
 *
 * Errors of everything that reads:
 *   PAWL_LINK_PROTOCOL  this is no pawl message
 *   PAWL_LINK_VERSION   not the version that this link agreed on
 *   PAWL_TOO_LARGE      larger than the terms allow
 *   PAWL_FORBIDDEN      without a checksum on a link that needs one
 *   PAWL_UNSUPPORTED    a value type or codec that does not exist
 *   PAWL_TRUNCATED      ends too early
 *   PAWL_CORRUPT        any other fault
 * After any of them the link has lost its senses and is best closed; only after PAWL_UNSUPPORTED and PAWL_TOO_LARGE may
 * the message be dropped alone.
 *
 * Nothing here allocates or blocks. A builder or check belongs to one thread at a time; everything else is pure.
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
#define PWI_MESSAGE_COPY_MAX 1024 /* bytes of copied sections in one message, each counted in steps of 64 */

/* Bits of a head's flags. All others are 0. */
#define PWI_MESSAGE_UNCHECKED 1u /* the checksum is left out, and 0 */

/* Types of sections. Numbers are never reused; 0 is none. Roles add their own from 16 on. In a type that has the
 * OPTIONAL bit, a receiver that does not know it ignores the section; else it refuses the message. */
#define PWI_SECTION_KEYS 1      /* a list of keys */
#define PWI_SECTION_VALUES 2    /* values for the keys, in their order */
#define PWI_SECTION_SIGNATURE 3 /* one record of 8 bytes, in place of a list of keys that the receiver has kept */
#define PWI_SECTION_OPTIONAL 0x8000u

/* The value type of a section that holds no values but `count` records of equal size. Its codec is PWI_CODEC_RAW. */
#define PWI_SECTION_RECORDS 0

/* A codec beside those of values.h: a key list as in keys.h. The value type is PWI_TYPE_U64. */
#define PWI_SECTION_CODEC_KEYS 32

/* What holds on a link, on both ways. */
struct pwi_message_terms {
  size_t body_max;     /* bytes */
  size_t unpacked_max; /* bytes that the values of one section may take once decoded */
  uint8_t version;     /* agreed on by hello */
  bool unchecked;      /* the link guarantees integrity: send without checksum, and accept that */
};

struct pwi_message_head {
  uint64_t sender;
  uint64_t task; /* the sender's; only ever rising */
  uint64_t tick; /* the sender's iteration */
  uint32_t view; /* the epoch of the newest view that the sender knows, and so on */
  uint32_t membership;
  uint32_t catalogue;
  uint16_t kind; /* what is asked or answered; not 0 */

  /* Written by the builder and the parser; the builder does not read them. */
  uint16_t flags;
  uint8_t version;
  uint8_t section_count;
  uint64_t checksum;
  size_t body_size;
};

/* The kind that a head claims to be of, before anything of it has been checked. */
uint16_t pwi_message_peek_kind(const uint8_t head[PWI_MESSAGE_HEAD_SIZE]);

struct pwi_section {
  uint16_t type;
  uint8_t codec;      /* of enum pwi_value_codec, or PWI_SECTION_CODEC_KEYS */
  uint8_t value_type; /* of enum pwi_value_type, or PWI_SECTION_RECORDS */
  uint32_t count;     /* of values, keys or records */
  size_t length;      /* bytes */
  size_t offset;      /* from the beginning of the body; the builder does not read it */
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

  /* Private. The table is put in front of the copied sections such that it ends where they begin. */
  struct pwi_message_head about;
  struct pwi_message_terms terms;
  struct pwi_sections sections;
  const void *data[PWI_MESSAGE_SECTIONS_MAX];
  size_t copied; /* bytes of scratch in use behind the table */
  _Alignas(16) uint8_t scratch[PWI_MESSAGE_TABLE_MAX + PWI_MESSAGE_COPY_MAX];
};

/* Begin a message. Of `about` the fields that describe the message itself are filled in by finish. Both are copied. */
void pwi_message_begin(struct pwi_message_builder *builder, const struct pwi_message_terms *terms,
                       const struct pwi_message_head *about);

/* Add a section of `section->length` bytes at `data`, by reference. On failure the message is as before.
 *   PAWL_INVALID    codec, value type, count and length do not go together
 *   PAWL_TOO_LARGE  beyond PWI_MESSAGE_SECTIONS_MAX or the terms' unpacked_max */
PAWL_MUST_USE pawl_status pwi_message_add(struct pwi_message_builder *builder, const struct pwi_section *section,
                                          const void *data);

/* The same, by copy. PAWL_TOO_LARGE also if PWI_MESSAGE_COPY_MAX is used up. */
PAWL_MUST_USE pawl_status pwi_message_copy(struct pwi_message_builder *builder, const struct pwi_section *section,
                                           const void *data);

/* Lay the message out and, unless the terms leave it out, compute the checksum, which reads all of the body.
 *   PAWL_TOO_LARGE  beyond the terms' body_max or PWI_MESSAGE_PARTS_MAX. A referenced section takes up to two parts,
 *                   and copied ones that follow one another or the table take one together: eight sections always fit
 */
PAWL_MUST_USE pawl_status pwi_message_finish(struct pwi_message_builder *builder);

/* Read a head of PWI_MESSAGE_HEAD_SIZE bytes. `body_size` is the size of the body as the network announced it. */
PAWL_MUST_USE pawl_status pwi_message_parse_head(const void *bytes, size_t body_size,
                                                 const struct pwi_message_terms *terms,
                                                 struct pwi_message_head *head_out);

/* Read the table from the first `size` bytes of a body whose head was parsed. PAWL_TRUNCATED if the table is longer
 * than that, and then it may be tried again when more has come. Does not look at the sections or what lies between. */
PAWL_MUST_USE pawl_status pwi_message_parse_table(const struct pwi_message_head *head, const void *body, size_t size,
                                                  const struct pwi_message_terms *terms,
                                                  struct pwi_sections *sections_out);

/* Follows a body from its first byte to its last: table, zeros between the sections, checksum. */
struct pwi_message_check {
  struct pwi_sections sections; /* valid if `has_table` */
  bool has_table;

  /* Private. */
  pawl_status status; /* the first fault stays */
  size_t seen;        /* bytes so far */
  struct pwi_message_head head;
  struct pwi_message_terms terms;
  uint8_t table[PWI_MESSAGE_TABLE_MAX];
  struct pwi_hasher hasher;
};

/* `bytes` is what `head` was parsed from. Everything is copied. */
void pwi_message_check_init(struct pwi_message_check *check, const void *bytes, const struct pwi_message_head *head,
                            const struct pwi_message_terms *terms);

/* The next bytes of the body; pieces of any size. Tells a fault as soon as it can be seen; after one, all that follows
 * gives the same answer. */
PAWL_MUST_USE pawl_status pwi_message_check_add(struct pwi_message_check *check, const void *piece, size_t size);

/* The body is complete and is what the sender built. PAWL_TRUNCATED if bytes are missing, PAWL_CORRUPT if the checksum
 * differs, or the fault that add reported. */
PAWL_MUST_USE pawl_status pwi_message_check_end(const struct pwi_message_check *check);

/* All of the above for a body that is there whole. */
PAWL_MUST_USE pawl_status pwi_message_check_whole(const void *bytes, const struct pwi_message_head *head,
                                                  const void *body, size_t size, const struct pwi_message_terms *terms,
                                                  struct pwi_sections *sections_out);

#endif
