/* The one who is called: which calls have come, what of them runs, and what was answered (docs/calls.md).
 *
 * This is the callee without its network and without its threads: it is handed the payloads of CALL messages, says which function
 * is to be run, is told how that ended, and says what to answer.
 *
 * AT MOST ONCE. A caller numbers its calls to us, and says with each up to which number it has its answers, and of some later
 * ones that it has these too. Everything else is remembered: one that comes again while it runs changes nothing but the link that the answer goes to, and one that has run is
 * answered as before. Callers are forgotten when they are not live on the membership any more, and nobody who is not is listened to:
 * so nothing that was forgotten can come back.
 *
 * ORDER. A graph is a parent in an order (sync/order.h) and its calls are children of it. What a function starts is added below its
 * call. The parent has finished when everything below it has, and then the answer is made, and kept until the caller has it.
 *
 * `run` and `answer` are called from inside the functions here. From inside `run`, pwi_callee_end and pwi_callee_issue may be
 * called; from inside `answer`, pwi_callee_issued_end. Threads: one at a time.
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

#define PWI_CALLEE_UNHEARD                                                                                             \
  1024 /* calls of one caller of which it has not said that it has the answer; others come later */

struct pwi_callee;

/* A call of a graph that is being run. */
struct pwi_running {
  const struct pwi_call_item *item;
  uint64_t caller;
  void *host; /* free for whoever runs it */

  /* Private. */
  uint32_t index;
  struct pwi_incoming *incoming;
  struct pwi_step step;
  struct pwi_step_end end;
  unsigned char *bytes;
  size_t size;
};

/* The payload of a RETURN, valid during the call. */
struct pwi_callee_answer {
  uint64_t link;   /* that the call came over last */
  uint64_t number; /* of the call; both 0 for one of our own: */
  void *local;     /* what was given with it */
  const void *payload;
  size_t size;
};

/* Until it is told who runs functions it has none, and says so. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_callee_create(void (*answer)(void *context, const struct pwi_callee_answer *answer),
                                            void *context, struct pwi_callee **callee_out);
void pwi_callee_destroy(struct pwi_callee *callee); /* nothing is answered any more; NULL is fine */
void pwi_callee_set_host(struct pwi_callee *callee, void (*run)(void *context, struct pwi_running *running),
                         void *context);

/* A CALL has come. PAWL_CORRUPT: the link should be closed. All else is answered, at once or later. */
PAWL_MUST_USE pawl_status pwi_callee_take(struct pwi_callee *callee, uint64_t caller, uint64_t number, uint64_t settled,
                                          uint64_t link, const void *payload, size_t size);

/* A call of our own. The graph is taken. PAWL_NO_MEMORY: it is still the caller's, and nothing has happened. */
PAWL_MUST_USE pawl_status pwi_callee_call_here(struct pwi_callee *callee, uint64_t caller, void *local,
                                               struct pwi_call_graph *graph);

/* The caller has all answers up to `settled`, and that to `number`, unless it is 0. */
void pwi_callee_heard(struct pwi_callee *callee, uint64_t caller, uint64_t number, uint64_t settled);

/* Callers that are not live are forgotten; what they called goes on, and nobody is told. */
void pwi_callee_set_membership(struct pwi_callee *callee, const struct pwi_membership *membership);

/* We are somebody new, and all numbers begin anew: everybody is forgotten. */
void pwi_callee_renew(struct pwi_callee *callee);

/* Answers that would go there wait until they are asked for again. */
void pwi_callee_link_down(struct pwi_callee *callee, uint64_t link);

/* From now on new calls are refused with PAWL_NODE_STOPPED. */
void pwi_callee_stop(struct pwi_callee *callee);

/* Graphs that have not finished. */
size_t pwi_callee_open(const struct pwi_callee *callee);

/* The function has returned, and this is its result, which was allocated with pwi_alloc and is taken; it may be NULL. After it
 * `running` may be gone. */
void pwi_callee_end(struct pwi_callee *callee, struct pwi_running *running, pawl_status status, void *bytes,
                    size_t size);

/* Something was started on behalf of it, and has ended. PAWL_NO_MEMORY: nothing has happened. */
PAWL_MUST_USE pawl_status pwi_callee_issue(struct pwi_callee *callee, struct pwi_running *running,
                                           struct pwi_step *step_out);
void pwi_callee_issued_end(struct pwi_callee *callee, struct pwi_step step, pawl_status status);

#endif
