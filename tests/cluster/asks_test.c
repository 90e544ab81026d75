/* Asks to the manager whose replies are lost: each is executed at most once, and its reply is repeated, even
 * if the link, the manager or the client is lost meanwhile. */
#include "base/cursor.h"
#include "base/testing.h"
#include "cluster.h"
#include "leaders.h"
#include "manager/ledger/ledger.h"

/* Events between an ask whose reply is lost and its repetition. */
enum meanwhile {
  NOTHING,
  RESTART,    /* the manager is killed and started again */
  TAKEOVER,   /* another manager leads */
  RETIREMENT, /* the client is declared dead, and returns under a new id */
  MEANWHILES,
};

static const char *const meanwhile_names[MEANWHILES] = {"nothing", "restart", "takeover", "retirement"};
static const struct pawl_vector_options counts = {.type = PAWL_I64, .width = 1, .size = 100};
static const uint64_t key = 7;

struct scene {
  struct pwi_cluster cluster;
  struct leaders leaders;
  enum meanwhile meanwhile;
  struct pwi_cluster_client a, b;
  struct pwi_flow *flow; /* b's */
};

static struct scene scene;

/* --- an ask in two halves ------------------------------------------------------------------------------- */

struct question {
  struct pwi_asking asking;
  bool is_over;
  pawl_status status;
  uint64_t id;
};

static void replied(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct question *question = (struct question *)((char *)asking - offsetof(struct question, asking));
  struct pwi_reader reader;
  pwi_reader_init(&reader, payload, size);
  question->is_over = true;
  question->status = status;
  question->id = size >= 8 ? pwi_read_u64(&reader) : 0;
}

static bool is_open(void *context) { return !((struct question *)context)->is_over; }

static struct pwi_sim_node manager_node(void) {
  return scene.meanwhile == TAKEOVER ? leaders_first(&scene.leaders)->node : scene.cluster.manager_node;
}

/* The ask arrives, and its reply is lost. */
static void ask_deaf(struct question *question, enum pwi_ask what, const struct pwi_writer *payload) {
  *question = (struct question){.asking.replied = replied};
  pwi_sim_cut(scene.cluster.sim, manager_node(), scene.a.node);
  assert_int_equal(pwi_client_ask(scene.a.client, &question->asking, what, payload ? payload->data : NULL,
                                  payload ? payload->size : 0),
                   PAWL_OK);
  cluster_run_for(&scene.cluster, 300 * MS);
  assert_false(question->is_over);
}

static bool has_old_leader(void *context) { return leaders_first(&scene.leaders) == context; }
static bool has_no_leader(void *context) { return leaders_first(context) == NULL; }

static void let_happen(void) {
  struct pwi_sim *sim = scene.cluster.sim;
  if (scene.meanwhile == RESTART) {
    pwi_sim_kill(sim, scene.cluster.manager_node);
    cluster_run_for(&scene.cluster, 100 * MS);
    assert_int_equal(pwi_sim_start(sim, scene.cluster.manager_node), PAWL_OK);
    pwi_sim_cut(sim, scene.cluster.manager_node, scene.a.node);
  } else if (scene.meanwhile == TAKEOVER) {
    struct leader *old = leaders_first(&scene.leaders);
    pwi_sim_kill(sim, old->node);
    cluster_run_while(&scene.cluster, has_old_leader, old, 60 * PWI_SIM_SECOND);
    cluster_run_while(&scene.cluster, has_no_leader, &scene.leaders, 60 * PWI_SIM_SECOND);
  } else if (scene.meanwhile == RETIREMENT) {
    pwi_sim_cut(sim, scene.a.node, scene.cluster.manager_node);
    cluster_run_for(&scene.cluster, 5 * PWI_SIM_SECOND);
  }
  cluster_run_for(&scene.cluster, PWI_SIM_SECOND);
}

/* The ask is sent again and answered. */
static void hear_answer(struct question *question) {
  struct pwi_sim *sim = scene.cluster.sim;
  pwi_sim_mend(sim, PWI_SIM_ALL, scene.a.node);
  pwi_sim_mend(sim, scene.a.node, PWI_SIM_ALL);
  if (scene.meanwhile != TAKEOVER) {
    pwi_sim_mend(sim, scene.cluster.manager_node, scene.a.node);
    pwi_sim_mend(sim, scene.a.node, scene.cluster.manager_node);
    pwi_sim_break(sim, scene.cluster.manager_node, scene.a.node);
  } else {
    for (size_t i = 0; i < scene.leaders.count; i++) {
      pwi_sim_mend(sim, scene.leaders.all[i].node, scene.a.node);
      pwi_sim_break(sim, scene.leaders.all[i].node, scene.a.node);
    }
  }
  cluster_run_while(&scene.cluster, is_open, question, 60 * PWI_SIM_SECOND);
}

