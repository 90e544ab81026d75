/* A client with more requests in flight than permitted: the memory kept for it is bounded, and other clients
 * are served. */
#include "base/testing.h"
#include "../cluster/raw.h"

#define ROWS (UINT64_C(1) << 20) /* of 8 bytes: 8 MiB in an answer */
#define PULLS 100
#define LINK_BYTES ((uint64_t)128 << 20)

static struct pwi_cluster cluster;
static struct pwi_cluster_client honest;
static struct raw deaf;

static void ask_rows(const struct raw_link *link, const struct pwi_entry *entry, uint64_t number, uint64_t rows) {
  struct pwi_terms terms = {.kind = PWI_REQUEST_PULL,
                            .vector = entry->id,
                            .number = number,
                            .rows = rows,
                            .claim = {0, rows},
                            .range = {0, rows},
                            .incarnation = entry->incarnation};
  uint8_t bytes[PWI_TERMS_SIZE];
  pwi_terms_encode(&terms, bytes);
  struct pwi_section section = {.type = PWI_SECTION_TERMS, .count = 1, .length = sizeof bytes};
  const void *data = bytes;
  struct pwi_message_head head = {.kind = PWI_SAY_REQUEST};
  raw_send(&deaf, link, &head, &section, &data, 1);
}

static void ask(const struct raw_link *link, const struct pwi_entry *entry, uint64_t number) {
  ask_rows(link, entry, number, ROWS);
}

/* The servers of the arc of key 0: its head, and the next member. */
static void find_chain(const struct pwi_flow *flow, size_t *head_out, size_t *next_out) {
  const struct pwi_view *view = pwi_client_view(honest.client);
  struct pwi_place place = pwi_entry_place(pwi_flow_entry(flow));
  size_t arc = pwi_view_arc_of(view, pwi_place_position(&place, 0));
  assert_true(view->arcs[arc].count > 1);
  for (size_t i = 0; i < cluster.server_count; i++) {
    struct pwi_server_state state;
    pwi_server_state(cluster.servers[i].server, &state);
    if (state.node == view->arcs[arc].chain[0].node.id) *head_out = i;
    if (state.node == view->arcs[arc].chain[1].node.id) *next_out = i;
  }
}

static void pushed(struct pwi_task *task) { (void)task; }

/* While the chain has not confirmed a push, all replies are deferred, with their rows. */
static void test_answers_that_wait_for_the_chain_are_bounded(void **state) {
  (void)state;
  struct pwi_cluster_config config = {.seed = 15, .processes = 2, .shards = 1, .replicas = 1};
  struct pawl_vector_options sparse = {.type = PAWL_I64,
                                       .width = 1,
                                       .size = UINT64_C(1) << 62,
                                       .layout = PAWL_LAYOUT_SPARSE,
                                       .placement = PAWL_PLACE_ORDERED};
  size_t head = 0, next = 0;
  uint64_t key = 0;
  int64_t one = 1;
  memset(&honest, 0, sizeof honest);
  strcpy(honest.name, "honest");
  cluster_open(&cluster, &config);
  cluster_client_add(&cluster, &honest);
  cluster_wait_joined(&honest);
  struct pwi_flow *flow = cluster_vector(&honest, "sim/w", &sparse);
  cluster_run_for(&cluster, 500 * MS);
  find_chain(flow, &head, &next);
  raw_open(&deaf, &cluster, "deaf");
  cluster_run_for(&cluster, 100 * MS);
  struct pwi_join join = {.role = PWI_ROLE_CLIENT};
  (void)raw_join(&deaf, &cluster, &join);
  struct raw_link *server = raw_connect(&deaf, &cluster, cluster.servers[head].address);
  assert_true(server->is_up);
  pwi_sim_cut(cluster.sim, cluster.servers[head].node, cluster.servers[next].node);
  pwi_sim_cut(cluster.sim, cluster.servers[next].node, cluster.servers[head].node);
  struct pwi_where where = {.keys = &key, .count = 1};
  struct pwi_task task = {.finished = pushed};
  assert_int_equal(pwi_client_start(honest.client, &task, flow, PWI_REQUEST_PUSH, &where, &one, NULL), PAWL_OK);
  cluster_run_for(&cluster, 10 * MS);
  for (uint64_t i = 0; i < PULLS; i++) ask(server, pwi_flow_entry(flow), i + 1);
  cluster_run_for(&cluster, 20 * MS);                                            /* the cut is not yet seen */
  assert_int_equal(deaf.heard[PWI_SAY_ANSWER], PULLS - LINK_BYTES / (8 * ROWS)); /* the others wait */
  assert_int_equal(deaf.outcome.code, PWI_CODE_NOT_HERE);
  cluster_run_for(&cluster, 5000 * MS);
  assert_int_equal(task.status, PAWL_OK);
  assert_int_equal(cluster_call(&honest, flow, PWI_REQUEST_PULL, &where, NULL, &one, NULL), PAWL_OK);
  assert_int_equal(one, 1);
  pwi_cluster_close(&cluster);
  raw_close(&deaf);
}

