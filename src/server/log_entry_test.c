/* Log entries: their pool, their users, and the messages sent from them. The net is a stub that records
 * calls. */
#include "base/bytes.h"
#include "base/memory.h"
#include "base/testing.h"
#include "net/net_ops.h"
#include "shard/testing.h"
#include "server/log_entry.h"

#define LARGE ((size_t)100000)
#define REGIONS 64

static struct stub {
  struct pwi_net net;
  pawl_status answer; /* result of the next send or region_open */
  size_t opened, closed, sends;
  struct pwi_region regions[REGIONS];

  /* The last message. */
  uint8_t head[PWI_NET_HEAD_SIZE];
  uint8_t body[2 * LARGE];
  size_t body_size;
  uint64_t cookie;
} stub;

static pawl_status paper_send(struct pwi_net *net, struct pwi_link link, const struct pwi_send *send,
                              size_t body_size) {
  (void)net, (void)link;
  if (stub.answer) return stub.answer;
  memcpy(stub.head, send->head, sizeof stub.head);
  size_t at = 0;
  for (size_t i = 0; i < send->body_count; i++) {
    assert_true(at + send->body[i].iov_len <= sizeof stub.body);
    memcpy(stub.body + at, send->body[i].iov_base, send->body[i].iov_len);
    at += send->body[i].iov_len;
  }
  stub.body_size = body_size;
  stub.cookie = send->cookie;
  stub.sends++;
  return PAWL_OK;
}

static pawl_status paper_open(struct pwi_net *net, size_t size, struct pwi_region **region_out) {
  (void)net;
  if (stub.answer) return stub.answer;
  assert_true(stub.opened < REGIONS);
  struct pwi_region *region = &stub.regions[stub.opened];
  region->memory = pwi_alloc(size);
  region->size = size;
  if (!region->memory) return PAWL_NO_MEMORY;
  stub.opened++;
  *region_out = region;
  return PAWL_OK;
}

static void paper_close(struct pwi_net *net, struct pwi_region *region) {
  (void)net;
  pwi_free(region->memory);
  region->memory = NULL;
  stub.closed++;
}

static const struct pwi_net_ops ops = {.send = paper_send, .region_open = paper_open, .region_close = paper_close};

static struct pwi_log_entries log_entries;
static const struct pwi_message_terms terms = {.body_max = 2 * LARGE, .unpacked_max = 2 * LARGE, .version = 1};
static const struct pwi_log_entry_address address = {
    .link = {5}, .terms = &terms, .view = 11, .membership = 12, .catalogue = 13};

static int start(void **state) {
  (void)state;
  memset(&stub, 0, sizeof stub);
  stub.net.ops = &ops;
  pwi_net_limits_init(&stub.net.limits);
  pwi_log_entries_init(&log_entries, &stub.net);
  return 0;
}

static int stop(void **state) {
  (void)state;
  pwi_log_entries_fini(&log_entries);
  for (size_t i = 0; i < stub.opened; i++) pwi_free(stub.regions[i].memory);
  return 0;
}

static struct pwi_log_entry *take(size_t bytes) {
  struct pwi_log_entry *log_entry;
  assert_int_equal(pwi_log_entry_take(&log_entries, bytes, &log_entry), PAWL_OK);
  assert_int_equal(log_entry->references, 1);
  memset(pwi_log_entry_memory(log_entry), 0x5a, bytes);
  return log_entry;
}

/* --- the pool ------------------------------------------------------------------------------------------- */

static void test_small_log_entries_need_no_region(void **state) {
  (void)state;
  struct pwi_log_entry *a = take(0), *b = take(PWI_LOG_ENTRY_INLINE);
  assert_int_equal(stub.opened, 0);
  assert_int_equal(log_entries.bytes, PWI_LOG_ENTRY_INLINE);
  struct pwi_log_entry *c = take(PWI_LOG_ENTRY_INLINE + 1);
  assert_int_equal(stub.opened, 1);
  assert_int_equal((uintptr_t)pwi_log_entry_memory(b) % 16, 0);
  pwi_log_entry_release(a);
  pwi_log_entry_release(b);
  pwi_log_entry_release(c);
  pwi_log_entry_release(NULL);
  assert_int_equal(log_entries.bytes, 0);
}

