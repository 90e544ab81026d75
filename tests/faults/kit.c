/* Utilities of the tests of faults. */
#include "kit.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <pawl/log.h>

#define LINES_MAX 4096
#define LINE_SIZE 256

void kit_must(bool ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "cannot %s\n", what);
  kit_log_print();
  exit(1);
}

int64_t kit_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void kit_sleep_ms(int64_t ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

bool kit_wait(bool (*is_so)(void *context), void *context) {
  int64_t end = kit_now() + KIT_HANG_MS * INT64_C(1000000);
  while (!is_so(context)) {
    if (kit_now() > end) return is_so(context);
    kit_sleep_ms(1);
  }
  return true;
}

/* The log. */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_lines[LINES_MAX][LINE_SIZE];
static size_t log_count; /* more than LINES_MAX are counted, not kept */

static void keep_line(void *context, const struct pawl_log_line *line) {
  (void)context;
  pthread_mutex_lock(&log_lock);
  if (log_count < LINES_MAX)
    snprintf(log_lines[log_count], LINE_SIZE, "%s %s", pawl_log_level_name(line->level), line->text);
  log_count++;
  pthread_mutex_unlock(&log_lock);
}

void kit_log_begin(void) {
  static bool is_set;
  pthread_mutex_lock(&log_lock);
  log_count = 0;
  pthread_mutex_unlock(&log_lock);
  if (!is_set) pawl_log_set(keep_line, NULL, PAWL_LOG_DEBUG);
  is_set = true;
}

static size_t kept(void) { return log_count < LINES_MAX ? log_count : LINES_MAX; }

size_t kit_log_count(const char *part) {
  size_t found = 0;
  pthread_mutex_lock(&log_lock);
  for (size_t i = 0; i < kept(); i++) found += strstr(log_lines[i], part) != NULL;
  pthread_mutex_unlock(&log_lock);
  return found;
}

static bool is_logged(void *part) { return kit_log_count(part) > 0; }

bool kit_log_wait(const char *part) { return kit_wait(is_logged, (void *)(uintptr_t)part); }

uint64_t kit_log_sum(const char *field) {
  uint64_t sum = 0;
  pthread_mutex_lock(&log_lock);
  for (size_t i = 0; i < kept(); i++) {
    const char *at = strstr(log_lines[i], field);
    if (at) sum += strtoull(at + strlen(field), NULL, 10);
  }
  pthread_mutex_unlock(&log_lock);
  return sum;
}

void kit_log_print(void) {
  pthread_mutex_lock(&log_lock);
  for (size_t i = 0; i < kept(); i++) fprintf(stderr, "log: %s\n", log_lines[i]);
  pthread_mutex_unlock(&log_lock);
}

/* Keys, ports, folders. */

void kit_new_key(char text[PWI_KEY_TEXT_MAX]) { kit_must(pwi_key_new(text) == PAWL_OK, "make a key"); }

struct pwi_keyring *kit_keyring(const char *first, const char *second, const char *third) {
  const char *texts[] = {first, second, third};
  struct pwi_keyring *keyring = NULL;
  kit_must(pwi_keyring_create(&keyring) == PAWL_OK, "make a keyring");
  for (size_t i = 0; i < 3 && texts[i]; i++)
    kit_must(pwi_keyring_add(keyring, texts[i]) == PAWL_OK, "add a key to the ring");
  return keyring;
}

static bool is_free(unsigned port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  address.sin_port = htons((uint16_t)port);
  int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool bound = handle >= 0 && bind(handle, (struct sockaddr *)&address, sizeof address) == 0;
  if (handle >= 0) close(handle);
  return bound;
}

unsigned kit_free_port(void) {
  unsigned port = 20000 + (unsigned)getpid() % 10000;
  for (unsigned tries = 0; tries < 2000; tries++, port++)
    if (is_free(port)) return port;
  kit_must(false, "find a free port");
  return 0;
}

void kit_folder_make(char path[64]) {
  snprintf(path, 64, "/tmp/pawl-faults-XXXXXX");
  kit_must(mkdtemp(path) != NULL, "make a folder below /tmp");
}

void kit_folder_remove(const char *path) {
  DIR *folder = opendir(path);
  if (!folder) return;
  for (struct dirent *entry; (entry = readdir(folder));) {
    char name[512];
    snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    if (entry->d_name[0] != '.') unlink(name);
  }
  closedir(folder);
  rmdir(path);
}

/* What is left behind. */

size_t kit_open_files(void) {
  DIR *folder = opendir("/proc/self/fd");
  kit_must(folder != NULL, "read /proc/self/fd");
  size_t count = 0;
  for (struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
  closedir(folder);
  return count - 1; /* without the folder's own */
}

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || HAS_FEATURE(address_sanitizer) ||                 \
    HAS_FEATURE(thread_sanitizer)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

size_t kit_resident(void) {
  if (IS_SANITIZED) return 0;
  unsigned long long pages = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  kit_must(file && fscanf(file, "%llu %llu", &pages, &resident) == 2, "read /proc/self/statm");
  fclose(file);
  return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

void kit_shared_look(struct kit_shared *shared_out) {
  shared_out->count = 0;
  DIR *folder = opendir("/dev/shm");
  if (!folder) return;
  for (struct dirent *entry; (entry = readdir(folder)) && shared_out->count < 256;)
    if (entry->d_name[0] != '.') snprintf(shared_out->names[shared_out->count++], 64, "%.63s", entry->d_name);
  closedir(folder);
}

static bool was_there(const struct kit_shared *before, const char *name) {
  for (size_t i = 0; i < before->count; i++)
    if (strcmp(before->names[i], name) == 0) return true;
  return false;
}

static bool is_mapped_by(const char *process, const char *path) {
  char maps[300], line[512];
  snprintf(maps, sizeof maps, "/proc/%s/maps", process);
  FILE *file = fopen(maps, "re");
  if (!file) return false;
  bool found = false;
  while (!found && fgets(line, sizeof line, file)) found = strstr(line, path) != NULL;
  fclose(file);
  return found;
}

static bool is_in_use(const char *name) {
  char path[80];
  snprintf(path, sizeof path, "/dev/shm/%s", name);
  DIR *processes = opendir("/proc");
  if (!processes) return false;
  bool found = false;
  for (struct dirent *entry; !found && (entry = readdir(processes));)
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') found = is_mapped_by(entry->d_name, path);
  closedir(processes);
  return found || access(path, F_OK) != 0;
}

size_t kit_shared_left_behind(const struct kit_shared *before) {
  struct kit_shared now;
  size_t left = 0;
  kit_shared_look(&now);
  for (size_t i = 0; i < now.count; i++)
    if (!was_there(before, now.names[i]) && !is_in_use(now.names[i])) {
      fprintf(stderr, "left behind: /dev/shm/%s\n", now.names[i]);
      left++;
    }
  return left;
}

bool kit_run(bool loud, const char *format, ...) {
  char command[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(command, sizeof command - 32, format, arguments);
  va_end(arguments);
  if (!loud) strcat(command, " >/dev/null 2>&1");
  return system(command) == 0;
}
