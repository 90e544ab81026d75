/* Scans while the scanned arcs are split, merged and moved, and while pushes of the same session are in
 * flight. */
#include "base/cursor.h"
#include "base/testing.h"
#include "cluster.h"
#include "ring/place.h"

#define SIZE 1000 /* keys of the vector, each of which has a row */
#define WIDTH 2
#define GUARD 1000 /* keys and rows after the caller's buffer, which must not change */
#define UNTOUCHED UINT64_C(0xa5a5a5a5a5a5a5a5)

static struct pwi_cluster cluster;
static const struct pawl_vector_options sparse = {
    .type = PAWL_I64, .width = WIDTH, .size = SIZE, .placement = PAWL_PLACE_ORDERED, .layout = PAWL_LAYOUT_SPARSE};

static void add_client(struct pwi_cluster_client *client, const char *name) {
  *client = (struct pwi_cluster_client){.job = "scan"};
  strcpy(client->name, name);
  cluster_client_add(&cluster, client);
  cluster_wait_joined(client);
}

/* Key k has the row {k * factor, -k * factor}. */
static void fill(struct pwi_cluster_client *client, struct pwi_flow *flow, int64_t factor) {
  static int64_t rows[SIZE * WIDTH];
  struct pwi_where all = {.range = {0, SIZE}};
  for (int64_t key = 0; key < SIZE; key++) {
    rows[key * WIDTH] = key * factor;
    rows[key * WIDTH + 1] = -key * factor;
  }
  assert_int_equal(cluster_call(client, flow, PWI_REQUEST_PUSH, &all, rows, NULL, NULL), PAWL_OK);
}

/* --- one scan ------------------------------------------------------------------------------------------- */

struct scan {
  struct pwi_task task;
  bool is_over;
  size_t room;
  struct pawl_range range;
  uint64_t keys[SIZE + GUARD];
  int64_t rows[(SIZE + GUARD) * WIDTH];
};

static void scan_over(struct pwi_task *task) {
  ((struct scan *)((char *)task - offsetof(struct scan, task)))->is_over = true;
}

static bool is_under_way(void *context) { return !((struct scan *)context)->is_over; }

static void scan_begin(struct scan *scan, struct pwi_cluster_client *client, struct pwi_flow *flow,
                       struct pawl_range range, size_t room) {
  scan->task = (struct pwi_task){.finished = scan_over};
  scan->is_over = false;
  scan->room = room;
  scan->range = range;
  memset(scan->keys, 0xa5, sizeof scan->keys);
  memset(scan->rows, 0xa5, sizeof scan->rows);
  assert_int_equal(pwi_client_scan(client->client, &scan->task, flow, range, room, scan->keys, scan->rows), PAWL_OK);
}

static void scan_end(struct scan *scan) {
  cluster_run_while(&cluster, is_under_way, scan, 60 * PWI_SIM_SECOND);
  for (size_t i = scan->room; i < SIZE + GUARD; i++) assert_true(scan->keys[i] == UNTOUCHED);
  for (size_t i = scan->room * WIDTH; i < (SIZE + GUARD) * WIDTH; i++)
    assert_true((uint64_t)scan->rows[i] == UNTOUCHED);
}

/* The answer matches the stored rows: no key is missing between the first key and the key to continue
 * from. */
static void check_rows(const struct scan *scan, int64_t factor) {
  assert_int_equal(scan->task.status, PAWL_OK);
  assert_true(scan->task.rows <= scan->room);
  assert_true(scan->task.found > scan->range.begin && scan->task.found <= scan->range.end);
  assert_int_equal(scan->task.rows, scan->task.found - scan->range.begin);
  for (size_t i = 0; i < scan->task.rows; i++) {
    int64_t key = (int64_t)(scan->range.begin + i);
    assert_int_equal(scan->keys[i], key);
    assert_int_equal(scan->rows[i * WIDTH], key * factor);
    assert_int_equal(scan->rows[i * WIDTH + 1], -key * factor);
  }
}

static void scan_rest(struct scan *scan, struct pwi_cluster_client *client, struct pwi_flow *flow, int64_t factor) {
  while (scan->task.found < SIZE) {
    scan_begin(scan, client, flow, pawl_range_of(scan->task.found, SIZE), scan->room);
    scan_end(scan);
    check_rows(scan, factor);
  }
}

/* --- views that change under a scan --------------------------------------------------------------------- */

