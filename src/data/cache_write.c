#include "data/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/cache_code.h"

#define BLOCK ((size_t)8 << 20) /* approximate size of a block in bytes */

struct pwi_cache_writer {
  char *path, *fresh; /* the final name, and the current one */
  int descriptor;
  struct pwi_cache_head head;
  struct pwi_cache_block *blocks;
  size_t room;
  uint64_t at;                /* offset of the next block */
  struct pwi_batch *gathered; /* rows that are not yet written */
};

static pawl_status no_memory(const struct pwi_cache_writer *writer, struct pwi_fault *fault) {
  return pwi_fault_plain(fault, PAWL_NO_MEMORY, writer->path);
}

static pawl_status write_at(struct pwi_cache_writer *writer, uint64_t at, const void *bytes, size_t size,
                            struct pwi_fault *fault) {
  size_t done = 0;
  while (done < size) {
    size_t most = size - done < (size_t)1 << 30 ? size - done : (size_t)1 << 30;
    ssize_t put = pwrite(writer->descriptor, (const char *)bytes + done, most, (off_t)(at + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return pwi_fault_errno(fault, writer->fresh, errno);
    done += (size_t)put;
  }
  return PAWL_OK;
}

/* --- opening and ending --------------------------------------------------------------------------------- */

static void free_writer(struct pwi_cache_writer *writer) {
  pwi_batch_destroy(writer->gathered);
  pwi_free(writer->blocks);
  pwi_free(writer->path);
  pwi_free(writer->fresh);
  pwi_free(writer);
}

static pawl_status create(struct pwi_cache_writer *writer, const char *path, struct pwi_fault *fault) {
  size_t size = strlen(path) + sizeof ".new";
  writer->path = pwi_copy_string(path);
  writer->fresh = pwi_alloc(size);
  if (!writer->path || !writer->fresh || pwi_batch_create(&writer->gathered))
    return pwi_fault_plain(fault, PAWL_NO_MEMORY, path);
  snprintf(writer->fresh, size, "%s.new", path);
  writer->descriptor = open(writer->fresh, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  return writer->descriptor < 0 ? pwi_fault_errno(fault, writer->fresh, errno) : PAWL_OK;
}

pawl_status pwi_cache_writer_open(const char *path, bool binary, bool unit_rows, struct pwi_cache_writer **writer_out,
                                  struct pwi_fault *fault) {
  struct pwi_cache_writer *writer = pwi_alloc_zero(1, sizeof *writer);
  if (!writer) return pwi_fault_plain(fault, PAWL_NO_MEMORY, path);
  writer->at = PWI_CACHE_HEAD;
  writer->head.flags = (binary ? PWI_CACHE_BINARY : 0u) | (unit_rows ? PWI_CACHE_UNIT_ROWS : 0u);
  pawl_status status = create(writer, path, fault);
  if (status)
    free_writer(writer);
  else
    *writer_out = writer;
  return status;
}

void pwi_cache_writer_abandon(struct pwi_cache_writer *writer) {
  if (!writer) return;
  close(writer->descriptor);
  unlink(writer->fresh);
  free_writer(writer);
}

uint64_t pwi_cache_writer_bytes(const struct pwi_cache_writer *writer) { return writer->at; }

/* --- blocks --------------------------------------------------------------------------------------------- */

static struct pwi_cache_block *new_block(struct pwi_cache_writer *writer) {
  size_t count = (size_t)writer->head.blocks;
  if (!PWI_GROW(writer->blocks, writer->room, count + 1)) return NULL;
  return &writer->blocks[count];
}

static pawl_status write_block(struct pwi_cache_writer *writer, const struct pawl_batch *batch,
                               struct pwi_fault *fault) {
  struct pwi_cache_block *block = new_block(writer);
  unsigned char *bytes;
  if (!block) return no_memory(writer, fault);
  pawl_status status = pwi_cache_encode(batch, block, &bytes);
  if (status) return pwi_fault_plain(fault, status, writer->path);
  size_t size = (size_t)(block->rows_size + block->columns_size);
  block->at = writer->at;
  status = write_at(writer, writer->at, bytes, size, fault);
  pwi_free(bytes);
  if (status) return status;
  writer->at += (size + 7) / 8 * 8;
  writer->head.blocks++;
  writer->head.rows += batch->rows;
  writer->head.entries += batch->entries;
  if (batch->max_id > writer->head.max_id) writer->head.max_id = batch->max_id;
  return PAWL_OK;
}

static pawl_status flush(struct pwi_cache_writer *writer, struct pwi_fault *fault) {
  struct pwi_batch *gathered = writer->gathered, *fresh;
  if (gathered->is.rows == 0) return PAWL_OK;
  if (pwi_batch_create(&fresh)) return no_memory(writer, fault);
  pawl_status status = pwi_batch_finish(gathered, false, false);
  status = status ? no_memory(writer, fault) : write_block(writer, &gathered->is, fault);
  pwi_batch_destroy(gathered);
  writer->gathered = fresh;
  return status;
}

static size_t weight_of(const struct pawl_batch *batch) {
  return batch->entries * 2 * (sizeof(uint32_t) + sizeof(float)) + batch->rows * 3 * sizeof(float);
}

static pawl_status append(struct pwi_batch *to, const struct pawl_batch *from) {
  for (size_t row = 0; row < from->rows; row++) {
    size_t begin = (size_t)from->starts[row], count = (size_t)from->starts[row + 1] - begin;
    pawl_status status = pwi_batch_room(to, count);
    if (status) return status;
    if (count) memcpy(to->ids + to->is.entries, from->ids + begin, count * sizeof *to->ids);
    for (size_t i = 0; i < count; i++) to->values[to->is.entries + i] = from->values ? from->values[begin + i] : 1;
    status = pwi_batch_end_row(to, count, true, from->labels[row], from->weights ? from->weights[row] : 1);
    if (status) return status;
  }
  return PAWL_OK;
}

pawl_status pwi_cache_writer_add(struct pwi_cache_writer *writer, const struct pawl_batch *batch,
                                 struct pwi_fault *fault) {
  size_t had = weight_of(&writer->gathered->is), more = weight_of(batch);
  pawl_status status = PAWL_OK;
  if (batch->rows == 0) return PAWL_OK;
  if (had + more > BLOCK) status = flush(writer, fault);
  if (status) return status;
  if (more > BLOCK / 2 && batch->entries <= UINT32_MAX)
    return write_block(writer, batch, fault); /* large enough to be a block of its own */
  status = append(writer->gathered, batch);
  return status ? no_memory(writer, fault) : PAWL_OK;
}

/* --- the end -------------------------------------------------------------------------------------------- */

static pawl_status write_index(struct pwi_cache_writer *writer, struct pwi_fault *fault) {
  size_t count = (size_t)writer->head.blocks, size = count * PWI_CACHE_ENTRY;
  unsigned char head[PWI_CACHE_HEAD], *bytes = pwi_alloc(size + PWI_CACHE_TAIL);
  if (!bytes) return no_memory(writer, fault);
  for (size_t i = 0; i < count; i++) pwi_cache_put_block(&writer->blocks[i], bytes + i * PWI_CACHE_ENTRY);
  pwi_put_u64(bytes + size, pwi_hash(bytes, size, 0));
  writer->head.index_at = writer->at;
  pwi_cache_put_head(&writer->head, head);
  pawl_status status = write_at(writer, writer->at, bytes, size + PWI_CACHE_TAIL, fault);
  if (!status) status = write_at(writer, 0, head, sizeof head, fault);
  writer->at += size + PWI_CACHE_TAIL;
  pwi_free(bytes);
  return status;
}

/* A rename is durable once its directory is synced. */
static void sync_directory(const char *path) {
  const char *slash = strrchr(path, '/');
  char *directory = pwi_copy_string(path);
  if (!directory) return;
  if (slash) directory[slash == path ? 1 : slash - path] = 0;
  int descriptor = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    (void)fsync(descriptor); /* some file systems do not support this; the file itself is synced */
    close(descriptor);
  }
  pwi_free(directory);
}

pawl_status pwi_cache_writer_finish(struct pwi_cache_writer *writer, struct pwi_fault *fault) {
  pawl_status status = flush(writer, fault);
  if (!status) status = write_index(writer, fault);
  if (!status && fsync(writer->descriptor) < 0) status = pwi_fault_errno(fault, writer->fresh, errno);
  if (!status && rename(writer->fresh, writer->path) < 0) status = pwi_fault_errno(fault, writer->path, errno);
  if (status) {
    pwi_cache_writer_abandon(writer);
    return status;
  }
  sync_directory(writer->path);
  close(writer->descriptor);
  free_writer(writer);
  return PAWL_OK;
}
