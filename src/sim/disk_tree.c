/* The contents of a disk: each file and directory twice, as it is now and as it would be after a crash,
 * with the list of changes between the two. */
#include <string.h>

#include "base/memory.h"
#include "sim/disk_inside.h"

/* --- bytes ---------------------------------------------------------------------------------------------- */

static pawl_status buffer_resize(struct disk_buffer *buffer, size_t size) {
  if (!PWI_GROW(buffer->bytes, buffer->room, size)) return PAWL_NO_MEMORY;
  if (size > buffer->size) memset(buffer->bytes + buffer->size, 0, size - buffer->size);
  buffer->size = size;
  return PAWL_OK;
}

static pawl_status buffer_write(struct disk_buffer *buffer, uint64_t offset, const void *data, size_t size) {
  if (size == 0) return PAWL_OK;
  if (offset + size > buffer->size && buffer_resize(buffer, (size_t)offset + size)) return PAWL_NO_MEMORY;
  memcpy(buffer->bytes + offset, data, size);
  return PAWL_OK;
}

static pawl_status buffer_copy(struct disk_buffer *to, const struct disk_buffer *from) {
  to->size = 0;
  pawl_status status = buffer_resize(to, from->size);
  if (!status && from->size) memcpy(to->bytes, from->bytes, from->size);
  return status;
}

static void remember(struct disk_inode *inode, struct disk_write *write) {
  if (inode->last_write)
    inode->last_write->next = write;
  else
    inode->writes = write;
  inode->last_write = write;
}

pawl_status pwi_sim_disk_write(struct disk_inode *inode, int64_t made_at, uint64_t offset, const void *data,
                               size_t size) {
  struct disk_write *write = pwi_alloc(sizeof *write + size);
  if (!write) return PAWL_NO_MEMORY;
  *write = (struct disk_write){.made_at = made_at, .safe_at = DISK_UNSAFE, .offset = offset, .size = size};
  if (size) memcpy(write->bytes, data, size);
  if (buffer_write(&inode->seen, offset, data, size)) {
    pwi_free(write);
    return PAWL_NO_MEMORY;
  }
  remember(inode, write);
  return PAWL_OK;
}

pawl_status pwi_sim_disk_truncate(struct disk_inode *inode, int64_t made_at, uint64_t size) {
  struct disk_write *write = pwi_alloc(sizeof *write);
  if (!write) return PAWL_NO_MEMORY;
  *write = (struct disk_write){.made_at = made_at, .safe_at = DISK_UNSAFE, .offset = size, .truncates = true};
  if (buffer_resize(&inode->seen, (size_t)size)) {
    pwi_free(write);
    return PAWL_NO_MEMORY;
  }
  remember(inode, write);
  return PAWL_OK;
}

static pawl_status make_durable(struct disk_inode *inode, const struct disk_write *write, size_t size) {
  if (write->truncates) return buffer_resize(&inode->durable, (size_t)write->offset);
  return buffer_write(&inode->durable, write->offset, write->bytes, size);
}

static struct disk_write *take_write(struct disk_inode *inode) {
  struct disk_write *write = inode->writes;
  inode->writes = write->next;
  if (!inode->writes) inode->last_write = NULL;
  return write;
}

/* Durable writes come first in the list, because a sync covers all writes before it. */
void pwi_sim_disk_sync(struct disk_inode *inode, int64_t safe_at) {
  for (struct disk_write *write = inode->writes; write; write = write->next)
    if (write->safe_at == DISK_UNSAFE) write->safe_at = safe_at;
}

pawl_status pwi_sim_disk_flush(struct disk_inode *inode, int64_t now) {
  while (inode->writes && inode->writes->safe_at <= now) {
    if (make_durable(inode, inode->writes, inode->writes->size)) return PAWL_NO_MEMORY;
    pwi_free(take_write(inode));
  }
  return PAWL_OK;
}

void pwi_sim_disk_sync_failed(struct pwi_sim_disk *disk, struct disk_inode *inode) {
  struct disk_write *kept = inode->writes;
  inode->writes = inode->last_write = NULL;
  while (kept) {
    struct disk_write *write = kept;
    kept = write->next;
    write->next = NULL;
    if (write->safe_at != DISK_UNSAFE || pwi_random_chance(&disk->random, 0.5))
      remember(inode, write);
    else
      pwi_free(write);
  }
}

