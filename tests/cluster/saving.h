/* Shared by the tests of checkpoints in the simulator: a cluster with one vector, and a disk that all its
 * nodes see.
 *
 * Any failure fails the test.
 */
#ifndef TESTS_CLUSTER_SAVING_H
#define TESTS_CLUSTER_SAVING_H

#include "cluster.h"
#include "checkpoint/checkpoint.h"
#include "sim/disk.h"

#define SAVING_KEYS 3000
#define SAVING_WIDTH 4

/* A disk queue that is a disk of the simulator. Disk jobs are done at once. */
struct saving_disk_queue {
  struct pwi_disk_queue disk_queue;
  struct pwi_sim_disk *disk;
};

struct saving_scene {
  struct saving_disk_queue disk_queue;
  uint32_t points; /* arcs per server at first; 0: the manager's default */
  pwi_rights_of rights;
  struct pwi_cluster cluster;
  struct pwi_cluster_client client, other;
  struct pwi_flow *flow; /* the client's, of "test/v" */
};

extern const struct pawl_vector_options saving_options; /* of "test/v" */

void saving_open(struct saving_scene *scene, uint64_t seed, uint32_t processes, uint32_t replicas);
void saving_close(struct saving_scene *scene);

/* The two parts of saving_open before the vector: an empty disk; and a cluster with two clients. */
void saving_open_disk(struct saving_scene *scene, uint64_t seed);
void saving_open_cluster(struct saving_scene *scene, uint64_t seed, uint32_t processes, uint32_t replicas);

void saving_fill(int64_t *values, int64_t value);
pawl_status saving_push_all(struct saving_scene *scene); /* one, to each key */
void saving_pull_all(struct pwi_cluster_client *client, struct pwi_flow *flow, int64_t *values);

/* Asks for a checkpoint, as the other client or as this one; or has one saved. */
pawl_status saving_ask_as(struct pwi_cluster_client *client, const char *name, bool incremental, uint64_t rate);
pawl_status saving_ask(struct saving_scene *scene, const char *name, bool incremental, uint64_t rate);
void saving_save(struct saving_scene *scene, const char *name, bool incremental);

bool saving_is_going(void *scene); /* a predicate for cluster_run_while */
bool saving_status_says(struct saving_scene *scene, const char *text);

/* Reads the rows of a checkpoint; all checksums are looked at. `totals_out` may be NULL. */
extern int64_t saving_found[SAVING_KEYS * SAVING_WIDTH];
void saving_read(struct saving_scene *scene, const char *name, struct pwi_saved_totals *totals_out);

#endif
