/* A tally: how often words occur, and in how many documents.
 *
 * Belongs to one thread at a time. Errors: PAWL_NO_MEMORY.
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
  uint64_t last; /* the document that had it last */
  size_t place;  /* of its letters */
  uint32_t length;
};

/* A struct of zeros is an empty one. */
struct pwi_tally {
  struct pwi_tally_word *words;
  size_t count, room;
  uint32_t *slots;  /* numbers of words, plus 1; 0: free */
  size_t slot_room; /* a power of two, or 0 */
  char *letters;
  size_t letters_size, letters_room;
  uint64_t documents;
};

void pwi_tally_fini(struct pwi_tally *tally);

/* A word, with slack behind it and its pwi_word_hash, of the document that is being read, whose number is tally->documents. */
PAWL_MUST_USE pawl_status pwi_tally_add(struct pwi_tally *tally, const char *word, size_t length, uint64_t hash);

/* Fetch, without waiting, where a word of this hash is looked for first; and then, once that is there, the word that it leads to. */
static inline void pwi_tally_fetch_slot(const struct pwi_tally *tally, uint64_t hash) {
  if (tally->slot_room) __builtin_prefetch(&tally->slots[hash & (tally->slot_room - 1)]);
}

static inline void pwi_tally_fetch_word(const struct pwi_tally *tally, uint64_t hash) {
  uint32_t number = tally->slot_room ? tally->slots[hash & (tally->slot_room - 1)] : 0;
  if (number) __builtin_prefetch(&tally->words[number - 1]);
}

/* Adds what another has counted, in documents that this one has not seen. */
PAWL_MUST_USE pawl_status pwi_tally_merge(struct pwi_tally *tally, const struct pwi_tally *other);

/* Forgets words that occur seldom: those with the lowest counts, until there are no more than `most` and their letters take no more
 * than `most_letters` bytes. Which of them go depends on counts alone. */
void pwi_tally_forget(struct pwi_tally *tally, size_t most, size_t most_letters);

static inline const char *pwi_tally_letters(const struct pwi_tally *tally, const struct pwi_tally_word *word) {
  return tally->letters + word->place;
}

#endif
