/* The calls of base/files.h on a simulated disk, and its faults. */
#include "sim/disk.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "sim/disk_inside.h"

static struct pwi_sim_disk *disk_of(struct pwi_files *files) { return (struct pwi_sim_disk *)(void *)files; }
static struct disk_file *file_of(struct pwi_file *file) { return (struct disk_file *)(void *)file; }

/* --- faults --------------------------------------------------------------------------------------------- */

void pwi_sim_disk_set_faults(struct pwi_sim_disk *disk, const struct pwi_sim_disk_faults *faults) {
  disk->faults = faults ? *faults : (struct pwi_sim_disk_faults){0};
}

void pwi_sim_disk_set_capacity(struct pwi_sim_disk *disk, uint64_t bytes) {
  disk->capacity = bytes > disk->used ? bytes : disk->used;
}

static int64_t now(struct pwi_sim_disk *disk) { return disk->host.now ? disk->host.now(disk->host.context) : 0; }

/* Returns the end of the call. */
static int64_t spend(struct pwi_sim_disk *disk, int64_t duration) {
  disk->busy_until = disk->host.block ? disk->host.block(disk->host.context, duration) : now(disk);
  return disk->busy_until;
}

/* The present from the caller's point of view: a node that blocked on the disk acts later. */
static int64_t its_time(struct pwi_sim_disk *disk) {
  int64_t present = now(disk);
  return disk->busy_until > present ? disk->busy_until : present;
}

/* Every call starts here: spends its time and decides whether it fails. */
static pawl_status enter(struct pwi_sim_disk *disk, double chance) {
  if (disk->off) return PAWL_IO;
  if (disk->broken) return PAWL_NO_MEMORY;
  if (disk->faults.until && its_time(disk) >= disk->faults.until) disk->faults = (struct pwi_sim_disk_faults){0};
  if (disk->faults.slow_ns) spend(disk, disk->faults.slow_ns);
  return chance > 0 && pwi_random_chance(&disk->random, chance) ? PAWL_IO : PAWL_OK;
}

/* --- paths ---------------------------------------------------------------------------------------------- */

/* The target of a path: the directory that contains its last component, and the inode. */
struct disk_place {
  struct disk_inode *directory;
  const char *name;
  struct disk_inode *inode; /* NULL: it does not exist */
};

static pawl_status find(struct pwi_sim_disk *disk, const char *path, struct disk_place *place_out) {
  struct disk_inode *directory = disk->root;
  if (strcmp(path, ".") == 0) {
    *place_out = (struct disk_place){.inode = disk->root};
    return PAWL_OK;
  }
  for (;;) {
    size_t length = strcspn(path, "/");
    struct disk_entry *entry = pwi_sim_disk_entry_find(&directory->seen_names, path, length);
    if (path[length] == '\0') {
      *place_out = (struct disk_place){directory, path, entry ? entry->inode : NULL};
      return PAWL_OK;
    }
    if (!entry) return PAWL_NOT_FOUND;
    if (!entry->inode->directory) return PAWL_INVALID;
    directory = entry->inode;
    path += length + 1;
  }
}

static pawl_status find_directory(struct pwi_sim_disk *disk, const char *path, struct disk_inode **directory_out) {
  struct disk_place place;
  pawl_status status = find(disk, path, &place);
  if (status) return status;
  if (!place.inode) return PAWL_NOT_FOUND;
  if (!place.inode->directory) return PAWL_INVALID;
  *directory_out = place.inode;
  return PAWL_OK;
}

static struct disk_edit edit_of(const struct disk_place *place, struct disk_inode *inode) {
  return (struct disk_edit){place->directory, (char *)(uintptr_t)place->name, inode};
}

static pawl_status make(struct pwi_sim_disk *disk, struct disk_place *place, bool directory) {
  if (disk->faults.full || disk->used >= disk->capacity) return PAWL_NO_SPACE;
  struct disk_inode *inode = pwi_sim_disk_inode_new(directory);
  if (!inode) return PAWL_NO_MEMORY;
  struct disk_edit edit = edit_of(place, inode);
  pawl_status status = pwi_sim_disk_edit(disk, its_time(disk), &edit, NULL);
  if (!status) place->inode = inode;
  pwi_sim_disk_inode_release(inode);
  return status;
}

/* --- one file ------------------------------------------------------------------------------------------- */

