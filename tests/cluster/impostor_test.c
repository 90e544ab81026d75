/* Clients with a valid key and a false sender id: at servers, at sessions that serve vectors or functions,
 * and at the manager. Also a server whose answers do not match the requests. Proofs are made as by real clients, with
 * Ed25519, and then with the hash of other simulations: roles must not tell them apart. */
#include "base/testing.h"
#include "raw.h"
#include "protocol/call.h"
#include "client/calls/callee.h"
#include "protocol/proof.h"

static struct pwi_cluster cluster;
static struct raw thief;
static const struct pawl_vector_options counts = {.type = PAWL_I64, .width = 1, .size = 100};
static const uint64_t key = 7;

static void add_client(struct pwi_cluster_client *client, const char *name, bool listens) {
  *client = (struct pwi_cluster_client){.job = "honest", .listens = listens};
  strcpy(client->name, name);
  cluster_client_add(&cluster, client);
  cluster_wait_joined(client);
}

static uint64_t sender_of(const struct pwi_cluster_client *client) {
  struct pwi_client_state state;
  pwi_client_state(client->client, &state);
  return state.sender;
}

static pawl_status push(struct pwi_cluster_client *client, struct pwi_flow *flow, int64_t value) {
  struct pwi_where where = {.keys = &key, .count = 1};
  return cluster_call(client, flow, PWI_REQUEST_PUSH, &where, &value, NULL, NULL);
}

static int64_t pulled(struct pwi_cluster_client *client, struct pwi_flow *flow) {
  struct pwi_where where = {.keys = &key, .count = 1};
  int64_t value;
  assert_int_equal(cluster_call(client, flow, PWI_REQUEST_PULL, &where, NULL, &value, NULL), PAWL_OK);
  return value;
}

static bool has_real_seals;

static void tune(struct pwi_sim_config *config, void *context) {
  (void)context;
  config->real_seals = has_real_seals;
}

static void open_scene(bool shared_hosts) {
  struct pwi_cluster_config config = {
      .seed = 9, .processes = 1, .shards = 1, .points = 1, .shared_hosts = shared_hosts, .tune = tune};
  cluster_open(&cluster, &config);
  raw_open(&thief, &cluster, "thief");
}

static void close_scene(void) {
  pwi_cluster_close(&cluster);
  raw_close(&thief);
}

/* Joins the cluster with an id of its own. */
static struct raw_link *join_as_thief(const char *address) {
  struct pwi_join join = {.role = PWI_ROLE_CLIENT, .job = "thief"};
  snprintf(join.address, sizeof join.address, "%s", address);
  struct raw_link *manager = raw_join(&thief, &cluster, &join);
  assert_int_equal(thief.joined.status, PAWL_OK);
  assert_true(thief.joined.id != 0);
  return manager;
}

/* Pushes 1000 to all keys under the id `sender`, with the number after its last push. */
static void push_as(struct raw_link *link, const struct pwi_entry *entry, uint64_t sender, uint64_t prior,
                    uint64_t task) {
  static int64_t values[100];
  struct pwi_terms terms = {.kind = PWI_REQUEST_PUSH,
                            .vector = entry->id,
                            .number = 1,
                            .prior = prior,
                            .rows = 100,
                            .claim = {0, 100},
                            .range = {0, 100}};
  uint8_t bytes[PWI_TERMS_SIZE];
  pwi_terms_encode(&terms, bytes);
  for (size_t i = 0; i < 100; i++) values[i] = 1000;
  struct pwi_message_head head = {.kind = PWI_SAY_REQUEST, .sender = sender, .task = task};
  struct pwi_section sections[] = {
      {.type = PWI_SECTION_TERMS, .count = 1, .length = sizeof bytes},
      {.type = PWI_SECTION_VALUES, .value_type = PAWL_I64, .count = 100, .length = sizeof values}};
  const void *data[] = {bytes, values};
  raw_send(&thief, link, &head, sections, data, 2);
  cluster_run_for(&cluster, 500 * MS);
}

