/* The journal in a shared store. The header describes the keys and values. */
#include "manager/leader/journal_meta.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "base/memory.h"

#define MARK UINT32_C(0x474c5750) /* "PWLG" */
#define PARTS_MAX 4096
#define DIGITS 20
#define PAGE_FIRST 64                /* records in the first page that is read */
#define PAGE_MAX 4096                /* maximum records in a page */
#define PAGE_SMALL ((size_t)1 << 20) /* bytes below which the next page gets more records */

enum meta_record_kind { KIND_NEXT = 0, KIND_FIRST = 1 };

/* A record that was read and is not replayed yet. */
struct read_record {
  struct read_record *next;
  uint64_t number, hash;
  uint32_t parts, parts_read;
  size_t size;   /* bytes read so far: the parts in order, then the bytes that followed the head */
  size_t behind; /* bytes that followed the head */
  unsigned char bytes[];
};

/* `journal` is the first member, so that a pointer to it can be cast. */
struct meta_journal {
  struct pwi_journal journal;
  struct pwi_journal_meta_config config;
  char prefix[PWI_PREFIX_MAX + 1];
  struct pwi_meta_call call;
  uint64_t last;         /* number of the last record; 0: there is none */
  uint64_t last_created; /* revision at which it was created */

  /* Reading. */
  struct read_record *first, **end;
  struct read_record **assembling; /* the record whose parts are read next */
  uint64_t revision;               /* all pages are read at this revision */
  uint64_t page;                   /* records in the next page */

  /* Writing: a copy of the record, and the value of its key. */
  unsigned char *record;
  size_t size;
  enum meta_record_kind kind;
  uint32_t parts, parts_put;
  struct pwi_writer value;
  uint64_t bytes; /* of all records */
};

static void log_key(const struct meta_journal *journal, uint64_t number, char key_out[PWI_META_KEY_MAX]) {
  snprintf(key_out, PWI_META_KEY_MAX, "%s/log/%020llu", journal->prefix, (unsigned long long)number);
}

static void part_key(const struct meta_journal *journal, uint64_t number, uint32_t part,
                     char key_out[PWI_META_KEY_MAX]) {
  snprintf(key_out, PWI_META_KEY_MAX, "%s/part/%020llu/%06u", journal->prefix, (unsigned long long)number, part);
}

static struct meta_journal *of(struct pwi_meta_call *call) {
  return (struct meta_journal *)(void *)((char *)call - offsetof(struct meta_journal, call));
}

/* --- reading -------------------------------------------------------------------------------------------- */

static void forget_read(struct meta_journal *journal) {
  while (journal->first) {
    struct read_record *record = journal->first;
    journal->first = record->next;
    pwi_free(record);
  }
  journal->end = &journal->first;
  journal->last = journal->last_created = journal->revision = 0;
}

static void loaded(struct meta_journal *journal, pawl_status status) {
  if (status) forget_read(journal);
  journal->config.loaded(journal->config.context, status);
}

static void complain(const struct meta_journal *journal, uint64_t number, const char *what) {
  pwi_log(journal->config.log, PAWL_LOG_ERROR, "log.unreadable", "prefix=%s record=%llu what=\"%s\"", journal->prefix,
          (unsigned long long)number, what);
}

/* The record number in a key; 0 if the key has none. */
static uint64_t number_of(const struct meta_journal *journal, const char *key) {
  size_t before = strlen(journal->prefix) + strlen("/log/");
  uint64_t number = 0;
  if (strlen(key) != before + DIGITS) return 0;
  for (const char *digit = key + before; *digit; digit++) {
    if (*digit < '0' || *digit > '9') return 0;
    if (__builtin_mul_overflow(number, 10u, &number)) return 0;
    if (__builtin_add_overflow(number, (unsigned)(*digit - '0'), &number)) return 0;
  }
  return number;
}

