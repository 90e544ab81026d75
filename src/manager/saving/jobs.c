/* Checkpoints: access to the disk. Each function here is a disk job (checkpoint/disk_queue.h) or a part of
 * one. */
#include <stdio.h>
#include <string.h>

#include "manager/saving/saving.h"

#define NAME "checkpoint"
#define AUTO_NAME "auto"

static struct pwi_checkpointing *saving_of(struct pwi_disk_job *disk_job) {
  return (struct pwi_checkpointing *)((char *)disk_job - offsetof(struct pwi_checkpointing, disk_job));
}

static pawl_status open_disk_queue(struct pwi_checkpointing *saving, struct pwi_files **files_out) {
  struct pwi_disk_queue *disk_queue = saving->manager->config.disk_queue;
  return disk_queue->ops->open(disk_queue, saving->directory, true, files_out);
}

static void close_disk_queue(struct pwi_checkpointing *saving, struct pwi_files *files) {
  struct pwi_disk_queue *disk_queue = saving->manager->config.disk_queue;
  disk_queue->ops->close(disk_queue, files);
}

static const struct pwi_saved_item *item_named(const struct pwi_saved_list *list, const char *name) {
  for (size_t i = 0; i < list->count; i++)
    if (!list->items[i].status && strcmp(list->items[i].name, name) == 0) return &list->items[i];
  return NULL;
}

/* True if all bases below the checkpoint exist, and a checkpoint on top of it makes at most `most` layers. */
static bool can_be_base(const struct pwi_saved_list *list, const struct pwi_saved_item *item, size_t most) {
  size_t layers = 1;
  while (item && item->base[0] && layers++ < most) item = item_named(list, item->base);
  return item && !item->base[0] && layers < most;
}

/* The maximum number of layers: as many as can be read. If only some checkpoints are kept, no more than
 * these, because a base cannot be deleted. */
static size_t longest_row(const struct pwi_checkpointing *saving) {
  bool is_short = saving->is_periodic && saving->keep > 0 && saving->keep < PWI_SAVED_LAYERS_MAX;
  return is_short ? saving->keep : PWI_SAVED_LAYERS_MAX;
}

/* The base of an incremental checkpoint is the newest checkpoint of this cluster. If there is none, or if it
 * has too many layers, the new checkpoint has no base. */
static pawl_status find_base(struct pwi_checkpointing *saving, struct pwi_files *files,
                             const struct pwi_saved_list *list) {
  for (size_t i = list->count; i-- > 0 && saving->is_incremental;) {
    struct pwi_manifest manifest = {0};
    if (list->items[i].status) continue;
    pawl_status status = pwi_manifest_read(files, list->items[i].name, &manifest);
    if (status) return status;
    bool is_ours = manifest.cluster == saving->manifest.cluster;
    if (is_ours && can_be_base(list, &list->items[i], longest_row(saving))) {
      saving->base = manifest;
      memcpy(saving->manifest.base, manifest.name, sizeof manifest.name);
      return PAWL_OK;
    }
    pwi_manifest_fini(&manifest);
    if (is_ours) break;
  }
  return PAWL_OK;
}

/* Chooses an unused name. A folder of that name may exist although its number is not in the list. */
static pawl_status choose_name(struct pwi_checkpointing *saving, struct pwi_files *files) {
  struct pwi_manifest *manifest = &saving->manifest;
  bool exists = true;
  pawl_status status = PAWL_OK;
  for (; exists && !status; manifest->number += exists) {
    snprintf(manifest->name, sizeof manifest->name, "%s-%06llu", saving->is_periodic ? AUTO_NAME : NAME,
             (unsigned long long)manifest->number);
    status = pwi_files_exists(files, manifest->name, &exists);
  }
  return status;
}

static pawl_status prepare(struct pwi_checkpointing *saving, struct pwi_files *files) {
  struct pwi_saved_list list = {0};
  struct pwi_manifest *manifest = &saving->manifest;
  pwi_saved_sweep_all(files, manifest->cluster);
  pawl_status status = pwi_saved_list(files, &list);
  if (status) return status;
  for (size_t i = 0; i < list.count; i++)
    if (!list.items[i].status && list.items[i].number > manifest->number) manifest->number = list.items[i].number;
  manifest->number++;
  if (!manifest->name[0]) status = choose_name(saving, files);
  if (!status) status = find_base(saving, files, &list);
  pwi_saved_list_fini(&list);
  return status ? status : pwi_saved_begin(files, manifest->name, manifest->cluster, saving->salt, saving->folder);
}

void pwi_saving_prepare(struct pwi_disk_job *disk_job) {
  struct pwi_checkpointing *saving = saving_of(disk_job);
  struct pwi_files *files;
  saving->status = open_disk_queue(saving, &files);
  if (saving->status) return;
  saving->status = prepare(saving, files);
  close_disk_queue(saving, files);
}

static bool is_base_of(const struct pwi_saved_list *list, const char *name) {
  for (size_t i = 0; i < list->count; i++)
    if (!list->items[i].status && strcmp(list->items[i].base, name) == 0) return true;
  return false;
}

/* Deletes old periodic checkpoints of this cluster, except for the last `keep` and for bases. A checkpoint
 * that cannot be deleted, because it has a foreign file in it, stays. */
static void forget_old(struct pwi_checkpointing *saving, struct pwi_files *files) {
  struct pwi_saved_list list = {0};
  size_t count = 0;
  if (saving->keep == 0 || pwi_saved_list(files, &list)) return;
  for (size_t i = list.count; i-- > 0;) {
    const struct pwi_saved_item *item = &list.items[i];
    if (item->status || item->cluster != saving->manifest.cluster) continue;
    if (strncmp(item->name, AUTO_NAME "-", sizeof AUTO_NAME) != 0) continue;
    if (++count <= saving->keep || is_base_of(&list, item->name)) continue;
    pawl_status status = pwi_saved_remove(files, item->name, saving->salt + count);
    if (status) continue;
    list.items[i].base[0] = '\0'; /* it no longer needs its base */
  }
  pwi_saved_list_fini(&list);
}

void pwi_saving_write(struct pwi_disk_job *disk_job) {
  struct pwi_checkpointing *saving = saving_of(disk_job);
  struct pwi_disk_queue *disk_queue = saving->manager->config.disk_queue;
  struct pwi_files *files;
  saving->manifest.time_s = disk_queue->ops->wall_s(disk_queue);
  saving->status = open_disk_queue(saving, &files);
  if (saving->status) return;
  saving->status = pwi_saved_finish(files, saving->folder, &saving->manifest);
  if (!saving->status && saving->is_periodic) forget_old(saving, files);
  close_disk_queue(saving, files);
}

void pwi_saving_sweep(struct pwi_disk_job *disk_job) {
  struct pwi_checkpointing *saving = saving_of(disk_job);
  struct pwi_files *files;
  if (open_disk_queue(saving, &files)) return;
  pawl_status status = pwi_saved_sweep(files, saving->folder);
  (void)status; /* a folder that stays is no checkpoint */
  close_disk_queue(saving, files);
}