static void test_a_push_under_anothers_id_is_not_applied(void **state) {
  (void)state;
  for (int shared_hosts = 0; shared_hosts < 2; shared_hosts++) {
    struct pwi_cluster_client honest;
    open_scene(shared_hosts);
    add_client(&honest, "honest", false);
    struct pwi_flow *flow = cluster_vector(&honest, "space/v", &counts);
    assert_int_equal(push(&honest, flow, 1), PAWL_OK);
    join_as_thief("");
    struct raw_link *server = raw_connect(&thief, &cluster, cluster.servers[0].address);
    push_as(server, pwi_flow_entry(flow), sender_of(&honest), 1, 2);
    assert_int_equal(thief.heard[PWI_SAY_ANSWER], 1);
    assert_int_not_equal(thief.outcome.code, PWI_CODE_OK);
    assert_int_equal(pulled(&honest, flow), 1);
    assert_int_equal(push(&honest, flow, 1), PAWL_OK); /* its number is still its own */
    assert_int_equal(pulled(&honest, flow), 2);
    close_scene();
  }
}

static void test_a_push_under_anothers_id_is_not_applied_by_a_session_that_holds_the_vector(void **state) {
  (void)state;
  struct pwi_cluster_client owner, honest;
  open_scene(false);
  add_client(&owner, "owner", true);
  add_client(&honest, "honest", false);
  struct pwi_flow *served = cluster_vector(&owner, "space/v", &counts);
  assert_int_equal(cluster_ask(&honest, PWI_ASK_SYNC, NULL), PAWL_OK);
  assert_int_equal(pwi_client_open_local(owner.client, pwi_flow_entry(served)->id), PAWL_OK);
  struct pwi_flow *local = cluster_open_vector(&honest, "space/v", sender_of(&owner));
  assert_int_equal(push(&honest, local, 1), PAWL_OK);
  join_as_thief("");
  struct raw_link *link = raw_connect(&thief, &cluster, "owner:7000");
  push_as(link, pwi_flow_entry(local), sender_of(&honest), 1, 2);
  assert_int_not_equal(thief.outcome.code, PWI_CODE_OK);
  assert_int_equal(pulled(&honest, local), 1);
  assert_int_equal(push(&honest, local, 1), PAWL_OK);
  assert_int_equal(pulled(&honest, local), 2);
  close_scene();
}

/* --- what others did ------------------------------------------------------------------------------------ */

static void collect(struct raw_link *link, struct pwi_vector_id vector, uint64_t sender, uint64_t other,
                    const uint8_t *seal) {
  struct pwi_terms terms = {.kind = PWI_REQUEST_COLLECT,
                            .vector = vector,
                            .number = 1,
                            .other = other,
                            .rows = 1,
                            .claim = {0, 100},
                            .range = {0, 100}};
  uint8_t bytes[PWI_TERMS_SIZE];
  pwi_terms_encode(&terms, bytes);
  struct pwi_message_head head = {.kind = PWI_SAY_REQUEST, .sender = sender};
  struct pwi_section sections[] = {{.type = PWI_SECTION_TERMS, .count = 1, .length = sizeof bytes},
                                   {.type = PWI_SECTION_PROOF, .count = 1, .length = PWI_SEAL_SIZE}};
  const void *data[] = {bytes, seal};
  thief.outcome = (struct pwi_outcome){0};
  unsigned heard = thief.heard[PWI_SAY_ANSWER];
  raw_send(&thief, link, &head, sections, data, seal ? 2 : 1);
  cluster_run_for(&cluster, 100 * MS);
  assert_int_equal(thief.heard[PWI_SAY_ANSWER], heard + 1);
}

/* Only the client that owned a retired sender id may collect its clocks: a client with the same key that has
 * proved its present id. */
