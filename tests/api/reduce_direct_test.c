/* Members that share memory read one another's tensors where they are; others send them. Both give the same
 * bits. */
#include "peers_scene.h"

#include <float.h>
#include <math.h>
#include <pthread.h>

#include "base/memory.h"
#include "base/random.h"

#define MEMBERS_MAX 4
#define TENSORS_MAX 5
#define STEPS 12
#define OTHER_BYTES 100000

static int group_number;

struct member {
  pthread_t thread;
  struct pawl_session *session;
  char group[32];
  uint32_t index, size;
  const char *graph;
  bool is_tcp_only;
  struct pawl_tensor tensors[TENSORS_MAX];
  size_t count;
  uint64_t bytes; /* as the reports of all steps say */
  struct pawl_session_figures figures;
  pawl_status status, first;
  char text[256];
};

static size_t size_of(const struct pawl_tensor *tensor) { return tensor->count * pawl_type_size(tensor->type); }

static double value_of(uint32_t index, size_t tensor, size_t i, int step) {
  uint64_t bits = pwi_random_at(index * 8 + tensor, (uint64_t)step, i);
  return ldexp((double)(bits % 2001) - 1000.0, (int)(bits >> 32) % 20 - 10);
}

static void change(struct member *member, int step) {
  for (size_t t = 0; t < member->count; t++)
    for (size_t i = 0; i < member->tensors[t].count; i++) {
      double noise = value_of(member->index, t, i, step);
      if (member->tensors[t].type == PAWL_F32)
        ((float *)member->tensors[t].values)[i] += (float)noise;
      else
        ((double *)member->tensors[t].values)[i] += noise;
    }
}

static void *run_member(void *context) {
  struct member *member = context;
  struct pawl_reduce_options options;
  struct pawl_reduce_report report = {0};
  struct pawl_peers *peers = NULL;
  struct pawl_reduce *reduce = NULL;
  pawl_reduce_options_init(&options);
  options.graph = member->graph;
  pawl_status status = pawl_peers_join(member->session, member->group, member->size, PATIENCE, &peers);
  if (!status) status = pawl_reduce_open(peers, "model", member->tensors, member->count, &options, PATIENCE, &reduce);
  for (int step = 0; step < STEPS && !status; step++) {
    change(member, step);
    status = pawl_reduce_step(reduce, PATIENCE, &report);
    member->bytes += report.bytes_sent;
  }
  pawl_session_figures(member->session, &member->figures);
  member->status = status;
  snprintf(member->text, sizeof member->text, "%s", pawl_error_text());
  pawl_reduce_close(reduce);
  pawl_peers_leave(peers);
  return NULL;
}

static struct pawl_session *open_session(bool is_tcp_only) {
  struct pawl_session_options options = peer_options(pawl_session_address(cluster));
  struct pawl_session *session = NULL;
  options.tcp_only = is_tcp_only;
  must(pawl_session_open(&options, &session));
  return session;
}

/* Sessions are opened one after the other, so that ranks are indices. */
static void open_all(struct member *members, uint32_t size) {
  group_number++;
  for (uint32_t i = 0; i < size; i++) {
    members[i].index = i;
    members[i].size = size;
    members[i].session = open_session(members[i].is_tcp_only);
    snprintf(members[i].group, sizeof members[i].group, "d/group%d", group_number);
  }
}

static void run_all(struct member *members, uint32_t size, void *(*run)(void *)) {
  for (uint32_t i = 0; i < size; i++) assert_int_equal(pthread_create(&members[i].thread, NULL, run, &members[i]), 0);
  for (uint32_t i = 0; i < size; i++) {
    pthread_join(members[i].thread, NULL);
    must(pawl_session_close(members[i].session, PATIENCE));
  }
}

static void add_tensors(struct member *members, uint32_t size, uint64_t seed) {
  struct pwi_random random;
  pwi_random_init(&random, seed, 1);
  size_t count = 1 + pwi_random_below(&random, TENSORS_MAX);
  for (size_t t = 0; t < count; t++) {
    size_t values = pwi_random_below(&random, t % 2 ? 20 : 5000);
    enum pawl_type type = pwi_random_below(&random, 2) ? PAWL_F32 : PAWL_F64;
    for (uint32_t i = 0; i < size; i++) {
      members[i].tensors[t] = (struct pawl_tensor){pwi_alloc_zero(values + 1, 8), values, type};
      assert_non_null(members[i].tensors[t].values);
      members[i].count = count;
    }
  }
}

static void free_tensors(struct member *members, uint32_t size) {
  for (uint32_t i = 0; i < size; i++)
    for (size_t t = 0; t < members[i].count; t++) pwi_free(members[i].tensors[t].values);
}

