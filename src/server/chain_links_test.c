/* The link to the following member of a chain, in each of its states: sought, up, open, silent, cut off, and
 * being filled. */
#include "server/traffic_testing.h"
#include "wire/keys.h"

/* --- towards the following member ----------------------------------------------------------------------- */

static void test_a_head_opens_the_chain_and_sends_changes(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  struct pwi_chain *chain = chain_of(&s);
  assert_int_equal(s.net.connects, 1);
  assert_true(pwi_server_seeks(s.server, 2));
  assert_null(contact_of(chain)->following); /* sought */
  assert_int_not_equal(contact_of(chain)->cut_off_since, 0);
  change(&s, 11);
  struct server_peer *next = follow(&s, 2);
  assert_ptr_equal(contact_of(chain)->following, next); /* up */
  assert_int_equal(heard(&s, next).kind, PWI_CHAIN_OPEN);
  assert_int_equal(heard(&s, next).version, 1);
  assert_false(chain->is_open);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  assert_true(chain->is_open); /* open */
  assert_int_equal(contact_of(chain)->cut_off_since, 0);
  assert_int_equal(heard(&s, next).kind, PWI_CHAIN_UPDATE);
  assert_int_equal(heard(&s, next).version, 1);
  assert_int_equal(s.replies.told_count, 0);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1));
  assert_int_equal(s.replies.told_count, 1);
  assert_int_equal(s.replies.told[0].number, 11);
  change(&s, 12); /* goes at once */
  assert_int_equal(heard(&s, next).version, 2);
  assert_int_equal(heard(&s, next).prior, 1);
  stop_scene(&s);
}

static void greet(struct scene *scene, const struct server_peer *peer, uint64_t node) {
  struct pwi_hello hello;
  uint8_t bytes[PWI_HELLO_MAX];
  size_t size;
  pwi_hello_init(&hello);
  hello.role = PWI_ROLE_SERVER;
  hello.node = node;
  assert_int_equal(pwi_hello_encode(&hello, bytes, sizeof bytes, &size), PAWL_OK);
  struct pwi_link_info info = {.peer = "here:1", .hello = bytes, .hello_size = size, .identity = ""};
  pwi_server_actor.link_up(scene->server, peer->link, &info);
}

/* It would answer on that link about chains of its own. */
static void test_another_process_at_the_address_of_a_follower_is_not_spoken_to(void **state) {
  (void)state;
  for (uint64_t node = 0; node <= 3; node++) {
    struct scene s;
    start_scene(&s, 1, "12");
    struct server_peer *next = find(&s, PEER_NEXT, 2);
    assert_non_null(next);
    greet(&s, next, node); /* 0: it has not joined yet */
    assert_int_equal(next->is_up, node == 2);
    assert_int_equal(s.net.sent_count > 0, node == 2);
    assert_int_equal(s.net.closed_count, node == 2 ? 0 : 1);
    stop_scene(&s);
  }
}

static void test_a_follower_is_sent_the_changes_that_it_lacks(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  for (uint64_t i = 1; i <= 4; i++) change(&s, i);
  struct server_peer *next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY, .version = 2, .other = 2));
  assert_int_equal(s.replies.told_count, 2);
  assert_int_equal(messages(&s, next), 3); /* OPEN, and two updates */
  assert_int_equal(heard(&s, next).version, 4);
  carried(&s);
  /* It asks again, with keys. */
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY, .version = 3, .other = 2, .full = true));
  assert_int_equal(messages(&s, next), 1);
  assert_int_equal(heard(&s, next).version, 4);
  assert_false(chain_of(&s)->is_full_wanted);
  stop_scene(&s);
}

/* The head serves a push of sender 7 to key 5 of vector 1. A signed push names a list that the head has kept. */
static void push(struct scene *scene, uint64_t task, enum pwi_request_keys keys) {
  static const uint64_t key = 5;
  struct pwi_chains *chains = &scene->server->chains;
  float one = 1;
  struct iovec part = {&one, sizeof one};
  struct pwi_request request = {
      .terms = {.kind = PWI_REQUEST_PUSH,
                .keys = keys,
                .keep = keys == PWI_KEYS_LIST,
                .vector = {1},
                .number = task,
                .prior = task - 1,
                .rows = 1,
                .claim = {0, 1000},
                .range = {0, 1000}},
      .sender = {7},
      .task = task,
      .keys = &key,
      .signature = pwi_keys_signature(&key, 1),
      .encoded = &key,
      .encoded_as = {.type = PWI_SECTION_KEYS, .value_type = PWI_TYPE_U64, .count = 1, .length = sizeof key},
      .values = &part,
      .value_parts = 1,
      .value_type = PAWL_F32};
  struct pwi_served served;
  struct pwi_log_entry *log_entry;
  struct pwi_chain *chain = pwi_chains_route(chains, &(struct pwi_place){.size = 1000}, pawl_range_of(0, 1000));
  assert_non_null(chain);
  assert_int_equal(pwi_chain_prepare(chains, chain, &request, sizeof one, 0, 0, &log_entry), PAWL_OK);
  pwi_shard_serve(scene->server->shard, &request, NULL, &served);
  assert_int_equal(served.effect, PWI_EFFECT_ROWS);
  pwi_chain_commit(chains, chain, scene->server->shard, &request, &served, NULL, log_entry);
}

