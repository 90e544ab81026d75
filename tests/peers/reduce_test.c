/* Reduce in the simulator: a manager, members, and no servers. Each test is a scene that the applications of
 * reducers.h check from the inside. */
#include <math.h>

#include "base/testing.h"
#include "reducers.h"

static struct team team;

static void begin(void) { memset(&team, 0, sizeof team); }

static void open_scene_with(uint64_t seed, uint32_t count, int64_t grace) {
  struct pwi_cluster_config config = {.seed = seed, .shared_hosts = seed % 2, .client_grace_ns = grace};
  team.count = count;
  if (team.iterations == 0) team.iterations = 30;
  if (team.compute_max == 0) team.compute_max = 3 * MS;
  if (getenv("PAWL_SEED") && strtoull(getenv("PAWL_SEED"), NULL, 10) == seed) cluster_print_log();
  team_open(&team, &config);
}

static void open_scene(uint64_t seed, uint32_t count) { open_scene_with(seed, count, 500 * MS); }

static void end(void) { team_close(&team); }

static bool is_before(void *context) {
  uint64_t until = *(uint64_t *)context;
  for (uint32_t i = 0; i < team.count; i++)
    if (team.reducers[i].client.client && !team.reducers[i].must_not_open && team.reducers[i].report.iteration < until)
      return true;
  return false;
}

static void run_until(uint64_t iteration) {
  pawl_status status = pwi_cluster_run_while(&team.cluster, is_before, &iteration, 60 * PWI_SIM_SECOND);
  if (status) team_print(&team);
  cluster_check(&team.cluster, status, "running");
}

/* --- modes and graphs ----------------------------------------------------------------------------------- */

static void test_every_input_of_an_iteration_is_used_once(void **state) {
  static const char *const graphs[] = {NULL, "complete", "ring", "star", "root"};
  (void)state;
  for (uint64_t seed = 1; seed <= 35; seed++) {
    begin();
    team.graph = graphs[seed % 5];
    open_scene(seed, 2 + (uint32_t)(seed % 7));
    team_run(&team, 60 * PWI_SIM_SECOND);
    assert_int_equal(team.checked, 30 * team.count);
    assert_int_equal(team.current, team.expected);
    for (uint32_t i = 0; i < team.count; i++) {
      const struct pwi_reduce *engine = team.reducers[i].engine;
      assert_int_equal(team.reducers[i].status, PAWL_OK);
      assert_int_equal(engine->bytes_sent, 30 * engine->outputs * pwi_reduce_slot_size(engine));
      assert_int_equal(team.reducers[i].adopted, 0);
    }
    end();
  }
}

static struct reduce_peer *peer_of(uint32_t of, uint32_t index) {
  return pwi_reduce_find(team.reducers[of].engine, pwi_reduce_self(team.reducers[index].engine));
}

static bool has_window(uint32_t of, uint32_t index) { return peer_of(of, index)->window.memory != NULL; }
static bool has_slot(uint32_t of, uint32_t index) { return peer_of(of, index)->slot != NULL; }

/* Neighbours on one host map one another's memory and have no slots. The other modes need slots. Odd seeds
 * have two hosts, on which members are placed in turns. */
static void test_members_on_one_host_have_no_slots(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 8; seed++) {
    begin();
    team.graph = "complete";
    team.lingers = true;
    if (seed % 4 == 3) team.mode = PAWL_REDUCE_BSP;
    open_scene(seed, 4);
    run_until(5);
    for (uint32_t i = 0; i < 4; i++)
      for (uint32_t k = 0; k < 4; k++) {
        bool is_direct = seed % 4 == 1 && i % 2 == k % 2;
        if (i == k) continue;
        assert_int_equal(has_window(i, k), is_direct);
        assert_int_equal(has_slot(i, k), !is_direct);
        assert_int_equal(peer_of(i, k)->is_reader, is_direct);
      }
    end();
  }
}

/* Member 0 has no memory for a window: it uses a slot for member 2, whose acknowledgements reach it as
 * messages. Member 2 still reads the board of member 0. With the next link member 0 tries again. */
