/* The message layout: messages survive encoding, damage is detected, and parsing is safe on arbitrary
 * bytes. */
#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/testing.h"
#include "net/net.h"
#include "wire/documented_testing.h"
#include "wire/keys.h"
#include "wire/message.h"
#include "wire/values.h"

/* Places of fields, from docs/wire-format.md and not from message.c. */
enum { VERSION = 4, SECTION_COUNT = 5, KIND = 6, BODY_SIZE = 8, CHECKSUM = 16, FLAGS = 60, RESERVED = 62 };
enum { CODEC = 2, VALUE_TYPE = 3, COUNT = 4, LENGTH = 8 };

static const struct pwi_message_terms terms = {.body_max = 1 << 20, .unpacked_max = 1 << 20, .version = 1};
static const struct pwi_message_terms safe_link = {
    .body_max = 1 << 20, .unpacked_max = 1 << 20, .version = 1, .unchecked = true};
static const struct pwi_message_head about = {
    .sender = 7, .task = 42, .tick = 5, .view = 3, .membership = 2, .catalogue = 9, .kind = 1};

/* Head and body of a finished message. The body is a separate block of exact size, so that a sanitizer
 * detects overruns. */
struct flat {
  uint8_t head[PWI_MESSAGE_HEAD_SIZE];
  uint8_t *body;
  size_t size;
};

static struct pwi_message_builder builder;
static uint8_t data[1 << 16]; /* contents of sections, aligned or unaligned */
static uint64_t drawn;

static uint64_t draw(void) { return pwi_mix64(++drawn * UINT64_C(0x9e3779b97f4a7c15)); }

static int restart(void **state) {
  (void)state;
  drawn = 2014;
  for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(draw() | 1);
  return 0;
}

static struct flat flatten(void) {
  struct flat flat = {.body = pwi_alloc(builder.body_size)};
  assert_non_null(flat.body);
  memcpy(flat.head, builder.head, sizeof flat.head);
  for (size_t i = 0; i < builder.part_count; i++) {
    assert_true(builder.parts[i].iov_len > 0);
    memcpy(flat.body + flat.size, builder.parts[i].iov_base, builder.parts[i].iov_len);
    flat.size += builder.parts[i].iov_len;
  }
  assert_int_equal(flat.size, builder.body_size);
  return flat;
}

/* Sets the checksum that matches the present bytes, computed independently of message.c. */
static void seal(struct flat *flat) {
  struct pwi_hasher hasher;
  pwi_put_u64(flat->head + CHECKSUM, 0);
  pwi_hasher_init(&hasher, 0);
  pwi_hasher_add(&hasher, flat->head, sizeof flat->head);
  pwi_hasher_add(&hasher, flat->body, flat->size);
  pwi_put_u64(flat->head + CHECKSUM, pwi_hasher_value(&hasher));
}

/* Everything that a receiver does with a complete message. */
static pawl_status receive(const struct flat *flat, const struct pwi_message_terms *accepted,
                           struct pwi_sections *sections_out) {
  struct pwi_message_head head;
  pawl_status status = pwi_message_parse_head(flat->head, flat->size, accepted, &head);
  if (status != PAWL_OK) return status;
  return pwi_message_check_whole(flat->head, &head, flat->body, flat->size, accepted, sections_out);
}

static struct pwi_section records(uint16_t type, size_t length) {
  return (struct pwi_section){.type = type, .count = (uint32_t)length, .length = length};
}

/* Three sections of 100, 0 and 20 bytes. */
static struct flat sample(const struct pwi_message_terms *sent) {
  struct pwi_section first = records(16, 100), second = records(17, 0);
  struct pwi_section third = {
      .type = PWI_SECTION_VALUES, .codec = PWI_CODEC_RAW, .value_type = PWI_TYPE_F32, .count = 5, .length = 20};
  pwi_message_begin(&builder, sent, &about);
  assert_int_equal(pwi_message_add(&builder, &first, data), PAWL_OK);
  assert_int_equal(pwi_message_copy(&builder, &second, NULL), PAWL_OK);
  assert_int_equal(pwi_message_add(&builder, &third, data + 333), PAWL_OK);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  return flatten();
}

static uint8_t *entry(struct flat *flat, size_t index) { return flat->body + index * PWI_MESSAGE_ENTRY_SIZE; }

static void test_limits_agree_with_the_network(void **state) {
  (void)state;
  assert_int_equal(PWI_MESSAGE_HEAD_SIZE, PWI_NET_HEAD_SIZE);
  assert_true(PWI_MESSAGE_PARTS_MAX <= PWI_NET_IOV_MAX);
  assert_int_equal(PWI_MESSAGE_ALIGN % PWI_NET_PIECE_STEP, 0);
}

