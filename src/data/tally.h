/* A tally counts how often words occur, and in how many documents.
 *
 * A tally belongs to one thread at a time. Errors: PAWL_NO_MEMORY.
 */
#ifndef PWI_DATA_TALLY_H
#define PWI_DATA_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>

struct pwi_tally_word {
  uint64_t hash, count, documents;
  uint64_t last; /* the last document that contained the word */
  size_t place;  /* of its first letter in `letters` */
  uint32_t length;
};

/* A struct of zeros is an empty tally. */
struct pwi_tally {
  struct pwi_tally_word *words;
  size_t count, room;
  uint32_t *slots;  /* number of a word plus 1; 0: free */
  size_t slot_room; /* a power of two, or 0 */
  char *letters;
  size_t letters_size, letters_room;
  uint64_t documents;
};

void pwi_tally_fini(struct pwi_tally *tally);

/* Counts a word in the current document, whose number is tally->documents. The word has slack behind it;
 * `hash` is its pwi_word_hash. */
PAWL_MUST_USE pawl_status pwi_tally_add(struct pwi_tally *tally, const char *word, size_t length, uint64_t hash);

/* Prefetch the memory that pwi_tally_add will touch: first the slot of a hash, then, once the slot has
 * arrived, the word that it refers to. */
static inline void pwi_tally_fetch_slot(const struct pwi_tally *tally, uint64_t hash) {
  if (tally->slot_room) __builtin_prefetch(&tally->slots[hash & (tally->slot_room - 1)]);
}

static inline void pwi_tally_fetch_word(const struct pwi_tally *tally, uint64_t hash) {
  uint32_t number = tally->slot_room ? tally->slots[hash & (tally->slot_room - 1)] : 0;
  if (number) __builtin_prefetch(&tally->words[number - 1]);
}

/* Adds the counts of another tally. The two tallies must not have seen the same documents. */
PAWL_MUST_USE pawl_status pwi_tally_merge(struct pwi_tally *tally, const struct pwi_tally *other);

/* Forgets rare words, those with the lowest counts first, until at most `most` words remain and their
 * letters take at most `most_letters` bytes. The choice depends on counts alone. */
void pwi_tally_forget(struct pwi_tally *tally, size_t most, size_t most_letters);

static inline const char *pwi_tally_letters(const struct pwi_tally *tally, const struct pwi_tally_word *word) {
  return tally->letters + word->place;
}

#endif
