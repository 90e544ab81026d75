/* Links, lanes and messages in the simulator: the promises of net.h, and the freedom that it leaves. */
#include "base/memory.h"
#include "base/testing.h"
#include "sim/puppet.h"
#include "sim/sim.h"

#define MS PWI_SIM_MILLISECOND

static struct pwi_sim *sim;
static struct puppet a, b;

static void begin_world(const struct pwi_sim_config *config) {
  memset(&a, 0, sizeof a);
  memset(&b, 0, sizeof b);
  assert_int_equal(pwi_sim_create(config, &sim), PAWL_OK);
  assert_int_equal(puppet_start(&a, sim, "a", NULL), PAWL_OK);
  assert_int_equal(puppet_start(&b, sim, "b", NULL), PAWL_OK);
}

static void begin_seed(uint64_t seed) {
  struct pwi_sim_config config;
  pwi_sim_config_init(&config);
  config.seed = seed;
  begin_world(&config);
}

static void finish_world(void) {
  assert_null(pwi_sim_failure(sim));
  pwi_sim_destroy(sim);
}

static void run_for(int64_t duration) {
  assert_int_equal(pwi_sim_run_until(sim, pwi_sim_now(sim) + duration), PAWL_OK);
}

static struct pwi_link connect_them(void) {
  struct pwi_link link;
  assert_int_equal(pwi_net_connect(a.net, "b:7000", &link), PAWL_OK);
  run_for(50 * MS);
  assert_int_equal(a.link.id, link.id);
  return link;
}

static pawl_status last_down(const struct puppet *puppet) {
  size_t count = puppet_count(puppet, NOTE_DOWN);
  assert_int_not_equal(count, 0);
  return puppet_find(puppet, NOTE_DOWN, count - 1)->status;
}

static void test_a_link_comes_up_once_on_both_sides(void **state) {
  (void)state;
  begin_seed(1);
  connect_them();
  assert_int_equal(puppet_count(&a, NOTE_UP), 1);
  assert_int_equal(puppet_count(&b, NOTE_UP), 1);
  assert_false(puppet_find(&a, NOTE_UP, 0)->accepted);
  assert_true(puppet_find(&b, NOTE_UP, 0)->accepted);
  finish_world();
}

static void greet_in_words(struct puppet *puppet, struct pwi_link link) {
  (void)link;
  for (uint64_t i = 0; i < 10; i++)
    assert_int_equal(puppet_send(puppet, i % 2 ? PWI_LANE_DATA : PWI_LANE_LINK, i, "x", 1, 0), PAWL_OK);
}

static void test_a_message_sent_at_once_by_the_accepting_side_arrives_after_link_up(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 30; seed++) {
    begin_seed(seed);
    b.on_up = greet_in_words;
    connect_them();
    run_for(50 * MS);
    assert_int_equal(a.notes[0].kind, NOTE_UP);
    assert_int_equal(puppet_count(&a, NOTE_MESSAGE), 10);
    finish_world();
  }
}

/* The greeting waits at the cut; nothing may overtake it while the path is being mended. */
static void test_nothing_overtakes_a_greeting_that_was_held_up(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 50; seed++) {
    begin_seed(seed);
    struct pwi_link link;
    pwi_sim_cut(sim, b.node, a.node);
    assert_int_equal(pwi_net_connect(a.net, "b:7000", &link), PAWL_OK);
    run_for(10 * MS);
    assert_int_equal(puppet_count(&b, NOTE_UP), 1);
    pwi_sim_mend(sim, b.node, a.node);
    greet_in_words(&b, b.link);
    run_for(50 * MS);
    if (puppet_find(&a, NOTE_DOWN, 0)) assert_int_equal(puppet_find(&a, NOTE_DOWN, 0)->status, PAWL_LINK_UNREACHABLE);
    if (!puppet_find(&a, NOTE_DOWN, 0)) assert_int_equal(puppet_count(&a, NOTE_MESSAGE), 10);
    finish_world();
  }
}

static void test_a_refusal_by_the_accepting_side_reaches_the_other(void **state) {
  (void)state;
  begin_seed(1);
  b.answer_to_greeting = PAWL_FORBIDDEN;
  struct pwi_link link;
  assert_int_equal(pwi_net_connect(a.net, "b:7000", &link), PAWL_OK);
  run_for(50 * MS);
  assert_int_equal(a.note_count, 1);
  assert_int_equal(last_down(&a), PAWL_FORBIDDEN);
  assert_int_equal(b.note_count, 0);
  finish_world();
}

