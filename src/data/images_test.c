/* Readers of idx and CIFAR files: the images that they return, and their complaints about bad files. */
#include "data/images.h"
#include "data/formats/image_file.h"
#include "data/scene_test.h"

#define CIFAR PWI_CIFAR_RECORD

static void put_big(unsigned char *bytes, uint32_t number) {
  for (int i = 0; i < 4; i++) bytes[i] = (unsigned char)(number >> (24 - 8 * i));
}

/* An idx file of images whose pixels are their own offsets. Returns its size. */
static size_t make_images(unsigned char *to, uint32_t count, uint32_t height, uint32_t width) {
  size_t pixels = (size_t)count * height * width;
  put_big(to, 0x803);
  put_big(to + 4, count);
  put_big(to + 8, height);
  put_big(to + 12, width);
  for (size_t i = 0; i < pixels; i++) to[16 + i] = (unsigned char)i;
  return 16 + pixels;
}

static size_t make_labels(unsigned char *to, uint32_t count) {
  put_big(to, 0x801);
  put_big(to + 4, count);
  for (uint32_t i = 0; i < count; i++) to[8 + i] = (unsigned char)(i % 7);
  return 8 + count;
}

static size_t make_cifar(unsigned char *to, size_t count) {
  for (size_t i = 0; i < count * CIFAR; i++) to[i] = (unsigned char)(i % CIFAR ? i % 251 : (i / CIFAR) % 10);
  return count * CIFAR;
}

static unsigned char bytes[1 << 16];

static const char *write_images(const char *name, uint32_t count, uint32_t height, uint32_t width) {
  return write_bytes(name, bytes, make_images(bytes, count, height, width));
}

static const char *write_labels(const char *name, uint32_t count) {
  return write_bytes(name, bytes, make_labels(bytes, count));
}

static const char *write_cifar(const char *name, size_t count) {
  return write_bytes(name, bytes, make_cifar(bytes, count));
}

static struct pawl_images_options options(enum pawl_images_format format, bool labels_optional) {
  struct pawl_images_options is;
  pawl_images_options_init(&is);
  is.format = format;
  is.labels_optional = labels_optional;
  return is;
}

static struct pawl_images *images_of(const char *const *paths, size_t count, bool labels_optional) {
  struct pawl_images_options is = options(PAWL_IMAGES_AUTO, labels_optional);
  struct pawl_images *images = NULL;
  struct pwi_fault fault = {""};
  if (pwi_images_read(paths, count, &is, &images, &fault)) fail_msg("%s", fault.text);
  return images;
}

/* Why files cannot be read, without the folder before the first name. */
static const char *complaint(const char *const *paths, size_t count, enum pawl_images_format format,
                             pawl_status *status_out) {
  static struct pwi_fault fault;
  struct pawl_images_options is = options(format, false);
  struct pawl_images *images = NULL;
  fault.text[0] = 0;
  *status_out = pwi_images_read(paths, count, &is, &images, &fault);
  assert_null(images);
  size_t length = strlen(folder);
  return strncmp(fault.text, folder, length) == 0 ? fault.text + length + 1 : fault.text;
}

/* The bytes are refused with this status and a text that contains `what`. */
static void assert_refused(size_t size, enum pawl_images_format format, pawl_status status, const char *what) {
  pawl_status got;
  const char *path = write_bytes("bad", bytes, size), *text = complaint(&path, 1, format, &got);
  if (got != status || strncmp(text, "bad: ", 5) != 0 || !strstr(text, what))
    fail_msg("%s: %s; expected %s: %s", pawl_status_name(got), text, pawl_status_name(status), what);
}

/* --- good files ------------------------------------------------------------------------------------------ */

static void test_images_and_labels_of_mnist_are_read(void **state) {
  (void)state;
  const char *paths[] = {write_images("i", 3, 4, 5), write_labels("l", 3)};
  struct pawl_images *images = images_of(paths, 2, false);
  assert_int_equal(images->info.count, 3);
  assert_int_equal(images->info.channels, 1);
  assert_int_equal(images->info.height, 4);
  assert_int_equal(images->info.width, 5);
  assert_int_equal(images->info.classes, 3);
  for (size_t i = 0; i < 60; i++) assert_int_equal(images->pixels[i], i);
  for (size_t i = 0; i < 3; i++) assert_int_equal(images->labels[i], i);
  pwi_images_destroy(images);
}

