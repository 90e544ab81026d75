

#include "base/testing.h"
#include "host/run/pages.h"

#define NOW INT64_C(1000000000000)

static struct pwi_run_shard_page well(void) {
  return (struct pwi_run_shard_page){.state = {.node = 3, .joined = true, .arcs = 4, .trouble = PAWL_OK},
                                     .report = {.memory_max = UINT64_MAX},
                                     .at_ns = NOW};
}

static void assert_line(const struct pwi_text *text, const char *line) {
  char wanted[256];
  snprintf(wanted, sizeof wanted, "\n%s\n", line);
  if (!strstr(pwi_text_view(text), wanted)) fail_msg("'%s' is not in:\n%s", line, pwi_text_view(text));
}

/* Every family begins once: a scraper refuses a page with a duplicate family. */
static void assert_families_are_whole(const struct pwi_text *text) {
  char begun[128][64];
  size_t count = 0;
  for (const char *at = pwi_text_view(text); (at = strstr(at, "# TYPE ")); at++) {
    assert_int_equal(sscanf(at, "# TYPE %63s", begun[count]), 1);
    for (size_t i = 0; i < count; i++) assert_string_not_equal(begun[i], begun[count]);
    assert_true(++count < 128);
  }
  assert_true(count > 10);
}

static void test_a_manager_shows_its_figures(void **state) {
  (void)state;
  struct pwi_text text = {0};
  struct pwi_run_manager_page page = {.figures = {.epoch = 7,
                                                  .nodes_up = 3,
                                                  .nodes_down = 1,
                                                  .vectors = 2,
                                                  .moves_done = 5,
                                                  .replicas = 2,
                                                  .under_replicated = 6,
                                                  .filling = 4,
                                                  .waiting = 3,
                                                  .stopped = PAWL_NO_SPACE,
                                                  .ready = true},
                                      .counts = {.links_up = 9},
                                      .at_ns = NOW};
  pwi_run_manager_metrics(&page, &text);
  assert_int_equal(pwi_text_status(&text), PAWL_OK);
  assert_families_are_whole(&text);
  assert_line(&text, "pawl_epoch 7");
  assert_line(&text, "pawl_nodes{state=\"up\"} 3");
  assert_line(&text, "pawl_nodes{state=\"down\"} 1");
  assert_line(&text, "pawl_moves_done_total 5");
  assert_line(&text, "pawl_replicas 2");
  assert_line(&text, "pawl_arcs_under_replicated 6");
  assert_line(&text, "pawl_arcs_filling 4");
  assert_line(&text, "pawl_arcs_waiting 3");
  assert_line(&text, "pawl_ready 1");
  assert_line(&text, "pawl_stopped 1");
  assert_line(&text, "pawl_whole 0");
  assert_line(&text, "pawl_net_links_total 9");
  pwi_text_fini(&text);
}

static void test_a_manager_is_well_when_all_arcs_are_held(void **state) {
  (void)state;
  struct pwi_run_manager_page page = {.figures = {.ready = true, .arcs = 4}, .at_ns = NOW};
  struct pwi_text text = {0};
  assert_int_equal(pwi_run_manager_health(&page, NOW + 1, &text), 200);
  assert_string_equal(pwi_text_view(&text), "ok\n");
  assert_int_equal(pwi_run_manager_health(&page, NOW + PWI_RUN_STALE_NS + 1, &text), 503);
  page.figures.hollow = 2; /* other vectors are served */
  pwi_text_clear(&text);
  assert_int_equal(pwi_run_manager_health(&page, NOW, &text), 200);
  assert_non_null(strstr(pwi_text_view(&text), "for lack of memory: 2;"));
  page.figures.unlinked = 1;
  pwi_text_clear(&text);
  assert_int_equal(pwi_run_manager_health(&page, NOW, &text), 503);
  assert_non_null(strstr(pwi_text_view(&text), "have no link to the manager: arcs=1"));
  page.figures.unlinked = page.figures.hollow = 0;
  page.figures.ready = false;
  pwi_text_clear(&text);
  assert_int_equal(pwi_run_manager_health(&page, NOW, &text), 503);
  assert_non_null(strstr(pwi_text_view(&text), "no server that is up"));
  page.figures.arcs = 0;
  pwi_text_clear(&text);
  assert_int_equal(pwi_run_manager_health(&page, NOW, &text), 503);
  assert_non_null(strstr(pwi_text_view(&text), "no arcs are assigned"));
  page.figures.stopped = PAWL_CLUSTER_HISTORY;
  pwi_text_clear(&text);
  assert_int_equal(pwi_run_manager_health(&page, NOW, &text), 503);
  assert_non_null(strstr(pwi_text_view(&text), "its log is not the newest"));
  page.figures.stopped = PAWL_NO_SPACE;
  pwi_text_clear(&text);
  assert_int_equal(pwi_run_manager_health(&page, NOW, &text), 503);
  assert_non_null(strstr(pwi_text_view(&text), "its log failed: no space left"));
  pwi_text_fini(&text);
}

