/* How workers share: defaults, and what is wrong with the options. */
#include "apps/bpmf/options.h"
#include "apps/common/model_file.h"
#include "apps/common/sized.h"

static const struct pawl_bpmf_sharing defaults = {.share = PAWL_BPMF_ITEMS};

void pawl_bpmf_sharing_init_sized(struct pawl_bpmf_sharing *sharing, size_t struct_size) {
  apps_sized_init(sharing, struct_size, &defaults, sizeof defaults);
}

static bool bad(char *error, const char *text) {
  (void)apps_say(error, PAWL_INVALID, "%s", text);
  return false;
}

static bool check(const struct pawl_bpmf_sharing *is, char *error) {
  if (is->share != PAWL_BPMF_ITEMS && is->share != PAWL_BPMF_SERVERS)
    return bad(error, "unknown way to share; expected items or servers");
  if (is->path_count == 0 || !is->paths) return bad(error, "workers need the paths of the ratings, but paths is empty");
  if (is->test_path_count > 0 && !is->test_paths)
    return bad(error, "workers need the paths of the test ratings, but test_paths is NULL");
  if (is->workers_most > 0 && is->workers_most < is->workers)
    return bad(error, "the maximum of workers is below the minimum");
  if (is->variant != PAWL_ITEMS_PUSH && is->variant != PAWL_ITEMS_PULL)
    return bad(error, "unknown variant; expected push or pull");
  if (is->variant == PAWL_ITEMS_PULL && is->share == PAWL_BPMF_SERVERS)
    return bad(error, "workers always pull from servers; --variant needs --share items");
  if (is->slack > PAWL_BPMF_SLACK_MAX) return bad(error, "the slack must be at most 1,000,000 iterations");
  return true;
}

bool bpmf_sharing_resolve(const struct pawl_bpmf_sharing *sharing, struct pawl_bpmf_sharing *is_out, char *error) {
  struct pawl_bpmf_sharing is = defaults;
  if (!apps_sized_read(sharing, &is, sizeof is))
    return bad(error,
               "struct pawl_bpmf_sharing was not initialised with pawl_bpmf_sharing_init, or sets an option that "
               "this version of pawl does not know");
  *is_out = is;
  return check(&is, error);
}

bool pawl_bpmf_sharing_check(const struct pawl_bpmf_sharing *sharing, char error[PAWL_BPMF_TEXT]) {
  struct pawl_bpmf_sharing is;
  return bpmf_sharing_resolve(sharing, &is, error);
}
