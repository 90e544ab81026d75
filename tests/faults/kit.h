/* Small things that the tests of faults share: waiting with a bound, the log as it was written, keys, free ports, and
 * what a process must not leave behind.
 *
 * Whatever cannot be set up here ends the test program with a message (`must`): these are tests.
 */
#ifndef PWI_TESTS_FAULTS_KIT_H
#define PWI_TESTS_FAULTS_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/key.h"
#include "net/tcp/tcp.h"

#define KIT_HANG_MS 60000 /* nothing here takes so long unless it hangs; no promise about speed */

/* Ends the program with a message if `ok` is false. */
void kit_must(bool ok, const char *what);

int64_t kit_now(void); /* the clock of pwi_net_now */
void kit_sleep_ms(int64_t ms);

/* Asks again and again until the answer is true, which is returned, or KIT_HANG_MS have passed. */
bool kit_wait(bool (*is_so)(void *context), void *context);

/* What the library has logged since the last kit_log_begin; from several threads. */
void kit_log_begin(void);
size_t kit_log_count(const char *part);  /* lines that contain the text; "" counts all */
bool kit_log_wait(const char *part);     /* until there is one */
uint64_t kit_log_sum(const char *field); /* of the numbers behind `field`, such as "left_out=" */
void kit_log_print(void);                /* for a test that fails */

/* A keyring of the keys given, up to the first NULL, at most three. */
struct pwi_keyring *kit_keyring(const char *first, const char *second, const char *third);
void kit_new_key(char text[PWI_KEY_TEXT_MAX]);

/* A port of loopback that is free now and outside of the range that the kernel picks from. */
unsigned kit_free_port(void);

/* A new folder below /tmp: paths of sockets must be short. */
void kit_folder_make(char path[64]);
void kit_folder_remove(const char *path); /* with the files in it */

size_t kit_open_files(void); /* of this process */
size_t kit_resident(void);   /* its bytes of memory; 0 under a sanitizer, which needs a multiple of them itself */

/* Names in /dev/shm. What came since and belongs to no living process was left behind. */
struct kit_shared {
  size_t count;
  char names[256][64];
};
void kit_shared_look(struct kit_shared *shared_out);
size_t kit_shared_left_behind(const struct kit_shared *before);

/* Run a command; true if it went well. Its output is dropped unless `loud`. */
bool kit_run(bool loud, const char *format, ...) PAWL_PRINTF(2, 3);

#endif
