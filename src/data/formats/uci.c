/* UCI's bag of words: three lines of totals, then `document word count` in each line. */
#include "data/formats/uci.h"

#include <inttypes.h>
#include <string.h>

#include "data/formats/number.h"
#include "data/words.h"

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static const char *skip_blanks(const char *at) {
  while (is_blank(*at)) at++;
  return at;
}

static bool ends_line(const char *at) { return *at == '\n' || (*at == '\r' && at[1] == '\n'); }

static const char *line_end(const char *at, const char *end) { return memchr(at, '\n', (size_t)(end - at)); }

/* --- where documents begin ------------------------------------------------------------------------------ */

bool pwi_uci_is_empty(const char *begin, const char *end) {
  const char *at = skip_blanks(begin);
  return at == end || (*at == '\r' && at + 1 == end);
}

uint64_t pwi_uci_document(const char *begin, const char *end) {
  const char *at = skip_blanks(begin), *stop;
  uint64_t document;
  if (end - begin > PWI_UCI_LINE || !pwi_whole_number(at, &stop, &document)) return 0;
  return is_blank(*stop) || ends_line(stop) ? document : 0;
}

/* A line is considered only if it begins less than PWI_UCI_LOOK bytes before `at`, because then the line
 * break before it is visible, too. */
uint64_t pwi_uci_before(const char *floor, bool is_start, const char *at) {
  const char *stop = at;
  if (at - floor >= PWI_UCI_LOOK) floor = at - PWI_UCI_LOOK, is_start = false;
  while (stop > floor) {
    const char *break_at = stop - 1, *begin = break_at;
    while (begin > floor && begin[-1] != '\n') begin--;
    if (begin == floor && !is_start) return 0;
    if (!pwi_uci_is_empty(begin, break_at)) return pwi_uci_document(begin, break_at);
    stop = begin;
  }
  return 0;
}

/* --- the head ------------------------------------------------------------------------------------------- */

/* A line of `count` whole numbers. */
static bool numbers(const char **at_inout, const char *end, size_t count, uint64_t *numbers_out) {
  const char *at = *at_inout, *stop = at < end ? line_end(at, end) : NULL;
  if (!stop) stop = end;
  for (size_t i = 0; i < count; i++) {
    at = skip_blanks(at);
    if (at >= stop || !pwi_whole_number(at, &at, &numbers_out[i])) return false;
    if (at < stop && !is_blank(*at) && *at != '\r') return false;
  }
  at = skip_blanks(at);
  if (at < stop && *at == '\r') at++;
  if (at < stop) return false;
  *at_inout = stop < end ? stop + 1 : end;
  return true;
}

bool pwi_uci_head(const char *head, size_t size, struct pwi_bag *bag_out) {
  const char *at = head, *end = head + size;
  struct pwi_bag bag;
  if (!numbers(&at, end, 1, &bag.documents) || !numbers(&at, end, 1, &bag.words) || !numbers(&at, end, 1, &bag.entries))
    return false;
  bag.head_length = (size_t)(at - head);
  *bag_out = bag;
  return true;
}

bool pwi_uci_has_entry(const char *head, size_t size, const struct pwi_bag *bag) {
  const char *at = head + bag->head_length;
  uint64_t three[3];
  return numbers(&at, head + size, 3, three);
}

/* --- documents ------------------------------------------------------------------------------------------ */

/* A document that is being parsed. */
struct uci_document {
  const struct pwi_parse_rule *rule;
  struct pwi_parse *parse;
  struct pwi_batch *batch;
  uint64_t number, before;
  const char *line; /* its last line that was parsed */
  size_t count;
  uint64_t last, total;
  bool is_sorted;
};

/* Parses a well-formed line; false for any other. `*next_out` is behind it. */
static inline bool read_line(const char *line, uint64_t *three, const char **next_out) {
  const char *at = line;
  for (int i = 0; i < 3; i++) {
    while (is_blank(*at)) at++;
    if (!pwi_whole_number(at, &at, &three[i])) return false;
    if (i < 2 && !is_blank(*at)) return false;
  }
  while (is_blank(*at)) at++;
  at += *at == '\r';
  *next_out = at + 1;
  return *at == '\n' && at - line <= PWI_UCI_LINE;
}

/* Explains why a line is malformed. */
static pawl_status explain(struct uci_document *document, const char *line) {
  static const char *const whats[] = {"expected the number of a document, a whole number",
                                      "expected the number of a word, a whole number"};
  struct pwi_parse *parse = document->parse;
  const char *at = line, *stop = line_end(line, parse->end);
  if (stop - line > PWI_UCI_LINE) return pwi_parse_wrong(parse, line, "the line has more than 250 bytes");
  for (int i = 0; i < 2; i++) {
    uint64_t number;
    at = skip_blanks(at);
    if (!pwi_whole_number(at, &stop, &number)) return pwi_parse_wrong(parse, at, whats[i]);
    if (!is_blank(*stop))
      return pwi_parse_wrong(parse, stop,
                             ends_line(stop) ? "the line ends too early: expected document, word and count"
                                             : "unexpected character in a whole number");
    at = stop;
  }
  uint64_t count;
  at = skip_blanks(at);
  pawl_status status = pwi_parse_count(parse, at, &at, &count);
  if (status) return status;
  return pwi_parse_wrong(parse, at,
                         is_blank(*at) ? "unexpected text behind the count" : "unexpected character in a whole number");
}

