/* Campaigns themselves: they find bugs, cause no fault that a cluster cannot survive, and always end. */
#include "base/memory.h"
#include "base/testing.h"
#include "sim/campaign/inside.h"

static struct pwi_campaign_result run(const struct pwi_campaign_config *config) {
  struct pwi_campaign_result result;
  pwi_campaign_run(config, &result);
  return result;
}

static struct pwi_campaign_config config_of(uint64_t seed) {
  struct pwi_campaign_config config;
  pwi_campaign_draw(seed, 0, &config);
  return config;
}

/* --- drawing -------------------------------------------------------------------------------------------- */

static void test_a_seed_draws_the_same_campaign_each_time_and_others_draw_others(void **state) {
  (void)state;
  size_t different = 0;
  for (uint64_t seed = 1; seed <= 100; seed++) {
    struct pwi_campaign_config a, b, next;
    pwi_campaign_draw(seed, -1, &a);
    pwi_campaign_draw(seed, -1, &b);
    pwi_campaign_draw(seed + 1, -1, &next);
    assert_memory_equal(&a, &b, sizeof a);
    next.seed = seed;
    different += memcmp(&a, &next, sizeof a) != 0;
  }
  assert_true(different > 90);
}

static void test_there_are_enough_processes_for_the_replicas_that_were_asked_for(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 100; seed++)
    for (int replicas = 0; replicas <= 2; replicas++) {
      struct pwi_campaign_config config;
      pwi_campaign_draw(seed, replicas, &config);
      assert_int_equal(config.replicas, replicas);
      assert_true(config.processes > (uint32_t)replicas);
      assert_true((size_t)config.processes + config.late <= PWI_CLUSTER_PROCESSES);
      assert_true((size_t)config.processes * config.shards + config.late <= PWI_CLUSTER_SERVERS);
      assert_int_equal(config.gap_servers_ns > 0, replicas > 0);
    }
}

static void test_a_campaign_is_described_on_one_line(void **state) {
  (void)state;
  char text[256], cut[10];
  struct pwi_campaign_config config = config_of(7);
  pwi_campaign_describe(&config, text, sizeof text);
  assert_non_null(strstr(text, "seed=7 replicas=0"));
  assert_null(strchr(text, '\n'));
  pwi_campaign_describe(&config, cut, sizeof cut);
  assert_int_equal(strlen(cut), sizeof cut - 1);
}

/* --- how much chains can survive ------------------------------------------------------------------------ */

/* Nodes 1 to 5, each a process. One arc for each row of members, which ends with 0. A filling member is
 * negative. */
static struct pwi_view *make_view(const int (*members)[5], size_t arcs_wanted) {
  struct pwi_view_node nodes[5];
  struct pwi_arc arcs[4] = {0};
  struct pwi_view *view;
  for (uint64_t i = 0; i < 5; i++)
    nodes[i] =
        (struct pwi_view_node){.node = {i + 1}, .process = i + 1, .weight = 1, .address = "a", .host = "h", .rack = ""};
  for (size_t arc = 0; arc < arcs_wanted; arc++) {
    arcs[arc].begin = arc << 60;
    arcs[arc].since = 1;
    for (size_t i = 0; i < 5 && members[arc][i]; i++) {
      int member = members[arc][i];
      arcs[arc].chain[arcs[arc].count++] = (struct pwi_member){{(uint64_t)(member < 0 ? -member : member)}, member < 0};
    }
  }
  assert_int_equal(pwi_view_create(1, nodes, 5, arcs, arcs_wanted, NULL, &view), PAWL_OK);
  return view;
}

static bool may(const struct pwi_view *view, uint32_t replicas, const struct trouble *troubles, size_t count,
                uint64_t node) {
  return pwi_havoc_may_trouble(view, replicas, troubles, count, &node, 1);
}

static void test_no_fault_is_drawn_without_replicas_or_before_there_are_arcs(void **state) {
  (void)state;
  static const int alone[][5] = {{1}, {2}};
  struct pwi_view *view = make_view(alone, 2), *empty = make_view(alone, 0);
  assert_false(may(view, 0, NULL, 0, 1));
  assert_false(may(view, 1, NULL, 0, 1)); /* the chains are not complete */
  assert_false(may(empty, 1, NULL, 0, 1));
  assert_false(pwi_havoc_may_trouble(NULL, 1, NULL, 0, (uint64_t[]){1}, 1));
  pwi_view_release(view);
  pwi_view_release(empty);
}

