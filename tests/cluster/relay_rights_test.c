/* In whose name a relay may act: servers take an aggregate or a pull only if the relay, and everybody whom it names, has
 * proved itself and has the right. Each scene differs in one thing from a request that the server takes. */
#include "relay_scene.h"

#include "client/inside.h"
#include "raw.h"

static struct {
  struct pwi_contributor contributors[MEMBERS];
  struct pwi_task task;
  struct pwi_relayed relayed;
  struct pwi_writer section;
  struct pwi_relayed_answer answer;
  uint64_t pushes[MEMBERS]; /* the last number of each member that was used */
} act;

static uint64_t sender_of(const struct pwi_cluster_client *client) { return client->client->sender; }

/* The proof of a member to somebody, as the member would make it. */
static void prove(size_t member, uint64_t verifier) {
  struct pwi_client_state is;
  pwi_client_state(scene.members[member].client, &is);
  act.contributors[member].relay = verifier;
  assert_int_equal(pwi_proof_make(scene.members[member].client->identity, is.cluster, is.sender,
                                  verifier | PWI_VERIFIER_IS_SENDER, act.contributors[member].seal),
                   PAWL_OK);
}

/* All members have links to the server, on which they have proved themselves; so has the relay. */
static void open_proven(void) {
  open_scene(1, true);
  for (int tick = 0; tick < 3; tick++) {
    struct pwi_where where = {
        .range = {0, KEYS}, .aggregate = pwi_flow_entry(scene.groups[0])->id.id, .tick = ++scene.tick};
    scene.under_way = MEMBERS;
    for (size_t i = 0; i < MEMBERS; i++) {
      scene.tasks[i] = (struct pwi_task){.finished = finished};
      assert_int_equal(pwi_client_start(scene.members[i].client, &scene.tasks[i], scene.flows[i], PWI_REQUEST_PUSH,
                                        &where, scene.in, NULL),
                       PAWL_OK);
    }
    cluster_run_while(&scene.cluster, are_under_way, NULL, 60000 * MS);
  }
  assert_true(figures().applied > 0);
  for (size_t i = 0; i < MEMBERS; i++) {
    act.pushes[i] = scene.tasks[i].number;
    act.contributors[i].sender.id = sender_of(&scene.members[i]);
    prove(i, sender_of(&scene.relay));
  }
}

/* Somebody makes a request in the name of all members. */
static bool is_taken_from(struct pwi_cluster_client *actor, enum pwi_request_kind kind) {
  for (size_t i = 0; i < MEMBERS; i++) {
    act.contributors[i].prior = kind == PWI_REQUEST_PUSH ? act.pushes[i] : 0;
    act.contributors[i].task = act.contributors[i].prior + 1;
  }
  pwi_writer_reset(&act.section);
  pwi_contributors_encode(act.contributors, MEMBERS, 1, &act.section);
  act.relayed = (struct pwi_relayed){.kind = kind,
                                     .group = pwi_flow_entry(scene.groups[0])->id,
                                     .tick = kind == PWI_REQUEST_PUSH ? scene.tick + 1 : scene.tick,
                                     .claim = {0, KEYS},
                                     .range = {0, KEYS},
                                     .rows = KEYS,
                                     .in = kind == PWI_REQUEST_PUSH ? scene.in : NULL,
                                     .out = kind == PWI_REQUEST_PULL ? scene.out[0] : NULL,
                                     .contributors = act.section.data,
                                     .contributors_size = act.section.size,
                                     .hops = 1,
                                     .answer = &act.answer};
  act.task = (struct pwi_task){.finished = finished};
  scene.under_way = 1;
  struct pwi_flow *flow = cluster_open_vector(actor, VECTOR, 0);
  assert_int_equal(pwi_client_relay(actor->client, &act.task, flow, &act.relayed), PAWL_OK);
  cluster_run_while(&scene.cluster, are_under_way, NULL, 5000 * MS);
  if (act.task.status) return false;
  if (kind == PWI_REQUEST_PUSH) scene.tick++;
  for (size_t i = 0; kind == PWI_REQUEST_PUSH && i < MEMBERS; i++) act.pushes[i]++;
  return true;
}

static bool is_taken(enum pwi_request_kind kind) { return is_taken_from(&scene.relay, kind); }

static void expect(bool taken) {
  assert_int_equal(is_taken(PWI_REQUEST_PUSH), taken);
  if (!taken) assert_int_equal(act.answer.outcome.code, PWI_CODE_DIRECT);
  assert_int_equal(is_taken(PWI_REQUEST_PULL), taken);
  if (!taken) assert_int_equal(act.answer.outcome.next, act.contributors[0].sender.id);
}

static void close_proven(void) {
  pwi_writer_fini(&act.section);
  pwi_cluster_close(&scene.cluster);
}

static void test_everybody_must_have_proved_itself_to_a_relay(void **state) {
  (void)state;
  open_proven();
  expect(true);
  prove(0, sender_of(&scene.members[1])); /* a proof, to somebody who is no relay */
  expect(false);
  prove(0, sender_of(&scene.relay));
  expect(true);
  struct pwi_cluster_client other;
  add_relay(&other, "other");
  cluster_wait_joined(&other);
  prove(0, sender_of(&other)); /* the server has not seen this one yet */
  act.contributors[0].seal[0] ^= 1;
  expect(false);
  act.contributors[0].seal[0] ^= 1;
  expect(true);
  close_proven();
}

