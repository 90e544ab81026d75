/* Filters in a cluster: real client, servers and manager in the simulator. Links have no data planes, so
 * codecs are used wherever they are permitted. */
#include "base/memory.h"
#include "base/testing.h"
#include "cluster.h"
#include "client/inside.h"

#define ROWS 2000

static struct pwi_cluster cluster;
static struct pwi_cluster_client client;

static void open_cluster(uint64_t seed, uint32_t processes, uint32_t replicas) {
  struct pwi_cluster_config config = {
      .seed = seed, .processes = processes, .shards = 1, .replicas = replicas, .points = 1, .checked_hosts = true};
  cluster_open(&cluster, &config);
  client = (struct pwi_cluster_client){.job = "filters"};
  strcpy(client.name, "worker");
  cluster_client_add(&cluster, &client);
  cluster_wait_joined(&client);
}

static struct pwi_flow *make_vector(const char *name, enum pawl_type type, uint64_t size, const char *filters) {
  struct pawl_vector_options options;
  char problem[PWI_FILTERS_PROBLEM_MAX] = "";
  pawl_vector_options_init(&options);
  options.type = type;
  options.size = size;
  struct pawl_vector_options settled;
  assert_int_equal(pwi_options_settle(&options, NULL, &settled), PAWL_OK);
  struct pwi_flow *flow = cluster_vector(&client, name, &settled);
  assert_int_equal(pwi_client_filter(client.client, flow, filters, NULL, problem, sizeof problem), PAWL_OK);
  return flow;
}

static void push(struct pwi_flow *flow, const struct pwi_where *where, const void *values) {
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PUSH, where, values, NULL, NULL), PAWL_OK);
}

static void pull(struct pwi_flow *flow, const struct pwi_where *where, void *values) {
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PULL, where, NULL, values, NULL), PAWL_OK);
}

static void flush(struct pwi_flow *flow) {
  struct pwi_where rests = {.flush = true};
  push(flow, &rests, NULL);
}

static struct pawl_filter_counters counters_of(const struct pwi_flow *flow, unsigned direction, size_t index) {
  struct pawl_filter_counters counters;
  assert_int_equal(pawl_filters_counters(pwi_flow_filters(flow, direction), index, &counters), PAWL_OK);
  return counters;
}

/* Every tenth value is not zero. */
static void fill_sparse(float *values, float scale) {
  for (size_t i = 0; i < ROWS; i++) values[i] = i % 10 == 0 ? scale * (float)(i + 1) : 0;
}

static const struct pwi_where all = {.range = {0, ROWS}};

static void carry_both_ways(const char *filters, uint64_t most_out, uint64_t most_in) {
  float values[ROWS], seen[ROWS];
  open_cluster(3, 2, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_F32, ROWS, filters);
  fill_sparse(values, 0.1F);
  push(flow, &all, values);
  pull(flow, &all, seen);
  assert_memory_equal(seen, values, sizeof values);
  struct pwi_flow_traffic traffic = pwi_flow_traffic(flow);
  assert_true(traffic.bytes_out < most_out && traffic.bytes_in < most_in);
  pwi_cluster_close(&cluster);
}

static void test_without_filters_values_travel_as_they_are(void **state) {
  (void)state;
  float values[ROWS];
  open_cluster(3, 2, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_F32, ROWS, "none");
  assert_null(pwi_flow_filters(flow, PAWL_ON_PUSH));
  fill_sparse(values, 0.1F);
  push(flow, &all, values);
  assert_true(pwi_flow_traffic(flow).bytes_out >= sizeof values);
  pwi_cluster_close(&cluster);
}

static void test_zeros_cost_a_bit_on_both_ways(void **state) {
  (void)state;
  carry_both_ways("zeros", 2500, 2500);
}

static void test_lz4_packs_both_ways(void **state) {
  (void)state;
  carry_both_ways("compress(with=lz4)", 2500, 2500);
}

