/* Puts, gets and fences under load: sizes, order, floods, full queues, memory that changes meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "pattern.h"
#include "share.h"
#include "suite.h"

#define KB ((size_t)1 << 10)
#define MB ((size_t)1 << 20)
#define BOTH (PWI_ACCESS_READ | PWI_ACCESS_WRITE)

static void put(struct pair *pair, struct share *share, uint64_t seed, uint64_t offset, size_t size, uint64_t notify) {
  pawl_status status;
  share_put(pair, share, seed, offset, size, notify, &status);
  assert_status(status, PAWL_OK);
}

static void large_queue(struct pwi_net_limits *limits) {
  party_default_limits(limits);
  limits->queue_bytes = 512 * MB;
}

/* Sizes. */

static const size_t ladder[] = {64 * MB, MB, 4097, 4096, 64, 1, 0};
#define STEPS (sizeof ladder / sizeof *ladder)

/* Put number n writes the pattern n over the first ladder[n - 1] bytes. A later put is smaller, so it leaves the end of
 * an earlier one as it was. */
static void check_ladder(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  (void)link;
  const struct share *share = party->context;
  if (event != PARTY_ON_NOTIFIED) return;
  for (size_t i = 0; i < value; i++) {
    size_t from = i + 1 < STEPS ? ladder[i + 1] : 0;
    if (!share_holds(share, i + 1, from, ladder[i] - from))
      party_fault(party, "notification %llu came before the put of %zu bytes had landed", (unsigned long long)value,
                  ladder[i]);
  }
}

static void test_puts_of_all_sizes_land_in_order(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  large_queue(&limits);
  struct pair pair = scene_pair(scene, &limits);
  struct share share = share_open(&pair, ladder[0], PWI_ACCESS_WRITE);
  pair.there->context = &share;
  pair.there->hook = check_ladder;
  for (size_t i = 0; i < STEPS; i++) put(&pair, &share, i + 1, 0, ladder[i], i + 1);
  SCENE_UNTIL(scene, pair.theirs->notifications == STEPS && pair.ours->outstanding == 0);
  pair.there->hook = NULL;
  for (size_t i = STEPS; i > 0; i--) put(&pair, &share, 100, 0, ladder[i - 1], STEPS + i);
  SCENE_UNTIL(scene, pair.theirs->notifications == 2 * STEPS && pair.ours->outstanding == 0);
  assert_true(share_holds(&share, 100, 0, ladder[0]));
  assert_int_equal(pair.ours->failed, 0);
  share_close(&pair, &share);
}

/* Floods. */

#define BLOCK ((size_t)3000)
#define BLOCKS 400
#define EVERY 7 /* puts for each notification */

struct flood {
  struct share share;
  uint64_t checked; /* blocks that were found in place */
};

/* The value is the number of blocks that have been put. */
static void check_blocks(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  (void)link;
  struct flood *flood = party->context;
  if (event != PARTY_ON_NOTIFIED) return;
  if (value <= flood->checked) party_fault(party, "notification %llu came twice or late", (unsigned long long)value);
  for (; flood->checked < value; flood->checked++)
    if (!share_holds(&flood->share, 5, flood->checked * BLOCK, BLOCK))
      party_fault(party, "notified of %llu before put %llu had landed", (unsigned long long)value,
                  (unsigned long long)flood->checked);
}

/* Keeps both lanes full. The queue may be full already. */
static void send_some(struct party *party, struct party_link *link, uint64_t number) {
  for (int lane = 0; lane < 2; lane++) {
    struct packet packet = {
        .lane = (enum pwi_lane)lane, .size = number % 5 == 0 ? 90000 : number % 3000, .how = PWI_RECEIVE_PIECES};
    pawl_status status = party_send(party, link, &packet);
    if (status != PAWL_OK) assert_status(status, PAWL_QUEUE_FULL);
  }
}

