#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"

#define MAGIC UINT64_C(0x6d726f74736c7770) /* "pwlstorm" */
#define VERSION 1
#define RECORD_SIZE 32
#define CHECK_AT 24 /* the checksum is the last word */
#define KIND_SHIFT 60
#define SERIAL_MASK ((UINT64_C(1) << KIND_SHIFT) - 1)
#define EIGHTH (PWI_STORM_KEYS / PWI_STORM_TOUCHED)

/* --- pushes --------------------------------------------------------------------------------------------- */

const char *pwi_storm_table_name(enum pwi_storm_table table) {
  return table == PWI_STORM_DENSE ? "storm/dense" : "storm/mixed";
}

void pwi_storm_table_options(enum pwi_storm_table table, struct pawl_vector_options *options_out) {
  pawl_vector_options_init(options_out);
  options_out->type = PAWL_U64;
  options_out->width = PWI_STORM_WIDTH;
  if (table == PWI_STORM_DENSE) options_out->size = (uint64_t)PWI_STORM_KEYS * PWI_STORM_WORKERS_MAX;
}

/* In the dense vector a worker's keys are far apart; in the other one the placement scatters them. */
uint64_t pwi_storm_key(enum pwi_storm_table table, uint32_t worker, uint32_t index) {
  if (table == PWI_STORM_DENSE) return (uint64_t)index * PWI_STORM_WORKERS_MAX + worker;
  return (uint64_t)worker * PWI_STORM_KEYS + index;
}

enum pwi_storm_table pwi_storm_table_of(uint64_t serial) { return serial % 2 ? PWI_STORM_DENSE : PWI_STORM_MIXED; }

uint64_t pwi_storm_keys_of(uint32_t worker, uint64_t serial) {
  uint64_t drawn = pwi_mix64(serial + ((uint64_t)worker << 48)), keys = 0;
  for (unsigned group = 0; group < PWI_STORM_TOUCHED; group++, drawn /= EIGHTH)
    keys |= UINT64_C(1) << (group * EIGHTH + drawn % EIGHTH);
  return keys;
}

void pwi_storm_row(uint64_t serial, uint64_t row_out[PWI_STORM_WIDTH]) {
  row_out[0] = 1;
  row_out[1] = serial;
  row_out[2] = serial * serial;
  row_out[3] = pwi_mix64(serial);
}

/* --- writing -------------------------------------------------------------------------------------------- */

static void seal(unsigned char *record, uint64_t offset) {
  pwi_put_u64(record + CHECK_AT, pwi_hash(record, CHECK_AT, offset));
}

static bool is_sealed(const unsigned char *record, uint64_t offset) {
  return pwi_get_u64(record + CHECK_AT) == pwi_hash(record, CHECK_AT, offset);
}

static pawl_status append(struct pwi_storm_writer *writer, unsigned char *record) {
  seal(record, writer->offset);
  ssize_t written;
  do written = write(writer->file, record, RECORD_SIZE);
  while (written < 0 && errno == EINTR);
  if (written != RECORD_SIZE) return written < 0 && errno != ENOSPC ? PAWL_IO : PAWL_NO_SPACE;
  writer->offset += RECORD_SIZE;
  return PAWL_OK;
}

pawl_status pwi_storm_writer_open(const char *path, uint32_t worker, struct pwi_storm_writer *writer_out) {
  unsigned char head[RECORD_SIZE] = {0};
  struct pwi_storm_writer writer = {.worker = worker};
  writer.file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (writer.file < 0) return errno == EEXIST ? PAWL_EXISTS : PAWL_IO;
  pwi_put_u64(head, MAGIC);
  pwi_put_u32(head + 8, VERSION);
  pwi_put_u32(head + 12, worker);
  pawl_status status = append(&writer, head);
  if (status)
    close(writer.file);
  else
    *writer_out = writer;
  return status;
}

void pwi_storm_writer_close(struct pwi_storm_writer *writer) { close(writer->file); }

pawl_status pwi_storm_write(struct pwi_storm_writer *writer, enum pwi_storm_kind kind, uint64_t serial, uint64_t keys,
                            int64_t time_ns) {
  unsigned char record[RECORD_SIZE];
  pwi_put_u64(record, (uint64_t)kind << KIND_SHIFT | serial);
  pwi_put_u64(record + 8, keys);
  pwi_put_u64(record + 16, (uint64_t)time_ns);
  return append(writer, record);
}

/* --- reading -------------------------------------------------------------------------------------------- */

static pawl_status add_intent(struct pwi_storm_journal *journal, uint64_t serial, uint64_t keys) {
  if (serial != journal->count + 1 || keys == 0) return PAWL_CORRUPT;
  if (journal->count == journal->room) {
    uint64_t room = journal->room ? 2 * journal->room : 1024;
    struct pwi_storm_entry *grown = pwi_resize_array(journal->entries, (size_t)room, sizeof *grown);
    if (!grown) return PAWL_NO_MEMORY;
    journal->entries = grown;
    journal->room = room;
  }
  journal->entries[journal->count++] = (struct pwi_storm_entry){.keys = keys};
  return PAWL_OK;
}