static void test_one_of_two_members_may_be_lost_and_no_other_before_it_is_replaced(void **state) {
  (void)state;
  static const int whole[][5] = {{1, 2}, {2, 3}, {3, 1}}, filling[][5] = {{2, -3}, {2, 3}, {3, -2}};
  struct pwi_view *view = make_view(whole, 3), *later = make_view(filling, 3);
  struct trouble dead = {.is_death = true, .nodes = {1}, .node_count = 1};
  assert_true(may(view, 1, NULL, 0, 1));
  assert_true(may(view, 1, NULL, 0, 4)); /* a node without arcs may fail, too */
  for (uint64_t node = 1; node <= 4; node++) {
    assert_false(may(view, 1, &dead, 1, node));
    assert_false(may(later, 1, NULL, 0, node)); /* for whatever reason, two arcs have one full member each */
  }
  pwi_view_release(view);
  pwi_view_release(later);
}

static void test_two_of_three_may_be_lost_but_no_more_than_the_view_accounts_for(void **state) {
  (void)state;
  static const int whole[][5] = {{1, 2, 3}, {2, 3, 4}}, dropped[][5] = {{2, 3}, {2, 3, 4}},
                   lacking[][5] = {{1, 2}, {2, 3, 4}};
  struct pwi_view *view = make_view(whole, 2), *after = make_view(dropped, 2), *poor = make_view(lacking, 2);
  struct trouble dead = {.is_death = true, .nodes = {1}, .node_count = 1};
  struct trouble cut = {.nodes = {2, 3}, .node_count = 2};
  struct trouble both[] = {dead, cut};
  assert_true(may(view, 2, NULL, 0, 1));
  assert_true(may(view, 2, &dead, 1, 2));  /* the view still lists the dead node */
  assert_true(may(after, 2, &dead, 1, 2)); /* or no longer lists it */
  assert_false(may(view, 2, &dead, 1, 1)); /* a node can be lost only once */
  assert_true(may(view, 2, &cut, 1, 4));   /* it costs at most one of 2 and 3 */
  assert_false(may(view, 2, &cut, 1, 3));
  assert_false(may(view, 2, both, 2, 4));
  assert_false(may(poor, 2, NULL, 0, 4)); /* a member is missing without a known trouble */
  assert_false(may(poor, 2, &cut, 1, 1));
  /* two members of the first arc remain */
  assert_true(may(poor, 2, &(struct trouble){.nodes = {4}, .node_count = 1}, 1, 3));
  pwi_view_release(view);
  pwi_view_release(after);
  pwi_view_release(poor);
}

/* The chain of nodes 1, 2 and 3 has lost `lost`, and node 1 has this account. */
static bool is_explained(struct silenced account, int lost) {
  static struct campaign campaign;
  const int whole[][5] = {{1, 2, 3}}, after[][5] = {{lost == 1 ? 2 : 1, lost == 3 ? 2 : 3}};
  struct pwi_view *view = make_view(whole, 1), *next = make_view(after, 1);
  struct pwi_sim_config config;
  memset(&campaign, 0, sizeof campaign);
  pwi_sim_config_init(&config);
  assert_int_equal(pwi_sim_create(&config, &campaign.cluster.sim), PAWL_OK);
  assert_int_equal(pwi_sim_run_until(campaign.cluster.sim, 10 * PWI_SIM_SECOND), PAWL_OK);
  campaign.config.replicas = 2;
  campaign.budget.silenced[campaign.budget.count++] = account;
  pwi_budget_check(&campaign, view, next);
  bool has_failed = pwi_sim_failure(campaign.cluster.sim) != NULL;
  pwi_sim_destroy(campaign.cluster.sim);
  pwi_view_release(view);
  pwi_view_release(next);
  return !has_failed;
}

static void test_only_injected_faults_explain_a_lost_copy(void **state) {
  (void)state;
  const struct silenced silent = {.node = 1, .until = 9 * PWI_SIM_SECOND}, long_ago = {.node = 1, .until = 1};
  const struct silenced slow = {.node = 1, .until = 9 * PWI_SIM_SECOND, .slow_until = 9 * PWI_SIM_SECOND};
  const struct silenced dead = {.node = 1, .until = INT64_MAX, .slow_until = 1};
  assert_true(is_explained(silent, 1));
  assert_true(is_explained(slow, 1));
  assert_true(is_explained(dead, 1));
  assert_false(is_explained(long_ago, 1));
  assert_true(is_explained(slow, 2)); /* the member behind it */
  assert_false(is_explained(silent, 2));
  assert_false(is_explained(dead, 2));
  assert_false(is_explained(slow, 3));
}

