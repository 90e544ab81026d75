
#include "base/testing.h"
#include "job/messages.h"
#include "base/memory.h"
#include "base/random.h"

static void test_names_follow_from_the_jobs(void **state) {
  (void)state;
  struct pwi_job_names names;
  char longest[PWI_JOB_NAME_MAX + 2];
  assert_int_equal(pwi_job_names("ads", &names), PAWL_OK);
  assert_string_equal(names.scheduler, "ads/job.scheduler");
  assert_string_equal(names.job, ".job/ads");
  assert_string_equal(names.worker, ".worker/ads");
  memset(longest, 'x', sizeof longest);
  longest[PWI_JOB_NAME_MAX + 1] = '\0';
  assert_int_equal(pwi_job_names(longest, &names), PAWL_INVALID);
  longest[PWI_JOB_NAME_MAX] = '\0';
  assert_int_equal(pwi_job_names(longest, &names), PAWL_OK);
  const char *wrong[] = {NULL, "", "a b", "a/b", "\xc3\xa9"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(pwi_job_names(wrong[i], &names), PAWL_INVALID);
}

/* Every kind of message, encoded and decoded. */
static void write_asking(struct pwi_writer *writer) {
  pwi_job_asking_write(writer, &(struct pwi_job_asking){PWI_JOB_ASK_JOIN, 7, 4711, "node17"});
}

static void write_welcome(struct pwi_writer *writer) {
  pwi_job_welcome_write(writer, &(struct pwi_job_welcome){3, 9, "ads/job.2.1"});
}

static void write_order(struct pwi_writer *writer) {
  struct pwi_job_order order = {.number = 3, .kind = PWI_JOB_ORDER_WORK, .rank = 1, .workers = 4, .tick = 12};
  order.bytes = "argument";
  order.size = 8;
  pwi_job_order_write(writer, &order);
}

static void write_answer(struct pwi_writer *writer) {
  pwi_write_bytes(writer, "report", 6);
  pwi_job_answer_write(writer, &(struct pwi_job_answer){PAWL_IO, 1234, 5, "no such file", 0});
}

static pawl_status read_asking(const void *bytes, size_t size) {
  struct pwi_job_asking asking;
  return pwi_job_asking_read(bytes, size, &asking);
}

static pawl_status read_welcome(const void *bytes, size_t size) {
  struct pwi_job_welcome welcome;
  return pwi_job_welcome_read(bytes, size, &welcome);
}

static pawl_status read_order(const void *bytes, size_t size) {
  struct pwi_job_order order;
  return pwi_job_order_read(bytes, size, &order);
}

static pawl_status read_answer(const void *bytes, size_t size) {
  struct pwi_job_answer answer;
  return pwi_job_answer_read(bytes, size, &answer);
}

static const struct {
  void (*write)(struct pwi_writer *writer);
  pawl_status (*read)(const void *bytes, size_t size);
} messages[] = {
    {write_asking, read_asking}, {write_welcome, read_welcome}, {write_order, read_order}, {write_answer, read_answer}};

static void test_encoded_messages_decode_to_the_same(void **state) {
  (void)state;
  struct pwi_writer writer = {0};
  struct pwi_job_asking asking;
  struct pwi_job_welcome welcome;
  struct pwi_job_order order;
  struct pwi_job_answer answer;
  write_asking(&writer);
  assert_int_equal(pwi_job_asking_read(writer.data, writer.size, &asking), PAWL_OK);
  assert_true(asking.what == PWI_JOB_ASK_JOIN && asking.task == 7 && asking.pid == 4711);
  assert_string_equal(asking.host, "node17");
  pwi_writer_reset(&writer);
  write_welcome(&writer);
  assert_int_equal(pwi_job_welcome_read(writer.data, writer.size, &welcome), PAWL_OK);
  assert_true(welcome.number == 3 && welcome.task == 9);
  assert_string_equal(welcome.group, "ads/job.2.1");
  pwi_writer_reset(&writer);
  write_order(&writer);
  assert_int_equal(pwi_job_order_read(writer.data, writer.size, &order), PAWL_OK);
  assert_true(order.number == 3 && order.rank == 1 && order.workers == 4 && order.tick == 12);
  assert_int_equal(order.size, 8);
  assert_memory_equal(order.bytes, "argument", 8);
  pwi_writer_reset(&writer);
  write_answer(&writer);
  assert_int_equal(pwi_job_answer_read(writer.data, writer.size, &answer), PAWL_OK);
  assert_true(answer.status == PAWL_IO && answer.took_ns == 1234 && answer.tick == 5 && answer.size == 6);
  assert_string_equal(answer.text, "no such file");
  pwi_writer_fini(&writer);
}

static void test_ranges_keep_their_ends(void **state) {
  (void)state;
  struct pawl_range ranges[] = {{0, 3}, {7, UINT64_MAX}}, read[2];
  struct pwi_writer writer = {0};
  pwi_job_ranges_write(&writer, ranges, 2);
  assert_int_equal(writer.size, 32);
  pwi_job_ranges_read(writer.data, 2, read);
  assert_memory_equal(read, ranges, sizeof ranges);
  /* An order to take cannot name half a range. */
  struct pwi_job_order order = {.number = 1, .kind = PWI_JOB_ORDER_TAKE, .bytes = "12345678", .size = 8};
  pwi_writer_reset(&writer);
  pwi_job_order_write(&writer, &order);
  assert_int_equal(read_order(writer.data, writer.size), PAWL_CORRUPT);
  pwi_writer_fini(&writer);
}

/* A worker divides by the number of workers, and keeps a part itself. */
static void test_an_order_to_yield_names_some_newcomers_and_others(void **state) {
  (void)state;
  static const struct {
    uint32_t newcomers, workers;
    pawl_status status;
  } cases[] = {{1, 2, PAWL_OK}, {3, 7, PAWL_OK}, {0, 2, PAWL_CORRUPT}, {2, 2, PAWL_CORRUPT}, {0, 0, PAWL_CORRUPT}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct pwi_writer writer = {0};
    struct pwi_job_order order = {
        .number = 1, .kind = PWI_JOB_ORDER_YIELD, .rank = cases[i].newcomers, .workers = cases[i].workers};
    pwi_job_order_write(&writer, &order);
    assert_int_equal(read_order(writer.data, writer.size), cases[i].status);
    pwi_writer_fini(&writer);
  }
}

/* Truncated and damaged messages neither crash the decoder nor make it read beyond the end. */
static void test_damaged_messages_are_refused_or_read(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, 5, 0);
  for (size_t kind = 0; kind < 4; kind++) {
    struct pwi_writer writer = {0};
    messages[kind].write(&writer);
    size_t size = writer.size;
    for (size_t cut = 0; cut < size; cut++) {
      unsigned char *exact = pwi_alloc(cut); /* an exact allocation, so that sanitizers see reads beyond it */
      memcpy(exact, writer.data, cut);
      pawl_status status = messages[kind].read(exact, cut);
      if (kind < 2) assert_true(status == PAWL_TRUNCATED);
      pwi_free(exact);
    }
    for (int i = 0; i < 2000; i++) {
      unsigned char *damaged = pwi_alloc(size);
      memcpy(damaged, writer.data, size);
      for (int k = 0; k < 3; k++) damaged[pwi_random_below(&random, size)] = (unsigned char)pwi_random_u32(&random);
      (void)messages[kind].read(damaged, size);
      pwi_free(damaged);
    }
    pwi_writer_fini(&writer);
  }
  assert_int_equal(read_asking("\x02\x01", 2), PAWL_UNSUPPORTED); /* a later version */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names_follow_from_the_jobs),
      cmocka_unit_test(test_encoded_messages_decode_to_the_same),
      cmocka_unit_test(test_ranges_keep_their_ends),
      cmocka_unit_test(test_an_order_to_yield_names_some_newcomers_and_others),
      cmocka_unit_test(test_damaged_messages_are_refused_or_read),
  };
  return cmocka_run_group_tests_name("job.messages", tests, NULL, NULL);
}
