/* labels: long nosan
 * timeout: 1800
 * alone: yes
 *
 * All faults, in an order drawn from the seed: servers killed, stopped, cut off, or silent in one
 * direction; workers killed and stopped; the manager killed. One fault at a time, and the cluster is
 * complete again before the next. Faults that this build or this machine does not support are left out,
 * which is printed. */
#include "kit.h"

#define FAULTS 60

struct weather {
  struct pwi_storm *storm;
  struct pwi_random random;
  bool has_replicas, has_cells, has_data;
};

static unsigned draw_ms(struct weather *weather, unsigned most) {
  return (unsigned)pwi_random_below(&weather->random, most) + 1;
}

static void kill_server(struct weather *weather) { kit_kill_servers(weather->storm, &weather->random, 1); }

static void pause_one(struct weather *weather, enum pwi_storm_role role) {
  size_t member = kit_draw(weather->storm, role, &weather->random);
  pwi_storm_pause(weather->storm, member, true);
  kit_sleep_ms(draw_ms(weather, pwi_random_chance(&weather->random, 0.5) ? 300 : 4000));
  pwi_storm_pause(weather->storm, member, false);
}

static void pause_server(struct weather *weather) { pause_one(weather, PWI_STORM_SERVER); }
static void pause_worker(struct weather *weather) { pause_one(weather, PWI_STORM_WORKER); }

static void kill_worker(struct weather *weather) {
  pwi_storm_kill(weather->storm, kit_draw(weather->storm, PWI_STORM_WORKER, &weather->random));
  kit_add(weather->storm, PWI_STORM_WORKER, NULL);
  kit_settle(weather->storm);
}

static void cut_server(struct weather *weather) {
  size_t member = kit_draw(weather->storm, PWI_STORM_SERVER, &weather->random);
  kit_must(weather->storm, pwi_storm_cut(weather->storm, member, true));
  kit_sleep_ms(draw_ms(weather, 3000));
  kit_must(weather->storm, pwi_storm_cut(weather->storm, member, false));
}

/* Between a server and home, or another server; in either direction. */
static void lose_one_way(struct weather *weather) {
  struct pwi_storm *storm = weather->storm;
  size_t from = kit_draw(storm, PWI_STORM_SERVER, &weather->random), to = from;
  if (pwi_random_chance(&weather->random, 0.5)) to = kit_member(storm, PWI_STORM_MANAGER, 0);
  while (to == from) to = kit_draw(storm, PWI_STORM_SERVER, &weather->random);
  if (pwi_random_chance(&weather->random, 0.5)) {
    size_t swapped = from;
    from = to;
    to = swapped;
  }
  kit_must(storm, pwi_storm_lose(storm, from, to, true));
  kit_sleep_ms(draw_ms(weather, 3000));
  kit_must(storm, pwi_storm_lose(storm, from, to, false));
}

static void kill_manager(struct weather *weather) {
  pwi_storm_kill(weather->storm, kit_member(weather->storm, PWI_STORM_MANAGER, 0));
  kit_sleep_ms(draw_ms(weather, 2000));
  kit_add(weather->storm, PWI_STORM_MANAGER, NULL);
  kit_settle(weather->storm);
}

static void do_one(struct weather *weather, int number) {
  const struct {
    const char *name;
    void (*run)(struct weather *weather);
    bool is_there;
  } faults[] = {
      {"kill a server", kill_server, weather->has_replicas},
      {"stop a server", pause_server, true},
      {"stop a worker", pause_worker, true},
      {"kill a worker", kill_worker, true},
      {"cut a server off", cut_server, weather->has_cells},
      {"lose one direction", lose_one_way, weather->has_cells},
      {"kill the manager", kill_manager, weather->has_data},
  };
  size_t count = sizeof faults / sizeof *faults, chosen;
  if (number < (int)count && !faults[number].is_there) printf("left out: %s\n", faults[number].name);
  do chosen = (size_t)pwi_random_below(&weather->random, count);
  while (!faults[chosen].is_there);
  printf("%d: %s\n", number, faults[chosen].name);
  fflush(stdout);
  faults[chosen].run(weather);
  kit_await_whole(weather->storm);
  kit_await_pushes(weather->storm, 100);
}

static bool can_cut(void) {
  struct pwi_storm_config config = {.servers = 1, .replicas = 0, .has_cells = true};
  struct pwi_storm *storm;
  char problem[512];
  bool is_unable;
  if (!pwi_storm_open(&config, &storm, problem, sizeof problem, &is_unable)) {
    printf("%s\n", problem);
    return false;
  }
  pwi_storm_close(storm);
  return true;
}

static void test_nothing_is_lost_in_any_weather(void **state) {
  (void)state;
  char folder[] = "/tmp/pawl-storm-data-XXXXXX", command[64];
  struct weather weather = {.has_replicas = kit_knows("manager", "--replicas"),
                            .has_cells = can_cut(),
                            .has_data = kit_knows("manager", "--data")};
  struct pwi_storm_config config = {.servers = 4,
                                    .replicas = weather.has_replicas ? 1 : PWI_STORM_NO_REPLICAS,
                                    .client_grace = "1",
                                    .has_cells = weather.has_cells};
  assert_non_null(mkdtemp(folder));
  if (weather.has_data) config.data = folder;
  pwi_random_init(&weather.random, kit_seed(), 0);
  weather.storm = kit_begin(&config, 3);
  for (int i = 0; i < FAULTS; i++) do_one(&weather, i);
  kit_end(weather.storm);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_is_lost_in_any_weather)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
