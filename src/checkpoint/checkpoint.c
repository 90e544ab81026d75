/* Lists and opens checkpoints. checkpoint/sweep.c saves and removes them. */
#include "checkpoint/inside.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

pawl_status pwi_problem_tell(struct pwi_problem *problem, pawl_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(problem->text, sizeof problem->text, format, arguments);
  va_end(arguments);
  return status;
}

void pwi_saved_path(const char *directory, const char *file, char path[PWI_SAVED_PATH_MAX]) {
  int length = snprintf(path, PWI_SAVED_PATH_MAX, "%s/%s", directory, file);
  assert(length > 0 && length < PWI_SAVED_PATH_MAX);
  (void)length;
}

/* --- listing -------------------------------------------------------------------------------------------- */

static void summarise(struct pwi_saved_item *item, const struct pwi_manifest *manifest) {
  item->cluster = manifest->cluster;
  item->number = manifest->number;
  item->time_s = manifest->time_s;
  memcpy(item->base, manifest->base, sizeof item->base);
  item->vectors = manifest->vector_count;
  item->files = manifest->file_count;
  for (size_t i = 0; i < manifest->file_count; i++) item->bytes += manifest->files[i].size;
}

static pawl_status add_item(struct pwi_saved_list *list, const struct pwi_saved_item *item) {
  if (!PWI_GROW(list->items, list->room, list->count + 1)) return PAWL_NO_MEMORY;
  list->items[list->count++] = *item;
  return PAWL_OK;
}

/* Skips files beside the checkpoints, and directories without a manifest: they are not pawl's. */
static pawl_status look_at(struct pwi_files *files, const char *name, struct pwi_saved_list *list) {
  struct pwi_saved_item item = {0};
  struct pwi_manifest manifest = {0};
  if (pwi_saved_is_attempt(name)) list->unfinished++;
  if (!pwi_checkpoint_name_is_valid(name)) return PAWL_OK;
  item.status = pwi_manifest_read(files, name, &manifest);
  if (item.status == PAWL_NO_MEMORY) return PAWL_NO_MEMORY;
  if (item.status == PAWL_NOT_FOUND || item.status == PAWL_INVALID) return PAWL_OK;
  if (item.status == PAWL_OK && strcmp(manifest.name, name) != 0) item.status = PAWL_MISMATCH;
  snprintf(item.name, sizeof item.name, "%s", name);
  if (item.status == PAWL_OK) summarise(&item, &manifest);
  pwi_manifest_fini(&manifest);
  return add_item(list, &item);
}

static int compare_items(const void *left, const void *right) {
  const struct pwi_saved_item *a = left, *b = right;
  if ((a->status == PAWL_OK) != (b->status == PAWL_OK)) return a->status == PAWL_OK ? -1 : 1;
  if (a->time_s != b->time_s) return a->time_s < b->time_s ? -1 : 1;
  if (a->number != b->number) return a->number < b->number ? -1 : 1;
  return strcmp(a->name, b->name);
}

pawl_status pwi_saved_list(struct pwi_files *files, struct pwi_saved_list *list_out) {
  struct pwi_names names = {0};
  struct pwi_saved_list list = {0};
  pawl_status status = pwi_files_list(files, ".", &names);
  for (size_t i = 0; i < names.count && status == PAWL_OK; i++) status = look_at(files, names.items[i], &list);
  pwi_names_fini(&names);
  if (status != PAWL_OK) {
    pwi_saved_list_fini(&list);
    return status;
  }
  if (list.count > 1) qsort(list.items, list.count, sizeof *list.items, compare_items);
  *list_out = list;
  return PAWL_OK;
}

void pwi_saved_list_fini(struct pwi_saved_list *list) {
  pwi_free(list->items);
  *list = (struct pwi_saved_list){0};
}

/* --- opening -------------------------------------------------------------------------------------------- */

/* Reads one manifest and puts it in front of the other layers. */
static pawl_status add_layer(struct pwi_saved *saved, const char *name, struct pwi_problem *problem) {
  struct pwi_manifest manifest = {0};
  struct pwi_manifest *layers = pwi_resize_array(saved->layers, saved->layer_count + 1, sizeof *layers);
  if (!layers) return PAWL_NO_MEMORY;
  saved->layers = layers;
  pawl_status status = pwi_manifest_read(saved->files, name, &manifest);
  if (status == PAWL_NOT_FOUND) return pwi_problem_tell(problem, status, "checkpoint %s does not exist", name);
  if (status != PAWL_OK)
    return pwi_problem_tell(problem, status, "the manifest of %s: %s", name, pawl_status_text(status));
  if (strcmp(manifest.name, name) != 0) {
    status =
        pwi_problem_tell(problem, PAWL_MISMATCH, "the manifest in %s belongs to checkpoint %s", name, manifest.name);
    pwi_manifest_fini(&manifest);
    return status;
  }
  memmove(layers + 1, layers, saved->layer_count * sizeof *layers);
  layers[0] = manifest;
  saved->layer_count++;
  return PAWL_OK;
}

/* A base belongs to the same cluster and is older than its successor, so the chain of bases ends. */
static pawl_status check_base(const struct pwi_saved *saved, struct pwi_problem *problem) {
  const struct pwi_manifest *base = &saved->layers[0], *next = &saved->layers[1];
  if (base->cluster == next->cluster && base->number < next->number) return PAWL_OK;
  return pwi_problem_tell(problem, PAWL_MISMATCH, "%s is based on another checkpoint than this %s", next->name,
                          base->name);
}

pawl_status pwi_saved_open(struct pwi_files *files, const char *name, struct pwi_saved *saved_out,
                           struct pwi_problem *problem) {
  struct pwi_saved saved = {.files = files};
  problem->text[0] = '\0';
  if (!pwi_checkpoint_name_is_valid(name))
    return pwi_problem_tell(problem, PAWL_INVALID, "'%.80s' is not a valid checkpoint name", name);
  pawl_status status = add_layer(&saved, name, problem);
  while (status == PAWL_OK && saved.layers[0].base[0] != '\0') {
    char base[PWI_CHECKPOINT_NAME_MAX + 1];
    memcpy(base, saved.layers[0].base, sizeof base);
    if (saved.layer_count == PWI_SAVED_LAYERS_MAX)
      status = pwi_problem_tell(problem, PAWL_TOO_LARGE, "%s has more than %d bases", name, PWI_SAVED_LAYERS_MAX);
    else
      status = add_layer(&saved, base, problem);
    if (status == PAWL_OK) status = check_base(&saved, problem);
  }
  if (status == PAWL_OK)
    *saved_out = saved;
  else
    pwi_saved_close(&saved);
  return status;
}

void pwi_saved_close(struct pwi_saved *saved) {
  for (size_t i = 0; i < saved->layer_count; i++) pwi_manifest_fini(&saved->layers[i]);
  pwi_free(saved->layers);
  *saved = (struct pwi_saved){0};
}
