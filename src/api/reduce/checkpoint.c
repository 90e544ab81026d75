/* Checkpoints of a reduce: the tensors of one member in one file.
 *
 *   8 bytes  "pawlredu"
 *   u32      version of the format, 1
 *   u32      tensors; u32 of these reduced; u32 0
 *   u64      completed iterations
 *            for each tensor: u32 type, u32 0, u64 count
 *   u64      hash of everything before
 *            the values of all tensors, one after another
 *   u64      hash of the values
 *
 * All fields and values are little-endian. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/reduce/reduce.h"
#include "base/bytes.h"
#include "base/cursor.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"

#define MAGIC "pawlredu"
#define FORMAT 1
#define FIXED 32 /* bytes before the list of tensors */
#define BUFFER ((size_t)1 << 20)
#define TRIES 1000 /* names for a temporary file */

static size_t size_of(const struct pawl_tensor *tensor) { return tensor->count * (tensor->type == PAWL_F32 ? 4 : 8); }

static size_t head_size(const struct pawl_reduce *reduce) { return FIXED + 16 * reduce->all + 8; }

/* --- paths ---------------------------------------------------------------------------------------------- */

/* A file in its folder. */
struct place {
  struct pwi_files *files;
  char *folder;
  const char *name;
};

static pawl_status find_place(const char *path, struct place *place) {
  const char *slash = strrchr(path, '/');
  *place = (struct place){.name = slash ? slash + 1 : path};
  place->folder = pwi_copy_string(slash ? path : ".");
  if (!place->folder) return PAWL_NO_MEMORY;
  if (slash) place->folder[slash == path ? 1 : slash - path] = '\0';
  return pwi_files_posix_open(place->folder, &place->files);
}

static void leave_place(struct place *place) {
  pwi_files_posix_close(place->files);
  pwi_free(place->folder);
}

/* --- saving --------------------------------------------------------------------------------------------- */

static pawl_status write_head(const struct pawl_reduce *reduce, uint64_t iteration, struct pwi_writer *writer) {
  pwi_write_bytes(writer, MAGIC, 8);
  pwi_write_u32(writer, FORMAT);
  pwi_write_u32(writer, (uint32_t)reduce->all);
  pwi_write_u32(writer, (uint32_t)reduce->count);
  pwi_write_u32(writer, 0);
  pwi_write_u64(writer, iteration);
  for (size_t i = 0; i < reduce->all; i++) {
    pwi_write_u32(writer, (uint32_t)reduce->tensors[i].type);
    pwi_write_u32(writer, 0);
    pwi_write_u64(writer, reduce->tensors[i].count);
  }
  if (!writer->status) pwi_write_u64(writer, pwi_hash(writer->data, writer->size, 0));
  return writer->status;
}

static pawl_status write_values(const struct pawl_reduce *reduce, struct pwi_file *file, uint64_t at) {
  struct pwi_hasher hasher;
  unsigned char end[8];
  pawl_status status = PAWL_OK;
  pwi_hasher_init(&hasher, 0);
  for (size_t i = 0; !status && i < reduce->all; i++) {
    size_t size = size_of(&reduce->tensors[i]);
    if (size == 0) continue;
    pwi_hasher_add(&hasher, reduce->tensors[i].values, size);
    status = pwi_file_write(file, at, reduce->tensors[i].values, size);
    at += size;
  }
  pwi_put_u64(end, pwi_hasher_value(&hasher));
  return status ? status : pwi_file_write(file, at, end, sizeof end);
}

static pawl_status write_file(const struct pawl_reduce *reduce, uint64_t iteration, struct pwi_file *file) {
  struct pwi_writer writer = {0};
  pawl_status status = write_head(reduce, iteration, &writer);
  if (!status) status = pwi_file_write(file, 0, writer.data, writer.size);
  if (!status) status = write_values(reduce, file, writer.size);
  if (!status) status = pwi_file_sync(file);
  pwi_writer_fini(&writer);
  return status;
}

