/* Shared by the files behind checkpoint/checkpoint.h. */
#ifndef PWI_CHECKPOINT_INSIDE_H
#define PWI_CHECKPOINT_INSIDE_H

#include "checkpoint/checkpoint.h"

#define PWI_SAVED_PATH_MAX (2 * PWI_CHECKPOINT_NAME_MAX + 2)

/* Writes the explanation and returns the status. */
PAWL_MUST_USE pawl_status pwi_problem_tell(struct pwi_problem *problem, pawl_status status, const char *format, ...)
    PAWL_PRINTF(3, 4);

/* Writes "directory/file". Both names must have been validated. */
void pwi_saved_path(const char *directory, const char *file, char path[PWI_SAVED_PATH_MAX]);

#endif