static void test_a_refusal_by_the_connecting_side_reaches_the_other(void **state) {
  (void)state;
  begin_seed(1);
  a.answer_to_greeting = PAWL_LINK_VERSION;
  struct pwi_link link;
  assert_int_equal(pwi_net_connect(a.net, "b:7000", &link), PAWL_OK);
  run_for(50 * MS);
  assert_int_equal(puppet_count(&a, NOTE_UP), 0);
  assert_int_equal(last_down(&a), PAWL_LINK_VERSION);
  assert_int_equal(puppet_count(&b, NOTE_UP), 1);
  assert_int_equal(last_down(&b), PAWL_LINK_VERSION);
  finish_world();
}

static void test_a_connection_without_a_listener_is_refused(void **state) {
  (void)state;
  begin_seed(1);
  struct pwi_link link;
  assert_int_equal(pwi_net_connect(a.net, "nowhere:1", &link), PAWL_OK);
  run_for(50 * MS);
  assert_int_equal(last_down(&a), PAWL_LINK_REFUSED);
  pwi_sim_kill(sim, b.node);
  assert_int_equal(pwi_net_connect(a.net, "b:7000", &link), PAWL_OK);
  run_for(50 * MS);
  assert_int_equal(puppet_count(&a, NOTE_DOWN), 2);
  assert_int_equal(last_down(&a), PAWL_LINK_REFUSED);
  assert_int_equal(pwi_net_connect(a.net, "not an address", &link), PAWL_INVALID);
  finish_world();
}

static void test_each_lane_keeps_its_order_and_lanes_overtake_each_other(void **state) {
  (void)state;
  size_t overtaken = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin_seed(seed);
    connect_them();
    for (uint64_t i = 0; i < 100; i++)
      assert_int_equal(puppet_send(&a, i % 2 ? PWI_LANE_DATA : PWI_LANE_LINK, i, &i, sizeof i, 0), PAWL_OK);
    run_for(100 * MS);
    assert_int_equal(puppet_count(&b, NOTE_MESSAGE), 100);
    uint64_t next[2] = {0, 1};
    for (size_t i = 0; i < 100; i++) {
      const struct note *note = puppet_find(&b, NOTE_MESSAGE, i);
      assert_int_equal(note->value, next[note->lane]);
      assert_int_equal(note->status, PAWL_OK);
      next[note->lane] += 2;
      overtaken += note->value != i;
    }
    finish_world();
  }
  assert_true(overtaken > 0);
}

static void fill(uint8_t *bytes, size_t size, unsigned salt) {
  for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(i * 31 + i / 251 + salt);
}

static uint8_t block[PUPPET_BODY];

static void test_bodies_arrive_intact_however_they_are_wanted(void **state) {
  (void)state;
  const enum pwi_receive_how hows[] = {PWI_RECEIVE_PIECES, PWI_RECEIVE_WHOLE, PWI_RECEIVE_INTO, PWI_RECEIVE_SPLIT,
                                       PWI_RECEIVE_DROP};
  const size_t sizes[] = {0, 1, 63, 64, 65, 256, 257, 4096, 4097, 100000, PUPPET_BODY - 1};
  size_t pieces = 0;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    begin_seed(seed);
    connect_them();
    for (size_t h = 0; h < sizeof hows / sizeof *hows; h++) {
      for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        b.note_count = 0;
        b.how = hows[h];
        b.prefix = (size_t)(seed * seed * 61 - 61);
        fill(block, sizes[s], (unsigned)(h + s));
        memset(b.body, 0, sizeof b.body);
        assert_int_equal(puppet_send(&a, PWI_LANE_DATA, s, block + s % 2, sizes[s], 1), PAWL_OK);
        run_for(200 * MS);
        const struct note *note = puppet_find(&b, NOTE_MESSAGE, 0);
        assert_true(note->ended && !note->badly_cut);
        assert_int_equal(note->status, PAWL_OK);
        if (hows[h] != PWI_RECEIVE_DROP) assert_memory_equal(b.body, block + s % 2, sizes[s]);
        if (hows[h] == PWI_RECEIVE_WHOLE) assert_int_equal(note->pieces, 1);
        if (hows[h] == PWI_RECEIVE_INTO || hows[h] == PWI_RECEIVE_SPLIT) assert_int_equal(note->pieces, 0);
        if (hows[h] == PWI_RECEIVE_PIECES && note->pieces > 1) pieces++;
      }
    }
    finish_world();
  }
  assert_true(pieces > 0);
}

