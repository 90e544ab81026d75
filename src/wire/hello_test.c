/* The hello: encoding and decoding, compatibility of neighbouring versions, and safety on arbitrary bytes. */
#include <pawl/version.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/testing.h"
#include "net/net.h"
#include "wire/documented_testing.h"
#include "wire/hello.h"
#include "wire/message.h"

static uint64_t drawn;

static uint64_t draw(void) { return pwi_mix64(++drawn * UINT64_C(0x9e3779b97f4a7c15)); }

static int restart(void **state) {
  (void)state;
  drawn = 2016;
  return 0;
}

static const struct pwi_hello server = {.lowest = 1,
                                        .highest = 1,
                                        .role = PWI_ROLE_SERVER,
                                        .cluster = UINT64_C(0x1122334455667788),
                                        .node = 7,
                                        .incarnation = 3,
                                        .features = 0,
                                        .software = "0.1.0",
                                        .host = "rack2/oak"};

struct bytes {
  uint8_t at[2 * PWI_HELLO_MAX];
  size_t size;
};

static struct bytes encode(const struct pwi_hello *hello) {
  struct bytes bytes = {0};
  assert_int_equal(pwi_hello_encode(hello, bytes.at, PWI_HELLO_MAX, &bytes.size), PAWL_OK);
  return bytes;
}

/* Decodes from a block of exact size, so that a sanitizer detects overruns. */
static pawl_status decode(const struct bytes *bytes, struct pwi_hello *hello_out) {
  uint8_t *exact = pwi_alloc(bytes->size);
  assert_non_null(exact);
  memcpy(exact, bytes->at, bytes->size);
  pawl_status status = pwi_hello_decode(exact, bytes->size, hello_out);
  pwi_free(exact);
  return status;
}

static void set_size(struct bytes *bytes) { pwi_put_u16(bytes->at + 6, (uint16_t)bytes->size); }

/* A hello of a later version: one more field. */
static void append(struct bytes *bytes, uint16_t tag, const void *data, size_t length) {
  pwi_put_u16(bytes->at + bytes->size, tag);
  pwi_put_u16(bytes->at + bytes->size + 2, (uint16_t)length);
  memcpy(bytes->at + bytes->size + 4, data, length);
  bytes->size += 4 + length;
  set_size(bytes);
}

static void assert_same(const struct pwi_hello *a, const struct pwi_hello *b) {
  assert_int_equal(a->lowest, b->lowest);
  assert_int_equal(a->highest, b->highest);
  assert_int_equal(a->role, b->role);
  assert_true(a->cluster == b->cluster && a->node == b->node);
  assert_true(a->incarnation == b->incarnation && a->features == b->features);
  assert_string_equal(a->software, b->software);
  assert_string_equal(a->host, b->host);
}

static void test_a_hello_comes_back(void **state) {
  (void)state;
  struct pwi_hello got;
  struct bytes bytes = encode(&server);
  assert_int_equal(decode(&bytes, &got), PAWL_OK);
  assert_same(&got, &server);
}

static void test_the_largest_and_the_smallest_hello_come_back(void **state) {
  (void)state;
  struct pwi_hello got, large = {.lowest = 1,
                                 .highest = UINT8_MAX,
                                 .role = UINT8_MAX,
                                 .cluster = UINT64_MAX,
                                 .node = UINT64_MAX,
                                 .incarnation = UINT64_MAX,
                                 .features = UINT64_MAX};
  memset(large.software, '~', PWI_HELLO_SOFTWARE_MAX);
  memset(large.host, '!', PWI_HELLO_HOST_MAX);
  struct bytes bytes = encode(&large);
  assert_int_equal(decode(&bytes, &got), PAWL_OK);
  assert_same(&got, &large);
  struct pwi_hello small = {.lowest = 1, .highest = 1, .role = 1};
  bytes = encode(&small);
  assert_int_equal(decode(&bytes, &got), PAWL_OK);
  assert_same(&got, &small);
}

