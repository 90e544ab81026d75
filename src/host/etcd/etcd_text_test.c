/* Requests to etcd, and parsing of valid and hostile answers. */
#include <jansson.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "host/etcd/etcd_text.h"

#define SECOND INT64_C(1000000000)

/* --- base64 --------------------------------------------------------------------------------------------- */

static void test_base64_is_that_of_the_book(void **state) {
  (void)state;
  static const char *const pairs[][2] = {{"", ""},
                                         {"f", "Zg=="},
                                         {"fo", "Zm8="},
                                         {"foo", "Zm9v"},
                                         {"foob", "Zm9vYg=="},
                                         {"fooba", "Zm9vYmE="},
                                         {"foobar", "Zm9vYmFy"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    struct pwi_text text = {0};
    char back[16];
    size_t size;
    pwi_base64_write(&text, pairs[i][0], strlen(pairs[i][0]));
    assert_string_equal(pwi_text_view(&text), pairs[i][1]);
    assert_int_equal(pwi_base64_read(pairs[i][1], strlen(pairs[i][1]), back, &size), PAWL_OK);
    assert_int_equal(size, strlen(pairs[i][0]));
    assert_memory_equal(back, pairs[i][0], size);
    pwi_text_fini(&text);
  }
}

static void test_any_bytes_come_back_from_base64(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, 1, 1);
  for (size_t size = 0; size < 3000; size = size * 5 / 4 + 1) {
    unsigned char bytes[3000], back[3000];
    struct pwi_text text = {0};
    size_t found;
    for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)pwi_random_u32(&random);
    pwi_base64_write(&text, bytes, size);
    assert_int_equal(text.length, (size + 2) / 3 * 4);
    assert_int_equal(pwi_base64_read(pwi_text_view(&text), text.length, back, &found), PAWL_OK);
    assert_int_equal(found, size);
    assert_memory_equal(back, bytes, size);
    pwi_text_fini(&text);
  }
}

static void test_text_that_is_not_base64_is_refused(void **state) {
  (void)state;
  static const char *const texts[] = {"Z",    "Zg",     "Zg=",  "Zg=a",     "Z===",     "====", "Zm9=",
                                      "Zh==", "Zm9v\n", "Zm 9", "Zg==Zg==", "Zm8=Zm9v", "Zm9_", "Zm9-"};
  char back[16];
  size_t size;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    assert_int_equal(pwi_base64_read(texts[i], strlen(texts[i]), back, &size), PAWL_CORRUPT);
}

/* --- addresses ------------------------------------------------------------------------------------------ */

static void test_places_are_read(void **state) {
  (void)state;
  struct pwi_etcd_place place;
  assert_int_equal(pwi_etcd_place_parse("etcd://a:1,b,[::1],[::2]:9/x/y/", &place), PAWL_OK);
  assert_int_equal(place.count, 4);
  assert_string_equal(place.endpoints[0], "http://a:1");
  assert_string_equal(place.endpoints[1], "http://b:2379");
  assert_string_equal(place.endpoints[2], "http://[::1]:2379");
  assert_string_equal(place.endpoints[3], "http://[::2]:9");
  assert_string_equal(place.prefix, "x/y");
  assert_false(place.is_secure);
  assert_int_equal(pwi_etcd_place_parse("etcds://a", &place), PAWL_OK);
  assert_true(place.is_secure);
  assert_string_equal(place.endpoints[0], "https://a:2379");
  assert_string_equal(place.prefix, "pawl");
}