static void test_memory_may_be_mapped_in_one_direction_only(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 31; seed += 2) {
    begin();
    team.graph = "complete";
    team.lingers = true;
    open_scene(seed, 4);
    run_until(2 + seed % 5);
    peer_of(0, 2)->is_far = true;
    peer_of(2, 0)->is_reader = false;
    run_until(30);
    assert_true(has_slot(0, 2) && !has_window(0, 2));
    assert_true(!has_slot(2, 0) && has_window(2, 0));
    pwi_sim_break(team.cluster.sim, team.reducers[0].client.node, team.reducers[2].client.node);
    run_until(60);
    assert_true(!has_slot(0, 2) && has_window(0, 2));
    end();
  }
}

static void test_one_member_alone_keeps_its_tensors(void **state) {
  (void)state;
  begin();
  open_scene(5, 1);
  team_run(&team, 60 * PWI_SIM_SECOND);
  assert_int_equal(team.checked, 30);
  end();
}

static void test_bsp_uses_inputs_of_the_iteration_only(void **state) {
  (void)state;
  uint64_t used = 0, expected = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin();
    team.mode = PAWL_REDUCE_BSP;
    team.graph = seed % 3 == 0 ? "complete" : NULL;
    open_scene(seed, 2 + (uint32_t)(seed % 7));
    team_run(&team, 60 * PWI_SIM_SECOND);
    assert_int_equal(team.checked, 30 * team.count);
    assert_int_equal(team.current, team.used);
    used += team.used;
    expected += team.expected;
    end();
  }
  assert_true(used > expected / 2); /* the rest had not landed at the barrier, or was overwritten */
}

static void test_async_never_waits_for_a_slow_member(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin();
    team.mode = PAWL_REDUCE_ASYNC;
    team.graph = "complete";
    team.slow[1] = 2000 * MS;
    team.iterations = 100;
    team.lingers = true;
    open_scene(seed, 3);
    for (int i = 0; team.reducers[0].steps < 100 && i < 1000; i++) cluster_run_for(&team.cluster, 10 * MS);
    assert_true(team.reducers[0].steps >= 100);
    assert_true(team.reducers[1].steps <= 1);
    assert_true(team.used > 0);
    end();
  }
}

/* --- filters -------------------------------------------------------------------------------------------- */

static uint64_t bytes_sent(double significant, uint64_t seed, double *spread_out) {
  uint64_t bytes = 0;
  begin();
  team.significant = significant;
  team.graph = "complete";
  team.still = true;
  team.iterations = 40;
  team.lingers = true;
  open_scene(seed, 3);
  run_until(40);
  double least = 1e9, most = -1e9;
  for (uint32_t i = 0; i < 3; i++) {
    struct pawl_reduce_state now;
    pwi_reduce_state(team.reducers[i].engine, &now);
    bytes += now.bytes_sent;
    least = fmin(least, (double)team.reducers[i].values[7]);
    most = fmax(most, (double)team.reducers[i].values[7]);
  }
  *spread_out = most - least;
  end();
  return bytes;
}

/* Members that do not compute agree, as far as the threshold lets them, and then hardly send anything. */
static void test_values_that_have_not_changed_are_not_sent(void **state) {
  double spread;
  (void)state;
  for (uint64_t seed = 1; seed <= 6; seed++) {
    uint64_t all = bytes_sent(0, seed, &spread);
    assert_true(spread == 0);
    uint64_t some = bytes_sent(0.01, seed, &spread);
    assert_true(spread <= 0.03);
    assert_true(some < all / 4);
  }
}

static void test_filters_survive_lost_links_and_members(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin();
    team.significant = 0.5;
    team.what = (enum pawl_reduce_what)(seed % 2);
    team.narrow = (enum pawl_reduce_narrow)(seed % 4);
    team.iterations = 60;
    open_scene(seed, 4);
    for (uint64_t until = 2; until < 40; until += 5) {
      run_until(until);
      pwi_sim_break(team.cluster.sim, team.reducers[until % 3].client.node, team.reducers[until % 3 + 1].client.node);
    }
    if (seed % 3 == 0) pwi_sim_kill(team.cluster.sim, team.reducers[seed % 4].client.node);
    team_run(&team, 60 * PWI_SIM_SECOND);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(team.reducers[i].status, PAWL_OK);
    end();
  }
}

/* --- members that are lost ------------------------------------------------------------------------------ */

