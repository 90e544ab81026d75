/* Campaigns of many seeds: none may fail, and if they are many they must have met everything that can happen. */
#ifndef TESTS_CLUSTER_SEEDS_H
#define TESTS_CLUSTER_SEEDS_H

#include <stdint.h>

#define MANY_SEEDS 2000

void run_seeds(uint64_t first, uint64_t last);

#endif
