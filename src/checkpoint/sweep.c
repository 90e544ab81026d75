/* Saves and removes checkpoints in their directory.
 *
 * The directory may contain files of others, which pawl must not touch. So a checkpoint is written into a
 * new folder, `.pawl-saving-` and a random number, and gets its name once it is complete. Files are
 * removed only from folders with such names, and only if the marker or the manifest in the folder says
 * that pawl wrote them. A folder that contains any other file stays.
 *
 *   .pawl-saving-0123456789abcdef/    attempt.json (the marker), then node-2-1.pawl …, then manifest.json;
 *                                     then the marker is removed
 *   nightly-4/                        the same folder, renamed: a checkpoint
 *   .pawl-removed-0123456789abcdef/   a checkpoint or an abandoned save that is being removed
 *
 * A crash between any two steps leaves one of these three. The next save sweeps the first and the last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/memory.h"
#include "protocol/save_messages.h"
#include "checkpoint/inside.h"

#define MARKER "attempt.json"
#define MARKER_MAX 4096
#define REMOVED ".pawl-removed-"

bool pwi_saved_is_attempt(const char *name) {
  return strncmp(name, PWI_SAVE_FOLDER, sizeof PWI_SAVE_FOLDER - 1) == 0 ||
         strncmp(name, REMOVED, sizeof REMOVED - 1) == 0;
}

/* --- the marker ----------------------------------------------------------------------------------------- */

static pawl_status write_marker(struct pwi_files *files, const char *folder, uint64_t cluster, const char *name) {
  char path[PWI_SAVED_PATH_MAX], text[512];
  int size = snprintf(text, sizeof text,
                      "{\"pawl\": \"an unfinished checkpoint\",\n"
                      " \"files\": \"node-*-*.pawl, " PWI_MANIFEST_FILE "\",\n"
                      " \"cluster\": \"%016llx\",\n"
                      " \"name\": \"%s\"}\n",
                      (unsigned long long)cluster, name);
  pwi_saved_path(folder, MARKER, path);
  return pwi_files_replace(files, path, text, (size_t)size);
}

static pawl_status read_small(struct pwi_files *files, const char *path, char *text, size_t *size_out) {
  struct pwi_file *file;
  pawl_status status = pwi_files_open(files, path, PWI_OPEN_READ, &file);
  if (status) return status;
  status = pwi_file_read(file, 0, text, MARKER_MAX, size_out);
  pwi_file_close(file);
  return status;
}

/* PAWL_NOT_FOUND: there is no marker, or pawl did not write it. */
static pawl_status read_marker(struct pwi_files *files, const char *folder, uint64_t *cluster_out) {
  char path[PWI_SAVED_PATH_MAX], text[MARKER_MAX], *end;
  size_t size;
  pwi_saved_path(folder, MARKER, path);
  pawl_status status = read_small(files, path, text, &size);
  if (status) return status == PAWL_INVALID ? PAWL_NOT_FOUND : status;
  json_t *root = json_loadb(text, size, 0, NULL);
  const char *cluster = json_string_value(json_object_get(root, "cluster"));
  bool is_ours = json_object_get(root, "pawl") && cluster && strlen(cluster) == 16;
  if (is_ours) *cluster_out = strtoull(cluster, &end, 16);
  is_ours = is_ours && *end == '\0';
  json_decref(root);
  return is_ours ? PAWL_OK : PAWL_NOT_FOUND;
}

static pawl_status sweep(struct pwi_files *files, const char *folder, uint64_t cluster);

/* --- making --------------------------------------------------------------------------------------------- */