/* --- scenes --------------------------------------------------------------------------------------------- */

static void add_client(struct pwi_cluster_client *client, const char *name) {
  *client = (struct pwi_cluster_client){.job = "asks"};
  strcpy(client->name, name);
  cluster_client_add(&scene.cluster, client);
  cluster_wait_joined(client);
}

static void open_scene(enum meanwhile meanwhile) {
  struct pwi_cluster_config config = {.seed = 3 + (uint64_t)meanwhile,
                                      .processes = 2,
                                      .shards = 1,
                                      .durable = true,
                                      .client_grace_ns = meanwhile == RETIREMENT ? 500 * MS : 0,
                                      .managers = meanwhile == TAKEOVER ? leaders_addresses(2) : NULL};
  print_message("         meanwhile: %s\n", meanwhile_names[meanwhile]);
  memset(&scene, 0, sizeof scene);
  scene.meanwhile = meanwhile;
  cluster_open(&scene.cluster, &config);
  if (meanwhile == TAKEOVER) leaders_open(&scene.leaders, &scene.cluster, 2);
  add_client(&scene.a, "a");
  add_client(&scene.b, "b");
}

static void close_scene(void) {
  pwi_cluster_close(&scene.cluster);
  if (scene.meanwhile == TAKEOVER) leaders_close(&scene.leaders);
}

static void write_name(struct pwi_writer *writer, const char *name, bool has_options) {
  pwi_writer_reset(writer);
  pwi_write_text(writer, name);
  if (has_options) pwi_options_write(writer, &counts);
}

static void push_one(void) {
  static const int64_t one = 1;
  struct pwi_where where = {.keys = &key, .count = 1};
  assert_int_equal(cluster_call(&scene.b, scene.flow, PWI_REQUEST_PUSH, &where, &one, NULL, NULL), PAWL_OK);
}

static int64_t pulled(void) {
  int64_t value;
  struct pwi_where where = {.keys = &key, .count = 1};
  assert_int_equal(cluster_call(&scene.b, scene.flow, PWI_REQUEST_PULL, &where, NULL, &value, NULL), PAWL_OK);
  return value;
}

static void test_a_delete_that_is_asked_again_spares_a_new_vector_of_that_name(void **state) {
  (void)state;
  for (int meanwhile = 0; meanwhile < MEANWHILES; meanwhile++) {
    struct pwi_writer writer = {0};
    struct question question;
    open_scene((enum meanwhile)meanwhile);
    cluster_vector(&scene.a, "asks/v", &counts);
    write_name(&writer, "asks/v", false);
    ask_deaf(&question, PWI_ASK_DELETE, &writer);
    let_happen();
    scene.flow = cluster_vector(&scene.b, "asks/v", &counts);
    push_one();
    hear_answer(&question);
    assert_int_equal(question.status, PAWL_OK);
    assert_int_equal(pulled(), 1);
    pwi_writer_fini(&writer);
    close_scene();
  }
}

static void test_a_restore_that_is_asked_again_does_not_begin_anew(void **state) {
  (void)state;
  for (int meanwhile = 0; meanwhile < MEANWHILES; meanwhile++) {
    struct pwi_writer writer = {0};
    struct question question;
    open_scene((enum meanwhile)meanwhile);
    scene.flow = cluster_vector(&scene.b, "asks/v", &counts);
    push_one();
    write_name(&writer, "asks/v", true);
    ask_deaf(&question, PWI_ASK_RESTORE_BEGIN, &writer);
    let_happen();
    assert_int_equal(pulled(), 0);
    push_one();
    hear_answer(&question);
    assert_int_equal(question.status, PAWL_OK);
    assert_int_equal(question.id, pwi_flow_entry(scene.flow)->id.id);
    assert_int_equal(pulled(), 1);
    pwi_writer_fini(&writer);
    close_scene();
  }
}

