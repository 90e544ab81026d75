/* Items between sessions, over each transport and in each variant: what a get returns, what open refuses,
 * many threads, views, ranges.
 *
 * cost: 20
 */
#include "peers_scene.h"

#include "landing.h"

#include <pthread.h>
#include <stdatomic.h>

#include <pawl/item.h>

#include "base/hash.h"
#include "base/memory.h"

#define MEMBERS_MAX 4
#define SHORT (INT64_C(50000000))

static int group_number;

struct kind {
  const char *name;
  enum pawl_items_variant variant;
  bool is_conservative;
  unsigned tcp; /* a bit for each member that shares no memory */
};

static const struct kind kinds[] = {
    {"push, shared memory", PAWL_ITEMS_PUSH, false, 0},   {"push, sockets", PAWL_ITEMS_PUSH, false, 15},
    {"push, mixed", PAWL_ITEMS_PUSH, false, 2},           {"pull, shared memory", PAWL_ITEMS_PULL, false, 0},
    {"pull, sockets", PAWL_ITEMS_PULL, false, 15},        {"pull, mixed", PAWL_ITEMS_PULL, false, 1},
    {"conservative, sockets", PAWL_ITEMS_PUSH, true, 15}, {"conservative, shared", PAWL_ITEMS_PUSH, true, 0},
};

#define KINDS (sizeof kinds / sizeof *kinds)

struct member {
  pthread_t thread;
  struct pawl_session *session;
  struct pawl_peers *peers;
  char group[32];
  uint32_t index, size;
  struct pawl_items_options options;
  size_t bytes;
  pawl_status status;
  char text[512];
  void *context;
};

/* --- members -------------------------------------------------------------------------------------------- */

static struct pawl_session *open_session(bool is_tcp_only) {
  struct pawl_session_options options = peer_options(pawl_session_address(cluster));
  struct pawl_session *session = NULL;
  options.tcp_only = is_tcp_only;
  must(pawl_session_open(&options, &session));
  return session;
}

static void open_all(struct member *members, uint32_t size, const struct kind *kind) {
  group_number++;
  memset(members, 0, size * sizeof *members);
  for (uint32_t i = 0; i < size; i++) {
    members[i].index = i;
    members[i].size = size;
    members[i].bytes = 64;
    members[i].session = open_session(kind->tcp >> i & 1);
    pawl_items_options_init(&members[i].options);
    members[i].options.variant = kind->variant;
    members[i].options.conservative = kind->is_conservative;
    snprintf(members[i].group, sizeof members[i].group, "i/group%d", group_number);
  }
}

static void run_all(struct member *members, uint32_t size, void *(*run)(void *)) {
  for (uint32_t i = 0; i < size; i++) assert_int_equal(pthread_create(&members[i].thread, NULL, run, &members[i]), 0);
  for (uint32_t i = 0; i < size; i++) {
    pthread_join(members[i].thread, NULL);
    must(pawl_session_close(members[i].session, PATIENCE));
  }
}

static void check_all(const struct member *members, uint32_t size, const struct kind *kind) {
  for (uint32_t i = 0; i < size; i++)
    if (members[i].status)
      fail_msg("%s: member %u: %s: %s", kind->name, i, pawl_status_name(members[i].status), members[i].text);
}

static pawl_status finish(struct member *member, pawl_status status) {
  member->status = status;
  snprintf(member->text, sizeof member->text, "%s", status ? pawl_error_text() : "");
  return status;
}

/* The value of a version: key and clock, and words that follow from them. */
static void fill(unsigned char *value, size_t size, uint64_t key, uint64_t clock) {
  uint64_t word = pwi_mix64(key * 1000003 + clock);
  for (size_t i = 0; i < size; i++) value[i] = (unsigned char)(word >> i % 8 * 8 ^ i / 8);
}

