/* Events in the life of a cluster, step by step, in the simulator. */
#include "base/cursor.h"
#include "base/testing.h"
#include "cluster.h"
#include "ring/place.h"

static struct pwi_cluster cluster;

static void open_cluster(uint32_t processes, uint64_t memory_max) {
  struct pwi_cluster_config config = {
      .seed = 11, .processes = processes, .shards = 1, .late = 1, .shared_hosts = true, .memory_max = memory_max};
  cluster_open(&cluster, &config);
}

static void add_client(struct pwi_cluster_client *client, const char *name, const char *job, bool reader,
                       bool listens) {
  *client = (struct pwi_cluster_client){.job = job, .reader = reader, .listens = listens};
  strcpy(client->name, name);
  cluster_client_add(&cluster, client);
  cluster_wait_joined(client);
}

static const struct pawl_vector_options counts = {.type = PAWL_I64, .width = 1, .size = 1000};
#define WIDE 1024 /* more bytes in a row than a log entry has by itself */
static const uint64_t keys[] = {0, 10, 500, 999};

static pawl_status push(struct pwi_cluster_client *client, struct pwi_flow *flow, int64_t value) {
  int64_t values[4] = {value, value, value, value};
  struct pwi_where where = {.keys = keys, .count = 4};
  return cluster_call(client, flow, PWI_REQUEST_PUSH, &where, values, NULL, NULL);
}

static int64_t pull(struct pwi_cluster_client *client, struct pwi_flow *flow) {
  int64_t values[4];
  struct pwi_where where = {.keys = keys, .count = 4};
  assert_int_equal(cluster_call(client, flow, PWI_REQUEST_PULL, &where, NULL, values, NULL), PAWL_OK);
  for (size_t i = 1; i < 4; i++) assert_int_equal(values[i], values[0]);
  return values[0];
}

static void sync_catalogue(struct pwi_cluster_client *client) {
  assert_int_equal(cluster_ask(client, PWI_ASK_SYNC, NULL), PAWL_OK);
}

static void test_jobs_in_spaces_of_their_own_do_not_touch_each_other(void **state) {
  (void)state;
  struct pwi_cluster_client ads, news;
  open_cluster(2, 0);
  add_client(&ads, "ads", "ads", false, false);
  add_client(&news, "news", "news", false, false);
  struct pwi_flow *a = cluster_vector(&ads, "ads/w", &counts), *b = cluster_vector(&news, "news/w", &counts);
  assert_int_equal(push(&ads, a, 5), PAWL_OK);
  assert_int_equal(push(&news, b, 7), PAWL_OK);
  assert_int_equal(push(&ads, a, 5), PAWL_OK);
  assert_int_equal(pull(&ads, a), 10);
  assert_int_equal(pull(&news, b), 7);
  pwi_cluster_close(&cluster);
}

static void test_two_jobs_share_a_space(void **state) {
  (void)state;
  struct pwi_cluster_client one, two;
  open_cluster(2, 0);
  add_client(&one, "one", "first", false, false);
  add_client(&two, "two", "second", false, false);
  struct pwi_flow *a = cluster_vector(&one, "shared/w", &counts);
  sync_catalogue(&two);
  struct pwi_flow *b = cluster_open_vector(&two, "shared/w", 0);
  assert_int_equal(push(&one, a, 5), PAWL_OK);
  assert_int_equal(push(&two, b, 7), PAWL_OK);
  assert_int_equal(pull(&one, a), 12);
  assert_int_equal(pull(&two, b), 12);
  pwi_cluster_close(&cluster);
}

static void test_a_reader_pulls_a_model_while_it_is_trained_and_cannot_change_it(void **state) {
  (void)state;
  struct pwi_cluster_client worker, reader;
  open_cluster(2, 0);
  add_client(&worker, "worker", "train", false, false);
  add_client(&reader, "reader", "serve", true, false);
  struct pwi_flow *model = cluster_vector(&worker, "model/w", &counts);
  sync_catalogue(&reader);
  struct pwi_flow *view = cluster_open_vector(&reader, "model/w", 0);
  int64_t last = 0;
  for (int step = 1; step <= 20; step++) {
    assert_int_equal(push(&worker, model, 1), PAWL_OK);
    int64_t seen = pull(&reader, view);
    assert_true(seen >= last && seen <= step);
    last = seen;
  }
  assert_int_equal(last, 20);
  assert_int_equal(push(&reader, view, 1), PAWL_FORBIDDEN);
  assert_int_equal(pull(&worker, model), 20);
  pwi_cluster_close(&cluster);
}

