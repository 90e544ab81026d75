

#include "base/bytes.h"
#include "base/hash.h"
#include "base/testing.h"
#include "net/net.h"
#include "net/tcp/frame.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))
#define GIB (UINT64_C(1) << 30)
#define PLANE_MAX 4096

static const struct {
  enum pwi_frame_kind kind;
  size_t fields;
  uint64_t largest; /* body when GIB is allowed */
} kinds[] = {
    {PWI_FRAME_HELLO, 16, PWI_NET_HELLO_MAX},
    {PWI_FRAME_PLANE, 48, PLANE_MAX},
    {PWI_FRAME_MESSAGE, 64, GIB},
    {PWI_FRAME_PING, 0, 0},
    {PWI_FRAME_BYE, 16, 0},
    {PWI_FRAME_PUT, 32, GIB},
    {PWI_FRAME_GET, 32, 0},
    {PWI_FRAME_GOT, 16, GIB},
    {PWI_FRAME_FENCE, 16, 0},
    {PWI_FRAME_FENCED, 16, 0},
    {PWI_FRAME_HOLD, 16, 0},
};

static pawl_status read_written(enum pwi_frame_kind kind, uint64_t body_size, uint64_t body_max,
                                struct pwi_frame *frame_out) {
  uint8_t prefix[PWI_FRAME_PREFIX];
  memset(prefix, 0xee, sizeof prefix);
  pwi_frame_write(prefix, kind, body_size);
  return pwi_frame_read(prefix, body_max, frame_out);
}

static void test_every_kind_comes_back(void **state) {
  (void)state;
  for (size_t i = 0; i < LENGTH(kinds); i++) {
    uint64_t sizes[] = {0, kinds[i].largest / 2, kinds[i].largest};
    for (size_t s = 0; s < LENGTH(sizes); s++) {
      struct pwi_frame frame;
      assert_int_equal(read_written(kinds[i].kind, sizes[s], GIB, &frame), PAWL_OK);
      assert_int_equal(frame.kind, kinds[i].kind);
      assert_int_equal(frame.body_size, sizes[s]);
    }
    assert_int_equal(pwi_frame_fields(kinds[i].kind), kinds[i].fields);
  }
}

/* Known bytes: they must not change. */
static void test_a_prefix_is_as_documented(void **state) {
  (void)state;
  uint8_t prefix[PWI_FRAME_PREFIX];
  pwi_frame_write(prefix, PWI_FRAME_MESSAGE, UINT64_C(0x0102030405060708));
  assert_memory_equal(prefix, "pl\3\0", 4);
  assert_memory_equal(prefix + 8, "\x08\x07\x06\x05\x04\x03\x02\x01", 8);
  uint32_t check = pwi_get_u32(prefix + 4);
  pwi_frame_write(prefix, PWI_FRAME_PING, 0);
  assert_memory_equal(prefix, "pl\4\0", 4);
  assert_int_not_equal(pwi_get_u32(prefix + 4), check);
}

static void test_bodies_beyond_the_limit_are_too_large(void **state) {
  (void)state;
  for (size_t i = 0; i < LENGTH(kinds); i++) {
    uint64_t sizes[] = {kinds[i].largest + 1, UINT64_MAX - 80, UINT64_MAX - 16, UINT64_MAX - 15,
                        UINT64_MAX - 1,       UINT64_MAX,      INT64_MAX,       UINT64_C(1) << 63};
    for (size_t s = 0; s < LENGTH(sizes); s++) {
      struct pwi_frame frame = {PWI_FRAME_PING, 7};
      assert_int_equal(read_written(kinds[i].kind, sizes[s], GIB, &frame), PAWL_TOO_LARGE);
      assert_int_equal(frame.kind, PWI_FRAME_PING);
      assert_int_equal(frame.body_size, 7);
    }
  }
}

static void test_the_limit_is_for_data_only(void **state) {
  (void)state;
  struct pwi_frame frame;
  assert_int_equal(read_written(PWI_FRAME_HELLO, PWI_NET_HELLO_MAX, 0, &frame), PAWL_OK);
  assert_int_equal(read_written(PWI_FRAME_PLANE, PLANE_MAX, 0, &frame), PAWL_OK);
  assert_int_equal(read_written(PWI_FRAME_HELLO, PWI_NET_HELLO_MAX + 1, UINT64_MAX, &frame), PAWL_TOO_LARGE);
  assert_int_equal(read_written(PWI_FRAME_MESSAGE, 0, 0, &frame), PAWL_OK);
  assert_int_equal(read_written(PWI_FRAME_MESSAGE, 1, 0, &frame), PAWL_TOO_LARGE);
  assert_int_equal(read_written(PWI_FRAME_PUT, UINT64_MAX, UINT64_MAX, &frame), PAWL_OK);
  assert_int_equal(frame.body_size, UINT64_MAX);
}

