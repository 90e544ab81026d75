/* Exported files, checked byte by byte. */
#include <jansson.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/testing.h"
#include "store/archive_testing.h"
#include "checkpoint/array_file.h"

#define ROOM 65536

static unsigned char bytes[ROOM + 1];

static struct memory_file new_file(size_t room) {
  struct memory_file file;
  memset(bytes, 0xee, sizeof bytes);
  memory_file_init(&file, bytes, 0, room);
  return file;
}

/* --- npy ------------------------------------------------------------------------------------------------ */

static void assert_npy(struct pwi_array array, const char *dictionary) {
  struct memory_file file = new_file(ROOM);
  assert_int_equal(pwi_npy_begin(&file.base, &array), PAWL_OK);
  assert_memory_equal(bytes, "\x93NUMPY\x01\x00", 8);
  size_t length = pwi_get_u16(bytes + 8);
  assert_int_equal((10 + length) % 64, 0);
  assert_int_equal(array.offset, 10 + length);
  assert_memory_equal(bytes + 10, dictionary, strlen(dictionary));
  for (size_t i = strlen(dictionary); i + 1 < length; i++) assert_int_equal(bytes[10 + i], ' ');
  assert_int_equal(bytes[10 + length - 1], '\n');
  uint64_t size;
  assert_int_equal(pwi_array_bytes(&array, &size), PAWL_OK);
  assert_int_equal(file.size, array.offset + size);
  for (size_t i = 0; i < size; i++) assert_int_equal(bytes[array.offset + i], 0);
}

