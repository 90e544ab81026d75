/* Names and texts, and the replay of one order. */
#include "sim/explore/explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/explore/inside.h"

static const struct pwi_explore_about abouts[] = {
#define ABOUT(name, word, servers, replicas, text) {word, text, servers, replicas},
    PWI_EXPLORE_SCENARIO_MAP(ABOUT)
#undef ABOUT
};

const struct pwi_explore_about *pwi_explore_about(enum pwi_explore_scenario scenario) { return &abouts[scenario]; }

enum pwi_explore_scenario pwi_explore_named(const char *word) {
  int scenario = 0;
  while (scenario < PWI_EXPLORE_SCENARIOS && strcmp(abouts[scenario].word, word) != 0) scenario++;
  return (enum pwi_explore_scenario)scenario;
}

void pwi_explore_config_init(struct pwi_explore_config *config, enum pwi_explore_scenario scenario, uint32_t crashes) {
  bool needs_replica = crashes > 0 && abouts[scenario].replicas == 0;
  *config = (struct pwi_explore_config){.scenario = scenario,
                                        .servers = abouts[scenario].servers + needs_replica,
                                        .replicas = abouts[scenario].replicas + needs_replica,
                                        .clients = PWI_EXPLORE_CLIENTS,
                                        .pushes = 3,
                                        .crashes = crashes,
                                        .states_max = 200000};
}

/* --- lists of choices ----------------------------------------------------------------------------------- */

void pwi_explore_path_text(const uint8_t *path, uint32_t count, char *text, size_t size) {
  size_t at = 0;
  if (size > 0) *text = '\0';
  while (count > 1 && path[count - 1] == 0) count--;
  for (uint32_t i = 0; i < count && at + 5 < size; i++)
    at += (size_t)snprintf(text + at, size - at, "%s%u", i ? "," : "", path[i]);
}

bool pwi_explore_path_read(const char *text, uint8_t path_out[PWI_EXPLORE_STEPS], uint32_t *size_out) {
  uint32_t count = 0;
  while (*text) {
    char *end;
    if (*text < '0' || *text > '9' || count == PWI_EXPLORE_STEPS) return false;
    unsigned long number = strtoul(text, &end, 10);
    if (number >= CHOICES_MAX || (*end != ',' && *end != '\0') || (*end == ',' && end[1] == '\0')) return false;
    path_out[count++] = (uint8_t)number;
    text = *end ? end + 1 : end;
  }
  *size_out = count;
  return true;
}

/* --- replay --------------------------------------------------------------------------------------------- */

struct replay {
  struct scene scene;
  struct pwi_explore_result *result;
  void (*show)(void *context, const char *line);
  void *context;
};

static void show_choice(const struct replay *replay, const struct choice *choices, size_t count, size_t which) {
  char text[128], line[200];
  pwi_scene_describe(&replay->scene, &choices[which], text, sizeof text);
  snprintf(line, sizeof line, "%4u  %.6f  %2zu of %2zu  %s", replay->result->path_size,
           (double)(pwi_sim_now(replay->scene.cluster.sim) - replay->scene.began_at) / 1e9, which, count, text);
  replay->show(replay->context, line);
}

/* False once nothing is left to do. */
static bool go_on(struct replay *replay, const uint8_t *path, uint32_t size, pawl_status *status_out) {
  struct choice choices[CHOICES_MAX];
  struct pwi_explore_result *result = replay->result;
  size_t count = pwi_scene_choices(&replay->scene, choices);
  size_t which = result->path_size < size ? path[result->path_size] : 0;
  if (count == 0 && result->path_size >= size) return false;
  if (which >= count || result->path_size == PWI_EXPLORE_STEPS) {
    *status_out = PAWL_INVALID;
    return false;
  }
  show_choice(replay, choices, count, which);
  result->path[result->path_size++] = (uint8_t)which;
  pawl_status status = pwi_scene_choose(&replay->scene, choices, count, which);
  if (!status) pwi_scene_check(&replay->scene);
  if (pwi_sim_now(replay->scene.cluster.sim) - replay->scene.began_at > LIMIT_NS)
    SCENE_FAIL(&replay->scene, "calls have not ended after %lld s", (long long)(LIMIT_NS / PWI_SIM_SECOND));
  return !pwi_sim_failure(replay->scene.cluster.sim);
}

pawl_status pwi_explore_replay(const struct pwi_explore_config *config, const uint8_t *path, uint32_t size,
                               void (*show)(void *context, const char *line), void *context,
                               struct pwi_explore_result *result_out) {
  static struct replay replay;
  *result_out = (struct pwi_explore_result){0};
  replay = (struct replay){.result = result_out, .show = show, .context = context};
  pawl_status status = pwi_scene_open(&replay.scene, config);
  if (!status) {
    while (go_on(&replay, path, size, &status)) continue;
    struct pwi_sim *sim = replay.scene.cluster.sim;
    if (!status && !pwi_sim_failure(sim)) pwi_scene_check_end(&replay.scene);
    result_out->has_failed = pwi_sim_failure(sim) != NULL;
    if (result_out->has_failed) snprintf(result_out->failure, sizeof result_out->failure, "%s", pwi_sim_failure(sim));
    result_out->choices = result_out->depth = result_out->path_size;
    result_out->states = result_out->path_size + UINT64_C(1);
  }
  pwi_scene_close(&replay.scene);
  return status;
}
