/* Reduce between real sessions: threads of this process, and other processes. There is no server. */
#include "peers_scene.h"

#include <math.h>
#include <pthread.h>

#include "base/memory.h"

#define MEMBERS_MAX 6

static int group_number; /* every test has a group of its own */

static struct pawl_session *open_peer(const char *address) {
  struct pawl_session_options options = peer_options(address);
  struct pawl_session *opened = NULL;
  must(pawl_session_open(&options, &opened));
  return opened;
}

/* --- members as threads --------------------------------------------------------------------------------- */

struct member {
  pthread_t thread;
  struct pawl_session *session;
  struct pawl_peers *peers;
  struct pawl_reduce *reduce;
  struct pawl_reduce_options options;
  char group[32];
  uint32_t index, size;
  size_t count;
  uint64_t iterations;
  float *values;
  double bias[2];
  pawl_status status;
  char text[512];
  struct pawl_reduce_report report;
  uint64_t used, expected, current, bytes;
};

static float start_value(uint32_t index, size_t i) { return (float)(index + 1) * 0.25f + (float)(i % 17); }

static void note(struct member *member, pawl_status status) {
  member->status = status;
  snprintf(member->text, sizeof member->text, "%s", pawl_error_text());
}

static pawl_status open_member(struct member *member) {
  struct pawl_tensor tensors[] = {{member->values, member->count, PAWL_F32}, {member->bias, 2, PAWL_F64}};
  pawl_status status = pawl_peers_join(member->session, member->group, member->size, PATIENCE, &member->peers);
  if (!status)
    status = pawl_reduce_open(member->peers, "model", tensors, 2, &member->options, PATIENCE, &member->reduce);
  return status;
}

static void *run_member(void *context) {
  struct member *member = context;
  pawl_status status = open_member(member);
  while (!status && member->report.iteration < member->iterations) {
    status = pawl_reduce_step(member->reduce, PATIENCE, &member->report);
    member->used += member->report.used;
    member->expected += member->report.expected;
    member->current += member->report.current;
    member->bytes += member->report.bytes_sent;
  }
  note(member, status);
  pawl_reduce_close(member->reduce);
  pawl_peers_leave(member->peers);
  return NULL;
}

static void prepare(struct member *members, uint32_t size, size_t count) {
  memset(members, 0, size * sizeof *members);
  group_number++;
  for (uint32_t i = 0; i < size; i++) {
    struct member *member = &members[i];
    pawl_reduce_options_init(&member->options);
    member->session = open_peer(pawl_session_address(cluster));
    snprintf(member->group, sizeof member->group, "r/group%d", group_number);
    member->index = i;
    member->size = size;
    member->count = count;
    member->iterations = 20;
    member->values = pwi_alloc_zero(count, sizeof(float));
    assert_non_null(member->values);
    for (size_t k = 0; k < count; k++) member->values[k] = start_value(i, k);
    member->bias[0] = i;
    member->bias[1] = -1.0;
  }
}

static void start(struct member *members, uint32_t size) {
  for (uint32_t i = 0; i < size; i++)
    assert_int_equal(pthread_create(&members[i].thread, NULL, run_member, &members[i]), 0);
}

static void finish(struct member *members, uint32_t size) {
  for (uint32_t i = 0; i < size; i++) {
    pthread_join(members[i].thread, NULL);
    must(pawl_session_close(members[i].session, PATIENCE));
  }
}

static void release(struct member *members, uint32_t size) {
  for (uint32_t i = 0; i < size; i++) pwi_free(members[i].values);
}

static void must_all(const struct member *members, uint32_t size) {
  for (uint32_t i = 0; i < size; i++)
    if (members[i].status) fail_msg("member %u: %s: %s", i, pawl_status_name(members[i].status), members[i].text);
}

