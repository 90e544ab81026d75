/* Reads the files of a checkpoint, to verify it or to visit the rows of a vector. */
#include "checkpoint/inside.h"

#include <inttypes.h>
#include <string.h>

#include "base/search.h"
#include "ring/place.h"

/* Receives a chunk and the file that contains it. */
typedef pawl_status visit_of_file(void *context, const struct pwi_manifest_file *file, const struct pwi_chunk *chunk);

/* A file that is being read. */
struct file_reading {
  const struct pwi_manifest *layer;
  const struct pwi_manifest_file *file;
  char path[PWI_SAVED_PATH_MAX];
  struct pwi_archive_reader *reader;
  size_t cuts; /* cuts read so far */
  struct pwi_problem *problem;
  visit_of_file *visit;
  void *context;
};

static pawl_status tell_status(struct file_reading *reading, pawl_status status) {
  return pwi_problem_tell(reading->problem, status, "%s: %s", reading->path, pawl_status_text(status));
}

static pawl_status check_head(struct file_reading *reading) {
  const struct pwi_archive_head *head = pwi_archive_head(reading->reader);
  const struct pwi_manifest *layer = reading->layer;
  bool same = head->cluster == layer->cluster && head->checkpoint == layer->number &&
              head->node == reading->file->node && strcmp(head->name, layer->name) == 0 &&
              strcmp(head->base, layer->base) == 0;
  if (same) return PAWL_OK;
  return pwi_problem_tell(reading->problem, PAWL_MISMATCH,
                          "%s: this file belongs to checkpoint %s (number %" PRIu64 ") by node %" PRIu64
                          " of cluster %016" PRIx64,
                          reading->path, head->name, head->checkpoint, head->node, head->cluster);
}

static pawl_status check_cut(struct file_reading *reading, const struct pwi_archive_record *record) {
  struct pwi_archive_cut cut;
  pawl_status status = pwi_archive_read_cut(record, &cut);
  if (status != PAWL_OK) return tell_status(reading, status);
  const struct pwi_archive_cut *wanted =
      reading->cuts < reading->file->arc_count ? &reading->file->arcs[reading->cuts] : NULL;
  reading->cuts++;
  bool same = wanted && cut.positions.begin == wanted->positions.begin && cut.positions.end == wanted->positions.end &&
              cut.epoch == wanted->epoch && cut.sequence == wanted->sequence;
  if (same) return PAWL_OK;
  return pwi_problem_tell(reading->problem, PAWL_MISMATCH, "%s: arc %zu differs from the manifest", reading->path,
                          reading->cuts - 1);
}

static pawl_status check_end(struct file_reading *reading) {
  struct pwi_archive_figures figures = pwi_archive_figures(reading->reader);
  const struct pwi_manifest_file *file = reading->file;
  if (figures.size == file->size && figures.checksum == file->checksum && reading->cuts == file->arc_count)
    return PAWL_OK;
  return pwi_problem_tell(reading->problem, PAWL_MISMATCH, "%s: size, checksum or arcs differ from the manifest",
                          reading->path);
}

static pawl_status read_chunk(struct file_reading *reading, const struct pwi_archive_record *record) {
  struct pwi_chunk chunk;
  pawl_status status = pwi_chunk_read(record->bytes, record->size, &chunk);
  if (status != PAWL_OK)
    return pwi_problem_tell(reading->problem, status, "%s: the bytes from %" PRIu64 " on are not a chunk",
                            reading->path, record->offset);
  return reading->visit(reading->context, reading->file, &chunk);
}

static pawl_status read_records(struct file_reading *reading) {
  for (;;) {
    struct pwi_archive_record record;
    pawl_status status = pwi_archive_next(reading->reader, &record);
    if (status != PAWL_OK) return tell_status(reading, status);
    if (record.kind == PWI_ARCHIVE_END) return check_end(reading);
    status = record.kind == PWI_ARCHIVE_CUT ? check_cut(reading, &record) : read_chunk(reading, &record);
    if (status != PAWL_OK) return status;
  }
}