static void test_nonsense_takes_the_link_down_on_both_sides(void **state) {
  (void)state;
  begin_seed(3);
  connect_them();
  b.how = PWI_RECEIVE_REFUSE;
  assert_int_equal(puppet_send(&a, PWI_LANE_LINK, 1, "x", 1, 0), PAWL_OK);
  run_for(50 * MS);
  assert_int_equal(puppet_find(&b, NOTE_MESSAGE, 0)->status, PAWL_LINK_PROTOCOL);
  assert_int_equal(last_down(&b), PAWL_LINK_PROTOCOL);
  assert_int_equal(last_down(&a), PAWL_LINK_PROTOCOL);
  finish_world();
}

static void test_a_full_queue_refuses_and_says_when_there_is_room(void **state) {
  (void)state;
  struct pwi_sim_config config;
  pwi_sim_config_init(&config);
  config.limits.queue_count = 10;
  begin_world(&config);
  connect_them();
  for (uint64_t i = 0; i < 10; i++) assert_int_equal(puppet_send(&a, PWI_LANE_LINK, i, "x", 1, 0), PAWL_OK);
  assert_int_equal(puppet_send(&a, PWI_LANE_LINK, 10, "x", 1, 0), PAWL_QUEUE_FULL);
  assert_int_equal(puppet_count(&a, NOTE_WRITABLE), 0);
  run_for(100 * MS);
  assert_int_equal(puppet_count(&a, NOTE_WRITABLE), 1);
  assert_int_equal(puppet_count(&b, NOTE_MESSAGE), 10);
  assert_int_equal(puppet_send(&a, PWI_LANE_LINK, 11, "x", 1, 0), PAWL_OK);
  run_for(100 * MS);
  assert_int_equal(puppet_count(&a, NOTE_WRITABLE), 1);
  finish_world();
}

static void test_closing_sends_queued_messages_first(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    begin_seed(seed);
    struct pwi_link link = connect_them();
    for (uint64_t i = 0; i < 50; i++)
      assert_int_equal(puppet_send(&a, i % 2 ? PWI_LANE_DATA : PWI_LANE_LINK, i, block, 9000, i + 1), PAWL_OK);
    pwi_net_close(a.net, link, PAWL_OK);
    assert_int_equal(puppet_send(&a, PWI_LANE_LINK, 51, "x", 1, 0), PAWL_NOT_FOUND);
    run_for(900 * MS);
    assert_int_equal(puppet_count(&b, NOTE_MESSAGE), 50);
    assert_int_equal(puppet_count(&a, NOTE_DONE), 50);
    for (size_t i = 0; i < 50; i++) assert_int_equal(puppet_find(&a, NOTE_DONE, i)->status, PAWL_OK);
    assert_int_equal(last_down(&a), PAWL_OK);
    assert_int_equal(last_down(&b), PAWL_LINK_CLOSED);
    assert_int_equal(puppet_count(&a, NOTE_DOWN) + puppet_count(&b, NOTE_DOWN), 2);
    finish_world();
  }
}

/* Every operation has ended when link_down comes, and nothing follows it. */
static void check_notes(const struct puppet *puppet) {
  for (size_t i = 0; i < puppet->note_count; i++) {
    const struct note *note = &puppet->notes[i];
    if (note->kind == NOTE_MESSAGE) assert_true(note->ended && !note->badly_cut);
    if (note->kind != NOTE_DOWN) continue;
    for (size_t j = i + 1; j < puppet->note_count; j++) assert_int_not_equal(puppet->notes[j].link, note->link);
  }
}