static void test_released_memory_is_reused(void **state) {
  (void)state;
  for (int round = 0; round < 3; round++) {
    struct pwi_log_entry *held[40];
    for (size_t i = 0; i < 40; i++) held[i] = take(i % 2 ? 10 : LARGE);
    for (size_t i = 0; i < 40; i++) pwi_log_entry_release(held[i]);
  }
  assert_int_equal(log_entries.count, 40);
  assert_int_equal(stub.opened, 20);
  assert_int_equal(stub.closed, 0);
  struct pwi_memory_counts before = pwi_memory_counts();
  pwi_log_entry_release(take(LARGE));
  pwi_log_entry_release(take(10));
  assert_int_equal(pwi_memory_counts().allocations, before.allocations);
}

static void test_the_smallest_region_that_does_is_taken(void **state) {
  (void)state;
  struct pwi_log_entry *huge = take((size_t)4 << 20), *large = take(LARGE), *medium = take(3000);
  pwi_log_entry_release(medium);
  pwi_log_entry_release(huge);
  pwi_log_entry_release(large);
  assert_ptr_equal(take(LARGE), large);
  assert_ptr_equal(take(5000), medium);
  assert_ptr_equal(take(5000), huge);
  assert_int_equal(stub.opened, 3);
  take(5000);
  assert_int_equal(stub.opened, 4);
}

static void test_idle_regions_are_kept_up_to_a_bound(void **state) {
  (void)state;
  struct pwi_log_entry *held[5];
  for (size_t i = 0; i < 5; i++)
    assert_int_equal(pwi_log_entry_take(&log_entries, (size_t)33 << 20, &held[i]), PAWL_OK);
  for (size_t i = 0; i < 5; i++) pwi_log_entry_release(held[i]); /* 64 MiB each, of 128 */
  assert_int_equal(stub.closed, 3);
}

static void test_a_log_entry_goes_back_with_its_last_user(void **state) {
  (void)state;
  struct pwi_log_entry *log_entry = take(LARGE);
  assert_ptr_equal(pwi_log_entry_retain(log_entry), log_entry);
  pwi_log_entry_release(log_entry);
  assert_int_equal(log_entries.bytes, LARGE);
  struct pwi_chain_message message = {.kind = PWI_CHAIN_CHUNK, .positions = {0, 5}, .since = 1};
  assert_int_equal(pwi_log_entry_send_bytes(log_entry, &address, &message, 3), PAWL_OK);
  assert_int_equal(log_entry->in_flight, 1);
  pwi_log_entry_release(log_entry); /* the net still reads it */
  assert_int_equal(log_entries.bytes, LARGE);
  assert_ptr_not_equal(take(LARGE), log_entry);
  pwi_log_entry_done(&log_entries, stub.cookie, PAWL_OK);
  assert_int_equal(log_entries.bytes, LARGE);
  assert_ptr_equal(take(LARGE), log_entry);
  assert_int_equal(stub.closed, 0);
}

static void test_a_region_with_a_failed_send_is_not_reused(void **state) {
  (void)state;
  struct pwi_chain_message message = {.kind = PWI_CHAIN_CHUNK, .positions = {0, 5}, .since = 1};
  struct pwi_log_entry *log_entry = take(LARGE);
  for (int i = 0; i < 2; i++) { /* it may be sent again over another link */
    assert_int_equal(pwi_log_entry_send_bytes(log_entry, &address, &message, 3), PAWL_OK);
    pwi_log_entry_done(&log_entries, stub.cookie, i == 0 ? PAWL_LINK_RESET : PAWL_OK);
    assert_int_equal(stub.closed, 0);
  }
  pwi_log_entry_release(log_entry);
  assert_int_equal(stub.closed, 1);
  assert_null(log_entry->region);
  take(LARGE);
  assert_int_equal(stub.opened, 2);
}