/* --- names ---------------------------------------------------------------------------------------------- */

struct disk_inode *pwi_sim_disk_inode_new(bool directory) {
  struct disk_inode *inode = pwi_alloc_zero(1, sizeof *inode);
  if (!inode) return NULL;
  inode->references = 1;
  inode->directory = directory;
  return inode;
}

static void entries_free(struct disk_entries *entries) {
  for (size_t i = 0; i < entries->count; i++) {
    pwi_free(entries->items[i].name);
    pwi_sim_disk_inode_release(entries->items[i].inode);
  }
  pwi_free(entries->items);
  *entries = (struct disk_entries){0};
}

void pwi_sim_disk_inode_release(struct disk_inode *inode) {
  if (!inode || --inode->references > 0) return;
  while (inode->writes) pwi_free(take_write(inode));
  entries_free(&inode->seen_names);
  entries_free(&inode->durable_names);
  pwi_free(inode->seen.bytes);
  pwi_free(inode->durable.bytes);
  pwi_free(inode);
}

struct disk_entry *pwi_sim_disk_entry_find(const struct disk_entries *entries, const char *name, size_t length) {
  for (size_t i = 0; i < entries->count; i++)
    if (strncmp(entries->items[i].name, name, length) == 0 && entries->items[i].name[length] == '\0')
      return &entries->items[i];
  return NULL;
}

static void remove_entry(struct disk_entries *entries, struct disk_entry *entry) {
  pwi_free(entry->name);
  pwi_sim_disk_inode_release(entry->inode);
  *entry = entries->items[--entries->count];
}

static pawl_status set_entry(struct disk_entries *entries, const char *name, struct disk_inode *inode) {
  struct disk_entry *entry = pwi_sim_disk_entry_find(entries, name, strlen(name));
  if (!inode) {
    if (entry) remove_entry(entries, entry);
    return PAWL_OK;
  }
  if (entry) {
    inode->references++;
    pwi_sim_disk_inode_release(entry->inode);
    entry->inode = inode;
    return PAWL_OK;
  }
  if (!PWI_GROW(entries->items, entries->room, entries->count + 1)) return PAWL_NO_MEMORY;
  char *copy = pwi_copy_string(name);
  if (!copy) return PAWL_NO_MEMORY;
  inode->references++;
  entries->items[entries->count++] = (struct disk_entry){copy, inode};
  return PAWL_OK;
}

static pawl_status edit_init(struct disk_edit *edit, const struct disk_edit *from) {
  char *name = pwi_copy_string(from->name);
  if (!name) return PAWL_NO_MEMORY;
  *edit = (struct disk_edit){from->directory, name, from->inode};
  edit->directory->references++;
  if (edit->inode) edit->inode->references++;
  return PAWL_OK;
}

static void rename_free(struct disk_rename *rename) {
  for (int i = 0; i < 2; i++) {
    pwi_free(rename->edits[i].name);
    pwi_sim_disk_inode_release(rename->edits[i].inode);
    pwi_sim_disk_inode_release(rename->edits[i].directory);
  }
  pwi_free(rename);
}

/* The first edit may need memory, the second only ever removes a name: so a failure changes nothing. */
pawl_status pwi_sim_disk_edit(struct pwi_sim_disk *disk, int64_t made_at, const struct disk_edit *first,
                              const struct disk_edit *second) {
  struct disk_rename *rename = pwi_alloc_zero(1, sizeof *rename);
  if (!rename) return PAWL_NO_MEMORY;
  rename->made_at = made_at;
  rename->safe_at = DISK_UNSAFE;
  if (edit_init(&rename->edits[0], first) || (second && edit_init(&rename->edits[1], second)) ||
      set_entry(&first->directory->seen_names, first->name, first->inode)) {
    rename_free(rename);
    return PAWL_NO_MEMORY;
  }
  if (second) {
    pawl_status removed = set_entry(&second->directory->seen_names, second->name, NULL);
    (void)removed;
  }
  if (disk->last_rename)
    disk->last_rename->next = rename;
  else
    disk->renames = rename;
  disk->last_rename = rename;
  return PAWL_OK;
}