static void test_a_kill_resets_the_peer_and_loses_only_the_last_of_each_lane(void **state) {
  (void)state;
  size_t arrived = 0, lost = 0, halves = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    begin_seed(seed);
    connect_them();
    for (uint64_t i = 0; i < 40; i++)
      assert_int_equal(puppet_send(&a, i % 2 ? PWI_LANE_DATA : PWI_LANE_LINK, i, block, 3000 + 100 * i, i + 1),
                       PAWL_OK);
    run_for((int64_t)seed * 10 * PWI_SIM_MICROSECOND);
    pwi_sim_kill(sim, a.node);
    assert_int_equal(a.halts, 1);
    run_for(100 * MS);
    assert_int_equal(last_down(&b), PAWL_LINK_RESET);
    check_notes(&b);
    uint64_t next[2] = {0, 1};
    for (size_t i = 0; i < puppet_count(&b, NOTE_MESSAGE); i++) {
      const struct note *note = puppet_find(&b, NOTE_MESSAGE, i);
      assert_int_equal(note->value, next[note->lane]);
      next[note->lane] += 2;
      halves += note->status != PAWL_OK;
    }
    arrived += puppet_count(&b, NOTE_MESSAGE);
    lost += 40 - puppet_count(&b, NOTE_MESSAGE);
    finish_world();
  }
  assert_true(arrived > 0 && lost > 0 && halves > 0);
}

static void test_a_broken_link_ends_on_both_sides_and_can_be_made_again(void **state) {
  (void)state;
  begin_seed(5);
  connect_them();
  assert_int_equal(puppet_send(&a, PWI_LANE_DATA, 1, block, 100000, 7), PAWL_OK);
  pwi_sim_break(sim, a.node, b.node);
  run_for(50 * MS);
  assert_int_equal(last_down(&a), PAWL_LINK_RESET);
  assert_int_equal(last_down(&b), PAWL_LINK_RESET);
  assert_int_equal(puppet_count(&a, NOTE_DONE), 1);
  assert_int_equal(puppet_send(&a, PWI_LANE_LINK, 2, "x", 1, 0), PAWL_NOT_FOUND);
  struct pwi_link link = connect_them();
  assert_int_not_equal(link.id, puppet_find(&a, NOTE_DOWN, 0)->link);
  assert_int_equal(puppet_send(&a, PWI_LANE_LINK, 3, "x", 1, 0), PAWL_OK);
  run_for(50 * MS);
  assert_int_equal(puppet_find(&b, NOTE_MESSAGE, puppet_count(&b, NOTE_MESSAGE) - 1)->value, 3);
  check_notes(&a);
  check_notes(&b);
  finish_world();
}

static void test_a_muted_link_dies_of_silence_and_delivers_nothing(void **state) {
  (void)state;
  begin_seed(5);
  connect_them();
  pwi_sim_mute(sim, a.node, b.node);
  int64_t muted = pwi_sim_now(sim);
  assert_int_equal(puppet_send(&a, PWI_LANE_LINK, 1, "x", 1, 0), PAWL_OK);
  run_for(150 * MS);
  assert_int_equal(puppet_count(&a, NOTE_DOWN) + puppet_count(&b, NOTE_DOWN), 0);
  run_for(150 * MS);
  assert_int_equal(last_down(&a), PAWL_LINK_SILENT);
  assert_int_equal(last_down(&b), PAWL_LINK_SILENT);
  assert_true(puppet_find(&a, NOTE_DOWN, 0)->time >= muted + 200 * MS);
  assert_int_equal(puppet_count(&b, NOTE_MESSAGE), 0);
  connect_them();
  finish_world();
}

static void test_a_short_cut_delays_and_loses_nothing(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    begin_seed(seed);
    connect_them();
    pwi_sim_cut(sim, a.node, b.node);
    assert_true(pwi_sim_is_cut(sim, a.node, b.node));
    assert_false(pwi_sim_is_cut(sim, b.node, a.node));
    for (uint64_t i = 0; i < 20; i++) assert_int_equal(puppet_send(&a, PWI_LANE_LINK, i, block, 500, i + 1), PAWL_OK);
    run_for(100 * MS);
    assert_int_equal(puppet_count(&b, NOTE_MESSAGE), 0);
    pwi_sim_mend(sim, a.node, b.node);
    for (uint64_t i = 20; i < 40; i++) assert_int_equal(puppet_send(&a, PWI_LANE_LINK, i, block, 500, i + 1), PAWL_OK);
    run_for(500 * MS);
    assert_int_equal(puppet_count(&b, NOTE_MESSAGE), 40);
    for (size_t i = 0; i < 40; i++) assert_int_equal(puppet_find(&b, NOTE_MESSAGE, i)->value, i);
    assert_int_equal(puppet_count(&a, NOTE_DOWN) + puppet_count(&b, NOTE_DOWN), 0);
    finish_world();
  }
}

