/* The table of planted bugs, the bug of each thread, and the memory of bugs that need some. */
#include "protocol/planted.h"

#include <stdlib.h>
#include <string.h>

static const struct pwi_planted_about all[] = {{"", 0, false, ""},
#define ABOUT(name, word, replicas, placed, text) {word, replicas, placed, text},
                                               PWI_PLANTED_MAP(ABOUT)
#undef ABOUT
};

const struct pwi_planted_about *pwi_planted_about(enum pwi_planted bug) {
  return &all[bug < PWI_PLANTED_COUNT ? bug : PWI_PLANTED_NONE];
}

enum pwi_planted pwi_planted_named(const char *word) {
  for (size_t i = 1; i < PWI_PLANTED_COUNT; i++)
    if (strcmp(all[i].word, word) == 0) return (enum pwi_planted)i;
  return PWI_PLANTED_NONE;
}

#ifdef PAWL_PLANTED

static _Thread_local bool was_told;
static _Thread_local enum pwi_planted present;

bool pwi_planted_can(void) { return true; }

void pwi_planted_set(enum pwi_planted bug) {
  was_told = true;
  present = bug;
}

bool pwi_is_planted(enum pwi_planted bug) {
  if (!was_told) {
    const char *word = getenv("PAWL_PLANTED");
    pwi_planted_set(word ? pwi_planted_named(word) : PWI_PLANTED_NONE);
  }
  return present == bug;
}

#else

bool pwi_planted_can(void) { return false; }
void pwi_planted_set(enum pwi_planted bug) { (void)bug; }

#endif

const void *pwi_planted_refilter(const void *values, size_t size) {
  static _Thread_local _Alignas(16) unsigned char again[2048];
  if (size == 0 || size > sizeof again) return values;
  memcpy(again, values, size);
  again[0] ^= 1;
  return again;
}
