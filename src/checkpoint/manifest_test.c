/* Manifests: encoding, decoding, and invalid texts. */
#include <inttypes.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "sim/disk.h"
#include "checkpoint/manifest.h"

#define HALF (UINT64_C(1) << 63)

static struct pwi_manifest_vector vector_of(uint64_t id, const char *name) {
  struct pwi_manifest_vector vector = {.id = id, .incarnation = 2};
  vector.is = (struct pawl_vector_options){.type = PAWL_F32,
                                           .width = 3,
                                           .size = 1000,
                                           .function = PAWL_ADD,
                                           .placement = PAWL_PLACE_ORDERED,
                                           .layout = PAWL_LAYOUT_DENSE};
  snprintf(vector.name, sizeof vector.name, "%s", name);
  return vector;
}

static void add_vector(struct pwi_manifest *manifest, struct pwi_manifest_vector vector) {
  assert_int_equal(pwi_manifest_add_vector(manifest, &vector), PAWL_OK);
}

static void add_file(struct pwi_manifest *manifest, const char *name, uint64_t begin, uint64_t end) {
  struct pwi_archive_cut arcs[] = {{{begin, begin + 10}, 7, 1}, {{begin + 10, end}, 7, UINT64_MAX}};
  struct pwi_manifest_file file = {.node = 2, .size = 1234, .checksum = 0xabc, .arcs = arcs, .arc_count = 2};
  snprintf(file.name, sizeof file.name, "%s", name);
  assert_int_equal(pwi_manifest_add_file(manifest, &file), PAWL_OK);
}

static struct pwi_manifest example(void) {
  struct pwi_manifest manifest = {
      .cluster = 0xc0ffee, .number = 5, .time_s = 1738367999, .name = "nightly-5", .base = "nightly-4"};
  struct pwi_manifest_vector wide = vector_of(9, "ads/.");
  memcpy(wide.name, "ads/w-2", 8);
  wide.is = (struct pawl_vector_options){.type = PAWL_U64,
                                         .width = PAWL_WIDTH_MAX,
                                         .size = PAWL_KEY_END,
                                         .function = PAWL_ASSIGN,
                                         .placement = PAWL_PLACE_MIXED,
                                         .layout = PAWL_LAYOUT_SPARSE};
  add_vector(&manifest, vector_of(1, "ads/weights"));
  add_vector(&manifest, wide);
  add_file(&manifest, "node-2-1.pawl", 0, HALF);
  add_file(&manifest, "node-3-1.pawl", HALF, UINT64_MAX);
  return manifest;
}

static char *text_of(const struct pwi_manifest *manifest, size_t *size_out) {
  char *text = NULL;
  assert_int_equal(pwi_manifest_encode(manifest, &text, size_out), PAWL_OK);
  return text;
}

static void assert_same(const struct pwi_manifest *a, const struct pwi_manifest *b) {
  size_t a_size, b_size;
  char *a_text = text_of(a, &a_size), *b_text = text_of(b, &b_size);
  assert_int_equal(a_size, b_size);
  assert_memory_equal(a_text, b_text, a_size);
  pwi_free(a_text);
  pwi_free(b_text);
}

static pawl_status decode(const char *text, size_t size) {
  struct pwi_manifest manifest = {0};
  pawl_status status = pwi_manifest_decode(text, size, &manifest);
  pwi_manifest_fini(&manifest);
  return status;
}

static void test_a_manifest_comes_back_from_its_text(void **state) {
  (void)state;
  struct pwi_manifest manifest = example(), again = {0};
  size_t size;
  char *text = text_of(&manifest, &size);
  assert_non_null(strstr(text, "\"cluster\": \"0000000000c0ffee\""));
  assert_non_null(strstr(text, "\"time\": \"2025-01-31T23:59:59Z\""));
  assert_int_equal(pwi_manifest_decode(text, size, &again), PAWL_OK);
  assert_same(&manifest, &again);
  assert_int_equal(again.time_s, manifest.time_s);
  assert_string_equal(again.base, "nightly-4");
  assert_int_equal(again.vector_count, 2);
  assert_memory_equal(&again.vectors[1].is, &manifest.vectors[1].is, sizeof again.vectors[1].is);
  assert_int_equal(again.vectors[0].incarnation, 2);
  assert_ptr_equal(pwi_manifest_vector(&again, 9), &again.vectors[1]);
  assert_ptr_equal(pwi_manifest_named(&again, "ads/weights"), &again.vectors[0]);
  assert_null(pwi_manifest_vector(&again, 2));
  assert_null(pwi_manifest_named(&again, "ads/w"));
  assert_int_equal(again.files[1].arc_count, 2);
  assert_true(again.files[1].arcs[1].sequence == UINT64_MAX);
  assert_true(again.files[0].checksum == 0xabc);
  pwi_free(text);
  pwi_manifest_fini(&again);
  pwi_manifest_fini(&manifest);
}