static void test_every_field_of_a_head_comes_back(void **state) {
  (void)state;
  struct pwi_message_head sent = {.sender = draw(),
                                  .task = draw(),
                                  .tick = draw(),
                                  .view = (uint32_t)draw(),
                                  .membership = (uint32_t)draw(),
                                  .catalogue = (uint32_t)draw(),
                                  .kind = UINT16_MAX};
  struct pwi_message_head got;
  pwi_message_begin(&builder, &terms, &sent);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  uint8_t unaligned[PWI_MESSAGE_HEAD_SIZE + 1];
  memcpy(unaligned + 1, builder.head, PWI_MESSAGE_HEAD_SIZE);
  assert_int_equal(pwi_message_parse_head(unaligned + 1, 0, &terms, &got), PAWL_OK);
  assert_true(got.sender == sent.sender && got.task == sent.task && got.tick == sent.tick);
  assert_true(got.view == sent.view && got.membership == sent.membership && got.catalogue == sent.catalogue);
  assert_int_equal(got.kind, sent.kind);
  assert_int_equal(got.version, 1);
  assert_int_equal(got.section_count, 0);
  assert_int_equal(got.body_size, 0);
  assert_int_equal(got.flags, 0);
}

static void test_a_message_without_sections_has_no_body(void **state) {
  (void)state;
  struct pwi_sections sections;
  pwi_message_begin(&builder, &terms, &about);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  assert_int_equal(builder.part_count, 0);
  struct flat flat = flatten();
  assert_int_equal(receive(&flat, &terms, &sections), PAWL_OK);
  assert_int_equal(sections.count, 0);
  pwi_free(flat.body);
}

/* Sections of sizes around the alignment, added by reference or by copy as the drawn bits say. */
static void round_trip(size_t count, size_t referenced_max) {
  static const size_t sizes[] = {0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000};
  size_t lengths[PWI_MESSAGE_SECTIONS_MAX], referenced = 0;
  pwi_message_begin(&builder, &terms, &about);
  for (size_t i = 0; i < count; i++) {
    bool reference = referenced < referenced_max && (draw() & 1 || referenced_max == count);
    lengths[i] = reference ? sizes[draw() % 12] : sizes[draw() % 7];
    struct pwi_section section = records((uint16_t)(16 + i), lengths[i]);
    referenced += reference;
    pawl_status status =
        reference ? pwi_message_add(&builder, &section, data + i) : pwi_message_copy(&builder, &section, data + i);
    assert_int_equal(status, PAWL_OK);
  }
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  struct flat flat = flatten();
  struct pwi_sections sections;
  assert_int_equal(receive(&flat, &terms, &sections), PAWL_OK);
  assert_int_equal(sections.count, count);
  size_t end = count * PWI_MESSAGE_ENTRY_SIZE;
  for (size_t i = 0; i < count; i++) {
    const struct pwi_section *section = pwi_sections_find(&sections, (uint16_t)(16 + i));
    assert_ptr_equal(section, &sections.items[i]);
    assert_int_equal(section->offset, (end + 63) / 64 * 64);
    assert_int_equal(section->length, lengths[i]);
    assert_int_equal(section->count, lengths[i]);
    assert_memory_equal(flat.body + section->offset, data + i, lengths[i]);
    end = section->offset + lengths[i];
  }
  assert_int_equal(end, flat.size);
  assert_null(pwi_sections_find(&sections, 1));
  pwi_free(flat.body);
}

static void test_any_number_of_sections_of_any_size_comes_back(void **state) {
  (void)state;
  for (size_t count = 0; count <= PWI_MESSAGE_SECTIONS_MAX; count++) {
    for (int i = 0; i < 100; i++) round_trip(count, count < 5 ? count / 2 : 5);
  }
}

static void test_eight_referenced_sections_always_fit(void **state) {
  (void)state;
  for (size_t count = 0; count <= 8; count++) {
    for (int i = 0; i < 100; i++) round_trip(count, count);
  }
}

static void test_referenced_data_is_never_copied(void **state) {
  (void)state;
  struct pwi_section first = records(16, 1000), second = records(17, 1 << 15);
  pwi_message_begin(&builder, &terms, &about);
  assert_int_equal(pwi_message_add(&builder, &first, data), PAWL_OK);
  assert_int_equal(pwi_message_add(&builder, &second, data + 2000), PAWL_OK);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  assert_int_equal(builder.part_count, 4); /* table, first, zeros, second */
  assert_ptr_equal(builder.parts[1].iov_base, data);
  assert_ptr_equal(builder.parts[3].iov_base, data + 2000);
  assert_int_equal(builder.parts[3].iov_len, 1 << 15);
}

static void test_copied_sections_travel_with_the_table(void **state) {
  (void)state;
  struct pwi_section small = records(16, 24), large = records(17, 5000);
  uint8_t gone[24];
  memcpy(gone, data, sizeof gone);
  pwi_message_begin(&builder, &terms, &about);
  for (int i = 0; i < 5; i++) assert_int_equal(pwi_message_copy(&builder, &small, gone), PAWL_OK);
  assert_int_equal(pwi_message_add(&builder, &large, data), PAWL_OK);
  memset(gone, 0, sizeof gone);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  assert_int_equal(builder.part_count, 2);
  struct flat flat = flatten();
  struct pwi_sections sections;
  assert_int_equal(receive(&flat, &terms, &sections), PAWL_OK);
  for (size_t i = 0; i < 5; i++) assert_memory_equal(flat.body + sections.items[i].offset, data, sizeof gone);
  pwi_free(flat.body);
}

