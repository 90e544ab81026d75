/* The callee: which calls have been received, which of them run, and what was answered (docs/calls.md).
 *
 * This is the bookkeeping of the receiving side, without network and threads. It is given the payloads of
 * CALL messages, says which function to run, is told its result, and says what to answer.
 *
 * AT MOST ONCE. A caller numbers its calls to this node. Each call says up to which number the caller has its
 * answers, and single later answers can be acknowledged too. The callee remembers every other call. If a call
 * arrives again over a later link while it runs, only the link for its answer changes. If it has run already, it
 * is answered as before. A caller that is no longer live in the membership is forgotten, and its calls are refused, so a
 * forgotten call can never run again.
 *
 * ORDER. A graph is a parent in an order (sync/order.h), and its calls are children of it. Tasks that a
 * function starts become children of its call. The parent finishes when everything below it has finished.
 * Then the answer is made, and kept until the caller has it.
 *
 * The callee calls `run` and `answer` from inside the functions below. `run` may call pwi_callee_end and
 * pwi_callee_issue; `answer` may call pwi_callee_issued_end. Threads: one at a time.
 */
#ifndef PWI_CLIENT_CALLEE_H
#define PWI_CLIENT_CALLEE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "protocol/call.h"
#include "protocol/membership.h"
#include "sync/order.h"

/* Calls of one caller whose answers it has not acknowledged; further calls must wait. */
#define PWI_CALLEE_UNHEARD 1024

struct pwi_callee;

/* A call of a graph while it runs. */
struct pwi_running {
  const struct pwi_call_item *item;
  uint64_t caller;
  void *host; /* for the use of `run` */

  /* Private. */
  uint32_t index;
  struct pwi_callee_graph *incoming;
  struct pwi_ordered_task step;
  struct pwi_task_end end;
  unsigned char *bytes;
  size_t size;
};

/* The payload of a RETURN; valid while `answer` runs. */
struct pwi_callee_answer {
  uint64_t link;   /* over which the call last arrived; 0 for a local call */
  uint64_t number; /* of the call; 0 for a local call */
  void *local;     /* the argument of pwi_callee_call_here, for a local call */
  const void *payload;
  size_t size;
};

/* Until pwi_callee_set_host is called, every call is answered: no such function. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_callee_create(void (*answer)(void *context, const struct pwi_callee_answer *answer),
                                            void *context, struct pwi_callee **callee_out);
void pwi_callee_destroy(struct pwi_callee *callee); /* no more answers; NULL is allowed */
void pwi_callee_set_host(struct pwi_callee *callee, void (*run)(void *context, struct pwi_running *running),
                         void *context);

/* A CALL was received. PAWL_CORRUPT: close the link. Every other call is answered, now or later. */
PAWL_MUST_USE pawl_status pwi_callee_take(struct pwi_callee *callee, uint64_t caller, uint64_t number, uint64_t settled,
                                          uint64_t link, const void *payload, size_t size);

/* A local call. The callee takes over the graph. PAWL_NO_MEMORY: the graph still belongs to the caller. */
PAWL_MUST_USE pawl_status pwi_callee_call_here(struct pwi_callee *callee, uint64_t caller, void *local,
                                               struct pwi_call_graph *graph);

/* The caller has all answers up to `settled` and, if `number` is not 0, the answer to `number`. */
void pwi_callee_heard(struct pwi_callee *callee, uint64_t caller, uint64_t number, uint64_t settled);

/* Forgets callers that are not live. Their calls go on and are not answered. */
void pwi_callee_set_membership(struct pwi_callee *callee, const struct pwi_membership *membership);

/* This client has a new id, and callers number their calls anew: forgets all callers. */
void pwi_callee_renew(struct pwi_callee *callee);

/* Answers for this link wait until the caller sends its call again. */
void pwi_callee_link_down(struct pwi_callee *callee, uint64_t link);

/* Refuses all further calls with PAWL_NODE_STOPPED. */
void pwi_callee_stop(struct pwi_callee *callee);

/* Number of unfinished graphs. */
size_t pwi_callee_open(const struct pwi_callee *callee);

/* A function has returned. `bytes` is its result, allocated with pwi_alloc, or NULL; the callee takes it
 * over. `running` may be invalid afterwards. */
void pwi_callee_end(struct pwi_callee *callee, struct pwi_running *running, pawl_status status, void *bytes,
                    size_t size);

/* A running function has started a task; the task has ended. PAWL_NO_MEMORY: nothing has changed. */
PAWL_MUST_USE pawl_status pwi_callee_issue(struct pwi_callee *callee, struct pwi_running *running,
                                           struct pwi_ordered_task *step_out);
void pwi_callee_issued_end(struct pwi_callee *callee, struct pwi_ordered_task step, pawl_status status);

#endif