/* In a complete graph one step is enough, and all members have the same bits. */
static void test_a_complete_graph_averages_in_one_step(void **state) {
  struct member members[4];
  (void)state;
  prepare(members, 4, 100000);
  for (int i = 0; i < 4; i++) {
    members[i].options.graph = "complete";
    members[i].iterations = 3;
  }
  start(members, 4);
  finish(members, 4);
  must_all(members, 4);
  for (size_t k = 0; k < members[0].count; k++) {
    float sum = start_value(0, k) + start_value(1, k) + start_value(2, k) + start_value(3, k);
    assert_true(fabsf(members[0].values[k] - sum / 4) < 1e-4f);
  }
  for (int i = 1; i < 4; i++)
    assert_memory_equal(members[i].values, members[0].values, members[0].count * sizeof(float));
  assert_true(members[2].bias[0] == 1.5 && members[2].bias[1] == -1.0);
  assert_int_equal(members[1].report.size, 4);
  assert_int_equal(members[1].report.expected, 3);
  assert_int_equal(members[1].current, 9);
  release(members, 4);
}

static void test_sparse_graphs_converge_to_the_average(void **state) {
  static const char *const graphs[] = {"root", "ring", "default"};
  struct member members[5];
  (void)state;
  for (int round = 0; round < 3; round++) {
    prepare(members, 5, 300);
    for (int i = 0; i < 5; i++) {
      members[i].options.graph = graphs[round];
      members[i].iterations = 60;
    }
    start(members, 5);
    finish(members, 5);
    must_all(members, 5);
    for (int i = 0; i < 5; i++) {
      assert_true(fabsf(members[i].values[3] - 3.75f) < 1e-2f); /* 0.75 and 3 */
      assert_int_equal(members[i].current, members[i].expected);
    }
    release(members, 5);
  }
}

static void test_every_mode_and_narrowing_works(void **state) {
  struct member members[3];
  (void)state;
  for (int mode = 0; mode < 3; mode++) {
    for (int narrow = 0; narrow < 4; narrow++) {
      prepare(members, 3, 5000);
      for (int i = 0; i < 3; i++) {
        members[i].options.mode = (enum pawl_reduce_mode)mode;
        members[i].options.narrow = (enum pawl_reduce_narrow)narrow;
        members[i].options.graph = "complete";
      }
      start(members, 3);
      finish(members, 3);
      must_all(members, 3);
      for (int i = 0; i < 3; i++) {
        assert_int_equal(members[i].report.iteration, 20);
        assert_true(members[i].current <= members[i].used && members[i].used <= members[i].expected);
        if (mode == PAWL_REDUCE_NOTIFY_ACK) assert_true(fabsf(members[i].values[0] - 0.5f) < 0.1f);
      }
      release(members, 3);
    }
  }
}

#define SMALL 0.4 /* a gradient below the threshold of 1 */

/* Member 0 has the same small gradient in every step, member 1 has none, and adds up what it receives. */
static void *run_gradients(void *context) {
  struct member *member = context;
  pawl_status status = open_member(member);
  double sum = 0;
  for (int i = 0; !status && i < 30; i++) {
    for (size_t k = 0; k < member->count; k++) member->values[k] = 0;
    member->values[5] = member->index == 0 ? (float)SMALL : 0;
    status = pawl_reduce_step(member->reduce, PATIENCE, &member->report);
    sum += 2.0 * (double)member->values[5];
    member->bytes += member->report.bytes_sent;
  }
  member->bias[1] = sum;
  note(member, status);
  pawl_reduce_close(member->reduce);
  pawl_peers_leave(member->peers);
  return NULL;
}

static void test_gradients_that_are_not_sent_are_kept_until_they_are_large(void **state) {
  struct member members[2];
  (void)state;
  prepare(members, 2, 1000);
  for (int i = 0; i < 2; i++) {
    members[i].options.what = PAWL_REDUCE_MEAN;
    members[i].options.significant = 1;
    assert_int_equal(pthread_create(&members[i].thread, NULL, run_gradients, &members[i]), 0);
  }
  finish(members, 2);
  must_all(members, 2);
  assert_true(members[1].bias[1] <= 30 * SMALL + 1e-4);
  assert_true(members[1].bias[1] >= 30 * SMALL - 1 - 1e-4);
  assert_true(members[0].bytes < 30 * 4000 / 4); /* a bit for each value, and few values */
  release(members, 2);
}