static void test_what_a_sender_did_is_told_to_nobody_else(void **state) {
  (void)state;
  struct pwi_cluster_client victim;
  struct pwi_server_state server;
  uint8_t secret[PWI_SEAL_SECRET], seal[PWI_SEAL_SIZE];
  open_scene(false);
  add_client(&victim, "victim", false);
  struct pwi_flow *flow = cluster_vector(&victim, "space/v", &counts);
  assert_int_equal(push(&victim, flow, 1), PAWL_OK);
  struct pwi_vector_id vector = pwi_flow_entry(flow)->id;
  uint64_t other = sender_of(&victim);
  pwi_sim_kill(cluster.sim, victim.node);
  cluster_run_for(&cluster, 4000 * MS);
  assert_true(pwi_membership_is_retired(pwi_server_membership(cluster.servers[0].server), (struct pwi_sender){other}));

  struct pwi_join join = {.role = PWI_ROLE_CLIENT, .job = "thief"};
  assert_int_equal(pwi_seal_draw(secret), PAWL_OK);
  assert_int_equal(pwi_seal_public(secret, join.key), PAWL_OK);
  raw_join(&thief, &cluster, &join);
  uint64_t self = thief.joined.id;
  pwi_server_state(cluster.servers[0].server, &server);
  assert_int_equal(pwi_proof_make(secret, thief.joined.cluster, self, server.node, seal), PAWL_OK);
  struct raw_link *link = raw_connect(&thief, &cluster, cluster.servers[0].address);
  collect(link, vector, 0, other, NULL); /* a reader */
  assert_int_equal(thief.outcome.code, PWI_CODE_NOT_HERE);
  collect(link, vector, self, other, NULL);
  assert_int_equal(thief.outcome.code, PWI_CODE_UNPROVEN);
  collect(link, vector, self, other, seal);
  assert_int_equal(thief.outcome.code, PWI_CODE_FAILED);
  assert_int_equal(thief.outcome.status, PAWL_FORBIDDEN);
  assert_int_equal(thief.payload_size, 0);
  close_scene();
}

/* A client has two ids with the same key, as if it had joined again before the first one is retired. Until
 * then the pushes under the first one are not final. */
static void test_what_a_live_sender_did_is_not_told(void **state) {
  (void)state;
  struct pwi_cluster_client honest;
  struct pwi_server_state server;
  uint8_t secret[PWI_SEAL_SECRET], seal[PWI_SEAL_SIZE];
  struct pwi_writer payload = {0};
  open_scene(false);
  add_client(&honest, "honest", false);
  struct pwi_vector_id vector = pwi_flow_entry(cluster_vector(&honest, "space/v", &counts))->id;
  struct pwi_join join = {.role = PWI_ROLE_CLIENT, .job = "thief"};
  assert_int_equal(pwi_seal_draw(secret), PAWL_OK);
  assert_int_equal(pwi_seal_public(secret, join.key), PAWL_OK);
  raw_join(&thief, &cluster, &join);
  uint64_t first = thief.joined.id;
  raw_join(&thief, &cluster, &join);
  uint64_t second = thief.joined.id;
  assert_true(second > first);
  pwi_server_state(cluster.servers[0].server, &server);
  assert_int_equal(pwi_proof_make(secret, thief.joined.cluster, second, server.node, seal), PAWL_OK);
  struct raw_link *link = raw_connect(&thief, &cluster, cluster.servers[0].address);
  collect(link, vector, second, first, seal);
  assert_int_equal(thief.outcome.code, PWI_CODE_NOT_HERE);
  pwi_write_u64(&payload, first);
  assert_int_equal(cluster_ask(&honest, PWI_ASK_RETIRE, &payload), PAWL_OK);
  pwi_writer_fini(&payload);
  collect(link, vector, second, first, seal);
  assert_int_equal(thief.outcome.code, PWI_CODE_OK);
  close_scene();
}

static struct pwi_rights in_space(void *context, const char *identity) {
  (void)context;
  struct pwi_rights rights = {.write = true};
  if (strcmp(identity, "thief") == 0) strcpy(rights.space, "own");
  return rights;
}

static void tell_names(struct pwi_sim_config *config, void *context) {
  (void)context;
  config->has_identities = true;
}

