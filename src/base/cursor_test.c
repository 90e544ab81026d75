/* Records: exact bytes, the first failure persists, and readers never read beyond the end. */
#include "base/cursor.h"
#include "base/memory.h"
#include "base/testing.h"

/* One of everything. */
static void write_record(struct pwi_writer *writer) {
  pwi_write_u8(writer, 0x01);
  pwi_write_u16(writer, 0x0302);
  pwi_write_u32(writer, 0x07060504);
  pwi_write_u64(writer, UINT64_C(0x0f0e0d0c0b0a0908));
  pwi_write_text(writer, "pawl");
  pwi_write_bytes(writer, "\xaa\x00\xbb", 3);
  pwi_write_text(writer, "");
}

static const unsigned char record[] = {1,  2,  3, 4, 5,   6,   7,   8,   9,    10, 11,   12, 13,
                                       14, 15, 4, 0, 'p', 'a', 'w', 'l', 0xaa, 0,  0xbb, 0,  0};

/* The result of reading the record, or a part of it. */
struct reading {
  uint8_t small;
  uint16_t middle;
  uint32_t large;
  uint64_t huge;
  char text[5], empty[1];
  const unsigned char *bytes;
  pawl_status status;
};

static struct reading read_record(const void *bytes, size_t size) {
  struct reading reading;
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  reading.small = pwi_read_u8(&reader);
  reading.middle = pwi_read_u16(&reader);
  reading.large = pwi_read_u32(&reader);
  reading.huge = pwi_read_u64(&reader);
  pwi_read_text(&reader, reading.text, sizeof reading.text);
  reading.bytes = pwi_read_bytes(&reader, 3);
  pwi_read_text(&reader, reading.empty, sizeof reading.empty);
  reading.status = pwi_reader_end(&reader);
  return reading;
}

static void test_memory_of_the_caller_is_written_to_and_does_not_grow(void **state) {
  (void)state;
  unsigned char memory[sizeof record + 8];
  for (size_t room = 0; room <= sizeof record; room++) {
    memset(memory, 0x5a, sizeof memory);
    struct pwi_writer writer = pwi_writer_over(memory, room);
    write_record(&writer);
    assert_int_equal(writer.status, room < sizeof record ? PAWL_TOO_LARGE : PAWL_OK);
    assert_ptr_equal(writer.data, memory);
    assert_memory_equal(memory, record, writer.size);
    for (size_t i = room; i < sizeof memory; i++) assert_int_equal(memory[i], 0x5a);
    pwi_writer_fini(&writer);
  }
}

static void test_a_record_has_the_documented_bytes(void **state) {
  (void)state;
  struct pwi_writer writer = {0};
  write_record(&writer);
  assert_int_equal(writer.status, PAWL_OK);
  assert_int_equal(writer.size, sizeof record);
  assert_memory_equal(writer.data, record, sizeof record);
  pwi_writer_fini(&writer);
  assert_null(writer.data);
  assert_int_equal(writer.size, 0);
}

static void test_a_record_is_read_as_it_was_written(void **state) {
  (void)state;
  struct reading reading = read_record(record, sizeof record);
  assert_int_equal(reading.status, PAWL_OK);
  assert_int_equal(reading.small, 0x01);
  assert_int_equal(reading.middle, 0x0302);
  assert_int_equal(reading.large, 0x07060504);
  assert_true(reading.huge == UINT64_C(0x0f0e0d0c0b0a0908));
  assert_string_equal(reading.text, "pawl");
  assert_ptr_equal(reading.bytes, record + 21);
  assert_string_equal(reading.empty, "");
}

/* Each length is read from a block of exactly that size, so that a sanitizer detects overruns. */
static void test_a_record_that_was_cut_off_is_truncated_and_the_rest_reads_as_zeros(void **state) {
  (void)state;
  for (size_t size = 0; size < sizeof record; size++) {
    unsigned char *part = pwi_alloc(size);
    assert_non_null(part);
    memcpy(part, record, size);
    struct reading reading = read_record(part, size);
    assert_int_equal(reading.status, PAWL_TRUNCATED);
    assert_int_equal(reading.small, size >= 1 ? 1 : 0);
    assert_int_equal(reading.middle, size >= 3 ? 0x0302 : 0);
    assert_int_equal(reading.large, size >= 7 ? 0x07060504 : 0);
    assert_true(reading.huge == (size >= 15 ? UINT64_C(0x0f0e0d0c0b0a0908) : 0));
    assert_string_equal(reading.text, size >= 21 ? "pawl" : "");
    assert_true((reading.bytes != NULL) == (size >= 24));
    assert_string_equal(reading.empty, "");
    pwi_free(part);
  }
}

