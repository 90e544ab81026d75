/* Builds a vocabulary from a corpus: threads tally pieces in parallel, and the tallies are added up in the
 * order of the pieces.
 *
 * Memory is bounded. Up to WORDS different words, or twice as many as requested, and LETTERS bytes of them
 * are counted exactly. When a piece takes the tally beyond that, the rarest words are forgotten until half
 * as many are left; a forgotten word that occurs again is counted from 0. Because pieces are added in
 * order, the result does not depend on the number of threads.
 */
#include "data/data.h"
#include "data/words.h"

#include <stdlib.h>

#include "base/memory.h"
#include "data/tally.h"
#include "data/formats/tokenizer.h"
#include "data/formats/utf8.h"

#define WORDS ((size_t)1 << 23)
#define LETTERS ((size_t)1 << 29)

/* --- a piece -------------------------------------------------------------------------------------------- */

#define LOOKUPS 16 /* words that are looked up at a time, to overlap cache misses */

/* Tallies the next words of a line, at most LOOKUPS, and returns how many. */
static pawl_status tally_some(struct pwi_tokenizer *text, struct pwi_tally *tally, size_t *count_out) {
  char words[LOOKUPS][PWI_TOKENIZER_ROOM];
  size_t lengths[LOOKUPS], count = 0;
  uint64_t hashes[LOOKUPS];
  pawl_status status = PAWL_OK;
  for (; count < LOOKUPS && (lengths[count] = pwi_tokenizer_next(text, words[count])); count++) {
    hashes[count] = pwi_word_hash(words[count], lengths[count]);
    pwi_tally_fetch_slot(tally, hashes[count]);
  }
  for (size_t i = 0; i < count; i++) pwi_tally_fetch_word(tally, hashes[i]);
  for (size_t i = 0; i < count && !status; i++) status = pwi_tally_add(tally, words[i], lengths[i], hashes[i]);
  *count_out = count;
  return status;
}

static pawl_status tally_line(struct pwi_parse *parse, const char *line_end, struct pwi_tally *tally) {
  struct pwi_tokenizer text = {.at = parse->at, .end = line_end};
  size_t count = LOOKUPS;
  pawl_status status = PAWL_OK;
  const char *wrong = pwi_utf8_wrong(parse->at, line_end);
  if (wrong) return pwi_parse_wrong(parse, wrong, "invalid UTF-8");
  while (!status && count == LOOKUPS) status = tally_some(&text, tally, &count);
  if (!status) tally->documents++;
  return status;
}

static pawl_status tally_lines(const struct pwi_parse_rule *rule, struct pwi_parse *parse, void *tally) {
  (void)rule;
  while (parse->at < parse->end) {
    const char *line_end = memchr(parse->at, '\n', (size_t)(parse->end - parse->at));
    pawl_status status = tally_line(parse, line_end, tally);
    if (status) return status;
    parse->at = line_end + 1;
  }
  return PAWL_OK;
}

static void destroy_tally(void *product) {
  if (!product) return;
  pwi_tally_fini(product);
  pwi_free(product);
}

static pawl_status make_tally(struct pawl_data *data, size_t piece, struct pwi_lines *text, void **product_out,
                              struct pwi_fault *fault) {
  struct pwi_source *source = pwi_data_source(data, piece);
  struct pwi_tally *tally = pwi_alloc_zero(1, sizeof *tally);
  uint64_t skipped = 0;
  pawl_status status = tally ? pwi_data_parse(data, source, text, tally_lines, tally, &skipped, fault)
                             : pwi_fault_plain(fault, PAWL_NO_MEMORY, source->path);
  pwi_lines_fini(text);
  if (status)
    destroy_tally(tally);
  else
    *product_out = tally;
  return status;
}

/* --- all of them ---------------------------------------------------------------------------------------- */

struct building {
  const struct pawl_words_options *options;
  size_t pieces, done, most;
  struct pwi_tally all;
  const struct pawl_words *stop, *english; /* NULL: none */
  const struct pwi_tally_word **kept;
  size_t count, next;
};

static pawl_status take(void *context, size_t piece, void *product, struct pwi_fault *fault) {
  struct building *building = context;
  const struct pawl_words_options *options = building->options;
  pawl_status status = pwi_tally_merge(&building->all, product);
  (void)piece;
  destroy_tally(product);
  if (status) return pwi_fault(fault, status, "not enough memory for %zu words", building->all.count);
  if (building->all.count > building->most || building->all.letters_size > LETTERS)
    pwi_tally_forget(&building->all, building->most / 2, LETTERS / 2);
  building->done++;
  if (options->progress && !options->progress(options->context, building->done, building->pieces))
    return pwi_fault(fault, PAWL_CANCELLED, "cancelled; no vocabulary was made");
  return PAWL_OK;
}

/* The number of characters: counts the bytes that begin one in UTF-8. */
static size_t characters(const char *letters, size_t length) {
  size_t count = 0;
  for (size_t i = 0; i < length; i++) count += ((unsigned char)letters[i] & 0xc0) != 0x80;
  return count;
}

static bool is_among(const struct pawl_words *words, const char *letters, const struct pwi_tally_word *word) {
  return words && pwi_words_find(words, letters, word->length, word->hash) != PAWL_NO_WORD;
}

