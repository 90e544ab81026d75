/* Cutting text into words. Most characters are ASCII, and are told by a table; the others by libunistring. */
#include "data/text.h"

#include <unicase.h>
#include <unictype.h>

#include "data/utf8.h"

/* The lower case of ASCII's letters and digits; 0 for what separates. */
static const char lower[256] = {
    ['0'] = '0', ['1'] = '1', ['2'] = '2', ['3'] = '3', ['4'] = '4', ['5'] = '5', ['6'] = '6', ['7'] = '7', ['8'] = '8',
    ['9'] = '9', ['A'] = 'a', ['B'] = 'b', ['C'] = 'c', ['D'] = 'd', ['E'] = 'e', ['F'] = 'f', ['G'] = 'g', ['H'] = 'h',
    ['I'] = 'i', ['J'] = 'j', ['K'] = 'k', ['L'] = 'l', ['M'] = 'm', ['N'] = 'n', ['O'] = 'o', ['P'] = 'p', ['Q'] = 'q',
    ['R'] = 'r', ['S'] = 's', ['T'] = 't', ['U'] = 'u', ['V'] = 'v', ['W'] = 'w', ['X'] = 'x', ['Y'] = 'y', ['Z'] = 'z',
    ['a'] = 'a', ['b'] = 'b', ['c'] = 'c', ['d'] = 'd', ['e'] = 'e', ['f'] = 'f', ['g'] = 'g', ['h'] = 'h', ['i'] = 'i',
    ['j'] = 'j', ['k'] = 'k', ['l'] = 'l', ['m'] = 'm', ['n'] = 'n', ['o'] = 'o', ['p'] = 'p', ['q'] = 'q', ['r'] = 'r',
    ['s'] = 's', ['t'] = 't', ['u'] = 'u', ['v'] = 'v', ['w'] = 'w', ['x'] = 'x', ['y'] = 'y', ['z'] = 'z',
};

#define RIGHT_QUOTE 0x2019

enum kind { SEPARATOR, LETTER, DIGIT, MARK };

static enum kind kind_of(uint32_t character) {
  if (uc_is_property_alphabetic(character)) return LETTER;
  if (uc_is_general_category_withtable(character, UC_CATEGORY_MASK_Nd)) return DIGIT;
  return uc_is_general_category_withtable(character, UC_CATEGORY_MASK_M) ? MARK : SEPARATOR;
}

/* A letter or a digit. */
static bool begins_word(const char *at, const char *end) {
  uint32_t character;
  if (at == end) return false;
  if ((unsigned char)*at < 0x80) return lower[(unsigned char)*at];
  pwi_utf8_get(at, &character);
  enum kind kind = kind_of(character);
  return kind == LETTER || kind == DIGIT;
}

/* A word while it is read. */
struct word {
  size_t length;
  bool has_letter, is_long;
};

static void append(struct pwi_text *text, struct word *word, uint32_t character) {
  char bytes[4];
  size_t size = pwi_utf8_put(character, bytes);
  if (size > PAWL_WORD_MAX - word->length) {
    word->is_long = true;
    return;
  }
  for (size_t i = 0; i < size; i++) text->word[word->length++] = bytes[i];
}

/* What is no letter or digit of ASCII, at `at`: how many bytes of it belong to the word; 0: it ends here. */
static size_t append_other(struct pwi_text *text, struct word *word, const char *at) {
  uint32_t character;
  size_t size = pwi_utf8_get(at, &character);
  bool is_inside = word->length > 0 || word->is_long;
  if (character == '\'' || character == RIGHT_QUOTE) {
    if (!is_inside || !begins_word(at + size, text->end)) return 0;
    append(text, word, '\'');
    return size;
  }
  if (character < 0x80) return 0;
  enum kind kind = kind_of(character);
  if (kind == SEPARATOR || (kind == MARK && !is_inside)) return 0;
  word->has_letter |= kind == LETTER;
  append(text, word, uc_tolower(character));
  return size;
}

/* The run at `at`, which may be empty; where it ends. */
static const char *run(struct pwi_text *text, const char *at, struct word *word) {
  const char *end = text->end;
  for (;;) {
    size_t length = word->length;
    char c;
    /* Once the word is full the slow way says so. */
    while (at < end && length < PAWL_WORD_MAX && (c = lower[(unsigned char)*at])) {
      text->word[length++] = c;
      word->has_letter |= c > '9';
      at++;
    }
    word->length = length;
    if (at == end) return at;
    if (lower[(unsigned char)*at]) {
      word->is_long = true;
      at++;
      continue;
    }
    size_t size = append_other(text, word, at);
    if (size == 0) return at;
    at += size;
  }
}

bool pwi_text_next(struct pwi_text *text) {
  const char *at = text->at, *end = text->end;
  while (at < end) {
    struct word word = {0};
    uint32_t ignored;
    if ((unsigned char)*at < 0x80 && !lower[(unsigned char)*at]) {
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
    text->length = word.length;
    return true;
  }
  text->at = end;
  return false;
}
