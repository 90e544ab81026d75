#include "wire/residuals.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "wire/filter_rows.h"
#include "wire/values.h"

#define TAG_BYTES sizeof(uint64_t)
#define FIRST_ROOM 8 /* rows may be large */
#define AHEAD 16     /* rows between the prefetch of a slot and its use */

void pwi_residuals_init(struct pwi_residuals *residuals, enum pawl_type type, uint32_t width, size_t limit) {
  size_t row_bytes = pwi_value_size((enum pwi_value_type)type) * width;
  *residuals = (struct pwi_residuals){.type = type, .width = width, .row_bytes = row_bytes, .limit = limit};
  residuals->slot_bytes = TAG_BYTES + (row_bytes + 7) / 8 * 8;
}

void pwi_residuals_fini(struct pwi_residuals *residuals) {
  pwi_pages_fini(&residuals->order);
  pwi_pages_fini(&residuals->slots);
  residuals->room = residuals->count = 0;
}

size_t pwi_residuals_memory(const struct pwi_residuals *residuals) {
  return residuals->slots.size + residuals->order.size;
}

/* --- slots ---------------------------------------------------------------------------------------------- */

/* A tag is the key plus 1, so that zeroed memory is free. The highest key is in no vector. */
static char *slot_at(const struct pwi_residuals *residuals, size_t at) {
  return (char *)residuals->slots.memory + at * residuals->slot_bytes;
}

static uint64_t tag_of(const char *slot) {
  uint64_t tag;
  memcpy(&tag, slot, sizeof tag);
  return tag;
}

static void set_tag(char *slot, uint64_t tag) { memcpy(slot, &tag, sizeof tag); }

static bool is_held(const char *slot) { return tag_of(slot) != 0; }

