/* Journals of `pawl storm work`: what a worker is about to push, and what it was told is done.
 *
 * WHAT IS PUSHED. Push number s of a worker (its serial: 1, 2, 3, …) adds the row {1, s, s*s, mix(s)} to some of the keys
 * that only this worker pushes to. So a key must read as the sum of the rows of certain serials, and where it does not, the
 * four sums say which serial is missing or there twice: the count how many, the second and third which, the fourth (a
 * scramble of the serial) that it is no coincidence. Sums wrap around.
 *
 * A worker has PWI_STORM_KEYS keys in each of two vectors, spread over the whole ring: one dense and in order, one sparse and
 * mixed. A push goes to one vector and to PWI_STORM_TOUCHED of its keys, one of each eighth of them. A set of keys is a mask:
 * bit i is the worker's i-th key, and keys rise with i.
 *
 * THE FILE. A head of 32 bytes and records of 32 bytes, each with a checksum that also covers where it stands. A record is
 * written by one write before anything depends on it, so it outlives the process; only a machine that stops may lose some.
 * A last record that is torn is as good as none. Damage anywhere else is an error.
 *
 *   INTENT  about to push to `keys`
 *   UNSURE  the push has ended, and may or may not be on `keys`
 *   DONE    the push has ended: it is on `keys`; it is not on those of INTENT that neither this nor UNSURE names
 *   STALE   a pull did not show on `keys` what had been acknowledged before it was called; `serial` is that of the last push
 */
#ifndef TESTS_STORM_HARNESS_JOURNAL_H
#define TESTS_STORM_HARNESS_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>
#include <pawl/vector.h>

#define PWI_STORM_KEYS 64
#define PWI_STORM_TOUCHED 8
#define PWI_STORM_WIDTH 4
#define PWI_STORM_WORKERS_MAX 1024 /* numbers of workers, those that were killed included */

enum pwi_storm_table { PWI_STORM_DENSE, PWI_STORM_MIXED };
#define PWI_STORM_TABLES 2

/* --- what is pushed: pure -------------------------------------------------------------------------------------------- */

/* The name of a table's vector and what it is created with. */
const char *pwi_storm_table_name(enum pwi_storm_table table);
void pwi_storm_table_options(enum pwi_storm_table table, struct pawl_vector_options *options_out);

/* Key number `index` of a worker. */
uint64_t pwi_storm_key(enum pwi_storm_table table, uint32_t worker, uint32_t index);

/* Which table and keys a push is for. */
enum pwi_storm_table pwi_storm_table_of(uint64_t serial);
uint64_t pwi_storm_keys_of(uint32_t worker, uint64_t serial);

/* What it adds to each of them. */
void pwi_storm_row(uint64_t serial, uint64_t row_out[PWI_STORM_WIDTH]);

/* --- writing --------------------------------------------------------------------------------------------------------- */

enum pwi_storm_kind { PWI_STORM_INTENT = 1, PWI_STORM_UNSURE = 2, PWI_STORM_DONE = 3, PWI_STORM_STALE = 4 };

struct pwi_storm_writer {
  int file;
  uint32_t worker;
  uint64_t offset;
};

/* Creates the file, which must not be there. PAWL_EXISTS, PAWL_NO_SPACE, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_storm_writer_open(const char *path, uint32_t worker, struct pwi_storm_writer *writer_out);
void pwi_storm_writer_close(struct pwi_storm_writer *writer);

/* One record; the time is CLOCK_MONOTONIC's. After a failure the journal is over. */
PAWL_MUST_USE pawl_status pwi_storm_write(struct pwi_storm_writer *writer, enum pwi_storm_kind kind, uint64_t serial,
                                          uint64_t keys, int64_t time_ns);

/* --- reading --------------------------------------------------------------------------------------------------------- */

/* One push. */
struct pwi_storm_entry {
  uint64_t keys;    /* that it was for */
  uint64_t done;    /* that it is on for certain, if it has ended */
  uint64_t unsure;  /* that it may be on */
  int64_t ended_ns; /* when the worker was told; 0: it was not */
};

struct pwi_storm_journal {
  uint32_t worker;
  uint64_t count;                  /* pushes; entries[s - 1] is that of serial s */
  struct pwi_storm_entry *entries; /* as a verifier takes them: a push that has not ended is unsure on all its keys */
  uint64_t stale;                  /* keys of STALE records, added up */
  uint64_t room;
  bool is_torn; /* the last record was */
};

/* Reads a journal. PAWL_NOT_FOUND; PAWL_CORRUPT: it is none, is damaged, or contradicts itself; PAWL_IO, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_storm_journal_read(const char *path, struct pwi_storm_journal *journal_out);

/* The same from memory. */
PAWL_MUST_USE pawl_status pwi_storm_journal_parse(const void *bytes, size_t size,
                                                  struct pwi_storm_journal *journal_out);
void pwi_storm_journal_fini(struct pwi_storm_journal *journal);

#endif
