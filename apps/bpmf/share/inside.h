/* Training by the workers of a job: the messages between the scheduler (train.c) and the workers (worker.c), and the
 * worker.
 *
 * Every worker reads all ratings, and draws the rows of its part: some blocks of users and some of items (part.c). It
 * needs the rows of the other side that its ratings name, and the sums of all blocks, from which every worker draws the same
 * hyper-parameters. How rows and sums come to it is a *link*:
 *
 *   items.c     items with slack, from worker to worker;
 *   servers.c   vectors on the servers.
 *
 * A round of the job makes some iterations. A worker receives a *spec* when it joins, and an *order* in each round. It
 * returns a *reply* with the errors of its users' ratings in each iteration, or a *gift*: a piece of its rows or of its
 * sums of predictions. The scheduler asks for those when a sample is kept, and every few iterations for the *saved
 * state*. When workers have come or gone, all begin a new *era* with the saved state: they divide the blocks anew and open
 * new links.
 */
#ifndef BPMF_SHARE_INSIDE_H
#define BPMF_SHARE_INSIDE_H

#include <stdatomic.h>

#include <pawl/job.h>
#include <pawl/pawl.h>

#include "apps/bpmf/measure.h"
#include "apps/common/model_file.h"

#define BPMF_TIMEOUT (60 * PAWL_SECOND) /* for vectors, jobs and items that should exist */
#define BPMF_LOOK PAWL_SECOND           /* between two checks whether the job has ended */
#define BPMF_GIVEN ((size_t)2 << 20)    /* bytes of one gift, or of one piece of the saved state */

struct bpmf_share_spec {
  char job[64]; /* also the space of the vectors */
  enum pawl_bpmf_share share;
  char **paths, **test_paths;
  size_t path_count, test_path_count;
  struct pawl_ratings_options reading;
  double test_share;
  uint64_t seed, burn_in;
  uint32_t rank, threads;
  double alpha; /* of the sampler */
  bool no_train_rmse;
  uint64_t digest; /* of the ratings, as the scheduler sees them */
  enum pawl_items_variant variant;
  uint32_t slack;
};

void bpmf_share_spec_fini(struct bpmf_share_spec *spec);

enum bpmf_do {
  BPMF_MEET = 1,    /* reply with the number of the peer group */
  BPMF_TAKE = 2,    /* a piece of the saved state */
  BPMF_ITERATE = 3, /* make iterations */
  BPMF_GIVE = 4,    /* give a piece of a section */
};

/* Sections of the state: arrays of which a worker has one part each. */
enum bpmf_section {
  BPMF_SECTION_USERS = 0, /* rows, `rank` floats each */
  BPMF_SECTION_ITEMS = 1,
  BPMF_SECTION_TESTS = 2,    /* sums of predictions, a double for each rating */
  BPMF_SECTION_TRAINING = 3, /* by user */
  BPMF_SECTIONS = 4,
};

struct bpmf_order {
  enum bpmf_do what;
  uint64_t era;       /* a worker that does not know this era enters it if `is_new`, and else does nothing */
  bool is_new;        /* this era has not made any iteration yet */
  uint64_t number;    /* of the peer group that all workers know: links wait for it */
  uint64_t iteration; /* the one before the first, */
  uint64_t measured;  /* and its number of samples */
  uint32_t count;     /* ITERATE: iterations */
  enum bpmf_section section;
  uint64_t begin;    /* TAKE: of the piece in the section. GIVE: of the piece in the worker's part of it */
  const void *bytes; /* TAKE: the elements; in the order that was read */
  size_t size;
};

struct bpmf_reply {
  uint64_t number;                     /* MEET: of the peer group */
  uint32_t done;                       /* iterations */
  uint64_t diverged;                   /* the iteration whose numbers became too large; 0: none */
  size_t first, end;                   /* blocks of users of this worker */
  double waited_s, worked_s;           /* of this round */
  uint64_t bytes_sent, bytes_received; /* of the session so far */
  double *figures;                     /* see bpmf_reply_figures */
};

/* A spec is a JSON text, which the caller frees with apps_json_free. Orders and replies are JSON, a 0, and perhaps bytes;
 * the caller frees them with apps_free. NULL without memory. */
char *bpmf_share_spec_write(const struct bpmf_share_spec *spec);
char *bpmf_order_write(const struct bpmf_order *order, size_t *size_out);
char *bpmf_reply_write(const struct bpmf_reply *reply, size_t *size_out);

/* False: the message is incomplete or invalid, or there is no memory. `order_out->bytes` points into the message;
 * `reply_out->figures` is a copy, which the caller frees with apps_free. */
bool bpmf_share_spec_read(const void *bytes, size_t size, struct bpmf_share_spec *spec_out);
bool bpmf_order_read(const void *bytes, size_t size, struct bpmf_order *order_out);
bool bpmf_reply_read(const void *bytes, size_t size, struct bpmf_reply *reply_out);

/* Doubles of a reply: for each iteration its seconds, and then for each of the blocks [first, end) the errors of test
 * ratings and of training ratings, two each. */
#define BPMF_ERRORS 4
static inline size_t bpmf_reply_figures(const struct bpmf_reply *reply) {
  return reply->done * (1 + BPMF_ERRORS * (reply->end - reply->first));
}

