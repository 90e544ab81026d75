/* The checks that all worlds share, with a world that only records its calls. */
#include "base/testing.h"
#include "net/net_ops.h"

static struct {
  const char *call; /* the last call that reached the world; NULL: none */
  size_t size;
  unsigned calls;
} seen;

static void note(const char *call, size_t size) {
  seen.call = call;
  seen.size = size;
  seen.calls++;
}

static void stub_destroy(struct pwi_net *net) {
  (void)net;
  note("destroy", 0);
}

static pawl_status stub_hello_set(struct pwi_net *net, const void *hello, size_t size) {
  (void)net;
  (void)hello;
  note("hello_set", size);
  return PAWL_OK;
}

static pawl_status stub_send(struct pwi_net *net, struct pwi_link link, const struct pwi_send *send, size_t body_size) {
  (void)net;
  (void)link;
  (void)send;
  note("send", body_size);
  return PAWL_QUEUE_FULL;
}

static pawl_status stub_region_open(struct pwi_net *net, size_t size, struct pwi_region **region_out) {
  (void)net;
  static struct pwi_region region;
  region = (struct pwi_region){&region, size};
  note("region_open", size);
  *region_out = &region;
  return PAWL_OK;
}

static void stub_region_close(struct pwi_net *net, struct pwi_region *region) {
  (void)net;
  note("region_close", region->size);
}

static pawl_status stub_region_share(struct pwi_net *net, struct pwi_region *region, struct pwi_link link,
                                     unsigned access, void *token, size_t *token_size_out) {
  (void)net;
  (void)region;
  (void)link;
  (void)token;
  (void)token_size_out;
  note("region_share", access);
  return PAWL_OK;
}

static pawl_status stub_put(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote, uint64_t offset,
                            const void *from, size_t size, uint64_t notify, uint64_t cookie) {
  (void)net;
  (void)link;
  (void)remote;
  (void)offset;
  (void)from;
  (void)notify;
  (void)cookie;
  note("put", size);
  return PAWL_OK;
}

static pawl_status stub_get(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote, uint64_t offset,
                            void *into, size_t size, uint64_t cookie) {
  (void)net;
  (void)link;
  (void)remote;
  (void)offset;
  (void)into;
  (void)cookie;
  note("get", size);
  return PAWL_OK;
}

static const struct pwi_net_ops ops = {
    .destroy = stub_destroy,
    .hello_set = stub_hello_set,
    .send = stub_send,
    .region_open = stub_region_open,
    .region_close = stub_region_close,
    .region_share = stub_region_share,
    .put = stub_put,
    .get = stub_get,
};

static struct pwi_net net;
static const struct pwi_link a_link = {1};
static const struct pwi_remote a_remote = {1};

static int make_net(void **state) {
  (void)state;
  memset(&seen, 0, sizeof seen);
  net = (struct pwi_net){.ops = &ops};
  pwi_net_limits_init(&net.limits);
  return 0;
}

/* Whether the last call reached the world, with this size. */
static void assert_reached(const char *call, size_t size) {
  assert_non_null(seen.call);
  assert_string_equal(seen.call, call);
  assert_int_equal(seen.size, size);
  seen.call = NULL;
}

static void assert_stopped(void) { assert_null(seen.call); }

static void test_the_limits_are_those_of_the_header(void **state) {
  (void)state;
  const struct pwi_net_limits *limits = &net.limits;
  assert_int_equal(limits->message_max, 1 << 30);
  assert_int_equal(limits->queue_bytes, 64 << 20);
  assert_int_equal(limits->queue_count, 4096);
  assert_int_equal(limits->links, 16384);
  assert_int_equal(limits->strangers, 1024);
  assert_int_equal(limits->greet_ns, INT64_C(5000000000));
  assert_int_equal(limits->beat_ns, INT64_C(50000000));
  assert_int_equal(limits->silence_ns, INT64_C(250000000));
  assert_int_equal(limits->linger_ns, INT64_C(1000000000));
}

static void test_destroying_nothing_is_fine(void **state) {
  (void)state;
  pwi_net_destroy(NULL);
  assert_stopped();
  pwi_net_destroy(&net);
  assert_reached("destroy", 0);
}

static void test_a_greeting_has_a_greatest_size(void **state) {
  (void)state;
  static const char hello[PWI_NET_HELLO_MAX + 1];
  assert_int_equal(pwi_net_hello_set(&net, hello, sizeof hello), PAWL_TOO_LARGE);
  assert_stopped();
  assert_int_equal(pwi_net_hello_set(&net, hello, PWI_NET_HELLO_MAX), PAWL_OK);
  assert_reached("hello_set", PWI_NET_HELLO_MAX);
  assert_int_equal(pwi_net_hello_set(&net, NULL, 0), PAWL_OK);
  assert_reached("hello_set", 0);
}