static void test_zstd_packs_both_ways(void **state) {
  (void)state;
  carry_both_ways("compress(with=zstd)", 2500, 2500);
}

static void test_of_two_encodings_the_smaller_result_is_sent(void **state) {
  (void)state;
  carry_both_ways("zeros | compress(with=zstd)", 2500, 2500);
}

/* Encoding takes no time in the simulator, so it pays on any link that takes time. */
static void test_a_compressor_is_chosen_once_it_has_shown_that_it_pays(void **state) {
  (void)state;
  enum { COUNT = 20000 };
  static double values[COUNT], seen[COUNT];
  struct pwi_where whole = {.range = {0, COUNT}};
  open_cluster(3, 1, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_F64, COUNT, "compress");
  for (size_t i = 0; i < COUNT; i++) values[i] = (double)(i / 100);
  uint64_t first = 0, out = 0, in = 0;
  for (int n = 0; n < 20; n++) {
    struct pwi_flow_traffic before = pwi_flow_traffic(flow);
    push(flow, &whole, values);
    pull(flow, &whole, seen);
    out = pwi_flow_traffic(flow).bytes_out - before.bytes_out;
    in = pwi_flow_traffic(flow).bytes_in - before.bytes_in;
    if (n == 0) first = out;
  }
  assert_true(first > sizeof values && out < first / 4 && in < first / 4);
  for (size_t i = 0; i < COUNT; i++) assert_true(seen[i] == 20 * values[i]);
  pwi_cluster_close(&cluster);
}

static void test_an_encoding_for_pushes_leaves_pulls_alone(void **state) {
  (void)state;
  float values[ROWS], seen[ROWS];
  open_cluster(3, 2, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_F32, ROWS, "zeros(on=push)");
  fill_sparse(values, 1);
  push(flow, &all, values);
  pull(flow, &all, seen);
  assert_memory_equal(seen, values, sizeof values);
  assert_true(pwi_flow_traffic(flow).bytes_out < 2500);
  assert_true(pwi_flow_traffic(flow).bytes_in >= sizeof values);
  pwi_cluster_close(&cluster);
}

/* The hello of a peer of an older version has no codecs. */
static void forget_codecs(void) {
  for (size_t i = 0; i < client.client->links.room; i++) {
    struct client_link *link = client.client->links.slots[i].id ? client.client->links.slots[i].item : NULL;
    if (link) link->peering.codecs = 0;
  }
}

static void test_what_a_peer_does_not_know_is_not_sent_to_it(void **state) {
  (void)state;
  float values[ROWS], seen[ROWS];
  open_cluster(3, 1, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_F32, ROWS, "zeros | compress");
  struct pwi_where one = {.range = {0, 1}};
  fill_sparse(values, 1);
  pull(flow, &one, seen);
  forget_codecs();
  push(flow, &all, values);
  pull(flow, &all, seen);
  assert_memory_equal(seen, values, sizeof values);
  assert_true(pwi_flow_traffic(flow).bytes_out >= sizeof values);
  assert_true(pwi_flow_traffic(flow).bytes_in >= sizeof values);
  pwi_cluster_close(&cluster);
}

static void test_a_lossy_filter_on_pulls_is_refused_where_the_peer_does_not_know_it(void **state) {
  (void)state;
  float seen[ROWS];
  open_cluster(3, 1, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_F32, ROWS, "half(on=pull)");
  pull(flow, &all, seen);
  flow->filters->asked[6] ^= 1; /* a letter of its name */
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PULL, &all, NULL, seen, NULL), PAWL_UNSUPPORTED);
  flow->filters->asked[6] ^= 1;
  pull(flow, &all, seen);
  forget_codecs();
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PULL, &all, NULL, seen, NULL), PAWL_UNSUPPORTED);
  pwi_cluster_close(&cluster);
}

