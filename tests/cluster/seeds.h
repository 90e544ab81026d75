/* Campaigns of many seeds: none may fail, and a large number of them must have covered every kind of
 * event. */
#ifndef TESTS_CLUSTER_SEEDS_H
#define TESTS_CLUSTER_SEEDS_H

#include <stdint.h>

#define MANY_SEEDS 300

void run_seeds(uint64_t first, uint64_t last);

#endif
