/* Contexts of <pawl/lapser.h> between sessions: lists of keys, zeros at clock 0, short values, slack, what is
 * refused, many contexts at once, closing together. */
#include "peers_scene.h"

#include "landing.h"

#include <pthread.h>
#include <stdatomic.h>

#include <pawl/lapser.h>

#include "base/memory.h"

#define MEMBERS_MAX 3
#define BRIEF (INT64_C(50000000))

struct kind {
  enum pawl_items_variant variant;
  bool is_conservative, is_tcp;
};

static const struct kind kinds[] = {
    {PAWL_ITEMS_PUSH, false, false}, {PAWL_ITEMS_PUSH, false, true}, {PAWL_ITEMS_PULL, false, false},
    {PAWL_ITEMS_PULL, false, true},  {PAWL_ITEMS_PUSH, true, true},
};

#define KINDS (sizeof kinds / sizeof *kinds)

struct member {
  pthread_t thread;
  struct pawl_session *session;
  struct pawl_peers *peers;
  struct pawl_lapser *lapser;
  struct pawl_lapser_options options;
  uint64_t items;
  size_t size;
  uint64_t produces[8], consumes[8];
  size_t produces_count, consumes_count;
  int64_t slack;
  pawl_status status;
  char text[512];
  _Atomic bool *has_read;
};

static struct member members[MEMBERS_MAX];
static uint32_t member_count;

/* --- members --------------------------------------------------------------------------------------------- */

static void finish(struct member *member, pawl_status status) {
  member->status = status;
  snprintf(member->text, sizeof member->text, "%s", status ? pawl_error_text() : "");
}

/* Members 0 to count-1 in a group of their own, with contexts of 8 items of 16 bytes. */
static void join_all(uint32_t count, const struct kind *kind) {
  static int group_number;
  char group[32];
  snprintf(group, sizeof group, "l/group%d", ++group_number);
  memset(members, 0, sizeof members);
  member_count = count;
  for (uint32_t i = 0; i < count; i++) {
    struct pawl_session_options options = peer_options(pawl_session_address(cluster));
    options.tcp_only = kind->is_tcp;
    must(pawl_session_open(&options, &members[i].session));
    must(pawl_peers_join(members[i].session, group, count, PATIENCE, &members[i].peers));
    pawl_lapser_options_init(&members[i].options);
    members[i].options.peers = members[i].peers;
    members[i].options.variant = kind->variant;
    members[i].options.conservative = kind->is_conservative;
    members[i].options.open_ns = PATIENCE;
    members[i].items = 8;
    members[i].size = 16;
  }
}

static void *run_open(void *context) {
  struct member *member = context;
  finish(member,
         pawl_lapser_open(&member->options, member->items, member->size, member->produces, member->produces_count,
                          member->consumes, member->consumes_count, member->slack, &member->lapser));
  return NULL;
}

static void *run_close(void *context) {
  struct member *member = context;
  finish(member, pawl_lapser_close(member->lapser));
  member->lapser = NULL;
  return NULL;
}

static void run_all(void *(*run)(void *)) {
  for (uint32_t i = 0; i < member_count; i++)
    assert_int_equal(pthread_create(&members[i].thread, NULL, run, &members[i]), 0);
  for (uint32_t i = 0; i < member_count; i++) pthread_join(members[i].thread, NULL);
}

static void check_all(void) {
  for (uint32_t i = 0; i < member_count; i++)
    if (members[i].status) fail_msg("member %u: %s: %s", i, pawl_status_name(members[i].status), members[i].text);
}

static void leave_all(void) {
  for (uint32_t i = 0; i < member_count; i++) must(pawl_session_close(members[i].session, PATIENCE));
}

static void open_all(void) {
  run_all(run_open);
  check_all();
}

static void close_all(void) {
  run_all(run_close);
  check_all();
  leave_all();
}

static void produce(struct member *member, size_t count, const uint64_t *keys) {
  memcpy(member->produces, keys, count * sizeof *keys);
  member->produces_count = count;
}

static void consume(struct member *member, size_t count, const uint64_t *keys) {
  memcpy(member->consumes, keys, count * sizeof *keys);
  member->consumes_count = count;
}