/* The last message to the neighbour has the keys of its change. */
static bool has_keys(const struct scene *scene, const struct server_peer *peer) {
  size_t count, size;
  return section_of(last_sent(scene, peer->link.id, &count), PWI_SECTION_KEYS, &size) != NULL;
}

/* It could never apply the change otherwise. */
static void test_a_follower_that_lacks_a_list_of_keys_is_sent_it(void **state) {
  (void)state;
  struct scene s;
  struct pwi_entry entry = vector_of(1, "job/weights");
  start_scene(&s, 1, "12");
  open_entry(&s, &entry);
  know_sender(&s, 7);
  push(&s, 1, PWI_KEYS_LIST);
  push(&s, 2, PWI_KEYS_SIGNED);
  struct server_peer *next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY, .version = 1, .other = 1));
  assert_int_equal(heard(&s, next).version, 2);
  assert_false(has_keys(&s, next));
  carried(&s);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY, .version = 1, .other = 1, .full = true));
  assert_int_equal(messages(&s, next), 1);
  assert_int_equal(heard(&s, next).version, 2);
  assert_true(has_keys(&s, next));
  stop_scene(&s);
}

static void test_changes_wait_for_room_on_the_link(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  struct server_peer *next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  s.net.send_status = PAWL_QUEUE_FULL;
  change(&s, 1);
  assert_int_equal(chain_of(&s)->sent_count, 0);
  s.net.send_status = PAWL_OK;
  pwi_server_actor.writable(s.server, next->link);
  assert_int_equal(chain_of(&s)->sent_count, 1);
  assert_int_equal(heard(&s, next).version, 1);
  s.net.send_status = PAWL_NO_MEMORY;
  change(&s, 2);
  assert_int_equal(s.net.closed_count, 1); /* it is sent over the next link */
  assert_int_equal(s.net.closed[0].link, next->link.id);
  stop_scene(&s);
}

static void test_the_opening_waits_for_room_on_the_link(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  s.net.send_status = PAWL_QUEUE_FULL;
  struct server_peer *next = follow(&s, 2);
  for (int i = 0; i < 10; i++) pass(&s, 50);
  assert_int_equal(contact_of(chain_of(&s))->cut_off_since, s.net.now); /* not a reason to complain */
  make_room(&s, next);
  assert_int_equal(messages(&s, next), 1);
  assert_int_equal(heard(&s, next).kind, PWI_CHAIN_OPEN);
  for (int i = 0; i < 5; i++) look_heard(&s);
  assert_int_equal(complaints(&s), 1); /* it does not answer */
  stop_scene(&s);
}

/* The versions of a merged arc go on at the higher one, without a change. */
static void test_the_news_that_all_was_sent_waits_for_room_on_the_link(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  struct server_peer *next = follow(&s, 2);
  s.net.send_status = PAWL_QUEUE_FULL;
  chain_of(&s)->version = 5;
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  make_room(&s, next);
  assert_int_equal(messages(&s, next), 1);
  assert_int_equal(heard(&s, next).version, 5);
  assert_int_equal(heard(&s, next).prior, 0);
  stop_scene(&s);
}

