/* Calls of named functions, as they travel: what CALL and RETURN carry (docs/calls.md).
 *
 * What is called is always a *graph*: named calls, and edges that say which comes after which (OSDI'14 3.5). A single call is a
 * graph of one. A graph is checked here, on both sides, before anything of it is begun: names, sizes, and that it has no cycle.
 *
 * Decoders are safe on any bytes, and copy what they need: PAWL_CORRUPT for anything that is not as described, PAWL_NO_MEMORY.
 * Threads: values; each belongs to one thread at a time.
 */
#ifndef PWI_PROTOCOL_CALL_H
#define PWI_PROTOCOL_CALL_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/call.h>
#include <pawl/status.h>

#include "sync/order.h"

struct pwi_writer;

struct pwi_call_item {
  char name[PAWL_NAME_MAX + 1];
  const void *argument; /* in the graph's own bytes, aligned as malloc aligns */
  size_t size;
};

/* Read-only for callers. */
struct pwi_call_graph {
  struct pwi_call_item *items;
  uint32_t count;
  struct pwi_edge *edges;
  uint32_t edge_count;
  uint32_t *sorted; /* the items, each behind all that it comes after */
  unsigned char *bytes;
};

/* A word or words with slashes between them: letters, digits, '.', '_' and '-'. Names that begin with a dot are pawl's own. */
PAWL_MUST_USE pawl_status pwi_call_name_check(const char *name);

/* A graph of the caller's, copied. PAWL_INVALID: a name that cannot be, an edge that leads nowhere, or a cycle; `*culprit_out` is
 * then the call concerned. PAWL_TOO_LARGE: more than PAWL_CALL_BYTES of names and arguments, PAWL_GRAPH_CALLS or
 * PAWL_GRAPH_EDGES. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_call_graph_create(const struct pawl_graph_call *calls, size_t count,
                                                const struct pawl_edge *edges, size_t edge_count,
                                                struct pwi_call_graph **graph_out, uint32_t *culprit_out);
void pwi_call_graph_destroy(struct pwi_call_graph *graph); /* NULL is fine */

/* Payload of CALL, with base/cursor.h: u64 target; u32 count and per call text name, u32 size, bytes; u32 count and per edge
 * u32 from, u32 to. */
void pwi_call_encode(uint64_t target, const struct pwi_call_graph *graph, struct pwi_writer *writer);

/* PAWL_INVALID as above: the bytes are sound, and what they say is not. */
PAWL_MUST_USE pawl_status pwi_call_decode(const void *bytes, size_t size, uint64_t *target_out,
                                          struct pwi_call_graph **graph_out);

/* --- results ---------------------------------------------------------------------------------------------------------- */

/* X(name, number, text): what became of a CALL. */
#define PWI_CALL_CODE_MAP(X)                                                                                           \
  X(DONE, 0, "done")   /* it has run: the results follow */                                                            \
  X(LATER, 1, "later") /* nothing happened: whoever was asked is not the one that was meant, does not know the     \
                              caller, or has no memory just now */   \
  X(REFUSED, 2, "refused") /* nothing happened, and nothing will: one result says why */

enum pwi_call_code {
#define PWI_CALL_CODE_ENUM(name, number, text) PWI_CALL_CODE_##name = (number),
  PWI_CALL_CODE_MAP(PWI_CALL_CODE_ENUM)
#undef PWI_CALL_CODE_ENUM
};

struct pwi_call_result {
  pawl_status status;
  uint32_t cause; /* PAWL_CANCELLED: the call that failed first; else PAWL_CALL_NONE */
  const void *bytes;
  size_t size;
};

/* Read-only for callers. */
struct pwi_call_return {
  enum pwi_call_code code;
  uint32_t count; /* DONE: one for each call of the graph; REFUSED: one */
  struct pwi_call_result *results;
  unsigned char *bytes;
};

/* Payload of RETURN: u8 code; u32 count and per result i32 status, u32 cause, u32 size, bytes. */
void pwi_call_return_encode(enum pwi_call_code code, const struct pwi_call_result *results, uint32_t count,
                            struct pwi_writer *writer);

/* Ended with pwi_call_return_fini, for which a struct of zeros is fine. */
PAWL_MUST_USE pawl_status pwi_call_return_decode(const void *bytes, size_t size, struct pwi_call_return *return_out);
void pwi_call_return_fini(struct pwi_call_return *back);

#endif
