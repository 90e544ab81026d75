/* How workers share a matrix: defaults, what is wrong with the options, and names. */
#include "apps/common/shared_matrix/options.h"

#include <string.h>

#include "apps/common/memory.h"
#include "apps/common/model_file.h"
#include "apps/common/sized.h"

static const struct pawl_matrix_sharing defaults = {.way = PAWL_MATRIX_FACTORS};

void pawl_matrix_sharing_init_sized(struct pawl_matrix_sharing *sharing, size_t struct_size) {
  apps_sized_init(sharing, struct_size, &defaults, sizeof defaults);
}

static bool bad(char *error, const char *text) {
  (void)apps_say(error, PAWL_INVALID, "%s", text);
  return false;
}

static bool check(const struct pawl_matrix_sharing *is, char *error) {
  bool has_factors = is->way == PAWL_MATRIX_FACTORS;
  if (!has_factors && is->way != PAWL_MATRIX_WHOLE && is->way != PAWL_MATRIX_SERVERS)
    return bad(error, "unknown way to share; expected factors, matrix or servers");
  if (is->path_count == 0 || !is->paths) return bad(error, "workers need the paths of the files, but paths is empty");
  if (is->workers_most > 0 && is->workers_most < is->workers)
    return bad(error, "the maximum of workers is below the minimum");
  if (!has_factors && (is->graph || is->forward))
    return bad(error, "servers use no graph; --graph and --forward need --share factors");
  if (is->graph && strlen(is->graph) > PAWL_MATRIX_GRAPH_MAX) return bad(error, "the name of the graph is too long");
  if (is->forward && (!is->graph || strcmp(is->graph, "complete") == 0))
    return bad(error, "everyone sends to everyone, so there is nothing to forward; --forward needs --graph");
  return true;
}

bool matrix_sharing_resolve(const struct pawl_matrix_sharing *sharing, struct pawl_matrix_sharing *is_out,
                            char *error) {
  struct pawl_matrix_sharing is = defaults;
  if (!apps_sized_read(sharing, &is, sizeof is))
    return bad(error, "struct pawl_matrix_sharing was not initialised with pawl_matrix_sharing_init, or sets an option "
                      "that this version of pawl does not know");
  *is_out = is;
  return check(&is, error);
}

bool pawl_matrix_sharing_check(const struct pawl_matrix_sharing *sharing, char error[PAWL_MATRIX_TEXT]) {
  struct pawl_matrix_sharing is;
  return matrix_sharing_resolve(sharing, &is, error);
}

const char *pawl_matrix_way_name(enum pawl_matrix_way way) {
  return way == PAWL_MATRIX_FACTORS ? "factors" : way == PAWL_MATRIX_WHOLE ? "matrix" : "servers";
}

void pawl_matrix_shared_fini(struct pawl_matrix_shared *shared) {
  apps_free(shared->each);
  *shared = (struct pawl_matrix_shared){.each = NULL};
}