static struct read_record *read_head(uint64_t number, const unsigned char *value, size_t size,
                                     enum meta_record_kind *kind_out) {
  struct read_record *record = pwi_alloc(sizeof *record + size - PWI_META_RECORD_HEAD);
  if (!record) return NULL;
  *record = (struct read_record){.number = number,
                                 .hash = pwi_get_u64(value + 16),
                                 .parts = pwi_get_u32(value + 8),
                                 .size = size - PWI_META_RECORD_HEAD,
                                 .behind = size - PWI_META_RECORD_HEAD};
  memcpy(record->bytes, value + PWI_META_RECORD_HEAD, record->size);
  *kind_out = (enum meta_record_kind)pwi_get_u16(value + 4);
  return record;
}

static bool head_makes_sense(const unsigned char *value, size_t size) {
  return size >= PWI_META_RECORD_HEAD && pwi_get_u32(value) == MARK && pwi_get_u16(value + 4) <= KIND_FIRST &&
         pwi_get_u16(value + 6) == 0 && pwi_get_u32(value + 8) <= PARTS_MAX && pwi_get_u32(value + 12) == 0;
}

static pawl_status take_pair(struct meta_journal *journal, const struct pwi_meta_pair *pair) {
  uint64_t number = number_of(journal, pair->key);
  enum meta_record_kind kind;
  if (number == 0 || !head_makes_sense(pair->value, pair->size)) {
    complain(journal, number, "not a record");
    return PAWL_CORRUPT;
  }
  struct read_record *record = read_head(number, pair->value, pair->size, &kind);
  if (!record) return PAWL_NO_MEMORY;
  record->next = NULL;
  *journal->end = record;
  journal->end = &record->next;
  bool follows = kind == KIND_FIRST ? journal->last == 0 : number == journal->last + 1;
  if (!follows) {
    complain(journal, number, journal->last == 0 ? "the first records are missing" : "the record before it is missing");
    return PAWL_CORRUPT;
  }
  journal->last = number;
  journal->last_created = pair->created;
  return PAWL_OK;
}

static void check_next(struct meta_journal *journal);

static bool is_whole(const struct meta_journal *journal, const struct read_record *record) {
  if (pwi_hash(record->bytes, record->size, record->number) == record->hash) return true;
  complain(journal, record->number, "the record is damaged");
  return false;
}

/* Inserts a part after the earlier parts, before the bytes that followed the head. */
static pawl_status take_part(struct read_record **place, const struct pwi_meta_pair *pair) {
  struct read_record *record = *place;
  size_t size;
  if (!pwi_add_size(sizeof *record + record->size, pair->size, &size)) return PAWL_NO_MEMORY;
  struct read_record *grown = pwi_resize(record, size);
  if (!grown) return PAWL_NO_MEMORY;
  size_t before = grown->size - grown->behind;
  memmove(grown->bytes + before + pair->size, grown->bytes + before, grown->behind);
  memcpy(grown->bytes + before, pair->value, pair->size);
  grown->size += pair->size;
  grown->parts_read++;
  *place = grown;
  return PAWL_OK;
}

static void part_came(struct pwi_meta_call *call, pawl_status status, const struct pwi_meta_answer *answer) {
  struct meta_journal *journal = of(call);
  if (!status && (answer->pair_count != 1 || answer->pairs[0].size != PWI_META_PART)) {
    complain(journal, (*journal->assembling)->number, "a part of the record is missing");
    status = PAWL_CORRUPT;
  }
  if (!status) status = take_part(journal->assembling, &answer->pairs[0]);
  if (status)
    loaded(journal, status);
  else
    check_next(journal);
}

static void ask_for_part(struct meta_journal *journal, const struct read_record *record) {
  struct pwi_meta *meta = journal->config.meta;
  char key[PWI_META_KEY_MAX];
  part_key(journal, record->number, record->parts_read, key);
  struct pwi_meta_transaction transaction = {
      .steps = {{.act = PWI_META_GET, .key = key, .revision = journal->revision}}, .step_count = 1};
  journal->call.done = part_came;
  pawl_status status = meta->ops->transact(meta, &journal->call, &transaction);
  if (status) loaded(journal, status);
}