static bool is_version(const unsigned char *value, size_t size, uint64_t key, uint64_t clock) {
  uint64_t word = pwi_mix64(key * 1000003 + clock);
  for (size_t i = 0; i < size; i++)
    if (value[i] != (unsigned char)(word >> i % 8 * 8 ^ i / 8)) return false;
  return true;
}

/* --- iterations ----------------------------------------------------------------------------------------- */

#define ROWS 10 /* of each member */
#define CLOCKS 12

static pawl_status get_one(struct pawl_items *items, size_t bytes, uint64_t key, uint64_t clock, uint64_t slack,
                           unsigned char *value) {
  uint64_t found = PAWL_ITEMS_NEVER;
  pawl_status status = pawl_items_get(items, key, clock, slack, PATIENCE, value, &found);
  if (status) return status;
  if (found < (clock > slack ? clock - slack : 0)) return PAWL_CORRUPT;
  return is_version(value, bytes, key, found) ? PAWL_OK : PAWL_CORRUPT;
}

static pawl_status get_view(struct pawl_items *items, size_t bytes, uint64_t key, uint64_t clock, uint64_t slack) {
  for (;;) {
    struct pawl_items_view view;
    pawl_status status = pawl_items_view(items, key, clock, slack, PATIENCE, &view);
    if (status) return status;
    bool is_right = is_version(view.value, bytes, key, view.clock);
    uint64_t found = view.clock;
    status = pawl_items_release(items, &view);
    if (status == PAWL_CANCELLED) continue;
    return !status && is_right && found + slack >= clock ? PAWL_OK : PAWL_CORRUPT;
  }
}

/* Rows are dealt like cards, so that ranges of all strides meet. Every member reads all rows. */
static void *run_iterations(void *context) {
  struct member *member = context;
  uint64_t slack = member->options.slack, rows = ROWS * member->size;
  struct pawl_items_keys mine = {member->index, ROWS, member->size}, all = {0, rows, 1};
  struct pawl_items *items = NULL;
  unsigned char *value = pwi_alloc(member->bytes * rows);
  pawl_status status = pawl_peers_join(member->session, member->group, member->size, PATIENCE, &member->peers);
  if (!status)
    status = pawl_items_open(member->peers, "rows", member->bytes, rows, &mine, 1, &all, 1, &member->options, PATIENCE,
                             &items);
  for (uint64_t clock = 0; clock < CLOCKS && !status; clock++) {
    for (uint64_t i = 0; i < ROWS && !status; i++) {
      fill(value, member->bytes, member->index + i * member->size, clock);
      status = pawl_items_set(items, member->index + i * member->size, value, clock);
    }
    if (clock % 3 == 0 && !status) status = pawl_items_prefetch(items, &all, 1, clock, slack);
    if (clock % 3 == 1 && !status) {
      uint64_t clocks[ROWS * MEMBERS_MAX];
      status = pawl_items_get_range(items, 0, rows, clock, slack, PATIENCE, value, clocks);
      for (uint64_t key = 0; key < rows && !status; key++)
        if (clocks[key] + slack < clock || !is_version(value + key * member->bytes, member->bytes, key, clocks[key]))
          status = PAWL_CORRUPT;
      continue;
    }
    for (uint64_t key = 0; key < rows && !status; key++)
      status = clock % 3 == 2 ? get_view(items, member->bytes, key, clock, slack)
                              : get_one(items, member->bytes, key, clock, slack, value);
  }
  finish(member, status);
  pawl_items_close(items);
  pawl_peers_leave(member->peers);
  pwi_free(value);
  return NULL;
}

static void test_gets_return_versions_that_are_new_enough(void **state) {
  static const size_t sizes[] = {1, 64, 1000, 5000, 140000};
  struct member members[MEMBERS_MAX];
  (void)state;
  for (size_t k = 0; k < KINDS; k++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      uint32_t size = 2 + (uint32_t)((k + s) % 3);
      if (sizes[s] > 100000 && size > 2) size = 2;
      open_all(members, size, &kinds[k]);
      for (uint32_t i = 0; i < size; i++) {
        members[i].bytes = sizes[s];
        members[i].options.slack = (k + s) % 2 ? 0 : 3;
      }
      run_all(members, size, run_iterations);
      check_all(members, size, &kinds[k]);
    }
}

