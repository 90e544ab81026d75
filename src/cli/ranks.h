/* Processes that mpirun or srun started as one launch: their ranks, and the file through which they find each
 * other.
 *
 * The first process (rank 0) runs the job, the others work for it. Rank 0 writes the address of its cluster
 * and the key to a file in a folder that all processes share. Only the owner can read the file, and it is
 * removed when the job ends. Nothing of MPI itself is used.
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
  bool is_one_machine;  /* all processes of the launch are on this machine */
  const char *launcher; /* "mpirun", "srun" */
  char id[64];          /* unique to this launch; usable in a file name */
};

/* Reads the launch from the environment. Returns false if this process was not started by a launcher. */
bool pwi_ranks_find(struct pwi_ranks *ranks_out);

/* The address of this machine that other machines can reach, to listen on: the source address of outgoing
 * packets. Fails with PAWL_LINK_UNREACHABLE. */
pawl_status pwi_ranks_listen(char listen_out[PWI_NET_ADDRESS_MAX]);

struct pwi_meeting {
  char address[PWI_NET_ADDRESS_MAX + 1]; /* address and key have room for a newline */
  char key[PWI_KEY_TEXT_MAX + 1];        /* "": all processes have a key already */
};

/* The path of the meeting file, in the folder of the file `beside`, which need not exist. Returns false if it
 * is too long. */
bool pwi_meeting_path(const struct pwi_ranks *ranks, const char *beside, char *path_out, size_t size);

/* Writes the meeting file atomically. Fails with PAWL_IO or other file errors; errno has the details. */
pawl_status pwi_meeting_write(const char *path, const struct pwi_meeting *meeting);

/* Waits until the meeting file exists, and reads it. PAWL_TIMED_OUT; PAWL_CORRUPT if it is another file;
 * PAWL_FORBIDDEN if another user owns it. */
pawl_status pwi_meeting_await(const char *path, int64_t deadline_ns, struct pwi_meeting *meeting_out);

#endif
