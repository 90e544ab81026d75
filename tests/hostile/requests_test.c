/* Requests whose terms name more rows than were sent, or than can exist. A server allocates no memory for
 * them and refuses them. No other node is affected: no head is deposed, no link is lost, and the next push of
 * the same client is applied. */
#include "base/testing.h"
#include "../cluster/cluster.h"
#include "base/cursor.h"
#include "liar.h"

#define SPAN (UINT64_C(1) << 62)
#define GROUP "sim/.crew"

static struct pwi_cluster cluster;
static struct liar liar;
static struct pwi_cluster_client honest;
static struct pwi_flow *mine, *theirs, *crew;
static uint64_t epoch;
static uint64_t group_id;

static const struct pawl_vector_options sparse = {
    .type = PAWL_I64, .width = 1, .size = SPAN, .layout = PAWL_LAYOUT_SPARSE};

/* The liar is the only member of a group. */
static void join_group(void) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, 1);
  assert_int_equal(cluster_ask(&liar.client, PWI_ASK_GROUP, &writer), PAWL_OK);
  pwi_writer_fini(&writer);
  assert_int_equal(cluster_ask(&liar.client, PWI_ASK_SYNC, NULL), PAWL_OK);
  crew = cluster_open_vector(&liar.client, GROUP, 0);
  group_id = pwi_flow_entry(crew)->id.id;
}

static void begin(void) {
  struct pwi_cluster_config config = {.seed = 15, .processes = 3, .shards = 1, .replicas = 1};
  memset(&liar, 0, sizeof liar);
  memset(&honest, 0, sizeof honest);
  cluster_open(&cluster, &config);
  strcpy(honest.name, "honest");
  cluster_client_add(&cluster, &honest);
  cluster_wait_joined(&honest);
  theirs = cluster_vector(&honest, "other/w", &sparse);
  strcpy(liar.client.name, "liar");
  liar_add(&cluster, &liar);
  mine = cluster_vector(&liar.client, "sim/w", &sparse);
  join_group();
  cluster_run_for(&cluster, 500 * MS); /* until chains are made */
  epoch = pwi_client_view(honest.client)->epoch;
}

static pawl_status push_one(struct pwi_cluster_client *client, struct pwi_flow *flow, uint64_t key,
                            uint64_t aggregate) {
  int64_t value = 1;
  struct pwi_where where = {.keys = &key, .count = 1, .aggregate = aggregate, .tick = 1};
  return cluster_call(client, flow, PWI_REQUEST_PUSH, &where, &value, NULL, NULL);
}

/* No head was deposed, and both clients can continue. */
static void check_peace(void) {
  liar.lie = NULL;
  for (uint64_t i = 0; i < 16; i++) {
    assert_int_equal(push_one(&honest, theirs, i * (SPAN / 16), 0), PAWL_OK);
    assert_int_equal(push_one(&liar.client, mine, i * (SPAN / 16), 0), PAWL_OK);
  }
  cluster_run_for(&cluster, 500 * MS);
  assert_int_equal(pwi_client_view(honest.client)->epoch, epoch);
  assert_int_equal(pwi_cluster_client_figures(&honest).reconnects, 0);
  assert_int_equal(pwi_cluster_client_figures(&liar.client).reconnects, 0);
}

static void end(void) {
  check_peace();
  pwi_cluster_close(&cluster);
}

/* --- lies ----------------------------------------------------------------------------------------------- */

static bool is_mine(const struct lie *lie) { return lie->terms.vector.id == pwi_flow_entry(mine)->id.id; }

static bool boast_of_range(struct liar *self, struct lie *lie) {
  return is_mine(lie) && liar_boast_of_range(self, lie);
}

static bool boast_of_signature(struct liar *self, struct lie *lie) {
  return is_mine(lie) && liar_boast_of_signature(self, lie);
}

static bool boast_of_room(struct liar *self, struct lie *lie) {
  (void)self;
  if (!is_mine(lie)) return false;
  lie->terms.rows = UINT64_MAX;
  return true;
}

/* --- pushes --------------------------------------------------------------------------------------------- */

static void test_a_push_of_a_group_without_its_values_deposes_nobody(void **state) {
  (void)state;
  begin();
  for (int i = 0; i < 3; i++) {
    liar.lie = i == 1 ? boast_of_signature : boast_of_range;
    assert_int_equal(push_one(&liar.client, mine, 5, group_id), PAWL_MISMATCH);
  }
  assert_true(liar.told >= 3);
  end();
}

static void test_a_push_without_its_values_is_refused(void **state) {
  (void)state;
  static const enum pwi_request_kind kinds[] = {PWI_REQUEST_PUSH, PWI_REQUEST_PUSHPULL, PWI_REQUEST_RESTORE};
  begin();
  for (size_t i = 0; i < 2 * sizeof kinds / sizeof kinds[0]; i++) {
    enum pwi_request_kind kind = kinds[i / 2];
    uint64_t key = 9;
    int64_t value = 1, out = 0;
    struct pwi_where where = {.keys = &key, .count = 1};
    liar.lie = i % 2 ? boast_of_range : boast_of_signature;
    assert_int_equal(
        cluster_call(&liar.client, mine, kind, &where, &value, kind == PWI_REQUEST_PUSHPULL ? &out : NULL, NULL),
        PAWL_MISMATCH);
    liar.lie = NULL; /* the number is used up and does not delay the next one */
    assert_int_equal(push_one(&liar.client, mine, key, 0), PAWL_OK);
  }
  end();
}

/* The client uses up a number that is answered FAILED, so that later requests do not wait for ever. */
static bool follow_itself(struct liar *self, struct lie *lie) {
  if (!is_mine(lie) || lie->terms.rows == 0 || self->told > 0) return false;
  lie->terms.prior = lie->head.task;
  return true;
}

