/* Which push or pull of a group goes through a relay, what it says there, and what happens if that fails. */
#include "client/client_testing.h"
#include "client/relaying.h"
#include "protocol/contributors.h"

#define RELAY (UINT64_C(20) | PWI_PEER_IS_SENDER)

static void list_sender(struct pwi_client *client, uint64_t id, const char *job) {
  struct pwi_membership_sender sender = {.sender = {id}};
  snprintf(sender.job, sizeof sender.job, "%s", job);
  snprintf(sender.address, sizeof sender.address, "somewhere:1");
  assert_int_equal(pwi_membership_add(client->membership, &sender), PAWL_OK);
}

/* This client is the only member of the group. The relay and both servers have links. */
static void start_with_relay(struct scene *scene) {
  static struct pwi_random random;
  pwi_random_init(&random, 1, 1);
  start_scene(scene);
  scene->client->config.random = &random; /* for filters */
  list_sender(scene->client, SENDER, "work");
  list_sender(scene->client, RELAY & ~PWI_PEER_IS_SENDER, "pawl-relay.none");
  assert_int_equal(
      pwi_membership_join(scene->client->membership, scene->group->entry.id, 1, (struct pwi_sender){SENDER}), PAWL_OK);
  for (uint64_t node = 1; node <= 2; node++) bring_up(scene, node);
  bring_up(scene, RELAY);
}

#define START_WITH_RELAY                                                                                               \
  (void)state;                                                                                                         \
  struct scene scene;                                                                                                  \
  start_with_relay(&scene)

/* Starts the push of a tick. Returns its part. */
static struct client_part *push_tick(struct scene *scene, struct call *call, uint64_t tick) {
  *call = (struct call){.task.finished = call_finished};
  struct pwi_where where = {.range = {0, 10}, .aggregate = scene->group->entry.id.id, .tick = tick};
  assert_int_equal(pwi_client_start(scene->client, &call->task, scene->flow, PWI_REQUEST_PUSH, &where, scene->in, NULL),
                   PAWL_OK);
  check_scene(scene);
  return scene->flow->last;
}

/* Starts a pull of a member that has finished `tick`. */
static struct client_part *pull_old(struct scene *scene, struct call *call, uint64_t tick, uint64_t staleness,
                                    struct pwi_keylist *list) {
  *call = (struct call){.task.finished = call_finished};
  struct pwi_where where = {
      .range = {0, 10}, .list = list, .group = scene->group->entry.id.id, .tick = tick, .staleness = staleness};
  if (list) where.range = (struct pawl_range){0, 0};
  assert_int_equal(
      pwi_client_start(scene->client, &call->task, scene->flow, PWI_REQUEST_PULL, &where, NULL, scene->out), PAWL_OK);
  check_scene(scene);
  return scene->flow->last;
}

static struct request request_for(const struct scene *scene, const struct client_part *part) {
  struct request found = {0};
  for (size_t i = 0; i < scene->net.sent_count; i++) {
    if (scene->net.sent[i].link == MANAGER_LINK) continue;
    struct request request = read_request(&scene->net.sent[i]);
    if (request.terms.number == number_of(part) && scene->net.sent[i].link == part->peer->link->link.id)
      found = request;
  }
  assert_non_null(found.sent);
  return found;
}

/* The net has sent the request before the answer comes. */
static void reply(struct scene *scene, const struct client_part *part, enum pwi_code code, uint64_t version) {
  const struct stub_sent *sent = request_for(scene, part).sent;
  if (sent->cookie) net_done(scene, sent);
  answer_with(scene, part, (struct pwi_outcome){.code = code, .version = version});
}

static void expect_at(const struct client_part *part, uint64_t node) {
  assert_int_equal(part->state, PART_SENT);
  assert_int_equal(part->peer->node, node);
}

/* --- pushes --------------------------------------------------------------------------------------------- */

static void test_a_push_behind_another_one_does_not_go_through_a_relay(void **state) {
  START_WITH_RELAY;
  struct call first, second, third;
  struct client_part *one = push_tick(&scene, &first, 1);
  expect_at(one, RELAY);
  struct client_part *two = push_tick(&scene, &second, 2);
  expect_at(two, 1);
  reply(&scene, one, PWI_CODE_OK, 5);
  reply(&scene, two, PWI_CODE_OK, 6);
  assert_over(&first, PAWL_OK);
  assert_over(&second, PAWL_OK);
  expect_at(push_tick(&scene, &third, 3), RELAY);
  stop_scene(&scene);
}