/* The side that hears nothing gives up. The other direction is open, so its reset arrives. */
static void test_a_one_way_cut_is_silence_on_one_side_and_a_reset_on_the_other(void **state) {
  (void)state;
  begin_seed(5);
  connect_them();
  pwi_sim_cut(sim, a.node, PWI_SIM_ALL);
  b.how = PWI_RECEIVE_DROP;
  puppet_send(&b, PWI_LANE_LINK, 9, "x", 1, 0);
  run_for(100 * MS);
  assert_int_equal(puppet_count(&a, NOTE_MESSAGE), 1);
  run_for(300 * MS);
  assert_int_equal(last_down(&b), PAWL_LINK_SILENT);
  assert_int_equal(last_down(&a), PAWL_LINK_RESET);
  finish_world();
}

static void test_connecting_across_a_cut_fails_after_a_while(void **state) {
  (void)state;
  size_t unreachable = 0, timed_out = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin_seed(seed);
    pwi_sim_cut(sim, a.node, b.node);
    struct pwi_link link;
    assert_int_equal(pwi_net_connect(a.net, "b:7000", &link), PAWL_OK);
    run_for(6000 * MS);
    assert_int_equal(puppet_count(&a, NOTE_DOWN), 1);
    unreachable += last_down(&a) == PAWL_LINK_UNREACHABLE;
    timed_out += last_down(&a) == PAWL_TIMED_OUT;
    pwi_sim_mend(sim, PWI_SIM_ALL, PWI_SIM_ALL);
    connect_them();
    finish_world();
  }
  assert_true(unreachable > 0 && timed_out > 0);
  assert_int_equal(unreachable + timed_out, 20);
}

static void test_a_paused_node_is_silent_and_learns_of_it_when_it_wakes(void **state) {
  (void)state;
  size_t delivered = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin_seed(seed);
    connect_them();
    pwi_sim_pause(sim, b.node, 2000 * MS);
    for (uint64_t i = 0; i < 5; i++) assert_int_equal(puppet_send(&a, PWI_LANE_LINK, i, "x", 1, 0), PAWL_OK);
    run_for(1900 * MS);
    assert_int_equal(last_down(&a), PAWL_LINK_SILENT);
    assert_int_equal(b.note_count, 1);
    run_for(200 * MS);
    assert_int_equal(last_down(&b), PAWL_LINK_RESET);
    delivered += puppet_count(&b, NOTE_MESSAGE);
    check_notes(&b);
    connect_them();
    finish_world();
  }
  assert_true(delivered > 5 && delivered <= 100);
}

static void test_a_short_pause_breaks_no_link(void **state) {
  (void)state;
  begin_seed(5);
  connect_them();
  pwi_sim_pause(sim, b.node, PWI_NET_NEVER);
  assert_int_equal(puppet_send(&a, PWI_LANE_LINK, 4, "x", 1, 0), PAWL_OK);
  run_for(150 * MS);
  assert_int_equal(puppet_count(&b, NOTE_MESSAGE), 0);
  pwi_sim_resume(sim, b.node);
  run_for(1000 * MS);
  assert_int_equal(puppet_count(&b, NOTE_MESSAGE), 1);
  assert_int_equal(puppet_count(&a, NOTE_DOWN) + puppet_count(&b, NOTE_DOWN), 0);
  finish_world();
}

/* Both nodes are stopped, and the one that wakes first hears nothing from the other: it must give it time. */
static void test_a_node_that_was_stopped_itself_does_not_judge_at_once(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    begin_seed(seed);
    connect_them();
    pwi_sim_pause(sim, a.node, 400 * MS);
    pwi_sim_pause(sim, b.node, 420 * MS);
    run_for(2000 * MS);
    assert_int_equal(puppet_count(&a, NOTE_DOWN) + puppet_count(&b, NOTE_DOWN), 0);
    finish_world();
  }
}

static void test_a_slow_node_takes_its_time(void **state) {
  (void)state;
  begin_seed(5);
  connect_them();
  pwi_sim_slow(sim, b.node, 100); /* 2 ms per callback */
  for (uint64_t i = 0; i < 50; i++) assert_int_equal(puppet_send(&a, PWI_LANE_LINK, i, "x", 1, 0), PAWL_OK);
  run_for(1000 * MS);
  assert_int_equal(puppet_count(&b, NOTE_MESSAGE), 50);
  for (size_t i = 1; i < 50; i++)
    assert_true(puppet_find(&b, NOTE_MESSAGE, i)->time >= puppet_find(&b, NOTE_MESSAGE, i - 1)->time + 2 * MS);
  finish_world();
}