static void test_a_node_serves_a_vector_that_it_opened_locally(void **state) {
  (void)state;
  struct pwi_cluster_client owner, other;
  struct pwi_client_state owner_state;
  open_cluster(1, 0);
  add_client(&owner, "owner", "peers", false, true);
  add_client(&other, "other", "peers", false, false);
  struct pwi_flow *served = cluster_vector(&owner, "peers/w", &counts);
  sync_catalogue(&other);
  assert_int_equal(pwi_client_open_local(owner.client, pwi_flow_entry(served)->id), PAWL_OK);
  pwi_client_state(owner.client, &owner_state);
  struct pwi_flow *local = cluster_open_vector(&other, "peers/w", owner_state.sender);
  struct pwi_flow *on_servers = cluster_open_vector(&other, "peers/w", 0);
  assert_int_equal(push(&other, local, 3), PAWL_OK);
  assert_int_equal(push(&other, local, 4), PAWL_OK);
  assert_int_equal(pull(&other, local), 7);
  assert_int_equal(pull(&other, on_servers), 0);
  pwi_sim_break(cluster.sim, owner.node, other.node);
  assert_int_equal(push(&other, local, 1), PAWL_OK);
  assert_int_equal(pull(&other, local), 8);
  /* When the node is gone for good, so is its vector, and the call fails with that reason. */
  pwi_sim_kill(cluster.sim, owner.node);
  assert_int_equal(push(&other, local, 1), PAWL_NODE_GONE);
  assert_int_equal(push(&other, on_servers, 1), PAWL_OK);
  pwi_cluster_close(&cluster);
}

static void hold_locally(struct pwi_cluster_client *owner, const char *name) {
  cluster_wait_joined(owner);
  sync_catalogue(owner);
  struct pwi_flow *flow = cluster_open_vector(owner, name, 0);
  assert_int_equal(pwi_client_open_local(owner->client, pwi_flow_entry(flow)->id), PAWL_OK);
}

static bool has_ended;
static void note_end(struct pwi_task *task) { (void)task, has_ended = true; }
static bool is_under_way(void *context) { return (void)context, !has_ended; }

/* Regression: a read was answered by the process that had taken over the address, with its own rows. */
static void test_another_process_at_the_same_address_does_not_answer(void **state) {
  (void)state;
  struct pwi_cluster_client owner, writer, reader;
  struct pwi_client_state owner_state;
  struct pwi_task task = {.finished = note_end};
  struct pwi_where where = {.keys = keys, .count = 4};
  int64_t values[4];
  open_cluster(1, 0);
  add_client(&owner, "owner", "peers", false, true);
  add_client(&writer, "writer", "peers", false, false);
  add_client(&reader, "reader", "peers", false, false);
  cluster_vector(&owner, "peers/w", &counts);
  hold_locally(&owner, "peers/w");
  sync_catalogue(&writer);
  sync_catalogue(&reader);
  pwi_client_state(owner.client, &owner_state);
  assert_int_equal(push(&writer, cluster_open_vector(&writer, "peers/w", owner_state.sender), 3), PAWL_OK);
  struct pwi_flow *local = cluster_open_vector(&reader, "peers/w", owner_state.sender);
  assert_int_equal(pull(&reader, local), 3);
  /* The reader does not hear that the owner is gone. */
  pwi_sim_cut(cluster.sim, reader.node, cluster.manager_node);
  pwi_sim_cut(cluster.sim, cluster.manager_node, reader.node);
  pwi_sim_kill(cluster.sim, owner.node);
  assert_int_equal(pwi_sim_start(cluster.sim, owner.node), PAWL_OK);
  hold_locally(&owner, "peers/w");
  has_ended = false;
  assert_int_equal(pwi_client_start(reader.client, &task, local, PWI_REQUEST_PULL, &where, NULL, values), PAWL_OK);
  cluster_run_for(&cluster, 3 * PWI_SIM_SECOND);
  assert_false(has_ended);
  pwi_sim_mend(cluster.sim, reader.node, cluster.manager_node);
  pwi_sim_mend(cluster.sim, cluster.manager_node, reader.node);
  cluster_run_while(&cluster, is_under_way, NULL, 10 * PWI_SIM_SECOND);
  assert_int_equal(task.status, PAWL_NODE_GONE);
  pwi_cluster_close(&cluster);
}

static bool is_under_the_same_id(void *context) {
  const struct pwi_cluster_client *client = context;
  struct pwi_client_state state;
  pwi_client_state(client->client, &state);
  return state.sender == 0 || state.sender == *(const uint64_t *)client->context;
}