/* --- bugs that are found -------------------------------------------------------------------------------- */

static void test_a_server_that_dies_without_a_replica_is_missed(void **state) {
  (void)state;
  size_t killed = 0;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    struct pwi_campaign_config config = config_of(seed);
    config.is_reckless = true;
    config.gap_servers_ns = 300 * MS;
    struct pwi_campaign_result result = run(&config);
    if (result.figures.server_kills == 0) continue;
    killed++;
    assert_true(result.has_failed);
    assert_true(result.failure[0] != '\0' && result.time_ns > 0);
  }
  assert_true(killed > 0);
}

static void test_servers_meet_faults_of_all_kinds_and_the_run_ends(void **state) {
  (void)state;
  struct pwi_campaign_figures met = {0};
  for (uint64_t seed = 1; seed <= 8; seed++) {
    struct pwi_campaign_config config;
    pwi_campaign_draw(seed, 1 + (int)(seed % 2), &config);
    config.is_reckless = true;
    struct pwi_campaign_result result = run(&config);
    pwi_campaign_figures_add(&met, &result.figures);
  }
  assert_true(met.server_kills > 0 && met.server_faults > 0 && met.faults > 0);
}

static void test_only_injected_faults_explain_errors(void **state) {
  (void)state;
  static struct campaign campaign;
  const char *failed = "why=%s what=the-journal-failed", *older = "why=%s what=journal-is-not-the-newest";
  assert_false(pwi_errors_are_expected(&campaign, "arc.missing", ""));
  assert_false(pwi_errors_are_expected(&campaign, "data.lost", ""));
  assert_false(pwi_errors_are_expected(&campaign, "manager.stopped", failed));
  assert_false(pwi_errors_are_expected(&campaign, "journal.broken", ""));
  campaign.figures.disk_faults = campaign.figures.server_kills = 1;
  assert_true(pwi_errors_are_expected(&campaign, "manager.stopped", failed));
  assert_true(pwi_errors_are_expected(&campaign, "journal.broken", ""));
  assert_false(pwi_errors_are_expected(&campaign, "manager.stopped", older));
  assert_false(pwi_errors_are_expected(&campaign, "data.lost", ""));
  campaign.config.workloads = UINT32_C(1) << PWI_WORKLOAD_LOSS;
  assert_true(pwi_errors_are_expected(&campaign, "data.lost", ""));
  assert_false(pwi_errors_are_expected(&campaign, "arc.missing", ""));
}

/* A server that logs an error ends the run, and no other node does. */
static void test_an_error_of_a_server_fails_the_run(void **state) {
  (void)state;
  static struct campaign campaign;
  static struct pwi_cluster_server server = {.name = "s0"};
  for (int is_server = 0; is_server < 2; is_server++) {
    struct pwi_log log = {.node = is_server ? "s0" : "w0"};
    struct pwi_sim_config config;
    memset(&campaign, 0, sizeof campaign);
    pwi_sim_config_init(&config);
    assert_int_equal(pwi_sim_create(&config, &campaign.cluster.sim), PAWL_OK);
    campaign.cluster.servers = &server;
    campaign.cluster.server_count = 1;
    campaign.leaders.count = 1;
    pwi_errors_watch(&campaign);
    pwi_log(&log, PAWL_LOG_ERROR, "arc.missing", "begin=%d", 1);
    pwi_errors_leave();
    assert_int_equal(pwi_sim_failure(campaign.cluster.sim) != NULL, is_server);
    pwi_sim_destroy(campaign.cluster.sim);
  }
}

/* --- clients -------------------------------------------------------------------------------------------- */

/* Node 1 is the manager, node 2 the client, which was declared dead at 5 s. Its grace is 100 ms. */
static bool is_retirement_explained(struct pwi_sim_fault fault) {
  static struct campaign campaign;
  memset(&campaign, 0, sizeof campaign);
  campaign.config.client_grace_ns = 100 * MS;
  campaign.cluster.manager_node.index = 1;
  campaign.havoc.items[campaign.havoc.item_count++] = fault;
  return pwi_retired_is_explained(&campaign, (struct pwi_sim_node){2}, 5 * PWI_SIM_SECOND);
}

