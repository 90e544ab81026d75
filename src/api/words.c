/* <pawl/words.h>: wraps src/data and copies its faults to pawl_error_text. */
#include <pawl/words.h>

#include "api/error.h"
#include "api/options.h"
#include "base/checked.h"
#include "base/memory.h"
#include "data/data.h"
#include "data/words.h"

#define LEAST_DOCUMENTS 2
#define MOST_SHARE 0.5
#define MOST 1000000

static pawl_status say(pawl_status status, const struct pwi_fault *fault) {
  return status ? pwi_error(status, "%s", fault->text) : PAWL_OK;
}

pawl_status pawl_words_read(const char *path, struct pawl_words **words_out) {
  struct pwi_fault fault = {""};
  return say(pwi_words_read(path, words_out, &fault), &fault);
}

pawl_status pawl_words_parse(const char *name, const char *text, size_t size, struct pawl_words **words_out) {
  struct pwi_fault fault = {""};
  size_t room;
  /* The text may lack a line break at its end. */
  char *copy = pwi_add_size(size, 1 + PWI_WORD_SLACK, &room) ? pwi_alloc_zero(room, 1) : NULL;
  if (!copy) return pwi_error(PAWL_NO_MEMORY, "%s: out of memory", name);
  if (size > 0) memcpy(copy, text, size);
  pawl_status status = say(pwi_words_parse(name, copy, size, words_out, &fault), &fault);
  pwi_free(copy);
  return status;
}

pawl_status pawl_words_write(const struct pawl_words *words, const char *path) {
  struct pwi_fault fault = {""};
  return say(pwi_words_write(words, path, &fault), &fault);
}

struct pawl_words *pawl_words_retain(const struct pawl_words *words) {
  return pwi_words_retain(words);
}

void pawl_words_release(struct pawl_words *words) { pwi_words_release(words); }

uint64_t pawl_words_count(const struct pawl_words *words) { return words->count; }

const char *pawl_words_at(const struct pawl_words *words, uint64_t number) { return pwi_words_at(words, number); }

void pawl_words_options_init_sized(struct pawl_words_options *options, size_t struct_size) {
  const struct pawl_words_options defaults = {
      .least_documents = LEAST_DOCUMENTS, .most_share = MOST_SHARE, .most = MOST};
  pwi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

pawl_status pawl_words_build(struct pawl_data *data, const struct pawl_words_options *options,
                             struct pawl_words **words_out) {
  struct pawl_words_options is;
  struct pwi_fault fault = {""};
  pawl_words_options_init(&is);
  pawl_status status = pwi_take_options("words", options, &is, sizeof is);
  return status ? status : say(pwi_words_build(data, &is, words_out, &fault), &fault);
}
