/* Messages: any bytes, and any message in a round trip.
 *
 * covers: src/wire/message.c
 */
#include "fuzz.h"

#include "base/hash.h"
#include "wire/keys.h"
#include "wire/message.h"
#include "wire/values.h"

enum { AS_IT_IS, REPAIRED, BUILT, CASES };

#define HEAD PWI_MESSAGE_HEAD_SIZE
#define BODY_MAX 8192

/* Offsets of the fields of the head: docs/wire-format.md. */
enum { AT_MAGIC = 0, AT_VERSION = 4, AT_BODY_SIZE = 8, AT_CHECKSUM = 16, AT_FLAGS = 60, AT_RESERVED = 62 };

static struct pwi_message_builder builder;

static bool is_known(pawl_status status) {
  return status == PAWL_OK || status == PAWL_LINK_PROTOCOL || status == PAWL_LINK_VERSION || status == PAWL_TOO_LARGE ||
         status == PAWL_FORBIDDEN || status == PAWL_UNSUPPORTED || status == PAWL_TRUNCATED || status == PAWL_CORRUPT;
}

UNTRACED static bool is_same_section(const struct pwi_section *a, const struct pwi_section *b) {
  return a->type == b->type && a->codec == b->codec && a->value_type == b->value_type && a->count == b->count &&
         a->length == b->length && a->offset == b->offset;
}

/* Sections follow one another in steps of 64 bytes and fill the body; no count can exhaust a receiver's
 * memory.
 */
UNTRACED static void check_sections(const struct pwi_sections *sections, size_t body_size,
                                    const struct pwi_message_terms *terms) {
  size_t end = sections->count * PWI_MESSAGE_ENTRY_SIZE;
  for (size_t i = 0; i < sections->count; i++) {
    const struct pwi_section *section = &sections->items[i];
    size_t value_size = pwi_value_size((enum pwi_value_type)section->value_type);
    assert(section->type != 0 && section->offset % PWI_MESSAGE_ALIGN == 0);
    assert(section->offset >= end && section->offset - end < PWI_MESSAGE_ALIGN);
    assert(section->length <= body_size - section->offset);
    assert(section->count * value_size <= terms->unpacked_max);
    end = section->offset + section->length;
    assert(is_same_section(pwi_sections_find(sections, section->type), section) || i > 0);
  }
  assert(end == body_size);
  assert(!pwi_sections_find(sections, 0));
}

/* The concatenated parts are the body. */
UNTRACED static void check_parts(const uint8_t *body, size_t size) {
  size_t done = 0;
  for (size_t i = 0; i < builder.part_count; i++) {
    assert(builder.parts[i].iov_len <= size - done);
    assert(memcmp(builder.parts[i].iov_base, body + done, builder.parts[i].iov_len) == 0);
    done += builder.parts[i].iov_len;
  }
  assert(done == size && builder.body_size == size);
}

/* Building a message from the sections of an accepted one gives the same bytes. */
static void build_again(const uint8_t *bytes, const struct pwi_message_head *head, const struct pwi_sections *sections,
                        const struct pwi_message_terms *terms, bool copy) {
  struct pwi_message_terms same = *terms;
  const uint8_t *body = bytes + HEAD;
  same.unchecked = head->flags != 0;
  pwi_message_begin(&builder, &same, head);
  for (size_t i = 0; i < sections->count; i++) {
    const struct pwi_section *section = &sections->items[i];
    pawl_status status = PAWL_TOO_LARGE;
    if (copy) status = pwi_message_copy(&builder, section, body + section->offset);
    if (status == PAWL_TOO_LARGE) status = pwi_message_add(&builder, section, body + section->offset);
    assert(status == PAWL_OK);
  }
  pawl_status status = pwi_message_finish(&builder);
  if (status != PAWL_OK) {
    assert(status == PAWL_TOO_LARGE && sections->count > 8);
    return;
  }
  assert(memcmp(builder.head, bytes, HEAD) == 0);
  check_parts(body, head->body_size);
}

/* The same in pieces, whose sizes come from `pattern`. */
static pawl_status check_in_pieces(const uint8_t *bytes, const struct pwi_message_head *head, size_t size,
                                   const struct pwi_message_terms *terms, uint64_t pattern,
                                   const struct pwi_sections *whole) {
  static struct pwi_message_check check;
  size_t done = 0;
  pawl_status status = PAWL_OK;
  pwi_message_check_init(&check, bytes, head, terms);
  while (done < size) {
    size_t step = 1 + (pattern & 0xff) + size / 32; /* never very many */
    pattern = pattern << 8 | pattern >> 56;
    if (step > size - done) step = size - done;
    status = pwi_message_check_add(&check, bytes + HEAD + done, step);
    done += step;
  }
  assert(status == pwi_message_check_add(&check, NULL, 0)); /* an error stays */
  pawl_status end = pwi_message_check_end(&check);
  if (status != PAWL_OK) assert(end == status);
  if (end != PAWL_OK) return end;
  assert(check.has_table && check.sections.count == whole->count);
  for (size_t i = 0; i < whole->count; i++) assert(is_same_section(&check.sections.items[i], &whole->items[i]));
  return PAWL_OK;
}

