/* What a step sends with factors and with servers, and which layers send factors (SFB, section 2.1). */
#include <math.h>

#include "apps/cnn/options.h"
#include "apps/cnn/share/inside.h"

#define HEAD_BYTES 24 /* of a commit */
#define WORD_BYTES 4  /* of the number of values of a vector */

static size_t weights_of(const struct cnn_layer *layer) { return layer->out.channels * cnn_layer_inputs(layer); }

/* Two vectors of one image. */
static double pair_bytes(const struct cnn_layer *layer) {
  return 2 * WORD_BYTES + sizeof(float) * (double)(layer->out.channels + cnn_layer_inputs(layer));
}

uint64_t cnn_layers_as_factors(const struct cnn_net *net, uint64_t images, uint32_t workers) {
  double each = ceil((double)images / workers);
  uint64_t layers = 0;
  for (size_t i = 0; i < net->count && i < 64; i++) {
    const struct cnn_layer *layer = &net->layers[i];
    if (layer->kind == CNN_FULL && each * pair_bytes(layer) < (double)(weights_of(layer) * sizeof(float)))
      layers |= (uint64_t)1 << i;
  }
  return layers;
}

size_t cnn_rest_size(const struct cnn_net *net, uint64_t as_factors) {
  size_t rest = net->parameters;
  for (size_t i = 0; i < net->count && i < 64; i++)
    if (as_factors >> i & 1) rest -= weights_of(&net->layers[i]);
  return rest;
}

static struct pawl_cnn_costs costs_of(const struct cnn_net *net, uint64_t images, uint32_t workers) {
  uint64_t layers = cnn_layers_as_factors(net, images, workers);
  double rest = 3 * WORD_BYTES + sizeof(float) * (double)cnn_rest_size(net, layers), commits;
  struct pawl_cnn_costs costs = {.servers = 2 * workers * sizeof(float) * (double)(net->parameters + 1)};
  commits = workers * (HEAD_BYTES + rest);
  for (size_t i = 0; i < net->count && i < 64; i++) {
    if (!(layers >> i & 1)) continue;
    commits += workers * HEAD_BYTES + (double)images * pair_bytes(&net->layers[i]);
    costs.layers_as_factors++;
  }
  costs.factors = (workers - 1) * commits;
  return costs;
}

pawl_status pawl_cnn_costs(const struct pawl_images *images, const struct pawl_cnn_options *options,
                           const struct pawl_cnn_sharing *sharing, struct pawl_cnn_costs *costs_out,
                           char error[PAWL_CNN_TEXT]) {
  struct pawl_cnn_options is;
  struct pawl_cnn_sharing how;
  struct pawl_images_info info;
  struct cnn_net *net = NULL;
  if (!cnn_options_resolve(options, &is, error) || !cnn_sharing_resolve(sharing, &how, error)) return PAWL_INVALID;
  pawl_images_info(images, &info);
  const struct cnn_shape shape = {info.channels, info.height, info.width};
  pawl_status status = cnn_net_create(cnn_spec_find(is.net), shape, info.classes, &net, error);
  if (status) return status;
  *costs_out = costs_of(net, is.batch < info.count ? is.batch : info.count, how.workers ? how.workers : 1);
  cnn_net_destroy(net);
  return PAWL_OK;
}