/* All records have been read. Reads their parts, and checks each record. */
static void check_next(struct meta_journal *journal) {
  for (; *journal->assembling; journal->assembling = &(*journal->assembling)->next) {
    const struct read_record *record = *journal->assembling;
    if (record->parts_read < record->parts) {
      ask_for_part(journal, record);
      return;
    }
    if (!is_whole(journal, record)) {
      loaded(journal, PAWL_CORRUPT);
      return;
    }
  }
  loaded(journal, PAWL_OK);
}

static void read_page(struct meta_journal *journal);

/* Adapts the number of records in a page to their size. */
static void choose_page(struct meta_journal *journal, const struct pwi_meta_answer *answer) {
  size_t bytes = 0;
  for (size_t i = 0; i < answer->pair_count; i++) bytes += answer->pairs[i].size;
  if (bytes < PAGE_SMALL && journal->page < PAGE_MAX) journal->page *= 2;
  if (bytes > 8 * PAGE_SMALL && journal->page > 1) journal->page /= 2;
}

static pawl_status take_page(struct meta_journal *journal, const struct pwi_meta_answer *answer) {
  for (size_t i = 0; i < answer->pair_count; i++) {
    pawl_status status = take_pair(journal, &answer->pairs[i]);
    if (status) return status;
  }
  return answer->more && answer->pair_count == 0 ? PAWL_CORRUPT : PAWL_OK;
}

static void page_came(struct pwi_meta_call *call, pawl_status status, const struct pwi_meta_answer *answer) {
  struct meta_journal *journal = of(call);
  if (status == PAWL_TOO_LARGE && journal->page > 1) {
    journal->page = journal->page > 8 ? journal->page / 8 : 1;
    read_page(journal);
    return;
  }
  if (status == PAWL_NOT_FOUND && journal->revision != 0) { /* the store no longer keeps that revision: start
                                                               again */
    forget_read(journal);
    read_page(journal);
    return;
  }
  if (!status) status = take_page(journal, answer);
  if (status) {
    loaded(journal, status);
    return;
  }
  if (journal->revision == 0) journal->revision = answer->revision;
  choose_page(journal, answer);
  if (answer->more) {
    read_page(journal);
    return;
  }
  journal->assembling = &journal->first;
  check_next(journal);
}

static void read_page(struct meta_journal *journal) {
  struct pwi_meta *meta = journal->config.meta;
  char begin[PWI_META_KEY_MAX], end[PWI_META_KEY_MAX];
  log_key(journal, journal->last + 1, begin);
  /* '0' is the character after '/'. So the range has all keys below prefix/log/, valid or not. */
  if (journal->last == 0) snprintf(begin, sizeof begin, "%s/log/", journal->prefix);
  snprintf(end, sizeof end, "%s/log0", journal->prefix);
  struct pwi_meta_transaction transaction = {
      .steps = {{.act = PWI_META_GET, .key = begin, .end = end, .limit = journal->page, .revision = journal->revision}},
      .step_count = 1};
  journal->call.done = page_came;
  pawl_status status = meta->ops->transact(meta, &journal->call, &transaction);
  if (status) loaded(journal, status);
}

void pwi_journal_meta_load(struct pwi_journal *base) {
  struct meta_journal *journal = (struct meta_journal *)base;
  forget_read(journal);
  journal->page = PAGE_FIRST;
  read_page(journal);
}

static pawl_status replay(struct pwi_journal *base,
                          pawl_status (*visit)(void *context, const void *record, size_t size), void *context) {
  struct meta_journal *journal = (struct meta_journal *)base;
  pawl_status status = PAWL_OK;
  while (journal->first) {
    struct read_record *record = journal->first;
    if (!status) status = visit(context, record->bytes, record->size);
    journal->bytes += record->size;
    if (status == PAWL_CORRUPT) complain(journal, record->number, "the record does not fit to the records before it");
    journal->first = record->next;
    pwi_free(record);
    if (status) break;
  }
  if (!journal->first) journal->end = &journal->first;
  return status;
}

/* --- writing -------------------------------------------------------------------------------------------- */

static void written(struct meta_journal *journal, pawl_status status) {
  struct pwi_journal_meta_config config = journal->config;
  pwi_free(journal->record);
  journal->record = NULL;
  journal->journal.safe(journal->journal.context, status);
  if (status) config.failed(config.context, status);
}

