/* Recording a history. */
#include "sim/history/history.h"

#include <assert.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/memory.h"
#include "sim/history/inside.h"

#define BLOCK_BYTES ((size_t)256 << 10)
#define FIELDS 32 /* of a column */

/* --- memory --------------------------------------------------------------------------------------------- */

struct block {
  struct block *next;
  size_t used, size;
  _Alignas(16) unsigned char bytes[];
};

void *pwi_history_alloc(struct pwi_history *history, size_t size) {
  struct block *block = history->blocks;
  size = (size + 15) / 16 * 16;
  if (!block || block->size - block->used < size) {
    size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    block = pwi_alloc_zero(1, sizeof *block + room);
    if (!block) {
      history->lacks_memory = true;
      return NULL;
    }
    block->size = room;
    block->next = history->blocks;
    history->blocks = block;
  }
  void *memory = block->bytes + block->used;
  block->used += size;
  return memory;
}

static void *copy(struct pwi_history *history, const void *bytes, size_t size) {
  void *memory = bytes ? pwi_history_alloc(history, size) : NULL;
  if (memory) memcpy(memory, bytes, size);
  return memory;
}

static char *copy_name(struct pwi_history *history, const char *name) {
  return copy(history, name ? name : "", name ? strlen(name) + 1 : 1);
}

struct pwi_history *pwi_history_create(void) {
  return pwi_alloc_zero(1, sizeof(struct pwi_history));
}

void pwi_history_destroy(struct pwi_history *history) {
  if (!history) return;
  for (size_t v = 0; v < history->vector_count; v++) {
    struct vector *vector = &history->vectors[v];
    for (size_t k = 0; k < vector->count; k++) {
      pwi_free(vector->keys[k]->pushes.items);
      pwi_free(vector->keys[k]->reads.items);
    }
    pwi_free(vector->keys);
    pwi_idmap_fini(&vector->by_key);
  }
  while (history->blocks) {
    struct block *block = history->blocks;
    history->blocks = block->next;
    pwi_free(block);
  }
  pwi_free(history->vectors);
  pwi_free(history->sessions);
  pwi_free(history->calls);
  pwi_free(history->bounds);
  pwi_free(history);
}

/* --- sessions, vectors, keys ---------------------------------------------------------------------------- */

uint32_t pwi_history_session(struct pwi_history *history, const char *name) {
  if (!PWI_GROW(history->sessions, history->session_room, history->session_count + 1)) {
    history->lacks_memory = true;
    return 0;
  }
  history->sessions[history->session_count] = (struct session){copy_name(history, name), NEVER};
  return (uint32_t)history->session_count++;
}

void pwi_history_gone(struct pwi_history *history, uint32_t session) {
  if (session < history->session_count && history->sessions[session].gone == NEVER)
    history->sessions[session].gone = ++history->sequence;
}

uint32_t pwi_history_vector(struct pwi_history *history, const struct pwi_history_vector *vector) {
  if (!PWI_GROW(history->vectors, history->vector_room, history->vector_count + 1)) {
    history->lacks_memory = true;
    return 0;
  }
  struct vector *added = &history->vectors[history->vector_count];
  *added = (struct vector){.is = *vector};
  added->is.name = copy_name(history, vector->name);
  return (uint32_t)history->vector_count++;
}

static struct key *add_key(struct pwi_history *history, struct vector *vector, uint64_t key) {
  struct key *added = pwi_history_alloc(history, sizeof *added);
  if (!added || !PWI_GROW(vector->keys, vector->room, vector->count + 1) ||
      pwi_idmap_put(&vector->by_key, key + 1, added)) {
    history->lacks_memory = true;
    return NULL;
  }
  added->key = key;
  added->stored = vector->is.place.mixed ? pwi_place_mix(key) : key;
  added->position = pwi_place_position(&vector->is.place, added->stored);
  return vector->keys[vector->count++] = added;
}

static struct key *find_key(struct pwi_history *history, struct vector *vector, uint64_t key) {
  struct key *found = pwi_idmap_get(&vector->by_key, key + 1);
  return found ? found : add_key(history, vector, key);
}

/* The fields of a column are used from both ends: filters hold small values back and let large ones pass. */
static void write_field(int64_t *row, uint32_t width, uint32_t number) {
  uint32_t turn = number / width, field = turn % 2 ? turn / 2 : FIELDS - 1 - turn / 2;
  memset(row, 0, width * sizeof *row);
  if (number < FIELDS * width) row[number % width] = (int64_t)(UINT64_C(1) << 2 * field);
}

