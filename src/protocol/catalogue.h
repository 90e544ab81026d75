/* The catalogue: which vectors and groups there are. The manager alone changes it; everybody else receives it whole.
 *
 * An entry has an id that is never used again, a name `space/name`, and what it is. A *vector* is rows of numbers. A
 * *group* is a name under which workers meet (barriers, ticks): it holds no rows, but clocks are kept for it as for a
 * vector, on the one arc that its name hashes to, and so it stands in the same catalogue, under a name whose second
 * word begins with a dot.
 *
 * The catalogue's number rises with each change, and every message carries the number its sender knows.
 *
 * A catalogue is a plain value: the same changes in the same order give the same bytes. Threads: belongs to one thread
 * at a time.
 */
#ifndef PWI_PROTOCOL_CATALOGUE_H
#define PWI_PROTOCOL_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>
#include <pawl/vector.h>

#include "ring/place.h"
#include "store/functions/functions.h"
#include "store/table.h"

#define PWI_CATALOGUE_MAX (1 << 20) /* entries */
#define PWI_SPACE_MAX 63            /* characters of the first word of a name */

struct pwi_vector_id {
  uint64_t id; /* 0: none */
};

enum pwi_entry_kind { PWI_ENTRY_VECTOR = 0, PWI_ENTRY_GROUP = 1 };

struct pwi_entry {
  struct pwi_vector_id id;
  enum pwi_entry_kind kind;
  char name[PAWL_NAME_MAX + 1];
  struct pawl_vector_options is; /* nothing in it is AUTO; for a group: u64, width 1, full span, ordered, sparse */
  uint32_t incarnation;          /* how often it was loaded from a checkpoint: nothing of an earlier one counts */
};

/* Entries by rising id. Read-only for callers. A struct of zeros is an empty catalogue of number 0. */
struct pwi_catalogue {
  uint64_t number;
  struct pwi_entry *entries;
  size_t count, room;
};

void pwi_catalogue_fini(struct pwi_catalogue *catalogue);

/* Splits and checks a name: two words of letters, digits, '.', '_' and '-', a slash between them. The second word of a
 * group's name begins with a dot, that of a vector's does not. PAWL_INVALID. */
PAWL_MUST_USE pawl_status pwi_name_check(const char *name, enum pwi_entry_kind kind);

/* True if `name` lies in `space`. */
bool pwi_name_is_in(const char *name, const char *space);

/* Checks options and replaces what is AUTO: full span MIXED else ORDERED; DENSE up to 2^28 keys of ordered placement,
 * else SPARSE. PAWL_INVALID (no such type, width 0 or beyond PAWL_WIDTH_MAX, empty span, mixed placement or a dense
 * layout that the span does not allow, a row beyond 2^30 bytes).
 *
 * A rule is looked up among the built-in functions and `functions`, which may be NULL, and written down in its one form;
 * widths follow from it. If it is not found there its text stays as it is, the widths are 0, and the options are settled but
 * for that: whoever knows the function has to settle them again. pwi_rule_parse tells what is wrong with a rule. */
PAWL_MUST_USE pawl_status pwi_options_settle(const struct pawl_vector_options *asked,
                                             const struct pwi_function_set *functions,
                                             struct pawl_vector_options *settled_out);

/* False: the rule's function was not found when they were settled. */
static inline bool pwi_options_are_known(const struct pawl_vector_options *is) {
  return is->function != PAWL_RULE || is->stored_width > 0;
}

/* Values per key that a push carries, and that are stored. */
static inline uint32_t pwi_options_pushed(const struct pawl_vector_options *is) {
  return is->pushed_width > 0 ? is->pushed_width : is->width;
}
static inline uint32_t pwi_options_stored(const struct pawl_vector_options *is) {
  return is->stored_width > 0 ? is->stored_width : is->width;
}

/* True if pushes come to the same when they are added up first: ADD, and rules of built-in functions that say so. */
bool pwi_options_add_up(const struct pawl_vector_options *is);

/* True if all of it is the same, but for widths that only one of them knows; both are settled. */
bool pwi_options_equal(const struct pawl_vector_options *a, const struct pawl_vector_options *b);

/* Options as bytes: u8 type, u32 width, u64 size, u8 function, u8 placement, u8 layout, text rule, text filters, u32 pushed,
 * u32 stored and u32 state width. Before there were rules they ended with the layout; `is_old` reads those. Where options are the last of the bytes
 * there is no need to know. */
struct pwi_writer;
struct pwi_reader;
void pwi_options_write(struct pwi_writer *writer, const struct pawl_vector_options *options);
struct pawl_vector_options pwi_options_read(struct pwi_reader *reader, bool is_old);
struct pawl_vector_options pwi_options_read_last(struct pwi_reader *reader);

/* What the rooms below want to know of a vector. */
struct pwi_place pwi_entry_place(const struct pwi_entry *entry);
/* A word of letters, digits, '.', '_' and '-', as names begin with. */
bool pwi_space_is_sound(const char *space);

struct pwi_table_options pwi_entry_table(const struct pwi_entry *entry); /* spans the whole vector */
size_t pwi_entry_row_bytes(const struct pwi_entry *entry);               /* as it is stored, and pulled */
size_t pwi_entry_pushed_bytes(const struct pwi_entry *entry);            /* of a row that is pushed */

/* The stored key (a ring position) that stands for a group: the arc that holds it keeps the group's ticks. */
uint64_t pwi_group_key(const char *name);

const struct pwi_entry *pwi_catalogue_find(const struct pwi_catalogue *catalogue, struct pwi_vector_id id);
const struct pwi_entry *pwi_catalogue_named(const struct pwi_catalogue *catalogue, const char *name);

/* Adds a copy of an entry whose id is higher than any before, and raises the number. PAWL_EXISTS (the name),
 * PAWL_INVALID (name, options, id), PAWL_TOO_LARGE, PAWL_NO_MEMORY; nothing has changed then. */
PAWL_MUST_USE pawl_status pwi_catalogue_add(struct pwi_catalogue *catalogue, const struct pwi_entry *entry);

/* Takes an entry out and raises the number. PAWL_NOT_FOUND. */
PAWL_MUST_USE pawl_status pwi_catalogue_remove(struct pwi_catalogue *catalogue, struct pwi_vector_id id);

/* A vector begins anew as its next incarnation; raises the number. PAWL_NOT_FOUND (also for a group), PAWL_TOO_LARGE. */
PAWL_MUST_USE pawl_status pwi_catalogue_restore(struct pwi_catalogue *catalogue, struct pwi_vector_id id);

/* As bytes, with base/cursor.h: u8 version (3), u64 number, u32 count, and per entry u64 id, u8 kind, text name, options,
 * u32 incarnation. Read as well are version 2, with options as they were before there were rules, and version 1, which
 * besides has no incarnations. One catalogue has one form. */
void pwi_catalogue_encode(const struct pwi_catalogue *catalogue, struct pwi_writer *writer);

/* Safe on any bytes. PAWL_TRUNCATED, PAWL_UNSUPPORTED (version), PAWL_CORRUPT (also for entries that break a rule),
 * PAWL_NO_MEMORY. `catalogue_out` must hold nothing before. */
PAWL_MUST_USE pawl_status pwi_catalogue_decode(const void *bytes, size_t size, struct pwi_catalogue *catalogue_out);

#endif