static void test_the_builder_refuses_sections_that_do_not_fit(void **state) {
  (void)state;
  struct pwi_section odd = records(16, 65), large = records(16, PWI_MESSAGE_COPY_MAX + 1);
  pwi_message_begin(&builder, &terms, &about);
  assert_int_equal(pwi_message_copy(&builder, &large, data), PAWL_TOO_LARGE);
  for (int i = 0; i < 9; i++) assert_int_equal(pwi_message_add(&builder, &odd, data), PAWL_OK);
  assert_int_equal(pwi_message_finish(&builder), PAWL_TOO_LARGE); /* 18 parts */

  struct pwi_section none = records(16, 0);
  pwi_message_begin(&builder, &terms, &about);
  for (int i = 0; i < PWI_MESSAGE_SECTIONS_MAX; i++) assert_int_equal(pwi_message_add(&builder, &none, NULL), PAWL_OK);
  assert_int_equal(pwi_message_add(&builder, &none, NULL), PAWL_TOO_LARGE);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);

  struct pwi_message_terms narrow = terms;
  for (narrow.body_max = 0; narrow.body_max <= 130; narrow.body_max++) {
    pwi_message_begin(&builder, &narrow, &about);
    assert_int_equal(pwi_message_add(&builder, &odd, data), PAWL_OK);
    assert_int_equal(pwi_message_finish(&builder), narrow.body_max < 64 + 65 ? PAWL_TOO_LARGE : PAWL_OK);
  }
}

static void test_sizes_that_leave_the_machine_are_refused_by_the_builder(void **state) {
  (void)state;
  struct pwi_message_terms wide = {.body_max = SIZE_MAX, .unpacked_max = SIZE_MAX, .version = 1};
  struct pwi_section section = {.type = 16, .count = 1, .length = SIZE_MAX - 63};
  pwi_message_begin(&builder, &wide, &about);
  assert_int_equal(pwi_message_copy(&builder, &section, data), PAWL_TOO_LARGE);
  section.length = SIZE_MAX;
  assert_int_equal(pwi_message_copy(&builder, &section, data), PAWL_TOO_LARGE);
  assert_int_equal(pwi_message_add(&builder, &section, data), PAWL_OK);
  assert_int_equal(pwi_message_finish(&builder), PAWL_TOO_LARGE);
}

static void test_a_builder_can_be_used_again(void **state) {
  (void)state;
  struct flat once = sample(&terms), twice = sample(&terms);
  assert_memory_equal(once.head, twice.head, sizeof once.head);
  assert_memory_equal(once.body, twice.body, once.size);
  pwi_free(once.body);
  pwi_free(twice.body);
}

static void test_a_body_cut_short_anywhere_is_refused(void **state) {
  (void)state;
  struct flat flat = sample(&terms);
  struct pwi_message_head head;
  struct pwi_sections sections;
  assert_int_equal(pwi_message_parse_head(flat.head, flat.size, &terms, &head), PAWL_OK);
  for (size_t size = 0; size < flat.size; size++) {
    uint8_t *cut = pwi_alloc(size);
    assert_non_null(cut);
    memcpy(cut, flat.body, size);
    pawl_status status = pwi_message_parse_table(&head, cut, size, &terms, &sections);
    assert_int_equal(status, size < 48 ? PAWL_TRUNCATED : PAWL_OK);
    assert_int_equal(pwi_message_check_whole(flat.head, &head, cut, size, &terms, &sections), PAWL_TRUNCATED);
    struct pwi_message_head other;
    assert_int_equal(pwi_message_parse_head(flat.head, size, &terms, &other), PAWL_CORRUPT);
    pwi_free(cut);
  }
  pwi_free(flat.body);
}

static void test_a_body_that_is_too_long_is_refused(void **state) {
  (void)state;
  struct flat flat = sample(&terms);
  struct pwi_message_head head;
  struct pwi_message_check check;
  assert_int_equal(pwi_message_parse_head(flat.head, flat.size + 1, &terms, &head), PAWL_CORRUPT);
  assert_int_equal(pwi_message_parse_head(flat.head, flat.size, &terms, &head), PAWL_OK);
  pwi_message_check_init(&check, flat.head, &head, &terms);
  assert_int_equal(pwi_message_check_add(&check, flat.body, flat.size), PAWL_OK);
  assert_int_equal(pwi_message_check_end(&check), PAWL_OK);
  assert_int_equal(pwi_message_check_add(&check, data, 1), PAWL_CORRUPT);
  assert_int_equal(pwi_message_check_end(&check), PAWL_CORRUPT);
  pwi_free(flat.body);
}