/* The owner is declared dead while it stands still, and joins again under another id. Its rows are there still. */
static void test_a_local_vector_outlives_the_id_of_its_node(void **state) {
  (void)state;
  struct pwi_cluster_client owner, other;
  struct pwi_client_state owner_state;
  open_cluster(1, 0);
  add_client(&owner, "owner", "peers", false, true);
  add_client(&other, "other", "peers", false, false);
  struct pwi_flow *served = cluster_vector(&owner, "peers/w", &counts);
  sync_catalogue(&other);
  assert_int_equal(pwi_client_open_local(owner.client, pwi_flow_entry(served)->id), PAWL_OK);
  int64_t sum = 0;
  for (int life = 0; life < 3; life++) {
    pwi_client_state(owner.client, &owner_state);
    struct pwi_flow *local = cluster_open_vector(&other, "peers/w", owner_state.sender);
    for (int i = 1; i <= 3; i++) assert_int_equal(push(&other, local, 10 * life + i), PAWL_OK);
    sum += 3 * 10 * life + 6;
    assert_int_equal(pull(&other, local) % 1000, sum);
    owner.context = &owner_state.sender;
    pwi_sim_pause(cluster.sim, owner.node, 60 * PWI_SIM_SECOND);
    assert_int_equal(push(&other, local, 1000), PAWL_NODE_GONE); /* it has taken effect or not */
    assert_int_equal(
        pwi_sim_run_while(cluster.sim, is_under_the_same_id, &owner, pwi_sim_now(cluster.sim) + 120 * PWI_SIM_SECOND),
        PAWL_OK);
  }
  pwi_cluster_close(&cluster);
}

static void test_bad_input_is_found_before_anything_is_sent(void **state) {
  (void)state;
  struct pwi_cluster_client client;
  int64_t values[4] = {1, 2, 3, 4};
  open_cluster(1, 0);
  add_client(&client, "client", "bad", false, false);
  struct pwi_flow *flow = cluster_vector(&client, "bad/w", &counts);
  static const uint64_t unsorted[] = {5, 4}, repeated[] = {5, 5}, outside[] = {5, 1000};
  const struct {
    struct pwi_where where;
    pawl_status status;
  } cases[] = {
      {{.keys = unsorted, .count = 2}, PAWL_UNSORTED},
      {{.keys = repeated, .count = 2}, PAWL_UNSORTED},
      {{.keys = outside, .count = 2}, PAWL_OUT_OF_SPAN},
      {{.range = {990, 1001}}, PAWL_OUT_OF_SPAN},
      {{.range = {10, 5}}, PAWL_OUT_OF_SPAN},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pawl_status status = cluster_call(&client, flow, PWI_REQUEST_PUSH, &cases[i].where, values, NULL, NULL);
    assert_int_equal(status, cases[i].status);
  }
  assert_int_equal(push(&client, flow, 1), PAWL_OK);
  assert_int_equal(pull(&client, flow), 1);
  pwi_cluster_close(&cluster);
}

static void test_a_push_larger_than_a_message_is_cut_and_arrives_whole(void **state) {
  (void)state;
  struct pwi_cluster_client client;
  const uint64_t size = 9 << 20; /* 72 MiB of values */
  open_cluster(1, 0);
  add_client(&client, "client", "big", false, false);
  struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = size};
  struct pwi_flow *flow = cluster_vector(&client, "big/w", &options);
  int64_t *values = calloc(size, sizeof *values), *back = calloc(size, sizeof *back);
  assert_non_null(values);
  assert_non_null(back);
  for (uint64_t i = 0; i < size; i++) values[i] = (int64_t)(i * 7919);
  struct pwi_where where = {.range = {0, size}};
  for (int times = 1; times <= 2; times++)
    assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PUSH, &where, values, NULL, NULL), PAWL_OK);
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PULL, &where, NULL, back, NULL), PAWL_OK);
  for (uint64_t i = 0; i < size; i++) assert_true(back[i] == 2 * values[i]);
  free(values);
  free(back);
  pwi_cluster_close(&cluster);
}

static void test_past_its_cap_a_server_refuses_to_grow_and_serves_on(void **state) {
  (void)state;
  struct pwi_cluster_client client;
  open_cluster(1, 64 << 10);
  add_client(&client, "client", "cap", false, false);
  struct pawl_vector_options options = {
      .type = PAWL_I64, .width = 4, .size = PAWL_KEY_END, .placement = PAWL_PLACE_ORDERED};
  struct pwi_flow *flow = cluster_vector(&client, "cap/w", &options);
  static uint64_t many[20000];
  static int64_t rows[20000 * 4], back[4];
  for (uint64_t i = 0; i < 20000; i++) many[i] = i * 1000;
  rows[0] = rows[1] = rows[2] = rows[3] = 5;
  struct pwi_where first = {.keys = many, .count = 1}, all = {.keys = many, .count = 20000};
  struct pwi_task task;
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PUSH, &first, rows, NULL, NULL), PAWL_OK);
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PUSH, &all, rows, NULL, &task), PAWL_NODE_FULL);
  assert_int_equal(task.failure_count, 1);
  assert_int_equal(task.failures[0].range.begin, 0);
  assert_int_equal(task.failures[0].status, PAWL_NODE_FULL);
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PUSH, &first, rows, NULL, NULL), PAWL_OK);
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PULL, &first, NULL, back, NULL), PAWL_OK);
  assert_int_equal(back[0], 10); /* the refused push added nothing, not even to the key that was there */
  pwi_cluster_close(&cluster);
}

