#include "client/calls/callee.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/idmap.h"
#include "base/memory.h"
#include "base/rangeset.h"

/* An item of the order. */
struct order_item {
  enum { ITEM_GRAPH, ITEM_RUNNING, ITEM_ISSUED } kind;
  void *self;
};

struct caller {
  uint64_t id;
  struct pwi_rangeset heard; /* numbers whose answers the caller has; these calls are forgotten */
  struct pwi_callee_graph *first;
  size_t count;
};

/* A graph, from its CALL until its caller has the answer. */
struct pwi_callee_graph {
  struct order_item item;
  struct pwi_callee_graph *next;           /* in the list of its caller */
  struct pwi_callee_graph *all_next, **at; /* in the list of all */
  struct pwi_callee_graph *completed_next;
  struct caller *caller; /* NULL: no answer is sent */
  uint64_t number, link;
  void *local; /* of a local call */
  struct pwi_call_graph *graph;
  struct pwi_running *runs;
  struct order_item *items; /* one for each run */
  size_t result_bytes;
  struct pwi_ordered_task step;
  bool is_void; /* no memory to begin: nothing of it runs */
  bool is_done;
  struct pwi_writer answer;
  unsigned char *plain; /* memory for an answer without results */
  size_t plain_size;
};

struct pwi_callee {
  void (*run)(void *context, struct pwi_running *running);
  void *run_context;
  void (*answer)(void *context, const struct pwi_callee_answer *answer);
  void *context;
  struct pwi_idmap callers; /* struct caller * by id */
  struct pwi_callee_graph *all;
  struct pwi_callee_graph *completed, **completed_end;
  size_t open;
  bool is_stopped, is_pumping, is_telling;
  struct pwi_task_order order;
};

static struct order_item issued = {ITEM_ISSUED, NULL};

/* --- life of a graph ------------------------------------------------------------------------------------ */

static void free_work(struct pwi_callee_graph *incoming) {
  for (uint32_t i = 0; incoming->runs && i < incoming->graph->count; i++) pwi_free(incoming->runs[i].bytes);
  pwi_free(incoming->runs);
  pwi_free(incoming->items);
  pwi_call_graph_destroy(incoming->graph);
  incoming->runs = NULL;
  incoming->items = NULL;
  incoming->graph = NULL;
}

static void destroy(struct pwi_callee_graph *incoming) {
  if (incoming->at) {
    *incoming->at = incoming->all_next;
    if (incoming->all_next) incoming->all_next->at = incoming->at;
  }
  free_work(incoming);
  pwi_writer_fini(&incoming->answer);
  pwi_free(incoming->plain);
  pwi_free(incoming);
}

/* The graph belongs to the caller until this succeeds. NULL: no memory. */
static struct pwi_callee_graph *create(struct pwi_callee *callee, struct pwi_call_graph *graph) {
  struct pwi_callee_graph *incoming = pwi_alloc_zero(1, sizeof *incoming);
  if (!incoming) return NULL;
  incoming->item = (struct order_item){ITEM_GRAPH, incoming};
  incoming->plain_size = 5 + (size_t)12 * graph->count;
  incoming->plain = pwi_alloc(incoming->plain_size);
  incoming->runs = pwi_alloc_zero(graph->count, sizeof *incoming->runs);
  incoming->items = pwi_alloc_zero(graph->count, sizeof *incoming->items);
  if (!incoming->plain || !incoming->runs || !incoming->items) {
    pwi_free(incoming->runs);
    incoming->runs = NULL;
    destroy(incoming);
    return NULL;
  }
  incoming->graph = graph;
  incoming->at = &callee->all;
  incoming->all_next = callee->all;
  if (callee->all) callee->all->at = &incoming->all_next;
  callee->all = incoming;
  return incoming;
}

static void tell(struct pwi_callee *callee, const struct pwi_callee_graph *incoming, const void *payload, size_t size) {
  struct pwi_callee_answer answer = {incoming->link, incoming->number, incoming->local, payload, size};
  bool has_way = incoming->local || (incoming->caller && incoming->link != 0);
  if (has_way) callee->answer(callee->context, &answer);
}

