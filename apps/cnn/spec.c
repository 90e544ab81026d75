#include "apps/cnn/spec.h"

#include <string.h>

#define CONV(channels, width, border)                                                                                  \
  { .kind = CNN_CONV, .out = (channels), .size = (width), .stride = 1, .pad = (border) }
#define POOL(width)                                                                                                    \
  { .kind = CNN_POOL, .size = (width), .stride = (width) }
#define RELU                                                                                                           \
  { .kind = CNN_RELU }
#define FULL(units)                                                                                                    \
  { .kind = CNN_FULL, .out = (units) }
#define CLASSES FULL(0)
#define DROPOUT(probability)                                                                                           \
  { .kind = CNN_DROPOUT, .drop = (probability) }

/* LeNet as Caffe trains it on MNIST, after LeCun et al. 1998. */
static const struct cnn_layer_spec lenet[] = {CONV(20, 5, 0), POOL(2), CONV(50, 5, 0), POOL(2),
                                              FULL(500),      RELU,    CLASSES};

/* A small net in the manner of VGG (Simonyan and Zisserman 2015): pairs of 3 x 3 convolutions, then a pooling. */
#define PAIR(channels) CONV(channels, 3, 1), RELU, CONV(channels, 3, 1), RELU, POOL(2)
static const struct cnn_layer_spec vgg[] = {PAIR(32),  PAIR(64), PAIR(128),     DROPOUT(0.25f),
                                            FULL(256), RELU,     DROPOUT(0.5f), CLASSES};

#define LAYERS(table) .layers = (table), .count = sizeof(table) / sizeof *(table)

const struct cnn_spec cnn_specs[] = {
    {.name = "lenet", LAYERS(lenet), .epochs = 5, .batch = 64, .rate = 0.01, .momentum = 0.9, .decay = 5e-4},
    {.name = "vgg", LAYERS(vgg), .epochs = 20, .batch = 32, .rate = 0.01, .momentum = 0.9, .decay = 5e-4},
    {.name = NULL},
};

const struct cnn_spec *cnn_spec_find(const char *name) {
  for (const struct cnn_spec *spec = cnn_specs; spec->name; spec++)
    if (strcmp(spec->name, name) == 0) return spec;
  return NULL;
}
