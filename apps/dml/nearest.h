/* Nearest points by Euclidean distance, found by comparing all, and classification by them (k-NN). */
#ifndef DML_NEAREST_H
#define DML_NEAREST_H

#include "apps/common/crew.h"
#include "apps/dml/points.h"

#define DML_NEAREST_MAX 100 /* points of a list */
#define DML_NOBODY UINT32_MAX

/* Finds for each query the `k` nearest points, nearest first, of equally near ones that with the lower number. Writes k
 * numbers for each query; DML_NOBODY fills up lists. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status dml_nearest(const struct dml_points *points, const struct dml_points *queries, uint32_t k,
                                      struct apps_crew *crew, uint32_t threads, uint32_t *numbers_out);

/* Finds for each point the `k` nearest others of its class, and then the `k` nearest of other classes: 2 k numbers for each
 * point. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status dml_nearest_by_class(const struct dml_points *points, uint32_t k, struct apps_crew *crew,
                                               uint32_t threads, uint32_t *numbers_out);

/* The class that most of these points have; of several such classes that of the nearest point. */
uint32_t dml_vote(const uint32_t *classes, const uint32_t *numbers, uint32_t k);

/* Counts the queries with a class that are given another one by their neighbours. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status dml_nearest_wrong(const struct dml_points *points, const struct dml_points *queries,
                                            uint32_t k, struct apps_crew *crew, uint32_t threads, uint64_t *wrong_out);

#endif