/* A file of another kind is never replaced; PAWL_EXISTS. */
static pawl_status look_at_old(struct place *place) {
  struct pwi_file *file;
  char magic[8] = "";
  size_t size = 0;
  pawl_status status = pwi_files_open(place->files, place->name, PWI_OPEN_READ, &file);
  if (status) return status == PAWL_NOT_FOUND ? PAWL_OK : status;
  status = pwi_file_read(file, 0, magic, sizeof magic, &size);
  pwi_file_close(file);
  return status ? status : size == 8 && memcmp(magic, MAGIC, 8) == 0 ? PAWL_OK : PAWL_EXISTS;
}

/* Files of other programs may have such names, too. */
static pawl_status open_temporary(struct place *place, char *name, size_t room, struct pwi_file **file_out) {
  pawl_status status = PAWL_EXISTS;
  for (int i = 0; i < TRIES && status == PAWL_EXISTS; i++) {
    int length = snprintf(name, room, "%s.new-%ld-%d", place->name, (long)getpid(), i);
    if (length < 0 || (size_t)length >= room) return PAWL_TOO_LARGE;
    status = pwi_files_open(place->files, name, PWI_OPEN_WRITE | PWI_OPEN_NEW, file_out);
  }
  return status;
}

static pawl_status save_at(const struct pawl_reduce *reduce, uint64_t iteration, struct place *place) {
  char name[256];
  struct pwi_file *file;
  pawl_status status = look_at_old(place);
  if (!status) status = open_temporary(place, name, sizeof name, &file);
  if (status) return status;
  status = write_file(reduce, iteration, file);
  pwi_file_close(file);
  if (!status) status = pwi_files_rename(place->files, name, place->name);
  if (status) {
    (void)!pwi_files_remove(place->files, name);
    return status;
  }
  return pwi_files_sync_directory(place->files, ".");
}

pawl_status pawl_reduce_save(struct pawl_reduce *reduce, const char *path) {
  struct pawl_reduce_state state;
  struct place place;
  if (!reduce || !path || !*path) return pwi_error(PAWL_INVALID, "save a reduce: reduce or path is NULL or empty");
  pawl_reduce_state(reduce, &state);
  pawl_status status = find_place(path, &place);
  if (!status) status = save_at(reduce, state.iteration, &place);
  leave_place(&place);
  if (status == PAWL_EXISTS)
    return pwi_error(status, "save reduce %s: %s is not a checkpoint of a reduce and is not replaced", reduce->name,
                     path);
  return status ? pwi_error_status(status, "save reduce %s to %s", reduce->name, path) : PAWL_OK;
}

/* --- loading -------------------------------------------------------------------------------------------- */

static pawl_status read_all(struct pwi_file *file, uint64_t at, void *into, size_t size) {
  size_t got = 0;
  pawl_status status = pwi_file_read(file, at, into, size, &got);
  return status ? status : got == size ? PAWL_OK : PAWL_TRUNCATED;
}

static pawl_status check_tensors(const struct pawl_reduce *reduce, struct pwi_reader *reader) {
  for (size_t i = 0; i < reduce->all; i++) {
    uint32_t type = pwi_read_u32(reader);
    (void)pwi_read_u32(reader);
    uint64_t count = pwi_read_u64(reader);
    if (reader->status) return reader->status;
    if (type != (uint32_t)reduce->tensors[i].type || count != reduce->tensors[i].count)
      return pwi_error(PAWL_MISMATCH, "tensor %zu has %zu values of type %s, in the checkpoint %" PRIu64 " of type %s",
                       i, reduce->tensors[i].count, reduce->tensors[i].type == PAWL_F32 ? "f32" : "f64", count,
                       type == PAWL_F32 ? "f32" : "f64");
  }
  return PAWL_OK;
}