static pawl_status rename_make_durable(const struct disk_rename *rename) {
  for (int i = 0; i < 2; i++) {
    const struct disk_edit *edit = &rename->edits[i];
    if (edit->directory && set_entry(&edit->directory->durable_names, edit->name, edit->inode)) return PAWL_NO_MEMORY;
  }
  return PAWL_OK;
}

void pwi_sim_disk_edits_sync(struct pwi_sim_disk *disk, const struct disk_inode *directory, int64_t safe_at) {
  for (struct disk_rename *rename = disk->renames; rename; rename = rename->next) {
    bool touches = rename->edits[0].directory == directory || rename->edits[1].directory == directory;
    if (touches && rename->safe_at == DISK_UNSAFE) rename->safe_at = safe_at;
  }
}

pawl_status pwi_sim_disk_edits_flush(struct pwi_sim_disk *disk, int64_t now) {
  struct disk_rename **place = &disk->renames, *before = NULL;
  while (*place) {
    struct disk_rename *rename = *place;
    if (rename->safe_at > now) {
      before = rename;
      place = &rename->next;
      continue;
    }
    if (rename_make_durable(rename)) return PAWL_NO_MEMORY;
    *place = rename->next;
    if (disk->last_rename == rename) disk->last_rename = before;
    rename_free(rename);
  }
  return PAWL_OK;
}

void pwi_sim_disk_renames_free(struct pwi_sim_disk *disk) {
  while (disk->renames) {
    struct disk_rename *rename = disk->renames;
    disk->renames = rename->next;
    rename_free(rename);
  }
  disk->last_rename = NULL;
}

/* --- the crash ------------------------------------------------------------------------------------------ */

#define PAGE 4096

/* Returns how much of a write is kept that was torn at `at`: what is before; or all but the rest of that page, as pages
 * are written in any order. The file has grown then, and where it had nothing before there are zeros. */
static size_t tear(const struct disk_inode *inode, struct disk_write *write, size_t at) {
  const struct disk_buffer *before = &inode->durable;
  if (at % 2 == 0) return at;
  for (uint64_t i = at, place = write->offset + at; i < write->size && (i == at || place % PAGE != 0); i++, place++)
    write->bytes[i] = place < before->size ? before->bytes[place] : 0;
  return write->size;
}

/* Actions that were to follow an unfinished wait have not happened. */
static pawl_status settle_file(struct pwi_sim_disk *disk, struct disk_inode *inode, int64_t now) {
  if (pwi_sim_disk_flush(inode, now)) return PAWL_NO_MEMORY;
  while (inode->writes) {
    struct disk_write *write = take_write(inode);
    uint64_t fate = write->made_at > now ? 0 : pwi_random_below(&disk->random, 3); /* lost, whole, torn */
    size_t size = write->size;
    if (fate == 2 && size) size = tear(inode, write, (size_t)pwi_random_below(&disk->random, size));
    pawl_status status = fate ? make_durable(inode, write, size) : PAWL_OK;
    pwi_free(write);
    if (status) return status;
  }
  pawl_status status = buffer_copy(&inode->seen, &inode->durable);
  disk->used += inode->seen.size;
  return status;
}

/* Depth is bounded by the length of paths. */
static pawl_status settle_inode(struct pwi_sim_disk *disk, struct disk_inode *inode, int64_t now) {
  if (!inode->directory) return settle_file(disk, inode, now);
  entries_free(&inode->seen_names);
  for (size_t i = 0; i < inode->durable_names.count; i++) {
    const struct disk_entry *entry = &inode->durable_names.items[i];
    if (set_entry(&inode->seen_names, entry->name, entry->inode)) return PAWL_NO_MEMORY;
    pawl_status status = settle_inode(disk, entry->inode, now);
    if (status) return status;
  }
  return PAWL_OK;
}

void pwi_sim_disk_settle(struct pwi_sim_disk *disk, int64_t now) {
  if (pwi_sim_disk_edits_flush(disk, now)) disk->broken = true;
  for (struct disk_rename *rename = disk->renames; rename; rename = rename->next)
    if (rename->made_at <= now && pwi_random_chance(&disk->random, 0.5) && rename_make_durable(rename))
      disk->broken = true;
  pwi_sim_disk_renames_free(disk);
  disk->used = 0;
  if (settle_inode(disk, disk->root, now)) disk->broken = true;
}
