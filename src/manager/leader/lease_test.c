/* When a lease begins and ends, over a stub store whose answers come as late as a test wants. Elections in the simulator are in
 * election_test.c. */
#include <string.h>

#include "base/testing.h"
#include "net/stub_testing.h"
#include "manager/leader/election.h"

#define MS INT64_C(1000000)
#define TTL (2000 * MS)
#define DOUBT (3000 * MS)
#define LEASE 5
#define ADDRESS "tcp://here:7000"

enum asked { NOTHING, TRANSACT, GRANT, RENEW, REVOKE };

struct store {
  struct pwi_meta meta;
  enum asked asked; /* the call under way */
  struct pwi_meta_call *call;
};

struct scene {
  struct stub_net net;
  struct store store;
  struct pwi_election election;
};

static pawl_status ask(struct pwi_meta *meta, struct pwi_meta_call *call, enum asked asked) {
  struct store *store = (struct store *)meta;
  assert_int_equal(store->asked, NOTHING);
  store->asked = asked;
  store->call = call;
  return PAWL_OK;
}

static pawl_status transact(struct pwi_meta *meta, struct pwi_meta_call *call,
                            const struct pwi_meta_transaction *transaction) {
  (void)transaction;
  return ask(meta, call, TRANSACT);
}

static pawl_status grant(struct pwi_meta *meta, struct pwi_meta_call *call, int64_t ttl_ns) {
  assert_int_equal(ttl_ns, TTL);
  return ask(meta, call, GRANT);
}

static pawl_status renew(struct pwi_meta *meta, struct pwi_meta_call *call, uint64_t lease) {
  assert_int_equal(lease, LEASE);
  return ask(meta, call, RENEW);
}

static pawl_status revoke(struct pwi_meta *meta, struct pwi_meta_call *call, uint64_t lease) {
  (void)lease;
  return ask(meta, call, REVOKE);
}

static void cancel(struct pwi_meta *meta, struct pwi_meta_call *call) {
  (void)call;
  ((struct store *)meta)->asked = NOTHING;
}

static void changed(void *context) { (void)context; }

static void pass(struct scene *scene, int64_t time) { scene->net.now += time; }

/* The call under way ends. */
static void answer(struct scene *scene, enum asked asked, pawl_status status, const struct pwi_meta_answer *is) {
  assert_int_equal(scene->store.asked, asked);
  scene->store.asked = NOTHING;
  scene->store.call->done(scene->store.call, status, is);
}

static void fire(struct scene *scene) {
  assert_true(scene->net.timer_at != 0);
  if (scene->net.now < scene->net.timer_at) scene->net.now = scene->net.timer_at;
  scene->net.timer_at = 0;
  pwi_election_timer(&scene->election);
}

/* Up to the campaign: the leadership is vacant, and the store takes a while to grant the lease. Returns when it was asked for. */
static int64_t begin(struct scene *scene, int64_t late) {
  static const struct pwi_meta_ops ops = {
      .transact = transact, .grant = grant, .renew = renew, .revoke = revoke, .cancel = cancel};
  static const struct pwi_log log = {.node = "here"};
  *scene = (struct scene){.store = {.meta.ops = &ops}};
  stub_start(&scene->net, NULL, NULL);
  struct pwi_election_config config = {.net = &scene->net.net,
                                       .meta = &scene->store.meta,
                                       .log = &log,
                                       .prefix = "p",
                                       .address = ADDRESS,
                                       .changed = changed};
  assert_int_equal(pwi_election_init(&scene->election, &config), PAWL_OK);
  fire(scene);
  answer(scene, TRANSACT, PAWL_OK, &(struct pwi_meta_answer){.held = true});
  int64_t asked_at = scene->net.now;
  pass(scene, late);
  answer(scene, GRANT, PAWL_OK, &(struct pwi_meta_answer){.lease = LEASE, .ttl_ns = TTL});
  return asked_at;
}

static void lead(struct scene *scene) {
  answer(scene, TRANSACT, PAWL_OK, &(struct pwi_meta_answer){.held = true, .revision = 7});
  assert_int_equal(scene->election.state, PWI_ELECTION_LEADING);
}