static void test_filters_that_are_no_list_fail_the_pull_and_nothing_else(void **state) {
  (void)state;
  float seen[ROWS];
  open_cluster(3, 1, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_F32, ROWS, "half(on=pull) | zeros");
  size_t size = flow->filters->asked_size;
  for (size_t cut = 1; cut < size; cut++) {
    flow->filters->asked_size = cut;
    assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PULL, &all, NULL, seen, NULL), PAWL_UNSUPPORTED);
  }
  flow->filters->asked_size = size;
  pull(flow, &all, seen);
  pwi_cluster_close(&cluster);
}

static void test_half_rounds_what_is_pushed_and_what_is_pulled(void **state) {
  (void)state;
  float values[ROWS], seen[ROWS];
  open_cluster(3, 2, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_F32, ROWS, "half(round=nearest)");
  for (size_t i = 0; i < ROWS; i++) values[i] = 1.0F + (float)i * 0x1p-12F;
  push(flow, &all, values);
  pull(flow, &all, seen);
  for (size_t i = 0; i < ROWS; i++) {
    float steps = seen[i] * 1024;
    assert_true(steps == (float)(int)steps); /* ten bits behind the point */
    assert_true(seen[i] - values[i] <= 0x1p-11F && values[i] - seen[i] <= 0x1p-11F);
  }
  struct pwi_flow_traffic traffic = pwi_flow_traffic(flow);
  assert_true(traffic.bytes_out < 2 * ROWS + 2000 && traffic.bytes_in < 2 * ROWS + 2000);
  pwi_cluster_close(&cluster);
}

static void test_random_rounding_of_many_pushes_is_right_on_the_average(void **state) {
  (void)state;
  enum { PUSHES = 100 };
  float values[ROWS], seen[ROWS];
  double sum = 0, wanted = 0;
  open_cluster(5, 2, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_F32, ROWS, "fixed(bits=6, on=push)");
  for (size_t i = 0; i < ROWS; i++) values[i] = (float)(i % 97) / 97.0F;
  for (int i = 0; i < PUSHES; i++) push(flow, &all, values);
  pull(flow, &all, seen);
  for (size_t i = 0; i < ROWS; i++) {
    sum += seen[i];
    wanted += (double)values[i] * PUSHES;
  }
  /* The error of a value is at most a step of 1/16, with a variance below its quarter: five standard
   * errors. */
  double bound = 5 * (1.0 / 16) * 0.5 * 447.2; /* sqrt(ROWS * PUSHES) */
  assert_true(sum - wanted < bound && wanted - sum < bound);
  pwi_cluster_close(&cluster);
}

static void test_rests_and_what_was_sent_make_the_total(void **state) {
  (void)state;
  int64_t values[100], seen[100];
  uint64_t keys[100];
  open_cluster(3, 2, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_I64, 1000, "significant(threshold=10)");
  struct pwi_where where = {.keys = keys, .count = 100};
  for (size_t i = 0; i < 100; i++) keys[i] = 10 * i, values[i] = (int64_t)i % 7;
  for (int n = 0; n < 4; n++) push(flow, &where, values);
  pull(flow, &where, seen);
  bool is_held = false;
  for (size_t i = 0; i < 100; i++) is_held |= seen[i] != 4 * values[i];
  assert_true(is_held && pawl_filters_held(pwi_flow_filters(flow, PAWL_ON_PUSH)) > 0);
  flush(flow);
  pull(flow, &where, seen);
  for (size_t i = 0; i < 100; i++) assert_int_equal(seen[i], 4 * values[i]);
  assert_int_equal(pawl_filters_held(pwi_flow_filters(flow, PAWL_ON_PUSH)), 0);
  struct pawl_filter_counters counters = counters_of(flow, PAWL_ON_PUSH, 0);
  assert_true(counters.runs == 5 && counters.rows_before == 400 && counters.rows_after < 400);
  pwi_cluster_close(&cluster);
}

