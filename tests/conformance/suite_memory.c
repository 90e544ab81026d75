/* Out of memory: whichever allocation fails, calls say so, links may go down, and nothing is lost track of. */
#include "base/memory.h"
#include "share.h"
#include "suite.h"

#define MB ((size_t)1 << 20)

/* A link that ran out of memory inside one call is not found by the next. */
static bool fine(pawl_status status) {
  if (status != PAWL_OK && status != PAWL_NOT_FOUND) assert_status(status, PAWL_NO_MEMORY);
  return status == PAWL_OK;
}

static bool is_down(const struct party_link *link) { return !link || link->state == PARTY_DOWN; }

/* Messages that wait while the lane is held. What could not be held is not. */
static void hold_link(struct scene *scene, struct pair *pair) {
  struct pwi_net *there = pair->there->net;
  struct packet small = {.lane = PWI_LANE_DATA, .size = 100}, large = {.lane = PWI_LANE_DATA, .size = 200000};
  bool is_held = fine(pwi_net_hold(there, pair->theirs->link, true));
  if (is_held) SCENE_UNTIL(scene, is_down(pair->ours) || pair->ours->is_held);
  fine(party_send(pair->here, pair->ours, &small));
  fine(party_send(pair->here, pair->ours, &large));
  if (!is_held) return;
  while (pwi_net_hold(there, pair->theirs->link, false) == PAWL_NO_MEMORY) continue; /* only one allocation fails */
}

/* Send, put and get a little of everything; what is refused is left out. */
static void use_link(struct scene *scene, struct pair *pair) {
  static uint8_t into[100000];
  for (int i = 0; i < 8; i++) {
    struct packet packet = {
        .lane = i % 2 ? PWI_LANE_DATA : PWI_LANE_LINK,
        .how = i < 4 ? PWI_RECEIVE_WHOLE : PWI_RECEIVE_PIECES,
        .size = i % 4 < 2 ? 100 : 200000,
        .parts = 3,
    };
    fine(party_send(pair->here, pair->ours, &packet));
  }
  struct share share;
  uint8_t token[PWI_NET_TOKEN_MAX];
  size_t size;
  struct pwi_net *here = pair->here->net, *there = pair->there->net;
  if (!fine(pwi_net_region_open(there, sizeof into, &share.region))) return;
  share.memory = pwi_net_region_memory(share.region);
  unsigned access = PWI_ACCESS_READ | PWI_ACCESS_WRITE;
  if (fine(pwi_net_region_share(there, share.region, pair->theirs->link, access, token, &size)) &&
      fine(pwi_net_remote_open(here, pair->ours->link, token, size, &share.remote))) {
    pawl_status status;
    share_put(pair, &share, 1, 0, sizeof into, 1, &status);
    fine(status);
    fine(pwi_net_get(here, pair->ours->link, share.remote, 0, into, sizeof into, 0));
    fine(pwi_net_fence(here, pair->ours->link, 0));
  }
  if (!is_down(pair->ours)) hold_link(scene, pair);
  struct party_stream *in = pair->theirs->in;
  SCENE_UNTIL(scene, is_down(pair->ours) ||
                         (pair->ours->outstanding == 0 && in[0].whole + in[0].broken == pair->ours->sent[0] &&
                          in[1].whole + in[1].broken == pair->ours->sent[1]));
}

/* From nothing to a link that was used and closed again. */
static void live_once(struct scene *scene) {
  struct pair pair = {.here = &scene->parties[0], .there = &scene->parties[1]};
  if (!fine(party_open(pair.here, scene->world, 0, NULL, &party_actor)) ||
      !fine(party_open(pair.there, scene->world, 1, NULL, &party_actor)))
    return;
  struct pwi_timer timer;
  fine(pwi_net_timer_set(pair.here->net, pwi_net_now(pair.here->net), 1, &timer));
  if (!fine(party_listen(pair.there, 0, NULL)) || !fine(party_connect(pair.here, pair.there->address, &pair.ours)))
    return;
  SCENE_UNTIL(scene, is_down(pair.ours) || (pair.ours->state == PARTY_UP && party_up_count(pair.there) == 1));
  pair.theirs = party_newest(pair.there);
  if (pair.ours->state == PARTY_UP) use_link(scene, &pair);
  party_close(pair.here, pair.ours, PAWL_OK);
  SCENE_UNTIL(scene, is_down(pair.ours) && party_up_count(pair.there) == 0);
}

static uint64_t failing; /* the number of the allocation that fails */
static bool finished;

static void test_any_allocation_may_fail(void **state) {
  struct scene *scene = *state;
  if (!(scene_kind->traits & WORLD_FRUGAL)) skip();
  uint64_t before = pwi_memory_counts().live;
  bool failed = true;
  for (failing = 0; failed; failing++) {
    pwi_memory_fail_after(failing);
    live_once(scene);
    failed = pwi_memory_fail_cancel();
    party_kill(&scene->parties[0]);
    party_kill(&scene->parties[1]);
    assert_int_equal(pwi_memory_counts().live, before);
  }
  assert_true(failing > 5); /* or nothing was allocated, and nothing tested */
  finished = true;
}

static int say_which_failed(void **state) {
  pwi_memory_fail_cancel();
  if (failing > 0 && !finished) print_error("with allocation %llu failing\n", (unsigned long long)failing);
  return scene_close(state);
}

int suite_memory(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_any_allocation_may_fail, scene_open, say_which_failed),
  };
  return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