/* Member 0 produces the keys 0 to 3, and member 1 consumes them. */
static void plan_pair(void) {
  static const uint64_t keys[] = {0, 1, 2, 3};
  produce(&members[0], 4, keys);
  consume(&members[1], 4, keys);
}

static void open_pair_of(const struct kind *kind) {
  join_all(2, kind);
  plan_pair();
  open_all();
}

static void must_have_failed(const struct member *member, pawl_status wanted, const char *text) {
  if (member->status != wanted)
    fail_msg("%s instead of %s: %s", pawl_status_name(member->status), pawl_status_name(wanted), member->text);
  if (!strstr(member->text, text)) fail_msg("'%s' is not in '%s'", text, member->text);
}

/* --- keys, values, clocks -------------------------------------------------------------------------------- */

/* Values are the key, twice. */
static void test_lists_have_any_order_and_keys_twice(void **state) {
  static const uint64_t first[] = {9, 3, 3, 100000, 7, 5, 4294967294, 11}, second[] = {4, 2, 4};
  static const uint64_t wanted[] = {100000, 4, 4294967294, 9, 9, 5, 11};
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    join_all(2, &kinds[k]);
    produce(&members[0], 8, first);
    produce(&members[1], 3, second);
    consume(&members[1], 7, wanted);
    open_all();
    for (int64_t clock = 1; clock < 4; clock++) {
      for (size_t i = 0; i < 8; i++) {
        uint64_t value[2] = {first[i], (uint64_t)clock};
        must(pawl_lapser_set(members[0].lapser, first[i], value, sizeof value, clock));
      }
      must(pawl_lapser_set(members[1].lapser, 4, (uint64_t[2]){4, (uint64_t)clock}, 16, clock));
      for (size_t i = 0; i < 7; i++) {
        uint64_t value[2];
        must(pawl_lapser_get(members[1].lapser, wanted[i], value, sizeof value, clock, 0));
        assert_true(value[0] == wanted[i] && value[1] == (uint64_t)clock);
      }
    }
    close_all();
  }
}

static bool is_zero(const unsigned char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (bytes[i]) return false;
  return true;
}

static void test_an_item_begins_as_zeros_of_clock_0(void **state) {
  static const int64_t clocks[] = {0, 0, 3, 3, 1}, slacks[] = {0, 2, 3, INT64_MAX, 1000};
  unsigned char value[16];
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    open_pair_of(&kinds[k]);
    for (int member = 0; member < 2; member++)
      for (int i = 0; i < 5; i++) {
        memset(value, 0xff, sizeof value);
        must(pawl_lapser_get(members[member].lapser, 2, value, sizeof value, clocks[i], slacks[i]));
        assert_true(is_zero(value, sizeof value));
      }
    must(pawl_lapser_set(members[0].lapser, 2, "fifteen letters", 16, 2));
    must(pawl_lapser_get(members[1].lapser, 2, value, sizeof value, 3, 1));
    assert_string_equal(value, "fifteen letters");
    memset(value, 0, sizeof value); /* a member that has a version uses it, whatever the slack */
    must(pawl_lapser_get(members[1].lapser, 2, value, sizeof value, 1, 1000));
    assert_string_equal(value, "fifteen letters");
    close_all();
  }
}

static void test_values_may_be_shorter_than_items(void **state) {
  static const size_t sizes[] = {16, 1024, 1025, 70000};
  static unsigned char value[70000];
  (void)state;
  for (size_t s = 0; s < 4; s++) {
    join_all(2, &kinds[s % KINDS]);
    plan_pair();
    for (int i = 0; i < 2; i++) members[i].size = sizes[s];
    open_all();
    memset(value, 7, sizeof value);
    must(pawl_lapser_set(members[0].lapser, 1, value, sizes[s], 1));
    must(pawl_lapser_get(members[1].lapser, 1, value, sizes[s], 1, 0));
    must(pawl_lapser_set(members[0].lapser, 1, "short", 6, 2));
    memset(value, 9, sizeof value);
    must(pawl_lapser_get(members[1].lapser, 1, value, 3, 2, 0));
    assert_true(memcmp(value, "sho", 3) == 0 && value[3] == 9);
    must(pawl_lapser_get(members[1].lapser, 1, value, sizes[s], 2, 0));
    assert_string_equal(value, "short");
    assert_true(is_zero(value + 6, sizes[s] - 6));
    close_all();
  }
}

