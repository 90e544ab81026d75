/* How workers share: defaults, and what is wrong with the options. */
#include <string.h>

#include "apps/cnn/options.h"
#include "apps/common/model_file.h"
#include "apps/common/reduce_files.h"
#include "apps/common/sized.h"

static const struct pawl_cnn_sharing defaults = {.share = PAWL_CNN_SERVERS};

void pawl_cnn_sharing_init_sized(struct pawl_cnn_sharing *sharing, size_t struct_size) {
  apps_sized_init(sharing, struct_size, &defaults, sizeof defaults);
}

static bool bad(char *error, const char *text) {
  (void)apps_say(error, PAWL_INVALID, "%s", text);
  return false;
}

static bool is_exact(const struct pawl_cnn_sharing *is) { /* all workers get the same mean */
  return is->graph && strcmp(is->graph, "complete") == 0 && is->mode == PAWL_REDUCE_NOTIFY_ACK;
}

bool cnn_sharing_means_gradients(const struct pawl_cnn_sharing *is) {
  if (is->share != PAWL_CNN_REDUCE) return false;
  return is->average == PAWL_CNN_AVERAGE_AUTO ? is_exact(is) : is->average == PAWL_CNN_AVERAGE_GRADIENTS;
}

static bool check_files(const struct pawl_cnn_sharing *is, char *error) {
  if (is->resume && !is->checkpoints) return bad(error, "--resume needs the folder of the checkpoint");
  if (!is->checkpoints) return true;
  if (is->share != PAWL_CNN_REDUCE)
    return bad(error, "only workers that share by reduce have checkpoints; give --share reduce, or omit --checkpoint, "
                      "--checkpoint-every and --resume");
  if (strlen(is->checkpoints) >= APPS_FOLDER_MAX)
    return bad(error, "the name of the folder in --checkpoint is too long");
  json_t *name = json_string(is->checkpoints);
  json_decref(name);
  return name ? true : bad(error, "the name of the folder in --checkpoint is not UTF-8; rename it");
}

static bool check(const struct pawl_cnn_sharing *is, char *error) {
  if ((int)is->share < 0 || is->share > PAWL_CNN_FACTORS)
    return bad(error, "unknown way to share; expected servers, reduce or factors");
  if (is->path_count == 0 || !is->paths) return bad(error, "workers need the paths of the images, but paths is empty");
  if (is->workers_most > 0 && is->workers_most < is->workers)
    return bad(error, "the maximum of workers is below the minimum");
  if (is->share == PAWL_CNN_SERVERS && (is->graph || is->mode != 0 || is->average != 0))
    return bad(error, "servers use no graph, and average nothing; --graph and --average need --share reduce");
  if (is->share == PAWL_CNN_FACTORS && (is->graph || is->mode != 0 || is->average != 0 || is->push != 0))
    return bad(error,
               "with factors everyone sends to everyone in each step; --graph, --mode and --average need --share "
               "reduce");
  if ((int)is->push < 0 || is->push > PAWL_CNN_PUSH_ASYNC)
    return bad(error, "unknown mode of pushes; expected bsp, notify-ack or async");
  if (is->share == PAWL_CNN_REDUCE && is->push != 0)
    return bad(error, "workers that share by reduce push nothing; set their mode instead");
  if ((int)is->mode < 0 || is->mode > PAWL_REDUCE_ASYNC)
    return bad(error, "unknown mode of reduce; expected notify-ack, bsp or async");
  if ((int)is->average < 0 || is->average > PAWL_CNN_AVERAGE_GRADIENTS)
    return bad(error, "unknown average; expected models or gradients");
  if (is->graph && strlen(is->graph) > PAWL_REDUCE_GRAPH_MAX) return bad(error, "the name of the graph is too long");
  if (!check_files(is, error)) return false;
  if (is->average == PAWL_CNN_AVERAGE_GRADIENTS && !is_exact(is))
    return bad(error, "gradients can be averaged on the complete graph with the mode notify-ack only, because all "
                      "workers need the same mean; average models instead");
  return true;
}

bool cnn_sharing_resolve(const struct pawl_cnn_sharing *sharing, struct pawl_cnn_sharing *is_out, char *error) {
  struct pawl_cnn_sharing is = defaults;
  if (!apps_sized_read(sharing, &is, sizeof is))
    return bad(error, "struct pawl_cnn_sharing was not initialised with pawl_cnn_sharing_init, or sets an option that "
                      "this version of pawl does not know");
  *is_out = is;
  return check(&is, error);
}

bool pawl_cnn_sharing_check(const struct pawl_cnn_sharing *sharing, char error[PAWL_CNN_TEXT]) {
  struct pawl_cnn_sharing is;
  return cnn_sharing_resolve(sharing, &is, error);
}
