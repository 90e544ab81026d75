/* Linear algebra on the client's side.
 *
 * TWO FLOWS. A change of y by x reads x when it is applied. The operation names the predecessor on x that the
 * change must see, as the terms name the one on y; a server that lacks it answers GAP. A later push to x, which
 * the change must not see, names the change (READ_FIRST), and the server answers GAP to it as long as it lacks
 * that one. If the change is not on its way, if changes of several vectors read the same keys of x, or after a
 * GAP, the push waits in the client until all of them are answered. A part waits only for parts with lower
 * numbers, so there is no deadlock.
 *
 * THE REST. A server processes a slice of the claim and reports how far it got. The rest of the claim becomes
 * a part of the same task, with the same number and predecessor.
 *
 * SUMS. The parts of a fold are answered in any order, and views may have cut them anywhere. Their sums are
 * kept apart until all are here, and then added by rising key, so that the order of answers does not matter.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "client/inside.h"

/* --- order between flows -------------------------------------------------------------------------------- */

void pwi_linear_begun(struct client_part *part) {
  if (part->other) part->other->readers++;
}

/* Parts that wait for a reader are settled when its whole task is over, because a task has many parts. */
void pwi_linear_over(struct pwi_client *client, struct pwi_flow *flow, const struct client_part *part,
                     bool was_numbered) {
  struct pwi_flow *other = part->other;
  if (other) {
    assert(other->readers > 0);
    if (--other->readers == 0 || part->task->parts == 1) pwi_flow_unblock(client, other);
  }
  if (!was_numbered || flow->readers == 0) return;
  for (struct pwi_flow *reader = client->flows; reader; reader = reader->next)
    if (reader != flow) pwi_flow_unblock(client, reader);
}

static bool reads_before(const struct client_part *reader, const struct client_part *part) {
  return reader->kind == PWI_REQUEST_LINEAR && reader->other == part->flow && reader->number < part->number &&
         reader->claim.begin < part->claim.end && part->claim.begin < reader->claim.end;
}

static bool can_name(const struct client_part *part, const struct client_part *reader) {
  bool is_on_its_way = (reader->state == PART_QUEUED || reader->state == PART_SENT) && !reader->is_collecting;
  bool is_same_vector = part->first.task == 0 || part->first.vector.id == reader->flow->entry.id.id;
  /* In an aggregate a part waits for other members, and names no readers to them. */
  return is_on_its_way && is_same_vector && !part->is_strict && part->aggregate == 0;
}

/* From the begin of the one to the end of the other. */
static struct pawl_range hull(struct pawl_range a, struct pawl_range b) {
  if (pawl_range_is_empty(a)) return b;
  return pawl_range_of(a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end);
}

/* Where the server has applied a task, it has applied the earlier ones of that vector. So the last reader stands for all,
 * if it reads all the keys. (A task reads one range of keys; of its parts those in the middle may be answered.) */
bool pwi_linear_may_follow(const struct pwi_client *client, struct client_part *part) {
  struct pwi_read_first *first = &part->first;
  struct pawl_range earlier = {0};
  *first = (struct pwi_read_first){0};
  if (part->flow->readers == 0 || !pwi_part_is_numbered(part)) return true;
  for (const struct pwi_flow *flow = client->flows; flow; flow = flow->next)
    for (const struct client_part *reader = flow->first; reader; reader = reader->next) {
      if (!reads_before(reader, part)) continue;
      if (!can_name(part, reader) || reader->number < first->task) return false;
      if (reader->number != first->task) {
        earlier = hull(first->range, earlier);
        *first = (struct pwi_read_first){.vector = flow->entry.id, .task = reader->number};
      }
      first->range = hull(first->range, pawl_range_common(reader->claim, part->claim));
    }
  return pawl_range_contains(first->range, earlier);
}

/* --- the rest ------------------------------------------------------------------------------------------- */

bool pwi_linear_keep_rest(struct pwi_client *client, struct client_part *part, const struct pwi_outcome *outcome) {
  bool has_next = outcome->code == PWI_CODE_OK || outcome->code == PWI_CODE_REFUSED;
  if (!has_next || part->is_collecting || outcome->next <= part->claim.begin || outcome->next >= part->claim.end)
    return true;
  pwi_part_hold(client, part, PART_BLOCKED);
  struct client_part *rest = pwi_part_split(client, part, outcome->next);
  if (!rest) {
    pwi_part_retry(client, part);
    return false;
  }
  rest->gaps = 0;
  rest->tries = 0;
  pwi_part_settle(client, rest);
  return true;
}

/* --- sums ----------------------------------------------------------------------------------------------- */

struct folded {
  uint64_t begin;
  struct pwi_sum sum;
};

struct pwi_folding {
  struct pwi_folding *next, *before; /* in the client's list */
  enum pwi_linear kind;
  struct folded *items;
  size_t count, room;
};

pawl_status pwi_folding_begin(struct pwi_client *client, struct pwi_task *task, enum pwi_linear kind) {
  struct pwi_folding *folding = pwi_alloc_zero(1, sizeof *folding);
  if (!folding) return PAWL_NO_MEMORY;
  folding->kind = kind;
  folding->next = client->foldings;
  if (folding->next) folding->next->before = folding;
  client->foldings = folding;
  task->folding = folding;
  return PAWL_OK;
}

static void free_folding(struct pwi_client *client, struct pwi_folding *folding) {
  *(folding->before ? &folding->before->next : &client->foldings) = folding->next;
  if (folding->next) folding->next->before = folding->before;
  pwi_free(folding->items);
  pwi_free(folding);
}

void pwi_foldings_fini(struct pwi_client *client) {
  while (client->foldings) free_folding(client, client->foldings);
}

static int compare_begins(const void *a, const void *b) {
  uint64_t first = ((const struct folded *)a)->begin, second = ((const struct folded *)b)->begin;
  return (first > second) - (first < second);
}

void pwi_folding_end(struct pwi_client *client, struct pwi_task *task) {
  struct pwi_folding *folding = task->folding;
  struct pwi_sum sum = {0};
  if (folding->count > 1) qsort(folding->items, folding->count, sizeof *folding->items, compare_begins);
  for (size_t i = 0; i < folding->count; i++) pwi_sum_join(folding->kind, &sum, folding->items[i].sum);
  task->folded = pwi_sum_value(sum);
  task->folding = NULL;
  free_folding(client, folding);
}

pawl_status pwi_fold_answered(struct pwi_client *client, struct client_part *part, const struct pwi_outcome *outcome,
                              const void *payload, size_t size) {
  struct pwi_folding *folding = part->task->folding;
  const unsigned char *bytes = payload;
  double sum[2];
  if (!payload || size != sizeof sum) return PAWL_CORRUPT;
  uint64_t words[2] = {pwi_get_u64(bytes), pwi_get_u64(bytes + 8)}, begin = part->claim.begin;
  memcpy(sum, words, sizeof sum);
  if (!PWI_GROW(folding->items, folding->room, folding->count + 1)) {
    pwi_part_end(client, part, PAWL_NO_MEMORY);
    return PAWL_OK;
  }
  if (!pwi_linear_keep_rest(client, part, outcome)) return PAWL_OK;
  folding->items[folding->count++] = (struct folded){begin, {sum[0], sum[1]}};
  pwi_part_end(client, part, PAWL_OK);
  return PAWL_OK;
}
