/* What a client hears from its manager, one message at a time: news, replies, and questions about retired senders. */
#include "client/client_testing.h"

/* --- messages ------------------------------------------------------------------------------------------- */

/* All keys belong to one node. */
static void hear_view(struct scene *scene, uint64_t epoch, uint64_t node) {
  const struct share all = {0, node};
  struct pwi_view *view = view_of(epoch, &all, 1);
  size_t size = pwi_view_encoded_size(view);
  void *bytes = test_malloc(size);
  pwi_view_encode(view, bytes);
  hear_manager(scene, PWI_SAY_NEWS, 0, 0, PWI_SECTION_VIEW, bytes, size);
  test_free(bytes);
  pwi_view_release(view);
}

/* The manager asks about a retired sender. Returns the number of senders that the client calls unsettled. */
static size_t hear_settle(struct scene *scene, uint64_t sender) {
  struct pwi_settle about = {.sender = sender};
  struct pwi_writer writer = {0};
  uint64_t number, senders[PWI_SETTLE_MAX];
  size_t count, size;
  pwi_settle_encode(5, &about, 1, &writer);
  hear_manager(scene, PWI_SAY_SETTLE, 0, 0, PWI_SECTION_PAYLOAD, writer.data, writer.size);
  pwi_writer_fini(&writer);
  const struct stub_sent *sent = &scene->net.sent[scene->net.sent_count - 1];
  struct pwi_message message = {.head = sent->head, .body_size = sent->body_size};
  struct pwi_control control;
  assert_int_equal(pwi_control_begin(&control, &message, scene_terms()).how, PWI_RECEIVE_WHOLE);
  assert_int_equal(control.head.kind, PWI_SAY_SETTLED);
  assert_int_equal(pwi_control_open(&control, sent->body, sent->body_size, scene_terms()), PAWL_OK);
  const void *payload = pwi_control_find(&control, sent->body, PWI_SECTION_PAYLOAD, &size);
  assert_int_equal(pwi_settled_decode(payload, size, &number, senders, &count), PAWL_OK);
  assert_int_equal(number, 5);
  if (count > 0) assert_int_equal(senders[0], sender);
  return count;
}

/* --- news ----------------------------------------------------------------------------------------------- */

static void test_a_view_that_is_not_newer_is_ignored(void **state) {
  START;
  struct call call;
  hear_view(&scene, 3, 3);
  hear_view(&scene, 2, 1);
  hear_view(&scene, 3, 2);
  push(&scene, &call, 0, 10);
  assert_int_equal(scene.flow->first->peer->node, 3);
  stop_scene(&scene);
}

/* --- replies -------------------------------------------------------------------------------------------- */

struct ask {
  struct pwi_asking asking;
  size_t replied;
  pawl_status status;
};

static void note_reply(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct ask *ask = (struct ask *)(void *)asking;
  (void)payload, (void)size;
  ask->replied++;
  ask->status = status;
}

/* It waits for the news that the manager had. The ask was sent again over another link in the meantime. */
static void test_the_first_reply_to_an_ask_counts(void **state) {
  START;
  struct ask ask = {.asking.replied = note_reply};
  assert_int_equal(pwi_client_ask(scene.client, &ask.asking, PWI_ASK_SYNC, NULL, 0), PAWL_OK);
  hear_reply(&scene, &ask.asking, 2, PAWL_OK);
  hear_reply(&scene, &ask.asking, 2, PAWL_EXISTS);
  assert_int_equal(ask.replied, 0);
  hear_view(&scene, 2, 1);
  assert_int_equal(ask.replied, 1);
  assert_int_equal(ask.status, PAWL_OK);
  stop_scene(&scene);
}

/* --- local vectors -------------------------------------------------------------------------------------- */

/* Otherwise the manager would forget a sender whose client has yet to ask what became of its pushes here. */
static void test_a_client_with_local_vectors_says_who_may_be_unsettled_there(void **state) {
  START;
  struct pwi_membership_sender sender = {.sender = {9}, .job = "job"};
  assert_int_equal(hear_settle(&scene, 9), 0);
  assert_int_equal(pwi_client_open_local(scene.client, (struct pwi_vector_id){1}), PAWL_OK);
  assert_int_equal(hear_settle(&scene, 9), 1); /* as far as this client knows, it may still push */
  assert_int_equal(pwi_membership_add(scene.client->membership, &sender), PAWL_OK);
  assert_int_equal(pwi_membership_retire(scene.client->membership, sender.sender), PAWL_OK);
  assert_int_equal(hear_settle(&scene, 9), 0);
  stop_scene(&scene);
}

static void test_a_local_vector_ends_when_it_is_deleted(void **state) {
  START;
  struct pwi_catalogue catalogue;
  struct pwi_writer writer = {0};
  for (uint64_t id = 1; id <= 2; id++)
    assert_int_equal(pwi_client_open_local(scene.client, (struct pwi_vector_id){id}), PAWL_OK);
  pwi_catalogue_encode(&scene.client->catalogue, &writer);
  assert_int_equal(pwi_catalogue_decode(writer.data, writer.size, &catalogue), PAWL_OK);
  assert_int_equal(pwi_catalogue_remove(&catalogue, (struct pwi_vector_id){1}), PAWL_OK);
  pwi_writer_reset(&writer);
  pwi_catalogue_encode(&catalogue, &writer);
  hear_manager(&scene, PWI_SAY_NEWS, 0, 0, PWI_SECTION_CATALOGUE, writer.data, writer.size);
  assert_false(pwi_shard_has(scene.client->shard, (struct pwi_vector_id){1}));
  assert_true(pwi_shard_has(scene.client->shard, (struct pwi_vector_id){2}));
  pwi_catalogue_fini(&catalogue);
  pwi_writer_fini(&writer);
  stop_scene(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_view_that_is_not_newer_is_ignored),
      cmocka_unit_test(test_the_first_reply_to_an_ask_counts),
      cmocka_unit_test(test_a_client_with_local_vectors_says_who_may_be_unsettled_there),
      cmocka_unit_test(test_a_local_vector_ends_when_it_is_deleted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
