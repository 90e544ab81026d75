/* The journal in a file. The header describes the format. */
#include "manager/ledger/journal_file.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "base/memory.h"

static const char magic[8] = {'p', 'a', 'w', 'l', '-', 'l', 'o', 'g'};

#define HEAD PWI_JOURNAL_HEAD_SIZE
#define RECORD_HEAD ((size_t)PWI_JOURNAL_RECORD_HEAD)
#define SUM ((size_t)8)
#define LAST_BITS (UINT64_C(3) << 56) /* set in every check and sum */
#define PAGE ((size_t)4096)           /* the disk is assumed to keep the order of bytes within one page */

/* A boundary between two records: offset and number of the next record, and the sum of the last. */
struct boundary {
  uint64_t offset, number, sum;
};

/* `journal` is the first member, so that a pointer to it can be cast. */
struct file_journal {
  struct pwi_journal journal;
  struct pwi_files *files;
  const struct pwi_log *log;
  char *name, *fresh_name, *lock_name, *directory;
  struct pwi_file *lock, *file;
  uint64_t seed;            /* the check of the file's head */
  uint64_t base;            /* size of the file when it got its name */
  struct boundary last;     /* begin of the last record, if there is one */
  struct boundary end;      /* begin of the next record */
  pawl_status failed;       /* the first failure: nothing more is appended */
  struct pwi_writer buffer; /* one record with head and sum */
};

typedef pawl_status visitor(void *context, const void *record, size_t size);

/* --- sums ----------------------------------------------------------------------------------------------- */

static uint64_t seal(const void *data, size_t size, uint64_t seed) { return pwi_hash(data, size, seed) | LAST_BITS; }

static uint64_t sum_of(const void *data, size_t size, uint64_t check, uint64_t before) {
  uint8_t both[16];
  pwi_put_u64(both, before);
  pwi_put_u64(both + 8, check);
  return seal(data, size, pwi_hash(both, sizeof both, 0));
}

/* Writes the record for `place` to the buffer, and returns the place after it. */
static pawl_status frame(struct file_journal *file, const struct boundary *place, uint64_t seed, const void *record,
                         size_t size, struct boundary *next_out) {
  assert(size > 0);
  if (size > PWI_JOURNAL_RECORD_MAX) return PAWL_TOO_LARGE;
  uint8_t *at = pwi_write_room(&file->buffer, RECORD_HEAD + size + SUM);
  if (!at) return file->buffer.status;
  pwi_put_u64(at, place->number);
  pwi_put_u64(at + 8, size);
  uint64_t check = seal(at, 16, seed), sum = sum_of(record, size, check, place->sum);
  pwi_put_u64(at + 16, check);
  memcpy(at + RECORD_HEAD, record, size);
  pwi_put_u64(at + RECORD_HEAD + size, sum);
  *next_out = (struct boundary){place->offset + RECORD_HEAD + size + SUM, place->number + 1, sum};
  return PAWL_OK;
}

static void frame_head(uint8_t head[HEAD], uint64_t first, uint64_t base) {
  memcpy(head, magic, sizeof magic);
  pwi_put_u32(head + 8, PWI_JOURNAL_VERSION);
  pwi_put_u32(head + 12, 0);
  pwi_put_u64(head + 16, first);
  pwi_put_u64(head + 24, base);
  pwi_put_u64(head + 32, seal(head, 32, 0));
}

