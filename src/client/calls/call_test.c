/* Calls between clients, one message at a time: what is sent again, in which order and with which proof, and which
 * incoming calls run. client/calls/callee_test.c has the callee without a network, tests/cluster/calls_test.c both ends under
 * faults. */
#include "client/client_testing.h"

#define FRIEND UINT64_C(9) /* a client that may be called, and calls */
#define PEER (FRIEND | PWI_PEER_IS_SENDER)
#define OWN_LINK UINT64_C(901)   /* that the friend has made, and on which it has proved itself */
#define OTHER_LINK UINT64_C(902) /* of somebody who has proved nothing */

struct outgoing_call {
  struct pwi_calling calling;
  size_t ended;
};

static void note_end(struct pwi_calling *calling) { ((struct outgoing_call *)(void *)calling)->ended++; }

static struct pwi_call_graph *graph_of_one(void) {
  struct pwi_call_graph *graph;
  uint32_t culprit;
  struct pawl_graph_call call = {"work", NULL, 0};
  assert_int_equal(pwi_call_graph_create(&call, 1, NULL, 0, &graph, &culprit), PAWL_OK);
  return graph;
}

static void add_sender(struct scene *scene, uint64_t id) {
  struct pwi_membership_sender sender = {.sender = {id}, .job = "job", .address = "friend:1"};
  assert_int_equal(pwi_membership_add(scene->client->membership, &sender), PAWL_OK);
}

static void start_with_a_friend(struct scene *scene) {
  start_scene(scene);
  add_sender(scene, SENDER);
  add_sender(scene, FRIEND);
}

static void call_node(struct scene *scene, struct outgoing_call *call, uint64_t node) {
  *call = (struct outgoing_call){.calling.ended = note_end};
  assert_int_equal(pwi_client_call(scene->client, &call->calling, node, NULL, graph_of_one()), PAWL_OK);
}

/* --- messages ------------------------------------------------------------------------------------------- */

/* The messages of a kind, other than to the manager; the number and the proof of the last of them. */
static size_t count_sent(const struct scene *scene, enum pwi_say kind, uint64_t *number_out, bool *is_proved_out) {
  size_t count = 0;
  for (size_t i = 0; i < scene->net.sent_count; i++) {
    const struct stub_sent *sent = &scene->net.sent[i];
    struct pwi_message message = {.head = sent->head, .body_size = sent->body_size};
    struct pwi_control control = {0};
    size_t size;
    if (sent->link == MANAGER_LINK || pwi_message_peek_kind(sent->head) != kind) continue;
    assert_int_equal(pwi_control_begin(&control, &message, scene_terms()).how, PWI_RECEIVE_WHOLE);
    assert_int_equal(pwi_control_open(&control, sent->body, sent->body_size, scene_terms()), PAWL_OK);
    *number_out = control.head.task;
    *is_proved_out = pwi_control_find(&control, sent->body, PWI_SECTION_PROOF, &size) != NULL;
    count++;
  }
  return count;
}

static void hear(struct scene *scene, uint64_t link, enum pwi_say kind, uint64_t number, uint64_t settled,
                 const struct pwi_writer *payload) {
  struct pwi_message_builder builder;
  struct pwi_message_head head = {.kind = (uint16_t)kind, .sender = FRIEND, .task = number, .tick = settled};
  pwi_message_begin(&builder, scene_terms(), &head);
  if (payload) {
    struct pwi_section section = {
        .type = PWI_SECTION_PAYLOAD, .count = (uint32_t)payload->size, .length = payload->size};
    assert_int_equal(pwi_message_add(&builder, &section, payload->data), PAWL_OK);
  }
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  deliver(scene, (struct pwi_link){link}, &builder);
}

/* The friend asks for the call to be sent again later. */
static void hear_later(struct scene *scene, uint64_t number) {
  struct pwi_writer payload = {0};
  pwi_call_return_encode(PWI_CALL_CODE_LATER, NULL, 0, &payload);
  hear(scene, peer_of(scene, PEER)->link->link.id, PWI_SAY_RETURN, number, 0, &payload);
  pwi_writer_fini(&payload);
}

