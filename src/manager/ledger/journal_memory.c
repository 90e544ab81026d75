/* A journal in memory, for simulations and for clusters that end with their manager. */
#include "manager/ledger/journal.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

struct kept_record {
  struct kept_record *next;
  size_t size;
  unsigned char bytes[];
};

/* `journal` is the first member, so that a pointer to it can be cast. */
struct memory_journal {
  struct pwi_journal journal;
  struct kept_record *first, **end;
  uint64_t bytes;
};

static pawl_status keep(struct memory_journal *memory, const void *record, size_t size) {
  size_t whole;
  if (!pwi_add_size(sizeof(struct kept_record), size, &whole)) return PAWL_NO_MEMORY;
  struct kept_record *kept = pwi_alloc(whole);
  if (!kept) return PAWL_NO_MEMORY;
  kept->next = NULL;
  kept->size = size;
  memcpy(kept->bytes, record, size);
  *memory->end = kept;
  memory->end = &kept->next;
  memory->bytes += size;
  return PAWL_OK;
}

static void forget(struct kept_record *kept) {
  while (kept) {
    struct kept_record *next = kept->next;
    pwi_free(kept);
    kept = next;
  }
}

static void append(struct pwi_journal *journal, const void *record, size_t size) {
  journal->safe(journal->context, keep((struct memory_journal *)journal, record, size));
}

/* Without memory the old records stay. */
static void replace(struct pwi_journal *journal, const void *record, size_t size) {
  struct memory_journal *memory = (struct memory_journal *)journal;
  struct memory_journal fresh = {.first = NULL};
  fresh.end = &fresh.first;
  if (!keep(&fresh, record, size)) {
    forget(memory->first);
    memory->first = fresh.first;
    memory->end = &memory->first->next;
    memory->bytes = fresh.bytes;
  }
  journal->safe(journal->context, PAWL_OK);
}

static uint64_t size_of(const struct pwi_journal *journal) { return ((const struct memory_journal *)journal)->bytes; }

static pawl_status replay(struct pwi_journal *journal,
                          pawl_status (*visit)(void *context, const void *record, size_t size), void *context) {
  struct memory_journal *memory = (struct memory_journal *)journal;
  for (struct kept_record *kept = memory->first; kept; kept = kept->next) {
    pawl_status status = visit(context, kept->bytes, kept->size);
    if (status) return status;
  }
  return PAWL_OK;
}

static void destroy(struct pwi_journal *journal) {
  struct memory_journal *memory = (struct memory_journal *)journal;
  forget(memory->first);
  pwi_free(memory);
}

static const struct pwi_journal_ops memory_ops = {
    .append = append, .replace = replace, .size = size_of, .replay = replay, .destroy = destroy};

pawl_status pwi_journal_memory_create(struct pwi_journal **journal_out) {
  struct memory_journal *memory = pwi_alloc_zero(1, sizeof *memory);
  if (!memory) return PAWL_NO_MEMORY;
  memory->journal.ops = &memory_ops;
  memory->end = &memory->first;
  *journal_out = &memory->journal;
  return PAWL_OK;
}
