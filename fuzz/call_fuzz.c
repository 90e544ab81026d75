/* The contents of CALL and RETURN: any bytes; accepted bytes are in canonical form. Valid graphs are
 * handed to a callee, which runs each call once, in order, and answers with as many results.
 *
 * covers: src/protocol/call.c
 */
#include "fuzz.h"

#include "base/cursor.h"
#include "base/memory.h"
#include "client/calls/callee.h"

static struct pwi_writer writer;
static struct pwi_running *waiting[PAWL_GRAPH_CALLS];
static size_t waiting_count, run_count, result_count;

static void run(void *context, struct pwi_running *running) {
  (void)context;
  assert(waiting_count < PAWL_GRAPH_CALLS);
  waiting[waiting_count++] = running;
  run_count++;
}

static void take_answer(void *context, const struct pwi_callee_answer *answer) {
  struct pwi_call_return back;
  (void)context;
  pawl_status status = pwi_call_return_decode(answer->payload, answer->size, &back);
  assert(status == PAWL_OK && answer->number == 1);
  result_count += back.count;
  pwi_call_return_fini(&back);
}

/* The last of the calls that may run ends first, and every fifth call fails. */
static void run_all(const uint8_t *data, size_t size, uint32_t count) {
  struct pwi_callee *callee;
  pawl_status status = pwi_callee_create(take_answer, NULL, &callee);
  assert(status == PAWL_OK);
  pwi_callee_set_host(callee, run, NULL);
  waiting_count = run_count = result_count = 0;
  status = pwi_callee_take(callee, 7, 1, 0, 3, data, size);
  assert(status == PAWL_OK);
  while (waiting_count > 0) {
    struct pwi_running *running = waiting[--waiting_count];
    pwi_callee_end(callee, running, running->index % 5 == 4 ? PAWL_IO : PAWL_OK, NULL, 0);
  }
  assert(run_count <= count && result_count == count && pwi_callee_open(callee) == 0);
  status = pwi_callee_take(callee, 7, 1, 0, 3, data, size);
  assert(status == PAWL_OK && waiting_count == 0);
  pwi_callee_destroy(callee);
}

static void try_call(const uint8_t *data, size_t size) {
  struct pwi_call_graph *graph;
  uint64_t target;
  pawl_status status = pwi_call_decode(data, size, &target, &graph);
  assert(status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_INVALID);
  if (status != PAWL_OK) return;
  assert(graph->count > 0);
  pwi_call_encode(target, graph, &writer);
  assert(writer.size == size && memcmp(writer.data, data, size) == 0);
  run_all(data, size, graph->count);
  pwi_call_graph_destroy(graph);
}

static void try_return(const uint8_t *data, size_t size) {
  struct pwi_call_return back;
  pawl_status status = pwi_call_return_decode(data, size, &back);
  assert(status == PAWL_OK || status == PAWL_CORRUPT);
  if (status != PAWL_OK) return;
  pwi_call_return_encode(back.code, back.results, back.count, &writer);
  assert(writer.size == size && memcmp(writer.data, data, size) == 0);
  pwi_call_return_fini(&back);
}

/* A graph drawn from the bytes, as a caller would make it. */
static void try_graph(struct input *input) {
  static const char *const names[] = {"f", "a/b", ".wait", "", "no name", "x//y"};
  struct pawl_graph_call calls[8];
  struct pawl_edge edges[16];
  struct pwi_call_graph *graph;
  uint32_t culprit;
  size_t count = draw_u8(input) % 9, edge_count = draw_u8(input) % 17;
  for (size_t i = 0; i < count; i++) {
    size_t which = draw_u8(input) % 16, size = draw_u8(input);
    calls[i] = (struct pawl_graph_call){names[which < 6 ? which : which % 3], input->at,
                                        size < input->left ? size : input->left};
  }
  for (size_t i = 0; i < edge_count; i++) edges[i] = (struct pawl_edge){draw_u8(input) % 9, draw_u8(input) % 9};
  pawl_status status = pwi_call_graph_create(calls, count, edges, edge_count, &graph, &culprit);
  assert(status == PAWL_OK || status == PAWL_INVALID);
  if (status != PAWL_OK) return;
  pwi_call_encode(9, graph, &writer);
  run_all(writer.data, writer.size, graph->count);
  pwi_call_graph_destroy(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  uint8_t which = draw_u8(&input) % 3;
  pwi_writer_reset(&writer);
  if (which == 0) try_call(input.at, input.left);
  if (which == 1) try_return(input.at, input.left);
  if (which == 2) try_graph(&input);
  return 0;
}