static void test_filters_work_on_mixed_vectors_by_plain_and_prepared_lists(void **state) {
  (void)state;
  int64_t values[50], seen[50];
  uint64_t keys[50];
  struct pwi_keylist *list;
  open_cluster(3, 2, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_I64, PAWL_KEY_END, "significant(threshold=3) | keys");
  for (size_t i = 0; i < 50; i++) keys[i] = i * i * 12345 + i, values[i] = (int64_t)(i % 3) - 1;
  assert_int_equal(pwi_keylist_create(client.client, pwi_flow_entry(flow), keys, 50, &list), PAWL_OK);
  struct pwi_where plain = {.keys = keys, .count = 50}, prepared = {.list = list};
  for (int n = 0; n < 5; n++) {
    push(flow, &plain, values);
    push(flow, &prepared, values);
  }
  flush(flow);
  pull(flow, &prepared, seen);
  for (size_t i = 0; i < 50; i++) assert_int_equal(seen[i], 10 * values[i]);
  pwi_keylist_release(list);
  pwi_cluster_close(&cluster);
}

static void test_only_rows_in_the_range_are_filtered(void **state) {
  (void)state;
  int64_t values[10], seen[10];
  uint64_t keys[10];
  open_cluster(3, 1, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_I64, 100, "significant(threshold=2)");
  for (size_t i = 0; i < 10; i++) keys[i] = i * 10, values[i] = 2;
  struct pwi_where limited = {.keys = keys, .count = 10, .range = {25, 65}}, whole = {.keys = keys, .count = 10};
  push(flow, &limited, values);
  pull(flow, &whole, seen);
  for (size_t i = 0; i < 10; i++) assert_int_equal(seen[i], i >= 3 && i <= 6 ? 2 : 0);
  pwi_cluster_close(&cluster);
}

static void test_weights_decide_what_kkt_sends(void **state) {
  (void)state;
  float gradients[4] = {0.1F, 0.95F, 0.1F, 2}, weights[4] = {0, 0, 0.5F, 0}, seen[4];
  uint64_t keys[4] = {1, 2, 3, 4};
  open_cluster(3, 1, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_F32, 100, "kkt(lambda=1, delta=0.25)");
  struct pwi_where where = {.keys = keys, .count = 4};
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PUSH, &where, gradients, NULL, NULL), PAWL_INVALID);
  where.weights = weights;
  push(flow, &where, gradients);
  pull(flow, &where, seen);
  assert_true(seen[0] == 0 && seen[1] == 0.95F && seen[2] == 0.1F && seen[3] == 2);
  assert_int_equal(counters_of(flow, PAWL_ON_PUSH, 0).rows_after, 3);
  pwi_cluster_close(&cluster);
}

static void test_a_list_that_comes_again_goes_as_its_signature(void **state) {
  (void)state;
  double values[1000];
  uint64_t keys[1000];
  open_cluster(3, 1, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_F64, UINT64_C(1) << 60, "keys");
  for (size_t i = 0; i < 1000; i++) keys[i] = i << 50 | i * i, values[i] = 1;
  struct pwi_where where = {.keys = keys, .count = 1000};
  push(flow, &where, values);
  uint64_t first = pwi_flow_traffic(flow).bytes_out;
  push(flow, &where, values);
  uint64_t second = pwi_flow_traffic(flow).bytes_out - first;
  pull(flow, &where, values);
  uint64_t pulled = pwi_flow_traffic(flow).bytes_out - first - second;
  assert_true(first > second + 6000 && second < sizeof values + 500 && pulled < 500);
  for (size_t i = 0; i < 1000; i++) assert_true(values[i] == 2);
  struct pawl_filter_counters counters = counters_of(flow, PAWL_ON_PUSH, 0);
  assert_true(counters.bytes_before == 16000 && counters.bytes_after < 8008);
  pwi_cluster_close(&cluster);
}

