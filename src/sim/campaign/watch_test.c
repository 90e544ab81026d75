/* Answers of a head that was deposed and has not learned of it: a campaign excuses the rows of such an answer, which
 * break a rule without the excuse (docs/faults.md, "Fresh pulls during a partition"), and no other rows. */
#include "ring/place.h"
#include "sim/campaign/small.h"

#define SIZE 100

/* A client with a session of the history. */
static struct party {
  struct pwi_cluster_client client;
  struct pwi_flow *flow;
  uint32_t session;
  bool is_deaf;    /* its answers excuse nothing */
  bool hears_once; /* the same after the first excuse */
} near, far;

static uint32_t vector;

static void heard(void *context, const struct pwi_message *message) {
  const struct party *party = context;
  bool is_deaf = party->is_deaf || (party->hears_once && campaign.figures.excused > 0);
  if (!is_deaf) pwi_watch_heard(&campaign, party->client.client, party->session, message);
}

static void add(struct party *party, const char *name) {
  *party = (struct party){.client = {.job = "job", .heard = heard, .context = party}};
  snprintf(party->client.name, sizeof party->client.name, "%s", name);
  party->session = pwi_history_session(campaign.history, name);
  expect_ok(pwi_cluster_client_add(&campaign.cluster, &party->client));
  expect_ok(pwi_cluster_wait_joined(&party->client));
}

struct doing {
  struct pwi_task task;
  uint32_t call;
  bool is_over;
  uint64_t key;
  int64_t row;
};

static void finished(struct pwi_task *task) {
  struct doing *doing = (struct doing *)task;
  if (task->status) fail_msg("%s at %f", pawl_status_name(task->status), (double)pwi_campaign_now(&campaign) / 1e9);
  pwi_campaign_ended(&campaign, doing->call, task, &doing->row);
  doing->is_over = true;
}

static bool is_under_way(void *context) { return !((struct doing *)context)->is_over; }

static void start(struct party *party, struct doing *doing, enum pwi_request_kind kind, uint64_t key) {
  struct pwi_where where = {.keys = &doing->key, .count = 1};
  bool is_push = kind == PWI_REQUEST_PUSH;
  *doing = (struct doing){.task.finished = finished, .key = key};
  if (is_push) pwi_history_row(campaign.history, vector, key, &doing->row);
  struct pwi_history_call call = {.session = party->session,
                                  .verb = is_push ? PWI_HISTORY_PUSH : PWI_HISTORY_PULL,
                                  .vector = vector,
                                  .keys = &key,
                                  .count = 1,
                                  .rows = &doing->row,
                                  .task = &doing->task};
  doing->call = pwi_history_begin(campaign.history, pwi_campaign_now(&campaign), &call);
  assert_int_equal(pwi_client_start(party->client.client, &doing->task, party->flow, kind, &where,
                                    is_push ? &doing->row : NULL, is_push ? NULL : &doing->row),
                   PAWL_OK);
}

static void await(struct doing *doing) {
  expect_ok(pwi_cluster_run_while(&campaign.cluster, is_under_way, doing, 30 * PWI_SIM_SECOND));
}

static void do_one(struct party *party, enum pwi_request_kind kind, uint64_t key) {
  struct doing doing;
  start(party, &doing, kind, key);
  await(&doing);
}

static void cut(struct pwi_sim_node a, struct pwi_sim_node b) {
  pwi_sim_cut(campaign.cluster.sim, a, b);
  pwi_sim_cut(campaign.cluster.sim, b, a);
}

static const struct pwi_arc *arc_of(uint64_t key) {
  const struct pwi_view *view = pwi_campaign_ledger(&campaign)->view;
  struct pwi_place place = pwi_entry_place(pwi_flow_entry(near.flow));
  return &view->arcs[pwi_view_arc_of(view, pwi_place_position(&place, key))];
}

static size_t server_of(uint64_t key) {
  for (size_t i = 0; i < campaign.cluster.server_count; i++) {
    struct pwi_server_state state;
    pwi_server_state(campaign.cluster.servers[i].server, &state);
    if (state.node == arc_of(key)->chain[0].node.id) return i;
  }
  fail_msg("the arc has no head");
  return 0;
}

static void begin(void) {
  static const struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = SIZE};
  open_small(4);
  vector =
      pwi_history_vector(campaign.history, &(struct pwi_history_vector){.name = "v", .width = 1, .place.size = SIZE});
  add(&near, "near");
  add(&far, "far");
  expect_ok(pwi_cluster_vector(&near.client, "job/v", &options, &near.flow));
  run_for(100 * MS);
  expect_ok(pwi_cluster_open_vector(&far.client, "job/v", 0, &far.flow));
}

