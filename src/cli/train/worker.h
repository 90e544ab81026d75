/* A worker of a training job: `pawl worker`, and the further processes of `mpirun pawl train`. */
#ifndef PWI_CLI_TRAIN_WORKER_H
#define PWI_CLI_TRAIN_WORKER_H

#include "cli/session_listen.h"
#include "cli/session_options.h"

struct pwi_worker {
  const struct pwi_command *command;
  struct pwi_session_choice choice;
  const char *job, *listen;
  int64_t wait_ns;   /* time limit for the job to begin */
  int64_t stay_ns;   /* for it to begin again after its scheduler was lost; 0: do not wait */
  uint64_t ready_fd; /* UINT64_MAX: none */
  uint64_t parent;   /* 0: none */
  bool is_orphan;    /* private: its scheduler was lost */
  char address[PWI_SESSION_LISTEN_MAX];
};

/* Sets the defaults of `pawl worker`. */
void pwi_worker_init(struct pwi_worker *worker, const struct pwi_command *command);

/* Works until the job ends. Returns the exit code. */
int pwi_worker_run(struct pwi_worker *worker);

#endif