static void test_a_fresh_hello_says_what_this_pawl_speaks(void **state) {
  (void)state;
  struct pwi_hello hello;
  pwi_hello_init(&hello);
  assert_int_equal(hello.lowest, PWI_PROTOCOL_LOWEST);
  assert_int_equal(hello.highest, PWI_PROTOCOL_HIGHEST);
  assert_string_equal(hello.software, pawl_version());
  assert_int_equal(PWI_HELLO_MAX, PWI_NET_HELLO_MAX);
}

static void test_fields_that_no_hello_can_carry_are_refused(void **state) {
  (void)state;
  uint8_t buffer[PWI_HELLO_MAX];
  size_t size = 12345, needed = encode(&server).size;
  struct pwi_hello bad = server;
  bad.lowest = 0;
  assert_int_equal(pwi_hello_encode(&bad, buffer, sizeof buffer, &size), PAWL_INVALID);
  bad = server;
  bad.lowest = 2;
  assert_int_equal(pwi_hello_encode(&bad, buffer, sizeof buffer, &size), PAWL_INVALID);
  bad = server;
  bad.role = 0;
  assert_int_equal(pwi_hello_encode(&bad, buffer, sizeof buffer, &size), PAWL_INVALID);
  bad = server;
  strcpy(bad.host, "two words");
  assert_int_equal(pwi_hello_encode(&bad, buffer, sizeof buffer, &size), PAWL_INVALID);
  bad = server;
  memset(bad.software, 'x', sizeof bad.software);
  assert_int_equal(pwi_hello_encode(&bad, buffer, sizeof buffer, &size), PAWL_INVALID);
  assert_int_equal(pwi_hello_encode(&server, buffer, needed - 1, &size), PAWL_TOO_LARGE);
  assert_int_equal(size, 12345);
  assert_int_equal(pwi_hello_encode(&server, buffer, needed, &size), PAWL_OK);
  assert_int_equal(size, needed);
}

static void test_roles_have_names_also_those_of_a_later_version(void **state) {
  (void)state;
  assert_string_equal(pwi_hello_role_text(PWI_ROLE_SERVER), "server");
  assert_string_equal(pwi_hello_role_text(PWI_ROLE_RELAY), "relay");
  assert_string_equal(pwi_hello_role_text(0), "client");
  assert_string_equal(pwi_hello_role_text(200), "client");
}

static void test_a_priority_may_be_missing(void **state) {
  (void)state;
  struct pwi_hello got, urgent = server;
  struct bytes plain = encode(&server), bytes = plain;
  assert_int_equal(decode(&plain, &got), PAWL_OK);
  assert_int_equal(got.priority, 0);
  append(&bytes, 8, "\x09", 1);
  assert_int_equal(decode(&bytes, &got), PAWL_OK);
  assert_int_equal(got.priority, 9);
  urgent.priority = 9;
  assert_memory_equal(encode(&urgent).at, bytes.at, bytes.size);
  bytes = plain;
  append(&bytes, 8, "\xc8", 1); /* of a newer version: the server decides */
  assert_int_equal(decode(&bytes, &got), PAWL_OK);
  assert_int_equal(got.priority, 200);
  bytes = plain;
  append(&bytes, 8, "\x00", 1);
  assert_int_equal(decode(&bytes, &got), PAWL_CORRUPT);
  bytes = plain;
  append(&bytes, 8, "\x01\x01", 2);
  assert_int_equal(decode(&bytes, &got), PAWL_CORRUPT);
}

static void test_fields_of_later_versions_are_skipped(void **state) {
  (void)state;
  struct pwi_hello got;
  struct bytes bytes = encode(&server);
  append(&bytes, 9, "", 0);
  append(&bytes, 10, "anything \x00\xff", 11);
  append(&bytes, UINT16_MAX, "last", 4);
  assert_int_equal(decode(&bytes, &got), PAWL_OK);
  assert_same(&got, &server);
  static const uint8_t filler[PWI_HELLO_MAX];
  bytes = encode(&server);
  append(&bytes, 9, filler, PWI_HELLO_MAX - 4 - bytes.size);
  assert_int_equal(bytes.size, PWI_HELLO_MAX);
  assert_int_equal(decode(&bytes, &got), PAWL_OK);
}