static void test_a_lost_link_is_made_again_and_complained_of(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  struct pwi_chain *chain = chain_of(&s);
  struct server_peer *next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  take_down(&s, next);
  assert_false(chain->is_open);
  assert_null(contact_of(chain)->following);
  assert_int_equal(contact_of(chain)->cut_off_since, s.net.now);
  assert_int_not_equal(s.server->chain_timer.id, 0);
  size_t connects = s.net.connects;
  look_heard(&s);
  assert_int_equal(s.net.connects, connects + 1);
  assert_int_equal(warnings(&s), 0);
  look_heard(&s);
  assert_int_equal(warnings(&s), 1);
  look_heard(&s);
  assert_int_equal(complaints(&s), 0);
  look_heard(&s);
  assert_int_equal(complaints(&s), 1);
  for (int i = 0; i < 3; i++) look_heard(&s);
  assert_int_equal(complaints(&s), 1);
  look_heard(&s);
  assert_int_equal(complaints(&s), 2);
  assert_int_equal(warnings(&s), 2);
  next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  pass(&s, 1000);
  assert_int_equal(complaints(&s), 2);
  stop_scene(&s);
}

static void test_a_server_without_a_manager_complains_of_no_member(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  s.server->manager->is_up = false;
  for (int k = 0; k < 6; k++) pass(&s, 50);
  assert_int_equal(complaints(&s), 0);
  s.server->manager->is_up = true;
  s.net.now += 300 * MILLISECOND;
  pwi_server_chains_afresh(s.server); /* that time does not count, and the attempt is begun anew */
  assert_int_equal(contact_of(chain_of(&s))->cut_off_since, s.net.now);
  assert_int_equal(s.net.closed_count, 1);
  assert_int_equal(s.net.closed[0].why, PAWL_TIMED_OUT);
  pass(&s, 100);
  assert_int_equal(complaints(&s), 0);
  stop_scene(&s);
}

/* The link to the manager is up and carries nothing: this server may be cut off from all nodes. The manager answers
 * when the network is back, and the server tries to reach its neighbour before it complains. */
static void test_a_server_that_the_manager_does_not_hear_complains_of_no_member(void **state) {
  (void)state;
  for (int is_back = 0; is_back < 2; is_back++) {
    struct scene s;
    start_scene(&s, 1, "12");
    take_down(&s, follow(&s, 2));
    for (int i = 0; i < 10; i++) pass(&s, 50);
    assert_int_equal(warnings(&s), 1);
    assert_int_equal(s.net.closed_count, 0);
    answer_warning(&s);
    assert_int_equal(s.net.closed_count, 1); /* the attempt may have been lost */
    assert_int_equal(s.net.closed[0].why, PAWL_TIMED_OUT);
    take_down(&s, find(&s, PEER_NEXT, 2));
    size_t connects = s.net.connects;
    pass(&s, 50);
    assert_int_equal(s.net.connects, connects + 1);
    answer_warning(&s); /* an answer to nothing has no effect */
    assert_int_equal(complaints(&s), 0);
    if (is_back) say(&s, follow(&s, 2), MESSAGE(.kind = PWI_CHAIN_READY));
    for (int i = 0; i < 3; i++) pass(&s, 50);
    assert_int_equal(complaints(&s), is_back ? 0 : 1);
    stop_scene(&s);
  }
}

/* The link was lost again: an answer to the earlier warning says nothing about the time since. */
static void test_every_loss_of_a_link_is_warned_of_anew(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  take_down(&s, follow(&s, 2));
  for (int i = 0; i < 3; i++) look_heard(&s);
  assert_int_equal(warnings(&s), 1);
  struct server_peer *next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  take_down(&s, next);
  for (int i = 0; i < 10; i++) pass(&s, 50);
  assert_int_equal(warnings(&s), 2);
  assert_int_equal(complaints(&s), 0);
  stop_scene(&s);
}

static void test_a_server_that_stood_still_complains_of_no_member(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  take_down(&s, follow(&s, 2));
  pass(&s, 50);
  pass(&s, 900); /* it was stopped, and its timer is late */
  assert_int_equal(complaints(&s), 0);
  for (int i = 0; i < 3; i++) look_heard(&s);
  assert_int_equal(complaints(&s), 0);
  look_heard(&s);
  assert_int_equal(complaints(&s), 1);
  stop_scene(&s);
}

static void test_an_attempt_that_takes_a_second_is_given_up(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  s.net.now += 999 * MILLISECOND;
  pwi_server_chains_watch(s.server);
  assert_int_equal(s.net.closed_count, 0);
  s.net.now += MILLISECOND;
  pwi_server_chains_watch(s.server);
  assert_int_equal(s.net.closed_count, 1);
  assert_int_equal(s.net.closed[0].link, find(&s, PEER_NEXT, 2)->link.id);
  assert_int_equal(s.net.closed[0].why, PAWL_TIMED_OUT);
  stop_scene(&s);
}

