/* pawl: model parameters, shared between machines.
 *
 * This header includes the others, one per topic. Each header is the manual of its topic and documents
 * contracts, threads, ownership, errors and lifetimes.
 *
 *   session.h   the membership of a process in a cluster: begin here
 *   vector.h    named rows of numbers: push and pull
 *   linear.h    linear algebra on the servers
 *   task.h      calls in progress
 *   group.h     sets of processes that advance together
 *   peer.h      sets of processes that share parameters without servers
 *   item.h      versioned values that these share, with bounded staleness
 *   sketch.h    approximate counts of a very large number of items
 *   policy.h    iterations under a consistency policy
 *   call.h      functions that one node offers and others call
 *   filter.h    transformations of rows in transit
 *   checkpoint.h  vectors saved to disk, and loaded again
 *   data.h      labelled rows, and documents, read from files
 *   words.h     vocabularies
 *   images.h    labelled images, read from files
 *   ratings.h   ratings of items by users, read from files
 *   job.h       a scheduler and its workers
 *   range.h     a range of keys
 *   status.h    the status that every fallible call returns
 *   log.h       logging
 *   memory.h    the memory allocator
 *   version.h   the version of pawl
 *
 * These headers are not included: function.h is for authors of server functions; lapser.h is for programs that were
 * written for Lapser; linear_model.h, linear models, lda.h, topic models, cnn.h, convolutional nets, bpmf.h, factorised
 * ratings, mlr.h, several classes, sparse_coding.h, dictionaries, and metric.h, distances, are learning methods built on
 * the rest.
 *
 * OPTION STRUCTS begin with their size, which their init function sets: call it first, then set the options that
 * differ. So a program works with a later library whose structs have grown at the end. A struct that was not
 * initialised is PAWL_INVALID, and so is an option that only a later library knows.
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
#include <pawl/collective.h>
#include <pawl/data.h>
#include <pawl/words.h>
#include <pawl/destination.h>
#include <pawl/factor.h>
#include <pawl/filter.h>
#include <pawl/group.h>
#include <pawl/images.h>
#include <pawl/item.h>
#include <pawl/job.h>
#include <pawl/linear.h>
#include <pawl/log.h>
#include <pawl/matrix.h>
#include <pawl/memory.h>
#include <pawl/peer.h>
#include <pawl/policy.h>
#include <pawl/range.h>
#include <pawl/ratings.h>
#include <pawl/reduce.h>
#include <pawl/session.h>
#include <pawl/sketch.h>
#include <pawl/status.h>
#include <pawl/task.h>
#include <pawl/vector.h>
#include <pawl/version.h>

#endif