static void test_survivors_go_on_without_a_member_that_was_killed(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    begin();
    team.mode = (enum pawl_reduce_mode)(seed % 3);
    open_scene(seed, 3 + (uint32_t)(seed % 5));
    run_until(1 + seed % 10);
    cluster_run_for(&team.cluster, (int64_t)(seed % 7) * MS);
    uint32_t victim = (uint32_t)(seed % team.count);
    pwi_sim_kill(team.cluster.sim, team.reducers[victim].client.node);
    team_run(&team, 60 * PWI_SIM_SECOND);
    for (uint32_t i = 0; i < team.count; i++) {
      if (i == victim) continue;
      assert_int_equal(team.reducers[i].status, PAWL_OK);
      assert_true(team.reducers[i].regenerated >= 2);
    }
    end();
  }
}

static void test_half_of_the_members_are_lost_at_once(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin();
    team.mode = (enum pawl_reduce_mode)(seed % 3);
    open_scene(seed, 8);
    run_until(5);
    for (uint32_t i = 0; i < 4; i++) pwi_sim_kill(team.cluster.sim, team.reducers[(seed + 2 * i) % 8].client.node);
    team_run(&team, 60 * PWI_SIM_SECOND);
    end();
  }
}

static void test_a_member_that_joins_takes_over_a_model(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 30; seed++) {
    begin();
    team.mode = (enum pawl_reduce_mode)(seed % 3);
    team.lingers = true;
    team.iterations = 60;
    open_scene(seed, 4);
    run_until(10);
    uint32_t victim = (uint32_t)(seed % 4);
    pwi_sim_kill(team.cluster.sim, team.reducers[victim].client.node);
    cluster_run_for(&team.cluster, (int64_t)(seed % 5) * 200 * MS);
    assert_int_equal(pwi_sim_restart(team.cluster.sim, team.reducers[victim].client.node), PAWL_OK);
    team.reducers[victim].report.iteration = 0;
    run_until(60);
    assert_int_equal(team.reducers[victim].adopted, 1);
    end();
  }
}

/* Pairs lose their links again and again; nothing is lost and nothing is used twice. */
static void test_links_that_break_lose_no_version(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    begin();
    team.mode = seed % 4 == 0 ? PAWL_REDUCE_BSP : PAWL_REDUCE_NOTIFY_ACK;
    team.graph = seed % 2 ? "complete" : NULL;
    team.iterations = 60;
    open_scene(seed, 3 + (uint32_t)(seed % 3));
    for (uint64_t until = 2; until < 60; until += 3) {
      run_until(until);
      cluster_run_for(&team.cluster, (int64_t)(seed % 5) * 300000);
      uint32_t a = (uint32_t)(until % team.count), b = (uint32_t)((until / team.count + a + 1) % team.count);
      if (a != b) pwi_sim_break(team.cluster.sim, team.reducers[a].client.node, team.reducers[b].client.node);
    }
    team_run(&team, 60 * PWI_SIM_SECOND);
    for (uint32_t i = 0; i < team.count; i++) {
      assert_int_equal(team.reducers[i].status, PAWL_OK);
      assert_int_equal(team.reducers[i].adopted, 0);
    }
    end();
  }
}

/* The header of the next version is in the slot of `to`, and its end is not. */
static bool is_half_landed(uint32_t from, uint32_t to) {
  const struct pwi_reduce *engine = team.reducers[from].engine;
  if (!engine || !team.reducers[to].engine) return false;
  const struct reduce_peer *sender = peer_of(to, from), *target = peer_of(from, to);
  if (!sender || !sender->slot || !target || target->puts == 0) return false;
  const unsigned char *slot = pwi_net_region_memory(sender->slot->region), *staged = engine->staging[target->buffer];
  size_t end = pwi_reduce_slot_size(engine) - REDUCE_FOOTER_SIZE;
  return memcmp(slot, staged, REDUCE_HEADER_SIZE) == 0 && memcmp(slot + end, staged + end, REDUCE_FOOTER_SIZE) != 0;
}

static bool find_half_landed(uint32_t *from, uint32_t *to) {
  for (*from = 0; *from < team.count; (*from)++)
    for (*to = 0; *to < team.count; (*to)++)
      if (*from != *to && is_half_landed(*from, *to)) return true;
  return false;
}

static bool is_nothing_half_landed(void *context) {
  uint32_t from, to;
  return team_is_running(context) && !find_half_landed(&from, &to);
}