static void test_a_get_may_use_the_slack_of_the_context(void **state) {
  unsigned char value[16];
  (void)state;
  join_all(2, &kinds[0]);
  plan_pair();
  members[1].slack = 3;
  members[1].options.get_ns = BRIEF;
  open_all();
  must(pawl_lapser_set(members[0].lapser, 0, "value", 6, 5));
  must(pawl_lapser_get(members[1].lapser, 0, value, 6, 8, PAWL_LAPSER_SLACK));
  must_fail(pawl_lapser_get(members[1].lapser, 0, value, 6, 9, PAWL_LAPSER_SLACK), PAWL_TIMED_OUT,
            "key 0 has no version of clock 6 yet");
  must(pawl_lapser_get(members[1].lapser, 0, value, 6, 9, 4));
  must_fail(pawl_lapser_get(members[1].lapser, 0, value, 6, 8, 2), PAWL_TIMED_OUT, "no version of clock 6 yet");
  must(pawl_lapser_set(members[0].lapser, 0, "later", 6, 9)); /* a get may return a later version */
  must(pawl_lapser_get(members[1].lapser, 0, value, 6, 6, 0));
  assert_string_equal(value, "later");
  close_all();
}

/* --- what is refused ------------------------------------------------------------------------------------- */

static void test_calls_that_are_wrong_say_so(void **state) {
  unsigned char value[17] = {0};
  (void)state;
  open_pair_of(&kinds[0]);
  struct pawl_lapser *producer = members[0].lapser, *consumer = members[1].lapser;
  must(pawl_lapser_set(producer, 1, value, 16, 5));
  must(pawl_lapser_set(producer, 1, value, 16, 5)); /* the same clock again */
  must_fail(pawl_lapser_set(producer, 1, value, 16, 4), PAWL_INVALID, "key 1 was set at a later clock than 4 before");
  must_fail(pawl_lapser_set(producer, 1, value, 16, -1), PAWL_INVALID, "key 1: the clock is -1");
  must_fail(pawl_lapser_set(producer, 1, value, 17, 6), PAWL_TOO_LARGE, "the size is 17, but items have 16 bytes");
  must_fail(pawl_lapser_set(producer, 1, value, 0, 6), PAWL_INVALID, "the size is 0");
  must_fail(pawl_lapser_set(producer, 1, NULL, 16, 6), PAWL_INVALID, "the value is NULL");
  must_fail(pawl_lapser_set(producer, 7, value, 16, 6), PAWL_NOT_FOUND, "does not produce key 7");
  must_fail(pawl_lapser_set(consumer, 1, value, 16, 6), PAWL_NOT_FOUND, "does not produce key 1");
  must_fail(pawl_lapser_set(consumer, 1, value, 3, 6), PAWL_NOT_FOUND, "does not produce key 1");
  must_fail(pawl_lapser_get(consumer, 7, value, 16, 5, 0), PAWL_NOT_FOUND, "neither consumes nor produces key 7");
  must_fail(pawl_lapser_get(consumer, 7, value, 16, 5, 9), PAWL_NOT_FOUND, "neither consumes nor produces key 7");
  must_fail(pawl_lapser_get(consumer, UINT64_MAX, value, 3, 5, 0), PAWL_NOT_FOUND, "neither consumes nor produces");
  must_fail(pawl_lapser_get(consumer, 1, value, 17, 5, 0), PAWL_TOO_LARGE, "the size is 17, but items have 16 bytes");
  must_fail(pawl_lapser_get(consumer, 1, value, 16, -2, 0), PAWL_INVALID, "the clock is -2");
  must_fail(pawl_lapser_get(consumer, 1, value, 16, 5, -2), PAWL_INVALID, "the slack is -2");
  must_fail(pawl_lapser_get(consumer, 1, NULL, 16, 5, 0), PAWL_INVALID, "the value is NULL");
  must_fail(pawl_lapser_set(NULL, 1, value, 16, 6), PAWL_INVALID, "lapser_init was not called, or has failed");
  must_fail(pawl_lapser_get(NULL, 1, value, 16, 6, 0), PAWL_INVALID, "lapser_init was not called, or has failed");
  must(pawl_lapser_close(NULL));
  close_all();
}

