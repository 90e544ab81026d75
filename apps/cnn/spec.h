/* The nets that pawl knows, as tables of layers. */
#ifndef CNN_SPEC_H
#define CNN_SPEC_H

#include <stddef.h>
#include <stdint.h>

#define CNN_NAME_MAX 16 /* bytes of the name of a net, with its final 0 */

enum cnn_kind { CNN_CONV, CNN_POOL, CNN_RELU, CNN_FULL, CNN_DROPOUT };

struct cnn_layer_spec {
  enum cnn_kind kind;
  uint32_t out;    /* CONV: number of channels; FULL: number of units, 0: one for each class */
  uint32_t size;   /* CONV, POOL: height and width of the window */
  uint32_t stride; /* CONV, POOL: pixels from one window to the next */
  uint32_t pad;    /* CONV: pixels of zeros around the image */
  float drop;      /* DROPOUT: probability that a value becomes 0 in training */
};

struct cnn_spec {
  const char *name;
  const struct cnn_layer_spec *layers;
  size_t count;
  uint32_t epochs, batch;       /* defaults of training */
  double rate, momentum, decay; /* defaults of training */
};

/* All nets; the list ends with a NULL name. */
extern const struct cnn_spec cnn_specs[];

/* NULL: there is no such net. */
const struct cnn_spec *cnn_spec_find(const char *name);

#endif