static void test_different_tensors_are_a_mismatch_at_both(void **state) {
  struct member members[2];
  (void)state;
  prepare(members, 2, 50);
  members[1].count = 49;
  start(members, 2);
  finish(members, 2);
  for (int i = 0; i < 2; i++) assert_int_equal(members[i].status, PAWL_MISMATCH);
  assert_non_null(strstr(members[0].text, "tensor 0 has 50 values of type f32"));
  assert_non_null(strstr(members[1].text, "tensor 0 has 49 values of type f32"));
  release(members, 2);
}

static void test_members_that_are_alone_keep_their_values(void **state) {
  struct member members[1];
  (void)state;
  prepare(members, 1, 10);
  start(members, 1);
  finish(members, 1);
  must_all(members, 1);
  assert_true(members[0].values[3] == start_value(0, 3));
  release(members, 1);
}

/* --- one thread ----------------------------------------------------------------------------------------- */

static void test_values_that_are_not_finite_are_refused_before_they_are_sent(void **state) {
  struct member members[2];
  struct pawl_reduce_report report;
  (void)state;
  prepare(members, 2, 100);
  assert_int_equal(pthread_create(&members[1].thread, NULL, run_member, &members[1]), 0);
  must(open_member(&members[0]));
  members[0].values[7] = NAN;
  must_fail(pawl_reduce_step(members[0].reduce, PATIENCE, &report), PAWL_DIVERGED, "NaN or an infinity");
  members[0].values[7] = INFINITY;
  must_fail(pawl_reduce_step(members[0].reduce, PATIENCE, &report), PAWL_DIVERGED, "nothing was sent");
  members[0].values[7] = 1;
  must(pawl_reduce_step(members[0].reduce, PATIENCE, &report));
  assert_int_equal(report.iteration, 1);
  pawl_reduce_close(members[0].reduce);
  pawl_peers_leave(members[0].peers);
  pthread_join(members[1].thread, NULL);
  must_all(members + 1, 1); /* goes on alone */
  must(pawl_session_close(members[0].session, PATIENCE));
  must(pawl_session_close(members[1].session, PATIENCE));
  release(members, 2);
}

static void test_a_step_ends_at_its_deadline_and_can_be_continued(void **state) {
  struct member members[2];
  struct pawl_reduce_report report;
  struct pawl_reduce_state now;
  (void)state;
  prepare(members, 2, 100);
  struct pawl_peers *theirs = NULL;
  must(pawl_peers_join(members[1].session, members[1].group, 2, PATIENCE, &theirs));
  must(open_member(&members[0]));
  must_fail(pawl_reduce_step(members[0].reduce, PAWL_SECOND / 20, &report), PAWL_TIMED_OUT, "waits for");
  pawl_reduce_state(members[0].reduce, &now);
  assert_true(now.iteration == 0 && now.number == 0 && now.graph[0] == '\0');
  pawl_peers_leave(theirs); /* alone now */
  must(pawl_reduce_step(members[0].reduce, PATIENCE, &report));
  assert_int_equal(report.iteration, 1);
  assert_int_equal(report.size, 1);
  pawl_reduce_close(members[0].reduce);
  for (int i = 0; i < 2; i++) must(pawl_session_close(members[i].session, PATIENCE));
  release(members, 2);
}

