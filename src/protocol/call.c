/* Call graphs and results: checks, encoding and decoding. */
#include "protocol/call.h"

#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "base/memory.h"

#define ALIGN _Alignof(max_align_t)

/* --- graphs --------------------------------------------------------------------------------------------- */

static bool is_name_control(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

pawl_status pwi_call_name_check(const char *name) {
  size_t length = name ? strlen(name) : 0;
  if (length == 0 || length > PAWL_NAME_MAX) return PAWL_INVALID;
  for (size_t i = 0; i < length; i++) {
    bool is_edge = i == 0 || i + 1 == length || name[i - 1] == '/';
    if (name[i] == '/' ? is_edge : !is_name_control(name[i])) return PAWL_INVALID;
  }
  return PAWL_OK;
}

void pwi_call_graph_destroy(struct pwi_call_graph *graph) {
  if (!graph) return;
  pwi_free(graph->items);
  pwi_free(graph->edges);
  pwi_free(graph->sorted);
  pwi_free(graph->bytes);
  pwi_free(graph);
}

/* Arguments and results are aligned for any type, as if each had been allocated by itself. */
static size_t aligned(size_t size) { return (size + ALIGN - 1) / ALIGN * ALIGN; }

/* Allocates a zeroed graph with room for this many calls, edges and bytes. */
static struct pwi_call_graph *make_graph(size_t count, size_t edge_count, size_t bytes) {
  struct pwi_call_graph *graph = pwi_alloc_zero(1, sizeof *graph);
  if (!graph) return NULL;
  graph->items = pwi_alloc_zero(count, sizeof *graph->items);
  graph->edges = pwi_alloc_zero(edge_count + 1, sizeof *graph->edges);
  graph->sorted = pwi_alloc_zero(count, sizeof *graph->sorted);
  graph->bytes = pwi_alloc(bytes + count * ALIGN);
  graph->count = (uint32_t)count;
  graph->edge_count = (uint32_t)edge_count;
  if (graph->items && graph->edges && graph->sorted && graph->bytes) return graph;
  pwi_call_graph_destroy(graph);
  return NULL;
}

static pawl_status sort_graph(const struct pwi_call_graph *graph, uint32_t *culprit_out) {
  return pwi_task_order_sort(graph->count, graph->edges, graph->edge_count, graph->sorted, culprit_out);
}

/* Checks the names and returns the bytes of all names and arguments. */
static pawl_status measure(const struct pawl_graph_call *calls, size_t count, size_t *bytes_out,
                           uint32_t *culprit_out) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; i++) {
    *culprit_out = (uint32_t)i;
    if (pwi_call_name_check(calls[i].name) || (!calls[i].argument && calls[i].size > 0)) return PAWL_INVALID;
    bool fits = pwi_add_size(bytes, calls[i].size, &bytes) && pwi_add_size(bytes, strlen(calls[i].name), &bytes);
    if (!fits || bytes > PAWL_CALL_BYTES) return PAWL_TOO_LARGE;
  }
  *bytes_out = bytes;
  return PAWL_OK;
}

pawl_status pwi_call_graph_create(const struct pawl_graph_call *calls, size_t count, const struct pawl_edge *edges,
                                  size_t edge_count, struct pwi_call_graph **graph_out, uint32_t *culprit_out) {
  size_t bytes, used = 0;
  *culprit_out = PAWL_CALL_NONE;
  if (count == 0 || !calls || (!edges && edge_count > 0)) return PAWL_INVALID;
  if (count > PAWL_GRAPH_CALLS || edge_count > PAWL_GRAPH_EDGES) return PAWL_TOO_LARGE;
  pawl_status status = measure(calls, count, &bytes, culprit_out);
  if (status) return status;
  *culprit_out = PAWL_CALL_NONE;
  struct pwi_call_graph *graph = make_graph(count, edge_count, bytes);
  if (!graph) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < count; i++) {
    struct pwi_call_item *item = &graph->items[i];
    memcpy(item->name, calls[i].name, strlen(calls[i].name) + 1);
    if (calls[i].size > 0) memcpy(graph->bytes + used, calls[i].argument, calls[i].size);
    item->argument = graph->bytes + used;
    item->size = calls[i].size;
    used += aligned(calls[i].size);
  }
  for (size_t i = 0; i < edge_count; i++) graph->edges[i] = (struct pwi_edge){edges[i].from, edges[i].to};
  status = sort_graph(graph, culprit_out);
  if (status) {
    pwi_call_graph_destroy(graph);
    return status;
  }
  *graph_out = graph;
  return PAWL_OK;
}

void pwi_call_encode(uint64_t target, const struct pwi_call_graph *graph, struct pwi_writer *writer) {
  pwi_write_u64(writer, target);
  pwi_write_u32(writer, graph->count);
  for (uint32_t i = 0; i < graph->count; i++) {
    pwi_write_text(writer, graph->items[i].name);
    pwi_write_u32(writer, (uint32_t)graph->items[i].size);
    pwi_write_bytes(writer, graph->items[i].argument, graph->items[i].size);
  }
  pwi_write_u32(writer, graph->edge_count);
  for (uint32_t i = 0; i < graph->edge_count; i++) {
    pwi_write_u32(writer, graph->edges[i].from);
    pwi_write_u32(writer, graph->edges[i].to);
  }
}