static void test_arguments_of_open_are_checked(void **state) {
  static const uint64_t keys[] = {1, 2, 2, 3}, high[] = {1, 4294967295}, negative[] = {(uint64_t)-1};
  struct pawl_lapser_options options;
  struct pawl_lapser *lapser;
  char name[PAWL_LAPSER_NAME_MAX + 2];
  (void)state;
  memset(name, 'n', sizeof name);
  name[sizeof name - 1] = '\0';
  pawl_lapser_options_init(&options);
  must_fail(pawl_lapser_open(&options, 8, 0, keys, 4, NULL, 0, 0, &lapser), PAWL_INVALID, "size of an item is 0");
  must_fail(pawl_lapser_open(&options, 8, 8, keys, 4, NULL, 0, -1, &lapser), PAWL_INVALID, "the slack is -1");
  must_fail(pawl_lapser_open(&options, 8, 8, keys, 4, NULL, 0, INT64_MAX, &lapser), PAWL_INVALID, "the slack is ");
  must_fail(pawl_lapser_open(&options, 8, 8, NULL, 4, NULL, 0, 0, &lapser), PAWL_INVALID,
            "the list of keys to produce is NULL but its count is 4");
  must_fail(pawl_lapser_open(&options, 2, 8, NULL, 0, keys, 4, 0, &lapser), PAWL_TOO_LARGE,
            "there are 3 keys to consume, but the number of items is 2");
  must_fail(pawl_lapser_open(&options, 8, 8, NULL, 0, high, 2, 0, &lapser), PAWL_OUT_OF_SPAN,
            "key 4294967295 in the list of keys to consume");
  must_fail(pawl_lapser_open(&options, 8, 8, negative, 1, NULL, 0, 0, &lapser), PAWL_OUT_OF_SPAN, "keys to produce");
  must_fail(pawl_lapser_open(&options, 8, 8, keys, SIZE_MAX, NULL, 0, 0, &lapser), PAWL_NO_MEMORY, "keys to produce");
  must_fail(pawl_lapser_open(&options, 8, 8, keys, 4, NULL, 0, 0, NULL), PAWL_INVALID, "lapser_out is NULL");
  options.name = name;
  must_fail(pawl_lapser_open(&options, 8, 8, keys, 4, NULL, 0, 0, &lapser), PAWL_INVALID, "has 1 to 30 characters");
  options.name = "";
  must_fail(pawl_lapser_open(&options, 8, 8, keys, 4, NULL, 0, 0, &lapser), PAWL_INVALID, "has 1 to 30 characters");
  options.struct_size = 0;
  must_fail(pawl_lapser_open(&options, 8, 8, keys, 4, NULL, 0, 0, &lapser), PAWL_INVALID, "was not initialised");
}

/* What one of two members must not do, and what both get then. */
static void refuse(void (*plan)(void), pawl_status first, pawl_status second, const char *text) {
  join_all(2, &kinds[0]);
  plan_pair();
  plan();
  run_all(run_open);
  must_have_failed(&members[0], first, first ? text : "");
  must_have_failed(&members[1], second, text);
  leave_all();
}

static void plan_two_producers(void) { produce(&members[1], 2, (const uint64_t[]){3, 6}); }
static void plan_other_size(void) { members[1].size = 24; }
static void plan_other_variant(void) { members[1].options.variant = PAWL_ITEMS_PULL; }
static void plan_no_producer(void) { consume(&members[1], 2, (const uint64_t[]){3, 6}); }
static void plan_bad_name(void) { members[0].options.name = members[1].options.name = "bad name"; }

static void plan_no_member(void) {
  members[0].options.name = "another";
  for (int i = 0; i < 2; i++) members[i].options.open_ns = BRIEF;
}

static void test_members_that_contradict_each_other_are_refused(void **state) {
  (void)state;
  refuse(plan_two_producers, PAWL_EXISTS, PAWL_EXISTS, "key 3 is produced by this member, node ");
  refuse(plan_other_size, PAWL_MISMATCH, PAWL_MISMATCH, "items have ");
  refuse(plan_other_variant, PAWL_MISMATCH, PAWL_MISMATCH, "the variant is p");
  refuse(plan_no_member, PAWL_TIMED_OUT, PAWL_TIMED_OUT, "deadline passed; ");
  refuse(plan_bad_name, PAWL_INVALID, PAWL_INVALID, "letters, digits");
}