static void hear_call(struct scene *scene, uint64_t link, uint64_t target, uint64_t number) {
  struct pwi_writer payload = {0};
  struct pwi_call_graph *graph = graph_of_one();
  pwi_call_encode(target, graph, &payload);
  hear(scene, link, PWI_SAY_CALL, number, 0, &payload);
  pwi_call_graph_destroy(graph);
  pwi_writer_fini(&payload);
}

/* --- outgoing calls ------------------------------------------------------------------------------------- */

static void test_no_call_overtakes_one_that_is_sent_again_later(void **state) {
  (void)state;
  struct scene scene;
  struct outgoing_call first, second;
  uint64_t number;
  bool is_proved;
  start_with_a_friend(&scene);
  bring_up(&scene, PEER);
  call_node(&scene, &first, FRIEND);
  assert_int_equal(count_sent(&scene, PWI_SAY_CALL, &number, &is_proved), 1);
  hear_later(&scene, 1);
  call_node(&scene, &second, FRIEND);
  assert_int_equal(count_sent(&scene, PWI_SAY_CALL, &number, &is_proved), 1);
  wait_for_timer(&scene);
  assert_int_equal(count_sent(&scene, PWI_SAY_CALL, &number, &is_proved), 3);
  assert_int_equal(number, 2);
  stop_scene(&scene);
  pwi_calling_fini(&first.calling);
  pwi_calling_fini(&second.calling);
}

/* The friend may have rejected the proof. */
static void test_a_call_that_is_sent_again_later_brings_its_proof_again(void **state) {
  (void)state;
  struct scene scene;
  struct outgoing_call call;
  uint64_t number;
  bool is_proved;
  start_with_a_friend(&scene);
  bring_up(&scene, PEER);
  call_node(&scene, &call, FRIEND);
  assert_int_equal(count_sent(&scene, PWI_SAY_CALL, &number, &is_proved), 1);
  assert_true(is_proved);
  hear_later(&scene, 1);
  wait_for_timer(&scene);
  assert_int_equal(count_sent(&scene, PWI_SAY_CALL, &number, &is_proved), 2);
  assert_int_equal(number, 1);
  assert_true(is_proved);
  stop_scene(&scene);
  pwi_calling_fini(&call.calling);
}

/* The friend has not run the call, so there is no answer yet. */
static void test_a_call_that_is_to_be_sent_again_takes_no_answer(void **state) {
  (void)state;
  struct scene scene;
  struct outgoing_call call;
  uint64_t number;
  bool is_proved;
  start_with_a_friend(&scene);
  bring_up(&scene, PEER);
  call_node(&scene, &call, FRIEND);
  hear_later(&scene, 1);
  hear_later(&scene, 1);
  assert_int_equal(scene.net.closed_count, 0);
  wait_for_timer(&scene);
  assert_int_equal(count_sent(&scene, PWI_SAY_CALL, &number, &is_proved), 2);
  stop_scene(&scene);
  pwi_calling_fini(&call.calling);
}

/* The friend would forget its number. */
static void test_the_answer_to_a_call_that_is_to_be_sent_again_is_not_acknowledged(void **state) {
  (void)state;
  enum { MANY = 70 }; /* so many that an answer to the last one is acknowledged at once */
  struct scene scene;
  static struct outgoing_call calls[MANY];
  uint64_t number;
  bool is_proved;
  start_with_a_friend(&scene);
  bring_up(&scene, PEER);
  for (size_t i = 0; i < MANY; i++) call_node(&scene, &calls[i], FRIEND);
  assert_int_equal(count_sent(&scene, PWI_SAY_CALL, &number, &is_proved), MANY);
  hear_later(&scene, MANY);
  assert_int_equal(count_sent(&scene, PWI_SAY_HEARD, &number, &is_proved), 0);
  stop_scene(&scene);
  for (size_t i = 0; i < MANY; i++) pwi_calling_fini(&calls[i].calling);
}