static void test_a_failed_allocation_leaves_the_pool_unchanged(void **state) {
  (void)state;
  struct pwi_log_entry *log_entry = NULL;
  stub.answer = PAWL_NODE_LIMIT;
  assert_int_equal(pwi_log_entry_take(&log_entries, LARGE, &log_entry), PAWL_NODE_LIMIT);
  stub.answer = PAWL_OK;
  assert_int_equal(pwi_log_entry_take(&log_entries, SIZE_MAX - 5, &log_entry), PAWL_NO_MEMORY);
  assert_null(log_entry);
  assert_int_equal(log_entries.bytes, 0);
  for (uint64_t n = 0;; n++) {
    struct pwi_log_entry *held[20];
    size_t count = 0;
    pwi_memory_fail_after(n);
    while (count < 20 && pwi_log_entry_take(&log_entries, count % 2 ? LARGE : 1, &held[count]) == PAWL_OK) count++;
    bool failed = pwi_memory_fail_cancel();
    for (size_t i = 0; i < count; i++) pwi_log_entry_release(held[i]);
    assert_int_equal(log_entries.bytes, 0);
    if (!failed) break;
  }
}

/* --- what is sent --------------------------------------------------------------------------------------- */

static void test_sizes_are_checked(void **state) {
  (void)state;
  size_t bytes;
  assert_int_equal(pwi_log_entry_measure(0, 0, 0, 0, &bytes), PAWL_OK);
  assert_int_equal(bytes, 0);
  assert_int_equal(pwi_log_entry_measure(1, 64, 65, 16, &bytes), PAWL_OK);
  assert_int_equal(bytes, 64 + 64 + 128 + 64);
  assert_int_equal(pwi_log_entry_measure(SIZE_MAX - 10, 0, 0, 0, &bytes), PAWL_TOO_LARGE);
  assert_int_equal(pwi_log_entry_measure(0, SIZE_MAX / 2, SIZE_MAX / 2, 0, &bytes), PAWL_TOO_LARGE);
  assert_int_equal(pwi_log_entry_measure(0, 0, SIZE_MAX / 2, SIZE_MAX / 2 + 1, &bytes), PAWL_TOO_LARGE);
}

/* Reads the last message. */
static struct pwi_sections read_message(struct pwi_message_head *head_out) {
  struct pwi_sections sections;
  assert_int_equal(pwi_message_parse_head(stub.head, stub.body_size, &terms, head_out), PAWL_OK);
  assert_int_equal(pwi_message_check_whole(stub.head, head_out, stub.body, stub.body_size, &terms, &sections), PAWL_OK);
  return sections;
}

static const void *section_of(const struct pwi_sections *sections, uint16_t type, size_t size) {
  const struct pwi_section *section = pwi_sections_find(sections, type);
  assert_non_null(section);
  assert_int_equal(section->length, size);
  return stub.body + section->offset;
}

/* An update of `rows` rows of two floats with their keys: an aggregate of two senders. */
static struct pwi_log_entry *update(size_t rows, enum pwi_request_keys how) {
  size_t bytes, keys = how == PWI_KEYS_LIST ? rows * 8 : 0;
  assert_int_equal(pwi_log_entry_measure(keys, rows * 8, 0, 2 * PWI_STAMP_SIZE, &bytes), PAWL_OK);
  struct pwi_log_entry *log_entry = take(bytes);
  log_entry->effect = PWI_EFFECT_ROWS;
  log_entry->version = 9;
  log_entry->sender = 21;
  log_entry->task = 22;
  log_entry->tick = 23;
  log_entry->signature = UINT64_C(0x1122334455667788);
  log_entry->terms = (struct pwi_terms){.kind = PWI_REQUEST_PUSH,
                                        .keys = how,
                                        .vector = {1},
                                        .number = 9,
                                        .rows = rows,
                                        .claim = {0, LARGE},
                                        .range = {0, LARGE}};
  log_entry->key_bytes = keys;
  log_entry->value_bytes = rows * 8;
  log_entry->stamp_bytes = 2 * PWI_STAMP_SIZE;
  log_entry->value_type = PAWL_F32;
  log_entry->value_size = 4;
  log_entry->keys =
      (struct pwi_section){.type = PWI_SECTION_KEYS, .value_type = PAWL_U64, .count = (uint32_t)rows, .length = keys};
  for (size_t i = 0; i < keys / 8; i++) pwi_put_u64(pwi_log_entry_keys(log_entry) + 8 * i, 3 * i);
  memset(pwi_log_entry_values(log_entry), 0x77, rows * 8);
  for (unsigned char i = 0; i < 2 * PWI_STAMP_SIZE; i++) pwi_log_entry_stamps(log_entry)[i] = i;
  return log_entry;
}

