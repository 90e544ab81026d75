/* The layout of messages; docs/wire-format.md explains it, message.h the calls. */
#include "wire/message.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "wire/keys.h"
#include "wire/values.h"

/* The layout of the head and of a table entry. These structs only provide the offsets of fields. The bytes
 * may be unaligned, so fields are accessed through base/bytes.h. */
struct head_layout {
  uint32_t magic;
  uint8_t version;
  uint8_t section_count;
  uint16_t kind;
  uint64_t body_size;
  uint64_t checksum;
  uint64_t sender;
  uint64_t task;
  uint64_t tick;
  uint32_t view;
  uint32_t membership;
  uint32_t catalogue;
  uint16_t flags;
  uint16_t reserved;
};

struct entry_layout {
  uint16_t type;
  uint8_t codec;
  uint8_t value_type;
  uint32_t count;
  uint64_t length;
};

#define HEAD(field) offsetof(struct head_layout, field)
#define ENTRY(field) offsetof(struct entry_layout, field)

static_assert(sizeof(struct head_layout) == PWI_MESSAGE_HEAD_SIZE, "the head has no holes");
static_assert(HEAD(body_size) == 8 && HEAD(checksum) == 16 && HEAD(sender) == 24 && HEAD(task) == 32, "as documented");
static_assert(HEAD(tick) == 40 && HEAD(view) == 48 && HEAD(flags) == 60 && HEAD(reserved) == 62, "as documented");
static_assert(sizeof(struct entry_layout) == PWI_MESSAGE_ENTRY_SIZE, "an entry has no holes");
static_assert(ENTRY(count) == 4 && ENTRY(length) == 8, "as documented");
static_assert(PWI_MESSAGE_COPY_MAX % PWI_MESSAGE_ALIGN == 0 && PWI_MESSAGE_TABLE_MAX % PWI_MESSAGE_ALIGN == 0,
              "copied sections begin at multiples of the alignment");

static const uint8_t zeros[PWI_MESSAGE_ALIGN];

static size_t table_size(size_t section_count) { return section_count * PWI_MESSAGE_ENTRY_SIZE; }

static size_t padded_table_size(size_t section_count) {
  return (table_size(section_count) + PWI_MESSAGE_ALIGN - 1) & ~(size_t)(PWI_MESSAGE_ALIGN - 1);
}

/* --- what a section may say of itself ------------------------------------------------------------------- */

static pawl_status good_if(bool good) { return good ? PAWL_OK : PAWL_CORRUPT; }

static pawl_status judge_records(const struct pwi_section *section) {
  if (section->codec != PWI_CODEC_RAW) return PAWL_UNSUPPORTED;
  if (section->count == 0) return good_if(section->length == 0);
  return good_if(section->length > 0 && section->length % section->count == 0);
}

/* A key list has one byte for the format, at least one for the count, and at least one for each block. */
static pawl_status judge_keys(const struct pwi_section *section) {
  size_t blocks = section->count / PWI_KEYS_BLOCK + (section->count % PWI_KEYS_BLOCK > 0);
  return good_if(section->value_type == PWI_TYPE_U64 && section->length >= blocks + 2);
}

static bool size_is_fixed(enum pwi_value_codec codec) {
  return codec == PWI_CODEC_RAW || codec == PWI_CODEC_F16 || codec == PWI_CODEC_BF16 || codec == PWI_CODEC_INT8;
}

/* For a codec of fixed size the bound is that size. */
static pawl_status judge_values(const struct pwi_section *section) {
  enum pwi_value_codec codec = (enum pwi_value_codec)section->codec;
  size_t bound;
  pawl_status status = pwi_values_bound(codec, (enum pwi_value_type)section->value_type, section->count, &bound);
  if (status == PAWL_UNSUPPORTED) return status;
  if (status != PAWL_OK) return PAWL_CORRUPT;
  return good_if(size_is_fixed(codec) ? section->length == bound : (section->length == 0) == (section->count == 0));
}

