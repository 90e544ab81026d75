/* Specs, orders and replies: they are read as they were written, and damaged ones are refused. */
#include <math.h>
#include <stdlib.h>

#include "apps/bpmf/share/inside.h"
#include "apps/common/json.h"
#include "base/testing.h"

static struct bpmf_share_spec some_spec(void) {
  static char one[] = "/data/one", two[] = "/data/two", test[] = "/data/test";
  static char *paths[] = {one, two}, *tests[] = {test};
  struct bpmf_share_spec spec = {.job = "films",
                                 .share = PAWL_BPMF_SERVERS,
                                 .paths = paths,
                                 .path_count = 2,
                                 .test_paths = tests,
                                 .test_path_count = 1,
                                 .test_share = 0.1,
                                 .seed = UINT64_MAX,
                                 .burn_in = 10,
                                 .rank = 16,
                                 .threads = 2,
                                 .alpha = 1.0 / 3,
                                 .digest = 0x123456789abcdef0,
                                 .slack = 4};
  pawl_ratings_options_init(&spec.reading);
  spec.reading.format = PAWL_RATINGS_CSV;
  spec.reading.skip_bad = 7;
  return spec;
}

/* Memory that ends where the message ends. */
static void *copy_of(const void *bytes, size_t size) {
  void *copy = malloc(size ? size : 1);
  assert_non_null(copy);
  if (size > 0) memcpy(copy, bytes, size);
  return copy;
}

static void test_a_spec_is_read_as_it_was_written(void **state) {
  (void)state;
  struct bpmf_share_spec spec = some_spec(), read;
  char *text = bpmf_share_spec_write(&spec);
  size_t size = strlen(text);
  assert_true(bpmf_share_spec_read(text, size, &read));
  assert_string_equal(read.job, "films");
  assert_int_equal(read.share, PAWL_BPMF_SERVERS);
  assert_int_equal(read.path_count, 2);
  assert_string_equal(read.paths[1], "/data/two");
  assert_string_equal(read.test_paths[0], "/data/test");
  assert_true(read.seed == UINT64_MAX && read.digest == spec.digest && read.alpha == spec.alpha);
  assert_true(read.reading.format == PAWL_RATINGS_CSV && read.reading.skip_bad == 7 && read.slack == 4);
  bpmf_share_spec_fini(&read);
  for (size_t cut = 0; cut < size; cut++) {
    void *copy = copy_of(text, cut);
    assert_false(bpmf_share_spec_read(copy, cut, &read));
    free(copy);
  }
  apps_json_free(text);
}

static void test_impossible_specs_are_refused(void **state) {
  (void)state;
  struct bpmf_share_spec read;
  for (int i = 0; i < 6; i++) {
    struct bpmf_share_spec spec = some_spec();
    if (i == 0) spec.rank = 0;
    if (i == 1) spec.threads = 0;
    if (i == 2) spec.alpha = 0;
    if (i == 3) spec.path_count = 0;
    if (i == 4) spec.share = (enum pawl_bpmf_share)3;
    if (i == 5) spec.reading.duplicates = PAWL_RATINGS_ALL;
    char *text = bpmf_share_spec_write(&spec);
    if (bpmf_share_spec_read(text, strlen(text), &read)) fail_msg("%s", text);
    apps_json_free(text);
  }
}

static void test_an_order_has_bytes_behind_it(void **state) {
  (void)state;
  struct bpmf_order order = {.what = BPMF_TAKE,
                             .era = 3,
                             .is_new = true,
                             .number = 9,
                             .iteration = 20,
                             .measured = 10,
                             .section = BPMF_SECTION_TRAINING,
                             .begin = 77,
                             .bytes = "\0{}x",
                             .size = 4},
                    read;
  size_t size;
  char *frame = bpmf_order_write(&order, &size);
  assert_true(bpmf_order_read(frame, size, &read));
  assert_true(read.what == BPMF_TAKE && read.era == 3 && read.is_new && read.number == 9 && read.iteration == 20);
  assert_true(read.measured == 10 && read.section == BPMF_SECTION_TRAINING && read.begin == 77);
  assert_int_equal(read.size, 4);
  assert_memory_equal(read.bytes, order.bytes, 4);
  for (size_t cut = 0; cut < size - 4; cut++) {
    void *copy = copy_of(frame, cut);
    assert_false(bpmf_order_read(copy, cut, &read));
    free(copy);
  }
  apps_free(frame);
}

static void test_a_reply_has_all_its_figures(void **state) {
  (void)state;
  double figures[2 * (1 + 2 * BPMF_ERRORS)];
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) figures[i] = 1 / (double)(i + 3);
  figures[5] = (double)NAN;
  struct bpmf_reply reply = {.done = 2, .diverged = 5, .first = 62, .end = 64, .bytes_sent = 11, .figures = figures},
                    read;
  size_t size;
  char *frame = bpmf_reply_write(&reply, &size);
  assert_true(bpmf_reply_read(frame, size, &read));
  assert_true(read.done == 2 && read.diverged == 5 && read.first == 62 && read.end == 64 && read.bytes_sent == 11);
  assert_memory_equal(read.figures, figures, sizeof figures);
  apps_free(read.figures);
  for (size_t cut = 0; cut < size; cut++) {
    void *copy = copy_of(frame, cut);
    assert_false(bpmf_reply_read(copy, cut, &read));
    free(copy);
  }
  apps_free(frame);
  reply.end = BPMF_BLOCKS + 1;
  reply.done = 0;
  frame = bpmf_reply_write(&reply, &size);
  assert_false(bpmf_reply_read(frame, size, &read));
  apps_free(frame);
}

static void test_other_texts_are_refused(void **state) {
  (void)state;
  static const char *const texts[] = {"", "{}", "[]", "null", "{\"do\":1}", "{\"", "\xff", "{\"app\":\"bpmf\"}"};
  struct bpmf_share_spec spec;
  struct bpmf_order order;
  struct bpmf_reply reply;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    size_t size = strlen(texts[i]);
    assert_false(bpmf_share_spec_read(texts[i], size, &spec));
    assert_false(bpmf_order_read(texts[i], size + 1, &order));
    assert_false(bpmf_reply_read(texts[i], size + 1, &reply));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_spec_is_read_as_it_was_written), cmocka_unit_test(test_impossible_specs_are_refused),
      cmocka_unit_test(test_an_order_has_bytes_behind_it),     cmocka_unit_test(test_a_reply_has_all_its_figures),
      cmocka_unit_test(test_other_texts_are_refused),
  };
  return cmocka_run_group_tests_name("apps.bpmf.share.wire", tests, NULL, NULL);
}
