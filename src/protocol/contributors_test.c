/* The contributors of an aggregate: they come back, and other bytes are refused. */
#include "base/memory.h"
#include "base/testing.h"
#include "protocol/contributors.h"

static struct pwi_writer encoded(uint64_t second) {
  struct pwi_contributor two[2] = {{.sender = {3}, .task = 9, .prior = 7, .settled = 6, .relay = 1, .seal = {1, 2}},
                                   {.sender = {second}, .task = 2, .prior = 0, .settled = 1, .relay = 4, .seal = {3}}};
  struct pwi_writer writer = {0};
  pwi_contributors_encode(two, 2, 5, &writer);
  assert_int_equal(writer.status, PAWL_OK);
  return writer;
}

static void test_contributors_come_back(void **state) {
  (void)state;
  struct pwi_writer writer = encoded(8);
  struct pwi_contributor *back;
  size_t count;
  uint32_t hops;
  assert_int_equal(writer.size, 8 + 2 * PWI_CONTRIBUTOR_SIZE);
  assert_int_equal(pwi_contributors_decode(writer.data, writer.size, &back, &count, &hops), PAWL_OK);
  assert_true(count == 2 && hops == 5 && back[0].sender.id == 3 && back[0].task == 9 && back[0].prior == 7);
  assert_true(back[0].settled == 6 && back[0].seal[1] == 2 && back[1].sender.id == 8 && back[1].relay == 4);
  pwi_free(back);
  pwi_writer_fini(&writer);
}

static void assert_no_contributors(const void *bytes, size_t size) {
  struct pwi_contributor *back = NULL;
  size_t count;
  uint32_t hops;
  assert_int_equal(pwi_contributors_decode(bytes, size, &back, &count, &hops), PAWL_CORRUPT);
  assert_null(back);
}

static void test_senders_that_do_not_rise_and_cut_bytes_are_refused(void **state) {
  (void)state;
  struct pwi_writer twice = encoded(3), falling = encoded(2), right = encoded(8);
  assert_no_contributors(twice.data, twice.size);
  assert_no_contributors(falling.data, falling.size);
  for (size_t size = 0; size < right.size; size++) assert_no_contributors(right.data, size);
  right.data[8 + 8] = 7; /* the number of the first push is its predecessor's */
  assert_no_contributors(right.data, right.size);
  right.data[8 + 8] = 9;
  right.data[4] = 0; /* none */
  assert_no_contributors(right.data, right.size);
  right.data[7] = 0xff; /* more than there are bytes */
  assert_no_contributors(right.data, right.size);
  pwi_writer_fini(&twice);
  pwi_writer_fini(&falling);
  pwi_writer_fini(&right);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_contributors_come_back),
      cmocka_unit_test(test_senders_that_do_not_rise_and_cut_bytes_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
