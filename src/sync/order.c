#include "sync/order.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

/* An entry in the list of successors of a task. */
struct follower {
  struct follower *next;
  struct open_task *step;
};

struct open_task {
  struct pwi_ordered_task id;
  void *item;
  struct open_task *parent;
  size_t waits_for;               /* number of unfinished predecessors */
  size_t children;                /* number of unfinished subtasks */
  struct follower *followers;     /* list of its successors */
  struct pwi_ordered_task *after; /* ids of its predecessors that were unfinished when it was added */
  size_t after_count;
  bool is_out, has_ended, is_over; /* returned by pwi_task_order_next; its own work has ended; finished, but not
                                      yet processed */
  bool is_anyway;                  /* it runs whether its predecessors succeed or fail */
  struct pwi_task_end end;         /* the first failure so far */
  struct open_task *next;          /* link of the list of tasks about to finish */
  struct follower links[];         /* one per predecessor, linked into the list of that predecessor */
};

/* --- creation ------------------------------------------------------------------------------------------- */

void pwi_task_order_init(struct pwi_task_order *order,
                         void (*finished)(void *context, struct pwi_ordered_task step, void *item,
                                          struct pwi_task_end end),
                         void *context) {
  memset(order, 0, sizeof *order);
  pwi_fifo_init(&order->ready, sizeof(struct pwi_ordered_task));
  order->finished = finished;
  order->context = context;
}

static void destroy(struct open_task *step) {
  pwi_free(step->after);
  pwi_free(step);
}

void pwi_task_order_fini(struct pwi_task_order *order) {
  for (size_t i = 0; i < order->open.room; i++)
    if (order->open.slots[i].id != 0) destroy(order->open.slots[i].item);
  pwi_idmap_fini(&order->open);
  pwi_fifo_fini(&order->ready);
}

static struct open_task *find(const struct pwi_task_order *order, struct pwi_ordered_task id) {
  return pwi_idmap_get(&order->open, id.id);
}

/* --- failures ------------------------------------------------------------------------------------------- */

static void remember(struct pwi_task_order *order, struct pwi_ordered_task id, struct pwi_task_end end) {
  size_t at = order->failure_count++ % PWI_TASK_ORDER_FAILURES;
  order->failures[at].step = id;
  order->failures[at].end = end;
}

static struct pwi_task_end recall(const struct pwi_task_order *order, struct pwi_ordered_task id) {
  size_t count = order->failure_count < PWI_TASK_ORDER_FAILURES ? order->failure_count : PWI_TASK_ORDER_FAILURES;
  for (size_t i = 0; i < count; i++)
    if (order->failures[i].step.id == id.id) return order->failures[i].end;
  return (struct pwi_task_end){PAWL_OK, {0}};
}

static void blame(struct open_task *step, struct pwi_task_end end) {
  if (!step->end.status) step->end = end;
}

/* --- finishing ------------------------------------------------------------------------------------------ */

static void make_ready(struct pwi_task_order *order, const struct open_task *step) {
  struct pwi_ordered_task *place = pwi_fifo_push(&order->ready);
  assert(place && "room was made when it was added");
  *place = step->id;
}

/* Finished tasks are put on a list and processed in a loop, so that a chain of a million failures needs no
 * deep recursion. */
static void look(struct open_task *step, struct open_task **over) {
  bool is_stopped = !step->is_out && step->end.status && step->waits_for == 0;
  if (step->is_over || step->children > 0 || !(step->has_ended || is_stopped)) return;
  step->is_over = true;
  step->next = *over;
  *over = step;
}

static void pass_on(struct pwi_task_order *order, struct open_task *step, struct open_task **over) {
  for (struct follower *follower = step->followers; follower; follower = follower->next) {
    struct open_task *later = follower->step;
    later->waits_for--;
    if (step->end.status && !later->is_anyway) blame(later, (struct pwi_task_end){PAWL_CANCELLED, step->end.cause});
    if (later->waits_for > 0) continue;
    if (later->end.status)
      look(later, over);
    else
      make_ready(order, later);
  }
  if (!step->parent) return;
  step->parent->children--;
  if (step->end.status) blame(step->parent, step->end);
  look(step->parent, over);
}