static void test_an_empty_manifest_that_stands_alone_comes_back(void **state) {
  (void)state;
  struct pwi_manifest manifest = {.name = "a"}, again = {0};
  size_t size;
  char *text = text_of(&manifest, &size);
  assert_non_null(strstr(text, "\"base\": null"));
  assert_int_equal(pwi_manifest_decode(text, size, &again), PAWL_OK);
  assert_same(&manifest, &again);
  pwi_free(text);
  pwi_manifest_fini(&again);
}

static void test_coverage_is_exact(void **state) {
  (void)state;
  const struct pawl_range ring = {0, UINT64_MAX};
  struct pwi_manifest manifest = example();
  assert_int_equal(pwi_manifest_covers(&manifest, ring), PAWL_OK);
  assert_int_equal(pwi_manifest_covers(&manifest, pawl_range_of(0, HALF)), PAWL_MISMATCH);
  manifest.files[1].arcs[0].positions.begin++;
  assert_int_equal(pwi_manifest_covers(&manifest, ring), PAWL_MISMATCH);
  manifest.files[1].arcs[0].positions.begin -= 2;
  assert_int_equal(pwi_manifest_covers(&manifest, ring), PAWL_MISMATCH);
  manifest.files[1].arcs[0].positions.begin++;
  manifest.files[1].arcs[1].positions.end--;
  assert_int_equal(pwi_manifest_covers(&manifest, ring), PAWL_MISMATCH);
  pwi_manifest_fini(&manifest);
}

/* --- damage --------------------------------------------------------------------------------------------- */

static void test_every_flipped_bit_is_found(void **state) {
  (void)state;
  struct pwi_manifest manifest = example();
  size_t size;
  char *text = text_of(&manifest, &size);
  for (size_t bit = 0; bit < 8 * size; bit++) {
    text[bit / 8] ^= (char)(1 << bit % 8);
    pawl_status status = decode(text, size);
    assert_true(status == PAWL_CORRUPT || status == PAWL_TRUNCATED);
    text[bit / 8] ^= (char)(1 << bit % 8);
  }
  assert_int_equal(decode(text, size), PAWL_OK);
  pwi_free(text);
  pwi_manifest_fini(&manifest);
}

static void test_every_truncation_is_found(void **state) {
  (void)state;
  struct pwi_manifest manifest = example();
  size_t size;
  char *text = text_of(&manifest, &size);
  for (size_t length = 0; length < size; length++) {
    pawl_status status = decode(text, length);
    assert_true(status == PAWL_CORRUPT || status == PAWL_TRUNCATED);
  }
  pwi_free(text);
  pwi_manifest_fini(&manifest);
}

/* The text of the example with one part replaced, and a correct checksum. */
static pawl_status decode_with(const char *piece, const char *instead) {
  static char good[8192], body[8192], text[8192 + 64];
  struct pwi_manifest manifest = example();
  size_t size;
  char *whole_text = text_of(&manifest, &size);
  memcpy(good, whole_text, size + 1 < sizeof good ? size + 1 : sizeof good);
  pwi_free(whole_text);
  good[size - strlen(",\n  \"checksum\": \"0123456789abcdef\"\n}\n")] = '\0';
  char *at = strstr(good, piece);
  if (!at) fail_msg("there is no %s", piece);
  int length = snprintf(body, sizeof body, "%.*s%s%s", (int)(at - good), good, instead, at + strlen(piece));
  int whole = snprintf(text, sizeof text, "%s,\n  \"checksum\": \"%016" PRIx64 "\"\n}\n", body,
                       pwi_hash(body, (size_t)length, 0));
  pawl_status status = decode(text, (size_t)whole);
  pwi_manifest_fini(&manifest);
  return status;
}