static pawl_status push_wide(struct pwi_cluster_client *client, struct pwi_flow *flow, int64_t value) {
  static int64_t values[4 * WIDE];
  struct pwi_where where = {.keys = keys, .count = 4};
  for (size_t i = 0; i < 4 * WIDE; i++) values[i] = value;
  return cluster_call(client, flow, PWI_REQUEST_PUSH, &where, values, NULL, NULL);
}

static void assert_wide(struct pwi_cluster_client *client, struct pwi_flow *flow, int64_t value) {
  static int64_t values[4 * WIDE];
  struct pwi_where where = {.keys = keys, .count = 4};
  assert_int_equal(cluster_call(client, flow, PWI_REQUEST_PULL, &where, NULL, values, NULL), PAWL_OK);
  for (size_t i = 0; i < 4 * WIDE; i++) assert_int_equal(values[i], value);
}

/* Log entries for its replica need memory too. No request waits until there is some. */
static void test_a_head_without_memory_for_its_replica_refuses_and_serves_on(void **state) {
  (void)state;
  static const struct pawl_vector_options wide = {.type = PAWL_I64, .width = WIDE, .size = 1000};
  struct pwi_cluster_config config = {.seed = 11, .processes = 2, .shards = 1, .replicas = 1};
  struct pwi_cluster_client client;
  cluster_open(&cluster, &config);
  add_client(&client, "c", "train", false, false);
  struct pwi_flow *flow = cluster_vector(&client, "a/w", &wide);
  for (size_t i = 0; i < 2; i++) pwi_sim_starve(cluster.sim, cluster.servers[i].node, true);
  assert_int_equal(push_wide(&client, flow, 5), PAWL_NO_MEMORY);
  for (size_t i = 0; i < 2; i++) pwi_sim_starve(cluster.sim, cluster.servers[i].node, false);
  assert_int_equal(push_wide(&client, flow, 7), PAWL_OK);
  assert_wide(&client, flow, 7);
  pwi_cluster_kill(&cluster, 0); /* the other one knows of the refusal, and of the push */
  assert_int_equal(push_wide(&client, flow, 1), PAWL_OK);
  assert_wide(&client, flow, 8);
  pwi_cluster_close(&cluster);
}

static bool is_not_whole(void *context) {
  struct pwi_manager_figures figures;
  (void)context;
  pwi_manager_figures(cluster.manager, &figures);
  return !figures.whole || figures.processes_up < 2;
}

static void test_a_source_that_cannot_reach_its_target_for_want_of_memory_tries_again(void **state) {
  (void)state;
  struct pwi_cluster_config config = {.seed = 11, .processes = 1, .shards = 1, .late = 1, .replicas = 1};
  struct pwi_cluster_client client;
  cluster_open(&cluster, &config);
  add_client(&client, "c", "train", false, false);
  struct pwi_flow *flow = cluster_vector(&client, "a/w", &counts);
  pwi_sim_starve(cluster.sim, cluster.servers[0].node, true);
  cluster_start_late(&cluster, 0);
  assert_int_equal(push(&client, flow, 5), PAWL_OK);
  cluster_run_for(&cluster, 3 * PWI_SIM_SECOND);
  assert_true(is_not_whole(NULL));
  pwi_sim_starve(cluster.sim, cluster.servers[0].node, false);
  cluster_run_while(&cluster, is_not_whole, NULL, 30 * PWI_SIM_SECOND);
  pwi_cluster_kill(&cluster, 0);
  assert_int_equal(pull(&client, flow), 5);
  pwi_cluster_close(&cluster);
}

