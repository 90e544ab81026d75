/* What may happen next, and making it happen. */
#include <stdio.h>
#include <string.h>

#include "sim/explore/inside.h"
#include "wire/message.h"

static size_t place_of(const uint64_t *numbers, size_t count, uint64_t number) {
  size_t at = 0;
  while (at < count && numbers[at] != number) at++;
  return at;
}

static struct pwi_sim_node victim_of(const struct scene *scene, uint32_t which) {
  return which < scene->config->servers ? scene->cluster.servers[which].node : scene->workers[1].client.node;
}

static size_t add_crashes(const struct scene *scene, struct choice *choices, size_t count) {
  uint32_t victims =
      scene->config->servers + (scene->config->scenario == PWI_EXPLORE_RETIRE && scene->config->clients > 1);
  for (uint32_t i = 0; i < victims && count < CHOICES_MAX; i++) {
    struct pwi_sim_node node = victim_of(scene, i);
    if (!pwi_sim_node_is_up(scene->cluster.sim, node)) continue;
    choices[count++] = (struct choice){.kind = CHOICE_CRASH, .node = node.index, .from = UINT32_MAX, .which = i};
  }
  return count;
}

static size_t add_resets(const struct scene *scene, struct choice *choices, size_t count) {
  const struct pwi_sim *sim = scene->cluster.sim;
  uint32_t nodes = pwi_sim_node_count(sim);
  for (uint32_t a = 0; a < nodes; a++)
    for (uint32_t b = a + 1; b < nodes && count < CHOICES_MAX; b++)
      if (pwi_sim_are_linked(sim, (struct pwi_sim_node){a}, (struct pwi_sim_node){b}))
        choices[count++] = (struct choice){.kind = CHOICE_RESET, .node = a, .from = b};
  return count;
}

/* Events that were overtaken come after the others. */
static size_t add_events(const struct scene *scene, const struct pwi_sim_due *due, size_t due_count,
                         struct choice *choices) {
  size_t count = 0;
  for (int held = 0; held < 2; held++)
    for (size_t i = 0; i < due_count; i++) {
      bool is_held = place_of(scene->held, scene->held_count, due[i].number) < scene->held_count;
      if (is_held == (held == 1)) choices[count++] = (struct choice){CHOICE_EVENT, due[i].node, due[i].from, 0, due[i]};
    }
  return count;
}

size_t pwi_scene_choices(const struct scene *scene, struct choice choices[CHOICES_MAX]) {
  struct pwi_sim_due due[CHOICES_MAX / 2];
  size_t due_count = pwi_sim_due(scene->cluster.sim, due, CHOICES_MAX / 2);
  bool has_timer = due_count > 0 && due[due_count - 1].is_timer, is_over = pwi_scene_is_over(scene);
  if (is_over && pwi_scene_is_through(scene)) return 0;
  size_t events = due_count - has_timer, count = add_events(scene, due, events, choices);
  for (uint32_t i = 0; i < scene->config->clients; i++)
    if (pwi_scene_may_call(scene, &scene->workers[i]))
      choices[count++] = (struct choice){CHOICE_CALL, scene->workers[i].client.node.index, UINT32_MAX, i, {0}};
  if (has_timer && !is_over && (count == 0 || (events > 0 && scene->past.early_left > 0)))
    choices[count++] = (struct choice){CHOICE_TIME, due[events].node, UINT32_MAX, events > 0, due[events]};
  if (events > 0 && !is_over && scene->past.crashes_left > 0) count = add_crashes(scene, choices, count);
  if (events > 0 && !is_over && scene->past.resets_left > 0) count = add_resets(scene, choices, count);
  return count;
}

/* --- choosing ------------------------------------------------------------------------------------------- */

/* Events that were listed before the chosen one are held back from now on. The order of `held` is the order of
 * numbers, as everywhere. */
static void hold(struct scene *scene, const struct choice *choices, size_t all, size_t which) {
  uint64_t held[CHOICES_MAX];
  size_t count = 0;
  for (size_t i = 0; i < all && choices[i].kind == CHOICE_EVENT; i++) {
    uint64_t number = choices[i].due.number;
    bool was_held = place_of(scene->held, scene->held_count, number) < scene->held_count;
    if (i < which || (was_held && i != which)) held[count++] = number;
  }
  memcpy(scene->held, held, count * sizeof *held);
  scene->held_count = count;
}

pawl_status pwi_scene_choose(struct scene *scene, const struct choice *choices, size_t count, size_t which) {
  const struct choice *choice = &choices[which];
  struct pwi_sim *sim = scene->cluster.sim;
  pwi_past_add(&scene->past, choice);
  switch (choice->kind) {
  case CHOICE_EVENT:
    hold(scene, choices, count, which);
    return pwi_sim_step_due(sim, choice->due.number);
  case CHOICE_TIME:
    return pwi_sim_step_due(sim, choice->due.number);
  case CHOICE_CALL:
    pwi_scene_call(&scene->workers[choice->which]);
    return pwi_sim_settle(sim);
  case CHOICE_CRASH:
    pwi_sim_kill(sim, victim_of(scene, choice->which));
    return pwi_sim_settle(sim);
  case CHOICE_RESET:
    pwi_sim_break(sim, (struct pwi_sim_node){choice->node}, (struct pwi_sim_node){choice->from});
    return pwi_sim_settle(sim);
  }
  return PAWL_INVALID;
}

/* --- texts ---------------------------------------------------------------------------------------------- */

static const char *say_text(uint16_t kind) {
  switch (kind) {
#define SAY_CASE(name, number, text)                                                                                   \
  case number:                                                                                                         \
    return text;
    PWI_SAY_MAP(SAY_CASE)
#undef SAY_CASE
  default:
    return "?";
  }
}

static const char *name_of(const struct scene *scene, uint32_t node) {
  return node == UINT32_MAX ? "-" : pwi_sim_node_name(scene->cluster.sim, (struct pwi_sim_node){node});
}

void pwi_scene_describe(const struct scene *scene, const struct choice *choice, char *text, size_t size) {
  const char *node = name_of(scene, choice->node), *from = name_of(scene, choice->from);
  switch (choice->kind) {
  case CHOICE_EVENT:
    if (choice->due.head)
      snprintf(text, size, "%-4s -> %-4s  %s (%zu bytes)", from, node,
               say_text(pwi_message_peek_kind(choice->due.head)), choice->due.size);
    else
      snprintf(text, size, "%-4s -> %-4s  %s", from, node, choice->due.kind);
    break;
  case CHOICE_TIME:
    snprintf(text, size, "        %-4s  time passes: %s", node, choice->due.kind);
    break;
  case CHOICE_CALL:
    snprintf(text, size, "        %-4s  makes its next call", node);
    break;
  case CHOICE_CRASH:
    snprintf(text, size, "        %-4s  is killed", node);
    break;
  case CHOICE_RESET:
    snprintf(text, size, "%-4s -- %-4s  links are reset", node, from);
    break;
  }
}