static void test_every_flipped_bit_is_noticed(void **state) {
  (void)state;
  struct flat flat = sample(&terms);
  struct pwi_sections sections;
  const struct pwi_message_terms *links[] = {&terms, &safe_link};
  for (size_t link = 0; link < 2; link++) {
    assert_int_equal(receive(&flat, links[link], &sections), PAWL_OK);
    for (size_t bit = 0; bit < (sizeof flat.head + flat.size) * 8; bit++) {
      size_t at = bit / 8;
      uint8_t *byte = at < sizeof flat.head ? flat.head + at : flat.body + (at - sizeof flat.head);
      *byte ^= (uint8_t)(1u << bit % 8);
      assert_int_not_equal(receive(&flat, links[link], &sections), PAWL_OK);
      *byte ^= (uint8_t)(1u << bit % 8);
    }
  }
  pwi_free(flat.body);
}

static void test_a_missing_checksum_is_accepted_only_where_the_link_is_safe(void **state) {
  (void)state;
  struct flat flat = sample(&safe_link);
  struct pwi_sections sections;
  assert_true(pwi_get_u64(flat.head + CHECKSUM) == 0);
  assert_int_equal(pwi_get_u16(flat.head + FLAGS), PWI_MESSAGE_UNCHECKED);
  assert_int_equal(receive(&flat, &terms, &sections), PAWL_FORBIDDEN);
  assert_int_equal(receive(&flat, &safe_link, &sections), PAWL_OK);
  assert_int_equal(sections.count, 3);
  pwi_put_u64(flat.head + CHECKSUM, 1);
  assert_int_equal(receive(&flat, &safe_link, &sections), PAWL_CORRUPT);
  pwi_put_u64(flat.head + CHECKSUM, 0);
  flat.body[64 + 100] = 1; /* behind the first section */
  assert_int_equal(receive(&flat, &safe_link, &sections), PAWL_CORRUPT);
  pwi_free(flat.body);
}

static void test_bytes_between_sections_must_be_zero_whatever_the_checksum_says(void **state) {
  (void)state;
  struct flat flat = sample(&terms);
  struct pwi_sections sections;
  size_t refused = 0;
  for (size_t at = 3 * PWI_MESSAGE_ENTRY_SIZE; at < flat.size; at++) {
    flat.body[at] ^= 0x40;
    seal(&flat);
    bool padding = at < 64 || (at >= 64 + 100 && at < 192);
    assert_int_equal(receive(&flat, &terms, &sections), padding ? PAWL_CORRUPT : PAWL_OK);
    refused += padding;
    flat.body[at] ^= 0x40;
  }
  assert_int_equal(refused, 16 + 28);
  pwi_free(flat.body);
}

static void test_pieces_of_any_size_are_judged_like_the_whole(void **state) {
  (void)state;
  for (int round = 0; round < 400; round++) {
    struct flat flat = sample(round & 2 ? &terms : &safe_link);
    struct pwi_message_head head;
    struct pwi_sections whole = {0};
    struct pwi_message_check check;
    if (round & 1) flat.body[draw() % flat.size] ^= (uint8_t)(1u << draw() % 8);
    assert_int_equal(pwi_message_parse_head(flat.head, flat.size, &safe_link, &head), PAWL_OK);
    pawl_status expected = pwi_message_check_whole(flat.head, &head, flat.body, flat.size, &safe_link, &whole);
    if (!(round & 1)) assert_int_equal(expected, PAWL_OK);
    pwi_message_check_init(&check, flat.head, &head, &safe_link);
    size_t step = 1 + draw() % 100;
    for (size_t at = 0; at < flat.size;) {
      size_t size = draw() % (step + 1);
      if (size > flat.size - at) size = flat.size - at;
      uint8_t *piece = pwi_alloc(size);
      assert_non_null(piece);
      memcpy(piece, flat.body + at, size);
      pawl_status status = pwi_message_check_add(&check, piece, size);
      pwi_free(piece);
      at += size;
      if (status == PAWL_OK) assert_int_equal(check.has_table, at >= 48);
      assert_true(status == PAWL_OK || status == expected);
    }
    assert_int_equal(pwi_message_check_end(&check), expected);
    if (expected == PAWL_OK) assert_memory_equal(&check.sections, &whole, sizeof whole);
    pwi_free(flat.body);
  }
}