static void test_a_push_that_a_relay_does_not_take_goes_to_the_server_as_it_is(void **state) {
  static const enum pwi_code codes[] = {PWI_CODE_DIRECT, PWI_CODE_UNPROVEN, PWI_CODE_NOT_HERE};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    START_WITH_RELAY;
    struct call call;
    struct client_part *part = push_tick(&scene, &call, 1);
    uint64_t task = request_for(&scene, part).control.head.task;
    reply(&scene, part, codes[i], 0);
    expect_at(part, 1);
    assert_int_equal(request_for(&scene, part).control.head.task, task);
    reply(&scene, part, PWI_CODE_NOT_HERE, 0);
    SEE(&scene, 2, {0, 3}, {500, 2}); /* nor does it go back to the relay */
    bring_up(&scene, 3);
    expect_at(part, 3);
    reply(&scene, part, PWI_CODE_OK, 0);
    assert_over(&call, PAWL_OK);
    stop_scene(&scene);
  }
}

static void test_pushes_with_an_operand_or_a_codec_do_not_go_through_a_relay(void **state) {
  START_WITH_RELAY;
  static const float operand[1] = {1};
  struct call call = {.task.finished = call_finished};
  struct pwi_where where = {
      .range = {0, 10}, .aggregate = scene.group->entry.id.id, .tick = 1, .operand = operand, .operand_rows = 1};
  assert_int_equal(pwi_client_start(scene.client, &call.task, scene.flow, PWI_REQUEST_PUSH, &where, scene.in, NULL),
                   PAWL_OK);
  expect_at(scene.flow->last, 1);
  reply(&scene, scene.flow->last, PWI_CODE_OK, 0);
  char problem[200];
  assert_int_equal(pwi_client_filter(scene.client, scene.flow, "zeros", NULL, problem, sizeof problem), PAWL_OK);
  struct call coded;
  expect_at(push_tick(&scene, &coded, 2), 1);
  stop_scene(&scene);
}

static void test_a_relay_that_does_not_answer_loses_its_pushes_after_three_seconds(void **state) {
  START_WITH_RELAY;
  struct call call;
  struct client_part *part = push_tick(&scene, &call, 1);
  scene.net.now += 2999 * MILLISECOND;
  pwi_client_look_at_peers(scene.client, scene.net.now);
  expect_at(part, RELAY);
  scene.net.now += MILLISECOND;
  pwi_client_look_at_peers(scene.client, scene.net.now);
  pwi_client_send_due(scene.client);
  expect_at(part, 1);
  stop_scene(&scene);
}

static void test_a_relay_whose_link_was_lost_is_not_used_for_a_while(void **state) {
  START_WITH_RELAY;
  struct call calls[3];
  struct client_part *part = push_tick(&scene, &calls[0], 1);
  net_done(&scene, request_for(&scene, part).sent);
  take_down(&scene, RELAY, PAWL_LINK_RESET);
  expect_at(part, 1);
  reply(&scene, part, PWI_CODE_OK, 0);
  bring_up(&scene, RELAY);
  scene.net.now += 499 * MILLISECOND;
  part = push_tick(&scene, &calls[1], 2);
  expect_at(part, 1);
  reply(&scene, part, PWI_CODE_OK, 0);
  scene.net.now += MILLISECOND;
  expect_at(push_tick(&scene, &calls[2], 3), RELAY);
  stop_scene(&scene);
}

/* --- pulls ---------------------------------------------------------------------------------------------- */

/* The client is sure of the version 9 of its keys. */
static void start_sure(struct scene *scene) {
  struct call call;
  start_with_relay(scene);
  scene->group->awaited = 5;
  struct client_part *part = pull_old(scene, &call, 5, 0, NULL);
  expect_at(part, RELAY);
  assert_int_equal(request_for(scene, part).terms.staleness, 0); /* it knows no version yet */
  reply(scene, part, PWI_CODE_OK, 9);
}

#define START_SURE                                                                                                     \
  (void)state;                                                                                                         \
  struct scene scene;                                                                                                  \
  start_sure(&scene)

/* Pulls, and returns the staleness that the relay is told. */
static uint64_t staleness_of(struct scene *scene, uint64_t tick, uint64_t staleness) {
  struct call call;
  struct client_part *part = pull_old(scene, &call, tick, staleness, NULL);
  expect_at(part, RELAY);
  struct request request = request_for(scene, part);
  assert_int_equal(request.terms.other, scene->group->entry.id.id);
  assert_int_equal(request.control.head.tick, scene->group->awaited);
  if (request.terms.staleness > 0) assert_int_equal(request.terms.prior, 9);
  reply(scene, part, PWI_CODE_OK, 9);
  return request.terms.staleness;
}