/* The head of key 0 and the client `far` reach each other and nobody else, and the cluster has another head. */
static void depose(void) {
  size_t server = server_of(0);
  struct pwi_sim_node head = campaign.cluster.servers[server].node;
  uint64_t was = arc_of(0)->chain[0].node.id;
  for (size_t i = 0; i < campaign.cluster.server_count; i++) {
    if (i != server) cut(head, campaign.cluster.servers[i].node);
    if (i != server) cut(far.client.node, campaign.cluster.servers[i].node);
  }
  pwi_budget_silence(&campaign, server, pwi_campaign_now(&campaign) + PWI_SIM_SECOND);
  cut(head, campaign.cluster.manager_node);
  cut(head, near.client.node);
  cut(far.client.node, campaign.cluster.manager_node);
  run_for(2 * PWI_SIM_SECOND);
  assert_int_not_equal(arc_of(0)->chain[0].node.id, was);
}

static bool is_good(void) {
  char text[256];
  bool is = pwi_history_check(campaign.history, text, sizeof text);
  if (!is) assert_non_null(strstr(text, "rule recent"));
  return is;
}

static void end(void) {
  assert_null(pwi_sim_failure(campaign.cluster.sim));
  close_small();
}

static void test_rows_of_a_deposed_head_are_old_and_excused(void **state) {
  (void)state;
  for (int is_deaf = 0; is_deaf < 2; is_deaf++) {
    begin();
    do_one(&near, PWI_REQUEST_PUSH, 0);
    do_one(&far, PWI_REQUEST_PULL, 0);
    depose();
    do_one(&near, PWI_REQUEST_PUSH, 0);
    far.is_deaf = is_deaf;
    do_one(&far, PWI_REQUEST_PULL, 0); /* lacks the second push */
    assert_int_equal(is_good(), !is_deaf);
    assert_int_equal(campaign.figures.excused, !is_deaf);
    end();
  }
}

static void test_only_the_call_that_was_answered_is_excused(void **state) {
  (void)state;
  struct doing reads[2];
  begin();
  depose();
  do_one(&near, PWI_REQUEST_PUSH, 0);
  far.hears_once = true;
  start(&far, &reads[0], PWI_REQUEST_PULL, 0);
  start(&far, &reads[1], PWI_REQUEST_PULL, 0);
  await(&reads[0]);
  await(&reads[1]);
  assert_int_equal(campaign.figures.excused, 1);
  assert_false(is_good());
  end();
}

/* --- answers -------------------------------------------------------------------------------------------- */

/* Node 1 was the head. In the next view node 2 is the head, and node 1 has this state. */
static struct pwi_view *view_of(uint64_t epoch, uint64_t first, enum pwi_node_state state) {
  struct pwi_view_node nodes[2];
  for (uint64_t i = 0; i < 2; i++)
    nodes[i] =
        (struct pwi_view_node){.node = {i + 1}, .process = i + 1, .weight = 1, .address = "a", .host = "h", .rack = ""};
  nodes[0].state = state;
  struct pwi_arc arc = {.since = epoch, .count = 1, .chain = {{{first}, false}}};
  struct pwi_view *view;
  assert_int_equal(pwi_view_create(epoch, nodes, 2, &arc, 1, NULL, &view), PAWL_OK);
  return view;
}

/* True if an answer of node 1 with view 1 and so many sections is excused after a view in which it has this state. */
static bool is_excused(enum pwi_node_state state, size_t sections) {
  static const uint8_t nothing[PWI_OUTCOME_SIZE];
  struct pwi_message_terms terms = {.version = 1, .body_max = 4096, .unpacked_max = 4096};
  struct pwi_message_head head = {.kind = PWI_SAY_ANSWER, .sender = 1, .view = 1};
  struct pwi_section section = {
      .type = PWI_SECTION_OUTCOME, .value_type = PWI_SECTION_RECORDS, .count = 1, .length = sizeof nothing};
  struct watched_view views[] = {{0}, {.view = view_of(1, 1, PWI_NODE_UP)}, {.view = view_of(2, 2, state)}};
  struct pwi_message_builder builder;
  memset(&campaign, 0, sizeof campaign);
  campaign.history = pwi_history_create();
  campaign.watch.views = views;
  campaign.watch.epochs = 3;
  pwi_message_begin(&builder, &terms, &head);
  for (size_t i = 0; i < sections; i++) assert_int_equal(pwi_message_copy(&builder, &section, nothing), PAWL_OK);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  pwi_watch_relay_heard(&campaign, &(struct pwi_message){.head = builder.head, .body_size = builder.body_size});
  pwi_view_release(views[1].view);
  pwi_view_release(views[2].view);
  pwi_history_destroy(campaign.history);
  return campaign.figures.excused_bounds > 0;
}

static void test_a_head_that_was_lost_is_excused_and_one_that_handed_over_is_not(void **state) {
  (void)state;
  assert_true(is_excused(PWI_NODE_DOWN, 2));
  assert_false(is_excused(PWI_NODE_UP, 2));
  assert_false(is_excused(PWI_NODE_DRAINING, 2));
}

static void test_an_answer_without_rows_excuses_nothing(void **state) {
  (void)state;
  assert_false(is_excused(PWI_NODE_DOWN, 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_of_a_deposed_head_are_old_and_excused),
      cmocka_unit_test(test_only_the_call_that_was_answered_is_excused),
      cmocka_unit_test(test_a_head_that_was_lost_is_excused_and_one_that_handed_over_is_not),
      cmocka_unit_test(test_an_answer_without_rows_excuses_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