/* Ids are small numbers and easily guessed. Ids of another space are answered like unknown ids. */
static void test_ids_of_another_space_are_answered_as_if_there_were_none(void **state) {
  (void)state;
  static const enum pwi_request_kind kinds[] = {PWI_REQUEST_PULL,    PWI_REQUEST_PUSH,  PWI_REQUEST_SCAN,
                                                PWI_REQUEST_COLLECT, PWI_REQUEST_ENTER, PWI_REQUEST_AWAIT};
  struct pwi_cluster_config config = {
      .seed = 9, .processes = 1, .shards = 1, .points = 1, .rights = in_space, .tune = tell_names};
  struct pwi_cluster_client honest;
  cluster_open(&cluster, &config);
  raw_open(&thief, &cluster, "thief");
  add_client(&honest, "honest", false);
  uint64_t there = pwi_flow_entry(cluster_vector(&honest, "secret/v", &counts))->id.id;
  join_as_thief("");
  struct raw_link *link = raw_connect(&thief, &cluster, cluster.servers[0].address);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    struct pwi_outcome outcomes[2];
    for (int is_there = 0; is_there < 2; is_there++) {
      for (uint32_t catalogue = 0; catalogue < 2; catalogue++) {
        struct pwi_terms terms = {.kind = kinds[i],
                                  .vector = {is_there ? there : there + 1000},
                                  .number = 1,
                                  .rows = 1,
                                  .incarnation = catalogue,
                                  .claim = {0, 100},
                                  .range = {0, 1}};
        uint8_t bytes[PWI_TERMS_SIZE];
        pwi_terms_encode(&terms, bytes);
        struct pwi_message_head head = {.kind = PWI_SAY_REQUEST, .catalogue = catalogue * 1000};
        struct pwi_section section = {.type = PWI_SECTION_TERMS, .count = 1, .length = sizeof bytes};
        const void *data = bytes;
        thief.outcome = (struct pwi_outcome){0};
        raw_send(&thief, link, &head, &section, &data, 1);
        cluster_run_for(&cluster, 100 * MS);
        if (is_there)
          assert_memory_equal(&thief.outcome, &outcomes[catalogue], sizeof thief.outcome);
        else
          outcomes[catalogue] = thief.outcome;
      }
    }
    assert_int_equal(outcomes[0].code, PWI_CODE_FAILED);
    assert_int_equal(outcomes[0].status, PAWL_NOT_FOUND);
  }
  close_scene();
}

/* --- calls ---------------------------------------------------------------------------------------------- */

static unsigned runs;
static uint64_t last_caller;
static struct pwi_callee *callee;

static void run(void *context, struct pwi_running *running) {
  (void)context;
  runs++;
  last_caller = running->caller;
  pwi_callee_end(callee, running, PAWL_OK, NULL, 0);
}

static struct pwi_call_graph *one_call(void) {
  struct pawl_graph_call call = {.name = "do"};
  struct pwi_call_graph *graph;
  uint32_t culprit;
  assert_int_equal(pwi_call_graph_create(&call, 1, NULL, 0, &graph, &culprit), PAWL_OK);
  return graph;
}

struct call {
  struct pwi_calling calling;
  bool is_over;
};

static void call_over(struct pwi_calling *calling) { ((struct call *)calling)->is_over = true; }
static bool is_calling(void *context) { return !((struct call *)context)->is_over; }

static void test_a_call_under_anothers_id_is_not_run(void **state) {
  (void)state;
  struct pwi_cluster_client worker, honest;
  struct pwi_writer payload = {0};
  open_scene(false);
  add_client(&worker, "worker", true);
  add_client(&honest, "honest", false);
  assert_int_equal(pwi_client_offer(worker.client, run, NULL, &callee), PAWL_OK);
  join_as_thief("");
  struct raw_link *link = raw_connect(&thief, &cluster, "worker:7000");
  struct pwi_call_graph *graph = one_call();
  runs = 0;
  pwi_call_encode(sender_of(&worker), graph, &payload);
  raw_say(&thief, link, &(struct pwi_message_head){.kind = PWI_SAY_CALL, .sender = sender_of(&honest), .task = 1},
          &(struct pwi_enclosure){PWI_SECTION_PAYLOAD, payload.data, payload.size}, 1);
  cluster_run_for(&cluster, PWI_SIM_SECOND);
  assert_int_equal(runs, 0);
  struct call call = {.calling.ended = call_over};
  assert_int_equal(pwi_client_call(honest.client, &call.calling, sender_of(&worker), NULL, graph), PAWL_OK);
  cluster_run_while(&cluster, is_calling, &call, 10 * PWI_SIM_SECOND);
  assert_int_equal(call.calling.status, PAWL_OK); /* its own call of that number is not taken for a
                                                     repetition */
  assert_int_equal(runs, 1);
  assert_int_equal(last_caller, sender_of(&honest));
  pwi_calling_fini(&call.calling);
  pwi_writer_fini(&payload);
  close_scene();
}