struct arcs {
  const struct pwi_cluster_client *client;
  size_t count;
};

static bool has_few_arcs(void *context) {
  const struct arcs *arcs = context;
  return pwi_client_view(arcs->client->client)->arc_count < arcs->count;
}

static void cut_off(struct pwi_cluster_client *client, bool is_cut) {
  for (size_t i = 0; i < cluster.server_count; i++) {
    struct pwi_sim_node server = cluster.servers[i].node;
    (is_cut ? pwi_sim_cut : pwi_sim_mend)(cluster.sim, client->node, server);
    (is_cut ? pwi_sim_cut : pwi_sim_mend)(cluster.sim, server, client->node);
    if (is_cut) pwi_sim_break(cluster.sim, client->node, server);
  }
}

static uint64_t arc_end(const struct pwi_cluster_client *client, uint64_t key) {
  const struct pwi_view *view = pwi_client_view(client->client);
  struct pwi_place place = {.size = SIZE};
  size_t arc = pwi_view_arc_of(view, pwi_place_position(&place, key));
  return pwi_place_keys(&place, pwi_view_arc_range(view, arc)).end;
}

/* The request is in flight when its arc is split, and the second half moves to another server. */
static void split_under_a_scan(size_t room) {
  struct pwi_cluster_config config = {.seed = 11, .processes = 1, .shards = 1, .late = 1, .points = 1};
  struct pwi_cluster_client client;
  static struct scan scan;
  cluster_open(&cluster, &config);
  add_client(&client, "c");
  struct pwi_flow *flow = cluster_vector(&client, "scan/w", &sparse);
  fill(&client, flow, 3);
  assert_int_equal(arc_end(&client, 0), SIZE);
  cut_off(&client, true);
  scan_begin(&scan, &client, flow, pawl_range_of(0, SIZE), room);
  cluster_start_late(&cluster, 0);
  cluster_run_while(&cluster, has_few_arcs, &(struct arcs){&client, 2}, 60 * PWI_SIM_SECOND);
  cluster_run_for(&cluster, 5 * PWI_SIM_SECOND);
  assert_true(arc_end(&client, 0) < SIZE);
  cut_off(&client, false);
  scan_end(&scan);
  check_rows(&scan, 3);
  scan_rest(&scan, &client, flow, 3);
  pwi_cluster_close(&cluster);
}

static void test_a_scan_whose_arc_is_cut_stays_in_its_room(void **state) {
  (void)state;
  split_under_a_scan(8);
}

static void test_a_scan_with_room_for_all_loses_no_key_when_its_arc_is_cut(void **state) {
  (void)state;
  split_under_a_scan(SIZE);
}

/* Servers come and go, arcs are split and merged and heads change, while scans are in flight all the time. */
static void test_scans_bring_every_key_once_whatever_views_come(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 30; seed++) {
    struct pwi_cluster_config config = {
        .seed = seed, .processes = 2, .shards = 1, .late = 2, .points = 1 + (uint32_t)(seed % 3), .replicas = seed % 2};
    struct pwi_cluster_client client;
    static struct scan scan;
    cluster_open(&cluster, &config);
    add_client(&client, "c");
    struct pwi_flow *flow = cluster_vector(&client, "scan/w", &sparse);
    fill(&client, flow, 3);
    uint64_t at = 0;
    for (int step = 0; step < 400; step++) {
      if (step == 50) cluster_start_late(&cluster, 0);
      if (step == 120) cluster_start_late(&cluster, 1);
      if (step == 240) pwi_server_leave(cluster.servers[0].server);
      bool is_cut = pwi_random_below(&cluster.random, 4) == 0;
      if (is_cut) cut_off(&client, true);
      scan_begin(&scan, &client, flow, pawl_range_of(at, SIZE), 1 + pwi_random_below(&cluster.random, 300));
      cluster_run_for(&cluster, (int64_t)pwi_random_below(&cluster.random, 20 * MS));
      if (is_cut) cut_off(&client, false);
      scan_end(&scan);
      check_rows(&scan, 3);
      at = scan.task.found < SIZE ? scan.task.found : 0;
    }
    pwi_cluster_close(&cluster);
  }
}

