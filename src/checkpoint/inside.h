/* What the files of checkpoint/checkpoint.h share. */
#ifndef PWI_CHECKPOINT_INSIDE_H
#define PWI_CHECKPOINT_INSIDE_H

#include "checkpoint/checkpoint.h"

#define PWI_SAVED_PATH_MAX (2 * PWI_CHECKPOINT_NAME_MAX + 2)

/* Says what is wrong and returns the status. */
PAWL_MUST_USE pawl_status pwi_problem_tell(struct pwi_problem *problem, pawl_status status, const char *format, ...)
    PAWL_PRINTF(3, 4);

/* "directory/file", of names that were checked. */
void pwi_saved_path(const char *directory, const char *file, char path[PWI_SAVED_PATH_MAX]);

#endif
