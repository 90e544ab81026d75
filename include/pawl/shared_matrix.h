/* How the workers of a training share its matrix. Used by <pawl/mlr.h>, <pawl/metric.h> and <pawl/sparse_coding.h>, whose
 * models change by sums of products of two vectors (SFB: Xie et al., "Lighter-Communication Distributed Machine Learning
 * via Sufficient Factor Broadcasting", 2016). docs/factors.md explains the ways and the bytes that each takes.
 *
 * Every worker reads all rows. In each step it computes the pairs of its share of the batch, which its rank and the number
 * of workers determine: so the step of all workers together is that of one process with the whole batch.
 *
 * Threads: any, for different structs.
 */
#ifndef PAWL_SHARED_MATRIX_H
#define PAWL_SHARED_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/data.h>
#include <pawl/export.h>
#include <pawl/images.h>
#include <pawl/job.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_MATRIX_ASYNC UINT32_MAX /* staleness: no worker waits for another one */
#define PAWL_MATRIX_GRAPH_MAX 63     /* characters of the name of a graph */
#define PAWL_MATRIX_TEXT 512         /* bytes of an error message */

enum pawl_matrix_way {
  PAWL_MATRIX_FACTORS = 1, /* workers send pairs to one another (<pawl/factor.h>) */
  PAWL_MATRIX_WHOLE = 2,   /* the sum of the pairs goes to servers, and the matrix comes back */
  PAWL_MATRIX_SERVERS = 3, /* the pairs go to servers, which add them up, and the matrix comes back */
};

/* "factors", "matrix" or "servers". */
PAWL_API const char *pawl_matrix_way_name(enum pawl_matrix_way way);

struct pawl_matrix_sharing {
  size_t struct_size;       /* set by pawl_matrix_sharing_init */
  enum pawl_matrix_way way; /* default FACTORS. The sessions of FACTORS are for peers only */
  const char *job;          /* by which workers find the training; default that of the method */
  const char *const *paths; /* of the files, as each worker can open them */
  size_t path_count;
  const struct pawl_data_options *reading; /* of rows; NULL: the files are images */
  enum pawl_images_format image_format;
  uint32_t workers, workers_most; /* least and most of them; 0: 1, and as many as the least */
  enum pawl_on_loss on_loss;
  double drop_slowest; /* see <pawl/job.h> */
  uint32_t staleness;  /* steps by which updates of other workers may be late; 0: all workers make each step together */

  /* FACTORS: who sends to whom, as in <pawl/factor.h>. NULL: everyone to everyone */
  const char *graph;
  bool forward; /* workers pass updates on, so that each reaches every worker once */

  /* Callbacks, with the context of the training's options; each may be NULL. */
  void (*tell)(void *context, const char *line); /* a line of news */
  pawl_status (*start_worker)(void *context);    /* NULL: workers come by themselves */

  /* SERVERS, for costs: the arcs of the cluster, each of which gets the vectors v of every pair (`pawl status` has their
   * number; docs/placement.md). 0: 8, those of one server. */
  uint32_t arcs;
};

PAWL_API void pawl_matrix_sharing_init_sized(struct pawl_matrix_sharing *sharing, size_t struct_size);
static inline void pawl_matrix_sharing_init(struct pawl_matrix_sharing *sharing) {
  pawl_matrix_sharing_init_sized(sharing, sizeof *sharing);
}

/* Returns false, with a message that says what to change, if the options are invalid. */
PAWL_API bool pawl_matrix_sharing_check(const struct pawl_matrix_sharing *sharing, char error[PAWL_MATRIX_TEXT]);

/* --- bytes ------------------------------------------------------------------------------------------------ */

/* Bytes that one step of all workers sends, by a model that counts non-zeros of both sides of the pairs. */
struct pawl_matrix_costs {
  double factors; /* P (P - 1) commits, or one for each edge of the graph */
  double whole;   /* to servers and back: of dense rows 2 P times the matrix; else the rows of it that change */
  double servers; /* pairs to servers, and the matrix or its rows back */
};

/* The way with the fewest bytes. A cost that is NAN does not count. */
PAWL_API enum pawl_matrix_way pawl_matrix_cheapest(const struct pawl_matrix_costs *costs);

/* --- figures ---------------------------------------------------------------------------------------------- */

struct pawl_matrix_worker {
  uint64_t node, pid;
  char host[64];
  uint64_t update_bytes; /* as below */
  double work_s, wait_s;
  uint64_t hash; /* FACTORS: of its matrix after its last round; 0: none */
  bool is_lost;  /* it did not finish */
};

/* What sharing took. */
struct pawl_matrix_shared {
  enum pawl_matrix_way way;
  uint32_t workers, workers_lost; /* that finished, and that were lost */
  uint64_t steps;                 /* of all workers together */
  /* FACTORS: bytes of commits that were sent or shown to other workers. Otherwise bytes between workers and servers. */
  uint64_t update_bytes;
  uint64_t bytes_sent, bytes_received; /* by the sessions of workers, with everything else */
  double work_s, wait_s;               /* of all workers: computing, and waiting for one another */
  bool is_identical; /* FACTORS: after every round all workers had the same bits, as they should without staleness */
  struct pawl_matrix_worker *each; /* in the order in which they came */
  size_t each_count;
};

/* Frees the list. A struct of zeros is fine. */
PAWL_API void pawl_matrix_shared_fini(struct pawl_matrix_shared *shared);

#ifdef __cplusplus
}
#endif

#endif
