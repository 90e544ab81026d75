/* Calls of named functions: the payloads of CALL and RETURN (docs/calls.md).
 *
 * A call message always carries a *graph*: named calls, and edges that order them (OSDI'14 3.5). A single
 * call is a graph of one. Both sides check a graph before any of it runs: names, sizes, and that it has no
 * cycle.
 *
 * Decoders accept any bytes and copy what they need. PAWL_CORRUPT for everything that is not as described,
 * PAWL_NO_MEMORY. Threads: plain values; each belongs to one thread at a time.
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
  const void *argument; /* points into the bytes of the graph, aligned as by malloc */
  size_t size;
};

/* Read-only for callers. */
struct pwi_call_graph {
  struct pwi_call_item *items;
  uint32_t count;
  struct pwi_edge *edges;
  uint32_t edge_count;
  uint32_t *sorted; /* the calls in topological order */
  unsigned char *bytes;
};

/* Checks a name: words of letters, digits, '.', '_' and '-', separated by slashes. Names that begin with a
 * dot are reserved for pawl. */
PAWL_MUST_USE pawl_status pwi_call_name_check(const char *name);

/* Copies a graph of the caller. PAWL_INVALID for an invalid name, an edge to an unknown call, or a cycle;
 * `*culprit_out` is then the call concerned. PAWL_TOO_LARGE for more than PAWL_CALL_BYTES of names and
 * arguments, PAWL_GRAPH_CALLS or PAWL_GRAPH_EDGES. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_call_graph_create(const struct pawl_graph_call *calls, size_t count,
                                                const struct pawl_edge *edges, size_t edge_count,
                                                struct pwi_call_graph **graph_out, uint32_t *culprit_out);
void pwi_call_graph_destroy(struct pwi_call_graph *graph); /* NULL is fine */

/* Payload of CALL, with base/cursor.h: u64 target; u32 count and for each call text name, u32 size, bytes;
 * u32 count and for each edge u32 from, u32 to. */
void pwi_call_encode(uint64_t target, const struct pwi_call_graph *graph, struct pwi_writer *writer);

/* PAWL_INVALID as pwi_call_graph_create: the bytes are well-formed, but the graph is not valid. */
PAWL_MUST_USE pawl_status pwi_call_decode(const void *bytes, size_t size, uint64_t *target_out,
                                          struct pwi_call_graph **graph_out);

/* --- results -------------------------------------------------------------------------------------------- */

/* Codes of a RETURN. X(name, number, text)
 *
 *   DONE     The graph has run; the results follow.
 *   LATER    Nothing happened: the receiver is not the target, does not know the caller, or lacks memory at
 *            the moment.
 *   REFUSED  Nothing happened, and a retry would be refused too. One result has the reason.
 */
#define PWI_CALL_CODE_MAP(X)                                                                                           \
  X(DONE, 0, "done")                                                                                                   \
  X(LATER, 1, "later")                                                                                                 \
  X(REFUSED, 2, "refused")

enum pwi_call_code {
#define PWI_CALL_CODE_ENUM(name, number, text) PWI_CALL_CODE_##name = (number),
  PWI_CALL_CODE_MAP(PWI_CALL_CODE_ENUM)
#undef PWI_CALL_CODE_ENUM
};

struct pwi_call_result {
  pawl_status status;
  uint32_t cause; /* PAWL_CANCELLED: the call that failed first; otherwise PAWL_CALL_NONE */
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

/* Payload of RETURN: u8 code; u32 count and for each result i32 status, u32 cause, u32 size, bytes. */
void pwi_call_return_encode(enum pwi_call_code code, const struct pwi_call_result *results, uint32_t count,
                            struct pwi_writer *writer);

/* Free the result with pwi_call_return_fini, which accepts a struct of zeros. */
PAWL_MUST_USE pawl_status pwi_call_return_decode(const void *bytes, size_t size, struct pwi_call_return *return_out);
void pwi_call_return_fini(struct pwi_call_return *back);

#endif
