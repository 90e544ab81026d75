/* Splits text into words. Most characters are ASCII, which are classified eight at a time; libunistring
 * classifies the others. */
#include "data/formats/tokenizer.h"

#include <unicase.h>
#include <unictype.h>

#include "base/bytes.h"
#include "data/formats/utf8.h"

#define EACH(byte) ((uint64_t)(byte)*UINT64_C(0x0101010101010101))

/* The high bit of each byte that lies in [low, high]. All bytes are ASCII, so no sum carries into the next
 * byte. */
static inline uint64_t within(uint64_t eight, unsigned low, unsigned high) {
  return (eight + EACH(0x80 - low)) & ~(eight + EACH(0x7f - high)) & EACH(0x80);
}

/* Classifies eight bytes; a byte that is not ASCII counts as neither letter nor digit. Returns the bytes
 * in lower case. `*others_out` has the high bit of each byte that is neither letter nor digit,
 * `*letters_out` of each letter. */
static inline uint64_t look(const char *at, uint64_t *others_out, uint64_t *letters_out) {
  uint64_t eight = pwi_get_u64(at), not_ascii = eight & EACH(0x80), ascii = eight & EACH(0x7f);
  uint64_t lower = ascii | EACH(0x20); /* digits already have this bit */
  uint64_t letters = within(lower, 'a', 'z') & ~not_ascii, digits = within(ascii, '0', '9') & ~not_ascii;
  *letters_out = letters;
  *others_out = ~(letters | digits) & EACH(0x80);
  return lower;
}

static bool is_ascii_word(char c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

#define RIGHT_QUOTE 0x2019

enum character_kind { SEPARATOR, LETTER, DIGIT, MARK };

static enum character_kind kind_of(uint32_t character) {
  if (uc_is_property_alphabetic(character)) return LETTER;
  if (uc_is_general_category_withtable(character, UC_CATEGORY_MASK_Nd)) return DIGIT;
  return uc_is_general_category_withtable(character, UC_CATEGORY_MASK_M) ? MARK : SEPARATOR;
}

/* Whether a letter or a digit stands at `at`. */
static bool begins_word(const char *at, const char *end) {
  uint32_t character;
  if (at == end) return false;
  if ((unsigned char)*at < 0x80) return is_ascii_word(*at);
  pwi_utf8_get(at, &character);
  enum character_kind kind = kind_of(character);
  return kind == LETTER || kind == DIGIT;
}

/* A word that is being read. */
struct token {
  char *letters;
  size_t length;
  bool has_letter, is_long;
};

static void append(struct token *word, uint32_t character) {
  char bytes[4];
  size_t size = pwi_utf8_put(character, bytes);
  if (size > PAWL_WORD_MAX - word->length) {
    word->is_long = true;
    return;
  }
  for (size_t i = 0; i < size; i++) word->letters[word->length++] = bytes[i];
}

/* Handles a character that is not an ASCII letter or digit. Returns how many of its bytes belong to the
 * word; 0: the word ends here. */
static size_t append_other(const struct pwi_tokenizer *text, struct token *word, const char *at) {
  uint32_t character;
  size_t size = pwi_utf8_get(at, &character);
  bool is_inside = word->length > 0 || word->is_long;
  if (character == '\'' || character == RIGHT_QUOTE) {
    if (!is_inside || !begins_word(at + size, text->end)) return 0;
    append(word, '\'');
    return size;
  }
  if (character < 0x80) return 0;
  enum character_kind kind = kind_of(character);
  if (kind == SEPARATOR || (kind == MARK && !is_inside)) return 0;
  word->has_letter |= kind == LETTER;
  append(word, uc_tolower(character));
  return size;
}

/* Appends ASCII letters and digits, up to the first other character, and returns its position. */
static inline const char *run_of_ascii(const char *at, struct token *word) {
  for (;;) {
    uint64_t others, letters, lower = look(at, &others, &letters);
    unsigned count = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
    if (count > PAWL_WORD_MAX - word->length) {
      word->is_long = true;
      word->length = 1; /* the word is too long; its letters no longer matter */
    }
    pwi_put_u64(word->letters + word->length, lower);
    word->length += count;
    word->has_letter |= (letters & (others - 1) & ~others) != 0;
    at += count;
    if (count < 8) return at;
  }
}

/* Appends the run at `at`, which may be empty, and returns its end. */
static inline const char *run(const struct pwi_tokenizer *text, const char *at, struct token *word) {
  for (;;) {
    at = run_of_ascii(at, word);
    if (at >= text->end || ((unsigned char)*at < 0x80 && *at != '\'')) return at;
    size_t size = append_other(text, word, at);
    if (size == 0) return at;
    at += size;
  }
}

size_t pwi_tokenizer_next(struct pwi_tokenizer *text, char *letters) {
  const char *at = text->at, *end = text->end;
  while (at < end) {
    struct token word = {.letters = letters};
    uint32_t ignored;
    if ((unsigned char)*at < 0x80 && !is_ascii_word(*at)) {
      at++;
      continue;
    }
    const char *stop = run(text, at, &word);
    at = stop > at ? stop : at + pwi_utf8_get(at, &ignored);
    if (!word.has_letter) continue;
    if (word.is_long) {
      text->long_words++;
      continue;
    }
    text->at = at;
    return word.length;
  }
  text->at = end;
  return 0;
}