static pawl_status judge_section(const struct pwi_section *section, const struct pwi_message_terms *terms) {
  if (section->type == 0) return PAWL_CORRUPT;
  if (section->value_type == PWI_SECTION_RECORDS) return judge_records(section);
  size_t value_size = pwi_value_size((enum pwi_value_type)section->value_type);
  if (value_size == 0) return PAWL_UNSUPPORTED;
  if (section->count > terms->unpacked_max / value_size) return PAWL_TOO_LARGE;
  return section->codec == PWI_SECTION_CODEC_KEYS ? judge_keys(section) : judge_values(section);
}

/* Computes the offset of every section. False if the size of the body overflows. */
static bool lay_out(struct pwi_sections *sections, size_t *body_size_out) {
  size_t end = table_size(sections->count);
  for (size_t i = 0; i < sections->count; i++) {
    struct pwi_section *section = &sections->items[i];
    if (!pwi_round_up(end, PWI_MESSAGE_ALIGN, &section->offset)) return false;
    if (!pwi_add_size(section->offset, section->length, &end)) return false;
  }
  *body_size_out = end;
  return true;
}

const struct pwi_section *pwi_sections_find(const struct pwi_sections *sections, uint16_t type) {
  for (size_t i = 0; i < sections->count; i++) {
    if (sections->items[i].type == type) return &sections->items[i];
  }
  return NULL;
}

/* The checksum covers the head with a checksum field of zero. */
static void hash_head(struct pwi_hasher *hasher, const void *bytes) {
  uint8_t head[PWI_MESSAGE_HEAD_SIZE];
  memcpy(head, bytes, sizeof head);
  pwi_put_u64(head + HEAD(checksum), 0);
  pwi_hasher_init(hasher, 0);
  pwi_hasher_add(hasher, head, sizeof head);
}

/* --- building ------------------------------------------------------------------------------------------- */

void pwi_message_begin(struct pwi_message_builder *builder, const struct pwi_message_terms *terms,
                       const struct pwi_message_head *about) {
  assert(about->kind != 0 && terms->version != 0);
  builder->about = *about;
  builder->terms = *terms;
  builder->sections.count = 0;
  builder->copied = 0;
  builder->part_count = 0;
  builder->body_size = 0;
}

pawl_status pwi_message_add(struct pwi_message_builder *builder, const struct pwi_section *section, const void *data) {
  pawl_status status = judge_section(section, &builder->terms);
  if (status != PAWL_OK) return status == PAWL_TOO_LARGE ? status : PAWL_INVALID;
  size_t count = builder->sections.count;
  if (count == PWI_MESSAGE_SECTIONS_MAX) return PAWL_TOO_LARGE;
  builder->sections.items[count] = *section;
  builder->data[count] = data;
  builder->sections.count = count + 1;
  return PAWL_OK;
}

pawl_status pwi_message_copy(struct pwi_message_builder *builder, const struct pwi_section *section, const void *data) {
  size_t room = PWI_MESSAGE_COPY_MAX - builder->copied, taken;
  if (!pwi_round_up(section->length, PWI_MESSAGE_ALIGN, &taken) || taken > room) return PAWL_TOO_LARGE;
  uint8_t *copy = builder->scratch + PWI_MESSAGE_TABLE_MAX + builder->copied;
  pawl_status status = pwi_message_add(builder, section, copy);
  if (status != PAWL_OK) return status;
  if (section->length > 0) memcpy(copy, data, section->length);
  memset(copy + section->length, 0, taken - section->length);
  builder->copied += taken;
  return PAWL_OK;
}

/* If the bytes directly follow the last part, that part is extended. */
static bool put_part(struct pwi_message_builder *builder, const void *data, size_t size) {
  if (size == 0) return true;
  struct iovec *last = builder->part_count > 0 ? &builder->parts[builder->part_count - 1] : NULL;
  if (last && (const uint8_t *)last->iov_base + last->iov_len == (const uint8_t *)data) {
    last->iov_len += size;
    return true;
  }
  if (builder->part_count == PWI_MESSAGE_PARTS_MAX) return false;
  builder->parts[builder->part_count++] = (struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = size};
  return true;
}