/* The tests failed. True if they failed only because an earlier attempt succeeded: the record is in the
 * store, and this manager still leads. */
static bool was_done_before(const struct meta_journal *journal, const struct pwi_meta_answer *answer,
                            uint64_t *created_out) {
  struct pwi_meta_test fence[PWI_ELECTION_TESTS];
  char key[PWI_META_KEY_MAX];
  bool is_there = false, is_ours = false;
  pwi_election_fence(journal->config.election, fence);
  log_key(journal, journal->last + 1, key);
  for (size_t i = 0; i < answer->pair_count; i++) {
    const struct pwi_meta_pair *pair = &answer->pairs[i];
    if (strcmp(pair->key, key) == 0 && pair->size == journal->value.size &&
        memcmp(pair->value, journal->value.data, pair->size) == 0) {
      is_there = true;
      *created_out = pair->created;
    }
    is_ours |= strcmp(pair->key, fence[0].key) == 0 && pair->created == fence[0].created;
  }
  return is_there && is_ours;
}

static void record_put(struct pwi_meta_call *call, pawl_status status, const struct pwi_meta_answer *answer) {
  struct meta_journal *journal = of(call);
  uint64_t created = 0;
  if (!status && answer->held) created = answer->revision;
  if (!status && !answer->held && !was_done_before(journal, answer, &created)) status = PAWL_NODE_DEPOSED;
  if (!status) {
    journal->last++;
    journal->last_created = created;
  }
  written(journal, status);
}

static size_t put_tests(const struct meta_journal *journal, const char *key, const char *before,
                        struct pwi_meta_test *tests) {
  size_t count = PWI_ELECTION_TESTS;
  pwi_election_fence(journal->config.election, tests);
  tests[count++] = (struct pwi_meta_test){PWI_META_CREATED, key, 0, NULL, 0};
  if (journal->last != 0)
    tests[count++] = (struct pwi_meta_test){PWI_META_CREATED, before, journal->last_created, NULL, 0};
  return count;
}

static void put_record(struct meta_journal *journal) {
  struct pwi_meta *meta = journal->config.meta;
  char key[PWI_META_KEY_MAX], before[PWI_META_KEY_MAX], parts[PWI_META_KEY_MAX], begin[2][PWI_META_KEY_MAX];
  uint64_t number = journal->last + 1;
  log_key(journal, number, key);
  log_key(journal, journal->last, before);
  part_key(journal, number, 0, parts);
  snprintf(begin[0], sizeof begin[0], "%s/log/", journal->prefix);
  snprintf(begin[1], sizeof begin[1], "%s/part/", journal->prefix);
  struct pwi_meta_transaction transaction = {
      .steps = {{.act = PWI_META_PUT, .key = key, .value = journal->value.data, .size = journal->value.size},
                {.act = PWI_META_DELETE, .key = begin[0], .end = key},
                {.act = PWI_META_DELETE, .key = begin[1], .end = parts}},
      .step_count = journal->kind == KIND_FIRST ? 3 : 1,
      .others = {{.act = PWI_META_GET, .key = key}, {.act = PWI_META_GET}},
      .other_count = 2,
  };
  transaction.test_count = put_tests(journal, key, before, transaction.tests);
  transaction.others[1].key = transaction.tests[0].key;
  journal->call.done = record_put;
  pawl_status status = meta->ops->transact(meta, &journal->call, &transaction);
  if (status) written(journal, status);
}

static void put_next(struct meta_journal *journal);

static void part_put(struct pwi_meta_call *call, pawl_status status, const struct pwi_meta_answer *answer) {
  struct meta_journal *journal = of(call);
  if (!status && !answer->held) status = PAWL_NODE_DEPOSED;
  if (status) {
    written(journal, status);
    return;
  }
  journal->parts_put++;
  put_next(journal);
}