/* The net says how late nodes are at present (pwi_net_allowance). */
static void test_on_a_busy_machine_a_neighbour_has_more_time(void **state) {
  (void)state;
  for (int is_heard = 0; is_heard < 2; is_heard++) {
    struct scene s;
    start_scene(&s, 1, "12");
    s.net.allowance = 400 * MILLISECOND;
    take_down(&s, follow(&s, 2));
    for (int i = 0; i < (is_heard ? 11 : 8); i++) is_heard ? look_heard(&s) : pass(&s, 50);
    assert_int_equal(warnings(&s), 1);
    assert_int_equal(complaints(&s), 0);
    if (!is_heard) answer_warning(&s);
    assert_int_equal(s.net.closed_count, 0); /* an attempt that is 400 ms old may still succeed */
    if (is_heard) look_heard(&s);
    assert_int_equal(complaints(&s), is_heard);
    stop_scene(&s);
  }
}

static void test_on_a_busy_machine_an_attempt_has_more_time(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  s.net.allowance = 400 * MILLISECOND;
  s.net.now += 1399 * MILLISECOND;
  pwi_server_chains_watch(s.server);
  assert_int_equal(s.net.closed_count, 0);
  s.net.now += MILLISECOND;
  pwi_server_chains_watch(s.server);
  assert_int_equal(s.net.closed_count, 1);
  stop_scene(&s);
}

static void test_a_follower_that_confirms_nothing_is_silent(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  struct server_peer *next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  for (int i = 0; i < 10; i++) pwi_server_chains_watch(s.server); /* nothing is expected */
  assert_int_equal(s.net.closed_count, 0);
  change(&s, 1);
  change(&s, 2);
  for (int i = 0; i < 3; i++) pwi_server_chains_watch(s.server);
  assert_int_equal(contact_of(chain_of(&s))->silences, 3);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1));
  pwi_server_chains_watch(s.server);
  assert_int_equal(contact_of(chain_of(&s))->silences, 0);
  for (int i = 0; i < 4; i++) pwi_server_chains_watch(s.server);
  assert_int_equal(complaints(&s), 1);
  assert_int_equal(s.net.closed_count, 1);
  assert_int_equal(s.net.closed[0].link, next->link.id);
  assert_int_equal(s.net.closed[0].why, PAWL_LINK_SILENT);
  stop_scene(&s);
}

static void test_a_target_that_is_being_filled_is_not_opened(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12f");
  struct pwi_chain *chain = chain_of(&s);
  assert_int_equal(s.net.connects, 0); /* the fill makes the link */
  assert_null(pwi_server_reach(s.server, 2));
  struct server_peer *next = follow(&s, 2);
  assert_int_equal(messages(&s, next), 0);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  assert_false(chain->is_open);
  change(&s, 1);
  assert_int_equal(s.replies.told_count, 1);
  assert_int_equal(messages(&s, next), 0);
  stop_scene(&s);
}

static void test_a_head_without_memory_says_so(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  pwi_server_starve(s.server);
  pwi_server_starve(s.server);
  assert_int_equal(complaints(&s), 1);
  s.net.now += 200 * MILLISECOND;
  pwi_server_starve(s.server);
  assert_int_equal(complaints(&s), 2);
  see(&s, 2, "1"); /* nobody could take over */
  s.net.now += 200 * MILLISECOND;
  pwi_server_starve(s.server);
  assert_int_equal(complaints(&s), 2);
  stop_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test(test_##name)
      T(a_head_opens_the_chain_and_sends_changes),
      T(another_process_at_the_address_of_a_follower_is_not_spoken_to),
      T(a_follower_is_sent_the_changes_that_it_lacks),
      T(a_follower_that_lacks_a_list_of_keys_is_sent_it),
      T(changes_wait_for_room_on_the_link),
      T(the_opening_waits_for_room_on_the_link),
      T(the_news_that_all_was_sent_waits_for_room_on_the_link),
      T(a_lost_link_is_made_again_and_complained_of),
      T(a_server_without_a_manager_complains_of_no_member),
      T(a_server_that_the_manager_does_not_hear_complains_of_no_member),
      T(every_loss_of_a_link_is_warned_of_anew),
      T(a_server_that_stood_still_complains_of_no_member),
      T(an_attempt_that_takes_a_second_is_given_up),
      T(on_a_busy_machine_a_neighbour_has_more_time),
      T(on_a_busy_machine_an_attempt_has_more_time),
      T(a_follower_that_confirms_nothing_is_silent),
      T(a_target_that_is_being_filled_is_not_opened),
      T(a_head_without_memory_says_so),
#undef T
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
