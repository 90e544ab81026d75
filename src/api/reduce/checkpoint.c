/* Checkpoints of a reduce. */
#include "api/reduce/reduce.h"

pawl_status pawl_reduce_save(struct pawl_reduce *reduce, const char *path) {
  (void)reduce, (void)path;
  return pwi_error(PAWL_UNSUPPORTED, "checkpoints are not written yet");
}

pawl_status pawl_reduce_load(struct pawl_reduce *reduce, const char *path, uint64_t *iteration_out) {
  (void)reduce, (void)path, (void)iteration_out;
  return pwi_error(PAWL_UNSUPPORTED, "checkpoints are not read yet");
}