void pwi_history_row(struct pwi_history *history, uint32_t vector, uint64_t key, int64_t *row) {
  if (history->lacks_memory) return;
  struct vector *is = &history->vectors[vector];
  struct key *found = find_key(history, is, key);
  uint32_t number = found ? found->rows++ : 0;
  if (is->is.kind == PWI_HISTORY_COUNTED) {
    write_field(row, is->is.width, number);
    return;
  }
  for (uint32_t c = 0; c < is->is.width; c++) row[c] = (int64_t)pwi_mix64(((uint64_t)number << 8 | c) + 1);
}

/* --- calls ---------------------------------------------------------------------------------------------- */

static void visit(struct pwi_history *history, struct visits *visits, size_t call, size_t place) {
  if (PWI_GROW(visits->items, visits->room, visits->count + 1))
    visits->items[visits->count++] = (struct visit){(uint32_t)call, (uint32_t)place};
  else
    history->lacks_memory = true;
}

static bool is_push(enum pwi_history_verb verb) { return verb == PWI_HISTORY_PUSH || verb == PWI_HISTORY_PUSHPULL; }

static bool is_pull(enum pwi_history_verb verb) { return verb == PWI_HISTORY_PULL || verb == PWI_HISTORY_PUSHPULL; }

static bool is_zero(const int64_t *row, uint32_t width) {
  for (uint32_t c = 0; c < width; c++)
    if (row[c] != 0) return false;
  return true;
}

/* Pushes of zeros have no effect that a read could show. */
static void begin_push(struct pwi_history *history, size_t index, const int64_t *rows) {
  struct call *call = &history->calls[index];
  uint32_t width = history->vectors[call->vector].is.width;
  call->pushed = copy(history, rows, call->count * width * sizeof *rows);
  call->fates = pwi_history_alloc(history, call->count);
  for (size_t i = 0; i < call->count && !history->lacks_memory; i++)
    if (!is_zero(call->pushed + i * width, width)) visit(history, &call->keys[i]->pushes, index, i);
}

uint32_t pwi_history_begin(struct pwi_history *history, int64_t now, const struct pwi_history_call *call) {
  if (history->lacks_memory || !PWI_GROW(history->calls, history->call_room, history->call_count + 1)) {
    history->lacks_memory = true;
    return UINT32_MAX;
  }
  size_t index = history->call_count++;
  struct call *begun = &history->calls[index];
  *begun = (struct call){.session = call->session,
                         .vector = call->vector,
                         .verb = call->verb,
                         .began = ++history->sequence,
                         .ended = NEVER,
                         .effective = NEVER,
                         .began_at = now,
                         .count = call->count,
                         .range = call->range,
                         .tick = call->tick,
                         .task = call->task,
                         .options = call->options,
                         .is_old = call->is_old};
  if (call->name) begun->name = copy_name(history, call->name);
  if (call->count == 0) return (uint32_t)index;
  begun->keys = pwi_history_alloc(history, call->count * sizeof(struct key *));
  begun->excused = pwi_history_alloc(history, call->count);
  for (size_t i = 0; i < call->count && !history->lacks_memory; i++)
    begun->keys[i] = find_key(history, &history->vectors[call->vector], call->keys[i]);
  if (is_push(call->verb) && !history->lacks_memory) begin_push(history, index, call->rows);
  return (uint32_t)index;
}

/* --- answers -------------------------------------------------------------------------------------------- */

static bool is_refused(const struct key *key, const struct pwi_history_answer *answer) {
  for (size_t i = 0; i < answer->refused_count; i++)
    if (pawl_range_has(answer->refused[i], key->stored)) return true;
  return false;
}

static void end_push(struct call *call, const struct pwi_history_answer *answer) {
  bool is_unknown = answer->is_vague || (answer->status && answer->refused_count == 0);
  for (size_t i = 0; i < call->count; i++)
    call->fates[i] = is_refused(call->keys[i], answer) ? FATE_REFUSED : is_unknown ? FATE_UNKNOWN : FATE_APPLIED;
}