static pawl_status try_open(struct member *member, const char *name, const struct pawl_tensor *tensors, size_t count) {
  struct pawl_reduce *reduce = NULL;
  pawl_status status = pawl_reduce_open(member->peers, name, tensors, count, &member->options, PATIENCE, &reduce);
  pawl_reduce_close(reduce);
  return status;
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static void test_bad_arguments_and_graphs_are_refused(void **state) {
  struct member members[1];
  struct pawl_reduce *reduce = NULL;
  float value = 1;
  struct pawl_tensor tensor = {&value, 1, PAWL_F32}, bad = {&value, 1, PAWL_I32}, missing = {NULL, 4, PAWL_F32};
  (void)state;
  prepare(members, 1, 10);
  struct member *member = &members[0];
  must(pawl_peers_join(member->session, member->group, 1, PATIENCE, &member->peers));
  must_fail(pawl_reduce_open(NULL, "x", &tensor, 1, NULL, 0, &reduce), PAWL_INVALID, "NULL");
  must_fail(try_open(member, "two words", &tensor, 1), PAWL_INVALID, "two words");
  must_fail(try_open(member, "", &tensor, 1), PAWL_INVALID, "a name has");
  must_fail(try_open(member, "x", &tensor, 0), PAWL_INVALID, "no tensors");
  must_fail(try_open(member, "x", &bad, 1), PAWL_UNSUPPORTED, "only PAWL_F32 and PAWL_F64");
  must_fail(try_open(member, "x", &missing, 1), PAWL_INVALID, "values is NULL but count is 4");
  member->options.graph = "hedgehog";
  must_fail(try_open(member, "x", &tensor, 1), PAWL_INVALID, "hedgehog");
  member->options.graph = "/nowhere/graph";
  must_fail(try_open(member, "x", &tensor, 1), PAWL_NOT_FOUND, "/nowhere/graph");
  member->options.graph = NULL;
  member->options.significant = NAN;
  must_fail(try_open(member, "x", &tensor, 1), PAWL_INVALID, "significant");
  member->options.significant = 0.5;
  member->options.mode = PAWL_REDUCE_BSP;
  must_fail(try_open(member, "x", &tensor, 1), PAWL_UNSUPPORTED, "NOTIFY_ACK");
  member->options.significant = 0;
  member->options.mode = (enum pawl_reduce_mode)9;
  must_fail(try_open(member, "x", &tensor, 1), PAWL_INVALID, "unknown mode");
  member->options.mode = PAWL_REDUCE_NOTIFY_ACK;
  must(pawl_reduce_open(member->peers, "x", &tensor, 1, NULL, PATIENCE, &reduce));
  must_fail(try_open(member, "x", &tensor, 1), PAWL_EXISTS, "x");
  pawl_reduce_close(reduce);
  must(try_open(member, "x", &tensor, 1)); /* again */
  pawl_reduce_close(NULL);
  must(pawl_session_close(member->session, PATIENCE));
  release(members, 1);
}

/* A graph that is possible for one number of members but not strongly connected. */
static void test_a_graph_that_is_not_strongly_connected_is_refused(void **state) {
  struct member members[2];
  (void)state;
  prepare(members, 2, 10);
  for (int i = 0; i < 2; i++) members[i].options.graph = "chain";
  start(members, 2);
  finish(members, 2);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(members[i].status, PAWL_INVALID);
    assert_non_null(strstr(members[i].text, "not strongly connected"));
  }
  release(members, 2);
}

/* --- graphs from files ---------------------------------------------------------------------------------- */

static char graph_path[] = "/tmp/pawl-reduce-XXXXXX";

/* A ring of three, which has one in-neighbour where the default graph has two. */
static void write_ring(void) {
  strcpy(graph_path + strlen(graph_path) - 6, "XXXXXX");
  int handle = mkstemp(graph_path);
  assert_true(handle >= 0);
  close(handle);
  write_file(graph_path, "nodes 3\n0: 1\n1: 2\n2: 0\n");
}

static void test_a_graph_is_checked_before_there_is_a_session(void **state) {
  (void)state;
  write_ring();
  must(pawl_reduce_graph_check(graph_path, 1, 0, 3, 3));
  must(pawl_reduce_graph_check(graph_path, 1, 0, 1, 8));
  must_fail(pawl_reduce_graph_check(graph_path, 1, 0, 4, 4), PAWL_MISMATCH, "has 3 nodes; expected 4, one for each");
  must_fail(pawl_reduce_graph_check(graph_path, 1, 0, 1, 2), PAWL_MISMATCH, "has 3 nodes; expected 1 to 2, one for");
  write_file(graph_path, "nodes 3\n0: 7\n");
  must_fail(pawl_reduce_graph_check(graph_path, 1, 0, 3, 3), PAWL_CORRUPT, ":2:");
  write_file(graph_path, "nodes 3\n0: 1\n1: 2\n");
  must_fail(pawl_reduce_graph_check(graph_path, 1, 0, 3, 3), PAWL_INVALID, "not strongly connected");
  unlink(graph_path);
  must_fail(pawl_reduce_graph_check(graph_path, 1, 0, 3, 3), PAWL_NOT_FOUND, graph_path);
  must(pawl_reduce_graph_check(NULL, 1, 0, 3, 3));
  must(pawl_reduce_graph_check("hypercube", 1, 0, 4, 4));
  must(pawl_reduce_graph_check("hypercube", 1, 0, 3, 4));
  must_fail(pawl_reduce_graph_check("hypercube", 1, 0, 3, 3), PAWL_INVALID, "graph hypercube");
  must_fail(pawl_reduce_graph_check("chain", 1, 0, 3, 3), PAWL_INVALID, "not strongly connected");
  must_fail(pawl_reduce_graph_check("hedgehog", 1, 0, 1, 9), PAWL_INVALID, "hedgehog");
  must_fail(pawl_reduce_graph_check("ring", 1, 0, 0, 3), PAWL_INVALID, "0 to 3");
  must_fail(pawl_reduce_graph_check("ring", 1, 0, 3, 2), PAWL_INVALID, "3 to 2");
}