/* The number of tensors is compared before anything of that size is read. */
static pawl_status read_head(const struct pawl_reduce *reduce, struct pwi_file *file, unsigned char *head,
                             uint64_t *iteration_out) {
  size_t size = head_size(reduce);
  struct pwi_reader reader;
  pawl_status status = read_all(file, 0, head, FIXED);
  if (status) return status;
  if (memcmp(head, MAGIC, 8) != 0) return PAWL_CORRUPT;
  if (pwi_get_u32(head + 8) != FORMAT) return PAWL_UNSUPPORTED;
  if (pwi_get_u32(head + 12) != reduce->all || pwi_get_u32(head + 16) != reduce->count)
    return pwi_error(PAWL_MISMATCH, "the checkpoint has %" PRIu32 " tensors, %" PRIu32 " of them reduced",
                     pwi_get_u32(head + 12), pwi_get_u32(head + 16));
  status = read_all(file, FIXED, head + FIXED, size - FIXED);
  if (status) return status;
  if (pwi_hash(head, size - 8, 0) != pwi_get_u64(head + size - 8)) return PAWL_CORRUPT;
  pwi_reader_init(&reader, head + FIXED, size - FIXED - 8);
  *iteration_out = pwi_get_u64(head + 24);
  return check_tensors(reduce, &reader);
}

/* Reads everything and compares the hash. With `into`, the values go to the tensors. */
static pawl_status read_values(const struct pawl_reduce *reduce, struct pwi_file *file, unsigned char *buffer,
                               bool into) {
  struct pwi_hasher hasher;
  uint64_t at = head_size(reduce);
  unsigned char end[9];
  size_t got;
  pwi_hasher_init(&hasher, 0);
  for (size_t i = 0; i < reduce->all; i++) {
    size_t size = size_of(&reduce->tensors[i]);
    for (size_t done = 0; done < size; done += BUFFER) {
      size_t part = size - done < BUFFER ? size - done : BUFFER;
      unsigned char *to = into ? (unsigned char *)reduce->tensors[i].values + done : buffer;
      pawl_status status = read_all(file, at, to, part);
      if (status) return status;
      pwi_hasher_add(&hasher, to, part);
      at += part;
    }
  }
  pawl_status status = pwi_file_read(file, at, end, sizeof end, &got);
  if (status) return status;
  if (got < 8) return PAWL_TRUNCATED;
  return got == 8 && pwi_get_u64(end) == pwi_hasher_value(&hasher) ? PAWL_OK : PAWL_CORRUPT;
}

static pawl_status load_from(const struct pawl_reduce *reduce, struct pwi_file *file, uint64_t *iteration_out) {
  size_t head = head_size(reduce);
  unsigned char *buffer = pwi_alloc(head > BUFFER ? head : BUFFER);
  if (!buffer) return PAWL_NO_MEMORY;
  pawl_status status = read_head(reduce, file, buffer, iteration_out);
  if (!status) status = read_values(reduce, file, buffer, false);
  if (!status) status = read_values(reduce, file, buffer, true);
  pwi_free(buffer);
  return status;
}

static pawl_status set_iteration(struct pawl_reduce *reduce, uint64_t iteration) {
  struct pwi_driver *driver = &reduce->group->session->driver;
  pwi_driver_enter(driver);
  pawl_status status = pwi_reduce_resume(reduce->engine, iteration);
  pwi_driver_leave(driver);
  return status;
}

pawl_status pawl_reduce_load(struct pawl_reduce *reduce, const char *path, uint64_t *iteration_out) {
  struct pawl_reduce_state state;
  struct pwi_file *file = NULL;
  struct place place;
  uint64_t iteration = 0;
  if (!reduce || !path || !*path) return pwi_error(PAWL_INVALID, "load a reduce: reduce or path is NULL or empty");
  pawl_reduce_state(reduce, &state);
  pwi_error_forget();
  pawl_status status = set_iteration(reduce, state.iteration);
  if (status) return pwi_error(status, "load reduce %s: a step was made already", reduce->name);
  status = find_place(path, &place);
  if (!status) status = pwi_files_open(place.files, place.name, PWI_OPEN_READ, &file);
  if (!status) status = load_from(reduce, file, &iteration);
  pwi_file_close(file);
  leave_place(&place);
  if (!status) status = set_iteration(reduce, iteration);
  if (status == PAWL_MISMATCH) return status; /* with a text */
  if (status) return pwi_error_status(status, "load reduce %s from %s", reduce->name, path);
  if (iteration_out) *iteration_out = iteration;
  return PAWL_OK;
}