/* --- one producer, one consumer -------------------------------------------------------------------------- */

struct pair {
  struct member members[2];
  struct pawl_items *items[2];
};

struct opening {
  struct member *member;
  struct pawl_items **items;
  struct pawl_items_keys produces, consumes;
  uint64_t count;
  int64_t timeout;
};

static void *run_open(void *context) {
  struct opening *opening = ((struct member *)context)->context;
  struct member *member = opening->member;
  pawl_status status = PAWL_OK;
  if (!member->peers) status = pawl_peers_join(member->session, member->group, member->size, PATIENCE, &member->peers);
  if (!status)
    status = pawl_items_open(member->peers, "pair", member->bytes, opening->count, &opening->produces, 1,
                             &opening->consumes, 1, &member->options, opening->timeout, opening->items);
  finish(member, status);
  return NULL;
}

static void open_both(struct pair *pair, struct opening openings[2]) {
  for (uint32_t i = 0; i < 2; i++) {
    openings[i].member = &pair->members[i];
    openings[i].items = &pair->items[i];
    pair->items[i] = NULL;
    pair->members[i].context = &openings[i];
    if (openings[i].timeout == 0) openings[i].timeout = PATIENCE;
    if (openings[i].count == 0) openings[i].count = 10;
    assert_int_equal(pthread_create(&pair->members[i].thread, NULL, run_open, &pair->members[i]), 0);
  }
  for (uint32_t i = 0; i < 2; i++) pthread_join(pair->members[i].thread, NULL);
}

static void close_both(struct pair *pair) {
  for (uint32_t i = 0; i < 2; i++) {
    pawl_items_close(pair->items[i]);
    pawl_peers_leave(pair->members[i].peers);
    must(pawl_session_close(pair->members[i].session, PATIENCE));
  }
}

/* Member 0 produces keys 0 to 9, and member 1 consumes them. */
static void open_producer(struct pair *pair, const struct kind *kind) {
  struct opening openings[2] = {{.produces = {0, 10, 1}}, {.consumes = {0, 10, 1}}};
  open_all(pair->members, 2, kind);
  open_both(pair, openings);
  check_all(pair->members, 2, kind);
}

static void test_a_get_waits_until_its_deadline(void **state) {
  struct pair pair;
  unsigned char value[64], out[64];
  uint64_t clock;
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    open_producer(&pair, &kinds[k]);
    assert_int_equal(pawl_items_get(pair.items[1], 3, 0, 0, 0, out, NULL), PAWL_TIMED_OUT);
    assert_int_equal(pawl_items_get(pair.items[1], 3, 0, 0, SHORT, out, NULL), PAWL_TIMED_OUT);
    assert_non_null(strstr(pawl_error_text(), "key 3 has no version of clock 0 yet"));
    fill(value, 64, 3, 7);
    must(pawl_items_set(pair.items[0], 3, value, 7));
    must(pawl_items_get(pair.items[1], 3, 0, 0, PATIENCE, out, &clock)); /* a later one */
    assert_true(clock == 7 && is_version(out, 64, 3, 7));
    must(pawl_items_get(pair.items[1], 3, 9, 2, 0, out, NULL));
    must(pawl_items_get(pair.items[1], 3, 9, 100, 0, out, NULL)); /* slack beyond the clock */
    assert_int_equal(pawl_items_get(pair.items[1], 3, 9, 1, SHORT, out, NULL), PAWL_TIMED_OUT);
    must(pawl_items_get(pair.items[0], 3, 7, 0, 0, out, &clock)); /* the producer itself */
    assert_true(clock == 7 && is_version(out, 64, 3, 7));
    close_both(&pair);
  }
}