static pawl_status read_file(struct pwi_files *files, struct file_reading *reading) {
  struct pwi_file *file;
  pwi_saved_path(reading->layer->name, reading->file->name, reading->path);
  pawl_status status = pwi_files_open(files, reading->path, PWI_OPEN_READ, &file);
  if (status != PAWL_OK) return tell_status(reading, status);
  status = pwi_archive_open(file, &reading->reader);
  if (status == PAWL_OK) {
    status = check_head(reading);
    if (status == PAWL_OK) status = read_records(reading);
    pwi_archive_close(reading->reader);
  } else {
    status = tell_status(reading, status);
  }
  pwi_file_close(file);
  return status;
}

/* Reads all files of a layer, in the order of the manifest. */
static pawl_status read_layer(const struct pwi_saved *saved, const struct pwi_manifest *layer, visit_of_file *visit,
                              void *context, struct pwi_problem *problem) {
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < layer->file_count && status == PAWL_OK; i++) {
    struct file_reading reading = {
        .layer = layer, .file = &layer->files[i], .problem = problem, .visit = visit, .context = context};
    status = read_file(saved->files, &reading);
  }
  return status;
}

/* --- rows of a vector ----------------------------------------------------------------------------------- */

/* The receiver of a walk. Vector 0 means all vectors of the layer. */
struct layer_walk {
  const struct pwi_manifest *layer;
  const struct pwi_manifest_vector *vector;
  pawl_status (*visit)(void *context, const struct pwi_chunk *chunk);
  void *context;
  struct pwi_problem *problem;
  uint64_t rows;
};

static pawl_status check_rows(const struct layer_walk *walk, const struct pwi_manifest_vector *vector,
                              const struct pwi_chunk *chunk) {
  size_t size = pwi_scalar_size((enum pwi_scalar)vector->is.type);
  bool fits =
      chunk->row_bytes == size * pwi_options_stored(&vector->is) && chunk->state_bytes == size * vector->is.state_width;
  if (fits && pwi_chunk_key(chunk, chunk->count - 1) < vector->is.size) return PAWL_OK;
  return pwi_problem_tell(walk->problem, PAWL_MISMATCH, "%s: rows of %s have the wrong width or keys outside its span",
                          walk->layer->name, vector->name);
}

/* The index of the first row whose key is at least `key`. */
static size_t first_row(const struct pwi_chunk *chunk, uint64_t key) {
  struct pwi_search search = {.high = chunk->count};
  while (pwi_search_next(&search)) pwi_search_told(&search, pwi_chunk_key(chunk, search.middle) < key);
  return search.low;
}

static struct pwi_chunk rows_of(const struct pwi_chunk *chunk, size_t from, size_t count) {
  struct pwi_chunk some = *chunk;
  some.count = count;
  some.first += from;
  if (some.keys) some.keys += from * sizeof(uint64_t);
  some.values += from * chunk->row_bytes;
  if (some.state) some.state += from * chunk->state_bytes;
  return some;
}

/* Rows count only in arcs for which the file has a cut. If a server gave up an arc before its file was
 * complete, the file has no cut for it. Those rows were copied at an inconsistent moment: some may come from
 * a push that was never committed, and the file that has the arc's cut need not overwrite all of them. */
static pawl_status visit_cut(struct layer_walk *walk, const struct pwi_manifest_file *file,
                             const struct pwi_manifest_vector *vector, const struct pwi_chunk *chunk) {
  struct pwi_place place = {.size = vector->is.size, .mixed = vector->is.placement == PAWL_PLACE_MIXED};
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < file->arc_count && status == PAWL_OK; i++) {
    struct pawl_range keys = pwi_place_keys(&place, file->arcs[i].positions);
    size_t from = first_row(chunk, keys.begin), to = first_row(chunk, keys.end);
    if (from >= to) continue;
    struct pwi_chunk some = rows_of(chunk, from, to - from);
    walk->rows += some.count;
    if (walk->visit) status = walk->visit(walk->context, &some);
  }
  return status;
}

