/* Sufficient factors: a matrix that every member of a peer group holds, and that changes by sums of outer products, without
 * servers (SFB: Xie et al., "Lighter-Communication Distributed Machine Learning via Sufficient Factor Broadcasting",
 * 2016). docs/factors.md explains them.
 *
 * The gradient of many models with a matrix of J x D values is, for one row of the data, a product u v' of two vectors: in
 * logistic regression of J classes, u is the error of each class and v the row. Members send the vectors instead of the
 * product: J + D values, or only those that are not 0, instead of J D.
 *
 *   pawl_factor_options_init(&options);
 *   status = pawl_factor_open(peers, "weights", w, classes, features, PAWL_F32, &options, PAWL_FOREVER, &factor);
 *   while (!status && report.clock < 1000) {
 *     for (each row x of a batch of K rows) {
 *       compute(w, x, error);
 *       status = pawl_factor_add(factor, &error, &x);
 *     }
 *     status = pawl_factor_commit(factor, -rate / (K * members), rate, PAWL_FOREVER, &report);
 *   }
 *   pawl_factor_close(factor);
 *
 * COMMITS. A commit is the pairs that were added since the last one, and a scale: the matrix becomes
 * W + scale * (sum of u v'), and then the proximal operator of step * h is applied to it. All members apply the commits of
 * all others to their own matrix, inside pawl_factor_commit only. The clock of a member is the number of its commits.
 *
 * MODES. A member with c commits never has a commit of another beyond its c-th (the paper's equation 4).
 * BSP: pawl_factor_commit returns when the matrix has commit c of every member. All members then have the same bits, if
 * they use the same multiplication and step: commits are applied by number, then by node id, and pairs in their order.
 * SSP: it returns when the matrix has all commits of every member up to c - staleness. ASYNC: it waits for no other
 * member, and applies whatever has arrived, whatever its number.
 *
 * GRAPH. By default every member sends to all. With a graph it sends to its out-neighbours only, and then waits only for
 * its in-neighbours. Without `forward`, the others never get its commits: the matrices of members differ, and the program
 * must tolerate that. With `forward`, members pass commits on, so that each reaches every member once. In a graph of
 * diameter L the matrix then lacks at most s L + L - 1 commits of any member, where s is the staleness: each member on the
 * path may be s behind the one before, and its own commit is one more.
 *
 * EXACTLY ONCE. A commit counts at all surviving members or at none. When a member is lost, the others agree which of its
 * commits count: all that any of them has received. A member that lacks some gets them from another. This holds as far as
 * the graph delivers its commits at all.
 *
 * MEMBERSHIP. Members that begin together have the same matrix: if their matrices differ, all take that of the one with
 * the lowest node id. A member that joins later takes the matrix and the clock of a member that is there; it waits in
 * pawl_factor_open. All members agree on who takes part before the next commit is begun, so that each of them must be
 * alive; it need not be in a call. A member of the group that has not opened the factors is waited for at the begin, and
 * ignored later. If the last member that has the whole matrix is lost while others are taking it over, they fail with
 * PAWL_NODE_GONE.
 *
 * PARTS. A matrix that is larger than the memory of one member is divided: with options.parts, the rows are as many ranges,
 * and each member has the rows of options.part (pawl_factor_part). Pairs are those of the whole matrix, and every member
 * changes its rows by all of them. Members with the same part have the same rows, and a member that joins takes them from
 * one of these. When the last member with some rows is gone, they are lost: from then on a commit fails with PAWL_NODE_GONE
 * at all others, and names the rows; a flush and the end still deliver what was committed. So two members for each part
 * survive the loss of any one. Operators that look at all rows, UNIT_COLUMNS and TRACE_NORM, need the whole matrix;
 * prox_call and multiply get the rows that are here.
 *
 * MEMORY. The matrix is borrowed from open to close. It changes only inside pawl_factor_open, pawl_factor_commit and
 * pawl_factor_flush; between them the program reads it, and must not write it. Members keep commits until all others
 * have confirmed them. A member on the same host reads a commit where it is. A member that has 32 + staleness commits, or
 * 64 MB of more than 2 + staleness, that others have not confirmed waits before the next one, also in ASYNC mode. Commits
 * to other hosts are cut into pieces of 64 KB. Besides, the library allocates 32 vectors of each side, or 128 if these
 * take at most 8 MB, and for the trace norm a copy of the matrix in doubles.
 *
 * TIME LIMITS. After PAWL_TIMED_OUT a commit is not over: call pawl_factor_commit again to go on, with any scale and step,
 * which are ignored then. No pairs can be added meanwhile.
 *
 * LOSS. Only the manager removes members: at once if the process has ended, after --client-grace if it is silent. Until
 * then the others wait, up to their time limits.
 *
 * THREADS. One thread at a time may use factors, except for pawl_factor_state, which any thread may call.
 *
 * ERRORS. pawl_error_text has the details of the last failure of this thread. A failure of open, commit or flush other
 * than PAWL_TIMED_OUT, PAWL_INVALID, PAWL_DIVERGED and PAWL_OVERFLOW is final: close the factors. The other members go on
 * when it has closed them.
 *   PAWL_INVALID      an argument is malformed; nothing happened
 *   PAWL_MISMATCH     members have opened it with other sizes or options; pawl_error_text names one
 *   PAWL_DIVERGED     a value is NaN or infinite, or scale times a product is too large; nothing was sent
 *   PAWL_OVERFLOW     a value is too large to be narrowed; nothing was sent
 *   PAWL_NODE_GONE    this session was declared dead, or has left the group; or see MEMBERSHIP
 *   PAWL_CORRUPT      a member sent a malformed commit; pawl_error_text names it. The matrix is as before that commit, unless
 *                     the member changed it while it was read
 *   PAWL_TIMED_OUT, PAWL_NO_MEMORY, PAWL_NODE_STOPPED, PAWL_LINK_REVOKED
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
  PAWL_FACTOR_ASYNC = 2, /* a commit waits for no other member */
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