struct own_get {
  struct pawl_items *items;
  uint64_t clock;
  pawl_status status;
};

static void *run_own_get(void *context) {
  struct own_get *get = context;
  unsigned char value[64];
  get->status = pawl_items_get(get->items, 3, get->clock, 0, PATIENCE, value, NULL);
  return NULL;
}

/* Nobody else asks for the item, so only the waiting thread can have the setting one tell it. */
static void test_a_thread_waits_for_an_item_that_another_thread_sets(void **state) {
  struct pair pair;
  unsigned char value[64] = {0};
  struct pawl_items_state about;
  (void)state;
  for (size_t k = 0; k < KINDS; k += 3) {
    open_producer(&pair, &kinds[k]);
    for (uint64_t clock = 0; clock < 40; clock += 2) {
      struct own_get gets[2] = {{.items = pair.items[0], .clock = clock}, {.items = pair.items[0], .clock = clock + 1}};
      pthread_t threads[2];
      pawl_items_state(pair.items[0], &about);
      uint64_t waits = about.waits;
      for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_own_get, &gets[i]), 0);
      while (clock % 4 && about.waits < waits + 2) pawl_items_state(pair.items[0], &about);
      must(pawl_items_set(pair.items[0], 3, value, clock));
      pthread_join(threads[0], NULL);
      must(pawl_items_set(pair.items[0], 3, value, clock + 1));
      pthread_join(threads[1], NULL);
      for (int i = 0; i < 2; i++) must(gets[i].status);
    }
    close_both(&pair);
  }
}

/* No call waits, so the gets themselves must see to it that versions arrive. */
static void test_a_program_may_poll(void **state) {
  struct pair pair;
  unsigned char value[64];
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    int64_t end = pwi_host_after(PATIENCE);
    pawl_status status = PAWL_TIMED_OUT;
    open_producer(&pair, &kinds[k]);
    for (uint64_t clock = 0; clock < 30; clock++) {
      fill(value, 64, 3, clock);
      must(pawl_items_set(pair.items[0], 3, value, clock));
      do status = pawl_items_get(pair.items[1], 3, clock, 0, 0, value, NULL);
      while (status == PAWL_TIMED_OUT && pwi_host_now() < end);
      must(status);
      assert_true(is_version(value, 64, 3, clock));
    }
    close_both(&pair);
  }
}

/* Nobody else is there to hear from. */
static void test_a_member_that_is_alone_opens_a_context(void **state) {
  const struct pawl_items_keys some = {0, 4, 1}, all = {0, 5, 1};
  struct pawl_items *items = NULL;
  struct pawl_peers *peers = NULL;
  unsigned char value[64];
  uint64_t clock;
  (void)state;
  struct pawl_session *session = open_session(false);
  must(pawl_peers_join(session, "i/alone", 1, PATIENCE, &peers));
  assert_int_equal(pawl_items_open(peers, "lacks", 64, 5, &some, 1, &all, 1, NULL, PATIENCE, &items), PAWL_NOT_FOUND);
  must(pawl_items_open(peers, "has", 64, 5, &all, 1, &some, 1, NULL, PATIENCE, &items));
  fill(value, 64, 3, 7);
  must(pawl_items_set(items, 3, value, 7));
  memset(value, 0, sizeof value);
  must(pawl_items_get(items, 3, 7, 0, PATIENCE, value, &clock));
  assert_int_equal(clock, 7);
  assert_true(is_version(value, 64, 3, 7));
  pawl_items_close(items);
  pawl_peers_leave(peers);
  must(pawl_session_close(session, PATIENCE));
}