static void test_more_lists_than_are_kept_are_all_right(void **state) {
  (void)state;
  int64_t values[8] = {1, 1, 1, 1, 1, 1, 1, 1}, seen[300];
  open_cluster(3, 1, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_I64, 300, "keys");
  for (int round = 0; round < 2; round++)
    for (uint64_t first = 0; first < 200; first++) {
      uint64_t keys[8];
      for (size_t i = 0; i < 8; i++) keys[i] = first + i;
      struct pwi_where where = {.keys = keys, .count = 8};
      push(flow, &where, values);
    }
  struct pwi_where whole = {.range = {0, 300}};
  pull(flow, &whole, seen);
  for (int64_t i = 0; i < 300; i++) {
    int64_t times = i < 8 ? i + 1 : i < 200 ? 8 : i < 207 ? 207 - i : 0;
    assert_int_equal(seen[i], 2 * times);
  }
  pwi_cluster_close(&cluster);
}

static void test_push_and_pull_in_one_is_refused_with_lossy_filters(void **state) {
  (void)state;
  float values[ROWS] = {0};
  open_cluster(3, 1, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_F32, ROWS, "half");
  struct pwi_task task;
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PUSHPULL, &all, values, values, &task), PAWL_UNSUPPORTED);
  assert_int_equal(pwi_client_filter(client.client, flow, "zeros | half(on=pull)", NULL, NULL, 0), PAWL_INVALID);
  assert_int_equal(pwi_client_filter(client.client, flow, "half(on=pull) | zeros", NULL, NULL, 0), PAWL_OK);
  fill_sparse(values, 1);
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PUSHPULL, &all, values, values, NULL), PAWL_OK);
  for (size_t i = 0; i < ROWS; i++) assert_true((values[i] != 0) == (i % 10 == 0));
  pwi_cluster_close(&cluster);
}

static void test_a_chain_that_holds_rests_is_not_replaced(void **state) {
  (void)state;
  int64_t one = 1;
  struct pwi_where first = {.range = {0, 1}};
  open_cluster(3, 1, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_I64, 10, "significant(threshold=5)");
  push(flow, &first, &one);
  assert_int_equal(pwi_client_filter(client.client, flow, "none", NULL, NULL, 0), PAWL_INVALID);
  flush(flow);
  assert_int_equal(pwi_client_filter(client.client, flow, "none", NULL, NULL, 0), PAWL_OK);
  flush(flow); /* nothing to be flushed is fine too */
  pull(flow, &first, &one);
  assert_int_equal(one, 1);
  pwi_cluster_close(&cluster);
}

static void test_what_filters_did_is_in_the_status(void **state) {
  (void)state;
  int64_t values[100];
  struct pwi_where where = {.range = {0, 100}};
  struct pwi_writer writer = {0};
  open_cluster(3, 1, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_I64, 100, "significant(threshold=50) | zeros");
  for (size_t i = 0; i < 100; i++) values[i] = (int64_t)i;
  push(flow, &where, values);
  pull(flow, &where, values);
  cluster_run_for(&cluster, 2000 * MS);
  assert_int_equal(pwi_manager_status(cluster.manager, &writer), PAWL_OK);
  pwi_write_u8(&writer, 0);
  const char *text = (const char *)writer.data;
  assert_non_null(strstr(text, "{\"name\":\"significant\",\"on\":\"push\",\"runs\":1,\"rows_before\":100,"
                               "\"rows_after\":50,\"bytes_before\":1600,\"bytes_after\":800,\"clamped\":0}"));
  assert_non_null(strstr(text, "{\"name\":\"zeros\",\"on\":\"pull\",\"runs\":1,\"rows_before\":100,"));
  struct pwi_manager_filter filters[8];
  assert_int_equal(pwi_manager_filters(cluster.manager, filters, 8), 3);
  assert_string_equal(filters[0].vector, "test/w");
  pwi_writer_fini(&writer);
  pwi_cluster_close(&cluster);
}

