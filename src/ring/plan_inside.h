/* What the files of the planner share: the workplace of one plan. Loads are kept in units of 2^-40 of the whole and
 * compared in units of 2^-16 of a share, all in integers, so that a plan is the same everywhere. */
#ifndef PWI_RING_PLAN_INSIDE_H
#define PWI_RING_PLAN_INSIDE_H

#include "ring/plan.h"

#define PWI_PLAN_ONE (UINT64_C(1) << 40)
#define PWI_PLAN_FAIR (UINT64_C(1) << 16) /* the level of a bin that carries exactly its share */
#define PWI_PLAN_CELLS 64                 /* per node, at least */
#define PWI_PLAN_NOBODY UINT32_MAX

enum pwi_plan_kind { PWI_PLAN_BYTES, PWI_PLAN_REQUESTS, PWI_PLAN_KINDS };

/* A bin is a node or a process. */
struct pwi_plan_bin {
  uint64_t share;                          /* of the whole, by weight */
  uint64_t inverse;                        /* 2^56 / share: what turns a load into a level without a division */
  uint64_t load[PWI_PLAN_KINDS];           /* carried now */
  unsigned __int128 worse[PWI_PLAN_KINDS]; /* the badness of that (plan_balance.c) */
};

struct pwi_plan_worker {
  const struct pwi_view_node *node;
  uint32_t process; /* index of its process */
  struct pwi_plan_bin bin;
  uint32_t first_cell; /* of the list of its cells */
  uint64_t replicas;   /* bytes it holds for other heads */
  uint64_t paired;     /* those of them whose head is the one that is looked at now */
  bool is_new;         /* not in the present view */
  bool is_away;        /* down, and waited for: keeps what it has */
  bool stuck;          /* nothing it could give away would help */
};

/* The ring as it is, or as it was dealt: where a cell comes from. */
struct pwi_plan_base {
  uint64_t begin;
  uint32_t owner;            /* index of a worker, or PWI_PLAN_NOBODY */
  const struct pwi_arc *arc; /* of the present view, or NULL */
};

struct pwi_plan_cell {
  uint64_t begin;
  uint64_t load[PWI_PLAN_KINDS];
  uint32_t base;
  uint32_t home; /* the worker that heads it now, or PWI_PLAN_NOBODY */
  uint32_t owner;
  uint32_t next, before; /* in the list of its owner */
};

/* Neighbouring cells of one owner and one base while their chain is being chosen. */
struct pwi_plan_part {
  uint64_t begin, bytes;
  const struct pwi_arc *present; /* or NULL */
  uint32_t base;
  uint32_t chain[PWI_CHAIN_MAX]; /* indices of workers */
  size_t count;
};

/* What speaks for a worker as a member of a chain: compared in turn. A host shared is a machine whose loss takes two
 * members; a rack shared is worth less than a node with twice the replicas of the others. */
struct pwi_plan_merit {
  bool is_peaceful;
  bool has_new_host;
  bool has_room; /* for one part more, within a tenth over its share of replicas */
  bool has_new_rack;
  bool is_near;    /* is a member of the chain beside it, which was one with it */
  uint64_t paired; /* with this head: the fewer, the more even it is when the head is lost */
  uint64_t level;  /* of replicas: the fewer, the better */
};

struct pwi_planner {
  const struct pwi_plan_options *options;
  bool fresh; /* there is no present view: nothing is moved, only placed */
  struct pwi_plan_worker *workers;
  size_t worker_count;
  struct pwi_plan_bin *processes;
  size_t process_count;
  struct pwi_plan_base *bases;
  size_t base_count;
  struct pwi_plan_cell *cells;
  size_t cell_count, cell_room;
  uint64_t grain;                    /* the load that a cell does not exceed, unless it is one key */
  uint64_t heaviest[PWI_PLAN_KINDS]; /* of all loads that are one key */
  bool counts[PWI_PLAN_KINDS];       /* false where nothing was measured */
  int64_t moved, move_limit;         /* bytes, for the sake of balance */
  uint64_t ideal;                    /* bytes that have to move in any plan */
  struct pwi_plan_part *parts;       /* in the order of the ring */
  size_t part_count;
  uint32_t *by_owner;  /* their indices, those of one head together, in the order of the ring */
  bool is_crowded;     /* there are more arcs than there should be: what can be one should be */
  uint64_t replicated; /* bytes of all replicas together */
};

/* plan_cells.c: cuts the bases into cells by load. */
PAWL_MUST_USE pawl_status pwi_plan_cut_cells(struct pwi_planner *planner);

/* plan_balance.c: gives every cell an owner. */
PAWL_MUST_USE pawl_status pwi_plan_balance(struct pwi_planner *planner);

/* plan_chain.c: gives every part its chain. */
void pwi_plan_chains(struct pwi_planner *planner);

/* plan_merit.c: who would be good where. `without` is the place of a member that does not count, or PWI_CHAIN_MAX. */
bool pwi_plan_shares_process(const struct pwi_planner *planner, const struct pwi_plan_part *part, size_t without,
                             uint32_t worker);
struct pwi_plan_merit pwi_plan_merit(const struct pwi_planner *planner, const struct pwi_plan_part *part,
                                     size_t without, uint32_t worker);
bool pwi_plan_is_better(const struct pwi_plan_merit *a, const struct pwi_plan_merit *b);

/* plan_arcs.c: from cells to parts, and from parts with chains to arcs. */
PAWL_MUST_USE pawl_status pwi_plan_make_parts(struct pwi_planner *planner);
PAWL_MUST_USE pawl_status pwi_plan_make_arcs(const struct pwi_planner *planner, struct pwi_plan *plan);

/* A load relative to the bin's share. */
static inline uint64_t pwi_plan_level(const struct pwi_plan_bin *bin, uint64_t load) {
  return (uint64_t)((unsigned __int128)load * bin->inverse >> 40);
}

#endif