/* The net copies small answers, and does not copy larger ones: the sizes here give both kinds. */
static void test_a_scan_may_have_any_room(void **state) {
  (void)state;
  struct pwi_cluster_config config = {.seed = 11, .processes = 1, .shards = 1, .points = 1};
  struct pwi_cluster_client client;
  static struct scan scan;
  cluster_open(&cluster, &config);
  add_client(&client, "c");
  struct pwi_flow *flow = cluster_vector(&client, "scan/w", &sparse);
  fill(&client, flow, 3);
  for (size_t room = 1; room <= 400; room++) {
    scan_begin(&scan, &client, flow, pawl_range_of(0, SIZE), room);
    scan_end(&scan);
    check_rows(&scan, 3);
    assert_int_equal(scan.task.rows, room);
  }
  pwi_cluster_close(&cluster);
}

static void test_a_scan_of_a_vector_that_is_loaded_meanwhile_says_so(void **state) {
  (void)state;
  struct pwi_cluster_config config = {.seed = 11, .processes = 1, .shards = 1, .points = 1};
  struct pwi_cluster_client client, other;
  struct pwi_writer writer = {0};
  static struct scan scan;
  cluster_open(&cluster, &config);
  add_client(&client, "c");
  add_client(&other, "o");
  struct pwi_flow *flow = cluster_vector(&client, "scan/w", &sparse);
  fill(&client, flow, 3);
  cut_off(&client, true);
  scan_begin(&scan, &client, flow, pawl_range_of(0, SIZE), SIZE);
  pwi_write_text(&writer, "scan/w");
  pwi_options_write(&writer, &sparse);
  assert_int_equal(cluster_ask(&other, PWI_ASK_RESTORE_BEGIN, &writer), PAWL_OK);
  pwi_writer_fini(&writer);
  cut_off(&client, false);
  scan_end(&scan);
  assert_int_equal(scan.task.status, PAWL_RESTORED);
  scan_begin(&scan, &client, flow, pawl_range_of(0, SIZE), SIZE); /* the clock of what was sent has begun
                                                                     afresh, too */
  scan_end(&scan);
  assert_int_equal(scan.task.status, PAWL_OK);
  assert_int_equal(scan.task.rows, 0);
  pwi_cluster_close(&cluster);
}

/* --- what a session has pushed -------------------------------------------------------------------------- */

struct pushing {
  struct pwi_task task;
  bool is_over;
};

static void push_over(struct pwi_task *task) {
  ((struct pushing *)((char *)task - offsetof(struct pushing, task)))->is_over = true;
}

/* The push names its keys by a signature that the server does not know, and must be sent again. A scan that
 * was called after it must not overtake it. */
static void test_a_scan_sees_a_push_that_was_called_before_it(void **state) {
  (void)state;
  static const uint64_t keys[] = {0, 10, 500, 999};
  struct pwi_cluster_config config = {.seed = 5, .processes = 1, .shards = 1, .points = 1};
  struct pwi_cluster_client client;
  struct pwi_keylist *list;
  static struct scan scan;
  struct pushing pushing = {.task.finished = push_over};
  int64_t rows[4 * WIDTH] = {7, 7, 7, 7, 7, 7, 7, 7}, back[4 * WIDTH];
  cluster_open(&cluster, &config);
  add_client(&client, "c");
  struct pwi_flow *flow = cluster_vector(&client, "scan/w", &sparse);
  assert_int_equal(pwi_keylist_create(client.client, pwi_flow_entry(flow), keys, 4, &list), PAWL_OK);
  struct pwi_where first = {.list = list, .range = {0, 1}}, all = {.list = list};
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PULL, &first, NULL, back, NULL), PAWL_OK);
  assert_int_equal(pwi_client_start(client.client, &pushing.task, flow, PWI_REQUEST_PUSH, &all, rows, NULL), PAWL_OK);
  scan_begin(&scan, &client, flow, pawl_range_of(0, SIZE), SIZE);
  scan_end(&scan);
  assert_int_equal(scan.task.status, PAWL_OK);
  assert_int_equal(scan.task.rows, 4);
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(scan.keys[i], keys[i]);
    assert_int_equal(scan.rows[i * WIDTH], 7);
  }
  assert_true(pushing.is_over);
  struct pwi_client_figures figures = pwi_cluster_client_figures(&client);
  assert_true(figures.wanted > 0 && figures.gaps > 0); /* the push went again, and the scan would have
                                                          missed it */
  pwi_keylist_release(list);
  pwi_cluster_close(&cluster);
}

