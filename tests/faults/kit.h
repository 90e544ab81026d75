/* Utilities of the tests of faults: waiting with a limit, the written log, keys, free ports, and checks for
 * leftovers of a process.
 *
 * A failed setup ends the test program with a message (`must`).
 */
#ifndef PWI_TESTS_FAULTS_KIT_H
#define PWI_TESTS_FAULTS_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/key.h"
#include "net/tcp/tcp.h"

#define KIT_HANG_MS 200000 /* nothing here takes so long unless it hangs; not a promise of speed */

/* Ends the program with a message if `ok` is false. */
void kit_must(bool ok, const char *what);

int64_t kit_now(void); /* the clock of pwi_net_now */
void kit_sleep_ms(int64_t ms);

/* Repeats the question until the answer is true or KIT_HANG_MS have passed. Returns the answer. */
bool kit_wait(bool (*is_so)(void *context), void *context);

/* Collects the log lines of the library since the last kit_log_begin, from all threads. */
void kit_log_begin(void);
size_t kit_log_count(const char *part);  /* lines that contain the text; "" counts all */
bool kit_log_wait(const char *part);     /* waits until there is one */
uint64_t kit_log_sum(const char *field); /* sum of the numbers after `field`, such as "left_out=" */
void kit_log_print(void);                /* for a failing test */

/* A keyring of the given keys, up to the first NULL; at most three. */
struct pwi_keyring *kit_keyring(const char *first, const char *second, const char *third);
void kit_new_key(char text[PWI_KEY_TEXT_MAX]);

/* A free loopback port outside the range from which the kernel picks. */
unsigned kit_free_port(void);

/* Makes a new folder below /tmp, because paths of sockets must be short. */
void kit_folder_make(char path[64]);
void kit_folder_remove(const char *path); /* with its files */

size_t kit_open_files(void); /* open files of this process */
size_t kit_resident(void);   /* resident bytes of this process; 0 under a sanitizer, which needs a multiple
                                itself */

/* Names in /dev/shm. A new name that belongs to no living process was left behind. */
struct kit_shared {
  size_t count;
  char names[256][64];
};
void kit_shared_look(struct kit_shared *shared_out);
size_t kit_shared_left_behind(const struct kit_shared *before);

/* Runs a command; true if it succeeded. Its output is discarded unless `loud`. */
bool kit_run(bool loud, const char *format, ...) PAWL_PRINTF(2, 3);

#endif