static void test_a_hello_that_is_too_long_is_refused(void **state) {
  (void)state;
  static const uint8_t filler[PWI_HELLO_MAX];
  struct pwi_hello got;
  struct bytes bytes = encode(&server);
  append(&bytes, 8, filler, PWI_HELLO_MAX - 3 - bytes.size);
  assert_int_equal(bytes.size, PWI_HELLO_MAX + 1);
  assert_int_equal(decode(&bytes, &got), PAWL_TOO_LARGE);
}

static void test_a_hello_cut_short_anywhere_is_refused(void **state) {
  (void)state;
  struct bytes whole = encode(&server);
  append(&whole, 8, "more", 4);
  for (size_t size = 0; size < whole.size; size++) {
    struct pwi_hello got;
    struct bytes cut = whole;
    cut.size = size;
    assert_int_equal(decode(&cut, &got), PAWL_TRUNCATED);
    if (size < 8) continue;
    set_size(&cut); /* and now a hello that lies about its length: good only where the unknown field was */
    pawl_status status = decode(&cut, &got);
    if (size == whole.size - 8) {
      assert_int_equal(status, PAWL_OK);
    } else {
      assert_true(status == PAWL_TRUNCATED || status == PAWL_CORRUPT);
    }
  }
}

static void test_bytes_behind_a_hello_are_refused(void **state) {
  (void)state;
  struct pwi_hello got;
  struct bytes bytes = encode(&server);
  bytes.size++;
  assert_int_equal(decode(&bytes, &got), PAWL_CORRUPT);
}

static void test_something_else_is_no_hello(void **state) {
  (void)state;
  struct pwi_hello got;
  struct bytes http = {.size = 18};
  memcpy(http.at, "GET / HTTP/1.1\r\n\r\n", 18);
  assert_int_equal(decode(&http, &got), PAWL_LINK_PROTOCOL);
  struct bytes bytes = encode(&server);
  pwi_put_u32(bytes.at, PWI_MESSAGE_MAGIC);
  assert_int_equal(decode(&bytes, &got), PAWL_LINK_PROTOCOL);
}

/* Fields of the encoded server hello begin here; each has its tag, its length and then its data. */
enum { SOFTWARE = 8, CLUSTER = SOFTWARE + 9, NODE = CLUSTER + 12, ROLE = NODE + 24, FEATURES = ROLE + 5 };
enum { HOST = FEATURES + 12 };

static void test_malformed_fields_are_corrupt(void **state) {
  (void)state;
  static const struct {
    size_t at;
    uint8_t value;
  } cases[] = {
      {4, 0},           /* versions from 0 */
      {4, 2},           /* from 2 to 1 */
      {SOFTWARE, 0},    /* tag 0 */
      {CLUSTER, 1},     /* the same tag again */
      {NODE, 9},        /* then what follows does not ascend */
      {HOST, 8},        /* a mandatory field is missing */
      {ROLE + 4, 0},    /* no role */
      {HOST + 4, '\n'}, /* would break a line of the log */
      {HOST + 4, 0},    /* would end the text early */
      {HOST + 5, 0x7f},
      {HOST + 5, 0x80}, /* no ASCII */
      {SOFTWARE + 4, ' '},
  };
  struct bytes bytes = encode(&server);
  assert_int_equal(pwi_get_u16(bytes.at + HOST), 7);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct pwi_hello got = server;
    struct bytes bad = bytes;
    bad.at[cases[i].at] = cases[i].value;
    assert_int_equal(decode(&bad, &got), PAWL_CORRUPT);
    assert_same(&got, &server);
  }
}