/* A copied section already has its padding. */
static const void *padding_of(const struct pwi_message_builder *builder, size_t index) {
  uintptr_t data = (uintptr_t)builder->data[index], scratch = (uintptr_t)builder->scratch;
  bool copied = data >= scratch && data < scratch + sizeof builder->scratch;
  return copied ? (const uint8_t *)builder->data[index] + builder->sections.items[index].length : zeros;
}

static void put_entry(uint8_t *to, const struct pwi_section *section) {
  pwi_put_u16(to + ENTRY(type), section->type);
  to[ENTRY(codec)] = section->codec;
  to[ENTRY(value_type)] = section->value_type;
  pwi_put_u32(to + ENTRY(count), section->count);
  pwi_put_u64(to + ENTRY(length), section->length);
}

static bool put_parts(struct pwi_message_builder *builder) {
  const struct pwi_sections *sections = &builder->sections;
  size_t padded = padded_table_size(sections->count);
  uint8_t *table = builder->scratch + PWI_MESSAGE_TABLE_MAX - padded;
  memset(table, 0, padded);
  for (size_t i = 0; i < sections->count; i++) put_entry(table + table_size(i), &sections->items[i]);
  bool fits = put_part(builder, table, padded);
  for (size_t i = 0; i < sections->count && fits; i++) {
    const struct pwi_section *section = &sections->items[i];
    fits = put_part(builder, builder->data[i], section->length);
    if (!fits || i + 1 == sections->count) break;
    size_t padding = section[1].offset - (section->offset + section->length);
    fits = put_part(builder, padding_of(builder, i), padding);
  }
  return fits;
}

static void put_head(struct pwi_message_builder *builder) {
  const struct pwi_message_head *about = &builder->about;
  uint8_t *to = builder->head;
  pwi_put_u32(to + HEAD(magic), PWI_MESSAGE_MAGIC);
  to[HEAD(version)] = builder->terms.version;
  to[HEAD(section_count)] = (uint8_t)builder->sections.count;
  pwi_put_u16(to + HEAD(kind), about->kind);
  pwi_put_u64(to + HEAD(body_size), builder->body_size);
  pwi_put_u64(to + HEAD(checksum), 0);
  pwi_put_u64(to + HEAD(sender), about->sender);
  pwi_put_u64(to + HEAD(task), about->task);
  pwi_put_u64(to + HEAD(tick), about->tick);
  pwi_put_u32(to + HEAD(view), about->view);
  pwi_put_u32(to + HEAD(membership), about->membership);
  pwi_put_u32(to + HEAD(catalogue), about->catalogue);
  pwi_put_u16(to + HEAD(flags), builder->terms.unchecked ? PWI_MESSAGE_UNCHECKED : 0);
  pwi_put_u16(to + HEAD(reserved), 0);
}

static uint64_t checksum_of(const struct pwi_message_builder *builder) {
  struct pwi_hasher hasher;
  hash_head(&hasher, builder->head);
  for (size_t i = 0; i < builder->part_count; i++) {
    pwi_hasher_add(&hasher, builder->parts[i].iov_base, builder->parts[i].iov_len);
  }
  return pwi_hasher_value(&hasher);
}

pawl_status pwi_message_finish(struct pwi_message_builder *builder) {
  size_t body_size;
  if (!lay_out(&builder->sections, &body_size) || body_size > builder->terms.body_max) return PAWL_TOO_LARGE;
  builder->part_count = 0;
  builder->body_size = body_size;
  if (!put_parts(builder)) return PAWL_TOO_LARGE;
  put_head(builder);
  if (!builder->terms.unchecked) pwi_put_u64(builder->head + HEAD(checksum), checksum_of(builder));
  return PAWL_OK;
}

/* --- parsing -------------------------------------------------------------------------------------------- */

uint16_t pwi_message_peek_kind(const uint8_t head[PWI_MESSAGE_HEAD_SIZE]) { return pwi_get_u16(head + HEAD(kind)); }

