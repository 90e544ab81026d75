/* Peer groups and sessions for peers only: real processes and no server. */
#include "peers_scene.h"

#include "base/memory.h"

#define NAME "p/ring"

static struct pawl_session *open_peer(const char *rack) {
  struct pawl_session_options options = peer_options(pawl_session_address(cluster));
  struct pawl_session *opened = NULL;
  options.rack = rack;
  must(pawl_session_open(&options, &opened));
  return opened;
}

static pawl_status try_open(const struct pawl_session_options *options) {
  struct pawl_session *opened = NULL;
  pawl_status status = pawl_session_open(options, &opened);
  if (!status) pawl_session_close(opened, 0);
  return status;
}

static struct pawl_peers *join(struct pawl_session *of, const char *name, uint32_t size) {
  struct pawl_peers *peers = NULL;
  must(pawl_peers_join(of, name, size, PATIENCE, &peers));
  return peers;
}

/* --- another process ------------------------------------------------------------------------------------ */

/* Joins, waits until the group is complete, says so, and waits to be killed. */
static int run_peer(const char *address) {
  struct pawl_session_options options = peer_options(address);
  struct pawl_session *own = NULL;
  struct pawl_peers *peers = NULL;
  options.rack = "elsewhere";
  must(pawl_session_open(&options, &own));
  must(pawl_peers_join(own, NAME, 3, PATIENCE, &peers));
  must(pawl_peers_await(peers, 0, PATIENCE));
  if (dprintf(PWI_CHILD_READY_FD, "ready number=%llu rank=%u\n", (unsigned long long)pawl_peers_number(peers),
              pawl_peers_rank(peers)) < 0)
    return 1;
  for (;;) pause();
}

static struct pwi_child *start_peer(void) {
  const char *const words[] = {"peers_test", pawl_session_address(cluster), NULL};
  return start_self(words);
}

static unsigned long long value_of(struct pwi_child *child, const char *name) {
  const char *line;
  char text[32];
  must(pwi_child_ready(child, pwi_host_after(PATIENCE), &line));
  must(pwi_child_value(line, name, text, sizeof text));
  return strtoull(text, NULL, 10);
}

static void test_processes_find_one_another_without_servers(void **state) {
  struct pwi_child *others[2];
  struct pawl_peers_state before, after;
  struct pawl_peer_member member;
  unsigned ranks = 0;
  char host[256] = "";
  (void)state;
  struct pawl_peers *peers = join(cluster, NAME, 3);
  assert_true(pawl_peers_size(peers) >= 1);
  for (int i = 0; i < 2; i++) others[i] = start_peer();
  must(pawl_peers_await(peers, 0, PATIENCE));
  pawl_peers_state(peers, &before);
  assert_true(before.complete && before.size == 3 && before.founders == 3 && before.rank == 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(value_of(others[i], "number"), before.number);
    ranks |= 1u << value_of(others[i], "rank");
  }
  assert_int_equal(ranks, 6);
  assert_int_equal(gethostname(host, sizeof host - 1), 0);
  for (uint32_t rank = 0; rank < 3; rank++) {
    must(pawl_peers_member(peers, rank, &member));
    assert_int_equal(member.number, before.number);
    assert_string_equal(member.host, host);
    assert_string_equal(member.rack, rank == 0 ? "here" : "elsewhere");
    assert_int_equal(member.node.id == pawl_session_node(cluster).id, rank == 0);
  }
  must_fail(pawl_peers_member(peers, 3, &member), PAWL_NOT_FOUND, "3 members; there is no rank 3");
  pwi_child_stop(others[0], 0); /* killed */
  must(pawl_peers_await(peers, before.number, PATIENCE));
  pawl_peers_state(peers, &after);
  assert_true(after.number > before.number && after.size == 2 && after.complete);
  pwi_child_stop(others[1], 0);
  must(pawl_peers_await(peers, after.number, PATIENCE));
  assert_int_equal(pawl_peers_size(peers), 1);
  pawl_peers_leave(peers);
}

/* --- one process ---------------------------------------------------------------------------------------- */

static void test_an_embedded_cluster_for_peers_has_no_server_processes(void **state) {
  char *status = NULL;
  (void)state;
  must(pawl_session_status(cluster, PATIENCE, &status));
  assert_non_null(strstr(status, "\"processes\":0"));
  assert_non_null(strstr(status, "\"rack\":\"here\""));
  pawl_text_free(status);
}

