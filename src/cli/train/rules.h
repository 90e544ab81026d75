/* Table-driven options: numbers, texts and flags that are stored in a struct. */
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
  PWI_TRAIN_FILES,   /* struct pwi_train_files_given: one more file */
};

#define PWI_TRAIN_FILES_MAX 64
#define PWI_TRAIN_FILES_WANTED "at most 64 files; use a pattern for more"

/* The files of an option that may be given several times. */
struct pwi_train_files_given {
  const char *at[PWI_TRAIN_FILES_MAX];
  size_t count;
};

/* One option. Lists end with a struct of zeros. */
struct pwi_train_rule {
  int letter;
  enum pwi_train_shape shape;
  size_t place; /* offset in the options struct */
  double least, most;
  const char *wanted; /* description of the expected number */
};

/* Stores a value by the rule of its letter. Returns the expected value, or NULL if it is valid or no rule has
 * this letter. */
const char *pwi_train_rules_follow(const struct pwi_train_rule *rules, void *options, int letter, const char *value);

/* Parses a number that is at least 0. Stores its end in `stop`. */
bool pwi_train_real_read(const char *text, double *value_out, char **stop_out);

/* Words and their values. Lists end with a NULL name. */
struct pwi_train_word {
  const char *name;
  int value;
};

/* Finds a word in a list. */
bool pwi_train_word_read(const struct pwi_train_word *words, const char *text, int *value_out);

/* An option whose value is one of some words, stored as an enum. Lists end with a struct of zeros. */
struct pwi_train_choice {
  int letter;
  size_t place; /* offset in the options struct */
  const struct pwi_train_word *words;
  const char *wanted; /* the words, for people */
};

/* As pwi_train_rules_follow. */
const char *pwi_train_choices_follow(const struct pwi_train_choice *choices, void *options, int letter,
                                     const char *value);

#endif
