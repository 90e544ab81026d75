/* Searches for an order of asks that explains their replies, by depth first (Wing and Gong 1993), and remembers the
 * situations from which there is no way on. */
#include "sim/campaign/workloads/name_history.h"

#include <string.h>

#include "base/hash.h"

#define ANY UINT64_MAX /* the id of a vector that an ask without a reply has created */
#define KNOWN_MAX 4096 /* situations that are remembered */
#define STEPS_MAX 400000

/* The vector that has the name. */
struct holder {
  uint64_t id; /* 0: none */
  uint32_t incarnation;
};

struct name_search {
  const struct pwi_name_op *ops;
  size_t count;
  uint64_t replied; /* the operations with a reply, as bits */
  uint64_t known[KNOWN_MAX];
  unsigned steps;
};

static bool is_id(const struct holder *holder, uint64_t id) { return holder->id == id || holder->id == ANY; }

/* What the operation makes of the holder; false if it cannot have happened now with this reply. */
static bool apply(const struct pwi_name_op *op, struct holder *holder) {
  bool is_known = op->end == PWI_NAME_DONE;
  switch (op->kind) {
  case PWI_NAME_CREATE:
    if (op->end == PWI_NAME_REFUSED) return holder->id != 0;
    if (holder->id != 0) return false;
    *holder = (struct holder){is_known ? op->id : ANY, 0};
    return true;
  case PWI_NAME_DELETE:
    if (op->end == PWI_NAME_REFUSED) return holder->id == 0;
    if (holder->id == 0) return false;
    *holder = (struct holder){0};
    return true;
  case PWI_NAME_RESTORE:
    if (op->end == PWI_NAME_REFUSED) return false;
    if (holder->id == 0) {
      *holder = (struct holder){is_known ? op->id : ANY, 0};
      return true;
    }
    if (is_known && !is_id(holder, op->id)) return false;
    if (is_known) holder->id = op->id;
    holder->incarnation++;
    return true;
  case PWI_NAME_MISSING:
    return holder->id != op->id;
  case PWI_NAME_SEEN:
    if (op->id == 0) return holder->id == 0;
    return holder->id != 0 && is_id(holder, op->id) && holder->incarnation == op->incarnation;
  }
  return false;
}

/* No operation that is still to come had ended before this one began. */
static bool is_next(const struct name_search *search, uint64_t done, size_t i) {
  for (size_t k = 0; k < search->count; k++) {
    if (done >> k & 1 || search->ops[k].end == PWI_NAME_UNKNOWN) continue;
    if (search->ops[k].ended < search->ops[i].begun) return false;
  }
  return true;
}

static bool was_here(struct name_search *search, uint64_t done, const struct holder *holder) {
  uint64_t facts[] = {done, holder->id, holder->incarnation};
  uint64_t hash = pwi_hash(facts, sizeof facts, 0) | 1, *known = &search->known[hash % KNOWN_MAX];
  bool was = *known == hash;
  *known = hash;
  return was;
}

static bool is_explained(struct name_search *search, uint64_t done, struct holder holder) {
  if ((done & search->replied) == search->replied) return true;
  if (++search->steps > STEPS_MAX) return true;
  if (was_here(search, done, &holder)) return false;
  for (size_t i = 0; i < search->count; i++) {
    struct holder next = holder;
    if (done >> i & 1 || !is_next(search, done, i) || !apply(&search->ops[i], &next)) continue;
    if (is_explained(search, done | UINT64_C(1) << i, next)) return true;
  }
  return false;
}

bool pwi_name_history_is_possible(const struct pwi_name_op *ops, size_t count) {
  struct name_search search = {.ops = ops, .count = count};
  for (size_t i = 0; i < count; i++)
    if (ops[i].end != PWI_NAME_UNKNOWN) search.replied |= UINT64_C(1) << i;
  return is_explained(&search, 0, (struct holder){0});
}
