/* Vocabularies: the functions of <pawl/words.h>, with errors explained in a struct pwi_fault.
 *
 * The words are stored one behind another, each preceded by its number and its length. A hash table of
 * slots leads from a word's hash to its place, so a lookup touches two cache lines. A vocabulary never
 * changes once made; any number of threads may read it.
 */
#ifndef PWI_DATA_WORDS_H
#define PWI_DATA_WORDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <pawl/words.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "data/fault.h"

#define PWI_WORDS_MAX ((uint64_t)1 << 31)
#define PWI_WORD_STEP 8 /* words begin at multiples of this many bytes */
#define PWI_WORD_HEAD 5 /* bytes before the letters: number (u32) and length (u8) */

struct pwi_word_slot {
  uint32_t tag;   /* upper half of the hash */
  uint32_t place; /* place of the word in units of PWI_WORD_STEP, plus 1; 0: free */
};

struct pawl_words {
  _Atomic uint64_t references;
  uint64_t count, fingerprint;
  unsigned char *bytes; /* for each word: number, length, letters, zero */
  uint32_t *places;     /* place of each word by number, in units of PWI_WORD_STEP */
  struct pwi_word_slot *slots;
  uint64_t mask;
};

#define PWI_WORD_SLACK 8 /* readable bytes required behind a word that is looked up */

/* Reads the next eight letters of a word; bytes behind its end count as zeros. The tokenizer writes
 * letters at these same addresses and widths, so the loads are served from the processor's store buffer
 * and do not stall. */
static inline uint64_t pwi_word_part(const char *word, size_t left) {
  uint64_t eight = pwi_get_u64(word);
  return left >= 8 ? eight : eight & ~(UINT64_MAX << 8 * left);
}

static inline uint64_t pwi_word_fold(uint64_t a, uint64_t b) {
  __extension__ unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Hashes a word of one letter or more, with slack behind it. This hash is for lookup tables only: ids of
 * hashed words come from pwi_hash. */
static inline uint64_t pwi_word_hash(const char *word, size_t length) {
  const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
  uint64_t hash = length * odd;
  for (; length > 8; word += 8, length -= 8)
    hash = pwi_word_fold(pwi_get_u64(word) ^ odd, hash ^ UINT64_C(0xbf58476d1ce4e5b9));
  hash = pwi_word_fold(pwi_word_part(word, length) ^ odd, hash ^ UINT64_C(0x94d049bb133111eb));
  return pwi_mix64(hash);
}

static inline bool pwi_word_equals(const char *a, const char *b, size_t length) {
  for (; length > 8; a += 8, b += 8, length -= 8)
    if (pwi_get_u64(a) != pwi_get_u64(b)) return false;
  return pwi_word_part(a, length) == pwi_word_part(b, length);
}

/* The number of a word, given its hash; PAWL_NO_WORD if it is unknown. The word has slack behind it. */
static inline uint64_t pwi_words_find(const struct pawl_words *words, const char *word, size_t length, uint64_t hash) {
  uint32_t tag = (uint32_t)(hash >> 32);
  for (uint64_t i = hash & words->mask; words->slots[i].place; i = (i + 1) & words->mask) {
    if (words->slots[i].tag != tag) continue;
    const unsigned char *there = words->bytes + (size_t)(words->slots[i].place - 1) * PWI_WORD_STEP;
    if (there[4] == length && pwi_word_equals((const char *)there + PWI_WORD_HEAD, word, length))
      return pwi_get_u32(there);
  }
  return PAWL_NO_WORD;
}

/* Prefetch the memory that pwi_words_find will touch: first the slot of a hash, then, once the slot has
 * arrived, the word that it refers to. */
static inline void pwi_words_fetch_slot(const struct pawl_words *words, uint64_t hash) {
  __builtin_prefetch(&words->slots[hash & words->mask]);
}

static inline void pwi_words_fetch_word(const struct pawl_words *words, uint64_t hash) {
  uint32_t place = words->slots[hash & words->mask].place;
  if (place) __builtin_prefetch(words->bytes + (size_t)(place - 1) * PWI_WORD_STEP);
}

/* A word to add, with slack behind it. */
struct pwi_word {
  const char *letters;
  size_t length; /* 1 … PAWL_WORD_MAX */
};

/* Makes a vocabulary of `count` words, numbered 0, 1, … in the order in which `next` returns them. `total`
 * is the sum of their lengths. PAWL_EXISTS: a word occurs twice, and `*twice_out` is the number of its
 * second occurrence. PAWL_NO_MEMORY, PAWL_TOO_LARGE. */
PAWL_MUST_USE pawl_status pwi_words_make(uint64_t count, uint64_t total, struct pwi_word (*next)(void *context),
                                         void *context, struct pawl_words **words_out, uint64_t *twice_out);

PAWL_MUST_USE pawl_status pwi_words_read(const char *path, struct pawl_words **words_out, struct pwi_fault *fault);

/* As pwi_words_read, from text in memory that is followed by PWI_WORD_SLACK + 1 writable bytes. `path` is
 * for the fault. */
PAWL_MUST_USE pawl_status pwi_words_parse(const char *path, char *text, size_t size, struct pawl_words **words_out,
                                          struct pwi_fault *fault);
PAWL_MUST_USE pawl_status pwi_words_write(const struct pawl_words *words, const char *path, struct pwi_fault *fault);
PAWL_MUST_USE pawl_status pwi_words_build(struct pawl_data *data, const struct pawl_words_options *options,
                                          struct pawl_words **words_out, struct pwi_fault *fault);

const char *pwi_words_at(const struct pawl_words *words, uint64_t number); /* NULL if there is no such word */
struct pawl_words *pwi_words_retain(const struct pawl_words *words);       /* NULL is fine */
void pwi_words_release(struct pawl_words *words);                          /* NULL is fine */

/* English stop words, one per line. */
extern const char pwi_words_english[];

#endif