/* The version is sent again, into another slot, and used once. The rest of the first put may still land. */
static void test_a_link_breaks_in_the_middle_of_a_put(void **state) {
  (void)state;
  size_t breaks = 0;
  for (uint64_t seed = 2; seed <= 40; seed += 2) { /* members that share no memory */
    begin();
    team.graph = seed % 4 ? "complete" : NULL;
    open_scene(seed, 3 + (uint32_t)(seed % 3));
    for (int i = 0; i < 10; i++) {
      uint32_t from, to;
      pawl_status status = pwi_cluster_run_while(&team.cluster, is_nothing_half_landed, &team, 60 * PWI_SIM_SECOND);
      cluster_check(&team.cluster, status, "waiting for a put");
      if (!find_half_landed(&from, &to)) break;
      pwi_sim_break(team.cluster.sim, team.reducers[from].client.node, team.reducers[to].client.node);
      breaks++;
    }
    team_run(&team, 60 * PWI_SIM_SECOND);
    assert_int_equal(team.checked, 30 * team.count);
    assert_int_equal(team.current, team.expected);
    assert_int_equal(team.used, team.expected);
    for (uint32_t i = 0; i < team.count; i++) {
      assert_int_equal(team.reducers[i].status, PAWL_OK);
      assert_int_equal(team.reducers[i].adopted, 0);
    }
    end();
  }
  assert_true(breaks >= 50);
}

/* Declared dead meanwhile, it comes back as another member and is behind. */
static void test_a_member_that_stands_still_for_five_seconds_comes_back(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin();
    team.mode = (enum pawl_reduce_mode)(seed % 3);
    team.lingers = true;
    open_scene(seed, 4);
    run_until(5);
    uint32_t victim = (uint32_t)(seed % 4);
    pwi_sim_pause(team.cluster.sim, team.reducers[victim].client.node, 5 * PWI_SIM_SECOND);
    uint64_t before = team.reducers[(victim + 1) % 4].report.iteration;
    cluster_run_for(&team.cluster, 4 * PWI_SIM_SECOND);
    assert_true(team.reducers[(victim + 1) % 4].report.iteration > before + 20); /* the others went on */
    run_until(team.reducers[(victim + 1) % 4].report.iteration + 200);
    for (uint32_t i = 0; i < 4; i++) {
      assert_int_equal(team.reducers[i].status, PAWL_OK);
      assert_int_equal(team.reducers[i].engine->size, 4);
    }
    end();
  }
}

static uint32_t retirements(void) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < team.count; i++)
    count += (uint32_t)pwi_cluster_client_figures(&team.reducers[i].client).retirements;
  return count;
}

/* Starved of processor time it is silent for longer than the limit of its links. That proves nothing: the others wait
 * until its grace is over, and ask it for a sign of life. */
static void test_a_member_that_is_silent_is_not_lost_before_its_grace_is_over(void **state) {
  uint64_t silent = 0;
  (void)state;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    begin();
    team.mode = (enum pawl_reduce_mode)(seed % 3);
    team.graph = seed % 2 ? "complete" : NULL;
    team.lingers = true;
    open_scene_with(seed, 4, 10 * PWI_SIM_SECOND);
    run_until(5);
    uint32_t chosen = (uint32_t)(seed % 4);
    struct reducer *victim = &team.reducers[chosen];
    for (int64_t part = 0; part < 3; part++) {
      pwi_sim_pause(team.cluster.sim, victim->client.node, (1 + part) * 700 * MS);
      cluster_run_for(&team.cluster, 500 * MS);
      silent += peer_of((chosen + 1) % 4, chosen) && peer_of((chosen + 1) % 4, chosen)->is_silent;
      run_until(team.reducers[(chosen + 1) % 4].report.iteration + 20);
    }
    assert_int_equal(retirements(), 0);
    for (uint32_t i = 0; i < 4; i++) {
      assert_int_equal(team.reducers[i].status, PAWL_OK);
      assert_int_equal(team.reducers[i].adopted, 0);
    }
    end();
  }
  assert_true(silent > 12);
}

static void test_on_a_busy_machine_a_step_waits_longer_before_it_asks(void **state) {
  (void)state;
  begin();
  team.graph = "complete";
  team.lingers = true;
  open_scene_with(1, 3, 10 * PWI_SIM_SECOND);
  run_until(5);
  pwi_sim_pause(team.cluster.sim, team.reducers[1].client.node, 700 * MS);
  cluster_run_for(&team.cluster, 20 * MS);
  const struct pwi_reduce *engine = team.reducers[0].engine;
  assert_int_equal(pwi_reduce_want(engine), PWI_REDUCE_WAIT);
  int64_t sooner = pwi_reduce_look_at(engine);
  pwi_sim_allow(team.cluster.sim, PWI_SIM_SECOND);
  assert_true(pwi_reduce_look_at(engine) - sooner >= 900 * MS);
  pwi_sim_allow(team.cluster.sim, 0);
  run_until(engine->completed + 3);
  end();
}