static void test_heads_that_no_sender_writes_are_refused(void **state) {
  (void)state;
  static const struct {
    size_t at;
    uint8_t value;
    pawl_status status;
  } cases[] = {
      {0, 'Q', PAWL_LINK_PROTOCOL},       {3, 'H', PAWL_LINK_PROTOCOL},      {VERSION, 0, PAWL_LINK_VERSION},
      {VERSION, 2, PAWL_LINK_VERSION},    {SECTION_COUNT, 0, PAWL_CORRUPT},  {SECTION_COUNT, 17, PAWL_CORRUPT},
      {SECTION_COUNT, 255, PAWL_CORRUPT}, {SECTION_COUNT, 14, PAWL_CORRUPT}, {KIND, 0, PAWL_CORRUPT},
      {FLAGS, 2, PAWL_CORRUPT},           {FLAGS + 1, 0x80, PAWL_CORRUPT},   {FLAGS, 1, PAWL_FORBIDDEN},
      {RESERVED, 1, PAWL_CORRUPT},        {RESERVED + 1, 1, PAWL_CORRUPT},   {BODY_SIZE + 7, 0x80, PAWL_TOO_LARGE},
      {BODY_SIZE + 3, 1, PAWL_TOO_LARGE}, {BODY_SIZE, 0, PAWL_CORRUPT},
  };
  struct flat flat = sample(&terms);
  struct pwi_message_head head, untouched;
  memset(&head, 0xaa, sizeof head);
  untouched = head;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct flat bad = flat;
    bad.head[cases[i].at] = cases[i].value;
    assert_int_equal(pwi_message_parse_head(bad.head, bad.size, &terms, &head), cases[i].status);
    assert_memory_equal(&head, &untouched, sizeof head);
  }
  pwi_free(flat.body);
}

static void test_the_limit_on_bodies_comes_before_everything_about_them(void **state) {
  (void)state;
  struct flat flat = sample(&terms);
  struct pwi_message_head head;
  struct pwi_message_terms narrow = terms;
  narrow.body_max = flat.size;
  assert_int_equal(pwi_message_parse_head(flat.head, flat.size, &narrow, &head), PAWL_OK);
  narrow.body_max = flat.size - 1;
  assert_int_equal(pwi_message_parse_head(flat.head, flat.size, &narrow, &head), PAWL_TOO_LARGE);
  pwi_put_u64(flat.head + BODY_SIZE, UINT64_MAX);
  assert_int_equal(pwi_message_parse_head(flat.head, SIZE_MAX, &terms, &head), PAWL_TOO_LARGE);
  pwi_free(flat.body);
}

/* One entry of the sample's table gets another length; count and checksum go with it. */
static pawl_status receive_length(size_t index, uint64_t length) {
  struct flat flat = sample(&terms);
  struct pwi_sections sections;
  entry(&flat, index)[VALUE_TYPE] = PWI_SECTION_RECORDS;
  pwi_put_u32(entry(&flat, index) + COUNT, length > 0);
  pwi_put_u64(entry(&flat, index) + LENGTH, length);
  seal(&flat);
  pawl_status status = receive(&flat, &terms, &sections);
  pwi_free(flat.body);
  return status;
}

static void test_lengths_that_do_not_tile_the_body_are_refused(void **state) {
  (void)state;
  static const uint64_t lengths[] = {0,
                                     1,
                                     19,
                                     21,
                                     63,
                                     64,
                                     99,
                                     129,
                                     148,
                                     (uint64_t)INT64_MAX,
                                     INT64_MAX - 63,
                                     UINT64_MAX,
                                     UINT64_MAX - 1,
                                     UINT64_MAX - 62,
                                     UINT64_MAX - 63,
                                     UINT64_MAX - 127};
  for (size_t index = 0; index < 3; index++) {
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
      if (index == 1 && lengths[i] == 0) continue; /* as it was */
      assert_int_equal(receive_length(index, lengths[i]), PAWL_CORRUPT);
    }
  }
  assert_int_equal(receive_length(0, 100), PAWL_OK);
}

/* Lengths whose sum comes back to the right size by going round 2^64: once where a section ends, and once
 * where the zeros behind it do. */
static void test_lengths_that_wrap_around_are_refused(void **state) {
  (void)state;
  static const uint64_t firsts[] = {UINT64_MAX - 63, UINT64_MAX - 64 - 10};
  for (size_t i = 0; i < 2; i++) {
    struct flat flat = sample(&terms);
    struct pwi_sections sections;
    pwi_put_u64(entry(&flat, 0) + LENGTH, firsts[i]);
    pwi_put_u32(entry(&flat, 0) + COUNT, 1);
    pwi_put_u64(entry(&flat, 1) + LENGTH, 192);
    pwi_put_u32(entry(&flat, 1) + COUNT, 1);
    seal(&flat);
    assert_int_equal(receive(&flat, &terms, &sections), PAWL_CORRUPT);
    pwi_free(flat.body);
  }
}

static void test_more_sections_than_there_can_be_are_refused(void **state) {
  (void)state;
  struct pwi_section section = records(16, 1 << 15);
  struct pwi_message_head head;
  pwi_message_begin(&builder, &terms, &about);
  assert_int_equal(pwi_message_add(&builder, &section, data), PAWL_OK);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  for (unsigned count = 1; count <= UINT8_MAX; count++) {
    builder.head[SECTION_COUNT] = (uint8_t)count;
    assert_int_equal(pwi_message_parse_head(builder.head, builder.body_size, &terms, &head),
                     count <= PWI_MESSAGE_SECTIONS_MAX ? PAWL_OK : PAWL_CORRUPT);
  }
}