/* Eight neighbouring keys stay adjacent; these groups are scattered. */
static size_t home_of(const struct pwi_residuals *residuals, uint64_t key) {
  uint64_t eight = key >> 3;
  eight = (eight ^ (eight >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
  eight ^= eight >> 29;
  eight *= UINT64_C(0xbf58476d1ce4e5b9);
  eight ^= eight >> 32;
  return (size_t)(eight << 3 | (key & 7)) & (residuals->room - 1);
}

/* The slot of a key, or the free slot where it would be added. */
static size_t find(const struct pwi_residuals *residuals, uint64_t key) {
  size_t mask = residuals->room - 1, at = home_of(residuals, key);
  for (;; at = (at + 1) & mask) {
    uint64_t tag = tag_of(slot_at(residuals, at));
    if (tag == 0 || tag == key + 1) return at;
  }
}

/* Moves every entry that probed past the hole into it. */
static void remove_slot(struct pwi_residuals *residuals, size_t hole) {
  size_t mask = residuals->room - 1;
  for (size_t at = (hole + 1) & mask; is_held(slot_at(residuals, at)); at = (at + 1) & mask) {
    size_t home = home_of(residuals, tag_of(slot_at(residuals, at)) - 1);
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    memcpy(slot_at(residuals, hole), slot_at(residuals, at), residuals->slot_bytes);
    hole = at;
  }
  set_tag(slot_at(residuals, hole), 0);
  residuals->count--;
}

static void hold(struct pwi_residuals *residuals, size_t at, uint64_t key, const void *row) {
  char *slot = slot_at(residuals, at);
  if (!is_held(slot)) {
    set_tag(slot, key + 1);
    residuals->count++;
  }
  memcpy(slot + TAG_BYTES, row, residuals->row_bytes);
}

/* --- room ----------------------------------------------------------------------------------------------- */

static pawl_status grow(struct pwi_residuals *residuals, size_t rows) {
  struct pwi_residuals larger = *residuals;
  size_t bytes;
  larger.slots = (struct pwi_pages){0};
  if (larger.room == 0) larger.room = FIRST_ROOM;
  while (larger.room / 2 < rows)
    if (!pwi_mul_size(larger.room, 2, &larger.room)) return PAWL_OVERFLOW;
  if (!pwi_mul_size(larger.room, larger.slot_bytes, &bytes)) return PAWL_OVERFLOW;
  pawl_status status = pwi_pages_grow(&larger.slots, bytes);
  if (status) return status;
  for (size_t i = 0; i < residuals->room; i++) {
    const char *slot = slot_at(residuals, i);
    if (is_held(slot)) memcpy(slot_at(&larger, find(&larger, tag_of(slot) - 1)), slot, residuals->slot_bytes);
  }
  pwi_pages_fini(&residuals->slots);
  *residuals = larger;
  return PAWL_OK;
}

struct residual_place {
  uint64_t key;
  uint64_t at; /* its slot */
};

pawl_status pwi_residuals_reserve(struct pwi_residuals *residuals, size_t rows, bool flush) {
  size_t most, bytes;
  if (flush) {
    if (!pwi_mul_size(residuals->count, 2 * sizeof(struct residual_place), &bytes)) return PAWL_OVERFLOW;
    return residuals->count ? pwi_pages_grow(&residuals->order, bytes) : PAWL_OK;
  }
  if (!pwi_add_size(residuals->count, rows, &most)) return PAWL_OVERFLOW;
  if (most > residuals->limit) most = residuals->limit;
  if (residuals->room && most <= residuals->room / 2) return PAWL_OK;
  return grow(residuals, most);
}

/* --- passing -------------------------------------------------------------------------------------------- */

static bool is_zero(const void *row, size_t bytes) {
  const char *at = row;
  for (size_t i = 0; i < bytes; i++)
    if (at[i]) return false;
  return true;
}

/* True if the row is sent. */
static bool pass_row(struct pwi_residuals *residuals, uint64_t key, void *row, pwi_residuals_due *due, void *context) {
  size_t at = find(residuals, key);
  bool held = is_held(slot_at(residuals, at));
  if (held) pwi_row_add(residuals->type, residuals->width, row, slot_at(residuals, at) + TAG_BYTES);
  bool sent = due(context, row) || (!held && residuals->count >= residuals->limit);
  if (!sent && !is_zero(row, residuals->row_bytes))
    hold(residuals, at, key, row);
  else if (held)
    remove_slot(residuals, at);
  return sent;
}

void pwi_residuals_pass(struct pwi_residuals *residuals, struct pawl_rows *rows, pwi_residuals_due *due,
                        void *context) {
  size_t kept = 0;
  assert(residuals->room > 0 && rows->bytes == residuals->row_bytes);
  for (size_t i = 0; i < rows->count; i++) {
    if (i + AHEAD < rows->count) __builtin_prefetch(slot_at(residuals, home_of(residuals, rows->keys[i + AHEAD])), 1);
    char *row = (char *)rows->values + i * rows->bytes;
    if (pass_row(residuals, rows->keys[i], row, due, context)) pawl_rows_move(rows, i, kept++);
  }
  rows->count = kept;
}

/* --- flushing ------------------------------------------------------------------------------------------- */

/* Radix sort by key, from the lowest byte; a byte that all keys share is skipped after one pass over the
 * counts. Returns the array with the result: `places` or `spare`. */
static struct residual_place *sort_places(struct residual_place *places, struct residual_place *spare, size_t count) {
  for (unsigned shift = 0; shift < 64; shift += 8) {
    size_t starts[256] = {0};
    for (size_t i = 0; i < count; i++) starts[places[i].key >> shift & 255]++;
    if (starts[places[0].key >> shift & 255] == count) continue;
    for (size_t b = 0, sum = 0; b < 256; b++) {
      size_t size = starts[b];
      starts[b] = sum;
      sum += size;
    }
    for (size_t i = 0; i < count; i++) spare[starts[places[i].key >> shift & 255]++] = places[i];
    struct residual_place *sorted = spare;
    spare = places;
    places = sorted;
  }
  return places;
}

static size_t list_places(const struct pwi_residuals *residuals, struct residual_place *places) {
  size_t count = 0;
  for (size_t at = 0; at < residuals->room; at++) {
    uint64_t tag = tag_of(slot_at(residuals, at));
    if (tag) places[count++] = (struct residual_place){tag - 1, at};
  }
  return count;
}

/* Adds the residuals of keys that are among the rows, and removes them from the map. */
static void add_residuals_of_rows(struct pwi_residuals *residuals, struct pawl_rows *rows) {
  for (size_t i = 0; i < rows->count; i++) {
    size_t at = find(residuals, rows->keys[i]);
    if (!is_held(slot_at(residuals, at))) continue;
    pwi_row_add(residuals->type, residuals->width, (char *)rows->values + i * rows->bytes,
                slot_at(residuals, at) + TAG_BYTES);
    remove_slot(residuals, at);
  }
}

/* Merges from the last row to the first, so that no row is overwritten before it has moved. */
static void merge(const struct pwi_residuals *residuals, const struct residual_place *places, size_t count,
                  struct pawl_rows *rows) {
  size_t left = rows->count, to = rows->count + count;
  assert(to <= rows->room);
  rows->count = to;
  while (count > 0) {
    to--;
    if (left > 0 && rows->keys[left - 1] > places[count - 1].key) {
      pawl_rows_move(rows, --left, to);
      continue;
    }
    count--;
    rows->keys[to] = places[count].key;
    memcpy((char *)rows->values + to * rows->bytes, slot_at(residuals, places[count].at) + TAG_BYTES, rows->bytes);
  }
}

void pwi_residuals_flush(struct pwi_residuals *residuals, struct pawl_rows *rows) {
  if (residuals->count > 0) {
    add_residuals_of_rows(residuals, rows);
    struct residual_place *places = residuals->order.memory;
    size_t count = list_places(residuals, places);
    if (count > 0) merge(residuals, sort_places(places, places + count, count), count, rows);
  }
  pwi_residuals_fini(residuals);
}