/* --- faults --------------------------------------------------------------------------------------------- */

static bool is_over;
static void finished(struct pwi_task *task) {
  (void)task;
  is_over = true;
}

static bool is_under_way(void *context) {
  (void)context;
  return !is_over;
}

static void break_links(void) {
  for (size_t i = 0; i < cluster.server_count; i++) pwi_sim_break(cluster.sim, client.node, cluster.servers[i].node);
}

/* Half of the rows are rounded up and half down, at random, so a second rounding would show. */
static void test_what_is_sent_again_after_lost_links_is_what_was_sent_before(void **state) {
  (void)state;
  float values[ROWS], kept[ROWS], seen[ROWS];
  uint64_t resent = 0;
  for (size_t i = 0; i < ROWS; i++) values[i] = 1.0F + 0x1p-11F + (float)i;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    struct pwi_task task = {.finished = finished};
    open_cluster(seed, 3, 1);
    struct pwi_flow *flow = make_vector("test/w", PAWL_F32, ROWS, "half(on=push)");
    is_over = false;
    assert_int_equal(pwi_client_start(client.client, &task, flow, PWI_REQUEST_PUSH, &all, values, NULL), PAWL_OK);
    memcpy(kept, task.filtered->rows.values, sizeof kept);
    memset(values, 0, sizeof values); /* the rows are the task's own by now */
    for (int i = 0; i < 5 && !is_over; i++) {
      cluster_run_for(&cluster, 300000);
      break_links();
    }
    cluster_run_while(&cluster, is_under_way, NULL, 60000 * MS);
    assert_int_equal(task.status, PAWL_OK);
    resent += client.client->figures.parts_resent;
    pull(flow, &all, seen);
    assert_memory_equal(seen, kept, sizeof kept);
    for (size_t i = 0; i < ROWS; i++) values[i] = 1.0F + 0x1p-11F + (float)i;
    pwi_cluster_close(&cluster);
  }
  assert_true(resent > 0);
}

/* Integers, so sums are exact in any order. */
static void test_totals_are_right_with_lost_links_and_lost_servers(void **state) {
  (void)state;
  enum { KEYS = 200, PUSHES = 40 };
  for (uint64_t seed = 21; seed <= 28; seed++) {
    int64_t values[KEYS], seen[KEYS], wanted[KEYS] = {0};
    uint64_t keys[KEYS];
    struct pwi_random random;
    printf("seed %llu\n", (unsigned long long)seed);
    pwi_random_init(&random, seed, 1);
    open_cluster(seed, 3, 1);
    struct pwi_flow *flow =
        make_vector("test/w", PAWL_I64, 1000, "significant(threshold=20) | skip(rate=0.3) | keys | zeros | compress");
    for (int n = 0; n < PUSHES; n++) {
      struct pwi_task task = {.finished = finished};
      size_t count = 0;
      for (uint64_t key = pwi_random_below(&random, 9); key < 1000 && count < KEYS; count++) {
        keys[count] = key;
        values[count] = (int64_t)pwi_random_below(&random, 19) - 9;
        wanted[key % KEYS] += values[count];
        key += 1 + pwi_random_below(&random, 9);
      }
      struct pwi_where where = {.keys = keys, .count = count};
      is_over = false;
      assert_int_equal(pwi_client_start(client.client, &task, flow, PWI_REQUEST_PUSH, &where, values, NULL), PAWL_OK);
      if (n % 5 == 2) break_links();
      if (n == PUSHES / 2) pwi_cluster_kill(&cluster, seed % 3);
      cluster_run_while(&cluster, is_under_way, NULL, 60000 * MS);
      assert_int_equal(task.status, PAWL_OK);
    }
    flush(flow);
    memset(seen, 0, sizeof seen);
    for (uint64_t first = 0; first < 1000; first += KEYS) {
      int64_t rows[KEYS];
      struct pwi_where where = {.range = {first, first + KEYS}};
      pull(flow, &where, rows);
      for (size_t i = 0; i < KEYS; i++) seen[i] += rows[i];
    }
    assert_memory_equal(seen, wanted, sizeof seen);
    pwi_cluster_close(&cluster);
  }
}