/* --- a request handler that lies ------------------------------------------------------------------------ */

static const struct lie {
  size_t keys;
  uint64_t first, step, next;
} lies[] = {
    {9, 0, 1, 100},  /* more than there is room for */
    {3, 50, 1, 100}, /* beyond the range */
    {3, 5, 0, 100},  /* the same one again */
    {3, 0, 1, 1},    /* to go on before what came */
    {0, 0, 1, 0},    /* not to go on at all */
    {3, 0, 1, 1000}, /* beyond the range */
    {3, 39, 1, 40},  /* the last one is outside */
};

static size_t lie;

static void answer_scan(struct raw *raw, struct raw_link *link, const struct pwi_terms *terms) {
  uint64_t keys[16];
  int64_t values[16] = {0};
  uint8_t outcome[PWI_OUTCOME_SIZE];
  const struct lie *told = &lies[lie];
  for (size_t i = 0; i < told->keys; i++) keys[i] = told->first + i * told->step;
  pwi_outcome_encode(&(struct pwi_outcome){.code = PWI_CODE_OK, .next = told->next}, outcome);
  struct pwi_message_head head = {.kind = PWI_SAY_ANSWER, .sender = raw->joined.id, .tick = terms->number};
  struct pwi_section sections[] = {
      {.type = PWI_SECTION_OUTCOME, .count = 1, .length = sizeof outcome},
      {.type = PWI_SECTION_PAYLOAD,
       .value_type = PWI_SECTION_RECORDS,
       .count = (uint32_t)(told->keys * 8),
       .length = told->keys * 8},
      {.type = PWI_SECTION_VALUES, .value_type = PAWL_I64, .count = (uint32_t)told->keys, .length = told->keys * 8}};
  const void *data[] = {outcome, keys, values};
  raw_send(raw, link, &head, sections, data, told->keys > 0 ? 3 : 1);
}

static void nobody_cares(struct pwi_task *task) { (void)task; }

static void test_answers_that_were_not_asked_for_are_not_taken(void **state) {
  (void)state;
  struct pwi_cluster_client honest;
  for (lie = 0; lie < sizeof lies / sizeof *lies; lie++) {
    open_scene(false);
    add_client(&honest, "honest", false);
    join_as_thief("thief:7000");
    thief.on_request = answer_scan;
    struct pwi_flow *flow = cluster_vector(&honest, "space/v", &counts);
    assert_int_equal(cluster_ask(&honest, PWI_ASK_SYNC, NULL), PAWL_OK);
    flow = cluster_open_vector(&honest, "space/v", thief.joined.id);
    uint64_t keys[24];
    int64_t values[24];
    memset(keys, 0xa5, sizeof keys);
    memset(values, 0xa5, sizeof values);
    struct pwi_task task = {.finished = nobody_cares};
    assert_int_equal(pwi_client_scan(honest.client, &task, flow, pawl_range_of(0, 40), 8, keys, values), PAWL_OK);
    cluster_run_for(&cluster, 500 * MS);
    assert_true(thief.heard[PWI_SAY_REQUEST] > 0);
    assert_int_equal(task.parts, 1); /* it goes again over another link */
    for (size_t i = 0; i < 24; i++) assert_true(keys[i] == UINT64_C(0xa5a5a5a5a5a5a5a5));
    for (size_t i = 0; i < 24; i++) assert_true((uint64_t)values[i] == UINT64_C(0xa5a5a5a5a5a5a5a5));
    close_scene();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_push_under_anothers_id_is_not_applied),
      cmocka_unit_test(test_a_push_under_anothers_id_is_not_applied_by_a_session_that_holds_the_vector),
      cmocka_unit_test(test_what_a_sender_did_is_told_to_nobody_else),
      cmocka_unit_test(test_what_a_live_sender_did_is_not_told),
      cmocka_unit_test(test_ids_of_another_space_are_answered_as_if_there_were_none),
      cmocka_unit_test(test_a_call_under_anothers_id_is_not_run),
      cmocka_unit_test(test_answers_that_were_not_asked_for_are_not_taken),
  };
  has_real_seals = true;
  int failures = cmocka_run_group_tests_name("Ed25519", tests, NULL, NULL);
  has_real_seals = false;
  return failures + cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