static void test_entries_in_another_order_do_not_pass_for_each_other(void **state) {
  (void)state;
  struct flat flat = sample(&terms);
  struct pwi_sections sections;
  uint8_t first[PWI_MESSAGE_ENTRY_SIZE];
  memcpy(first, entry(&flat, 0), sizeof first);
  memcpy(entry(&flat, 0), entry(&flat, 2), sizeof first);
  memcpy(entry(&flat, 2), first, sizeof first);
  seal(&flat);
  /* 20, 0, 100 do not end where the body does. */
  assert_int_equal(receive(&flat, &terms, &sections), PAWL_CORRUPT);
  pwi_free(flat.body);
}

/* A message of one section with a table entry that no builder would produce. */
static pawl_status receive_claim(unsigned codec, unsigned value_type, uint32_t count, size_t length) {
  struct pwi_section section = records(16, length);
  pwi_message_begin(&builder, &terms, &about);
  assert_int_equal(pwi_message_add(&builder, &section, data), PAWL_OK);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  struct flat flat = flatten();
  struct pwi_sections sections;
  entry(&flat, 0)[CODEC] = (uint8_t)codec;
  entry(&flat, 0)[VALUE_TYPE] = (uint8_t)value_type;
  pwi_put_u32(entry(&flat, 0) + COUNT, count);
  seal(&flat);
  pawl_status status = receive(&flat, &terms, &sections);
  pwi_free(flat.body);

  struct pwi_section claim = {.type = 16, .codec = (uint8_t)codec, .value_type = (uint8_t)value_type};
  claim.count = count;
  claim.length = length;
  pwi_message_begin(&builder, &terms, &about);
  pawl_status sent = pwi_message_add(&builder, &claim, data);
  assert_int_equal(sent, status == PAWL_OK || status == PAWL_TOO_LARGE ? status : PAWL_INVALID);
  return status;
}

static void test_counts_must_go_with_lengths(void **state) {
  (void)state;
  static const struct {
    unsigned codec, type;
    uint32_t count;
    size_t length;
    pawl_status status;
  } cases[] = {
      {PWI_CODEC_RAW, PWI_SECTION_RECORDS, 3, 72, PAWL_OK},
      {PWI_CODEC_RAW, PWI_SECTION_RECORDS, 5, 72, PAWL_CORRUPT},
      {PWI_CODEC_RAW, PWI_SECTION_RECORDS, 0, 72, PAWL_CORRUPT},
      {PWI_CODEC_RAW, PWI_SECTION_RECORDS, 1, 0, PAWL_CORRUPT},
      {PWI_CODEC_RAW, PWI_SECTION_RECORDS, UINT32_MAX, 72, PAWL_CORRUPT},
      {PWI_CODEC_LZ4, PWI_SECTION_RECORDS, 3, 72, PAWL_UNSUPPORTED},
      {PWI_CODEC_RAW, PWI_TYPE_F32, 18, 72, PAWL_OK},
      {PWI_CODEC_RAW, PWI_TYPE_F32, 17, 72, PAWL_CORRUPT},
      {PWI_CODEC_RAW, PWI_TYPE_U64, 9, 72, PAWL_OK},
      {PWI_CODEC_RAW, PWI_TYPE_U64, 18, 72, PAWL_CORRUPT},
      {PWI_CODEC_RAW, PWI_TYPE_F32, 0x40000012, 72, PAWL_TOO_LARGE}, /* times 4 is 72 in 32 bits */
      {PWI_CODEC_RAW, PWI_TYPE_F64, UINT32_MAX, 72, PAWL_TOO_LARGE},
      {PWI_CODEC_RAW, PWI_TYPE_F32, 0, 0, PAWL_OK},
      {PWI_CODEC_F16, PWI_TYPE_F64, 36, 72, PAWL_OK},
      {PWI_CODEC_BF16, PWI_TYPE_F32, 35, 72, PAWL_CORRUPT},
      {PWI_CODEC_F16, PWI_TYPE_I32, 36, 72, PAWL_CORRUPT},
      {PWI_CODEC_INT8, PWI_TYPE_F32, 68, 72, PAWL_OK},
      {PWI_CODEC_INT8, PWI_TYPE_F32, 72, 72, PAWL_CORRUPT},
      {PWI_CODEC_BITMAP, PWI_TYPE_F32, 4096, 8, PAWL_OK},
      {PWI_CODEC_BITMAP, PWI_TYPE_F32, 0, 8, PAWL_CORRUPT},
      {PWI_CODEC_ZSTD, PWI_TYPE_I64, 1, 0, PAWL_CORRUPT},
      {PWI_CODEC_ZSTD, PWI_TYPE_I64, UINT32_MAX, 9, PAWL_TOO_LARGE},
      {PWI_CODEC_COUNT, PWI_TYPE_F32, 18, 72, PAWL_UNSUPPORTED},
      {255, PWI_TYPE_F32, 18, 72, PAWL_UNSUPPORTED},
      {PWI_CODEC_RAW, 6, 18, 72, PAWL_UNSUPPORTED},
      {PWI_CODEC_RAW, 255, 18, 72, PAWL_UNSUPPORTED},
      {PWI_SECTION_CODEC_KEYS, PWI_TYPE_U64, 256, 4, PAWL_OK},
      {PWI_SECTION_CODEC_KEYS, PWI_TYPE_U64, 257, 4, PAWL_CORRUPT},
      {PWI_SECTION_CODEC_KEYS, PWI_TYPE_U64, 0, 2, PAWL_OK},
      {PWI_SECTION_CODEC_KEYS, PWI_TYPE_U64, 0, 1, PAWL_CORRUPT},
      {PWI_SECTION_CODEC_KEYS, PWI_TYPE_F32, 1, 4, PAWL_CORRUPT},
      {PWI_SECTION_CODEC_KEYS, PWI_TYPE_U64, UINT32_MAX, 4, PAWL_TOO_LARGE},
      {PWI_SECTION_CODEC_KEYS, PWI_SECTION_RECORDS, 1, 4, PAWL_UNSUPPORTED},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pawl_status status = receive_claim(cases[i].codec, cases[i].type, cases[i].count, cases[i].length);
    if (status != cases[i].status) print_error("case %zu: %s\n", i, pawl_status_name(status));
    assert_int_equal(status, cases[i].status);
  }
}