static void test_tags_that_repeat_or_descend_are_corrupt(void **state) {
  (void)state;
  struct pwi_hello got;
  struct bytes bytes = encode(&server);
  append(&bytes, 7, "elm", 3);
  assert_int_equal(decode(&bytes, &got), PAWL_CORRUPT);
  bytes = encode(&server);
  append(&bytes, 9, "", 0);
  assert_int_equal(decode(&bytes, &got), PAWL_OK);
  append(&bytes, 8, "", 0);
  assert_int_equal(decode(&bytes, &got), PAWL_CORRUPT);
}

/* A number of 7 bytes, a role of 2, a text one character too long. */
static void test_fields_of_a_wrong_length_are_corrupt(void **state) {
  (void)state;
  static const struct {
    uint16_t tag, length;
  } cases[] = {{1, 32}, {2, 7}, {3, 9}, {4, 0}, {5, 2}, {5, 0}, {6, 4}, {7, 256}};
  static const uint16_t good[] = {0, 5, 8, 8, 8, 1, 8, 4};
  char letters[256];
  memset(letters, 'x', sizeof letters);
  for (size_t i = 0; i <= sizeof cases / sizeof *cases; i++) {
    struct pwi_hello got;
    struct bytes bytes = encode(&server);
    bytes.size = SOFTWARE;
    for (uint16_t tag = 1; tag <= 7; tag++) {
      bool bad = i < sizeof cases / sizeof *cases && cases[i].tag == tag;
      append(&bytes, tag, letters, bad ? cases[i].length : good[tag]);
    }
    assert_int_equal(decode(&bytes, &got), i < sizeof cases / sizeof *cases ? PAWL_CORRUPT : PAWL_OK);
  }
}

static void test_garbage_is_harmless(void **state) {
  (void)state;
  struct bytes good = encode(&server);
  size_t passed = 0;
  for (int round = 0; round < 50000; round++) {
    struct bytes bytes = good;
    struct pwi_hello got;
    size_t damage = 1 + draw() % 8;
    for (size_t i = 0; i < damage; i++) bytes.at[draw() % bytes.size] = (uint8_t)draw();
    if (round % 4 == 0) bytes.size = draw() % 300;
    if (round & 1) pwi_put_u32(bytes.at, PWI_HELLO_MAGIC);
    if (round & 2) set_size(&bytes);
    if (decode(&bytes, &got) != PAWL_OK) continue;
    passed++;
    assert_true(got.lowest > 0 && got.lowest <= got.highest && got.role > 0);
    assert_true(strlen(got.host) <= PWI_HELLO_HOST_MAX && strlen(got.software) <= PWI_HELLO_SOFTWARE_MAX);
    encode(&got); /* whatever decodes can be said again */
  }
  assert_true(passed > 0);
}

static void test_both_sides_agree_on_the_highest_common_version(void **state) {
  (void)state;
  struct pwi_hello a = server, b = server;
  for (unsigned i = 0; i < 5 * 5 * 5 * 5; i++) {
    a.lowest = (uint8_t)(1 + i % 5), a.highest = (uint8_t)(1 + i / 5 % 5);
    b.lowest = (uint8_t)(1 + i / 25 % 5), b.highest = (uint8_t)(1 + i / 125);
    if (a.lowest > a.highest || b.lowest > b.highest) continue;
    uint8_t highest = 0, version = 99, other = 99;
    for (uint8_t v = 1; v <= 5; v++) {
      if (v >= a.lowest && v <= a.highest && v >= b.lowest && v <= b.highest) highest = v;
    }
    uint64_t features = 77;
    pawl_status status = pwi_hello_negotiate(&a, &b, &version, &features);
    assert_int_equal(pwi_hello_negotiate(&b, &a, &other, &features), status);
    assert_int_equal(status, highest ? PAWL_OK : PAWL_LINK_VERSION);
    assert_int_equal(version, highest ? highest : 99);
    assert_int_equal(other, version);
  }
}