static void test_records_of_cifar_are_taken_apart(void **state) {
  (void)state;
  const char *path = write_cifar("c", 12);
  struct pawl_images *images = images_of(&path, 1, false);
  assert_int_equal(images->info.count, 12);
  assert_int_equal(images->info.channels, 3);
  assert_int_equal(images->info.height * images->info.width, 1024);
  assert_int_equal(images->info.classes, 10);
  for (size_t i = 0; i < 12; i++) {
    assert_int_equal(images->labels[i], i % 10);
    assert_memory_equal(images->pixels + i * 3072, bytes + i * CIFAR + 1, 3072);
  }
  pwi_images_destroy(images);
}

static void test_several_files_form_one_set_in_their_order(void **state) {
  (void)state;
  /* Images and labels may come in any order; the n-th of one kind belongs to the n-th of the other. */
  const char *paths[] = {write_labels("l1", 2), write_images("i1", 2, 2, 2), write_images("i2", 3, 2, 2),
                         write_labels("l2", 3)};
  struct pawl_images *images = images_of(paths, 4, false);
  const uint8_t labels[] = {0, 1, 0, 1, 2};
  assert_int_equal(images->info.count, 5);
  assert_memory_equal(images->labels, labels, 5);
  for (size_t i = 0; i < 20; i++) assert_int_equal(images->pixels[i], i < 8 ? i : i - 8);
  pwi_images_destroy(images);

  const char *batches[] = {write_cifar("batch_2.bin", 2), write_cifar("batch_1.bin", 1)};
  images = images_of(batches, 2, false);
  assert_int_equal(images->info.count, 3);
  pwi_images_destroy(images);
  const char *pattern = path_of("batch_*.bin");
  images = images_of(&pattern, 1, false);
  assert_int_equal(images->info.count, 3);
  assert_int_equal(images->labels[0], 0);
  assert_int_equal(images->labels[2], 1);
  pwi_images_destroy(images);
}

static void test_compressed_files_are_read_as_well(void **state) {
  (void)state;
  static unsigned char packed[1 << 16];
  size_t size = make_images(bytes, 3, 4, 5), made = pack_gzip(bytes, size, packed, sizeof packed);
  const char *paths[2] = {write_bytes("i.gz", packed, made)};
  size = make_labels(bytes, 3);
  paths[1] = write_bytes("l.gz", packed, pack_gzip(bytes, size, packed, sizeof packed));
  struct pawl_images *images = images_of(paths, 2, false);
  assert_int_equal(images->info.count, 3);
  assert_int_equal(images->pixels[59], 59);
  pwi_images_destroy(images);

  size = make_cifar(bytes, 4);
  paths[0] = write_bytes("c.zst", packed, pack_zstd(bytes, size, false, packed, sizeof packed));
  images = images_of(paths, 1, false);
  assert_int_equal(images->info.count, 4);
  assert_memory_equal(images->pixels + 3 * 3072, bytes + 3 * CIFAR + 1, 3072);
  pwi_images_destroy(images);
}

static void test_labels_may_be_missing_if_that_is_allowed(void **state) {
  (void)state;
  const char *path = write_images("i", 2, 2, 2);
  struct pawl_images *images = images_of(&path, 1, true);
  assert_int_equal(images->info.count, 2);
  assert_int_equal(images->info.classes, 0);
  assert_null(images->labels);
  pwi_images_destroy(images);
}

static void test_a_cifar_file_that_begins_like_idx_is_read_if_its_format_is_given(void **state) {
  (void)state;
  struct pawl_images_options is = options(PAWL_IMAGES_CIFAR, false);
  struct pawl_images *images = NULL;
  struct pwi_fault fault = {""};
  make_cifar(bytes, 2);
  put_big(bytes, 0x803);
  const char *path = write_bytes("c", bytes, 2 * CIFAR);
  assert_int_equal(pwi_images_read(&path, 1, &is, &images, &fault), PAWL_OK);
  assert_int_equal(images->info.count, 2);
  pwi_images_destroy(images);
}

/* --- bad files ------------------------------------------------------------------------------------------- */