static pawl_status read_message(const uint8_t *bytes, size_t size, size_t announced,
                                const struct pwi_message_terms *terms, uint64_t pattern) {
  struct pwi_message_head head = {.kind = 4711};
  struct pwi_sections sections = {.count = 99}, table = {.count = 99};
  pawl_status status = pwi_message_parse_head(bytes, announced, terms, &head);
  assert(is_known(status));
  if (status != PAWL_OK) {
    assert(head.kind == 4711);
    return status;
  }
  assert(head.body_size == announced && head.body_size <= terms->body_max && head.kind != 0);
  assert(head.section_count <= PWI_MESSAGE_SECTIONS_MAX && (head.flags == 0 || terms->unchecked));
  size_t given = size < head.body_size ? size : head.body_size;
  pawl_status table_status = pwi_message_parse_table(&head, bytes + HEAD, given, terms, &table);
  status = pwi_message_check_whole(bytes, &head, bytes + HEAD, given, terms, &sections);
  assert(is_known(status) && is_known(table_status));
  assert(check_in_pieces(bytes, &head, given, terms, pattern, &sections) == status);
  if (table_status == PAWL_OK) check_sections(&table, head.body_size, terms);
  if (status != PAWL_OK) {
    assert(sections.count == 99);
    return status;
  }
  assert(table_status == PAWL_OK && given == head.body_size);
  build_again(bytes, &head, &sections, terms, pattern % 2 == 0);
  return PAWL_OK;
}

/* Corrects the fields that a fuzzer cannot guess: magic, version, size and checksum. */
static void repair(uint8_t *bytes, size_t size, const struct pwi_message_terms *terms) {
  pwi_put_u32(bytes + AT_MAGIC, PWI_MESSAGE_MAGIC);
  bytes[AT_VERSION] = terms->version;
  pwi_put_u64(bytes + AT_BODY_SIZE, size - HEAD);
  pwi_put_u64(bytes + AT_CHECKSUM, 0);
  pwi_put_u16(bytes + AT_FLAGS, pwi_get_u16(bytes + AT_FLAGS) % 3);
  pwi_put_u16(bytes + AT_RESERVED, 0);
  if (!(bytes[AT_FLAGS] & PWI_MESSAGE_UNCHECKED)) pwi_put_u64(bytes + AT_CHECKSUM, pwi_hash(bytes, size, 0));
}

/* A section that the input describes, or a similar one that is consistent. */
static void draw_section(struct input *input, struct pwi_section *section) {
  uint8_t shape = draw_u8(input);
  *section = (struct pwi_section){draw_u16(input), draw_u8(input), draw_u8(input) % 7, draw_u16(input), 0, 0};
  section->length = draw_u16(input) % 600;
  if (shape % 4 == 0) return;
  section->count %= 64;
  section->codec = (uint8_t)(section->codec % 16 < PWI_CODEC_COUNT ? section->codec % 16 : PWI_SECTION_CODEC_KEYS);
  size_t bound;
  if (section->codec == PWI_SECTION_CODEC_KEYS)
    section->value_type = PWI_TYPE_U64;
  else if (section->value_type == PWI_SECTION_RECORDS)
    section->length = section->count * (size_t)(1 + shape % 8);
  else if (pwi_values_bound((enum pwi_value_codec)section->codec, (enum pwi_value_type)section->value_type,
                            section->count, &bound) == PAWL_OK)
    section->length = bound;
}

/* A message that the builder accepts is accepted by the parser, and has the same contents. */
static void build(struct input *input, const struct pwi_message_terms *terms) {
  static uint8_t data[600], bytes[HEAD + 32 * 1024];
  struct pwi_message_head about = {.kind = (uint16_t)(draw_u8(input) + 1), .sender = draw_u64(input)};
  uint8_t count = draw_u8(input) % (PWI_MESSAGE_SECTIONS_MAX + 2);
  pwi_message_begin(&builder, terms, &about);
  for (uint8_t i = 0; i < count; i++) {
    struct pwi_section section;
    draw_section(input, &section);
    if (section.length > sizeof data) continue;
    memset(data, (int)section.length, sizeof data);
    pawl_status status = i % 2 ? pwi_message_add(&builder, &section, data) : pwi_message_copy(&builder, &section, data);
    assert(status == PAWL_OK || status == PAWL_INVALID || status == PAWL_TOO_LARGE);
  }
  pawl_status status = pwi_message_finish(&builder);
  assert(status == PAWL_OK || status == PAWL_TOO_LARGE);
  if (status != PAWL_OK || builder.body_size > sizeof bytes - HEAD) return;
  size_t size = HEAD;
  memcpy(bytes, builder.head, HEAD);
  for (size_t i = 0; i < builder.part_count; i++) {
    memcpy(bytes + size, builder.parts[i].iov_base, builder.parts[i].iov_len);
    size += builder.parts[i].iov_len;
  }
  assert(size == HEAD + builder.body_size);
  assert(read_message(bytes, size - HEAD, size - HEAD, terms, about.sender) == PAWL_OK);
  if (size == HEAD || terms->unchecked) return;
  bytes[about.sender % size] ^= (uint8_t)(1 + about.kind % 255);
  assert(read_message(bytes, size - HEAD, size - HEAD, terms, about.sender) != PAWL_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static uint8_t room[HEAD + BODY_MAX];
  struct input input = {data, size};
  uint8_t which = draw_u8(&input), how = draw_u8(&input);
  struct pwi_message_terms terms = {BODY_MAX / 2, (size_t)1 << (8 + how % 16), 1, how & 0x80};
  if (which % CASES == BUILT) {
    build(&input, &terms);
    return 0;
  }
  uint64_t pattern = draw_u64(&input);
  size = input.left < sizeof room ? input.left : sizeof room;
  if (size < HEAD) return 0;
  uint8_t *bytes = room + sizeof room - size;
  memcpy(bytes, input.at, size);
  if (which % CASES == REPAIRED) repair(bytes, size, &terms);
  size_t announced = how & 0x40 ? (size_t)pwi_get_u64(bytes + AT_BODY_SIZE) : size - HEAD;
  read_message(bytes, size - HEAD, announced, &terms, pattern);
  return 0;
}