static void test_only_faults_between_client_and_manager_explain_its_retirement(void **state) {
  (void)state;
  const struct pwi_sim_node manager = {1}, client = {2}, other = {3};
  struct pwi_sim_fault fault = {.at = 4 * PWI_SIM_SECOND,
                                .duration = 200 * MS,
                                .kind = PWI_SIM_FAULT_PAUSE,
                                .node = client,
                                .other = PWI_SIM_ALL};
  assert_true(is_retirement_explained(fault));
  fault.at = 2 * PWI_SIM_SECOND;
  assert_false(is_retirement_explained(fault)); /* long ago */
  fault.at = 6 * PWI_SIM_SECOND;
  assert_false(is_retirement_explained(fault));
  fault.at = 4 * PWI_SIM_SECOND;
  fault.node = other;
  assert_false(is_retirement_explained(fault));
  fault.node = manager;
  assert_true(is_retirement_explained(fault));
  fault.kind = PWI_SIM_FAULT_KILL;
  assert_false(is_retirement_explained(fault)); /* it waits for its clients when it is back */
  fault.at = 3 * PWI_SIM_SECOND;
  assert_false(is_retirement_explained(fault));
  fault.at = 4 * PWI_SIM_SECOND;
  fault.kind = PWI_SIM_FAULT_PART;
  fault.other = other;
  assert_false(is_retirement_explained(fault));
  fault.other = client;
  assert_true(is_retirement_explained(fault));
  fault.node = other;
  assert_false(is_retirement_explained(fault));
}

/* --- the operator --------------------------------------------------------------------------------------- */

static void test_only_faults_explain_an_order_that_failed(void **state) {
  (void)state;
  static const int whole[][5] = {{1, 2}, {2, 1}};
  static struct campaign campaign;
  static struct watched_view views[2];
  memset(&campaign, 0, sizeof campaign);
  views[1].view = make_view(whole, 2);
  campaign.watch.views = views;
  campaign.watch.epochs = 2;
  campaign.havoc.move_epoch = 1;
  campaign.havoc.move_to = 2;
  campaign.config.shards = 1;
  assert_true(pwi_move_may_end(&campaign, PAWL_OK));
  assert_false(pwi_move_may_end(&campaign, PAWL_NOT_FOUND));
  assert_false(pwi_move_may_end(&campaign, PAWL_UNSUPPORTED));
  assert_false(pwi_move_may_end(&campaign, PAWL_IO));
  assert_false(pwi_move_may_end(&campaign, PAWL_INVALID));
  campaign.havoc.move_to = 9; /* the view does not have it */
  campaign.config.shards = 2;
  campaign.figures.disk_faults = 1;
  assert_true(pwi_move_may_end(&campaign, PAWL_NOT_FOUND));
  assert_true(pwi_move_may_end(&campaign, PAWL_UNSUPPORTED));
  assert_true(pwi_move_may_end(&campaign, PAWL_IO));
  pwi_view_release(views[1].view);
}

/* --- the manager's journal ------------------------------------------------------------------------------ */

static void note_nothing(void *context, pawl_status status) { (void)context, (void)status; }
static pawl_status visit_nothing(void *context, const void *record, size_t size) {
  (void)context, (void)record, (void)size;
  return PAWL_OK;
}

/* A manager with one sender, whose journal and keeper have the same records. */
static void open_keeper(struct campaign *campaign) {
  struct keeper *keeper = &campaign->keeper;
  struct pwi_sim_config config;
  struct pwi_writer record = {0};
  struct pwi_membership_sender sender = {.sender = {1}, .job = "test", .address = "", .host = "", .rack = ""};
  memset(campaign, 0, sizeof *campaign);
  pwi_sim_config_init(&config);
  assert_int_equal(pwi_sim_create(&config, &campaign->cluster.sim), PAWL_OK);
  campaign->config.keeper = PWI_KEEPER_FILE;
  pwi_keeper_init(campaign);
  assert_int_equal(pwi_journal_memory_create(&keeper->file), PAWL_OK);
  keeper->file->safe = keeper->journal.safe = note_nothing;
  for (int i = 0; i < 2; i++) {
    pwi_writer_reset(&record);
    if (i == 0)
      pwi_record_born(&record, 7);
    else
      pwi_record_sender(&record, 99, "", &sender);
    assert_int_equal(record.status, PAWL_OK);
    keeper->file->ops->append(keeper->file, record.data, record.size);
    pwi_keeper_note(campaign, record.data, record.size);
  }
  pwi_writer_fini(&record);
  assert_int_equal(keeper->ledger.sender_count, 1);
}