static void test_texts_with_a_fitting_checksum_are_looked_at_all_the_same(void **state) {
  (void)state;
  static const char *const wrong[][2] = {
      {"\"format\": 1", "\"format\": \"1\""},
      {"\"format\": 1", "\"format\": 1, \"format\": 1"},
      {"\"format\": 1,", ""},
      {"0000000000c0ffee", "c0ffee"},
      {"0000000000c0ffee", "0000000000C0FFEE"},
      {"\"nightly-5\"", "\"../nightly-5\""},
      {"\"nightly-5\"", "5"},
      {"\"nightly-5\"", "\"nightly-4\""},
      {"\"nightly-4\"", "\"\""},
      {"\"nightly-4\"", "false"},
      {"\"number\": 5", "\"number\": -5"},
      {"\"number\": 5", "\"number\": 5.5"},
      {"\"number\": 5", "\"number\": 99999999999999999999"},
      {"2025-01-31T23:59:59Z", "2025-02-30T23:59:59Z"},
      {"2025-01-31T23:59:59Z", "yesterday"},
      {"2025-01-31T23:59:59Z", "2025-01-31T23:59:59Z "},
      {"\"ads/weights\"", "\"weights\""},
      {"\"ads/weights\"", "\"ads/.weights\""},
      {"\"ads/weights\"", "\"ads/w-2\""},
      {"\"ads/weights\"", "\"ads\\u0000/weights\""},
      {"\"id\": 1", "\"id\": 9"},
      {"\"id\": 1", "\"id\": 0"},
      {"\"f32\"", "\"f16\""},
      {"\"width\": 3", "\"width\": 0"},
      {"\"width\": 3", "\"width\": 4294967299"},
      {"\"1000\"", "\"0\""},
      {"\"1000\"", "1000"},
      {"\"1000\"", "\"01000\""},
      {"\"1000\"", "\"1000000000000\""},
      {"\"18446744073709551615\",\n      \"function\"", "\"18446744073709551614\",\n      \"function\""},
      {"\"add\"", "\"subtract\""},
      {"\"ordered\"", "\"auto\""},
      {"\"ordered\"", "\"mixed\""},
      {"\"dense\"", "1"},
      {"\"node-2-1.pawl\"", "\"node-3-1.pawl\""},
      {"\"node-2-1.pawl\"", "\"manifest.json\""},
      {"\"node-2-1.pawl\"", "\"../../etc/passwd\""},
      {"\"node\": 2", "\"node\": null"},
      {"\"size\": 1234", "\"size\": -1"},
      {"\"0000000000000abc\"", "\"abc\""},
      {"\"begin\": \"0\"", "\"begin\": \"10\""},
      {"\"begin\": \"0\"", "\"begin\": \"11\""},
      {"\"begin\": \"10\"", "\"begin\": \"9\""},
      {"\"begin\": \"10\"", "\"begin\": \"-1\""},
      {"\"vectors\": [", "\"vectors\": 5, \"others\": ["},
      {"\"files\": [", "\"files\": null, \"others\": ["},
      {"\"vectors\": [", "\"vectors\": [[],"},
      {"\"files\": [", "\"files\": [7,"},
      {"\"arcs\": [", "\"arcs\": [\"x\","},
      {"{\n  \"format\"", "[{\n  \"format\""},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    pawl_status status = decode_with(wrong[i][0], wrong[i][1]);
    if (status != PAWL_CORRUPT) fail_msg("%s: %s", wrong[i][1], pawl_status_name(status));
  }
  assert_int_equal(decode_with("\"format\": 1", "\"format\": 2"), PAWL_UNSUPPORTED);
  assert_int_equal(decode_with("\"format\": 1", "\"format\": 1, \"remark\": \"made by hand\""), PAWL_OK);
}

