/* Factors over a graph that a file has, between real sessions: threads of this process. There is no server. */
#include "peers_scene.h"

#include <pthread.h>

#include <pawl/factor.h>

#define MEMBERS 3
#define GRAPH_PATH "./factor_graph_test.graph"

struct member {
  pthread_t thread;
  struct pawl_session *session;
  struct pawl_factor_options options;
  const char *group;
  float matrix[MEMBERS]; /* row by row; the member of rank r adds 1 to row r */
  pawl_status status;
  char text[256];
  struct pawl_factor_state state;
};

static struct member members[MEMBERS];

static void write_graph(const char *text) {
  FILE *file = fopen(GRAPH_PATH, "we");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static pawl_status commit_one(struct pawl_factor *factor, struct member *member) {
  const float one = 1;
  pawl_factor_state(factor, &member->state);
  const uint32_t row = member->state.rank, column = 0;
  const struct pawl_factor_vector u = {&one, &row, 1}, v = {&one, &column, 1};
  pawl_status status = pawl_factor_add(factor, &u, &v);
  if (!status) status = pawl_factor_commit(factor, 1, 0, PATIENCE, NULL);
  return status ? status : pawl_factor_flush(factor, PATIENCE, NULL);
}

static void *run_member(void *context) {
  struct member *member = context;
  struct pawl_peers *peers = NULL;
  struct pawl_factor *factor = NULL;
  pawl_status status = pawl_peers_join(member->session, member->group, MEMBERS, PATIENCE, &peers);
  if (!status)
    status = pawl_factor_open(peers, "w", member->matrix, MEMBERS, 1, PAWL_F32, &member->options, PATIENCE, &factor);
  if (!status) status = commit_one(factor, member);
  member->status = status;
  snprintf(member->text, sizeof member->text, "%s", status ? pawl_error_text() : "");
  pawl_factor_close(factor);
  pawl_peers_leave(peers);
  return NULL;
}

static void run(const char *group, const char *graph, bool forward) {
  for (int i = 0; i < MEMBERS; i++) {
    struct pawl_session_options options = peer_options(pawl_session_address(cluster));
    members[i] = (struct member){.group = group};
    pawl_factor_options_init(&members[i].options);
    members[i].options.graph = graph;
    members[i].options.forward = forward;
    must(pawl_session_open(&options, &members[i].session));
    assert_int_equal(pthread_create(&members[i].thread, NULL, run_member, &members[i]), 0);
  }
  for (int i = 0; i < MEMBERS; i++) {
    pthread_join(members[i].thread, NULL);
    must(pawl_session_close(members[i].session, PATIENCE));
  }
}

static void test_commits_follow_the_edges_of_a_file(void **state) {
  (void)state;
  write_graph("nodes 3\n0: 1\n1: 2\n2: 0\n");
  run("test/ring", GRAPH_PATH, false);
  for (int i = 0; i < MEMBERS; i++) {
    uint32_t rank = members[i].state.rank;
    assert_int_equal(members[i].status, PAWL_OK);
    assert_true(members[i].matrix[rank] == 1 && members[i].matrix[(rank + 2) % 3] == 1);
    assert_true(members[i].matrix[(rank + 1) % 3] == 0); /* it sends to the other one only */
  }
  unlink(GRAPH_PATH);
}

static void test_commits_that_are_passed_on_reach_everyone(void **state) {
  (void)state;
  write_graph("nodes 3\n0: 1\n1: 2\n2: 0\n");
  run("test/forwarded", GRAPH_PATH, true);
  for (int i = 0; i < MEMBERS; i++) {
    assert_int_equal(members[i].status, PAWL_OK);
    for (int row = 0; row < MEMBERS; row++) assert_true(members[i].matrix[row] == 1);
  }
  unlink(GRAPH_PATH);
}

static void test_a_file_for_other_numbers_gives_way_to_the_complete_graph(void **state) {
  (void)state;
  write_graph("nodes 2\n0: 1\n1: 0\n");
  run("test/other", GRAPH_PATH, false);
  for (int i = 0; i < MEMBERS; i++)
    for (int row = 0; row < MEMBERS; row++) assert_true(members[i].matrix[row] == 1);
  unlink(GRAPH_PATH);
}

static void test_files_that_cannot_be_used_are_refused(void **state) {
  (void)state;
  run("test/missing", "/nowhere/graph", false);
  assert_int_equal(members[0].status, PAWL_NOT_FOUND);
  assert_non_null(strstr(members[0].text, "/nowhere/graph"));
  write_graph("nodes 3\n0: 7\n");
  run("test/bad", GRAPH_PATH, false);
  assert_int_equal(members[0].status, PAWL_CORRUPT);
  assert_non_null(strstr(members[0].text, GRAPH_PATH));
  unlink(GRAPH_PATH);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_commits_follow_the_edges_of_a_file),
      cmocka_unit_test(test_commits_that_are_passed_on_reach_everyone),
      cmocka_unit_test(test_a_file_for_other_numbers_gives_way_to_the_complete_graph),
      cmocka_unit_test(test_files_that_cannot_be_used_are_refused),
  };
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
