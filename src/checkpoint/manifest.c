/* Manifests as values, and in their directories. checkpoint/manifest_text.c encodes and decodes the text. */
#include "checkpoint/manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/table.h"

#define ROW_MAX (1u << 28)                      /* values per row */
#define PATH_SIZE (PWI_CHECKPOINT_NAME_MAX * 4) /* of the directory's and the file's names */

void pwi_manifest_fini(struct pwi_manifest *manifest) {
  for (size_t i = 0; i < manifest->file_count; i++) pwi_free(manifest->files[i].arcs);
  pwi_free(manifest->files);
  pwi_free(manifest->vectors);
  *manifest = (struct pwi_manifest){0};
}

pawl_status pwi_manifest_add_vector(struct pwi_manifest *manifest, const struct pwi_manifest_vector *vector) {
  if (!PWI_GROW(manifest->vectors, manifest->vector_room, manifest->vector_count + 1)) return PAWL_NO_MEMORY;
  manifest->vectors[manifest->vector_count++] = *vector;
  return PAWL_OK;
}

pawl_status pwi_manifest_add_file(struct pwi_manifest *manifest, const struct pwi_manifest_file *file) {
  if (!PWI_GROW(manifest->files, manifest->file_room, manifest->file_count + 1)) return PAWL_NO_MEMORY;
  struct pwi_archive_cut *arcs = pwi_alloc_zero(file->arc_count + 1, sizeof *arcs);
  if (!arcs) return PAWL_NO_MEMORY;
  if (file->arc_count > 0) memcpy(arcs, file->arcs, file->arc_count * sizeof *arcs);
  manifest->files[manifest->file_count] = *file;
  manifest->files[manifest->file_count++].arcs = arcs;
  return PAWL_OK;
}

const struct pwi_manifest_vector *pwi_manifest_vector(const struct pwi_manifest *manifest, uint64_t id) {
  for (size_t i = 0; i < manifest->vector_count; i++)
    if (manifest->vectors[i].id == id) return &manifest->vectors[i];
  return NULL;
}

const struct pwi_manifest_vector *pwi_manifest_named(const struct pwi_manifest *manifest, const char *name) {
  for (size_t i = 0; i < manifest->vector_count; i++)
    if (strcmp(manifest->vectors[i].name, name) == 0) return &manifest->vectors[i];
  return NULL;
}

/* --- rules ---------------------------------------------------------------------------------------------- */

/* Two words of file name characters with a slash between them. */
static bool vector_name_is_valid(const char *name) {
  static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  size_t first = strspn(name, allowed);
  if (first == 0 || name[first] != '/' || name[first + 1] == '.') return false;
  size_t second = strspn(name + first + 1, allowed);
  return second > 0 && name[first + 1 + second] == '\0';
}

static bool options_are_valid(const struct pawl_vector_options *is) {
  if (pwi_scalar_size((enum pwi_scalar)is->type) == 0 || is->width == 0 || is->width > PAWL_WIDTH_MAX || is->size == 0)
    return false;
  if (is->function != PAWL_ADD && is->function != PAWL_ASSIGN && is->function != PAWL_RULE) return false;
  if ((is->function == PAWL_RULE) != (is->rule[0] != '\0')) return false;
  if (is->pushed_width > ROW_MAX || is->stored_width > ROW_MAX || is->state_width > ROW_MAX) return false;
  if (is->placement != PAWL_PLACE_ORDERED && is->placement != PAWL_PLACE_MIXED) return false;
  if (is->placement == PAWL_PLACE_MIXED && is->size != PAWL_KEY_END) return false;
  if (is->layout != PAWL_LAYOUT_DENSE && is->layout != PAWL_LAYOUT_SPARSE) return false;
  struct pwi_table_options table = {.type = (enum pwi_scalar)is->type,
                                    .width = is->stored_width ? is->stored_width : is->width,
                                    .state_width = is->state_width,
                                    .span = pawl_range_of(0, is->size),
                                    .sparse = is->layout == PAWL_LAYOUT_SPARSE};
  return pwi_table_check(&table) == PAWL_OK;
}

/* Requires increasing ids, which also excludes duplicates. */
static bool vectors_are_valid(const struct pwi_manifest *manifest) {
  for (size_t i = 0; i < manifest->vector_count; i++) {
    const struct pwi_manifest_vector *vector = &manifest->vectors[i];
    if (vector->id <= (i > 0 ? vector[-1].id : 0)) return false;
    if (!vector_name_is_valid(vector->name) || !options_are_valid(&vector->is)) return false;
  }
  return true;
}

static int compare_texts(const void *left, const void *right) {
  return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Whether strings that lie `stride` bytes apart in an array of structs are all different. */
static pawl_status texts_differ(const char *first, size_t count, size_t stride) {
  const char **texts = pwi_alloc_zero(count + 1, sizeof *texts);
  if (!texts) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < count; i++) texts[i] = first + i * stride;
  if (count > 1) qsort(texts, count, sizeof *texts, compare_texts);
  pawl_status status = PAWL_OK;
  for (size_t i = 1; i < count; i++)
    if (strcmp(texts[i], texts[i - 1]) == 0) status = PAWL_INVALID;
  pwi_free(texts);
  return status;
}