static void test_an_invalid_manifest_is_not_written(void **state) {
  (void)state;
  struct pwi_manifest manifest = example();
  char *text;
  size_t size;
  manifest.vectors[1].id = 1;
  assert_int_equal(pwi_manifest_encode(&manifest, &text, &size), PAWL_INVALID);
  manifest.vectors[1].id = UINT64_MAX;
  assert_int_equal(pwi_manifest_encode(&manifest, &text, &size), PAWL_INVALID);
  manifest.vectors[1].id = 9;
  manifest.time_s = -1;
  assert_int_equal(pwi_manifest_encode(&manifest, &text, &size), PAWL_INVALID);
  manifest.time_s = INT64_MAX;
  assert_int_equal(pwi_manifest_encode(&manifest, &text, &size), PAWL_INVALID);
  manifest.time_s = 0;
  manifest.files[0].arcs[1].positions.end++;
  assert_int_equal(pwi_manifest_encode(&manifest, &text, &size), PAWL_INVALID);
  pwi_manifest_fini(&manifest);
}

/* --- on disk -------------------------------------------------------------------------------------------- */

static void test_a_directory_is_a_checkpoint_from_the_manifest_on(void **state) {
  (void)state;
  struct pwi_sim_disk *disk;
  struct pwi_sim_disk_host host = {.seed = 1};
  struct pwi_manifest manifest = example(), again = {0};
  assert_int_equal(pwi_sim_disk_create(&host, &disk), PAWL_OK);
  struct pwi_files *files = pwi_sim_disk_files(disk);
  assert_int_equal(pwi_manifest_write(files, "nightly-5", &manifest), PAWL_NOT_FOUND);
  assert_int_equal(pwi_files_make_directory(files, "nightly-5"), PAWL_OK);
  assert_int_equal(pwi_files_sync_directory(files, "."), PAWL_OK);
  assert_int_equal(pwi_manifest_read(files, "nightly-5", &again), PAWL_NOT_FOUND);
  pwi_sim_disk_set_faults(disk, &(struct pwi_sim_disk_faults){.full = true});
  assert_int_equal(pwi_manifest_write(files, "nightly-5", &manifest), PAWL_NO_SPACE);
  pwi_sim_disk_set_faults(disk, NULL);
  assert_int_equal(pwi_manifest_read(files, "nightly-5", &again), PAWL_NOT_FOUND);
  assert_int_equal(pwi_manifest_write(files, "nightly-5", &manifest), PAWL_OK);
  pwi_sim_disk_power_off(disk);
  pwi_sim_disk_crash(disk);
  pwi_sim_disk_power_on(disk);
  assert_int_equal(pwi_manifest_read(files, "nightly-5", &again), PAWL_OK);
  assert_same(&manifest, &again);
  pwi_manifest_fini(&again);
  pwi_manifest_fini(&manifest);
  pwi_sim_disk_destroy(disk);
}

/* Allocations of jansson are not counted here. */
static void test_running_out_of_memory_is_survived_anywhere(void **state) {
  (void)state;
  struct pwi_manifest manifest = example();
  uint64_t live = pwi_memory_counts().live;
  int failed = 1;
  for (uint64_t n = 0; failed; n++) {
    struct pwi_manifest again = {0};
    char *text = NULL;
    size_t size;
    pwi_memory_fail_after(n);
    pawl_status status = pwi_manifest_encode(&manifest, &text, &size);
    if (status == PAWL_OK) status = pwi_manifest_decode(text, size, &again);
    failed = pwi_memory_fail_cancel();
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    pwi_free(text);
    pwi_manifest_fini(&again);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  pwi_manifest_fini(&manifest);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_manifest_comes_back_from_its_text),
      cmocka_unit_test(test_an_empty_manifest_that_stands_alone_comes_back),
      cmocka_unit_test(test_coverage_is_exact),
      cmocka_unit_test(test_every_flipped_bit_is_found),
      cmocka_unit_test(test_every_truncation_is_found),
      cmocka_unit_test(test_texts_with_a_fitting_checksum_are_looked_at_all_the_same),
      cmocka_unit_test(test_an_invalid_manifest_is_not_written),
      cmocka_unit_test(test_a_directory_is_a_checkpoint_from_the_manifest_on),
      cmocka_unit_test(test_running_out_of_memory_is_survived_anywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
