/* Prints a run of cli/demo/sim.h: a timeline of each node, the faults, and the result. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/demo/sim.h"

#define NAME_WIDTH 9 /* of the column with the nodes' names */
#define MARGIN 2

/* The events that may cover a column, by rising precedence. */
enum state { STATE_UP, STATE_BROKEN, STATE_CUT, STATE_PAUSED, STATE_DOWN };

static const struct {
  char mark;
  enum pwi_ink ink;
  const char *meaning;
} looks[] = {
    [STATE_BROKEN] = {'!', PWI_INK_YELLOW, "link broken"},
    [STATE_CUT] = {'/', PWI_INK_YELLOW, "cut off"},
    [STATE_PAUSED] = {'z', PWI_INK_BLUE, "paused"},
    [STATE_DOWN] = {'x', PWI_INK_RED, "killed"},
};

static enum state state_of(enum pwi_sim_fault_kind kind) {
  switch (kind) {
  case PWI_SIM_FAULT_KILL:
    return STATE_DOWN;
  case PWI_SIM_FAULT_PAUSE:
    return STATE_PAUSED;
  case PWI_SIM_FAULT_BREAK:
    return STATE_BROKEN;
  default:
    return STATE_CUT;
  }
}

/* The node whose timeline shows a fault: for a link between a client and the store, the client. */
static uint32_t sufferer(const struct pwi_sim_fault *fault) {
  bool of_two = fault->other.index != PWI_SIM_ALL.index;
  return of_two && fault->node.index == 0 ? fault->other.index : fault->node.index;
}

static enum state state_at(const struct pwi_demo_run *run, uint32_t node, int column) {
  int64_t begin = column * PWI_DEMO_LENGTH / run->columns, end = (column + 1) * PWI_DEMO_LENGTH / run->columns;
  enum state strongest = STATE_UP;
  for (size_t i = 0; i < run->fault_count; i++) {
    const struct pwi_sim_fault *fault = &run->faults[i].fault;
    if (sufferer(fault) != node || fault->at >= end || fault->at + fault->duration < begin) continue;
    enum state state = state_of(fault->kind);
    if (state > strongest) strongest = state;
  }
  return strongest;
}

static void print_mark(const struct pwi_paint *paint, enum state state) {
  printf("%s%c%s", pwi_paint_ink(paint, looks[state].ink), looks[state].mark, pwi_paint_ink(paint, PWI_INK_PLAIN));
}

static void print_row(const struct pwi_demo_run *run, const struct pwi_paint *paint, uint32_t node) {
  uint32_t most = 1;
  for (int i = 0; i < run->columns; i++)
    if (run->messages[node][i] > most) most = run->messages[node][i];
  printf("%*s%-*s", MARGIN, "", NAME_WIDTH, pwi_demo_node_name(node));
  for (int i = 0; i < run->columns; i++) {
    enum state state = state_at(run, node, i);
    if (state != STATE_UP)
      print_mark(paint, state);
    else
      printf("%s%s%s", pwi_paint_ink(paint, PWI_INK_GREEN),
             pwi_paint_level(paint, (double)run->messages[node][i] / (double)most),
             pwi_paint_ink(paint, PWI_INK_PLAIN));
  }
  printf("\n");
}

static void print_scale(const struct pwi_demo_run *run) {
  char scale[PWI_DEMO_COLUMNS_MAX + 8];
  size_t end = 0;
  memset(scale, ' ', sizeof scale);
  int seconds = (int)(PWI_DEMO_LENGTH / PWI_SIM_SECOND);
  for (int second = 0; second < seconds; second++) {
    char text[8];
    int length = snprintf(text, sizeof text, "|%d s", second);
    size_t at = (size_t)(second * run->columns / seconds);
    memcpy(scale + at, text, (size_t)length);
    end = at + (size_t)length;
  }
  printf("%*s%.*s\n", MARGIN + NAME_WIDTH, "", (int)end, scale);
}