static const struct pwi_chain_message update_message = {
    .kind = PWI_CHAIN_UPDATE, .effect = PWI_EFFECT_ROWS, .positions = {0, 99}, .since = 4, .version = 9, .prior = 8};

static void test_an_update_carries_everything_that_a_member_needs(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 30, 5000};
  for (size_t i = 0; i < 4; i++) {
    size_t rows = sizes[i];
    struct pwi_message_head head;
    struct pwi_chain_message message;
    struct pwi_terms about;
    struct pwi_log_entry *log_entry = update(rows, PWI_KEYS_LIST);
    assert_int_equal(pwi_log_entry_send_update(log_entry, &address, &update_message, false), PAWL_OK);
    struct pwi_sections sections = read_message(&head);
    assert_int_equal(head.kind, PWI_SAY_CHAIN);
    assert_true(head.sender == 21 && head.task == 22 && head.tick == 23);
    assert_true(head.view == 11 && head.membership == 12 && head.catalogue == 13);
    assert_int_equal(pwi_chain_message_decode(section_of(&sections, PWI_SECTION_CHAIN, PWI_CHAIN_MESSAGE_SIZE),
                                              PWI_CHAIN_MESSAGE_SIZE, &message),
                     PAWL_OK);
    assert_true(message.version == 9 && message.prior == 8 && message.since == 4);
    assert_int_equal(pwi_terms_decode(section_of(&sections, PWI_SECTION_TERMS, PWI_TERMS_SIZE), PWI_TERMS_SIZE, &about),
                     PAWL_OK);
    assert_int_equal(about.rows, rows);
    assert_memory_equal(section_of(&sections, PWI_SECTION_KEYS, rows * 8), pwi_log_entry_keys(log_entry), rows * 8);
    if (rows > 0)
      assert_memory_equal(section_of(&sections, PWI_SECTION_VALUES, rows * 8), pwi_log_entry_values(log_entry),
                          rows * 8);
    assert_memory_equal(section_of(&sections, PWI_SECTION_STAMPS, 32), pwi_log_entry_stamps(log_entry), 32);
    bool is_kept = stub.body_size > PWI_NET_COPY_MAX;
    assert_int_equal(is_kept, stub.cookie != 0);
    assert_int_equal(log_entry->in_flight, is_kept);
    if (is_kept) { /* the builder is in use */
      assert_int_equal(pwi_log_entry_send_update(log_entry, &address, &update_message, false), PAWL_QUEUE_FULL);
      /* The refused send can be tried again. */
      assert_true(pwi_log_entry_done(&log_entries, stub.cookie, PAWL_OK));
      assert_int_equal(pwi_log_entry_send_update(log_entry, &address, &update_message, false), PAWL_OK);
      assert_false(pwi_log_entry_done(&log_entries, stub.cookie, PAWL_OK));
    }
    pwi_log_entry_release(log_entry);
  }
  assert_int_equal(log_entries.bytes, 0);
}

static void test_an_update_without_rows_is_sent_without_them(void **state) {
  (void)state;
  struct pwi_message_head head;
  struct pwi_log_entry *log_entry = update(4, PWI_KEYS_LIST);
  log_entry->effect = PWI_EFFECT_REFUSAL;
  assert_int_equal(pwi_log_entry_send_update(log_entry, &address, &update_message, false), PAWL_OK);
  struct pwi_sections sections = read_message(&head);
  assert_int_equal(sections.count, 2);
  pwi_log_entry_release(log_entry);
}

/* A key list that the follower knows is named by its signature. Otherwise its keys are sent from the kept
 * list of the shard. */