static void note_problem(struct pwi_history *history, const struct call *call, const char *what, uint64_t key) {
  if (history->problem[0]) return;
  snprintf(history->problem, sizeof history->problem, "scan: %s key %llu: a scan of %s from %.6f s to %.6f s %s",
           history->vectors[call->vector].is.name, (unsigned long long)key, history->sessions[call->session].name,
           (double)call->began_at / 1e9, (double)call->ended_at / 1e9, what);
}

static void check_found(struct pwi_history *history, const struct call *call, const struct pwi_history_answer *answer,
                        struct key *const *found) {
  struct pawl_range covered = {call->range.begin, answer->next};
  for (size_t i = 0; i < answer->count; i++) {
    if (!pawl_range_has(covered, found[i]->stored))
      note_problem(history, call, "returned it out of range", found[i]->key);
    for (size_t k = 0; k < i; k++)
      if (found[k] == found[i]) note_problem(history, call, "returned it twice", found[i]->key);
  }
}

static const int64_t *row_found(const struct key *key, const struct pwi_history_answer *answer,
                                struct key *const *found, uint32_t width) {
  for (size_t i = 0; i < answer->count; i++)
    if (found[i] == key) return answer->rows + i * width;
  return NULL;
}

/* A scan becomes a read of all keys that are known by now, in the part of the range that it covered. Keys
 * that it did not find are 0. */
static void end_scan(struct pwi_history *history, struct call *call, const struct pwi_history_answer *answer) {
  struct vector *vector = &history->vectors[call->vector];
  uint32_t width = vector->is.width;
  struct key **found = pwi_history_alloc(history, (answer->count + 1) * sizeof(struct key *));
  for (size_t i = 0; i < answer->count && !history->lacks_memory; i++)
    found[i] = find_key(history, vector, answer->keys[i]);
  call->keys = pwi_history_alloc(history, (vector->count + 1) * sizeof(struct key *));
  call->excused = pwi_history_alloc(history, vector->count + 1);
  int64_t *rows = pwi_history_alloc(history, (vector->count + 1) * width * sizeof *rows);
  if (history->lacks_memory) return;
  check_found(history, call, answer, found);
  for (size_t k = 0; k < vector->count; k++) {
    struct key *key = vector->keys[k];
    if (!pawl_range_has((struct pawl_range){call->range.begin, answer->next}, key->stored)) continue;
    const int64_t *row = row_found(key, answer, found, width);
    if (row) memcpy(rows + call->count * width, row, width * sizeof *row);
    call->keys[call->count++] = key;
  }
  call->read = rows;
}

void pwi_history_end(struct pwi_history *history, int64_t now, uint32_t index,
                     const struct pwi_history_answer *answer) {
  if (index >= history->call_count || history->lacks_memory) return;
  struct call *call = &history->calls[index];
  assert(call->ended == NEVER && "a call is answered once");
  call->ended = call->effective = ++history->sequence;
  call->ended_at = now;
  call->status = answer->status;
  call->id = answer->id;
  call->incarnation = answer->incarnation;
  if (call->verb == PWI_HISTORY_ENTER) call->tick = answer->tick;
  if (call->verb == PWI_HISTORY_AWAIT && answer->tick > call->tick) call->tick = answer->tick;
  if (is_push(call->verb) && call->count > 0) end_push(call, answer);
  if (answer->status) return;
  if (call->verb == PWI_HISTORY_SCAN) end_scan(history, call, answer);
  if (is_pull(call->verb))
    call->read =
        copy(history, answer->rows, call->count * history->vectors[call->vector].is.width * sizeof *answer->rows);
  for (size_t i = 0; call->read && i < call->count; i++) visit(history, &call->keys[i]->reads, index, i);
}

/* --- facts that the observer contributes ---------------------------------------------------------------- */

static size_t excuse_pull(struct call *call, struct pawl_range keys, bool (*is_stale)(void *context, uint64_t position),
                          void *context) {
  size_t excused = 0;
  for (size_t k = 0; k < call->count; k++) {
    const struct key *key = call->keys[k];
    if (call->excused[k] || !pawl_range_has(keys, key->stored) || !is_stale(context, key->position)) continue;
    call->excused[k] = true;
    excused++;
  }
  return excused;
}

static bool is_heard(const struct call *call, const struct pwi_history_heard *heard) {
  if (call->ended != NEVER) return false;
  return heard->session == PWI_HISTORY_ALL || (call->session == heard->session && call->task == heard->task);
}

