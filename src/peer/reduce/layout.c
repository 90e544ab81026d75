/* Where each tensor lies in a payload and in a model, and the description by which members compare themselves. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "graph/text.h"
#include "peer/reduce/inside.h"

#define SHAPES_MAX 256 /* tensors that a description lists; a hash covers the others */
#define FORMAT 2

static enum pwi_value_codec codec_of(enum pawl_reduce_narrow narrow) {
  static const enum pwi_value_codec codecs[] = {PWI_CODEC_RAW, PWI_CODEC_F16, PWI_CODEC_BF16, PWI_CODEC_INT8};
  return codecs[narrow];
}

static pawl_status place(size_t *at, size_t size, size_t *offset_out) {
  *offset_out = *at;
  if (__builtin_add_overflow(*at, size, at) || __builtin_add_overflow(*at, 7, at)) return PAWL_OVERFLOW;
  *at &= ~(size_t)7;
  return PAWL_OK;
}

static pawl_status add(struct reduce_layout *layout, const struct pawl_tensor *tensor, bool is_reduced) {
  struct reduce_piece *piece = &layout->pieces[layout->all];
  if (tensor->type != PAWL_F32 && tensor->type != PAWL_F64) return PAWL_UNSUPPORTED;
  if (!tensor->values && tensor->count > 0) return PAWL_INVALID;
  size_t each = tensor->type == PAWL_F32 ? 4 : 8, offset;
  *piece = (struct reduce_piece){.values = tensor->values, .count = tensor->count, .type = tensor->type};
  if (__builtin_mul_overflow(tensor->count, each, &piece->size)) return PAWL_OVERFLOW;
  pawl_status status = place(&layout->model, piece->size, &piece->model_offset);
  if (!status && is_reduced) {
    status = place(&layout->raw, piece->size, &offset);
    if (!status)
      status = pwi_values_bound(layout->codec, (enum pwi_value_type)(int)piece->type, piece->count, &piece->encoded);
    if (!status) status = place(&layout->capacity, piece->encoded, &piece->offset);
    layout->values += piece->count;
    layout->count++;
  }
  layout->all++;
  return status;
}

pawl_status pwi_reduce_layout_init(struct reduce_layout *layout, const struct pwi_reduce_config *config) {
  if (config->count > PAWL_REDUCE_TENSORS_MAX || config->carried_count > PAWL_REDUCE_TENSORS_MAX - config->count)
    return PAWL_TOO_LARGE;
  *layout = (struct reduce_layout){.codec = codec_of(config->narrow)};
  layout->pieces = pwi_alloc_zero(config->count + config->carried_count + 1, sizeof *layout->pieces);
  if (!layout->pieces) return PAWL_NO_MEMORY;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; !status && i < config->count; i++) status = add(layout, &config->tensors[i], true);
  for (size_t i = 0; !status && i < config->carried_count; i++) status = add(layout, &config->carried[i], false);
  return status;
}

void pwi_reduce_layout_fini(struct reduce_layout *layout) { pwi_free(layout->pieces); }

/* --- descriptions --------------------------------------------------------------------------------------- */

/* u8 format, mode, what, narrow; u64 significant, u64 hash of the graph, u64 hash of all shapes; text graph; u32
 * reduced, u32 carried tensors; then u8 type and u64 count of up to SHAPES_MAX of them. */
struct description {
  uint8_t format, mode, what, narrow;
  uint64_t significant, graph_hash, shapes_hash;
  char graph[PAWL_REDUCE_GRAPH_MAX + 1];
  uint32_t reduced, carried;
};

static uint64_t hash_graph(const struct pwi_reduce_graph *graph) {
  unsigned char bytes[16];
  pwi_put_u64(bytes, graph->seed);
  pwi_put_u64(bytes + 8, graph->degree);
  uint64_t hash = pwi_hash(bytes, sizeof bytes, 0);
  for (uint32_t i = 0; graph->file && i < graph->file->edges; i++) {
    pwi_put_u32(bytes, graph->file->out[i]);
    hash = pwi_hash(bytes, 4, hash);
  }
  for (uint32_t i = 0; graph->file && i <= graph->file->nodes; i++) {
    pwi_put_u32(bytes, graph->file->out_begin[i]);
    hash = pwi_hash(bytes, 4, hash);
  }
  return hash;
}

static uint64_t hash_shapes(const struct reduce_layout *layout) {
  uint64_t hash = layout->count;
  for (size_t i = 0; i < layout->all; i++) {
    unsigned char bytes[9] = {(unsigned char)layout->pieces[i].type};
    pwi_put_u64(bytes + 1, layout->pieces[i].count);
    hash = pwi_hash(bytes, sizeof bytes, hash);
  }
  return hash;
}

