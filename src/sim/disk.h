/* A disk in memory, behind base/files.h, that does what the worst real one may do.
 *
 * It outlives the process that uses it. When power is lost (a kill) what was synced is there, and of everything else
 * each write is kept, lost, or torn at a byte, and each creation, renaming and removal whose directory was not synced
 * is kept or lost: a renaming always as a whole. A sync that fails may have dropped the pages: what it was to save is
 * still read back until the crash, and a later sync does not save it.
 *
 * A sync takes time, and a node that is killed before that time is over was never told that it succeeded: what it was
 * to save may be lost.
 *
 * Faults can be set at any time. All draws come from a stream of the disk's own. Not for several threads. */
#ifndef PWI_SIM_DISK_H
#define PWI_SIM_DISK_H

#include "base/files.h"
#include "sim/sim.h"

/* What the disk needs of the machine it is in. Without a clock no time passes. */
struct pwi_sim_disk_host {
  uint64_t seed, stream;
  struct pwi_sim_delay sync; /* how long a sync takes */
  int64_t (*now)(void *context);
  int64_t (*block)(void *context, int64_t duration); /* do nothing else for so long; returns when that is over */
  void *context;
};

/* PAWL_NO_MEMORY. The host's functions are kept. */
PAWL_MUST_USE pawl_status pwi_sim_disk_create(const struct pwi_sim_disk_host *host, struct pwi_sim_disk **disk_out);
void pwi_sim_disk_destroy(struct pwi_sim_disk *disk); /* NULL is fine */

struct pwi_files *pwi_sim_disk_files(struct pwi_sim_disk *disk);

/* A struct of zeros is a healthy disk. */
struct pwi_sim_disk_faults {
  double read_chance, write_chance, sync_chance; /* that such a call fails with PAWL_IO; names count as writes */
  double flip_chance;                            /* that a read returns one wrong bit */
  bool full;                                     /* writes fail with PAWL_NO_SPACE */
  int64_t slow_ns;                               /* how long every call takes */
  int64_t until;                                 /* when it heals by itself; 0: never */
};

/* NULL heals it. */
void pwi_sim_disk_set_faults(struct pwi_sim_disk *disk, const struct pwi_sim_disk_faults *faults);

/* Bytes that files may hold together. Less than they hold now is taken for what they hold. */
#define PWI_SIM_DISK_CAPACITY (UINT64_C(1) << 30)
void pwi_sim_disk_set_capacity(struct pwi_sim_disk *disk, uint64_t bytes);

/* Off: every call fails with PAWL_IO. Crash: forget what was not synced; open files are closed, their handles freed. */
void pwi_sim_disk_power_off(struct pwi_sim_disk *disk);
void pwi_sim_disk_crash(struct pwi_sim_disk *disk);
void pwi_sim_disk_power_on(struct pwi_sim_disk *disk);

#endif