static void test_a_pull_says_how_old_its_rows_may_be(void **state) {
  START_SURE;
  assert_int_equal(staleness_of(&scene, 5, 0), 1);
  assert_int_equal(staleness_of(&scene, 5, 3), 4);
  assert_int_equal(staleness_of(&scene, 7, 3), 2);
  assert_int_equal(staleness_of(&scene, 7, 2), 1);
  assert_int_equal(staleness_of(&scene, 7, 1), 0); /* it does not know that all have finished tick 6 */
  stop_scene(&scene);
}

static void test_a_pull_wants_rows_of_now_if_it_knows_no_version(void **state) {
  START_SURE;
  struct call early, late, own;
  struct client_part *before = pull_old(&scene, &early, 5, 0, NULL);
  push(&scene, &own, 0, 10);
  struct client_part *pushed = scene.flow->last;
  expect_at(pushed, 1);
  reply(&scene, pushed, PWI_CODE_OK, 0); /* no version: it may be younger than any */
  reply(&scene, before, PWI_CODE_OK, 9); /* rows of an earlier request do not settle that */
  struct client_part *part = pull_old(&scene, &late, 5, 0, NULL);
  assert_int_equal(request_for(&scene, part).terms.staleness, 0);
  reply(&scene, part, PWI_CODE_OK, 9);
  assert_int_equal(staleness_of(&scene, 5, 0), 1);
  stop_scene(&scene);
}

static void test_a_pull_wants_the_version_of_the_last_push(void **state) {
  START_SURE;
  struct call own, call;
  push(&scene, &own, 0, 10);
  reply(&scene, scene.flow->last, PWI_CODE_OK, 12);
  struct client_part *part = pull_old(&scene, &call, 5, 3, NULL);
  assert_int_equal(request_for(&scene, part).terms.staleness, 4);
  assert_int_equal(request_for(&scene, part).terms.prior, 12);
  stop_scene(&scene);
}

static void test_a_pull_beside_a_push_of_its_own_goes_to_the_server(void **state) {
  START_SURE;
  struct call own, beside, after;
  push(&scene, &own, 0, 10);
  struct client_part *pushed = scene.flow->last;
  expect_at(pull_old(&scene, &beside, 5, 0, NULL), 1);
  reply(&scene, scene.flow->last, PWI_CODE_OK, 9);
  reply(&scene, pushed, PWI_CODE_OK, 9);
  expect_at(pull_old(&scene, &after, 5, 0, NULL), RELAY);
  stop_scene(&scene);
}

/* A relay keeps no lists. */
static void test_a_list_of_keys_goes_to_a_relay_whole(void **state) {
  START_SURE;
  static const uint64_t keys[] = {1, 5, 9};
  struct pwi_keylist *list;
  assert_int_equal(pwi_keylist_create(scene.client, &scene.flow->entry, keys, 3, &list), PAWL_OK);
  for (int i = 0; i < 3; i++) {
    struct call call;
    struct client_part *part = pull_old(&scene, &call, 5, 0, list);
    expect_at(part, RELAY);
    struct request request = request_for(&scene, part);
    assert_int_equal(request.terms.keys, PWI_KEYS_LIST);
    assert_true(bytes_in(&request, PWI_SECTION_KEYS) > 0);
    reply(&scene, part, PWI_CODE_OK, 9);
  }
  pwi_keylist_release(list);
  stop_scene(&scene);
}

static void test_a_pull_with_clocks_or_codecs_goes_to_the_server(void **state) {
  START_SURE;
  struct pwi_clock_list clocks = {0};
  struct call call = {.task = {.finished = call_finished, .clocks = &clocks}}, coded;
  struct pwi_where where = {.range = {0, 10}, .group = scene.group->entry.id.id, .tick = 5};
  assert_int_equal(pwi_client_start(scene.client, &call.task, scene.flow, PWI_REQUEST_PULL, &where, NULL, scene.out),
                   PAWL_OK);
  expect_at(scene.flow->last, 1);
  char problem[200];
  assert_int_equal(pwi_client_filter(scene.client, scene.flow, "zeros", NULL, problem, sizeof problem), PAWL_OK);
  expect_at(pull_old(&scene, &coded, 5, 0, NULL), 1);
  pwi_clock_list_fini(&clocks);
  stop_scene(&scene);
}

