/* pawl: model parameters, shared between machines.
 *
 * This header includes the others, one per noun. Each is the manual of its noun: contract, threads, ownership, errors
 * and lifetimes are stated there and nowhere else.
 *
 *   version.h   which pawl this is
 *   status.h    what every fallible call returns
 *   memory.h    where memory comes from
 *   log.h       what pawl says while it runs
 *   range.h     a range of keys
 */
#ifndef PAWL_PAWL_H
#define PAWL_PAWL_H

#include <pawl/log.h>
#include <pawl/memory.h>
#include <pawl/range.h>
#include <pawl/status.h>
#include <pawl/version.h>

#endif