static void test_a_notification_overtakes_no_put_beside_floods_of_messages(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct pair sides[2] = {pair, {.here = pair.there, .there = pair.here, .ours = pair.theirs, .theirs = pair.ours}};
  struct flood floods[2] = {0};
  for (int side = 0; side < 2; side++) {
    floods[side].share = share_open(&sides[side], BLOCKS * BLOCK, PWI_ACCESS_WRITE);
    sides[side].there->context = &floods[side];
    sides[side].there->hook = check_blocks;
  }
  for (uint64_t i = 0; i < BLOCKS; i++) {
    for (int side = 0; side < 2; side++) {
      send_some(sides[side].here, sides[side].ours, i);
      bool last = i + 1 == BLOCKS || (i + 1) % EVERY == 0;
      pawl_status status;
      while (!share_put(&sides[side], &floods[side].share, 5, i * BLOCK, BLOCK, last ? i + 1 : 0, &status)) {
        assert_status(status, PAWL_QUEUE_FULL);
        scene_step(scene, INT64_MAX, "");
      }
    }
    if (i % 16 == 0) scene_step(scene, INT64_MAX, "");
  }
  SCENE_UNTIL(scene, floods[0].checked == BLOCKS && floods[1].checked == BLOCKS);
  for (int side = 0; side < 2; side++) {
    sides[side].there->hook = NULL;
    share_close(&sides[side], &floods[side].share);
  }
}

/* Full queues. */

#define SPAN ((size_t)150 * KB)
#define SPANS 12 /* of a region */

/* What one side does to the other: it puts into a region, span after span, and gets out of another. */
struct side {
  struct pair pair;
  struct share written, read;
  uint8_t *into[SPANS];
  uint64_t gets[SPANS]; /* cookies of gets under way; 0: none */
  uint64_t puts, tried, notified;
  bool is_full;
};

static bool is_taken(struct side *side, pawl_status status, uint64_t cookie) {
  if (status == PAWL_OK) return true;
  assert_status(status, PAWL_QUEUE_FULL);
  party_op_cancel(side->pair.here, cookie);
  side->pair.ours->full = side->is_full = true;
  return false;
}

static void check_got(struct side *side, size_t span, size_t size) {
  uint64_t cookie = side->gets[span];
  if (!cookie) return;
  assert_status(party_op(side->pair.here, cookie)->status, PAWL_OK);
  assert_int_equal(pattern_check(9, span * SPAN, side->into[span], size), size);
  side->gets[span] = 0;
}

static void try_get(struct side *side, size_t size) {
  size_t span = side->tried % SPANS;
  struct party *here = side->pair.here;
  if (side->gets[span] && !party_op(here, side->gets[span])->ended) return;
  check_got(side, span, size);
  uint64_t cookie = party_op_begin(here, side->pair.ours, NULL);
  pawl_status status = PARTY_CALL(here, pwi_net_get(here->net, side->pair.ours->link, side->read.remote, span * SPAN,
                                                    side->into[span], size, cookie));
  if (is_taken(side, status, cookie)) side->gets[span] = cookie;
}

static void try_fence(struct side *side) {
  struct party *here = side->pair.here;
  uint64_t cookie = party_op_begin(here, side->pair.ours, NULL);
  is_taken(side, PARTY_CALL(here, pwi_net_fence(here->net, side->pair.ours->link, cookie)), cookie);
}

static void try_next(struct side *side, size_t size) {
  pawl_status status;
  uint64_t next = side->puts + 1;
  switch (side->tried % 4) {
  case 0:
    side->puts += share_put(&side->pair, &side->written, 9, next % SPANS * SPAN, size, next, &status) != 0;
    side->is_full = status == PAWL_QUEUE_FULL;
    break;
  case 1:
  case 2:
    try_get(side, size);
    break;
  default:
    try_fence(side);
  }
  side->tried += !side->is_full;
}