/* The rows from the server would lie in the same memory. */
static void test_a_pull_stays_at_a_relay_whose_rows_are_on_their_way(void **state) {
  START_SURE;
  struct call call;
  struct client_part *part = pull_old(&scene, &call, 5, 0, NULL);
  expect_at(part, RELAY);
  net_done(&scene, request_for(&scene, part).sent);
  struct pwi_receive receive = begin_answer(&scene, part);
  scene.net.now += 3000 * MILLISECOND;
  pwi_client_look_at_peers(scene.client, scene.net.now);
  expect_at(part, RELAY);
  end_answer(&scene, RELAY, receive, PAWL_OK);
  assert_over(&call, PAWL_OK);
  stop_scene(&scene);
}

/* --- requests of a relay -------------------------------------------------------------------------------- */

/* Passes on a push of sender 11 to the claim. */
static struct client_part *relay_push(struct scene *scene, struct call *call, struct pwi_relayed *relayed,
                                      struct pwi_writer *writer, uint64_t claim_end) {
  struct pwi_contributor contributor = {.sender = {11}, .task = 1, .relay = SENDER};
  *call = (struct call){.task.finished = call_finished};
  pwi_writer_reset(writer);
  pwi_contributors_encode(&contributor, 1, 1, writer);
  *relayed = (struct pwi_relayed){.kind = PWI_REQUEST_PUSH,
                                  .group = scene->group->entry.id,
                                  .tick = 1,
                                  .claim = {0, claim_end},
                                  .range = {0, 10},
                                  .rows = 10,
                                  .in = scene->in,
                                  .contributors = writer->data,
                                  .contributors_size = writer->size,
                                  .hops = 1};
  assert_int_equal(pwi_client_relay(scene->client, &call->task, scene->flow, relayed), PAWL_OK);
  check_scene(scene);
  return scene->flow->first;
}

/* Nobody knows whether an aggregate that was sent has arrived, so its contributors send their pushes. */
static void test_an_aggregate_is_sent_once(void **state) {
  START_WITH_RELAY;
  struct call call;
  struct pwi_relayed relayed;
  struct pwi_writer writer = {0};
  struct client_part *part = relay_push(&scene, &call, &relayed, &writer, 500);
  expect_at(part, 1);
  net_done(&scene, request_for(&scene, part).sent);
  take_down(&scene, 1, PAWL_LINK_RESET);
  assert_over(&call, PAWL_REFUSED);
  size_t sent = scene.net.sent_count;
  bring_up(&scene, 1);
  assert_int_equal(scene.net.sent_count, sent);
  pwi_writer_fini(&writer);
  stop_scene(&scene);
}

static void test_an_aggregate_is_about_one_arc(void **state) {
  START_WITH_RELAY;
  struct call call;
  struct pwi_relayed relayed;
  struct pwi_writer writer = {0};
  assert_null(relay_push(&scene, &call, &relayed, &writer, 501));
  assert_over(&call, PAWL_REFUSED);
  pwi_writer_fini(&writer);
  stop_scene(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_push_behind_another_one_does_not_go_through_a_relay),
      cmocka_unit_test(test_a_push_that_a_relay_does_not_take_goes_to_the_server_as_it_is),
      cmocka_unit_test(test_pushes_with_an_operand_or_a_codec_do_not_go_through_a_relay),
      cmocka_unit_test(test_a_relay_that_does_not_answer_loses_its_pushes_after_three_seconds),
      cmocka_unit_test(test_a_relay_whose_link_was_lost_is_not_used_for_a_while),
      cmocka_unit_test(test_a_pull_says_how_old_its_rows_may_be),
      cmocka_unit_test(test_a_pull_wants_rows_of_now_if_it_knows_no_version),
      cmocka_unit_test(test_a_pull_wants_the_version_of_the_last_push),
      cmocka_unit_test(test_a_pull_beside_a_push_of_its_own_goes_to_the_server),
      cmocka_unit_test(test_a_list_of_keys_goes_to_a_relay_whole),
      cmocka_unit_test(test_a_pull_with_clocks_or_codecs_goes_to_the_server),
      cmocka_unit_test(test_a_pull_stays_at_a_relay_whose_rows_are_on_their_way),
      cmocka_unit_test(test_an_aggregate_is_sent_once),
      cmocka_unit_test(test_an_aggregate_is_about_one_arc),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