static void finish(struct pwi_task_order *order, struct open_task *over) {
  while (over) {
    struct open_task *step = over;
    over = step->next;
    pwi_idmap_remove(&order->open, step->id.id);
    if (step->end.status) remember(order, step->id, step->end);
    pass_on(order, step, &over);
    if (order->finished) order->finished(order->context, step->id, step->item, step->end);
    destroy(step);
  }
}

void pwi_task_order_end(struct pwi_task_order *order, struct pwi_ordered_task id, pawl_status status) {
  struct open_task *step = find(order, id), *over = NULL;
  assert(step && step->is_out && !step->has_ended);
  step->has_ended = true;
  if (status) blame(step, (struct pwi_task_end){status, id});
  look(step, &over);
  finish(order, over);
}

/* --- beginning ------------------------------------------------------------------------------------------ */

static struct open_task *create(const struct pwi_task_order *order, size_t count) {
  struct open_task *step = pwi_alloc_zero(1, sizeof *step + count * sizeof *step->links);
  if (!step) return NULL;
  step->after = count > 0 ? pwi_alloc_zero(count, sizeof *step->after) : NULL;
  if (count > 0 && !step->after) {
    pwi_free(step);
    return NULL;
  }
  step->id.id = order->last + 1;
  return step;
}

static void follow(struct pwi_task_order *order, struct open_task *step, const struct pwi_ordered_task *after,
                   size_t count) {
  for (size_t i = 0; i < count; i++) {
    struct open_task *before = find(order, after[i]);
    if (!before) {
      struct pwi_task_end end = recall(order, after[i]);
      if (end.status && !step->is_anyway) blame(step, (struct pwi_task_end){PAWL_CANCELLED, end.cause});
      continue;
    }
    struct follower *link = &step->links[step->after_count];
    *link = (struct follower){before->followers, step};
    before->followers = link;
    step->after[step->after_count++] = after[i];
    step->waits_for++;
  }
}

/* Reserves room for all open tasks to be ready at once, so that no later step can fail. */
static pawl_status make_room(struct pwi_task_order *order, struct open_task *step) {
  pawl_status status = pwi_fifo_reserve(&order->ready, order->open.count + 1);
  return status ? status : pwi_idmap_put(&order->open, step->id.id, step);
}

static pawl_status add(struct pwi_task_order *order, const struct pwi_ordered_task *after, size_t count,
                       struct pwi_ordered_task parent, bool is_anyway, void *item, struct pwi_ordered_task *step_out) {
  struct open_task *above = parent.id ? find(order, parent) : NULL, *over = NULL;
  if (parent.id && (!above || above->is_over)) return PAWL_INVALID;
  for (size_t i = 0; i < count; i++)
    if (after[i].id == 0 || after[i].id > order->last) return PAWL_INVALID;
  struct open_task *step = create(order, count);
  if (!step) return PAWL_NO_MEMORY;
  pawl_status status = make_room(order, step);
  if (status) {
    destroy(step);
    return status;
  }
  order->last++;
  step->item = item;
  step->is_anyway = is_anyway;
  step->parent = above;
  if (above) above->children++;
  follow(order, step, after, count);
  *step_out = step->id;
  if (step->waits_for > 0) return PAWL_OK;
  if (!step->end.status) make_ready(order, step);
  look(step, &over);
  finish(order, over);
  return PAWL_OK;
}

pawl_status pwi_task_order_add(struct pwi_task_order *order, const struct pwi_ordered_task *after, size_t count,
                               struct pwi_ordered_task parent, void *item, struct pwi_ordered_task *step_out) {
  return add(order, after, count, parent, false, item, step_out);
}

pawl_status pwi_task_order_add_anyway(struct pwi_task_order *order, const struct pwi_ordered_task *after, size_t count,
                                      struct pwi_ordered_task parent, void *item, struct pwi_ordered_task *step_out) {
  return add(order, after, count, parent, true, item, step_out);
}

