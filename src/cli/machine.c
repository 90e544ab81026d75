/* Reads /proc and /sys. Files there depend on the kernel and the container, so a missing file is not an
 * error. */
#include "cli/machine.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Reads the first line without its newline, or "". */
static void read_line(const char *path, char *line, size_t size) {
  FILE *file = fopen(path, "re");
  *line = '\0';
  if (!file) return;
  if (!fgets(line, (int)size, file)) *line = '\0';
  line[strcspn(line, "\n")] = '\0';
  fclose(file);
}

/* The value after `name` and a colon in a file of such lines. */
static void read_field(const char *path, const char *name, char *value, size_t size) {
  char line[256];
  FILE *file = fopen(path, "re");
  *value = '\0';
  if (!file) return;
  while (!*value && fgets(line, sizeof line, file)) {
    char *colon = strchr(line, ':');
    size_t length = strlen(name);
    if (!colon || strncmp(line, name, length) != 0 || line[length + strspn(line + length, " \t")] != ':') continue;
    colon += 1 + strspn(colon + 1, " \t");
    snprintf(value, size, "%.*s", (int)strcspn(colon, "\n"), colon);
  }
  fclose(file);
}

static uint64_t read_kilobytes(const char *name) {
  char value[64];
  read_field("/proc/meminfo", name, value, sizeof value);
  return (uint64_t)strtoull(value, NULL, 10) * 1024;
}

void pwi_machine_chosen(const char *line, char *word, size_t size) {
  const char *open = strchr(line, '['), *close = open ? strchr(open, ']') : NULL;
  *word = '\0';
  if (close) snprintf(word, size, "%.*s", (int)(close - open - 1), open + 1);
}

static void look_at_processor(struct pwi_machine *machine) {
  struct utsname about;
  cpu_set_t usable;
  if (uname(&about) == 0) snprintf(machine->kernel, sizeof machine->kernel, "%s %s", about.sysname, about.release);
  read_field("/proc/cpuinfo", "model name", machine->processor, sizeof machine->processor);
  machine->cores_online = (int)sysconf(_SC_NPROCESSORS_ONLN);
  machine->cores_usable =
      sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : machine->cores_online;
}

static void look_at_memory(struct pwi_machine *machine) {
  char line[128];
  machine->memory_total = read_kilobytes("MemTotal");
  machine->memory_available = read_kilobytes("MemAvailable");
  read_line("/sys/fs/cgroup/memory.max", line, sizeof line); /* "max" reads as 0 */
  machine->memory_limit = (uint64_t)strtoull(line, NULL, 10);
  read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line);
  pwi_machine_chosen(line, machine->huge_pages, sizeof machine->huge_pages);
  read_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled", line, sizeof line);
  pwi_machine_chosen(line, machine->huge_pages_shared, sizeof machine->huge_pages_shared);
  read_field("/proc/meminfo", "HugePages_Total", line, sizeof line);
  machine->huge_pages_reserved = (uint64_t)strtoull(line, NULL, 10);
}

static void look_at_limits(struct pwi_machine *machine) {
  struct rlimit files;
  struct statvfs shm;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    machine->files_soft = files.rlim_cur;
    machine->files_hard = files.rlim_max;
  }
  if (statvfs("/dev/shm", &shm) == 0) {
    machine->shm_total = (uint64_t)shm.f_blocks * shm.f_frsize;
    machine->shm_free = (uint64_t)shm.f_bavail * shm.f_frsize;
  }
}

static void look_for_rdma(struct pwi_machine *machine) {
  DIR *devices = opendir("/sys/class/infiniband");
  if (!devices) return;
  for (struct dirent *entry; (entry = readdir(devices));) {
    size_t used = strlen(machine->rdma);
    if (entry->d_name[0] == '.') continue;
    snprintf(machine->rdma + used, sizeof machine->rdma - used, "%s%s", used ? " " : "", entry->d_name);
  }
  closedir(devices);
}

void pwi_machine_look(struct pwi_machine *machine_out) {
  *machine_out = (struct pwi_machine){0};
  look_at_processor(machine_out);
  look_at_memory(machine_out);
  look_at_limits(machine_out);
  look_for_rdma(machine_out);
}