/* Sends an answer that is a code, or a code and a status. It is built on the stack and not kept. */
static void say(struct pwi_callee *callee, uint64_t link, uint64_t number, enum pwi_call_code code,
                pawl_status status) {
  unsigned char bytes[32];
  struct pwi_writer writer = pwi_writer_over(bytes, sizeof bytes);
  struct pwi_call_result result = {.status = status, .cause = PAWL_CALL_NONE};
  pwi_call_return_encode(code, &result, code == PWI_CALL_CODE_REFUSED ? 1 : 0, &writer);
  struct pwi_callee_answer answer = {.link = link, .number = number, .payload = writer.data, .size = writer.size};
  callee->answer(callee->context, &answer);
}

/* --- callers -------------------------------------------------------------------------------------------- */

static void forget(struct caller *caller, struct pwi_callee_graph **at) {
  struct pwi_callee_graph *incoming = *at;
  *at = incoming->next;
  caller->count--;
  incoming->caller = NULL;
  if (incoming->is_done) destroy(incoming); /* otherwise when it is done */
}

/* If there is no memory to record the numbers, their calls are kept. */
static void hear(struct caller *caller, struct pawl_range numbers) {
  if (pwi_rangeset_contains(&caller->heard, numbers) || pwi_rangeset_add(&caller->heard, numbers) != PAWL_OK) return;
  for (struct pwi_callee_graph **at = &caller->first; *at;) {
    if (pawl_range_has(numbers, (*at)->number))
      forget(caller, at);
    else
      at = &(*at)->next;
  }
}

static void forget_caller(struct pwi_callee *callee, struct caller *caller) {
  while (caller->first) forget(caller, &caller->first);
  pwi_idmap_remove(&callee->callers, caller->id);
  pwi_rangeset_fini(&caller->heard);
  pwi_free(caller);
}

static struct caller *find_caller(struct pwi_callee *callee, uint64_t id) {
  struct caller *caller = pwi_idmap_get(&callee->callers, id);
  if (caller) return caller;
  caller = pwi_alloc_zero(1, sizeof *caller);
  if (!caller) return NULL;
  caller->id = id;
  if (pwi_idmap_put(&callee->callers, id, caller)) {
    pwi_free(caller);
    return NULL;
  }
  return caller;
}

static struct pwi_callee_graph *find_call(const struct caller *caller, uint64_t number) {
  struct pwi_callee_graph *incoming = caller->first;
  while (incoming && incoming->number != number) incoming = incoming->next;
  return incoming;
}

/* Removing reorders the map, so the search restarts after each. */
void pwi_callee_set_membership(struct pwi_callee *callee, const struct pwi_membership *membership) {
  for (bool found = true; found;) {
    found = false;
    for (size_t i = 0; i < callee->callers.room && !found; i++) {
      uint64_t id = callee->callers.slots[i].id;
      if (id == 0 || (membership && pwi_membership_is_live(membership, (struct pwi_sender){id}))) continue;
      forget_caller(callee, callee->callers.slots[i].item);
      found = true;
    }
  }
}

void pwi_callee_renew(struct pwi_callee *callee) { pwi_callee_set_membership(callee, NULL); }

void pwi_callee_link_down(struct pwi_callee *callee, uint64_t link) {
  for (struct pwi_callee_graph *incoming = callee->all; incoming; incoming = incoming->all_next)
    if (incoming->link == link) incoming->link = 0;
}

/* Ignores numbers that were never called, so that they take no memory. */
void pwi_callee_heard(struct pwi_callee *callee, uint64_t id, uint64_t number, uint64_t settled) {
  struct caller *caller = pwi_idmap_get(&callee->callers, id);
  if (!caller || settled == UINT64_MAX) return;
  hear(caller, pawl_range_of(1, settled + 1));
  if (find_call(caller, number)) hear(caller, pawl_range_of(number, number + 1));
}

/* --- answers -------------------------------------------------------------------------------------------- */

/* The call of the graph that failed. The failed step may be a task that the call had started. */
static uint32_t find_cause(const struct pwi_callee_graph *incoming, const struct pwi_running *running) {
  if (running->end.status != PAWL_CANCELLED || running->end.cause.id == running->step.id) return PAWL_CALL_NONE;
  for (uint32_t i = 0; i < incoming->graph->count; i++) {
    const struct pwi_running *other = &incoming->runs[i];
    if (other == running || !other->end.status) continue;
    bool is_first = other->end.cause.id == running->end.cause.id &&
                    (other->step.id == other->end.cause.id || other->end.status != PAWL_CANCELLED);
    if (is_first) return i;
  }
  return PAWL_CALL_NONE;
}