static pawl_status open_inode(struct pwi_sim_disk *disk, struct disk_inode *inode, unsigned how,
                              struct pwi_file **file_out) {
  struct disk_file *file = pwi_alloc_zero(1, sizeof *file);
  if (!file) return PAWL_NO_MEMORY;
  if (how & PWI_OPEN_TRUNCATE) {
    uint64_t size = inode->seen.size;
    if (pwi_sim_disk_truncate(inode, its_time(disk), 0)) {
      pwi_free(file);
      return PAWL_NO_MEMORY;
    }
    disk->used -= size;
  }
  *file = (struct disk_file){
      .file.ops = disk->files.ops,
      .disk = disk,
      .inode = inode,
      .next = disk->open_files,
      .writable = how & PWI_OPEN_WRITE,
  };
  inode->references++;
  disk->open_files = file;
  *file_out = &file->file;
  return PAWL_OK;
}

static pawl_status open_file(struct pwi_files *files, const char *path, unsigned how, struct pwi_file **file_out) {
  struct pwi_sim_disk *disk = disk_of(files);
  bool creates = how & (PWI_OPEN_CREATE | PWI_OPEN_NEW);
  pawl_status status = enter(disk, creates ? disk->faults.write_chance : disk->faults.read_chance);
  if (status) return status;
  struct disk_place place;
  status = find(disk, path, &place);
  if (status) return status;
  if (place.inode && (how & PWI_OPEN_NEW)) return PAWL_EXISTS;
  if (place.inode && place.inode->directory) return PAWL_INVALID;
  if (!place.inode && !creates) return PAWL_NOT_FOUND;
  if (!place.inode) status = make(disk, &place, false);
  return status ? status : open_inode(disk, place.inode, how, file_out);
}

static void close_file(struct pwi_file *base) {
  struct disk_file *file = file_of(base), **place = &file->disk->open_files;
  while (*place != file) place = &(*place)->next;
  *place = file->next;
  if (file->inode->locked_by == file) file->inode->locked_by = NULL;
  pwi_sim_disk_inode_release(file->inode);
  pwi_free(file);
}

static void flip_a_bit(struct pwi_sim_disk *disk, uint8_t *bytes, size_t size) {
  if (size == 0 || !(disk->faults.flip_chance > 0)) return;
  if (!pwi_random_chance(&disk->random, disk->faults.flip_chance)) return;
  uint64_t bit = pwi_random_below(&disk->random, (uint64_t)size * 8);
  bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
}

static pawl_status read_file(struct pwi_file *base, uint64_t offset, void *buffer, size_t size, size_t *read_out) {
  struct disk_file *file = file_of(base);
  pawl_status status = enter(file->disk, file->disk->faults.read_chance);
  if (status) return status;
  const struct disk_buffer *seen = &file->inode->seen;
  size_t there = offset < seen->size ? seen->size - (size_t)offset : 0;
  size_t taken = size < there ? size : there;
  if (taken) memcpy(buffer, seen->bytes + offset, taken);
  flip_a_bit(file->disk, buffer, taken);
  *read_out = taken;
  return PAWL_OK;
}

/* How many more bytes the disk needs if a file grows to `end`. */
static uint64_t growth(const struct disk_inode *inode, uint64_t end) {
  return end > inode->seen.size ? end - inode->seen.size : 0;
}

/* A disk that becomes full takes part of the last write. */
static pawl_status write_file(struct pwi_file *base, uint64_t offset, const void *data, size_t size) {
  struct disk_file *file = file_of(base);
  struct pwi_sim_disk *disk = file->disk;
  if (!file->writable) return PAWL_FORBIDDEN;
  pawl_status failure = enter(disk, disk->faults.write_chance);
  if (failure == PAWL_IO && disk->off) return failure;
  uint64_t more = growth(file->inode, offset + size);
  if (!failure && (disk->faults.full || more > disk->capacity - disk->used)) failure = PAWL_NO_SPACE;
  if (failure == PAWL_NO_MEMORY) return failure;
  if (failure) {
    size = (size_t)pwi_random_below(&disk->random, (uint64_t)size + 1);
    more = growth(file->inode, offset + size);
    if (size == 0 || more > disk->capacity - disk->used) return failure;
  }
  pawl_status status = pwi_sim_disk_write(file->inode, its_time(disk), offset, data, size);
  if (status) return status;
  disk->used += more;
  return failure;
}