/* A file may have another path on another machine. */
static const char *graph_name(const struct pwi_reduce_graph *graph) { return graph->file ? "file" : graph->name; }

pawl_status pwi_reduce_describe(struct pwi_reduce *engine) {
  const struct reduce_layout *layout = &engine->layout;
  const struct pwi_reduce_config *config = &engine->config;
  struct pwi_writer writer = {0};
  pwi_write_u8(&writer, FORMAT);
  pwi_write_u8(&writer, (uint8_t)config->mode);
  pwi_write_u8(&writer, (uint8_t)config->what);
  pwi_write_u8(&writer, (uint8_t)config->narrow);
  pwi_write_u64(&writer, pwi_double_bits(config->significant));
  pwi_write_u64(&writer, hash_graph(&config->graph));
  pwi_write_u64(&writer, hash_shapes(layout));
  pwi_write_text(&writer, graph_name(&config->graph));
  pwi_write_u32(&writer, (uint32_t)layout->count);
  pwi_write_u32(&writer, (uint32_t)(layout->all - layout->count));
  for (size_t i = 0; i < layout->all && i < SHAPES_MAX; i++) {
    pwi_write_u8(&writer, (uint8_t)layout->pieces[i].type);
    pwi_write_u64(&writer, layout->pieces[i].count);
  }
  engine->description = writer.data;
  engine->description_size = writer.size;
  return writer.status;
}

static void read_description(struct pwi_reader *reader, struct description *description) {
  description->format = pwi_read_u8(reader);
  description->mode = pwi_read_u8(reader);
  description->what = pwi_read_u8(reader);
  description->narrow = pwi_read_u8(reader);
  description->significant = pwi_read_u64(reader);
  description->graph_hash = pwi_read_u64(reader);
  description->shapes_hash = pwi_read_u64(reader);
  pwi_read_text(reader, description->graph, sizeof description->graph);
  description->reduced = pwi_read_u32(reader);
  description->carried = pwi_read_u32(reader);
}

/* Finds the first tensor that differs. */
static void explain_shapes(const struct pwi_reduce *engine, uint64_t peer, struct pwi_reader *reader,
                           const struct description *theirs, char *problem, size_t room) {
  const struct reduce_layout *layout = &engine->layout;
  if (theirs->reduced != layout->count || theirs->carried != layout->all - layout->count) {
    snprintf(problem, room,
             "this member has %zu tensors and %zu carried ones, node %" PRIu64 " has %" PRIu32 " and %" PRIu32,
             layout->count, layout->all - layout->count, peer, theirs->reduced, theirs->carried);
    return;
  }
  for (size_t i = 0; i < layout->all && i < SHAPES_MAX; i++) {
    uint8_t type = pwi_read_u8(reader);
    uint64_t count = pwi_read_u64(reader);
    const struct reduce_piece *piece = &layout->pieces[i];
    if (!reader->status && type == (uint8_t)piece->type && count == piece->count) continue;
    snprintf(problem, room, "tensor %zu has %zu values of type %s, at node %" PRIu64 " %" PRIu64 " of type %s", i,
             piece->count, piece->type == PAWL_F32 ? "f32" : "f64", peer, count,
             type == PAWL_F32   ? "f32"
             : type == PAWL_F64 ? "f64"
                                : "unknown");
    return;
  }
  snprintf(problem, room, "a tensor after the first %d has another shape at node %" PRIu64, SHAPES_MAX, peer);
}

pawl_status pwi_reduce_compare(const struct pwi_reduce *engine, uint64_t peer, const void *theirs, size_t size,
                               char *problem, size_t room) {
  struct pwi_reader reader;
  struct description found = {0};
  const struct pwi_reduce_config *config = &engine->config;
  if (size == engine->description_size && memcmp(theirs, engine->description, size) == 0) return PAWL_OK;
  pwi_reader_init(&reader, theirs, size);
  read_description(&reader, &found);
  if (reader.status || found.format != FORMAT)
    snprintf(problem, room, "node %" PRIu64 " uses another version of the protocol", peer);
  else if (found.shapes_hash != hash_shapes(&engine->layout))
    explain_shapes(engine, peer, &reader, &found, problem, room);
  else if (found.mode != config->mode || found.what != config->what || found.narrow != config->narrow ||
           found.significant != pwi_double_bits(config->significant))
    snprintf(problem, room, "node %" PRIu64 " has another mode, combination, narrowing or threshold", peer);
  else
    snprintf(problem, room, "this member has the graph '%.60s', node %" PRIu64 " has '%.60s'%s",
             graph_name(&config->graph), peer, found.graph,
             strcmp(found.graph, graph_name(&config->graph)) == 0 ? " of another seed, degree or content" : "");
  return PAWL_MISMATCH;
}