static void test_a_file_has_a_node_for_each_founding_member(void **state) {
  struct member members[2];
  (void)state;
  write_ring();
  prepare(members, 2, 10);
  for (int i = 0; i < 2; i++) members[i].options.graph = graph_path;
  start(members, 2);
  finish(members, 2);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(members[i].status, PAWL_MISMATCH);
    assert_non_null(strstr(members[i].text, "has 3 nodes, but the group has 2 founding members"));
  }
  unlink(graph_path);
  release(members, 2);
}

/* Reduces as a member of a group that it has joined already. Its state after the steps is that before it closes. */
static void *run_joined(void *context) {
  struct member *member = context;
  struct pawl_tensor tensor = {member->values, member->count, PAWL_F32};
  struct pawl_reduce_state now = {0};
  pawl_status status =
      pawl_reduce_open(member->peers, "model", &tensor, 1, &member->options, PATIENCE, &member->reduce);
  while (!status && member->report.iteration < member->iterations)
    status = pawl_reduce_step(member->reduce, PATIENCE, &member->report);
  if (!status) pawl_reduce_state(member->reduce, &now);
  note(member, status);
  snprintf(member->text, sizeof member->text, "%s", now.graph);
  pawl_reduce_close(member->reduce);
  return NULL;
}

/* The members of such a group come and go: the file is used while there are as many members as it has nodes. */
static void test_a_group_of_one_founder_takes_a_file_for_more_members(void **state) {
  struct member members[4];
  (void)state;
  write_ring();
  prepare(members, 4, 10);
  for (uint32_t size = 3; size <= 4; size++) {
    for (uint32_t i = size == 3 ? 0 : 3; i < size; i++) {
      must(pawl_peers_join(members[i].session, members[i].group, 1, PATIENCE, &members[i].peers));
      members[i].options.graph = graph_path;
    }
    for (uint32_t i = 0; i < size; i++) {
      for (uint64_t known; known = pawl_peers_number(members[i].peers), pawl_peers_size(members[i].peers) < size;)
        must(pawl_peers_await(members[i].peers, known, PATIENCE));
      members[i].report.iteration = 0;
      assert_int_equal(pthread_create(&members[i].thread, NULL, run_joined, &members[i]), 0);
    }
    for (uint32_t i = 0; i < size; i++) pthread_join(members[i].thread, NULL);
    for (uint32_t i = 0; i < size; i++) {
      assert_int_equal(members[i].status, PAWL_OK);
      assert_int_equal(members[i].report.iteration, members[i].iterations);
    }
    assert_string_equal(members[1].text, size == 3 ? graph_path : "root");
    assert_int_equal(members[1].report.expected, size == 3 ? 1 : 2);
  }
  unlink(graph_path);
  for (uint32_t i = 0; i < 4; i++) {
    pawl_peers_leave(members[i].peers);
    must(pawl_session_close(members[i].session, PATIENCE));
  }
  release(members, 4);
}

/* --- checkpoints ---------------------------------------------------------------------------------------- */

static char folder[] = "/tmp/pawl-reduce-XXXXXX";

static void path_of(char path[64], const char *name) { snprintf(path, 64, "%s/%s", folder, name); }

