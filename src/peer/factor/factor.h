/* The engine of factors (docs/factors.md): a matrix on every member of a peer group, changed by pairs of vectors that
 * members broadcast (SFB, sections 3 and 4). <pawl/factor.h> is the contract for users.
 *
 * An engine is a part of the client's actor and uses one channel, "factor/NAME". It receives commits of other members at
 * any time, and changes the matrix inside of steps only. A step runs partly outside of the actor:
 *
 *   pwi_factor_begin(engine, bytes, size);        a commit; or pwi_factor_begin_open(engine)
 *   for (;;) {
 *     wait until pwi_factor_want(engine) is not PWI_FACTOR_WAIT;
 *     if it is PWI_FACTOR_DONE: status = pwi_factor_end(engine, &report), and leave the loop;
 *     status = pwi_factor_work(engine);           outside of the actor: no other function may be called meanwhile but
 *     pwi_factor_worked(engine, status);          those that the net calls
 *   }
 *
 * Threads: all functions belong to the actor, except for pwi_factor_work.
 */
#ifndef PWI_PEER_FACTOR_FACTOR_H
#define PWI_PEER_FACTOR_FACTOR_H

#include "graph/topology.h"
#include "peer/factor/pairs.h"
#include "peer/factor/prox.h"
#include "peer/peers.h"

struct pwi_factor;

struct pwi_factor_config {
  struct pwi_peers *peers;
  struct pwi_net *net;
  const struct pwi_log *log; /* NULL: that of the peers */
  struct pwi_vector_id group;
  const char *name; /* copied */
  uint64_t life;    /* differs from that of every other engine, and above those that this node had before; not 0 */
  void *matrix;     /* rows x columns values, row by row; borrowed */
  struct factor_shape shape;
  uint32_t part, parts; /* it has the rows of this part only (pwi_factor_rows_of); parts 0: all */
  enum pawl_factor_mode mode;
  uint64_t staleness; /* SSP; 0 in the other modes */
  struct factor_prox prox;
  factor_multiply *multiply; /* NULL: the own one */
  void *multiply_context;
  bool is_complete; /* everyone sends to everyone; otherwise: */
  enum pwi_topology topology;
  uint32_t degree;
  uint64_t seed;
  const struct pwi_graph *file; /* instead of a topology, for as many members as it has nodes; borrowed. NULL: none */
  bool forwards;                /* members pass commits on, so that all receive them */

  void *context;                 /* of the functions below */
  void (*wakes)(void *context);  /* inside the actor: the want has changed */
  void (*closed)(void *context); /* the last callback: pwi_factor_destroy may be called, but not from here */
};

enum pwi_factor_want {
  PWI_FACTOR_OUT,  /* no step */
  PWI_FACTOR_WAIT, /* for others */
  PWI_FACTOR_WORK, /* call pwi_factor_work */
  PWI_FACTOR_DONE, /* call pwi_factor_end */
};

#define PWI_FACTOR_PROBLEM_MAX 256

/* PAWL_INVALID, PAWL_TOO_LARGE, PAWL_OVERFLOW, PAWL_EXISTS, PAWL_NODE_LIMIT, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_factor_create(const struct pwi_factor_config *config, struct pwi_factor **engine_out);

/* Begins to open: the step is over when this member takes part and its matrix is up to date. */
void pwi_factor_begin_open(struct pwi_factor *engine);

/* Begins a flush: the step is over when the matrix has the commits of all members up to the clock of this one. */
void pwi_factor_begin_flush(struct pwi_factor *engine);

/* Begins a commit of these bytes (pairs.h), which are borrowed until the step is over, or goes on with the one that is
 * not over; then the bytes are ignored. */
void pwi_factor_begin(struct pwi_factor *engine, const void *bytes, size_t size);
bool pwi_factor_is_stepping(const struct pwi_factor *engine);
enum pwi_factor_want pwi_factor_want(const struct pwi_factor *engine);
PAWL_MUST_USE pawl_status pwi_factor_work(struct pwi_factor *engine);
void pwi_factor_worked(struct pwi_factor *engine, pawl_status status);

/* The result of the step. Every failure is final. */
PAWL_MUST_USE pawl_status pwi_factor_end(struct pwi_factor *engine, struct pawl_factor_report *report_out);

/* What failed, for people; "" if the status says all. */
const char *pwi_factor_problem(const struct pwi_factor *engine);

/* What the step waits for, such as "waits for node 7"; for a text about a passed deadline. */
void pwi_factor_explain(const struct pwi_factor *engine, char *text, size_t size);
void pwi_factor_state(const struct pwi_factor *engine, struct pawl_factor_state *state_out);

/* Begins to close: delivers commits that others lack, says goodbye, and closes the channel; `closed` is called at the end.
 * With a look after `deadline` it closes at once. Not between pwi_factor_want and pwi_factor_worked. */
void pwi_factor_close(struct pwi_factor *engine, int64_t deadline);
int64_t pwi_factor_look_at(const struct pwi_factor *engine); /* PWI_NET_NEVER: no need to */
void pwi_factor_look(struct pwi_factor *engine, int64_t now);

/* After `closed`, or when the peers are destroyed; regions are closed only in the first case. NULL is allowed. */
void pwi_factor_destroy(struct pwi_factor *engine);

/* The rows of a part: parts differ by one row at most. */
static inline struct pawl_range pwi_factor_rows_of(size_t rows, uint32_t part, uint32_t parts) {
  return parts == 0 ? pawl_range_of(0, rows)
                    : pawl_range_of((uint64_t)rows * part / parts, (uint64_t)rows * (part + 1) / parts);
}

/* A hash of these rows of the matrix, for members that compare theirs. Reads them outside of the actor. The hashes of all
 * parts of a matrix add up to that of the whole. */
uint64_t pwi_factor_matrix_hash(const struct factor_shape *shape, struct pawl_range rows, const void *matrix);

#endif