/* Its producers do not hear of it. They do not wait for such a member when they close. */
static void test_a_key_that_nobody_produces_is_refused(void **state) {
  (void)state;
  join_all(2, &kinds[0]);
  plan_pair();
  plan_no_producer();
  members[0].options.lost_ns = BRIEF;
  run_all(run_open);
  must_have_failed(&members[1], PAWL_NOT_FOUND, "key 6");
  must(members[0].status);
  run_close(&members[0]);
  must_have_failed(&members[0], PAWL_NODE_GONE, "close main: a member does not have it open");
  leave_all();
}

/* Nobody else allocates in a session that is idle, except rarely. */
static void test_lack_of_memory_is_a_status(void **state) {
  static const uint64_t keys[] = {1, 5, 2};
  (void)state;
  join_all(1, &kinds[0]);
  produce(&members[0], 3, keys);
  consume(&members[0], 3, keys);
  for (uint64_t n = 0; n < 5; n++) {
    pwi_memory_fail_after(n);
    run_open(&members[0]);
    pwi_memory_fail_cancel();
    if (members[0].status) must_have_failed(&members[0], PAWL_NO_MEMORY, "");
    run_close(&members[0]);
    must(members[0].status);
  }
  leave_all();
}

/* --- many contexts --------------------------------------------------------------------------------------- */

#define CONTEXTS 4
#define CLOCKS 30

struct job {
  pthread_t thread;
  struct member *member;
  uint32_t index;
  char name[16];
  pawl_status status;
};

/* Context c has items of 8 (c + 1) bytes; member m produces the keys m, m + 2, …, and reads those of the
 * other one. */
static pawl_status iterate(const struct job *job, struct pawl_lapser *lapser, uint64_t first, uint64_t second) {
  size_t size = 8 * (job->index + 1);
  uint64_t value[CONTEXTS] = {0};
  pawl_status status = PAWL_OK;
  for (int64_t clock = 1; clock < CLOCKS && !status; clock++) {
    for (size_t i = 0; i <= job->index; i++) value[i] = first * 1000 + job->index * 100 + (uint64_t)clock;
    status = pawl_lapser_set(lapser, first, value, size, clock);
    if (!status) status = pawl_lapser_get(lapser, second, value, size, clock, 1);
    for (size_t i = 0; i <= job->index && !status; i++)
      if (value[i] != value[0] || value[i] / 100 != second * 10 + job->index || value[i] % 100 + 1 < (uint64_t)clock)
        status = clock == 1 && value[i] == 0 ? PAWL_OK : PAWL_CORRUPT;
  }
  return status;
}

static void *run_job(void *context) {
  struct job *job = context;
  struct pawl_lapser_options options = job->member->options;
  uint64_t first = job->member == &members[0] ? 0 : 1, second = 1 - first;
  struct pawl_lapser *lapser = NULL;
  options.name = job->name;
  job->status = pawl_lapser_open(&options, 2, 8 * (job->index + 1), &first, 1, &second, 1, 1, &lapser);
  if (!job->status) job->status = iterate(job, lapser, first, second);
  pawl_status closed = pawl_lapser_close(lapser);
  if (!job->status) job->status = closed;
  return NULL;
}

static void test_several_contexts_are_open_at_once(void **state) {
  struct job jobs[2 * CONTEXTS];
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    join_all(2, &kinds[k]);
    for (uint32_t i = 0; i < 2 * CONTEXTS; i++) {
      jobs[i] = (struct job){.member = &members[i / CONTEXTS], .index = i % CONTEXTS};
      snprintf(jobs[i].name, sizeof jobs[i].name, "context%u", i % CONTEXTS);
      assert_int_equal(pthread_create(&jobs[i].thread, NULL, run_job, &jobs[i]), 0);
    }
    for (uint32_t i = 0; i < 2 * CONTEXTS; i++) {
      pthread_join(jobs[i].thread, NULL);
      assert_int_equal(jobs[i].status, PAWL_OK);
    }
    leave_all();
  }
}