/* Links that are up and lose their messages: heartbeats alone would keep them up for ever. */
static void test_a_link_that_brings_no_answers_is_made_anew(void **state) {
  (void)state;
  struct pwi_cluster_client client;
  open_cluster(2, 0);
  add_client(&client, "c", "train", false, false);
  struct pwi_flow *flow = cluster_vector(&client, "a/w", &counts);
  assert_int_equal(push(&client, flow, 1), PAWL_OK);
  for (int i = 0; i < 3; i++) {
    int64_t began = pwi_sim_now(cluster.sim);
    for (size_t j = 0; j < 2; j++) pwi_sim_swallow(cluster.sim, client.node, cluster.servers[j].node);
    assert_int_equal(push(&client, flow, 1), PAWL_OK);
    assert_in_range(pwi_sim_now(cluster.sim) - began, 3 * PWI_SIM_SECOND, 6 * PWI_SIM_SECOND + 100 * MS);
    assert_int_equal(pull(&client, flow), 2 + i);
    cluster_run_for(&cluster, 10 * PWI_SIM_SECOND); /* the client would be more patient next time */
  }
  pwi_cluster_close(&cluster);
}

static void test_members_that_do_not_hear_of_one_another_keep_nobody_waiting(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    struct pwi_cluster_config config = {.seed = seed, .processes = 3, .shards = 1, .replicas = 1};
    struct pwi_cluster_client client;
    cluster_open(&cluster, &config);
    add_client(&client, "c", "train", false, false);
    struct pwi_flow *flow = cluster_vector(&client, "a/w", &counts);
    assert_int_equal(push(&client, flow, 1), PAWL_OK);
    for (size_t i = 0; i < 3; i++)
      pwi_sim_swallow(cluster.sim, cluster.servers[i].node, cluster.servers[(i + 1) % 3].node);
    assert_int_equal(push(&client, flow, 1), PAWL_OK);
    cluster_run_while(&cluster, is_not_whole, NULL, 30 * PWI_SIM_SECOND);
    pwi_cluster_kill(&cluster, (uint32_t)(seed % 3));
    assert_int_equal(pull(&client, flow), 2);
    pwi_cluster_close(&cluster);
  }
}

/* A new member is being filled, and no chunk arrives. */
static void test_a_filling_that_does_not_arrive_is_begun_again(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    struct pwi_cluster_config config = {.seed = seed, .processes = 1, .shards = 1, .late = 1, .replicas = 1};
    struct pwi_cluster_client client;
    cluster_open(&cluster, &config);
    add_client(&client, "c", "train", false, false);
    struct pwi_flow *flow = cluster_vector(&client, "a/w", &counts);
    assert_int_equal(push(&client, flow, 5), PAWL_OK);
    cluster_start_late(&cluster, 0);
    for (int i = 0; i < 100; i++) {
      pwi_sim_swallow(cluster.sim, cluster.servers[0].node, cluster.servers[1].node);
      cluster_run_for(&cluster, PWI_SIM_MILLISECOND);
    }
    cluster_run_while(&cluster, is_not_whole, NULL, 60 * PWI_SIM_SECOND);
    pwi_cluster_kill(&cluster, 0);
    assert_int_equal(pull(&client, flow), 5);
    pwi_cluster_close(&cluster);
  }
}

static void test_a_vector_that_is_deleted_fails_the_calls_on_it_and_no_others(void **state) {
  (void)state;
  struct pwi_cluster_client one, two;
  struct pwi_writer writer = {0};
  open_cluster(2, 0);
  add_client(&one, "one", "job", false, false);
  add_client(&two, "two", "job", false, false);
  struct pwi_flow *gone = cluster_vector(&one, "job/gone", &counts),
                  *stays = cluster_vector(&one, "job/stays", &counts);
  assert_int_equal(push(&one, gone, 1), PAWL_OK);
  pwi_write_text(&writer, "job/gone");
  assert_int_equal(cluster_ask(&two, PWI_ASK_DELETE, &writer), PAWL_OK);
  assert_int_equal(push(&one, gone, 1), PAWL_NOT_FOUND);
  assert_int_equal(push(&one, stays, 1), PAWL_OK);
  /* A new vector of that name is another vector. */
  struct pwi_flow *again = cluster_vector(&one, "job/gone", &counts);
  assert_int_equal(pull(&one, again), 0);
  pwi_writer_fini(&writer);
  pwi_cluster_close(&cluster);
}

static bool has_no_arcs(void *context) {
  const struct pwi_cluster_server *server = context;
  struct pwi_server_state server_state;
  pwi_server_state(server->server, &server_state);
  return server_state.arcs == 0;
}

static bool has_not_left(void *context) {
  const struct pwi_cluster_server *server = context;
  struct pwi_server_state server_state;
  pwi_server_state(server->server, &server_state);
  return !server_state.has_left;
}

