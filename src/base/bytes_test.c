/* Wire fields: least significant byte first, at any alignment, touching nothing beside them. */
#include "base/bytes.h"
#include "base/testing.h"

static void test_fields_are_little_endian(void **state) {
  (void)state;
  unsigned char field[8];
  pwi_put_u16(field, 0x0201);
  assert_memory_equal(field, "\x01\x02", 2);
  pwi_put_u32(field, UINT32_C(0x04030201));
  assert_memory_equal(field, "\x01\x02\x03\x04", 4);
  pwi_put_u64(field, UINT64_C(0x0807060504030201));
  assert_memory_equal(field, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
  assert_int_equal(pwi_get_u16(field), 0x0201);
  assert_int_equal(pwi_get_u32(field), UINT32_C(0x04030201));
  assert_int_equal(pwi_get_u64(field), UINT64_C(0x0807060504030201));
}

static void assert_only_written(const unsigned char *buffer, size_t size, size_t at, size_t length) {
  for (size_t i = 0; i < size; i++)
    if (i < at || i >= at + length) assert_int_equal(buffer[i], 0xaa);
}

static void test_fields_live_at_any_alignment(void **state) {
  (void)state;
  unsigned char buffer[24];
  for (size_t at = 1; at < 16; at++) {
    memset(buffer, 0xaa, sizeof buffer);
    pwi_put_u16(buffer + at, 0xfedc);
    assert_int_equal(pwi_get_u16(buffer + at), 0xfedc);
    assert_only_written(buffer, sizeof buffer, at, 2);
    pwi_put_u32(buffer + at, UINT32_C(0xfedcba98));
    assert_int_equal(pwi_get_u32(buffer + at), UINT32_C(0xfedcba98));
    assert_only_written(buffer, sizeof buffer, at, 4);
    pwi_put_u64(buffer + at, UINT64_C(0xfedcba9876543210));
    assert_int_equal(pwi_get_u64(buffer + at), UINT64_C(0xfedcba9876543210));
    assert_only_written(buffer, sizeof buffer, at, 8);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fields_are_little_endian),
      cmocka_unit_test(test_fields_live_at_any_alignment),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