static void test_only_features_that_both_have_are_used(void **state) {
  (void)state;
  struct pwi_hello a = server, b = server;
  uint8_t version;
  uint64_t features;
  a.features = 6;
  b.features = 12;
  assert_int_equal(pwi_hello_negotiate(&a, &b, &version, &features), PAWL_OK);
  assert_int_equal(features, 4);
}

/* A message from `sender`'s side of a link to the other, each with the version that it found itself. */
static void exchange(uint8_t sent_version, uint8_t received_version) {
  struct pwi_message_terms sends = {.body_max = 4096, .unpacked_max = 4096, .version = sent_version};
  struct pwi_message_terms receives = {.body_max = 4096, .unpacked_max = 4096, .version = received_version};
  struct pwi_message_head about = {.sender = 1, .task = 2, .kind = 3}, head;
  struct pwi_section section = {.type = 16, .count = 1, .length = 5};
  struct pwi_message_builder builder;
  struct pwi_sections sections;
  uint8_t body[256];
  pwi_message_begin(&builder, &sends, &about);
  assert_int_equal(pwi_message_copy(&builder, &section, "hello"), PAWL_OK);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  assert_int_equal(builder.part_count, 1);
  memcpy(body, builder.parts[0].iov_base, builder.body_size);
  assert_int_equal(pwi_message_parse_head(builder.head, builder.body_size, &receives, &head), PAWL_OK);
  assert_int_equal(head.version, received_version);
  assert_int_equal(pwi_message_check_whole(builder.head, &head, body, builder.body_size, &receives, &sections),
                   PAWL_OK);
  assert_memory_equal(body + sections.items[0].offset, "hello", 5);
}

/* A node of a future version, which still supports the previous one and has more fields in its hello. */
static void test_neighbouring_versions_talk_to_each_other(void **state) {
  (void)state;
  struct pwi_hello older = server, newer = server, heard_by_older, heard_by_newer;
  uint8_t older_version, newer_version;
  uint64_t features;
  newer.highest = 2;
  newer.features = 1;
  strcpy(newer.software, "0.2.0");
  struct bytes from_older = encode(&older), from_newer = encode(&newer);
  append(&from_newer, 9, "zone=b", 6);
  assert_int_equal(decode(&from_newer, &heard_by_older), PAWL_OK);
  assert_int_equal(decode(&from_older, &heard_by_newer), PAWL_OK);
  assert_int_equal(pwi_hello_negotiate(&older, &heard_by_older, &older_version, &features), PAWL_OK);
  assert_int_equal(features, 0);
  assert_int_equal(pwi_hello_negotiate(&newer, &heard_by_newer, &newer_version, &features), PAWL_OK);
  assert_int_equal(features, 0);
  assert_int_equal(older_version, 1);
  assert_int_equal(newer_version, 1);
  exchange(older_version, newer_version);
  exchange(newer_version, older_version);
  assert_int_equal(pwi_hello_negotiate(&newer, &newer, &newer_version, &features), PAWL_OK);
  assert_int_equal(newer_version, 2);
  exchange(newer_version, newer_version);
}

static void test_without_a_common_version_both_sides_name_both_ranges(void **state) {
  (void)state;
  struct pwi_hello older = server, newer = server, heard;
  char text[PWI_HELLO_MISMATCH_MAX];
  uint8_t version = 99;
  uint64_t features = 99;
  newer.lowest = 2;
  newer.highest = 3;
  strcpy(newer.software, "0.3.0");
  struct bytes bytes = encode(&newer);
  assert_int_equal(decode(&bytes, &heard), PAWL_OK); /* the frame is the same in every version */
  assert_int_equal(pwi_hello_negotiate(&older, &heard, &version, &features), PAWL_LINK_VERSION);
  assert_int_equal(version, 99);
  assert_true(features == 99);
  pwi_hello_mismatch(&older, &heard, text, sizeof text);
  assert_string_equal(text, "our_versions=1..1 our_pawl=0.1.0 their_versions=2..3 their_pawl=0.3.0 update=us");
  assert_int_equal(pwi_hello_negotiate(&newer, &older, &version, &features), PAWL_LINK_VERSION);
  pwi_hello_mismatch(&newer, &older, text, sizeof text);
  assert_string_equal(text, "our_versions=2..3 our_pawl=0.3.0 their_versions=1..1 their_pawl=0.1.0 update=them");
}

