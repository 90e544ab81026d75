/* Links: how they come up, who may refuse them, how they are found dead. */
#include <string.h>
#include <unistd.h>

#include "pattern.h"
#include "scene.h"
#include "suite.h"

static void test_a_link_comes_up_on_both_sides_with_the_peers_hello(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL), *there = scene_listener(scene, 1, NULL);
  uint8_t long_hello[PWI_NET_HELLO_MAX];
  pattern_fill(5, 0, long_hello, sizeof long_hello);
  assert_status(PARTY_CALL(here, pwi_net_hello_set(here->net, "first", 5)), PAWL_OK);
  assert_status(PARTY_CALL(here, pwi_net_hello_set(here->net, "i am here", 9)), PAWL_OK);
  assert_status(PARTY_CALL(there, pwi_net_hello_set(there->net, long_hello, sizeof long_hello)), PAWL_OK);

  struct pair pair = scene_join(scene, here, there);
  assert_int_equal(pair.theirs->hello_size, 9);
  assert_memory_equal(pair.theirs->hello, "i am here", 9);
  assert_int_equal(pair.ours->hello_size, sizeof long_hello);
  assert_memory_equal(pair.ours->hello, long_hello, sizeof long_hello);
  assert_false(pair.ours->accepted);
  assert_true(pair.theirs->accepted);
}

static void test_both_sides_agree_on_what_the_pair_can_do(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  unsigned traits = scene_kind->traits;
  assert_int_equal(pair.ours->can, pair.theirs->can);
  assert_int_equal(!!(pair.ours->can & PWI_LINK_HAS_PLANE), !!(traits & WORLD_PLANE));
  assert_int_equal(!!(pair.ours->can & PWI_LINK_IN_PLACE), !!(traits & WORLD_IN_PLACE));
  assert_int_equal(!!(pair.ours->can & PWI_LINK_ENCRYPTED), !!(traits & WORLD_ENCRYPTED));
}

static void test_a_hello_may_be_empty_but_not_too_long(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL), *there = scene_listener(scene, 1, NULL);
  uint8_t hello[PWI_NET_HELLO_MAX + 1] = {0};
  assert_status(PARTY_CALL(there, pwi_net_hello_set(there->net, "kept", 4)), PAWL_OK);
  assert_status(PARTY_CALL(there, pwi_net_hello_set(there->net, hello, sizeof hello)), PAWL_TOO_LARGE);
  struct pair pair = scene_join(scene, here, there);
  assert_int_equal(pair.theirs->hello_size, 0);
  assert_int_equal(pair.ours->hello_size, 4);
  assert_memory_equal(pair.ours->hello, "kept", 4);
}

static void test_a_hello_is_what_was_set_last_for_each_new_link(void **state) {
  struct scene *scene = *state;
  struct pair first = scene_pair(scene, NULL);
  assert_status(PARTY_CALL(first.there, pwi_net_hello_set(first.there->net, "later", 5)), PAWL_OK);
  struct pair second = scene_join(scene, first.here, first.there);
  assert_int_equal(first.ours->hello_size, 0);
  assert_int_equal(second.ours->hello_size, 5);
}

static void test_a_refusal_takes_the_connector_down_with_its_status(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL), *there = scene_listener(scene, 1, NULL);
  there->greet_answer = PAWL_FORBIDDEN;
  struct party_link *link;
  assert_status(party_connect(here, there->address, &link), PAWL_OK);
  SCENE_UNTIL(scene, link->state == PARTY_DOWN);
  assert_status(link->why, PAWL_FORBIDDEN);
  scene_idle(scene, 20 * WORLD_MS); /* the actor faults if it hears more of it */
  assert_int_equal(there->link_count, 1);
  assert_int_equal(there->links[0]->state, PARTY_REFUSED);
  struct pwi_net_counts counts;
  pwi_net_counts(there->net, &counts);
  assert_int_equal(counts.links_refused, 1);
  assert_int_equal(counts.links_up, 0);

  there->greet_answer = PAWL_OK;
  scene_join(scene, here, there);
}