/* Whether the line belongs to the current document. */
static bool goes_on(const struct uci_document *document, const char *line, uint64_t number) {
  return number != 0 && number == document->number && line - document->line < PWI_UCI_LOOK;
}

/* The document ends before `at`. */
static void end_before(struct uci_document *document, const char *at) {
  document->parse->next = at;
  document->parse->before = at - document->line < PWI_UCI_LOOK ? document->number : 0;
}

/* Skips the rest of a bad document. */
static void skip_rest(struct uci_document *document, const char *at) {
  const char *end = document->parse->end;
  while (at < end) {
    const char *stop = line_end(at, end);
    if (!pwi_uci_is_empty(at, stop)) {
      if (!goes_on(document, at, pwi_uci_document(at, stop))) break;
      document->line = at;
    }
    at = stop + 1;
  }
  end_before(document, at);
}

static const char *column(const char *line, int wanted) {
  const char *at = skip_blanks(line);
  for (; wanted > 0; wanted--) {
    while (!is_blank(*at)) at++;
    at = skip_blanks(at);
  }
  return at;
}

static pawl_status check(struct uci_document *document, const char *line, const uint64_t *three) {
  const struct pwi_bag *bag = &document->rule->bag;
  const struct pawl_words *words = document->rule->words;
  struct pwi_parse *parse = document->parse;
  uint64_t ignored;
  const char *end;
  if (three[0] == 0 || three[1] == 0)
    return pwi_parse_wrong(parse, column(line, three[0] != 0), "documents and words are counted from 1");
  if (three[0] > bag->documents)
    return pwi_parse_wrong_so(parse, column(line, 0), "document %" PRIu64 " of %" PRIu64, three[0], bag->documents);
  if (three[0] < document->before)
    return pwi_parse_wrong_so(parse, column(line, 0), "document %" PRIu64 " after %" PRIu64, three[0],
                              document->before);
  if (three[1] > bag->words)
    return pwi_parse_wrong_so(parse, column(line, 1), "word %" PRIu64 " of %" PRIu64, three[1], bag->words);
  if (words && three[1] > words->count)
    return pwi_parse_wrong_so(parse, column(line, 1),
                              "word %" PRIu64 " is not in the vocabulary, whose size is %" PRIu64, three[1],
                              words->count);
  return pwi_parse_count(parse, column(line, 2), &end, &ignored);
}

static pawl_status add(struct uci_document *document, const uint64_t *three) {
  struct pwi_batch *batch = document->batch;
  pawl_status status = pwi_batch_room(batch, document->count + 1);
  if (status) return status;
  batch->ids[batch->is.entries + document->count] = three[1];
  batch->values[batch->is.entries + document->count++] = (float)three[2];
  document->is_sorted &= three[1] > document->last;
  document->last = three[1];
  document->total += three[2];
  return PAWL_OK;
}

/* Rejects the whole document. `parse->at` moves to the offending line. */
static pawl_status give_up(struct uci_document *document, const char *line, pawl_status status) {
  struct pwi_parse *parse = document->parse;
  if (status != PAWL_CORRUPT) return status;
  parse->at = line;
  document->line = line;
  skip_rest(document, line_end(line, parse->end) + 1);
  return status;
}

/* Parses the line at `*at` if it belongs to the document; else returns false. */
static bool take_line(struct uci_document *document, const char **at, pawl_status *status_out) {
  const char *line = *at, *next;
  uint64_t three[3];
  bool is_good = read_line(line, three, &next);
  if (!is_good) {
    next = line_end(line, document->parse->end) + 1;
    if (pwi_uci_is_empty(line, next - 1)) {
      *at = next;
      return true;
    }
    three[0] = pwi_uci_document(line, next - 1);
  }
  bool is_first = !document->line;
  if (!is_first && !goes_on(document, line, three[0])) return false;
  if (is_first) document->number = three[0];
  document->line = line;
  *status_out = is_good ? check(document, line, three) : explain(document, line);
  if (!*status_out) *status_out = add(document, three);
  if (*status_out)
    *status_out = give_up(document, line, *status_out);
  else
    *at = next;
  return true;
}

static pawl_status row(const struct pwi_parse_rule *rule, struct pwi_parse *parse, struct pwi_batch *batch) {
  struct uci_document document = {
      .rule = rule, .parse = parse, .batch = batch, .before = parse->before, .is_sorted = true};
  const char *at = parse->at;
  pawl_status status = PAWL_OK;
  while (!status && at < parse->end && take_line(&document, &at, &status)) {
  }
  if (status) return status;
  if (!document.line) { /* only empty lines are left */
    parse->at = at;
    return PAWL_OK;
  }
  end_before(&document, at);
  status = pwi_parse_end_document(parse, batch, document.count, document.is_sorted, document.total);
  if (!status) parse->at = parse->next;
  return status;
}

pawl_status pwi_parse_uci(const struct pwi_parse_rule *rule, struct pwi_parse *parse, struct pwi_batch *batch) {
  while (parse->at < parse->end) {
    pawl_status status = row(rule, parse, batch);
    if (status) return status;
  }
  return PAWL_OK;
}