/* Ends the manager. Returns true if the run has failed. */
static bool close_keeper(struct campaign *campaign) {
  bool has_failed = pwi_sim_failure(campaign->cluster.sim) != NULL;
  pwi_keeper_close(campaign, &campaign->keeper.journal);
  pwi_keeper_fini(campaign);
  pwi_watch_fini(campaign);
  pwi_sim_destroy(campaign->cluster.sim);
  return has_failed;
}

static void test_a_journal_must_have_every_field_of_durable_records(void **state) {
  (void)state;
  static struct campaign campaign;
  struct pwi_journal *journal = &campaign.keeper.journal;
  for (int is_wrong = 0; is_wrong < 2; is_wrong++) {
    open_keeper(&campaign);
    if (is_wrong) campaign.keeper.ledger.senders[0].secret++;
    assert_int_equal(journal->ops->replay(journal, visit_nothing, NULL), PAWL_OK);
    assert_int_equal(close_keeper(&campaign), is_wrong);
  }
}

static void test_a_snapshot_must_have_every_field_of_durable_records(void **state) {
  (void)state;
  static struct campaign campaign;
  struct pwi_journal *journal = &campaign.keeper.journal;
  for (int is_wrong = 0; is_wrong < 2; is_wrong++) {
    struct pwi_writer record = {0};
    open_keeper(&campaign);
    pwi_record_snapshot(&record, &campaign.keeper.ledger);
    if (is_wrong) campaign.keeper.ledger.senders[0].secret++;
    journal->ops->replace(journal, record.data, record.size);
    assert_int_equal(close_keeper(&campaign), is_wrong);
    pwi_writer_fini(&record);
  }
}

/* The manager was killed while its last record was written, and the journal has it or not. */
static void test_a_journal_may_have_a_record_that_was_not_confirmed(void **state) {
  (void)state;
  static struct campaign campaign;
  struct keeper *keeper = &campaign.keeper;
  for (int has_it = 0; has_it < 2; has_it++) {
    struct pwi_writer record = {0};
    open_keeper(&campaign);
    struct pwi_journal *file = keeper->file;
    file->safe = NULL;
    if (!has_it) assert_int_equal(pwi_journal_memory_create(&keeper->file), PAWL_OK);
    keeper->file->safe = note_nothing;
    pwi_record_retire(&record, 1);
    keeper->journal.ops->append(&keeper->journal, record.data, record.size);
    if (has_it) assert_int_equal(pwi_journal_memory_create(&keeper->file), PAWL_OK);
    pwi_keeper_close(&campaign, &keeper->journal);
    keeper->file = file;
    assert_int_equal(keeper->journal.ops->replay(&keeper->journal, visit_nothing, NULL), PAWL_OK);
    assert_int_equal(pwi_membership_is_live(&keeper->ledger.membership, (struct pwi_sender){1}), !has_it);
    assert_false(close_keeper(&campaign));
    pwi_writer_fini(&record);
  }
}

/* --- robustness ----------------------------------------------------------------------------------------- */

/* Roles survive a lack of memory; the simulator does not and may end the run. Nothing may leak or crash. */
static void test_a_campaign_without_memory_ends_and_leaves_nothing_behind(void **state) {
  (void)state;
  struct pwi_campaign_config config = config_of(2);
  uint64_t live = pwi_memory_counts().live, before = pwi_memory_counts().allocations;
  config.calls = 15;
  assert_false(run(&config).has_failed);
  uint64_t all = pwi_memory_counts().allocations - before;
  for (uint64_t n = 0; n < all; n += n < 60 ? 1 : all / 100 + 1) {
    pwi_memory_fail_after(n);
    run(&config);
    assert_true(pwi_memory_fail_cancel());
    assert_int_equal(pwi_memory_counts().live, live);
  }
}

/* --- many campaigns ------------------------------------------------------------------------------------- */

static uint64_t told;