static void open_sides(struct scene *scene, const struct pwi_net_limits *limits, struct side sides[2]) {
  struct party *here = scene_party(scene, 0, limits), *there = scene_listener(scene, 1, limits);
  sides[0] = (struct side){.pair = scene_join(scene, here, there)};
  struct pair *pair = &sides[0].pair;
  sides[1] =
      (struct side){.pair = {.here = pair->there, .there = pair->here, .ours = pair->theirs, .theirs = pair->ours}};
  for (int i = 0; i < 2; i++) {
    sides[i].written = share_open(&sides[i].pair, SPANS * SPAN, PWI_ACCESS_WRITE);
    sides[i].read = share_open(&sides[i].pair, SPANS * SPAN, PWI_ACCESS_READ);
    pattern_fill(9, 0, sides[i].read.memory, SPANS * SPAN);
    for (size_t span = 0; span < SPANS; span++) sides[i].into[span] = malloc(SPAN);
  }
}

static void close_side(struct side *side, size_t size) {
  for (size_t span = 0; span < SPANS; span++) {
    check_got(side, span, size);
    free(side->into[span]);
  }
  for (uint64_t i = 1; i < SPANS && i <= side->puts; i++) assert_true(share_holds(&side->written, 9, i * SPAN, size));
  share_close(&side->pair, &side->written);
  share_close(&side->pair, &side->read);
}

/* Both sides do as much as their queues take, and continue when these are writable again. */
static void fill_both(void **state, size_t queue_count, size_t queue_bytes, size_t size) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.queue_count = queue_count;
  limits.queue_bytes = queue_bytes;
  struct side sides[2];
  open_sides(scene, &limits, sides);
  for (int round = 0; round < 60; round++) {
    for (int i = 0; i < 2; i++) {
      sides[i].is_full = false;
      for (int n = 0; n < 40 && !sides[i].is_full; n++) try_next(&sides[i], size);
    }
    if (sides[0].is_full) SCENE_UNTIL(scene, !sides[0].pair.ours->full);
    if (sides[1].is_full) SCENE_UNTIL(scene, !sides[1].pair.ours->full);
  }
  for (int i = 0; i < 2; i++) {
    struct pair *pair = &sides[i].pair;
    SCENE_UNTIL(scene, pair->ours->outstanding == 0 && pair->theirs->notifications == sides[i].puts);
    assert_true(sides[i].puts > 10);
    assert_int_equal(pair->ours->failed, 0);
    assert_int_equal(pair->theirs->last_notified, sides[i].puts);
  }
  for (int i = 0; i < 2; i++) close_side(&sides[i], size);
}

static void test_queues_of_one_operation_serve_both_directions(void **state) { fill_both(state, 1, 64 * MB, SPAN); }
static void test_queues_of_few_operations_serve_both_directions(void **state) { fill_both(state, 5, 64 * MB, 5000); }
static void test_queues_of_few_bytes_serve_both_directions(void **state) { fill_both(state, 4096, 300 * KB, SPAN); }
static void test_long_queues_of_small_operations_serve_both_directions(void **state) {
  fill_both(state, 100, 64 * MB, 100);
}

/* Fences. */

struct fenced {
  struct share *share;
  uint64_t cookies[16];
};

/* Fence number n follows n + 1 puts of 100,000 bytes. */
static void check_fence(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  (void)link;
  struct fenced *fenced = party->context;
  for (size_t i = 0; event == PARTY_ON_DONE && i < 16; i++)
    if (fenced->cookies[i] == value && !share_holds(fenced->share, 3, 0, (i + 1) * 100000))
      party_fault(party, "fence %zu was done before the puts before it had landed", i);
}

static void test_each_fence_of_many_waits_for_the_puts_before_it(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct share share = share_open(&pair, 16 * 100000, PWI_ACCESS_WRITE);
  struct fenced fenced = {.share = &share};
  pair.here->context = &fenced;
  pair.here->hook = check_fence;
  for (size_t i = 0; i < 16; i++) {
    put(&pair, &share, 3, i * 100000, 100000, 0);
    fenced.cookies[i] = share_fence(&pair);
  }
  SCENE_UNTIL(scene, pair.ours->outstanding == 0);
  assert_int_equal(pair.ours->failed, 0);
  pair.here->hook = NULL;
  share_close(&pair, &share);
}

/* Memory that changes. */

#define CHANGING ((size_t)MB)