static void test_a_server_joins_and_another_leaves_and_every_value_stays(void **state) {
  (void)state;
  struct pwi_cluster_client client;
  open_cluster(1, 0);
  add_client(&client, "client", "move", false, false);
  struct pwi_flow *flow = cluster_vector(&client, "move/w", &counts);
  assert_int_equal(push(&client, flow, 3), PAWL_OK);
  cluster_start_late(&cluster, 0);
  cluster_run_while(&cluster, has_no_arcs, &cluster.servers[1], 30 * PWI_SIM_SECOND);
  assert_int_equal(push(&client, flow, 4), PAWL_OK);
  assert_int_equal(pull(&client, flow), 7);
  pwi_server_leave(cluster.servers[0].server);
  cluster_run_while(&cluster, has_not_left, &cluster.servers[0], 30 * PWI_SIM_SECOND);
  const struct pwi_view *view = pwi_client_view(client.client);
  for (size_t i = 0; i < view->arc_count; i++) /* a server keeps nothing of arcs that others have */
    assert_false(pwi_shard_holds(pwi_server_shard(cluster.servers[0].server), pwi_view_arc_range(view, i)));
  pwi_sim_kill(cluster.sim, cluster.servers[0].node);
  assert_int_equal(pull(&client, flow), 7);
  assert_int_equal(push(&client, flow, 1), PAWL_OK);
  assert_int_equal(pull(&client, flow), 8);
  pwi_cluster_close(&cluster);
}

static void test_pushes_and_pulls_go_on_while_there_is_no_manager(void **state) {
  (void)state;
  struct pwi_cluster_client client;
  open_cluster(2, 0);
  add_client(&client, "client", "alone", false, false);
  struct pwi_flow *flow = cluster_vector(&client, "alone/w", &counts);
  assert_int_equal(push(&client, flow, 1), PAWL_OK);
  pwi_sim_kill(cluster.sim, cluster.manager_node);
  for (int64_t i = 2; i <= 10; i++) {
    assert_int_equal(push(&client, flow, 1), PAWL_OK);
    if (i == 5) pwi_sim_break(cluster.sim, client.node, cluster.servers[0].node);
    assert_int_equal(pull(&client, flow), i);
    cluster_run_for(&cluster, 300 * MS);
  }
  pwi_cluster_close(&cluster);
}

static pawl_status give_up(struct pwi_cluster_client *client, uint64_t node) {
  struct pwi_writer writer = {0};
  pwi_write_u64(&writer, node);
  pwi_write_u8(&writer, 1);
  pawl_status status = cluster_ask(client, PWI_ASK_GIVE_UP, &writer);
  pwi_writer_fini(&writer);
  return status;
}

static uint64_t node_of(const struct pwi_cluster_server *server) {
  struct pwi_server_state server_state;
  pwi_server_state(server->server, &server_state);
  return server_state.node;
}

/* Kills the first server, or with replicas both servers; others come. Marks the keys that no server has any
 * more. */
static void lose_all_copies(struct pwi_cluster_client *client, uint32_t replicas, bool *lost) {
  uint64_t dead[] = {node_of(&cluster.servers[0]), node_of(&cluster.servers[1])};
  struct pwi_place place = {.size = 1000};
  for (uint32_t i = 0; i <= replicas; i++) pwi_sim_kill(cluster.sim, cluster.servers[i].node);
  for (uint32_t i = 0; i < 3; i++) cluster_start_late(&cluster, i);
  cluster_run_for(&cluster, 4 * PWI_SIM_SECOND);
  sync_catalogue(client);
  const struct pwi_view *view = pwi_client_view(client->client);
  for (uint64_t key = 0; key < 1000; key++) {
    uint64_t head = pwi_view_head(view, pwi_view_arc_of(view, pwi_place_position(&place, key)))->node.id;
    lost[key] = head == dead[0] || (replicas && head == dead[1]);
  }
  for (uint32_t i = 0; i <= replicas; i++) assert_int_equal(give_up(client, dead[i]), PAWL_OK);
}

/* A server with the only copy is dead and given up: its keys read as zeros, the keys of other servers are
 * there, new clients continue, and a client whose pushes are lost is told so. */