/* --- memory on sending ---------------------------------------------------------------------------------- */

static const char *run_and_scribble(uint64_t seed, bool after_done) {
  static char failure[256];
  begin_seed(seed);
  connect_them();
  memset(block, 1, 50000);
  assert_int_equal(puppet_send(&a, PWI_LANE_DATA, 1, block, 50000, 5), PAWL_OK);
  for (int i = 0; i < 100; i++) {
    if (!after_done || puppet_count(&a, NOTE_DONE) > 0) memset(block, 2, 50000);
    if (pwi_sim_run_until(sim, pwi_sim_now(sim) + MS)) break;
  }
  snprintf(failure, sizeof failure, "%s", pwi_sim_failure(sim) ? pwi_sim_failure(sim) : "");
  pwi_sim_destroy(sim);
  return failure;
}

static void test_a_role_that_scribbles_on_a_borrowed_body_is_caught(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    assert_non_null(strstr(run_and_scribble(seed, false), "body changed before done"));
    assert_string_equal(run_and_scribble(seed, true), "");
  }
}

static uint8_t *region_bytes;

static void scribble_on_failure(struct puppet *puppet, uint64_t cookie, pawl_status status) {
  (void)puppet, (void)cookie;
  if (status) memset(region_bytes, 3, 100000);
}

static void test_a_region_must_not_change_after_a_failed_send(void **state) {
  (void)state;
  size_t caught = 0;
  for (uint64_t seed = 1; seed <= 200 && caught == 0; seed++) {
    struct pwi_sim_config config;
    pwi_sim_config_init(&config);
    config.seed = seed;
    config.plane_chance = 1;
    config.plane = (struct pwi_sim_delay){MS, MS, MS};
    begin_world(&config);
    connect_them();
    struct pwi_region *region;
    assert_int_equal(pwi_net_region_open(a.net, 100000, &region), PAWL_OK);
    region_bytes = pwi_net_region_memory(region);
    a.on_done = scribble_on_failure;
    assert_int_equal(puppet_send(&a, PWI_LANE_DATA, 1, region_bytes, 100000, 5), PAWL_OK);
    run_for((int64_t)(seed % 8) * MS / 2);
    pwi_sim_break(sim, a.node, b.node);
    if (pwi_sim_run_until(sim, pwi_sim_now(sim) + 100 * MS) == PAWL_CORRUPT)
      caught += strstr(pwi_sim_failure(sim), "region changed after a failed send") != NULL;
    pwi_sim_destroy(sim);
  }
  assert_true(caught > 0);
}

static void test_closing_a_region_cancels_sends_from_it(void **state) {
  (void)state;
  begin_seed(4);
  connect_them();
  struct pwi_region *region;
  assert_int_equal(pwi_net_region_open(a.net, 100000, &region), PAWL_OK);
  assert_int_equal(puppet_send(&a, PWI_LANE_DATA, 1, pwi_net_region_memory(region), 100000, 5), PAWL_OK);
  pwi_net_region_close(a.net, region);
  assert_int_equal(puppet_count(&a, NOTE_DONE), 0);
  run_for(100 * MS);
  assert_int_equal(puppet_find(&a, NOTE_DONE, 0)->status, PAWL_CANCELLED);
  assert_int_equal(last_down(&a), PAWL_CANCELLED);
  assert_int_equal(last_down(&b), PAWL_LINK_RESET);
  finish_world();
}

static void reconnect(struct puppet *puppet, struct pwi_link link) {
  struct pwi_link fresh;
  (void)link;
  assert_int_equal(pwi_net_connect(puppet->net, "b:7000", &fresh), PAWL_OK);
}

static void test_a_role_may_connect_again_from_inside_link_down(void **state) {
  (void)state;
  begin_seed(4);
  connect_them();
  a.on_down = reconnect;
  for (int i = 0; i < 20; i++) {
    puppet_send(&a, PWI_LANE_DATA, 1, block, 20000, 3);
    pwi_sim_break(sim, a.node, b.node);
    run_for(100 * MS);
  }
  assert_int_equal(puppet_count(&a, NOTE_UP), puppet_count(&a, NOTE_DOWN) + 1);
  assert_int_equal(puppet_count(&b, NOTE_UP), puppet_count(&b, NOTE_DOWN) + 1);
  check_notes(&a);
  check_notes(&b);
  finish_world();
}