/* An answer to a scan has rows of one arc, from the first key of the range on. Relays answer no scans. */
static void excuse_scan(const struct pwi_history *history, struct call *call, const struct pwi_history_heard *heard,
                        bool (*is_stale)(void *context, uint64_t position), void *context) {
  uint64_t first = pawl_range_common(call->range, heard->keys).begin;
  if (heard->session != PWI_HISTORY_ALL)
    call->is_excused |= is_stale(context, pwi_place_position(&history->vectors[call->vector].is.place, first));
}

size_t pwi_history_excuse(struct pwi_history *history, const struct pwi_history_heard *heard,
                          bool (*is_stale)(void *context, uint64_t position), void *context) {
  size_t excused = 0;
  for (size_t i = 0; i < history->call_count && !history->lacks_memory; i++) {
    struct call *call = &history->calls[i];
    if (!is_heard(call, heard)) continue;
    if (call->verb == PWI_HISTORY_SCAN) excuse_scan(history, call, heard, is_stale, context);
    if (is_pull(call->verb)) excused += excuse_pull(call, heard->keys, is_stale, context);
  }
  return excused;
}

void pwi_history_excuse_bound(struct pwi_history *history) { history->is_bound_excused = true; }

void pwi_history_bound(struct pwi_history *history, uint64_t position) {
  for (size_t i = 0; i < history->bound_count; i++)
    if (history->bounds[i].position == position) return;
  if (PWI_GROW(history->bounds, history->bound_room, history->bound_count + 1))
    history->bounds[history->bound_count++] = (struct bound){position, ++history->sequence};
  else
    history->lacks_memory = true;
}

/* --- checking ------------------------------------------------------------------------------------------- */

static void describe(const struct history_report *report, const struct call *call, char *text, size_t size) {
  static const char *const verbs[] = {"push",  "pull",   "pushpull", "scan",    "enter", "tick",
                                      "await", "create", "delete",   "restore", "look",  "miss"};
  int used = snprintf(text, size, "%s of %s (%.6f s to ", verbs[call->verb],
                      report->history->sessions[call->session].name, (double)call->began_at / 1e9);
  if (call->ended == NEVER)
    snprintf(text + used, size - (size_t)used, "…)");
  else
    snprintf(text + used, size - (size_t)used, "%.6f s)", (double)call->ended_at / 1e9);
}

bool pwi_history_broken(const struct history_report *report, const char *rule, const struct vector *vector,
                        const struct key *key, const struct call *a, const char *how, const struct call *b) {
  char about[2][96] = {"", ""};
  describe(report, a, about[0], sizeof about[0]);
  if (b) describe(report, b, about[1], sizeof about[1]);
  if (key)
    snprintf(report->text, report->size, "history, rule %s: %s key %llu: %s %s%s%s", rule, vector->is.name,
             (unsigned long long)key->key, about[0], how, b ? " " : "", about[1]);
  else
    snprintf(report->text, report->size, "history, rule %s: %s: %s %s%s%s", rule, a->name, about[0], how, b ? " " : "",
             about[1]);
  return false;
}

static bool check_keys(const struct pwi_history *history, const struct history_report *report) {
  for (size_t v = 0; v < history->vector_count; v++) {
    const struct vector *vector = &history->vectors[v];
    for (size_t k = 0; k < vector->count; k++) {
      bool is_counted = vector->is.kind == PWI_HISTORY_COUNTED;
      if (is_counted && !pwi_history_check_counted(report, vector, vector->keys[k])) return false;
      if (!is_counted && !pwi_history_check_register(report, vector, vector->keys[k])) return false;
    }
  }
  return true;
}

bool pwi_history_check(struct pwi_history *history, char *text, size_t size) {
  struct history_report report = {history, text, size};
  snprintf(text, size, "%s", history->lacks_memory ? "history: no memory" : history->problem);
  if (text[0]) return false;
  if (!pwi_history_check_barriers(history, &report) || !pwi_history_check_catalogue(history, &report)) return false;
  if (!check_keys(history, &report)) return false;
  for (size_t i = 0; history->bound_count > 0 && i < history->call_count; i++)
    if (history->calls[i].read && !pwi_history_check_part(history, &report, &history->calls[i])) return false;
  snprintf(text, size, "%s", history->lacks_memory ? "history: no memory" : "");
  return !history->lacks_memory;
}
