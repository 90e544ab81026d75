/* The machine, as the kernel describes it. Unknown values are 0 or "". */
#ifndef PWI_CLI_MACHINE_H
#define PWI_CLI_MACHINE_H

#include <stddef.h>
#include <stdint.h>

struct pwi_machine {
  char kernel[192];
  char processor[128];
  int cores_usable, cores_online;
  uint64_t memory_total, memory_available;
  uint64_t memory_limit;      /* of the control group; 0: none */
  char huge_pages[32];        /* the selected mode, e.g. "madvise" */
  char huge_pages_shared[32]; /* the same for shared memory */
  uint64_t huge_pages_reserved;
  uint64_t files_soft, files_hard;
  uint64_t shm_total, shm_free;
  char rdma[256]; /* names of devices */
};

void pwi_machine_look(struct pwi_machine *machine_out);

/* The word in brackets: "madvise" of "always [madvise] never"; "" if there is none. */
void pwi_machine_chosen(const char *line, char *word, size_t size);

#endif