/* --- many links ----------------------------------------------------------------------------------------- */

#define ALL_BYTES ((uint64_t)16 << 20)
#define SMALL_ROWS (UINT64_C(1) << 17) /* 1 MiB in an answer */
#define LINKS 6                        /* to the server */
#define READ_ROWS ((size_t)1 << 18)    /* that the honest client reads at a time, 2 MiB */

static void tell_names(struct pwi_sim_config *config, void *context) {
  (void)context;
  config->has_identities = true;
}

static struct pwi_flow *open_bounded(void) {
  struct pwi_cluster_config config = {
      .seed = 16, .processes = 1, .shards = 1, .answers_max = ALL_BYTES, .checked_hosts = true, .tune = tell_names};
  struct pawl_vector_options options = {
      .type = PAWL_I64, .width = 1, .size = READ_ROWS, .layout = PAWL_LAYOUT_DENSE, .placement = PAWL_PLACE_ORDERED};
  memset(&honest, 0, sizeof honest);
  strcpy(honest.name, "honest");
  cluster_open(&cluster, &config);
  cluster_client_add(&cluster, &honest);
  cluster_wait_joined(&honest);
  struct pwi_flow *flow = cluster_vector(&honest, "sim/w", &options);
  cluster_run_for(&cluster, 500 * MS);
  raw_open(&deaf, &cluster, "deaf");
  cluster_run_for(&cluster, 100 * MS);
  struct pwi_join join = {.role = PWI_ROLE_CLIENT};
  (void)raw_join(&deaf, &cluster, &join);
  return flow;
}

static void ask_much(const struct pwi_entry *entry, struct raw_link *links[LINKS]) {
  for (size_t i = 0; i < LINKS; i++) links[i] = raw_connect(&deaf, &cluster, cluster.servers[0].address);
  pwi_sim_slow(cluster.sim, deaf.node, 9e8); /* it says that it is there, and takes nothing in */
  for (uint64_t n = 0; n < PULLS; n++)
    for (size_t i = 0; i < LINKS; i++) ask_rows(links[i], entry, n + 1, SMALL_ROWS);
  cluster_run_for(&cluster, 50 * MS);
}

static uint64_t answer_bytes(void) {
  struct pwi_server_state state;
  pwi_server_state(cluster.servers[0].server, &state);
  return state.answer_bytes;
}

/* However many links a key has, it leaves room for others. (server.handler_bounds tests that links that do
 * not read are closed when others lack room.) */
static void test_answers_of_all_links_of_a_key_are_bounded(void **state) {
  (void)state;
  static int64_t values[READ_ROWS];
  struct raw_link *links[LINKS];
  struct pwi_flow *flow = open_bounded();
  ask_much(pwi_flow_entry(flow), links);
  assert_true(answer_bytes() >= ALL_BYTES / 2);
  assert_true(answer_bytes() <= ALL_BYTES - ALL_BYTES / 4 + (1 << 20));
  struct pwi_where where = {.range = {0, READ_ROWS}};
  for (int i = 0; i < 4; i++)
    assert_int_equal(cluster_call(&honest, flow, PWI_REQUEST_PULL, &where, NULL, values, NULL), PAWL_OK);
  assert_true(answer_bytes() <= ALL_BYTES + (2 << 20));
  assert_int_equal(cluster_call(&honest, flow, PWI_REQUEST_PULL, &where, NULL, values, NULL), PAWL_OK);
  pwi_cluster_close(&cluster);
  raw_close(&deaf);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_answers_that_wait_for_the_chain_are_bounded),
      cmocka_unit_test(test_answers_of_all_links_of_a_key_are_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