static void test_a_wrong_magic_number_is_refused(void **state) {
  (void)state;
  size_t size = make_images(bytes, 2, 3, 3);
  put_big(bytes, 0x01000803);
  assert_refused(size, PAWL_IMAGES_IDX, PAWL_CORRUPT, "magic number is 0x01000803; expected 0x00000803");
  assert_refused(size, PAWL_IMAGES_AUTO, PAWL_TRUNCATED, "the last record has 34 bytes instead of 3073");
  bytes[0] = 'P';
  assert_refused(size, PAWL_IMAGES_AUTO, PAWL_CORRUPT, "record 1 has the label 80; expected idx, or CIFAR-10");
  put_big(bytes, 0xd03);
  assert_refused(size, PAWL_IMAGES_AUTO, PAWL_UNSUPPORTED, "type 0x0d with 3 dimensions; pawl reads unsigned bytes");
  put_big(bytes, 0x802);
  assert_refused(size, PAWL_IMAGES_AUTO, PAWL_UNSUPPORTED, "type 0x08 with 2 dimensions");
}

static void test_a_truncated_file_is_refused_wherever_it_ends(void **state) {
  (void)state;
  size_t size = make_images(bytes, 2, 3, 3);
  assert_refused(0, PAWL_IMAGES_AUTO, PAWL_TRUNCATED, "the file is empty");
  for (size_t cut = 1; cut < size; cut++) assert_refused(cut, PAWL_IMAGES_IDX, PAWL_TRUNCATED, "");
  assert_refused(size - 1, PAWL_IMAGES_AUTO, PAWL_TRUNCATED, "promises 18 bytes, but only 17 follow");
  size = make_labels(bytes, 5);
  for (size_t cut = 1; cut < size; cut++) assert_refused(cut, PAWL_IMAGES_IDX, PAWL_TRUNCATED, "");
  size = make_cifar(bytes, 2);
  assert_refused(size - 1, PAWL_IMAGES_AUTO, PAWL_TRUNCATED, "the last record has 3072 bytes instead of 3073");
  assert_refused(1, PAWL_IMAGES_CIFAR, PAWL_TRUNCATED, "the last record has 1 bytes");
}

static void test_bytes_behind_the_last_element_are_refused(void **state) {
  (void)state;
  size_t size = make_images(bytes, 2, 3, 3);
  assert_refused(size + 1, PAWL_IMAGES_AUTO, PAWL_CORRUPT, "1 bytes follow the last element");
}

static void test_sizes_that_overflow_or_are_empty_are_refused(void **state) {
  (void)state;
  size_t size = make_images(bytes, 2, 3, 3);
  put_big(bytes + 4, UINT32_MAX);
  assert_refused(size, PAWL_IMAGES_AUTO, PAWL_TRUNCATED, "promises 38654705655 bytes");
  put_big(bytes + 8, UINT32_MAX);
  put_big(bytes + 12, UINT32_MAX);
  assert_refused(size, PAWL_IMAGES_AUTO, PAWL_CORRUPT, "are too many; the header is damaged");
  size = make_images(bytes, 2, 3, 0);
  assert_refused(size, PAWL_IMAGES_AUTO, PAWL_CORRUPT, "images of 3 x 0 pixels; the header is damaged");
  size = make_images(bytes, 0, 3, 3);
  assert_refused(size, PAWL_IMAGES_AUTO, PAWL_TRUNCATED, "the file has no images");
  size = make_labels(bytes, 0);
  assert_refused(size, PAWL_IMAGES_AUTO, PAWL_TRUNCATED, "the file has no labels");
}

static void test_a_label_beyond_the_classes_of_cifar_is_refused(void **state) {
  (void)state;
  size_t size = make_cifar(bytes, 3);
  bytes[2 * CIFAR] = 10;
  assert_refused(size, PAWL_IMAGES_AUTO, PAWL_CORRUPT, "record 3 has the label 10");
}