/* Its actor answers while the application computes, so nobody takes it for silent. */
static void test_a_member_that_computes_for_long_answers(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 6; seed++) {
    begin();
    team.graph = "complete";
    team.slow[1] = 2000 * MS;
    team.lingers = true;
    open_scene(seed, 3);
    run_until(2);
    const struct reduce_peer *slow = peer_of(0, 1);
    for (int i = 0; slow->pongs == 0 && i < 300; i++) cluster_run_for(&team.cluster, 10 * MS);
    assert_true(slow->pongs > 0 && !slow->is_silent);
    run_until(4);
    assert_int_equal(retirements(), 0);
    end();
  }
}

/* Also in ASYNC mode a member that was declared dead needs the agreement of all to come back, and members agree in steps.
 * It waits for as long as the others make none, and goes on as soon as they do. */
static void test_a_member_that_comes_back_waits_for_those_that_make_no_steps(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 6; seed++) {
    begin();
    team.mode = PAWL_REDUCE_ASYNC;
    team.lingers = true;
    open_scene(seed, 4);
    run_until(5);
    for (uint32_t i = 0; i < 3; i++) team.slow[i] = 30 * PWI_SIM_SECOND;
    cluster_run_for(&team.cluster, 100 * MS); /* now they compute */
    pwi_sim_pause(team.cluster.sim, team.reducers[3].client.node, 2 * PWI_SIM_SECOND);
    cluster_run_for(&team.cluster, 5 * PWI_SIM_SECOND);
    assert_true(retirements() >= 1);
    uint64_t before = team.reducers[3].report.iteration;
    cluster_run_for(&team.cluster, 20 * PWI_SIM_SECOND);
    assert_int_equal(team.reducers[3].report.iteration, before);
    for (uint32_t i = 0; i < 3; i++) team.slow[i] = 0;
    run_until(before + 50);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(team.reducers[i].engine->size, 4);
    end();
  }
}

static void test_a_member_is_killed_while_the_graph_is_regenerated(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    begin();
    team.mode = (enum pawl_reduce_mode)(seed % 3);
    open_scene(seed, 6);
    run_until(3);
    pwi_sim_kill(team.cluster.sim, team.reducers[seed % 6].client.node);
    uint64_t number = team.membership_count;
    for (int i = 0; team.membership_count == number && i < 10000; i++) cluster_run_for(&team.cluster, 200000);
    cluster_run_for(&team.cluster, (int64_t)(seed % 20) * 200000); /* calls, states, GO, slots, models */
    pwi_sim_kill(team.cluster.sim, team.reducers[(seed + 1 + seed / 6 % 5) % 6].client.node);
    team_run(&team, 60 * PWI_SIM_SECOND);
    for (uint32_t i = 0; i < 6; i++) assert_int_equal(team.reducers[i].status, PAWL_OK);
    end();
  }
}

static void test_survivors_use_the_default_graph_if_theirs_is_impossible(void **state) {
  (void)state;
  begin();
  team.graph = "hypercube";
  team.lingers = true;
  open_scene(3, 8);
  run_until(5);
  assert_string_equal(team.reducers[1].engine->graph, "hypercube");
  assert_int_equal(team.reducers[1].report.expected, 3);
  pwi_sim_kill(team.cluster.sim, team.reducers[0].client.node);
  run_until(team.reducers[1].report.iteration + 20);
  assert_string_equal(team.reducers[1].engine->graph, "root");
  assert_int_equal(team.reducers[1].report.size, 7);
  end();
}

/* --- bad values and shapes ------------------------------------------------------------------------------ */

static void test_a_member_with_nan_sends_nothing_and_the_others_wait(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    begin();
    team.graph = "complete";
    open_scene(seed, 3);
    run_until(5);
    team.reducers[1].poison = NAN;
    team_run(&team, 60 * PWI_SIM_SECOND);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(team.reducers[i].status, PAWL_OK);
    assert_int_equal(team.reducers[1].diverged, 1);
    assert_int_equal(team.checked, 90);
    end();
  }
}