static void test_a_manager_with_a_store_says_whether_it_leads(void **state) {
  (void)state;
  struct pwi_run_manager_page page = {
      .figures = {.ready = true, .arcs = 4}, .at_ns = NOW, .has_store = true, .leads = true, .term = 3};
  struct pwi_text text = {0};
  assert_int_equal(pwi_run_manager_health(&page, NOW, &text), 200);
  pwi_run_manager_metrics(&page, &text);
  assert_families_are_whole(&text);
  assert_line(&text, "pawl_leads 1");
  assert_line(&text, "pawl_term 3");
  assert_line(&text, "pawl_store_reachable 1");
  page.leads = page.figures.ready = false;
  pwi_text_clear(&text);
  assert_int_equal(pwi_run_manager_health(&page, NOW, &text), 503);
  assert_string_equal(pwi_text_view(&text), "no manager leads\n");
  strcpy(page.leader, "tcp://h:1");
  pwi_text_clear(&text);
  assert_int_equal(pwi_run_manager_health(&page, NOW, &text), 200);
  assert_string_equal(pwi_text_view(&text), "ok: stands by, tcp://h:1 leads\n");
  page.trouble = PAWL_LINK_REFUSED;
  pwi_text_clear(&text);
  assert_int_equal(pwi_run_manager_health(&page, NOW, &text), 503);
  assert_non_null(strstr(pwi_text_view(&text), "cannot be reached: "));
  pwi_text_fini(&text);
}

static void test_a_server_shows_every_shard_and_vector(void **state) {
  (void)state;
  struct pwi_run_vector vector = {.name = "ads/w", .figures = {.rows = 11, .bytes = 44, .pushes = 2, .pulls = 3}};
  struct pwi_run_shard_page first = well(), second = well();
  second.state.node = 8;
  second.report.memory_max = 4096;
  second.report.gaps = 6;
  second.report.refused = 5;
  second.vectors = &vector;
  second.count = 1;
  const struct pwi_run_shard_page *const shards[] = {&first, &second};
  struct pwi_text text = {0};
  pwi_run_server_metrics(shards, 2, &text);
  assert_int_equal(pwi_text_status(&text), PAWL_OK);
  assert_families_are_whole(&text);
  assert_line(&text, "pawl_shard_node{shard=\"0\"} 3");
  assert_line(&text, "pawl_shard_node{shard=\"1\"} 8");
  assert_line(&text, "pawl_shard_gaps_total{shard=\"1\"} 6");
  assert_line(&text, "pawl_shard_refused_total{shard=\"1\"} 5");
  assert_line(&text, "pawl_shard_joined{shard=\"0\"} 1");
  assert_line(&text, "pawl_shard_bytes_max{shard=\"1\"} 4096");
  assert_null(strstr(pwi_text_view(&text), "pawl_shard_bytes_max{shard=\"0\"}")); /* it has no limit */
  assert_line(&text, "pawl_vector_rows{shard=\"1\",vector=\"ads/w\"} 11");
  assert_line(&text, "pawl_vector_pulls_total{shard=\"1\",vector=\"ads/w\"} 3");
  pwi_text_fini(&text);
}