static void test_places_that_make_no_sense_are_invalid(void **state) {
  (void)state;
  static const char *const texts[] = {
      "",           "etcd:",        "etcd://",      "etcd:///x",     "http://a:1",   "etcd://a,",      "etcd://,a",
      "etcd://a:0", "etcd://a:1-2", "etcd://a:x",   "etcd://a b",    "etcd://a@b:1", "etcd://tcp://a", "etcd://a:1/x y",
      "ETCD://a",   "etcd://a#b:1", "etcd://a?x:1", "etcd://unix:/x"};
  struct pwi_etcd_place place;
  char line[1024] = "etcd://a/";
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (pwi_etcd_place_parse(texts[i], &place) != PAWL_INVALID) fail_msg("'%s' is read", texts[i]);
  memset(line + 9, 'p', 500);
  assert_int_equal(pwi_etcd_place_parse(line, &place), PAWL_INVALID);
  memset(line + 7, 'h', 500);
  assert_int_equal(pwi_etcd_place_parse(line, &place), PAWL_INVALID);
  strcpy(line, "etcd://a");
  for (int i = 0; i < 16; i++) strcat(line, ",b");
  assert_int_equal(pwi_etcd_place_parse(line, &place), PAWL_INVALID);
}

/* --- requests ------------------------------------------------------------------------------------------- */

static void test_a_deal_is_written_as_etcd_wants_it(void **state) {
  (void)state;
  struct pwi_meta_transaction transaction = {
      .tests = {{PWI_META_CREATED, "foo", 7, NULL, 0}, {PWI_META_VALUE, "foo", 0, "bar", 3}},
      .test_count = 2,
      .steps = {{.act = PWI_META_PUT, .key = "foo", .value = "bar", .size = 3, .lease = 9},
                {.act = PWI_META_DELETE, .key = "a", .end = "b"}},
      .step_count = 2,
      .others = {{.act = PWI_META_GET, .key = "foo", .end = "fop", .limit = 5, .revision = 6}},
      .other_count = 1,
  };
  struct pwi_text text = {0};
  json_error_t error;
  pwi_etcd_write_txn(&text, &transaction);
  assert_string_equal(
      pwi_text_view(&text),
      "{\"compare\":[{\"result\":\"EQUAL\",\"target\":\"CREATE\",\"key\":\"Zm9v\",\"create_revision\":\"7\"},"
      "{\"result\":\"EQUAL\",\"target\":\"VALUE\",\"key\":\"Zm9v\",\"value\":\"YmFy\"}],"
      "\"success\":[{\"request_put\":{\"key\":\"Zm9v\",\"value\":\"YmFy\",\"lease\":\"9\"}},"
      "{\"request_delete_range\":{\"key\":\"YQ==\",\"range_end\":\"Yg==\"}}],"
      "\"failure\":[{\"request_range\":{\"key\":\"Zm9v\",\"range_end\":\"Zm9w\",\"limit\":\"5\",\"revision\":\"6\"}}]"
      "}");
  json_t *root = json_loads(pwi_text_view(&text), 0, &error);
  assert_non_null(root);
  json_decref(root);
  pwi_text_clear(&text);
  pwi_etcd_write_grant(&text, 2 * SECOND + 1);
  assert_string_equal(pwi_text_view(&text), "{\"TTL\":\"3\"}");
  pwi_text_clear(&text);
  pwi_etcd_write_lease(&text, UINT64_C(2324035383883379719));
  assert_string_equal(pwi_text_view(&text), "{\"ID\":\"2324035383883379719\"}");
  pwi_text_fini(&text);
}

/* --- answers -------------------------------------------------------------------------------------------- */

static struct pwi_etcd_reply read_text(enum pwi_etcd_ask ask, long code, const char *text) {
  struct pwi_etcd_reply reply;
  pwi_etcd_read(ask, code, text, strlen(text), &reply);
  return reply;
}

static const char good_txn[] =
    "{\"header\":{\"cluster_id\":\"1\",\"revision\":\"22\",\"raft_term\":\"2\"},\"succeeded\":true,\"responses\":["
    "{\"response_put\":{\"header\":{\"revision\":\"22\"}}},"
    "{\"response_range\":{\"header\":{\"revision\":\"22\"},\"kvs\":[{\"key\":\"Zm9v\",\"create_revision\":\"2\","
    "\"mod_revision\":\"2\",\"version\":\"1\",\"value\":\"YmFy\",\"lease\":\"2324035383883379719\"},"
    "{\"key\":\"Zm9w\",\"create_revision\":\"3\"}],\"more\":true,\"count\":\"7\"}},{\"response_range\":{}}]}";