static void test_calls_that_are_wrong_say_so(void **state) {
  struct pair pair;
  unsigned char value[3 * 64] = {0};
  const struct pawl_items_keys unknown = {3, 8, 1}, far = {5, 10, UINT64_MAX / 2};
  const struct pawl_items_keys endless = {0, UINT32_MAX - 1, 1}; /* it would take minutes, inside the gate */
  (void)state;
  open_producer(&pair, &kinds[0]);
  must(pawl_items_set(pair.items[0], 1, value, 5));
  must(pawl_items_set(pair.items[0], 1, value, 5));
  assert_int_equal(pawl_items_set(pair.items[0], 1, value, 4), PAWL_INVALID);
  assert_non_null(strstr(pawl_error_text(), "key 1 was set at a later clock than 4"));
  assert_int_equal(pawl_items_set(pair.items[0], 10, value, 5), PAWL_NOT_FOUND);
  assert_int_equal(pawl_items_set(pair.items[1], 1, value, 5), PAWL_NOT_FOUND);
  assert_non_null(strstr(pawl_error_text(), "does not produce key 1"));
  assert_int_equal(pawl_items_set(pair.items[0], 1, value, UINT64_MAX), PAWL_INVALID);
  assert_int_equal(pawl_items_set(pair.items[0], 1, NULL, 6), PAWL_INVALID);
  assert_int_equal(pawl_items_get(pair.items[1], 10, 0, 0, 0, value, NULL), PAWL_NOT_FOUND);
  assert_int_equal(pawl_items_get(pair.items[1], UINT64_MAX, 0, 0, 0, value, NULL), PAWL_NOT_FOUND);
  assert_int_equal(pawl_items_set_slack(pair.items[1], &unknown, 1, 3), PAWL_NOT_FOUND);
  assert_int_equal(pawl_items_prefetch(pair.items[1], &far, 1, 0, 0), PAWL_NOT_FOUND);
  assert_int_equal(pawl_items_prefetch(pair.items[1], &endless, 1, 0, 0), PAWL_NOT_FOUND);
  assert_non_null(strstr(pawl_error_text(), "the range from key 0 reaches beyond the 10 items"));
  assert_int_equal(pawl_items_set_range(pair.items[0], 8, 3, value, 6), PAWL_NOT_FOUND);
  close_both(&pair);
}

static void test_slack_is_of_the_call_the_item_or_the_context(void **state) {
  struct pair pair;
  struct opening openings[2] = {{.produces = {0, 10, 1}}, {.consumes = {0, 10, 1}}};
  const struct pawl_items_keys some = {4, 2, 1};
  struct pawl_items_state about;
  unsigned char value[64] = {0};
  (void)state;
  open_all(pair.members, 2, &kinds[1]);
  pair.members[1].options.slack = 2;
  open_both(&pair, openings);
  check_all(pair.members, 2, &kinds[1]);
  for (uint64_t key = 0; key < 10; key++) must(pawl_items_set(pair.items[0], key, value, 10));
  for (uint64_t key = 0; key < 10; key++) must(pawl_items_get(pair.items[1], key, 10, 0, PATIENCE, value, NULL));
  must(pawl_items_set_slack(pair.items[1], &some, 1, 5));
  must(pawl_items_get(pair.items[1], 3, 12, PAWL_ITEMS_SLACK, 0, value, NULL));
  assert_int_equal(pawl_items_get(pair.items[1], 3, 13, PAWL_ITEMS_SLACK, 0, value, NULL), PAWL_TIMED_OUT);
  must(pawl_items_get(pair.items[1], 4, 15, PAWL_ITEMS_SLACK, 0, value, NULL));
  assert_int_equal(pawl_items_get(pair.items[1], 5, 16, PAWL_ITEMS_SLACK, 0, value, NULL), PAWL_TIMED_OUT);
  must(pawl_items_get(pair.items[1], 5, 16, 6, 0, value, NULL));
  must(pawl_items_set_slack(pair.items[1], &some, 1, PAWL_ITEMS_SLACK));
  assert_int_equal(pawl_items_get(pair.items[1], 4, 15, PAWL_ITEMS_SLACK, 0, value, NULL), PAWL_TIMED_OUT);
  pawl_items_state(pair.items[1], &about);
  assert_true(about.consumed == 10 && about.item_bytes == 80 && about.memory_bytes == 800 && about.members == 1);
  assert_true(about.near == 0 && about.orphans == 0 && about.gets >= 10);
  pawl_items_state(pair.items[0], &about);
  assert_true(about.produced == 10 && about.sets == 10 && about.puts >= 10);
  close_both(&pair);
}