static void test_a_push_that_failed_holds_up_nobody(void **state) {
  (void)state;
  for (int aggregate = 0; aggregate <= 1; aggregate++) {
    int64_t out = 0;
    uint64_t key = SPAN - 1;
    struct pwi_where where = {.keys = &key, .count = 1};
    begin();
    liar.lie = follow_itself;
    assert_int_equal(push_one(&liar.client, mine, key, aggregate ? group_id : 0), PAWL_INVALID);
    assert_int_equal(liar.told, 1);
    assert_int_equal(cluster_call(&liar.client, mine, PWI_REQUEST_PULL, &where, NULL, &out, NULL), PAWL_OK);
    assert_int_equal(out, 0);
    assert_int_equal(push_one(&liar.client, mine, key, 0), PAWL_OK);
    assert_int_equal(cluster_call(&liar.client, mine, PWI_REQUEST_PULL, &where, NULL, &out, NULL), PAWL_OK);
    assert_int_equal(out, 1);
    end();
  }
}

/* Servers that know fewer rights of a key than the manager: forbidden pushes were never applied, and reading
 * continues. */
static bool may_all_write = true;

static struct pwi_rights rights_now(void *context, const char *identity) {
  (void)context, (void)identity;
  return (struct pwi_rights){.write = may_all_write};
}

static void test_a_push_that_is_forbidden_does_not_hold_up_reading(void **state) {
  (void)state;
  struct pwi_cluster_config config = {.seed = 16, .processes = 2, .shards = 1, .replicas = 1, .rights = rights_now};
  struct pwi_cluster_client client = {.name = "reader"};
  uint64_t key = 5;
  int64_t out = -1;
  struct pwi_where where = {.keys = &key, .count = 1};
  may_all_write = true;
  cluster_open(&cluster, &config);
  cluster_client_add(&cluster, &client);
  cluster_wait_joined(&client);
  struct pwi_flow *flow = cluster_vector(&client, "sim/w", &sparse);
  cluster_run_for(&cluster, 500 * MS);
  may_all_write = false; /* for new links from here on */
  for (int i = 0; i < 3; i++) {
    assert_int_equal(push_one(&client, flow, key, 0), PAWL_FORBIDDEN);
    assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PULL, &where, NULL, &out, NULL), PAWL_OK);
    assert_int_equal(out, 0);
  }
  may_all_write = true;
  pwi_cluster_close(&cluster);
}

/* --- reads ---------------------------------------------------------------------------------------------- */

static void test_a_pull_of_more_than_an_answer_carries_fails(void **state) {
  (void)state;
  uint64_t key = 9;
  int64_t out = 0;
  struct pwi_where where = {.keys = &key, .count = 1};
  begin();
  liar.lie = boast_of_range;
  assert_int_equal(cluster_call(&liar.client, mine, PWI_REQUEST_PULL, &where, NULL, &out, NULL), PAWL_TOO_LARGE);
  end();
}

static void scanned(struct pwi_task *task) { (void)task; }

static void test_a_scan_finds_what_is_there_whatever_room_it_has(void **state) {
  (void)state;
  begin();
  assert_int_equal(push_one(&liar.client, mine, 9, 0), PAWL_OK);
  liar.lie = boast_of_room;
  uint64_t keys[64];
  int64_t values[64];
  struct pwi_task task = {.finished = scanned};
  assert_int_equal(pwi_client_scan(liar.client.client, &task, mine, pawl_range_of(0, SPAN), 64, keys, values), PAWL_OK);
  cluster_run_for(&cluster, 1000 * MS);
  assert_int_equal(task.status, PAWL_OK);
  assert_int_equal(task.rows, 1);
  assert_int_equal(keys[0], 9);
  end();
}

#define WIDE_ROWS 9 /* of 8 MiB: more than one answer carries */

/* Each answer has as many rows as fit, and the scan continues after them. */
static void test_a_scan_of_long_rows_comes_in_parts(void **state) {
  (void)state;
  static int64_t row[1 << 20], rows[WIDE_ROWS << 20];
  uint64_t keys[WIDE_ROWS];
  struct pawl_vector_options wide = sparse;
  wide.width = 1 << 20;
  begin();
  struct pwi_flow *flow = cluster_vector(&honest, "other/wide", &wide);
  for (uint64_t key = 0; key < WIDE_ROWS; key++) {
    struct pwi_where where = {.keys = &key, .count = 1};
    row[0] = (int64_t)key + 1;
    assert_int_equal(cluster_call(&honest, flow, PWI_REQUEST_PUSH, &where, row, NULL, NULL), PAWL_OK);
  }
  struct pwi_task task = {.finished = scanned};
  assert_int_equal(pwi_client_scan(honest.client, &task, flow, pawl_range_of(0, SPAN), WIDE_ROWS, keys, rows), PAWL_OK);
  cluster_run_for(&cluster, 5000 * MS);
  assert_int_equal(task.status, PAWL_OK);
  assert_in_range(task.rows, 1, WIDE_ROWS - 1);
  assert_int_equal(task.found, task.rows);
  for (uint64_t i = 0; i < task.rows; i++) assert_int_equal(rows[i << 20], i + 1);
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_push_of_a_group_without_its_values_deposes_nobody),
      cmocka_unit_test(test_a_push_without_its_values_is_refused),
      cmocka_unit_test(test_a_push_that_failed_holds_up_nobody),
      cmocka_unit_test(test_a_push_that_is_forbidden_does_not_hold_up_reading),
      cmocka_unit_test(test_a_pull_of_more_than_an_answer_carries_fails),
      cmocka_unit_test(test_a_scan_finds_what_is_there_whatever_room_it_has),
      cmocka_unit_test(test_a_scan_of_long_rows_comes_in_parts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