/* Without memory for the results the answer has their statuses, because the calls have run. */
static void make_answer(struct pwi_callee_graph *incoming) {
  uint32_t count = incoming->graph->count;
  struct pwi_call_result *results = pwi_alloc_zero(count, sizeof *results);
  for (uint32_t i = 0; results && i < count; i++) {
    const struct pwi_running *running = &incoming->runs[i];
    results[i] =
        (struct pwi_call_result){running->end.status, find_cause(incoming, running), running->bytes, running->size};
  }
  if (results) pwi_call_return_encode(PWI_CALL_CODE_DONE, results, count, &incoming->answer);
  pwi_free(results);
  if (results && !incoming->answer.status) return;
  pwi_writer_fini(&incoming->answer);
  incoming->answer = pwi_writer_over(incoming->plain, incoming->plain_size);
  pwi_write_u8(&incoming->answer, PWI_CALL_CODE_DONE);
  pwi_write_u32(&incoming->answer, count);
  for (uint32_t i = 0; i < count; i++) {
    pawl_status status = incoming->runs[i].end.status;
    pwi_write_u32(&incoming->answer, (uint32_t)(status ? status : PAWL_NO_MEMORY));
    pwi_write_u32(&incoming->answer, PAWL_CALL_NONE);
    pwi_write_u32(&incoming->answer, 0);
  }
}

/* Runs outside of the order, because `answer` may end steps of it. */
static void complete(struct pwi_callee *callee, struct pwi_callee_graph *incoming) {
  callee->open--;
  incoming->is_done = true;
  if (!incoming->is_void) {
    make_answer(incoming);
    free_work(incoming);
    tell(callee, incoming, incoming->answer.data, incoming->answer.size);
    if (!incoming->caller) destroy(incoming);
    return;
  }
  if (incoming->caller) {
    say(callee, incoming->link, incoming->number, PWI_CALL_CODE_LATER, PAWL_OK);
    struct pwi_callee_graph **at = &incoming->caller->first;
    while (*at != incoming) at = &(*at)->next;
    forget(incoming->caller, at);
    return;
  }
  if (incoming->local) {
    struct pwi_call_result result = {.status = PAWL_NO_MEMORY, .cause = PAWL_CALL_NONE};
    incoming->answer = pwi_writer_over(incoming->plain, incoming->plain_size);
    pwi_call_return_encode(PWI_CALL_CODE_REFUSED, &result, 1, &incoming->answer);
    tell(callee, incoming, incoming->answer.data, incoming->answer.size);
  }
  destroy(incoming);
}

static void tell_completed(struct pwi_callee *callee) {
  if (callee->is_telling) return;
  callee->is_telling = true;
  while (callee->completed) {
    struct pwi_callee_graph *incoming = callee->completed;
    callee->completed = incoming->completed_next;
    if (!callee->completed) callee->completed_end = &callee->completed;
    complete(callee, incoming);
  }
  callee->is_telling = false;
}

static void finished(void *context, struct pwi_ordered_task step, void *item, struct pwi_task_end end) {
  struct pwi_callee *callee = context;
  struct order_item *about = item;
  (void)step;
  if (about->kind == ITEM_RUNNING) {
    ((struct pwi_running *)about->self)->end = end;
  } else if (about->kind == ITEM_GRAPH) {
    struct pwi_callee_graph *incoming = about->self;
    incoming->completed_next = NULL;
    *callee->completed_end = incoming;
    callee->completed_end = &incoming->completed_next;
  }
}

/* --- running -------------------------------------------------------------------------------------------- */

/* Begins a step. The step of a graph itself ends at once. */
static void begin_item(struct pwi_callee *callee, struct pwi_ordered_task step, const struct order_item *item) {
  if (item->kind == ITEM_GRAPH) pwi_task_order_end(&callee->order, step, PAWL_OK);
  if (item->kind != ITEM_RUNNING) return;
  struct pwi_running *running = item->self;
  if (running->incoming->is_void)
    pwi_task_order_end(&callee->order, step, PAWL_NO_MEMORY);
  else if (!callee->run)
    pwi_task_order_end(&callee->order, step, PAWL_NOT_FOUND);
  else
    callee->run(callee->run_context, running);
}