static bool stays(const struct building *building, const struct pwi_tally_word *word) {
  const struct pawl_words_options *options = building->options;
  if (word->documents < options->least_documents) return false;
  if ((double)word->documents > options->most_share * (double)building->all.documents) return false;
  const char *letters = pwi_tally_letters(&building->all, word);
  if (characters(letters, word->length) < options->least_length) return false;
  return !is_among(building->stop, letters, word) && !is_among(building->english, letters, word);
}

/* Sorts frequent words first, and equally frequent ones by their bytes. */
static int by_count(const void *left, const void *right, void *context) {
  const struct pwi_tally *all = context;
  const struct pwi_tally_word *a = *(const struct pwi_tally_word *const *)left;
  const struct pwi_tally_word *b = *(const struct pwi_tally_word *const *)right;
  if (a->count != b->count) return a->count > b->count ? -1 : 1;
  size_t both = a->length < b->length ? a->length : b->length;
  int order = memcmp(pwi_tally_letters(all, a), pwi_tally_letters(all, b), both);
  return order ? order : (a->length > b->length) - (a->length < b->length);
}

static struct pwi_word next_word(void *context) {
  struct building *building = context;
  const struct pwi_tally_word *word = building->kept[building->next++];
  return (struct pwi_word){pwi_tally_letters(&building->all, word), word->length};
}

static pawl_status choose(struct building *building, struct pawl_words **words_out, struct pwi_fault *fault) {
  const struct pwi_tally *all = &building->all;
  uint64_t total = 0, twice = 0;
  building->kept = pwi_resize_array(NULL, all->count ? all->count : 1, sizeof *building->kept);
  if (!building->kept) return pwi_fault(fault, PAWL_NO_MEMORY, "not enough memory for %zu words", all->count);
  for (size_t i = 0; i < all->count; i++)
    if (stays(building, &all->words[i])) building->kept[building->count++] = &all->words[i];
  if (building->count == 0)
    return pwi_fault(fault, PAWL_INVALID,
                     "no word remains in the vocabulary: all %zu distinct words are too rare, too "
                     "frequent, or stop words",
                     all->count);
  qsort_r(building->kept, building->count, sizeof *building->kept, by_count, &building->all);
  if (building->count > building->options->most) building->count = (size_t)building->options->most;
  for (size_t i = 0; i < building->count; i++) total += building->kept[i]->length;
  pawl_status status = pwi_words_make(building->count, total, next_word, building, words_out, &twice);
  return status ? pwi_fault(fault, status, "cannot make a vocabulary of %zu words: %s", building->count,
                            pawl_status_text(status))
                : PAWL_OK;
}

static pawl_status check(const struct pawl_data *data, const struct pawl_words_options *options,
                         struct pwi_fault *fault) {
  for (size_t i = 0; i < data->count; i++)
    if (data->sources[i].rule.format != PAWL_DATA_TEXT)
      return pwi_fault(fault, PAWL_UNSUPPORTED, "%s: a vocabulary is built from text, but this file was opened as %s",
                       data->sources[i].path, pwi_data_format_name(data->sources[i].rule.format));
  if (!(options->most_share > 0 && options->most_share <= 1))
    return pwi_fault(fault, PAWL_INVALID, "most_share is %g but must be above 0 and at most 1", options->most_share);
  if (options->most == 0) return pwi_fault(fault, PAWL_INVALID, "the vocabulary must have at least one word");
  return PAWL_OK;
}

static pawl_status read_english(struct pawl_words **words_out, struct pwi_fault *fault) {
  size_t size = strlen(pwi_words_english);
  char *copy = pwi_alloc_zero(size + 1 + PWI_WORD_SLACK, 1);
  if (!copy) return pwi_fault(fault, PAWL_NO_MEMORY, "out of memory");
  memcpy(copy, pwi_words_english, size);
  pawl_status status = pwi_words_parse("the English stop words", copy, size, words_out, fault);
  pwi_free(copy);
  return status;
}

pawl_status pwi_words_build(struct pawl_data *data, const struct pawl_words_options *options,
                            struct pawl_words **words_out, struct pwi_fault *fault) {
  static const struct pwi_data_product product = {make_tally, destroy_tally};
  struct building building = {.options = options, .pieces = data->pieces, .most = WORDS};
  struct pawl_words *stop = NULL, *english = NULL;
  pawl_status status = check(data, options, fault);
  if (status) return status;
  if (options->most > WORDS / 2) building.most = options->most < PWI_WORDS_MAX ? (size_t)options->most * 2 : SIZE_MAX;
  if (options->stop) status = pwi_words_read(options->stop, &stop, fault);
  if (!status && options->stop_english) status = read_english(&english, fault);
  building.stop = stop;
  building.english = english;
  if (!status)
    status = pwi_data_make_all(data, 0, data->pieces, options->threads, true, &product, take, &building, fault);
  if (!status) status = choose(&building, words_out, fault);
  pwi_free(building.kept);
  pwi_tally_fini(&building.all);
  pwi_words_release(stop);
  pwi_words_release(english);
  return status;
}