bool pwi_task_order_next(struct pwi_task_order *order, struct pwi_ordered_task *step_out, void **item_out) {
  if (pwi_fifo_count(&order->ready) == 0) return false;
  struct pwi_ordered_task id = *(struct pwi_ordered_task *)pwi_fifo_at(&order->ready, 0);
  struct open_task *step = find(order, id);
  pwi_fifo_pop(&order->ready);
  assert(step);
  step->is_out = true;
  *step_out = id;
  *item_out = step->item;
  return true;
}

/* --- queries -------------------------------------------------------------------------------------------- */

bool pwi_task_order_is_finished(const struct pwi_task_order *order, struct pwi_ordered_task id,
                                struct pwi_task_end *end_out) {
  if (id.id == 0 || id.id > order->last || find(order, id)) return false;
  if (end_out) *end_out = recall(order, id);
  return true;
}

size_t pwi_task_order_open(const struct pwi_task_order *order) { return order->open.count; }

struct pwi_ordered_task pwi_task_order_waits_for(const struct pwi_task_order *order, struct pwi_ordered_task id) {
  const struct open_task *step = find(order, id);
  for (size_t i = 0; step && i < step->after_count; i++)
    if (find(order, step->after[i])) return step->after[i];
  return (struct pwi_ordered_task){0};
}

/* --- whole graphs --------------------------------------------------------------------------------------- */

/* Repeatedly removes tasks without predecessors. The rest consists of cycles and their successors. Walking
 * backwards from any remaining task eventually visits a task twice; that task is in a cycle. */
static uint32_t find_in_cycle(size_t count, const struct pwi_edge *edges, size_t edge_count, const uint32_t *waits) {
  uint32_t at = 0;
  while (waits[at] == 0) at++;
  for (size_t steps = 0; steps < count; steps++)
    for (size_t i = 0; i < edge_count; i++)
      if (edges[i].to == at && waits[edges[i].from] > 0) {
        at = edges[i].from;
        break;
      }
  return at;
}

/* Edges grouped by origin: those of task t are `first[t]` to `first[t + 1]` of `tos`. While the array is
 * filled, `first[t + 1]` is the place of the next edge of t. */
static void sort_edges(size_t count, const struct pwi_edge *edges, size_t edge_count, size_t *first, uint32_t *tos,
                       uint32_t *waits) {
  for (size_t i = 0; i < edge_count; i++) {
    first[edges[i].from + 2]++;
    waits[edges[i].to]++;
  }
  for (size_t i = 1; i <= count; i++) first[i + 1] += first[i];
  for (size_t i = 0; i < edge_count; i++) tos[first[edges[i].from + 1]++] = edges[i].to;
}

static pawl_status sort(size_t count, const struct pwi_edge *edges, size_t edge_count, uint32_t *sorted,
                        uint32_t *culprit_out) {
  size_t *first = pwi_alloc_zero(count + 3, sizeof *first), taken = 0, known = 0;
  uint32_t *waits = pwi_alloc_zero(count + 1, sizeof *waits), *tos = pwi_alloc_zero(edge_count + 1, sizeof *tos);
  pawl_status status = first && waits && tos ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) sort_edges(count, edges, edge_count, first, tos, waits);
  for (uint32_t i = 0; i < count && !status; i++)
    if (waits[i] == 0) sorted[known++] = i;
  for (; taken < known; taken++)
    for (size_t i = first[sorted[taken]]; i < first[sorted[taken] + 1]; i++)
      if (--waits[tos[i]] == 0) sorted[known++] = tos[i];
  if (!status && taken < count) {
    if (culprit_out) *culprit_out = find_in_cycle(count, edges, edge_count, waits);
    status = PAWL_INVALID;
  }
  pwi_free(tos);
  pwi_free(waits);
  pwi_free(first);
  return status;
}

pawl_status pwi_task_order_sort(size_t count, const struct pwi_edge *edges, size_t edge_count, uint32_t *sorted,
                                uint32_t *culprit_out) {
  if (count > UINT32_MAX) return PAWL_TOO_LARGE;
  for (size_t i = 0; i < edge_count; i++) {
    if (edges[i].from < count && edges[i].to < count) continue;
    if (culprit_out) *culprit_out = edges[i].from < count ? edges[i].to : edges[i].from;
    return PAWL_INVALID;
  }
  return count > 0 ? sort(count, edges, edge_count, sorted, culprit_out) : PAWL_OK;
}