/* The manager may have replied before the node of the second call joined. */
static void test_a_node_is_unknown_only_if_the_manager_was_asked_after_the_call(void **state) {
  (void)state;
  struct scene scene;
  struct outgoing_call first, second;
  start_with_a_friend(&scene);
  call_node(&scene, &first, 20);
  call_node(&scene, &second, 21);
  for (size_t i = 1; i <= 2; i++) {
    assert_true(scene.client->is_syncing);
    pwi_client_unask(scene.client, &scene.client->sync);
    scene.client->sync.replied(&scene.client->sync, PAWL_OK, NULL, 0);
    assert_int_equal(first.ended + second.ended, i);
  }
  assert_int_equal(first.calling.status, PAWL_NODE_GONE);
  assert_false(scene.client->is_syncing);
  stop_scene(&scene);
  pwi_calling_fini(&first.calling);
  pwi_calling_fini(&second.calling);
}

/* --- incoming calls ------------------------------------------------------------------------------------- */

static size_t runs;

static void run(void *context, struct pwi_running *running) {
  struct pwi_callee **callee = context;
  runs++;
  pwi_callee_end(*callee, running, PAWL_OK, NULL, 0);
}

static void add_asker(struct scene *scene, uint64_t id, uint64_t bound) {
  struct client_link *link = pwi_alloc_zero(1, sizeof *link);
  assert_non_null(link);
  *link = (struct client_link){.kind = LINK_ASKER, .link = {id}, .is_up = true, .shown.bound = bound};
  link->peering.link = link->peering.data = *scene_terms();
  assert_int_equal(pwi_idmap_put(&scene->client->links, id, link), PAWL_OK);
}

static void start_to_listen(struct scene *scene, struct pwi_callee **callee) {
  start_with_a_friend(scene);
  add_asker(scene, OWN_LINK, FRIEND);
  add_asker(scene, OTHER_LINK, 0);
  assert_int_equal(pwi_client_offer(scene->client, run, callee, callee), PAWL_OK);
  runs = 0;
}

static void test_only_calls_of_a_live_sender_to_the_present_id_run(void **state) {
  (void)state;
  struct scene scene;
  struct pwi_callee *callee;
  uint64_t number;
  bool is_proved;
  start_to_listen(&scene, &callee);
  hear_call(&scene, OWN_LINK, SENDER - 1, 1); /* a former id */
  assert_int_equal(runs, 0);
  hear_call(&scene, OWN_LINK, SENDER, 2);
  assert_int_equal(runs, 1);
  assert_int_equal(pwi_membership_retire(scene.client->membership, (struct pwi_sender){FRIEND}), PAWL_OK);
  hear_call(&scene, OWN_LINK, SENDER, 3);
  assert_int_equal(runs, 1);
  assert_int_equal(count_sent(&scene, PWI_SAY_RETURN, &number, &is_proved), 3); /* the others: later */
  stop_scene(&scene);
}

/* Somebody else says that the friend has its answer. It asks for it again, and gets it. */
static void test_only_the_caller_says_that_it_has_its_answers(void **state) {
  (void)state;
  struct scene scene;
  struct pwi_callee *callee;
  uint64_t number;
  bool is_proved;
  start_to_listen(&scene, &callee);
  hear_call(&scene, OWN_LINK, SENDER, 1);
  assert_int_equal(count_sent(&scene, PWI_SAY_RETURN, &number, &is_proved), 1);
  hear(&scene, OTHER_LINK, PWI_SAY_HEARD, 0, 1, NULL);
  hear_call(&scene, OWN_LINK, SENDER, 1);
  assert_int_equal(count_sent(&scene, PWI_SAY_RETURN, &number, &is_proved), 2);
  hear(&scene, OWN_LINK, PWI_SAY_HEARD, 0, 1, NULL);
  hear_call(&scene, OWN_LINK, SENDER, 1);
  assert_int_equal(count_sent(&scene, PWI_SAY_RETURN, &number, &is_proved), 2);
  assert_int_equal(runs, 1);
  stop_scene(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_call_overtakes_one_that_is_sent_again_later),
      cmocka_unit_test(test_a_call_that_is_sent_again_later_brings_its_proof_again),
      cmocka_unit_test(test_a_call_that_is_to_be_sent_again_takes_no_answer),
      cmocka_unit_test(test_the_answer_to_a_call_that_is_to_be_sent_again_is_not_acknowledged),
      cmocka_unit_test(test_a_node_is_unknown_only_if_the_manager_was_asked_after_the_call),
      cmocka_unit_test(test_only_calls_of_a_live_sender_to_the_present_id_run),
      cmocka_unit_test(test_only_the_caller_says_that_it_has_its_answers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
