/* What a checkpoint contains of an arc is a version that the arc had: all pushes up to one of them, and none that was lost
 * with its head. And all of it is of one incarnation of a vector. */
#include "base/hash.h"
#include "base/testing.h"
#include "saving.h"
#include "server/saving.h"

/* A vector of four chunks. The rate of saving holds up all but the first two. */
#define BIG_KEYS 120000
#define RATE (2 << 20)
#define FIRST 7 /* a key in the first chunk, and one in the last */
#define LAST (BIG_KEYS - 7)

static struct saving_scene scene;
static struct pwi_flow *flow; /* of the large vector */

static const struct pawl_vector_options big = {.type = PAWL_I64,
                                               .width = SAVING_WIDTH,
                                               .size = BIG_KEYS,
                                               .placement = PAWL_PLACE_ORDERED,
                                               .layout = PAWL_LAYOUT_DENSE};

/* --- a large arc ------------------------------------------------------------------------------------------ */

/* One arc with the large vector. Its rows are random numbers, because the rate counts compressed bytes; the two keys have
 * 0. */
static void open_big(uint64_t seed) {
  static int64_t values[BIG_KEYS * SAVING_WIDTH];
  struct pwi_server_arc arcs[2];
  saving_open_disk(&scene, seed);
  scene.points = 1;
  saving_open_cluster(&scene, seed, 1, 0);
  flow = cluster_vector(&scene.client, "test/big", &big);
  assert_int_equal(pwi_server_arcs(scene.cluster.servers[0].server, arcs, 2), 1);
  for (size_t i = 0; i < (size_t)BIG_KEYS * SAVING_WIDTH; i++)
    values[i] = i / SAVING_WIDTH == FIRST || i / SAVING_WIDTH == LAST ? 0 : (int64_t)(pwi_mix64(i) >> 1);
  assert_int_equal(cluster_call(&scene.client, flow, PWI_REQUEST_PUSH, &(struct pwi_where){0}, values, NULL, NULL),
                   PAWL_OK);
}

static void push_one(uint64_t key) {
  const int64_t one[SAVING_WIDTH] = {1, 1, 1, 1};
  struct pwi_where where = {.keys = &key, .count = 1};
  assert_int_equal(cluster_call(&scene.client, flow, PWI_REQUEST_PUSH, &where, one, NULL, NULL), PAWL_OK);
}

static int64_t big_found[2]; /* of FIRST and LAST */

static pawl_status take_ends(void *context, const struct pwi_chunk *chunk) {
  (void)context;
  for (size_t i = 0; i < chunk->count; i++) {
    uint64_t key = pwi_chunk_key(chunk, i);
    if (key == FIRST || key == LAST) memcpy(&big_found[key == LAST], chunk->values + i * chunk->row_bytes, 8);
  }
  return PAWL_OK;
}

static void read_ends(const char *name) {
  struct pwi_saved saved;
  struct pwi_problem problem;
  memset(big_found, 0, sizeof big_found);
  assert_int_equal(pwi_saved_open(pwi_sim_disk_files(scene.disk_queue.disk), name, &saved, &problem), PAWL_OK);
  assert_int_equal(pwi_saved_walk_all(&saved, take_ends, NULL, &problem), PAWL_OK);
  pwi_saved_close(&saved);
}

/* Each push to the last key follows one to the first key. The first chunk is copied some time before the last one, so
 * only the last step of saving brings the first key up to the same moment. */
static void test_rows_of_a_large_arc_are_of_one_moment(void **state) {
  (void)state;
  int64_t meanwhile = 0;
  open_big(711);
  assert_int_equal(saving_ask(&scene, "big", false, RATE), PAWL_OK);
  for (; saving_is_going(&scene); meanwhile++) {
    push_one(FIRST);
    push_one(LAST);
  }
  assert_true(saving_status_says(&scene, "\"state\":\"saved\""));
  read_ends("big");
  assert_in_range(big_found[0], 1, meanwhile);
  assert_true(big_found[1] == big_found[0] || big_found[1] == big_found[0] - 1);
  saving_close(&scene);
}

/* --- two incarnations ------------------------------------------------------------------------------------ */

static void load_big(void) {
  static int64_t values[BIG_KEYS * SAVING_WIDTH];
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, "test/big");
  pwi_write_u8(&writer, (uint8_t)big.type);
  pwi_write_u32(&writer, big.width);
  pwi_write_u64(&writer, big.size);
  pwi_write_u8(&writer, (uint8_t)big.function);
  pwi_write_u8(&writer, (uint8_t)big.placement);
  pwi_write_u8(&writer, (uint8_t)big.layout);
  assert_int_equal(cluster_ask(&scene.client, PWI_ASK_RESTORE_BEGIN, &writer), PAWL_OK);
  pwi_writer_fini(&writer);
  for (size_t i = 0; i < (size_t)BIG_KEYS * SAVING_WIDTH; i++) values[i] = 100;
  assert_int_equal(cluster_call(&scene.client, flow, PWI_REQUEST_RESTORE, &(struct pwi_where){0}, values, NULL, NULL),
                   PAWL_OK);
}