static void test_a_name_is_open_once(void **state) {
  struct pawl_lapser *again = NULL;
  (void)state;
  open_pair_of(&kinds[0]);
  must_fail(pawl_lapser_open(&members[0].options, 8, 16, members[0].produces, 4, NULL, 0, 0, &again), PAWL_EXISTS,
            "this member has a context 'main' open");
  close_all();
}

/* --- closing --------------------------------------------------------------------------------------------- */

static void *run_reopening(void *context) {
  struct member *member = context;
  uint64_t index = (uint64_t)(member - members), value;
  pawl_status status = PAWL_OK;
  for (uint64_t round = 0; round < 10 && !status; round++) {
    uint64_t mine = (index + round) % member_count, other = (mine + 1) % member_count;
    member->size = 8 + round % 3 * 8;
    status = pawl_lapser_open(&member->options, 3, member->size, &mine, 1, &other, 1, 0, &member->lapser);
    value = mine * 1000 + round;
    if (!status) status = pawl_lapser_set(member->lapser, mine, &value, 8, 1);
    if (!status) status = pawl_lapser_get(member->lapser, other, &value, 8, 1, 0);
    if (!status && value != other * 1000 + round) status = PAWL_CORRUPT;
    if (status) break;
    status = pawl_lapser_close(member->lapser);
  }
  finish(member, status);
  return NULL;
}

/* Each time with other sizes and other producers: nobody meets the context that another one is about to
 * close. */
static void test_a_context_is_opened_again_under_its_name(void **state) {
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    join_all(3, &kinds[k]);
    run_all(run_reopening);
    check_all();
    leave_all();
  }
}

static void *run_early_close(void *context) {
  struct member *member = context;
  run_close(member);
  if (!member->status && !atomic_load(member->has_read)) finish(member, PAWL_CORRUPT);
  return NULL;
}

/* With pull the values are at the producer until the consumer gets them. */
static void test_close_waits_until_the_others_have_read(void **state) {
  _Atomic bool has_read = false;
  unsigned char value[16];
  (void)state;
  open_pair_of(&kinds[3]);
  for (uint64_t key = 0; key < 4; key++) must(pawl_lapser_set(members[0].lapser, key, "last value here", 16, 3));
  members[0].has_read = &has_read;
  assert_int_equal(pthread_create(&members[0].thread, NULL, run_early_close, &members[0]), 0);
  for (uint64_t key = 0; key < 4; key++) {
    must(pawl_lapser_get(members[1].lapser, key, value, sizeof value, 3, 0));
    assert_string_equal(value, "last value here");
  }
  atomic_store(&has_read, true);
  run_close(&members[1]);
  pthread_join(members[0].thread, NULL);
  check_all();
  leave_all();
}

static void test_close_ends_at_its_deadline(void **state) {
  (void)state;
  join_all(2, &kinds[0]);
  plan_pair();
  members[0].options.close_ns = members[1].options.close_ns = BRIEF;
  open_all();
  run_close(&members[0]);
  must_have_failed(&members[0], PAWL_TIMED_OUT, "collective lapser.main.0: deadline passed");
  run_close(&members[1]); /* the other one has given up: this one does as well, and says so */
  assert_true(members[1].status == PAWL_TIMED_OUT || members[1].status == PAWL_NODE_GONE);
  leave_all();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lists_have_any_order_and_keys_twice),
      cmocka_unit_test(test_an_item_begins_as_zeros_of_clock_0),
      cmocka_unit_test(test_values_may_be_shorter_than_items),
      cmocka_unit_test(test_a_get_may_use_the_slack_of_the_context),
      cmocka_unit_test(test_calls_that_are_wrong_say_so),
      cmocka_unit_test(test_arguments_of_open_are_checked),
      cmocka_unit_test(test_members_that_contradict_each_other_are_refused),
      cmocka_unit_test(test_a_key_that_nobody_produces_is_refused),
      cmocka_unit_test(test_lack_of_memory_is_a_status),
      cmocka_unit_test(test_several_contexts_are_open_at_once),
      cmocka_unit_test(test_a_name_is_open_once),
      cmocka_unit_test(test_a_context_is_opened_again_under_its_name),
      cmocka_unit_test(test_close_waits_until_the_others_have_read),
      cmocka_unit_test(test_close_ends_at_its_deadline),
  };
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