static void get_head(const uint8_t *from, struct pwi_message_head *head) {
  *head = (struct pwi_message_head){
      .sender = pwi_get_u64(from + HEAD(sender)),
      .task = pwi_get_u64(from + HEAD(task)),
      .tick = pwi_get_u64(from + HEAD(tick)),
      .view = pwi_get_u32(from + HEAD(view)),
      .membership = pwi_get_u32(from + HEAD(membership)),
      .catalogue = pwi_get_u32(from + HEAD(catalogue)),
      .kind = pwi_get_u16(from + HEAD(kind)),
      .flags = pwi_get_u16(from + HEAD(flags)),
      .version = from[HEAD(version)],
      .section_count = from[HEAD(section_count)],
      .checksum = pwi_get_u64(from + HEAD(checksum)),
  };
}

static pawl_status judge_flags(const struct pwi_message_head *head, const struct pwi_message_terms *terms) {
  if (head->flags & ~PWI_MESSAGE_UNCHECKED) return PAWL_CORRUPT;
  if (!(head->flags & PWI_MESSAGE_UNCHECKED)) return PAWL_OK;
  return terms->unchecked ? good_if(head->checksum == 0) : PAWL_FORBIDDEN;
}

/* A body without sections is empty; any other contains its table and the zeros after it. */
static pawl_status judge_size(const struct pwi_message_head *head) {
  if (head->section_count > PWI_MESSAGE_SECTIONS_MAX) return PAWL_CORRUPT;
  if (head->section_count == 0) return good_if(head->body_size == 0);
  return good_if(head->body_size >= padded_table_size(head->section_count));
}

struct pwi_message_head pwi_message_peek(const uint8_t head[PWI_MESSAGE_HEAD_SIZE]) {
  struct pwi_message_head fields;
  get_head(head, &fields);
  return fields;
}

pawl_status pwi_message_parse_head(const void *bytes, size_t body_size, const struct pwi_message_terms *terms,
                                   struct pwi_message_head *head_out) {
  const uint8_t *from = bytes;
  struct pwi_message_head head;
  get_head(from, &head);
  if (pwi_get_u32(from + HEAD(magic)) != PWI_MESSAGE_MAGIC) return PAWL_LINK_PROTOCOL;
  if (head.version != terms->version) return PAWL_LINK_VERSION;
  if (head.kind == 0 || pwi_get_u16(from + HEAD(reserved)) != 0) return PAWL_CORRUPT;
  if (!pwi_u64_to_size(pwi_get_u64(from + HEAD(body_size)), &head.body_size)) return PAWL_TOO_LARGE;
  if (head.body_size > terms->body_max) return PAWL_TOO_LARGE;
  if (head.body_size != body_size) return PAWL_CORRUPT;
  pawl_status status = judge_flags(&head, terms);
  if (status == PAWL_OK) status = judge_size(&head);
  if (status == PAWL_OK) *head_out = head;
  return status;
}

static bool get_entry(const uint8_t *from, struct pwi_section *section) {
  section->type = pwi_get_u16(from + ENTRY(type));
  section->codec = from[ENTRY(codec)];
  section->value_type = from[ENTRY(value_type)];
  section->count = pwi_get_u32(from + ENTRY(count));
  return pwi_u64_to_size(pwi_get_u64(from + ENTRY(length)), &section->length);
}

/* The layout is checked before the single sections: if the table does not match the size of the body, nothing
 * else can be trusted. */
pawl_status pwi_message_parse_table(const struct pwi_message_head *head, const void *body, size_t size,
                                    const struct pwi_message_terms *terms, struct pwi_sections *sections_out) {
  const uint8_t *table = body;
  struct pwi_sections sections = {.count = head->section_count};
  size_t body_size;
  if (size < table_size(sections.count)) return PAWL_TRUNCATED;
  for (size_t i = 0; i < sections.count; i++) {
    if (!get_entry(table + table_size(i), &sections.items[i])) return PAWL_CORRUPT;
  }
  if (!lay_out(&sections, &body_size) || body_size != head->body_size) return PAWL_CORRUPT;
  for (size_t i = 0; i < sections.count; i++) {
    pawl_status status = judge_section(&sections.items[i], terms);
    if (status != PAWL_OK) return status;
  }
  *sections_out = sections;
  return PAWL_OK;
}

