/* A disk in memory, behind base/files.h, that behaves as badly as a real disk may.
 *
 * It outlives the process that uses it. When power is lost (a kill), synced data survives. Of everything
 * else each write is kept, lost, or torn at a byte, behind which nothing is kept or only that page is lost, and each
 * creation, renaming and removal whose directory was not synced is kept or lost, a renaming always as a whole. A
 * sync that fails may drop the pages: the data can be read until the crash, but no later sync saves it.
 *
 * A sync takes time. A node that is killed before that time is over was never told that the sync
 * succeeded, and the data may be lost.
 *
 * Faults can be set at any time. All draws come from a random stream of the disk. Single-threaded. */
#ifndef PWI_SIM_DISK_H
#define PWI_SIM_DISK_H

#include "base/files.h"
#include "sim/sim.h"

/* The machine of the disk. Without a clock no time passes. */
struct pwi_sim_disk_host {
  uint64_t seed, stream;
  struct pwi_sim_delay sync; /* duration of a sync */
  int64_t (*now)(void *context);
  int64_t (*block)(void *context,
                   int64_t duration); /* blocks the node for this time; returns the time when that is over */
  void *context;
};

/* PAWL_NO_MEMORY. The host's functions are kept. */
PAWL_MUST_USE pawl_status pwi_sim_disk_create(const struct pwi_sim_disk_host *host, struct pwi_sim_disk **disk_out);
void pwi_sim_disk_destroy(struct pwi_sim_disk *disk); /* NULL is fine */

struct pwi_files *pwi_sim_disk_files(struct pwi_sim_disk *disk);

/* A struct of zeros is a healthy disk. */
struct pwi_sim_disk_faults {
  double read_chance, write_chance,
      sync_chance;    /* chance that such a call fails with PAWL_IO; changes of names count as writes */
  double flip_chance; /* chance that a read returns one wrong bit */
  bool full;          /* writes fail with PAWL_NO_SPACE */
  int64_t slow_ns;    /* duration of every call */
  int64_t until;      /* when the faults end; 0: never */
};

/* NULL ends all faults. */
void pwi_sim_disk_set_faults(struct pwi_sim_disk *disk, const struct pwi_sim_disk_faults *faults);

/* Limits the total size of all files. A limit below the current size is raised to it. */
#define PWI_SIM_DISK_CAPACITY (UINT64_C(1) << 30)
void pwi_sim_disk_set_capacity(struct pwi_sim_disk *disk, uint64_t bytes);

/* Off: every call fails with PAWL_IO. Crash: drops everything that was not synced; closes open files and
 * frees their handles. */
void pwi_sim_disk_power_off(struct pwi_sim_disk *disk);
void pwi_sim_disk_crash(struct pwi_sim_disk *disk);
void pwi_sim_disk_power_on(struct pwi_sim_disk *disk);

#endif