/* Called twice: without memory to count the contents, then with memory to copy them. */
static void read_graph(struct pwi_reader *reader, struct pwi_call_graph *graph, size_t *counts) {
  size_t used = 0, all = 0;
  counts[0] = pwi_read_count(reader, 6);
  if (counts[0] == 0 || counts[0] > PAWL_GRAPH_CALLS) pwi_reader_fail(reader, PAWL_CORRUPT);
  for (size_t i = 0; i < counts[0] && !reader->status; i++) {
    struct pwi_call_item local, *item = graph ? &graph->items[i] : &local;
    pwi_read_text(reader, item->name, sizeof item->name);
    size_t size = pwi_read_u32(reader);
    const void *bytes = pwi_read_bytes(reader, size);
    if (!reader->status && pwi_call_name_check(item->name)) pwi_reader_fail(reader, PAWL_CORRUPT);
    if (graph && !reader->status) {
      if (size > 0) memcpy(graph->bytes + used, bytes, size);
      item->argument = graph->bytes + used;
      item->size = size;
    }
    used += reader->status ? 0 : aligned(size);
    all += reader->status ? 0 : size;
  }
  counts[1] = pwi_read_count(reader, 8);
  if (counts[1] > PAWL_GRAPH_EDGES || all > PAWL_CALL_BYTES) pwi_reader_fail(reader, PAWL_CORRUPT);
  for (size_t i = 0; i < counts[1] && !reader->status; i++) {
    struct pwi_edge edge = {.from = pwi_read_u32(reader)};
    edge.to = pwi_read_u32(reader);
    if (graph) graph->edges[i] = edge;
  }
  counts[2] = all;
}

static pawl_status sound(pawl_status status) { return status == PAWL_TRUNCATED ? PAWL_CORRUPT : status; }

pawl_status pwi_call_decode(const void *bytes, size_t size, uint64_t *target_out, struct pwi_call_graph **graph_out) {
  struct pwi_reader reader;
  size_t counts[3];
  pwi_reader_init(&reader, bytes, size);
  uint64_t target = pwi_read_u64(&reader);
  read_graph(&reader, NULL, counts);
  pawl_status status = sound(pwi_reader_end(&reader));
  if (status) return status;
  struct pwi_call_graph *graph = make_graph(counts[0], counts[1], counts[2]);
  if (!graph) return PAWL_NO_MEMORY;
  pwi_reader_init(&reader, bytes, size);
  (void)pwi_read_u64(&reader);
  read_graph(&reader, graph, counts);
  status = sort_graph(graph, NULL);
  if (status) {
    pwi_call_graph_destroy(graph);
    return status;
  }
  *target_out = target;
  *graph_out = graph;
  return PAWL_OK;
}

/* --- results -------------------------------------------------------------------------------------------- */

void pwi_call_return_encode(enum pwi_call_code code, const struct pwi_call_result *results, uint32_t count,
                            struct pwi_writer *writer) {
  pwi_write_u8(writer, (uint8_t)code);
  pwi_write_u32(writer, count);
  for (uint32_t i = 0; i < count; i++) {
    pwi_write_u32(writer, (uint32_t)results[i].status);
    pwi_write_u32(writer, results[i].cause);
    pwi_write_u32(writer, (uint32_t)results[i].size);
    pwi_write_bytes(writer, results[i].bytes, results[i].size);
  }
}

/* A cause is the index of another result, and only a call that did not begin has one. */
static bool is_sound(const struct pwi_call_result *result, uint32_t index, uint32_t count) {
  if (result->status > PAWL_OK) return false;
  if (result->cause == PAWL_CALL_NONE) return true;
  return result->status == PAWL_CANCELLED && result->cause < count && result->cause != index;
}

static void read_results(struct pwi_reader *reader, struct pwi_call_return *back) {
  size_t used = 0;
  for (uint32_t i = 0; i < back->count && !reader->status; i++) {
    struct pwi_call_result *result = &back->results[i];
    result->status = (pawl_status)(int32_t)pwi_read_u32(reader);
    result->cause = pwi_read_u32(reader);
    result->size = pwi_read_u32(reader);
    const void *bytes = pwi_read_bytes(reader, result->size);
    if (!reader->status && !is_sound(result, i, back->count)) pwi_reader_fail(reader, PAWL_CORRUPT);
    if (reader->status) return;
    result->bytes = back->bytes + used;
    if (result->size > 0) memcpy(back->bytes + used, bytes, result->size);
    used += aligned(result->size);
  }
}

static bool has_right_count(enum pwi_call_code code, uint32_t count) {
  switch (code) {
  case PWI_CALL_CODE_DONE:
    return count >= 1 && count <= PAWL_GRAPH_CALLS;
  case PWI_CALL_CODE_REFUSED:
    return count == 1;
  case PWI_CALL_CODE_LATER:
    return count == 0;
  }
  return false;
}

pawl_status pwi_call_return_decode(const void *bytes, size_t size, struct pwi_call_return *return_out) {
  struct pwi_call_return back = {0};
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  back.code = (enum pwi_call_code)pwi_read_u8(&reader);
  back.count = pwi_read_count(&reader, 12);
  if (!reader.status && !has_right_count(back.code, back.count)) pwi_reader_fail(&reader, PAWL_CORRUPT);
  if (reader.status) return sound(reader.status);
  back.results = pwi_alloc_zero(back.count + 1, sizeof *back.results);
  back.bytes = pwi_alloc(size + (back.count + 1) * ALIGN);
  pawl_status status = back.results && back.bytes ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) read_results(&reader, &back);
  if (!status) status = sound(pwi_reader_end(&reader));
  if (status) {
    pwi_call_return_fini(&back);
    return status;
  }
  *return_out = back;
  return PAWL_OK;
}

void pwi_call_return_fini(struct pwi_call_return *back) {
  pwi_free(back->results);
  pwi_free(back->bytes);
  *back = (struct pwi_call_return){0};
}