static void put_next(struct meta_journal *journal) {
  struct pwi_meta *meta = journal->config.meta;
  char key[PWI_META_KEY_MAX];
  if (journal->parts_put == journal->parts) {
    put_record(journal);
    return;
  }
  part_key(journal, journal->last + 1, journal->parts_put, key);
  struct pwi_meta_transaction transaction = {.test_count = PWI_ELECTION_TESTS,
                                             .steps = {{.act = PWI_META_PUT,
                                                        .key = key,
                                                        .value = journal->record + journal->parts_put * PWI_META_PART,
                                                        .size = PWI_META_PART}},
                                             .step_count = 1};
  pwi_election_fence(journal->config.election, transaction.tests);
  journal->call.done = part_put;
  pawl_status status = meta->ops->transact(meta, &journal->call, &transaction);
  if (status) written(journal, status);
}

static void write_value(struct meta_journal *journal) {
  size_t behind = journal->parts * PWI_META_PART;
  pwi_writer_reset(&journal->value);
  pwi_write_u32(&journal->value, MARK);
  pwi_write_u16(&journal->value, (uint16_t)journal->kind);
  pwi_write_u16(&journal->value, 0);
  pwi_write_u32(&journal->value, journal->parts);
  pwi_write_u32(&journal->value, 0);
  pwi_write_u64(&journal->value, pwi_hash(journal->record, journal->size, journal->last + 1));
  pwi_write_bytes(&journal->value, journal->record + behind, journal->size - behind);
}

static pawl_status keep(struct meta_journal *journal, const void *record, size_t size, enum meta_record_kind kind) {
  size_t parts = size > 0 ? (size - 1) / PWI_META_PART : 0;
  if (parts > PARTS_MAX) return PAWL_TOO_LARGE;
  journal->record = pwi_alloc(size);
  if (!journal->record) return PAWL_NO_MEMORY;
  if (size > 0) memcpy(journal->record, record, size);
  journal->size = size;
  journal->kind = kind;
  journal->parts = (uint32_t)parts;
  journal->parts_put = 0;
  write_value(journal);
  return journal->value.status;
}

static void submit(struct meta_journal *journal, const void *record, size_t size, enum meta_record_kind kind) {
  assert(!journal->record);
  pawl_status status = keep(journal, record, size, kind);
  if (status)
    written(journal, status);
  else
    put_next(journal);
}

static void append(struct pwi_journal *base, const void *record, size_t size) {
  struct meta_journal *journal = (struct meta_journal *)base;
  journal->bytes += size;
  submit(journal, record, size, KIND_NEXT);
}

void pwi_journal_meta_replace(struct pwi_journal *base, const void *record, size_t size) {
  struct meta_journal *journal = (struct meta_journal *)base;
  journal->bytes = size;
  submit(journal, record, size, KIND_FIRST);
}

static uint64_t size_of(const struct pwi_journal *base) { return ((const struct meta_journal *)base)->bytes; }

/* --- life ----------------------------------------------------------------------------------------------- */

static void destroy(struct pwi_journal *base) {
  struct meta_journal *journal = (struct meta_journal *)base;
  struct pwi_meta *meta = journal->config.meta;
  meta->ops->cancel(meta, &journal->call);
  forget_read(journal);
  pwi_free(journal->record);
  pwi_writer_fini(&journal->value);
  pwi_free(journal);
}

static const struct pwi_journal_ops meta_ops = {
    .append = append, .replace = pwi_journal_meta_replace, .size = size_of, .replay = replay, .destroy = destroy};

pawl_status pwi_journal_meta_create(const struct pwi_journal_meta_config *config, struct pwi_journal **journal_out) {
  if (strlen(config->prefix) > PWI_PREFIX_MAX) return PAWL_INVALID;
  struct meta_journal *journal = pwi_alloc_zero(1, sizeof *journal);
  if (!journal) return PAWL_NO_MEMORY;
  journal->journal.ops = &meta_ops;
  journal->config = *config;
  memcpy(journal->prefix, config->prefix, strlen(config->prefix) + 1);
  journal->config.prefix = journal->prefix;
  journal->end = &journal->first;
  journal->call.patience_ns = PWI_META_PATIENT;
  *journal_out = &journal->journal;
  return PAWL_OK;
}

uint64_t pwi_journal_meta_count(const struct pwi_journal *base) { return ((const struct meta_journal *)base)->last; }