static void pump_now(struct pwi_callee *callee) {
  struct pwi_ordered_task step;
  void *item;
  while (pwi_task_order_next(&callee->order, &step, &item)) begin_item(callee, step, item);
}

static void pump(struct pwi_callee *callee) {
  if (!callee->is_pumping) {
    callee->is_pumping = true;
    pump_now(callee);
    callee->is_pumping = false;
  }
  tell_completed(callee);
}

static int compare_ends(const void *a, const void *b) {
  const struct pwi_edge *one = a, *other = b;
  return one->to < other->to ? -1 : one->to > other->to;
}

/* Adds the calls of a graph as its children, each after its predecessors. Edges are sorted by their target,
 * so that the edges to one call are adjacent. */
static pawl_status add_runs(struct pwi_callee *callee, struct pwi_callee_graph *incoming) {
  struct pwi_call_graph *graph = incoming->graph;
  size_t *first = pwi_alloc_zero((size_t)graph->count + 2, sizeof *first);
  struct pwi_ordered_task *after = pwi_alloc_zero((size_t)graph->edge_count + 1, sizeof *after);
  pawl_status status = first && after ? PAWL_OK : PAWL_NO_MEMORY;
  if (graph->edge_count > 0) qsort(graph->edges, graph->edge_count, sizeof *graph->edges, compare_ends);
  for (uint32_t i = 0; i < graph->edge_count && !status; i++) first[graph->edges[i].to + 1]++;
  for (uint32_t i = 0; i < graph->count && !status; i++) first[i + 1] += first[i];
  for (uint32_t i = 0; i < graph->count && !status; i++) {
    uint32_t call = graph->sorted[i];
    struct pwi_running *running = &incoming->runs[call];
    size_t count = 0;
    for (size_t edge = first[call]; edge < first[call + 1]; edge++)
      after[count++] = incoming->runs[graph->edges[edge].from].step;
    incoming->items[call] = (struct order_item){ITEM_RUNNING, running};
    running->item = &graph->items[call];
    running->index = call;
    running->incoming = incoming;
    status = pwi_task_order_add(&callee->order, after, count, incoming->step, &incoming->items[call], &running->step);
  }
  pwi_free(after);
  pwi_free(first);
  return status;
}

/* No call begins before the whole graph is in the order. */
static pawl_status begin(struct pwi_callee *callee, struct pwi_callee_graph *incoming, uint64_t caller) {
  static const struct pwi_ordered_task nobody;
  pawl_status status = pwi_task_order_add(&callee->order, NULL, 0, nobody, &incoming->item, &incoming->step);
  if (status) return status;
  callee->open++;
  for (uint32_t i = 0; i < incoming->graph->count; i++) incoming->runs[i].caller = caller;
  incoming->is_void = add_runs(callee, incoming) != PAWL_OK;
  return PAWL_OK;
}

static pawl_status take_new(struct pwi_callee *callee, struct caller *caller, uint64_t number, uint64_t link,
                            const void *payload, size_t size) {
  struct pwi_call_graph *graph;
  uint64_t target;
  pawl_status status = pwi_call_decode(payload, size, &target, &graph);
  if (status) return status;
  struct pwi_callee_graph *incoming = create(callee, graph);
  if (!incoming) {
    pwi_call_graph_destroy(graph);
    return PAWL_NO_MEMORY;
  }
  incoming->number = number;
  incoming->link = link;
  status = begin(callee, incoming, caller->id);
  if (status) {
    destroy(incoming);
    return status;
  }
  incoming->caller = caller;
  incoming->next = caller->first;
  caller->first = incoming;
  caller->count++;
  return PAWL_OK;
}