/* Some arcs have received later pushes than others: each part of a scan waits for the pushes to its own arc,
 * and for no more. */
static void test_a_scan_waits_for_what_was_pushed_to_its_own_arc(void **state) {
  (void)state;
  struct pwi_cluster_config config = {.seed = 6, .processes = 2, .shards = 1, .points = 2};
  struct pwi_cluster_client client;
  static struct scan scan;
  int64_t row[WIDTH] = {0, 0};
  cluster_open(&cluster, &config);
  add_client(&client, "c");
  struct pwi_flow *flow = cluster_vector(&client, "scan/w", &sparse);
  fill(&client, flow, 3);
  for (uint64_t key = 0; key < SIZE; key += 333) { /* the others never see these numbers */
    struct pwi_where one = {.range = {key, key + 1}};
    assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PUSH, &one, row, NULL, NULL), PAWL_OK);
  }
  scan.task.found = 0;
  scan.room = 100;
  scan_rest(&scan, &client, flow, 3);
  pwi_cluster_close(&cluster);
}

struct doubler {
  struct pushing pushing;
  int64_t rows[SIZE * WIDTH];
};

/* A push of all keys and, before it is answered, a scan: with servers that come and go, links that break and
 * a client that is declared dead. */
static void test_scans_see_the_sessions_own_pushes_whatever_happens(void **state) {
  (void)state;
  uint64_t gaps = 0, retirements = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    struct pwi_cluster_config config = {.seed = seed,
                                        .processes = 2,
                                        .shards = 1,
                                        .late = 1,
                                        .replicas = seed % 2,
                                        .client_grace_ns = seed % 4 == 0 ? 200 * MS : 0};
    struct pwi_cluster_client client;
    static struct scan scan;
    static struct doubler doubler;
    struct pwi_where all = {.range = {0, SIZE}};
    cluster_open(&cluster, &config);
    add_client(&client, "c");
    struct pwi_flow *flow = cluster_vector(&client, "scan/w", &sparse);
    for (int64_t key = 0; key < SIZE; key++) {
      doubler.rows[key * WIDTH] = key;
      doubler.rows[key * WIDTH + 1] = -key;
    }
    for (int64_t step = 1; step <= 60; step++) {
      if (step == 10) cluster_start_late(&cluster, 0);
      if (pwi_random_below(&cluster.random, 3) == 0)
        pwi_sim_break(cluster.sim, client.node, cluster.servers[pwi_random_below(&cluster.random, 2)].node);
      doubler.pushing = (struct pushing){.task.finished = push_over};
      assert_int_equal(
          pwi_client_start(client.client, &doubler.pushing.task, flow, PWI_REQUEST_PUSH, &all, doubler.rows, NULL),
          PAWL_OK);
      if (seed % 4 == 0 && step % 20 == 0) pwi_sim_pause(cluster.sim, client.node, PWI_SIM_SECOND);
      scan.task.found = 0;
      scan.room = 1 + pwi_random_below(&cluster.random, SIZE);
      scan_rest(&scan, &client, flow, step);
      cluster_run_while(&cluster, is_under_way, &scan, PWI_SIM_SECOND);
      while (!doubler.pushing.is_over) cluster_run_for(&cluster, MS);
      assert_int_equal(doubler.pushing.task.status, PAWL_OK);
    }
    struct pwi_client_figures figures = pwi_cluster_client_figures(&client);
    gaps += figures.gaps;
    retirements += figures.retirements;
    pwi_cluster_close(&cluster);
  }
  print_message("gaps %llu, retirements %llu\n", (unsigned long long)gaps, (unsigned long long)retirements);
  assert_true(retirements > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_scan_whose_arc_is_cut_stays_in_its_room),
      cmocka_unit_test(test_a_scan_with_room_for_all_loses_no_key_when_its_arc_is_cut),
      cmocka_unit_test(test_scans_bring_every_key_once_whatever_views_come),
      cmocka_unit_test(test_a_scan_may_have_any_room),
      cmocka_unit_test(test_a_scan_of_a_vector_that_is_loaded_meanwhile_says_so),
      cmocka_unit_test(test_a_scan_sees_a_push_that_was_called_before_it),
      cmocka_unit_test(test_a_scan_waits_for_what_was_pushed_to_its_own_arc),
      cmocka_unit_test(test_scans_see_the_sessions_own_pushes_whatever_happens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
