/* Events ordered by time, and by creation where times are equal: a heap with four children per node, which
 * is flatter than a binary one and keeps siblings in one or two cache lines. The keys are in the heap
 * itself, so sifting never touches the events. A cancelled event stays until its turn. When many are
 * cancelled the heap is rebuilt without them, which changes no order, because no two keys are equal. */
#include <string.h>

#include "base/memory.h"
#include "sim/world.h"

#define CHILDREN 4
#define EVENTS_AT_A_TIME 256

struct sim_block {
  struct sim_block *next;
  _Alignas(16) unsigned char bytes[];
};

void *pwi_sim_block(struct pwi_sim *sim, size_t size) {
  struct sim_block *block = pwi_alloc(sizeof *block + size);
  if (!block) return NULL;
  memset(block, 0, sizeof *block + size);
  block->next = sim->blocks;
  sim->blocks = block;
  return block->bytes;
}

void pwi_sim_events_free(struct pwi_sim *sim) {
  pwi_free(sim->heap);
  while (sim->blocks) {
    struct sim_block *block = sim->blocks;
    sim->blocks = block->next;
    pwi_free(block);
  }
}

static bool fill_event_pool(struct pwi_sim *sim) {
  struct sim_event *events = pwi_sim_block(sim, EVENTS_AT_A_TIME * sizeof *events);
  if (!events) return false;
  for (size_t i = 0; i < EVENTS_AT_A_TIME; i++) {
    events[i].next = sim->event_pool;
    sim->event_pool = &events[i];
  }
  sim->event_spare += EVENTS_AT_A_TIME;
  return true;
}

pawl_status pwi_sim_reserve(struct pwi_sim *sim, size_t count) {
  while (sim->event_spare < count)
    if (!fill_event_pool(sim)) return PAWL_NO_MEMORY;
  return PWI_GROW(sim->heap, sim->heap_room, sim->heap_count + count) ? PAWL_OK : PAWL_NO_MEMORY;
}

static inline bool is_before(const struct heap_entry *a, const struct heap_entry *b) {
  return a->time < b->time || (a->time == b->time && a->sequence < b->sequence);
}

static void sift_up(struct heap_entry *heap, size_t at, struct heap_entry entry) {
  while (at > 0) {
    size_t parent = (at - 1) / CHILDREN;
    if (!is_before(&entry, &heap[parent])) break;
    heap[at] = heap[parent];
    at = parent;
  }
  heap[at] = entry;
}

static void sift_down(struct heap_entry *heap, size_t count, size_t at, struct heap_entry entry) {
  for (;;) {
    size_t first = at * CHILDREN + 1;
    if (first >= count) break;
    size_t last = first + CHILDREN < count ? first + CHILDREN : count;
    size_t least = first;
    for (size_t child = first + 1; child < last; child++)
      if (is_before(&heap[child], &heap[least])) least = child;
    if (!is_before(&heap[least], &entry)) break;
    heap[at] = heap[least];
    at = least;
  }
  heap[at] = entry;
}

struct sim_event *pwi_sim_schedule(struct pwi_sim *sim, int64_t time, enum sim_event_kind kind, struct sim_node *node) {
  if ((!sim->event_pool || sim->heap_count == sim->heap_room) && pwi_sim_reserve(sim, 1)) {
    pwi_sim_fail(sim, PAWL_NO_MEMORY, "not enough memory for events");
    return &sim->dummy;
  }
  struct sim_event *event = sim->event_pool;
  sim->event_pool = event->next;
  sim->event_spare--;
  *event = (struct sim_event){
      .time = time > sim->now ? time : sim->now,
      .node = node,
      .incarnation = node ? node->incarnation : 0,
      .kind = (uint8_t)kind,
  };
  struct heap_entry entry = {event->time, ++sim->sequence, event};
  sift_up(sim->heap, sim->heap_count++, entry);
  return event;
}

struct sim_event *pwi_sim_schedule_end(struct pwi_sim *sim, int64_t time, enum sim_event_kind kind, struct sim_end *end,
                                       bool travels) {
  struct sim_event *event = pwi_sim_schedule(sim, time, kind, end->node);
  event->end = end;
  event->end_serial = end->serial;
  if (travels) event->from = end->peer->node;
  return event;
}

static void rebuild_without_cancelled(struct pwi_sim *sim) {
  size_t kept = 0;
  for (size_t i = 0; i < sim->heap_count; i++) {
    if (sim->heap[i].event->cancelled)
      pwi_sim_event_free(sim, sim->heap[i].event);
    else
      sim->heap[kept++] = sim->heap[i];
  }
  sim->heap_count = kept;
  sim->cancelled = 0;
  for (size_t at = kept; at-- > 0;) sift_down(sim->heap, kept, at, sim->heap[at]);
}

/* The event may be in a node's queue by now; then it is checked at its turn. */
void pwi_sim_cancel(struct pwi_sim *sim, struct sim_event *event) {
  event->cancelled = true;
  sim->cancelled++;
  if (sim->cancelled > 1024 && sim->cancelled > sim->heap_count / 2) rebuild_without_cancelled(sim);
}

struct sim_event *pwi_sim_take_at(struct pwi_sim *sim, size_t at) {
  struct sim_event *event = sim->heap[at].event;
  struct heap_entry last = sim->heap[--sim->heap_count];
  if (at == sim->heap_count) return event;
  if (at > 0 && is_before(&last, &sim->heap[(at - 1) / CHILDREN]))
    sift_up(sim->heap, at, last);
  else
    sift_down(sim->heap, sim->heap_count, at, last);
  return event;
}

struct sim_event *pwi_sim_take(struct pwi_sim *sim, int64_t limit) {
  while (sim->heap_count > 0 && sim->heap[0].time <= limit) {
    struct sim_event *event = pwi_sim_take_at(sim, 0);
    if (!event->cancelled) return event;
    if (sim->cancelled > 0) sim->cancelled--;
    pwi_sim_event_free(sim, event);
  }
  return NULL;
}

void pwi_sim_event_free(struct pwi_sim *sim, struct sim_event *event) {
  event->next = sim->event_pool;
  sim->event_pool = event;
  sim->event_spare++;
}

void pwi_sim_queue_add(struct sim_queue *queue, struct sim_event *event) {
  event->next = NULL;
  if (queue->tail)
    queue->tail->next = event;
  else
    queue->head = event;
  queue->tail = event;
}

struct sim_event *pwi_sim_queue_take(struct sim_queue *queue) {
  struct sim_event *event = queue->head;
  if (!event) return NULL;
  queue->head = event->next;
  if (!queue->head) queue->tail = NULL;
  return event;
}
