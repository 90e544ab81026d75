/* Workloads: clients of a campaign that exercise one group of requests each, under the same faults as all others.
 *
 * A workload checks the results of its own calls against a model that it keeps outside its processes. The model
 * contains the calls that were made and the answers that came back, and never the state of a server. Only the
 * workload itself changes its vectors, so the model is complete. The first result that the model does not explain
 * ends the run.
 *
 * The seed decides which workloads a campaign has (draw.c). Every workload has a random stream of its own, and its
 * clients are added after all others, so that the rest of a campaign draws the same numbers with and without it.
 *
 *   workload.c      the list of workloads
 *   scanner.c       SCAN
 *   names.c         CREATE, DELETE and RESTORE_BEGIN of the same names by two clients
 *   sums.c          pushes and pushpulls of a group
 *   heir.c          a client that stays dead, and a client that takes over its work
 *   linear.c        linear algebra and folds
 *   caller.c        calls between clients
 *   trigger.c       pushes that wait for a group
 *   local.c         a vector that a client holds locally
 *   gate.c          a barrier that was passed, when its head dies
 *   loss.c          a server that dies for good and is given up; the only workload of its campaign
 *   saver.c         checkpoints
 *   readers.c       pulls of a group, in campaigns with relays
 */
#ifndef PWI_SIM_CAMPAIGN_WORKLOADS_WORKLOAD_H
#define PWI_SIM_CAMPAIGN_WORKLOADS_WORKLOAD_H

#include "sim/campaign/inside.h"

struct pwi_workload_ops;

/* Workloads put this first in structs of their own. */
struct pwi_workload {
  const struct pwi_workload_ops *ops;
  struct campaign *campaign;
  struct pwi_random random; /* of this workload alone */
};

struct pwi_workload_ops {
  size_t size; /* of the workload's struct, which begins as zeros */

  /* Makes the vectors, with the campaign's checker, and adds the clients. There are no faults yet. */
  pawl_status (*begin)(struct pwi_workload *workload);

  /* True until all calls of the workload have ended. */
  bool (*is_busy)(const struct pwi_workload *workload);

  /* Says in a few words what is still under way. */
  void (*describe)(const struct pwi_workload *workload, char *text, size_t size);

  /* Compares the stored rows with the model when everything has healed. NULL: nothing to compare. */
  pawl_status (*check)(struct pwi_workload *workload);

  /* A view is durable in the manager's journal. NULL: no interest. */
  void (*view)(struct pwi_workload *workload, const struct pwi_view *view);

  void (*fini)(struct pwi_workload *workload); /* NULL: nothing to free */
};

extern const struct pwi_workload_ops pwi_workload_scanner, pwi_workload_names, pwi_workload_heir, pwi_workload_sums,
    pwi_workload_linear, pwi_workload_caller, pwi_workload_saver, pwi_workload_trigger, pwi_workload_local,
    pwi_workload_gate, pwi_workload_loss, pwi_workload_readers;

/* True if the client is in its first life and was never declared dead, by the manager's durable decisions. */
bool pwi_workload_is_loyal(const struct pwi_workload *workload, const struct pwi_cluster_client *client);

/* A process as a call names it. */
struct pwi_workload_target {
  const struct pwi_cluster_client *client;
  uint32_t incarnation;
  uint64_t sender;
};

struct pwi_workload_target pwi_workload_target(const struct pwi_cluster_client *client);

/* True if that process still lives and was not declared dead, by the manager's durable decisions. Then no call to it
 * may fail because it is gone. */
bool pwi_workload_is_there(const struct pwi_workload *workload, const struct pwi_workload_target *target);

/* Creates a vector for a workload. `options` must not contain AUTO where the workload relies on the choice. */
PAWL_MUST_USE pawl_status pwi_workload_vector(struct pwi_workload *workload, const char *name,
                                              const struct pawl_vector_options *options);

/* Pulls rows with the campaign's checker, in the end. */
PAWL_MUST_USE pawl_status pwi_workload_pull(struct pwi_workload *workload, const char *name,
                                            const struct pwi_where *where, void *values);

#endif