/* `tcp` has a bit for each member that shares no memory. */
static void run_scene(struct member *members, uint32_t size, uint64_t seed, const char *graph, unsigned tcp) {
  memset(members, 0, size * sizeof *members);
  for (uint32_t i = 0; i < size; i++) {
    members[i].is_tcp_only = tcp >> i & 1;
    members[i].graph = graph;
  }
  add_tensors(members, size, seed);
  open_all(members, size);
  run_all(members, size, run_member);
  for (uint32_t i = 0; i < size; i++)
    if (members[i].status) fail_msg("member %u: %s: %s", i, pawl_status_name(members[i].status), members[i].text);
}

/* `whole` is the number of bytes in all versions for the neighbours; in these graphs a member receives as many. The
 * session also counts other messages, which are few. The last put may come after the step. */
static void check_figures(const struct member *member, uint64_t whole) {
  uint64_t sent = member->figures.bytes_sent, received = member->figures.bytes_received;
  if (sent < member->bytes || sent > whole + OTHER_BYTES || received < whole || received > whole + OTHER_BYTES)
    fail_msg("member %u: %llu of %llu bytes in its reports, but %llu sent and %llu received", member->index,
             (unsigned long long)member->bytes, (unsigned long long)whole, (unsigned long long)sent,
             (unsigned long long)received);
}

static void test_shared_memory_and_sockets_give_the_same_bits(void **state) {
  static const char *const graphs[] = {"complete", "ring", "root"};
  static const unsigned mixed[] = {1, 2, 6, 9};
  struct member shared[MEMBERS_MAX], sent[MEMBERS_MAX];
  (void)state;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    uint32_t size = 2 + (uint32_t)(seed % 3);
    const char *graph = graphs[seed % 3];
    run_scene(shared, size, seed, graph, 0);
    run_scene(sent, size, seed, graph, seed % 2 ? 15 : mixed[seed / 2 % 4]);
    for (uint32_t i = 0; i < size; i++) {
      assert_true(shared[i].bytes > 0 && sent[i].bytes <= shared[i].bytes);
      check_figures(&shared[i], shared[i].bytes);
      check_figures(&sent[i], shared[i].bytes);
      for (size_t t = 0; t < shared[i].count; t++)
        assert_memory_equal(shared[i].tensors[t].values, sent[i].tensors[t].values, size_of(&shared[i].tensors[t]));
    }
    free_tensors(shared, size);
    free_tensors(sent, size);
  }
}

/* The sum of both is not finite. The values are restored; the next attempt uses what the neighbour has
 * sent. */
static void *run_overflow(void *context) {
  struct member *member = context;
  struct pawl_peers *peers = NULL;
  struct pawl_reduce *reduce = NULL;
  float *values = member->tensors[0].values;
  size_t count = member->tensors[0].count;
  for (size_t i = 0; i < count; i++) values[i] = (float)i;
  values[count - 1] = FLT_MAX;
  must(pawl_peers_join(member->session, member->group, 2, PATIENCE, &peers));
  must(pawl_reduce_open(peers, "model", member->tensors, 1, NULL, PATIENCE, &reduce));
  member->first = pawl_reduce_step(reduce, PATIENCE, NULL);
  bool is_restored = values[count - 1] == FLT_MAX;
  for (size_t i = 0; i + 1 < count; i++) is_restored &= values[i] == (float)i;
  for (size_t i = 0; i < count; i++) values[i] = 4;
  member->status = is_restored ? pawl_reduce_step(reduce, PATIENCE, NULL) : PAWL_CORRUPT;
  pawl_reduce_close(reduce);
  pawl_peers_leave(peers);
  return NULL;
}

static void test_a_sum_that_is_not_finite_changes_nothing(void **state) {
  struct member members[2];
  (void)state;
  for (unsigned tcp = 0; tcp < 2; tcp++) {
    memset(members, 0, sizeof members);
    for (uint32_t i = 0; i < 2; i++) {
      members[i].is_tcp_only = tcp == 1;
      members[i].count = 1;
      members[i].tensors[0] = (struct pawl_tensor){pwi_alloc_zero(3001, 4), 3001, PAWL_F32};
    }
    open_all(members, 2);
    run_all(members, 2, run_overflow);
    for (uint32_t i = 0; i < 2; i++) {
      const float *values = members[i].tensors[0].values;
      assert_int_equal(members[i].first, PAWL_DIVERGED);
      assert_int_equal(members[i].status, PAWL_OK);
      assert_true(values[10] == 7.0f && values[3000] == (4 + FLT_MAX) / 2);
    }
    free_tensors(members, 2);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shared_memory_and_sockets_give_the_same_bits),
      cmocka_unit_test(test_a_sum_that_is_not_finite_changes_nothing),
  };
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
