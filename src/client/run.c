/* Row functions on the client's side: a LINEAR (client/linear.c) whose answers have results.
 *
 * Each slice of the range has a result, which servers repeat when the request is sent again. If a slice was cut by a
 * move of its keys, each part brings the whole result, and the client takes it once, by its origin. Results are
 * combined by rising key, so that the order of answers does not matter.
 *
 * A server that took over without the results (a replica of an earlier version) answers without them: the function
 * has run, and its outcome is unknown.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/inside.h"
#include "protocol/run_result.h"
#include "store/functions/rows.h"

struct pwi_row_run {
  struct pwi_row_run *next, *before; /* in the client's list */
  char function[PAWL_RULE_MAX + 1];
  struct pwi_run_result *items;
  size_t count, room;
};

pawl_status pwi_row_run_begin(struct pwi_client *client, struct pwi_task *task, const char *function) {
  struct pwi_row_run *running = pwi_alloc_zero(1, sizeof *running);
  if (!running) return PAWL_NO_MEMORY;
  assert(strlen(function) < sizeof running->function);
  strcpy(running->function, function);
  running->next = client->row_runs;
  if (running->next) running->next->before = running;
  client->row_runs = running;
  task->row_run = running;
  return PAWL_OK;
}

const char *pwi_row_run_function(const struct pwi_task *task) { return task->row_run->function; }

static void free_running(struct pwi_client *client, struct pwi_row_run *running) {
  *(running->before ? &running->before->next : &client->row_runs) = running->next;
  if (running->next) running->next->before = running->before;
  pwi_free(running->items);
  pwi_free(running);
}

void pwi_row_runs_fini(struct pwi_client *client) {
  while (client->row_runs) free_running(client, client->row_runs);
}

/* --- answers -------------------------------------------------------------------------------------------- */

/* Reads the next result of the part's task that lies in the claim, cut to it; false at the end. */
static bool next_result(struct pwi_reader *list, uint32_t *left, const struct client_part *part,
                        struct pawl_range claim, struct pwi_run_result *result_out) {
  while (*left > 0 && list->status == PAWL_OK) {
    --*left;
    uint64_t task = pwi_read_u64(list);
    pwi_run_result_read(list, result_out);
    result_out->range = pawl_range_common(result_out->range, claim);
    if (list->status == PAWL_OK && task == part->number && !pawl_range_is_empty(result_out->range)) return true;
  }
  return false;
}

/* Returns true if the results cover the claim. They may overlap and come in any order, but are few. */
static bool covers(struct pwi_reader list, const struct client_part *part, struct pawl_range claim) {
  uint32_t count = pwi_read_count(&list, 8 + PWI_RUN_RESULT_SIZE);
  for (uint64_t at = claim.begin, before; at < claim.end;) {
    struct pwi_reader reader = list;
    struct pwi_run_result result;
    uint32_t left = count;
    before = at;
    while (next_result(&reader, &left, part, claim, &result))
      if (pawl_range_has(result.range, at)) at = result.range.end;
    if (at == before) return false;
  }
  return true;
}

static pawl_status take(struct client_part *part, struct pwi_reader list, struct pawl_range claim) {
  struct pwi_row_run *running = part->task->row_run;
  uint32_t left = pwi_read_count(&list, 8 + PWI_RUN_RESULT_SIZE);
  if (!PWI_GROW(running->items, running->room, running->count + left)) return PAWL_NO_MEMORY;
  struct pwi_run_result result;
  while (next_result(&list, &left, part, claim, &result)) running->items[running->count++] = result;
  return list.status;
}

pawl_status pwi_run_collected(struct client_part *part, struct pwi_reader list) {
  if (list.at == list.end || !covers(list, part, part->claim)) return PAWL_OUTCOME_UNKNOWN;
  return take(part, list, part->claim);
}

pawl_status pwi_run_answered(struct pwi_client *client, struct client_part *part, const struct pwi_outcome *outcome,
                             const void *payload, size_t size) {
  struct pwi_reader list;
  struct pawl_range claim = part->claim;
  pwi_reader_init(&list, payload, payload ? size : 0);
  if (outcome->next > claim.begin && outcome->next < claim.end) claim.end = outcome->next;
  if (payload && !covers(list, part, claim)) payload = NULL;
  pawl_status status = payload ? take(part, list, claim) : PAWL_OUTCOME_UNKNOWN;
  if (status == PAWL_CORRUPT || status == PAWL_TRUNCATED) return status;
  if (status) { /* the rest may still run: the task has failed all the same */
    pwi_part_end(client, part, status);
    return PAWL_OK;
  }
  if (!pwi_linear_keep_rest(client, part, outcome)) return PAWL_OK;
  pwi_part_end(client, part, PAWL_OK);
  return PAWL_OK;
}

/* --- the end -------------------------------------------------------------------------------------------- */

static int compare_origins(const void *a, const void *b) {
  uint64_t first = ((const struct pwi_run_result *)a)->origin, second = ((const struct pwi_run_result *)b)->origin;
  return (first > second) - (first < second);
}

/* Slices that ran different versions of the function have no common result. */
static bool is_alike(const struct pwi_run_result *a, const struct pwi_run_result *b) {
  return a->count == b->count && memcmp(a->combine, b->combine, sizeof a->combine) == 0;
}

static void combine(struct pwi_task *task, const struct pwi_run_result *result) {
  for (uint32_t i = 0; i < result->count; i++)
    pwi_row_combine((enum pawl_row_combine)result->combine[i], &task->results[i], result->values[i]);
}

void pwi_row_run_end(struct pwi_client *client, struct pwi_task *task) {
  struct pwi_row_run *running = task->row_run;
  if (running->count > 1) qsort(running->items, running->count, sizeof *running->items, compare_origins);
  for (size_t i = 0; i < running->count && !task->status; i++) {
    const struct pwi_run_result *result = &running->items[i];
    if (i == 0)
      for (uint32_t r = 0; r < result->count; r++)
        task->results[r] = pwi_row_neutral((enum pawl_row_combine)result->combine[r]);
    if (!is_alike(result, running->items)) task->status = PAWL_MISMATCH;
    if (i == 0 || running->items[i - 1].origin != result->origin) combine(task, result);
  }
  task->result_count = running->count > 0 && !task->status ? running->items->count : 0;
  task->row_run = NULL;
  free_running(client, running);
}