/* A record about a push names only its keys, each once, and none follows its end. */
static pawl_status add_news(struct pwi_storm_journal *journal, enum pwi_storm_kind kind, uint64_t serial, uint64_t keys,
                            int64_t time_ns) {
  if (serial == 0 || serial > journal->count) return PAWL_CORRUPT;
  struct pwi_storm_entry *entry = &journal->entries[serial - 1];
  if (entry->ended_ns || (keys & ~entry->keys) || (keys & entry->unsure)) return PAWL_CORRUPT;
  if (kind == PWI_STORM_UNSURE) {
    entry->unsure |= keys;
    return PAWL_OK;
  }
  if (time_ns <= 0) return PAWL_CORRUPT;
  entry->done = keys;
  entry->ended_ns = time_ns;
  return PAWL_OK;
}

static pawl_status add_record(struct pwi_storm_journal *journal, const unsigned char *record) {
  uint64_t word = pwi_get_u64(record), keys = pwi_get_u64(record + 8), serial = word & SERIAL_MASK;
  int64_t time_ns = (int64_t)pwi_get_u64(record + 16);
  enum pwi_storm_kind kind = (enum pwi_storm_kind)(word >> KIND_SHIFT);
  switch (kind) {
  case PWI_STORM_INTENT:
    return add_intent(journal, serial, keys);
  case PWI_STORM_UNSURE:
  case PWI_STORM_DONE:
    return add_news(journal, kind, serial, keys, time_ns);
  case PWI_STORM_STALE:
    if (serial > journal->count) return PAWL_CORRUPT;
    journal->stale += (uint64_t)__builtin_popcountll(keys);
    return PAWL_OK;
  }
  return PAWL_CORRUPT;
}

static pawl_status parse_head(const unsigned char *bytes, size_t size, struct pwi_storm_journal *journal) {
  if (size < RECORD_SIZE || !is_sealed(bytes, 0)) return PAWL_CORRUPT;
  if (pwi_get_u64(bytes) != MAGIC || pwi_get_u32(bytes + 8) != VERSION) return PAWL_CORRUPT;
  journal->worker = pwi_get_u32(bytes + 12);
  return journal->worker < PWI_STORM_WORKERS_MAX ? PAWL_OK : PAWL_CORRUPT;
}

/* Only the last record may be unsealed: the worker was killed while writing it. */
static pawl_status parse_records(const unsigned char *bytes, size_t size, struct pwi_storm_journal *journal) {
  for (size_t at = RECORD_SIZE; at < size; at += RECORD_SIZE) {
    if (size - at < RECORD_SIZE || !is_sealed(bytes + at, at)) {
      journal->is_torn = true;
      return size - at <= RECORD_SIZE ? PAWL_OK : PAWL_CORRUPT;
    }
    pawl_status status = add_record(journal, bytes + at);
    if (status) return status;
  }
  return PAWL_OK;
}

pawl_status pwi_storm_journal_parse(const void *bytes, size_t size, struct pwi_storm_journal *journal_out) {
  struct pwi_storm_journal journal = {0};
  pawl_status status = parse_head(bytes, size, &journal);
  if (!status) status = parse_records(bytes, size, &journal);
  if (status) {
    pwi_storm_journal_fini(&journal);
    return status;
  }
  for (uint64_t i = 0; i < journal.count; i++) {
    struct pwi_storm_entry *entry = &journal.entries[i];
    if (!entry->ended_ns) entry->unsure = entry->keys;
  }
  *journal_out = journal;
  return PAWL_OK;
}

static pawl_status map_and_parse(int file, struct pwi_storm_journal *journal_out) {
  struct stat about;
  if (fstat(file, &about) != 0) return PAWL_IO;
  if (about.st_size == 0) return PAWL_CORRUPT;
  size_t size = (size_t)about.st_size;
  void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (bytes == MAP_FAILED) return errno == ENOMEM ? PAWL_NO_MEMORY : PAWL_IO;
  pawl_status status = pwi_storm_journal_parse(bytes, size, journal_out);
  munmap(bytes, size);
  return status;
}

pawl_status pwi_storm_journal_read(const char *path, struct pwi_storm_journal *journal_out) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT ? PAWL_NOT_FOUND : PAWL_IO;
  pawl_status status = map_and_parse(file, journal_out);
  close(file);
  return status;
}

void pwi_storm_journal_fini(struct pwi_storm_journal *journal) {
  pwi_free(journal->entries);
  *journal = (struct pwi_storm_journal){0};
}