/* Another vector of the same name was created after the first was deleted: the reply is about the first. */
static void test_a_create_that_is_asked_again_tells_of_the_vector_that_it_made(void **state) {
  (void)state;
  static const struct pawl_vector_options other = {.type = PAWL_F64, .width = 3, .size = 50};
  for (int meanwhile = 0; meanwhile < MEANWHILES; meanwhile++) {
    struct pwi_writer writer = {0};
    struct question question;
    open_scene((enum meanwhile)meanwhile);
    write_name(&writer, "asks/v", true);
    ask_deaf(&question, PWI_ASK_CREATE, &writer);
    let_happen();
    assert_int_equal(cluster_ask(&scene.b, PWI_ASK_SYNC, NULL), PAWL_OK);
    uint64_t first = pwi_flow_entry(cluster_open_vector(&scene.b, "asks/v", 0))->id.id;
    write_name(&writer, "asks/v", false);
    assert_int_equal(cluster_ask(&scene.b, PWI_ASK_DELETE, &writer), PAWL_OK);
    struct pwi_flow *second = cluster_vector(&scene.b, "asks/v", &other);
    hear_answer(&question);
    assert_int_equal(question.status, PAWL_OK);
    assert_int_equal(question.id, first);
    assert_true(pwi_flow_entry(second)->id.id != first);
    pwi_writer_fini(&writer);
    close_scene();
  }
}

static void test_a_create_that_met_another_vector_is_refused_however_often_it_is_asked(void **state) {
  (void)state;
  for (int meanwhile = 0; meanwhile < MEANWHILES; meanwhile++) {
    struct pwi_writer writer = {0};
    struct question question;
    open_scene((enum meanwhile)meanwhile);
    cluster_vector(&scene.b, "asks/v", &counts);
    write_name(&writer, "asks/v", true);
    ask_deaf(&question, PWI_ASK_CREATE, &writer);
    let_happen();
    hear_answer(&question);
    assert_int_equal(question.status, PAWL_EXISTS);
    pwi_writer_fini(&writer);
    close_scene();
  }
}

/* Two asks are in flight, and the later one undoes the earlier. Both are sent again in their order. */
static void test_asks_that_go_again_keep_their_order(void **state) {
  (void)state;
  for (int meanwhile = 0; meanwhile < MEANWHILES; meanwhile++) {
    struct pwi_writer writer = {0};
    struct question delete, create;
    open_scene((enum meanwhile)meanwhile);
    write_name(&writer, "asks/v", false);
    ask_deaf(&delete, PWI_ASK_DELETE, &writer); /* there is none */
    write_name(&writer, "asks/v", true);
    ask_deaf(&create, PWI_ASK_CREATE, &writer);
    let_happen();
    hear_answer(&create);
    hear_answer(&delete);
    assert_int_equal(delete.status, PAWL_NOT_FOUND);
    assert_int_equal(create.status, PAWL_OK);
    assert_int_equal(cluster_ask(&scene.b, PWI_ASK_SYNC, NULL), PAWL_OK);
    scene.flow = cluster_open_vector(&scene.b, "asks/v", 0);
    push_one();
    pwi_writer_fini(&writer);
    close_scene();
  }
}

/* Both asks order all positions to a server; the later order counts. */
static void test_a_move_that_is_asked_again_does_not_undo_a_later_one(void **state) {
  (void)state;
  for (int meanwhile = 0; meanwhile < MEANWHILES; meanwhile++) {
    if (meanwhile == TAKEOVER) continue; /* as a restart, which has the order forgotten in the same way */
    struct pwi_server_state one, two;
    struct pwi_writer writer = {0};
    struct question question;
    open_scene((enum meanwhile)meanwhile);
    pwi_server_state(scene.cluster.servers[0].server, &one);
    pwi_server_state(scene.cluster.servers[1].server, &two);
    const struct pwi_view *view = pwi_client_view(scene.b.client);
    struct pawl_range positions = pwi_view_arc_range(view, 0);
    uint64_t head = pwi_view_head(view, 0)->node.id, away = head == one.node ? two.node : one.node;
    pwi_write_u64(&writer, positions.begin);
    pwi_write_u64(&writer, positions.end);
    pwi_write_u64(&writer, away);
    ask_deaf(&question, PWI_ASK_MOVE, &writer);
    cluster_run_for(&scene.cluster, 3 * PWI_SIM_SECOND);
    let_happen();
    pwi_writer_reset(&writer);
    pwi_write_u64(&writer, positions.begin);
    pwi_write_u64(&writer, positions.end);
    pwi_write_u64(&writer, head);
    assert_int_equal(cluster_ask(&scene.b, PWI_ASK_MOVE, &writer), PAWL_OK);
    cluster_run_for(&scene.cluster, 3 * PWI_SIM_SECOND);
    uint64_t moves = pwi_cluster_moves_done(&scene.cluster);
    hear_answer(&question);
    assert_int_equal(question.status, PAWL_OK);
    cluster_run_for(&scene.cluster, 3 * PWI_SIM_SECOND);
    assert_int_equal(pwi_cluster_moves_done(&scene.cluster), moves);
    pwi_writer_fini(&writer);
    close_scene();
  }
}