static void test_a_connector_that_refuses_goes_down_and_so_does_its_peer(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL), *there = scene_listener(scene, 1, NULL);
  here->greet_answer = PAWL_EXISTS;
  struct party_link *link;
  assert_status(party_connect(here, there->address, &link), PAWL_OK);
  SCENE_UNTIL(scene, link->state == PARTY_DOWN);
  assert_status(link->why, PAWL_EXISTS);
  assert_false(link->was_up);
  /* The peer may have been up for a moment; then it goes down with the same status. */
  SCENE_UNTIL(scene, party_up_count(there) == 0);
  scene_idle(scene, 20 * WORLD_MS);
  struct party_link *peer = party_newest(there);
  if (peer && peer->was_up) assert_status(peer->why, PAWL_EXISTS);
}

static void test_connecting_to_nobody_goes_down_and_never_up(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL), *there = scene_listener(scene, 1, NULL);
  char address[PWI_NET_ADDRESS_MAX];
  memcpy(address, there->address, sizeof address);
  party_kill(there);
  struct party_link *link;
  assert_status(party_connect(here, address, &link), PAWL_OK);
  SCENE_UNTIL(scene, link->state == PARTY_DOWN);
  assert_false(link->was_up);
  assert_status(link->why, PAWL_LINK_REFUSED);
}

static void test_an_address_that_cannot_be_read_is_invalid(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL);
  char endless[2 * PWI_NET_ADDRESS_MAX];
  memset(endless, 'x', sizeof endless);
  endless[sizeof endless - 1] = 0;
  struct party_link *link = NULL;
  assert_status(party_connect(here, "", &link), PAWL_INVALID);
  assert_status(party_connect(here, endless, &link), PAWL_INVALID);
  assert_status(PARTY_CALL(here, pwi_net_listen(here->net, "")), PAWL_INVALID);
  assert_status(PARTY_CALL(here, pwi_net_listen(here->net, endless)), PAWL_INVALID);
  scene_idle(scene, 5 * WORLD_MS);
  assert_null(link);
}

static void test_an_address_is_known_once_it_is_listened_at(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL), *there = scene_party(scene, 1, NULL);
  assert_string_equal(pwi_net_address(there->net), "");
  assert_status(party_listen(there, 0, NULL), PAWL_OK);
  assert_string_not_equal(there->address, "");
  scene_join(scene, here, there);
}

static void test_more_than_one_address_may_be_listened_at(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL), *there = scene_listener(scene, 1, NULL);
  char first[PWI_NET_ADDRESS_MAX], second[PWI_NET_ADDRESS_MAX];
  memcpy(first, there->address, sizeof first);
  assert_status(party_listen(there, 1, NULL), PAWL_OK);
  assert_string_equal(there->address, first);
  scene_join(scene, here, there);
  scene_kind->address(scene->world, 1, 1, second);
  memcpy(there->address, second, sizeof second);
  scene_join(scene, here, there);
  assert_int_equal(party_up_count(there), 2);
}

static void test_an_address_in_use_cannot_be_listened_at(void **state) {
  struct scene *scene = *state;
  struct party *here = scene_party(scene, 0, NULL), *there = scene_listener(scene, 1, NULL);
  assert_status(PARTY_CALL(here, pwi_net_listen(here->net, there->address)), PAWL_NODE_ADDRESS);
  scene_join(scene, here, there);
}

static uint64_t whole_messages(const struct party *party) {
  uint64_t count = 0;
  for (size_t i = 0; i < party->link_count; i++)
    count += party->links[i]->in[PWI_LANE_LINK].whole + party->links[i]->in[PWI_LANE_DATA].whole;
  return count;
}

static void test_two_nodes_may_have_many_links(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  assert_status(party_listen(pair.here, 0, NULL), PAWL_OK);
  for (int i = 0; i < 5; i++) {
    scene_join(scene, pair.here, pair.there);
    scene_join(scene, pair.there, pair.here);
  }
  assert_int_equal(party_up_count(pair.here), 11);
  assert_int_equal(party_up_count(pair.there), 11);
  for (size_t i = 0; i < 11; i++) {
    struct packet packet = {.size = 100 * i};
    assert_status(party_send(pair.here, pair.here->links[i], &packet), PAWL_OK);
  }
  SCENE_UNTIL(scene, whole_messages(pair.there) == 11);
}