static void test_what_a_server_had_alone_is_lost_when_it_is_given_up_and_nothing_else(void **state) {
  (void)state;
  for (uint32_t replicas = 0; replicas < 2; replicas++) {
    struct pwi_cluster_config config = {.seed = 31, .processes = 2, .shards = 1, .late = 3, .replicas = replicas};
    struct pwi_cluster_client old, new;
    static int64_t ones[1000], seen[1000];
    static bool lost[1000];
    struct pwi_where all = {.range = {0, 1000}};
    size_t gone = 0;
    for (size_t i = 0; i < 1000; i++) ones[i] = 1;
    cluster_open(&cluster, &config);
    add_client(&old, "old", "job", false, false);
    struct pwi_flow *flow = cluster_vector(&old, "job/w", &counts);
    assert_int_equal(cluster_call(&old, flow, PWI_REQUEST_PUSH, &all, ones, NULL, NULL), PAWL_OK);
    lose_all_copies(&old, replicas, lost);
    add_client(&new, "new", "job", false, false);
    sync_catalogue(&new);
    struct pwi_flow *again = cluster_open_vector(&new, "job/w", 0);
    assert_int_equal(cluster_call(&new, again, PWI_REQUEST_PUSH, &all, ones, NULL, NULL), PAWL_OK);
    cluster_run_for(&cluster, 5 * PWI_SIM_SECOND); /* members are filled meanwhile, and arcs are moved */
    assert_int_equal(cluster_call(&new, again, PWI_REQUEST_PULL, &all, NULL, seen, NULL), PAWL_OK);
    for (size_t key = 0; key < 1000; key++) {
      assert_int_equal(seen[key], lost[key] ? 1 : 2);
      gone += lost[key];
    }
    assert_true(replicas ? gone == 1000 : gone > 200 && gone < 800);
    assert_int_equal(cluster_call(&old, flow, PWI_REQUEST_PUSH, &all, ones, NULL, NULL), PAWL_CLUSTER_LOST);
    pwi_cluster_close(&cluster);
  }
}

static bool are_not_three(void *context) {
  struct pwi_manager_figures figures;
  (void)context;
  pwi_manager_figures(cluster.manager, &figures);
  return !figures.whole || figures.processes_up < 3;
}

static void isolate(struct pwi_sim_node node, void (*how)(struct pwi_sim *, struct pwi_sim_node, struct pwi_sim_node)) {
  how(cluster.sim, node, PWI_SIM_ALL);
  how(cluster.sim, PWI_SIM_ALL, node);
}

static void assert_holds_its_arcs_only(const struct pwi_cluster_server *server) {
  const struct pwi_view *view = pwi_server_view(server->server);
  struct pwi_node node = {node_of(server)};
  for (size_t i = 0; i < view->arc_count; i++)
    if (pwi_arc_find(&view->arcs[i], node) == PWI_CHAIN_MAX)
      assert_false(pwi_shard_holds(pwi_server_shard(server->server), pwi_view_arc_range(view, i)));
}

/* A server is cut off for so long that the operator gives it up, with or without its data, or that the manager forgets
 * it after an hour. It comes back by itself, has nothing of what it had, and is given arcs like any new server. */
static void test_a_server_that_was_forgotten_comes_back_as_a_new_one(void **state) {
  (void)state;
  for (uint32_t how = 0; how < 3; how++) {
    struct pwi_cluster_config config = {.seed = 41 + how, .processes = 3, .shards = 1, .replicas = how != 1};
    struct pwi_cluster_client old, new;
    static int64_t ones[1000], before[1000], after[1000];
    struct pwi_where all = {.range = {0, 1000}};
    size_t lost = 0;
    for (size_t i = 0; i < 1000; i++) ones[i] = 1;
    cluster_open(&cluster, &config);
    struct pwi_cluster_server *server = &cluster.servers[0];
    add_client(&old, "old", "job", false, false);
    struct pwi_flow *flow = cluster_vector(&old, "job/w", &counts);
    assert_int_equal(cluster_call(&old, flow, PWI_REQUEST_PUSH, &all, ones, NULL, NULL), PAWL_OK);
    cluster_run_while(&cluster, are_not_three, NULL, 30 * PWI_SIM_SECOND);
    uint64_t id = node_of(server);
    isolate(server->node, pwi_sim_cut);
    cluster_run_for(&cluster, how < 2 ? 3 * PWI_SIM_SECOND : 3700 * PWI_SIM_SECOND);
    if (how < 2) assert_int_equal(give_up(&old, id), PAWL_OK);
    add_client(&new, "new", "job", false, false);
    sync_catalogue(&new);
    flow = cluster_open_vector(&new, "job/w", 0);
    assert_int_equal(cluster_call(&new, flow, PWI_REQUEST_PUSH, &all, ones, NULL, NULL), PAWL_OK);
    assert_int_equal(cluster_call(&new, flow, PWI_REQUEST_PULL, &all, NULL, before, NULL), PAWL_OK);
    for (size_t i = 0; i < 1000; i++) lost += before[i] == 1;
    assert_true(how == 1 ? lost > 200 && lost < 500 : lost == 0);
    isolate(server->node, pwi_sim_mend);
    cluster_run_while(&cluster, are_not_three, NULL, 60 * PWI_SIM_SECOND);
    assert_true(node_of(server) != id && node_of(server) != 0);
    cluster_run_while(&cluster, has_no_arcs, server, 30 * PWI_SIM_SECOND);
    assert_holds_its_arcs_only(server);
    if (how != 1) pwi_cluster_kill(&cluster, 1); /* what the newcomer has is right */
    assert_int_equal(cluster_call(&new, flow, PWI_REQUEST_PULL, &all, NULL, after, NULL), PAWL_OK);
    assert_memory_equal(before, after, sizeof before);
    pwi_cluster_close(&cluster);
  }
}

