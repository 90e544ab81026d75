#include "store/sketch_top.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(struct pwi_top_slot) == 8 * PWI_TOP_SLOT_WORDS, "slots are words");
static_assert(PWI_TOP_BUCKETS == 256, "eight bits choose a bucket");

void pwi_top_slot_init(struct pwi_top_slot *slot, uint64_t hash, uint64_t estimate, enum pwi_top_kind kind,
                       const char *name, size_t length) {
  if (length > PWI_TOP_NAME_MAX) length = PWI_TOP_NAME_MAX;
  *slot = (struct pwi_top_slot){.hash = hash, .estimate = estimate, .about = length | (uint64_t)kind << 8};
  if (length > 0) memcpy(slot->name, name, length);
}

/* A total order; names are compared only if two items have the same hash. */
static int compare(const struct pwi_top_slot *a, const struct pwi_top_slot *b) {
  if (a->estimate != b->estimate) return a->estimate < b->estimate ? -1 : 1;
  if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
  if (a->about != b->about) return a->about < b->about ? -1 : 1;
  return memcmp(a->name, b->name, sizeof a->name);
}

/* Slots are sorted in descending order. The entry of the same hash is replaced, otherwise the last. */
void pwi_top_offer(uint64_t *row, const struct pwi_top_slot *entry) {
  struct pwi_top_slot *slots = pwi_top_slots(row);
  size_t goes = 0;
  while (goes < PWI_TOP_SLOTS - 1 && (slots[goes].estimate == 0 || slots[goes].hash != entry->hash)) goes++;
  if (compare(entry, &slots[goes]) <= 0) return;
  size_t to = goes;
  while (to > 0 && compare(&slots[to - 1], entry) < 0) to--;
  memmove(&slots[to + 1], &slots[to], (goes - to) * sizeof *slots);
  slots[to] = *entry;
}

static bool is_slot(const struct pwi_top_slot *slot) {
  uint64_t length = slot->about & 0xff, kind = slot->about >> 8;
  if (slot->estimate == 0) return true; /* the rest of an empty slot is never read */
  if (kind > PWI_TOP_NUMBER || length > PWI_TOP_NAME_MAX || (kind == PWI_TOP_NUMBER && length > 0)) return false;
  for (size_t i = length; i < PWI_TOP_NAME_MAX; i++)
    if (slot->name[i]) return false;
  return true;
}

static pawl_status check(const struct pawl_function_call *call) {
  if (call->width != PWI_TOP_WIDTH) return PAWL_REFUSED;
  const uint64_t *row = call->pushed;
  for (size_t i = 0; i < call->count; i++, row += PWI_TOP_WIDTH) {
    const struct pwi_top_slot *slots = (const struct pwi_top_slot *)(row + PWI_TOP_HEAD);
    if (row[1] != 0) return PAWL_REFUSED;
    for (size_t k = 0; k < PWI_TOP_SLOTS; k++)
      if (!is_slot(&slots[k])) return PAWL_REFUSED;
  }
  return PAWL_OK;
}

static void apply_row(uint64_t *stored, const uint64_t *pushed) {
  const struct pwi_top_slot *slots = (const struct pwi_top_slot *)(pushed + PWI_TOP_HEAD);
  if (pushed[0] < stored[0]) return;
  if (pushed[0] > stored[0]) memset(stored, 0, 8 * PWI_TOP_WIDTH);
  stored[0] = pushed[0];
  for (size_t i = 0; i < PWI_TOP_SLOTS; i++)
    if (slots[i].estimate > 0) pwi_top_offer(stored, &slots[i]);
}

static void apply(const struct pawl_function_call *call) {
  const uint64_t *pushed = call->pushed;
  uint64_t *stored = call->stored;
  if (call->width != PWI_TOP_WIDTH) return;
  for (size_t i = 0; i < call->count; i++) apply_row(stored + i * PWI_TOP_WIDTH, pushed + i * PWI_TOP_WIDTH);
}

const struct pawl_server_function pwi_sketch_top = {
    .size = sizeof pwi_sketch_top,
    .name = "sketch_top",
    .about = "merges buckets of the largest entries",
    .types = PAWL_FUNCTION_TYPE(PAWL_U64),
    .flags = PAWL_FUNCTION_CHECKS_PUSH,
    .pushed = {1, 0},
    .stored = {1, 0},
    .check = check,
    .apply = apply,
};