static void test_npy_heads_are_as_numpy_writes_them(void **state) {
  (void)state;
  assert_npy((struct pwi_array){NULL, PWI_SCALAR_F32, 3, 4, 0},
             "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
  assert_npy((struct pwi_array){NULL, PWI_SCALAR_F64, 100, 1, 0},
             "{'descr': '<f8', 'fortran_order': False, 'shape': (100, 1), }");
  assert_npy((struct pwi_array){NULL, PWI_SCALAR_I32, 0, 7, 0},
             "{'descr': '<i4', 'fortran_order': False, 'shape': (0, 7), }");
  assert_npy((struct pwi_array){NULL, PWI_SCALAR_I64, 12, 0, 0},
             "{'descr': '<i8', 'fortran_order': False, 'shape': (12,), }");
  assert_npy((struct pwi_array){NULL, PWI_SCALAR_U64, 1, 2, 0},
             "{'descr': '<u8', 'fortran_order': False, 'shape': (1, 2), }");
}

static void test_rows_may_come_in_any_order_and_the_last_one_counts(void **state) {
  (void)state;
  struct memory_file file = new_file(ROOM);
  struct pwi_array array = {NULL, PWI_SCALAR_I32, 4, 2, 0};
  const int32_t first[] = {1, 2, 3, 4}, second[] = {5, 6};
  const int32_t wanted[] = {0, 0, 1, 2, 5, 6, 0, 0};
  assert_int_equal(pwi_npy_begin(&file.base, &array), PAWL_OK);
  assert_int_equal(pwi_array_row_bytes(&array), 8);
  assert_int_equal(pwi_array_write(&file.base, &array, 1, 2, first), PAWL_OK);
  assert_int_equal(pwi_array_write(&file.base, &array, 2, 1, second), PAWL_OK);
  assert_memory_equal(bytes + array.offset, wanted, sizeof wanted);
  assert_int_equal(pwi_array_write(&file.base, &array, 3, 2, first), PAWL_INVALID);
  assert_int_equal(pwi_array_write(&file.base, &array, 5, 0, first), PAWL_INVALID);
  assert_int_equal(pwi_array_write(&file.base, &array, UINT64_MAX, 2, first), PAWL_INVALID);
  assert_int_equal(file.size, array.offset + sizeof wanted);
}

/* --- safetensors ---------------------------------------------------------------------------------------- */

static void assert_array(const json_t *head, const struct pwi_array *array, const char *type, size_t begin,
                         size_t end) {
  const json_t *about = json_object_get(head, array->name), *shape = json_object_get(about, "shape");
  const json_t *offsets = json_object_get(about, "data_offsets");
  assert_string_equal(json_string_value(json_object_get(about, "dtype")), type);
  assert_int_equal(json_array_size(shape), array->width > 0 ? 2 : 1);
  assert_int_equal(json_integer_value(json_array_get(shape, 0)), array->rows);
  if (array->width > 0) assert_int_equal(json_integer_value(json_array_get(shape, 1)), array->width);
  assert_int_equal(json_array_size(offsets), 2);
  assert_int_equal(json_integer_value(json_array_get(offsets, 0)), begin);
  assert_int_equal(json_integer_value(json_array_get(offsets, 1)), end);
}

static void test_safetensors_heads_name_every_array(void **state) {
  (void)state;
  struct memory_file file = new_file(ROOM);
  struct pwi_array arrays[] = {{"ads/w.keys", PWI_SCALAR_U64, 3, 0, 0},
                               {"ads/w.values", PWI_SCALAR_F32, 3, 5, 0},
                               {"empty", PWI_SCALAR_I64, 0, 2, 0}};
  const struct pwi_export_metadata about[] = {{"vector", "ads/w"}, {"cluster", "\"quoted\""}};
  assert_int_equal(pwi_safetensors_begin(&file.base, arrays, 3, about, 2), PAWL_OK);
  size_t length = (size_t)pwi_get_u64(bytes);
  assert_int_equal(length % 8, 0);
  assert_int_equal(bytes[8], '{');
  json_error_t error;
  json_t *head = json_loadb((const char *)bytes + 8, length, JSON_REJECT_DUPLICATES, &error);
  assert_non_null(head);
  assert_int_equal(json_object_size(head), 4);
  assert_array(head, &arrays[0], "U64", 0, 24);
  assert_array(head, &arrays[1], "F32", 24, 84);
  assert_array(head, &arrays[2], "I64", 84, 84);
  const json_t *metadata = json_object_get(head, "__metadata__");
  assert_string_equal(json_string_value(json_object_get(metadata, "vector")), "ads/w");
  assert_string_equal(json_string_value(json_object_get(metadata, "cluster")), "\"quoted\"");
  json_decref(head);
  assert_int_equal(file.size, 8 + length + 84); /* the arrays leave no gap */
  assert_int_equal(arrays[0].offset, 8 + length);
  assert_int_equal(arrays[1].offset, 8 + length + 24);
  const uint64_t key = 77;
  assert_int_equal(pwi_array_write(&file.base, &arrays[0], 2, 1, &key), PAWL_OK);
  assert_int_equal(pwi_get_u64(bytes + arrays[0].offset + 16), 77);
}

static void test_safetensors_without_metadata_have_no_such_field(void **state) {
  (void)state;
  struct memory_file file = new_file(ROOM);
  struct pwi_array array = {"x", PWI_SCALAR_F64, 2, 1, 0};
  static const char wanted[] = "{\"x\":{\"dtype\":\"F64\",\"shape\":[2,1],\"data_offsets\":[0,16]}}";
  assert_int_equal(pwi_safetensors_begin(&file.base, &array, 1, NULL, 0), PAWL_OK);
  assert_memory_equal(bytes + 8, wanted, strlen(wanted));
}

/* --- limits --------------------------------------------------------------------------------------------- */

static void test_arrays_that_no_file_can_hold_are_refused(void **state) {
  (void)state;
  struct memory_file file = new_file(ROOM);
  struct pwi_array arrays[] = {{"a", PWI_SCALAR_F64, UINT64_C(1) << 61, 1, 0}, {"b", PWI_SCALAR_F64, 8, 1, 0}};
  assert_int_equal(pwi_npy_begin(&file.base, arrays), PAWL_TOO_LARGE);
  arrays[0].rows = (UINT64_C(1) << 60) - 2;
  assert_int_equal(pwi_npy_begin(&file.base, arrays), PAWL_TOO_LARGE);
  assert_int_equal(pwi_safetensors_begin(&file.base, arrays, 2, NULL, 0), PAWL_TOO_LARGE);
  arrays[0].rows = UINT64_MAX;
  assert_int_equal(pwi_safetensors_begin(&file.base, arrays, 2, NULL, 0), PAWL_TOO_LARGE);
  assert_int_equal(file.size, 0);
}

static void test_a_full_disk_is_told(void **state) {
  (void)state;
  struct pwi_array array = {"a", PWI_SCALAR_F64, 100, 1, 0};
  for (size_t room = 0; room < 800; room += 100) {
    struct memory_file file = new_file(room);
    assert_int_equal(pwi_npy_begin(&file.base, &array), PAWL_NO_SPACE);
    assert_int_equal(pwi_safetensors_begin(&file.base, &array, 1, NULL, 0), PAWL_NO_SPACE);
  }
}

static void test_running_out_of_memory_is_told(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  struct memory_file file = new_file(ROOM);
  struct pwi_array array = {"a", PWI_SCALAR_F64, 100, 1, 0};
  pwi_memory_fail_after(0);
  assert_int_equal(pwi_safetensors_begin(&file.base, &array, 1, NULL, 0), PAWL_NO_MEMORY);
  assert_int_equal(pwi_memory_fail_cancel(), 1);
  assert_int_equal(pwi_memory_counts().live, live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_npy_heads_are_as_numpy_writes_them),
      cmocka_unit_test(test_rows_may_come_in_any_order_and_the_last_one_counts),
      cmocka_unit_test(test_safetensors_heads_name_every_array),
      cmocka_unit_test(test_safetensors_without_metadata_have_no_such_field),
      cmocka_unit_test(test_arrays_that_no_file_can_hold_are_refused),
      cmocka_unit_test(test_a_full_disk_is_told),
      cmocka_unit_test(test_running_out_of_memory_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
