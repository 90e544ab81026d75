/* The kinds of world this program was built with. */
#include "world.h"

#include <stddef.h>
#include <string.h>

static const struct {
  const char *name;
  const struct world_kind *kind;
} worlds[] = {
#ifdef CONFORMANCE_REAL
    {"tcp", &world_tcp},   {"tls", &world_tls},
    {"unix", &world_unix},
#else
    {"tcp", NULL}, {"tls", NULL},       {"unix", NULL},
#endif
#if defined(CONFORMANCE_REAL) && PAWL_HAS_UCX
    {"ucx", &world_ucx},
#else
    {"ucx", NULL},
#endif
#ifdef CONFORMANCE_SIM
    {"sim", &world_sim},   {"sim-plain", &world_sim_plain},
#else
    {"sim", NULL}, {"sim-plain", NULL},
#endif
};

bool world_needs_planes = true;

const struct world_kind *world_find(const char *name, bool *known_out) {
  for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
    if (strcmp(worlds[i].name, name) != 0) continue;
    *known_out = true;
    return worlds[i].kind;
  }
  *known_out = false;
  return NULL;
}