static pawl_status sync_file(struct pwi_file *base) {
  struct disk_file *file = file_of(base);
  struct pwi_sim_disk *disk = file->disk;
  pawl_status status = enter(disk, disk->faults.sync_chance);
  if (status == PAWL_IO && !disk->off) pwi_sim_disk_sync_failed(disk, file->inode);
  if (status) return status;
  pwi_sim_disk_sync(file->inode, spend(disk, pwi_sim_delay_draw(&disk->host.sync, &disk->random)));
  return pwi_sim_disk_flush(file->inode, now(disk));
}

static pawl_status truncate_file(struct pwi_file *base, uint64_t size) {
  struct disk_file *file = file_of(base);
  struct pwi_sim_disk *disk = file->disk;
  if (!file->writable) return PAWL_FORBIDDEN;
  pawl_status status = enter(disk, disk->faults.write_chance);
  if (status) return status;
  uint64_t before = file->inode->seen.size, more = growth(file->inode, size);
  if (more > disk->capacity - disk->used || (more && disk->faults.full)) return PAWL_NO_SPACE;
  status = pwi_sim_disk_truncate(file->inode, its_time(disk), size);
  if (!status) disk->used = disk->used - before + size;
  return status;
}

static pawl_status size_of_file(struct pwi_file *base, uint64_t *size_out) {
  struct disk_file *file = file_of(base);
  pawl_status status = enter(file->disk, 0);
  if (status) return status;
  *size_out = file->inode->seen.size;
  return PAWL_OK;
}

static pawl_status try_lock(struct pwi_file *base) {
  struct disk_file *file = file_of(base);
  pawl_status status = enter(file->disk, 0);
  if (status) return status;
  if (file->inode->locked_by && file->inode->locked_by != file) return PAWL_EXISTS;
  file->inode->locked_by = file;
  return PAWL_OK;
}

/* --- names ---------------------------------------------------------------------------------------------- */

/* On real disks the bytes of a removed file count until its last handle is closed; here they are freed at
 * once. */
static void gives_back(struct pwi_sim_disk *disk, const struct disk_inode *inode) {
  if (inode && !inode->directory) disk->used -= inode->seen.size < disk->used ? inode->seen.size : disk->used;
}

static bool is_inside(const struct disk_inode *directory, const struct disk_inode *sought) {
  if (directory == sought) return true;
  for (size_t i = 0; i < directory->seen_names.count; i++)
    if (is_inside(directory->seen_names.items[i].inode, sought)) return true;
  return false;
}

static pawl_status check_target(const struct disk_place *from, const struct disk_place *to) {
  if (from->inode->directory && is_inside(from->inode, to->directory)) return PAWL_INVALID;
  if (!to->inode) return PAWL_OK;
  if (to->inode->directory && to->inode->seen_names.count) return PAWL_EXISTS;
  return to->inode->directory == from->inode->directory ? PAWL_OK : PAWL_INVALID;
}

static pawl_status rename_file(struct pwi_files *files, const char *from_path, const char *to_path) {
  struct pwi_sim_disk *disk = disk_of(files);
  pawl_status status = enter(disk, disk->faults.write_chance);
  if (status) return status;
  struct disk_place from, to;
  status = find(disk, from_path, &from);
  if (!status) status = find(disk, to_path, &to);
  if (status) return status;
  if (!from.inode) return PAWL_NOT_FOUND;
  if (from.inode == to.inode) return PAWL_OK;
  status = check_target(&from, &to);
  if (status) return status;
  struct disk_edit set = edit_of(&to, from.inode), unset = edit_of(&from, NULL);
  if (to.inode) to.inode->references++;
  status = pwi_sim_disk_edit(disk, its_time(disk), &set, &unset);
  if (!status) gives_back(disk, to.inode);
  pwi_sim_disk_inode_release(to.inode);
  return status;
}

static pawl_status remove_file(struct pwi_files *files, const char *path) {
  struct pwi_sim_disk *disk = disk_of(files);
  pawl_status status = enter(disk, disk->faults.write_chance);
  if (status) return status;
  struct disk_place place;
  status = find(disk, path, &place);
  if (status) return status;
  if (!place.inode) return PAWL_NOT_FOUND;
  if (place.inode->directory && place.inode->seen_names.count) return PAWL_EXISTS;
  struct disk_edit edit = edit_of(&place, NULL);
  place.inode->references++;
  status = pwi_sim_disk_edit(disk, its_time(disk), &edit, NULL);
  if (!status) gives_back(disk, place.inode);
  pwi_sim_disk_inode_release(place.inode);
  return status;
}

