/* Measures speed and compression of value codecs: one JSON line per codec, type and kind of data.
 *
 *   values_bench [megabytes]
 *
 * Speeds are GB of raw values per second of one core, the best of several rounds over one array (default:
 * 4 MB, larger than the level-2 cache, as a message is). Standalone: link it with libpawl_inside.a.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "base/hash.h"
#include "wire/values.h"
#include "wire/values_kernels.h"

#define ROUNDS 15

struct kind {
  const char *name;
  double density; /* share of non-zero values */
};

static const struct kind kinds[] = {{"dense", 1.0}, {"half", 0.5}, {"sparse10", 0.1}, {"sparse1", 0.01}, {"zero", 0.0}};

static const char *const type_names[] = {"", "f32", "f64", "i32", "i64", "u64"};

/* Values like gradients: spread around zero, all digits in use. */
static double gradient(uint64_t i) {
  double sum = 0;
  for (uint64_t k = 0; k < 4; k++) sum += (double)(pwi_mix64(4 * i + k) >> 11) * 0x1p-53;
  return (sum - 2) * 0.01;
}

static void fill(enum pwi_value_type type, void *values, size_t count, double density) {
  for (size_t i = 0; i < count; i++) {
    double chance = (double)(pwi_mix64(i ^ UINT64_C(0x5a5a5a5a00000000)) >> 11) * 0x1p-53;
    double value = chance < density ? gradient(i + 1) : 0;
    if (type == PWI_TYPE_F32) ((float *)values)[i] = (float)value;
    if (type == PWI_TYPE_F64) ((double *)values)[i] = value;
    if (type == PWI_TYPE_I64) ((int64_t *)values)[i] = (int64_t)(value * 1e5);
  }
}

static void die(const char *what, pawl_status status) {
  fprintf(stderr, "values_bench: %s: %s\n", what, pawl_status_text(status));
  exit(1);
}

static void measure(struct pwi_codec *workspace, enum pwi_value_codec codec, enum pwi_value_type type,
                    const struct kind *kind, const void *values, size_t count) {
  size_t bound, size = 0, bytes = count * pwi_value_size(type);
  pawl_status status = pwi_values_bound(codec, type, count, &bound);
  if (status != PAWL_OK) return; /* lossy codecs do not take integers */
  void *buffer = malloc(bound), *back = malloc(bytes);
  if (!buffer || !back) die("memory", PAWL_NO_MEMORY);
  memset(buffer, 1, bound);
  memset(back, 1, bytes);
  double encode = 1e9, decode = 1e9;
  for (int round = 0; round < ROUNDS; round++) {
    double start = now();
    status = pwi_values_encode(workspace, codec, type, values, count, buffer, bound, &size);
    if (status != PAWL_OK) die("encode", status);
    double middle = now();
    status = pwi_values_decode(workspace, codec, type, buffer, size, back, count);
    if (status != PAWL_OK) die("decode", status);
    double end = now();
    if (middle - start < encode) encode = middle - start;
    if (end - middle < decode) decode = end - middle;
  }
  printf("{\"codec\":\"%s\",\"type\":\"%s\",\"data\":\"%s\",\"mb\":%.1f,\"kernels\":\"%s\",\"ratio\":%.4f,"
         "\"encode_gbps\":%.2f,\"decode_gbps\":%.2f}\n",
         pwi_value_codec_name(codec), type_names[type], kind->name, (double)bytes / 1e6, pwi_kernels_best()->name,
         (double)size / (double)bytes, (double)bytes / encode / 1e9, (double)bytes / decode / 1e9);
  free(back);
  free(buffer);
}

int main(int argc, char **argv) {
  static const enum pwi_value_type types[] = {PWI_TYPE_F32, PWI_TYPE_F64, PWI_TYPE_I64};
  double megabytes = argc > 1 ? atof(argv[1]) : 4;
  size_t bytes = (size_t)(megabytes * 1e6) / 8 * 8;
  struct pwi_codec *workspace;
  pawl_status status = pwi_codec_create(&workspace);
  void *values = malloc(bytes);
  if (status != PAWL_OK || !values || bytes == 0) die("start", status);
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
      size_t count = bytes / pwi_value_size(types[t]);
      fill(types[t], values, count, kinds[k].density);
      for (int codec = 0; codec < PWI_CODEC_COUNT; codec++) {
        measure(workspace, (enum pwi_value_codec)codec, types[t], &kinds[k], values, count);
      }
    }
  }
  free(values);
  pwi_codec_destroy(workspace);
  return 0;
}
