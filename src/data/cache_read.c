#include "data/cache.h"

pawl_status pwi_cache_is(const char *path, bool *is_out, struct pwi_fault *fault) {
  (void)path, (void)fault;
  *is_out = false;
  return PAWL_OK;
}
pawl_status pwi_cache_open(const char *path, struct pwi_cache **cache_out, struct pwi_fault *fault) {
  (void)cache_out;
  return pwi_fault_plain(fault, PAWL_UNSUPPORTED, path);
}
void pwi_cache_close(struct pwi_cache *cache) { (void)cache; }
size_t pwi_cache_blocks(const struct pwi_cache *cache) { return cache != NULL; }
pawl_status pwi_cache_read(struct pwi_cache *cache, size_t block, struct pwi_batch *batch, struct pwi_fault *fault) {
  (void)cache, (void)block, (void)batch;
  return pwi_fault_plain(fault, PAWL_UNSUPPORTED, "");
}
