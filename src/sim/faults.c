/* Draws, formats and executes fault schedules. */
#include "sim/faults.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "sim/disk.h"
#include "sim/world.h"

#define STREAM_FAULTS (UINT64_C(1) << 31)

static const char *const kind_names[] = {
#define FAULT_TEXT(name, text) text,
    PWI_SIM_FAULT_MAP(FAULT_TEXT)
#undef FAULT_TEXT
};

void pwi_sim_faults_config_init(struct pwi_sim_faults_config *config) {
  *config = (struct pwi_sim_faults_config){
      .begin = 1 * PWI_SIM_SECOND,
      .end = 9 * PWI_SIM_SECOND,
      .gap_mean_ns = 200 * PWI_SIM_MILLISECOND,
      .duration_min_ns = 1 * PWI_SIM_MILLISECOND,
      .duration_max_ns = 600 * PWI_SIM_MILLISECOND,
      .pause_max_ns = 2 * PWI_SIM_SECOND,
      .down_max = 1,
  };
  for (int kind = 0; kind < PWI_SIM_FAULT_STARVE; kind++) config->weights[kind] = 1;
}

/* --- drawing -------------------------------------------------------------------------------------------- */

struct draw {
  const struct pwi_sim *sim;
  const struct pwi_sim_faults_config *config;
  struct pwi_random random;
  struct pwi_sim_faults faults;
  size_t room;
};

static struct pwi_sim_node draw_node(struct draw *draw) {
  if (!draw->config->nodes)
    return (struct pwi_sim_node){(uint32_t)pwi_random_below(&draw->random, pwi_sim_node_count(draw->sim))};
  return draw->config->nodes[pwi_random_below(&draw->random, draw->config->node_count)];
}

static enum pwi_sim_fault_kind draw_kind(struct draw *draw) {
  double sum = 0;
  for (int kind = 0; kind < PWI_SIM_FAULT_KINDS; kind++) sum += draw->config->weights[kind];
  double left = pwi_random_unit(&draw->random) * sum;
  int kind = 0, last = 0;
  for (; kind < PWI_SIM_FAULT_KINDS && left >= 0; kind++) {
    if (draw->config->weights[kind] > 0) last = kind;
    left -= draw->config->weights[kind];
  }
  return (enum pwi_sim_fault_kind)last;
}

static bool takes_two(enum pwi_sim_fault_kind kind) {
  return kind == PWI_SIM_FAULT_CUT || kind == PWI_SIM_FAULT_PART || kind == PWI_SIM_FAULT_BREAK ||
         kind == PWI_SIM_FAULT_MUTE;
}

static bool lasts(enum pwi_sim_fault_kind kind) { return kind != PWI_SIM_FAULT_BREAK && kind != PWI_SIM_FAULT_MUTE; }

/* Short durations are as likely as long ones: the logarithm is uniform. */
static int64_t draw_duration(struct draw *draw, enum pwi_sim_fault_kind kind, int64_t at) {
  if (!lasts(kind)) return 0;
  double least = (double)draw->config->duration_min_ns;
  double most = (double)(kind == PWI_SIM_FAULT_PAUSE ? draw->config->pause_max_ns : draw->config->duration_max_ns);
  double duration = most > least ? least * pow(most / least, pwi_random_unit(&draw->random)) : least;
  double left = (double)(draw->config->end - at);
  return (int64_t)(duration < left ? duration : left);
}

static double draw_amount(struct draw *draw, enum pwi_sim_fault_kind kind) {
  double unit = pwi_random_unit(&draw->random);
  switch (kind) {
  case PWI_SIM_FAULT_SLOW:
    return floor(2 + 98 * unit);
  case PWI_SIM_FAULT_DISK_IO:
    return unit < 0.5 ? 1 : 0.1;
  case PWI_SIM_FAULT_DISK_SLOW:
    return floor(1 + 300 * unit * unit);
  default:
    return 0;
  }
}

static bool overlaps(const struct pwi_sim_fault *a, const struct pwi_sim_fault *b) {
  return a->at <= b->at + b->duration && b->at <= a->at + a->duration;
}

/* A fault is left out if its node has the same fault already (it would heal too early), or if too many
 * nodes are down. */