static pawl_status names_differ(const struct pwi_manifest *manifest) {
  pawl_status status = PAWL_OK;
  if (manifest->vector_count > 0)
    status = texts_differ(manifest->vectors->name, manifest->vector_count, sizeof *manifest->vectors);
  if (status == PAWL_OK && manifest->file_count > 0)
    status = texts_differ(manifest->files->name, manifest->file_count, sizeof *manifest->files);
  return status;
}

static int compare_arcs(const void *left, const void *right) {
  const struct pawl_range *a = left, *b = right;
  return (a->begin > b->begin) - (a->begin < b->begin);
}

/* The arcs of all files, sorted by position. The caller frees the array, which has at least one element. */
static pawl_status sort_arcs(const struct pwi_manifest *manifest, struct pawl_range **arcs_out, size_t *count_out) {
  size_t count = 0, at = 0;
  for (size_t i = 0; i < manifest->file_count; i++) count += manifest->files[i].arc_count;
  struct pawl_range *arcs = pwi_alloc_zero(count + 1, sizeof *arcs);
  if (!arcs) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < manifest->file_count; i++)
    for (size_t j = 0; j < manifest->files[i].arc_count; j++) arcs[at++] = manifest->files[i].arcs[j].positions;
  if (count > 1) qsort(arcs, count, sizeof *arcs, compare_arcs);
  *arcs_out = arcs;
  *count_out = count;
  return PAWL_OK;
}

static pawl_status check_arcs(const struct pwi_manifest *manifest) {
  struct pawl_range *arcs;
  size_t count;
  pawl_status status = sort_arcs(manifest, &arcs, &count);
  if (status != PAWL_OK) return status;
  for (size_t i = 0; i < count; i++)
    if (pawl_range_is_empty(arcs[i]) || (i > 0 && arcs[i].begin < arcs[i - 1].end)) status = PAWL_INVALID;
  pwi_free(arcs);
  return status;
}

pawl_status pwi_manifest_check(const struct pwi_manifest *manifest) {
  if (!pwi_checkpoint_name_is_valid(manifest->name)) return PAWL_INVALID;
  if (manifest->base[0] != '\0' && !pwi_checkpoint_name_is_valid(manifest->base)) return PAWL_INVALID;
  if (strcmp(manifest->name, manifest->base) == 0 || !vectors_are_valid(manifest)) return PAWL_INVALID;
  for (size_t i = 0; i < manifest->file_count; i++) {
    const char *name = manifest->files[i].name;
    if (!pwi_checkpoint_name_is_valid(name) || strcmp(name, PWI_MANIFEST_FILE) == 0) return PAWL_INVALID;
  }
  pawl_status status = names_differ(manifest);
  return status == PAWL_OK ? check_arcs(manifest) : status;
}

pawl_status pwi_manifest_covers(const struct pwi_manifest *manifest, struct pawl_range positions) {
  struct pawl_range *arcs;
  size_t count;
  uint64_t at = positions.begin;
  pawl_status status = sort_arcs(manifest, &arcs, &count);
  if (status != PAWL_OK) return status;
  bool tiled = true;
  for (size_t i = 0; i < count && tiled; i++) {
    tiled = arcs[i].begin == at;
    at = arcs[i].end;
  }
  pwi_free(arcs);
  return tiled && at == positions.end ? PAWL_OK : PAWL_MISMATCH;
}

/* --- in a directory ------------------------------------------------------------------------------------- */

static bool make_path(const char *directory, char *path, size_t size) {
  int length = snprintf(path, size, "%s/%s", directory, PWI_MANIFEST_FILE);
  return length > 0 && (size_t)length < size;
}

pawl_status pwi_manifest_write(struct pwi_files *files, const char *directory, const struct pwi_manifest *manifest) {
  char path[PATH_SIZE], *text;
  size_t size;
  if (!make_path(directory, path, sizeof path)) return PAWL_INVALID;
  pawl_status status = pwi_manifest_encode(manifest, &text, &size);
  if (status != PAWL_OK) return status;
  status = pwi_files_replace(files, path, text, size);
  pwi_free(text);
  return status;
}

static pawl_status read_text(struct pwi_file *file, struct pwi_manifest *manifest_out) {
  uint64_t size;
  size_t got;
  pawl_status status = pwi_file_size(file, &size);
  if (status != PAWL_OK) return status;
  if (size > PWI_MANIFEST_MAX) return PAWL_TOO_LARGE;
  char *text = pwi_alloc((size_t)size + 1);
  if (!text) return PAWL_NO_MEMORY;
  status = pwi_file_read(file, 0, text, (size_t)size, &got);
  if (status == PAWL_OK) status = pwi_manifest_decode(text, got, manifest_out);
  pwi_free(text);
  return status;
}

pawl_status pwi_manifest_read(struct pwi_files *files, const char *directory, struct pwi_manifest *manifest_out) {
  char path[PATH_SIZE];
  struct pwi_file *file;
  if (!make_path(directory, path, sizeof path)) return PAWL_INVALID;
  pawl_status status = pwi_files_open(files, path, PWI_OPEN_READ, &file);
  if (status != PAWL_OK) return status;
  status = read_text(file, manifest_out);
  pwi_file_close(file);
  return status;
}
