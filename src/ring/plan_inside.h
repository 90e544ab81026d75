/* The shared state of the planner's files. Loads are kept in units of 2^-40 of the whole and compared in
 * units of 2^-16 of a share, all in integers, so that a plan is the same on every machine. */
#ifndef PWI_RING_PLAN_INSIDE_H
#define PWI_RING_PLAN_INSIDE_H

#include "ring/plan.h"

#define PWI_PLAN_ONE (UINT64_C(1) << 40)
#define PWI_PLAN_FAIR (UINT64_C(1) << 16) /* level of a bin that carries exactly its share */
#define PWI_PLAN_CELLS 64                 /* minimum number of cells per node */
#define PWI_PLAN_NONE UINT32_MAX

enum pwi_plan_kind { PWI_PLAN_BYTES, PWI_PLAN_REQUESTS, PWI_PLAN_KINDS };

/* A bin is a node or a process. */
struct pwi_plan_bin {
  uint64_t share;                          /* share of the whole, by weight */
  uint64_t inverse;                        /* 2^56 / share: converts a load to a level without a division */
  uint64_t load[PWI_PLAN_KINDS];           /* present load */
  unsigned __int128 worse[PWI_PLAN_KINDS]; /* badness of the present load (plan_balance.c) */
};

/* A node of the cluster to which arcs can be assigned. */
struct pwi_plan_candidate {
  const struct pwi_view_node *node;
  uint32_t process; /* index of its process */
  struct pwi_plan_bin bin;
  uint32_t first_cell; /* first of the list of its cells */
  uint64_t replicas;   /* bytes that it holds for other heads */
  uint64_t paired;     /* bytes that it holds for the head under consideration */
  bool is_new;         /* not in the present view */
  bool is_away;        /* down, but the only full member of some arcs: keeps these */
  bool stuck;          /* no move away from it would improve the balance */
};

/* An arc of the present view, or an initially assigned arc; cells are parts of it. */
struct pwi_plan_base {
  uint64_t begin;
  uint32_t owner;            /* index of a candidate, or PWI_PLAN_NONE */
  const struct pwi_arc *arc; /* of the present view, or NULL */
};

struct pwi_plan_cell {
  uint64_t begin;
  uint64_t load[PWI_PLAN_KINDS];
  uint32_t base;
  uint32_t home; /* the candidate that is its present head, or PWI_PLAN_NONE */
  uint32_t owner;
  uint32_t next, before; /* links of its owner's list */
};

/* Neighbouring cells of one owner and one base, for which a chain is chosen. */
struct pwi_plan_part {
  uint64_t begin, bytes;
  const struct pwi_arc *present; /* the present arc; NULL: none */
  uint32_t base;
  uint32_t chain[PWI_CHAIN_MAX]; /* indices of candidates */
  size_t count;
};

/* The merit of a candidate as a member of a chain; fields are compared in this order. A shared host is a
 * machine whose loss takes two members. A shared rack matters less than a node with twice the replicas of the
 * others. */
struct pwi_plan_merit {
  bool is_peaceful;
  bool has_new_host;
  bool has_room; /* the candidate may take one more part and stay within a tenth over its share of replicas */
  bool has_new_rack;
  bool is_near;    /* the candidate is a member of the neighbouring chain, which was in the same arc */
  uint64_t paired; /* bytes that it holds for this head: fewer bytes spread the load better when the head is
                      lost */
  uint64_t level;  /* level of replicas: lower is better */
};

struct pwi_planner {
  const struct pwi_plan_options *options;
  bool fresh; /* there is no present view: arcs are assigned but not moved */
  struct pwi_plan_candidate *candidates;
  size_t candidate_count;
  struct pwi_plan_bin *processes;
  size_t process_count;
  struct pwi_plan_base *bases;
  size_t base_count;
  struct pwi_plan_cell *cells;
  size_t cell_count, cell_room;
  uint64_t grain;                    /* maximum load of a cell, unless it is a single key */
  uint64_t heaviest[PWI_PLAN_KINDS]; /* the heaviest single key */
  bool counts[PWI_PLAN_KINDS];       /* false if this kind of load was not measured */
  int64_t moved, move_limit;         /* bytes moved for balance, and their limit */
  uint64_t ideal;                    /* bytes that must move in any plan */
  struct pwi_plan_part *parts;       /* in the order of the ring */
  size_t part_count;
  uint32_t *by_owner;  /* indices of parts, grouped by head, in the order of the ring */
  bool is_crowded;     /* there are too many arcs: merge neighbours where possible */
  uint64_t replicated; /* total bytes of all replicas */
};

/* plan_cells.c: divides the bases into cells by load. */
PAWL_MUST_USE pawl_status pwi_plan_cut_cells(struct pwi_planner *planner);

/* plan_balance.c: assigns an owner to every cell. */
PAWL_MUST_USE pawl_status pwi_plan_balance(struct pwi_planner *planner);

/* plan_chain.c: chooses the chain of every part. */
void pwi_plan_chains(struct pwi_planner *planner);

/* plan_merit.c: rates candidates as members of a chain. `without` is the place of a member to ignore, or
 * PWI_CHAIN_MAX. */
bool pwi_plan_shares_process(const struct pwi_planner *planner, const struct pwi_plan_part *part, size_t without,
                             uint32_t candidate);
struct pwi_plan_merit pwi_plan_merit(const struct pwi_planner *planner, const struct pwi_plan_part *part,
                                     size_t without, uint32_t candidate);
bool pwi_plan_is_better(const struct pwi_plan_merit *a, const struct pwi_plan_merit *b);

/* plan_arcs.c: combines cells to parts, and parts with chains to arcs. */
PAWL_MUST_USE pawl_status pwi_plan_make_parts(struct pwi_planner *planner);
PAWL_MUST_USE pawl_status pwi_plan_make_arcs(const struct pwi_planner *planner, struct pwi_plan *plan);

/* The level: a load relative to the share of the bin. */
static inline uint64_t pwi_plan_level(const struct pwi_plan_bin *bin, uint64_t load) {
  return (uint64_t)((unsigned __int128)load * bin->inverse >> 40);
}

#endif