pawl_status pwi_saved_begin(struct pwi_files *files, const char *name, uint64_t cluster, uint64_t number,
                            char folder_out[PWI_SAVE_FOLDER_SIZE]) {
  bool exists;
  if (!pwi_checkpoint_name_is_valid(name)) return PAWL_INVALID;
  pawl_status status = pwi_files_exists(files, name, &exists);
  if (!status && exists) status = PAWL_EXISTS;
  if (status) return status;
  snprintf(folder_out, PWI_SAVE_FOLDER_SIZE, PWI_SAVE_FOLDER "%016llx", (unsigned long long)number);
  status = pwi_files_make_directory(files, folder_out);
  if (status) return status;
  status = pwi_files_sync_directory(files, ".");
  if (!status) status = write_marker(files, folder_out, cluster, name);
  if (!status) return PAWL_OK;
  pawl_status ignored = sweep(files, folder_out, 0);
  (void)ignored;
  return status;
}

pawl_status pwi_saved_finish(struct pwi_files *files, const char *folder, const struct pwi_manifest *manifest) {
  char path[PWI_SAVED_PATH_MAX];
  bool exists;
  pawl_status status = pwi_manifest_write(files, folder, manifest);
  pwi_saved_path(folder, MARKER, path);
  if (!status) status = pwi_files_remove(files, path);
  if (!status) status = pwi_files_sync_directory(files, folder);
  if (!status) status = pwi_files_exists(files, manifest->name, &exists);
  if (!status && exists) status = PAWL_EXISTS;
  if (!status) status = pwi_files_rename(files, folder, manifest->name);
  return status ? status : pwi_files_sync_directory(files, ".");
}

/* --- removing ------------------------------------------------------------------------------------------- */

/* "node-", a number, "-", a number, ".pawl". */
static bool is_node_file(const char *name) {
  static const char digits[] = "0123456789";
  if (strncmp(name, "node-", 5) != 0) return false;
  size_t first = strspn(name + 5, digits);
  if (first == 0 || name[5 + first] != '-') return false;
  const char *second = name + 6 + first;
  size_t length = strspn(second, digits);
  return length > 0 && strcmp(second + length, ".pawl") == 0;
}

static bool is_listed(const struct pwi_manifest *manifest, const char *name) {
  for (size_t i = 0; i < manifest->file_count; i++)
    if (strcmp(manifest->files[i].name, name) == 0) return true;
  return false;
}

/* Whether pawl wrote a file of this name, in a folder with this manifest or with only a marker (NULL).
 * Returns false for the marker and the manifest themselves, which are removed last. */
static bool is_ours(const struct pwi_manifest *manifest, const char *name) {
  if (manifest) return is_listed(manifest, name) || strcmp(name, PWI_MANIFEST_FILE ".new") == 0;
  return is_node_file(name) || strcmp(name, PWI_MANIFEST_FILE) == 0 || strcmp(name, PWI_MANIFEST_FILE ".new") == 0 ||
         strcmp(name, MARKER ".new") == 0;
}

/* PAWL_EXISTS if the folder contains a file that pawl did not write. */
static pawl_status check_folder(struct pwi_files *files, const char *folder, const struct pwi_manifest *manifest) {
  struct pwi_names names = {0};
  const char *proof = manifest ? PWI_MANIFEST_FILE : MARKER;
  pawl_status status = pwi_files_list(files, folder, &names);
  for (size_t i = 0; i < names.count && !status; i++)
    if (strcmp(names.items[i], proof) != 0 && !is_ours(manifest, names.items[i])) status = PAWL_EXISTS;
  pwi_names_fini(&names);
  return status;
}

static pawl_status remove_in(struct pwi_files *files, const char *folder, const char *name) {
  char path[PWI_SAVED_PATH_MAX];
  int length = snprintf(path, sizeof path, "%s/%s", folder, name);
  pawl_status status = length < (int)sizeof path ? pwi_files_remove(files, path) : PAWL_INVALID;
  return status == PAWL_NOT_FOUND ? PAWL_OK : status;
}

/* Removes pawl's files, then the marker and the manifest, then the folder. PAWL_EXISTS if it contains any
 * other file. */