static void print_legend(const struct pwi_paint *paint) {
  printf("%*s", MARGIN + NAME_WIDTH, "");
  for (enum state state = STATE_DOWN; state > STATE_UP; state--) {
    print_mark(paint, state);
    printf(" %s   ", looks[state].meaning);
  }
  printf("%s", pwi_paint_ink(paint, PWI_INK_GREEN));
  for (int i = 1; i <= 8; i++) printf("%s", pwi_paint_level(paint, i / 8.0));
  printf("%s messages, few to many\n", pwi_paint_ink(paint, PWI_INK_PLAIN));
}

static void print_picture(const struct pwi_demo_run *run, const struct pwi_paint *paint) {
  print_scale(run);
  for (uint32_t node = 0; node < PWI_DEMO_NODES; node++) print_row(run, paint, node);
  print_legend(paint);
  printf("\n"
         "  faults drawn from seed %" PRIu64 ":\n",
         run->seed);
  for (size_t i = 0; i < run->fault_count; i++) printf("    %s\n", run->faults[i].text);
}

static void print_verdict(const struct pwi_demo_run *run, const struct pwi_demo_run *again,
                          const struct pwi_paint *paint) {
  const char *plain = pwi_paint_ink(paint, PWI_INK_PLAIN);
  bool same = run->hash == again->hash;
  printf("\n  writes   %s%" PRIu64 " acknowledged, %" PRIu64 " lost%s",
         pwi_paint_ink(paint, run->lost ? PWI_INK_RED : PWI_INK_GREEN), run->acknowledged, run->lost, plain);
  printf("; %" PRIu64 " duplicates were ignored; the store started %u times\n", run->duplicates, run->store_starts);
  if (*run->failure) printf("  failure  %s\n", run->failure);
  printf("  events   %" PRIu64 " in %.3f s: %.2f million per second\n", run->events, run->seconds,
         run->seconds > 0 ? (double)run->events / run->seconds / 1e6 : 0);
  printf("  trace    %016" PRIx64 ", second run %016" PRIx64 ": %s%s%s\n", run->hash, again->hash,
         pwi_paint_ink(paint, same ? PWI_INK_GREEN : PWI_INK_RED), same ? "the same" : "NOT THE SAME", plain);
}

static json_t *faults_json(const struct pwi_demo_run *run) {
  json_t *array = json_array();
  for (size_t i = 0; i < run->fault_count; i++) json_array_append_new(array, json_string(run->faults[i].text));
  return array;
}

static json_t *run_json(const struct pwi_demo_run *run, const struct pwi_demo_run *again) {
  char hash[24];
  snprintf(hash, sizeof hash, "%016" PRIx64, run->hash);
  return json_pack("{s:s, s:I, s:b, s:o, s:I, s:I, s:I, s:i, s:I, s:f, s:s, s:b, s:s?}", "sim", "demo", "seed",
                   (json_int_t)run->seed, "bug", (int)run->careless, "faults", faults_json(run), "acknowledged",
                   (json_int_t)run->acknowledged, "lost", (json_int_t)run->lost, "duplicates",
                   (json_int_t)run->duplicates, "store_starts", (int)run->store_starts, "events",
                   (json_int_t)run->events, "events_per_s", run->seconds > 0 ? (double)run->events / run->seconds : 0.0,
                   "hash", hash, "same_again", run->hash == again->hash, "failure",
                   *run->failure ? run->failure : NULL);
}

int pwi_demo_sim_show(const struct pwi_command *command, const struct pwi_demo_sim_options *options) {
  struct pwi_demo_run run, again;
  struct pwi_paint paint;
  pwi_paint_init(&paint);
  int columns = paint.width - MARGIN - NAME_WIDTH - 1;
  pawl_status status = pwi_demo_sim_run(options->seed, options->careless, columns, &run);
  pwi_cli_log_mute(true); /* the second run logs the same */
  if (!status) status = pwi_demo_sim_run(options->seed, options->careless, columns, &again);
  pwi_cli_log_mute(false);
  if (status) return pwi_cli_failure(command, "the simulation failed: %s", pawl_status_text(status));
  int exit_code = run.lost || run.hash != again.hash ? PWI_EXIT_FAILURE : PWI_EXIT_OK;
  if (options->json) {
    int printed = pwi_cli_print_json(command, run_json(&run, &again));
    return printed ? printed : exit_code;
  }
  print_picture(&run, &paint);
  print_verdict(&run, &again, &paint);
  return exit_code;
}