static void test_the_longest_mismatch_fits_its_buffer(void **state) {
  (void)state;
  struct pwi_hello a = {.lowest = 254, .highest = 254}, b = {.lowest = 255, .highest = 255};
  char text[PWI_HELLO_MISMATCH_MAX];
  memset(a.software, 'x', PWI_HELLO_SOFTWARE_MAX);
  memset(b.software, 'y', PWI_HELLO_SOFTWARE_MAX);
  pwi_hello_mismatch(&b, &a, text, sizeof text);
  assert_non_null(strstr(text, "update=them"));
}

/* The hello of `server` as docs/wire-format.md shows it. */
static const char example[] = "0000  50 41 57 48 01 01 53 00 01 00 05 00 30 2e 31 2e\n"
                              "0010  30 02 00 08 00 88 77 66 55 44 33 22 11 03 00 08\n"
                              "0020  00 07 00 00 00 00 00 00 00 04 00 08 00 03 00 00\n"
                              "0030  00 00 00 00 00 05 00 01 00 02 06 00 08 00 00 00\n"
                              "0040  00 00 00 00 00 00 07 00 09 00 72 61 63 6b 32 2f\n"
                              "0050  6f 61 6b\n";

static void test_the_worked_example_is_what_is_encoded(void **state) {
  (void)state;
  char text[4096];
  struct bytes bytes = encode(&server);
  testing_dump(bytes.at, bytes.size, text);
  assert_string_equal(text, example);
}

static void test_the_worked_example_is_what_is_documented(void **state) {
  (void)state;
  testing_assert_documented(example);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_a_hello_comes_back, restart),
      cmocka_unit_test_setup(test_the_largest_and_the_smallest_hello_come_back, restart),
      cmocka_unit_test_setup(test_a_fresh_hello_says_what_this_pawl_speaks, restart),
      cmocka_unit_test_setup(test_fields_that_no_hello_can_carry_are_refused, restart),
      cmocka_unit_test_setup(test_roles_have_names_also_those_of_a_later_version, restart),
      cmocka_unit_test_setup(test_a_priority_may_be_missing, restart),
      cmocka_unit_test_setup(test_fields_of_later_versions_are_skipped, restart),
      cmocka_unit_test_setup(test_a_hello_that_is_too_long_is_refused, restart),
      cmocka_unit_test_setup(test_a_hello_cut_short_anywhere_is_refused, restart),
      cmocka_unit_test_setup(test_bytes_behind_a_hello_are_refused, restart),
      cmocka_unit_test_setup(test_something_else_is_no_hello, restart),
      cmocka_unit_test_setup(test_malformed_fields_are_corrupt, restart),
      cmocka_unit_test_setup(test_tags_that_repeat_or_descend_are_corrupt, restart),
      cmocka_unit_test_setup(test_fields_of_a_wrong_length_are_corrupt, restart),
      cmocka_unit_test_setup(test_garbage_is_harmless, restart),
      cmocka_unit_test_setup(test_both_sides_agree_on_the_highest_common_version, restart),
      cmocka_unit_test_setup(test_only_features_that_both_have_are_used, restart),
      cmocka_unit_test_setup(test_neighbouring_versions_talk_to_each_other, restart),
      cmocka_unit_test_setup(test_without_a_common_version_both_sides_name_both_ranges, restart),
      cmocka_unit_test_setup(test_the_longest_mismatch_fits_its_buffer, restart),
      cmocka_unit_test_setup(test_the_worked_example_is_what_is_encoded, restart),
      cmocka_unit_test_setup(test_the_worked_example_is_what_is_documented, restart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