static void test_images_and_labels_must_belong_together(void **state) {
  (void)state;
  pawl_status status;
  const char *paths[] = {write_images("i", 3, 2, 2), write_labels("l", 4), write_labels("m", 3)};
  const char *text = complaint(paths, 2, PAWL_IMAGES_AUTO, &status);
  assert_int_equal(status, PAWL_MISMATCH);
  assert_non_null(strstr(text, "l: 4 labels, but "));
  assert_non_null(strstr(text, "/i has 3 images; name files that belong together"));
  text = complaint(paths, 1, PAWL_IMAGES_AUTO, &status);
  assert_int_equal(status, PAWL_MISMATCH);
  assert_non_null(strstr(text, "i: images without labels; name their file of labels, too"));
  text = complaint(paths + 1, 1, PAWL_IMAGES_AUTO, &status);
  assert_int_equal(status, PAWL_MISMATCH);
  assert_non_null(strstr(text, "l: labels without images"));
  const char *swapped[] = {paths[0], paths[2], paths[1]};
  text = complaint(swapped, 3, PAWL_IMAGES_AUTO, &status);
  assert_int_equal(status, PAWL_MISMATCH);
  assert_non_null(strstr(text, "l: labels without images"));
}

static void test_images_of_different_sizes_do_not_mix(void **state) {
  (void)state;
  pawl_status status;
  const char *paths[] = {write_cifar("c", 1), write_images("i", 1, 32, 32), write_labels("l", 1)};
  const char *text = complaint(paths, 3, PAWL_IMAGES_AUTO, &status);
  assert_int_equal(status, PAWL_MISMATCH);
  assert_non_null(strstr(text, "i: images of 1 x 32 x 32, but those of "));
  assert_non_null(strstr(text, "/c have 3 x 32 x 32"));
}

static void test_files_that_are_not_there_are_named(void **state) {
  (void)state;
  pawl_status status;
  const char *path = path_of("nowhere");
  assert_non_null(strstr(complaint(&path, 1, PAWL_IMAGES_AUTO, &status), "nowhere: No such file"));
  assert_int_equal(status, PAWL_NOT_FOUND);
  path = path_of("nothing*");
  assert_non_null(strstr(complaint(&path, 1, PAWL_IMAGES_AUTO, &status), "nothing*: no file matches"));
  assert_int_equal(status, PAWL_NOT_FOUND);
  path = folder;
  (void)complaint(&path, 1, PAWL_IMAGES_AUTO, &status);
  assert_int_equal(status, PAWL_INVALID);
  assert_string_equal(complaint(NULL, 0, PAWL_IMAGES_AUTO, &status), "no file of images was given");
  assert_int_equal(status, PAWL_INVALID);
}

static void test_without_memory_nothing_is_left_behind(void **state) {
  (void)state;
  struct pawl_images_options is = options(PAWL_IMAGES_AUTO, false);
  const char *paths[] = {write_images("i", 3, 4, 5), write_labels("l", 3)};
  uint64_t live = pwi_memory_counts().live;
  pawl_status status = PAWL_NO_MEMORY;
  uint64_t n = 0;
  for (; status == PAWL_NO_MEMORY; n++) {
    struct pawl_images *images = NULL;
    struct pwi_fault fault = {""};
    pwi_memory_fail_after(n);
    status = pwi_images_read(paths, 2, &is, &images, &fault);
    pwi_memory_fail_cancel();
    assert_true(status == PAWL_OK || (status == PAWL_NO_MEMORY && !images && fault.text[0]));
    pwi_images_destroy(images);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_true(n > 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_images_and_labels_of_mnist_are_read),
      cmocka_unit_test(test_records_of_cifar_are_taken_apart),
      cmocka_unit_test(test_several_files_form_one_set_in_their_order),
      cmocka_unit_test(test_compressed_files_are_read_as_well),
      cmocka_unit_test(test_labels_may_be_missing_if_that_is_allowed),
      cmocka_unit_test(test_a_cifar_file_that_begins_like_idx_is_read_if_its_format_is_given),
      cmocka_unit_test(test_a_wrong_magic_number_is_refused),
      cmocka_unit_test(test_a_truncated_file_is_refused_wherever_it_ends),
      cmocka_unit_test(test_bytes_behind_the_last_element_are_refused),
      cmocka_unit_test(test_sizes_that_overflow_or_are_empty_are_refused),
      cmocka_unit_test(test_a_label_beyond_the_classes_of_cifar_is_refused),
      cmocka_unit_test(test_images_and_labels_must_belong_together),
      cmocka_unit_test(test_images_of_different_sizes_do_not_mix),
      cmocka_unit_test(test_files_that_are_not_there_are_named),
      cmocka_unit_test(test_without_memory_nothing_is_left_behind),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
