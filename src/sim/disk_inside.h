/* Shared by disk.c (calls, faults) and disk_tree.c (contents, effects of a crash). */
#ifndef PWI_SIM_DISK_INSIDE_H
#define PWI_SIM_DISK_INSIDE_H

#include "base/random.h"
#include "sim/disk.h"

struct disk_buffer {
  uint8_t *bytes;
  size_t size, room;
};

#define DISK_UNSAFE INT64_MAX

/* A write or truncation that is not durable yet. */
struct disk_write {
  struct disk_write *next;
  int64_t made_at; /* when it was made, including the time for which the node was blocked before */
  int64_t safe_at; /* when its sync was over, or DISK_UNSAFE */
  uint64_t offset;
  size_t size;
  bool truncates; /* truncates to `offset` */
  uint8_t bytes[];
};

struct disk_entry {
  char *name;
  struct disk_inode *inode;
};

struct disk_entries {
  struct disk_entry *items;
  size_t count, room;
};

/* A file or directory: its current and its durable content. */
struct disk_inode {
  size_t references; /* names, handles and pending name changes */
  bool directory;
  const struct disk_file *locked_by;
  struct disk_buffer seen, durable;
  struct disk_write *writes, *last_write;
  struct disk_entries seen_names, durable_names;
};

/* Changes the meaning of a name, or removes it. */
struct disk_edit {
  struct disk_inode *directory; /* NULL: no edit */
  char *name;
  struct disk_inode *inode; /* NULL: the name is removed */
};

/* Edits that are not durable yet, and that survive a crash together or not at all. */
struct disk_rename {
  struct disk_rename *next;
  int64_t made_at, safe_at;
  struct disk_edit edits[2];
};

struct disk_file {
  struct pwi_file file;
  struct pwi_sim_disk *disk;
  struct disk_inode *inode;
  struct disk_file *next;
  bool writable;
};

struct pwi_sim_disk {
  struct pwi_files files;
  struct pwi_sim_disk_host host;
  struct pwi_random random;
  struct pwi_sim_disk_faults faults;
  struct disk_inode *root;
  struct disk_file *open_files;
  struct disk_rename *renames, *last_rename;
  uint64_t capacity, used;
  int64_t busy_until; /* end of the last call */
  bool off;
  bool broken; /* there was not enough memory to apply a crash */
};

/* --- disk_tree.c ---------------------------------------------------------------------------------------- */

struct disk_inode *pwi_sim_disk_inode_new(bool directory); /* with one reference; NULL if memory is short */
void pwi_sim_disk_inode_release(struct disk_inode *inode);
struct disk_entry *pwi_sim_disk_entry_find(const struct disk_entries *entries, const char *name, size_t length);

/* Applies edits to the current tree and records them as not durable. `second` may be NULL. PAWL_NO_MEMORY:
 * nothing has changed.
 */
PAWL_MUST_USE pawl_status pwi_sim_disk_edit(struct pwi_sim_disk *disk, int64_t made_at, const struct disk_edit *first,
                                            const struct disk_edit *second);
/* Edits that touch the directory are durable from `safe_at` on. */
void pwi_sim_disk_edits_sync(struct pwi_sim_disk *disk, const struct disk_inode *directory, int64_t safe_at);
/* Applies edits that are durable by now to the durable tree. */
PAWL_MUST_USE pawl_status pwi_sim_disk_edits_flush(struct pwi_sim_disk *disk, int64_t now);

PAWL_MUST_USE pawl_status pwi_sim_disk_write(struct disk_inode *inode, int64_t made_at, uint64_t offset,
                                             const void *data, size_t size);
PAWL_MUST_USE pawl_status pwi_sim_disk_truncate(struct disk_inode *inode, int64_t made_at, uint64_t size);
void pwi_sim_disk_sync(struct disk_inode *inode, int64_t safe_at);
PAWL_MUST_USE pawl_status pwi_sim_disk_flush(struct disk_inode *inode, int64_t now);
/* A sync failed: some of its data will never be durable. */
void pwi_sim_disk_sync_failed(struct pwi_sim_disk *disk, struct disk_inode *inode);
void pwi_sim_disk_settle(struct pwi_sim_disk *disk, int64_t now);
void pwi_sim_disk_renames_free(struct pwi_sim_disk *disk);

#endif
