/* The bytes of a membership, and decoders with invalid bytes. */
#include "protocol/membership_testing.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "base/random.h"

#define KEY "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

static const unsigned char documented[] = "\x02\x08\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x03\0\0\0"
                                          "\x01\0\0\0\0\0\0\0\0\x03\0ctr\0\0" KEY "\0\0\0\0"
                                          "\x02\0\0\0\0\0\0\0\x01\x03\0ctr\0\0" KEY "\0\0\0\0"
                                          "\x03\0\0\0\0\0\0\0\0\x03\0lda\x03\0h:1" KEY "\x01\0h\x02\0r9"
                                          "\x02\0\0\0"
                                          "\x0a\0\0\0\0\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\0\0\0"
                                          "\x14\0\0\0\0\0\0\0\x03\0\0\0\0\x05\0\0\0\0\0\0\0"
                                          "\x03\0\0\0"
                                          "\x0a\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0"
                                          "\x14\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01"
                                          "\x14\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x01";

/* The same in version 1. */
static const unsigned char plain[] = "\x01\x08\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x03\0\0\0"
                                     "\x01\0\0\0\0\0\0\0\0\x03\0ctr\0\0" KEY "\x02\0\0\0\0\0\0\0\x01\x03\0ctr\0\0" KEY
                                     "\x03\0\0\0\0\0\0\0\0\x03\0lda\x03\0h:1" KEY "\x02\0\0\0"
                                     "\x0a\0\0\0\0\0\0\0\x01\0\0\0\x01"
                                     "\x14\0\0\0\0\0\0\0\x03\0\0\0\0"
                                     "\x03\0\0\0"
                                     "\x0a\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0"
                                     "\x14\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01"
                                     "\x14\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x01";

/* Offsets in the example. */
enum {
  FIRST = 21,
  SECOND = 73,
  THIRD = 125,
  THIRD_HOST = THIRD + 51,
  GROUP_COUNT = 183,
  GROUP = 187,
  GROUP_SIZE = 21,
  MEMBER_COUNT = 229,
  MEMBER = 233,
  END = 284
};

/* Accepted bytes of the present version must equal the encoder's output. */
static pawl_status decode(const void *bytes, size_t size) {
  struct pwi_membership membership = {.number = 77};
  pawl_status status = pwi_membership_decode(bytes, size, &membership);
  if (status) {
    assert_int_equal(membership.number, 77);
    assert_null(membership.senders);
    return status;
  }
  struct pwi_writer writer = bytes_of(&membership);
  if (*(const unsigned char *)bytes == 2) {
    assert_int_equal(writer.size, size);
    assert_memory_equal(writer.data, bytes, size);
  }
  pwi_writer_fini(&writer);
  pwi_membership_fini(&membership);
  return PAWL_OK;
}

static void test_the_layout_is_the_documented_one(void **state) {
  (void)state;
  struct pwi_writer writer = example_bytes();
  assert_int_equal(writer.size, END);
  assert_int_equal(writer.size, sizeof documented - 1);
  assert_memory_equal(writer.data, documented, END);
  assert_int_equal(decode(writer.data, writer.size), PAWL_OK);
  pwi_writer_fini(&writer);
}

/* An earlier version did not record hosts, racks and the numbers of groups. */
static void test_version_1_is_read(void **state) {
  (void)state;
  struct pwi_membership membership;
  assert_int_equal(pwi_membership_decode(plain, sizeof plain - 1, &membership), PAWL_OK);
  struct pwi_membership same = example();
  memset(same.senders[2].host, 0, sizeof same.senders[2].host);
  memset(same.senders[2].rack, 0, sizeof same.senders[2].rack);
  for (size_t i = 0; i < same.group_count; i++) same.groups[i].changed = 0;
  struct pwi_writer wanted = bytes_of(&same);
  assert_bytes(&membership, &wanted);
  for (size_t size = 0; size + 1 < sizeof plain; size++) assert_int_equal(decode(plain, size), PAWL_TRUNCATED);
  assert_int_equal(pwi_membership_leave(&membership, group_of(20), sender_of(3)), PAWL_OK);
  assert_int_equal(pwi_membership_group(&membership, group_of(20))->changed, membership.number);
  assert_int_equal(pwi_membership_group(&membership, group_of(10))->changed, 0);
  pwi_writer_fini(&wanted);
  pwi_membership_fini(&same);
  pwi_membership_fini(&membership);
}

static void test_founders_are_founders_again_after_decoding(void **state) {
  (void)state;
  struct pwi_writer writer = example_bytes();
  struct pwi_membership again;
  assert_int_equal(pwi_membership_decode(writer.data, writer.size, &again), PAWL_OK);
  assert_true(is_founder(&again, 20, 1) && is_founder(&again, 20, 3));
  assert_false(is_founder(&again, 10, 1));
  pwi_membership_fini(&again);
  pwi_writer_fini(&writer);
}