/* Its rights and its quota are those of its own link. */
static void test_everybody_must_have_a_link_to_the_server(void **state) {
  (void)state;
  open_proven();
  pwi_sim_break(scene.cluster.sim, scene.members[0].node, scene.cluster.servers[0].node);
  cluster_run_for(&scene.cluster, 500 * MS);
  expect(false);
  struct pwi_where where = {.range = {0, KEYS}, .group = pwi_flow_entry(scene.groups[0])->id.id, .tick = scene.tick};
  pwi_sim_kill(scene.cluster.sim, scene.relay.node); /* so that the pull of the member goes to the server */
  assert_int_equal(cluster_call(&scene.members[0], scene.flows[0], PWI_REQUEST_PULL, &where, NULL, scene.out[0], NULL),
                   PAWL_OK);
  assert_int_equal(pwi_sim_start(scene.cluster.sim, scene.relay.node), PAWL_OK);
  cluster_wait_joined(&scene.relay);
  for (size_t i = 0; i < MEMBERS; i++) prove(i, sender_of(&scene.relay));
  cluster_run_for(&scene.cluster, 500 * MS);
  expect(true);
  close_proven();
}

static void test_everybody_must_have_the_right(void **state) {
  (void)state;
  open_proven();
  restricted = "member0";
  pwi_sim_break(scene.cluster.sim, scene.members[0].node, scene.cluster.servers[0].node);
  cluster_run_for(&scene.cluster, 500 * MS);
  scene.tasks[0] = (struct pwi_task){.finished = finished};
  scene.under_way = 1; /* makes a link, with fewer rights */
  assert_int_equal(pwi_client_tick(scene.members[0].client, &scene.tasks[0], scene.groups[0], scene.tick), PAWL_OK);
  cluster_run_while(&scene.cluster, are_under_way, NULL, 5000 * MS);
  assert_int_not_equal(scene.tasks[0].status, PAWL_OK);
  expect(false);
  restricted = NULL;
  close_proven();
}

/* A push that the member makes by itself is refused while its quota is overdrawn. */
static void test_what_is_done_in_the_name_of_a_member_counts_against_its_quota(void **state) {
  static const enum pwi_request_kind kinds[] = {PWI_REQUEST_PUSH, PWI_REQUEST_PULL};
  struct pwi_cluster_client *member = &scene.members[0];
  struct pwi_where where = {.range = {0, KEYS}};
  (void)state;
  member_rate = 3 * sizeof scene.in; /* the bucket holds as much */
  for (size_t k = 0; k < 2; k++) {
    open_proven();
    struct pwi_flow *own = cluster_vector(member, "space/own", &adding);
    cluster_run_for(&scene.cluster, 10000 * MS);
    assert_int_equal(cluster_call(member, own, PWI_REQUEST_PUSH, &where, scene.in, NULL, NULL), PAWL_OK);
    cluster_run_for(&scene.cluster, 10000 * MS);
    for (int i = 0; i < 5; i++) assert_true(is_taken(kinds[k]));
    assert_int_equal(cluster_call(member, own, PWI_REQUEST_PUSH, &where, scene.in, NULL, NULL), PAWL_QUOTA_RATE);
    close_proven();
  }
  member_rate = 0;
}

/* A member that knows the proofs of all others. It has all rights, but is no relay. */
static void test_only_a_relay_acts_for_others(void **state) {
  (void)state;
  open_proven();
  assert_false(is_taken_from(&scene.members[1], PWI_REQUEST_PUSH));
  assert_false(is_taken_from(&scene.members[1], PWI_REQUEST_PULL));
  expect(true);
  close_proven();
}

/* A link that has all rights, but is not that of the relay. What it asks for, the server has just given the relay. */
static void test_nobody_takes_the_place_of_a_relay(void **state) {
  static struct raw thief;
  (void)state;
  open_proven();
  expect(true);
  raw_open(&thief, &scene.cluster, "thief");
  struct raw_link *manager =
      raw_join(&thief, &scene.cluster, &(struct pwi_join){.role = PWI_ROLE_CLIENT, .job = "thief"});
  assert_true(manager->is_up);
  struct raw_link *link = raw_connect(&thief, &scene.cluster, scene.cluster.servers[0].address);
  struct pwi_terms terms = {.kind = PWI_REQUEST_PULL,
                            .vector = pwi_flow_entry(scene.flows[0])->id,
                            .number = 1,
                            .rows = KEYS,
                            .claim = {0, KEYS},
                            .range = {0, KEYS}};
  uint8_t bytes[PWI_TERMS_SIZE];
  pwi_terms_encode(&terms, bytes);
  struct pwi_section sections[] = {
      {.type = PWI_SECTION_TERMS, .count = 1, .length = sizeof bytes},
      {.type = PWI_SECTION_CONTRIBUTORS, .count = (uint32_t)act.section.size, .length = act.section.size}};
  const void *data[] = {bytes, act.section.data};
  struct pwi_message_head head = {.kind = PWI_SAY_REQUEST, .sender = sender_of(&scene.relay)};
  raw_send(&thief, link, &head, sections, data, 2);
  cluster_run_for(&scene.cluster, 500 * MS);
  assert_int_equal(thief.heard[PWI_SAY_ANSWER], 1);
  assert_int_equal(thief.outcome.code, PWI_CODE_UNPROVEN);
  close_proven();
  raw_close(&thief);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_everybody_must_have_proved_itself_to_a_relay),
      cmocka_unit_test(test_everybody_must_have_a_link_to_the_server),
      cmocka_unit_test(test_everybody_must_have_the_right),
      cmocka_unit_test(test_what_is_done_in_the_name_of_a_member_counts_against_its_quota),
      cmocka_unit_test(test_only_a_relay_acts_for_others),
      cmocka_unit_test(test_nobody_takes_the_place_of_a_relay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
