/* pawl: model parameters, shared between machines.
 *
 * This header includes the others, one per noun. Each is the manual of its noun: contract, threads, ownership, errors
 * and lifetimes are stated there and nowhere else.
 *
 *   session.h   a process' membership in a cluster: begin here
 *   vector.h    named rows of numbers: push and pull
 *   linear.h    and linear algebra with them, on the servers
 *   task.h      calls that are under way
 *   group.h     processes that advance together
 *   sketch.h    counts of very many things
 *   policy.h    iterations, and how far apart they may be
 *   call.h      functions of one node that others call
 *   filter.h    what happens to rows on their way
 *   data.h      labelled rows, and documents, read from files
 *   words.h     vocabularies
 *   lda.h       topic models
 *   job.h       a scheduler and its workers
 *   range.h     a range of keys
 *   status.h    what every fallible call returns
 *   log.h       what pawl says while it runs
 *   memory.h    where memory comes from
 *   version.h   which pawl this is
 *
 * Not included is function.h, which is for those who write functions that servers run.
 *
 * A complete program, which needs no cluster (examples/hello.c):
 *
 *   struct pawl_session *session;
 *   struct pawl_vector *vector;
 *   uint64_t keys[] = {3, 5, 8};
 *   float values[] = {1, 2, 3};
 *   pawl_session_open(NULL, &session);
 *   pawl_vector_ensure(session, "demo/w", NULL, PAWL_SECOND, &vector);
 *   pawl_vector_push(vector, pawl_at_keys(keys, 3), values, NULL);
 *   pawl_session_close(session, PAWL_FOREVER);
 */
#ifndef PAWL_PAWL_H
#define PAWL_PAWL_H

#include <pawl/call.h>
#include <pawl/checkpoint.h>
#include <pawl/data.h>
#include <pawl/words.h>
#include <pawl/filter.h>
#include <pawl/group.h>
#include <pawl/job.h>
#include <pawl/lda.h>
#include <pawl/linear.h>
#include <pawl/log.h>
#include <pawl/memory.h>
#include <pawl/policy.h>
#include <pawl/range.h>
#include <pawl/session.h>
#include <pawl/sketch.h>
#include <pawl/status.h>
#include <pawl/task.h>
#include <pawl/vector.h>
#include <pawl/version.h>

#endif
