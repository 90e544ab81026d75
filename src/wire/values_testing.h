/* Helpers for the tests of the value codecs. Blocks have exact sizes, so that a sanitizer detects overruns;
 * the caller frees them. Include it after cmocka. */
#ifndef PWI_WIRE_VALUES_TESTING_H
#define PWI_WIRE_VALUES_TESTING_H

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "wire/values.h"

#define SEED 42
#define LENGTH(array) (sizeof(array) / sizeof *(array))

static const enum pwi_value_type types[] = {PWI_TYPE_F32, PWI_TYPE_F64, PWI_TYPE_I32, PWI_TYPE_I64, PWI_TYPE_U64};
static const size_t counts[] = {0, 1, 2, 63, 64, 65, 255, 256, 257, 1000, 4095, 4096, 4097, 9001};

static struct pwi_codec *workspace;

static int set_up(void **state) {
  (void)state;
  print_message("seed %d\n", SEED);
  return pwi_codec_create(&workspace) == PAWL_OK ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  pwi_codec_destroy(workspace);
  return 0;
}

static char *encode(enum pwi_value_codec codec, enum pwi_value_type type, const void *values, size_t count,
                    size_t *size_out) {
  size_t bound;
  assert_int_equal(pwi_values_bound(codec, type, count, &bound), PAWL_OK);
  char *room = malloc(bound);
  assert_int_equal(pwi_values_encode(workspace, codec, type, values, count, room, bound, size_out), PAWL_OK);
  assert_true(*size_out <= bound);
  char *exact = malloc(*size_out ? *size_out : 1);
  if (*size_out) memcpy(exact, room, *size_out);
  free(room);
  return exact;
}

/* The status of decoding into a block of exact size; `values_out`, unless NULL, gets that block. */
static pawl_status decode(enum pwi_value_codec codec, enum pwi_value_type type, const void *data, size_t size,
                          size_t count, void **values_out) {
  void *values = malloc(count * pwi_value_size(type));
  pawl_status status = pwi_values_decode(workspace, codec, type, data, size, values, count);
  if (values_out)
    *values_out = values;
  else
    free(values);
  return status;
}

/* In [-spread / 2, spread / 2), of a float type. */
static void *make_floats(enum pwi_value_type type, size_t count, double spread) {
  struct pwi_random random;
  pwi_random_init(&random, SEED, 100);
  void *values = malloc(count * pwi_value_size(type));
  for (size_t i = 0; i < count; i++) {
    double value = (pwi_random_unit(&random) - 0.5) * spread;
    if (type == PWI_TYPE_F32)
      ((float *)values)[i] = (float)value;
    else
      ((double *)values)[i] = value;
  }
  return values;
}

#endif