static void change_byte(const char *path, long at) {
  FILE *file = fopen(path, "r+be");
  assert_non_null(file);
  assert_int_equal(fseek(file, at, SEEK_SET), 0);
  int byte = fgetc(file);
  assert_int_equal(fseek(file, at, SEEK_SET), 0);
  fputc(byte ^ 1, file);
  fclose(file);
}

static void test_a_checkpoint_is_loaded_whole_or_not_at_all(void **state) {
  struct member members[1];
  struct member *member = &members[0];
  char path[64], other[64];
  uint64_t iteration = 0;
  float before[100];
  (void)state;
  prepare(members, 1, 100);
  path_of(path, "one");
  path_of(other, "notes");
  must(open_member(member));
  must_fail(pawl_reduce_load(member->reduce, path, &iteration), PAWL_NOT_FOUND, "one");
  for (int i = 0; i < 3; i++) must(pawl_reduce_step(member->reduce, PATIENCE, NULL));
  must(pawl_reduce_save(member->reduce, path));
  must(pawl_reduce_save(member->reduce, path)); /* replaces its own */
  must_fail(pawl_reduce_load(member->reduce, path, NULL), PAWL_INVALID, "a step was made already");
  write_file(other, "keep me");
  must_fail(pawl_reduce_save(member->reduce, other), PAWL_EXISTS, "is not a checkpoint");
  must_fail(pawl_reduce_save(member->reduce, "/nowhere/at/all"), PAWL_NOT_FOUND, "/nowhere/at/all");
  memcpy(before, member->values, sizeof before);
  pawl_reduce_close(member->reduce);
  pawl_peers_leave(member->peers);
  for (size_t k = 0; k < 100; k++) member->values[k] = -5;
  must(open_member(member));
  must_fail(pawl_reduce_load(member->reduce, other, NULL), PAWL_TRUNCATED, "notes");
  for (long at = 0; at < 496; at += 7) { /* any changed byte */
    change_byte(path, at);
    pawl_status status = pawl_reduce_load(member->reduce, path, NULL);
    assert_true(status == PAWL_CORRUPT || status == PAWL_UNSUPPORTED || status == PAWL_MISMATCH);
    assert_true(member->values[7] == -5);
    change_byte(path, at);
  }
  must(pawl_reduce_load(member->reduce, path, &iteration));
  assert_int_equal(iteration, 3);
  assert_memory_equal(member->values, before, sizeof before);
  assert_int_equal(truncate(path, 300), 0);
  must_fail(pawl_reduce_load(member->reduce, path, NULL), PAWL_TRUNCATED, "one");
  must(pawl_reduce_step(member->reduce, PATIENCE, &member->report));
  assert_int_equal(member->report.iteration, 4);
  pawl_reduce_close(member->reduce);
  must(pawl_session_close(member->session, PATIENCE));
  release(members, 1);
  unlink(path);
  unlink(other);
}

static void *resume_member(void *context) {
  struct member *member = context;
  uint64_t iteration = 0;
  pawl_status status = open_member(member);
  if (!status) status = pawl_reduce_load(member->reduce, member->options.checkpoint, &iteration);
  if (status == PAWL_NOT_FOUND) status = PAWL_OK;
  for (int i = 0; !status && i < 5; i++) status = pawl_reduce_step(member->reduce, PATIENCE, &member->report);
  note(member, status);
  pawl_reduce_close(member->reduce);
  pawl_peers_leave(member->peers);
  return NULL;
}

/* Two members have the same iteration, one an older file, and one has none. */
static void test_a_whole_job_is_resumed_from_its_checkpoints(void **state) {
  struct member members[4];
  char paths[4][64];
  (void)state;
  prepare(members, 4, 200);
  for (int i = 0; i < 4; i++) {
    snprintf(paths[i], sizeof paths[i], "%s/member%d", folder, i);
    members[i].options.checkpoint = paths[i];
    members[i].options.checkpoint_period = i == 2 ? 4 : 5;
    members[i].iterations = 10;
  }
  start(members, 4);
  finish(members, 4);
  must_all(members, 4);
  float mean = members[0].values[3];
  release(members, 4);
  unlink(paths[1]);
  prepare(members, 4, 200);
  for (int i = 0; i < 4; i++) {
    members[i].options.checkpoint = paths[i];
    assert_int_equal(pthread_create(&members[i].thread, NULL, resume_member, &members[i]), 0);
  }
  finish(members, 4);
  must_all(members, 4);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(members[i].report.iteration, 15);
    assert_true(fabsf(members[i].values[3] - mean) < 0.05f);
    unlink(paths[i]);
  }
  release(members, 4);
}

