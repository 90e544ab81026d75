/* Training by workers that share a matrix: messages between the scheduler (scheduler.c) and workers (worker.c), and the ways
 * to share.
 *
 *   factors.c   pairs from worker to worker; each has the whole matrix;
 *   whole.c     the sum of a worker's pairs to servers, and rows of the matrix back;
 *   pairs.c     the same, but the pairs go to servers, which add them up.
 *
 * A round of the job makes some steps. It takes about a second, so that workers can come and go, and the training can be
 * interrupted. A worker receives a *spec* when it joins, and an *order* in each round; it returns a *reply*, or bytes of
 * its matrix. An order has the *serial* of the factors to use: when workers have come or gone, or the scheduler has handed
 * out a matrix, a new serial begins, for which all workers open factors anew.
 */
#ifndef SHARED_MATRIX_INSIDE_H
#define SHARED_MATRIX_INSIDE_H

#include "apps/common/shared_matrix/share.h"

#define MATRIX_TIMEOUT (60 * PAWL_SECOND) /* for vectors, jobs and factors that should exist */
#define MATRIX_LOOK PAWL_SECOND           /* between two checks whether the job has ended */
#define MATRIX_GIVEN ((uint64_t)2 << 20)  /* bytes of a matrix in one message */

enum matrix_do {
  MATRIX_MEET = 1,  /* reply with the number of the peer group */
  MATRIX_TAKE = 2,  /* bytes of the matrix, or of its extra values */
  MATRIX_STEPS = 3, /* make steps */
  MATRIX_GIVE = 4,  /* the worker with this node id reports bytes of its matrix */
  MATRIX_CLEAR = 5, /* the matrix becomes 0 */
};

struct matrix_order {
  enum matrix_do what;
  uint64_t serial;
  uint64_t number;      /* of the peer group that all workers know */
  uint64_t step, count; /* STEPS: the first, and how many */
  uint64_t phase;       /* for the learner */
  double factor;        /* WHOLE: of the matrix at the first step */
  uint64_t node;        /* GIVE */
  uint64_t begin, end;  /* TAKE, GIVE: of the bytes */
  const void *bytes;    /* TAKE; in the order that was read */
  size_t size;
};

struct matrix_reply {
  uint64_t number;   /* MEET: of the peer group */
  uint64_t done;     /* steps of this round */
  uint64_t diverged; /* the first step whose pairs are not finite, from 1; 0: none */
  double factor;
  double report; /* of the learner */
  uint64_t hash; /* FACTORS: of the matrix */
  double waited_s, worked_s;
  uint64_t update_bytes;               /* of this round */
  uint64_t bytes_sent, bytes_received; /* of the session so far */
};

/* The caller frees specs with apps_json_free, and orders and replies with apps_free. NULL without memory. Readers return
 * false for a message that is incomplete or invalid, or without memory. */
char *matrix_spec_write(const struct matrix_spec *spec);
bool matrix_spec_read(const void *bytes, size_t size, struct matrix_spec *spec_out);
void matrix_spec_fini(struct matrix_spec *spec);
char *matrix_order_write(const struct matrix_order *order, size_t *size_out);
bool matrix_order_read(const void *bytes, size_t size, struct matrix_order *order_out);
char *matrix_reply_write(const struct matrix_reply *reply);
bool matrix_reply_read(const void *bytes, size_t size, struct matrix_reply *reply_out);

/* The vector on the servers: a key for each row of the matrix. */
void matrix_vector_name(const struct matrix_spec *spec, char name[PAWL_NAME_MAX + 1]);

/* --- ways ------------------------------------------------------------------------------------------------- */

struct matrix_way {
  /* A round begins. FACTORS: `*is_late_out`, the others had begun before this worker came. */
  pawl_status (*open)(struct matrix_share *share, const struct matrix_order *order, bool *is_late_out);
  pawl_status (*need)(struct matrix_share *share, const uint64_t *rows, size_t count);
  pawl_status (*add)(struct matrix_share *share, const struct pawl_factor_vector *u,
                     const struct pawl_factor_vector *v);
  pawl_status (*commit)(struct matrix_share *share, double scale);
  /* All steps are made: waits until the matrix has those of all workers. */
  pawl_status (*finish)(struct matrix_share *share);
  /* This worker makes `left` steps of the round no more: others must not wait for it. */
  void (*quit)(struct matrix_share *share, uint64_t left);
  void (*close)(struct matrix_share *share); /* may be called twice */
};

extern const struct matrix_way matrix_factors, matrix_whole;

struct matrix_factors_state {
  struct pawl_factor *factor; /* NULL: not open */
  uint64_t serial;
  uint64_t counted; /* bytes of this factor that were reported */
};

struct matrix_whole_state {
  struct pawl_vector *vector;
  struct pawl_iterations *iterations; /* SSP, for a round */
  void *change, *pulled;              /* memory shared with servers on this machine */
  size_t room;                        /* rows of both */
  const uint64_t *rows;               /* of this step; NULL: all */
  size_t count;
  bool sends_pairs;                      /* SERVERS: `values` go up in place of `change` */
  unsigned char *values;                 /* for each row, its values of u */
  size_t values_room;                    /* bytes */
  bool is_begun;                         /* a step */
  bool is_fresh;                         /* dense: the matrix is that of the last step */
  unsigned char *u, *v;                  /* dense: pairs of this step */
  size_t pairs, u_room, v_room;          /* bytes of room */
  uint64_t sent_before, received_before; /* bytes of the session at the begin of the round */
};

/* Of pairs.c, for SERVERS. The first keeps a pair until the commit. PAWL_INVALID: a row was not announced. The second
 * says what to push, besides the rows: at least one pair, which may be zeros. */
PAWL_MUST_USE pawl_status matrix_pairs_add(struct matrix_share *share, const struct pawl_factor_vector *u,
                                           const struct pawl_factor_vector *v);
PAWL_MUST_USE pawl_status matrix_pairs_ready(struct matrix_share *share, double scale, struct pawl_where *where);

struct matrix_share {
  const struct matrix_way *way;
  const struct matrix_spec *spec;
  struct pawl_worker *worker;
  struct pawl_session *session;
  struct matrix_place place;
  char *error;         /* APPS_TEXT_MAX bytes: the reason of a failure; "": none given */
  uint32_t rank, size; /* among those that make the next step */
  uint64_t phase;
  uint64_t hash, update_bytes; /* of this round */
  double waited_s;
  struct matrix_factors_state factors;
  struct matrix_whole_state whole;
};

#endif
