#include "data/tally.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/words.h"

#define FIRST_WORDS 1024
#define AHEAD 8 /* words that are prefetched before their turn */

void pwi_tally_fini(struct pwi_tally *tally) {
  pwi_free(tally->words);
  pwi_free(tally->slots);
  pwi_free(tally->letters);
  *tally = (struct pwi_tally){0};
}

/* --- room ----------------------------------------------------------------------------------------------- */

static void fill_slots(struct pwi_tally *tally) {
  for (size_t i = 0; i < tally->count; i++) {
    size_t at = (size_t)tally->words[i].hash & (tally->slot_room - 1);
    while (tally->slots[at]) at = (at + 1) & (tally->slot_room - 1);
    tally->slots[at] = (uint32_t)i + 1;
  }
}

/* Makes room for one more word, and keeps the slots at most half full. */
static pawl_status room_for_word(struct pwi_tally *tally) {
  if (tally->count < tally->room) return PAWL_OK;
  size_t room = tally->room ? tally->room * 2 : FIRST_WORDS;
  if (room > UINT32_MAX / 2) return PAWL_NO_MEMORY;
  uint32_t *slots = pwi_alloc_zero(room * 2, sizeof *slots);
  struct pwi_tally_word *words = slots ? pwi_resize_array(tally->words, room, sizeof *words) : NULL;
  if (!words) {
    pwi_free(slots);
    return PAWL_NO_MEMORY;
  }
  pwi_free(tally->slots);
  tally->slots = slots;
  tally->slot_room = room * 2;
  tally->words = words;
  tally->room = room;
  fill_slots(tally);
  return PAWL_OK;
}

static pawl_status room_for_letters(struct pwi_tally *tally, size_t more) {
  size_t needed;
  if (!pwi_add_size(tally->letters_size, more + PWI_WORD_SLACK, &needed)) return PAWL_NO_MEMORY;
  return PWI_GROW(tally->letters, tally->letters_room, needed) ? PAWL_OK : PAWL_NO_MEMORY;
}

/* --- counting ------------------------------------------------------------------------------------------- */

static struct pwi_tally_word *find(const struct pwi_tally *tally, const char *word, size_t length, uint64_t hash) {
  if (!tally->slot_room) return NULL;
  for (size_t at = (size_t)hash & (tally->slot_room - 1); tally->slots[at]; at = (at + 1) & (tally->slot_room - 1)) {
    struct pwi_tally_word *there = &tally->words[tally->slots[at] - 1];
    if (there->hash == hash && there->length == length && pwi_word_equals(tally->letters + there->place, word, length))
      return there;
  }
  return NULL;
}

/* Inserts a new word. */
static pawl_status insert(struct pwi_tally *tally, const char *word, size_t length, uint64_t hash,
                          struct pwi_tally_word **word_out) {
  pawl_status status = room_for_word(tally);
  if (!status) status = room_for_letters(tally, length);
  if (status) return status;
  struct pwi_tally_word *there = &tally->words[tally->count++];
  *there = (struct pwi_tally_word){
      .hash = hash, .last = UINT64_MAX, .place = tally->letters_size, .length = (uint32_t)length};
  memcpy(tally->letters + tally->letters_size, word, length);
  tally->letters_size += length;
  size_t at = (size_t)hash & (tally->slot_room - 1);
  while (tally->slots[at]) at = (at + 1) & (tally->slot_room - 1);
  tally->slots[at] = (uint32_t)tally->count;
  *word_out = there;
  return PAWL_OK;
}

pawl_status pwi_tally_add(struct pwi_tally *tally, const char *word, size_t length, uint64_t hash) {
  struct pwi_tally_word *there = find(tally, word, length, hash);
  pawl_status status = there ? PAWL_OK : insert(tally, word, length, hash, &there);
  if (status) return status;
  there->count++;
  there->documents += there->last != tally->documents;
  there->last = tally->documents;
  return PAWL_OK;
}

pawl_status pwi_tally_merge(struct pwi_tally *tally, const struct pwi_tally *other) {
  for (size_t i = 0; i < other->count; i++) {
    const struct pwi_tally_word *word = &other->words[i];
    if (i + 2 * AHEAD < other->count) pwi_tally_fetch_slot(tally, word[2 * AHEAD].hash);
    if (i + AHEAD < other->count) pwi_tally_fetch_word(tally, word[AHEAD].hash);
    const char *letters = pwi_tally_letters(other, word);
    struct pwi_tally_word *there = find(tally, letters, word->length, word->hash);
    pawl_status status = there ? PAWL_OK : insert(tally, letters, word->length, word->hash, &there);
    if (status) return status;
    there->count += word->count;
    there->documents += word->documents;
  }
  tally->documents += other->documents;
  return PAWL_OK;
}

/* --- forgetting ----------------------------------------------------------------------------------------- */

/* The words and letters that would remain if only words with a count above `least` stayed. */
static void left_above(const struct pwi_tally *tally, uint64_t least, size_t *count_out, size_t *letters_out) {
  *count_out = *letters_out = 0;
  for (size_t i = 0; i < tally->count; i++) {
    if (tally->words[i].count <= least) continue;
    ++*count_out;
    *letters_out += tally->words[i].length;
  }
}

static void keep_above(struct pwi_tally *tally, uint64_t least) {
  size_t kept = 0, size = 0;
  for (size_t i = 0; i < tally->count; i++) { /* places increase, so letters move towards the beginning */
    struct pwi_tally_word word = tally->words[i];
    if (word.count <= least) continue;
    memmove(tally->letters + size, tally->letters + word.place, word.length);
    word.place = size;
    size += word.length;
    tally->words[kept++] = word;
  }
  tally->count = kept;
  tally->letters_size = size;
  memset(tally->slots, 0, tally->slot_room * sizeof *tally->slots);
  fill_slots(tally);
}

void pwi_tally_forget(struct pwi_tally *tally, size_t most, size_t most_letters) {
  size_t count = tally->count, letters = tally->letters_size;
  uint64_t least = 0;
  while (count > most || letters > most_letters) left_above(tally, least = least * 2 + 1, &count, &letters);
  if (least > 0) keep_above(tally, least);
}
