#include "cli/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "host/clock.h"
#include "host/run/address.h"

#define ELSEWHERE "192.0.2.1:9" /* an address of no machine (RFC 5737); no packet is sent to it */
#define LOOK_AGAIN_US 50000
#define FIRST_LINE "pawl meeting 1"

/* --- who we are --------------------------------------------------------------------------------------------------- */

static bool number_of(const char *variable, uint32_t *number_out) {
  const char *text = getenv(variable);
  uint64_t number;
  if (!text || !pwi_cli_number(text, &number) || number > INT32_MAX) return false;
  *number_out = (uint32_t)number;
  return true;
}

/* Letters, digits, dots; everything else becomes a dash. */
static void name(struct pwi_ranks *ranks, const char *first, const char *second) {
  snprintf(ranks->id, sizeof ranks->id, "%s-%s%s%s", ranks->launcher, first ? first : "", second ? "." : "",
           second ? second : "");
  for (char *at = ranks->id; *at; at++)
    if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.", *at)) *at = '-';
}

static bool find_mpi(struct pwi_ranks *ranks) {
  uint32_t here;
  if (!number_of("OMPI_COMM_WORLD_RANK", &ranks->rank) || !number_of("OMPI_COMM_WORLD_SIZE", &ranks->size))
    return false;
  ranks->launcher = "mpirun";
  ranks->is_one_machine = number_of("OMPI_COMM_WORLD_LOCAL_SIZE", &here) && here == ranks->size;
  const char *space = getenv("PMIX_NAMESPACE");
  name(ranks, space ? space : getenv("OMPI_MCA_ess_base_jobid"), NULL);
  return true;
}

/* Reads the variables of a step, which srun sets. Those of the whole allocation are also set in a batch
 * script, which is only one process. */
static bool find_slurm(struct pwi_ranks *ranks) {
  uint32_t nodes;
  if (!number_of("SLURM_PROCID", &ranks->rank) || !number_of("SLURM_STEP_NUM_TASKS", &ranks->size)) return false;
  ranks->launcher = "srun";
  ranks->is_one_machine = number_of("SLURM_STEP_NUM_NODES", &nodes) && nodes == 1;
  name(ranks, getenv("SLURM_JOB_ID"), getenv("SLURM_STEP_ID"));
  return true;
}

bool pwi_ranks_find(struct pwi_ranks *ranks_out) {
  struct pwi_ranks ranks = {0};
  if (!find_mpi(&ranks) && !find_slurm(&ranks)) return false;
  if (ranks.size < 2 || ranks.rank >= ranks.size) return false;
  *ranks_out = ranks;
  return true;
}

pawl_status pwi_ranks_listen(char listen_out[PWI_NET_ADDRESS_MAX]) {
  char host[PWI_NET_ADDRESS_MAX];
  bool is_loopback;
  pawl_status status = pwi_run_route(ELSEWHERE, host, &is_loopback);
  if (status) return status;
  int size = snprintf(listen_out, PWI_NET_ADDRESS_MAX, "%.*s:0", PWI_NET_ADDRESS_MAX - 3, host);
  return size > 0 && size < PWI_NET_ADDRESS_MAX ? PAWL_OK : PAWL_LINK_UNREACHABLE;
}

/* --- where we meet ------------------------------------------------------------------------------------------------ */

bool pwi_meeting_path(const struct pwi_ranks *ranks, const char *beside, char *path_out, size_t size) {
  const char *slash = strrchr(beside, '/');
  int length = snprintf(path_out, size, "%.*s.pawl-%s", slash ? (int)(slash + 1 - beside) : 0, beside, ranks->id);
  return length > 0 && (size_t)length < size;
}

static bool write_text(int file, const char *text) {
  for (size_t left = strlen(text); left > 0;) {
    ssize_t wrote = write(file, text, left);
    if (wrote < 0 && errno != EINTR) return false;
    if (wrote < 0) continue;
    text += wrote;
    left -= (size_t)wrote;
  }
  return true;
}

pawl_status pwi_meeting_write(const char *path, const struct pwi_meeting *meeting) {
  char aside[PATH_MAX], text[PWI_NET_ADDRESS_MAX + PWI_KEY_TEXT_MAX + 32];
  int size = snprintf(aside, sizeof aside, "%s.new", path);
  if (size < 0 || (size_t)size >= sizeof aside) return PAWL_TOO_LARGE;
  snprintf(text, sizeof text, FIRST_LINE "\n%s\n%s\n", meeting->address, meeting->key);
  unlink(aside);
  int file = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return PAWL_IO;
  bool good = write_text(file, text);
  good = close(file) == 0 && good && rename(aside, path) == 0;
  if (good) return PAWL_OK;
  int error = errno;
  unlink(aside);
  errno = error;
  return PAWL_IO;
}

/* Reads one line without its newline. Returns false if there is none, or it does not fit. */
static bool take_line(FILE *file, char *line_out, size_t size) {
  if (!fgets(line_out, (int)size, file)) return false;
  size_t length = strcspn(line_out, "\n");
  bool whole = line_out[length] == '\n';
  line_out[length] = '\0';
  return whole;
}

static pawl_status read_meeting(FILE *file, struct pwi_meeting *meeting_out) {
  struct pwi_meeting meeting;
  char first[32];
  struct stat about;
  if (fstat(fileno(file), &about) != 0 || about.st_uid != geteuid()) return PAWL_FORBIDDEN;
  if (!take_line(file, first, sizeof first) || strcmp(first, FIRST_LINE) != 0 ||
      !take_line(file, meeting.address, sizeof meeting.address) || !take_line(file, meeting.key, sizeof meeting.key))
    return PAWL_CORRUPT;
  *meeting_out = meeting;
  return PAWL_OK;
}

pawl_status pwi_meeting_await(const char *path, int64_t deadline_ns, struct pwi_meeting *meeting_out) {
  for (;;) {
    FILE *file = fopen(path, "re");
    if (file) {
      pawl_status status = read_meeting(file, meeting_out);
      fclose(file);
      return status;
    }
    if (pwi_host_now() >= deadline_ns) return PAWL_TIMED_OUT;
    usleep(LOOK_AGAIN_US);
  }
}