struct pawl_peers;
struct pawl_factor;

struct pawl_factor_options {
  size_t struct_size; /* set by pawl_factor_options_init */
  enum pawl_factor_mode mode;
  uint64_t staleness; /* SSP: 1 or more */

  enum pawl_factor_prox prox;
  double weight, weight2; /* of the operator; not negative */
  /* PAWL_FACTOR_CALL: changes the matrix. Any status but PAWL_OK is final. All members must compute the same bits. */
  pawl_status (*prox_call)(void *context, void *matrix, size_t rows, size_t columns, double step);

  enum pawl_factor_narrow narrow;

  /* A topology as `pawl graph list` prints it, or the path of a file, which has a slash or a dot, such as one that `pawl graph
   * optimise --save` writes. NULL or "complete": every member sends to all. A graph that does not exist for the number of
   * members gives way to the complete one. */
  const char *graph;
  uint32_t degree; /* of a random graph; 0: the default */
  uint64_t seed;   /* of a random graph; default 1 */
  bool forward;    /* see GRAPH */

  /* matrix += sum of u v': `u` has pairs x rows values, `v` pairs x columns, row by row, in the type of the matrix; such
   * as cblas_sgemm. NULL: the library's own, which gives the same bits on every machine. */
  void (*multiply)(void *context, size_t rows, size_t columns, size_t pairs, const void *u, const void *v,
                   void *matrix);
  void *context; /* of the functions above */

  /* Rows that this member has: see PARTS. 0 parts, the default: all. */
  uint32_t part, parts;
};

#define PAWL_FACTOR_PARTS_MAX 65536

/* The rows of a part: [*begin_out, *end_out). Parts differ by one row at most. */
static inline void pawl_factor_part(size_t rows, uint32_t part, uint32_t parts, size_t *begin_out, size_t *end_out) {
  *begin_out = parts == 0 ? 0 : (size_t)((uint64_t)rows * part / parts);
  *end_out = parts == 0 ? rows : (size_t)((uint64_t)rows * (part + 1) / parts);
}

