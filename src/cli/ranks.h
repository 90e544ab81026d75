/* Processes that mpirun or srun have started together: which of them this one is, and where they meet.
 *
 * The first (rank 0) runs the job, the others work for it. They are told where, and are given the key, by a file in a folder
 * that all of them see; only its owner can read it, and it goes when the job ends. Nothing of MPI itself is used.
 */
#ifndef PWI_CLI_RANKS_H
#define PWI_CLI_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "net/key.h"
#include "net/net.h"

struct pwi_ranks {
  uint32_t rank, size;
  bool is_one_machine;  /* all of them are on this one */
  const char *launcher; /* "mpirun", "srun" */
  char id[64];          /* the same for all of them and nobody else; fit for a file's name */
};

/* What the environment says. False: this process was started by itself. */
bool pwi_ranks_find(struct pwi_ranks *ranks_out);

/* How other machines reach this one, as an address to listen at: the source address of packets to elsewhere.
 * PAWL_LINK_UNREACHABLE. */
pawl_status pwi_ranks_listen(char listen_out[PWI_NET_ADDRESS_MAX]);

struct pwi_meeting {
  char address[PWI_NET_ADDRESS_MAX + 1]; /* both with room for a line break */
  char key[PWI_KEY_TEXT_MAX + 1];        /* "": everybody has one */
};

/* Where: beside the file `beside`, which need not exist. False: the name is too long. */
bool pwi_meeting_path(const struct pwi_ranks *ranks, const char *beside, char *path_out, size_t size);

/* Writes it, whole or not at all. PAWL_IO and what else a disk may say: errno has more. */
pawl_status pwi_meeting_write(const char *path, const struct pwi_meeting *meeting);

/* Waits until it is there. PAWL_TIMED_OUT; PAWL_CORRUPT if it is something else; PAWL_FORBIDDEN if it is not ours. */
pawl_status pwi_meeting_await(const char *path, int64_t deadline_ns, struct pwi_meeting *meeting_out);

#endif