static void test_work_per_clock(void **state) {
  struct pair pair;
  struct opening openings[2] = {{.produces = {0, 1, 1}}, {.consumes = {0, 1, 1}}};
  unsigned char value[64];
  uint64_t clock;
  (void)state;
  open_all(pair.members, 2, &kinds[0]);
  for (int i = 0; i < 2; i++) pair.members[i].options.work_per_clock = 4;
  open_both(&pair, openings);
  check_all(pair.members, 2, &kinds[0]);
  for (uint64_t iteration = 0; iteration < 8; iteration++) {
    fill(value, 64, 0, iteration);
    must(pawl_items_set(pair.items[0], 0, value, iteration));
    must(pawl_items_get(pair.items[1], 0, iteration, 0, PATIENCE, value, &clock));
    assert_true(clock == iteration / 4 && is_version(value, 64, 0, iteration / 4 * 4));
  }
  close_both(&pair);
}

/* --- opening -------------------------------------------------------------------------------------------- */

static void expect(struct opening openings[2], void (*change)(struct pair *), pawl_status first, pawl_status second,
                   const char *text) {
  struct pair pair;
  open_all(pair.members, 2, &kinds[group_number % 2]);
  if (change) change(&pair);
  open_both(&pair, openings);
  for (int i = 0; i < 2; i++) {
    pawl_status expected = i == 0 ? first : second;
    if (pair.members[i].status != expected)
      fail_msg("member %d: %s, not %s: %s", i, pawl_status_name(pair.members[i].status), pawl_status_name(expected),
               pair.members[i].text);
    if (expected && !strstr(pair.members[i].text, text)) fail_msg("'%s' has no '%s'", pair.members[i].text, text);
  }
  close_both(&pair);
}

static void change_size(struct pair *pair) { pair->members[1].bytes = 65; }
static void change_variant(struct pair *pair) { pair->members[1].options.variant = PAWL_ITEMS_PULL; }
static void allow_two(struct pair *pair) {
  pair->members[0].options.producers = pair->members[1].options.producers = 2;
}

static void test_open_checks_what_members_say(void **state) {
  struct opening twice[2] = {{.produces = {0, 6, 1}}, {.produces = {5, 5, 1}, .consumes = {0, 10, 1}}};
  struct opening nobody[2] = {{.produces = {0, 9, 1}}, {.consumes = {0, 10, 1}}};
  struct opening fits[2] = {{.produces = {0, 10, 1}}, {.consumes = {0, 10, 1}}};
  struct opening counts[2] = {{.produces = {0, 10, 1}}, {.consumes = {0, 10, 1}, .count = 11}};
  struct opening beyond[2] = {{.produces = {0, 11, 1}}, {.consumes = {0, 10, 1}, .timeout = SHORT}};
  (void)state;
  expect(twice, NULL, PAWL_EXISTS, PAWL_EXISTS, "key 5 is produced by");
  expect(nobody, NULL, PAWL_OK, PAWL_NOT_FOUND, "key 9 has no producer");
  expect(fits, change_size, PAWL_MISMATCH, PAWL_MISMATCH, "items have 6");
  expect(fits, change_variant, PAWL_MISMATCH, PAWL_MISMATCH, "the variant is pu");
  expect(counts, NULL, PAWL_MISMATCH, PAWL_MISMATCH, "items here and 1");
  expect(twice, allow_two, PAWL_OK, PAWL_OK, "");
  struct pair pair;
  open_all(pair.members, 2, &kinds[0]);
  open_both(&pair, beyond);
  assert_int_equal(pair.members[0].status, PAWL_OUT_OF_SPAN);
  assert_int_equal(pair.members[1].status, PAWL_TIMED_OUT);
  assert_non_null(strstr(pair.members[1].text, "has not opened it"));
  close_both(&pair);
}

