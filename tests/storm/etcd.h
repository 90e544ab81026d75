/* A real etcd in a cell of a storm, for managers that take turns over it. It is Debian's etcd-server. It ends
 * with this process. */
#ifndef TESTS_STORM_ETCD_H
#define TESTS_STORM_ETCD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/storm/harness/cells.h"
#include "host/children.h"

struct storm_etcd {
  uint32_t cell;
  struct pwi_child *child; /* NULL: it does not run */
  char meta[64];           /* for --meta of managers */
};

/* NULL if etcd can be run here, else the reason why not. */
const char *storm_etcd_trouble(void);

/* Starts etcd in a new cell, with its data and its output in `folder`, and waits until it answers. Fails the
 * test if it does not. */
void storm_etcd_start(struct storm_etcd *etcd, struct pwi_storm_cells *cells, const char *folder);
void storm_etcd_stop(struct storm_etcd *etcd);

/* The term and the address (host:port) of the manager that leads by etcd's word; false if none does. */
bool storm_etcd_leader(const struct storm_etcd *etcd, uint64_t *term_out, char *address_out, size_t size);

#endif