static void test_one_shard_that_is_not_well_is_named(void **state) {
  (void)state;
  static const char *const words[] = {"hangs", "leaving", "not in the cluster: no process listens",
                                      "no link to the manager", "no arcs"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    struct pwi_run_shard_page first = well(), second = well();
    const struct pwi_run_shard_page *const shards[] = {&first, &second};
    struct pwi_text text = {0};
    assert_int_equal(pwi_run_server_health(shards, 2, NOW, &text), 200);
    assert_string_equal(pwi_text_view(&text), "ok\n");
    pwi_text_clear(&text);
    if (i == 0) second.at_ns = NOW - PWI_RUN_STALE_NS - 1;
    if (i == 1) second.is_leaving = true;
    if (i == 2) second.state = (struct pwi_server_state){.trouble = PAWL_LINK_REFUSED};
    if (i == 3) second.state.trouble = PAWL_LINK_RESET;
    if (i == 4) second.state.arcs = 0;
    assert_int_equal(pwi_run_server_health(shards, 2, NOW, &text), 503);
    assert_int_equal(strncmp(pwi_text_view(&text), "shard 1 ", 8), 0);
    assert_non_null(strstr(pwi_text_view(&text), words[i]));
    pwi_text_fini(&text);
  }
}

static struct pwi_run_relay_page good_relay(void) {
  return (struct pwi_run_relay_page){.figures = {.pushes = 40,
                                                 .bytes_in = 400,
                                                 .aggregates = 10,
                                                 .bytes_out = 100,
                                                 .applied = 9,
                                                 .refused = 2,
                                                 .pulls = 30,
                                                 .reads = 5,
                                                 .bytes_back = 300,
                                                 .bytes_read = 50,
                                                 .waiting_bytes = 7,
                                                 .kept_bytes = 8,
                                                 .children = 4,
                                                 .priority = 9,
                                                 .memory_max = 1000},
                                     .counts = {.links_up = 6},
                                     .tree = "near-4.fixed",
                                     .joined = true,
                                     .at_ns = NOW};
}

static void test_a_relay_shows_its_figures(void **state) {
  (void)state;
  static const char *const lines[] = {"pawl_relay_joined 1",
                                      "pawl_relay_linked 1",
                                      "pawl_relay_tree{tree=\"near-4.fixed\"} 1",
                                      "pawl_relay_children 4",
                                      "pawl_relay_priority 9",
                                      "pawl_relay_pushes_total 40",
                                      "pawl_relay_bytes_in_total 400",
                                      "pawl_relay_aggregates_total 10",
                                      "pawl_relay_bytes_out_total 100",
                                      "pawl_relay_applied_total 9",
                                      "pawl_relay_refused_total 2",
                                      "pawl_relay_pulls_total 30",
                                      "pawl_relay_reads_total 5",
                                      "pawl_relay_bytes_back_total 300",
                                      "pawl_relay_bytes_read_total 50",
                                      "pawl_relay_waiting_bytes 7",
                                      "pawl_relay_kept_bytes 8",
                                      "pawl_relay_bytes_max 1000",
                                      "pawl_net_links_total 6"};
  struct pwi_run_relay_page page = good_relay();
  struct pwi_text text = {0};
  pwi_run_relay_metrics(&page, &text);
  assert_int_equal(pwi_text_status(&text), PAWL_OK);
  assert_families_are_whole(&text);
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) assert_line(&text, lines[i]);
  pwi_text_fini(&text);
}

static void test_a_relay_is_well_in_its_cluster(void **state) {
  (void)state;
  static const char *const words[] = {"ok\n", "the relay hangs\n", "the relay is leaving\n",
                                      "the relay is not in the cluster: no process listens",
                                      "the relay has no link to the manager: "};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    struct pwi_run_relay_page page = good_relay();
    struct pwi_text text = {0};
    if (i == 1) page.at_ns = NOW - PWI_RUN_STALE_NS - 1;
    if (i == 2) page.is_leaving = true;
    if (i == 3) page.joined = false;
    if (i >= 3) page.trouble = PAWL_LINK_REFUSED;
    assert_int_equal(pwi_run_relay_health(&page, NOW, &text), i == 0 ? 200 : 503);
    assert_int_equal(strncmp(pwi_text_view(&text), words[i], strlen(words[i])), 0);
    pwi_text_fini(&text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_manager_shows_its_figures),
      cmocka_unit_test(test_a_manager_is_well_when_all_arcs_are_held),
      cmocka_unit_test(test_a_manager_with_a_store_says_whether_it_leads),
      cmocka_unit_test(test_a_server_shows_every_shard_and_vector),
      cmocka_unit_test(test_one_shard_that_is_not_well_is_named),
      cmocka_unit_test(test_a_relay_shows_its_figures),
      cmocka_unit_test(test_a_relay_is_well_in_its_cluster),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