/* Sets struct_size and the defaults. */
PAWL_API void pawl_factor_options_init_sized(struct pawl_factor_options *options, size_t struct_size);
static inline void pawl_factor_options_init(struct pawl_factor_options *options) {
  pawl_factor_options_init_sized(options, sizeof *options);
}

/* Opens factors of a peer group. All members use the same name (letters, digits, '.', '_' and '-'), sizes, type and
 * options, except for the functions and the part. The matrix has rows x columns values of PAWL_F32 or PAWL_F64, row by row; of
 * rows that this member does not have it has none. Waits until
 * this member takes part, and its matrix is that of the others.
 *
 * PAWL_EXISTS       this session has factors of that name open in the group
 * PAWL_UNSUPPORTED  the type is neither PAWL_F32 nor PAWL_F64, or the operator needs the whole matrix
 * PAWL_TOO_LARGE, PAWL_OVERFLOW, PAWL_NODE_LIMIT; and see ERRORS */
PAWL_API PAWL_MUST_USE pawl_status pawl_factor_open(struct pawl_peers *peers, const char *name, void *matrix,
                                                    size_t rows, size_t columns, enum pawl_type type,
                                                    const struct pawl_factor_options *options, int64_t timeout_ns,
                                                    struct pawl_factor **factor_out);

/* Adds a pair to the next commit. The vectors are copied. Sends nothing and does not wait.
 * PAWL_INVALID, PAWL_DIVERGED, PAWL_OVERFLOW, PAWL_TOO_LARGE, PAWL_NO_MEMORY: the pair was not added. */
PAWL_API PAWL_MUST_USE pawl_status pawl_factor_add(struct pawl_factor *factor, const struct pawl_factor_vector *u,
                                                   const struct pawl_factor_vector *v);

/* Adds an update of rank `rank`: as many pairs, of dense vectors. `u` has rank x rows values, `v` rank x columns, row by
 * row. As pawl_factor_add; either all of the pairs are added or none. */
PAWL_API PAWL_MUST_USE pawl_status pawl_factor_add_rank(struct pawl_factor *factor, size_t rank, const void *u,
                                                        const void *v);

/* Drops the pairs that were added since the last commit. */
PAWL_API void pawl_factor_discard(struct pawl_factor *factor);

/* Commits the pairs that were added, which may be none, and changes the matrix as the mode says. `step` is that of the
 * proximal operator; in BSP all members give the same. `report_out` may be NULL. */
PAWL_API PAWL_MUST_USE pawl_status pawl_factor_commit(struct pawl_factor *factor, double scale, double step,
                                                      int64_t timeout_ns, struct pawl_factor_report *report_out);

/* Waits until the matrix has all commits of all members up to the clock of this one; for the end of a run in SSP and ASYNC.
 * Members that have stopped at an earlier clock never get there, so that all call this at the same one. */
PAWL_API PAWL_MUST_USE pawl_status pawl_factor_flush(struct pawl_factor *factor, int64_t timeout_ns,
                                                     struct pawl_factor_report *report_out);

/* A hash of the rows that are here, by which members can compare theirs. The hashes of all parts add up, as integers of 64
 * bits, to that of the whole matrix. PAWL_DIVERGED: they contain NaN or an infinity. */
PAWL_API PAWL_MUST_USE pawl_status pawl_factor_hash(const struct pawl_factor *factor, uint64_t *hash_out);

/* Never fails, sends nothing and does not wait. */
PAWL_API void pawl_factor_state(const struct pawl_factor *factor, struct pawl_factor_state *state_out);

/* Delivers commits that others lack, for at most two seconds, and frees the factors. The matrix stays as it is. Call it
 * before pawl_peers_leave. NULL is allowed. */
PAWL_API void pawl_factor_close(struct pawl_factor *factor);

#ifdef __cplusplus
}
#endif

#endif