static void test_an_answer_to_a_deal_is_read(void **state) {
  (void)state;
  struct pwi_etcd_reply reply = read_text(PWI_ETCD_TXN, 200, good_txn);
  assert_int_equal(reply.status, PAWL_OK);
  assert_true(reply.answer.held && reply.answer.more);
  assert_int_equal(reply.answer.revision, 22);
  assert_int_equal(reply.answer.pair_count, 2);
  assert_string_equal(reply.answer.pairs[0].key, "foo");
  assert_int_equal(reply.answer.pairs[0].size, 3);
  assert_memory_equal(reply.answer.pairs[0].value, "bar", 3);
  assert_int_equal(reply.answer.pairs[0].lease, UINT64_C(2324035383883379719));
  assert_int_equal(reply.answer.pairs[0].created, 2);
  assert_string_equal(reply.answer.pairs[1].key, "fop");
  assert_int_equal(reply.answer.pairs[1].size, 0);
  pwi_etcd_reply_fini(&reply);
  reply = read_text(PWI_ETCD_TXN, 200, "{\"header\":{\"revision\":\"5\"}}");
  assert_int_equal(reply.status, PAWL_OK);
  assert_false(reply.answer.held);
  assert_int_equal(reply.answer.pair_count, 0);
  pwi_etcd_reply_fini(&reply);
}

static void test_answers_about_leases_are_read(void **state) {
  (void)state;
  struct pwi_etcd_reply reply = read_text(PWI_ETCD_GRANT, 200, "{\"header\":{},\"ID\":\"77\",\"TTL\":\"2\"}");
  assert_int_equal(reply.status, PAWL_OK);
  assert_int_equal(reply.answer.lease, 77);
  assert_int_equal(reply.answer.ttl_ns, 2 * SECOND);
  reply = read_text(PWI_ETCD_RENEW, 200, "{\"result\":{\"ID\":\"77\",\"TTL\":\"2\"}}\n");
  assert_int_equal(reply.status, PAWL_OK);
  reply = read_text(PWI_ETCD_RENEW, 200, "{\"result\":{\"ID\":\"77\"}}");
  assert_int_equal(reply.status, PAWL_NOT_FOUND);
  assert_false(reply.is_passing);
  reply = read_text(PWI_ETCD_REVOKE, 200, "{\"header\":{}}");
  assert_int_equal(reply.status, PAWL_OK);
}

