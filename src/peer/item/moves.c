/* Sets of ranks that are due, and buffers of operations under way. */
#include <string.h>

#include "base/memory.h"
#include "peer/item/inside.h"

/* --- marks ---------------------------------------------------------------------------------------------- */

static bool make_words(struct item_marks *marks, uint32_t size) {
  if (marks->words) return true;
  marks->words = pwi_alloc_zero((size_t)size / 64 + 1, sizeof *marks->words);
  marks->size = size;
  return marks->words != NULL;
}

bool pwi_item_is_marked(const struct item_marks *marks, uint32_t rank) {
  return marks->words && (marks->words[rank / 64] >> rank % 64 & 1);
}

bool pwi_item_mark(struct item_marks *marks, uint32_t size, uint32_t rank) {
  if (!make_words(marks, size)) return false;
  if (pwi_item_is_marked(marks, rank)) return true;
  marks->words[rank / 64] |= UINT64_C(1) << rank % 64;
  marks->count++;
  return true;
}

void pwi_item_unmark(struct item_marks *marks, uint32_t rank) {
  if (!pwi_item_is_marked(marks, rank)) return;
  marks->words[rank / 64] &= ~(UINT64_C(1) << rank % 64);
  marks->count--;
}

static uint32_t search(const struct item_marks *marks, uint32_t from) {
  size_t words = (size_t)marks->size / 64 + 1;
  uint64_t word = marks->words[from / 64] & UINT64_MAX << from % 64;
  for (size_t i = from / 64; i < words;) {
    if (word) return (uint32_t)(i * 64) + (uint32_t)__builtin_ctzll(word);
    if (++i < words) word = marks->words[i];
  }
  return ITEM_NO_RANK;
}

uint32_t pwi_item_next_mark(struct item_marks *marks) {
  if (marks->count == 0) return ITEM_NO_RANK;
  uint32_t rank = search(marks, marks->cursor);
  if (rank == ITEM_NO_RANK) rank = search(marks, 0);
  marks->cursor = rank;
  return rank;
}

void pwi_item_marks_fini(struct item_marks *marks) {
  pwi_free(marks->words);
  *marks = (struct item_marks){0};
}

/* --- buffers -------------------------------------------------------------------------------------------- */

struct item_buffer *pwi_item_buffer_take(struct pwi_items *engine, struct item_peer *peer) {
  struct item_buffer *buffer = engine->spare;
  if (peer->moving >= ITEM_MOVING_MAX) return NULL;
  if (buffer)
    engine->spare = buffer->next;
  else
    buffer = pwi_alloc(sizeof *buffer + engine->buffer_cells * engine->stride);
  if (!buffer) return NULL;
  peer->moving++;
  *buffer = (struct item_buffer){.next = engine->buffers, .cookie = ++engine->last_cookie, .peer = peer->sender};
  engine->buffers = buffer;
  return buffer;
}

struct item_buffer *pwi_item_buffer_done(struct pwi_items *engine, uint64_t cookie) {
  for (struct item_buffer **at = &engine->buffers; *at; at = &(*at)->next) {
    struct item_buffer *buffer = *at;
    if (buffer->cookie != cookie) continue;
    struct item_peer *peer = pwi_item_find(engine, buffer->peer.id);
    if (peer && peer->moving > 0) peer->moving--;
    *at = buffer->next;
    return buffer;
  }
  return NULL;
}

void pwi_item_buffer_give(struct pwi_items *engine, struct item_buffer *buffer) {
  buffer->next = engine->spare;
  engine->spare = buffer;
}