/* A call that fails leaves the rests unchanged; a task that fails has taken them with it. All rows are
 * treated alike. */
static void test_without_memory_a_call_fails_and_rests_stay(void **state) {
  (void)state;
  int64_t values[64], seen[64], held = 0, stored = 0;
  struct pwi_where where = {.range = {0, 64}};
  open_cluster(3, 1, 0);
  struct pwi_flow *flow = make_vector("test/w", PAWL_I64, 64, "significant(threshold=5) | keys | zeros");
  for (size_t i = 0; i < 64; i++) values[i] = 2;
  for (uint64_t n = 0; n < 48; n++) {
    struct pwi_task task = {.finished = finished};
    is_over = false;
    pwi_memory_fail_after(n % 12);
    pawl_status status = pwi_client_start(client.client, &task, flow, PWI_REQUEST_PUSH, &where, values, NULL);
    pwi_memory_fail_cancel();
    assert_true(status == PAWL_OK || status == PAWL_NO_MEMORY);
    if (status) continue;
    cluster_run_while(&cluster, is_under_way, NULL, 60000 * MS);
    assert_true(task.status == PAWL_OK || task.status == PAWL_NO_MEMORY);
    held += 2;
    if (held < 5) continue;
    if (!task.status) stored += held;
    held = 0;
  }
  flush(flow);
  pull(flow, &where, seen);
  for (size_t i = 0; i < 64; i++) assert_int_equal(seen[i], stored + held);
  pwi_cluster_close(&cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_without_filters_values_travel_as_they_are),
      cmocka_unit_test(test_zeros_cost_a_bit_on_both_ways),
      cmocka_unit_test(test_lz4_packs_both_ways),
      cmocka_unit_test(test_zstd_packs_both_ways),
      cmocka_unit_test(test_of_two_encodings_the_smaller_result_is_sent),
      cmocka_unit_test(test_a_compressor_is_chosen_once_it_has_shown_that_it_pays),
      cmocka_unit_test(test_an_encoding_for_pushes_leaves_pulls_alone),
      cmocka_unit_test(test_what_a_peer_does_not_know_is_not_sent_to_it),
      cmocka_unit_test(test_a_lossy_filter_on_pulls_is_refused_where_the_peer_does_not_know_it),
      cmocka_unit_test(test_filters_that_are_no_list_fail_the_pull_and_nothing_else),
      cmocka_unit_test(test_half_rounds_what_is_pushed_and_what_is_pulled),
      cmocka_unit_test(test_random_rounding_of_many_pushes_is_right_on_the_average),
      cmocka_unit_test(test_rests_and_what_was_sent_make_the_total),
      cmocka_unit_test(test_filters_work_on_mixed_vectors_by_plain_and_prepared_lists),
      cmocka_unit_test(test_only_rows_in_the_range_are_filtered),
      cmocka_unit_test(test_weights_decide_what_kkt_sends),
      cmocka_unit_test(test_a_list_that_comes_again_goes_as_its_signature),
      cmocka_unit_test(test_more_lists_than_are_kept_are_all_right),
      cmocka_unit_test(test_push_and_pull_in_one_is_refused_with_lossy_filters),
      cmocka_unit_test(test_a_chain_that_holds_rests_is_not_replaced),
      cmocka_unit_test(test_what_filters_did_is_in_the_status),
      cmocka_unit_test(test_what_is_sent_again_after_lost_links_is_what_was_sent_before),
      cmocka_unit_test(test_totals_are_right_with_lost_links_and_lost_servers),
      cmocka_unit_test(test_without_memory_a_call_fails_and_rests_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