static bool is_wanted(const struct draw *draw, const struct pwi_sim_fault *fault) {
  size_t down = 0;
  for (size_t i = 0; i < draw->faults.count; i++) {
    const struct pwi_sim_fault *other = &draw->faults.items[i];
    if (!overlaps(other, fault)) continue;
    if (other->kind == fault->kind && other->node.index == fault->node.index && lasts(fault->kind)) return false;
    if (other->kind == PWI_SIM_FAULT_KILL && other->node.index == fault->node.index) return false;
    down += other->kind == PWI_SIM_FAULT_KILL;
  }
  return fault->kind != PWI_SIM_FAULT_KILL || down < draw->config->down_max;
}

static pawl_status add(struct draw *draw, const struct pwi_sim_fault *fault) {
  if (!PWI_GROW(draw->faults.items, draw->room, draw->faults.count + 1)) return PAWL_NO_MEMORY;
  draw->faults.items[draw->faults.count++] = *fault;
  return PAWL_OK;
}

static pawl_status draw_one(struct draw *draw, int64_t at) {
  struct pwi_sim_fault fault = {.at = at, .kind = draw_kind(draw), .node = draw_node(draw), .other = PWI_SIM_ALL};
  fault.duration = draw_duration(draw, fault.kind, at);
  fault.amount = draw_amount(draw, fault.kind);
  if (takes_two(fault.kind)) {
    fault.other = draw_node(draw);
    if (fault.other.index == fault.node.index) return PAWL_OK;
  }
  return is_wanted(draw, &fault) ? add(draw, &fault) : PAWL_OK;
}

pawl_status pwi_sim_faults_draw(const struct pwi_sim *sim, const struct pwi_sim_faults_config *config,
                                struct pwi_sim_faults *faults_out) {
  if (config->begin < 0 || config->end <= config->begin || config->gap_mean_ns <= 0 || config->duration_min_ns <= 0 ||
      pwi_sim_node_count(sim) == 0 || (config->nodes && config->node_count == 0))
    return PAWL_INVALID;
  struct draw draw = {.sim = sim, .config = config};
  pwi_sim_stream(sim, STREAM_FAULTS + config->number, &draw.random);
  int64_t at = config->begin;
  for (;;) {
    at += 1 + (int64_t)pwi_random_exponential(&draw.random, (double)config->gap_mean_ns);
    if (at >= config->end) break;
    pawl_status status = draw_one(&draw, at);
    if (status) {
      pwi_sim_faults_fini(&draw.faults);
      return status;
    }
  }
  *faults_out = draw.faults;
  return PAWL_OK;
}

void pwi_sim_faults_fini(struct pwi_sim_faults *faults) {
  pwi_free(faults->items);
  *faults = (struct pwi_sim_faults){0};
}

/* formatting */

static double in_seconds(int64_t time) { return (double)time / (double)PWI_SIM_SECOND; }

static void print_more(char *text, size_t size, const char *format, ...) PAWL_PRINTF(3, 4);

static void print_more(char *text, size_t size, const char *format, ...) {
  size_t used = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + used, size - used, format, arguments);
  va_end(arguments);
}

void pwi_sim_fault_print(const struct pwi_sim *sim, const struct pwi_sim_fault *fault, char *text, size_t size) {
  if (size == 0) return;
  const char *node = pwi_sim_node_name(sim, fault->node);
  snprintf(text, size, "at=%.6fs %s", in_seconds(fault->at), kind_names[fault->kind]);
  if (fault->other.index == UINT32_MAX)
    print_more(text, size, " node=%s", node);
  else
    print_more(text, size, fault->kind == PWI_SIM_FAULT_CUT ? " from=%s to=%s" : " between=%s and=%s", node,
               pwi_sim_node_name(sim, fault->other));
  if (fault->duration) print_more(text, size, " for=%.6fs", in_seconds(fault->duration));
  if (fault->kind == PWI_SIM_FAULT_SLOW) print_more(text, size, " factor=%g", fault->amount);
  if (fault->kind == PWI_SIM_FAULT_DISK_IO) print_more(text, size, " chance=%g", fault->amount);
  if (fault->kind == PWI_SIM_FAULT_DISK_SLOW) print_more(text, size, " call=%gms", fault->amount);
}

static void report(struct pwi_sim *sim, const struct pwi_sim_fault *fault) {
  if (!pwi_log_wants(PAWL_LOG_INFO)) return;
  char text[PWI_SIM_FAULT_TEXT_MAX];
  pwi_sim_fault_print(sim, fault, text, sizeof text);
  pwi_log(&sim->log, PAWL_LOG_INFO, "sim.fault", "%s", text);
}