static void test_a_founder_byte_is_0_or_1(void **state) {
  (void)state;
  unsigned char bytes[END];
  for (size_t at = MEMBER + 16; at < END; at += 17) {
    for (unsigned value = 2; value < 256; value++) {
      memcpy(bytes, documented, END);
      bytes[at] = (unsigned char)value;
      assert_int_equal(decode(bytes, END), PAWL_CORRUPT);
    }
  }
}

/* Each prefix is in a block of exactly its size, so that a sanitizer detects reading past its end. */
static void test_a_membership_that_was_cut_off_is_truncated(void **state) {
  (void)state;
  for (size_t size = 0; size < END; size++) {
    unsigned char *part = pwi_alloc(size);
    assert_non_null(part);
    memcpy(part, documented, size);
    assert_int_equal(decode(part, size), PAWL_TRUNCATED);
    pwi_free(part);
  }
  assert_int_equal(decode(documented, END + 1), PAWL_CORRUPT);
}

struct damage {
  size_t at;
  const char *bytes;
  size_t size;
  pawl_status status;
};

static void test_every_kind_of_damage_is_seen(void **state) {
  (void)state;
  const struct damage damages[] = {
      {0, "\0", 1, PAWL_UNSUPPORTED},
      {0, "\3", 1, PAWL_UNSUPPORTED},
      {0, "\1", 1, PAWL_TRUNCATED}, /* read as version 1, a text is too long */
      {1, "\xff", 1, PAWL_OK},
      {1, "\x07", 1, PAWL_CORRUPT}, /* a group changed later */
      {9, "\xff", 1, PAWL_OK},
      {9, "\x02", 1, PAWL_CORRUPT}, /* one that is listed came later than the last */
      {17, "\xff\xff\xff\xff", 4, PAWL_TRUNCATED},
      {FIRST, "\0", 1, PAWL_CORRUPT},
      {FIRST, "\2", 1, PAWL_CORRUPT}, /* a sender twice */
      {SECOND, "\4", 1, PAWL_CORRUPT},
      {SECOND + 8, "\2", 1, PAWL_CORRUPT},
      {SECOND + 8, "\0", 1, PAWL_OK},
      {SECOND + 9, "\x40", 1, PAWL_CORRUPT}, /* a job that is too long, and holds zeros */
      {SECOND + 11, "c/r", 3, PAWL_CORRUPT},
      {SECOND + 11, "c\0r", 3, PAWL_CORRUPT},
      {THIRD + 16, " :1", 3, PAWL_CORRUPT},
      {THIRD + 8, "\1", 1, PAWL_CORRUPT}, /* a retired member */
      {THIRD_HOST, "\x41", 1, PAWL_CORRUPT},
      {THIRD_HOST + 2, " ", 1, PAWL_CORRUPT},
      {THIRD_HOST + 2, "\x80", 1, PAWL_CORRUPT},
      {THIRD_HOST + 5, "r ", 2, PAWL_CORRUPT},
      {THIRD_HOST + 5, "R8", 2, PAWL_OK},
      {GROUP_COUNT, "\xff\xff\xff\xff", 4, PAWL_TRUNCATED},
      {GROUP, "\0", 1, PAWL_CORRUPT},
      {GROUP, "\x14", 1, PAWL_CORRUPT}, /* a group twice */
      {GROUP, "\x15", 1, PAWL_CORRUPT},
      {GROUP, "\x0b", 1, PAWL_CORRUPT},    /* a member of no group */
      {GROUP + 8, "\0", 1, PAWL_CORRUPT},  /* nobody makes it complete */
      {GROUP + 12, "\0", 1, PAWL_CORRUPT}, /* complete, and it is not said */
      {GROUP + 12, "\2", 1, PAWL_CORRUPT},
      {GROUP + 13, "\x09", 1, PAWL_CORRUPT}, /* it changed after the membership */
      {GROUP + 13, "\x07", 1, PAWL_OK},
      {GROUP + GROUP_SIZE + 8, "\2", 1, PAWL_CORRUPT}, /* likewise with two */
      {GROUP + GROUP_SIZE + 12, "\1", 1, PAWL_OK},     /* it has been */
      {MEMBER_COUNT, "\xff\xff\xff\xff", 4, PAWL_TRUNCATED},
      {MEMBER_COUNT, "\2", 1, PAWL_CORRUPT}, /* bytes left over */
      {MEMBER, "\0", 1, PAWL_CORRUPT},
      {MEMBER, "\x15", 1, PAWL_CORRUPT},
      {MEMBER + 8, "\0", 1, PAWL_CORRUPT},
      {MEMBER + 8, "\2", 1, PAWL_CORRUPT}, /* retired */
      {MEMBER + 8, "\4", 1, PAWL_CORRUPT}, /* unknown */
      {MEMBER + 8, "\3", 1, PAWL_OK},
      {MEMBER + 16, "\1", 1, PAWL_OK},
      {MEMBER + 17 + 8, "\3", 1, PAWL_CORRUPT}, /* a member twice */
      {MEMBER + 34, "\x0a", 1, PAWL_CORRUPT},   /* in disorder */
  };
  for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
    unsigned char bytes[END];
    memcpy(bytes, documented, END);
    memcpy(bytes + damages[i].at, damages[i].bytes, damages[i].size);
    assert_int_equal(decode(bytes, END), damages[i].status);
  }
}