static void test_bytes_left_over_are_damage(void **state) {
  (void)state;
  unsigned char longer[sizeof record + 1] = {0};
  memcpy(longer, record, sizeof record);
  assert_int_equal(read_record(longer, sizeof longer).status, PAWL_CORRUPT);
}

static void test_no_bytes_are_a_record_of_no_fields(void **state) {
  (void)state;
  struct pwi_reader reader;
  pwi_reader_init(&reader, NULL, 0);
  assert_int_equal(pwi_reader_end(&reader), PAWL_OK);
  assert_non_null(pwi_read_bytes(&reader, 0));
  assert_int_equal(pwi_read_u8(&reader), 0);
  assert_int_equal(pwi_reader_end(&reader), PAWL_TRUNCATED);
}

static void test_the_first_failure_stays_and_ends_the_reading(void **state) {
  (void)state;
  struct pwi_reader reader;
  pwi_reader_init(&reader, record, sizeof record);
  assert_int_equal(pwi_read_u8(&reader), 1);
  pwi_reader_fail(&reader, PAWL_UNSUPPORTED);
  pwi_reader_fail(&reader, PAWL_CORRUPT);
  assert_int_equal(pwi_read_u16(&reader), 0);
  assert_null(pwi_read_bytes(&reader, 0));
  assert_null(pwi_read_bytes(&reader, 1000));
  assert_int_equal(pwi_read_count(&reader, 0), 0);
  assert_ptr_equal(reader.at, record + 1);
  assert_int_equal(pwi_reader_end(&reader), PAWL_UNSUPPORTED);
}

static void test_a_text_that_does_not_fit_or_holds_a_zero_is_damage(void **state) {
  (void)state;
  const unsigned char five[] = {5, 0, 'h', 'e', 'l', 'l', 'o'};
  const unsigned char zero[] = {3, 0, 'a', 0, 'b'};
  struct pwi_reader reader;
  char text[8] = "before";
  pwi_reader_init(&reader, five, sizeof five);
  pwi_read_text(&reader, text, 6);
  assert_string_equal(text, "hello");
  assert_int_equal(pwi_reader_end(&reader), PAWL_OK);
  pwi_reader_init(&reader, five, sizeof five);
  pwi_read_text(&reader, text, 5);
  assert_string_equal(text, "");
  assert_int_equal(pwi_reader_end(&reader), PAWL_CORRUPT);
  pwi_reader_init(&reader, zero, sizeof zero);
  pwi_read_text(&reader, text, sizeof text);
  assert_string_equal(text, "");
  assert_int_equal(pwi_reader_end(&reader), PAWL_CORRUPT);
}

static uint32_t count_of(const unsigned char *bytes, size_t size, size_t each, pawl_status *status_out) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  uint32_t count = pwi_read_count(&reader, each);
  *status_out = reader.status;
  return count;
}

static void test_a_count_of_more_than_can_follow_is_truncated(void **state) {
  (void)state;
  const unsigned char three[4 + 12] = {3};
  const unsigned char most[8] = {0xff, 0xff, 0xff, 0xff};
  pawl_status status;
  assert_int_equal(count_of(three, 16, 4, &status), 3);
  assert_int_equal(status, PAWL_OK);
  assert_int_equal(count_of(three, 15, 4, &status), 0);
  assert_int_equal(status, PAWL_TRUNCATED);
  assert_int_equal(count_of(three, 4, 0, &status), 3); /* things that take nothing */
  assert_int_equal(status, PAWL_OK);
  assert_int_equal(count_of(most, 8, 1, &status), 0);
  assert_int_equal(status, PAWL_TRUNCATED);
  assert_int_equal(count_of(most, 8, SIZE_MAX, &status), 0);
  assert_int_equal(status, PAWL_TRUNCATED);
  assert_int_equal(count_of(three, 3, 1, &status), 0);
  assert_int_equal(status, PAWL_TRUNCATED);
}

