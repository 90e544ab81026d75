/* Journals of `pawl-storm work`: the pushes that a worker is about to send, and those that it was told are
 * done.
 *
 * PUSHES. Push number s of a worker (its serial: 1, 2, 3, …) adds the row {1, s, s*s, mix(s)} to some of
 * the keys that only this worker pushes to. So a key must be the sum of the rows of certain serials. If it
 * is not, the four sums tell which serial is missing or doubled: the first how many, the second and third
 * which, and the fourth (a scramble of the serial) that it is no coincidence. Sums wrap around.
 *
 * A worker has PWI_STORM_KEYS keys in each of two vectors, spread over the whole ring: a dense one with
 * ordered placement, and a sparse one with mixed placement. A push goes to one vector and to
 * PWI_STORM_TOUCHED of its keys, one of each eighth of them. A set of keys is a mask: bit i is the
 * worker's i-th key, and keys increase with i.
 *
 * THE FILE has a head of 32 bytes and records of 32 bytes, each with a checksum that also covers its
 * offset. A record is written by one write before anything depends on it, so it outlives the process; only
 * a crash of the machine may lose some. A torn last record is ignored. Damage anywhere else is an error.
 *
 *   INTENT  about to push to `keys`
 *   UNSURE  the push has ended, and may or may not be applied to `keys`
 *   DONE    the push has ended and is applied to `keys`; it is not applied to keys of INTENT that neither
 *           this nor UNSURE names
 *   STALE   a pull did not show on `keys` a push that had been acknowledged before; `serial` is that of the
 *           last push
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
#define PWI_STORM_WORKERS_MAX 1024 /* most workers, killed ones included */

enum pwi_storm_table { PWI_STORM_DENSE, PWI_STORM_MIXED };
#define PWI_STORM_TABLES 2

/* --- pushes: pure --------------------------------------------------------------------------------------- */

/* The name of a table's vector, and its options. */
const char *pwi_storm_table_name(enum pwi_storm_table table);
void pwi_storm_table_options(enum pwi_storm_table table, struct pawl_vector_options *options_out);

/* Key number `index` of a worker. */
uint64_t pwi_storm_key(enum pwi_storm_table table, uint32_t worker, uint32_t index);

/* The table and the keys of a push. */
enum pwi_storm_table pwi_storm_table_of(uint64_t serial);
uint64_t pwi_storm_keys_of(uint32_t worker, uint64_t serial);

/* The row that a push adds to each of its keys. */
void pwi_storm_row(uint64_t serial, uint64_t row_out[PWI_STORM_WIDTH]);

/* --- writing -------------------------------------------------------------------------------------------- */

enum pwi_storm_kind { PWI_STORM_INTENT = 1, PWI_STORM_UNSURE = 2, PWI_STORM_DONE = 3, PWI_STORM_STALE = 4 };

struct pwi_storm_writer {
  int file;
  uint32_t worker;
  uint64_t offset;
};

/* Creates the file, which must not exist. PAWL_EXISTS, PAWL_NO_SPACE, PAWL_IO. */
PAWL_MUST_USE pawl_status pwi_storm_writer_open(const char *path, uint32_t worker, struct pwi_storm_writer *writer_out);
void pwi_storm_writer_close(struct pwi_storm_writer *writer);

/* Writes one record; the time is of CLOCK_MONOTONIC. After a failure the journal cannot be continued. */
PAWL_MUST_USE pawl_status pwi_storm_write(struct pwi_storm_writer *writer, enum pwi_storm_kind kind, uint64_t serial,
                                          uint64_t keys, int64_t time_ns);

/* --- reading -------------------------------------------------------------------------------------------- */

/* One push. */
struct pwi_storm_entry {
  uint64_t keys;    /* that it was sent to */
  uint64_t done;    /* that it is certainly applied to, if it has ended */
  uint64_t unsure;  /* that it may be applied to */
  int64_t ended_ns; /* when the worker was told; 0: it was not */
};

struct pwi_storm_journal {
  uint32_t worker;
  uint64_t count;                  /* of pushes; entries[s - 1] is serial s */
  struct pwi_storm_entry *entries; /* for the verifier: a push that has not ended is unsure on all its keys */
  uint64_t stale;                  /* total number of keys in STALE records */
  uint64_t room;
  bool is_torn; /* the last record was torn */
};

/* Reads a journal. PAWL_NOT_FOUND; PAWL_CORRUPT: it is not a journal, is damaged, or contradicts itself;
 * PAWL_IO, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_storm_journal_read(const char *path, struct pwi_storm_journal *journal_out);

/* The same from memory. */
PAWL_MUST_USE pawl_status pwi_storm_journal_parse(const void *bytes, size_t size,
                                                  struct pwi_storm_journal *journal_out);
void pwi_storm_journal_fini(struct pwi_storm_journal *journal);

#endif