/* True if every byte is that of one of both patterns. */
static bool is_mixture(const uint8_t *bytes, const uint8_t *one, const uint8_t *other, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (bytes[i] != one[i] && bytes[i] != other[i]) return false;
  return true;
}

static uint8_t *make_pattern(uint64_t seed) {
  uint8_t *bytes = malloc(CHANGING);
  if (!bytes) abort();
  pattern_fill(seed, 0, bytes, CHANGING);
  return bytes;
}

static void test_a_get_of_changing_memory_returns_bytes_that_were_there(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct share share = share_open(&pair, CHANGING, PWI_ACCESS_READ);
  uint8_t *one = make_pattern(1), *other = make_pattern(2), *into = malloc(4 * CHANGING);
  memcpy(share.memory, one, CHANGING);
  for (int round = 0; round < 10; round++) {
    for (size_t i = 0; i < 4; i++) share_get(&pair, &share, 0, into + i * CHANGING, CHANGING);
    for (int i = 0; pair.ours->outstanding > 0; i++) {
      memcpy(share.memory, i % 2 ? one : other, CHANGING);
      scene_step(scene, INT64_MAX, "");
    }
    for (size_t i = 0; i < 4; i++) assert_true(is_mixture(into + i * CHANGING, one, other, CHANGING));
  }
  assert_int_equal(pair.ours->failed, 0);
  free(one);
  free(other);
  free(into);
  share_close(&pair, &share);
}

/* One link writes the region, and other links read it. */
static void test_several_links_read_a_region_that_one_link_writes(void **state) {
  struct scene *scene = *state;
  struct pair writer = scene_pair(scene, NULL);
  struct pair readers[3] = {scene_join(scene, writer.here, writer.there),
                            scene_join(scene, scene_party(scene, 2, NULL), writer.there),
                            scene_join(scene, &scene->parties[2], writer.there)};
  struct share share = share_open(&writer, CHANGING, PWI_ACCESS_WRITE), views[3];
  uint8_t *one = make_pattern(1), *other = make_pattern(2), *into = malloc(3 * CHANGING);
  memcpy(share.memory, one, CHANGING);
  for (size_t i = 0; i < 3; i++) views[i] = share_again(&readers[i], &share, PWI_ACCESS_READ);
  for (uint64_t round = 0; round < 10; round++) {
    for (uint64_t i = 0; i < 4; i++) put(&writer, &share, 1 + i % 2, 0, CHANGING, i + 1);
    for (size_t i = 0; i < 3; i++) share_get(&readers[i], &views[i], 0, into + i * CHANGING, CHANGING);
    SCENE_UNTIL(scene,
                writer.theirs->notifications == 4 * (round + 1) && writer.ours->outstanding == 0 &&
                    readers[0].ours->outstanding + readers[1].ours->outstanding + readers[2].ours->outstanding == 0);
    for (size_t i = 0; i < 3; i++) assert_true(is_mixture(into + i * CHANGING, one, other, CHANGING));
  }
  assert_true(share_holds(&share, 2, 0, CHANGING));
  free(one);
  free(other);
  free(into);
  share_close(&writer, &share);
}

int suite_puts(void) {
  const struct CMUnitTest tests[] = {
      SCENE_TEST(test_puts_of_all_sizes_land_in_order),
      SCENE_TEST(test_a_notification_overtakes_no_put_beside_floods_of_messages),
      SCENE_TEST(test_queues_of_one_operation_serve_both_directions),
      SCENE_TEST(test_queues_of_few_operations_serve_both_directions),
      SCENE_TEST(test_queues_of_few_bytes_serve_both_directions),
      SCENE_TEST(test_long_queues_of_small_operations_serve_both_directions),
      SCENE_TEST(test_each_fence_of_many_waits_for_the_puts_before_it),
      SCENE_TEST(test_a_get_of_changing_memory_returns_bytes_that_were_there),
      SCENE_TEST(test_several_links_read_a_region_that_one_link_writes),
  };
  return cmocka_run_group_tests_name("puts", tests, NULL, NULL);
}