static void nobody_cares(struct pwi_task *task) { (void)task; }

/* A push that is interrupted by the death of its client is applied to all its keys on an arc or to none. */
static void test_a_client_that_vanishes_in_the_middle_leaves_each_arc_whole(void **state) {
  (void)state;
  size_t halves = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    struct pwi_cluster_config config = {.seed = seed, .processes = 2, .shards = 1, .shared_hosts = seed % 2};
    struct pwi_cluster_client client, checker;
    static int64_t ones[1000], seen[1000];
    struct pwi_where all = {.range = {0, 1000}};
    for (size_t i = 0; i < 1000; i++) ones[i] = 1;
    cluster_open(&cluster, &config);
    add_client(&checker, "checker", "watch", false, false);
    struct pwi_flow *watched = cluster_vector(&checker, "cut/w", &counts);
    add_client(&client, "client", "cut", false, false);
    sync_catalogue(&client);
    struct pwi_task task = {.finished = nobody_cares};
    struct pwi_flow *flow = cluster_open_vector(&client, "cut/w", 0);
    assert_int_equal(pwi_client_start(client.client, &task, flow, PWI_REQUEST_PUSH, &all, ones, NULL), PAWL_OK);
    cluster_run_for(&cluster, (int64_t)pwi_random_below(&cluster.random, MS)); /* links come up, parts are
                                                                                  on their way */
    pwi_sim_kill(cluster.sim, client.node);
    cluster_run_for(&cluster, 100 * MS);
    assert_int_equal(cluster_call(&checker, watched, PWI_REQUEST_PULL, &all, NULL, seen, NULL), PAWL_OK);
    const struct pwi_view *view = pwi_client_view(checker.client);
    struct pwi_place place = {.size = 1000};
    int64_t sum = 0;
    for (size_t arc = 0; arc < view->arc_count; arc++) {
      struct pawl_range keys_of_arc = pwi_place_keys(&place, pwi_view_arc_range(view, arc));
      for (uint64_t key = keys_of_arc.begin; key < keys_of_arc.end; key++) {
        assert_int_equal(seen[key], seen[keys_of_arc.begin]);
        sum += seen[key];
      }
    }
    halves += sum > 0 && sum < 1000;
    pwi_cluster_close(&cluster);
  }
  assert_true(halves > 0); /* some were cut off in the middle indeed */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_jobs_in_spaces_of_their_own_do_not_touch_each_other),
      cmocka_unit_test(test_two_jobs_share_a_space),
      cmocka_unit_test(test_a_reader_pulls_a_model_while_it_is_trained_and_cannot_change_it),
      cmocka_unit_test(test_a_node_serves_a_vector_that_it_opened_locally),
      cmocka_unit_test(test_another_process_at_the_same_address_does_not_answer),
      cmocka_unit_test(test_a_local_vector_outlives_the_id_of_its_node),
      cmocka_unit_test(test_bad_input_is_found_before_anything_is_sent),
      cmocka_unit_test(test_a_push_larger_than_a_message_is_cut_and_arrives_whole),
      cmocka_unit_test(test_past_its_cap_a_server_refuses_to_grow_and_serves_on),
      cmocka_unit_test(test_a_head_without_memory_for_its_replica_refuses_and_serves_on),
      cmocka_unit_test(test_a_source_that_cannot_reach_its_target_for_want_of_memory_tries_again),
      cmocka_unit_test(test_a_link_that_brings_no_answers_is_made_anew),
      cmocka_unit_test(test_members_that_do_not_hear_of_one_another_keep_nobody_waiting),
      cmocka_unit_test(test_a_filling_that_does_not_arrive_is_begun_again),
      cmocka_unit_test(test_a_vector_that_is_deleted_fails_the_calls_on_it_and_no_others),
      cmocka_unit_test(test_pushes_and_pulls_go_on_while_there_is_no_manager),
      cmocka_unit_test(test_a_client_that_vanishes_in_the_middle_leaves_each_arc_whole),
      cmocka_unit_test(test_a_server_joins_and_another_leaves_and_every_value_stays),
      cmocka_unit_test(test_what_a_server_had_alone_is_lost_when_it_is_given_up_and_nothing_else),
      cmocka_unit_test(test_a_server_that_was_forgotten_comes_back_as_a_new_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
