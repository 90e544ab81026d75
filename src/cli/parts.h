/* The parts of this build of pawl: for `pawl version` and `pawl env`. */
#ifndef PWI_CLI_PARTS_H
#define PWI_CLI_PARTS_H

#include <stdbool.h>
#include <stddef.h>

/* A library that pawl uses, and the version that is loaded. */
struct pwi_build_part {
  const char *name;
  char version[64]; /* "" if this pawl was built without it, or cannot load it */
};

#define PWI_PARTS 8

void pwi_parts(struct pwi_build_part parts_out[PWI_PARTS]);

const char *pwi_parts_compiler(void);     /* such as "gcc 12.2.0" */
const char *pwi_parts_architecture(void); /* such as "x86-64" */

/* True if the processor has instructions for AES. */
bool pwi_parts_has_aes(void);

/* Features of the build and of the processor that pawl uses. */
struct pwi_feature {
  const char *name;
  bool present;
};

#define PWI_FEATURES 5

void pwi_parts_features(struct pwi_feature features_out[PWI_FEATURES]);

#endif