static void test_waiting_ends_at_its_deadline(void **state) {
  (void)state;
  struct pawl_peers *peers = join(cluster, "p/alone", 2);
  must_fail(pawl_peers_await(peers, 0, PAWL_SECOND / 20), PAWL_TIMED_OUT, "1 of 2 founding members are there");
  must_fail(pawl_peers_await(peers, pawl_peers_number(peers), PAWL_SECOND / 20), PAWL_TIMED_OUT, "no change since");
  must(pawl_peers_await(peers, pawl_peers_number(peers) - 1, 0));
  struct pawl_session *other = open_peer(NULL);
  struct pawl_peers *theirs = join(other, "p/alone", 2);
  must(pawl_peers_await(peers, 0, PATIENCE));
  must(pawl_peers_await(theirs, 0, PATIENCE));
  assert_int_equal(pawl_peers_number(peers), pawl_peers_number(theirs));
  assert_int_equal(pawl_peers_rank(peers), 0);
  assert_int_equal(pawl_peers_rank(theirs), 1);
  uint64_t number = pawl_peers_number(peers);
  must(pawl_session_close(other, PATIENCE)); /* leaves */
  must(pawl_peers_await(peers, number, PATIENCE));
  assert_int_equal(pawl_peers_size(peers), 1);
  pawl_peers_leave(peers);
  pawl_peers_leave(NULL);
}

static void test_what_needs_servers_is_refused(void **state) {
  struct pawl_vector *vector;
  struct pawl_group *group = NULL;
  struct pawl_checkpoint_options saving;
  float row = 1;
  uint64_t at = 3, keys[2];
  size_t count;
  double norm;
  (void)state;
  vector = create(cluster, "p/w", PAWL_F32, 10);
  const char *text = "for peers only and uses no servers";
  must_fail(pawl_vector_push(vector, pawl_at_keys(&at, 1), &row, NULL), PAWL_UNSUPPORTED, text);
  must_fail(pawl_vector_pull(vector, pawl_at_keys(&at, 1), &row, NULL), PAWL_UNSUPPORTED, "pull from p/w");
  must_fail(pawl_vector_scan(vector, PAWL_ALL, 1, keys, &row, PATIENCE, &count, &at), PAWL_UNSUPPORTED, text);
  must_fail(pawl_vector_norm(vector, PAWL_ALL, PAWL_NORM_1, PATIENCE, &norm), PAWL_UNSUPPORTED, text);
  must_fail(pawl_group_join(cluster, "p/group", 1, PATIENCE, &group), PAWL_UNSUPPORTED, text);
  pawl_checkpoint_options_init(&saving);
  must_fail(pawl_checkpoint_save(cluster, &saving, NULL), PAWL_UNSUPPORTED, text);
}

/* A session that holds a vector itself serves it to its peers. */
static void test_a_vector_of_a_peer_is_pushed_and_pulled(void **state) {
  struct pawl_vector *held, *vector;
  struct pawl_where there = pawl_at_range(0, 2);
  int64_t values[2] = {1, 2}, got[2] = {0};
  (void)state;
  vector = create(cluster, "p/local", PAWL_I64, 2);
  struct pawl_session *holder = open_peer(NULL);
  must(pawl_vector_open_local(holder, "p/local", PATIENCE, &held));
  there.node = pawl_session_node(holder);
  push(vector, there, values);
  pull(vector, there, got);
  assert_true(got[0] == 1 && got[1] == 2);
  must(pawl_session_close(holder, PATIENCE));
}

static void test_bad_arguments_are_refused(void **state) {
  struct pawl_peers *peers = NULL, *ours;
  (void)state;
  must_fail(pawl_peers_join(cluster, "word", 1, PATIENCE, &peers), PAWL_INVALID, "word");
  must_fail(pawl_peers_join(cluster, "p/.dot", 1, PATIENCE, &peers), PAWL_INVALID, "p/.dot");
  must_fail(pawl_peers_join(cluster, "p/zero", 0, PATIENCE, &peers), PAWL_INVALID, "size is 0");
  must_fail(pawl_peers_join(cluster, NULL, 1, PATIENCE, &peers), PAWL_INVALID, "NULL");
  ours = join(cluster, "p/two", 2);
  must_fail(pawl_peers_join(cluster, "p/two", 2, PATIENCE, &peers), PAWL_EXISTS, "p/two");
  struct pawl_session *other = open_peer(NULL);
  must_fail(pawl_peers_join(other, "p/two", 3, PATIENCE, &peers), PAWL_MISMATCH, "for 2 founding members, not for 3");
  assert_null(peers);
  pawl_peers_leave(ours);
  must(pawl_peers_join(cluster, "p/two", 2, PATIENCE, &ours)); /* again */
  must(pawl_session_close(other, PATIENCE));
  struct pawl_session *reader = NULL;
  struct pawl_session_options options = peer_options(pawl_session_address(cluster));
  options.read_only = true;
  must(pawl_session_open(&options, &reader));
  must_fail(pawl_peers_join(reader, "p/two", 2, PATIENCE, &peers), PAWL_FORBIDDEN, "p/two");
  must(pawl_session_close(reader, PATIENCE));
  pawl_peers_leave(ours);
}