/* One end is down and waits for the other one when the node is killed: then both leave together. */
static void test_a_node_with_a_link_to_itself_can_be_killed_at_any_time(void **state) {
  (void)state;
  for (int64_t moment = 0; moment < 60; moment++) {
    begin_seed(1);
    struct pwi_link link;
    assert_int_equal(pwi_net_connect(a.net, "a:7000", &link), PAWL_OK);
    run_for(50 * MS);
    for (size_t i = 0; i < 2; i++) { /* one of the two ends closes the link */
      const struct note *up = puppet_find(&a, NOTE_UP, i);
      if (up->accepted == (moment % 2 == 0)) link.id = up->link;
    }
    connect_them();
    pwi_net_close(a.net, link, PAWL_OK);
    run_for(moment * MS / 50);
    pwi_sim_kill(sim, a.node);
    run_for(50 * MS);
    assert_int_equal(last_down(&b), PAWL_LINK_RESET);
    finish_world();
  }
}

static void test_a_node_can_talk_to_itself(void **state) {
  (void)state;
  begin_seed(4);
  struct pwi_link link;
  assert_int_equal(pwi_net_connect(a.net, "a:7000", &link), PAWL_OK);
  run_for(50 * MS);
  assert_int_equal(puppet_count(&a, NOTE_UP), 2);
  assert_int_equal(puppet_send(&a, PWI_LANE_LINK, 1, block, 9000, 1), PAWL_OK);
  run_for(50 * MS);
  assert_int_equal(puppet_count(&a, NOTE_MESSAGE), 1);
  pwi_sim_kill(sim, a.node);
  finish_world();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_link_comes_up_once_on_both_sides),
      cmocka_unit_test(test_a_message_sent_at_once_by_the_accepting_side_arrives_after_link_up),
      cmocka_unit_test(test_nothing_overtakes_a_greeting_that_was_held_up),
      cmocka_unit_test(test_a_refusal_by_the_accepting_side_reaches_the_other),
      cmocka_unit_test(test_a_refusal_by_the_connecting_side_reaches_the_other),
      cmocka_unit_test(test_a_connection_without_a_listener_is_refused),
      cmocka_unit_test(test_each_lane_keeps_its_order_and_lanes_overtake_each_other),
      cmocka_unit_test(test_bodies_arrive_intact_however_they_are_wanted),
      cmocka_unit_test(test_nonsense_takes_the_link_down_on_both_sides),
      cmocka_unit_test(test_a_full_queue_refuses_and_says_when_there_is_room),
      cmocka_unit_test(test_closing_sends_queued_messages_first),
      cmocka_unit_test(test_a_kill_resets_the_peer_and_loses_only_the_last_of_each_lane),
      cmocka_unit_test(test_a_broken_link_ends_on_both_sides_and_can_be_made_again),
      cmocka_unit_test(test_a_muted_link_dies_of_silence_and_delivers_nothing),
      cmocka_unit_test(test_a_short_cut_delays_and_loses_nothing),
      cmocka_unit_test(test_a_one_way_cut_is_silence_on_one_side_and_a_reset_on_the_other),
      cmocka_unit_test(test_connecting_across_a_cut_fails_after_a_while),
      cmocka_unit_test(test_a_paused_node_is_silent_and_learns_of_it_when_it_wakes),
      cmocka_unit_test(test_a_short_pause_breaks_no_link),
      cmocka_unit_test(test_a_node_that_was_stopped_itself_does_not_judge_at_once),
      cmocka_unit_test(test_a_slow_node_takes_its_time),
      cmocka_unit_test(test_a_role_that_scribbles_on_a_borrowed_body_is_caught),
      cmocka_unit_test(test_a_region_must_not_change_after_a_failed_send),
      cmocka_unit_test(test_closing_a_region_cancels_sends_from_it),
      cmocka_unit_test(test_a_role_may_connect_again_from_inside_link_down),
      cmocka_unit_test(test_a_node_can_talk_to_itself),
      cmocka_unit_test(test_a_node_with_a_link_to_itself_can_be_killed_at_any_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