static void test_a_vector_that_is_loaded_meanwhile_fails_the_checkpoint(void **state) {
  (void)state;
  open_big(701);
  assert_int_equal(saving_ask(&scene, "mixed", false, RATE), PAWL_OK);
  cluster_run_for(&scene.cluster, 100 * MS);
  assert_true(saving_is_going(&scene));
  load_big();
  cluster_run_while(&scene.cluster, saving_is_going, &scene, 60 * PWI_SIM_SECOND);
  assert_true(saving_status_says(&scene, "\"state\":\"failed\""));
  saving_save(&scene, "after", false);
  read_ends("after");
  assert_int_equal(big_found[0], 100);
  assert_int_equal(big_found[1], 100);
  saving_close(&scene);
}

/* --- a push that was lost --------------------------------------------------------------------------------- */

/* A head that cannot reach its replica takes a push, and dies together with the client. Nobody was told that the push
 * took effect, and it is lost: no checkpoint may have it. */
static void test_a_push_that_is_lost_with_its_head_is_in_no_checkpoint(void **state) {
  (void)state;
  static int64_t values[SAVING_KEYS * SAVING_WIDTH];
  struct pwi_task task = {0};
  size_t lost = 0;
  saving_open(&scene, 721, 2, 1);
  struct pwi_flow *others = cluster_open_vector(&scene.other, "test/v", 0);
  assert_int_equal(saving_push_all(&scene), PAWL_OK);
  pwi_sim_cut(scene.cluster.sim, scene.cluster.servers[0].node, scene.cluster.servers[1].node);
  pwi_sim_cut(scene.cluster.sim, scene.cluster.servers[1].node, scene.cluster.servers[0].node);
  saving_fill(values, 1);
  assert_int_equal(
      pwi_client_start(scene.client.client, &task, scene.flow, PWI_REQUEST_PUSH, &(struct pwi_where){0}, values, NULL),
      PAWL_OK);
  cluster_run_for(&scene.cluster, 20 * MS);
  assert_int_equal(saving_ask(&scene, "after", false, 0), PAWL_OK);
  cluster_run_for(&scene.cluster, 60 * MS);
  pwi_sim_kill(scene.cluster.sim, scene.client.node);
  pwi_sim_kill(scene.cluster.sim, scene.cluster.servers[1].node);
  cluster_run_while(&scene.cluster, saving_is_going, &scene, 60 * PWI_SIM_SECOND);
  assert_true(saving_status_says(&scene, "\"state\":\"saved\""));
  saving_read(&scene, "after", NULL);
  saving_pull_all(&scene.other, others, values);
  for (size_t i = 0; i < (size_t)SAVING_KEYS * SAVING_WIDTH; i++) {
    lost += values[i] == 1;
    if (saving_found[i] < 1 || saving_found[i] > values[i])
      fail_msg("value %zu is %lld in the checkpoint, and %lld in the cluster", i, (long long)saving_found[i],
               (long long)values[i]);
  }
  assert_in_range(lost, 1, SAVING_KEYS * SAVING_WIDTH - 1);
  saving_close(&scene);
}

/* --- a head that loses the arc and gets it back --------------------------------------------------------- */

#define LARGE_WIDTH (2 * SAVING_WIDTH)

/* Each of two servers saves four chunks of it. */
static const struct pawl_vector_options large = {.type = PAWL_I64,
                                                 .width = LARGE_WIDTH,
                                                 .size = BIG_KEYS,
                                                 .placement = PAWL_PLACE_ORDERED,
                                                 .layout = PAWL_LAYOUT_DENSE};

static struct pwi_cluster_server *head, *tail; /* of the first arc */

static struct pwi_cluster_server *server_of(uint64_t node) {
  for (size_t i = 0; i < scene.cluster.server_count; i++) {
    struct pwi_server_state state;
    if (!scene.cluster.servers[i].server) continue;
    pwi_server_state(scene.cluster.servers[i].server, &state);
    if (state.node == node) return &scene.cluster.servers[i];
  }
  fail();
  return NULL;
}