static void test_a_rack_is_a_label(void **state) {
  struct pawl_session_options options = peer_options(pawl_session_address(cluster));
  char label[80] = {0};
  (void)state;
  memset(label, 'r', 64);
  options.rack = label;
  must(try_open(&options));
  label[64] = 'r';
  must_fail(try_open(&options), PAWL_INVALID, "at most 64 printable characters");
  options.rack = "two words";
  must_fail(try_open(&options), PAWL_INVALID, "two words");
  options.rack = NULL;
  setenv("PAWL_RACK", "\n", 1);
  must_fail(try_open(&options), PAWL_INVALID, "rack");
  setenv("PAWL_RACK", "west", 1);
  struct pawl_session *other = open_peer(NULL);
  unsetenv("PAWL_RACK");
  struct pawl_peers *peers = join(other, "p/racks", 1);
  struct pawl_peer_member member;
  must(pawl_peers_member(peers, 0, &member));
  assert_string_equal(member.rack, "west");
  must(pawl_session_close(other, PATIENCE));
}

static void test_options_that_do_not_fit_together_are_refused(void **state) {
  struct pawl_session_options options = peer_options(NULL);
  (void)state;
  options.servers = 1;
  must_fail(try_open(&options), PAWL_INVALID, "leave servers and replicas at 0");
  options.servers = 0;
  options.replicas = 1;
  must_fail(try_open(&options), PAWL_INVALID, "leave servers and replicas at 0");
  options = peer_options("300.300.300.300:1");
  must_fail(try_open(&options), PAWL_LINK_RESOLVE, "set listen");
  options = peer_options("tcp://nowhere");
  must_fail(try_open(&options), PAWL_INVALID, "tcp://nowhere");
  setenv("PAWL_KEY", "", 1);
  options = peer_options("192.0.2.1:1");
  options.listen = "192.0.2.1:0";
  must_fail(try_open(&options), PAWL_FORBIDDEN, "pawl key new");
  setenv("PAWL_KEY", key_text, 1);
}

/* --- beside groups, in a cluster with servers ----------------------------------------------------------- */

static void test_a_name_is_of_a_group_or_of_a_peer_group(void **state) {
  struct pawl_session *served = open_embedded(1, 1);
  struct pawl_group *group = NULL, *second = NULL;
  struct pawl_peers *peers = NULL, *none = NULL;
  (void)state;
  must(pawl_group_join(served, "p/one", 1, PATIENCE, &group));
  must(pawl_peers_join(served, "p/two", 1, PATIENCE, &peers));
  must_fail(pawl_peers_join(served, "p/one", 1, PATIENCE, &none), PAWL_MISMATCH,
            "the name belongs to a group; join it with pawl_group_join");
  must_fail(pawl_group_join(served, "p/two", 1, PATIENCE, &second), PAWL_MISMATCH,
            "the name belongs to a peer group; join it with pawl_peers_join");
  must(pawl_group_barrier(group, PATIENCE));
  must(pawl_peers_await(peers, 0, PATIENCE));
  pawl_peers_leave(peers);
  pawl_group_leave(group);
  must(pawl_session_close(served, PATIENCE));
}

/* The n-th allocation fails, in this thread and in the session's own. */
static void test_joining_without_memory_is_an_error_or_works(void **state) {
  (void)state;
  for (unsigned n = 0, worked = 0; n < 40 && !worked; n++) {
    struct pawl_peers *peers = NULL;
    pwi_memory_fail_after(n);
    pawl_status status = pawl_peers_join(cluster, "p/memory", 1, PATIENCE, &peers);
    bool failed = pwi_memory_fail_cancel();
    if (!failed) {
      must(status);
      worked = 1;
    } else if (status) {
      assert_int_equal(status, PAWL_NO_MEMORY);
      assert_null(peers);
    }
    pawl_peers_leave(peers);
  }
}

static int open_cluster_here(void **state) {
  (void)state;
  unsetenv("PAWL_RACK");
  open_peer_cluster("here");
  return 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_processes_find_one_another_without_servers),
      cmocka_unit_test(test_an_embedded_cluster_for_peers_has_no_server_processes),
      cmocka_unit_test(test_waiting_ends_at_its_deadline),
      cmocka_unit_test(test_what_needs_servers_is_refused),
      cmocka_unit_test(test_a_vector_of_a_peer_is_pushed_and_pulled),
      cmocka_unit_test(test_bad_arguments_are_refused),
      cmocka_unit_test(test_a_rack_is_a_label),
      cmocka_unit_test(test_options_that_do_not_fit_together_are_refused),
      cmocka_unit_test(test_a_name_is_of_a_group_or_of_a_peer_group),
      cmocka_unit_test(test_joining_without_memory_is_an_error_or_works),
  };
  if (argc > 1) return run_peer(argv[1]);
  return cmocka_run_group_tests(tests, open_cluster_here, close_cluster);
}
