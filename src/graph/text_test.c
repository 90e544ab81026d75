#include <unistd.h>

#include "graph/graph_testing.h"
#include "graph/text.h"

static struct pwi_graph *parse(const char *text) {
  struct pwi_graph_why why = {""};
  struct pwi_graph *graph = NULL;
  if (pwi_graph_parse("g", text, strlen(text), &why, &graph)) fail_msg("%s", why.text);
  return graph;
}

static void test_a_file_is_read(void **state) {
  (void)state;
  struct pwi_graph *graph = parse("# peers\n\n  nodes 4 # of them\n0: 1 2\n\t1 :2\r\n2:3# back\n3: 0\n0: 3");
  assert_int_equal(graph->nodes, 4);
  assert_int_equal(graph->edges, 6);
  assert_true(pwi_graph_has(graph, 0, 1) && pwi_graph_has(graph, 0, 2) && pwi_graph_has(graph, 0, 3));
  assert_true(pwi_graph_has(graph, 1, 2) && pwi_graph_has(graph, 2, 3) && pwi_graph_has(graph, 3, 0));
  pwi_graph_destroy(graph);
  graph = parse("nodes 1");
  assert_true(graph->nodes == 1 && graph->edges == 0);
  pwi_graph_destroy(graph);
  graph = parse("nodes 2\n1:\n0: 00001\n");
  assert_true(graph->edges == 1 && pwi_graph_has(graph, 0, 1));
  pwi_graph_destroy(graph);
}

static void test_errors_name_the_line(void **state) {
  (void)state;
  static const struct {
    const char *text, *why;
    pawl_status status;
  } wrong[] = {
      {"", "g: the file is empty; its first line should be 'nodes N'", PAWL_CORRUPT},
      {"# nothing\n\n", "g: the file is empty", PAWL_CORRUPT},
      {"0: 1\n", "g:1: expected 'nodes N' in the first line, found '0:'", PAWL_CORRUPT},
      {"\nnodes\n", "g:2: expected 'nodes N' in the first line, found 'nodes'", PAWL_CORRUPT},
      {"nodesX 4", "g:1: expected 'nodes N' in the first line, found 'nodesX'", PAWL_CORRUPT},
      {"nodes -4", "g:1: expected a number of nodes, 1 or more, found '-4'", PAWL_CORRUPT},
      {"nodes 0", "g:1: expected a number of nodes, 1 or more", PAWL_CORRUPT},
      {"nodes 4:", "g:1: expected nothing after the number of nodes, found ':'", PAWL_CORRUPT},
      {"nodes 4 5", "g:1: expected nothing after the number of nodes, found '5'", PAWL_CORRUPT},
      {"nodes 1048577", "g:1: 1048577 nodes are more than 1048576", PAWL_TOO_LARGE},
      {"nodes 99999999999999999999", "g:1: expected a number of nodes, 1 or more, found '99999999999999999999...'",
       PAWL_CORRUPT},
      {"nodes 4294967297", "g:1: expected a number of nodes, 1 or more, found '4294967297'", PAWL_CORRUPT},
      {"nodes 2\n0: 4294967297", "g:2: expected the number of a node, found '4294967297'", PAWL_CORRUPT},
      {"nodes 2\n0 1", "g:2: expected a colon after node 0, found '1'", PAWL_CORRUPT},
      {"nodes 2\n0", "g:2: expected a colon after node 0, found ''", PAWL_CORRUPT},
      {"nodes 2\n0: 1\n1: 2", "g:3: node 2 does not exist: the last node is 1", PAWL_CORRUPT},
      {"nodes 2\n7: 1", "g:2: node 7 does not exist: the last node is 1", PAWL_CORRUPT},
      {"nodes 2\n1: 1", "g:2: node 1 sends to itself; remove that", PAWL_CORRUPT},
      {"nodes 2\n1: 0x1", "g:2: expected the number of a node, found '0x1'", PAWL_CORRUPT},
      {"nodes 2\n1: \x01\xff", "g:2: expected the number of a node, found '?\?'", PAWL_CORRUPT},
      {"nodes 3\n0: 1 2: 1", "g:2: expected one node before a colon, found a second, 2; begin a new line",
       PAWL_CORRUPT},
      {"nodes 2\nnodes 2", "g:2: expected the number of a node, found 'nodes'", PAWL_CORRUPT},
      {"nodes 3\n2: 1\n0: 1 2\n\n0: 2", "g:5: node 0 sends to node 2 in line 3 already; remove one of the two",
       PAWL_CORRUPT},
      {"nodes 3\n0: 1 1", "g:2: node 0 sends to node 1 in line 2 already", PAWL_CORRUPT},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct pwi_graph_why why = {""};
    struct pwi_graph *graph = NULL;
    pawl_status status = pwi_graph_parse("g", wrong[i].text, strlen(wrong[i].text), &why, &graph);
    if (strncmp(why.text, wrong[i].why, strlen(wrong[i].why)) != 0) fail_msg("'%s', not '%s'", why.text, wrong[i].why);
    assert_int_equal(status, wrong[i].status);
    assert_null(graph);
  }
}

