/* Sufficient factors: a matrix that is replicated on every member of a peer group and changes by sums of outer products.
 *
 * docs/factors.md explains them.
 */
#ifndef PAWL_FACTOR_H
#define PAWL_FACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>
#include <pawl/vector.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_FACTOR_NAME_MAX 48 /* characters of the name of factors */

/* What is applied to the matrix after every sum of pairs: the proximal operator of step * h (Xie et al., section 2). */
enum pawl_factor_prox {
  PAWL_FACTOR_NO_PROX = 0,
  PAWL_FACTOR_L1 = 1,           /* h = weight * sum |w| */
  PAWL_FACTOR_L2 = 2,           /* h = weight/2 * sum w^2 */
  PAWL_FACTOR_ELASTIC_NET = 3,  /* h = weight * sum |w| + weight2/2 * sum w^2 */
  PAWL_FACTOR_NONNEGATIVE = 4,  /* h = 0 if no value is negative, else infinite */
  PAWL_FACTOR_UNIT_COLUMNS = 5, /* h = 0 if no column has a norm above 1, else infinite */
  PAWL_FACTOR_TRACE_NORM = 6,   /* h = weight * sum of the singular values */
  PAWL_FACTOR_CALL = 7,         /* a function of the program */
};

/* How the values of pairs are sent. All members use the narrowed values, the one that committed them included. */
enum pawl_factor_narrow {
  PAWL_FACTOR_WHOLE = 0, /* as they are */
  PAWL_FACTOR_F32 = 1,
  PAWL_FACTOR_F16 = 2,  /* up to 65504, with 11 bits */
  PAWL_FACTOR_BF16 = 3, /* the range of float, with 8 bits */
};

enum pawl_factor_mode {
  PAWL_FACTOR_BSP = 0,   /* a commit returns when the matrix has the commits of all members up to the same clock */
  PAWL_FACTOR_SSP = 1,   /* commits of other members may be missing, but only the last `staleness` */
  PAWL_FACTOR_ASYNC = 2, /* a commit waits for nobody */
};

/* What a commit did. */
struct pawl_factor_report {
  uint64_t clock;     /* commits of this member, counted from where it joined */
  uint32_t members;   /* that take part */
  uint64_t commits;   /* that were applied, the own one included */
  uint64_t bytes;     /* of the own one */
  uint64_t staleness; /* the most that a member whose commits this one receives is behind `clock` in the matrix */
  int64_t waited_ns;
};

/* What this member knows at present. */
struct pawl_factor_state {
  uint64_t clock;
  uint64_t number;     /* of the group, at which the present members agreed */
  uint32_t rank, size; /* among the members that take part, by node id; and how many these are */
  uint64_t kept;       /* bytes of commits that some member may still need */
  uint64_t sent;       /* bytes of commits sent to members on other hosts or passed on, since open */
  uint64_t shown;      /* bytes of commits that members on this host read in place, once for each */
  uint64_t agreements; /* times that members agreed on who takes part, the first one included */
};

/* One side of a pair. The values have the type of the matrix. */
struct pawl_factor_vector {
  const void *values;
  const uint32_t *indices; /* of each value, rising; NULL: the vector is dense */
  size_t count;            /* of values; dense: all rows, or all columns */
};

#ifdef __cplusplus
}
#endif

#endif