static pawl_status visit_chunk(void *context, const struct pwi_manifest_file *file, const struct pwi_chunk *chunk) {
  struct layer_walk *walk = context;
  if (!chunk->has_rows || (walk->vector && chunk->vector.id != walk->vector->id)) return PAWL_OK;
  const struct pwi_manifest_vector *vector = pwi_manifest_vector(walk->layer, chunk->vector.id);
  if (!vector) return PAWL_OK; /* deleted during the save */
  if (chunk->has_incarnation && chunk->incarnation != vector->incarnation) return PAWL_OK;
  pawl_status status = check_rows(walk, vector, chunk);
  return status == PAWL_OK ? visit_cut(walk, file, vector, chunk) : status;
}

pawl_status pwi_saved_walk(const struct pwi_saved *saved, const struct pwi_manifest_vector *vector,
                           pawl_status (*visit)(void *context, const struct pwi_chunk *chunk), void *context,
                           struct pwi_problem *problem) {
  pawl_status status = PAWL_OK;
  problem->text[0] = '\0';
  for (size_t i = 0; i < saved->layer_count && status == PAWL_OK; i++) {
    const struct pwi_manifest *layer = &saved->layers[i];
    const struct pwi_manifest_vector *then = pwi_manifest_vector(layer, vector->id);
    struct layer_walk walk = {layer, vector, visit, context, problem, 0};
    if (then && then->incarnation == vector->incarnation)
      status = read_layer(saved, layer, visit_chunk, &walk, problem);
  }
  return status;
}

/* The receiver of rows of all vectors that are the same in the newest layer. */
struct walk_all {
  const struct pwi_manifest *layer, *newest;
  pawl_status (*visit)(void *context, const struct pwi_chunk *chunk);
  void *context;
};

static pawl_status visit_same(void *context, const struct pwi_chunk *chunk) {
  const struct walk_all *all = context;
  const struct pwi_manifest_vector *then = pwi_manifest_vector(all->layer, chunk->vector.id);
  const struct pwi_manifest_vector *now = pwi_manifest_vector(all->newest, chunk->vector.id);
  if (!then || !now || then->incarnation != now->incarnation) return PAWL_OK;
  return all->visit(all->context, chunk);
}

pawl_status pwi_saved_walk_all(const struct pwi_saved *saved,
                               pawl_status (*visit)(void *context, const struct pwi_chunk *chunk), void *context,
                               struct pwi_problem *problem) {
  pawl_status status = PAWL_OK;
  problem->text[0] = '\0';
  for (size_t i = 0; i < saved->layer_count && status == PAWL_OK; i++) {
    struct walk_all all = {&saved->layers[i], pwi_saved_newest(saved), visit, context};
    struct layer_walk walk = {&saved->layers[i], NULL, visit_same, &all, problem, 0};
    status = read_layer(saved, &saved->layers[i], visit_chunk, &walk, problem);
  }
  return status;
}

static uint64_t bytes_of(const struct pwi_manifest *layer) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < layer->file_count; i++) bytes += layer->files[i].size;
  return bytes;
}

pawl_status pwi_saved_verify(const struct pwi_saved *saved, struct pwi_saved_totals *totals_out,
                             struct pwi_problem *problem) {
  struct pwi_saved_totals totals = {0};
  pawl_status status = PAWL_OK;
  problem->text[0] = '\0';
  for (size_t i = 0; i < saved->layer_count && status == PAWL_OK; i++) {
    const struct pwi_manifest *layer = &saved->layers[i];
    struct layer_walk walk = {.layer = layer, .problem = problem};
    status = pwi_manifest_covers(layer, pawl_range_of(0, PWI_RING_END));
    if (status == PAWL_MISMATCH)
      status = pwi_problem_tell(problem, status, "%s: its files do not cover the whole ring", layer->name);
    if (status == PAWL_OK) status = read_layer(saved, layer, visit_chunk, &walk, problem);
    totals.files += layer->file_count;
    totals.bytes += bytes_of(layer);
    totals.rows += walk.rows;
  }
  if (status == PAWL_OK) *totals_out = totals;
  return status;
}
