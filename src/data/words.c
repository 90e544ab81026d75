#include "data/words.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/formats/utf8.h"

/* --- making a vocabulary -------------------------------------------------------------------------------- */

void pwi_words_release(struct pawl_words *words) {
  if (!words || atomic_fetch_sub(&words->references, 1) > 1) return;
  pwi_free(words->bytes);
  pwi_free(words->places);
  pwi_free(words->slots);
  pwi_free(words);
}

struct pawl_words *pwi_words_retain(const struct pawl_words *words) {
  struct pawl_words *held = (struct pawl_words *)(uintptr_t)words; /* only the reference count changes */
  if (held) atomic_fetch_add(&held->references, 1);
  return held;
}

/* Bytes that a word occupies: number, length, letters, a zero, and padding. */
static size_t size_of(size_t length) {
  return (PWI_WORD_HEAD + length + 1 + PWI_WORD_STEP - 1) / PWI_WORD_STEP * PWI_WORD_STEP;
}

/* At least twice as many slots as words. */
static uint64_t slots_for(uint64_t count) {
  uint64_t room = 16;
  while (room < 2 * count) room *= 2;
  return room;
}

static pawl_status make_room(struct pawl_words *words, uint64_t total) {
  size_t bytes, each = PWI_WORD_HEAD + 1 + PWI_WORD_STEP - 1; /* most bytes of a word beside its letters */
  if (!pwi_u64_to_size(total, &bytes) || !pwi_add_size(bytes, (size_t)words->count * each, &bytes))
    return PAWL_NO_MEMORY;
  if (bytes / PWI_WORD_STEP >= UINT32_MAX) return PAWL_TOO_LARGE;
  words->mask = slots_for(words->count) - 1;
  words->bytes = pwi_alloc(bytes + PWI_WORD_SLACK);
  words->places = pwi_resize_array(NULL, (size_t)words->count, sizeof *words->places);
  words->slots = pwi_alloc_zero((size_t)words->mask + 1, sizeof *words->slots);
  return words->bytes && words->places && words->slots ? PAWL_OK : PAWL_NO_MEMORY;
}

/* Adds a word that is not yet present. */
static void place_word(struct pawl_words *words, uint64_t number, size_t at, struct pwi_word word, uint64_t hash) {
  unsigned char *there = words->bytes + at;
  memset(there, 0, size_of(word.length));
  pwi_put_u32(there, (uint32_t)number);
  there[4] = (unsigned char)word.length;
  memcpy(there + PWI_WORD_HEAD, word.letters, word.length);
  words->places[number] = (uint32_t)(at / PWI_WORD_STEP);
  uint64_t i = hash & words->mask;
  while (words->slots[i].place) i = (i + 1) & words->mask;
  words->slots[i] = (struct pwi_word_slot){(uint32_t)(hash >> 32), words->places[number] + 1};
}

pawl_status pwi_words_make(uint64_t count, uint64_t total, struct pwi_word (*next)(void *context), void *context,
                           struct pawl_words **words_out, uint64_t *twice_out) {
  size_t at = 0;
  if (count >= PWI_WORDS_MAX) return PAWL_TOO_LARGE;
  struct pawl_words *words = pwi_alloc_zero(1, sizeof *words);
  if (!words) return PAWL_NO_MEMORY;
  words->references = 1;
  words->count = count;
  pawl_status status = make_room(words, total);
  for (uint64_t i = 0; !status && i < count; i++) {
    struct pwi_word word = next(context);
    uint64_t hash = pwi_word_hash(word.letters, word.length);
    if (pwi_words_find(words, word.letters, word.length, hash) != PAWL_NO_WORD) {
      *twice_out = i;
      status = PAWL_EXISTS;
      break;
    }
    place_word(words, i, at, word, hash);
    at += size_of(word.length);
  }
  if (status) {
    pwi_words_release(words);
    return status;
  }
  words->fingerprint = pwi_hash(words->bytes, at, count);
  *words_out = words;
  return PAWL_OK;
}

const char *pwi_words_at(const struct pawl_words *words, uint64_t number) {
  if (number >= words->count) return NULL;
  return (const char *)words->bytes + (size_t)words->places[number] * PWI_WORD_STEP + PWI_WORD_HEAD;
}

/* --- parsing text --------------------------------------------------------------------------------------- */

static pawl_status bad_line(struct pwi_fault *fault, const char *path, uint64_t line, const char *what) {
  return pwi_fault(fault, PAWL_CORRUPT, "%s:%" PRIu64 ": %s", path, line, what);
}

/* A line without its line break; `*next_out` is behind that. The text ends with a line break. */
static struct pwi_word line_at(const char *at, const char *end, const char **next_out) {
  const char *stop = memchr(at, '\n', (size_t)(end - at));
  *next_out = stop + 1;
  if (stop > at && stop[-1] == '\r') stop--;
  return (struct pwi_word){at, (size_t)(stop - at)};
}

static pawl_status check_lines(const char *path, const char *text, const char *end, uint64_t *count_out,
                               uint64_t *total_out, struct pwi_fault *fault) {
  uint64_t count = 0, total = 0;
  for (const char *at = text; at < end;) {
    struct pwi_word word = line_at(at, end, &at);
    count++;
    total += word.length;
    if (word.length == 0) return bad_line(fault, path, count, "expected a word, found an empty line");
    if (word.length > PAWL_WORD_MAX) return bad_line(fault, path, count, "the word has more than 255 bytes");
    if (memchr(word.letters, 0, word.length)) return bad_line(fault, path, count, "the word contains a zero byte");
    if (pwi_utf8_wrong(word.letters, word.letters + word.length)) return bad_line(fault, path, count, "invalid UTF-8");
  }
  *count_out = count;
  *total_out = total;
  return PAWL_OK;
}

struct line_reader {
  const char *at, *end;
};

static struct pwi_word next_line(void *context) {
  struct line_reader *lines = context;
  return line_at(lines->at, lines->end, &lines->at);
}

/* The line of the first occurrence of a word. */
static uint64_t first_line_of(const char *text, const char *end, uint64_t number) {
  struct pwi_word wanted = {0};
  const char *at = text;
  for (uint64_t i = 0; i <= number; i++) wanted = line_at(at, end, &at);
  at = text;
  for (uint64_t line = 1;; line++) {
    struct pwi_word word = line_at(at, end, &at);
    if (word.length == wanted.length && memcmp(word.letters, wanted.letters, word.length) == 0) return line;
  }
}

pawl_status pwi_words_parse(const char *path, char *text, size_t size, struct pawl_words **words_out,
                            struct pwi_fault *fault) {
  uint64_t count = 0, total = 0, twice = 0;
  if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3, size -= 3; /* a byte order mark */
  if (size == 0) return pwi_fault(fault, PAWL_TRUNCATED, "%s: the vocabulary is empty", path);
  if (text[size - 1] != '\n') text[size++] = '\n';
  const char *end = text + size;
  pawl_status status = check_lines(path, text, end, &count, &total, fault);
  if (status) return status;
  struct line_reader lines = {text, end};
  status = pwi_words_make(count, total, next_line, &lines, words_out, &twice);
  if (status == PAWL_EXISTS)
    return pwi_fault(fault, PAWL_CORRUPT, "%s:%" PRIu64 ": duplicate of the word in line %" PRIu64, path, twice + 1,
                     first_line_of(text, end, twice));
  return status ? pwi_fault_plain(fault, status, path) : PAWL_OK;
}