static void test_the_longest_text_is_written_and_a_longer_one_refused(void **state) {
  (void)state;
  static char text[UINT16_MAX + 2], back[UINT16_MAX + 1];
  struct pwi_writer writer = {0};
  struct pwi_reader reader;
  memset(text, 'x', UINT16_MAX);
  pwi_write_text(&writer, text);
  assert_int_equal(writer.status, PAWL_OK);
  pwi_reader_init(&reader, writer.data, writer.size);
  pwi_read_text(&reader, back, sizeof back);
  assert_int_equal(pwi_reader_end(&reader), PAWL_OK);
  assert_string_equal(back, text);
  text[UINT16_MAX] = 'x';
  pwi_write_text(&writer, text);
  assert_int_equal(writer.status, PAWL_TOO_LARGE);
  assert_int_equal(writer.size, 2 + UINT16_MAX);
  pwi_writer_fini(&writer);
}

static void test_a_writer_begins_anew_in_the_memory_it_has(void **state) {
  (void)state;
  struct pwi_writer writer = {0};
  for (size_t i = 0; i < 1000; i++) pwi_write_u64(&writer, i);
  assert_int_equal(writer.size, 8000);
  for (size_t i = 0; i < 1000; i++) assert_int_equal(writer.data[8 * i], i % 256);
  assert_null(pwi_write_room(&writer, SIZE_MAX));
  assert_int_equal(writer.status, PAWL_NO_MEMORY);
  uint64_t allocations = pwi_memory_counts().allocations;
  pwi_writer_reset(&writer);
  write_record(&writer);
  assert_int_equal(writer.status, PAWL_OK);
  assert_int_equal(writer.size, sizeof record);
  assert_memory_equal(writer.data, record, sizeof record);
  assert_int_equal(pwi_memory_counts().allocations, allocations);
  pwi_writer_fini(&writer);
}

static void test_room_is_filled_in_by_the_caller(void **state) {
  (void)state;
  struct pwi_writer writer = {0};
  assert_non_null(pwi_write_room(&writer, 0));
  assert_int_equal(writer.size, 0);
  void *room = pwi_write_room(&writer, 300);
  assert_non_null(room);
  memset(room, 7, 300);
  pwi_write_u8(&writer, 8);
  assert_int_equal(writer.size, 301);
  assert_int_equal(writer.data[299], 7);
  assert_int_equal(writer.data[300], 8);
  pwi_writer_fini(&writer);
}

/* Enough for several growths, so that the n-th of them fails. */
static void test_out_of_memory_stays_and_writes_nothing_more(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  size_t failures = 0;
  for (uint64_t n = 0;; n++) {
    struct pwi_writer writer = {0};
    pwi_memory_fail_after(n);
    for (size_t i = 0; i < 100; i++) write_record(&writer);
    if (!pwi_memory_fail_cancel()) {
      assert_int_equal(writer.status, PAWL_OK);
      assert_int_equal(writer.size, 100 * sizeof record);
      pwi_writer_fini(&writer);
      break;
    }
    failures++;
    assert_int_equal(writer.status, PAWL_NO_MEMORY);
    assert_true(writer.size <= writer.room && writer.size < 100 * sizeof record);
    for (size_t i = 0; i < writer.size; i++) assert_int_equal(writer.data[i], record[i % sizeof record]);
    pwi_writer_fini(&writer);
  }
  assert_true(failures >= 3);
  assert_int_equal(pwi_memory_counts().live, live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_record_has_the_documented_bytes),
      cmocka_unit_test(test_memory_of_the_caller_is_written_to_and_does_not_grow),
      cmocka_unit_test(test_a_record_is_read_as_it_was_written),
      cmocka_unit_test(test_a_record_that_was_cut_off_is_truncated_and_the_rest_reads_as_zeros),
      cmocka_unit_test(test_bytes_left_over_are_damage),
      cmocka_unit_test(test_no_bytes_are_a_record_of_no_fields),
      cmocka_unit_test(test_the_first_failure_stays_and_ends_the_reading),
      cmocka_unit_test(test_a_text_that_does_not_fit_or_holds_a_zero_is_damage),
      cmocka_unit_test(test_a_count_of_more_than_can_follow_is_truncated),
      cmocka_unit_test(test_the_longest_text_is_written_and_a_longer_one_refused),
      cmocka_unit_test(test_a_writer_begins_anew_in_the_memory_it_has),
      cmocka_unit_test(test_room_is_filled_in_by_the_caller),
      cmocka_unit_test(test_out_of_memory_stays_and_writes_nothing_more),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
