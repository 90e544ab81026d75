/* SAVE and SAVED: each decodes to its input, and invalid bytes are rejected. */
#include "protocol/save_messages.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"

#define FLAGS_AT 8 /* of a SAVE: behind its number */

static struct pwi_save_arc arcs[2] = {{{0, 100}, 7}, {{500, UINT64_MAX}, 9}};

static struct pwi_save example(void) {
  struct pwi_save save = {.order = 12, .pack = true, .rate = 200000000, .number = 3, .arcs = arcs, .arc_count = 2};
  strcpy(save.directory, "/backup");
  strcpy(save.folder, ".pawl-saving-0123456789abcdef");
  strcpy(save.name, "nightly-3");
  strcpy(save.base, "nightly-2");
  strcpy(save.file, "node-2-1.pawl");
  return save;
}

static struct pwi_archive_cut cuts[2] = {{{0, 100}, 4, 1000}, {{500, UINT64_MAX}, 5, 2000}};

static struct pwi_save_report example_report(void) {
  return (struct pwi_save_report){.order = 12,
                                  .is_over = true,
                                  .bytes = 1 << 20,
                                  .size = 4000,
                                  .checksum = UINT64_C(0x1122334455667788),
                                  .cuts = cuts,
                                  .cut_count = 2};
}

static struct pwi_writer bytes_of(const struct pwi_save *save) {
  struct pwi_writer writer = {0};
  pwi_save_encode(save, &writer);
  assert_int_equal(writer.status, PAWL_OK);
  return writer;
}

static struct pwi_writer bytes_of_report(const struct pwi_save_report *report) {
  struct pwi_writer writer = {0};
  pwi_save_report_encode(report, &writer);
  assert_int_equal(writer.status, PAWL_OK);
  return writer;
}

/* The result of decoding an order. */
static pawl_status judge(const struct pwi_save *save) {
  struct pwi_writer writer = bytes_of(save);
  struct pwi_save read;
  pawl_status status = pwi_save_decode(writer.data, writer.size, &read);
  if (!status) pwi_save_fini(&read);
  pwi_writer_fini(&writer);
  return status;
}

static pawl_status judge_report(const struct pwi_save_report *report) {
  struct pwi_writer writer = bytes_of_report(report);
  struct pwi_save_report read;
  pawl_status status = pwi_save_report_decode(writer.data, writer.size, &read);
  if (!status) pwi_save_report_fini(&read);
  pwi_writer_fini(&writer);
  return status;
}

static void test_an_order_is_read_as_it_was_written(void **state) {
  (void)state;
  struct pwi_save save = example(), read;
  struct pwi_writer writer = bytes_of(&save);
  assert_int_equal(pwi_save_decode(writer.data, writer.size, &read), PAWL_OK);
  assert_true(read.order == 12 && !read.cancel && read.pack && read.rate == 200000000 && read.number == 3);
  assert_string_equal(read.directory, "/backup");
  assert_string_equal(read.folder, ".pawl-saving-0123456789abcdef");
  assert_string_equal(read.name, "nightly-3");
  assert_string_equal(read.base, "nightly-2");
  assert_string_equal(read.file, "node-2-1.pawl");
  assert_int_equal(read.arc_count, 2);
  assert_memory_equal(read.arcs, arcs, sizeof arcs);
  pwi_save_fini(&read);
  assert_null(read.arcs);
  pwi_writer_fini(&writer);
}

static void test_a_report_is_read_as_it_was_written(void **state) {
  (void)state;
  struct pwi_save_report report = example_report(), read;
  report.status = PAWL_NO_SPACE;
  struct pwi_writer writer = bytes_of_report(&report);
  assert_int_equal(pwi_save_report_decode(writer.data, writer.size, &read), PAWL_OK);
  assert_true(read.order == 12 && read.is_over && read.status == PAWL_NO_SPACE);
  assert_true(read.bytes == 1 << 20 && read.size == 4000 && read.checksum == report.checksum);
  assert_int_equal(read.cut_count, 2);
  assert_memory_equal(read.cuts, cuts, sizeof cuts);
  pwi_save_report_fini(&read);
  assert_null(read.cuts);
  pwi_writer_fini(&writer);
}

/* Names become paths of files. */
static void test_names_that_could_lead_elsewhere_are_no_order(void **state) {
  (void)state;
  static const char *const bad[] = {"", "..", ".", "a/b", "../x", "/etc", "a b", "x\n"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct pwi_save name = example(), file = example(), base = example(), folder = example();
    strcpy(folder.folder, bad[i]);
    assert_int_equal(judge(&folder), PAWL_CORRUPT);
    strcpy(name.name, bad[i]);
    strcpy(file.file, bad[i]);
    strcpy(base.base, bad[i]);
    assert_int_equal(judge(&name), PAWL_CORRUPT);
    assert_int_equal(judge(&file), PAWL_CORRUPT);
    assert_int_equal(judge(&base), bad[i][0] ? PAWL_CORRUPT : PAWL_OK);
  }
  struct pwi_save nowhere = example();
  nowhere.directory[0] = '\0';
  assert_int_equal(judge(&nowhere), PAWL_CORRUPT);
  strcpy(nowhere.directory, "backup");
  assert_int_equal(judge(&nowhere), PAWL_CORRUPT);
  struct pwi_save user = example();
  strcpy(user.folder, ".pawl-saving-0123456789abcdeg");
  assert_int_equal(judge(&user), PAWL_CORRUPT);
}