static void open_large(uint64_t seed) {
  static int64_t values[BIG_KEYS * LARGE_WIDTH];
  saving_open_disk(&scene, seed);
  scene.points = 1;
  saving_open_cluster(&scene, seed, 2, 1);
  flow = cluster_vector(&scene.client, "test/large", &large);
  for (size_t i = 0; i < (size_t)BIG_KEYS * LARGE_WIDTH; i++)
    values[i] = i / LARGE_WIDTH == FIRST ? 0 : (int64_t)(pwi_mix64(i) >> 1);
  assert_int_equal(cluster_call(&scene.client, flow, PWI_REQUEST_PUSH, &(struct pwi_where){0}, values, NULL, NULL),
                   PAWL_OK);
  const struct pwi_arc *arc = &pwi_client_view(scene.client.client)->arcs[0];
  assert_int_equal(pwi_arc_full(arc), 2);
  head = server_of(arc->chain[0].node.id);
  tail = server_of(arc->chain[1].node.id);
}

static struct pwi_chain *first_chain(const struct pwi_cluster_server *server) {
  return pwi_chains_find(&server->server->chains, 0);
}

static void part(bool is_parted) {
  (is_parted ? pwi_sim_cut : pwi_sim_mend)(scene.cluster.sim, head->node, tail->node);
  (is_parted ? pwi_sim_cut : pwi_sim_mend)(scene.cluster.sim, tail->node, head->node);
}

/* The head has not copied as much as the rate permits. */
static bool is_copying(void *context) {
  (void)context;
  const struct server_saving *saving = head->server->saving;
  return !saving || pwi_sheets_wait_ns(saving) == 0;
}

static bool has_the_arc(void *context) {
  (void)context;
  return first_chain(head) && first_chain(head)->is_head;
}

static bool lacks_the_arc(void *context) { return !has_the_arc(context); }

/* Orders the first arc to the server that was its head. */
static void move_back(struct pawl_range positions) {
  struct pwi_server_state state;
  struct pwi_writer writer = {0};
  pwi_server_state(head->server, &state);
  pwi_write_u64(&writer, positions.begin);
  pwi_write_u64(&writer, positions.end);
  pwi_write_u64(&writer, state.node);
  assert_int_equal(cluster_ask(&scene.other, PWI_ASK_MOVE, &writer), PAWL_OK);
  pwi_writer_fini(&writer);
}

/* The head takes a push that its replica does not get, copies the row, and gives the arc up for lack of
 * memory. So the push is lost, and the client is gone. The arc comes back to the same head before it copies
 * more. */
static void test_a_push_that_is_lost_while_its_head_saves_is_in_no_checkpoint(void **state) {
  (void)state;
  const int64_t ones[LARGE_WIDTH] = {1, 1, 1, 1, 1, 1, 1, 1};
  int64_t row[LARGE_WIDTH];
  uint64_t key = FIRST;
  struct pwi_where where = {.keys = &key, .count = 1};
  struct pwi_task task = {0};
  open_large(731);
  struct pawl_range positions = first_chain(head)->positions;
  assert_int_equal(cluster_ask(&scene.other, PWI_ASK_SYNC, NULL), PAWL_OK);
  struct pwi_flow *others = cluster_open_vector(&scene.other, "test/large", 0);
  part(true);
  assert_int_equal(pwi_client_start(scene.client.client, &task, flow, PWI_REQUEST_PUSH, &where, ones, NULL), PAWL_OK);
  cluster_run_for(&scene.cluster, 20 * MS);
  assert_int_equal(saving_ask(&scene, "after", false, RATE), PAWL_OK);
  cluster_run_while(&scene.cluster, is_copying, NULL, PWI_SIM_SECOND);
  const struct server_saving *saving = head->server->saving;
  uint64_t given = saving->given;
  pwi_sim_kill(scene.cluster.sim, scene.client.node);
  head->server->chains.starve(head->server->chains.context, first_chain(head));
  cluster_run_while(&scene.cluster, has_the_arc, NULL, PWI_SIM_SECOND);
  part(false);
  move_back(positions);
  cluster_run_while(&scene.cluster, lacks_the_arc, NULL, 10 * PWI_SIM_SECOND);
  assert_true(head->server->saving == saving && saving->given == given);
  cluster_run_while(&scene.cluster, saving_is_going, &scene, 60 * PWI_SIM_SECOND);
  assert_true(saving_status_says(&scene, "\"state\":\"saved\""));
  read_ends("after");
  assert_int_equal(cluster_call(&scene.other, others, PWI_REQUEST_PULL, &where, NULL, row, NULL), PAWL_OK);
  assert_int_equal(row[0], 0);
  assert_int_equal(big_found[0], 0);
  saving_close(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_vector_that_is_loaded_meanwhile_fails_the_checkpoint),
      cmocka_unit_test(test_rows_of_a_large_arc_are_of_one_moment),
      cmocka_unit_test(test_a_push_that_is_lost_with_its_head_is_in_no_checkpoint),
      cmocka_unit_test(test_a_push_that_is_lost_while_its_head_saves_is_in_no_checkpoint),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