pawl_status pwi_callee_take(struct pwi_callee *callee, uint64_t id, uint64_t number, uint64_t settled, uint64_t link,
                            const void *payload, size_t size) {
  if (number == 0 || id == 0 || settled >= number) return PAWL_CORRUPT;
  struct caller *caller = find_caller(callee, id);
  if (!caller) {
    say(callee, link, number, PWI_CALL_CODE_LATER, PAWL_OK);
    return PAWL_OK;
  }
  hear(caller, pawl_range_of(1, settled + 1));
  /* A late copy of a call whose answer the caller has. */
  if (pwi_rangeset_has(&caller->heard, number)) return PAWL_OK;
  struct pwi_callee_graph *known = find_call(caller, number);
  if (known) {
    if (link > known->link) known->link = link; /* what an earlier link brings late must not take the answer along */
    if (known->is_done) tell(callee, known, known->answer.data, known->answer.size);
    return PAWL_OK;
  }
  bool is_full = caller->count >= PWI_CALLEE_UNHEARD;
  if (is_full || callee->is_stopped) {
    say(callee, link, number, is_full ? PWI_CALL_CODE_LATER : PWI_CALL_CODE_REFUSED, PAWL_NODE_STOPPED);
    return PAWL_OK;
  }
  pawl_status status = take_new(callee, caller, number, link, payload, size);
  if (status == PAWL_CORRUPT) return status;
  if (status == PAWL_NO_MEMORY)
    say(callee, link, number, PWI_CALL_CODE_LATER, PAWL_OK);
  else if (status)
    say(callee, link, number, PWI_CALL_CODE_REFUSED, status);
  pump(callee);
  return PAWL_OK;
}

pawl_status pwi_callee_call_here(struct pwi_callee *callee, uint64_t caller, void *local,
                                 struct pwi_call_graph *graph) {
  if (callee->is_stopped) return PAWL_NODE_STOPPED;
  struct pwi_callee_graph *incoming = create(callee, graph);
  if (!incoming) return PAWL_NO_MEMORY;
  incoming->local = local;
  pawl_status status = begin(callee, incoming, caller);
  if (status) {
    incoming->graph = NULL;
    pwi_free(incoming->runs);
    incoming->runs = NULL;
    destroy(incoming);
    return status;
  }
  pump(callee);
  return PAWL_OK;
}

void pwi_callee_end(struct pwi_callee *callee, struct pwi_running *running, pawl_status status, void *bytes,
                    size_t size) {
  struct pwi_callee_graph *incoming = running->incoming;
  if (size > PAWL_CALL_BYTES - incoming->result_bytes) {
    if (!status) status = PAWL_TOO_LARGE;
    pwi_free(bytes);
    bytes = NULL;
    size = 0;
  }
  running->bytes = bytes;
  running->size = size;
  incoming->result_bytes += size;
  pwi_task_order_end(&callee->order, running->step, status);
  pump(callee);
}

/* The caller may end the step at once, so it must have begun by then, whatever else is ready before it. */
pawl_status pwi_callee_issue(struct pwi_callee *callee, struct pwi_running *running,
                             struct pwi_ordered_task *step_out) {
  pawl_status status = pwi_task_order_add(&callee->order, NULL, 0, running->step, &issued, step_out);
  if (!status) pump_now(callee);
  return status;
}

void pwi_callee_issued_end(struct pwi_callee *callee, struct pwi_ordered_task step, pawl_status status) {
  pwi_task_order_end(&callee->order, step, status);
  pump(callee);
}

/* --- life ----------------------------------------------------------------------------------------------- */

pawl_status pwi_callee_create(void (*answer)(void *context, const struct pwi_callee_answer *answer), void *context,
                              struct pwi_callee **callee_out) {
  struct pwi_callee *callee = pwi_alloc_zero(1, sizeof *callee);
  if (!callee) return PAWL_NO_MEMORY;
  callee->answer = answer;
  callee->context = context;
  callee->completed_end = &callee->completed;
  pwi_task_order_init(&callee->order, finished, callee);
  *callee_out = callee;
  return PAWL_OK;
}

void pwi_callee_destroy(struct pwi_callee *callee) {
  if (!callee) return;
  while (callee->all) destroy(callee->all);
  for (size_t i = 0; i < callee->callers.room; i++) {
    struct caller *caller = callee->callers.slots[i].id ? callee->callers.slots[i].item : NULL;
    if (caller) pwi_rangeset_fini(&caller->heard);
    pwi_free(caller);
  }
  pwi_idmap_fini(&callee->callers);
  pwi_task_order_fini(&callee->order);
  pwi_free(callee);
}

void pwi_callee_set_host(struct pwi_callee *callee, void (*run)(void *context, struct pwi_running *running),
                         void *context) {
  callee->run = run;
  callee->run_context = context;
}

void pwi_callee_stop(struct pwi_callee *callee) { callee->is_stopped = true; }

size_t pwi_callee_open(const struct pwi_callee *callee) { return callee->open; }