static void test_errors_say_whether_another_try_may_help(void **state) {
  (void)state;
  static const struct {
    long code;
    const char *text;
    pawl_status status;
    bool is_passing;
  } errors[] = {
      {404, "{\"error\":\"etcdserver: requested lease not found\",\"message\":\"…\",\"code\":5}", PAWL_NOT_FOUND,
       false},
      {400, "{\"error\":\"etcdserver: mvcc: required revision has been compacted\",\"code\":11}", PAWL_NOT_FOUND,
       false},
      {400, "{\"error\":\"etcdserver: request is too large\",\"code\":3}", PAWL_TOO_LARGE, false},
      {429, "{\"message\":\"grpc: received message larger than max\",\"code\":8}", PAWL_TOO_LARGE, false},
      {429, "{\"message\":\"etcdserver: mvcc: database space exceeded\",\"code\":8}", PAWL_NO_SPACE, true},
      {429, "{\"message\":\"etcdserver: too many requests\",\"code\":8}", PAWL_LINK_UNREACHABLE, true},
      {503, "{\"message\":\"etcdserver: no leader\",\"code\":14}", PAWL_LINK_UNREACHABLE, true},
      {503, "{\"message\":\"etcdserver: request timed out\",\"code\":14}", PAWL_LINK_UNREACHABLE, true},
      {403, "{\"message\":\"etcdserver: permission denied\",\"code\":7}", PAWL_FORBIDDEN, false},
      {400, "{\"message\":\"etcdserver: user name is empty\",\"code\":3}", PAWL_FORBIDDEN, false},
      {400, "{\"message\":\"etcdserver: duplicate key given in txn request\",\"code\":3}", PAWL_INVALID, false},
      {200, "{\"error\":{\"grpc_code\":14,\"http_code\":503,\"message\":\"no leader\"}}", PAWL_LINK_UNREACHABLE, true},
      {404, "404 page not found\n", PAWL_LINK_PROTOCOL, true},
      {200, "<html>hello</html>", PAWL_LINK_PROTOCOL, true},
      {500, "{}", PAWL_LINK_PROTOCOL, true},
      {200, "", PAWL_LINK_PROTOCOL, true},
  };
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    for (int ask = PWI_ETCD_TXN; ask <= PWI_ETCD_REVOKE; ask++) {
      struct pwi_etcd_reply reply = read_text((enum pwi_etcd_ask)ask, errors[i].code, errors[i].text);
      if (reply.status != errors[i].status || reply.is_passing != errors[i].is_passing)
        fail_msg("%s: %s", errors[i].text, pawl_status_name(reply.status));
      for (const char *at = reply.message; *at; at++) assert_true(*at >= ' ' && *at <= '~');
      pwi_etcd_reply_fini(&reply);
    }
}

static void test_answers_that_make_no_sense_are_refused(void **state) {
  (void)state;
  static const struct {
    enum pwi_etcd_ask ask;
    const char *text;
  } answers[] = {
      {PWI_ETCD_TXN, "{}"},
      {PWI_ETCD_TXN, "{\"header\":7}"},
      {PWI_ETCD_TXN, "{\"header\":{}}"},
      {PWI_ETCD_TXN, "{\"header\":{\"revision\":\"-1\"}}"},
      {PWI_ETCD_TXN, "{\"header\":{\"revision\":-1}}"},
      {PWI_ETCD_TXN, "{\"header\":{\"revision\":\"18446744073709551616\"}}"},
      {PWI_ETCD_TXN, "{\"header\":{\"revision\":\"\"}}"},
      {PWI_ETCD_TXN, "{\"header\":{\"revision\":[1]}}"},
      {PWI_ETCD_TXN, "{\"header\":{\"revision\":\"1\"},\"responses\":{}}"},
      {PWI_ETCD_TXN, "{\"header\":{\"revision\":\"1\"},\"responses\":[{\"response_range\":{\"kvs\":[7]}}]}"},
      {PWI_ETCD_TXN, "{\"header\":{\"revision\":\"1\"},\"responses\":[{\"response_range\":{\"kvs\":[{}]}}]}"},
      {PWI_ETCD_TXN,
       "{\"header\":{\"revision\":\"1\"},\"responses\":[{\"response_range\":{\"kvs\":[{\"key\":\"Zg==\"}]}}]}"},
      {PWI_ETCD_TXN, "{\"header\":{\"revision\":\"1\"},\"responses\":[{\"response_range\":{\"kvs\":[{\"key\":\"\","
                     "\"create_revision\":\"1\"}]}}]}"},
      {PWI_ETCD_TXN, "{\"header\":{\"revision\":\"1\"},\"responses\":[{\"response_range\":{\"kvs\":[{\"key\":\"AAAA\","
                     "\"create_revision\":\"1\"}]}}]}"},
      {PWI_ETCD_TXN, "{\"header\":{\"revision\":\"1\"},\"responses\":[{\"response_range\":{\"kvs\":[{\"key\":\"Zg==\","
                     "\"value\":\"!\",\"create_revision\":\"1\"}]}}]}"},
      {PWI_ETCD_TXN, "{\"header\":{\"revision\":\"1\"},\"responses\":[{\"response_range\":{\"kvs\":[{\"key\":\"Zg==\","
                     "\"value\":7,\"create_revision\":\"1\"}]}}]}"},
      {PWI_ETCD_GRANT, "{}"},
      {PWI_ETCD_GRANT, "{\"ID\":\"1\"}"},
      {PWI_ETCD_GRANT, "{\"ID\":\"0\",\"TTL\":\"2\"}"},
      {PWI_ETCD_GRANT, "{\"ID\":\"1\",\"TTL\":\"99999999999999\"}"},
      {PWI_ETCD_GRANT, "{\"ID\":\"x\",\"TTL\":\"2\"}"},
      {PWI_ETCD_RENEW, "{\"ID\":\"1\",\"TTL\":\"2\"}"},
      {PWI_ETCD_RENEW, "{\"result\":[]}"},
      {PWI_ETCD_REVOKE, "{}"},
  };
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    struct pwi_etcd_reply reply = read_text(answers[i].ask, 200, answers[i].text);
    if (reply.status != PAWL_CORRUPT) fail_msg("%s: %s", answers[i].text, pawl_status_name(reply.status));
    assert_null(reply.pairs);
    assert_int_equal(reply.answer.pair_count, 0);
  }
}

