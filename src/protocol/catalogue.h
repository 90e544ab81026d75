/* The catalogue: the list of vectors and groups of a cluster. Only the manager changes it; all other nodes
 * receive it whole.
 *
 * An entry has an id that is never reused, a name `space/name`, and options. A *vector* consists of rows of
 * numbers. A *group* is a name under which workers meet (barriers, ticks). It has no rows, but clocks as a
 * vector has, on the one arc to which its name hashes. So groups are entries of the same catalogue; the
 * second word of their name begins with a dot. A *peer group* has members, as a group has, but no clocks:
 * servers keep nothing of it. It shares the names of groups, so that one name is one or the other.
 *
 * The number of the catalogue rises with each change, and every message carries the number that its sender
 * knows.
 *
 * A catalogue is a plain value: the same changes in the same order give the same bytes. Threads: belongs to
 * one thread at a time.
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

#define PWI_CATALOGUE_MAX (1 << 20) /* maximum number of entries */
#define PWI_SPACE_MAX 63            /* characters of the first word of a name */

struct pwi_vector_id {
  uint64_t id; /* 0: none */
};

enum pwi_entry_kind { PWI_ENTRY_VECTOR = 0, PWI_ENTRY_GROUP = 1, PWI_ENTRY_PEERS = 2 };

struct pwi_entry {
  struct pwi_vector_id id;
  enum pwi_entry_kind kind;
  char name[PAWL_NAME_MAX + 1];
  struct pawl_vector_options is; /* settled: nothing in it is AUTO. Groups and peer groups have type
                                    u64, width 1, full span, ordered, sparse */
  uint32_t incarnation;          /* how often it was loaded from a checkpoint; requests for an earlier
                                    incarnation are not applied */
};

/* Entries by ascending id. Read-only for callers. A struct of zeros is an empty catalogue with number 0. */
struct pwi_catalogue {
  uint64_t number;
  struct pwi_entry *entries;
  size_t count, room;
};

void pwi_catalogue_fini(struct pwi_catalogue *catalogue);

/* Checks a name: two words of letters, digits, '.', '_' and '-', separated by a slash. The second word begins
 * with a dot for a group or a peer group, and not for a vector. PAWL_INVALID. */
PAWL_MUST_USE pawl_status pwi_name_check(const char *name, enum pwi_entry_kind kind);

/* Returns true if `name` lies in `space`. */
bool pwi_name_is_in(const char *name, const char *space);

/* Checks options and replaces AUTO: MIXED placement for a full span, otherwise ORDERED; DENSE layout for up
 * to 2^28 keys of ordered placement, otherwise SPARSE. PAWL_INVALID for an unknown type, a width of 0 or
 * beyond PAWL_WIDTH_MAX, an empty span, mixed placement or a dense layout that the span does not allow, or a
 * row beyond 2^30 bytes.
 *
 * A rule is looked up among the built-in functions and `functions`, which may be NULL, and replaced by its
 * canonical text; the widths follow from it. If its function is unknown, the text remains as it is and the
 * widths are 0. The options must then be settled again by a node that knows the function. pwi_rule_parse
 * explains errors in a rule.
 */
PAWL_MUST_USE pawl_status pwi_options_settle(const struct pawl_vector_options *asked,
                                             const struct pwi_function_set *functions,
                                             struct pawl_vector_options *settled_out);

/* Returns false if the rule's function was unknown when the options were settled. */
static inline bool pwi_options_are_known(const struct pawl_vector_options *is) {
  return is->function != PAWL_RULE || is->stored_width > 0;
}

/* Values of a key in a push, and values of a key in the table. */
static inline uint32_t pwi_options_pushed(const struct pawl_vector_options *is) {
  return is->pushed_width > 0 ? is->pushed_width : is->width;
}
static inline uint32_t pwi_options_stored(const struct pawl_vector_options *is) {
  return is->stored_width > 0 ? is->stored_width : is->width;
}

/* Returns true if pushes may be summed first with the same result: ADD, and rules of built-in functions that
 * permit it. */
bool pwi_options_add_up(const struct pawl_vector_options *is);

/* Compares settled options. Widths that only one of them knows are ignored. */
bool pwi_options_equal(const struct pawl_vector_options *a, const struct pawl_vector_options *b);

/* The encoded form of options: u8 type, u32 width, u64 size, u8 function, u8 placement, u8 layout, text rule,
 * text filters, u32 pushed, u32 stored and u32 state width. Before rules were introduced, options ended with
 * the layout; `is_old` reads that form. pwi_options_read_last recognises the form itself, for options at the
 * end of the bytes. */
struct pwi_writer;
struct pwi_reader;
void pwi_options_write(struct pwi_writer *writer, const struct pawl_vector_options *options);
struct pawl_vector_options pwi_options_read(struct pwi_reader *reader, bool is_old);
struct pawl_vector_options pwi_options_read_last(struct pwi_reader *reader);

/* A vector as the modules below see it. */
struct pwi_place pwi_entry_place(const struct pwi_entry *entry);
/* Returns true for a word of letters, digits, '.', '_' and '-', the first word of a name. */
bool pwi_space_is_sound(const char *space);

struct pwi_table_options pwi_entry_table(const struct pwi_entry *entry); /* spans the whole vector */
size_t pwi_entry_row_bytes(const struct pwi_entry *entry);               /* as stored and pulled */
size_t pwi_entry_pushed_bytes(const struct pwi_entry *entry);            /* as pushed */

/* The stored key (a ring position) of a group: the arc with this position keeps the ticks of the group. */
uint64_t pwi_group_key(const char *name);

const struct pwi_entry *pwi_catalogue_find(const struct pwi_catalogue *catalogue, struct pwi_vector_id id);
const struct pwi_entry *pwi_catalogue_named(const struct pwi_catalogue *catalogue, const char *name);

/* Adds a copy of an entry whose id is higher than any before, and raises the number. PAWL_EXISTS (the name),
 * PAWL_INVALID (name, options, id), PAWL_TOO_LARGE, PAWL_NO_MEMORY; nothing has changed then. */
PAWL_MUST_USE pawl_status pwi_catalogue_add(struct pwi_catalogue *catalogue, const struct pwi_entry *entry);

/* Removes an entry and raises the number. PAWL_NOT_FOUND. */
PAWL_MUST_USE pawl_status pwi_catalogue_remove(struct pwi_catalogue *catalogue, struct pwi_vector_id id);

/* Begins the next incarnation of a vector and raises the number. PAWL_NOT_FOUND (also for groups),
 * PAWL_TOO_LARGE. */
PAWL_MUST_USE pawl_status pwi_catalogue_restore(struct pwi_catalogue *catalogue, struct pwi_vector_id id);

/* The encoded form, with base/cursor.h: u8 version (3), u64 number, u32 count, and for each entry u64 id, u8
 * kind, text name, options, u32 incarnation. The decoder also reads version 2, with options from before rules
 * were introduced, and version 1, which in addition has no incarnations. A catalogue has exactly one encoded
 * form. */
void pwi_catalogue_encode(const struct pwi_catalogue *catalogue, struct pwi_writer *writer);

/* Accepts any bytes. PAWL_TRUNCATED, PAWL_UNSUPPORTED (version), PAWL_CORRUPT (also for entries that break a
 * rule), PAWL_NO_MEMORY. `catalogue_out` must be empty. */
PAWL_MUST_USE pawl_status pwi_catalogue_decode(const void *bytes, size_t size, struct pwi_catalogue *catalogue_out);

#endif