static void test_a_section_without_a_type_is_refused(void **state) {
  (void)state;
  struct flat flat = sample(&terms);
  struct pwi_sections sections;
  pwi_put_u16(entry(&flat, 1), 0);
  seal(&flat);
  assert_int_equal(receive(&flat, &terms, &sections), PAWL_CORRUPT);
  pwi_free(flat.body);
}

/* Random bytes that pass each check up to the next one, so that every check is reached. */
static void test_garbage_is_harmless(void **state) {
  (void)state;
  size_t passed = 0;
  for (int round = 0; round < 20000; round++) {
    struct flat flat = {.size = draw() % 600};
    struct pwi_sections sections = {0};
    flat.body = pwi_alloc(flat.size);
    assert_non_null(flat.body);
    for (size_t i = 0; i < sizeof flat.head; i++) flat.head[i] = (uint8_t)draw();
    for (size_t i = 0; i < flat.size; i++) flat.body[i] = draw() & 1 ? 0 : (uint8_t)draw();
    pwi_put_u32(flat.head, PWI_MESSAGE_MAGIC);
    flat.head[VERSION] = 1;
    flat.head[SECTION_COUNT] = (uint8_t)(draw() % 4);
    pwi_put_u64(flat.head + BODY_SIZE, flat.size);
    memset(flat.head + FLAGS, 0, 4);
    for (size_t i = 0; flat.size >= 64 && i < flat.head[SECTION_COUNT]; i++) {
      pwi_put_u64(entry(&flat, i) + LENGTH, round & 1 ? draw() % flat.size : flat.size - 64);
    }
    seal(&flat);
    if (receive(&flat, &terms, &sections) == PAWL_OK) {
      passed++;
      for (size_t i = 0; i < sections.count; i++) {
        assert_true(sections.items[i].offset + sections.items[i].length <= flat.size);
      }
    }
    pwi_free(flat.body);
  }
  assert_true(passed > 0);
}

/* The message that docs/wire-format.md takes apart: keys 3, 4, 5 and 9 with values 1, -0.5, 0 and 2. */
static void build_example(void) {
  static const uint64_t keys[] = {3, 4, 5, 9};
  static const float values[] = {1, -0.5f, 0, 2};
  uint8_t packed[64];
  struct pwi_section key_section = {
      .type = PWI_SECTION_KEYS, .codec = PWI_SECTION_CODEC_KEYS, .value_type = PWI_TYPE_U64, .count = 4};
  struct pwi_section value_section = {.type = PWI_SECTION_VALUES,
                                      .codec = PWI_CODEC_RAW,
                                      .value_type = PWI_TYPE_F32,
                                      .count = 4,
                                      .length = sizeof values};
  assert_int_equal(pwi_keys_encode(keys, 4, packed, sizeof packed, &key_section.length), PAWL_OK);
  pwi_message_begin(&builder, &terms, &about);
  assert_int_equal(pwi_message_copy(&builder, &key_section, packed), PAWL_OK);
  assert_int_equal(pwi_message_add(&builder, &value_section, values), PAWL_OK);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
}