/* --- following a body ----------------------------------------------------------------------------------- */

void pwi_message_check_init(struct pwi_message_check *check, const void *bytes, const struct pwi_message_head *head,
                            const struct pwi_message_terms *terms) {
  check->head = *head;
  check->terms = *terms;
  check->status = PAWL_OK;
  check->seen = 0;
  check->sections.count = 0;
  check->has_table = head->section_count == 0;
  if (!(head->flags & PWI_MESSAGE_UNCHECKED)) hash_head(&check->hasher, bytes);
}

/* The table is copied to private memory and parsed there once, so that no other process can change it any
 * more. */
static pawl_status take_table(struct pwi_message_check *check, const uint8_t *piece, size_t size) {
  if (check->has_table) return PAWL_OK;
  size_t whole = table_size(check->head.section_count), missing = whole - check->seen;
  if (size < missing) {
    memcpy(check->table + check->seen, piece, size);
    return PAWL_OK;
  }
  memcpy(check->table + check->seen, piece, missing);
  pawl_status status = pwi_message_parse_table(&check->head, check->table, whole, &check->terms, &check->sections);
  check->has_table = status == PAWL_OK;
  return status;
}

/* True if the bytes of [begin, end) that lie in this piece are zero. */
static bool zero_within(const struct pwi_message_check *check, const uint8_t *piece, size_t size, size_t begin,
                        size_t end) {
  uint8_t any = 0;
  if (begin < check->seen) begin = check->seen;
  if (end > check->seen + size) end = check->seen + size;
  for (size_t at = begin; at < end; at++) any |= piece[at - check->seen];
  return any == 0;
}

static pawl_status judge_padding(const struct pwi_message_check *check, const uint8_t *piece, size_t size) {
  if (!check->has_table) return PAWL_OK;
  bool zero = true;
  size_t end = table_size(check->sections.count);
  for (size_t i = 0; i < check->sections.count; i++) {
    const struct pwi_section *section = &check->sections.items[i];
    zero &= zero_within(check, piece, size, end, section->offset);
    end = section->offset + section->length;
  }
  return good_if(zero);
}

static pawl_status take_piece(struct pwi_message_check *check, const uint8_t *piece, size_t size) {
  if (size > check->head.body_size - check->seen) return PAWL_CORRUPT;
  pawl_status status = take_table(check, piece, size);
  if (status == PAWL_OK) status = judge_padding(check, piece, size);
  if (status != PAWL_OK) return status;
  if (!(check->head.flags & PWI_MESSAGE_UNCHECKED)) pwi_hasher_add(&check->hasher, piece, size);
  check->seen += size;
  return PAWL_OK;
}

pawl_status pwi_message_check_add(struct pwi_message_check *check, const void *piece, size_t size) {
  if (check->status == PAWL_OK && size > 0) check->status = take_piece(check, piece, size);
  return check->status;
}

pawl_status pwi_message_check_end(const struct pwi_message_check *check) {
  if (check->status != PAWL_OK) return check->status;
  if (check->seen < check->head.body_size) return PAWL_TRUNCATED;
  if (check->head.flags & PWI_MESSAGE_UNCHECKED) return PAWL_OK;
  return good_if(pwi_hasher_value(&check->hasher) == check->head.checksum);
}

pawl_status pwi_message_check_whole(const void *bytes, const struct pwi_message_head *head, const void *body,
                                    size_t size, const struct pwi_message_terms *terms,
                                    struct pwi_sections *sections_out) {
  struct pwi_message_check check;
  pwi_message_check_init(&check, bytes, head, terms);
  pawl_status status = pwi_message_check_add(&check, body, size);
  if (status == PAWL_OK) status = pwi_message_check_end(&check);
  if (status == PAWL_OK) *sections_out = check.sections;
  return status;
}