static void test_link_numbers_rise(void **state) {
  struct scene *scene = *state;
  uint64_t last[2] = {0};
  struct party *here = scene_party(scene, 0, NULL), *there = scene_listener(scene, 1, NULL);
  for (int i = 0; i < 40; i++) { /* the actor sees if one is used again */
    struct pair pair = scene_join(scene, here, there);
    struct pair busy = i % 7 ? pair : scene_join(scene, here, there); /* some stay, so that places are used again */
    assert_true(pair.ours->link.id > last[0] && pair.theirs->link.id > last[1]);
    assert_true(busy.ours->link.id >= pair.ours->link.id && busy.theirs->link.id >= pair.theirs->link.id);
    last[0] = busy.ours->link.id;
    last[1] = busy.theirs->link.id;
    party_close(i % 2 ? here : there, i % 2 ? pair.ours : pair.theirs, PAWL_OK);
    SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN && pair.theirs->state == PARTY_DOWN);
  }
  struct pwi_net_counts counts;
  pwi_net_counts(here->net, &counts);
  assert_int_equal(counts.links_up, 46);
}

static void test_an_idle_link_stays_up(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  pwi_net_limits_init(&limits);
  limits.silence_ns = 400 * WORLD_MS;
  struct pair pair = scene_pair(scene, &limits);
  scene_idle(scene, 1200 * WORLD_MS);
  assert_int_equal(pair.ours->state, PARTY_UP);
  assert_int_equal(pair.theirs->state, PARTY_UP);
}

static void test_a_silent_peer_is_found(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  pwi_net_limits_init(&limits);
  struct pair pair = scene_pair(scene, &limits);
  scene_kind->pause(scene->world, 1, true);
  SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN);
  assert_status(pair.ours->why, PAWL_LINK_SILENT);
  scene_kind->pause(scene->world, 1, false);
  SCENE_UNTIL(scene, pair.theirs->state == PARTY_DOWN);
}

static void test_a_node_that_was_stopped_itself_judges_nobody(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  pwi_net_limits_init(&limits);
  struct pair pair = scene_pair(scene, &limits);
  scene_idle(scene, 100 * WORLD_MS);
  scene_kind->pause(scene->world, 0, true);
  scene_kind->pause(scene->world, 1, true);
  scene_idle(scene, 700 * WORLD_MS);
  scene_kind->pause(scene->world, 0, false);
  scene_kind->pause(scene->world, 1, false);
  scene_idle(scene, 200 * WORLD_MS);
  assert_int_equal(pair.ours->state, PARTY_UP);
  assert_int_equal(pair.theirs->state, PARTY_UP);
}

static void take_long(struct party *party, enum party_event event, struct party_link *link, uint64_t value) {
  (void)party, (void)link, (void)value;
  if (event == PARTY_ON_END) usleep(10000);
}

/* Each message takes less time than would be noticed, all of them far more than silence may last. */
static void test_a_busy_node_does_not_take_others_for_silent(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  if (!(scene_kind->traits & WORLD_POLLED)) skip(); /* in the simulator handling takes no time */
  pwi_net_limits_init(&limits);
  struct pair pair = scene_pair(scene, &limits);
  pair.there->hook = take_long;
  for (int i = 0; i < 60; i++) {
    struct packet packet = {.lane = PWI_LANE_DATA, .size = 100};
    assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
  }
  SCENE_UNTIL(scene, pair.theirs->in[PWI_LANE_DATA].whole == 60 || pair.theirs->state == PARTY_DOWN);
  assert_int_equal(pair.theirs->in[PWI_LANE_DATA].whole, 60);
  assert_int_equal(pair.ours->state, PARTY_UP);
}