/* A truncated or changed answer is either parsed as something valid or refused. */
static void test_any_change_of_an_answer_does_no_harm(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, 2, 2);
  struct pwi_etcd_reply reply;
  char text[sizeof good_txn];
  for (size_t size = 0; size < sizeof good_txn - 1; size++) {
    pwi_etcd_read(PWI_ETCD_TXN, 200, good_txn, size, &reply);
    assert_int_equal(reply.status, PAWL_LINK_PROTOCOL);
    pwi_etcd_reply_fini(&reply);
  }
  for (int i = 0; i < 20000; i++) {
    memcpy(text, good_txn, sizeof text);
    size_t changes = 1 + pwi_random_below(&random, 4);
    for (size_t j = 0; j < changes; j++)
      text[pwi_random_below(&random, sizeof text - 1)] = (char)pwi_random_below(&random, 256);
    pwi_etcd_read(PWI_ETCD_TXN, 200, text, sizeof text - 1, &reply);
    for (size_t j = 0; j < reply.answer.pair_count; j++) {
      assert_true(strlen(reply.answer.pairs[j].key) > 0);
      assert_true(reply.answer.pairs[j].size < sizeof text);
    }
    pwi_etcd_reply_fini(&reply);
  }
}

static void test_an_answer_without_memory_is_told(void **state) {
  (void)state;
  for (uint64_t n = 0;; n++) {
    uint64_t before = pwi_memory_counts().live;
    pwi_memory_fail_after(n);
    struct pwi_etcd_reply reply = read_text(PWI_ETCD_TXN, 200, good_txn);
    bool has_failed = pwi_memory_fail_cancel();
    assert_int_equal(reply.status, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
    pwi_etcd_reply_fini(&reply);
    assert_int_equal(pwi_memory_counts().live, before);
    if (!has_failed) return;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_base64_is_that_of_the_book),
      cmocka_unit_test(test_any_bytes_come_back_from_base64),
      cmocka_unit_test(test_text_that_is_not_base64_is_refused),
      cmocka_unit_test(test_places_are_read),
      cmocka_unit_test(test_places_that_make_no_sense_are_invalid),
      cmocka_unit_test(test_a_deal_is_written_as_etcd_wants_it),
      cmocka_unit_test(test_an_answer_to_a_deal_is_read),
      cmocka_unit_test(test_answers_about_leases_are_read),
      cmocka_unit_test(test_errors_say_whether_another_try_may_help),
      cmocka_unit_test(test_answers_that_make_no_sense_are_refused),
      cmocka_unit_test(test_any_change_of_an_answer_does_no_harm),
      cmocka_unit_test(test_an_answer_without_memory_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
