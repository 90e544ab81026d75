/* A client that asks for more than it may have under way: what is kept for it is bounded, and others are served meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../cluster/raw.h"

#define ROWS (UINT64_C(1) << 20) /* of 8 bytes: 8 MiB in an answer */
#define PULLS 100
#define LINK_BYTES ((uint64_t)128 << 20)

static struct pwi_cluster cluster;
static struct pwi_cluster_client honest;
static struct raw deaf;

static void ask(const struct raw_link *link, const struct pwi_entry *entry, uint64_t number) {
  struct pwi_terms terms = {.kind = PWI_REQUEST_PULL,
                            .vector = entry->id,
                            .number = number,
                            .rows = ROWS,
                            .claim = {0, ROWS},
                            .range = {0, ROWS},
                            .incarnation = entry->incarnation};
  uint8_t bytes[PWI_TERMS_SIZE];
  pwi_terms_encode(&terms, bytes);
  struct pwi_section section = {.type = PWI_SECTION_TERMS, .count = 1, .length = sizeof bytes};
  const void *data = bytes;
  struct pwi_message_head head = {.kind = PWI_SAY_REQUEST};
  raw_send(&deaf, link, &head, &section, &data, 1);
}

/* The servers that have the arc of key 0: its head, and the one behind. */
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

/* While the chain has not confirmed a push all answers wait, with the rows that they bring. */
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_answers_that_wait_for_the_chain_are_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