static bool tell(void *context, uint64_t done, size_t failed) {
  assert_ptr_equal(context, &told);
  assert_int_equal(failed, 0);
  assert_true(done >= told);
  told = done;
  return true;
}

static bool has_enough(void *context, uint64_t done, size_t failed) {
  (void)context, (void)failed;
  return done < 2;
}

static void test_many_seeds_in_several_threads_give_what_they_give_in_one(void **state) {
  (void)state;
  static struct pwi_campaigns_result one, several;
  struct pwi_campaigns_config config = {
      .first = 5, .last = 24, .replicas = 0, .jobs = 1, .progress = tell, .context = &told};
  assert_int_equal(pwi_campaigns_run(&config, &one), PAWL_OK);
  config.jobs = 3;
  told = 0;
  assert_int_equal(pwi_campaigns_run(&config, &several), PAWL_OK);
  assert_int_equal(one.seeds, 20);
  assert_int_equal(several.seeds, 20);
  assert_int_equal(told, 20);
  assert_memory_equal(&one.figures, &several.figures, sizeof one.figures);
  config.last = 4;
  assert_int_equal(pwi_campaigns_run(&config, &one), PAWL_INVALID);
}

static void test_a_caller_who_has_enough_gets_what_was_run(void **state) {
  (void)state;
  static struct pwi_campaigns_result result;
  struct pwi_campaigns_config config = {.first = 5, .last = UINT64_MAX, .jobs = 2, .progress = has_enough};
  assert_int_equal(pwi_campaigns_run(&config, &result), PAWL_OK);
  assert_true(result.seeds >= 2);
  assert_true(result.figures.pushes > 0);
  assert_int_equal(result.failure_count, 0);
}

static void test_servers_leave_while_managers_take_turns(void **state) {
  (void)state;
  static struct pwi_campaigns_result result;
  struct pwi_campaigns_config config = {.first = 1, .last = 12, .replicas = 1, .managers = 2, .jobs = 1};
  assert_int_equal(pwi_campaigns_run(&config, &result), PAWL_OK);
  assert_int_equal(result.failure_count, 0);
  assert_true(result.figures.leaves > 0 && result.figures.takeovers > 0);
  struct pwi_campaign_config several = config_of(1), one = several;
  pwi_campaign_set_managers(3, &several);
  assert_int_equal(several.managers, 3);
  pwi_campaign_set_managers(0, &several);
  assert_int_equal(several.managers, 3);
  pwi_campaign_set_managers(1, &one);
  assert_int_equal(one.managers, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_seed_draws_the_same_campaign_each_time_and_others_draw_others),
      cmocka_unit_test(test_there_are_enough_processes_for_the_replicas_that_were_asked_for),
      cmocka_unit_test(test_a_campaign_is_described_on_one_line),
      cmocka_unit_test(test_no_fault_is_drawn_without_replicas_or_before_there_are_arcs),
      cmocka_unit_test(test_one_of_two_members_may_be_lost_and_no_other_before_it_is_replaced),
      cmocka_unit_test(test_two_of_three_may_be_lost_but_no_more_than_the_view_accounts_for),
      cmocka_unit_test(test_only_injected_faults_explain_a_lost_copy),
      cmocka_unit_test(test_only_injected_faults_explain_errors),
      cmocka_unit_test(test_an_error_of_a_server_fails_the_run),
      cmocka_unit_test(test_only_faults_between_client_and_manager_explain_its_retirement),
      cmocka_unit_test(test_only_faults_explain_an_order_that_failed),
      cmocka_unit_test(test_a_server_that_dies_without_a_replica_is_missed),
      cmocka_unit_test(test_servers_meet_faults_of_all_kinds_and_the_run_ends),
      cmocka_unit_test(test_a_journal_must_have_every_field_of_durable_records),
      cmocka_unit_test(test_a_snapshot_must_have_every_field_of_durable_records),
      cmocka_unit_test(test_a_journal_may_have_a_record_that_was_not_confirmed),
      cmocka_unit_test(test_a_campaign_without_memory_ends_and_leaves_nothing_behind),
      cmocka_unit_test(test_many_seeds_in_several_threads_give_what_they_give_in_one),
      cmocka_unit_test(test_a_caller_who_has_enough_gets_what_was_run),
      cmocka_unit_test(test_servers_leave_while_managers_take_turns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