static void test_a_key_list_is_sent_whole_to_a_follower_that_does_not_know_it(void **state) {
  (void)state;
  const uint64_t keys[] = {2, 3, 5, 7};
  int64_t values[4] = {0};
  struct iovec part = {values, sizeof values};
  struct pwi_membership membership = membership_of(1);
  struct pwi_shard *shard = shard_of_all(&membership);
  open_vector(shard, entry_of(1, PAWL_I64, 1, 100, false));
  struct pwi_request push = request_of(PWI_REQUEST_PUSH, 1, 100);
  push.terms.keys = PWI_KEYS_LIST;
  push.terms.keep = true;
  push.terms.rows = 4;
  push.keys = keys;
  push.signature = pwi_keys_signature(keys, 4);
  push.task = 1;
  push.values = &part;
  push.value_parts = 1;
  push.value_type = PAWL_I64;
  assert_served(shard, &push, NULL, PWI_CODE_OK, PAWL_OK);

  struct pwi_message_head head;
  struct pwi_terms about;
  struct pwi_log_entry *log_entry = update(4, PWI_KEYS_SIGNED);
  log_entry->list = pwi_shard_pin_list(shard, push.terms.vector, push.signature);
  assert_non_null(log_entry->list);
  pwi_shard_destroy(shard); /* the list is still needed */
  pwi_membership_fini(&membership);
  assert_int_equal(pwi_log_entry_send_update(log_entry, &address, &update_message, false), PAWL_OK);
  struct pwi_sections sections = read_message(&head);
  assert_null(pwi_sections_find(&sections, PWI_SECTION_KEYS));
  assert_memory_equal(section_of(&sections, PWI_SECTION_SIGNATURE, 8), &log_entry->signature, 8);
  assert_int_equal(pwi_log_entry_send_update(log_entry, &address, &update_message, true), PAWL_OK);
  sections = read_message(&head);
  assert_null(pwi_sections_find(&sections, PWI_SECTION_SIGNATURE));
  assert_memory_equal(section_of(&sections, PWI_SECTION_KEYS, sizeof keys), keys, sizeof keys);
  assert_int_equal(pwi_terms_decode(section_of(&sections, PWI_SECTION_TERMS, PWI_TERMS_SIZE), PWI_TERMS_SIZE, &about),
                   PAWL_OK);
  assert_true(about.keys == PWI_KEYS_LIST && about.keep);
  assert_int_equal(log_entry->terms.keys, PWI_KEYS_SIGNED); /* the entry is unchanged for the next send */

  /* Over shared memory only the keys, which are in ordinary memory, make a checksum necessary. */
  struct pwi_message_terms shared = terms;
  struct pwi_log_entry_address in_place = address;
  shared.unchecked = true;
  in_place.terms = &shared;
  for (int full = 0; full < 2; full++) {
    assert_int_equal(pwi_log_entry_send_update(log_entry, &in_place, &update_message, full), PAWL_OK);
    assert_int_equal(pwi_message_parse_head(stub.head, stub.body_size, &shared, &head), PAWL_OK);
    assert_int_equal(head.flags, full ? 0 : PWI_MESSAGE_UNCHECKED);
  }
  pwi_log_entry_release(log_entry);
}

static void test_an_entry_that_the_net_refuses_is_not_under_way(void **state) {
  (void)state;
  struct pwi_log_entry *log_entry = update(5000, PWI_KEYS_LIST);
  stub.answer = PAWL_QUEUE_FULL;
  assert_int_equal(pwi_log_entry_send_update(log_entry, &address, &update_message, false), PAWL_QUEUE_FULL);
  stub.answer = PAWL_NOT_FOUND;
  assert_int_equal(pwi_log_entry_send_update(log_entry, &address, &update_message, false), PAWL_NOT_FOUND);
  assert_int_equal(log_entry->in_flight, 0);
  pwi_log_entry_release(log_entry);
  assert_int_equal(log_entries.bytes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_small_log_entries_need_no_region),
      TEST(test_released_memory_is_reused),
      TEST(test_the_smallest_region_that_does_is_taken),
      TEST(test_idle_regions_are_kept_up_to_a_bound),
      TEST(test_a_log_entry_goes_back_with_its_last_user),
      TEST(test_a_region_with_a_failed_send_is_not_reused),
      TEST(test_a_failed_allocation_leaves_the_pool_unchanged),
      TEST(test_sizes_are_checked),
      TEST(test_an_update_carries_everything_that_a_member_needs),
      TEST(test_an_update_without_rows_is_sent_without_them),
      TEST(test_a_key_list_is_sent_whole_to_a_follower_that_does_not_know_it),
      TEST(test_an_entry_that_the_net_refuses_is_not_under_way),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