static pawl_status empty(struct pwi_files *files, const char *folder, const struct pwi_manifest *manifest) {
  struct pwi_names names = {0};
  pawl_status status = pwi_files_list(files, folder, &names);
  for (size_t i = 0; i < names.count && !status; i++)
    if (is_ours(manifest, names.items[i])) status = remove_in(files, folder, names.items[i]);
  pwi_names_fini(&names);
  if (!status) status = check_folder(files, folder, manifest);
  if (!status) status = pwi_files_sync_directory(files, folder);
  if (!status) status = remove_in(files, folder, manifest ? PWI_MANIFEST_FILE : MARKER);
  if (!status) status = pwi_files_remove(files, folder);
  return status ? status : pwi_files_sync_directory(files, ".");
}

/* Renames the folder, so that a process that still writes into it or wants to rename it fails. The number
 * is kept, so the new name is unique. */
static pawl_status set_aside(struct pwi_files *files, const char *folder, const char *number, char *aside,
                             size_t size) {
  bool exists;
  snprintf(aside, size, REMOVED "%s", number);
  pawl_status status = pwi_files_exists(files, aside, &exists);
  if (!status && exists) status = PAWL_EXISTS;
  if (!status) status = pwi_files_rename(files, folder, aside);
  return status ? status : pwi_files_sync_directory(files, ".");
}

/* A folder that is not empty and has no marker was made by another program, and stays. */
static pawl_status sweep_unmarked(struct pwi_files *files, const char *folder, uint64_t cluster) {
  struct pwi_manifest manifest = {0};
  pawl_status status = pwi_manifest_read(files, folder, &manifest);
  if (status == PAWL_NOT_FOUND) return pwi_files_remove(files, folder);
  if (status) return status;
  status = cluster && manifest.cluster != cluster ? PAWL_MISMATCH : empty(files, folder, &manifest);
  pwi_manifest_fini(&manifest);
  return status;
}

/* `cluster` 0: of any cluster. */
static pawl_status sweep(struct pwi_files *files, const char *folder, uint64_t cluster) {
  char aside[PWI_SAVED_PATH_MAX];
  uint64_t found;
  pawl_status status = read_marker(files, folder, &found);
  if (status == PAWL_NOT_FOUND) return sweep_unmarked(files, folder, cluster);
  if (!status && cluster && found != cluster) status = PAWL_MISMATCH;
  if (status) return status;
  if (strncmp(folder, PWI_SAVE_FOLDER, sizeof PWI_SAVE_FOLDER - 1) == 0) {
    status = set_aside(files, folder, folder + sizeof PWI_SAVE_FOLDER - 1, aside, sizeof aside);
    folder = aside;
  }
  return status ? status : empty(files, folder, NULL);
}

pawl_status pwi_saved_sweep(struct pwi_files *files, const char *folder) {
  return pwi_save_folder_is_valid(folder) ? sweep(files, folder, 0) : PAWL_INVALID;
}

void pwi_saved_sweep_all(struct pwi_files *files, uint64_t cluster) {
  struct pwi_names names = {0};
  if (pwi_files_list(files, ".", &names)) return;
  for (size_t i = 0; i < names.count; i++) {
    if (!pwi_saved_is_attempt(names.items[i]) || strlen(names.items[i]) > PWI_CHECKPOINT_NAME_MAX) continue;
    pawl_status status = sweep(files, names.items[i], cluster);
    (void)status; /* the folder stays */
  }
  pwi_names_fini(&names);
}

pawl_status pwi_saved_remove(struct pwi_files *files, const char *name, uint64_t number) {
  char aside[PWI_SAVED_PATH_MAX], digits[17];
  struct pwi_manifest manifest = {0};
  if (!pwi_checkpoint_name_is_valid(name)) return PAWL_INVALID;
  pawl_status status = pwi_manifest_read(files, name, &manifest);
  if (status) return status;
  if (strcmp(manifest.name, name) != 0) status = PAWL_MISMATCH;
  if (!status) status = check_folder(files, name, &manifest);
  snprintf(digits, sizeof digits, "%016llx", (unsigned long long)number);
  if (!status) status = set_aside(files, name, digits, aside, sizeof aside);
  if (!status) status = empty(files, aside, &manifest);
  pwi_manifest_fini(&manifest);
  return status;
}