static void test_different_shapes_are_a_mismatch_at_both(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    begin();
    team.other_values[1] = 1400;
    open_scene(seed, 2);
    for (int i = 0; !(team.reducers[0].status && team.reducers[1].status) && i < 3000; i++)
      cluster_run_for(&team.cluster, 10 * MS);
    for (uint32_t i = 0; i < 2; i++) {
      assert_int_equal(team.reducers[i].status, PAWL_MISMATCH);
      assert_non_null(strstr(team.reducers[i].engine->problem, "tensor 0 has 1"));
    }
    end();
  }
}

/* A member that does not fit cannot stop a job that runs. */
static void test_a_joiner_of_another_shape_fails_alone(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 15; seed++) {
    begin();
    team.mode = (enum pawl_reduce_mode)(seed % 3);
    team.lingers = true;
    team.founders = 3;
    team.other_values[3] = 1400;
    team.reducers[3].must_not_open = true;
    open_scene(seed, 4);
    run_until(5);
    team.reducers[3].must_not_open = false;
    for (int i = 0; !team.reducers[3].status && i < 3000; i++) cluster_run_for(&team.cluster, 10 * MS);
    assert_int_equal(team.reducers[3].status, PAWL_MISMATCH);
    team.reducers[3].must_not_open = true;
    run_until(team.reducers[0].report.iteration + 20);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(team.reducers[i].status, PAWL_OK);
    end();
  }
}

/* --- closing -------------------------------------------------------------------------------------------- */

static void test_the_others_go_on_without_a_member_that_has_closed(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 30; seed++) {
    begin();
    team.mode = (enum pawl_reduce_mode)(seed % 3);
    team.lingers = true;
    open_scene(seed, 4);
    run_until(5);
    uint32_t one = (uint32_t)(seed % 4);
    team.reducers[one].must_close = true;
    team.reducers[one].must_not_open = true; /* run_until does not wait for it */
    run_until(team.reducers[(one + 1) % 4].report.iteration + 20);
    assert_true(team.reducers[one].is_closed);
    for (uint32_t i = 0; i < 4; i++) {
      if (i != one) assert_int_equal(team.reducers[i].report.size, 3);
      assert_int_equal(team.reducers[i].status, PAWL_OK);
    }
    end();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_input_of_an_iteration_is_used_once),
      cmocka_unit_test(test_members_on_one_host_have_no_slots),
      cmocka_unit_test(test_memory_may_be_mapped_in_one_direction_only),
      cmocka_unit_test(test_one_member_alone_keeps_its_tensors),
      cmocka_unit_test(test_bsp_uses_inputs_of_the_iteration_only),
      cmocka_unit_test(test_async_never_waits_for_a_slow_member),
      cmocka_unit_test(test_values_that_have_not_changed_are_not_sent),
      cmocka_unit_test(test_filters_survive_lost_links_and_members),
      cmocka_unit_test(test_survivors_go_on_without_a_member_that_was_killed),
      cmocka_unit_test(test_half_of_the_members_are_lost_at_once),
      cmocka_unit_test(test_a_member_that_joins_takes_over_a_model),
      cmocka_unit_test(test_links_that_break_lose_no_version),
      cmocka_unit_test(test_a_link_breaks_in_the_middle_of_a_put),
      cmocka_unit_test(test_a_member_that_stands_still_for_five_seconds_comes_back),
      cmocka_unit_test(test_a_member_that_is_silent_is_not_lost_before_its_grace_is_over),
      cmocka_unit_test(test_on_a_busy_machine_a_step_waits_longer_before_it_asks),
      cmocka_unit_test(test_a_member_that_computes_for_long_answers),
      cmocka_unit_test(test_a_member_that_comes_back_waits_for_those_that_make_no_steps),
      cmocka_unit_test(test_a_member_is_killed_while_the_graph_is_regenerated),
      cmocka_unit_test(test_survivors_use_the_default_graph_if_theirs_is_impossible),
      cmocka_unit_test(test_a_member_with_nan_sends_nothing_and_the_others_wait),
      cmocka_unit_test(test_different_shapes_are_a_mismatch_at_both),
      cmocka_unit_test(test_a_joiner_of_another_shape_fails_alone),
      cmocka_unit_test(test_the_others_go_on_without_a_member_that_has_closed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