static void test_any_flipped_bit_of_a_prefix_is_noticed(void **state) {
  (void)state;
  static const uint64_t sizes[] = {0, 1, 64, 4096, 1000003, GIB};
  for (size_t i = 0; i < LENGTH(kinds); i++) {
    for (size_t s = 0; s < LENGTH(sizes); s++) {
      for (size_t bit = 0; bit < 8 * PWI_FRAME_PREFIX; bit++) {
        uint8_t prefix[PWI_FRAME_PREFIX];
        struct pwi_frame frame = {PWI_FRAME_PING, 7};
        pwi_frame_write(prefix, kinds[i].kind, sizes[s]);
        prefix[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(pwi_frame_read(prefix, UINT64_MAX, &frame), PAWL_CORRUPT);
        assert_int_equal(frame.body_size, 7);
      }
    }
  }
}

static void test_unknown_kinds_are_refused(void **state) {
  (void)state;
  struct pwi_frame frame;
  for (unsigned kind = 0; kind < 256; kind++) {
    if (kind >= PWI_FRAME_HELLO && kind <= PWI_FRAME_HOLD) continue;
    assert_int_equal(read_written((enum pwi_frame_kind)kind, 0, GIB, &frame), PAWL_CORRUPT);
  }
}

/* The check as docs/wire-format.md has it: of everything but itself. */
static void make_check(uint8_t *prefix) {
  uint8_t bytes[12];
  memcpy(bytes, prefix, 4);
  memcpy(bytes + 4, prefix + 8, 8);
  pwi_put_u32(prefix + 4, (uint32_t)pwi_hash(bytes, sizeof bytes, UINT64_C(0x6c77617020657361)));
}

static void test_a_good_check_does_not_make_a_prefix_good(void **state) {
  (void)state;
  struct pwi_frame frame;
  uint8_t prefix[PWI_FRAME_PREFIX], good[PWI_FRAME_PREFIX];
  pwi_frame_write(good, PWI_FRAME_MESSAGE, 77);
  memcpy(prefix, good, sizeof good);
  make_check(prefix);
  assert_memory_equal(prefix, good, sizeof good);
  for (size_t bit = 0; bit < 32; bit++) { /* of magic, kind and the zero: another kind is the only change that
                                             passes */
    memcpy(prefix, good, sizeof good);
    prefix[bit / 8] ^= (uint8_t)(1 << bit % 8);
    make_check(prefix);
    bool is_kind = prefix[2] >= PWI_FRAME_HELLO && prefix[2] <= PWI_FRAME_HOLD;
    bool passes = bit / 8 == 2 && is_kind;
    pawl_status status = pwi_frame_read(prefix, GIB, &frame);
    assert_int_equal(status == PAWL_CORRUPT, !passes);
  }
}

static void test_a_stream_out_of_step_is_noticed(void **state) {
  (void)state;
  uint8_t stream[4 * PWI_FRAME_PREFIX];
  struct pwi_frame frame;
  for (size_t i = 0; i < 4; i++) pwi_frame_write(stream + i * PWI_FRAME_PREFIX, PWI_FRAME_PING, 0);
  for (size_t at = 0; at <= 3 * PWI_FRAME_PREFIX; at++) {
    pawl_status expected = at % PWI_FRAME_PREFIX == 0 ? PAWL_OK : PAWL_CORRUPT;
    assert_int_equal(pwi_frame_read(stream + at, GIB, &frame), expected);
  }
}

static void test_padding_fills_up_to_the_alignment(void **state) {
  (void)state;
  for (uint64_t size = 0; size < 100; size++) {
    assert_true(pwi_frame_padding(size) < PWI_FRAME_ALIGN);
    assert_int_equal((size + pwi_frame_padding(size)) % PWI_FRAME_ALIGN, 0);
  }
  assert_int_equal(pwi_frame_padding(UINT64_MAX), 1);
  assert_int_equal(pwi_frame_padding(UINT64_MAX - 14), 15);
  for (size_t i = 0; i < LENGTH(kinds); i++) assert_int_equal(kinds[i].fields % PWI_FRAME_ALIGN, 0);
}

static struct pwi_opening make_opening(uint16_t lowest, uint16_t highest) {
  struct pwi_opening opening = {lowest, highest, {0}};
  for (size_t i = 0; i < PWI_CHALLENGE_SIZE; i++) opening.challenge[i] = (uint8_t)(200 + i);
  return opening;
}

static void test_an_opening_comes_back(void **state) {
  (void)state;
  uint8_t bytes[PWI_OPENING_SIZE];
  struct pwi_opening opening = make_opening(3, 700), back;
  memset(bytes, 0xee, sizeof bytes);
  pwi_opening_write(bytes, &opening);
  assert_memory_equal(bytes, "pawlink\n\x03\x00\xbc\x02\0\0\0\0\xc8", 17);
  assert_int_equal(pwi_opening_read(bytes, &back), PAWL_OK);
  assert_memory_equal(&back, &opening, sizeof opening);
}

static void test_a_malformed_opening_is_refused(void **state) {
  (void)state;
  uint8_t bytes[PWI_OPENING_SIZE] = "GET / HTTP/1.1\r\nHost: pawl\r\n\r\n";
  struct pwi_opening opening = make_opening(4, 3), back = make_opening(8, 9);
  assert_int_equal(pwi_opening_read(bytes, &back), PAWL_LINK_PROTOCOL);
  pwi_opening_write(bytes, &opening); /* versions upside down */
  assert_int_equal(pwi_opening_read(bytes, &back), PAWL_LINK_PROTOCOL);
  memset(bytes, 0, sizeof bytes);
  assert_int_equal(pwi_opening_read(bytes, &back), PAWL_LINK_PROTOCOL);
  assert_int_equal(back.lowest, 8);
}

/* A flipped bit in the magic is no opening. In the versions it is another pair of versions, or none if they
 * are upside down then. The four bytes after them are not looked at. In the challenge it is another
 * challenge. */
static void test_a_flipped_bit_of_an_opening_changes_its_own_field_only(void **state) {
  (void)state;
  for (size_t bit = 0; bit < 8 * PWI_OPENING_SIZE; bit++) {
    uint8_t bytes[PWI_OPENING_SIZE];
    struct pwi_opening opening = make_opening(2, 3), back = {0}, expected = opening;
    pwi_opening_write(bytes, &opening);
    bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    pawl_status status = pwi_opening_read(bytes, &back);
    if (bit >= 64 && bit < 80) expected.lowest ^= (uint16_t)(1 << (bit - 64));
    if (bit >= 80 && bit < 96) expected.highest ^= (uint16_t)(1 << (bit - 80));
    if (bit >= 128) expected.challenge[bit / 8 - 16] ^= (uint8_t)(1 << bit % 8);
    bool refused = bit < 64 || expected.lowest > expected.highest;
    assert_int_equal(status, refused ? PAWL_LINK_PROTOCOL : PAWL_OK);
    if (!refused) assert_memory_equal(&back, &expected, sizeof back);
  }
}

static void check_agreement(struct pwi_opening a, struct pwi_opening b, int expected) {
  uint16_t version = 99;
  pawl_status status = expected < 0 ? PAWL_LINK_VERSION : PAWL_OK;
  assert_int_equal(pwi_opening_agree(&a, &b, &version), status);
  assert_int_equal(version, expected < 0 ? 99 : expected);
  version = 99;
  assert_int_equal(pwi_opening_agree(&b, &a, &version), status);
  assert_int_equal(version, expected < 0 ? 99 : expected);
}

static void test_neighbouring_versions_agree_on_the_highest_common_one(void **state) {
  (void)state;
  check_agreement(make_opening(1, 1), make_opening(1, 1), 1);
  check_agreement(make_opening(1, 1), make_opening(1, 2), 1); /* the newer one still speaks the older
                                                                 version */
  check_agreement(make_opening(1, 2), make_opening(2, 3), 2);
  check_agreement(make_opening(1, 3), make_opening(2, 2), 2);
  check_agreement(make_opening(1, 1), make_opening(2, 2), -1);
  check_agreement(make_opening(1, 2), make_opening(3, 4), -1);
  check_agreement(make_opening(0, UINT16_MAX), make_opening(UINT16_MAX, UINT16_MAX), UINT16_MAX);
  check_agreement(make_opening(PWI_FRAME_VERSION, PWI_FRAME_VERSION),
                  make_opening(PWI_FRAME_VERSION, PWI_FRAME_VERSION + 1), PWI_FRAME_VERSION);
}

static void test_agreement_is_right_for_all_small_ranges(void **state) {
  (void)state;
  for (uint16_t a = 0; a < 5; a++)
    for (uint16_t b = a; b < 5; b++)
      for (uint16_t c = 0; c < 5; c++)
        for (uint16_t d = c; d < 5; d++) {
          int expected = -1;
          for (int version = 0; version < 5; version++)
            if (version >= a && version <= b && version >= c && version <= d) expected = version;
          check_agreement(make_opening(a, b), make_opening(c, d), expected);
        }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_kind_comes_back),
      cmocka_unit_test(test_a_prefix_is_as_documented),
      cmocka_unit_test(test_bodies_beyond_the_limit_are_too_large),
      cmocka_unit_test(test_the_limit_is_for_data_only),
      cmocka_unit_test(test_any_flipped_bit_of_a_prefix_is_noticed),
      cmocka_unit_test(test_unknown_kinds_are_refused),
      cmocka_unit_test(test_a_good_check_does_not_make_a_prefix_good),
      cmocka_unit_test(test_a_stream_out_of_step_is_noticed),
      cmocka_unit_test(test_padding_fills_up_to_the_alignment),
      cmocka_unit_test(test_an_opening_comes_back),
      cmocka_unit_test(test_a_malformed_opening_is_refused),
      cmocka_unit_test(test_a_flipped_bit_of_an_opening_changes_its_own_field_only),
      cmocka_unit_test(test_neighbouring_versions_agree_on_the_highest_common_one),
      cmocka_unit_test(test_agreement_is_right_for_all_small_ranges),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