/* An order that cancels, or has no arcs, needs no names. */
static void test_an_order_that_writes_nothing_needs_no_names(void **state) {
  (void)state;
  struct pwi_save cancel = {.order = 5, .cancel = true}, remember = {.order = 6};
  assert_int_equal(judge(&cancel), PAWL_OK);
  assert_int_equal(judge(&remember), PAWL_OK);
}

static void test_empty_ranges_and_unknown_flags_are_refused(void **state) {
  (void)state;
  struct pwi_save save = example(), read;
  struct pwi_save_arc empty = {{5, 5}, 0};
  struct pwi_writer writer = bytes_of(&save);
  writer.data[FLAGS_AT] = 4;
  assert_int_equal(pwi_save_decode(writer.data, writer.size, &read), PAWL_CORRUPT);
  pwi_writer_fini(&writer);
  save.arcs = &empty;
  save.arc_count = 1;
  assert_int_equal(judge(&save), PAWL_CORRUPT);
  struct pwi_save_report report = example_report();
  struct pwi_archive_cut nothing = {{9, 9}, 1, 1};
  report.status = (pawl_status)1;
  assert_int_equal(judge_report(&report), PAWL_CORRUPT);
  report.status = PAWL_OK;
  report.cuts = &nothing;
  report.cut_count = 1;
  assert_int_equal(judge_report(&report), PAWL_CORRUPT);
}

/* Truncated anywhere, with one byte too many, or with one byte changed, the bytes are at most another order
 * or report. Each copy is allocated at its exact size, so that reading past its end is detected. */
static void test_any_bytes_are_read_safely(void **state) {
  (void)state;
  struct pwi_save save = example(), read;
  struct pwi_save_report report = example_report(), read_report;
  struct pwi_writer writers[2] = {bytes_of(&save), bytes_of_report(&report)};
  struct pwi_random random;
  pwi_random_init(&random, 4, 1);
  for (size_t w = 0; w < 2; w++)
    for (size_t size = 0; size <= writers[w].size + 1; size++) {
      unsigned char *copy = pwi_alloc_zero(size + (size == 0), 1);
      memcpy(copy, writers[w].data, size < writers[w].size ? size : writers[w].size);
      pawl_status status = w ? pwi_save_report_decode(copy, size, &read_report) : pwi_save_decode(copy, size, &read);
      assert_int_equal(status, size == writers[w].size ? PAWL_OK : PAWL_CORRUPT);
      if (!status && w) pwi_save_report_fini(&read_report);
      if (!status && !w) pwi_save_fini(&read);
      pwi_free(copy);
    }
  for (size_t i = 0; i < 100000; i++) {
    struct pwi_writer *writer = &writers[i % 2];
    unsigned char *at = &writer->data[pwi_random_below(&random, writer->size)], before = *at;
    *at = (unsigned char)pwi_random_below(&random, 256);
    if (i % 2 && !pwi_save_report_decode(writer->data, writer->size, &read_report)) pwi_save_report_fini(&read_report);
    if (i % 2 == 0 && !pwi_save_decode(writer->data, writer->size, &read)) {
      assert_true(read.arc_count <= 2 && strlen(read.directory) <= PWI_SAVE_PATH_MAX);
      pwi_save_fini(&read);
    }
    *at = before;
  }
  pwi_writer_fini(&writers[0]);
  pwi_writer_fini(&writers[1]);
}

/* Nothing is written to the output, and no memory leaks. */
static void test_without_memory_nothing_is_read(void **state) {
  (void)state;
  struct pwi_save save = example(), read = {.order = 77};
  struct pwi_save_report report = example_report(), read_report = {.order = 78};
  struct pwi_writer writer = bytes_of(&save), report_writer = bytes_of_report(&report);
  pwi_memory_fail_after(0);
  assert_int_equal(pwi_save_decode(writer.data, writer.size, &read), PAWL_NO_MEMORY);
  assert_int_equal(pwi_memory_fail_cancel(), 1);
  pwi_memory_fail_after(0);
  assert_int_equal(pwi_save_report_decode(report_writer.data, report_writer.size, &read_report), PAWL_NO_MEMORY);
  assert_int_equal(pwi_memory_fail_cancel(), 1);
  assert_true(read.order == 77 && !read.arcs && read_report.order == 78 && !read_report.cuts);
  pwi_writer_fini(&writer);
  pwi_writer_fini(&report_writer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_order_is_read_as_it_was_written),
      cmocka_unit_test(test_a_report_is_read_as_it_was_written),
      cmocka_unit_test(test_names_that_could_lead_elsewhere_are_no_order),
      cmocka_unit_test(test_an_order_that_writes_nothing_needs_no_names),
      cmocka_unit_test(test_empty_ranges_and_unknown_flags_are_refused),
      cmocka_unit_test(test_any_bytes_are_read_safely),
      cmocka_unit_test(test_without_memory_nothing_is_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
