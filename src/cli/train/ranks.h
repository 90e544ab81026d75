/* `pawl train` under mpirun or srun: the first process runs the job, the others work for it. */
#ifndef PWI_CLI_TRAIN_RANKS_H
#define PWI_CLI_TRAIN_RANKS_H

#include <limits.h>

#include "cli/train/base.h"

struct pwi_train_meeting {
  char path[PATH_MAX]; /* path of the meeting file; "": there is none */
};

/* The address on which the scheduler listens. Returns PWI_EXIT_OK, or prints an error. */
int pwi_train_listen(const struct pwi_train_base *base, char listen_out[PWI_NET_ADDRESS_MAX]);

/* The first process announces its cluster to the others in a file in the model's folder. Returns PWI_EXIT_OK,
 * or prints an error. pwi_train_part removes the file. */
int pwi_train_meet(struct pwi_train_meeting *meeting, const struct pwi_train_base *base, const char *address);
void pwi_train_part(struct pwi_train_meeting *meeting);

/* The other processes: find the cluster of the first process, and work. Returns the exit code. */
int pwi_train_follow(const struct pwi_train_base *base);

#endif