static pawl_status exists(struct pwi_files *files, const char *path, bool *exists_out) {
  struct pwi_sim_disk *disk = disk_of(files);
  pawl_status status = enter(disk, disk->faults.read_chance);
  if (status) return status;
  struct disk_place place;
  *exists_out = !find(disk, path, &place) && place.inode;
  return PAWL_OK;
}

static pawl_status make_directory(struct pwi_files *files, const char *path) {
  struct pwi_sim_disk *disk = disk_of(files);
  pawl_status status = enter(disk, disk->faults.write_chance);
  if (status) return status;
  struct disk_place place;
  status = find(disk, path, &place);
  if (status) return status;
  return place.inode ? PAWL_EXISTS : make(disk, &place, true);
}

static pawl_status sync_directory(struct pwi_files *files, const char *path) {
  struct pwi_sim_disk *disk = disk_of(files);
  pawl_status status = enter(disk, disk->faults.sync_chance);
  if (status) return status;
  struct disk_inode *directory;
  status = find_directory(disk, path, &directory);
  if (status) return status;
  pwi_sim_disk_edits_sync(disk, directory, spend(disk, pwi_sim_delay_draw(&disk->host.sync, &disk->random)));
  return pwi_sim_disk_edits_flush(disk, now(disk));
}

static pawl_status list(struct pwi_files *files, const char *path, struct pwi_names *names) {
  struct pwi_sim_disk *disk = disk_of(files);
  pawl_status status = enter(disk, disk->faults.read_chance);
  if (status) return status;
  struct disk_inode *directory;
  status = find_directory(disk, path, &directory);
  for (size_t i = 0; !status && i < directory->seen_names.count; i++)
    status = pwi_names_add(names, directory->seen_names.items[i].name);
  return status;
}

/* --- the disk ------------------------------------------------------------------------------------------- */

static const struct pwi_files_ops ops = {
    .open = open_file,
    .close = close_file,
    .read = read_file,
    .write = write_file,
    .sync = sync_file,
    .truncate = truncate_file,
    .size = size_of_file,
    .try_lock = try_lock,
    .rename = rename_file,
    .remove = remove_file,
    .exists = exists,
    .make_directory = make_directory,
    .sync_directory = sync_directory,
    .list = list,
};

pawl_status pwi_sim_disk_create(const struct pwi_sim_disk_host *host, struct pwi_sim_disk **disk_out) {
  struct pwi_sim_disk *disk = pwi_alloc_zero(1, sizeof *disk);
  if (!disk) return PAWL_NO_MEMORY;
  disk->root = pwi_sim_disk_inode_new(true);
  if (!disk->root) {
    pwi_free(disk);
    return PAWL_NO_MEMORY;
  }
  disk->files.ops = &ops;
  disk->host = *host;
  disk->capacity = PWI_SIM_DISK_CAPACITY;
  pwi_random_init(&disk->random, host->seed, host->stream);
  *disk_out = disk;
  return PAWL_OK;
}

static void close_all(struct pwi_sim_disk *disk) {
  while (disk->open_files) close_file(&disk->open_files->file);
}

void pwi_sim_disk_destroy(struct pwi_sim_disk *disk) {
  if (!disk) return;
  close_all(disk);
  pwi_sim_disk_renames_free(disk);
  pwi_sim_disk_inode_release(disk->root);
  pwi_free(disk);
}

struct pwi_files *pwi_sim_disk_files(struct pwi_sim_disk *disk) {
  return &disk->files;
}

void pwi_sim_disk_power_off(struct pwi_sim_disk *disk) { disk->off = true; }

void pwi_sim_disk_crash(struct pwi_sim_disk *disk) {
  close_all(disk);
  pwi_sim_disk_settle(disk, now(disk));
  disk->busy_until = 0;
  if (disk->capacity < disk->used) disk->capacity = disk->used;
}

void pwi_sim_disk_power_on(struct pwi_sim_disk *disk) { disk->off = false; }
