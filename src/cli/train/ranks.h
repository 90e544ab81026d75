/* `pawl train` under mpirun or srun: the first process runs the job, the others work for it. */
#ifndef PWI_CLI_TRAIN_RANKS_H
#define PWI_CLI_TRAIN_RANKS_H

#include <limits.h>

#include "cli/train/base.h"

struct pwi_train_meeting {
  char path[PATH_MAX]; /* of the file that tells the others; "": there is none */
};

/* Where the scheduler listens. PWI_EXIT_OK, or it has said why not. */
int pwi_train_listen(const struct pwi_train_base *base, char listen_out[PWI_NET_ADDRESS_MAX]);

/* The first process tells the others where its cluster is, by a file in the model's folder; PWI_EXIT_OK, or it has said why not. And takes
 * it back at the end. */
int pwi_train_meet(struct pwi_train_meeting *meeting, const struct pwi_train_base *base, const char *address);
void pwi_train_part(struct pwi_train_meeting *meeting);

/* What the others do: find the first one's cluster and work. The exit code. */
int pwi_train_follow(const struct pwi_train_base *base);

#endif
