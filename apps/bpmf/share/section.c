/* Sections of the state that workers and scheduler exchange. */
#include "apps/bpmf/share/inside.h"

uint64_t bpmf_section_count(const struct bpmf_sampler *sampler, enum bpmf_section section, bool no_train_rmse) {
  const struct bpmf_data *data = sampler->data;
  switch (section) {
  case BPMF_SECTION_USERS:
  case BPMF_SECTION_ITEMS:
    return data->sides[section].rows;
  case BPMF_SECTION_TESTS:
    return data->test_count;
  default:
    return no_train_rmse ? 0 : data->count;
  }
}

size_t bpmf_section_width(const struct bpmf_sampler *sampler, enum bpmf_section section) {
  return section <= BPMF_SECTION_ITEMS ? sampler->rank * sizeof(float) : sizeof(double);
}