static void test_a_link_that_does_not_come_up_in_time_goes_down(void **state) {
  struct scene *scene = *state;
  struct pwi_net_limits limits;
  party_default_limits(&limits);
  limits.greet_ns = 150 * WORLD_MS;
  struct party *here = scene_party(scene, 0, &limits), *there = scene_listener(scene, 1, NULL);
  scene_kind->pause(scene->world, 1, true);
  struct party_link *link;
  assert_status(party_connect(here, there->address, &link), PAWL_OK);
  SCENE_UNTIL(scene, link->state == PARTY_DOWN);
  assert_false(link->was_up);
  assert_int_not_equal(link->why, PAWL_OK);
  scene_kind->pause(scene->world, 1, false);
  SCENE_UNTIL(scene, party_up_count(there) == 0);
  scene_idle(scene, 20 * WORLD_MS);
  assert_int_equal(party_up_count(there), 0);
  do { /* a busy machine may need longer than the limit */
    assert_status(party_connect(here, there->address, &link), PAWL_OK);
    SCENE_UNTIL(scene, link->state == PARTY_DOWN || link->state == PARTY_UP);
  } while (link->state == PARTY_DOWN);
}

static void check_not_found(struct party *party, struct pwi_link link) {
  uint8_t head[PWI_NET_HEAD_SIZE] = {0}, bytes[PWI_NET_TOKEN_MAX] = {0};
  size_t size;
  struct pwi_remote remote = {1};
  struct pwi_region *region;
  for (int lane = 0; lane < 2; lane++) {
    struct pwi_send send = {.lane = (enum pwi_lane)lane, .head = head, .cookie = 7};
    assert_status(PARTY_CALL(party, pwi_net_send(party->net, link, &send)), PAWL_NOT_FOUND);
  }
  struct pwi_net *net = party->net;
  assert_status(PARTY_CALL(party, pwi_net_put(net, link, remote, 0, bytes, 8, 0, 7)), PAWL_NOT_FOUND);
  assert_status(PARTY_CALL(party, pwi_net_get(net, link, remote, 0, bytes, 8, 7)), PAWL_NOT_FOUND);
  assert_status(PARTY_CALL(party, pwi_net_fence(net, link, 7)), PAWL_NOT_FOUND);
  assert_status(PARTY_CALL(party, pwi_net_remote_open(net, link, bytes, sizeof bytes, &remote)), PAWL_NOT_FOUND);
  assert_status(PARTY_CALL(party, pwi_net_region_open(net, 4096, &region)), PAWL_OK);
  assert_status(PARTY_CALL(party, pwi_net_region_share(net, region, link, PWI_ACCESS_READ, bytes, &size)),
                PAWL_NOT_FOUND);
  pwi_net_region_close(net, region);
  pwi_net_close(net, link, PAWL_OK);
}

static void test_calls_on_a_link_that_is_down_or_never_was_find_nothing(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  check_not_found(pair.here, (struct pwi_link){0});
  check_not_found(pair.here, (struct pwi_link){pair.ours->link.id + 1000000});
  party_close(pair.here, pair.ours, PAWL_OK);
  SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN && pair.theirs->state == PARTY_DOWN);
  check_not_found(pair.here, pair.ours->link);
  check_not_found(pair.there, pair.theirs->link);
  scene_idle(scene, 20 * WORLD_MS);
}

static void test_a_lost_link_that_is_not_yet_down_takes_messages_or_is_not_found(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  party_kill(pair.there);
  struct packet packet = {.size = 10};
  pawl_status status = PAWL_OK;
  for (int i = 0; i < 10 && status == PAWL_OK; i++) status = party_send(pair.here, pair.ours, &packet);
  if (status != PAWL_OK) assert_status(status, PAWL_NOT_FOUND);
  SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN);
}

