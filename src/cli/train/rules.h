/* Options of trainings that are a number, a text or a flag and nothing else: a table says where each goes. */
#ifndef PWI_CLI_TRAIN_RULES_H
#define PWI_CLI_TRAIN_RULES_H

#include <stdbool.h>
#include <stddef.h>

enum pwi_train_shape {
  PWI_TRAIN_FLAG,    /* bool, becomes true */
  PWI_TRAIN_TEXT,    /* const char *, not empty */
  PWI_TRAIN_COUNT32, /* uint32_t */
  PWI_TRAIN_COUNT64, /* uint64_t */
  PWI_TRAIN_REAL,    /* double */
};

/* One option. Lists end with a struct of zeros. */
struct pwi_train_rule {
  int letter;
  enum pwi_train_shape shape;
  size_t place; /* in the struct that is filled */
  double least, most;
  const char *wanted; /* what a number should have been, for people */
};

/* Stores the value where the letter's rule says. What the value should have been; NULL if it is good, or no rule is for this letter. */
const char *pwi_train_rules_follow(const struct pwi_train_rule *rules, void *options, int letter, const char *value);

/* A number that is 0 or above, up to `stop`, which is stored. */
bool pwi_train_real_read(const char *text, double *value_out, char **stop_out);

/* One word of a list, which ends with a NULL name. */
struct pwi_train_word {
  const char *name;
  int value;
};

bool pwi_train_word_read(const struct pwi_train_word *words, const char *text, int *value_out);

#endif