static const char example[] = "0000  50 41 57 4c 01 02 01 00 90 00 00 00 00 00 00 00\n"
                              "0010  94 73 96 e5 af ad e8 a4 07 00 00 00 00 00 00 00\n"
                              "0020  2a 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00\n"
                              "0030  03 00 00 00 02 00 00 00 09 00 00 00 00 00 00 00\n"
                              "0040  01 00 20 05 04 00 00 00 04 00 00 00 00 00 00 00\n"
                              "0050  02 00 00 01 04 00 00 00 10 00 00 00 00 00 00 00\n"
                              "0060  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n"
                              "0070  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n"
                              "0080  01 04 02 c3 00 00 00 00 00 00 00 00 00 00 00 00\n"
                              "0090  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n"
                              "00a0  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n"
                              "00b0  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n"
                              "00c0  00 00 80 3f 00 00 00 bf 00 00 00 00 00 00 00 40\n";

static void test_the_worked_example_is_what_is_built(void **state) {
  (void)state;
  build_example();
  struct flat flat = flatten();
  uint8_t message[512];
  char text[4096];
  memcpy(message, flat.head, sizeof flat.head);
  memcpy(message + sizeof flat.head, flat.body, flat.size);
  testing_dump(message, sizeof flat.head + flat.size, text);
  assert_string_equal(text, example);
  memset(message + CHECKSUM, 0, 8);
  assert_true(pwi_hash(message, sizeof flat.head + flat.size, 0) == pwi_get_u64(flat.head + CHECKSUM));
  struct pwi_sections sections;
  uint64_t keys[4];
  size_t count;
  assert_int_equal(receive(&flat, &terms, &sections), PAWL_OK);
  const struct pwi_section *section = pwi_sections_find(&sections, PWI_SECTION_KEYS);
  assert_int_equal(pwi_keys_decode(flat.body + section->offset, section->length, keys, 4, &count), PAWL_OK);
  assert_int_equal(count, section->count);
  assert_int_equal(keys[3], 9);
  pwi_free(flat.body);
}

static void test_the_worked_example_is_what_is_documented(void **state) {
  (void)state;
  testing_assert_documented(example);
}

static void test_nothing_here_allocates(void **state) {
  (void)state;
  static struct pwi_message_check check;
  struct pwi_message_head head;
  uint64_t before = pwi_memory_counts().allocations;
  build_example();
  assert_int_equal(pwi_message_parse_head(builder.head, builder.body_size, &terms, &head), PAWL_OK);
  pwi_message_check_init(&check, builder.head, &head, &terms);
  assert_int_equal(pwi_message_check_add(&check, builder.parts[0].iov_base, builder.parts[0].iov_len), PAWL_OK);
  assert_true(pwi_memory_counts().allocations == before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_limits_agree_with_the_network, restart),
      cmocka_unit_test_setup(test_every_field_of_a_head_comes_back, restart),
      cmocka_unit_test_setup(test_a_message_without_sections_has_no_body, restart),
      cmocka_unit_test_setup(test_any_number_of_sections_of_any_size_comes_back, restart),
      cmocka_unit_test_setup(test_eight_referenced_sections_always_fit, restart),
      cmocka_unit_test_setup(test_referenced_data_is_never_copied, restart),
      cmocka_unit_test_setup(test_copied_sections_travel_with_the_table, restart),
      cmocka_unit_test_setup(test_the_builder_refuses_sections_that_do_not_fit, restart),
      cmocka_unit_test_setup(test_sizes_that_leave_the_machine_are_refused_by_the_builder, restart),
      cmocka_unit_test_setup(test_a_builder_can_be_used_again, restart),
      cmocka_unit_test_setup(test_a_body_cut_short_anywhere_is_refused, restart),
      cmocka_unit_test_setup(test_a_body_that_is_too_long_is_refused, restart),
      cmocka_unit_test_setup(test_every_flipped_bit_is_noticed, restart),
      cmocka_unit_test_setup(test_a_missing_checksum_is_accepted_only_where_the_link_is_safe, restart),
      cmocka_unit_test_setup(test_bytes_between_sections_must_be_zero_whatever_the_checksum_says, restart),
      cmocka_unit_test_setup(test_pieces_of_any_size_are_judged_like_the_whole, restart),
      cmocka_unit_test_setup(test_heads_that_no_sender_writes_are_refused, restart),
      cmocka_unit_test_setup(test_the_limit_on_bodies_comes_before_everything_about_them, restart),
      cmocka_unit_test_setup(test_lengths_that_do_not_tile_the_body_are_refused, restart),
      cmocka_unit_test_setup(test_lengths_that_wrap_around_are_refused, restart),
      cmocka_unit_test_setup(test_more_sections_than_there_can_be_are_refused, restart),
      cmocka_unit_test_setup(test_entries_in_another_order_do_not_pass_for_each_other, restart),
      cmocka_unit_test_setup(test_counts_must_go_with_lengths, restart),
      cmocka_unit_test_setup(test_a_section_without_a_type_is_refused, restart),
      cmocka_unit_test_setup(test_garbage_is_harmless, restart),
      cmocka_unit_test_setup(test_the_worked_example_is_what_is_built, restart),
      cmocka_unit_test_setup(test_the_worked_example_is_what_is_documented, restart),
      cmocka_unit_test_setup(test_nothing_here_allocates, restart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
