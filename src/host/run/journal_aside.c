/* A journal that is written aside. */
#include "host/run/journal_aside.h"

#include "base/memory.h"
#include "host/aside.h"

struct journal_aside {
  struct pwi_journal base;
  struct pwi_journal *inside;
  struct pwi_aside aside;

  /* The call under way. */
  void (*write)(struct pwi_journal *journal, const void *record, size_t size);
  const void *record;
  size_t size;
  pawl_status status;
};

static void is_safe(void *context, pawl_status status) { ((struct journal_aside *)context)->status = status; }

static void write_inside(void *argument) {
  struct journal_aside *journal = argument;
  journal->write(journal->inside, journal->record, journal->size);
}

static void write_aside(struct journal_aside *journal,
                        void (*write)(struct pwi_journal *journal, const void *record, size_t size), const void *record,
                        size_t size) {
  journal->inside->safe = is_safe;
  journal->inside->context = journal;
  journal->write = write;
  journal->record = record;
  journal->size = size;
  journal->status = PAWL_IO; /* if the journal inside breaks its contract */
  pwi_aside_run(&journal->aside, write_inside, journal);
  journal->base.safe(journal->base.context, journal->status);
}

static void append(struct pwi_journal *base, const void *record, size_t size) {
  struct journal_aside *journal = (struct journal_aside *)base;
  write_aside(journal, journal->inside->ops->append, record, size);
}

static void replace(struct pwi_journal *base, const void *record, size_t size) {
  struct journal_aside *journal = (struct journal_aside *)base;
  write_aside(journal, journal->inside->ops->replace, record, size);
}

static uint64_t size_of(const struct pwi_journal *base) {
  const struct pwi_journal *inside = ((const struct journal_aside *)base)->inside;
  return inside->ops->size(inside);
}

static pawl_status replay(struct pwi_journal *base,
                          pawl_status (*visit)(void *context, const void *record, size_t size), void *context) {
  struct pwi_journal *inside = ((struct journal_aside *)base)->inside;
  return inside->ops->replay(inside, visit, context);
}

static void destroy(struct pwi_journal *base) {
  struct journal_aside *journal = (struct journal_aside *)base;
  pwi_aside_fini(&journal->aside);
  pwi_free(journal);
}

pawl_status pwi_journal_aside_create(struct pwi_journal *inside, struct pwi_net *net,
                                     struct pwi_journal **journal_out) {
  static const struct pwi_journal_ops ops = {
      .append = append, .replace = replace, .size = size_of, .replay = replay, .destroy = destroy};
  struct journal_aside *journal = pwi_alloc_zero(1, sizeof *journal);
  if (!journal) return PAWL_NO_MEMORY;
  journal->base.ops = &ops;
  journal->inside = inside;
  pawl_status status = pwi_aside_init(&journal->aside, net);
  if (status) {
    pwi_free(journal);
    return status;
  }
  *journal_out = &journal->base;
  return PAWL_OK;
}