static bool is_sound_head(const uint8_t head[PWI_JOURNAL_RECORD_HEAD], uint64_t seed) {
  uint64_t size = pwi_get_u64(head + 8);
  return pwi_get_u64(head + 16) == seal(head, 16, seed) && size > 0 && size <= PWI_JOURNAL_RECORD_MAX;
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* The file is known to have these bytes. */
static pawl_status read_all(struct pwi_file *file, uint64_t offset, void *into, size_t size) {
  size_t got;
  pawl_status status = pwi_file_read(file, offset, into, size, &got);
  if (status) return status;
  return got == size ? PAWL_OK : PAWL_CORRUPT;
}

static pawl_status damaged(const struct file_journal *file, const struct boundary *place, const char *what) {
  pwi_log(file->log, PAWL_LOG_ERROR, "journal.damaged", "file=%s offset=%llu record=%llu what=%s", file->name,
          (unsigned long long)place->offset, (unsigned long long)place->number, what);
  return PAWL_CORRUPT;
}

static pawl_status read_file_head(struct file_journal *file, uint64_t size, struct boundary *place_out) {
  uint8_t head[HEAD];
  struct boundary start = {0};
  if (size < HEAD) return damaged(file, &start, "too-short-for-a-log");
  pawl_status status = read_all(file->file, 0, head, HEAD);
  if (status) return status;
  uint32_t version = pwi_get_u32(head + 8);
  file->seed = pwi_get_u64(head + 32);
  file->base = pwi_get_u64(head + 24);
  if (memcmp(head, magic, sizeof magic) != 0) return damaged(file, &start, "not-a-log-of-pawl");
  if (file->seed != seal(head, 32, 0)) return damaged(file, &start, "head");
  if (version != PWI_JOURNAL_VERSION) {
    pwi_log(file->log, PAWL_LOG_ERROR, "journal.version", "file=%s found=%u known=%u", file->name, (unsigned)version,
            (unsigned)PWI_JOURNAL_VERSION);
    return PAWL_UNSUPPORTED;
  }
  *place_out = (struct boundary){HEAD, pwi_get_u64(head + 16), file->seed};
  return PAWL_OK;
}

/* Whether a valid head of a later record follows `place`: then the record at `place` was finished before that
 * one was written. */
static pawl_status look_for_later(struct file_journal *file, const struct boundary *place, uint64_t size,
                                  bool *found_out) {
  uint8_t window[PAGE];
  *found_out = false;
  for (uint64_t offset = place->offset + 1; offset + RECORD_HEAD <= size; offset += PAGE - RECORD_HEAD + 1) {
    size_t step = size - offset < PAGE ? (size_t)(size - offset) : PAGE;
    pawl_status status = read_all(file->file, offset, window, step);
    if (status) return status;
    for (size_t i = 0; i + RECORD_HEAD <= step; i++) {
      if (!is_sound_head(window + i, file->seed) || pwi_get_u64(window + i) <= place->number) continue;
      *found_out = true;
      return PAWL_OK;
    }
  }
  return PAWL_OK;
}

/* The head of a record is not valid: it is damaged or unfinished. */
static pawl_status judge_head(struct file_journal *file, const struct boundary *place, uint64_t size,
                              const uint8_t head[PWI_JOURNAL_RECORD_HEAD]) {
  bool followed = true;
  if (head[RECORD_HEAD - 1] != 0) return damaged(file, place, "head");
  pawl_status status = look_for_later(file, place, size, &followed);
  if (status) return status;
  return followed ? damaged(file, place, "head-missing") : PAWL_TRUNCATED;
}

/* Reads the record at `place` into the buffer, and advances `place`. PAWL_TRUNCATED: it is an unfinished last
 * record. */
static pawl_status read_record(struct file_journal *file, uint64_t size, struct boundary *place) {
  uint64_t left = size - place->offset;
  uint8_t head[PWI_JOURNAL_RECORD_HEAD];
  if (left < RECORD_HEAD) return PAWL_TRUNCATED;
  pawl_status status = read_all(file->file, place->offset, head, RECORD_HEAD);
  if (status) return status;
  if (!is_sound_head(head, file->seed)) return judge_head(file, place, size, head);
  if (pwi_get_u64(head) != place->number) return damaged(file, place, "out-of-order");
  uint64_t bytes = pwi_get_u64(head + 8), whole = RECORD_HEAD + bytes + SUM;
  if (left < whole) return PAWL_TRUNCATED;
  pwi_writer_reset(&file->buffer);
  uint8_t *into = pwi_write_room(&file->buffer, (size_t)whole);
  if (!into) return file->buffer.status;
  status = read_all(file->file, place->offset, into, (size_t)whole);
  if (status) return status;
  uint64_t sum = sum_of(into + RECORD_HEAD, (size_t)bytes, pwi_get_u64(head + 16), place->sum);
  if (memcmp(into, head, RECORD_HEAD) == 0 && pwi_get_u64(into + RECORD_HEAD + bytes) == sum) {
    *place = (struct boundary){place->offset + whole, place->number + 1, sum};
    return PAWL_OK;
  }
  return left == whole && into[whole - 1] == 0 ? PAWL_TRUNCATED : damaged(file, place, "bytes");
}

/* Passes every record to `visit`, in order, unless `visit` is NULL. Sets `end` after the last complete
 * record. The first `base` bytes cannot be unfinished. */
static pawl_status walk(struct file_journal *file, uint64_t size, visitor *visit, void *context) {
  struct boundary place;
  pawl_status status = read_file_head(file, size, &place);
  if (status) return status;
  file->last = place;
  while (place.offset < size) {
    struct boundary before = place;
    status = read_record(file, size, &place);
    if (status == PAWL_TRUNCATED) break;
    if (!status && visit)
      status = visit(context, file->buffer.data + RECORD_HEAD, file->buffer.size - RECORD_HEAD - SUM);
    if (status) return status;
    file->last = before;
  }
  if (place.offset < file->base) return damaged(file, &place, "cut-off");
  file->end = place;
  return PAWL_OK;
}

/* --- writing -------------------------------------------------------------------------------------------- */

static pawl_status write_synced(struct file_journal *file, uint64_t offset, const uint8_t *bytes, size_t size) {
  pawl_status status = pwi_file_write(file->file, offset, bytes, size);
  return status ? status : pwi_file_sync(file->file);
}

/* Writes the buffer, which is one record, at `offset`, and syncs it. If it lies in several pages, the one with the end
 * of its head is written when all others are on the disk. */
static pawl_status write_record(struct file_journal *file, uint64_t offset) {
  const uint8_t *bytes = file->buffer.data;
  size_t size = file->buffer.size, in_page = PAGE - (size_t)(offset % PAGE), begin = 0;
  pawl_status status = PAWL_OK;
  if (size > in_page) {
    status = write_synced(file, offset + RECORD_HEAD, bytes + RECORD_HEAD, size - RECORD_HEAD);
    size = RECORD_HEAD;
  }
  if (!status && size > in_page) {
    status = write_synced(file, offset, bytes, in_page);
    begin = in_page;
  }
  return status ? status : write_synced(file, offset + begin, bytes + begin, size - begin);
}

/* Creates and syncs a new file with one record or none. It does not have the journal's name yet. */
static pawl_status write_fresh(struct file_journal *file, const void *record, size_t size, struct pwi_file **fresh_out,
                               uint64_t *seed_out, struct boundary *end_out) {
  struct boundary start = {.offset = HEAD, .number = file->end.number}, end = start;
  uint8_t head[HEAD];
  frame_head(head, start.number, record ? HEAD + RECORD_HEAD + size + SUM : HEAD);
  uint64_t seed = start.sum = end.sum = pwi_get_u64(head + 32);
  pwi_writer_reset(&file->buffer);
  pawl_status status = record ? frame(file, &start, seed, record, size, &end) : PAWL_OK;
  struct pwi_file *fresh = NULL;
  unsigned how = PWI_OPEN_WRITE | PWI_OPEN_CREATE | PWI_OPEN_TRUNCATE;
  if (!status) status = pwi_files_open(file->files, file->fresh_name, how, &fresh);
  if (!status) status = pwi_file_write(fresh, 0, head, HEAD);
  if (!status && record) status = pwi_file_write(fresh, HEAD, file->buffer.data, file->buffer.size);
  if (!status) status = pwi_file_sync(fresh);
  if (status) {
    pwi_file_close(fresh);
    pawl_status ignored = pwi_files_remove(file->files, file->fresh_name);
    (void)ignored; /* it is overwritten next time */
    return status;
  }
  *fresh_out = fresh;
  *seed_out = seed;
  *end_out = end;
  return PAWL_OK;
}

/* Renames the new file over the old one. After a failure it is unknown which of the two a crash would
 * leave. */
static pawl_status give_name(struct file_journal *file, struct pwi_file *fresh, uint64_t seed,
                             const struct boundary *end) {
  pawl_status status = pwi_files_rename(file->files, file->fresh_name, file->name);
  if (!status) status = pwi_files_sync_directory(file->files, file->directory);
  if (status) {
    pwi_file_close(fresh);
    return status;
  }
  pwi_file_close(file->file);
  file->file = fresh;
  file->seed = seed;
  file->end = *end;
  file->base = end->offset;
  return PAWL_OK;
}

/* --- the journal ---------------------------------------------------------------------------------------- */

static void fail(struct file_journal *file, const char *what, pawl_status status) {
  file->failed = status;
  pwi_log(file->log, PAWL_LOG_ERROR, "journal.broken", "file=%s what=%s why=%s", file->name, what,
          pawl_status_name(status));
}

static void append(struct pwi_journal *journal, const void *record, size_t size) {
  struct file_journal *file = (struct file_journal *)journal;
  struct boundary next;
  if (!file->failed) {
    pwi_writer_reset(&file->buffer);
    pawl_status status = frame(file, &file->end, file->seed, record, size, &next);
    if (!status) status = write_record(file, file->end.offset);
    if (status)
      fail(file, "append", status);
    else
      file->end = next;
  }
  journal->safe(journal->context, file->failed);
}

static void replace(struct pwi_journal *journal, const void *record, size_t size) {
  struct file_journal *file = (struct file_journal *)journal;
  struct pwi_file *fresh;
  struct boundary end;
  uint64_t seed, before = file->end.offset;
  pawl_status status = file->failed ? file->failed : write_fresh(file, record, size, &fresh, &seed, &end);
  if (status && !file->failed) {
    pwi_log(file->log, PAWL_LOG_WARN, "journal.not_replaced", "file=%s bytes=%llu why=%s", file->name,
            (unsigned long long)before, pawl_status_name(status));
  } else if (!file->failed) {
    status = give_name(file, fresh, seed, &end);
    if (status)
      fail(file, "replace", status);
    else
      pwi_log(file->log, PAWL_LOG_INFO, "journal.replaced", "file=%s bytes=%llu before=%llu", file->name,
              (unsigned long long)end.offset, (unsigned long long)before);
  }
  journal->safe(journal->context, file->failed);
}

static uint64_t size_of(const struct pwi_journal *journal) {
  return ((const struct file_journal *)journal)->end.offset;
}

static pawl_status replay(struct pwi_journal *journal, visitor *visit, void *context) {
  struct file_journal *file = (struct file_journal *)journal;
  struct boundary end = file->end;
  pawl_status status = walk(file, end.offset, visit, context);
  pwi_writer_fini(&file->buffer);
  if (!status && file->end.sum != end.sum) status = damaged(file, &end, "changed-meanwhile");
  return status;
}

static void destroy(struct pwi_journal *journal) {
  struct file_journal *file = (struct file_journal *)journal;
  pwi_file_close(file->file);
  pwi_file_close(file->lock);
  pwi_writer_fini(&file->buffer);
  pwi_free(file->name);
  pwi_free(file->fresh_name);
  pwi_free(file->lock_name);
  pwi_free(file->directory);
  pwi_free(file);
}

static const struct pwi_journal_ops file_ops = {
    .append = append, .replace = replace, .size = size_of, .replay = replay, .destroy = destroy};

/* --- opening -------------------------------------------------------------------------------------------- */

static char *with_suffix(const char *name, const char *suffix) {
  size_t length = strlen(name), more = strlen(suffix) + 1;
  char *text = pwi_alloc(length + more);
  if (!text) return NULL;
  memcpy(text, name, length);
  memcpy(text + length, suffix, more);
  return text;
}

static pawl_status make_names(struct file_journal *file, const char *name) {
  file->name = pwi_copy_string(name);
  file->fresh_name = with_suffix(name, ".new");
  file->lock_name = with_suffix(name, ".lock");
  file->directory = pwi_copy_string(strchr(name, '/') ? name : ".");
  if (!file->name || !file->fresh_name || !file->lock_name || !file->directory) return PAWL_NO_MEMORY;
  char *slash = strrchr(file->directory, '/');
  if (slash) *slash = '\0';
  return PAWL_OK;
}

static pawl_status lock(struct file_journal *file) {
  pawl_status status = pwi_files_open(file->files, file->lock_name, PWI_OPEN_WRITE | PWI_OPEN_CREATE, &file->lock);
  return status ? status : pwi_file_try_lock(file->lock);
}

static pawl_status begin(struct file_journal *file) {
  struct pwi_file *fresh;
  struct boundary end;
  uint64_t seed;
  file->end.number = 1;
  pawl_status status = write_fresh(file, NULL, 0, &fresh, &seed, &end);
  if (!status) status = give_name(file, fresh, seed, &end);
  if (!status) pwi_log(file->log, PAWL_LOG_INFO, "journal.new", "file=%s", file->name);
  return status;
}

/* Writes the last record again. The manager that wrote it may have crashed before its sync ended. */
static pawl_status repeat_last(struct file_journal *file) {
  struct boundary place = file->last;
  if (place.offset == file->end.offset) return PAWL_OK;
  pawl_status status = read_record(file, file->end.offset, &place);
  if (status || place.sum != file->end.sum) return status ? status : damaged(file, &place, "changed-meanwhile");
  return write_record(file, file->last.offset);
}

/* Cuts off an unfinished record, and syncs file and directory. */
static pawl_status settle(struct file_journal *file, uint64_t size) {
  pawl_status status = PAWL_OK;
  if (file->end.offset < size) {
    pwi_log(file->log, PAWL_LOG_WARN, "journal.unfinished", "file=%s kept=%llu cut=%llu", file->name,
            (unsigned long long)file->end.offset, (unsigned long long)(size - file->end.offset));
    status = pwi_file_truncate(file->file, file->end.offset);
  }
  if (!status) status = repeat_last(file);
  if (!status) status = pwi_file_sync(file->file);
  return status ? status : pwi_files_sync_directory(file->files, file->directory);
}

static pawl_status open_log(struct file_journal *file) {
  uint64_t size;
  pawl_status status = pwi_files_open(file->files, file->name, PWI_OPEN_WRITE, &file->file);
  if (status == PAWL_NOT_FOUND) return begin(file);
  if (!status) status = pwi_file_size(file->file, &size);
  if (!status) status = walk(file, size, NULL, NULL);
  return status ? status : settle(file, size);
}

pawl_status pwi_journal_file_open(struct pwi_files *files, const char *name, const struct pwi_log *log,
                                  struct pwi_journal **journal_out) {
  struct file_journal *file = pwi_alloc_zero(1, sizeof *file);
  if (!file) return PAWL_NO_MEMORY;
  file->journal.ops = &file_ops;
  file->files = files;
  file->log = log;
  pawl_status status = make_names(file, name);
  if (!status) status = lock(file);
  if (!status) status = open_log(file);
  if (status) {
    destroy(&file->journal);
    return status;
  }
  *journal_out = &file->journal;
  return PAWL_OK;
}