/* The store is away: every renewal fails, after `late`. Returns when the leader has given up. */
static int64_t fail_until_lost(struct scene *scene, int64_t late) {
  while (scene->election.state == PWI_ELECTION_LEADING) {
    fire(scene);
    pass(scene, scene->store.call->patience_ns < late ? scene->store.call->patience_ns : late);
    answer(scene, RENEW, PAWL_TIMED_OUT, NULL);
  }
  assert_int_equal(scene->election.state, PWI_ELECTION_LOST);
  return scene->net.now;
}

/* The store may have granted it at once, however late its answer is. */
static void test_a_granted_lease_counts_from_the_question(void **state) {
  (void)state;
  struct scene scene;
  int64_t asked_at = begin(&scene, 1200 * MS);
  pass(&scene, 300 * MS); /* the campaign does not prolong it either */
  lead(&scene);
  int64_t over = asked_at + DOUBT;
  assert_in_range(fail_until_lost(&scene, 0), over, over + 1);
}

static void test_a_renewed_lease_counts_from_the_question(void **state) {
  (void)state;
  struct scene scene;
  (void)begin(&scene, 0);
  lead(&scene);
  fire(&scene);
  int64_t over = scene.net.now + DOUBT;
  pass(&scene, 900 * MS);
  answer(&scene, RENEW, PAWL_OK, &(struct pwi_meta_answer){.ttl_ns = TTL});
  assert_in_range(fail_until_lost(&scene, 0), over, over + 1);
}

/* Neither a pause between two attempts nor an attempt reaches beyond the end of the lease. */
static void test_a_leader_gives_up_when_its_lease_may_have_ended(void **state) {
  (void)state;
  for (int64_t late = 0; late < 1000; late += 37) {
    struct scene scene;
    int64_t over = begin(&scene, 0) + DOUBT;
    lead(&scene);
    assert_in_range(fail_until_lost(&scene, late * MS), over, over + 1);
  }
}

static void test_a_leader_renews_four_times_in_the_life_of_its_lease(void **state) {
  (void)state;
  struct scene scene;
  int64_t asked_at = begin(&scene, 0);
  lead(&scene);
  for (int i = 1; i <= 8; i++) {
    fire(&scene);
    assert_int_equal(scene.net.now, asked_at + i * TTL / 4);
    answer(&scene, RENEW, PAWL_OK, &(struct pwi_meta_answer){.ttl_ns = TTL});
  }
  fire(&scene);
  answer(&scene, RENEW, PAWL_NOT_FOUND, NULL); /* somebody has ended it */
  assert_int_equal(scene.election.state, PWI_ELECTION_LOST);
  assert_int_equal(scene.election.trouble, PAWL_NODE_DEPOSED);
}

/* The next look finds a leader with the own lease. */
static void test_a_campaign_whose_answer_was_lost_has_succeeded(void **state) {
  (void)state;
  struct scene scene;
  int64_t asked_at = begin(&scene, 0);
  pass(&scene, 1000 * MS);
  answer(&scene, TRANSACT, PAWL_TIMED_OUT, NULL);
  fire(&scene);
  struct pwi_meta_pair pairs[] = {
      {.key = "p/leader", .value = "1 " ADDRESS, .size = strlen("1 " ADDRESS), .created = 7, .lease = LEASE},
      {.key = "p/term", .value = "1", .size = 1, .created = 7}};
  answer(&scene, TRANSACT, PAWL_OK, &(struct pwi_meta_answer){.held = true, .pairs = pairs, .pair_count = 2});
  assert_int_equal(scene.election.state, PWI_ELECTION_LEADING);
  assert_int_equal(scene.election.term, 1);
  int64_t over = asked_at + DOUBT;
  assert_in_range(fail_until_lost(&scene, 0), over, over + 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_granted_lease_counts_from_the_question),
      cmocka_unit_test(test_a_renewed_lease_counts_from_the_question),
      cmocka_unit_test(test_a_leader_gives_up_when_its_lease_may_have_ended),
      cmocka_unit_test(test_a_leader_renews_four_times_in_the_life_of_its_lease),
      cmocka_unit_test(test_a_campaign_whose_answer_was_lost_has_succeeded),
  };
  return cmocka_run_group_tests_name("manager.leader.lease", tests, NULL, NULL);
}