/* --- other processes ------------------------------------------------------------------------------------ */

/* Joins, makes steps for ever, and is killed. */
static int run_process(const char *address, const char *group) {
  struct member member = {.size = 3, .count = 20000, .iterations = UINT64_MAX};
  pawl_reduce_options_init(&member.options);
  snprintf(member.group, sizeof member.group, "%s", group);
  member.session = open_peer(address);
  member.values = pwi_alloc_zero(member.count, sizeof(float));
  must(open_member(&member));
  for (;;) {
    must(pawl_reduce_step(member.reduce, PATIENCE, &member.report));
    if (member.report.iteration == 3 && dprintf(PWI_CHILD_READY_FD, "ready\n") < 0) return 1;
  }
}

static struct pwi_child *start_process(const char *group) {
  const char *const words[] = {"reduce_test", pawl_session_address(cluster), group, NULL};
  return start_self(words);
}

static void *run_until_alone(void *context) {
  struct member *member = context;
  pawl_status status = open_member(member);
  while (!status && (member->report.iteration < 50 || member->report.size != 1))
    status = pawl_reduce_step(member->reduce, PATIENCE, &member->report);
  note(member, status);
  pawl_reduce_close(member->reduce);
  pawl_peers_leave(member->peers);
  return NULL;
}

static void test_processes_that_are_killed_do_not_stop_the_others(void **state) {
  struct member members[1];
  struct pwi_child *children[2];
  const char *line;
  (void)state;
  prepare(members, 1, 20000);
  members[0].size = 3;
  members[0].bias[0] = 0;
  for (int i = 0; i < 2; i++) children[i] = start_process(members[0].group);
  assert_int_equal(pthread_create(&members[0].thread, NULL, run_until_alone, &members[0]), 0);
  for (int i = 0; i < 2; i++) {
    must(pwi_child_ready(children[i], pwi_host_after(PATIENCE), &line));
    pwi_child_stop(children[i], 0); /* killed, in the middle of a step */
  }
  finish(members, 1);
  must_all(members, 1);
  release(members, 1);
}

static int open_all(void **state) {
  assert_non_null(mkdtemp(folder));
  return open_cluster(state);
}

static int close_all(void **state) {
  close_cluster(state);
  assert_int_equal(rmdir(folder), 0); /* nothing was left behind */
  return 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_complete_graph_averages_in_one_step),
      cmocka_unit_test(test_sparse_graphs_converge_to_the_average),
      cmocka_unit_test(test_every_mode_and_narrowing_works),
      cmocka_unit_test(test_gradients_that_are_not_sent_are_kept_until_they_are_large),
      cmocka_unit_test(test_different_tensors_are_a_mismatch_at_both),
      cmocka_unit_test(test_members_that_are_alone_keep_their_values),
      cmocka_unit_test(test_values_that_are_not_finite_are_refused_before_they_are_sent),
      cmocka_unit_test(test_a_step_ends_at_its_deadline_and_can_be_continued),
      cmocka_unit_test(test_bad_arguments_and_graphs_are_refused),
      cmocka_unit_test(test_a_graph_that_is_not_strongly_connected_is_refused),
      cmocka_unit_test(test_a_graph_is_checked_before_there_is_a_session),
      cmocka_unit_test(test_a_file_has_a_node_for_each_founding_member),
      cmocka_unit_test(test_a_group_of_one_founder_takes_a_file_for_more_members),
      cmocka_unit_test(test_a_checkpoint_is_loaded_whole_or_not_at_all),
      cmocka_unit_test(test_a_whole_job_is_resumed_from_its_checkpoints),
      cmocka_unit_test(test_processes_that_are_killed_do_not_stop_the_others),
  };
  if (argc > 2) return run_process(argv[1], argv[2]);
  return cmocka_run_group_tests(tests, open_all, close_all);
}