static void test_an_actor_may_leave_out_what_it_does_not_use(void **state) {
  struct scene *scene = *state;
  struct party *there = &scene->parties[1];
  assert_status(party_open(there, scene->world, 1, NULL, &party_bare_actor), PAWL_OK);
  assert_status(party_listen(there, 0, NULL), PAWL_OK);
  struct pair pair = scene_pair(scene, NULL);
  struct packet packet = {.size = 5000, .quiet = true};
  assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
  assert_status(party_send(pair.there, pair.theirs, &packet), PAWL_OK);
  pwi_net_wake(there->net);

  struct pwi_region *region;
  struct pwi_remote remote;
  uint8_t token[PWI_NET_TOKEN_MAX];
  size_t size;
  assert_status(pwi_net_region_open(there->net, 64, &region), PAWL_OK);
  assert_status(pwi_net_region_share(there->net, region, pair.theirs->link, PWI_ACCESS_WRITE, token, &size), PAWL_OK);
  assert_status(pwi_net_remote_open(pair.here->net, pair.ours->link, token, size, &remote), PAWL_OK);
  assert_status(pwi_net_put(pair.here->net, pair.ours->link, remote, 0, "x", 1, 9, 0), PAWL_OK);
  SCENE_UNTIL(scene, pair.theirs->in[0].whole == 1 && pair.ours->in[0].whole == 1 &&
                         *(char *)pwi_net_region_memory(region) == 'x');
  scene_idle(scene, 20 * WORLD_MS);
  pwi_net_region_close(there->net, region);
}

static void test_counts_tell_what_went_over_the_links(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  for (unsigned i = 0; i < 10; i++) {
    struct packet packet = {.lane = i % 2 ? PWI_LANE_DATA : PWI_LANE_LINK, .size = 1000 * i};
    assert_status(party_send(pair.here, pair.ours, &packet), PAWL_OK);
  }
  SCENE_UNTIL(scene, pair.theirs->in[0].whole == 5 && pair.theirs->in[1].whole == 5 && pair.ours->outstanding == 0);
  struct pwi_net_counts here, there;
  pwi_net_counts(pair.here->net, &here);
  pwi_net_counts(pair.there->net, &there);
  assert_int_equal(here.messages_sent, 10);
  assert_int_equal(there.messages_received, 10);
  assert_int_equal(here.bytes_sent, 45000 + 10 * PWI_NET_HEAD_SIZE);
  assert_int_equal(there.bytes_received, 45000 + 10 * PWI_NET_HEAD_SIZE);
  assert_int_equal(here.messages_received + there.messages_sent, 0);
  assert_int_equal(here.links_up, 1);
  assert_int_equal(there.links_up, 1);
}

int suite_links(void) {
  const struct CMUnitTest tests[] = {
      SCENE_TEST(test_a_link_comes_up_on_both_sides_with_the_peers_hello),
      SCENE_TEST(test_both_sides_agree_on_what_the_pair_can_do),
      SCENE_TEST(test_a_hello_may_be_empty_but_not_too_long),
      SCENE_TEST(test_a_hello_is_what_was_set_last_for_each_new_link),
      SCENE_TEST(test_a_refusal_takes_the_connector_down_with_its_status),
      SCENE_TEST(test_a_connector_that_refuses_goes_down_and_so_does_its_peer),
      SCENE_TEST(test_connecting_to_nobody_goes_down_and_never_up),
      SCENE_TEST(test_an_address_that_cannot_be_read_is_invalid),
      SCENE_TEST(test_an_address_is_known_once_it_is_listened_at),
      SCENE_TEST(test_more_than_one_address_may_be_listened_at),
      SCENE_TEST(test_an_address_in_use_cannot_be_listened_at),
      SCENE_TEST(test_two_nodes_may_have_many_links),
      SCENE_TEST(test_link_numbers_rise),
      SCENE_TEST(test_an_idle_link_stays_up),
      SCENE_TEST(test_a_silent_peer_is_found),
      SCENE_TEST(test_a_busy_node_does_not_take_others_for_silent),
      SCENE_TEST(test_a_node_that_was_stopped_itself_judges_nobody),
      SCENE_TEST(test_a_link_that_does_not_come_up_in_time_goes_down),
      SCENE_TEST(test_calls_on_a_link_that_is_down_or_never_was_find_nothing),
      SCENE_TEST(test_a_lost_link_that_is_not_yet_down_takes_messages_or_is_not_found),
      SCENE_TEST(test_an_actor_may_leave_out_what_it_does_not_use),
      SCENE_TEST(test_counts_tell_what_went_over_the_links),
  };
  return cmocka_run_group_tests_name("links", tests, NULL, NULL);
}
