/* Measures training steps of convolutional nets: one line of JSON for each net, and one for the product of matrices that
 * is the best that the machine can do.
 *
 *   cnn_bench [SECONDS]     for each line, default 3
 *
 * `sgemm` multiplies two matrices of 1024 x 1024. A step is a forward and a backward pass over a batch of 64 random
 * images, and the change of the parameters. `gflops` counts the products of a step only (two operations for each
 * multiplication), so `of_sgemm` shows what everything else costs. `forward` is prediction. Figures are the mean over
 * the time, in processor time of the one thread.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "apps/cnn/blas.h"
#include "apps/cnn/pass.h"
#include "apps/cnn/random.h"
#include "apps/cnn/sgd.h"

#define SIDE ((size_t)1024)
#define BATCH 64

static double seconds = 3;

static float *random_floats(size_t count) {
  struct apps_random random = apps_random_of(1, CNN_FOR_WEIGHTS, count, 0);
  float *values = malloc(count * sizeof *values);
  check_status(values ? PAWL_OK : PAWL_NO_MEMORY);
  for (size_t i = 0; i < count; i++) values[i] = 2 * cnn_unit(&random) - 1;
  return values;
}

/* GFLOP/s. */
static double measure_sgemm(void) {
  float *a = random_floats(SIDE * SIDE), *b = random_floats(SIDE * SIDE), *c = random_floats(SIDE * SIDE);
  struct cnn_matrix one = {a, SIDE, false}, other = {b, SIDE, false};
  double start = thread_now(), done = 0;
  while (thread_now() - start < seconds) {
    cnn_multiply(SIDE, SIDE, SIDE, one, other, false, c, SIDE);
    done += 2e-9 * (double)(SIDE * SIDE * SIDE);
  }
  double rate = done / (thread_now() - start);
  free(a);
  free(b);
  free(c);
  return rate;
}

/* Operations of the products for one image: forward, the gradient of the weights, and the slope of the input, which the
 * first layer does not need. */
static double operations(const struct cnn_net *net, bool trains) {
  double sum = 0;
  for (size_t i = 0; i < net->count; i++) {
    const struct cnn_layer *layer = &net->layers[i];
    if (layer->kind != CNN_CONV && layer->kind != CNN_FULL) continue;
    double product = 2 * (double)cnn_layer_inputs(layer) * (double)cnn_shape_size(layer->out);
    sum += product * (!trains ? 1 : i > 0 ? 3 : 2);
  }
  return sum;
}

static void print(const char *net, const char *what, double images, double took, double each, double peak) {
  double gflops = 1e-9 * each * images / took;
  printf("{\"bench\":\"cnn\",\"net\":\"%s\",\"what\":\"%s\",\"images_per_s\":%.0f,\"mflop_per_image\":%.2f,"
         "\"gflops\":%.1f,\"of_sgemm\":%.2f}\n",
         net, what, images / took, 1e-6 * each, gflops, gflops / peak);
}

static void measure_net(const char *name, struct cnn_shape input, double peak) {
  struct cnn_sgd sgd = {.rate = 1e-4, .momentum = 0.9, .decay = 5e-4};
  struct cnn_drops drops = {.seed = 1};
  struct cnn_net *net;
  struct cnn_pass *pass;
  uint8_t labels[BATCH];
  size_t wrong, size = BATCH * cnn_shape_size(input);
  check_status(cnn_net_create(cnn_spec_find(name), input, 10, &net, NULL));
  check_status(cnn_pass_create(net, BATCH, true, &pass));
  float *images = random_floats(size), *parameters = random_floats(net->parameters);
  float *gradient = random_floats(net->parameters), *velocity = calloc(net->parameters, sizeof *velocity);
  check_status(velocity ? PAWL_OK : PAWL_NO_MEMORY);
  for (size_t i = 0; i < BATCH; i++) labels[i] = (uint8_t)(i % 10);
  cnn_net_start(net, 1, parameters);
  double start = thread_now(), steps = 0;
  for (; thread_now() - start < seconds; steps++) {
    memcpy(cnn_pass_input(pass), images, size * sizeof *images);
    (void)cnn_pass_forward(pass, parameters, BATCH, &drops);
    (void)cnn_pass_backward(pass, parameters, BATCH, labels, gradient, &wrong);
    cnn_sgd_step(net, &sgd, gradient, velocity, parameters);
    drops.step++;
  }
  print(name, "step", BATCH * steps, thread_now() - start, operations(net, true), peak);
  start = thread_now();
  for (steps = 0; thread_now() - start < seconds; steps++) (void)cnn_pass_forward(pass, parameters, BATCH, NULL);
  print(name, "forward", BATCH * steps, thread_now() - start, operations(net, false), peak);
  free(images);
  free(parameters);
  free(gradient);
  free(velocity);
  cnn_pass_destroy(pass);
  cnn_net_destroy(net);
}

int main(int count, char **arguments) {
  if (count > 1) seconds = atof(arguments[1]);
  (void)cnn_blas_threads(1);
  double peak = measure_sgemm();
  printf("{\"bench\":\"cnn\",\"what\":\"sgemm\",\"gflops\":%.1f}\n", peak);
  measure_net("lenet", (struct cnn_shape){1, 28, 28}, peak);
  measure_net("vgg", (struct cnn_shape){3, 32, 32}, peak);
  return 0;
}