/* The elements of a section, and the bytes of one of them. */
uint64_t bpmf_section_count(const struct bpmf_sampler *sampler, enum bpmf_section section, bool no_train_rmse);
size_t bpmf_section_width(const struct bpmf_sampler *sampler, enum bpmf_section section);

/* --- parts ------------------------------------------------------------------------------------------------ */

/* Rows that a worker reads and does not draw, as ranges. */
struct bpmf_needs {
  struct pawl_items_keys *ranges;
  size_t count;
  uint64_t rows;
};

struct bpmf_part {
  size_t first[BPMF_SIDES], end[BPMF_SIDES]; /* blocks; a worker may have none of a side */
  struct bpmf_needs needs[BPMF_SIDES];
};

/* The blocks of one of `count` workers, such that all have about the same work. Depends on the ratings only. */
void bpmf_part_divide(const struct bpmf_sampler *sampler, int side, uint32_t rank, uint32_t count, size_t *first_out,
                      size_t *end_out);

/* False: out of memory. Call fini all the same. */
bool bpmf_part_init(struct bpmf_part *part, const struct bpmf_sampler *sampler, uint32_t rank, uint32_t count);
void bpmf_part_fini(struct bpmf_part *part);

/* --- the worker ------------------------------------------------------------------------------------------- */

struct bpmf_worker;

/* How rows and sums come from worker to worker. The clock of a version is its iteration. PAWL_NODE_GONE: a worker is lost,
 * and the era is over. */
struct bpmf_link {
  /* A round with iterations begins. */
  void (*begin)(struct bpmf_worker *worker);
  /* Publishes the rows of the present iteration. */
  pawl_status (*open)(struct bpmf_worker *worker);
  /* Publishes rows and sums of a block that was drawn. Threads that draw call it. */
  void (*put)(struct bpmf_worker *worker, int side, size_t block);
  /* Called when all blocks of a side have been put. */
  pawl_status (*flush)(struct bpmf_worker *worker, int side);
  /* Gets the rows of other workers, of the present iteration or older ones within the slack. */
  pawl_status (*rows)(struct bpmf_worker *worker, int side);
  /* Gets the sums of the blocks of other workers of an iteration. */
  pawl_status (*sums)(struct bpmf_worker *worker, int side, uint64_t clock);
  /* The order failed in this worker: others must not wait for it. */
  void (*fail)(struct bpmf_worker *worker);
  void (*close)(struct bpmf_worker *worker); /* may be called twice */
};

extern const struct bpmf_link bpmf_items_link, bpmf_servers_link;

struct bpmf_items_state {
  struct pawl_items *rows[BPMF_SIDES], *sums;
};

struct bpmf_servers_state {
  struct pawl_vector *rows, *sums;
  struct pawl_keys *keys[BPMF_SIDES];
  float *pulled;        /* needed rows of a side, one behind another */
  uint64_t opened_tick; /* at which the rows of iteration `opened` are there */
  uint64_t opened;
  uint64_t last_tick; /* of this round */
};

struct bpmf_worker {
  struct pawl_worker *worker; /* NULL in benchmarks, which have no job */
  struct pawl_session *session;
  struct pawl_peers *peers; /* PAWL_BPMF_ITEMS */
  struct bpmf_share_spec spec;
  struct bpmf_data data;
  struct bpmf_sampler sampler;
  struct bpmf_measure tests, training;
  char error[PAWL_BPMF_TEXT]; /* reason of a failure; "": none given */

  uint64_t era; /* 0: none */
  struct bpmf_part part;
  const struct bpmf_link *link;
  bool is_open;                /* the link */
  atomic_int put;              /* first status of `put` that is not PAWL_OK */
  uint64_t summed[BPMF_SIDES]; /* iteration of the sums in the sampler */
  double waited_s;
  struct bpmf_order order; /* without bytes */
  struct bpmf_items_state items;
  struct bpmf_servers_state servers;
};

/* Opens the link, with the present rows, unless it is open. */
pawl_status bpmf_worker_open(struct bpmf_worker *worker);

/* Makes an iteration, and adds its figures to the reply, which has room for them. PAWL_DIVERGED; PAWL_NODE_GONE: a worker is
 * lost. */
pawl_status bpmf_worker_iterate(struct bpmf_worker *worker, struct bpmf_reply *reply);

bool bpmf_worker_is_ending(const struct bpmf_worker *worker); /* the job is */

/* Names of the vectors on the servers. */
void bpmf_vector_names(const struct bpmf_share_spec *spec, char rows[PAWL_NAME_MAX + 1], char sums[PAWL_NAME_MAX + 1]);

/* The versions of two successive iterations have places of their own: a worker that is ahead does not replace the sums that
 * another one has yet to read. With slack 0 no worker can be two iterations ahead. */
static inline size_t bpmf_sums_place(const struct bpmf_sampler *sampler, int side, size_t block, uint64_t clock) {
  size_t users = sampler->sides[BPMF_USERS].blocks, all = users + sampler->sides[BPMF_ITEMS].blocks;
  return (size_t)(clock % 2) * all + (side == BPMF_ITEMS ? users : 0) + block;
}

/* The slack with which a worker that pulls asks for rows, without waiting for them. It waits for no row that is within the
 * slack of the job; but rows that it fetched as late as allowed would be old on the average, and the chain would mix as
 * slowly as one with a fraction of the iterations. */
static inline uint32_t bpmf_early_slack(uint32_t slack) { return (slack + 2) / 3; }

#endif