/* The parser never reads behind the text, which need not end with a zero. */
static void test_every_prefix_of_a_file_is_read_or_refused(void **state) {
  (void)state;
  const char *whole = "nodes 12 # twelve\n0: 1 11\n11: 0\n";
  for (size_t size = 0; size <= strlen(whole); size++) {
    char *text = pwi_alloc(size);
    struct pwi_graph *graph = NULL;
    assert_non_null(text);
    memcpy(text, whole, size);
    pawl_status status = pwi_graph_parse("g", text, size, NULL, &graph);
    assert_true(status == PAWL_OK || status == PAWL_CORRUPT);
    assert_int_equal(status == PAWL_OK, graph != NULL);
    pwi_graph_destroy(graph);
    pwi_free(text);
  }
}

static void test_a_graph_is_written_and_read_again(void **state) {
  (void)state;
  struct pwi_graph *small = make_named(PWI_TOPOLOGY_CHAIN, 3);
  size_t size;
  char *text = pwi_graph_format(small, &size);
  assert_string_equal(text, "nodes 3\n0: 1\n1: 2\n2:\n");
  assert_int_equal(size, strlen(text));
  pwi_free(text);
  pwi_graph_destroy(small);
  for (uint32_t nodes = 1; nodes < 200; nodes += 13) {
    struct pwi_graph *graph = make_irregular(nodes, 0.3, false, nodes);
    text = pwi_graph_format(graph, &size);
    struct pwi_graph *again = parse(text);
    assert_int_equal(again->nodes, graph->nodes);
    assert_int_equal(again->edges, graph->edges);
    assert_memory_equal(again->out_begin, graph->out_begin, (nodes + 1) * sizeof *graph->out_begin);
    assert_memory_equal(again->out, graph->out, graph->edges * sizeof *graph->out);
    pwi_free(text);
    pwi_graph_destroy(again);
    pwi_graph_destroy(graph);
  }
}

static void test_files_are_read_and_their_errors_named(void **state) {
  (void)state;
  char path[] = "/tmp/pawl-graph-XXXXXX";
  int file = mkstemp(path);
  struct pwi_graph *graph = NULL;
  struct pwi_graph_why why = {""};
  assert_true(file >= 0);
  assert_int_equal(write(file, "nodes 2\n0: 1\n1: 0\n", 18), 18);
  assert_int_equal(pwi_graph_read(path, &why, &graph), PAWL_OK);
  assert_int_equal(graph->edges, 2);
  pwi_graph_destroy(graph);
  graph = NULL;
  assert_int_equal(write(file, "2: 0\n", 5), 5);
  assert_int_equal(pwi_graph_read(path, &why, &graph), PAWL_CORRUPT);
  assert_memory_equal(why.text, path, strlen(path));
  assert_string_equal(why.text + strlen(path), ":4: node 2 does not exist: the last node is 1");
  close(file);
  unlink(path);
  assert_int_equal(pwi_graph_read(path, &why, &graph), PAWL_NOT_FOUND);
  assert_non_null(strstr(why.text, "No such file"));
  assert_int_not_equal(pwi_graph_read("/tmp", &why, &graph), PAWL_OK);
  assert_null(graph);
}

static void fails_at_each_allocation(const char *input, pawl_status expected, int least) {
  struct pwi_memory_counts before = pwi_memory_counts();
  int failures = 0;
  for (;; failures++) {
    struct pwi_graph *graph = NULL;
    pwi_memory_fail_after((uint64_t)failures);
    pawl_status status = pwi_graph_parse("g", input, strlen(input), NULL, &graph);
    bool has_failed = pwi_memory_fail_cancel();
    pwi_graph_destroy(graph);
    assert_int_equal(status, has_failed ? PAWL_NO_MEMORY : expected);
    assert_int_equal(pwi_memory_counts().live, before.live);
    if (!has_failed) break;
  }
  assert_true(failures >= least);
}

static void test_each_allocation_may_fail(void **state) {
  (void)state;
  fails_at_each_allocation("nodes 6\n0: 1 2 3 4 5\n1: 0\n", PAWL_OK, 8);
  fails_at_each_allocation("nodes 6\n0: 1 2 3 4 5\n0: 1\n", PAWL_CORRUPT, 9);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_file_is_read),
      cmocka_unit_test(test_errors_name_the_line),
      cmocka_unit_test(test_every_prefix_of_a_file_is_read_or_refused),
      cmocka_unit_test(test_a_graph_is_written_and_read_again),
      cmocka_unit_test(test_files_are_read_and_their_errors_named),
      cmocka_unit_test(test_each_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