static pawl_status send_parts(const size_t *sizes, size_t count) {
  struct iovec parts[PWI_NET_IOV_MAX + 1] = {0};
  for (size_t i = 0; i < count; i++) parts[i].iov_len = sizes[i];
  struct pwi_send send = {.head = parts, .body = parts, .body_count = count};
  return pwi_net_send(&net, a_link, &send);
}

static void test_a_body_is_the_sum_of_its_parts(void **state) {
  (void)state;
  size_t sizes[PWI_NET_IOV_MAX + 1] = {3, 0, 40, 500};
  assert_int_equal(send_parts(sizes, 4), PAWL_QUEUE_FULL); /* the world's answer is handed on */
  assert_reached("send", 543);
  assert_int_equal(send_parts(sizes, 0), PAWL_QUEUE_FULL);
  assert_reached("send", 0);
  assert_int_equal(send_parts(sizes, PWI_NET_IOV_MAX), PAWL_QUEUE_FULL);
  assert_reached("send", 543);
  assert_int_equal(send_parts(sizes, PWI_NET_IOV_MAX + 1), PAWL_INVALID);
  assert_stopped();
}

static void test_a_body_beyond_the_limit_is_stopped_here(void **state) {
  (void)state;
  const size_t max = net.limits.message_max;
  assert_int_equal(send_parts((size_t[]){max - 1, 1}, 2), PAWL_QUEUE_FULL);
  assert_reached("send", max);
  assert_int_equal(send_parts((size_t[]){max, 1}, 2), PAWL_TOO_LARGE);
  assert_int_equal(send_parts((size_t[]){SIZE_MAX, 1}, 2), PAWL_TOO_LARGE);
  assert_int_equal(send_parts((size_t[]){SIZE_MAX, SIZE_MAX, 2}, 3), PAWL_TOO_LARGE);
  assert_int_equal(send_parts((size_t[]){SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1}, 2), PAWL_TOO_LARGE);
  assert_stopped();
}

static void test_one_sided_data_has_the_same_limit(void **state) {
  (void)state;
  char byte = 0;
  const size_t max = net.limits.message_max;
  assert_int_equal(pwi_net_put(&net, a_link, a_remote, 0, &byte, max + 1, 0, 0), PAWL_TOO_LARGE);
  assert_int_equal(pwi_net_get(&net, a_link, a_remote, 0, &byte, max + 1, 0), PAWL_TOO_LARGE);
  assert_int_equal(pwi_net_put(&net, a_link, a_remote, 0, &byte, SIZE_MAX, 0, 0), PAWL_TOO_LARGE);
  assert_stopped();
  assert_int_equal(pwi_net_put(&net, a_link, a_remote, 0, &byte, max, 0, 0), PAWL_OK);
  assert_reached("put", max);
  assert_int_equal(pwi_net_get(&net, a_link, a_remote, 0, &byte, max, 0), PAWL_OK);
  assert_reached("get", max);
}

static void test_a_region_has_bytes(void **state) {
  (void)state;
  struct pwi_region *region = NULL;
  assert_int_equal(pwi_net_region_open(&net, 0, &region), PAWL_INVALID);
  assert_null(region);
  assert_stopped();
  assert_int_equal(pwi_net_region_open(&net, 100, &region), PAWL_OK);
  assert_reached("region_open", 100);
  assert_ptr_equal(pwi_net_region_memory(region), region);
  assert_int_equal(pwi_net_region_size(region), 100);
  pwi_net_region_close(&net, NULL);
  assert_stopped();
  pwi_net_region_close(&net, region);
  assert_reached("region_close", 100);
}

static void test_access_is_reading_or_writing_or_both(void **state) {
  (void)state;
  struct pwi_region region = {0};
  char token[PWI_NET_TOKEN_MAX];
  size_t size;
  for (unsigned access = 0; access < 16; access++) {
    bool good = access >= 1 && access <= 3;
    assert_int_equal(pwi_net_region_share(&net, &region, a_link, access, token, &size), good ? PAWL_OK : PAWL_INVALID);
    if (good)
      assert_reached("region_share", access);
    else
      assert_stopped();
  }
  assert_int_equal(pwi_net_region_share(&net, &region, a_link, 0x80000001u, token, &size), PAWL_INVALID);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_the_limits_are_those_of_the_header, make_net),
      cmocka_unit_test_setup(test_destroying_nothing_is_fine, make_net),
      cmocka_unit_test_setup(test_a_greeting_has_a_greatest_size, make_net),
      cmocka_unit_test_setup(test_a_body_is_the_sum_of_its_parts, make_net),
      cmocka_unit_test_setup(test_a_body_beyond_the_limit_is_stopped_here, make_net),
      cmocka_unit_test_setup(test_one_sided_data_has_the_same_limit, make_net),
      cmocka_unit_test_setup(test_a_region_has_bytes, make_net),
      cmocka_unit_test_setup(test_access_is_reading_or_writing_or_both, make_net),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