/* One of the two members that the group began with has left: another one may come and produce its keys. */
static void test_open_waits_for_a_producer_while_the_group_is_not_complete(void **state) {
  struct pair pair;
  struct opening late = {.consumes = {0, 10, 1}, .count = 10, .timeout = SHORT};
  (void)state;
  open_producer(&pair, &kinds[1]);
  pawl_items_close(pair.items[1]);
  pawl_items_close(pair.items[0]);
  pair.items[0] = pair.items[1] = NULL;
  pawl_peers_leave(pair.members[0].peers);
  pair.members[0].peers = NULL;
  late.member = &pair.members[1];
  late.items = &pair.items[1];
  pair.members[1].context = &late;
  int64_t end = pwi_host_after(PATIENCE);
  struct pawl_peers_state about = {.size = 2};
  while (about.size == 2 && pwi_host_now() < end) pawl_peers_state(pair.members[1].peers, &about);
  run_open(&pair.members[1]);
  assert_int_equal(pair.members[1].status, PAWL_NOT_FOUND);
  assert_non_null(strstr(pair.members[1].text, "deadline passed; key 0 has no producer"));
  struct opening again[2] = {{.produces = {0, 10, 1}}, {.consumes = {0, 10, 1}}};
  open_both(&pair, again);
  check_all(pair.members, 2, &kinds[1]);
  close_both(&pair);
}

static void test_two_producers_of_one_item(void **state) {
  struct opening openings[2] = {{.produces = {0, 2, 1}, .consumes = {0, 2, 1}},
                                {.produces = {0, 2, 1}, .consumes = {0, 2, 1}}};
  struct pair pair;
  unsigned char value[64];
  uint64_t clock = 0;
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    open_all(pair.members, 2, &kinds[k]);
    allow_two(&pair);
    open_both(&pair, openings);
    check_all(pair.members, 2, &kinds[k]);
    fill(value, 64, 1, 5);
    must(pawl_items_set(pair.items[0], 1, value, 5));
    fill(value, 64, 1, 8);
    must(pawl_items_set(pair.items[1], 1, value, 8));
    for (int i = 0; i < 2; i++) {
      must(pawl_items_get(pair.items[i], 1, 6, 0, PATIENCE, value, &clock));
      assert_true(clock == 8 && is_version(value, 64, 1, 8));
    }
    close_both(&pair);
  }
}

/* --- losing producers ----------------------------------------------------------------------------------- */

static void test_a_producer_that_closes_is_replaced(void **state) {
  struct pair pair;
  unsigned char value[64];
  uint64_t clock;
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    struct opening again = {.produces = {0, 10, 1}, .count = 10, .timeout = PATIENCE};
    open_producer(&pair, &kinds[k]);
    fill(value, 64, 3, 4);
    must(pawl_items_set(pair.items[0], 3, value, 4));
    must(pawl_items_get(pair.items[1], 3, 4, 0, PATIENCE, value, NULL));
    pawl_items_close(pair.items[0]);
    struct pawl_items_state about = {0};
    for (int64_t end = pwi_host_after(PATIENCE); about.orphans == 0 && pwi_host_now() < end;)
      pawl_items_state(pair.items[1], &about);
    assert_int_equal(about.orphans, 10);
    must(pawl_items_get(pair.items[1], 3, 4, 0, 0, value, &clock)); /* what it had is still there */
    assert_true(clock == 4 && is_version(value, 64, 3, 4));
    assert_int_equal(pawl_items_get(pair.items[1], 3, 5, 0, SHORT, value, NULL), PAWL_NODE_GONE);
    assert_non_null(strstr(pawl_error_text(), "its producer is gone"));
    again.member = &pair.members[0];
    again.items = &pair.items[0];
    pair.members[0].context = &again;
    run_open(&pair.members[0]);
    check_all(pair.members, 2, &kinds[k]);
    fill(value, 64, 3, 2);
    must(pawl_items_set(pair.items[0], 3, value, 2)); /* it begins where it likes */
    must(pawl_items_get(pair.items[1], 3, 1, 0, PATIENCE, value, &clock));
    assert_true(clock == 2 && is_version(value, 64, 3, 2));
    close_both(&pair);
  }
}