static void test_what_was_heard_is_not_remembered(void **state) {
  (void)state;
  struct pwi_writer writer = {0};
  open_scene(NOTHING);
  for (int i = 0; i < 3000; i++) { /* more than are remembered of one sender */
    write_name(&writer, "asks/v", true);
    assert_int_equal(cluster_ask(&scene.a, PWI_ASK_CREATE, &writer), PAWL_OK);
    write_name(&writer, "asks/v", false);
    assert_int_equal(cluster_ask(&scene.a, PWI_ASK_DELETE, &writer), PAWL_OK);
  }
  pwi_writer_fini(&writer);
  close_scene();
}

/* Clients come and go under a manager that is restarted, with random cuts: each ask is executed exactly
 * once. */
static void test_every_create_makes_one_vector_whatever_breaks(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    struct pwi_cluster_config config = {
        .seed = seed, .processes = 2, .shards = 1, .durable = true, .client_grace_ns = seed % 2 ? 300 * MS : 0};
    struct pwi_writer writer = {0};
    struct question question;
    memset(&scene, 0, sizeof scene);
    cluster_open(&scene.cluster, &config);
    add_client(&scene.a, "a");
    uint64_t last = 0;
    for (int i = 0; i < 12; i++) {
      char name[32];
      snprintf(name, sizeof name, "asks/v%d", i);
      write_name(&writer, name, true);
      question = (struct question){.asking.replied = replied};
      assert_int_equal(pwi_client_ask(scene.a.client, &question.asking, PWI_ASK_CREATE, writer.data, writer.size),
                       PAWL_OK);
      for (int j = 0; j < 3; j++) {
        cluster_run_for(&scene.cluster, (int64_t)pwi_random_below(&scene.cluster.random, 4 * MS));
        switch (pwi_random_below(&scene.cluster.random, 4)) {
        case 0:
          pwi_sim_break(scene.cluster.sim, scene.a.node, scene.cluster.manager_node);
          break;
        case 1:
          pwi_sim_kill(scene.cluster.sim, scene.cluster.manager_node);
          assert_int_equal(pwi_sim_start(scene.cluster.sim, scene.cluster.manager_node), PAWL_OK);
          break;
        case 2:
          pwi_sim_pause(scene.cluster.sim, scene.a.node, PWI_SIM_SECOND);
          break;
        default:
          break;
        }
      }
      cluster_run_while(&scene.cluster, is_open, &question, 120 * PWI_SIM_SECOND);
      assert_int_equal(question.status, PAWL_OK);
      assert_true(question.id > last); /* it is this one's, and no second one was made in its place */
      assert_true(question.id == last + 1);
      last = question.id;
    }
    pwi_writer_fini(&writer);
    pwi_cluster_close(&scene.cluster);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_delete_that_is_asked_again_spares_a_new_vector_of_that_name),
      cmocka_unit_test(test_a_restore_that_is_asked_again_does_not_begin_anew),
      cmocka_unit_test(test_a_create_that_is_asked_again_tells_of_the_vector_that_it_made),
      cmocka_unit_test(test_a_create_that_met_another_vector_is_refused_however_often_it_is_asked),
      cmocka_unit_test(test_asks_that_go_again_keep_their_order),
      cmocka_unit_test(test_a_move_that_is_asked_again_does_not_undo_a_later_one),
      cmocka_unit_test(test_what_was_heard_is_not_remembered),
      cmocka_unit_test(test_every_create_makes_one_vector_whatever_breaks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