/* --- executing ------------------------------------------------------------------------------------------ */

static void fault_begin(void *context) {
  const struct pwi_sim_fault *fault = context;
  struct pwi_sim *sim = fault->sim;
  struct pwi_sim_disk_faults disk = {.until = sim->now + fault->duration};
  report(sim, fault);
  switch (fault->kind) {
  case PWI_SIM_FAULT_KILL:
    pwi_sim_kill(sim, fault->node);
    break;
  case PWI_SIM_FAULT_PAUSE:
    pwi_sim_pause(sim, fault->node, fault->duration);
    break;
  case PWI_SIM_FAULT_SLOW:
    pwi_sim_slow(sim, fault->node, fault->amount);
    break;
  case PWI_SIM_FAULT_PART:
  case PWI_SIM_FAULT_ISOLATE:
    pwi_sim_fault_cut(sim, fault->other, fault->node, true);
    pwi_sim_fault_cut(sim, fault->node, fault->other, true);
    break;
  case PWI_SIM_FAULT_CUT:
    pwi_sim_fault_cut(sim, fault->node, fault->other, true);
    break;
  case PWI_SIM_FAULT_BREAK:
    pwi_sim_break(sim, fault->node, fault->other);
    break;
  case PWI_SIM_FAULT_MUTE:
    pwi_sim_mute(sim, fault->node, fault->other);
    break;
  case PWI_SIM_FAULT_STARVE:
    pwi_sim_starve(sim, fault->node, true);
    break;
  case PWI_SIM_FAULT_DISK_IO:
    disk.read_chance = disk.write_chance = disk.sync_chance = fault->amount;
    pwi_sim_disk_set_faults(pwi_sim_node_disk(sim, fault->node), &disk);
    break;
  case PWI_SIM_FAULT_DISK_FULL:
    disk.full = true;
    pwi_sim_disk_set_faults(pwi_sim_node_disk(sim, fault->node), &disk);
    break;
  case PWI_SIM_FAULT_DISK_SLOW:
    disk.slow_ns = (int64_t)(fault->amount * (double)PWI_SIM_MILLISECOND);
    pwi_sim_disk_set_faults(pwi_sim_node_disk(sim, fault->node), &disk);
    break;
  case PWI_SIM_FAULT_KINDS:
    break;
  }
}

static void fault_end(void *context);

/* Starting may fail because of the disk or for lack of memory; it is then retried until it succeeds. */
static void start_again(struct pwi_sim_fault *fault) {
  struct pwi_sim *sim = fault->sim;
  pawl_status status = pwi_sim_start(sim, fault->node);
  if (!status || status == PAWL_EXISTS) return;
  if (pwi_sim_call_at(sim, sim->now + 100 * PWI_SIM_MILLISECOND, fault_end, fault))
    pwi_sim_fail(sim, PAWL_NO_MEMORY, "not enough memory for a fault");
}

static void fault_end(void *context) {
  struct pwi_sim_fault *fault = context;
  struct pwi_sim *sim = fault->sim;
  switch (fault->kind) {
  case PWI_SIM_FAULT_KILL:
    start_again(fault);
    break;
  case PWI_SIM_FAULT_SLOW:
    pwi_sim_slow(sim, fault->node, 0);
    break;
  case PWI_SIM_FAULT_STARVE:
    pwi_sim_starve(sim, fault->node, false);
    break;
  case PWI_SIM_FAULT_PART:
  case PWI_SIM_FAULT_ISOLATE:
    pwi_sim_fault_cut(sim, fault->other, fault->node, false);
    pwi_sim_fault_cut(sim, fault->node, fault->other, false);
    break;
  case PWI_SIM_FAULT_CUT:
    pwi_sim_fault_cut(sim, fault->node, fault->other, false);
    break;
  default:
    break; /* pauses and disk faults end by themselves */
  }
}

pawl_status pwi_sim_faults_schedule(struct pwi_sim *sim, struct pwi_sim_faults *faults) {
  for (size_t i = 0; i < faults->count; i++) {
    struct pwi_sim_fault *fault = &faults->items[i];
    fault->sim = sim;
    pawl_status status = pwi_sim_call_at(sim, fault->at, fault_begin, fault);
    if (!status && fault->duration) status = pwi_sim_call_at(sim, fault->at + fault->duration, fault_end, fault);
    if (status) return status;
  }
  return PAWL_OK;
}