/* --- many threads --------------------------------------------------------------------------------------- */

#define READERS 3
#define STORM_SETS 1000

struct storm {
  struct pair *pair;
  uint64_t first; /* key of a writer */
  _Atomic bool is_over;
  _Atomic uint64_t reads, wrong;
};

static void *run_reader(void *context) {
  struct storm *storm = context;
  unsigned char value[64];
  uint64_t last[4] = {0}, clock;
  while (!atomic_load(&storm->is_over))
    for (uint64_t key = 0; key < 4; key++) {
      if (pawl_items_get(storm->pair->items[1], key, 0, 0, 0, value, &clock)) continue;
      atomic_fetch_add(&storm->reads, 1);
      if (!is_version(value, 64, key, clock) || clock < last[key]) atomic_fetch_add(&storm->wrong, 1);
      last[key] = clock;
    }
  return NULL;
}

static void *run_writer(void *context) {
  const struct storm *storm = context;
  unsigned char value[64];
  for (uint64_t clock = 0; clock < STORM_SETS; clock++)
    for (uint64_t key = storm->first; key < storm->first + 2; key++) {
      fill(value, 64, key, clock);
      must(pawl_items_set(storm->pair->items[0], key, value, clock));
    }
  return NULL;
}

static void test_many_threads_see_whole_versions_that_rise(void **state) {
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    struct pair pair;
    struct storm storm = {.pair = &pair}, other = {.pair = &pair, .first = 2};
    pthread_t readers[READERS], writers[2];
    unsigned char value[64];
    open_producer(&pair, &kinds[k]);
    for (int i = 0; i < READERS; i++) assert_int_equal(pthread_create(&readers[i], NULL, run_reader, &storm), 0);
    assert_int_equal(pthread_create(&writers[0], NULL, run_writer, &storm), 0);
    assert_int_equal(pthread_create(&writers[1], NULL, run_writer, &other), 0);
    for (int i = 0; i < 2; i++) pthread_join(writers[i], NULL);
    for (uint64_t key = 0; key < 4; key++)
      must(pawl_items_get(pair.items[1], key, STORM_SETS - 1, 0, PATIENCE, value, NULL));
    while (atomic_load(&storm.reads) < 1000) usleep(100);
    atomic_store(&storm.is_over, true);
    for (int i = 0; i < READERS; i++) pthread_join(readers[i], NULL);
    assert_int_equal(storm.wrong, 0);
    close_both(&pair);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gets_return_versions_that_are_new_enough),
      cmocka_unit_test(test_a_get_waits_until_its_deadline),
      cmocka_unit_test(test_a_thread_waits_for_an_item_that_another_thread_sets),
      cmocka_unit_test(test_a_program_may_poll),
      cmocka_unit_test(test_a_member_that_is_alone_opens_a_context),
      cmocka_unit_test(test_calls_that_are_wrong_say_so),
      cmocka_unit_test(test_slack_is_of_the_call_the_item_or_the_context),
      cmocka_unit_test(test_work_per_clock),
      cmocka_unit_test(test_open_checks_what_members_say),
      cmocka_unit_test(test_open_waits_for_a_producer_while_the_group_is_not_complete),
      cmocka_unit_test(test_two_producers_of_one_item),
      cmocka_unit_test(test_a_producer_that_closes_is_replaced),
      cmocka_unit_test(test_many_threads_see_whole_versions_that_rise),
  };
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