static void test_any_bytes_are_refused_or_are_what_the_encoder_writes(void **state) {
  (void)state;
  struct pwi_random random;
  size_t accepted = 0;
  pwi_random_init(&random, SEED, 1000);
  print_message("seed %llu\n", (unsigned long long)SEED);
  uint64_t live = pwi_memory_counts().live;
  for (size_t round = 0; round < 50000; round++) {
    unsigned char bytes[END];
    memcpy(bytes, documented, END);
    for (uint64_t changes = 1 + pwi_random_below(&random, 3); changes > 0; changes--)
      bytes[pwi_random_below(&random, END)] ^= (unsigned char)(1 + pwi_random_below(&random, round % 2 ? 255 : 7));
    accepted += decode(bytes, END) == PAWL_OK;
  }
  assert_true(accepted > 1000);
  assert_int_equal(pwi_memory_counts().live, live);
}

static void test_as_many_senders_as_there_may_be_and_one_more(void **state) {
  (void)state;
  struct pwi_writer writer = {0};
  struct pwi_membership membership;
  pwi_write_u8(&writer, 1);
  pwi_write_u64(&writer, PWI_MEMBERSHIP_MAX);
  pwi_write_u64(&writer, PWI_MEMBERSHIP_MAX);
  pwi_write_u32(&writer, PWI_MEMBERSHIP_MAX);
  for (uint64_t i = 1; i <= PWI_MEMBERSHIP_MAX; i++) {
    pwi_write_u64(&writer, i);
    pwi_write_u8(&writer, 0);
    pwi_write_text(&writer, "j");
    pwi_write_text(&writer, "");
    pwi_write_bytes(&writer, KEY, sizeof KEY - 1);
  }
  pwi_write_u64(&writer, 0); /* no groups, no members */
  assert_int_equal(pwi_membership_decode(writer.data, writer.size, &membership), PAWL_OK);
  struct pwi_membership_sender record = record_of(UINT64_MAX, "job", "");
  assert_int_equal(pwi_membership_add(&membership, &record), PAWL_TOO_LARGE);
  assert_int_equal(membership.sender_count, PWI_MEMBERSHIP_MAX);
  pwi_membership_fini(&membership);
  pwi_put_u32(writer.data + 17, PWI_MEMBERSHIP_MAX + 1);
  pwi_write_bytes(&writer, KEY KEY, 2 * (sizeof KEY - 1)); /* more than enough for one */
  assert_int_equal(decode(writer.data, writer.size), PAWL_CORRUPT);
  pwi_writer_fini(&writer);
}

static void test_a_membership_is_received_unless_it_is_older_than_a_known_one(void **state) {
  (void)state;
  for (uint64_t known = 7; known <= 9; known++) { /* the example has number 8 */
    struct pwi_membership *newer;
    assert_int_equal(pwi_membership_receive(documented, END, known, &newer), PAWL_OK);
    assert_int_equal(newer != NULL, known <= 8);
    pwi_membership_destroy(newer);
  }
}

static void test_decoding_without_memory_leaves_nothing_behind(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live, n = 0;
  for (;; n++) {
    struct pwi_membership membership = {0};
    pwi_memory_fail_after(n);
    pawl_status status = pwi_membership_decode(documented, END, &membership);
    if (!pwi_memory_fail_cancel()) {
      assert_int_equal(status, PAWL_OK);
      pwi_membership_fini(&membership);
      break;
    }
    assert_int_equal(status, PAWL_NO_MEMORY);
    assert_null(membership.senders);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_int_equal(n, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_layout_is_the_documented_one),
      cmocka_unit_test(test_version_1_is_read),
      cmocka_unit_test(test_founders_are_founders_again_after_decoding),
      cmocka_unit_test(test_a_founder_byte_is_0_or_1),
      cmocka_unit_test(test_a_membership_that_was_cut_off_is_truncated),
      cmocka_unit_test(test_every_kind_of_damage_is_seen),
      cmocka_unit_test(test_any_bytes_are_refused_or_are_what_the_encoder_writes),
      cmocka_unit_test(test_as_many_senders_as_there_may_be_and_one_more),
      cmocka_unit_test(test_a_membership_is_received_unless_it_is_older_than_a_known_one),
      cmocka_unit_test(test_decoding_without_memory_leaves_nothing_behind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
